/* schedule_variants -- one schedule, changed in one thing at a time: what does each factor cost?
 *
 *   record ──> base
 *          ──> tile:       step3[1]=8     a length of a split, all divisors
 *          ──> reorder:    step5 2<>3     neighbours of an order swapped
 *          ──> compute_at: step7 it 4, step7 root
 *          ──> fuse:       step2 apart    what was inlined is computed by itself
 *          ──> unroll:     0, 16, 64, 512, 1024;  vectorize: off;  parallel: off
 *          ──> threads:    1, 2 ...;      cache: 1 MB .. 128 MB of others, cold
 *
 *   (1) the number of steps never changes, so that steps which name others stay right;
 *   (2) variants that do not lower, or lower to the base's own steps, are left out;
 *   (3) the order is that of factors, steps and values: the same for any machine.
 * One thread. */
#ifndef CD_SCHEDULE_VARIANTS_H
#define CD_SCHEDULE_VARIANTS_H
#include "features/program/program.h"

#define CD_VARY_FACTORS "tile|reorder|compute_at|fuse|unroll|vectorize|parallel|threads|cache"
enum {
    CD_VARY_TILE,
    CD_VARY_REORDER,
    CD_VARY_COMPUTE_AT,
    CD_VARY_FUSE,
    CD_VARY_UNROLL,
    CD_VARY_VECTORIZE,
    CD_VARY_PARALLEL,
    CD_VARY_THREADS,
    CD_VARY_CACHE,
    CD_VARY_COUNT,
    CD_VARY_BASE = -1
};

typedef struct cd_variant {
    int factor;        /* CD_VARY_* */
    const char *value; /* "step3[1]=8" */
    cd_record record;  /* the base's, with other steps */
    int threads;       /* 0: as the others */
    /* other programs read so much between two runs; 0: there are none */
    size_t others_bytes;
    bool cold;
} cd_variant;

/* "tile,unroll" as bits of *mask, all for NULL; false: *bad (of `text`) is no factor. */
bool cd_schedule_variants_mask(const char *text, unsigned *mask, cd_str *bad);
/* The variants of r by the factors in `mask` (bit k: factor k), the base first; at
 * most `max_threads` threads. They live in `a`; text is shared with r. Errors: those
 * of lowering r itself, ENOMEM. */
cdmpp_status cd_schedule_variants(cd_arena *a, cd_program *p, const cd_task *task,
                                  const cd_record *r, unsigned mask, int max_threads,
                                  CD_KEEP cd_variant **out, size_t *n, cdmpp_err *err);
#endif
