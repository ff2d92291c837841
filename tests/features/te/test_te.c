/* Stage order, and the DAG texts that TVM printed for 361 CPU and 210 GPU
 * tasks of the reference sets (CDMPP_DATA: lowered.tar.xz, read here member by member). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "base/core/core.h"
#include "base/io/io.h"
#include "features/task/task.h"

/* 0 and 1 feed 2, which feeds 3 and 4. The argument pushed last is visited first
 * and gets the lowest priority, so the outputs come in the order of `arg`. */
TEST(stage_order) {
    static const uint32_t in_ptr[] = {0, 0, 0, 2, 3, 4}, in[] = {1, 0, 2, 2}, arg[] = {0, 1, 3, 4}, want[] = {1, 0, 2, 3, 4};
    static const uint32_t swapped[] = {0, 1, 4, 3}, want_swapped[] = {1, 0, 2, 4, 3};
    const cd_te_reads r = {5, 4, in_ptr, in, arg}, s = {5, 4, in_ptr, in, swapped};
    uint32_t order[5], n;
    cd_arena a = {0};
    cdmpp_err err = {0};
    assert_ok(cd_te_stage_order(&a, &r, order, &n, &err));
    assert_int_equal(n, 5);
    assert_memory_equal(order, want, sizeof want);
    assert_ok(cd_te_stage_order(&a, &s, order, &n, &err));
    assert_memory_equal(order, want_swapped, sizeof want_swapped);
    static const uint32_t loop_ptr[] = {0, 1, 2}, loop[] = {1, 0}, start[] = {0};
    const cd_te_reads c = {2, 1, loop_ptr, loop, start};
    assert_status(cd_te_stage_order(&a, &c, order, &n, &err), CDMPP_ESCHEMA);
    cd_arena_free(&a);
}

typedef struct {
    char *p;
    size_t n;
} tar;

/* Content of a member whose name ends in `name`; NULL when absent. */
static const char *member(const tar *t, const char *name, size_t *len) {
    for (size_t at = 0; at + 512 <= t->n && t->p[at];) {
        const char *h = t->p + at;
        const size_t n = strtoul(h + 124, NULL, 8), m = strnlen(h, 100), k = strlen(name);
        if (m >= k && !memcmp(h + m - k, name, k) && at + 512 + n <= t->n) {
            *len = n;
            return h + 512;
        }
        at += 512 + (n + 511) / 512 * 512;
    }
    return NULL;
}

/* "dev/([hash,[1,2]],llvm).json" names the task whose key, less blanks and quotes, it holds. */
static const cd_task *task_of(const cd_task_registry *t, const char *file) {
    const char *beg = strstr(file, "/(");
    for (size_t i = 0; beg && i < cd_task_registry_count(t); i++) {
        const char *p = beg + 2, *key = cd_task_registry_at(t, i)->workload_key;
        for (; *key; key++) {
            if (*key == ' ' || *key == '"') continue;
            if (*p++ != *key) break;
        }
        if (!*key && *p == ',') return cd_task_registry_at(t, i);
    }
    return NULL;
}

static bool same_text(const cd_task *task, const char *text, size_t len) {
    static const char begin[] = "# DAG\n", end[] = "\n# STATE";
    cd_buf ours = {0};
    cd_te_dag_print(&ours, task->dag);
    bool same = len > sizeof begin - 1 + ours.n + sizeof end - 1 && !memcmp(text, begin, sizeof begin - 1) &&
                !memcmp(text + sizeof begin - 1, ours.p, ours.n) && !memcmp(text + sizeof begin - 1 + ours.n, end, sizeof end - 1);
    if (!same) print_error("%s:\n%s", task->workload_key, ours.p);
    cd_buf_free(&ours);
    return same;
}

static void compare_set(const char *set, size_t want) {
    const char *root = getenv("CDMPP_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/lowered.tar.xz", root ? root : "", set);
    FILE *f = root ? fopen(path, "rb") : NULL;
    if (!f) {
        print_message("skipped: no %s/lowered.tar.xz under CDMPP_DATA\n", set);
        skip();
    }
    fclose(f);
    tar t;
    cd_task_registry *tasks;
    cdmpp_err err = {0};
    size_t n, checked = 0;
    assert_ok(cd_file_read(path, 0, &t.p, &t.n, &err));
    snprintf(path, sizeof path, "%s/%s/network_info/all_tasks.pkl", root, set);
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, path, &err));
    const char *index = member(&t, "index.tsv", &n), *end = index + n;
    assert_non_null(index);
    while (index < end) {
        char line[1024], *tab;
        const char *nl = memchr(index, '\n', (size_t)(end - index));
        snprintf(line, sizeof line, "%.*s", (int)((nl ? nl : end) - index), index);
        index = nl ? nl + 1 : end;
        if (!(tab = strchr(line, '\t'))) continue;
        *tab = '\0';
        const cd_task *task = task_of(tasks, tab + 1);
        const char *text = member(&t, line, &n);
        assert_non_null(task);
        assert_non_null(text);
        assert_true(same_text(task, text, n));
        checked++;
    }
    assert_int_equal(checked, want);
    cd_task_registry_free(tasks);
    cd_mem_free(t.p);
}

static void cpu_texts(void **state) { (void)state; compare_set("tenset-cpu", 361); }
static void gpu_texts(void **state) { (void)state; compare_set("gpu-ansor", 210); }

TESTS(NULL, NULL, stage_order, cpu_texts, gpu_texts)
