/* The placement problem as CPLEX .lp text, for any solver of 0/1 problems: a check of the methods
 * of this room by a program of others. */
#include "predictor/partition/placement/place_internal.h"

enum { SPAN_OPS = 64 };

typedef struct {
    cd_place_net g;
    cd_buf *out;
    double far; /* microseconds that nothing is behind */
    uint32_t n_row;
} writer;

static void put_real(cd_buf *out, double v) {
    cd_buf_puts(out, v < 0 ? " - " : " + ");
    cd_buf_put_json_real(out, fabs(v));
}

static double us(double s) { return s * 1e6; }
static bool has(const writer *w, uint32_t k, uint32_t d) {
    return isfinite(cd_place_seconds(w->g.p, k, d));
}
static bool linked(const writer *w, uint32_t a, uint32_t b) { return isfinite(w->g.latency[a][b]); }
static void row(writer *w) { cd_buf_putf(w->out, " c%u:", w->n_row++); }

/* " + 3.5 x_0_1" over its devices. */
static void put_time(writer *w, uint32_t k, double sign) {
    for (uint32_t d = 0; d < w->g.p->n_device; d++)
        if (has(w, k, d) && cd_place_seconds(w->g.p, k, d) > 0) {
            put_real(w->out, sign * us(cd_place_seconds(w->g.p, k, d)));
            cd_buf_putf(w->out, " x_%u_%u", k, d);
        }
}

static void one_place_each(writer *w) {
    const cd_place_problem *p = w->g.p;
    for (uint32_t k = 0; k < p->n_op; k++) {
        row(w);
        for (uint32_t d = 0; d < p->n_device; d++)
            if (has(w, k, d)) cd_buf_putf(w->out, " + x_%u_%u", k, d);
        cd_buf_puts(w->out, " = 1\n");
    }
}

/* A copy of item i (a value, or an operator's values) is made if the operator is on a and a reader
 * on b. */
static void copies_of(writer *w, uint32_t i, uint32_t from, const uint32_t *reader, uint32_t n) {
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t a = 0; a < w->g.p->n_device; a++)
            for (uint32_t b = 0; b < w->g.p->n_device; b++) {
                if (a == b || !has(w, from, a) || !has(w, reader[j], b)) continue;
                row(w);
                cd_buf_putf(w->out, " x_%u_%u + x_%u_%u", from, a, reader[j], b);
                if (linked(w, a, b)) cd_buf_putf(w->out, " - z_%u_%u_%u", i, a, b);
                cd_buf_puts(w->out, " <= 1\n");
            }
}

static void binaries(writer *w) {
    cd_buf_puts(w->out, "Binary\n");
    for (uint32_t k = 0; k < w->g.p->n_op; k++)
        for (uint32_t d = 0; d < w->g.p->n_device; d++)
            if (has(w, k, d)) cd_buf_putf(w->out, " x_%u_%u\n", k, d);
}

/* z needs no entry under Binary: copies_of bounds it below by a whole number, and the objective
 * pushes it down to that. The variable `one` with coefficient 0 gives the objective a term where
 * all costs are 0. */
static void write_sum(writer *w) {
    const cd_place_net *g = &w->g;
    const cd_place_problem *p = g->p;
    cd_buf_puts(w->out, "\\ least sum of seconds and copies, microseconds\nMinimize\n obj: 0 one");
    for (uint32_t k = 0; k < p->n_op; k++) put_time(w, k, 1), cd_buf_puts(w->out, "\n  ");
    for (uint32_t v = 0; v < p->n_value; v++)
        for (uint32_t a = 0; a < p->n_device && g->first_reader[v + 1] > g->first_reader[v]; a++)
            for (uint32_t b = 0; b < p->n_device; b++)
                if (a != b && linked(w, a, b) && has(w, p->value[v].from, a)) {
                    put_real(w->out, us(cd_place_copy_s(g, p->value[v].bytes, a, b)));
                    cd_buf_putf(w->out, " z_%u_%u_%u\n  ", v, a, b);
                }
    cd_buf_puts(w->out, "\nSubject To\n");
    one_place_each(w);
    for (uint32_t v = 0; v < p->n_value; v++)
        copies_of(w, v, p->value[v].from, &g->reader[g->first_reader[v]],
                  g->first_reader[v + 1] - g->first_reader[v]);
    cd_buf_puts(w->out, "Bounds\n one = 1\n");
    binaries(w);
    cd_buf_puts(w->out, "End\n");
}

/* ---- the makespan: starts s of operators, c of copies; H far away ---- */

/* "s_j - s_i - time(i) ... >= ": what both rows of an order begin with. */
static void starts(writer *w, uint32_t later, uint32_t first) {
    row(w);
    cd_buf_putf(w->out, " s_%u - s_%u", later, first);
    put_time(w, first, -1);
}

/* The rows of operator k: it ends before M; its readers and its copies start after its end; a
 * reader on device b starts after the copy from a to b. The last rule holds only where k is on a
 * and the reader on b: otherwise `far` makes its row empty. */
static void edges(writer *w, uint32_t k) {
    const cd_place_net *g = &w->g;
    const uint32_t *reader = &g->out[g->first_out[k]], n = g->first_out[k + 1] - g->first_out[k],
                   D = g->p->n_device;
    row(w);
    cd_buf_putf(w->out, " M - s_%u", k);
    put_time(w, k, -1);
    cd_buf_puts(w->out, " >= 0\n");
    for (uint32_t j = 0; j < n; j++) starts(w, reader[j], k), cd_buf_puts(w->out, " >= 0\n");
    copies_of(w, k, k, reader, n);
    for (uint32_t a = 0; a < D && n; a++)
        for (uint32_t b = 0; b < D; b++) {
            if (a == b || !linked(w, a, b) || !has(w, k, a)) continue;
            row(w);
            cd_buf_putf(w->out, " c_%u_%u_%u - s_%u", k, a, b, k);
            put_time(w, k, -1);
            cd_buf_puts(w->out, " >= 0\n");
            for (uint32_t j = 0; j < n; j++) {
                if (!has(w, reader[j], b)) continue;
                row(w);
                cd_buf_putf(w->out, " s_%u - c_%u_%u_%u", reader[j], k, a, b);
                put_real(w->out, -w->far);
                cd_buf_putf(w->out, " x_%u_%u", k, a);
                put_real(w->out, -w->far);
                cd_buf_putf(w->out, " x_%u_%u >=", reader[j], b);
                put_real(w->out, us(cd_place_copy_s(g, g->bytes[k], a, b)) - 2 * w->far);
                cd_buf_puts(w->out, "\n");
            }
        }
}

/* Two on one device: one after the other. */
static void orders(writer *w, uint32_t i, uint32_t j) {
    const cd_place_problem *p = w->g.p;
    for (uint32_t d = 0; d < p->n_device; d++) {
        if (!has(w, i, d) || !has(w, j, d) || p->device[d].workers > 1) continue;
        for (int k = 0; k < 2; k++) {
            const uint32_t first = k ? j : i;
            row(w); /* seconds on d as a number: a variable may occur only once in a row */
            cd_buf_putf(w->out, " s_%u - s_%u", k ? i : j, first);
            put_real(w->out, k ? w->far : -w->far);
            cd_buf_putf(w->out, " o_%u_%u", i, j);
            put_real(w->out, -w->far);
            cd_buf_putf(w->out, " x_%u_%u", i, d);
            put_real(w->out, -w->far);
            cd_buf_putf(w->out, " x_%u_%u >=", j, d);
            put_real(w->out, us(cd_place_seconds(p, first, d)) + (k ? -2 : -3) * w->far);
            cd_buf_puts(w->out, "\n");
        }
    }
}

static bool copied(const writer *w, uint32_t k, uint32_t a, uint32_t b) {
    return a != b && linked(w, a, b) && has(w, k, a) && w->g.first_out[k + 1] > w->g.first_out[k];
}

/* Two copies on one link likewise. */
static void link_orders(writer *w, uint32_t i, uint32_t j) {
    for (uint32_t a = 0; a < w->g.p->n_device; a++)
        for (uint32_t b = 0; b < w->g.p->n_device; b++) {
            if (!copied(w, i, a, b) || !copied(w, j, a, b)) continue;
            for (int k = 0; k < 2; k++) {
                const uint32_t first = k ? j : i, later = k ? i : j;
                row(w);
                cd_buf_putf(w->out, " c_%u_%u_%u - c_%u_%u_%u", later, a, b, first, a, b);
                put_real(w->out, k ? w->far : -w->far);
                cd_buf_putf(w->out, " q_%u_%u_%u_%u", i, j, a, b);
                put_real(w->out, -w->far);
                cd_buf_putf(w->out, " z_%u_%u_%u", i, a, b);
                put_real(w->out, -w->far);
                cd_buf_putf(w->out, " z_%u_%u_%u >=", j, a, b);
                put_real(w->out, us(cd_place_copy_s(&w->g, w->g.bytes[first], a, b)) +
                                     (k ? -2 : -3) * w->far);
                cd_buf_puts(w->out, "\n");
            }
        }
}

/* o orders two operators on one device, q orders two copies on one link, z says that a copy is
 * made. */
static void span_binaries(writer *w) {
    const uint32_t n = w->g.p->n_op, D = w->g.p->n_device;
    binaries(w);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            cd_buf_putf(w->out, " o_%u_%u\n", i, j);
            for (uint32_t a = 0; a < D; a++)
                for (uint32_t b = 0; b < D; b++)
                    if (copied(w, i, a, b) && copied(w, j, a, b))
                        cd_buf_putf(w->out, " q_%u_%u_%u_%u\n", i, j, a, b);
        }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t a = 0; a < D; a++)
            for (uint32_t b = 0; b < D; b++)
                if (copied(w, i, a, b)) cd_buf_putf(w->out, " z_%u_%u_%u\n", i, a, b);
}

/* far: every operator where it is slowest and every possible copy, one after the other. No schedule
 * needs longer, so a row with -far is never binding. */
static void write_span(writer *w) {
    const cd_place_net *g = &w->g;
    const uint32_t n = g->p->n_op;
    for (uint32_t k = 0; k < n; k++) {
        double most = 0, copy = 0;
        for (uint32_t a = 0; a < g->p->n_device; a++) {
            if (has(w, k, a)) most = fmax(most, us(cd_place_seconds(g->p, k, a)));
            for (uint32_t b = 0; b < g->p->n_device; b++)
                if (a != b && linked(w, a, b)) copy += us(cd_place_copy_s(g, g->bytes[k], a, b));
        }
        w->far += most + copy;
    }
    cd_buf_puts(
        w->out,
        "\\ least makespan over places and orders, microseconds\nMinimize\n obj: M\nSubject To\n");
    one_place_each(w);
    for (uint32_t k = 0; k < n; k++) edges(w, k);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) orders(w, i, j), link_orders(w, i, j);
    span_binaries(w);
    cd_buf_puts(w->out, "End\n");
}

cdmpp_status cd_place_lp(const cd_place_problem *p, cd_place_goal goal, cd_buf *out,
                         cdmpp_err *err) {
    cd_arena own = {0};
    writer w = {.out = out};
    if (goal == CD_PLACE_MAKESPAN && p->n_op > SPAN_OPS)
        return CD_FAIL(err, ERANGE, "%u operators: the makespan is written for at most %d", p->n_op,
                       SPAN_OPS);
    cdmpp_status st = cd_place_prepare(p, &own, &w.g, err);
    if (!st && goal == CD_PLACE_SUM) write_sum(&w);
    if (!st && goal == CD_PLACE_MAKESPAN) write_span(&w);
    if (!st && out->oom) st = CD_FAIL(err, ENOMEM, "text of %u operators", p->n_op);
    cd_arena_free(&own);
    return st;
}
