/* Test networks. An operator is one row of a table: what it is in ONNX, what it can read, and its
 * operands beside the first one. Sizes are such that convolutions do little work for each element
 * that they write: else the noise of their time hides what fusion saves. */
#include <stdio.h>
#include <string.h>

#include "profiler/detect/detect_internal.h"
#include "profiler/network/onnx/onnx.h"

enum { IMAGE = 1, MATRIX = 2, ANY = 3 };
typedef enum operands { NONE, SAME, CONV, CONVT, DEPTHWISE, NORM, LIMITS, PRODUCT } operands;

static const struct {
    const char *name, *op;
    int reads;
    operands more;
    bool window; /* 3 x 3, the size is kept */
} row[] = {
    {"Conv", "Conv", IMAGE, CONV, false},
    {"DepthwiseConv", "Conv", IMAGE, DEPTHWISE, true},
    {"ConvTranspose", "ConvTranspose", IMAGE, CONVT, false},
    {"BatchNormalization", "BatchNormalization", IMAGE, NORM, false},
    {"Relu", "Relu", ANY, NONE, false},
    {"Clip", "Clip", ANY, LIMITS, false},
    {"Sigmoid", "Sigmoid", ANY, NONE, false},
    {"Tanh", "Tanh", ANY, NONE, false},
    {"HardSwish", "HardSwish", ANY, NONE, false},
    {"LeakyRelu", "LeakyRelu", ANY, NONE, false},
    {"Elu", "Elu", ANY, NONE, false},
    {"Exp", "Exp", ANY, NONE, false},
    {"Add", "Add", ANY, SAME, false},
    {"Sub", "Sub", ANY, SAME, false},
    {"Mul", "Mul", ANY, SAME, false},
    {"Concat", "Concat", ANY, SAME, false},
    {"MaxPool", "MaxPool", IMAGE, NONE, true},
    {"AveragePool", "AveragePool", IMAGE, NONE, true},
    {"GlobalAveragePool", "GlobalAveragePool", IMAGE, NONE, false},
    {"Softmax", "Softmax", ANY, NONE, false},
    {"Gemm", "Gemm", MATRIX, PRODUCT, false},
    {"MatMul", "MatMul", MATRIX, PRODUCT, false},
};
enum { N_ROW = sizeof row / sizeof *row, ROW_WIDTH = 16 };

const char *cd_detect_operator_names(void) {
    static char all[512];
    if (!*all)
        for (size_t k = 0, n = 0; k < N_ROW; k++)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", k ? " " : "", row[k].name);
    return all;
}

const char *cd_detect_operator_name(uint32_t op) { return row[op].name; }

uint32_t cd_detect_operator_find(cd_str name) {
    for (uint32_t k = 0; k < N_ROW; k++)
        if (cd_str_is(name, row[k].name)) return k;
    return CD_GRAPH_NONE;
}

bool cd_detect_shape(const cd_detect_options *o, const uint32_t *op, uint32_t n,
                     cd_graph_shape *out) {
    const int64_t channels = o->channels ? o->channels : 4, size = o->size ? o->size : 256,
                  all = channels * size * size;
    int reads = ANY;
    for (uint32_t k = 0; k < n; k++) reads &= row[op[k]].reads;
    if (reads & IMAGE) *out = (cd_graph_shape){4, {1, channels, size, size}};
    else *out = (cd_graph_shape){2, {all < ROW_WIDTH ? 1 : all / ROW_WIDTH, ROW_WIDTH}};
    return reads != 0;
}

/* ---- one operator ---- */

typedef struct maker {
    cd_graph *g;
    cdmpp_err *err;
    cdmpp_status st;
    uint32_t n; /* names so far */
} maker;

static uint32_t weight(maker *m, cd_graph_shape s) {
    uint32_t t = CD_GRAPH_NONE;
    char name[16];
    snprintf(name, sizeof name, "w%u", m->n++);
    if (!m->st) m->st = cd_graph_weight(m->g, name, CD_F32, &s, &t, m->err);
    return t;
}

static uint32_t input(maker *m, cd_graph_shape s) {
    uint32_t t = CD_GRAPH_NONE;
    char name[16];
    snprintf(name, sizeof name, "x%u", m->n++);
    if (!m->st) m->st = cd_graph_input(m->g, name, CD_F32, &s, &t, m->err);
    return t;
}

static uint32_t scalar(maker *m, double v) {
    uint32_t t = CD_GRAPH_NONE;
    char name[16];
    const cd_graph_shape s = {0, {0}};
    snprintf(name, sizeof name, "c%u", m->n++);
    if (!m->st) m->st = cd_graph_constant(m->g, name, CD_F32, &s, NULL, &v, &t, m->err);
    return t;
}

/* Operands behind the first one, to in[1 ..]; returns how many operands there are. */
static uint32_t put_operands(maker *m, operands more, cd_graph_shape x, uint32_t *in) {
    const int64_t c = x.dim[1];
    switch (more) {
    case NONE: return 1;
    case SAME: in[1] = input(m, x); return 2;
    case CONV:
    case CONVT: in[1] = weight(m, (cd_graph_shape){4, {c, c, 1, 1}}); return 2;
    case DEPTHWISE: in[1] = weight(m, (cd_graph_shape){4, {c, 1, 3, 3}}); return 2;
    case PRODUCT: in[1] = weight(m, (cd_graph_shape){2, {c, c}}); return 2;
    case LIMITS: in[1] = scalar(m, 0), in[2] = scalar(m, 6); return 3;
    case NORM:
        for (int k = 1; k < 5; k++) in[k] = weight(m, (cd_graph_shape){1, {c}});
        return 5;
    }
    return 1;
}

static uint32_t put_operator(maker *m, uint32_t op, uint32_t x) {
    static const int64_t three[] = {3, 3}, one[] = {1, 1, 1, 1};
    uint32_t in[5] = {x}, n_attr = 0, out = CD_GRAPH_NONE;
    cd_graph_attr attr[4];
    char name[32];
    if (m->st) return CD_GRAPH_NONE;
    const cd_graph_shape s = m->g->tensor[x].shape;
    const uint32_t n = put_operands(m, row[op].more, s, in);
    if (row[op].window) {
        attr[n_attr++] = (cd_graph_attr){
            .name = "kernel_shape", .kind = CD_GRAPH_ATTR_INTS, .n = 2, .ints = three};
        attr[n_attr++] =
            (cd_graph_attr){.name = "pads", .kind = CD_GRAPH_ATTR_INTS, .n = 4, .ints = one};
    }
    if (row[op].more == DEPTHWISE)
        attr[n_attr++] = (cd_graph_attr){.name = "group", .kind = CD_GRAPH_ATTR_INT, .i = s.dim[1]};
    if (!strcmp(row[op].op, "Concat") || !strcmp(row[op].op, "Softmax"))
        attr[n_attr++] = (cd_graph_attr){.name = "axis", .kind = CD_GRAPH_ATTR_INT, .i = 1};
    snprintf(name, sizeof name, "%s%u", row[op].name, m->n++);
    if (!m->st) m->st = cd_graph_add(m->g, name, row[op].op, in, n, attr, n_attr, &out, 1, m->err);
    return out;
}

static uint32_t put_part(maker *m, const cd_detect_part *p, uint32_t x) {
    const uint32_t from = x;
    uint32_t out = CD_GRAPH_NONE;
    for (uint32_t k = 0; k < p->n; k++) x = put_operator(m, p->op[k], x);
    if (!p->branch || m->st) return x;
    const uint32_t in[2] = {from, x};
    m->st = cd_graph_add(m->g, "join", "Add", in, 2, NULL, 0, &out, 1, m->err);
    return out;
}

/* ---- a network ---- */

static void put_part_name(cd_buf *b, const cd_detect_part *p, const char *sep) {
    for (uint32_t k = 0; p && k < p->n; k++)
        cd_buf_putf(b, "%s%s", k ? "+" : sep, row[p->op[k]].name);
    if (p && p->branch) cd_buf_puts(b, "|Add");
}

static cdmpp_status build(const char *name, const cd_detect_part *first,
                          const cd_detect_part *second, const cd_graph_shape *in, cd_graph **out,
                          cdmpp_err *err) {
    maker m = {.err = err};
    CD_TRY(cd_graph_new(name, &m.g, err));
    m.g->opset = CD_ONNX_OPSET;
    uint32_t x = input(&m, *in);
    if (!m.st) x = put_part(&m, first, x);
    if (!m.st && second) x = put_part(&m, second, x);
    if (!m.st) m.st = cd_graph_result(m.g, x, err);
    if (m.st) cd_graph_free(m.g);
    else *out = m.g;
    return m.st;
}

static cdmpp_status get(cd_detect *d, cd_buf *b, const cd_detect_part *first,
                        const cd_detect_part *second, const cd_graph_shape *in, uint32_t *out,
                        cdmpp_err *err) {
    put_part_name(b, first, "");
    put_part_name(b, second, first->n ? "+" : "");
    for (uint32_t k = 0; k < in->rank; k++)
        cd_buf_putf(b, "%c%lld", k ? 'x' : ' ', (long long)in->dim[k]);
    cd_buf_put(b, "", 1);
    if (b->oom) return CD_FAIL(err, ENOMEM, "test networks");
    for (uint32_t k = 0; k < d->n_network; k++)
        if (!strcmp(d->network[k].name, b->p)) {
            *out = k;
            return CDMPP_OK;
        }
    if (CD_GROW_IN(&d->arena, d->network, d->n_network, d->cap_network))
        return CD_FAIL(err, ENOMEM, "test networks");
    cd_detect_network *n = &d->network[d->n_network];
    *n = (cd_detect_network){.id = d->n_network,
                             .name = cd_str_dup(&d->arena, (cd_str){b->p, b->n - 1})};
    if (!n->name) return CD_FAIL(err, ENOMEM, "test networks");
    CD_TRY(build(n->name, first, second, in, &n->graph, err));
    *out = d->n_network++;
    return CDMPP_OK;
}

cdmpp_status cd_detect_network_get(cd_detect *d, const cd_detect_part *first,
                                   const cd_detect_part *second, const cd_graph_shape *in,
                                   uint32_t *out, cdmpp_err *err) {
    cd_buf b = {0};
    const cdmpp_status st = get(d, &b, first, second, in, out, err);
    cd_buf_free(&b);
    return st;
}

const cd_graph_shape *cd_detect_network_result(const cd_detect *d, uint32_t network) {
    const cd_graph *g = d->network[network].graph;
    return &g->tensor[g->output[0]].shape;
}
