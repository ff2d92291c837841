/* Fills the inputs and weights of a plan, runs the unsplit network on the same content, and
 * compares the results of both. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/run/plan_run_internal.h"
#include "profiler/backend/backend.h"
#include "profiler/runtime/single/single.h"

/* Programs of a plan's pieces: schedules of the parts, code, each distinct text compiled once and
 * tried in another process. */

enum { VECTOR_BYTES = 64, FRESH = 32, TRIES = 4000 };

static cd_str str(const char *s) { return (cd_str){s, strlen(s)}; }

static bool is_opencl(const cd_machine_device *d) { return !strcmp(d->kind, "opencl"); }

static const char *target_of(const cd_machine_device *d) {
    return d->target && d->target[0] ? d->target : is_opencl(d) ? "opencl" : "llvm -num-cores=1";
}

/* Where a piece is, for people. */
static const char *place_of(const cd_plan_exec *m, const cd_plan_run_options *a,
                            const cd_plan_exec_piece *p, char *s, size_t n) {
    const cd_shard_plan_op *o = &m->plan->op[p->op];
    if (o->n_part == 1) snprintf(s, n, "%.80s", a->net->op[p->op].name);
    else if (p->part == o->n_part) snprintf(s, n, "%.80s, join", a->net->op[p->op].name);
    else
        snprintf(s, n, "%.80s, part %u of %u over %.20s", a->net->op[p->op].name, p->part,
                 o->n_part, o->dim);
    return s;
}

/* ---- without a schedule ---- */

static cd_task task_of(const cd_te_dag *dag, const char *key, const char *target, bool gpu) {
    return (cd_task){.workload_key = key,
                     .target = target,
                     .target_kind = gpu ? "opencl" : "llvm",
                     .hardware = cd_target_hardware(gpu, gpu ? 0 : 1, VECTOR_BYTES),
                     .has_hardware = true,
                     .desc = "",
                     .dag = dag};
}

static cdmpp_status make_job(cd_record_maker *maker, const cd_record *r, cd_record_program *out,
                             cdmpp_err *err) {
    cd_buf line = {0};
    cdmpp_status st = cd_record_write(&line, r, err);
    if (!st)
        st = cd_record_program_make(
            maker, &(cd_recline){.text = line.p, .len = line.n, .path = "plan"}, out, err);
    cd_buf_free(&line);
    return st ? st : cd_record_program_code(maker, out, err);
}

/* A GPU's program needs threads: the first that the rules give. Operators too small for a fresh
 * schedule have others. */
static cdmpp_status draw(cd_record_maker *maker, cd_sketch_sampler *w, cd_sketch_choices *at,
                         cd_record *r, cd_record_program *out, cdmpp_err *err) {
    for (uint64_t i = 0; i < TRIES; i++) {
        cd_sketch_sample d;
        const cdmpp_status drawn = i < FRESH ? cd_sketch_sampler_draw(w, i, &d, err)
                                             : cd_sketch_sampler_next(w, at, &d, err);
        if (drawn == CDMPP_EREJECTED) continue;
        if (drawn == CDMPP_ENODATA) break;
        CD_TRY(drawn);
        r->step = d.step;
        r->n_step = d.n_step;
        cd_record_program_free(out);
        CD_TRY(make_job(maker, r, out, err));
        if (!out->why.code) return CDMPP_OK;
    }
    return out->why.code ? CDMPP_OK
                         : CD_FAIL(err, EREJECTED, "none of %d schedules drawn is one", TRIES);
}

static cdmpp_status draw_one(cd_record_maker *maker, cd_record *r, cd_record_program *out,
                             cdmpp_err *err) {
    cd_sketch_space *s = NULL;
    cd_sketch_sampler *w = NULL;
    cd_sketch_choices at = {0};
    cdmpp_status st = cd_sketch_space_new(maker->task, &maker->task->hardware, true, &s, err);
    if (!st) st = cd_sketch_sampler_new(s, 1, &w, err);
    if (!st) st = draw(maker, w, &at, r, out, err);
    cd_sketch_choices_free(&at);
    cd_sketch_sampler_free(w);
    cd_sketch_space_free(s);
    return st;
}

/* A program without a schedule: C, or of a GPU's dialect the first that its rules give. Free the
 * job after an error too. */
static cdmpp_status plan_exec_plain_program(const cd_te_dag *dag, const char *key,
                                            const char *target, bool gpu, cd_program *scratch,
                                            cd_record_program *out, cdmpp_err *err) {
    const cd_task t = task_of(dag, key, target, gpu);
    static const double none[] = {0};
    cd_record_maker maker = {
        .task = &t, .program = scratch, .dialect = gpu ? CD_DIALECT_OPENCL : CD_DIALECT_C};
    cd_record r = {.workload_key = str(key),
                   .target = str(target),
                   .target_host = str(""),
                   .has_hardware = true,
                   .has_host = true,
                   .has_layout = true,
                   .has_inputs = true,
                   .hardware = t.hardware,
                   .n_cost = 1,
                   .cost_s = none,
                   .version = str("v0.6")};
    memset(out, 0, sizeof *out);
    return gpu ? draw_one(&maker, &r, out, err) : make_job(&maker, &r, out, err);
}

/* ---- with one ---- */

/* What is not a weight cannot be packed beforehand. */
static bool packs_data(const cd_plan_run_options *a, const cd_plan_exec_piece *p,
                       const cd_codegen_code *c) {
    const cd_shard_net_op *o = &a->net->op[p->op];
    for (uint32_t k = 0; k < p->n_arg && k < c->n_arg; k++)
        if (c->buffer[k].n_digit &&
            ((p->of[k] & CD_TE_SHARD_PARTIAL) || !a->net->tensor[o->arg[p->of[k]]].constant))
            return true;
    return false;
}

static cdmpp_status unpack(cd_record_maker *maker, cd_record_program *j, cdmpp_err *err) {
    cd_codegen_code_free(&j->code);
    j->code = (cd_codegen_code){0};
    j->record.layout_rewrite = 0;
    CD_TRY(cd_record_id_of(&j->record, &j->id, err));
    return cd_record_program_code(maker, j, err);
}

static cdmpp_status scheduled(const cd_plan_run_options *a, const cd_plan_exec_piece *p,
                              const char *line, cd_program *scratch, cd_record_program *out,
                              cdmpp_err *err) {
    const cd_machine_device *d = &a->machine->device[p->device];
    const bool gpu = is_opencl(d);
    const cd_task t = task_of(p->dag, p->key, target_of(d), gpu);
    cd_record_maker maker = {.task = &t,
                             .program = scratch,
                             .dialect = gpu ? CD_DIALECT_OPENCL : CD_DIALECT_C,
                             .target = d->target && d->target[0] ? d->target : NULL};
    CD_TRY(cd_record_program_make(
        &maker, &(cd_recline){.text = line, .len = strlen(line), .path = "schedule"}, out, err));
    CD_TRY(cd_record_program_code(&maker, out, err));
    return !out->why.code && packs_data(a, p, &out->code) ? unpack(&maker, out, err) : CDMPP_OK;
}

static cdmpp_status make_code(const cd_plan_run_options *a, const cd_plan_exec_piece *p,
                              cd_program *scratch, cd_plan_exec_program *out, cdmpp_err *err) {
    const cd_machine_device *d = &a->machine->device[p->device];
    const char *line = NULL;
    if (a->cost) CD_TRY(cd_shard_cost_schedule(a->cost, p->op, p->device, p->own, &line, err));
    out->scheduled = line != NULL;
    if (line) CD_TRY(scheduled(a, p, line, scratch, &out->job, err));
    else
        CD_TRY(plan_exec_plain_program(p->dag, p->key, target_of(d), is_opencl(d), scratch,
                                       &out->job, err));
    if (!out->job.why.code) return CDMPP_OK;
    if (err) *err = out->job.why;
    return out->job.why.code;
}

/* ---- all of them ---- */

static bool same_program(const cd_plan_exec_program *a, const cd_plan_exec_program *b) {
    const cd_codegen_code *x = &a->job.code, *y = &b->job.code;
    return x->dialect == y->dialect && x->text.n == y->text.n &&
           !memcmp(x->text.p, y->text.p, x->text.n) && !strcmp(a->job.target, b->job.target);
}

static cdmpp_status add_program(cd_plan_exec *m, const cd_plan_run_options *a, uint32_t k,
                                cd_program *scratch, cdmpp_err *err) {
    cd_plan_exec_piece *p = &m->piece[k];
    cd_plan_exec_program *mine = &m->program[m->n_program];
    char place[200];
    mine->piece = k;
    m->n_program++; /* freed with the others, whatever becomes of it */
    const cdmpp_status st = make_code(a, p, scratch, mine, err);
    if (st) return cd_err_key(err, st, place_of(m, a, p, place, sizeof place));
    for (uint32_t i = 0; i + 1 < m->n_program; i++)
        if (same_program(&m->program[i], mine)) {
            p->program = i;
            m->n_program--;
            cd_record_program_free(&mine->job);
            return CDMPP_OK;
        }
    p->program = m->n_program - 1;
    m->item[p->program] = (cd_measure_item){
        .code = &mine->job.code, .arg = mine->job.arg, .target = mine->job.target, .threads = 1};
    return CDMPP_OK;
}

static cdmpp_status failed(const cd_plan_exec *m, const cd_plan_run_options *a, uint32_t k,
                           cdmpp_err *err) {
    const cd_measure_result *o = &m->item[k].out;
    char place[200];
    const char *where = place_of(m, a, &m->piece[m->program[k].piece], place, sizeof place);
    return CD_FAIL(err, EBACKEND, "%s: error %d: %s", where, o->error_no, o->err.msg);
}

/* Scheduled programs run in a process of their own first: one that crashes is an error, not the
 * end. Those without a schedule are loops as they are written down. */
static cdmpp_status try_all(cd_plan_exec *m, const cd_plan_run_options *a, cdmpp_err *err) {
    for (uint32_t k = 0; k < m->n_program; k++) {
        cd_measure_item *i = &m->item[k];
        if (a->stop && *a->stop) return CD_FAIL(err, EINTERRUPTED, "while programs were tried");
        if (!i->out.error_no && m->program[k].scheduled && i->code->dialect == CD_DIALECT_C)
            CD_TRY(cd_measure_run(a->measure, i, err));
        if (i->out.error_no) return failed(m, a, k, err);
        i->build.code = i->code;
    }
    return CDMPP_OK;
}

cdmpp_status cd_plan_exec_programs(cd_plan_exec *m, const cd_plan_run_options *a, cdmpp_err *err) {
    cd_program *scratch = NULL;
    m->program = CD_NEWN(&m->arena, cd_plan_exec_program, m->n_piece + 1);
    m->item = CD_NEWN(&m->arena, cd_measure_item, m->n_piece + 1);
    if (!m->program || !m->item) return CD_FAIL(err, ENOMEM, "%u programs", m->n_piece);
    cdmpp_status st = cd_program_new(&scratch, err);
    for (uint32_t k = 0; k < m->n_piece && !st; k++) {
        if (a->stop && *a->stop) st = CD_FAIL(err, EINTERRUPTED, "while programs were made");
        else st = add_program(m, a, k, scratch, err);
    }
    cd_program_free(scratch);
    if (!st) st = cd_measure_build(a->measure, m->item, m->n_program, err);
    return st ? st : try_all(m, a, err);
}

/* A loaded network in the form that the split planner takes: groups become operators, buffers
 * become tensors. */

/* The group that writes each buffer. Groups without a definition count too: the readers of their
 * buffer must come after them. */
static cdmpp_status find_makers(const cd_workload *w, cd_arena *a, uint32_t **out, cdmpp_err *err) {
    uint32_t *from = *out = CD_NEWN(a, uint32_t, w->n_buffer + 1);
    if (!from) return CD_FAIL(err, ENOMEM, "%u tensors", w->n_buffer);
    for (uint32_t k = 0; k < w->n_buffer; k++) from[k] = CD_SHARD_NET_OUTSIDE;
    for (uint32_t g = 0; g < w->n_group; g++) from[w->group[g].write] = g;
    return CDMPP_OK;
}

static cdmpp_status name_of(const cd_network_loaded *l, uint32_t k, uint32_t from, cd_arena *a,
                            const char **out, cdmpp_err *err) {
    const cd_workload *w = l->work;
    const uint32_t t = w->buffer[k].tensor;
    char s[32];
    const char *name = from != CD_SHARD_NET_OUTSIDE ? l->graph->node[from].name
                       : t != CD_GRAPH_NONE         ? w->graph->tensor[t].name
                                                    : NULL;
    if (!name || !name[0]) {
        snprintf(s, sizeof s, "tensor%u", k);
        name = s;
    }
    *out = cd_str_dup(a, (cd_str){name, strlen(name)});
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a tensor");
}

/* A constant is a tensor that no group makes and whose value the graph fixes; a constant output of
 * the network is not compared. */
static cdmpp_status make_tensors(const cd_network_loaded *l, cd_arena *a, cd_shard_net *out,
                                 cdmpp_err *err) {
    const cd_workload *w = l->work;
    cd_shard_net_tensor *v = CD_NEWN(a, cd_shard_net_tensor, w->n_buffer + 1);
    uint32_t *from;
    if (!v) return CD_FAIL(err, ENOMEM, "%u tensors", w->n_buffer);
    CD_TRY(find_makers(w, a, &from, err));
    for (uint32_t k = 0; k < w->n_buffer; k++) {
        const cd_workload_buffer *b = &w->buffer[k];
        v[k] = (cd_shard_net_tensor){.rank = b->shape.rank,
                                     .shape = b->shape.dim,
                                     .element_bytes = (uint32_t)cd_expr_dtype_bytes(b->dtype),
                                     .from = from[k],
                                     .constant = from[k] == CD_SHARD_NET_OUTSIDE &&
                                                 (b->is_const || !isnan(b->value))};
        CD_TRY(name_of(l, k, from[k], a, &v[k].name, err));
    }
    for (uint32_t k = 0; k < w->graph->n_output; k++)
        if (w->output[k] < w->n_buffer && !v[w->output[k]].constant) v[w->output[k]].result = true;
    out->n_tensor = w->n_buffer;
    out->tensor = v;
    return CDMPP_OK;
}

static cdmpp_status make_op(const cd_network_loaded *l, uint32_t k, cd_arena *a, cd_shard_net_op *o,
                            cdmpp_err *err) {
    const cd_workload *w = l->work;
    const cd_workload_group *g = &w->group[k];
    const cd_task *t =
        g->task == CD_GRAPH_NONE ? NULL : cd_task_registry_at(w->tasks, w->task[g->task].task);
    uint32_t *arg = CD_NEWN(a, uint32_t, g->n_read + 1);
    if (!arg) return CD_FAIL(err, ENOMEM, "operators");
    for (uint32_t i = 0; i < g->n_read; i++) arg[i] = g->read[i];
    arg[g->n_read] = g->write;
    *o = (cd_shard_net_op){.name = l->graph->node[k].name,
                           .type = l->graph->node[k].op,
                           .key = t ? t->workload_key : NULL,
                           .dag = t ? t->dag : NULL,
                           .why = l->graph->node[k].why,
                           .n_arg = g->n_read + 1,
                           .arg = arg,
                           .pin = UINT32_MAX};
    /* several results: the others come with it */
    if (o->dag && o->dag->n_arg != o->n_arg) o->dag = NULL;
    return CDMPP_OK;
}

cdmpp_status cd_plan_run_shard_net(const cd_network_loaded *l, cd_arena *a, cd_shard_net *out,
                                   cdmpp_err *err) {
    const uint32_t n = l->work->n_group;
    cd_shard_net_op *op = CD_NEWN(a, cd_shard_net_op, n + 1);
    *out = (cd_shard_net){.name = l->graph->name, .batch = l->graph->batch, .n_op = n, .op = op};
    if (!op) return CD_FAIL(err, ENOMEM, "%u operators", n);
    CD_TRY(make_tensors(l, a, out, err));
    for (uint32_t k = 0; k < n; k++) CD_TRY(make_op(l, k, a, &op[k], err));
    return CDMPP_OK;
}

const struct cd_workload_buffer *cd_plan_exec_buffer(const cd_network_loaded *l, uint32_t tensor) {
    return &l->work->buffer[tensor];
}
/* bytes of an element */
static size_t plan_exec_element_size(const cd_network_loaded *l, uint32_t tensor) {
    return cd_expr_dtype_bytes(l->work->buffer[tensor].dtype);
}

/* ---- content ---- */

/* plan_run_check.c. The content of an input or weight as a whole tensor, row-major, into `to`: it
 * depends on the tensor's number, type, shape and fixed value only. Errors: EUNSUPPORTED (a type
 * that cannot be filled). */
static cdmpp_status plan_exec_content(const cd_network_loaded *l, const cd_shard_net *net,
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
           plan_exec_element_size(l, tensor);
}

static cdmpp_status write_piece(cd_plan_exec *m, const cd_network_loaded *l,
                                const cd_plan_exec_constant *c, const unsigned char *all,
                                cdmpp_err *err) {
    const size_t size = plan_exec_element_size(l, c->tensor);
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
    cdmpp_status st = plan_exec_content(a->loaded, a->net, t, all, err);
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
        st = plan_exec_plain_program(t->dag, t->workload_key, "llvm -num-cores=1", false, scratch,
                                     &p->job[k], err);
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
        cdmpp_status st = plan_exec_content(p->a->loaded, net, t, all, err);
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
