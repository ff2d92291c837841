/* llm_op_repeats: rows that were measured more than once: their medians, their intervals, what is
 * told of them. */
#include "base/cli/cli.h"
#include "learner/llm_op/llm_op.h"
#include "check.h"
#include "made_llm_ops.h"
#include "tmp.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    tmp_dir dir;
} fixture;

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    f = (fixture){.dir = tmp_make()};
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    tmp_remove(&f->dir);
    return 0;
}

static const cd_device *named(const fixture *f, const char *name) {
    const cd_device *d;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_find(f->devices, name, &d, &err));
    return d;
}

static void count(void *ctx, const cdmpp_err *err) {
    assert_true(err->msg[0] != 0);
    ++*(size_t *)ctx;
}

static void put_times(fixture *f, cd_llm_op_table *t, int m, const double *s, size_t n) {
    cdmpp_err err = {0};
    for (size_t i = 0; i < n; i++) {
        cd_llm_op_record r = made_llm_gemm(m, 64, 64, 0);
        r.latency_s = s[i];
        assert_ok(cd_llm_op_table_put(t, &r, named(f, "h100"), &err));
    }
}

/* An outlier does not move the answer; of an even number the two in the middle count, as
 * logarithms. Rows added after an index count with the times before it. */
TEST(medians) {
    fixture *f = *state;
    static const double outlier[] = {2, 1, 20, 3, 2.5};
    static const double even[] = {8, 1, 2, 9};
    static const double two[] = {1, 4};
    static const double more[] = {30, 40};
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    uint32_t k;
    assert_ok(cd_dict_add(&t.names, (cd_str){"", 0}, &k, &err));
    for (size_t i = 0; i < 5; i++) { /* rows take turns */
        put_times(f, &t, 1, outlier + i, 1);
        if (i < 4) put_times(f, &t, 2, even + i, 1);
        if (i < 2) put_times(f, &t, 3, two + i, 1);
        if (!i) put_times(f, &t, 4, outlier, 1);
    }
    assert_int_equal(t.again.n_time, 11); /* those of rows with several */
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_true(t.r[0].latency_s == 2.5);
    double square = 0; /* around the median, so that an outlier counts in full */
    for (size_t i = 0; i < 5; i++) square += log(outlier[i] / 2.5) * log(outlier[i] / 2.5);
    assert_close(cd_llm_op_table_half(&t, 0, 0.9), 2.1318 * sqrt(square / 4 * 1.2), 1e-3, 0);
    assert_close(t.r[1].latency_s, 4, 1e-12, 0);
    assert_close(t.r[2].latency_s, 2, 1e-12, 0);
    assert_true(t.r[3].latency_s == 2);
    assert_int_equal(t.again.n_row, 3);
    assert_int_equal(t.again.n_noise[CD_LLM_OP_GEMM], 3);
    /* first and second of the row of four */
    assert_close(t.again.noise[CD_LLM_OP_GEMM][2], log(8), 1e-12, 0);
    for (int again = 0; again < 2; again++) assert_ok(cd_llm_op_table_index(&t, &err));
    assert_true(t.r[0].latency_s == 2.5);
    put_times(f, &t, 4, more, 2);
    put_times(f, &t, 1, more, 2);
    assert_true(isnan(cd_llm_op_table_half(&t, 3, 0.9)));
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_true(t.r[3].latency_s == 30); /* of 2, 30, 40 */
    assert_true(t.r[0].latency_s == 3);
    assert_close(t.again.noise[CD_LLM_OP_GEMM][3], log(15), 1e-12, 0);
    cd_llm_op_table_free(&t);
}

static double gauss(uint64_t at) {
    double x = 0;
    for (uint64_t i = 0; i < 12; i++)
        x += (double)(cd_rng_at(77, 12 * at + i) >> 11) / 9007199254740992.0;
    return x - 6;
}

/* How many of the next times are in the interval around the median of `count`: of rows with times
 * of their own, and of those that the pool tells. */
TEST(intervals_hold) {
    fixture *f = *state;
    enum { ROWS = 3000 };
    cdmpp_err err = {0};
    for (int count = 1; count <= 8; count++) {
        cd_llm_op_table t = {0};
        uint32_t k;
        size_t in = 0;
        assert_ok(cd_dict_add(&t.names, (cd_str){"", 0}, &k, &err));
        for (int i = 0; i < ROWS; i++) {
            double s[8];
            for (int c = 0; c < count; c++) s[c] = exp(0.1 * gauss((uint64_t)(16 * i + c)));
            put_times(f, &t, i + 1, s, (size_t)count);
            s[1] = exp(0.1 * gauss((uint64_t)(16 * i + 9)));
            if (count == 1) put_times(f, &t, ROWS + i + 1, s, 2);
        }
        assert_ok(cd_llm_op_table_index(&t, &err));
        for (size_t i = 0; i < t.n; i++)
            if (t.count[i] == (uint32_t)count)
                in += fabs(log(t.r[i].latency_s) -
                           0.1 * gauss((uint64_t)(16 * ((int)t.r[i].size[0] - 1) + 10))) <=
                      cd_llm_op_table_half(&t, i, 0.9);
        assert_in_range(in, 0.885 * ROWS, 0.925 * ROWS);
        cd_llm_op_table_free(&t);
    }
}

static void said_of(const cd_llm_op_table *t, char *out, size_t n) {
    cd_log log;
    FILE *to = tmpfile();
    assert_non_null(to);
    cd_log_init(&log, "x", to);
    cd_llm_op_table_say(t, &log);
    cd_log_done(&log);
    rewind(to);
    out[fread(out, 1, n - 1, to)] = 0;
    (void)fclose(to);
}

/* Several files: a file that is given again, alone, in a folder or by a link, counts once. The
 * least and the greatest time of the widest row are told with their lines. */
TEST(repeats_are_told) {
    fixture *f = *state;
    static const char
        a[] = "device,m,n,k,latency_s\n\nh100,1,2,3,1e-6\nh100,2,2,3,2e-6\nh100,3,2,3,2e-6\n",
        b[] = "device,m,n,k,latency_s\nh100,3,2,3,2.1e-6\nh100,2,2,3,3e-6\n\n\nh100,1,2,3,5e-6\n";
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    size_t twice = 0;
    char first[256], second[256], link[256], said[1024], want[2048];
    (void)mkdir(tmp_path(&f->dir, "two"), 0700);
    snprintf(first, sizeof first, "%s", tmp_put(&f->dir, "two/gemm.a.csv", a, sizeof a - 1));
    assert_ok(cd_llm_op_table_add(&t, first, f->devices, NULL, count, &twice, &err));
    assert_ok(cd_llm_op_table_index(&t, &err));
    said_of(&t, said, sizeof said);
    assert_string_equal(said, "");
    snprintf(second, sizeof second, "%s", tmp_put(&f->dir, "two/gemm.b.csv", b, sizeof b - 1));
    snprintf(link, sizeof link, "%s", tmp_path(&f->dir, "two/gemm.c.csv"));
    assert_int_equal(symlink(first, link), 0);
    assert_ok(
        cd_llm_op_table_add(&t, tmp_path(&f->dir, "two"), f->devices, NULL, count, &twice, &err));
    assert_ok(cd_llm_op_table_add(&t, second, f->devices, NULL, count, &twice, &err));
    assert_int_equal(twice, 3);
    assert_int_equal(t.n, 3);
    assert_int_equal(t.repeated, 3);
    assert_int_equal(t.drop[CD_LLM_OP_DROP_BAD], 0);
    assert_ok(cd_llm_op_table_index(&t, &err));
    said_of(&t, said, sizeof said);
    snprintf(want, sizeof want,
             "x: warning: 3 rows were measured more than once: the median counts; 2 of them differ "
             "by more than a fifth (the widest: %s:3 1e-06 s, %s:6 5e-06 s)\n",
             first, second);
    assert_string_equal(said, want);
    cd_llm_op_table_free(&t);
    put_times(f, &t, 1, (const double[]){1e-6, 1.1e-6}, 2);
    assert_ok(cd_llm_op_table_index(&t, &err));
    said_of(&t, said, sizeof said);
    assert_string_equal(said, "x: 1 row was measured more than once: the median counts\n");
    cd_llm_op_table_free(&t);
}

/* Seconds that are milliseconds; times of a plain table are not told. */
TEST(far_times_are_told) {
    fixture *f = *state;
    static const char text[] = "device,m,n,k,latency_s\nh100,8,4096,4096,1.5e-5\nh100,16,4096,4096,"
                               "1.5e-2\nh100,32,4096,4096,1.6e-2\n";
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    size_t none = 0;
    char path[256], said[1024], want[512];
    snprintf(path, sizeof path, "%s", tmp_put(&f->dir, "gemm.far.csv", text, sizeof text - 1));
    assert_ok(cd_llm_op_table_add(&t, path, f->devices, NULL, count, &none, &err));
    assert_ok(cd_llm_op_table_index(&t, &err));
    said_of(&t, said, sizeof said);
    snprintf(want, sizeof want,
             "x: warning: 2 of 3 measured rows are more than 300 times off the analytic estimate "
             "(the farthest: %s:4 0.016 s, estimate ",
             path);
    assert_memory_equal(said, want, strlen(want));
    assert_non_null(strstr(said, "latency_ms in milliseconds"));
    cd_llm_op_table_free(&t);
    none = 0;
    put_times(f, &t, 8, (const double[]){1e-5}, 1);
    assert_ok(cd_llm_op_table_index(&t, &err));
    said_of(&t, said, sizeof said);
    assert_string_equal(said, "");
    cd_llm_op_table_free(&t);
}

/* Two times of 25 rows, 1 % to 25 % apart; five times of another; one of a kind without repeats. */
TEST(spread_of_repeats) {
    fixture *f = *state;
    const cd_device *d = named(f, "h100");
    cd_llm_op_table t = {0};
    cdmpp_err err = {0};
    uint32_t k;
    assert_ok(cd_dict_add(&t.names, (cd_str){"", 0}, &k, &err));
    for (int i = 1; i <= 25; i++)
        for (int again = 0; again < 2; again++) {
            cd_llm_op_record r = made_llm_gemm(i, 64, 64, 0);
            r.latency_s = again ? exp(0.01 * i) : 1;
            assert_ok(cd_llm_op_table_put(&t, &r, d, &err));
        }
    for (int i = 0; i < 5; i++) {
        cd_llm_op_record r = made_llm_gemm(100, 64, 64, 0);
        r.latency_s = exp(0.1 * (i - 2));
        assert_ok(cd_llm_op_table_put(&t, &r, d, &err));
    }
    cd_llm_op_record once = made_llm_gemm(200, 64, 64, 0);
    cd_llm_op_record norm = {.kind = CD_LLM_OP_NORM, .size = {1, 1}, .latency_s = 1};
    once.latency_s = 1;
    assert_ok(cd_llm_op_table_put(&t, &once, d, &err));
    assert_ok(cd_llm_op_table_put(&t, &norm, d, &err));
    assert_true(isnan(cd_llm_op_table_half(&t, 0, 0.9))); /* not before the index */
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_int_equal(t.again.n_noise[CD_LLM_OP_GEMM], 26);
    /* of 26 differences, 0.01 .. 0.25 and 0.1 again, the 25th */
    /* measured once: as two single times differ */
    assert_close(cd_llm_op_table_half(&t, 26, 0.9), 0.24, 1e-9, 0);
    /* of two the mean */
    assert_close(cd_llm_op_table_half(&t, 3, 0.9), 0.24 * sqrt(0.75), 1e-9, 0);
    /* Student, four degrees of freedom */
    assert_close(cd_llm_op_table_half(&t, 25, 0.9), 2.132 * sqrt(0.025 * 1.2), 2e-3, 0);
    assert_true(isnan(cd_llm_op_table_half(&t, 27, 0.9)));
    cd_llm_op_table_free(&t);
}

TESTS(up, down, medians, intervals_hold, repeats_are_told, far_times_are_told, spread_of_repeats)
