/* A plan's regions with their values and programs, handed to the back ends. */
#include "predictor/partition/emit/emit.h"

#include <stdio.h>
#include <string.h>

#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/emit/offload_emit_internal.h"
#include "predictor/tune/session/session.h"
#include "profiler/backend/backend.h"
#include "profiler/codegen/codegen.h"

/* ---- files ---- */

cd_buf *cd_emit_add(cd_emit_files *f, const char *name, const char *end) {
    if (CD_GROW(f->file, f->n, f->cap)) return NULL;
    cd_emit_file *x = &f->file[f->n++];
    *x = (cd_emit_file){0};
    snprintf(x->name, sizeof x->name, "%.40s%.20s", name, end);
    return &x->text;
}

void cd_emit_files_free(cd_emit_files *f) {
    for (uint32_t k = 0; k < f->n; k++) cd_buf_free(&f->file[k].text);
    cd_mem_free(f->file);
    *f = (cd_emit_files){0};
}

const cd_emit_backend *cd_emit_of(const cd_emit_plan *p, uint32_t region) {
    return p->a->backend[p->a->plan->region[region].device];
}

bool cd_emit_is_int8(const cd_emit_plan *p, uint32_t from, uint32_t to) {
    return from != to && p->a->plan->edge[from * p->a->plan->rules->n_device + to].packed == 0.25;
}

char cd_emit_kind(cd_dtype t) {
    static const char kind[] = "iufhb";
    return kind[cd_expr_dtype_kind(t) < 5 ? cd_expr_dtype_kind(t) : 1];
}

/* ---- values of a region ---- */

typedef struct {
    cd_emit_plan *p;
    cd_program *program;
    cd_codegen_code **code; /* (n_code) to be freed */
    uint32_t n_code, cap_code;
    uint32_t *position; /* (buffers) in the region's values; UINT32_MAX: not there */
    uint32_t *code_of;  /* (tasks) of this region's device, UINT32_MAX: none yet */
} maker;

/* Read outside of its region, or a result of the network? */
static bool leaves(const cd_emit_plan *p, uint32_t region, uint32_t buffer) {
    const cd_workload *w = p->l->work;
    for (uint32_t i = 0; i < w->graph->n_output; i++)
        if (w->output[i] == buffer) return true;
    for (uint32_t g = 0; g < w->n_group; g++)
        for (uint32_t i = 0; i < w->group[g].n_read && p->a->plan->of[g] != region; i++)
            if (w->group[g].read[i] == buffer) return true;
    return false;
}

static cd_emit_role role_of(const cd_emit_plan *p, uint32_t region, uint32_t buffer) {
    const cd_workload_buffer *b = &p->l->work->buffer[buffer];
    if (b->is_const || b->value == b->value) return CD_EMIT_CONSTANT;
    if (b->group == CD_GRAPH_NONE || p->a->plan->of[b->group] != region) return CD_EMIT_INPUT;
    return leaves(p, region, buffer) ? CD_EMIT_RESULT : CD_EMIT_INNER;
}

static void add_value(maker *m, cd_emit_region *r, cd_emit_value *v, uint32_t region,
                      uint32_t buffer, cd_emit_role want) {
    const cd_workload_buffer *b = &m->p->l->work->buffer[buffer];
    if (m->position[buffer] != UINT32_MAX || role_of(m->p, region, buffer) != want) return;
    const int64_t bytes =
        cd_graph_shape_elements(&b->shape) * (int64_t)cd_expr_dtype_bytes(b->dtype);
    v[r->n_value] = (cd_emit_value){buffer, want, b->dtype, &b->shape, bytes};
    m->position[buffer] = r->n_value++;
}

/* One round for each role, in the order of the enumeration: so arguments (inputs, constants,
 * results) stand before the inner values. */
static cdmpp_status make_values(maker *m, uint32_t region, cd_emit_region *r, cdmpp_err *err) {
    const cd_offload_region *x = &m->p->a->plan->region[region];
    const uint32_t *group = m->p->a->plan->group + x->first;
    const cd_workload *w = m->p->l->work;
    size_t room = 1;
    for (uint32_t i = 0; i < x->n; i++) room += (size_t)w->group[group[i]].n_read + 1;
    cd_emit_value *v = CD_NEWN(&m->p->arena, cd_emit_value, room);
    if (!v) return CD_FAIL(err, ENOMEM, "values");
    memset(m->position, 0xff, ((size_t)w->n_buffer + 1) * sizeof *m->position);
    r->value = v;
    for (int want = CD_EMIT_INPUT; want <= CD_EMIT_INNER; want++) {
        for (uint32_t i = 0; i < x->n; i++) {
            for (uint32_t k = 0; k < w->group[group[i]].n_read; k++)
                add_value(m, r, v, region, w->group[group[i]].read[k], (cd_emit_role)want);
            add_value(m, r, v, region, w->group[group[i]].write, (cd_emit_role)want);
        }
        if (want == CD_EMIT_RESULT) r->n_arg = r->n_value;
    }
    return CDMPP_OK;
}

/* ---- programs ---- */

static cdmpp_status keep(maker *m, cd_codegen_code *c, uint32_t *number, cdmpp_err *err) {
    if (CD_GROW(m->code, m->n_code, m->cap_code)) return CD_FAIL(err, ENOMEM, "programs");
    *number = m->n_code;
    m->code[m->n_code++] = c;
    return CDMPP_OK;
}

/* The schedule as a record: given, simple, or none. */
static cdmpp_status record_of(maker *m, cd_arena *a, const cd_task *t, const char *line,
                              const char *target, bool gpu, cd_record *r, cdmpp_err *err) {
    const cd_hardware h = cd_target_hardware(gpu, gpu ? 0 : cd_backend_cpu_threads(target), 64);
    if (line && !m->p->a->naive) return cd_record_read(a, line, strlen(line), r, err);
    cd_tune_cand c = {0};
    const cd_tune_task of = {.task = t, .target = target, .hardware = h, .gpu = gpu, .flop = -1};
    if (!m->p->a->naive) CD_TRY(cd_tune_baseline(a, m->program, &of, &c, err));
    *r = (cd_record){.workload_key = {t->workload_key, strlen(t->workload_key)},
                     .target = {target, strlen(target)},
                     .hardware = h,
                     .has_hardware = true,
                     .n_step = c.n_step,
                     .step = c.step};
    return CDMPP_OK;
}

static cdmpp_status lower(maker *m, const cd_task *t, const char *line, const char *target,
                          cd_dialect d, const char *name, cd_codegen_code *out, cdmpp_err *err) {
    cd_arena a = {0};
    cd_record r;
    cd_nest nest;
    cdmpp_status st = record_of(m, &a, t, line, target, d != CD_DIALECT_C, &r, err);
    if (!st) st = cd_program_lower_code(m->program, t, &r, err);
    if (!st) st = cd_program_nest(m->program, &nest, err);
    if (!st) nest.pack = false; /* (3) */
    if (!st) st = cd_codegen(&nest, d, name, out, err);
    cd_arena_free(&a);
    return st;
}

static cdmpp_status make_code(maker *m, uint32_t region, const char *prefix, uint32_t group,
                              cd_dialect dialect, const cd_codegen_code **out, cdmpp_err *err) {
    const cd_offload_emit_options *a = m->p->a;
    const cd_workload_group *g = &m->p->l->work->group[group];
    const uint32_t device = a->plan->region[region].device;
    const cd_task *t = cd_task_registry_at(m->p->l->work->tasks, m->p->l->work->task[g->task].task);
    const char *line = a->schedule ? a->schedule(a->ctx, group, device) : NULL;
    char name[64];
    if (m->code_of[g->task] != UINT32_MAX) {
        *out = m->code[m->code_of[g->task]];
        return CDMPP_OK;
    }
    cd_codegen_code *c = cd_mem_zalloc(1, sizeof *c);
    if (!c) return CD_FAIL(err, ENOMEM, "program");
    snprintf(name, sizeof name, "%.40s_t%u", prefix, g->task);
    const bool own = a->backend[device]->dialect == (int)dialect; /* a stand-in's is the host's */
    cdmpp_status st = lower(m, t, own ? line : NULL, own ? a->target[device] : a->target[0],
                            dialect, name, c, err);
    if (!st && c->n_arg != g->n_read + 1)
        st = CD_FAIL(err, ESCHEMA, "a program of %u parameters for %u values", c->n_arg,
                     g->n_read + 1);
    if (!st) st = keep(m, c, &m->code_of[g->task], err);
    if (st) {
        cd_codegen_code_free(c);
        cd_mem_free(c);
        return cd_err_key(err, st, m->p->l->graph->node[group].name);
    }
    *out = c;
    return CDMPP_OK;
}

/* A task that comes twice in a region has one program (code_of). dialect -1: no programs, the back
 * end reads the operators. */
static cdmpp_status make_steps(maker *m, uint32_t region, cd_emit_region *r, int dialect,
                               cdmpp_err *err) {
    const cd_offload_region *x = &m->p->a->plan->region[region];
    cd_emit_step *s = CD_NEWN(&m->p->arena, cd_emit_step, (size_t)x->n + 1);
    if (!s) return CD_FAIL(err, ENOMEM, "steps");
    memset(m->code_of, 0xff, ((size_t)m->p->l->work->n_task + 1) * sizeof *m->code_of);
    r->step = s;
    r->n_step = x->n;
    for (uint32_t i = 0; i < x->n; i++) {
        const uint32_t g = m->p->a->plan->group[x->first + i];
        const cd_workload_group *w = &m->p->l->work->group[g];
        uint32_t *arg = CD_NEWN(&m->p->arena, uint32_t, (size_t)w->n_read + 2);
        if (!arg) return CD_FAIL(err, ENOMEM, "steps");
        for (uint32_t k = 0; k < w->n_read; k++) arg[k] = m->position[w->read[k]];
        arg[w->n_read] = m->position[w->write];
        s[i] = (cd_emit_step){.group = g,
                              .name = m->p->l->graph->node[g].name,
                              .type = m->p->l->graph->node[g].op,
                              .n_arg = w->n_read + 1,
                              .arg = arg};
        if (w->task == CD_GRAPH_NONE)
            return CD_FAIL(err, EUNSUPPORTED,
                           "group %s on %s: nothing defines it, so there is no source", s[i].name,
                           r->device);
        if (dialect >= 0)
            CD_TRY(make_code(m, region, r->name, g, (cd_dialect)dialect, &s[i].code, err));
    }
    return CDMPP_OK;
}

/* ---- regions ---- */

/* A back end whose text does not run on the host gets a stand-in in C: the steps are made a second
 * time for that dialect. */
static cdmpp_status one_region(maker *m, uint32_t k, cd_emit_files *out, cdmpp_err *err) {
    const cd_offload_region *x = &m->p->a->plan->region[k];
    const cd_emit_backend *b = cd_emit_of(m->p, k);
    cd_emit_region *r = &m->p->region[k];
    char name[32];
    snprintf(name, sizeof name, "region%u", k);
    *r = (cd_emit_region){.name = cd_str_dup(&m->p->arena, (cd_str){name, strlen(name)}),
                          .device = m->p->a->plan->rules->device[x->device],
                          .why = x->why,
                          .ops = &m->p->a->plan->rules->ops};
    if (!r->name) return CD_FAIL(err, ENOMEM, "region");
    CD_TRY(make_values(m, k, r, err));
    CD_TRY(cd_err_key(err, make_steps(m, k, r, b->dialect, err), r->device));
    CD_TRY(b->emit(r, out, err));
    if (b->runs) return CDMPP_OK;
    CD_TRY(cd_err_key(err, make_steps(m, k, r, CD_DIALECT_C, err), r->device));
    return cd_emit_c.emit(r, out, err);
}

/* The host program and the report come last: they need all regions and `used`. Buffers remember a
 * failed allocation, so one test at the end is enough. */
static cdmpp_status make_all(maker *m, cd_emit_files *out, cdmpp_err *err) {
    cd_emit_plan *p = m->p;
    p->n_region = p->a->plan->n_region;
    p->region = CD_NEWN(&p->arena, cd_emit_region, (size_t)p->n_region + 1);
    p->used = CD_NEWN(&p->arena, bool, (size_t)p->l->work->n_buffer + 1);
    m->position = CD_NEWN(&p->arena, uint32_t, (size_t)p->l->work->n_buffer + 1);
    m->code_of = CD_NEWN(&p->arena, uint32_t, (size_t)p->l->work->n_task + 1);
    if (!p->region || !p->used || !m->position || !m->code_of)
        return CD_FAIL(err, ENOMEM, "regions");
    CD_TRY(cd_program_new(&m->program, err));
    for (uint32_t k = 0; k < p->n_region; k++) CD_TRY(one_region(m, k, out, err));
    CD_TRY(cd_emit_host(p, out, err));
    CD_TRY(cd_emit_report(p, out, err));
    for (uint32_t k = 0; k < out->n; k++)
        if (out->file[k].text.oom) return CD_FAIL(err, ENOMEM, "%s", out->file[k].name);
    return CDMPP_OK;
}

cdmpp_status cd_offload_emit(const cd_offload_emit_options *a, cd_emit_files *out, cdmpp_err *err) {
    cd_emit_plan p = {.a = a, .l = a->plan->rules->loaded};
    maker m = {.p = &p};
    *out = (cd_emit_files){0};
    const cdmpp_status st = make_all(&m, out, err);
    for (uint32_t k = 0; k < m.n_code; k++) {
        cd_codegen_code_free(m.code[k]);
        cd_mem_free(m.code[k]);
    }
    cd_mem_free(m.code);
    cd_program_free(m.program);
    cd_arena_free(&p.arena);
    return st;
}
