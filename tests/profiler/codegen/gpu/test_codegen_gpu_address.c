/* Places in memory as sums: what is said of steps and divisors, and the text, against the
 * expressions evaluated. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "profiler/codegen/gpu/codegen_gpu_internal.h"

enum { N_VAR = 3, WIDTH = 4 };
static cd_expr_pool pool;
static const cd_expr *v[N_VAR];

static int set_up(void **state) {
    (void)state;
    if (cd_expr_pool_init(&pool, NULL, NULL)) return 1;
    for (int k = 0; k < N_VAR; k++) v[k] = cd_expr_fresh_var(&pool, CD_I32);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    cd_expr_pool_free(&pool);
    return 0;
}

static const cd_expr *lit(int64_t k) { return cd_expr_new_int(&pool, CD_I32, k); }
static const cd_expr *bin(cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    return cd_expr_new_bin(&pool, op, a, b);
}

static int64_t eval(const cd_expr *e, const int64_t *x) {
    if (e->op == CD_INT) return e->u.i;
    for (int k = 0; k < N_VAR; k++)
        if (e == v[k]) return x[k];
    const int64_t a = eval(e->a[0], x), b = eval(e->a[1], x);
    switch (e->op) {
    case CD_ADD: return a + b;
    case CD_SUB: return a - b;
    case CD_MUL: return a * b;
    case CD_FDIV: return cd_expr_floordiv(a, b);
    case CD_FMOD: return cd_expr_floormod(a, b);
    default: return a < b ? a : b;
    }
}

static int64_t eval_sum(const cd_gpu_sum *s, const int64_t *x) {
    int64_t all = s->constant;
    for (uint32_t k = 0; k < s->n; k++) all += s->term[k].by * eval(s->term[k].e, x);
    return all;
}

static cd_gpu_sum one(const cd_expr *e, int64_t by) {
    return (cd_gpu_sum){.n = 1, .term = {{e, by}}};
}

static void step_is(const cd_expr *e, int64_t by, int64_t want) {
    const cd_gpu_sum s = one(e, by);
    int64_t got = -77;
    assert_true(cd_gpu_sum_step(&s, v[0], WIDTH, &got));
    assert_int_equal(got, want);
}

static void no_step(const cd_expr *e) {
    const cd_gpu_sum s = one(e, 1);
    int64_t got;
    assert_false(cd_gpu_sum_step(&s, v[0], WIDTH, &got));
}

/* Forms that schedules make. A sign that is wrong would turn a vector round. */
static void test_steps_of_known_forms(void **state) {
    (void)state;
    const cd_expr *x = v[0], *y = v[1], *eight = bin(CD_MUL, y, lit(8));
    step_is(x, 1, 1);
    step_is(x, -3, -3);
    step_is(y, 5, 0);
    step_is(bin(CD_ADD, y, x), 2, 2);
    step_is(bin(CD_SUB, y, x), 1, -1);
    step_is(bin(CD_SUB, x, y), 1, 1);
    step_is(bin(CD_SUB, x, x), 1, 0);
    step_is(bin(CD_MUL, x, lit(6)), 1, 6);
    step_is(bin(CD_MUL, lit(6), x), 1, 6);
    /* y*8 + x, x below 4: within one turn of 8 */
    step_is(bin(CD_FMOD, bin(CD_ADD, eight, x), lit(8)), 1, 1);
    step_is(bin(CD_FDIV, bin(CD_ADD, eight, x), lit(8)), 3, 0);
    step_is(bin(CD_FMOD, bin(CD_ADD, eight, bin(CD_MUL, x, lit(2))), lit(8)), 1, 2);
    no_step(bin(CD_FMOD, bin(CD_ADD, y, x), lit(8))); /* a turn may end anywhere */
    no_step(bin(CD_FDIV, bin(CD_ADD, eight, x), lit(6)));
    no_step(bin(CD_FMOD, bin(CD_ADD, eight, bin(CD_MUL, x, lit(4))), lit(8)));
    no_step(bin(CD_MUL, x, y));
    no_step(bin(CD_MIN, x, y));
    no_step(bin(CD_FMOD, bin(CD_SUB, eight, x), lit(8))); /* downwards */
    const cd_gpu_sum both = {.n = 2, .constant = 100, .term = {{x, 3}, {bin(CD_SUB, y, x), 1}}};
    int64_t by;
    assert_true(cd_gpu_sum_step(&both, x, WIDTH, &by));
    assert_int_equal(by, 2);
}

static const cd_expr *random_expr(int depth) {
    static const cd_expr_op op[] = {CD_ADD, CD_ADD, CD_SUB, CD_MUL, CD_FDIV, CD_FMOD, CD_MIN};
    static const int64_t number[] = {1, 2, 3, 4, 8, 16, -1, -2, 0, 5};
    if (!depth || rand() % 4 == 0) return rand() % 3 ? v[rand() % N_VAR] : lit(number[rand() % 10]);
    const cd_expr_op o = op[rand() % 7];
    const cd_expr *a = random_expr(depth - 1);
    if (o == CD_FDIV || o == CD_FMOD) return bin(o, a, lit(number[rand() % 6]));
    return o == CD_MUL ? bin(o, a, lit(number[rand() % 10])) : bin(o, a, random_expr(depth - 1));
}

/* Where a step is promised, every step of the loop has it; a divisor divides, whatever the other
 * variables are. */
static void test_promises_hold(void **state) {
    unsigned promised = 0, moved = 0, divided = 0;
    (void)state;
    srand(3);
    for (int round = 0; round < 20000; round++) {
        cd_gpu_sum s = {.n = 1 + (uint32_t)(rand() % 3),
                        .constant = rand() % 3 ? rand() % 33 - 16 : 0};
        for (uint32_t k = 0; k < s.n; k++)
            s.term[k].e = random_expr(3), s.term[k].by = rand() % 17 - 8;
        int64_t by = 0;
        const bool known = cd_gpu_sum_step(&s, v[0], WIDTH, &by);
        const int64_t divides = cd_gpu_sum_divisor(&s, v[0]);
        promised += known;
        moved += known && by;
        divided += divides > 1;
        for (int t = 0; t < 12; t++) {
            int64_t x[N_VAR] = {0, rand() % 40, rand() % 40};
            const int64_t first = eval_sum(&s, x);
            if (divides ? first % divides != 0 : first != 0)
                fail_msg("%lld is no multiple of %lld", (long long)first, (long long)divides);
            for (x[0] = 1; x[0] < WIDTH && known; x[0]++)
                assert_int_equal(eval_sum(&s, x), first + x[0] * by);
        }
    }
    assert_true(promised > 3000 && moved > 1000 && divided > 1000); /* promises are made */
}

static void test_divisors_of_known_forms(void **state) {
    static const struct {
        int64_t constant, by, want;
    } row[] = {{0, 4, 4}, {6, 4, 2}, {8, -4, 4}, {1, 4, 1}, {0, 0, 0}, {12, 0, 12}};
    (void)state;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        cd_gpu_sum s = one(v[1], row[k].by);
        s.constant = row[k].constant;
        assert_int_equal(cd_gpu_sum_divisor(&s, v[0]), row[k].want);
    }
    const cd_gpu_sum here = one(v[0], 3),
                     quotient = one(bin(CD_FDIV, bin(CD_MUL, v[1], lit(16)), lit(4)), 1),
                     product = one(bin(CD_MUL, bin(CD_MUL, v[1], lit(6)), lit(5)), 1),
                     rest = one(bin(CD_FMOD, bin(CD_MUL, v[1], lit(6)), lit(4)), 1);
    assert_int_equal(cd_gpu_sum_divisor(&here, v[0]), 0); /* it is 0 there */
    assert_int_equal(cd_gpu_sum_divisor(&quotient, v[0]), 4);
    assert_int_equal(cd_gpu_sum_divisor(&product, v[0]), 30);
    assert_int_equal(cd_gpu_sum_divisor(&rest, v[0]), 2);
}

/* ---- the place of an element ---- */

/* A tensor of 2 dimensions whose memory begins at (y, 3), rows 10 apart. */
static void test_place_of_an_element(void **state) {
    (void)state;
    const int64_t stride[] = {10, 1};
    const cd_expr *min[] = {v[1], lit(3)};
    cd_codegen_slot slot = {.n_dim = 2, .stride = stride, .elements = 100};
    cd_gpu g = {0};
    cdmpp_err err = {0};
    g.plan.slot = &slot;
    srand(4);
    for (int round = 0; round < 3000; round++) {
        const bool begins = rand() & 1;
        slot.min = begins ? min : NULL;
        const cd_expr *q = random_expr(2);
        const cd_expr *x[2] = {
            random_expr(2),
            bin(CD_ADD, bin(CD_MUL, bin(CD_FDIV, q, lit(4)), lit(4)), bin(CD_FMOD, q, lit(4)))};
        cd_gpu_sum s;
        assert_ok(cd_gpu_address(&g, 0, x, 2, &s, &err));
        for (int t = 0; t < 4; t++) {
            const int64_t at[N_VAR] = {rand() % 30, rand() % 30, rand() % 30};
            const int64_t want =
                (eval(x[0], at) - (begins ? at[1] : 0)) * 10 + eval(x[1], at) - (begins ? 3 : 0);
            assert_int_equal(eval_sum(&s, at), want);
        }
        for (uint32_t k = 0; k < s.n; k++) { /* joined, and nothing is left that is 0 */
            assert_true(s.term[k].by != 0);
            for (uint32_t j = 0; j < k; j++) assert_ptr_not_equal(s.term[j].e, s.term[k].e);
        }
    }
    const cd_expr *same[] = {v[1], bin(CD_ADD, lit(3), v[0])}; /* its own beginning cancels */
    cd_gpu_sum s;
    slot.min = min;
    assert_ok(cd_gpu_address(&g, 0, same, 2, &s, &err));
    assert_true(s.n == 1 && s.term[0].e == v[0] && s.term[0].by == 1 && s.constant == 0 && !s.wide);
    slot.elements = (int64_t)INT32_MAX + 1;
    assert_ok(cd_gpu_address(&g, 0, same, 2, &s, &err));
    assert_true(s.wide);
}

TESTS(set_up, tear_down, test_steps_of_known_forms, test_promises_hold,
      test_divisors_of_known_forms, test_place_of_an_element)
