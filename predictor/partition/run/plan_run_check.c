/* Fills the inputs and weights of a plan, runs the unsplit network on the same content, and
 * compares the results of both. */
#include <math.h>

#include "features/program/program.h"
#include "predictor/partition/run/plan_run_internal.h"
#include "profiler/backend/backend.h"
#include "profiler/runtime/single/single.h"

/* ---- content ---- */

cdmpp_status cd_plan_exec_content(const cd_network_loaded *l, const cd_shard_net *net,
                                  uint32_t tensor, void *to, cdmpp_err *err) {
    const cd_workload_buffer *b = cd_plan_exec_buffer(l, tensor);
    const int64_t n = cd_graph_shape_elements(&b->shape);
    const bool ok = net->tensor[tensor].constant
                        ? cd_tensor_fill_weight(b->dtype, tensor, b->shape.rank, b->shape.dim, to)
                        : cd_tensor_fill(b->dtype, tensor, 0, (size_t)n, to);
    if (!ok)
        return CD_FAIL(err, EUNSUPPORTED, "tensor %.80s has a type that cannot be filled",
                       net->tensor[tensor].name);
    if (!isnan(b->value) && b->dtype == CD_F32 && n == 1) *(float *)to = (float)b->value;
    return CDMPP_OK;
}

static size_t bytes_of(const cd_network_loaded *l, uint32_t tensor) {
    return (size_t)cd_graph_shape_elements(&cd_plan_exec_buffer(l, tensor)->shape) *
           cd_plan_exec_element_size(l, tensor);
}

static cdmpp_status write_piece(cd_plan_exec *m, const cd_network_loaded *l,
                                const cd_plan_exec_constant *c, const unsigned char *all,
                                cdmpp_err *err) {
    const size_t size = cd_plan_exec_element_size(l, c->tensor);
    int64_t from[CD_BOX_RANK], to[CD_BOX_RANK], first = 0;
    unsigned char *piece = cd_mem_alloc((size_t)cd_box_elements(&c->box) * size + 1);
    if (!piece) return CD_FAIL(err, ENOMEM, "weight");
    cd_box_strides(c->rank, c->shape, from);
    cd_box_strides(c->rank, c->box.n, to);
    for (uint32_t d = 0; d < c->rank; d++) first += c->box.lo[d] * from[d];
    cd_box_copy(piece, to, all + (size_t)first * size, from, c->rank, c->box.n, size);
    const cdmpp_status st = cd_multi_executor_write(m->net, c->buffer, piece, err);
    cd_mem_free(piece);
    return st;
}

static cdmpp_status fill_tensor(cd_plan_exec *m, const cd_plan_run_options *a, uint32_t t,
                                cdmpp_err *err) {
    bool wanted = m->home[t] != CD_PLAN_EXEC_NONE;
    const bool is_input = wanted;
    for (uint32_t k = 0; k < m->n_constant && !wanted; k++) wanted = m->constant[k].tensor == t;
    if (!wanted) return CDMPP_OK;
    unsigned char *all = cd_mem_alloc(bytes_of(a->loaded, t) + 8);
    if (!all) return CD_FAIL(err, ENOMEM, "tensor %.80s", a->net->tensor[t].name);
    cdmpp_status st = cd_plan_exec_content(a->loaded, a->net, t, all, err);
    if (!st && is_input) st = cd_multi_executor_write(m->net, m->home[t], all, err);
    for (uint32_t k = 0; k < m->n_constant && !st; k++)
        if (m->constant[k].tensor == t) st = write_piece(m, a->loaded, &m->constant[k], all, err);
    cd_mem_free(all);
    return st;
}

cdmpp_status cd_plan_exec_fill(cd_plan_exec *m, const cd_plan_run_options *a, cdmpp_err *err) {
    for (uint32_t t = 0; t < a->net->n_tensor; t++)
        if (a->net->tensor[t].from == CD_SHARD_NET_OUTSIDE) CD_TRY(fill_tensor(m, a, t, err));
    return CDMPP_OK;
}

/* ---- the unsplit network ---- */

typedef struct {
    const cd_plan_run_options *a;
    cd_arena arena;
    cd_record_program *job; /* (n_task) */
    cd_measure_item *item;  /* (n_task) */
    cd_executor_net net;
} plain;

static bool is_wanted(const cd_plan_run_options *a, uint32_t t) {
    return a->net->tensor[t].result && cd_plan_exec_buffer(a->loaded, t)->dtype == CD_F32;
}

/* Programs without schedules on one thread: as few transformations as possible between the
 * definition and the expected values. */
static cdmpp_status compile_plain(plain *p, cdmpp_err *err) {
    const cd_workload *w = p->a->loaded->work;
    cd_program *scratch = NULL;
    CD_TRY(cd_program_new(&scratch, err));
    cdmpp_status st = CDMPP_OK;
    for (uint32_t k = 0; k < w->n_task && !st; k++) {
        const cd_task *t = cd_task_registry_at(w->tasks, w->task[k].task);
        st = cd_plan_exec_plain_program(t->dag, t->workload_key, "llvm -num-cores=1", false,
                                        scratch, &p->job[k], err);
        if (!st && p->job[k].why.code) {
            if (err) *err = p->job[k].why;
            st = p->job[k].why.code;
        }
        p->item[k] =
            (cd_measure_item){.code = &p->job[k].code, .target = p->job[k].target, .threads = 1};
    }
    cd_program_free(scratch);
    if (!st) st = cd_measure_build(p->a->measure, p->item, w->n_task, err);
    for (uint32_t k = 0; k < w->n_task && !st; k++) {
        p->item[k].build.code = p->item[k].code;
        if (p->item[k].out.error_no)
            st = CD_FAIL(err, EBACKEND, "%.100s, unsplit: %s", w->task[k].op[0],
                         p->item[k].out.err.msg);
    }
    return st;
}

/* The unsplit network for the single-device executor, with the tensor numbers of the split one, so
 * that results compare by number. */
static cdmpp_status make_net(plain *p, cdmpp_err *err) {
    const cd_workload *w = p->a->loaded->work;
    const cd_shard_net *net = p->a->net;
    cd_executor_net_tensor *tensor = CD_NEWN(&p->arena, cd_executor_net_tensor, net->n_tensor + 1);
    cd_executor_net_step *step = CD_NEWN(&p->arena, cd_executor_net_step, net->n_op + 1);
    if (!tensor || !step) return CD_FAIL(err, ENOMEM, "network");
    for (uint32_t t = 0; t < net->n_tensor; t++) {
        const cd_workload_buffer *b = cd_plan_exec_buffer(p->a->loaded, t);
        const bool made = net->tensor[t].from != CD_SHARD_NET_OUTSIDE;
        tensor[t] = (cd_executor_net_tensor){.bytes = (int64_t)bytes_of(p->a->loaded, t),
                                             .dtype = b->dtype,
                                             .rank = b->shape.rank,
                                             .shape = b->shape.dim,
                                             .role = net->tensor[t].constant ? CD_TENSOR_WEIGHT
                                                     : !made                 ? CD_TENSOR_INPUT
                                                     : net->tensor[t].result ? CD_TENSOR_RESULT
                                                                             : CD_TENSOR_INNER};
    }
    for (uint32_t k = 0; k < net->n_op; k++)
        step[k] = (cd_executor_net_step){.name = net->op[k].name,
                                         .build = &p->item[w->group[k].task].build,
                                         .tensor = net->op[k].arg};
    p->net = (cd_executor_net){net->n_tensor, net->n_op, tensor, step};
    return CDMPP_OK;
}

static cdmpp_status write_all(plain *p, cd_executor *run, cdmpp_err *err) {
    const cd_shard_net *net = p->a->net;
    for (uint32_t t = 0; t < net->n_tensor; t++) {
        if (net->tensor[t].from != CD_SHARD_NET_OUTSIDE) continue;
        void *all = cd_mem_alloc(bytes_of(p->a->loaded, t) + 8);
        if (!all) return CD_FAIL(err, ENOMEM, "tensor %.80s", net->tensor[t].name);
        cdmpp_status st = cd_plan_exec_content(p->a->loaded, net, t, all, err);
        if (!st) st = cd_executor_write(run, t, all, err);
        cd_mem_free(all);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

/* Results are stored one behind the other in the order of the tensors; cd_plan_exec_compare reads
 * them in the same order. */
static cdmpp_status run_plain(plain *p, cd_plan_exec_expected *want, cdmpp_err *err) {
    cd_executor *run = NULL;
    double total;
    CD_TRY(cd_executor_open(&p->net, &(cd_executor_options){.threads = 1}, &run, err));
    cdmpp_status st = write_all(p, run, err);
    if (!st) cd_executor_pass(run, NULL, &total);
    size_t at = 0;
    for (uint32_t t = 0; t < p->a->net->n_tensor && !st; t++) {
        if (!is_wanted(p->a, t)) continue;
        st = cd_executor_read(run, t, want->value + at, err);
        at += bytes_of(p->a->loaded, t) / sizeof(float);
    }
    cd_executor_close(run);
    return st;
}

/* Only float32 results are kept: others are not compared. */
cdmpp_status cd_plan_exec_reference(cd_plan_run *r, cdmpp_err *err) {
    const uint32_t n = r->ask.loaded->work->n_task;
    plain p = {.a = &r->ask};
    size_t elements = 0;
    for (uint32_t t = 0; t < r->ask.net->n_tensor; t++)
        if (is_wanted(&r->ask, t)) elements += bytes_of(r->ask.loaded, t) / sizeof(float);
    p.job = CD_NEWN(&p.arena, cd_record_program, n + 1);
    p.item = CD_NEWN(&p.arena, cd_measure_item, n + 1);
    r->want.value = cd_mem_zalloc(elements + 1, sizeof(float));
    r->want.n = elements;
    cdmpp_status st =
        p.job && p.item && r->want.value ? CDMPP_OK : CD_FAIL(err, ENOMEM, "the unsplit network");
    if (!st) st = compile_plain(&p, err);
    if (!st) st = make_net(&p, err);
    if (!st) st = run_plain(&p, &r->want, err);
    for (uint32_t k = 0; p.job && k < n; k++) cd_record_program_free(&p.job[k]);
    cd_arena_free(&p.arena);
    return cd_err_key(err, st, "unsplit");
}

/* ---- comparison ---- */

static cdmpp_status compare_one(const char *name, const float *want, const float *got, size_t n,
                                double *max_error, cdmpp_err *err) {
    double far = 0, large = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(want[i]) || !isfinite(got[i]))
            return CD_FAIL(err, ENUMERIC, "%.80s: element %zu is %g, of the unsplit network %g",
                           name, i, (double)got[i], (double)want[i]);
        far = fmax(far, fabs((double)want[i] - (double)got[i]));
        large = fmax(large, fabs((double)want[i]));
    }
    *max_error = fmax(*max_error, large > 0 ? far / large : far);
    return CDMPP_OK;
}

/* Reads results from the last pass: m->home is their buffer in memory 0. */
cdmpp_status cd_plan_exec_compare(cd_plan_run *r, double *max_error, cdmpp_err *err) {
    const cd_plan_run_options *a = &r->ask;
    const float *want = r->want.value;
    *max_error = 0;
    for (uint32_t t = 0; t < a->net->n_tensor; t++) {
        if (!is_wanted(a, t)) continue;
        const size_t n = bytes_of(a->loaded, t) / sizeof(float);
        float *got = cd_mem_alloc(n * sizeof *got + 4);
        if (!got) return CD_FAIL(err, ENOMEM, "result %.80s", a->net->tensor[t].name);
        cdmpp_status st = cd_multi_executor_read(r->now->net, r->now->home[t], got, err);
        if (!st) st = compare_one(a->net->tensor[t].name, want, got, n, max_error, err);
        cd_mem_free(got);
        CD_TRY(st);
        want += n;
    }
    return CDMPP_OK;
}

cdmpp_status cd_plan_run_check(cd_plan_run *r, double *max_error, cdmpp_err *err) {
    double total;
    if (!r->want.value) return CD_FAIL(err, EUSAGE, "the plan was opened without check");
    CD_TRY(cd_plan_exec_pass(r, NULL, &total, NULL, err));
    return cd_plan_exec_compare(r, max_error, err);
}
