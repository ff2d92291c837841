/* sched -- one program being scheduled: stages, iterators, relations.
 *
 *   stage "matmul"   all   i  j  k | i.outer i.inner ...     every iterator made
 *                    leaf  i.outer j.outer k.outer i.inner   the loops, outermost first
 *                    rel   split(i -> i.outer, i.inner), ... in creation order
 *
 *   (1) iterators, operators and stages are numbers into the arrays of cd_sched;
 *   (2) order[s] is the stage with TVM's stage id s; ids shift when cache and
 *       rfactor steps insert stages, stage numbers never change;
 *   (3) axes of a stage is the bookkeeping list that steps index; leaf is the
 *       same iterators as the te schedule sees them;
 *   (4) a tensor keeps its number when its operator is rewritten, so readers
 *       need no rewriting and the buffer keeps its identity (spec 5.7);
 *   (5) r_min/r_ext are the inferred range of an iterator, NULL before.
 *
 * Private to features/. One cd_sched per thread, reset for each program. */
#ifndef CD_SCHED_H
#define CD_SCHED_H
#include "features/nest/nest.h"
#include "features/task/task.h"
#include "features/simplify/simplify.h"
#include "features/expr/expr.h"
#include "features/te/te.h"

/* No program that anyone tunes comes near these; they bound time and memory. */
#define CD_STEP_MAX_LIST 256 /* items of a step's list: iterators of a stage, split lengths */
#define CD_MAX_STEP 1000
#define CD_MAX_STAGE 256
#define CD_MAX_ITER 10000    /* iterators ever made, of all stages */

typedef struct cd_ivec { /* arena-backed list of numbers */
    int32_t *p;
    uint32_t n, cap;
} cd_ivec;

enum { CD_IV_SPATIAL = 0, CD_IV_THREAD = 1, CD_IV_REDUCE = 2 }; /* TVM's IterVarType, as far as it occurs */

/* How an iterator's name derives from others; text is made only when printed. */
typedef enum cd_iv_name { CD_NAME_TEXT, CD_NAME_OUTER, CD_NAME_INNER, CD_NAME_FUSED, CD_NAME_SAME,
                          CD_NAME_CACHE, CD_NAME_REDUCE_V, CD_NAME_INIT } cd_iv_name;

typedef struct cd_pragma { /* auto_unroll_max_step = value, then unroll_explicit = 1 */
    int32_t value;
    struct cd_pragma *next;
} cd_pragma;

typedef struct cd_iv {
    const cd_expr *var;
    const cd_expr *min, *extent;     /* declared domain; NULL for derived iterators */
    const cd_expr *r_min, *r_ext;    /* inferred range                              */
    const cd_expr *loop_ext;         /* leaves, while lowered: r_ext in terms of loops */
    const cd_expr *val;              /* value in the nest being made                */
    const cd_expr *set_lo, *set_hi;  /* scratch of PassUpDomain                     */
    cd_pragma *pragma;
    const char *text;                /* name: CD_NAME_TEXT                          */
    int32_t from, from2;             /* name: the iterators it derives from         */
    int32_t thread;                  /* thread axis this leaf is bound to, or -1    */
    uint8_t type, name_kind;
    uint8_t loop;                    /* cd_loop_kind                                */
    uint8_t tag;                     /* thread axes: cd_tag                         */
    bool flag, dead, threaded;       /* scratch: touched, skipped, ends in a thread */
    uint8_t mask;                    /* scratch                                     */
} cd_iv;

typedef struct cd_sop { /* an operator as it is now */
    const char *name, *suffix;       /* printed name = name + suffix                */
    bool is_placeholder, const_matrix;
    uint32_t n_axis, n_raxis, n_out, rank;
    int32_t *axis, *raxis;           /* iterators                                   */
    uint32_t first_tensor;
    const int64_t *shape;
    const cd_dtype *dtype;
    const cd_expr **body;            /* (n_out)                                     */
    const cd_te_reducer *red;
    const cd_expr *cond;             /* NULL: always                                */
    const cd_expr *const *init;      /* (n_out) or NULL: the reducer's identity     */
} cd_sop;

typedef struct cd_rel {
    enum { CD_REL_SPLIT, CD_REL_FUSE, CD_REL_REBASE, CD_REL_SINGLETON } kind;
    int32_t parent;                  /* SPLIT, REBASE                               */
    int32_t outer, inner;            /* SPLIT results; FUSE operands                */
    int32_t made;                    /* FUSE fused; REBASE rebased; SINGLETON       */
    int64_t factor;                  /* SPLIT                                       */
    bool by_nparts;
} cd_rel;

typedef struct cd_stage {
    int32_t op;
    cd_ivec all, leaf, axes;
    cd_rel *rel;
    uint32_t n_rel, cap_rel;
    enum { CD_AT_ROOT, CD_AT_INLINE, CD_AT_SCOPE, CD_AT_INLINED } attach;
    int32_t at_stage, at_iv;         /* CD_AT_SCOPE: stage number, leaf of it       */
    const char *scope;               /* "" unless a cache stage                     */
    bool is_output;
} cd_stage;

typedef struct cd_sched {
    cd_arena arena;
    cd_pool pool;
    cd_simp *simp;
    cd_subst subst, subst2;          /* two: inlining nests one in the other        */
    const cd_te_dag *dag;
    bool oom, inferred;
    bool real_const;                 /* constant matrices keep their elements: for code, not features */
    bool every_loop;                 /* loops of extent 1 are nodes too: programs of one sketch have the same loops */
    cd_iv *iv;
    int32_t n_iv, cap_iv;
    cd_sop *op;
    int32_t n_op, cap_op;
    cd_stage *stage;
    int32_t n_stage, cap_stage;
    cd_ivec order;                   /* stage id -> stage                           */
    cd_ivec tensor_op;               /* tensor number -> op                         */
    cd_ivec var_iv;                  /* variable number -> iterator, -1             */
    struct cd_known *known;          /* final ranges, once inferred (bound.c)       */
} cd_sched;

cdmpp_status cd_sched_init(cd_sched *s, cdmpp_err *err);
void cd_sched_free(cd_sched *s);
/* The task's initial state: one stage per operator. */
void cd_sched_start(cd_sched *s, const cd_te_dag *dag);
/* Spec 4.3. Errors: EINVALID with key "i[1][1][k]", EUNSUPPORTED. */
cdmpp_status cd_sched_apply(cd_sched *s, const cd_record *r, cdmpp_err *err);
/* Spec 5.2: inline, rebase, legalise attach points. */
cdmpp_status cd_sched_normalize(cd_sched *s, cdmpp_err *err);
/* Spec 5.4: fills r_min, r_ext of every iterator. */
cdmpp_status cd_sched_infer_bound(cd_sched *s, cdmpp_err *err);

/* ---- building blocks ---- */
/* Source of an analyzer that knows every range, and of one that knows all but
 * those of fused iterators, which TVM's bound inference never binds. */
bool cd_sched_ask(void *sched, const cd_expr *var, const cd_expr **min, const cd_expr **extent);
bool cd_sched_ask_unfused(void *sched, const cd_expr *var, const cd_expr **min, const cd_expr **extent);
bool cd_ivec_push(cd_sched *s, cd_ivec *v, int32_t x);
bool cd_ivec_insert(cd_sched *s, cd_ivec *v, uint32_t at, int32_t x);
void cd_ivec_remove(cd_ivec *v, uint32_t at, uint32_t n);
int32_t cd_ivec_find(const cd_ivec *v, int32_t x); /* index, -1 when absent */

int32_t cd_iv_new(cd_sched *s, uint8_t type, cd_iv_name name, int32_t from, int32_t from2);
int32_t cd_iv_root(cd_sched *s, uint8_t type, const cd_expr *var, const cd_expr *min, const cd_expr *extent,
                   const char *name);
int32_t cd_sop_new(cd_sched *s, const cd_sop *proto);
int32_t cd_stage_new(cd_sched *s, int32_t op);
/* all = leaf = axes = the operator's root iterators, no relations. */
void cd_stage_reset(cd_sched *s, cd_stage *st);
cd_rel *cd_rel_push(cd_sched *s, cd_stage *st);
static inline cd_stage *cd_stage_at(cd_sched *s, uint32_t id) { return &s->stage[s->order.p[id]]; }
static inline cd_sop *cd_stage_op(cd_sched *s, const cd_stage *st) { return &s->op[st->op]; }
/* Reads of tensors [first, first+n) anywhere in the operator? */
bool cd_sop_reads(const cd_sop *op, uint32_t first, uint32_t n);
const char *cd_sched_name(const void *sched, cd_op kind, uint32_t number); /* cd_names callback, text in a ring */

cdmpp_status cd_cache_stage_read(cd_sched *s, uint32_t id, const char *scope, const cd_step *t, cdmpp_err *err);
cdmpp_status cd_cache_stage_write(cd_sched *s, uint32_t id, const char *scope, cdmpp_err *err);
cdmpp_status cd_rfactor(cd_sched *s, uint32_t id, int32_t it, int32_t factor_axis, cdmpp_err *err);

/* Spec 5.4 (b): ranges of all iterators from those of the roots. */
cdmpp_status cd_pass_down_domain(cd_sched *s, cd_stage *st, cd_ana *a, bool allow_missing, cdmpp_err *err);
/* Spec 5.5: iv.val of ancestors from iv.val of the leaves. */
void cd_pass_up_index(cd_sched *s, cd_stage *st);
/* Spec 5.4: set_lo/set_hi of ancestors from those of the leaves. */
void cd_pass_up_domain(cd_sched *s, cd_stage *st);
/* Spec 5.6 over iv.val; iterators with iv.dead are skipped. Predicates go to `out`. */
typedef struct cd_preds {
    const cd_expr **p;
    uint32_t n, cap;
} cd_preds;
void cd_bound_check(cd_sched *s, cd_stage *st, bool skip_domain, cd_preds *out);
/* Spec 5.7: the loop nest of the whole program, before simplification. */
cdmpp_status cd_sched_lower(cd_sched *s, cd_ast *out, cdmpp_err *err);

/* Memory rank of a stage's scope: 0 global, 1 shared, 2 warp, 3 local; -1 unknown name. */
int cd_scope_rank(const char *scope);
/* Attach path (spec 5.4): innermost first. */
void cd_attach_path(cd_sched *s, const cd_stage *st, cd_ivec *out);
#endif
