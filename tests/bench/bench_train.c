/* bench_train [STEPS [THREADS [published|small|mlp|lstm|tiramisu]]] - training and predicting with
 *   a
 * network on random data: 600 programs of 5 leaves, Adam, 1000*MSE + MAPE, gradients
 * clipped. "published" is the counterpart of scripts/bench_torch.py, which runs the
 * same training step in PyTorch; tiramisu the widths CDMPP compares with; the others are
 * the defaults. Trees have 20 inner nodes, as those of GPU programs.
 *
 * One step to warm up; medians of the others. Wall-clock time counts on an idle
 * machine; on a shared one compare CPU time, with one thread. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "learner/nn/nn.h"
#include "learner/fit/optim.h"

enum { BATCH = 600, LEAVES = 5, MAX_STEPS = 100, TRUNK = 10, NODES = TRUNK + 2 * LEAVES };

typedef struct {
    cd_net *net;
    cd_net_state *state;
    cd_batch batch;
    cd_optim optim;
    cd_threads *pool;
    float out[BATCH], d_out[BATCH], y[BATCH];
} rig;

/* Ten loops around all leaves, then two around each. */
static cdmpp_status plant(cd_program_tree *t, cdmpp_err *err) {
    int32_t list[2 * (NODES + LEAVES)], leaf_pos[LEAVES];
    size_t n = 0;
    for (int k = 0; k < TRUNK; k++) list[n++] = k;
    for (int l = 0; l < LEAVES; l++) {
        leaf_pos[l] = (int32_t)n + 2;
        for (int k = 0; k < 3; k++) list[n++] = TRUNK + 3 * l + k;
        for (int k = 0; k < 3; k++) list[n++] = -1;
    }
    for (int k = 0; k < TRUNK; k++) list[n++] = -1;
    cd_program_tree_clear(t);
    for (int i = 0; i < BATCH; i++) CD_TRY(cd_program_tree_add(t, list, n, leaf_pos, LEAVES, err));
    cd_program_tree_close(t);
    return CDMPP_OK;
}

static cdmpp_status fill(cd_batch *b, cdmpp_err *err) {
    b->n = BATCH;
    b->n_tok = (size_t)BATCH * LEAVES;
    b->max_leaf = LEAVES;
    for (size_t i = 0; i < b->n_tok * b->w_tok; i++) b->tok[i] = (float)cd_rng_unit(1, i);
    for (size_t i = 0; i < b->n * b->w_prog; i++) b->prog[i] = (float)cd_rng_unit(3, i);
    for (size_t i = 0; i <= BATCH; i++) b->tok_ptr[i] = (uint32_t)(i * LEAVES);
    for (size_t i = 0; i < b->n_tok; i++) b->pos[i] = (int32_t)(i % LEAVES);
    return b->has_tree ? plant(&b->tree, err) : CDMPP_OK;
}

/* Published: no positions and no device, as on the other side; slots for five leaves. */
static cd_net_config spec(const char *name) {
    cd_net_config s = cd_net_config_published();
    if (strcmp(name, "mlp") == 0) return cd_net_config_small(CD_NET_MLP);
    if (strcmp(name, "lstm") == 0) return cd_net_config_small(CD_NET_LSTM);
    if (strcmp(name, "tiramisu") == 0) return cd_net_config_tiramisu();
    if (strcmp(name, "published") != 0) return cd_net_config_small(CD_NET_TSF);
    s.slots = LEAVES;
    s.position = CD_POS_NONE;
    s.device = false;
    return s;
}

static cdmpp_status set_up(rig *r, const char *name, int threads, cdmpp_err *err) {
    const cd_net_config s = spec(name);
    const cd_batch_spec b = cd_net_batch_spec(&s, NULL, 0);
    const cd_batch_dims dims = {BATCH, (size_t)BATCH * LEAVES, LEAVES, (size_t)BATCH * NODES};
    cd_optim_spec o = cd_optim_spec_of(CD_OPTIM_ADAM);
    o.decay = 1.30707e-3;
    o.clip = 2;
    CD_TRY(cd_threads_new(threads, &r->pool, err));
    CD_TRY(cd_net_new(&s, 0, &r->net, err));
    CD_TRY(cd_batch_init(&r->batch, &b, &dims, err));
    CD_TRY(cd_net_state_new(r->net, &dims, threads, true, &r->state, err));
    const cd_optim_span all = {0, cd_net_params(r->net)->n_train, true};
    CD_TRY(cd_optim_init(&r->optim, &o, all.end, &all, 1, err));
    CD_TRY(fill(&r->batch, err));
    for (size_t i = 0; i < BATCH; i++) r->y[i] = (float)(3 * cd_rng_unit(2, i) - 1.5);
    return CDMPP_OK;
}

static double loss(rig *r) {
    double sum = 0;
    for (size_t i = 0; i < BATCH; i++) {
        const double e = (double)(r->out[i] - r->y[i]), a = fabs((double)r->y[i]);
        sum += (1000 * e * e + fabs(e) / a) / BATCH;
        r->d_out[i] = (float)((2000 * e + (e > 0 ? 1 : -1) / a) / BATCH);
    }
    return sum;
}

static cdmpp_status step(rig *r, uint64_t k, double *value, cdmpp_err *err) {
    cd_params *p = cd_net_params(r->net);
    cd_params_zero_grad(p);
    CD_TRY(cd_net_forward(r->net, &r->batch, r->state, r->pool, k + 1, r->out, NULL, err));
    *value = loss(r);
    cd_net_backward(r->net, &r->batch, r->state, r->pool, r->d_out, NULL);
    return cd_optim_step(&r->optim, r->pool, 1.67657e-5, p->value, p->grad, NULL, err);
}

static cdmpp_status run(rig *r, const char *name, int steps, int threads, cdmpp_err *err) {
    double t[MAX_STEPS + 1], cpu[MAX_STEPS + 1], value = 0;
    CD_TRY(set_up(r, name, threads, err));
    for (int k = 0; k <= steps; k++) {
        const double beg = cd_clock_wall(), used = cd_clock_process();
        CD_TRY(step(r, (uint64_t)k, &value, err));
        t[k] = cd_clock_wall() - beg;
        cpu[k] = cd_clock_process() - used;
    }
    cd_sort_doubles(t + 1, (size_t)steps);
    cd_sort_doubles(cpu + 1, (size_t)steps);
    const double m = t[1 + steps / 2];
    printf(
        "cdmpp %s threads=%d parameters=%zu step_s=%.4f cpu_s=%.4f samples_per_s=%.1f loss=%.6g\n",
        name, threads, cd_params_count(cd_net_params(r->net)), m, cpu[1 + steps / 2], BATCH / m,
        value);
    const double beg = cd_clock_wall(), used = cd_clock_process();
    for (int k = 0; k < steps; k++)
        CD_TRY(cd_net_predict(r->net, &r->batch, r->state, r->pool, r->out, NULL, err));
    printf("  predict samples_per_s=%.0f cpu_us=%.2f\n", steps * BATCH / (cd_clock_wall() - beg),
           1e6 * (cd_clock_process() - used) / (steps * BATCH));
    return CDMPP_OK;
}

int main(int argc, char **argv) {
    static rig r;
    cdmpp_err err = {0};
    char text[512];
    const int steps = argc > 1 ? atoi(argv[1]) : 4, threads = argc > 2 ? atoi(argv[2]) : 2;
    const cdmpp_status st = run(&r, argc > 3 ? argv[3] : "published",
                                steps < 1           ? 1
                                : steps > MAX_STEPS ? MAX_STEPS
                                                    : steps,
                                threads, &err);
    if (st) fprintf(stderr, "bench_train: %s\n", cdmpp_err_format(&err, text, sizeof text));
    cd_optim_free(&r.optim);
    cd_net_state_free(r.state);
    cd_batch_free(&r.batch);
    cd_net_free(r.net);
    cd_threads_free(r.pool);
    return cdmpp_exit_code(st);
}
