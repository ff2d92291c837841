/* tune_guide -- a search that follows a ranker: what the searches best and evolve share.
 *
 *   pool of before + best measured + random draws ──> ranked ──(best, evolve: more of the like)──> picked + random
 *
 * Of a space that can be listed the pool is the list. Until the ranker knows something, asks are random.
 * Private to tune_search_*.c. */
#ifndef CD_TUNE_GUIDE_INTERNAL_H
#define CD_TUNE_GUIDE_INTERNAL_H
#include "predictor/tune/search/tune_pool.h"

typedef struct cd_tune_guide cd_tune_guide;
/* Add to the pool, which is ranked, and rank what was added. Not called for lists. */
typedef cdmpp_status cd_tune_guide_fn(cd_tune_guide *g, cdmpp_err *err);

struct cd_tune_guide {
    cd_tune_tried b;
    cd_tune_pool pool;
    cd_tune_guide_fn *widen;
    uint32_t population, generations;
    uint32_t crowd;             /* population of this ask: a round of few trials may not cost as much as one of many */
    bool scaled;                /* the setup says nothing of the population */
    double epsilon;             /* share of random candidates */
    uint64_t n_asked, n_random;
};

typedef struct cd_tune_guide_own { /* where the setup says nothing */
    uint32_t population, generations;
    double epsilon;
    cd_tune_guide_fn *widen;
} cd_tune_guide_own;

/* cd_tune_search_kind.open of both. Errors: ENOMEM. */
cdmpp_status cd_tune_guide_open(const cd_tune_search_kind *kind, const cd_tune_search_setup *s, const cd_tune_guide_own *own,
                                CD_GIVE cd_tune_search **out, cdmpp_err *err);
/* Try to add what change (of `from`) or, with a mate, cross gives. *at: its place, SIZE_MAX: none. Errors: ENOMEM. */
cdmpp_status cd_tune_guide_child(cd_tune_guide *g, const cd_tune_cand *from, const cd_tune_cand *mate, size_t *at, cdmpp_err *err);
/* tune_search_evolve.c: `generations` of Ansor's evolution from all that is in the pool. */
cdmpp_status cd_tune_guide_evolve(cd_tune_guide *g, cdmpp_err *err);
/* As in cd_tune_search_kind. */
cdmpp_status cd_tune_guide_ask(cd_tune_search *s, size_t n, const cd_tune_cand **out, size_t *got, cdmpp_err *err);
cdmpp_status cd_tune_guide_tell(cd_tune_search *s, const cd_tune_cand *c, const double *seconds, size_t n, cdmpp_err *err);
void cd_tune_guide_free(cd_tune_search *s);
#endif
