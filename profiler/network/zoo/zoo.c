/* The table of built-in networks, and building one by name. */
#include "profiler/network/zoo/zoo.h"

#include <ctype.h>
#include <string.h>

#include "profiler/network/zoo/zoo_internal.h"

typedef struct {
    cd_zoo_entry e;
    cd_zoo_fn build;
    int64_t variant, least; /* least: the smallest size that leaves something */
} row;

/* What other systems call them, where that is not the same letters and digits: OpBench, EOP,
 * TenSet, torchvision, Hugging Face. */
static const struct {
    const char *theirs, *ours;
} also[] = {
    {"mobilenet", "mobilenet-v1"},
    {"mobilenet-v3-large", "mobilenet-v3"},
    {"squeezenet-v1.0", "squeezenet-1.0"},
    {"squeezenet-v1.1", "squeezenet-1.1"},
    {"inception", "inception-v3"},
    {"googlenet", "inception-v1"},
    {"densenet", "densenet-121"},
    {"vgg", "vgg-16"},
    {"nasnetalarge", "nasnet-large"},
    {"nasnet", "nasnet-large"},
    {"resnext-50-32x4d", "resnext-50"},
    {"wide-resnet-50-2", "wide-resnet-50"},
    {"r3d-18", "resnet3d-18"},
    {"gan", "dcgan"},
    {"rcnn", "faster-rcnn"},
    {"fasterrcnn-vgg16", "faster-rcnn"},
    {"yolov5", "yolov5s"},
    {"bert", "bert-base"},
    {"bert-base-uncased", "bert-base"},
    {"bert-large-uncased", "bert-large"},
    {"prajjwal1/bert-tiny", "bert-tiny"},
    {"prajjwal1/bert-medium", "bert-medium"},
    {"roberta", "roberta-base"},
    {"t5", "t5-small"},
    {"vit-b-16", "vit"},
    {"google/vit-base-patch16-224", "vit"},
    {"dense", "matmul"},
};

#define IMAGE    "pixels an edge"
#define WORDS    "words a sequence"
#define ROWS     "rows and columns"
#define OPERATOR "operator"
static const row zoo[] = {
    {{"resnet-18", "cnn", 224, IMAGE}, cd_zoo_resnet, 18, 32},
    {{"resnet-34", "cnn", 224, IMAGE}, cd_zoo_resnet, 34, 32},
    {{"resnet-50", "cnn", 224, IMAGE}, cd_zoo_resnet, 50, 32},
    {{"resnet-101", "cnn", 224, IMAGE}, cd_zoo_resnet, 101, 32},
    {{"resnet-152", "cnn", 224, IMAGE}, cd_zoo_resnet, 152, 32},
    {{"resnext-50", "cnn", 224, IMAGE}, cd_zoo_resnext50, 0, 32},
    {{"wide-resnet-50", "cnn", 224, IMAGE}, cd_zoo_wide_resnet50, 0, 32},
    {{"resnet3d-18", "cnn3d", 112, IMAGE " of 16 frames"}, cd_zoo_resnet3d, 18, 16},
    {{"resnet3d-34", "cnn3d", 112, IMAGE " of 16 frames"}, cd_zoo_resnet3d, 34, 16},
    {{"alexnet", "cnn", 224, IMAGE}, cd_zoo_alexnet, 0, 63},
    {{"vgg-11", "cnn", 224, IMAGE}, cd_zoo_vgg, 11, 32},
    {{"vgg-13", "cnn", 224, IMAGE}, cd_zoo_vgg, 13, 32},
    {{"vgg-16", "cnn", 224, IMAGE}, cd_zoo_vgg, 16, 32},
    {{"vgg-19", "cnn", 224, IMAGE}, cd_zoo_vgg, 19, 32},
    {{"mobilenet-v1", "cnn", 224, IMAGE}, cd_zoo_mobilenet_v1, 0, 32},
    {{"mobilenet-v2", "cnn", 224, IMAGE}, cd_zoo_mobilenet_v2, 0, 32},
    {{"mobilenet-v3", "cnn", 224, IMAGE}, cd_zoo_mobilenet_v3, 1, 32},
    {{"mobilenet-v3-small", "cnn", 224, IMAGE}, cd_zoo_mobilenet_v3, 0, 32},
    {{"squeezenet-1.0", "cnn", 224, IMAGE}, cd_zoo_squeezenet, 0, 32},
    {{"squeezenet-1.1", "cnn", 224, IMAGE}, cd_zoo_squeezenet, 1, 32},
    {{"densenet-121", "cnn", 224, IMAGE}, cd_zoo_densenet, 121, 32},
    {{"densenet-161", "cnn", 224, IMAGE}, cd_zoo_densenet, 161, 32},
    {{"densenet-169", "cnn", 224, IMAGE}, cd_zoo_densenet, 169, 32},
    {{"densenet-201", "cnn", 224, IMAGE}, cd_zoo_densenet, 201, 32},
    {{"inception-v1", "cnn", 224, IMAGE}, cd_zoo_inception_v1, 0, 32},
    {{"inception-v3", "cnn", 299, IMAGE}, cd_zoo_inception_v3, 0, 75},
    {{"efficientnet-b0", "cnn", 224, IMAGE}, cd_zoo_efficientnet_b0, 0, 32},
    {{"nasnet-large", "cnn", 331, IMAGE}, cd_zoo_nasnet_large, 0, 32},
    {{"dpn-68", "cnn", 224, IMAGE}, cd_zoo_dpn68, 0, 32},
    {{"dcgan", "gan", 64, IMAGE ", in sixteens"}, cd_zoo_dcgan, 0, 16},
    {{"yolov2", "cnn", 416, IMAGE ", in thirty-twos"}, cd_zoo_yolov2, 0, 32},
    {{"yolov3", "cnn", 416, IMAGE ", in thirty-twos"}, cd_zoo_yolov3, 0, 32},
    {{"yolov3-tiny", "cnn", 416, IMAGE ", in thirty-twos"}, cd_zoo_yolov3_tiny, 0, 32},
    {{"yolov5n", "cnn", 640, IMAGE ", in thirty-twos"}, cd_zoo_yolov5, 16, 32},
    {{"yolov5s", "cnn", 640, IMAGE ", in thirty-twos"}, cd_zoo_yolov5, 32, 32},
    {{"lstm", "rnn", 128, WORDS}, cd_zoo_recurrent, 4, 1},
    {{"gru", "rnn", 128, WORDS}, cd_zoo_recurrent, 3, 1},
    {{"rnn", "rnn", 128, WORDS}, cd_zoo_recurrent, 1, 1},
    {{"bert-tiny", "transformer", 128, WORDS}, cd_zoo_bert, 128, 1},
    {{"bert-medium", "transformer", 128, WORDS}, cd_zoo_bert, 512, 1},
    {{"bert-base", "transformer", 128, WORDS}, cd_zoo_bert, 768, 1},
    {{"bert-large", "transformer", 128, WORDS}, cd_zoo_bert, 1024, 1},
    {{"roberta-base", "transformer", 128, WORDS}, cd_zoo_roberta, 768, 1},
    {{"t5-small", "transformer", 128, WORDS}, cd_zoo_t5_small, 0, 1},
    {{"gpt2", "transformer", 1024, WORDS}, cd_zoo_gpt2, 0, 1},
    {{"vit", "transformer", 224, IMAGE}, cd_zoo_vit, 0, 16},
    {{"gcn", "gcn", 2708, "vertices"}, cd_zoo_gcn, 0, 1},
    {{"transformer", "transformer", 128, WORDS}, cd_zoo_transformer, 0, 1},
    {{"faster-rcnn", "rcnn", 600, IMAGE}, cd_zoo_faster_rcnn, 0, 32},
    {{"matmul", OPERATOR, 1024, ROWS}, cd_zoo_matmul, 1, 1},
    {{"matmul-matmul-add", OPERATOR, 1024, ROWS}, cd_zoo_matmul, 2, 1},
    {{"conv2d", OPERATOR, 56, IMAGE}, cd_zoo_conv2d, 1, 1},
    {{"depthwise-conv2d", OPERATOR, 56, IMAGE}, cd_zoo_conv2d, 64, 1},
    {{"add", OPERATOR, 1024, ROWS}, cd_zoo_add, 0, 1},
    {{"softmax", OPERATOR, 1024, ROWS}, cd_zoo_rows, 0, 1},
    {{"layer-norm", OPERATOR, 1024, ROWS}, cd_zoo_rows, 1, 1},
};
enum { N_ZOO = sizeof zoo / sizeof *zoo };

size_t cd_zoo_count(void) { return N_ZOO; }
const cd_zoo_entry *cd_zoo_at(size_t i) { return &zoo[i].e; }

/* Letters and digits of both up to '@', without case. */
static bool same_name(const char *a, const char *b) {
    for (;; a++, b++) {
        while (*a && *a != '@' && !isalnum((unsigned char)*a)) a++;
        while (*b && *b != '@' && !isalnum((unsigned char)*b)) b++;
        if (*a == '@') a = "";
        if (*b == '@') b = "";
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) return true;
    }
}

/* The name here of one that other systems use; else the name itself. */
static const char *our_name(const char *name) {
    for (size_t k = 0; k < sizeof also / sizeof *also; k++)
        if (same_name(name, also[k].theirs)) return also[k].ours;
    return name;
}

const cd_zoo_entry *cd_zoo_find(const char *name) {
    for (size_t k = 0; k < N_ZOO; k++)
        if (same_name(our_name(name), zoo[k].e.name)) return &zoo[k].e;
    return NULL;
}

static cdmpp_status find(const char *said, const row **out, cdmpp_err *err) {
    const char *names[N_ZOO], *name = our_name(said);
    for (size_t k = 0; k < N_ZOO; k++) {
        names[k] = zoo[k].e.name;
        if (!same_name(name, names[k])) continue;
        *out = &zoo[k];
        return CDMPP_OK;
    }
    const char *near[6];
    const size_t n = cd_did_you_mean_several(name, names, N_ZOO, near, sizeof near / sizeof *near);
    cd_buf b = {0};
    for (size_t k = 0; k < n; k++)
        cd_buf_putf(&b, "%s%s", !k ? "; did you mean " : k + 1 < n ? ", " : " or ", near[k]);
    const cdmpp_status st =
        CD_FAIL(err, ESCHEMA, "no network \"%.60s\" in the zoo%s%s (cdmpp-replay --list-networks)",
                name, b.p ? b.p : "", n ? "?" : "");
    cd_buf_free(&b);
    return st;
}

static cdmpp_status check(const row *r, const cd_zoo_builder *z, cdmpp_err *err) {
    if (z->batch < 1)
        return CD_FAIL(err, ERANGE, "batch: expected at least 1, found %lld", (long long)z->batch);
    if (z->size < r->least)
        return CD_FAIL(err, ERANGE, "size of %s (%s): expected at least %lld, found %lld",
                       r->e.name, r->e.what, (long long)r->least, (long long)z->size);
    return CDMPP_OK;
}

cdmpp_status cd_zoo_build(const char *name, const cd_zoo_options *o, cd_graph **out,
                          cdmpp_err *err) {
    const row *r = NULL;
    CD_TRY(find(name, &r, err));
    const char *at = strchr(name, '@');
    if (at && r->build != cd_zoo_gcn)
        return CD_FAIL(err, ESCHEMA, "%.60s: a file of edges is for gcn", name);
    if (at && o->size)
        return CD_FAIL(err, ERANGE, "size of %.60s: the vertices are those of its file", name);
    cd_zoo_builder z = {.edges = at ? at + 1 : NULL,
                        .err = err,
                        .batch = o->batch ? o->batch : 1,
                        .size = o->size ? o->size : r->e.size};
    CD_TRY(check(r, &z, err));
    CD_TRY(cd_graph_new(r->e.name, &z.g, err));
    z.g->opset = 17; /* LayerNormalization is 17's; everything else is as in 13 */
    r->build(&z, r->variant);
    if (z.st) cd_graph_free(z.g);
    else *out = z.g;
    return z.st;
}
