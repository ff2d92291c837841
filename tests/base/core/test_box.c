/* Boxes against counting: run, meet, reshape and copy say what a walk over all elements says. */
#include <string.h>

#include "base/core/core.h"
#include "check.h"

enum { MOST = 400 };

static uint64_t at;
static int64_t draw(int64_t n) { return (int64_t)(cd_rng_unit(7, at++) * (double)n); }

static cd_box draw_box(uint32_t rank, const int64_t *shape) {
    cd_box b = {.rank = rank};
    for (uint32_t d = 0; d < rank; d++) {
        b.lo[d] = draw(shape[d]);
        b.n[d] = 1 + draw(shape[d] - b.lo[d]);
        if (!draw(3)) b.lo[d] = 0, b.n[d] = shape[d];
    }
    return b;
}

/* Marks the elements of a box; returns how many. */
static int64_t mark(const cd_box *b, const int64_t *shape, unsigned char *in) {
    int64_t all = 1, n = 0;
    for (uint32_t d = 0; d < b->rank; d++) all *= shape[d];
    for (int64_t e = 0; e < all; e++) {
        int64_t rest = e;
        bool inside = true;
        for (uint32_t d = b->rank; d-- > 0; rest /= shape[d])
            inside = inside && rest % shape[d] >= b->lo[d] && rest % shape[d] < b->lo[d] + b->n[d];
        in[e] = inside;
        n += inside;
    }
    return n;
}

static uint32_t draw_shape(int64_t *shape) {
    const uint32_t rank = 1 + (uint32_t)draw(4);
    for (uint32_t d = 0; d < rank; d++) shape[d] = 1 + draw(4);
    return rank;
}

TEST(test_run) {
    unsigned char in[MOST];
    for (int k = 0; k < 20000; k++) {
        int64_t shape[4], first;
        const uint32_t rank = draw_shape(shape);
        const cd_box b = draw_box(rank, shape);
        const int64_t n = mark(&b, shape, in);
        assert_int_equal(cd_box_elements(&b), n);
        int64_t lo = 0, row = 0;
        while (!in[lo]) lo++;
        while (lo + row < MOST && row < n && in[lo + row]) row++;
        assert_int_equal(cd_box_run(&b, shape, &first), row == n);
        assert_int_equal(first, lo);
    }
}

TEST(test_meet) {
    unsigned char a[MOST], b[MOST], c[MOST];
    for (int k = 0; k < 20000; k++) {
        int64_t shape[4], both = 0, all = 1;
        const uint32_t rank = draw_shape(shape);
        const cd_box x = draw_box(rank, shape), y = draw_box(rank, shape);
        cd_box z;
        const bool any = cd_box_meet(&x, &y, &z);
        const int64_t nx = mark(&x, shape, a);
        mark(&y, shape, b);
        for (uint32_t d = 0; d < rank; d++) all *= shape[d];
        for (int64_t e = 0; e < all; e++) both += a[e] && b[e];
        assert_int_equal(any, both > 0);
        assert_int_equal(cd_box_elements(&z), both);
        if (any) mark(&z, shape, c);
        for (int64_t e = 0; any && e < all; e++) assert_int_equal(c[e], a[e] && b[e]);
        assert_int_equal(cd_box_inside(&x, &y), both == nx);
    }
}

TEST(test_reshape) {
    static const int64_t from[][4] = {
        {4, 6, 1, 2}, {24, 2, 1, 1}, {4, 1, 12, 1}, {2, 2, 6, 2}, {48, 1, 1, 1}};
    unsigned char a[MOST], b[MOST];
    int made = 0;
    for (int k = 0; k < 20000; k++) {
        const int64_t *f = from[draw(5)], *t = from[draw(5)];
        const cd_box x = draw_box(4, f);
        cd_box y;
        if (!cd_box_reshape(&x, f, 4, t, &y)) continue;
        made++;
        assert_int_equal(mark(&x, f, a), mark(&y, t, b));
        assert_memory_equal(a, b, 48);
    }
    assert_true(made > 5000);
    const cd_box rows = {2, {1, 0}, {2, 6}};
    cd_box y;
    assert_true(cd_box_reshape(&rows, (int64_t[]){4, 6}, 1, (int64_t[]){24}, &y));
    assert_int_equal(y.lo[0], 6);
    assert_int_equal(y.n[0], 12);
    const cd_box columns = {2, {0, 1}, {4, 2}};
    assert_false(cd_box_reshape(&columns, (int64_t[]){4, 6}, 1, (int64_t[]){24}, &y));
}

TEST(test_copy) {
    int x[4][6][5], y[2][3][2];
    int64_t xs[3], ys[3];
    for (int k = 0; k < 120; k++) (&x[0][0][0])[k] = k;
    memset(y, 0, sizeof y);
    cd_box_strides(3, (int64_t[]){4, 6, 5}, xs);
    cd_box_strides(3, (int64_t[]){2, 3, 2}, ys);
    cd_box_copy(y, ys, &x[1][2][3], xs, 3, (int64_t[]){2, 3, 2}, sizeof(int));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int l = 0; l < 2; l++) assert_int_equal(y[i][j][l], x[1 + i][2 + j][3 + l]);
    cd_box_copy(&x[0][0][0], xs, &x[3][5][4], xs, 0, NULL, sizeof(int)); /* rank 0: one element */
    assert_int_equal(x[0][0][0], 119);
}

TESTS(NULL, NULL, test_run, test_meet, test_reshape, test_copy)
