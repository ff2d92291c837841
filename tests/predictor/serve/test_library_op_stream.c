/* opstream: rows in, JSON lines out in the same order, bad rows in their place. */
#include "predictor/serve/serve.h"
#include "check.h"
#include "made_ops.h"
#include "tmp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/train/train.h"

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    tmp_dir dir;
    cd_library_op_train_result l;
} fixture;

static int up(void **state) {
    static fixture f;
    const cd_device *d;
    cd_config c;
    cd_library_op_data data = {0};
    cd_buf b = {0};
    cdmpp_err err = {0};
    f = (fixture){.dir = tmp_make()};
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    assert_ok(cd_device_table_find(f.devices, "v100", &d, &err));
    cd_buf_puts(&b, MADE_OP_HEADER);
    made_op_rows(&b, d, 100, 8, 1);
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_set(&c, "operators.rounds=5", &err));
    assert_ok(cd_config_set(&c, "operators.check=none", &err));
    assert_ok(cd_library_op_data_add(&data, tmp_put(&f.dir, "ops.csv", b.p, b.n), f.devices,
                                     &(cd_library_op_filter){{0}, {0}}, NULL, NULL, &err));
    assert_ok(cd_library_op_train(&c, &data, NULL, NULL, NULL, &f.l, &err));
    cd_buf_free(&b);
    cd_library_op_data_free(&data);
    cd_config_free(&c);
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_library_op_train_result_free(&f->l);
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    tmp_remove(&f->dir);
    return 0;
}

/* Output of a table; the caller frees it. */
static char *run(fixture *f, const char *text, const cd_library_op_stream_options *o, size_t *bad,
                 cdmpp_status want, cdmpp_err *err) {
    const char *in = tmp_put(&f->dir, "in.csv", text, strlen(text)),
               *path = tmp_path(&f->dir, "out.jsonl");
    cd_library_op_stream *s;
    char *out;
    size_t n;
    FILE *to = fopen(path, "w");
    assert_int_equal(cd_library_op_stream_new(f->l.model, f->devices, o, to, &s, err), CDMPP_OK);
    check_status(cd_library_op_stream_file(s, in, err), want, err, "cd_library_op_stream_file",
                 __FILE__, __LINE__);
    *bad = cd_library_op_stream_bad(s);
    if (o->eval) assert_int_equal(cd_library_op_stream_score(s)->n, 1);
    cd_library_op_stream_free(s);
    fclose(to);
    assert_int_equal(cd_file_read(path, 0, &out, &n, err), CDMPP_OK);
    return out;
}

static const char table[] = "op,latency_ms,Device,B,H,M,N,K\n"
                            "add,1,v100,4,8,,,\n"
                            "fly,1,v100,4,8,,,\n"
                            "add,,h100,99999999,8,,,\n"
                            "softmax,1,v100,4,8,,,\n"
                            "add,1,zen5,4,8,,,\n"
                            "bmm,,,4,,8,8,8\n";

static void rows_in_order(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    size_t bad;
    char *out = run(f, table, &(cd_library_op_stream_options){.device = "t4", .eval = true}, &bad,
                    CDMPP_OK, &err);
    static const char *const want[] = {
        "\"line\":2,\"operator\":\"add\",\"device\":\"v100\",\"seen\":true,\"beyond\":false,"
        "\"latency_s\":",
        "\"line\":3,\"error\":{\"code\":\"EUNSUPPORTED\",\"key\":\"OPName\",\"message\":\"unknown "
        "operator 'fly'; known are bmm, ",
        "\"line\":4,\"operator\":\"add\",\"device\":\"h100\",\"seen\":false,\"beyond\":true,"
        "\"latency_s\":",
        "\"line\":5,\"error\":{\"code\":\"EMODEL\"",
        "\"line\":6,\"error\":{\"code\":\"EMODEL\"",
        "\"line\":7,\"operator\":\"bmm\",\"device\":\"t4\",\"seen\":false"};
    const char *at = out;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const char *hit = strstr(at, want[i]);
        if (!hit) fail_msg("expected %s after %s", want[i], at);
        at = hit;
    }
    assert_int_equal(bad, 3);
    /* h100: one device was trained on */
    assert_non_null(strstr(out, ",\"low_s\":null,\"high_s\":null,\"level\":null,\"out_of_range\":"
                                "true,\"reason\":\"device+beyond\""));
    const char *low = strstr(out, ",\"low_s\":"), *high = strstr(out, ",\"high_s\":");
    assert_true(low && high && strtod(low + 9, NULL) > 0 &&
                strtod(high + 10, NULL) > strtod(low + 9, NULL));
    assert_memory_equal(strstr(high, ",\"level\""), ",\"level\":0.9,\"out_of_range\":false,", 34);
    assert_non_null(strstr(out, "\"measured_s\":null,\"error\":null}\n"));
    assert_non_null(strstr(out, "\"measured_s\":0.001,\"error\":-0."));
    cd_mem_free(out);
    /* the last row then names no device */
    out = run(f, table, &(cd_library_op_stream_options){.device = NULL}, &bad, CDMPP_OK, &err);
    assert_int_equal(bad, 4);
    assert_null(strstr(out, "measured_s"));
    cd_mem_free(out);
}

static void strict_stops(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    size_t bad;
    char *out = run(f, table, &(cd_library_op_stream_options){.strict = true}, &bad,
                    CDMPP_EUNSUPPORTED, &err);
    assert_int_equal(err.line, 3);
    cd_mem_free(out);
}

/* The fixture's model knows v100 alone: what is measured there moves its answer for t4; from t4
 * nothing is carried. */
static void rows_of_one_device_are_scaled_to_another(void **state) {
    static const char both[] = "op,latency_ms,Device,B,H\nadd,4,v100,64,64\nadd,1,t4,64,64\nadd,1,"
                               "p4,64,64\nadd,,v100,64,8\nsoftmax,1,v100,4,8\n";
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_library_op_data truth = {0};
    size_t bad;
    assert_ok(cd_library_op_data_add(&truth, tmp_put(&f->dir, "t.csv", both, sizeof both - 1),
                                     f->devices, &(cd_library_op_filter){{0}, {0}}, NULL, NULL,
                                     &err));
    char *out = run(
        f, both,
        &(cd_library_op_stream_options){.from = "v100", .to = "t4", .eval = true, .truth = &truth},
        &bad, CDMPP_OK, &err);
    char *plain = run(f, "op,Device,B,H\nadd,t4,64,64\nadd,v100,64,64\n",
                      &(cd_library_op_stream_options){0}, &bad, CDMPP_OK, &err);
    const double on_t4 = strtod(strstr(plain, "latency_s\":") + 11, NULL),
                 on_v100 = strtod(strstr(strstr(plain, "\n"), "latency_s\":") + 11, NULL);
    const double got = strtod(strstr(out, "\"latency_s\":") + 12, NULL);
    assert_close(got, on_t4 * sqrt(4e-3 / on_v100), 1e-6, 0);
    static const char *const want[] = {
        "\"line\":2,\"operator\":\"add\",\"from\":\"v100\",\"to\":\"t4\",\"from_s\":0.004,",
        "\"form\":\"model\"",
        "\"out_of_range\":true,\"reason\":\"device\"",
        "\"closed_form\":\"roofline\"",
        "\"measured_s\":0.001,\"error\":",
        "\"closed_error\":",
        "\"line\":5,\"error\":{\"code\":\"ERANGE\"",
        "\"line\":6,\"error\":{\"code\":\"EMODEL\""};
    const char *at = out;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const char *hit = strstr(at, want[i]);
        if (!hit) fail_msg("expected %s after %s", want[i], at);
        at = hit;
    }
    assert_null(strstr(out, "\"line\":3")); /* of the destination */
    assert_null(strstr(out, "\"line\":4")); /* of another device */
    cd_mem_free(out);
    out = run(f, both, &(cd_library_op_stream_options){.from = "t4", .to = "v100"}, &bad, CDMPP_OK,
              &err);
    assert_close(strtod(strstr(out, "\"latency_s\":") + 12, NULL), on_v100, 1e-6, 0);
    cd_mem_free(out);
    cd_mem_free(plain);
    cd_library_op_data_free(&truth);
}

/* More rows than a batch: the same as one at a time. */
static void batches(void **state) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_buf b = {0};
    size_t bad, n = 0;
    cd_buf_puts(&b, "op,Device,B,H\n");
    for (int i = 0; i < 5000; i++) cd_buf_putf(&b, "add,v100,%d,8\n", i % 50 + 1);
    char *out = run(f, b.p, &(cd_library_op_stream_options){0}, &bad, CDMPP_OK, &err);
    const char *first = strstr(out, "latency_s"), *again = NULL;
    for (const char *p = out; (p = strchr(p, '\n')); p++)
        if (++n == 2050) again = strstr(p, "latency_s"); /* row 2051 asks what row 1 asks */
    assert_int_equal(n, 5000);
    assert_memory_equal(first, again, strcspn(first, "}"));
    cd_mem_free(out);
    cd_buf_free(&b);
}

TESTS(up, down, rows_in_order, strict_stops, rows_of_one_device_are_scaled_to_another, batches)
