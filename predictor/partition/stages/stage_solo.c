/* Stages out of the times that operators take alone: groups of a stage queue on the units, and each
 * operator is slowed by the share of the memory that the other groups take meanwhile. */
#include <math.h>
#include <stdlib.h>

#include "predictor/partition/stages/stages.h"

static double share_in(const cd_stage_solo *t, uint32_t op) {
    return t->bytes
               ? cd_contention_share(t->bytes[op], t->solo_s[op], t->contention.peak_bytes_per_s)
               : 0;
}

static double mean_share(const cd_stage_solo *t, const cd_stage_step *s, uint32_t g) {
    double busy = 0, sum = 0;
    for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++)
        busy += share_in(t, s->op[i]) * t->solo_s[s->op[i]], sum += t->solo_s[s->op[i]];
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

/* All units at work on one operator: as long as the largest piece, beside units of the same
 * share. */
static double split_s(const cd_stage_solo *t, uint32_t op, uint32_t pieces) {
    const double own = share_in(t, op);
    const int64_t all = t->iterations[op], most = (all + pieces - 1) / pieces;
    return t->solo_s[op] * (double)most / (double)all *
           cd_contention_slow(&t->contention, own, own * pieces, pieces - 1, false);
}

static double whole_s(const cd_stage_solo *t, uint32_t op) {
    const double own = share_in(t, op);
    return t->solo_s[op] * cd_contention_slow(&t->contention, own, own, 0, false);
}

uint32_t cd_stage_solo_split(const cd_stage_step *s, const cd_stage_solo *t) {
    if (!t->iterations || s->n_group != 1 || s->first[1] != s->first[0] + 1 || t->units < 2)
        return 0;
    const uint32_t op = s->op[s->first[0]];
    const uint32_t pieces =
        t->iterations[op] < (int64_t)t->units ? (uint32_t)t->iterations[op] : t->units;
    return pieces > 1 && split_s(t, op, pieces) + t->split_s < whole_s(t, op) ? pieces : 0;
}

double cd_stage_solo_time(const cd_stage_step *s, void *solo) {
    const cd_stage_solo *t = solo;
    const uint32_t pieces = cd_stage_solo_split(s, t);
    if (pieces) return split_s(t, s->op[s->first[0]], pieces) + t->split_s + t->barrier_s;
    double share[CD_STAGE_OPS], length[CD_STAGE_OPS], all = 0;
    const uint32_t units = t->units ? t->units : 1,
                   at_once = s->n_group < units ? s->n_group : units;
    for (uint32_t g = 0; g < s->n_group; g++) all += share[g] = mean_share(t, s, g);
    for (uint32_t g = 0; g < s->n_group; g++) {
        const double beside =
            s->n_group > 1 ? (all - share[g]) * (at_once - 1) / (s->n_group - 1) : 0;
        length[g] = 0;
        for (uint32_t i = s->first[g]; i < s->first[g + 1]; i++) {
            const double own = share_in(t, s->op[i]);
            length[g] += t->solo_s[s->op[i]] *
                         cd_contention_slow(&t->contention, own, own + beside, at_once - 1, false);
        }
    }
    return queued(length, s->n_group, units) + t->barrier_s;
}
