/* cprog.h -- C programs of small tasks with any schedule: generated, compiled in one run of the
 * compiler, and every element of every result compared with the task's definition. Tensors are
 * float32. */
#ifndef CPROG_H
#define CPROG_H
#include <dlfcn.h>
#include <stdlib.h>

#include "check.h"
#include "lazyref.h"
#include "prog.h"
#include "profiler/codegen/codegen.h"
#include "scratch.h"

enum { CP_GUARD = 64, CP_TASKS = 32 };

typedef struct {
    const cd_task *task;
    cd_codegen_code code;
    cd_buf steps;
} cp_program;

typedef struct {
    cd_task_registry *tasks;
    size_t n_task, n, cap;
    double *truth[CP_TASKS][8]; /* by task and parameter: NULL for inputs */
    cd_program *p;
    cp_program *made;
    void *lib;
} cprog;

/* Whole numbers, so that sums in any order are equal. */
static inline double cp_number(const void *ctx, uint32_t tensor, int64_t element) {
    (void)ctx;
    return (double)(cd_rng_at(tensor, (uint64_t)element) % 11) - 5;
}

static inline const cd_te_op *cp_op(const cd_te_dag *d, uint32_t arg) {
    return &d->op[d->tensor_op[d->arg[arg]]];
}

static inline int64_t cp_elements(const cd_te_op *o) {
    int64_t n = 1;
    for (uint32_t d = 0; d < o->rank; d++) n *= o->shape[d];
    return n;
}

static inline void cp_define(const cd_te_dag *d, double **truth) {
    lazyref r = {.dag = d, .var = calloc(d->pool.n_var + 1, sizeof(double)), .input = cp_number};
    for (uint32_t k = 0; k < d->n_arg; k++) {
        const cd_te_op *o = cp_op(d, k);
        const int64_t n = cp_elements(o);
        if (o->is_placeholder) continue;
        truth[k] = calloc((size_t)n, sizeof(double));
        for (int64_t i = 0; i < n; i++) {
            int64_t ix[8], rest = i;
            for (uint32_t a = o->rank; a-- > 0; rest /= o->shape[a]) ix[a] = rest % o->shape[a];
            truth[k][i] = lr_element(&r, d->arg[k], ix);
        }
    }
    if (r.why) fail_msg("definition: %s", r.why);
    free(r.var);
}

static inline void cp_open(cprog *c, const char *const *task, size_t n) {
    cdmpp_err err = {0};
    *c = (cprog){.n_task = n};
    assert_true(n <= CP_TASKS);
    assert_ok(prog_tasks(task, n, &c->tasks, &err));
    assert_ok(cd_program_new(&c->p, &err));
    for (size_t k = 0; k < n; k++) cp_define(cd_task_registry_at(c->tasks, k)->dag, c->truth[k]);
}

/* The program of a record, for registers of 16, 32 or 64 bytes in turns. False: the schedule is
 * refused. One that is legal has code. */
static inline bool cp_add(cprog *c, size_t task, const cd_record *rec) {
    cdmpp_err err = {0};
    cd_nest nest;
    char name[32];
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 64;
        c->made = realloc(c->made, c->cap * sizeof *c->made);
    }
    cp_program *m = &c->made[c->n];
    *m = (cp_program){.task = cd_task_registry_at(c->tasks, task)};
    const cdmpp_status st = cd_program_lower_code(c->p, m->task, rec, &err);
    if (st == CDMPP_EREJECTED) return false;
    assert_ok(st);
    assert_ok(cd_program_nest(c->p, &nest, &err));
    assert_ok(cd_record_write_steps(&m->steps, rec, &err));
    nest.vector_bytes = 16U << c->n % 3;
    snprintf(name, sizeof name, "f%zu", c->n);
    if (cd_codegen(&nest, CD_DIALECT_C, name, &m->code, &err))
        fail_msg("task %zu, %s: %s", task, m->steps.p, err.msg);
    c->n++;
    return true;
}

static inline void cp_compile(cprog *c) {
    FILE *f = fopen(scratch("all.c"), "w");
    char cmd[800];
    assert_non_null(f);
    fputs(cd_codegen_prelude(CD_DIALECT_C), f);
    for (size_t k = 0; k < c->n; k++) fwrite(c->made[k].code.text.p, 1, c->made[k].code.text.n, f);
    fclose(f);
    snprintf(cmd, sizeof cmd, "gcc -O1 -w -Wno-psabi -shared -fPIC -o %s %s -lm", scratch("all.so"),
             scratch("all.c"));
    assert_int_equal(system(cmd), 0);
    c->lib = dlopen(scratch("all.so"), RTLD_NOW);
    assert_non_null(c->lib);
}

static inline char *cp_memory(const cp_program *m, uint32_t k) {
    const cd_te_dag *d = m->task->dag;
    const size_t bytes = (size_t)m->code.buffer[k].bytes;
    char *p = aligned_alloc(64, (bytes + CP_GUARD + 63) & ~(size_t)63);
    memset(p, 0xff, bytes); /* not a number */
    memset(p + bytes, 0x7b, CP_GUARD);
    if (k >= m->code.n_arg || !cp_op(d, k)->is_placeholder) return p;
    float *plain = calloc((size_t)cp_elements(cp_op(d, k)) + 1, sizeof *plain);
    for (int64_t i = 0; i < cp_elements(cp_op(d, k)); i++)
        plain[i] = (float)cp_number(NULL, d->arg[k], i);
    cd_codegen_pack(&m->code.buffer[k], cp_op(d, k)->rank, cp_op(d, k)->shape, plain, p);
    free(plain);
    return p;
}

/* How many elements of parameter k are wrong, or were written behind it. */
static inline long cp_wrong(const cp_program *m, uint32_t k, const double *truth, const char *got) {
    long wrong = 0;
    for (int64_t i = 0; truth && i < cp_elements(cp_op(m->task->dag, k)); i++)
        wrong += !(fabs((double)((const float *)(const void *)got)[i] - truth[i]) <=
                   1e-5 * (1 + fabs(truth[i])));
    for (int b = 0; b < CP_GUARD; b++) wrong += got[m->code.buffer[k].bytes + b] != 0x7b;
    return wrong;
}

/* Runs program `number`; prints schedule and text where values are wrong. */
static inline long cp_run(const cprog *c, size_t number) {
    const cp_program *m = &c->made[number];
    const size_t task = cd_task_registry_index(c->tasks, m->task);
    void *arg[32];
    char name[32];
    long wrong = 0;
    assert_true(m->code.n_buffer <= 32);
    for (uint32_t k = 0; k < m->code.n_buffer; k++) arg[k] = cp_memory(m, k);
    snprintf(name, sizeof name, "f%zu", number);
    union {
        void *p;
        void (*f)(void *const *);
    } u = {dlsym(c->lib, name)};
    u.f(arg);
    for (uint32_t k = 0; k < m->code.n_buffer; k++) {
        if (k < m->code.n_arg) wrong += cp_wrong(m, k, c->truth[task][k], arg[k]);
        free(arg[k]);
    }
    if (wrong)
        print_message("task %zu, %s: %ld elements are wrong\n%.*s\n", task, m->steps.p, wrong,
                      (int)m->code.text.n, m->code.text.p);
    return wrong;
}

/* How many of the programs are wrong. The library is closed in any case: the next one has its
 * path. */
static inline long cp_run_all(cprog *c) {
    long wrong = 0;
    cp_compile(c);
    for (size_t k = 0; k < c->n; k++) wrong += cp_run(c, k) != 0;
    dlclose(c->lib);
    return wrong;
}

static inline void cp_close(cprog *c) {
    for (size_t k = 0; k < c->n; k++) {
        cd_codegen_code_free(&c->made[k].code);
        cd_buf_free(&c->made[k].steps);
    }
    for (size_t k = 0; k < CP_TASKS; k++)
        for (size_t a = 0; a < 8; a++) free(c->truth[k][a]);
    free(c->made);
    cd_program_free(c->p);
    cd_task_registry_free(c->tasks);
}
#endif
