/* The table of links and their costs. A link's measured pairs are fitted by the laws of
 * profiler/curves, restricted to lines, and kept as pieces: a piece is all that evaluating
 * needs. */
#include "profiler/machine/link.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/draw/draw.h"
#include "base/text/text.h"
#include "profiler/curves/curves.h"
#include "profiler/machine/machine_report.h"

#define MAX_BYTES 1e15

void cd_link_table_init(cd_link_table *l) { *l = (cd_link_table){0}; }

void cd_link_table_free(cd_link_table *l) {
    cd_arena_free(&l->arena);
    cd_mem_free(l->link);
    *l = (cd_link_table){0};
}

/* ---- looking up ---- */
static cd_link *find(const cd_link_table *l, const char *from, const char *to) {
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->link[i].from, from) && !strcmp(l->link[i].to, to)) return &l->link[i];
    return NULL;
}

const cd_link *cd_link_table_find(const cd_link_table *l, const char *from, const char *to) {
    return find(l, from, to);
}

double cd_link_cost(const cd_link *l, int64_t bytes) {
    const double b = (double)bytes;
    uint32_t low = 0, high = l->n_piece;
    if (bytes <= 0) return 0;
    while (high - low > 1) {
        const uint32_t m = low + (high - low) / 2;
        if (l->piece[m].bytes <= b) low = m;
        else high = m;
    }
    const cd_link_piece *p = &l->piece[low];
    return p->seconds + p->s_per_byte * (b - p->bytes);
}

double cd_link_latency(const cd_link *l) { return l->piece[0].seconds; }

double cd_link_bandwidth(const cd_link *l) { return 1 / l->piece[l->n_piece - 1].s_per_byte; }

/* ---- adding ---- */
static bool number(double v, double most) { return isfinite(v) && v >= 0 && v <= most; }

/* Pieces must start at 0, ascend and meet, within rounding. */
static cdmpp_status check(const cd_link *k, cdmpp_err *err) {
    if (!k->from || !k->to || !k->from[0] || !k->to[0])
        return CD_FAIL(err, EINVALID, "a link needs two devices");
    if (!k->n_piece || k->piece[0].bytes != 0)
        return CD_FAIL(err, EINVALID, "from %s to %s: expected pieces from 0 bytes on", k->from,
                       k->to);
    for (uint32_t i = 0; i < k->n_piece; i++) {
        const cd_link_piece *p = &k->piece[i];
        if (!number(p->bytes, MAX_BYTES) || !number(p->seconds, 1e9) || !number(p->s_per_byte, 1e3))
            return CD_FAIL(err, EINVALID, "from %s to %s, piece %u: expected numbers of at least 0",
                           k->from, k->to, i);
        if (!i) continue;
        const double end = p[-1].seconds + p[-1].s_per_byte * (p->bytes - p[-1].bytes);
        if (p->bytes <= p[-1].bytes)
            return CD_FAIL(err, EINVALID,
                           "from %s to %s, piece %u: expected more bytes than before", k->from,
                           k->to, i);
        if (fabs(p->seconds - end) > 1e-6 * fmax(end, p->seconds) + 1e-15)
            return CD_FAIL(err, EINVALID,
                           "from %s to %s, piece %u: begins at %g s, the one before ends at %g s",
                           k->from, k->to, i, p->seconds, end);
    }
    return CDMPP_OK;
}

static char *keep_text(cd_link_table *l, const char *s) {
    return cd_str_dup(&l->arena, (cd_str){s, strlen(s)});
}

/* The texts of a link that is replaced stay in the arena until the table is freed. */
cdmpp_status cd_link_table_add(cd_link_table *l, const cd_link *one, cdmpp_err *err) {
    CD_TRY(check(one, err));
    if (CD_GROW(l->link, l->n, l->cap)) return CD_FAIL(err, ENOMEM, "%zu links", l->n);
    cd_link k = *one;
    cd_link_piece *p = cd_arena_alloc(&l->arena, k.n_piece, sizeof *p);
    k.from = keep_text(l, one->from);
    k.to = keep_text(l, one->to);
    k.how = keep_text(l, one->how ? one->how : "copy");
    if (!p || !k.from || !k.to || !k.how)
        return CD_FAIL(err, ENOMEM, "link from %s to %s", one->from, one->to);
    memcpy(p, one->piece, k.n_piece * sizeof *p);
    k.piece = p;
    cd_link *old = find(l, k.from, k.to);
    if (old) *old = k;
    else l->link[l->n++] = k;
    return CDMPP_OK;
}

/* ---- fitting ---- */
typedef struct {
    double x, t;
} pair;

static int by_bytes(const void *a, const void *b) {
    const pair *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->t > q->t) - (p->t < q->t);
}

/* Sorted, the median of each size; how many sizes. */
static size_t medians(pair *p, size_t n, double *x, double *t) {
    size_t m = 0;
    qsort(p, n, sizeof *p, by_bytes);
    for (size_t i = 0, j; i < n; i = j, m++) {
        for (j = i; j < n && p[j].x == p[i].x;) j++;
        const size_t k = j - i;
        x[m] = p[i].x;
        t[m] = k % 2 ? p[i + k / 2].t : 0.5 * (p[i + k / 2 - 1].t + p[i + k / 2].t);
    }
    return m;
}

/* Where the pieces of a law, or of a table, begin; 0 is the first. */
static uint32_t piece_starts(const cd_perf_curve *p, double *at) {
    uint32_t n = 1;
    at[0] = 0;
    if (p->n_param)
        for (uint32_t k = p->n_param - p->n_break; k < p->n_param; k++) at[n++] = p->param[k];
    else
        for (uint32_t k = 0; k < p->n_knot; k++)
            if (p->knot_x[k] > at[n - 1]) at[n++] = p->knot_x[k];
    return n;
}

static uint32_t pieces_of(const cd_perf_curve *p, double *at, cd_link_piece *out) {
    const uint32_t n = piece_starts(p, at);
    for (uint32_t i = 0; i < n; i++) {
        const double to = i + 1 < n ? at[i + 1] : 2 * fmax(at[i], p->x_max);
        out[i] = (cd_link_piece){at[i], cd_perf_curve_eval_law(p, at[i]), 0};
        out[i].s_per_byte =
            fmax((cd_perf_curve_eval_law(p, to) - out[i].seconds) / (to - at[i]), 0);
    }
    return n;
}

/* One block holds pairs, medians, breaks and pieces: room (9 n + 32) doubles. */
static cdmpp_status fit_pairs(cd_link_table *l, cd_link *k, double *room, size_t n,
                              cdmpp_err *err) {
    pair *p = (pair *)(void *)room;
    double *x = room + 2 * n, *t = x + n, *at = t + n;
    cd_link_piece *piece = (cd_link_piece *)(void *)(at + n + 4);
    cd_perf_curve law;
    const cd_perf_curve_options o = {.forms =
                                         1U << CD_PERF_CURVE_CONSTANT | 1U << CD_PERF_CURVE_AFFINE |
                                         1U << CD_PERF_CURVE_HINGE | 1U << CD_PERF_CURVE_SLOPES};
    const size_t m = medians(p, n, x, t);
    CD_TRY(cd_perf_curve_fit(x, t, m, &o, &law, err));
    k->n = (uint32_t)n;
    k->noise = law.noise;
    k->n_piece = pieces_of(&law, at, piece);
    k->piece = piece;
    cd_perf_curve_free(&law);
    return cd_link_table_add(l, k, err);
}

/* Sizes measured more than once count once, by their median. */
cdmpp_status cd_link_table_fit(cd_link_table *l, const char *from, const char *to, const char *how,
                               const double *bytes, const double *seconds, size_t n,
                               cdmpp_err *err) {
    cd_link k = {.from = from, .to = to, .how = how};
    if (n < 3 || n > 1000000)
        return CD_FAIL(err, EINVALID,
                       "from %s to %s: expected at least 3 measured pairs, found %zu", from, to, n);
    for (size_t i = 0; i < n; i++)
        if (!number(bytes[i], MAX_BYTES) || bytes[i] < 1 || !number(seconds[i], 1e9) ||
            seconds[i] <= 0)
            return CD_FAIL(
                err, EINVALID,
                "from %s to %s, pair %zu: expected bytes and seconds above 0, found %g, %g", from,
                to, i, bytes[i], seconds[i]);
    double *room = cd_mem_zalloc(9 * n + 32, sizeof *room);
    if (!room) return CD_FAIL(err, ENOMEM, "%zu pairs", n);
    pair *p = (pair *)(void *)room;
    for (size_t i = 0; i < n; i++) p[i] = (pair){bytes[i], seconds[i]};
    const cdmpp_status st = fit_pairs(l, &k, room, n, err);
    cd_mem_free(room);
    return st;
}

/* A chart of links: seconds against bytes, from 64 B to 256 MiB, both axes logarithmic, because
 * latency and bandwidth lie decades apart. */

/* powers of 2; points of each */
enum { FIRST = 6, LAST = 28, EACH = 4, POINTS = (LAST - FIRST) * EACH + 1 };

static void name_bytes(double v, char *buf, size_t n) {
    cd_buf b = {0};
    cd_units_put_bytes(&b, v);
    snprintf(buf, n, "%s", b.p ? b.p : "");
    cd_buf_free(&b);
}

static void name_us(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); }

cdmpp_status cd_link_draw(const cd_link_table *l, const char *path, cdmpp_err *err) {
    double x[POINTS], y[POINTS], lo = HUGE_VAL, hi = 0;
    for (int i = 0; i < POINTS; i++) x[i] = exp2(FIRST + (double)i / EACH);
    for (size_t k = 0; k < l->n; k++) {
        lo = fmin(lo, 1e6 * cd_link_cost(&l->link[k], (int64_t)x[0]));
        hi = fmax(hi, 1e6 * cd_link_cost(&l->link[k], (int64_t)x[POINTS - 1]));
    }
    if (!(lo > 0 && hi > lo)) return CD_FAIL(err, ENODATA, "--svg: no link to draw");
    cd_chart c = {.p = {.x = {x[0], x[POINTS - 1], true}, .y = {lo, hi, true}}};
    cd_chart_begin(&c, "Links", "bytes", "microseconds", name_bytes, name_us);
    for (size_t k = 0; k < l->n; k++) {
        char text[200];
        for (int i = 0; i < POINTS; i++) y[i] = 1e6 * cd_link_cost(&l->link[k], (int64_t)x[i]);
        cd_plot_line(&c.p, x, y, POINTS, cd_chart_colour(k));
        snprintf(text, sizeof text, "%s > %s, %s", l->link[k].from, l->link[k].to, l->link[k].how);
        cd_chart_legend(&c, k, text);
    }
    return cd_chart_write(&c, path, err);
}
