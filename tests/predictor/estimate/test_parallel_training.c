/* Closed forms against replays of the same, and a graph dealt out. */
#include <math.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/estimate/estimate.h"

static const cd_parallel_link LINK = {5e-6, 1e9};

static double replayed(const cd_parallel_net *c) {
    cdmpp_err err = {0};
    cd_replay r = {0};
    assert_ok(cd_replay_run(&c->net, &r, &err));
    const double s = r.makespan_s;
    cd_replay_free(&r);
    return s;
}

static void near(double a, double b) { assert_close(a, b, 1e-9, 1e-15); }

static void ring(void **state) {
    (void)state;
    near(cd_parallel_training_ring_s(8000000, 1, LINK), 0);
    near(cd_parallel_training_ring_s(8000000, 4, LINK), 6 * (5e-6 + 2e-3));
    near(cd_parallel_training_ring_s(0, 4, LINK), 6 * 5e-6);
    assert_true(isnan(cd_parallel_training_ring_s(1, 0, LINK)));
    assert_true(isnan(cd_parallel_training_ring_s(1, 2, (cd_parallel_link){0, 0})));
    for (uint32_t n = 2; n < 64; n++)
        assert_true(cd_parallel_training_ring_s(1 << 20, n + 1, LINK) >
                    cd_parallel_training_ring_s(1 << 20, n, LINK));
}

static double uniform(uint64_t *r) { return cd_rng_unit(7, (*r)++); }

static void data_is_its_net(void **state) {
    uint64_t rng = 0;
    cdmpp_err err = {0};
    (void)state;
    for (int round = 0; round < 60; round++) {
        cd_parallel_bucket b[6];
        const uint32_t n = 1 + (uint32_t)(8 * uniform(&rng)), k = (uint32_t)(7 * uniform(&rng));
        double t = 0;
        for (uint32_t i = 0; i < k; i++) {
            b[i].ready_s = t += 4e-3 * uniform(&rng);
            b[i].bytes = n * (int64_t)(2e6 * uniform(&rng));
        }
        const double compute = t + 1e-3 * uniform(&rng),
                     closed = cd_parallel_training_data_s(compute, b, k, n, LINK);
        cd_parallel_net c;
        assert_ok(cd_parallel_training_data_net(compute, b, k, n, LINK, &c, &err));
        near(replayed(&c), closed);
        double sum = 0;
        for (uint32_t i = 0; i < k; i++) sum += cd_parallel_training_ring_s(b[i].bytes, n, LINK);
        assert_true(closed >= compute && closed <= compute + sum + 1e-12);
        cd_parallel_net_free(&c);
    }
}

static void gpipe_is_its_net(void **state) {
    uint64_t rng = 0;
    cdmpp_err err = {0};
    (void)state;
    rng = 1u << 20;
    for (int round = 0; round < 100; round++) {
        cd_pipeline_stage s[6];
        const uint32_t n = 1 + (uint32_t)(6 * uniform(&rng)), m = 1 + (uint32_t)(9 * uniform(&rng));
        for (uint32_t i = 0; i < n; i++)
            s[i] = (cd_pipeline_stage){1e-3 * uniform(&rng), 2e-3 * uniform(&rng),
                                       (int64_t)(1e6 * uniform(&rng))};
        cd_parallel_net c;
        assert_ok(cd_parallel_training_pipeline_net(s, n, m, CD_PARALLEL_GPIPE, LINK, &c, &err));
        near(replayed(&c), cd_parallel_training_pipeline_s(s, n, m, LINK));
        cd_parallel_net_free(&c);
    }
}

/* Equal stages and nothing sent: 1F1B is as long as GPipe, (m + n - 1)(f + b), and never shorter
 * than its busiest stage. */
static void one_forward_one_backward(void **state) {
    cdmpp_err err = {0};
    (void)state;
    const cd_parallel_link wire = {0, 1e18};
    for (uint32_t n = 1; n < 7; n++)
        for (uint32_t m = 1; m < 10; m++) {
            cd_pipeline_stage s[7];
            for (uint32_t i = 0; i < n; i++) s[i] = (cd_pipeline_stage){1e-3, 2e-3, 0};
            cd_parallel_net c;
            assert_ok(cd_parallel_training_pipeline_net(s, n, m, CD_PARALLEL_1F1B, wire, &c, &err));
            near(replayed(&c), (m + n - 1) * 3e-3);
            near(cd_parallel_training_pipeline_s(s, n, m, wire), (m + n - 1) * 3e-3);
            cd_parallel_net_free(&c);
        }
    assert_int_equal(cd_parallel_training_kept(CD_PARALLEL_GPIPE, 0, 4, 8), 8);
    assert_int_equal(cd_parallel_training_kept(CD_PARALLEL_1F1B, 0, 4, 8), 4);
    assert_int_equal(cd_parallel_training_kept(CD_PARALLEL_1F1B, 3, 4, 8), 1);
    assert_int_equal(cd_parallel_training_kept(CD_PARALLEL_1F1B, 0, 4, 2), 2);
}

static void bad_numbers(void **state) {
    cdmpp_err err = {0};
    cd_parallel_net c;
    cd_parallel_plan p;
    (void)state;
    const cd_parallel_bucket back[] = {{2, 1}, {1, 1}}, negative[] = {{0, -1}};
    assert_status(cd_parallel_training_data_net(1, back, 2, 2, LINK, &c, &err), CDMPP_ERANGE);
    assert_status(cd_parallel_training_data_net(1, negative, 1, 2, LINK, &c, &err), CDMPP_ERANGE);
    assert_status(cd_parallel_training_data_net(NAN, negative, 0, 2, LINK, &c, &err), CDMPP_ERANGE);
    assert_status(cd_parallel_training_pipeline_net(NULL, 0, 1, CD_PARALLEL_GPIPE, LINK, &c, &err),
                  CDMPP_ERANGE);
    static const char *const wrong[] = {"",          "data",   "data:0",  "data:4x2",  "pipeline:4",
                                        "tensor:-1", "ring:4", "data:4 ", "data:99999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_status(cd_parallel_plan_parse(wrong[i], &p, &err), CDMPP_EUSAGE);
    assert_ok(cd_parallel_plan_parse("pipeline-1f1b:4x8", &p, &err));
    assert_true(p.is == CD_PARALLEL_PIPELINE && p.schedule == CD_PARALLEL_1F1B && p.n == 4 &&
                p.micro == 8);
}

/* ---- a graph: `layers` times norm, linear; backward and weights behind ---- */
static void put(cd_network_builder *m, cd_node_phase phase, cd_library_op_kind kind, double rows,
                double cols) {
    cdmpp_err err = {0};
    uint32_t id;
    const cd_library_op_record q = {.kind = kind, .b = 1, .m = rows, .n = cols, .k = 8};
    cd_network_node n = cd_network_node_init("n", "op", CD_NODE_LIBRARY);
    n.phase = phase;
    n.question = &q;
    n.write_bytes = (int64_t)(4 * rows * cols);
    assert_ok(cd_network_builder_node(m, &n, &id, &err));
}

static cd_network_graph *made(uint32_t layers, cd_node_cost *c, cd_node_cost_entry *cost) {
    cdmpp_err err = {0};
    cd_network_builder *m;
    cd_network_graph *g;
    assert_ok(cd_network_builder_new("made", &m, &err));
    for (uint32_t i = 0; i < layers; i++) {
        put(m, CD_PHASE_FORWARD, CD_LIBRARY_OP_LN, 64, 100);
        put(m, CD_PHASE_FORWARD, CD_LIBRARY_OP_LINEAR, 64, 100);
    }
    for (uint32_t i = 0; i < layers; i++) {
        put(m, CD_PHASE_BACKWARD, CD_LIBRARY_OP_LINEAR, 64, 100);
        put(m, CD_PHASE_UPDATE, CD_LIBRARY_OP_ADD, 1000, 1000);
    }
    assert_ok(cd_network_builder_finish(m, &g, &err));
    cd_network_builder_free(m);
    *c = (cd_node_cost){.n = g->n_node, .node = cost};
    for (uint32_t i = 0; i < g->n_node; i++) cost[i] = (cd_node_cost_entry){.seconds = 1e-3};
    return g;
}

static void graph_dealt_out(void **state) {
    cdmpp_err err = {0};
    cd_node_cost_entry cost[64];
    cd_node_cost c;
    cd_parallel_result r;
    cd_parallel_plan p = {.n = 4, .micro = 4, .link = {0, 1e18}, .bucket_bytes = 8000000};
    cd_network_graph *g = made(8, &c, cost);
    (void)state;
    /* a link that takes no time */
    for (p.is = CD_PARALLEL_DATA; p.is <= CD_PARALLEL_TENSOR; p.is++) {
        assert_ok(cd_parallel_training_of(g, &c, &p, &r, &err));
        near(r.one_s, 32e-3);
        near(r.replay_s, r.closed_s);
        /* four stages of 4 + 4 ms */
        near(r.closed_s, p.is == CD_PARALLEL_DATA       ? 32e-3
                         : p.is == CD_PARALLEL_PIPELINE ? 7 * 8e-3
                                                        : 8e-3 + 24e-3 / 4);
    }
    p.link = (cd_parallel_link){0, 1e9};
    /* 4 buckets of 8 MB, each 12 ms after the 16 ms forward and every 4 ms of backward */
    p.is = CD_PARALLEL_DATA;
    assert_ok(cd_parallel_training_of(g, &c, &p, &r, &err));
    near(r.closed_s, 20e-3 + 4 * 12e-3);
    near(r.sent_s, 48e-3);
    assert_int_equal(r.sent_bytes, 4 * 12000000);
    p.is = CD_PARALLEL_TENSOR; /* 7 norms behind the first, two sums each */
    assert_ok(cd_parallel_training_of(g, &c, &p, &r, &err));
    near(r.sent_s, 14 * cd_parallel_training_ring_s(25600, 4, p.link));
    p.is = CD_PARALLEL_PIPELINE;
    p.n = 1;
    p.micro = 1;
    assert_ok(cd_parallel_training_of(g, &c, &p, &r, &err));
    near(r.replay_s, r.one_s);
    cost[3].seconds = NAN;
    cost[3].why = "nobody knows";
    assert_status(cd_parallel_training_of(g, &c, &p, &r, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "nobody knows"));
    cd_network_graph_free(g);
}

static uint32_t put_given(cd_network_builder *m, const char *name, cd_node_phase phase,
                          int64_t bytes, uint32_t after) {
    cdmpp_err err = {0};
    uint32_t id;
    cd_network_node n = cd_network_node_init(name, "op", CD_NODE_GIVEN);
    n.phase = phase;
    n.given_s = 1e-3;
    n.write_bytes = bytes;
    assert_ok(cd_network_builder_node(m, &n, &id, &err));
    if (after != UINT32_MAX) assert_ok(cd_network_builder_edge(m, after, id, &err));
    return id;
}

/* An iteration of programs: steps of the optimizer stand behind it all, are made once, and the
 * first of each reads the gradient. */
static void steps_of_programs(void **state) {
    cdmpp_err err = {0};
    cd_network_builder *m;
    cd_network_graph *g;
    cd_node_cost_entry cost[8];
    cd_parallel_result r;
    cd_parallel_plan p = {
        .is = CD_PARALLEL_DATA, .n = 4, .micro = 3, .link = {0, 1e9}, .bucket_bytes = 1};
    (void)state;
    assert_ok(cd_network_builder_new("programs", &m, &err));
    const uint32_t f1 = put_given(m, "f1", CD_PHASE_FORWARD, 0, UINT32_MAX),
                   f2 = put_given(m, "f2", CD_PHASE_FORWARD, 0, f1);
    const uint32_t b2 = put_given(m, "b2", CD_PHASE_BACKWARD, 0, f2),
                   b1 = put_given(m, "b1", CD_PHASE_BACKWARD, 0, b2);
    const uint32_t v2 = put_given(m, "v2", CD_PHASE_UPDATE, 1000000, b2),
                   v1 = put_given(m, "v1", CD_PHASE_UPDATE, 2000000, b1);
    put_given(m, "w2", CD_PHASE_UPDATE, 1000000, v2);
    put_given(m, "w1", CD_PHASE_UPDATE, 2000000, v1);
    assert_ok(cd_network_builder_finish(m, &g, &err));
    cd_network_builder_free(m);
    for (uint32_t i = 0; i < 8; i++) cost[i] = (cd_node_cost_entry){.seconds = 1e-3};
    const cd_node_cost c = {.n = 8, .node = cost};
    /* 1.5 ms from 3 ms on, 3 ms behind; then four steps */
    assert_ok(cd_parallel_training_of(g, &c, &p, &r, &err));
    assert_int_equal(r.sent_bytes, 1500000 + 3000000);
    near(r.closed_s, 3e-3 + 1.5e-3 + 3e-3 + 4e-3);
    near(r.replay_s, r.closed_s);
    p.is = CD_PARALLEL_TENSOR;
    assert_status(cd_parallel_training_of(g, &c, &p, &r, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "no norms"));
    p = (cd_parallel_plan){.is = CD_PARALLEL_PIPELINE, .n = 2, .micro = 3, .link = {0, 1e18}};
    /* two stages of 1 + 1 ms, 3 times; each stage's two steps once */
    assert_ok(cd_parallel_training_of(g, &c, &p, &r, &err));
    near(r.closed_s, (2 + 2) * 1e-3 + (2 + 2) * 1e-3 + 2e-3);
    near(r.replay_s, r.closed_s);
    cd_network_graph_free(g);
}

TESTS(NULL, NULL, ring, data_is_its_net, gpipe_is_its_net, one_forward_one_backward, bad_numbers,
      graph_dealt_out, steps_of_programs)
