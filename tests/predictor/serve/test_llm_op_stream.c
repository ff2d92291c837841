/* llm_op_stream: lines of answers and of errors in order; figures by hand. */
#include "learner/train/train.h"
#include "predictor/serve/serve.h"
#include "check.h"
#include "fault.h"
#include "made_llm_ops.h"
#include "tmp.h"

#include <string.h>

static const char text[] =
    "op,device,stack,m,n,k,latency_s\ngemm,h100,vllm-1,8,256,512,1\ngemm,h100,vllm-1,16,256,512,"
    "1\ngemm,h9000,vllm-1,16,256,512,1\ngemm,h100,vllm-1,16,256,512,\n";

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    cd_llm_op_table t;
    cd_llm_op_train_result l;
    tmp_dir dir;
    const char *path;
    FILE *out;
} fixture;

static int up(void **state) {
    static fixture f;
    const cd_device *d;
    cd_config c;
    cdmpp_err err = {0};
    memset(&f, 0, sizeof f);
    f.dir = tmp_make();
    f.path = tmp_put(&f.dir, "q.csv", text, sizeof text - 1);
    f.out = fopen("/dev/null", "w");
    assert_non_null(f.out);
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    assert_ok(cd_device_table_find(f.devices, "h100", &d, &err));
    made_llm_table(&f.t, &d, 1, 3, 16);
    assert_ok(cd_llm_op_table_index(&f.t, &err));
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_set(&c, "operators.rounds=3", &err));
    assert_ok(cd_llm_op_train(&c, &f.t, 6, NULL, NULL, NULL, &f.l, &err));
    cd_config_free(&c);
    *state = &f;
    return 0;
}

static void keep(void *ctx, const cdmpp_err *err) { *(cdmpp_err *)ctx = *err; }

/* A misspelt column is another question; who asked is told. */
TEST(misspelt) {
    fixture *f = *state;
    static const char odd[] = "op,device,dtpye,m,n,k\ngemm,h100,fp8,8,256,512\n";
    cdmpp_err err = {0}, told = {0};
    cd_llm_op_stream *s;
    const cd_llm_op_stream_options o = {.warn = keep, .ctx = &told};
    assert_ok(cd_llm_op_stream_new(f->l.model, &f->t, f->devices, &o, f->out, &s, &err));
    assert_ok(cd_llm_op_stream_file(s, f->path, &err));
    assert_int_equal(told.code, CDMPP_OK);
    assert_ok(cd_llm_op_stream_file(s, tmp_put(&f->dir, "odd.csv", odd, sizeof odd - 1), &err));
    assert_string_equal(told.msg, "column 'dtpye' is not read: did you mean 'dtype'?");
    assert_int_equal(told.line, 1);
    assert_int_equal(cd_llm_op_stream_bad(s), 1); /* the unknown device of the first file */
    cd_llm_op_stream_free(s);
}

static int down(void **state) {
    fixture *f = *state;
    cd_llm_op_train_result_free(&f->l);
    cd_llm_op_table_free(&f->t);
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    (void)fclose(f->out);
    tmp_remove(&f->dir);
    return 0;
}

TEST(counts_and_figures) {
    fixture *f = *state;
    const cd_llm_op_stream_options o = {.eval = true};
    cd_llm_op_stream *s;
    cdmpp_err err = {0};
    cd_buf b = {0};
    assert_ok(cd_llm_op_stream_new(f->l.model, &f->t, f->devices, &o, f->out, &s, &err));
    assert_ok(cd_llm_op_stream_file(s, f->path, &err));
    assert_int_equal(cd_llm_op_stream_rows(s), 4);
    assert_int_equal(cd_llm_op_stream_bad(s), 1);
    assert_int_equal(cd_llm_op_stream_scored(s), 2);
    assert_int_equal(cd_llm_op_stream_own(s), 1); /* what lies between is no row of the table */
    assert_ok(cd_llm_op_stream_print_text(s, &b, &err));
    assert_non_null(
        strstr(b.p, "| product | h100 | measured | 1 | 100.0 | 100.0 | 100.0 | - | - |"));
    assert_non_null(
        strstr(b.p, "| product | h100 | interpolated | 1 | 100.0 | 100.0 | 100.0 | 0.0 | 100.0 |"));
    cd_buf_clear(&b);
    assert_ok(cd_llm_op_stream_print_json(s, &b, &err));
    assert_non_null(strstr(b.p, "\"lines\":4,\"bad\":1,\"evaluation\":[{\"family\":\"product\","
                                "\"device\":\"h100\",\"how\":\"measured\",\"n\":1,"));
    assert_non_null(strstr(b.p, "}],\"in_measured\":1}"));
    cd_buf_free(&b);
    cd_llm_op_stream_free(s);
    const cd_llm_op_stream_options strict = {.strict = true}, nobody = {.device = "h9000"};
    assert_ok(cd_llm_op_stream_new(f->l.model, &f->t, f->devices, &strict, f->out, &s, &err));
    assert_status(cd_llm_op_stream_file(s, f->path, &err), CDMPP_ESCHEMA);
    assert_int_equal(err.line, 4);
    cd_llm_op_stream_free(s);
    assert_status(cd_llm_op_stream_new(f->l.model, &f->t, f->devices, &nobody, f->out, &s, &err),
                  CDMPP_ESCHEMA);
}

TEST(refused) {
    fixture *f = *state;
    const cd_llm_op_stream_options o = {.eval = true, .silent = true};
    FAULT_SWEEP(v, 5) {
        cd_llm_op_stream *s = NULL;
        cd_buf b = {0};
        v.st = cd_llm_op_stream_new(f->l.model, &f->t, f->devices, &o, f->out, &s, &v.err);
        if (!v.st) v.st = cd_llm_op_stream_file(s, f->path, &v.err);
        if (!v.st) v.st = cd_llm_op_stream_print_json(s, &b, &v.err);
        cd_buf_free(&b);
        cd_llm_op_stream_free(s);
    }
}

TESTS(up, down, misspelt, counts_and_figures, refused)
