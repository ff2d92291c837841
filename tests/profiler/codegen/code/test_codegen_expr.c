/* Expressions as text, and the intervals that decide their form. */
#include <stdio.h>
#include <stdlib.h>

#include "profiler/codegen/code/code.h"
#include "check.h"

static cd_expr_pool pool;
static cd_bound bounds[3] = {{0, 7}, {-4, 9}, {1, 0}};
static const cd_codegen_ranges ranges = {3, bounds};

static int setup(void **s) {
    (void)s;
    return cd_expr_pool_init(&pool, NULL, NULL) != CDMPP_OK;
}
static int teardown(void **s) {
    (void)s;
    cd_expr_pool_free(&pool);
    return 0;
}

static const cd_expr *var(uint32_t k) { return cd_expr_new_var(&pool, CD_I32, k); }
static const cd_expr *lit(int64_t v) { return cd_expr_new_int(&pool, CD_I32, v); }
static const cd_expr *bin(cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    return cd_expr_new_bin(&pool, op, a, b);
}

static cdmpp_status put_var(cd_codegen_expr *w, const cd_expr *v, cdmpp_err *err) {
    (void)err;
    cd_buf_putf(w->out, "v%d", (int)v->u.i);
    return CDMPP_OK;
}
static cdmpp_status put_load(cd_codegen_expr *w, const cd_expr *l, cdmpp_err *err) {
    cd_buf_putf(w->out, "T%d[", (int)l->u.i);
    CD_TRY(cd_codegen_expr_write(w, l->a[0], err));
    cd_buf_puts(w->out, "]");
    return CDMPP_OK;
}

static void expect(cd_dialect d, const cd_expr *e, const char *text) {
    cd_buf b = {0};
    cd_codegen_expr w = {
        .dialect = d, .out = &b, .ranges = &ranges, .var = put_var, .load = put_load};
    assert_int_equal(cd_codegen_expr_write(&w, e, NULL), CDMPP_OK);
    assert_string_equal(b.p, text);
    cd_buf_free(&b);
}

TEST(test_integers) {
    expect(CD_DIALECT_C, bin(CD_ADD, bin(CD_MUL, var(0), lit(4)), lit(-1)), "((v0 * 4) + (-1))");
    expect(CD_DIALECT_C, bin(CD_FDIV, var(0), lit(6)), "(v0 / 6)");
    expect(CD_DIALECT_C, bin(CD_FMOD, var(1), lit(8)), "(v1 & 7)");
    expect(CD_DIALECT_C, bin(CD_FDIV, var(1), lit(8)), "(v1 >> 3)");
    expect(CD_DIALECT_C, bin(CD_FMOD, var(1), lit(6)), "cd_floormod_i32(v1, 6)");
    expect(CD_DIALECT_C, bin(CD_FDIV, var(2), lit(6)), "cd_floordiv_i32(v2, 6)");
    expect(CD_DIALECT_CUDA, cd_expr_new_int(&pool, CD_I64, INT64_MIN),
           "(-9223372036854775807LL - 1)");
    expect(CD_DIALECT_OPENCL, cd_expr_new_int(&pool, CD_I64, 5), "5L");
}

TEST(test_calls) {
    const cd_expr *i = var(0), *x = cd_expr_new_load(&pool, CD_F32, 3, &i, 1);
    const cd_expr *c = bin(CD_LT, i, lit(3)), *zero = cd_expr_new_float(&pool, CD_F32, 0);
    expect(CD_DIALECT_C,
           cd_expr_new_call(&pool, CD_F32, "if_then_else", (const cd_expr *[]){c, x, zero}, 3),
           "((v0 < 3) ? T3[v0] : 0.0f)");
    expect(CD_DIALECT_C, cd_expr_new_call(&pool, CD_F32, "exp", &x, 1), "expf(T3[v0])");
    expect(CD_DIALECT_OPENCL, cd_expr_new_call(&pool, CD_F32, "exp", &x, 1), "exp(T3[v0])");
    expect(CD_DIALECT_C,
           cd_expr_new_call(&pool, CD_F32, "call_pure_extern",
                            (const cd_expr *[]){cd_expr_new_str(&pool, "erff"), x}, 2),
           "erff(T3[v0])");
    expect(CD_DIALECT_C, bin(CD_MAX, x, cd_expr_new_float(&pool, CD_F32, -3.4028234663852886e38)),
           "cd_max_f32(T3[v0], (-3.40282347e+38f))");
    expect(CD_DIALECT_C, cd_expr_new_cast(&pool, CD_DTYPE(CD_T_BFLOAT, 16), x),
           "cd_bf16_to_f32(cd_f32_to_bf16((float)T3[v0]))");
    expect(CD_DIALECT_C,
           cd_expr_new_call(&pool, CD_F32, "call_pure_extern",
                            (const cd_expr *[]){cd_expr_new_str(&pool, "erf"), x}, 2),
           "erff(T3[v0])");
}

TEST(test_refused) {
    const cd_expr *x = cd_expr_new_float(&pool, CD_F32, 1);
    const cd_expr *bad[] = {
        cd_expr_new_call(&pool, CD_F32, "call_pure_extern",
                         (const cd_expr *[]){cd_expr_new_str(&pool, "system"), x}, 2),
        cd_expr_new_call(&pool, CD_F32, "no_such_intrinsic", &x, 1),
        cd_expr_new_float(&pool, CD_DTYPE(CD_T_FLOAT, 128), 1), cd_expr_new_str(&pool, "text")};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cd_buf b = {0};
        cdmpp_err err = {0};
        cd_codegen_expr w = {.dialect = CD_DIALECT_C, .out = &b, .var = put_var, .load = put_load};
        assert_int_equal(cd_codegen_expr_write(&w, bad[k], &err), CDMPP_EUNSUPPORTED);
        cd_buf_free(&b);
    }
}

static int64_t eval(const cd_expr *e, const int64_t *v) {
    if (e->op == CD_INT) return e->u.i;
    if (e->op == CD_VAR) return v[e->u.i];
    const int64_t a = eval(e->a[0], v), b = eval(e->a[1], v);
    switch (e->op) {
    case CD_ADD: return a + b;
    case CD_SUB: return a - b;
    case CD_MUL: return a * b;
    case CD_DIV: return a / b;
    case CD_MOD: return a % b;
    case CD_FDIV: return cd_expr_floordiv(a, b);
    case CD_FMOD: return cd_expr_floormod(a, b);
    case CD_MIN: return a < b ? a : b;
    case CD_MAX: return a > b ? a : b;
    case CD_LT: return a < b;
    case CD_LE: return a <= b;
    case CD_GT: return a > b;
    case CD_GE: return a >= b;
    case CD_EQ: return a == b;
    default: return a != b;
    }
}

static const cd_expr *random_expr(unsigned depth) {
    if (!depth) return rand() % 2 ? var((uint32_t)rand() % 2) : lit(rand() % 9 - 3);
    const cd_expr_op op = (cd_expr_op)(CD_ADD + rand() % 9);
    const bool div = op == CD_DIV || op == CD_MOD || op == CD_FDIV || op == CD_FMOD;
    if (!div) return bin(op, random_expr(depth - 1), random_expr(depth - 1));
    return bin(op, random_expr(depth - 1),
               rand() % 3   ? lit(1 + rand() % 7)
               : rand() % 2 ? lit(-1 - rand() % 7)
                            : bin(CD_MAX, var(1), lit(1)));
}

/* Law: every value lies in the range, every decision holds. */
TEST(test_ranges_hold) {
    srand(7);
    for (int k = 0; k < 3000; k++) {
        const cd_expr *e = random_expr(3),
                      *c = bin((cd_expr_op)(CD_EQ + rand() % 6), e, random_expr(2));
        const cd_bound b = cd_codegen_range_of(&ranges, e);
        const int decided = cd_codegen_range_decide(&ranges, c);
        for (int64_t i = 0; i <= 7; i++)
            for (int64_t j = -4; j <= 9; j++) {
                const int64_t v[2] = {i, j}, x = eval(e, v);
                assert_true(b.lo <= x && x <= b.hi);
                if (decided >= 0) assert_int_equal(decided, eval(c, v));
            }
    }
}

/* Where each variable occurs once, the bounds are values. */
TEST(test_ranges_are_tight) {
    static const cd_expr_op with_number[] = {CD_ADD, CD_SUB,  CD_MUL, CD_MIN,
                                             CD_MAX, CD_FDIV, CD_DIV};
    static const cd_expr_op of_two[] = {CD_ADD, CD_SUB, CD_MUL, CD_MIN, CD_MAX};
    srand(8);
    for (int k = 0; k < 2000; k++) {
        const cd_expr *side[2];
        for (uint32_t s = 0; s < 2; s++) {
            const cd_expr_op op = with_number[rand() % 7];
            side[s] = bin(op, var(s),
                          lit(op == CD_FDIV || op == CD_DIV ? 1 + rand() % 7 : rand() % 9 - 3));
        }
        const cd_expr *e = bin(of_two[rand() % 5], side[0], side[1]);
        const cd_bound b = cd_codegen_range_of(&ranges, e);
        int64_t least = INT64_MAX, most = INT64_MIN;
        for (int64_t i = 0; i <= 7; i++)
            for (int64_t j = -4; j <= 9; j++) {
                const int64_t x = eval(e, (const int64_t[]){i, j});
                least = x < least ? x : least, most = x > most ? x : most;
            }
        assert_true(b.lo == least && b.hi == most);
    }
}

/* A remainder is exact within one period; else it is of all that a remainder can be. */
TEST(test_ranges_of_remainders) {
    const struct {
        cd_expr_op op;
        uint32_t var;
        int64_t by, lo, hi;
    } t[] = {{CD_FMOD, 0, 8, 0, 7}, {CD_FMOD, 0, 7, 0, 6}, {CD_MOD, 0, 8, 0, 7},
             {CD_MOD, 0, 5, 0, 4},  {CD_FMOD, 1, 5, 0, 4}, {CD_MOD, 1, 5, -4, 4}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const cd_bound b = cd_codegen_range_of(&ranges, bin(t[k].op, var(t[k].var), lit(t[k].by)));
        assert_true(b.lo == t[k].lo && b.hi == t[k].hi);
    }
    const cd_expr *far = bin(CD_ADD, var(0), lit(-15)); /* -15 .. -8 */
    const cd_bound in = cd_codegen_range_of(&ranges, bin(CD_FMOD, far, lit(16))),
                   under = cd_codegen_range_of(&ranges, bin(CD_MOD, far, lit(6)));
    assert_true(in.lo == 1 && in.hi == 8 && under.lo == -5 && under.hi == 0);
    const cd_bound unknown = cd_codegen_range_of(&ranges, bin(CD_FDIV, var(2), lit(4))),
                   rest = cd_codegen_range_of(NULL, bin(CD_FMOD, var(0), lit(4)));
    assert_true(unknown.lo == CD_NEG_INF && unknown.hi == CD_INF && rest.lo == 0 && rest.hi == 3);
}

TESTS(setup, teardown, test_integers, test_calls, test_refused, test_ranges_hold,
      test_ranges_are_tight, test_ranges_of_remainders)
