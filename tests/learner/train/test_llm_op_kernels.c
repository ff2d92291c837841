/* llm_op_kernels: a question without a kernel, or of a library without a version, is answered by
 * what was measured nearest, and of those alike by the fastest. */
#include "learner/train/train.h"
#include "check.h"
#include "fault.h"
#include "made_llm_ops.h"

#include <math.h>
#include <string.h>

enum { A = 3, B, VLLM, VLLM2, NONE }; /* names behind those of made_llm_table */

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    cd_config c;
    const cd_device *d[3];
    cd_llm_op_table t;
    cd_llm_op_train_result l;
    cd_llm_op_asker *a;
} fixture;

static void measure(fixture *f, double m, uint16_t stack, uint16_t kernel, double latency_s) {
    cdmpp_err err = {0};
    cd_llm_op_record r = made_llm_gemm(m, 300, 700, stack);
    r.kernel = kernel, r.latency_s = latency_s;
    assert_ok(cd_llm_op_table_put(&f->t, &r, f->d[0], &err));
}

static int up(void **state) {
    static fixture f;
    static const char *const device[] = {"h100", "l40s", "a100-sxm4-80gb"};
    static const char *const name[] = {"kernel_a", "kernel_b", "vllm", "vllm-2", "vllm-?"};
    cdmpp_err err = {0};
    uint32_t k;
    memset(&f, 0, sizeof f);
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    for (size_t i = 0; i < 3; i++)
        assert_ok(cd_device_table_find(f.devices, device[i], &f.d[i], &err));
    assert_ok(cd_config_init(&f.c, &err));
    assert_ok(cd_config_set(&f.c, "operators.rounds=20", &err));
    assert_ok(cd_config_set(&f.c, "operators.max_depth=3", &err));
    made_llm_table(&f.t, f.d, 3, 2, 16);
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        assert_ok(cd_dict_add(&f.t.names, (cd_str){name[i], strlen(name[i])}, &k, &err));
    assert_int_equal(k, NONE);
    measure(&f, 8, 1, A, 3e-5); /* both kernels */
    measure(&f, 8, 1, B, 2e-5);
    measure(&f, 32, 1, A, 1e-5); /* the slower one alone is measured at 32 and 64 */
    measure(&f, 64, 1, A, 9e-3);
    measure(&f, 128, 1, B, 1e-4);
    measure(&f, 8, VLLM2, A, 1e-5);
    measure(&f, 256, 1, 0, 1e-6); /* a row without a kernel is one of them */
    measure(&f, 256, 1, A, 2e-6);
    assert_ok(cd_llm_op_table_index(&f.t, &err));
    assert_ok(cd_llm_op_train(&f.c, &f.t, 7, NULL, NULL, NULL, &f.l, &err));
    assert_ok(cd_llm_op_asker_new(f.l.model, &f.t, &f.t.names, &f.a, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_llm_op_asker_free(f->a);
    cd_llm_op_train_result_free(&f->l);
    cd_llm_op_table_free(&f->t);
    cd_config_free(&f->c);
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    return 0;
}

static cd_llm_op_answer ask(const fixture *f, double m, uint16_t stack, uint16_t kernel,
                            bool as_is) {
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    cd_llm_op_record r = made_llm_gemm(m, 300, 700, stack);
    r.kernel = kernel;
    assert_ok((as_is ? cd_llm_op_ask_as_is : cd_llm_op_ask)(f->a, &r, f->d[0], 0.9, &v, &err));
    return v;
}

static void is(cd_llm_op_answer v, cd_llm_op_how how, double latency_s) {
    assert_int_equal(v.how, how);
    assert_close(v.latency_s, latency_s, 1e-12, 0);
}

TEST(nearest_then_fastest) {
    const fixture *f = *state;
    is(ask(f, 8, 1, 0, false), CD_LLM_OP_MEASURED, 2e-5);
    assert_int_equal(ask(f, 8, 1, 0, false).kernel, B);
    assert_int_equal(ask(f, 8, 1, 0, true).kernel, 0);
    is(ask(f, 8, 1, A, false), CD_LLM_OP_MEASURED, 3e-5); /* a kernel that is named stays */
    /* however slow: the other one was not measured there */
    is(ask(f, 64, 1, 0, false), CD_LLM_OP_MEASURED, 9e-3);
    is(ask(f, 256, 1, 0, false), CD_LLM_OP_MEASURED, 1e-6);
    is(ask(f, 256, 1, B, true), ask(f, 256, 1, B, false).how, ask(f, 256, 1, B, false).latency_s);
    is(ask(f, 48, 1, 0, false), CD_LLM_OP_INTERPOLATED,
       fmin(ask(f, 48, 1, A, false).latency_s, ask(f, 48, 1, B, false).latency_s));
    /* who chooses kernels himself */
    assert_int_equal(ask(f, 8, 1, 0, true).how, CD_LLM_OP_PREDICTED);
    const double one = ask(f, 4096, 1, A, false).latency_s,
                 other = ask(f, 4096, 1, B, false).latency_s,
                 none = ask(f, 4096, 1, 0, true).latency_s;
    is(ask(f, 4096, 1, 0, false), CD_LLM_OP_PREDICTED, fmin(none, fmin(one, other)));
}

/* Without an interval the seconds are the same, to the last bit. */
TEST(seconds_alone) {
    const fixture *f = *state;
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    const cd_llm_op_record r = made_llm_gemm(4096, 300, 700, 1);
    cd_llm_op_record row = made_llm_gemm(8, 300, 700, 1);
    row.kernel = B;
    assert_ok(cd_llm_op_ask_as_is(f->a, &row, f->d[0], 0, &v, &err));
    is(v, CD_LLM_OP_MEASURED, 2e-5);
    assert_true(isnan(v.low_s) && isnan(v.high_s)); /* nor has a measured row */
    assert_ok(cd_llm_op_ask_as_is(f->a, &r, f->d[0], 0, &v, &err));
    assert_true(isnan(v.low_s) && isnan(v.high_s));
    assert_close(v.latency_s, ask(f, 4096, 1, 0, true).latency_s, 0, 0);
    assert_true(ask(f, 4096, 1, 0, true).low_s > 0);
}

/* "vllm" is each version that was measured; a version that was not is none of them, nor is another
 * library. */
TEST(a_library) {
    const fixture *f = *state;
    is(ask(f, 8, VLLM, 0, false), CD_LLM_OP_MEASURED, 1e-5);
    assert_true(ask(f, 8, VLLM, 0, false).stack == VLLM2 && ask(f, 8, VLLM, B, false).stack == 1);
    is(ask(f, 8, VLLM, B, false), CD_LLM_OP_MEASURED, 2e-5);
    is(ask(f, 8, VLLM, A, false), CD_LLM_OP_MEASURED, 1e-5);
    assert_int_equal(ask(f, 8, VLLM, A, true).how, CD_LLM_OP_PREDICTED);
    assert_int_equal(ask(f, 8, NONE, 0, false).how, CD_LLM_OP_PREDICTED);
    assert_int_equal(ask(f, 8, 2, 0, false).how, CD_LLM_OP_PREDICTED);
}

static double width(cd_llm_op_answer v) { return log(v.high_s / v.low_s); }

/* A library that no training saw is as wide as libraries that were held out, a kernel that none saw
 * has no interval: too few rows tell of kernels. None that is named has its own, and so has a known
 * library without a version. */
TEST(new_names) {
    fixture *f = *state;
    cd_llm_op_asker *bare, *all = f->a;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_asker_new(f->l.model, NULL, &f->t.names, &bare, &err));
    f->a = bare;
    const double open = width(ask(f, 8, 0, 0, true)), library = width(ask(f, 8, NONE, 0, true)),
                 kernel = width(ask(f, 8, 1, VLLM, true));
    assert_true(library > 1.2 * open && isnan(kernel) && ask(f, 8, 1, VLLM, true).latency_s > 0);
    assert_true(width(ask(f, 8, VLLM, 0, true)) < library / 1.2);
    assert_true(!(ask(f, 8, NONE, 0, true).news & CD_LLM_OP_NEW_DEVICE) &&
                ask(f, 8, NONE, 0, true).news & CD_LLM_OP_NEW_STACK);
    f->a = all;
    cd_llm_op_asker_free(bare);
}

static void same(const cd_llm_op_answer *a, const cd_llm_op_answer *b) {
    /* to the bit, NaN too */
    assert_memory_equal(&a->latency_s, &b->latency_s,
                        offsetof(cd_llm_op_answer, few) - offsetof(cd_llm_op_answer, latency_s));
    assert_true(a->how == b->how && a->news == b->news && a->few == b->few &&
                a->stack == b->stack && a->kernel == b->kernel);
}

/* Many at once, over several blocks, named and not, with errors between them: as one by one. */
TEST(many) {
    enum { N = 400 };
    const fixture *f = *state;
    static cd_llm_op_record r[N];
    static const cd_device *d[N];
    static cd_llm_op_answer v[N];
    static cdmpp_err whys[N];
    cd_llm_op_answer one;
    cdmpp_err err = {0};
    static const uint16_t stack[] = {1, VLLM, VLLM2, NONE, 2, 0}, kernel[] = {0, 0, A, B};
    for (size_t i = 0; i < N; i++) {
        r[i] = made_llm_gemm((double)(4 << i % 9), i % 11 ? 300 : 512, 700, stack[i % 6]);
        r[i].kernel = kernel[i % 4];
        d[i] = f->d[i % 5 ? 0 : i % 3];
        if (i % 50 == 9) r[i].type = CD_LLM_OP_T_FP8, d[i] = f->d[2]; /* an A100 cannot */
        if (i % 50 == 19) r[i].kind = CD_LLM_OP_NORM;                 /* nobody trained on it */
    }
    for (size_t n = 1; n <= N; n = n < 8 ? n + 1 : 2 * n < N || n == N ? 2 * n : N) {
        assert_ok(cd_llm_op_ask_many(f->a, r, d, n, 0.9, v, whys, &err));
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(cd_llm_op_ask(f->a, &r[i], d[i], 0.9, &one, &err), whys[i].code);
            if (!whys[i].code) same(&v[i], &one);
        }
    }
    assert_status(cd_llm_op_ask_many(f->a, r, d, N, 0.9, v, NULL, &err), CDMPP_EMODEL);
    assert_ok(cd_llm_op_ask_many(f->a, r, d, 9, 0.9, v, NULL, &err));
    for (size_t i = 0; i < 9; i++) {
        assert_ok(cd_llm_op_ask(f->a, &r[i], d[i], 0.9, &one, &err));
        same(&v[i], &one);
    }
}

TEST(no_memory) {
    fixture *f = *state;
    FAULT_SWEEP(s, 6) {
        cd_llm_op_asker *a = NULL;
        s.st = cd_llm_op_asker_new(f->l.model, &f->t, &f->t.names, &a, &s.err);
        cd_llm_op_asker_free(a);
    }
}

TESTS(up, down, nearest_then_fastest, seconds_alone, a_library, new_names, many, no_memory)
