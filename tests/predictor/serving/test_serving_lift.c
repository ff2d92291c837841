/* Operators under a load that lasts: what lift lengthens, and on which GPUs. */
#include "learner/llm_op/llm_op_machine.h"
#include "made_serving_session.h"

static double step_s(made_serving *s, const cd_serving_step *step) {
    cd_serving_engine *e;
    double t;
    err = (cdmpp_err){0};
    assert_ok(cd_serving_engine_new(&s->m, &s->l, &s->k, s->c, NULL, &e, &err));
    assert_ok(cd_serving_step_s(e, step, &t, &err));
    cd_serving_engine_free(e);
    return t;
}

/* On a link nothing changes, and in a step that decodes nothing does. */
TEST(all_but_links) {
    made_serving s;
    const cd_serving_step prompt = {.prompts = 2, .isl = 16};
    const cd_serving_step decode = {.decodes = 3, .context = 64};
    cd_serving_engine *e;
    static cd_serving_rows r;
    made_serving_open(&s, path, 2);
    /* two layers have two sums each, the embedding has one; the vocabulary is gathered */
    const double alone = step_s(&s, &prompt), decodes = step_s(&s, &decode),
                 links = 5 * 2e-6 + 2e-6;
    s.k.lift = 2;
    assert_close(step_s(&s, &prompt), 2 * (alone - links) + links, 1e-9, 0);
    assert_close(step_s(&s, &decode), decodes, 1e-12, 0);
    assert_ok(cd_serving_engine_new(&s.m, &s.l, &s.k, s.c, NULL, &e, &err));
    assert_ok(cd_serving_step_rows(e, &prompt, 0.3, &r, &err));
    assert_close(r.total_s, 2 * (alone - links) + links, 1e-9, 0);
    assert_close(r.host_s, alone - links, 1e-9, 0);
    assert_false(r.waits);
    /* in which the host hands out a layer: the GPU waits, and no step is shorter for a faster
     * one */
    s.k.layer_s = 1;
    assert_ok(cd_serving_step_rows(e, &prompt, 0.3, &r, &err));
    assert_true(r.waits);
    assert_close(r.total_s, 2, 1e-9, 0); /* two layers */
    cd_serving_rows_free(&r);
    cd_serving_engine_free(e);
    made_serving_close(&s);
}

/* Nor what stages hand each other, in a node or between two. */
TEST(stages) {
    made_serving s;
    cd_serving_engine *e;
    static cd_serving_rows r;
    const cd_serving_step prompt = {.prompts = 2, .isl = 16};
    made_serving_open(&s, path, 1);
    s.l.pp = 2;
    for (int nodes = 0; nodes < 2; nodes++) {
        double links = 0;
        s.l.node = nodes, s.l.node_bytes_s = nodes * 1e9, s.k.lift = 1;
        const double alone = step_s(&s, &prompt);
        s.k.lift = 2;
        assert_ok(cd_serving_engine_new(&s.m, &s.l, &s.k, s.c, NULL, &e, &err));
        assert_ok(cd_serving_step_rows(e, &prompt, 0.3, &r, &err));
        for (size_t i = 0; i < r.n; i++)
            links += strncmp(r.v[i].name, "hand_over", 9) ? 0 : r.v[i].total_s;
        assert_true(links > (nodes ? 4e-6 : 1e-9)); /* 32 tokens of 128 bytes */
        assert_close(r.total_s, 2 * (alone - links) + links, 1e-9, 0);
        assert_close(step_s(&s, &prompt), r.total_s, 1e-12, 0);
        cd_serving_engine_free(e);
    }
    cd_serving_rows_free(&r);
    made_serving_close(&s);
}

/* As large as where it was fitted on a GPU of that power, smaller on one that has more of it, none
 * where power limits nothing. */
TEST(by_power) {
    made_serving s;
    const cd_serving_step prompt = {.prompts = 2, .isl = 16};
    made_serving_open(&s, path, 1);
    const double alone = step_s(&s, &prompt), power = cd_serving_cost_power(s.c);
    assert_true(power > 0.7 && power < 0.95); /* of an H100 */
    s.k.lift = 2, s.k.lift_power = power;
    assert_close(step_s(&s, &prompt), 2 * alone, 1e-9, 0);
    s.k.lift_power = 0.95; /* fitted on one that power limits less: no more than was fitted */
    assert_close(step_s(&s, &prompt), 2 * alone, 1e-9, 0);
    s.k.lift_power = power - 0.3;
    assert_close(step_s(&s, &prompt), alone * (1 + (1 - power) / (1.3 - power)), 1e-9, 0);
    cd_device rich = *s.d, unknown = *s.d;
    rich.tdp_w = 5000, unknown.tdp_w = CD_DEVICE_UNKNOWN;
    assert_true(cd_llm_op_machine_power(&rich) > 1);
    assert_close(cd_llm_op_machine_power(&unknown), 0, 0, 0);
    s.k.lift_power = 0; /* the same everywhere */
    assert_close(step_s(&s, &prompt), 2 * alone, 1e-9, 0);
    made_serving_close(&s);
}

static double on(made_serving *s, const cd_device *d, const cd_serving_step *step) {
    cd_serving_cost *own = s->c;
    assert_ok(cd_serving_cost_new(&s->none, s->t, d, "vllm-2", "", 0, &s->c, &err));
    const double t = step_s(s, step);
    cd_serving_cost_free(s->c);
    s->c = own;
    return t;
}

/* Power that limits nothing, power that nobody knows, and a GPU that has just less than all. */
TEST(other_powers) {
    made_serving s;
    const cd_serving_step prompt = {.prompts = 2, .isl = 16};
    made_serving_open(&s, path, 1);
    cd_device rich = *s.d, unknown = *s.d;
    rich.tdp_w = 5000, unknown.tdp_w = CD_DEVICE_UNKNOWN;
    const double alone = on(&s, s.d, &prompt);
    s.k.lift = 2, s.k.lift_power = 0.843;
    assert_close(on(&s, &rich, &prompt), alone, 1e-9, 0);
    assert_close(on(&s, &unknown, &prompt), 2 * alone, 1e-9, 0);
    s.k.lift_power = 1; /* of a GPU that has all of its power: the same everywhere */
    assert_close(on(&s, &rich, &prompt), 2 * alone, 1e-9, 0);
    made_serving_close(&s);
}

/* Seven prompts of 29 tokens in all: 29 / 7 x 7 is more than 29 in doubles, and a step of no more
 * than 29 is a graph. */
TEST(tokens_of_a_graph) {
    made_serving s;
    cd_serving_engine *e;
    static cd_serving_rows r;
    const cd_serving_prompt p[] = {{6, 4, 0}, {1, 5, 0}};
    const cd_serving_batch b = {.prompt = p, .n = 2, .rows = 7};
    made_serving_open(&s, path, 1);
    s.k.layer_s = 3, s.k.step_s = 1, s.k.sequence_s = 0.1, s.l.graph = 29;
    assert_ok(cd_serving_engine_new(&s.m, &s.l, &s.k, s.c, NULL, &e, &err));
    assert_ok(cd_serving_batch_rows(e, &b, 0.3, &r, &err));
    assert_close(r.host_s, 1.7, 1e-9, 0);
    cd_serving_engine_free(e);
    s.l.graph = 28;
    assert_ok(cd_serving_engine_new(&s.m, &s.l, &s.k, s.c, NULL, &e, &err));
    assert_ok(cd_serving_batch_rows(e, &b, 0.3, &r, &err));
    assert_close(r.total_s, 1.7 + 2 * 3, 1e-9, 0); /* handed out layer by layer */
    cd_serving_engine_free(e);
    cd_serving_rows_free(&r);
    made_serving_close(&s);
}

/* The constants of the libraries are of an H100: the file says its power. */
TEST(of_the_file) {
    made_serving s;
    cd_serving_stacks k;
    cd_diag diag = {0};
    const cd_serving_stack *one;
    made_serving_open(&s, path, 1);
    err = (cdmpp_err){0};
    assert_ok(cd_serving_stacks_load("configs/serving.yaml", &diag, &k, &err));
    static const char *const name[] = {"trtllm", "vllm", "sglang"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        assert_ok(cd_serving_stack_find(&k, name[i], &one, &err));
        assert_close(one->lift_power, cd_serving_cost_power(s.c), 1e-3, 0);
    }
    cd_serving_stacks_free(&k);
    cd_diag_free(&diag);
    made_serving_close(&s);
}

TESTS(up, down, all_but_links, stages, by_power, other_powers, tokens_of_a_graph, of_the_file)
