/* Programs of a plan's pieces: schedules of the parts, code, each distinct text compiled once and
 * tried in another process. */
#include <stdio.h>
#include <string.h>

#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/run/plan_run_internal.h"

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

cdmpp_status cd_plan_exec_plain_program(const cd_te_dag *dag, const char *key, const char *target,
                                        bool gpu, cd_program *scratch, cd_record_program *out,
                                        cdmpp_err *err) {
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
        CD_TRY(cd_plan_exec_plain_program(p->dag, p->key, target_of(d), is_opencl(d), scratch,
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
