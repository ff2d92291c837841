/* Copies of a model: with experts they make their steps together, whole prompts or parts of them,
 * and idle ones take part. */
#include <sys/stat.h>

#include "made_serving_session.h"

/* What a model with 8 experts on two GPUs asks besides. moe_s: of experts, whatever their tokens
 * are; 0: 10 us a token. */
static const char *folder_with_experts_of(double moe_s) {
    static char folder[256];
    cd_buf b = {0};
    (void)mkdir(tmp_path(&dir, "moe"), 0700);
    made_rows(&b);
    (void)tmp_put(&dir, "moe/t.csv", b.p, b.n);
    cd_buf_clear(&b);
    cd_buf_puts(&b, "op,device,stack,m,n,k,num_tokens,hidden_size,inter_size,topk,num_experts,moe_"
                    "ep_size,distribution,num_gpus,message_bytes,latency_s\n");
    for (int t = 1; t <= 2 * MADE_TOKENS; t++) {
        if (t <= MADE_TOKENS)
            cd_buf_putf(
                &b,
                "gemm,h100,vllm-1,%d,8,64,,,,,,,,,,1e-6\ngemm,h100,vllm-1,%d,64,4,,,,,,,,,,%.17g\n",
                t, t, 4e-5 * t);
        for (int ep = 2; ep <= 4; ep *= 2)
            cd_buf_putf(&b, "moe,h100,vllm-1,,,,%d,64,32,2,8,%d,power_law_1.2,,,%.17g\n", t, ep,
                        moe_s > 0 ? moe_s : 1e-5 * t);
        cd_buf_putf(&b,
                    "all_gather,h100,vllm-1,,,,,,,,,,,2,%d,1e-6\nreduce_scatter,h100,vllm-1,,,,,,,,"
                    ",,,2,%d,1e-6\n",
                    128 * t, 128 * t);
    }
    (void)tmp_put(&dir, "moe/moe.csv", b.p, b.n);
    cd_buf_free(&b);
    snprintf(folder, sizeof folder, "%s", tmp_path(&dir, "moe"));
    return folder;
}

static const char *folder_with_experts(void) { return folder_with_experts_of(0); }

/* Copies of a model with experts make their steps together. Three prompts in two copies: one has
 * two of them, the other one waits, and experts see all. Then a copy decodes two sequences, the
 * other one. A prompt of 40 tokens has no room beside another one in a copy that takes 64 a
 * step. */
TEST(copies_together) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a;
    cd_serving_engine *e;
    cd_serving_result r;
    double prompts, decode;
    open_session_of(&f, folder_with_experts());
    c.worker.dp = c.worker.ep = 2;
    f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0, f.made.m.topk = 2,
    f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_ok(
        cd_serving_engine_new(&f.made.m, &a.layout, &f.stacks.v[0], f.made.c, NULL, &e, &err));
    const cd_serving_load load = {.isl = 16, .osl = 2, .concurrency = 3, .requests = 3};
    const cd_serving_load wide = {.isl = 40, .osl = 2, .concurrency = 3, .requests = 3};
    cd_serving_limits limit = {.tokens = 64,
                               .sequences = 8,
                               .cache_tokens = 1000,
                               .prompts = CD_SERVING_WHOLE,
                               .copies = 2};
    const cd_serving_step first = {.prompts = 2, .isl = 16, .others = 16};
    const cd_serving_step next = {.decodes = 2, .context = 17, .others = 1};
    const cd_serving_step both = {.prompts = 1, .isl = 40, .others = 40};
    assert_ok(cd_serving_step_s(e, &first, &prompts, &err));
    assert_ok(cd_serving_step_s(e, &next, &decode, &err));
    assert_ok(cd_serving_simulate(e, &load, &limit, 0, &r, &err));
    assert_close(r.ttft_s, prompts, 1e-9, 0);
    assert_close(r.tpot_s, decode, 1e-9, 0);
    assert_int_equal(r.steps, 2);
    const cd_serving_step third = {
        .prompts = 1, .isl = 40, .decodes = 1, .context = 41, .others = 1};
    double one, two;
    assert_ok(cd_serving_step_s(e, &both, &one, &err));
    assert_ok(cd_serving_step_s(e, &third, &two, &err));
    /* the third comes in the step after */
    assert_ok(cd_serving_simulate(e, &wide, &limit, 0, &r, &err));
    assert_close(r.ttft_s, (one + one + (one + two)) / 3, 1e-9, 0);
    limit.copies = 1; /* one copy alone: each prompt has a step */
    assert_ok(cd_serving_simulate(e, &wide, &limit, 0, &r, &err));
    assert_int_equal(r.steps, 4);
    cd_serving_engine_free(e);
    close_session(&f);
}

static double step_of(cd_serving_engine *e, cd_serving_step s) {
    double out;
    assert_ok(cd_serving_step_s(e, &s, &out, &err));
    return out;
}

static double first_tokens_s(cd_serving_engine *e, double isl, const cd_serving_limits *limit) {
    const cd_serving_load load = {
        .isl = isl, .osl = 1, .concurrency = 4 * limit->copies, .requests = 16 * limit->copies};
    cd_serving_result r;
    assert_ok(cd_serving_simulate(e, &load, limit, 0, &r, &err));
    return r.tokens_s;
}

static double drawn(double mean, double spread, uint64_t seed, uint64_t i) {
    return (double)lround(mean * (1 + spread * (2 * cd_rng_unit(seed, i) - 1)));
}
static double length_of(uint64_t seed, uint64_t i) { return drawn(24, 0.5, seed, 2 * i); }

/* Sequences whose prompts are there already. Two of four end first, and two others come beside
 * those that stay: each copy gets one of them. */
static void copies_of_tokens_alone(cd_serving_engine *e) {
    const cd_serving_limits limit = {.tokens = 24,
                                     .sequences = 8,
                                     .cache_tokens = 1000,
                                     .prompts = CD_SERVING_CHUNKED,
                                     .copies = 2};
    const double osl[] = {2, 2, 3, 3, 2, 2};
    cd_serving_load load = {.isl = 1,
                            .osl = 2.5,
                            .spread = 0.19,
                            .concurrency = 4,
                            .requests = 6,
                            .tokens_alone = true};
    cd_serving_result r;
    for (size_t same = 0; same < 6; load.seed += same < 6)
        for (same = 0;
             same < 6 && fabs(drawn(2.5, 0.19, load.seed, 2 * same + 1) - osl[same]) < 0.5;
             same++) {
        }
    assert_ok(cd_serving_simulate(e, &load, &limit, 0, &r, &err));
    const double four = step_of(e, (cd_serving_step){.decodes = 2, .context = 2, .others = 2});
    const double new =
        step_of(e, (cd_serving_step){.prompts = 1, .decodes = 1, .context = 3, .others = 1}),
                 last = step_of(e, (cd_serving_step){.decodes = 1, .context = 2, .others = 1});
    assert_close(14 / r.tokens_s, four + new + last, 1e-9, 0);
}

/* Prompts that are longer than a step takes: each copy computes a part of one of its own at the
 * same time. One token above the limit changes the throughput little. Of a whole prompt in one copy
 * and a longer part in another one the part counts. A prompt that has ended leaves the queue though
 * one before it has not. */
TEST(copies_in_parts) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a;
    cd_serving_engine *e;
    cd_serving_result r;
    open_session_of(&f, folder_with_experts());
    c.worker.dp = c.worker.ep = 2;
    f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0, f.made.m.topk = 2,
    f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_ok(
        cd_serving_engine_new(&f.made.m, &a.layout, &f.stacks.v[0], f.made.c, NULL, &e, &err));
    cd_serving_limits limit = {.tokens = 24,
                               .sequences = 8,
                               .cache_tokens = 1000,
                               .prompts = CD_SERVING_CHUNKED,
                               .copies = 2};
    const cd_serving_load two = {.isl = 40, .osl = 1, .concurrency = 2, .requests = 2};
    assert_ok(cd_serving_simulate(e, &two, &limit, 0, &r, &err));
    assert_int_equal(r.steps, 2);
    assert_close(r.ttft_s,
                 step_of(e, (cd_serving_step){.part = 24, .others = 24}) +
                     step_of(e, (cd_serving_step){.part = 16, .part_past = 24, .others = 16}),
                 1e-9, 0);
    for (limit.copies = 1; limit.copies < 3; limit.copies++) {
        const double at = first_tokens_s(e, 24, &limit), above = first_tokens_s(e, 25, &limit);
        assert_true(above > 0.8 * at && above < at);
    }
    /* the first request is the longer one, or the second one is */
    for (int longer = 0; longer < 2; longer++) {
        cd_serving_load both = {
            .isl = 24, .osl = 1, .spread = 0.5, .concurrency = 2, .requests = 2};
        limit.copies = 2;
        for (both.seed = 1; !(length_of(both.seed, longer ? 0 : 1) < 20 &&
                              length_of(both.seed, longer ? 1 : 0) > 28);)
            both.seed++;
        const double few = length_of(both.seed, longer ? 0 : 1),
                     many = length_of(both.seed, longer ? 1 : 0);
        const double one = step_of(e, (cd_serving_step){.part = 24, .others = few}),
                     next = step_of(e, (cd_serving_step){.part = many - 24, .part_past = 24});
        assert_ok(cd_serving_simulate(e, &both, &limit, 0, &r, &err));
        assert_int_equal(r.steps, 2);
        assert_close(r.ttft_s, one + next / 2, 1e-9, 0);
    }
    copies_of_tokens_alone(e);
    cd_serving_engine_free(e);
    close_session(&f);
}

/* The roomiest copy ends a prompt of which a part was computed; a long one begins in the other
 * copy, in the 8 tokens that are left there: 20, 16, 8 and 40 tokens are four steps. */
TEST(part_beside_an_end) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_layout l;
    cd_serving_engine *e;
    cd_serving_result r;
    cd_serving_request v[] = {{0, 20, 1, 1}, {0, 16, 1, 2}, {0, 8, 1, 3}, {0, 40, 1, 4}};
    const cd_serving_requests given = {.v = v, .n = 4};
    const cd_serving_load load = {
        .isl = 21, .osl = 1, .concurrency = 4, .requests = 4, .given = &given};
    const cd_serving_limits limit = {.tokens = 16,
                                     .sequences = 8,
                                     .cache_tokens = 1000,
                                     .prompts = CD_SERVING_CHUNKED,
                                     .copies = 2};
    open_session_of(&f, folder_with_experts());
    c.worker.dp = c.worker.ep = 2;
    f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0, f.made.m.topk = 2,
    f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
    assert_ok(cd_serving_engine_of(&f.s, &c, &e, &l, &err));
    assert_ok(cd_serving_simulate(e, &load, &limit, 0, &r, &err));
    assert_int_equal(r.steps, 4);
    close_session(&f);
}

/* Of four copies some have no prompt: those that have one wait for the one with two. */
TEST(copies_without_a_prompt) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a;
    cd_serving_engine *e;
    cd_serving_result r;
    const cd_serving_limits limit = {.tokens = 64,
                                     .sequences = 8,
                                     .cache_tokens = 1000,
                                     .prompts = CD_SERVING_WHOLE,
                                     .copies = 4};
    open_session_of(&f, folder_with_experts());
    c.worker.dp = c.worker.ep = 2;
    f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0, f.made.m.topk = 2,
    f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_ok(
        cd_serving_engine_new(&f.made.m, &a.layout, &f.stacks.v[0], f.made.c, NULL, &e, &err));
    for (int n = 1; n < 8; n++) {
        const double most = n > 4 ? 2 : 1;
        const cd_serving_load load = {.isl = 8, .osl = 2, .concurrency = n, .requests = n};
        assert_ok(cd_serving_simulate(e, &load, &limit, 0, &r, &err));
        assert_close(
            r.ttft_s,
            step_of(e, (cd_serving_step){.prompts = most, .isl = 8, .others = 8 * (n - most)}),
            1e-9, 0);
        assert_close(
            r.tpot_s,
            step_of(e, (cd_serving_step){.decodes = most, .context = 9, .others = n - most}), 1e-9,
            0);
    }
    cd_serving_engine_free(e);
    close_session(&f);
}

/* A step takes as long as its operators, whose times are kept by the tokens of one copy and by
 * those of all: a shared expert beside the others where it decodes. */
TEST(shared_expert_of_copies) {
    fixture f;
    static cd_serving_rows rows;
    cd_serving_config c = small();
    cd_serving_answer a;
    cd_serving_engine *e;
    open_session_of(&f, folder_with_experts());
    f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0, f.made.m.topk = 2,
    f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
    f.made.m.shared_ffn = 4, f.made.m.products = 3;
    c.worker.dp = c.worker.ep = 2;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_ok(
        cd_serving_engine_new(&f.made.m, &a.layout, &f.stacks.v[0], f.made.c, NULL, &e, &err));
    for (int turn = 0; turn < 2; turn++) /* asked for, and known */
        for (double others = 0; others < 12; others++) {
            const cd_serving_step decode = {.decodes = 2, .context = 16, .others = others};
            const cd_serving_step prompt = {.prompts = 1, .isl = 16, .others = others};
            assert_ok(cd_serving_step_rows(e, &decode, 0, &rows, &err));
            assert_close(step_of(e, decode), rows.total_s, 1e-12, 0);
            assert_ok(cd_serving_step_rows(e, &prompt, 0, &rows, &err));
            assert_close(step_of(e, prompt), rows.total_s, 1e-12, 0);
        }
    const double alone = step_of(e, (cd_serving_step){.decodes = 2, .context = 16}),
                 few = step_of(e, (cd_serving_step){.decodes = 2, .context = 16, .others = 4});
    /* the shared expert takes longer: 2 tokens of 40 us against 6 of 10 */
    assert_close(alone, few, 1e-12, 0);
    assert_true(step_of(e, (cd_serving_step){.decodes = 2, .context = 16, .others = 9}) >
                few + 1e-5);
    cd_serving_engine_free(e);
    close_session(&f);
}

/* Collectives over two nodes are two operators each: there are more to keep. */
TEST(copies_of_two_nodes) {
    fixture f;
    static cd_serving_rows rows;
    cd_serving_config c = small();
    cd_serving_answer a;
    cd_serving_engine *e;
    size_t between = 0;
    open_session_of(&f, folder_with_experts());
    f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0, f.made.m.topk = 2,
    f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
    f.made.m.shared_ffn = 4, f.made.m.products = 3;
    c.worker.dp = c.worker.ep = 4, c.node = 2, c.node_gb_s = 100;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    assert_ok(
        cd_serving_engine_new(&f.made.m, &a.layout, &f.stacks.v[0], f.made.c, NULL, &e, &err));
    for (double others = 0; others < 12; others += 3) {
        const cd_serving_step decode = {.decodes = 2, .context = 16, .others = others};
        const cd_serving_step prompt = {.prompts = 1, .isl = 16, .others = others};
        assert_ok(cd_serving_step_rows(e, &decode, 0, &rows, &err));
        assert_close(step_of(e, decode), rows.total_s, 1e-12, 0);
        assert_ok(cd_serving_step_rows(e, &prompt, 0, &rows, &err));
        assert_close(step_of(e, prompt), rows.total_s, 1e-12, 0);
    }
    for (size_t i = 0; i < rows.n; i++) between += !strcmp(rows.v[i].name, "between_nodes");
    assert_int_equal(between, 2);
    cd_serving_engine_free(e);
    close_session(&f);
}

/* experts: tp of a model with experts; 0: one without. */
static void open_lifted(fixture *f, double experts) {
    open_session_of(f, experts > 0 ? folder_with_experts() : path);
    f->stacks.v[0].lift = 2;
    if (!(experts > 0)) return;
    f->made.m.experts = 8, f->made.m.sparse_layers = 2, f->made.m.dense_layers = 0,
    f->made.m.topk = 2, f->made.m.expert_ffn = 32, f->made.m.skew = 1.2;
    f->made.m.shared_ffn = 4 * experts, f->made.m.products = 3;
}

/* One session after another answers what each answers alone, and as its table has it. */
static void as_alone(const cd_serving_config *c, size_t n, double experts) {
    static cd_serving_rows rows;
    const cd_serving_step step[] = {{.decodes = 2, .context = 16, .others = experts > 0 ? 3 : 0},
                                    {.prompts = 1, .isl = 16, .others = experts > 0 ? 7 : 0},
                                    {.prompts = 1, .isl = 8, .decodes = 2, .context = 16}};
    fixture all, one;
    open_lifted(&all, experts);
    for (size_t i = 0; i < 2 * n; i++) {
        cd_serving_engine *e, *alone;
        cd_serving_layout l;
        open_lifted(&one, experts);
        assert_ok(cd_serving_engine_of(&all.s, &c[i % n], &e, &l, &err));
        assert_ok(cd_serving_engine_of(&one.s, &c[i % n], &alone, &l, &err));
        for (size_t k = 0; k < sizeof step / sizeof *step; k++) {
            assert_close(step_of(e, step[k]), step_of(alone, step[k]), 0, 0);
            assert_ok(cd_serving_step_rows(e, &step[k], 0, &rows, &err));
            assert_close(step_of(e, step[k]), rows.total_s, 1e-12, 0);
        }
        close_session(&one);
    }
    cd_serving_rows_free(&rows);
    close_session(&all);
}

/* Engines share what they have in common, and nothing else: other numbers of copies and stages, of
 * GPUs in a node, other rates between nodes, other caches. */
TEST(shared_sums) {
    cd_serving_config c[6];
    for (size_t i = 0; i < 4; i++) c[i] = small(), c[i].node = 2, c[i].node_gb_s = 100;
    for (size_t i = 0; i < 4; i++) c[i].worker.dp = c[i].worker.ep = i ? 2 : 4;
    c[2].worker.pp = 2, c[3].node_gb_s = 50;
    as_alone(c, 4, 1);
    /* with copies there is no sum behind the shared expert */
    for (size_t i = 0; i < 4; i++)
        c[i].worker.tp = 2, c[i].worker.dp = i % 2 ? 1 : 2, c[i].worker.ep = 2 * c[i].worker.dp;
    as_alone(c, 4, 2);
    for (size_t i = 0; i < 6; i++)
        c[i] = small(), c[i].worker.tp = 2, c[i].node = 1, c[i].node_gb_s = 100;
    c[0].node = c[0].node_gb_s = 0, c[1].node = c[4].node = c[5].node = 2, c[3].node_gb_s = 50,
    c[4].worker.tp = c[5].worker.tp = 1, c[4].worker.pp = c[5].worker.pp = 2, c[5].worker.dp = 2;
    as_alone(c, 6, 0);
    fixture f;
    cd_serving_engine *e, *other;
    cd_serving_layout l;
    double t;
    const cd_serving_step decode = {.decodes = 2, .context = 16};
    open_session(&f);
    assert_ok(cd_serving_engine_of(&f.s, &c[0], &e, &l, &err));
    assert_true(step_of(e, decode) > 0);
    c[0].kv = CD_LLM_OP_T_FP8;
    assert_ok(cd_serving_engine_of(&f.s, &c[0], &other, &l, &err));
    assert_status(cd_serving_step_s(other, &decode, &t, &err), CDMPP_EMODEL); /* no table has it */
    close_session(&f);
}

/* Of a shared expert and of experts that take as long, to the last bit, one counts: in the sum and
 * in the table. */
TEST(beside_as_long) {
    fixture f;
    static cd_serving_rows rows;
    cd_serving_config c = small();
    const cd_serving_step decode = {.decodes = 2, .context = 16, .others = 2};
    double shared = 0, sum;
    c.worker.dp = c.worker.ep = 2;
    for (int turn = 0; turn < 2; turn++) {
        cd_serving_layout l;
        cd_serving_engine *e;
        open_session_of(&f, folder_with_experts_of(shared / 2));
        f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0,
        f.made.m.topk = 2, f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
        f.made.m.shared_ffn = 4, f.made.m.products = 3;
        assert_ok(cd_serving_engine_of(&f.s, &c, &e, &l, &err));
        assert_ok(cd_serving_step_rows(e, &decode, 0, &rows, &err));
        shared = 0, sum = rows.host_s;
        for (size_t i = 0; i < rows.n; i++) {
            if (!strncmp(rows.v[i].name, "shared_", 7)) shared += rows.v[i].total_s;
            if (!rows.v[i].hidden) sum += rows.v[i].total_s;
        }
        assert_close(step_of(e, decode), rows.total_s, 1e-12, 0);
        assert_close(sum, rows.total_s, 1e-12, 0);
        close_session(&f);
    }
    cd_serving_rows_free(&rows);
}

static double tokens_of_experts(const cd_serving_rows *r) {
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].r.kind == CD_LLM_OP_MOE) return cd_llm_op_get(&r->v[i].r, CD_LLM_OP_P_TOKENS);
    return NAN;
}

/* Of two copies those count that have tokens: one of one request in flight, both of two; of few
 * that come by themselves one. */
TEST(idle_copies) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer one, two, rare, dense;
    static cd_serving_rows p, d;
    open_session_of(&f, folder_with_experts());
    c.worker.dp = c.worker.ep = 2, c.concurrency = 1, c.osl = 128;
    f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0, f.made.m.topk = 2,
    f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
    assert_ok(cd_serving_answer_of(&f.s, &c, &one, &p, &d, &err));
    assert_close(tokens_of_experts(&d), 1, 0, 0);
    assert_close(tokens_of_experts(&p), 16, 0, 0);
    c.concurrency = 2;
    assert_ok(cd_serving_answer_of(&f.s, &c, &two, &p, &d, &err));
    assert_close(tokens_of_experts(&d), 2, 0, 0);
    assert_close(two.r.tpot_s - one.r.tpot_s, 2 * 1e-5, 1e-9, 0); /* two layers, a token more */
    c.concurrency = 0, c.rate = 1;
    assert_ok(cd_serving_answer_of(&f.s, &c, &rare, &p, &d, &err));
    assert_close(rare.r.tpot_s, one.r.tpot_s, 1e-6, 0);
    c.rate = 1e5;
    assert_ok(cd_serving_answer_of(&f.s, &c, &dense, &p, &d, &err));
    assert_true(dense.r.tpot_s > rare.r.tpot_s);
    close_session(&f);
}

/* A layout with the same experts has asked: only its limit of graphs is another. */
TEST(experts_are_asked_once) {
    fixture f;
    cd_serving_config c = small();
    cd_serving_answer a, b;
    size_t first, second, fresh;
    open_session_of(&f, folder_with_experts());
    c.worker.dp = c.worker.ep = 2;
    f.made.m.experts = 8, f.made.m.sparse_layers = 2, f.made.m.dense_layers = 0, f.made.m.topk = 2,
    f.made.m.expert_ffn = 32, f.made.m.skew = 1.2;
    assert_ok(cd_serving_answer_of(&f.s, &c, &a, NULL, NULL, &err));
    cd_serving_session_counts(&f.s, &first, &fresh);
    c.graph_tokens = 7;
    assert_ok(cd_serving_answer_of(&f.s, &c, &b, NULL, NULL, &err));
    cd_serving_session_counts(&f.s, &second, &fresh);
    assert_true(first > 0);
    assert_int_equal(second, first);
    assert_close(a.r.tpot_s, b.r.tpot_s, 0, 0);
    close_session(&f);
}

TESTS(up, down, copies_together, copies_in_parts, part_beside_an_end, copies_without_a_prompt,
      shared_expert_of_copies, shared_sums, beside_as_long, copies_of_two_nodes, idle_copies,
      experts_are_asked_once)
