/* oplearner: learns made-up laws, carries them to devices and sizes it never saw,
 * gives the same file for any number of threads; opdata and the model file on the way. */
#include "learner/train/library_op_train.h"
#include "check.h"
#include "made_ops.h"
#include "tmp.h"

#include <string.h>

static const char *const device[] = {"p100", "v100-pcie", "a100"};

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    tmp_dir dir;
    const char *table;
    cd_config c;
} fixture;

static const cd_device *named(const fixture *f, const char *name) {
    const cd_device *d;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_find(f->devices, name, &d, &err));
    return d;
}

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    cd_buf b = {0};
    f = (fixture){.dir = tmp_make()};
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    cd_buf_puts(&b, MADE_OP_HEADER);
    for (size_t i = 0; i < 3; i++) made_op_rows(&b, named(&f, device[i]), 150, 9, i);
    f.table = tmp_put(&f.dir, "ops.csv", b.p, b.n);
    cd_buf_free(&b);
    assert_ok(cd_config_init(&f.c, &err));
    assert_ok(cd_config_set(&f.c, "operators.rounds=60", &err));
    assert_ok(cd_config_set(&f.c, "operators.max_depth=4", &err));
    assert_ok(cd_config_set(&f.c, "operators.eta=0.2", &err));
    assert_ok(cd_config_set(&f.c, "operators.check=none", &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    cd_config_free(&f->c);
    tmp_remove(&f->dir);
    return 0;
}

static void count_bad(void *ctx, const cdmpp_err *err) {
    assert_true(err->line > 0);
    ++*(size_t *)ctx;
}

static cd_library_op_data load(const fixture *f, const char *path, const cd_library_op_filter *filter) {
    cd_library_op_data d = {0};
    size_t bad = 0;
    cdmpp_err err = {0};
    assert_ok(cd_library_op_data_add(&d, path, f->devices, filter, count_bad, &bad, &err));
    assert_int_equal(bad, d.drop[CD_LIBRARY_OP_DROP_BAD]);
    return d;
}

static void rows_are_told_apart(void **state) {
    static const char text[] = MADE_OP_HEADER "add,1,t4,4,,,,8\n"
                                              "add,2,Tesla T4,4,,,,8\n"   /* the same again: the first stays */
                                              "add,1,v100,4,,,,8\n"
                                              "mul,1,t4,4,,,,8\n"
                                              "add,,t4,5,,,,8\n"          /* a question */
                                              "add,1,t9,4,,,,8\n"         /* no such device */
                                              "fly,1,t4,4,,,,8\n"
                                              "bmm,1,p4,4,4,4,4,\n";
    fixture *f = *state;
    tmp_dir dir = tmp_make();
    const char *path = tmp_put(&dir, "a.csv", text, sizeof text - 1), *wanted[] = {"T4", "v100"}, *out[] = {"v100/elementwise", "t4/mul"};
    cd_library_op_data d = load(f, path, &(cd_library_op_filter){{0}, {0}});
    assert_true(d.n == 4 && d.n_known == 3 && d.n_line == 8);
    assert_true(d.drop[CD_LIBRARY_OP_DROP_BAD] == 2 && d.drop[CD_LIBRARY_OP_DROP_QUESTION] == 1 && d.drop[CD_LIBRARY_OP_DROP_REPEATED] == 1);
    assert_close(d.r[0].latency_s, 1e-3, 1e-12, 0);
    cd_library_op_data_free(&d);
    d = load(f, dir.path, &(cd_library_op_filter){{2, wanted}, {2, out}}); /* the folder */
    assert_true(d.n == 1 && d.drop[CD_LIBRARY_OP_DROP_UNWANTED] == 3);
    cd_library_op_data_free(&d);
    cdmpp_err err = {0};
    const char *unknown[] = {"t5/add"};
    assert_status(cd_library_op_data_add(&d, path, f->devices, &(cd_library_op_filter){{0}, {1, unknown}}, NULL, NULL, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "operators.exclude");
    cd_library_op_data_free(&d);
    tmp_remove(&dir);
}

/* Mean |error| of n made-up rows of either operator. */
static double error_on(const cd_library_op_model *m, const cd_device *d, int top, uint64_t seed) {
    double sum = 0;
    for (uint64_t i = 0; i < 100; i++) {
        double v[4], y;
        cdmpp_err err = {0};
        for (uint64_t k = 0; k < 4; k++) v[k] = floor(exp2(top - 2 + 2 * cd_rng_unit(seed, 4 * i + k)));
        const cd_library_op_record r = i % 2 ? (cd_library_op_record){.kind = CD_LIBRARY_OP_BMM, .b = v[0], .m = v[1], .n = v[2], .k = v[3]}
                                    : (cd_library_op_record){.kind = CD_LIBRARY_OP_ADD, .b = 1, .m = v[0] * v[1], .n = v[2], .k = 1};
        assert_ok(cd_library_op_model_predict(m, &r, &d, 1, &y, &err));
        sum += fabs(y / made_op_s(d, i % 2, r.b, r.m, r.n, r.k) - 1);
    }
    return sum / 100;
}

static void learns_and_carries_over(void **state) {
    fixture *f = *state;
    cd_library_op_train_result l = {0};
    cdmpp_err err = {0};
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{0}, {0}});
    assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
    assert_int_equal(l.n_row, d.n);
    assert_true(error_on(l.model, named(f, "p100"), 9, 77) < 0.08);
    assert_true(error_on(l.model, named(f, "a100"), 11, 78) < 0.1);       /* larger than anything trained on */
    assert_true(error_on(l.model, named(f, "a100-80gb"), 9, 79) < 0.1);   /* never seen */
    assert_true(cd_library_op_model_seen(l.model, CD_LIBRARY_OP_ADD, named(f, "p100")) && !cd_library_op_model_seen(l.model, CD_LIBRARY_OP_ADD, named(f, "h100")));
    assert_false(cd_library_op_model_seen(l.model, CD_LIBRARY_OP_SOFTMAX, named(f, "p100"))); /* no row of that family */
    /* bmm and linear share trees, but those that see a device serve only classes that were trained on it */
    assert_true(cd_library_op_model_seen(l.model, CD_LIBRARY_OP_BMM, named(f, "p100")) && !cd_library_op_model_seen(l.model, CD_LIBRARY_OP_LINEAR, named(f, "p100")));
    const cd_library_op_record softmax = {.kind = CD_LIBRARY_OP_SOFTMAX, .b = 1, .m = 8, .n = 8, .k = 1};
    const cd_device *p100 = named(f, "p100");
    double y;
    assert_status(cd_library_op_model_predict(l.model, &softmax, &p100, 1, &y, &err), CDMPP_EMODEL);
    const cd_library_op_record linear = {.kind = CD_LIBRARY_OP_LINEAR, .b = 1, .m = 512, .n = 512, .k = 512};
    assert_ok(cd_library_op_model_predict(l.model, &linear, &p100, 1, &y, &err));
    cd_library_op_train_result_free(&l);
    cd_library_op_data_free(&d);
}

static void same_file_for_any_threads(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_train_result l[2] = {{0}, {0}};
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{0}, {0}});
    for (int k = 0; k < 2; k++) {
        cd_threads *pool;
        assert_ok(cd_threads_new(k + 1, &pool, &err));
        assert_ok(cd_library_op_train(&f->c, &d, pool, NULL, NULL, &l[k], &err));
        cd_threads_free(pool);
    }
    assert_true(l[0].file.n == l[1].file.n && !memcmp(l[0].file.p, l[1].file.p, l[0].file.n));
    cd_library_op_model *m; /* and what was read back predicts the same bits */
    assert_ok(cd_library_op_model_from_bytes(l[0].file.p, l[0].file.n, &m, &err));
    for (size_t i = 0; i < 50; i++) {
        const cd_device *v = d.known[d.device[i]];
        double a, b;
        assert_ok(cd_library_op_model_predict(m, &d.r[i], &v, 1, &a, &err));
        assert_ok(cd_library_op_model_predict(l[1].model, &d.r[i], &v, 1, &b, &err));
        assert_memory_equal(&a, &b, sizeof a);
    }
    cd_library_op_model_free(m);
    for (int k = 0; k < 2; k++) cd_library_op_train_result_free(&l[k]);
    cd_library_op_data_free(&d);
}

static void many_at_once_are_as_one_by_one(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_train_result l = {0};
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{0}, {0}});
    assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
    const cd_device **v = calloc(d.n, sizeof *v);
    double *y = calloc(d.n, sizeof *y);
    for (size_t i = 0; i < d.n; i++) v[i] = i % 3 ? d.known[d.device[i]] : named(f, "h100");
    assert_ok(cd_library_op_model_predict(l.model, d.r, v, d.n, y, &err));
    for (size_t i = 0; i < d.n; i += 37) {
        double one;
        assert_ok(cd_library_op_model_predict(l.model, &d.r[i], &v[i], 1, &one, &err));
        assert_memory_equal(&one, &y[i], sizeof one);
    }
    free(v);
    free(y);
    cd_library_op_train_result_free(&l);
    cd_library_op_data_free(&d);
}

static void checks_hold_out_what_they_say(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{0}, {0}});
    for (int k = 0; k < 2; k++) {
        cd_library_op_train_result l = {0};
        assert_ok(cd_config_set(&f->c, k ? "operators.check=device" : "operators.check=large", &err));
        assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
        assert_true(k ? l.check.n == d.n : l.check.n > 6 * 12 && l.check.n <= 6 * 15); /* some rows recur */
        for (size_t i = 0; i < l.check.n; i++) assert_true(l.check.row[i].seen == !k);
        cd_library_op_train_result_free(&l);
    }
    assert_ok(cd_config_set(&f->c, "operators.check=none", &err));
    cd_library_op_data_free(&d);
}

static void damaged_files(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_model *m;
    const char *wanted[] = {"p100"};
    cd_library_op_train_result l = {0};
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{1, wanted}, {0}});
    assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
    assert_status(cd_library_op_model_from_bytes(l.file.p, l.file.n / 2, &m, &err), CDMPP_EPARSE);
    l.file.p[l.file.n / 2] ^= 1;
    assert_status(cd_library_op_model_from_bytes(l.file.p, l.file.n, &m, &err), CDMPP_EPARSE);
    assert_status(cd_library_op_model_load("tests/golden/model_v1.cdmpp", &m, &err), CDMPP_EMODEL); /* of another kind */
    cd_library_op_train_result_free(&l);
    cd_library_op_data_free(&d);
    assert_status(cd_library_op_train(&f->c, &(cd_library_op_data){0}, NULL, NULL, NULL, &l, &err), CDMPP_ERANGE);
}

#ifdef CD_FAULT
/* Every allocation of reading tables and model files refused in turn. */
static void any_allocation_may_fail(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_train_result l = {0};
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{0}, {0}});
    assert_ok(cd_config_set(&f->c, "operators.rounds=2", &err));
    assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
    cd_library_op_data_free(&d);
    const long before = cd_mem_live();
    for (long k = 0;; k++) {
        cd_library_op_model *m = NULL;
        cd_mem_fail_at(k);
        cdmpp_status st = cd_library_op_data_add(&d, f->table, f->devices, &(cd_library_op_filter){{0}, {0}}, NULL, NULL, &err);
        if (!st) st = cd_library_op_model_from_bytes(l.file.p, l.file.n, &m, &err);
        cd_mem_fail_at(-1);
        if (st) assert_int_equal(st, CDMPP_ENOMEM);
        cd_library_op_data_free(&d);
        cd_library_op_model_free(m);
        assert_int_equal(cd_mem_live(), before);
        if (!st) break;
    }
    cd_library_op_train_result_free(&l);
}
#else
static void any_allocation_may_fail(void **state) {
    (void)state;
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest t[] = {
        cmocka_unit_test(rows_are_told_apart), cmocka_unit_test(learns_and_carries_over),
        cmocka_unit_test(same_file_for_any_threads), cmocka_unit_test(many_at_once_are_as_one_by_one),
        cmocka_unit_test(checks_hold_out_what_they_say), cmocka_unit_test(damaged_files),
        cmocka_unit_test(any_allocation_may_fail)};
    return cmocka_run_group_tests_name("oplearner", t, up, down);
}
