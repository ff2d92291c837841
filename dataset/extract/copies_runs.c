/* How slow a run was as a whole: its programs against the same programs in other runs. log time =
 * program + run + noise; the runs' parts are found one after another by medians, so a second mode
 * that hits some programs, or a slow run beside many others, moves nothing else. */
#include <math.h>
#include <string.h>

#include "dataset/extract/extract.h"

enum { MAX_SWEEP = 50 };
#define SETTLED 1e-4 /* of a log ratio: far below what repeats differ by */

typedef struct {
    const cd_run_point *p;
    size_t n, n_run;
    uint32_t *first, *end; /* (n) of the points of the same program */
    uint32_t *by_run;      /* (n) points, run by run */
    uint32_t *at;          /* (n_run + 1) into by_run */
    double *part;          /* (n_run) log factor so far */
    double *diff, *other;  /* (n) scratch */
    uint32_t *root;        /* (n_run) runs that shared programs join */
} scale;

static uint32_t root_of(uint32_t *root, uint32_t r) {
    while (root[r] != r) r = root[r] = root[root[r]];
    return r;
}

static cdmpp_status allocate(scale *s, cd_arena *a, cdmpp_err *err) {
    s->first = CD_NEWN(a, uint32_t, s->n + 1);
    s->end = CD_NEWN(a, uint32_t, s->n + 1);
    s->by_run = CD_NEWN(a, uint32_t, s->n + 1);
    s->at = CD_NEWN(a, uint32_t, s->n_run + 1);
    s->root = CD_NEWN(a, uint32_t, s->n_run + 1);
    s->part = CD_NEWN(a, double, s->n_run + 1);
    s->diff = CD_NEWN(a, double, s->n + 1);
    s->other = CD_NEWN(a, double, s->n + 1);
    return a->oom ? CD_FAIL(err, ENOMEM, "%zu measurements of shared programs", s->n) : CDMPP_OK;
}

/* Points of a program stand together; of a run they are listed. */
static void index_points(scale *s) {
    for (size_t i = 0, j; i < s->n; i = j) {
        for (j = i; j < s->n && s->p[j].program == s->p[i].program; j++) {
            s->first[j] = (uint32_t)i;
            const uint32_t x = root_of(s->root, s->p[i].run), y = root_of(s->root, s->p[j].run);
            s->root[x > y ? x : y] = x < y ? x : y;
        }
        for (size_t k = i; k < j; k++) s->end[k] = (uint32_t)j;
    }
    for (size_t i = 0; i < s->n; i++) s->at[s->p[i].run + 1]++;
    for (size_t r = 0; r < s->n_run; r++) s->at[r + 1] += s->at[r];
    for (size_t i = 0; i < s->n; i++) s->by_run[s->at[s->p[i].run]++] = (uint32_t)i;
    /* each stands at its end: the beginning of the next */
    memmove(s->at + 1, s->at, s->n_run * sizeof *s->at);
    s->at[0] = 0;
}

/* What the other runs say of the program of point i. */
static double elsewhere(const scale *s, uint32_t i) {
    size_t n = 0;
    for (uint32_t k = s->first[i]; k < s->end[i]; k++)
        if (s->p[k].run != s->p[i].run) s->other[n++] = s->p[k].log_s - s->part[s->p[k].run];
    cd_sort_doubles(s->other, n);
    return cd_sort_median(s->other, n);
}

/* How much the part of a run changes; the runs before it have changed already. */
static double settle(scale *s, size_t r) {
    const size_t n = s->at[r + 1] - s->at[r];
    if (!n) return 0;
    for (size_t k = 0; k < n; k++) {
        const uint32_t i = s->by_run[s->at[r] + k];
        s->diff[k] = s->p[i].log_s - elsewhere(s, i);
    }
    cd_sort_doubles(s->diff, n);
    const double old = s->part[r];
    s->part[r] = cd_sort_median(s->diff, n);
    return fabs(s->part[r] - old);
}

static bool judged(const scale *s, size_t r) {
    return s->at[r + 1] - s->at[r] >= CD_RUN_LEAST_SHARED;
}

/* The middle part of the judged runs that are joined with run r; the smaller middle of an even
 * number. */
static double middle(scale *s, size_t r) {
    size_t n = 0;
    for (size_t k = 0; k < s->n_run; k++)
        if (judged(s, k) && root_of(s->root, (uint32_t)k) == root_of(s->root, (uint32_t)r))
            s->other[n++] = s->part[k];
    cd_sort_doubles(s->other, n);
    return s->other[(n - 1) / 2];
}

cdmpp_status cd_copies_scale(const cd_run_point *p, size_t n, size_t n_run, cd_run_scale *out,
                             cdmpp_err *err) {
    cd_arena a = {0};
    scale s = {.p = p, .n = n, .n_run = n_run};
    const cdmpp_status st = allocate(&s, &a, err);
    if (!st) {
        for (size_t r = 0; r < n_run; r++) s.root[r] = (uint32_t)r, s.part[r] = 0;
        memset(s.at, 0, (n_run + 1) * sizeof *s.at);
        index_points(&s);
        double moved = 1;
        for (int k = 0; k < MAX_SWEEP && moved > SETTLED; k++) {
            moved = 0;
            for (size_t r = 0; r < n_run; r++) moved = fmax(moved, settle(&s, r));
        }
        for (size_t r = 0; r < n_run; r++)
            out[r] = (cd_run_scale){judged(&s, r) ? exp(s.part[r] - middle(&s, r)) : 1,
                                    s.at[r + 1] - s.at[r]};
    }
    cd_arena_free(&a);
    return st;
}
