/* Programs while they are being put together by rules: TVM's State (docs/internals/ansor.md,
 * Schedules).
 *
 *   cd_sketch_state: step[0..n_step)   what a record will hold
 *                stage[i].it[k]    the loops so far, outermost first
 *                prog              the operators, as cache and rfactor steps left them
 *
 *   (1) stage i of a state is operator i of its prog;
 *   (2) a length that is still open is 0 in a step's list; ext is -1 where it is
 *       not known: below an open length, and in attached stages until bounds
 *       have been inferred;
 *   (3) states are copied before they are changed; what they point to is not
 *       shared but for the prog, which never changes.
 * Private to the room. */
#ifndef CD_SKETCHINT_H
#define CD_SKETCHINT_H
#include "features/schedule/schedule.h"
#include "features/sketch/sketch.h"

/* TVM's IteratorKind. */
enum { CD_SKETCH_SPATIAL, CD_SKETCH_REDUCE, CD_SKETCH_MIXED, CD_SKETCH_SPECIAL };
/* TVM's annotations, as in records. */
enum {
    CD_SKETCH_NONE,
    CD_SKETCH_UNROLL,
    CD_SKETCH_VECTORIZE,
    CD_SKETCH_PARALLEL,
    CD_SKETCH_VTHREAD,
    CD_SKETCH_BLOCK_X,
    CD_SKETCH_THREAD_X
};
enum { CD_SKETCH_ROOT, CD_SKETCH_INLINED, CD_SKETCH_AT };

typedef struct cd_sketch_iter {
    int64_t ext;
    /* bit k: made from axis k of its operator (reduce axes behind spatial ones) */
    uint64_t origin;
    uint8_t kind, ann;
    int8_t level; /* part of a split, 0 outermost; -1 whole, -2 fused */
} cd_sketch_iter;

typedef struct cd_sketch_op {
    bool placeholder, output, strict, tiling, simplify_const, shared;
    uint32_t rank, n_axis, n_raxis;
    uint64_t unrolled;    /* simplify_const: axes that index constant matrices */
    const int64_t *shape; /* (rank) */
    cd_sketch_iter *init; /* (n_axis + n_raxis) */
} cd_sketch_op;

/* One operator reads another directly. */
typedef struct cd_sketch_edge {
    uint32_t read, reader;
    uint32_t common; /* outer axes that both walk alike */
    bool same;       /* every read is simple, uses each axis once, in order */
} cd_sketch_edge;

typedef struct cd_sketch_program {
    uint32_t n;
    cd_sketch_op *op; /* (n) */
    /* all edges: by reader; by what is read, its readers ascending */
    const cd_sketch_edge *in, *out;
    const uint32_t *first_in, *first_out; /* (n + 1) where those of an operator begin */
    struct cd_sketch_program *next;
    uint32_t n_step; /* the steps that made it: where two states share one */
    const cd_record_step *step;
} cd_sketch_program;

typedef struct cd_sketch_stage {
    cd_sketch_iter *it;
    uint32_t n;
    uint8_t at;
    int32_t at_stage, at_it; /* CD_SKETCH_AT */
    /* the first stage that is attached to this one; the next one attached to the same; -1: none.
     * Ascending */
    int32_t child, next;
} cd_sketch_stage;

/* Room for walks over stages, one at a time: cd_sketch_marks_begin. Shared by the states of one
 * arena. */
typedef struct cd_sketch_marks {
    uint32_t *met, *value, *list; /* (cap) met[k] == walk: stage k has been met */
    uint32_t cap, walk;
} cd_sketch_marks;

typedef struct cd_sketch_state {
    cd_arena *a;
    cd_record_step *step;
    cd_sketch_stage *stage;
    uint32_t n_step, cap_step, n_stage;
    const cd_sketch_program *prog;
    cd_sketch_marks *marks; /* with room for n_stage */
    bool oom, failed;       /* failed: a step did not fit; the state is dropped */
} cd_sketch_state;

/* Products of extents stop at the ends of the type: shapes are anybody's. */
static inline int64_t cd_sketch_saturating_mul(int64_t a, int64_t b) {
    int64_t c;
    if (!__builtin_mul_overflow(a, b, &c)) return c;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

enum {
    CD_SKETCH_MAX_INNERMOST = 64,
    CD_SKETCH_MAX_VECTOR = 16,
    CD_SKETCH_MAX_WIDE = 256,
    CD_SKETCH_MAX_LEVEL = 16
};

typedef struct cd_sketch_tile cd_sketch_tile; /* sketch_tile.c */

/* A split whose lengths are chosen. tile NULL: of unknown extent, all lengths 1. */
typedef struct cd_sketch_open_split {
    uint32_t step;
    const cd_sketch_tile *tile;
    /* > 0: the only length, as the sketch has it; mutations change it */
    int32_t fixed;
    uint32_t stage; /* what the step's stage is called in the end */
} cd_sketch_open_split;

/* A stage whose axes are split as by a step of another. */
typedef struct cd_sketch_follower {
    uint32_t stage, step; /* what the stage is called in the end; the step it follows */
} cd_sketch_follower;

typedef struct cd_sketch_open_splits {
    uint32_t n, n_follower;
    const cd_sketch_open_split *p;
    /* of GPUs, those that become blocks, virtual threads and threads */
    const cd_sketch_follower *follower;
} cd_sketch_open_splits;

struct cd_sketch_space {
    cd_arena arena;
    const cd_te_dag *dag;
    cd_hardware hw;
    bool gpu, naive;
    cd_schedule sched; /* to build progs with */
    cd_sketch_program *prog;
    cd_sketch_state **sketch;
    cd_sketch_open_splits *open; /* (n_sketch) */
    uint32_t n_sketch, cap_sketch;
    cd_sketch_tile *tile; /* list */
};

typedef struct cd_sketch_options cd_sketch_options;

/* Where choices come from: random numbers; given numbers; given meanings
 * (cd_sketch_choice.value). */
typedef enum { CD_SKETCH_RANDOM, CD_SKETCH_PICKS, CD_SKETCH_VALUES } cd_sketch_source;

struct cd_sketch_sampler {
    cd_arena arena;
    cd_schedule sched;
    const cd_sketch_space *space;
    uint64_t seed, key, drawn; /* of the random numbers */
    cd_sketch_source source;
    bool strict; /* with the limits that Ansor sets to fresh schedules only */
    void (*listen)(void *ctx, const cd_sketch_options *m); /* gets every decision; NULL: none */
    void *listener;
    cd_sketch_choices given, made;
    uint32_t at; /* next of given */
    /* of given, by kind and place: place + 1 in the list, and that of the next one behind */
    uint32_t *slot, *chain, n_slot;
    bool oom;
};

/* ---- sketch_program.c ---- */
/* The operators after the steps that add stages. NULL: they do not fit or no memory. */
const cd_sketch_program *cd_sketch_program_get(cd_sketch_space *sp, const cd_record_step *step,
                                               uint32_t n_step);

/* ---- sketch_state.c ---- */
cd_sketch_state *cd_sketch_start(cd_arena *a, const cd_sketch_program *prog);
cd_sketch_state *cd_sketch_copy(cd_arena *a, const cd_sketch_state *s);
/* Stage `stage` is computed at loop `it` of `target`, or is no longer computed at any. No step. */
void cd_sketch_attach(cd_sketch_state *s, uint32_t stage, uint32_t target, uint32_t it);
void cd_sketch_detach(cd_sketch_state *s, uint32_t stage);
/* Steps. Iterators are named by position. */
void cd_sketch_split(cd_sketch_state *s, uint32_t stage, uint32_t it, const int64_t *len,
                     uint32_t n);
void cd_sketch_follow_split(cd_sketch_state *s, uint32_t stage, uint32_t it, uint32_t source,
                            uint32_t n_split);
void cd_sketch_follow_fused_split(cd_sketch_state *s, uint32_t stage, uint32_t it,
                                  const uint32_t *source, uint32_t n, uint32_t level);
uint32_t cd_sketch_fuse(cd_sketch_state *s, uint32_t stage, uint32_t first, uint32_t n);
void cd_sketch_reorder(cd_sketch_state *s, uint32_t stage, const uint32_t *order);
void cd_sketch_annotate(cd_sketch_state *s, uint32_t stage, uint32_t it, uint8_t ann);
void cd_sketch_compute_at(cd_sketch_state *s, uint32_t stage, uint32_t target, uint32_t it);
void cd_sketch_compute_inline(cd_sketch_state *s, uint32_t stage);
/* Stage-adding steps: the state takes the prog that results. */
void cd_sketch_cache_read(cd_sketch_space *sp, cd_sketch_state *s, uint32_t stage, uint32_t reader);
void cd_sketch_cache_write(cd_sketch_space *sp, cd_sketch_state *s, uint32_t stage);
void cd_sketch_rfactor(cd_sketch_space *sp, cd_sketch_state *s, uint32_t stage, uint32_t it,
                       uint32_t axis);

/* ---- sketch_query.c: inlined stages are transparent ---- */
static inline bool cd_sketch_is_reduce(const cd_sketch_iter *it) {
    return it->kind == CD_SKETCH_REDUCE;
}
/* Stages in ascending order, until the next walk over this state's marks; how many. */
uint32_t cd_sketch_consumers(const cd_sketch_state *s, uint32_t stage, const uint32_t **list);
bool cd_sketch_has_producers(const cd_sketch_state *s, uint32_t stage);
bool cd_sketch_has_reduce(const cd_sketch_stage *st);
bool cd_sketch_has_attached(const cd_sketch_state *s, uint32_t stage, uint32_t it);
bool cd_sketch_has_step(const cd_sketch_state *s, uint32_t stage, cd_record_step_kind kind);
/* More or fewer iterators than axes. */
bool cd_sketch_is_tiled(const cd_sketch_state *s, uint32_t stage);
/* The only consumer that reads element by element, -1. */
int32_t cd_sketch_matched_consumer(const cd_sketch_state *s, uint32_t stage);
/* The only consumer, or the stage that all consumers are attached to, -1. */
int32_t cd_sketch_single_consumer(const cd_sketch_state *s, uint32_t stage);
uint32_t cd_sketch_common_outer(const cd_sketch_state *s, uint32_t stage, uint32_t target);
bool cd_sketch_has_cross_thread(const cd_sketch_state *s, uint32_t stage);
/* Products of spatial and of reduction extents. */
void cd_sketch_volume(const cd_sketch_stage *st, int64_t *space, int64_t *reduce);
bool cd_sketch_can_inline(const cd_sketch_space *sp, const cd_sketch_state *s, uint32_t stage);
/* Splits of a stage, last first; how many. */
uint32_t cd_sketch_stage_splits(const cd_sketch_state *s, uint32_t stage, uint32_t *step,
                                uint32_t cap);
/* Does the step add a stage? */
static inline bool cd_sketch_adds_stage(cd_record_step_kind k) {
    return k == CD_RECORD_STEP_CHR || k == CD_RECORD_STEP_CHW || k == CD_RECORD_STEP_RF;
}

/* ---- sketch_tile.c: the lengths of a split as numbers 0 .. ways-1 ---- */
/* For at least n lengths of an extent 1 .. INT32_MAX. NULL: no memory. */
const cd_sketch_tile *cd_sketch_tile_get(cd_sketch_space *sp, int64_t ext, uint32_t n);
uint32_t cd_sketch_tile_count(const cd_sketch_tile *t, uint32_t n);
void cd_sketch_tile_lengths(const cd_sketch_tile *t, uint32_t n, uint32_t pick, int32_t *len);
/* False: lengths that are none of the ways. */
bool cd_sketch_tile_index(const cd_sketch_tile *t, uint32_t n, const int32_t *len, uint32_t *pick);
/* want: (n + 1) lengths, the outermost first, > 0. UINT32_MAX: no memory. */
uint32_t cd_sketch_tile_nearest(const cd_sketch_tile *t, uint32_t n, const double *want,
                                cd_arena *a);

/* ---- sketch_decisions.c ---- */
/* What a decision may be. */
struct cd_sketch_options {
    cd_sketch_choice_kind kind;
    uint32_t at;
    const uint32_t *value; /* (n + hidden) what each option means; NULL: its number */
    uint32_t n;
    /* fresh schedules have one of the first n_draw; 0: the first, without a random number */
    uint32_t n_draw;
    uint32_t other;  /* where meanings are given and none for this: the option */
    uint32_t hidden; /* options behind the n that only records have */
};
/* 0 .. n-1; noted in w->made. n >= 1. */
uint32_t cd_sketch_choose(cd_sketch_sampler *w, const cd_sketch_options *m);
/* The length of a split that fresh schedules make by `length`: that, or what Ansor's mutation of
 * tiles leads to: factors move between the two parts. Records also have lengths that fitted the
 * extent of an ancestor. ext < 1: unknown. */
int32_t cd_sketch_choose_length(cd_sketch_sampler *w, uint32_t stage, int64_t ext, int32_t length);
/* Meanings of CD_SKETCH_CHOICE_PLACE. */
enum { CD_SKETCH_PLACE_INLINE = 0, CD_SKETCH_PLACE_ROOT = 1 };
static inline uint32_t cd_sketch_place(uint32_t stage, uint32_t loop) {
    return (stage + 1) << 16 | loop;
}
static inline uint32_t cd_sketch_place_stage(uint32_t v) { return (v >> 16) - 1; }
static inline uint32_t cd_sketch_place_loop(uint32_t v) { return v & 0xffff; }

/* ---- sketch_query.c, sketch_state.c, sketch.c ---- */
cdmpp_status cd_sketch_generate(cd_sketch_space *sp, cdmpp_err *err);
/* One more sketch. False: no memory. */
bool cd_sketch_space_add(cd_sketch_space *sp, cd_sketch_state *s);
/* All decisions after that of the sketch. False: a rule is broken, or no memory. */
bool cd_sketch_complete(cd_sketch_sampler *w, cd_sketch_state *s, uint32_t sketch);
/* Infer bounds: extents of attached stages become known. False: the program is impossible. */
bool cd_sketch_infer_bound(cd_sketch_sampler *w, cd_sketch_state *s);
/* Bind loops to threads of a GPU; false: too few or too many. */
bool cd_sketch_bind_threads(cd_sketch_sampler *w, cd_sketch_state *s,
                            const cd_sketch_open_splits *o);
#endif
