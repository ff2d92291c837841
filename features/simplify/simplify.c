/* The simplifier's workspace, its analyzers and their bindings, and the functions that other rooms
 * call. An analyzer is a small value; what is expensive, the memo, belongs to the workspace and is
 * shared by all analyzers through their context numbers. */
#include "features/simplify/simplify.h"

#include "features/simplify/simplify_internal.h"

/* ---- workspace ---- */

static void ana_init(cd_simplifier *s, cd_analyzer *a) {
    /* all analyzers without bindings are in the same state */
    *a = (cd_analyzer){.s = s, .ctx = s->root};
    a->rw.ana = a->cn.ana = a;
    a->cn.canonical = true;
}

cdmpp_status cd_simplify_new(cd_expr_pool *pool, cd_simplifier **out, cdmpp_err *err) {
    const cd_rewrite_rules *book = cd_rewrite_rules_get();
    cd_simplifier *s = cd_mem_zalloc(1, sizeof *s);
    if (!s || !book) {
        cd_mem_free(s);
        return CD_FAIL(err, ENOMEM, "simplifier");
    }
    s->pool = pool;
    s->book = book;
    cd_simplify_reset(s);
    *out = s;
    return CDMPP_OK;
}

void cd_simplify_free(cd_simplifier *s) {
    if (!s) return;
    cd_arena_free(&s->arena);
    cd_mem_free(s->memo);
    cd_mem_free(s);
}

void cd_simplify_reset(cd_simplifier *s) {
    cd_arena_reset(&s->arena);
    if (s->next_ctx > UINT32_MAX / 2) { /* long before numbers repeat, forget all of them */
        if (s->memo) memset(s->memo, 0, s->n_memo * sizeof *s->memo);
        memset(s->trans, 0, sizeof s->trans);
        s->next_ctx = 0;
    }
    s->root = ++s->next_ctx;
    s->nest = 0;
    s->oom = false;
    ana_init(s, &s->fresh);
}

bool cd_simplify_oom(const cd_simplifier *s) { return s->oom || s->pool->oom; }

cd_memo *cd_simplify_memo_grow(cd_simplifier *s, const cd_expr *e) {
    uint32_t n = s->n_memo ? s->n_memo : 1024;
    while (n <= e->id) {
        if (n > UINT32_MAX / 2) return s->oom = true, NULL;
        n *= 2;
    }
    cd_memo *m = cd_mem_realloc(s->memo, s->n_memo * sizeof *m, n * sizeof *m);
    if (!m) return s->oom = true, NULL;
    memset(m + s->n_memo, 0, (n - s->n_memo) * sizeof *m);
    s->memo = m;
    s->n_memo = n;
    return &m[e->id];
}

bool cd_simplify_reserve(cd_simplifier *s, void *vec, uint32_t n, uint32_t *cap, size_t size) {
    if (n < *cap) return true;
    const uint32_t grown = *cap ? *cap * 2 : 8;
    void *old, *p = cd_arena_alloc(&s->arena, grown, size);
    if (!p) return s->oom = true, false;
    memcpy(&old, vec, sizeof old); /* vec points at some T * */
    if (n) memcpy(p, old, n * size);
    memcpy(vec, &p, sizeof p);
    *cap = grown;
    return true;
}

/* ---- analyzers ---- */

cd_analyzer *cd_simplify_analyzer_new(cd_simplifier *s) {
    cd_analyzer *a = cd_arena_alloc(&s->arena, 1, sizeof *a);
    if (!a) return s->oom = true, &s->fresh;
    ana_init(s, a);
    return a;
}

cd_analyzer *cd_simplify_fresh_analyzer(cd_simplifier *s) { return &s->fresh; }

const cd_expr *cd_simplify_rewrite(cd_analyzer *a, const cd_expr *e) {
    for (int i = 0; i < 2; i++) {
        const cd_expr *r = cd_rewrite_visit(&a->rw, e);
        if (r == e) break;
        e = r;
    }
    return e;
}

bool cd_simplify_ge(cd_analyzer *a, const cd_expr *e, int64_t k) {
    if (e->op == CD_INT) return e->u.i >= k;
    return cd_const_int_bound(a, cd_simplify_rewrite(a, e)).lo >= k;
}

bool cd_simplify_lt(cd_analyzer *a, const cd_expr *e, int64_t k) {
    if (e->op == CD_INT) return e->u.i < k;
    return cd_const_int_bound(a, cd_simplify_rewrite(a, e)).hi < k;
}

bool cd_simplify_is_pure(const cd_expr *e, bool loads_too) {
    if (e->op == CD_LOAD && !loads_too) return false;
    if (e->op == CD_CALL && !(e->flags & CD_EXPR_PURE)) return false;
    for (uint32_t i = 0; i < e->n; i++)
        if (!cd_simplify_is_pure(e->a[i], loads_too)) return false;
    return true;
}

/* ---- doors ---- */

const cd_expr *cd_simplify_expr(cd_analyzer *a, const cd_expr *e) {
    if (e->op == CD_INT) return e;
    e = cd_simplify_rewrite(a, e);
    return e->op == CD_INT ? e : cd_canonical_visit(&a->cn, e);
}

cd_bound cd_simplify_bound(cd_analyzer *a, const cd_expr *e) { return cd_const_int_bound(a, e); }

bool cd_simplify_prove(cd_analyzer *a, const cd_expr *cond) {
    const cd_expr *r = cd_simplify_expr(a, cond);
    return r->op == CD_INT && r->u.i != 0;
}

bool cd_simplify_prove_ge(cd_analyzer *a, const cd_expr *e, int64_t k) {
    return cd_simplify_ge(a, e, k);
}

/* ---- bindings ---- */

static bool slot_room(cd_analyzer *a, uint32_t k) {
    if (k < a->n_slot) return true;
    uint32_t n = a->n_slot ? a->n_slot : 32;
    while (n <= k) n *= 2;
    if (n < a->s->pool->n_var) n = a->s->pool->n_var;
    uint16_t *p = CD_NEWN(&a->s->arena, uint16_t, n);
    if (!p) return a->s->oom = true, false;
    if (a->n_slot) memcpy(p, a->slot, a->n_slot * sizeof *p);
    a->slot = p;
    a->n_slot = n;
    return true;
}

cd_var_info *cd_simplify_var_entry(cd_analyzer *a, const cd_expr *var) {
    const uint32_t k = (uint32_t)var->u.i;
    if (!slot_room(a, k)) return NULL;
    if (a->slot[k]) return &a->var[a->slot[k] - 1];
    if (a->n_var >= UINT16_MAX - 1U) return a->s->oom = true, NULL;
    if (!cd_simplify_reserve(a->s, &a->var, a->n_var, &a->cap_var, sizeof *a->var)) return NULL;
    a->var[a->n_var] = (cd_var_info){.bound = cd_const_int_bound_type(var->type), .mod = {1, 0}};
    a->slot[k] = (uint16_t)++a->n_var;
    return &a->var[a->n_var - 1];
}

static cd_var_info range_info(cd_analyzer *a, const cd_expr *min, const cd_expr *extent) {
    cd_var_info v = {.known = true, .mod = {1, 0}};
    if (extent->op == CD_INT && extent->u.i == 1) {
        v.value = min->op == CD_INT ? min : cd_simplify_rewrite(a, cd_canonical_visit(&a->cn, min));
        v.bound = cd_const_int_bound(a, v.value);
        v.mod = cd_modular_set(a, v.value);
    } else {
        const cd_bound lo = cd_const_int_bound(a, min), n = cd_const_int_bound(a, extent);
        v.bound =
            (cd_bound){lo.lo, cd_const_int_bound_add(lo.hi, cd_const_int_bound_add(n.hi, -1))};
    }
    return v;
}

static bool same_info(const cd_var_info *x, const cd_var_info *y) {
    return x->known && x->value == y->value && x->bound.lo == y->bound.lo &&
           x->bound.hi == y->bound.hi && x->mod.coeff == y->mod.coeff && x->mod.base == y->mod.base;
}

void cd_simplify_set_query(cd_analyzer *a, cd_simplify_query_fn ask, void *ctx) {
    a->ask = ask;
    a->ask_ctx = ctx;
    a->ctx = ++a->s->next_ctx; /* its answers are this analyzer's alone */
    a->n_bind = 1;
}

const cd_var_info *cd_simplify_var_query(cd_analyzer *a, const cd_expr *e) {
    const cd_expr *min, *extent;
    /* Before its first binding an analyzer shares its state with others that know nothing. */
    if (!a->n_bind) return NULL;
    /* Before asking: a range may not mention its own variable. */
    cd_var_info *v = cd_simplify_var_entry(a, e);
    if (!v || !a->ask || !a->ask(a->ask_ctx, e, &min, &extent)) return v;
    const cd_var_info info = range_info(a, min, extent);
    v = cd_simplify_var_entry(a, e); /* may have moved */
    *v = info;
    return v;
}

/* The first binding makes the analyzer's state its own. A variable that was
 * never met invalidates nothing; any other binding moves to another state. */
void cd_simplify_bind(cd_analyzer *a, const cd_expr *var, const cd_expr *min,
                      const cd_expr *extent) {
    if (var->op != CD_VAR) return;
    const cd_var_info v = range_info(a, min, extent);
    const uint32_t met = a->n_var;
    cd_var_info *old = cd_simplify_var_entry(a, var);
    if (!old || same_info(old, &v)) return;
    if (!a->n_bind++) a->ctx = ++a->s->next_ctx;
    else if (a->n_var == met)
        a->ctx = cd_simplify_transition(a->s, a->ctx, 1, var->id, min->id, extent->id);
    *old = v;
}

cd_analyzer *cd_simplify_analyzer_new_plain(cd_simplifier *s) {
    cd_analyzer *a = cd_simplify_analyzer_new(s);
    if (a != &s->fresh) {
        a->plain = true;
        a->n_bind = 1;
        a->ctx = ++s->next_ctx;
    }
    return a;
}

void cd_simplify_set_bound(cd_analyzer *a, const cd_expr *var, int64_t lo, int64_t hi) {
    cd_var_info *v = cd_simplify_var_entry(a, var);
    if (!v) return;
    v->known = true;
    v->bound = (cd_bound){lo, hi};
}
