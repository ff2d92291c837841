/* The door of features/schedule: one program being scheduled, from the steps of a record to a loop
 * nest.
 *
 *   cd_schedule_start -> _apply (steps) -> _normalize -> _infer_bound -> _lower
 *
 * Stages, iterators, relations:
 *
 *   stage "matmul"   all   i  j  k | i.outer i.inner ...     every iterator made
 *                    leaf  i.outer j.outer k.outer i.inner   the loops, outermost first
 *                    rel   split(i -> i.outer, i.inner), ... in creation order
 *
 *   (1) iterators, operators and stages are numbers into the arrays of cd_schedule;
 *   (2) order[s] is the stage with TVM's stage id s; ids shift when cache and
 *       rfactor steps insert stages, stage numbers never change;
 *   (3) axes of a stage is the bookkeeping list that steps index; leaf is the
 *       same iterators as the te schedule sees them;
 *   (4) a tensor keeps its number when its operator is rewritten, so readers
 *       need no rewriting and the buffer keeps its identity;
 *   (5) r_min/r_ext are the inferred range of an iterator, NULL before.
 *
 * What each step does is in docs/internals/ansor.md, Steps. One cd_schedule per thread, reset for
 * each program. */
#ifndef CD_SCHED_H
#define CD_SCHED_H
#include "features/nest/nest.h"
#include "features/task/task.h"

/* No program that anyone tunes comes near these; they bound time and memory. cd_schedule_apply
 * checks them. Arrays over stages, steps or iterators of a program have its own numbers of them,
 * never these. */
/* items of a step's list: iterators of a stage, split lengths */
#define CD_RECORD_STEP_MAX_LIST 256
#define CD_MAX_STEP             32768 /* at most UINT16_MAX: cd_sketch_choice.at */
#define CD_MAX_STAGE            4096
#define CD_MAX_ITER             65536 /* iterators ever made, of all stages */

typedef struct cd_schedule_ivec { /* arena-backed list of numbers */
    int32_t *p;
    uint32_t n, cap;
} cd_schedule_ivec;

/* TVM's IterVarType, as far as it occurs */
enum { CD_SCHEDULE_IV_SPATIAL = 0, CD_SCHEDULE_IV_THREAD = 1, CD_SCHEDULE_IV_REDUCE = 2 };

/* How an iterator's name derives from others; text is made only when printed. */
typedef enum cd_schedule_iv_name {
    CD_SCHEDULE_NAME_TEXT,
    CD_SCHEDULE_NAME_OUTER,
    CD_SCHEDULE_NAME_INNER,
    CD_SCHEDULE_NAME_FUSED,
    CD_SCHEDULE_NAME_SAME,
    CD_SCHEDULE_NAME_CACHE,
    CD_SCHEDULE_NAME_REDUCE_V,
    CD_SCHEDULE_NAME_INIT
} cd_schedule_iv_name;

typedef struct cd_schedule_pragma { /* auto_unroll_max_step = value, then unroll_explicit = 1 */
    int32_t value;
    struct cd_schedule_pragma *next;
} cd_schedule_pragma;

typedef struct cd_schedule_iv {
    const cd_expr *var;
    const cd_expr *min, *extent;    /* declared domain; NULL for derived iterators */
    const cd_expr *r_min, *r_ext;   /* inferred range                              */
    const cd_expr *loop_ext;        /* leaves, while lowered: r_ext in terms of loops */
    const cd_expr *val;             /* value in the nest being made                */
    const cd_expr *set_lo, *set_hi; /* scratch of PassUpDomain                     */
    cd_schedule_pragma *pragma, *last_pragma;
    const char *text;    /* name: CD_SCHEDULE_NAME_TEXT                          */
    int32_t from, from2; /* name: the iterators it derives from         */
    int32_t thread;      /* thread axis this leaf is bound to, or -1    */
    uint8_t type, name_kind;
    uint8_t loop;              /* cd_loop_kind                                */
    uint8_t tag;               /* thread axes: cd_ast_tag                         */
    bool flag, dead, threaded; /* scratch: touched, skipped, ends in a thread */
    uint8_t mask;              /* scratch                                     */
} cd_schedule_iv;

typedef struct cd_schedule_op { /* an operator as it is now */
    const char *name, *suffix;  /* printed name = name + suffix                */
    bool is_placeholder, const_matrix;
    bool inlined; /* its readers have its body in place of their reads */
    uint32_t n_axis, n_raxis, n_out, rank;
    int32_t *axis, *raxis; /* iterators                                   */
    uint32_t first_tensor;
    const int64_t *shape;
    const cd_dtype *dtype;
    const cd_expr **body; /* (n_out)                                     */
    const cd_te_reducer *red;
    const cd_expr *cond;        /* NULL: always                                */
    const cd_expr *const *init; /* (n_out) or NULL: the reducer's identity     */
} cd_schedule_op;

typedef struct cd_schedule_rel {
    enum {
        CD_SCHEDULE_REL_SPLIT,
        CD_SCHEDULE_REL_FUSE,
        CD_SCHEDULE_REL_REBASE,
        CD_SCHEDULE_REL_SINGLETON
    } kind;
    int32_t parent;       /* SPLIT, REBASE                               */
    int32_t outer, inner; /* SPLIT results; FUSE operands                */
    int32_t made;         /* FUSE fused; REBASE rebased; SINGLETON       */
    int64_t factor;       /* SPLIT                                       */
    bool by_nparts;
} cd_schedule_rel;

typedef struct cd_schedule_stage {
    int32_t op;
    cd_schedule_ivec all, leaf, axes;
    cd_schedule_rel *rel;
    uint32_t n_rel, cap_rel;
    enum {
        CD_SCHEDULE_AT_ROOT,
        CD_SCHEDULE_AT_INLINE,
        CD_SCHEDULE_AT_SCOPE,
        CD_SCHEDULE_AT_INLINED
    } attach;
    int32_t at_stage, at_iv; /* CD_SCHEDULE_AT_SCOPE: stage number, leaf of it       */
    const char *scope;       /* "" unless a cache stage                     */
    bool is_output;
} cd_schedule_stage;

typedef struct cd_schedule {
    cd_arena arena;
    cd_expr_pool pool;
    cd_simplifier *simp;
    cd_subst subst, subst2; /* two: inlining nests one in the other        */
    const cd_te_dag *dag;
    bool oom, inferred;
    uint32_t n_paste; /* bodies that are being pasted one into the other */
    /* SP steps so far that note another extent than that of the declared axis they split */
    uint32_t n_foreign;
    /* constant matrices keep their elements: for code, not features */
    bool real_const;
    /* loops of extent 1 are nodes too: programs of one sketch have the same loops */
    bool every_loop;
    cd_schedule_iv *iv;
    int32_t n_iv, cap_iv;
    cd_schedule_op *op;
    int32_t n_op, cap_op;
    cd_schedule_stage *stage;
    int32_t n_stage, cap_stage;
    cd_schedule_ivec order;     /* stage id -> stage                           */
    cd_schedule_ivec tensor_op; /* tensor number -> op                         */
    cd_schedule_ivec var_iv;    /* variable number -> iterator, -1             */
    struct cd_known *known;     /* final ranges, once inferred (bound.c)       */
} cd_schedule;

/* Memory for programs. Errors: ENOMEM; free it after an error too. */
cdmpp_status cd_schedule_init(cd_schedule *s, cdmpp_err *err);
void cd_schedule_free(cd_schedule *s);
/* The task's initial state: one stage per operator. */
void cd_schedule_start(cd_schedule *s, const cd_te_dag *dag);
/* Is the program within CD_MAX_STAGE and CD_MAX_ITER? Errors: EUNSUPPORTED, with the count and the
 * limit. */
cdmpp_status cd_schedule_check_size(const cd_schedule *s, cdmpp_err *err);
/* Applies the record's steps (ansor.md, Steps). Errors: EINVALID with key "i[1][1][k]",
 * EUNSUPPORTED (also of too many stages, steps or iterators). */
cdmpp_status cd_schedule_apply(cd_schedule *s, const cd_record *r, cdmpp_err *err);
/* Inline, rebase, legalise attach points (ansor.md, Normalization). Errors: EINVALID, ENOMEM. */
cdmpp_status cd_schedule_normalize(cd_schedule *s, cdmpp_err *err);
/* Fills r_min, r_ext of every iterator (ansor.md, Bounds). Errors: EINVALID, EUNSUPPORTED,
 * ENOMEM. */
cdmpp_status cd_schedule_infer_bound(cd_schedule *s, cdmpp_err *err);

/* ---- building blocks ---- */
/* Source of an analyzer that knows every range, and of one that knows all but
 * those of fused iterators, which TVM's bound inference never binds. */
bool cd_schedule_query_range(void *sched, const cd_expr *var, const cd_expr **min,
                             const cd_expr **extent);
bool cd_schedule_query_unfused(void *sched, const cd_expr *var, const cd_expr **min,
                               const cd_expr **extent);
bool cd_schedule_ivec_push(cd_schedule *s, cd_schedule_ivec *v, int32_t x);
bool cd_schedule_ivec_insert(cd_schedule *s, cd_schedule_ivec *v, uint32_t at, int32_t x);
void cd_schedule_ivec_remove(cd_schedule_ivec *v, uint32_t at, uint32_t n);
int32_t cd_schedule_ivec_find(const cd_schedule_ivec *v, int32_t x); /* index, -1 when absent */

/* New iterators, operators and stages, by number: an iterator derived from others, one of a
 * declared domain, a copy of an operator, a stage with the operator's loops. Out of memory: s->oom
 * is set. */
int32_t cd_schedule_iv_new(cd_schedule *s, uint8_t type, cd_schedule_iv_name name, int32_t from,
                           int32_t from2);
int32_t cd_schedule_iv_root(cd_schedule *s, uint8_t type, const cd_expr *var, const cd_expr *min,
                            const cd_expr *extent, const char *name);
int32_t cd_schedule_op_new(cd_schedule *s, const cd_schedule_op *proto);
/* A new relation at the end, to be filled in; never NULL. */
cd_schedule_rel *cd_schedule_rel_push(cd_schedule *s, cd_schedule_stage *st);
static inline cd_schedule_stage *cd_schedule_stage_at(cd_schedule *s, uint32_t id) {
    return &s->stage[s->order.p[id]];
}
static inline cd_schedule_op *cd_schedule_stage_op(cd_schedule *s, const cd_schedule_stage *st) {
    return &s->op[st->op];
}
/* cd_names callback, text in a ring */
const char *cd_schedule_name(const void *sched, cd_expr_op kind, uint32_t number);

/* The steps CHR, CHW and RF on the stage with this id. Errors: EINVALID, EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_cache_stage_read(cd_schedule *s, uint32_t id, const char *scope,
                                 const cd_record_step *t, cdmpp_err *err);
cdmpp_status cd_cache_stage_write(cd_schedule *s, uint32_t id, const char *scope, cdmpp_err *err);
cdmpp_status cd_schedule_rfactor(cd_schedule *s, uint32_t id, int32_t it, int32_t factor_axis,
                                 cdmpp_err *err);

/* Ranges of all iterators from those of the roots. allow_missing: iterators without a range are
 * left alone, and no split is tightened (for RF). Errors: EINVALID, EUNSUPPORTED. */
cdmpp_status cd_schedule_pass_down_domain(cd_schedule *s, cd_schedule_stage *st, cd_analyzer *a,
                                          bool allow_missing, cdmpp_err *err);
/* iv.val of ancestors from iv.val of the leaves. */
void cd_schedule_pass_up_index(cd_schedule *s, cd_schedule_stage *st);
/* set_lo/set_hi of ancestors from those of the leaves. */
void cd_schedule_pass_up_domain(cd_schedule *s, cd_schedule_stage *st);
/* Guards of a stage over iv.val (ansor.md, Bounds, Guards); iterators with iv.dead are skipped.
 * skip_domain: without the tensor's own domain, for the init of a reduction. Predicates go to
 * `out`. */
typedef struct cd_schedule_preds {
    const cd_expr **p;
    uint32_t n, cap;
} cd_schedule_preds;
/* As above. */
void cd_schedule_bound_check(cd_schedule *s, cd_schedule_stage *st, bool skip_domain,
                             cd_schedule_preds *out);
/* The loop nest of the whole program, before simplification (ansor.md, Lowering). Errors: EINVALID,
 * EUNSUPPORTED, ENOMEM. */
cdmpp_status cd_schedule_lower(cd_schedule *s, cd_ast *out, cdmpp_err *err);

/* Memory rank of a stage's scope: 0 global, 1 shared, 2 warp, 3 local; -1 unknown name. */
int cd_schedule_scope_rank(const char *scope);
/* Attach path: the loops around the stage, innermost first. */
void cd_schedule_attach_path(cd_schedule *s, const cd_schedule_stage *st, cd_schedule_ivec *out);
#endif
