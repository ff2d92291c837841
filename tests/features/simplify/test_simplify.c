/* Expressions in the form that TVM leaves, bounds, and proofs under constraints. */
#include <stdio.h>

#include "exprtext.h"
#include "fault.h"
#include "made_simplifier.h"

static void restart(void) {
    cd_expr_pool_reset(&pool, NULL);
    cd_simplify_reset(simp);
}

static void bind(cd_analyzer *a, uint32_t number, int64_t lo, int64_t extent) {
    cd_simplify_bind(a, cd_expr_new_var(&pool, CD_I32, number), cd_expr_int(&pool, lo),
                     cd_expr_int(&pool, extent));
}

/* ---- the corpus ---- */

static cd_analyzer *read_ranges(const char **s) {
    cd_analyzer *a = cd_simplify_analyzer_new(simp);
    for (uint32_t i = 0; **s != ';'; i++) {
        char *end;
        const long lo = strtol(*s, &end, 10), n = strtol(end + 1, &end, 10);
        bind(a, i, lo, n);
        *s = end;
        while (**s == ' ') (*s)++;
    }
    (*s)++;
    return a;
}

static void complain(const char *line, const cd_expr *got) {
    cd_buf b = {0};
    ex_print(&b, got);
    print_error("%s   got %s\n", line, b.p);
    cd_buf_free(&b);
}

static void check_corpus(const char *path) {
    char line[4096];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int n = 0, wrong = 0;
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#') continue;
        restart();
        const char *s = line;
        cd_analyzer *a = read_ranges(&s);
        const cd_expr *e = ex_read(&pool, &s);
        assert_int_equal(*s, ';');
        s++;
        const cd_expr *want = ex_read(&pool, &s), *got = cd_simplify_expr(a, e);
        if (!want) print_error("cannot read %s\n", line);
        assert_non_null(want);
        assert_non_null(got);
        n++;
        if (got != want && ++wrong <= 20) complain(line, got);
    }
    fclose(f);
    if (getenv("SIMPLIFY_COUNT")) print_message("%s: %d of %d differ\n", path, wrong, n);
    assert_true(n > 100);
    assert_int_equal(wrong, 0);
}

TEST(test_corpus) {
    const char *path = getenv("SIMPLIFY_CORPUS");
    check_corpus(path ? path : "tests/golden/simplify.txt");
}

/* ---- known answers ---- */

static const cd_expr *simplified(cd_analyzer *a, const char *text) {
    return cd_simplify_expr(a, ex_parse(&pool, text));
}

static void expect(cd_analyzer *a, const char *text, const char *want) {
    const cd_expr *r = simplified(a, text);
    cd_buf b = {0};
    assert_non_null(r);
    ex_print(&b, r);
    assert_string_equal(b.p, want);
    cd_buf_free(&b);
}

TEST(test_known) {
    restart();
    cd_analyzer *a = cd_simplify_analyzer_new(simp);
    bind(a, 0, 0, 16);
    bind(a, 1, 0, 8);
    bind(a, 2, 3, 1);
    expect(a, "(+ v1 (+ (* v0 8) (* v0 4)))", "((v0*12) + v1)");
    expect(a, "(// (+ (* v0 8) v1) 8)", "v0");
    expect(a, "(%% (+ (* v0 8) v1) 8)", "v1");
    expect(a, "(+ v2 v0)", "(v0 + 3)");
    expect(a, "(>= v0 3)", "(3 <= v0)");
    expect(a, "(< v0 16)", "True");
    expect(a, "(call.f if_then_else (< v0 5) (load.f 0 (min v0 4)) 1.5f)",
           "if_then_else((v0 < 5), T0[v0], 1.5f)");
    expect(a, "(/ (load.f 0 v0) 4.0f)", "(T0[v0]*0.25f)");
    expect(a, "(/ (load.f 0 v0) (cast.f 49))", "(T0[v0]*0.0204082f)");
    expect(a, "(call.b likely (< v0 16))", "True");
    expect(a, "(- (load.f 0 v0) (load.f 0 v0))", "0f");
    expect(a, "(call.f ceil 2.25f)", "3f");
    expect(a, "(call.i ceil 7)", "7");
    expect(a, "(call.f ceil (call.f log2 9.0f))", "4f");
    expect(a, "(call.i shift_right 13 2)", "3");
    expect(a, "(call.i shift_left 3 2)", "12");
    /* A variable without a range may be negative. */
    expect(a, "(// (+ (* v7 8) 3) 8)", "v7");
    expect(a, "(/ (+ (* v7 8) 3) 8)", "(((v7*8) + 3)/8)");
}

TEST(test_wide_and_mixed_types) {
    restart();
    cd_analyzer *a = cd_simplify_analyzer_new(simp);
    bind(a, 0, 0, 16);
    const cd_expr *w = cd_expr_new_var(&pool, CD_I64, 1);
    cd_simplify_bind(a, w, cd_expr_new_int(&pool, CD_I64, 0), cd_expr_new_int(&pool, CD_I64, 8));
    const cd_expr *v = cd_expr_new_var(&pool, CD_I32, 0),
                  *mixed = cd_expr_bin(&pool, CD_ADD,
                                       cd_expr_bin(&pool, CD_MUL, v, cd_expr_int(&pool, 8)), w);
    assert_int_equal(mixed->type, CD_I64);
    const cd_expr *q =
        cd_simplify_expr(a, cd_expr_bin(&pool, CD_FDIV, mixed, cd_expr_new_int(&pool, CD_I64, 8)));
    assert_ptr_equal(q, cd_expr_new_cast(&pool, CD_I64, v));
    /* Narrowing moves inside a sum only when nothing on the way can overflow. */
    const cd_expr *narrow = cd_simplify_expr(a, cd_expr_new_cast(&pool, CD_I32, mixed));
    assert_int_equal(narrow->type, CD_I32);
    assert_int_equal(narrow->op, CD_ADD);
    const cd_expr *big =
        cd_expr_new_bin(&pool, CD_MUL, w, cd_expr_new_int(&pool, CD_I64, 1LL << 40));
    assert_int_equal(
        cd_simplify_expr(a, cd_expr_new_cast(&pool, CD_I32, cd_expr_new_bin(&pool, CD_ADD, big, w)))
            ->op,
        CD_CAST);
    /* A quotient that fits of a variable that does not: the cast stays around it. */
    const cd_expr *far = cd_expr_new_var(&pool, CD_I64, 3);
    cd_simplify_bind(a, far, cd_expr_new_int(&pool, CD_I64, 0),
                     cd_expr_new_int(&pool, CD_I64, 1LL << 40));
    assert_int_equal(
        cd_simplify_expr(
            a, cd_expr_new_cast(
                   &pool, CD_I32,
                   cd_expr_new_bin(&pool, CD_FDIV, far, cd_expr_new_int(&pool, CD_I64, 1LL << 35))))
            ->op,
        CD_CAST);
    assert_int_equal(
        cd_simplify_expr(
            a, cd_expr_new_cast(
                   &pool, CD_I32,
                   cd_expr_new_bin(&pool, CD_FMOD, far, cd_expr_new_int(&pool, CD_I64, 1LL << 20))))
            ->op,
        CD_CAST);
    /* Bounds stop at the infinities. */
    const cd_expr *u = cd_expr_new_var(&pool, CD_I64, 2);
    const cd_bound all = cd_simplify_bound(a, cd_expr_new_bin(&pool, CD_ADD, u, u)),
                   prod = cd_simplify_bound(a, cd_expr_new_bin(&pool, CD_MUL, u, big));
    assert_true(all.lo == CD_NEG_INF && all.hi == CD_INF && prod.lo == CD_NEG_INF &&
                prod.hi == CD_INF);
    const cd_expr *most = cd_expr_new_int(&pool, CD_I64, INT64_MAX),
                  *least = cd_expr_new_int(&pool, CD_I64, INT64_MIN);
    assert_non_null(cd_simplify_expr(
        a, cd_expr_new_bin(&pool, CD_ADD, cd_expr_new_bin(&pool, CD_MUL, w, least), most)));
    assert_non_null(cd_simplify_expr(
        a, cd_expr_new_bin(
               &pool, CD_LT,
               cd_expr_new_bin(&pool, CD_FDIV, least, cd_expr_new_int(&pool, CD_I64, -1)), u)));
}

TEST(test_bounds_and_proofs) {
    restart();
    cd_analyzer *a = cd_simplify_analyzer_new(simp);
    bind(a, 0, 0, 16);
    bind(a, 1, -3, 8);
    const struct {
        const char *e;
        int64_t lo, hi;
    } want[] = {
        {"(+ v0 v1)", -3, 19},
        {"(- v0 v1)", -4, 18},
        {"(* v0 v1)", -45, 60},
        {"(// v1 4)", -1, 1},
        {"(/ v1 2)", -1, 2},
        {"(%% v1 4)", 0, 3},
        {"(% v1 4)", -3, 3},
        {"(%% v0 32)", 0, 15},
        {"(min v0 v1)", -3, 4},
        {"(max v0 v1)", 0, 15},
        {"(select (< v0 3) v0 v1)", -3, 15},
        {"(< v0 v1)", 0, 1},
        {"(load.i 0 v0)", INT32_MIN, INT32_MAX},
        {"(call.i shift_right v0 1)", 0, 7},
        {"(call.i bitwise_and v0 3)", 0, 3},
        {"(call.i shift_left v0 2)", 0, 60},
        {"(cast.i (call.f ceil (call.f log2 9.0f)))", 4, 4},
        {"(cast.i (call.f ceil (call.f log2 (cast.f (+ v0 3)))))", 2, 5},
        {"(cast.i (call.f ceil 2.5f))", INT32_MIN, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const cd_bound b = cd_simplify_bound(a, ex_parse(&pool, want[i].e));
        if (b.lo != want[i].lo || b.hi != want[i].hi)
            print_error("%s: %lld %lld\n", want[i].e, (long long)b.lo, (long long)b.hi);
        assert_true(b.lo == want[i].lo && b.hi == want[i].hi);
    }
    assert_true(cd_simplify_prove(a, ex_parse(&pool, "(== (+ v0 v1) (+ v1 v0))")));
    assert_false(cd_simplify_prove(a, ex_parse(&pool, "(== v0 v1)")));
    assert_true(cd_simplify_prove_ge(a, ex_parse(&pool, "(- (* v0 2) v0)"), 0));
    assert_false(cd_simplify_prove_ge(a, ex_parse(&pool, "v1"), -2));
    /* The rules of sums cancel what nothing is known of, without the canonical form. */
    static const char *const cancels[] = {
        "(+ (- v0 v9) v9)",       "(+ v9 (- v0 v9))",       "(- (+ v0 v9) v9)", "(- (+ v9 v0) v9)",
        "(+ (- v0 v9) (- v9 0))", "(- (+ v0 v9) (+ v9 0))", "(- v0 (* v9 0))"};
    for (size_t i = 0; i < sizeof cancels / sizeof *cancels; i++)
        assert_true(cd_simplify_prove_ge(a, ex_parse(&pool, cancels[i]), 0));
}

TEST(test_constraints_come_and_go) {
    restart();
    cd_analyzer *a = cd_simplify_analyzer_new(simp);
    bind(a, 0, 0, 16);
    const char *text = "(min v0 4)";
    expect(a, text, "min(v0, 4)");
    const cd_constraint c = cd_constraint_enter(a, ex_parse(&pool, "(< v0 5)"));
    expect(a, text, "v0");
    const cd_constraint d =
        cd_constraint_enter(a, ex_parse(&pool, "(&& (<= 2 v0) (== (load.i 0 v0) v1))"));
    expect(a, "(max v0 2)", "v0");
    cd_constraint_leave(a, d);
    expect(a, "(max v0 2)", "max(v0, 2)");
    bind(a, 3, 0, 4); /* a binding made inside survives */
    cd_constraint_leave(a, c);
    expect(a, text, "min(v0, 4)");
    expect(a, "(< v3 4)", "True");
    /* A condition that is no bound is known by its form; one on loads is not kept. */
    const cd_constraint f = cd_constraint_enter(a, ex_parse(&pool, "(< v0 v3)"));
    expect(a, "(&& (< v0 v3) (< v0 5))", "(v0 < 5)");
    expect(a, "(<= v3 v0)", "False");
    cd_constraint_leave(a, f);
    const cd_constraint g = cd_constraint_enter(a, ex_parse(&pool, "(< v0 (load.i 0 v3))"));
    expect(a, "(< v0 (load.i 0 v3))", "(v0 < T0[v3])");
    cd_constraint_leave(a, g);
    const cd_constraint h = cd_constraint_enter(a, ex_parse(&pool, "(== (%% v0 4) 0)"));
    expect(a, "(%% v0 2)", "0");
    cd_constraint_leave(a, h);
    expect(a, "(%% v0 2)", "floormod(v0, 2)");
    /* Binding again replaces. */
    bind(a, 0, 7, 1);
    expect(a, text, "4");
}

TEST(test_many_variables) {
    restart();
    cd_analyzer *a = cd_simplify_analyzer_new(simp);
    char text[40];
    /* what is known stays when others come */
    for (uint32_t k = 0; k < 200; k++) bind(a, k, 0, k + 1);
    for (uint32_t k = 0; k < 200; k++) {
        snprintf(text, sizeof text, "(<= v%u %u)", k, k);
        expect(a, text, "True");
    }
}

/* ---- laws on random expressions ---- */

enum { N_VAR = 4 };
static int plus_only; /* below // and %: see test_value_is_kept */
static const cd_expr *random_cond(int depth);

static const cd_expr *random_lit(uint32_t n) {
    static const int64_t lits[] = {1, 2, 3, 4, 7, 8, 14, 16, 28, -1, -2, -4, 0, 5};
    const int64_t v = lits[rnd(n)];
    return cd_expr_int(&pool, plus_only && v < 0 ? -v : v);
}

static const cd_expr *random_expr(int depth);
static const cd_expr *random_div(int depth) {
    plus_only++;
    const cd_expr *a = random_expr(depth), *b = rnd(4) ? random_lit(9) : random_expr(depth);
    plus_only--;
    return cd_expr_new_bin(&pool, (cd_expr_op)(CD_DIV + rnd(4)), a, b);
}

static const cd_expr *random_expr(int depth) {
    static const cd_expr_op ops[] = {CD_ADD, CD_ADD, CD_ADD, CD_MIN, CD_MAX, CD_SUB, CD_SUB};
    if (depth == 0 || rnd(8) == 0) {
        if (rnd(4) == 0) return random_lit(14);
        return cd_expr_new_var(&pool, CD_I32, rnd(N_VAR));
    }
    const cd_expr *a = random_expr(depth - 1);
    switch (rnd(8)) {
    case 0:
    case 1: return cd_expr_new_bin(&pool, CD_MUL, a, random_lit(13));
    case 2:
    case 3: return random_div(depth - 1);
    case 4:
        if (rnd(2)) return cd_expr_new_bin(&pool, CD_MUL, a, random_expr(depth - 1));
        return cd_expr_new_select(&pool, random_cond(depth - 1), a, random_expr(depth - 1));
    default: return cd_expr_new_bin(&pool, ops[rnd(plus_only ? 5 : 7)], a, random_expr(depth - 1));
    }
}

static const cd_expr *random_cond(int depth) {
    if (depth <= 1 || rnd(3))
        return cd_expr_new_bin(&pool, (cd_expr_op)(CD_EQ + rnd(6)),
                               random_expr(depth > 0 ? depth - 1 : 0),
                               random_expr(rnd(2) && depth > 0 ? depth - 1 : 0));
    if (rnd(5) == 0) return cd_expr_new_not(&pool, random_cond(depth - 1));
    return cd_expr_new_bin(&pool, rnd(2) ? CD_AND : CD_OR, random_cond(depth - 1),
                           random_cond(depth - 1));
}

static void random_ranges(cd_analyzer *a, int64_t *lo, uint32_t *n) {
    static const uint32_t extents[] = {1, 2, 3, 4, 7, 8, 16, 28};
    for (uint32_t i = 0; i < N_VAR; i++) {
        lo[i] = rnd(4) ? 0 : (int64_t)rnd(20) - 10;
        n[i] = extents[rnd(8)];
        bind(a, i, lo[i], n[i]);
    }
}

static void check_value(const cd_expr *e, const cd_expr *r, const int64_t *v) {
    ex_env x = {.var = v}, y = {.var = v};
    const double want = ex_value(&x, e), got = ex_value(&y, r);
    if (x.bad || y.bad || want == got) return;
    cd_buf b = {0};
    ex_print(&b, e);
    cd_buf_puts(&b, "  ->  ");
    ex_print(&b, r);
    print_error("%s\n at %lld %lld %lld %lld: %g, not %g\n", b.p, (long long)v[0], (long long)v[1],
                (long long)v[2], (long long)v[3], got, want);
    cd_buf_free(&b);
    fail();
}

/* TVM v0.9 is wrong where a term with a negative factor is divided: it takes
 * -(x//7)//3 for x//-21. We follow it, and ask the law of other sums only. */
TEST(test_value_is_kept) {
    const char *env = getenv("SIMPLIFY_ROUNDS");
    const long rounds = env ? atol(env) : 20000;
    seed = 1;
    for (long k = 0; k < rounds; k++) {
        restart();
        cd_analyzer *a = cd_simplify_analyzer_new(simp);
        int64_t lo[N_VAR], v[N_VAR];
        uint32_t n[N_VAR];
        random_ranges(a, lo, n);
        const cd_expr *e = rnd(3) ? random_expr(1 + (int)rnd(4)) : random_cond(3),
                      *r = cd_simplify_expr(a, e);
        assert_non_null(r);
        assert_int_equal(r->type, e->type);
        const cd_bound b = cd_simplify_bound(a, e);
        for (int t = 0; t < 20; t++) {
            for (uint32_t i = 0; i < N_VAR; i++) v[i] = lo[i] + (int64_t)rnd(n[i]);
            check_value(e, r, v);
            ex_env x = {.var = v};
            const double val = ex_value(&x, e);
            if (!x.bad) assert_true((double)b.lo <= val && val <= (double)b.hi);
        }
    }
}

/* What was asked before changes nothing, and all analyzers agree. */
TEST(test_memo_is_invisible) {
    seed = 7;
    for (int k = 0; k < 2000; k++) {
        restart();
        cd_analyzer *a = cd_simplify_analyzer_new(simp), *b = cd_simplify_analyzer_new(simp);
        int64_t lo[N_VAR];
        uint32_t n[N_VAR];
        const uint32_t at = seed;
        random_ranges(a, lo, n);
        seed = at;
        random_ranges(b, lo, n);
        const cd_expr *e[4], *c = random_cond(2), *first;
        for (int i = 0; i < 4; i++) e[i] = random_expr(4);
        first = cd_simplify_expr(a, e[0]);
        for (int i = 1; i < 4; i++) {
            const cd_constraint t = cd_constraint_enter(b, c);
            cd_simplify_expr(b, e[i]);
            cd_simplify_expr(b, cd_expr_new_bin(&pool, CD_ADD, e[0], e[i]));
            cd_constraint_leave(b, t);
            cd_simplify_expr(cd_simplify_fresh_analyzer(simp), e[i]);
        }
        assert_ptr_equal(cd_simplify_expr(b, e[0]), first);
        assert_ptr_equal(cd_simplify_expr(a, e[0]), first);
    }
}

/* ---- limits ---- */

TEST(test_deep_nests_fail_softly) {
    restart();
    cd_analyzer *a = cd_simplify_analyzer_new(simp);
    const cd_expr *e = cd_expr_new_var(&pool, CD_I32, 0);
    for (int i = 0; i < 400; i++)
        e = cd_expr_new_bin(&pool, i % 2 ? CD_MIN : CD_ADD, e,
                            cd_expr_new_var(&pool, CD_I32, 1 + (uint32_t)i % 5));
    cd_simplify_expr(a, e);
    assert_false(cd_simplify_oom(simp));
    for (int i = 0; i < 100000; i++)
        e = cd_expr_new_bin(&pool, i % 2 ? CD_MIN : CD_ADD, e,
                            cd_expr_new_var(&pool, CD_I32, 1 + (uint32_t)i % 5));
    assert_true(pool.big); /* the pool refuses what is too deep to walk */
    assert_non_null(cd_simplify_expr(a, e));
    restart();
    assert_false(pool.big || cd_simplify_oom(simp));
    pool.oom = true; /* what the pool could not make is told by the simplifier, too */
    assert_true(cd_simplify_oom(simp));
    assert_non_null(
        cd_simplify_expr(cd_simplify_analyzer_new(simp), cd_expr_new_var(&pool, CD_I32, 0)));
    restart();
    assert_false(cd_simplify_oom(simp));
}

TEST(test_no_memory) {
    FAULT_SWEEP(f, 1) {
        cd_expr_pool p = {0};
        cd_simplifier *s = NULL;
        if (cd_expr_pool_init(&p, NULL, NULL) == CDMPP_OK &&
            cd_simplify_new(&p, &s, NULL) == CDMPP_OK) {
            cd_analyzer *a = cd_simplify_analyzer_new(s);
            const cd_expr *v = cd_expr_new_var(&p, CD_I32, 0);
            cd_simplify_bind(a, v, cd_expr_int(&p, 0), cd_expr_int(&p, 16));
            for (int i = 1; i < 600; i++)
                cd_simplify_expr(
                    a, cd_expr_bin(&p, CD_FDIV,
                                   cd_expr_bin(&p, CD_ADD,
                                               cd_expr_bin(&p, CD_MUL, v, cd_expr_int(&p, i)), v),
                                   cd_expr_int(&p, 7)));
            if (!cd_simplify_oom(s)) f.st = CDMPP_OK;
        }
        cd_simplify_free(s);
        cd_expr_pool_free(&p);
    }
}

TESTS(made_simplifier, made_simplifier_gone, test_corpus, test_known, test_wide_and_mixed_types,
      test_bounds_and_proofs, test_constraints_come_and_go, test_many_variables, test_value_is_kept,
      test_memo_is_invisible, test_deep_nests_fail_softly, test_no_memory)
