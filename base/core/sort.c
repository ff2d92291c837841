/* Comparison functions for qsort(), written once. They compare and do not subtract, so that large
 * numbers cannot overflow into a wrong order. */
#include "base/core/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int cd_sort_by_double(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int cd_sort_by_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int cd_sort_by_u64(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int cd_sort_by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- doubles ---- */
enum { SHORT = 64, DIGIT = 11, DIGITS = 6 }; /* SHORT: so few are put in order one by one */

static void insert_each(double *v, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const double x = v[i];
        size_t k = i;
        for (; k && v[k - 1] > x; k--) v[k] = v[k - 1];
        v[k] = x;
    }
}

/* Bits that rise with the number: those of a negative one all turned, else the sign. */
static uint64_t rising(uint64_t b) { return b ^ ((b >> 63 ? UINT64_MAX : 0) | 1ULL << 63); }
static uint64_t falling(uint64_t b) { return b ^ ((b >> 63 ? 0 : UINT64_MAX) | 1ULL << 63); }
static size_t digit(uint64_t b, size_t d) { return b >> d * DIGIT & ((1U << DIGIT) - 1); }

/* Digit by digit from the last one on, each time into the other room; a digit that all have moves
 * nothing. */
static void by_digits(uint64_t *v, uint64_t *room, size_t n, size_t (*count)[1U << DIGIT]) {
    uint64_t *from = v, *to = room;
    for (size_t i = 0; i < n; i++) {
        v[i] = rising(v[i]);
        for (size_t d = 0; d < DIGITS; d++) count[d][digit(v[i], d)]++;
    }
    for (size_t d = 0; d < DIGITS; d++) {
        size_t at = 0;
        if (count[d][digit(v[0], d)] == n) continue;
        for (size_t k = 0; k < 1U << DIGIT; k++) {
            const size_t here = count[d][k];
            count[d][k] = at;
            at += here;
        }
        for (size_t i = 0; i < n; i++) to[count[d][digit(from[i], d)]++] = from[i];
        uint64_t *other = from;
        from = to, to = other;
    }
    for (size_t i = 0; i < n; i++) v[i] = falling(from[i]);
}

/* Numbers of qsort() are compared by a function, which takes many times as long; it is left for
 * where there is no room. */
void cd_sort_doubles(double *v, size_t n) {
    if (n <= SHORT) {
        insert_each(v, n);
        return;
    }
    uint64_t *room = cd_mem_zalloc(2 * n, sizeof *room);
    size_t(*count)[1U << DIGIT] = cd_mem_zalloc(DIGITS, sizeof *count);
    if (room && count) {
        memcpy(room, v, n * sizeof *v);
        by_digits(room, room + n, n, count);
        memcpy(v, room, n * sizeof *v);
    } else {
        qsort(v, n, sizeof *v, cd_sort_by_double);
    }
    cd_mem_free(room);
    cd_mem_free(count);
}

double cd_sort_median(const double *sorted, size_t n) {
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double cd_sort_to_median(double *v, size_t n) {
    cd_sort_doubles(v, n);
    return cd_sort_median(v, n);
}

double cd_sort_quantile(const double *sorted, size_t n, double p) {
    if (!n) return (double)NAN;
    const double at = p * (double)(n - 1);
    const size_t i = (size_t)at;
    if (i + 1 >= n) return sorted[n - 1];
    return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

double cd_sort_to_quantile(double *v, size_t n, double p) {
    cd_sort_doubles(v, n);
    return cd_sort_quantile(v, n, p);
}
