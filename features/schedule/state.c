/* Stages, operators and iterators of a program: making them, finding them, naming them. Names are
 * kept as derivations and put together only when something is printed. */
#include <stdio.h>
#include <string.h>

#include "features/schedule/schedule.h"

cdmpp_status cd_schedule_init(cd_schedule *s, cdmpp_err *err) {
    *s = (cd_schedule){0};
    CD_TRY(cd_expr_pool_init(&s->pool, NULL, err));
    CD_TRY(cd_expr_pool_cache_ints(&s->pool, err));
    cd_subst_init(&s->subst, &s->pool);
    cd_subst_init(&s->subst2, &s->pool);
    return cd_simplify_new(&s->pool, &s->simp, err);
}

void cd_schedule_free(cd_schedule *s) {
    cd_simplify_free(s->simp);
    cd_subst_free(&s->subst);
    cd_subst_free(&s->subst2);
    cd_expr_pool_free(&s->pool);
    cd_arena_free(&s->arena);
    cd_mem_free(s->iv);
    cd_mem_free(s->op);
    cd_mem_free(s->stage);
    *s = (cd_schedule){0};
}

/* Make room for one more item of a heap array that stays between programs. */
static bool more(cd_schedule *s, void **p, int32_t n, int32_t *cap, size_t size) {
    if (n < *cap) return true;
    const int32_t to = *cap ? *cap * 2 : 64;
    void *q = cd_mem_realloc(*p, (size_t)*cap * size, (size_t)to * size);
    if (!q) {
        s->oom = true;
        return false;
    }
    *p = q;
    *cap = to;
    return true;
}

bool cd_schedule_ivec_push(cd_schedule *s, cd_schedule_ivec *v, int32_t x) {
    return cd_schedule_ivec_insert(s, v, v->n, x);
}

bool cd_schedule_ivec_insert(cd_schedule *s, cd_schedule_ivec *v, uint32_t at, int32_t x) {
    if (CD_GROW_IN(&s->arena, v->p, v->n, v->cap)) {
        s->oom = true;
        return false;
    }
    memmove(v->p + at + 1, v->p + at, (v->n - at) * sizeof *v->p);
    v->p[at] = x;
    v->n++;
    return true;
}

void cd_schedule_ivec_remove(cd_schedule_ivec *v, uint32_t at, uint32_t n) {
    memmove(v->p + at, v->p + at + n, (v->n - at - n) * sizeof *v->p);
    v->n -= n;
}

int32_t cd_schedule_ivec_find(const cd_schedule_ivec *v, int32_t x) {
    for (uint32_t i = 0; i < v->n; i++)
        if (v->p[i] == x) return (int32_t)i;
    return -1;
}

/* Remember which iterator a variable belongs to: names are looked up that way. */
static void own_var(cd_schedule *s, const cd_expr *var, int32_t iv) {
    const uint32_t k = (uint32_t)var->u.i;
    while (s->var_iv.n <= k && !s->oom) cd_schedule_ivec_push(s, &s->var_iv, -1);
    if (k < s->var_iv.n) s->var_iv.p[k] = iv;
}

static int32_t iv_push(cd_schedule *s, const cd_schedule_iv *proto) {
    void *p = s->iv;
    if (!more(s, &p, s->n_iv, &s->cap_iv, sizeof *s->iv)) return 0;
    s->iv = p;
    s->iv[s->n_iv] = *proto;
    own_var(s, proto->var, s->n_iv);
    return s->n_iv++;
}

/* A derived iterator counts in the type of what it derives from, the wider of two. */
static cd_dtype derived_type(const cd_schedule *s, int32_t from, int32_t from2) {
    const cd_dtype a = from < 0 ? CD_I32 : s->iv[from].var->type,
                   b = from2 < 0 ? a : s->iv[from2].var->type;
    return cd_expr_dtype_bits(b) > cd_expr_dtype_bits(a) ? b : a;
}

int32_t cd_schedule_iv_new(cd_schedule *s, uint8_t type, cd_schedule_iv_name name, int32_t from,
                           int32_t from2) {
    const cd_schedule_iv iv = {.var = cd_expr_fresh_var(&s->pool, derived_type(s, from, from2)),
                               .type = type,
                               .name_kind = (uint8_t)name,
                               .from = from,
                               .from2 = from2,
                               .thread = -1};
    return iv_push(s, &iv);
}

int32_t cd_schedule_iv_root(cd_schedule *s, uint8_t type, const cd_expr *var, const cd_expr *min,
                            const cd_expr *extent, const char *name) {
    const cd_schedule_iv iv = {.var = var,
                               .min = min,
                               .extent = extent,
                               .type = type,
                               .name_kind = CD_SCHEDULE_NAME_TEXT,
                               .text = name,
                               .thread = -1};
    return iv_push(s, &iv);
}

int32_t cd_schedule_op_new(cd_schedule *s, const cd_schedule_op *proto) {
    void *p = s->op;
    if (!more(s, &p, s->n_op, &s->cap_op, sizeof *s->op)) return 0;
    s->op = p;
    s->op[s->n_op] = *proto;
    while (s->tensor_op.n < proto->first_tensor + proto->n_out && !s->oom)
        cd_schedule_ivec_push(s, &s->tensor_op, -1);
    for (uint32_t k = 0; k < proto->n_out && !s->oom; k++)
        s->tensor_op.p[proto->first_tensor + k] = s->n_op;
    return s->n_op++;
}

static void schedule_stage_reset(cd_schedule *s, cd_schedule_stage *st);

static int32_t schedule_stage_new(cd_schedule *s, int32_t op) {
    void *p = s->stage;
    if (!more(s, &p, s->n_stage, &s->cap_stage, sizeof *s->stage)) return 0;
    s->stage = p;
    cd_schedule_stage *st = &s->stage[s->n_stage];
    *st = (cd_schedule_stage){.op = op, .at_stage = -1, .at_iv = -1, .scope = ""};
    schedule_stage_reset(s, st);
    return s->n_stage++;
}

/* all = leaf = axes = the operator's root iterators, no relations. */
static void schedule_stage_reset(cd_schedule *s, cd_schedule_stage *st) {
    const cd_schedule_op *op = cd_schedule_stage_op(s, st);
    st->all.n = st->leaf.n = st->axes.n = st->n_rel = 0;
    for (uint32_t i = 0; i < op->n_axis + op->n_raxis; i++) {
        const int32_t iv = i < op->n_axis ? op->axis[i] : op->raxis[i - op->n_axis];
        cd_schedule_ivec_push(s, &st->all, iv);
        cd_schedule_ivec_push(s, &st->leaf, iv);
        cd_schedule_ivec_push(s, &st->axes, iv);
    }
}

cd_schedule_rel *cd_schedule_rel_push(cd_schedule *s, cd_schedule_stage *st) {
    static cd_schedule_rel nowhere; /* written to, never read: the program is lost anyway */
    if (CD_GROW_IN(&s->arena, st->rel, st->n_rel, st->cap_rel)) {
        s->oom = true;
        return &nowhere;
    }
    cd_schedule_rel *r = &st->rel[st->n_rel++];
    *r = (cd_schedule_rel){.parent = -1, .outer = -1, .inner = -1, .made = -1};
    return r;
}

/* ---- the initial state ---- */

static int32_t *root_iters(cd_schedule *s, const cd_te_iter *it, uint32_t n, uint8_t type) {
    int32_t *p = cd_arena_alloc(&s->arena, n, sizeof *p);
    if (!p) {
        s->oom = true;
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        p[i] = cd_schedule_iv_root(s, type, it[i].var, it[i].min, it[i].extent, it[i].name);
    return p;
}

/* A stage of the initial state: its loops are the axes, then the reduction axes. */
static void start_op(cd_schedule *s, const cd_te_op *o) {
    cd_schedule_op op = {.name = o->name,
                         .suffix = "",
                         .is_placeholder = o->is_placeholder,
                         .const_matrix = o->const_matrix,
                         .n_axis = o->n_axis,
                         .n_raxis = o->n_raxis,
                         .n_out = o->n_out,
                         .rank = o->rank,
                         .first_tensor = o->first_tensor,
                         .shape = o->shape,
                         .dtype = o->dtype,
                         .red = o->red,
                         .cond = o->cond,
                         .init = o->init};
    op.axis = root_iters(s, o->axis, o->n_axis, CD_SCHEDULE_IV_SPATIAL);
    op.raxis = root_iters(s, o->raxis, o->n_raxis, CD_SCHEDULE_IV_REDUCE);
    op.body = cd_arena_alloc(&s->arena, o->n_out, sizeof *op.body);
    if (!op.body) s->oom = true;
    if (s->oom) return;
    for (uint32_t k = 0; k < o->n_out && !o->is_placeholder; k++) op.body[k] = o->body[k];
    const int32_t st = schedule_stage_new(s, cd_schedule_op_new(s, &op));
    if (s->oom) return;
    s->stage[st].is_output = o->is_output;
    cd_schedule_ivec_push(s, &s->order, st);
}

void cd_schedule_start(cd_schedule *s, const cd_te_dag *dag) {
    cd_arena_reset(&s->arena);
    cd_expr_pool_reset(&s->pool, &dag->pool);
    cd_simplify_reset(s->simp);
    s->dag = dag;
    s->oom = s->inferred = false;
    s->known = NULL;
    s->subst.oom = s->subst2.oom = false;
    s->n_iv = s->n_op = s->n_stage = 0;
    s->n_foreign = s->n_paste = 0;
    s->order = s->tensor_op = s->var_iv = (cd_schedule_ivec){0};
    for (uint32_t i = 0; i < dag->n_op && !s->oom; i++) start_op(s, &dag->op[i]);
}

/* ---- queries ---- */

typedef struct {
    uint32_t first, n;
} tensor_range;

static bool not_in_range(void *ctx, const cd_expr *e) {
    const tensor_range *r = ctx;
    return e->op != CD_LOAD || (uint32_t)e->u.i - r->first >= r->n;
}

static bool expr_reads(const cd_expr *e, tensor_range *r) {
    return (e->flags & CD_EXPR_HAS_LOAD) && !cd_expr_visit(e, not_in_range, r);
}

/* Reads of tensors [first, first+n) anywhere in the operator? */
static bool schedule_op_reads(const cd_schedule_op *op, uint32_t first, uint32_t n) {
    tensor_range r = {first, n};
    if (op->is_placeholder) return false;
    for (uint32_t k = 0; k < op->n_out; k++)
        if (expr_reads(op->body[k], &r)) return true;
    return op->cond && expr_reads(op->cond, &r);
}

int cd_schedule_scope_rank(const char *scope) {
    static const struct {
        const char *prefix;
        int rank;
    } tab[] = {{"global", 0}, {"shared", 1}, {"warp", 2}, {"local", 3}};
    for (size_t i = 0; i < sizeof tab / sizeof *tab; i++)
        if (!strncmp(scope, tab[i].prefix, strlen(tab[i].prefix))) return tab[i].rank;
    return -1;
}

void cd_schedule_attach_path(cd_schedule *s, const cd_schedule_stage *st, cd_schedule_ivec *out) {
    out->n = 0;
    for (int guard = 0; st->attach == CD_SCHEDULE_AT_SCOPE && guard <= s->n_stage; guard++) {
        const cd_schedule_stage *t = &s->stage[st->at_stage];
        for (int32_t k = cd_schedule_ivec_find(&t->leaf, st->at_iv); k >= 0; k--)
            cd_schedule_ivec_push(s, out, t->leaf.p[k]);
        st = t;
    }
}

/* ---- names ---- */

/* "i.outer.inner": the name of what it derives from, and a suffix. */
static void iv_name(const cd_schedule *s, int32_t k, char *buf, size_t n, int depth) {
    if (k < 0 || depth > 64) {
        snprintf(buf, n, "?");
        return;
    }
    const cd_schedule_iv *iv = &s->iv[k];
    static const char *const suffix[] = {
        [CD_SCHEDULE_NAME_OUTER] = ".outer", [CD_SCHEDULE_NAME_INNER] = ".inner",
        [CD_SCHEDULE_NAME_FUSED] = ".fused", [CD_SCHEDULE_NAME_SAME] = "",
        [CD_SCHEDULE_NAME_CACHE] = ".c",     [CD_SCHEDULE_NAME_REDUCE_V] = ".v",
        [CD_SCHEDULE_NAME_INIT] = ".init"};
    if (iv->name_kind == CD_SCHEDULE_NAME_TEXT) {
        snprintf(buf, n, "%s", iv->text);
        return;
    }
    iv_name(s, iv->from, buf, n, depth + 1);
    size_t m = strlen(buf);
    if (iv->name_kind == CD_SCHEDULE_NAME_FUSED && m + 2 < n) {
        buf[m++] = '.';
        iv_name(s, iv->from2, buf + m, n - m, depth + 1);
        m = strlen(buf);
    }
    snprintf(buf + m, n - m, "%s", suffix[iv->name_kind]);
}

const char *cd_schedule_name(const void *sched, cd_expr_op kind, uint32_t number) {
    /* Long enough for the deepest fused name; eight live at a time. */
    static _Thread_local char ring[8][512];
    static _Thread_local unsigned next;
    const cd_schedule *s = sched;
    char *buf = ring[next++ % 8];
    if (kind == CD_VAR) {
        iv_name(s, number < s->var_iv.n ? s->var_iv.p[number] : -1, buf, sizeof ring[0], 0);
    } else if (number < s->tensor_op.n && s->tensor_op.p[number] >= 0) {
        const cd_schedule_op *op = &s->op[s->tensor_op.p[number]];
        if (op->n_out > 1)
            snprintf(buf, sizeof ring[0], "%s%s.v%u", op->name, op->suffix,
                     number - op->first_tensor);
        else snprintf(buf, sizeof ring[0], "%s%s", op->name, op->suffix);
    } else {
        snprintf(buf, sizeof ring[0], "tensor%u", number);
    }
    return buf;
}

/* The steps that insert stages: cache read, cache write, rfactor. A tensor keeps its number and the
 * new stage gets new ones, so only the readers that a step names are rewritten
 * (docs/internals/ansor.md, Steps). */

static const char *join(cd_schedule *s, const char *a, const char *b, const char *c) {
    const size_t n = strlen(a) + strlen(b) + strlen(c) + 1;
    char *z = cd_arena_alloc(&s->arena, n, 1);
    if (!z) {
        s->oom = true;
        return "";
    }
    snprintf(z, n, "%s%s%s", a, b, c);
    return z;
}

static void *get(cd_schedule *s, size_t n, size_t size) {
    void *p = cd_arena_alloc(&s->arena, n, size);
    if (!p) s->oom = true;
    return p;
}

/* Axes ax0.. over a tensor's shape. */
static int32_t *shape_axes(cd_schedule *s, const cd_schedule_op *op) {
    const uint32_t rank = op->rank;
    const int64_t *shape = op->shape;
    int32_t *axis = get(s, rank, sizeof *axis);
    for (uint32_t d = 0; d < rank && axis; d++) {
        char *name = get(s, 8, 1);
        if (!name) return NULL;
        snprintf(name, 8, "ax%u", d % 10000);
        axis[d] =
            cd_schedule_iv_root(s, CD_SCHEDULE_IV_SPATIAL, cd_expr_fresh_var(&s->pool, CD_I32),
                                cd_expr_int(&s->pool, 0), cd_expr_int(&s->pool, shape[d]), name);
    }
    return axis;
}

/* body[0] = tensor[axis...] with one more index `extra` put at `at` (none: extra NULL). */
static const cd_expr *load_at(cd_schedule *s, cd_dtype type, uint32_t tensor, const int32_t *axis,
                              uint32_t n, const cd_expr *extra, uint32_t at) {
    const cd_expr **ix = get(s, n + 1, sizeof *ix);
    if (!ix) return NULL;
    uint32_t m = 0;
    for (uint32_t d = 0; d <= n; d++) {
        if (extra && d == at) ix[m++] = extra;
        if (d < n) ix[m++] = s->iv[axis[d]].var;
    }
    return cd_expr_new_load(&s->pool, type, tensor, ix, m);
}

/* Put a stage for `op` at position `id` of the order. */
static cd_schedule_stage *insert_stage(cd_schedule *s, int32_t op, uint32_t id) {
    const int32_t st = schedule_stage_new(s, op);
    cd_schedule_ivec_insert(s, &s->order, id, st);
    return &s->stage[st];
}

static uint32_t new_tensors(const cd_schedule *s) { return s->tensor_op.n; }

/* ---- cache read ---- */

typedef struct {
    cd_schedule *s;
    uint32_t from, to;
} redirect;

static const cd_expr *redirect_load(void *ctx, const cd_expr *e) {
    const redirect *r = ctx;
    return (uint32_t)e->u.i == r->from ? cd_expr_new_load(&r->s->pool, e->type, r->to, e->a, e->n)
                                       : e;
}

static void redirect_reader(cd_schedule *s, cd_schedule_op *op, redirect *r) {
    cd_subst_begin(&s->subst);
    s->subst.load = redirect_load;
    s->subst.load_ctx = r;
    for (uint32_t k = 0; k < op->n_out; k++) op->body[k] = cd_subst_apply(&s->subst, op->body[k]);
    if (op->cond) op->cond = cd_subst_apply(&s->subst, op->cond);
}

/* "A.shared"; "A.d.shared" when that name is taken. */
static const char *cache_name(cd_schedule *s, const cd_schedule_op *op, const char *scope) {
    const char *base = join(s, op->name, op->suffix, "");
    if (op->n_out > 1) base = join(s, base, ".v0", "");
    const char *want = join(s, base, ".", scope);
    for (uint32_t k = 0; k < s->order.n; k++) {
        const cd_schedule_op *o = cd_schedule_stage_op(s, cd_schedule_stage_at(s, k));
        const size_t n = strlen(o->name);
        if (strncmp(o->name, want, n) != 0 || strcmp(want + n, o->suffix) != 0) continue;
        base = join(s, base, ".d", "");
        want = join(s, base, ".", scope);
    }
    return want;
}

/* The copy stands right behind its source in the order, since its readers come later. */
cdmpp_status cd_cache_stage_read(cd_schedule *s, uint32_t id, const char *scope,
                                 const cd_record_step *t, cdmpp_err *err) {
    const cd_schedule_op src = *cd_schedule_stage_op(s, cd_schedule_stage_at(s, id));
    redirect r = {s, src.first_tensor, new_tensors(s)};
    cd_schedule_op op = {.name = cache_name(s, &src, scope),
                         .suffix = "",
                         .n_axis = src.rank,
                         .n_out = 1,
                         .rank = src.rank,
                         .shape = src.shape,
                         .dtype = src.dtype,
                         .first_tensor = r.to};
    op.axis = shape_axes(s, &src);
    op.body = get(s, 1, sizeof *op.body);
    if (s->oom) return CD_FAIL(err, ENOMEM, "cache stage");
    op.body[0] = load_at(s, src.dtype[0], r.from, op.axis, op.n_axis, NULL, 0);
    if (!t->n_list) return CD_FAIL(err, EINVALID, "cache read without readers");
    for (uint32_t k = 0; k < t->n_list; k++) {
        if (t->list[k] < 0 || (uint32_t)t->list[k] >= s->order.n)
            return CD_FAIL(err, EINVALID, "reader stage %d, the program has %u", t->list[k],
                           s->order.n);
        cd_schedule_op *reader =
            cd_schedule_stage_op(s, cd_schedule_stage_at(s, (uint32_t)t->list[k]));
        if (!schedule_op_reads(reader, r.from, 1))
            return CD_FAIL(err, EINVALID, "stage %d does not read stage %u", t->list[k], id);
        redirect_reader(s, reader, &r);
    }
    cd_schedule_stage *st = insert_stage(s, cd_schedule_op_new(s, &op), id + 1);
    if (s->oom) return CD_FAIL(err, ENOMEM, "cache stage");
    st->scope = scope;
    return CDMPP_OK;
}

/* ---- cache write ---- */

/* The cache operator computes what the operator did, over axes "<axis>.c". */
static int32_t make_cache_op(cd_schedule *s, const cd_schedule_op *src, const char *scope) {
    cd_schedule_op op = *src;
    op.name = join(s, src->name, src->suffix, "");
    op.name = join(s, op.name, ".", scope);
    op.suffix = "";
    op.first_tensor = new_tensors(s);
    op.axis = get(s, src->n_axis, sizeof *op.axis);
    op.body = get(s, src->n_out, sizeof *op.body);
    if (s->oom) return 0;
    cd_subst_begin(&s->subst);
    for (uint32_t d = 0; d < src->n_axis; d++) {
        const int32_t k =
            cd_schedule_iv_new(s, CD_SCHEDULE_IV_SPATIAL, CD_SCHEDULE_NAME_CACHE, src->axis[d], -1);
        s->iv[k].min = s->iv[src->axis[d]].min;
        s->iv[k].extent = s->iv[src->axis[d]].extent;
        op.axis[d] = k;
        cd_subst_set(&s->subst, s->iv[src->axis[d]].var, s->iv[k].var);
    }
    for (uint32_t k = 0; k < src->n_out; k++) op.body[k] = cd_subst_apply(&s->subst, src->body[k]);
    if (src->cond) op.cond = cd_subst_apply(&s->subst, src->cond);
    return cd_schedule_op_new(s, &op);
}

/* The old stage keeps its tensor and becomes a copy; the cache gets the computation. TVM's own rule
 * for stages that were split before is not needed: no record has it. */
cdmpp_status cd_cache_stage_write(cd_schedule *s, uint32_t id, const char *scope, cdmpp_err *err) {
    const int32_t stage = s->order.p[id], src = s->stage[stage].op;
    if (s->op[src].is_placeholder) return CD_FAIL(err, EINVALID, "cache write of an input");
    if (s->stage[stage].n_rel)
        return CD_FAIL(err, EUNSUPPORTED, "cache write of a stage that was split or fused already");
    const cd_schedule_op old = s->op[src];
    const int32_t cache = make_cache_op(s, &old, scope);
    cd_schedule_op *op = &s->op[src];
    const uint32_t to = s->op[cache].first_tensor;
    op->body = get(s, op->n_out, sizeof *op->body);
    if (s->oom) return CD_FAIL(err, ENOMEM, "cache stage");
    for (uint32_t k = 0; k < op->n_out; k++)
        op->body[k] = load_at(s, op->dtype[k], to + k, op->axis, op->n_axis, NULL, 0);
    op->n_raxis = 0;
    op->red = NULL;
    op->cond = NULL;
    schedule_stage_reset(s, &s->stage[stage]);
    insert_stage(s, cache, id)->scope = scope;
    return s->oom ? CD_FAIL(err, ENOMEM, "cache stage") : CDMPP_OK;
}

/* ---- rfactor ---- */

/* Iterators connected with `axis` through the relations get flag = true. */
static void mark_touched(cd_schedule *s, const cd_schedule_stage *st, int32_t axis) {
    for (uint32_t i = 0; i < st->all.n; i++) s->iv[st->all.p[i]].flag = st->all.p[i] == axis;
    for (uint32_t i = st->n_rel; i-- > 0;) {
        const cd_schedule_rel *r = &st->rel[i];
        if (r->kind == CD_SCHEDULE_REL_SPLIT)
            s->iv[r->parent].flag |= s->iv[r->outer].flag || s->iv[r->inner].flag;
        if (r->kind == CD_SCHEDULE_REL_FUSE && s->iv[r->made].flag)
            s->iv[r->outer].flag = s->iv[r->inner].flag = true;
    }
    for (uint32_t i = 0; i < st->n_rel; i++) {
        const cd_schedule_rel *r = &st->rel[i];
        if (r->kind == CD_SCHEDULE_REL_SPLIT && s->iv[r->parent].flag)
            s->iv[r->outer].flag = s->iv[r->inner].flag = true;
        if (r->kind == CD_SCHEDULE_REL_FUSE)
            s->iv[r->made].flag |= s->iv[r->outer].flag || s->iv[r->inner].flag;
    }
}

/* Ranges of the touched iterators and the predicate their splits need. */
static cdmpp_status touched_domain(cd_schedule *s, cd_schedule_stage *st, const cd_schedule_op *op,
                                   const cd_expr **pred, cdmpp_err *err) {
    cd_analyzer *a = cd_simplify_analyzer_new(s->simp);
    if (!a) return CD_FAIL(err, ENOMEM, "rfactor");
    for (uint32_t i = 0; i < op->n_axis; i++) s->iv[op->axis[i]].dead = true;
    for (uint32_t i = 0; i < op->n_raxis; i++) {
        cd_schedule_iv *iv = &s->iv[op->raxis[i]];
        iv->dead = !iv->flag;
        if (iv->flag) iv->r_min = iv->min, iv->r_ext = iv->extent;
        cd_simplify_bind(a, iv->var, iv->min, iv->extent);
    }
    cd_simplify_set_query(a, cd_schedule_query_unfused, s);
    CD_TRY(cd_schedule_pass_down_domain(s, st, a, true, err));
    for (uint32_t i = 0; i < st->leaf.n; i++) {
        cd_schedule_iv *iv = &s->iv[st->leaf.p[i]];
        if (!iv->flag) continue;
        /* fused with a spatial axis, or of another axis' length */
        if (!iv->r_ext || !cd_expr_is_int(iv->r_ext))
            return CD_FAIL(err, EUNSUPPORTED, "rfactor of a loop without constant extent");
        iv->val = cd_expr_is_int_value(iv->r_ext, 1) ? iv->r_min : iv->var;
    }
    cd_schedule_pass_up_index(s, st);
    cd_schedule_preds preds = {0};
    cd_schedule_bound_check(s, st, true, &preds);
    const cd_expr *p = cd_expr_new_int(&s->pool, CD_BOOL, 1);
    for (uint32_t i = 0; i < preds.n; i++) p = cd_expr_bin(&s->pool, CD_AND, p, preds.p[i]);
    if (op->cond) p = cd_expr_bin(&s->pool, CD_AND, p, op->cond);
    *pred = cd_expr_is_int_value(p, 1) ? NULL
            : cd_expr_is_int(p)        ? p
                                       : cd_expr_new_call(&s->pool, CD_BOOL, "likely", &p, 1);
    return CDMPP_OK;
}

/* A new root iterator over the leaf's variable and range. */
static int32_t leaf_as_root(cd_schedule *s, int32_t leaf, uint8_t type) {
    const cd_schedule_iv iv = s->iv[leaf];
    const int32_t k = cd_schedule_iv_root(s, type, iv.var, iv.r_min, iv.r_ext, "");
    s->iv[k].name_kind = CD_SCHEDULE_NAME_SAME;
    s->iv[k].from = leaf;
    return k;
}

/* The factored operator: the leaf becomes a spatial axis, the rest is reduced. */
static int32_t make_rf_op(cd_schedule *s, const cd_schedule_stage *st, const cd_schedule_op *src,
                          int32_t axis, uint32_t at, const cd_expr *pred) {
    cd_schedule_op op = *src;
    op.name = join(s, src->name, src->suffix, "");
    op.suffix = ".rf";
    op.const_matrix = false;
    op.first_tensor = new_tensors(s);
    op.n_axis = src->n_axis + 1;
    op.rank = op.n_axis;
    op.axis = get(s, op.n_axis, sizeof *op.axis);
    op.raxis = get(s, src->n_raxis + st->leaf.n, sizeof *op.raxis);
    op.body = get(s, op.n_out, sizeof *op.body);
    int64_t *shape = get(s, op.n_axis, sizeof *shape);
    if (s->oom) return 0;
    const int32_t made = leaf_as_root(s, axis, CD_SCHEDULE_IV_SPATIAL);
    for (uint32_t d = 0, m = 0; d < op.n_axis; d++) op.axis[d] = d == at ? made : src->axis[m++];
    for (uint32_t d = 0; d < op.n_axis; d++) shape[d] = s->iv[op.axis[d]].extent->u.i;
    op.shape = shape;
    cd_subst_begin(&s->subst);
    op.n_raxis = 0;
    for (uint32_t i = 0; i < src->n_raxis; i++) {
        const cd_schedule_iv *iv = &s->iv[src->raxis[i]];
        if (iv->flag) cd_subst_set(&s->subst, iv->var, iv->val);
        else op.raxis[op.n_raxis++] = src->raxis[i];
    }
    for (uint32_t i = 0; i < st->leaf.n; i++)
        if (s->iv[st->leaf.p[i]].flag && st->leaf.p[i] != axis)
            op.raxis[op.n_raxis++] = leaf_as_root(s, st->leaf.p[i], CD_SCHEDULE_IV_REDUCE);
    for (uint32_t k = 0; k < op.n_out; k++) op.body[k] = cd_subst_apply(&s->subst, src->body[k]);
    op.cond = pred ? cd_subst_apply(&s->subst, pred) : NULL;
    return cd_schedule_op_new(s, &op);
}

/* TVM hands other splits on to loops that the new stage does not have, and stumbles later. */
static bool other_relations(const cd_schedule *s, const cd_schedule_stage *st) {
    for (uint32_t i = 0; i < st->n_rel; i++) {
        const cd_schedule_rel *r = &st->rel[i];
        if (r->kind == CD_SCHEDULE_REL_SPLIT
                ? !s->iv[r->parent].flag
                : r->kind != CD_SCHEDULE_REL_FUSE || !s->iv[r->made].flag)
            return true;
    }
    return false;
}

/* What is left: the sum over the new axis. */
static void make_repl_op(cd_schedule *s, int32_t self, int32_t axis, uint32_t at,
                         uint32_t rf_tensor) {
    const int32_t red = leaf_as_root(s, axis, CD_SCHEDULE_IV_REDUCE);
    cd_schedule_iv *iv = &s->iv[red];
    iv->var = cd_expr_fresh_var(&s->pool, CD_I32);
    iv->name_kind = CD_SCHEDULE_NAME_REDUCE_V;
    while (s->var_iv.n <= (uint32_t)iv->var->u.i && !s->oom)
        cd_schedule_ivec_push(s, &s->var_iv, -1);
    if (!s->oom) s->var_iv.p[iv->var->u.i] = red;
    const cd_schedule_op old = s->op[self];
    int32_t *axes = shape_axes(s, &old), *raxis = get(s, 1, sizeof *raxis);
    const cd_expr **body = get(s, old.n_out, sizeof *body);
    if (s->oom) return;
    cd_schedule_op *op = &s->op[self];
    op->axis = axes;
    op->raxis = raxis;
    op->body = body;
    op->raxis[0] = red;
    op->n_raxis = 1;
    op->cond = NULL;
    op->const_matrix = false;
    for (uint32_t k = 0; k < op->n_out; k++)
        op->body[k] =
            load_at(s, op->dtype[k], rf_tensor + k, op->axis, op->n_axis, s->iv[red].var, at);
}

cdmpp_status cd_schedule_rfactor(cd_schedule *s, uint32_t id, int32_t it, int32_t factor_axis,
                                 cdmpp_err *err) {
    const int32_t stage = s->order.p[id], self = s->stage[stage].op;
    cd_schedule_stage *st = &s->stage[stage];
    const cd_schedule_op src = s->op[self];
    if (!src.red) return CD_FAIL(err, EINVALID, "stage %u has no reduction", id);
    if (it < 0 || (uint32_t)it >= st->axes.n)
        return CD_FAIL(err, EINVALID, "iterator %d, the stage has %u", it, st->axes.n);
    const int32_t axis = st->axes.p[it],
                  at = factor_axis < 0 ? (int32_t)src.n_axis + 1 + factor_axis : factor_axis;
    if (s->iv[axis].type != CD_SCHEDULE_IV_REDUCE)
        return CD_FAIL(err, EINVALID, "iterator %d is not a reduction", it);
    if (at < 0 || at > (int32_t)src.n_axis)
        return CD_FAIL(err, EINVALID, "factor axis %d", factor_axis);
    mark_touched(s, st, axis);
    if (other_relations(s, st))
        return CD_FAIL(err, EINVALID, "rfactor of stage %u, whose other axes were split or fused",
                       id);
    const cd_expr *pred = NULL;
    CD_TRY(touched_domain(s, st, &src, &pred, err));
    const int32_t rf = make_rf_op(s, st, &src, axis, (uint32_t)at, pred);
    if (s->oom) return CD_FAIL(err, ENOMEM, "rfactor");
    make_repl_op(s, self, axis, (uint32_t)at, s->op[rf].first_tensor);
    insert_stage(s, rf, id);
    /* Ranges of this step are not those of the final schedule. */
    for (int32_t k = 0; k < s->n_iv; k++) {
        cd_schedule_iv *iv = &s->iv[k];
        iv->r_min = iv->r_ext = iv->val = NULL;
        iv->dead = false;
    }
    schedule_stage_reset(s, &s->stage[stage]);
    return s->oom ? CD_FAIL(err, ENOMEM, "rfactor") : CDMPP_OK;
}
