/* The registry on the reference sets (CDMPP_DATA): numbers of tasks, networks,
 * operation counts against TVM's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fault.h"
#include "tmp.h"
#include "base/core/core.h"
#include "base/io/io.h"
#include "features/task/task.h"

static const char *data(const char *rest) {
    static char path[4096];
    const char *root = getenv("CDMPP_DATA");
    snprintf(path, sizeof path, "%s/%s", root ? root : "", rest);
    FILE *f = root ? fopen(path, "rb") : NULL;
    if (!f) {
        print_message("skipped: no %s under CDMPP_DATA\n", rest);
        skip();
    } else {
        fclose(f);
    }
    return path;
}

TEST(counts) {
    static const struct {
        const char *path;
        size_t n;
    } set[] = {{"tenset-cpu/network_info/all_tasks.pkl", 361},
               {"gpu-ansor/network_info/all_tasks.pkl", 243}};
    for (size_t k = 0; k < 2; k++) {
        const char *path = data(set[k].path);
        cdmpp_err err = {0};
        cd_task_registry *t;
        assert_ok(cd_task_registry_new(&t, &err));
        assert_ok(cd_task_registry_load(t, path, &err));
        assert_int_equal(cd_task_registry_count(t), set[k].n);
        assert_int_equal(cd_task_registry_bad_count(t), 0);
        for (size_t i = 0; i < set[k].n; i++) {
            const cd_task *task = cd_task_registry_at(t, i);
            assert_true(task->has_hardware && task->hardware.cache_line_bytes == 64);
            assert_int_equal(cd_task_registry_index(t, task), i);
        }
        cd_task_registry_free(t);
    }
}

TEST(flops_are_tvms) {
    char list[4096];
    snprintf(list, sizeof list, "%s", data("gpu-ansor/network_info/tasks.json"));
    cdmpp_err err = {0};
    cd_task_registry *t;
    char *text;
    size_t n, checked = 0;
    cd_arena a = {0};
    const cd_json *top;
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load(t, data("gpu-ansor/network_info/all_tasks.pkl"), &err));
    assert_ok(cd_file_read(list, 0, &text, &n, &err));
    assert_ok(cd_json_parse(&a, text, n, &top, &err));
    for (const cd_json *v = top->u.child; v; v = v->next, checked++) {
        cd_str key;
        double flop;
        assert_ok(cd_json_str(cd_json_get(v, "workload_key"), &key, &err));
        assert_ok(cd_json_real(cd_json_get(v, "flop"), &flop, &err));
        const cd_task *task = cd_task_registry_find(t, key);
        assert_non_null(task);
        if (task->dag->flop != flop)
            print_error("%s: %.0f, TVM %.0f\n", task->workload_key, task->dag->flop, flop);
        assert_true(task->dag->flop == flop);
    }
    assert_int_equal(checked, 243);
    cd_arena_free(&a);
    cd_mem_free(text);
    cd_task_registry_free(t);
}

TEST(networks) {
    char path[4096];
    snprintf(path, sizeof path, "%s", data("tenset-cpu/network_info/all_tasks.pkl"));
    *strrchr(path, '/') = '\0';
    cdmpp_err err = {0};
    cd_task_registry *t;
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load(t, path, &err));
    assert_int_equal(cd_task_registry_count(t), 361);
    assert_int_equal(cd_task_registry_network_count(t), 17);
    int64_t gru = 0;
    for (size_t i = 0; i < 17; i++) {
        const cd_network *net = cd_task_registry_network(t, i);
        assert_true(net->n > 0);
        if (!strcmp(net->name, "(gru,[(4,1,256)])")) gru = net->weight[0];
    }
    assert_true(gru > 0);
    cd_task_registry_free(t);
}

/* Many tasks: each is found, by its key alone, and has its own number. */
TEST(each_is_found) {
    cdmpp_err err = {0};
    cd_task_registry *t;
    cd_buf b = {0};
    char key[40];
    cd_buf_puts(&b, "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [");
    for (int k = 0; k < 300; k++)
        cd_buf_putf(
            &b,
            "%s{\"workload_key\": \"[\\\"h\\\", %d]\", \"target\": \"llvm -k%d\", \"desc\": "
            "\"d%d\", \"ops\": [{\"name\": \"A\", \"shape\": [%d], \"dtype\": \"float32\"},"
            "{\"name\": \"B\", \"axis\": [[\"i\", 0, %d]], \"body\": \"A[i] + 1\"}]}",
            k ? ", " : "", k, k, k, k + 1, k + 1);
    cd_buf_puts(&b, "]}");
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load_text(t, "x", b.p, b.n, &err));
    assert_int_equal(cd_task_registry_count(t), 300);
    for (int k = 0; k < 300; k++) {
        snprintf(key, sizeof key, "[\"h\", %d]", k);
        const cd_task *task = cd_task_registry_find(t, (cd_str){key, strlen(key)});
        assert_non_null(task);
        assert_int_equal(cd_task_registry_index(t, task), k);
        assert_ptr_equal(task, cd_task_registry_at(t, (size_t)k));
        assert_true(task->dag->flop == k + 1);
        snprintf(key, sizeof key, "d%d", k);
        assert_string_equal(task->desc, key);
        assert_string_equal(task->target_kind, "llvm");
    }
    assert_null(cd_task_registry_find(t, (cd_str){"[\"h\", 300]", 10}));
    cd_buf_free(&b);
    cd_task_registry_free(t);
}

/* Of a folder, the files of tasks first, then the networks; nothing else is read. */
TEST(folders) {
    static const char tasks[] =
        "{\"schema\": \"cdmpp.tasks\", \"version\": 1, \"tasks\": [{\"workload_key\": \"%s\", "
        "\"target\": \"llvm\","
        "\"ops\": [{\"name\": \"A\", \"shape\": [4], \"dtype\": \"float32\"}, {\"name\": \"B\", "
        "\"axis\": [[\"i\", 0, 4]], \"body\": \"A[i]\"}]}]}";
    static const struct {
        const char *file, *key;
    } all[] = {{"b.tasks.json", "in tasks"}, {"b.tasks.json.gz", "packed in name"},
               {"tasks.json", "no tasks"},   {"a.relay.pkl", "no tasks"},
               {"networks.txt", "no tasks"}, {"x.tasks.json.old", "no tasks"}};
    tmp_dir dir = tmp_make();
    cdmpp_err err = {0};
    cd_task_registry *t;
    char text[400];
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        snprintf(text, sizeof text, tasks, all[k].key);
        tmp_put(&dir, all[k].file, text, strlen(text));
    }
    static const char net[] =
        "{\"a net\": [{\"workload_key\": \"in tasks\", \"weight\": 3}, \"unknown\", \"in tasks\"]}";
    tmp_put(&dir, "networks-a.json", net, sizeof net - 1);
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load(t, dir.path, &err));
    assert_int_equal(cd_task_registry_count(t), 3);
    assert_int_equal(cd_task_registry_bad_count(t), 1); /* of which no file says what it is */
    assert_non_null(cd_task_registry_find(t, (cd_str){"in tasks", 8})->dag);
    assert_non_null(cd_task_registry_find(t, (cd_str){"packed in name", 14})->dag);
    assert_null(cd_task_registry_find(t, (cd_str){"no tasks", 8}));
    assert_int_equal(cd_task_registry_network_count(t), 1);
    assert_string_equal(cd_task_registry_network(t, 0)->name, "a net");
    assert_int_equal(cd_task_registry_network(t, 0)->n, 3);
    assert_int_equal(cd_task_registry_network(t, 0)->weight[0], 3);
    assert_int_equal(cd_task_registry_network(t, 0)->weight[1], 1);
    cd_task_registry_free(t);
    tmp_remove(&dir);
}

/* A key holds TVM's hash of its definition; that of the definition read here is the same. */
TEST(hashes_are_tvms) {
    cdmpp_err err = {0};
    cd_task_registry *t;
    size_t checked = 0;
    assert_ok(cd_task_registry_new(&t, &err));
    assert_ok(cd_task_registry_load(t, "examples/zen5/zen5.tasks.json.xz", &err));
    for (size_t k = 0; k < cd_task_registry_count(t); k++) {
        const cd_task *task = cd_task_registry_at(t, k);
        char hash[33];
        assert_non_null(task->dag);
        if (strlen(task->workload_key) < 36) continue;
        assert_ok(cd_te_dag_hash(task->dag, hash, &err));
        if (strncmp(task->workload_key + 2, hash, 32)) fail_msg("%s: %s", task->workload_key, hash);
        checked++;
    }
    assert_true(checked > 100);
    cd_task_registry_free(t);
}

/* A file of a network has its name, as TenSet writes it: without folder, endings, the outer
 * parentheses and the target. */
TEST(names_of_networks) {
    static const struct {
        const char *file, *name;
    } t[] = {{"a/((gru,[(4,1,256)]),llvm).task.pkl", "(gru,[(4,1,256)])"},
             {"((gru,[(4,1,256)]),llvm).pkl", "(gru,[(4,1,256)])"},
             {"a/b/gru.task.pkl", "gru"},
             {"gru", "gru"},
             {"(gru,llvm).pkl", "(gru,llvm)"},
             {"((gru),llvm.pkl", "((gru),llvm"},
             {"gru),llvm).pkl", "gru),llvm)"},
             {"a/(.pkl", "("},
             {"a/().pkl", "()"}};
    char *text;
    size_t n;
    cdmpp_err err = {0};
    assert_ok(cd_file_read("tests/fuzz/seeds/pickle/gru_p4.pkl", 0, &text, &n, &err));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_task_registry *r;
        assert_ok(cd_task_registry_new(&r, &err));
        assert_ok(cd_task_registry_load_text(r, t[k].file, text, n, &err));
        assert_int_equal(cd_task_registry_network_count(r), 1);
        assert_string_equal(cd_task_registry_network(r, 0)->name, t[k].name);
        cd_task_registry_free(r);
    }
    cd_mem_free(text);
}

/* A pickle in which each place that says `from` says `to`, of the same length. */
TEST(odd_pickles) {
    static const struct {
        const char *from, *to;
        cdmpp_status st;
        const char *key, *msg;
    } t[] = {
        {"workload_key", "workload_kex", CDMPP_ESCHEMA, "tasks[0].workload_key",
         "expected a string, found nothing"},
        {"\x0b"
         "compute_dag",
         "\x0b"
         "compute_dog",
         CDMPP_OK, "compute_dag", "expected a ComputeDAG, found nothing"},
        {"tensors", "tensorx", CDMPP_OK, "compute_dag", "expected a ComputeDAG, found"},
        {"\"root\": 1", "\"toor\": 1", CDMPP_ESCHEMA, "tasks[0].target.root",
         "expected an integer, found nothing"},
        {"\x0fhardware_params", "\x0fhardware_parans", CDMPP_OK, "", ""},
        {"\x06target", "\x06tarrot", CDMPP_OK, "", ""},
        {"\x04"
         "desc",
         "\x04"
         "dusk",
         CDMPP_OK, "", ""},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        char *text;
        size_t n, changed = 0;
        cdmpp_err err = {0};
        cd_task_registry *r;
        assert_ok(cd_file_read("tests/fuzz/seeds/pickle/gru_p4.pkl", 0, &text, &n, &err));
        for (char *p = text; (p = memmem(p, n - (size_t)(p - text), t[k].from, strlen(t[k].from)));
             changed++)
            memcpy(p, t[k].to, strlen(t[k].to));
        assert_true(changed > 0);
        assert_ok(cd_task_registry_new(&r, &err));
        const cdmpp_status st = cd_task_registry_load_text(r, "x.pkl", text, n, &err);
        if (!st && cd_task_registry_count(r) && cd_task_registry_at(r, 0)->why)
            err = *cd_task_registry_at(r, 0)->why;
        if (st != t[k].st || !strstr(err.key, t[k].key) || !strstr(err.msg, t[k].msg))
            fail_msg("%s: %d, %s: %s", t[k].to, (int)st, err.key, err.msg);
        cd_task_registry_free(r);
        cd_mem_free(text);
    }
}

/* A folder without task files, and one with a broken one of each kind. */
TEST(odd_folders) {
    static const char *const broken[] = {"a.tasks.json", "networks-a.json"};
    for (size_t k = 0; k < 3; k++) {
        tmp_dir dir = tmp_make();
        cdmpp_err err = {0};
        cd_task_registry *t;
        if (k) tmp_put(&dir, broken[k - 1], "{\"a net\": ", 10);
        assert_ok(cd_task_registry_new(&t, &err));
        assert_status(cd_task_registry_load(t, dir.path, &err), k ? CDMPP_EPARSE : CDMPP_ESCHEMA);
        assert_non_null(strstr(err.path, k ? broken[k - 1] : dir.path));
        if (!k) assert_string_equal(err.msg, "no task file in this folder");
        cd_task_registry_free(t);
        tmp_remove(&dir);
    }
}

/* Of several files the first bad one ends it; what rests on an assumption is counted. */
TEST(several) {
    static const char *const path[] = {"tests/fuzz/seeds/pickle/gru_p4.pkl", "tests/none.pkl",
                                       "tests/fuzz/seeds/pickle/gru_p4.pkl"};
    static const char *const assumption[] = {"symmetric-padding", "float33"};
    cdmpp_err err = {0};
    cd_task_registry *r;
    unsigned bits;
    assert_ok(cd_task_registry_new(&r, &err));
    assert_ok(cd_task_assumptions(assumption, 1, &bits, &err));
    cd_task_registry_assume(r, bits);
    assert_ok(cd_task_registry_load_all(r, path, 1, NULL, &err));
    assert_true(cd_task_registry_count(r) > 0);
    assert_status(cd_task_registry_load_all(r, path, 3, NULL, &err), CDMPP_EIO);
    assert_string_equal(err.path, path[1]);
    assert_status(cd_task_assumptions(assumption, 2, &bits, &err), CDMPP_EUSAGE);
    cd_task_registry_free(r);
}

/* Small ones, by hand: ] a list, K a number, a appends, \x86 a pair. */
TEST(small_pickles) {
    static const struct {
        const char *text, *key, *msg;
    } t[] = {
        {"\x80\4K\1.", "", "expected a list of tasks or (tasks, weights), found int"},
        {"\x80\4]K\1a.", "tasks[0]", "expected a SearchTask, found int"},
        {"\x80\4]]\x86.", NULL, NULL},
        {"\x80\4]K\1\x86.", "", "expected a list of tasks or (tasks, weights), found tuple"},
        {"\x80\4K\1]\x86.", "", "expected a list of tasks or (tasks, weights), found tuple"},
        {"\x80\4]]]\x87.", "", "expected a list of tasks or (tasks, weights), found tuple"},
        {"\x80\4]]K\1a\x86.", "weights", "expected one weight per task, found list"},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cdmpp_err err = {0};
        cd_task_registry *r;
        assert_ok(cd_task_registry_new(&r, &err));
        const cdmpp_status st =
            cd_task_registry_load_text(r, "x.pkl", t[k].text, strlen(t[k].text), &err);
        if (!t[k].msg) assert_ok(st);
        else if (!st || strcmp(err.key, t[k].key) || strcmp(err.msg, t[k].msg))
            fail_msg("%zu: %d, %s: %s", k, (int)st, err.key, err.msg);
        cd_task_registry_free(r);
    }
}

/* A definition that is not understood leaves the task, and says why. */
TEST(why_there_is_no_definition) {
    char *text;
    size_t n, changed = 0;
    cdmpp_err err = {0};
    cd_task_registry *r;
    assert_ok(cd_file_read("tests/fuzz/seeds/pickle/gru_p4.pkl", 0, &text, &n, &err));
    for (char *p = text; (p = memmem(p, n - (size_t)(p - text), "tir.Mul", 7)); changed++)
        memcpy(p, "tir.Moo", 7);
    assert_true(changed > 0);
    assert_ok(cd_task_registry_new(&r, &err));
    assert_ok(cd_task_registry_load_text(r, "x.pkl", text, n, &err));
    size_t without = 0;
    for (size_t k = 0; k < cd_task_registry_count(r); k++) {
        const cd_task *t = cd_task_registry_at(r, k);
        assert_true(t->dag ? !t->why : t->why != NULL);
        if (t->dag) continue;
        assert_int_equal(t->why->code, CDMPP_EUNSUPPORTED);
        assert_non_null(strstr(t->why->msg, "tir.Moo"));
        without++;
    }
    assert_true(without > 0);
    assert_int_equal(cd_task_registry_bad_count(r), without);
    cd_task_registry_free(r);
    cd_mem_free(text);
}

/* Every allocation may fail: ENOMEM, nothing leaked, and in the end success. */
TEST(out_of_memory) {
    static const char *const path[] = {"tests/fuzz/seeds/pickle/gru_p4.pkl",
                                       "tests/fuzz/seeds/taskfile/rare.tasks.json",
                                       "tests/fuzz/seeds/taskfile/matmul.tasks.json"};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        cdmpp_err err = {0};
        char *text;
        size_t n;
        assert_ok(cd_file_read(path[i], 0, &text, &n, &err));
        FAULT_SWEEP(f, 5) {
            cd_task_registry *t = NULL;
            cd_buf out = {0};
            f.st = cd_task_registry_new(&t, &f.err);
            if (!f.st) f.st = cd_task_registry_load_text(t, path[i], text, n, &f.err);
            if (!f.st) f.st = cd_task_registry_write(&out, t, &f.err);
            cd_buf_free(&out);
            cd_task_registry_free(t);
        }
        cd_mem_free(text);
    }
}

TESTS(NULL, NULL, counts, flops_are_tvms, networks, each_is_found, folders, hashes_are_tvms,
      names_of_networks, odd_pickles, odd_folders, several, small_pickles,
      why_there_is_no_definition, out_of_memory)
