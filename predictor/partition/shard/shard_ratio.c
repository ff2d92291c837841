/* The best shares of one operator over devices. They are searched over whole granules and not
 * computed by a formula, because measured times are not affine. */
#include "predictor/partition/shard/shard_ratio.h"

#include <math.h>
#include <string.h>

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
} table;

static size_t cells(const table *t) { return (size_t)(t->n + 1) * t->wide; }

/* Device i takes g granules. */
static void give(table *t, uint32_t i, size_t g) {
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
static void fill(table *t) {
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
    table t = {.device = device, .n = n, .wide = (size_t)granules + 1};
    double *const block = t.least = cd_mem_zalloc(2 * cells(&t), sizeof *t.least);
    uint32_t parts = 1;
    size_t g = granules;
    t.took = cd_mem_zalloc(n * cells(&t), sizeof *t.took);
    if (block && t.took) {
        t.next = t.least + cells(&t);
        fill(&t);
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
