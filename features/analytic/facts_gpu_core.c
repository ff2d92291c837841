/* What a thread executes of one statement, and what its accesses cost the block.
 *
 *   for rc in 0..16            stays a loop
 *     unrolled ff in 0..4      16 accumulators in registers; 4 loads of X and 4 of W, which stay in
 *                              registers meanwhile
 *       unrolled xx in 0..4
 *         C.local[ff, xx] += X.shared[rc, xx] * W.shared[ff, rc] */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "features/analytic/analytic_internal.h"

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
} access_warp;

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
static void address(const probe *p, const cd_an_raw *r, access_warp *out) {
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

static void mask(const probe *p, const cd_expr *cond, bool not, access_warp *out) {
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
static int granules(const access_warp *a, int64_t bytes, int shift, granule *out) {
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
static void put_sectors_warp(const access_warp *a, int64_t bytes, cd_an_gpu_touch *out) {
    granule x[MOST_GRANULES];
    const int n = granules(a, bytes, 5, x);
    int all = 0;
    for (int i = 0; i < n; i++) all += x[i].first;
    out->sectors_32 += n;
    out->sectors_64 += all;
}

/* Turns: distinct words of the bank that has most. */
static void put_waves(const access_warp *a, int64_t bytes, cd_an_gpu_touch *out) {
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

/* The vector loop around; NULL: none. */
static const cd_an_gpu_loop *facts_gpu_vector(const cd_an_gpu *g) {
    for (uint32_t l = g->n_path; l-- > 0;)
        if (g->path[l].loop == CD_LOOP_VECTORIZED && !g->path[l].axis && g->path[l].extent > 1)
            return &g->path[l];
    return NULL;
}

/* Neighbours along the vector loop lie side by side in all lanes. */
static bool side_by_side(const probe *p, const cd_an_raw *r, const cd_an_gpu_loop *vector,
                         const access_warp *first) {
    access_warp next;
    p->g->value[vector->e->u.i] = 1;
    address(p, r, &next);
    p->g->value[vector->e->u.i] = 0;
    for (int i = 0; i < CD_GPU_LANES; i++)
        if (next.at[i] != first->at[i] + p->g->w->tensor[r->tensor].elem) return false;
    return true;
}

static void one(const probe *p, const cd_an_raw *r, bool first, cd_an_gpu_touch *out) {
    const cd_an_gpu *g = p->g;
    access_warp a;
    int64_t bytes = g->w->tensor[r->tensor].elem;
    const cd_an_gpu_loop *vector = g->n_cond > g->vector_cond ? NULL : facts_gpu_vector(g);
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
    else put_sectors_warp(&a, bytes, out);
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

#define WIDEST    16   /* bytes of a vector load */
#define MOST_LIVE 64.0 /* operands that a compiler keeps at once */
/* iterations that a compiler puts side by side, so that their loads do not wait for each other */
#define AHEAD 4.0
/* Instructions. */
#define DIVIDE 8.0
#define EXP    8.0
#define TANH   20.0
#define CALL   40.0
#define DIVMOD 4.0

typedef struct {
    cd_an_gpu *g;
    const cd_ast_node *n;
    int32_t k;
    uint32_t raw0, raw1;
    double chance;           /* that conditions hold */
    double serial, vthreads; /* iterations of loops; copies for virtual threads */
    double runs;             /* executions of a thread */
    double copies;           /* of them in the unrolled body */
    int32_t home;            /* of what is stored */
    double instructions;     /* of a thread */
    double live;             /* values that the body loads and keeps */
} statement;

static double *fact(const statement *s, int k) { return &s->g->fact[k]; }
static double all_threads(const statement *s) { return s->g->blocks * s->g->threads; }

/* ---- loops around ---- */

/* Does the access move with the loop? */
static bool facts_gpu_moves(const cd_an_gpu *g, const cd_an_raw *r, const cd_an_gpu_loop *l) {
    if (l->var < 0) return false;
    if (!r->inexact && !r->gather && !r->copy) {
        for (uint32_t i = 0; i < r->n; i++)
            if (r->t[i].var == l->var) return true;
        return false;
    }
    const uint32_t rank = g->w->tensor[r->tensor].rank;
    for (uint32_t d = 0; d < rank; d++)
        if (cd_expr_uses(r->x[d], l->e)) return true;
    return false;
}

/* Elements along the loop. */
static double distinct(const cd_an_raw *r, const cd_an_gpu_loop *l) {
    double n = 1;
    if (r->inexact || r->gather) return (double)l->extent;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->t[i].var == l->var) n *= (double)r->t[i].n;
    return fmin(n, (double)l->extent);
}

static bool uses(const statement *s, const cd_expr *var) {
    for (uint32_t i = 0; i < s->n->n; i++)
        if (cd_expr_uses(s->n->x[i], var)) return true;
    return cd_expr_uses(s->n->e, var);
}

static bool is_copied(const cd_an_gpu_loop *l) {
    return l->copied || l->loop == CD_LOOP_VECTORIZED;
}

/* A statement that no virtual thread changes is done once for all of them. */
static void look_around(statement *s) {
    const cd_an_gpu *g = s->g;
    s->serial = s->vthreads = s->copies = 1;
    for (uint32_t i = 0; i < g->n_path; i++) {
        const cd_an_gpu_loop *l = &g->path[i];
        if (l->axis && !cd_an_gpu_is_vthread(l->axis)) continue;
        const double extent = (double)l->extent;
        if (l->axis) {
            if (!uses(s, l->e)) continue;
            s->vthreads *= extent;
            s->copies *= extent;
        } else {
            s->serial *= extent;
            if (is_copied(l)) s->copies *= extent;
        }
    }
    s->runs = s->serial * s->vthreads * s->chance;
}

/* Chance that all conditions hold: those of the same loops bound the same thing, the least of them
 * counts; others are independent. */
static double chance(const cd_an_gpu *g) {
    double all = 1, one[CD_GPU_DEEP];
    for (uint32_t i = 0; i < g->n_cond; i++) {
        bool alone = true;
        one[i] = cd_facts_affine_chance(g->w, g->cond[i]);
        for (uint32_t k = 0; k < i && alone; k++)
            for (uint32_t l = 0; l < g->n_path && alone; l++)
                if (g->path[l].var >= 0 && cd_expr_uses(g->cond[i], g->path[l].e) &&
                    cd_expr_uses(g->cond[k], g->path[l].e)) {
                    alone = false;
                    if (one[i] < one[k]) all *= one[i] / one[k];
                    one[i] = fmin(one[i], one[k]);
                }
        if (alone) all *= one[i];
    }
    return all;
}

/* ---- accesses ---- */

/* How often a thread executes an access, conditions apart: an unrolled body loads an element once,
 * and loops that do not move it keep it in a register, up to where it or what is stored is made
 * anew. *live: elements that a step of the sums needs at once. */
static double executions(const statement *s, const cd_an_raw *r, double *live) {
    const cd_an_gpu *g = s->g;
    const int32_t home =
        g->w->tensor[r->tensor].home > s->home ? g->w->tensor[r->tensor].home : s->home;
    double times = 1, body = 1;
    bool stays = false;
    *live = 1;
    for (uint32_t i = g->n_path; i-- > 0;) {
        const cd_an_gpu_loop *l = &g->path[i];
        if (l->var < 0 || (l->axis && !cd_an_gpu_is_vthread(l->axis))) continue;
        const bool moves = facts_gpu_moves(g, r, l), anew = l->ast < home;
        if (is_copied(l) || l->axis) {
            if (moves) body *= distinct(r, l);
            if (moves && facts_gpu_moves(g, &g->w->raw[s->raw0], l)) *live *= distinct(r, l);
            if (!moves && anew && !l->axis) times *= (double)l->extent;
            continue;
        }
        stays |= moves || anew;
        if (stays) times *= (double)l->extent;
    }
    return times * body;
}

static void put_global(const statement *s, bool load, double runs, double instructions,
                       const cd_an_gpu_touch *t) {
    const cd_an_gpu *g = s->g;
    const double groups = instructions * g->groups * g->blocks, all = all_threads(s) * t->active;
    *fact(s, load ? CD_GPU_FACT_GLOBAL_LOADS : CD_GPU_FACT_GLOBAL_STORES) += runs * all;
    *fact(s, load ? CD_GPU_FACT_LOAD_INSTRUCTIONS : CD_GPU_FACT_STORE_INSTRUCTIONS) +=
        instructions * all;
    *fact(s, load ? CD_GPU_FACT_LOAD_SECTORS_32 : CD_GPU_FACT_STORE_SECTORS_32) +=
        groups * t->sectors_32;
    *fact(s, load ? CD_GPU_FACT_LOAD_SECTORS_64 : CD_GPU_FACT_STORE_SECTORS_64) +=
        groups * t->sectors_64;
    *fact(s, CD_GPU_FACT_ACTIVE) += t->active * instructions * all_threads(s);
    s->g->lanes += instructions * all_threads(s);
    if (load) *fact(s, CD_GPU_FACT_LOADS_AT_ONCE) += instructions * t->active;
}

/* Turns of the loops around what is stored. */
static double steps(const statement *s) {
    double n = 1;
    for (uint32_t i = 0; i < s->g->n_path; i++)
        if (!s->g->path[i].axis && s->g->path[i].ast < s->home) n *= (double)s->g->path[i].extent;
    return n;
}

/* No more than every access of the blocks is a sector of its own, and no more than smaller groups
 * load: what is approximated may say so. */
static void put_sectors(const statement *s, const cd_an_raw *r, bool load, double instructions,
                        const cd_an_gpu_touch *t) {
    cd_an_gpu *g = s->g;
    const double most = instructions * g->groups * t->sectors_32, turns = steps(s);
    double *all = load ? &g->loaded[r->tensor] : &g->stored[r->tensor], group = (double)INFINITY,
           step = (double)INFINITY;
    for (int i = 0; load && i < CD_N_GPU_FACT_GROUP; i++) {
        const double n = (double)(1 << (2 * i)), some = fmin(n, g->blocks),
                     groups = g->blocks / some;
        const bool all_before = i && n >= 4 * g->blocks; /* the last one had all blocks */
        if (!all_before)
            group = fmin(group, fmin(cd_facts_gpu_sectors(g, r, some, -1), some * most) * groups);
        *fact(s, CD_GPU_FACT_GROUP_1 + i) += group;
        if (i % 2) continue;
        if (turns <= 1) step = group;
        else
            step = fmin(step, fmax(group, fmin(turns * cd_facts_gpu_sectors(g, r, some, s->home),
                                               some * most) *
                                              groups));
        *fact(s, CD_GPU_FACT_STEP_1 + i / 2) += step;
    }
    *all += fmin(fmin(group, cd_facts_gpu_sectors(g, r, g->blocks, -1)), g->blocks * most);
}

static void put_shared(const statement *s, bool load, double instructions,
                       const cd_an_gpu_touch *t) {
    const double groups = instructions * s->g->groups * s->g->blocks;
    *fact(s, load ? CD_GPU_FACT_SHARED_LOADS : CD_GPU_FACT_SHARED_STORES) +=
        instructions * all_threads(s) * t->active;
    *fact(s, load ? CD_GPU_FACT_SHARED_LOAD_WAVES_32 : CD_GPU_FACT_SHARED_STORE_WAVES_32) +=
        groups * t->waves_32;
    *fact(s, load ? CD_GPU_FACT_SHARED_LOAD_WAVES_64 : CD_GPU_FACT_SHARED_STORE_WAVES_64) +=
        groups * t->waves_64;
}

/* Neighbours in memory along an unrolled loop, of which a load takes 4, or 2, where all other steps
 * keep them aligned. */
static double wide(const statement *s, const cd_an_raw *r) {
    const int64_t elem = s->g->w->tensor[r->tensor].elem;
    int64_t run = 1;
    for (uint32_t k = 0; k < r->n && !r->inexact && !r->gather; k++)
        for (uint32_t i = 0; i < s->g->n_path; i++)
            if (s->g->path[i].copied && s->g->path[i].var == r->t[k].var && r->t[k].k == elem)
                run = r->t[k].n;
    for (int64_t q = WIDEST / elem; q > 1; q /= 2) {
        bool aligned = run % q == 0 && r->c % (q * elem) == 0;
        for (uint32_t k = 0; k < r->n && aligned; k++)
            aligned = r->t[k].k == elem || r->t[k].k % (q * elem) == 0;
        if (aligned) return (double)q;
    }
    return 1;
}

/* Tiles that a loop indexes cannot be registers. */
static void put_local(statement *s, const cd_an_raw *r) {
    const cd_an_gpu *g = s->g;
    for (uint32_t i = 0; i < g->n_path; i++) {
        const cd_an_gpu_loop *l = &g->path[i];
        if (l->axis || is_copied(l) || l->ast < g->w->tensor[r->tensor].home ||
            !facts_gpu_moves(g, r, l))
            continue;
        *fact(s, CD_GPU_FACT_LOCAL_ACCESSES) += s->runs * (double)r->chance * all_threads(s);
        s->instructions += s->runs * (double)r->chance;
        return;
    }
}

/* The first access is the store; a copy is a load from where it goes. */
static void access(statement *s, const cd_an_raw *r) {
    cd_an_gpu *g = s->g;
    const bool load = !r->write || r->copy;
    const cd_an_raw *at = r->copy ? &g->w->raw[r->first] : r;
    const cd_an_gpu_place place = (cd_an_gpu_place)g->place[r->tensor];
    cd_an_gpu_touch t;
    double live;
    if (r->gather) *fact(s, CD_GPU_FACT_GATHERED) += s->runs * all_threads(s);
    if (place == CD_GPU_LOCAL) {
        put_local(s, at);
        return;
    }
    const double runs = executions(s, at, &live);
    cd_facts_gpu_probe(g, at, &t);
    double instructions = runs;
    const double q = load && place == CD_GPU_SHARED && !t.neighbours ? wide(s, at) : 1;
    if (q > 1) { /* words of all lanes once, with no conflicts */
        instructions /= q;
        t.waves_32 = fmax(ceil(g->threads / 32) / g->groups, q * t.words_32 / 32);
        t.waves_64 = fmax(1, q * t.words_64 / 32);
    } else if (t.neighbours) {
        const double bytes = (double)facts_gpu_vector(g)->extent * g->w->tensor[r->tensor].elem;
        instructions *= ceil(bytes / WIDEST) / (double)facts_gpu_vector(g)->extent;
    }
    s->instructions += instructions * t.active;
    if (load) s->live += live;
    if (place == CD_GPU_SHARED) {
        put_shared(s, load, instructions, &t);
        if (q > 1) *fact(s, CD_GPU_FACT_SHARED_WIDE) += instructions * all_threads(s) * t.active;
        return;
    }
    put_global(s, load, runs, instructions, &t);
    put_sectors(s, at, load, instructions, &t);
}

/* ---- waiting ---- */

/* Threads wait once in every turn of the loops around what is stored, for all that one such turn
 * loads. */
static void put_waits(const statement *s, bool global, bool shared) {
    cd_an_gpu *g = s->g;
    double turns = 1;
    int32_t at = -1;
    for (uint32_t i = 0; i < g->n_path; i++) {
        const cd_an_gpu_loop *l = &g->path[i];
        if (l->axis || (is_copied(l) && !shared) || (shared && l->ast > s->home)) continue;
        turns *= (double)l->extent;
        at = l->ast;
    }
    if (!shared) turns = ceil(turns / AHEAD);
    if (global && (at < 0 || at != g->wait_at)) *fact(s, CD_GPU_FACT_PHASES) += turns;
    if (global) g->wait_at = at;
    if (!shared || (at >= 0 && at == g->sync_at)) return;
    *fact(s, CD_GPU_FACT_SYNCS) += turns > 1 ? 2 * turns : 1;
    g->sync_at = at;
}

/* Sums into one element follow each other. */
static void put_chain(const statement *s) {
    const cd_an_raw *store = &s->g->w->raw[s->raw0];
    double own = 1;
    bool sums = false;
    for (uint32_t i = s->raw0 + 1; i < s->raw1; i++) sums |= s->g->w->raw[i].copy;
    if (!sums) return;
    for (uint32_t i = 0; i < s->g->n_path; i++) {
        const cd_an_gpu_loop *l = &s->g->path[i];
        if ((!l->axis || cd_an_gpu_is_vthread(l->axis)) && facts_gpu_moves(s->g, store, l))
            own *= distinct(store, l);
    }
    *fact(s, CD_GPU_FACT_CHAIN) += s->runs / own;
}

/* ---- work ---- */

static double divmods(const statement *s) {
    const cd_an *w = s->g->w;
    double all = 0;
    for (uint32_t i = 0; i < w->n_division; i++) {
        double n = 1;
        if (w->division[i].store != s->k) continue;
        for (uint32_t l = 0; l < s->g->n_path; l++)
            if (!s->g->path[l].axis && s->g->path[l].var >= 0 &&
                cd_expr_uses(w->division[i].e, s->g->path[l].e))
                n *= (double)s->g->path[l].extent;
        all += n;
    }
    return all;
}

static void put_work(statement *s) {
    cd_an_value v;
    const double all = s->runs * all_threads(s), div = divmods(s) * s->chance;
    cd_facts_value_of(s->g->w, s->n->e, NULL, &v);
    const double fp = v.adds + v.muls - v.fused + v.others;
    const double each = fp + v.ints + v.casts + 2 * v.selects + 2 * (v.conditions + s->g->n_cond) +
                        DIVIDE * v.divides + EXP * v.exps + TANH * v.tanhs + CALL * v.calls;
    s->instructions += s->runs * each + DIVMOD * div;
    *fact(s, CD_GPU_FACT_FLOP) += all * (v.adds + v.muls + v.others);
    *fact(s, CD_GPU_FACT_FLOP_FUSED) += all * 2 * v.fused;
    *fact(s, CD_GPU_FACT_CALLS_DIVIDE) += all * v.divides;
    *fact(s, CD_GPU_FACT_CALLS_EXP) += all * v.exps;
    *fact(s, CD_GPU_FACT_CALLS_TANH) += all * v.tanhs;
    *fact(s, CD_GPU_FACT_CALLS_OTHER) += all * v.calls;
    *fact(s, CD_GPU_FACT_INT_OPS) += all * (v.ints + v.casts);
    *fact(s, CD_GPU_FACT_SELECTS) += all * v.selects;
    *fact(s, CD_GPU_FACT_BRANCHES) += all * (v.conditions + s->g->n_cond);
    *fact(s, CD_GPU_FACT_FP_INSTRUCTIONS) += all * fp;
    *fact(s, CD_GPU_FACT_DIVMODS) += div * all_threads(s);
}

void cd_facts_gpu_statement(cd_an_gpu *g, int32_t k, uint32_t raw0, uint32_t raw1) {
    statement s = {.g = g, .n = &g->w->ast->node[k], .k = k, .raw0 = raw0, .raw1 = raw1};
    bool global = false;
    if (raw0 == raw1) return;
    const uint32_t to = g->w->raw[raw0].tensor;
    s.home = g->w->tensor[to].home;
    s.chance = chance(g);
    look_around(&s);
    put_work(&s);
    for (uint32_t i = raw0; i < raw1; i++) {
        access(&s, &g->w->raw[i]);
        global |= i > raw0 && g->place[g->w->raw[i].tensor] == CD_GPU_GLOBAL;
    }
    put_waits(&s, global, g->place[to] == CD_GPU_SHARED);
    put_chain(&s);
    g->fact[CD_GPU_FACT_THREAD_INSTRUCTIONS] += s.instructions;
    g->fact[CD_GPU_FACT_CODE] += s.instructions / fmax(1, s.serial * s.vthreads / s.copies);
    g->fact[CD_GPU_FACT_REGISTERS] = fmax(g->fact[CD_GPU_FACT_REGISTERS], fmin(s.live, MOST_LIVE));
}
