#include "features/rows/loopmask.h"

#include <string.h>

static bool room(cd_masks *m, cd_mask_slot **p, uint32_t *cap, uint32_t need) {
    if (need < *cap) return true;
    uint32_t n = *cap ? *cap : 256;
    while (n <= need) n *= 2;
    cd_mask_slot *q = cd_realloc(*p, *cap * sizeof **p, n * sizeof **p);
    if (!q) {
        m->oom = true;
        return false;
    }
    memset(q + *cap, 0, (n - *cap) * sizeof *q);
    *p = q;
    *cap = n;
    return true;
}

static void forget(cd_mask_slot *p, uint32_t cap, uint32_t *epoch) {
    if (++*epoch) return;
    if (p) memset(p, 0, cap * sizeof *p);
    *epoch = 1;
}

void cd_masks_begin(cd_masks *m) {
    m->oom = false;
    forget(m->var, m->cap_var, &m->epoch);
    forget(m->memo, m->cap_memo, &m->memo_epoch);
}

void cd_masks_free(cd_masks *m) {
    cd_free(m->memo);
    cd_free(m->var);
    *m = (cd_masks){0};
}

void cd_masks_loop(cd_masks *m, const cd_expr *var, uint32_t depth) {
    const uint32_t k = (uint32_t)var->u.i;
    const uint64_t bit = cd_mask_bit(depth);
    if (!room(m, &m->var, &m->cap_var, k)) return;
    if (m->var[k].stamp == m->epoch && m->var[k].mask != bit) forget(m->memo, m->cap_memo, &m->memo_epoch);
    m->var[k] = (cd_mask_slot){bit, m->epoch};
}

uint64_t cd_masks_of(cd_masks *m, const cd_expr *e) {
    if (e->op == CD_VAR) {
        const uint32_t k = (uint32_t)e->u.i;
        return k < m->cap_var && m->var[k].stamp == m->epoch ? m->var[k].mask : 0;
    }
    if (!(e->flags & CD_EXPR_HAS_VAR)) return 0;
    if (!room(m, &m->memo, &m->cap_memo, e->id)) return ~(uint64_t)0;
    if (m->memo[e->id].stamp == m->memo_epoch) return m->memo[e->id].mask;
    uint64_t mask = 0;
    for (uint32_t i = 0; i < e->n; i++) mask |= cd_masks_of(m, e->a[i]);
    m->memo[e->id] = (cd_mask_slot){mask, m->memo_epoch};
    return mask;
}
