/* stage_schedule -- a block of operators as stages, one behind the other; within a stage several
 * run at a time.
 *
 *      a ──> b ──> d        stage 0   group 0: a        stage 1   group 0: b d
 *       └──> c ──> e                                               group 1: c e
 *
 *   (1) an ending of a set of operators is a part that nothing of the rest reads from: cost(S) =
 *       min over endings E of S of cost(S - E) + stage(E), cost({}) = 0 (IOS, MLSys'21);
 *   (2) groups of a stage are its connected parts, each run in order; pruning: at most r operators
 *       in a group and at most s groups (published: r 3, s 8); 0: no limit;
 *   (3) a stage costs what the callback says; infinity: cannot be. NaN or negative: an error with
 *       names;
 *   (4) the plan is the least over all sequences of such stages; alone, one operator a stage, is
 *       one of them. Ties: the first found.
 * At most CD_STAGE_OPS operators; cut a network into blocks first (cd_stage_blocks). Deterministic.
 * Any thread. Seconds. */
#ifndef CD_STAGE_SCHEDULE_H
#define CD_STAGE_SCHEDULE_H
#include <stdint.h>

#include "base/core/core.h"
#include "profiler/machine/machine.h"

enum { CD_STAGE_OPS = 64 };

typedef struct cd_stage_op {
    const char *name;
    uint32_t first, n_after; /* after[first .. first + n_after) */
} cd_stage_op;

typedef struct cd_stage_graph {
    uint32_t n_op, n_after;
    const cd_stage_op *op; /* (n_op) any order */
    const uint32_t *after; /* (n_after) */
} cd_stage_graph;

typedef struct cd_stage_step {
    uint32_t n_group;
    /* (n_group + 1): op[first[g] .. first[g+1]) are group g, in an order to run in */
    const uint32_t *first;
    const uint32_t *op;
    double seconds; /* filled in plans; 0 when asked */
    /* the only operator runs in so many pieces, one on each unit (cd_stage_solo_split); 0: whole */
    uint32_t split;
} cd_stage_step;

typedef double cd_stage_time(const cd_stage_step *s, void *ctx);

typedef struct cd_stage_options {
    uint32_t r, s; /* 0: no limit */
    cd_stage_time *time;
    void *ctx;
    uint64_t most; /* endings; 0: 1 << 26. Beyond: ERANGE */
} cd_stage_options;

typedef struct cd_stage_plan {
    cd_arena arena;
    uint32_t n_stage;
    cd_stage_step *stage;       /* (n_stage) first to run first */
    double total_s, alone_s;    /* alone_s: one operator a stage, in order */
    uint64_t n_ending, n_asked; /* endings of sets, calls of the callback */
} cd_stage_plan;

/* Errors: EINVALID (a cycle: an operator of it; an edge to nowhere; nothing can run: an operator),
 * ERANGE (more than CD_STAGE_OPS operators; most; a time that is none), ENOMEM. Free `out` after an
 * error too. */
cdmpp_status cd_stage_search(const cd_stage_graph *g, const cd_stage_options *a, cd_stage_plan *out,
                             cdmpp_err *err);
void cd_stage_plan_free(cd_stage_plan *p);

/* A network cut where all paths meet (lost by that: a stage that could go across, so a barrier):
 * block[k] of operator k, blocks in the order to run in. Blocks that fit together into `most`
 * operators are one; a part without such places is cut by order, and there something may be lost.
 * Errors: as search, but any number of operators. */
cdmpp_status cd_stage_blocks(const cd_stage_graph *g, uint32_t most, uint32_t *block,
                             uint32_t *n_block, cdmpp_err *err);

/* A callback's context for stages out of solo times: groups run on units of their own; each
 * operator of a group at its slow-down beside the mean share of the other groups; the stage ends
 * with its slowest group, plus barrier_s. More groups than units: groups queue, the longest
 * first. */
typedef struct cd_stage_solo {
    const double *solo_s, *bytes; /* (n_op) */
    /* (n_op) equal pieces of which an operator consists; 0 or 1: it runs whole. A stage of one
     * operator alone takes all units where that is faster; NULL: none does */
    const int64_t *iterations;
    uint32_t units;
    double barrier_s;
    /* what a piece costs more than a whole operator: a start on another unit */
    double split_s;
    cd_contention contention;
} cd_stage_solo;
double cd_stage_solo_time(const cd_stage_step *s, void *solo); /* a cd_stage_time */
/* Into how many pieces that time cuts the stage's only operator; 0: none. For cd_stage_step.split
 * of a plan. */
uint32_t cd_stage_solo_split(const cd_stage_step *s, const cd_stage_solo *solo);
#endif
