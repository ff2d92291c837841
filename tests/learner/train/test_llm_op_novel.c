/* llm_op_novel: a training holds out libraries, kernels and types; how far off these are is known
 * of made-up times. */
#include "learner/train/train.h"
#include "check.h"
#include "made_llm_ops.h"

#include <math.h>
#include <string.h>

enum { LIBRARIES = 5, SIZES = 40 };

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    cd_config c;
    const cd_device *h100;
    cd_llm_op_table t;
    cd_llm_op_train_result l;
} fixture;

/* Each library takes a factor of its own, each kernel another: one has two. Products in bfloat16,
 * in fp8 twice as long beside their estimate. */
static double factor(uint16_t stack, uint16_t kernel, uint8_t type) {
    static const double of[] = {1, 1, 1.5, 0.8, 1.2, 2};
    return of[stack] * (kernel % 2 ? 1.1 : 0.9) * (type == CD_LLM_OP_T_FP8 ? 2 : 1);
}

static void rows(fixture *f, cd_llm_op_table *t, uint16_t libraries) {
    cdmpp_err err = {0};
    uint32_t k;
    static const char *const name[] = {"",       "one-1",  "two-2", "three-3",
                                       "four-4", "five-5", "a",     "b"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        assert_ok(cd_dict_add(&t->names, (cd_str){name[i], strlen(name[i])}, &k, &err));
    for (uint16_t s = 1; s <= libraries; s++)
        for (int i = 0; i < SIZES; i++)
            for (int w = 0; w < 4; w++) {
                cd_llm_op_record r = made_llm_gemm((double)(8 + 16 * i), 1024, 1024, s);
                cd_llm_op_estimate e;
                r.type = r.kv = w / 2 ? CD_LLM_OP_T_FP8 : CD_LLM_OP_T_BF16;
                r.kernel = (uint16_t)(6 + w % 2);
                assert_ok(cd_llm_op_estimate_of(&r, f->h100, &e, &err));
                r.latency_s = e.base_s * factor(s, r.kernel, r.type);
                assert_ok(cd_llm_op_table_put(t, &r, f->h100, &err));
            }
    assert_ok(cd_llm_op_table_index(t, &err));
}

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    memset(&f, 0, sizeof f);
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    assert_ok(cd_device_table_find(f.devices, "h100", &f.h100, &err));
    assert_ok(cd_config_init(&f.c, &err));
    assert_ok(cd_config_set(&f.c, "operators.rounds=60", &err));
    assert_ok(cd_config_set(&f.c, "operators.eta=0.2", &err));
    rows(&f, &f.t, LIBRARIES);
    assert_ok(cd_llm_op_train(&f.c, &f.t, 1u << CD_LLM_OP_SET_SEEN, NULL, NULL, NULL, &f.l, &err));
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

/* A library held out is off by its factor against those of the others, a kernel by 1.22, a type by
 * 2. */
TEST(as_far_as_they_are) {
    const fixture *f = *state;
    const cd_novelty *v = f->l.model->novel[CD_LLM_OP_PRODUCT];
    assert_int_equal(v[CD_LLM_OP_NOVEL_STACK].n_value, LIBRARIES);
    assert_int_equal(v[CD_LLM_OP_NOVEL_KERNEL].n_value, 2);
    assert_int_equal(v[CD_LLM_OP_NOVEL_TYPE].n_value, 2);
    assert_int_equal(v[CD_LLM_OP_NOVEL_KIND].n_value, 0);
    assert_true(v[CD_LLM_OP_NOVEL_STACK].between > 0.25 && v[CD_LLM_OP_NOVEL_STACK].between < 0.6);
    assert_close(v[CD_LLM_OP_NOVEL_KERNEL].between, log(1.1 / 0.9), 0.15, 0);
    assert_close(v[CD_LLM_OP_NOVEL_TYPE].between, log(2), 0.15, 0);
    for (int k = 0; k < 3; k++) assert_true(v[k].rest[2] < 0.2);
    /* who does not know a library does not know its kernels, which are off to both sides */
    assert_close(v[CD_LLM_OP_NOVEL_STACK].rest[0], log(1.1 / 0.9) / 2, 0.1, 0);
    for (int k = 1; k < CD_LLM_OP_N_FAMILY; k++)
        assert_int_equal(f->l.model->novel[k][CD_LLM_OP_NOVEL_TYPE].n_value, 0);
}

/* One more library of such a factor is inside; what the model says of it is what the experiments
 * say. */
TEST(one_more) {
    fixture *f = *state;
    cd_llm_op_asker *a;
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    uint32_t name;
    assert_ok(cd_dict_add(&f->t.names, (cd_str){"six-6", 5}, &name, &err));
    assert_ok(cd_llm_op_asker_new(f->l.model, NULL, &f->t.names, &a, &err));
    cd_llm_op_record r = made_llm_gemm(100, 1024, 1024, (uint16_t)name);
    assert_ok(cd_llm_op_ask(a, &r, f->h100, 0.9, &v, &err));
    assert_int_equal(v.news, CD_LLM_OP_NEW_STACK);
    assert_close(log(v.high_s / v.low_s) / 2,
                 cd_novelty_half(&f->l.model->novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_STACK], 0.9),
                 1e-9, 0);
    const double low = v.base_s * 0.75, high = v.base_s * 2;
    assert_true(v.low_s < low && v.high_s > high);
    cd_llm_op_asker_free(a);
}

/* Of one library alone, and without intervals, nobody knows. */
TEST(no_experiment) {
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    cdmpp_err err = {0};
    rows(f, &t, 1);
    assert_ok(cd_llm_op_train(&f->c, &t, 1u << CD_LLM_OP_SET_SEEN, NULL, NULL, NULL, &l, &err));
    assert_true(
        isnan(cd_novelty_half(&l.model->novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_STACK], 0.9)));
    assert_true(cd_novelty_half(&l.model->novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_TYPE], 0.9) >
                log(2));
    cd_llm_op_train_result_free(&l);
    l = (cd_llm_op_train_result){0};
    assert_ok(cd_config_set(&f->c, "operators.calibration_rows=0", &err));
    assert_ok(cd_llm_op_train(&f->c, &t, 1u << CD_LLM_OP_SET_SEEN, NULL, NULL, NULL, &l, &err));
    assert_true(
        isnan(cd_novelty_half(&l.model->novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_TYPE], 0.9)));
    assert_ok(cd_config_set(&f->c, "operators.calibration_rows=1500", &err));
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
}

TESTS(up, down, as_far_as_they_are, one_more, no_experiment)
