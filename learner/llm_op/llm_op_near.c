/* Who is whose neighbour in a table of operators: rows sorted once for each size, a curve found by a hash of what its rows share. */
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

/* All sizes but one, and categories; rows of which nothing else differs are on one curve. CD_LLM_OP_MAX_SIZE: all sizes, no categories. */
static int by_rest(const cd_llm_op_record *a, uint32_t da, const cd_llm_op_record *b, uint32_t db, size_t but) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (da != db) return da < db ? -1 : 1;
    const int c = but < CD_LLM_OP_MAX_SIZE ? by_category(a, b) : 0;
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
    const int c = by_rest(a, t->device[x->row], b, t->device[y->row], x->size);
    if (c) return c;
    const int d = whole ? order(a->size[x->size], b->size[x->size]) : by_category(a, b);
    return d ? d : x->row < y->row ? -1 : x->row > y->row;
}

static bool on_curve(const cd_llm_op_table *t, uint32_t row, const cd_llm_op_record *r, uint32_t device, size_t size) {
    return !by_rest(&t->r[row], t->device[row], r, device, size);
}

/* Of what by_rest compares. */
static uint64_t hash(const cd_llm_op_record *r, uint32_t device, size_t but) {
    uint64_t h = cd_rng_at((uint64_t)r->kind << 32 | device, but < CD_LLM_OP_MAX_SIZE ? category(r) ^ (uint64_t)(1e4 * r->skew) << 48 : 0);
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        if (i != but) h = cd_rng_mix(h ^ (uint64_t)r->size[i]);
    return h;
}

/* ---- the index ---- */
static size_t sort(const cd_llm_op_table *t, entry *e, uint32_t size, uint32_t *out) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (size == CD_LLM_OP_MAX_SIZE || size < cd_llm_op_n_size((cd_llm_op_kind)t->r[i].kind)) e[n++] = (entry){t, i, size};
    qsort(e, n, sizeof *e, compare);
    for (size_t i = 0; i < n; i++) out[i] = e[i].row;
    return n;
}

/* The slot of the curve that the record of this hash is on; a free one where there is none. */
static size_t slot_of(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, size_t size, uint64_t h) {
    const cd_llm_op_curves *c = &t->curve[size];
    const uint32_t tag = (uint32_t)(h >> 32);
    size_t k = (size_t)h & c->mask;
    while (c->slot[k].end && (c->slot[k].tag != tag || !on_curve(t, c->slot[k].first, r, device, size))) k = (k + 1) & c->mask;
    return k;
}

static bool begins(const cd_llm_op_table *t, size_t size, size_t i) {
    const uint32_t *v = t->curve[size].row;
    return !i || !on_curve(t, v[i - 1], &t->r[v[i]], t->device[v[i]], size);
}

/* Its rows (n) are sorted: each begins a curve, or is one more of the curve before it. */
static bool put_curves(const cd_llm_op_table *t, size_t size, size_t n, cd_llm_op_curves *c) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += begins(t, size, i);
    for (c->mask = 1; c->mask < 2 * count;) c->mask = 2 * c->mask + 1;
    c->slot = cd_mem_zalloc(c->mask + 1, sizeof *c->slot);
    for (size_t i = 0, k = 0; c->slot && i < n; i++) {
        if (begins(t, size, i)) {
            const uint64_t h = hash(&t->r[c->row[i]], t->device[c->row[i]], size);
            k = slot_of(t, &t->r[c->row[i]], t->device[c->row[i]], size, h);
            c->slot[k] = (cd_llm_op_curve){(uint32_t)i, 0, c->row[i], (uint32_t)(h >> 32)};
        }
        c->slot[k].end = (uint32_t)i + 1;
    }
    return c->slot != NULL;
}

static bool index_of(cd_llm_op_table *t, entry *e, uint32_t size) {
    cd_llm_op_curves *c = &t->curve[size];
    const bool whole = size < CD_LLM_OP_MAX_SIZE;
    cd_mem_free(c->row);
    cd_mem_free(c->value);
    cd_mem_free(c->slot);
    *c = (cd_llm_op_curves){.row = cd_mem_zalloc(t->n + 1, sizeof *c->row)};
    if (!e || !c->row) return false;
    const size_t n = sort(t, e, size, c->row);
    if (whole && !(c->value = cd_mem_zalloc(n + 1, sizeof *c->value))) return false;
    for (size_t i = 0; whole && i < n; i++) c->value[i] = (float)t->r[c->row[i]].size[size];
    return put_curves(t, size, n, c);
}

cdmpp_status cd_llm_op_table_index(cd_llm_op_table *t, cdmpp_err *err) {
    entry *e = cd_mem_zalloc(t->n + 1, sizeof *e);
    bool good = true;
    for (uint32_t i = 0; i <= CD_LLM_OP_MAX_SIZE; i++) good &= index_of(t, e, i);
    cd_mem_free(e);
    if (!good) return CD_FAIL(err, ENOMEM, "index of %zu rows", t->n);
    return cd_llm_op_repeats_index(t, err);
}

/* ---- the door ---- */
uint64_t cd_llm_op_table_curve(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, size_t size) {
    const uint64_t h = hash(r, device, size);
    if (t->curve[size].slot) __builtin_prefetch(&t->curve[size].slot[(size_t)h & t->curve[size].mask]);
    return h;
}

void cd_llm_op_table_curves(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, uint64_t curve[CD_LLM_OP_MAX_SIZE + 1]) {
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++) curve[i] = cd_llm_op_table_curve(t, r, device, i);
    curve[CD_LLM_OP_MAX_SIZE] = cd_llm_op_table_curve(t, r, device, CD_LLM_OP_MAX_SIZE);
}

static void fetch(const cd_llm_op_table *t, size_t size, uint64_t curve) {
    const cd_llm_op_curves *c = &t->curve[size];
    if (!c->slot) return;
    const cd_llm_op_curve *s = &c->slot[(size_t)curve & c->mask];
    if (!s->end || s->tag != (uint32_t)(curve >> 32)) return; /* another curve: this one is behind it, or nowhere */
    for (size_t i = 0; i < sizeof *t->r; i += 64) __builtin_prefetch((const char *)&t->r[s->first] + i);
    __builtin_prefetch(&t->device[s->first]);
    __builtin_prefetch(&c->row[s->beg]);
    if (c->value) __builtin_prefetch(&c->value[s->beg + (s->end - s->beg) / 2]);
}

void cd_llm_op_table_curves_fetch(const cd_llm_op_table *t, const cd_llm_op_record *r, const uint64_t curve[CD_LLM_OP_MAX_SIZE + 1]) {
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++) fetch(t, i, curve[i]);
    fetch(t, CD_LLM_OP_MAX_SIZE, curve[CD_LLM_OP_MAX_SIZE]);
}

/* The rows of the record's curve; NULL: it has none. */
static const uint32_t *curve_of(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, size_t size, uint64_t h, size_t *n) {
    if (!t->curve[size].slot) return NULL;
    const cd_llm_op_curve *c = &t->curve[size].slot[slot_of(t, r, device, size, h)];
    *n = c->end - c->beg;
    return c->end ? t->curve[size].row + c->beg : NULL;
}

/* The first row of a curve that does not stand before the record. Rounded sizes keep their order, and equal ones are told by the rows. */
static size_t bisect(const cd_llm_op_table *t, const uint32_t *v, size_t n, double value, size_t size) {
    const float *x = t->curve[size].value + (v - t->curve[size].row), rounded = (float)value;
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (x[mid] < rounded) lo = mid + 1;
        else hi = mid;
    }
    while (lo < n && !(x[lo] > rounded) && t->r[v[lo]].size[size] < value) lo++;
    return lo;
}

void cd_llm_op_table_near(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, size_t size, uint64_t curve, const uint8_t *hide, long out[2]) {
    size_t n;
    const uint32_t *v = curve_of(t, r, device, size, curve, &n);
    out[0] = out[1] = CD_LLM_OP_NONE;
    if (!v) return;
    const size_t at = bisect(t, v, n, r->size[size], size);
    for (size_t i = at; i-- > 0 && out[0] < 0;)
        if (!hide || !hide[v[i]]) out[0] = v[i];
    for (size_t i = at; i < n && out[1] < 0; i++)
        if ((!hide || !hide[v[i]]) && t->r[v[i]].size[size] > r->size[size]) out[1] = v[i];
}

size_t cd_llm_op_table_alike(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device, uint64_t curve, const uint8_t *hide, size_t most, uint32_t *out) {
    size_t n, k = 0;
    const uint32_t *v = curve_of(t, r, device, CD_LLM_OP_MAX_SIZE, curve, &n);
    for (size_t i = 0; v && i < n && k < most; i++)
        if ((!hide || !hide[v[i]]) && by_category(&t->r[v[i]], r)) out[k++] = v[i];
    return k;
}
