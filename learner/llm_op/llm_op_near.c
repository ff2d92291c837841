/* Who is whose neighbour in a table of operators: rows sorted once for each size, a curve found by
 * a hash of what its rows share. Most questions have no curve along most sizes: a bit for each size
 * that some row has tells so without a look at the table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/llm_op/llm_op_feature.h"
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

/* What measured neighbours say of an operator: interpolation along each size, and how curves beside
 * bend. */

enum { MOST_ALIKE = 12 };

typedef struct {
    const cd_llm_op_near *q;
    const cd_llm_op_table *t;
    const cd_llm_op_record *r;
    uint32_t device;
    double own;
    const cd_llm_op_beside *near;
    /* ln of a neighbour's time; how much slower it is than expected, ln */
    double ln[CD_LLM_OP_MAX_SIZE][2], beyond[CD_LLM_OP_MAX_SIZE][2];
    /* NaN: not both sides */
    double line[CD_LLM_OP_MAX_SIZE], shape[CD_LLM_OP_MAX_SIZE], gap[CD_LLM_OP_MAX_SIZE][2];
} asking;

static double ln_time(const asking *a, long row) { return log(a->t->r[row].latency_s); }

/* Where the record stands between its neighbours, 0 to 1. A cache or a window may be 0: one is
 * added. */
static double place(const asking *a, size_t i) {
    return a->gap[i][0] / (a->gap[i][0] + a->gap[i][1]);
}

void cd_llm_op_feature_beside(const cd_llm_op_near *q, const cd_llm_op_record *r, uint32_t device,
                              cd_llm_op_beside *out) {
    for (size_t i = 0, n = cd_llm_op_n_size((cd_llm_op_kind)r->kind); i < n; i++) {
        out->row[i][0] = out->row[i][1] = CD_LLM_OP_NONE;
        if (!(q->hide_sizes >> i & 1))
            cd_llm_op_table_near(q->t, r, device, i, q->curve[i], NULL, out->row[i]);
    }
}

static void look(asking *a, size_t i) {
    const long *v = a->near->row[i];
    a->line[i] = a->shape[i] = NAN;
    for (size_t k = 0; k < 2; k++) {
        a->gap[i][k] = NAN;
        if (v[k] < 0) continue;
        a->gap[i][k] = fabs(log2((a->t->r[v[k]].size[i] + 1) / (a->r->size[i] + 1)));
        a->ln[i][k] = ln_time(a, v[k]);
        a->beyond[i][k] = a->ln[i][k] - a->q->expect(a->q->ctx, (size_t)v[k]);
    }
    if (v[0] < 0 || v[1] < 0) return;
    const double at = place(a, i);
    a->line[i] = a->ln[i][0] + at * (a->ln[i][1] - a->ln[i][0]);
    a->shape[i] = a->own + (1 - at) * a->beyond[i][0] + at * a->beyond[i][1];
}

/* Row `p`, which has the record's own place on the axis, and where rows of its curve at the two
 * neighbours' places would be. */
typedef struct {
    long p;
    uint64_t hash[2];
} curve;

/* The row's record at a neighbour's place. */
static cd_llm_op_record end_of(const asking *a, long p, size_t axis, size_t k) {
    cd_llm_op_record r = a->t->r[p];
    r.size[axis] = a->t->r[a->near->row[axis][k]].size[axis];
    return r;
}

/* All curves are asked for before the first is waited for: their rows lie far apart in memory. */
static void fetch_feature(const asking *a, size_t axis, curve *v, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            const cd_llm_op_record r = end_of(a, v[i].p, axis, k);
            v[i].hash[k] = cd_llm_op_table_hash(a->t, &r, a->device);
        }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) cd_llm_op_table_fetch(a->t, v[i].hash[k]);
}

/* The row against the line between the ends of its curve. NaN: they are not there. */
static double bend(const asking *a, const curve *v, size_t axis, double end[2]) {
    for (size_t k = 0; k < 2; k++) {
        const cd_llm_op_record r = end_of(a, v->p, axis, k);
        const long at = cd_llm_op_table_at(a->t, &r, a->device, v->hash[k]);
        if (at < 0) return NAN;
        end[k] = ln_time(a, at);
    }
    const double at = place(a, axis);
    return ln_time(a, v->p) - end[0] - at * (end[1] - end[0]);
}

static void bends_beside(const asking *a, size_t axis, size_t n, float *x) {
    double end[2];
    curve v[2 * CD_LLM_OP_MAX_SIZE];
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++)
            if (i != axis && a->near->row[i][k] >= 0) v[m++].p = a->near->row[i][k];
    fetch_feature(a, axis, v, m);
    m = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0, count = 0;
        for (size_t k = 0; k < 2 && i != axis; k++) {
            const double b = a->near->row[i][k] < 0 ? (double)NAN : bend(a, &v[m++], axis, end);
            if (!isnan(b)) sum += b, count++;
        }
        if (count > 0) x[CD_LLM_OP_X_bend0 + i] = (float)(sum / count);
    }
}

/* Curves of other types and stacks run alike where their slope between the two points is the
 * same. */
static void bends_alike(const asking *a, size_t axis, float *x) {
    uint32_t row[MOST_ALIKE];
    curve v[MOST_ALIKE];
    double end[2], sum = 0, count = 0, least = INFINITY;
    const double low = a->ln[axis][0], high = a->ln[axis][1];
    const size_t n = a->q->hide_alike ? 0
                                      : cd_llm_op_table_alike(a->t, a->r, a->device,
                                                              a->q->curve[CD_LLM_OP_MAX_SIZE], NULL,
                                                              MOST_ALIKE, row);
    for (size_t k = 0; k < n; k++) v[k].p = row[k];
    fetch_feature(a, axis, v, n);
    for (size_t k = 0; k < n; k++) {
        const double b = bend(a, &v[k], axis, end);
        if (isnan(b)) continue;
        const double apart = fabs(end[0] - low) + fabs(end[1] - high);
        sum += b, count++;
        if (apart >= least) continue;
        least = apart;
        x[CD_LLM_OP_X_bend_nearest] = (float)b;
        x[CD_LLM_OP_X_apart_nearest] = (float)apart;
    }
    if (count > 0) x[CD_LLM_OP_X_bend_alike] = (float)(sum / count);
}

/* The size along which two neighbours are asked: the kind's own axis, which is the first, else that
 * with the nearest two. */
static size_t axis_of(const asking *a, size_t n) {
    size_t axis = CD_LLM_OP_MAX_SIZE;
    double least = INFINITY;
    for (size_t i = 0; i < n && axis != 0; i++) {
        const double wide = a->gap[i][0] + a->gap[i][1];
        if (isnan(a->line[i]) || wide >= least) continue;
        axis = i;
        least = wide;
    }
    return axis;
}

/* The nearest row on any curve, as far from its estimate as the record from its own. */
static bool one_side(const asking *a, size_t n, double *said) {
    double least = INFINITY;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            if (a->near->row[i][k] < 0 || a->gap[i][k] >= least || isnan(a->beyond[i][k])) continue;
            least = a->gap[i][k];
            *said = a->own + a->beyond[i][k];
        }
    return isfinite(least);
}

cd_llm_op_sides cd_llm_op_feature_near(const cd_llm_op_near *q, const cd_llm_op_record *r,
                                       uint32_t device, const cd_llm_op_beside *near, double own,
                                       float x[CD_LLM_OP_N_FEATURE], double *said) {
    asking a;
    a.q = q, a.t = q->t, a.r = r, a.device = device, a.own = own, a.near = near;
    const size_t n = cd_llm_op_n_size((cd_llm_op_kind)r->kind);
    for (size_t i = 0; i < n; i++) look(&a, i);
    const size_t axis = axis_of(&a, n);
    const bool two = axis < CD_LLM_OP_MAX_SIZE;
    if (two) *said = a.line[axis];
    else if (!one_side(&a, n, said)) return CD_LLM_OP_NO_SIDE;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 2; k++) {
            if (near->row[i][k] < 0) continue;
            x[(k ? CD_LLM_OP_X_above0 : CD_LLM_OP_X_below0) + i] = (float)(a.ln[i][k] - *said);
            x[(k ? CD_LLM_OP_X_gap_above0 : CD_LLM_OP_X_gap_below0) + i] = (float)a.gap[i][k];
            x[(k ? CD_LLM_OP_X_shape_above0 : CD_LLM_OP_X_shape_below0) + i] =
                (float)(own + a.beyond[i][k] - *said);
        }
        x[CD_LLM_OP_X_line0 + i] = (float)(a.line[i] - *said);
        x[CD_LLM_OP_X_shape0 + i] = (float)(a.shape[i] - *said);
    }
    x[CD_LLM_OP_X_expect] = (float)(own - *said);
    if (!two) return CD_LLM_OP_ONE_SIDE;
    bends_beside(&a, axis, n, x);
    bends_alike(&a, axis, x);
    return CD_LLM_OP_TWO_SIDES;
}
