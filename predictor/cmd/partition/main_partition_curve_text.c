/* What "curve" tells of each curve and of all. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/cmd/partition/main_partition_tools.h"
#include "profiler/curves/curves.h"

enum { DRAWN = 8, FINE = 200, MAX_OP = 256 };

typedef struct {
    cd_perf_curve p;
    char *name;
    double *x, *t;              /* (n) */
    size_t n;
} drawn;

typedef struct {
    char *name;
    size_t n, of_class[4];
    double *turn;               /* (n_turn) */
    size_t n_turn, cap;
} op_row;

struct cd_partition_curves {
    const cd_partition_curve_options *o;
    cd_buf b;
    size_t n, bad;
    op_row op[MAX_OP];
    size_t n_op;
    drawn draw[DRAWN];
    size_t n_draw;
};

cdmpp_status cd_partition_curves_new(const cd_partition_curve_options *o, cd_partition_curves **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    if (!*out) return CD_FAIL(err, ENOMEM, "curves");
    (*out)->o = o;
    return CDMPP_OK;
}

void cd_partition_curves_free(cd_partition_curves *c) {
    if (!c) return;
    for (size_t i = 0; i < c->n_op; i++) cd_mem_free(c->op[i].name), cd_mem_free(c->op[i].turn);
    for (size_t i = 0; i < c->n_draw; i++) {
        cd_perf_curve_free(&c->draw[i].p);
        cd_mem_free(c->draw[i].name);
        cd_mem_free(c->draw[i].x);
    }
    cd_buf_free(&c->b);
    cd_mem_free(c);
}

bool cd_partition_curves_full(const cd_partition_curves *c) { return c->o->limit && c->n >= (size_t)c->o->limit; }

void cd_partition_curves_skip(cd_partition_curves *c, const cdmpp_err *why) {
    c->bad++;
    cd_log_err(c->o->log, CD_LOG_WARNING, why);
}

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
    cd_partition_seconds_short(b, p->param[0]);
    if (p->form == CD_PERF_CURVE_STAIRS) {
        cd_buf_puts(b, " and ");
        cd_partition_seconds_short(b, p->param[1]);
        cd_buf_putf(b, " for every %.4g begun", p->param[2]);
        return;
    }
    for (uint32_t k = 0; k < slopes; k++) {
        const bool later = k > 0 || p->form == CD_PERF_CURVE_HINGE;
        cd_buf_puts(b, k ? ", " : " and ");
        cd_partition_seconds_short(b, slope[k]);
        cd_buf_puts(b, " for each");
        if (later) cd_buf_putf(b, " beyond %.4g", at[p->form == CD_PERF_CURVE_HINGE ? 0 : k - 1]);
    }
}

static void put_text(cd_partition_curves *c, const cd_partition_points *p, const cd_perf_curve *f) {
    double x, se;
    cd_buf *b = &c->b;
    cd_buf_putf(b, "%s\n    %s, %s: ", p->name, cd_perf_curve_form_name(f->form), class_of(f));
    put_law(b, f);
    if (cd_perf_curve_turning_point(f, &x, &se)) {
        cd_buf_putf(b, "; turns at %.4g", x);
        if (isfinite(se)) cd_buf_putf(b, " +- %.2g", se);
    }
    cd_buf_putf(b, "\n    %u points of %.6g..%.6g, noise %.1f %%", f->n, f->x_min, f->x_max, 100 * f->noise);
    if (f->n_left_out) cd_buf_putf(b, ", %u left out%s", f->n_left_out, f->warmup ? " (the first, as too slow)" : "");
    cd_buf_puts(b, "\n");
    for (size_t i = 0; i < c->o->n_at; i++) {
        double low, high;
        const double at = c->o->at_v[i];
        cd_perf_curve_interval(f, at, c->o->level_v, &low, &high);
        cd_buf_putf(b, "    at %.6g: ", at);
        cd_partition_seconds_short(b, cd_perf_curve_eval(f, at));
        cd_buf_puts(b, ", in ");
        cd_partition_seconds_short(b, low);
        cd_buf_puts(b, " .. ");
        cd_partition_seconds_short(b, high);
        cd_buf_putf(b, " by %.3g %%%s\n", 100 * c->o->level_v, at > f->x_max || at < f->x_min ? ", outside of the points" : "");
    }
}

static void put_numbers(cd_buf *b, const char *key, const double *v, uint32_t n) {
    cd_buf_putf(b, ",\"%s\":[", key);
    for (uint32_t i = 0; i < n; i++) {
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_real(b, v[i]);
    }
    cd_buf_puts(b, "]");
}

static void put_json(cd_partition_curves *c, const cd_partition_points *p, const cd_perf_curve *f) {
    double x = (double)NAN, se = (double)NAN;
    cd_buf *b = &c->b;
    cd_buf_puts(b, c->n ? ",{" : "{");
    cd_partition_put_text(b, "name", p->name);
    cd_partition_put_text(b, "form", cd_perf_curve_form_name(f->form));
    cd_partition_put_text(b, "class", class_of(f));
    (void)cd_perf_curve_turning_point(f, &x, &se);
    cd_partition_put(b, "turns_at", x);
    cd_partition_put(b, "turns_at_se", se);
    cd_buf_putf(b, ",\"points\":%u,\"left_out\":%u", f->n, f->n_left_out);
    cd_partition_put(b, "least_size", f->x_min);
    cd_partition_put(b, "largest_size", f->x_max);
    cd_partition_put(b, "noise", f->noise);
    put_numbers(b, "parameters", f->param, f->n_param);
    put_numbers(b, "parameters_se", f->se, f->n_param);
    cd_buf_puts(b, ",\"at\":[");
    for (size_t i = 0; i < c->o->n_at; i++) {
        double low, high;
        cd_perf_curve_interval(f, c->o->at_v[i], c->o->level_v, &low, &high);
        cd_buf_puts(b, i ? ",{" : "{");
        cd_partition_put(b, "size", c->o->at_v[i]);
        cd_partition_put(b, "seconds", cd_perf_curve_eval(f, c->o->at_v[i]));
        cd_partition_put(b, "low_s", low);
        cd_partition_put(b, "high_s", high);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
}

/* ---- all curves ---- */
static char *copy_of(const char *s) {
    const size_t n = strlen(s) + 1;
    char *p = cd_mem_alloc(n);
    if (p) memcpy(p, s, n);
    return p;
}

static cdmpp_status count(cd_partition_curves *c, const char *op, const cd_perf_curve *f, cdmpp_err *err) {
    double x, se;
    size_t k = 0;
    while (k < c->n_op && strcmp(c->op[k].name, op) != 0) k++;
    if (k == MAX_OP) return CDMPP_OK; /* of so many operators the first ones are enough */
    op_row *r = &c->op[k];
    if (k == c->n_op) {
        r->name = copy_of(op);
        if (!r->name) return CD_FAIL(err, ENOMEM, "operator");
        c->n_op++;
    }
    r->n++;
    r->of_class[cd_perf_curve_classify(f)]++;
    if (!cd_perf_curve_turning_point(f, &x, &se)) return CDMPP_OK;
    if (r->n_turn == r->cap) {
        const size_t cap = r->cap ? 2 * r->cap : 16;
        double *more = cd_mem_realloc(r->turn, r->cap * sizeof *more, cap * sizeof *more);
        if (!more) return CD_FAIL(err, ENOMEM, "operator");
        r->turn = more;
        r->cap = cap;
    }
    r->turn[r->n_turn++] = x;
    return CDMPP_OK;
}

/* True: the pattern is taken. */
static bool keep_drawn(cd_partition_curves *c, const cd_partition_points *p, const cd_perf_curve *f) {
    if (!c->o->svg || c->n_draw == DRAWN) return false;
    drawn d = {.p = *f, .name = copy_of(p->name), .x = cd_mem_zalloc(2 * p->n, sizeof *d.x), .n = p->n};
    if (!d.name || !d.x) {
        cd_mem_free(d.name);
        cd_mem_free(d.x);
        c->b.oom = true;
        return false;
    }
    d.t = d.x + p->n;
    memcpy(d.x, p->x, p->n * sizeof *d.x);
    memcpy(d.t, p->t, p->n * sizeof *d.t);
    c->draw[c->n_draw++] = d;
    return true;
}

cdmpp_status cd_partition_curves_add(cd_partition_curves *c, const cd_partition_points *p, cdmpp_err *err) {
    const cd_perf_curve_options how = {.tolerance = c->o->tolerance_v};
    cd_perf_curve f;
    cdmpp_err why = {0};
    const cdmpp_status st = cd_perf_curve_fit(p->x, p->t, p->n, &how, &f, &why);
    if (st == CDMPP_ENOMEM) return *err = why, st;
    if (st) {
        cd_err_add_key(&why, p->name);
        cd_partition_curves_skip(c, &why);
        return CDMPP_OK;
    }
    if (c->o->json) put_json(c, p, &f);
    else put_text(c, p, &f);
    c->n++;
    const cdmpp_status counted = count(c, p->op, &f, err);
    if (!keep_drawn(c, p, &f)) cd_perf_curve_free(&f);
    return counted;
}

/* ---- the end ---- */
static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(op_row *r) {
    if (!r->n_turn) return (double)NAN;
    qsort(r->turn, r->n_turn, sizeof *r->turn, ascending);
    return 0.5 * (r->turn[(r->n_turn - 1) / 2] + r->turn[r->n_turn / 2]);
}

static void put_summary(cd_partition_curves *c) {
    cd_buf_puts(&c->b, "\noperator                curves     flat   linear  piecewise  unclear  turns at (median)\n");
    for (size_t k = 0; k < c->n_op; k++) {
        op_row *r = &c->op[k];
        cd_buf_putf(&c->b, "%-22s %7zu  %7zu  %7zu    %7zu  %7zu  ", r->name[0] ? r->name : "-", r->n, r->of_class[0], r->of_class[1], r->of_class[2], r->of_class[3]);
        if (r->n_turn) cd_buf_putf(&c->b, "%.4g\n", median(r));
        else cd_buf_puts(&c->b, "-\n");
    }
}

static void put_summary_json(cd_partition_curves *c, cd_buf *b) {
    cd_buf_puts(b, "{\"curves\":[");
    if (c->b.n) cd_buf_put(b, c->b.p, c->b.n);
    cd_buf_puts(b, "],\"operators\":[");
    for (size_t k = 0; k < c->n_op; k++) {
        op_row *r = &c->op[k];
        cd_buf_puts(b, k ? ",{" : "{");
        cd_partition_put_text(b, "operator", r->name);
        cd_buf_putf(b, ",\"curves\":%zu,\"flat\":%zu,\"linear\":%zu,\"piecewise\":%zu,\"unclear\":%zu", r->n, r->of_class[0], r->of_class[1], r->of_class[2], r->of_class[3]);
        cd_partition_put(b, "turns_at_median", median(r));
        cd_buf_puts(b, "}");
    }
    cd_buf_putf(b, "],\"left_out\":%zu}", c->bad);
    b->oom |= c->b.oom;
}

static void name_us(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); }

static cdmpp_status draw(cd_partition_curves *c, cdmpp_err *err) {
    double lo[2] = {HUGE_VAL, HUGE_VAL}, hi[2] = {0, 0}, x[FINE], y[FINE];
    for (size_t k = 0; k < c->n_draw; k++) {
        drawn *d = &c->draw[k];
        for (size_t i = 0; i < d->n; i++) {
            d->t[i] *= 1e6;
            lo[0] = fmin(lo[0], d->x[i]), hi[0] = fmax(hi[0], d->x[i]);
            lo[1] = fmin(lo[1], d->t[i]), hi[1] = fmax(hi[1], d->t[i]);
        }
    }
    if (!(hi[1] > lo[1])) hi[1] = 2 * lo[1];
    cd_partition_chart chart = {.p = {.x = {lo[0], hi[0], true}, .y = {lo[1], hi[1], true}}};
    cd_partition_chart_begin(&chart, "Curves", "size", "microseconds", name_us, name_us);
    for (size_t k = 0; k < c->n_draw; k++) {
        const drawn *d = &c->draw[k];
        char cls[32];
        snprintf(cls, sizeof cls, "d c%zu", k);
        cd_plot_dots(&chart.p, d->x, d->t, d->n, cls);
        for (int i = 0; i < FINE; i++) {
            x[i] = d->p.x_min * pow(d->p.x_max / d->p.x_min, i / (double)(FINE - 1));
            y[i] = 1e6 * cd_perf_curve_eval(&d->p, x[i]);
        }
        cd_plot_line(&chart.p, x, y, FINE, cd_partition_colour(k));
        cd_partition_chart_legend(&chart, k, d->name);
    }
    return cd_partition_chart_write(&chart, c->o->svg, err);
}

cdmpp_status cd_partition_curves_print(cd_partition_curves *c, size_t *bad, cdmpp_err *err) {
    cd_buf b = {0};
    *bad = c->bad;
    if (!c->n) return CD_FAIL(err, ENODATA, "no curve%s%.60s%s", c->o->op ? " of operator " : "", c->o->op ? c->o->op : "", c->bad ? " that can be used" : "");
    if (c->o->svg) CD_TRY(draw(c, err));
    if (c->o->json) {
        put_summary_json(c, &b);
        return cd_partition_print_result(true, "cdmpp.partition_curve", &b, err);
    }
    if (c->n > 1) put_summary(c);
    return cd_partition_print_result(false, NULL, &c->b, err);
}
