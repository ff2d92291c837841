/* Trees walked by us against XGBoost: the same bits for any depth, number of rows, missing values;
 * and a file cut or changed anywhere is an error or another forest, never a read outside. */
#include "learner/trees/trees.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"

enum { N = 600, W = 11, ROUNDS = 37 };
static float x[N * W];

static void fill(void) {
    for (size_t i = 0; i < N * W; i++) {
        const double u = cd_rng_unit(1, i);
        x[i] = i % W == 3 ? (float)floor(3 * u) : i % 17 == 0 ? NAN : (float)(20 * u - 10);
    }
}

/* A booster of `rounds` trees of `depth` levels, as a file. */
static void train(const char *depth, int rounds, cd_buf *file) {
    static float score[N], grad[N], hess[N];
    const cd_xgb_param p[] = {
        {"max_depth", depth}, {"eta", "0.3"}, {"nthread", "1"}, {"min_child_weight", "0.01"}};
    cdmpp_err err = {0};
    cd_xgb_data *d = NULL;
    cd_xgb *g = NULL;
    assert_ok(cd_xgb_data_new(x, N, W, 1, &d, &err));
    assert_ok(cd_xgb_new(d, NULL, p, 4, &g, &err));
    for (int r = 0; r < rounds; r++) {
        assert_ok(cd_xgb_scores(g, d, score, &err));
        for (size_t i = 0; i < N; i++) {
            const double y =
                sin((double)i) + (isnan(x[i * W]) ? 3 : (double)x[i * W]) * (double)x[i * W + 3];
            grad[i] = score[i] - (float)y;
            hess[i] = 1;
        }
        assert_ok(cd_xgb_boost(g, d, grad, hess, &err));
    }
    assert_ok(cd_xgb_save(g, file, &err));
    /* of a booster that was not loaded, XGBoost's own answer */
    assert_ok(cd_xgb_predict(g, x, N, W, score, &err));
    cd_tree_inference *f = NULL;
    assert_ok(cd_tree_inference_read(file->p, file->n, W, &f, &err));
    assert_non_null(f);
    static float mine[N];
    static const size_t batch[] = {1, 2, 3, 4, 7, 8, 9, 63, 64, 65, N};
    for (size_t b = 0; b < sizeof batch / sizeof *batch; b++) {
        memset(mine, 0, sizeof mine);
        for (size_t i = 0; i < N; i += batch[b])
            cd_tree_inference_score(f, x + i * W, N - i < batch[b] ? N - i : batch[b], W, mine + i);
        assert_memory_equal(mine, score, sizeof score);
    }
    cd_tree_inference_free(f);
    cd_xgb_free(g);
    cd_xgb_data_free(d);
}

TEST(the_same_bits) {
    static const char *const depth[] = {"1", "2", "6", "14"};
    fill();
    for (size_t k = 0; k < 4; k++) {
        cd_buf file = {0};
        train(depth[k], ROUNDS, &file);
        cd_buf_free(&file);
    }
    cd_buf none = {0};
    train("3", 1, &none);
    cd_buf_free(&none);
}

/* The first trees of a booster are the booster that it was then. */
TEST(as_it_was) {
    enum { EARLY = 12 };
    static float was[N], some[N], all[N], most[N];
    cdmpp_err err = {0};
    cd_buf early = {0}, late = {0};
    cd_tree_inference *f = NULL, *g = NULL;
    fill();
    train("6", EARLY, &early);
    train("6", ROUNDS, &late);
    assert_ok(cd_tree_inference_read(early.p, early.n, W, &f, &err));
    assert_ok(cd_tree_inference_read(late.p, late.n, W, &g, &err));
    cd_tree_inference_score(f, x, N, W, was);
    cd_tree_inference_score(g, x, N, W, all);
    static const size_t batch[] = {1, 3, 4, 65, N};
    for (size_t b = 0; b < sizeof batch / sizeof *batch; b++) {
        for (size_t i = 0; i < N; i += batch[b]) {
            const size_t n = N - i < batch[b] ? N - i : batch[b];
            cd_tree_inference_score_some(g, x + i * W, n, W, EARLY, some + i);
            cd_tree_inference_score_some(g, x + i * W, n, W, SIZE_MAX, most + i);
        }
        assert_memory_equal(some, was, sizeof was);
        assert_memory_equal(most, all, sizeof all);
    }
    assert_memory_not_equal(was, all, sizeof all);
    cd_tree_inference_free(f);
    cd_tree_inference_free(g);
    cd_buf_free(&early);
    cd_buf_free(&late);
}

/* At an address that ends where the bytes end. */
static bool read_at(const char *p, size_t n) {
    char *exact = malloc(n ? n : 1);
    cd_tree_inference *f = NULL;
    cdmpp_err err = {0};
    float y[9];
    assert_non_null(exact);
    memcpy(exact, p, n);
    const cdmpp_status st = cd_tree_inference_read(exact, n, W, &f, &err);
    const bool is = f != NULL;
    assert_true(is ? st == CDMPP_OK : st == CDMPP_EMODEL && err.msg[0]);
    if (f) cd_tree_inference_score(f, x, 9, W, y);
    cd_tree_inference_free(f);
    free(exact);
    return is;
}

/* What a file leaves out is in no answer; the rest of it keeps its bytes. */
TEST(without_what_no_answer_needs) {
    cdmpp_err err = {0};
    cd_buf whole = {0}, bare = {0}, again = {0};
    cd_xgb *g = NULL, *less = NULL;
    static float want[N], got[N];
    fill();
    train("6", ROUNDS, &whole);
    assert_ok(cd_xgb_load(whole.p, whole.n, W, &g, &err));
    assert_ok(cd_xgb_save_bare(g, &bare, &err));
    assert_ok(cd_xgb_load(bare.p, bare.n, W, &less, &err));
    assert_ok(cd_xgb_predict(g, x, N, W, want, &err));
    assert_ok(cd_xgb_predict(less, x, N, W, got, &err));
    assert_memory_equal(want, got, sizeof want);
    assert_int_equal(bare.n, whole.n);
    size_t changed = 0, other = 0;
    for (size_t i = 0; i < whole.n; i++) {
        changed += whole.p[i] != bare.p[i];
        other += whole.p[i] != bare.p[i] && bare.p[i];
    }
    assert_true(changed > whole.n / 20 && !other);
    assert_ok(cd_xgb_save_bare(less, &again, &err));
    assert_memory_equal(again.p, bare.p, bare.n);
    for (size_t cut = 0; cut < whole.n; cut += 1 + whole.n / 200) {
        cd_buf part = {0};
        cd_buf_put(&part, whole.p, cut);
        assert_status(cd_tree_inference_forget(part.p, part.n, &err), CDMPP_EMODEL);
        cd_buf_free(&part);
    }
    cd_xgb_free(g);
    cd_xgb_free(less);
    cd_buf_free(&whole);
    cd_buf_free(&bare);
    cd_buf_free(&again);
}

TEST(any_bytes_are_safe) {
    cd_buf file = {0};
    fill();
    train("3", 2, &file);
    /* not even by its last bracket */
    for (size_t n = 0; n < file.n; n++) assert_false(read_at(file.p, n));
    for (size_t i = 0; i < file.n; i++) {
        const char was = file.p[i];
        for (int k = 0; k < 4; k++) {
            file.p[i] = (char)(k == 0   ? 0xFF
                               : k == 1 ? 0
                               : k == 2 ? was + 1
                                        : (int)(cd_rng_unit(2, i) * 256));
            read_at(file.p, file.n);
        }
        file.p[i] = was;
    }
    cd_tree_inference *f = NULL;
    cdmpp_err err = {0};
    /* columns that there are not */
    assert_status(cd_tree_inference_read(file.p, file.n, 1, &f, &err), CDMPP_EMODEL);
    assert_string_equal(err.key, "learner.learner_model_param.num_feature");
    assert_null(f);
    cd_buf_free(&file);
}

/* ---- numbers that are changed by hand ---- */
/* Behind the key's k-th place in the file. */
static size_t behind(const cd_buf *file, const char *key, int k) {
    const char *at = file->p;
    for (; k >= 0; k--) {
        at = memmem(at, file->n - (size_t)(at - file->p), key, strlen(key));
        assert_non_null(at);
        at += strlen(key);
    }
    return (size_t)(at - file->p);
}

/* The first leaf of tree k, whose arrays are "[$l#L", eight bytes of a count, and numbers of four
 * bytes. */
static char *leaf(const cd_buf *file, int k) {
    const char *left = file->p + behind(file, "left_children[$l#L", k) + 8;
    char *cut = file->p + behind(file, "split_conditions[$d#L", k) + 8;
    size_t i = 0;
    while (memcmp(left + 4 * i, "\xff\xff\xff\xff", 4)) i++;
    return cut + 4 * i;
}

static void put_real(char *p, float v) {
    uint32_t w;
    memcpy(&w, &v, sizeof w);
    for (int i = 0; i < 4; i++) p[i] = (char)(w >> (24 - 8 * i));
}

/* No row may have an infinite score: leaves of two trees that are finite, and their sum is not, of
 * either sign. */
TEST(leaves_add_up) {
    cd_buf file = {0};
    fill();
    train("2", 2, &file);
    for (int sign = -1; sign < 2; sign += 2) {
        cdmpp_err err = {0};
        put_real(leaf(&file, 0), (float)sign * 2e38F);
        put_real(leaf(&file, 1), (float)sign * 1e38F);
        assert_true(read_at(file.p, file.n));
        put_real(leaf(&file, 1), (float)sign * 2e38F);
        cd_tree_inference *f = NULL;
        assert_status(cd_tree_inference_read(file.p, file.n, W, &f, &err), CDMPP_EMODEL);
        assert_non_null(strstr(err.msg, "add up to a finite score"));
    }
    cd_buf_free(&file);
}

/* Which tree each round begins with, as XGBoost writes it since 2.0: each number at least the one
 * before, at most the number of trees. */
TEST(rounds_rise) {
    static const struct {
        int n, v[4];
        bool right;
    } round[] = {{3, {0, 1, 2}, true},  {3, {0, 0, 2}, true},    {3, {0, 2, 1}, false},
                 {3, {2, 1, 0}, false}, {3, {0, 1, 3}, false},   {3, {-1, 1, 2}, false},
                 {2, {0, 2}, false},    {4, {0, 1, 1, 2}, false}};
    cd_buf file = {0};
    fill();
    train("2", 2, &file);
    const size_t at = behind(&file, "model{", 0);
    for (size_t k = 0; k < sizeof round / sizeof *round; k++) {
        cdmpp_err err = {0};
        cd_buf b = {0};
        cd_tree_inference *f = NULL;
        cd_buf_put(&b, file.p, at);
        cd_buf_put(&b,
                   "L\0\0\0\0\0\0\0\x10"
                   "iteration_indptr[#i",
                   28);
        cd_buf_put(&b, (char[]){(char)round[k].n}, 1);
        for (int i = 0; i < round[k].n; i++) cd_buf_put(&b, (char[]){'i', (char)round[k].v[i]}, 2);
        cd_buf_put(&b, file.p + at, file.n - at);
        assert_false(b.oom);
        assert_status(cd_tree_inference_read(b.p, b.n, W, &f, &err),
                      round[k].right ? CDMPP_OK : CDMPP_EMODEL);
        if (!round[k].right) assert_non_null(strstr(err.key, "model.iteration_indptr"));
        cd_tree_inference_free(f);
        cd_buf_free(&b);
    }
    cd_buf_free(&file);
}

/* What XGBoost refuses is told in a line, without the place in its sources. */
TEST(errors_are_a_line) {
    const cd_xgb_param p[] = {{"max_depth", "deep"}};
    cdmpp_err err = {0};
    cd_xgb_data *d = NULL;
    cd_xgb *g = NULL;
    float score[N];
    fill();
    assert_ok(cd_xgb_data_new(x, N, W, 1, &d, &err));
    cdmpp_status st = cd_xgb_new(d, NULL, p, 1, &g, &err);
    if (!st) st = cd_xgb_scores(g, d, score, &err); /* settings are read when they are needed */
    assert_int_equal(st, CDMPP_EBACKEND);
    assert_string_equal(
        err.msg, "XGBoost: Invalid Parameter format for max_depth expect int but value='deep'");
    if (g) cd_xgb_free(g);
    cd_xgb_data_free(d);
}

TEST(version_of_the_library) {
    char text[32];
    int major = 0, minor = -1, patch = -1, n = 0;
    cd_xgb_version(text);
    assert_int_equal(sscanf(text, "%d.%d.%d%n", &major, &minor, &patch, &n), 3);
    assert_true((size_t)n == strlen(text) && major >= 1 && major < 100 && minor >= 0 &&
                minor < 100 && patch >= 0 && patch < 100);
}

TESTS(NULL, NULL, version_of_the_library, errors_are_a_line, the_same_bits, as_it_was,
      without_what_no_answer_needs, any_bytes_are_safe, leaves_add_up, rounds_rise)
