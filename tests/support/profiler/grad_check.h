/* grad_check.h -- gradients of a graph against differences of what it computes, in both layouts,
 * fused and not. */
#ifndef GRAD_CHECK_H
#define GRAD_CHECK_H
#include <math.h>
#include <stdio.h>

#include "made_net.h"
#include "profiler/network/gradient/gradient.h"
#include "teeval.h"

#define NONE CD_GRAPH_NONE
typedef void (*maker)(mg *m);

/* ---- contents: no two alike, none near a kink ---- */

static struct {
    const char *name;
    int64_t at;
    double by;
} nudge;

static inline double content(const cd_graph *g, uint32_t tensor, int64_t i) {
    const cd_graph_tensor *t = &g->tensor[tensor];
    const long name = atol(t->name);
    if (!cd_expr_dtype_is_float(t->dtype)) return (double)(i % 2);
    double v = sin(12.9898 * (double)(i + 1) + 78.233 * (double)(name + 1)) * 43758.5453;
    v = 1.5 * (v - floor(v)) - 0.75;
    if (name >= 1000) v = fabs(v) + 0.4; /* mg_squares: positive */
    return v + (nudge.name && nudge.at == i && !strcmp(nudge.name, t->name) ? nudge.by : 0);
}

/* Not folded: the network computes with what is made of it. */
static inline uint32_t trained(mg *m, uint32_t w) {
    m->g->tensor[w].is_trained = true;
    return w;
}

#define W(m, ...) trained((m), mg_w((m), __VA_ARGS__)) /* a weight that is learned */

/* ---- the check ---- */

static inline void end(mg *m, uint32_t y) {
    cdmpp_err err = {0};
    char name[32];
    uint32_t c;
    snprintf(name, sizeof name, "%u", 500 + m->n_made++);
    assert_ok(cd_graph_input(m->g, name, CD_F32, &m->g->tensor[y].shape, &c, &err));
    mg_end(m, mg_op(m, "Mul", "", 2, y, c)); /* each element counts otherwise */
}

static inline void evaluate(const cd_workload *w, double **out, const char *what) {
    const char *why = we_run(w, content, out);
    if (why) fail_msg("%s: %s", what, why);
}

static inline void free_out(double **out, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) free(out[k]);
}

/* Sum of the iteration's loss. */
static inline double loss_of(const cd_gradient *d, const cd_workload *w, uint32_t results,
                             const char *what) {
    double *out[64];
    assert_true(d->graph->n_output < 64);
    evaluate(w, out, what);
    const double v = out[results][0];
    free_out(out, w->graph->n_output);
    return v;
}

static inline cd_workload *workload(const cd_graph *g, int way, const char *what) {
    cdmpp_err err = {0};
    cd_workload *w;
    const cd_workload_options o = {.layout =
                                       way & 1 ? CD_WORKLOAD_LAYOUT_NHWC : CD_WORKLOAD_LAYOUT_NCHW,
                                   .max_depth = way & 2 ? 1 : 256,
                                   .weights = true};
    assert_ok(cd_workload_build(g, &o, &w, &err));
    if (w->n_unsupported)
        fail_msg("%s: %s %s: %s", what, w->unsupported[0].op, w->unsupported[0].node,
                 w->unsupported[0].reason);
    return w;
}

static inline void compare(const char *what, const cd_graph_tensor *t, int64_t i, double got,
                           double want, int way) {
    if (fabs(got - want) > 2e-5 * (1 + fabs(want)))
        fail_msg("%s, way %d: gradient of %s (rank %u)[%lld]: %.8g, by differences %.8g", what, way,
                 t->name, t->shape.rank, (long long)i, got, want);
}

static inline void check_way(const cd_gradient *d, const double *want, uint32_t results, int way,
                             const char *what) {
    cd_workload *w = workload(d->graph, way, what);
    double *out[64];
    uint32_t k = results + 1;
    evaluate(w, out, what);
    for (uint32_t i = 0; i < d->n_weight; i++) {
        if (d->weight[i].grad == NONE) continue;
        const cd_graph_tensor *t = &d->graph->tensor[d->weight[i].weight];
        const int64_t n = cd_graph_shape_elements(&t->shape);
        for (int64_t e = 0; e < n; e++) compare(what, t, e, out[k][e], *want++, way);
        k++;
    }
    free_out(out, d->graph->n_output);
    cd_workload_free(w);
}

/* Differences by the network's own forward pass (results summed), or by the iteration's where
 * training computes another. */
static inline double *differences(const cd_gradient *d, const cd_graph *forward, bool own,
                                  const char *what) {
    const double h = 1e-5;
    cd_workload *w = own ? workload(forward, 0, what) : workload(d->graph, 0, what);
    double *want = calloc(100000, sizeof *want), *at = want;
    for (uint32_t i = 0; i < d->n_weight; i++) {
        if (d->weight[i].grad == NONE) continue;
        const cd_graph_tensor *t = &d->graph->tensor[d->weight[i].weight];
        for (int64_t e = 0; e < cd_graph_shape_elements(&t->shape); e++) {
            double v[2];
            for (int s = 0; s < 2; s++) {
                nudge.name = t->name, nudge.at = e, nudge.by = s ? -h : h;
                if (own) {
                    double *out[64];
                    v[s] = 0;
                    evaluate(w, out, what);
                    for (uint32_t k = 0; k < forward->n_output; k++)
                        for (int64_t q = 0; q < cd_graph_shape_elements(
                                                    &forward->tensor[forward->output[k]].shape);
                             q++)
                            v[s] += out[k][q];
                    free_out(out, forward->n_output);
                } else v[s] = loss_of(d, w, forward->n_output, what);
            }
            *at++ = (v[0] - v[1]) / (2 * h);
        }
    }
    nudge.name = NULL;
    cd_workload_free(w);
    return want;
}

static inline void check_graph(const char *what, const cd_graph *g, bool own,
                               cd_gradient_loss loss) {
    cdmpp_err err = {0};
    cd_gradient d;
    const cd_gradient_options o = {.loss = loss, .no_update = true};
    assert_ok(cd_autodiff(g, &o, &d, &err));
    if (d.n_missing) fail_msg("%s: %s: %s", what, d.missing[0].op, d.missing[0].reason);
    double *want = differences(&d, g, own, what);
    for (int way = 0; way < 4; way++) check_way(&d, want, g->n_output, way, what);
    free(want);
    cd_gradient_free(&d);
}
#endif
