/* ensemble: the share of the programs that has room counts each program of the part. */
#include "check.h"
#include "learner/train/train_internal.h"
#include "learner/train/training_set.h"

enum { PROGRAMS = 1000, LARGE_ROWS = 90000 };

/* All programs but one have ten rows; that one is more than most of the set. */
static double share_in(const char *folder, size_t large, int memory, int fold_of_large) {
    static int64_t ptr[PROGRAMS + 1];
    static uint8_t fold[PROGRAMS];
    cd_spool *spool = NULL; /* only where it is counts */
    cdmpp_err err = {0};
    cd_config c;
    cd_dataset d = {.n = PROGRAMS};
    for (size_t i = 0; i < PROGRAMS; i++) {
        ptr[i + 1] = ptr[i] + (i == large ? LARGE_ROWS : 10);
        fold[i] = i == large ? (uint8_t)fold_of_large : CD_FOLD_ALWAYS;
    }
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_spool_new(folder, 1, 1, &spool, &err));
    c.train_memory = memory;
    const cd_training_set t = {
        .c = &c, .d = &d, .fold = fold, .view = {.row_ptr = ptr, .spool = spool}};
    const double s = cd_ensemble_share(&t, CD_MEMBER_ROWS, 0, true);
    cd_config_free(&c);
    cd_spool_free(spool);
    return s;
}

static double share(size_t large, int memory, int fold_of_large) {
    return share_in("/var/tmp", large, memory, fold_of_large);
}

/* Wherever it stands, a large program takes its room; what is in no part takes none. */
TEST(place_of_a_program_is_nothing) {
    const double s = share(PROGRAMS / 2, 64, CD_FOLD_ALWAYS),
                 without = share(PROGRAMS / 2, 64, CD_FOLD_NEVER);
    assert_true(s > 0 && s < 0.5);
    assert_close(without,
                 fmin(1, s * (LARGE_ROWS + 10.0 * (PROGRAMS - 1)) / (10.0 * (PROGRAMS - 1))), 1e-12,
                 0);
    assert_close(share(0, 64, CD_FOLD_ALWAYS), s, 1e-12, 0);
    assert_close(share(PROGRAMS - 1, 64, CD_FOLD_ALWAYS), s, 1e-12, 0);
    assert_close(share(0, 128, CD_FOLD_ALWAYS), 2 * s, 1e-12, 0);
}

/* Data that ranks share in memory are not drawn from: the model would be another one than without
 * ranks. */
TEST(all_of_what_is_in_memory) { assert_true(share_in(NULL, 0, 64, CD_FOLD_ALWAYS) == 1); }

TESTS(NULL, NULL, place_of_a_program_is_nothing, all_of_what_is_in_memory)
