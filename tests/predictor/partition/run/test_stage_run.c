/* Stages of a block run on processors here: values of one after the other, barriers kept, each
 * stage measured once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_graph.h"
#include "base/core/core.h"
#include "features/sketch/sketch.h"
#include "made_stages.h"
#include "predictor/partition/run/stage_run.c" /* which processor gets which group */

enum { M = 6, N = 16, OPS = 24 };

static cd_measure *measure;
static gm graph;
static cd_workload *work;
static cd_program_select *picked;
static cd_arena arena;
static cd_stage_graph g;
static uint32_t *group;
static float want[OPS][M * N];

/* Two inputs, products of two branches each: programs of few kinds, so that little is compiled. */
static uint32_t product(uint32_t x) { return gm_add(&graph, "MatMul", "", x, gm_w(&graph, N, N)); }

static void build_graph(void) {
    cdmpp_err err = {0};
    assert_ok(cd_graph_new("branches", &graph.g, &err));
    const uint32_t x = gm_x(&graph, M, N), y = gm_x(&graph, M, N);
    const uint32_t a = product(x), b = product(x), c = product(y), d = product(a), e = product(b);
    const uint32_t f = gm_add(&graph, "Softmax", "axis=1", a), h = product(c);
    const uint32_t out[] = {gm_add(&graph, "Add", "", product(e), product(h)), product(d),
                            product(f)};
    for (size_t k = 0; k < sizeof out / sizeof *out; k++)
        assert_ok(cd_graph_result(graph.g, out[k], &err));
    assert_ok(graph.st);
}

static cdmpp_status pick_all(cdmpp_err *err) {
    const cd_program_select_options o = {.trials = 1,
                                         .target = "llvm -num-cores=1",
                                         .hardware = cd_target_hardware(false, 1, 64),
                                         .threads = 1,
                                         .measure = measure};
    CD_TRY(cd_workload_build(graph.g, NULL, &work, err));
    CD_TRY(cd_program_select_run(work, &o, &picked, err));
    return ms_graph(work, picked, &arena, &g, &group, err);
}

static int up(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const cd_measure_options o = {
        .threads = 1, .jobs = 1, .cache = "", .timing = {.budget_s = 0.002}};
    if (cd_measure_open(&o, &measure, &err)) return 1;
    build_graph();
    const cdmpp_status st = pick_all(&err);
    if (st) print_error("%s %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    cd_program_select_free(picked);
    cd_workload_free(work);
    cd_graph_free(graph.g);
    cd_measure_close(measure);
    cd_arena_free(&arena);
    return 0;
}

static cd_stage_run *open_block(uint32_t n_core) {
    static const int core[] = {-1, -1, -1};
    cdmpp_err err = {0};
    cd_stage_run *r = NULL;
    assert_ok(cd_stage_run_open(&(cd_stage_run_options){.work = work,
                                                        .pick = picked,
                                                        .n_op = g.n_op,
                                                        .group = group,
                                                        .n_core = n_core,
                                                        .core = core},
                                &r, &err));
    return r;
}

static void results(cd_stage_exec *s, float out[OPS][M * N]) {
    cdmpp_err err = {0};
    for (uint32_t k = 0; k < g.n_op; k++) {
        const cd_graph_shape *x = &work->buffer[work->group[group[k]].write].shape;
        assert_true(cd_graph_shape_elements(x) <= M * N);
        assert_ok(cd_stage_exec_result(s, k, out[k], &err));
    }
}

static void one_after_the_other(cd_stage_run *r) {
    cd_stage_exec *s;
    cdmpp_err err = {0};
    double total;
    assert_true(g.n_op >= 8 && g.n_op <= OPS && g.n_after >= 6);
    assert_ok(cd_stage_exec_open(r, NULL, 0, &s, &err));
    assert_ok(cd_stage_exec_pass(s, NULL, &total, &err));
    results(s, want);
    cd_stage_exec_close(s);
}

/* Stages with everything run again: values, and who ran when. */
static void check_stages(cd_stage_run *r, const cd_stage_step *stage, uint32_t n_stage) {
    static float got[OPS][M * N];
    cd_stage_exec *s;
    cdmpp_err err = {0};
    assert_ok(cd_stage_exec_open(r, stage, n_stage, &s, &err));
    for (int pass = 0; pass < 20; pass++) {
        cd_multi_action_time ran[OPS];
        double total, barrier = 0;
        assert_ok(cd_stage_exec_pass(s, pass % 2 ? ran : NULL, &total, &err));
        results(s, got);
        for (uint32_t k = 0; k < g.n_op; k++)
            assert_memory_equal(want[k], got[k],
                                4 * (size_t)cd_graph_shape_elements(
                                        &work->buffer[work->group[group[k]].write].shape));
        for (uint32_t i = 0; i < n_stage && pass % 2; i++) {
            double end = barrier;
            for (uint32_t p = 0; p < stage[i].n_group; p++)
                for (uint32_t q = stage[i].first[p]; q < stage[i].first[p + 1]; q++) {
                    const cd_multi_action_time *x = &ran[stage[i].op[q]];
                    assert_true(x->done && x->start_s >= barrier && x->end_s <= total);
                    if (q > stage[i].first[p])
                        assert_true(x->start_s >= ran[stage[i].op[q - 1]].end_s);
                    end = fmax(end, x->end_s);
                }
            barrier = end;
        }
        for (uint32_t k = 0; k < g.n_op && pass % 2; k++)
            for (uint32_t e = 0; e < g.op[k].n_after; e++)
                assert_true(ran[g.after[g.op[k].first + e]].end_s <= ran[k].start_s);
    }
    cd_stage_exec_close(s);
}

/* Any times: the plan changes, the values do not. */
static double drawn_time(const cd_stage_step *s, void *ctx) {
    uint64_t set = *(uint64_t *)ctx;
    for (uint32_t i = 0; i < s->first[s->n_group]; i++) set = set * 31 + s->op[i];
    return 1 + (double)(cd_rng_at(5, set) % 100);
}

static void test_values(void **state) {
    (void)state;
    cdmpp_err err = {0};
    for (uint32_t n_core = 1; n_core <= 3; n_core++) {
        cd_stage_run *r = open_block(n_core);
        one_after_the_other(r);
        for (uint64_t seed = 0; seed < 5; seed++) {
            cd_stage_plan plan;
            assert_ok(cd_stage_search(
                &g, &(cd_stage_options){.r = 3, .s = 4, .time = drawn_time, .ctx = &seed}, &plan,
                &err));
            check_stages(r, plan.stage, plan.n_stage);
            cd_stage_plan_free(&plan);
        }
        cd_stage_run_close(r);
    }
}

/* The plan by measuring: each set of operators once, its time the plan's. */
static void test_measured(void **state) {
    (void)state;
    static ms_measured m = {.passes = 3};
    cd_stage_run *r = m.run = open_block(2);
    cd_stage_plan plan, again;
    cdmpp_err err = {0};
    const cd_stage_options a = {.r = 2, .s = 2, .time = ms_time, .ctx = &m};
    one_after_the_other(r);
    assert_ok(cd_stage_search(&g, &a, &plan, &err));
    assert_ok(m.why.code);
    const uint32_t n = m.n;
    assert_true(n > 0 && n <= plan.n_asked);
    check_stages(r, plan.stage, plan.n_stage);
    assert_ok(cd_stage_search(&g, &a, &again, &err));
    assert_int_equal(m.n, n);
    assert_true(again.total_s == plan.total_s && again.total_s > 0 &&
                again.total_s <= again.alone_s);
    for (uint32_t k = 0; k < plan.n_stage; k++)
        assert_true(ms_time(&plan.stage[k], &m) == plan.stage[k].seconds);
    cd_stage_exec *s[2];
    double seconds[2];
    assert_ok(cd_stage_exec_open(r, NULL, 0, &s[0], &err));
    assert_ok(cd_stage_exec_open(r, plan.stage, plan.n_stage, &s[1], &err));
    assert_ok(cd_stage_exec_compare(s, 2, 0.01, seconds, &err));
    assert_true(seconds[0] > 0 && seconds[1] > 0);
    for (int k = 0; k < 2; k++) cd_stage_exec_close(s[k]);
    cd_stage_plan_free(&plan);
    cd_stage_plan_free(&again);
    cd_stage_run_close(r);
}

/* Blocks together are the network: each operator in one, edges inside kept. */
static void test_blocks(void **state) {
    (void)state;
    uint32_t block[OPS], n_block, seen = 0;
    cdmpp_err err = {0};
    assert_ok(cd_stage_blocks(&g, 4, block, &n_block, &err));
    for (uint32_t b = 0; b < n_block; b++) {
        cd_stage_graph part;
        uint32_t *of;
        assert_ok(ms_block(&g, group, block, b, &arena, &part, &of, &err));
        seen += part.n_op;
        for (uint32_t k = 0; k < part.n_op; k++)
            for (uint32_t e = 0; e < part.op[k].n_after; e++) {
                const uint32_t before = of[part.after[part.op[k].first + e]];
                bool known = false;
                for (uint32_t i = 0; i < work->group[of[k]].n_after; i++)
                    known = known || work->group[of[k]].after[i] == before;
                assert_true(known);
            }
    }
    assert_int_equal(seen, g.n_op);
}

static void test_bad(void **state) {
    (void)state;
    const int core[] = {-1}, nowhere[] = {4096};
    const uint32_t none[] = {UINT32_MAX};
    cdmpp_err err = {0};
    cd_stage_run *r = NULL;
    cd_stage_exec *s;
    float x[M * N];
    assert_int_equal(
        cd_stage_run_open(
            &(cd_stage_run_options){
                .work = work, .pick = picked, .n_op = 0, .group = group, .n_core = 1, .core = core},
            &r, &err),
        CDMPP_ERANGE);
    assert_int_equal(cd_stage_run_open(&(cd_stage_run_options){.work = work,
                                                               .pick = picked,
                                                               .n_op = CD_STAGE_OPS + 1,
                                                               .group = group,
                                                               .n_core = 1,
                                                               .core = core},
                                       &r, &err),
                     CDMPP_ERANGE);
    assert_int_equal(cd_stage_run_open(
                         &(cd_stage_run_options){
                             .work = work, .pick = picked, .n_op = 1, .group = group, .core = core},
                         &r, &err),
                     CDMPP_ERANGE);
    assert_int_equal(
        cd_stage_run_open(
            &(cd_stage_run_options){
                .work = work, .pick = picked, .n_op = 1, .group = none, .n_core = 1, .core = core},
            &r, &err),
        CDMPP_EBACKEND);
    /* a group that holds weights, one whose program cannot be built */
    for (int k = 0; k < 2; k++) {
        cd_workload_group *one = &work->group[group[0]];
        cdmpp_status *st = &picked->task[one->task].status;
        *st = k ? CDMPP_EBACKEND : CDMPP_OK, one->weights = !k;
        assert_int_equal(cd_stage_run_open(&(cd_stage_run_options){.work = work,
                                                                   .pick = picked,
                                                                   .n_op = 1,
                                                                   .group = group,
                                                                   .n_core = 1,
                                                                   .core = core},
                                           &r, &err),
                         CDMPP_EBACKEND);
        *st = CDMPP_OK, one->weights = false;
    }
    assert_ok(cd_stage_run_open(&(cd_stage_run_options){.work = work,
                                                        .pick = picked,
                                                        .n_op = g.n_op,
                                                        .group = group,
                                                        .n_core = 1,
                                                        .core = nowhere},
                                &r, &err));
    const uint32_t first[] = {0, 1}, op[] = {0};
    const cd_stage_step one = {.n_group = 1, .first = first, .op = op};
    assert_int_equal(cd_stage_exec_open(r, &one, 1, &s, &err), CDMPP_EIO);
    cd_stage_run_close(r);
    r = open_block(1);
    assert_ok(cd_stage_exec_open(r, &one, 1, &s, &err));
    assert_ok(cd_stage_exec_result(s, 0, x, &err));
    assert_int_equal(cd_stage_exec_result(s, 1, x, &err), CDMPP_ERANGE);
    cd_stage_exec_close(s);
    cd_stage_run_close(r);
}

/* Alone the groups take 1, 2, 4 and 3 s, the second one in two parts. Shortest first, the last one
 * to run would have 6 s instead of 5. */
TEST(test_longest_group_is_dealt_first) {
    double solo_s[] = {1, 0.5, 1.5, 4, 3};
    const uint32_t first[] = {0, 1, 3, 4, 5}, op[] = {0, 1, 2, 3, 4};
    const cd_stage_run r = {.ask = {.n_core = 2}, .solo_s = solo_s};
    static const uint32_t on[] = {0, 1, 0, 1};
    uint32_t device[4];
    spread(&r, &(cd_stage_step){.n_group = 4, .first = first, .op = op}, device);
    assert_memory_equal(device, on, sizeof on);
}

/* ---- operators in pieces ---- */

static const cd_codegen_code *code_of(uint32_t op) {
    return picked->task[work->group[group[op]].task].item.build.code;
}

/* All operators in their order, those that can in pieces. */
static uint32_t split_all(cd_stage_step *stage, uint32_t *op, uint32_t n_core) {
    static const uint32_t first[] = {0, 1};
    uint32_t n = 0;
    for (uint32_t k = 0; k < g.n_op; k++) {
        const bool can =
            cd_multi_splits(code_of(k)) && code_of(k)->part[0].iterations >= (int64_t)n_core;
        op[k] = k, n += can;
        stage[k] =
            (cd_stage_step){.n_group = 1, .first = first, .op = &op[k], .split = can ? n_core : 0};
    }
    return n;
}

TEST(test_split) {
    cd_stage_step stage[OPS];
    uint32_t op[OPS];
    for (uint32_t n_core = 2; n_core <= 3; n_core++) {
        cd_stage_run *r = open_block(n_core);
        one_after_the_other(r);
        assert_true(split_all(stage, op, n_core) > 0);
        check_stages(r, stage, g.n_op);
        cd_stage_run_close(r);
    }
}

/* The executor itself refuses pieces that share iterations, and those of a program that runs
 * whole. */
TEST(test_bad_pieces) {
    cd_stage_step stage[OPS];
    uint32_t op[OPS], at = 0;
    cdmpp_err err = {0};
    cd_stage_exec *s;
    cd_multi_executor *other;
    cd_stage_run *r = open_block(2);
    (void)split_all(stage, op, 2);
    while (!stage[at].split) at++;
    assert_ok(cd_stage_exec_open(r, &stage[at], 1, &s, &err));
    assert_true(s->dn.n_action == 2 && s->action[0].begin == 0 &&
                s->action[0].end == s->action[1].begin &&
                s->action[1].end == code_of(at)->part[0].iterations);
    s->action[1].begin--;
    assert_int_equal(cd_multi_executor_open(&s->dn, &other, &err), CDMPP_EINVALID);
    assert_non_null(strstr(err.msg, "touch the same bytes"));
    s->action[1].begin = s->action[1].end;
    assert_int_equal(cd_multi_executor_open(&s->dn, &other, &err), CDMPP_EINVALID);
    s->action[1].begin = 1, s->action[1].end++;
    assert_int_equal(cd_multi_executor_open(&s->dn, &other, &err), CDMPP_EINVALID);
    cd_stage_exec_close(s);
    stage[at].split = 3;
    assert_int_equal(cd_stage_exec_open(r, &stage[at], 1, &s, &err), CDMPP_ERANGE);
    for (uint32_t k = 0; k < g.n_op; k++) {
        if (cd_multi_splits(code_of(k))) continue;
        stage[k].split = 2;
        assert_int_equal(cd_stage_exec_open(r, &stage[k], 1, &s, &err), CDMPP_EINVALID);
    }
    cd_stage_run_close(r);
}

TESTS(up, down, test_longest_group_is_dealt_first, test_values, test_measured, test_blocks,
      test_bad, test_split, test_bad_pieces)
