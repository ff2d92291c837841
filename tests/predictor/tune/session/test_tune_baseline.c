/* The untuned program of every task of the sample: it can be lowered, and its source compiles and
 * runs. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "features/sketch/sketch.h"
#include "predictor/tune/session/session.h"
#include "predictor/tune/session/tune_measure.h"

static cd_task_registry *tasks;

static int setup(void **state) {
    cdmpp_err err = {0};
    (void)state;
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, "examples/zen5/zen5.tasks.json.xz", &err));
    return 0;
}
static int teardown(void **state) {
    (void)state;
    cd_task_registry_free(tasks);
    return 0;
}

static cd_tune_task task_of(size_t i, const char *target) {
    const bool gpu = cd_target_is_gpu((cd_str){target, strlen(target)});
    return (cd_tune_task){.task = cd_task_registry_at(tasks, i),
                          .target = target,
                          .hardware = cd_target_hardware(gpu, gpu ? 0 : 2, 64),
                          .gpu = gpu,
                          .flop = -1};
}

static void test_lowers(void **state) {
    (void)state;
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_program *p;
    size_t steps = 0;
    assert_ok(cd_program_new(&p, &err));
    assert_true(cd_task_registry_count(tasks) > 5);
    for (size_t i = 0; i < cd_task_registry_count(tasks); i++) {
        cd_tune_cand c;
        const cd_tune_task cpu = task_of(i, "llvm"), gpu = task_of(i, "cuda");
        if (!cpu.task->dag) continue;
        assert_ok(cd_tune_baseline(&a, p, &cpu, &c, &err));
        steps += c.n_step;
        assert_ok(cd_tune_baseline(&a, p, &gpu, &c, &err));
        assert_int_equal(c.key, cd_record_steps_key(c.step, c.n_step));
    }
    assert_true(steps > 2 * cd_task_registry_count(tasks));
    cd_program_free(p);
    cd_arena_free(&a);
}

/* The smallest task, in three languages; C is compiled and run. */
static size_t smallest(void) {
    size_t best = 0;
    for (size_t i = 0; i < cd_task_registry_count(tasks); i++)
        if (cd_task_registry_at(tasks, i)->dag &&
            cd_task_flop(cd_task_registry_at(tasks, i)) <
                cd_task_flop(cd_task_registry_at(tasks, best)))
            best = i;
    return best;
}

static void put_file(const char *path, const cd_buf *b) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(b->p, 1, b->n, f), b->n);
    assert_int_equal(fclose(f), 0);
}

static void emit(const char *target, cd_buf *kernel, cd_buf *host, char name[128]) {
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_program *p;
    cd_tune_measure *m;
    cd_record_program job;
    cd_tune_cand c;
    char other[128];
    const cd_tune_task t = task_of(smallest(), target);
    const cd_tune_measure_setup s = {.tasks = tasks};
    assert_ok(cd_program_new(&p, &err));
    assert_ok(cd_tune_baseline(&a, p, &t, &c, &err));
    assert_ok(cd_tune_measure_new(&s, &m, &err));
    assert_ok(cd_tune_measure_job(m, &t, &c, false, &job, &err));
    assert_int_equal(job.why.code, CDMPP_OK);
    const cd_tune_emit e = {.code = &job.code, .name = "t", .about = "a task", .threads = 1};
    cd_tune_emit_names(&e, name, other);
    assert_int_equal(other[0] != 0, host != NULL);
    cd_buf none = {0};
    assert_ok(cd_tune_emit_put(&e, kernel, host ? host : &none, &err));
    assert_int_equal(none.n, 0);
    cd_record_program_free(&job);
    cd_tune_measure_free(m);
    cd_program_free(p);
    cd_arena_free(&a);
}

static void test_emits(void **state) {
    (void)state;
    char dir[] = "/tmp/cdmpp-emit-XXXXXX", name[128], path[200], command[700];
    cd_buf kernel = {0}, host = {0};
    assert_non_null(mkdtemp(dir));
    emit("llvm", &kernel, NULL, name);
    assert_string_equal(name, "t.c");
    snprintf(path, sizeof path, "%s/t.c", dir);
    put_file(path, &kernel);
    /* without -march: what it was made for need not be this machine's */
    snprintf(command, sizeof command,
             "cd %s && cc -O1 -march=native -fopenmp t.c -o t -lm && ./t 2 > out && grep -q "
             "'^[0-9.e-]* s$' out && grep -q 'sum [0-9]' out; r=$?; rm -rf %s; exit $r",
             dir, dir);
    assert_int_equal(system(command), 0);
    cd_buf_clear(&kernel);
    emit("opencl", &kernel, &host, name);
    assert_string_equal(name, "t.cl");
    assert_non_null(strstr(host.p, "#include <CL/cl.h>"));
    assert_non_null(strstr(host.p, "#define SOURCE \"t.cl\""));
    assert_non_null(strstr(host.p, "clEnqueueNDRangeKernel"));
    assert_non_null(strstr(kernel.p, "__kernel"));
    cd_buf_clear(&kernel);
    emit("cuda", &kernel, NULL, name);
    assert_string_equal(name, "t.cu");
    assert_non_null(strstr(kernel.p, "__global__"));
    assert_non_null(strstr(kernel.p, "cudaLaunchKernel"));
    /* to be compiled by hand */
    if (getenv("CDMPP_EMIT_CUDA")) put_file(getenv("CDMPP_EMIT_CUDA"), &kernel);
    cd_buf_free(&kernel);
    cd_buf_free(&host);
}

TESTS(setup, teardown, test_lowers, test_emits)
