/* Affine forms keep the value, whatever is known of the variables. */
#include <stdlib.h>

#include "profiler/codegen/code/code.h"
#include "base/core/core.h"
#include "check.h"

enum { N_VAR = 3 };
static cd_expr_pool pool;
static cd_ast ast;
static cd_codegen_env env;

static int setup(void **s) {
    (void)s;
    ast.open = -1;
    if (cd_expr_pool_init(&pool, NULL, NULL)) return 1;
    for (uint32_t k = 0; k < N_VAR; k++) {
        cd_ast_node *n = cd_ast_open(&ast, CD_AST_FOR);
        n->var = cd_expr_new_var(&pool, CD_I32, k);
        n->extent = 12;
        n->extent_e = cd_expr_new_int(&pool, CD_I32, 12);
    }
    cd_ast_close(&ast, -1);
    return cd_codegen_env_init(&env, &ast, N_VAR, NULL) != CDMPP_OK;
}

static int teardown(void **s) {
    (void)s;
    cd_codegen_env_free(&env);
    cd_ast_free(&ast);
    cd_expr_pool_free(&pool);
    return 0;
}

static const cd_expr *lit(int64_t v) { return cd_expr_new_int(&pool, CD_I32, v); }
static const cd_expr *var(uint32_t k) { return cd_expr_new_var(&pool, CD_I32, k); }

static int64_t eval(const cd_expr *e, const int64_t *v) {
    if (e->op == CD_INT) return e->u.i;
    if (e->op == CD_VAR) return v[e->u.i];
    if (e->op == CD_SELECT) return eval(e->a[eval(e->a[0], v) ? 1 : 2], v);
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
    default: return a < b;
    }
}

static const cd_expr *random_expr(unsigned depth) {
    if (!depth) return rand() % 3 ? var((uint32_t)rand() % N_VAR) : lit(rand() % 19 - 6);
    if (rand() % 8 == 0) {
        const cd_expr *c =
            cd_expr_new_bin(&pool, CD_LT, random_expr(depth - 1), random_expr(depth - 1));
        return cd_expr_new_select(&pool, c, random_expr(depth - 1), random_expr(depth - 1));
    }
    const cd_expr_op op = (cd_expr_op)(CD_ADD + rand() % 9);
    const bool div = op == CD_DIV || op == CD_MOD || op == CD_FDIV || op == CD_FMOD;
    return cd_expr_new_bin(&pool, op, random_expr(depth - 1),
                           div || op == CD_MUL ? lit(1 + rand() % 16) : random_expr(depth - 1));
}

/* Variable 0: itself, a number, number + lane, itself + lane; the others themselves. */
TEST(test_same_value) {
    srand(3);
    for (int k = 0; k < 4000; k++) {
        const cd_expr *e = random_expr(1 + (unsigned)rand() % 4);
        const int kind = rand() % 4;
        const int64_t lanes = kind < 2 ? 1 : 4, base = rand() % 8;
        env.var[0] = (struct cd_codegen_env_var){
            .fixed = kind == 1, .lane = kind > 1, .both = kind == 3, .value = kind == 3 ? 0 : base};
        env.bound[0] = (cd_bound){0, kind == 3 ? 8 : 11};
        cd_codegen_env_set_lanes(&env, lanes);
        const cd_expr *r = cd_codegen_env_apply(&env, e);
        assert_int_equal(cd_codegen_env_check(&env, NULL), CDMPP_OK);
        for (int t = 0; t < 20; t++) {
            const int64_t lane = rand() % lanes, x = kind == 3 ? rand() % 9 : rand() % 12;
            const int64_t after[N_VAR + 1] = {x, rand() % 12, rand() % 12, lane};
            const int64_t before[N_VAR] = {kind == 0   ? x
                                           : kind == 1 ? base
                                           : kind == 2 ? base + lane
                                                       : x + lane,
                                           after[1], after[2]};
            assert_int_equal(eval(r, after), eval(e, before));
            const cd_bound b = cd_codegen_range_of(&env.ranges, r);
            assert_true(b.lo <= eval(r, after) && eval(r, after) <= b.hi);
        }
    }
    env.var[0] = (struct cd_codegen_env_var){0};
    env.bound[0] = (cd_bound){0, 11};
}

/* One lane of what was applied, where the variable is "itself + lane" too: every lane has the value
 * of its element. */
TEST(test_one_lane) {
    srand(5);
    for (int k = 0; k < 4000; k++) {
        const cd_expr *e = random_expr(1 + (unsigned)rand() % 4);
        const bool both = rand() % 2;
        const int64_t base = both ? 0 : rand() % 8, lane = rand() % 4;
        env.var[0] = (struct cd_codegen_env_var){.lane = true, .both = both, .value = base};
        env.bound[0] = (cd_bound){0, 8};
        cd_codegen_env_set_lanes(&env, 4);
        const cd_expr *r = cd_codegen_env_at_lane(&env, cd_codegen_env_apply(&env, e), lane);
        assert_int_equal(cd_codegen_env_check(&env, NULL), CDMPP_OK);
        assert_false(cd_codegen_env_has_lane(&env, r));
        for (int t = 0; t < 20; t++) {
            const int64_t after[N_VAR + 1] = {rand() % 9, rand() % 12, rand() % 12, 1000};
            const int64_t before[N_VAR] = {(both ? after[0] : base) + lane, after[1], after[2]};
            assert_int_equal(eval(r, after), eval(e, before));
        }
    }
    env.var[0] = (struct cd_codegen_env_var){0};
    env.bound[0] = (cd_bound){0, 11};
}

static void expect(const cd_expr *e, const char *text) {
    cd_buf b = {0};
    const cd_expr *r = cd_codegen_env_apply(&env, e);
    static const char *const name[] = {"i", "j", "k", "lane"};
    cd_codegen_affine a;
    cd_codegen_env_affine_applied(&env, r, &a);
    for (uint32_t t = 0; t < a.n; t++)
        if (a.t[t].atom->op == CD_VAR)
            cd_buf_putf(&b, "%lld*%s + ", (long long)a.t[t].k, name[a.t[t].atom->u.i]);
        else
            cd_buf_putf(&b, "%lld*(%s) + ", (long long)a.t[t].k,
                        cd_expr_op_name((cd_expr_op)a.t[t].atom->op));
    cd_buf_putf(&b, "%lld", (long long)a.c);
    assert_string_equal(b.p, text);
    cd_buf_free(&b);
}

static const cd_expr *bin(cd_expr_op op, const cd_expr *a, const cd_expr *b) {
    return cd_expr_new_bin(&pool, op, a, b);
}

TEST(test_quotients) {
    const cd_expr *i = var(0), *j = var(1), *sum = bin(CD_ADD, bin(CD_MUL, i, lit(24)), j);
    expect(bin(CD_FDIV, sum, lit(12)), "2*i + 0");
    expect(bin(CD_FMOD, sum, lit(12)), "1*j + 0");
    expect(bin(CD_FMOD, sum, lit(8)), "1*(floormod) + 0");
    expect(bin(CD_FDIV, bin(CD_FDIV, i, lit(3)), lit(2)), "1*(floordiv) + 0");
    env.var[1] = (struct cd_codegen_env_var){.fixed = true, .value = 27};
    expect(bin(CD_FDIV, sum, lit(12)), "2*i + 2");
    env.var[1] = (struct cd_codegen_env_var){0};
}

TESTS(setup, teardown, test_same_value, test_one_lane, test_quotients)
