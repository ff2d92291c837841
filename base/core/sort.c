/* Comparison functions for qsort(), written once. They compare and do not subtract, so that large numbers cannot
 * overflow into a wrong order. */
#include "base/core/core.h"

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

int cd_sort_by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void cd_sort_doubles(double *v, size_t n) {
    if (n) qsort(v, n, sizeof *v, cd_sort_by_double);
}

double cd_sort_median(const double *sorted, size_t n) { return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2; }
