/* Threads for each of several operators that run at the same time. Few ways of sharing are all
 * tried; else one thread at a time is moved while that helps (Liu et al., IPDPS 2019). */
#include "predictor/partition/games/cotune.h"

#include <math.h>
#include <string.h>

void cd_cotune_free(cd_cotune *c) {
    cd_arena_free(&c->arena);
    *c = (cd_cotune){0};
}

typedef struct {
    uint32_t n, all, *now;
    cd_cotune_time *time;
    void *ctx;
    cd_cotune *out;
    cdmpp_err *err;
} tuner;

static cdmpp_status time_of(tuner *t, uint32_t op, double *s) {
    *s = t->time(op, t->now, t->n, t->ctx);
    return *s >= 0 ? CDMPP_OK
                   : CD_FAIL(t->err, ERANGE, "operator %u with %u threads: %g seconds", op,
                             t->now[op], *s);
}

/* Evaluates now[]: the slowest operator decides. The best assignment so far is kept. */
static cdmpp_status evaluate(tuner *t, double *most) {
    *most = 0;
    for (uint32_t k = 0; k < t->n; k++) {
        double s;
        CD_TRY(time_of(t, k, &s));
        *most = fmax(*most, s);
    }
    t->out->n_tried++;
    if (!(*most < t->out->together_s)) return CDMPP_OK;
    t->out->together_s = *most;
    memcpy(t->out->threads, t->now, t->n * sizeof *t->now);
    return CDMPP_OK;
}

/* One after the other, each with the number of threads that is best for it. */
static cdmpp_status sequential(tuner *t) {
    for (uint32_t k = 0; k < t->n; k++) {
        double least = (double)INFINITY, s;
        memset(t->now, 0, t->n * sizeof *t->now);
        for (uint32_t n = 1; n <= t->all; n++) {
            t->now[k] = n;
            CD_TRY(time_of(t, k, &s));
            least = fmin(least, s);
        }
        t->out->sequential_s += least;
    }
    return CDMPP_OK;
}

/* All ways to share: operator k takes 1 thread up to what the others leave. */
static cdmpp_status every(tuner *t, uint32_t k, uint32_t left) {
    double most;
    if (k == t->n) return evaluate(t, &most);
    for (uint32_t n = 1; n + (t->n - k - 1) <= left; n++) {
        t->now[k] = n;
        CD_TRY(every(t, k + 1, left - n));
    }
    return CDMPP_OK;
}

/* From equal shares: one thread from anybody to anybody, or to nobody, while that helps. */
static cdmpp_status climb(tuner *t) {
    for (bool better = true; better;) {
        const double was = t->out->together_s;
        double most;
        for (uint32_t a = 0; a < t->n; a++)
            for (uint32_t b = 0; b <= t->n; b++) {
                memcpy(t->now, t->out->threads, t->n * sizeof *t->now);
                if (a == b || t->now[a] < 2) continue;
                t->now[a]--;
                if (b < t->n) t->now[b]++;
                CD_TRY(evaluate(t, &most));
            }
        better = t->out->together_s < was;
    }
    return CDMPP_OK;
}

/* Ways to give n operators at least one thread each out of `all`, or to leave some idle: C(all,
 * n). */
static double ways(uint32_t all, uint32_t n) {
    double w = 1;
    for (uint32_t i = 1; i <= n && w < 1e12; i++) w = w * (all - n + i) / i;
    return w;
}

static cdmpp_status tune(tuner *t) {
    cd_cotune *out = t->out;
    out->together_s = (double)INFINITY, out->equal_s = (double)NAN;
    CD_TRY(sequential(t));
    if (t->all < t->n) return out->exact = true, CDMPP_OK;
    for (uint32_t k = 0; k < t->n; k++)
        t->now[k] = out->threads[k] = t->all / t->n + (k < t->all % t->n);
    CD_TRY(evaluate(t, &out->equal_s));
    out->exact = t->n <= 64 && ways(t->all, t->n) <= 1e5;
    CD_TRY(out->exact ? every(t, 0, t->all) : climb(t));
    out->accepted = out->together_s < out->sequential_s * (1 - 1e-12);
    return CDMPP_OK;
}

cdmpp_status cd_cotune_search(uint32_t n_op, uint32_t threads, cd_cotune_time *time, void *ctx,
                              cd_cotune *out, cdmpp_err *err) {
    cd_arena own = {0};
    *out = (cd_cotune){0};
    if (!n_op || !threads) return CD_FAIL(err, ERANGE, "%u operators, %u threads", n_op, threads);
    tuner t = {n_op, threads, CD_NEWN(&own, uint32_t, n_op), time, ctx, out, err};
    out->threads = CD_NEWN(&out->arena, uint32_t, n_op);
    const cdmpp_status st =
        t.now && out->threads ? tune(&t) : (cdmpp_status)CD_FAIL(err, ENOMEM, "%u operators", n_op);
    cd_arena_free(&own);
    return st;
}
