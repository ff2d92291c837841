/* Asked sizes: a call beside one of programs that are made for just that size. Both run in turns: a
 * change of the machine's speed meets both. */
#include "predictor/dynamic/dynamic_internal.h"

#include <math.h>

#include "profiler/host/host.h"

enum { LEAST_TURNS = 7, MOST_TURNS = 300, CALLS = 3, CHOICES = 1000 };
static const double BUDGET_S = 1;

typedef struct {
    double copy[MOST_TURNS], pass[MOST_TURNS], call[MOST_TURNS], exact[MOST_TURNS],
        ratio[MOST_TURNS];
    uint32_t n;
} turns;

/* The fastest of some calls in a row; the first one finds the caches of the other programs. */
static cdmpp_status turn(cd_dynamic *d, cd_dynamic_net *n, int64_t size, const cd_dynamic_data *x,
                         void **result, cd_dynamic_times *best, cdmpp_err *err) {
    cd_dynamic_times t;
    for (int k = 0; k < CALLS; k++) {
        CD_TRY(cd_dynamic_run(d, n, size, (const void *const *)x->input, result, &t, err));
        if (!k || t.copy_s + t.pass_s < best->copy_s + best->pass_s) *best = t;
    }
    return CDMPP_OK;
}

/* One choice is shorter than the clock can tell. */
static double time_choice(const cd_dynamic *d, int64_t size) {
    size_t k = 0, sum = 0;
    const double from = cd_clock_wall();
    for (int i = 0; i < CHOICES; i++) {
        (void)cd_dynamic_choose(d, size, &k, NULL);
        sum += k;
    }
    const double s = (cd_clock_wall() - from) / CHOICES;
    return sum < SIZE_MAX ? s : 0;
}

static void settle(turns *t, cd_dynamic_row *row) {
    double *const v[] = {t->copy, t->pass, t->call, t->exact, t->ratio};
    for (size_t k = 0; k < sizeof v / sizeof *v; k++) cd_sort_doubles(v[k], t->n);
    row->time.copy_s = cd_sort_median(t->copy, t->n);
    row->time.pass_s = cd_sort_median(t->pass, t->n);
    row->call_s = cd_sort_median(t->call, t->n);
    row->exact_s = cd_sort_median(t->exact, t->n);
    row->loss = cd_sort_median(t->ratio, t->n) - 1;
    row->low = cd_sort_quantile(t->ratio, t->n, 0.25) - 1,
    row->high = cd_sort_quantile(t->ratio, t->n, 0.75) - 1;
}

/* `point` NULL: nothing serves the size, and only the exact programs are timed. */
static cdmpp_status time_both(cd_dynamic *d, cd_dynamic_net *point, cd_dynamic_net *exact,
                              cd_dynamic_row *row, const cd_dynamic_data *x, cdmpp_err *err) {
    const double until = cd_clock_wall() + (d->o->budget_s > 0 ? d->o->budget_s : BUDGET_S);
    cd_dynamic_times a = {0}, b;
    turns t;
    for (t.n = 0; t.n < MOST_TURNS && (t.n < LEAST_TURNS || cd_clock_wall() < until); t.n++) {
        if (d->o->stop && *d->o->stop) return CD_FAIL(err, EINTERRUPTED, "while sizes were timed");
        if (point) CD_TRY(turn(d, point, row->size, x, x->result, &a, err));
        if (exact) CD_TRY(turn(d, exact, row->size, x, x->expect, &b, err));
        else b = a;
        t.copy[t.n] = a.copy_s, t.pass[t.n] = a.pass_s;
        t.call[t.n] = row->time.choose_s + a.copy_s + a.pass_s;
        t.exact[t.n] = b.copy_s + b.pass_s;
        t.ratio[t.n] = exact ? t.call[t.n] / t.exact[t.n] : 1;
    }
    settle(&t, row);
    row->difference = point && exact ? cd_dynamic_data_difference(d, row->size, x) : 0;
    return CDMPP_OK;
}

static cdmpp_status run_row(cd_dynamic *d, cd_dynamic_row *row, cdmpp_err *err) {
    cd_dynamic_net exact = {0};
    cd_dynamic_data x = {0};
    size_t k = 0;
    cdmpp_status st = CDMPP_OK;
    row->st = cd_dynamic_choose(d, row->size, &k, &row->err);
    if (row->st == CDMPP_ERANGE) return CDMPP_OK;
    if (row->st && d->only_points) return CDMPP_OK; /* its shapes at this size are not known */
    cd_dynamic_net *point = &d->net[k];
    row->point = point->size;
    row->time.choose_s = time_choice(d, row->size);
    if (point->size != row->size) st = cd_dynamic_net_open(d, row->size, &exact, err);
    if (!st) st = cd_dynamic_data_make(d, row->size, &x, err);
    if (!st) st = time_both(d, point, exact.live ? &exact : NULL, row, &x, err);
    cd_arena_free(&x.arena);
    cd_dynamic_net_close(&exact);
    if (!st && row->difference > CD_DYNAMIC_SAME)
        row->st = CD_FAIL(&row->err, ENUMERIC,
                          "%s=%lld: results differ from those of programs of this size by %.2g of "
                          "the largest value",
                          d->o->sizes->over, (long long)row->size, row->difference);
    return st;
}

cdmpp_status cd_dynamic_measure(cd_dynamic *d, const int64_t *size, size_t n, cd_dynamic_result *r,
                                cdmpp_err *err) {
    cd_affinity all;
    cdmpp_status st = CDMPP_OK;
    if (n > CD_DYNAMIC_MOST_ASKED)
        return CD_FAIL(err, EUSAGE, "%zu sizes: at most %d", n, CD_DYNAMIC_MOST_ASKED);
    r->left = cd_host_load_left(1);
    for (r->n = 0; r->n < n && !st; r->n++) {
        r->row[r->n] = (cd_dynamic_row){.size = size[r->n]};
        cd_affinity_get(&all);
        (void)cd_affinity_last(1);
        st = run_row(d, &r->row[r->n], err);
        cd_affinity_set(&all, 0);
    }
    return st;
}
