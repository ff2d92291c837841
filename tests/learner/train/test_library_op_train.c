/* oplearner: learns made-up laws, carries them to devices and sizes it never saw,
 * gives the same file for any number of threads; opdata and the model file on the way. */
#include <hdf5.h>
#include "learner/train/train.h"
#include "check.h"
#include "fault.h"
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
    assert_ok(cd_config_set(&f.c, "operators.calibration_rows=0", &err));
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

static cd_library_op_data load(const fixture *f, const char *path,
                               const cd_library_op_filter *filter) {
    cd_library_op_data d = {0};
    size_t bad = 0;
    cdmpp_err err = {0};
    assert_ok(cd_library_op_data_add(&d, path, f->devices, filter, count_bad, &bad, &err));
    assert_int_equal(bad, d.drop[CD_LIBRARY_OP_DROP_BAD]);
    return d;
}

static void rows_are_told_apart(void **state) {
    static const char text[] = MADE_OP_HEADER "add,1,t4,4,,,,8\n"
                                              /* the same again: the first stays */
                                              "add,2,Tesla T4,4,,,,8\n"
                                              "add,1,v100,4,,,,8\n"
                                              "mul,1,t4,4,,,,8\n"
                                              "add,,t4,5,,,,8\n"  /* a question */
                                              "add,1,t9,4,,,,8\n" /* no such device */
                                              "fly,1,t4,4,,,,8\n"
                                              "bmm,1,p4,4,4,4,4,\n";
    fixture *f = *state;
    tmp_dir dir = tmp_make();
    const char *path = tmp_put(&dir, "a.csv", text, sizeof text - 1);
    const char *wanted[] = {"T4", "v100"};
    const char *out[] = {"v100/elementwise", "t4/mul"};
    cd_library_op_data d = load(f, path, &(cd_library_op_filter){{0}, {0}});
    assert_true(d.n == 4 && d.n_known == 3 && d.n_line == 8);
    assert_true(d.drop[CD_LIBRARY_OP_DROP_BAD] == 2 && d.drop[CD_LIBRARY_OP_DROP_QUESTION] == 1 &&
                d.drop[CD_LIBRARY_OP_DROP_REPEATED] == 1);
    assert_close(d.r[0].latency_s, 1e-3, 1e-12, 0);
    cd_library_op_data_free(&d);
    tmp_dir mixed = tmp_make(); /* files of others beside the table are told, and skipped */
    char h5[512];
    (void)tmp_put(&mixed, "a.csv", text, sizeof text - 1);
    (void)tmp_put(&mixed, "notes.tsv", "a\tb\n1\t2\n", 8);
    (void)snprintf(h5, sizeof h5, "%s/features.h5", mixed.path);
    const hid_t other = H5Fcreate(h5, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(other >= 0 && H5Fclose(other) >= 0);
    d = load(f, mixed.path, &(cd_library_op_filter){{0}, {0}});
    assert_true(d.n == 4 && d.drop[CD_LIBRARY_OP_DROP_BAD] == 4 && d.n_line == 10);
    cd_library_op_data_free(&d);
    tmp_remove(&mixed);
    d = load(f, dir.path, &(cd_library_op_filter){{2, wanted}, {2, out}}); /* the folder */
    assert_true(d.n == 1 && d.drop[CD_LIBRARY_OP_DROP_DEVICE] == 1 &&
                d.drop[CD_LIBRARY_OP_DROP_EXCLUDED] == 2);
    assert_true(d.excluded[0] == 1 && d.excluded[1] == 1);
    cd_library_op_data_free(&d);
    static const struct {
        const char *entry, *text;
    } wrong[] = {{"t5/add", "no device 't5'"},
                 {"t4", "expected device/operator, found 't4'"},
                 {"t4/linaer", "no operator or class 'linaer', did you mean 'linear'?"},
                 {"t4/fft", "no operator or class 'fft'"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cdmpp_err err = {0};
        const char *entry = wrong[i].entry;
        assert_status(cd_library_op_data_add(&d, path, f->devices,
                                             &(cd_library_op_filter){{0}, {1, &entry}}, NULL, NULL,
                                             &err),
                      CDMPP_ESCHEMA);
        assert_string_equal(err.key, "operators.exclude");
        assert_non_null(strstr(err.msg, wrong[i].text));
        cd_library_op_data_free(&d);
    }
    tmp_remove(&dir);
}

/* Mean |error| of n made-up rows of either operator. */
static double error_on(const cd_library_op_model *m, const cd_device *d, int top, uint64_t seed) {
    double sum = 0;
    for (uint64_t i = 0; i < 100; i++) {
        double v[4], y;
        cdmpp_err err = {0};
        for (uint64_t k = 0; k < 4; k++)
            v[k] = floor(exp2(top - 2 + 2 * cd_rng_unit(seed, 4 * i + k)));
        const cd_library_op_record r =
            i % 2 ? (cd_library_op_record){.kind = CD_LIBRARY_OP_BMM,
                                           .b = v[0],
                                           .m = v[1],
                                           .n = v[2],
                                           .k = v[3]}
                  : (cd_library_op_record){
                        .kind = CD_LIBRARY_OP_ADD, .b = 1, .m = v[0] * v[1], .n = v[2], .k = 1};
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
    /* larger than anything trained on */
    assert_true(error_on(l.model, named(f, "a100"), 11, 78) < 0.1);
    assert_true(error_on(l.model, named(f, "a100-80gb"), 9, 79) < 0.1); /* never seen */
    assert_true(cd_library_op_model_seen(l.model, CD_LIBRARY_OP_ADD, named(f, "p100")) &&
                !cd_library_op_model_seen(l.model, CD_LIBRARY_OP_ADD, named(f, "h100")));
    /* no row of that family */
    assert_false(cd_library_op_model_seen(l.model, CD_LIBRARY_OP_SOFTMAX, named(f, "p100")));
    /* bmm and linear share trees, but those that see a device serve only classes that were trained
     * on it */
    assert_true(cd_library_op_model_seen(l.model, CD_LIBRARY_OP_BMM, named(f, "p100")) &&
                !cd_library_op_model_seen(l.model, CD_LIBRARY_OP_LINEAR, named(f, "p100")));
    const cd_library_op_record softmax = {
        .kind = CD_LIBRARY_OP_SOFTMAX, .b = 1, .m = 8, .n = 8, .k = 1};
    const cd_device *p100 = named(f, "p100");
    double y;
    assert_status(cd_library_op_model_predict(l.model, &softmax, &p100, 1, &y, &err), CDMPP_EMODEL);
    const cd_library_op_record linear = {
        .kind = CD_LIBRARY_OP_LINEAR, .b = 1, .m = 512, .n = 512, .k = 512};
    assert_ok(cd_library_op_model_predict(l.model, &linear, &p100, 1, &y, &err));
    cd_library_op_train_result_free(&l);
    cd_library_op_data_free(&d);
}

static void same_file_for_any_threads(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_train_result l[2] = {{0}, {0}};
    assert_ok(cd_config_set(&f->c, "operators.calibration_rows=50", &err));
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{0}, {0}});
    for (int k = 0; k < 2; k++) {
        cd_threads *pool;
        assert_ok(cd_threads_new(k + 1, &pool, &err));
        assert_ok(cd_library_op_train(&f->c, &d, pool, NULL, NULL, &l[k], &err));
        cd_threads_free(pool);
    }
    assert_ok(cd_config_set(&f->c, "operators.calibration_rows=0", &err));
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
        assert_ok(
            cd_config_set(&f->c, k ? "operators.check=device" : "operators.check=large", &err));
        assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
        /* some rows recur */
        assert_true(k ? l.check.n == d.n : l.check.n > 6 * 12 && l.check.n <= 6 * 15);
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
    /* of another kind */
    assert_status(cd_library_op_model_load("tests/golden/model_v1.cdmpp", &m, &err), CDMPP_EMODEL);
    cd_library_op_train_result_free(&l);
    cd_library_op_data_free(&d);
    assert_status(cd_library_op_train(&f->c, &(cd_library_op_data){0}, NULL, NULL, NULL, &l, &err),
                  CDMPP_ERANGE);
}

/* ---- intervals ---- */
#define OLD "tests/golden/operators_v1.cdmpp" /* of the program before intervals */
static const char *const many[] = {"p100", "v100-pcie", "a100", "t4", "p4", "h100"};

/* What a device has in all rows, and noise of each: factors of the law. */
static double noisy_s(const cd_device *d, size_t which, double m, double n, uint64_t i) {
    const double u = cd_rng_unit(77 + which, i) - 0.5;
    return made_op_s(d, 0, 1, m, n, 1) * exp(0.1 * ((double)(which % 3) - 1) + 0.2 * u);
}

static void add_rows(const fixture *f, cd_library_op_data *d, cd_buf *b, size_t devices, size_t n) {
    cdmpp_err err = {0};
    cd_buf_puts(b, MADE_OP_HEADER);
    for (size_t v = 0; v < devices; v++)
        for (uint64_t i = 0; i < n; i++) {
            const double m = floor(exp2(6 + 12 * cd_rng_unit(5 + v, 2 * i))),
                         k = floor(exp2(4 + 6 * cd_rng_unit(5 + v, 2 * i + 1)));
            cd_buf_putf(b, "add,%.9g,%s,%g,,,,%g\n", 1e3 * noisy_s(named(f, many[v]), v, m, k, i),
                        many[v], m, k);
        }
    tmp_dir dir = tmp_make();
    assert_ok(cd_library_op_data_add(d, tmp_put(&dir, "noisy.csv", b->p, b->n), f->devices,
                                     &(cd_library_op_filter){{0}, {0}}, NULL, NULL, &err));
    tmp_remove(&dir);
}

static cd_library_op_train_result train_noisy(fixture *f, size_t devices, const char *rows) {
    cd_library_op_train_result l = {0};
    cd_library_op_data d = {0};
    cd_buf b = {0};
    cdmpp_err err = {0};
    assert_ok(cd_config_set(&f->c, rows, &err));
    add_rows(f, &d, &b, devices, 300);
    assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
    assert_ok(cd_config_set(&f->c, "operators.calibration_rows=0", &err));
    cd_library_op_data_free(&d);
    cd_buf_free(&b);
    return l;
}

static cd_library_op_range range_of(const cd_library_op_model *m, const cd_library_op_record *r,
                                    const cd_device *d, double *y) {
    cdmpp_err err = {0};
    assert_ok(cd_library_op_model_predict(m, r, &d, 1, y, &err));
    return cd_library_op_model_range(m, r, d, *y, 0.9);
}

/* Rows that were not trained on: noise of a device that was, and the answers of a device that was
 * not. */
static void intervals_hold_what_they_say(void **state) {
    fixture *f = *state;
    cd_library_op_train_result l = train_noisy(f, 6, "operators.calibration_rows=300");
    size_t inside = 0;
    for (uint64_t i = 0; i < 600; i++) {
        const size_t v = i % 6;
        const double m = floor(exp2(6 + 10 * cd_rng_unit(99, 2 * i))),
                     k = floor(exp2(4 + 5 * cd_rng_unit(99, 2 * i + 1)));
        const cd_library_op_record r = {.kind = CD_LIBRARY_OP_ADD, .b = 1, .m = m, .n = k, .k = 1};
        double y, z;
        const cd_library_op_range in = range_of(l.model, &r, named(f, many[v]), &y),
                                  out = range_of(l.model, &r, named(f, "a100-80gb"), &z);
        const double measured = noisy_s(named(f, many[v]), v, m, k, 100000 + i);
        inside += in.low_s <= measured && measured <= in.high_s;
        assert_true(in.unlike == 0 && in.low_s < y && y < in.high_s && in.spread > 0);
        assert_true(out.unlike == CD_LIBRARY_OP_UNLIKE_DEVICE && out.shared > 0);
        /* never seen: wider */
        if (i % 6 == 0) assert_true(out.high_s / out.low_s > in.high_s / in.low_s);
    }
    assert_in_range(inside, 510, 582); /* 85 to 97 % */
    const cd_library_op_coverage *all =
        &l.coverage[CD_LIBRARY_OP_HELD_DEVICE][CD_N_LIBRARY_OP_CLASS];
    assert_true(all->parts == 6 && all->n > 1500 && all->inside > 0.75 * (double)all->n);
    cd_library_op_train_result_free(&l);
}

static void reasons(void **state) {
    fixture *f = *state;
    cd_library_op_train_result l = train_noisy(f, 4, "operators.calibration_rows=300");
    const cd_device *t4 = named(f, "t4"), *l4 = named(f, "l4");
    const cd_library_op_record row = {
        .kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 4096, .n = 256, .k = 1};
    cd_library_op_record half = row, other = row, large = row;
    half.dtype = CD_LIBRARY_OP_DTYPE_F16;
    other.kind = CD_LIBRARY_OP_TANH;
    large.m = 1e9;
    const struct {
        const cd_library_op_record *r;
        const cd_device *d;
        const char *why;
    } ask[] = {{&row, t4, ""},
               {&row, l4, "device"},
               {&half, t4, "dtype"},
               {&other, t4, "operator"},
               {&large, t4, "beyond"},
               {&large, l4, "device+beyond"},
               {&row, named(f, "mi100"), "device+stack"}};
    double y, width[7], spread[7];
    for (size_t i = 0; i < 7; i++) {
        char why[40];
        const cd_library_op_range v = range_of(l.model, ask[i].r, ask[i].d, &y);
        cd_library_op_unlike_text(v.unlike, why);
        assert_string_equal(why, ask[i].why);
        width[i] = log(v.high_s / v.low_s);
        spread[i] = v.spread;
        /* no type and no operator was held out, and of another maker no device */
        assert_true(i == 2 || i == 3 || i == 6 ? isnan(width[i]) : width[i] > 0);
        assert_true(y > 0);
    }
    /* of several reasons the widest counts: that of far larger rows, whatever the device. No time
     * is below what the device can, so widths differ below that. */
    assert_true(spread[1] > spread[0] && spread[4] > spread[0] && spread[5] >= spread[4]);
    assert_true(width[1] > width[0] && width[4] > width[0]);
    const cd_library_op_apart apart = cd_library_op_model_apart(l.model, &large, l4);
    double widest = 0;
    (void)range_of(l.model, &large, l4, &y);
    for (int h = 0; h < CD_LIBRARY_OP_N_ENTRY; h++) {
        const cd_library_op_spread *s = cd_library_op_spread_find(
            l.model->spread, l.model->n_spread, (cd_library_op_held)h,
            cd_library_op_kind_class(large.kind), CD_LIBRARY_OP_ANY_DEVICE);
        assert_non_null(s);
        widest = fmax(widest, cd_library_op_spread_half(s, y, &apart, 0.9));
    }
    assert_close(spread[5] * 1.6448536269514722, widest, 1e-12, 0);
    cd_library_op_train_result_free(&l);
}

static void intervals_survive_the_file(void **state) {
    fixture *f = *state;
    cd_library_op_train_result l = train_noisy(f, 4, "operators.calibration_rows=300");
    cd_library_op_model *m;
    cd_buf again = {0};
    cdmpp_err err = {0};
    assert_ok(cd_library_op_model_from_bytes(l.file.p, l.file.n, &m, &err));
    assert_int_equal(m->n_spread, l.model->n_spread);
    assert_true(m->n_spread > 4);
    for (uint64_t i = 0; i < 60; i++) {
        const cd_library_op_record r = {.kind = i % 2 ? CD_LIBRARY_OP_ADD : CD_LIBRARY_OP_MUL,
                                        .dtype = i % 3 ? CD_LIBRARY_OP_DTYPE_F32
                                                       : CD_LIBRARY_OP_DTYPE_BF16,
                                        .b = 1,
                                        .m = (double)(10 << i % 20),
                                        .n = 100,
                                        .k = 1};
        const cd_device *d = named(f, many[i / 6 % 6]);
        /* no row has another operator or type */
        const bool known = r.kind == CD_LIBRARY_OP_ADD && r.dtype == CD_LIBRARY_OP_DTYPE_F32;
        double y;
        const cd_library_op_range a = range_of(l.model, &r, d, &y), b = range_of(m, &r, d, &y);
        assert_int_equal(a.unlike, b.unlike);
        assert_true(!isnan(a.low_s) == known && !isnan(b.low_s) == known);
        if (!known) continue;
        assert_close(a.low_s, b.low_s, 1e-6, 0);
        assert_close(a.high_s, b.high_s, 1e-6, 0);
        assert_close(a.shared, b.shared, 1e-6, 1e-9);
    }
    assert_ok(cd_library_op_model_encode(m, "", &again, &err));
    cd_library_op_model_free(m);
    assert_ok(cd_library_op_model_from_bytes(again.p, again.n, &m, &err));
    size_t k = 0; /* one that falls would be below 0 far beyond its last knot */
    while (m->spread[k].held != CD_LIBRARY_OP_HELD_LARGE || m->spread[k].n_knot < 2)
        assert_true(++k < m->n_spread);
    m->spread[k].scale[0] = m->spread[k].scale[1] + 1;
    cd_buf_clear(&again);
    assert_ok(cd_library_op_model_encode(m, "", &again, &err));
    cd_library_op_model_free(m);
    assert_true(cd_library_op_model_from_bytes(again.p, again.n, &m, &err) != CDMPP_OK);
    assert_non_null(strstr(err.key, "scale"));
    assert_ok(cd_library_op_model_from_bytes(l.file.p, l.file.n, &m, &err));
    assert_true(m->spread[k].freedom > 0);
    m->spread[k].between[0] = m->spread[k].between[1] + 1;
    cd_buf_clear(&again);
    assert_ok(cd_library_op_model_encode(m, "", &again, &err));
    cd_library_op_model_free(m);
    assert_true(cd_library_op_model_from_bytes(again.p, again.n, &m, &err) != CDMPP_OK);
    assert_non_null(strstr(err.key, "between"));
    /* as programs before wrote them: a scale for all that a new device misses */
    assert_ok(cd_library_op_model_from_bytes(l.file.p, l.file.n, &m, &err));
    for (size_t i = 0; i < m->n_spread; i++) m->spread[i].freedom = 0;
    cd_buf_clear(&again);
    assert_ok(cd_library_op_model_encode(m, "", &again, &err));
    assert_null(memmem(again.p, again.n, "between", 7));
    cd_library_op_model_free(m);
    assert_ok(cd_library_op_model_from_bytes(again.p, again.n, &m, &err));
    const cd_library_op_record row = {
        .kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 4096, .n = 256, .k = 1};
    double at;
    const cd_library_op_range now = range_of(l.model, &row, named(f, "l4"), &at),
                              then = range_of(m, &row, named(f, "l4"), &at);
    assert_true(then.low_s < at && at < then.high_s && then.high_s < now.high_s);
    cd_library_op_model_free(m);
    /* does not tell sizes; its copy does not either */
    assert_ok(cd_library_op_model_load(OLD, &m, &err));
    cd_buf_clear(&again);
    assert_ok(cd_library_op_model_encode(m, "", &again, &err));
    cd_library_op_model_free(m);
    assert_ok(cd_library_op_model_from_bytes(again.p, again.n, &m, &err));
    assert_true(isinf(m->largest[0][1]) && !m->sizes_known);
    cd_library_op_model_free(m);
    cd_buf_free(&again);
    cd_library_op_train_result_free(&l);
}

/* No interval is said to be none, never one of width 0. */
static void no_interval(void **state) {
    fixture *f = *state;
    const cd_library_op_record row = {.kind = CD_LIBRARY_OP_ADD, .b = 1, .m = 64, .n = 256, .k = 1};
    const cd_library_op_record gelu = {
        .kind = CD_LIBRARY_OP_GELU, .b = 1, .m = 64, .n = 256, .k = 1};
    cd_library_op_model *m;
    cdmpp_err err = {0};
    double y;
    assert_ok(cd_library_op_model_load(OLD, &m, &err));
    cd_library_op_range v = range_of(m, &row, named(f, "t4"), &y);
    assert_true(isnan(v.low_s) && isnan(v.high_s) && v.spread == 0 && v.unlike == 0 && y > 0);
    /* the file does not tell operators of a class */
    assert_int_equal(range_of(m, &gelu, named(f, "t4"), &y).unlike, 0);
    v = range_of(m, &row, named(f, "h100"), &y);
    assert_true(isnan(v.low_s) && v.unlike == CD_LIBRARY_OP_UNLIKE_DEVICE);
    cd_library_op_model_free(m);
    /* two devices say nothing of a third */
    cd_library_op_train_result l = train_noisy(f, 2, "operators.calibration_rows=300");
    assert_true(isnan(range_of(l.model, &row, named(f, "t4"), &y).low_s));
    assert_true(range_of(l.model, &row, named(f, many[0]), &y).low_s > 0);
    cd_library_op_train_result_free(&l);
    l = train_noisy(f, 4, "operators.calibration_rows=0");
    assert_true(isnan(range_of(l.model, &row, named(f, "t4"), &y).low_s));
    cd_library_op_train_result_free(&l);
}

/* As many trees as rounds were asked for, in the model and in its file: the last one too. */
static void all_trees_are_kept(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{0}, {0}});
    for (int rounds = 1; rounds < 10; rounds += 4) {
        char set[32];
        cd_library_op_train_result l = {0};
        cd_library_op_model *m;
        int parts = 0;
        snprintf(set, sizeof set, "operators.rounds=%d", rounds);
        assert_ok(cd_config_set(&f->c, set, &err));
        assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
        assert_ok(cd_library_op_model_from_bytes(l.file.p, l.file.n, &m, &err));
        for (int k = 0; k < CD_LIBRARY_OP_N_FAMILY; k++)
            for (int seen = 0; seen < 2; seen++) {
                if (!l.model->part[k][seen].gbt) continue;
                assert_int_equal(cd_xgb_rounds(l.model->part[k][seen].gbt), rounds);
                assert_int_equal(cd_xgb_rounds(m->part[k][seen].gbt), rounds);
                parts++;
            }
        assert_true(parts > 2);
        cd_library_op_model_free(m);
        cd_library_op_train_result_free(&l);
    }
    cd_library_op_data_free(&d);
}

/* Every allocation of reading tables and model files refused in turn. */
static void any_allocation_may_fail(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_train_result l = {0};
    cd_library_op_data d = load(f, f->table, &(cd_library_op_filter){{0}, {0}});
    assert_ok(cd_config_set(&f->c, "operators.rounds=2", &err));
    assert_ok(cd_library_op_train(&f->c, &d, NULL, NULL, NULL, &l, &err));
    cd_library_op_data_free(&d);
    FAULT_SWEEP(w, 1) {
        cd_library_op_model *m = NULL;
        w.st = cd_library_op_data_add(&d, f->table, f->devices, &(cd_library_op_filter){{0}, {0}},
                                      NULL, NULL, &w.err);
        if (!w.st) w.st = cd_library_op_model_from_bytes(l.file.p, l.file.n, &m, &w.err);
        cd_library_op_data_free(&d);
        cd_library_op_model_free(m);
    }
    cd_library_op_train_result_free(&l);
}

TESTS(up, down, rows_are_told_apart, learns_and_carries_over, same_file_for_any_threads,
      many_at_once_are_as_one_by_one, checks_hold_out_what_they_say, damaged_files,
      intervals_hold_what_they_say, reasons, intervals_survive_the_file, no_interval,
      all_trees_are_kept, any_allocation_may_fail)
