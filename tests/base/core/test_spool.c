/* A spool: arrays keep what they hold when they rest, memory is given back, and what cannot be is
 * an error. */
#include "base/core/core.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "tmp.h"

enum { MB = 1 << 20, N = 64 * MB / sizeof(uint64_t) };

/* Bytes of files that the process has in memory. */
static size_t file_bytes(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*s %*s %lu", &pages) != 1) abort();
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void arrays_survive_a_rest(void **state) {
    cdmpp_err err = {0};
    cd_spool *s = NULL;
    (void)state;
    assert_ok(cd_spool_new("/var/tmp", 64 * MB, 8 * MB, &s, &err));
    uint64_t *a = cd_spool_take(s, N, sizeof *a);
    double *b = cd_spool_take(s, 3, sizeof *b);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a[0] | a[N - 1], 0);
    const size_t before = file_bytes();
    size_t most = 0;
    for (size_t i = 0; i < N; i++) {
        a[i] = cd_rng_at(7, i);
        if (i % 4096) continue;
        cd_spool_rest(s);
        if (file_bytes() > most) most = file_bytes();
    }
    b[2] = 0.5;
    assert_true(most < before + 16 * MB); /* 64 MB were written */
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(a[i], cd_rng_at(7, i));
        if (i % 4096 == 0) cd_spool_rest(s);
    }
    assert_true(b[2] == 0.5);
    assert_true(cd_spool_bytes(s) >= 64 * MB);
    assert_ok(cd_spool_failed(s, &err));
    cd_spool_free(s);
}

static void little_is_left_in_memory(void **state) {
    cdmpp_err err = {0};
    cd_spool *s = NULL;
    (void)state;
    assert_ok(cd_spool_new("/var/tmp", 64 * MB, 8 * MB, &s, &err));
    char *a = cd_spool_take(s, MB, 1);
    const size_t before = file_bytes();
    memset(a, 1, MB);
    cd_spool_rest(s); /* less than it may have: nothing happens */
    assert_true(file_bytes() >= before + MB / 2);
    cd_spool_free(s);
}

static void nothing_is_left_in_the_folder(void **state) {
    cdmpp_err err = {0};
    cd_spool *s = NULL;
    tmp_dir d = tmp_make();
    (void)state;
    assert_ok(cd_spool_new(d.path, 1, MB, &s, &err));
    assert_string_equal(cd_spool_folder(s), d.path);
    assert_non_null(cd_spool_take(s, 1, 1));
    assert_int_equal(rmdir(d.path), 0); /* empty, while the file is in use */
    cd_spool_free(s);
}

static void refused(void **state) {
    cdmpp_err err = {0};
    cd_spool *s = NULL;
    (void)state;
    assert_status(cd_spool_new("/no/such/folder", 1, MB, &s, &err), CDMPP_EIO);
    if (access("/dev/shm", W_OK) == 0)
        assert_status(cd_spool_new("/dev/shm", 1, MB, &s, &err), CDMPP_EUNSUPPORTED);
    assert_ok(cd_spool_new("", 1, MB, &s, &err));
    assert_null(cd_spool_take(s, SIZE_MAX / 2, 8));
    assert_status(cd_spool_failed(s, &err), CDMPP_ENOMEM);
    assert_null(cd_spool_take(s, (size_t)1 << 60, 1)); /* more than any disk */
    assert_status(cd_spool_failed(s, &err), CDMPP_EIO);
    cd_spool_free(s);
    cd_spool_free(NULL);
    cd_spool_rest(NULL);
}

/* $TMPDIR in memory, or with too little room: /var/tmp; a folder that was named is not replaced. */
static void another_folder_than_tmpdir(void **state) {
    cdmpp_err err = {0};
    cd_spool *s = NULL;
    (void)state;
    const char *was = getenv("TMPDIR");
    char *keep = was ? strdup(was) : NULL;
    setenv("TMPDIR", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/no/such/folder", 1);
    assert_ok(cd_spool_new("", 1, MB, &s, &err));
    assert_string_equal(cd_spool_folder(s), "/var/tmp");
    cd_spool_free(s);
    /* more than any disk */
    assert_status(cd_spool_new("", (size_t)1 << 60, MB, &s, &err), CDMPP_EIO);
    assert_non_null(strstr(err.msg, "expected a folder with room for 1099511627776 MB, found "));
    assert_non_null(strstr(err.msg, "nor does $TMPDIR do"));
    assert_status(cd_spool_new("/var/tmp", (size_t)1 << 60, MB, &s, &err), CDMPP_EIO);
    assert_null(strstr(err.msg, "TMPDIR"));
    tmp_dir d = tmp_make();
    setenv("TMPDIR", d.path, 1);
    const cdmpp_status st = cd_spool_new("", 1, MB, &s, &err);
    assert_ok(st);
    cd_spool_free(s);
    if (keep) setenv("TMPDIR", keep, 1);
    else unsetenv("TMPDIR");
    free(keep);
    tmp_remove(&d);
}

/* On disk and in memory: another process sees what this one wrote, without a name in between, and
 * cannot change it. */
static void another_process_reads(void **state) {
    (void)state;
    for (int disk = 0; disk < 2; disk++) {
        cdmpp_err err = {0};
        cd_spool *s = NULL;
        int status = -1;
        assert_ok(cd_spool_new(disk ? "/var/tmp" : NULL, MB, MB, &s, &err));
        assert_true(cd_spool_on_disk(s) == (disk != 0));
        if (!disk) assert_string_equal(cd_spool_folder(s), "");
        uint64_t *a = cd_spool_take(s, 1000, sizeof *a);
        char *b = cd_spool_take(s, 3, 1);
        assert_non_null(a);
        assert_non_null(b);
        for (size_t i = 0; i < 1000; i++) a[i] = cd_rng_at(7, i);
        memcpy(b, "ok", 3);
        const cd_spool_place place = cd_spool_place_of(s);
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            cd_spool *o = NULL;
            cd_spool_free(s); /* not by what it has from its parent */
            if (cd_spool_open(place, MB, &o, NULL) || cd_spool_on_disk(o) != (disk != 0)) _exit(1);
            const uint64_t *x = cd_spool_take(o, 1000, sizeof *x);
            const char *y = cd_spool_take(o, 3, 1);
            cd_spool_rest(o);
            for (size_t i = 0; x && i < 1000; i++)
                if (x[i] != cd_rng_at(7, i)) _exit(2);
            if (!x || !y || strcmp(y, "ok") != 0) _exit(3);
            /* there is no more */
            if (cd_spool_take(o, MB, 1) || cd_spool_failed(o, NULL) == CDMPP_OK) _exit(4);
            signal(SIGSEGV, SIG_DFL);
            *(char *)(uintptr_t)y = 'n';
            _exit(5);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) > 5); /* a sanitizer exits itself */
        assert_string_equal(b, "ok");
        cd_spool_free(s);
        assert_status(cd_spool_open(place, MB, &s, &err), CDMPP_EIO);
    }
    assert_false(cd_spool_on_disk(NULL));
}

TESTS(NULL, NULL, another_folder_than_tmpdir, arrays_survive_a_rest, another_process_reads,
      little_is_left_in_memory, nothing_is_left_in_the_folder, refused)
