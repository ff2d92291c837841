/* facts_checks.h -- what holds of the facts of CPU programs and of GPU programs alike. */
#ifndef FACTS_CHECKS_H
#define FACTS_CHECKS_H
#include "check.h"
#include "fault.h"
#include "made_facts.h"

static inline double fact_at(const float *x, int k) { return (double)x[k]; }

static inline void facts_in_range(const float *x) {
    for (size_t k = 0; k < CD_N_FACTS; k++) assert_true(isfinite(x[k]) && x[k] >= 0);
}

/* Facts of the nest, twice: they are numbers, and of the same bits. */
static inline void facts_twice(cd_facts *f, cd_facts_set set, const cd_nest *nest, float *x) {
    float again[CD_N_FACTS];
    cdmpp_err err = {0};
    assert_ok(cd_facts_of(f, set, nest, x, &err));
    facts_in_range(x);
    assert_ok(cd_facts_of(f, set, nest, again, &err));
    assert_memory_equal(x, again, sizeof again);
}

/* A record of TVM's form of one task; for PROG_CPU or PROG_GPU. */
static inline void facts_lower(const made_facts_room *r, size_t task, const char *hardware,
                               const char *steps, cd_arena *a, cd_nest *nest) {
    cdmpp_err err = {0};
    cd_record rec;
    char key[8];
    snprintf(key, sizeof key, "%zu", task);
    assert_ok(prog_record(a, key, hardware, steps, &rec, &err));
    assert_ok(cd_program_lower(r->program, cd_task_registry_at(r->tasks, task), &rec, &err));
    assert_ok(cd_program_nest(r->program, nest, &err));
}

/* A tree of the test's own, to be changed. */
static inline cd_ast facts_copy(cd_arena *a, const cd_ast *from) {
    cd_ast t = *from;
    t.node = cd_arena_alloc(a, (size_t)t.n, sizeof *t.node);
    assert_non_null(t.node);
    for (int32_t k = 0; k < t.n; k++) t.node[k] = from->node[k];
    return t;
}

typedef struct {
    cd_facts *f;
    cd_facts_set set;
} facts_asked;

static inline void facts_any(void *ctx, const cd_nest *nest) {
    const facts_asked *q = ctx;
    float x[CD_N_FACTS];
    cdmpp_err err = {0};
    const cdmpp_status st = cd_facts_of(q->f, q->set, nest, x, &err);
    if (st == CDMPP_EUNSUPPORTED) return;
    assert_ok(st);
    facts_in_range(x);
}

/* The tasks of the fuzz target: gathers, scalars, odd types and shapes. */
static inline void facts_odd_tasks(cd_facts_set set) {
    made_facts_room r = {0};
    cdmpp_err err = {0};
    facts_asked q = {.set = set};
    size_t n = 0;
    assert_ok(cd_task_registry_new(&r.tasks, &err));
    assert_ok(cd_task_registry_load(r.tasks, "tests/fuzz/program.tasks.json", &err));
    assert_ok(cd_program_new(&r.program, &err));
    assert_ok(cd_facts_new(&q.f, &err));
    for (size_t k = 0; k < cd_task_registry_count(r.tasks); k++)
        n += made_facts_draws(&r, k, set == CD_FACTS_OF_GPU, 8, facts_any, &q);
    assert_true(n > 0);
    cd_facts_free(q.f);
    cd_program_free(r.program);
    cd_task_registry_free(r.tasks);
}

static inline void facts_quiet(void *ctx, const cd_nest *nest) {
    const facts_asked *q = ctx;
    float x[CD_N_FACTS];
    cdmpp_err err = {0};
    assert_ok(cd_facts_of(q->f, q->set, nest, x, &err));
    assert_ok(cd_facts_of(q->f, q->set, nest, x, &err));
    fault_all();
    const cdmpp_status st = cd_facts_of(q->f, q->set, nest, x, &err);
    fault_off();
    assert_ok(st);
}

/* After the arena has found its size (two runs) the same program asks for no memory. */
static inline void facts_no_heap(const made_facts_room *r, cd_facts_set set) {
    facts_asked q = {.set = set};
    cdmpp_err err = {0};
    size_t n = 0;
    assert_ok(cd_facts_new(&q.f, &err));
    for (size_t k = 0; k < MADE_F_TASKS; k++)
        n += made_facts_draws(r, k, set == CD_FACTS_OF_GPU, 12, facts_quiet, &q);
    assert_true(n > 50); /* few draws of GPU programs are within its limits, of some tasks none */
    cd_facts_free(q.f);
}

static inline void facts_faults(const made_facts_room *r, cd_facts_set set, size_t task,
                                const char *steps) {
    cd_arena a = {0};
    cd_nest nest;
    facts_lower(r, task, set == CD_FACTS_OF_GPU ? PROG_GPU : PROG_CPU, steps, &a, &nest);
    FAULT_SWEEP(f, 1) {
        cd_facts *facts = NULL;
        float x[CD_N_FACTS];
        f.st = cd_facts_new(&facts, &f.err);
        if (!f.st) f.st = cd_facts_of(facts, set, &nest, x, &f.err);
        cd_facts_free(facts);
    }
    cd_arena_free(&a);
}
#endif
