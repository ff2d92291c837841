/* The files of a session beside its log of records: rounds as JSON lines, the best records, the
 * trials as OpBench writes them, and the best programs as source. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/tune/session/embed/c_run.c.in.h"
#include "predictor/tune/session/embed/cl_head.c.in.h"
#include "predictor/tune/session/embed/cl_run.c.in.h"
#include "predictor/tune/session/embed/cu_run.cu.in.h"
#include "predictor/tune/session/embed/fill.c.in.h"
#include "predictor/tune/session/session.h"

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

/* Flushed line by line: the file is watched while the session runs. */
cdmpp_status cd_tune_session_write_round(cd_tune_session *s, const cd_tune_round *r,
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
