/* Which programs of a data set are fit to learn from, and how many are not, by reason. */
#include "dataset/split/split.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

const char *cd_filter_drop_text(cd_filter_drop d) {
    static const char *const text[] = {
#define CD_X(name, t) t,
        CD_FILTER_MAP(CD_X)
#undef CD_X
    };
    return text[d];
}

/* A kept program of a task on a device, with its place in the draw. */
typedef struct {
    size_t group, i;
    uint64_t rank;
} drawn;

typedef struct {
    const cd_dataset *d;
    const cd_filter_spec *spec;
    uint8_t *keep;
    cd_filter_count *count;
    double low, high; /* seconds, both kept */
    double *latency;  /* (n) of the programs that the percentiles are of */
    size_t *per;      /* (n_task, n_device) kept programs */
    drawn *draw;      /* (n) */
} run;

/* ---- one program ---- */
/* Why program i is no measurement to count with; CD_FILTER_N_DROP: it is one. */
static cd_filter_drop unmeasured(const run *r, size_t i) {
    const cd_dataset *d = r->d;
    const double y = d->latency_s[i];
    if (r->spec->asked && !r->spec->asked[i]) return CD_FILTER_DROP_ASKED;
    if (d->error[i]) return CD_FILTER_DROP_ERROR;
    if (!isfinite(y) || y <= 0 || y >= 1e9) return CD_FILTER_DROP_LATENCY;
    if (d->row_ptr[i + 1] == d->row_ptr[i]) return CD_FILTER_DROP_NO_ROWS;
    if (r->spec->facts && !cd_facts_are_there(d->facts_state[i])) return CD_FILTER_DROP_NO_FACTS;
    return CD_FILTER_N_DROP;
}

static bool wrong_leaves(const run *r, size_t i) {
    const int64_t n = r->spec->n_leaves ? r->d->leaf_ptr[i + 1] - r->d->leaf_ptr[i] : 0;
    for (size_t k = 0; k < r->spec->n_leaves; k++)
        if (r->spec->leaves[k] == n) return false;
    return r->spec->n_leaves > 0;
}

static bool wrong_flop(const run *r, size_t i) {
    const double lo = r->spec->min_flop, hi = r->spec->max_flop,
                 f = lo > 0 || hi > 0 ? r->d->flop[i] : 0;
    return (lo > 0 && !(f >= lo)) || (hi > 0 && !(f >= 0 && f <= hi));
}

static cd_filter_drop reason(const run *r, size_t i) {
    const cd_dataset *d = r->d;
    const double limit = r->spec->max_std_ratio, y = d->latency_s[i];
    const cd_filter_drop why = unmeasured(r, i);
    if (why != CD_FILTER_N_DROP) return why;
    /* Negated, so that a NaN is noisy. */
    if (limit > 0 && d->repeats[i] > 1 && !(d->latency_std_s[i] <= limit * d->latency_mean_s[i]))
        return CD_FILTER_DROP_NOISY;
    if (wrong_leaves(r, i)) return CD_FILTER_DROP_LEAVES;
    if (wrong_flop(r, i)) return CD_FILTER_DROP_FLOP;
    return y < r->low || y > r->high ? CD_FILTER_DROP_RANGE : CD_FILTER_N_DROP;
}

static void find_range(run *r) {
    const double lo = r->spec->low_percentile, hi = r->spec->high_percentile;
    size_t n = 0;
    r->low = 0;
    r->high = INFINITY;
    if (lo <= 0 && (hi <= 0 || hi >= 100)) return;
    for (size_t i = 0; i < r->d->n; i++)
        if (unmeasured(r, i) == CD_FILTER_N_DROP) r->latency[n++] = r->d->latency_s[i];
    if (!n) return;
    cd_sort_doubles(r->latency, n);
    if (lo > 0) r->low = cd_sort_quantile(r->latency, n, lo / 100);
    if (hi > 0 && hi < 100) r->high = cd_sort_quantile(r->latency, n, hi / 100);
}

/* ---- tasks ---- */
static size_t group_of(const cd_dataset *d, size_t i) {
    return (size_t)d->task[i] * d->n_device + d->device[i];
}

static void drop(run *r, size_t i, cd_filter_drop why) {
    r->keep[i] = 0;
    r->count->drop[why]++;
}

static int by_draw(const void *a, const void *b) {
    const drawn *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* apart from the draws of the split, which may have the same seed */
static const uint64_t draw_stream = 0x66696c74;

static void drop_surplus(run *r) {
    size_t n = 0, nth = 0;
    for (size_t i = 0; i < r->d->n; i++) {
        if (!r->keep[i] || (int64_t)r->per[group_of(r->d, i)] <= r->spec->max_per_task) continue;
        r->draw[n++] =
            (drawn){group_of(r->d, i), i,
                    cd_rng_at(r->spec->seed ^ draw_stream, cd_stable_id_program(r->d, i))};
    }
    if (n) qsort(r->draw, n, sizeof *r->draw, by_draw);
    for (size_t k = 0; k < n; k++) {
        nth = k && r->draw[k].group == r->draw[k - 1].group ? nth + 1 : 0;
        if ((int64_t)nth >= r->spec->max_per_task) drop(r, r->draw[k].i, CD_FILTER_DROP_SURPLUS);
    }
}

static void filter(run *r) {
    const cd_dataset *d = r->d;
    find_range(r);
    for (size_t i = 0; i < d->n; i++) {
        const cd_filter_drop why = reason(r, i);
        r->keep[i] = 1;
        if (why != CD_FILTER_N_DROP) drop(r, i, why);
        else r->per[group_of(d, i)]++;
    }
    for (size_t i = 0; i < d->n; i++)
        if (r->keep[i] && (int64_t)r->per[group_of(d, i)] < r->spec->min_per_task)
            drop(r, i, CD_FILTER_DROP_RARE);
    if (r->spec->max_per_task > 0) drop_surplus(r);
    for (size_t i = 0; i < d->n; i++) r->count->kept += r->keep[i];
}

cdmpp_status cd_filter(const cd_dataset *d, const cd_filter_spec *spec, uint8_t *keep,
                       cd_filter_count *count, cdmpp_err *err) {
    run r = {.d = d, .spec = spec, .keep = keep, .count = count};
    *count = (cd_filter_count){.in = d->n};
    cd_arena a = {0};
    r.per = cd_arena_zalloc(&a, d->n_task * d->n_device, sizeof *r.per);
    r.latency = CD_NEWN(&a, double, d->n);
    r.draw = CD_NEWN(&a, drawn, spec->max_per_task > 0 ? d->n : 0);
    const bool ok = !a.oom;
    if (ok) filter(&r);
    cd_arena_free(&a);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "filter of %zu programs", d->n);
}
