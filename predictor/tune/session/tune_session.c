/* One run of a tuner from its options to its results. The parts do the work; here is their order:
 * the log and the meter are opened, spaces are made, earlier records are given to the tuner, rounds
 * run, and at last the results are checked. */
#include "predictor/tune/session/tune_session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/tune/session/embed/c_run.c.in.h"
#include "predictor/tune/session/embed/cl_head.c.in.h"
#include "predictor/tune/session/embed/cl_run.c.in.h"
#include "predictor/tune/session/embed/cu_run.cu.in.h"
#include "predictor/tune/session/embed/fill.c.in.h"
#include "predictor/tune/session/session.h"
#include "predictor/tune/session/tune_resume.h"
#include "profiler/host/host.h"
#include "profiler/records/records.h"
#include "profiler/store/store.h"

/* The files of a session beside its log of records: rounds as JSON lines, the best records, the
 * trials as OpBench writes them, and the best programs as source. */

/* Writes a program as source with a host program. What does not depend on the program stands in
 * embed/ as the text that it is: fill.c.in is shared by all hosts. Tables and names stand before
 * it. */

#define LINE(text) text "\n"

void cd_tune_emit_names(const cd_tune_emit *e, char kernel[128], char host[128]) {
    static const char *const end[] = {"c", "cl", "cu"};
    snprintf(kernel, 128, "%.100s.%s", e->name, end[e->code->dialect]);
    host[0] = 0;
    if (e->code->dialect == CD_DIALECT_OPENCL) snprintf(host, 128, "%.100s_host.c", e->name);
}

void cd_tune_emit_command(const cd_tune_emit *e, cd_buf *out) {
    static const char *const command[] = {
        "cc -O2 -march=native -ffp-contract=fast -fno-math-errno -fopenmp %s.c -o %s -lm",
        "cc -O2 %s_host.c -o %s -lOpenCL", "nvcc -O2 %s.cu -o %s"};
    const char *c = command[e->code->dialect];
    for (; *c; c++) {
        if (c[0] == '%' && c[1] == 's') cd_buf_puts(out, e->name), c++;
        else cd_buf_put(out, c, 1);
    }
}

/* ---- what all hosts share ---- */
static const char table_text[] =
    LINE("static const struct { const char *name; long elements, bytes; char kind; int bits, "
         "is_arg, written, per_thread; } buffer[] = {");

static void about(const cd_tune_emit *e, cd_buf *b) {
    cd_buf_puts(b, "/* ");
    for (const char *at = e->about ? e->about : e->name; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (at != e->about && e->about) cd_buf_puts(b, "\n   ");
        cd_escape_c_comment(b, (cd_str){at, strcspn(at, "\n")});
    }
    cd_buf_puts(b, "\n   ");
    cd_tune_emit_command(e, b);
    cd_buf_puts(b, " */\n");
}

static void buffers(const cd_tune_emit *e, cd_buf *b) {
    static const char kind[] = "iufhb";
    cd_buf_puts(b, table_text);
    for (uint32_t k = 0; k < e->code->n_buffer; k++) {
        const cd_codegen_buffer *v = &e->code->buffer[k];
        const unsigned of = cd_expr_dtype_kind(v->dtype);
        cd_buf_puts(b, "    {");
        cd_escape_c_string(b, cd_str_of(v->name));
        cd_buf_putf(b, ", %lld, %lld, '%c', %u, %d, %d, %d},%s\n", (long long)v->elements,
                    (long long)v->bytes, of < sizeof kind - 1 ? kind[of] : 'i',
                    cd_expr_dtype_bits(v->dtype), v->is_arg, v->written, v->per_thread,
                    v->n_digit ? " /* packed */" : "");
    }
    cd_buf_putf(b, "};\nenum { BUFFERS = %u };\n", e->code->n_buffer);
}

/* ---- C ---- */
static const char c_main[] =
    LINE("#include <stdio.h>") LINE("#include <stdlib.h>") LINE("#include <time.h>");

static void put_c(const cd_tune_emit *e, cd_buf *b) {
    about(e, b);
    cd_buf_puts(b, "#define _GNU_SOURCE\n");
    cd_buf_puts(b, c_main);
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_C));
    cd_buf_put(b, e->code->text.p, e->code->text.n);
    cd_buf_putf(b, "\n#define PROGRAM %s\n#define THREADS %d\n", e->code->launch[0].entry,
                e->threads > 0 ? e->threads : 1);
    buffers(e, b);
    cd_buf_puts(b, fill_c_in);
    cd_buf_puts(b, c_run_c_in);
}

/* ---- GPUs: a table of launches ---- */
static void launches(const cd_tune_emit *e, cd_buf *b, bool cuda) {
    uint32_t most = 1;
    for (uint32_t k = 0; k < e->code->n_launch; k++)
        if (e->code->launch[k].n_buffer > most) most = e->code->launch[k].n_buffer;
    cd_buf_putf(b, "enum { LAUNCHES = %u, MOST = %u };\n", e->code->n_launch, most);
    cd_buf_puts(b, cuda ? "static const struct { const void *entry; unsigned grid[3], block[3], n; "
                          "int buffer[MOST]; } launch[] = {\n"
                        : "static const struct { const char *entry; size_t grid[3], block[3]; "
                          "unsigned n; int buffer[MOST]; } launch[] = {\n");
    for (uint32_t k = 0; k < e->code->n_launch; k++) {
        const cd_codegen_launch *l = &e->code->launch[k];
        cd_buf_putf(b, cuda ? "    {(const void *)%s, " : "    {\"%s\", ", l->entry);
        cd_buf_putf(b, "{%lld, %lld, %lld}, {%lld, %lld, %lld}, %u, {", (long long)l->grid[0],
                    (long long)l->grid[1], (long long)l->grid[2], (long long)l->block[0],
                    (long long)l->block[1], (long long)l->block[2], l->n_buffer);
        for (uint32_t j = 0; j < l->n_buffer; j++)
            cd_buf_putf(b, "%s%u", j ? ", " : "", l->buffer[j]);
        cd_buf_puts(b, "}},\n");
    }
    cd_buf_puts(b, "};\n");
}

static void put_opencl(const cd_tune_emit *e, cd_buf *kernel, cd_buf *host) {
    cd_buf_puts(kernel, cd_codegen_prelude(CD_DIALECT_OPENCL));
    cd_buf_put(kernel, e->code->text.p, e->code->text.n);
    about(e, host);
    cd_buf_puts(host, cl_head_c_in);
    cd_buf_putf(host, "#define SOURCE \"%s.cl\"\n", e->name);
    buffers(e, host);
    launches(e, host, false);
    cd_buf_puts(host, fill_c_in);
    cd_buf_puts(host, cl_run_c_in);
}

static void put_cuda(const cd_tune_emit *e, cd_buf *b) {
    about(e, b);
    cd_buf_puts(b, "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n");
    cd_buf_puts(b, cd_codegen_prelude(CD_DIALECT_CUDA));
    cd_buf_put(b, e->code->text.p, e->code->text.n);
    cd_buf_puts(b, "\n");
    buffers(e, b);
    launches(e, b, true);
    cd_buf_puts(b, fill_c_in);
    cd_buf_puts(b, cu_run_cu_in);
}

cdmpp_status cd_tune_emit_put(const cd_tune_emit *e, cd_buf *kernel, cd_buf *host, cdmpp_err *err) {
    switch (e->code->dialect) {
    case CD_DIALECT_C: put_c(e, kernel); break;
    case CD_DIALECT_OPENCL: put_opencl(e, kernel, host); break;
    case CD_DIALECT_CUDA: put_cuda(e, kernel); break;
    }
    return kernel->oom || host->oom ? CD_FAIL(err, ENOMEM, "source") : CDMPP_OK;
}

enum { PATH = 1024 };

/* ---- rounds ---- */
/* Seconds, or null where there are none. */
static void seconds(cd_json_writer *w, const char *key, double s) {
    cd_json_write_member_real(w, key, s < CD_TUNE_FAILED_S ? s : HUGE_VAL);
}

/* A line of s->stats about a round.
 *
 * Flushed line by line: the file is watched while the session runs. */
static cdmpp_status tune_session_write_round(cd_tune_session *s, const cd_tune_round *r,
                                             cdmpp_err *err) {
    const cd_tune_task_scheduler *sched = cd_tune_run_sched(s->run);
    cd_buf b = {0};
    cd_json_writer w = {.out = &b};
    if (!s->stats) return CDMPP_OK;
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "schema", "cdmpp.tune_round");
    cd_json_write_member_int(&w, "round", r->number);
    cd_json_write_member_int(&w, "task", r->task);
    cd_json_write_member_str(&w, "workload_key", s->what->unit[r->task].of.task->workload_key);
    cd_json_write_member_int(&w, "n", (int64_t)r->n);
    cd_json_write_member_int(&w, "failed", (int64_t)r->failed);
    cd_json_write_member_int(&w, "trials", (int64_t)r->trials);
    cd_json_write_member_int(&w, "task_trials", (int64_t)r->task_trials);
    seconds(&w, "best_s", r->best_s);
    seconds(&w, "search_s", r->search_s);
    seconds(&w, "measure_s", r->measure_s);
    seconds(&w, "build_s", r->build_s);
    seconds(&w, "run_s", r->run_s);
    seconds(&w, "total_s", r->without ? HUGE_VAL : r->total_s);
    seconds(&w, "gain_s", cd_tune_task_scheduler_gain(sched, r->task));
    seconds(&w, "gradient", cd_tune_task_scheduler_gradient(sched, r->task));
    cd_json_write_close(&w, '}');
    cd_buf_puts(&b, "\n");
    const bool good = !b.oom && fwrite(b.p, 1, b.n, s->stats) == b.n && fflush(s->stats) == 0;
    cd_buf_free(&b);
    return good ? CDMPP_OK
                : cd_err_at(err, CD_FAIL(err, EIO, "cannot write: %s", strerror(errno)),
                            s->o->stats, 0);
}

/* ---- best records ---- */
cdmpp_status cd_tune_session_write_best(const cd_tune_session *s, const char *path,
                                        cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    for (uint32_t i = 0; !st && i < s->what->n; i++) {
        cd_tune_side *k = cd_tune_result_kept(&s->result[i]);
        cd_record r;
        if (!k) continue;
        st = cd_tune_result_record(k, &r, err);
        if (!st) st = cd_record_write(&b, &r, err);
    }
    if (!st && b.oom) st = CD_FAIL(err, ENOMEM, "records");
    if (!st) st = cd_file_write(path, b.p ? b.p : "", b.n, err);
    cd_buf_free(&b);
    return st;
}

/* ---- trials ---- */
static void real(cd_buf *b, double v) {
    if (v < CD_TUNE_FAILED_S) cd_buf_put_json_real(b, v);
}

/* OpBench's op_costs: seconds of a trial, seconds with building, the best so far of both, the share
 * of the best of all. */
static void curve(cd_buf *b, const char *key, const cd_tune_task_state *s) {
    double best = HUGE_VAL, best_all = HUGE_VAL;
    for (size_t k = 0; k < s->n_point; k++) {
        const cd_tune_point *p = &s->point[k];
        const double all = p->seconds < CD_TUNE_FAILED_S ? p->cost_s : HUGE_VAL;
        if (p->seconds < best) best = p->seconds;
        if (all < best_all) best_all = all;
        cd_csv_fields_put(b, key, strlen(key));
        cd_buf_putf(b, ",%zu,", k + 1);
        real(b, p->seconds);
        cd_buf_puts(b, ",");
        cd_buf_put_json_real(b, p->cost_s);
        cd_buf_puts(b, ",");
        real(b, best);
        cd_buf_puts(b, ",");
        real(b, best_all);
        cd_buf_puts(b, ",");
        if (best < CD_TUNE_FAILED_S) cd_buf_put_json_real(b, s->best_s / best);
        cd_buf_puts(b, "\n");
    }
}

cdmpp_status cd_tune_session_write_curves(const cd_tune_session *s, const char *path,
                                          cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "task_name,trial,costs,all_cost,best_cost,best_all_cost,cmp\n");
    for (uint32_t i = 0; i < s->what->n; i++)
        curve(&b, s->what->unit[i].of.task->workload_key, cd_tune_run_state(s->run, i));
    cdmpp_status st = CDMPP_OK;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "trials");
    if (!st) st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}

/* ---- programs ---- */
static cdmpp_status write_file(const char *dir, const char *name, const cd_buf *b, cdmpp_err *err) {
    char path[PATH];
    if (!name[0]) return CDMPP_OK;
    snprintf(path, sizeof path, "%.800s/%s", dir, name);
    return cd_file_write(path, b->p ? b->p : "", b->n, err);
}

/* The kernel and host of one task; how to compile them goes to the log. */
static cdmpp_status emit(const cd_tune_session *s, uint32_t i, cd_dialect dialect, const char *dir,
                         cdmpp_err *err) {
    cd_tune_side *k = cd_tune_result_kept(&s->result[i]);
    const cd_tune_unit *u = &s->what->unit[i];
    char name[64], about[512], kernel[128], host[128];
    cd_buf a = {0}, b = {0}, command = {0};
    if (!k) return CDMPP_OK;
    if (k->job.code.dialect != dialect)
        return CD_FAIL(err, EUSAGE,
                       "--emit: the program of %.60s is for target '%.40s', in another language",
                       u->name, u->of.target);
    snprintf(name, sizeof name, "task%u", i);
    snprintf(about, sizeof about, "%.100s\n%.300s\n%.4g ms when it was tuned (%s)", u->name,
             u->of.task->workload_key, k->seconds * 1e3,
             cd_tune_verdict_name(s->result[i].verdict));
    const cd_tune_emit e = {
        .code = &k->job.code, .name = name, .about = about, .threads = k->item.threads};
    cd_tune_emit_names(&e, kernel, host);
    cdmpp_status st = cd_tune_emit_put(&e, &a, &b, err);
    if (!st) st = write_file(dir, kernel, &a, err);
    if (!st) st = write_file(dir, host, &b, err);
    cd_tune_emit_command(&e, &command);
    if (!st && command.p) cd_log_put(s->o->log, CD_LOG_INFO, "%s/%s: %s", dir, kernel, command.p);
    cd_buf_free(&a);
    cd_buf_free(&b);
    cd_buf_free(&command);
    return st;
}

cdmpp_status cd_tune_session_write_code(const cd_tune_session *s, cd_dialect dialect,
                                        const char *folder, cdmpp_err *err) {
    CD_TRY(cd_file_make_folder(folder, err));
    for (uint32_t i = 0; i < s->what->n; i++) CD_TRY(emit(s, i, dialect, folder, err));
    return CDMPP_OK;
}

/* Gives earlier measurements to a run: those of its own log as known trials, those of other logs
 * and stores as first candidates. */

enum { NEAR = 4, EACH = 4 }; /* workloads, and of the task itself so many */

static bool equal(cd_str s, const char *z) { return s.n == strlen(z) && !memcmp(s.p, z, s.n); }

/* ---- resume ---- */
/* A record's target is the task's, with the name of the device that measured it behind
 * (cd_record_maker.device) or, in older logs, without. */
static bool same_target(cd_str s, const char *target) {
    static const char model[] = " -model=";
    const size_t n = strlen(target), m = sizeof model - 1;
    if (equal(s, target)) return true;
    return s.n > n + m && !memcmp(s.p, target, n) && !memcmp(s.p + n, model, m) &&
           !memchr(s.p + n + m, ' ', s.n - n - m) && !strstr(target, model);
}

static bool is_of(const cd_record *r, const cd_tune_task *t) {
    const cd_str key = {t->task->workload_key, strlen(t->task->workload_key)};
    return cd_task_same_key(r->workload_key, key) && same_target(r->target, t->target) &&
           r->has_hardware && !memcmp(&r->hardware, &t->hardware, sizeof r->hardware);
}

static cdmpp_status take(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n, const cd_record *r,
                         cd_tune_resume_tally *t, cdmpp_err *err) {
    for (uint32_t i = 0; i < n; i++) {
        if (!is_of(r, &unit[i].of)) continue;
        t->known++;
        return cd_tune_run_known(run, i, r, cd_record_program_cost_s(r), err);
    }
    t->other++;
    return CDMPP_OK;
}

static cdmpp_status take_line(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n, cd_arena *a,
                              const cd_recline *l, cd_tune_resume_tally *t, cdmpp_err *err) {
    cd_record r;
    t->lines++;
    if (cd_record_read(a, l->text, l->len, &r, NULL)) {
        t->bad++;
        return CDMPP_OK;
    }
    return take(run, unit, n, &r, t, err);
}

/* A log that is not there has no records. Errors: EIO, ENOMEM, those of cd_tune_run_known.
 *
 * A broken line costs only itself: a run that was killed may leave half a line at the end of its
 * log. */
static cdmpp_status tune_resume_resume(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n,
                                       const char *log, cd_tune_resume_tally *t, cdmpp_err *err) {
    cd_record_reader *f = NULL;
    cd_arena a = {0};
    if (access(log, R_OK)) return CDMPP_OK;
    CD_TRY(cd_record_reader_open(&log, 1, &f, err));
    cdmpp_status st = CDMPP_OK;
    for (cd_recline l; !st; cd_arena_reset(&a)) {
        cdmpp_err why = {0};
        st = cd_record_reader_next(f, &l, &why);
        const bool line_only = st == CDMPP_ERANGE || st == CDMPP_EPARSE;
        if (st && !line_only && err) *err = why;
        if (line_only) {
            t->bad++;
            st = CDMPP_OK;
        } else if (!st && !l.text) break;
        else if (!st) st = take_line(run, unit, n, &a, &l, t, err);
    }
    cd_arena_free(&a);
    cd_record_reader_close(f);
    return st;
}

/* ---- warm start ---- */
typedef struct {
    cd_tune_run *run;
    uint32_t task;
    size_t taken;
    bool same; /* the task itself is in the store */
    cd_arena arena;
    cd_tune_resume_tally *tally;
} taker;

/* Hits come nearest first. As soon as one is the task itself (distance 0), hits of other shapes are
 * not taken any more. */
static cdmpp_status take_near(void *ctx, const cd_store_near *near, cdmpp_err *err) {
    taker *k = ctx;
    cd_buf line = {0};
    cd_record r;
    bool taken = false;
    const bool itself = near->distance <= 0;
    k->same |= itself && near->hit.row.has_steps;
    if (k->taken >= CD_TUNE_WARM_BEST || (k->same && !itself) || !near->hit.row.has_steps)
        return CDMPP_OK;
    cd_arena_reset(&k->arena);
    cdmpp_status st = cd_store_put_record(&line, &k->arena, &near->hit, err);
    if (!st && !cd_record_read(&k->arena, line.p, line.n, &r, NULL))
        st = cd_tune_run_first(k->run, k->task, &r, &taken, err);
    cd_buf_free(&line);
    k->taken += taken;
    k->tally->first += taken;
    k->tally->near += taken && !itself;
    return st;
}

static cdmpp_status near_of(cd_tune_run *run, const cd_tune_unit *u, uint32_t i, cd_store *s,
                            cd_tune_resume_tally *t, cdmpp_err *err) {
    char kind[24];
    cdmpp_err why = {0};
    taker k = {.run = run, .task = i, .tally = t};
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(u->of.target, " "), u->of.target);
    const cd_store_filter f = {.workload = u->of.task->workload_key, .target = kind, .limit = NEAR};
    const cdmpp_status st = cd_store_find_near(s, &f, NULL, EACH, take_near, &k, &why);
    cd_arena_free(&k.arena);
    /* nothing like it there */
    if (!st || st == CDMPP_ENODATA || st == CDMPP_ESCHEMA) return CDMPP_OK;
    if (err) *err = why;
    return st;
}

static bool is_store(const char *path) {
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic] = "";
    FILE *f = fopen(path, "rb");
    const bool yes =
        f && fread(head, 1, sizeof head, f) == sizeof head && !memcmp(head, magic, sizeof magic);
    if (f) (void)fclose(f);
    return yes;
}

/* Logs go into a store of their own that is nowhere but in memory. */
static cdmpp_status start_from(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n,
                               const char *path, cd_tune_resume_tally *t, cdmpp_err *err) {
    const bool store = is_store(path);
    const cd_store_import how = {.form = CD_STORE_ANSOR};
    cd_store_tally tally = {0};
    cd_store *s = NULL;
    cdmpp_status st = cd_store_open(store ? path : ":memory:", !store, &s, err);
    if (!st && !store) st = cd_store_import_path(s, path, &how, &tally, err);
    t->bad += tally.bad;
    for (uint32_t i = 0; !st && i < n; i++) st = near_of(run, &unit[i], i, s, t, err);
    cd_store_close(s);
    return cd_err_at(err, st, path, 0);
}

/* path (n_path): logs, folders of logs, or stores, told apart by their first bytes. Errors: EIO,
 * ESCHEMA, ENOMEM ... */
static cdmpp_status tune_resume_start(cd_tune_run *run, const cd_tune_unit *unit, uint32_t n,
                                      const char *const *path, size_t n_path,
                                      cd_tune_resume_tally *t, cdmpp_err *err) {
    for (size_t k = 0; k < n_path; k++) CD_TRY(start_from(run, unit, n, path[k], t, err));
    return CDMPP_OK;
}

enum { PER_TASK = 64, PER_ROUND = 16 };

cd_measure_options cd_tune_session_measure(const cd_tune_session_options *o) {
    return (cd_measure_options){.device = o->gpu,
                                .isa = o->isa,
                                .flags = o->cflags,
                                .cache = o->cache,
                                .cache_bytes = (uint64_t)o->cache_mb << 20,
                                .jobs = o->jobs,
                                .pin = !o->no_pin,
                                .build_limit_s = o->build_timeout_s,
                                .run_limit_s = o->timeout_s,
                                .memory_bytes = (uint64_t)o->memory_mb << 20,
                                .timing = {.budget_s = o->budget_ms * 1e-3},
                                .stop = o->stop};
}

cdmpp_status cd_tune_session_open_board(const cd_tune_session_options *o,
                                        const cd_record_listener *l, cd_remote_measure **out,
                                        cdmpp_err *err) {
    cd_remote_measure *m;
    const cd_remote_measure_options ro = {.host = o->host.v,
                                          .n_host = o->host.n,
                                          .port = o->port,
                                          .transport = o->transport,
                                          .measure = cd_tune_session_measure(o),
                                          .policy = {.lease_s = o->lease_s},
                                          .threads = o->threads,
                                          .core = o->core,
                                          .listener = l};
    CD_TRY(cd_remote_measure_open(&ro, &m, err));
    const cd_remote_about *a = cd_remote_measure_about(m);
    const char *name = cd_remote_measure_name(m);
    if (!a->cpus && !o->threads) {
        /* before the name goes */
        const cdmpp_status st =
            CD_FAIL(err, EUSAGE,
                    "--threads is missing: %.60s does not say how many processors it has", name);
        return cd_remote_measure_close(m), st;
    }
    cd_log_put(o->log, CD_LOG_INFO, "%s measures: %s, %s, instructions: %s", name,
               a->device[0] ? a->device : "a device that it does not name",
               a->model[0] ? a->model : "without a name for records",
               o->isa && o->isa[0] ? o->isa
               : a->isa[0]         ? a->isa
                                   : "its own");
    *out = m;
    return CDMPP_OK;
}

/* Without a limit each task gets PER_TASK trials, of templates CD_TUNE_TEMPLATE_TRIALS. Rounds are
 * shorter where there are fewer than PER_ROUND trials for each task, so that every task has a
 * round. */
static cd_tune_run_options run_options(cd_tune_session *s) {
    const cd_tune_session_options *o = s->o;
    const uint32_t n = s->what->n;
    cd_tune_run_options r = {.tuner = s->tuner,
                             .seed = (uint64_t)o->seed,
                             .population = (uint32_t)o->population,
                             .generations = (uint32_t)o->generations,
                             .epsilon = o->epsilon,
                             .stop = o->stop,
                             .fallback = o->fallback,
                             .templates = {o->machine, o->isa}};
    r.ranker = (cd_tune_ranker_setup){.model = s->model,
                                      .device = o->device,
                                      .nearest = o->nearest,
                                      .frozen = o->frozen,
                                      .threads = 1,
                                      .seed = r.seed};
    r.sched = (cd_tune_task_scheduler_options){.trials = (uint64_t)o->trials,
                                               .trials_per_task = (uint64_t)o->trials_per_task,
                                               .seconds = o->seconds,
                                               .per_round = (uint32_t)o->per_round,
                                               .early_stop = (uint64_t)o->early_stopping,
                                               .runs = o->runs,
                                               .min_gain = o->min_gain};
    if (!o->trials && !o->trials_per_task && !o->seconds)
        r.sched.trials_per_task = s->tuner->templates ? CD_TUNE_TEMPLATE_TRIALS : PER_TASK;
    if (!o->per_round) {
        r.sched.per_round = PER_ROUND;
        if (o->trials && (uint32_t)o->trials / n < PER_ROUND)
            r.sched.per_round = (uint32_t)o->trials / n < 1 ? 1 : (uint32_t)o->trials / n;
    }
    r.meter = cd_tune_measure_of(s->meter);
    return r;
}

/* ---- tuning ---- */
static cdmpp_status on_round(void *ctx, const cd_tune_round *r, cdmpp_err *err) {
    cd_tune_session *s = ctx;
    const cd_tune_unit *u = &s->what->unit[r->task];
    s->trials = r->trials;
    cd_progress_step(&s->progress, r->trials);
    if (r->best_s < r->task_best_s_before)
        cd_log_put(s->o->log, CD_LOG_DEBUG, "%s: best of %llu trials %.4g ms", u->name,
                   (unsigned long long)r->task_trials, r->best_s * 1e3);
    return tune_session_write_round(s, r, err);
}

static void on_trial(void *ctx, const cd_record_program *job, const cd_measure_result *m) {
    cd_tune_session *s = ctx;
    (void)job;
    cd_progress_step(&s->progress, ++s->trials);
    /* A wrong program is no candidate's fault but ours. */
    if (m->error_no)
        cd_log_put(s->o->log, m->error_no == 5 ? CD_LOG_WARNING : CD_LOG_DEBUG,
                   "a candidate failed (error %d): %s", m->error_no, m->err.msg);
}

static cdmpp_status open_all(cd_tune_session *s, cdmpp_err *err) {
    const cd_tune_session_options *o = s->o;
    if (s->tuner) CD_TRY(cd_record_log_open(s->out, false, &s->records, err));
    s->namer = (cd_describe_namer){.log = o->log, .gpu = o->gpu, .core = o->core};
    const cd_tune_measure_setup setup = {.measure = s->measure,
                                         .board = s->board,
                                         .tasks = s->what->tasks,
                                         .log = s->records,
                                         .isa = o->isa,
                                         .namer = &s->namer,
                                         .threads = o->threads,
                                         .jobs = o->jobs,
                                         .pin = !o->no_pin,
                                         .check = !o->no_check,
                                         .each = on_trial,
                                         .ctx = s,
                                         .stop = o->stop};
    CD_TRY(cd_tune_measure_new(&setup, &s->meter, err));
    if (o->stats && !(s->stats = fopen(o->stats, "a")))
        return cd_err_at(err, CD_FAIL(err, EIO, "cannot open: %s", strerror(errno)), o->stats, 0);
    return CDMPP_OK;
}

static void report_spaces(cd_tune_session *s) {
    for (uint32_t i = 0; i < s->what->n; i++) {
        const cd_tune_task_state *t = cd_tune_run_state(s->run, i);
        if (t->naive)
            cd_log_put(s->o->log, CD_LOG_WARNING,
                       "%s: no rule fits it; its naive program is all there is",
                       s->what->unit[i].name);
        if (t->fell_back && !t->status)
            cd_log_put(s->o->log, CD_LOG_WARNING, "%s: no template fits it, %s searches: %s",
                       s->what->unit[i].name, s->o->fallback->name, t->why.msg);
        if (!t->status) continue;
        s->failed++;
        cd_log_put(s->o->log, CD_LOG_WARNING, "%s has no %s: %s", s->what->unit[i].name,
                   s->tuner->templates ? "template" : "space", t->why.msg);
    }
}

/* Earlier records come first: what --out has already counts as trials, then what `warm` has is
 * tried before the tuner is asked. */
static cdmpp_status tune(cd_tune_session *s, cdmpp_err *err) {
    const cd_tune_session_options *o = s->o;
    cd_tune_run_options ro = run_options(s);
    uint64_t total = ro.sched.trials;
    ro.round = on_round;
    ro.ctx = s;
    CD_TRY(cd_tune_run_new(s->what->unit, s->what->n, &ro, &s->run, err));
    report_spaces(s);
    CD_TRY(tune_resume_resume(s->run, s->what->unit, s->what->n, s->out, &s->warm, err));
    if (o->warm.n)
        CD_TRY(tune_resume_start(s->run, s->what->unit, s->what->n, o->warm.v, o->warm.n, &s->warm,
                                 err));
    if (s->warm.known || s->warm.other)
        cd_log_put(o->log, CD_LOG_INFO,
                   "%s: %zu trials of before, %zu records of other tasks or targets", s->out,
                   s->warm.known, s->warm.other);
    if (o->warm.n)
        cd_log_put(o->log, CD_LOG_INFO, "warm start: %zu candidates, %zu of them from other shapes",
                   s->warm.first, s->warm.near);
    if (!total && ro.sched.trials_per_task) total = ro.sched.trials_per_task * s->what->n;
    cd_progress_begin(&s->progress, o->log, "tuning", "trials", total);
    const cdmpp_status st = cd_tune_run_go(s->run, &s->end, err);
    cd_progress_end(&s->progress);
    return st;
}

/* ---- results ---- */
const cd_tune_task_state *cd_tune_session_state(const cd_tune_session *s, uint32_t task) {
    return s->run ? cd_tune_run_state(s->run, task) : NULL;
}

static cdmpp_status result_of(cd_tune_session *s, uint32_t i, cdmpp_err *err) {
    const cd_tune_task_state *t = cd_tune_session_state(s, i);
    if (*s->o->stop) return CD_FAIL(err, EINTERRUPTED, "while results were checked");
    const cd_tune_cand *best = t && t->best_s < CD_TUNE_FAILED_S ? &t->best : NULL;
    return cd_tune_result_make(s->meter, &s->what->unit[i].of, best, &s->result[i], err);
}

/* Compiles and measures two programs of each task: of many tasks as long as the rounds. */
static cdmpp_status results(cd_tune_session *s, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    s->result = cd_mem_zalloc(s->what->n + 1u, sizeof *s->result);
    if (!s->result) return CD_FAIL(err, ENOMEM, "%u tasks", s->what->n);
    cd_progress_begin(&s->progress, s->o->log, "checking", "tasks", s->what->n);
    for (uint32_t i = 0; !st && i < s->what->n; i++) {
        st = result_of(s, i, err);
        cd_progress_step(&s->progress, i + 1);
    }
    cd_progress_end(&s->progress);
    return st;
}

/* Looked at before candidates are measured and before the best ones are: said once. A board is its
 * own business, a GPU's programs hardly need a processor. */
static void say_load(cd_tune_session *s) {
    int64_t threads = 0;
    for (uint32_t i = 0; i < s->what->n; i++)
        if (!s->what->unit[i].of.gpu && s->what->unit[i].of.hardware.num_cores > threads)
            threads = s->what->unit[i].of.hardware.num_cores;
    if (s->board || !threads || s->disturbed) return;
    const double left = cd_host_load_left((int)threads);
    s->disturbed = left < CD_HOST_LOAD_IDLE;
    if (s->disturbed)
        cd_log_put(s->o->log, CD_LOG_WARNING,
                   "others use the processors that measure: %.0f %% of one is left. Times are "
                   "longer than on a quiet machine, and another program may be the fastest there",
                   100 * left);
}

cdmpp_status cd_tune_session_run(cd_tune_session *s, cdmpp_err *err) {
    CD_TRY(open_all(s, err));
    say_load(s);
    if (s->tuner) CD_TRY(tune(s, err));
    if (s->tuner) say_load(s);
    return results(s, err);
}

void cd_tune_session_free(cd_tune_session *s) {
    for (uint32_t i = 0; s->result && i < s->what->n; i++) cd_tune_result_free(&s->result[i]);
    cd_mem_free(s->result);
    cd_tune_run_free(s->run);
    cd_tune_measure_free(s->meter);
    (void)cd_record_log_close(s->records, NULL);
    if (s->stats) (void)fclose(s->stats);
}

cdmpp_status cd_tune_session_finish(cd_tune_session *s, cdmpp_err *err) {
    cd_record_log *records = s->records;
    s->records = NULL;
    return cd_record_log_close(records, err);
}

bool cd_tune_session_totals(const cd_tune_session *s, double *untuned, double *kept) {
    bool all = true;
    *untuned = *kept = 0;
    for (uint32_t i = 0; i < s->what->n; i++) {
        const double w = s->what->unit[i].weight;
        const cd_tune_side *k = cd_tune_result_kept(&s->result[i]);
        all &= k && s->result[i].untuned.seconds < CD_TUNE_FAILED_S;
        *untuned += w * s->result[i].untuned.seconds;
        if (k) *kept += w * k->seconds;
    }
    return all;
}

/* A result that is only worse is no failure: the untuned program is as good as before. */
static void warn_task(cd_tune_session *s, uint32_t i) {
    const cd_tune_task_state *t = cd_tune_session_state(s, i);
    const cd_tune_result *r = &s->result[i];
    const char *name = s->what->unit[i].name;
    cd_log *log = s->o->log;
    if (t && t->n_point && t->failed == t->n_point) {
        s->failed++;
        cd_log_put(log, CD_LOG_WARNING, "%s: every one of %zu candidates failed, the last with: %s",
                   name, t->failed, cd_record_stats_error(t->last_error));
    }
    if (r->verdict == CD_TUNE_WORSE)
        cd_log_put(log, CD_LOG_WARNING,
                   "%s: worse after tuning, %.4g ms against %.4g ms: the untuned program is kept",
                   name, r->tuned.seconds * 1e3, r->untuned.seconds * 1e3);
    if (r->verdict == CD_TUNE_WRONG || r->verdict == CD_TUNE_FAILS) {
        s->failed++;
        cd_log_put(log, CD_LOG_WARNING,
                   "%s: the best candidate %s: %s; the untuned program is kept", name,
                   r->verdict == CD_TUNE_WRONG ? "is wrong" : "does not run", r->tuned.why.msg);
    }
    if (r->verdict != CD_TUNE_NONE) return;
    s->failed++;
    cd_log_put(log, CD_LOG_WARNING, "%s has no program that runs: %s", name, r->untuned.why.msg);
}

void cd_tune_session_warn(cd_tune_session *s) {
    for (uint32_t i = 0; i < s->what->n; i++) warn_task(s, i);
}
