/* The law of cd_rows_order through the public calls: TVM may give rows, and buffers of equal lines
 * and bytes, in any order, and the answers have the same bits; a model of an earlier version
 * answers as it did. */
#include "check.h"
#include "made_api.h"
#include "shuffle_rows.h"

#include <math.h>
#include <string.h>

#include "base/io/io.h"

enum { ROUNDS = 4, BY_TREES = MADE_N_MODEL, BY_TUNER, BY_TSF_ROWS, N_MODEL };

static made_api api;
static made_programs all;
static made_out out, other;
static cdmpp_model *model[N_MODEL];

/* Products of matrices have few buffers of equal key: the first two of each row get one, and stay
 * two. */
static void tie_buffers(void) {
    for (int64_t r = 0; r < all.row_ptr[all.n]; r++) {
        float *b = all.rows + r * CD_N_COL + CD_COL_B0_READ;
        b[CD_BLOCK + CD_COL_B0_LINES - CD_COL_B0_READ] = b[CD_COL_B0_LINES - CD_COL_B0_READ];
        b[CD_BLOCK + CD_COL_B0_BYTES - CD_COL_B0_READ] = b[CD_COL_B0_BYTES - CD_COL_B0_READ];
    }
}

static cdmpp_status learn(int k, const char *h5, const char *const *set, int n, cdmpp_err *err) {
    char name[32], path[256];
    snprintf(name, sizeof name, "own%d.cdmpp", k);
    snprintf(path, sizeof path, "%s", tmp_path(&api.dir, name));
    CD_TRY(made_learn(h5, set, n, path, err));
    return cdmpp_model_load(path, &model[k], err);
}

static int set_up(void **state) {
    static const char *const trees[] = {"model.members=[rows,program,sums]", "train.rounds=30"};
    static const char *const tuner[] = {"train.rounds=30", "model.folds=2", "model.tuner=true",
                                        "fit.epochs=2", "net.device=false"};
    static const char *const tsf[] = {"model.members=[transformer,mlp]", "fit.epochs=1",
                                      "net.device=false"};
    static const char *const target[] = {MADE_TARGET};
    cdmpp_err err = {0};
    char h5[256];
    (void)state;
    if (made_setup(&api)) return 1;
    made_programs_init(&all, cdmpp_tasks_key(api.tasks, 0), MADE_N);
    tie_buffers();
    for (int k = 0; k < MADE_N_MODEL; k++) model[k] = api.model[k];
    cdmpp_status st = made_extract(&api.dir, cdmpp_tasks_key(api.tasks, 0), target, 1, h5, &err);
    if (!st) st = learn(BY_TREES, h5, trees, 2, &err);
    if (!st) st = learn(BY_TUNER, h5, tuner, 5, &err);
    if (!st) st = learn(BY_TSF_ROWS, h5, tsf, 3, &err);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int tear_down(void **state) {
    (void)state;
    for (int k = MADE_N_MODEL; k < N_MODEL; k++) cdmpp_model_free(model[k]);
    made_programs_free(&all);
    made_teardown(&api);
    return 0;
}

static void score(const cdmpp_model *m, const char *profile, cdmpp_form form, made_out *o) {
    const cdmpp_options opt = {.size = sizeof opt, .profile = profile, .nthreads = 2};
    const cdmpp_batch b = made_batch_of(&api, &all, form, 0, all.n);
    const cdmpp_result r = made_result(o);
    cdmpp_context *c;
    cdmpp_err err = {0};
    assert_ok(cdmpp_context_new(m, api.tasks, &opt, &c, &err));
    assert_ok(cdmpp_score(c, &b, &r, &err));
    cdmpp_context_free(c);
}

/* All forms of rows: as floats, as doubles, packed. */
static void shuffle(uint64_t seed) {
    for (size_t i = 0; i < all.n; i++)
        shuffle_rows(all.rows + all.row_ptr[i] * CD_N_COL,
                     (size_t)(all.row_ptr[i + 1] - all.row_ptr[i]), seed * 1000 + i);
    for (size_t k = 0; k < (size_t)all.row_ptr[all.n] * CD_N_COL; k++)
        all.wide[k] = (double)all.rows[k];
    all.packed.n = 0;
    made_pack(&all);
}

static void same_bits(const cdmpp_model *m, const char *profile) {
    score(m, profile, CDMPP_ROWS_F32, &out);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        shuffle(round);
        for (cdmpp_form f = CDMPP_ROWS_F32; f <= CDMPP_PACKED; f++) {
            score(m, profile, f, &other);
            for (size_t i = 0; i < all.n; i++) assert_int_equal(other.status[i], CDMPP_OK);
            assert_memory_equal(out.seconds, other.seconds, all.n * sizeof *out.seconds);
            assert_memory_equal(out.score, other.score, all.n * sizeof *out.score);
            assert_memory_equal(out.low, other.low, all.n * sizeof *out.low);
            assert_memory_equal(out.high, other.high, all.n * sizeof *out.high);
            assert_memory_equal(out.rel_std, other.rel_std, all.n * sizeof *out.rel_std);
            assert_memory_equal(out.flags, other.flags, all.n * sizeof *out.flags);
        }
    }
}

TEST(any_order_gives_the_same_bits) {
    same_bits(model[MADE_TREES], "full");
    same_bits(model[MADE_MLP], "full");
    same_bits(model[BY_TREES], "full");
    same_bits(model[BY_TSF_ROWS], "full");
}

TEST(in_every_profile) {
    same_bits(model[BY_TUNER], "full");
    same_bits(model[BY_TUNER], "tuner");
    same_bits(model[BY_TUNER], "two-stage");
}

/* What was measured corrects by the rows, too. */
TEST(with_measurements) {
    cdmpp_err err = {0};
    for (uint64_t round = 0; round < 3; round++) {
        cdmpp_observer *o;
        cdmpp_context *c;
        double measured[MADE_N];
        if (round) shuffle(round);
        assert_ok(cdmpp_observer_new(model[MADE_TREES], &o, &err));
        const cdmpp_options opt = {.size = sizeof opt, .observer = o, .device = "zen5-avx512"};
        const cdmpp_batch b = made_batch_of(&api, &all, CDMPP_ROWS_F32, 0, all.n);
        const cdmpp_result r = made_result(round ? &other : &out);
        for (size_t i = 0; i < all.n; i++)
            measured[i] = i % 5 ? (double)NAN : 2 * made_latency((int)i);
        assert_ok(cdmpp_context_new(model[MADE_TREES], api.tasks, &opt, &c, &err));
        assert_ok(cdmpp_observe(c, &b, measured, NULL, &err));
        assert_true(cdmpp_observer_count(o) > 5);
        assert_ok(cdmpp_score(c, &b, &r, &err));
        if (round) assert_memory_equal(out.seconds, other.seconds, all.n * sizeof *out.seconds);
        cdmpp_context_free(c);
        cdmpp_observer_free(o);
    }
}

/* input_version 1: rows as they come. The same trees then answer otherwise for another order of the
 * buffers. */
TEST(earlier_models_keep_their_order) {
    cdmpp_err err = {0};
    cdmpp_model *old = NULL;
    char *p, hex[65];
    size_t n, differ = 0;
    cd_sha256 h;
    assert_ok(cd_file_read(made_path(&api, MADE_TREES), 0, &p, &n, &err));
    char *at = memmem(p, n, "\"input_version\":2", 17);
    assert_non_null(at);
    at[16] = '1';
    cd_sha256_init(&h);
    cd_sha256_add(&h, p, n - 64);
    cd_sha256_hex(&h, hex);
    memcpy(p + n - 64, hex, 64);
    assert_ok(cdmpp_model_read(p, n, &old, &err));
    score(old, "full", CDMPP_ROWS_F32, &out);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        shuffle(round);
        score(old, "full", CDMPP_ROWS_F32, &other);
        for (size_t i = 0; i < all.n; i++) differ += out.seconds[i] != other.seconds[i];
    }
    assert_true(differ > 0);
    cdmpp_model_free(old);
    cd_mem_free(p);
}

TESTS(set_up, tear_down, any_order_gives_the_same_bits, in_every_profile, with_measurements,
      earlier_models_keep_their_order)
