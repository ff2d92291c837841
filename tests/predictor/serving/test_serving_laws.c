/* Laws of sizes, memory, times and the scheduler, and figures computed by hand beside the code. */
#include "made_config.h"
#include "made_serving_session.h"

static cd_serving_model hybrid(void) {
    cd_serving_model m;
    assert_ok(made_read(MADE_HYBRID "}", &m, &err));
    return m;
}

static const cd_serving_layout one = {.tp = 1,
                                      .pp = 1,
                                      .dp = 1,
                                      .moe_tp = 1,
                                      .moe_ep = 1,
                                      .linear = CD_LLM_OP_T_BF16,
                                      .expert = CD_LLM_OP_T_BF16,
                                      .attention = CD_LLM_OP_T_BF16,
                                      .kv = CD_LLM_OP_T_BF16,
                                      .project = CD_LLM_OP_T_BF16,
                                      .shared = CD_LLM_OP_T_BF16,
                                      .recurrent = CD_LLM_OP_T_BF16,
                                      .base = CD_LLM_OP_T_BF16};

/* The operator of that name; an error where there is none. */
static const cd_serving_op *named(const cd_serving_ops *o, const char *name) {
    for (size_t i = 0; i < o->n; i++)
        if (!strcmp(o->v[i].name, name)) return &o->v[i];
    fail_msg("no operator %s", name);
    return NULL;
}

static void product_is(const cd_serving_ops *o, const char *name, double m, double n, double k,
                       double batches) {
    const cd_serving_op *v = named(o, name);
    const double want[] = {m, n, k, batches};
    for (size_t i = 0; i < 4; i++)
        if (fabs(v->r.size[i] - want[i]) > 0)
            fail_msg("%s: size %zu is %g, not %g", name, i, v->r.size[i], want[i]);
}

/* ---- operators ---- */
/* All weights of the model are in its products, and each of them once: the sum of n x k over a
 * step's products and experts is the number of parameters, but for the embedding, which is read by
 * rows, and short convolutions. */
static double weights_in_products(const cd_serving_ops *o, double products) {
    double sum = 0;
    for (size_t i = 0; i < o->n; i++) {
        const cd_llm_op_record *r = &o->v[i].r;
        if (o->v[i].bytes > 0) continue;
        if (r->kind == CD_LLM_OP_GEMM) sum += o->v[i].count * r->size[1] * r->size[2];
        if (r->kind == CD_LLM_OP_MOE)
            sum += o->v[i].count * products * cd_llm_op_get(r, CD_LLM_OP_P_HIDDEN) *
                   cd_llm_op_get(r, CD_LLM_OP_P_INTER) * cd_llm_op_get(r, CD_LLM_OP_P_EXPERTS);
    }
    return sum;
}

TEST(products_have_all_weights) {
    static const char *const of[] = {MADE_LLAMA "}", MADE_LLAMA ",\"tie_word_embeddings\":true}",
                                     MADE_EXPERTS ",\"n_routed_experts\":8}",
                                     MADE_EXPERTS ",\"n_routed_experts\":8,\"moe_latent_size\":16}",
                                     "{\"model_type\":\"nemotron\"," MADE_BF MADE_BODY "}"};
    cd_serving_model m;
    cd_serving_ops o;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_ok(made_read(of[i], &m, &err));
        cd_serving_ops_rest(&m, &one, 8, 1, 8, false, &o);
        assert_close(weights_in_products(&o, 3),
                     cd_serving_model_parameters(&m) - (m.tied ? 0 : m.vocab * m.hidden), 1e-12, 0);
    }
    /* experts without a gate take the time of three products of two thirds of the width, rounded
     * up */
    m = hybrid();
    cd_serving_ops_rest(&m, &one, 8, 1, 8, false, &o);
    assert_close(named(&o, "experts")->r.size[2], 22, 0, 0); /* 32 x 2 / 3 */
    const double experts = m.sparse_layers * 64 * 8 * (3 * 22 - 2 * 32),
                 convolution = m.state.layers * m.state.channels * m.state.taps;
    assert_close(weights_in_products(&o, 3),
                 cd_serving_model_parameters(&m) - m.vocab * m.hidden + experts - convolution,
                 1e-12, 0);
}

/* What tp GPUs compute together is what one computes, where heads divide; what they send each other
 * grows from nothing. */
TEST(tp_divides_products) {
    cd_serving_model m;
    cd_serving_ops o, half;
    assert_ok(made_read(MADE_EXPERTS ",\"n_routed_experts\":8}", &m, &err));
    cd_serving_layout l = one;
    l.tp = 2, l.moe_tp = 2;
    cd_serving_ops_rest(&m, &one, 8, 4, 8, true, &o);
    cd_serving_ops_rest(&m, &l, 8, 4, 8, true, &half);
    for (size_t i = 0, k = 0; i < half.n; i++) {
        const cd_serving_op *v = &half.v[i];
        if (cd_llm_op_family_of((cd_llm_op_kind)v->r.kind) == CD_LLM_OP_COLLECTIVE) continue;
        const cd_serving_op *w = &o.v[k++];
        assert_string_equal(v->name, w->name);
        const bool whole = !strcmp(v->name, "router");
        if (v->r.kind == CD_LLM_OP_GEMM)
            assert_close(v->r.size[1] * v->r.size[2] * (whole ? 1 : 2), w->r.size[1] * w->r.size[2],
                         0, 0);
    }
}

/* Hand-computed sizes of parts that are put together. */
TEST(sizes_by_hand) {
    cd_serving_ops o;
    cd_serving_model m = hybrid();
    cd_serving_ops_rest(&m, &one, 8, 3, 8, false, &o);
    /* state: 4 heads of 8, 2 groups of 16: in = 32 (gate) + 32 + 2 x 2 x 16 (channels) + 4, out =
     * 32 */
    product_is(&o, "state_in", 8, 132, 64, 1);
    product_is(&o, "state_out", 8, 64, 32, 1);
    assert_close(named(&o, "state_convolution")->bytes, 8 * 4 * 96, 0, 0);
    product_is(&o, "shared_up", 8, 48, 64, 1);
    product_is(&o, "shared_down", 8, 64, 48, 1);
    /* without a gate: read and written once */
    assert_close(named(&o, "shared_activation")->bytes, 8 * 4 * 48, 0, 0);
    /* one for each of 4 layers, one at the end */
    assert_close(named(&o, "norm")->count, 5, 0, 0);
    cd_serving_ops_prompt(&m, &one, 2, 130, &o);
    /* three chunks of 64 begin in 130 tokens */
    product_is(&o, "state_scan", 64, 8, 3 * 16 + 64, 2 * 3 * 4);
    cd_serving_ops_decode(&m, &one, 5, 100, &o);
    assert_close(named(&o, "state_update")->bytes, 5 * 2 * (4 * 4 * 16 * 8 + 2 * 96 * 3), 0, 0);
    assert_ok(made_read(MADE_EXPERTS ",\"n_routed_experts\":8}", &m, &err));
    cd_serving_ops_rest(&m, &one, 8, 3, 8, false, &o);
    assert_close(named(&o, "shared_activation")->bytes, 8 * 6 * 32, 0, 0);
    assert_close(named(&o, "activation")->bytes, 8 * 6 * 128, 0, 0);
    assert_close(named(&o, "norm")->count, 9, 0, 0);
    assert_close(named(&o, "top_k")->bytes, 8 * 4 * 8, 0, 0);
}

#define SPARSE                                                                                     \
    "{\"model_type\":\"deepseek_v32\"," MADE_BF                                                    \
    "\"num_hidden_layers\":2,\"hidden_size\":64,\"num_attention_heads\":4,\"vocab_size\":256,"     \
    "\"intermediate_size\":128,"                                                                   \
    "\"n_routed_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,\"n_shared_"    \
    "experts\":1,\"first_k_dense_replace\":1,\"q_lora_rank\":24,"                                  \
    "\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,\"v_head_dim\":128,"    \
    "\"index_n_heads\":2,\"index_head_dim\":16,\"index_topk\":32}"
TEST(sparse_attention_by_hand) {
    cd_serving_model m;
    cd_serving_ops o;
    assert_ok(made_read(SPARSE, &m, &err));
    cd_serving_ops_prompt(&m, &one, 3, 50, &o);
    /* each token against half of them in the mean, two heads of 16 */
    product_is(&o, "index_scores", 50, 25, 32, 3);
    assert_close(named(&o, "index_choice")->bytes, 3 * 50 * 4 * 50, 0, 0);
    product_is(&o, "absorb_k", 150, 512, 128, 4);
    product_is(&o, "absorb_v", 150, 128, 512, 4);
    assert_close(named(&o, "attention_prompt")->r.size[0], 32, 0, 0);
    /* a cache shorter than what is chosen is read whole */
    cd_serving_ops_decode(&m, &one, 3, 20, &o);
    assert_close(named(&o, "attention_decode")->r.size[0], 20, 0, 0);
    assert_close(named(&o, "index_scores")->bytes, 3 * 20 * (16 + 8), 0, 0);
    cd_serving_ops_rest(&m, &one, 8, 3, 8, false, &o);
    product_is(&o, "index_q", 8, 32, 24, 1);
    product_is(&o, "index_k", 8, 18, 64, 1);
    product_is(&o, "q_up", 8, 4 * 192, 24, 1);
    product_is(&o, "attention_down", 8, 24 + 576, 64, 1);
}

/* ---- memory ---- */
static cd_serving_memory memory(const cd_serving_model *m, const cd_serving_layout *l,
                                double length) {
    const cd_device d = {.name = "d", .mem_gb = 1000};
    const cd_serving_stack k = {.name = "vllm", .memory_share = 0.9};
    cd_serving_memory v;
    assert_ok(cd_serving_memory_of(m, l, &k, &d, 16, length, length, &v, &err));
    return v;
}

/* Stages share layers, and the tables of an untied model; a stage has at least one layer's cache;
 * each batch of a pipeline needs room for the longest. */
TEST(stages_share_memory) {
    cd_serving_model m, tied;
    cd_serving_layout l = one;
    const double layers = 2 * 4 * (4 * 64 * 64 + 3 * 64 * 128), table = 2 * 256 * 64,
                 token = 2 * 2 * 4 * 16 * 4;
    assert_ok(made_read(MADE_LLAMA "}", &m, &err));
    assert_ok(made_read(MADE_LLAMA ",\"tie_word_embeddings\":true}", &tied, &err));
    assert_close(memory(&m, &one, 64).weights, layers + 2 * table, 0, 0);
    assert_close(memory(&tied, &one, 64).weights, layers + table, 0, 0);
    l.pp = 2;
    assert_close(memory(&m, &l, 64).weights, layers / 2 + table, 0, 0);
    assert_close(memory(&m, &l, 64).token, token / 2, 0, 0);
    l.pp = 4;
    assert_close(memory(&m, &l, 64).token, token / 4, 0, 0);
    /* a sequence of 64 is in a layer of four with all, in three with a sixteenth */
    m.window = 4, m.window_layers = 3;
    l.pp = 1;
    assert_close(memory(&m, &l, 64).token, token / 4 * (1 + 3. / 16), 1e-12, 0);
    l.pp = 4; /* the stage with the layer of all */
    assert_close(memory(&m, &l, 64).token, token / 4, 1e-12, 0);
    const cd_device d = {.name = "d", .mem_gb = 1};
    cd_serving_stack k = {.name = "vllm", .memory_share = 1};
    cd_serving_memory v;
    m.window_layers = 0;
    assert_ok(cd_serving_memory_of(&m, &l, &k, &d, 16, 64, 64, &v, &err));
    assert_ok(cd_serving_memory_of(&m, &l, &k, &d, 16, 64, floor(v.tokens / 4), &v, &err));
    assert_status(cd_serving_memory_of(&m, &l, &k, &d, 16, 64, floor(v.tokens / 4) + 1, &v, &err),
                  CDMPP_ERANGE);
}

/* Never less of what is more: layers, widths, heads, vocabulary, experts, lengths. */
TEST(more_is_not_less) {
    static const char *const base = MADE_EXPERTS ",\"n_routed_experts\":8}";
    cd_serving_model m, more;
    assert_ok(made_read(base, &m, &err));
    const cd_serving_memory a = memory(&m, &one, 64);
    for (int i = 0; i < 7; i++) {
        more = m;
        double *const to[] = {&more.vocab,      &more.ffn,      &more.expert_ffn, &more.experts,
                              &more.shared_ffn, &more.kv_heads, &more.head_dim};
        *to[i] *= 2;
        const cd_serving_memory b = memory(&more, &one, 64);
        assert_true(b.weights > a.weights && b.token >= a.token && b.activations >= a.activations &&
                    b.tokens <= a.tokens);
        assert_true(cd_serving_model_parameters(&more) > cd_serving_model_parameters(&m));
        if (i >= 5) assert_close(b.token, 2 * a.token, 1e-12, 0);
    }
    const cd_serving_layout narrow = {.tp = 1,
                                      .pp = 1,
                                      .dp = 1,
                                      .moe_tp = 1,
                                      .moe_ep = 1,
                                      .linear = CD_LLM_OP_T_FP8,
                                      .expert = CD_LLM_OP_T_FP8,
                                      .kv = CD_LLM_OP_T_FP8,
                                      .project = CD_LLM_OP_T_FP8,
                                      .shared = CD_LLM_OP_T_FP8,
                                      .recurrent = CD_LLM_OP_T_FP8,
                                      .base = CD_LLM_OP_T_BF16};
    const double router = 2 * 3 * 64 * 8, tables = 2 * 2 * 256 * 64; /* stay in 16 bits */
    assert_close(2 * memory(&m, &narrow, 64).token, a.token, 0, 0);
    assert_close(2 * (memory(&m, &narrow, 64).weights - router - tables),
                 a.weights - router - tables, 1e-12, 0);
}

/* ---- lengths and arrivals ---- */
typedef struct {
    made_serving s;
    cd_serving_engine *e;
} bench;

static void open_bench(bench *b) {
    made_serving_open(&b->s, path, 1);
    err = (cdmpp_err){0};
    assert_ok(cd_serving_engine_new(&b->s.m, &b->s.l, &b->s.k, b->s.c, NULL, &b->e, &err));
}

static void close_bench(bench *b) {
    cd_serving_engine_free(b->e);
    made_serving_close(&b->s);
}

static const cd_serving_limits limits = {
    .tokens = 64, .sequences = 8, .cache_tokens = 1000, .prompts = CD_SERVING_CHUNKED};

static cd_serving_result simulated(const bench *b, const cd_serving_load *load,
                                   const cd_serving_limits *l) {
    cd_serving_result r;
    err = (cdmpp_err){0};
    assert_ok(cd_serving_simulate(b->e, load, l, 0, &r, &err));
    return r;
}

/* Poisson: the time between arrivals is -ln(1 - u) / rate, of these numbers of the generator; the
 * last one ends a request after the sum. Its mean is 1 / rate. */
TEST(arrivals_by_hand) {
    bench b;
    double at = 0;
    open_bench(&b);
    const cd_serving_load load = {.isl = 16, .osl = 1, .rate = 2, .requests = 400, .seed = 7};
    const cd_serving_load alone = {.isl = 16, .osl = 1, .concurrency = 1, .requests = 1};
    for (size_t i = 0; i < 400; i++) at += -log(1 - cd_rng_unit(8, i)) / 2;
    const cd_serving_result r = simulated(&b, &load, &limits);
    assert_close(r.total_s, at + simulated(&b, &alone, &limits).ttft_s, 1e-9, 0);
    assert_true(at > 200 * 0.9 && at < 200 * 1.1);
    assert_close(r.requests, 400, 0, 0);
    close_bench(&b);
}

/* Lengths are uniform within 1 -/+ spread times the mean: their sum is what all tokens are. */
TEST(lengths_by_hand) {
    bench b;
    double tokens = 0, least = 1e9, most = 0;
    open_bench(&b);
    const cd_serving_load load = {
        .isl = 16, .osl = 20, .spread = 0.5, .concurrency = 1, .requests = 200, .seed = 3};
    for (uint64_t i = 0; i < 200; i++) {
        const double v = round(20 * (1 + 0.5 * (2 * cd_rng_unit(3, 2 * i + 1) - 1)));
        tokens += v, least = fmin(least, v), most = fmax(most, v);
    }
    const cd_serving_result r = simulated(&b, &load, &limits);
    assert_close(r.tokens_s * r.total_s, tokens, 1e-9, 0);
    assert_true(fabs(tokens / 200 - 20) < 1.5 && least >= 10 && least <= 11 && most <= 30 &&
                most >= 29);
    close_bench(&b);
}

/* One at a time nothing waits, so every figure follows from two times: t1 of a prompt, t2 of each
 * of n - 1 further tokens at its own length. */
TEST(one_at_a_time) {
    bench b;
    double decode = 0, t;
    open_bench(&b);
    const cd_serving_load load = {.isl = 16, .osl = 9, .concurrency = 1, .requests = 4};
    const cd_serving_step prompt = {.prompts = 1, .isl = 16};
    const cd_serving_result r = simulated(&b, &load, &limits);
    assert_ok(cd_serving_step_s(b.e, &prompt, &t, &err));
    assert_close(r.ttft_s, t, 1e-12, 0);
    assert_close(r.ttft_p99_s, t, 1e-12, 0);
    /* turns in which nothing changes are one, at their mean length */
    const cd_serving_step mean = {.decodes = 1, .context = 17 + 7 / 2.};
    assert_ok(cd_serving_step_s(b.e, &mean, &decode, &err));
    assert_close(r.tpot_s, decode, 1e-9, 0);
    assert_close(r.request_s, t + 8 * decode, 1e-9, 0);
    assert_close(r.total_s, 4 * r.request_s, 1e-9, 0);
    assert_close(r.tokens_s, 4 * 9 / r.total_s, 1e-9, 0);
    /* a sequence runs from its first token on */
    assert_close(r.running, 8 * decode / r.request_s, 1e-9, 0);
    close_bench(&b);
}

/* Of 100 requests that all come at once and go one by one, the 99 th percentile is that of the last
 * one. */
TEST(percentiles) {
    bench b;
    open_bench(&b);
    cd_serving_limits l = limits;
    l.sequences = 1;
    const cd_serving_load load = {.isl = 16, .osl = 1, .concurrency = 100, .requests = 100};
    const cd_serving_result r = simulated(&b, &load, &l);
    const double each = r.total_s / 100;
    assert_close(r.ttft_p99_s, r.total_s, 1e-9, 0);
    assert_close(r.ttft_s, each * 50.5, 1e-9, 0);
    assert_close(r.ttft_median_s, each * 50.5, 1e-2, 0);
    close_bench(&b);
}

/* How many requests a load test has: those asked for, no more of them in flight; without a number
 * eight for each in flight, 64 at least. */
TEST(numbers_of_requests) {
    static const double of[][3] = {{10, 1000, 10}, {10, 3, 10}, {3, 3, 3},    {0, 3, 64},
                                   {0, 8, 64},     {0, 9, 72},  {0, 100, 800}};
    bench b;
    open_bench(&b);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const cd_serving_load load = {
            .isl = 16, .osl = 2, .requests = of[i][0], .concurrency = of[i][1]};
        const cd_serving_result r = simulated(&b, &load, &limits);
        assert_close(r.requests, of[i][2], 0, 0);
        assert_close(r.tokens_s * r.total_s, 2 * of[i][2], 1e-9, 0);
        assert_true(r.running + r.waiting <= fmin(of[i][1], of[i][2]) + 1e-9);
    }
    close_bench(&b);
}

/* A prompt of 16 beside a sequence of 17 needs 33 and a turn of both, 35; at 34 it waits. */
TEST(room_in_the_cache) {
    bench b;
    open_bench(&b);
    const cd_serving_load load = {.isl = 16, .osl = 2, .concurrency = 2, .requests = 2};
    cd_serving_limits l = limits;
    /* a prompt a step, and a token of the other sequence */
    l.tokens = 17, l.prompts = CD_SERVING_WHOLE;
    for (double room = 33; room <= 36; room++) {
        l.cache_tokens = room;
        const cd_serving_result r = simulated(&b, &load, &l);
        /* both after the other, or the second prompt beside the first one's token */
        assert_int_equal(r.steps, room < 35 ? 4 : 3);
    }
    close_bench(&b);
}

/* ---- steps ---- */
/* The host's part: of each layer half for attention and half for the rest; of each sequence, a
 * prompt in parts among them; beside the GPU or before it. */
TEST(host_by_hand) {
    bench b;
    double gpu, s;
    open_bench(&b);
    const cd_serving_step part = {.part = 8, .decodes = 2, .context = 20};
    const cd_serving_step prompt = {.prompts = 2, .isl = 16};
    assert_ok(cd_serving_step_s(b.e, &part, &gpu, &err));
    b.s.k.step_s = 1e-3, b.s.k.sequence_s = 1e-4;
    assert_ok(cd_serving_step_s(b.e, &part, &s, &err));
    assert_close(s, gpu + 1e-3 + 3e-4, 1e-9, 0);
    b.s.k.overlap = true;
    assert_ok(cd_serving_step_s(b.e, &part, &s, &err));
    assert_close(s, fmax(gpu, 1e-3 + 3e-4), 1e-9, 0);
    /* two layers, of attention and a feed-forward part each */
    b.s.k.step_s = b.s.k.sequence_s = 0, b.s.k.layer_s = 1;
    assert_ok(cd_serving_step_s(b.e, &prompt, &s, &err));
    assert_close(s, 2, 1e-9, 0);
    const cd_serving_step decode = {.decodes = 2, .context = 20};
    assert_ok(cd_serving_step_s(b.e, &decode, &s, &err));
    assert_true(s < 1); /* a graph */
    close_bench(&b);
}

/* Times do not shrink when there is more to do. */
TEST(times_are_monotone) {
    bench b;
    double last = 0, s;
    open_bench(&b);
    for (int n = 1; n <= MADE_TOKENS; n += 5) {
        const cd_serving_step one_more = {.prompts = 1, .isl = n};
        assert_ok(cd_serving_step_s(b.e, &one_more, &s, &err));
        assert_true(s > last);
        last = s;
    }
    last = 0;
    for (int n = 1; n <= MADE_PAST - 20; n += 9) {
        const cd_serving_step longer = {.decodes = 2, .context = n};
        assert_ok(cd_serving_step_s(b.e, &longer, &s, &err));
        assert_true(s >= last);
        last = s;
    }
    close_bench(&b);
}

/* ---- intervals ---- */
/* 90 % of a normal distribution lie within 1.6449 deviations. What operators say of a step and the
 * stack's spread are independent: 0.3 and 0.4 make 0.5. */
TEST(intervals_by_hand) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a;
    cd_serving_rows p = {0}, d = {0};
    open_session(&f);
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, &p, &d, &err));
    assert_close(log(a.ttft_high_s / a.r.ttft_s), 1.6449 * 0.2, 1e-4, 0);
    assert_close(log(a.r.tpot_s / a.tpot_low_s), 1.6449 * 0.1, 1e-4, 0);
    f.s.level = 0.5;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, &p, &d, &err));
    assert_close(log(a.ttft_high_s / a.r.ttft_s), 0.6745 * 0.2, 1e-3, 0);
    /* the decode table is of the mean length: 16 of the prompt and half of the 8 that follow */
    for (size_t i = 0; i < d.n; i++)
        if (!strcmp(d.v[i].name, "attention_decode"))
            assert_close(cd_llm_op_get(&d.v[i].r, CD_LLM_OP_P_PAST), 20, 0.05, 0);
    cd_serving_rows_free(&p), cd_serving_rows_free(&d);
    close_session(&f);
}

/* ---- what was asked ---- */
TEST(what_was_asked) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a;
    open_session(&f);
    c.concurrency = 1000, c.requests = 10;
    assert_close(cd_serving_in_flight(&c), 10, 0, 0);
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_close(a.r.requests, 10, 0, 0);
    /* four schedulers, one in flight each: ceil(10 / 4) each */
    c.concurrency = 4, c.requests = 10, c.worker.count = 4;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_close(a.r.requests, 12, 0, 0);
    assert_close(a.r.idle, 0, 0, 0);
    c.concurrency = 3;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_close(a.r.idle, 1, 0, 0);
    c = small(), c.expert = CD_LLM_OP_T_FP8;
    assert_status(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "experts_dtype");
    c = small(), c.node_gb_s = 50, err = (cdmpp_err){0};
    assert_status(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "node_gbs");
    c = small(), c.spread = 1, c.osl = 4;
    assert_true(cd_serving_too_short(&c));
    c.spread = 0.5;
    assert_true(!cd_serving_too_short(&c));
    /* too many to simulate all */
    c = small(), c.concurrency = 0, c.rate = 1e7, c.requests = 0, err = (cdmpp_err){0};
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_true(a.r.cut && a.r.requests < 16385);
    close_session(&f);
}

/* n engines with n times the load, in flight or by the second, are n times one engine. */
TEST(engines_scale) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a, b;
    open_session(&f);
    c.concurrency = 3, c.requests = 12;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    c.concurrency = 9, c.requests = 36, c.worker.count = 3;
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    assert_close(b.r.ttft_s, a.r.ttft_s, 1e-9, 0);
    assert_close(b.r.tokens_s, 3 * a.r.tokens_s, 1e-9, 0);
    assert_close(b.per_gpu, a.per_gpu, 1e-9, 0);
    c = small(), c.concurrency = 0, c.rate = 1e4, c.requests = 40;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    c.rate = 3e4, c.requests = 120, c.worker.count = 3;
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    assert_close(b.r.ttft_s, a.r.ttft_s, 1e-9, 0);
    assert_close(b.r.tokens_s, 3 * a.r.tokens_s, 1e-9, 0);
    close_session(&f);
}

/* The price of a million tokens: 7.2 an hour at so many tokens a second. */
static double price(void *ctx, const char *gpu) {
    (void)ctx, (void)gpu;
    return 7.2;
}

TEST(prices) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_sweep w;
    open_session(&f);
    const cd_serving_sweep_options o = {.price = price};
    assert_ok(cd_serving_sweep_run(&f.s, &c, 1, &o, &w, &err));
    assert_close(w.v[0].price, 1e6 / w.v[0].per_gpu / 3600 * 7.2, 1e-12, 0);
    cd_serving_sweep_free(&w);
    close_session(&f);
}

TESTS(up, down, products_have_all_weights, tp_divides_products, sizes_by_hand,
      sparse_attention_by_hand, stages_share_memory, more_is_not_less, arrivals_by_hand,
      lengths_by_hand, one_at_a_time, percentiles, numbers_of_requests, room_in_the_cache,
      host_by_hand, times_are_monotone, intervals_by_hand, what_was_asked, engines_scale, prices)
