/* Memory of building programs: a failure at any allocation is ENOMEM and harms
 * nothing; when warm, building needs no heap at all. Needs MODE=san.
 * Programs: the fuzzer's schedules and every beginning of their step lists. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "base/io/io.h"
#include "base/core/mem.h"
#include "features/program/program.h"

typedef struct {
    cd_task_registry *tasks;
    cd_arena a;
    const char *const *path;
    size_t n;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(cd_task_registry_new(&f.tasks, &err));
    assert_ok(cd_task_registry_load(f.tasks, "tests/fuzz/program.tasks.json", &err));
    assert_ok(cd_file_list(&f.a, "tests/fuzz/seeds/program", NULL, NULL, &f.path, &f.n, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_task_registry_free(f->tasks);
    cd_arena_free(&f->a);
    return 0;
}

static const cd_task *load(fixture *f, const char *path, cd_record *r) {
    char *text;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    char *keep = cd_arena_alloc(&f->a, n + 1, 1);
    assert_non_null(keep);
    memcpy(keep, text, n);
    cd_mem_free(text);
    assert_ok(cd_record_read(&f->a, keep, n, r, &err));
    const cd_task *task = cd_task_registry_find(f->tasks, r->workload_key);
    assert_non_null(task);
    return task;
}

static cdmpp_status build(cd_program **p, const cd_task *task, const cd_record *r, cdmpp_err *err) {
    cd_rows rows;
    if (!*p) CD_TRY(cd_program_new(p, err));
    return cd_program_build(*p, task, r, &rows, err);
}

/* With each allocation refused, and once more with the same program after a refusal. */
static void sweep(fixture *f, const char *name) {
    cd_record r;
    cd_program *first = NULL;
    cdmpp_err err = {0};
    char path[100];
    snprintf(path, sizeof path, "tests/fuzz/seeds/program/%s.json", name);
    const cd_task *task = load(f, path, &r);
    const cdmpp_status want = build(&first, task, &r, &err);
    cd_program_free(first);
    FAULT_SWEEP(w, 10) {
        cd_program *p = NULL;
        w.st = build(&p, task, &r, &w.err);
        fault_off();
        if (w.st == CDMPP_ENOMEM && p) assert_status(build(&p, task, &r, &err), want);
        cd_program_free(p);
        if (w.st == want) w.st = CDMPP_OK; /* some of the programs are refused */
    }
}

static void every_failure(void **state) {
    static const char *const name[] = {"gpu",   "conv0",      "conv1", "winograd0", "softmax0",
                                       "cross", "transpose0", "huge",  "chain"};
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) sweep(*state, name[k]);
}

/* Builds of all beginnings of all schedules; the same sum each time. */
static double build_all(fixture *f, cd_program *p, const cd_record *rec, size_t *n_built,
                        size_t *n_bad) {
    double sum = 0;
    *n_built = *n_bad = 0;
    for (size_t i = 0; i < f->n; i++)
        for (uint32_t k = 0; k <= rec[i].n_step; k++) {
            cd_record r = rec[i];
            cd_rows rows;
            cdmpp_err err = {0};
            r.n_step = k;
            const cdmpp_status st = cd_program_build(
                p, cd_task_registry_find(f->tasks, r.workload_key), &r, &rows, &err);
            if (st == CDMPP_ENOMEM) assert_ok(st);
            *n_bad += st != CDMPP_OK;
            *n_built += st == CDMPP_OK;
            for (size_t c = 0; !st && c < (size_t)rows.n_row * CD_N_COL; c++)
                sum += (double)rows.row[c];
        }
    return sum;
}

static void no_heap_when_warm(void **state) {
    fixture *f = *state;
    cd_program *p;
    cdmpp_err err = {0};
    size_t n, bad, again, bad_again;
    cd_record *rec = cd_arena_alloc(&f->a, f->n, sizeof *rec);
    assert_non_null(rec);
    for (size_t i = 0; i < f->n; i++) load(f, f->path[i], &rec[i]);
    assert_ok(cd_program_new(&p, &err));
    const double sum = build_all(f, p, rec, &n, &bad);
    fault_all();
    const double same = build_all(f, p, rec, &again, &bad_again);
    fault_off();
    print_message("%zu programs and %zu refusals without the heap\n", again, bad_again);
    assert_true(sum == same && n == again && bad == bad_again && n > 400);
    cd_program_free(p);
}

TESTS(up, down, every_failure, no_heap_when_warm)
