/* Curves as text and as JSON: the law of each, where it turns, seconds at sizes that were asked
 * for; then a summary by operator. */
#include <math.h>
#include <string.h>

#include "profiler/curves/curves.h"

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
