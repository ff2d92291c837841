/* Drawn records are records: read back, lower, differ, and are the same again. */
#include <string.h>

#include "check.h"
#include "prog.h"
#include "features/task/task.h"
#include "profiler/records/records.h"

static const char *const made[] = {
    "\"ops\": [{\"name\": \"A\", \"shape\": [96, 64], \"dtype\": \"float32\"},"
    "{\"name\": \"B\", \"axis\": [[\"i\", 0, 96], [\"j\", 0, 64]], \"body\": \"max(A[i, j], "
    "0.0)\"}]",
    "\"ops\": [{\"name\": \"A\", \"shape\": [32, 64], \"dtype\": \"float32\"}, {\"name\": \"B\", "
    "\"shape\": [64, 48], \"dtype\": \"float32\"},"
    "{\"name\": \"C\", \"axis\": [[\"i\", 0, 32], [\"j\", 0, 48]], \"reduce_axis\": [[\"k\", 0, "
    "64]],"
    "\"reduce\": \"sum\", \"body\": \"A[i, k]*B[k, j]\"}]",
    /* One program only: too small a space for any number of trials. */
    "\"ops\": [{\"name\": \"A\", \"shape\": [1], \"dtype\": \"float32\"}, {\"name\": \"B\", "
    "\"axis\": [[\"i\", 0, 1]], \"body\": \"A[i]\"}]",
};

static cd_task_registry *tasks(void) {
    cd_task_registry *t;
    cdmpp_err err = {0};
    assert_ok(prog_tasks(made, 3, &t, &err));
    return t;
}

static const cd_hardware cpu = {.num_cores = 2, .vector_unit_bytes = 64, .cache_line_bytes = 64};

/* All lines; how many of each task. */
static void all(const cd_task_registry *t, cd_random_schedules_options o, cd_buf *out,
                size_t count[3]) {
    cd_random_schedules *d;
    cdmpp_err err = {0};
    cd_arena a = {0};
    cd_program *p;
    memset(count, 0, 3 * sizeof *count);
    assert_ok(cd_random_schedules_new(t, &o, &d, &err));
    assert_ok(cd_program_new(&p, &err));
    for (size_t from = 0;; from = out->n) {
        cd_record r;
        assert_ok(cd_random_schedules_next(d, out, &err));
        if (out->n == from) break;
        assert_ok(cd_record_read(&a, out->p + from, out->n - from, &r, &err));
        assert_int_equal(r.error_no, 8);
        assert_true(r.cost_s[0] == 1e10);
        const cd_task *task = cd_task_registry_find(t, r.workload_key);
        assert_ok(cd_program_lower(p, task, &r, &err));
        count[cd_task_registry_index(t, task)]++;
    }
    cd_program_free(p);
    cd_random_schedules_free(d);
    cd_arena_free(&a);
}

TEST(test_lines) {
    cd_task_registry *t = tasks();
    cd_buf one = {0}, two = {0}, other = {0};
    size_t n[3];
    all(t,
        (cd_random_schedules_options){.trials = 12, .seed = 3, .target = "llvm", .hardware = cpu},
        &one, n);
    assert_in_range(n[0], 1, 12); /* element by element: little to choose */
    assert_int_equal(n[1], 12);
    assert_in_range(n[2], 1, 4);
    all(t,
        (cd_random_schedules_options){.trials = 12, .seed = 3, .target = "llvm", .hardware = cpu},
        &two, n);
    assert_string_equal(one.p, two.p);
    all(t,
        (cd_random_schedules_options){.trials = 12, .seed = 4, .target = "llvm", .hardware = cpu},
        &other, n);
    assert_string_not_equal(one.p, other.p);
    cd_buf_free(&one);
    cd_buf_free(&two);
    cd_buf_free(&other);
    cd_task_registry_free(t);
}

TEST(test_gpu) {
    cd_task_registry *t = tasks();
    cd_buf b = {0};
    size_t n[3];
    const cd_hardware gpu = {-1, 16, 64, 49152, INT32_MAX, 1024, 8, 32};
    all(t, (cd_random_schedules_options){.trials = 5, .target = "cuda", .hardware = gpu}, &b, n);
    assert_int_equal(n[1], 5);
    assert_non_null(strstr(b.p, "\"cuda\""));
    cd_buf_free(&b);
    cd_task_registry_free(t);
}

/* Hardware that no program fits: each task says so once, and the draws end. */
TEST(test_no_schedules) {
    cd_task_registry *t = tasks();
    cd_random_schedules *d;
    cdmpp_err err = {0};
    cd_buf b = {0};
    assert_ok(
        cd_random_schedules_new(t, &(cd_random_schedules_options){.target = "cuda"}, &d, &err));
    for (int k = 0; k < 3; k++)
        assert_int_equal(cd_random_schedules_next(d, &b, &err), CDMPP_EINVALID);
    assert_ok(cd_random_schedules_next(d, &b, &err));
    assert_int_equal(b.n, 0);
    cd_random_schedules_free(d);
    cd_buf_free(&b);
    cd_task_registry_free(t);
}

TESTS(NULL, NULL, test_lines, test_gpu, test_no_schedules)
