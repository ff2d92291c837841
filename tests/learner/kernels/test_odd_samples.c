/* Odd files of samples of kernels. */
#include "learner/kernels/kernels.h"
#include "odd.h"
#include "tmp.h"

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
    odd_all_of_seeds("tests/fuzz/seeds/rules", 100, odd_read_file,
                     &g); /* writes, and waits for the disk */
    tmp_remove(&dir);
}

TESTS(NULL, NULL, files)
