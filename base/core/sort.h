/* The orders that many files sort by. NaN is not expected. */
#ifndef CD_SORT_H
#define CD_SORT_H
#include <stddef.h>
#include <stdint.h>

/* For qsort(): doubles, smallest first; unsigned numbers; texts (char *) by strcmp. */
int cd_sort_by_double(const void *a, const void *b);
int cd_sort_by_u32(const void *a, const void *b);
int cd_sort_by_u64(const void *a, const void *b);
int cd_sort_by_text(const void *a, const void *b);
/* (n) numbers in place, smallest first. */
void cd_sort_doubles(double *v, size_t n);
/* The middle of n > 0 sorted numbers; the mean of the middle two where n is even. */
double cd_sort_median(const double *sorted, size_t n);
#endif
