/* tune_pool -- the candidates of one round of a guided search, each once, with what the ranker says of them.
 *
 *   add ──> cand[0 .. n)   key -> place      score[0 .. n_scored)   ──pick──> the best that are unlike each other
 *
 * (1) A program is in it once; adding it again gives its place.
 * (2) A score is asked for once; -infinity: no program.
 * (3) Copies live until clear or free; those that are borrowed as long as their owner. One thread. */
#ifndef CD_TUNE_POOL_H
#define CD_TUNE_POOL_H
#include "predictor/tune/search/tune_tried.h"

typedef struct cd_tune_pool {
    cd_arena mem;
    cd_tune_key_set place;
    cd_tune_cand *cand;         /* (cap) */
    double *score;              /* (cap) */
    uint32_t *order;            /* (cap) of pick: best first */
    size_t n, n_scored, cap;
} cd_tune_pool;                 /* zero: empty */

void cd_tune_pool_free(cd_tune_pool *p); /* zeroed is fine */
/* *at: its place; *is_new may be NULL. borrow: do not copy. Errors: ENOMEM. */
cdmpp_status cd_tune_pool_add(cd_tune_pool *p, const cd_tune_cand *c, bool borrow, size_t *at, bool *is_new, cdmpp_err *err);
/* Scores for all that have none. Errors: the ranker's. */
cdmpp_status cd_tune_pool_rank(cd_tune_pool *p, cd_tune_ranker *r, const cd_tune_task *t, cdmpp_err *err);
/* Ask for the best that are not known, until the book has n: by score less what they share with those picked already.
 * Errors: ENOMEM. */
cdmpp_status cd_tune_pool_pick(cd_tune_pool *p, cd_tune_tried *b, size_t n, cdmpp_err *err);
/* Keep the `most` best of those that are not known, without scores. Errors: ENOMEM; then it is empty. */
cdmpp_status cd_tune_pool_keep(cd_tune_pool *p, const cd_tune_tried *b, size_t most, cdmpp_err *err);
/* How many choices tell two candidates apart. */
size_t cd_tune_pool_distance(const cd_tune_cand *a, const cd_tune_cand *b);
#endif
