/* tune_tried -- the record that every search keeps of its candidates.
 *
 *   known   key -> 0 asked for, seconds told     never asked for again
 *   list    all of a small space, else empty     order: a random one of it
 *   good    the best that were told, fastest first, at most CD_TUNE_GOOD
 *   out     what the last ask gave
 *
 * (1) Random numbers are counted: number k of a seed, so asks and tells alone decide.
 * (2) A space that cannot be listed counts as used up when CD_TUNE_PATIENCE draws in a row gave nothing new.
 * (3) A candidate is in out once it is copied and known, or not at all.
 * Private to tune_search_*.c, whose searches begin with this struct. */
#ifndef CD_TUNE_TRIED_H
#define CD_TUNE_TRIED_H
#include "base/core/core.h"
#include "predictor/tune/core/core.h"

enum { CD_TUNE_GOOD = 128, CD_TUNE_PATIENCE = 20000 };

typedef struct cd_tune_good {
    cd_tune_cand cand;
    double seconds;
} cd_tune_good;

typedef struct cd_tune_tried {
    cd_tune_search search;
    cd_tune_space *space;
    cd_tune_ranker *ranker;     /* NULL: none */
    uint64_t seed, counter;
    cd_tune_key_set known;
    const cd_tune_cand *list;   /* (n_list) of the space; NULL: too large */
    size_t n_list;
    uint32_t *order;            /* (n_list) made when first needed */
    size_t at_order;
    cd_arena out_mem, good_mem;
    cd_tune_cand *out;          /* (cap_out) */
    size_t n_out, cap_out;
    cd_tune_good *good;         /* (CD_TUNE_GOOD) */
    size_t n_good, n_copied;    /* n_copied: into good_mem, since it was last emptied */
} cd_tune_tried;

/* Errors: ENOMEM. Whatever it returns, close. */
cdmpp_status cd_tune_tried_open(cd_tune_tried *b, const cd_tune_search_kind *kind, const cd_tune_search_setup *s, cdmpp_err *err);
void cd_tune_tried_close(cd_tune_tried *b);
/* A random number; one below n > 0; one of [0, 1). */
uint64_t cd_tune_tried_number(cd_tune_tried *b);
double cd_tune_tried_unit(cd_tune_tried *b);

/* Begin an ask for n candidates: out is empty. Errors: ENOMEM. */
cdmpp_status cd_tune_tried_begin(cd_tune_tried *b, size_t n, cdmpp_err *err);
/* Ask for one, if it is not known; there is room for it. Errors: ENOMEM. */
cdmpp_status cd_tune_tried_take(cd_tune_tried *b, const cd_tune_cand *c, cdmpp_err *err);
bool cd_tune_tried_knows(const cd_tune_tried *b, const cd_tune_cand *c);
/* Random candidates that are not known, until out holds n or there are no more. Errors: ENOMEM, the space's. */
cdmpp_status cd_tune_tried_random(cd_tune_tried *b, size_t n, cdmpp_err *err);
/* One random candidate, known or not; EREJECTED: this draw was none, ENODATA: the space is empty. */
cdmpp_status cd_tune_tried_draw(cd_tune_tried *b, cd_tune_cand *out, cdmpp_err *err);
/* Can the ranker say anything yet? */
bool cd_tune_tried_guided(const cd_tune_tried *b);
/* For tell of every search. Errors: ENOMEM, the ranker's. */
cdmpp_status cd_tune_tried_tell(cd_tune_tried *b, const cd_tune_cand *c, const double *seconds, size_t n, cdmpp_err *err);
/* The results of an ask. */
static inline void cd_tune_tried_end(const cd_tune_tried *b, const cd_tune_cand **out, size_t *got) {
    *out = b->out;
    *got = b->n_out;
}
#endif
