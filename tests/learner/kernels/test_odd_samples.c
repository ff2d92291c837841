/* Odd files of samples of kernels. */
#include "learner/kernels/kernels.h"
#include "odd.h"
#include "tmp.h"

#include <fcntl.h>
#include <math.h>

static void on_bad(void *ctx, const cdmpp_err *why) {
    if (!why->msg[0] || why->line < 1) abort();
    ++*(size_t *)ctx;
}

static cdmpp_status samples_of(const char *path, bool grow, cdmpp_err *err) {
    cd_kernel_samples s;
    size_t n_bad = 0;
    const cdmpp_status st = cd_kernel_samples_open(path, grow, on_bad, &n_bad, &s, err);
    cd_kernel_samples_free(&s);
    return st;
}
static cdmpp_status samples(const char *path, cdmpp_err *err) {
    return samples_of(path, false, err);
}
static cdmpp_status growing(const char *path, cdmpp_err *err) {
    return samples_of(path, true, err);
}

TEST(files) {
    tmp_dir dir = tmp_make();
    odd_file f = {tmp_path(&dir, "s.jsonl"), samples}, g = {f.path, growing};
    odd_all_of_seeds("tests/fuzz/seeds/rules", 1000, odd_read_file, &f);
    /* writes, and waits for the disk */
    odd_all_of_seeds("tests/fuzz/seeds/rules", 100, odd_read_file, &g);
    tmp_remove(&dir);
}

/* What cannot be opened or written, and times that are none. */
TEST(refused) {
    tmp_dir dir = tmp_make();
    cd_kernel_samples s;
    cdmpp_err err = {0};
    size_t n_bad = 0;
    assert_status(cd_kernel_samples_open(dir.path, true, on_bad, &n_bad, &s, &err), CDMPP_EIO);
    assert_string_equal(err.path, dir.path);
    cd_kernel_samples_free(&s);
    /* half a line is cut off */
    assert_ok(cd_kernel_samples_open(tmp_put(&dir, "s.jsonl", "{\"half", 6), true, on_bad, &n_bad,
                                     &s, &err));
    static const double seconds[] = {NAN, -1, 0, 1e10, INFINITY};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        const cd_kernel_sample v = {.kernel = {.type = "conv"}, .seconds = seconds[i]};
        err = (cdmpp_err){0};
        assert_status(cd_kernel_samples_add(&s, &v, &err), CDMPP_ENUMERIC);
        assert_true(strstr(err.msg, "a time of ") != NULL);
    }
    const cd_kernel_sample v = {.kernel = {.type = "conv"}, .seconds = 1};
    const int fd = s.fd;
    s.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (s.fd >= 0) {
        assert_status(cd_kernel_samples_add(&s, &v, &err), CDMPP_EIO);
        (void)close(s.fd);
    }
    s.fd = -1; /* kept in memory alone */
    assert_ok(cd_kernel_samples_add(&s, &v, &err));
    s.fd = fd;
    cd_kernel_samples_free(&s);
    assert_int_equal(n_bad, 0);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, files, refused)
