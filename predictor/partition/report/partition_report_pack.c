/* A packed network as a table and as JSON. The plan that is told is the one that was measured
 * faster; without a run the one by the cost model. */
#include <math.h>

#include "predictor/partition/report/report_internal.h"

typedef struct {
    const cd_pack_network *net;
    const cd_pack_calls *calls;
} told;

static told plan_of(const cd_partition_pack *p) {
    const bool again =
        p->ran && p->way[CD_PACK_MEASURED_PLAN].ran.median_s < p->way[CD_PACK_PLAN].ran.median_s;
    return again ? (told){&p->measured, &p->measured_calls} : (told){&p->net, &p->calls};
}

/* First start, last end, and how many units an operator has. */
typedef struct {
    double start_s, end_s;
    uint32_t calls, units;
} span;

static span span_of(const told *t, uint32_t work) {
    span s = {(double)INFINITY, 0, 0, 0};
    for (uint32_t u = 0; u < t->net->units; u++) {
        const uint32_t before = s.calls;
        for (uint32_t k = t->calls->first[u]; k < t->calls->first[u + 1]; k++) {
            const cd_pack_call *c = &t->calls->call[k];
            if (c->work != work) continue;
            s.start_s = fmin(s.start_s, c->start_s);
            s.end_s = fmax(s.end_s, c->end_s);
            s.calls++;
        }
        s.units += s.calls > before;
    }
    return s;
}

static double seconds_of(const cd_pack_work *w) {
    double s = 0;
    for (uint32_t k = 0; k < w->n_part; k++) s += w->part[k].seconds;
    return s;
}

static uint32_t cut_operators(const told *t) {
    uint32_t n = 0;
    for (uint32_t w = 0; w < t->net->n_work; w++) n += span_of(t, w).units > 1;
    return n;
}

/* Calls and waits of each way: as they were run, else as planned, where a parallel loop of one
 * iteration counts as no wait. */
typedef struct {
    uint32_t calls, waits;
} counts;

static counts counts_of(const cd_partition_pack *p, int k) {
    counts c = {p->net.n_work, 0};
    if (p->ran) return (counts){p->way[k].ran.calls, p->way[k].ran.waits};
    if (k == CD_PACK_PLAN) return (counts){p->calls.first[p->net.units], p->calls.n_wait};
    for (uint32_t w = 0; k == CD_PACK_ONE_BEHIND_THE_OTHER && p->net.units > 1 && w < p->net.n_work;
         w++)
        for (uint32_t i = 0; i < p->net.work[w].n_part; i++)
            c.waits += p->net.work[w].part[i].iterations > 1;
    return c;
}

/* ---- for people ---- */

static void put_way(const cd_partition_pack *p, int k, cd_buf *b) {
    const cd_partition_pack_way *w = &p->way[k];
    if (isnan(w->predicted_s)) return;
    const counts c = counts_of(p, k);
    cd_buf_putf(b, "%-26s ", w->name);
    cd_units_put_seconds_wide(b, w->predicted_s);
    if (p->ran) {
        cd_buf_puts(b, "  ");
        cd_units_put_seconds_wide(b, w->ran.median_s);
        cd_buf_puts(b, "  ");
        cd_units_put_seconds_wide(b, w->ran.low_s);
        cd_buf_puts(b, " .. ");
        cd_units_put_seconds_wide(b, w->ran.high_s);
        cd_buf_puts(b, "  ");
        cd_units_put_seconds_wide(b, w->ran.best_s);
    }
    cd_buf_putf(b, "  %6u  %6u\n", c.calls, c.waits);
}

static void put_verdict(const cd_partition_pack *p, cd_buf *b) {
    uint32_t differ = 0;
    const cd_partition_pack_way *best = &p->way[p->kept],
                                *other = &p->way[CD_PACK_ONE_BEHIND_THE_OTHER];
    if (!p->ran) {
        cd_buf_putf(b, "predicted: packed %.3fx over one after the other; no plan is below ",
                    other->predicted_s / p->calls.makespan_s);
        cd_units_put_seconds(b, p->calls.work_s / p->net.units);
        cd_buf_puts(b, "\n");
        return;
    }
    for (int k = 0; k < CD_PACK_WAYS; k++) differ += p->way[k].ran.differ;
    cd_buf_putf(b, "kept: %s, %.3fx over one after the other in %u turns; values: ", best->name,
                other->ran.median_s / best->ran.median_s, best->ran.turns);
    if (differ) cd_buf_putf(b, "%u results differ", differ);
    else cd_buf_puts(b, "equal");
    if (p->others >= 0)
        cd_buf_putf(b, "; others used %.0f %% of the processors%s", 100 * p->others,
                    p->others > CD_HOST_LOAD_LIMIT ? ": measure again when they do not" : "");
    cd_buf_puts(b, "\n");
}

static void put_ops(const told *t, cd_buf *b) {
    cd_buf_puts(b, "\noperator                   one unit     starts       ends  calls  units\n");
    for (uint32_t w = 0; w < t->net->n_work; w++) {
        const span s = span_of(t, w);
        cd_buf_putf(b, "%-24.24s  ", t->net->work[w].name);
        cd_units_put_seconds_wide(b, seconds_of(&t->net->work[w]));
        cd_buf_puts(b, "  ");
        cd_units_put_seconds_wide(b, s.start_s);
        cd_buf_puts(b, "  ");
        cd_units_put_seconds_wide(b, s.end_s);
        cd_buf_putf(b, "  %5u  %5u\n", s.calls, s.units);
    }
}

void cd_partition_report_pack(const cd_partition_pack *p, cd_buf *b) {
    const told t = plan_of(p);
    const cd_machine_device *d = &p->of.machine.device[0];
    cd_buf_putf(b, "%s, batch %lld: %u operators on %u units like %s (%s), %u of them cut\n",
                p->of.net.name, (long long)p->of.net.batch, p->net.n_work, p->net.units, d->name,
                d->as ? d->as : "unknown", cut_operators(&t));
    cd_buf_putf(b, "%-26s  predicted%s   calls   waits\n", "way",
                p->ran ? "   measured           quartiles         best" : "");
    for (int k = 0; k < CD_PACK_WAYS; k++) put_way(p, k, b);
    put_verdict(p, b);
    put_ops(&t, b);
}

/* ---- JSON ---- */

static void json_way(const cd_partition_pack *p, int k, cd_json_writer *w) {
    const cd_partition_pack_way *x = &p->way[k];
    if (isnan(x->predicted_s)) return;
    const counts c = counts_of(p, k);
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "name", x->name);
    cd_json_write_member_real(w, "predicted_s", x->predicted_s);
    cd_json_write_member_int(w, "calls", c.calls);
    cd_json_write_member_int(w, "waits", c.waits);
    if (p->ran) {
        cd_json_write_member_real(w, "measured_s", x->ran.median_s);
        cd_json_write_member_real(w, "low_s", x->ran.low_s);
        cd_json_write_member_real(w, "high_s", x->ran.high_s);
        cd_json_write_member_real(w, "best_s", x->ran.best_s);
        cd_json_write_member_int(w, "turns", x->ran.turns);
        cd_json_write_member_int(w, "results_that_differ", x->ran.differ);
    }
    cd_json_write_close(w, '}');
}

static void json_ops(const told *t, cd_json_writer *w) {
    cd_json_write_key(w, "operators"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < t->net->n_work; k++) {
        const cd_pack_work *x = &t->net->work[k];
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", x->name);
        cd_json_write_member_real(w, "seconds", seconds_of(x));
        cd_json_write_key(w, "iterations"), cd_json_write_open(w, '[');
        for (uint32_t i = 0; i < x->n_part; i++) cd_json_write_int(w, x->part[i].iterations);
        cd_json_write_close(w, ']');
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

/* A call: operator, part (null: the whole), iterations from and to, start and end. */
static void json_calls(const told *t, cd_json_writer *w) {
    cd_json_write_key(w, "calls"), cd_json_write_open(w, '[');
    for (uint32_t u = 0; u < t->net->units; u++) {
        cd_json_write_open(w, '[');
        for (uint32_t k = t->calls->first[u]; k < t->calls->first[u + 1]; k++) {
            const cd_pack_call *c = &t->calls->call[k];
            cd_json_write_open(w, '{');
            cd_json_write_member_int(w, "operator", c->work);
            cd_json_write_key(w, "part");
            if (c->part == CD_PACK_WHOLE) cd_json_write_null(w);
            else cd_json_write_int(w, c->part);
            cd_json_write_member_int(w, "begin", c->begin);
            cd_json_write_member_int(w, "end", c->end);
            cd_json_write_member_real(w, "start_s", c->start_s);
            cd_json_write_member_real(w, "end_s", c->end_s);
            cd_json_write_close(w, '}');
        }
        cd_json_write_close(w, ']');
    }
    cd_json_write_close(w, ']');
}

void cd_partition_report_pack_json(const cd_partition_pack *p, cd_buf *out) {
    cd_json_writer w = {.out = out};
    const told t = plan_of(p);
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "network", p->of.net.name);
    cd_json_write_member_int(&w, "batch", p->of.net.batch);
    cd_json_write_member_int(&w, "units", p->net.units);
    cd_json_write_member_str(&w, "as", p->of.machine.device[0].as);
    cd_json_write_member_real(&w, "least_possible_s", p->calls.work_s / p->net.units);
    cd_json_write_member_int(&w, "operators_cut", cut_operators(&t));
    cd_json_write_key(&w, "ways"), cd_json_write_open(&w, '[');
    for (int k = 0; k < CD_PACK_WAYS; k++) json_way(p, k, &w);
    cd_json_write_close(&w, ']');
    if (p->ran) {
        cd_json_write_member_str(&w, "kept", p->way[p->kept].name);
        cd_json_write_member_real(&w, "measured_gain",
                                  p->way[CD_PACK_ONE_BEHIND_THE_OTHER].ran.median_s /
                                      p->way[p->kept].ran.median_s);
        cd_json_write_member_real(&w, "others", p->others);
    }
    json_ops(&t, &w);
    json_calls(&t, &w);
    cd_json_write_close(&w, '}');
}
