/* What a partition prints, from one whose every number is another one: text line by line, JSON key
 * by key. */
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "check.h"
#include "predictor/partition/report/report.h"

static cdmpp_err err;

/* ---- a partition: two devices of two memories, three operators, the first split ---- */
enum { OPS = 3, BASES = 4 };
static cd_shard_plan_part part0[] = {{0, 0, 3, 0.25}, {1, 3, 8, 0.375}};
static cd_shard_plan_part part1[] = {{1, 0, 0, 0.5}};
static cd_shard_plan_part part2[] = {{0, 0, 0, 1}};
static const double alone0[] = {1, 2}, alone1[] = {INFINITY, 0.5}, alone2[] = {1, 4};
static cd_shard_plan_op op[OPS];
static const char *device[] = {"cpu0", "ocl0"};
static cd_shard_plan_copy copy[] = {{0, 0, 1, 2048, 0.125, 0},
                                    {1, 1, 0, 0, 0.0625, 1},
                                    {2, 0, 0, 1024, 0.25, 1},
                                    {3, 1, 0, 4096, 0.5, OPS}};
static cd_shard_plan_baseline base[BASES];
static cd_shard_plan plan;
static cd_shard_net_op net_op[OPS] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
static cd_plan_run_step step[OPS] = {{.seconds = 11, .start_s = 12, .end_s = 13},
                                     {.seconds = 14, .start_s = 15, .end_s = 16},
                                     {.seconds = 17, .start_s = 18, .end_s = 19}};
static uint32_t where[] = {1, 1, 0};
static cd_partition_options options;
static cd_partition p;

static void make(void) {
    op[0] = (cd_shard_plan_op){.name = "a",
                               .type = "Conv",
                               .key = "k",
                               .dim = "H",
                               .reduce = true,
                               .n_part = 2,
                               .part = part0,
                               .join = 1,
                               .join_s = 0.5,
                               .seconds = 0.75,
                               .exchange_s = 0.125,
                               .alone_s = alone0,
                               .ceiling = 1.5,
                               .why = "because of a"};
    op[1] = (cd_shard_plan_op){.name = "b",
                               .type = "Add",
                               .key = "k",
                               .dim = "",
                               .n_part = 1,
                               .part = part1,
                               .join = UINT32_MAX,
                               .seconds = 0.5,
                               .exchange_s = 0.25,
                               .alone_s = alone1,
                               .ceiling = 1,
                               .why = ""};
    op[2] = (cd_shard_plan_op){.name = "c",
                               .type = "Conv",
                               .key = "k",
                               .dim = "",
                               .n_part = 1,
                               .part = part2,
                               .join = UINT32_MAX,
                               .seconds = 1,
                               .exchange_s = 0,
                               .alone_s = alone2,
                               .ceiling = 4,
                               .why = ""};
    base[0] = (cd_shard_plan_baseline){"cpu0", 6, 8};
    base[1] = (cd_shard_plan_baseline){"ocl0", 5, 10};
    base[2] = (cd_shard_plan_baseline){"equal", 3, 2};
    base[3] = (cd_shard_plan_baseline){"greedy", INFINITY, NAN};
    plan = (cd_shard_plan){.network = "net",
                           .batch = 16,
                           .n_device = 2,
                           .n_op = OPS,
                           .n_copy = 4,
                           .n_base = BASES,
                           .device = device,
                           .op = op,
                           .copy = copy,
                           .base = base,
                           .predicted_s = 2.5,
                           .low_s = 2,
                           .high_s = 3.5,
                           .bound_s = 2.25,
                           .measured_s = 4,
                           .predicted_gain = 2,
                           .measured_gain = 2.125,
                           .ceiling = 3,
                           .rho = 1.25,
                           .exact = true,
                           .split = true,
                           .verdict = "split 1 of 3"};
    options = cd_partition_defaults();
    p = (cd_partition){
        .o = &options, .plan = &plan, .net = {.n_op = OPS, .op = net_op}, .n_base = BASES};
    p.machine.n = 2;
    p.machine.device[0] = (cd_machine_device){.name = "cpu0",
                                              .kind = "cpu",
                                              .as = "zen",
                                              .times = 1,
                                              .launch_s = 31,
                                              .sync_s = 32,
                                              .wake_s = 33};
    p.machine.device[1] = (cd_machine_device){.name = "ocl0",
                                              .kind = "opencl",
                                              .as = "ocl0",
                                              .times = 30,
                                              .memory = 1,
                                              .launch_s = 34,
                                              .sync_s = 35,
                                              .wake_s = 36};
}

static void add_all(void) {
    p.has_placed = true;
    p.placed = (cd_place_plan){.where = where,
                               .cost = {.sum_s = 41, .makespan_s = 42, .n_copy = 43},
                               .bound_s = 44,
                               .exact = true,
                               .method = "minimum cut"};
    p.run.done = true, p.run.max_error = 0.03125, p.run.left_out = 51, p.run.others = 0.25;
    p.run.now = (cd_plan_run_result){.median_s = 52,
                                     .low_s = 53,
                                     .high_s = 54,
                                     .passes = 55,
                                     .step = step,
                                     .between = 56,
                                     .within = 57,
                                     .replans = 58,
                                     .failures = 59};
}

/* ---- the best device alone ---- */
static void test_best_alone(void **state) {
    uint32_t d;
    (void)state;
    make();
    /* not the slower of the devices, nor what is no device */
    assert_close(cd_partition_alone_s(&p, false), 5, 0, 0);
    assert_close(cd_partition_alone_s(&p, true), 8, 0, 0);
    base[1].predicted_s = INFINITY, base[0].measured_s = NAN;
    assert_close(cd_partition_alone_s(&p, false), 6, 0, 0);
    assert_close(cd_partition_alone_s(&p, true), 10, 0, 0);
    base[1].measured_s = NAN;
    assert_true(isnan(cd_partition_alone_s(&p, true)));
    assert_close(cd_partition_best_s(&plan, &op[0], &d), 1, 0, 0);
    assert_int_equal(d, 0);
    assert_close(cd_partition_best_s(&plan, &op[1], &d), 0.5, 0, 0);
    assert_int_equal(d, 1);
}

/* ---- JSON ---- */
typedef struct {
    const char *key;
    double value; /* NaN: null */
} want;

static void object_is(const cd_json *o, const want *w, size_t n) {
    for (size_t k = 0; k < n; k++) {
        const cd_json *v = cd_json_get(o, w[k].key);
        double got = NAN;
        if (!v) fail_msg("no key %s", w[k].key);
        if (v->kind == CD_JSON_BOOL) got = (double)v->u.i;
        else assert_ok(cd_json_real_or_nan(v, &got, &err));
        if (isnan(w[k].value) ? !isnan(got) : !(fabs(got - w[k].value) < 1e-12))
            fail_msg("%s is %.17g, not %g", w[k].key, got, w[k].value);
    }
}
#define IS(o, ...)                                                                                 \
    object_is((o), (const want[]){__VA_ARGS__}, sizeof((const want[]){__VA_ARGS__}) / sizeof(want))

static void text_is(const cd_json *o, const char *key, const char *text) {
    cd_str s;
    assert_ok(cd_json_need_str(o, key, &s, &err));
    if (!cd_str_is(s, text)) fail_msg("%s is %.*s", key, (int)s.n, s.p);
}

static const cd_json *at(const cd_json *list, int k) {
    const cd_json *v = list->u.child;
    while (k-- > 0) v = v->next;
    return v;
}

static const cd_json *json_of(cd_arena *a, cd_buf *b) {
    const cd_json *root;
    cd_buf_clear(b);
    cd_partition_report_json(&p, b);
    assert_ok(cd_json_parse(a, b->p, b->n, &root, &err));
    return root;
}

static void test_json(void **state) {
    cd_arena a = {0};
    cd_buf b = {0};
    (void)state;
    make();
    const cd_json *o = json_of(&a, &b);
    IS(o, {"batch", 16}, {"predicted_s", 2.5}, {"low_s", 2}, {"high_s", 3.5}, {"measured_s", 4},
       {"predicted_gain", 2}, {"measured_gain", 2.125}, {"ceiling", 3}, {"rho", 1.25},
       {"bound_s", 2.25}, {"exact", 1}, {"split", 1});
    text_is(o, "network", "net");
    text_is(o, "verdict", "split 1 of 3");
    const cd_json *d = cd_json_get(o, "devices"), *x = cd_json_get(o, "baselines");
    assert_int_equal(d->n, 2);
    IS(at(d, 0), {"times", 1}, {"launch_s", 31}, {"sync_s", 32}, {"wake_s", 33});
    IS(at(d, 1), {"times", 30}, {"launch_s", 34}, {"sync_s", 35}, {"wake_s", 36});
    text_is(at(d, 1), "name", "ocl0"), text_is(at(d, 1), "kind", "opencl"),
        text_is(at(d, 0), "as", "zen");
    assert_int_equal(x->n, BASES);
    IS(at(x, 0), {"predicted_s", 6}, {"measured_s", 8}, {"predicted_gain", 5.0 / 6},
       {"measured_gain", 1});
    IS(at(x, 2), {"predicted_s", 3}, {"measured_s", 2}, {"predicted_gain", 5.0 / 3},
       {"measured_gain", 4});
    IS(at(x, 3), {"predicted_s", NAN}, {"measured_s", NAN}, {"predicted_gain", 0},
       {"measured_gain", NAN});
    text_is(at(x, 3), "name", "greedy");
    static const char *const absent[] = {"placement", "stages", "run", "offload"};
    for (int k = 0; k < 4; k++) assert_null(cd_json_get(o, absent[k]));
    assert_non_null(cd_json_get(o, "plan"));
    add_all();
    o = json_of(&a, &b);
    x = cd_json_get(o, "placement");
    IS(x, {"sum_s", 41}, {"makespan_s", 42}, {"bound_s", 44}, {"exact", 1});
    text_is(x, "method", "minimum cut");
    for (int k = 0; k < OPS; k++) assert_int_equal(at(cd_json_get(x, "where"), k)->u.i, where[k]);
    x = cd_json_get(o, "run");
    IS(x, {"median_s", 52}, {"low_s", 53}, {"high_s", 54}, {"passes", 55}, {"max_error", 0.03125},
       {"bytes_between", 56}, {"bytes_within", 57}, {"failures", 59}, {"replans", 58},
       {"left_out", 51});
    assert_int_equal(cd_json_get(x, "operators")->n, 0); /* of another plan by then */
    p.run.now.replans = 0;
    o = json_of(&a, &b);
    x = cd_json_get(cd_json_get(o, "run"), "operators");
    assert_int_equal(x->n, OPS);
    for (int k = 0; k < OPS; k++) {
        IS(at(x, k), {"predicted_s", op[k].seconds + op[k].exchange_s},
           {"measured_s", step[k].seconds}, {"start_s", step[k].start_s}, {"end_s", step[k].end_s});
        text_is(at(x, k), "name", op[k].name);
    }
    cd_buf_free(&b);
    cd_arena_free(&a);
}

/* ---- stages: block 0 has {a > b | c} and then {a}; the numbers are those of the network ---- */
static void test_stages(void **state) {
    static const uint32_t first[] = {0, 2, 3};
    static const uint32_t order[] = {0, 1, 2};
    static const uint32_t one[] = {0, 1};
    static const uint32_t in_net[] = {2, 0, 1};
    static cd_stage_step steps[] = {{.n_group = 2, .first = first, .op = order, .seconds = 0.5},
                                    {.n_group = 1, .first = one, .op = order, .seconds = 0.25}};
    static cd_partition_stage stage[2];
    cd_arena a = {0};
    cd_buf b = {0};
    (void)state;
    make();
    stage[0] = (cd_partition_stage){.plan = {.n_stage = 2, .stage = steps, .total_s = 61},
                                    .op = in_net,
                                    .measured_s = 62,
                                    .alone_measured_s = 63};
    stage[1] = (cd_partition_stage){
        .block = 1, .plan = {.total_s = 64}, .measured_s = NAN, .alone_measured_s = NAN};
    options.stages = CD_PARTITION_STAGES_PARALLEL;
    p.plain =
        (cd_partition_staging){
            .net = &p.net, .stage = stage, .n_stage = 2, .stages_s = 2, .alone_s = 3},
    p.stage_search_s = 0.125;
    cd_partition_report_text(&p, false, &b);
    assert_non_null(strstr(b.p, "\nstages on 2 units like cpu0: "));
    assert_non_null(strstr(
        b.p,
        " (1.500x); searched in 0.125 s; nobody disturbs the other: no contention was measured\n"));
    assert_non_null(strstr(b.p, "  c > a | b\n")); /* by in_net */
    assert_null(strstr(b.p, "block 0 stage 1"));
    cd_buf_clear(&b);
    p.plain.staged = (cd_partition_stage_sum){
        .done = true, .n = 1, .differ = 0, .predicted_s = 65, .seconds = 4, .alone_s = 6};
    p.machine.contention.peak_bytes_per_s = 1;
    cd_partition_report_text(&p, true, &b);
    assert_non_null(strstr(b.p, " (1.500x); searched in 0.125 s\n"));
    assert_non_null(strstr(b.p, " (1.500x); 1 of 2 blocks, one by one; values: equal\n"));
    assert_non_null(strstr(b.p, "  block 0 stage 1  "));
    p.plain.staged.differ = 7;
    const cd_json *o = cd_json_get(json_of(&a, &b), "stages"), *s = cd_json_get(o, "stage"),
                  *r = cd_json_get(o, "run");
    IS(o, {"seconds", 2}, {"alone_s", 3}, {"search_s", 0.125});
    assert_int_equal(s->n, 2);
    IS(at(s, 0), {"block", 0}, {"seconds", 0.5});
    const cd_json *g = cd_json_get(at(s, 0), "groups");
    assert_true(g->n == 2 && at(at(g, 0), 0)->u.i == 2 && at(at(g, 0), 1)->u.i == 0 &&
                at(at(g, 1), 0)->u.i == 1);
    IS(r, {"measured_s", 4}, {"alone_measured_s", 6}, {"predicted_s", 65}, {"blocks", 2},
       {"blocks_run", 1}, {"operators_that_differ", 7});
    IS(at(cd_json_get(r, "block"), 0), {"block", 0}, {"predicted_s", 61}, {"measured_s", 62},
       {"alone_measured_s", 63});
    IS(at(cd_json_get(r, "block"), 1), {"block", 1}, {"predicted_s", 64}, {"measured_s", NAN},
       {"alone_measured_s", NAN});
    cd_buf_free(&b);
    cd_arena_free(&a);
}

/* ---- text ---- */
/* "%s" with times: each is printed by cd_units_put_seconds_wide. */
static void has(const char *text, const char *form, const double *s) {
    cd_buf line = {0};
    for (; *form; form++) {
        if (*form == '@') cd_units_put_seconds_wide(&line, *s++);
        else cd_buf_put(&line, form, 1);
    }
    if (!strstr(text, line.p)) fail_msg("no line\n%sin\n%s", line.p, text);
    cd_buf_free(&line);
}

static void test_text(void **state) {
    cd_buf b = {0};
    (void)state;
    make();
    cd_partition_report_text(&p, false, &b);
    assert_true(!strncmp(
        b.p, "net, batch 16, on cpu0 (zen) + ocl0 30 times as slow; 3 operators; rho 1.25\n", 76));
    p.source[0].guessed = true; /* this machine is another one */
    cd_buf_clear(&b);
    cd_partition_report_text(&p, false, &b);
    assert_true(!strncmp(b.p, "net, batch 16, on cpu0 (as zen) + ocl0 ", 39));
    p.source[0].guessed = false;
    assert_non_null(strstr(
        b.p, "\nplan            predicted   gain of at most   measured     gain     error\n"));
    has(b.p, "\ncpu0            @   0.833x of 3.000x  @   1.000x   -25.0 %\n",
        (const double[]){6, 8});
    has(b.p, "\nocl0            @   1.000x of 3.000x  @   0.800x   -50.0 %\n",
        (const double[]){5, 10});
    assert_null(strstr(b.p, "\nequal"));
    has(b.p,
        "\nthe plan        @   2.000x of 3.000x  @   2.000x   -37.5 %\n90 % interval of the plan's "
        "predicted time: 2.00 s to 3.50 s\nsplit 1 of 3\n",
        (const double[]){2.5, 4});
    /* three copies, one of them inside a memory, and a wait */
    has(b.p,
        "\nexchange: 1 waits, 3 copies, 6 KiB between memories and 1 KiB within one, @ in all\n",
        (const double[]){0.9375});
    /* c could save 3/4 of 1 s, a a third of 1 s; b nothing */
    const char *c = strstr(b.p, "\n   2  "), *first = strstr(b.p, "\n   0  ");
    assert_true(c && first && c < first && !strstr(b.p, "\n   1  "));
    has(b.p,
        "\n   0  @  @  @  Conv                 a                             H cpu0 0..3, ocl0 "
        "3..8, join ocl0\n",
        (const double[]){1, 0.75, 0.125});
    has(b.p, "\n   2  @  @  @  Conv                 c                             cpu0\n",
        (const double[]){1, 1, 0});
    cd_buf_clear(&b);
    options.compare = true;
    plan.measured_s = base[0].measured_s = base[1].measured_s = base[2].measured_s = NAN,
    plan.n_copy = 0;
    cd_partition_report_text(&p, true, &b);
    assert_null(strstr(b.p, "measured"));
    assert_null(strstr(b.p, "exchange: "));
    has(b.p, "\nequal           @   1.667x of 3.000x\n", (const double[]){3});
    has(b.p, "\ngreedy          @                -\n", (const double[]){INFINITY});
    has(b.p, "\n        alone: cpu0 @, ocl0 @; parts: cpu0 @, ocl0 @\n        because of a\n",
        (const double[]){1, 2, 0.25, 0.375});
    has(b.p, "\n        alone: cpu0 @, ocl0 @\n", (const double[]){INFINITY, 0.5});
    cd_buf_free(&b);
}

static void test_text_of_a_run(void **state) {
    cd_buf b = {0};
    (void)state;
    make();
    add_all();
    cd_partition_report_text(&p, false, &b);
    has(b.p,
        "\nwhole operators placed: sum @, makespan @, 43 copies; minimum cut, none is better\n  1 "
        "on cpu0, 2 on ocl0\n",
        (const double[]){41, 42});
    has(b.p,
        "\nrun here, by another plan than this: 55 passes, @ (@ to @); values: 3.1e-02 of the "
        "largest off; 59 failures, planned again 58 times; others used 25 % of the processors\n",
        (const double[]){52, 53, 54});
    p.run.others = -1; /* not known */
    p.run.max_error = 0, p.run.now.failures = p.run.now.replans = 0;
    cd_buf_clear(&b);
    cd_partition_report_text(&p, false, &b);
    /* all operators after a run */
    has(b.p, "\n   1  @  @  @  @  Add                  b                             ocl0\n",
        (const double[]){0.5, 0.5, 0.25, 14});
    assert_non_null(strstr(b.p, "; values: equal\n"));
    p.run.max_error = NAN;
    cd_buf_clear(&b);
    cd_partition_report_text(&p, false, &b);
    assert_non_null(strstr(b.p, "; values: not compared\n"));
    cd_buf_free(&b);
}

TESTS(NULL, NULL, test_best_alone, test_json, test_stages, test_text, test_text_of_a_run)
