/* Whole operators on devices as a problem of predictor/partition/placement: solved for
 * options.goal, written for options.lp. Inputs and results of the network are operators of 0 s that
 * are pinned to the first device, so that bringing them there and back has its price. */
#include <math.h>

#include "base/io/io.h"
#include "predictor/partition/plan/partition_internal.h"

typedef struct {
    cd_partition *p;
    cd_place_problem problem;
    cd_place_op *op;
    cd_place_value *value;
    cd_place_device *device;
    cd_place_link *link;
    uint32_t *to;
    double *seconds;
} builder;

/* Whether an operator reads the tensor; its last argument is what it writes. */
static bool into(const cd_shard_net_op *o, uint32_t tensor) {
    for (uint32_t k = 0; k + 1 < o->n_arg; k++)
        if (o->arg[k] == tensor) return true;
    return false;
}

/* ---- operators ---- */
static cdmpp_status one_op(builder *m, uint32_t k, cdmpp_err *err) {
    cd_partition *p = m->p;
    const cd_shard_net_op *o = &p->net.op[k];
    m->op[k] = (cd_place_op){.name = o->name,
                             .pin = o->pin == UINT32_MAX ? CD_PLACE_FREE : o->pin,
                             .pin_why = o->pin_why};
    for (uint32_t d = 0; d < p->machine.n; d++) {
        cd_shard_plan_estimate a = {0};
        double *s = &m->seconds[(size_t)k * p->machine.n + d];
        *s = INFINITY;
        if (o->allowed && !(o->allowed >> d & 1)) continue;
        CD_TRY(p->how.time(p->how.ctx, k, d, NULL, &a, err));
        *s = a.seconds + p->machine.device[d].launch_s;
    }
    return CDMPP_OK;
}

/* Adds an operator of 0 s on the first device, for an input or a result. */
static uint32_t add_fixed(builder *m, const char *name) {
    const uint32_t k = m->problem.n_op++;
    m->op[k] = (cd_place_op){
        .name = name, .pin = 0, .pin_why = "inputs and results are the first device's"};
    for (uint32_t d = 0; d < m->p->machine.n; d++) m->seconds[(size_t)k * m->p->machine.n + d] = 0;
    return k;
}

/* ---- values ---- */
static int64_t bytes_of(const cd_shard_net_tensor *t) {
    int64_t n = t->element_bytes;
    for (uint32_t k = 0; k < t->rank; k++) n *= t->shape[k];
    return n;
}

/* A value is a tensor that one operator writes and others read; constants are no values, because
 * every device has its own copy. */
static void values(builder *m) {
    const cd_shard_net *n = &m->p->net;
    for (uint32_t t = 0; t < n->n_tensor; t++) {
        const cd_shard_net_tensor *x = &n->tensor[t];
        if (x->constant) continue;
        cd_place_value v = {.from = x->from, .bytes = bytes_of(x), .first = m->problem.n_to};
        for (uint32_t k = 0; k < n->n_op; k++)
            if (into(&n->op[k], t)) m->to[m->problem.n_to++] = k;
        if (x->result) m->to[m->problem.n_to++] = add_fixed(m, "result");
        v.n_to = m->problem.n_to - v.first;
        if (!v.n_to) continue;
        if (x->from == CD_SHARD_NET_OUTSIDE) v.from = add_fixed(m, x->name ? x->name : "input");
        m->value[m->problem.n_value++] = v;
    }
}

/* The problem in the partition's arena. Arrays are sized for the worst case: every tensor an input
 * and a result. */
static cdmpp_status build(builder *m, cdmpp_err *err) {
    cd_partition *p = m->p;
    const cd_shard_net *n = &p->net;
    const uint32_t D = p->machine.n;
    size_t reads = n->n_tensor + 1, most = (size_t)n->n_op + 2 * (size_t)n->n_tensor;
    for (uint32_t k = 0; k < n->n_op; k++) reads += n->op[k].n_arg;
    m->op = CD_NEWN(&p->arena, cd_place_op, most);
    m->value = CD_NEWN(&p->arena, cd_place_value, (size_t)n->n_tensor + 1);
    m->to = CD_NEWN(&p->arena, uint32_t, reads);
    m->seconds = CD_NEWN(&p->arena, double, most *D);
    m->device = CD_NEWN(&p->arena, cd_place_device, D);
    m->link = CD_NEWN(&p->arena, cd_place_link, (size_t)D * D + 1);
    if (!m->op || !m->value || !m->to || !m->seconds || !m->device || !m->link)
        return CD_FAIL(err, ENOMEM, "a problem of %u operators", n->n_op);
    for (uint32_t d = 0; d < D; d++) m->device[d] = (cd_place_device){p->machine.device[d].name, 1};
    for (uint32_t k = 0; k < n->n_op; k++) CD_TRY(one_op(m, k, err));
    m->problem.n_op = n->n_op;
    m->problem.n_device = D;
    values(m);
    m->problem.n_link = cd_partition_links(&p->machine, m->link);
    m->problem.op = m->op;
    m->problem.value = m->value;
    m->problem.to = m->to;
    m->problem.seconds = m->seconds;
    m->problem.device = m->device;
    m->problem.link = m->link;
    return CDMPP_OK;
}

static cdmpp_status write_lp(const cd_place_problem *problem, cd_place_goal goal, const char *path,
                             cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_place_lp(problem, goal, &b, err);
    if (!st && b.oom) st = CD_FAIL(err, ENOMEM, "a problem of %u operators", problem->n_op);
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* Weights of one operator are its own; others are shared. */
static cdmpp_status weights_of(const cd_partition *p, cd_arena *a, cd_place_limits *l, double *own,
                               cdmpp_err *err) {
    const uint32_t n_tensor = p->net.n_tensor, n_op = p->net.n_op;
    uint32_t *first = CD_NEWN(a, uint32_t, (size_t)n_tensor + 2), n = 0;
    if (!first) return CD_FAIL(err, ENOMEM, "%u tensors", n_tensor);
    for (uint32_t k = 0; k < n_op; k++)
        for (uint32_t i = 0; i + 1 < p->net.op[k].n_arg; i++)
            first[p->net.op[k].arg[i] + 1] += p->net.tensor[p->net.op[k].arg[i]].constant;
    for (uint32_t t = 0; t < n_tensor; t++) first[t + 1] += first[t];
    n = first[n_tensor];
    uint32_t *reader = CD_NEWN(a, uint32_t, (size_t)n + 1),
             *count = CD_NEWN(a, uint32_t, (size_t)n_tensor + 1);
    cd_place_shared *shared = CD_NEWN(a, cd_place_shared, (size_t)n_tensor + 1);
    if (!reader || !count || !shared) return CD_FAIL(err, ENOMEM, "%u tensors", n_tensor);
    for (uint32_t k = 0; k < n_op; k++)
        for (uint32_t i = 0; i + 1 < p->net.op[k].n_arg; i++) {
            const uint32_t t = p->net.op[k].arg[i];
            if (!p->net.tensor[t].constant || (count[t] && reader[first[t] + count[t] - 1] == k))
                continue;
            reader[first[t] + count[t]++] = k;
        }
    for (uint32_t t = 0; t < n_tensor; t++) {
        const double bytes = count[t] ? (double)bytes_of(&p->net.tensor[t]) : 0;
        if (count[t] == 1) own[reader[first[t]]] += bytes;
        else if (count[t])
            shared[l->n_shared++] = (cd_place_shared){bytes, &reader[first[t]], count[t]};
    }
    l->weights = own;
    l->shared = shared;
    return CDMPP_OK;
}

/* Solves within the memories of the machine. Devices of one memory share it: the least size that
 * any of them says counts. Weights count where their operator is. */
static cdmpp_status place(builder *m, cd_place_goal goal, cdmpp_err *err) {
    cd_partition *p = m->p;
    uint32_t memory[CD_MACHINE_DEVICES];
    double bytes[CD_MACHINE_DEVICES] = {0};
    double *weights = CD_NEWN(&p->arena, double, (size_t)m->problem.n_op + 1);
    cd_place_limits l = {.n_memory = p->machine.n, .memory = memory, .bytes = bytes};
    if (!weights) return CD_FAIL(err, ENOMEM, "%u operators", m->problem.n_op);
    for (uint32_t d = 0; d < p->machine.n; d++) {
        const double has = p->machine.device[d].mem_gb * 1e9;
        memory[d] = 0;
        while (p->machine.device[memory[d]].memory != p->machine.device[d].memory) memory[d]++;
        if (has > 0 && !(bytes[memory[d]] > 0 && bytes[memory[d]] <= has)) bytes[memory[d]] = has;
    }
    CD_TRY(weights_of(p, &p->arena, &l, weights, err));
    return cd_place_solve_within(&m->problem, goal, 0, &l, &p->placed, err);
}

cdmpp_status cd_partition_place(cd_partition *p, cdmpp_err *err) {
    builder m = {.p = p};
    const cd_place_goal goal = p->o->goal > 0 ? CD_PLACE_MAKESPAN : CD_PLACE_SUM;
    CD_TRY(build(&m, err));
    if (p->o->lp) CD_TRY(write_lp(&m.problem, goal, p->o->lp, err));
    p->has_placed = p->o->goal >= 0;
    return p->has_placed ? place(&m, goal, err) : CDMPP_OK;
}
