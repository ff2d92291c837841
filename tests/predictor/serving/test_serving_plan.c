/* Layouts that do not divide or fit, constants of stacks, one configuration, a sweep, tables of
 * runs, what is printed. */
#include "base/io/io.h"
#include "made_serving_session.h"

static void layout(const made_serving *s, double tp, double pp, double dp, double ep,
                   cdmpp_status st, const char *key) {
    cd_serving_layout l = {.tp = tp, .pp = pp, .dp = dp, .moe_ep = ep};
    memset(&err, 0, sizeof err);
    assert_int_equal(cd_serving_layout_check(&s->m, &l, &err), st);
    assert_string_equal(err.key, key);
}

TEST(layouts) {
    made_serving s;
    made_serving_open(&s, path, 1);
    layout(&s, 4, 2, 1, 1, CDMPP_OK, "");
    layout(&s, 3, 1, 1, 1, CDMPP_ERANGE, "tp");
    layout(&s, 1, 3, 1, 1, CDMPP_ERANGE, "pp");
    layout(&s, 2, 1, 1, 2, CDMPP_ERANGE, "ep");
    /* 12 GPUs are four nodes, but 4 GPUs are no whole nodes */
    cd_serving_layout l = {.tp = 4, .pp = 1, .dp = 3, .moe_ep = 1, .node = 3, .node_bytes_s = 1e9};
    assert_status(cd_serving_layout_check(&s.m, &l, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "tp");
    l = (cd_serving_layout){.tp = 2, .pp = 2, .dp = 1, .moe_ep = 1, .node = 2};
    assert_status(cd_serving_layout_check(&s.m, &l, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "tp x dp x pp");
    s.m.experts = 8, s.m.topk = 2, s.m.expert_ffn = 32;
    layout(&s, 2, 1, 2, 4, CDMPP_OK, "");
    layout(&s, 2, 1, 2, 3, CDMPP_ERANGE, "ep");
    layout(&s, 2, 1, 1, 4, CDMPP_ERANGE, "ep");
    s.m.expert_ffn = 33;
    layout(&s, 2, 1, 1, 1, CDMPP_ERANGE, "tp x dp / ep");
    made_serving_close(&s);
}

TEST(memory) {
    made_serving s;
    cd_serving_memory m;
    made_serving_open(&s, path, 1);
    s.k.memory_share = 1, s.k.reserve_gb = 1;
    assert_ok(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 32, 32, &m, &err));
    assert_close(m.weights, 2 * (2 * (64 * 16 * (2 * 4 + 2 * 2) + 3 * 64 * 128) + 2 * 256 * 64),
                 1e-12, 0);
    /* 2 layers, keys and values of 2 heads of 16 in 2 bytes */
    assert_close(m.token, 2 * 2 * 2 * 16 * 2, 0, 0);
    assert_close(m.activations, 2 * 64 * (4 * 64 + 3 * 128), 0, 0);
    assert_close(m.tokens, floor((80 * 1073741824.0 - 1e9 - m.weights - m.activations) / m.token),
                 0, 0);
    s.k.memory_share = 0.5;
    s.k.share_of = CD_SERVING_OF_LEFT; /* half of what the others leave */
    assert_ok(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 32, 32, &m, &err));
    assert_close(m.tokens * m.token, (80 * 1073741824.0 - 1e9 - m.weights - m.activations) / 2,
                 1e-6, 0);
    assert_close(m.limit, 1e9 + m.weights + m.activations + m.tokens * m.token, 1e-6, 0);
    s.k.share_of = CD_SERVING_OF_STATIC; /* half of all for weights and the cache */
    assert_ok(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 32, 32, &m, &err));
    assert_close(m.tokens * m.token, 40 * 1073741824.0 - m.weights, 1e-6, 0);
    s.k.memory_share = 1, s.k.reserve_gb = 70; /* but not what the others need */
    assert_ok(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 32, 32, &m, &err));
    assert_close(m.tokens * m.token, 80 * 1073741824.0 - 70e9 - m.weights - m.activations, 1e-6, 0);
    s.k.share_of = CD_SERVING_OF_ALL, s.k.reserve_gb = 1;
    s.m.window = 8, s.m.window_layers = 1; /* of 32 tokens one layer keeps 8 */
    assert_ok(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 32, 32, &m, &err));
    assert_close(m.token, 1.25 * 2 * 2 * 16 * 2, 1e-12, 0);
    s.m.window_layers = 0;
    s.k.memory_share = 0.0116; /* a GB: no room beside the reserve */
    assert_status(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 32, 32, &m, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "memory");
    assert_non_null(strstr(err.msg, "reserve 1.00 GB"));
    /* a layer in a stage: the token's part is half, and each batch has half of the room */
    s.l.pp = 2;
    s.k.memory_share = 1, s.k.reserve_gb = 0;
    assert_ok(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 32, 32, &m, &err));
    s.k.memory_share =
        (m.weights + m.activations + 63 * m.token) / (s.d->mem_gb * 1073741824.0) + 1e-12;
    assert_ok(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 31, 31, &m, &err));
    assert_status(cd_serving_memory_of(&s.m, &s.l, &s.k, s.d, 64, 31, 32, &m, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "one sequence of each batch"));
    made_serving_close(&s);
}

TEST(stacks) {
    cd_diag diag = {0};
    cd_serving_stacks s;
    const cd_serving_stack *k;
    assert_ok(cd_serving_stacks_load("configs/serving.yaml", &diag, &s, &err));
    assert_true(s.n >= 3);
    assert_ok(cd_serving_stack_find(&s, "trtllm-1.0.0rc3", &k, &err));
    assert_string_equal(k->name, "trtllm");
    assert_status(cd_serving_stack_find(&s, "vllmx", &k, &err), CDMPP_ESCHEMA);
    cd_serving_stacks_free(&s);
    static const char three[] = "- {stack: a, tokens: 1}\n- {stack: a, since: \"0.14\", tokens: "
                                "2}\n- {stack: a, since: \"0.9\", tokens: 3}\n";
    assert_ok(cd_serving_stacks_read("s.yaml", three, sizeof three - 1, &diag, &s, &err));
    static const struct {
        const char *stack;
        int64_t tokens;
    } of[] = {{"a", 2},        {"a-0.18.0", 2},      {"a-0.14", 2},    {"a-0.14.0", 2},
              {"a-0.12.0", 3}, {"a-0.8.1.post3", 1}, {"a-1.0.0rc3", 2}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_ok(cd_serving_stack_find(&s, of[i].stack, &k, &err));
        assert_int_equal(k->tokens, of[i].tokens);
    }
    cd_serving_stacks_free(&s);
    static const char *const bad[] = {"",
                                      "a: 1",
                                      "- 1",
                                      "- {tokens: 5}",
                                      "- {stack: a, tokens: -1}",
                                      "- {stack: a, toks: 1}",
                                      "- {stack: a, prompts: some}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(cd_serving_stacks_read("s.yaml", bad[i], strlen(bad[i]), &diag, &s, &err) !=
                    CDMPP_OK);
    cd_diag_free(&diag);
    FAULT_SWEEP(f, 0) {
        cd_diag d = {0};
        f.st = cd_serving_stacks_read("s.yaml", STACKS, sizeof STACKS - 1, &d, &s, &f.err);
        if (!f.st) cd_serving_stacks_free(&s);
        cd_diag_free(&d);
    }
}

TEST(answers) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a, b;
    static cd_serving_rows p, d;
    open_session(&f);
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, &p, &d, &err));
    /* all operators were measured, so the interval is that of the stack alone: 1.645 deviations */
    assert_close(a.tpot_high_s / a.r.tpot_s, exp(1.6449 * 0.1), 1e-3, 0);
    assert_close(a.ttft_low_s / a.r.ttft_s, exp(-1.6449 * 0.2), 1e-3, 0);
    assert_close(a.gpus, 1, 0, 0);
    assert_close(a.per_user * a.r.tpot_s, 1, 1e-12, 0);
    /* two copies, each with half of the load */
    c.worker.dp = 2, c.concurrency = 4, c.requests = 16;
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    assert_close(b.r.tpot_s, a.r.tpot_s, 1e-12, 0);
    assert_close(b.r.tokens_s, 2 * a.r.tokens_s, 1e-12, 0);
    assert_true(isnan(b.tpot_low_s));
    cd_serving_answer one;
    c = small(), c.concurrency = 1, c.requests = 4;
    assert_ok(cd_serving_answer_of(&f.s, &c, &one, NULL, NULL, &err));
    c.worker.dp = 8; /* one request in flight: seven copies idle */
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    assert_close(b.r.tokens_s, one.r.tokens_s, 1e-12, 0);
    assert_close(b.r.running, one.r.running, 1e-12, 0);
    c.worker.dp = 2, c.concurrency = 3, c.requests = 12; /* one copy has two, the other one */
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    assert_close(b.r.tokens_s, a.r.tokens_s + one.r.tokens_s, 1e-12, 0);
    const double part = a.r.tokens_s / b.r.tokens_s;
    assert_close(b.r.tpot_s, part * a.r.tpot_s + (1 - part) * one.r.tpot_s, 1e-12, 0);
    /* room for 24 tokens */
    c = small(), c.memory_share = (a.memory.weights + a.memory.activations + a.memory.reserve +
                                   24.5 * a.memory.token) /
                                  a.memory.limit * 0.9;
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    c.spread = 0.5; /* one of 24 + 12 tokens may come */
    assert_status(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "memory");
    c = small(), c.stack = "sglang-1";
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, &p, &d, &err));
    assert_true(isnan(b.tpot_low_s)); /* nobody knows the spread of this stack */
    c = small(), c.spread = 0.5;      /* requests come one by one */
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    c.decode.count = 1; /* prompts elsewhere: no step is longer because of them */
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    assert_true(b.r.tpot_s < a.r.tpot_s && b.gpus > 1.5);
    volatile sig_atomic_t stop = 1;
    f.s.stop = &stop;
    assert_status(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err), CDMPP_EINTERRUPTED);
    f.s.stop = NULL;
    c = small(), c.gpu = "h9000";
    assert_status(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "gpu");
    c = small(), c.stack = "other", memset(&err, 0, sizeof err);
    assert_status(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err), CDMPP_ESCHEMA);
    assert_string_equal(err.key, "stack");
    close_session(&f);
}

/* Constants that were fitted on a model say less of others: their spread counts there, and where
 * nobody knows it there is no interval. */
TEST(fitted_on) {
    static const char *const stacks[] = {
        "- {stack: vllm, tokens: 64, sequences: 8, reserve_gb: 1, spread_tpot: 0.1, spread_ttft: "
        "0.2, spread_tpot_other: 0.3, spread_ttft_other: 0.4, fitted: \"llama 2 64\", between_s: "
        "0}\n",
        "- {stack: vllm, tokens: 64, sequences: 8, reserve_gb: 1, spread_tpot: 0.1, spread_ttft: "
        "0.2, spread_tpot_other: 0.3, spread_ttft_other: 0.4, fitted: \"llama 2 65\", between_s: "
        "0}\n",
        "- {stack: vllm, tokens: 64, sequences: 8, reserve_gb: 1, spread_tpot: 0.1, spread_ttft: "
        "0.2, fitted: \"qwen3 2 64\", between_s: 0}\n"};
    const double tpot[] = {0.1, 0.3, NAN}, ttft[] = {0.2, 0.4, NAN};
    for (size_t i = 0; i < 3; i++) {
        fixture f;
        cd_diag diag = {0};
        cd_serving_config c = small();
        cd_serving_answer a;
        static cd_serving_rows p, d;
        open_session(&f);
        cd_serving_stacks_free(&f.stacks);
        assert_ok(
            cd_serving_stacks_read("s.yaml", stacks[i], strlen(stacks[i]), &diag, &f.stacks, &err));
        assert_ok(cd_serving_answer_of(&f.s, &c, &a, &p, &d, &err));
        if (isnan(tpot[i])) assert_true(isnan(a.tpot_low_s) && isnan(a.ttft_high_s));
        else
            assert_close(a.tpot_high_s / a.r.tpot_s, exp(1.6449 * tpot[i]), 1e-3, 0),
                assert_close(a.ttft_low_s / a.r.ttft_s, exp(-1.6449 * ttft[i]), 1e-3, 0);
        cd_diag_free(&diag);
        close_session(&f);
    }
}

/* A GPU and a type that constants were not fitted on get the wide spread, as does a model; what
 * `fitted` leaves out at its end may be any. */
TEST(fitted_on_gpu_and_type) {
    static const struct {
        const char *fitted;
        bool narrow;
    } of[] = {{"llama 2 64 h100 bfloat16", true},
              {"llama 2 64 h100", true},
              {"llama 2 64 a100 bfloat16", false},
              {"llama 2 64 h100 fp8", false},
              {"llama 2 6", false},
              {"none", false}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        fixture f;
        cd_serving_config c = small();
        cd_serving_answer a;
        static cd_serving_rows p, d;
        open_session(&f);
        f.stacks.v[0].fitted = of[i].fitted, f.stacks.v[0].spread_tpot_other = 0.3,
        f.stacks.v[0].spread_ttft_other = 0.4;
        assert_ok(cd_serving_answer_of(&f.s, &c, &a, &p, &d, &err));
        assert_close(a.tpot_high_s / a.r.tpot_s, exp(1.6449 * (of[i].narrow ? 0.1 : 0.3)), 1e-3, 0);
        assert_close(a.ttft_high_s / a.r.ttft_s, exp(1.6449 * (of[i].narrow ? 0.2 : 0.4)), 1e-3, 0);
        close_session(&f);
    }
}

/* Experts in MXFP4: inputs in fp8 where the library has them so and the GPU has units for fp4,
 * unless the type is named; other types stay. */
TEST(inputs_of_mxfp4) {
    static const struct {
        const char *gpu;
        cd_llm_op_type checkpoint, want;
        bool fp8;
        int named;
    } of[] = {
        {"b200", CD_LLM_OP_T_W4A16_MXFP4, CD_LLM_OP_T_W4A8_MXFP4, true, -1},
        {"b200", CD_LLM_OP_T_W4A16_MXFP4, CD_LLM_OP_T_W4A16_MXFP4, false, -1},
        {"h100", CD_LLM_OP_T_W4A16_MXFP4, CD_LLM_OP_T_W4A16_MXFP4, true, -1},
        {"b200", CD_LLM_OP_T_W4A16_MXFP4, CD_LLM_OP_T_W4A16_MXFP4, true, CD_LLM_OP_T_W4A16_MXFP4},
        {"b200", CD_LLM_OP_T_INT4_WO, CD_LLM_OP_T_INT4_WO, true, -1}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        fixture f;
        cd_serving_config c = small();
        cd_serving_engine *e;
        cd_serving_layout l;
        open_session(&f);
        f.stacks.v[0].mxfp4_inputs_fp8 = of[i].fp8;
        f.made.m.expert = of[i].checkpoint, f.made.m.experts = 4, f.made.m.topk = 2,
        f.made.m.expert_ffn = 32, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0;
        c.gpu = of[i].gpu, c.expert = of[i].named;
        assert_ok(cd_serving_engine_of(&f.s, &c, &e, &l, &err));
        assert_int_equal(l.expert, of[i].want);
        close_session(&f);
    }
}

/* The file of the project: each entry names the GPU and the type of its runs, and of vLLM from 0.14
 * on there are none. */
TEST(fitted_of_the_file) {
    static const char *const of[][2] = {{"vllm-0.12.0", "qwen3 64 5120 h100 bfloat16"},
                                        {"vllm-0.14.0", "none"},
                                        {"vllm", "none"},
                                        {"trtllm", "qwen3 64 5120 h100 fp8"},
                                        {"sglang", "qwen3 64 5120 h100 bfloat16"}};
    cd_serving_stacks s;
    cd_diag diag = {0};
    assert_ok(cd_serving_stacks_load("configs/serving.yaml", &diag, &s, &err));
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const cd_serving_stack *k = NULL;
        assert_ok(cd_serving_stack_find(&s, of[i][0], &k, &err));
        assert_string_equal(k->fitted, of[i][1]);
        assert_true(k->spread_tpot_other > k->spread_tpot && k->spread_ttft_other > k->spread_ttft);
    }
    cd_serving_stacks_free(&s);
    cd_diag_free(&diag);
}

/* Prompts in one worker, two that decode one sequence each, six requests in flight: four wait for a
 * worker that decodes, which counts in TTFT. Throughput is that of the slower kind of worker. */
TEST(apart) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a, b, few;
    open_session(&f);
    /* prompts take longer than decoding */
    c.osl = 16, c.decode.count = 2, c.decode.batch = 1, c.concurrency = 6, c.requests = 600;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    static cd_serving_rows p, d;
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, &p, &d, &err));
    /* no more requests end than prompts do */
    assert_close(a.r.tokens_s / 16, 1 / p.total_s, 0, 0.1 / p.total_s);
    c.osl = 128;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    /* two sequences get a token in each step */
    assert_close(a.r.tokens_s * a.r.tpot_s, 2, 0.05, 0);
    assert_close(a.r.tokens_s / 128 * a.r.request_s, 6, 1e-9, 0); /* Little's law */
    assert_close(a.r.ttft_s + 127 * a.r.tpot_s, a.r.request_s, 1e-6, 0);
    /* two others before it in the same worker */
    assert_close(a.r.ttft_s, 2 * 127 * a.r.tpot_s, 0, 0.15 * a.r.ttft_s);
    c.concurrency = 2, c.requests = 200;
    /* each has its worker: they wait for prompts alone */
    assert_ok(cd_serving_answer_of(&f.s, &c, &few, NULL, NULL, &err));
    assert_true(few.r.ttft_s < 0.1 * a.r.ttft_s);
    assert_close(few.r.tpot_s, a.r.tpot_s, 1e-6, 0);
    /* the cache of a prompt takes half a second from node to node */
    c.node = 8, c.node_gb_s = a.memory.token * 16 * 1e-9 / 0.5;
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    assert_close(b.r.ttft_s - few.r.ttft_s, 0.5, 1e-3, 0);
    assert_close(b.r.request_s - few.r.request_s, 0.5, 1e-3, 0);
    close_session(&f);
}

TEST(sweeps) {
    const cd_serving_sweep_options any = {0}, strict = {.ttft_s = 1e-9};
    fixture f;
    cd_arena a = {0};
    cd_serving_config usual = small(), *v;
    cd_serving_sweep s;
    size_t n;
    cd_buf b = {0};
    const cd_serving_lists l = {.tp = "1,2,3", .concurrency = "1,2,4"};
    const cd_serving_lists bad = {.tp = "1,x"};
    const cd_serving_lists half = {.tp = "1.5"};
    const cd_serving_lists many = {.tp = "1,2", .gpu = ","};
    open_session(&f);
    assert_ok(cd_serving_combine(&a, &usual, &l, &v, &n, &err));
    assert_int_equal(n, 9);
    assert_ok(cd_serving_sweep_run(&f.s, v, n, &any, &s, &err));
    assert_int_equal(s.n, 6);
    assert_int_equal(s.n_reason, 1);
    assert_string_equal(s.reason[0].text, "tp");
    for (size_t i = 0; i < s.n; i++) { /* the rule of the front, point by point */
        bool beaten = false;
        for (size_t k = 0; k < s.n; k++)
            beaten |= s.v[k].per_gpu > s.v[i].per_gpu && s.v[k].per_user > s.v[i].per_user;
        assert_int_equal(s.v[i].front, !beaten);
    }
    cd_serving_sweep_text(&s, &b);
    assert_non_null(strstr(b.p, "9 configurations, 6 of them can be, 6 meet the targets"));
    cd_buf_clear(&b);
    cd_serving_sweep_json(&s, true, &b);
    assert_non_null(strstr(b.p, "\"left_out\":{\"tp\":3}"));
    const char *svg = tmp_path(&dir, "a.svg");
    assert_ok(cd_serving_sweep_picture(&s, svg, &err));
    char *drawn;
    size_t n_drawn;
    assert_ok(cd_file_read(svg, 0, &drawn, &n_drawn, &err));
    assert_non_null(strstr(
        drawn, "<path class=\"d c")); /* points have round ends, else nothing of them is drawn */
    cd_mem_free(drawn);
    cd_serving_sweep_free(&s);
    assert_ok(cd_serving_sweep_run(&f.s, v, n, &strict, &s, &err));
    assert_int_equal(s.n_met + s.n_front, 0);
    cd_serving_sweep_free(&s);
    assert_status(cd_serving_sweep_run(&f.s, v + 6, 3, &any, &s, &err), CDMPP_ENODATA);
    cd_serving_sweep_free(&s);
    assert_status(cd_serving_combine(&a, &usual, &bad, &v, &n, &err), CDMPP_EUSAGE);
    assert_status(cd_serving_combine(&a, &usual, &half, &v, &n, &err), CDMPP_EUSAGE);
    assert_status(cd_serving_combine(&a, &usual, &many, &v, &n, &err), CDMPP_EUSAGE);
    cd_buf_free(&b);
    cd_arena_free(&a);
    close_session(&f);
}

/* One token a request: there is no time of a further one, and no speed for a user. */
TEST(one_token) {
    fixture f;
    cd_arena a = {0};
    cd_serving_config c = small(), *v;
    cd_serving_answer one;
    cd_serving_sweep s;
    static cd_serving_rows p, d;
    cd_buf b = {0};
    size_t n;
    open_session(&f);
    c.osl = 1;
    assert_ok(cd_serving_answer_of(&f.s, &c, &one, &p, &d, &err));
    assert_true(isnan(one.r.tpot_s) && isnan(one.r.tpot_p99_s) && isnan(one.tpot_low_s) &&
                isnan(one.per_user) && one.ttft_low_s > 0);
    c.tpot_s = 1;
    const cd_serving_said said = {&f.made.m, &c, {0}, &one, &p, &d, NULL};
    cd_serving_text(&said, 1, &b);
    assert_non_null(strstr(b.p, " | - | - | "));
    assert_ok(cd_serving_errors(&said, 1, &b, &err));
    assert_null(strstr(b.p, "nan"));
    c.decode.count = 2, c.concurrency = 5; /* workers that decode have nothing to do */
    assert_ok(cd_serving_answer_of(&f.s, &c, &one, NULL, NULL, &err));
    assert_true(isfinite(one.r.tokens_s) && one.r.tokens_s > 0 && isfinite(one.r.ttft_s));
    assert_true(isfinite(one.r.waiting) && isfinite(one.r.running) && isfinite(one.r.request_s));
    c.decode.count = 0;
    const cd_serving_lists l = {.tp = "1,2", .concurrency = "1,2,4"};
    assert_ok(cd_serving_combine(&a, &c, &l, &v, &n, &err));
    assert_ok(
        cd_serving_sweep_run(&f.s, v, n, &(cd_serving_sweep_options){.tpot_s = 1e-9}, &s, &err));
    assert_int_equal(s.n_met, 6);
    assert_int_equal(s.n_front, 1);
    for (size_t i = 0; i < s.n; i++)
        assert_true(!s.v[i].front || s.v[i].per_gpu >= s.v[(i + 1) % s.n].per_gpu);
    cd_buf_clear(&b);
    cd_serving_sweep_text(&s, &b);
    assert_null(strstr(b.p, "nan"));
    const char *svg = tmp_path(&dir, "one.svg");
    char *data;
    assert_ok(cd_serving_sweep_picture(&s, svg, &err));
    assert_ok(cd_file_read(svg, 0, &data, &n, &err));
    assert_null(strstr(data, "nan"));
    cd_mem_free(data);
    cd_serving_sweep_free(&s);
    cd_buf_free(&b);
    cd_arena_free(&a);
    close_session(&f);
}

/* Who asks the library need not ask for types himself; a cache is of no type of weights. */
TEST(types_are_checked) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a;
    const cd_device *v100;
    open_session(&f);
    f.made.m.untyped =
        (cdmpp_err){.code = CDMPP_EUNSUPPORTED, .key = "quantization_config.quant_method"};
    assert_status(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err), CDMPP_EUNSUPPORTED);
    assert_string_equal(err.key, "quantization_config.quant_method");
    c.linear = CD_LLM_OP_T_BF16;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    f.made.m.untyped.code = CDMPP_OK;
    for (int t = 0; t < CD_LLM_OP_N_TYPE; t++) {
        const bool cache = t == CD_LLM_OP_T_F32 || t == CD_LLM_OP_T_BF16 || t == CD_LLM_OP_T_F16 ||
                           t == CD_LLM_OP_T_FP8 || t == CD_LLM_OP_T_INT8 || t == CD_LLM_OP_T_NVFP4;
        assert_int_equal(cd_serving_kv_type(t), cache);
    }
    memset(&err, 0, sizeof err);
    c.kv = CD_LLM_OP_T_INT4_WO;
    assert_status(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err), CDMPP_ERANGE);
    assert_string_equal(err.key, "kv_dtype");
    c = small();
    assert_ok(cd_device_table_find(f.made.devices, "v100", &v100, &err));
    assert_true(cd_serving_half(&f.made.m, &c, v100) && !cd_serving_half(&f.made.m, &c, f.made.d));
    c.linear = CD_LLM_OP_T_BF16; /* who asks for it gets an error */
    assert_true(!cd_serving_half(&f.made.m, &c, v100));
    close_session(&f);
}

/* float16 where the table has bfloat16 alone: the same seconds, but nobody measured them. */
TEST(twins) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a, b;
    static cd_serving_rows p, d;
    open_session(&f);
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, &p, &d, &err));
    c.linear = CD_LLM_OP_T_F16;
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, &p, &d, &err));
    assert_close(b.r.tpot_s, a.r.tpot_s, 1e-9, 0);
    assert_int_equal(b.layout.base, CD_LLM_OP_T_F16);
    assert_int_equal(b.layout.kv, CD_LLM_OP_T_F16);
    for (size_t i = 0; i < d.n; i++) {
        assert_int_equal(d.v[i].r.type, CD_LLM_OP_T_F16);
        if (d.v[i].r.kind == CD_LLM_OP_GEMM) assert_int_equal(d.v[i].how, CD_LLM_OP_INTERPOLATED);
    }
    close_session(&f);
}

TEST(runs) {
    static const char text[] = "id,gpu,stack,tp,isl,osl,concurrency,kv-dtype,ttft_s,tpot_s\na,h100,"
                               "vllm-1,1,16,8,2,bfloat16,1,1\nb,h100,vllm-1,2,16,8,2,,,\n";
    const char *file = tmp_put(&dir, "r.csv", text, sizeof text - 1);
    const cd_serving_config usual = small();
    cd_serving_runs r;
    assert_ok(cd_serving_runs_read(file, &usual, NULL, NULL, &r, &err));
    assert_int_equal(r.n, 2);
    assert_int_equal(r.v[0].kv, CD_LLM_OP_T_BF16);
    assert_int_equal(r.v[1].kv, -1);
    assert_close(r.v[1].worker.tp, 2, 0, 0);
    cd_serving_runs_free(&r);
    static const char *const bad[] = {"what\n1\n", "tp\n0\n", "tp\nx\n", "dtype\nfp7\n",
                                      "prompts\nsome\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        file = tmp_put(&dir, "bad.csv", bad[i], strlen(bad[i]));
        assert_true(cd_serving_runs_read(file, &usual, NULL, NULL, &r, &err) != CDMPP_OK);
        cd_serving_runs_free(&r);
    }
}

TEST(printed) {
    fixture f;
    const cd_serving_config c = small();
    cd_serving_config measured = c;
    cd_serving_answer a;
    static cd_serving_rows p, d;
    cd_buf b = {0};
    open_session(&f);
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, &p, &d, &err));
    measured.tpot_s = a.r.tpot_s / 2, measured.ttft_s = a.r.ttft_s;
    cdmpp_err why = {.code = CDMPP_ERANGE, .key = "tp", .msg = "no"};
    const cd_serving_said v[] = {{&f.made.m, &measured, {0}, &a, &p, &d, NULL},
                                 {&f.made.m, &c, {0}, NULL, NULL, NULL, &why}};
    cd_serving_text(v, 2, &b);
    assert_non_null(strstr(b.p, "| attention_decode |"));
    assert_non_null(strstr(b.p, "tp: no"));
    assert_non_null(strstr(b.p, "parameters, vllm-1, prompts of 16 tokens, 8 generated\n"));
    cd_serving_config other = c;
    other.stack = "vllm", other.isl = 8;
    const cd_serving_said unlike[] = {v[0], {&f.made.m, &other, {0}, NULL, NULL, NULL, &why}};
    cd_buf_clear(&b);
    cd_serving_text(unlike, 2, &b); /* what the rows do not have in common stands over none */
    assert_non_null(strstr(b.p, "parameters, 8 generated\n"));
    cd_buf_clear(&b);
    cd_serving_json(v, 2, true, &b);
    assert_non_null(strstr(b.p, "\"refused\":"));
    assert_non_null(strstr(b.p, "\"decode_step\":{\"total_s\":"));
    cd_buf_clear(&b);
    assert_ok(cd_serving_errors(v, 2, &b, &err));
    assert_non_null(strstr(b.p, "| TTFT | 1 | 0.0 | 0.0 | 0.0 | 100.0 |"));
    assert_non_null(strstr(b.p, "| TPOT | 1 | 100.0 | 100.0 | 100.0 | 0.0 |"));
    cd_buf_free(&b);
    FAULT_SWEEP(g, 3) {
        cd_serving_session s = f.s;
        cd_serving_sweep w = {0};
        cd_buf text = {0};
        s.known = NULL, s.made = NULL;
        s.n_known = s.cap_known = s.n_made = s.cap_made = 0;
        g.st = cd_serving_sweep_run(&s, &c, 1, &(cd_serving_sweep_options){0}, &w, &g.err);
        if (!g.st) cd_serving_sweep_text(&w, &text);
        if (!g.st && text.oom) g.st = CDMPP_ENOMEM;
        cd_buf_free(&text);
        cd_serving_sweep_free(&w);
        cd_serving_session_end(&s);
    }
    close_session(&f);
}

TESTS(up, down, layouts, memory, stacks, answers, fitted_on, fitted_on_gpu_and_type,
      inputs_of_mxfp4, fitted_of_the_file, apart, sweeps, one_token, types_are_checked, twins, runs,
      printed)
