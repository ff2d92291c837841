/* Stages out of the times that operators take alone: groups of a stage queue on the units, and each operator
 * is slowed by the share of the memory that the other groups take meanwhile. */
#include <math.h>
#include <stdlib.h>

#include "predictor/partition/stages/stages.h"

static double share_in(const cd_stage_solo *t, uint32_t op) { return t->bytes ? cd_contention_share(t->bytes[op], t->solo_s[op], t->contention.peak_bytes_per_s) : 0; }

static double mean_share(const cd_stage_solo *t, const cd_stage_step *s, uint32_t g) {
    double busy = 0, sum = 0;
    for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) busy += share_in(t, s->op[i]) * t->solo_s[s->op[i]], sum += t->solo_s[s->op[i]];
    return sum > 0 ? busy / sum : 0;
}

static int longest_first(const void *pa, const void *pb) {
    const double a = *(const double *)pa, b = *(const double *)pb;
    return (a < b) - (a > b);
}

/* Groups onto units, the longest first, each to the unit that is free first. */
static double queued(double *length, uint32_t n, uint32_t units) {
    double load[CD_STAGE_OPS] = {0}, most = 0;
    if (units > CD_STAGE_OPS) units = CD_STAGE_OPS;
    qsort(length, n, sizeof *length, longest_first);
    for (uint32_t g = 0; g < n; g++) {
        uint32_t at = 0;
        for (uint32_t u = 1; u < units; u++)
            if (load[u] < load[at]) at = u;
        load[at] += length[g];
        most = fmax(most, load[at]);
    }
    return most;
}

double cd_stage_solo_time(const cd_stage_step *s, void *solo) {
    const cd_stage_solo *t = solo;
    double share[CD_STAGE_OPS], length[CD_STAGE_OPS], all = 0;
    const uint32_t units = t->units ? t->units : 1, at_once = s->n_group < units ? s->n_group : units;
    for (uint32_t g = 0; g < s->n_group; g++) all += share[g] = mean_share(t, s, g);
    for (uint32_t g = 0; g < s->n_group; g++) {
        const double beside = s->n_group > 1 ? (all - share[g]) * (at_once - 1) / (s->n_group - 1) : 0;
        length[g] = 0;
        for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
            const double own = share_in(t, s->op[i]);
            length[g] += t->solo_s[s->op[i]] * cd_contention_slow(&t->contention, own, own + beside, at_once - 1, false);
        }
    }
    return queued(length, s->n_group, units) + t->barrier_s;
}
