/* The best shares of one operator over devices. They are searched over whole granules and not computed by a formula, because measured times are not affine. */
#include "predictor/partition/shard/shard_ratio.h"

#include <math.h>
#include <string.h>

enum { N = CD_SHARD_RATIO_DEVICES };

double cd_shard_ratio_affine_time(const void *affine, double units) {
    const cd_shard_ratio_affine *a = affine;
    return a->fixed_s + a->unit_s * units;
}

static double carried(const cd_link *l, double fixed, double per_unit, double units) {
    return l ? cd_link_cost(l, (int64_t)ceil(fixed + per_unit * units)) : 0;
}

double cd_shard_ratio_curve_time(const void *curve, double units) {
    const cd_shard_ratio_curve *c = curve;
    return cd_perf_curve_eval(c->pattern, units) + carried(c->in, c->in_bytes, c->in_unit_bytes, units) +
           carried(c->out, c->out_bytes, c->out_unit_bytes, units);
}

double cd_shard_ratio_ceiling(const double *alone_s, uint32_t n) {
    double best = HUGE_VAL, sum = 0;
    for (uint32_t i = 0; i < n; i++) best = fmin(best, alone_s[i]);
    for (uint32_t i = 0; i < n; i++) sum += best / alone_s[i];
    return sum;
}

/* ---- the request ---- */
static int64_t granule_of(const cd_shard_ratio_options *a) { return a->granule ? a->granule : 1; }

static cdmpp_status check(const cd_shard_ratio_options *a, cdmpp_err *err) {
    if (a->n < 1 || a->n > N) return CD_FAIL(err, EINVALID, "expected 1 .. %d devices, found %u", N, a->n);
    if (a->units < 1 || a->granule < 0) return CD_FAIL(err, EINVALID, "expected units and a granule above 0, found %lld, %lld", (long long)a->units, (long long)a->granule);
    if (a->units / granule_of(a) > CD_SHARD_RATIO_GRANULES)
        return CD_FAIL(err, EINVALID, "expected at most %d granules, found %lld", CD_SHARD_RATIO_GRANULES, (long long)(a->units / granule_of(a)));
    if (!(a->join_s >= 0) || !isfinite(a->join_s)) return CD_FAIL(err, EINVALID, "join_s: expected seconds, found %g", a->join_s);
    if (!(a->margin >= 0 && a->margin <= 1)) return CD_FAIL(err, EINVALID, "margin: expected 0 .. 1, found %g", a->margin);
    return CDMPP_OK;
}

static cdmpp_status time_of(const cd_shard_ratio_options *a, uint32_t i, int64_t units, double *out, cdmpp_err *err) {
    const cd_shard_ratio_device *d = &a->device[i];
    *out = units ? d->time(d->ctx, (double)units) : 0;
    if (units && !(*out > 0 && isfinite(*out)))
        return CD_FAIL(err, ENUMERIC, "%s: expected a time of %lld units above 0, found %g", d->name ? d->name : "device", (long long)units, *out);
    return CDMPP_OK;
}

/* Everything that does not depend on the shares. */
static cdmpp_status alone(const cd_shard_ratio_options *a, cd_shard_ratio_plan *p, cdmpp_err *err) {
    double slow = 0;
    memset(p, 0, sizeof *p);
    for (uint32_t i = 0; i < a->n; i++) {
        CD_TRY(time_of(a, i, a->units, &p->alone_s[i], err));
        if (p->alone_s[i] < p->alone_s[p->best]) p->best = i;
        slow = fmax(slow, p->alone_s[i]);
    }
    p->rho = a->n > 1 ? slow / p->alone_s[p->best] : HUGE_VAL;
    p->ceiling = cd_shard_ratio_ceiling(p->alone_s, a->n);
    return CDMPP_OK;
}

/* super: a share takes less than its proportion of the whole time, so the ceiling does not hold; 1e-9 is for rounding. */
static cdmpp_status measure(const cd_shard_ratio_options *a, const int64_t *units, cd_shard_ratio_plan *p, cdmpp_err *err) {
    double most = 0;
    uint32_t parts = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        p->units[i] = units[i];
        CD_TRY(time_of(a, i, units[i], &p->part_s[i], err));
        most = fmax(most, p->part_s[i]);
        parts += units[i] > 0;
        if (p->part_s[i] < p->alone_s[i] * (double)units[i] / (double)a->units * (1 - 1e-9)) p->super = true;
    }
    p->parts = parts;
    p->seconds = most + a->join_s * (parts - 1);
    p->gain = p->alone_s[p->best] / p->seconds;
    return CDMPP_OK;
}

/* ---- exact: shares by dynamic programming ---- */

/* least[j][r][g]: the least time of j parts with g granules together on the devices so far; r: 1 if one of them has the rest of D. took: what the
 * last device got in that solution, to walk back. */
typedef struct {
    const cd_shard_ratio_options *a;
    int64_t granules, rest;
    size_t wide;                /* granules + 1 */
    double *least;              /* (parts + 1, 2, wide) */
    double *next;               /* the same */
    double *cost;               /* (2, wide) of the device at hand: granules, granules and the rest */
    int32_t *took;              /* (n, parts + 1, 2, wide): granules times two, plus whether the rest; -1: none */
} table;

static size_t cell(const table *t, uint32_t parts, int rest, size_t g) { return ((size_t)parts * 2 + (size_t)rest) * t->wide + g; }
static size_t cells(const table *t) { return (size_t)(t->a->n + 1) * 2 * t->wide; }

static cdmpp_status costs_of(table *t, uint32_t i, cdmpp_err *err) {
    for (size_t g = 0; g < t->wide; g++)
        for (int r = 0; r < 2; r++)
            CD_TRY(time_of(t->a, i, (int64_t)g * granule_of(t->a) + (r ? t->rest : 0), &t->cost[(size_t)r * t->wide + g], err));
    return CDMPP_OK;
}

static void offer(table *t, uint32_t i, size_t at, double seconds, int32_t took) {
    if (!(seconds < t->next[at])) return;
    t->next[at] = seconds;
    t->took[(size_t)i * cells(t) + at] = took;
}

/* Device i takes g granules and, where r, the rest. */
static void give(table *t, uint32_t i, size_t g, int r) {
    const double mine = t->cost[(size_t)r * t->wide + g];
    const bool part = g || (r && t->rest);
    for (uint32_t j = 0; j <= i; j++)
        for (int had = 0; had + r <= 1; had++)
            for (size_t before = 0; before + g < t->wide; before++) {
                const double old = t->least[cell(t, j, had, before)];
                if (old < HUGE_VAL) offer(t, i, cell(t, j + part, had + r, before + g), fmax(old, mine), (int32_t)(2 * g) + r);
            }
}

/* Device by device. A pass writes a new table from the old one: a device may take its granules only once. */
static cdmpp_status fill(table *t, cdmpp_err *err) {
    for (size_t k = 0; k < cells(t); k++) t->least[k] = HUGE_VAL;
    t->least[cell(t, 0, 0, 0)] = 0;
    for (uint32_t i = 0; i < t->a->n; i++) {
        CD_TRY(costs_of(t, i, err));
        for (size_t k = 0; k < cells(t); k++) {
            t->next[k] = HUGE_VAL;
            t->took[(size_t)i * cells(t) + k] = -1;
        }
        for (size_t g = 0; g < t->wide; g++)
            for (int r = 0; r < 2; r++) give(t, i, g, r);
        double *swap = t->least;
        t->least = t->next;
        t->next = swap;
    }
    return CDMPP_OK;
}

static void walk_back(const table *t, uint32_t parts, int64_t *units) {
    size_t g = t->wide - 1;
    int r = 1;
    for (uint32_t i = t->a->n; i-- > 0;) {
        const int32_t took = t->took[(size_t)i * cells(t) + cell(t, parts, r, g)];
        const int mine = took % 2;
        const size_t n = (size_t)took / 2;
        units[i] = (int64_t)n * granule_of(t->a) + (mine ? t->rest : 0);
        parts -= units[i] > 0;
        g -= n;
        r -= mine;
    }
}

/* The number of parts is a dimension of the table because each part beyond the first costs join_s, which is added at the end.
 * fill swaps least and next, so `block` keeps the address to free. */
static cdmpp_status search(const cd_shard_ratio_options *a, int64_t *units, cdmpp_err *err) {
    table t = {.a = a, .granules = a->units / granule_of(a), .rest = a->units % granule_of(a)};
    t.wide = (size_t)t.granules + 1;
    double best = HUGE_VAL;
    uint32_t parts = 1;
    t.least = cd_mem_zalloc(2 * cells(&t) + 2 * t.wide, sizeof *t.least);
    t.took = cd_mem_zalloc((size_t)a->n * cells(&t), sizeof *t.took);
    double *const block = t.least;
    cdmpp_status st = block && t.took ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu shares", cells(&t));
    if (!st) {
        t.next = t.least + cells(&t);
        t.cost = t.next + cells(&t);
        st = fill(&t, err);
    }
    for (uint32_t j = 1; !st && j <= a->n; j++) {
        const double s = t.least[cell(&t, j, 1, t.wide - 1)] + a->join_s * (j - 1);
        if (s < best) best = s, parts = j;
    }
    if (!st) walk_back(&t, parts, units);
    cd_mem_free(block);
    cd_mem_free(t.took);
    return st;
}

/* Two devices: each share is tried. */
static cdmpp_status search_two(const cd_shard_ratio_options *a, int64_t *units, cdmpp_err *err) {
    const int64_t g = granule_of(a), granules = a->units / g, rest = a->units % g;
    double best = HUGE_VAL;
    for (int64_t k = 0; k <= granules; k++)
        for (int r = 0; r <= (rest > 0); r++) {
            const int64_t one = k * g + (r ? rest : 0), two = a->units - one;
            double s, t;
            CD_TRY(time_of(a, 0, one, &s, err));
            CD_TRY(time_of(a, 1, two, &t, err));
            s = fmax(s, t) + (one && two ? a->join_s : 0);
            if (s < best) best = s, units[0] = one, units[1] = two;
        }
    return CDMPP_OK;
}

static cdmpp_status only_best(const cd_shard_ratio_options *a, cd_shard_ratio_plan *out, cdmpp_err *err) {
    int64_t units[N] = {0};
    units[out->best] = a->units;
    return measure(a, units, out, err);
}

cdmpp_status cd_shard_ratio_best(const cd_shard_ratio_options *a, cd_shard_ratio_plan *out, cdmpp_err *err) {
    int64_t units[N] = {0};
    CD_TRY(check(a, err));
    CD_TRY(alone(a, out, err));
    CD_TRY(a->n == 2 ? search_two(a, units, err) : search(a, units, err));
    CD_TRY(measure(a, units, out, err));
    if (out->parts > 1 && out->seconds < out->alone_s[out->best] * (1 - a->margin)) return CDMPP_OK;
    out->super = false;
    return only_best(a, out, err);
}

/* ---- shares that are given ---- */
cdmpp_status cd_shard_ratio_given(const cd_shard_ratio_options *a, const int64_t *units, cd_shard_ratio_plan *out, cdmpp_err *err) {
    int64_t left = a->units;
    CD_TRY(check(a, err));
    for (uint32_t i = 0; i < a->n; i++) {
        if (units[i] < 0 || units[i] > left) return CD_FAIL(err, EINVALID, "share %u: expected 0 .. %lld units, found %lld", i, (long long)left, (long long)units[i]);
        left -= units[i];
    }
    if (left) return CD_FAIL(err, EINVALID, "expected shares of %lld units, found %lld", (long long)a->units, (long long)(a->units - left));
    CD_TRY(alone(a, out, err));
    return measure(a, units, out, err);
}

cdmpp_status cd_shard_ratio_equal(const cd_shard_ratio_options *a, cd_shard_ratio_plan *out, cdmpp_err *err) {
    CD_TRY(check(a, err));
    const int64_t g = granule_of(a), granules = a->units / g;
    int64_t units[N] = {0};
    for (uint32_t i = 0; i < a->n; i++) units[i] = (granules / a->n + (i < granules % a->n)) * g;
    units[0] += a->units % g;
    return cd_shard_ratio_given(a, units, out, err);
}

cdmpp_status cd_shard_ratio_fixed(const cd_shard_ratio_options *a, double share, cd_shard_ratio_plan *out, cdmpp_err *err) {
    CD_TRY(check(a, err));
    if (a->n != 2) return CD_FAIL(err, EINVALID, "a fixed ratio is for two devices, found %u", a->n);
    if (!(share >= 0 && share <= 1)) return CD_FAIL(err, EINVALID, "expected a ratio of 0 .. 1, found %g", share);
    const double g = (double)granule_of(a), whole = (double)a->units;
    int64_t units[2] = {share >= 1 ? a->units : (int64_t)fmin(floor(share * whole / g + 0.5) * g, whole), 0};
    units[1] = a->units - units[0];
    return cd_shard_ratio_given(a, units, out, err);
}
