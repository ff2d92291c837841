/* Numbers of tile lengths against the recursion that defines their order. */
#include "check.h"
#include "made_space.h"
#include "features/sketch/sketch_internal.h"

/* All lengths in depth-first order over ascending divisors, n to a row. */
typedef struct {
    int32_t len[4], all[20000][4];
    uint32_t n, count;
} listing;

static void list(listing *l, int64_t ext, uint32_t at) {
    if (at >= 4) return;
    for (int32_t f = 1; f <= ext; f++) {
        if (ext % f || (at + 1 == l->n && f > 64)) continue;
        l->len[at] = f;
        if (at + 1 < l->n) list(l, ext / f, at + 1);
        else memcpy(l->all[l->count++], l->len, sizeof l->len);
    }
}

TEST(test_numbers) {
    static listing l;
    static const int64_t extent[] = {1, 2, 7, 12, 64, 97, 128, 150, 768, 1001, 30522};
    for (uint32_t n = 1; n <= 4; n++)
        for (size_t k = 0; k < sizeof extent / sizeof *extent; k++) {
            cd_sketch_space sp = {.naive = false};
            const cd_sketch_tile *t = cd_sketch_tile_get(&sp, extent[k], n);
            l = (listing){.n = n};
            list(&l, extent[k], 0);
            assert_int_equal(cd_sketch_tile_count(t, n), l.count);
            for (uint32_t pick = 0; pick < l.count; pick++) {
                int32_t len[4];
                uint32_t back;
                cd_sketch_tile_lengths(t, n, pick, len);
                assert_memory_equal(len, l.all[pick], n * sizeof *len);
                assert_true(cd_sketch_tile_index(t, n, len, &back));
                assert_int_equal(back, pick);
            }
            assert_ptr_equal(cd_sketch_tile_get(&sp, extent[k], n), t);
            cd_arena_free(&sp.arena);
        }
}

TEST(test_not_a_way) {
    cd_sketch_space sp = {.naive = false};
    const cd_sketch_tile *t = cd_sketch_tile_get(&sp, 768, 2);
    static const int32_t bad[][2] = {{5, 1}, {1, 128}, {0, 1}, {768, 2}, {-2, 2}};
    uint32_t pick;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        assert_false(cd_sketch_tile_index(t, 2, bad[k], &pick));
    cd_arena_free(&sp.arena);
}

/* The extents of the type's end: 1536 divisors, and a prime. */
TEST(test_large) {
    static const int64_t extent[] = {2095133040, 2147483647};
    cd_sketch_space sp = {.naive = false};
    for (size_t k = 0; k < 2; k++) {
        const cd_sketch_tile *t = cd_sketch_tile_get(&sp, extent[k], 2);
        const uint32_t ways = cd_sketch_tile_count(t, 2);
        for (uint32_t i = 0; i < 100; i++) {
            const uint32_t pick = (uint32_t)((uint64_t)ways * i / 100);
            int32_t len[2];
            uint32_t back;
            cd_sketch_tile_lengths(t, 2, pick, len);
            assert_true(cd_sketch_tile_index(t, 2, len, &back) && back == pick);
        }
    }
    cd_arena_free(&sp.arena);
}

/* Distance of all levels, the outermost first. */
static double far(int64_t ext, const int32_t *len, uint32_t n, const double *want) {
    double rest = (double)ext, sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        rest /= len[k];
        sum += fabs(log(len[k] / want[k + 1]));
    }
    return sum + fabs(log(rest / want[0]));
}

TEST(test_nearest) {
    static listing l;
    static const int64_t extent[] = {1, 13, 56, 240, 1024};
    static const double want[][4] = {{1, 1, 1, 1}, {4, 7, 2, 1}, {2, 3, 100, 64}, {16, 1, 5, 30}};
    for (size_t k = 0; k < sizeof extent / sizeof *extent; k++)
        for (size_t j = 0; j < sizeof want / sizeof *want; j++) {
            cd_sketch_space sp = {.naive = false};
            const cd_sketch_tile *t = cd_sketch_tile_get(&sp, extent[k], 3);
            double best = INFINITY;
            int32_t len[4];
            l = (listing){.n = 3};
            list(&l, extent[k], 0);
            for (uint32_t i = 0; i < l.count; i++)
                best = fmin(best, far(extent[k], l.all[i], 3, want[j]));
            cd_sketch_tile_lengths(t, 3, cd_sketch_tile_nearest(t, 3, want[j], &sp.arena), len);
            assert_close(far(extent[k], len, 3, want[j]), best, 1e-12, 1e-12);
            cd_arena_free(&sp.arena);
        }
}

/* Equally near: the inner lengths stay, the outermost one takes what is left. */
TEST(test_nearest_keeps_inner_lengths) {
    static const double want[][4] = {{48, 2, 2, 16}, {48, 2, 2, 16}, {3, 1, 16, 32}};
    static const int64_t extent[] = {1920, 384, 512 * 9};
    static const int32_t inside[][3] = {{2, 2, 16}, {2, 2, 16}, {1, 16, 32}};
    for (size_t k = 0; k < sizeof extent / sizeof *extent; k++) {
        cd_sketch_space sp = {.naive = false};
        int32_t len[3];
        const cd_sketch_tile *t = cd_sketch_tile_get(&sp, extent[k], 3);
        cd_sketch_tile_lengths(t, 3, cd_sketch_tile_nearest(t, 3, want[k], &sp.arena), len);
        for (int i = 0; i < 3; i++) assert_int_equal(len[i], inside[k][i]);
        cd_arena_free(&sp.arena);
    }
}

TESTS(NULL, NULL, test_numbers, test_not_a_way, test_large, test_nearest,
      test_nearest_keeps_inner_lengths)
