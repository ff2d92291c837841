/* A plan's regions with their values and programs, handed to the back ends. */
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "features/program/program.h"
#include "features/sketch/sketch.h"
#include "predictor/partition/emit/embed/opencl_head.c.in.h"
#include "predictor/partition/emit/emit.h"
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

/* back end of the region's device */
static const cd_emit_backend *emit_of(const cd_emit_plan *p, uint32_t region) {
    return p->a->backend[p->a->plan->region[region].device];
}

/* devices: travels as int8 */
static bool emit_is_int8(const cd_emit_plan *p, uint32_t from, uint32_t to) {
    return from != to && p->a->plan->edge[from * p->a->plan->rules->n_device + to].packed == 0.25;
}

/* 'f' 32 of float32, and so on: one of iufhb as codegen's kinds are. */
static char emit_kind(cd_dtype t) {
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
    const cd_emit_backend *b = emit_of(m->p, k);
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

static cdmpp_status emit_host(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err);

static cdmpp_status emit_report(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err);

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
    CD_TRY(emit_host(p, out, err));
    CD_TRY(emit_report(p, out, err));
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

/* main.c and Makefile: values once, constants once, regions in their order. */

/* The first makes the same numbers as cd_tensor_fill and cd_tensor_fill_weight: value number k,
 * element i. */
#include "predictor/partition/emit/embed/host_fill.c.in.h"
#include "predictor/partition/emit/embed/host_work.c.in.h"

/* ---- tables ---- */

static char role_of_host(const cd_emit_plan *p, uint32_t v) {
    const cd_workload_buffer *b = &p->l->work->buffer[v];
    if (b->value == b->value) return 's';
    return b->is_const ? 'w' : b->group == CD_GRAPH_NONE ? 'i' : 'v';
}

/* Values by number; at: position of each in main's table. */
static uint32_t put_values(const cd_emit_plan *p, uint32_t *at, cd_buf *b) {
    uint32_t n = 0;
    cd_buf_puts(
        b, "static struct {\n    long long n;\n    int number, rank;\n    long long widest;\n    "
           "int bits;\n    char kind, role; /* i input, w weight, s known scalar, v made */\n"
           "    double scalar;\n    void *p, *as_int8;\n} value[] = {\n");
    for (uint32_t v = 0; v < p->l->work->n_buffer; v++) {
        const cd_workload_buffer *x = &p->l->work->buffer[v];
        int64_t widest = 1;
        at[v] = UINT32_MAX;
        if (!p->used[v]) continue;
        for (uint32_t d = 0; d < x->shape.rank; d++)
            widest = x->shape.dim[d] > widest ? x->shape.dim[d] : widest;
        const char role = role_of_host(p, v);
        cd_buf_putf(b, "    {%lld, %u, %u, %lld, %u, '%c', '%c', ",
                    (long long)cd_graph_shape_elements(&x->shape), v, x->shape.rank,
                    (long long)widest, cd_expr_dtype_bits(x->dtype), emit_kind(x->dtype), role);
        cd_buf_put_json_real(b, role == 's' ? x->value : 0);
        cd_buf_puts(b, ", 0, 0},\n");
        at[v] = n++;
    }
    cd_buf_puts(b, "};\n");
    return n;
}

/* Inner values of regions are theirs: main has none of them. */
static void drop_inner(const cd_emit_plan *p) {
    memset(p->used, 0, p->l->work->n_buffer * sizeof *p->used);
    for (uint32_t r = 0; r < p->n_region; r++)
        for (uint32_t k = 0; k < p->region[r].n_arg; k++)
            p->used[p->region[r].value[k].value] = true;
    for (uint32_t k = 0; k < p->l->source->n_output; k++) p->used[p->l->work->output[k]] = true;
}

static bool crosses_as_int8(const cd_emit_plan *p, uint32_t region, const cd_emit_value *v) {
    const cd_workload_buffer *b = &p->l->work->buffer[v->value];
    const uint32_t from = b->group == CD_GRAPH_NONE ? 0 : p->a->plan->where[b->group];
    return v->role == CD_EMIT_INPUT && emit_is_int8(p, from, p->a->plan->region[region].device);
}

static void put_regions(const cd_emit_plan *p, const uint32_t *at, cd_buf *b) {
    uint32_t most = 1;
    for (uint32_t r = 0; r < p->n_region; r++) {
        const cd_emit_region *x = &p->region[r];
        most = x->n_arg > most ? x->n_arg : most;
        cd_buf_putf(b, "int %s_run(void *const *argument); /* ", x->name);
        cd_escape_c_comment(b, cd_str_of(x->device));
        cd_buf_puts(b, " */\n");
        cd_buf_putf(b, "static const int %s_value[] = {", x->name);
        for (uint32_t k = 0; k < x->n_arg; k++)
            cd_buf_putf(b, "%s%u", k ? ", " : "", at[x->value[k].value]);
        cd_buf_putf(b, "};\nstatic const char %s_int8[] = {", x->name);
        for (uint32_t k = 0; k < x->n_arg; k++)
            cd_buf_putf(b, "%s%d", k ? ", " : "", crosses_as_int8(p, r, &x->value[k]));
        cd_buf_puts(b, "};\n");
    }
    cd_buf_puts(b, "static const struct { const char *name; int (*run)(void *const *); int n; "
                   "const int *value; const char *int8; } region[] = {\n");
    for (uint32_t r = 0; r < p->n_region; r++) {
        const char *name = p->region[r].name;
        cd_buf_putf(b, "    {\"%s\", %s_run, %u, %s_value, %s_int8},\n", name, name,
                    p->region[r].n_arg, name, name);
    }
    cd_buf_putf(b, "};\nstatic const int result[] = {");
    for (uint32_t k = 0; k < p->l->source->n_output; k++)
        cd_buf_putf(b, "%s%u", k ? ", " : "", at[p->l->work->output[k]]);
    cd_buf_puts(b, "};\nstatic const char result_int8[] = {");
    for (uint32_t k = 0; k < p->l->source->n_output; k++) {
        const uint32_t from = p->l->work->buffer[p->l->work->output[k]].group;
        cd_buf_putf(b, "%s%d", k ? ", " : "",
                    from != CD_GRAPH_NONE && emit_is_int8(p, p->a->plan->where[from], 0));
    }
    cd_buf_putf(b, "};\nenum { REGIONS = %u, MOST = %u, RESULTS = %u };\n", p->n_region, most,
                p->l->source->n_output);
}

static void put_makefile(const cd_emit_plan *p, cd_buf *b) {
    const char *lib[CD_PLACE_MAX_DEVICE];
    uint32_t n = 0;
    cd_buf_puts(b, "# make, then ./network\nCFLAGS ?= -O2 -march=native -ffp-contract=fast "
                   "-fno-math-errno\nOPENMP ?= -fopenmp\nOBJECTS = main.o");
    for (uint32_t r = 0; r < p->n_region; r++) cd_buf_putf(b, " %s.o", p->region[r].name);
    cd_buf_puts(b, "\nLIBRARIES ?=");
    for (uint32_t r = 0; r < p->n_region; r++) {
        const char *want = emit_of(p, r)->library;
        bool had = !want;
        for (uint32_t k = 0; k < n && !had; k++) had = !strcmp(lib[k], want);
        if (!had) lib[n++] = want, cd_buf_putf(b, " %s", want);
    }
    cd_buf_puts(b, "\n\nnetwork: $(OBJECTS)\n\t$(CC) $(OPENMP) -o $@ $(OBJECTS) $(LIBRARIES) "
                   "-lm\n%.o: %.c\n\t$(CC) $(CFLAGS) -Wno-psabi $(OPENMP) -c $< -o "
                   "$@\nclean:\n\trm -f network $(OBJECTS)\n");
}

/* main.c and Makefile; network.json. After all regions are made. Errors: ENOMEM. */
static cdmpp_status emit_host(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err) {
    uint32_t *at = cd_mem_zalloc((size_t)p->l->work->n_buffer + 1, sizeof *at);
    cd_buf *b = at ? cd_emit_add(out, "main", ".c") : NULL;
    if (!b) {
        cd_mem_free(at);
        return CD_FAIL(err, ENOMEM, "source");
    }
    drop_inner(p);
    cd_buf_puts(b, "/* Regions of a network, one behind the other. Values by number: network.json. "
                   "*/\n#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include "
                   "<stdlib.h>\n#include <string.h>\n#include <time.h>\n");
    cd_buf_putf(b, "enum { VALUES = %u };\n", put_values(p, at, b));
    put_regions(p, at, b);
    cd_buf_puts(b, host_fill_c_in);
    cd_buf_puts(b, host_work_c_in);
    cd_mem_free(at);
    if (!(b = cd_emit_add(out, "Makefile", ""))) return CD_FAIL(err, ENOMEM, "makefile");
    put_makefile(p, b);
    return CDMPP_OK;
}

/* Back end: OpenCL C, and the C that calls it. */

/* role there: 0 input, 1 constant, 2 result, 3 inner; as cd_emit_role. */
#include "predictor/partition/emit/embed/opencl_run.c.in.h"

static bool is_first(const cd_emit_region *r, uint32_t step) {
    for (uint32_t k = 0; k < step; k++)
        if (r->step[k].code == r->step[step].code) return false;
    return true;
}

static uint32_t scratch_of(const cd_emit_region *r, const cd_codegen_code *code) {
    uint32_t n = r->n_value;
    for (uint32_t s = 0; s < r->n_step && r->step[s].code != code; s++)
        if (is_first(r, s)) n += r->step[s].code->n_buffer - r->step[s].code->n_arg;
    return n;
}

static uint32_t put_values_opencl(const cd_emit_region *r, cd_buf *b) {
    uint32_t n = r->n_value;
    cd_buf_puts(b, "static const struct { long long bytes; int role; } value[] = {");
    for (uint32_t k = 0; k < r->n_value; k++)
        cd_buf_putf(b, "{%lld, %d}, ", (long long)r->value[k].bytes, (int)r->value[k].role);
    for (uint32_t s = 0; s < r->n_step; s++)
        for (uint32_t k = r->step[s].code->n_arg; k < r->step[s].code->n_buffer && is_first(r, s);
             k++, n++)
            cd_buf_putf(b, "{%lld, 3}, ", (long long)r->step[s].code->buffer[k].bytes);
    cd_buf_puts(b, "};\n");
    return n;
}

/* A launch numbers the buffers of its program: parameters, then scratch. Here they become positions
 * in value[]: parameters by the step's arguments, scratch behind all values of the region. */
static uint32_t put_launches(const cd_emit_region *r, cd_buf *b) {
    uint32_t most = 1, n = 0;
    for (uint32_t s = 0; s < r->n_step; s++)
        for (uint32_t k = 0; k < r->step[s].code->n_launch; k++)
            most = r->step[s].code->launch[k].n_buffer > most ? r->step[s].code->launch[k].n_buffer
                                                              : most;
    cd_buf_putf(b,
                "static const struct { const char *entry; size_t grid[3], block[3]; unsigned n; "
                "int buffer[%u]; } launch[] = {\n",
                most);
    for (uint32_t s = 0; s < r->n_step; s++) {
        const cd_codegen_code *c = r->step[s].code;
        const uint32_t scratch = scratch_of(r, c);
        for (uint32_t k = 0; k < c->n_launch; k++, n++) {
            const cd_codegen_launch *l = &c->launch[k];
            cd_buf_putf(b, "    {\"%s\", {%lld, %lld, %lld}, {%lld, %lld, %lld}, %u, {", l->entry,
                        (long long)l->grid[0], (long long)l->grid[1], (long long)l->grid[2],
                        (long long)l->block[0], (long long)l->block[1], (long long)l->block[2],
                        l->n_buffer);
            for (uint32_t j = 0; j < l->n_buffer; j++)
                cd_buf_putf(b, "%s%u", j ? ", " : "",
                            l->buffer[j] < c->n_arg ? r->step[s].arg[l->buffer[j]]
                                                    : scratch + l->buffer[j] - c->n_arg);
            cd_buf_puts(b, "}},\n");
        }
    }
    cd_buf_puts(b, "};\n");
    return n;
}

static cdmpp_status emit(const cd_emit_region *r, cd_emit_files *out, cdmpp_err *err) {
    cd_buf *b = cd_emit_add(out, r->name, ".cl");
    if (!b) return CD_FAIL(err, ENOMEM, "source");
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_OPENCL));
    for (uint32_t s = 0; s < r->n_step; s++)
        if (is_first(r, s)) cd_buf_put(b, r->step[s].code->text.p, r->step[s].code->text.n);
    if (!(b = cd_emit_add(out, r->name, ".c"))) return CD_FAIL(err, ENOMEM, "source");
    cd_buf_putf(b, "/* %s of ", r->name);
    cd_escape_c_comment(b, cd_str_of(r->device));
    cd_buf_putf(b, ": %u programs in %s.cl. Arguments: network.json. */\n", r->n_step, r->name);
    cd_buf_puts(b, opencl_head_c_in);
    cd_buf_putf(b, "#define SOURCE \"%s.cl\"\n#define RUN %s_run\n", r->name, r->name);
    const uint32_t values = put_values_opencl(r, b), launches = put_launches(r, b);
    cd_buf_putf(b, "enum { VALUES = %u, LAUNCHES = %u };\n", values, launches);
    cd_buf_puts(b, opencl_run_c_in);
    return CDMPP_OK;
}

const cd_emit_backend cd_emit_opencl = {.name = "opencl",
                                        .brief = "OpenCL C and what calls it",
                                        .dialect = CD_DIALECT_OPENCL,
                                        .runs = true,
                                        .library = "-lOpenCL",
                                        .emit = emit};

/* Writes network.json: the arguments, steps and launches of each region, each constant once, and
 * the conversions between devices. */

static void put_text(cd_buf *b, const char *s) { cd_buf_put_json_str(b, s, strlen(s)); }

static const char *name_of(const cd_emit_plan *p, uint32_t v, char *room, size_t n) {
    const cd_workload_buffer *x = &p->l->work->buffer[v];
    if (x->group != CD_GRAPH_NONE) return p->l->graph->node[x->group].name;
    if (x->tensor != CD_GRAPH_NONE && p->l->source->tensor[x->tensor].name)
        return p->l->source->tensor[x->tensor].name;
    snprintf(room, n, "value%u", v);
    return room;
}

static void put_value(const cd_emit_plan *p, uint32_t v, cd_buf *b) {
    const cd_workload_buffer *x = &p->l->work->buffer[v];
    char room[40], dtype[40];
    cd_buf_putf(b, "{\"value\": %u, \"name\": ", v);
    put_text(b, name_of(p, v, room, sizeof room));
    cd_buf_putf(b, ", \"dtype\": \"%s\", \"shape\": [",
                cd_expr_dtype_format(x->dtype, dtype, sizeof dtype));
    for (uint32_t d = 0; d < x->shape.rank; d++)
        cd_buf_putf(b, "%s%lld", d ? ", " : "", (long long)x->shape.dim[d]);
    cd_buf_putf(
        b, "], \"bytes\": %lld",
        (long long)(cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype)));
}

/* Constants and inputs in the order of their files, each once. */
static void put_outside(const cd_emit_plan *p, bool constants, cd_buf *b) {
    int64_t at = 0;
    bool first = true;
    for (uint32_t v = 0; v < p->l->work->n_buffer; v++) {
        const cd_workload_buffer *x = &p->l->work->buffer[v];
        if (!p->used[v] || x->value == x->value || x->is_const != constants ||
            (!constants && x->group != CD_GRAPH_NONE))
            continue;
        cd_buf_puts(b, first ? "\n  " : ",\n  ");
        put_value(p, v, b);
        cd_buf_putf(b, ", \"offset\": %lld}", (long long)at);
        at += cd_graph_shape_elements(&x->shape) * (int64_t)cd_expr_dtype_bytes(x->dtype);
        first = false;
    }
}

static void put_list(const cd_emit_region *r, cd_emit_role role, cd_buf *b) {
    bool first = true;
    cd_buf_puts(b, "[");
    for (uint32_t k = 0; k < r->n_arg; k++) {
        if (r->value[k].role != role) continue;
        cd_buf_putf(b, "%s%u", first ? "" : ", ", r->value[k].value);
        first = false;
    }
    cd_buf_puts(b, "]");
}

/* Without code (the back end reads operators) the list of launches is empty. */
static void put_step(const cd_emit_region *r, const cd_emit_step *s, cd_buf *b) {
    cd_buf_puts(b, "{\"operator\": ");
    put_text(b, s->name);
    cd_buf_puts(b, ", \"type\": ");
    put_text(b, s->type);
    cd_buf_puts(b, ", \"arguments\": [");
    for (uint32_t k = 0; k < s->n_arg; k++)
        cd_buf_putf(b, "%s%u", k ? ", " : "", r->value[s->arg[k]].value);
    cd_buf_puts(b, "], \"launches\": [");
    for (uint32_t k = 0; s->code && k < s->code->n_launch; k++) {
        const cd_codegen_launch *l = &s->code->launch[k];
        cd_buf_putf(
            b, "%s{\"entry\": \"%s\", \"grid\": [%lld, %lld, %lld], \"block\": [%lld, %lld, %lld]}",
            k ? ", " : "", l->entry, (long long)l->grid[0], (long long)l->grid[1],
            (long long)l->grid[2], (long long)l->block[0], (long long)l->block[1],
            (long long)l->block[2]);
    }
    cd_buf_puts(b, "]}");
}

/* "call" is the same for every back end: where its own text does not run on the host, the C
 * stand-in has that symbol. */
static void put_region(const cd_emit_plan *p, uint32_t k, cd_buf *b) {
    const cd_emit_region *r = &p->region[k];
    cd_buf_putf(b, "  {\"name\": \"%s\", \"device\": ", r->name);
    put_text(b, r->device);
    cd_buf_putf(
        b, ", \"backend\": \"%s\", \"call\": \"int %s_run(void *const *argument)\",\n   \"why\": ",
        emit_of(p, k)->name, r->name);
    put_text(b, r->why);
    cd_buf_puts(b, ",\n   \"inputs\": ");
    put_list(r, CD_EMIT_INPUT, b);
    cd_buf_puts(b, ", \"constants\": ");
    put_list(r, CD_EMIT_CONSTANT, b);
    cd_buf_puts(b, ", \"results\": ");
    put_list(r, CD_EMIT_RESULT, b);
    cd_buf_puts(b, ",\n   \"steps\": [");
    for (uint32_t s = 0; s < r->n_step; s++) {
        cd_buf_puts(b, s ? ",\n     " : "\n     ");
        put_step(r, &r->step[s], b);
    }
    cd_buf_puts(b, "]}");
}

static void put_boundary(const cd_emit_plan *p, const cd_offload_boundary *x, cd_buf *b) {
    cd_buf_putf(b, "{\"value\": %u, \"from\": ", x->buffer);
    put_text(b, p->a->plan->rules->device[x->from]);
    cd_buf_puts(b, ", \"to\": ");
    put_text(b, p->a->plan->rules->device[x->to]);
    cd_buf_putf(b, ", \"bytes\": %lld, \"packed\": %lld, \"convert\": \"", (long long)x->bytes,
                (long long)x->packed);
    cd_offload_edge_print(x->edge, b);
    cd_buf_puts(b, "\"}");
}

/* Offsets of inputs and constants are those of the files that main.c reads. */
static cdmpp_status emit_report(const cd_emit_plan *p, cd_emit_files *out, cdmpp_err *err) {
    const cd_offload_net_plan *o = p->a->plan;
    cd_buf *b = cd_emit_add(out, "network", ".json");
    if (!b) return CD_FAIL(err, ENOMEM, "interface");
    cd_buf_puts(b, "{\"cdmpp_regions\": 1, \"network\": ");
    put_text(b, p->l->graph->name);
    cd_buf_puts(b, ",\n \"inputs\": [");
    put_outside(p, false, b);
    cd_buf_puts(b, "],\n \"constants\": [");
    put_outside(p, true, b);
    cd_buf_puts(b, "],\n \"results\": [");
    for (uint32_t k = 0; k < p->l->source->n_output; k++) {
        cd_buf_puts(b, k ? ",\n  " : "\n  ");
        put_value(p, p->l->work->output[k], b);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "],\n \"regions\": [\n");
    for (uint32_t k = 0; k < p->n_region; k++) {
        cd_buf_puts(b, k ? ",\n" : "");
        put_region(p, k, b);
    }
    cd_buf_puts(b, "],\n \"boundary\": [");
    for (uint32_t k = 0; k < o->n_boundary; k++) {
        cd_buf_puts(b, k ? ",\n  " : "\n  ");
        put_boundary(p, &o->boundary[k], b);
    }
    cd_buf_puts(b, "]}\n");
    return CDMPP_OK;
}
