/* Enumerates the blocks that keep the limits of a processor and orders them by the analytic cost.
 *
 *   S3       all, by the kernel's cost; the best REGISTERS of them
 *     R1, S2   all that fit L1 and L2, of thinned lists of divisors;
 *              S1 and the rest in one piece each way
 *       the best KEPT of all   ──> S1 by all divisors, the place of the copy, the unroll limit
 *                              ──> picked, unlike each other first */
#include <math.h>
#include <string.h>

#include "predictor/tune/template/template_internal.h"

enum { REGISTERS = 20, KEPT = 12, WAYS = 3, INNERMOST = 64, DIVISORS = 1600 };
/* A candidate that has the registers, the L1 or the L2 block of one that was picked before must be
 * so much cheaper. */
static const double same_registers = 0.03, same_sum = 0.02, same_l2 = 0.04;
#define RATIO 1.5 /* of neighbours in lists of lengths */
#define FAR   1e10
/* combinations of a tile; MOST_S2: with the ways of S1 */
enum { MOST_R1 = 32, MOST_S2 = 6400, MOST_S1 = 400, LIMITS = 3 };
static const uint32_t limit[LIMITS] = {16, 64, 512}; /* of Ansor's unroll pragma */

typedef struct {
    uint32_t n;
    int32_t v[DIVISORS];
} list;

static void add_divisor(list *l, int64_t k, int64_t of, double ratio) {
    const bool thin = l->n && k != of && (double)k < ratio * l->v[l->n - 1];
    if (!thin && l->n < DIVISORS) l->v[l->n++] = (int32_t)k;
}

/* Ascending; `ratio`: those that are less than so many times the one before are left out, but for
 * the last. */
static void divisors(int64_t of, double ratio, list *out) {
    out->n = 0;
    int64_t k = 1;
    for (; k <= of / k; k++)
        if (of % k == 0) add_divisor(out, k, of, ratio);
    for (k--; k > 0; k--)
        if (of % k == 0 && of / k > k && of / k <= INT32_MAX) add_divisor(out, of / k, of, ratio);
}

/* Divisors of n extents, thinned until their combinations are at most `most`: what a search in many
 * loops costs is bounded. */
static void all_divisors(const int64_t *of, uint32_t n, double most, list *out) {
    double count = FAR;
    for (double ratio = RATIO; count > most && ratio < FAR; ratio *= RATIO) {
        count = 1;
        for (uint32_t k = 0; k < n; k++) {
            divisors(of[k], ratio, &out[k]);
            count *= out[k].n;
        }
    }
}

static bool divides(int64_t extent, int64_t a, int64_t b, int64_t c) {
    return a > 0 && b > 0 && c > 0 && extent % cd_template_mul(cd_template_mul(a, b), c) == 0;
}

/* ---- limits ---- */
static int64_t bytes_of(const cd_template_nest *n, const cd_template_machine *m,
                        const int64_t *tile, cd_template_place place) {
    int64_t bytes = 0;
    for (int k = 0; k < 2; k++)
        bytes +=
            cd_template_bytes(n, m, &n->in[k], tile, n->in[k].packed ? CD_TEMPLATE_PACKED : place);
    return bytes;
}

int64_t cd_template_l1_bytes(const cd_template_nest *n, const cd_template_machine *m,
                             const cd_template_block *b) {
    int64_t tile[CD_TEMPLATE_AXES];
    for (uint32_t a = 0; a < n->n_axis; a++) tile[a] = a < n->n_space ? b->s3[a] : b->r1[a];
    return bytes_of(n, m, tile, CD_TEMPLATE_NEAR);
}

int64_t cd_template_l2_bytes(const cd_template_nest *n, const cd_template_machine *m,
                             const cd_template_block *b) {
    int64_t tile[CD_TEMPLATE_AXES];
    for (uint32_t a = 0; a < n->n_axis; a++)
        tile[a] = a < n->n_space ? (int64_t)b->s2[a] * b->s3[a] : b->r1[a];
    return bytes_of(n, m, tile, CD_TEMPLATE_FAR);
}

bool cd_template_legal(const cd_template_nest *n, const cd_template_machine *m,
                       const cd_template_block *b) {
    for (uint32_t a = 0; a < n->n_axis; a++) {
        const bool space = a < n->n_space;
        if (!divides(n->extent[a], space ? b->s1[a] : 1, space ? b->s2[a] : 1,
                     space ? b->s3[a] : b->r1[a]))
            return false;
        if ((space ? b->s3[a] : b->r1[a]) > INNERMOST) return false;
    }
    return cd_template_registers(n, m, b->s3) <= m->registers &&
           cd_template_l1_bytes(n, m, b) <= m->l1_bytes &&
           cd_template_l2_bytes(n, m, b) <= m->l2_bytes;
}

/* ---- all combinations of lists ---- */
/* The next one, the last axis fastest; false: that was the last. at (n) places in the lists. */
static bool next(const list *l, uint32_t *at, uint32_t n) {
    for (uint32_t k = n; k-- > 0; at[k] = 0)
        if (++at[k] < l[k].n) return true;
    return false;
}

static void take(const list *l, const uint32_t *at, uint32_t n, int32_t *len) {
    for (uint32_t k = 0; k < n; k++) len[k] = l[k].v[at[k]];
}

/* ---- the cheapest so far, ascending ---- */
typedef struct {
    cd_template_block *p; /* (cap) */
    uint32_t n, cap;
} ranking;

static bool same(const cd_template_nest *n, const int32_t *a, const int32_t *b) {
    return !memcmp(a, b, n->n_axis * sizeof *a);
}

static bool equal(const cd_template_nest *n, const cd_template_block *x,
                  const cd_template_block *y) {
    return same(n, x->s1, y->s1) && same(n, x->s2, y->s2) && same(n, x->s3, y->s3) &&
           same(n, x->r1, y->r1) && x->unroll == y->unroll && x->copy == y->copy;
}

static void enter(const cd_template_nest *n, ranking *r, const cd_template_block *b) {
    uint32_t at = r->n;
    while (at && r->p[at - 1].cost > b->cost) at--;
    if (at == r->cap || (at && equal(n, &r->p[at - 1], b))) return;
    if (r->n < r->cap) r->n++;
    memmove(&r->p[at + 1], &r->p[at], (r->n - 1 - at) * sizeof *r->p);
    r->p[at] = *b;
}

static cdmpp_status ranking_new(cd_arena *a, uint32_t cap, ranking *r, cdmpp_err *err) {
    *r = (ranking){.p = CD_NEWN(a, cd_template_block, cap), .cap = cap};
    return r->p ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u blocks", cap);
}

/* ---- S3 ---- */
static double points(const cd_template_nest *n, const int32_t *s3) {
    double p = 1;
    for (uint32_t a = 0; a < n->n_space; a++) p *= s3[a];
    return p;
}

static void set_ones(const cd_template_nest *n, cd_template_block *b) {
    *b = (cd_template_block){0};
    for (uint32_t a = 0; a < n->n_axis; a++) b->s1[a] = b->s2[a] = b->s3[a] = b->r1[a] = 1;
}

/* Longer lengths of an axis only need more registers: the rest of its list is skipped. */
static void each_s3(const cd_template_nest *n, const cd_template_machine *m, const list *l,
                    uint32_t axis, cd_template_block *b, ranking *r, uint32_t *count) {
    if (axis == n->n_space) {
        b->cost = cd_template_kernel_cost(n, m, b->s3) / points(n, b->s3);
        (*count)++;
        if (r) enter(n, r, b);
        return;
    }
    for (uint32_t k = 0; k < l[axis].n && l[axis].v[k] <= INNERMOST; k++) {
        b->s3[axis] = l[axis].v[k];
        if (axis + 1 < n->n_space && cd_template_registers(n, m, b->s3) > m->registers) break;
        if (cd_template_registers(n, m, b->s3) <= m->registers &&
            cd_template_l1_bytes(n, m, b) <= m->l1_bytes &&
            cd_template_l2_bytes(n, m, b) <= m->l2_bytes)
            each_s3(n, m, l, axis + 1, b, r, count);
    }
    b->s3[axis] = 1;
}

cdmpp_status cd_template_register_blocks(const cd_template_nest *n, const cd_template_machine *m,
                                         cd_arena *a, cd_template_block **out, uint32_t *n_out,
                                         cdmpp_err *err) {
    list *l = CD_NEWN(a, list, n->n_space);
    cd_template_block b;
    ranking r;
    uint32_t count = 0;
    if (!l) return CD_FAIL(err, ENOMEM, "divisors");
    for (uint32_t k = 0; k < n->n_space; k++) divisors(n->extent[k], 1, &l[k]);
    set_ones(n, &b);
    each_s3(n, m, l, 0, &b, NULL, &count);
    CD_TRY(ranking_new(a, count + 1, &r, err));
    each_s3(n, m, l, 0, &b, &r, &count);
    *out = r.p;
    *n_out = r.n;
    return CDMPP_OK;
}

/* ---- the rest of a block ---- */
typedef struct {
    const cd_template_nest *n;
    const cd_template_machine *m;
    list *r1, *s2, *s1; /* (n_axis) */
    ranking kept, ways;
} finder;

/* S0 tiles for every thread. */
static bool feeds_threads(const finder *f, const cd_template_block *b) {
    int64_t tiles = 1, most = 1;
    for (uint32_t a = 0; a < f->n->n_space; a++) {
        tiles = cd_template_mul(tiles, f->n->extent[a] / ((int64_t)b->s1[a] * b->s2[a] * b->s3[a]));
        most = cd_template_mul(most, f->n->extent[a] / b->s3[a]);
    }
    return tiles >= f->m->threads || tiles == most;
}

/* S1 takes of each axis all that S2 leaves, or nothing: the cheapest of these ways stands for all
 * S1. */
static void each_way(finder *f, cd_template_block *b) {
    cd_template_block best = {.cost = (double)INFINITY};
    uint32_t open[CD_TEMPLATE_AXES], n_open = 0;
    for (uint32_t a = 0; a < f->n->n_space; a++)
        if (f->n->extent[a] > (int64_t)b->s2[a] * b->s3[a]) open[n_open++] = a;
    for (uint32_t ways = 0; ways < 1U << n_open; ways++) {
        for (uint32_t a = 0; a < f->n->n_space; a++) b->s1[a] = 1;
        for (uint32_t k = 0; k < n_open; k++)
            if (ways >> k & 1)
                b->s1[open[k]] =
                    (int32_t)(f->n->extent[open[k]] / ((int64_t)b->s2[open[k]] * b->s3[open[k]]));
        if (!feeds_threads(f, b)) continue;
        cd_template_choose(f->n, f->m, limit, LIMITS, b);
        if (b->cost < best.cost) best = *b;
    }
    if (best.cost < (double)INFINITY) enter(f->n, &f->kept, &best);
}

static void each_s2(finder *f, cd_template_block *b) {
    uint32_t at[CD_TEMPLATE_AXES] = {0};
    do {
        take(f->s2, at, f->n->n_space, b->s2);
        if (cd_template_l2_bytes(f->n, f->m, b) <= f->m->l2_bytes) each_way(f, b);
    } while (next(f->s2, at, f->n->n_space));
}

/* R1 and S2 for the registers of b: the cheapest to f->kept. */
static void each_r1(finder *f, cd_template_block *b) {
    const uint32_t s = f->n->n_space, sums = f->n->n_axis - s;
    uint32_t at[CD_TEMPLATE_AXES] = {0};
    int64_t left[CD_TEMPLATE_AXES];
    double most = MOST_S2;
    for (uint32_t a = 0; a < s; a++)
        if ((left[a] = f->n->extent[a] / b->s3[a]) > 1) most /= 2;
    all_divisors(left, s, most, f->s2);
    do {
        take(f->r1, at, sums, b->r1 + s);
        if (cd_template_l1_bytes(f->n, f->m, b) <= f->m->l1_bytes) each_s2(f, b);
    } while (next(f->r1, at, sums));
}

/* The kept block with every S1 and every limit of the pragma: the cheapest to f->ways. */
static void refine(finder *f, cd_template_block *b) {
    const uint32_t s = f->n->n_space;
    uint32_t at[CD_TEMPLATE_AXES] = {0};
    int64_t left[CD_TEMPLATE_AXES];
    for (uint32_t a = 0; a < s; a++) left[a] = f->n->extent[a] / ((int64_t)b->s2[a] * b->s3[a]);
    all_divisors(left, s, MOST_S1, f->s1);
    do {
        take(f->s1, at, s, b->s1);
        for (uint32_t k = 0; k < LIMITS && feeds_threads(f, b); k++) {
            cd_template_choose(f->n, f->m, &limit[k], 1, b);
            enter(f->n, &f->ways, b);
        }
    } while (next(f->s1, at, s));
}

/* ---- picking ---- */
static void pick(const cd_template_nest *n, const ranking *all, ranking *out, uint32_t most,
                 bool *taken) {
    while (out->n < most) {
        double least = (double)INFINITY;
        uint32_t best = all->n;
        for (uint32_t k = 0; k < all->n; k++) {
            double c = 1;
            if (taken[k]) continue;
            for (uint32_t j = 0; j < out->n; j++) {
                const bool s3 = same(n, all->p[k].s3, out->p[j].s3),
                           r1 = same(n, all->p[k].r1, out->p[j].r1);
                c += s3 * same_registers + (s3 && r1) * same_sum +
                     (s3 && r1 && same(n, all->p[k].s2, out->p[j].s2)) * same_l2;
            }
            if (c * all->p[k].cost >= least) continue;
            least = c * all->p[k].cost;
            best = k;
        }
        if (best == all->n) break;
        taken[best] = true;
        out->p[out->n++] = all->p[best];
    }
}

static cdmpp_status find(finder *f, cd_arena *a, cd_template_block *reg, uint32_t n_reg,
                         ranking *all, cdmpp_err *err) {
    const uint32_t n = f->n->n_axis;
    f->r1 = CD_NEWN(a, list, 3 * n);
    if (!f->r1) return CD_FAIL(err, ENOMEM, "divisors");
    f->s2 = f->r1 + n;
    f->s1 = f->s2 + n;
    CD_TRY(ranking_new(a, KEPT, &f->kept, err));
    CD_TRY(ranking_new(a, WAYS, &f->ways, err));
    all_divisors(f->n->extent + f->n->n_space, n - f->n->n_space, MOST_R1, f->r1);
    for (uint32_t k = 0; k < n - f->n->n_space; k++)
        while (f->r1[k].n && f->r1[k].v[f->r1[k].n - 1] > INNERMOST) f->r1[k].n--;
    for (uint32_t i = 0; i < n_reg && i < REGISTERS; i++) {
        f->kept.n = 0;
        each_r1(f, &reg[i]);
        for (uint32_t k = 0; k < f->kept.n; k++) {
            f->ways.n = 0;
            refine(f, &f->kept.p[k]);
            for (uint32_t j = 0; j < f->ways.n; j++) enter(f->n, all, &f->ways.p[j]);
        }
    }
    return CDMPP_OK;
}

cdmpp_status cd_template_best(const cd_template_nest *n, const cd_template_machine *m,
                              uint32_t most, cd_arena *a, cd_template_block **out, uint32_t *n_out,
                              cdmpp_err *err) {
    finder f = {.n = n, .m = m};
    cd_arena scratch = {0};
    cd_template_block *reg;
    uint32_t n_reg;
    ranking all, best;
    cdmpp_status st = cd_template_register_blocks(n, m, &scratch, &reg, &n_reg, err);
    if (!st) st = ranking_new(&scratch, REGISTERS * KEPT * WAYS, &all, err);
    if (!st) st = ranking_new(a, most + 1, &best, err);
    if (!st) st = find(&f, &scratch, reg, n_reg, &all, err);
    bool *taken = st ? NULL : CD_NEWN(&scratch, bool, all.n + 1);
    if (!st && !taken) st = CD_FAIL(err, ENOMEM, "blocks");
    if (!st) {
        pick(n, &all, &best, most, taken);
        *out = best.p;
        *n_out = best.n;
    }
    cd_arena_free(&scratch);
    return st;
}
