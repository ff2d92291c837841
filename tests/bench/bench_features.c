/* bench_features TASKS LOG... -- what reading tasks, turning records into rows and computing their
 * facts cost.
 *
 * One thread. The lines are in memory before the clock starts, so it counts from
 * JSON text to rows in memory: parse, find the task, replay, bounds, nest, rows.
 * Every MAX-th line of a bigger input; one pass to warm up, the next is timed. In a
 * further pass facts are computed behind the rows of each program, as data sets do,
 * and these alone are timed; their digest tells whether a faster build has the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "base/io/io.h"
#include "dataset/extract/extract.h"
#include "features/analytic/analytic.h"
#include "features/program/program.h"

#define MAX_LINES 20000

typedef struct {
    char *text;
    size_t n;
} line;

typedef struct {
    size_t programs, rows, rejected;
} tally;

/* Every `step`-th record of the logs; returns how many records there are. */
static cdmpp_status read_lines(const cd_inputs *in, size_t step, line *out, size_t *n_out,
                               size_t *n_all, cdmpp_err *err) {
    *n_out = *n_all = 0;
    for (size_t i = 0; i < in->n; i++) {
        cd_file_lines *l;
        char *text;
        size_t n;
        CD_TRY(cd_file_lines_open(in->path[i], 0, &l, err));
        while (cd_file_lines_next(l, &text, &n, err) == CDMPP_OK && text) {
            if (cd_record_is_comment(text, n)) continue;
            if ((*n_all)++ % step || *n_out == MAX_LINES) continue;
            char *copy = malloc(n + 1);
            if (!copy) abort();
            memcpy(copy, text, n);
            out[(*n_out)++] = (line){copy, n};
        }
        cd_file_lines_close(l);
    }
    return CDMPP_OK;
}

typedef struct {
    cd_facts *scratch;
    cd_sha256 digest;
    double s;
    size_t programs;
} facts;

static cdmpp_status add_facts(cd_program *p, facts *f, cdmpp_err *err) {
    cd_nest nest;
    float x[CD_N_FACTS] = {0};
    CD_TRY(cd_program_nest(p, &nest, err));
    const double t0 = cd_clock_thread();
    const cdmpp_status st = cd_facts_of(f->scratch, cd_facts_set_of_nest(&nest), &nest, x, err);
    f->s += cd_clock_thread() - t0;
    f->programs++;
    if (!st) cd_sha256_add(&f->digest, x, sizeof x);
    return st == CDMPP_EUNSUPPORTED ? CDMPP_OK : st;
}

/* f: NULL for no facts. */
static cdmpp_status pass(const cd_task_registry *tasks, cd_program *p, const line *l, size_t n,
                         tally *t, facts *f, cdmpp_err *err) {
    cd_arena a = {0};
    *t = (tally){0};
    for (size_t i = 0; i < n; i++) {
        cd_record r;
        cd_rows rows;
        cd_arena_reset(&a);
        CD_TRY(cd_record_read(&a, l[i].text, l[i].n, &r, err));
        const cd_task *task = cd_task_registry_find(tasks, r.workload_key);
        if (!task) return CD_FAIL(err, ENOTASK, "%.*s", (int)r.workload_key.n, r.workload_key.p);
        const cdmpp_status st = cd_program_build(p, task, &r, &rows, err);
        if (st && st != CDMPP_EREJECTED) return st;
        t->programs++;
        if (st) t->rejected++;
        else t->rows += rows.n_row;
        if (!st && f) CD_TRY(add_facts(p, f, err));
    }
    cd_arena_free(&a);
    return CDMPP_OK;
}

static cdmpp_status bench(const char *task_file, const cd_extract *logs, cdmpp_err *err) {
    cd_task_registry *tasks;
    cd_program *p;
    cd_inputs in = {0};
    tally t;
    facts f = {0};
    char hex[65];
    size_t n = 0, all = 0;
    cd_sha256_init(&f.digest);
    line *l = calloc(MAX_LINES, sizeof *l);
    if (!l) return CD_FAIL(err, ENOMEM, "lines");
    double t0 = cd_clock_thread();
    CD_TRY(cd_task_registry_new(&tasks, err));
    CD_TRY(cd_task_registry_load(tasks, task_file, err));
    printf("  tasks       %8.3f s CPU  %zu tasks of %s\n", cd_clock_thread() - t0,
           cd_task_registry_count(tasks), task_file);
    CD_TRY(cd_inputs_list(logs, &in, err));
    CD_TRY(read_lines(&in, 1, l, &n, &all, err));
    if (all > MAX_LINES) CD_TRY(read_lines(&in, all / MAX_LINES + 1, l, &n, &all, err));
    CD_TRY(cd_program_new(&p, err));
    CD_TRY(cd_facts_new(&f.scratch, err));
    CD_TRY(pass(tasks, p, l, n, &t, NULL, err));
    t0 = cd_clock_thread();
    CD_TRY(pass(tasks, p, l, n, &t, NULL, err));
    const double s = cd_clock_thread() - t0;
    printf("  features    %8.1f us CPU a program: %zu of %zu records, %zu rows, %zu rejected\n",
           1e6 * s / (double)n, t.programs, all, t.rows, t.rejected);
    CD_TRY(pass(tasks, p, l, n, &t, &f, err));
    cd_sha256_hex(&f.digest, hex);
    printf("  facts       %8.1f us CPU a program: %zu programs, digest %.16s\n",
           1e6 * f.s / (double)f.programs, f.programs, hex);
    cd_facts_free(f.scratch);
    cd_program_free(p);
    cd_task_registry_free(tasks);
    cd_inputs_free(&in);
    return CDMPP_OK; /* the lines go with the process */
}

int main(int argc, char **argv) {
    cdmpp_err err = {0};
    char text[512];
    if (argc < 3) {
        fprintf(stderr, "usage: bench_features TASKS LOG|FOLDER...\n");
        return 2;
    }
    const cd_extract logs = {.input = (const char *const *)(argv + 2), .n_input = (size_t)argc - 2};
    const cdmpp_status st = bench(argv[1], &logs, &err);
    if (st) fprintf(stderr, "bench_features: %s\n", cdmpp_err_format(&err, text, sizeof text));
    return cdmpp_exit_code(st);
}
