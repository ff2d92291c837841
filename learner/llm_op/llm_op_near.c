/* Who is whose neighbour in a table of operators: rows sorted once for each size, found by bisection. */
#include <stdlib.h>
#include <string.h>

#include "learner/llm_op/llm_op_internal.h"

/* qsort() takes no context: each key carries its table. */
typedef struct {
    const cd_llm_op_table *t;
    uint32_t row, size; /* size: the one that comes last; CD_LLM_OP_MAX_SIZE: categories come last */
} entry;

static int order(double a, double b) { return (a > b) - (a < b); }

static uint64_t category(const cd_llm_op_record *r) { return (uint64_t)r->type << 40 | (uint64_t)r->kv << 32 | (uint64_t)r->stack << 16 | r->kernel; }

static int by_category(const cd_llm_op_record *a, const cd_llm_op_record *b) {
    const uint64_t x = category(a), y = category(b);
    if (x != y) return x < y ? -1 : 1;
    return order(a->skew, b->skew);
}

/* All sizes but one, and categories (`whole`); rows of which nothing else differs are on one curve. */
static int by_rest(const cd_llm_op_record *a, uint32_t da, const cd_llm_op_record *b, uint32_t db, size_t but, bool whole) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (da != db) return da < db ? -1 : 1;
    const int c = whole ? by_category(a, b) : 0;
    if (c) return c;
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)a->kind); i++)
        if (i != but && order(a->size[i], b->size[i])) return order(a->size[i], b->size[i]);
    return 0;
}

static int compare(const void *p, const void *q) {
    const entry *x = p, *y = q;
    const cd_llm_op_table *t = x->t;
    const cd_llm_op_record *a = &t->r[x->row], *b = &t->r[y->row];
    const bool whole = x->size < CD_LLM_OP_MAX_SIZE;
    const int c = by_rest(a, t->device[x->row], b, t->device[y->row], x->size, whole);
    if (c) return c;
    const int d = whole ? order(a->size[x->size], b->size[x->size]) : by_category(a, b);
    return d ? d : x->row < y->row ? -1 : x->row > y->row;
}

static void sort(const cd_llm_op_table *t, entry *e, uint32_t size, uint32_t *out, size_t *n) {
    *n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (size == CD_LLM_OP_MAX_SIZE || size < cd_llm_op_n_size((cd_llm_op_kind)t->r[i].kind)) e[(*n)++] = (entry){t, i, size};
    qsort(e, *n, sizeof *e, compare);
    for (size_t i = 0; i < *n; i++) out[i] = e[i].row;
}

cdmpp_status cd_llm_op_table_index(cd_llm_op_table *t, cdmpp_err *err) {
    entry *e = cd_mem_zalloc(t->n + 1, sizeof *e);
    bool bad = !e;
    size_t all;
    for (uint32_t i = 0; i <= CD_LLM_OP_MAX_SIZE; i++) {
        uint32_t **to = i < CD_LLM_OP_MAX_SIZE ? &t->order[i] : &t->alike;
        cd_mem_free(*to);
        *to = cd_mem_zalloc(t->n + 1, sizeof **to);
        bad |= !*to;
        if (!bad) sort(t, e, i, *to, i < CD_LLM_OP_MAX_SIZE ? &t->n_order[i] : &all);
    }
    cd_mem_free(e);
    if (bad) return CD_FAIL(err, ENOMEM, "index of %zu rows", t->n);
    return cd_llm_op_repeats_index(t, err);
}

/* The first entry that does not stand before the record. */
static size_t bisect(const cd_llm_op_table *t, const uint32_t *v, size_t n, const cd_llm_op_record *r, uint32_t device, size_t size) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const cd_llm_op_record *a = &t->r[v[mid]];
        int c = by_rest(a, t->device[v[mid]], r, device, size, size < CD_LLM_OP_MAX_SIZE);
        if (!c && size < CD_LLM_OP_MAX_SIZE) c = order(a->size[size], r->size[size]);
        if (c < 0) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static bool on_curve(const cd_llm_op_table *t, uint32_t row, const cd_llm_op_record *r, uint32_t device, size_t size) {
    return !by_rest(&t->r[row], t->device[row], r, device, size, size < CD_LLM_OP_MAX_SIZE);
}

void cd_llm_op_table_near(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, size_t size, const uint8_t *hide, long out[2]) {
    const uint32_t *v = t->order[size];
    const size_t n = v ? t->n_order[size] : 0, at = n ? bisect(t, v, n, r, device, size) : 0;
    out[0] = out[1] = CD_LLM_OP_NONE;
    for (size_t i = at; i-- > 0 && out[0] < 0 && on_curve(t, v[i], r, device, size);)
        if (!hide || !hide[v[i]]) out[0] = v[i];
    for (size_t i = at; i < n && out[1] < 0 && on_curve(t, v[i], r, device, size); i++)
        if ((!hide || !hide[v[i]]) && t->r[v[i]].size[size] > r->size[size]) out[1] = v[i];
}

size_t cd_llm_op_table_alike(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, const uint8_t *hide, size_t most, uint32_t *out) {
    size_t k = 0;
    if (!t->alike) return 0;
    for (size_t i = bisect(t, t->alike, t->n, r, device, CD_LLM_OP_MAX_SIZE); i < t->n && k < most; i++) {
        const uint32_t row = t->alike[i];
        if (!on_curve(t, row, r, device, CD_LLM_OP_MAX_SIZE)) break;
        if ((!hide || !hide[row]) && by_category(&t->r[row], r)) out[k++] = row;
    }
    return k;
}
