/* Several ranks, here threads, train one network: the same everywhere, and in slices the
 * same bits as alone. */
#include "learner/fit/fit.h"

#include "check.h"

#include <pthread.h>
#include <string.h>

#include "made_fit.h"

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
    cd_fit_result f;
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
    const cd_fit_run run = {.allreduce = all_add,
                            .allreduce_ctx = me,
                            .rank = me->rank,
                            .n_rank = RANKS,
                            .tick = tick_of,
                            .ctx = me};
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
        /* Adam would turn the rounding of tiny gradients into steps */
        spec.optim = cd_optim_spec_of(CD_OPTIM_SGD);
        spec.optim.clip = 1;
        spec.lrate = cd_learning_rate_of(CD_LEARNING_RATE_CONSTANT, 0.05);
        run_ranks(&spec, me, 0);
        cd_fit_result one = made_run(&spec, &parts, NULL, NULL);
        for (size_t r = 0; r < RANKS; r++) {
            assert_int_equal(me[r].st, CDMPP_OK);
            assert_same_fit(&me[r].f, &me[0].f);
        }
        size_t n;
        const float *a = made_values(&one, &n), *b = made_values(&me[0].f, &n);
        for (size_t i = 0; i < n / sizeof *a; i++)
            assert_close((double)a[i], (double)b[i], 1e-4, 2e-6);
        for (size_t i = 0; i < one.n_eval; i++) {
            assert_close(one.eval_train[i], me[0].f.eval_train[i], 1e-5, 0);
            assert_close(one.eval_valid[i], me[0].f.eval_valid[i], 1e-4, 0);
        }
        for (size_t r = 0; r < RANKS; r++) cd_fit_result_free(&me[r].f);
        cd_fit_result_free(&one);
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
        cd_fit_result one = made_run(&spec, &parts, NULL, NULL);
        for (size_t r = 0; r < RANKS; r++) {
            assert_int_equal(me[r].st, CDMPP_OK);
            assert_same_fit(&me[r].f, &one);
            cd_fit_result_free(&me[r].f);
        }
        cd_fit_result_free(&one);
    }
}

static void ranks_stop_together(void **s) {
    (void)s;
    member me[RANKS];
    const cd_fit_spec spec = made_spec(CD_NET_MLP);
    run_ranks(&spec, me, 3);
    for (size_t r = 0; r < RANKS; r++) assert_int_equal(me[r].st, CDMPP_EINTERRUPTED);
}

static void refused_with_ranks(void **s) {
    (void)s;
    cdmpp_err err = {0};
    cd_fit_result f;
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

TESTS(made_fit, NULL, ranks_add_up, slices_decide, ranks_stop_together, refused_with_ranks)
