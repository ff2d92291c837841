/* Groups that were measured, beside what pairs say about them. */
#include <math.h>

#include "base/text/text.h"
#include "profiler/machine/corun_table.h"

/* The fitted law alone: those of a place take turns, everybody else is beside. */
static double by_law(const cd_corun_table *t, const uint32_t *op, uint32_t n, uint32_t places,
                     uint32_t k) {
    const double peak = t->fit.peak_bytes_per_s;
    double sum = 0;
    uint32_t same = 0;
    for (uint32_t j = 0; j < n; j++) {
        const uint32_t there = (n - j % places + places - 1) / places; /* operators of its place */
        if (j % places != k % places)
            sum += cd_contention_share(t->bytes[op[j]], t->seconds[op[j]], peak) / there;
        else same += j != k;
    }
    const double s = cd_contention_share(t->bytes[op[k]], t->seconds[op[k]], peak);
    return cd_contention_slow(&t->fit, s, s + sum, same, true) *
           (places > 1 ? fmax(1, t->fit.beside) : 1);
}

static void compare(const cd_corun_table *t, const cd_record_corun *c,
                    const cd_record_corun_group *g, const uint32_t *op, const double *slow,
                    cd_corun_check *out) {
    for (uint32_t k = 0; k < g->out.n; k++) {
        const double measured = g->out.corun_s[k], alone = t->seconds[op[k]],
                     off = fabs(slow[k] * alone / measured - 1);
        out->mean += off;
        out->worst = fmax(out->worst, off);
        out->law_mean += fabs(by_law(t, op, g->out.n, c->places, k) * alone / measured - 1);
        out->slow_mean += fabs(slow[k] / g->out.slowdown[k] - 1);
        out->n++;
    }
}

cdmpp_status cd_corun_table_check(const cd_corun_table *t, const cd_record_corun *c,
                                  double *predicted, cd_corun_check *out, cdmpp_err *err) {
    *out = (cd_corun_check){0};
    for (size_t i = 0; i < c->n_group; i++) {
        const cd_record_corun_group *g = &c->group[i];
        uint32_t op[CD_CORUN_GROUP];
        if (g->out.error_no) continue;
        for (uint32_t k = 0; k < g->out.n; k++) {
            op[k] = cd_corun_table_find(t, c->best[g->program[k]].key);
            if (op[k] == UINT32_MAX)
                return CD_FAIL(
                    err, ENODATA, "no pair of %.*s",
                    (int)(c->best[g->program[k]].key.n < 60 ? c->best[g->program[k]].key.n : 60),
                    c->best[g->program[k]].key.p);
        }
        CD_TRY(
            cd_corun_table_group(t, op, g->out.n, c->places, predicted + i * CD_CORUN_GROUP, err));
        compare(t, c, g, op, predicted + i * CD_CORUN_GROUP, out);
    }
    if (!out->n) return CD_FAIL(err, ENODATA, "no group without an error");
    out->mean /= out->n, out->law_mean /= out->n, out->slow_mean /= out->n;
    return CDMPP_OK;
}

static double alone_of(const cd_record_corun *c, const cd_corun_table *t,
                       const cd_record_corun_group *g, uint32_t k) {
    return t->seconds[cd_corun_table_find(t, c->best[g->program[k]].key)];
}

void cd_corun_table_csv(cd_buf *b, const cd_record_corun *c, const cd_corun_table *t,
                        const double *predicted) {
    cd_buf_puts(b, "group,place,operator,solo_s,corun_s,slowdown,predicted_s,predicted_slowdown,"
                   "spread,error_no\n");
    for (size_t i = 0; i < c->n_group; i++)
        for (uint32_t k = 0; k < c->group[i].out.n; k++) {
            const cd_record_corun_group *g = &c->group[i];
            const cd_str key = c->best[g->program[k]].key;
            const double slow = predicted[i * CD_CORUN_GROUP + k];
            cd_buf_putf(b, "%zu,%u,", i, k % c->places);
            cd_csv_fields_put(b, key.p, key.n);
            if (g->out.error_no) cd_buf_putf(b, ",,,,,,,%d\n", g->out.error_no);
            else
                cd_buf_putf(b, ",%.9g,%.9g,%.6g,%.9g,%.6g,%.4g,0\n", g->out.solo_s[k],
                            g->out.corun_s[k], g->out.slowdown[k], slow * alone_of(c, t, g, k),
                            slow, g->out.spread);
        }
}

void cd_corun_table_json(cd_buf *b, const cd_record_corun *c, const cd_corun_table *t,
                         const double *predicted, const cd_corun_check *q) {
    cd_buf_putf(b,
                "{\"processors\":%d,\"threads\":%d,\"places\":%u,\"times\":%u,\"error\":%.6g,"
                "\"worst\":%.6g,\"error_of_slowdowns\":%.6g,\"error_of_the_law\":%.6g,\"groups\":[",
                cd_affinity_count(), c->threads, c->places, q->n, q->mean, q->worst, q->slow_mean,
                q->law_mean);
    for (size_t i = 0; i < c->n_group; i++) {
        const cd_record_corun_group *g = &c->group[i];
        cd_buf_putf(b, "%s{\"error_no\":%d,\"spread\":%.4g,\"operators\":[", i ? "," : "",
                    g->out.error_no, g->out.spread);
        for (uint32_t k = 0; k < g->out.n; k++) {
            cd_buf_putf(b, "%s{\"workload_key\":", k ? "," : "");
            cd_buf_put_json_str(b, c->best[g->program[k]].key.p, c->best[g->program[k]].key.n);
            cd_buf_putf(b, ",\"place\":%u", k % c->places);
            if (!g->out.error_no)
                cd_buf_putf(b,
                            ",\"solo_s\":%.9g,\"corun_s\":%.9g,\"slowdown\":%.6g,\"predicted_s\":%."
                            "9g,\"predicted_slowdown\":%.6g",
                            g->out.solo_s[k], g->out.corun_s[k], g->out.slowdown[k],
                            predicted[i * CD_CORUN_GROUP + k] * alone_of(c, t, g, k),
                            predicted[i * CD_CORUN_GROUP + k]);
            cd_buf_puts(b, "}");
        }
        cd_buf_puts(b, "]}");
    }
    cd_buf_puts(b, "]}");
}

void cd_corun_table_text(cd_buf *b, const cd_record_corun *c, const cd_corun_table *t,
                         const double *predicted, const cd_corun_check *q) {
    for (size_t i = 0; i < c->n; i++)
        cd_buf_putf(b, "%3zu  %.*s\n", i, (int)(c->best[i].key.n < 110 ? c->best[i].key.n : 110),
                    c->best[i].key.p);
    cd_buf_putf(b,
                "%d processors, %d for each program: %u places; programs of a place take turns\n",
                cd_affinity_count(), c->threads, c->places);
    cd_buf_puts(b, "group place program  alone, ms  together, ms  slowdown  predicted, ms  off\n");
    for (size_t i = 0; i < c->n_group; i++)
        for (uint32_t k = 0; k < c->group[i].out.n; k++) {
            const cd_record_corun_group *g = &c->group[i];
            cd_buf_putf(b, "%5zu %5u %7u", i, k % c->places, g->program[k]);
            if (g->out.error_no) {
                cd_buf_putf(b, "  error %d\n", g->out.error_no);
                continue;
            }
            const double s = predicted[i * CD_CORUN_GROUP + k] * alone_of(c, t, g, k);
            cd_buf_putf(b, "  %9.4f %13.4f %9.2f %14.4f %+.1f %%\n", g->out.solo_s[k] * 1e3,
                        g->out.corun_s[k] * 1e3, g->out.slowdown[k], s * 1e3,
                        100 * (s / g->out.corun_s[k] - 1));
        }
    cd_buf_putf(b,
                "\noff by %.1f %% in the mean of %u times, %.1f %% at worst; slowdowns by %.1f %%; "
                "the law without the pairs by %.1f %%\n",
                100 * q->mean, q->n, 100 * q->worst, 100 * q->slow_mean, 100 * q->law_mean);
}
