/* sketchint -- programs while they are being put together by rules (spec 4, State).
 *
 *   cd_sk_state: step[0..n_step)   what a record will hold
 *                stage[i].it[k]    the loops so far, outermost first
 *                prog              the operators, as cache and rfactor steps left them
 *
 *   (1) stage i of a state is operator i of its prog;
 *   (2) a length that is still open is 0 in a step's list; ext is -1 where it is
 *       not known: below an open length, and in attached stages until bounds
 *       have been inferred;
 *   (3) states are copied before they are changed; what they point to is not
 *       shared but for the prog, which never changes.
 * Private to sketch*.c. */
#ifndef CD_SKETCHINT_H
#define CD_SKETCHINT_H
#include "features/sched.h"
#include "features/sketch.h"

/* TVM's IteratorKind. */
enum { CD_SK_SPATIAL, CD_SK_REDUCE, CD_SK_MIXED, CD_SK_SPECIAL };
/* TVM's annotations, as in records. */
enum { CD_SK_NONE, CD_SK_UNROLL, CD_SK_VECTORIZE, CD_SK_PARALLEL, CD_SK_VTHREAD, CD_SK_BLOCK_X, CD_SK_THREAD_X };
enum { CD_SK_ROOT, CD_SK_INLINED, CD_SK_AT };

typedef struct cd_sk_it {
    int64_t ext;
    uint64_t origin;            /* bit k: made from axis k of its operator (reduce axes behind spatial ones) */
    uint8_t kind, ann;
    int8_t level;               /* part of a split, 0 outermost; -1 whole, -2 fused */
} cd_sk_it;

typedef struct cd_sk_op {
    bool placeholder, output, strict, tiling, simplify_const, shared;
    uint32_t rank, n_axis, n_raxis;
    uint64_t unrolled;          /* simplify_const: axes that index constant matrices */
    const int64_t *shape;       /* (rank) */
    cd_sk_it *init;             /* (n_axis + n_raxis) */
} cd_sk_op;

typedef struct cd_sk_prog {
    uint32_t n;
    cd_sk_op *op;               /* (n) */
    bool *reads;                /* (n, n) [reader, read] directly */
    bool *same;                 /* (n, n) every read is simple, uses each axis once, in order */
    uint32_t *common;           /* (n, n) outer axes that both walk alike */
    struct cd_sk_prog *next;
    uint32_t n_step;            /* the steps that made it: where two states share one */
    const cd_step *step;
} cd_sk_prog;

typedef struct cd_sk_stage {
    cd_sk_it *it;
    uint32_t n;
    uint8_t at;
    int32_t at_stage, at_it;    /* CD_SK_AT */
} cd_sk_stage;

typedef struct cd_sk_state {
    cd_arena *a;
    cd_step *step;
    cd_sk_stage *stage;
    uint32_t n_step, cap_step, n_stage;
    const cd_sk_prog *prog;
    bool oom, failed;           /* failed: a step did not fit; the state is dropped */
} cd_sk_state;

/* Products of extents stop at the ends of the type: shapes are anybody's. */
static inline int64_t cd_sk_times(int64_t a, int64_t b) {
    int64_t c;
    if (!__builtin_mul_overflow(a, b, &c)) return c;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

struct cd_sketches {
    cd_arena arena;
    const cd_te_dag *dag;
    cd_hardware hw;
    bool gpu;
    cd_sched sched;             /* to build progs with */
    cd_sk_prog *prog;
    cd_sk_state **sketch;
    uint32_t n_sketch, cap_sketch;
};

struct cd_sampler {
    cd_arena arena;
    cd_sched sched;
    const cd_sketches *space;
    uint64_t seed, key, drawn;  /* of the random numbers */
};

/* ---- sketchprog.c ---- */
/* The operators after the steps that add stages. NULL: they do not fit or no memory. */
const cd_sk_prog *cd_sk_prog_get(cd_sketches *sp, const cd_step *step, uint32_t n_step);

/* ---- sketchstate.c ---- */
cd_sk_state *cd_sk_start(cd_arena *a, const cd_sk_prog *prog);
cd_sk_state *cd_sk_copy(cd_arena *a, const cd_sk_state *s);
/* Steps. Iterators are named by position. */
void cd_sk_split(cd_sk_state *s, uint32_t stage, uint32_t it, const int64_t *len, uint32_t n);
void cd_sk_follow(cd_sk_state *s, uint32_t stage, uint32_t it, uint32_t source, uint32_t n_split);
void cd_sk_follow_fused(cd_sk_state *s, uint32_t stage, uint32_t it, const uint32_t *source, uint32_t n, uint32_t level);
uint32_t cd_sk_fuse(cd_sk_state *s, uint32_t stage, uint32_t first, uint32_t n);
void cd_sk_reorder(cd_sk_state *s, uint32_t stage, const uint32_t *order);
void cd_sk_annotate(cd_sk_state *s, uint32_t stage, uint32_t it, uint8_t ann);
void cd_sk_pragma(cd_sk_state *s, uint32_t stage, uint32_t it, int max_step);
void cd_sk_at(cd_sk_state *s, uint32_t stage, uint32_t target, uint32_t it);
void cd_sk_inline(cd_sk_state *s, uint32_t stage);
void cd_sk_root(cd_sk_state *s, uint32_t stage);
/* Stage-adding steps: the state takes the prog that results. */
void cd_sk_cache_read(cd_sketches *sp, cd_sk_state *s, uint32_t stage, uint32_t reader);
void cd_sk_cache_write(cd_sketches *sp, cd_sk_state *s, uint32_t stage);
void cd_sk_rfactor(cd_sketches *sp, cd_sk_state *s, uint32_t stage, uint32_t it, uint32_t axis);

/* ---- sketchquery.c: inlined stages are transparent ---- */
static inline bool cd_sk_is_reduce(const cd_sk_it *it) { return it->kind == CD_SK_REDUCE; }
/* Stages in ascending order to list (n_stage); how many. */
uint32_t cd_sk_consumers(const cd_sk_state *s, uint32_t stage, uint32_t *list);
bool cd_sk_has_producers(const cd_sk_state *s, uint32_t stage);
bool cd_sk_has_reduce(const cd_sk_stage *st);
bool cd_sk_has_attached(const cd_sk_state *s, uint32_t stage, uint32_t it);
bool cd_sk_has_step(const cd_sk_state *s, uint32_t stage, cd_step_kind kind);
/* More or fewer iterators than axes. */
bool cd_sk_is_tiled(const cd_sk_state *s, uint32_t stage);
/* The only consumer that reads element by element, -1. */
int32_t cd_sk_matched(const cd_sk_state *s, uint32_t stage);
/* The only consumer, or the stage that all consumers are attached to, -1. */
int32_t cd_sk_single(const cd_sk_state *s, uint32_t stage);
uint32_t cd_sk_common_outer(const cd_sk_state *s, uint32_t stage, uint32_t target);
bool cd_sk_cross_thread(const cd_sk_state *s, uint32_t stage);
/* Products of spatial and of reduction extents. */
void cd_sk_volume(const cd_sk_stage *st, int64_t *space, int64_t *reduce);
bool cd_sk_inlines(const cd_sketches *sp, const cd_sk_state *s, uint32_t stage);
/* Splits of a stage, last first; how many. */
uint32_t cd_sk_splits_of(const cd_sk_state *s, uint32_t stage, uint32_t *step, uint32_t cap);

/* ---- sketchrules.c, sketchfill.c, sketchbind.c ---- */
cdmpp_status cd_sk_generate(cd_sketches *sp, cdmpp_err *err);
uint64_t cd_sk_draw(cd_sampler *w, uint64_t n); /* 0 .. n-1 */
/* Infer bounds: extents of attached stages become known. False: the program is impossible. */
bool cd_sk_infer(cd_sampler *w, cd_sk_state *s);
/* Bind loops to threads of a GPU; false: too few or too many. */
bool cd_sk_thread_bind(cd_sampler *w, cd_sk_state *s);
#endif
