/* Ordered factorisations of an extent, numbered: all tile lengths of a split whose innermost is at
 * most 64.
 *
 * A table holds the divisors, ascending, and for every divisor q the number of ways to write it as
 * an outermost part and m lengths. Number k of the lengths (l_1 .. l_n) counts those that come
 * before them when l_1, then l_2, ... ascend: TVM's depth-first order. A divisor's place in a row
 * of ways is its vector of prime exponents in mixed radix, so that the place of a quotient is a
 * difference. */
#include <math.h>
#include <string.h>

#include "features/sketch/sketch_internal.h"

enum { MAX_PRIME = 16 };
/* more, each level further in: below any difference that is one */
static const double inner = 1e-6;

struct cd_sketch_tile {
    uint32_t ext, n_div, most; /* most: lengths that there are rows for */
    uint32_t *div, *place;     /* (n_div) ascending */
    uint32_t *ways;            /* (most + 1, n_div) [lengths, place of the divisor] */
    cd_sketch_tile *next;
};

static uint32_t count_divisors(uint32_t ext, uint32_t *prime, uint32_t *times, uint32_t *n_prime) {
    uint32_t n = 1;
    *n_prime = 0;
    for (uint32_t p = 2; ext > 1; p++) {
        if (p > ext / p) p = ext; /* what is left is prime */
        uint32_t k = 0;
        for (; ext % p == 0; ext /= p) k++;
        if (!k) continue;
        prime[*n_prime] = p;
        times[(*n_prime)++] = k;
        n *= k + 1;
    }
    return n;
}

/* Every divisor with its place, then ascending. */
static void list_divisors(cd_sketch_tile *t, const uint32_t *prime, const uint32_t *times,
                          uint32_t n_prime) {
    uint32_t n = 1;
    t->div[0] = 1;
    t->place[0] = 0;
    for (uint32_t p = 0; p < n_prime; p++) {
        const uint32_t before = n;
        for (uint32_t k = 1; k <= times[p]; k++)
            for (uint32_t j = 0; j < before; j++, n++) {
                t->div[n] = t->div[n - before] * prime[p];
                t->place[n] = n;
            }
    }
    for (uint32_t k = 1; k < n; k++) { /* few: by insertion */
        const uint32_t d = t->div[k], at = t->place[k];
        uint32_t j = k;
        for (; j && t->div[j - 1] > d; j--) {
            t->div[j] = t->div[j - 1];
            t->place[j] = t->place[j - 1];
        }
        t->div[j] = d;
        t->place[j] = at;
    }
}

static uint32_t *row(const cd_sketch_tile *t, uint32_t n) { return t->ways + (size_t)n * t->n_div; }

static void count_ways(cd_sketch_tile *t) {
    for (uint32_t k = 0; k < t->n_div; k++) row(t, 0)[k] = 1;
    for (uint32_t m = 1; m <= t->most; m++)
        for (uint32_t q = 0; q < t->n_div; q++) {
            uint32_t sum = 0;
            for (uint32_t f = 0; f <= q; f++) {
                if (m == 1 && t->div[f] > CD_SKETCH_MAX_INNERMOST) break;
                if (t->div[q] % t->div[f] == 0) sum += row(t, m - 1)[t->place[q] - t->place[f]];
            }
            row(t, m)[t->place[q]] = sum;
        }
}

/* Tables are kept in the space: most splits have one of a few extents. */
const cd_sketch_tile *cd_sketch_tile_get(cd_sketch_space *sp, int64_t ext, uint32_t n) {
    uint32_t prime[MAX_PRIME], times[MAX_PRIME], n_prime;
    for (const cd_sketch_tile *t = sp->tile; t; t = t->next)
        if (t->ext == ext && t->most >= n) return t;
    cd_sketch_tile *t = CD_NEW(&sp->arena, cd_sketch_tile);
    if (!t) return NULL;
    t->ext = (uint32_t)ext;
    t->most = n;
    t->n_div = count_divisors(t->ext, prime, times, &n_prime);
    t->div = CD_NEWN(&sp->arena, uint32_t, t->n_div);
    t->place = CD_NEWN(&sp->arena, uint32_t, t->n_div);
    t->ways = CD_NEWN(&sp->arena, uint32_t, (size_t)t->n_div * (n + 1));
    if (!t->div || !t->place || !t->ways) return NULL;
    list_divisors(t, prime, times, n_prime);
    count_ways(t);
    t->next = sp->tile;
    return sp->tile = t;
}

uint32_t cd_sketch_tile_count(const cd_sketch_tile *t, uint32_t n) {
    return row(t, n)[t->place[t->n_div - 1]];
}

/* At each level the divisors ascend; a divisor stands for as many numbers as there are ways to go
 * on. */
void cd_sketch_tile_lengths(const cd_sketch_tile *t, uint32_t n, uint32_t pick, int32_t *len) {
    uint32_t q = t->ext, at = t->place[t->n_div - 1];
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t *ways = row(t, n - k - 1);
        for (uint32_t f = 0; f < t->n_div; f++) {
            if (q % t->div[f]) continue;
            const uint32_t m = ways[at - t->place[f]];
            if (pick >= m) {
                pick -= m;
                continue;
            }
            len[k] = (int32_t)t->div[f];
            q /= t->div[f];
            at -= t->place[f];
            break;
        }
    }
}

bool cd_sketch_tile_index(const cd_sketch_tile *t, uint32_t n, const int32_t *len, uint32_t *pick) {
    uint32_t q = t->ext, at = t->place[t->n_div - 1], sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t *ways = row(t, n - k - 1);
        if (len[k] < 1 || q % (uint32_t)len[k] || (k + 1 == n && len[k] > CD_SKETCH_MAX_INNERMOST))
            return false;
        uint32_t f = 0;
        for (; t->div[f] < (uint32_t)len[k]; f++)
            if (q % t->div[f] == 0) sum += ways[at - t->place[f]];
        q /= (uint32_t)len[k];
        at -= t->place[f];
    }
    *pick = sum;
    return true;
}

/* By dynamic programming over (lengths still to choose, divisor left): the sum of |log(length /
 *   wanted)| of all
 * levels, the outermost as well, is least. Of equals that whose inner lengths are as wanted
 * (vectors, registers): 1920 of a loop that was 48 x 2 x 2 x 16 is 30 x 2 x 2 x 16, not 40 x 2 x 2
 * x 12, which is as near. */
uint32_t cd_sketch_tile_nearest(const cd_sketch_tile *t, uint32_t n, const double *want,
                                cd_arena *a) {
    const uint32_t d = t->n_div;
    double *cost = cd_arena_alloc(a, (size_t)(n + 1) * d, sizeof *cost);
    int32_t *len = cd_arena_alloc(a, n, sizeof *len), pick_f;
    uint32_t *step = cd_arena_alloc(a, (size_t)(n + 1) * d, sizeof *step), pick = 0;
    if (!cost || !len || !step) return UINT32_MAX;
    for (uint32_t q = 0; q < d; q++) cost[t->place[q]] = fabs(log((double)t->div[q] / want[0]));
    for (uint32_t m = 1; m <= n; m++)
        for (uint32_t q = 0; q < d; q++) {
            double best = INFINITY;
            for (uint32_t f = 0; f <= q; f++) {
                if ((m == 1 && t->div[f] > CD_SKETCH_MAX_INNERMOST) || t->div[q] % t->div[f])
                    continue;
                const double c =
                    (1 + inner * (n - m + 1)) * fabs(log((double)t->div[f] / want[n - m + 1])) +
                    cost[(m - 1) * d + t->place[q] - t->place[f]];
                if (c >= best) continue;
                best = c;
                step[m * d + t->place[q]] = f;
            }
            cost[m * d + t->place[q]] = best;
        }
    uint32_t at = t->place[d - 1];
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t f = step[(n - k) * d + at];
        pick_f = (int32_t)t->div[f];
        len[k] = pick_f;
        at -= t->place[f];
    }
    cd_sketch_tile_index(t, n, len, &pick);
    return pick;
}
