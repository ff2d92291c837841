/* A model corrected for a machine: what its file says is what is applied, and everything else stays
 * as it was. */
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
static cd_model *alone;

static int setup(void **state) {
    (void)state;
    static const char *const target[] = {"llvm -model=one", "llvm -model=two"};
    cdmpp_err err = {0};
    dir = tmp_make();
    snprintf(plain, sizeof plain, "%s", tmp_path(&dir, "m.cdmpp"));
    cdmpp_status st = made_learn_targets(&dir, target, 2, "train.colsample=1", plain, &err);
    if (!st) st = cd_file_read(plain, 0, &file, &n_file, &err);
    if (!st) st = cd_model_from_bytes(file, n_file, &alone, &err);
    return st != CDMPP_OK;
}

static int teardown(void **state) {
    (void)state;
    cd_mem_free(file);
    cd_model_free(alone);
    tmp_remove(&dir);
    return 0;
}

static cd_model_prediction pred(void) {
    return (cd_model_prediction){.latency_s = 0.9,
                                 .median_s = 1,
                                 .low_s = 0.5,
                                 .high_s = 2,
                                 .rel_std = 0.3,
                                 .like_std = 0.3};
}

/* A program of one row that says how large it is, for a device of the model. */
typedef struct one {
    float row[CD_N_COL];
    int64_t ptr[2];
    uint32_t device;
} one;

static cd_program_view view_of(one *o, float size, uint32_t device) {
    *o = (one){.ptr = {0, 1}, .device = device};
    for (size_t c = 0; c < CD_N_COL; c++) o->row[c] = size;
    return (cd_program_view){.n = 1, .row = o->row, .row_ptr = o->ptr, .device = &o->device};
}

enum { N_MADE = 60 };
/* Programs that take `times` as long as the model says, large ones twice that. */
static cdmpp_status made_trees(double times, cd_here_trees *out, cdmpp_err *err) {
    const size_t width = cd_here_width(alone);
    const cd_model_prediction p = pred();
    double off[N_MADE];
    float *x = cd_mem_zalloc(N_MADE, width * sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "programs");
    for (size_t i = 0; i < N_MADE; i++) {
        one o;
        const cd_program_view v = view_of(&o, (float)(i % 10), 0);
        cd_here_see(alone, &v, 0, &p, x + i * width);
        off[i] = log(times * (i % 10 < 5 ? 1 : 2));
    }
    const cdmpp_status st = cd_here_fit(x, off, N_MADE, width, 1, out, err);
    cd_mem_free(x);
    return st;
}

static double most = (double)INFINITY, picks, kept_noise;
static bool stands_chooses;

static cdmpp_status corrected(uint32_t device, double widen, cd_buf *out, cdmpp_err *err) {
    cd_here h = {.stands = device,
                 .name = "my-\"cpu\"",
                 .cpu = "A Processor",
                 .programs = 12,
                 .widen = widen,
                 .most = most,
                 .noise = kept_noise,
                 .stands_chooses = stands_chooses,
                 .picks = picks};
    CD_TRY(made_trees(2, &h.trees, err));
    const cdmpp_status st = cd_here_add(file, n_file, &h, "\"noise\":0.01", out, err);
    cd_xgb_free(h.trees.gbt);
    return st;
}

static cd_model_prediction answer(const cd_model *m, float size, uint32_t device) {
    cdmpp_err err = {0};
    one o;
    const cd_program_view v = view_of(&o, size, device);
    cd_model_prediction p = pred();
    assert_ok(cd_here_apply(m, &v, 0, &p, &err));
    return p;
}

/* What the fastest programs of tasks take over their medians; few tasks say nothing, and one far
 * off says no more than twice. */
TEST(what_fast_programs_take) {
    double ratio[CD_HERE_PICKS];
    for (int i = 0; i < CD_HERE_PICKS; i++) ratio[i] = i ? 0.9 : 100;
    assert_close(cd_here_picks(ratio, CD_HERE_PICKS - 1), 0, 0, 0);
    assert_close(cd_here_picks(ratio, CD_HERE_PICKS), (29 * 0.9 + 2) / 30, 1e-12, 0);
    ratio[0] = 0.01;
    assert_close(cd_here_picks(ratio, CD_HERE_PICKS), (29 * 0.9 + 0.5) / 30, 1e-12, 0);
    for (int k = 0; k < 2; k++) {
        cdmpp_err err = {0};
        cd_buf b = {0};
        cd_model *m;
        picks = k ? 0.75 : 0;
        assert_ok(corrected(1, 1, &b, &err));
        picks = 0;
        assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
        /* a file of an earlier version says nothing */
        assert_close(cd_model_here(m)->picks, k ? 0.75 : 0, 0, 0);
        cd_model_free(m);
        cd_buf_free(&b);
    }
}

TEST(what_is_written_is_read) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_model *m;
    assert_ok(corrected(1, 1, &b, &err));
    assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
    const cd_here *h = cd_model_here(m);
    assert_non_null(h);
    assert_string_equal(h->name, "my-\"cpu\"");
    assert_string_equal(h->cpu, "A Processor");
    assert_int_equal(h->programs, 12);
    assert_int_equal(cd_model_n_device(m), 3); /* the machine is one more */
    assert_int_equal(cd_model_find_device(m, "my-\"cpu\"", 8), 2);
    assert_int_equal(cd_model_stands_for(m, 2), 1);
    assert_int_equal(cd_model_stands_for(m, 0), 0);
    assert_int_equal(cd_model_find_device(m, "one", 3), 0);
    assert_int_equal(cd_model_find_device(m, "my", 2), -1);
    const cd_model_prediction other = answer(m, 1, 1), as_it_was = pred(), small = answer(m, 1, 2),
                              large = answer(m, 9, 2);
    assert_memory_equal(&other, &as_it_was, sizeof other);
    assert_close(small.median_s, 2, 0.05, 0);
    assert_close(large.median_s, 4, 0.05, 0);
    assert_close(small.latency_s / small.median_s, 0.9, 1e-9, 0);
    assert_close(small.high_s / small.low_s, as_it_was.high_s / as_it_was.low_s, 1e-9, 0);
    assert_true(cd_here_width(m) <= CD_HERE_WIDTH);
    cd_model_free(m);
    cd_buf_free(&b);
}

TEST(intervals_are_widened_on_the_logarithm) {
    cdmpp_err err = {0};
    cd_buf b[2] = {{0}, {0}};
    cd_model *m;
    cd_model_prediction p[2];
    for (int k = 0; k < 2; k++) {
        assert_ok(corrected(1, 1 + k, &b[k], &err));
        assert_ok(cd_model_from_bytes(b[k].p, b[k].n, &m, &err));
        p[k] = answer(m, 1, 2);
        cd_model_free(m);
        cd_buf_free(&b[k]);
    }
    assert_close(p[1].latency_s, p[0].latency_s, 1e-12, 0);
    assert_close(p[1].median_s, p[0].median_s, 1e-12, 0);
    assert_close(log(p[1].high_s / p[1].median_s), 2 * log(p[0].high_s / p[0].median_s), 1e-9, 0);
    assert_close(log(p[1].low_s / p[1].median_s), 2 * log(p[0].low_s / p[0].median_s), 1e-9, 0);
    assert_close(p[1].rel_std, 2 * p[0].rel_std, 1e-12, 0);
}

/* Members answer for the machine as for the device that stands for it: trees read numbers of
 * devices. */
TEST(the_machine_is_answered_as_who_stands_for_it) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_model *m;
    cd_model_scratch *s;
    cd_model_prediction p[3];
    assert_ok(corrected(1, 1, &b, &err));
    assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
    assert_ok(cd_model_scratch_new(&s, &err));
    bool differs = false;
    for (int size = 0; size < 12; size++) {
        for (uint32_t d = 0; d < 3; d++) {
            one o;
            const cd_program_view v = view_of(&o, (float)size, d);
            assert_ok(cd_model_predict(m, s, &v, NULL, 1, &p[d], &err));
        }
        assert_memory_equal(&p[2], &p[1], sizeof p[1]);
        differs |= p[0].median_s != p[1].median_s;
    }
    assert_true(differs); /* between the others */
    cd_model_scratch_free(s);
    cd_model_free(m);
    cd_buf_free(&b);
}

/* Narrower than the answer's distance from the median: it stays inside. */
TEST(the_answer_stays_inside) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_model *m;
    assert_ok(corrected(1, 0.01, &b, &err));
    assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
    const cd_model_prediction p = answer(m, 1, 2);
    assert_true(p.low_s <= p.latency_s && p.latency_s <= p.high_s && p.latency_s < p.median_s);
    /* as the square of the ends */
    assert_close(log(p.latency_s / p.median_s), 1e-4 * log(0.9), 1e-6, 0);
    cd_model_free(m);
    cd_buf_free(&b);
}

TEST(how_far_beyond_the_end) {
    const cd_model_prediction p = pred();
    const double all = (double)INFINITY;
    assert_close(cd_here_beyond(&p, all, 2), 1, 1e-12, 0);
    assert_close(cd_here_beyond(&p, all, 0.5), 1, 1e-12, 0);
    assert_close(cd_here_beyond(&p, all, 1), 0, 1e-12, 1e-12);
    assert_close(cd_here_beyond(&p, all, 4), 2, 1e-12, 0);
    assert_close(cd_here_beyond(&p, log(4.1), 4), 2, 1e-12, 0);
    assert_true(isinf(cd_here_beyond(&p, log(3.9), 4)));
    assert_close(cd_here_beyond(&p, 0, 1.9), log(1.9) / log(2), 1e-12, 0); /* inside */
}

/* An end moves away by the factor, but by that no further than `most`; one that lies further away
 * stays. Where less is unknown than before, nothing limits it. */
TEST(no_end_moves_too_far) {
    static const struct {
        double factor, most, high, low, std;
    } t[] = {{2, 9, 4, 0.25, 2},
             {4, 1.3863, 4, 0.25, 2},
             {4, 0.1, 2, 0.5, 1},
             {0.5, 0.1, 1.4142, 0.70711, 0.5},
             {1, 0, 2, 0.5, 1}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_model_prediction p = pred();
        const double std = p.rel_std;
        cd_here_move(log(3), t[k].factor, t[k].most, 0, &p);
        assert_close(p.median_s, 3, 1e-9, 0);
        assert_close(p.high_s, 3 * t[k].high, 1e-4, 0);
        assert_close(p.low_s, 3 * t[k].low, 1e-4, 0);
        assert_close(p.rel_std, std * t[k].std, 1e-4, 0);
    }
}

/* Errors of two causes: the root of the sum of squares, for both ends. Without noise nothing
 * changes, and no noise brings an end nearer. Where there is no interval, noise makes none. */
TEST(noise_comes_on_top) {
    for (int k = 0; k <= 4; k++) {
        const double noise = 0.2 * k, by = cd_here_noise_log(noise), end = hypot(log(2), by);
        cd_model_prediction p = pred(), none = pred();
        const double std = p.rel_std;
        cd_here_move(log(3), 1, (double)INFINITY, noise, &p);
        assert_close(p.median_s, 3, 1e-9, 0);
        assert_close(p.high_s, 3 * exp(end), 1e-9, 0);
        assert_close(p.low_s, 3 * exp(-end), 1e-9, 0);
        assert_close(p.rel_std, std * end / log(2), 1e-9, 0);
        assert_true(p.low_s <= p.latency_s && p.latency_s <= p.high_s);
        none.low_s = none.high_s = (double)NAN;
        cd_here_move(log(3), 1, (double)INFINITY, noise, &none);
        assert_true(isnan(none.low_s) && isnan(none.high_s));
    }
    assert_close(cd_here_noise_log(0.6745 * sqrt(2)), 1.645, 1e-3, 0); /* of a deviation of 1 */
}

/* The file keeps noise and who chooses schedules; one of an earlier version has neither. */
TEST(noise_and_choice_are_kept) {
    cdmpp_err err = {0};
    for (int k = 0; k < 2; k++) {
        cd_buf b = {0};
        cd_model *m;
        kept_noise = k ? 0.125 : 0;
        stands_chooses = k;
        assert_ok(corrected(0, 1.5, &b, &err));
        assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
        assert_true(cd_model_here(m)->noise == kept_noise);
        assert_int_equal(cd_model_here(m)->stands_chooses, k);
        assert_int_equal(strstr(cd_model_header(m), "\"measured_noise\":0.125") != NULL, k);
        assert_int_equal(strstr(cd_model_header(m), "\"chooses\":\"stand-in\"") != NULL, k);
        cd_model_free(m);
        cd_buf_free(&b);
    }
    kept_noise = 0;
    stands_chooses = false;
}

/* The file keeps it; one of an earlier version has none. */
TEST(the_limit_is_kept) {
    cdmpp_err err = {0};
    for (int k = 0; k < 2; k++) {
        cd_buf b = {0};
        cd_model *m;
        most = k ? 0.75 : (double)INFINITY;
        assert_ok(corrected(0, 1.5, &b, &err));
        assert_ok(cd_model_from_bytes(b.p, b.n, &m, &err));
        assert_true(cd_model_here(m)->most == most);
        assert_int_equal(strstr(cd_model_header(m), "\"most\":") != NULL, k);
        cd_model_free(m);
        cd_buf_free(&b);
    }
    most = (double)INFINITY;
}

TEST(the_file_says_it_before_it_is_loaded) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_arena a = {0};
    const cd_json *v;
    double noise;
    bool fits = false;
    assert_ok(corrected(0, 1, &b, &err));
    const char *path = tmp_put(&dir, "here.cdmpp", b.p, b.n);
    cd_here_look(path, &a, &v, &fits);
    assert_true(fits);
    assert_non_null(v);
    assert_ok(cd_json_need_real(v, "noise", 0, 1, &noise, &err));
    assert_close(noise, 0.01, 1e-12, 0);
    char *digest = memmem(b.p, b.n, "\"feature_digest\":\"", 18);
    assert_non_null(digest);
    digest[18] = digest[18] == '0' ? '1' : '0';
    cd_here_look(tmp_put(&dir, "other.cdmpp", b.p, b.n), &a, &v, &fits);
    assert_true(v && !fits);
    digest[18] = digest[18] == '0' ? '1' : '0';
    b.p[8] = 99; /* of a newer form */
    cd_here_look(tmp_put(&dir, "newer.cdmpp", b.p, b.n), &a, &v, &fits);
    assert_true(v && !fits);
    cd_here_look(plain, &a, &v, &fits);
    assert_null(v);
    cd_here_look("/nowhere/at.all", &a, &v, &fits);
    assert_null(v);
    cd_here_look(MADE_TASKS, &a, &v, &fits);
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
    assert_true(is.weights.n > was.weights.n);
    assert_memory_equal(is.weights.p, was.weights.p, was.weights.n);
    assert_memory_equal(is.header.p, was.header.p, was.header.n - 1);
    cd_buf_free(&b);
}

TEST(refuses) {
    cdmpp_err err = {0};
    cd_buf b = {0}, twice = {0};
    cd_here h = {.stands = 9, .name = "n", .cpu = "c", .programs = 1, .widen = 1};
    assert_ok(made_trees(2, &h.trees, &err));
    assert_status(cd_here_add(file, n_file, &h, "", &b, &err), CDMPP_EMODEL);
    h.stands = 0;
    assert_ok(cd_here_add(file, n_file, &h, "", &b, &err));
    assert_status(cd_here_add(b.p, b.n, &h, "", &twice, &err), CDMPP_EUSAGE);
    assert_status(cd_here_add(b.p, b.n - 1, &h, "", &twice, &err), CDMPP_EPARSE);
    cd_buf_free(&b);
    h.widen = 0; /* nothing reads that */
    cd_model *m;
    assert_ok(cd_here_add(file, n_file, &h, "", &b, &err));
    assert_status(cd_model_from_bytes(b.p, b.n, &m, &err), CDMPP_ERANGE);
    cd_buf_free(&b);
    cd_xgb_free(h.trees.gbt);
}

/* A file of our frame and checksum that somebody made by hand. */
TEST(every_key_is_checked) {
    static const struct {
        const char *from, *to;
        cdmpp_status want;
    } tab[] = {{"\"device\":\"one\"", "\"device\":\"nine\"", CDMPP_EMODEL},
               {"\"programs\":12", "\"programs\":0", CDMPP_ERANGE},
               {"\"programs\":12", "\"programs\":\"a\"", CDMPP_ESCHEMA},
               {"\"at\":", "\"to\":", CDMPP_ESCHEMA},
               {"\"at\":", "\"at\":9", CDMPP_ERANGE},
               {"\"bias\":", "\"bias\":1000", CDMPP_ERANGE},
               {"\"share\":", "\"share\":2", CDMPP_ERANGE},
               {"\"cpu\":", "\"gpu\":", CDMPP_ESCHEMA},
               {"\"widen\":1", "\"widen\":-1", CDMPP_ERANGE},
               {"\"at\":", "\"at\":0,\"was\":", CDMPP_ESCHEMA},
               {"\"widen\":", "\"measured_noise\":-1,\"widen\":", CDMPP_ERANGE},
               {"\"widen\":", "\"chooses\":\"nobody\",\"widen\":", CDMPP_EMODEL},
               {"\"widen\":", "\"chooses\":1,\"widen\":", CDMPP_ESCHEMA}};
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
        assert_ok(cd_container_put_as(CD_CONTAINER_MODEL, CD_CONTAINER_MODEL_HERE, &out, &header,
                                      &weights, &err));
        assert_status(cd_model_from_bytes(out.p, out.n, &m, &err), tab[k].want);
        cd_buf_free(&header);
        cd_buf_free(&weights);
        cd_buf_free(&out);
    }
    free(text);
    cd_buf_free(&b);
}

/* Trees that read the files of others are not taken for these. */
TEST(trees_of_another_width_are_refused) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_here h = {.stands = 0, .name = "n", .cpu = "c", .programs = 1, .widen = 1};
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const double off[4] = {0.1, 0.2, 0.3, 0.4};
    cd_model *m;
    assert_ok(cd_here_fit(x, off, 4, 2, 1, &h.trees, &err));
    assert_close(h.trees.bias, 0.25, 1e-9, 0);
    assert_ok(cd_here_add(file, n_file, &h, "", &b, &err));
    assert_status(cd_model_from_bytes(b.p, b.n, &m, &err), CDMPP_EMODEL);
    cd_buf_free(&b);
    cd_xgb_free(h.trees.gbt);
    assert_status(cd_here_fit(x, off, 0, 2, 1, &h.trees, &err), CDMPP_ENODATA);
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

TESTS(setup, teardown, what_fast_programs_take, what_is_written_is_read,
      intervals_are_widened_on_the_logarithm, the_machine_is_answered_as_who_stands_for_it,
      the_answer_stays_inside, how_far_beyond_the_end, no_end_moves_too_far, noise_comes_on_top,
      noise_and_choice_are_kept, the_limit_is_kept, the_file_says_it_before_it_is_loaded,
      members_stay_as_they_are, refuses, every_key_is_checked, trees_of_another_width_are_refused,
      every_allocation_may_fail)
