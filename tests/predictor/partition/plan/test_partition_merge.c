/* Which convolutions of a network are merged: the best of all ways by the cost model's times;
 * nothing where that is no better; run, values are those of the network as it is. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "made_net.h"
/* all ways to part a set; networks with sets that nobody chose */
#include "predictor/partition/plan/partition_load.c"
#include "scratch.h"

static const char *model[] = {"tests/golden/model_v1.cdmpp"};
static const char *as[] = {"zen5-avx2"};
static const char *target[] = {"llvm"};
static const char *path;
static cd_partition_options o;
static cd_partition p;
static cdmpp_err err;

static uint32_t conv(mg *m, uint32_t x, int in, int out, int k) {
    return mg_op(m, "Relu", "", 1,
                 mg_op(m, "Conv", k == 3 ? "pads:1,1,1,1" : "", 3, x, mg_w(m, 4, out, in, k, k),
                       mg_w(m, 1, out)));
}

/* Three 1x1 that different operators read, then two that are joined at once. */
static int up(void **state) {
    (void)state;
    mg m = mg_new("branches", 13);
    cd_buf b = {0};
    const uint32_t x = mg_in(&m, 4, 1, 16, 14, 14), a = conv(&m, x, 16, 8, 1),
                   c = conv(&m, conv(&m, x, 16, 8, 1), 8, 8, 3),
                   d = conv(&m, conv(&m, x, 16, 8, 1), 8, 8, 3);
    const uint32_t y = mg_op(&m, "Concat", "axis=1", 3, a, c, d);
    mg_end(&m, mg_op(&m, "Concat", "axis=1", 2, conv(&m, y, 24, 8, 1), conv(&m, y, 24, 8, 3)));
    path = strdup(scratch("branches.onnx"));
    cdmpp_status st = path && setenv("XDG_CACHE_HOME", scratch("cache"), 1) == 0
                          ? cd_onnx_write(m.g, &b, &err)
                          : CDMPP_ENOMEM;
    if (!st) st = cd_file_write(path, b.p, b.n, &err);
    cd_buf_free(&b);
    cd_graph_free(m.g);
    return st != CDMPP_OK;
}

static int down(void **state) {
    (void)state;
    free((void *)(uintptr_t)path);
    return 0;
}

static void open_with(int stages, const char *devices, bool run) {
    o = cd_partition_defaults();
    o.network = path, o.devices = devices, o.trials = 2, o.stages = stages, o.run = run,
    o.ignore_load = true, o.no_split = true;
    o.budget_s = run ? 0.02 : 0;
    o.cost_model = (cd_texts){.v = model, .n = 1}, o.as = (cd_texts){.v = as, .n = 1},
    o.target = (cd_texts){.v = target, .n = 1};
    p = (cd_partition){0};
    assert_ok(cd_partition_open(&o, &p, &err));
}

TEST(test_ways) {
    static const uint32_t bell[] = {1, 1, 2, 5, 15, 52};
    for (uint32_t n = 1; n <= CD_MERGE_MOST; n++) {
        uint32_t part[CD_MERGE_MOST] = {0}, ways = 1;
        while (next_way(part, n)) ways++;
        assert_int_equal(ways, bell[n]);
    }
    cd_merge_set out[CD_MERGE_MOST];
    const cd_merge_set all = {5, {10, 11, 12, 13, 14}};
    assert_int_equal(sets_of(&all, (uint32_t[]){0, 1, 0, 2, 1}, out), 2);
    assert_true(out[0].n == 2 && out[0].node[0] == 10 && out[0].node[1] == 12 && out[1].n == 2 &&
                out[1].node[0] == 11 && out[1].node[1] == 14);
    assert_int_equal(sets_of(&all, (uint32_t[]){0, 1, 2, 3, 4}, out), 0);
}

/* Costs of operators one after the other add up, so sets that are decided one by one are the best
 * together. */
TEST(test_best) {
    open_with(CD_PARTITION_STAGES_MERGE, "cpu0", false);
    assert_ok(cd_partition_compute(&p, &err));
    merger m = {.p = &p, .g = p.loaded.source};
    assert_ok(cd_merge_find(m.g, &m.own, &m.found, &m.n_found, &err));
    assert_int_equal(m.n_found, 2);
    assert_true(m.found[0].n == 3 && m.found[1].n == 2);
    double best = p.plain.stages_s, worst = 0;
    uint32_t part[2][CD_MERGE_MOST] = {{0}};
    do {
        part[1][0] = part[1][1] = 0;
        do {
            cd_merge_set set[4];
            cd_partition_merged c;
            uint32_t n = sets_of(&m.found[0], part[0], set);
            n += sets_of(&m.found[1], part[1], set + n);
            assert_ok(open_merged(&m, set, n, &c, &err));
            assert_true(fabs(c.in.stages_s - c.in.alone_s) <= 1e-12);
            best = fmin(best, c.in.stages_s), worst = fmax(worst, c.in.stages_s);
            cd_partition_merged_free(&c);
        } while (next_way(part[1], 2));
    } while (next_way(part[0], 3));
    assert_true(worst > best * 1.001);
    assert_close(p.merged.has ? p.merged.in.stages_s : p.plain.stages_s, best, 1e-12, 0);
    assert_int_equal(p.merged.n_tried, 5);
    cd_arena_free(&m.own);
    cd_partition_free(&p);
}

/* Stages side by side are the alternative: merging is never predicted to be worse than what they do
 * without it. */
TEST(test_both) {
    double without = 0;
    for (int how = CD_PARTITION_STAGES_PARALLEL; how <= CD_PARTITION_STAGES_BOTH; how++) {
        open_with(how, "cpu0,cpu1", false);
        assert_ok(cd_partition_compute(&p, &err));
        if (how == CD_PARTITION_STAGES_PARALLEL) without = p.plain.stages_s;
        const bool beside = how == CD_PARTITION_STAGES_PARALLEL || how == CD_PARTITION_STAGES_BOTH;
        double alone = 0;
        for (uint32_t i = 0; i < p.plain.net->n_op; i++) alone += p.plain.solo_s[i];
        /* one after the other waits for nobody, however wide stages are */
        assert_close(p.plain.alone_s, alone, 1e-12, 0);
        assert_close(p.plain.stages_s, beside ? without : p.plain.alone_s, 1e-12, 0);
        assert_true(!p.merged.has || (p.merged.n_set && p.merged.in.stages_s < p.plain.stages_s));
        assert_true(how >= CD_PARTITION_STAGES_MERGE || !p.merged.has);
        cd_partition_free(&p);
    }
}

/* Sets that are merged whatever that costs: what runs is the merged network, and its results are
 * those of the other. */
TEST(test_run) {
    cd_affinity here;
    cd_affinity_get(&here);
    if (!(here.mask[0] & 1)) skip(); /* cpu0 is not allowed here */
    open_with(CD_PARTITION_STAGES_MERGE, "cpu0", true);
    assert_ok(cd_partition_make(&p, &err));
    o.stages = CD_PARTITION_STAGES_SEQUENTIAL;
    assert_ok(cd_partition_stages(&p, &err));
    merger m = {.p = &p, .g = p.loaded.source};
    assert_ok(learn_all(&m, &p.plain, &err));
    assert_ok(cd_merge_find(m.g, &m.own, &m.kept, &m.n_kept, &err));
    assert_ok(keep(&m, &err));
    assert_int_equal(p.merged.n_set, 2);
    uint32_t merged = 0;
    for (uint32_t k = 0; k < p.merged.net.n_op; k++) merged += p.merged.in.is_merged[k];
    assert_int_equal(merged, 2);
    assert_true(p.merged.set[0].work == 1 && p.merged.set[1].work == 1.8);
    assert_true(p.merged.set[0].parts_s > 0 && p.merged.set[0].merged_s > 0);
    assert_ok(cd_partition_stage_run(&p, &err));
    assert_true(p.plain.staged.done && p.merged.in.staged.done &&
                p.merged.in.staged.n == p.plain.n_stage);
    assert_true(p.merged.in.staged.seconds > 0);
    assert_true(p.merged.max_error <= 1e-5);
    cd_arena_free(&m.own);
    cd_partition_free(&p);
}

/* The file of the merged network is read again as the same tasks. */
TEST(test_saved) {
    open_with(CD_PARTITION_STAGES_MERGE, "cpu0", false);
    assert_ok(cd_partition_make(&p, &err));
    o.stages = CD_PARTITION_STAGES_SEQUENTIAL;
    assert_ok(cd_partition_stages(&p, &err));
    merger m = {.p = &p, .g = p.loaded.source};
    assert_ok(cd_merge_find(m.g, &m.own, &m.kept, &m.n_kept, &err));
    assert_ok(keep(&m, &err));
    assert_ok(save(&p.merged, scratch("merged.onnx"), &err));
    cd_network_loaded again;
    o.network = scratch("merged.onnx");
    assert_ok(cd_partition_network(&p, NULL, &again, &err));
    assert_int_equal(again.work->n_group, p.merged.loaded.work->n_group);
    for (uint32_t k = 0; k < again.work->n_group; k++)
        assert_string_equal(again.graph->node[k].key, p.merged.loaded.graph->node[k].key);
    cd_network_load_free(&again);
    cd_arena_free(&m.own);
    cd_partition_free(&p);
}

TESTS(up, down, test_ways, test_best, test_both, test_run, test_saved)
