/* What is guessed or cannot be taken into account is told: inputs without weights, attributes,
 * newer opsets, types without programs. A part that is not known does not take the rest with it. */
#include <stdlib.h>

#include "profiler/network/workload/workload.h"
#include "read_onnx.h"

static bool noted(const cd_graph *g, const char *words) {
    for (uint32_t i = 0; i < g->n_note; i++)
        if (strstr(g->note[i], words)) return true;
    for (uint32_t i = 0; i < g->n_note; i++) print_error("note: %s\n", g->note[i]);
    return false;
}

TEST(attention) {
    onnx r = must("attention_bare", NULL);
    assert_true(r.g->n_input == 3 && noted(r.g, "taken for data: q, k, v"));
    cd_graph_free(r.g);
    r = must("attention_flat", NULL);
    assert_true(tensor(r.g, "k")->is_input && tensor(r.g, "v")->is_input &&
                tensor(r.g, "w")->is_weight);
    assert_true(noted(r.g, "taken for weights: w; for data: q, k, v"));
    cd_graph_free(r.g);
    /* what is said is no guess */
    r = must("attention_flat",
             &(cd_onnx_options){.input = (const char *const[]){"q", "k"}, .n_input = 2});
    assert_true(r.g->n_note == 0 && tensor(r.g, "v")->is_weight);
    cd_graph_free(r.g);
    r = must("stripped", NULL);
    assert_true(noted(r.g, "taken for weights: table, q, bias, scale, token; for data: ids"));
    cd_graph_free(r.g);
    cd_graph *g; /* names that say the same as the graph: no guess */
    const cd_onnx_miss *miss;
    uint32_t n_miss;
    cdmpp_err err = {0};
    assert_ok(
        cd_onnx_read("examples/resnet18.onnx", &(cd_onnx_options){0}, &g, &miss, &n_miss, &err));
    assert_true(g->n_input == 1 && g->n_note == 0);
    cd_graph_free(g);
    r = must("whole",
             &(cd_onnx_options){.batch = 1, .dim = (const char *const[]){"height=16"}, .n_dim = 1});
    assert_int_equal(r.g->n_note, 0);
    cd_graph_free(r.g);
}

TEST(opsets) {
    static const char *const names[] = {"newer_25", "newer_99"};
    for (int k = 0; k < 2; k++) {
        onnx r = must(names[k], NULL);
        has_shape(r.g, "y", "1,4,8,8");
        has_shape(r.g, "z", "1,4,8,8");
        missed(&r, 0, "not_yet", "unknown operator NotYet");
        assert_int_equal(r.n_miss, 1);
        assert_int_equal(r.g->n_note, k); /* 25 is known, 99 is not */
        if (k) assert_true(noted(r.g, "opset 99"));
        cd_graph_free(r.g);
    }
}

TEST(types) {
    onnx r = must("types", NULL);
    cd_workload *w;
    cdmpp_err err = {0};
    char text[32];
    assert_string_equal(cd_expr_dtype_format(tensor(r.g, "f8")->dtype, text, sizeof text),
                        "float8_e4m3fn");
    assert_string_equal(cd_expr_dtype_format(tensor(r.g, "i4")->dtype, text, sizeof text), "int4");
    assert_int_equal(cd_graph_shape_bytes(&tensor(r.g, "i4")->shape, tensor(r.g, "i4")->dtype), 32);
    assert_int_equal(cd_graph_shape_bytes(&tensor(r.g, "f8")->shape, tensor(r.g, "f8")->dtype), 64);
    missed(&r, 0, "of_texts", "texts");
    assert_int_equal(r.n_miss, 1);
    assert_ok(cd_graph_result(r.g, (uint32_t)(tensor(r.g, "q") - r.g->tensor), &err));
    assert_ok(cd_workload_build(r.g, NULL, &w, &err));
    assert_int_equal(w->n_unsupported, 3);
    assert_string_equal(w->unsupported[0].node, "of_f8");
    assert_non_null(strstr(w->unsupported[0].reason, "float8_e4m3fn"));
    assert_string_equal(w->unsupported[1].node, "of_i4");
    assert_non_null(strstr(w->unsupported[1].reason, "int4"));
    assert_string_equal(w->unsupported[2].node, "to_f8");
    assert_int_equal(w->n_task, 1); /* the plain product */
    cd_workload_free(w);
    cd_graph_free(r.g);
}

TEST(attributes) {
    onnx r = must("attributes", NULL);
    assert_true(noted(r.g, "Relu has an attribute \"colour\"") &&
                noted(r.g, "Conv has an attribute \"cudnn_algo\""));
    assert_int_equal(r.g->n_note, 2);
    missed(&r, 0, "d2s", "DCR CRD");
    assert_true(tensor(r.g, "q")->dtype == CD_DTYPE(CD_T_INT, 8) &&
                tensor(r.g, "dq")->dtype == CD_DTYPE(CD_T_FLOAT, 16));
    cd_graph_free(r.g);
    refuse("kernel_misfit", NULL, CDMPP_ESCHEMA, "kernel_shape");
}

TEST(activations) {
    onnx r = must("cells", NULL);
    cd_workload *w;
    cdmpp_err err = {0};
    assert_ok(cd_workload_build(r.g, NULL, &w, &err));
    assert_int_equal(w->n_unsupported, 1);
    assert_string_equal(w->unsupported[0].node, "own");
    assert_non_null(strstr(w->unsupported[0].reason, "activations"));
    cd_workload_free(w);
    cd_graph_free(r.g);
}

/* A weight is there once for each form in which it is read, whoever reads it and however often. */
TEST(weights) {
    onnx r = must("shared_weights", NULL);
    cd_workload *w;
    cdmpp_err err = {0};
    int64_t bytes = 0;
    assert_ok(cd_workload_build(r.g, NULL, &w, &err));
    bool *had = calloc(w->n_buffer + 1, sizeof *had);
    for (uint32_t g = 0; g < w->n_group; g++)
        for (uint32_t k = 0; k < w->group[g].n_read; k++) {
            const cd_workload_buffer *b = &w->buffer[w->group[g].read[k]];
            if (b->is_const && !had[w->group[g].read[k]])
                bytes += cd_graph_shape_bytes(&b->shape, b->dtype);
            had[w->group[g].read[k]] = true;
        }
    free(had);
    /* 64x64 as it is and turned; the GRU's weights, its recurrent ones in two parts; a state of
     * zeros, and what two gates make of it */
    assert_int_equal(bytes, 2 * 64 * 64 * 4 + (12 * 4 + 8 * 4 + 4 * 4) * 4 + (4 + 8) * 4);
    cd_workload_free(w);
    cd_graph_free(r.g);
}

TEST(batch_axis) {
    onnx r = must("time_first", NULL);
    assert_int_equal(r.g->batch_axis, 1);
    cd_graph_free(r.g);
    r = must("time_first", &(cd_onnx_options){.batch = 7});
    has_shape(r.g, "x", "20,7,6");
    has_shape(r.g, "h", "1,7,8");
    has_shape(r.g, "y", "20,7,8");
    cd_graph_free(r.g);
    r = must("turned", &(cd_onnx_options){.batch = 7});
    has_shape(r.g, "a", "7,6,20");
    has_shape(r.g, "b", "6,20,7");
    has_shape(r.g, "ya", "20,1,7,8");
    has_shape(r.g, "yb", "20,1,7,8");
    cd_graph_free(r.g);
    /* turned before the layer */
    r = must("recurrent",
             &(cd_onnx_options){.batch = 3, .dim = (const char *const[]){"t=9"}, .n_dim = 1});
    assert_int_equal(r.g->batch_axis, 0);
    cd_graph_free(r.g);
}

TESTS(NULL, NULL, attention, opsets, types, attributes, activations, weights, batch_axis)
