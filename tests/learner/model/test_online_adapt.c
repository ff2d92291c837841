/* Measured programs: the laws of the correction, a slow reference of its formula, and the file. */
#include "learner/model/model.h"
#include "check.h"
#include "fault.h"
#include "odd.h"

#include <stdio.h>
#include <string.h>

#include "base/core/core.h"

static cd_model_prediction pred_of(double median_log, double sigma) {
    return (cd_model_prediction){.latency_s = exp(median_log - 0.5 * sigma * sigma),
                                 .median_s = exp(median_log),
                                 .low_s = exp(median_log - 1.6 * sigma),
                                 .high_s = exp(median_log + 1.7 * sigma),
                                 .rel_std = sigma,
                                 .like_std = sigma};
}

/* Program i of a made-up task whose measurements are `shift` above the model, give or take
 * `noise`. */
static cd_online_adapt_item made_item(uint64_t i, double shift, double noise) {
    cd_online_adapt_item it = {.median_log = -8 + 2 * cd_rng_unit(1, i), .sigma = 0.4};
    it.measured_log = it.median_log + shift + noise * (2 * cd_rng_unit(2, i) - 1);
    for (int k = 0; k < CD_N_TRAIT; k++)
        it.trait[k] = (float)(20 * cd_rng_unit(3 + (uint64_t)k, i));
    return it;
}

static void add(cd_online_adapt *a, const char *device, const char *task,
                const cd_online_adapt_item *it) {
    cdmpp_err err = {0};
    assert_ok(cd_online_adapt_add(a, device, false, task, it, &err));
}

static cd_online_adapt *made(const char *task, int n, double shift, double noise) {
    cd_online_adapt *a = NULL;
    cdmpp_err err = {0};
    assert_ok(cd_online_adapt_new(&a, &err));
    for (int i = 0; i < n; i++) {
        const cd_online_adapt_item it = made_item((uint64_t)i, shift, noise);
        add(a, "d", task, &it);
    }
    assert_ok(cd_online_adapt_fit(a, &err));
    return a;
}

static double corrected(const cd_online_adapt *a, const char *device, const char *task,
                        const cd_online_adapt_item *it) {
    cd_model_prediction p = pred_of(it->median_log, it->sigma);
    cd_online_adapt_apply(a, device, task, it->trait, &p);
    return log(p.median_s) - it->median_log;
}

TEST(nothing_measured_changes_nothing) {
    cd_online_adapt *a = made("t", 0, 0, 0);
    const cd_online_adapt_item it = made_item(500, 0, 0);
    cd_model_prediction p = pred_of(-7, 0.3), q = p;
    assert_false(cd_online_adapt_apply(a, "d", "t", it.trait, &p));
    assert_memory_equal(&p, &q, sizeof p);
    assert_int_equal(cd_online_adapt_count(a), 0);
    cd_online_adapt_free(a);
}

/* A task that is 0.5 slower than the model says: more measurements come closer, never beyond. */
TEST(a_shift_is_learned) {
    double last = 0;
    for (int n = 1; n <= 64; n *= 4) {
        cd_online_adapt *a = made("t", n, 0.5, 0.1);
        double mean = 0;
        for (uint64_t i = 500; i < 520; i++) {
            const cd_online_adapt_item it = made_item(i, 0, 0);
            mean += corrected(a, "d", "t", &it) / 20;
        }
        assert_true(mean > last && mean < 0.55);
        last = mean;
        cd_online_adapt_free(a);
    }
    assert_true(last > 0.35);
}

/* Other devices: nothing. Other tasks of the device: a little, with more tasks more. */
TEST(what_is_shared) {
    cdmpp_err err = {0};
    cd_online_adapt *a = made("t0", 16, 0.5, 0.1);
    const cd_online_adapt_item it = made_item(500, 0, 0);
    assert_true(corrected(a, "other", "t0", &it) == 0);
    const double one = corrected(a, "d", "new", &it);
    assert_true(one > 0 && one < 0.25);
    for (int t = 1; t < 12; t++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", t);
        for (int i = 0; i < 4; i++) {
            const cd_online_adapt_item x = made_item((uint64_t)(100 * t + i), 0.5, 0.1);
            add(a, "d", name, &x);
        }
    }
    assert_ok(cd_online_adapt_fit(a, &err));
    assert_true(corrected(a, "d", "new", &it) > 1.5 * one);
    cd_online_adapt_free(a);
    /* a device that the model does not know: one task says more */
    assert_ok(cd_online_adapt_new(&a, &err));
    for (int i = 0; i < 16; i++) {
        const cd_online_adapt_item x = made_item((uint64_t)i, 0.5, 0.1);
        assert_ok(cd_online_adapt_add(a, "d", true, "t0", &x, &err));
    }
    assert_ok(cd_online_adapt_fit(a, &err));
    assert_true(corrected(a, "d", "new", &it) > 0.25 && corrected(a, "d", "new", &it) < 0.5);
    cd_online_adapt_free(a);
}

/* Ten programs of ten tasks on an unknown device that is `shift` slower than the model says, give
 * or take `noise`: what an unmeasured program gets, and its *rel_std. */
static double level_of(double shift, double noise, double *rel_std) {
    cdmpp_err err = {0};
    cd_online_adapt *a = NULL;
    const cd_online_adapt_item it = made_item(500, 0, 0);
    assert_ok(cd_online_adapt_new(&a, &err));
    for (int t = 0; t < 10; t++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", t);
        const cd_online_adapt_item x = made_item((uint64_t)t, shift, noise);
        assert_ok(cd_online_adapt_add(a, "far", true, name, &x, &err));
    }
    assert_ok(cd_online_adapt_fit(a, &err));
    cd_model_prediction p = pred_of(it.median_log, it.sigma);
    assert_true(cd_online_adapt_apply(a, "far", "new", it.trait, &p));
    *rel_std = p.rel_std;
    cd_online_adapt_free(a);
    return log(p.median_s) - it.median_log;
}

/* A level like those of known devices is taken with care, one that is far off nearly whole: the
 * measurements speak clearly. */
TEST(level_of_an_unknown_device) {
    double sure, unsure;
    const double near = level_of(0.2, 0.3, &sure), far = level_of(2, 0.3, &unsure);
    assert_true(near > 0.08 && near < 0.2);
    assert_true(far > 1.8 && far < 2.1);
    assert_close(level_of(-2, 0.3, &unsure), -far, 0.1, 0);
    (void)level_of(0.2, 2.5, &unsure); /* programs are off by more than the model thought */
    assert_true(unsure > 1.3 * sure && unsure > 0.5);
}

TEST(order_does_not_matter) {
    enum { N = 40 };
    cdmpp_err err = {0};
    cd_online_adapt *a = made("t", N, 0.3, 0.5), *b = NULL;
    assert_ok(cd_online_adapt_new(&b, &err));
    for (int i = 0; i < N; i++) {
        const cd_online_adapt_item it = made_item((uint64_t)(i * 17 % N), 0.3, 0.5);
        add(b, "d", "t", &it);
        if (i % 9 == 0) assert_ok(cd_online_adapt_fit(b, &err)); /* nor does when it is fitted */
    }
    assert_ok(cd_online_adapt_fit(b, &err));
    for (uint64_t i = 500; i < 520; i++) {
        const cd_online_adapt_item it = made_item(i, 0, 0);
        assert_close(corrected(a, "d", "t", &it), corrected(b, "d", "t", &it), 1e-9, 1e-12);
    }
    cd_online_adapt_free(a);
    cd_online_adapt_free(b);
}

/* One measurement a thousand times too slow moves others less than an honest one of one sigma
 * twice. */
TEST(outliers_count_less) {
    cdmpp_err err = {0};
    cd_online_adapt *a = made("t", 16, 0.2, 0.1);
    cd_online_adapt_item wild = made_item(77, 7, 0);
    const cd_online_adapt_item it = made_item(500, 0, 0);
    const double before = corrected(a, "d", "t", &it);
    add(a, "d", "t", &wild);
    assert_ok(cd_online_adapt_fit(a, &err));
    assert_true(fabs(corrected(a, "d", "t", &it) - before) < 0.15);
    cd_online_adapt_free(a);
}

/* One program, no robust weights in play: the textbook's formula, with the shift of the device. */
TEST(one_program_by_hand) {
    cdmpp_err err = {0};
    cd_online_adapt *a = NULL;
    cd_online_adapt_item it = made_item(1, 0.1, 0);
    assert_ok(cd_online_adapt_new(&a, &err));
    add(a, "d", "t", &it);
    assert_ok(cd_online_adapt_fit(a, &err));
    const double s2 = 0.16, shift = 0.1 / s2 / (100 + 1 / s2), z = (0.1 - shift) / 0.4;
    /* the same program again */
    assert_close(corrected(a, "d", "t", &it), shift + 0.4 * (0.6 / 1.0) * z, 1e-9, 0);
    for (int k = 0; k < CD_N_TRAIT; k++) it.trait[k] += 4;
    it.median_log += 1; /* d = 2 */
    assert_close(corrected(a, "d", "t", &it), shift + 0.4 * (0.1 + 0.5 * exp(-1)) * z, 1e-6, 0);
    cd_model_prediction p = pred_of(it.median_log, 0.4);
    assert_true(cd_online_adapt_apply(a, "d", "t", it.trait, &p));
    const double agreed = 8.0 / 9; /* around the task's own mean nothing is left */
    assert_close(p.rel_std, 0.4 * sqrt((1 - pow(0.1 + 0.5 * exp(-1), 2)) * agreed), 1e-6, 0);
    assert_true(p.low_s < p.latency_s && p.latency_s < p.median_s && p.median_s < p.high_s);
    cd_online_adapt_free(a);
}

/* A program whose traits are all `at`, and whose error is 0.8 there where others have none. */
static cd_online_adapt_item lopsided(uint64_t i, float at, double shift) {
    cd_online_adapt_item it = made_item(i, shift, 0.05);
    for (int k = 0; k < CD_N_TRAIT; k++) it.trait[k] = at + (float)cd_rng_unit(3 + (uint64_t)k, i);
    it.median_log = -8;
    it.measured_log = it.median_log + shift;
    return it;
}

static cd_online_adapt *stranger(int tasks) {
    cdmpp_err err = {0};
    cd_online_adapt *a = NULL;
    assert_ok(cd_online_adapt_new(&a, &err));
    for (int t = 0; t < tasks; t++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", t);
        const cd_online_adapt_item x = lopsided((uint64_t)t, t % 2 ? 30 : 0, t % 2 ? 0.8 : 0);
        assert_ok(cd_online_adapt_add(a, "new", true, name, &x, &err));
    }
    assert_ok(cd_online_adapt_fit(a, &err));
    return a;
}

/* A device that the model does not know: programs of tasks that nobody measured are off as like
 * ones are. */
TEST(like_programs_of_an_unknown_device) {
    cd_online_adapt *few = stranger(2), *more = stranger(10);
    const cd_online_adapt_item slow = lopsided(900, 30, 0), fast = lopsided(901, 0, 0);
    const double apart2 =
        corrected(few, "new", "unseen", &slow) - corrected(few, "new", "unseen", &fast);
    const double apart10 =
        corrected(more, "new", "unseen", &slow) - corrected(more, "new", "unseen", &fast);
    assert_true(apart2 > 0.05 && apart10 > apart2 && apart10 < 0.8);
    cd_model_prediction p = pred_of(-8, 0.4), q = p;
    cd_online_adapt_apply(few, "new", "unseen", slow.trait, &p);
    cd_online_adapt_apply(more, "new", "unseen", slow.trait, &q);
    assert_true(p.rel_std > q.rel_std); /* what is not known of the device widens the interval */
    cd_online_adapt_free(few);
    cd_online_adapt_free(more);
}

/* The task's own part is fitted beside what the device shares, not on top of it: a measured program
 * comes near its measurement. */
TEST(own_task_on_an_unknown_device) {
    cd_online_adapt *a = stranger(10);
    const cd_online_adapt_item x = lopsided(1, 30, 0.8);
    const double c = corrected(a, "new", "t1", &x);
    assert_true(c > corrected(a, "new", "unseen", &x) && c < 0.85);
    cd_online_adapt_free(a);
}

TEST(certainty_grows) {
    double last = 0.4 * 1.0001;
    const cd_online_adapt_item it = made_item(3, 0, 0);
    for (int n = 4; n <= 64; n *= 4) {
        cd_online_adapt *a = made("t", n, 0.1, 0.2);
        cd_model_prediction p = pred_of(it.median_log, 0.4);
        cd_online_adapt_apply(a, "d", "t", it.trait, &p);
        assert_true(p.rel_std < last);
        last = p.rel_std;
        cd_online_adapt_free(a);
    }
}

TEST(a_model_without_intervals) {
    cd_online_adapt *a = made("t", 8, 0.3, 0.1);
    const cd_online_adapt_item it = made_item(500, 0, 0);
    cd_model_prediction p = {.latency_s = 1e-3,
                             .median_s = 1e-3,
                             .low_s = (double)NAN,
                             .high_s = (double)NAN,
                             .rel_std = (double)NAN};
    assert_true(cd_online_adapt_apply(a, "d", "t", it.trait, &p));
    assert_true(p.latency_s > 1e-3 && isnan(p.low_s) && isnan(p.high_s) && isnan(p.rel_std));
    cd_online_adapt_free(a);
}

/* A program without an interval learns as one that is as sure as those that are like the
 * training. */
TEST(an_unlike_program_without_an_interval) {
    cd_online_adapt *a = made("t", 8, 0.3, 0.1);
    const cd_online_adapt_item it = made_item(500, 0, 0);
    cd_model_prediction p = {.latency_s = 1e-3,
                             .median_s = 1e-3,
                             .order_s = 1e-3,
                             .low_s = 5e-4,
                             .high_s = 2e-3,
                             .rel_std = 0.4,
                             .like_std = 0.4};
    cd_model_prediction q = p;
    q.low_s = q.high_s = q.rel_std = (double)NAN;
    assert_close(cd_model_expected_error(&q), cd_model_expected_error(&p), 0, 0);
    assert_true(cd_online_adapt_apply(a, "d", "t", it.trait, &p) &&
                cd_online_adapt_apply(a, "d", "t", it.trait, &q));
    assert_true(q.median_s == p.median_s && q.latency_s == p.latency_s && q.order_s == p.order_s);
    assert_true(isnan(q.low_s) && isnan(q.high_s) && isnan(q.rel_std));
    q.like_std = (double)NAN; /* of a model that knows no error at all */
    assert_true(cd_model_expected_error(&q) == 0);
    cd_online_adapt_free(a);
}

/* The oldest are forgotten; what is written is read back to the same bits. */
TEST(file_and_limit) {
    cdmpp_err err = {0};
    cd_buf b = {0}, c = {0};
    cd_online_adapt *a = made("t \"quoted\"", CD_ONLINE_ADAPT_MAX, -0.9, 0.1), *r = NULL;
    for (uint64_t i = 1000; i < 1000 + CD_ONLINE_ADAPT_MAX + 5; i++) {
        const cd_online_adapt_item it = made_item(i, 0.5, 0.1);
        add(a, "d", "t \"quoted\"", &it);
    }
    assert_ok(cd_online_adapt_fit(a, &err));
    assert_int_equal(cd_online_adapt_count(a), CD_ONLINE_ADAPT_MAX);
    cd_online_adapt_write(a, "abc", &b);
    assert_ok(cd_online_adapt_read(b.p, b.n, "abc", &r, &err));
    for (uint64_t i = 500; i < 520; i++) {
        const cd_online_adapt_item it = made_item(i, 0, 0);
        const double x = corrected(a, "d", "t \"quoted\"", &it);
        assert_true(x > 0.3);
        assert_close(x, corrected(r, "d", "t \"quoted\"", &it), 1e-9, 0);
    }
    cd_online_adapt_write(r, "abc", &c);
    assert_string_equal(b.p, c.p);
    cd_online_adapt_free(r);
    assert_status(cd_online_adapt_read(b.p, b.n, "abd", &r, &err), CDMPP_EMODEL);
    for (size_t n = 0; n + 2 < b.n; n += 97)
        assert_int_not_equal(cd_online_adapt_read(b.p, n, "abc", &r, &err), CDMPP_OK);
    cd_online_adapt_free(a);
    cd_buf_free(&b);
    cd_buf_free(&c);
}

TEST(bad_files) {
#define HEAD                                                                                       \
    "{\"schema_version\":1,\"model\":\"m\",\"devices\":[{\"name\":\"d\",\"unknown\":false,"        \
    "\"tasks\":[{\"key\":\"k\",\"items\":["
#define TAIL "]}]}]}"
    static const struct {
        const char *text;
        cdmpp_status st;
    } bad[] = {{"{}", CDMPP_ESCHEMA},
               {"{\"schema_version\":9,\"model\":\"m\",\"devices\":[]}", CDMPP_EUNSUPPORTED},
               {HEAD "[1,2]" TAIL, CDMPP_ESCHEMA},
               {HEAD "[1,0,1,1,1,1,1,1,1,1,1,1,1,1,1,1]" TAIL, CDMPP_ERANGE},
               {HEAD "[1,1,1e9,1,1,1,1,1,1,1,1,1,1,1,1,1]" TAIL, CDMPP_ERANGE},
               {HEAD "7" TAIL, CDMPP_ESCHEMA}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cd_online_adapt *a;
        cdmpp_err err = {0};
        assert_status(cd_online_adapt_read(bad[i].text, strlen(bad[i].text), "m", &a, &err),
                      bad[i].st);
    }
}

static cdmpp_status read_measured(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    cd_online_adapt *a = NULL;
    (void)ctx;
    const cdmpp_status st = cd_online_adapt_read(text, n, "m", &a, err);
    cd_online_adapt_free(a);
    return st;
}

TEST(odd_files) {
    odd_all(HEAD "[1,0.5,1,1,1,1,1,1,1,1,1,1,1,1,1,1]" TAIL, read_measured, NULL);
    static const struct {
        const char *text, *key, *msg;
    } bad[] = {
        {"{\"schema_version\":\"1\",\"model\":\"m\",\"devices\":[]}", "schema_version",
         "expected an integer, found string"},
        {"{\"schema_version\":1,\"devices\":[]}", "model", "expected this key"},
        {"{\"schema_version\":1,\"model\":7,\"devices\":[]}", "model",
         "expected a string, found integer"},
        {"{\"schema_version\":1,\"model\":\"m\"}", "devices", "expected this key"},
        {"{\"schema_version\":1,\"model\":\"m\",\"devices\":7}", "devices",
         "expected an array, found integer"},
        {"{\"schema_version\":1,\"model\":\"m\",\"devices\":[{\"unknown\":false,\"tasks\":[]}]}",
         "devices[0].name", "expected this key"},
        {"{\"schema_version\":1,\"model\":\"m\",\"devices\":[{\"name\":\"d\",\"tasks\":[]}]}",
         "devices[0].unknown", "expected this key"},
        {"{\"schema_version\":1,\"model\":\"m\",\"devices\":[{\"name\":\"d\",\"unknown\":0,"
         "\"tasks\":[]}]}",
         "devices[0].unknown", "expected true or false"},
        {"{\"schema_version\":1,\"model\":\"m\",\"devices\":[{\"name\":\"d\",\"unknown\":true}]}",
         "devices[0].tasks", "expected this key"},
        {"{\"schema_version\":1,\"model\":\"m\",\"devices\":[{\"name\":\"d\",\"unknown\":true,"
         "\"tasks\":[{\"key\":\"k\"}]}]}",
         "devices[0].tasks[0].items", "expected this key"},
        {HEAD "[1,\"0.5\",1,1,1,1,1,1,1,1,1,1,1,1,1,1]" TAIL, "devices[0].tasks[0].items[0][1]",
         "expected a number, found string"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cdmpp_err err = {0};
        if (!read_measured(NULL, bad[i].text, strlen(bad[i].text), &err) ||
            strcmp(err.key, bad[i].key) || strcmp(err.msg, bad[i].msg))
            fail_msg("%zu: %s: %s", i, err.key, err.msg);
    }
}

TEST(failing_at_every_allocation) {
    cd_buf b = {0};
    cd_online_adapt *a = made("t", 20, 0.1, 0.1);
    cd_online_adapt_write(a, "m", &b);
    cd_online_adapt_free(a);
    FAULT_SWEEP(f, 6) {
        f.st = cd_online_adapt_read(b.p, b.n, "m", &a, &f.err);
        if (!f.st) cd_online_adapt_free(a);
    }
    cd_buf_clear(&b);
    a = stranger(4);
    cd_online_adapt_write(a, "m", &b);
    cd_online_adapt_free(a);
    FAULT_SWEEP(f, 9) {
        f.st = cd_online_adapt_read(b.p, b.n, "m", &a, &f.err);
        if (!f.st) cd_online_adapt_free(a);
    }
    cd_buf_free(&b);
}

TESTS(NULL, NULL, nothing_measured_changes_nothing, a_shift_is_learned, what_is_shared,
      level_of_an_unknown_device, order_does_not_matter, outliers_count_less, one_program_by_hand,
      like_programs_of_an_unknown_device, own_task_on_an_unknown_device, certainty_grows,
      a_model_without_intervals, an_unlike_program_without_an_interval, file_and_limit, bad_files,
      odd_files, failing_at_every_allocation)
