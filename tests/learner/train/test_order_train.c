/* Members for the order of a task's programs: they give order_s and nothing else, live in the same
 * file, and what is wrong with them is said. */
#include "learner/train/train_internal.h"
#include "check.h"
#include "fault.h"
#include "made_set.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/io/io.h"
#include "learner/export/export.h"
#include "learner/model/here.h"

static char dir[] = "/tmp/cdmpp-order-XXXXXX", h5[64], set_files[96], folder[64];
static cd_learner_result with, without;
static cdmpp_err err;

static cdmpp_status learn(const char *order, int jobs, const char *in, const cd_model *start,
                          cd_learner_result *l) {
    const char *const set[] = {set_files, "model.folds=2", "model.members=[rows]",
                               "train.rounds=20", order};
    cd_config c;
    cd_threads *pool = NULL;
    cdmpp_status st = cd_config_init(&c, &err);
    for (size_t i = 0; !st && i < sizeof set / sizeof *set; i++)
        st = cd_config_set(&c, set[i], &err);
    if (!st) st = cd_threads_new(jobs, &pool, &err);
    if (!st)
        st = cd_learner_run(
            &c, NULL, &(cd_learner_options){.pool = pool, .folder = in, .start = start}, l, &err);
    cd_threads_free(pool);
    cd_config_free(&c);
    return st;
}

static int set_up(void **s) {
    (void)s;
    if (!mkdtemp(dir)) return 1;
    snprintf(h5, sizeof h5, "%s/d.h5", dir);
    snprintf(folder, sizeof folder, "%s/kept", dir);
    snprintf(set_files, sizeof set_files, "data.files=%s", h5);
    made_set_write(h5);
    cdmpp_status st = learn("model.order=[rows, sums]", 2, NULL, NULL, &with);
    if (!st) st = learn("model.order=[]", 1, NULL, NULL, &without);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    return st != CDMPP_OK;
}

static int tear_down(void **s) {
    char command[96];
    (void)s;
    cd_learner_result_free(&with);
    cd_learner_result_free(&without);
    snprintf(command, sizeof command, "rm -r %s", dir);
    return system(command);
}

enum { SOME = 40 };
/* What a model says of SOME programs of a task that is in no set. */
static void ask(const cd_model *m, bool sketch, cd_model_prediction *p) {
    static float row[SOME * 4 * CD_N_COL];
    static int64_t ptr[SOME + 1];
    static uint32_t device[SOME];
    static double flop[SOME];
    const cd_program_view v = {
        .n = SOME, .row = row, .row_ptr = ptr, .device = device, .flop = flop};
    cd_model_scratch *sc;
    for (int i = 0; i < SOME; i++) {
        make_rows(N + i, row + i * 4 * CD_N_COL, 4);
        ptr[i + 1] = 4 * (i + 1);
        flop[i] = -1;
    }
    assert_ok(cd_model_scratch_new(&sc, &err));
    assert_ok((sketch ? cd_model_sketch : cd_model_predict)(m, sc, &v, NULL, SOME, p, &err));
    cd_model_scratch_free(sc);
}

TEST(seconds_stay_as_they_are) {
    cd_model_prediction a[SOME], b[SOME];
    size_t moved = 0;
    ask(with.model, false, a);
    ask(without.model, false, b);
    for (int i = 0; i < SOME; i++) {
        assert_true(b[i].order_s == b[i].median_s);
        assert_true(a[i].order_s > 0 && isfinite(a[i].order_s));
        moved += a[i].order_s != a[i].median_s;
        a[i].order_s = b[i].order_s;
    }
    assert_memory_equal(a, b, sizeof a);
    assert_true(moved > SOME / 2);
    assert_null(cd_model_order(without.model));
    assert_int_equal(cd_model_n_kind(cd_model_order(with.model)), 2);
    assert_int_equal(cd_model_n_member(cd_model_order(with.model)), 4);
    assert_int_equal(cd_model_n_kind(with.model), 1);
}

/* Validation is out of fold; the share was chosen by it, so with a share of 0 among the choices the
 * order is never worse there. */
TEST(figures_are_of_the_order) {
    assert_true(with.metrics[CD_SPLIT_PART_TEST].mape == without.metrics[CD_SPLIT_PART_TEST].mape);
    assert_true(with.metrics[CD_SPLIT_PART_VALID].mape ==
                without.metrics[CD_SPLIT_PART_VALID].mape);
    assert_true(with.metrics[CD_SPLIT_PART_VALID].spearman >=
                without.metrics[CD_SPLIT_PART_VALID].spearman);
    assert_true(with.metrics[CD_SPLIT_PART_TEST].spearman !=
                without.metrics[CD_SPLIT_PART_TEST].spearman);
    assert_true(with.metrics[CD_SPLIT_PART_TEST].spearman > 0.5);
    assert_true(with.model->order_share > 0 && with.model->order_share <= 1);
}

TEST(a_file_answers_the_same) {
    cd_model_prediction a[SOME], b[SOME];
    cd_model *m;
    assert_int_equal(with.file.p[8], CD_CONTAINER_MODEL_ORDER);
    assert_int_equal(without.file.p[8], CD_CONTAINER_MODEL_VERSION);
    assert_ok(cd_model_from_bytes(with.file.p, with.file.n, &m, &err));
    for (int sketch = 0; sketch < 2; sketch++) {
        ask(with.model, sketch, a);
        ask(m, sketch, b);
        assert_memory_equal(a, b, sizeof a);
    }
    cd_model_free(m);
}

TEST(the_same_for_any_threads_and_after_a_stop) {
    cd_learner_result l;
    for (int k = 0; k < 3; k++) { /* twice with a folder: what is kept there is read */
        assert_ok(learn("model.order=[rows, sums]", 1 + k, k ? folder : NULL, NULL, &l));
        assert_int_equal(l.file.n, with.file.n);
        assert_memory_equal(l.file.p, with.file.p, l.file.n);
        cd_learner_result_free(&l);
    }
    char kept[96];
    snprintf(kept, sizeof kept, "%s/order/sums-1.member", folder);
    assert_int_equal(access(kept, F_OK), 0);
    /* from another model: trees are trained anew */
    assert_ok(learn("model.order=[rows]", 1, NULL, with.model, &l));
    assert_int_equal(cd_model_n_kind(cd_model_order(l.model)), 1);
    cd_learner_result_free(&l);
}

/* The file with `from` replaced by `to` (same length) behind key "order", and a right checksum. */
static cdmpp_status patched(const char *from, const char *to, cd_model **m) {
    cd_buf b = {0};
    char hex[65];
    cd_sha256 h;
    cd_buf_put(&b, with.file.p, with.file.n);
    char *key = memmem(b.p, b.n, "\"order\":{\"at\"", 13);
    assert_non_null(key);
    char *at = memmem(key, b.n - (size_t)(key - b.p), from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    cd_sha256_init(&h);
    cd_sha256_add(&h, b.p, b.n - 64);
    cd_sha256_hex(&h, hex);
    memcpy(b.p + b.n - 64, hex, 64);
    err = (cdmpp_err){0};
    const cdmpp_status st = cd_model_from_bytes(b.p, b.n, m, &err);
    cd_buf_free(&b);
    return st;
}

TEST(a_wrong_header_is_refused_with_its_key) {
    static const struct {
        const char *from, *to, *key;
    } t[] = {
        {"\"at\":", "\"ax\":", "order.at"},
        {"\"share\":", "\"sharE\":", "order.share"},
        {"\"share\":", "\"share\":9", "order.share"},
        {"\"kinds\":[\"rows\"", "\"kinds\":[\"rowz\"", "order.kinds"},
        {"\"kinds\":[\"rows\"", "\"kinds\":[\"sums\"", "order.kinds"},
        {"\"members\":[{\"kind\":\"sums\"", "\"members\":[{\"kind\":\"rows\"", "order.members[0]"}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_model *m = NULL;
        const cdmpp_status st = patched(t[i].from, t[i].to, &m);
        if (!st) cd_model_free(m);
        assert_true(st != CDMPP_OK);
        if (strncmp(err.key, t[i].key, strlen(t[i].key)) != 0)
            fail_msg("%s: key %s, expected %s: %s", t[i].to, err.key, t[i].key, err.msg);
    }
}

/* A correction for a machine leaves the members where they are, and moves the order as it moves the
 * seconds. */
TEST(a_corrected_model_keeps_the_order) {
    cd_here h = {.stands = 0,
                 .name = "mine",
                 .cpu = "A Processor",
                 .programs = 2,
                 .widen = 1,
                 .most = (double)INFINITY};
    const size_t width = cd_here_width(with.model);
    float *x = cd_mem_zalloc(2, width * sizeof *x);
    const double off[] = {1, 1};
    cd_buf b = {0};
    cd_model *m;
    cd_model_prediction was[SOME], is[SOME], p;
    assert_non_null(x);
    assert_ok(cd_here_fit(x, off, 2, width, 1, &h.trees, &err));
    assert_ok(cd_here_add(with.file.p, with.file.n, &h, "", &b, &err));
    assert_int_equal(b.p[8], CD_CONTAINER_MODEL_ORDER);
    assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
    assert_non_null(cd_model_here(m));
    ask(with.model, false, was);
    ask(m, false, is);
    assert_memory_equal(was, is, sizeof was);
    p = is[0];
    cd_here_move(1, 1, (double)INFINITY, 0, &p);
    assert_close(p.order_s / is[0].order_s, p.median_s / is[0].median_s, 1e-12, 0);
    cd_model_free(m);
    cd_buf_free(&b);
    cd_xgb_free(h.trees.gbt);
    cd_mem_free(x);
}

/* Nothing measured, nothing changed; a measured program has its time in the order too. */
TEST(measurements_take_over_the_order) {
    cd_online_adapt *a;
    cd_model_prediction p[SOME], q;
    float trait[CD_N_TRAIT] = {0};
    ask(with.model, false, p);
    assert_ok(cd_online_adapt_new(&a, &err));
    for (int k = 0; k < 50; k++) {
        const cd_online_adapt_item item =
            cd_online_adapt_item_of(&p[0], false, trait, 3 * p[0].median_s);
        assert_ok(cd_online_adapt_add(a, "fast", false, "t", &item, &err));
    }
    assert_ok(cd_online_adapt_fit(a, &err));
    q = p[0];
    assert_true(cd_online_adapt_apply(a, "fast", "t", trait, &q));
    assert_true(q.median_s > 1.5 * p[0].median_s && q.order_s > p[0].order_s);
    assert_true(fabs(log(q.order_s / q.median_s)) <= fabs(log(p[0].order_s / p[0].median_s)));
    q = p[0];
    assert_false(cd_online_adapt_apply(a, "slow", "t", trait, &q));
    assert_true(q.order_s == p[0].order_s);
    cd_online_adapt_free(a);
}

TEST(exports_do_not_drop_it) {
    cd_buf b = {0};
    assert_status(cd_export_model(with.model, CD_EXPORT_ONNX, -1, &b, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "model.order"));
    assert_ok(cd_export_model(with.model, CD_EXPORT_XGBOOST, 0, &b, &err));
    cd_buf_free(&b);
}

TEST(unknown_kinds_are_named) {
    cd_learner_result l;
    assert_status(learn("model.order=[rowz]", 1, NULL, NULL, &l), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "model.order[0]");
    assert_status(learn("model.order=[tlp]", 1, NULL, NULL, &l), CDMPP_ENODATA);
}

TEST(memory_may_run_out) {
    static float row[CD_N_COL];
    const int64_t ptr[] = {0, 1};
    const uint32_t device[] = {0};
    const double flop[] = {-1};
    const cd_program_view v = {.n = 1, .row = row, .row_ptr = ptr, .device = device, .flop = flop};
    FAULT_SWEEP(f, 5) {
        cd_model *m = NULL;
        f.st = cd_model_from_bytes(with.file.p, with.file.n, &m, &f.err);
        if (!f.st) cd_model_free(m);
    }
    FAULT_SWEEP(f, 5) {
        cd_model_scratch *sc = NULL;
        cd_model_prediction p;
        f.st = cd_model_scratch_new(&sc, &f.err);
        if (!f.st) f.st = cd_model_predict(with.model, sc, &v, NULL, 1, &p, &f.err);
        if (!f.st) f.st = cd_model_sketch(with.model, sc, &v, NULL, 1, &p, &f.err);
        cd_model_scratch_free(sc);
    }
    FAULT_SWEEP(f, 5) { /* training, of many allocations a few */
        cd_learner_result l = {0};
        f.step = 23;
        f.st = learn("model.order=[sums]", 1, NULL, NULL, &l);
        f.err = err;
        if (!f.st) cd_learner_result_free(&l);
    }
}

TESTS(set_up, tear_down, seconds_stay_as_they_are, figures_are_of_the_order,
      a_file_answers_the_same, the_same_for_any_threads_and_after_a_stop,
      a_wrong_header_is_refused_with_its_key, a_corrected_model_keeps_the_order,
      measurements_take_over_the_order, exports_do_not_drop_it, unknown_kinds_are_named,
      memory_may_run_out)
