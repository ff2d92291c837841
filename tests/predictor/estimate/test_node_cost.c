/* Costs of networks: what is missing is named, what is given is counted; nets to replay against a
 * slow reading. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/order_stat.h"
#include "base/core/core.h"
#include "check.h"
#include "made_model.h"
#include "predictor/estimate/estimate.h"
#include "predictor/estimate/estimate_internal.h"

#define CHIP "llvm -keys=cpu -model=chip"

static tmp_dir dir;
static cd_task_registry *tasks;
static cd_model *model;
static cd_schedule_db *book;
static const char *key;

static int set_up(void **state) {
    static const char *const set[] = {"train.rounds=20", "model.folds=2", "model.members=rows",
                                      "net.device=false"};
    static const char *const target[] = {CHIP};
    cdmpp_err err = {0};
    char h5[256], path[256];
    cd_buf b = {0};
    cd_schedule_db_logs io = {0};
    (void)state;
    dir = tmp_make();
    cdmpp_status st = cd_task_registry_new(&tasks, &err);
    if (!st) st = cd_task_registry_load(tasks, MADE_TASKS, &err);
    if (!st) key = cd_task_registry_at(tasks, 0)->workload_key;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "cost.cdmpp"));
    if (!st) st = made_extract(&dir, key, target, 1, h5, &err);
    if (!st) st = made_learn(h5, set, 4, path, &err);
    if (!st) st = cd_model_load(path, &model, &err);
    for (int i = 0; i < MADE_N; i++) made_record(&b, key, i, CHIP, made_latency(i), 0);
    const char *log[] = {tmp_put(&dir, "log.json", b.p, b.n)};
    cd_buf_free(&b);
    if (!st) st = cd_schedule_db_new(&book, &err);
    if (!st) st = cd_schedule_db_read_logs(book, log, 1, &io, &err);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    cd_schedule_db_free(book);
    cd_model_free(model);
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
    return 0;
}

/* ---- a small network: x (free) -> a (task) -> v (view) -> b (task, three times) -> u (unknown) ->
 * c (given) ---- */
static cd_network_graph *small(double u_given) {
    cdmpp_err err = {0};
    cd_network_builder *m;
    cd_network_graph *g;
    uint32_t id[6];
    assert_ok(cd_network_builder_new("small", &m, &err));
    cd_network_node n[6] = {cd_network_node_init("x", "input", CD_NODE_FREE),
                            cd_network_node_init("a", "dense", CD_NODE_TASK),
                            cd_network_node_init("v", "reshape", CD_NODE_FREE),
                            cd_network_node_init("b", "dense", CD_NODE_TASK),
                            cd_network_node_init("u", "fft, 2d", CD_NODE_UNKNOWN),
                            cd_network_node_init("c", "concat", CD_NODE_GIVEN)};
    n[1].key = n[3].key = key;
    n[3].repeat = 3;
    n[4].why = "no definition of fft";
    n[4].given_s = u_given;
    n[5].given_s = 2e-3;
    for (int i = 0; i < 6; i++) assert_ok(cd_network_builder_node(m, &n[i], &id[i], &err));
    for (int i = 1; i < 6; i++) assert_ok(cd_network_builder_edge(m, id[i - 1], id[i], &err));
    assert_ok(cd_network_builder_finish(m, &g, &err));
    cd_network_builder_free(m);
    return g;
}

static cd_node_cost *cost_of(const cd_network_graph *g, bool from_records) {
    cdmpp_err err = {0};
    cd_node_cost *c;
    const cd_node_cost_options a = {.model = model,
                                    .tasks = tasks,
                                    .schedules = book,
                                    .device = "chip",
                                    .from_records = from_records};
    assert_ok(cd_node_cost_of(g, &a, &c, &err));
    return c;
}

static const cd_replay_device one = {.name = "chip", .workers = 1, .gap_s = 1e-4};

static cdmpp_status make(const cd_network_graph *g, const cd_node_cost *c, bool allow,
                         cd_node_cost_net **r, cdmpp_err *err) {
    const cd_node_cost_placement p = {.n_device = 1, .device = &one};
    return cd_node_cost_net_make(g, &c, &p, allow, r, err);
}

static double seconds_of(const cd_node_cost_net *r) {
    cdmpp_err err = {0};
    cd_replay out = {0};
    assert_ok(cd_replay_run(&r->net, &out, &err));
    const double s = out.makespan_s;
    cd_replay_free(&out);
    return s;
}

static void test_missing_is_named_and_no_total(void **state) {
    cdmpp_err err = {0};
    cd_node_cost_net *r;
    (void)state;
    cd_network_graph *g = small(NAN);
    cd_node_cost *c = cost_of(g, false);
    assert_int_equal(c->n_missing, 1);
    assert_int_equal(c->n_model, 2);
    assert_int_equal(c->n_given, 1);
    assert_close(c->missing_share, 1.0 / 6, 1e-12, 0); /* of a, b three times, u, c */
    assert_false(c->missing_of_work);
    for (uint32_t k = 0; k < g->n_node; k++) g->node[k].flop = k == 4 ? 3e6 : 1e6;
    cd_node_cost_tally(c, g);
    assert_close(c->missing_share, 3.0 / 8, 1e-12, 0); /* operations are known */
    assert_true(c->missing_of_work);
    assert_true(isnan(c->node[4].seconds));
    assert_string_equal(c->node[4].why, "no definition of fft");
    assert_status(make(g, c, false, &r, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "node u"));
    assert_non_null(strstr(err.msg, "no definition of fft"));
    assert_ok(make(g, c, true, &r, &err));
    assert_int_equal(r->net.n_op, 3);
    assert_int_equal(r->of[0], 1);
    assert_int_equal(r->of[2], 5);
    assert_int_equal(r->net.op[2].n_after, 1); /* through u */
    assert_close(seconds_of(r), c->node[1].seconds + 3 * c->node[3].seconds + 2e-3 + 5e-4, 1e-12,
                 0);
    cd_node_cost_net_free(r);
    cd_node_cost_free(c);
    cd_network_graph_free(g);
}

/* What helps depends on what was tried: an option that was in use is not advised. */
static void test_a_missing_schedule_is_told_with_what_helps(void **state) {
    static const char *const want[] = {
        "no schedule for its task (--trials N chooses one",
        "none of the candidates of its task is a program for the device (--trials N draws more)",
        "no record of its task (--records"};
    cdmpp_err err = {0};
    (void)state;
    cd_network_graph *g = small(5e-3);
    for (int k = 0; k < 3; k++) {
        const cd_node_cost_options a = {.model = model,
                                        .tasks = tasks,
                                        .device = "chip",
                                        .tried = k == 1 ? 64 : 0,
                                        .from_records = k == 2};
        cd_node_cost *c;
        assert_ok(cd_node_cost_of(g, &a, &c, &err));
        assert_non_null(strstr(c->node[1].why, want[k]));
        assert_true((strstr(c->node[1].why, "chooses one") != NULL) == (k == 0));
        cd_node_cost_free(c);
    }
    cd_network_graph_free(g);
}

static void test_given_time_where_nobody_knows(void **state) {
    cdmpp_err err = {0};
    (void)state;
    cd_network_graph *g = small(5e-3);
    cd_node_cost *c = cost_of(g, false);
    assert_int_equal(c->n_missing, 0);
    assert_int_equal(c->n_given, 2);
    assert_close(c->node[4].seconds, 5e-3, 0, 0);
    assert_string_equal(c->node[4].why, "no definition of fft"); /* and it is said */
    assert_true(c->missing_share <= 0);
    cd_node_cost_free(c);
    const cd_node_cost_options nobody = {.tasks = tasks, .schedules = book, .device = "chip"};
    assert_ok(cd_node_cost_of(g, &nobody, &c, &err));
    assert_int_equal(c->n_missing, 2);
    assert_non_null(strstr(c->node[1].why, "no model"));
    cd_node_cost_free(c);
    cd_network_graph_free(g);
}

/* The file's times are of "other": nobody's on "chip" but where the model answers. */
static void test_times_of_another_device(void **state) {
    cdmpp_err err = {0};
    cd_node_cost *c;
    cd_node_cost_net *r;
    (void)state;
    cd_network_graph *g = small(5e-3);
    g->device = "other";
    g->node[1].given_s = 7e-3;
    c = cost_of(g, false);
    assert_int_equal(c->node[1].source, CD_COST_MODEL);
    assert_int_equal(c->node[5].source, CD_COST_MISSING);
    assert_int_equal(c->n_missing, 2);
    assert_non_null(strstr(c->node[4].why,
                           "no definition of fft; its time in the file is of other, not of chip"));
    assert_status(make(g, c, false, &r, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "node u (fft, 2d) has no time"));
    cd_node_cost_free(c);
    cd_node_cost_options a = {.tasks = tasks, .device = "chip", .from_given = true};
    assert_ok(cd_node_cost_of(g, &a, &c, &err));
    assert_int_equal(c->n_given, 0);
    cd_node_cost_free(c);
    a.any_times = true;
    assert_ok(cd_node_cost_of(g, &a, &c, &err));
    assert_int_equal(c->n_given, 3);
    cd_node_cost_free(c);
    a.any_times = false;
    a.device = "OTHER"; /* the same name */
    assert_ok(cd_node_cost_of(g, &a, &c, &err));
    assert_int_equal(c->n_given, 3);
    g->node[5].device = "chip"; /* where it stands is where it was measured */
    cd_node_cost_free(c);
    assert_ok(cd_node_cost_of(g, &a, &c, &err));
    assert_int_equal(c->n_given, 2);
    cd_node_cost_free(c);
    cd_network_graph_free(g);
}

static void test_tasks_are_asked_once(void **state) {
    (void)state;
    cd_network_graph *g = small(5e-3);
    cd_node_cost *c = cost_of(g, false), *r = cost_of(g, true);
    assert_int_equal(c->node[1].like, c->node[3].like);
    assert_int_equal(c->node[5].like, UINT32_MAX);
    assert_close(c->node[1].seconds, c->node[3].seconds, 0, 0);
    assert_true(c->node[1].low_s <= c->node[1].seconds && c->node[1].seconds <= c->node[1].high_s &&
                c->node[1].spread > 0);
    assert_non_null(strstr(c->node[1].schedule, "log.json:"));
    assert_int_equal(r->node[1].source, CD_COST_RECORD);
    assert_close(r->node[1].seconds, cd_schedule_db_find(book, key)->measured_s, 0, 0);
    cd_node_cost_free(c);
    cd_node_cost_free(r);
    cd_network_graph_free(g);
}

/* The model knows one task, which says too little about the fastest of others. */
static void test_fastest_without_figures_has_the_median(void **state) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_record r;
    cd_schedule_db *unmeasured;
    const cd_schedule_db_entry *x = cd_schedule_db_find(book, key);
    (void)state;
    assert_ok(cd_record_read(&a, x->line, x->len, &r, &err));
    assert_ok(cd_schedule_db_new(&unmeasured, &err));
    assert_ok(cd_schedule_db_add(unmeasured, &r, "x", (double)NAN, &err));
    cd_network_graph *g = small(5e-3);
    const cd_node_cost_options o = {
        .model = model, .tasks = tasks, .schedules = unmeasured, .device = "chip"};
    cd_node_cost *c = cost_of(g, false), *mean;
    assert_ok(cd_node_cost_of(g, &o, &mean, &err));
    const double s = mean->node[1].spread;
    assert_true(s > 0);
    assert_close(c->node[1].seconds, mean->node[1].seconds * exp(-s * s / 2), 1e-9, 0);
    assert_true(c->node[1].low_s < c->node[1].seconds && c->node[1].seconds < c->node[1].high_s);
    cd_node_cost_free(c);
    cd_node_cost_free(mean);
    cd_network_graph_free(g);
    cd_schedule_db_free(unmeasured);
    cd_arena_free(&a);
}

static void test_unknown_device_names_the_known(void **state) {
    cdmpp_err err = {0};
    cd_node_cost *c;
    (void)state;
    cd_network_graph *g = small(5e-3);
    const cd_node_cost_options a = {
        .model = model, .tasks = tasks, .schedules = book, .device = "pentium"};
    assert_status(cd_node_cost_of(g, &a, &c, &err), CDMPP_EMODEL);
    assert_non_null(strstr(err.msg, "pentium"));
    assert_non_null(strstr(err.msg, "chip"));
    cd_network_graph_free(g);
}

/* ---- what if ---- */
static void test_what_if(void **state) {
    cdmpp_err err = {0};
    (void)state;
    cd_network_graph *g = small(NAN);
    cd_node_cost *c = cost_of(g, true);
    const double s = c->node[1].seconds;
    assert_ok(cd_node_cost_what_if(c, g, "op=dense,scale=0.5", &err)); /* a type: both */
    assert_close(c->node[1].seconds, s / 2, 1e-15, 0);
    assert_close(c->node[3].high_s, s / 2, 1e-15, 0);
    assert_close(c->node[5].seconds, 2e-3, 0, 0);
    assert_int_equal(c->node[1].source, CD_COST_SCALED);
    assert_ok(cd_node_cost_what_if(c, g, "op=b,scale=2", &err));
    assert_close(c->node[3].seconds, s, 1e-15, 0);
    assert_close(c->node[1].seconds, s / 2, 1e-15, 0);
    assert_ok(cd_node_cost_what_if(c, g, "op=fft,*d,seconds=1e-3", &err)); /* a comma in the name */
    assert_int_equal(c->n_missing, 0);
    assert_close(c->node[4].seconds, 1e-3, 0, 0);
    assert_ok(cd_node_cost_what_if(c, g, "op=*,scale=0", &err));
    for (uint32_t i = 0; i < c->n; i++) assert_true(c->node[i].seconds <= 0);
    assert_status(cd_node_cost_what_if(c, g, "op=dence,scale=2", &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "dense"));
    static const char *const wrong[] = {"",
                                        "op=",
                                        "op=a",
                                        "op=,scale=1",
                                        "op=a,scale=",
                                        "op=a,scale=x",
                                        "op=a,scale=-1",
                                        "op=a,scale=1e999",
                                        "op=a,half=1",
                                        "a,scale=2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_status(cd_node_cost_what_if(c, g, wrong[i], &err), CDMPP_EUSAGE);
    cd_node_cost_free(c);
    cd_network_graph_free(g);
}

/* ---- bridging, against a slow reading ---- */
enum { MOST = 40 };

typedef struct {
    uint32_t n;
    bool edge[MOST][MOST], out[MOST]; /* [to][from] */
} drawn;

/* Is there a way from `from` to `to` over nodes that are taken out alone? */
static bool reaches(const drawn *d, uint32_t from, uint32_t to) {
    for (uint32_t k = 0; k < d->n; k++)
        if (d->edge[to][k] && (k == from || (d->out[k] && reaches(d, from, k)))) return true;
    return false;
}

static cd_network_graph *draw(drawn *d, uint64_t seed) {
    cdmpp_err err = {0};
    cd_network_builder *m;
    cd_network_graph *g;
    uint32_t id;
    uint64_t at = 0;
    *d = (drawn){.n = 1 + (uint32_t)(cd_rng_at(seed, at++) % 14)};
    assert_ok(cd_network_builder_new("drawn", &m, &err));
    for (uint32_t i = 0; i < d->n; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        const uint64_t what = cd_rng_at(seed, at++) % 4;
        cd_network_node n = cd_network_node_init(name, "op",
                                                 what == 0   ? CD_NODE_FREE
                                                 : what == 1 ? CD_NODE_UNKNOWN
                                                             : CD_NODE_GIVEN);
        n.why = what == 1 ? "nobody" : NULL;
        if (what > 1) n.given_s = 1e-3 * (double)(1 + cd_rng_at(seed, at++) % 9);
        n.repeat = (int64_t)(cd_rng_at(seed, at++) % 4);
        d->out[i] = what < 2 || n.repeat == 0;
        assert_ok(cd_network_builder_node(m, &n, &id, &err));
        for (uint32_t j = 0; j < i; j++) d->edge[i][j] = cd_rng_at(seed, at++) % 3 == 0;
    }
    for (uint32_t i = 0; i < d->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (d->edge[i][j]) assert_ok(cd_network_builder_edge(m, j, i, &err));
    assert_ok(cd_network_builder_finish(m, &g, &err));
    cd_network_builder_free(m);
    return g;
}

static void test_bridges_are_all_ways_around(void **state) {
    cdmpp_err err = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        drawn d;
        cd_node_cost *c;
        cd_node_cost_net *r;
        cd_network_graph *g = draw(&d, seed);
        assert_ok(cd_node_cost_of(g, &(cd_node_cost_options){0}, &c, &err));
        assert_ok(make(g, c, true, &r, &err));
        uint32_t at = 0, edges = 0;
        double sum = 0;
        for (uint32_t i = 0; i < d.n; i++) {
            if (d.out[i]) continue;
            assert_int_equal(r->of[at], i); /* made in an order to run in: it stays */
            const cd_replay_op *op = &r->net.op[at++];
            assert_close(op->seconds + one.gap_s,
                         (double)g->node[i].repeat * (g->node[i].given_s + one.gap_s), 1e-12, 0);
            sum += op->seconds + one.gap_s;
            uint32_t want = 0;
            for (uint32_t j = 0; j < i; j++) want += !d.out[j] && reaches(&d, j, i);
            assert_int_equal(op->n_after, want);
            for (uint32_t k = 0; k < op->n_after; k++)
                assert_true(reaches(&d, r->of[r->net.after[op->first + k]], i));
            edges += want;
        }
        assert_int_equal(r->net.n_op, at);
        assert_true(r->net.n_after >= edges);
        if (at) assert_close(seconds_of(r), sum, 1e-12, 0); /* one worker: all behind each other */
        cd_node_cost_net_free(r);
        cd_node_cost_free(c);
        cd_network_graph_free(g);
    }
}

static void test_device_without_number_is_refused(void **state) {
    cdmpp_err err = {0};
    cd_node_cost_net *r;
    (void)state;
    cd_network_graph *g = small(5e-3);
    cd_node_cost *c = cost_of(g, true);
    const uint32_t where[6] = {0, 0, 0, 0, 1, 0};
    const cd_node_cost_placement p = {.n_device = 1, .device = &one, .where = where};
    const cd_node_cost *const both[] = {c, c};
    assert_status(cd_node_cost_net_make(g, both, &p, false, &r, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "node u"));
    cd_node_cost_free(c);
    cd_network_graph_free(g);
}

/* ---- in a network, and of the best ---- */
static cd_network_cost *fits(void) {
    cd_diag diag = {0};
    cd_network_cost *l;
    cdmpp_err err = {0};
    assert_ok(cd_network_cost_load("configs/network-costs.yaml", &diag, &l, &err));
    return l;
}

static void in_place(cd_node_cost *c, const cd_network_graph *g, const char *name,
                     const cd_device *d, double traffic) {
    cd_network_cost *l = fits();
    const cd_node_cost_scaling_law law =
        cd_node_cost_law(l, name, d, (cd_node_cost_bytes){traffic, traffic});
    cd_node_cost_in_place(c, g, &law);
    cd_network_cost_free(l);
}

static void test_large_networks_are_lifted_where_it_was_measured(void **state) {
    (void)state;
    cd_network_graph *g = small(5e-3);
    for (int large = 0; large < 2; large++)
        for (int known = 0; known < 2; known++) {
            cd_node_cost *c = cost_of(g, true);
            const double s = c->node[1].seconds, given = c->node[5].seconds;
            const cd_device d = {.name = known ? "zen5-avx512" : "chip", .l3_kb = 1000};
            in_place(c, g, "an alias", &d, large ? 6e5 : 5e5);
            /* the file's time was in place already */
            assert_close(c->node[5].seconds, given, 0, 0);
            if (!known) assert_close(c->node[1].seconds, s, 0, 0);
            else if (!large) assert_close(c->node[1].seconds, s + 1.7e-7, 1e-12, 0);
            else
                assert_true(c->node[1].seconds > 1.05 * s && c->node[1].seconds < 1.3 * s &&
                            c->node[1].low_s <= c->node[1].seconds);
            cd_node_cost_free(c);
        }
    cd_network_graph_free(g);
}

/* Weights that were in the core's caches when the operator was measured alone come anew in a
 * network; larger ones always did. */
static void test_weights_are_refilled_where_they_had_stayed(void **state) {
    (void)state;
    static const int64_t bytes[] = {-1, 0, 1 << 20, 64 << 20};
    const cd_device d = {.name = "granite-rapids", .l2_kb = 2048, .l3_kb = 491520};
    double longer[4];
    for (int i = 0; i < 4; i++) {
        cd_network_graph *g = small(5e-3);
        cd_node_cost *c = cost_of(g, true);
        const double s = c->node[1].seconds;
        g->node[1].weight_bytes = bytes[i];
        in_place(c, g, d.name, &d, 1);
        longer[i] = c->node[1].seconds - s;
        cd_node_cost_free(c);
        cd_network_graph_free(g);
    }
    assert_true(longer[0] > 0 && longer[0] < 0.2 * 5e-3);
    assert_close(longer[1], longer[0], 0, 0);
    assert_close(longer[3], longer[0], 0, 0);
    cd_network_graph *table = small(5e-3);
    cd_node_cost *rows = cost_of(table, true);
    const double before = rows->node[1].seconds;
    table->node[1].weight_bytes = 1 << 20;
    table->node[1].op = "Gather+Add";
    rows->node[1].bytes = 1 << 10;
    in_place(rows, table, d.name, &d, 1);
    assert_close(rows->node[1].seconds - before - longer[0], (longer[2] - longer[0]) / 1024, 1e-6,
                 0);
    cd_node_cost_free(rows);
    cd_network_graph_free(table);
    const double rate = (1 << 20) / (longer[2] - longer[0]);
    assert_true(rate > 1e9 && rate < 1e11);
}

static void test_tasks_of_training_are_known_by_name(void **state) {
    cdmpp_err err = {0};
    cd_node_cost_bias b;
    (void)state;
    assert_ok(cd_node_cost_bias_read(model, "chip", &b, &err));
    assert_int_equal(b.tasks.n, 1);
    assert_true(cd_node_cost_bias_knows(&b, key, "chip"));
    assert_false(cd_node_cost_bias_knows(&b, key, "other"));
    assert_false(cd_node_cost_bias_knows(&b, "nobody", "chip"));
    assert_true(b.spread[0] < 0 && b.spread[1] < 0); /* one task: nothing to learn from */
    assert_close(b.ratio[1], 1, 0, 0);
    cd_node_cost_bias_free(&b);
}

/* Slower ones that were predicted faster pull the fastest down, by the more the more there are;
 * those far behind say nothing. */
static void test_slower_ones_say_how_fast_the_fastest_is(void **state) {
    const cd_node_cost_bias b = {.within = {0.4, 0.2}, .among = {1.25, 1}};
    const double near[3] = {-9, -9.1, -8.8}, far[2] = {-9, -3};
    (void)state;
    const double alone = cd_node_cost_bias_correct(&b, true, near, 3, 1),
                 ten = cd_node_cost_bias_correct(&b, true, near, 3, 10);
    assert_close(alone, cd_order_stat_mean(near, NULL, 3, 0, 0.2), 1e-12, 0);
    assert_true(ten < alone && alone < -9);
    assert_close(cd_node_cost_bias_correct(&b, true, far, 2, 1), -9, 0, 1e-6);
    assert_close(cd_node_cost_bias_correct(&b, false, far, 2, 1), -9 + log(1.25), 0, 1e-6);
}

TESTS(set_up, tear_down, test_slower_ones_say_how_fast_the_fastest_is,
      test_missing_is_named_and_no_total, test_a_missing_schedule_is_told_with_what_helps,
      test_given_time_where_nobody_knows, test_times_of_another_device, test_tasks_are_asked_once,
      test_fastest_without_figures_has_the_median, test_unknown_device_names_the_known,
      test_what_if, test_bridges_are_all_ways_around,
      test_large_networks_are_lifted_where_it_was_measured,
      test_weights_are_refilled_where_they_had_stayed, test_tasks_of_training_are_known_by_name,
      test_device_without_number_is_refused)
