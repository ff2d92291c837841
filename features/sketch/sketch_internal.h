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
#include "features/schedule/schedule.h"
#include "features/sketch/sketch.h"

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

enum { CD_SK_MAX_INNERMOST = 64, CD_SK_MAX_VECTOR = 16, CD_SK_MAX_WIDE = 256, CD_SK_MAX_LEVEL = 16 };

typedef struct cd_sk_tile cd_sk_tile; /* sketchtile.c */

/* A split whose lengths are chosen. tile NULL: of unknown extent, all lengths 1. */
typedef struct cd_sk_open {
    uint32_t step;
    const cd_sk_tile *tile;
    int32_t fixed;              /* > 0: the only length, as the sketch has it; mutations change it */
    uint32_t stage;             /* what the step's stage is called in the end */
} cd_sk_open;

/* A stage whose axes are split as by a step of another. */
typedef struct cd_sk_follower {
    uint32_t stage, step;       /* what the stage is called in the end; the step it follows */
} cd_sk_follower;

typedef struct cd_sk_opens {
    uint32_t n, n_follower;
    const cd_sk_open *p;
    const cd_sk_follower *follower; /* of GPUs, those that become blocks, virtual threads and threads */
} cd_sk_opens;

struct cd_sketches {
    cd_arena arena;
    const cd_te_dag *dag;
    cd_hardware hw;
    bool gpu, naive;
    cd_sched sched;             /* to build progs with */
    cd_sk_prog *prog;
    cd_sk_state **sketch;
    cd_sk_opens *open;          /* (n_sketch) */
    uint32_t n_sketch, cap_sketch;
    cd_sk_tile *tile;           /* list */
};

typedef struct cd_sk_menu cd_sk_menu;

/* Where choices come from: random numbers; given numbers; given meanings (cd_choice.value). */
typedef enum { CD_SK_RANDOM, CD_SK_PICKS, CD_SK_VALUES } cd_sk_source;

struct cd_sketch_sampler {
    cd_arena arena;
    cd_sched sched;
    const cd_sketches *space;
    uint64_t seed, key, drawn;  /* of the random numbers */
    cd_sk_source source;
    bool strict;                /* limits that Ansor asks of fresh schedules only */
    void (*listen)(void *ctx, const cd_sk_menu *m); /* NULL: nobody */
    void *listener;
    cd_choices given, made;
    uint32_t at;                /* next of given */
    bool oom;
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

/* ---- sketchtile.c: the lengths of a split as numbers 0 .. ways-1 ---- */
/* For at least n lengths of an extent 1 .. INT32_MAX. NULL: no memory. */
const cd_sk_tile *cd_sk_tile_get(cd_sketches *sp, int64_t ext, uint32_t n);
uint32_t cd_sk_tile_ways(const cd_sk_tile *t, uint32_t n);
void cd_sk_tile_lengths(const cd_sk_tile *t, uint32_t n, uint32_t pick, int32_t *len);
/* False: lengths that are none of the ways. */
bool cd_sk_tile_number(const cd_sk_tile *t, uint32_t n, const int32_t *len, uint32_t *pick);
/* want: (n + 1) lengths, the outermost first, > 0. UINT32_MAX: no memory. */
uint32_t cd_sk_tile_nearest(const cd_sk_tile *t, uint32_t n, const double *want, cd_arena *a);

/* ---- sketchtape.c ---- */
/* What a decision may be. */
struct cd_sk_menu {
    cd_choice_kind kind;
    uint32_t at;
    const uint32_t *value;      /* (n + hidden) what each option means; NULL: its number */
    uint32_t n;
    uint32_t n_draw;            /* fresh schedules have one of the first n_draw; 0: the first, without a random number */
    uint32_t other;             /* where meanings are given and none for this: the option */
    uint32_t hidden;            /* options behind the n that only records have */
};
/* 0 .. n-1; noted on the tape. n >= 1. */
uint32_t cd_sk_choose(cd_sketch_sampler *w, const cd_sk_menu *m);
uint64_t cd_sk_random(cd_sketch_sampler *w, uint64_t n); /* 0 .. n-1 */
/* The length of a split that fresh schedules make by `length`: that, or what Ansor's mutation of tiles leads to: factors
 * move between the two parts. Records also have lengths that fitted the extent of an ancestor. ext < 1: unknown. */
int32_t cd_sk_choose_length(cd_sketch_sampler *w, uint32_t stage, int64_t ext, int32_t length);
/* Meanings of CD_CHOICE_PLACE. */
enum { CD_SK_PLACE_INLINE = 0, CD_SK_PLACE_ROOT = 1 };
static inline uint32_t cd_sk_place(uint32_t stage, uint32_t loop) { return (stage + 1) << 16 | loop; }
static inline uint32_t cd_sk_place_stage(uint32_t v) { return (v >> 16) - 1; }
static inline uint32_t cd_sk_place_loop(uint32_t v) { return v & 0xffff; }
/* Complete a schedule from what has been set in w. */
cdmpp_status cd_sk_play(cd_sketch_sampler *w, cd_draft *out, cdmpp_err *err);
/* Set given: a copy; room in it for n. */
cdmpp_status cd_sk_give(cd_sketch_sampler *w, const cd_choice *c, uint32_t n, cdmpp_err *err);
cdmpp_status cd_sk_room(cd_sketch_sampler *w, uint32_t n, cdmpp_err *err);

/* ---- sketchrules.c, sketchfill.c, sketchbind.c ---- */
cdmpp_status cd_sk_generate(cd_sketches *sp, cdmpp_err *err);
/* One more sketch. False: no memory. */
bool cd_sk_keep(cd_sketches *sp, cd_sk_state *s);
/* All decisions after that of the sketch. False: a rule is broken, or no memory. */
bool cd_sk_complete(cd_sketch_sampler *w, cd_sk_state *s, uint32_t sketch);
/* Infer bounds: extents of attached stages become known. False: the program is impossible. */
bool cd_sk_infer(cd_sketch_sampler *w, cd_sk_state *s);
/* Bind loops to threads of a GPU; false: too few or too many. */
bool cd_sk_thread_bind(cd_sketch_sampler *w, cd_sk_state *s, const cd_sk_opens *o);
/* Every stage by itself: its spatial loops to blocks and a warp of threads. */
void cd_sk_bind_plain(const cd_sketches *sp, cd_sk_state *s);
#endif
