/* Threads for each of several operators that run at the same time. Few ways of sharing are all
 * tried; else one thread at a time is moved while that helps (Liu et al., IPDPS 2019). */
#include "predictor/partition/games/cotune.h"

#include <math.h>
#include <string.h>

#include "base/text/text.h"

/* Result of co-tuning as a table and as JSON. Times beside the others are evaluated again here,
 * with the threads that were chosen; where there are fewer threads than operators nothing was
 * chosen. */

static double beside(const cd_cotune_table *t, const cd_cotune *c, uint32_t op) {
    return cd_cotune_table_time(op, c->threads, t->n_op, (void *)(uintptr_t)t);
}

/* The number of threads that is best for an operator alone. */
static uint32_t best_alone(const cd_cotune_table *t, uint32_t op) {
    uint32_t at = 1;
    for (uint32_t k = 2; k <= t->threads; k++)
        if (t->seconds[op][k] < t->seconds[op][at]) at = k;
    return at;
}

static void put_verdict(const cd_cotune_table *t, const cd_cotune *c, cd_buf *b) {
    const char *how = c->exact ? "every way tried" : "hill climbing";
    if (c->accepted)
        cd_buf_putf(b, "\nrun together: %.3f times as fast as one after the other (%s)\n",
                    c->sequential_s / c->together_s, how);
    else if (t->n_op <= t->threads)
        cd_buf_putf(b, "\nrun one after the other: together would take %.3f times as long (%s)\n",
                    c->together_s / c->sequential_s, how);
    else
        cd_buf_putf(b, "\nrun one after the other: %u threads are fewer than %u operators\n",
                    t->threads, t->n_op);
}

/* With fewer threads than operators nothing can run together: those columns stay empty. */
void cd_cotune_print(const cd_cotune_table *t, const cd_cotune *c, cd_buf *b) {
    const bool fits = t->n_op <= t->threads;
    cd_buf_puts(
        b, "operator                 alone: threads     seconds  together: threads    seconds\n");
    for (uint32_t k = 0; k < t->n_op; k++) {
        const uint32_t alone = best_alone(t, k);
        cd_buf_putf(b, "%-24s %14u   ", t->name[k], alone);
        cd_units_put_seconds_wide(b, t->seconds[k][alone]);
        if (fits) {
            cd_buf_putf(b, "  %17u  ", c->threads[k]);
            cd_units_put_seconds_wide(b, beside(t, c, k));
        }
        cd_buf_puts(b, "\n");
    }
    cd_buf_puts(b, "\none after the other: ");
    cd_units_put_seconds(b, c->sequential_s);
    if (fits) {
        cd_buf_puts(b, "; together with equal shares: ");
        cd_units_put_seconds(b, c->equal_s);
        cd_buf_puts(b, "; tuned: ");
        cd_units_put_seconds(b, c->together_s);
    }
    put_verdict(t, c, b);
}

void cd_cotune_put_members(const cd_cotune_table *t, const cd_cotune *c, cd_json_writer *w) {
    const bool fits = t->n_op <= t->threads;
    cd_json_write_member_int(w, "threads", t->threads);
    cd_json_write_key(w, "operators"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < t->n_op; k++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", t->name[k]);
        cd_json_write_member_int(w, "threads_alone", best_alone(t, k));
        cd_json_write_member_real(w, "alone_s", t->seconds[k][best_alone(t, k)]);
        cd_json_write_member_real(w, "threads", fits ? c->threads[k] : (double)NAN);
        cd_json_write_member_real(w, "together_s", fits ? beside(t, c, k) : (double)NAN);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
    cd_json_write_member_real(w, "together_s", c->together_s);
    cd_json_write_member_real(w, "sequential_s", c->sequential_s);
    cd_json_write_member_real(w, "equal_s", c->equal_s);
    cd_json_write_member_bool(w, "accepted", c->accepted);
    cd_json_write_member_bool(w, "exact", c->exact);
}

void cd_cotune_print_json(const cd_cotune_table *t, const cd_cotune *c, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_cotune_put_members(t, c, &w);
    cd_json_write_close(&w, '}');
}

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
