/* Any schedule computes what the task defines: nests of random schedules are run
 * on small tensors, before and after simplification, against the definition. */
#include <stdio.h>

#include "check.h"
#include "interp.h"
#include "prog.h"
#include "randsched.h"

#define IN(name, ...)                                                                              \
    "{\"name\": \"" name "\", \"shape\": [" #__VA_ARGS__ "], \"dtype\": \"float32\"}"

static const char *const task[] = {
    /* matrix product and sum */
    "\"ops\": [" IN("A", 5, 6) "," IN(
        "B", 6, 7) ", {\"name\": \"mm\", \"axis\": [[\"i\", 0, 5], [\"j\", 0, 7]],"
                   "\"reduce_axis\": [[\"k\", 0, 6]], \"reduce\": \"sum\", \"body\": \"A[i, "
                   "k]*B[k, j]\"}," IN("C", 5,
                                       7) ","
                                          "{\"name\": \"out\", \"axis\": [[\"i\", 0, 5], [\"j\", "
                                          "0, 7]], \"body\": \"mm[i, j] + C[i, j]\"}]",
    /* padded convolution, relu */
    "\"ops\": [" IN("x", 5, 4, 2) "," IN(
        "w", 3, 3, 2,
        3) ", {\"name\": \"pad\", \"axis\": [[\"y\", 0, 7], [\"x\", 0, 6], [\"c\", 0, 2]],"
           "\"body\": \"if_then_else(y >= 1 && y < 6 && x >= 1 && x < 5, x[y - 1, x - 1, c], 0)\"},"
           "{\"name\": \"conv\", \"axis\": [[\"h\", 0, 5], [\"v\", 0, 4], [\"f\", 0, 3]],"
           "\"reduce_axis\": [[\"a\", 0, 3], [\"b\", 0, 3], [\"c\", 0, 2]], \"reduce\": \"sum\", "
           "\"body\": \"pad[h + a, v + b, c]*w[a, b, c, f]\"},"
           "{\"name\": \"relu\", \"axis\": [[\"h\", 0, 5], [\"v\", 0, 4], [\"f\", 0, 3]], "
           "\"body\": \"max(conv[h, v, f], 0)\"}]",
    /* softmax */
    "\"ops\": [" IN("x", 4, 7) ", {\"name\": \"mx\", \"axis\": [[\"i\", 0, 4]], \"reduce_axis\": "
                               "[[\"k\", 0, 7]], \"reduce\": \"max\", \"body\": \"x[i, k]\"},"
                               "{\"name\": \"ex\", \"axis\": [[\"i\", 0, 4], [\"j\", 0, 7]], "
                               "\"body\": \"exp(x[i, j] - mx[i])\"},"
                               "{\"name\": \"sm\", \"axis\": [[\"i\", 0, 4]], \"reduce_axis\": "
                               "[[\"k\", 0, 7]], \"reduce\": \"sum\", \"body\": \"ex[i, k]\"},"
                               "{\"name\": \"y\", \"axis\": [[\"i\", 0, 4], [\"j\", 0, 7]], "
                               "\"body\": \"ex[i, j]/sm[i]\"}]",
    /* strided pooling of a padded map, mean of it */
    "\"ops\": [" IN("x", 7, 5) ", {\"name\": \"pad\", \"axis\": [[\"y\", 0, 8], [\"z\", 0, 6]],"
                               "\"body\": \"if_then_else(y < 7 && z < 5, x[y, z], -9)\"}, "
                               "{\"name\": \"pool\", \"axis\": [[\"i\", 0, 3], [\"j\", 0, 2]],"
                               "\"reduce_axis\": [[\"a\", 0, 3], [\"b\", 0, 3]], \"reduce\": "
                               "\"max\", \"body\": \"pad[i*2 + a, j*2 + b]\"},"
                               "{\"name\": \"mean\", \"axis\": [[\"i\", 0, 3], [\"j\", 0, 2]], "
                               "\"body\": \"pool[i, j]/4\"}]",
    /* argmax: two outputs, one reader */
    "\"ops\": [" IN(
        "x", 5,
        6) ", {\"name\": \"am\", \"axis\": [[\"i\", 0, 5]], \"reduce_axis\": [[\"k\", 0, 6]],"
           "\"reduce\": {\"lhs\": [\"a\", \"b\"], \"rhs\": [\"c\", \"d\"], \"result\": [\"select(b "
           "> d || (b == d && a < c), a, c)\", \"select(b >= d, b, d)\"],"
           "\"identity\": [\"99\", \"-65504.0\"]}, \"body\": [\"k\", \"x[i, k]\"]},"
           "{\"name\": \"y\", \"axis\": [[\"i\", 0, 5]], \"body\": \"am.v1[i] + "
           "float32(am.v0[i])*2\"}]",
    /* no axes */
    "\"ops\": [" IN("x", 11) ", {\"name\": \"s\", \"axis\": [], \"reduce_axis\": [[\"k\", 0, 11]], "
                             "\"reduce\": \"sum\", \"body\": \"x[k]\"},"
                             "{\"name\": \"r\", \"axis\": [], \"body\": \"sqrt(s[])\"}]",
    /* reshapes and transposes */
    "\"ops\": [" IN(
        "x", 6,
        4) ", {\"name\": \"f\", \"axis\": [[\"n\", 0, 24]], \"body\": \"x[n // 4, n % 4]*2\"},"
           "{\"name\": \"g\", \"axis\": [[\"i\", 0, 3], [\"j\", 0, 8]], \"body\": \"f[i*8 + j] + "
           "1\"},"
           "{\"name\": \"h\", \"axis\": [[\"j\", 0, 8], [\"i\", 0, 3]], \"body\": \"g[i, j]*g[2 - "
           "i, j]\"}]",
    /* some points left out */
    "\"ops\": [" IN("x",
                    12) ", {\"name\": \"u\", \"axis\": [[\"n\", 0, 12]], \"body\": \"x[n] + 1\"},"
                        "{\"name\": \"a\", \"axis\": [[\"i\", 0, 5]], \"reduce_axis\": [[\"k\", 0, "
                        "3]], \"reduce\": \"sum\", \"where\": \"k != i\","
                        "\"body\": \"u[i*2 + k]\"}, {\"name\": \"b\", \"axis\": [[\"i\", 0, 5]], "
                        "\"body\": \"a[i]*a[4 - i]\"}]",
    /* windows of different lengths; random schedules leave it alone: TVM cannot split or tile such
     * a loop soundly */
    "\"ops\": [" IN("x",
                    12) ", {\"name\": \"u\", \"axis\": [[\"n\", 0, 12]], \"body\": \"x[n] + 1\"},"
                        "{\"name\": \"a\", \"axis\": [[\"i\", 0, 5]], \"reduce_axis\": [[\"k\", 0, "
                        "\"3 - i % 2\"]], \"reduce\": \"sum\","
                        "\"body\": \"u[i*2 + k]\"}, {\"name\": \"b\", \"axis\": [[\"i\", 0, 5]], "
                        "\"body\": \"a[i]*a[4 - i]\"}]",
};
enum { N_TASK = sizeof task / sizeof *task - 1 };

typedef struct {
    cd_task_registry *tasks;
    randsched r;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    memset(&f, 0, sizeof f);
    assert_ok(prog_tasks(task, N_TASK + 1, &f.tasks, &err));
    for (size_t k = 0; k <= N_TASK; k++)
        if (!cd_task_registry_at(f.tasks, k)->dag) {
            err = *cd_task_registry_at(f.tasks, k)->why;
            assert_ok(err.code);
        }
    assert_ok(cd_schedule_init(&f.r.s, &err));
    f.r.t.open = -1;
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_schedule_free(&f->r.s);
    cd_ast_free(&f->r.t);
    cd_arena_free(&f->r.a);
    cd_task_registry_free(f->tasks);
    return 0;
}

/* ---- running ---- */

/* Small integers, different everywhere. */
static double input(uint32_t tensor, int64_t i) {
    return (double)((i * 7 + tensor * 5 + i * i % 3) % 9) - 4;
}

static in_mem whole(const cd_te_op *o) {
    in_mem m = {.rank = o->rank};
    const int64_t n = in_count(o->rank, o->shape);
    for (uint32_t d = 0; d < o->rank; d++) m.ext[d] = o->shape[d];
    m.v = test_malloc((size_t)(n + 1) * sizeof *m.v);
    for (int64_t i = 0; i < n; i++) m.v[i] = NAN;
    return m;
}

static void free_mem(in_mem *m, uint32_t n) {
    for (uint32_t t = 0; t < n; t++)
        if (m[t].v) test_free(m[t].v);
    test_free(m);
}

static double *fresh_vars(uint32_t n) {
    double *v = test_malloc((n + 1) * sizeof *v);
    for (uint32_t i = 0; i < n; i++) v[i] = NAN;
    return v;
}

/* Every tensor of the task by its definition. */
static in_mem *define(const cd_te_dag *dag) {
    interp in = {.n_var = dag->pool.n_var, .n_mem = dag->n_tensor, .budget = 1000000};
    in.mem = test_calloc(dag->n_tensor, sizeof *in.mem);
    in.var = fresh_vars(in.n_var);
    for (uint32_t i = 0; i < dag->n_op; i++)
        for (uint32_t k = 0; k < dag->op[i].n_out; k++) {
            in_mem *m = &in.mem[dag->op[i].first_tensor + k];
            *m = whole(&dag->op[i]);
            for (int64_t e = 0; dag->op[i].is_placeholder && e < in_count(m->rank, m->ext); e++)
                m->v[e] = input(dag->op[i].first_tensor, e);
        }
    in_define(&in, dag);
    if (in.why) print_error("definition: %s\n", in.why);
    assert_null(in.why);
    test_free(in.var);
    return in.mem;
}

/* Run r->t and compare its outputs; the reason why not, or NULL. */
static const char *run(randsched *r, const in_mem *truth) {
    const cd_te_dag *dag = r->dag;
    interp in = {.s = &r->s,
                 .t = &r->t,
                 .n_var = r->s.pool.n_var,
                 .n_mem = r->s.tensor_op.n,
                 .budget = 400000};
    in.mem = test_calloc(in.n_mem, sizeof *in.mem);
    in.out = test_calloc(in.n_mem, sizeof *in.out);
    in.var = fresh_vars(in.n_var);
    for (uint32_t i = 0; i < dag->n_op; i++)
        for (uint32_t k = dag->op[i].first_tensor; k < dag->op[i].first_tensor + dag->op[i].n_out;
             k++) {
            if (dag->op[i].is_placeholder) in.mem[k] = truth[k];
            else if (dag->op[i].is_output)
                in.out[k] = test_malloc((size_t)(in_count(truth[k].rank, truth[k].ext) + 1) *
                                        sizeof(double));
            if (in.out[k]) in.out[k][0] = NAN;
        }
    in_run(&in, 0, r->t.n);
    const char *why = in.why;
    for (uint32_t t = 0; t < dag->n_tensor; t++) {
        for (int64_t e = 0; !why && in.out[t] && e < in_count(truth[t].rank, truth[t].ext); e++)
            if (!(fabs(in.out[t][e] - truth[t].v[e]) <= 1e-5 * fabs(truth[t].v[e])))
                why = "a wrong result";
        if (in.out[t]) test_free(in.out[t]);
    }
    test_free(in.out);
    test_free(in.mem);
    test_free(in.var);
    return why;
}

static const char *both(randsched *r, const in_mem *truth) {
    cdmpp_err err = {0};
    const char *why = run(r, truth);
    if (why) return why;
    if (cd_ast_simplify(&r->t, r->s.simp, &r->s.pool, &err)) return "not simplified";
    return run(r, truth);
}

static bool is_budget(const char *why) { return why && !strcmp(why, "too much work"); }

/* Threads that reduce together: TVM does not guard the store that ends it, so a
 * tile that sticks out of the tensor writes outside. Fixed schedules only. */
static bool reduces_across_threads(const cd_ast *t) {
    for (int32_t k = 0; k < t->n; k++)
        if (t->node[k].kind == CD_AST_EVAL) return true;
    return false;
}

/* Threads inside an attach point, which the memory of what is attached there does
 * not depend on: TVM's bounds then name them outside their loops. */
static bool threads_inside_attach(const cd_schedule *s) {
    for (int32_t k = 0; k < s->n_stage; k++) {
        const cd_schedule_stage *st = &s->stage[k];
        if (st->attach != CD_SCHEDULE_AT_SCOPE) continue;
        const cd_schedule_ivec *leaf = &s->stage[st->at_stage].leaf;
        for (uint32_t i = 0; i < leaf->n; i++)
            if ((int32_t)i > cd_schedule_ivec_find(leaf, st->at_iv) &&
                s->iv[leaf->p[i]].thread >= 0)
                return true;
    }
    return false;
}

/* What went wrong, unless it is no fault of the nest. */
static const char *fault(const randsched *r, const char *why) {
    if (is_budget(why)) return NULL;
    return why && !strcmp(why, "a variable outside its loop") && threads_inside_attach(&r->s) ? NULL
                                                                                              : why;
}

/* ---- reporting ---- */

/* Fewest steps that still fail. */
static void shrink(randsched *r, const in_mem *truth) {
    cdmpp_err err = {0};
    for (uint32_t k = r->n; k-- > 0;) {
        const randsched old = *r;
        memmove(r->step + k, r->step + k + 1, (r->n - 1 - k) * sizeof *r->step);
        r->n--;
        const char *why = rs_replay(r, true, &err) ? NULL : both(r, truth);
        if (fault(r, why)) continue;
        memcpy(r->step, old.step, sizeof r->step);
        r->n = old.n;
    }
}

static void report(randsched *r, size_t k, const char *why, const in_mem *truth) {
    cd_buf b = {0};
    cdmpp_err err = {0};
    shrink(r, truth);
    const cd_record rec = rs_record(r);
    cd_record_write(&b, &rec, &err);
    assert_ok(rs_replay(r, true, &err));
    const char *first = run(r, truth);
    cd_ast_print(&r->t, &b, &(cd_names){cd_schedule_name, &r->s});
    fprintf(stderr, "task %zu: %s (%s)\n%s\n", k, why, first ? "as lowered" : "simplified", b.p);
    cd_buf_free(&b);
}

static void random_schedules(fixture *f, bool threads, uint64_t seed) {
    const char *rounds = getenv("CDMPP_ROUNDS");
    const int n = rounds ? atoi(rounds) : 150;
    long steps = 0, ran = 0, bad = 0;
    for (size_t k = 0; k < N_TASK; k++) {
        const cd_te_dag *dag = cd_task_registry_at(f->tasks, k)->dag;
        in_mem *truth = define(dag);
        for (int i = 0; i < n; i++) {
            cdmpp_err err = {0};
            f->r.rng = seed + (uint64_t)i * 1000003u + k;
            f->r.threads = threads;
            assert_ok(rs_make(&f->r, dag, 1 + rs_below(&f->r, 12), &err));
            if (reduces_across_threads(&f->r.t)) continue;
            steps += f->r.n;
            const char *why = both(&f->r, truth);
            ran += !is_budget(why);
            if (!(why = fault(&f->r, why))) continue;
            if (bad++ < 5) report(&f->r, k, why, truth);
        }
        free_mem(truth, dag->n_tensor);
    }
    print_message("%ld schedules of %.1f steps run, %ld wrong\n", ran,
                  (double)steps / (double)(n * N_TASK), bad);
    assert_int_equal(bad, 0);
    assert_true(ran > n * N_TASK / 4);
}

/* Each list of two steps, on one task. */
static void fixed_schedules(fixture *f, size_t k, const cd_record_step (*step)[2], size_t n) {
    randsched *r = &f->r;
    cdmpp_err err = {0};
    r->dag = cd_task_registry_at(f->tasks, k)->dag;
    in_mem *truth = define(r->dag);
    for (size_t i = 0; i < n; i++) {
        memcpy(r->step, step[i], sizeof step[i]);
        r->n = 2;
        assert_ok(rs_replay(r, true, &err));
        const char *why = both(r, truth);
        if (why) report(r, k, why, truth);
        assert_null(why);
    }
    free_mem(truth, r->dag->n_tensor);
}

static void ragged_reduction(void **state) {
    static const cd_record_step step[][2] = {
        {{.kind = CD_RECORD_STEP_CR}, {.kind = CD_RECORD_STEP_CR}},
        {{.kind = CD_RECORD_STEP_CI, .stage = 1},
         {.kind = CD_RECORD_STEP_AN, .stage = 2, .i = {0, 3}}},
        {{.kind = CD_RECORD_STEP_CI, .stage = 1},
         {.kind = CD_RECORD_STEP_CA, .stage = 2, .i = {3, 0}}}};
    fixed_schedules(*state, N_TASK, step, sizeof step / sizeof *step);
}

static void threads_reduce(void **state) {
    static const int32_t two[] = {2}, three[] = {3};
    /* the sum of six products: by threads of 2 x 3, 3 x 2; by the outer part */
    static const cd_record_step sum[][2] = {
        {{.kind = CD_RECORD_STEP_SP, .stage = 2, .i = {2, 0, 1}, .list = two, .n_list = 1},
         {.kind = CD_RECORD_STEP_AN, .stage = 2, .i = {3, 6}}},
        {{.kind = CD_RECORD_STEP_SP, .stage = 2, .i = {2, 0, 1}, .list = three, .n_list = 1},
         {.kind = CD_RECORD_STEP_AN, .stage = 2, .i = {2, 6}}}};
    static const cd_record_step most[][2] = {
        {{.kind = CD_RECORD_STEP_SP, .stage = 1, .i = {1, 0, 1}, .list = three, .n_list = 1},
         {.kind = CD_RECORD_STEP_AN, .stage = 1, .i = {2, 6}}}};
    fixed_schedules(*state, 0, sum, 2);
    fixed_schedules(*state, 4, most, 1);
}

/* Ranges are told of every iterator, those of the first operator too: what a length depends on is
 * known when it is simplified. Loops made of two are told to those who ask for them. */
TEST(ranges_are_told) {
    static const char *const one[] = {
        "\"ops\": [{\"name\": \"f\", \"axis\": [[\"i\", 0, 10]], \"reduce_axis\": [[\"k\", 0, "
        "\"min(i + 1, 20)\"]], \"reduce\": \"sum\","
        "\"body\": \"float32(i*9 + k)\"}, {\"name\": \"g\", \"axis\": [[\"i\", 0, 10], [\"j\", 0, "
        "3]], \"body\": \"f[i]*float32(j)\"}]"};
    static const int32_t both_axes[] = {0, 1};
    static randsched r;
    cd_task_registry *tasks;
    cdmpp_err err = {0};
    cd_buf b = {0};
    int fused = 0;
    assert_ok(prog_tasks(one, 1, &tasks, &err));
    assert_ok(cd_schedule_init(&r.s, &err));
    r.t.open = -1;
    r.dag = cd_task_registry_at(tasks, 0)->dag;
    r.step[r.n++] =
        (cd_record_step){.kind = CD_RECORD_STEP_FU, .stage = 1, .list = both_axes, .n_list = 2};
    assert_ok(rs_replay(&r, true, &err));
    for (int32_t k = 0; k < r.s.n_iv; k++) {
        const cd_schedule_iv *iv = &r.s.iv[k];
        const cd_expr *min, *extent;
        assert_non_null(iv->r_ext);
        assert_true(cd_schedule_query_range(&r.s, iv->var, &min, &extent) && min == iv->r_min &&
                    extent == iv->r_ext);
        assert_true(cd_schedule_query_unfused(&r.s, iv->var, &min, &extent) ==
                    (iv->name_kind != CD_SCHEDULE_NAME_FUSED));
        fused += iv->name_kind == CD_SCHEDULE_NAME_FUSED;
    }
    assert_int_equal(fused, 1);
    cd_expr_print(&b, r.s.iv[r.s.op[0].raxis[0]].r_ext, &(cd_names){cd_schedule_name, &r.s});
    assert_string_equal(b.p, "(i + 1)"); /* never 20 */
    cd_buf_free(&b);
    cd_ast_free(&r.t);
    cd_schedule_free(&r.s);
    cd_task_registry_free(tasks);
}

static void loops(void **state) { random_schedules(*state, false, 1); }
static void threads(void **state) { random_schedules(*state, true, 2); }

TESTS(up, down, ragged_reduction, threads_reduce, ranges_are_told, loops, threads)
