/* Intervals of expressions: every value lies between the ends, no end is further away than it must
 * be, and the forms are TVM's. */
#include <stdio.h>

#include "exprtext.h"
#include "made_simplifier.h"

static cd_analyzer *ana;

static int setup(void **state) {
    made_simplifier(state);
    ana = cd_simplify_analyzer_new(simp);
    return 0;
}

static const cd_expr *var(uint32_t k) { return cd_expr_new_var(&pool, CD_I32, k); }
static const cd_expr *text(const char *s) { return s ? ex_parse(&pool, s) : CD_INTSET_INF; }
static cd_intset set(const char *lo, const char *hi) { return (cd_intset){text(lo), text(hi)}; }

/* ---- known answers ---- */

static void print_end(cd_buf *b, const cd_expr *e) {
    if (e == CD_INTSET_INF) cd_buf_puts(b, "inf");
    else ex_print(b, e);
}

static void expect(cd_intset_env *env, const char *e, const char *want) {
    cd_buf b = {0};
    const cd_intset s = cd_intset_eval(env, text(e));
    print_end(&b, s.lo);
    cd_buf_puts(&b, " .. ");
    print_end(&b, s.hi);
    assert_string_equal(b.p, want);
    cd_buf_free(&b);
}

/* v0 0..15, v1 -3..4, v2 is 7, v3 v9..v9+3, v4 0.., v6 v0..v0+1, v7 ..9; v5 and v9 are not in the
 * domain. */
static void check_known(cd_intset_env *env) {
    cd_simplify_bind(ana, var(8), cd_expr_int(&pool, 0), cd_expr_int(&pool, 6));
    expect(env, "v5", "v5 .. v5");
    expect(env, "(+ v5 1)", "(v5 + 1) .. (v5 + 1)");
    expect(env, "(+ v2 1)", "8 .. 8");
    expect(env, "(- v0 v1)", "-4 .. 18");
    expect(env, "(+ v3 v0)", "v9 .. ((v9 + 3) + 15)");
    expect(env, "(- v0 v4)", "inf .. 15");
    expect(env, "(+ v7 1)", "inf .. 10");
    expect(env, "(* v0 v1)", "inf .. inf");
    expect(env, "(* v1 0)", "0 .. 0");
    expect(env, "(* 1 v1)", "-3 .. 4");
    expect(env, "(* v1 2)", "-6 .. 8");
    expect(env, "(* -2 v1)", "-8 .. 6");
    expect(env, "(* v4 -2)", "inf .. 0");
    expect(env, "(* v1 v8)", "(-3*v8) .. (4*v8)"); /* 0 .. 5: not below 0 */
    /* of any sign */
    expect(env, "(* v1 v5)",
           "select((v5 >= 0), (-3*v5), (4*v5)) .. select((v5 >= 0), (4*v5), (-3*v5))");
    expect(env, "(* v4 v5)", "inf .. inf");
    expect(env, "(// v0 4)", "0 .. 3");
    expect(env, "(// v1 1)", "-3 .. 4");
    expect(env, "(// v0 -4)", "-4 .. 0");
    expect(env, "(/ v1 2)", "-1 .. 2");
    expect(env, "(// 8 v0)", "inf .. inf");
    expect(env, "(%% v0 4)", "0 .. 3");
    expect(env, "(%% v0 32)", "0 .. 15");
    expect(env, "(%% (+ v0 32) 16)", "0 .. 15");
    expect(env, "(%% (+ v0 33) 64)", "33 .. 48");
    expect(env, "(% v0 32)", "0 .. 31"); /* only the floor's remainder looks closer */
    expect(env, "(%% v0 -4)", "-3 .. 3");
    /* of any sign */
    expect(env, "(%% v0 v5)",
           "(0 - (select((v5 >= 0), v5, (0 - v5)) - 1)) .. (select((v5 >= 0), v5, (0 - v5)) - 1)");
    expect(env, "(%% v0 0)", "inf .. inf");
    expect(env, "(%% v4 8)", "0 .. 7");
    expect(env, "(%% 8 v0)", "inf .. inf");
    expect(env, "(min v0 v1)", "-3 .. 4");
    expect(env, "(max v0 v1)", "0 .. 15");
    expect(env, "(min v0 v4)", "0 .. 15"); /* one end is enough where it decides */
    expect(env, "(max v4 v0)", "0 .. inf");
    expect(env, "(max v7 3)", "3 .. 9");
    expect(env, "(min (max (load.i 0 v5) 0) 7)", "0 .. 7");
    expect(env, "(< v0 v1)", "False .. True");
    expect(env, "(< v2 8)", "True .. True");
    expect(env, "(select (< v0 3) v1 20)", "-3 .. 20");
    expect(env, "(select (< v0 3) v4 1)", "0 .. inf");
    expect(env, "(cast.l v1)", "-3 .. 4");
    expect(env, "(cast.l v4)", "0 .. inf");
    expect(env, "(load.i 0 v5)", "inf .. inf");
    expect(env, "v6", "0 .. 16"); /* ends are evaluated too */
}

TEST(test_known_intervals) {
    static const struct {
        uint32_t v;
        const char *lo, *hi;
    } rows[] = {{0, "0", "15"}, {1, "-3", "4"},        {2, "7", "7"}, {3, "v9", "(+ v9 3)"},
                {4, "0", NULL}, {6, "v0", "(+ v0 1)"}, {7, NULL, "9"}};
    enum { N = sizeof rows / sizeof *rows };
    cd_intset_var dom[N];
    cd_intset by_var[8] = {{0}};
    for (int k = 0; k < N; k++) {
        dom[k] = (cd_intset_var){var(rows[k].v), set(rows[k].lo, rows[k].hi)};
        by_var[rows[k].v] = dom[k].set;
    }
    cd_intset_env env = {
        .ana = ana, .fresh = cd_simplify_fresh_analyzer(simp), .pool = &pool, .dom = dom, .n = N};
    check_known(&env);
    cd_intset_env numbered = {
        .ana = ana, .fresh = env.fresh, .pool = &pool, .by_var = by_var, .n_var = 8, .n = N};
    check_known(&numbered);
}

/* Variables that stand for themselves, many of them: each is a point, and found at once. */
TEST(test_points_among_many) {
    cd_intset_var dom[64];
    for (uint32_t k = 0; k < 64; k++) dom[k] = (cd_intset_var){var(k), {var(k), var(k)}};
    cd_intset_env env = {
        .ana = ana, .fresh = cd_simplify_fresh_analyzer(simp), .pool = &pool, .dom = dom, .n = 64};
    const cd_intset s = cd_intset_eval(&env, text("(+ v3 v60)"));
    assert_true(s.lo == s.hi && s.lo == text("(+ v3 v60)"));
}

TEST(test_sets) {
    cd_analyzer *fresh = cd_simplify_fresh_analyzer(simp);
    const cd_expr *min = NULL, *extent = NULL;
    assert_true(cd_intset_is_point(&pool, fresh, set("(+ v0 1)", "(+ 1 v0)")));
    assert_true(cd_intset_is_point(&pool, fresh, set("3", "3l"))); /* of two types */
    assert_false(cd_intset_is_point(&pool, fresh, set("3", "4")));
    assert_false(cd_intset_is_point(&pool, fresh, set("v0", "v1")));
    assert_false(cd_intset_is_point(&pool, fresh, cd_intset_all()));
    cd_intset s = cd_intset_range(&pool, text("3"), text("5"));
    assert_true(s.lo == text("3") && s.hi == text("7"));
    s = cd_intset_range(&pool, text("v0"), text("1"));
    assert_true(s.lo == var(0) && s.hi == var(0));
    s = cd_intset_range(&pool, text("v0"), text("5"));
    assert_true(s.lo == var(0) && cd_simplify_expr(fresh, s.hi) == text("(+ v0 4)"));
    s = cd_intset_range(&pool, text("3l"), text("5l"));
    assert_true(s.hi == text("7l"));

    cd_intset_union u = {0};
    cd_intset_union_add(&pool, &u, set("(+ v0 v0)", "9"));
    assert_ptr_equal(cd_intset_union_get(fresh, &u).lo, text("(+ v0 v0)")); /* as it is */
    cd_intset_union_add(&pool, &u, set("(- (* v0 2) 3)", "4"));
    s = cd_intset_union_get(fresh, &u);
    assert_true(s.lo == cd_simplify_expr(fresh, text("(- (* v0 2) 3)")) && s.hi == text("9"));
    cd_intset_union_add(&pool, &u, set(NULL, "12"));
    s = cd_intset_union_get(fresh, &u);
    assert_true(s.lo == CD_INTSET_INF && s.hi == text("12"));
    cd_intset_union_add(&pool, &u, cd_intset_all());
    assert_ptr_equal(cd_intset_union_get(fresh, &u).hi, CD_INTSET_INF);

    assert_true(cd_intset_cover(&pool, fresh, set("2", "9"), &min, &extent));
    assert_true(min == text("2") && extent == text("8"));
    assert_true(cd_intset_cover(&pool, fresh, set("(* v0 4)", "(+ (* v0 4) 5)"), &min, &extent));
    assert_true(min == text("(* v0 4)") && extent == text("6"));
    assert_true(cd_intset_cover(&pool, fresh, set("(+ v0 v1)", "(+ v0 v1)"), &min, &extent));
    assert_true(min == text("(+ v0 v1)") && extent == text("1"));
    assert_false(cd_intset_cover(&pool, fresh, set("2", NULL), &min, &extent));
    assert_false(cd_intset_cover(&pool, fresh, set(NULL, "2"), &min, &extent));
    static const struct {
        const char *lo, *hi, *min, *extent;
        bool yes;
    } whole[] = {{"2", "9", "2", "8", true},           {"2", "8", "2", "8", false},
                 {"2", "10", "2", "8", false},         {"1", "9", "2", "8", false},
                 {"2", NULL, "2", "8", false},         {"v0", "(+ v0 7)", "v0", "8", true},
                 {"v0", "(+ v0 6)", "v0", "8", false}, {"(+ v0 1)", "(+ v0 8)", "v0", "8", false},
                 {"0", "(- v1 1)", "0", "v1", true},   {"0", "v1", "0", "v1", false},
                 {"3", "(+ v1 2)", "3", "v1", true}};
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++)
        assert_int_equal(cd_intset_matches(&pool, fresh, set(whole[k].lo, whole[k].hi),
                                           text(whole[k].min), text(whole[k].extent)),
                         whole[k].yes);
}

/* ---- against all values ---- */

enum { N_VAR = 3 };

/* Each variable occurs once: then the least interval is what a rule for each operator gives, but
 * for remainders and conditions. */
static const cd_expr *random_expr(int depth, uint32_t *left, bool *exact) {
    static const cd_expr_op ops[] = {CD_ADD, CD_SUB, CD_MIN, CD_MAX};
    if (depth == 0) {
        if (*left && rnd(4)) return var(--*left);
        return cd_expr_int(&pool, (int64_t)rnd(9) - 4);
    }
    const cd_expr *a = random_expr(depth - 1, left, exact),
                  *by = cd_expr_int(&pool, (int64_t)rnd(7) - 3),
                  *div = cd_expr_int(&pool, 1 + (int64_t)rnd(4));
    switch (rnd(7)) {
    case 0: return cd_expr_new_bin(&pool, CD_MUL, a, by);
    case 1: return cd_expr_new_bin(&pool, CD_MUL, by, a);
    case 2: return cd_expr_new_bin(&pool, CD_FDIV, a, div);
    case 3: *exact = false; return cd_expr_new_bin(&pool, CD_FMOD, a, div);
    case 4:
        *exact = false;
        return cd_expr_new_select(&pool, cd_expr_new_bin(&pool, CD_LT, var(0), by), a,
                                  random_expr(depth - 1, left, exact));
    default: return cd_expr_new_bin(&pool, ops[rnd(4)], a, random_expr(depth - 1, left, exact));
    }
}

/* Also where ranges begin at a variable, v3, of which nothing is known. */
TEST(test_no_value_is_outside) {
    seed = 5;
    for (int round = 0; round < 3000; round++) {
        cd_intset_var dom[N_VAR];
        int64_t lo[N_VAR], v[N_VAR + 1], n[N_VAR];
        bool symbolic[N_VAR], exact = true;
        uint32_t left = N_VAR;
        cd_expr_pool_reset(&pool, NULL);
        cd_simplify_reset(simp);
        cd_analyzer *fresh = cd_simplify_fresh_analyzer(simp);
        for (uint32_t k = 0; k < N_VAR; k++) {
            lo[k] = (int64_t)rnd(9) - 4;
            n[k] = 1 + (int64_t)rnd(5);
            symbolic[k] = rnd(4) == 0;
            const cd_expr *min = cd_expr_int(&pool, lo[k]);
            if (symbolic[k]) exact = false, min = cd_expr_bin(&pool, CD_ADD, var(N_VAR), min);
            dom[k] = (cd_intset_var){var(k), cd_intset_range(&pool, min, cd_expr_int(&pool, n[k]))};
        }
        const cd_expr *e = random_expr(3, &left, &exact);
        cd_intset_env env = {.ana = cd_simplify_analyzer_new(simp),
                             .fresh = fresh,
                             .pool = &pool,
                             .dom = dom,
                             .n = N_VAR};
        const cd_intset s = cd_intset_eval(&env, e);
        for (v[N_VAR] = -2; v[N_VAR] <= 5; v[N_VAR] += 7) {
            ex_env at = {.var = v};
            double least = (double)INFINITY, most = -least;
            for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
                const int64_t step[] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
                for (uint32_t k = 0; k < N_VAR; k++)
                    v[k] = lo[k] + step[k] + (symbolic[k] ? v[N_VAR] : 0);
                const double x = ex_value(&at, e);
                least = fmin(least, x);
                most = fmax(most, x);
            }
            const double from = s.lo == CD_INTSET_INF ? -(double)INFINITY : ex_value(&at, s.lo);
            const double to = s.hi == CD_INTSET_INF ? (double)INFINITY : ex_value(&at, s.hi);
            if (exact ? from != least || to != most : from > least || to < most) {
                cd_buf b = {0};
                ex_print(&b, e);
                fail_msg("%s: %g .. %g, expected %g .. %g", b.p, from, to, least, most);
            }
        }
    }
}

TESTS(setup, made_simplifier_gone, test_known_intervals, test_points_among_many, test_sets,
      test_no_value_is_outside)
