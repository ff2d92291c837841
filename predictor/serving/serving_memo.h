/* serving_memo -- what was asked before: numbers to numbers, in memory. Of predictor/serving alone.
 *
 *   memo  any numbers as the key: a table of hashes, values where they were first put
 *   sums  two whole numbers as the key: small ones are places in arrays, as one step has about the
 *         tokens and lengths of the one before; others are in a memo
 *
 * A sweep asks some hundred million times, so a question costs as much as the memory that it
 * touches. */
#ifndef CD_SERVING_MEMO_H
#define CD_SERVING_MEMO_H
#include "base/core/core.h"

typedef struct cd_serving_memo {
    size_t n_key, n_value; /* set by the owner, the rest zeroed */
    size_t n, n_slot, n_page, cap_page;
    /* (n_slot) upper half: of the hash; lower half: number of the entry + 1; 0: free */
    uint64_t *slot;
    double **page; /* (n_page) entries, which never move: key, then values */
} cd_serving_memo;

/* The values of the key, all 0 where it is new; they stay where they are. NULL: out of memory. */
double *cd_serving_memo_at(cd_serving_memo *m, const double *key);
void cd_serving_memo_free(cd_serving_memo *m);

typedef struct cd_serving_column {
    double *v;
    size_t n;
} cd_serving_column;

typedef struct cd_serving_sums {
    size_t near_a, near_b;     /* smaller keys than these are places in arrays */
    cd_serving_column *column; /* (near_b) */
    cd_serving_memo far;       /* far.n_value: of both */
} cd_serving_sums;

cdmpp_status cd_serving_sums_new(cd_serving_sums *s, size_t n_value, size_t near_a, size_t near_b,
                                 cdmpp_err *err);
void cd_serving_sums_free(cd_serving_sums *s); /* zeroed is fine */
/* The values of a, b, all 0 where they are new; until the next call. NULL: out of memory. */
double *cd_serving_sums_at(cd_serving_sums *s, double a, double b);

/* The same where it is a place in an array that is there; NULL: it is not. It allocates nothing. */
static inline __attribute__((always_inline)) const double *
cd_serving_sums_near(const cd_serving_sums *s, double a, double b) {
    if (!(a >= 0 && b >= 0 && a < (double)s->near_a && b < (double)s->near_b)) return NULL;
    const size_t i = (size_t)a, k = (size_t)b;
    if ((double)i < a || (double)k < b || i >= s->column[k].n) return NULL;
    return &s->column[k].v[i * s->far.n_value];
}
#endif
