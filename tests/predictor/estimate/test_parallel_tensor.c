/* Tensor parallelism of a small network, by hand: what stays whole, what is cut, what is sent. */
#include <math.h>

#include "check.h"
#include "predictor/estimate/estimate.h"

enum { NODES = 8 };
static const struct {
    cd_node_phase phase;
    cd_library_op_kind kind;
    int64_t repeat;
    bool cut;
} made[NODES] = {
    {CD_PHASE_FORWARD, CD_LIBRARY_OP_LN, 1, false},
    {CD_PHASE_FORWARD, CD_LIBRARY_OP_LINEAR, 2, true},
    {CD_PHASE_FORWARD, CD_LIBRARY_OP_ADD, 1, false},
    {CD_PHASE_FORWARD, CD_LIBRARY_OP_LN, 3, false},
    {CD_PHASE_BACKWARD, CD_LIBRARY_OP_LN, 1, false},
    {CD_PHASE_BACKWARD, CD_LIBRARY_OP_BMM, 1, true},
    {CD_PHASE_BACKWARD, CD_LIBRARY_OP_ADD, 1, false},
    {CD_PHASE_UPDATE, CD_LIBRARY_OP_ADD, 1, true},
};

static void test_by_hand(void **state) {
    cdmpp_err err = {0};
    cd_network_builder *m;
    cd_network_graph *g;
    cd_node_cost_entry cost[NODES];
    cd_parallel_result r;
    double whole = 0, cut = 0;
    (void)state;
    assert_ok(cd_network_builder_new("net", &m, &err));
    for (int k = 0; k < NODES; k++) {
        const cd_library_op_record q = {.kind = made[k].kind, .b = 1, .m = 8, .n = 8, .k = 8};
        cd_network_node n = cd_network_node_init("n", "op", CD_NODE_LIBRARY);
        uint32_t id;
        n.phase = made[k].phase, n.question = &q, n.repeat = made[k].repeat,
        n.write_bytes = 4000 * (k + 1);
        assert_ok(cd_network_builder_node(m, &n, &id, &err));
        cost[k] = (cd_node_cost_entry){.seconds = 0.25 * (k + 1)};
        *(made[k].cut ? &cut : &whole) += 0.25 * (k + 1) * (double)made[k].repeat;
    }
    assert_ok(cd_network_builder_finish(m, &g, &err));
    cd_network_builder_free(m);
    const cd_node_cost c = {.n = NODES, .node = cost};
    cd_parallel_plan p = {.is = CD_PARALLEL_TENSOR, .n = 4, .micro = 1, .link = {0.125, 16000}};
    assert_ok(cd_parallel_training_of(g, &c, &p, &r, &err));
    /* the second norm of the way forward, three times: a sum before it and one the way back, each 6
     * messages of a quarter */
    const double sent = 3 * 2 * 6 * (0.125 + 4000 / 16000.0);
    assert_close(r.sent_s, sent, 1e-12, 0);
    assert_int_equal(r.sent_bytes, 3 * 4 * (16000 - 4000));
    assert_close(r.closed_s, whole + cut / 4 + sent, 1e-12, 0);
    assert_close(r.replay_s, r.closed_s, 0, 0);
    assert_close(r.one_s, whole + cut, 1e-12, 0);
    p.n = 1; /* nothing is sent to itself */
    assert_ok(cd_parallel_training_of(g, &c, &p, &r, &err));
    assert_close(r.closed_s, whole + cut, 1e-12, 0);
    assert_true(r.sent_s == 0 && r.sent_bytes == 0);
    p.micro = 0;
    assert_status(cd_parallel_training_of(g, &c, &p, &r, &err), CDMPP_ERANGE);
    p.micro = 1, p.n = 0;
    assert_status(cd_parallel_training_of(g, &c, &p, &r, &err), CDMPP_ERANGE);
    p.n = 1, p.link.bytes_per_s = 0;
    assert_status(cd_parallel_training_of(g, &c, &p, &r, &err), CDMPP_ERANGE);
    cd_network_graph_free(g);
}

TESTS(NULL, NULL, test_by_hand)
