/* What benches of scoring share: tasks for the library and for its public calls, the programs of a
 * measure log, and main(). */
#ifndef BENCH_LOG_H
#define BENCH_LOG_H
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "cdmpp.h"
#include "features/program/program.h"

typedef struct {
    cd_task_registry *tasks;
    cdmpp_tasks *api;
} bench_tasks;

/* A record that was built into rows. `steps`: its schedule as JSON, inside of `line`. */
typedef struct {
    const char *line, *steps;
    size_t len, n_steps;
    const cd_record *record;
    const cd_task *task;
    const cd_rows *rows;
} bench_program;

typedef cdmpp_status bench_program_fn(void *ctx, const bench_program *p, cdmpp_err *err);

/* Records without a task, and schedules without a program, are passed over. */
static inline cdmpp_status bench_line(const bench_tasks *t, cd_arena *a, cd_program *work,
                                      const char *line, size_t len, bench_program_fn *f, void *ctx,
                                      cdmpp_err *err) {
    cd_record rec;
    cd_rows rows;
    CD_TRY(cd_record_read(a, line, len, &rec, err));
    const cd_task *task = cd_task_registry_find(t->tasks, rec.workload_key);
    if (!task) return CDMPP_OK;
    const cdmpp_status built = cd_program_build(work, task, &rec, &rows, err);
    if (built) return built == CDMPP_ENOMEM ? built : CDMPP_OK;
    const char *steps = strstr(line, "[[], ") + 5, *end = strstr(steps, "]], \"r\"");
    return f(ctx, &(bench_program){line, steps, len, (size_t)(end - steps), &rec, task, &rows},
             err);
}

static inline cdmpp_status bench_each_program(bench_tasks *t, const char *tasks, const char *log,
                                              bench_program_fn *f, void *ctx, cdmpp_err *err) {
    cd_arena a = {0};
    cd_program *work;
    cd_file_lines *l;
    CD_TRY(cd_task_registry_new(&t->tasks, err));
    CD_TRY(cd_task_registry_load(t->tasks, tasks, err));
    CD_TRY(cdmpp_tasks_new(&t->api, err));
    CD_TRY(cdmpp_tasks_load(t->api, tasks, err));
    CD_TRY(cd_program_new(&work, err));
    CD_TRY(cd_file_lines_open(log, 0, &l, err));
    for (;;) {
        char *line;
        size_t len;
        CD_TRY(cd_file_lines_next(l, &line, &len, err));
        if (!line) break;
        cd_arena_reset(&a);
        if (!cd_record_is_comment(line, len) && *line == '{')
            CD_TRY(bench_line(t, &a, work, line, len, f, ctx, err));
    }
    cd_file_lines_close(l);
    cd_arena_free(&a);
    cd_program_free(work);
    return CDMPP_OK;
}

/* Prints the error of a bench; the exit code. */
static inline int bench_end(cdmpp_status st, const cdmpp_err *err) {
    char text[512];
    if (st) fprintf(stderr, "%s\n", cdmpp_err_format(err, text, sizeof text));
    return cdmpp_exit_code(st);
}
#endif
