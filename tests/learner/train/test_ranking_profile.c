/* Profile tuner: it learns, and what is said of it out of fold was said by networks that never saw
 * the fold. */
#include "learner/train/train_internal.h"
#include "check.h"
#include "made_set.h"

#include <stdlib.h>
#include <unistd.h>

#include "features/device/device.h"
#include "learner/report/report.h"

static char dir[] = "/tmp/cdmpp-tuner-XXXXXX", h5[64], set_files[96];
static cd_config c;
static cd_training_set t;
static cd_model m; /* the whole model */
static double *kind_log_s;
static cd_threads *pool;
static cd_model *k; /* the tuner */
static double *a;   /* its answers out of fold */

/* ln seconds out of fold; the tuner is taken off the model again. */
static double *train(cd_threads *with, cd_model **tuner) {
    cdmpp_err err = {0};
    double *log_s;
    assert_ok(cd_ranking_profile_train(&t, kind_log_s, &(cd_ensemble_run){.pool = with}, &m, &log_s,
                                       &err));
    *tuner = m.tuner;
    m.tuner = NULL;
    return log_s;
}

static int set_up(void **s) {
    const char *const set[] = {set_files,         "model.folds=2", "model.members=[rows]",
                               "train.rounds=20", "fit.epochs=5",  "net.device=false"};
    cdmpp_err err = {0};
    (void)s;
    if (!mkdtemp(dir)) return 1;
    snprintf(h5, sizeof h5, "%s/d.h5", dir);
    snprintf(set_files, sizeof set_files, "data.files=%s", h5);
    made_set_write(h5);
    cdmpp_status st = cd_config_init(&c, &err);
    for (size_t i = 0; !st && i < sizeof set / sizeof *set; i++)
        st = cd_config_set(&c, set[i], &err);
    if (!st) st = cd_threads_new(2, &pool, &err);
    if (!st) st = cd_training_set_make(&t, &c, NULL, pool, &err);
    m = (cd_model){.log_min = -40,
                   .log_max = 10,
                   .n_device = t.n_device,
                   .w_device = CD_N_DEVICE_COL,
                   .device_vector = t.device_vector};
    if (!st) st = cd_ensemble_train(&t, &(cd_ensemble_run){.pool = pool}, &m, &kind_log_s, &err);
    if (st) print_error("%s: %s\n", err.key, err.msg);
    else a = train(pool, &k);
    return st != CDMPP_OK;
}

static int tear_down(void **s) {
    (void)s;
    cd_mem_free(a);
    cd_model_free(k);
    for (size_t i = 0; i < m.n_member; i++) cd_member_free(&m.member[i]);
    cd_mem_free(m.member);
    cd_calibration_free(m.calib);
    cd_mem_free(kind_log_s);
    cd_training_set_free(&t);
    cd_threads_free(pool);
    cd_config_free(&c);
    unlink(h5);
    return rmdir(dir);
}

static double spearman(const double *log_s) {
    cd_metric q;
    cdmpp_err err = {0};
    static double y[N], p[N];
    static uint32_t group[N];
    for (size_t i = 0; i < t.n_oof; i++) {
        y[i] = t.d->latency_s[t.oof[i]];
        p[i] = exp(log_s[i]);
        group[i] = t.group[t.oof[i]];
    }
    assert_ok(cd_metric_compute(y, p, group, NULL, t.n_oof, &q, &err));
    return q.spearman;
}

static void one_network_that_saw_all_folds(void **s) {
    (void)s;
    cd_model *again;
    double *b = train(NULL, &again);
    assert_int_equal(k->n_kind, 1);
    assert_int_equal(k->n_member, 1);
    assert_int_equal(k->member[0].fold, -1);
    if (!(spearman(a) > 0.3)) fail_msg("rank correlation out of fold %g", spearman(a));
    assert_memory_equal(a, b, t.n_oof * sizeof *a); /* for any number of threads */
    cd_mem_free(b);
    cd_model_free(again);
}

/* Other measurements in fold 1: what is said of fold 1 stays as it is to the bit, what is said of
 * the others does not. */
static void a_fold_does_not_judge_itself(void **s) {
    (void)s;
    cd_model *other;
    double *latency_s = t.own->latency_s;
    for (size_t i = 0; i < t.d->n; i++)
        if (t.fold[i] == 1) latency_s[i] *= i % 2 ? 30 : 0.03;
    double *b = train(pool, &other);
    for (size_t i = 0; i < t.d->n; i++)
        if (t.fold[i] == 1) latency_s[i] /= i % 2 ? 30 : 0.03;
    size_t same = 0, differ = 0;
    for (size_t i = 0; i < t.n_oof; i++) {
        const bool equal = memcmp(&a[i], &b[i], sizeof *a) == 0;
        if (t.fold[t.oof[i]] == 1) assert_true(equal), same++;
        else differ += !equal;
    }
    assert_true(same > 0 && differ > 0);
    cd_mem_free(b);
    cd_model_free(other);
}

static void bytes(const cd_model *of, cd_buf *out) {
    cd_buf json = {0};
    cdmpp_err err = {0};
    assert_ok(cd_member_save(&of->member[0], &json, out, &err));
    cd_buf_free(&json);
}

/* Answers out of fold know of all folds but one: the tuner learns from them, the networks that
 * check it do not. */
static void answers_of_other_folds_stay_out(void **s) {
    (void)s;
    cd_model *other;
    cd_buf x = {0}, y = {0};
    for (size_t i = 0; i < t.n_oof; i++) kind_log_s[i] += i % 2 ? 1 : -1;
    double *b = train(pool, &other);
    for (size_t i = 0; i < t.n_oof; i++) kind_log_s[i] -= i % 2 ? 1 : -1;
    assert_memory_equal(a, b, t.n_oof * sizeof *a);
    bytes(k, &x);
    bytes(other, &y);
    assert_true(x.n != y.n || memcmp(x.p, y.p, x.n));
    cd_buf_free(&x);
    cd_buf_free(&y);
    cd_mem_free(b);
    cd_model_free(other);
}

TESTS(set_up, tear_down, one_network_that_saw_all_folds, a_fold_does_not_judge_itself,
      answers_of_other_folds_stay_out)
