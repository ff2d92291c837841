/* llm_op_calls: kernels that wait for the host and kernels that serve query heads alone are found,
 * others are not; the file keeps what was found, answers use it. */
#include "base/io/io.h"
#include "learner/train/train_internal.h"
#include "check.h"

#include <math.h>
#include <string.h>

#define HOST_S 50e-6

enum { WAITS = 2, WORKS, SOME_WAIT, ALONE, TOGETHER };
static const char *const names[] = {"",          "vllm-1", "waits",   "works",
                                    "some_wait", "alone",  "together"};

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    cd_config c;
    const cd_device *d[4];
    cd_llm_op_table t; /* of the first three */
    cd_llm_op_train_result l;
} fixture;

static cd_llm_op_record product(uint16_t kernel, double m, double n) {
    return (cd_llm_op_record){.kind = CD_LLM_OP_GEMM,
                              .type = CD_LLM_OP_T_BF16,
                              .kv = CD_LLM_OP_T_BF16,
                              .stack = 1,
                              .kernel = kernel,
                              .size = {m, n, 4096, 1}};
}

static cd_llm_op_record decode(uint16_t kernel, double past, double batch, double heads) {
    return (cd_llm_op_record){.kind = CD_LLM_OP_DECODE,
                              .type = CD_LLM_OP_T_BF16,
                              .kv = CD_LLM_OP_T_BF16,
                              .stack = 1,
                              .kernel = kernel,
                              .size = {past, batch, heads, 1, 128, 0}};
}

static cd_llm_op_estimate estimate(const cd_llm_op_record *r, const cd_device *d) {
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_estimate_of(r, d, &e, &err));
    return e;
}

static void put(fixture *f, cd_llm_op_record r, size_t device) {
    cdmpp_err err = {0};
    const cd_llm_op_estimate e = estimate(&r, f->d[device]);
    const bool waits = r.kernel == WAITS || (r.kernel == SOME_WAIT && device);
    r.latency_s =
        fmax(1.3 * (r.kernel == ALONE ? fmax(e.base_s, e.alone_s) : e.base_s), waits ? HOST_S : 0);
    assert_ok(cd_llm_op_table_put(&f->t, &r, f->d[device], &err));
}

static int up(void **state) {
    static fixture f;
    static const char *const device[] = {"h100", "l40s", "a100-sxm4-80gb", "h200"};
    cdmpp_err err = {0};
    uint32_t k;
    memset(&f, 0, sizeof f);
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    for (size_t i = 0; i < 4; i++)
        assert_ok(cd_device_table_find(f.devices, device[i], &f.d[i], &err));
    assert_ok(cd_config_init(&f.c, &err));
    assert_ok(cd_config_set(&f.c, "operators.rounds=40", &err));
    for (size_t i = 0; i < 7; i++)
        assert_ok(cd_dict_add(&f.t.names, (cd_str){names[i], strlen(names[i])}, &k, &err));
    for (size_t d = 0; d < 3; d++)
        for (int i = 0; i < 64; i++) {
            for (uint16_t kernel = WAITS; kernel <= SOME_WAIT; kernel++)
                put(&f, product(kernel, 1 << i % 8 * 2, 512 << i / 8 % 5), d);
            for (uint16_t kernel = ALONE; kernel <= TOGETHER; kernel++)
                put(&f, decode(kernel, 64 << i % 8, 4 << i / 8 % 6, i % 3 ? 64 : 16), d);
        }
    assert_ok(cd_llm_op_table_index(&f.t, &err));
    assert_ok(
        cd_llm_op_train(&f.c, &f.t, 1u << CD_LLM_OP_SET_UNSEEN, NULL, NULL, NULL, &f.l, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_llm_op_train_result_free(&f->l);
    cd_llm_op_table_free(&f->t);
    cd_config_free(&f->c);
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    return 0;
}

static cd_llm_op_codes found(const cd_llm_op_model *m, cd_llm_op_record r) {
    cd_llm_op_codes c = cd_llm_op_model_codes(m, names[r.stack], names[r.kernel]);
    cd_llm_op_model_call(m, &r, &c);
    return c;
}

static void holds(const cd_llm_op_model *m) {
    assert_true(fabs(found(m, product(WAITS, 1, 512)).host_s / HOST_S - 1) < 1e-6);
    assert_true(found(m, product(WORKS, 1, 512)).host_s == 0);
    assert_true(found(m, product(SOME_WAIT, 1, 512)).host_s == 0); /* one device has it without */
    assert_true(found(m, product(0, 1, 512)).host_s == 0);
    assert_true(found(m, decode(ALONE, 64, 4, 64)).alone &&
                !(found(m, decode(ALONE, 64, 4, 64)).host_s > 0));
    assert_false(found(m, decode(TOGETHER, 64, 4, 64)).alone);
    assert_true(m->n_call == 2);
}

TEST(found_by_a_training) { holds(((fixture *)*state)->l.model); }

TEST(kept_by_the_file) {
    fixture *f = *state;
    cd_llm_op_model *m;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_model_from_bytes(f->l.file.p, f->l.file.n, &m, &err));
    holds(m);
    cd_llm_op_model_free(m);
}

/* The file with one text of its header in place of another. */
static cdmpp_status spoilt(const cd_buf *file, const char *old, const char *new) {
    cd_container f;
    cd_llm_op_model *m = NULL;
    cdmpp_err err = {0};
    cd_buf header = {0}, weights = {0}, out = {0};
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, file->p, file->n, &f, &err));
    const char *at = memmem(f.header.p, f.header.n, old, strlen(old));
    assert_non_null(at);
    cd_buf_put(&header, f.header.p, (size_t)(at - f.header.p));
    cd_buf_puts(&header, new);
    cd_buf_put(&header, at + strlen(old), f.header.n - (size_t)(at - f.header.p) - strlen(old));
    cd_buf_put(&weights, f.weights.p, f.weights.n);
    assert_ok(cd_container_put(CD_CONTAINER_MODEL, &out, &header, &weights, &err));
    const cdmpp_status st = cd_llm_op_model_from_bytes(out.p, out.n, &m, &err);
    cd_llm_op_model_free(m);
    cd_buf_free(&header);
    cd_buf_free(&weights);
    cd_buf_free(&out);
    return st;
}

TEST(damaged) {
    const cd_buf *file = &((fixture *)*state)->l.file;
    /* without them nothing is known of the kernels */
    assert_int_equal(spoilt(file, "\"calls\"", "\"cal1s\""), CDMPP_OK);
    assert_int_equal(spoilt(file, "\"maker\":0", "\"maker\":1"), CDMPP_ERANGE);
    assert_int_equal(spoilt(file, "\"alone\":0", "\"alone\":2"), CDMPP_ERANGE);
    assert_int_equal(spoilt(file, "\"host_s\"", "\"hast_s\""), CDMPP_ESCHEMA);
}

/* A GPU that was not trained on: no call below the floor, and decode as if each head stood
 * alone. */
TEST(answers_of_a_new_device) {
    fixture *f = *state;
    cd_llm_op_asker *a;
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    cd_llm_op_record r = product(WAITS, 4, 512);
    assert_ok(cd_llm_op_asker_new(f->l.model, NULL, &f->t.names, &a, &err));
    assert_ok(cd_llm_op_ask(a, &r, f->d[3], 0.9, &v, &err));
    assert_true(fabs(v.base_s / HOST_S - 1) < 1e-6 && fabs(v.latency_s / HOST_S - 1) < 0.2);
    r = decode(ALONE, 1024, 64, 64);
    const cd_llm_op_estimate e = estimate(&r, f->d[3]);
    assert_ok(cd_llm_op_ask(a, &r, f->d[3], 0.9, &v, &err));
    assert_true(e.alone_s > 2 * e.base_s && fabs(v.latency_s / (1.3 * e.alone_s) - 1) < 0.2);
    r.kernel = TOGETHER;
    assert_ok(cd_llm_op_ask(a, &r, f->d[3], 0.9, &v, &err));
    assert_true(fabs(v.latency_s / (1.3 * e.base_s) - 1) < 0.2);
    cd_llm_op_asker_free(a);
}

TESTS(up, down, found_by_a_training, kept_by_the_file, damaged, answers_of_a_new_device)
