/* Tasks in types of 16 and 8 bits as operators of language models: which they are, their sizes, and
 * their time by a set of models. */
#include <math.h>

#include "check.h"
#include "fault.h"
#include "made_llm_model.h"
#include "predictor/estimate/estimate_internal.h"
#include "predictor/estimate/estimate.h"
#include "prog.h"

#define T(type, a, b, axes, body, rest)                                                            \
    "\"ops\": [{\"name\": \"A\", \"shape\": " a ", \"dtype\": \"" type                             \
    "\"}, {\"name\": \"B\", \"shape\": " b ", \"dtype\": \"" type "\"},"                           \
    "{\"name\": \"C\", \"axis\": " axes                                                            \
    ", \"reduce_axis\": [[\"k\", 0, 32]], \"reduce\": \"sum\", \"body\": \"" body "\"}" rest       \
    "], \"args\": [\"A\", \"B\""
#define IJ          "[[\"i\", 0, 8], [\"j\", 0, 16]]"
#define DENSE(type) T(type, "[8, 32]", "[16, 32]", IJ, "A[i, k]*B[j, k]", "") ", \"C\"]"
#define ONE(type, body)                                                                            \
    "\"ops\": [{\"name\": \"A\", \"shape\": [8, 16], \"dtype\": \"" type                           \
    "\"}, {\"name\": \"E\", \"axis\": " IJ ", \"body\": \"" body "\"}], \"args\": [\"A\", \"E\"]"

static cdmpp_err err;

TEST(what_they_are) {
    static const struct {
        const char *text;
        int kind, type; /* kind -1: nothing of ours */
        double size[4];
    } t[] = {
        {DENSE("float16"), CD_LLM_OP_GEMM, CD_LLM_OP_T_F16, {8, 16, 32, 1}},
        {DENSE("bfloat16"), CD_LLM_OP_GEMM, CD_LLM_OP_T_BF16, {8, 16, 32, 1}},
        {DENSE("float32"), -1, 0, {0}},
        {DENSE("int8"), -1, 0, {0}}, /* its program multiplies bytes one by one: no words */
        {T("int32", "[8, 32]", "[16, 32]", IJ, "dot4:int32(A[i, k], B[j, k])", "") ", \"C\"]",
         CD_LLM_OP_GEMM,
         CD_LLM_OP_T_INT8,
         {8, 16, 128, 1}},
        {T("int32", "[8, 32]", "[16, 32]", IJ, "dot4:int32(A[i, k], B[j, k])",
           ", {\"name\": \"D\", \"axis\": " IJ ", \"body\": \"float32(C[i, j])*0.5\"}") ", \"D\"]",
         CD_LLM_OP_GEMM,
         CD_LLM_OP_T_INT8,
         {8, 16, 128, 1}},
        /* a convolution of words */
        {T("int32", "[40, 32]", "[16, 32]", IJ, "dot4:int32(A[i + k, k], B[j, k])", "") ", \"C\"]",
         -1,
         0,
         {0}},
        /* numbers of 32 bits, no words */
        {T("int32", "[8, 32]", "[16, 32]", IJ, "A[i, k]*B[j, k]", "") ", \"C\"]", -1, 0, {0}},
        {T("float16", "[4, 8, 32]", "[4, 16, 32]", "[[\"b\", 0, 4], [\"i\", 0, 8], [\"j\", 0, 16]]",
           "A[b, i, k]*B[b, j, k]", "") ", \"C\"]",
         CD_LLM_OP_GEMM,
         CD_LLM_OP_T_F16,
         {8, 16, 32, 4}},
        {T("float16", "[4, 8, 32]", "[32, 16]", "[[\"b\", 0, 4], [\"i\", 0, 8], [\"j\", 0, 16]]",
           "A[b, i, k]*B[k, j]", "") ", \"C\"]",
         CD_LLM_OP_GEMM,
         CD_LLM_OP_T_F16,
         {32, 16, 32, 1}},
        {T("float16", "[8, 32]", "[16, 32]", IJ, "A[i, k]*B[j, k]",
           ", {\"name\": \"D\", \"axis\": " IJ ", \"body\": \"max(C[i, j], C[i, j])\"}") ", \"D\"]",
         CD_LLM_OP_GEMM,
         CD_LLM_OP_T_F16,
         {8, 16, 32, 1}},
        /* turned */
        {T("float16", "[8, 32]", "[16, 32]", IJ, "A[i, k]*B[j, k]",
           ", {\"name\": \"D\", \"axis\": [[\"j\", 0, 16], [\"i\", 0, 8]], \"body\": \"C[i, "
           "j]\"}") ", \"D\"]",
         -1,
         0,
         {0}},
        {"\"ops\": [{\"name\": \"A\", \"shape\": [8, 32], \"dtype\": \"bfloat16\"}, {\"name\": "
         "\"B\", \"shape\": [16, 32], \"dtype\": \"bfloat16\"},"
         "{\"name\": \"C\", \"axis\": " IJ
         ", \"reduce_axis\": [[\"k\", 0, 32]], \"reduce\": \"sum\", \"body\": \"A[i, k]*B[j, k]\"},"
         "{\"name\": \"E\", \"shape\": [1, 16], \"dtype\": \"bfloat16\"}, {\"name\": \"D\", "
         "\"axis\": " IJ ", \"body\": \"C[i, j] + E[0, j]\"},"
         "{\"name\": \"F\", \"axis\": " IJ
         ", \"body\": \"max(D[i, j], 0.0:bfloat16)\"}], \"args\": [\"A\", \"B\", \"E\", \"F\"]",
         CD_LLM_OP_GEMM,
         CD_LLM_OP_T_BF16,
         {8, 16, 32, 1}},
        /* a convolution */
        {T("float16", "[40, 32]", "[16, 32]", IJ, "A[i + k, k]*B[j, k]", "") ", \"C\"]",
         -1,
         0,
         {0}},
        {T("float16", "[8, 32]", "[16, 32]", IJ, "A[i, k] + B[j, k]", "") ", \"C\"]", -1, 0, {0}},
        {T("float16", "[8, 32]", "[16, 32]", "[[\"z\", 0, 1], [\"i\", 0, 8], [\"j\", 0, 16]]",
           "A[i, k]*B[j, k]", "") ", \"C\"]",
         CD_LLM_OP_GEMM,
         CD_LLM_OP_T_F16,
         {8, 16, 32, 1}},
        /* the same product twice */
        {T("float16", "[8, 32]", "[16, 32]", "[[\"z\", 0, 2], [\"i\", 0, 8], [\"j\", 0, 16]]",
           "A[i, k]*B[j, k]", "") ", \"C\"]",
         -1,
         0,
         {0}},
        {ONE("float16", "A[i, j]*A[i, j]"), CD_LLM_OP_ELEMENTWISE, CD_LLM_OP_T_F16, {8, 16}},
        {ONE("float32", "A[i, j]*A[i, j]"), -1, 0, {0}},
        {"\"ops\": [{\"name\": \"A\", \"shape\": [16, 8], \"dtype\": \"float16\"}, {\"name\": "
         "\"E\", \"axis\": " IJ ", \"body\": \"A[j, i]\"}], \"args\": [\"A\", \"E\"]",
         -1,
         0,
         {0}},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        cd_task_registry *tasks;
        cd_llm_op_record r = {0};
        assert_ok(prog_tasks(&t[k].text, 1, &tasks, &err));
        const bool is = cd_node_cost_narrow_of(cd_task_registry_at(tasks, 0)->dag, &r);
        if (is != (t[k].kind >= 0)) fail_msg("%s", t[k].text);
        if (is) assert_true(r.kind == t[k].kind && r.type == t[k].type);
        for (size_t i = 0; is && i < cd_llm_op_n_size((cd_llm_op_kind)r.kind); i++)
            assert_close(r.size[i], t[k].size[i], 0, 0);
        cd_task_registry_free(tasks);
    }
}

/* The set loads the model when it is first asked; its answer is that of the operator. It is no
 * model of programs, and not everybody takes it. */
TEST(their_time) {
    static const char *const text[] = {DENSE("bfloat16"), DENSE("float32"), DENSE("float16")};
    tmp_dir dir = tmp_make();
    cd_model_set m = {0}, none = {0};
    cd_task_registry *tasks;
    const cd_llm_op_asker *a, *again;
    const cd_device *h100, *zen5;
    cd_node_cost_entry n = {0};
    made_llm_model(&dir);
    const char *path[] = {tmp_path(&dir, "llm.cdmpp")};
    const cd_model_set_options o = {
        .model = &(cd_texts){1, path}, .devices = "configs/devices.yaml", .language = true};
    assert_ok(cd_model_set_open(&o, &m, &err));
    assert_status(cd_model_set_need_programs(&m, &err), CDMPP_EMODEL);
    assert_ok(cd_model_set_narrow(&m, &a, &err));
    assert_ok(cd_model_set_narrow(&m, &again, &err));
    assert_true(a && a == again);
    assert_ok(prog_tasks(text, 3, &tasks, &err));
    assert_ok(cd_device_table_find(m.devices, "h100", &h100, &err));
    assert_ok(cd_device_table_find(m.devices, "zen5-avx512", &zen5, &err));
    const cd_task *half = cd_task_registry_find(tasks, (cd_str){"0", 1}),
                  *single = cd_task_registry_find(tasks, (cd_str){"1", 1});
    assert_true(cd_node_cost_narrow(a, half, h100, &n));
    const cd_llm_op_record r = {.kind = CD_LLM_OP_GEMM,
                                .type = CD_LLM_OP_T_BF16,
                                .kv = CD_LLM_OP_T_BF16,
                                .size = {8, 16, 32, 1}};
    cd_llm_op_answer v;
    assert_ok(cd_llm_op_ask(a, &r, h100, 0.9, &v, &err));
    assert_close(n.seconds, v.latency_s, 0, 0);
    assert_int_equal(n.source, CD_COST_LIBRARY);
    assert_true(!n.alike && !(n.reason & CD_UNLIKE_DTYPE));
    /* a type alike, of the same time */
    assert_true(cd_node_cost_narrow(a, cd_task_registry_find(tasks, (cd_str){"2", 1}), h100, &n));
    assert_string_equal(n.alike, "bfloat16");
    assert_true(!(n.reason & CD_UNLIKE_DTYPE));
    assert_close(n.seconds, v.latency_s, 0, 0);
    assert_false(cd_node_cost_narrow(a, single, h100, &n));
    assert_false(cd_node_cost_narrow(a, half, zen5, &n));
    cd_model_set_free(&m);
    const cd_model_set_options without = {.model = &(cd_texts){1, path},
                                          .devices = "configs/devices.yaml"};
    assert_status(cd_model_set_open(&without, &none, &err), CDMPP_EMODEL);
    cd_model_set_free(&none);
    FAULT_SWEEP(f, 5) {
        cd_model_set s = {0};
        f.st = cd_model_set_open(&o, &s, &f.err);
        if (!f.st) f.st = cd_model_set_narrow(&s, &a, &f.err);
        cd_model_set_free(&s);
    }
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
}

/* A product of words by a model of this type: its answer, of the time of `as`. */
static void check_words(cd_llm_op_type trained, cd_llm_op_type as, const char *alike,
                        bool new_type) {
    static const char *const text[] = {T("int32", "[64, 32]", "[256, 32]",
                                         "[[\"i\", 0, 64], [\"j\", 0, 256]]",
                                         "dot4:int32(A[i, k], B[j, k])", "") ", \"C\"]"};
    tmp_dir dir = tmp_make();
    cd_model_set m = {0};
    cd_task_registry *tasks;
    const cd_llm_op_asker *a;
    const cd_device *h100, *v100;
    cd_node_cost_entry n = {0};
    cd_llm_op_answer v;
    made_llm_model_of(&dir, "llm.cdmpp", trained);
    const char *path[] = {tmp_path(&dir, "llm.cdmpp")};
    assert_ok(cd_model_set_open(&(cd_model_set_options){.model = &(cd_texts){1, path},
                                                        .devices = "configs/devices.yaml",
                                                        .language = true},
                                &m, &err));
    assert_ok(cd_model_set_narrow(&m, &a, &err));
    assert_ok(prog_tasks(text, 1, &tasks, &err));
    assert_ok(cd_device_table_find(m.devices, "h100", &h100, &err));
    assert_ok(cd_device_table_find(m.devices, "v100-sxm2", &v100, &err));
    const cd_task *t = cd_task_registry_at(tasks, 0);
    assert_true(cd_node_cost_narrow(a, t, h100, &n));
    const cd_llm_op_record r = {
        .kind = CD_LLM_OP_GEMM, .type = (uint8_t)as, .kv = (uint8_t)as, .size = {64, 256, 128, 1}};
    assert_ok(cd_llm_op_ask(a, &r, h100, 0.9, &v, &err));
    assert_close(n.seconds, v.latency_s, 0, 0);
    assert_int_equal((n.reason & CD_UNLIKE_DTYPE) != 0, new_type);
    assert_string_equal(n.alike ? n.alike : "", alike);
    assert_false(cd_node_cost_narrow(a, t, v100, &n)); /* no units for 8 bits */
    cd_task_registry_free(tasks);
    cd_model_set_free(&m);
    tmp_remove(&dir);
}

/* The loop of words is a quarter as long as the sum. A model that knows products with scales alone
 * answers by these, a type alike; to one that knows neither the type is new. */
TEST(words) {
    check_words(CD_LLM_OP_T_INT8, CD_LLM_OP_T_INT8, "", false);
    check_words(CD_LLM_OP_T_SQ, CD_LLM_OP_T_SQ, "sq", false);
    check_words(CD_LLM_OP_T_BF16, CD_LLM_OP_T_INT8, "", true);
}

TESTS(NULL, NULL, what_they_are, their_time, words)
