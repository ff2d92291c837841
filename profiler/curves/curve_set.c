/* Curves with their laws, as they are added. Only the first few keep their points: a chart shows no
 * more, and a file may have thousands. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/draw/draw.h"
#include "profiler/curves/curves.h"
#include "profiler/curves/curves_internal.h"
#include "profiler/store/store.h"

void cd_curve_set_free(cd_curve_set *c) {
    for (size_t i = 0; i < c->n; i++) cd_perf_curve_free(&c->curve[i].fit);
    cd_mem_free(c->curve);
    cd_arena_free(&c->arena);
    *c = (cd_curve_set){0};
}

bool cd_curve_set_full(const cd_curve_set *c) { return c->limit && c->n >= c->limit; }

void cd_curve_set_skip(cd_curve_set *c, const cdmpp_err *why) {
    c->skipped++;
    if (c->skip) c->skip(c->ctx, why);
}

/* ---- points ---- */

typedef struct {
    double x, t;
} point;

static int by_size(const void *a, const void *b) {
    const point *p = a, *q = b;
    return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->t > q->t) - (p->t < q->t);
}

size_t cd_curve_set_sort(double *x, double *t, size_t n) {
    size_t kept = 0;
    point *p = cd_mem_zalloc(n + 1, sizeof *p);
    if (!p) return 0;
    for (size_t i = 0; i < n; i++) p[i] = (point){x[i], t[i]};
    qsort(p, n, sizeof *p, by_size);
    for (size_t i = 0; i < n; i++)
        if (!kept || p[i].x > x[kept - 1]) x[kept] = p[i].x, t[kept++] = p[i].t;
    cd_mem_free(p);
    return kept;
}

static cdmpp_status keep_points(cd_curve_set *c, cd_curve_set_curve *one, const double *x,
                                const double *t, size_t n, cdmpp_err *err) {
    one->x = CD_NEWN(&c->arena, double, 2 * n);
    if (!one->x) return CD_FAIL(err, ENOMEM, "%zu points", n);
    one->t = one->x + n;
    one->n = n;
    memcpy(one->x, x, n * sizeof *x);
    memcpy(one->t, t, n * sizeof *t);
    return CDMPP_OK;
}

cdmpp_status cd_curve_set_add(cd_curve_set *c, const char *name, const char *op, const double *x,
                              const double *t, size_t n, cdmpp_err *err) {
    const cd_perf_curve_options how = {.tolerance = c->tolerance};
    cdmpp_err why = {0};
    cd_curve_set_curve one = {.name = cd_str_dup(&c->arena, (cd_str){name, strlen(name)}),
                              .op = cd_str_dup(&c->arena, (cd_str){op, strlen(op)})};
    if (!one.name || !one.op || CD_GROW(c->curve, c->n, c->cap))
        return CD_FAIL(err, ENOMEM, "curves");
    if (c->n < CD_CURVE_SET_DRAWN) CD_TRY(keep_points(c, &one, x, t, n, err));
    const cdmpp_status st = cd_perf_curve_fit(x, t, n, &how, &one.fit, &why);
    if (st == CDMPP_ENOMEM) return *err = why, st;
    if (st) {
        cd_err_add_key(&why, name);
        cd_curve_set_skip(c, &why);
        return CDMPP_OK;
    }
    c->curve[c->n++] = one;
    return CDMPP_OK;
}

/* A chart of the first curves: their points, and the law through them at evenly spread sizes of a
 * logarithmic axis. */

enum { FINE = 200 };
static const double US = 1e6;

static void name_number(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); }

/* Ranges of sizes and of microseconds over all points. */
static void ranges(const cd_curve_set *c, size_t n, double *lo, double *hi) {
    lo[0] = lo[1] = HUGE_VAL, hi[0] = hi[1] = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < c->curve[k].n; i++) {
            lo[0] = fmin(lo[0], c->curve[k].x[i]), hi[0] = fmax(hi[0], c->curve[k].x[i]);
            lo[1] = fmin(lo[1], US * c->curve[k].t[i]), hi[1] = fmax(hi[1], US * c->curve[k].t[i]);
        }
    if (!(hi[1] > lo[1])) hi[1] = 2 * lo[1];
}

static void put_curve(cd_chart *chart, const cd_curve_set_curve *c, size_t k, double *us) {
    char cls[32];
    double x[FINE], y[FINE];
    for (size_t i = 0; i < c->n; i++) us[i] = US * c->t[i];
    snprintf(cls, sizeof cls, "d c%zu", k);
    cd_plot_dots(&chart->p, c->x, us, c->n, cls);
    for (int i = 0; i < FINE; i++) {
        x[i] = c->fit.x_min * pow(c->fit.x_max / c->fit.x_min, i / (double)(FINE - 1));
        y[i] = US * cd_perf_curve_eval(&c->fit, x[i]);
    }
    cd_plot_line(&chart->p, x, y, FINE, cd_chart_colour(k));
    cd_chart_legend(chart, k, c->name);
}

cdmpp_status cd_curve_set_draw(const cd_curve_set *c, const char *path, cdmpp_err *err) {
    const size_t n = c->n < CD_CURVE_SET_DRAWN ? c->n : CD_CURVE_SET_DRAWN;
    double lo[2], hi[2];
    size_t most = 1;
    for (size_t k = 0; k < n; k++) most = c->curve[k].n > most ? c->curve[k].n : most;
    double *us = cd_mem_alloc(most * sizeof *us);
    if (!us) return CD_FAIL(err, ENOMEM, "%zu points", most);
    ranges(c, n, lo, hi);
    cd_chart chart = {.p = {.x = {lo[0], hi[0], true}, .y = {lo[1], hi[1], true}}};
    cd_chart_begin(&chart, "Curves", "size", "microseconds", name_number, name_number);
    for (size_t k = 0; k < n; k++) put_curve(&chart, &c->curve[k], k, us);
    cd_mem_free(us);
    return cd_chart_write(&chart, path, err);
}

/* Curves out of a store: workloads of one operator whose shapes differ in one dimension.
 *
 *   dim 0.0    [[1,64,56,56],[64,64,3,3]]  key [[-1,64,56,56],[64,64,3,3]] on v100: size 1, seconds
 *              [[8,64,56,56],[64,64,3,3]]                                           size 8
 *
 * In a first pass only that dimension may differ. What makes no curve of three sizes in that way is
 * grouped again: dimension D of all other operands that is equal to the size follows it then (a
 * batch that several operands have). Of one workload on one device the least median counts. */

enum { MAX_POINTS = 1 << 20 };

typedef struct {
    char *key[2]; /* shapes with -1, device; the size alone, with what follows it */
    double x, t;
    bool used; /* in a curve already */
} point_store;

typedef struct {
    cd_arena arena, scratch;
    point_store *p;
    size_t n, cap;
    unsigned operand, dim;
} state;

static cdmpp_status dim_of(const char *text, state *s, cdmpp_err *err) {
    char *end = NULL;
    if (!text) return CDMPP_OK;
    const unsigned long a = strtoul(text, &end, 10);
    const unsigned long d = *end == '.' ? strtoul(end + 1, &end, 10) : 99;
    if (text[0] < '0' || text[0] > '9' || *end || a > 31 || d > 31)
        return CD_FAIL(err, EUSAGE, "--dim: expected OPERAND.DIMENSION as 0.0, found '%.60s'",
                       text);
    s->operand = (unsigned)a;
    s->dim = (unsigned)d;
    return CDMPP_OK;
}

static const cd_json *nth(const cd_json *list, unsigned k) {
    const cd_json *v = list && list->kind == CD_JSON_ARR ? list->u.child : NULL;
    while (v && k--) v = v->next;
    return v;
}

/* The shapes with -1 in place of the size, and of what follows it; false: they are no lists of
 * sizes. */
static bool put_key(const state *s, const cd_json *shapes, int64_t size, bool follow, cd_buf *b) {
    unsigned k = 0;
    cd_buf_puts(b, "[");
    for (const cd_json *o = shapes->u.child; o; o = o->next, k++) {
        if (o->kind != CD_JSON_ARR) return false;
        unsigned d = 0;
        cd_buf_puts(b, o == shapes->u.child ? "[" : ", [");
        for (const cd_json *v = o->u.child; v; v = v->next, d++) {
            if (v->kind != CD_JSON_INT) return false;
            cd_buf_putf(b, "%s%lld", d ? ", " : "",
                        d == s->dim && (k == s->operand || (follow && v->u.i == size))
                            ? -1LL
                            : (long long)v->u.i);
        }
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "]");
    return true;
}

static cdmpp_status keep(state *s, const cd_buf *key, double x, double t, cdmpp_err *err) {
    if (s->n >= MAX_POINTS) return CD_FAIL(err, ERANGE, "more than %d measurements", MAX_POINTS);
    if (CD_GROW(s->p, s->n, s->cap)) return CD_FAIL(err, ENOMEM, "%zu measurements", s->n);
    point_store one = {.x = x, .t = t};
    for (int k = 0; k < 2; k++)
        if (key[k].oom || !(one.key[k] = cd_str_dup(&s->arena, (cd_str){key[k].p, key[k].n})))
            return CD_FAIL(err, ENOMEM, "measurement");
    s->p[s->n++] = one;
    return CDMPP_OK;
}

/* A row whose shapes are no lists of sizes is no point of a curve: passed over. */
static cdmpp_status visit(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    state *s = ctx;
    const cd_json *shapes, *size;
    cd_buf key[2] = {{0}};
    cdmpp_status st = CDMPP_OK;
    cd_arena_reset(&s->scratch);
    if (cd_json_parse(&s->scratch, h->row.shape.p, h->row.shape.n, &shapes, NULL) ||
        shapes->kind != CD_JSON_ARR)
        return CDMPP_OK;
    size = nth(nth(shapes, s->operand), s->dim);
    if (!size || size->kind != CD_JSON_INT || size->u.i < 1 || !(h->row.latency.median_s > 0))
        return CDMPP_OK;
    bool good = true;
    for (int k = 0; k < 2 && good; k++) {
        good = put_key(s, shapes, size->u.i, k, &key[k]);
        cd_buf_putf(&key[k], ", %.*s", (int)h->row.device.n, h->row.device.p);
    }
    if (good) st = keep(s, key, (double)size->u.i, h->row.latency.median_s, err);
    for (int k = 0; k < 2; k++) cd_buf_free(&key[k]);
    return st;
}

static int by_alone(const void *a, const void *b) {
    const point_store *p = a, *q = b;
    return p->used != q->used ? p->used - q->used : strcmp(p->key[0], q->key[0]);
}

static int by_follow(const void *a, const void *b) {
    const point_store *p = a, *q = b;
    return p->used != q->used ? p->used - q->used : strcmp(p->key[1], q->key[1]);
}

/* Points with equal keys are a curve if they have at least three sizes. `which`: the key. Sorting
 * brings points that are not in a curve yet to the front. */
static cdmpp_status add_groups(cd_curve_set *c, state *s, int which, double *x, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    cd_buf name = {0};
    qsort(s->p, s->n, sizeof *s->p, which ? by_follow : by_alone);
    for (size_t i = 0, j; i < s->n && !s->p[i].used && !st && !cd_curve_set_full(c); i = j) {
        for (j = i; j < s->n && !s->p[j].used && !strcmp(s->p[j].key[which], s->p[i].key[which]);
             j++)
            x[j - i] = s->p[j].x, x[s->n + j - i] = s->p[j].t;
        const size_t n = cd_curve_set_sort(x, x + s->n, j - i);
        if (n < 3) continue;
        cd_buf_clear(&name);
        cd_buf_putf(&name, "%s %s", c->op, s->p[i].key[which]);
        st = cd_curve_set_add(c, name.p ? name.p : "", c->op, x, x + s->n, n, err);
        for (size_t k = i; k < j; k++) s->p[k].used = true;
    }
    cd_buf_free(&name);
    return st;
}

static cdmpp_status add_all(cd_curve_set *c, state *s, cdmpp_err *err) {
    if (!s->n) return CDMPP_OK;
    double *x = cd_mem_zalloc(2 * s->n, sizeof *x);
    cdmpp_status st = x ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu points", s->n);
    for (int which = 0; which < 2 && !st; which++) st = add_groups(c, s, which, x, err);
    cd_mem_free(x);
    return st;
}

cdmpp_status cd_curve_set_read_store(cd_curve_set *c, const char *path, const char *device,
                                     const char *dim, cdmpp_err *err) {
    state s = {0};
    cd_store *store;
    const cd_store_filter which = {.device = device, .operator_name = c->op};
    CD_TRY(dim_of(dim, &s, err));
    CD_TRY(cd_store_open(path, false, &store, err));
    cdmpp_status st = cd_store_query(store, &which, visit, &s, err);
    cd_store_close(store);
    if (!st) st = add_all(c, &s, err);
    cd_mem_free(s.p);
    cd_arena_free(&s.scratch);
    cd_arena_free(&s.arena);
    return st;
}

/* Curves as text and as JSON: the law of each, where it turns, seconds at sizes that were asked
 * for; then a summary by operator. */

/* rows of the summary: of so many operators the first ones are enough */
enum { MAX_OP = 256 };

typedef struct {
    const double *v; /* (n) sizes at which seconds are given */
    size_t n;
    double level;
} sizes;

/* ---- one curve ---- */
static const char *class_of(const cd_perf_curve *p) {
    static const char *const name[] = {"flat", "linear", "piecewise", "unclear"};
    return name[cd_perf_curve_classify(p)];
}

/* "2 us and 30 ns for each, 45 ns for each beyond 12.5" */
static void put_law(cd_buf *b, const cd_perf_curve *p) {
    const uint32_t slopes = p->n_param > p->n_break ? p->n_param - p->n_break - 1 : 0;
    const double *slope = p->param + 1, *at = p->param + p->n_param - p->n_break;
    if (!p->n_param) {
        cd_buf_putf(b, "by %u points of a table", p->n_knot);
        return;
    }
    cd_units_put_seconds(b, p->param[0]);
    if (p->form == CD_PERF_CURVE_STAIRS) {
        cd_buf_puts(b, " and ");
        cd_units_put_seconds(b, p->param[1]);
        cd_buf_putf(b, " for every %.4g begun", p->param[2]);
        return;
    }
    for (uint32_t k = 0; k < slopes; k++) {
        const bool later = k > 0 || p->form == CD_PERF_CURVE_HINGE;
        cd_buf_puts(b, k ? ", " : " and ");
        cd_units_put_seconds(b, slope[k]);
        cd_buf_puts(b, " for each");
        if (later) cd_buf_putf(b, " beyond %.4g", at[p->form == CD_PERF_CURVE_HINGE ? 0 : k - 1]);
    }
}

static void put_text(cd_buf *b, const cd_curve_set_curve *c, const sizes *at) {
    const cd_perf_curve *f = &c->fit;
    double low, high;
    cd_buf_putf(b, "%s\n    %s, %s: ", c->name, cd_perf_curve_form_name(f->form), class_of(f));
    put_law(b, f);
    if (cd_perf_curve_turns(f)) {
        cd_buf_puts(b, "; turns ");
        cd_perf_curve_turn_put(b, &f->turn);
    }
    cd_buf_putf(b, "\n    %u points of %.6g..%.6g, noise %.1f %%", f->n, f->x_min, f->x_max,
                100 * f->noise);
    if (f->n_left_out)
        cd_buf_putf(b, ", %u left out%s", f->n_left_out,
                    f->warmup ? " (the first, as too slow)" : "");
    cd_buf_puts(b, "\n");
    for (size_t i = 0; i < at->n; i++) {
        cd_perf_curve_interval(f, at->v[i], at->level, &low, &high);
        cd_buf_putf(b, "    at %.6g: ", at->v[i]);
        cd_units_put_seconds(b, cd_perf_curve_eval(f, at->v[i]));
        cd_buf_puts(b, ", in ");
        cd_units_put_seconds(b, low);
        cd_buf_puts(b, " .. ");
        cd_units_put_seconds(b, high);
        cd_buf_putf(b, " by %.3g %%%s\n", 100 * at->level,
                    at->v[i] > f->x_max || at->v[i] < f->x_min ? ", outside of the points" : "");
    }
}

static void put_at(cd_json_writer *w, const cd_perf_curve *f, double size, double level) {
    double low, high;
    cd_perf_curve_interval(f, size, level, &low, &high);
    cd_json_write_open(w, '{');
    cd_json_write_member_real(w, "size", size);
    cd_json_write_member_real(w, "seconds", cd_perf_curve_eval(f, size));
    cd_json_write_member_real(w, "low_s", low);
    cd_json_write_member_real(w, "high_s", high);
    cd_json_write_close(w, '}');
}

static void put_json(cd_json_writer *w, const cd_curve_set_curve *c, const sizes *at) {
    const cd_perf_curve *f = &c->fit;
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "name", c->name);
    cd_json_write_member_str(w, "form", cd_perf_curve_form_name(f->form));
    cd_json_write_member_str(w, "class", class_of(f));
    cd_json_write_member_real(w, "turns_at",
                              cd_perf_curve_turns(f) && !f->turn.rough ? f->turn.at : (double)NAN);
    cd_json_write_member_real(w, "turns_low", f->turn.low);
    cd_json_write_member_real(w, "turns_high", f->turn.high);
    cd_json_write_member_int(w, "points", f->n);
    cd_json_write_member_int(w, "left_out", f->n_left_out);
    cd_json_write_member_real(w, "least_size", f->x_min);
    cd_json_write_member_real(w, "largest_size", f->x_max);
    cd_json_write_member_real(w, "noise", f->noise);
    cd_json_write_key(w, "parameters"), cd_json_write_reals(w, f->param, f->n_param);
    cd_json_write_key(w, "parameters_se"), cd_json_write_reals(w, f->se, f->n_param);
    cd_json_write_key(w, "at"), cd_json_write_open(w, '[');
    for (size_t i = 0; i < at->n; i++) put_at(w, f, at->v[i], at->level);
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

/* ---- by operator ---- */

typedef struct {
    const char *name;
    size_t n, of_class[4], n_turn;
    double median; /* of the turning points; NaN: none */
} op_row;

/* turn: room for a number of each curve. */
static void count(const cd_curve_set *c, op_row *r, double *turn) {
    for (size_t i = 0; i < c->n; i++) {
        const cd_perf_curve *f = &c->curve[i].fit;
        if (strcmp(c->curve[i].op, r->name) != 0) continue;
        r->n++;
        r->of_class[cd_perf_curve_classify(f)]++;
        if (cd_perf_curve_turns(f)) turn[r->n_turn++] = f->turn.at;
    }
    cd_sort_doubles(turn, r->n_turn);
    r->median = r->n_turn ? cd_sort_median(turn, r->n_turn) : (double)NAN;
}

/* Operators in the order in which they first appear. */
static size_t summarise(const cd_curve_set *c, op_row *row, cd_buf *b) {
    size_t n = 0;
    double *turn = cd_mem_alloc((c->n + 1) * sizeof *turn);
    b->oom |= !turn;
    for (size_t i = 0; turn && i < c->n && n < MAX_OP; i++) {
        size_t k = 0;
        while (k < n && strcmp(row[k].name, c->curve[i].op) != 0) k++;
        if (k < n) continue;
        row[n] = (op_row){.name = c->curve[i].op};
        count(c, &row[n++], turn);
    }
    cd_mem_free(turn);
    return n;
}

void cd_curve_set_print(const cd_curve_set *c, const double *at, size_t n_at, double level,
                        cd_buf *b) {
    op_row row[MAX_OP];
    const sizes s = {at, n_at, level};
    for (size_t i = 0; i < c->n; i++) put_text(b, &c->curve[i], &s);
    if (c->n < 2) return;
    const size_t n = summarise(c, row, b);
    cd_buf_puts(b, "\noperator                curves     flat   linear  piecewise  unclear  turns "
                   "at (median)\n");
    for (size_t k = 0; k < n; k++) {
        const op_row *r = &row[k];
        cd_buf_putf(b, "%-22s %7zu  %7zu  %7zu    %7zu  %7zu  ", r->name[0] ? r->name : "-", r->n,
                    r->of_class[0], r->of_class[1], r->of_class[2], r->of_class[3]);
        if (r->n_turn) cd_buf_putf(b, "%.4g\n", r->median);
        else cd_buf_puts(b, "-\n");
    }
}

void cd_curve_set_print_json(const cd_curve_set *c, const double *at, size_t n_at, double level,
                             cd_buf *out) {
    static const char *const name[] = {"flat", "linear", "piecewise", "unclear"};
    op_row row[MAX_OP];
    const sizes s = {at, n_at, level};
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "curves"), cd_json_write_open(&w, '[');
    for (size_t i = 0; i < c->n; i++) put_json(&w, &c->curve[i], &s);
    cd_json_write_close(&w, ']');
    cd_json_write_key(&w, "operators"), cd_json_write_open(&w, '[');
    for (size_t k = 0, n = summarise(c, row, out); k < n; k++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "operator", row[k].name);
        cd_json_write_member_int(&w, "curves", (int64_t)row[k].n);
        for (int i = 0; i < 4; i++)
            cd_json_write_member_int(&w, name[i], (int64_t)row[k].of_class[i]);
        cd_json_write_member_real(&w, "turns_at_median", row[k].median);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_member_int(&w, "left_out", (int64_t)c->skipped);
    cd_json_write_close(&w, '}');
}
