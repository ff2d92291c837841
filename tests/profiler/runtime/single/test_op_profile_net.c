/* The network that a profile runs: contents that the graph knows are those of its tensors. */
#include <string.h>

#include "check.h"
#include "fault.h"
#include "features/sketch/sketch.h"
#include "made_graph.h"
#include "profiler/runtime/single/single_internal.h"

static gm m;
static cd_workload *w;
static cd_program_select *p;
static cd_measure *measure;

/* Rows 3, 1, 3 of a table that is data, times known numbers. */
static int up(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const cd_hardware hw = cd_target_hardware(false, 1, 64);
    const cd_measure_options o = {
        .threads = 1, .jobs = 1, .cache = "", .timing = {.budget_s = 0.002}};
    if (cd_measure_open(&o, &measure, &err) || cd_graph_new("rows", &m.g, &err)) return 1;
    const uint32_t rows = gm_add(&m, "Gather", "axis=0", gm_x(&m, 5, 2), gm_ints(&m, 3, 1, 3));
    const uint32_t y = gm_add(&m, "Mul", "", rows, gm_reals(&m, 0.5, 0.25));
    if (m.st || cd_graph_result(m.g, y, &err)) return 1;
    if (cd_workload_build(m.g, &(cd_workload_options){.target = "llvm", .hardware = &hw}, &w, &err))
        return 1;
    return cd_program_select_run(
               w,
               &(cd_program_select_options){
                   .trials = 1, .target = "llvm", .hardware = hw, .threads = 1, .measure = measure},
               &p, &err) != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    cd_program_select_free(p);
    cd_workload_free(w);
    cd_graph_free(m.g);
    cd_measure_close(measure);
    return 0;
}

TEST(test_known) {
    static const int64_t index[] = {3, 1, 3};
    static const float half[] = {0.5F, 0.25F};
    cd_op_profile_net n = {0};
    cdmpp_err err = {0};
    uint32_t whole = 0, real = 0;
    assert_ok(cd_op_profile_net_make(&n, w, p, &err));
    for (uint32_t k = 0; k < w->n_buffer; k++) {
        if (!n.known[k]) continue;
        const bool f = w->buffer[k].dtype == CD_F32;
        *(f ? &real : &whole) += 1;
        if (f) assert_memory_equal(n.known[k], half, sizeof half);
        else if (cd_expr_dtype_bytes(w->buffer[k].dtype) == 8)
            assert_memory_equal(n.known[k], index, sizeof index);
        else assert_memory_equal(n.known[k], ((const int32_t[]){3, 1, 3}), 12);
    }
    assert_true(whole == 1 && real == 1);
    cd_arena_free(&n.arena);
}

TEST(test_no_memory) {
    FAULT_SWEEP(f, 1) {
        cd_op_profile_net n = {0};
        f.st = cd_op_profile_net_make(&n, w, p, &f.err);
        cd_arena_free(&n.arena);
    }
}

TESTS(up, down, test_known, test_no_memory)
