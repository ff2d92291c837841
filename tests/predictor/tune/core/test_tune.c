/* Candidates: their keys and copies. */
#include <string.h>

#include "base/core/arena.h"
#include "check.h"
#include "predictor/tune/core/core.h"

static const char LINE[] =
    "[[\"CHW\",2,\"local\"],[\"SP\",3,0,512,[4,8,16],1],[\"PR\",2,0,\"auto_unroll_max_step$64\"]]";

static void read(cd_arena *a, const char *text, cd_tune_cand *out) {
    cdmpp_err err = {0};
    cd_record r = {0};
    assert_ok(cd_record_read_steps(a, text, strlen(text), &r, &err));
    *out = (cd_tune_cand){
        .key = cd_record_steps_key(r.step, r.n_step), .n_step = r.n_step, .step = r.step};
}

static void test_key_tells_programs_apart(void **s) {
    (void)s;
    cd_arena a = {0};
    cd_tune_cand x, y;
    read(&a, LINE, &x);
    read(&a, LINE, &y);
    assert_int_equal(x.key, y.key);
    const char *const other[] = {
        "[[\"CHW\",2,\"local\"],[\"SP\",3,0,512,[4,16,8],1],[\"PR\",2,0,\"auto_unroll_max_step$"
        "64\"]]",
        "[[\"CHW\",2,\"local\"],[\"SP\",3,0,512,[4,8,16],1],[\"PR\",2,0,\"auto_unroll_max_step$"
        "16\"]]",
        "[[\"CHW\",2,\"local\"],[\"SP\",3,0,512,[4,8,16],0],[\"PR\",2,0,\"auto_unroll_max_step$"
        "64\"]]",
        "[[\"CHW\",2,\"local\"],[\"SP\",3,0,512,[4,8,16],1]]",
    };
    for (size_t k = 0; k < sizeof other / sizeof *other; k++) {
        read(&a, other[k], &y);
        assert_int_not_equal(x.key, y.key);
    }
    cd_arena_free(&a);
}

static void test_copy_stands_alone(void **s) {
    (void)s;
    cd_arena a = {0}, b = {0};
    cdmpp_err err = {0};
    cd_tune_cand x, y;
    read(&a, LINE, &x);
    const cd_sketch_choice choice[] = {
        {.pick = 1, .n = 3, .kind = CD_SKETCH_CHOICE_UNROLL, .at = 2}};
    x.choice = choice;
    x.n_choice = 1;
    assert_ok(cd_tune_cand_copy(&b, &x, &y, &err));
    cd_arena_free(&a);
    assert_int_equal(cd_record_steps_key(y.step, y.n_step), x.key);
    assert_int_equal(y.choice[0].n, 3);
    assert_ptr_not_equal(y.choice, choice);
    cd_arena_free(&b);
}

TESTS(NULL, NULL, test_key_tells_programs_apart, test_copy_stands_alone)
