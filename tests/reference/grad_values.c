/* grad_values -- the numbers of one iteration of training, for scripts/check_grads.sh: what a
 * network, its loss, its gradients and its new weights come to, computed element by element from
 * the definitions of the tasks (teeval.h).
 *
 *   grad_values MODEL.onnx VALUES auto|sum|cross_entropy|squares sgd|sgd-plain|adam WAY
 *   WAY: bit 0 NHWC (else NCHW), bit 1 one operator at a time (else fused)
 *
 * VALUES: a line a tensor, "name count v v v ...", labels and targets of the k-th result as
 * "extra#k"; every input, and every weight without a known content, must be there but for states of
 * the optimizer, which are zeros then. Output, in %.17g: "result NAME n v ...", "loss v", "grad
 * NAME n v ...", "none NAME" (no gradient), "now NAME n v ...", "state NAME n v ...", "missing OP
 * REASON", "unsupported OP REASON". Exit status 0: the numbers are there; 3: something is missing;
 * 1: an error, on standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/network/gradient/gradient.h"
#include "profiler/network/onnx/onnx.h"
#include "teeval.h"

typedef struct named {
    char name[160];
    int64_t n;
    double *v;
} named;

static named *all;
static int n_all;
static const char *absent;
/* inputs of the network; behind them are the iteration's: labels, targets */
static uint32_t n_given;

static int read_values(const char *path) {
    FILE *f = fopen(path, "r");
    long long n;
    char name[160];
    if (!f) return 1;
    while (fscanf(f, "%159s %lld", name, &n) == 2) {
        named *p = realloc(all, (size_t)(n_all + 1) * sizeof *all);
        if (!p) break;
        all = p;
        all[n_all] = (named){.n = n, .v = calloc((size_t)n + 1, sizeof(double))};
        memcpy(all[n_all].name, name, sizeof name);
        for (long long i = 0; i < n; i++)
            if (fscanf(f, "%lf", &all[n_all].v[i]) != 1) n = 0;
        n_all++;
    }
    const int bad = !feof(f);
    fclose(f);
    return bad;
}

static bool is_state(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && (!strcmp(dot, ".momentum") || !strcmp(dot, ".mean") || !strcmp(dot, ".square"));
}

static double content(const cd_graph *g, uint32_t tensor, int64_t i) {
    static int last; /* elements of a tensor come one after the other */
    const char *name = g->tensor[tensor].name;
    char extra[32];
    for (uint32_t k = n_given; k < g->n_input; k++) {
        if (g->input[k] != tensor) continue;
        snprintf(extra, sizeof extra, "extra#%u", k - n_given);
        name = extra;
    }
    for (int k = 0; k < n_all; k++, last = (last + 1) % n_all)
        if (!strcmp(all[last].name, name) && i < all[last].n) return all[last].v[i];
    name = g->tensor[tensor].name;
    if (!is_state(name)) absent = name;
    return 0;
}

static void put(const char *what, const cd_graph *g, uint32_t named_as, const cd_graph_shape *s,
                const double *v) {
    const int64_t n = cd_graph_shape_elements(s);
    printf("%s %s %lld", what, g->tensor[named_as].name, (long long)n);
    for (int64_t i = 0; i < n; i++) printf(" %.17g", v[i]);
    printf("\n");
}

/* Results stand in the order that graph_grad.h gives: the network's, the loss, gradients, then of
 * each weight its states and itself. */
static void print(const cd_gradient *d, uint32_t results, double *const *out) {
    const cd_graph *g = d->graph;
    for (uint32_t k = 0; k < results; k++)
        put("result", g, g->output[k], &g->tensor[g->output[k]].shape, out[k]);
    printf("loss %.17g\n", out[results][0]);
    uint32_t k = results + 1;
    for (uint32_t i = 0; i < d->n_weight; i++) {
        const cd_gradient_weight *w = &d->weight[i];
        if (w->grad == CD_GRAPH_NONE) printf("none %s\n", g->tensor[w->weight].name);
        else put("grad", g, w->weight, &g->tensor[w->grad].shape, out[k++]);
    }
    for (uint32_t i = 0; i < d->n_weight; i++) {
        const cd_gradient_weight *w = &d->weight[i];
        if (w->now == CD_GRAPH_NONE) continue;
        for (; k < g->n_output && g->output[k] != w->now; k++)
            put("state", g, w->weight, &g->tensor[g->output[k]].shape, out[k]);
        put("now", g, w->weight, &g->tensor[w->now].shape, out[k++]);
    }
}

static int evaluate(const cd_gradient *d, uint32_t results, int way) {
    const cd_workload_options o = {.layout =
                                       way & 1 ? CD_WORKLOAD_LAYOUT_NHWC : CD_WORKLOAD_LAYOUT_NCHW,
                                   .max_depth = way & 2 ? 1 : 256,
                                   .weights = true};
    cdmpp_err err = {0};
    cd_workload *w;
    if (cd_workload_build(d->graph, &o, &w, &err)) {
        fprintf(stderr, "grad_values: %s: %s\n", err.key, err.msg);
        return 1;
    }
    for (uint32_t k = 0; k < w->n_unsupported; k++)
        printf("unsupported %s %s\n", w->unsupported[k].op, w->unsupported[k].reason);
    int rc = w->n_unsupported ? 3 : 0;
    if (!rc) {
        double **out = calloc(d->graph->n_output + 1U, sizeof *out);
        const char *why = we_run(w, content, out);
        if (why || absent)
            fprintf(stderr, "grad_values: %s%s\n", why ? why : "no values for ", why ? "" : absent);
        else print(d, results, out);
        rc = why || absent ? 1 : 0;
        for (uint32_t k = 0; k < d->graph->n_output; k++) free(out[k]);
        free(out);
    }
    cd_workload_free(w);
    return rc;
}

static int index_of(const char *s, const char *const *names) {
    for (int k = 0; names[k]; k++)
        if (!strcmp(s, names[k])) return k;
    return -1;
}

int main(int argc, char **argv) {
    static const char *const losses[] = {"auto", "sum", "cross_entropy", "squares", NULL};
    static const char *const optimizers[] = {"sgd", "sgd-plain", "adam", NULL};
    const int loss = argc == 6 ? index_of(argv[3], losses) : -1,
              how = argc == 6 ? index_of(argv[4], optimizers) : -1;
    cdmpp_err err = {0};
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    cd_graph *g;
    cd_gradient d;
    if (loss < 0 || how < 0 || read_values(argv[2])) {
        fprintf(stderr, "usage: grad_values MODEL.onnx VALUES auto|sum|cross_entropy|squares "
                        "sgd|sgd-plain|adam WAY\n");
        return 2;
    }
    const cd_gradient_options o = {.loss = (cd_gradient_loss)loss,
                                   .optimizer = how == 2 ? CD_GRADIENT_ADAM : CD_GRADIENT_SGD,
                                   .momentum = how == 1 ? -1 : 0};
    if (cd_onnx_read(argv[1], NULL, &g, &miss, &n_miss, &err) || cd_autodiff(g, &o, &d, &err)) {
        fprintf(stderr, "grad_values: %s: %s\n", err.key, err.msg);
        return 1;
    }
    n_given = g->n_input;
    for (uint32_t k = 0; k < n_miss; k++) printf("missing %s %s\n", miss[k].op, miss[k].reason);
    for (uint32_t k = 0; k < d.n_missing; k++)
        printf("missing %s %s\n", d.missing[k].op, d.missing[k].reason);
    const int rc = n_miss || d.n_missing ? 3 : evaluate(&d, g->n_output, atoi(argv[5]));
    cd_gradient_free(&d);
    cd_graph_free(g);
    for (int k = 0; k < n_all; k++) free(all[k].v);
    free(all);
    return rc;
}
