/* What the files of predictor/tune/rank share among themselves. */
#ifndef CD_PREDICTOR_TUNE_RANK_INTERNAL_H
#define CD_PREDICTOR_TUNE_RANK_INTERNAL_H
#include <stddef.h>
#include <stdint.h>

#include "base/core/core.h"
#include "features/program/program.h"
#include "features/rows/rows.h"
#include "learner/trees/trees.h"
#include "predictor/tune/core/core.h"

/* tune_feat_access -- which loops of a program touch which buffers, as AutoTVM's features count it.
 *
 *   for i (8)                loop 0   length 8, level 1, topdown 8, bottomup 32
 *     for j (4)              loop 1   length 4, level 2, topdown 32, bottomup 4
 *       C[i, j] = A[i, j]*2  access C_0, A_0; in loop 0: stride 4, count 32, in loop 1: stride 1,
 *                            count 4
 *
 *   (1) loops are in the order of the nest, those of extent 1 among them; a virtual thread that was
 *       met before is no new loop;
 *   (2) strides are those of the buffer laid out row by row: a parameter whole, others as much as
 *       is realized;
 *   (3) the touches of a loop are in the order of their accesses' names, byte by byte;
 *   (4) stride 0: the index does not use the loop. Of an index that is no sum of products, the
 *       literal by which a variable is multiplied, else 1.
 * Everything lives until the next walk. One thread. */

/* autotvm's kinds of loops, in its order. */
typedef enum cd_tune_loop_kind {
    CD_TUNE_BLOCK_X,
    CD_TUNE_BLOCK_Y,
    CD_TUNE_BLOCK_Z,
    CD_TUNE_THREAD_X,
    CD_TUNE_THREAD_Y,
    CD_TUNE_THREAD_Z,
    CD_TUNE_UNROLLED,
    CD_TUNE_VECTORIZED,
    CD_TUNE_PARALLEL,
    CD_TUNE_SERIAL,
    CD_TUNE_VTHREAD,
    CD_TUNE_LOOP_KINDS
} cd_tune_loop_kind;

typedef struct cd_tune_feat_access {
    uint32_t access;
    double stride;
    /* of this loop and those in it: steps that move the access, that do not */
    double count, reuse;
    /* by how much more than without the threads right below; 0: not above such */
    double thread_count, thread_reuse;
    struct cd_tune_feat_access *next; /* of the loop */
} cd_tune_feat_access;

typedef struct cd_tune_loop {
    cd_tune_loop_kind kind;
    int32_t level; /* 1: outermost */
    uint32_t var;
    double length, topdown, bottomup; /* -1: touches nothing */
    double n_add, n_mul, n_div;       /* float operations right inside */
    cd_tune_feat_access *touch, **last;
} cd_tune_loop;

typedef struct cd_tune_access {
    const char *name; /* "A.shared_2" */
    size_t n_raw;     /* of these letters "A" */
    uint32_t depth;
    cd_tune_feat_access *touch; /* (depth) outermost loop first */
    const uint32_t *loop;       /* (depth) */
} cd_tune_access;

typedef struct cd_tune_touches {
    cd_arena a;
    cd_tune_loop *loop;     /* (n_loop) */
    cd_tune_access *access; /* (n_access) in the order of the nest */
    uint32_t *by_name;      /* (n_access) which, in the order of names */
    uint32_t n_loop, n_access, cap_loop, cap_access;
} cd_tune_touches;

void cd_tune_touches_free(cd_tune_touches *t); /* zeroed is fine */

/* tune_feat -- rows of numbers that say what a candidate is, for trees that are grown during a
 * search.
 *
 *   kind      rows        what
 *   store     n of 164    Ansor's: one for each written buffer (features/program/program.h)
 *   itervar   1, any      AutoTVM's: for every loop 18 numbers, then 6 for each access in it
 *   curve     1, any      AutoTVM's: 160 for each buffer that the innermost loops touch
 *   knob      1, any      the numbers in the steps: tile lengths, annotations, places, unroll steps
 *
 * (1) Rows are of one task comparable column by column where candidates have the same loops; those
 *     that are shorter end as if in zeros.
 * (2) itervar and curve begin with the unroll steps, which leave no trace in the loops: autotvm
 *     appends the options of its templates likewise.
 * (3) Column c of knob is the c-th number (kind of step, stage, which of that kind there, place)
 *     that was ever met.
 * One thread. */

enum { CD_TUNE_FEAT_UNROLLS = 4, CD_TUNE_CURVE_POINTS = 20 };

typedef struct cd_tune_row {
    float *v;
    size_t n, cap;
    bool oom;
} cd_tune_row;
/* Append a number; out of memory is kept in the row. */
void cd_tune_row_free(cd_tune_row *r); /* zeroed is fine */

typedef struct cd_tune_knob { /* a number in the steps */
    int32_t kind, stage, times, place;
} cd_tune_knob;

typedef struct cd_tune_feat { /* zero: nothing yet */
    cd_program *program;      /* made when needed */
    cd_tune_touches touches;
    cd_tune_knob *knob; /* (n_knob) column by column */
    size_t n_knob, cap_knob;
} cd_tune_feat;
void cd_tune_feat_free(cd_tune_feat *f); /* zeroed is fine */

typedef enum { CD_TUNE_STORE, CD_TUNE_KNOB, CD_TUNE_ITERVAR, CD_TUNE_CURVE } cd_tune_feat_kind;

/* The rows of a candidate, appended to *out; of `store` in whole rows of CD_N_COL. Errors:
 * EREJECTED (it is no program: what its steps, the target or float refuse), ENOTASK, ENOMEM. */
cdmpp_status cd_tune_feat_read(cd_tune_feat *f, cd_tune_feat_kind k, const cd_tune_task *t,
                               const cd_tune_cand *c, cd_tune_row *out, cdmpp_err *err);

/* ---- of the kinds ---- */

/* tune_fit -- trees grown on what a search has measured, from nothing each time.
 *
 *   program i  ─  rows start[i] .. start[i+1] of x  ─  label y[i] in [0, 1], 1: the fastest of its
 *                                                      task
 *
 *   pack_sum  score = sum over rows; squared error weighted by y          Ansor (TVM v0.9)
 *   pairs     score of its one row; of each pair the faster one is above  AutoTVM, XGBoost's
 *     rank:pairwise
 *
 * Both stop when the figure of their search has not improved on the training set for a while: the
 * error of pack_sum (looked at after every other tree, to 6 decimals), autotvm's average recall of
 * pairs. One thread; the same trees for the same input and seed. */

enum { CD_TUNE_FIT_RECALL = 64 }; /* the plan of autotvm's tuner */

typedef struct cd_tune_fit {
    const float *x; /* (start[n], width) */
    size_t width, n;
    const size_t *start; /* (n + 1) */
    const double *y;     /* (n) */
    uint64_t seed;
} cd_tune_fit;

/* A booster for cd_xgb_predict. Errors: EBACKEND, EMODEL, ENOMEM. */
cdmpp_status cd_tune_fit_pack_sum(const cd_tune_fit *f, CD_GIVE cd_xgb **out, cdmpp_err *err);
cdmpp_status cd_tune_fit_pairs(const cd_tune_fit *f, CD_GIVE cd_xgb **out, cdmpp_err *err);

typedef struct cd_tune_place {
    double v;
    size_t i;
} cd_tune_place;

/* autotvm's a-recall@top: the mean over m = 1 .. top of how many of the first m - 1 by score are
 * among the m fastest, over m. rank (n): 0 the fastest. place (n): scratch. Equal scores: the later
 * one first. */
double cd_tune_fit_recall(const float *score, const size_t *rank, size_t n, size_t top,
                          cd_tune_place *place);

/* The insides of the rankers by XGBoost.
 *
 *   candidate ─ tune_feat ──> row (cache by key and task)   seen[k] = where its rows are
 *   learn     ─> sample, x                                  kept for ever
 *   rank      ─> trees, made anew if there are new samples  of the task; one for all tasks of
 *                                                           Ansor's
 *
 * (1) learn only copies; training happens when somebody asks for a rank after it.
 * (2) Before there is enough to train on, ranks are random numbers of the candidates' keys, and
 *     -infinity for what is no program.
 * Private to tune_rank_boost.c. */

enum {
    /* of Ansor's model; its task scheduler takes a round of every task instead */
    CD_TUNE_BOOST_WARM_UP = 100,
    /* autotvm's waits for a plan; no search here plans for fewer */
    CD_TUNE_BOOST_LEAST = 8,
    CD_TUNE_BOOST_CACHE = 32 << 20 /* floats */
};

typedef struct cd_tune_seen {
    size_t at, n; /* floats of row; n == 0: no program */
} cd_tune_seen;

typedef struct cd_tune_boost_sample {
    size_t task, at, n; /* floats of x */
    double seconds;
} cd_tune_boost_sample;

typedef struct cd_tune_boost_task {
    const cd_task *task;
    char *target;
    size_t n, n_good; /* samples; those that did not fail */
    double best_s;
    cd_xgb *trees; /* NULL: none yet, or shared */
    size_t width, n_fitted;
} cd_tune_boost_task;

typedef struct cd_tune_boost {
    cd_tune_ranker base;
    cd_tune_feat_kind features;
    bool shared, frozen; /* shared: one set of trees for all tasks */
    uint64_t seed;
    cd_tune_feat feat;
    cd_tune_row row;
    cd_tune_key_set known; /* key -> number of seen */
    cd_tune_seen *seen;
    cd_tune_boost_task *task;
    cd_tune_boost_sample *sample;
    float *x, *input, *output;
    size_t n_seen, cap_seen, n_task, cap_task, n_sample, cap_sample, n_x, cap_x, cap_input,
        cap_output;
    cd_xgb *trees;            /* shared */
    size_t n_fitted, n_round; /* n_round: samples of the first learn */
} cd_tune_boost;

/* tune_feat_index -- the stride of every variable in the flat index of an access.
 *
 *   A[i*4 + j, k] of A[32, 8]      i: 32, j: 8, k: 1
 *
 * The index is a sum of terms, each a variable or something else times a number; what the realized
 * region begins at is subtracted, so what both have vanishes. No memory of its own. */

enum { CD_TUNE_INDEX_TERMS = 48 }; /* what is beyond is not looked at; the reference sets need 19 */

typedef struct cd_tune_feat_index {
    uint32_t n_term, n_var;
    struct {
        const cd_expr *e;
        double times;
    } term[CD_TUNE_INDEX_TERMS];
    struct {
        uint32_t var;
        double stride;
    } var[CD_TUNE_INDEX_TERMS];
} cd_tune_feat_index;
#endif
