/* Orders of numbers and texts; the middle of sorted ones. */
#include <math.h>
#include <stdlib.h>

#include "base/core/core.h"
#include "check.h"

TEST(orders) {
    double d[] = {2, -1e300, 1e300, 0, -3};
    uint32_t u[] = {7, UINT32_MAX, 0, 8};
    uint64_t w[] = {7, UINT64_MAX, 0, 8};
    const char *t[] = {"b", "a", "", "ab"};
    cd_sort_doubles(d, 5);
    cd_sort_doubles(NULL, 0);
    for (int k = 1; k < 5; k++) assert_true(d[k - 1] < d[k]);
    qsort(u, 4, sizeof *u, cd_sort_by_u32);
    qsort(w, 4, sizeof *w, cd_sort_by_u64);
    qsort(t, 4, sizeof *t, cd_sort_by_text);
    for (int k = 1; k < 4; k++)
        assert_true(u[k - 1] < u[k] && w[k - 1] < w[k] && strcmp(t[k - 1], t[k]) < 0);
    assert_int_equal(cd_sort_by_double(&d[2], &d[2]), 0);
    assert_int_equal(cd_sort_by_u32(&u[2], &u[2]), 0);
    assert_int_equal(cd_sort_by_u64(&w[2], &w[2]), 0);
}

/* Many are put in order by their digits: as qsort() has them, of both signs, of all sizes, and some
 * more than once. */
TEST(many_doubles) {
    static double v[5000], same[5000];
    const size_t count[] = {1, 2, 64, 65, 66, 1000, 5000};
    for (size_t c = 0; c < sizeof count / sizeof *count; c++)
        for (uint64_t kind = 0; kind < 3; kind++) {
            for (size_t i = 0; i < count[c]; i++) {
                const double u = cd_rng_unit(kind, i % 700) - 0.5;
                v[i] = same[i] = kind == 0   ? u
                                 : kind == 1 ? u * pow(10, 600 * cd_rng_unit(7, i) - 300)
                                 : i % 3     ? 1
                                             : (double)INFINITY * (u < 0 ? -1 : 1);
            }
            cd_sort_doubles(v, count[c]);
            qsort(same, count[c], sizeof *same, cd_sort_by_double);
            assert_memory_equal(v, same, count[c] * sizeof *v);
        }
}

TEST(median) {
    static const double v[] = {1, 2, 4, 8};
    assert_true(cd_sort_median(v, 1) == 1 && cd_sort_median(v, 2) == 1.5 &&
                cd_sort_median(v, 3) == 2 && cd_sort_median(v, 4) == 3);
}

TESTS(NULL, NULL, orders, many_doubles, median)
