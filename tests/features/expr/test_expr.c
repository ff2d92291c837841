/* Calls with an effect are told from pure ones, by TVM's list: what the analyzer may drop or count
 * as mathematics. */
#include "check.h"
#include "features/expr/expr.h"

/* src/tir/op/builtin.cc and op.cc of TVM 0.9: effect kinds other than pure and annotation. */
static const char *const effect[] = {"call_extern",
                                     "call_cpacked",
                                     "call_packed",
                                     "tvm_call_packed",
                                     "tvm_call_cpacked",
                                     "tvm_thread_allreduce",
                                     "atomic_add",
                                     "tvm_storage_sync",
                                     "call_llvm_intrin",
                                     "call_spirv_intrin",
                                     "tvm_throw_last_error",
                                     "tvm_context_id",
                                     "tvm_warp_shuffle",
                                     "prefetch",
                                     "ret",
                                     "thread_return",
                                     "assume",
                                     "TVMBackendAllocWorkspace",
                                     "TVMBackendFreeWorkspace"};
static const char *const pure[] = {
    "exp", "tanh", "sqrt", "if_then_else", "call_pure_extern", "call_llvm_pure_intrin", "likely",
    "",    "re",   "ret_", "return"};

static void test_effects_of_calls(void **state) {
    cd_expr_pool p;
    (void)state;
    assert_int_equal(cd_expr_pool_init(&p, NULL, NULL), CDMPP_OK);
    const cd_expr *x = cd_expr_new_float(&p, CD_F32, 2);
    for (size_t k = 0; k < sizeof effect / sizeof *effect; k++) {
        const cd_expr *e = cd_expr_new_call(&p, CD_F32, effect[k], &x, 1);
        if (e->flags & CD_EXPR_PURE) fail_msg("%s is pure", effect[k]);
    }
    for (size_t k = 0; k < sizeof pure / sizeof *pure; k++) {
        const cd_expr *e = cd_expr_new_call(&p, CD_F32, pure[k], &x, 1);
        if (!(e->flags & CD_EXPR_PURE)) fail_msg("%s has an effect", pure[k]);
    }
    cd_expr_pool_free(&p);
}

/* The kinds of Features in a row: (x + 1) * 2 / x < y and so on, counted by hand. */
static void test_operations_are_counted(void **state) {
    static const cd_expr_op binary[] = {CD_ADD,  CD_SUB,  CD_MUL, CD_DIV, CD_MOD,
                                        CD_FDIV, CD_FMOD, CD_MIN, CD_MAX, CD_EQ,
                                        CD_NE,   CD_LT,   CD_LE,  CD_GT,  CD_GE};
    static const int slot[] = {CD_CNT_F_ADDSUB, CD_CNT_F_ADDSUB, CD_CNT_F_MUL,    CD_CNT_F_DIVMOD,
                               CD_CNT_F_DIVMOD, CD_CNT_F_DIVMOD, CD_CNT_F_DIVMOD, CD_CNT_F_CMP,
                               CD_CNT_F_CMP,    CD_CNT_F_CMP,    CD_CNT_F_CMP,    CD_CNT_F_CMP,
                               CD_CNT_F_CMP,    CD_CNT_F_CMP,    CD_CNT_F_CMP};
    static const int integer = CD_CNT_I_ADDSUB - CD_CNT_F_ADDSUB;
    cd_expr_pool p;
    (void)state;
    assert_int_equal(cd_expr_pool_init(&p, NULL, NULL), CDMPP_OK);
    const cd_expr *x[2] = {cd_expr_fresh_var(&p, CD_F32), cd_expr_fresh_var(&p, CD_I32)};
    const cd_expr *y[2] = {cd_expr_fresh_var(&p, CD_F32), cd_expr_fresh_var(&p, CD_I32)};
    const cd_expr *all[2] = {x[0], x[1]};
    uint32_t want[CD_CNT_COUNT] = {0}, nodes = 1;
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof binary / sizeof *binary; k++) {
            cd_opcount c = {0};
            assert_true(cd_opcount_add(&c, cd_expr_new_bin(&p, binary[k], x[i], y[i])));
            for (int s = 0; s < CD_CNT_COUNT; s++)
                assert_int_equal(c.n[s], s == slot[k] + i * integer);
            assert_int_equal(c.nodes, 1); /* variables and numbers are none */
        }
        const cd_expr *call[] = {cd_expr_new_call(&p, x[i]->type, "exp", x + i, 1),
                                 cd_expr_new_call(&p, x[i]->type, "call_extern", x + i, 1)};
        for (int k = 0; k < 2; k++) {
            all[i] = cd_expr_new_bin(&p, CD_MUL, all[i], call[k]);
            want[(k ? CD_CNT_F_OTHER : CD_CNT_F_MATH) + i * integer]++;
            want[CD_CNT_F_MUL + i * integer]++;
            nodes += 2;
        }
    }
    const cd_expr *less = cd_expr_new_bin(&p, CD_LT, all[0], y[0]),
                  *more = cd_expr_new_bin(&p, CD_GT, all[1], y[1]);
    /* an index counts too */
    const cd_expr *place = cd_expr_new_bin(&p, CD_ADD, x[1], y[1]),
                  *load = cd_expr_new_load(&p, CD_F32, 0, &place, 1);
    const cd_expr *both = cd_expr_new_bin(&p, CD_AND, less, cd_expr_new_not(&p, more));
    const cd_expr *e = cd_expr_new_select(&p, both, load, cd_expr_new_cast(&p, CD_F32, place));
    want[CD_CNT_F_CMP]++, want[CD_CNT_I_CMP]++, want[CD_CNT_BOOL] += 2, want[CD_CNT_SELECT]++;
    want[CD_CNT_I_ADDSUB] += 2;
    nodes += 2 + 2 + 4; /* comparisons; and, not; load, its place, cast, its place */
    cd_opcount c = {0};
    assert_true(cd_opcount_add(&c, e));
    for (int s = 0; s < CD_CNT_COUNT; s++) assert_int_equal(c.n[s], want[s]);
    assert_int_equal(c.nodes, nodes);
    c = (cd_opcount){.nodes = CD_OPCOUNT_MAX - 1};
    assert_true(cd_opcount_add(&c, place));
    assert_false(cd_opcount_add(&c, place));
    cd_expr_pool_free(&p);
}

/* Against the definition: the largest whole number that is not above the quotient, and what is
 * left. */
static void test_floor_division(void **state) {
    (void)state;
    for (int64_t a = -20; a <= 20; a++)
        for (int64_t b = -7; b <= 7; b++) {
            if (!b) continue;
            const int64_t q = cd_expr_floordiv(a, b), r = cd_expr_floormod(a, b);
            assert_int_equal(q, (int64_t)floor((double)a / (double)b));
            assert_int_equal(q * b + r, a);
        }
}

/* Numbers are cast at once, as C does it; what no integer holds stays a cast. */
TEST(test_casts_of_numbers) {
    static const struct {
        double from;
        int64_t to;
    } whole[] = {{3.7, 3},
                 {-3.7, -3},
                 {0, 0},
                 {8.9e18, 8900000000000000000},
                 {-8.9e18, -8900000000000000000}};
    static const double large[] = {9e18, -9e18, 1e30, (double)INFINITY, (double)NAN};
    cd_expr_pool p;
    assert_int_equal(cd_expr_pool_init(&p, NULL, NULL), CDMPP_OK);
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
        const cd_expr *e = cd_expr_cast(&p, CD_I64, cd_expr_new_float(&p, CD_F32, whole[k].from));
        assert_true(e->op == CD_INT && e->type == CD_I64 && e->u.i == whole[k].to);
    }
    for (size_t k = 0; k < sizeof large / sizeof *large; k++)
        assert_int_equal(cd_expr_cast(&p, CD_I64, cd_expr_new_float(&p, CD_F32, large[k]))->op,
                         CD_CAST);
    const cd_expr *five = cd_expr_new_int(&p, CD_I32, 5),
                  *half = cd_expr_new_float(&p, CD_F32, 0.5), *x = cd_expr_fresh_var(&p, CD_I32);
    const cd_expr *yes = cd_expr_cast(&p, CD_BOOL, five), *real = cd_expr_cast(&p, CD_F32, five),
                  *wide = cd_expr_cast(&p, CD_DTYPE(CD_T_FLOAT, 64), half),
                  *other = cd_expr_cast(&p, CD_I64, x);
    assert_true(yes->op == CD_INT && yes->type == CD_BOOL && yes->u.i == 1 &&
                cd_expr_cast(&p, CD_I64, five)->u.i == 5);
    assert_true(real->op == CD_FLOAT && real->type == CD_F32 && real->u.f == 5 &&
                wide->op == CD_FLOAT && wide->type == CD_DTYPE(CD_T_FLOAT, 64) && wide->u.f == 0.5);
    assert_true(other->op == CD_CAST && other->a[0] == x && cd_expr_cast(&p, CD_I32, x) == x &&
                cd_expr_cast(&p, CD_F32, half) == half);
    cd_expr_pool_free(&p);
}

typedef struct {
    cd_expr_pool *p;
    const cd_expr *from, *to;
    bool loads;
} change;

/* Tensor 1 becomes tensor 2, with its index as it is. */
static const cd_expr *other_tensor(void *ctx, const cd_expr *e) {
    const change *c = ctx;
    if (!c->loads || e->u.i != 1) return e;
    return cd_expr_new_load(c->p, e->type, 2, e->a, e->n);
}

static const cd_expr *changed(void *ctx, const cd_expr *e) {
    const change *c = ctx;
    return e->op == CD_LOAD ? other_tensor(ctx, e) : e == c->from ? c->to : e;
}

/* Variables in sums, indices and long calls, loads of two tensors, with and without each kind of
 * change; the same table is used again and again. The other function that replaces is the truth. */
TEST(test_replacements) {
    cd_expr_pool p;
    cd_subst s;
    assert_int_equal(cd_expr_pool_init(&p, NULL, NULL), CDMPP_OK);
    cd_subst_init(&s, &p);
    const cd_expr *i = cd_expr_fresh_var(&p, CD_I32), *j = cd_expr_fresh_var(&p, CD_I32),
                  *one = cd_expr_int(&p, 1), *sum = cd_expr_new_bin(&p, CD_ADD, i, j), *many[12];
    const cd_expr *at_i = cd_expr_new_load(&p, CD_F32, 1, &i, 1),
                  *at_one = cd_expr_new_load(&p, CD_F32, 1, &one, 1),
                  *other = cd_expr_new_load(&p, CD_F32, 3, &sum, 1);
    for (int k = 0; k < 12; k++) many[k] = k % 3 == 0 ? i : k % 3 == 1 ? j : cd_expr_int(&p, k);
    const cd_expr *const tab[] = {
        one,
        i,
        j,
        sum,
        at_i,
        at_one,
        other,
        cd_expr_new_bin(&p, CD_MUL, at_i, other),
        cd_expr_new_bin(&p, CD_MUL, at_one, at_one),
        cd_expr_new_call(&p, CD_I32, "f", many, 12),
        cd_expr_new_cast(&p, CD_F32, sum),
        cd_expr_new_select(&p, cd_expr_new_bin(&p, CD_LT, i, j), at_i, other)};
    const cd_expr *const to[] = {i, j, one, cd_expr_new_bin(&p, CD_MUL, j, cd_expr_int(&p, 3)),
                                 sum};
    for (size_t t = 0; t < sizeof to / sizeof *to; t++)
        for (int loads = 0; loads < 2; loads++) {
            change c = {&p, i, to[t], loads};
            cd_subst_begin(&s);
            cd_subst_set(&s, i, to[t]);
            if (loads) s.load = other_tensor, s.load_ctx = &c;
            for (int twice = 0; twice < 2; twice++)
                for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
                    cd_arena a = {0};
                    assert_ptr_equal(cd_subst_apply(&s, tab[k]),
                                     cd_expr_map(&p, &a, tab[k], changed, &c));
                    cd_arena_free(&a);
                }
        }
    change c = {&p, NULL, NULL, true};
    cd_subst_begin(&s); /* by hand: nothing, a variable, a tensor */
    assert_ptr_equal(cd_subst_apply(&s, tab[7]), tab[7]);
    cd_subst_set(&s, i, one);
    assert_ptr_equal(cd_subst_apply(&s, at_i), at_one);
    assert_ptr_equal(cd_subst_apply(&s, sum), cd_expr_new_bin(&p, CD_ADD, one, j));
    s.load = other_tensor, s.load_ctx = &c;
    assert_ptr_equal(cd_subst_apply(&s, cd_expr_new_load(&p, CD_F32, 1, &j, 1)),
                     cd_expr_new_load(&p, CD_F32, 2, &j, 1));
    assert_false(s.oom);
    cd_subst_free(&s);
    cd_expr_pool_free(&p);
}

TESTS(NULL, NULL, test_replacements, test_casts_of_numbers, test_effects_of_calls,
      test_operations_are_counted, test_floor_division)
