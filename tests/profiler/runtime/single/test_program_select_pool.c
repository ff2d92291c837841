/* Of many random schedules those with the least analytic time are tried. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "made_graph.h"
#include "features/analytic/analytic.h"
#include "features/sketch/sketch.h"
#include "profiler/describe/describe.h"
#include "profiler/runtime/single/single.h"

static cdmpp_err err;
static gm made;
static cd_workload *w;
static cd_measure *measure;
static cd_hardware hw;
static cd_describe_entry entry;
static cd_device device;

static int up(void **state) {
    (void)state;
    const cd_measure_options o = {
        .threads = 1, .jobs = 1, .cache = "", .timing = {.budget_s = 0.01}};
    made = (gm){0};
    assert_ok(cd_measure_open(&o, &measure, &err));
    assert_ok(cd_graph_new("small", &made.g, &err));
    uint32_t x = gm_add(&made, "Conv", "pads=1,1,1,1", gm_x(&made, 1, 16, 20, 20),
                        gm_w(&made, 24, 16, 3, 3));
    x = gm_add(&made, "MaxPool", "kernel_shape=2,2 strides=2,2", x);
    assert_int_equal(made.st, CDMPP_OK);
    assert_ok(cd_graph_result(made.g, x, &made.err));
    hw = cd_target_hardware(false, 1, 32);
    assert_ok(cd_workload_build(made.g, &(cd_workload_options){.target = "llvm", .hardware = &hw},
                                &w, &err));
    cd_describe_entry_init(&entry, CD_DEVICE_CPU);
    device = entry.device;
    device.clock_mhz = 3000, device.cores = device.cores_used = 1, device.lanes = 16,
    device.simd_bits = 256;
    device.l1_kb = 32, device.l2_kb = 1024, device.l3_kb = 8192, device.bandwidth_gb_s = 20;
    return 0;
}

static int down(void **state) {
    (void)state;
    cd_workload_free(w);
    cd_graph_free(made.g);
    cd_measure_close(measure);
    return 0;
}

static cd_program_select_options options(uint32_t trials, uint32_t pool) {
    return (cd_program_select_options){.trials = trials,
                                       .pool = pool,
                                       .device = pool ? &device : NULL,
                                       .seed = 5,
                                       .target = "llvm",
                                       .hardware = hw,
                                       .threads = 1,
                                       .measure = measure};
}

/* Least analytic times of `n` schedules of each task for vectors of so many bytes, and which record
 * has it: by drawing and lowering them here. */
static void by_hand(uint32_t n, uint32_t vector_bytes, double *least, cd_record_id *which) {
    const cd_random_schedules_options o = {
        .trials = n, .seed = 5, .target = "llvm", .hardware = hw};
    cd_random_schedules *d;
    cd_program *p;
    cd_facts *f;
    cd_buf line = {0};
    cd_arena a = {0};
    assert_ok(cd_random_schedules_new(w->tasks, &o, &d, &err));
    assert_ok(cd_program_new(&p, &err));
    assert_ok(cd_facts_new(&f, &err));
    for (uint32_t k = 0; k < w->n_task; k++) least[k] = (double)INFINITY;
    for (;; cd_buf_clear(&line)) {
        float fact[CD_N_FACTS];
        cd_analytic_time t;
        cd_record r;
        cd_nest nest;
        if (cd_random_schedules_next(d, &line, &err)) continue;
        if (!line.n) break;
        assert_ok(cd_record_read(&a, line.p, line.n, &r, &err));
        const cd_task *task = cd_task_registry_find(w->tasks, r.workload_key);
        assert_ok(cd_program_lower(p, task, &r, &err));
        assert_ok(cd_program_nest(p, &nest, &err));
        nest.vector_bytes = vector_bytes;
        assert_ok(cd_facts_cpu(f, &nest, fact, &err));
        assert_ok(cd_analytic_seconds(fact, &device, &t, &err));
        for (uint32_t k = 0; k < w->n_task; k++) {
            if (cd_task_registry_at(w->tasks, w->task[k].task) != task || t.ecm_s >= least[k])
                continue;
            least[k] = t.ecm_s;
            if (which) assert_ok(cd_record_id_of(&r, &which[k], &err));
        }
    }
    cd_facts_free(f);
    cd_program_free(p);
    cd_random_schedules_free(d);
    cd_buf_free(&line);
    cd_arena_free(&a);
}

/* The estimate is the least of all; without a pool, or where a device says too little, there is
 * none. */
TEST(test_estimate) {
    double got[8], want[8];
    const uint32_t here = cd_isa_vector_bytes(NULL, "llvm");
    assert_true(w->n_task >= 2 && w->n_task <= 8);
    for (uint32_t n = 2; n <= 64; n *= 32) {
        const cd_program_select_options o = options(1, n);
        by_hand(n, here, want, NULL);
        assert_ok(cd_program_select_estimate(w, &o, got, &err));
        for (uint32_t k = 0; k < w->n_task; k++) assert_true(got[k] == want[k] && got[k] > 0);
    }
    const cd_program_select_options none = options(1, 0);
    assert_ok(cd_program_select_estimate(w, &none, got, &err));
    for (uint32_t k = 0; k < w->n_task; k++) assert_true(isnan(got[k]));
    cd_program_select_options few = options(1, 8);
    cd_device poor = device;
    poor.bandwidth_gb_s = -1;
    few.device = &poor;
    assert_status(cd_program_select_estimate(w, &few, got, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "bandwidth_gb_s"));
}

/* As many are tried as without a pool, and the best by the analytic time is among them. */
TEST(test_run) {
    const cd_program_select_options o = options(2, 64);
    cd_program_select *s;
    double want[8];
    by_hand(64, cd_isa_vector_bytes(NULL, "llvm"), want, NULL);
    assert_ok(cd_program_select_run(w, &o, &s, &err));
    for (uint32_t k = 0; k < s->n; k++) {
        assert_int_equal(s->task[k].status, CDMPP_OK);
        assert_true(s->task[k].tried >= 1 && s->task[k].tried <= 2);
        assert_true(s->task[k].analytic_s == want[k]);
    }
    cd_program_select_free(s);
}

/* Code for narrow vectors has another best schedule than code for wide ones: that one is tried,
 * whatever vectors the described processor has. */
TEST(test_vectors) {
    const cd_measure_options o = {
        .threads = 1, .jobs = 1, .cache = "", .isa = "sse2", .timing = {.budget_s = 0.01}};
    cd_program_select_options narrow = options(1, 64);
    cd_record_id best[2][8];
    double least[2][8];
    cd_program_select *s;
    uint32_t other = 0;
    if (cd_isa_here() == CD_ISA_AARCH64) skip();
    device.simd_bits = 512;
    by_hand(64, 16, least[0], best[0]);
    by_hand(64, 64, least[1], best[1]);
    assert_ok(cd_measure_open(&o, &narrow.measure, &err));
    assert_ok(cd_program_select_run(w, &narrow, &s, &err));
    for (uint32_t k = 0; k < s->n; k++) {
        assert_int_equal(s->task[k].status, CDMPP_OK);
        assert_true(s->task[k].analytic_s == least[0][k]);
        assert_true(s->task[k].job.id.a == best[0][k].a && s->task[k].job.id.b == best[0][k].b);
        assert_true(!strstr(s->task[k].job.code.text.p, "f32x8") &&
                    !strstr(s->task[k].job.code.text.p, "f32x16"));
        other += best[0][k].a != best[1][k].a;
    }
    assert_true(other > 0);
    cd_program_select_free(s);
    cd_measure_close(narrow.measure);
    device.simd_bits = 256;
}

TEST(test_stop) {
    static const volatile sig_atomic_t stop = 1;
    cd_program_select_options o = options(1, 8);
    double got[8];
    o.stop = &stop;
    assert_status(cd_program_select_estimate(w, &o, got, &err), CDMPP_EINTERRUPTED);
}

TEST(test_faults) {
    const cd_program_select_options o = options(1, 3);
    FAULT_SWEEP(f, 3) {
        double got[8];
        f.step = 17;
        f.st = cd_program_select_estimate(w, &o, got, &f.err);
    }
}

/* A time that is over ends it before anything is built; one that is far away changes nothing. */
TEST(test_until) {
    cd_program_select_options o = options(2, 0);
    cd_program_select *s = NULL;
    o.until_s = cd_clock_wall() - 1;
    assert_status(cd_program_select_run(w, &o, &s, &err), CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "the time is over after 0 of "));
    o.until_s = cd_clock_wall() + 1e6;
    assert_ok(cd_program_select_run(w, &o, &s, &err));
    for (uint32_t k = 0; k < s->n; k++)
        assert_true(s->task[k].status == CDMPP_OK && s->task[k].tried == 2);
    cd_program_select_free(s);
}

TESTS(up, down, test_faults, test_estimate, test_run, test_vectors, test_stop, test_until)
