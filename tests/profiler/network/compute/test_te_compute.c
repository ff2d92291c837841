/* Values: what the tasks of small networks compute, against PyTorch 1.13's
 * (tests/profiler/data/compute_values.txt, made by compute_values.py), with
 * both layouts, fused and one operator at a time. */
#include <stdio.h>

#include "check.h"
#include "made_values.h"
#include "teeval.h"

/* Values of result k of a case: "NAME K N" and N numbers. */
static double *expected(const char *name, uint32_t k, size_t *n) {
    FILE *f = fopen("tests/profiler/data/compute_values.txt", "r");
    char word[64];
    unsigned at;
    assert_non_null(f);
    while (fscanf(f, "%63s %u %zu", word, &at, n) == 3) {
        double *v = malloc((*n + 1) * sizeof *v);
        for (size_t i = 0; i < *n; i++) assert_int_equal(fscanf(f, "%lf", &v[i]), 1);
        if (!strcmp(word, name) && at == k) {
            fclose(f);
            return v;
        }
        free(v);
    }
    fail_msg("no values of %s %u", name, k);
    return NULL;
}

static void check_case(const char *name, const cd_graph *g, const cd_workload_options *o) {
    cdmpp_err err = {0};
    cd_workload *w;
    double *out[8];
    assert_ok(cd_workload_build(g, o, &w, &err));
    for (uint32_t i = 0; i < w->n_unsupported; i++)
        print_error("%s: %s: %s\n", name, w->unsupported[i].op, w->unsupported[i].reason);
    assert_int_equal(w->n_unsupported, 0);
    const char *why = we_run(w, mg_content, out);
    if (why) fail_msg("%s: %s", name, why);
    for (uint32_t k = 0; k < g->n_output; k++) {
        size_t n;
        double *want = expected(name, k, &n);
        assert_int_equal(n, cd_graph_shape_elements(&w->buffer[w->output[k]].shape));
        for (size_t i = 0; i < n; i++)
            if (!(fabs(out[k][i] - want[i]) <= 2e-5 * (1 + fabs(want[i]))))
                fail_msg("%s result %u element %zu (layout %d, depth %u): %g, not %g", name, k, i,
                         (int)o->layout, o->max_depth, out[k][i], want[i]);
        free(want);
        free(out[k]);
    }
    cd_workload_free(w);
}

TEST(test_values) {
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int way = 0; way < 4; way++) {
            mg m = mg_new(cases[c].name, cases[c].opset);
            const cd_workload_options o = {.layout = way & 1 ? CD_WORKLOAD_LAYOUT_NHWC
                                                             : CD_WORKLOAD_LAYOUT_NCHW,
                                           .max_depth = way & 2 ? 1 : 256,
                                           .weights = true};
            cases[c].make(&m);
            check_case(cases[c].name, m.g, &o);
            cd_graph_free(m.g);
        }
}

/* Elements by positions, and a tensor of one number: against the standard's own words. */
TEST(test_gather_elements) {
    enum { ROWS = 3, COLUMNS = 4, PICKS = 2 };
    for (int way = 0; way < 4; way++) {
        mg m = mg_new("picked", 18);
        cdmpp_err err = {0};
        cd_workload *w;
        double *out[8];
        const uint32_t x = mg_in(&m, 2, ROWS, COLUMNS), pick = mg_w(&m, 2, ROWS, PICKS);
        static const int64_t at[ROWS * PICKS] = {3, 0, 1, 1, 2, 0};
        uint32_t at_t, y;
        assert_ok(cd_graph_constant(m.g, "at", CD_I64, &(cd_graph_shape){2, {ROWS, PICKS}}, at,
                                    NULL, &at_t, &err));
        y = mg_op(&m, "GatherElements", "axis=1", 2, x, at_t);
        mg_end(&m, mg_op(&m, "Mul", "", 2, y, pick));
        assert_ok(
            cd_workload_build(m.g,
                              &(cd_workload_options){.layout = way & 1 ? CD_WORKLOAD_LAYOUT_NHWC
                                                                       : CD_WORKLOAD_LAYOUT_NCHW,
                                                     .max_depth = way & 2 ? 1 : 256,
                                                     .weights = true},
                              &w, &err));
        assert_int_equal(w->n_unsupported, 0);
        const char *why = we_run(w, mg_content, out);
        if (why) fail_msg("%s", why);
        for (int i = 0; i < ROWS * PICKS; i++)
            assert_close(out[0][i],
                         mg_content(m.g, x, i / PICKS * COLUMNS + at[i]) * mg_content(m.g, pick, i),
                         1e-6, 1e-6);
        free(out[0]);
        cd_workload_free(w);
        cd_graph_free(m.g);
    }
}

/* n inputs of one row of 2, joined or combined by one operator. */
static cd_graph *of_many(const char *op, uint32_t n) {
    cdmpp_err err = {0};
    mg m = mg_new("many", 13);
    uint32_t *in = test_malloc(n * sizeof *in), y;
    for (uint32_t k = 0; k < n; k++) in[k] = mg_in(&m, 2, 1, 2);
    const cd_graph_attr axis = {.name = "axis", .kind = CD_GRAPH_ATTR_INT, .i = 0};
    assert_ok(cd_graph_add(m.g, "all", op, in, n, &axis, !strcmp(op, "Concat"), &y, 1, &err));
    mg_end(&m, y);
    test_free(in);
    return m.g;
}

/* Element i of the result: numbers are multiples of 1/8, so that sums are exact. */
static double combined(const cd_graph *g, const char *op, uint32_t n, int64_t i) {
    if (!strcmp(op, "Concat")) return mg_content(g, g->input[i / 2], i % 2);
    double v = mg_content(g, g->input[0], i);
    for (uint32_t k = 1; k < n; k++) {
        const double x = mg_content(g, g->input[k], i);
        v = !strcmp(op, "Sum") ? v + x : !strcmp(op, "Max") ? fmax(v, x) : fmin(v, x);
    }
    return v;
}

/* Operators of more operands than a program reads are made in pieces: the same values. */
TEST(test_many_operands) {
    static const char *const op[] = {"Concat", "Sum", "Max", "Min"};
    static const uint32_t n[] = {65, 256, 257, 513, 1000};
    cdmpp_err err = {0};
    for (size_t o = 0; o < sizeof op / sizeof *op; o++)
        for (size_t k = 0; k < sizeof n / sizeof *n; k++) {
            cd_graph *g = of_many(op[o], n[k]);
            const cd_workload_options all = {.weights = true};
            cd_workload *w;
            double *out;
            assert_ok(cd_workload_build(g, &all, &w, &err));
            assert_null(we_run(w, mg_content, &out));
            const int64_t elements = cd_graph_shape_elements(&w->buffer[w->output[0]].shape);
            assert_int_equal(elements, o ? 2 : 2 * n[k]);
            for (int64_t i = 0; i < elements; i++)
                if (!(fabs(out[i] - combined(g, op[o], n[k], i)) <= 0))
                    fail_msg("%s of %u, element %lld: %g", op[o], n[k], (long long)i, out[i]);
            free(out);
            cd_workload_free(w);
            cd_graph_free(g);
        }
}

TESTS(NULL, NULL, test_values, test_many_operands, test_gather_elements)
