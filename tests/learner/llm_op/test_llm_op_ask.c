/* Answers about operators of language models, of a model whose trees say one number: which set
 * answers, how wide, and what is new. */
#include "learner/llm_op/llm_op_internal.h"
#include "check.h"
#include "fault.h"
#include "made_llm_answers.h"

#include <string.h>

static int up(void **state) {
    static made_llm_answers f;
    made_llm_answers_make(&f);
    *state = &f;
    return 0;
}

static int down(void **state) {
    made_llm_answers_free(*state);
    return 0;
}

static cd_llm_op_answer ask_at(const made_llm_answers *f, const cd_llm_op_table *t,
                               const cd_llm_op_record *r, const cd_device *d, double level) {
    cd_llm_op_asker *a;
    cd_llm_op_answer v;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_asker_new(f->m, t, t ? &t->names : &f->names, &a, &err));
    assert_ok(cd_llm_op_ask(a, r, d, level, &v, &err));
    cd_llm_op_asker_free(a);
    return v;
}

static cd_llm_op_answer ask(const made_llm_answers *f, const cd_llm_op_record *r,
                            const cd_device *d) {
    return ask_at(f, NULL, r, d, 0.9);
}

static double base_of(const cd_llm_op_record *r, const cd_device *d) {
    cd_llm_op_estimate e;
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_estimate_of(r, d, &e, &err));
    return e.base_s;
}

/* Both ends are as far, as factors. */
static double half(const cd_llm_op_answer *v) {
    assert_close(v->low_s * v->high_s, v->latency_s * v->latency_s, 1e-9, 0);
    return log(v->high_s / v->low_s) / 2;
}

TEST(of_a_gpu_that_was_seen) {
    const made_llm_answers *f = *state;
    const cd_llm_op_record r = made_llm_product(128, MADE_VLLM, MADE_FAST);
    const cd_llm_op_answer v = ask(f, &r, f->h100);
    assert_true(v.how == CD_LLM_OP_PREDICTED && v.news == 0 && !v.twin && !v.few);
    assert_close(v.latency_s, base_of(&r, f->h100) * exp(0.3), 1e-6, 0);
    assert_close(half(&v), 0.16, 1e-6, 0);
    const double level[] = {0.25, 0.5, 0.65, 0.85, 0.97, 0.99};
    const double times[] = {0.3, 0.6, 0.9, 1.4, 2.5, 3};
    for (size_t i = 0; i < sizeof level / sizeof *level; i++) {
        const cd_llm_op_answer w = ask_at(f, NULL, &r, f->h100, level[i]);
        assert_close(half(&w), 0.1 * times[i], 1e-6, 0);
    }
}

/* h200 has the chip of h100: its answer by the ratio of the estimates, all of which is in the
 * interval. */
TEST(of_a_twin) {
    const made_llm_answers *f = *state;
    cd_llm_op_record r = made_llm_product(1, MADE_VLLM, MADE_FAST);
    r.size[1] = r.size[2] = 16384; /* memory counts */
    const cd_llm_op_answer v = ask(f, &r, f->h200);
    const double ratio = base_of(&r, f->h200) / base_of(&r, f->h100);
    assert_string_equal(v.twin, f->h100->name);
    assert_true(ratio < 1 && v.news == CD_LLM_OP_NEW_DEVICE);
    assert_close(v.latency_s, base_of(&r, f->h200) * exp(0.3), 1e-6, 0);
    assert_close(half(&v), hypot(0.16, log(ratio)), 1e-6, 0);
}

static cd_llm_op_answer new_gpu(const made_llm_answers *f, const cd_llm_op_record *r) {
    cd_device d = *f->l40s;
    d.name = "of another chip", d.cores *= 2;
    return ask(f, r, &d);
}

TEST(of_a_new_gpu) {
    const made_llm_answers *f = *state;
    const cd_llm_op_record r = made_llm_product(128, MADE_VLLM, MADE_FAST);
    cd_device d = *f->l40s;
    d.cores *= 2;
    const cd_llm_op_answer v = new_gpu(f, &r);
    assert_int_equal(v.news, CD_LLM_OP_NEW_DEVICE);
    assert_close(v.latency_s, base_of(&r, &d) * exp(0.5), 1e-6, 0);
    assert_close(half(&v), 0.64, 1e-6, 0);
}

/* Nobody knows how far another vendor's GPUs are off. */
TEST(of_another_vendor) {
    const made_llm_answers *f = *state;
    const cd_llm_op_record r = made_llm_product(128, MADE_VLLM, MADE_FAST);
    const cd_llm_op_answer v = ask(f, &r, f->mi300x);
    assert_int_equal(v.news, CD_LLM_OP_NEW_DEVICE | CD_LLM_OP_NEW_VENDOR);
    assert_true(isnan(v.low_s) && isnan(v.high_s) && v.latency_s > 0);
}

/* t of 4 degrees of freedom is 2.132 at 0.95, of 3 2.353. */
TEST(what_is_new_is_as_wide_as_it_was) {
    const made_llm_answers *f = *state;
    const double library = hypot(0.05, 0.3 * 2.132), type = hypot(0.05, 0.5 * 2.353);
    cd_llm_op_record r = made_llm_product(128, MADE_SGLANG, MADE_NONE);
    cd_llm_op_answer v = ask(f, &r, f->h100);
    assert_int_equal(v.news, CD_LLM_OP_NEW_STACK);
    assert_close(half(&v), library, 4e-3, 0);
    r.kernel = MADE_OTHER; /* a new library's kernels are its own */
    v = ask(f, &r, f->h100);
    assert_int_equal(v.news, CD_LLM_OP_NEW_STACK | CD_LLM_OP_NEW_KERNEL);
    assert_close(half(&v), library, 4e-3, 0);
    r = made_llm_product(128, MADE_VLLM, MADE_FAST), r.type = r.kv = CD_LLM_OP_T_FP8;
    v = ask(f, &r, f->h100);
    assert_int_equal(v.news, CD_LLM_OP_NEW_TYPE);
    assert_close(half(&v), type, 4e-3, 0);
    r.stack = MADE_SGLANG;
    v = ask(f, &r, f->h100);
    assert_close(half(&v), hypot(library, type), 4e-3, 0);
    v = new_gpu(f, &r);
    assert_int_equal(v.news, CD_LLM_OP_NEW_TYPE | CD_LLM_OP_NEW_STACK | CD_LLM_OP_NEW_DEVICE);
    assert_close(half(&v), hypot(0.64, hypot(library, type)), 4e-3, 0);
}

/* What no experiment tells has an answer and no interval: a kernel where but one was held out, a
 * model of an older program. */
TEST(what_nobody_knows) {
    made_llm_answers *f = *state;
    cd_llm_op_record r = made_llm_product(128, MADE_VLLM, MADE_OTHER);
    cd_llm_op_answer v = ask(f, &r, f->h100);
    assert_int_equal(v.news, CD_LLM_OP_NEW_KERNEL);
    assert_true(isnan(v.low_s) && isnan(v.high_s) && v.latency_s > 0);
    cd_llm_op_model old = *f->m;
    memset(old.novel, 0, sizeof old.novel);
    made_llm_answers g = *f;
    g.m = &old;
    r = made_llm_product(128, MADE_SGLANG, MADE_NONE);
    v = ask(&g, &r, f->h100);
    assert_true(v.news == CD_LLM_OP_NEW_STACK && isnan(v.low_s));
    r.stack = MADE_VLLM;
    v = ask(&g, &r, f->h100);
    assert_true(v.news == 0 && v.low_s < v.latency_s);
}

/* An interval of what is new is never narrower than that of like rows. */
TEST(no_narrower) {
    made_llm_answers *f = *state;
    cd_llm_op_model sure = *f->m;
    made_llm_answers g = *f;
    g.m = &sure;
    sure.novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_STACK] =
        (cd_novelty){4, 80, 1e-3, {0, 0, 0, 0, 0}};
    const cd_llm_op_record r = made_llm_product(128, MADE_SGLANG, MADE_NONE);
    const cd_llm_op_answer v = ask(&g, &r, f->h100);
    assert_close(half(&v), 0.16, 1e-6, 0);
}

/* A known library without a version names none that is new; a name that the family has no rows of
 * does, whoever else has it; a cache of another type. */
TEST(which_is_new) {
    made_llm_answers *f = *state;
    cd_llm_op_model m = *f->m;
    made_llm_answers g = *f;
    bool stack[] = {true, false}, kernel[] = {false, true};
    g.m = &m;
    g.names = (cd_dict){0};
    made_llm_name(&g.names, ""), made_llm_name(&g.names, "vllm"),
        made_llm_name(&g.names, "trtllm-2"), made_llm_name(&g.names, "fast");
    cd_llm_op_record r = made_llm_product(128, 1, 0);
    cd_llm_op_answer v = ask(&g, &r, f->h100);
    assert_int_equal(v.news, CD_LLM_OP_NEW_STACK);
    assert_close(half(&v), 0.16, 1e-6, 0);
    m.has_stack[CD_LLM_OP_PRODUCT] = stack, m.has_kernel[CD_LLM_OP_PRODUCT] = kernel;
    r = made_llm_product(128, 2, 3);
    v = ask(&g, &r, f->h100);
    assert_int_equal(v.news, CD_LLM_OP_NEW_STACK | CD_LLM_OP_NEW_KERNEL);
    assert_true(half(&v) > 0.6);
    r = made_llm_product(128, MADE_VLLM, MADE_FAST), r.kv = CD_LLM_OP_T_FP8;
    v = ask(f, &r, f->h100);
    assert_int_equal(v.news, CD_LLM_OP_NEW_TYPE);
    cd_dict_free(&g.names);
    m.range[CD_LLM_OP_GEMM].any = false;
    r = made_llm_product(128, MADE_VLLM, MADE_FAST);
    g.names = f->names, m.has_stack[CD_LLM_OP_PRODUCT] = m.has_kernel[CD_LLM_OP_PRODUCT] = NULL;
    v = ask(&g, &r, f->h100);
    assert_true(v.news & CD_LLM_OP_NEW_KIND && isnan(v.low_s));
    char text[CD_LLM_OP_NEWS_TEXT];
    cd_llm_op_news_text(127, text);
    assert_string_equal(text, "device+stack+kernel+dtype+size+vendor+operator");
}

/* ---- with measured rows ---- */
static void put(cd_llm_op_table *t, const cd_device *d, double m, uint16_t stack, uint16_t kernel,
                double s) {
    cd_llm_op_record r = made_llm_product(m, stack, kernel);
    cdmpp_err err = {0};
    r.latency_s = s;
    assert_ok(cd_llm_op_table_put(t, &r, d, &err));
}

static void names_of(const made_llm_answers *f, cd_llm_op_table *t) {
    for (size_t i = 0; i < f->names.n; i++) made_llm_name(&t->names, f->names.text[i]);
}

static void index_of(cd_llm_op_table *t) {
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_table_index(t, &err));
}

/* Of kernels that a question leaves open the one that was measured nearest answers, of those alike
 * the fastest. */
TEST(nearest_then_fastest) {
    const made_llm_answers *f = *state;
    cd_llm_op_table t = {0};
    names_of(f, &t);
    put(&t, f->h100, 8, MADE_VLLM, MADE_FAST, 1e-5),
        put(&t, f->h100, 32, MADE_VLLM, MADE_FAST, 1e-5);
    put(&t, f->h100, 8, MADE_VLLM, MADE_SLOW, 3e-5),
        put(&t, f->h100, 16, MADE_VLLM, MADE_SLOW, 4e-5);
    index_of(&t);
    const cd_llm_op_record both = made_llm_product(8, MADE_VLLM, 0),
                           one = made_llm_product(16, MADE_VLLM, 0);
    cd_llm_op_answer v = ask_at(f, &t, &both, f->h100, 0.9);
    assert_true(v.how == CD_LLM_OP_MEASURED && v.kernel == MADE_FAST);
    assert_close(v.latency_s, 1e-5, 1e-12, 0);
    v = ask_at(f, &t, &one, f->h100, 0.9); /* the fast one would be interpolated */
    assert_true(v.how == CD_LLM_OP_MEASURED && v.kernel == MADE_SLOW);
    assert_close(v.latency_s, 4e-5, 1e-12, 0);
    cd_llm_op_table_free(&t);
}

/* Between rows of 10 and 40 us the set near answers, by what these say and by what trees expect; a
 * type that is new there is said and has neighbours of its own. */
TEST(between_rows) {
    const made_llm_answers *f = *state;
    cd_llm_op_table t = {0};
    names_of(f, &t);
    put(&t, f->h100, 8, MADE_VLLM, MADE_FAST, 1e-5),
        put(&t, f->h100, 32, MADE_VLLM, MADE_FAST, 4e-5);
    put(&t, f->mi300x, 8, MADE_VLLM, MADE_FAST, 1e-5),
        put(&t, f->mi300x, 32, MADE_VLLM, MADE_FAST, 4e-5);
    index_of(&t);
    const double at = log(17.0 / 9) / log(33.0 / 9), said = 1e-5 * pow(4, at);
    const cd_llm_op_record r = made_llm_product(16, MADE_VLLM, MADE_FAST);
    const cd_llm_op_answer v = ask_at(f, &t, &r, f->h100, 0.9),
                           amd = ask_at(f, &t, &r, f->mi300x, 0.9);
    assert_true(v.how == CD_LLM_OP_INTERPOLATED && amd.how == CD_LLM_OP_INTERPOLATED && !v.news &&
                !amd.news);
    assert_close(v.line_s, said, 1e-6, 0);
    assert_close(v.latency_s, said * exp(0.05), 1e-6, 0);
    assert_close(half(&v), 0.032, 1e-6, 0);
    assert_close(half(&amd), 0.032, 1e-6, 0);
    const cd_llm_op_record beyond = made_llm_product(64, MADE_VLLM, MADE_FAST),
                           last = made_llm_product(32, MADE_VLLM, MADE_FAST);
    const cd_llm_op_answer w = ask_at(f, &t, &beyond, f->h100, 0.9);
    assert_true(w.how == CD_LLM_OP_PREDICTED && isnan(w.line_s));
    assert_close(w.latency_s,
                 4e-5 * base_of(&beyond, f->h100) / base_of(&last, f->h100) * exp(0.05), 1e-5, 0);
    cd_llm_op_table_free(&t);
}

/* A GPU that is new and ran twice as long as set unseen says, in one row: that row's residual
 * counts as one row does, and the interval moves. */
TEST(few_rows) {
    const made_llm_answers *f = *state;
    cd_llm_op_table t = {0};
    cd_device d = *f->l40s;
    d.name = "of another chip", d.cores *= 2;
    names_of(f, &t);
    const cd_llm_op_record r = made_llm_product(4096, MADE_VLLM, MADE_FAST);
    cd_llm_op_record like = r;
    like.size[1] = 512;
    put(&t, &d, 4096, MADE_VLLM, MADE_FAST, 1.5 * base_of(&r, &d) * exp(0.5));
    index_of(&t);
    const cd_llm_op_answer v = ask_at(f, &t, &like, &d, 0.9);
    cd_llm_op_answer alone;
    alone = ask(f, &like, &d);
    assert_int_equal(v.few, 1);
    assert_true(v.latency_s > 1.1 * alone.latency_s && v.latency_s < 1.5 * alone.latency_s);
    assert_close(half(&v), half(&alone), 1e-9, 0);
    cd_llm_op_table_free(&t);
}

/* Many at once answer as one by one, to the bit: measured, interpolated, predicted, of a twin
 * beside rows of the chip it is like, of what is new. */
TEST(many_are_as_one) {
    enum { N = 60 };
    const made_llm_answers *f = *state;
    const cd_device *const device[] = {f->h100, f->h200, f->l40s, f->mi300x};
    cd_llm_op_table t = {0};
    cd_llm_op_record r[N];
    const cd_device *d[N];
    cd_llm_op_answer v[N], one;
    cdmpp_err whys[N], err = {0};
    cd_llm_op_asker *a;
    names_of(f, &t);
    put(&t, f->h100, 8, MADE_VLLM, MADE_FAST, 1e-5),
        put(&t, f->h100, 32, MADE_VLLM, MADE_FAST, 4e-5),
        put(&t, f->h100, 8, MADE_VLLM, MADE_SLOW, 3e-5);
    index_of(&t);
    assert_ok(cd_llm_op_asker_new(f->m, &t, &t.names, &a, &err));
    for (size_t i = 0; i < N; i++) {
        r[i] = made_llm_product((double)(1 << i % 7), (uint16_t)(MADE_VLLM + i % 3),
                                (uint16_t)(i % 5 ? MADE_FAST + i % 2 : 0)),
        d[i] = device[i / 2 % 4];
        if (i % 11 == 3) r[i].type = r[i].kv = CD_LLM_OP_T_FP8;
    }
    assert_ok(cd_llm_op_ask_many(a, r, d, N, 0.9, v, whys, &err));
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(whys[i].code, CDMPP_OK);
        assert_ok(cd_llm_op_ask(a, &r[i], d[i], 0.9, &one, &err));
        assert_true(one.how == v[i].how && one.news == v[i].news && one.twin == v[i].twin &&
                    one.kernel == v[i].kernel);
        assert_close(v[i].latency_s, one.latency_s, 0, 0);
        assert_true(isnan(one.low_s) ? isnan(v[i].low_s)
                                     : !(v[i].low_s < one.low_s || v[i].low_s > one.low_s));
        assert_true(isnan(one.high_s) ? isnan(v[i].high_s)
                                      : !(v[i].high_s < one.high_s || v[i].high_s > one.high_s));
    }
    /* a row of the twin's chip says nothing of how far the board is from it */
    const cd_llm_op_record measured = made_llm_product(8, MADE_VLLM, MADE_FAST);
    assert_ok(cd_llm_op_ask(a, &measured, f->h200, 0.9, &one, &err));
    assert_close(half(&one),
                 hypot(0.16, log(base_of(&measured, f->h200) / base_of(&measured, f->h100))), 1e-6,
                 0);
    cd_llm_op_asker_free(a);
    cd_llm_op_table_free(&t);
}

/* ---- kernels that are known ---- */
TEST(calls) {
    made_llm_answers *f = *state;
    cd_llm_op_call call = {
        .kind = CD_LLM_OP_GEMM, .type = CD_LLM_OP_T_BF16, .maker = 0, .kernel = 0, .host_s = 1e-3};
    cd_llm_op_model m = *f->m;
    made_llm_answers g = *f;
    g.m = &m, m.call = &call, m.n_call = 1;
    const cd_llm_op_record fast = made_llm_product(1, MADE_VLLM, MADE_FAST),
                           slow = made_llm_product(1, MADE_VLLM, MADE_SLOW),
                           other = made_llm_product(1, MADE_TRTLLM, MADE_FAST);
    assert_close(ask(&g, &fast, f->h100).latency_s, 1e-3 * exp(0.3), 1e-6, 0);
    assert_true(ask(&g, &slow, f->h100).latency_s < 1e-4);
    assert_true(ask(&g, &other, f->h100).latency_s < 1e-4);
}

/* ---- types alike ---- */
TEST(alike) {
    const made_llm_answers *f = *state;
    cd_llm_op_record r = made_llm_product(128, MADE_VLLM, MADE_FAST);
    r.type = r.kv = CD_LLM_OP_T_F16;
    cd_llm_op_answer v = ask(f, &r, f->h100);
    assert_true(v.news == CD_LLM_OP_NEW_TYPE && v.alike == CD_LLM_OP_T_BF16 + 1);
    r.type = r.kv = CD_LLM_OP_T_FP8; /* other units */
    assert_int_equal(ask(f, &r, f->h100).alike, 0);
    r.type = r.kv = CD_LLM_OP_T_INT8_WO; /* the same units, other bytes */
    assert_int_equal(ask(f, &r, f->h100).alike, 0);
    r.type = r.kv = CD_LLM_OP_T_BF16;
    assert_int_equal(ask(f, &r, f->h100).alike, 0);
}

TESTS(up, down, of_a_gpu_that_was_seen, of_a_twin, of_a_new_gpu, of_another_vendor,
      what_is_new_is_as_wide_as_it_was, what_nobody_knows, no_narrower, which_is_new,
      nearest_then_fastest, between_rows, few_rows, many_are_as_one, calls, alike)
