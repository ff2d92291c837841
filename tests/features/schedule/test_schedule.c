/* Schedules that fit no task: each a clear error, none a crash, a hang or a row. */
#include <stdlib.h>

#include "check.h"
#include "features/schedule/schedule.h"
#include "prog.h"

static const char *const task[] = {
    "\"ops\": [{\"name\": \"A\", \"shape\": [100, 60], \"dtype\": \"float32\"}, {\"name\": \"B\", "
    "\"shape\": [60, 70], \"dtype\": \"float32\"},"
    "{\"name\": \"mm\", \"axis\": [[\"i\", 0, 100], [\"j\", 0, 70]], \"reduce_axis\": [[\"k\", 0, "
    "60]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"},"
    "{\"name\": \"e\", \"axis\": [[\"i\", 0, 100], [\"j\", 0, 70]], \"body\": \"exp(mm[i, j])\"},"
    "{\"name\": \"f\", \"axis\": [[\"i\", 0, 100], [\"j\", 0, 70]], \"body\": \"e[i, j] + mm[i, "
    "j]\"}]",
};

/* Stages: 0 A, 1 B, 2 mm, 3 e, 4 f. */
static const struct {
    const char *steps;
    cdmpp_status want;
    const char *msg;
} bad[] = {
    {"[\"SP\", 9, 0, 0, [2], 1]", CDMPP_EINVALID, "stage 9"},
    {"[\"SP\", 2, 3, 0, [2], 1]", CDMPP_EINVALID, "iterator 3 of stage 2"},
    {"[\"SP\", 2, 0, 0, [2147483647, 2147483647], 1], [\"FU\", 2, [0, 1, 2]], [\"AN\", 2, 0, 6]",
     CDMPP_EUNSUPPORTED, "a fused loop of more"},
    {"[\"FU\", 2, [0, 2]]", CDMPP_EINVALID, "not consecutive"},
    {"[\"FU\", 2, [1, 0]]", CDMPP_EINVALID, "not consecutive"},
    {"[\"FU\", 2, [2, 3]]", CDMPP_EINVALID, "iterator 3"},
    {"[\"RE\", 2, [0, 1]]", CDMPP_EINVALID, "the stage has 3"},
    {"[\"RE\", 2, [0, 1, 1]]", CDMPP_EINVALID, "twice"},
    {"[\"RE\", 2, [0, 1, 3]]", CDMPP_EINVALID, "iterator 3"},
    {"[\"AN\", 2, 0, 3], [\"AN\", 2, 0, 2]", CDMPP_EINVALID, "annotated already"},
    {"[\"AN\", 2, 0, 6], [\"AN\", 2, 0, 6]", CDMPP_EINVALID, "annotated already"},
    {"[\"AN\", 2, 0, 11]", CDMPP_EINVALID, "annotation 11"},
    {"[\"FSP\", 2, 0, 0, 1]", CDMPP_EINVALID, "no earlier SP"},
    {"[\"SP\", 2, 0, 0, [4], 1], [\"FSP\", 3, 0, 0, 3]", CDMPP_EINVALID, "n_split 3"},
    {"[\"SP\", 2, 0, 0, [65536, 65536], 1], [\"FSP\", 3, 0, 0, 1]", CDMPP_EINVALID, "out of range"},
    {"[\"SP\", 2, 0, 0, [4], 1], [\"FFSP\", 3, 0, [0], 1, 1]", CDMPP_EINVALID, "level 1"},
    {"[\"SP\", 2, 0, 0, [65536], 1], [\"FFSP\", 3, 0, [0, 0], 0, 1]", CDMPP_EINVALID,
     "out of range"},
    {"[\"PR\", 2, 0, \"unroll\"]", CDMPP_EUNSUPPORTED, "pragma"},
    {"[\"PR\", 2, 0, \"auto_unroll_max_step$99999999999\"]", CDMPP_EINVALID, "unroll steps"},
    {"[\"CA\", 2, 2, 0]", CDMPP_EINVALID, "target stage 2"},
    {"[\"CA\", 2, 3, 2]", CDMPP_EINVALID, "iterator 2 of stage 3"},
    {"[\"CA\", 2, 3, 0]", CDMPP_EINVALID, "not around its reader"},
    {"[\"CA\", 3, 2, 0]", CDMPP_EINVALID, "not around its reader"},
    {"[\"CA\", 2, 3, 0], [\"CA\", 3, 2, 0]", CDMPP_EINVALID, "attached to itself"},
    {"[\"CA\", 0, 1, 0]", CDMPP_EINVALID, "iterator 0 of stage 1"},
    {"[\"CA\", 4, 2, 0]", CDMPP_EINVALID, "is not at the root"},
    {"[\"CA\", 0, 2, 2], [\"RF\", 2, 2, 0]", CDMPP_EINVALID, "is gone"},
    {"[\"CI\", 4]", CDMPP_EINVALID, "cannot be inlined"},
    {"[\"CI\", 2]", CDMPP_EINVALID, "cannot be inlined"},
    {"[\"CI\", 0]", CDMPP_EINVALID, "cannot be inlined"},
    {"[\"CHR\", 4, \"shared\", [2]]", CDMPP_EINVALID, "does not read"},
    {"[\"CHR\", 0, \"shared\", []]", CDMPP_EINVALID, "without readers"},
    {"[\"CHR\", 0, \"shared\", [7]]", CDMPP_EINVALID, "reader stage 7"},
    {"[\"CHR\", 0, \"texture\", [2]]", CDMPP_EINVALID, "memory scope"},
    {"[\"CHW\", 0, \"local\"]", CDMPP_EINVALID, "cache write of an input"},
    {"[\"SP\", 2, 0, 0, [4], 1], [\"CHW\", 2, \"local\"]", CDMPP_EUNSUPPORTED,
     "split or fused already"},
    {"[\"RF\", 2, 0, 0]", CDMPP_EINVALID, "not a reduction"},
    {"[\"RF\", 3, 0, 0]", CDMPP_EINVALID, "no reduction"},
    {"[\"RF\", 2, 2, 7]", CDMPP_EINVALID, "factor axis 7"},
    {"[\"SP\", 2, 0, 0, [4], 1], [\"RF\", 2, 3, 0]", CDMPP_EINVALID, "other axes"},
    {"[\"FU\", 2, [1, 2]], [\"RF\", 2, 1, 0]", CDMPP_EUNSUPPORTED, "constant extent"},
    {"[\"CA\", 3, 4, 0], [\"AN\", 3, 0, 6]", CDMPP_EINVALID, "does not start at zero"},
};

typedef struct {
    cd_task_registry *tasks;
    cd_program *p;
    cd_arena a;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){0};
    assert_ok(prog_tasks(task, 1, &f.tasks, &err));
    assert_ok(cd_program_new(&f.p, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_program_free(f->p);
    cd_task_registry_free(f->tasks);
    cd_arena_free(&f->a);
    return 0;
}

static cdmpp_status build(fixture *f, const char *steps, cdmpp_err *err) {
    cd_buf b = {0};
    cd_record r;
    cd_rows rows;
    cd_buf_putf(&b, "[%s]", steps);
    cdmpp_status st = prog_record(&f->a, "0", PROG_CPU, b.p, &r, err);
    if (!st) st = cd_program_build(f->p, cd_task_registry_at(f->tasks, 0), &r, &rows, err);
    cd_buf_free(&b);
    return st;
}

static void mistakes_are_named(void **state) {
    int wrong = 0;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        cdmpp_err err = {0};
        const cdmpp_status st = build(*state, bad[k].steps, &err);
        if (st == bad[k].want && err.msg[0] && strstr(err.msg, bad[k].msg)) continue;
        print_error("%s: %s: %s\n", bad[k].steps, cdmpp_status_name(st), st ? err.msg : "accepted");
        wrong++;
    }
    assert_int_equal(wrong, 0);
    cdmpp_err err = {0};
    assert_ok(build(*state, "", &err)); /* and the next program is fine */
}

/* Step `text`, n times. */
static cdmpp_status repeated(fixture *f, const char *text, int n, cdmpp_err *err) {
    cd_buf b = {0};
    for (int k = 0; k < n; k++) cd_buf_putf(&b, "%s%s", k ? "," : "", text);
    const cdmpp_status st = build(f, b.p, err);
    cd_buf_free(&b);
    return st;
}

static void limits(void **state) {
    static const struct {
        const char *step;
        int most;    /* this often is fine */
        int refused; /* this often is too much; 0: never */
        const char *msg;
    } tab[] = {{"[\"CR\", 2]", CD_MAX_STEP, CD_MAX_STEP + 1, "32769 steps, at most 32768"},
               {"[\"SP\", 2, 0, 0, [1, 1, 1, 1], 1]", 63, 64, "256 iterators"},
               {"[\"PR\", 2, 0, \"auto_unroll_max_step$16\"]", 999, 0, NULL},
               {"[\"CHW\", 2, \"local\"]", 300, CD_MAX_STAGE, "4097 stages, at most 4096"}};
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cdmpp_err err = {0};
        assert_ok(repeated(*state, tab[k].step, tab[k].most, &err));
        if (!tab[k].refused) continue;
        assert_status(repeated(*state, tab[k].step, tab[k].refused, &err), CDMPP_EUNSUPPORTED);
        if (!strstr(err.msg, tab[k].msg)) print_error("%s\n", err.msg);
        assert_non_null(strstr(err.msg, tab[k].msg));
    }
}

TESTS(up, down, mistakes_are_named, limits)
