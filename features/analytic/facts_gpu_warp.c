/* What the lanes of a warp do together: a load or store at a few points of its loops, its index
 * expressions computed for 64 lanes at a time.
 *
 *   x[rc*4 + (o*56 + tx) // 36, (o*2 + tx) % 9]     lanes of 64 threads: addresses, conditions
 *     point: block 700, rc 13, o 1, warp 2     ──>  distinct sectors of 32 bytes,
 *                                                   of both warps of 32, and of all 64
 *                                                   turns of 32 banks of 4 bytes:
 *                                                   the bank with most distinct words
 *
 * The points are those of a sequence that fills all loops evenly (multiples of irrational numbers),
 * the same for every program. A block of at most 192 threads is looked at in all of its groups, of
 * a larger one three groups; of shared memory two. */
#include <math.h>
#include <string.h>

#include "features/analytic/analytic_internal.h"

#define POINTS CD_GPU_POINTS
/* where they look alike: shared memory, sums of digits without conditions */
#define POINTS_ALIKE 2
#define BANKS        32

typedef cd_an_gpu_lanes lanes;

typedef struct {
    const cd_an_gpu *g;
    const lanes *axis[CD_AST_TAG_COUNT + 1]; /* by axis; NULL: the same in all lanes */
} probe;

/* ---- expressions ---- */

/* Numbers of 32 bits, as devices compute indices. Tests that execute programs (interp.h,
 * gputrace.h) have operators of their own, of 64 bits: what they are the truth of must not be what
 * they use. */
static inline int32_t floor_div(int32_t a, int32_t b) {
    return b ? (int32_t)(a / (int64_t)b - (a % b && (a ^ b) < 0)) : 0;
}
static inline int32_t wrap(int64_t x) { return (int32_t)(uint32_t)(uint64_t)x; }

static int32_t apply(cd_expr_op op, int32_t a, int32_t b) {
    switch (op) {
    case CD_ADD: return wrap((int64_t)a + b);
    case CD_SUB: return wrap((int64_t)a - b);
    case CD_MUL: return wrap((int64_t)a * b);
    case CD_DIV: return b && b != -1 ? a / b : 0;
    case CD_MOD: return b && b != -1 ? a % b : 0;
    case CD_FDIV: return b == -1 ? 0 : floor_div(a, b);
    case CD_FMOD: return b == -1 ? 0 : wrap((int64_t)a - (int64_t)floor_div(a, b) * b);
    case CD_MIN: return a < b ? a : b;
    case CD_MAX: return a > b ? a : b;
    case CD_EQ: return a == b;
    case CD_NE: return a != b;
    case CD_LT: return a < b;
    case CD_LE: return a <= b;
    case CD_GT: return a > b;
    case CD_GE: return a >= b;
    case CD_AND: return a && b;
    case CD_OR: return a || b;
    default: return 0;
    }
}

static inline int32_t lane(const lanes *x, int i) { return x->v[x->same ? 0 : i]; }

static bool any_negative(const int32_t *x) {
    int32_t any = 0;
    for (int i = 0; i < CD_GPU_LANES; i++) any |= x[i];
    return any < 0;
}

/* Quotients by multiplication: exact for x below 2^31, as 2^shift / d, less than 2^32, is rounded
 * up by less than 2^(shift - 31) / d. */
static bool divide_all(cd_expr_op op, const int32_t *x, int32_t d, int32_t *restrict to) {
    const int shift = 31 + (d > 1 ? 32 - __builtin_clz((unsigned)d - 1) : 0);
    const uint32_t inverse = (uint32_t)((((uint64_t)1 << shift) + (uint64_t)d - 1) / (uint64_t)d);
    if (any_negative(x)) return false;
    for (int i = 0; i < CD_GPU_LANES; i++) {
        const int32_t q = (int32_t)((uint64_t)(uint32_t)x[i] * inverse >> shift);
        to[i] = op == CD_FDIV ? q : x[i] - q * d;
    }
    return true;
}

/* The operators of nearly all addresses in loops that a compiler makes vectors of. */
#define EACH(OF)                                                                                   \
    do {                                                                                           \
        if (b->same)                                                                               \
            for (int i = 0; i < CD_GPU_LANES; i++) v[i] = OF(x[i], other);                         \
        else                                                                                       \
            for (int i = 0; i < CD_GPU_LANES; i++) v[i] = OF(x[i], y[i]);                          \
    } while (0)
#define PLUS(x, y)     (int32_t)((uint32_t)(x) + (uint32_t)(y))
#define MINUS(x, y)    (int32_t)((uint32_t)(x) - (uint32_t)(y))
#define TIMES(x, y)    (int32_t)((uint32_t)(x) * (uint32_t)(y))
#define LESS(x, y)     ((x) < (y))
#define AT_LEAST(x, y) ((x) >= (y))
#define BOTH(x, y)     (((x) != 0) & ((y) != 0))
#define ANY(x, y)      apply(op, x, y)

static void apply_all(cd_expr_op op, const lanes *a, const lanes *b, lanes *restrict to) {
    lanes all;
    int32_t *restrict v = to->v;
    to->same = a->same && b->same;
    if (to->same) {
        v[0] = apply(op, a->v[0], b->v[0]);
        return;
    }
    if (a->same) {
        for (int i = 0; i < CD_GPU_LANES; i++) all.v[i] = a->v[0];
        a = &all;
    }
    const int32_t *x = a->v, *y = b->v, other = b->v[0];
    if (b->same && other > 0 && (op == CD_FDIV || op == CD_FMOD) && divide_all(op, x, other, v))
        return;
    switch (op) {
    case CD_ADD: EACH(PLUS); return;
    case CD_SUB: EACH(MINUS); return;
    case CD_MUL: EACH(TIMES); return;
    case CD_LT: EACH(LESS); return;
    case CD_GE: EACH(AT_LEAST); return;
    case CD_AND: EACH(BOTH); return;
    default: EACH(ANY);
    }
}

/* The value: that of an axis, or computed into `to`. */
static const lanes *eval(const probe *p, const cd_expr *e, lanes *to);

static const lanes *constant(lanes *to, int64_t v) {
    to->same = true;
    to->v[0] = wrap(v);
    return to;
}

static const lanes *choose(const probe *p, const cd_expr *e, lanes *to) {
    lanes a, b;
    const lanes *c = eval(p, e->a[0], to);
    if (c->same) return eval(p, e->a[c->v[0] ? 1 : 2], to);
    const lanes *x = eval(p, e->a[1], &a), *y = eval(p, e->a[2], &b);
    for (int i = 0; i < CD_GPU_LANES; i++) to->v[i] = lane(c->v[i] ? x : y, i);
    to->same = false;
    return to;
}

static const lanes *variable(const probe *p, const cd_expr *e, lanes *to) {
    const int32_t var = p->g->w->var_of[e->u.i];
    const lanes *axis = var < 0 ? NULL : p->axis[p->g->w->var[var].axis];
    return axis ? axis : constant(to, var < 0 ? 0 : p->g->value[e->u.i]);
}

static const lanes *negate(const lanes *a, lanes *to) {
    to->same = a->same;
    for (int i = 0; i < (a->same ? 1 : CD_GPU_LANES); i++) to->v[i] = !a->v[i];
    return to;
}

static const lanes *binary(const probe *p, const cd_expr *e, lanes *to) {
    lanes a, b;
    apply_all((cd_expr_op)e->op, eval(p, e->a[0], &a), eval(p, e->a[1], &b), to);
    return to;
}

static const lanes *eval(const probe *p, const cd_expr *e, lanes *to) {
    switch ((cd_expr_op)e->op) {
    case CD_INT: return constant(to, e->u.i);
    case CD_VAR: return variable(p, e, to);
    case CD_NOT: return negate(eval(p, e->a[0], to), to);
    case CD_CAST: return eval(p, e->a[0], to);
    case CD_SELECT: return choose(p, e, to);
    case CD_CALL:
        if (e->n == 3 && !strcmp(e->u.name, "if_then_else")) return choose(p, e, to);
        if (e->n == 1 && !strcmp(e->u.name, "likely")) return eval(p, e->a[0], to);
        return constant(to, 1);
    /* what is loaded is not known */
    default: return cd_expr_op_is_binary((cd_expr_op)e->op) ? binary(p, e, to) : constant(to, 0);
    }
}

/* ---- lanes ---- */

typedef struct {
    int64_t at[CD_GPU_LANES]; /* bytes */
    bool on[CD_GPU_LANES];
} access;

/* *same: what is the same for all lanes. */
static void add(int64_t *restrict at, const lanes *restrict v, int64_t stride, int64_t *same) {
    if (v->same) *same += v->v[0] * stride;
    /* of 32 bits each a product is one instruction */
    else if (stride == (uint32_t)stride && !any_negative(v->v))
        for (int i = 0; i < CD_GPU_LANES; i++)
            at[i] += (int64_t)((uint64_t)(uint32_t)v->v[i] * (uint32_t)stride);
    else
        for (int i = 0; i < CD_GPU_LANES; i++) at[i] += v->v[i] * stride;
}

/* The variable over lo, and if that may be n or more the remainder by n. */
static const lanes *digit(const probe *p, const cd_an_slice *s, lanes *to) {
    const cd_an_var *var = &p->g->w->var[s->var];
    const lanes *x = p->axis[var->axis];
    const bool cut = s->lo * s->n < var->extent;
    lanes whole, by;
    if (!x) {
        const int64_t q = p->g->value[var->e->u.i] / s->lo;
        return constant(to, cut ? q % s->n : q);
    }
    if (s->lo > 1) {
        apply_all(CD_FDIV, x, constant(&by, s->lo), &whole);
        x = &whole;
    }
    if (cut) apply_all(CD_FMOD, x, constant(&by, s->n), to);
    else if (s->lo > 1) *to = whole;
    return cut || s->lo > 1 ? to : x;
}

/* A sum of digits is added up digit by digit, another address from its expressions. */
static void address(const probe *p, const cd_an_raw *r, access *out) {
    const cd_an_tensor *t = &p->g->w->tensor[r->tensor];
    const bool sum = !r->inexact && !r->gather;
    int64_t same = sum ? r->c : 0;
    lanes v;
    memset(out->at, 0, sizeof out->at);
    for (uint32_t i = 0; i < r->n && sum; i++)
        add(out->at, digit(p, &r->t[i], &v), r->t[i].k, &same);
    for (uint32_t d = 0; d < t->rank && !sum; d++) {
        add(out->at, eval(p, r->x[d], &v), t->stride[d], &same);
        if (t->x) add(out->at, eval(p, t->x[2 * d], &v), -t->stride[d], &same);
    }
    for (int i = 0; i < CD_GPU_LANES; i++) out->at[i] += same;
}

static void mask(const probe *p, const cd_expr *cond, bool not, access *out) {
    lanes v;
    const lanes *c = eval(p, cond, &v);
    for (int i = 0; i < CD_GPU_LANES; i++) out->on[i] = out->on[i] && (lane(c, i) != 0) != not ;
}

/* ---- what the lanes share ---- */

#define MOST_GRANULES (CD_GPU_LANES * 5) /* of words, 16 bytes that begin within one */
#define SLOTS         512                /* more than these */

typedef struct {
    int64_t key[SLOTS];
    uint8_t by[SLOTS]; /* 0: free; bit 0, 1: the first, the second 32 lanes touch it */
} table;

static uint8_t *find(table *t, int64_t key) {
    uint32_t k = (uint32_t)((uint64_t)key * 0x9E3779B97F4A7C15U >> 55);
    while (t->by[k] && t->key[k] != key) k = (k + 1) % SLOTS;
    t->key[k] = key;
    return &t->by[k];
}

typedef struct {
    int64_t number; /* of the granule */
    uint8_t half;   /* whose lanes touch it: 0, 1 */
    bool first;     /* no lane before does */
} granule;

/* The granules of 2^shift bytes that lanes touch, each once for each half: out (MOST_GRANULES).
 * Returns how many. */
static int granules(const access *a, int64_t bytes, int shift, granule *out) {
    table t;
    int n = 0;
    int64_t last = INT64_MIN;
    memset(t.by, 0, sizeof t.by);
    for (int i = 0; i < CD_GPU_LANES; i++) {
        const uint8_t half = i >= 32;
        if (i == 32) last = INT64_MIN;
        if (!a->on[i]) continue;
        for (int64_t s = a->at[i] >> shift; s <= (a->at[i] + bytes - 1) >> shift; s++) {
            if (s == last) continue;
            uint8_t *by = find(&t, last = s);
            if (!(*by >> half & 1)) out[n++] = (granule){s, half, !*by};
            *by |= (uint8_t)(1 << half);
        }
    }
    return n;
}

/* Distinct sectors: of each of both halves, of both together. */
static void put_sectors(const access *a, int64_t bytes, cd_an_gpu_touch *out) {
    granule x[MOST_GRANULES];
    const int n = granules(a, bytes, 5, x);
    int all = 0;
    for (int i = 0; i < n; i++) all += x[i].first;
    out->sectors_32 += n;
    out->sectors_64 += all;
}

/* Turns: distinct words of the bank that has most. */
static void put_waves(const access *a, int64_t bytes, cd_an_gpu_touch *out) {
    granule x[MOST_GRANULES];
    uint16_t bank[3][BANKS] = {{0}}, most[3] = {0}; /* of each half, of both together */
    const int n = granules(a, bytes, 2, x);
    for (int i = 0; i < n; i++) {
        const uint32_t b = (uint32_t)x[i].number % BANKS;
        if (++bank[x[i].half][b] > most[x[i].half]) most[x[i].half]++;
        if (!x[i].first) continue;
        out->words_64++;
        if (++bank[2][b] > most[2]) most[2]++;
    }
    out->words_32 += n;
    out->waves_32 += most[0] + most[1];
    out->waves_64 += most[2];
}

/* ---- points ---- */

/* Values of the loops around at point i of n; the first thread of the group. */
static void place(const cd_an_gpu *g, int i, int n) {
    static const double step[] = {0.618033988749895, 0.414213562373095, 0.732050807568877,
                                  0.236067977499790, 0.645751311064591, 0.316624790355400,
                                  0.605551275463989, 0.123105625617661, 0.358898943540674,
                                  0.795831523312720};
    for (uint32_t l = 0; l < g->n_path; l++) {
        const cd_an_gpu_loop *o = &g->path[l];
        if (o->var < 0 || cd_an_gpu_is_thread(o->axis)) continue;
        const double x = ((double)i + 0.5) * step[l % (sizeof step / sizeof *step)] +
                         (n > 1 ? 0 : 0.25),
                     part = x - (double)(int)x;
        g->value[o->e->u.i] = (int32_t)(part * (double)o->extent);
    }
}

/* Threads of the group along each axis, x fastest; kept, as all accesses of a kernel ask for the
 * same groups. */
static const cd_an_gpu_lanes *spread(cd_an_gpu *g, int point, int group) {
    static const cd_ast_tag tag[] = {CD_AST_TAG_TX, CD_AST_TAG_TY, CD_AST_TAG_TZ};
    cd_an_gpu_lanes *x = g->lane[point];
    int32_t at[3], n[3], first = group * CD_GPU_LANES;
    if (g->group[point] == group) return x;
    g->group[point] = group;
    for (int a = 0; a < 4; a++) x[a].same = false;
    for (int i = 0; i < CD_GPU_LANES; i++) x[3].v[i] = first + i < (int32_t)g->threads;
    for (int a = 0; a < 3; a++) {
        n[a] = (int32_t)g->extent[tag[a]] > 1 ? (int32_t)g->extent[tag[a]] : 1;
        at[a] = first % n[a];
        first /= n[a];
    }
    for (int i = 0; i < CD_GPU_LANES; i++) {
        for (int a = 0; a < 3; a++) x[a].v[i] = at[a];
        for (int a = 0; a < 3 && ++at[a] == n[a]; a++) at[a] = 0;
    }
    return x;
}

const cd_an_gpu_loop *cd_facts_gpu_vector(const cd_an_gpu *g) {
    for (uint32_t l = g->n_path; l-- > 0;)
        if (g->path[l].loop == CD_LOOP_VECTORIZED && !g->path[l].axis && g->path[l].extent > 1)
            return &g->path[l];
    return NULL;
}

/* Neighbours along the vector loop lie side by side in all lanes. */
static bool side_by_side(const probe *p, const cd_an_raw *r, const cd_an_gpu_loop *vector,
                         const access *first) {
    access next;
    p->g->value[vector->e->u.i] = 1;
    address(p, r, &next);
    p->g->value[vector->e->u.i] = 0;
    for (int i = 0; i < CD_GPU_LANES; i++)
        if (next.at[i] != first->at[i] + p->g->w->tensor[r->tensor].elem) return false;
    return true;
}

static void one(const probe *p, const cd_an_raw *r, bool first, cd_an_gpu_touch *out) {
    const cd_an_gpu *g = p->g;
    access a;
    int64_t bytes = g->w->tensor[r->tensor].elem;
    const cd_an_gpu_loop *vector = g->n_cond > g->vector_cond ? NULL : cd_facts_gpu_vector(g);
    int exist = 0, active = 0;
    if (vector) g->value[vector->e->u.i] = 0;
    address(p, r, &a);
    if (vector && first) out->neighbours = side_by_side(p, r, vector, &a);
    if (out->neighbours) {
        bytes *= vector->extent;
        bytes /= (bytes + 15) / 16;
    }
    for (int i = 0; i < CD_GPU_LANES; i++) exist += a.on[i] = p->axis[0] ? p->axis[0]->v[i] : true;
    for (uint32_t c = 0; c < g->n_cond; c++) mask(p, g->cond[c], false, &a);
    if (r->cond) mask(p, r->cond, r->cond_else, &a);
    for (int i = 0; i < CD_GPU_LANES; i++) active += a.on[i];
    out->active += exist ? (double)active / exist : 0;
    if (g->place[r->tensor] == CD_GPU_SHARED) put_waves(&a, bytes, out);
    else put_sectors(&a, bytes, out);
}

void cd_facts_gpu_probe(cd_an_gpu *g, const cd_an_raw *r, cd_an_gpu_touch *out) {
    const int groups = (int)g->groups;
    const bool alike =
        g->place[r->tensor] == CD_GPU_SHARED ||
        (groups <= POINTS_ALIKE && !g->n_cond && !r->cond && !r->inexact && !r->gather);
    const int most = alike ? POINTS_ALIKE : POINTS, n = groups < most && groups > 1 ? groups : most;
    *out = (cd_an_gpu_touch){0};
    for (int i = 0; i < n; i++) {
        const lanes *x = spread(g, i, (int)(((double)i + 0.5) * groups / n));
        probe p = {.g = g};
        p.axis[0] = &x[3];
        p.axis[CD_AST_TAG_TX + 1] = &x[0];
        p.axis[CD_AST_TAG_TY + 1] = &x[1];
        p.axis[CD_AST_TAG_TZ + 1] = &x[2];
        place(g, i, n);
        one(&p, r, i == 0, out);
    }
    out->sectors_32 /= n;
    out->sectors_64 /= n;
    out->waves_32 /= n;
    out->waves_64 /= n;
    out->words_32 /= n;
    out->words_64 /= n;
    out->active /= n;
}
