/* sketch -- the schedules that a tuner may choose from, by Ansor's rules.
 *
 *   task's DAG ──sketch rules──> sketches (open tile lengths) ──sample──> steps of a record
 *
 * The rules, their order and their parameters are those of TVM v0.9's
 * SketchPolicy (spec 8.1, 8.2): multi-level tiling SSRSRS on CPUs, SSSRRSRS with
 * shared-memory stages on GPUs, fusion, inlining, cache write, rfactor and
 * cross-thread reduction. The random numbers are ours (base/rng.h): schedule i
 * of a seed is the same on any machine and thread.
 * A space is immutable once made: share it. A sampler belongs to one thread. */
#ifndef CD_SKETCH_H
#define CD_SKETCH_H
#include "features/record.h"
#include "features/task.h"

typedef struct cd_sketches cd_sketches;
typedef struct cd_sampler cd_sampler;

/* What a schedule is made of: one of n at each point where the rules leave a choice. */
typedef enum cd_choice_kind {
    CD_CHOICE_SKETCH, CD_CHOICE_TILE, CD_CHOICE_PLACE, CD_CHOICE_PARALLEL, CD_CHOICE_UNROLL, CD_CHOICE_VECTOR
} cd_choice_kind;
typedef struct cd_choice {
    uint32_t pick, n;           /* pick < n */
    uint8_t kind;
    uint16_t at;                /* the step (TILE) or stage it is about */
} cd_choice;

/* All sketches of a task. gpu: for thread-bound targets. Errors: ENOTASK (no DAG), EUNSUPPORTED (too many stages),
 * ENOMEM. */
cdmpp_status cd_sketches_new(CD_KEEP const cd_task *task, const cd_hardware *hw, bool gpu, CD_GIVE cd_sketches **out, cdmpp_err *err);
void cd_sketches_free(CD_TAKE cd_sketches *s); /* NULL is fine */
size_t cd_sketches_count(const cd_sketches *s);

cdmpp_status cd_sampler_new(CD_KEEP const cd_sketches *s, uint64_t seed, CD_GIVE cd_sampler **out, cdmpp_err *err);
void cd_sampler_free(CD_TAKE cd_sampler *w); /* NULL is fine */
/* Random schedule number i: only step and n_step of *r are written; they live
 * until the next call. Errors: EREJECTED (this draw breaks a rule: take the
 * next i), ENOMEM. */
cdmpp_status cd_sampler_draw(cd_sampler *w, uint64_t i, cd_record *r, cdmpp_err *err);

/* What TVM's tuner takes for a target without own numbers: of CPUs by the
 * machine's cores and vectors; of GPUs by CUDA's limits. */
cd_hardware cd_hardware_default(bool gpu, int64_t num_cores, int64_t vector_bytes);
#endif
