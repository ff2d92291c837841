/* Gradients against differences and a slow reference; nothing depends on the order. */
#include "learner/loss/loss.h"
#include "check.h"

#include <math.h>
#include <stdlib.h>

#include "base/core/core.h"

enum { MAX = 600, MAX_ROW = 3 * MAX };

/* Programs of 1 to 3 rows in tasks; scores that float holds exactly, shifted by 2^-9 too. */
typedef struct {
    size_t n, start[MAX + 1];
    double offset[MAX_ROW], log_s[MAX];
    uint32_t group[MAX];
    float score[MAX_ROW], grad[MAX_ROW], hess[MAX_ROW];
    cd_objective_part p;
} made;

static double unit(uint64_t stream, size_t i) { return cd_rng_unit(stream, i); }

static void make(made *m, size_t n, size_t n_group) {
    *m = (made){.n = n};
    for (size_t i = 0; i < n; i++) {
        m->start[i + 1] = m->start[i] + 1 + (size_t)(3 * unit(1, i)) % 3;
        m->group[i] = (uint32_t)(7 + (n_group - 1 - i % n_group));
        m->log_s[i] = -8 + 3 * unit(2, i);
    }
    for (size_t k = 0; k < m->start[n]; k++) {
        m->offset[k] = -8 + unit(3, k);
        m->score[k] = (float)(rint(2048 * unit(4, k)) / 1024 - 1);
    }
}

static void begin(made *m, const cd_objective_spec *s, const made *seen) {
    cdmpp_err err = {0};
    m->p = (cd_objective_part){
        .n = m->n, .start = m->start, .offset = m->offset, .log_s = m->log_s, .group = m->group};
    assert_ok(cd_objective_begin(&m->p, s, seen ? &seen->p : NULL, &err));
}

static double gradient(made *m, const cd_objective_spec *s) {
    const double loss = cd_objective_loss(&m->p, s, m->score);
    cd_objective_gradient(&m->p, s, m->grad, m->hess);
    return loss;
}

/* Programs far enough from each other that no step of a difference changes a place. */
static void spread_scores(made *m) {
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = m->start[i]; k < m->start[i + 1]; k++) {
            m->offset[k] = -8 - log((double)(m->start[i + 1] - m->start[i]));
            m->score[k] = (float)((i * 37) % m->n) / 32;
        }
}

static const cd_objective_spec specs[] = {
    {CD_OBJECTIVE_LOG_LATENCY, CD_TREE_LOSS_SQUARED, 0.1, CD_RANK_LOSS_PAIRWISE},
    {CD_OBJECTIVE_PACK_SUM, CD_TREE_LOSS_HUBER, 0.1, CD_RANK_LOSS_PAIRWISE},
    {CD_OBJECTIVE_RANK, CD_TREE_LOSS_HUBER, 0.1, CD_RANK_LOSS_PAIRWISE},
    {CD_OBJECTIVE_RANK, CD_TREE_LOSS_HUBER, 0.1, CD_RANK_LOSS_LAMBDARANK},
    {CD_OBJECTIVE_RANK, CD_TREE_LOSS_HUBER, 0.1, CD_RANK_LOSS_LISTNET}};
enum { LAMBDARANK = 3, LISTNET, N_SPEC };

TEST(gradients_are_derivatives) {
    static made m;
    for (int o = 0; o < N_SPEC; o++)
        for (int size = 0; size < 2; size++) {
            make(&m, size ? 90 : 40, size ? 2 : 6); /* tasks of 45: not all pairs */
            if (o == LAMBDARANK) spread_scores(&m);
            begin(&m, &specs[o], NULL);
            gradient(&m, &specs[o]);
            for (size_t k = 0; k < m.start[m.n]; k += 3) {
                const float at = m.score[k];
                m.score[k] = at + 0x1p-9f;
                const double up = cd_objective_loss(&m.p, &specs[o], m.score);
                m.score[k] = at - 0x1p-9f;
                const double down = cd_objective_loss(&m.p, &specs[o], m.score);
                m.score[k] = at;
                assert_close((double)m.grad[k], (up - down) * 0x1p8 * (double)m.n, 0, 2e-5);
                assert_true(m.hess[k] >= 0);
            }
            cd_objective_end(&m.p);
        }
}

/* Diagonal of the Hessian of a score, for programs of one row: differences of gradients. Pairs: a
 * program's own, without the weights' changes. */
TEST(hessians_are_derivatives) {
    static made m;
    for (int o = CD_OBJECTIVE_RANK; o < N_SPEC; o++) {
        make(&m, 60, 3);
        for (size_t i = 0; i < m.n; i++) m.start[i + 1] = i + 1;
        spread_scores(&m);
        begin(&m, &specs[o], NULL);
        for (size_t k = 0; k < m.n; k++) {
            const float at = m.score[k];
            m.score[k] = at + 0x1p-9f;
            gradient(&m, &specs[o]);
            const double up = (double)m.grad[k];
            m.score[k] = at - 0x1p-9f;
            gradient(&m, &specs[o]);
            const double down = (double)m.grad[k];
            m.score[k] = at;
            gradient(&m, &specs[o]);
            /* gradients are multiples of 2^-20 */
            assert_close((double)m.hess[k], (up - down) * 0x1p8, 2e-5, 1e-3);
            assert_true(m.hess[k] >= 0);
        }
        cd_objective_end(&m.p);
    }
}

/* A weight counts like so many copies of the program: loss and gradient of programs that are there
 * twice. */
TEST(weights_are_copies) {
    static made one, two;
    static double weight[MAX];
    make(&one, 30, 3);
    make(&two, 30, 3);
    for (size_t i = 0; i < 10; i++) { /* the first ten again */
        const size_t n_row = one.start[i + 1] - one.start[i], at = two.start[two.n];
        two.start[++two.n] = at + n_row;
        two.log_s[30 + i] = one.log_s[i];
        for (size_t k = 0; k < n_row; k++) {
            two.offset[at + k] = one.offset[one.start[i] + k];
            two.score[at + k] = one.score[one.start[i] + k];
        }
    }
    for (size_t i = 0; i < 30; i++) weight[i] = i < 10 ? 2 : 1;
    begin(&one, &specs[0], NULL);
    begin(&two, &specs[0], NULL);
    one.p.weight = weight;
    assert_close(gradient(&one, &specs[0]), gradient(&two, &specs[0]), 1e-12, 0);
    for (size_t i = 0; i < 30; i++)
        for (size_t k = one.start[i]; k < one.start[i + 1]; k++) {
            assert_close((double)one.grad[k], weight[i] * (double)two.grad[k], 0, 0x1p-19);
            assert_close((double)one.hess[k], weight[i] * (double)two.hess[k], 0, 0x1p-19);
        }
    cd_objective_end(&one.p);
    cd_objective_end(&two.p);
}

/* Mean over all pairs of each task, a task by its programs; grad (n) of program scores. */
static double all_pairs(const made *m, double *grad) {
    double loss = 0;
    for (size_t i = 0; i < m->n; i++) grad[i] = 0;
    for (uint32_t g = 0; g < 40; g++) {
        double sum = 0, n_pair = 0, n = 0;
        for (size_t i = 0; i < m->n; i++) n += m->group[i] == g;
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = 0; i < m->n; i++)
                for (size_t j = 0; j < m->n; j++) {
                    if (m->group[i] != g || m->group[j] != g || !(m->log_s[i] < m->log_s[j]))
                        continue;
                    const double d = m->p.r[i] + m->log_s[i] - m->p.r[j] - m->log_s[j];
                    if (!pass) sum += log1p(exp(d)), n_pair++;
                    else
                        grad[i] += n / n_pair / (1 + exp(-d)),
                            grad[j] -= n / n_pair / (1 + exp(-d));
                }
        if (n_pair > 0) loss += n * sum / n_pair;
    }
    return loss / (double)m->n;
}

TEST(rank_is_pairs) {
    static made m;
    static double want[MAX];
    const cd_objective_spec *o = &specs[CD_OBJECTIVE_RANK];
    for (int large = 0; large < 2; large++) {
        /* 300 a task: about 60 distances instead of 299 */
        make(&m, large ? MAX : 100, large ? 2 : 7);
        if (!large) m.log_s[0] = m.log_s[7], m.log_s[1] = m.log_s[8]; /* no pairs */
        begin(&m, o, NULL);
        const double got = gradient(&m, o), ref = all_pairs(&m, want);
        double diff = 0, size = 0;
        for (size_t i = 0; i < m.n; i++) {
            double g = 0;
            for (size_t k = m.start[i]; k < m.start[i + 1]; k++) g += (double)m.grad[k];
            diff += (g - want[i]) * (g - want[i]), size += want[i] * want[i];
        }
        assert_close(got, ref, large ? 0.01 : 1e-9, 0);
        assert_true(sqrt(diff / size) < (large ? 0.1 : 1e-5));
        cd_objective_end(&m.p);
    }
}

/* NDCG of the order by score, from all places of one task. */
static double ndcg(const double *gain, const double *p, size_t n) {
    double dcg = 0, best = 0;
    for (size_t i = 0; i < n; i++) {
        size_t place = 0, first = 0;
        for (size_t j = 0; j < n; j++) place += p[j]<p[i], first += gain[j]> gain[i];
        dcg += gain[i] / log2(2 + (double)place), best += gain[i] / log2(2 + (double)first);
    }
    return dcg / best;
}

/* One task of which all pairs count: the mean of the pairs' losses, each by what a swap really
 * changes. */
TEST(lambdarank_is_ndcg) {
    static made m;
    enum { N = 16 };
    double p[N], gain[N], want[N] = {0}, loss = 0, all = 0;
    make(&m, N, 1);
    for (size_t i = 0; i < N; i++) m.start[i + 1] = i + 1;
    spread_scores(&m);
    begin(&m, &specs[LAMBDARANK], NULL);
    double fastest = 0;
    for (size_t i = 0; i < N; i++) fastest = fmin(fastest, m.log_s[i]);
    for (size_t i = 0; i < N; i++)
        p[i] = m.offset[i] + (double)m.score[i], gain[i] = exp2(exp(fastest - m.log_s[i])) - 1;
    const double now = ndcg(gain, p, N);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < N; j++) {
                if (!(m.log_s[i] < m.log_s[j])) continue;
                const double d = p[i] - p[j];
                double swap = p[i];
                p[i] = p[j], p[j] = swap;
                const double w = fabs(ndcg(gain, p, N) - now);
                swap = p[i], p[i] = p[j], p[j] = swap;
                if (!pass) all += w, loss += w * log1p(exp(d));
                else want[i] += N * w / all / (1 + exp(-d)), want[j] -= N * w / all / (1 + exp(-d));
            }
    assert_close(gradient(&m, &specs[LAMBDARANK]), loss / all, 1e-8, 0);
    for (size_t i = 0; i < N; i++) assert_close((double)m.grad[i], want[i], 0, 0x1p-19);
    cd_objective_end(&m.p);
}

/* A constant orders nothing: the slower of two has the place in front, so all pairs pull. Who is
 * known from the train part to be faster lessens gains. */
TEST(lambdarank_of_a_constant) {
    static made a, b;
    make(&a, 4, 1);
    make(&b, 4, 1);
    for (size_t k = 0; k < a.start[4]; k++) a.score[k] = b.score[k] = 0;
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = a.start[i]; k < a.start[i + 1]; k++)
            a.offset[k] = b.offset[k] = -log((double)(a.start[i + 1] - a.start[i]));
        a.log_s[i] = b.log_s[i] = -8 + 0.5 * (double)i;
    }
    begin(&a, &specs[LAMBDARANK], NULL);
    gradient(&a, &specs[LAMBDARANK]);
    assert_true(a.p.g[0] > 0 && a.p.g[3] < 0); /* the fastest falls, the slowest rises */
    assert_close(a.p.y[0], 1, 1e-12, 0);
    /* the slowest is in front */
    for (size_t i = 0; i < 4; i++) assert_close(a.p.discount[i], 1 / log2(5 - (double)i), 1e-12, 0);
    for (size_t i = 0; i < 4; i++) b.log_s[i] += 1;
    begin(&b, &specs[LAMBDARANK], &a);
    for (size_t i = 0; i < 4; i++) assert_close(b.p.y[i], exp(-1 - 0.5 * (double)i), 1e-12, 0);
    cd_objective_end(&a.p);
    cd_objective_end(&b.p);
}

/* What rounds are compared by: 1 - NDCG of each task, by its programs. It falls where the order
 * gets better, also where the loss, whose weights change, rises. */
TEST(rounds_are_compared_by_ndcg) {
    static made m;
    const cd_objective_spec *o = &specs[LAMBDARANK];
    double want = 0;
    make(&m, 60, 3);
    begin(&m, o, NULL);
    const double loss = gradient(&m, o), figure = cd_objective_figure(&m.p, o, loss);
    for (uint32_t g = 7; g < 10; g++) {
        double gain[60], p[60], fastest = INFINITY;
        size_t n = 0;
        for (size_t i = 0; i < m.n; i++)
            if (m.group[i] == g) fastest = fmin(fastest, m.log_s[i]);
        for (size_t i = 0; i < m.n; i++)
            if (m.group[i] == g)
                gain[n] = exp2(exp(fastest - m.log_s[i])) - 1, p[n++] = m.p.r[i] + m.log_s[i];
        want += (double)n / 60 * (1 - ndcg(gain, p, n));
    }
    assert_close(figure, want, 1e-12, 0);
    assert_true(cd_objective_figure(&m.p, &specs[CD_OBJECTIVE_RANK], 3) == 3);
    cd_objective_end(&m.p);
    make(&m, 3, 1);
    for (size_t i = 0; i < 3; i++) m.start[i + 1] = i + 1, m.offset[i] = 0, m.log_s[i] = (double)i;
    begin(&m, o, NULL);
    /* the last two are turned round, the others are far apart */
    m.score[0] = 0, m.score[1] = 8.25, m.score[2] = 8;
    const double before = gradient(&m, o), turned = cd_objective_figure(&m.p, o, before);
    m.score[0] = 0, m.score[1] = 0.25, m.score[2] = 0.5;
    const double after = gradient(&m, o), right = cd_objective_figure(&m.p, o, after);
    assert_true(after > before);
    assert_true(right < turned);
    assert_close(right, 0, 0, 1e-12);
    cd_objective_end(&m.p);
}

/* Two programs whose times to the power of the sharpness are 1 and 3: one wants the first place in
 * 3 of 4 cases. Where the scores say so, too, the loss is the entropy. */
TEST(listnet_by_hand) {
    static made m;
    const cd_objective_spec *o = &specs[LISTNET];
    make(&m, 3, 1);
    for (size_t i = 0; i < 3; i++) m.start[i + 1] = i + 1, m.offset[i] = m.score[i] = 0;
    m.n = 2;
    m.log_s[0] = log(3) / CD_OBJECTIVE_SHARP, m.log_s[1] = 0;
    begin(&m, o, NULL);
    assert_close(gradient(&m, o), log(2), 1e-9, 0);
    assert_close((double)m.grad[0], 2 * (0.25 - 0.5), 0, 0x1p-20);
    assert_close((double)m.grad[1], 2 * (0.75 - 0.5), 0, 0x1p-20);
    assert_close((double)m.hess[0], 0.5, 0, 0x1p-20);
    m.offset[0] = log(3);
    assert_close(gradient(&m, o), 0.25 * log(4) + 0.75 * log(4.0 / 3), 1e-9, 0);
    assert_close((double)m.grad[0], 0, 0, 0x1p-20);
    assert_close((double)m.hess[1], 2 * 0.75 * 0.25, 0, 0x1p-20);
    cd_objective_end(&m.p);
}

/* Programs in another order: the same gradients, bit for bit, ties of latency in small tasks
 * included. Every fifth score is one of few. */
TEST(order_is_nothing) {
    static made a, b;
    size_t to[MAX];
    for (int o = 1; o < N_SPEC; o++)
        for (int large = 0; large < 2; large++) {
            make(&a, large ? MAX : 160, large ? 3 : 16);
            for (size_t i = 0; i < a.n && !large; i++) a.log_s[i] = rint(2 * a.log_s[i]) / 2;
            for (size_t i = 0; i < a.n; i += 5)
                for (size_t k = a.start[i]; k < a.start[i + 1]; k++)
                    a.offset[k] = -8, a.score[k] = 0;
            /* of one task: some are equal in both */
            for (size_t i = 0; i < 80 && !large; i += 5) a.log_s[i + 80] = a.log_s[i];
            b = (made){.n = a.n};
            for (size_t i = 0; i < a.n; i++) {
                const size_t q = to[i] = (i * 77 + 13) % a.n;
                b.log_s[i] = a.log_s[q], b.group[i] = a.group[q];
                b.start[i + 1] = b.start[i];
                for (size_t k = a.start[q]; k < a.start[q + 1]; k++, b.start[i + 1]++)
                    b.offset[b.start[i + 1]] = a.offset[k], b.score[b.start[i + 1]] = a.score[k];
            }
            begin(&a, &specs[o], NULL);
            begin(&b, &specs[o], NULL);
            assert_close(gradient(&a, &specs[o]), gradient(&b, &specs[o]), 1e-12, 0);
            for (size_t i = 0; i < a.n; i++)
                for (size_t k = 0; k < b.start[i + 1] - b.start[i]; k++) {
                    assert_true(a.grad[a.start[to[i]] + k] == b.grad[b.start[i] + k]);
                    assert_true(a.hess[a.start[to[i]] + k] == b.hess[b.start[i] + k]);
                }
            cd_objective_end(&a.p);
            cd_objective_end(&b.p);
        }
}

/* The fastest of a task counts 1; the validation part knows the train part's, not the reverse. */
TEST(throughput_is_of_the_task) {
    static made a, b;
    const cd_objective_spec *o = &specs[CD_OBJECTIVE_PACK_SUM];
    make(&a, 3, 1);
    make(&b, 4, 2); /* tasks 8, 7, 8, 7; that of a is 7 */
    a.log_s[0] = log(4e-3), a.log_s[1] = log(1e-3), a.log_s[2] = log(2e-3);
    b.log_s[0] = log(5e-3), b.log_s[1] = log(2e-3), b.log_s[2] = log(1e-2), b.log_s[3] = log(8e-3);
    begin(&a, o, NULL);
    begin(&b, o, &a);
    const double ya[3] = {0.25, 1, 0.5}, yb[4] = {1, 0.5, 0.5, 0.125};
    for (int i = 0; i < 3; i++) assert_close(a.p.y[i], ya[i], 1e-12, 0);
    for (int i = 0; i < 4; i++) assert_close(b.p.y[i], yb[i], 1e-12, 0);
    cd_objective_end(&a.p);
    cd_objective_end(&b.p);
}

/* Known seconds come back, and faster stays faster. */
TEST(map_finds_seconds) {
    static made m;
    double level[MAX], scale, shift;
    for (int o = 1; o < 3; o++) {
        make(&m, 200, 10);
        begin(&m, &specs[o], NULL);
        gradient(&m, &specs[o]);
        for (size_t i = 0; i < m.n; i++) {
            const double p =
                o == CD_OBJECTIVE_PACK_SUM ? m.p.r[i] + m.p.y[i] : m.p.r[i] + m.log_s[i];
            level[i] = -9 + unit(5, i);
            m.log_s[i] = cd_objective_answer((cd_objective_kind)o, p, level[i], 0.7, -0.4);
            if (o == CD_OBJECTIVE_RANK) m.p.r[i] = p - m.log_s[i];
        }
        cd_objective_map(&m.p, (cd_objective_kind)o, level, &scale, &shift);
        assert_close(scale, 0.7, 1e-9, 0);
        assert_close(shift, -0.4, 1e-8, 0);
        cd_objective_end(&m.p);
    }
    for (int k = -300; k < 300; k++) { /* also where a score is below 0 */
        assert_true(cd_objective_answer(CD_OBJECTIVE_PACK_SUM, 0.01 * (k + 1), -5, 1, 0) <
                    cd_objective_answer(CD_OBJECTIVE_PACK_SUM, 0.01 * k, -5, 1, 0));
        assert_true(cd_objective_answer(CD_OBJECTIVE_RANK, 0.01 * (k + 1), -5, 1, 0) >
                    cd_objective_answer(CD_OBJECTIVE_RANK, 0.01 * k, -5, 1, 0));
    }
}

TEST(pairs_are_needed) {
    static made m;
    for (int o = 1; o < N_SPEC; o++)
        for (int equal = 0; equal < 2; equal++) {
            cdmpp_err err = {0};
            make(&m, 20, equal ? 10 : 20);
            for (size_t i = 0; i < 20 && equal; i++) m.log_s[i] = -3;
            m.p = (cd_objective_part){
                .n = m.n, .start = m.start, .offset = m.offset, .log_s = m.log_s, .group = m.group};
            assert_status(cd_objective_begin(&m.p, &specs[o], NULL, &err), CDMPP_ERANGE);
            cd_objective_end(&m.p);
        }
}

/* asinh(1) = ln(1 + sqrt 2) */
TEST(answers_by_hand) {
    const double bend = log(1 + sqrt(2));
    assert_close(cd_objective_answer(CD_OBJECTIVE_PACK_SUM, 2 * CD_OBJECTIVE_KNEE, -3, 0.5, 0.25),
                 -3 + 0.25 - 0.5 * bend, 1e-12, 0);
    assert_close(cd_objective_answer(CD_OBJECTIVE_PACK_SUM, -2 * CD_OBJECTIVE_KNEE, -3, 0.5, 0.25),
                 -3 + 0.25 + 0.5 * bend, 1e-12, 0);
    assert_close(cd_objective_answer(CD_OBJECTIVE_PACK_SUM, 0, -3, 0.5, 0.25), -2.75, 1e-12, 0);
    assert_close(cd_objective_answer(CD_OBJECTIVE_RANK, 6, -3, 0.5, 0.25), 3.25, 1e-12, 0);
    assert_true(cd_objective_answer(CD_OBJECTIVE_LOG_LATENCY, 6, -3, 0.5, 0.25) == 6);
}

TESTS(NULL, NULL, answers_by_hand, gradients_are_derivatives, hessians_are_derivatives,
      weights_are_copies, rank_is_pairs, lambdarank_is_ndcg, lambdarank_of_a_constant,
      rounds_are_compared_by_ndcg, listnet_by_hand, order_is_nothing, throughput_is_of_the_task,
      map_finds_seconds, pairs_are_needed)
