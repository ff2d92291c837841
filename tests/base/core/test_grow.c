/* Arrays that double: what is in them stays, and a refused allocation changes nothing. */
#include "base/core/core.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "check.h"

TEST(grows_and_keeps) {
    uint32_t *v = NULL, n = 0, cap = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_false(CD_GROW(v, n, cap));
        v[n++] = i * i;
    }
    assert_true(cap >= 1000 && cap <= 1024);
    for (uint32_t i = 0; i < 1000; i++) assert_int_equal(v[i], i * i);
    cd_mem_free(v);
}

TEST(grows_in_an_arena) {
    cd_arena a = {0};
    double *v = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < 300; i++) {
        assert_false(CD_GROW_IN(&a, v, n, cap));
        v[n++] = (double)i;
    }
    for (size_t i = 0; i < 300; i++) assert_true(v[i] == (double)i);
    cd_arena_free(&a);
}

TEST(counters_do_not_wrap) {
    char *p = NULL;
    size_t cap = 1u << 31;
    assert_null(cd_grow_heap(p, 1u << 31, &cap, 1, UINT32_MAX));
    assert_int_equal(cap, 1u << 31);
    cap = SIZE_MAX / 8;
    assert_null(cd_grow_heap(p, SIZE_MAX / 8, &cap, 64, SIZE_MAX / 2));
}

TEST(sorted) {
    double v[] = {3, -1, 1e300, -1e300, 0};
    uint32_t u[] = {4000000000u, 1, 3000000000u};
    const char *z[] = {"b", "", "a"};
    cd_sort_doubles(v, 5);
    assert_true(v[0] == -1e300 && v[1] == -1 && v[2] == 0 && v[3] == 3 && v[4] == 1e300);
    assert_true(cd_sort_median(v, 5) == 0 && cd_sort_median(v + 1, 4) == 1.5);
    qsort(u, 3, sizeof *u, cd_sort_by_u32);
    assert_true(u[0] == 1 && u[1] == 3000000000u && u[2] == 4000000000u);
    qsort(z, 3, sizeof *z, cd_sort_by_text);
    assert_string_equal(z[0], "");
    assert_string_equal(z[2], "b");
}

TESTS(NULL, NULL, grows_and_keeps, grows_in_an_arena, counters_do_not_wrap, sorted)
