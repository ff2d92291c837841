/* The door of features/sketch: the schedules that a tuner may choose from, by Ansor's rules. Tuners
 * draw, mutate and enumerate them; data sets draw random programs from them.
 *
 *   task's DAG ──sketch rules──> sketches (open decisions) ──choices──> steps of a record
 *
 *   choice  SKETCH  TILE  TILE ... PLACE ... PARALLEL ... UNROLL ... VECTOR ...  the decisions, in
 *     their order
 *   pick/n   2/9    17/84 3/20      4/7        0/4          1/4        0/3
 *
 * The rules, their order and their parameters are those of TVM v0.9's SketchPolicy
 * (docs/internals/ansor.md, Sketches): multi-level tiling SSRSRS on CPUs, SSSRRSRS with
 * shared-memory stages on GPUs, fusion, inlining, cache write, rfactor and cross-thread reduction.
 * The random numbers are ours (base/core/core.h): schedule i of a seed is the same on any machine
 * and thread.
 *   (1) a list of decisions determines the steps, on any sampler of the space;
 *   (2) pick < n; which decisions there are depends on those before them, so lists of
 *       one sketch may differ in length;
 *   (3) the SKETCH choice is first, then one TILE for each split with open lengths,
 *       in the order of the steps; of those only SKETCH sets which there are;
 *   (4) fresh schedules (draw) stay within Ansor's initial population: their picks
 *       are among the first options. All options together are what its mutations lead to.
 * A space is immutable once made: share it. A sampler belongs to one thread. */
#ifndef CD_SKETCH_H
#define CD_SKETCH_H
#include "features/task/task.h"

typedef struct cd_sketch_space cd_sketch_space;
typedef struct cd_sketch_sampler cd_sketch_sampler;

typedef enum cd_sketch_choice_kind {
    /* which                                                     at: 0     value: pick */
    CD_SKETCH_CHOICE_SKETCH,
    /* lengths of a split; pick counts them in depth-first order at: step  value: pick */
    CD_SKETCH_CHOICE_TILE,
    /* where a stage is computed    at: stage  value: 0 inline (nothing, where that cannot be), 1
     * root, (stage + 1) << 16 | loop */
    CD_SKETCH_CHOICE_PLACE,
    /* outermost loops to fuse and run in parallel               at: stage value: loops */
    CD_SKETCH_CHOICE_PARALLEL,
    /* auto_unroll_max_step                                      at: stage value: steps */
    CD_SKETCH_CHOICE_UNROLL,
    /* innermost loops to fuse into a vector                     at: stage value: loops */
    CD_SKETCH_CHOICE_VECTOR,
    /* of GPUs, the length of a split that has one: threads, elements a thread loads at once at:
     * stage value: length */
    CD_SKETCH_CHOICE_SPLIT,
    CD_SKETCH_CHOICE_KINDS
} cd_sketch_choice_kind;

#define CD_SKETCH_CHOICE_ANY UINT32_MAX /* a value to be set from the pick */

typedef struct cd_sketch_choice {
    uint32_t pick, n; /* pick < n options */
    uint32_t value;   /* what the pick means, whatever the options */
    uint16_t at;      /* step (TILE) or stage */
    uint16_t kind;    /* cd_sketch_choice_kind */
} cd_sketch_choice;

/* A complete schedule. It lives until the sampler's next call, to which its choices may be
 * given. */
typedef struct cd_sketch_sample {
    uint32_t n_choice;
    const cd_sketch_choice *choice; /* (n_choice) */
    uint32_t n_step;
    const cd_record_step *step; /* (n_step) */
} cd_sketch_sample;

/* A list that the caller owns; {0} is empty. */
typedef struct cd_sketch_choices {
    cd_sketch_choice *p;
    uint32_t n, cap;
} cd_sketch_choices;
/* Frees the list; it is empty afterwards. */
void cd_sketch_choices_free(cd_sketch_choices *c);

/* All sketches of a task. gpu: for thread-bound targets. A task that no rule fits gets a space of
 * one naive schedule. Errors: ENOTASK (no DAG), EINVALID (hardware), EUNSUPPORTED (more stages than
 * a schedule may have: CD_MAX_STAGE), ENOMEM. */
cdmpp_status cd_sketch_space_new(CD_KEEP const cd_task *task, const cd_hardware *hw, bool gpu,
                                 CD_GIVE cd_sketch_space **out, cdmpp_err *err);
void cd_sketch_space_free(CD_TAKE cd_sketch_space *s); /* NULL is fine */
size_t cd_sketch_space_count(const cd_sketch_space *s);
/* Steps of sketch i < count; a length that is open is 0. As long as the space. */
CD_KEEP const cd_record_step *cd_sketch_space_steps(const cd_sketch_space *s, size_t i,
                                                    uint32_t *n);
/* Is this the space of one schedule without choices? On CPUs it has no steps; on GPUs every stage
 * has its loops bound to blocks and threads. */
bool cd_sketch_space_is_naive(const cd_sketch_space *s);

/* Makes schedules of the space; `seed` chooses the random ones. Errors: ENOMEM. */
cdmpp_status cd_sketch_sampler_new(CD_KEEP const cd_sketch_space *s, uint64_t seed,
                                   CD_GIVE cd_sketch_sampler **out, cdmpp_err *err);
void cd_sketch_sampler_free(CD_TAKE cd_sketch_sampler *w); /* NULL is fine */

/* Of all that follow, errors: EREJECTED (the schedule breaks a rule: no steps, and the choices up
 * to there), ENOMEM. Choices that are given may be those of the sampler's last schedule. */

/* Random schedule number i, as of Ansor's initial population. */
cdmpp_status cd_sketch_sampler_draw(cd_sketch_sampler *w, uint64_t i, cd_sketch_sample *out,
                                    cdmpp_err *err);
/* The schedule of these picks; value and n are not read. A decision takes the next choice of its
 * kind and place, its pick modulo the number of options; decisions without one take option 0. The
 * limits that Ansor sets to fresh schedules only (threads at least a warp, virtual threads at most
 * max_vthread_extent) do not hold. */
cdmpp_status cd_sketch_sampler_make(cd_sketch_sampler *w, const cd_sketch_choice *c, uint32_t n,
                                    cd_sketch_sample *out, cdmpp_err *err);

/* One of Ansor's mutations (ansor.md, Sketches) of a schedule's choices, by random number i: a
 * factor moves between two levels of one split, or another unroll step, place, number of parallel
 * loops; on CPUs with weights 0.90, 0.04, 0.05, 0.01, on GPUs 0.90, 0.10 of the first two, among
 * the kinds that have something to change. The other choices keep their meaning, as far as it is
 * one of the new schedule's options (the nearest, where not). A place may become any other, where
 * Ansor changes those of attached stages only. */
cdmpp_status cd_sketch_sampler_mutate(cd_sketch_sampler *w, const cd_sketch_choice *c, uint32_t n,
                                      uint64_t i, cd_sketch_sample *out, cdmpp_err *err);
/* Every choice from one of two schedules, by random number i; EREJECTED as well where their
 * sketches differ. */
cdmpp_status cd_sketch_sampler_crossover(cd_sketch_sampler *w, const cd_sketch_choice *a,
                                         uint32_t na, const cd_sketch_choice *b, uint32_t nb,
                                         uint64_t i, cd_sketch_sample *out, cdmpp_err *err);
/* The schedule nearest to a record's, which may be of a task of another shape: of the longest
 * sketch whose steps begin
 * the record's but for extents and lengths; tile lengths least far in sum of |log| over all levels;
 *   place, parallel,
 * unroll and vector as there. *exact: all steps are the record's. Limits as for make. EREJECTED
 * also: no such sketch. */
cdmpp_status cd_sketch_sampler_match(cd_sketch_sampler *w, const cd_record *r,
                                     cd_sketch_sample *out, bool *exact, cdmpp_err *err);
/* All schedules within the limits, one after the other: an odometer over the choices, the last
 * turning fastest. *at: {0} before the first call, then the choices tried last; the caller's.
 * Errors: EREJECTED (these break a rule: call again), ENODATA (there are no more; the next call
 * begins again), ENOMEM. */
cdmpp_status cd_sketch_sampler_next(cd_sketch_sampler *w, cd_sketch_choices *at,
                                    cd_sketch_sample *out, cdmpp_err *err);

/* How many lists of decisions the space has. *exact: what cd_sketch_sampler_next gives without
 * EREJECTED, in spaces of up to some 20,000; else an estimate: the products of the options along
 * the lists that take option 0 everywhere, summed over sketches. Other lists have a few more or
 * fewer options, and some break rules. Equal programs of different lists count each. Errors:
 * ENOMEM. */
cdmpp_status cd_sketch_space_size(const cd_sketch_space *s, double *size, bool *exact,
                                  cdmpp_err *err);
/* Append the space as JSON: {"target", "naive", "size", "exact", "sketches": [{"steps" (0: an open
 * length), "product", "choices": [{"kind", "step" or "stage", "options", "extent" and "parts"
 * (tile), "lengths" or "values" where few}]}]}; the choices are those that the estimate multiplies.
 * Errors: ENOMEM. */
cdmpp_status cd_sketch_space_dump(const cd_sketch_space *s, cd_buf *json, cdmpp_err *err);
#endif
