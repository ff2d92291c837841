/* A run that is stopped after its first program: its record is in the file, few programs were
 * compiled before it, and the next run goes on there. */
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/io/io.h"
#include "check.h"
#include "prog.h"
#include "profiler/records/records.h"
#include "tmp.h"

enum { TRIALS = 24, SOON = 8 };
static cdmpp_err err;
static const char *const made[] = {
    "\"ops\": [{\"name\": \"A\", \"shape\": [32, 64], \"dtype\": \"float32\"}, {\"name\": \"B\", "
    "\"shape\": [64, 48], \"dtype\": \"float32\"},"
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 32], [\"j\", 0, 48]], \"reduce_axis\": [[\"k\", 0, "
    "64]],"
    "\"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}]"};
static volatile sig_atomic_t stop;
static cd_record_stats sum;
static size_t first_lines; /* that were read when the first program had its record */

static cdmpp_status put(void *ctx, const cd_record_measured *m, cdmpp_err *e) {
    (void)ctx, (void)m, (void)e;
    if (!first_lines) first_lines = sum.lines;
    stop = 1;
    return CDMPP_OK;
}

/* One processor, so that no step overlaps with another one: what was read before the first record
 * does not depend on the machine. */
static void on_one_processor(void) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (size_t k = 0; k < CPU_SETSIZE && !CPU_COUNT(&one); k++)
        if (CPU_ISSET(k, &all)) CPU_SET(k, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
}

static cdmpp_status run(const cd_task_registry *t, const char *log, const char *to) {
    const cd_record_measure_options o = {.measure = {.jobs = 1, .stop = &stop, .timing = {0}},
                                         .path = &log,
                                         .n_path = 1,
                                         .rounds = 1,
                                         .threads = 1,
                                         .jobs = 1};
    const cd_record_output_options oo = {.path = to, .more = put};
    cd_record_maker maker = {.tasks = t, .dialect = -1, .threads = 1, .cpus = 1};
    cd_record_reader *file;
    cd_record_output *out;
    cd_measure *m;
    stop = 0;
    first_lines = 0;
    cd_record_stats_begin(&sum, 0);
    assert_ok(cd_measure_open(&o.measure, &m, &err));
    assert_ok(cd_program_new(&maker.program, &err));
    assert_ok(cd_record_reader_open(&log, 1, &file, &err));
    assert_ok(cd_record_output_open(&oo, &out, &err));
    const cdmpp_status st = cd_record_measure_run(&o, m, &maker, file, out, &sum, &err);
    assert_ok(cd_record_output_close(out, &err));
    cd_record_reader_close(file);
    cd_program_free(maker.program);
    cd_measure_close(m);
    return st;
}

static size_t lines_of(const char *path) {
    char *data;
    size_t n, lines = 0;
    assert_ok(cd_file_read(path, 0, &data, &n, &err));
    for (size_t k = 0; k < n; k++) lines += data[k] == '\n';
    cd_mem_free(data);
    return lines;
}

TEST(a_run_that_is_stopped_has_its_records) {
    cd_task_registry *t;
    cd_random_schedules *d;
    cd_buf all = {0};
    size_t n = 0;
    tmp_dir dir = tmp_make();
    const cd_random_schedules_options ro = {
        .trials = TRIALS,
        .seed = 3,
        .target = "llvm",
        .hardware = {.num_cores = 1, .vector_unit_bytes = 32, .cache_line_bytes = 64}};
    assert_ok(prog_tasks(made, 1, &t, &err));
    assert_ok(cd_random_schedules_new(t, &ro, &d, &err));
    const cd_record_listener quiet = {0};
    assert_ok(cd_random_schedules_all(d, &quiet, &stop, &all, &n, &err));
    cd_random_schedules_free(d);
    assert_int_equal(n, TRIALS);
    const char *log = tmp_put(&dir, "drawn.json", all.p, all.n), *out = tmp_path(&dir, "out.json");
    on_one_processor();
    for (size_t k = 1; k <= 2; k++) { /* the second run measures one more */
        assert_status(run(t, log, out), CDMPP_EINTERRUPTED);
        assert_int_equal(lines_of(out), k);
        assert_int_equal(sum.known, k - 1);
        assert_in_range(first_lines, 1, SOON);
    }
    cd_buf_free(&all);
    cd_task_registry_free(t);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, a_run_that_is_stopped_has_its_records)
