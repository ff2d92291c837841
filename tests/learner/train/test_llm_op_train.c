/* llm_op_train: learns made-up factors; answers what was measured, what lies between, and what is
 * elsewhere; its file gives the same answers. */
#include "learner/train/train.h"
#include "base/io/io.h"
#include "check.h"
#include "fault.h"
#include "made_llm_ops.h"

#include <math.h>
#include <string.h>

enum { SETS = 7 };

typedef struct {
    cd_device_table *devices;
    cd_diag diag;
    cd_config c;
    const cd_device *d[4];
    cd_llm_op_table t; /* of three GPUs, without m = 16 */
    cd_llm_op_train_result l;
} fixture;

static int up(void **state) {
    static fixture f;
    static const char *const name[] = {"h100", "l40s", "a100-sxm4-80gb", "h200"};
    cdmpp_err err = {0};
    memset(&f, 0, sizeof f);
    assert_ok(cd_device_table_load("configs/devices.yaml", &f.diag, &f.devices, &err));
    for (size_t i = 0; i < 4; i++)
        assert_ok(cd_device_table_find(f.devices, name[i], &f.d[i], &err));
    assert_ok(cd_config_init(&f.c, &err));
    assert_ok(cd_config_set(&f.c, "operators.rounds=40", &err));
    assert_ok(cd_config_set(&f.c, "operators.max_depth=4", &err));
    assert_ok(cd_config_set(&f.c, "operators.eta=0.3", &err));
    made_llm_table(&f.t, f.d, 3, 5, 16);
    assert_ok(cd_llm_op_table_index(&f.t, &err));
    assert_ok(cd_llm_op_train(&f.c, &f.t, SETS, NULL, NULL, NULL, &f.l, &err));
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

static cd_llm_op_answer ask(const fixture *f, const cd_llm_op_model *m, bool table,
                            const cd_llm_op_record *r, const cd_device *d) {
    cd_llm_op_asker *a;
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_asker_new(m, table ? &f->t : NULL, &f->t.names, &a, &err));
    assert_ok(cd_llm_op_ask(a, r, d, 0.9, &v, &err));
    cd_llm_op_asker_free(a);
    return v;
}

TEST(three_kinds_of_answers) {
    fixture *f = *state;
    cd_llm_op_record r = made_llm_gemm(8, 512, 2048, 1);
    cd_llm_op_answer v = ask(f, f->l.model, true, &r, f->d[0]);
    assert_true(v.how == CD_LLM_OP_MEASURED && v.news == 0 && isnan(v.low_s) && isnan(v.line_s));
    assert_close(v.latency_s, made_llm_time(&r, f->d[0]), 1e-12, 0);
    r.size[0] = 16;
    v = ask(f, f->l.model, true, &r, f->d[1]);
    assert_true(v.how == CD_LLM_OP_INTERPOLATED && v.news == 0 && v.low_s < v.latency_s &&
                v.latency_s < v.high_s && v.line_s > 0);
    assert_close(v.latency_s, made_llm_time(&r, f->d[1]), 0.15, 0);
    v = ask(f, f->l.model, false, &r, f->d[1]);
    assert_true(v.how == CD_LLM_OP_PREDICTED && v.news == 0 && isnan(v.line_s) &&
                v.low_s < v.latency_s);
    assert_close(v.latency_s, made_llm_time(&r, f->d[1]), 0.2, 0);
    r.stack = 2; /* the other library is faster, and that is learned */
    assert_true(ask(f, f->l.model, false, &r, f->d[1]).latency_s < 0.9 * v.latency_s);
}

/* An MI300X has wavefronts of 64: the model knows NVIDIA's GPUs alone, and its file still does. */
TEST(another_vendor) {
    fixture *f = *state;
    cd_llm_op_model *again;
    const cd_device *amd;
    cdmpp_err err = {0};
    char text[CD_LLM_OP_NEWS_TEXT];
    cd_llm_op_record r = made_llm_gemm(16, 512, 2048, 1);
    assert_ok(cd_device_table_find(f->devices, "mi300x", &amd, &err));
    assert_int_equal(ask(f, f->l.model, false, &r, amd).news,
                     CD_LLM_OP_NEW_DEVICE | CD_LLM_OP_NEW_VENDOR);
    assert_int_equal(ask(f, f->l.model, false, &r, f->d[3]).news, CD_LLM_OP_NEW_DEVICE);
    assert_ok(cd_llm_op_model_from_bytes(f->l.file.p, f->l.file.n, &again, &err));
    assert_int_equal(ask(f, again, false, &r, amd).news,
                     CD_LLM_OP_NEW_DEVICE | CD_LLM_OP_NEW_VENDOR);
    cd_device unknown = *amd;
    unknown.warp = CD_DEVICE_UNKNOWN;
    assert_int_equal(ask(f, again, false, &r, &unknown).news, CD_LLM_OP_NEW_DEVICE);
    /* rows of a device that were all refused teach nothing of its vendor */
    cd_llm_op_model_device more[4];
    cd_llm_op_model with = *f->l.model;
    memcpy(more, with.device, 3 * sizeof *more);
    more[3] = (cd_llm_op_model_device){.name = "mi250", .warp = 64};
    with.device = more, with.n_device = 4;
    assert_int_equal(ask(f, &with, false, &r, amd).news,
                     CD_LLM_OP_NEW_DEVICE | CD_LLM_OP_NEW_VENDOR);
    more[3].family[CD_LLM_OP_PRODUCT] = true;
    assert_int_equal(ask(f, &with, false, &r, amd).news, CD_LLM_OP_NEW_DEVICE);
    for (size_t i = 0; i < 4; i++) more[i].warp = CD_DEVICE_UNKNOWN; /* nobody knows */
    assert_int_equal(ask(f, &with, false, &r, amd).news, CD_LLM_OP_NEW_DEVICE);
    cd_llm_op_news_text(127, text);
    assert_string_equal(text, "device+stack+kernel+dtype+size+vendor+operator");
    cd_llm_op_model_free(again);
}

/* Between measured rows of a GPU neither it nor its vendor is new. */
TEST(measured_of_another_vendor) {
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_asker *a;
    cd_llm_op_answer v;
    const cd_device *amd;
    cdmpp_err err = {0};
    const cd_llm_op_record r = made_llm_gemm(16, 512, 2048, 1);
    assert_ok(cd_device_table_find(f->devices, "mi300x", &amd, &err));
    made_llm_table(&t, &amd, 1, 5, 16);
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_asker_new(f->l.model, &t, &t.names, &a, &err));
    assert_ok(cd_llm_op_ask(a, &r, amd, 0.9, &v, &err));
    assert_true(v.how == CD_LLM_OP_INTERPOLATED && v.news == 0);
    cd_llm_op_asker_free(a);
    cd_llm_op_table_free(&t);
}

TEST(what_is_new) {
    fixture *f = *state;
    cdmpp_err err = {0};
    uint32_t name;
    char text[CD_LLM_OP_NEWS_TEXT];
    cd_llm_op_record r = made_llm_gemm(16, 512, 2048, 1);
    cd_llm_op_answer v = ask(f, f->l.model, true, &r, f->d[3]);
    assert_true(v.how == CD_LLM_OP_PREDICTED && v.news == CD_LLM_OP_NEW_DEVICE &&
                v.low_s < v.latency_s);
    assert_close(v.latency_s, made_llm_time(&r, f->d[3]), 0.4, 0);
    assert_ok(cd_dict_add(&f->t.names, (cd_str){"vllm-9", 6}, &name, &err));
    r.stack = (uint16_t)name;
    r.type = CD_LLM_OP_T_FP8;
    r.size[0] = 1e6;
    v = ask(f, f->l.model, true, &r, f->d[0]);
    assert_int_equal(v.news, CD_LLM_OP_NEW_STACK | CD_LLM_OP_NEW_TYPE | CD_LLM_OP_NEW_SIZE);
    cd_llm_op_news_text(v.news, text);
    assert_string_equal(text, "stack+dtype+size");
    cd_llm_op_asker *a;
    assert_ok(cd_llm_op_asker_new(f->l.model, NULL, &f->t.names, &a, &err));
    const cd_llm_op_record other = {
        .kind = CD_LLM_OP_NORM, .type = CD_LLM_OP_T_BF16, .size = {8, 8}};
    assert_status(cd_llm_op_ask(a, &other, f->d[0], 0.9, &v, &err), CDMPP_EMODEL);
    assert_status(cd_llm_op_ask(a, &r, f->d[2], 0.9, &v, &err), CDMPP_EMODEL); /* fp8 on an A100 */
    cd_llm_op_asker_free(a);
}

/* A new GPU runs everything at 1.5 times the time: a few measured rows say so, of its other rows
 * too; its interval moves with the answer. */
TEST(few_rows_of_a_new_device) {
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_asker *a;
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    uint32_t k;
    const cd_llm_op_record asked = made_llm_gemm(16, 1024, 1024, 1);
    const double alone = ask(f, f->l.model, false, &asked, f->d[3]).latency_s;
    for (size_t i = 0; i < f->t.names.n; i++)
        assert_ok(cd_dict_add(&t.names, (cd_str){f->t.names.text[i], strlen(f->t.names.text[i])},
                              &k, &err));
    for (int i = 0; i < 20; i++) {
        cd_llm_op_record r = made_llm_gemm(3 << i % 5, 300 << i % 4, 700, 1);
        r.latency_s = 1.5 * ask(f, f->l.model, false, &r, f->d[3]).latency_s;
        assert_ok(cd_llm_op_table_put(&t, &r, f->d[3], &err));
    }
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_asker_new(f->l.model, &t, &t.names, &a, &err));
    assert_ok(cd_llm_op_ask(a, &asked, f->d[3], 0.9, &v, &err));
    assert_true(v.how == CD_LLM_OP_PREDICTED && v.news == CD_LLM_OP_NEW_DEVICE && v.few == 20);
    assert_close(v.latency_s, 1.5 * alone, 0.1, 0);
    assert_true(v.low_s < v.latency_s && v.latency_s < v.high_s);
    assert_ok(cd_llm_op_ask(a, &asked, f->d[0], 0.9, &v, &err)); /* another device's answers stay */
    assert_true(v.few == 0);
    cd_llm_op_asker_free(a);
    FAULT_SWEEP(s, 4) {
        a = NULL;
        s.st = cd_llm_op_asker_new(f->l.model, &t, &t.names, &a, &s.err);
        cd_llm_op_asker_free(a);
    }
    cd_llm_op_table_free(&t);
}

/* A wider level never gives a narrower interval. */
TEST(levels) {
    fixture *f = *state;
    const cd_llm_op_record r = made_llm_gemm(16, 512, 2048, 1);
    cd_llm_op_asker *a;
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    double before = 1;
    assert_ok(cd_llm_op_asker_new(f->l.model, NULL, &f->t.names, &a, &err));
    for (double level = 0.05; level < 1; level += 0.1) {
        assert_ok(cd_llm_op_ask(a, &r, f->d[0], level, &v, &err));
        assert_true(v.high_s / v.low_s >= before);
        before = v.high_s / v.low_s;
    }
    assert_true(before > 1);
    cd_llm_op_asker_free(a);
}

/* Many at once are answered as one by one: measured, between, known and new devices, in any
 * order. */
TEST(many_at_once) {
    enum { N = 150 };
    fixture *f = *state;
    cd_llm_op_asker *a;
    cd_llm_op_record r[N];
    const cd_device *d[N];
    cd_llm_op_answer v[N], one;
    static cdmpp_err whys[N];
    cdmpp_err err = {0};
    for (int i = 0; i < N; i++) {
        r[i] = made_llm_gemm(i % 7 + 1, 256 << i % 3, 512, (uint16_t)(1 + i % 2));
        d[i] = f->d[i % 4];
    }
    for (int table = 0; table < 2; table++) {
        assert_ok(cd_llm_op_asker_new(f->l.model, table ? &f->t : NULL, &f->t.names, &a, &err));
        assert_ok(cd_llm_op_ask_many(a, r, d, N, 0.9, v, NULL, &err));
        for (int i = 0; i < N; i++) {
            assert_ok(cd_llm_op_ask(a, &r[i], d[i], 0.9, &one, &err));
            assert_true(one.latency_s == v[i].latency_s && one.how == v[i].how &&
                        one.news == v[i].news && one.base_s == v[i].base_s &&
                        one.roof_s == v[i].roof_s);
            assert_true(isnan(one.low_s) ? isnan(v[i].low_s)
                                         : one.low_s == v[i].low_s && one.high_s == v[i].high_s);
        }
        r[N - 1].type = CD_LLM_OP_T_FP8, d[N - 1] = f->d[2]; /* fp8 on an A100 */
        assert_status(cd_llm_op_ask_many(a, r, d, N, 0.9, v, NULL, &err), CDMPP_EMODEL);
        const double first = v[0].latency_s;
        assert_ok(cd_llm_op_ask_many(a, r, d, N, 0.9, v, whys, &err)); /* each has its own error */
        assert_int_equal(whys[N - 1].code, CDMPP_EMODEL);
        for (int i = 0; i < N - 1; i++) assert_int_equal(whys[i].code, CDMPP_OK);
        assert_close(v[0].latency_s, first, 0, 0);
        r[N - 1] = r[0], d[N - 1] = d[0];
        cd_llm_op_asker_free(a);
    }
}

static void same(const cd_llm_op_answer *a, const cd_llm_op_answer *b) {
    /* to the bit, NaN too */
    assert_memory_equal(&a->latency_s, &b->latency_s,
                        offsetof(cd_llm_op_answer, few) - offsetof(cd_llm_op_answer, latency_s));
    assert_true(a->how == b->how && a->news == b->news && a->few == b->few);
}

/* A record of one of three kinds; `i` draws its sizes. */
static cd_llm_op_record any_kind(uint64_t i) {
    const uint64_t w = cd_rng_at(11, i);
    const double n = (double)(1 << (w >> 8) % 9), wide = (double)(256 << (w >> 16) % 3);
    cd_llm_op_record r = made_llm_gemm(n, wide, 512, (uint16_t)(1 + (w >> 24) % 2));
    if (w % 3 == 0) return r;
    r.kind = w % 3 == 1 ? CD_LLM_OP_MOE : CD_LLM_OP_DECODE;
    const double moe[] = {n, 1024, 512, 2, wide / 32, 1, 1};
    const double decode[] = {16 * n - 1, 4, 32, 8, wide / 4, 0};
    memcpy(r.size, w % 3 == 1 ? moe : decode, w % 3 == 1 ? sizeof moe : sizeof decode);
    r.skew = w % 3 == 1 && w >> 32 & 1 ? 1.2 : 0;
    return r;
}

/* Kinds, devices and types in any order and number, with errors between them: as one by one. The
 * GPU that is not trained on has measured rows of one kind. */
TEST(many_of_all_kinds) {
    enum { N = 700, TRAINED = 600 };
    static const size_t number[] = {1, 3, 63, 64, 65, 128, 129, 255, 256, 257, N};
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    static cd_llm_op_record r[N];
    static const cd_device *d[N];
    static cd_llm_op_answer v[N];
    static cdmpp_err whys[N];
    cd_llm_op_answer one;
    cdmpp_err err = {0};
    made_llm_table(&t, f->d, 3, 1, 16);
    for (uint64_t i = 0; i < TRAINED; i++) {
        cd_llm_op_record row = any_kind(i);
        row.latency_s = made_llm_time(&row, f->d[i % 3]);
        assert_ok(cd_llm_op_table_put(&t, &row, f->d[i % 3], &err));
    }
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_train(&f->c, &t, SETS, NULL, NULL, NULL, &l, &err));
    for (uint64_t i = 0; i < 10; i++) {
        cd_llm_op_record row = made_llm_gemm((double)(3 << i % 5), 300, 700, 1);
        row.latency_s = 1.5 * made_llm_time(&row, f->d[3]);
        assert_ok(cd_llm_op_table_put(&t, &row, f->d[3], &err));
    }
    assert_ok(cd_llm_op_table_index(&t, &err));
    for (uint64_t i = 0; i < N; i++) {
        r[i] = any_kind(TRAINED / 2 + i);
        d[i] = f->d[cd_rng_at(13, i) % 4];
        if (i % 50 == 9) r[i].type = CD_LLM_OP_T_FP8; /* an A100 cannot */
        if (i % 50 == 19) r[i].kind = CD_LLM_OP_NORM; /* nobody trained on it */
    }
    for (size_t k = 0; k < 2 * sizeof number / sizeof *number; k++) {
        const size_t n = number[k / 2], from = N - n;
        /* alone: what trees expect of measured rows is computed row by row, too */
        cd_llm_op_asker *a, *alone;
        assert_ok(cd_llm_op_asker_new(l.model, k % 2 ? &t : NULL, &t.names, &a, &err));
        assert_ok(cd_llm_op_asker_new(l.model, k % 2 ? &t : NULL, &t.names, &alone, &err));
        assert_ok(cd_llm_op_ask_many(a, r + from, d + from, n, 0.9, v, whys, &err));
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(cd_llm_op_ask(alone, &r[from + i], d[from + i], 0.9, &one, &err),
                             whys[i].code);
            if (!whys[i].code) same(&v[i], &one);
        }
        cd_llm_op_asker_free(a);
        cd_llm_op_asker_free(alone);
    }
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
}

TEST(file) {
    fixture *f = *state;
    cd_llm_op_model *m = NULL;
    cd_llm_op_train_result l = {0};
    cd_threads *pool;
    cdmpp_err err = {0};
    const cd_llm_op_record r = made_llm_gemm(16, 512, 2048, 1);
    assert_true(cd_llm_op_model_is(f->l.file.p, f->l.file.n));
    assert_false(cd_llm_op_model_is("x", 1));
    assert_ok(cd_llm_op_model_from_bytes(f->l.file.p, f->l.file.n, &m, &err));
    for (int table = 0; table < 2; table++)
        for (size_t d = 0; d < 4; d++) {
            const cd_llm_op_answer x = ask(f, f->l.model, table, &r, f->d[d]),
                                   y = ask(f, m, table, &r, f->d[d]);
            assert_true(x.latency_s == y.latency_s && x.low_s == y.low_s && x.news == y.news &&
                        x.how == y.how);
        }
    assert_non_null(strstr(m->header, "\"kind\":\"llm-operators\""));
    cd_llm_op_model_free(m);
    for (size_t cut = 0; cut < f->l.file.n; cut += f->l.file.n / 7 + 1)
        assert_true(cd_llm_op_model_from_bytes(f->l.file.p, cut, &m, &err) != CDMPP_OK);
    assert_ok(cd_threads_new(2, &pool, &err)); /* the same bytes on two threads */
    assert_ok(cd_llm_op_train(&f->c, &f->t, SETS, pool, NULL, NULL, &l, &err));
    assert_int_equal(l.file.n, f->l.file.n);
    assert_memory_equal(l.file.p, f->l.file.p, l.file.n);
    cd_llm_op_train_result_free(&l);
    cd_threads_free(pool);
}

/* fp8 rows of an A100 are counted and left out; with nothing else there is nothing to train on. Two
 * GPUs give no interval for a third. */
TEST(little_to_train_on) {
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    cdmpp_err err = {0};
    cd_llm_op_record r = made_llm_gemm(8, 64, 64, 0);
    uint32_t k;
    assert_ok(cd_dict_add(&t.names, (cd_str){"", 0}, &k, &err));
    r.type = CD_LLM_OP_T_FP8, r.latency_s = 1e-5;
    assert_ok(cd_llm_op_table_put(&t, &r, f->d[2], &err));
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_status(cd_llm_op_train(&f->c, &t, SETS, NULL, NULL, NULL, &l, &err), CDMPP_ERANGE);
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
    made_llm_table(&t, f->d, 2, 3, 16);
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_train(&f->c, &t, SETS, NULL, NULL, NULL, &l, &err));
    assert_null(l.model->part[CD_LLM_OP_PRODUCT][CD_LLM_OP_SET_UNSEEN].spread);
    assert_non_null(l.model->part[CD_LLM_OP_PRODUCT][CD_LLM_OP_SET_SEEN].spread);
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
}

/* Large operators are nearer to the estimate than small ones, on all GPUs: also a GPU that no row
 * is of is answered so. Trees that must rise with the sizes would answer the largest ones with the
 * share of those before. */
TEST(large_ones_of_a_new_device) {
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    made_llm_table(&t, f->d, 3, 4, -1);
    for (size_t i = 0; i < t.n; i++) {
        assert_ok(cd_llm_op_estimate_of(&t.r[i], t.known[t.device[i]], &e, &err));
        t.r[i].latency_s = e.base_s * (1 + 1 / (1 + t.r[i].size[0] / 8));
    }
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_train(&f->c, &t, SETS, NULL, NULL, NULL, &l, &err));
    for (size_t at = 1; at < 4; at++) {
        cd_llm_op_record r = made_llm_gemm((double)(1 << (MADE_LLM_STEPS - at)), 1024, 2048, 1);
        assert_ok(cd_llm_op_estimate_of(&r, f->d[3], &e, &err));
        assert_close(ask(f, l.model, false, &r, f->d[3]).latency_s,
                     e.base_s * (1 + 1 / (1 + r.size[0] / 8)), 0.08, 0);
    }
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
}

TEST(refused) {
    fixture *f = *state;
    cdmpp_err err = {0};
    cd_llm_op_table t = {0};
    cd_config c;
    assert_ok(cd_config_init(&c, &err));
    assert_ok(cd_config_set(&c, "operators.rounds=2", &err));
    made_llm_table(&t, f->d, 3, 2, 16);
    assert_ok(cd_llm_op_table_index(&t, &err));
    FAULT_SWEEP(s, 10) {
        cd_llm_op_train_result l = {0};
        cd_llm_op_model *m = NULL;
        s.st = cd_llm_op_train(&c, &t, SETS, NULL, NULL, NULL, &l, &s.err);
        if (!s.st) s.st = cd_llm_op_model_from_bytes(l.file.p, l.file.n, &m, &s.err);
        cd_llm_op_model_free(m);
        cd_llm_op_train_result_free(&l);
    }
    cd_llm_op_table_free(&t);
    cd_config_free(&c);
}

/* Headers that the fuzzer begins with are read up to the trees, which they have not: a header of
 * another version would be refused at its first words. */
TEST(seeds_of_the_fuzzer) {
    static const char *const seed[] = {"tests/fuzz/seeds/llm_opmodel/header.json",
                                       "tests/fuzz/seeds/llm_opmodel/calls.json"};
    for (size_t i = 0; i < 2; i++) {
        cd_buf file = {0}, header = {0};
        const cd_buf none = {0};
        cd_llm_op_model *m;
        cdmpp_err err = {0};
        char *text;
        size_t n;
        assert_ok(cd_file_read(seed[i], 0, &text, &n, &err));
        cd_buf_put(&header, text, n);
        assert_ok(cd_container_put(CD_CONTAINER_MODEL, &file, &header, &none, &err));
        assert_true(cd_llm_op_model_from_bytes(file.p, file.n, &m, &err) != CDMPP_OK);
        if (strncmp(err.key, "model.parts", 11) != 0)
            fail_msg("%s: %s: %s", seed[i], err.key, err.msg);
        cd_buf_free(&file);
        cd_buf_free(&header);
        cd_mem_free(text);
    }
}

/* One device's times scatter as the others' do not. Trees of the spread know it by its description;
 * of a fourth device nobody knows to which of them it is like. */
TEST(spread_of_devices) {
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    cdmpp_err err = {0};
    made_llm_table(&t, f->d, 3, 5, 16);
    for (size_t i = 0; i < t.n; i++)
        t.r[i].latency_s *= exp((t.device[i] ? 0.02 : 0.8) * (cd_rng_unit(5, i) - 0.5));
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_train(&f->c, &t, SETS, NULL, NULL, NULL, &l, &err));
    const cd_llm_op_part *p = l.model->part[CD_LLM_OP_PRODUCT];
    assert_true(p[CD_LLM_OP_SET_UNSEEN].spread && p[CD_LLM_OP_SET_SEEN].spread);
    assert_true(p[CD_LLM_OP_SET_SEEN].times[2] < 4);   /* trees know each device's own scatter */
    assert_true(p[CD_LLM_OP_SET_UNSEEN].times[2] > 6); /* by trees that saw the others alone */
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
}

/* Where all devices scatter alike the interval of a fourth one is wider by the root of 1 + 1 / 3,
 * and that of those that were seen is not. */
TEST(spread_of_like_devices) {
    fixture *f = *state;
    cd_llm_op_table t = {0};
    cd_llm_op_train_result l = {0};
    cdmpp_err err = {0};
    made_llm_table(&t, f->d, 3, 5, 16);
    for (size_t i = 0; i < t.n; i++) t.r[i].latency_s *= exp(0.8 * (cd_rng_unit(5, i) - 0.5));
    assert_ok(cd_llm_op_table_index(&t, &err));
    assert_ok(cd_llm_op_train(&f->c, &t, SETS, NULL, NULL, NULL, &l, &err));
    const cd_llm_op_part *p = l.model->part[CD_LLM_OP_PRODUCT];
    /* 1.07 without */
    for (size_t k = 2; k < CD_LLM_OP_LEVELS; k += 2)
        assert_true(p[CD_LLM_OP_SET_UNSEEN].times[k] > 1.15 * p[CD_LLM_OP_SET_SEEN].times[k]);
    cd_llm_op_train_result_free(&l);
    cd_llm_op_table_free(&t);
}

TESTS(up, down, spread_of_devices, spread_of_like_devices, another_vendor,
      measured_of_another_vendor, three_kinds_of_answers, what_is_new, few_rows_of_a_new_device,
      many_at_once, many_of_all_kinds, levels, file, seeds_of_the_fuzzer, little_to_train_on,
      large_ones_of_a_new_device, refused)
