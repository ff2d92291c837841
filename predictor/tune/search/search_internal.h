/* What the files of predictor/tune/search share among themselves. */
#ifndef CD_PREDICTOR_TUNE_SEARCH_INTERNAL_H
#define CD_PREDICTOR_TUNE_SEARCH_INTERNAL_H
#include "base/core/core.h"
#include "predictor/tune/core/core.h"

/* tune_tried -- the record that every search keeps of its candidates.
 *
 *   known   key -> 0 asked for, seconds told     never asked for again
 *   list    all of a small space, else empty     order: a random one of it
 *   good    the best that were told, fastest first, at most CD_TUNE_GOOD
 *   out     what the last ask gave
 *
 * (1) Random numbers are counted: number k of a seed, so asks and tells alone decide.
 * (2) A space that cannot be listed counts as used up when CD_TUNE_PATIENCE draws in a row gave
 *     nothing new.
 * (3) A candidate is in out once it is copied and known, or not at all.
 * Private to tune_search_*.c, whose searches begin with this struct. */

enum { CD_TUNE_GOOD = 128, CD_TUNE_PATIENCE = 20000 };

typedef struct cd_tune_good {
    cd_tune_cand cand;
    double seconds;
} cd_tune_good;

typedef struct cd_tune_tried {
    cd_tune_search search;
    cd_tune_space *space;
    cd_tune_ranker *ranker; /* NULL: none */
    uint64_t seed, counter;
    cd_tune_key_set known;
    const cd_tune_cand *list; /* (n_list) of the space; NULL: too large */
    size_t n_list;
    uint32_t *order; /* (n_list) made when first needed */
    size_t at_order;
    cd_arena out_mem, good_mem;
    cd_tune_cand *out; /* (cap_out) */
    size_t n_out, cap_out;
    cd_tune_good *good;      /* (CD_TUNE_GOOD) */
    size_t n_good, n_copied; /* n_copied: into good_mem, since it was last emptied */
} cd_tune_tried;

/* Errors: ENOMEM. Whatever it returns, close. */
cdmpp_status cd_tune_tried_open(cd_tune_tried *b, const cd_tune_search_kind *kind,
                                const cd_tune_search_setup *s, cdmpp_err *err);
void cd_tune_tried_close(cd_tune_tried *b);
/* A random number; one below n > 0; one of [0, 1). */
uint64_t cd_tune_tried_number(cd_tune_tried *b);
double cd_tune_tried_unit(cd_tune_tried *b);

/* Begin an ask for n candidates: out is empty. Errors: ENOMEM. */
cdmpp_status cd_tune_tried_begin(cd_tune_tried *b, size_t n, cdmpp_err *err);
/* Ask for one, if it is not known; there is room for it. Errors: ENOMEM. */
cdmpp_status cd_tune_tried_take(cd_tune_tried *b, const cd_tune_cand *c, cdmpp_err *err);
bool cd_tune_tried_knows(const cd_tune_tried *b, const cd_tune_cand *c);
/* Random candidates that are not known, until out holds n or there are no more. Errors: ENOMEM, the
 * space's. */
cdmpp_status cd_tune_tried_random(cd_tune_tried *b, size_t n, cdmpp_err *err);
/* One random candidate, known or not; EREJECTED: this draw was none, ENODATA: the space is
 * empty. */
cdmpp_status cd_tune_tried_draw(cd_tune_tried *b, cd_tune_cand *out, cdmpp_err *err);
/* Can the ranker say anything yet? */
bool cd_tune_tried_guided(const cd_tune_tried *b);
/* For tell of every search. Errors: ENOMEM, the ranker's. */
cdmpp_status cd_tune_tried_tell(cd_tune_tried *b, const cd_tune_cand *c, const double *seconds,
                                size_t n, cdmpp_err *err);
/* The results of an ask. */
static inline void cd_tune_tried_end(const cd_tune_tried *b, const cd_tune_cand **out,
                                     size_t *got) {
    *out = b->out;
    *got = b->n_out;
}

/* tune_pool -- the candidates of one round of a guided search, each once, with what the ranker says
 * of them.
 *
 *   add ─> cand[0 .. n)  key -> place  score[0 .. n_scored)  ─pick─> the best that are unlike each
 *                                                                    other
 *
 * (1) A program is in it once; adding it again gives its place.
 * (2) A score is asked for once; -infinity: no program.
 * (3) Copies live until clear or free; those that are borrowed as long as their owner. One
 *     thread. */

typedef struct cd_tune_pool {
    cd_arena mem;
    cd_tune_key_set place;
    cd_tune_cand *cand; /* (cap) */
    double *score;      /* (cap) */
    uint32_t *order;    /* (cap) of pick: best first */
    size_t n, n_scored, cap;
} cd_tune_pool; /* zero: empty */

void cd_tune_pool_free(cd_tune_pool *p); /* zeroed is fine */
/* *at: its place; *is_new may be NULL. borrow: do not copy. Errors: ENOMEM. */
cdmpp_status cd_tune_pool_add(cd_tune_pool *p, const cd_tune_cand *c, bool borrow, size_t *at,
                              bool *is_new, cdmpp_err *err);
/* Scores for all that have none. Errors: the ranker's. */
cdmpp_status cd_tune_pool_rank(cd_tune_pool *p, cd_tune_ranker *r, const cd_tune_task *t,
                               cdmpp_err *err);
/* Ask for the best that are not known, until the book has n: by score less what they share with
 * those picked already. Errors: ENOMEM. */
cdmpp_status cd_tune_pool_pick(cd_tune_pool *p, cd_tune_tried *b, size_t n, cdmpp_err *err);
/* Keep the `most` best of those that are not known, without scores. Errors: ENOMEM; then it is
 * empty. */
cdmpp_status cd_tune_pool_keep(cd_tune_pool *p, const cd_tune_tried *b, size_t most,
                               cdmpp_err *err);

/* tune_guide -- a search that follows a ranker: what the searches best and evolve share.
 *
 *   pool of before + best measured + random draws ─> ranked ─(best, evolve: more of the like)─>
 *                                                    picked + random
 *
 * Of a space that can be listed the pool is the list. Until the ranker knows something, asks are
 * random. Private to tune_search_*.c. */

typedef struct cd_tune_guide cd_tune_guide;
/* Add to the pool, which is ranked, and rank what was added. Not called for lists. */
typedef cdmpp_status cd_tune_guide_fn(cd_tune_guide *g, cdmpp_err *err);

struct cd_tune_guide {
    cd_tune_tried b;
    cd_tune_pool pool;
    cd_tune_guide_fn *widen;
    uint32_t population, generations;
    /* population of this ask: a round of few trials may not cost as much as one of many */
    uint32_t crowd;
    bool scaled;    /* the setup says nothing of the population */
    double epsilon; /* share of random candidates */
    uint64_t n_asked, n_random;
};

typedef struct cd_tune_guide_own { /* where the setup says nothing */
    uint32_t population, generations;
    double epsilon;
    cd_tune_guide_fn *widen;
} cd_tune_guide_own;

#endif
