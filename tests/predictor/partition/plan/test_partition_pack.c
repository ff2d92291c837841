/* A network of small branches packed onto two units: the plan by a cost model, the run with all its
 * ways, and what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "made_onnx.h"
#include "scratch.h"
#include "base/io/io.h"
#include "predictor/partition/report/report.h"
#include "profiler/host/host.h"

static const char *const model[] = {"tests/golden/model_v1.cdmpp"};
static const char *const as[] = {"zen5-avx2"};
static const char *const target[] = {"llvm"};
static const char *path;

static int up(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_buf b = {0};
    mo_randwire(&b, 1, 9, 8, 6);
    path = strdup(scratch("randwire.onnx"));
    const cdmpp_status st = path && setenv("XDG_CACHE_HOME", scratch("cache"), 1) == 0
                                ? cd_file_write(path, b.p, b.n, &err)
                                : CDMPP_ENOMEM;
    cd_buf_free(&b);
    return st != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    free((void *)(uintptr_t)path);
    return 0;
}

static cd_partition_pack_options ask(uint32_t units, bool run) {
    cd_partition_pack_options o = {.network = cd_partition_defaults(), .units = units};
    o.network.network = path;
    o.network.cost_model = (cd_texts){.v = (const char **)(uintptr_t)model, .n = 1};
    o.network.as = (cd_texts){.v = (const char **)(uintptr_t)as, .n = 1};
    o.network.target = (cd_texts){.v = (const char **)(uintptr_t)target, .n = 1};
    o.network.devices = "cpu0";
    o.network.trials = 2;
    o.network.ignore_load = true;
    o.network.run = run;
    o.network.budget_s = 0.01;
    return o;
}

/* The parts of an operator are its seconds, and the plan is the best of cutting them. */
static void a_plan(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const cd_partition_pack_options o = ask(3, false);
    cd_partition_pack p = {0};
    cd_pack_calls again;
    cd_buf text = {0}, json = {0};
    assert_ok(cd_partition_pack_make(&o, &p, &err));
    uint32_t several = 0;
    double sum = 0;
    for (uint32_t k = 0; k < p.net.n_work; k++) {
        const cd_pack_work *w = &p.net.work[k];
        cd_shard_plan_estimate t = {0};
        double seconds = 0;
        for (uint32_t i = 0; i < w->n_part; i++)
            seconds += w->part[i].seconds, several += w->part[i].iterations > 1;
        assert_ok(cd_shard_cost_time(p.of.cost, p.group[k], 0, NULL, &t, &err));
        assert_true(fabs(seconds - t.seconds) <= 1e-12);
        sum += seconds;
        for (uint32_t e = 0; e < w->n_after; e++) assert_true(p.net.after[w->first + e] < k);
    }
    assert_true(p.net.n_work > 18 && several > 18 && fabs(sum - p.calls.work_s) < 1e-9);
    assert_ok(cd_pack_cut(&p.net, &again, &err));
    assert_true(again.makespan_s == p.calls.makespan_s &&
                p.way[CD_PACK_PLAN].predicted_s == p.calls.makespan_s &&
                p.calls.makespan_s < p.calls.single_s);
    assert_true(!p.ran && isnan(p.way[CD_PACK_MEASURED_PLAN].predicted_s));
    cd_partition_report_pack(&p, &text);
    cd_partition_report_pack_json(&p, &json);
    assert_non_null(strstr(text.p, "on 3 units like cpu0 (zen5-avx2)"));
    assert_non_null(strstr(text.p, "predicted: packed "));
    assert_null(strstr(text.p, "by measured times"));
    assert_non_null(strstr(json.p, "\"units\":3,"));
    cd_buf_free(&text);
    cd_buf_free(&json);
    cd_pack_calls_free(&again);
    cd_partition_pack_free(&p);
}

/* Whatever the load is, the values are those of one thread, and the fastest way is kept. */
static void a_run(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const cd_partition_pack_options o = ask(2, true);
    cd_partition_pack p = {0};
    cd_buf text = {0};
    if (cd_affinity_count() < 2) skip();
    assert_ok(cd_partition_pack_make(&o, &p, &err));
    assert_true(p.ran);
    for (int k = 0; k < CD_PACK_WAYS; k++) {
        const cd_executor_way_time *t = &p.way[k].ran;
        assert_true(t->turns >= 9 && t->best_s > 0 && t->best_s <= t->median_s &&
                    t->low_s <= t->median_s && t->median_s <= t->high_s);
        assert_int_equal(t->differ, 0);
        assert_true(p.way[p.kept].ran.median_s <= t->median_s);
    }
    assert_int_equal(p.way[CD_PACK_ONE_THREAD].ran.calls, p.net.n_work);
    assert_int_equal(p.way[CD_PACK_ONE_THREAD].ran.waits, 0);
    assert_true(p.way[CD_PACK_ONE_BEHIND_THE_OTHER].ran.waits > 18);
    assert_int_equal(p.way[CD_PACK_PLAN].ran.calls, p.calls.first[2]);
    /* what a unit has waited for it does not wait for again */
    assert_true(p.way[CD_PACK_PLAN].ran.waits <= p.calls.n_wait);
    for (uint32_t k = 0; k < p.net.n_work; k++)
        assert_int_equal(p.measured.work[k].n_part, p.net.work[k].n_part);
    cd_partition_report_pack(&p, &text);
    assert_non_null(strstr(text.p, "values: equal"));
    assert_non_null(strstr(text.p, "kept: "));
    cd_buf_free(&text);
    cd_partition_pack_free(&p);
}

/* tests/cli/data/randwire.onnx is what the writer writes. */
static void the_file_of_the_command_tests(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_buf want = {0};
    char *have;
    size_t n;
    mo_randwire(&want, 1, 32, 32, 8);
    assert_ok(cd_file_read("tests/cli/data/randwire.onnx", 1 << 20, &have, &n, &err));
    assert_int_equal(n, want.n);
    assert_memory_equal(have, want.p, n);
    cd_buf_free(&want);
    cd_mem_free(have);
}

static void refused(void **state) {
    (void)state;
    cdmpp_err err = {0};
    const cd_partition_pack_options o = ask((uint32_t)cd_affinity_count() + 1, true);
    cd_partition_pack p = {0};
    assert_status(cd_partition_pack_make(&o, &p, &err), CDMPP_EUSAGE);
    assert_non_null(strstr(err.msg, "this process may use"));
    cd_partition_pack_free(&p);
}

TESTS(up, down, a_plan, a_run, the_file_of_the_command_tests, refused)
