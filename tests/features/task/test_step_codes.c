/* Steps as numbers: records written out by hand; what is no list of steps is told. */
#include "check.h"
#include "fault.h"

#include <stdio.h>
#include <string.h>

#include "features/task/task.h"

static cd_arena mem;

static cd_record steps(const char *text) {
    cdmpp_err err = {0};
    cd_record r = {0};
    assert_ok(cd_record_read_steps(&mem, text, strlen(text), &r, &err));
    return r;
}

static void codes_are(const char *text, const int32_t *want, size_t n_want) {
    cdmpp_err err = {0};
    const cd_record r = steps(text);
    int32_t *code = NULL;
    uint32_t n = 0;
    assert_ok(cd_step_codes(&mem, &r, &code, &n, &err));
    assert_int_equal(n, n_want);
    assert_memory_equal(code, want, n_want * sizeof *want);
    assert_true(cd_step_codes_sound(code, n));
}

/* Kind, number of values, stage, then the arguments in the order of the record. */
TEST(every_kind) {
    static const int32_t want[] = {
        0,  3, 1, 2, 3,            /* AN */
        1,  3, 1, 2, 3,            /* FU */
        2,  3, 1, 2, 64,           /* PR: the limit of unrolling */
        3,  3, 1, 1, 0,            /* RE */
        4,  6, 1, 2, 3,  4,  5, 1, /* SP: iterator, extent, lengths, inner_to_outer */
        5,  4, 1, 2, 3,  4,        /* FSP */
        6,  6, 1, 2, 3,  4,  5, 1, /* FFSP: iterator, sources, level, factor */
        7,  4, 1, 2, 3,  -4,       /* SA */
        8,  3, 1, 2, 3,            /* CA */
        9,  1, 1,                  /* CI */
        10, 1, 1,                  /* CR */
        11, 4, 1, 2, 2,  3,        /* CHR: shared is 2 */
        12, 2, 1, 1,               /* CHW: local is 1 */
        13, 3, 1, 2, 3,            /* RF */
    };
    codes_are("[[\"AN\", 1, 2, 3], [\"FU\", 1, [2, 3]], [\"PR\", 1, 2, "
              "\"auto_unroll_max_step$64\"], [\"RE\", 1, [1, 0]], "
              "[\"SP\", 1, 2, 3, [4, 5], 1], [\"FSP\", 1, 2, 3, 4], [\"FFSP\", 1, 2, [3, 4], 5, "
              "1], [\"SA\", 1, 2, 3, -4], "
              "[\"CA\", 1, 2, 3], [\"CI\", 1], [\"CR\", 1], [\"CHR\", 1, \"shared\", [2, 3]], "
              "[\"CHW\", 1, \"local\"], [\"RF\", 1, 2, 3]]",
              want, sizeof want / sizeof *want);
}

TEST(names) {
    static const int32_t want[] = {12, 2, 0, 1, 12, 2, 0, 2, 12, 2, 0, 3, 12,
                                   2,  0, 4, 2, 3,  0, 5, 0, 2,  3, 0, 5, -1};
    codes_are("[[\"CHW\", 0, \"local\"], [\"CHW\", 0, \"shared\"], [\"CHW\", 0, \"global\"], "
              "[\"CHW\", 0, \"warp\"], "
              "[\"PR\", 0, 5, \"auto_unroll_max_step$0\"], [\"PR\", 0, 5, \"debug_skip_region\"]]",
              want, sizeof want / sizeof *want);
    codes_are("[]", NULL, 0);
}

/* A short name is told whole, a long one by its first 64 letters. */
TEST(names_are_told) {
    static const struct {
        const char *name, *told;
    } t[] = {{"x", "the name \"x\" of a step has no number"},
             {"0123456789012345678901234567890123456789012345678901234567890123",
              "the name \"0123456789012345678901234567890123456789012345678901234567890123\" of"},
             {"0123456789012345678901234567890123456789012345678901234567890123456",
              "the name \"0123456789012345678901234567890123456789012345678901234567890123\" of"}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cdmpp_err err = {0};
        char text[200];
        int32_t *code = NULL;
        uint32_t n = 0;
        snprintf(text, sizeof text, "[[\"CHW\", 0, \"%s\"]]", t[k].name);
        const cd_record r = steps(text);
        assert_status(cd_step_codes(&mem, &r, &code, &n, &err), CDMPP_EUNSUPPORTED);
        if (!strstr(err.msg, t[k].told)) fail_msg("%s", err.msg);
    }
}

/* No name gets the number of another. */
TEST(unknown_names) {
    static const char *const text[] = {"[[\"CHW\", 0, \"shared.dyn\"]]", "[[\"CHW\", 0, \"\"]]",
                                       "[[\"PR\", 0, 0, \"auto_unroll_max_step$\"]]",
                                       "[[\"PR\", 0, 0, \"auto_unroll_max_step$1x\"]]",
                                       "[[\"PR\", 0, 0, \"auto_unroll_max_step$99999999999\"]]"};
    for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
        cdmpp_err err = {0};
        const cd_record r = steps(text[k]);
        int32_t *code;
        uint32_t n;
        assert_status(cd_step_codes(&mem, &r, &code, &n, &err), CDMPP_EUNSUPPORTED);
    }
}

TEST(one_after_another) {
    const int32_t code[] = {9, 1, 7, 8, 3, 1, 2, 3};
    const int32_t *at = code;
    size_t n = 8;
    cd_step_code s;
    assert_true(cd_step_codes_next(&at, &n, &s) && s.kind == CD_RECORD_STEP_CI && s.n == 1 &&
                s.value[0] == 7);
    assert_true(cd_step_codes_next(&at, &n, &s) && s.kind == CD_RECORD_STEP_CA && s.n == 3 &&
                s.value[2] == 3);
    assert_false(cd_step_codes_next(&at, &n, &s));
    assert_true(cd_step_codes_sound(code, 8) && cd_step_codes_sound(code, 3) &&
                cd_step_codes_sound(code, 0));
    for (size_t k = 1; k < 8; k++)
        if (k != 3) assert_false(cd_step_codes_sound(code, k));        /* cut short */
    assert_false(cd_step_codes_sound((const int32_t[]){14, 1, 0}, 3)); /* no such kind */
    assert_false(cd_step_codes_sound((const int32_t[]){-1, 1, 0}, 3));
    assert_false(cd_step_codes_sound((const int32_t[]){9, 0, 0}, 3)); /* each has a stage */
    assert_false(cd_step_codes_sound((const int32_t[]){9, -2, 0}, 3));
}

TEST(memory_that_is_refused) {
    const cd_record r = steps("[[\"SP\", 1, 2, 3, [4, 5], 1], [\"CI\", 1]]");
    FAULT_SWEEP(f, 1) {
        cd_arena a = {0};
        int32_t *code;
        uint32_t n;
        f.st = cd_step_codes(&a, &r, &code, &n, &f.err);
        cd_arena_free(&a);
    }
}

static int release(void **state) {
    (void)state;
    cd_arena_free(&mem);
    return 0;
}

TESTS(NULL, release, every_kind, names, names_are_told, unknown_names, one_after_another,
      memory_that_is_refused)
