/* The door of predictor/tune/core: other rooms include this header and no other of the room.
 *
 * The words of the search: candidates, spaces, rankers and searches as interfaces, sets of
 * programs, steps as numbers. */
#ifndef CD_PREDICTOR_TUNE_CORE_DOOR_H
#define CD_PREDICTOR_TUNE_CORE_DOOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/core.h"
#include "features/sketch/sketch.h"

/* tune -- searching for fast schedules: what all parts of the search share.
 *
 *   space   which candidates there are      draw, change, cross, list, follow
 *   ranker  which of them are good          rank, learn
 *   search  which to measure next           ask, tell
 *   tuner   a search with its ranker, by name (session/tune_tuner.h)
 *
 *        ┌─────── tell: seconds <── measured here (tune_run.h) or read from logs (tune_replay.h)
 *        v                             ^
 *   search ── ask ──> candidates ──────┘
 *     └─ space, ranker
 *
 *   (1) a search never asks for a candidate twice, and gives fewer than asked for only when
 *       its space has no more;
 *   (2) what a search asks for depends on setup, seed and what it was told, on nothing else;
 *   (3) a ranker is shared by the searches of all tasks of a network, a space and a search
 *       belong to one task. All of them together belong to one thread.
 * Seconds of a candidate that failed: CD_TUNE_FAILED_S. */

#define CD_TUNE_FAILED_S 1e10 /* as in records */

/* ---- candidates: one program each; equal programs have equal keys ---- */
typedef struct cd_tune_cand {
    uint64_t key;                   /* digest of the steps */
    uint32_t n_choice, n_step, row; /* row: of a listed space, its place in the list */
    /* (n_choice) sketch.h; of logs, the numbers in the steps that a tuner may change */
    const cd_sketch_choice *choice;
    const cd_record_step *step; /* (n_step) */
} cd_tune_cand;

/* Into an arena, with all that it points at. Errors: ENOMEM. */
cdmpp_status cd_tune_cand_copy(cd_arena *a, const cd_tune_cand *from, cd_tune_cand *out,
                               cdmpp_err *err);

/* ---- space: begins with this struct, the rest is its kind's own ---- */
typedef struct cd_tune_space cd_tune_space;
typedef struct cd_tune_space_kind {
    const char *name; /* "sketch", "log" */
    /* Random candidate number i. What `out` points at lives until the next call of any of these.
     * Errors: EREJECTED (take the next i), ENODATA (nothing there), ENOMEM. */
    cdmpp_status (*draw)(cd_tune_space *s, uint64_t i, cd_tune_cand *out, cdmpp_err *err);
    /* One like `from`; i: which. Errors: as above. */
    cdmpp_status (*change)(cd_tune_space *s, const cd_tune_cand *from, uint64_t i,
                           cd_tune_cand *out, cdmpp_err *err);
    /* One that takes after both. Errors: as above. */
    cdmpp_status (*cross)(cd_tune_space *s, const cd_tune_cand *a, const cd_tune_cand *b,
                          uint64_t i, cd_tune_cand *out, cdmpp_err *err);
    /* All of it, in a fixed order, until free; n == 0: more than CD_TUNE_LIST_MAX. Errors:
     * ENOMEM. */
    cdmpp_status (*list)(cd_tune_space *s, CD_KEEP const cd_tune_cand **all, size_t *n,
                         cdmpp_err *err);
    /* The one nearest to a record of this or a like task; exact: its steps are the record's.
     * Errors: as of draw. */
    cdmpp_status (*follow)(cd_tune_space *s, const cd_record *r, cd_tune_cand *out, bool *exact,
                           cdmpp_err *err);
    void (*free)(CD_TAKE cd_tune_space *s);
    /* For spaces too large to list, else NULL: one after another in a fixed order. first: begin
     * again. Errors: EREJECTED (this one breaks a rule: call again), ENODATA (that was the last),
     * ENOMEM. */
    cdmpp_status (*walk)(cd_tune_space *s, bool first, cd_tune_cand *out, cdmpp_err *err);
} cd_tune_space_kind;

enum { CD_TUNE_LIST_MAX = 5000 };

/* A task with its target: what records of its candidates say. */
typedef struct cd_tune_task {
    CD_KEEP const cd_task *task;
    const char *target;
    cd_hardware hardware;
    bool gpu;
    double flop; /* -1: unknown */
} cd_tune_task;

struct cd_tune_space {
    const cd_tune_space_kind *kind;
    cd_tune_task of;
};

void cd_tune_space_free(CD_TAKE cd_tune_space *s); /* NULL is fine */

/* ---- ranker: begins with this struct ---- */
typedef struct cd_tune_ranker cd_tune_ranker;
struct cd_model;
typedef struct cd_tune_ranker_setup {
    CD_KEEP const struct cd_model *model; /* NULL: none; rankers that need one refuse */
    const char *device;                   /* of the model; NULL: by the target */
    bool nearest; /* a device that the model does not know is taken for its nearest */
    bool frozen;  /* learn nothing from what is measured */
    int threads;  /* 0: 1 */
    uint64_t seed;
} cd_tune_ranker_setup;

typedef struct cd_tune_ranker_kind {
    const char *name, *brief;
    bool needs_model;
    /* Errors: EUSAGE (no model), EMODEL, EBACKEND, ENOMEM. */
    cdmpp_status (*open)(const cd_tune_ranker_setup *s, CD_GIVE cd_tune_ranker **out,
                         cdmpp_err *err);
    /* score (n): higher is better, -infinity: no program. Comparable between candidates of one task
     * and the same state of the ranker; of rankers with `seconds` it is -ln of seconds that it
     * hardly exceeds. Errors: EBACKEND, ENUMERIC, ENOMEM. */
    cdmpp_status (*rank)(cd_tune_ranker *r, const cd_tune_task *t, const cd_tune_cand *c, size_t n,
                         double *score, cdmpp_err *err);
    /* seconds (n), CD_TUNE_FAILED_S where it failed. Copies what it keeps. Errors: as above. */
    cdmpp_status (*learn)(cd_tune_ranker *r, const cd_tune_task *t, const cd_tune_cand *c,
                          const double *seconds, size_t n, cdmpp_err *err);
    /* Has it anything to rank by, for this task? */
    bool (*ready)(const cd_tune_ranker *r, const cd_tune_task *t);
    void (*free)(CD_TAKE cd_tune_ranker *r);
    bool seconds;
} cd_tune_ranker_kind;

struct cd_tune_ranker {
    const cd_tune_ranker_kind *kind;
};

/* ---- search: begins with this struct ---- */
typedef struct cd_tune_search cd_tune_search;
typedef struct cd_tune_search_setup {
    CD_KEEP cd_tune_space *space;
    CD_KEEP cd_tune_ranker *ranker; /* NULL: searches without one */
    uint64_t seed;
    uint32_t population, generations; /* 0: the search's own */
    double epsilon;                   /* share of random candidates; negative: the search's own */
} cd_tune_search_setup;

typedef struct cd_tune_search_kind {
    const char *name;
    cdmpp_status (*open)(const cd_tune_search_setup *s, CD_GIVE cd_tune_search **out,
                         cdmpp_err *err);
    /* The next candidates, at most n; they live until the next ask. Errors: ENOMEM, those of ranker
     * and space but EREJECTED. */
    cdmpp_status (*ask)(cd_tune_search *s, size_t n, const cd_tune_cand **out, size_t *got,
                        cdmpp_err *err);
    /* What candidates took, also ones that were not asked for (a log of before). The ranker learns
     * too. Errors: ENOMEM, the ranker's. */
    cdmpp_status (*tell)(cd_tune_search *s, const cd_tune_cand *c, const double *seconds, size_t n,
                         cdmpp_err *err);
    void (*free)(CD_TAKE cd_tune_search *s);
} cd_tune_search_kind;

struct cd_tune_search {
    const cd_tune_search_kind *kind;
};

/* tune_key_set -- a set of programs, with a number for each.
 *
 *   key ──> slot, next slot, ...   {key, value}; open addressing, at most half full
 *
 * Keys are digests already, so their low bits say where to look. One thread. */

typedef struct cd_tune_key_set {
    struct cd_tune_slot *slot; /* (cap) */
    size_t n, cap;             /* cap: 0 or a power of two */
} cd_tune_key_set;             /* zero: empty */

void cd_tune_key_set_free(cd_tune_key_set *k);  /* zeroed is fine; it is empty then */
void cd_tune_key_set_clear(cd_tune_key_set *k); /* keeps the room */
/* *value of a key; false: it is not there. value may be NULL. */
bool cd_tune_key_set_find(const cd_tune_key_set *k, uint64_t key, double *value);
/* Enter, or change the value of, a key. Errors: ENOMEM; nothing has changed then. */
cdmpp_status cd_tune_key_set_put(cd_tune_key_set *k, uint64_t key, double value, cdmpp_err *err);

/* tune_knobs -- steps as numbers: what all steps of a class share, and what may differ.
 *
 *   SP 3 0 512 [4,8] 1, PR 2 0 "auto_unroll_max_step$64"
 *     class   hash of  SP 3 |2|   PR 2 "auto_unroll_max_step"
 *     number           0 512 1 4 8   0 . . 64
 * Steps of one class have equally many numbers, of the same meaning. Any thread. */

/* Digest of what equal steps share but for their numbers; how many numbers they have. */
uint64_t cd_tune_class(const cd_record_step *step, uint32_t n_step);
uint32_t cd_tune_knobs_count(const cd_record_step *step, uint32_t n_step);
/* at (may be NULL): the step of each. */
void cd_tune_numbers(const cd_record_step *step, uint32_t n_step, int32_t *number, uint16_t *at);
#endif
