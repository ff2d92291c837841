/* Checkpoints: going on gives the bits of never having stopped; kills, full disks and
 * damage leave either the file before or an error. */
#include "learner/fit/fit.h"

#include "check.h"
#include "fault.h"
#include "forge.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/core/mem.h"
#include "made_fit.h"
#include "tmp.h"

static tmp_dir dir;
static cd_fit_spec spec;
static cd_fit_result whole; /* never stopped */

static int make(void **s) {
    made_fit(s);
    dir = tmp_make();
    spec = made_spec(CD_NET_MLP);
    spec.eval_every = 5; /* not a divisor of what follows */
    spec.loss = "1huber_log+0.1rank";
    whole = made_run(&spec, &parts, NULL, NULL);
    assert_int_equal(whole.steps, 24);
    return 0;
}

static int drop(void **s) {
    (void)s;
    cd_fit_result_free(&whole);
    tmp_remove(&dir);
    return 0;
}

static bool stop_at(void *ctx, const cd_fit_progress *p) {
    return p->step < *(const uint64_t *)ctx;
}

/* Trains up to a step, with the checkpoint as it is then. */
static void until(const char *path, uint64_t step, int64_t every, bool resume) {
    cdmpp_err err = {0};
    cd_fit_result f;
    const cd_fit_run run = {.checkpoint = path,
                            .checkpoint_every = every,
                            .resume = resume,
                            .tick = stop_at,
                            .ctx = &step};
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_EINTERRUPTED);
    assert_null(f.net);
}

static void goes_on(const char *path) {
    const cd_fit_run run = {.checkpoint = path, .resume = true};
    cd_fit_result f = made_run(&spec, &parts, NULL, &run);
    assert_same_fit(&whole, &f);
    cd_fit_result_free(&f);
}

static void interrupted_anywhere(void **s) {
    (void)s;
    const char *path = tmp_path(&dir, "a.ckpt");
    for (uint64_t k = 1; k < 24; k += 1 + k / 6) {
        until(path, k, 0, false);
        goes_on(path);
        goes_on(path); /* what is finished stays finished */
    }
    until(path, 3, 2, false);
    until(path, 9, 2, true);
    until(path, 10, 0, true);
    goes_on(path);
}

/* other optimisers, no average, no validation, a target domain */
static void every_kind(void **s) {
    (void)s;
    const char *path = tmp_path(&dir, "k.ckpt");
    const cd_fit_spec keep = spec;
    const cd_fit_data keep_data = parts;
    cd_fit_result keep_whole = whole;
    for (int k = 0; k < 4; k++) {
        spec = made_spec(k == 3 ? CD_NET_TSF : CD_NET_MLP);
        if (k == 0)
            spec.optim = cd_optim_spec_of(CD_OPTIM_SGD),
            spec.transform = CD_TRANSFORM_QUANTILE_NORMAL;
        if (k == 1) spec.ema = 0, spec.optim.kind = CD_OPTIM_ADAM, spec.net.norm = CD_NORM_BATCH;
        if (k == 2) parts.n_valid = 0;
        if (k == 3)
            spec.loss = "1mse+1cmd", spec.target_batch = 20, parts.target = index_of + 100,
            parts.n_target = 90;
        whole = made_run(&spec, &parts, NULL, NULL);
        until(path, 11, 4, false);
        goes_on(path);
        cd_fit_result_free(&whole);
        parts = keep_data;
    }
    spec = keep;
    whole = keep_whole;
}

/* ---- kill -9 ---- */
static void train_and_tell(const char *path, const char *result) {
    cdmpp_err err = {0};
    cd_fit_result f;
    size_t n;
    const cd_fit_run run = {.checkpoint = path, .checkpoint_every = 1, .resume = true};
    if (cd_fit(&spec, &parts, NULL, &run, &f, &err)) _exit(1);
    const float *v = made_values(&f, &n);
    _exit(cd_file_write(result, v, n, &err) ? 1 : 0);
}

static void killed_again_and_again(void **s) {
    (void)s;
    char path[256], result[256];
    cdmpp_err err = {0};
    int kills = 0, status = -1;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "kill.ckpt"));
    snprintf(result, sizeof result, "%s", tmp_path(&dir, "kill.result"));
    for (int k = 0; status != 0; k++) {
        assert_true(k < 200);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) train_and_tell(path, result);
        /* the slow may finish too */
        usleep((useconds_t)(2000 + cd_rng_at(5, (uint64_t)k) % 6000) * (k < 40 ? 1 : 100));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        kills += WIFSIGNALED(status) != 0;
        if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_true(kills >= 3);
    char *bytes;
    size_t n, m;
    assert_ok(cd_file_read(result, 0, &bytes, &n, &err));
    const float *v = made_values(&whole, &m);
    assert_int_equal(n, m);
    assert_memory_equal(bytes, v, n);
    cd_mem_free(bytes);
}

/* ---- no room ---- */
static int without_room(const char *path) {
    const pid_t child = fork();
    int status;
    if (!child) {
        cdmpp_err err = {0};
        cd_fit_result f;
        const struct rlimit limit = {5000, 5000};
        const cd_fit_run run = {.checkpoint = path, .checkpoint_every = 1, .resume = true};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(100);
        const cdmpp_status st = cd_fit(&spec, &parts, NULL, &run, &f, &err);
        _exit(f.net || !strstr(err.path, "room.ckpt") ? 101 : (int)st);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void disk_full(void **s) {
    (void)s;
    cdmpp_err err = {0};
    char *before, *after, path[256];
    size_t n, m;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "room.ckpt"));
    until(path, 7, 0, false);
    assert_ok(cd_file_read(path, 0, &before, &n, &err));
    assert_int_equal(without_room(path), CDMPP_EIO);
    assert_ok(cd_file_read(path, 0, &after, &m, &err));
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n);
    goes_on(path);
    cd_mem_free(before);
    cd_mem_free(after);

    cd_fit_result f;
    cd_fit_run run = {.checkpoint = "/dev/full", .checkpoint_every = 1};
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_EIO);
    run.checkpoint = tmp_path(&dir, "no-such-folder/a.ckpt");
    assert_status(cd_fit(&spec, &parts, NULL, &run, &f, &err), CDMPP_EIO);
}

/* ---- damage ---- */
static cdmpp_status resume_from(const char *path, cdmpp_err *err) {
    cd_fit_result f;
    const cd_fit_run run = {.checkpoint = path, .resume = true};
    const cdmpp_status st = cd_fit(&spec, &parts, NULL, &run, &f, err);
    cd_fit_result_free(&f);
    return st;
}

static void damaged(void **s) {
    (void)s;
    cdmpp_err err = {0};
    char path[256], *bytes;
    size_t n;
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "damaged.ckpt"));
    until(path, 7, 0, false);
    assert_ok(cd_file_read(path, 0, &bytes, &n, &err));
    for (size_t at = 0; at < n; at += at < 40 ? 1 : n / 23) {
        bytes[at] ^= 0x20;
        tmp_put(&dir, "damaged.ckpt", bytes, n);
        const cdmpp_status st = resume_from(path, &err);
        if (st != CDMPP_EPARSE && !(st == CDMPP_EUNSUPPORTED && at >= 8 && at < 12))
            fail_msg("byte %zu: %d", at, (int)st);
        bytes[at] ^= 0x20;
    }
    for (size_t m = 0; m < n; m += 1 + n / 17) {
        tmp_put(&dir, "damaged.ckpt", bytes, m);
        assert_status(resume_from(path, &err), CDMPP_EPARSE);
    }
    tmp_put(&dir, "damaged.ckpt", bytes, n);
    goes_on(path);
    cd_mem_free(bytes);
}

static void another_training(void **s) {
    (void)s;
    const char *path = tmp_path(&dir, "other.ckpt");
    const cd_fit_spec keep = spec;
    const cd_fit_data keep_data = parts;
    until(path, 7, 0, false);
    for (int k = 0; k < 10; k++) {
        cdmpp_err err = {0};
        static double y[N];
        memcpy(y, made.latency_s, sizeof y);
        if (k == 0) spec.seed++;
        if (k == 1) spec.batch--;
        if (k == 2) spec.loss = "1huber_log+0.2rank";
        if (k == 3) spec.optim.decay *= 2;
        if (k == 4) spec.lrate.lr *= 2;
        if (k == 5) spec.net.embed++;
        if (k == 6) y[parts.valid[0]] *= 2, parts.latency_s = y;
        if (k == 7) parts.n_train--;
        if (k == 8) spec.transform = CD_TRANSFORM_BOX_COX;
        if (k == 9) spec.max_epochs++; /* moves the cosine */
        const cdmpp_status st = resume_from(path, &err);
        if (st != CDMPP_EMODEL) fail_msg("case %d: %d", k, (int)st);
        spec = keep;
        parts = keep_data;
    }
    /* nothing depends on the end: go on for longer */
    spec.lrate = cd_learning_rate_of(CD_LEARNING_RATE_CONSTANT, 1e-3);
    until(path, 7, 0, false);
    spec.max_epochs = 5;
    const cd_fit_run run = {.checkpoint = path, .resume = true};
    cd_fit_result a = made_run(&spec, &parts, NULL, &run), b = made_run(&spec, &parts, NULL, NULL);
    assert_same_fit(&a, &b);
    assert_int_equal(a.steps, 40);
    cd_fit_result_free(&a);
    cd_fit_result_free(&b);
    spec = keep;
}

/* Made by hand, with a right checksum: refused with a reason, or the training goes on with other
 * numbers. */
static bool use_forged(const char *p, size_t n) {
    const uint64_t step = 0;
    cdmpp_err err = {0};
    cd_fit_result f;
    const char *path = tmp_put(&dir, "forged.ckpt", p, n);
    const cd_fit_run run = {.checkpoint = path,
                            .checkpoint_every = 0,
                            .resume = true,
                            .tick = stop_at,
                            .ctx = (void *)(uintptr_t)&step};
    const cdmpp_status st = cd_fit(&spec, &parts, NULL, &run, &f, &err);
    if (!st) cd_fit_result_free(&f);
    if (st && (st == CDMPP_ENOMEM || !err.msg[0])) fail_msg("refused with %s", err.msg);
    return !st || st == CDMPP_EINTERRUPTED;
}

static void forged(void **s) {
    (void)s;
    const char *path = tmp_path(&dir, "whole.ckpt");
    char *bytes;
    size_t n;
    cdmpp_err err = {0};
    until(path, 7, 0, false);
    assert_ok(cd_file_read(path, 0, &bytes, &n, &err));
    forge_all(FORGE_CONTAINER, bytes, n, 60, use_forged);
    cd_mem_free(bytes);
}

static void out_of_memory(void **s) {
    (void)s;
    const char *path = tmp_path(&dir, "memory.ckpt");
    until(path, 23, 0, false);
    char *bytes;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_file_read(path, 0, &bytes, &n, &err));
    FAULT_SWEEP(w, 1) {
        cd_fit_result f;
        const cd_fit_run run = {.checkpoint = path, .resume = true};
        tmp_put(&dir, "memory.ckpt", bytes, n);
        w.st = cd_fit(&spec, &parts, NULL, &run, &f, &w.err);
        if (!w.st) cd_fit_result_free(&f);
    }
    cd_mem_free(bytes);
}

TESTS(make, drop, interrupted_anywhere, every_kind, killed_again_and_again, disk_full, damaged,
      another_training, forged, out_of_memory)
