/* A small network, from its graph to the times of its groups. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_graph.h"
#include "base/text/text.h"
#include "features/sketch/sketch.h"
#include "profiler/runtime/single/single.h"

typedef struct {
    gm m;
    cd_workload *w;
    cd_program_select *p;
    cd_measure *measure;
} fixture;

static void net(gm *m) {
    uint32_t x = gm_add(m, "Conv", "pads=1,1,1,1", gm_x(m, 1, 8, 20, 20), gm_w(m, 16, 8, 3, 3));
    x = gm_add(m, "MaxPool", "kernel_shape=2,2 strides=2,2", gm_add(m, "Relu", "", x));
    x = gm_add(m, "Gemm", "transB=1", gm_add(m, "Flatten", "", x), gm_w(m, 10, 1600), gm_w(m, 10));
    assert_int_equal(m->st, CDMPP_OK);
    assert_int_equal(cd_graph_result(m->g, x, &m->err), CDMPP_OK);
}

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    const cd_measure_options o = {
        .threads = 1, .jobs = 1, .cache = "", .timing = {.budget_s = 0.01}};
    assert_ok(cd_measure_open(&o, &f.measure, &err));
    assert_ok(cd_graph_new("small", &f.m.g, &err));
    net(&f.m);
    const cd_hardware hw = cd_target_hardware(false, 1, 32);
    assert_ok(cd_workload_build(f.m.g, &(cd_workload_options){.target = "llvm", .hardware = &hw},
                                &f.w, &err));
    const cd_program_select_options po = {
        .trials = 2, .target = "llvm", .hardware = hw, .threads = 1, .measure = f.measure};
    assert_ok(cd_program_select_run(f.w, &po, &f.p, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_program_select_free(f->p);
    cd_workload_free(f->w);
    cd_graph_free(f->m.g);
    cd_measure_close(f->measure);
    return 0;
}

static cd_op_profile *run(const fixture *f, cd_op_profile_options o) {
    cd_op_profile *n = NULL;
    cdmpp_err err = {0};
    o.threads = 1;
    o.budget_s = 0.05;
    const cdmpp_status st = cd_op_profile_run(f->w, f->p, &o, &n, &err);
    if (st) fail_msg("%s %s", err.key, err.msg);
    return n;
}

static void test_times(void **state) {
    const fixture *f = *state;
    for (uint32_t k = 0; k < f->p->n; k++) {
        assert_int_equal(f->p->task[k].status, CDMPP_OK);
        assert_true(f->p->task[k].tried >= 1 && f->p->task[k].item.out.time.median_s > 0);
    }
    cd_op_profile *n = run(f, (cd_op_profile_options){0});
    double share = 0, place = 0;
    int64_t most = 0;
    assert_int_equal(n->n_ran, f->w->n_group);
    for (uint32_t k = 0; k < n->n; k++) {
        const cd_op_profile_group *g = &n->group[k];
        assert_true(g->ran && g->alone_s > 0 && g->place_s > 0 && g->read > 0 && g->written > 0);
        assert_int_equal(g->key, g->share >= 0.01);
        share += g->share;
        place += g->place_s;
        most = g->bytes.live > most ? g->bytes.live : most;
    }
    assert_int_equal(most, n->memory.inner_least);
    assert_true(fabs(share - 1) < 1e-9);
    /* The parts, each with a look at the clock, against the whole: other processes may disturb
     * either. */
    assert_true(n->pass.min_s < 50 * place && n->pass.min_s > place / 50);
    assert_true(n->memory.weights >= 4 * (16 * 8 * 9 + 16000) &&
                n->memory.all > n->memory.weights && n->rss_peak > n->memory.all / 2);
    cd_op_profile_free(n);
}

/* The fewest groups that reach the cover are keys. */
static void test_cover(void **state) {
    const fixture *f = *state;
    cd_op_profile *n = run(f, (cd_op_profile_options){.cover = 0.5});
    double keys = 0, least = 1;
    for (uint32_t k = 0; k < n->n; k++) {
        if (!n->group[k].key) continue;
        keys += n->group[k].share;
        least = n->group[k].share < least ? n->group[k].share : least;
    }
    assert_true(keys >= 0.5 - 1e-12 && keys - least < 0.5);
    cd_op_profile_free(n);
}

static void test_reports(void **state) {
    const fixture *f = *state;
    cd_op_profile *n = run(f, (cd_op_profile_options){0});
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *j, *groups;
    assert_ok(cd_op_profile_json(&b, f->w, f->p, n, &err));
    assert_ok(cd_json_parse(&a, b.p, b.n, &j, &err));
    groups = cd_json_get(j, "groups");
    assert_non_null(groups);
    cd_buf_clear(&b);
    assert_ok(cd_op_profile_csv(&b, f->w, f->p, n, true, &err));
    assert_memory_equal(b.p, "op_name,op_time,op_proportion\n", 30);
    assert_non_null(strstr(b.p, "Conv_Relu,"));
    cd_buf_clear(&b);
    assert_ok(cd_op_profile_csv(&b, f->w, f->p, n, false, &err));
    size_t lines = 0;
    for (size_t i = 0; i < b.n; i++) lines += b.p[i] == '\n';
    assert_int_equal(lines, n->n + 1);
    cd_buf_clear(&b);
    assert_ok(cd_op_profile_text(&b, f->w, f->p, n, false, &err));
    assert_non_null(strstr(b.p, "small: "));
    cd_buf_free(&b);
    cd_arena_free(&a);
    cd_op_profile_free(n);
}

/* A group whose task has no program is left out, and what it made is there all the same. */
static void test_left_out(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    const cdmpp_status was = f->p->task[0].status;
    f->p->task[0].status = CDMPP_EUNSUPPORTED;
    cd_op_profile *n = run(f, (cd_op_profile_options){0});
    assert_true(n->n_ran < n->n);
    cd_op_profile_free(n);
    for (uint32_t k = 0; k < f->p->n; k++) f->p->task[k].status = CDMPP_EUNSUPPORTED;
    assert_int_equal(cd_op_profile_run(f->w, f->p, &(cd_op_profile_options){0}, &n, &err),
                     CDMPP_EBACKEND);
    for (uint32_t k = 0; k < f->p->n; k++) f->p->task[k].status = was;
}

/* A product of two activations: its schedule's packed operand stays row-major, and the values are
 * right. */
static void test_unpacked(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    gm m = {0};
    cd_workload *w;
    cd_program_select *p;
    cd_op_profile *n;
    assert_ok(cd_graph_new("attention", &m.g, &err));
    const uint32_t x = gm_add(&m, "Relu", "", gm_x(&m, 2, 24, 32)),
                   y = gm_add(&m, "Sigmoid", "", gm_x(&m, 2, 32, 40));
    assert_ok(cd_graph_result(m.g, gm_add(&m, "Relu", "", gm_add(&m, "MatMul", "", x, y)), &err));
    const cd_hardware hw = cd_target_hardware(false, 1, 32);
    assert_ok(cd_workload_build(m.g, &(cd_workload_options){.target = "llvm", .hardware = &hw}, &w,
                                &err));
    const cd_program_select_options po = {.trials = 3,
                                          .reference = true,
                                          .target = "llvm",
                                          .hardware = hw,
                                          .threads = 1,
                                          .measure = f->measure};
    assert_ok(cd_program_select_run(w, &po, &p, &err));
    uint32_t unpacked = 0;
    for (uint32_t k = 0; k < p->n; k++) {
        assert_int_equal(p->task[k].status, CDMPP_OK);
        assert_true(p->task[k].item.out.flags & CD_MEASURE_CHECKED);
        unpacked += p->task[k].unpacked;
    }
    assert_int_equal(unpacked, 1);
    assert_ok(cd_op_profile_run(
        w, p, &(cd_op_profile_options){.threads = 1, .budget_s = 0.02, .check = true}, &n, &err));
    assert_true(n->max_error >= 0 && n->max_error < 1e-5 && n->n_ran == w->n_group);
    cd_op_profile_free(n);
    cd_program_select_free(p);
    cd_workload_free(w);
    cd_graph_free(m.g);
}

TESTS(up, down, test_times, test_cover, test_reports, test_left_out, test_unpacked)
