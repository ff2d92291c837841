/* Descriptors of devices from their records: by programs that all have run, else by best records;
 * nothing to compare by. */
#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "profiler/describe/describe.h"
#include "profiler/records/records.h"
#include "tmp.h"

#include <stdio.h>
#include <string.h>

static cdmpp_err err;
static cd_task_registry *tasks;
static cd_buf held; /* lines of examples/zen5/held_out.json */

static int up(void **state) {
    char *text;
    size_t n;
    (void)state;
    if (cd_task_registry_new(&tasks, &err) ||
        cd_task_registry_load(tasks, "examples/zen5/zen5.tasks.json.xz", &err))
        return -1;
    if (cd_file_read("examples/zen5/held_out.json", 0, &text, &n, &err)) return -1;
    cd_buf_put(&held, text, n);
    cd_mem_free(text);
    return 0;
}

static int down(void **state) {
    (void)state;
    cd_task_registry_free(tasks);
    cd_buf_free(&held);
    return 0;
}

/* The held-out records from line `skip` on as `device`, with times of `seconds`. */
static void put(tmp_dir *t, const char *file, const char *device, int skip, const char *seconds) {
    cd_buf b = {0};
    const char *p = held.p;
    for (int k = 0; *p; k++) {
        const size_t n = strcspn(p, "\n");
        const char *model = strstr(p, "-model=zen5-avx512"), *r = strstr(p, "\"r\": [[");
        assert_true(model && r && r < p + n && model < r);
        const char *end = strchr(r, ']');
        if (k >= skip) {
            cd_buf_put(&b, p, (size_t)(model - p));
            cd_buf_putf(&b, "-model=%s", device);
            cd_buf_put(&b, model + 18, (size_t)(r + 7 - model - 18));
            cd_buf_puts(&b, seconds);
            cd_buf_put(&b, end, n - (size_t)(end - p));
            cd_buf_puts(&b, "\n");
        }
        p += n + (p[n] == '\n');
    }
    tmp_put(t, file, b.p, b.n);
    cd_buf_free(&b);
}

static cdmpp_status describe(const tmp_dir *t, cd_buf *out) {
    const char *path = t->path;
    cd_diag diag = {0};
    cd_device_table *devices = NULL;
    assert_ok(cd_device_table_load("configs/devices.yaml", &diag, &devices, &err));
    const cdmpp_status st = cd_describe_records(tasks, &path, 1, devices, NULL, out, &err);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    return st;
}

/* One device is four times as fast as the other at everything: 2 and 0.5 over their mean. What the
 * data sheet says stays. */
TEST(shared_programs) {
    tmp_dir t = tmp_make();
    cd_buf b = {0};
    cd_diag diag = {0};
    cd_device_table *l = NULL;
    put(&t, "a.json", "zen4", 0, "0.001");
    put(&t, "b.json", "slow-one", 0, "0.004");
    assert_ok(describe(&t, &b));
    assert_non_null(strstr(b.p, "programs that all 2 devices here have run"));
    assert_non_null(strstr(b.p, "# No description knows this device."));
    if (cd_device_table_read("d.yaml", b.p, b.n, &diag, &l, &err))
        fail_msg("%s\n%s", diag.text.p, b.p);
    for (int k = 0; k < 2; k++) {
        const cd_device *d;
        assert_ok(cd_device_table_find(l, k ? "slow-one" : "zen4", &d, &err));
        assert_true(cd_device_probe_count(d) >= 2);
        assert_true(k ? d->clock_mhz < 0 : d->clock_mhz > 3699);
        for (int i = CD_DEVICE_PROBE_rank_dense_small; i <= CD_DEVICE_PROBE_rank_sparse_large; i++)
            if (d->probe[i] > 0) assert_close(d->probe[i], k ? 0.5 : 2, 1e-5, 0);
    }
    cd_device_table_free(l);
    cd_diag_free(&diag);
    cd_buf_free(&b);
    tmp_remove(&t);
}

/* All but the last ten lines are of one device alone. */
TEST(too_little_in_common) {
    tmp_dir t = tmp_make();
    cd_buf b = {0};
    put(&t, "a.json", "zen4", 0, "0.001");
    put(&t, "b.json", "slow-one", 76, "0.004");
    assert_status(describe(&t, &b), CDMPP_ENODATA);
    assert_non_null(strstr(err.msg, "2 devices share 10 programs and "));
    tmp_remove(&t);
    t = tmp_make();
    put(&t, "a.json", "zen4", 0, "0.001");
    assert_status(describe(&t, &b), CDMPP_ENODATA);
    assert_non_null(strstr(err.msg, "expected records of two devices or more, found zen4"));
    tmp_remove(&t);
    cd_buf_free(&b);
}

/* No program in common, since the steps of one device differ, but the tasks. */
TEST(best_records_of_tasks) {
    tmp_dir t = tmp_make();
    cd_buf b = {0};
    char *text;
    size_t n;
    put(&t, "a.json", "zen4", 0, "0.001");
    put(&t, "b.json", "slow-one", 0, "0.001");
    char path[4200];
    snprintf(path, sizeof path, "%s/b.json", t.path);
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    cd_buf other = {0};
    /* another pragma; lines without one are left out */
    for (char *p = text; *p; p += strcspn(p, "\n") + 1) {
        char *pragma = strstr(p, "auto_unroll_max_step$"), *end = strchr(p, '\n');
        if (!pragma || pragma > end) continue;
        cd_buf_put(&other, p, (size_t)(pragma - p));
        cd_buf_puts(&other, "auto_unroll_max_step$7");
        cd_buf_put(&other, pragma + strlen("auto_unroll_max_step$"),
                   (size_t)(end + 1 - pragma) - strlen("auto_unroll_max_step$"));
    }
    tmp_put(&t, "b.json", other.p, other.n);
    cd_buf_free(&other);
    cd_mem_free(text);
    assert_ok(describe(&t, &b));
    assert_non_null(strstr(b.p, "from the best records of "));
    tmp_remove(&t);
    cd_buf_free(&b);
}

/* The probes of this machine: rates that are there, counters that are there or said to be
 * missing. */
TEST(probes_of_this_machine) {
    cd_describe_entry d;
    cd_buf b = {0};
    cd_describe_entry_init(&d, CD_DEVICE_CPU);
    d.device.simd_bits = 256;
    assert_ok(cd_describe_probes(&d, &err));
    for (int i = CD_DEVICE_PROBE_probe_l1; i <= CD_DEVICE_PROBE_probe_exp; i++)
        assert_true(isfinite(d.device.probe[i]) && d.device.probe[i] > 0);
    size_t counted = 0;
    for (int i = CD_DEVICE_PROBE_count_compute_instructions;
         i <= CD_DEVICE_PROBE_count_latency_tlb_misses; i++)
        counted += d.device.probe[i] > 0;
    cd_describe_entry_put_yaml(&b, &d);
    assert_true((strstr(b.p, "  # count_*: ") != NULL) == (counted < 24));
    assert_non_null(strstr(b.p, "\n  probe_latency: "));
    cd_buf_free(&b);
}

TEST(out_of_memory) {
    tmp_dir t = tmp_make();
    put(&t, "a.json", "zen4", 66, "0.001");
    put(&t, "b.json", "slow-one", 66, "0.004");
    const char *path = t.path;
    FAULT_SWEEP(f, 10) {
        cd_buf b = {0};
        f.st = cd_describe_records(tasks, &path, 1, NULL, NULL, &b, &f.err);
        cd_buf_free(&b);
    }
    tmp_remove(&t);
}

TESTS(up, down, shared_programs, too_little_in_common, best_records_of_tasks,
      probes_of_this_machine, out_of_memory)
