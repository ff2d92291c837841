/* Mode "sweep" of cdmpp-profile: one schedule, changed in one thing at a time. */
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "profiler/backend/backend.h"
#include "profiler/cmd/main_profile.h"
#include "profiler/records/records.h"

/* "tile,unroll" -> bits; none: all. False: *bad is no factor. */
static bool factors(const char *text, unsigned *mask, cd_str *bad) {
    *mask = text ? 0 : ~0U;
    for (const char *s = text; s && *s;) {
        const size_t n = strcspn(s, ",");
        const int k = cd_enum_names_find(CD_VARY_FACTORS, (cd_str){s, n});
        *bad = (cd_str){s, n};
        if (k < 0) return false;
        *mask |= 1U << k;
        s += n + (s[n] == ',');
    }
    return true;
}

cdmpp_status cd_main_profile_sweep_check(const cd_main_profile *o, cdmpp_err *err) {
    unsigned mask;
    cd_str bad = {0};
    if (!o->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (!o->operand.n) return CD_FAIL(err, EUSAGE, "no records to begin from");
    if (!factors(o->factor, &mask, &bad))
        return CD_FAIL(err, EUSAGE, "--factor: expected some of %s, separated by commas, found '%.*s'", CD_VARY_FACTORS, (int)(bad.n < 60 ? bad.n : 60), bad.p);
    return CDMPP_OK;
}

typedef struct {
    cd_measure *warm, *cold;
    cd_task_registry *tasks;
    cd_program *program;
    cd_arena line, arena;       /* of a line that is looked at; of what is kept */
    char *text;                 /* the base's line */
    size_t len;
    double cost_s;
    cd_schedule_sweep_row *row;
    size_t n;
} state;

/* ---- the base: the fastest record of the workload, of the first workload where none is named ---- */

static cdmpp_status look_at(const cd_main_profile *o, state *s, const cd_recline *l, cd_record *base, cdmpp_err *err) {
    cd_record r;
    CD_TRY(cd_record_read(&s->line, l->text, l->len, &r, err));
    if (o->workload ? !cd_str_is(r.workload_key, o->workload)
                    : s->text && (r.workload_key.n != base->workload_key.n || memcmp(r.workload_key.p, base->workload_key.p, r.workload_key.n) != 0))
        return CDMPP_OK;
    if (s->text && cd_record_program_cost_s(&r) >= s->cost_s) return CDMPP_OK;
    s->cost_s = cd_record_program_cost_s(&r);
    s->text = cd_arena_alloc(&s->arena, l->len + 1, 1);
    if (!s->text) return CD_FAIL(err, ENOMEM, "record");
    memcpy(s->text, l->text, l->len);
    s->text[s->len = l->len] = 0;
    return cd_record_read(&s->arena, s->text, s->len, base, err);
}

static cdmpp_status find_base(cd_main_profile *o, state *s, cd_record *base, cdmpp_err *err) {
    cd_record_reader *f = NULL;
    CD_TRY(cd_record_reader_open(o->operand.v, o->operand.n, &f, err));
    cdmpp_status st = CDMPP_OK;
    while (!st && !*o->stop) {
        cdmpp_err why = {0};
        cd_recline l = {0};
        cdmpp_status got = cd_record_reader_next(f, &l, &why);
        if (!got && !l.text) break;
        if (!got) got = cd_err_at(&why, look_at(o, s, &l, base, &why), l.path, l.number);
        if (got) st = cd_main_profile_bad(o, &why, NULL, err);
        cd_arena_reset(&s->line);
    }
    cd_record_reader_close(f);
    if (st || s->text) return st;
    return o->workload ? CD_FAIL(err, ENODATA, "no record of workload %.150s", o->workload) : CD_FAIL(err, ENODATA, "no record to begin from");
}

/* ---- measuring ---- */

static cdmpp_status open_measure(const cd_main_profile *o, int threads, bool pin, bool cold, cd_measure **out, cdmpp_err *err) {
    const cd_measure_options mo = {.device = o->device, .isa = o->isa, .cache = o->cache, .cache_bytes = (uint64_t)o->cache_mb << 20, .jobs = o->jobs,
                                   .threads = threads, .pin = pin && !o->no_pin, .build_limit_s = o->build_timeout_s, .run_limit_s = o->timeout_s,
                                   .timing = {.budget_s = o->budget_ms * 1e-3, .cold = cold}, .stop = o->stop};
    return cd_measure_open(&mo, out, err);
}

static cdmpp_status measure(cd_main_profile *o, state *s, const cd_record *base, unsigned mask, int threads, cdmpp_err *err) {
    const cd_task *task = cd_task_registry_find(s->tasks, base->workload_key);
    cd_recmaker maker = {.tasks = s->tasks, .program = s->program, .target = o->target, .dialect = -1, .isa = o->isa};
    cd_variant *v;
    if (!task) return CD_FAIL(err, ENOTASK, "no task file defines %.*s", (int)(base->workload_key.n < 100 ? base->workload_key.n : 100), base->workload_key.p);
    CD_TRY(cd_schedule_variants(&s->arena, s->program, task, base, mask, cd_backend_cpu_threads(""), &v, &s->n, err));
    s->row = cd_arena_zalloc(&s->arena, s->n, sizeof *s->row);
    if (!s->row) return CD_FAIL(err, ENOMEM, "%zu variants", s->n);
    return cd_schedule_sweep_run(&maker, v, s->n, threads, s->warm, s->cold, o->stop, s->row, err);
}

/* ---- telling ---- */

static cdmpp_status write_file(const char *path, cdmpp_status (*put)(cd_buf *, const cd_schedule_sweep_row *, size_t, cdmpp_err *), const state *s, cdmpp_err *err) {
    cd_buf b = {0};
    if (!path) return CDMPP_OK;
    cdmpp_status st = put(&b, s->row, s->n, err);
    if (!st) st = cd_file_write(path, b.p ? b.p : "", b.n, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status tell(cd_main_profile *o, const state *s, const cd_record *base, cdmpp_err *err) {
    cd_buf b = {0}, all = {0};
    char key[256];
    for (size_t i = 0; i < s->n; i++) o->bad += s->row[i].out.error_no != 0;
    CD_TRY(write_file(o->out, cd_schedule_sweep_csv, s, err));
    CD_TRY(write_file(o->plot, cd_schedule_sweep_svg, s, err));
    if (!o->json) {
        CD_TRY(cd_schedule_sweep_text(&b, s->row, s->n, err));
        return cd_command_print(&b, err);
    }
    snprintf(key, sizeof key, "%.*s", (int)(base->workload_key.n < 255 ? base->workload_key.n : 255), base->workload_key.p);
    CD_TRY(cd_schedule_sweep_json(&b, key, s->row, s->n, err));
    cd_command_json(&all, "cdmpp.profile_sweep", "cdmpp-profile", &b);
    return cd_command_print(&all, err);
}

static cdmpp_status all(cd_main_profile *o, state *s, cdmpp_err *err) {
    unsigned mask;
    cd_str bad;
    cd_record base = {0};
    const int threads = o->threads > 0 ? o->threads : cd_backend_cpu_threads(o->target ? o->target : "");
    (void)factors(o->factor, &mask, &bad);
    const bool pin = !(mask >> CD_VARY_THREADS & 1); /* else more threads than the processors that the worker keeps to */
    CD_TRY(open_measure(o, threads, pin, false, &s->warm, err)); /* first of all: they fork */
    if (mask >> CD_VARY_CACHE & 1) CD_TRY(open_measure(o, threads, pin, true, &s->cold, err));
    CD_TRY(cd_task_registry_new(&s->tasks, err));
    for (size_t i = 0; i < o->task.n; i++) CD_TRY(cd_task_registry_load(s->tasks, o->task.v[i], err));
    CD_TRY(cd_program_new(&s->program, err));
    CD_TRY(find_base(o, s, &base, err));
    CD_TRY(measure(o, s, &base, mask, threads, err));
    return tell(o, s, &base, err);
}

cdmpp_status cd_main_profile_sweep(cd_main_profile *o, cdmpp_err *err) {
    state s = {0};
    const cdmpp_status st = all(o, &s, err);
    cd_measure_close(s.cold); /* opened last, closed first: its keeper holds what the other one's waits for */
    cd_measure_close(s.warm);
    cd_program_free(s.program);
    cd_task_registry_free(s.tasks);
    cd_arena_free(&s.line);
    cd_arena_free(&s.arena);
    return st;
}
