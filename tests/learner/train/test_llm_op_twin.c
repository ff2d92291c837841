/* llm_op_twin: a GPU that no training saw, of the same chip as one that a training did see. */
#include "learner/llm_op/llm_op_internal.h"
#include "learner/train/train.h"
#include "check.h"
#include "fault.h"
#include "made_llm_ops.h"

#include <math.h>
#include <string.h>

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    cd_config c;
    const cd_device *h100, *l40s, *a100, *h800, *h200, *h20, *rtx;
    cd_llm_op_table t; /* trained on: H100, L40S, A100 */
    cd_llm_op_train_result l;
    cd_llm_op_model *m;        /* the same from its file */
    cd_llm_op_asker *a, *bare; /* with and without the table beside it */
} fixture;

static const cd_device *device(const fixture *f, const char *name) {
    const cd_device *d;
    cdmpp_err err = {0};
    assert_ok(cd_device_table_find(f->devices, name, &d, &err));
    return d;
}

static int up(void **state) {
    static fixture f;
    cdmpp_err err = {0};
    memset(&f, 0, sizeof f);
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    f.h100 = device(&f, "h100"), f.l40s = device(&f, "l40s"), f.a100 = device(&f, "a100-sxm4-80gb");
    f.h800 = device(&f, "h800"), f.h200 = device(&f, "h200"), f.h20 = device(&f, "h20"),
    f.rtx = device(&f, "rtx-pro-6000-server");
    assert_ok(cd_config_init(&f.c, &err));
    assert_ok(cd_config_set(&f.c, "operators.rounds=20", &err));
    assert_ok(cd_config_set(&f.c, "operators.max_depth=3", &err));
    made_llm_table(&f.t, (const cd_device *[]){f.h100, f.l40s, f.a100}, 3, 3, 16);
    assert_ok(cd_llm_op_table_index(&f.t, &err));
    assert_ok(cd_llm_op_train(&f.c, &f.t, 7, NULL, NULL, NULL, &f.l, &err));
    assert_ok(cd_llm_op_model_from_bytes(f.l.file.p, f.l.file.n, &f.m, &err));
    assert_ok(cd_llm_op_asker_new(f.m, &f.t, &f.t.names, &f.a, &err));
    assert_ok(cd_llm_op_asker_new(f.m, NULL, &f.t.names, &f.bare, &err));
    *state = &f;
    return 0;
}

static int down(void **state) {
    fixture *f = *state;
    cd_llm_op_asker_free(f->a);
    cd_llm_op_asker_free(f->bare);
    cd_llm_op_model_free(f->m);
    cd_llm_op_train_result_free(&f->l);
    cd_llm_op_table_free(&f->t);
    cd_config_free(&f->c);
    cd_device_table_free(f->devices);
    cd_diag_free(&f->diag);
    return 0;
}

/* Boards of one chip are twins whatever their memory and their power. Another count of matrix
 * operations in a clock, another cache, another process, or many fewer multiprocessors are another
 * chip. */
TEST(which_they_are) {
    const fixture *f = *state;
    const cd_llm_op_family p = CD_LLM_OP_PRODUCT;
    static const struct {
        const char *a, *b;
        bool twins, linked;
    } t[] = {{"h100", "h200", true, true},
             {"h100", "h800", true, false},
             {"h100", "h20", false, false},
             {"a100", "a100-sxm4-80gb", true, false},
             {"l40s", "rtx6000-ada", true, true},
             {"l40s", "l40", false, false},
             {"l40s", "rtx-pro-6000-server", false, false},
             {"h100", "a100-sxm4-80gb", false, false},
             {"h100", "b200", false, false},
             {"a40", "a100", false, false}};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const cd_device *a = device(f, t[k].a), *b = device(f, t[k].b);
        assert_true(cd_llm_op_twin_is(a, b, p) == t[k].twins &&
                    cd_llm_op_twin_is(b, a, p) == t[k].twins);
        assert_true(cd_llm_op_twin_is(a, b, CD_LLM_OP_COLLECTIVE) == (t[k].twins && t[k].linked));
    }
}

/* One number after the other makes another chip of it, or is not known. */
TEST(what_tells_them_apart) {
    const fixture *f = *state;
    const cd_device d = *f->h100;
    cd_device v;
#define OTHER(key, value, is)                                                                      \
    v = d, v.key = (value), assert_true(cd_llm_op_twin_is(&d, &v, CD_LLM_OP_PRODUCT) == (is))
    OTHER(bandwidth_gb_s, 2 * d.bandwidth_gb_s, true);
    OTHER(tdp_w, d.tdp_w / 2, true);
    OTHER(link_gb_s, 32, true);
    OTHER(cores, d.cores * 0.9, true), OTHER(cores, d.cores * 0.8, false);
    OTHER(clock_mhz, d.clock_mhz * 1.3, false), OTHER(l2_kb, d.l2_kb * 1.4, true),
        OTHER(l2_kb, d.l2_kb * 2, false);
    OTHER(lanes, 64, false), OTHER(core_threads, 1536, false), OTHER(l1_kb, 128, false),
        OTHER(shared_kb, 100, false), OTHER(process_nm, 7, false), OTHER(warp, 64, false);
    OTHER(lanes, CD_DEVICE_UNKNOWN, false), OTHER(process_nm, CD_DEVICE_UNKNOWN, false),
        OTHER(l2_kb, CD_DEVICE_UNKNOWN, false);
    OTHER(bf16_tflops, d.bf16_tflops / 2, false), OTHER(fp8_tflops, 0, false),
        OTHER(int8_tops, d.int8_tops / 2, false);
    /* the others must do */
    OTHER(bf16_tflops, CD_DEVICE_UNKNOWN, true), OTHER(fp8_tflops, CD_DEVICE_UNKNOWN, true);
    v = d, v.bf16_tflops = CD_DEVICE_UNKNOWN;
    /* of what was trained on the main one must be known */
    assert_false(cd_llm_op_twin_is(&v, &d, CD_LLM_OP_PRODUCT));
#undef OTHER
    assert_ptr_equal(cd_llm_op_twin_of(f->m, f->rtx, CD_LLM_OP_PRODUCT), NULL);
    assert_string_equal(cd_llm_op_twin_of(f->m, f->h200, CD_LLM_OP_PRODUCT)->name, "h100");
    /* nothing of that family was trained on */
    assert_ptr_equal(cd_llm_op_twin_of(f->m, f->h200, CD_LLM_OP_FAMILY_PREFILL), NULL);
}

/* Of several the nearest. */
TEST(the_nearest) {
    const fixture *f = *state;
    cd_device far = *f->h100, near = *f->h100;
    far.name = "far", far.clock_mhz *= 0.9, near.name = "near", near.bandwidth_gb_s *= 1.2;
    cd_llm_op_model_device v[] = {{.name = "far", .about = far, .family = {true}},
                                  {.name = "near", .about = near, .family = {true}}};
    const cd_llm_op_model m = {.device = v, .n_device = 2};
    assert_int_equal(CD_LLM_OP_PRODUCT, 0);
    assert_string_equal(cd_llm_op_twin_of(&m, f->h200, CD_LLM_OP_PRODUCT)->name, "near");
    v[1].family[0] = false;
    assert_string_equal(cd_llm_op_twin_of(&m, f->h200, CD_LLM_OP_PRODUCT)->name, "far");
}

static cd_llm_op_answer ask(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                            const cd_device *d) {
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_ask(a, r, d, 0.9, &v, &err));
    return v;
}

static void check(const fixture *f, const cd_llm_op_asker *a, const cd_llm_op_record *r,
                  const cd_device *d) {
    const cd_llm_op_answer of = ask(a, r, f->h100), v = ask(a, r, d),
                           alone = ask(f->bare, r, f->h100);
    const double ratio = v.base_s / of.base_s, wide = log(alone.high_s / alone.low_s) / 2;
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_estimate_of(r, d, &e, &err));
    assert_string_equal(v.twin, "h100");
    assert_true(v.how == CD_LLM_OP_PREDICTED && v.twin_how == of.how &&
                (v.news & CD_LLM_OP_NEW_DEVICE) && !(of.news & CD_LLM_OP_NEW_DEVICE) && !of.twin);
    assert_close(v.base_s, e.base_s, 1e-12, 0);
    assert_close(v.roof_s, e.roof_s, 1e-12, 0);
    assert_close(v.latency_s, of.latency_s * ratio, 1e-12, 0);
    assert_close(log(v.high_s / v.low_s) / 2, hypot(wide, log(ratio)), 1e-9, 0);
    assert_close(v.low_s * v.high_s, v.latency_s * v.latency_s, 1e-9, 0);
}

/* Measured, interpolated and predicted on the twin; the interval is that of an answer without its
 * rows, and holds the difference of the estimates. */
TEST(answers) {
    const fixture *f = *state;
    for (double m = 1; m < 4000; m *= 1.7) {
        const cd_llm_op_record r = made_llm_gemm(floor(m), 512, 1024, 1);
        check(f, f->a, &r, f->h800);
        check(f, f->a, &r, f->h200);
        check(f, f->bare, &r, f->h200);
    }
    const cd_llm_op_record r = made_llm_gemm(4, 256, 512, 1);
    assert_int_equal(ask(f->a, &r, f->h800).twin_how, CD_LLM_OP_MEASURED);
    assert_true(ask(f->a, &r, f->rtx).twin == NULL && ask(f->a, &r, f->h100).twin == NULL);
}

/* Many at once, twins and others, with errors between them: as one by one. */
TEST(many) {
    enum { N = 600 };
    const fixture *f = *state;
    const cd_device *const of[] = {f->h800, f->h100, f->h200, f->rtx, f->a100, f->h20};
    static cd_llm_op_record r[N];
    static const cd_device *d[N];
    static cd_llm_op_answer v[N];
    static cdmpp_err whys[N];
    cdmpp_err err = {0};
    for (size_t i = 0; i < N; i++) {
        r[i] = made_llm_gemm((double)(1 + i % 77), 256 << i % 4, 512, (uint16_t)(i % 3));
        d[i] = of[i % 6];
        if (i % 6 == 4 && i % 5 == 0) r[i].type = CD_LLM_OP_T_FP8; /* an A100 cannot */
    }
    assert_ok(cd_llm_op_ask_many(f->a, r, d, N, 0.9, v, whys, &err));
    for (size_t i = 0; i < N; i++) {
        cd_llm_op_answer one;
        assert_int_equal(cd_llm_op_ask(f->a, &r[i], d[i], 0.9, &one, &err), whys[i].code);
        if (whys[i].code) continue;
        assert_memory_equal(&v[i].latency_s, &one.latency_s, 3 * sizeof(double));
        assert_true(v[i].twin == one.twin && v[i].how == one.how && v[i].news == one.news &&
                    v[i].twin_how == one.twin_how);
    }
}

/* Some measured rows of the GPU itself correct the twin's answer, not that of trees that saw no
 * GPU. */
TEST(rows_of_its_own) {
    const fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_asker *a;
    cdmpp_err err = {0};
    uint32_t k;
    for (size_t i = 0; i < f->t.names.n; i++)
        assert_ok(cd_dict_add(&t.names, (cd_str){f->t.names.text[i], strlen(f->t.names.text[i])},
                              &k, &err));
    for (int i = 0; i < 30; i++) {
        cd_llm_op_record r = made_llm_gemm(3 + 5 * i, 300 + 7 * i, 700, 1);
        r.latency_s = 1.3 * ask(f->bare, &r, f->h200).latency_s;
        assert_ok(cd_llm_op_table_put(&t, &r, f->h200, &err));
    }
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_asker_new(f->m, &t, &t.names, &a, &err));
    const cd_llm_op_record r = made_llm_gemm(70, 390, 720, 1);
    const cd_llm_op_answer v = ask(a, &r, f->h200), without = ask(f->bare, &r, f->h200);
    assert_int_equal(v.few, 30);
    assert_string_equal(v.twin, "h100");
    assert_close(v.latency_s, 1.3 * without.latency_s, 0.05, 0);
    assert_close(v.high_s / v.low_s, without.high_s / without.low_s, 1e-9, 0);
    cd_llm_op_asker_free(a);
    cd_llm_op_table_free(&t);
}

/* Float16 was not trained on: it is answered as bfloat16, also between measured rows, and its name
 * is said. Fp8 is not like it. */
TEST(types_alike) {
    const fixture *f = *state;
    for (double m = 3; m < 2000; m *= 3) {
        cd_llm_op_record r = made_llm_gemm(m, 300, 700, 1), half = r;
        half.type = half.kv = CD_LLM_OP_T_F16;
        const cd_llm_op_answer a = ask(f->bare, &r, f->h100), b = ask(f->bare, &half, f->h100),
                               c = ask(f->bare, &half, f->h200);
        assert_close(a.latency_s, b.latency_s, 0, 0);
        /* of one type alone nobody knows how another is off */
        assert_true(a.high_s > a.latency_s && isnan(b.high_s));
        assert_true(!(a.news & CD_LLM_OP_NEW_TYPE) && b.news & CD_LLM_OP_NEW_TYPE);
        assert_true(!a.alike && b.alike == CD_LLM_OP_T_BF16 + 1 && c.alike == b.alike &&
                    ask(f->bare, &half, f->rtx).alike == b.alike);
        assert_close(c.latency_s, ask(f->bare, &r, f->h200).latency_s, 0, 0);
        half.type = half.kv = CD_LLM_OP_T_FP8;
        assert_true(ask(f->bare, &half, f->h100).latency_s != a.latency_s &&
                    !ask(f->bare, &half, f->h100).alike);
        half.type = CD_LLM_OP_T_F16, half.kv = CD_LLM_OP_T_FP8; /* a cache of another type stays */
        float x[CD_LLM_OP_N_FEATURE] = {0};
        x[CD_LLM_OP_X_kv] = CD_LLM_OP_T_FP8;
        cd_llm_op_model_types(f->m->range, &half, x);
        assert_true((int)x[CD_LLM_OP_X_type] == CD_LLM_OP_T_BF16 &&
                    (int)x[CD_LLM_OP_X_kv] == CD_LLM_OP_T_FP8);
    }
}

/* Files of before do not describe their devices: no GPU is a twin of theirs. What is described is
 * what was trained with. */
TEST(files) {
    const fixture *f = *state;
    for (size_t i = 0; i < f->m->n_device; i++) {
        const cd_device *have = &f->m->device[i].about, *want = device(f, f->m->device[i].name);
        assert_string_equal(have->name, want->name);
#define X(key, low, high, unit, meaning)                                                           \
    assert_true(want->key >= 0 ? have->key == want->key : have->key < 0);
#include "features/device/device_keys.def"
    }
    cd_llm_op_model_device old = {
        .name = "h100", .about = {.name = "h100", .kind = CD_DEVICE_GPU}, .family = {true}};
#define X(key, low, high, unit, meaning) old.about.key = CD_DEVICE_UNKNOWN;
#include "features/device/device_keys.def"
    const cd_llm_op_model m = {.device = &old, .n_device = 1};
    assert_null(cd_llm_op_twin_of(&m, f->h200, CD_LLM_OP_PRODUCT));
}

/* Only the A100 has rows of 8-bit integers. On others they are new, as wide as types that were held
 * out; one alike of the GPU itself answers in its place, and is no surer. */
TEST(types_of_another) {
    const fixture *f = *state;
    const cd_device *const all[] = {f->h100, f->l40s, f->a100};
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    cd_llm_op_model *m;
    cd_llm_op_asker *a, *with;
    cdmpp_err err = {0};
    made_llm_table(&t, all, 3, 3, 16);
    for (int i = 0; i < 60; i++) {
        cd_llm_op_record r = made_llm_gemm(3 + 5 * i, 300, 700, 1);
        r.type = r.kv = CD_LLM_OP_T_SQ;
        r.latency_s = made_llm_time(&r, f->a100);
        assert_ok(cd_llm_op_table_put(&t, &r, f->a100, &err));
    }
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_train(&f->c, &t, 7, NULL, NULL, NULL, &l, &err));
    assert_ok(cd_llm_op_model_from_bytes(l.file.p, l.file.n, &m, &err));
    assert_ok(cd_llm_op_asker_new(m, NULL, &t.names, &a, &err));
    assert_ok(cd_llm_op_asker_new(m, &t, &t.names, &with, &err));
    cd_llm_op_record r = made_llm_gemm(70, 300, 700, 1);
    const double bf16 = log(ask(a, &r, f->h100).high_s / ask(a, &r, f->h100).low_s);
    r.type = r.kv = CD_LLM_OP_T_SQ;
    cd_llm_op_answer own = ask(a, &r, f->a100), other = ask(a, &r, f->h100),
                     twin = ask(a, &r, f->h200);
    assert_false(own.news & CD_LLM_OP_NEW_TYPE);
    assert_true(other.news & CD_LLM_OP_NEW_TYPE && twin.news & CD_LLM_OP_NEW_TYPE &&
                !(other.news & CD_LLM_OP_NEW_DEVICE));
    assert_true(log(other.high_s / other.low_s) > 1.2 * bf16 && !own.alike && !other.alike);
    assert_false(ask(with, &r, f->a100).news & CD_LLM_OP_NEW_TYPE);
    r.type = r.kv = CD_LLM_OP_T_INT8;
    const cd_llm_op_answer like = ask(a, &r, f->a100);
    assert_true(like.news & CD_LLM_OP_NEW_TYPE && like.alike == CD_LLM_OP_T_SQ + 1 &&
                !ask(a, &r, f->h100).alike);
    assert_true(log(like.high_s / like.low_s) > 1.2 * log(own.high_s / own.low_s));
    /* as of an older file */
    for (size_t i = 0; i < m->n_device; i++) m->device[i].types[CD_LLM_OP_PRODUCT] = UINT32_MAX;
    r.type = r.kv = CD_LLM_OP_T_SQ;
    assert_false(ask(a, &r, f->h100).news & CD_LLM_OP_NEW_TYPE);
    r.type = r.kv = CD_LLM_OP_T_INT8;
    assert_int_equal(ask(a, &r, f->h100).alike, CD_LLM_OP_T_SQ + 1);
    cd_llm_op_asker_free(a);
    cd_llm_op_asker_free(with);
    cd_llm_op_model_free(m);
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
}

/* ---- rows of its own beside those of the twin ---- */

static cd_llm_op_record named(double m, uint16_t kernel, double latency_s) {
    cd_llm_op_record r = made_llm_gemm(m, 300, 700, 1);
    r.kernel = kernel, r.latency_s = latency_s;
    return r;
}

/* One and many at once give the same. */
static cd_llm_op_answer both(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                             const cd_device *d) {
    const cd_llm_op_answer one = ask(a, r, d);
    cd_llm_op_answer many;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_ask_many(a, r, &d, 1, 0.9, &many, NULL, &err));
    assert_memory_equal(&many.latency_s, &one.latency_s, 3 * sizeof(double));
    assert_true(many.twin == one.twin && many.how == one.how && many.kernel == one.kernel);
    return one;
}

enum { A = 1, B };

/* Kernel B ran on the H100 alone at this size, and faster: what was measured on the GPU itself is
 * nearer. Where only the twin was measured, so are its kernels asked, whatever else has rows. */
TEST(left_open) {
    const fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_asker *a;
    cdmpp_err err = {0};
    uint32_t k;
    const cd_llm_op_record rows[] = {named(8, A, 3e-5), named(8, B, 1e-5), named(8, A, 4e-5),
                                     named(512, B, 9e-5)};
    for (size_t i = 0; i < f->t.names.n; i++)
        assert_ok(cd_dict_add(&t.names, (cd_str){f->t.names.text[i], strlen(f->t.names.text[i])},
                              &k, &err));
    for (size_t i = 0; i < 4; i++)
        assert_ok(cd_llm_op_table_put(&t, &rows[i], i < 2 ? f->h100 : f->h800, &err));
    cd_llm_op_record other = named(8, A, 1e-5), r = named(8, 0, 0);
    other.type = other.kv = CD_LLM_OP_T_F16;
    assert_ok(cd_llm_op_table_put(&t, &other, f->h200, &err));
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_asker_new(f->m, &t, &t.names, &a, &err));
    cd_llm_op_answer v = both(a, &r, f->h800);
    assert_true(v.how == CD_LLM_OP_MEASURED && !v.twin && v.kernel == A);
    assert_close(v.latency_s, 4e-5, 1e-12, 0);
    v = both(a, &r, f->h200);
    assert_true(v.twin && v.twin_how == CD_LLM_OP_MEASURED && v.kernel == B);
    cd_llm_op_asker_free(a);
    cd_llm_op_table_free(&t);
}

/* The twin's description does not tell how fast it is in a type: trees that saw no GPU answer, as
 * without a twin. */
TEST(types_of_one_alone) {
    const fixture *f = *state;
    cd_llm_op_record r = made_llm_gemm(70, 390, 720, 1);
    double *twin = NULL;
    for (size_t i = 0; i < f->m->n_device; i++)
        if (!strcmp(f->m->device[i].name, "h100")) twin = &f->m->device[i].about.fp8_tflops;
    const double was = *twin;
    r.type = r.kv = CD_LLM_OP_T_FP8;
    assert_non_null(both(f->bare, &r, f->h200).twin);
    *twin = CD_DEVICE_UNKNOWN;
    assert_null(both(f->bare, &r, f->h200).twin);
    assert_null(both(f->a, &r, f->h200).twin);
    r.type = r.kv = CD_LLM_OP_T_BF16;
    assert_non_null(both(f->bare, &r, f->h200).twin);
    *twin = was;
}

/* A GPU that was trained on answers for itself, whatever is like it. */
TEST(trained_on) {
    const fixture *f = *state;
    cd_llm_op_model_device v[] = {{.name = "h100", .about = *f->h100, .family = {true}},
                                  {.name = "again", .about = *f->h100, .family = {true}}};
    cd_device again = *f->h100;
    const cd_llm_op_model m = {.device = v, .n_device = 2};
    again.name = "again";
    assert_null(cd_llm_op_twin_of(&m, &again, CD_LLM_OP_PRODUCT));
    v[1].family[0] = false;
    assert_string_equal(cd_llm_op_twin_of(&m, &again, CD_LLM_OP_PRODUCT)->name, "h100");
}

/* A GPU of the training without rows of a type: its twin has them, and knows more than trees that
 * never saw the type there. */
TEST(trained_on_without_a_type) {
    const fixture *f = *state;
    const uint32_t all = UINT32_MAX, plain = all & ~(1u << CD_LLM_OP_T_FP8);
    cd_device again = *f->h100;
    again.name = "again", again.bandwidth_gb_s *= 1.4;
    cd_llm_op_model_device v[] = {
        {.name = "again", .about = again, .family = {true}, .types = {plain}},
        {.name = "h100", .about = *f->h100, .family = {true}, .types = {all}}};
    const cd_llm_op_model m = {.device = v, .n_device = 2};
    cd_llm_op_record r = made_llm_gemm(70, 390, 720, 1);
    r.type = r.kv = CD_LLM_OP_T_FP8;
    assert_ptr_equal(cd_llm_op_twin_for(&m, &r, &again), &v[1].about);
    assert_null(cd_llm_op_twin_for(&m, &r, f->h100));
    v[1].types[0] = plain; /* nobody has them: it answers for itself */
    assert_null(cd_llm_op_twin_for(&m, &r, &again));
    r.type = r.kv = CD_LLM_OP_T_BF16;
    assert_null(cd_llm_op_twin_for(&m, &r, &again));
}

/* Of such an answer the type is new, and its interval is the twin's and the difference of the
 * boards. */
TEST(answer_of_a_type_by_the_twin) {
    const fixture *f = *state;
    cd_llm_op_record r = made_llm_gemm(70, 390, 720, 1);
    cd_llm_op_model_device *h100 = NULL;
    cd_llm_op_model_device h200 = {
        .name = "h200", .about = *f->h200, .family = {true}, .types = {1u << CD_LLM_OP_T_INT8}};
    cd_llm_op_model_device grown[8];
    cd_llm_op_asker *a;
    cdmpp_err err = {0};
    assert_true(f->m->n_device < 8);
    memcpy(grown, f->m->device, f->m->n_device * sizeof *grown);
    for (size_t i = 0; i < f->m->n_device; i++)
        if (!strcmp(grown[i].name, "h100")) h100 = &grown[i];
    assert_non_null(h100);
    const cd_llm_op_answer of = ask(f->bare, &r, f->h100), unseen = ask(f->bare, &r, f->h200);
    grown[f->m->n_device] = h200;
    cd_llm_op_model m = *f->m;
    m.device = grown, m.n_device++;
    assert_ok(cd_llm_op_asker_new(&m, NULL, &f->t.names, &a, &err));
    const cd_llm_op_answer v = ask(a, &r, f->h200);
    assert_string_equal(v.twin, "h100");
    assert_int_equal(v.news, of.news | CD_LLM_OP_NEW_TYPE);
    assert_true(v.latency_s == unseen.latency_s && v.low_s == unseen.low_s &&
                v.high_s == unseen.high_s);
    grown[f->m->n_device].types[0] |= 1u << CD_LLM_OP_T_BF16;
    assert_null(ask(a, &r, f->h200).twin);
    cd_llm_op_asker_free(a);
}

/* A model of one GPU answers its twins, and rows of their own correct that. */
TEST(trained_on_one) {
    const fixture *f = *state;
    cd_llm_op_table t = {0}, own = {0};
    cd_llm_op_train_result l = {0};
    cd_llm_op_asker *bare, *a;
    cdmpp_err err = {0};
    uint32_t k;
    made_llm_table(&t, &f->h100, 1, 3, 16);
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_train(&f->c, &t, 7, NULL, NULL, NULL, &l, &err));
    assert_ok(cd_llm_op_asker_new(l.model, NULL, &t.names, &bare, &err));
    for (size_t i = 0; i < t.names.n; i++)
        assert_ok(
            cd_dict_add(&own.names, (cd_str){t.names.text[i], strlen(t.names.text[i])}, &k, &err));
    for (int i = 0; i < 30; i++) {
        cd_llm_op_record r = made_llm_gemm(3 + 5 * i, 300 + 7 * i, 700, 1);
        r.latency_s = 1.3 * ask(bare, &r, f->h200).latency_s;
        assert_ok(cd_llm_op_table_put(&own, &r, f->h200, &err));
    }
    assert_ok(cd_llm_op_table_index(&own, &err));
    assert_ok(cd_llm_op_asker_new(l.model, &own, &own.names, &a, &err));
    const cd_llm_op_record r = made_llm_gemm(70, 390, 720, 1);
    assert_int_equal(both(a, &r, f->h200).few, 30);
    assert_close(ask(a, &r, f->h200).latency_s, 1.3 * ask(bare, &r, f->h200).latency_s, 0.05, 0);
    cd_llm_op_asker_free(a);
    cd_llm_op_asker_free(bare);
    cd_llm_op_table_free(&own);
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
}

TESTS(up, down, which_they_are, what_tells_them_apart, the_nearest, answers, many, rows_of_its_own,
      types_alike, types_of_another, files, left_open, types_of_one_alone, trained_on,
      trained_on_without_a_type, answer_of_a_type_by_the_twin, trained_on_one)
