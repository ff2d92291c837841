/* The programs of the fuzz corpus stay what they are: nest, rows and tree. Data sets of an older
 * version, and models trained on them, count on that. That they are TVM's is
 * scripts/compare_tvm.sh's business. A change on purpose: the test prints the new table. */
#include "base/io/io.h"
#include "check.h"
#include "prog.h"
#include "randsched.h"

/* File of tests/fuzz/seeds/program; digests of the nest (for features, for code, with every loop),
 * and of the rows. Without them: the status. */
static const struct {
    const char *seed, *nest, *rows;
} want[] = {
    {"adaptive0", "227f83b7a544345a", "50fc3c0e2a3a9f60"},
    {"adaptive1", "276177582b49a9e0", "a55f7c5ccbf52fb2"},
    {"adaptive2", "29e844b874781e5c", "70ce02bcb1ba5770"},
    {"attached_input", "5a9506ad75808c2c", "173c57ea3f2ffa91"},
    {"chain", "EUNSUPPORTED", ""},
    {"chw", "9ad1f13c7be1bf19", "ee4ea2927d426019"},
    {"conv0", "35922d9824fc9800", "70f707e5be43ee36"},
    {"conv1", "edcff929b0e34685", "35debc2f6477d7f4"},
    {"conv2", "8ea61da1f5f95c74", "be92ebe077de92a8"},
    {"cross", "d99eb367d15b94cb", "813acd66eaf69b84"},
    {"dense0", "53246f86f92b774d", "64a80efc30509530"},
    {"dense1", "f1794bc23071bd0b", "852729358cfc4105"},
    {"dense2", "cb691175d6251f2f", "6a942b8b54111899"},
    {"empty", "ENUMERIC", ""},
    {"free_thread", "e1d5cda6a0971782", "78580aa61e528603"},
    {"gather", "1f5aa75390c174e0", "87cdae81bfc60dea"},
    {"gpu", "588cc6215a423b01", "a2789ed30d7e5be7"},
    {"huge", "EUNSUPPORTED", ""},
    {"huge_split", "ENUMERIC", ""},
    {"rf", "ff536fb5a2a4283a", "155049da34072b17"},
    {"rf_fused", "EUNSUPPORTED", ""},
    {"scalar", "c5649201c0c802ab", "a9b93f755c5bd750"},
    {"softmax0", "e902206f8424e5b2", "2619433823d5b73a"},
    {"softmax1", "5f9dd0442b19d7a7", "b4c66fae2bc0afcd"},
    {"softmax2", "3fa463d9279093d3", "a818c60e9ba1bc9f"},
    {"transpose0", "b8e3f2c6de41eca9", "ba6dcf86905da17c"},
    {"transpose1", "125ecb589b3061f3", "adf52b5448c2bc24"},
    {"transpose2", "8c9e92092298b064", "aa17b8264b542c3e"},
    {"variance0", "4920539b81d2dd2a", "f24dbd47872529dc"},
    {"variance1", "ea1f0bb9fb44da79", "7ff74feec93be509"},
    {"variance2", "69c3bbfa2e922c34", "662c07813744ba53"},
    {"winograd0", "58fdb89beb02c2c9", "c882621aab3811cd"},
    {"winograd1", "bd7248cbef05aa36", "79c94bc5bbf9ce06"},
    {"winograd2", "1457b580725edf49", "b782cda177e2de7e"},
};

static void put_floats(cd_buf *b, const float *x, size_t n) { /* libm's last digit is its own */
    for (size_t i = 0; i < n; i++) cd_buf_putf(b, "%.5g ", (double)x[i]);
}

static void put_rows(cd_buf *b, const cd_rows *r) {
    put_floats(b, r->row, (size_t)r->n_row * CD_N_COL);
    put_floats(b, r->leaf, (size_t)r->n_leaf * CD_N_COL);
    for (uint32_t k = 0; k < r->n_tree; k++) cd_buf_putf(b, "%d ", r->tree[k]);
    for (uint32_t k = 0; k < r->n_leaf; k++) {
        cd_buf_putf(b, "%d %d %d:", r->leaf_node[k], r->leaf_pos[k], r->leaf_row[k]);
        for (int32_t i = r->path_ptr[k]; i < r->path_ptr[k + 1]; i++)
            cd_buf_putf(b, " %lld/%d", (long long)r->path_extent[i], r->path_kind[i]);
    }
}

static void digest(cd_buf *b, char out[17]) {
    char all[33];
    cd_md5_hex(b->p, b->n, all);
    snprintf(out, 17, "%.16s", all);
    cd_buf_clear(b);
}

TEST(test_programs_stay) {
    cdmpp_err err = {0};
    cd_task_registry *tasks = NULL;
    cd_program *p = NULL;
    cd_buf now = {0}, text = {0};
    size_t wrong = 0;
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, "tests/fuzz/program.tasks.json", &err));
    assert_ok(cd_program_new(&p, &err));
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        char path[80], *line, nest[17] = "", rows[17] = "";
        size_t n;
        cd_arena a = {0};
        cd_record r;
        cd_rows got;
        snprintf(path, sizeof path, "tests/fuzz/seeds/program/%s.json", want[k].seed);
        assert_ok(cd_file_read(path, 1 << 20, &line, &n, &err));
        assert_ok(cd_record_read(&a, line, n, &r, &err));
        const cd_task *task = cd_task_registry_find(tasks, r.workload_key);
        assert_non_null(task);
        const cdmpp_status st = cd_program_build(p, task, &r, &got, &err);
        if (st) snprintf(nest, sizeof nest, "%s", cdmpp_status_name(st));
        else {
            cd_buf_clear(&text);
            put_rows(&text, &got);
            digest(&text, rows);
            assert_ok(cd_program_print(p, &text, &err));
            assert_ok(cd_program_lower_code(p, task, &r, &err));
            assert_ok(cd_program_print(p, &text, &err));
            assert_ok(cd_program_lower_loops(p, task, &r, &err));
            assert_ok(cd_program_print(p, &text, &err));
            digest(&text, nest);
        }
        cd_buf_putf(&now, "    {\"%s\", \"%s\", \"%s\"},\n", want[k].seed, nest, rows);
        wrong += strcmp(nest, want[k].nest) || strcmp(rows, want[k].rows);
        cd_arena_free(&a);
        cd_mem_free(line);
    }
    if (wrong) fprintf(stderr, "%zu programs are others now:\n%s", wrong, now.p);
    assert_int_equal(wrong, 0);
    cd_buf_free(&now);
    cd_buf_free(&text);
    cd_program_free(p);
    cd_task_registry_free(tasks);
}

/* 40 random schedules of each task, of CPUs and of threads in turn; tasks whose programs are large
 * are left out. */
TEST(test_random_programs_stay) {
    static const struct {
        const char *task, *all;
    } is[] = {
        {"conv", "b6aa058aa97e3124"},     {"softmax", "903326694e04d48f"},
        {"winograd", "80de4d5be61933ca"}, {"transpose", "558ac4e4fe669093"},
        {"variance", "a6b0a86389192ca1"}, {"adaptive", "9fc33e38d717fd55"},
        {"dense", "3ebaec3f2029621a"},    {"matmul", "c9efe171453a3d5a"},
        {"argmax", "d828c5128a924369"},   {"scalar", "53b23d07e03c10a9"},
        {"gather", "2a35c7e5b095882b"},
    };
    static randsched r;
    cdmpp_err err = {0};
    cd_task_registry *tasks = NULL;
    cd_program *p = NULL;
    cd_buf now = {0}, text = {0};
    size_t wrong = 0;
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, "tests/fuzz/program.tasks.json", &err));
    assert_ok(cd_program_new(&p, &err));
    assert_ok(cd_schedule_init(&r.s, &err));
    r.t.open = -1;
    for (size_t k = 0; k < sizeof is / sizeof *is; k++) {
        const cd_task *task =
            cd_task_registry_find(tasks, (cd_str){is[k].task, strlen(is[k].task)});
        char all[17];
        assert_non_null(task);
        for (unsigned i = 0; i < 40; i++) {
            cd_rows got;
            r.rng = i;
            r.threads = i % 2;
            assert_ok(rs_make(&r, task->dag, 2 + i % 10, &err));
            cd_record rec = rs_record(&r);
            rec.hardware =
                (cd_hardware){.num_cores = 1, .vector_unit_bytes = 64, .cache_line_bytes = 64};
            const cdmpp_status st = cd_program_build(p, task, &rec, &got, &err);
            cd_buf_putf(&text, "%u steps %s\n", r.n, cdmpp_status_name(st));
            if (st) continue;
            assert_ok(cd_program_print(p, &text, &err));
            put_rows(&text, &got);
        }
        digest(&text, all);
        cd_buf_putf(&now, "        {\"%s\", \"%s\"},\n", is[k].task, all);
        wrong += strcmp(all, is[k].all) != 0;
    }
    if (wrong) fprintf(stderr, "programs of %zu tasks are others now:\n%s", wrong, now.p);
    assert_int_equal(wrong, 0);
    cd_buf_free(&now);
    cd_buf_free(&text);
    cd_schedule_free(&r.s);
    cd_ast_free(&r.t);
    cd_arena_free(&r.a);
    cd_program_free(p);
    cd_task_registry_free(tasks);
}

TESTS(NULL, NULL, test_programs_stay, test_random_programs_stay)
