/* The network that a profile runs: tensors from the workload's buffers, steps from those groups
 * that have a program. */
#include <string.h>

#include "profiler/runtime/single/single_internal.h"

int64_t cd_op_profile_buffer_bytes(const cd_workload_buffer *b) {
    return cd_graph_shape_elements(&b->shape) * (int64_t)cd_expr_dtype_bytes(b->dtype);
}

/* Groups whose work is done on weights once, before any pass, have none in the pass. */
static bool has_program(const cd_workload *w, const cd_program_select *p, uint32_t group) {
    const cd_workload_group *g = &w->group[group];
    return g->task != CD_GRAPH_NONE && !g->weights && !p->task[g->task].status;
}

static cdmpp_status no_program(const cd_program_select *p, cdmpp_err *err) {
    for (uint32_t k = 0; k < p->n; k++)
        if (p->task[k].status)
            return CD_FAIL(err, EBACKEND, "no group of the network has a program: %s",
                           p->task[k].err.msg);
    return CD_FAIL(err, EBACKEND, "no group of the network has a program");
}

/* The content of a buffer that the graph knows, in the buffer's type. */
static cdmpp_status keep_known(cd_op_profile_net *m, const cd_workload *w, uint32_t k,
                               cdmpp_err *err) {
    const cd_workload_buffer *b = &w->buffer[k];
    const cd_graph_tensor *t = b->tensor == CD_GRAPH_NONE ? NULL : &w->graph->tensor[b->tensor];
    const int64_t n = cd_graph_shape_elements(&b->shape);
    const size_t size = cd_expr_dtype_bytes(b->dtype);
    if (!t || t->dtype != b->dtype || n < 2 || n != cd_graph_shape_elements(&t->shape))
        return CDMPP_OK;
    const bool real = t->fvalue && b->dtype == CD_F32,
               whole = t->value && !cd_expr_dtype_is_float(b->dtype) && size <= sizeof *t->value;
    if (!real && !whole) return CDMPP_OK;
    unsigned char *to = cd_arena_zalloc(&m->arena, (size_t)n, size);
    if (!to) return CD_FAIL(err, ENOMEM, "known content");
    for (int64_t i = 0; i < n; i++) {
        const float f = real ? (float)t->fvalue[i] : 0;
        if (real) memcpy(to + (size_t)i * size, &f, size);
        else memcpy(to + (size_t)i * size, &t->value[i], size); /* little endian */
    }
    m->known[k] = to;
    return CDMPP_OK;
}

/* A buffer that no step makes becomes an input (or a weight); of those that are made, the graph's
 * outputs become results. */
static cdmpp_status make_tensors(cd_op_profile_net *m, const cd_workload *w,
                                 const cd_program_select *p, cdmpp_err *err) {
    m->tensor = CD_NEWN(&m->arena, cd_executor_net_tensor, w->n_buffer + 1);
    m->scalar = CD_NEWN(&m->arena, double, w->n_buffer + 1);
    m->known = CD_NEWN(&m->arena, const void *, w->n_buffer + 1);
    if (!m->tensor || !m->scalar || !m->known) return CD_FAIL(err, ENOMEM, "network");
    for (uint32_t k = 0; k < w->n_buffer; k++) {
        const cd_workload_buffer *b = &w->buffer[k];
        const bool is_made = b->group != CD_GRAPH_NONE && has_program(w, p, b->group);
        m->tensor[k] = (cd_executor_net_tensor){.bytes = cd_op_profile_buffer_bytes(b),
                                                .dtype = b->dtype,
                                                .rank = b->shape.rank,
                                                .shape = b->shape.dim,
                                                .role = b->is_const ? CD_TENSOR_WEIGHT
                                                        : is_made   ? CD_TENSOR_INNER
                                                                    : CD_TENSOR_INPUT};
        m->scalar[k] = b->value;
        CD_TRY(keep_known(m, w, k, err));
    }
    for (uint32_t k = 0; k < w->graph->n_output; k++)
        if (w->output[k] < w->n_buffer && m->tensor[w->output[k]].role == CD_TENSOR_INNER)
            m->tensor[w->output[k]].role = CD_TENSOR_RESULT;
    return CDMPP_OK;
}

/* Arguments are the group's reads, then its write; shapes are those that the program sees (a view
 * has another shape than its buffer). */
static cdmpp_status make_steps(cd_op_profile_net *m, const cd_workload *w,
                               const cd_program_select *p, cdmpp_err *err) {
    m->step = CD_NEWN(&m->arena, cd_executor_net_step, w->n_group + 1);
    m->group = CD_NEWN(&m->arena, uint32_t, w->n_group + 1);
    m->task = CD_NEWN(&m->arena, uint32_t, w->n_group + 1);
    m->seconds = CD_NEWN(&m->arena, double, w->n_group + 1);
    m->plain = CD_NEWN(&m->arena, const cd_build *, w->n_group + 1);
    if (!m->step || !m->group || !m->task || !m->seconds || !m->plain)
        return CD_FAIL(err, ENOMEM, "network");
    for (uint32_t g = 0; g < w->n_group; g++) {
        const cd_workload_group *x = &w->group[g];
        if (!has_program(w, p, g)) continue;
        uint32_t *arg = CD_NEWN(&m->arena, uint32_t, x->n_read + 1);
        cd_executor_net_shape *shape = CD_NEWN(&m->arena, cd_executor_net_shape, x->n_read + 1);
        if (!arg || !shape) return CD_FAIL(err, ENOMEM, "network");
        for (uint32_t k = 0; k < x->n_read; k++) arg[k] = x->read[k];
        arg[x->n_read] = x->write;
        const cd_measure_item *item = &p->task[x->task].item;
        const cd_measure_arg *s = p->task[x->task].job.arg;
        for (uint32_t k = 0; k <= x->n_read; k++)
            shape[k] = (cd_executor_net_shape){s[k].rank, s[k].shape};
        m->group[m->net.n_step] = g;
        m->task[m->net.n_step] = x->task;
        m->seconds[m->net.n_step] = item->out.time.median_s;
        m->plain[m->net.n_step] = item->reference ? &item->reference_build : NULL;
        m->step[m->net.n_step++] = (cd_executor_net_step){
            cd_task_registry_at(w->tasks, w->task[x->task].task)->workload_key, &item->build, arg,
            shape};
    }
    m->net.n_tensor = w->n_buffer;
    m->net.tensor = m->tensor;
    m->net.step = m->step;
    return m->net.n_step ? CDMPP_OK : no_program(p, err);
}

cdmpp_status cd_op_profile_net_make(cd_op_profile_net *m, const cd_workload *w,
                                    const cd_program_select *p, cdmpp_err *err) {
    CD_TRY(make_tensors(m, w, p, err));
    return make_steps(m, w, p, err);
}
