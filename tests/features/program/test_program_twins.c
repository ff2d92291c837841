/* Two definitions behind one key: the record decides, or it is refused. */
#include "check.h"
#include "fault.h"
#include "prog.h"

/* A padded window of 3, as pools have it: the pad is 9 or 10 wide; the key says neither. The last
 * one differs in what no row shows. */
#define POOL(pad, op)                                                                              \
    "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": \"k\", "         \
    "\"ops\": [{\"name\": \"x\", \"shape\": [8], \"dtype\": \"float32\"},"                         \
    "{\"name\": \"pad\", \"axis\": [[\"i\", 0, " pad                                               \
    "]], \"body\": \"if_then_else(i >= 1 && i < 9, x[i - 1], 0)\"},"                               \
    "{\"name\": \"pool\", \"axis\": [[\"o\", 0, 4]], \"reduce_axis\": [[\"r\", 0, 3]], "           \
    "\"reduce\": \"" op "\", \"body\": \"pad[o*2 + r]\"}]}]}"
static const char *const definition[] = {POOL("9", "max"), POOL("10", "max"), POOL("9", "min")};

static cd_task_registry *load(const int *which, size_t n) {
    cd_task_registry *t;
    cdmpp_err err = {0};
    assert_ok(cd_task_registry_new(&t, &err));
    for (size_t k = 0; k < n; k++)
        assert_ok(cd_task_registry_load_text(t, "t", definition[which[k]],
                                             strlen(definition[which[k]]), &err));
    return t;
}

/* The extent of the pad in the definition that is chosen; 0: refused. */
static int64_t chosen(const cd_task_registry *t, const char *steps) {
    cd_arena a = {0};
    cd_record r;
    cd_program *p;
    cdmpp_err err = {0};
    const cd_task *task = cd_task_registry_at(t, 0);
    assert_ok(prog_record(&a, "k", PROG_CPU, steps, &r, &err));
    assert_ok(cd_program_new(&p, &err));
    const cdmpp_status st = cd_program_choose(p, &r, &task, &err);
    if (st)
        assert_error(st, "several definitions of its task fit and give different rows; give one of "
                         "them for k [ENOTASK]");
    const int64_t pad = st ? 0 : task->dag->op[1].axis[0].extent->u.i;
    cd_program_free(p);
    cd_arena_free(&a);
    return pad;
}

#define NOTED(n)   "[[\"SP\", 1, 0, " n ", [2], 1]]"
#define NOTED_ZERO "[[\"SP\", 1, 0, 0, [2], 1]]"
#define INLINED    "[[\"CI\", 1]]"
#define OUTER      "[[\"SP\", 2, 0, 4, [2], 1]]"

TEST(a_record_decides) {
    cd_task_registry *t = load((const int[]){0, 1}, 2);
    assert_int_equal(cd_task_registry_count(t), 1);
    assert_int_equal(chosen(t, NOTED("9")), 9);
    assert_int_equal(chosen(t, NOTED("10")), 10);
    assert_int_equal(chosen(t, INLINED), 9);    /* the pad is gone: equal rows */
    assert_int_equal(chosen(t, NOTED("7")), 0); /* of a third shape */
    assert_int_equal(chosen(t, NOTED_ZERO), 0); /* notes nothing: both fit */
    assert_int_equal(chosen(t, OUTER), 0);
    /* fits none: the build of the first one says why */
    assert_int_equal(chosen(t, "[[\"CI\", 7]]"), 9);
    cd_task_registry_free(t);
}

TEST(equal_ones_are_no_twins) {
    cd_task_registry *t = load((const int[]){0, 0}, 2);
    assert_null(cd_task_registry_at(t, 0)->twin);
    assert_int_equal(chosen(t, OUTER), 9);
    cd_task_registry_free(t);
    t = load((const int[]){1, 0, 2, 0}, 4);
    assert_non_null(cd_task_registry_at(t, 0)->twin->twin);
    assert_null(cd_task_registry_at(t, 0)->twin->twin->twin);
    assert_int_equal(chosen(t, NOTED("10")), 10);
    /* the second and the third differ, but no row says so */
    assert_int_equal(chosen(t, NOTED("9")), 9);
    assert_null(cd_task_registry_unused(t, 2));
    cd_task_registry_free(t);
}

TEST(out_of_memory) {
    cd_arena a = {0};
    cd_record r;
    cdmpp_err err = {0};
    assert_ok(prog_record(&a, "k", PROG_CPU, NOTED("9"), &r, &err));
    FAULT_SWEEP(f, 1) {
        cd_task_registry *t = NULL;
        cd_program *p = NULL;
        f.st = cd_task_registry_new(&t, &f.err);
        for (int k = 0; k < 2 && !f.st; k++)
            f.st = cd_task_registry_load_text(t, "t", definition[k], strlen(definition[k]), &f.err);
        if (!f.st) f.st = cd_program_new(&p, &f.err);
        const cd_task *task = f.st ? NULL : cd_task_registry_at(t, 0);
        if (!f.st) f.st = cd_program_choose(p, &r, &task, &f.err);
        cd_program_free(p);
        cd_task_registry_free(t);
    }
    cd_arena_free(&a);
}

TESTS(NULL, NULL, a_record_decides, equal_ones_are_no_twins, out_of_memory)
