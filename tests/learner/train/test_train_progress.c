/* The line of a training: losses, rate, remaining time, and when it is shown. */
#include "learner/train/train.h"
#include "check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static cd_log lg;
static FILE *file;
static char text[8192];

/* The log so far, and empty it. */
static const char *said(void) {
    fflush(file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    rewind(file);
    assert_int_equal(ftruncate(fileno(file), 0), 0);
    return text;
}

static int setup(void **s) {
    (void)s;
    file = tmpfile();
    cd_log_init(&lg, "x", file);
    return file ? 0 : 1;
}
static int teardown(void **s) {
    (void)s;
    cd_log_done(&lg);
    return fclose(file);
}

static cd_progress_event step(const char *member, uint64_t k, bool end) {
    return (cd_progress_event){.member = member,
                               .unit = "round",
                               .step = k,
                               .n_step = 100,
                               .n_sample = 1000,
                               .train = 0.5,
                               .valid = 0.25,
                               .n_member = 2,
                               .end = end};
}

/* 1000 samples a step, one step each second after the first. */
static void figures(void **s) {
    (void)s;
    cd_train_progress p;
    cd_train_progress_begin(&p, &lg);
    assert_false(p.tty);
    assert_true(isinf(p.every_s)); /* nobody asked for lines */
    p.every_s = 10;
    for (uint64_t k = 1; k <= 11; k++) {
        const cd_progress_event t = step("rows", k, false);
        cd_train_progress_step_at(&p, &t, 100 + (double)k);
    }
    assert_close(cd_train_progress_rate(&p, 111), 1000, 1e-12, 0);
    /* 89 steps, and 100 of a member to come */
    assert_close(cd_train_progress_eta(&p, 111), 189, 1e-12, 0);
    assert_string_equal(
        said(),
        "x: 0:10 rows: round 11/100, loss 0.5 train, 0.25 validation; 1k samples/s, ETA 3:09\n");
    cd_progress_event t = step("program", 1, false);
    t.train = NAN;
    cd_train_progress_step_at(&p, &t, 112);
    assert_close(cd_train_progress_eta(&p, 112), (89 + 99) * 11.0 / 11, 1e-12, 0);
    t = step("rows", 12, true); /* early stopping: nothing left there */
    cd_train_progress_step_at(&p, &t, 113);
    assert_close(cd_train_progress_eta(&p, 113), 99 * 12.0 / 12, 1e-12, 0);
    assert_string_equal(said(), ""); /* 10 s have not passed */
    t = step("program", 2, false);
    t.train = NAN;
    cd_train_progress_step_at(&p, &t, 121);
    assert_string_equal(
        said(), "x: 0:20 program: round 2/100, loss 0.25 validation; 650 samples/s, ETA 2:31\n");
    cd_train_progress_end(&p);
    assert_non_null(strstr(said(), "x: trained on 14k samples in "));
}

static void terminal(void **s) {
    (void)s;
    cd_train_progress p;
    cd_train_progress_begin(&p, &lg);
    p.tty = true, p.every_s = 0.2, p.width = 200;
    cd_progress_event t = step("rows", 1, false);
    cd_train_progress_step_at(&p, &t, 0);
    t = step("program", 1, false);
    cd_train_progress_step_at(&p, &t, 1);
    assert_string_equal(said(),
                        "\rrows 1/100 0.25 | program 1/100 0.25 | 1k samples/s | ETA 3:18\033[K");
    t.step = 2;
    cd_train_progress_step_at(&p, &t, 1.1); /* too early */
    assert_string_equal(said(), "");
    t = step("rows", 2, true);
    cd_train_progress_step_at(&p, &t, 2);
    assert_string_equal(said(), "\rprogram 2/100 0.25 | 1.5k samples/s | ETA 1:05\033[K");
    p.width = 20;
    cd_train_progress_step_at(&p, &t, 3);
    assert_string_equal(said(), "\rprogram 2/100 0.25 \033[K");
    cd_train_progress_end(&p); /* clears the line first */
    assert_memory_equal(said(), "\r\033[Kx: trained on 4k samples in ", 31);
}

static void levels(void **s) {
    (void)s;
    cd_train_progress p;
    const cd_progress_event t = step("rows", 1, false);
    lg.level = CD_LOG_ERROR;
    cd_train_progress_begin(&p, &lg);
    p.every_s = 0;
    cd_train_progress_step_at(&p, &t, 1);
    cd_train_progress_end(&p);
    assert_string_equal(said(), "");
    lg.level = CD_LOG_DEBUG; /* every step */
    cd_train_progress_begin(&p, &lg);
    cd_train_progress_step_at(&p, &t, 1);
    cd_train_progress_step_at(&p, &t, 1.5);
    const char *a = said();
    assert_non_null(strstr(a, "x: 0:00 rows: round 1/100, loss 0.5 train, 0.25 validation; 0 "
                              "samples/s, ETA ?\nx: 0:01 "));
    cd_train_progress_end(&p);
    said();
    lg.level = CD_LOG_INFO;
    cd_train_progress_begin(&p, &lg); /* nothing happened: nothing to say */
    cd_train_progress_end(&p);
    assert_string_equal(said(), "");
}

static void many_members(void **s) {
    (void)s;
    cd_train_progress p;
    char name[64];
    cd_train_progress_begin(&p, &lg);
    for (int k = 0; k < CD_TRAIN_PROGRESS_MEMBERS + 3; k++) {
        snprintf(name, sizeof name, "a member with quite a long name %d", k);
        if (k % 2 == 0) memmove(name, name + 20, strlen(name + 20) + 1);
        const cd_progress_event t = step(name, 1, false);
        cd_train_progress_step_at(&p, &t, k);
    }
    assert_true(p.n_member <= CD_TRAIN_PROGRESS_MEMBERS);
    cd_train_progress_end(&p);
    said();
}

TESTS(setup, teardown, figures, terminal, levels, many_members)
