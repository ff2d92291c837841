/* Masks of loops, memoised by expression. An index that does not depend on a loop is found by one
 * bit, which saves most of the work of access.c. */
#include "features/rows/rows_internal.h"

#include <string.h>

static bool room(cd_loopmask *m, cd_loopmask_slot **p, uint32_t *cap, uint32_t need) {
    if (need < *cap) return true;
    uint32_t n = *cap ? *cap : 256;
    while (n <= need) n *= 2;
    cd_loopmask_slot *q = cd_mem_realloc(*p, *cap * sizeof **p, n * sizeof **p);
    if (!q) {
        m->oom = true;
        return false;
    }
    memset(q + *cap, 0, (n - *cap) * sizeof *q);
    *p = q;
    *cap = n;
    return true;
}

static void forget(cd_loopmask_slot *p, uint32_t cap, uint32_t *epoch) {
    if (++*epoch) return;
    if (p) memset(p, 0, cap * sizeof *p);
    *epoch = 1;
}

void cd_loopmask_begin(cd_loopmask *m) {
    m->oom = false;
    forget(m->var, m->cap_var, &m->epoch);
    forget(m->memo, m->cap_memo, &m->memo_epoch);
}

void cd_loopmask_free(cd_loopmask *m) {
    cd_mem_free(m->memo);
    cd_mem_free(m->var);
    *m = (cd_loopmask){0};
}

void cd_loopmask_set(cd_loopmask *m, const cd_expr *var, uint32_t depth) {
    const uint32_t k = (uint32_t)var->u.i;
    const uint64_t bit = cd_loopmask_bit(depth);
    if (!room(m, &m->var, &m->cap_var, k)) return;
    if (m->var[k].stamp == m->epoch && m->var[k].mask != bit)
        forget(m->memo, m->cap_memo, &m->memo_epoch);
    m->var[k] = (cd_loopmask_slot){bit, m->epoch};
}

uint64_t cd_loopmask_get(cd_loopmask *m, const cd_expr *e) {
    if (e->op == CD_VAR) {
        const uint32_t k = (uint32_t)e->u.i;
        return k < m->cap_var && m->var[k].stamp == m->epoch ? m->var[k].mask : 0;
    }
    if (!(e->flags & CD_EXPR_HAS_VAR)) return 0;
    if (!room(m, &m->memo, &m->cap_memo, e->id)) return ~(uint64_t)0;
    if (m->memo[e->id].stamp == m->memo_epoch) return m->memo[e->id].mask;
    uint64_t mask = 0;
    for (uint32_t i = 0; i < e->n; i++) mask |= cd_loopmask_get(m, e->a[i]);
    m->memo[e->id] = (cd_loopmask_slot){mask, m->memo_epoch};
    return mask;
}
