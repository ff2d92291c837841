/* Boosters with one odd byte: read, or refused with a reason, and nothing is lost. */
#include "learner/trees/trees.h"
#include "odd.h"

enum { WIDTH = 6 };

static cdmpp_status booster(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    static const float x[WIDTH] = {0.5F, -1, 2, 0, 3, -4};
    cd_tree_inference *f = NULL;
    float y;
    (void)ctx;
    CD_TRY(cd_tree_inference_read(text, n, WIDTH, &f, err));
    cd_tree_inference_score(f, x, 1, WIDTH, &y);
    cd_tree_inference_free(f);
    return CDMPP_OK;
}

static void odd_bytes(const char *path) {
    static const char byte[] = {0,   1,   2,   8,   127, -128, -1,  '[', ']', '{', '}',
                                '$', '#', 'S', 'U', 'i', 'l',  'L', 'd', 'D', 'T', 'Z'};
    cdmpp_err err = {0};
    char *text;
    size_t n;
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    odd_texts o = {.text = text, .n = n, .read = booster};
    odd_one(&o, 0, 0, "", 0);
    assert_true(o.taken);
    FAULT_SWEEP(f, 0) f.st = booster(NULL, text, n, &f.err);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof byte; k++) odd_one(&o, i, 1, &byte[k], 1);
        odd_one(&o, i, n - i, "", 0);
    }
    assert_true(o.taken > 1 && o.refused > n);
    cd_mem_free(text);
}

TEST(two_trees) { odd_bytes("tests/fuzz/seeds/forest/two"); }
TEST(stump) { odd_bytes("tests/fuzz/seeds/forest/stump"); }

TESTS(NULL, NULL, two_trees, stump)
