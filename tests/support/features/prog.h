/* prog.h -- programs in tests: tasks in our own text form, steps as JSON. */
#ifndef PROG_H
#define PROG_H
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "features/program/program.h"

#define PROG_CPU "\"llvm -keys=cpu\", [1, 64, 64, 0, 0, 0, 0, 0]"
#define PROG_GPU "\"cuda -keys=cuda,gpu\", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32]"

/* A file of tasks; their members without workload_key in `task[k]`, keys "0", "1", ... */
static inline cdmpp_status prog_tasks(const char *const *task, size_t n, cd_task_registry **out,
                                      cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    for (size_t k = 0; k < n; k++)
        cd_buf_putf(&b, "%s{\"workload_key\": \"%zu\", %s}", k ? "," : "", k, task[k]);
    cd_buf_puts(&b, "]}");
    cdmpp_status st = b.oom ? CDMPP_ENOMEM : cd_task_registry_new(out, err);
    if (!st && (st = cd_task_registry_load_text(*out, "test.tasks.json", b.p, b.n, err)))
        cd_task_registry_free(*out);
    cd_buf_free(&b);
    return st;
}

/* The record of task `key` with these steps ("[...]"); lives in `a`. `hw`: PROG_CPU or PROG_GPU. */
static inline cdmpp_status prog_record(cd_arena *a, const char *key, const char *hw,
                                       const char *steps, cd_record *r, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_putf(&b,
                "{\"i\": [[\"%s\", %s, \"\", 0, []], [[], %s]], \"r\": [[0.1], 0, 0.5, "
                "1600000000], \"v\": \"v0.6\"}",
                key, hw, steps);
    char *line = b.oom ? NULL : cd_arena_alloc(a, b.n + 1, 1);
    if (line) memcpy(line, b.p, b.n + 1);
    const size_t n = b.n;
    cd_buf_free(&b);
    return line ? cd_record_read(a, line, n, r, err) : CDMPP_ENOMEM;
}
#endif
