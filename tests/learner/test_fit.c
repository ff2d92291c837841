/* Training on made-up programs: it learns, the same bits in every way it may be run,
 * and what the header promises about the parts of a data set. */
#include "learner/fit.h"

#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learner/fit_int.h"
#include "made_fit.h"

static double mape(const cd_fitted *f, const uint32_t *index, size_t n) {
    cdmpp_err err = {0};
    const size_t n_out = (size_t)cd_net_spec_of(f->net)->n_out;
    float out[N * 3];
    double sum = 0;
    assert_ok(cd_fit_outputs(f->net, &f->scalers, &made.view, index, n, device, 2, 50, NULL, out, &err));
    for (size_t i = 0; i < n; i++) sum += fabs(cd_transform_inverse(&f->transform, (double)out[i * n_out]) / made.latency_s[index[i]] - 1);
    return sum / (double)n;
}

/* ---- learning ---- */
static void learns(void **s) {
    (void)s;
    for (int kind = 0; kind < 3; kind++) {
        cd_fit_spec spec = made_spec((cd_net_kind)kind);
        spec.max_epochs = kind == CD_NET_MLP ? 60 : 40;
        cd_fitted f = made_run(&spec, &parts, NULL, NULL);
        if (kind != CD_NET_MLP) assert_true(f.best < 0.25);
        else assert_true(f.best < 0.45); /* sees totals only */
        assert_close(f.best, mape(&f, parts.valid, parts.n_valid), 1e-6, 0); /* it is what the figure says */
        assert_true(f.eval_train[f.n_eval - 1] < 0.3 * f.eval_train[0]);
        assert_int_equal(f.steps, (uint64_t)spec.max_epochs * 8);
        assert_int_equal(f.n_eval, (size_t)spec.max_epochs);
        cd_fitted_free(&f);
    }
}

static void seconds_add_up(void **s) { /* head sum on labels that are sums */
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_TSF);
    spec.net.head = CD_HEAD_SUM;
    spec.max_epochs = 40;
    cd_fitted f = made_run(&spec, &parts, NULL, NULL);
    assert_close(cd_net_spec_of(f.net)->temperature, f.transform.std, 0, 0);
    assert_true(f.best < 0.25);
    cd_fitted_free(&f);
    cdmpp_err err = {0};
    const cd_fit_run run = {0};
    spec.transform = CD_TRANSFORM_BOX_COX;
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "transform");
}

/* A network that is given iterations is about seconds, whatever its head. */
static void iterations(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_LSTM);
    cdmpp_err err = {0};
    cd_fitted f = made_run(&spec, &parts, NULL, NULL);
    assert_true(cd_net_spec_of(f.net)->trips);
    assert_close(cd_net_spec_of(f.net)->temperature, f.transform.std, 0, 0);
    cd_fitted_free(&f);
    spec.transform = CD_TRANSFORM_BOX_COX;
    assert_status(cd_fit(&spec, &parts, NULL, &(cd_fit_run){0}, &f, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "transform");
    spec.net.trips = false;
    f = made_run(&spec, &parts, NULL, NULL);
    cd_fitted_free(&f);
}

/* Every loss and transform runs and makes its own loss smaller. */
static void every_loss(void **s) {
    (void)s;
    static const char *const loss[] = {"1000mse+1mape", "1mape_s", "1nll", "1huber_log+0.1rank", "1lambdarank+1mse_log", "1listnet+1mae",
                                       "1pinball+1nll"};
    const double q[] = {0.9};
    for (size_t k = 0; k < sizeof loss / sizeof loss[0]; k++) {
        cd_fit_spec spec = made_spec(CD_NET_MLP);
        spec.loss = loss[k];
        spec.quantile = q;
        spec.n_quantile = 1;
        spec.transform = (cd_transform_kind)(1 + k);
        spec.figure = (cd_fit_figure)(k % 3);
        spec.max_epochs = 12;
        spec.optim.kind = k % 2 ? CD_OPTIM_ADAM : CD_OPTIM_ADAMW;
        cd_fitted f = made_run(&spec, &parts, NULL, NULL);
        if (!(f.eval_train[f.n_eval - 1] < f.eval_train[0]))
            fail_msg("%s: loss %g, then %g", loss[k], f.eval_train[0], f.eval_train[f.n_eval - 1]);
        assert_int_equal(cd_net_spec_of(f.net)->n_out, cd_penalty_width(&f.penalty));
        cd_fitted_free(&f);
    }
}

/* ---- the same bits ---- */
static void any_pool(void **s) {
    (void)s;
    cdmpp_err err = {0};
    for (int kind = 0; kind < 2; kind++) {
        const cd_fit_spec spec = made_spec((cd_net_kind)kind);
        cd_threads *pool;
        assert_ok(cd_threads_new(3, &pool, &err));
        const cd_fit_run run = {.pool = pool};
        cd_fitted a = made_run(&spec, &parts, NULL, NULL), b = made_run(&spec, &parts, NULL, &run);
        assert_same_fit(&a, &b);
        cd_fitted_free(&a);
        cd_fitted_free(&b);
        cd_threads_free(pool);
    }
}

static void seed_matters(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    cd_fitted a = made_run(&spec, &parts, NULL, NULL);
    spec.seed++;
    cd_fitted b = made_run(&spec, &parts, NULL, NULL);
    size_t n;
    const float *x = made_values(&a, &n), *y = made_values(&b, &n);
    assert_memory_not_equal(x, y, n);
    cd_fitted_free(&a);
    cd_fitted_free(&b);
}

/* ---- parts ---- */
/* What lies outside the lists cannot matter; validation decides, but teaches nothing. */
static void only_the_train_part_teaches(void **s) {
    (void)s;
    static made_view other;
    other = made;
    other.view.row = other.row;
    cd_fit_spec spec = made_spec(CD_NET_TSF);
    cd_fit_data d = parts;
    spec.ema = 0;
    d.n_valid = 40;
    cd_fitted a = made_run(&spec, &d, NULL, NULL);
    double keep[N];
    memcpy(keep, made.latency_s, sizeof keep);
    for (size_t i = TRAIN + 40; i < N; i++) made.latency_s[index_of[i]] = -1; /* the test part: never looked at */
    cd_fitted b = made_run(&spec, &d, NULL, NULL);
    assert_same_fit(&a, &b);
    for (size_t i = TRAIN; i < TRAIN + 40; i++) made.latency_s[index_of[i]] *= 3;
    cd_fitted c = made_run(&spec, &d, NULL, NULL); /* other figures, the same train losses */
    memcpy(made.latency_s, keep, sizeof keep);
    assert_memory_equal(a.eval_train, c.eval_train, a.n_eval * sizeof(double));
    assert_true(a.best < c.best || a.best > c.best);
    cd_fitted_free(&a);
    cd_fitted_free(&b);
    cd_fitted_free(&c);
}

static void without_validation(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    cd_fit_data d = parts;
    d.n_valid = 0;
    spec.max_epochs = 0;
    spec.max_steps = 13;
    cd_fitted f = made_run(&spec, &d, NULL, NULL);
    assert_int_equal(f.steps, 13);
    assert_int_equal(f.best_step, 13);
    assert_true(isnan(f.best));
    cd_fitted_free(&f);
}

static void early_stop(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    spec.max_epochs = 500;
    spec.patience = 5;
    spec.lrate = cd_lrate_of(CD_LRATE_CONSTANT, 0.02);
    spec.ema = 0;
    cd_fitted f = made_run(&spec, &parts, NULL, NULL);
    assert_true(f.steps < 500 * 8);
    assert_int_equal(f.steps - f.best_step, 5 * 8);
    for (size_t i = 0; i < f.n_eval; i++) assert_true(f.eval_valid[i] >= f.best);
    assert_close(mape(&f, parts.valid, parts.n_valid), f.best, 1e-6, 0); /* the best one, not the last */
    cd_fitted_free(&f);
}

static void weights_matter(void **s) { /* a weight of (nearly) 0 is as good as not being there */
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    cd_fit_data d = parts;
    static float w[N];
    for (int i = 0; i < N; i++) w[i] = made.device[i] ? 1e-6f : 1;
    spec.max_epochs = 40;
    d.weight = w;
    cd_fitted a = made_run(&spec, &d, NULL, NULL), b = made_run(&spec, &parts, NULL, NULL);
    uint32_t zero[N], one[N];
    size_t n0 = 0, n1 = 0;
    for (uint32_t i = 0; i < TRAIN; i++) {
        if (made.device[index_of[i]]) one[n1++] = index_of[i];
        else zero[n0++] = index_of[i];
    }
    assert_true(mape(&a, one, n1) > 2 * mape(&b, one, n1));
    assert_true(mape(&a, zero, n0) < mape(&a, one, n1));
    cd_fitted_free(&a);
    cd_fitted_free(&b);
}

/* ---- order of an epoch ---- */
static void every_program_once(void **s) {
    (void)s;
    static uint32_t order[TRAIN], tmp[TRAIN], p[2][64], g[2][64], last[TRAIN];
    static size_t sort[3 * TRAIN];
    static double z[N], ls[N], pz[2][64], pl[2][64];
    static float w[2][64];
    const cd_fit_run run = {0};
    for (int ranks = 0; ranks < 2; ranks++) {
        cdmpp_err err = {0};
        cd_fit_spec spec = made_spec(CD_NET_MLP);
        spec.batch = 50; /* 240 programs: 5 batches of 48 */
        spec.slice = 7;
        cd_fitting f = {.spec = &spec, .data = &parts, .run = &run, .n_rank = 1, .n_slice = 1, .per_epoch = 5, .order = order, .tmp = tmp, .sort = sort,
                        .z = z, .log_s = ls, .whole = {0, p[0], pz[0], pl[0], w[0], g[0]}, .own = {0, p[1], pz[1], pl[1], w[1], g[1]}};
        assert_ok(cd_penalty_parse(ranks ? "1rank" : "1mse", NULL, 0, &f.penalty, &err));
        size_t same_group = 0, moved = 0;
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            int seen[N] = {0};
            size_t at = 0;
            for (int b = 0; b < 5; b++, f.step++) {
                cd_fit_draw(&f);
                cd_fit_cut(&f, 0);
                assert_int_equal(f.own.n, 48);
                for (size_t i = 0; i < f.own.n; i++, at++) {
                    seen[f.own.program[i]]++;
                    moved += f.own.program[i] != last[at];
                    last[at] = f.own.program[i];
                    if (i) same_group += f.own.group[i] == f.own.group[i - 1];
                }
            }
            for (int i = 0; i < TRAIN; i++) assert_int_equal(seen[index_of[i]], 1);
        }
        assert_true(moved > 3 * TRAIN * 9 / 10);        /* other neighbours every time */
        if (ranks) assert_true(same_group > 3 * TRAIN / 2); /* slices of 7 of 18 groups */
        else assert_true(same_group < 3 * TRAIN / 6);
    }
}

static void shuffles_evenly(void **s) {
    (void)s;
    int count[6][6] = {{0}};
    for (uint64_t key = 0; key < 6000; key++) {
        uint32_t v[6] = {0, 1, 2, 3, 4, 5};
        cd_fit_shuffle(v, 6, key);
        for (int i = 0; i < 6; i++) count[i][v[i]]++;
    }
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++) assert_true(abs(count[i][k] - 1000) < 150); /* 5 standard deviations */
}

/* ---- fine-tuning ---- */
static void fine_tuning(void **s) {
    (void)s;
    cd_fit_spec spec = made_spec(CD_NET_TSF);
    spec.max_epochs = 15;
    cd_fitted base = made_run(&spec, &parts, NULL, NULL);
    const cd_fit_start start = {base.net, &base.scalers, &base.transform};
    cd_fit_data d = parts; /* half of the train part, on its own scalers if they were fitted again */
    d.n_train = TRAIN / 2;
    spec.lrate = cd_lrate_of(CD_LRATE_CONSTANT, 1e-3);
    spec.freeze_encoder = true;
    spec.ema = 0;
    spec.seed = 99;
    spec.max_epochs = 0;
    spec.max_steps = 20;
    cd_fitted f = made_run(&spec, &d, &start, NULL);
    assert_memory_equal(base.scalers.tok.shift, f.scalers.tok.shift, f.scalers.tok.n * sizeof(float));
    assert_memory_equal(base.scalers.prog.scale, f.scalers.prog.scale, f.scalers.prog.n * sizeof(float));
    assert_true(base.scalers.trips.shift[0] != 0 && base.scalers.trips.shift[0] == f.scalers.trips.shift[0]);
    assert_memory_equal(&base.transform, &f.transform, sizeof f.transform);
    const cd_params *a = cd_net_params_of(base.net), *b = cd_net_params_of(f.net);
    size_t moved = 0;
    for (size_t i = 0; i < a->n; i++) {
        const cd_param *p = &a->param[i];
        const bool same = memcmp(cd_params_value(a, i), cd_params_value(b, i), p->n * sizeof(float)) == 0;
        if (!strncmp(p->name, "encoder.", 8) || !strncmp(p->name, "projection.", 11)) assert_true(same);
        else moved += !same;
    }
    assert_true(moved > 5);
    assert_true(f.eval_train[0] < base.eval_train[0] / 2); /* it did not begin at the beginning */
    cd_fitted_free(&f);

    cdmpp_err err = {0};
    const cd_fit_run run = {0};
    spec.loss = "1nll";
    assert_status(cd_fit(&spec, &d, &start, &run, &f, &err), CDMPP_EMODEL);
    spec.loss = "1mse";
    d.w_dev = 2;
    assert_status(cd_fit(&spec, &d, &start, &run, &f, &err), CDMPP_EMODEL);
    cd_fitted_free(&base);
}

/* ---- target domain ---- */
static void domains(void **s) {
    (void)s;
    static made_view shifted;
    made_view_fill(&shifted, N, 1, 2);
    uint32_t source[N], target[N];
    size_t n = 0, m = 0;
    for (uint32_t i = 0; i < N; i++) {
        if (shifted.device[i]) target[m++] = i;
        else source[n++] = i;
    }
    cd_fit_data d = {.view = &shifted.view, .latency_s = shifted.latency_s, .train = source, .n_train = n - 30, .valid = source + n - 30,
                     .n_valid = 30, .target = target, .n_target = m, .device = device, .n_device = 2, .w_dev = 3};
    double after[3];
    for (int k = 0; k < 3; k++) {
        static const char *const loss[] = {"1huber_log", "1huber_log+1cmd", "1huber_log+5mmd"};
        cdmpp_err err = {0};
        cd_fit_spec spec = made_spec(CD_NET_TSF);
        spec.loss = loss[k];
        spec.net.device = false;
        spec.net.program = false;
        spec.target_batch = 48;
        spec.max_epochs = 15;
        cd_threads *pool;
        assert_ok(cd_threads_new(2, &pool, &err));
        const cd_fit_run run = {.pool = pool};
        cd_fitted f = made_run(&spec, &d, NULL, NULL), g = made_run(&spec, &d, NULL, &run);
        assert_same_fit(&f, &g);
        /* distance of the latents of both domains afterwards */
        cd_batch_dims dims;
        cd_batch b = {0};
        cd_net_state *state;
        cd_domain *dom;
        static float latent[2][N * 64], out[N];
        const cd_batch_spec bs = cd_net_batch_spec(cd_net_spec_of(f.net), device, 2);
        assert_ok(cd_batch_bound(&shifted.view, NULL, N, N, &dims, &err));
        assert_ok(cd_batch_init(&b, &bs, &dims, &err));
        assert_ok(cd_net_state_new(f.net, &dims, 1, false, &state, &err));
        assert_ok(cd_batch_fill(&b, &bs, &f.scalers, &shifted.view, source, n, &err));
        assert_ok(cd_net_predict(f.net, &b, state, NULL, out, latent[0], &err));
        assert_ok(cd_batch_fill(&b, &bs, &f.scalers, &shifted.view, target, m, &err));
        assert_ok(cd_net_predict(f.net, &b, state, NULL, out, latent[1], &err));
        assert_ok(cd_domain_new(N, cd_net_n_latent(f.net), 1, &dom, &err));
        const double size = cd_domain_cmd(dom, NULL, latent[0], n, latent[1], m, 1, NULL, NULL);
        after[k] = size;
        cd_domain_free(dom);
        cd_net_state_free(state);
        cd_batch_free(&b);
        cd_fitted_free(&f);
        cd_fitted_free(&g);
        cd_threads_free(pool);
    }
    assert_true(after[1] < 0.7 * after[0]);
    assert_true(after[2] < 0.9 * after[0]);
}

/* ---- several ranks ---- */
enum { RANKS = 3 };
typedef struct {
    pthread_barrier_t barrier;
    float *v[RANKS], *sum;
    size_t n_row[RANKS];
} meeting;

typedef struct {
    meeting *m;
    size_t rank;
    const cd_fit_spec *spec;
    cd_fitted f;
    cdmpp_status st;
    cdmpp_err err;
    uint64_t stop_at;
} member;

static cdmpp_status all_add(void *ctx, float *v, size_t n_row, size_t n, cdmpp_err *err) {
    member *me = ctx;
    meeting *m = me->m;
    (void)err;
    m->v[me->rank] = v;
    m->n_row[me->rank] = n_row;
    pthread_barrier_wait(&m->barrier);
    if (me->rank == 0)
        for (size_t i = 0; i < n; i++) {
            m->sum[i] = m->v[0][i];
            for (size_t r = 0; r < RANKS; r++)
                for (size_t k = r == 0; k < m->n_row[r]; k++) m->sum[i] += m->v[r][k * n + i];
        }
    pthread_barrier_wait(&m->barrier);
    memcpy(v, m->sum, n * sizeof *v);
    pthread_barrier_wait(&m->barrier);
    return CDMPP_OK;
}

static bool tick_of(void *ctx, const cd_fit_progress *p) {
    const member *me = ctx;
    return !me->stop_at || p->step < me->stop_at;
}

static void *work(void *arg) {
    member *me = arg;
    const cd_fit_run run = {.allreduce = all_add, .allreduce_ctx = me, .rank = me->rank, .n_rank = RANKS, .tick = tick_of, .ctx = me};
    me->st = cd_fit(me->spec, &parts, NULL, &run, &me->f, &me->err);
    return NULL;
}

static void run_ranks(const cd_fit_spec *spec, member *me, uint64_t stop_at) {
    static float sum[1 << 20];
    meeting m = {.sum = sum};
    pthread_t t[RANKS];
    pthread_barrier_init(&m.barrier, NULL, RANKS);
    for (size_t r = 0; r < RANKS; r++) {
        me[r] = (member){.m = &m, .rank = r, .spec = spec, .stop_at = r == 1 ? stop_at : 0};
        assert_int_equal(pthread_create(&t[r], NULL, work, &me[r]), 0);
    }
    for (size_t r = 0; r < RANKS; r++) pthread_join(t[r], NULL);
    pthread_barrier_destroy(&m.barrier);
}

static void ranks_add_up(void **s) {
    (void)s;
    static const char *const loss[] = {"1huber_log", "1mse+1rank+1listnet"};
    for (int k = 0; k < 2; k++) {
        member me[RANKS];
        cd_fit_spec spec = made_spec(CD_NET_TSF);
        spec.loss = loss[k];
        spec.net.dropout = spec.net.dropout_mlp = 0;
        spec.max_epochs = 0;
        spec.max_steps = 6;
        spec.eval_every = 1;
        spec.optim = cd_optim_spec_of(CD_OPTIM_SGD); /* Adam would turn the rounding of tiny gradients into steps */
        spec.optim.clip = 1;
        spec.lrate = cd_lrate_of(CD_LRATE_CONSTANT, 0.05);
        run_ranks(&spec, me, 0);
        cd_fitted one = made_run(&spec, &parts, NULL, NULL);
        for (size_t r = 0; r < RANKS; r++) {
            assert_int_equal(me[r].st, CDMPP_OK);
            assert_same_fit(&me[r].f, &me[0].f);
        }
        size_t n;
        const float *a = made_values(&one, &n), *b = made_values(&me[0].f, &n);
        for (size_t i = 0; i < n / sizeof *a; i++) assert_close((double)a[i], (double)b[i], 1e-4, 2e-6);
        for (size_t i = 0; i < one.n_eval; i++) {
            assert_close(one.eval_train[i], me[0].f.eval_train[i], 1e-5, 0);
            assert_close(one.eval_valid[i], me[0].f.eval_valid[i], 1e-4, 0);
        }
        for (size_t r = 0; r < RANKS; r++) cd_fitted_free(&me[r].f);
        cd_fitted_free(&one);
    }
}

/* The number of slices decides the bits, the number of ranks does not: dropout, AdamW,
 * moving average and all. */
static void slices_decide(void **s) {
    (void)s;
    static const char *const loss[] = {"1huber_log", "1mse+1rank"};
    for (int k = 0; k < 2; k++) {
        member me[RANKS];
        cd_fit_spec spec = made_spec(k ? CD_NET_MLP : CD_NET_TSF);
        spec.loss = loss[k];
        spec.net.dropout = spec.net.dropout_mlp = 0.1;
        spec.slices = 8;
        spec.max_epochs = 0;
        spec.max_steps = 12;
        spec.eval_every = 4;
        run_ranks(&spec, me, 0);
        cd_fitted one = made_run(&spec, &parts, NULL, NULL);
        for (size_t r = 0; r < RANKS; r++) {
            assert_int_equal(me[r].st, CDMPP_OK);
            assert_same_fit(&me[r].f, &one);
            cd_fitted_free(&me[r].f);
        }
        cd_fitted_free(&one);
    }
}

static void ranks_stop_together(void **s) {
    (void)s;
    member me[RANKS];
    const cd_fit_spec spec = made_spec(CD_NET_MLP);
    run_ranks(&spec, me, 3);
    for (size_t r = 0; r < RANKS; r++) assert_int_equal(me[r].st, CDMPP_EINTERRUPTED);
}

/* ---- refused ---- */
static void not_finite(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_fitted f;
    const cd_fit_run run = {0};
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    spec.loss = "1mse";
    spec.optim = cd_optim_spec_of(CD_OPTIM_SGD);
    spec.lrate = cd_lrate_of(CD_LRATE_CONSTANT, 1000);
    spec.net.norm = CD_NORM_NONE;
    spec.max_epochs = 50;
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_ENUMERIC);
    assert_non_null(strstr(err.msg, "step "));
    assert_non_null(strstr(err.msg, "batch "));
    assert_null(f.net);
}

static void refused(void **s) {
    (void)s;
    static const struct {
        const char *key;
        cdmpp_status st;
    } want[] = {
        {"batch", CDMPP_ERANGE},    {"max_steps", CDMPP_ERANGE}, {"ema", CDMPP_ERANGE},   {"loss", CDMPP_ESCHEMA},
        {"loss", CDMPP_ESCHEMA},    {"loss", CDMPP_ESCHEMA},     {"train", CDMPP_ESCHEMA}, {"train", CDMPP_EMODEL},
        {"valid", CDMPP_ENUMERIC},  {"train", CDMPP_ENUMERIC},   {"freeze_encoder", CDMPP_ERANGE},
        {"lrate.lr", CDMPP_ERANGE}, {"optim.clip", CDMPP_ERANGE},
    };
    for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
        cdmpp_err err = {0};
        cd_fitted f;
        cd_fit_spec spec = made_spec(CD_NET_MLP);
        cd_fit_data d = parts;
        const cd_fit_run run = {0};
        const uint32_t far[] = {1, N};
        static double y[N];
        static float w[N];
        memcpy(y, made.latency_s, sizeof y);
        if (k == 0) spec.batch = 0;
        if (k == 1) spec.max_epochs = spec.max_steps = 0;
        if (k == 2) spec.ema = 1;
        if (k == 3) spec.loss = "1mes";
        if (k == 4) spec.loss = "1mse+1rank", d.group = NULL;
        if (k == 5) spec.loss = "1mse+1cmd";
        if (k == 6) d.n_train = 0;
        if (k == 7) d.train = far, d.n_train = 2;
        if (k == 8) y[parts.valid[3]] = 0, d.latency_s = y;
        if (k == 9) d.weight = w;
        if (k == 10) spec.freeze_encoder = true;
        if (k == 11) spec.lrate.lr = 0;
        if (k == 12) spec.optim.clip = -1;
        const cdmpp_status st = cd_fit(&spec, &d, NULL, &run, &f, &err);
        if (st != want[k].st || strcmp(err.key, want[k].key) != 0) fail_msg("case %zu: %d %s: %s", k, (int)st, err.key, err.msg);
        assert_null(f.net);
    }
}

/* Programs that batches cannot show are found before the first step. */
static void not_to_be_shown(void **s) {
    (void)s;
    cdmpp_err err = {0}, err2 = {0};
    cd_fitted f;
    const cd_fit_run run = {0};
    const cd_fit_spec spec = made_spec(CD_NET_TSF);
    cd_view bare = made.view;
    cd_fit_data d = parts;
    const uint32_t far = made.device[parts.valid[5]];
    bare.leaf_ptr = NULL;
    d.view = &bare;
    assert_status(cd_fit(&spec, &d, NULL, &run, &f, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "train");
    made.device[parts.valid[5]] = 2;
    const cdmpp_status st = cd_fit(&spec, &parts, NULL, &run, &f, &err2);
    made.device[parts.valid[5]] = far;
    assert_int_equal(st, CDMPP_EMODEL);
    assert_string_equal(err2.key, "valid");
}

static void refused_with_ranks(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_fitted f;
    cd_fit_spec spec = made_spec(CD_NET_MLP);
    cd_fit_run run = {.n_rank = 2};
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_ESCHEMA);
    run.allreduce = all_add;
    run.rank = 2;
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_ERANGE);
    run.rank = 1;
    spec.net.norm = CD_NORM_BATCH;
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_EUNSUPPORTED);
}

static void out_of_memory(void **s) {
    (void)s;
#ifdef CD_FAULT
    static const char *const loss[] = {"1mse+1rank", "1mse+1cmd"};
    for (int l = 0; l < 2; l++) {
        cd_fit_spec spec = made_spec(CD_NET_TSF);
        cd_fit_data d = parts;
        const cd_fit_run run = {0};
        const long live = cd_mem_live();
        spec.loss = loss[l];
        spec.figure = CD_FIT_LOSS;
        spec.max_epochs = 0;
        spec.max_steps = 1;
        d.n_train = 40;
        d.n_valid = d.n_target = 10;
        d.target = parts.valid;
        cdmpp_status st = CDMPP_ENOMEM;
        for (long k = 0; st; k++) {
            cdmpp_err err = {0};
            cd_fitted f;
            cd_mem_fail_at(k);
            st = cd_fit(&spec, &d, NULL, &run, &f, &err);
            cd_mem_fail_at(-1);
            if (st) assert_int_equal(st, CDMPP_ENOMEM);
            else cd_fitted_free(&f);
            assert_int_equal(cd_mem_live(), live);
        }
    }
#else
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest t[] = {
        cmocka_unit_test(learns),          cmocka_unit_test(seconds_add_up), cmocka_unit_test(iterations),
        cmocka_unit_test(every_loss),      cmocka_unit_test(any_pool),
        cmocka_unit_test(seed_matters),    cmocka_unit_test(only_the_train_part_teaches),
        cmocka_unit_test(early_stop),      cmocka_unit_test(without_validation),
        cmocka_unit_test(weights_matter),  cmocka_unit_test(every_program_once),
        cmocka_unit_test(shuffles_evenly), cmocka_unit_test(fine_tuning),
        cmocka_unit_test(domains),         cmocka_unit_test(ranks_add_up),
        cmocka_unit_test(not_finite),      cmocka_unit_test(slices_decide), cmocka_unit_test(ranks_stop_together),
        cmocka_unit_test(refused),         cmocka_unit_test(refused_with_ranks),
        cmocka_unit_test(not_to_be_shown), cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(t, made_fit, NULL);
}
