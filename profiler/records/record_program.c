/* Turns lines of records into programs. The identity comes first and the code later, in a second
 * call: most lines of a log are known already, and lowering is what costs time. */
#include "profiler/records/record_program.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "profiler/codegen/codegen.h"
#include "profiler/host/host.h"
#include "profiler/records/record_best.h"
#include "profiler/records/record_listener.h"
#include "profiler/records/records.h"

cdmpp_status cd_record_program_maker_open(cd_record_maker *m, const char *const *task_file,
                                          size_t n, struct cd_log *log, cdmpp_err *err) {
    CD_TRY(cd_task_registry_new(&m->owned, err));
    m->tasks = m->owned;
    CD_TRY(cd_task_registry_load_all(m->owned, task_file, n, log, err));
    return cd_program_new(&m->program, err);
}

void cd_record_program_maker_close(cd_record_maker *m) {
    cd_program_free(m->program);
    cd_task_registry_free(m->owned);
}

static const cd_task *task_of(const cd_record_maker *m, cd_str key) {
    return m->task ? m->task : cd_task_registry_find(m->tasks, key);
}

/* Fields that older versions of the format lack: from the task, or none. */
static void complete(cd_record *r, const cd_task *t) {
    if (!r->has_hardware) r->hardware = t->hardware;
    r->has_hardware = r->has_host = r->has_layout = r->has_inputs = true;
    r->version = (cd_str){"v0.6", 4};
}

/* A target that names no device gets the name of the one that measures: it is part of what the
 * record says it measured. */
static cdmpp_status name_device(const cd_record_maker *m, cd_record_program *j, cdmpp_err *err) {
    static const char unknown[] = " -model=unknown";
    const cd_str t = j->record.target;
    const char *name =
        m->device && cd_str_is(cd_device_name_of(t, ""), "unknown") ? m->device(m->ctx, t) : NULL;
    cd_buf b = {0};
    if (!name) return CDMPP_OK;
    const char *at = strstr(j->target, unknown);
    cd_buf_putf(&b, "%.*s%s -model=%s", (int)(at ? (size_t)(at - j->target) : t.n), j->target,
                at ? at + sizeof unknown - 1 : "", name);
    j->target = b.oom ? NULL : cd_str_dup(&j->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    if (!j->target) return CD_FAIL(err, ENOMEM, "target");
    j->record.target = (cd_str){j->target, strlen(j->target)};
    return CDMPP_OK;
}

/* How many threads a program of a processor is measured with is part of what its record says,
 * too. */
static void set_threads(const cd_record_maker *m, cd_record_program *j) {
    const cd_backend_kind *k = cd_backend_for_target(j->record.target);
    int64_t *cores = &j->record.hardware.num_cores;
    if (!k || k->dialect != CD_DIALECT_C) return;
    if (m->threads > 0) *cores = m->threads;
    else if (m->cpus > 0) *cores = cd_record_program_threads(j, 0, m->cpus);
}

static cdmpp_status read_record(cd_record_maker *m, const cd_recline *l, cd_record_program *j,
                                cdmpp_err *err) {
    const char *text = cd_str_dup(&j->arena, (cd_str){l->text, l->len});
    if (!text) return CD_FAIL(err, ENOMEM, "record");
    CD_TRY(cd_record_read(&j->arena, text, l->len, &j->record, err));
    const cd_task *t = task_of(m, j->record.workload_key);
    const cd_str key = j->record.workload_key;
    if (!t)
        return CD_FAIL(err, ENOTASK, "no task file defines %.*s", cd_str_shown(key, 100), key.p);
    complete(&j->record, t);
    if (m->target) j->record.target = (cd_str){m->target, strlen(m->target)};
    j->target = cd_str_dup(&j->arena, j->record.target);
    if (!j->target) return CD_FAIL(err, ENOMEM, "record");
    CD_TRY(name_device(m, j, err));
    set_threads(m, j);
    j->flop = cd_task_flop(t);
    return cd_record_id_of(&j->record, &j->id, err);
}

cdmpp_status cd_record_program_make(cd_record_maker *m, const cd_recline *l, cd_record_program *j,
                                    cdmpp_err *err) {
    memset(j, 0, sizeof *j);
    j->path = l->path;
    j->number = l->number;
    return cd_err_at(err, read_record(m, l, j, err), l->path, l->number);
}

static cd_dialect dialect_of(const cd_record_maker *m, const cd_record_program *j) {
    const cd_backend_kind *k = cd_backend_for_target(j->record.target);
    return m->dialect >= 0 ? (cd_dialect)m->dialect : k ? k->dialect : CD_DIALECT_C;
}

static cdmpp_status make_code(cd_record_maker *m, const cd_task *t, const cd_record *r,
                              const char *target, cd_dialect dialect, const char *name,
                              cd_nest *nest, cd_codegen_code *out, cdmpp_err *err) {
    CD_TRY(cd_program_lower_code(m->program, t, r, err));
    CD_TRY(cd_program_nest(m->program, nest, err));
    /* as the compiler will be asked for */
    nest->vector_bytes = cd_isa_vector_bytes(m->isa, target);
    if (dialect != CD_DIALECT_C) nest->pack = false;
    return cd_codegen(nest, dialect, name, out, err);
}

/* Shapes of the parameters; the nest's go with its program's next build. */
static cdmpp_status keep_shapes(cd_record_program *j, const cd_nest *nest, cdmpp_err *err) {
    cd_measure_arg *v = CD_NEWN(&j->arena, cd_measure_arg, nest->n_arg + 1);
    j->arg = v;
    for (uint32_t k = 0; v && k < nest->n_arg; k++) {
        const cd_nest_tensor *t = &nest->tensor[nest->arg[k]];
        int64_t *shape = CD_NEWN(&j->arena, int64_t, t->rank + 1);
        if (!shape) v = NULL;
        else
            memcpy(shape, t->shape, t->rank * sizeof *shape),
                v[k] = (cd_measure_arg){t->rank, shape};
    }
    return v ? CDMPP_OK : CD_FAIL(err, ENOMEM, "shapes");
}

/* The reference: the task without steps, for this machine whatever the record's target is. */
static cdmpp_status make_reference(cd_record_maker *m, const cd_task *t, cd_record_program *j,
                                   cdmpp_err *err) {
    cd_record plain = j->record;
    cd_record_id id;
    char name[32];
    cd_nest nest;
    plain.n_step = 0;
    plain.layout_rewrite = 0; /* all parameters row-major */
    plain.target = (cd_str){"llvm", 4};
    CD_TRY(cd_record_id_of(&plain, &id, err));
    snprintf(name, sizeof name, "r%016llx", (unsigned long long)id.a);
    return cd_err_key(
        err, make_code(m, t, &plain, "llvm", CD_DIALECT_C, name, &nest, &j->reference, err),
        "reference");
}

cdmpp_status cd_record_program_code(cd_record_maker *m, cd_record_program *j, cdmpp_err *err) {
    char name[32];
    cd_nest nest;
    const cd_task *t = task_of(m, j->record.workload_key);
    snprintf(name, sizeof name, "p%016llx", (unsigned long long)j->id.a);
    cdmpp_status st =
        make_code(m, t, &j->record, j->target, dialect_of(m, j), name, &nest, &j->code, &j->why);
    if (!st) st = keep_shapes(j, &nest, &j->why);
    if (!st && m->reference) st = make_reference(m, t, j, &j->why);
    if (st) (void)cd_err_at(&j->why, st, j->path, j->number);
    if (st != CDMPP_ENOMEM) return CDMPP_OK;
    if (err) *err = j->why;
    return st;
}

void cd_record_program_free(cd_record_program *j) {
    cd_codegen_code_free(&j->code);
    cd_codegen_code_free(&j->reference);
    cd_arena_free(&j->arena);
    memset(j, 0, sizeof *j);
}

int cd_record_program_threads(const cd_record_program *j, int asked, int cpus) {
    const int64_t cores = j->record.hardware.num_cores;
    return asked > 0 ? asked : cores < 1 || cores > cpus ? cpus : (int)cores;
}

double cd_record_program_cost_s(const cd_record *r) {
    double sum = 0;
    for (uint32_t k = 0; k < r->n_cost; k++) sum += r->cost_s[k];
    return r->error_no || !r->n_cost ? CD_MEASURE_FAILED_S : sum / r->n_cost;
}

/* Means of successive repeats, as equal in number as can be. */
static uint32_t condense(const cd_timing *t, double *cost) {
    const unsigned n = t->n_kept,
                   groups = n < CD_RECORD_PROGRAM_COSTS ? n : CD_RECORD_PROGRAM_COSTS;
    double sum[CD_RECORD_PROGRAM_COSTS] = {0};
    unsigned count[CD_RECORD_PROGRAM_COSTS] = {0};
    for (unsigned i = 0, k = 0; i < t->n; i++) {
        if (!t->kept[i]) continue;
        const unsigned g = (unsigned)((uint64_t)k++ * groups / n);
        sum[g] += t->sample_s[i];
        count[g]++;
    }
    for (unsigned g = 0; g < groups; g++) cost[g] = sum[g] / count[g];
    return groups;
}

cdmpp_status cd_record_program_record(cd_record_program *j, const cd_measure_result *m,
                                      cd_record *out, cdmpp_err *err) {
    double *cost = CD_NEWN(&j->arena, double, CD_RECORD_PROGRAM_COSTS);
    if (!cost) return CD_FAIL(err, ENOMEM, "record");
    *out = j->record;
    cost[0] = CD_MEASURE_FAILED_S;
    out->n_cost = m->error_no ? 1 : condense(&m->time, cost);
    out->cost_s = cost;
    out->error_no = m->error_no;
    out->total_s = m->build_s + m->run_s;
    out->timestamp = m->at;
    return CDMPP_OK;
}

/* Reports to a listener. One bad line of a log must not end a run of hours, but a full disk must:
 * this file has the rule. */

cdmpp_status cd_record_listener_bad(const cd_record_listener *l, const cdmpp_err *why,
                                    cdmpp_err *err) {
    if (why->code == CDMPP_ENOMEM || why->code == CDMPP_EIO) {
        if (err) *err = *why;
        return why->code;
    }
    if (l && l->bad) l->bad(l->ctx, why);
    return CDMPP_OK;
}

void cd_record_listener_note(const cd_record_listener *l, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    if (!l || !l->note) return;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    l->note(l->ctx, text);
}

/* The fastest record of each workload. A log may hold millions of lines, so only the best line of
 * each workload is kept as text; it is parsed again by whoever needs the record. */

typedef struct {
    const cd_record_best_options *o;
    cd_arena *keep, line; /* line: of the record that is looked at */
    cd_record_best *best; /* (n) */
    size_t n;
} finder;

/* The workload's place; the next free one where it is new; NULL where there is no room for it. */
static cd_record_best *place_of(finder *f, cd_str key) {
    for (size_t i = 0; i < f->n; i++)
        if (cd_str_eq(f->best[i].key, key)) return &f->best[i];
    return f->n < f->o->max ? &f->best[f->n] : NULL;
}

/* Lines of workloads beyond the first `max`, or of another key, are skipped. */
static cdmpp_status consider(finder *f, const cd_recline *l, cdmpp_err *err) {
    cd_record r;
    CD_TRY(cd_record_read(&f->line, l->text, l->len, &r, err));
    cd_record_best *b = place_of(f, r.workload_key);
    if (!b || (f->o->workload && !cd_str_is(r.workload_key, f->o->workload))) return CDMPP_OK;
    const bool fresh = b == &f->best[f->n];
    const double cost_s = cd_record_program_cost_s(&r);
    if (!fresh && cost_s >= b->cost_s) return CDMPP_OK;
    const cd_record_best now = {.key = {cd_str_dup(f->keep, r.workload_key), r.workload_key.n},
                                .text = cd_str_dup(f->keep, (cd_str){l->text, l->len}),
                                .len = l->len,
                                .cost_s = cost_s,
                                .path = cd_str_dup(f->keep, (cd_str){l->path, strlen(l->path)}),
                                .number = l->number};
    if (!now.key.p || !now.text || !now.path) return CD_FAIL(err, ENOMEM, "record");
    *b = now;
    f->n += fresh;
    return CDMPP_OK;
}

/* The line's own memory is given back after each line. */
cdmpp_status cd_record_best_read(cd_arena *a, const cd_record_best_options *o, cd_record_best *out,
                                 size_t *n, cdmpp_err *err) {
    finder f = {.o = o, .keep = a, .best = out};
    cd_record_reader *r = NULL;
    CD_TRY(cd_record_reader_open(o->path, o->n_path, &r, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && !(o->stop && *o->stop)) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        cdmpp_status got = cd_record_reader_next(r, &l, &why);
        if (!got && !l.text) break;
        if (!got) got = cd_err_at(&why, consider(&f, &l, &why), l.path, l.number);
        if (got) st = cd_record_listener_bad(o->listener, &why, err);
        cd_arena_reset(&f.line);
    }
    cd_record_reader_close(r);
    cd_arena_free(&f.line);
    *n = f.n;
    return st;
}

/* Lowers records and collects the source code of their programs. Lowering alone is cheaper than
 * generating code, so the two are apart: a check of a large log needs no text. */

typedef struct {
    cd_record_maker *maker;
    cd_buf *source;   /* NULL: only lower */
    unsigned prelude; /* a bit for every dialect whose prelude is in source already */
} collector;

static void put_source(collector *c, const cd_record_program *j) {
    if (!(c->prelude & 1U << j->code.dialect))
        cd_buf_puts(c->source, cd_codegen_prelude(j->code.dialect));
    c->prelude |= 1U << j->code.dialect;
    cd_buf_puts(c->source, "\n/* ");
    cd_escape_c_comment(c->source, cd_str_of(j->path));
    cd_buf_putf(c->source, ":%ld */\n", j->number);
    cd_buf_put(c->source, j->code.text.p, j->code.text.n);
}

static cdmpp_status use(collector *c, const cd_recline *l, cdmpp_err *err) {
    cd_record_program j;
    cdmpp_status st = cd_record_program_make(c->maker, l, &j, err);
    if (!st && !c->source) {
        const cd_task *t = cd_task_registry_find(c->maker->tasks, j.record.workload_key);
        st = cd_err_at(err, cd_program_lower(c->maker->program, t, &j.record, err), l->path,
                       l->number);
    } else if (!st) {
        st = cd_record_program_code(c->maker, &j, err);
        /* cd_record_program_code keeps the program's own error apart from that of the call */
        if (!st && j.why.code) {
            if (err) *err = j.why;
            st = j.why.code;
        }
        if (!st) put_source(c, &j);
    }
    cd_record_program_free(&j);
    return st;
}

/* *stop counts only before the end of the input. */
cdmpp_status cd_record_source_collect(cd_record_maker *m, cd_record_reader *file, size_t limit,
                                      const cd_record_listener *l,
                                      const volatile sig_atomic_t *stop, cd_buf *source,
                                      cd_record_source_tally *t, cdmpp_err *err) {
    collector c = {m, source, 0};
    bool end = false;
    for (cd_recline r; !*stop && (!limit || t->lines < limit);) {
        cdmpp_err why = {0};
        cdmpp_status st = cd_record_reader_next(file, &r, &why);
        end = !st && !r.text;
        if (end) break;
        t->lines++;
        if (!st) st = use(&c, &r, &why);
        if (!st) continue;
        CD_TRY(cd_record_listener_bad(l, &why, err));
        t->bad++;
        t->reason[why.code]++;
    }
    if (!end && *stop) return CD_FAIL(err, EINTERRUPTED, "after %zu records", t->lines);
    return source && source->oom ? CD_FAIL(err, ENOMEM, "source code") : CDMPP_OK;
}

void cd_record_source_put(cd_buf *b, const cd_record_source_tally *t, bool json) {
    if (!json) {
        cd_buf_putf(b, "%zu records: %zu programs, %zu cannot be used\n", t->lines,
                    t->lines - t->bad, t->bad);
        return;
    }
    cd_buf_putf(b, "{\"records\":%zu,\"programs\":%zu,\"bad\":%zu,\"reasons\":{", t->lines,
                t->lines - t->bad, t->bad);
    for (int k = 1, any = 0; k < CDMPP_STATUS_COUNT; k++)
        if (t->reason[k])
            cd_buf_putf(b, "%s\"%s\":%zu", any++ ? "," : "", cdmpp_status_name((cdmpp_status)k),
                        t->reason[k]);
    cd_buf_puts(b, "}}");
}
