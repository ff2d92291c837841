/* Any bytes as a program that makes tensors and adds operators: whatever operands and attributes
 * they get, the graph keeps its invariants. */
#include <stdint.h>

#include "graph_check.h"
#include "profiler/network/graph/graph_call_internal.h"

typedef struct bytes {
    const uint8_t *p, *end;
} bytes;

static unsigned next(bytes *b) { return b->p < b->end ? *b->p++ : 0; }

/* Small sizes mostly; some that overflow where they are multiplied. */
static int64_t size(bytes *b) {
    static const int64_t some[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   5,
                                   8,
                                   16,
                                   224,
                                   65536,
                                   (int64_t)1 << 20,
                                   (int64_t)1 << 33,
                                   ((int64_t)1 << 47) + 1};
    return some[next(b) % (sizeof some / sizeof *some)];
}

static int64_t number(bytes *b) {
    static const int64_t some[] = {0,         1,         2,         3,
                                   4,         7,         -1,        -2,
                                   -3,        64,        -65536,    (int64_t)1 << 40,
                                   INT32_MIN, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    return some[next(b) % (sizeof some / sizeof *some)];
}

static double real(bytes *b) {
    static const double some[] = {
        0, 1, 2, 0.5, -1, 1.5, 3, 1e-9, 1e30, -1e308, (double)INFINITY, (double)NAN};
    return some[next(b) % (sizeof some / sizeof *some)];
}

static cd_graph_shape shape(bytes *b, unsigned most) {
    cd_graph_shape s = {.rank = next(b) % (most + 1)};
    for (uint32_t d = 0; d < s.rank && d < CD_GRAPH_MAX_RANK; d++) s.dim[d] = size(b);
    return s;
}

static const cd_dtype types[] = {CD_F32,
                                 CD_I64,
                                 CD_BOOL,
                                 CD_I32,
                                 CD_DTYPE(CD_T_INT, 8),
                                 CD_DTYPE(CD_T_UINT, 64),
                                 CD_DTYPE(CD_T_FLOAT, 16)};

static void make_tensor(cd_graph *g, bytes *b) {
    uint32_t t;
    int64_t v[16];
    double f[16];
    const unsigned how = next(b) % 4;
    const cd_dtype type = types[next(b) % 7];
    cd_graph_shape s = shape(b, how < 2 ? CD_GRAPH_MAX_RANK + 1 : 2);
    if (how == 0) cd_graph_input(g, "x", type, &s, &t, NULL);
    if (how == 1) cd_graph_weight(g, "w", type, &s, &t, NULL);
    if (how < 2) return;
    for (uint32_t d = 0; d < s.rank; d++) s.dim[d] %= 5;
    for (int i = 0; i < 16; i++) v[i] = how == 2 ? number(b) : 0, f[i] = how == 3 ? real(b) : 0;
    for (int i = 0; i < 16; i++) v[i] = type == CD_BOOL ? v[i] & 1 : v[i];
    if (how == 2)
        cd_graph_constant(g, "c", cd_expr_dtype_is_float(type) ? CD_I64 : type, &s, v, NULL, &t,
                          NULL);
    else cd_graph_constant(g, "f", CD_F32, &s, NULL, f, &t, NULL);
}

static cd_graph_attr attribute(bytes *b, int64_t *ints, double *reals) {
    static const char *const name[] = {"axis",           "axes",      "keepdims",  "kernel_shape",
                                       "strides",        "pads",      "dilations", "group",
                                       "auto_pad",       "ceil_mode", "perm",      "starts",
                                       "ends",           "steps",     "split",     "shape",
                                       "value",          "dtype",     "to",        "equation",
                                       "mode",           "scales",    "blocksize", "batch_dims",
                                       "num_groups",     "size",      "direction", "hidden_size",
                                       "layout",         "transA",    "transB",    "output_shape",
                                       "output_padding", "k",         "allowzero", "num_outputs"};
    static const char *const text[] = {"SAME_UPPER",    "SAME_LOWER",     "VALID",  "NOTSET",
                                       "bidirectional", "reverse",        "linear", "cubic",
                                       "ij,jk->ik",     "...a,...b->...", "ii->i",  "ab",
                                       ",->",           "a...->...a"};
    cd_graph_attr a = {
        .name = name[next(b) % (sizeof name / sizeof *name)], .ints = ints, .floats = reals};
    a.kind = (cd_graph_attr_kind)(next(b) % 5);
    a.n = next(b) % 9;
    a.s = text[next(b) % (sizeof text / sizeof *text)];
    for (uint32_t i = 0; i < 9; i++) ints[i] = number(b), reals[i] = real(b);
    a.i = ints[0];
    a.f = reals[0];
    return a;
}

static void add_node(cd_graph *g, bytes *b) {
    uint32_t in[8], out[8];
    int64_t ints[4][9];
    double reals[4][9];
    cd_graph_attr attr[4];
    size_t rows = 0;
    while (cd_graph_rule_at(rows)) rows++;
    const cd_graph_rule *r = cd_graph_rule_at((next(b) << 8 | next(b)) % rows);
    const uint32_t n_in = ((uint32_t)r->min_in + next(b) % 3) % 9, n_out = 1 + next(b) % 4,
                   n_attr = next(b) % 5;
    for (uint32_t i = 0; i < n_in; i++) {
        const unsigned k = next(b);
        in[i] = g->n_tensor && k % 16 ? g->n_tensor - 1 - k / 16 % g->n_tensor : CD_GRAPH_NONE;
    }
    for (uint32_t i = 0; i < n_attr; i++) attr[i] = attribute(b, ints[i], reals[i]);
    cdmpp_err err = {0};
    const cdmpp_status st = cd_graph_add(g, "n", r->op, in, n_in, attr, n_attr, out, n_out, &err);
    if (st && (!err.msg[0] || err.code != st)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_) {
    bytes b = {data, data + size_};
    cd_buf out = {0};
    cd_graph *g;
    if (cd_graph_new("fuzz", &g, NULL)) return 0;
    g->opset = 7 + (int)(next(&b) % 17);
    for (int i = 0; b.p < b.end && i < 200; i++) {
        if (next(&b) % 3 == 0) make_tensor(g, &b);
        else add_node(g, &b);
    }
    graph_check(g);
    cd_graph_print_json(&out, g);
    cd_buf_free(&out);
    cd_graph_free(g);
    return 0;
}
