/* What a worker said of a measurement comes out as it came in: the worker is a shell program that
 * gives the same answer to every job. */
#include "profiler/remote/remote.h"

#include <signal.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "tmp.h"

#define TASKS "examples/zen5/zen5.tasks.json.xz"
#define LOG   "examples/zen5/held_out.json"
#define WORKER                                                                                     \
    "echo "                                                                                        \
    "'{\"hello\":\"cdmpp-worker\",\"protocol\":1,\"version\":\"x\",\"device\":\"sh\",\"core_"      \
    "type\":\"little\"}'; "                                                                        \
    "while read -r l; do case $l in *lease*) n=${l#*:}; n=${n%%,*}; echo \"{\\\"lease\\\":$n,"
#define DONE  "}\";; esac; done"
#define COSTS "\\\"costs\\\":[0.5,0.25],\\\"total_s\\\":1,\\\"timestamp\\\":1700000000"

static cdmpp_err err;

/* Two records measured by `worker`: the file of statistics, of *n bytes. */
static const char *core; /* of the next run */
static char *stats_of(const char *worker, int threads, cd_remote_records_tally *t, size_t *n) {
    static const char *const log[] = {LOG};
    static const char *const tasks[] = {TASKS};
    static const char *const host[] = {"one", "two"};
    static volatile sig_atomic_t stop;
    tmp_dir d = tmp_make();
    char stats[256], out[256], *text;
    snprintf(stats, sizeof stats, "%s", tmp_path(&d, "s.jsonl"));
    snprintf(out, sizeof out, "%s", tmp_path(&d, "out.json"));
    const cd_record_output_options output = {.path = out, .stats = stats};
    const cd_record_listener nobody = {0};
    const cd_remote_records_options o = {.host = host,
                                         .n_host = 2,
                                         .transport = worker,
                                         .measure = {.stop = &stop},
                                         .path = log,
                                         .n_path = 1,
                                         .limit = 2,
                                         .threads = threads,
                                         .core = core,
                                         .listener = &nobody};
    cd_record_maker maker = {.dialect = -1};
    cd_record_reader *file;
    cd_record_output *to;
    *t = (cd_remote_records_tally){0};
    assert_ok(cd_record_program_maker_open(&maker, tasks, 1, NULL, &err));
    assert_ok(cd_record_reader_open(log, 1, &file, &err));
    assert_ok(cd_record_output_open(&output, &to, &err));
    assert_ok(cd_remote_records_run(&o, &maker, file, to, t, &err));
    assert_ok(cd_record_output_close(to, &err));
    cd_record_reader_close(file);
    cd_record_program_maker_close(&maker);
    assert_ok(cd_file_read(stats, 0, &text, n, &err));
    tmp_remove(&d);
    return text;
}

/* The first line says who was asked, and with how many threads. */
TEST(who_was_asked) {
    cd_remote_records_tally t;
    size_t n;
    char *text = stats_of(WORKER "\\\"error_no\\\":0," COSTS DONE, 3, &t, &n);
    const char head[] =
        "{\"schema\":\"cdmpp.profile_stats\",\"hosts\":[\"one\",\"two\"],\"threads\":3}\n";
    assert_true(n > sizeof head && !strncmp(text, head, sizeof head - 1));
    assert_true(t.read == 2 && t.measured == 2 && t.failed == 0 && t.lost == 0);
    cd_mem_free(text);
    core = "little";
    text = stats_of(WORKER "\\\"error_no\\\":0," COSTS DONE, 0, &t, &n);
    core = NULL;
    assert_non_null(
        strstr(text, "\"hosts\":[\"one\",\"two\"],\"core_type\":\"little\",\"threads\":0}\n"));
    cd_mem_free(text);
}

/* Every number has another value, so that none can stand in another's place. */
TEST(all_statistics_arrive) {
    static const char *const want[] = {"\"n\":12",
                                       "\"kept\":11",
                                       "\"number\":7",
                                       "\"disturbed\":5",
                                       "\"attempts\":3",
                                       "\"min_s\":0.125",
                                       "\"median_s\":0.25",
                                       "\"mean_s\":0.375",
                                       "\"std_s\":0.0625",
                                       "\"cv\":0.5",
                                       "\"ci\":0.75",
                                       "\"quiet_before\":0.875",
                                       "\"quiet_after\":0.625",
                                       "\"build_s\":1.5",
                                       "\"run_s\":2.5",
                                       "\"max_error\":0.03125",
                                       "\"cycles\":4096",
                                       "\"instructions\":8192",
                                       "\"cache_misses\":64"};
    cd_buf worker = {0};
    cd_remote_records_tally t;
    size_t n;
    cd_buf_putf(&worker, "%s%s%d", WORKER "\\\"error_no\\\":0," COSTS,
                ",\\\"stats\\\":{\\\"flags\\\":", CD_MEASURE_CHECKED);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        cd_buf_putf(&worker, ",\\\"%.*s\\\"%s", (int)strcspn(want[i] + 1, "\""), want[i] + 1,
                    strchr(want[i], ':'));
    cd_buf_puts(&worker, "}" DONE);
    char *text = stats_of(worker.p, 0, &t, &n);
    assert_true(t.measured == 2 && t.lost == 0);
    const char *line = strchr(text, '\n');
    assert_non_null(line);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const char *at = strstr(line, want[i]);
        if (!at || !strchr(",}", at[strlen(want[i])])) fail_msg("no %s in %s", want[i], line);
    }
    cd_mem_free(text);
    cd_buf_free(&worker);
}

TESTS(NULL, NULL, who_was_asked, all_statistics_arrive)
