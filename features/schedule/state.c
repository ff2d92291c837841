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

int32_t cd_schedule_stage_new(cd_schedule *s, int32_t op) {
    void *p = s->stage;
    if (!more(s, &p, s->n_stage, &s->cap_stage, sizeof *s->stage)) return 0;
    s->stage = p;
    cd_schedule_stage *st = &s->stage[s->n_stage];
    *st = (cd_schedule_stage){.op = op, .at_stage = -1, .at_iv = -1, .scope = ""};
    cd_schedule_stage_reset(s, st);
    return s->n_stage++;
}

void cd_schedule_stage_reset(cd_schedule *s, cd_schedule_stage *st) {
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
    const int32_t st = cd_schedule_stage_new(s, cd_schedule_op_new(s, &op));
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

bool cd_schedule_op_reads(const cd_schedule_op *op, uint32_t first, uint32_t n) {
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
