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
    m->p = (cd_objective_part){.n = m->n, .start = m->start, .offset = m->offset, .log_s = m->log_s, .group = m->group};
    assert_ok(cd_objective_begin(&m->p, s, seen ? &seen->p : NULL, &err));
}

static double gradient(made *m, const cd_objective_spec *s) {
    const double loss = cd_objective_loss(&m->p, s, m->score);
    cd_objective_gradient(&m->p, s, m->grad, m->hess);
    return loss;
}

static const cd_objective_spec specs[] = {{CD_OBJECTIVE_LOG_LATENCY, CD_TREE_LOSS_SQUARED, 0.1},
                                          {CD_OBJECTIVE_PACK_SUM, CD_TREE_LOSS_HUBER, 0.1},
                                          {CD_OBJECTIVE_RANK, CD_TREE_LOSS_HUBER, 0.1}};

TEST(gradients_are_derivatives) {
    static made m;
    for (int o = 0; o < 3; o++)
        for (int size = 0; size < 2; size++) {
            make(&m, size ? 90 : 40, size ? 2 : 6); /* tasks of 45: not all pairs */
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

/* A weight counts like so many copies of the program: loss and gradient of programs that are there twice. */
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
                    if (m->group[i] != g || m->group[j] != g || !(m->log_s[i] < m->log_s[j])) continue;
                    const double d = m->p.r[i] + m->log_s[i] - m->p.r[j] - m->log_s[j];
                    if (!pass) sum += log1p(exp(d)), n_pair++;
                    else grad[i] += n / n_pair / (1 + exp(-d)), grad[j] -= n / n_pair / (1 + exp(-d));
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
        make(&m, large ? MAX : 100, large ? 2 : 7); /* 300 a task: about 60 distances instead of 299 */
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

/* Programs in another order: the same gradients, bit for bit, ties of latency in small tasks included. */
TEST(order_is_nothing) {
    static made a, b;
    size_t to[MAX];
    for (int o = 1; o < 3; o++)
        for (int large = 0; large < 2; large++) {
            make(&a, large ? MAX : 160, large ? 3 : 16);
            for (size_t i = 0; i < a.n && !large; i++) a.log_s[i] = rint(2 * a.log_s[i]) / 2;
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
            const double p = o == CD_OBJECTIVE_PACK_SUM ? m.p.r[i] + m.p.y[i] : m.p.r[i] + m.log_s[i];
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
        assert_true(cd_objective_answer(CD_OBJECTIVE_PACK_SUM, 0.01 * (k + 1), -5, 1, 0) < cd_objective_answer(CD_OBJECTIVE_PACK_SUM, 0.01 * k, -5, 1, 0));
        assert_true(cd_objective_answer(CD_OBJECTIVE_RANK, 0.01 * (k + 1), -5, 1, 0) > cd_objective_answer(CD_OBJECTIVE_RANK, 0.01 * k, -5, 1, 0));
    }
}

TEST(pairs_are_needed) {
    static made m;
    for (int o = 1; o < 3; o++)
        for (int equal = 0; equal < 2; equal++) {
            cdmpp_err err = {0};
            make(&m, 20, equal ? 10 : 20);
            for (size_t i = 0; i < 20 && equal; i++) m.log_s[i] = -3;
            m.p = (cd_objective_part){.n = m.n, .start = m.start, .offset = m.offset, .log_s = m.log_s, .group = m.group};
            assert_status(cd_objective_begin(&m.p, &specs[o], NULL, &err), CDMPP_ERANGE);
            cd_objective_end(&m.p);
        }
}

/* asinh(1) = ln(1 + sqrt 2) */
TEST(answers_by_hand) {
    const double bend = log(1 + sqrt(2));
    assert_close(cd_objective_answer(CD_OBJECTIVE_PACK_SUM, 2 * CD_OBJECTIVE_KNEE, -3, 0.5, 0.25), -3 + 0.25 - 0.5 * bend, 1e-12, 0);
    assert_close(cd_objective_answer(CD_OBJECTIVE_PACK_SUM, -2 * CD_OBJECTIVE_KNEE, -3, 0.5, 0.25), -3 + 0.25 + 0.5 * bend, 1e-12, 0);
    assert_close(cd_objective_answer(CD_OBJECTIVE_PACK_SUM, 0, -3, 0.5, 0.25), -2.75, 1e-12, 0);
    assert_close(cd_objective_answer(CD_OBJECTIVE_RANK, 6, -3, 0.5, 0.25), 3.25, 1e-12, 0);
    assert_true(cd_objective_answer(CD_OBJECTIVE_LOG_LATENCY, 6, -3, 0.5, 0.25) == 6);
}

TESTS(NULL, NULL, answers_by_hand, gradients_are_derivatives, weights_are_copies, rank_is_pairs, order_is_nothing, throughput_is_of_the_task, map_finds_seconds,
      pairs_are_needed)
