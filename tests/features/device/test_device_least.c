/* No measured time is below what its device can at best: the floor is a law, or it is wrong.
 * Records that come with the project, on their devices. */
#include "check.h"

#include "base/io/io.h"
#include "features/device/device.h"
#include "features/task/task.h"

typedef struct {
    /* records with a time; those that something bounds; those below it */
    size_t n, bounded, below;
    double worst; /* the largest floor over time */
    char what[200];
} law;

static void look(law *l, const cd_device *d, cd_task_registry *tasks, const char *path,
                 const char *line, size_t len, cd_arena *a) {
    cd_record r;
    cdmpp_err err = {0};
    if (cd_record_is_comment(line, len) || cd_record_read(a, line, len, &r, &err) || r.error_no)
        return;
    const cd_task *t = cd_task_registry_find(tasks, r.workload_key);
    double s = 1e9;
    for (uint32_t k = 0; k < r.n_cost; k++) s = r.cost_s[k] < s ? r.cost_s[k] : s;
    if (!t || !t->dag || !(s > 0) || s > 1e8) return;
    const double least = cd_device_least_s(d, &t->dag->least);
    l->n++;
    l->bounded += least > 0;
    l->below += s < least;
    if (least / s > l->worst) {
        l->worst = least / s;
        snprintf(l->what, sizeof l->what, "%s: %.60s: %g s, floor %g", path, t->workload_key, s,
                 least);
    }
}

static law law_of(const char *tasks, const char *path, const char *device) {
    law l = {0};
    cdmpp_err err = {0};
    cd_diag diag = {0};
    cd_device_table *table;
    const cd_device *d;
    cd_task_registry *r;
    cd_file_lines *in;
    cd_arena a = {0};
    char *line;
    size_t len;
    assert_ok(cd_device_table_load("configs/devices.yaml", &diag, &table, &err));
    assert_ok(cd_device_table_find(table, device, &d, &err));
    assert_ok(cd_task_registry_new(&r, &err));
    assert_ok(cd_task_registry_load(r, tasks, &err));
    assert_ok(cd_file_lines_open(path, 0, &in, &err));
    while (!cd_file_lines_next(in, &line, &len, &err) && line) {
        look(&l, d, r, path, line, len, &a);
        cd_arena_reset(&a);
    }
    cd_file_lines_close(in);
    cd_arena_free(&a);
    cd_task_registry_free(r);
    cd_device_table_free(table);
    cd_diag_free(&diag);
    return l;
}

TEST(carried_records) {
    static const struct {
        const char *tasks, *path, *device;
    } set[] = {
        {"examples/zen5/zen5.tasks.json.xz", "examples/zen5/held_out.json", "zen5-avx512"},
        {"examples/zen5/zen5.tasks.json.xz",
         "examples/zen5/measure_records/zen5-avx512/records.json.xz", "zen5-avx512"},
        {"examples/zen5/zen5.tasks.json.xz",
         "examples/zen5/measure_records/zen5-avx2/records.json.xz", "zen5-avx2"},
        {"examples/zen4/zen4.tasks.json.xz", "examples/zen4/measure_records/zen4/records.json.xz",
         "zen4"},
        {"examples/granite/granite.tasks.json.xz",
         "examples/granite/measure_records/granite-rapids/operators.json.xz", "granite-rapids"},
        {"examples/granite/granite.tasks.json.xz",
         "examples/granite/measure_records/granite-rapids/networks.json.xz", "granite-rapids"}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
        const law l = law_of(set[k].tasks, set[k].path, set[k].device);
        if (l.below) fail_msg("%zu of %zu records are below the floor: %s", l.below, l.n, l.what);
        if (2 * l.bounded < l.n || l.n < 50)
            fail_msg("%s: only %zu of %zu have a floor", set[k].path, l.bounded, l.n);
    }
}

TESTS(NULL, NULL, carried_records)
