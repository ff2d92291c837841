/* What a file may declare has a limit (graph_limits.h): a few bytes that ask for 2^40 of something
 * are answered or refused at once, in little memory. */
#include <sys/resource.h>
#include <time.h>

#include "profiler/network/fusion/fusion.h"
#include "profiler/network/workload/workload.h"
#include "read_onnx.h"

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_gib(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1048576;
}

/* Contents that are declared are not made: the shape is known, and nothing else. */
TEST(declared_sizes) {
    static const char *const names[] = {"huge_range", "huge_fill", "huge_expand",
                                        "huge_tile",  "huge_pad",  "huge_onehot"};
    const double begin = seconds();
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        onnx r;
        const cdmpp_status st = open_with(&r, names[k], NULL);
        if (st) assert_int_equal(st, CDMPP_ERANGE);
        for (uint32_t i = 0; !st && i < r.g->n_tensor; i++)
            if (cd_graph_shape_elements(&r.g->tensor[i].shape) > CD_GRAPH_MAX_VALUE)
                assert_true(!r.g->tensor[i].value && !r.g->tensor[i].fvalue);
        cd_graph_free(r.g);
    }
    assert_true(seconds() - begin < 1);
}

TEST(declared_nodes) {
    const double begin = seconds();
    refuse("tower", NULL, CDMPP_ERANGE, "functions, branches and bodies|131072");
    assert_true(seconds() - begin < 5);
    assert_true(peak_gib() < 1);
}

/* The sum of what is read to know contents has a limit, too: the shapes behind it are known all the
 * same. */
TEST(declared_work) {
    const double begin = seconds();
    onnx r = must("long_sums", NULL);
    assert_true(r.g->n_step <= CD_GRAPH_MAX_STEPS);
    assert_true(tensor(r.g, "s0")->value && tensor(r.g, "s0")->value[0] == 65536);
    assert_true(!tensor(r.g, "s3999")->value && tensor(r.g, "s3999")->shape.rank == 0);
    has_shape(r.g, "y", "4");
    cd_graph_free(r.g);
    assert_true(seconds() - begin < 5);
}

/* A layer of more steps than are taken apart is one that has no program; nobody needs the memory of
 * a million cells. */
TEST(declared_steps) {
    cdmpp_err err = {0};
    cd_graph *g;
    cd_workload *w;
    uint32_t in[3], out;
    const cd_graph_shape x = {3, {CD_FUSE_MAX_STEPS + 1, 1, 2}}, weight = {3, {1, 8, 2}};
    assert_ok(cd_graph_new("long", &g, &err));
    assert_ok(cd_graph_input(g, "x", CD_F32, &x, &in[0], &err));
    assert_ok(cd_graph_weight(g, "w", CD_F32, &weight, &in[1], &err));
    assert_ok(cd_graph_weight(g, "r", CD_F32, &weight, &in[2], &err));
    assert_ok(cd_graph_add(g, "cells", "LSTM", in, 3, NULL, 0, &out, 1, &err));
    assert_ok(cd_graph_result(g, out, &err));
    assert_ok(cd_workload_build(g, NULL, &w, &err));
    assert_int_equal(w->n_unsupported, 1);
    assert_non_null(strstr(w->unsupported[0].reason, "16384 steps"));
    assert_int_equal(CD_FUSE_MAX_STEPS, 16384); /* the text says it */
    cd_workload_free(w);
    cd_graph_free(g);
}

TESTS(NULL, NULL, declared_sizes, declared_nodes, declared_work, declared_steps)
