/* Operators of all families: their products hold every weight once; layers with states, an index, a
 * gate; calls that the host bounds; engines that share sums. */
#include "made_serving_session.h"

static cd_serving_model m;

static const struct {
    const char *name, *text;
} published[] = {
#define M(name, billions, text) {name, text},
#include "published_models.def"
};
enum { N_PUBLISHED = sizeof published / sizeof *published };

static void read_named(const char *name) {
    for (size_t i = 0; i < N_PUBLISHED; i++)
        if (!strcmp(published[i].name, name)) {
            assert_ok(cd_serving_model_read(name, published[i].text, strlen(published[i].text), &m,
                                            &err));
            return;
        }
    fail_msg("no %s", name);
}

/* Weights of the products of a list; the scan of states and scores of an index have none. */
static double weights_of(const cd_serving_ops *o) {
    double sum = 0;
    for (size_t i = 0; i < o->n; i++) {
        const cd_serving_op *v = &o->v[i];
        const double *s = v->r.size;
        if (v->r.kind == CD_LLM_OP_GEMM && strcmp(v->name, "state_scan") != 0 &&
            strcmp(v->name, "index_scores") != 0)
            sum += v->count * s[1] * s[2] * s[3];
        if (v->r.kind == CD_LLM_OP_MOE) sum += v->count * 3 * s[1] * s[2] * s[4];
    }
    return sum;
}

TEST(every_weight_once) {
    for (size_t i = 0; i < N_PUBLISHED; i++) {
        cd_serving_layout l = {.tp = 1, .pp = 1, .dp = 1, .moe_ep = 1};
        cd_serving_ops rest, prompt;
        read_named(published[i].name);
        assert_ok(cd_serving_layout_check(&m, &l, &err));
        cd_serving_ops_rest(&m, &l, 8, 1, 8, false, &rest);
        cd_serving_ops_prompt(&m, &l, 1, 8, &prompt);
        const double tables = m.vocab * m.hidden * (m.tied ? 0 : 1),
                     taps = m.state.layers * m.state.channels * m.state.taps;
        const double want = cd_serving_model_parameters(&m) - tables - taps,
                     got = weights_of(&rest) + weights_of(&prompt);
        if (fabs(got / want - 1) > (m.products < 3 && m.experts > 0 ? 1e-3 : 1e-9))
            fail_msg("%s: %.17g of %.17g", published[i].name, got, want);
    }
}

static const cd_serving_op *find(const cd_serving_ops *o, const char *name) {
    for (size_t i = 0; i < o->n; i++)
        if (!strcmp(o->v[i].name, name)) return &o->v[i];
    fail_msg("no %s", name);
    return NULL;
}

static bool has(const cd_serving_ops *o, const char *name) {
    for (size_t i = 0; i < o->n; i++)
        if (!strcmp(o->v[i].name, name)) return true;
    return false;
}

TEST(states) {
    cd_serving_layout l = {.tp = 2, .pp = 1, .dp = 1, .moe_ep = 1};
    cd_serving_ops o;
    read_named("qwen3-next-80b");
    assert_ok(cd_serving_layout_check(&m, &l, &err));
    cd_serving_ops_rest(&m, &l, 8, 1, 8, false, &o);
    assert_close(find(&o, "state_in")->r.size[1], (2 * 16 * 128 + 2 * 32 * 128) / 2., 0, 0);
    assert_close(find(&o, "state_in")->count, 36, 0, 0);
    assert_close(find(&o, "qkv")->count, 12, 0, 0);
    /* queries and gates of 8 heads, one key head */
    assert_close(find(&o, "qkv")->r.size[1], 2 * 8 * 256 + 2 * 256, 0, 0);
    assert_true(has(&o, "attention_gate"));
    cd_serving_ops_prompt(&m, &l, 1, 100, &o);
    /* two chunks of each of 16 heads */
    assert_close(find(&o, "state_scan")->r.size[3], 2 * 16, 0, 0);
    cd_serving_ops_decode(&m, &l, 3, 100, &o);
    assert_close(find(&o, "state_update")->bytes, 3 * 2 * cd_serving_state_bytes(&m.state) / 2, 0,
                 0);
    l.tp = 64;
    assert_int_equal(cd_serving_layout_check(&m, &l, &err), CDMPP_ERANGE);
}

/* Attention of an index does not grow beyond the tokens that it chooses; reading the index does. */
TEST(chosen) {
    cd_serving_layout l = {.tp = 8,
                           .pp = 1,
                           .dp = 1,
                           .moe_ep = 1,
                           .project = CD_LLM_OP_T_FP8_BLOCK,
                           .base = CD_LLM_OP_T_BF16};
    cd_serving_ops o;
    read_named("deepseek-v3.2");
    assert_ok(cd_serving_layout_check(&m, &l, &err));
    cd_serving_ops_decode(&m, &l, 4, 100000, &o);
    assert_close(find(&o, "attention_decode")->r.size[0], 2048, 0, 0);
    assert_close(find(&o, "index_scores")->bytes, 4. * 100000 * 136, 0, 0);
    cd_serving_ops_decode(&m, &l, 4, 1000, &o);
    assert_close(find(&o, "attention_decode")->r.size[0], 1000, 0, 0);
    cd_serving_ops_prompt(&m, &l, 1, 4096, &o);
    assert_int_equal(find(&o, "attention_prompt")->r.kind, CD_LLM_OP_LATENT_DECODE);
    assert_close(find(&o, "attention_prompt")->r.size[1], 4096, 0, 0);
    assert_int_equal(find(&o, "index_scores")->r.type, CD_LLM_OP_T_FP8);
    assert_close(find(&o, "index_scores")->r.size[2], 64 * 128, 0, 0);
    read_named("glm-5"); /* heads of another shape: absorbed all the same */
    cd_serving_ops_prompt(&m, &l, 1, 64, &o);
    assert_int_equal(find(&o, "attention_prompt")->r.kind, CD_LLM_OP_LATENT_DECODE);
}

/* Without an index prompts of other heads are ordinary attention, and that is told. */
TEST(latent_of_other_heads) {
    static const char text[] =
        "{\"model_type\":\"glm4_moe_lite\",\"num_hidden_layers\":2,\"hidden_size\":64,\"num_"
        "attention_heads\":4,\"vocab_size\":256,\"intermediate_size\":128,\"n_routed_experts\":4,"
        "\"num_experts_per_tok\":1,\"moe_intermediate_size\":32,\"n_shared_experts\":1,\"first_k_"
        "dense_replace\":1,\"q_lora_rank\":24,\"kv_lora_rank\":512,\"qk_rope_head_dim\":64,"
        "\"qk_nope_head_dim\":192,\"v_head_dim\":256,\"torch_dtype\":\"bfloat16\"}";
    cd_serving_layout l = {.tp = 1, .pp = 1, .dp = 1, .moe_ep = 1};
    cd_serving_ops o;
    assert_ok(cd_serving_model_read("x", text, sizeof text - 1, &m, &err));
    assert_true(m.n_note > 0 && strstr(m.note[0], "v_head_dim 256") != NULL);
    cd_serving_ops_prompt(&m, &l, 1, 64, &o);
    assert_int_equal(find(&o, "attention_prompt")->r.kind, CD_LLM_OP_PREFILL);
    assert_close(cd_llm_op_get(&find(&o, "attention_prompt")->r, CD_LLM_OP_P_HEAD_DIM), 256, 0, 0);
    cd_serving_ops_decode(&m, &l, 1, 64, &o);
    assert_int_equal(find(&o, "attention_decode")->r.kind, CD_LLM_OP_LATENT_DECODE);
}

/* A feed-forward part without a gate: two products; experts as those of two thirds of the width. */
TEST(without_gate) {
    cd_serving_layout l = {.tp = 1, .pp = 1, .dp = 1, .moe_ep = 1};
    cd_serving_ops o;
    read_named("nemotron-4-mini-minitron-8b");
    assert_ok(cd_serving_layout_check(&m, &l, &err));
    cd_serving_ops_rest(&m, &l, 8, 1, 8, false, &o);
    assert_close(find(&o, "up")->r.size[1], 16384, 0, 0);
    assert_true(!has(&o, "gate_up"));
    read_named("nemotron-3-nano-30b");
    assert_ok(cd_serving_layout_check(&m, &l, &err));
    cd_serving_ops_rest(&m, &l, 8, 1, 8, false, &o);
    assert_close(find(&o, "experts")->r.size[2], 1238, 0, 0);
    assert_close(find(&o, "experts")->count, 23, 0, 0);
    assert_close(find(&o, "norm")->count, 53, 0, 0);
}

/* Tables measured call by call have the host's time where the GPU is faster: the GPU's is that of
 * products with one scale. */
TEST(host_bounds_calls) {
    static const char rows[] =
        "op,device,stack,m,n,k,dtype,latency_s\ngemm,h100,vllm-1,1,64,64,fp8_block,60e-6\ngemm,"
        "h100,vllm-1,1,64,64,fp8,5e-6\n"
        "gemm,h100,vllm-1,512,64,64,fp8_block,200e-6\ngemm,h100,vllm-1,512,64,64,fp8,90e-6\n";
    made_serving s;
    cd_serving_time t;
    cd_llm_op_call call = {.kind = CD_LLM_OP_GEMM,
                           .type = CD_LLM_OP_T_FP8_BLOCK,
                           .maker = 0,
                           .kernel = 0,
                           .host_s = 55e-6};
    cd_serving_op op = {.name = "p",
                        .r = {.kind = CD_LLM_OP_GEMM,
                              .type = CD_LLM_OP_T_FP8_BLOCK,
                              .kv = CD_LLM_OP_T_FP8_BLOCK,
                              .size = {1, 64, 64, 1}},
                        .count = 1};
    for (int known = 0; known < 2; known++) {
        uint32_t id;
        made_serving_open(&s, tmp_put(&dir, "calls.csv", rows, sizeof rows - 1), 1);
        assert_ok(cd_dict_add(&s.none.stacks, (cd_str){"vllm-1", 6}, &id, &err));
        if (known) s.none.call = &call, s.none.n_call = 1;
        op.r.size[0] = 1;
        assert_ok(cd_serving_cost_of(s.c, &op, &t, &err));
        assert_close(t.s, known ? 5e-6 : 60e-6, 1e-12, 0);
        assert_int_equal(t.how, known ? CD_LLM_OP_INTERPOLATED : CD_LLM_OP_MEASURED);
        op.r.size[0] = 512; /* the GPU is the bound: as measured */
        assert_ok(cd_serving_cost_of(s.c, &op, &t, &err));
        assert_close(t.s, 200e-6, 1e-12, 0);
        made_serving_close(&s);
        cd_dict_free(&s.none.stacks);
    }
}

/* Asked for its seconds first, an operator still tells later how they are known. */
TEST(seconds_first) {
    made_serving s;
    cd_serving_time t;
    double x;
    size_t asked, known;
    const cd_serving_op op = {.name = "p",
                              .r = {.kind = CD_LLM_OP_GEMM,
                                    .type = CD_LLM_OP_T_BF16,
                                    .kv = CD_LLM_OP_T_BF16,
                                    .size = {8, 128, 64, 1}},
                              .count = 1};
    const cd_serving_op small = {.name = "s", .bytes = 3e6, .count = 1};
    cd_buf b = {0};
    made_rows(&b);
    made_serving_open(&s, tmp_put(&dir, "first.csv", b.p, b.n), 1);
    cd_buf_free(&b);
    assert_ok(cd_serving_cost_s(s.c, &op, &x, &err));
    assert_ok(cd_serving_cost_of(s.c, &op, &t, &err));
    assert_close(t.s, x, 0, 0);
    assert_int_equal(t.how, CD_LLM_OP_MEASURED);
    assert_true(t.known);
    assert_ok(cd_serving_cost_s(s.c, &op, &x, &err));
    assert_close(t.s, x, 0, 0);
    cd_serving_cost_counts(s.c, &asked, &known);
    assert_int_equal(known, 1);
    assert_ok(cd_serving_cost_s(s.c, &small, &x, &err));
    assert_ok(cd_serving_cost_of(s.c, &small, &t, &err));
    assert_close(t.s, x, 0, 0);
    made_serving_close(&s);
}

/* An engine that shares another's sums answers as one that has its own, whichever is freed
 * first. */
TEST(shared_sums) {
    made_serving s;
    cd_serving_engine *a = NULL, *b = NULL, *c = NULL;
    const cd_serving_step step = {.prompts = 1, .isl = 16, .decodes = 2, .context = 20};
    double x, y;
    made_serving_open(&s, path, 1);
    assert_ok(cd_serving_engine_new(&s.m, &s.l, &s.k, s.c, NULL, &a, &err));
    assert_ok(cd_serving_step_s(a, &step, &x, &err));
    cd_serving_layout two = s.l;
    two.pp = 2;
    assert_true(cd_serving_engine_alike(&s.l, &two));
    assert_ok(cd_serving_engine_new(&s.m, &two, &s.k, s.c, a, &b, &err));
    assert_ok(cd_serving_engine_new(&s.m, &two, &s.k, s.c, NULL, &c, &err));
    cd_serving_engine_free(a);
    assert_ok(cd_serving_step_s(b, &step, &x, &err));
    assert_ok(cd_serving_step_s(c, &step, &y, &err));
    assert_close(x, y, 0, 0);
    two.tp = 2;
    assert_true(!cd_serving_engine_alike(&s.l, &two));
    cd_serving_engine_free(b);
    cd_serving_engine_free(c);
    made_serving_close(&s);
}

TESTS(up, down, every_weight_once, states, chosen, latent_of_other_heads, without_gate,
      host_bounds_calls, seconds_first, shared_sums)
