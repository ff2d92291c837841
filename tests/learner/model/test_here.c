/* A model corrected for a machine: what its file says is what is applied, and everything else stays as it was. */
#include "learner/model/model.h"
#include "check.h"
#include "fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "made_model.h"

static tmp_dir dir;
static char plain[256];
static char *file;
static size_t n_file;

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=one", "llvm -model=two"};
    cdmpp_err err = {0};
    dir = tmp_make();
    snprintf(plain, sizeof plain, "%s", tmp_path(&dir, "m.cdmpp"));
    cdmpp_status st = made_learn_targets(&dir, target, 2, "train.rounds=20", plain, &err);
    if (!st) st = cd_file_read(plain, 0, &file, &n_file, &err);
    return st != CDMPP_OK;
}

static int teardown(void **state) {
    (void)state;
    cd_mem_free(file);
    tmp_remove(&dir);
    return 0;
}

static cd_model_prediction pred(void) { return (cd_model_prediction){.latency_s = 0.9, .median_s = 1, .low_s = 0.5, .high_s = 2, .rel_std = 0.3, .like_std = 0.3}; }

/* Programs that take `times` as long as the model says. */
static cdmpp_status made_adapt(double times, cd_online_adapt **out, cdmpp_err *err) {
    const float trait[CD_N_TRAIT] = {1, 2, 3};
    const cd_model_prediction p = pred();
    CD_TRY(cd_online_adapt_new(out, err));
    cdmpp_status st = CDMPP_OK;
    for (int i = 0; !st && i < 12; i++) {
        const cd_online_adapt_item item = cd_online_adapt_item_of(&p, true, trait, times);
        st = cd_online_adapt_add(*out, CD_HERE_ADAPTED, true, "t", &item, err);
    }
    if (!st) st = cd_online_adapt_fit(*out, err);
    if (st) cd_online_adapt_free(*out);
    return st;
}

static cdmpp_status corrected(uint32_t device, double widen, cd_buf *out, cdmpp_err *err) {
    cd_here h = {.device = device, .name = "my-\"cpu\"", .cpu = "A Processor", .programs = 12, .widen = widen};
    CD_TRY(made_adapt(2, &h.adapt, err));
    const cdmpp_status st = cd_here_add(file, n_file, &h, "\"noise\":0.01", out, err);
    cd_online_adapt_free(h.adapt);
    return st;
}

TEST(what_is_written_is_read) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_model *m;
    const float trait[CD_N_TRAIT] = {1, 2, 3};
    assert_ok(corrected(1, 1, &b, &err));
    assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
    const cd_here *h = cd_model_here(m);
    assert_non_null(h);
    assert_string_equal(h->name, "my-\"cpu\"");
    assert_string_equal(h->cpu, "A Processor");
    assert_int_equal(h->programs, 12);
    assert_int_equal(cd_model_find_device(m, "my-\"cpu\"", 8), 1);
    assert_int_equal(cd_model_find_device(m, "one", 3), 0);
    assert_int_equal(cd_model_find_device(m, "my", 2), -1);
    cd_model_prediction p = pred(), q = pred();
    assert_false(cd_here_apply(h, 0, "t", trait, &p));
    assert_memory_equal(&p, &q, sizeof p);
    assert_true(cd_here_apply(h, 1, "t", trait, &p));
    assert_true(p.median_s > 1.8 && p.median_s < 2.01); /* all took twice as long */
    assert_true(p.low_s < p.latency_s && p.latency_s < p.high_s);
    assert_true(p.high_s / p.low_s < q.high_s / q.low_s); /* and so less is unknown */
    cd_model_free(m);
    cd_buf_free(&b);
}

TEST(intervals_are_widened_on_the_logarithm) {
    cdmpp_err err = {0};
    cd_buf b[2] = {{0}, {0}};
    cd_model *m;
    const float trait[CD_N_TRAIT] = {1, 2, 3};
    cd_model_prediction p[2] = {pred(), pred()};
    for (int k = 0; k < 2; k++) {
        assert_ok(corrected(1, 1 + k, &b[k], &err));
        assert_ok(cd_model_from_bytes(b[k].p, b[k].n, &m, &err));
        assert_true(cd_here_apply(cd_model_here(m), 1, "t", trait, &p[k]));
        cd_model_free(m);
        cd_buf_free(&b[k]);
    }
    assert_close(p[1].latency_s, p[0].latency_s, 1e-12, 0);
    assert_close(p[1].median_s, p[0].median_s, 1e-12, 0);
    assert_close(log(p[1].high_s / p[1].median_s), 2 * log(p[0].high_s / p[0].median_s), 1e-9, 0);
    assert_close(log(p[1].low_s / p[1].median_s), 2 * log(p[0].low_s / p[0].median_s), 1e-9, 0);
    assert_close(p[1].rel_std, 2 * p[0].rel_std, 1e-12, 0);
}

/* Narrower than the answer's distance from the median: it stays inside. */
TEST(the_answer_stays_inside) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_model *m;
    const float trait[CD_N_TRAIT] = {1, 2, 3};
    cd_model_prediction p = pred();
    assert_ok(corrected(1, 0.01, &b, &err));
    assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
    assert_true(cd_here_apply(cd_model_here(m), 1, "t", trait, &p));
    assert_true(p.low_s <= p.latency_s && p.latency_s <= p.high_s && p.latency_s < p.median_s);
    cd_model_free(m);
    cd_buf_free(&b);
}

TEST(how_far_beyond_the_end) {
    const cd_model_prediction p = pred();
    assert_close(cd_here_beyond(&p, 2), 1, 1e-12, 0);
    assert_close(cd_here_beyond(&p, 0.5), 1, 1e-12, 0);
    assert_close(cd_here_beyond(&p, 1), 0, 1e-12, 1e-12);
    assert_close(cd_here_beyond(&p, 4), 2, 1e-12, 0);
}

TEST(the_file_says_it_before_it_is_loaded) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *v;
    double noise;
    assert_ok(corrected(0, 1, &b, &err));
    const char *path = tmp_put(&dir, "here.cdmpp", b.p, b.n);
    cd_here_look(path, &a, &v);
    assert_non_null(v);
    assert_ok(cd_json_need_real(v, "noise", 0, 1, &noise, &err));
    assert_close(noise, 0.01, 1e-12, 0);
    cd_here_look(plain, &a, &v);
    assert_null(v);
    cd_here_look("/nowhere/at.all", &a, &v);
    assert_null(v);
    cd_here_look(MADE_TASKS, &a, &v);
    assert_null(v);
    cd_arena_free(&a);
    cd_buf_free(&b);
}

TEST(members_stay_as_they_are) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_container was, is;
    assert_ok(corrected(0, 1, &b, &err));
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, file, n_file, &was, &err));
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, b.p, b.n, &is, &err));
    assert_int_equal(is.version, CD_CONTAINER_MODEL_HERE);
    assert_int_equal(is.weights.n, was.weights.n);
    assert_memory_equal(is.weights.p, was.weights.p, was.weights.n);
    assert_memory_equal(is.header.p, was.header.p, was.header.n - 1);
    cd_buf_free(&b);
}

TEST(refuses) {
    cdmpp_err err = {0};
    cd_buf b = {0}, twice = {0};
    cd_here h = {.device = 9, .name = "n", .cpu = "c", .programs = 1, .widen = 1};
    assert_ok(made_adapt(2, &h.adapt, &err));
    assert_status(cd_here_add(file, n_file, &h, "", &b, &err), CDMPP_EMODEL);
    h.device = 0;
    assert_ok(cd_here_add(file, n_file, &h, "", &b, &err));
    assert_status(cd_here_add(b.p, b.n, &h, "", &twice, &err), CDMPP_EUSAGE);
    assert_status(cd_here_add(b.p, b.n - 1, &h, "", &twice, &err), CDMPP_EPARSE);
    cd_buf_free(&b);
    h.widen = 0; /* nothing reads that */
    cd_model *m;
    assert_ok(cd_here_add(file, n_file, &h, "", &b, &err));
    assert_status(cd_model_from_bytes(b.p, b.n, &m, &err), CDMPP_ERANGE);
    cd_buf_free(&b);
    cd_online_adapt_free(h.adapt);
}

/* A file of our frame and checksum that somebody made by hand. */
TEST(every_key_is_checked) {
    static const struct {
        const char *from, *to;
        cdmpp_status want;
    } tab[] = {{"\"device\":\"one\"", "\"device\":\"nine\"", CDMPP_EMODEL}, {"\"programs\":12", "\"programs\":0", CDMPP_ERANGE}, {"\"programs\":12", "\"programs\":\"a\"", CDMPP_ESCHEMA},
               {"\"adapt\":{", "\"adept\":{", CDMPP_ESCHEMA}, {"\"cpu\":", "\"gpu\":", CDMPP_ESCHEMA}, {"\"widen\":1", "\"widen\":-1", CDMPP_ERANGE},
               {"\"model\":\"\",\"devices\"", "\"model\":\"other\",\"devices\"", CDMPP_EMODEL}};
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_container f;
    assert_ok(corrected(0, 1, &b, &err));
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, b.p, b.n, &f, &err));
    char *text = strndup(f.header.p, f.header.n), *here = strstr(text, ",\"here\":");
    assert_non_null(here);
    for (size_t k = 0; k < sizeof tab / sizeof *tab; k++) {
        cd_buf header = {0}, weights = {0}, out = {0};
        cd_model *m;
        const char *at = strstr(here, tab[k].from);
        assert_non_null(at);
        cd_buf_put(&header, text, (size_t)(at - text));
        cd_buf_puts(&header, tab[k].to);
        cd_buf_puts(&header, at + strlen(tab[k].from));
        cd_buf_put(&weights, f.weights.p, f.weights.n);
        assert_ok(cd_container_put_as(CD_CONTAINER_MODEL, CD_CONTAINER_MODEL_HERE, &out, &header, &weights, &err));
        assert_status(cd_model_from_bytes(out.p, out.n, &m, &err), tab[k].want);
        cd_buf_free(&header);
        cd_buf_free(&weights);
        cd_buf_free(&out);
    }
    free(text);
    cd_buf_free(&b);
}

TEST(every_allocation_may_fail) {
    FAULT_SWEEP(f, 3) {
        cd_buf b = {0};
        cd_model *m = NULL;
        f.st = corrected(1, 1.5, &b, &f.err);
        if (!f.st) f.st = cd_model_from_bytes(b.p, b.n, &m, &f.err);
        cd_model_free(m);
        cd_buf_free(&b);
    }
}

TESTS(setup, teardown, what_is_written_is_read, intervals_are_widened_on_the_logarithm, the_answer_stays_inside, how_far_beyond_the_end, the_file_says_it_before_it_is_loaded,
      members_stay_as_they_are, refuses, every_key_is_checked, every_allocation_may_fail)
