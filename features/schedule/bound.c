/* Bound inference: which part of its tensor each stage must compute, from the last stage to the
 * first. The readers' loops become sets, the sets pass up to their axes, through their index
 * expressions, and down to the loops of the stage (docs/internals/ansor.md, Bounds). */
#include <string.h>

#include "features/schedule/readers.h"
#include "features/schedule/schedule.h"

/* Readers and attached stages as lists: one walk over all bodies, one over all stages. */

typedef struct {
    cd_schedule *s;
    /* by expression id: reader + 1 that met it, and where its load stands in raw */
    uint32_t *seen, *at;
    cd_schedule_use *raw; /* (n) in the order of the walk */
    uint32_t n, cap, reader;
    bool oom;
} finder;

static int32_t op_of(const cd_schedule *s, const cd_expr *load) {
    return (uint64_t)load->u.i < s->tensor_op.n ? s->tensor_op.p[load->u.i] : -1;
}

static void add(finder *f, const cd_expr *e) {
    if (op_of(f->s, e) < 0) return;
    if (CD_GROW_IN(&f->s->arena, f->raw, f->n, f->cap)) {
        f->oom = true;
        return;
    }
    f->at[e->id] = f->n;
    f->raw[f->n++] = (cd_schedule_use){e, f->reader, false};
}

/* Shared parts of a body are walked once: a body may unfold to far more than it has nodes. */
static void walk(finder *f, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_LOAD) || f->oom) return;
    if (f->seen[e->id] == f->reader + 1) {
        if (e->op == CD_LOAD && op_of(f->s, e) >= 0) f->raw[f->at[e->id]].again = true;
        return;
    }
    f->seen[e->id] = f->reader + 1;
    if (e->op == CD_LOAD) add(f, e);
    for (uint32_t i = 0; i < e->n; i++) walk(f, e->a[i]);
}

static void walk_stages(finder *f) {
    cd_schedule *s = f->s;
    for (f->reader = 0; f->reader < s->order.n && !f->oom; f->reader++) {
        const cd_schedule_stage *st = cd_schedule_stage_at(s, f->reader);
        const cd_schedule_op *op = cd_schedule_stage_op(s, st);
        if (st->attach == CD_SCHEDULE_AT_INLINED || op->is_placeholder) continue;
        for (uint32_t k = 0; k < op->n_out; k++) walk(f, op->body[k]);
        if (op->cond) walk(f, op->cond);
    }
}

/* By operator read, otherwise in the order of the walk. */
static bool sort(const finder *f, cd_schedule_readers *out) {
    cd_schedule *s = f->s;
    const uint32_t n = (uint32_t)s->n_op;
    uint32_t *at = CD_NEWN(&s->arena, uint32_t, n + 1);
    out->first = CD_NEWN(&s->arena, uint32_t, n + 1);
    out->use = cd_arena_alloc(&s->arena, (size_t)f->n + 1, sizeof *out->use);
    if (!at || !out->first || !out->use) return false;
    for (uint32_t k = 0; k < f->n; k++) out->first[op_of(s, f->raw[k].load) + 1]++;
    for (uint32_t k = 0; k < n; k++) at[k + 1] = out->first[k + 1] += out->first[k];
    for (uint32_t k = 0; k < f->n; k++) out->use[at[op_of(s, f->raw[k].load)]++] = f->raw[k];
    return true;
}

/* Fills *out; it lives as long as the program. Errors: ENOMEM. */
static cdmpp_status schedule_readers_find(cd_schedule *s, cd_schedule_readers *out,
                                          cdmpp_err *err) {
    finder f = {.s = s, .seen = CD_NEWN(&s->arena, uint32_t, (size_t)s->pool.n + 1)};
    f.at = cd_arena_alloc(&s->arena, (size_t)s->pool.n + 1, sizeof *f.at);
    if (f.seen && f.at) walk_stages(&f);
    return f.seen && f.at && !f.oom && sort(&f, out) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "readers");
}

cdmpp_status cd_schedule_attached_find(cd_schedule *s, cd_schedule_attached *out, cdmpp_err *err) {
    const size_t n = (size_t)s->n_stage + 1;
    out->first = cd_arena_alloc(&s->arena, n, sizeof *out->first);
    out->next = cd_arena_alloc(&s->arena, n, sizeof *out->next);
    if (!out->first || !out->next) return CD_FAIL(err, ENOMEM, "attached stages");
    memset(out->first, 0xff, n * sizeof *out->first);
    for (uint32_t id = s->order.n; id-- > 0;) {
        const int32_t k = s->order.p[id];
        if (s->stage[k].attach != CD_SCHEDULE_AT_SCOPE) continue;
        out->next[k] = out->first[s->stage[k].at_stage];
        out->first[s->stage[k].at_stage] = k;
    }
    return CDMPP_OK;
}

#define BIN(op, a, b) cd_expr_bin(&s->pool, CD_##op, (a), (b))

typedef struct {
    cd_schedule *s;
    cdmpp_err *err;
    cd_analyzer *shared; /* TVM's: no ranges of fused iterators  */
    cd_analyzer *all;    /* every range known so far             */
    cd_schedule_readers readers;
    cd_schedule_stage *st; /* the stage whose bounds are wanted    */
    const cd_schedule_op *op;
    int rank; /* its memory rank                      */
    cd_schedule_ivec path, reader_path;
    cd_intset_union *dim; /* (op->rank) what the readers touch    */
} inferrer;

/* ---- one reader ---- */

static const cd_schedule_iv *thread_of(const cd_schedule *s, const cd_schedule_iv *iv) {
    return iv->thread >= 0 ? &s->iv[iv->thread] : NULL;
}

/* Must the whole range of this loop of the reader be covered? Loops inside the
 * attach point, and threads that do not share the stage's memory. */
static bool need_relax(const inferrer *f, const cd_schedule_iv *iv, bool found) {
    const cd_schedule_iv *t = thread_of(f->s, iv);
    if (!t) return !found;
    if (f->rank == 2 && t->tag == CD_AST_TAG_TX) return true;
    return f->rank <= cd_ast_tag_rank((cd_ast_tag)t->tag);
}

/* From the innermost loop outward; the loop that the stage is attached at, and all outside it, are
 * fixed. */
static cdmpp_status leaf_sets(inferrer *f, const cd_schedule_stage *reader, bool *found) {
    cd_schedule *s = f->s;
    for (uint32_t i = reader->leaf.n; i-- > 0;) {
        cd_schedule_iv *iv = &s->iv[reader->leaf.p[i]];
        if (f->path.n && reader->leaf.p[i] == f->path.p[0]) *found = true;
        if (!iv->r_ext) return CD_FAIL(f->err, EINVALID, "loop of a reader without a range");
        cd_intset x;
        if (cd_expr_is_int_value(iv->r_ext, 1)) {
            x = cd_intset_point(iv->r_min);
        } else if (!need_relax(f, iv, *found)) {
            if (!cd_expr_is_int_value(iv->r_min, 0))
                return CD_FAIL(f->err, EINVALID, "loop that does not start at zero");
            x = cd_intset_point(iv->thread >= 0 ? s->iv[iv->thread].var : iv->var);
        } else {
            x = cd_intset_range(&s->pool, iv->r_min, iv->r_ext);
        }
        iv->set_lo = x.lo;
        iv->set_hi = x.hi;
    }
    return CDMPP_OK;
}

/* Loops around the reader that must be covered as a whole. */
static cdmpp_status relax_sets(inferrer *f, const cd_schedule_stage *reader, bool *found,
                               cd_intset_var **out, uint32_t *n) {
    cd_schedule *s = f->s;
    cd_schedule_attach_path(s, reader, &f->reader_path);
    cd_intset_var *v = cd_arena_alloc(&s->arena, 2 * f->reader_path.n, sizeof *v);
    if (!v) return CD_FAIL(f->err, ENOMEM, "bounds");
    *n = 0;
    for (uint32_t i = 0; i < f->reader_path.n; i++) {
        const cd_schedule_iv *iv = &s->iv[f->reader_path.p[i]];
        if (f->path.n && f->reader_path.p[i] == f->path.p[0]) *found = true;
        if (!iv->r_ext || !cd_expr_is_int_value(iv->r_min, 0))
            return CD_FAIL(f->err, EINVALID, "loop that does not start at zero");
        if (!need_relax(f, iv, *found)) continue;
        const cd_intset x = cd_intset_range(&s->pool, iv->r_min, iv->r_ext);
        v[(*n)++] = (cd_intset_var){iv->var, x};
        if (iv->thread >= 0) v[(*n)++] = (cd_intset_var){s->iv[iv->thread].var, x};
    }
    *out = v;
    return CDMPP_OK;
}

/* The reader's root iterators as sets over the loops that stay outside. */
static cd_intset root_set(inferrer *f, const cd_schedule_iv *iv, const cd_intset_var *relax,
                          uint32_t n_relax) {
    cd_schedule *s = f->s;
    cd_analyzer *fresh = cd_simplify_fresh_analyzer(s->simp);
    const cd_expr *min = iv->min, *ext = iv->extent;
    if (iv->set_lo)
        cd_intset_cover(&s->pool, fresh, (cd_intset){iv->set_lo, iv->set_hi}, &min, &ext);
    if (!n_relax) return cd_intset_range(&s->pool, min, ext);
    cd_intset_env env = {
        .dom = relax, .n = n_relax, .ana = f->all, .fresh = fresh, .pool = &s->pool};
    const cd_expr *sum = BIN(ADD, min, ext),
                  *end = BIN(SUB, sum, cd_expr_new_int(&s->pool, sum->type, 1));
    const cd_expr *lo = cd_intset_eval(&env, min).lo;
    env.depth = 0;
    return (cd_intset){lo, cd_intset_eval(&env, end).hi};
}

typedef struct {
    inferrer *f;
    cd_intset_env env;
} toucher;

/* Value of `e` with every loop at its last iteration; false: not that simple. */
static bool last_value(const cd_schedule *s, const cd_expr *e, int64_t *out) {
    int64_t x, y;
    const cd_expr *min, *ext;
    if (e->op == CD_INT) return *out = e->u.i, true;
    if (e->op == CD_VAR) {
        const uint64_t k = (uint64_t)e->u.i;
        const int32_t i = k < s->var_iv.n ? s->var_iv.p[k] : -1;
        if (i < 0 || !(ext = s->iv[i].r_ext) || ext->op != CD_INT || !(min = s->iv[i].r_min))
            return false;
        if (!last_value(s, min, &x)) return false;
        return !__builtin_add_overflow(x, ext->u.i - 1, out);
    }
    if (e->op < CD_ADD || e->op > CD_MAX || !cd_expr_dtype_is_index(e->type)) return false;
    if (!last_value(s, e->a[0], &x) || !last_value(s, e->a[1], &y)) return false;
    switch ((cd_expr_op)e->op) {
    case CD_ADD: return !__builtin_add_overflow(x, y, out);
    case CD_SUB: return !__builtin_sub_overflow(x, y, out);
    case CD_MUL: return !__builtin_mul_overflow(x, y, out);
    case CD_FDIV: return y > 0 && (*out = cd_expr_floordiv(x, y), true);
    case CD_FMOD: return y > 0 && (*out = cd_expr_floormod(x, y), true);
    case CD_MIN: return *out = x < y ? x : y, true;
    case CD_MAX: return *out = x > y ? x : y, true;
    default: return false;
    }
}

/* a <= b for all values of the loops? One counterexample saves the proof. */
static bool provably_le(const inferrer *f, const cd_expr *a, const cd_expr *b, cd_expr_op op) {
    cd_schedule *s = f->s;
    int64_t x, y;
    if (last_value(s, a, &x) && last_value(s, b, &y)) {
        if (x > y) return false;
        if (a->op == CD_INT && b->op == CD_INT) return true;
    }
    return cd_simplify_prove(f->all, op == CD_GE ? BIN(GE, b, a) : BIN(LE, a, b));
}

/* What one read touches in each dimension; the whole dimension if that is no more. */
static void touch(toucher *t, const cd_expr *e) {
    inferrer *f = t->f;
    cd_schedule *s = f->s;
    for (uint32_t d = 0; d < f->op->rank && d < e->n; d++) {
        t->env.depth = 0;
        cd_intset x = cd_intset_eval(&t->env, e->a[d]);
        const cd_expr *lo = cd_expr_int(&s->pool, 0),
                      *hi = cd_expr_int(&s->pool, f->op->shape[d] - 1);
        const bool all = x.lo == CD_INTSET_INF && x.hi == CD_INTSET_INF;
        if (all || (cd_intset_finite(x) && provably_le(f, x.lo, lo, CD_GE) &&
                    provably_le(f, hi, x.hi, CD_LE)))
            x = (cd_intset){lo, hi};
        cd_intset_union_add(&s->pool, &f->dim[d], x);
    }
}

/* What this reader needs of the stage by its (n) loads, united into f->dim. */
static cdmpp_status one_reader(inferrer *f, const cd_schedule_stage *reader,
                               const cd_schedule_use *use, uint32_t n_use) {
    cd_schedule *s = f->s;
    const cd_schedule_op *op = cd_schedule_stage_op(s, reader);
    bool found = false;
    cd_intset_var *relax;
    uint32_t n_relax;
    for (uint32_t i = 0; i < reader->all.n; i++) s->iv[reader->all.p[i]].set_lo = NULL;
    CD_TRY(leaf_sets(f, reader, &found));
    CD_TRY(relax_sets(f, reader, &found, &relax, &n_relax));
    if (!found && f->path.n)
        return CD_FAIL(f->err, EINVALID, "attach point of %s is not around its reader",
                       f->op->name);
    cd_schedule_pass_up_domain(s, &s->stage[reader - s->stage]);
    const uint32_t n = op->n_axis + op->n_raxis;
    cd_intset_var *dom = cd_arena_alloc(&s->arena, n, sizeof *dom);
    if (!dom) return CD_FAIL(f->err, ENOMEM, "bounds");
    for (uint32_t i = 0; i < n; i++) {
        const cd_schedule_iv *iv = &s->iv[i < op->n_axis ? op->axis[i] : op->raxis[i - op->n_axis]];
        dom[i] = (cd_intset_var){iv->var, root_set(f, iv, relax, n_relax)};
    }
    toucher t = {f,
                 {.dom = dom,
                  .n = n,
                  .ana = f->all,
                  .fresh = cd_simplify_fresh_analyzer(s->simp),
                  .pool = &s->pool}};
    for (uint32_t k = 0; k < n_use; k++) {
        touch(&t, use[k].load);
        if (use[k].again) touch(&t, use[k].load); /* a union of two is simplified, as TVM's */
    }
    return CDMPP_OK;
}

/* ---- one stage ---- */

static void declared(cd_schedule *s, const int32_t *iv, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        s->iv[iv[i]].r_min = s->iv[iv[i]].min;
        s->iv[iv[i]].r_ext = s->iv[iv[i]].extent;
    }
}

/* Memory of a stage without a scope: by the threads around it. */
static int default_rank(const inferrer *f) {
    int most = -1;
    for (uint32_t i = 0; i < f->path.n; i++) {
        const cd_schedule_iv *t = thread_of(f->s, &f->s->iv[f->path.p[i]]);
        if (t && cd_ast_tag_rank((cd_ast_tag)t->tag) > most)
            most = cd_ast_tag_rank((cd_ast_tag)t->tag);
    }
    return most < 0 ? 0 : most == 0 ? 1 : 3;
}

/* A stage that nobody reads keeps its declared domain. */
static cdmpp_status from_readers(inferrer *f) {
    cd_schedule *s = f->s;
    cd_schedule_attach_path(s, f->st, &f->path);
    f->rank = f->st->scope[0] ? cd_schedule_scope_rank(f->st->scope) : default_rank(f);
    f->dim = CD_NEWN(&s->arena, cd_intset_union, f->op->rank);
    if (!f->dim) return CD_FAIL(f->err, ENOMEM, "bounds");
    const uint32_t *first = &f->readers.first[f->st->op];
    const cd_schedule_use *use = f->readers.use;
    for (uint32_t k = first[0], n; k < first[1]; k += n) {
        for (n = 1; k + n < first[1] && use[k + n].reader == use[k].reader;) n++;
        CD_TRY(one_reader(f, cd_schedule_stage_at(s, use[k].reader), use + k, n));
    }
    const bool read = first[1] > first[0];
    for (uint32_t d = 0; d < f->op->n_axis; d++) {
        cd_schedule_iv *iv = &s->iv[f->op->axis[d]];
        cd_analyzer *fresh = cd_simplify_fresh_analyzer(s->simp);
        iv->r_min = iv->min;
        iv->r_ext = iv->extent;
        if (read && d < f->op->rank) {
            const cd_intset all = cd_intset_union_get(fresh, &f->dim[d]);
            cd_intset_cover(&s->pool, fresh, all, &iv->r_min, &iv->r_ext);
        }
    }
    declared(s, f->op->raxis, f->op->n_raxis);
    return CDMPP_OK;
}

static cdmpp_status infer_stage(inferrer *f) {
    cd_schedule *s = f->s;
    if (f->st->is_output && f->st->attach != CD_SCHEDULE_AT_ROOT)
        return CD_FAIL(f->err, EINVALID, "output %s is not at the root", f->op->name);
    if (f->st->is_output || f->op->is_placeholder) {
        declared(s, f->op->axis, f->op->n_axis);
        declared(s, f->op->raxis, f->op->n_raxis);
    } else {
        CD_TRY(from_readers(f));
    }
    return cd_schedule_pass_down_domain(s, f->st, f->shared, false, f->err);
}

static cdmpp_status check_memory(cd_schedule *s, cdmpp_err *err) {
    const bool oom =
        s->oom || s->pool.oom || s->subst.oom || s->subst2.oom || cd_simplify_oom(s->simp);
    return oom ? CD_FAIL(err, ENOMEM, "bounds") : CDMPP_OK;
}

static bool ask(const cd_schedule *s, const cd_expr *var, bool fused, const cd_expr **min,
                const cd_expr **extent) {
    const uint64_t k = (uint64_t)var->u.i;
    const int32_t i = k < s->var_iv.n ? s->var_iv.p[k] : -1;
    if (i < 0 || !s->iv[i].r_ext || (!fused && s->iv[i].name_kind == CD_SCHEDULE_NAME_FUSED))
        return false;
    *min = s->iv[i].r_min;
    *extent = s->iv[i].r_ext;
    return true;
}

bool cd_schedule_query_range(void *sched, const cd_expr *var, const cd_expr **min,
                             const cd_expr **extent) {
    return ask(sched, var, true, min, extent);
}

bool cd_schedule_query_unfused(void *sched, const cd_expr *var, const cd_expr **min,
                               const cd_expr **extent) {
    return ask(sched, var, false, min, extent);
}

/* All ranges simplified, each seeing the others as they were inferred. */
static void simplify_ranges(cd_schedule *s, cd_analyzer *a) {
    for (int32_t k = 0; k < s->n_iv; k++) {
        cd_schedule_iv *iv = &s->iv[k];
        if (!iv->r_ext) continue;
        iv->set_lo = cd_simplify_expr(a, iv->r_min);
        iv->set_hi = cd_expr_cast(&s->pool, iv->var->type, cd_simplify_expr(a, iv->r_ext));
    }
    for (int32_t k = 0; k < s->n_iv; k++) {
        cd_schedule_iv *iv = &s->iv[k];
        if (!iv->r_ext) continue;
        iv->r_min = iv->set_lo;
        iv->r_ext = iv->set_hi;
    }
}

/* Analyzers ask for ranges as they meet variables, so nothing has to be bound after each stage. */
cdmpp_status cd_schedule_infer_bound(cd_schedule *s, cdmpp_err *err) {
    inferrer f = {.s = s,
                  .err = err,
                  .shared = cd_simplify_analyzer_new(s->simp),
                  .all = cd_simplify_analyzer_new(s->simp)};
    cd_simplify_set_query(f.shared, cd_schedule_query_unfused, s);
    cd_simplify_set_query(f.all, cd_schedule_query_range, s);
    CD_TRY(schedule_readers_find(s, &f.readers, err));
    for (uint32_t id = s->order.n; id-- > 0;) {
        f.st = cd_schedule_stage_at(s, id);
        f.op = cd_schedule_stage_op(s, f.st);
        if (f.st->attach == CD_SCHEDULE_AT_INLINED || f.op->is_placeholder) continue;
        const cdmpp_status st = infer_stage(&f);
        if (st) return st;
        CD_TRY(check_memory(s, err));
    }
    simplify_ranges(s, f.shared);
    s->inferred = true;
    return check_memory(s, err);
}

/* Which iterators may leave their range, and the guards against it. Proofs are the expensive part,
 * so cheap tests come first: equal literals, and stages where no split runs over at all
 * (docs/internals/ansor.md, Bounds, Guards). */

typedef struct {
    cd_schedule *s;
    cd_schedule_stage *st;
    cd_analyzer *a;
    cd_intset_env env;
    cd_schedule_preds *out;
} checker;

static void emit(checker *c, const cd_expr *p) {
    cd_schedule_preds *o = c->out;
    if (CD_GROW_IN(&c->s->arena, o->p, o->n, o->cap)) c->s->oom = true;
    else o->p[o->n++] = p;
}

static bool provably_equal(cd_schedule *s, cd_analyzer *a, const cd_expr *x, const cd_expr *y) {
    if (cd_expr_is_int(x) && cd_expr_is_int(y)) return x->u.i == y->u.i;
    return x == y || cd_simplify_prove(a, BIN(EQ, x, y));
}

static bool product_is(cd_schedule *s, cd_analyzer *a, const cd_expr *whole, const cd_expr *x,
                       const cd_expr *y) {
    /* 32 bits each */
    if (cd_expr_is_int(whole) && cd_expr_is_int(x) && cd_expr_is_int(y))
        return whole->u.i == x->u.i * y->u.i;
    return provably_equal(s, a, whole, BIN(MUL, x, y));
}

/* iv.mask: the iterator may run past its extent. */
static void mark_needs(checker *c) {
    cd_schedule *s = c->s;
    for (uint32_t i = 0; i < c->st->leaf.n; i++) s->iv[c->st->leaf.p[i]].mask = 0;
    for (uint32_t k = c->st->n_rel; k-- > 0;) {
        const cd_schedule_rel *r = &c->st->rel[k];
        if (r->kind == CD_SCHEDULE_REL_SPLIT) {
            const cd_schedule_iv *o = &s->iv[r->outer], *i = &s->iv[r->inner];
            cd_schedule_iv *p = &s->iv[r->parent];
            if (!o->r_ext || !i->r_ext) p->mask = 1;
            else p->mask = o->mask || i->mask || !product_is(s, c->a, p->r_ext, i->r_ext, o->r_ext);
        }
        if (r->kind == CD_SCHEDULE_REL_FUSE)
            s->iv[r->outer].mask = s->iv[r->inner].mask = s->iv[r->made].mask;
        if (r->kind == CD_SCHEDULE_REL_REBASE) s->iv[r->parent].mask = s->iv[r->made].mask;
    }
}

/* v < limit, unless it is provable for every value of the loops. */
static void check_below(checker *c, const cd_expr *v, const cd_expr *limit) {
    cd_schedule *s = c->s;
    c->env.depth = 0;
    const cd_intset x = cd_intset_eval(&c->env, v);
    if (x.hi == CD_INTSET_INF || !cd_simplify_prove(c->a, BIN(LT, x.hi, limit)))
        emit(c, BIN(LT, v, limit));
}

static void check_root(checker *c, const cd_schedule_iv *iv) {
    cd_schedule *s = c->s;
    cd_analyzer *fresh = cd_simplify_fresh_analyzer(s->simp);
    /* Extents first: they are literals, and differ where anything does. */
    if (provably_equal(s, fresh, iv->extent, iv->r_ext) &&
        provably_equal(s, fresh, iv->min, iv->r_min))
        return;
    const cd_expr *v = BIN(SUB, iv->val, iv->min);
    c->env.depth = 0;
    const cd_intset x = cd_intset_eval(&c->env, v);
    const cd_expr *zero = cd_expr_new_int(&s->pool, v->type, 0);
    if (x.lo == CD_INTSET_INF || !cd_simplify_prove(c->a, BIN(GE, x.lo, zero)))
        emit(c, BIN(GE, v, zero));
    if (x.hi == CD_INTSET_INF || !cd_simplify_prove(c->a, BIN(LT, x.hi, iv->extent)))
        emit(c, BIN(LT, v, iv->extent));
}

/* Every range, for an analyzer and as intervals by variable number. */
struct cd_known {
    cd_analyzer *a;
    cd_intset_env env;
};

/* Built once a program: all stages are checked against the same final ranges. */
static struct cd_known *known_ranges(cd_schedule *s) {
    struct cd_known *k = CD_NEW(&s->arena, struct cd_known);
    cd_intset *set = CD_NEWN(&s->arena, cd_intset, s->pool.n_var);
    if (!k || !set) return NULL;
    k->a = cd_simplify_analyzer_new(s->simp);
    cd_simplify_set_query(k->a, cd_schedule_query_range, s);
    k->env = (cd_intset_env){.by_var = set,
                             .n_var = s->pool.n_var,
                             .ana = k->a,
                             .fresh = cd_simplify_fresh_analyzer(s->simp),
                             .pool = &s->pool};
    for (int32_t i = 0; i < s->n_iv; i++) {
        const cd_schedule_iv *iv = &s->iv[i];
        if (!iv->r_ext) continue;
        k->env.n++;
        set[iv->var->u.i] = cd_intset_range(&s->pool, iv->r_min, iv->r_ext);
    }
    return k;
}

/* Nothing to check: no split runs over and every root keeps its declared domain. */
static bool trivially_inside(const checker *c, bool skip_domain) {
    const cd_schedule *s = c->s;
    for (uint32_t i = 0; i < c->st->all.n; i++)
        if (s->iv[c->st->all.p[i]].mask) return false;
    const cd_schedule_op *op = cd_schedule_stage_op(c->s, c->st);
    for (uint32_t i = 0; i < op->n_axis + op->n_raxis && !skip_domain; i++) {
        const cd_schedule_iv *iv = &s->iv[i < op->n_axis ? op->axis[i] : op->raxis[i - op->n_axis]];
        if (!iv->dead && iv->r_ext && (iv->min != iv->r_min || iv->extent != iv->r_ext))
            return false;
    }
    return true;
}

void cd_schedule_bound_check(cd_schedule *s, cd_schedule_stage *st, bool skip_domain,
                             cd_schedule_preds *out) {
    checker c = {.s = s, .st = st, .a = cd_simplify_fresh_analyzer(s->simp), .out = out};
    out->n = 0;
    mark_needs(&c);
    if (trivially_inside(&c, skip_domain)) return;
    /* The final ranges serve all stages; rfactor's are of the moment. */
    struct cd_known *k = s->known ? s->known : known_ranges(s);
    if (!k) {
        s->oom = true;
        return;
    }
    if (s->inferred) s->known = k;
    c.a = k->a;
    c.env = k->env;
    for (uint32_t i = 0; i < st->all.n; i++) {
        const cd_schedule_iv *iv = &s->iv[st->all.p[i]];
        if (!iv->dead && iv->mask && iv->val && iv->r_ext)
            check_below(&c, BIN(SUB, iv->val, iv->r_min), iv->r_ext);
    }
    if (skip_domain) return;
    const cd_schedule_op *op = cd_schedule_stage_op(s, st);
    for (uint32_t i = 0; i < op->n_axis + op->n_raxis; i++) {
        const cd_schedule_iv *iv = &s->iv[i < op->n_axis ? op->axis[i] : op->raxis[i - op->n_axis]];
        if (!iv->dead && iv->val && iv->r_ext) check_root(&c, iv);
    }
}
