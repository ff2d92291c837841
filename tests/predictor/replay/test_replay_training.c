/* Memory of an iteration, replayed: activations live until the backward part has read them. */
#include <stdlib.h>

#include "check.h"
#include "predictor/replay/replay.h"
#include "profiler/network/gradient/gradient.h"
#include "profiler/network/workload/workload.h"
#include "profiler/network/zoo/zoo.h"

/* Peak of results alive at once, groups one after the other; what they write in all. */
static int64_t peak_of(const cd_workload *w, int64_t *all) {
    cd_replay_op *op = calloc(w->n_group + 1, sizeof *op);
    uint32_t *after = NULL, n = 0;
    for (uint32_t i = 0; i < w->n_group; i++) n += w->group[i].n_after;
    after = calloc(n + 1, sizeof *after);
    n = 0;
    *all = 0;
    for (uint32_t i = 0; i < w->n_group; i++) {
        const cd_workload_group *g = &w->group[i];
        const cd_workload_buffer *b = &w->buffer[g->write];
        op[i] = (cd_replay_op){.name = "group",
                               .like = UINT32_MAX,
                               .seconds = 1,
                               .first = n,
                               .n_after = g->n_after,
                               .bytes = cd_graph_shape_elements(&b->shape) *
                                        (int64_t)cd_expr_dtype_bytes(b->dtype)};
        for (uint32_t k = 0; k < g->n_after; k++) after[n++] = g->after[k];
        *all += op[i].bytes;
    }
    const cd_replay_device cpu = {.name = "cpu", .workers = 1, .policy = CD_REPLAY_STREAM};
    const cd_replay_net net = {
        .n_op = w->n_group, .n_after = n, .n_device = 1, .op = op, .after = after, .device = &cpu};
    cdmpp_err err = {0};
    cd_replay r;
    assert_ok(cd_replay_run(&net, &r, &err));
    const int64_t peak = r.peak[0];
    cd_replay_free(&r);
    free(op);
    free(after);
    return peak;
}

static void test_peak(void **state) {
    (void)state;
    static const char *const net[] = {"resnet-18", "mobilenet-v2", "bert-tiny", "gru"};
    for (size_t k = 0; k < 4; k++) {
        cdmpp_err err = {0};
        cd_graph *g;
        cd_gradient d;
        cd_workload *a, *b;
        int64_t all, trained;
        assert_ok(cd_zoo_build(net[k], &(cd_zoo_options){.batch = 8}, &g, &err));
        assert_ok(cd_autodiff(g, &(cd_gradient_options){.no_update = true}, &d, &err));
        assert_ok(cd_workload_build(g, NULL, &a, &err));
        assert_ok(cd_workload_build(d.graph, NULL, &b, &err));
        const int64_t peak = peak_of(a, &all), most = peak_of(b, &trained);
        if (most < 2 * peak || most > trained)
            fail_msg("%s: %lld bytes at once, %lld without training", net[k], (long long)most,
                     (long long)peak);
        cd_workload_free(a);
        cd_workload_free(b);
        cd_gradient_free(&d);
        cd_graph_free(g);
    }
}

TESTS(NULL, NULL, test_peak)
