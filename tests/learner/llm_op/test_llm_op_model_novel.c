/* What a model file keeps of the rows it was trained on, and of what is new to them. */
#include "base/io/io.h"
#include "made_llm_answers.h"
#include "fault.h"

#include <string.h>

static void make(made_llm_answers *f) {
    cd_llm_op_model *m;
    made_llm_answers_make(f);
    m = f->m;
    for (int k = 0; k < CD_LLM_OP_N_FAMILY; k++) {
        m->has_stack[k] = CD_NEWN(&m->arena, bool, 2);
        m->has_kernel[k] = CD_NEWN(&m->arena, bool, 2);
    }
    m->has_stack[CD_LLM_OP_PRODUCT][1] = m->has_kernel[CD_LLM_OP_PRODUCT][0] = true;
    m->device[1].types[CD_LLM_OP_PRODUCT] |= 1u << CD_LLM_OP_T_FP8;
    m->range[CD_LLM_OP_GEMM].type[CD_LLM_OP_T_FP8] = true;
    m->range[CD_LLM_OP_GEMM].kv[CD_LLM_OP_T_FP8] = 1u << CD_LLM_OP_T_BF16 | 1u << CD_LLM_OP_T_FP8;
}

static void encode(const cd_llm_op_model *m, cd_buf *b) {
    cdmpp_err err = {0};
    assert_ok(cd_llm_op_model_encode(m, "", b, &err));
}

TEST(kept) {
    made_llm_answers f;
    cd_buf b = {0};
    cd_llm_op_model *m;
    cdmpp_err err = {0};
    make(&f);
    encode(f.m, &b);
    assert_true(cd_llm_op_model_is(b.p, b.n));
    assert_ok(cd_llm_op_model_from_bytes(b.p, b.n, &m, &err));
    for (int k = 0; k < CD_LLM_OP_N_FAMILY; k++) {
        assert_memory_equal(m->has_stack[k], f.m->has_stack[k], 2);
        assert_memory_equal(m->has_kernel[k], f.m->has_kernel[k], 2);
        for (int w = 0; w < CD_LLM_OP_N_NOVEL; w++) {
            const cd_novelty *a = &m->novel[k][w], *of = &f.m->novel[k][w];
            assert_true(a->n_value == of->n_value && a->n_row == of->n_row);
            assert_close(a->between, of->between, 0, 0);
            for (size_t i = 0; i < CD_NOVELTY_LEVELS; i++)
                assert_close(a->rest[i], of->rest[i], 0, 0);
        }
    }
    assert_int_equal(m->n_device, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(m->device[i].types[CD_LLM_OP_PRODUCT],
                         f.m->device[i].types[CD_LLM_OP_PRODUCT]);
    const cd_llm_op_range *g = &m->range[CD_LLM_OP_GEMM];
    assert_true(cd_llm_op_range_has(g, CD_LLM_OP_T_FP8, CD_LLM_OP_T_BF16) &&
                cd_llm_op_range_has(g, CD_LLM_OP_T_FP8, CD_LLM_OP_T_FP8));
    assert_true(cd_llm_op_range_has(g, CD_LLM_OP_T_BF16, CD_LLM_OP_T_BF16) &&
                !cd_llm_op_range_has(g, CD_LLM_OP_T_BF16, CD_LLM_OP_T_FP8));
    assert_false(cd_llm_op_range_has(g, CD_LLM_OP_T_INT8, CD_LLM_OP_T_INT8));
    cd_llm_op_model_free(m);
    cd_buf_free(&b);
    made_llm_answers_free(&f);
}

/* The file with `from` in its header, which stands there once, as `to`. */
static cdmpp_status changed(const cd_buf *file, const char *from, const char *to,
                            cd_llm_op_model **out, cdmpp_err *why) {
    cd_container c;
    cdmpp_err err = {0};
    cd_buf header = {0}, weights = {0}, again = {0};
    assert_ok(cd_container_get(CD_CONTAINER_MODEL, file->p, file->n, &c, &err));
    const char *at = memmem(c.header.p, c.header.n, from, strlen(from));
    assert_non_null(at);
    cd_buf_put(&header, c.header.p, (size_t)(at - c.header.p));
    cd_buf_puts(&header, to);
    cd_buf_put(&header, at + strlen(from), (size_t)(c.header.p + c.header.n - at) - strlen(from));
    cd_buf_put(&weights, c.weights.p, c.weights.n);
    assert_ok(cd_container_put(CD_CONTAINER_MODEL, &again, &header, &weights, &err));
    const cdmpp_status st = cd_llm_op_model_from_bytes(again.p, again.n, out, why);
    cd_buf_free(&header);
    cd_buf_free(&weights);
    cd_buf_free(&again);
    return st;
}

TEST(refused) {
    static const struct {
        const char *from, *to, *key;
    } t[] = {{"\"what\":\"stack\"", "\"what\":\"colour\"", "novelties"},
             {"\"values\":4", "\"values\":-4", "novelties"},
             {"\"between\":", "\"between\":-", "novelties"},
             {"\"stacks\":[1]", "\"stacks\":[2]", "seen"},
             {"\"kernels\":[0]", "\"kernels\":[\"fast\"]", "seen"},
             {"\"kv\":{\"bfloat16\":[\"bfloat16\"]", "\"kv\":{\"bfloat16\":[\"int3\"]", "kv"},
             {"\"what\":\"dtype\"", "\"what\":\"stack\"", "novelties"},
             {"\",\"what\":", "x\",\"what\":", "novelties[0].family"},
             {"\"values\":4,\"rows\":", "\"values\":4,\"raws\":", "rows"},
             {"\"rest\":[", "\"rest\":[0],\"x\":[", "rest"},
             {"\"rest\":[", "\"rost\":[", "rest"},
             {"\"novelties\":[", "\"novelties\":7,\"x\":[", "novelties"},
             {"\"stacks\":[1]", "\"stacks\":7", "seen"},
             {"\"stacks\":[1]", "\"stocks\":[1]", "seen"}};
    made_llm_answers f;
    cd_buf b = {0};
    make(&f);
    encode(f.m, &b);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        cd_llm_op_model *m = NULL;
        cdmpp_err err = {0};
        assert_true(changed(&b, t[i].from, t[i].to, &m, &err) != CDMPP_OK && !m);
        assert_non_null(strstr(err.key, t[i].key));
    }
    cd_buf_free(&b);
    made_llm_answers_free(&f);
}

/* A file of an older program does not say: names may be of any family, caches of any type, and of
 * what is new nobody knows the interval. */
TEST(older) {
    made_llm_answers f;
    cd_buf b = {0};
    cd_llm_op_model *m = NULL;
    cdmpp_err err = {0};
    make(&f);
    encode(f.m, &b);
    assert_ok(changed(&b, "\"novelties\":", "\"others\":", &m, &err));
    assert_true(isnan(cd_novelty_half(&m->novel[CD_LLM_OP_PRODUCT][CD_LLM_OP_NOVEL_STACK], 0.9)));
    cd_llm_op_model_free(m);
    assert_ok(changed(&b, "\"seen\":", "\"others\":", &m, &err));
    assert_true(cd_llm_op_model_has_stack(m, CD_LLM_OP_PRODUCT, 0) &&
                !cd_llm_op_model_has_stack(m, CD_LLM_OP_PRODUCT, NAN));
    cd_llm_op_model_free(m);
    assert_ok(changed(&b, "\"kv\":", "\"others\":", &m, &err));
    assert_true(cd_llm_op_range_has(&m->range[CD_LLM_OP_GEMM], CD_LLM_OP_T_BF16, CD_LLM_OP_T_FP8));
    cd_llm_op_model_free(m);
    cd_buf_free(&b);
    made_llm_answers_free(&f);
}

TESTS(NULL, NULL, kept, refused, older)
