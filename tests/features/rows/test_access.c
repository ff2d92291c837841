/* Regions that a store touches, loop by loop: never less than what running the
 * loops touches, and exactly that where every index is affine. */
#include <stdlib.h>

#include "check.h"
#include "interp.h"
#include "prog.h"
#include "randsched.h"
#include "features/rows/rows_internal.h"

#define IN(name, ...)                                                                              \
    "{\"name\": \"" name "\", \"shape\": [" #__VA_ARGS__ "], \"dtype\": \"float32\"}"

static const char *const task[] = {
    "\"ops\": [" IN("A", 5, 6) "," IN(
        "B", 6,
        7) ", {\"name\": \"mm\", \"axis\": [[\"i\", 0, 5], [\"j\", 0, 7]],"
           "\"reduce_axis\": [[\"k\", 0, 6]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"},"
           "{\"name\": \"out\", \"axis\": [[\"i\", 0, 5], [\"j\", 0, 7]], \"body\": \"mm[i, "
           "j]*mm[i, 6 - j]\"}]",
    "\"ops\": [" IN("x", 9, 8) "," IN(
        "w", 3,
        3) ", {\"name\": \"pad\", \"axis\": [[\"y\", 0, 11], [\"z\", 0, 10]],"
           "\"body\": \"if_then_else(y >= 1 && y < 10 && z >= 1 && z < 9, x[y - 1, z - 1], 0)\"},"
           "{\"name\": \"conv\", \"axis\": [[\"h\", 0, 5], [\"v\", 0, 4]], \"reduce_axis\": "
           "[[\"a\", 0, 3], [\"b\", 0, 3]],"
           "\"reduce\": \"sum\", \"body\": \"pad[h*2 + a, v*2 + b]*w[a, b]\"}]",
    "\"ops\": [" IN(
        "x", 6,
        4) ", {\"name\": \"f\", \"axis\": [[\"n\", 0, 24]], \"body\": \"x[n // 4, n % 4]*2\"},"
           "{\"name\": \"g\", \"axis\": [[\"i\", 0, 3], [\"j\", 0, 8]], \"body\": \"f[i*8 + j] + "
           "f[23 - i*8 - j]\"}]",
};
enum { N_TASK = sizeof task / sizeof *task, MAX_LOOP = 40, MAX_ACC = 16 };

static cd_tensor_info info(const void *ctx, uint32_t tensor) {
    const cd_schedule *s = ctx;
    const cd_schedule_op *op = &s->op[s->tensor_op.p[tensor]];
    return (cd_tensor_info){op->rank, op->shape, 4};
}

/* Sums of loop variables times literals, each variable once. */
static bool is_affine(const cd_expr *e, uint64_t *seen) {
    if (e->op == CD_INT) return true;
    if (e->op == CD_VAR) {
        const uint64_t bit = (uint64_t)1 << (e->u.i % 64);
        const bool again = *seen & bit;
        *seen |= bit;
        return !again;
    }
    if (e->op == CD_MUL) return cd_expr_is_int(e->a[1]) && is_affine(e->a[0], seen);
    return (e->op == CD_ADD || e->op == CD_SUB) && is_affine(e->a[0], seen) &&
           is_affine(e->a[1], seen);
}

typedef struct {
    cd_bound b[MAX_ACC][IN_RANK];
} boxes;

static void enclose(cd_bound *b, int64_t x) {
    if (x < b->lo) b->lo = x;
    if (x > b->hi) b->hi = x;
}

/* Every index of every access while the loops from `level` on run. */
static void enumerate(interp *in, const cd_store_ctx *c, uint32_t level, boxes *out) {
    if (level < c->n_loop) {
        for (int64_t x = 0; x < c->loop[level].extent; x++) {
            in->var[c->loop[level].var->u.i] = (double)x;
            enumerate(in, c, level + 1, out);
        }
        return;
    }
    for (uint32_t k = 0; k < c->n_acc; k++)
        for (uint32_t v = 0; v < c->acc[k].n_vec; v++)
            for (uint32_t d = 0; d < c->acc[k].info.rank; d++)
                enclose(&out->b[k][d], (int64_t)in_value(in, c->acc[k].vec[v][d]));
}

typedef struct {
    long regions, exact, wrong;
} census;

static void compare(const cd_store_ctx *c, const boxes *truth, census *n) {
    for (uint32_t k = 0; k < c->n_acc; k++)
        for (uint32_t d = 0; d < c->acc[k].info.rank; d++) {
            const cd_bound r = c->acc[k].region[d], t = truth->b[k][d];
            bool affine = c->acc[k].n_vec == 1;
            uint64_t seen = 0;
            affine = affine && is_affine(c->acc[k].vec[0][d], &seen);
            n->regions++;
            n->exact += affine;
            n->wrong += r.lo > t.lo || r.hi < t.hi || (affine && (r.lo != t.lo || r.hi != t.hi));
        }
}

/* The table's last entries are this store's. */
static bool same_sizes(const cd_touch_list *l, const int64_t *size, uint32_t n) {
    bool same = l->n >= n;
    for (uint32_t k = 0; same && k < n; k++) same = l->p[l->n - n + k].elements == size[k];
    return same;
}

/* One store under its loops: with the innermost m of them open, the others at their
 * start. The last time, as extraction does it, with the masks of the whole program. */
static void store(randsched *r, const cd_loop *loop, uint32_t n_loop, const cd_ast_node *n,
                  cd_loopmask *program, census *sum) {
    const cd_tensors tensors = {info, &r->s, r->s.tensor_op.n};
    interp in = {.n_var = r->s.pool.n_var};
    cd_touch_list touch[MAX_LOOP] = {{0}};
    cd_loopmask part = {0};
    int64_t size[MAX_LOOP + 1][MAX_ACC];
    in.var = test_malloc((in.n_var + 1) * sizeof *in.var);
    uint32_t *acc_of = CD_NEWN(&r->s.arena, uint32_t, tensors.n);
    for (uint32_t m = 1; m <= n_loop; m++) {
        cd_loopmask *masks = m == n_loop ? program : &part;
        cd_store_ctx c = {.arena = &r->s.arena,
                          .pool = &r->s.pool,
                          .ana = cd_simplify_analyzer_new_plain(r->s.simp),
                          .masks = masks,
                          .tensors = &tensors,
                          .cache_line = 64,
                          .prod = 1.0F,
                          .touch = touch,
                          .acc_of = acc_of};
        boxes truth;
        cd_loopmask_begin(&part);
        for (uint32_t i = 0; i < n_loop; i++) {
            in.var[loop[i].var->u.i] = 0;
            cd_simplify_set_bound(c.ana, loop[i].var, 0, 0);
            if (i >= n_loop - m) cd_loopmask_set(masks, loop[i].var, i - (n_loop - m));
        }
        c.loop = loop + n_loop - m;
        c.n_loop = m;
        cd_access_collect(&c, n->tensor, n->x, n->e);
        cd_access_regions(&c, 1);
        assert_false(c.oom);
        for (int k = 0; k < MAX_ACC; k++)
            for (int d = 0; d < IN_RANK; d++) truth.b[k][d] = (cd_bound){INT64_MAX, INT64_MIN};
        enumerate(&in, &c, 0, &truth);
        assert_null(in.why);
        compare(&c, &truth, sum);
        for (uint32_t k = 0; k < c.n_acc; k++) size[m][k] = c.acc[k].elements;
        for (uint32_t i = 1; m == n_loop && i <= m; i++)
            sum->wrong += !same_sizes(&touch[loop[m - i].identity], size[i], c.n_acc);
    }
    for (int k = 0; k < MAX_LOOP; k++) cd_touch_free(&touch[k]);
    cd_loopmask_free(&part);
    test_free(in.var);
}

/* Stores whose loops turn at most 5000 times. */
static void stores(randsched *r, census *sum) {
    const cd_ast *t = &r->t;
    cd_loopmask masks = {0};
    cd_loopmask_begin(&masks);
    for (int32_t k = 0; k < t->n; k++) {
        cd_loop loop[MAX_LOOP];
        uint32_t n = 0;
        int64_t turns = 1;
        if (t->node[k].dead || t->node[k].kind != CD_AST_STORE) continue;
        for (int32_t p = t->node[k].parent; p >= 0; p = t->node[p].parent) {
            const cd_ast_node *l = &t->node[p];
            if (l->dead || (l->kind != CD_AST_FOR && l->kind != CD_AST_THREAD)) continue;
            turns = turns > 5000 || n == MAX_LOOP ? 5001 : turns * l->extent;
            if (n < MAX_LOOP)
                loop[n++] = (cd_loop){
                    .var = l->var, .extent_e = l->extent_e, .extent = l->extent, .identity = 0};
        }
        for (uint32_t i = 0; i < n / 2; i++) {
            const cd_loop x = loop[i];
            loop[i] = loop[n - 1 - i];
            loop[n - 1 - i] = x;
        }
        for (uint32_t i = 0; i < n; i++) loop[i].identity = (int32_t)i;
        if (turns > 0 && turns <= 5000) store(r, loop, n, &t->node[k], &masks, sum);
    }
    cd_loopmask_free(&masks);
}

TEST(regions) {
    static randsched r;
    const char *rounds = getenv("CDMPP_ROUNDS");
    cd_task_registry *tasks;
    cdmpp_err err = {0};
    census sum = {0};
    assert_ok(prog_tasks(task, N_TASK, &tasks, &err));
    assert_ok(cd_schedule_init(&r.s, &err));
    r.t.open = -1;
    for (size_t k = 0; k < N_TASK; k++)
        for (int i = 0; i < (rounds ? atoi(rounds) : 40); i++) {
            r.rng = (uint64_t)i * 7919 + k;
            r.threads = i % 2;
            assert_ok(rs_make(&r, cd_task_registry_at(tasks, k)->dag, 1 + rs_below(&r, 8), &err));
            assert_ok(cd_ast_simplify(&r.t, r.s.simp, &r.s.pool, &err));
            stores(&r, &sum);
        }
    /* A thread of two axes inside the reduction: outermost where the element is cleared. */
    static const int32_t both[] = {0, 1}, swapped[] = {1, 0, 2};
    const cd_record_step fixed[] = {
        {.kind = CD_RECORD_STEP_FU, .stage = 3, .list = both, .n_list = 2},
        {.kind = CD_RECORD_STEP_RE, .stage = 3, .list = swapped, .n_list = 3},
        {.kind = CD_RECORD_STEP_AN, .stage = 3, .i = {1, 6}}};
    memcpy(r.step, fixed, sizeof fixed);
    r.n = 3;
    r.dag = cd_task_registry_at(tasks, 1)->dag;
    assert_ok(rs_replay(&r, true, &err));
    assert_ok(cd_ast_simplify(&r.t, r.s.simp, &r.s.pool, &err));
    stores(&r, &sum);
    print_message("%ld regions, %ld of them affine, %ld wrong\n", sum.regions, sum.exact,
                  sum.wrong);
    assert_int_equal(sum.wrong, 0);
    assert_true(sum.exact > 1000 && sum.exact < sum.regions);
    cd_schedule_free(&r.s);
    cd_ast_free(&r.t);
    cd_arena_free(&r.a);
    cd_task_registry_free(tasks);
}

/* An adaptive pool from 14 to 4: a window is 3 or 4 long and starts at 0, 3, 7 or 10. TVM opens the
 * loops from the innermost on and asks each time anew how long the loops inside can be: 4 while the
 * element stands still; over all elements the largest end less the smallest start, 15, behind a
 * start of at most 10, so 25. */
#define WINDOW(x)                                                                                  \
    "select((" x " + 1)*14 % 4 == 0, (" x " + 1)*14 // 4, (" x " + 1)*14 // 4 + 1) - " x "*14 // " \
    "4"
static const char *const pool_task[] = {
    "\"ops\": [" IN(
        "x", 14, 14,
        2) ", {\"name\": \"sum\", \"axis\": [[\"i\", 0, 4], [\"j\", 0, 4], [\"c\", 0, 2]],"
           "\"reduce_axis\": [[\"a\", 0, \"" WINDOW("i") "\"], [\"b\", 0, \"" WINDOW(
               "j") "\"]], \"reduce\": \"sum\","
                    "\"body\": \"x[i*14 // 4 + a, j*14 // 4 + b, c]\"}]",
};

TEST(extents_that_depend_on_the_element) {
    static const int64_t elements[] = {25 * 25 * 2, 4 * 25 * 2, 4 * 4 * 2, 4 * 4, 4};
    /* log2: 4, 4, 2, 4, 4 iterations, the innermost first */
    static const float ops[] = {2, 4, 5, 7, 9};
    enum { N = sizeof elements / sizeof *elements };
    static randsched r;
    cd_task_registry *tasks;
    cdmpp_err err = {0};
    assert_ok(prog_tasks(pool_task, 1, &tasks, &err));
    assert_ok(cd_schedule_init(&r.s, &err));
    r.t.open = -1;
    r.n = 0;
    r.dag = cd_task_registry_at(tasks, 0)->dag;
    assert_ok(rs_replay(&r, true, &err));
    assert_ok(cd_ast_simplify(&r.t, r.s.simp, &r.s.pool, &err));
    int32_t k = r.t.n;
    while (r.t.node[--k].dead || r.t.node[k].kind != CD_AST_STORE) {
    }
    cd_loop loop[N];
    cd_touch_list touch[N] = {{0}};
    cd_loopmask masks = {0};
    int n = N;
    cd_loopmask_begin(&masks);
    for (int32_t p = r.t.node[k].parent; p >= 0; p = r.t.node[p].parent) {
        const cd_ast_node *l = &r.t.node[p];
        if (l->dead || l->kind != CD_AST_FOR) continue;
        n--;
        loop[n] =
            (cd_loop){.var = l->var, .extent_e = l->extent_e, .extent = l->extent, .identity = n};
        cd_loopmask_set(&masks, l->var, (uint32_t)n);
    }
    assert_int_equal(n, 0);
    assert_int_equal(loop[N - 1].extent, 15); /* what products take */
    const cd_tensors tensors = {info, &r.s, r.s.tensor_op.n};
    cd_store_ctx c = {.arena = &r.s.arena,
                      .pool = &r.s.pool,
                      .ana = cd_simplify_analyzer_new_plain(r.s.simp),
                      .masks = &masks,
                      .tensors = &tensors,
                      .cache_line = 64,
                      .prod = 1.0F,
                      .touch = touch,
                      .acc_of = CD_NEWN(&r.s.arena, uint32_t, tensors.n),
                      .loop = loop,
                      .n_loop = N};
    cd_access_collect(&c, r.t.node[k].tensor, r.t.node[k].x, r.t.node[k].e);
    cd_access_regions(&c, 1);
    assert_false(c.oom);
    for (int i = 0; i < N; i++) assert_int_equal(touch[i].p[1].elements, elements[i]);
    for (int i = 0; i < N; i++) assert_true(c.ops_log[i] == ops[i]);
    for (int i = 0; i < N; i++) cd_touch_free(&touch[i]);
    cd_loopmask_free(&masks);
    cd_schedule_free(&r.s);
    cd_ast_free(&r.t);
    cd_arena_free(&r.a);
    cd_task_registry_free(tasks);
}

TESTS(NULL, NULL, regions, extents_that_depend_on_the_element)
