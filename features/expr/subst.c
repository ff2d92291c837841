/* Substitution of variables and redirection of loads. Memo and replacements are arrays by id and by
 * variable number with a stamp, so starting a new substitution clears nothing. */
#include "features/expr/expr.h"

#include <string.h>

void cd_subst_init(cd_subst *s, cd_expr_pool *pool) { *s = (cd_subst){.pool = pool}; }

void cd_subst_free(cd_subst *s) {
    cd_mem_free(s->memo);
    cd_mem_free(s->var);
    *s = (cd_subst){0};
}

void cd_subst_begin(cd_subst *s) {
    if (++s->epoch == 0) {
        if (s->memo) memset(s->memo, 0, s->cap_memo * sizeof *s->memo);
        if (s->var) memset(s->var, 0, s->cap_var * sizeof *s->var);
        s->epoch = 1;
    }
    s->n_set = 0;
    s->load = NULL;
}

static bool reserve(cd_subst_slot **p, uint32_t *cap, uint32_t need) {
    if (need < *cap) return true;
    uint32_t n = *cap ? *cap : 256;
    while (n <= need) n *= 2;
    cd_subst_slot *q = cd_mem_realloc(*p, *cap * sizeof **p, n * sizeof **p);
    if (!q) return false;
    memset(q + *cap, 0, (n - *cap) * sizeof *q);
    *p = q;
    *cap = n;
    return true;
}

void cd_subst_set(cd_subst *s, const cd_expr *var, const cd_expr *to) {
    const uint32_t k = (uint32_t)var->u.i;
    if (var == to) return;
    if (!reserve(&s->var, &s->cap_var, k)) {
        s->oom = true;
        return;
    }
    s->var[k] = (cd_subst_slot){to, s->epoch};
    s->n_set++;
}

/* Subtrees without variables (and, if loads are redirected, without loads) are returned as they
 * are. */
static const cd_expr *apply(cd_subst *s, const cd_expr *e) {
    if (e->op == CD_VAR) {
        const uint32_t k = (uint32_t)e->u.i;
        return k < s->cap_var && s->var[k].stamp == s->epoch ? s->var[k].val : e;
    }
    const unsigned want = CD_EXPR_HAS_VAR | (s->load ? CD_EXPR_HAS_LOAD : 0);
    if (!(e->flags & want)) return e;
    if (!reserve(&s->memo, &s->cap_memo, e->id)) {
        s->oom = true;
        return e;
    }
    if (s->memo[e->id].stamp == s->epoch) return s->memo[e->id].val;
    const cd_expr *small[8], **a = small;
    if (e->n > 8 && !(a = cd_arena_alloc(&s->pool->arena, e->n, sizeof *a))) {
        s->oom = true;
        return e;
    }
    for (uint32_t i = 0; i < e->n; i++) a[i] = apply(s, e->a[i]);
    const cd_expr *r = cd_expr_new_like(s->pool, e, a);
    if (e->op == CD_LOAD && s->load) r = s->load(s->load_ctx, r);
    s->memo[e->id] = (cd_subst_slot){r, s->epoch};
    return r;
}

const cd_expr *cd_subst_apply(cd_subst *s, const cd_expr *e) {
    return s->n_set || s->load ? apply(s, e) : e;
}
