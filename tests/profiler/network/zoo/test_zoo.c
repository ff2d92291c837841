/* The zoo's operation counts, parameters and shapes against published numbers. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "profiler/network/zoo/zoo.h"

static cd_graph *build(const char *name, int64_t batch, int64_t size) {
    const cd_zoo_options o = {.batch = batch, .size = size};
    cdmpp_err err = {0};
    cd_graph *g = NULL;
    const cdmpp_status st = cd_zoo_build(name, &o, &g, &err);
    if (st) fail_msg("%s: %s %s", name, err.key, err.msg);
    return g;
}

/* Multiply-adds of convolutions and matrix products, and elements of weights. */
static double multiply_adds(const cd_graph *g) {
    double n = 0;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const char *op = g->node[k].op;
        if (!strcmp(op, "Conv") || !strcmp(op, "Gemm") || !strcmp(op, "MatMul") ||
            !strcmp(op, "ConvTranspose"))
            n += g->node[k].flop / 2;
    }
    return n;
}

static double parameters(const cd_graph *g) {
    double n = 0;
    for (uint32_t k = 0; k < g->n_tensor; k++)
        if (g->tensor[k].is_weight && g->tensor[k].node == CD_GRAPH_NONE)
            n += (double)cd_graph_shape_elements(&g->tensor[k].shape);
    return n;
}

/* Running means and variances of batch normalisation are in ours, not in published counts: two of
 * its four vectors. */
static double statistics(const cd_graph *g) {
    double n = 0;
    for (uint32_t k = 0; k < g->n_node; k++)
        if (!strcmp(g->node[k].op, "BatchNormalization"))
            n += 2 * (double)cd_graph_shape_elements(&g->tensor[g->node[k].in[1]].shape);
    return n;
}

/* torchvision's documented GFLOPS (multiply-adds) and parameters of its models, without auxiliary
 * classifiers. */
static const struct {
    const char *name;
    double gmac, params;
} known[] = {
    {"resnet-18", 1.814, 11689512},         {"resnet-34", 3.664, 21797672},
    {"resnet-50", 4.089, 25557032},         {"resnet-101", 7.801, 44549160},
    {"resnet-152", 11.514, 60192808},       {"resnext-50", 4.230, 25028904},
    {"wide-resnet-50", 11.398, 68883240},   {"alexnet", 0.714, 61100840},
    {"vgg-11", 7.609, 132863336},           {"vgg-13", 11.308, 133047848},
    {"vgg-16", 15.470, 138357544},          {"vgg-19", 19.632, 143667240},
    {"mobilenet-v2", 0.301, 3504872},       {"mobilenet-v3", 0.217, 5483032},
    {"mobilenet-v3-small", 0.057, 2542856}, {"squeezenet-1.0", 0.819, 1248424},
    {"squeezenet-1.1", 0.349, 1235496},     {"densenet-121", 2.834, 7978856},
    {"densenet-161", 7.728, 28681000},      {"densenet-169", 3.360, 14149480},
    {"densenet-201", 4.291, 20013928},      {"inception-v1", 1.498, 6624904},
    {"inception-v3", 5.713, 23834568},      {"efficientnet-b0", 0.386, 5288548},
    {"resnet3d-18", 40.697, 33371472},
};

/* Exact numbers of parameters that the implementations which people use print:
 * pretrained-models.pytorch (NASNet), timm (DPN), Keras (YOLOv2: 50,962,889 trainable, YOLOv3:
 * 61,949,149), Ultralytics 6 (YOLOv5 before it is fused), Hugging Face (T5; RoBERTa of 514
 * positions: here are 128). */
static const struct {
    const char *name;
    double gmac_low, gmac_high, params;
} printed[] = {
    {"nasnet-large", 23.7, 24.0, 88753150}, /* 23.9 G */
    {"dpn-68", 2.3, 2.4, 12611602},         /* 2.35 G */
    {"yolov2", 14.7, 14.8, 50962889},       /* 29.5 BFLOPs */
    {"yolov3", 32.8, 33.0, 61949149},       /* 65.9 BFLOPs */
    {"yolov5n", 2.2, 2.3, 1872157},         /* 4.5 GFLOPs */
    {"yolov5s", 8.1, 8.4, 7235389},         /* 16.5 GFLOPs */
    {"t5-small", 7.9, 8.2, 60506624},       {"roberta-base", 11.1, 11.3, 124645632.0 - 386 * 768},
    {"faster-rcnn", 147, 151, 137078239}, /* VGG-16 for the 20 classes of VOC */
};

TEST(test_printed) {
    for (size_t k = 0; k < sizeof printed / sizeof *printed; k++) {
        cd_graph *g = build(printed[k].name, 1, 0);
        const double gmac = multiply_adds(g) * 1e-9, params = parameters(g) - statistics(g);
        if (gmac < printed[k].gmac_low || gmac > printed[k].gmac_high ||
            !(params == printed[k].params))
            fail_msg("%s: %.4f G multiply-adds, %.0f parameters, known %.0f", printed[k].name, gmac,
                     params, printed[k].params);
        cd_graph_free(g);
    }
}

TEST(test_known) {
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        cd_graph *g = build(known[k].name, 1, 0);
        const double gmac = multiply_adds(g) * 1e-9, params = parameters(g) - statistics(g);
        if (!(gmac > known[k].gmac * 0.995 - 0.0006 && gmac < known[k].gmac * 1.005 + 0.0006))
            fail_msg("%s: %.4f G multiply-adds, known %.3f", known[k].name, gmac, known[k].gmac);
        if (!(params == known[k].params))
            fail_msg("%s: %.0f parameters, known %.0f", known[k].name, params, known[k].params);
        cd_graph_free(g);
    }
}

/* Counts from the papers' own formulas where torchvision has no such model. */
TEST(test_counted) {
    static const struct {
        const char *name;
        double gmac_low, gmac_high, params_low, params_high;
    } row[] = {
        {"mobilenet-v1", 0.565, 0.575, 4.2e6, 4.3e6}, /* 569 M, 4.2 M */
        {"vit", 16.8, 17.7, 86.4e6, 86.7e6},          /* 17.6 G, 86.6 M */
        /* 124 M and the untied word matrix of 38.6 M */
        {"gpt2", 140, 150, 160e6, 166e6},
        {"bert-tiny", 0.05, 0.06, 4.2e6, 4.5e6}, /* 4.4 M */
        /* 22.5 GFLOP at 128 words, 110 M with 512 positions */
        {"bert-base", 11.1, 11.3, 108e6, 110e6},
        {"bert-large", 39.3, 39.8, 333e6, 336e6},
        {"yolov3-tiny", 2.7, 2.85, 8.8e6, 8.9e6}, /* 5.56 BFLOPs, 8.86 M */
        {"gcn", 0.2, 0.3, 22e3, 24e3},            /* 23,063 weights */
        /* 65 M in the paper, of the same shape: 44.1 M of layers and 37,000 words of 512 */
        {"transformer", 8.2, 8.5, 62.5e6, 63.5e6},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        cd_graph *g = build(row[k].name, 1, 0);
        const double gmac = multiply_adds(g) * 1e-9, params = parameters(g) - statistics(g);
        if (gmac < row[k].gmac_low || gmac > row[k].gmac_high || params < row[k].params_low ||
            params > row[k].params_high)
            fail_msg("%s: %.4f G multiply-adds, %.0f parameters", row[k].name, gmac, params);
        cd_graph_free(g);
    }
}

/* All networks: known shapes everywhere, results exist; batch multiplies the work, size changes
 * it. */
TEST(test_batch_and_size) {
    for (size_t k = 0; k < cd_zoo_count(); k++) {
        const cd_zoo_entry *e = cd_zoo_at(k);
        cd_graph *a = build(e->name, 1, 0), *b = build(e->name, 3, 0),
                 *c = build(e->name, 1, e->size * 2);
        const double one = cd_graph_flop(a), three = cd_graph_flop(b);
        assert_true(one > 0 && a->n_output >= 1 && a->n_input >= 1);
        /* Products of weights alone do not grow. */
        if (!(three > one * 2.9 && three < one * 3.0001))
            fail_msg("%s: %g of 3, %g of 1", e->name, three, one);
        assert_true(cd_graph_flop(c) > one * 1.5);
        assert_true(a->tensor[a->output[0]].shape.dim[0] == 1 || !strcmp(e->family, "rnn"));
        cd_graph_free(a);
        cd_graph_free(b);
        cd_graph_free(c);
    }
}

/* Over the last dimension: of scores of words, the words that are looked at. */
TEST(test_softmax) {
    cd_graph *g = build("bert-tiny", 1, 0);
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_node; k++) {
        if (strcmp(g->node[k].op, "Softmax") != 0) continue;
        /* the axis, from the front, and what the graph made of it */
        assert_int_equal(g->node[k].n_attr, 2);
        assert_int_equal(cd_graph_node_attr(&g->node[k], "axis")->i, 3);
        assert_true(cd_graph_node_attr(&g->node[k], "axes")->n == 1 &&
                    cd_graph_node_attr(&g->node[k], "axes")->ints[0] == 3);
        n++;
    }
    assert_int_equal(n, 2); /* layers */
    cd_graph_free(g);
}

TEST(test_names) {
    cdmpp_err err = {0};
    cd_graph *g;
    assert_ok(cd_zoo_build("ResNet_18", &(cd_zoo_options){0}, &g, &err));
    assert_string_equal(g->name, "resnet-18");
    cd_graph_free(g);
    static const char *const theirs[][2] = {{"nasnetalarge", "nasnet-large"},
                                            {"SqueezeNet_v1.1", "squeezenet-1.1"},
                                            {"mobilenet", "mobilenet-v1"},
                                            {"bert", "bert-base"},
                                            {"GAN", "dcgan"},
                                            {"rcnn", "faster-rcnn"},
                                            {"prajjwal1/bert-tiny", "bert-tiny"},
                                            {"vit_b_16", "vit"}};
    for (size_t k = 0; k < sizeof theirs / sizeof *theirs; k++) {
        g = build(theirs[k][0], 1, strcmp(theirs[k][1], "nasnet-large") ? 64 : 96);
        assert_string_equal(g->name, theirs[k][1]);
        cd_graph_free(g);
    }
    assert_int_equal(cd_zoo_build("resnt-50", &(cd_zoo_options){0}, &g, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "did you mean resnet-50"));
    assert_int_equal(cd_zoo_build("resnt", &(cd_zoo_options){0}, &g, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "did you mean resnet-18, resnet-34, resnet-50"));
    err = (cdmpp_err){0};
    assert_int_equal(cd_zoo_build("vgg-16", &(cd_zoo_options){.batch = -1}, &g, &err),
                     CDMPP_ERANGE);
    assert_int_equal(cd_zoo_build("vgg-16", &(cd_zoo_options){.size = 8}, &g, &err), CDMPP_ERANGE);
    assert_int_equal(cd_zoo_build("vgg-16", &(cd_zoo_options){.batch = INT64_MAX / 2}, &g, &err),
                     CDMPP_ERANGE);
}

TESTS(NULL, NULL, test_known, test_printed, test_counted, test_batch_and_size, test_softmax,
      test_names)
