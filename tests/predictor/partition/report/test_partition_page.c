/* The page and the trace of a plan: the data of the page read back, beside the plan and its
 * replay. */
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "made_snet_kinds.h"
#include "predictor/partition/plan/partition_internal.h"
#include "predictor/partition/report/report.h"
#include "predictor/replay/replay.h"
#include "tmp.h"

enum { OPS = 5 };
static tmp_dir dir;
static ms_net m;
static cd_partition p;
static cd_partition_options o;

/* A chain on two devices alike, which the plan splits. */
static int set_up(void **state) {
    dir = tmp_make();
    if (ms_up(state)) return 1;
    o = cd_partition_defaults();
    p = (cd_partition){.o = &o};
    ms_begin(&m, 1);
    uint32_t t = ms_tensor(&m, 2, ms_shape, CD_SHARD_NET_OUTSIDE, false);
    for (int i = 0; i < OPS; i++) t = ms_op(&m, &kinds, MS_DENSE, t, t);
    m.tensor[t].result = true;
    assert_ok(ms_machine(&m, 2, NULL, 0, 0, &err));
    const cd_shard_plan_options a = ms_ask(&m);
    assert_ok(cd_shard_plan_make(&a, &p.plan, &p.base, &err));
    p.n_base = p.plan->n_base, p.machine = m.machine, p.net = m.net;
    return 0;
}

static int tear_down(void **state) {
    cd_shard_plan_free_all(p.base, p.n_base);
    cd_shard_plan_free(p.plan);
    ms_free(&m);
    tmp_remove(&dir);
    return ms_down(state);
}

static const cd_json *page(cd_arena *a) {
    static const char begin[] = "id=\"data\">", end[] = "</script>";
    const char *file = tmp_path(&dir, "page.html");
    char *text;
    size_t n;
    const cd_json *root;
    assert_ok(cd_partition_report_html(&p, file, &err));
    assert_ok(cd_file_read(file, 0, &text, &n, &err));
    const char *from = strstr(text, begin);
    assert_non_null(from);
    from += sizeof begin - 1;
    n = (size_t)(strstr(from, end) - from);
    assert_ok(cd_json_parse(a, cd_str_dup(a, (cd_str){from, n}), n, &root, &err));
    cd_mem_free(text);
    return root;
}

static const cd_json *at(const cd_json *list, uint32_t k) {
    const cd_json *v = list->u.child;
    while (k--) v = v->next;
    return v;
}

static double number(const cd_json *v) {
    double x;
    if (v->kind == CD_JSON_BOOL) return (double)v->u.i;
    assert_ok(cd_json_real_or_nan(v, &x, &err));
    return x;
}
static double member(const cd_json *object, const char *key) {
    const cd_json *v = cd_json_get(object, key);
    if (!v) fail_msg("no key %s", key);
    return number(v);
}
static bool text_is(const cd_json *object, const char *key, const char *text) {
    const cd_json *v = cd_json_get(object, key);
    return v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, text);
}

/* Slices of a case: as the replay of its plan has them. */
static void check_slices(const cd_json *c, const cd_shard_plan *plan) {
    cd_arena a = {0};
    cd_replay_net net;
    cd_replay r = {0};
    const cd_json *ops = cd_json_get(c, "ops");
    assert_ok(cd_shard_plan_replay(plan, &p.net, &p.machine, &a, &net, &err));
    assert_ok(cd_replay_run(&net, &r, &err));
    assert_int_equal(cd_json_get(ops, "name")->n, net.n_op);
    for (uint32_t k = 0; k < net.n_op; k++) {
        const cd_json *after = at(cd_json_get(ops, "after"), k);
        bool critical = false;
        for (uint32_t i = 0; i < r.n_path; i++) critical = critical || r.path[i] == k;
        assert_true(cd_str_is(at(cd_json_get(ops, "name"), k)->u.s, net.op[k].name));
        assert_close(number(at(cd_json_get(ops, "start"), k)), 1e9 * r.op[k].start_s, 0, 0.51);
        assert_close(number(at(cd_json_get(ops, "end"), k)), 1e9 * r.op[k].end_s, 0, 0.51);
        assert_true(number(at(cd_json_get(ops, "lane"), k)) == net.op[k].device &&
                    number(at(cd_json_get(ops, "worker"), k)) == r.op[k].worker);
        assert_true(number(at(cd_json_get(ops, "critical"), k)) == critical);
        assert_int_equal(after->n, net.op[k].n_after);
        for (uint32_t i = 0; i < after->n; i++)
            assert_true(number(at(after, i)) == net.after[net.op[k].first + i]);
        const double of = number(at(cd_json_get(ops, "of"), k));
        const char *name = of >= 0 ? plan->op[(uint32_t)of].name : "";
        assert_true(!strncmp(net.op[k].name, name, strlen(name)));
        for (uint32_t i = 0; i < plan->n_op && of < 0; i++)
            assert_int_not_equal(
                strncmp(net.op[k].name, plan->op[i].name, strlen(plan->op[i].name)), 0);
    }
    cd_replay_free(&r);
    cd_arena_free(&a);
}

TEST(cases_are_the_plan_and_its_baselines) {
    cd_arena a = {0};
    p.plan->base[1].measured_s = 0.75, p.plan->measured_s = 0.5;
    const cd_json *root = page(&a), *list = cd_json_get(root, "cases");
    assert_int_equal(list->n, 1 + p.plan->n_base);
    assert_true(text_is(at(list, 0), "name", "the plan"));
    assert_true(member(at(list, 0), "measured") == 0.5);
    assert_close(member(at(list, 0), "predicted"), p.plan->predicted_s, 1e-8, 0);
    check_slices(at(list, 0), p.plan);
    for (uint32_t k = 0; k < p.plan->n_base; k++) {
        const cd_json *c = at(list, 1 + k);
        assert_true(text_is(c, "name", p.plan->base[k].name));
        assert_close(member(c, "predicted"), p.plan->base[k].predicted_s, 1e-8, 0);
        if (p.base[k]) check_slices(c, p.base[k]);
    }
    assert_true(member(at(list, 2), "measured") == 0.75);
    p.plan->base[1].measured_s = p.plan->measured_s = NAN;
    p.plan->base[0].predicted_s = INFINITY; /* cannot be: no slices */
    assert_null(cd_json_get(at(cd_json_get(page(&a), "cases"), 1), "ops"));
    cd_arena_free(&a);
}

TEST(operators_and_headline) {
    static cd_plan_run_step step[OPS];
    cd_arena a = {0};
    for (int k = 0; k < OPS; k++) step[k].seconds = 10 + k;
    p.run = (cd_partition_run_result){.done = true, .max_error = 0.125, .now.step = step};
    const cd_json *root = page(&a), *list = cd_json_get(root, "operators");
    assert_true(text_is(root, "network", p.plan->network) &&
                text_is(root, "verdict", p.plan->verdict));
    assert_true(member(root, "error") == 0.125 && member(root, "split") == p.plan->split &&
                member(root, "batch") == (double)p.plan->batch);
    assert_close(member(root, "ceiling"), p.plan->ceiling, 1e-8, 0);
    assert_close(member(root, "rho"), p.plan->rho, 1e-8, 0);
    assert_close(member(root, "alone"), cd_partition_alone_s(&p, false), 1e-8, 0);
    assert_int_equal(cd_json_get(root, "devices")->n, 2);
    assert_int_equal(list->n, OPS);
    for (uint32_t k = 0; k < OPS; k++) {
        const cd_shard_plan_op *op = &p.plan->op[k];
        const cd_json *x = at(list, k);
        assert_true(text_is(x, "name", op->name) && text_is(x, "type", op->type) &&
                    text_is(x, "why", op->why) && member(x, "parts") == op->n_part &&
                    member(x, "measured") == 10 + k);
        assert_close(member(x, "seconds"), op->seconds, 1e-8, 0);
        assert_close(member(x, "exchange"), op->exchange_s, 1e-8, 0);
        assert_close(member(x, "ceiling"), op->ceiling, 1e-8, 0);
        for (uint32_t d = 0; d < 2; d++)
            assert_close(number(at(cd_json_get(x, "alone"), d)), op->alone_s[d], 1e-8, 0);
    }
    const cd_json *foot = cd_json_get(root, "foot");
    assert_non_null(memmem(foot->u.s.p, foot->u.s.n, "; the machine was not measured", 30));
    p.run.now.replans = 1, o.machine = "machine.json"; /* the times are of another plan */
    root = page(&a);
    assert_null(cd_json_get(at(cd_json_get(root, "operators"), 0), "measured"));
    foot = cd_json_get(root, "foot");
    assert_null(memmem(foot->u.s.p, foot->u.s.n, "measured", 8));
    p.run = (cd_partition_run_result){0}, o.machine = NULL;
    assert_null(cd_json_get(at(cd_json_get(page(&a), "operators"), 0), "measured"));
    cd_arena_free(&a);
}

TEST(a_trace) {
    const char *path = tmp_path(&dir, "trace.json");
    cd_arena a = {0};
    char *text;
    size_t n;
    const cd_json *root;
    assert_ok(cd_partition_report_trace(&p, path, &err));
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    assert_ok(cd_json_parse(&a, text, n, &root, &err));
    assert_true(cd_json_get(root, "traceEvents")->n > OPS);
    cd_mem_free(text);
    cd_arena_free(&a);
    assert_status(cd_partition_report_trace(&p, "/nowhere/trace.json", &err), CDMPP_EIO);
}

TESTS(set_up, tear_down, operators_and_headline, cases_are_the_plan_and_its_baselines, a_trace)
