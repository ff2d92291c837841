/* Who is whose neighbour in a table of operators: rows sorted once for each size, a curve found by
 * a hash of what its rows share. Most questions have no curve along most sizes: a bit for each size
 * that some row has tells so without a look at the table. */
#include <stdlib.h>
#include <string.h>

#include "learner/llm_op/llm_op_internal.h"

/* qsort() takes no context: each key carries its table. */
typedef struct {
    const cd_llm_op_table *t;
    /* size: the one that comes last; CD_LLM_OP_MAX_SIZE: categories come last */
    uint32_t row, size;
} entry;

static int order(double a, double b) { return (a > b) - (a < b); }

static uint64_t category(const cd_llm_op_record *r) {
    return (uint64_t)r->type << 40 | (uint64_t)r->kv << 32 | (uint64_t)r->stack << 16 | r->kernel;
}

static int by_category(const cd_llm_op_record *a, const cd_llm_op_record *b) {
    const uint64_t x = category(a), y = category(b);
    if (x != y) return x < y ? -1 : 1;
    return order(a->skew, b->skew);
}

/* All sizes but one, and categories; rows of which nothing else differs are on one curve.
 * CD_LLM_OP_MAX_SIZE: all sizes, no categories. */
static int by_rest(const cd_llm_op_record *a, uint32_t da, const cd_llm_op_record *b, uint32_t db,
                   size_t but) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (da != db) return da < db ? -1 : 1;
    const int c = but < CD_LLM_OP_MAX_SIZE ? by_category(a, b) : 0;
    if (c) return c;
    for (size_t i = 0, n = cd_llm_op_n_size((cd_llm_op_kind)a->kind); i < n; i++)
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

static bool on_curve(const cd_llm_op_table *t, uint32_t row, const cd_llm_op_record *r,
                     uint32_t device, size_t size) {
    return !by_rest(&t->r[row], t->device[row], r, device, size);
}

/* ---- hashes ---- */
/* A size of a kind. */
static uint64_t part(const cd_llm_op_record *r, size_t i) {
    return cd_rng_mix((uint64_t)r->size[i] ^ ((uint64_t)r->kind << 8 | (i + 1)) << 48);
}

/* What rows of a curve share beside sizes. */
static uint64_t head(const cd_llm_op_record *r, uint32_t device, bool whole) {
    return cd_rng_at((uint64_t)r->kind << 32 | device,
                     whole ? category(r) ^ (uint64_t)(1e4 * r->skew) << 48 : 0);
}

/* With the sum of the parts of the sizes that they share. Never CD_LLM_OP_NO_CURVE. */
static uint64_t whole_hash(uint64_t of_head, uint64_t sum) {
    return cd_rng_mix(of_head ^ sum) >> 1;
}

/* Of what by_rest compares. */
static uint64_t hash(const cd_llm_op_record *r, uint32_t device, size_t but) {
    uint64_t sum = 0;
    for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++)
        if (i != but) sum += part(r, i);
    return whole_hash(head(r, device, but < CD_LLM_OP_MAX_SIZE), sum);
}

/* Has any row of the kind this size? False: none has. Each size has a bit, which others may
 * share. */
static bool met(const cd_llm_op_table *t, uint64_t of_size) {
    return t->met[(of_size & t->met_mask) / 64] >> of_size % 64 & 1;
}

static bool meet_all(cd_llm_op_table *t) {
    cd_mem_free(t->met);
    for (t->met_mask = 4095; t->met_mask < t->n;) t->met_mask = 2 * t->met_mask + 1;
    if (!(t->met = cd_mem_zalloc(t->met_mask / 64 + 1, sizeof *t->met))) return false;
    for (size_t k = 0; k < t->n; k++)
        for (size_t i = 0; i < cd_llm_op_n_size((cd_llm_op_kind)t->r[k].kind); i++) {
            const uint64_t of_size = part(&t->r[k], i);
            t->met[(of_size & t->met_mask) / 64] |= (uint64_t)1 << of_size % 64;
        }
    return true;
}

/* ---- the index ---- */
static size_t sort(const cd_llm_op_table *t, entry *e, uint32_t size, uint32_t *out) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (size == CD_LLM_OP_MAX_SIZE || size < cd_llm_op_n_size((cd_llm_op_kind)t->r[i].kind))
            e[n++] = (entry){t, i, size};
    qsort(e, n, sizeof *e, compare);
    for (size_t i = 0; i < n; i++) out[i] = e[i].row;
    return n;
}

/* The slot of the curve that the record of this hash is on; a free one where there is none. */
static size_t slot_of(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                      size_t size, uint64_t h) {
    const cd_llm_op_curves *c = &t->curve[size];
    const uint32_t tag = (uint32_t)(h >> 32);
    size_t k = (size_t)h & c->mask;
    while (c->slot[k].end &&
           (c->slot[k].tag != tag || !on_curve(t, c->slot[k].first, r, device, size)))
        k = (k + 1) & c->mask;
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
    bool good = meet_all(t);
    for (uint32_t i = 0; i <= CD_LLM_OP_MAX_SIZE; i++) good &= index_of(t, e, i);
    cd_mem_free(e);
    if (!good) return CD_FAIL(err, ENOMEM, "index of %zu rows", t->n);
    return cd_llm_op_repeats_index(t, err);
}

/* ---- the door ---- */
static uint64_t asked(const cd_llm_op_table *t, size_t size, uint64_t h) {
    __builtin_prefetch(&t->curve[size].slot[(size_t)h & t->curve[size].mask]);
    return h;
}

uint64_t cd_llm_op_table_curve(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                               size_t size) {
    return t->met ? asked(t, size, hash(r, device, size)) : CD_LLM_OP_NO_CURVE;
}

/* A question between measured ones mostly has a size that no row has: only along that size can it
 * have a curve. */
void cd_llm_op_table_curves(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                            uint64_t curve[CD_LLM_OP_MAX_SIZE + 1]) {
    uint64_t of_size[CD_LLM_OP_MAX_SIZE], sum = 0;
    unsigned strange = 0;
    const size_t n = cd_llm_op_n_size((cd_llm_op_kind)r->kind);
    for (size_t i = 0; i <= CD_LLM_OP_MAX_SIZE; i++) curve[i] = CD_LLM_OP_NO_CURVE;
    if (!t->met) return;
    for (size_t i = 0; i < n; i++) {
        sum += of_size[i] = part(r, i);
        strange |= (unsigned)!met(t, of_size[i]) << i;
    }
    /* of two such sizes there is no curve */
    const uint64_t of_head = strange & (strange - 1) ? 0 : head(r, device, true);
    for (size_t i = 0; i < n; i++)
        if (!(strange & ~(1u << i))) curve[i] = asked(t, i, whole_hash(of_head, sum - of_size[i]));
    if (!strange)
        curve[CD_LLM_OP_MAX_SIZE] =
            asked(t, CD_LLM_OP_MAX_SIZE, whole_hash(head(r, device, false), sum));
}

static void fetch(const cd_llm_op_table *t, size_t size, uint64_t curve) {
    const cd_llm_op_curves *c = &t->curve[size];
    if (curve == CD_LLM_OP_NO_CURVE) return;
    size_t k = (size_t)curve & c->mask;
    /* another curve: this one is behind it, or nowhere */
    while (c->slot[k].end && c->slot[k].tag != (uint32_t)(curve >> 32)) k = (k + 1) & c->mask;
    const cd_llm_op_curve *s = &c->slot[k];
    if (!s->end) return;
    for (size_t i = 0; i < sizeof *t->r; i += 64)
        __builtin_prefetch((const char *)&t->r[s->first] + i);
    __builtin_prefetch(&t->device[s->first]);
    __builtin_prefetch(&c->row[s->beg]);
    if (c->value) __builtin_prefetch(&c->value[s->beg + (s->end - s->beg) / 2]);
}

void cd_llm_op_table_curves_fetch(const cd_llm_op_table *t, const cd_llm_op_record *r,
                                  const uint64_t curve[CD_LLM_OP_MAX_SIZE + 1]) {
    for (size_t i = 0, n = cd_llm_op_n_size((cd_llm_op_kind)r->kind); i < n; i++)
        fetch(t, i, curve[i]);
    fetch(t, CD_LLM_OP_MAX_SIZE, curve[CD_LLM_OP_MAX_SIZE]);
}

/* The rows of the record's curve; NULL: it has none. */
static const uint32_t *curve_of(const cd_llm_op_table *t, const cd_llm_op_record *r,
                                uint32_t device, size_t size, uint64_t h, size_t *n) {
    if (h == CD_LLM_OP_NO_CURVE) return NULL;
    const cd_llm_op_curve *c = &t->curve[size].slot[slot_of(t, r, device, size, h)];
    *n = c->end - c->beg;
    return c->end ? t->curve[size].row + c->beg : NULL;
}

/* The first row of a curve that does not stand before the record. Rounded sizes keep their order,
 * and equal ones are told by the rows. */
static size_t bisect(const cd_llm_op_table *t, const uint32_t *v, size_t n, double value,
                     size_t size) {
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

void cd_llm_op_table_near(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                          size_t size, uint64_t curve, const uint8_t *hide, long out[2]) {
    size_t n;
    const uint32_t *v = curve_of(t, r, device, size, curve, &n);
    out[0] = out[1] = CD_LLM_OP_NONE;
    if (!v) return;
    const size_t at = bisect(t, v, n, r->size[size], size);
    for (size_t i = at; i-- > 0 && out[0] < 0;)
        if (!hide || !hide[v[i]]) out[0] = v[i];
    const float *x = t->curve[size].value + (v - t->curve[size].row),
                rounded = (float)r->size[size];
    for (size_t i = at; i < n && out[1] < 0; i++)
        if ((!hide || !hide[v[i]]) && (x[i] > rounded || t->r[v[i]].size[size] > r->size[size]))
            out[1] = v[i];
}

size_t cd_llm_op_table_alike(const cd_llm_op_table *t, const cd_llm_op_record *r, uint32_t device,
                             uint64_t curve, const uint8_t *hide, size_t most, uint32_t *out) {
    size_t n, k = 0;
    const uint32_t *v = curve_of(t, r, device, CD_LLM_OP_MAX_SIZE, curve, &n);
    for (size_t i = 0; v && i < n && k < most; i++)
        if ((!hide || !hide[v[i]]) && by_category(&t->r[v[i]], r)) out[k++] = v[i];
    return k;
}
