/* Moves expressions to a shard, whose variables start at 0, as do the tensors that it reads.
 *
 * An index is handled as e + c with the constant kept apart. The offset of the axis and the offset
 * of the tensor's box then cancel: x[yy + ry] stays x[yy + ry] in every shard, and a schedule of
 * the whole finds the form that it knows. */
#include <string.h>

#include "features/te_shard/te_shard_internal.h"

typedef struct {
    const cd_expr *e; /* NULL: 0 */
    int64_t c;
} moved;

static const cd_expr *expr(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e);

static uint32_t var_at(const cd_te_shard_env *env, const cd_expr *e) {
    for (uint32_t i = 0; i < env->n; i++)
        if (env->v[i].number == (uint32_t)e->u.i) return i;
    return UINT32_MAX;
}

static bool shifts(const cd_te_shard_env *env, const cd_expr *e) {
    if (!(e->flags & CD_EXPR_HAS_VAR) && e->op != CD_VAR) return false;
    if (e->op == CD_VAR) {
        const uint32_t i = var_at(env, e);
        return i != UINT32_MAX && env->v[i].shift;
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (shifts(env, e->a[i])) return true;
    return false;
}

static bool is_sum_type(const cd_expr *e) {
    return cd_expr_dtype_is_index(e->type) && !(e->flags & CD_EXPR_HAS_LOAD);
}

/* ---- e + c ---- */

static const cd_expr *whole_of(cd_te_shard_move *m, cd_dtype t, moved x) {
    cd_expr_pool *p = &m->to->pool;
    const cd_expr *e = x.e;
    if (!e) return cd_expr_new_int(p, t, x.c);
    if (!x.c) return e;
    if (e->op == CD_SUB && cd_expr_is_int(e->a[0]))
        return cd_expr_new_bin(p, CD_SUB, cd_expr_new_int(p, t, e->a[0]->u.i + x.c), e->a[1]);
    return cd_expr_new_bin(p, x.c > 0 ? CD_ADD : CD_SUB, e,
                           cd_expr_new_int(p, t, x.c > 0 ? x.c : -x.c));
}

static moved apart(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e);

static moved apart_sum(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    cd_expr_pool *p = &m->to->pool;
    const moved a = apart(m, env, e->a[0]), b = apart(m, env, e->a[1]);
    if (e->op == CD_ADD) {
        if (!a.e || !b.e) return (moved){a.e ? a.e : b.e, a.c + b.c};
        return (moved){cd_expr_new_bin(p, CD_ADD, a.e, b.e), a.c + b.c};
    }
    if (!b.e) return (moved){a.e, a.c - b.c};
    if (!a.e)
        return (moved){cd_expr_new_bin(p, CD_SUB, cd_expr_new_int(p, e->type, a.c - b.c), b.e), 0};
    return (moved){cd_expr_new_bin(p, CD_SUB, a.e, b.e), a.c - b.c};
}

static moved apart_product(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    cd_expr_pool *p = &m->to->pool;
    const moved a = apart(m, env, e->a[0]), b = apart(m, env, e->a[1]);
    if (!a.e && !b.e) return (moved){NULL, a.c * b.c};
    if (!b.e)
        return (moved){cd_expr_new_bin(p, CD_MUL, a.e, cd_expr_new_int(p, e->type, b.c)),
                       a.c * b.c};
    if (!a.e)
        return (moved){cd_expr_new_bin(p, CD_MUL, cd_expr_new_int(p, e->type, a.c), b.e),
                       a.c * b.c};
    return (moved){cd_expr_new_bin(p, CD_MUL, whole_of(m, e->type, a), whole_of(m, e->type, b)), 0};
}

/* (x + k*q + r) // k = (x + r) // k + q */
static moved apart_division(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    cd_expr_pool *p = &m->to->pool;
    const int64_t k = e->a[1]->u.i;
    moved a = apart(m, env, e->a[0]);
    const int64_t q = cd_expr_floordiv(a.c, k), r = cd_expr_floormod(a.c, k);
    if (!a.e) return (moved){NULL, e->op == CD_FDIV ? q : r};
    a.c = r;
    return (moved){cd_expr_new_bin(p, (cd_expr_op)e->op, whole_of(m, e->type, a),
                                   cd_expr_new_int(p, e->type, k)),
                   e->op == CD_FDIV ? q : 0};
}

/* Sums, products with a literal, quotients and remainders by a literal; everything else is moved as
 * a whole. */
static moved apart(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    if (!is_sum_type(e)) return (moved){expr(m, env, e), 0};
    switch ((cd_expr_op)e->op) {
    case CD_INT: return (moved){NULL, e->u.i};
    case CD_VAR: {
        const uint32_t i = var_at(env, e);
        return i == UINT32_MAX ? (moved){expr(m, env, e), 0} : (moved){m->var[i], env->v[i].shift};
    }
    case CD_ADD:
    case CD_SUB: return apart_sum(m, env, e);
    case CD_MUL: return apart_product(m, env, e);
    case CD_FDIV:
    case CD_FMOD:
        if (cd_expr_is_int(e->a[1]) && e->a[1]->u.i > 0) return apart_division(m, env, e);
        return (moved){expr(m, env, e), 0};
    default: return (moved){expr(m, env, e), 0};
    }
}

/* ---- copies ---- */

/* A node with operands of the new pool. */
static const cd_expr *node(cd_te_shard_move *m, const cd_expr *e, const cd_expr *const *a) {
    cd_expr_pool *p = &m->to->pool;
    switch ((cd_expr_op)e->op) {
    case CD_NOT: return cd_expr_new_not(p, a[0]);
    case CD_SELECT: return cd_expr_new_select(p, a[0], a[1], a[2]);
    case CD_CAST: return cd_expr_new_cast(p, e->type, a[0]);
    case CD_CALL: return cd_expr_new_call(p, e->type, e->u.name, a, e->n);
    case CD_LOAD: return cd_expr_new_load(p, e->type, m->tensor[e->u.i], a, e->n);
    default: return cd_expr_new_bin(p, (cd_expr_op)e->op, a[0], a[1]);
    }
}

static const cd_expr *leaf(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    cd_expr_pool *p = &m->to->pool;
    switch ((cd_expr_op)e->op) {
    case CD_INT: return cd_expr_new_int(p, e->type, e->u.i);
    case CD_FLOAT: return cd_expr_new_float(p, e->type, e->u.f);
    case CD_STR: return cd_expr_new_str(p, e->u.name);
    case CD_VAR: {
        const uint32_t i = var_at(env, e);
        /* the definition's check found none */
        if (i == UINT32_MAX) return cd_expr_new_int(p, e->type, 0);
        if (env->v[i].shift) m->changed = true;
        return whole_of(m, e->type, (moved){m->var[i], env->v[i].shift});
    }
    default: return node(m, e, NULL);
    }
}

/* ---- conditions ---- */

static cd_expr_op mirrored(cd_expr_op op) {
    switch (op) {
    case CD_LT: return CD_GT;
    case CD_GT: return CD_LT;
    case CD_LE: return CD_GE;
    case CD_GE: return CD_LE;
    default: return op;
    }
}

/* A comparison that always holds in this shard gets the same constant in all such shards, so that
 * equal shards are equal. */
static int64_t always(cd_expr_op op, cd_te_shard_span s, int64_t k) {
    switch (op) {
    case CD_GE: return s.lo >= k ? s.lo : k;
    case CD_GT: return s.lo > k ? s.lo - 1 : k;
    case CD_LE: return s.hi <= k ? s.hi : k;
    case CD_LT: return s.hi < k ? s.hi + 1 : k;
    default: return k;
    }
}

static bool narrowed(const cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    if (e->op == CD_VAR) {
        const uint32_t i = var_at(env, e);
        if (m->op == UINT32_MAX || i >= m->need->box[m->op].rank) return false;
        return m->need->box[m->op].n[i] != m->need->dag->op[m->op].shape[i];
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (narrowed(m, env, e->a[i])) return true;
    return false;
}

/* x < k with the axes' shifts in k. */
static const cd_expr *comparison(cd_te_shard_move *m, const cd_te_shard_env *env,
                                 const cd_expr *e) {
    const bool right = cd_expr_is_int(e->a[1]);
    const cd_expr *x = e->a[right ? 0 : 1], *k = e->a[right ? 1 : 0];
    if (!cd_expr_is_int(k) || !is_sum_type(x) || !narrowed(m, m->at, x)) return NULL;
    cd_expr_pool *p = &m->to->pool;
    const cd_expr_op op = right ? (cd_expr_op)e->op : mirrored((cd_expr_op)e->op);
    const moved a = apart(m, env, x);
    const cd_te_shard_span s = cd_te_shard_range(m->at, x);
    int64_t c = k->u.i - a.c;
    if (s.lo > -CD_TE_SHARD_FAR && s.hi < CD_TE_SHARD_FAR)
        c = always(op, (cd_te_shard_span){s.lo - a.c, s.hi - a.c}, c);
    m->changed = true;
    const cd_expr *l = a.e ? a.e : cd_expr_new_int(p, x->type, 0),
                  *r = cd_expr_new_int(p, k->type, c);
    return right ? cd_expr_new_bin(p, (cd_expr_op)e->op, l, r)
                 : cd_expr_new_bin(p, (cd_expr_op)e->op, r, l);
}

static const cd_expr *fork(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    cd_te_shard_fork f;
    if (!cd_te_shard_fork_make(env, e, m->a, &f)) {
        m->oom = true;
        return cd_expr_new_int(&m->to->pool, e->type, 0);
    }
    if (!f.takes_else || !f.takes_then) m->changed = true;
    if (!f.takes_else) return expr(m, &f.then_env, e->a[1]);
    if (!f.takes_then) return expr(m, &f.else_env, e->a[2]);
    const cd_expr *a[3] = {expr(m, env, e->a[0]), expr(m, &f.then_env, e->a[1]),
                           expr(m, &f.else_env, e->a[2])};
    return node(m, e, a);
}

/* ---- loads ---- */

static const cd_expr *plain(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    const cd_expr *small[8], **a = small;
    if (!e->n) return leaf(m, env, e);
    if (e->n > 8 && !(a = cd_arena_alloc(m->a, e->n, sizeof *a))) {
        m->oom = true;
        return cd_expr_new_int(&m->to->pool, e->type, 0);
    }
    for (uint32_t i = 0; i < e->n; i++) a[i] = expr(m, env, e->a[i]);
    return node(m, e, a);
}

/* An index into a tensor whose box begins at `from`. */
static const cd_expr *index_of(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e,
                               int64_t from) {
    if (!from && !shifts(env, e)) return expr(m, env, e);
    if (!is_sum_type(e)) {
        m->changed = true;
        return whole_of(m, e->type, (moved){expr(m, env, e), -from});
    }
    moved x = apart(m, env, e);
    x.c -= from;
    const cd_expr *r = whole_of(m, e->type, x);
    cd_te_shard_env still = *env;
    still.v = cd_arena_alloc(m->a, env->n + 1, sizeof *still.v);
    if (!still.v) {
        m->oom = true;
        return r;
    }
    for (uint32_t i = 0; i < env->n; i++) still.v[i] = env->v[i], still.v[i].shift = 0;
    if (r != expr(m, &still, e)) m->changed = true;
    return r;
}

static const cd_expr *load(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    const cd_box *b = &m->need->box[m->need->dag->tensor_op[e->u.i]];
    const cd_expr *a[CD_BOX_RANK];
    for (uint32_t d = 0; d < e->n && d < CD_BOX_RANK; d++)
        a[d] = index_of(m, env, e->a[d], b->lo[d]);
    return node(m, e, a);
}

static const cd_expr *expr(cd_te_shard_move *m, const cd_te_shard_env *env, const cd_expr *e) {
    const cd_expr *r = NULL;
    if (e->op == CD_LOAD) return load(m, env, e);
    if (cd_te_shard_is_fork(e)) return fork(m, env, e);
    if (cd_expr_op_is_cmp((cd_expr_op)e->op)) r = comparison(m, env, e);
    if (r) return r;
    if (is_sum_type(e) && e->n &&
        (e->op == CD_ADD || e->op == CD_SUB || e->op == CD_MUL || e->op == CD_FDIV ||
         e->op == CD_FMOD) &&
        shifts(env, e)) {
        m->changed = true;
        if ((e->op != CD_FDIV && e->op != CD_FMOD) || (cd_expr_is_int(e->a[1]) && e->a[1]->u.i > 0))
            return whole_of(m, e->type, apart(m, env, e));
    }
    return plain(m, env, e);
}

const cd_expr *cd_te_shard_move_expr(cd_te_shard_move *m, const cd_te_shard_env *env,
                                     const cd_expr *e) {
    return expr(m, env, e);
}
