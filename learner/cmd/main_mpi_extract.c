/* main_mpi_extract -- cdmpp-mpi extract: input files dealt out by size, one data set.
 *
 *   rank r: files of shard r+1 of N -> OUT.rank<r>of<N>     finished ones are kept by a rerun
 *   rank 0: all of them, in order   -> OUT                  contents as of one process */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "learner/cmd/main_mpi.h"

typedef struct {
    cd_extract x;            /* with input and task_file, both owned */
    cd_texts input, task;
    bool json;
    const cd_process_group *crew;
    char *path;              /* of this rank's part */
    cd_buf command;
    cd_log *log;
    cd_progress bar;
} work;

/* Beside a finished part: of which inputs it is, and its counts. */
typedef struct {
    char print[65];
    cd_extract_stats stats;
} done;

#define AT(member) offsetof(work, member)
static const cd_option table[] = {
    {"tasks", 0, "FILE", CD_OPTION_FILES, AT(task), NULL, 0, "Task definitions, as for cdmpp-extract"},
    {"out", 'o', "FILE", CD_OPTION_FILE, AT(x.out), "*.h5", 0, "Data set to write (HDF5); parts are FILE.rank<r>of<N> beside it, in a folder that all ranks see"},
    {"jobs", 'j', "N", CD_OPTION_INT, AT(x.jobs), "1..1024", 0, "Threads of each rank (default: 1)"},
    {"restart", 0, NULL, CD_OPTION_FLAG, AT(x.restart), NULL, 0, "Do not go on from what a run left that was stopped"},
    {"strict", 0, NULL, CD_OPTION_FLAG, AT(x.strict), NULL, 0, "Stop at the first line that cannot be used"},
};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const work *w = to;
    if (!w->task.n) return CD_FAIL(err, EUSAGE, "--tasks is missing");
    if (!said->operand.n) return CD_FAIL(err, EUSAGE, "nothing to read");
    if (!w->x.out) return CD_FAIL(err, EUSAGE, "--out is missing");
    return CDMPP_OK;
}

static const char *const use[] = {"--tasks FILE --out OUT [OPTION...] LOG|FOLDER...", NULL};
const cd_command cd_main_mpi_extract_options = {
    "cdmpp-mpi extract", "turn measure logs into a data set, each rank its share of the files", use,
    "As cdmpp-extract, with the same contents for any number of ranks: files are dealt out by size, cut between files.",
    table, sizeof table / sizeof *table, NULL, "", NULL, NULL, NULL, NULL, check};

static atomic_bool stop;
static void on_signal(int sig) {
    (void)sig;
    stop = true;
}

static void on_progress(void *ctx, const cd_extract_stats *s) {
    cd_progress *p = ctx;
    if (s->bytes) p->total = (uint64_t)((double)s->records * (double)s->bytes_total / (double)s->bytes);
    cd_progress_step(p, s->records);
}

/* "OUT.rank1of4" + end; NULL: no memory. */
static char *part_path(const work *w, size_t rank, const char *end) {
    const size_t n = strlen(w->x.out) + strlen(end) + 64;
    char *p = cd_mem_zalloc(n, 1);
    if (p) snprintf(p, n, "%s.rank%zuof%zu%s", w->x.out, rank, w->crew->n_rank, end);
    return p;
}

/* ---- the part of this rank ---- */
static bool is_done(const char *mark, const char *part, const char *print, cd_extract_stats *s) {
    char *b;
    size_t n;
    if (access(part, R_OK) != 0 || cd_file_read(mark, 0, &b, &n, NULL)) return false;
    const bool same = n == sizeof(done) && memcmp(b, print, 65) == 0;
    if (same) memcpy(s, b + offsetof(done, stats), sizeof *s);
    cd_mem_free(b);
    return same;
}

static cdmpp_status extract_part(work *w, const char *mark, cd_extract_stats *s, cdmpp_err *err) {
    cd_inputs in;
    done d = {0};
    cd_extract x = w->x;
    x.out = w->path;
    x.shard = (unsigned)w->crew->rank + 1;
    x.n_shard = (unsigned)w->crew->n_rank;
    CD_TRY(cd_inputs_list(&x, &in, err));
    cdmpp_status st = cd_inputs_fingerprint(&x, &in, d.print, err);
    cd_inputs_free(&in);
    CD_TRY(st);
    if (!x.restart && is_done(mark, x.out, d.print, s)) return CDMPP_OK;
    cd_progress_begin(&w->bar, w->log, "extract", "records", 0);
    x.progress = on_progress;
    x.progress_ctx = &w->bar;
    CD_TRY(cd_extract_logs(&x, s, err));
    cd_progress_end(&w->bar);
    d.stats = *s;
    return cd_file_write(mark, &d, sizeof d, err);
}

/* ---- together ---- */
static void add_stats(cd_extract_stats *to, const cd_extract_stats *s) {
    to->records += s->records;
    to->programs += s->programs;
    to->rows += s->rows;
    to->skipped += s->skipped;
    to->failed += s->failed;
    to->resumed += s->resumed;
    for (int k = 0; k < CDMPP_STATUS_COUNT; k++) to->reason[k] += s->reason[k];
}

static cdmpp_status gather_stats(const work *w, cd_extract_stats *s, cdmpp_err *err) {
    cd_buf own = {0};
    cd_buf *all = w->crew->rank ? NULL : cd_mem_zalloc(w->crew->n_rank, sizeof *all);
    cd_buf_put(&own, (const char *)s, sizeof *s);
    cdmpp_status st = own.oom || (!all && !w->crew->rank) ? CD_FAIL(err, ENOMEM, "counts of %zu ranks", w->crew->n_rank) : CDMPP_OK;
    if (!st) st = w->crew->gather(w->crew->ctx, &own, all, err);
    for (size_t r = 0; all && r < w->crew->n_rank; r++) {
        cd_extract_stats one;
        if (r && !st && all[r].n == sizeof one) memcpy(&one, all[r].p, sizeof one), add_stats(s, &one);
        cd_buf_free(&all[r]);
    }
    cd_mem_free(all);
    cd_buf_free(&own);
    return st;
}

/* The lists of skipped lines, one after another. */
static cdmpp_status join_skips(const work *w, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t r = 0; !st && r < w->crew->n_rank; r++) {
        char *p = part_path(w, r, ".skipped.tsv"), *text;
        size_t n;
        if (!p) st = CD_FAIL(err, ENOMEM, "name of a file");
        else if (access(p, F_OK) == 0 && !(st = cd_file_read(p, 0, &text, &n, err))) cd_buf_put(&b, text, n), cd_mem_free(text);
        cd_mem_free(p);
    }
    char *out = cd_mem_zalloc(strlen(w->x.out) + 16, 1);
    if (!st && (!out || b.oom)) st = CD_FAIL(err, ENOMEM, "list of skipped lines");
    if (out) sprintf(out, "%s.skipped.tsv", w->x.out);
    if (!st && b.n) st = cd_file_write(out, b.p, b.n, err);
    else if (!st) (void)unlink(out);
    cd_mem_free(out);
    cd_buf_free(&b);
    return st;
}

static void remove_parts(const work *w) {
    static const char *const end[] = {".done", ".skipped.tsv", ""};
    for (size_t r = 0; r < w->crew->n_rank; r++)
        for (int k = 0; k < 3; k++) {
            char *p = part_path(w, r, end[k]);
            if (p) (void)unlink(p);
            cd_mem_free(p);
        }
}

static cdmpp_status merge(const work *w, cdmpp_err *err) {
    const size_t n = w->crew->n_rank;
    cd_extract_stats s; /* of the merge, which knows less than the ranks do */
    char **path = cd_mem_zalloc(n, sizeof *path);
    cdmpp_status st = path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "names of %zu parts", n);
    for (size_t r = 0; !st && r < n; r++)
        if (!(path[r] = part_path(w, r, ""))) st = CD_FAIL(err, ENOMEM, "name of a part");
    if (!st) st = cd_merge(w->x.out, (const char *const *)path, n, w->command.p, &s, err);
    if (!st) st = join_skips(w, err);
    if (!st) remove_parts(w);
    for (size_t r = 0; path && r < n; r++) cd_mem_free(path[r]);
    cd_mem_free(path);
    return st;
}

static cdmpp_status run(work *w, cd_extract_stats *s, cdmpp_err *err) {
    const cd_process_group *c = w->crew;
    char *mark = part_path(w, c->rank, ".done");
    w->path = part_path(w, c->rank, "");
    cdmpp_status st = mark && w->path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a part");
    if (!st) st = extract_part(w, mark, s, err);
    cd_mem_free(mark);
    CD_TRY(c->agree(c->ctx, st, err));
    CD_TRY(gather_stats(w, s, err));
    return c->rank ? CDMPP_OK : merge(w, err);
}

/* The command that gives the same contents. */
static void put_command(cd_buf *b, const work *w) {
    cd_buf_puts(b, "cdmpp-extract");
    for (size_t i = 0; i < w->task.n; i++) cd_buf_putf(b, " --tasks '%s'", w->task.v[i]);
    for (size_t i = 0; i < w->input.n; i++) cd_buf_putf(b, " '%s'", w->input.v[i]);
}

static int report(work *w, cdmpp_status st, const cdmpp_err *err, const cd_extract_stats *s, double seconds) {
    cd_buf b = {0};
    if (st) {
        cd_log_err(w->log, CD_LOG_ERROR, err);
        return cdmpp_exit_code(st);
    }
    if (w->crew->rank) return 0;
    cd_extract_report_text(w->log, w->x.out, s);
    if (w->json) cd_extract_report_json(&b, w->x.out, s, seconds);
    cdmpp_err lost = {0};
    st = cd_command_print(&b, &lost);
    if (st) cd_log_err(w->log, CD_LOG_ERROR, &lost);
    return st ? cdmpp_exit_code(st) : s->skipped ? 3 : 0;
}

int cd_main_mpi_extract(int argc, char **argv, const cd_process_group *crew) {
    work w = {.x = {.jobs = 1, .stop = &stop}, .crew = crew};
    const struct sigaction act = {.sa_handler = on_signal};
    cd_extract_stats s = {0};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &cd_main_mpi_extract_options, argc, argv, &w, &code)) return code;
    w.log = &f.log;
    w.json = f.said.json;
    w.input = f.said.operand;
    w.x.input = w.input.v, w.x.n_input = w.input.n;
    w.x.task_file = w.task.v, w.x.n_task_file = w.task.n;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGXFSZ, SIG_IGN);
    put_command(&w.command, &w);
    w.x.command_line = w.command.p;
    const double begin = MPI_Wtime();
    cdmpp_status st;
    if (w.command.oom) st = CD_FAIL(&err, ENOMEM, "command line");
    else st = run(&w, &s, &err);
    code = report(&w, st, &err, &s, MPI_Wtime() - begin);
    cd_command_end(&f);
    cd_buf_free(&w.command);
    cd_mem_free(w.path);
    return code;
}
