/* Two dense layers as compiled C programs, for tests of executors. */
#ifndef MADE_DENSE_H
#define MADE_DENSE_H
#include "check.h"
#include "prog.h"
#include "profiler/backend/backend.h"
#include "profiler/codegen/codegen.h"
#include "profiler/runtime/single/single.h"

enum { M = 12, K = 16, N = 20 };
/* y = max(x w, 0), of 12x16 by 16x20, then of 12x20 by 20x20. */
#define DENSE(m, k, n)                                                                             \
    "\"ops\": [{\"name\": \"X\", \"shape\": [" #m ", " #k "], \"dtype\": \"float32\"},"            \
    "{\"name\": \"W\", \"shape\": [" #k ", " #n                                                    \
    "], \"dtype\": \"float32\", \"layout_free\": true},"                                           \
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n                              \
    "]], \"reduce_axis\": [[\"k\", 0, " #k "]],"                                                   \
    "\"reduce\": \"sum\", \"body\": \"X[i, k]*W[k, j]\"},"                                         \
    "{\"name\": \"Y\", \"axis\": [[\"i\", 0, " #m "], [\"j\", 0, " #n                              \
    "]], \"body\": \"max(C[i, j], 0.0)\"}],"                                                       \
    "\"args\": [\"X\", \"W\", \"Y\"]"
static const char *const made[] = {DENSE(12, 16, 20), DENSE(12, 20, 20)};

typedef struct {
    cd_task_registry *tasks;
    cd_program *program[2];
    cd_codegen_code code[2];
    cd_build build[2];
    cd_compiler *compiler;
} fixture;

/* The first program takes its weight in the order of its loops; both: the second one too. */
static inline int dense_up(void **state, bool both) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(made, 2, &f.tasks, &err));
    assert_ok(cd_compiler_open(&(cd_compiler_options){.cache = ""}, &f.compiler, &err));
    for (int k = 0; k < 2; k++) {
        const cd_record r = {0};
        cd_nest nest;
        assert_ok(cd_program_new(&f.program[k], &err));
        assert_ok(
            cd_program_lower(f.program[k], cd_task_registry_at(f.tasks, (size_t)k), &r, &err));
        assert_ok(cd_program_nest(f.program[k], &nest, &err));
        nest.pack = both || k == 0;
        assert_ok(cd_codegen(&nest, CD_DIALECT_C, k ? "p1" : "p0", &f.code[k], &err));
        f.build[k].code = &f.code[k];
    }
    assert_ok(cd_compiler_build(f.compiler, f.build, 2, 1, &err));
    *state = &f;
    return 0;
}

static inline int down(void **state) {
    fixture *f = *state;
    for (int k = 0; k < 2; k++) {
        cd_codegen_code_free(&f->code[k]);
        cd_program_free(f->program[k]);
    }
    cd_compiler_close(f->compiler);
    cd_task_registry_free(f->tasks);
    return 0;
}
#endif
