/* prog_matmul.h -- three matrix products that end in a sum, and a builder for them. */
#ifndef PROG_MATMUL_H
#define PROG_MATMUL_H
#include "check.h"
#include "prog.h"

#define MATMUL(m, k, n)                                                                            \
    "\"ops\": [{\"name\": \"A\", \"shape\": [" #m ", " #k "], \"dtype\": \"float32\"},"            \
    "{\"name\": \"B\", \"shape\": [" #k ", " #n "], \"dtype\": \"float32\"},"                      \
    "{\"name\": \"matmul\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n                         \
    "]], \"reduce_axis\": [[\"k\", 0, " #k "]],"                                                   \
    "\"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"},"                                         \
    "{\"name\": \"C\", \"shape\": [" #m ", " #n "], \"dtype\": \"float32\"},"                      \
    "{\"name\": \"out\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n                            \
    "]], \"body\": \"matmul[i, j] + C[i, j]\"}],"                                                  \
    "\"args\": [\"A\", \"B\", \"C\", \"out\"]"

static const char *const task[] = {MATMUL(1024, 1024, 1024), MATMUL(100, 60, 70),
                                   MATMUL(512, 512, 512)};

typedef struct {
    cd_task_registry *tasks;
    cd_program *p;
    cd_arena a;
} fixture;

static inline int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(task, sizeof task / sizeof *task, &f.tasks, &err));
    assert_ok(cd_program_new(&f.p, &err));
    *state = &f;
    return 0;
}

static inline int down(void **state) {
    fixture *f = *state;
    cd_program_free(f->p);
    cd_task_registry_free(f->tasks);
    cd_arena_free(&f->a);
    return 0;
}
#endif
