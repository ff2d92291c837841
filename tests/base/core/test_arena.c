/* Allocations of an arena: aligned, zeroed where asked, gone after a reset, refused when memory is
 * out. */
#include "check.h"

#include <stdint.h>
#include <string.h>

#include "base/core/arena.h"

/* Every block is aligned, its own, and keeps its content until the reset. */
TEST(blocks_do_not_overlap) {
    enum { N = 3000 };
    static unsigned char *p[N];
    static size_t n[N];
    cd_arena a = {0};
    for (int round = 0; round < 3; round++) {
        unsigned x = (unsigned)round + 1;
        for (int i = 0; i < N; i++) {
            x = x * 1664525 + 1013904223;
            n[i] = i % 500 == 499 ? 100000 : x >> 24;
            p[i] = cd_arena_alloc(&a, n[i], 1);
            assert_non_null(p[i]);
            assert_int_equal((uintptr_t)p[i] % 16, 0);
            memset(p[i], i & 255, n[i]);
        }
        for (int i = 0; i < N; i++)
            for (size_t k = 0; k < n[i]; k++) assert_int_equal(p[i][k], i & 255);
        cd_arena_reset(&a);
    }
    cd_arena_free(&a);
    assert_null(a.head);
}

TEST(zeroed) {
    cd_arena a = {0};
    memset(cd_arena_alloc(&a, 1000, 1), 255, 1000);
    cd_arena_reset(&a);
    const int *p = CD_NEWN(&a, int, 250);
    for (int i = 0; i < 250; i++) assert_int_equal(p[i], 0);
    assert_int_equal(*CD_NEW(&a, long), 0);
    cd_arena_free(&a);
}

TEST(overflow) {
    cd_arena a = {0};
    assert_null(cd_arena_alloc(&a, SIZE_MAX, 1));
    assert_null(cd_arena_alloc(&a, SIZE_MAX / 2, 3));
    assert_null(cd_arena_zalloc(&a, SIZE_MAX / 8, 16));
    assert_non_null(cd_arena_alloc(&a, 0, 8));
    assert_non_null(cd_arena_alloc(&a, SIZE_MAX, 0));
    cd_arena_free(&a);
}

/* The second round of the same size allocates nothing. */
TEST(reset_keeps_the_largest_chunk) {
    cd_arena a = {0};
    for (int i = 0; i < 100; i++) cd_arena_alloc(&a, 1000, 1);
    cd_arena_reset(&a);
    const struct cd_arena_chunk *head = a.head;
    for (int i = 0; i < 60; i++) cd_arena_alloc(&a, 1000, 1);
    assert_ptr_equal(a.head, head);
    cd_arena_reset(&a);
    cd_arena_free(&a);
    cd_arena_reset(&a); /* empty ones, too */
    cd_arena_free(&a);
}

TESTS(NULL, NULL, blocks_do_not_overlap, zeroed, overflow, reset_keeps_the_largest_chunk)
