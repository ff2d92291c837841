/* Legal sets against enumeration, limits, order, degenerate shapes. */
#include <string.h>

#include "fault.h"
#include "made_template.h"

/* ---- what must hold, written down once more ---- */
static int64_t vectors(int64_t lanes, int64_t n) {
    int64_t k = 0;
    for (; n > 0; k++) {
        while (lanes > n) lanes /= 2;
        n -= lanes;
    }
    return k;
}

static int64_t lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Of a dense nest: rows of A lie as they are, W is packed. k: turns of the sum. */
static int64_t dense_bytes(int64_t i, int64_t j, int64_t k) { return i * lines(k * 4) + j * k * 4; }

static bool listed(const cd_template_block *b, uint32_t n, int32_t i, int32_t j) {
    uint32_t found = 0;
    for (uint32_t k = 0; k < n; k++) found += b[k].s3[0] == i && b[k].s3[1] == j;
    assert_true(found < 2);
    return found;
}

static void test_vectors(void **state) {
    (void)state;
    for (int64_t n = 0; n < 200; n++)
        assert_int_equal(cd_template_vectors(&made_machine, n), vectors(8, n));
}

/* Every pair of lengths is in the list if and only if it keeps the limits. */
static void test_register_blocks_are_all(void **state) {
    static const size_t task[] = {T_MM, T_PRIME, T_GEMV};
    for (int t = 0; t < 3; t++)
        for (int small = 0; small < 2; small++) {
            const cd_template_nest n = made_nest(*state, task[t]);
            cd_template_machine m = made_machine;
            cd_arena a = {0};
            cdmpp_err err = {0};
            cd_template_block *b;
            uint32_t n_b, n_legal = 0;
            if (small) m.l1_bytes = 512;
            assert_ok(cd_template_register_blocks(&n, &m, &a, &b, &n_b, &err));
            for (int32_t i = 1; i <= n.extent[0]; i++)
                for (int32_t j = 1; j <= n.extent[1]; j++) {
                    const bool legal = n.extent[0] % i == 0 && n.extent[1] % j == 0 && i <= 64 &&
                                       j <= 64 &&
                                       i * vectors(8, j) + vectors(8, j) <= m.registers &&
                                       dense_bytes(i, j, 1) <= m.l1_bytes;
                    n_legal += legal;
                    assert_int_equal(listed(b, n_b, i, j), legal);
                }
            assert_int_equal(n_b, n_legal);
            assert_true(n_legal > 1);
            cd_arena_free(&a);
        }
}

static void test_bytes(void **state) {
    const cd_template_nest n = made_nest(*state, T_MM);
    cd_template_block b = {.s1 = {1, 1}, .s2 = {2, 5}, .s3 = {4, 8}, .r1 = {1, 1, 6}};
    assert_int_equal(cd_template_l1_bytes(&n, &made_machine, &b), dense_bytes(4, 8, 6));
    assert_int_equal(cd_template_l2_bytes(&n, &made_machine, &b), dense_bytes(8, 40, 6));
    /* A window of 3 x 3 over a tile of 2 x 7: (2 + 2) x (7 + 2) places of the input, their 8
     * channels in a line each. */
    const cd_template_nest c = made_nest(*state, T_CONV);
    b = (cd_template_block){
        .s1 = {1, 1, 1}, .s2 = {1, 1, 1}, .s3 = {2, 7, 16}, .r1 = {1, 1, 1, 3, 3, 8}};
    assert_int_equal(cd_template_l1_bytes(&c, &made_machine, &b), 4 * 9 * 64 + 3 * 3 * 8 * 16 * 4);
}

/* Rows that are 4096 bytes apart meet in the same sets of L1. */
static void test_rows_that_meet(void **state) {
    (void)state;
    cd_template_nest n = {.n_space = 2, .n_axis = 3, .extent = {64, 64, 1024}};
    n.in[0] =
        (cd_template_operand){.rank = 2, .extent = {64, 1024}, .factor = {{1, 0, 0}, {0, 0, 1}}};
    n.in[1] = (cd_template_operand){
        .rank = 2, .extent = {1024, 64}, .factor = {{0, 0, 1}, {0, 1, 0}}, .packed = true};
    cd_template_block b = {.s1 = {1, 1}, .s2 = {1, 1}, .s3 = {2, 16}, .r1 = {1, 1, 16}};
    /* 8192 bytes: two ways of a page */
    assert_int_equal(cd_template_l1_bytes(&n, &made_machine, &b), 2 * 64 + 16 * 16 * 4);
    b.s3[0] = 4;
    assert_int_equal(cd_template_l1_bytes(&n, &made_machine, &b), 4 * 4096 + 16 * 16 * 4);
}

static bool equal(const cd_template_block *x, const cd_template_block *y) {
    return !memcmp(x, y, sizeof *x);
}

/* All are legal, different, and the same again; more of them begin with the fewer. */
static void test_best(void **state) {
    for (size_t t = 0; t < T_FITS; t++) {
        const cd_template_nest n = made_nest(*state, t);
        cd_arena a = {0};
        cdmpp_err err = {0};
        cd_template_block *b, *again;
        uint32_t n_b, n_again;
        assert_ok(cd_template_best(&n, &made_machine, 10, &a, &b, &n_b, &err));
        assert_ok(cd_template_best(&n, &made_machine, 20, &a, &again, &n_again, &err));
        assert_int_equal(n_b, 10);
        for (uint32_t k = 0; k < n_b; k++) {
            assert_true(cd_template_legal(&n, &made_machine, &b[k]));
            assert_true(equal(&b[k], &again[k]));
            assert_close(b[k].cost, cd_template_cost(&n, &made_machine, &b[k]), 1e-12, 0);
            for (uint32_t j = 0; j < k; j++) assert_false(equal(&b[k], &b[j]));
        }
        cd_arena_free(&a);
    }
}

static void test_legal(void **state) {
    const cd_template_nest n = made_nest(*state, T_MM);
    const cd_template_block good = {.s1 = {1, 1}, .s2 = {2, 1}, .s3 = {4, 8}, .r1 = {1, 1, 6}};
    cd_template_block b = good;
    assert_true(cd_template_legal(&n, &made_machine, &b));
    b.s3[0] = 5; /* does not divide 24 */
    assert_false(cd_template_legal(&n, &made_machine, &b));
    b = good;
    b.s1[0] = 6; /* 6 * 2 * 4 > 24 */
    assert_false(cd_template_legal(&n, &made_machine, &b));
    b = good;
    b.s3[1] = 40; /* 4 * 5 + 5 registers */
    assert_false(cd_template_legal(&n, &made_machine, &b));
    cd_template_machine m = made_machine;
    m.l2_bytes = dense_bytes(8, 8, 6) - 1;
    assert_false(cd_template_legal(&n, &m, &good));
    m = made_machine;
    m.l1_bytes = dense_bytes(4, 8, 6) - 1;
    assert_false(cd_template_legal(&n, &m, &good));
}

/* S0 has a tile for each thread, as far as there are tiles. */
static void test_threads(void **state) {
    const cd_template_nest n = made_nest(*state, T_CONV);
    cd_template_machine m = made_machine;
    cd_arena a = {0};
    cdmpp_err err = {0};
    cd_template_block *b;
    uint32_t n_b;
    m.threads = 7;
    assert_ok(cd_template_best(&n, &m, 10, &a, &b, &n_b, &err));
    assert_int_equal(n_b, 10);
    for (uint32_t k = 0; k < n_b; k++) {
        int64_t tiles = 1;
        for (uint32_t x = 0; x < n.n_space; x++)
            tiles *= n.extent[x] / (b[k].s1[x] * b[k].s2[x] * b[k].s3[x]);
        assert_true(tiles >= 7);
    }
    cd_arena_free(&a);
}

/* What the cost is for: sums that wait for each other, and tiles that do not fit, cost more. */
static void test_cost(void **state) {
    const cd_template_nest n = made_nest(*state, T_MM);
    const cd_template_block wide = {
        .s1 = {1, 1}, .s2 = {1, 1}, .s3 = {4, 8}, .r1 = {1, 1, 12}, .unroll = 16};
    cd_template_block one = wide;
    one.s3[0] = 1;
    assert_true(cd_template_cost(&n, &made_machine, &one) >
                1.2 * cd_template_cost(&n, &made_machine, &wide));
    cd_template_machine slow = made_machine;
    slow.l1_bytes = 256;
    assert_true(cd_template_cost(&n, &slow, &wide) > cd_template_cost(&n, &made_machine, &wide));
    assert_true(cd_template_kernel_cost(&n, &made_machine, (int32_t[]){4, 8}) >= 4);
    /* 6 * 5 tiles: even for three threads, eight rounds for four */
    cd_template_machine three = made_machine;
    three.threads = 3;
    assert_close(cd_template_cost(&n, &three, &wide), cd_template_cost(&n, &made_machine, &wide),
                 1e-12, 0);
    three.threads = 4;
    assert_close(cd_template_cost(&n, &three, &wide),
                 32.0 / 30 * cd_template_cost(&n, &made_machine, &wide), 1e-12, 0);
}

static void test_memory(void **state) {
    const cd_template_nest n = made_nest(*state, T_PRIME);
    FAULT_SWEEP(f, 3) {
        cd_arena a = {0};
        cd_template_block *b;
        uint32_t n_b;
        f.st = cd_template_best(&n, &made_machine, 4, &a, &b, &n_b, &f.err);
        cd_arena_free(&a);
    }
}

TESTS(up, down, test_vectors, test_register_blocks_are_all, test_bytes, test_rows_that_meet,
      test_best, test_legal, test_threads, test_cost, test_memory)
