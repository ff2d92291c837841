/* A hash table from names to numbers: open addressing in an arena, at most half full, doubled when
 * it would be more. Names are not copied. */
#include "profiler/network/onnx/onnx_internal.h"

#include <string.h>

struct cd_onnx_slot {
    const char *name; /* NULL: free */
    uint32_t value;
};

static uint32_t hash(const char *s) { /* FNV-1a */
    uint32_t h = 2166136261U;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619U;
    return h ^ h >> 15;
}

static struct cd_onnx_slot *slot(const cd_onnx_map *m, const char *name) {
    uint32_t k = hash(name);
    for (;; k++) {
        struct cd_onnx_slot *s = &m->slot[k & (m->cap - 1)];
        if (!s->name || !strcmp(s->name, name)) return s;
    }
}

uint32_t *cd_onnx_map_find(const cd_onnx_map *m, const char *name) {
    struct cd_onnx_slot *s = m->cap ? slot(m, name) : NULL;
    return s && s->name ? &s->value : NULL;
}

static cdmpp_status grow(cd_onnx_map *m, cd_arena *a, cdmpp_err *err) {
    cd_onnx_map more = {.n = m->n, .cap = m->cap ? m->cap * 2 : 64};
    more.slot = more.cap > m->cap ? cd_arena_zalloc(a, more.cap, sizeof *more.slot) : NULL;
    if (!more.slot) return CD_FAIL(err, ENOMEM, "%u names", m->n);
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->slot[i].name) *slot(&more, m->slot[i].name) = m->slot[i];
    *m = more;
    return CDMPP_OK;
}

cdmpp_status cd_onnx_map_put(cd_onnx_map *m, cd_arena *a, const char *name, uint32_t value,
                             bool *old, cdmpp_err *err) {
    if (m->n * 2 >= m->cap) CD_TRY(grow(m, a, err));
    struct cd_onnx_slot *s = slot(m, name);
    *old = s->name != NULL;
    if (!s->name) m->n++;
    *s = (struct cd_onnx_slot){name, value};
    return CDMPP_OK;
}
