/* Candidate shares of an axis for more than two devices. All combinations would be too many, so
 * four are tried: equal, fixed, the network's ratio and the best by shard_ratio.h. */
#include <math.h>
#include <string.h>

#include "predictor/partition/shard/shard_plan_internal.h"
#include "predictor/partition/shard/shard_ratio.h"

/* The best shares of one operator over devices. They are searched over whole granules and not
 * computed by a formula, because measured times are not affine. */

static double time_of(const cd_shard_ratio_device *d, uint32_t granules) {
    return granules ? d->time(d->ctx, granules) : 0;
}

/* ---- dynamic programming ---- */

/* least[j][g]: the least time of j parts with g granules together on the devices so far. took: what
 * the last device got in that solution, to walk back. */
typedef struct {
    const cd_shard_ratio_device *device;
    uint32_t n;
    size_t wide;   /* granules + 1 */
    double *least; /* (n + 1, wide) */
    double *next;  /* the same */
    int32_t *took; /* (n, n + 1, wide) */
} table_ratio;

static size_t cells(const table_ratio *t) { return (size_t)(t->n + 1) * t->wide; }

/* Device i takes g granules. */
static void give(table_ratio *t, uint32_t i, size_t g) {
    const double mine = time_of(&t->device[i], (uint32_t)g);
    for (uint32_t j = 0; j <= i; j++)
        for (size_t before = 0; before + g < t->wide; before++) {
            const size_t at = (j + (g > 0)) * t->wide + before + g;
            const double seconds = fmax(t->least[j * t->wide + before], mine);
            if (!(seconds < t->next[at])) continue;
            t->next[at] = seconds;
            t->took[(size_t)i * cells(t) + at] = (int32_t)g;
        }
}

/* Device by device. A pass writes a new table from the old one: a device may take its granules only
 * once. */
static void fill_ratio(table_ratio *t) {
    for (size_t k = 0; k < cells(t); k++) t->least[k] = HUGE_VAL;
    t->least[0] = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < cells(t); k++) t->next[k] = HUGE_VAL;
        for (size_t g = 0; g < t->wide; g++) give(t, i, g);
        double *swap = t->least;
        t->least = t->next;
        t->next = swap;
    }
}

/* Of plans that are equally fast the one with the fewest parts. fill swaps least and next, so
 * `block` keeps the address to free. */
static cdmpp_status search(const cd_shard_ratio_device *device, uint32_t n, uint32_t granules,
                           uint32_t *share, cdmpp_err *err) {
    table_ratio t = {.device = device, .n = n, .wide = (size_t)granules + 1};
    double *const block = t.least = cd_mem_zalloc(2 * cells(&t), sizeof *t.least);
    uint32_t parts = 1;
    size_t g = granules;
    t.took = cd_mem_zalloc(n * cells(&t), sizeof *t.took);
    if (block && t.took) {
        t.next = t.least + cells(&t);
        fill_ratio(&t);
        for (uint32_t j = 2; j <= n; j++)
            if (t.least[j * t.wide + g] < t.least[parts * t.wide + g]) parts = j;
        for (uint32_t i = n; i-- > 0; g -= share[i]) {
            share[i] = (uint32_t)t.took[i * cells(&t) + parts * t.wide + g];
            parts -= share[i] > 0;
        }
    }
    const cdmpp_status st =
        block && t.took ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu shares", cells(&t));
    cd_mem_free(block);
    cd_mem_free(t.took);
    return st;
}

/* ---- two devices: each share is tried ---- */

static void search_two(const cd_shard_ratio_device *device, uint32_t granules, uint32_t *share) {
    double best = HUGE_VAL;
    for (uint32_t k = 0; k <= granules; k++) {
        const double s = fmax(time_of(&device[0], k), time_of(&device[1], granules - k));
        if (!(s < best)) continue;
        best = s;
        share[0] = k;
        share[1] = granules - k;
    }
}

cdmpp_status cd_shard_ratio_best(const cd_shard_ratio_device *device, uint32_t n, uint32_t granules,
                                 uint32_t *share, cdmpp_err *err) {
    double together = 0, alone = HUGE_VAL;
    uint32_t best = 0;
    if (n < 1 || n > CD_SHARD_RATIO_DEVICES)
        return CD_FAIL(err, EINVALID, "expected 1 .. %d devices, found %u", CD_SHARD_RATIO_DEVICES,
                       n);
    if (n == 2) search_two(device, granules, share);
    else CD_TRY(search(device, n, granules, share, err));
    for (uint32_t i = 0; i < n; i++) {
        const double all = time_of(&device[i], granules);
        together = fmax(together, time_of(&device[i], share[i]));
        if (!(all < alone)) continue;
        alone = all;
        best = i;
    }
    if (together < alone) return CDMPP_OK;
    memset(share, 0, n * sizeof *share);
    share[best] = granules;
    return CDMPP_OK;
}

typedef struct table { /* seconds at some granules, between them by straight lines */
    uint32_t n, at[6];
    double seconds[6];
} table;

#define CANNOT 1e6

static double between(const void *ctx, double units) {
    const table *t = ctx;
    uint32_t i = 1;
    while (i + 1 < t->n && units > t->at[i]) i++;
    const double a = t->at[i - 1], b = t->at[i], f = (units - a) / (b - a);
    return fmax(1e-12, t->seconds[i - 1] + f * (t->seconds[i] - t->seconds[i - 1]));
}

static void fill(table *t, uint32_t granules, uint32_t device, cd_shard_planner_curve *curve,
                 void *ctx) {
    const uint32_t want[] = {1, granules / 4, granules / 2, 3 * granules / 4, granules};
    t->n = 0;
    for (int i = 0; i < 5; i++) {
        if (!want[i] || (t->n && t->at[t->n - 1] >= want[i])) continue;
        const double v = curve(ctx, device, want[i]);
        t->at[t->n] = want[i];
        t->seconds[t->n++] = v < CANNOT ? v : CANNOT;
    }
}

/* Whole granules nearest to shares, by the largest remainders. */
static void rounded(const double *share, uint32_t n, uint32_t granules, uint32_t *units) {
    double left[CD_MACHINE_DEVICES];
    uint32_t sum = 0;
    for (uint32_t d = 0; d < n; d++) {
        units[d] = (uint32_t)floor(share[d] * granules + 1e-9);
        left[d] = share[d] * granules - units[d];
        sum += units[d];
    }
    for (; sum < granules; sum++) {
        uint32_t most = 0;
        for (uint32_t d = 1; d < n; d++)
            if (left[d] > left[most]) most = d;
        units[most]++, left[most] -= 1;
    }
}

/* Only devices that may run the kind keep a share, normalized to 1; false: none of them has any. */
static bool among(const cd_shard_planner_kind *k, uint32_t n, double *share) {
    double sum = 0;
    for (uint32_t d = 0; d < n; d++) sum += share[d] = cd_shard_planner_allows(k, d) ? share[d] : 0;
    for (uint32_t d = 0; d < n && sum > 0; d++) share[d] /= sum;
    return sum > 0;
}

static void put(uint32_t (*units)[CD_MACHINE_DEVICES], uint32_t *n, const uint32_t *one) {
    for (uint32_t i = 0; i < *n; i++)
        if (!memcmp(units[i], one, sizeof units[i])) return;
    memcpy(units[(*n)++], one, sizeof units[0]);
}

/* The search over whole granules needs a time for each share; it takes them from a table of a few
 * shares, because each question to the cost model is expensive. The margin is 0 here: the planner
 * applies its own later. */
static cdmpp_status best(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                         uint32_t granules, cd_shard_planner_curve *curve, void *ctx,
                         uint32_t *units, cdmpp_err *err) {
    table t[CD_MACHINE_DEVICES];
    cd_shard_ratio_device device[CD_MACHINE_DEVICES] = {{0}};
    uint32_t who[CD_MACHINE_DEVICES], share[CD_MACHINE_DEVICES], n = 0;
    for (uint32_t d = 0; d < s->n_device; d++) {
        if (!cd_shard_planner_allows(k, d)) continue;
        fill(&t[n], granules, d, curve, ctx);
        device[n] = (cd_shard_ratio_device){between, &t[n]};
        who[n++] = d;
    }
    CD_TRY(cd_shard_ratio_best(device, n, granules, share, err));
    for (uint32_t i = 0; i < n; i++) units[who[i]] = share[i];
    return CDMPP_OK;
}

/* Shares of the baselines (equal, fixed) are always among them; the network's ratio and the best
 * ones only for kinds that are optimized (look). */
cdmpp_status cd_shard_planner_shares(const cd_shard_planner *s, const cd_shard_planner_kind *k,
                                     uint32_t granules, cd_shard_planner_curve *curve, void *ctx,
                                     uint32_t (*units)[CD_MACHINE_DEVICES], uint32_t *n,
                                     cdmpp_err *err) {
    uint32_t one[CD_MACHINE_DEVICES] = {0};
    double share[CD_MACHINE_DEVICES];
    *n = 0;
    for (uint32_t d = 0; d < s->n_device; d++) share[d] = 1;
    if (among(k, s->n_device, share))
        rounded(share, s->n_device, granules, one), put(units, n, one);
    for (uint32_t d = 0; d < s->n_device; d++)
        share[d] = d ? (1 - s->fixed) / (s->n_device - 1) : s->fixed;
    memset(one, 0, sizeof one);
    if (among(k, s->n_device, share))
        rounded(share, s->n_device, granules, one), put(units, n, one);
    if (!k->look) return CDMPP_OK;
    memcpy(share, s->ratio, sizeof share);
    memset(one, 0, sizeof one);
    if (among(k, s->n_device, share))
        rounded(share, s->n_device, granules, one), put(units, n, one);
    memset(one, 0, sizeof one);
    CD_TRY(best(s, k, granules, curve, ctx, one, err));
    put(units, n, one);
    return CDMPP_OK;
}
