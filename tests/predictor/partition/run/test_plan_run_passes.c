/* Plans that run on three devices, on OpenCL's, that lose a device, that a device slows: right
 * values, bytes, plans. */
#include "check.h"
#include "made_plan.h"
#include "noopencl.h"
#include "predictor/partition/run/network_run.h"

/* Rows, a product whose view cuts across the tensor, a sum that is joined. */
static mp products(void) {
    mg m = mg_new("made", 13);
    const uint32_t x = mg_in(&m, 3, 3, 4, 10);
    const uint32_t a = mg_op(&m, "Softmax", "axis=2", 1, x);
    const uint32_t b =
        mg_op(&m, "MatMul", "", 2, mg_op(&m, "Reshape", "", 2, a, mg_ints(&m, 2, 12, 10)),
              mg_w(&m, 2, 10, 7));
    mg_end(&m, mg_op(&m, "Softmax", "axis=1", 1, mg_op(&m, "MatMul", "", 2, b, mg_w(&m, 2, 7, 5))));
    return mp_new(&m);
}

/* Two convolutions, one behind the other. */
static mp chain(int channels, int edge) {
    mg m = mg_new("made", 13);
    const uint32_t x = mg_in(&m, 4, 1, channels, edge, edge);
    const uint32_t a =
        mg_op(&m, "Conv", "pads:1,1,1,1", 2, x, mg_w(&m, 4, channels, channels, 3, 3));
    mg_end(&m, mg_op(&m, "Conv", "pads:1,1,1,1", 2, a, mg_w(&m, 4, channels, channels, 3, 3)));
    return mp_new(&m);
}

/* NULL: the first way. */
static void cut_named(const mp *p, cd_shard_plan *q, uint32_t op, const char *name, int64_t at) {
    cd_te_shard_axis *w;
    const uint32_t n = mp_ways(p, op, &q->arena, &w);
    for (uint32_t k = 0; k < n; k++)
        if (!name || !strcmp(w[k].name, name)) {
            mp_cut(q, op, &w[k], 2, &at, 1);
            return;
        }
    fail_msg("operator %u (%s) has no %s; %s first", op, p->net.op[op].type, name ? name : "way",
             n ? w[0].name : "nothing");
}

/* The operators of a type. */
static uint32_t find(const mp *p, const char *type, uint32_t nth) {
    for (uint32_t k = 0; k < p->net.n_op; k++)
        if (strstr(p->net.op[k].type, type) && !nth--) return k;
    fail_msg("no %s", type);
    return 0;
}

static void test_network(void **state) {
    (void)state;
    mp p = products();
    const cd_workload *w = p.loaded.work;
    assert_true(p.net.n_op == w->n_group && p.net.n_tensor == w->n_buffer);
    uint32_t constants = 0, results = 0;
    for (uint32_t t = 0; t < p.net.n_tensor; t++) {
        const cd_shard_net_tensor *x = &p.net.tensor[t];
        constants += x->constant;
        results += x->result;
        assert_true(x->name[0] && x->element_bytes == 4);
        if (x->from != CD_SHARD_NET_OUTSIDE)
            assert_int_equal(p.net.op[x->from].arg[p.net.op[x->from].n_arg - 1], t);
    }
    assert_true(constants == 2 && results == 1);
    for (uint32_t k = 0; k < p.net.n_op; k++) {
        assert_true(p.net.op[k].dag && p.net.op[k].n_arg == p.net.op[k].dag->n_arg &&
                    p.net.op[k].pin == UINT32_MAX);
        for (uint32_t i = 0; i + 1 < p.net.op[k].n_arg; i++) {
            const uint32_t from = p.net.tensor[p.net.op[k].arg[i]].from;
            assert_true(from == CD_SHARD_NET_OUTSIDE || from < k);
        }
    }
    mp_free(&p);
}

static void test_three(void **state) {
    (void)state;
    mp p = products();
    for (uint32_t d = 0; d < 3; d++) mp_device(&p, (const char *[]){"a", "b", "c"}[d], "cpu", 0);
    for (uint32_t turn = 0; turn < 2; turn++) {
        cd_shard_plan *q = mp_plan(&p);
        assert_true(mp_cut_all(&p, q, turn, turn ? 0.6 : 0.2, 3) >= 3);
        const double e = mp_try(&p, q);
        assert_true(e >= 0 && e < 1e-5);
        cd_shard_plan_free(q);
    }
    mp_free(&p);
}

/* A matrix' rows that are no box of the tensor of three dimensions: all of it is brought. */
static void on_opencl(const char *kind, uint32_t memory) {
    mp p = products();
    mp_device(&p, "cpu0", "cpu", 0);
    mp_device(&p, "ocl0", kind, memory);
    cd_shard_plan *q = mp_plan(&p);
    cut_named(&p, q, find(&p, "Softmax", 0), NULL, 1);
    cut_named(&p, q, find(&p, "MatMul", 0), "M", 5);
    cut_named(&p, q, find(&p, "MatMul", 1), "K", 3);
    const double e = mp_try(&p, q);
    assert_true(e >= 0 && e < 1e-5);
    cd_shard_plan_free(q);
    mp_free(&p);
}

static void test_view(void **state) {
    (void)state;
    on_opencl("cpu", 0);
}

static void test_native(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    on_opencl("native", 0);
    on_opencl("native", 1);
}

static void test_kernels(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    on_opencl("opencl", 1);
}

/* Bytes within a memory: parts by channels are copied together for who reads all of them. By rows
 * nothing is. */
static void test_within(void **state) {
    (void)state;
    mp p = chain(4, 6);
    cd_plan_run_result o;
    mp_device(&p, "a", "cpu", 0);
    mp_device(&p, "b", "cpu", 0);
    for (int by_rows = 0; by_rows < 2; by_rows++) {
        cd_shard_plan *q = mp_plan(&p);
        cut_named(&p, q, find(&p, "Conv", 0), by_rows ? "H" : "O", 2);
        if (by_rows) cut_named(&p, q, find(&p, "Conv", 1), "H", 2);
        cd_plan_run *r = mp_open(&p, q);
        assert_true(mp_error(r, &o) == 0 && o.between == 0 &&
                    o.within == (by_rows ? 0 : 4 * 6 * 6 * 4));
        const uint32_t k = find(&p, "Conv", 0);
        assert_true(o.passes >= 3 && o.low_s <= o.median_s && o.median_s <= o.high_s &&
                    o.replans == 0 && o.failures == 0);
        assert_true(o.step[k].seconds > 0 && o.step[k].part_s[0] > 0 && o.step[k].part_s[1] > 0 &&
                    o.step[k].start_s < o.step[k].end_s);
        cd_plan_run_result_free(&o);
        cd_plan_run_close(r);
        cd_shard_plan_free(q);
    }
    mp_free(&p);
}

/* Schedules of whole operators, followed by their parts: weights are cut, then packed. */
static void test_scheduled(void **state) {
    (void)state;
    mp p = chain(8, 6);
    cdmpp_err err = {0};
    cd_schedule_db *book;
    cd_network_run *run;
    cd_shard_cost *cost;
    cd_plan_run *r = NULL;
    mp_device(&p, "a", "cpu", 0);
    mp_device(&p, "b", "cpu", 0);
    assert_ok(cd_schedule_db_new(&book, &err));
    const cd_network_run_options ask = {.schedules = book,
                                        .sampled = book,
                                        .measure = measure,
                                        .target = "llvm -num-cores=1",
                                        .trials = 1,
                                        .budget_s = 0.002};
    assert_ok(cd_network_run_measure(&p.loaded, &ask, &run, &err));
    cd_network_run_free(run);
    assert_ok(cd_shard_cost_new(&(cd_shard_cost_options){.schedules = book,
                                                         .machine = &p.machine,
                                                         .net = &p.net,
                                                         .plain = p.loaded.plain,
                                                         .n_plain = p.loaded.n_plain},
                                &cost, &err));
    for (uint32_t way = 0; way < 2; way++) {
        cd_shard_plan *q = mp_plan(&p);
        cut_named(&p, q, find(&p, "Conv", 0), way ? "I" : "O", 3);
        cut_named(&p, q, find(&p, "Conv", 1), "H", 2);
        const cd_plan_run_options a = {.loaded = &p.loaded,
                                       .net = &p.net,
                                       .machine = &p.machine,
                                       .plan = q,
                                       .cost = cost,
                                       .measure = measure,
                                       .check = true};
        if (cd_plan_run_open(&a, &r, &err)) mp_refused(&err);
        const double e = mp_error(r, NULL);
        if (!(e < 1e-5)) fail_msg("error %g", e);
        cd_plan_run_close(r);
        cd_shard_plan_free(q);
    }
    cd_shard_cost_free(cost);
    cd_schedule_db_free(book);
    mp_free(&p);
}

/* ---- plans by shard_plan, of made-up times ---- */

/* A part takes as long as it makes, or of a sum reads. */
static cdmpp_status made_time(void *ctx, uint32_t op, uint32_t device, const cd_te_shard *part,
                              cd_shard_plan_estimate *out, cdmpp_err *err) {
    const mp *p = ctx;
    (void)device, (void)err;
    double elements = 0;
    const cd_te_dag *d = part ? part->dag : p->net.op[op].dag;
    for (uint32_t k = 0; k < d->n_arg; k++) {
        const cd_te_op *o = &d->op[d->tensor_op[d->arg[k]]];
        double n = 1;
        for (uint32_t i = 0; i < o->rank; i++) n *= (double)o->shape[i];
        elements += n;
    }
    *out = (cd_shard_plan_estimate){.seconds = elements * 1e-6};
    return CDMPP_OK;
}

static cd_shard_plan_options made_ask(const mp *p) {
    const double none = (double)NAN;
    return (cd_shard_plan_options){.net = &p->net,
                                   .machine = &p->machine,
                                   .time = made_time,
                                   .ctx = (void *)(uintptr_t)p,
                                   .margin = none,
                                   .least_s = none,
                                   .cover = none,
                                   .fixed_share = none,
                                   .split = true};
}

static void link_all(mp *p) {
    cdmpp_err err = {0};
    const cd_link_piece piece = {.bytes = 0, .seconds = 1e-6, .s_per_byte = 1e-10};
    for (uint32_t a = 0; a < p->machine.n; a++)
        for (uint32_t b = 0; b < p->machine.n; b++)
            assert_ok(cd_link_table_add(&p->machine.links,
                                        &(cd_link){.from = p->machine.device[a].name,
                                                   .to = p->machine.device[b].name,
                                                   .how = "copy",
                                                   .n = 3,
                                                   .n_piece = 1,
                                                   .piece = &piece},
                                        &err));
}

/* What is copied between memories is what the plan said. */
static void test_between(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    mp p = chain(4, 12);
    cdmpp_err err = {0};
    cd_shard_plan *q = NULL;
    cd_plan_run_result o;
    mp_device(&p, "cpu0", "cpu", 0);
    mp_device(&p, "ocl0", "native", 1);
    link_all(&p);
    const cd_shard_plan_options a = made_ask(&p);
    assert_ok(cd_shard_plan_make(&a, &q, NULL, &err));
    assert_true(q->split);
    int64_t said = 0;
    for (uint32_t k = 0; k < q->n_copy; k++)
        said += q->copy[k].from != q->copy[k].to ? q->copy[k].bytes : 0;
    cd_plan_run *r = mp_open(&p, q);
    assert_true(mp_error(r, &o) < 1e-5);
    assert_true(said > 0);
    assert_int_equal(o.between, said);
    cd_plan_run_result_free(&o);
    cd_plan_run_close(r);
    cd_shard_plan_free(q);
    mp_free(&p);
}

static bool uses(const cd_shard_plan *q, uint32_t device) {
    for (uint32_t k = 0; k < q->n_op; k++)
        for (uint32_t i = 0; i < q->op[k].n_part; i++)
            if (q->op[k].part[i].device == device) return true;
    return false;
}

/* A device fails at each of its actions in turn: the others finish, and nothing wrong comes out. */
static void test_failure(void **state) {
    (void)state;
    mp p = chain(4, 6);
    cdmpp_err err = {0};
    mp_device(&p, "a", "cpu", 0);
    mp_device(&p, "b", "cpu", 0);
    for (uint32_t device = 0; device < 2; device++)
        for (uint32_t after = 0; after < 3; after += 2) {
            cd_shard_plan *q = mp_plan(&p);
            cut_named(&p, q, find(&p, "Conv", 0), "H", 4);
            cut_named(&p, q, find(&p, "Conv", 1), after ? "I" : "O", 3);
            cd_plan_run *r = mp_open(&p, q);
            cd_plan_run_result o;
            assert_true(mp_error(r, NULL) < 1e-5);
            cd_plan_run_break(r, device, after);
            assert_true(mp_error(r, &o) < 1e-5 && o.failures == 1 && o.replans == 1);
            assert_true(!uses(cd_plan_run_now(r), device) && uses(cd_plan_run_now(r), 1 - device));
            cd_plan_run_result_free(&o);
            double e;
            cd_plan_run_break(r, 1 - device, 0);
            assert_int_equal(cd_plan_run_check(r, &e, &err), CDMPP_EBACKEND);
            cd_plan_run_close(r);
            cd_shard_plan_free(q);
        }
    mp_free(&p);
}

/* The same while it is watched, planned anew by times. */
static void test_failure_planned(void **state) {
    (void)state;
    mp p = chain(4, 6);
    cdmpp_err err = {0};
    for (uint32_t d = 0; d < 3; d++) mp_device(&p, (const char *[]){"a", "b", "c"}[d], "cpu", 0);
    cd_shard_plan *q = mp_plan(&p);
    const cd_shard_plan_options again = made_ask(&p);
    cut_named(&p, q, find(&p, "Conv", 0), "H", 4);
    cd_plan_run *r = mp_open(&p, q);
    cd_plan_run_result o;
    cd_plan_run_break(r, 1, 0);
    assert_ok(
        cd_plan_run_watch(r, &again, &(cd_plan_run_watch_options){.drift = 1e9}, 0.002, &o, &err));
    assert_true(o.failures == 1 && o.replans == 1 && o.max_error < 1e-5);
    assert_true(!uses(cd_plan_run_now(r), 1) && uses(cd_plan_run_now(r), 2));
    cd_plan_run_result_free(&o);
    cd_plan_run_close(r);
    cd_shard_plan_free(q);
    mp_free(&p);
}

/* A device gets slower by far: less is given to it, and that is faster. Without that the plan
 * stays. */
static void test_drift(void **state) {
    (void)state;
    mp p = chain(8, 24);
    cdmpp_err err = {0};
    mp_device(&p, "a", "cpu", 0);
    mp_device(&p, "b", "cpu", 0);
    cd_shard_plan *q = mp_plan(&p);
    const cd_shard_plan_options again = made_ask(&p);
    cut_named(&p, q, find(&p, "Conv", 0), "H", 12);
    cut_named(&p, q, find(&p, "Conv", 1), "H", 12);
    mp_place(q, p.net.n_op - 1, 1);
    cd_plan_run *r = mp_open(&p, q);
    cd_plan_run_result o;
    assert_ok(
        cd_plan_run_watch(r, &again, &(cd_plan_run_watch_options){.drift = 40}, 0.02, &o, &err));
    assert_true(o.replans == 0 && o.max_error < 1e-5 && o.passes >= 3);
    cd_plan_run_result_free(&o);
    cd_plan_run_slow(r, 1, 100);
    assert_ok(cd_plan_run_passes(r, 0.05, &o, &err));
    const double stayed = o.median_s;
    cd_plan_run_result_free(&o);
    unsigned replans = 0;
    for (int k = 0; k < 20 && !replans; k++) { /* others may disturb the device that is not slow */
        if (k) cd_plan_run_result_free(&o);
        assert_ok(cd_plan_run_watch(
            r, &again, &(cd_plan_run_watch_options){.drift = 4, .patience = 4}, 0.05, &o, &err));
        replans += o.replans;
    }
    assert_true(replans && o.failures == 0 && o.max_error < 1e-5);
    if (!(o.median_s < 0.7 * stayed)) fail_msg("%g s, %g s by the plan before", o.median_s, stayed);
    cd_plan_run_result_free(&o);
    cd_plan_run_close(r);
    cd_shard_plan_free(q);
    mp_free(&p);
}

static void test_compare(void **state) {
    (void)state;
    mp p = chain(4, 6);
    cdmpp_err err = {0};
    mp_device(&p, "a", "cpu", 0);
    mp_device(&p, "b", "cpu", 0);
    cd_shard_plan *q[2] = {mp_plan(&p), mp_plan(&p)};
    cut_named(&p, q[1], find(&p, "Conv", 0), "H", 3);
    cd_plan_run *r[2] = {mp_open(&p, q[0]), mp_open(&p, q[1])};
    double s[2];
    cd_plan_run_slow(r[1], 0, 1000);
    assert_ok(cd_plan_run_compare(r, 2, 0.02, s, &err));
    assert_true(s[0] > 0 && s[0] < s[1]);
    for (int k = 0; k < 2; k++) cd_plan_run_close(r[k]), cd_shard_plan_free(q[k]);
    mp_free(&p);
}

static cdmpp_status refused(const mp *p, const cd_shard_plan *q, cdmpp_err *err) {
    cd_plan_run *r = NULL;
    const cd_plan_run_options a = {.loaded = &p->loaded,
                                   .net = &p->net,
                                   .machine = &p->machine,
                                   .plan = q,
                                   .measure = measure};
    return cd_plan_run_open(&a, &r, err);
}

static void test_errors(void **state) {
    (void)state;
    mp_needs_processor_0();
    mp p = chain(4, 6);
    cdmpp_err err = {0};
    double e;
    mp_device(&p, "a", "cpu", 0);
    mp_device(&p, "m", "model", 0);
    cd_shard_plan *q = mp_plan(&p);
    const uint32_t conv = find(&p, "Conv", 0);
    cd_plan_run *r = NULL;
    const cd_plan_run_options a = {
        .loaded = &p.loaded, .net = &p.net, .machine = &p.machine, .plan = q, .measure = measure};
    assert_ok(cd_plan_run_open(&a, &r, &err));
    assert_int_equal(cd_plan_run_check(r, &e, &err), CDMPP_EUSAGE);
    cd_plan_run_close(r);
    mp_place(q, conv, 1);
    assert_int_equal(refused(&p, q, &err), CDMPP_EBACKEND);
    assert_non_null(strstr(err.msg, "description alone"));
    mp_place(q, conv, 7);
    assert_int_equal(refused(&p, q, &err), CDMPP_EINVALID);
    cut_named(&p, q, conv, "H", 3);
    cd_shard_plan_part *part = (cd_shard_plan_part *)(uintptr_t)q->op[conv].part;
    part[1].device = 0;
    part[1].lo = 4;
    assert_int_equal(refused(&p, q, &err), CDMPP_EINVALID);
    part[1].lo = 3;
    part[1].hi = 5;
    assert_int_equal(refused(&p, q, &err), CDMPP_EINVALID);
    part[1].hi = 6;
    q->op[conv].axis = 77;
    assert_int_equal(refused(&p, q, &err), CDMPP_EINVALID);
    q->n_op--;
    assert_int_equal(refused(&p, q, &err), CDMPP_EINVALID);
    q->n_op++;
    q->device[0] = "else";
    assert_int_equal(refused(&p, q, &err), CDMPP_EINVALID);
    cd_shard_plan_free(q);
    mp_free(&p);
}

TESTS(up, down, test_network, test_three, test_view, test_native, test_kernels, test_within,
      test_scheduled, test_between, test_failure, test_failure_planned, test_drift, test_compare,
      test_errors)
