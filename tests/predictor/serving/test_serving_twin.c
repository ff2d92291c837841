/* What was measured on a GPU of the same chip, for one that no training saw: libraries, kernels and
 * grids of sizes are those of its rows. */
#include <math.h>
#include <string.h>

#include "learner/train/train.h"
#include "made_llm_ops.h"
#include "predictor/serving/serving.h"
#include "tmp.h"

/* At 8 rows kernel a was measured and b was not, which is faster before and after. Of a third
 * library a grid of n and k. */
static const char ROWS[] =
    "op,device,stack,kernel,m,n,k,num_gpus,message_bytes,latency_s\ngemm,h100,vllm-1,a,8,300,700,,,"
    "3e-5\ngemm,h100,vllm-1,b,1,300,700,,,1e-6\ngemm,h100,vllm-1,b,512,300,700,,,2e-6\n"
    "gemm,h100,odd-1,,8,256,256,,,1e-4\ngemm,h100,odd-1,,8,256,1024,,,2e-4\ngemm,h100,odd-1,,8,"
    "1024,256,,,3e-4\ngemm,h100,odd-1,,8,1024,1024,,,5e-4\n";

/* Attention in two kernels, of which b was measured at the question and a beside it. */
static const char DECODE[] =
    "op,device,stack,kernel,past,batch_size,num_heads,num_key_value_heads,head_dim,latency_"
    "s\nattention_decode,h100,vllm-1,a,1024,4,32,8,128,1e-5\n"
    "attention_decode,h100,vllm-1,b,512,4,32,8,128,3e-5\n";

typedef struct {
    tmp_dir dir;
    cd_device_table *devices;
    cd_diag diag;
    const cd_device *h100, *h200;
    cd_llm_op_train_result l;
} fixture;

static cdmpp_err err;

static cd_llm_op_record decode_of(double past) {
    return (cd_llm_op_record){.kind = CD_LLM_OP_DECODE,
                              .type = CD_LLM_OP_T_BF16,
                              .kv = CD_LLM_OP_T_BF16,
                              .size = {past, 4, 32, 8, 128, 0}};
}

static void add_decode(cd_llm_op_table *t, const cd_device *d) {
    for (int i = 0; i < 9; i++) {
        cd_llm_op_record r = decode_of(64 << i);
        cd_llm_op_estimate e;
        assert_ok(cd_llm_op_estimate_of(&r, d, &e, &err));
        r.stack = 1, r.latency_s = 1.3 * e.base_s;
        assert_ok(cd_llm_op_table_put(t, &r, d, &err));
    }
}

static int up(void **state) {
    static fixture f;
    cd_llm_op_table t = {0};
    cd_config c;
    const cd_device *d[3];
    memset(&f, 0, sizeof f);
    f.dir = tmp_make();
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    assert_ok(cd_device_table_find(f.devices, "h100", &f.h100, &err));
    assert_ok(cd_device_table_find(f.devices, "h200", &f.h200, &err));
    d[0] = f.h100;
    assert_ok(cd_device_table_find(f.devices, "l40s", &d[1], &err));
    assert_ok(cd_device_table_find(f.devices, "a100-sxm4-80gb", &d[2], &err));
    made_llm_table(&t, d, 3, 2, 16);
    for (int i = 0; i < 3; i++) add_decode(&t, d[i]);
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_set(&c, "operators.rounds=10", &err));
    assert_ok(cd_llm_op_train(&c, &t, 7, NULL, NULL, NULL, &f.l, &err));
    cd_config_free(&c);
    cd_llm_op_table_free(&t);
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_llm_op_train_result_free(&f->l);
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    tmp_remove(&f->dir);
    return 0;
}

static cd_serving_time ask_of(fixture *f, const char *rows, const cd_device *d, const char *stack,
                              const cd_llm_op_record *r, char *of) {
    cd_serving_tables *t;
    cd_serving_cost *c;
    cd_serving_time v;
    const char *path = tmp_put(&f->dir, "rows.csv", rows, strlen(rows));
    const cd_serving_op op = {.name = "operator", .r = *r, .count = 1};
    assert_ok(cd_serving_tables_open(path, f->devices, NULL, NULL, &t, &err));
    assert_int_equal(cd_serving_tables_bad(t), 0);
    assert_ok(cd_serving_cost_new(f->l.model, t, d, stack, "", 0, &c, &err));
    assert_ok(cd_serving_cost_of(c, &op, &v, &err));
    const cd_serving_time first = v;
    assert_ok(cd_serving_cost_of(c, &op, &v, &err)); /* from memory */
    assert_true(v.s == first.s && v.how == first.how && v.news == first.news &&
                v.twin == first.twin && v.alike == first.alike && v.known == first.known);
    if (of) strcpy(of, cd_serving_cost_stack(c));
    cd_serving_cost_free(c);
    cd_serving_tables_free(t);
    return v;
}

/* The time of a product of 8 rows by these tables. */
static cd_serving_time ask(fixture *f, const char *rows, const cd_device *d, const char *stack,
                           double n, double k, char *of) {
    const cd_llm_op_record r = made_llm_gemm(8, n, k, 0);
    return ask_of(f, rows, d, stack, &r, of);
}

static double ratio(const fixture *f, double n, double k) {
    const cd_llm_op_record r = made_llm_gemm(8, n, k, 0);
    cd_llm_op_estimate a, b;
    assert_ok(cd_llm_op_estimate_of(&r, f->h100, &a, &err));
    assert_ok(cd_llm_op_estimate_of(&r, f->h200, &b, &err));
    return b.base_s / a.base_s;
}

static void same(fixture *f, const char *rows, const char *stack, const char *version, double n,
                 double k) {
    char of[64];
    const cd_serving_time twin = ask(f, ROWS, f->h100, stack, n, k, NULL),
                          v = ask(f, rows, f->h200, stack, n, k, of);
    assert_string_equal(of, version);
    assert_true(twin.how != CD_LLM_OP_PREDICTED && !twin.twin);
    assert_true(v.how == CD_LLM_OP_PREDICTED && v.twin && !strcmp(v.twin, "h100") &&
                (v.news & CD_LLM_OP_NEW_DEVICE));
    assert_close(v.s, twin.s * ratio(f, n, k), 1e-9, 0);
}

/* The kernel that was measured nearest on the twin, and its grid. */
TEST(nearest) {
    fixture *f = *state;
    same(f, ROWS, "vllm", "vllm-1", 300, 700);
    same(f, ROWS, "odd", "odd-1", 512, 512);
}

/* Rows of the GPU itself, but of something else, hide none of its twin's. */
TEST(rows_of_its_own) {
    fixture *f = *state;
    char rows[1024];
    snprintf(rows, sizeof rows, "%sall_reduce,h200,vllm-1,,,,,2,1024,1e-5\n", ROWS);
    same(f, rows, "vllm", "vllm-1", 300, 700);
    same(f, rows, "odd", "odd-1", 512, 512);
}

/* Rows of bfloat16 speak for float16, on the GPU and on its twin, and so it is told; without rows
 * the training's do. */
TEST(alike) {
    fixture *f = *state;
    const cd_llm_op_record r = made_llm_gemm(8, 300, 700, 0);
    cd_llm_op_record half = r;
    half.type = half.kv = CD_LLM_OP_T_F16;
    const cd_serving_time own = ask_of(f, ROWS, f->h100, "vllm", &half, NULL),
                          twin = ask_of(f, ROWS, f->h200, "vllm", &half, NULL);
    assert_true(own.how == CD_LLM_OP_INTERPOLATED &&
                own.s == ask_of(f, ROWS, f->h100, "vllm", &r, NULL).s &&
                own.alike == CD_LLM_OP_T_BF16 + 1);
    assert_true(twin.twin && !strcmp(twin.twin, "h100") && twin.alike == CD_LLM_OP_T_BF16 + 1 &&
                twin.news == CD_LLM_OP_NEW_DEVICE);
    const cd_serving_time none = ask_of(f, DECODE, f->h100, "vllm", &half, NULL);
    assert_true(none.alike == CD_LLM_OP_T_BF16 + 1 && none.news & CD_LLM_OP_NEW_TYPE && !none.twin);
    assert_int_equal(ask_of(f, ROWS, f->h100, "vllm", &r, NULL).alike, 0);
}

static bool *family_of(const fixture *f, const char *name, cd_llm_op_family k) {
    for (size_t i = 0; i < f->l.model->n_device; i++)
        if (!strcmp(f->l.model->device[i].name, name)) return &f->l.model->device[i].family[k];
    return NULL;
}

/* Attention has the rows of its own twin, also where products have none. */
TEST(each_family_its_own) {
    fixture *f = *state;
    char of[64];
    const cd_llm_op_record r = decode_of(512);
    const cd_serving_time usual = ask_of(f, DECODE, f->h200, "vllm", &r, of),
                          own = ask_of(f, DECODE, f->h100, "vllm", &r, NULL);
    cd_llm_op_estimate a, b;
    *family_of(f, "h100", CD_LLM_OP_PRODUCT) = false;
    const cd_serving_time v = ask_of(f, DECODE, f->h200, "vllm", &r, of);
    const cd_device *twin;
    const unsigned news = cd_llm_op_model_about(f->l.model, f->h200, &twin);
    *family_of(f, "h100", CD_LLM_OP_PRODUCT) = true;
    assert_string_equal(of, "vllm-1");
    assert_true(usual.twin && v.twin && v.s == usual.s && own.how == CD_LLM_OP_MEASURED);
    assert_ok(cd_llm_op_estimate_of(&r, f->h100, &a, &err));
    assert_ok(cd_llm_op_estimate_of(&r, f->h200, &b, &err));
    assert_close(v.s, 3e-5 * b.base_s / a.base_s, 1e-9, 0);
    assert_true(news == CD_LLM_OP_NEW_DEVICE && twin);
    assert_string_equal(twin->name, "h100");
}

/* ---- what is told of a GPU ---- */
static void told(fixture *f, const char *rows, const char *gpu, const char *text,
                 const char *json) {
    cd_buf b = {0};
    cd_json_writer w = {.out = &b};
    cd_serving_session s = {.ops = f->l.model, .devices = f->devices};
    assert_ok(cd_serving_tables_open(rows ? tmp_put(&f->dir, "told.csv", rows, strlen(rows)) : NULL,
                                     f->devices, NULL, NULL, &s.tables, &err));
    const cd_serving_about a = cd_serving_session_about(&s, gpu);
    cd_serving_gpu_text(gpu, &a, &b);
    assert_string_equal(b.p, text);
    cd_buf_clear(&b);
    cd_json_write_open(&w, '{');
    cd_serving_about_json(&w, &a);
    cd_json_write_close(&w, '}');
    assert_string_equal(b.p, json);
    cd_buf_free(&b);
    cd_serving_tables_free(s.tables);
}

TEST(about_gpus) {
    fixture *f = *state;
    told(f, ROWS, "h100", "h100", "{\"new\":null}");
    told(f, ROWS, "h200", "h200 (twin of h100)",
         "{\"new\":\"device\",\"twin\":\"h100\",\"own_rows\":false}");
    told(f, "op,device,m,n,k,latency_s\ngemm,h200,8,300,700,1e-5\n", "h200",
         "h200 (twin of h100, own rows)",
         "{\"new\":\"device\",\"twin\":\"h100\",\"own_rows\":true}");
    told(f, NULL, "b200", "b200 (not trained on)", "{\"new\":\"device\",\"own_rows\":false}");
    told(f, NULL, "mi300x", "mi300x (not trained on, nor its vendor)",
         "{\"new\":\"device+vendor\",\"own_rows\":false}");
    told(f, NULL, "h9000", "h9000", "{\"new\":null}"); /* refused */
}

TESTS(up, down, nearest, rows_of_its_own, alike, each_family_its_own, about_gpus)
