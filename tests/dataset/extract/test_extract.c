/* extract: the same file for any -j, after ^C, after kill -9, from shards; what
 * is skipped is said; a full disk leaves the old file alone. */
#include "dataset/extract/extract.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "check.h"
#include "dataset/file/file.h"
#include "fake_engine.h"
#include "scratch.h"

#define N_FILE 7
#define N_LINE 400

static const char *const key[] = {"[\\\"a\\\", 1]", "[\\\"b\\\", 2]", "[\\\"c\\\", 3]",
                                  "[\\\"none\\\"]"};

static void put_line(FILE *f, unsigned file, unsigned i) {
    const unsigned id = file * N_LINE + i;
    if (i % 61 == 7) fprintf(f, "# a comment\n");
    if (i % 101 == 9) fprintf(f, "{\"i\": [[\"cut off\n");
    else if (i % 67 == 11) fprintf(f, "\xff\xfe\n");
    else
        fprintf(f,
                "{\"i\": [[\"%s\", \"%s\", [1, 64, 64, 0, 0, 0, 0, 0], \"\", 1, []], [[], [%s]]], "
                "\"r\": [[%s], %d, 0.5, %u], \"v\": \"v0.6\"}\n",
                key[i % 53 == 13 ? 3 : id % 3],
                file % 2 ? "llvm -model=zen5" : "cuda -keys=cuda,gpu",
                i % 71 == 3 ? "" : "[\"CI\", 1]",
                i % 29 == 5 ? "1e+10" : "3e-06, 1e-06, 2e-06, 5e-06", i % 29 == 5 ? 4 : 0, id);
}

/* logs/dev0/0.json ... logs/dev1/6.json */
static const char *logs(void) {
    static char dir[256];
    char path[300];
    if (dir[0]) return dir;
    snprintf(dir, sizeof dir, "%s", scratch("logs"));
    assert_int_equal(mkdir(dir, 0777), 0);
    for (unsigned k = 0; k < N_FILE; k++) {
        snprintf(path, sizeof path, "%s/dev%u", dir, k / 4);
        if (k % 4 == 0) assert_int_equal(mkdir(path, 0777), 0);
        snprintf(path, sizeof path, "%s/dev%u/%u.json", dir, k / 4, k);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        for (unsigned i = 0; i < N_LINE + 50 * k; i++) put_line(f, k, i);
        fclose(f);
    }
    return dir;
}

static const char *input[1];
static cd_extract options(const char *out, int jobs) {
    static const cd_net_entry net[] = {{"n1", "[\"a\", 1]", 2}, {"n0", "[\"b\", 2]", 1}};
    input[0] = logs();
    return (cd_extract){.out = out,
                        .input = input,
                        .n_input = 1,
                        .engine = fake_engine,
                        .net = net,
                        .n_net = 2,
                        .jobs = jobs,
                        .command_line = "test"};
}

/* The file that all others are compared with. */
static const char *whole(cd_extract_stats *s) {
    static char path[256];
    static cd_extract_stats kept;
    cdmpp_err err = {0};
    if (!path[0]) {
        snprintf(path, sizeof path, "%s", scratch("whole.h5"));
        const cd_extract x = options(path, 1);
        assert_ok(cd_extract_run(&x, &kept, &err));
    }
    if (s) *s = kept;
    return path;
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

TEST(contents) {
    cdmpp_err err = {0};
    cd_extract_stats s;
    cd_dataset *d = NULL;
    const char *path = whole(&s);
    assert_ok(cd_dataset_load(&path, 1, &d, &err));
    assert_int_equal(d->n, s.programs);
    assert_int_equal(d->n_row, s.rows);
    /* rejected: kept and listed */
    assert_int_equal(s.records, s.programs + s.skipped - s.reason[CDMPP_EREJECTED]);
    assert_true(s.reason[CDMPP_EPARSE] > 20 && s.reason[CDMPP_ENOTASK] > 20 &&
                s.reason[CDMPP_EREJECTED] > 20);
    assert_int_equal(d->n_device, 3); /* -model=zen5, else the folder */
    assert_string_equal(d->device_name[0], "dev0");
    assert_string_equal(d->device_name[1], "zen5");
    assert_int_equal(d->n_source, N_FILE);
    assert_int_equal(d->n_network, 2);
    size_t failed = 0, rejected = 0;
    for (size_t i = 0; i < d->n; i++) {
        const float *row = d->row + (size_t)d->row_ptr[i] * d->n_col;
        failed += d->error[i] == 4;
        if (d->error[i] == CD_LABEL_REJECTED) {
            rejected++;
            assert_int_equal(d->row_ptr[i + 1] - d->row_ptr[i], 1);
            for (size_t k = 0; k < d->n_col; k++) assert_true(row[k] == 0.0F);
        }
        if (d->error[i])
            assert_true((d->error[i] == 4 || d->error[i] == CD_LABEL_REJECTED) &&
                        isnan(d->latency_s[i]) && d->repeats[i] == 0);
        else {
            assert_close(d->latency_s[i], 2.5e-6, 1e-15, 0);
            assert_close(d->latency_mean_s[i], 2.75e-6, 1e-15, 0);
            assert_close(d->latency_min_s[i], 1e-6, 1e-15, 0);
            assert_close(d->latency_std_s[i], sqrt((0.0625 + 3.0625 + 0.5625 + 5.0625) / 4) * 1e-6,
                         1e-12, 0);
            assert_int_equal(d->repeats[i], 4);
        }
    }
    assert_int_equal(failed, s.failed);
    assert_int_equal(rejected, s.reason[CDMPP_EREJECTED]);
    assert_int_equal(d->source_line[0], 1);
    assert_true(d->is_gpu[0]);
    cd_dataset_free(d);
}

/* One line of the table for each skipped line, with its place and reason. */
TEST(skipped_table) {
    cd_extract_stats s;
    char path[300];
    size_t n = 0, lines = 0;
    snprintf(path, sizeof path, "%s.skipped.tsv", whole(&s));
    char *text = (char *)scratch_read(path, &n);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    assert_int_equal(lines, s.skipped);
    assert_non_null(strstr(text, "dev0/0.json\t4\tEREJECTED\tno steps\n"));
    assert_non_null(strstr(text, "\tENOTASK\ti[0][0]: no task file defines [\"none\"]\n"));
    free(text);
}

TEST(same_for_any_jobs) {
    for (int jobs = 2; jobs <= 5; jobs += 3) {
        cdmpp_err err = {0};
        cd_extract_stats s;
        const char *path = scratch("jobs.h5");
        const cd_extract x = options(path, jobs);
        assert_ok(cd_extract_run(&x, &s, &err));
        assert_true(scratch_same(path, whole(NULL)));
    }
}

TEST(strict) {
    cdmpp_err err = {0};
    cd_extract_stats s;
    cd_extract x = options(scratch("strict.h5"), 2);
    x.strict = true;
    /* the first in the order of the input */
    assert_status(cd_extract_run(&x, &s, &err), CDMPP_EREJECTED);
    assert_int_equal(err.line, 4);
    assert_non_null(strstr(err.path, "dev0/0.json"));
    assert_false(exists(x.out));
    assert_false(exists(scratch("strict.h5.partial")));
}

static volatile sig_atomic_t stop;
static atomic_int builds_left;
static void stop_later(void) {
    if (atomic_fetch_sub(&builds_left, 1) == 1) __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

TEST(stop_and_go_on) {
    cdmpp_err err = {0};
    cd_extract_stats s;
    const char *path = scratch("stop.h5");
    cd_extract x = options(path, 3);
    cdmpp_status st = CDMPP_EINTERRUPTED;
    int rounds = 0;
    x.stop = &stop;
    fake_hook = stop_later;
    for (; st == CDMPP_EINTERRUPTED; rounds++) {
        stop = 0;
        builds_left = 500;
        st = cd_extract_run(&x, &s, &err);
        assert_int_equal(exists(path), st == CDMPP_OK);
    }
    fake_hook = NULL;
    assert_int_equal(st, CDMPP_OK);
    assert_true(rounds > 3 && s.resumed > 0);
    assert_true(scratch_same(path, whole(NULL)));
    assert_false(exists(scratch("stop.h5.partial")));
}

static void slow(void) {
    const struct timespec t = {0, 20000};
    nanosleep(&t, NULL);
}

/* Kill a run at some moment; true when it had ended by itself. */
static bool run_and_kill(const cd_extract *x, long microseconds) {
    const struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        cd_extract_stats s;
        fake_hook = slow;
        _exit(cd_extract_run(x, &s, NULL) == CDMPP_OK ? 0 : 1);
    }
    nanosleep(&t, NULL);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFEXITED(status);
}

TEST(kill_and_go_on) {
    const char *path = scratch("kill.h5");
    cd_extract x = options(path, 2);
    uint32_t seed = 12345;
    int kills = 0;
    /* a slow machine or a sanitizer takes a few more kills, not ten times as many */
    double longer = 1;
    (void)whole(NULL);
    x.checkpoint_s = 1e-3;
    scratch_write(path, "old", 3);
    while (kills < 2000) {
        seed = seed * 1664525u + 1013904223u;
        if (run_and_kill(&x, (long)(longer * (2000 + (seed >> 8) % 30000)))) break;
        kills++, longer *= 1.03;
    }
    print_message("%d kills\n", kills);
    assert_true(kills > 3);
    assert_true(scratch_same(path, whole(NULL)));
    assert_false(exists(scratch("kill.h5.partial")));
}

/* A checkpoint or journal that is damaged or of other inputs: a fresh start. */
static void useless_partial(void **state) {
    cdmpp_err err = {0};
    cd_extract_stats s;
    const char *path = scratch("useless.h5"), *part[] = {"state", "journal"};
    cd_extract x = options(path, 2);
    char file[300];
    (void)state;
    x.stop = &stop;
    x.checkpoint_s = 1e-3;
    for (int k = 0; k < 2; k++) {
        stop = 0;
        builds_left = 1000;
        fake_hook = stop_later;
        assert_status(cd_extract_run(&x, &s, &err), CDMPP_EINTERRUPTED);
        fake_hook = NULL;
        stop = 0;
        snprintf(file, sizeof file, "%s.partial/%s", path, part[k]);
        scratch_write(file, "damaged", 7);
        err = (cdmpp_err){0};
        assert_ok(cd_extract_run(&x, &s, &err));
        assert_int_equal(s.resumed, 0);
        assert_true(scratch_same(path, whole(NULL)));
    }
}

TEST(shards) {
    cdmpp_err err = {0};
    cd_extract_stats s, all;
    static char path[4][256];
    const char *part[4], *out = scratch("merged.h5"), *one = whole(&all);
    cd_dataset *a = NULL, *b = NULL;
    uint64_t records = 0;
    for (unsigned i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "part%u.h5", i);
        snprintf(path[i], sizeof path[i], "%s", scratch(name));
        part[i] = path[i];
        cd_extract x = options(part[i], 1);
        x.shard = i + 1, x.n_shard = 4;
        assert_ok(cd_extract_run(&x, &s, &err));
        records += s.records;
    }
    assert_int_equal(records, all.records);
    assert_ok(cd_merge(out, part, 4, "merge", &s, &err));
    assert_int_equal(s.programs, all.programs);
    assert_int_equal(s.failed, all.failed);
    assert_ok(cd_dataset_load(&out, 1, &a, &err));
    assert_ok(cd_dataset_load(&one, 1, &b, &err));
    assert_string_equal(a->content_digest, b->content_digest); /* all arrays, AST included */
    assert_int_equal(a->n_net_task, b->n_net_task);
    cd_dataset_free(a);
    cd_dataset_free(b);
    part[1] = scratch("nothing.h5");
    assert_status(cd_merge(out, part, 4, "merge", &s, &err), CDMPP_EIO);
    assert_ok(cd_dataset_load(&out, 1, &a, &err)); /* still the old one */
    cd_dataset_free(a);
}

/* Of all but those that have none, and of no rejected ones; those of GPU programs are their own.
 * The tests that compare whole files see that they do not depend on threads, stops and kills. */
TEST(facts) {
    cdmpp_err err = {0};
    cd_dataset *d = NULL;
    const char *path = whole(NULL);
    size_t n[5] = {0};
    assert_ok(cd_dataset_load_within(
        &path, 1, &(cd_dataset_options){.facts = true, .as_written = true}, &d, &err));
    for (size_t i = 0; i < d->n; i++) {
        const float *row = d->row + d->row_ptr[i] * CD_N_COL;
        const uint8_t want = d->error[i] == CD_LABEL_REJECTED ? CD_FACTS_ABSENT
                             : (int)(row[0] * 64) % 8 == 3    ? CD_FACTS_UNSUPPORTED
                             : d->is_gpu[i]                   ? CD_FACTS_THERE_GPU
                                                              : CD_FACTS_THERE;
        assert_int_equal(d->facts_state[i], want);
        if (cd_facts_are_there(want))
            assert_memory_equal(d->facts + i * CD_N_FACTS, row + (want == CD_FACTS_THERE_GPU),
                                CD_N_FACTS * sizeof *row);
        n[want]++;
    }
    assert_true(n[CD_FACTS_THERE] > 1000 && n[CD_FACTS_THERE_GPU] > 100 &&
                n[CD_FACTS_UNSUPPORTED] > 100 && n[CD_FACTS_ABSENT] > 10);
    cd_dataset_free(d);
}

/* Steps are kept when they are asked for, of rejected programs too; a run without them does not go
 * on from one with them. */
TEST(steps) {
    cdmpp_err err = {0};
    cd_extract_stats s;
    cd_dataset *d = NULL;
    const char *path = scratch("steps.h5"), *plain = whole(NULL);
    cd_extract x = options(path, 2);
    size_t n_ci = 0;
    x.steps = true;
    assert_ok(cd_extract_run(&x, &s, &err));
    assert_ok(cd_dataset_load_within(&path, 1, &(cd_dataset_options){.steps = true}, &d, &err));
    assert_int_equal(d->n, s.programs);
    for (size_t i = 0; i < d->n; i++) {
        const int32_t *c = d->step + d->step_ptr[i];
        const int64_t n = d->step_ptr[i + 1] - d->step_ptr[i];
        assert_true(d->error[i] == CD_LABEL_REJECTED
                        ? n == 0
                        : n == 3 && c[0] == CD_RECORD_STEP_CI && c[1] == 1 && c[2] == 1);
        n_ci += n == 3;
    }
    assert_true(n_ci > 1000 && n_ci < d->n);
    cd_dataset_free(d);
    assert_ok(cd_dataset_load(&plain, 1, &d, &err));
    assert_null(d->step);
    cd_dataset_free(d);
    cd_inputs in;
    char with[65], without[65];
    assert_ok(cd_inputs_list(&x, &in, &err));
    assert_ok(cd_inputs_fingerprint(&x, &in, with, &err));
    x.steps = false;
    assert_ok(cd_inputs_fingerprint(&x, &in, without, &err));
    assert_string_not_equal(with, without);
    cd_inputs_free(&in);
}

/* A limit on file size acts like a full disk. */
TEST(disk_full) {
    const char *path = scratch("full.h5");
    (void)whole(NULL);
    scratch_write(path, "old", 3);
    for (rlim_t limit = 0; limit < 400000; limit = limit * 3 + 1000) {
        int status = 0;
        size_t n = 0;
        const pid_t child = fork();
        if (child == 0) {
            cdmpp_err err = {0};
            cd_extract_stats s;
            const struct rlimit r = {limit, limit};
            const cd_extract x = options(path, 1);
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &r);
            const cdmpp_status st = cd_extract_run(&x, &s, &err);
            exit(st == CDMPP_EIO && strstr(err.msg, strerror(EFBIG)) ? 0 : 1);
        }
        waitpid(child, &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        unsigned char *now = scratch_read(path, &n);
        assert_true(n == 3 && memcmp(now, "old", 3) == 0);
        free(now);
    }
    cdmpp_err err = {0};
    cd_extract_stats s;
    const cd_extract x = options(path, 1);
    assert_ok(cd_extract_run(&x, &s, &err));
    assert_true(scratch_same(path, whole(NULL)));
}

TEST(bad_inputs) {
    cdmpp_err err = {0};
    cd_extract_stats s;
    cd_extract x = options(scratch("bad.h5"), 1);
    const char *none = scratch("no such log");
    x.input = &none;
    assert_status(cd_extract_run(&x, &s, &err), CDMPP_EIO);
    assert_non_null(strstr(err.path, "no such log"));
    assert_int_equal(mkdir(none, 0777), 0);
    err = (cdmpp_err){0};
    assert_status(cd_extract_run(&x, &s, &err), CDMPP_EUSAGE);
    assert_false(exists(scratch("bad.h5.partial")));
}

TESTS(NULL, NULL, contents, skipped_table, same_for_any_jobs, strict, stop_and_go_on,
      kill_and_go_on, useless_partial, shards, facts, steps, disk_full, bad_inputs)
