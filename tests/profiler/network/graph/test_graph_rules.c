/* Operators in one line each: what comes out of them (types, shapes, operations, resolved
 * attributes), or the whole error. The numbers come from ONNX's text. A line differs from a
 * neighbour in one thing only, so that each condition of a rule is seen from both sides. */
#include "check.h"
#include "made_graph.h"

typedef struct {
    /* op: "Softmax@12" is that of opset 12, else it is 20. in: "f32[1,3,8,8] -" types and shapes, -
     * none; "i64=1,2" are known numbers, "f32=.5]" is one without dimensions */
    const char *op, *attrs, *in;
    const char *want; /* "float32[1,2] int64[1]; 12 flop; axis=1", or the message */
} row;

static void read_operand(gm *m, char *p, uint32_t *t) {
    const size_t n = strcspn(p, "[=");
    char name[16];
    cd_dtype type;
    cd_graph_shape s = {0};
    int64_t v[16];
    double f[16];
    uint32_t count = 0;
    *t = CD_GRAPH_NONE;
    if (*p == '-') return;
    snprintf(name, sizeof name, "%s%.*s",
             *p == 'f'   ? "float"
             : *p == 'u' ? "uint"
             : *p == 'i' ? "int"
                         : "b",
             (int)n - 1, p + 1);
    assert_true(cd_expr_dtype_parse(name, strlen(name), &type));
    char *at = p + n + 1;
    for (char *end; *at && *at != ']'; at = end + (*end == ',')) {
        f[count] = strtod(at, &end);
        v[count] = (int64_t)f[count];
        s.dim[count < CD_GRAPH_MAX_RANK ? count : 0] = v[count];
        count++;
    }
    s.rank = count;
    if (p[n] == '[') m->st = cd_graph_input(m->g, "x", type, &s, t, &m->err);
    else {
        s = (cd_graph_shape){.rank = *at != ']', .dim = {count}};
        m->st = cd_graph_constant(m->g, "c", type, &s, cd_expr_dtype_is_float(type) ? NULL : v,
                                  cd_expr_dtype_is_float(type) ? f : NULL, t, &m->err);
    }
    check_status(m->st, CDMPP_OK, &m->err, p, __FILE__, __LINE__);
}

static void put_attr(cd_buf *b, const cd_graph_attr *a) {
    cd_buf_putf(b, " %s=", a->name);
    if (a->kind == CD_GRAPH_ATTR_INT) cd_buf_putf(b, "%lld", (long long)a->i);
    if (a->kind == CD_GRAPH_ATTR_FLOAT) cd_buf_putf(b, "%g", a->f);
    if (a->kind == CD_GRAPH_ATTR_STR) cd_buf_puts(b, a->s);
    for (uint32_t k = 0; a->kind == CD_GRAPH_ATTR_INTS && k < a->n; k++)
        cd_buf_putf(b, "%s%lld", k ? "," : "", (long long)a->ints[k]);
    for (uint32_t k = 0; a->kind == CD_GRAPH_ATTR_FLOATS && k < a->n; k++)
        cd_buf_putf(b, "%s%g", k ? "," : "", a->floats[k]);
}

/* What the rule gave, as row.want says it. */
static void put_result(cd_buf *b, const gm *m, uint32_t n_out) {
    const cd_graph_node *x = &m->g->node[m->g->n_node - 1];
    char type[16];
    if (m->st) {
        cd_buf_puts(b, m->err.msg);
        return;
    }
    for (uint32_t o = 0; o < n_out; o++) {
        const cd_graph_tensor *t = &m->g->tensor[m->out[o]];
        cd_buf_putf(b, "%s%s[", o ? " " : "", cd_expr_dtype_format(t->dtype, type, sizeof type));
        for (uint32_t d = 0; d < t->shape.rank; d++)
            cd_buf_putf(b, "%s%lld", d ? "," : "", (long long)t->shape.dim[d]);
        cd_buf_puts(b, "]");
    }
    cd_buf_putf(b, "; %.17g flop;", x->flop);
    for (uint32_t k = 0; k < x->n_attr; k++) put_attr(b, &x->attr[k]);
}

static bool check_row(const row *r, uint32_t n_out) {
    gm m = {0};
    char text[512], op[40];
    uint32_t in[16], n = 0;
    cd_buf b = {0};
    check_status(cd_graph_new("net", &m.g, &m.err), CDMPP_OK, &m.err, "new", __FILE__, __LINE__);
    snprintf(op, sizeof op, "%s", r->op);
    char *opset = strchr(op, '@');
    m.g->opset = opset ? atoi(opset + 1) : 20;
    if (opset) *opset = 0;
    snprintf(text, sizeof text, "%s", r->in);
    for (char *save, *p = strtok_r(text, " ", &save); p; p = strtok_r(NULL, " ", &save))
        read_operand(&m, p, &in[n++]);
    m.n_out = n_out;
    (void)gm_addv(&m, op, r->attrs, in, n);
    put_result(&b, &m, n_out);
    const bool same = !strcmp(b.p, r->want);
    if (!same)
        print_error("%s {%s} (%s)\n  gave     %s\n  expected %s\n", r->op, r->attrs, r->in, b.p,
                    r->want);
    cd_buf_free(&b);
    cd_graph_free(m.g);
    return same;
}

/* Counts the lines that differ, so that all of them are shown. */
static void check_rows(const row *r, size_t n, uint32_t n_out) {
    size_t bad = 0;
    for (size_t k = 0; k < n; k++) bad += !check_row(&r[k], n_out);
    assert_int_equal(bad, 0);
}
#define ROWS(table, n_out) check_rows(table, sizeof table / sizeof *table, n_out)

TEST(windows) {
    static const row t[] = {
        {"Conv", "strides=2,1 dilations=1,2 pads=1,0,0,2", "f32[1,2,6,6] f32[4,2,3,2]",
         "float32[1,4,3,6]; 1728 flop; strides=2,1 dilations=1,2 pads=1,0,0,2 group=1 "
         "kernel_shape=3,2"},
        {"Conv", "", "f32[1,2,6] f32[4,2,3] f32[4]",
         "float32[1,4,4]; 208 flop; group=1 kernel_shape=3 strides=1 dilations=1 pads=0,0"},
        {"Conv", "", "f32[1,2,6] f32[4,2,3] f32[5]", "Conv: bias for other than 4 channels"},
        {"Conv", "", "f32[1,2] f32[4,2]",
         "Conv: operand 0: expected 3 to 8 dimensions, found [1,2]"},
        {"Conv", "group=2", "f32[1,2,6] f32[3,1,3]",
         "Conv: 2 channels, 2 groups and a weight of [3,1,...] do not fit"},
        {"Conv", "group=2", "f32[1,3,6] f32[4,1,3]",
         "Conv: 3 channels, 2 groups and a weight of [4,1,...] do not fit"},
        {"Conv", "group=0", "f32[1,2,6] f32[4,2,3]",
         "Conv: 2 channels, 0 groups and a weight of [4,2,...] do not fit"},
        {"Conv", "", "f32[1,2,6] f32[4,2,0]", "Conv: empty kernel"},
        {"Conv", "", "f32[1,2,6] f32[4,2,6]",
         "float32[1,4,1]; 96 flop; group=1 kernel_shape=6 strides=1 dilations=1 pads=0,0"},
        {"Conv", "", "f32[1,2,6] f32[4,2,7]", "Conv: window of 7 over 6 padded elements"},
        {"Conv", "pads=1,0", "f32[1,2,6] f32[4,2,7]",
         "float32[1,4,1]; 112 flop; pads=1,0 group=1 kernel_shape=7 strides=1 dilations=1"},
        {"Conv", "", "f32[1,1,4294967297] f32[1,1,1]", "Conv: dimension 2 is 4294967297"},
        {"Conv", "", "f32[1,1,4294967296] f32[1,1,1]",
         "float32[1,1,4294967296]; 8589934592 flop; group=1 kernel_shape=1 strides=1 dilations=1 "
         "pads=0,0"},
        {"Conv", "strides=[16777216]", "f32[1,1,2] f32[1,1,1]",
         "float32[1,1,1]; 2 flop; strides=16777216 group=1 kernel_shape=1 dilations=1 pads=0,0"},
        {"Conv", "strides=[16777217]", "f32[1,1,2] f32[1,1,1]",
         "Conv: attribute strides[0] is 16777217"},
        {"Conv", "auto_pad=SAME_LOWER strides=[2]", "f32[1,1,4] f32[1,1,3]",
         "float32[1,1,2]; 12 flop; auto_pad=SAME_LOWER strides=2 group=1 kernel_shape=3 "
         "dilations=1 pads=1,0"},
        {"Conv", "auto_pad=SAME_UPPER strides=[2]", "f32[1,1,4] f32[1,1,3]",
         "float32[1,1,2]; 12 flop; auto_pad=SAME_UPPER strides=2 group=1 kernel_shape=3 "
         "dilations=1 pads=0,1"},
        {"Conv", "auto_pad=SAME_UPPER strides=[3]", "f32[1,1,4] f32[1,1,1]",
         "float32[1,1,2]; 4 flop; auto_pad=SAME_UPPER strides=3 group=1 kernel_shape=1 dilations=1 "
         "pads=0,0"},
        {"ConvInteger", "", "u8[1,2,6] i8[4,2,3]",
         "int32[1,4,4]; 192 flop; group=1 kernel_shape=3 strides=1 dilations=1 pads=0,0"},
        {"ConvInteger", "", "u8[1,2,6] i8[4,2,3] u8[]",
         "int32[1,4,4]; 192 flop; group=1 kernel_shape=3 strides=1 dilations=1 pads=0,0"},
        {"ConvInteger", "", "u8[1,2] i8[4,2]",
         "ConvInteger: operand 0: expected 3 to 8 dimensions, found [1,2]"},
        {"QLinearConv", "", "u8[1,2,6] f32[1] u8[1] i8[4,2,3] f32[1] i8[1] f32[1] i8[1]",
         "int8[1,4,4]; 192 flop; group=1 kernel_shape=3 strides=1 dilations=1 pads=0,0"},
        {"QLinearConv", "", "u8[1,2,6] f32[1] u8[1] i8[4,2,3] f32[1] i8[1] f32[1] i8[1] i32[4]",
         "int8[1,4,4]; 208 flop; group=1 kernel_shape=3 strides=1 dilations=1 pads=0,0"},
        {"QLinearConv", "", "u8[1,2,6] f32[1] u8[1] i8[4,2,3] f32[1] i8[1] f32[1] i8[1] i32[3]",
         "QLinearConv: bias for other than 4 channels"},
        {"DeformConv", "", "f32[1,2,6,6] f32[4,2,3,3] f32[1,18,4,4] f32[4]",
         "float32[1,4,4,4]; 2368 flop; group=1 kernel_shape=3,3 strides=1,1 dilations=1,1 "
         "pads=0,0,0,0"},
        {"DeformConv", "", "f32[1,2,6,6] f32[4,2,3,3] f32[1,18,4,4]",
         "float32[1,4,4,4]; 2304 flop; group=1 kernel_shape=3,3 strides=1,1 dilations=1,1 "
         "pads=0,0,0,0"},
        {"DeformConv", "", "f32[1,2,6,6] f32[4,2,3,3] f32[1,18,4,4] f32[3]",
         "DeformConv: bias for other than 4 channels"},
        {"ConvTranspose", "strides=[2] pads=1,0", "f32[1,2,5] f32[2,3,4] f32[3]",
         "float32[1,3,11]; 273 flop; strides=2 pads=1,0 group=1 output_padding=0 kernel_shape=4 "
         "dilations=1"},
        {"ConvTranspose", "strides=[2] output_shape=[11]", "f32[1,2,5] f32[2,3,4]",
         "float32[1,3,11]; 240 flop; strides=2 output_shape=11 group=1 output_padding=0 "
         "kernel_shape=4 dilations=1 pads=1,0"},
        {"ConvTranspose", "strides=[2] output_shape=[13]", "f32[1,2,5] f32[2,3,4]",
         "float32[1,3,13]; 240 flop; strides=2 output_shape=13 group=1 output_padding=0 "
         "kernel_shape=4 dilations=1 pads=0,0"},
        {"ConvTranspose", "strides=[2] output_shape=1,3,11", "f32[1,2,5] f32[2,3,4]",
         "float32[1,3,11]; 240 flop; strides=2 output_shape=1,3,11 group=1 output_padding=0 "
         "kernel_shape=4 dilations=1 pads=1,0"},
        {"ConvTranspose", "strides=[2] output_shape=3,11", "f32[1,2,5] f32[2,3,4]",
         "ConvTranspose: attribute output_shape: expected 1 integers"},
        {"ConvTranspose", "pads=3,2", "f32[1,2,2] f32[2,3,4]",
         "float32[1,3,0]; 96 flop; pads=3,2 group=1 output_padding=0 kernel_shape=4 strides=1 "
         "dilations=1"},
        {"ConvTranspose", "pads=3,3", "f32[1,2,2] f32[2,3,4]",
         "ConvTranspose: dimension 2 would be -1"},
        {"ConvTranspose", "group=3", "f32[1,2,5] f32[2,3,4]",
         "ConvTranspose: 2 channels, 3 groups and a weight for 2 channels do not fit"},
        {"AveragePoolGrad", "kernel_shape=[2] strides=[2]", "f32[1,3,6] f32[1,3,3]",
         "float32[1,3,6]; 18 flop; kernel_shape=2 strides=2 ceil_mode=0 dilations=1 pads=0,0"},
        {"AveragePoolGrad", "kernel_shape=2,3", "f32[1,3,6,6] f32[1,3,5,4]",
         "float32[1,3,6,6]; 360 flop; kernel_shape=2,3 ceil_mode=0 strides=1,1 dilations=1,1 "
         "pads=0,0,0,0"},
        {"AveragePoolGrad", "kernel_shape=[2] strides=[2]", "f32[1,3,6] f32[1,3,4]",
         "AveragePoolGrad: operand 1: dimension 2: expected 3, found 4"},
        {"AveragePoolGrad", "kernel_shape=[2] strides=[2]", "f32[1,3,6] f32[1,2,3]",
         "AveragePoolGrad: operand 1: dimension 1: expected 3, found 2"},
        {"MaxPool", "kernel_shape=[2]", "f32[3,6]",
         "MaxPool: operand 0: expected 3 to 8 dimensions, found [3,6]"},
        {"MaxPool", "kernel_shape=[2] strides=[2]", "f32[1,3,5]",
         "float32[1,3,2]; 12 flop; kernel_shape=2 strides=2 ceil_mode=0 dilations=1 pads=0,0"},
        {"MaxPool", "kernel_shape=[2] strides=[2] ceil_mode=1", "f32[1,3,5]",
         "float32[1,3,3]; 18 flop; kernel_shape=2 strides=2 ceil_mode=1 dilations=1 pads=0,0"},
        {"LpPool", "kernel_shape=[2]", "f32[1,3,5]",
         "float32[1,3,4]; 24 flop; kernel_shape=2 p=2 ceil_mode=0 strides=1 dilations=1 pads=0,0"},
        {"GlobalMaxPool", "", "f32[2,3,5,7]", "float32[2,3,1,1]; 210 flop;"},
        {"GlobalMaxPool", "", "f32[2,3]", "float32[2,3]; 6 flop;"},
        {"GlobalMaxPool", "", "f32[2]",
         "GlobalMaxPool: operand 0: expected 2 to 8 dimensions, found [2]"},
        {"MaxUnpool", "kernel_shape=[2] strides=[2]", "f32[1,3,5] i64[1,3,5]",
         "float32[1,3,10]; 0 flop; kernel_shape=2 strides=2 dilations=1 pads=0,0"},
        {"MaxUnpool", "kernel_shape=[2] strides=[2]", "f32[1,3,5] i64[1,3,5] i64=1,3,11",
         "float32[1,3,11]; 0 flop; kernel_shape=2 strides=2 dilations=1 pads=0,0"},
        {"MaxUnpool", "kernel_shape=[2] strides=[2]", "f32[1,3,5] i64[1,3,5] i64=3,11",
         "MaxUnpool: output_shape: expected 3 integers, found 2"},
        {"MaxUnpool", "kernel_shape=[2]", "f32[3,5] i64[3,5]",
         "MaxUnpool: operand 0: expected 3 to 8 dimensions, found [3,5]"},
        {"MaxRoiPool", "pooled_shape=5,6", "f32[1,3,9,9] f32[7,5]",
         "float32[7,3,5,6]; 630 flop; pooled_shape=5,6"},
        {"MaxRoiPool", "pooled_shape=[5]", "f32[1,3,9,9] f32[7,5]",
         "MaxRoiPool: attribute pooled_shape: expected 2 integers, found 1"},
        {"RoiAlign", "", "f32[1,3,9,9] f32[7,4] i64[7]", "float32[7,3,1,1]; 21 flop;"},
        {"RoiAlign", "", "f32[1,3,9] f32[7,4] i64[7]",
         "RoiAlign: operand 0: expected 4 dimensions, found [1,3,9]"},
        {"RoiAlign", "", "f32[1,3,9,9] f32[7,4,1] i64[7]",
         "RoiAlign: operand 1: expected 2 dimensions, found [7,4,1]"},
    };
    ROWS(t, 1);
}

TEST(element_wise) {
    static const row t[] = {
        {"LeakyRelu", "", "f32[2]", "float32[2]; 2 flop; alpha=0.01"},
        {"LeakyRelu", "alpha=1", "f32[2]",
         "LeakyRelu: attribute alpha: expected a real number, found an integer"},
        {"Elu", "", "f32[2]", "float32[2]; 2 flop; alpha=1"},
        {"Celu", "", "f32[2]", "float32[2]; 2 flop; alpha=1"},
        {"ThresholdedRelu", "", "f32[2]", "float32[2]; 2 flop; alpha=1"},
        {"Selu", "", "f32[2]", "float32[2]; 2 flop; alpha=1.67326 gamma=1.0507"},
        {"HardSigmoid", "", "f16[2]", "float16[2]; 2 flop; alpha=0.2 beta=0.5"},
        {"Shrink", "", "f32[2]", "float32[2]; 2 flop; bias=0 lambd=0.5"},
        {"Add", "", "f32[2,1,3] f32[4,1]", "float32[2,4,3]; 24 flop;"},
        {"Add", "", "f32[2,1,3] f32[4,2]", "[2,1,3] and [4,2] do not broadcast"},
        {"Add", "", "f32[2] -", "Add: operand 1 is missing"},
        {"BitwiseAnd", "", "i32[3] i32[3]", "int32[3]; 3 flop;"},
        {"BitwiseAnd", "", "f32[3] i32[3]", "BitwiseAnd: operand 0: expected integers"},
        {"BitwiseAnd", "", "i32[3] f32[3]", "BitwiseAnd: operand 1: expected integers"},
        {"Less", "", "f32[3] f32[2,1]", "bool[2,3]; 6 flop;"},
        {"Less", "", "f32[3] f32[2]", "[3] and [2] do not broadcast"},
        {"IsNaN", "", "f32[2,3]", "bool[2,3]; 6 flop;"},
        {"Max", "", "f32[3]", "float32[3]; 0 flop;"},
        {"Max", "", "f32[3] f32[3]", "float32[3]; 3 flop;"},
        {"Max", "", "f32[3] f32[1] f32[2,1]", "float32[2,3]; 12 flop;"},
        {"Where", "", "bool[2,1] f16[3] f16[1]", "float16[2,3]; 6 flop;"},
        {"PRelu", "", "f32[2,3] f32[3]", "float32[2,3]; 12 flop;"},
        {"PRelu", "", "f32[3] f32[2,3]", "PRelu: the slope is larger than what it is for"},
        {"PRelu", "", "f32[2,1] f32[3]", "PRelu: the slope is larger than what it is for"},
        {"Cast", "to=1", "i64[2]", "float32[2]; 2 flop; to=1"},
        {"Cast", "to=16", "i64[2]", "bfloat16[2]; 2 flop; to=16"},
        {"Cast", "to=17", "i64[2]", "float8_e4m3fn[2]; 2 flop; to=17"},
        {"Cast", "to=8", "i64[2]", "Cast: texts (type 8)"},
        {"Cast", "to=0", "i64[2]", "Cast: a type that is not known (0)"},
        {"Cast", "to=13", "i64[2]", "uint64[2]; 2 flop; to=13"},
        {"CastLike", "", "i64[2] f16[5]", "float16[2]; 2 flop;"},
        {"Clip", "", "f32[2] f32=.5] i64=3]", "float32[2]; 4 flop; min=0.5 max=3"},
        {"Clip", "", "f32[2] - f32=2.5", "float32[2]; 4 flop; max=2.5"},
        {"Clip", "", "f32[2] f32[] f32=1,2", "float32[2]; 4 flop;"},
        {"QuantizeLinear", "", "f32[2,3] f32[]", "uint8[2,3]; 12 flop; axis=1"},
        {"QuantizeLinear", "", "f32[2,3] f32[] i8[]", "int8[2,3]; 12 flop; axis=1"},
        {"DequantizeLinear", "axis=0", "u8[2,3] f16[2]", "float16[2,3]; 12 flop; axis=0"},
        {"DequantizeLinear", "", "u8[2,3] f16[]", "float16[2,3]; 12 flop; axis=1"},
    };
    ROWS(t, 1);
}

TEST(norms) {
    static const row t[] = {
        {"BatchNormalization", "", "f32[2,3,4] f32[3] f32[3] f32[3] f32[3]",
         "float32[2,3,4]; 48 flop; epsilon=1e-05"},
        {"BatchNormalization", "epsilon=0.5", "f32[4] f32[1] f32[1] f32[1] f32[1]",
         "float32[4]; 8 flop; epsilon=0.5"},
        {"BatchNormalization", "", "f32[2,3,4] f32[3] f32[3] f32[3] f32[2]",
         "BatchNormalization: operand 4: expected 3 elements, found 2"},
        {"BatchNormalization", "", "f32[2,3,4] f32[2] f32[3] f32[3] f32[3]",
         "BatchNormalization: operand 1: expected 3 elements, found 2"},
        {"InstanceNormalization", "", "f32[2,3,4] f32[3] f32[3]",
         "float32[2,3,4]; 168 flop; epsilon=1e-05"},
        {"InstanceNormalization", "", "f32[2,3,4] f32[3] f32[2]",
         "InstanceNormalization: operand 2: expected 3 elements, found 2"},
        {"InstanceNormalization", "", "f32[2] f32[3] f32[3]",
         "InstanceNormalization: operand 0: expected 2 to 8 dimensions, found [2]"},
        {"GroupNormalization", "num_groups=3", "f32[2,6,4] f32[6] f32[6]",
         "float32[2,6,4]; 336 flop; num_groups=3 epsilon=1e-05"},
        {"GroupNormalization", "num_groups=1", "f32[2,6] f32[6] f32[6]",
         "float32[2,6]; 84 flop; num_groups=1 epsilon=1e-05"},
        {"GroupNormalization", "num_groups=4", "f32[2,6,4] f32[6] f32[6]",
         "GroupNormalization: 4 groups of 6 channels"},
        {"GroupNormalization", "", "f32[2,6,4] f32[6] f32[6]",
         "GroupNormalization: 0 groups of 6 channels"},
        {"Softmax", "", "f32[2,3,4]", "float32[2,3,4]; 120 flop; axis=2 axes=2"},
        {"Softmax", "axis=1", "f32[2,3,4]", "float32[2,3,4]; 120 flop; axis=1 axes=1"},
        {"Softmax@12", "", "f32[2,3,4]", "float32[2,3,4]; 120 flop; axis=1 axes=1,2"},
        {"Softmax@12", "", "f32[4]", "float32[4]; 20 flop; axis=1 axes="},
        {"Softmax", "", "f32[]", "float32[]; 5 flop; axes="},
        {"Softmax", "axis=3", "f32[2,3,4]", "axis 3 of 3 dimensions"},
        {"LpNormalization", "", "f32[2,3]", "float32[2,3]; 30 flop; axis=1"},
        {"LRN", "size=3", "f32[1,4,2]",
         "float32[1,4,2]; 64 flop; size=3 alpha=0.0001 beta=0.75 bias=1"},
        {"LRN", "size=1 alpha=0.5 beta=0.25 bias=2.", "f32[1,4]",
         "float32[1,4]; 24 flop; size=1 alpha=0.5 beta=0.25 bias=2"},
        {"LRN", "size=0", "f32[1,4]", "LRN: size 0"},
        {"LRN", "size=3", "f32[4]", "LRN: operand 0: expected 2 to 8 dimensions, found [4]"},
        {"MeanVarianceNormalization", "", "f32[1,2,3,4]", "float32[1,2,3,4]; 168 flop; axes=0,2,3"},
        {"MeanVarianceNormalization", "", "f32[1,2,3]",
         "MeanVarianceNormalization: operand 0: expected 4 dimensions, found [1,2,3]"},
        {"MeanVarianceNormalization", "axes=0,1", "f32[1,2,3]",
         "float32[1,2,3]; 42 flop; axes=0,1"},
    };
    ROWS(t, 1);
}

TEST(images) {
    static const row t[] = {
        {"DepthToSpace", "blocksize=2", "f32[1,8,3,5]", "float32[1,2,6,10]; 0 flop; blocksize=2"},
        {"DepthToSpace", "blocksize=1", "f32[1,7,3,5]", "float32[1,7,3,5]; 0 flop; blocksize=1"},
        {"DepthToSpace", "blocksize=2", "f32[1,6,3,5]", "DepthToSpace: 6 channels in blocks of 2"},
        {"DepthToSpace", "", "f32[1,8,3,5]", "DepthToSpace: blocksize 0"},
        {"DepthToSpace", "blocksize=1048576", "f32[1,8,3,5]",
         "DepthToSpace: 8 channels in blocks of 1048576"},
        {"DepthToSpace", "blocksize=1048577", "f32[1,8,3,5]", "DepthToSpace: blocksize 1048577"},
        {"DepthToSpace", "blocksize=2", "f32[8,3,5]",
         "DepthToSpace: operand 0: expected 4 dimensions, found [8,3,5]"},
        {"SpaceToDepth", "blocksize=2", "f32[1,2,4,6]", "float32[1,8,2,3]; 0 flop; blocksize=2"},
        {"SpaceToDepth", "blocksize=2", "f32[1,2,3,6]", "SpaceToDepth: 3 by 6 in blocks of 2"},
        {"SpaceToDepth", "blocksize=2", "f32[1,2,4,5]", "SpaceToDepth: 4 by 5 in blocks of 2"},
        {"Resize", "mode=linear", "f32[1,2,3,4] - f32=1.,1.,2.,2.5",
         "float32[1,2,6,10]; 1080 flop; mode=linear scales=1,1,2,2.5"},
        {"Resize", "mode=cubic", "f32[1,2,3,4] - f32=1.,1.,2.,1.",
         "float32[1,2,6,4]; 384 flop; mode=cubic scales=1,1,2,1"},
        {"Resize", "", "f32[1,2,3,4] - - i64=1,2,5,5", "float32[1,2,5,5]; 0 flop;"},
        {"Resize", "axes=2,3", "f32[1,2,3,4] - - i64=5,6", "float32[1,2,5,6]; 0 flop; axes=2,3"},
        {"Resize", "axes=0,1,2,3,0", "f32[1,2,3,4] - - i64=5,6", "Resize: 5 axes of 4 dimensions"},
        {"Resize", "", "f32[1,2,3,4] - - i64=5,6", "Resize: 2 scales or sizes for 4 dimensions"},
        {"Resize", "", "f32[1,2,3,4] - f32=0.,1.,1.,1.", "Resize: scale 0 of dimension 0"},
        {"Resize", "", "f32[1,2,3,4] - i64=1,1,1,1", "Resize: expected real numbers as scales"},
        {"Resize", "", "f32[1,2,3,4] - f32[4]",
         "Resize: its shape depends on the content of \"x\""},
        {"Resize", "keep_aspect_ratio_policy=not_larger", "f32[1,2,3,4] - f32=1.,1.,1.,1.",
         "float32[1,2,3,4]; 0 flop; keep_aspect_ratio_policy=not_larger scales=1,1,1,1"},
        {"Upsample@9", "mode=nearest", "f32[1,2,3,4] f32=1.,1.,2.,3.",
         "float32[1,2,6,12]; 0 flop; mode=nearest scales=1,1,2,3"},
        {"Resize@10", "", "f32[1,2,3,4] f32=1.,1.,2.,3.",
         "float32[1,2,6,12]; 0 flop; scales=1,1,2,3"},
        {"GridSample", "", "f32[2,3,5,5] f32[2,7,8,2]", "float32[2,3,7,8]; 3024 flop;"},
        {"GridSample", "mode=nearest", "f32[2,3,5,5] f32[2,7,8,2]",
         "float32[2,3,7,8]; 0 flop; mode=nearest"},
        {"GridSample", "mode=cubic", "f32[2,3,5,5] f32[2,7,8,2]",
         "float32[2,3,7,8]; 10752 flop; mode=cubic"},
        {"GridSample", "", "f32[2,3,5] f32[2,7,1]", "float32[2,3,7]; 126 flop;"},
        {"GridSample", "", "f32[2,3] f32[2,0]",
         "GridSample: operand 0: expected 3 to 8 dimensions, found [2,3]"},
        {"GridSample", "", "f32[2,3,5,5] f32[2,7,8,3]",
         "GridSample: 2 grids of 3 coordinates for 2 images of 2 dimensions"},
        {"GridSample", "", "f32[2,3,5,5] f32[1,7,8,2]",
         "GridSample: 1 grids of 2 coordinates for 2 images of 2 dimensions"},
    };
    ROWS(t, 1);
}

TEST(others) {
    static const row t[] = {
        {"MatMulInteger", "", "u8[2,3] i8[3,4]", "int32[2,4]; 48 flop;"},
        {"QLinearMatMul", "", "u8[2,3] f32[] u8[] i8[3,4] f32[] i8[] f32[] i8[]",
         "int8[2,4]; 48 flop;"},
        {"QLinearMatMul", "", "u8[2,3] f32[] u8[] i8[4,4] f32[] i8[] f32[] i8[]",
         "QLinearMatMul of [2,3] and [4,4]"},
        {"Gemm", "", "f32[2,3] f32[3,4] f32[4]",
         "float32[2,4]; 56 flop; transA=0 transB=0 alpha=1 beta=1"},
        {"Gemm", "", "f32[2,3] f32[3,4] f32[5,2,4]", "Gemm: operand 2 is larger than the product"},
        {"Einsum", "equation=aZ,Zb->ab", "f32[2,3] f32[3,4]",
         "float32[2,4]; 48 flop; equation=aZ,Zb->ab"},
        {"Einsum", "equation=a1,1b->ab", "f32[2,3] f32[3,4]", "Einsum: \"1\" in the equation"},
        {"Einsum", "equation=a[,[b->ab", "f32[2,3] f32[3,4]", "Einsum: \"[\" in the equation"},
        {"ArgMax", "axis=1", "f32[2,3,4]", "int64[2,1,4]; 24 flop; axis=1 keepdims=1"},
        {"ArgMax", "axis=1 keepdims=0", "f32[2,3,4]", "int64[2,4]; 24 flop; axis=1 keepdims=0"},
        {"ReduceSum", "", "f32[2,3] i64=1", "float32[2,1]; 6 flop; keepdims=1 axes=1"},
        {"ReduceSum", "noop_with_empty_axes=1", "f32[2,3]",
         "float32[2,3]; 6 flop; noop_with_empty_axes=1 keepdims=1 axes="},
        {"ReduceSum", "keepdims=0", "f32[2,3]", "float32[]; 6 flop; keepdims=0 axes=0,1"},
        {"Det", "", "f32[2,3,3]", "float32[2]; 18 flop;"},
        {"Det", "", "f32[2,3,4]", "Det: matrices of 3 x 4"},
        {"CumSum", "", "f32[2,3] i64=-1]", "float32[2,3]; 6 flop; axis=1"},
        {"CumSum", "", "f32[2,3] i64=2]", "axis 2 of 2 dimensions"},
        {"RNN", "", "f32[5,2,3] f32[1,4,3] f32[1,4,4]",
         "float32[5,1,2,4]; 640 flop; hidden_size=4 layout=0"},
        {"RNN", "layout=1", "f32[5,2,3] f32[1,4,3] f32[1,4,4] f32[1,8]",
         "float32[5,2,1,4]; 720 flop; layout=1 hidden_size=4"},
        {"RNN", "layout=2", "f32[5,2,3] f32[1,4,3] f32[1,4,4]", "RNN: layout 2: expected 0 or 1"},
        {"RNN", "direction=both", "f32[5,2,3] f32[1,4,3] f32[1,4,4]",
         "RNN: direction \"both\": expected forward, reverse or bidirectional"},
        {"RNN", "hidden_size=5", "f32[5,2,3] f32[1,4,3] f32[1,4,4]",
         "RNN: weights [1,4,3] and [1,4,4] do not fit 1 directions of 5 cells over 3 inputs"},
        {"RNN", "hidden_size=-1", "f32[5,2,3] f32[1,4,3] f32[1,4,4]", "RNN: hidden_size is -1"},
        {"GRU", "direction=bidirectional", "f32[5,2,3] f32[2,12,3] f32[2,12,4]",
         "float32[5,2,2,4]; 4240 flop; direction=bidirectional hidden_size=4 layout=0"},
        {"LSTM", "", "f32[5,2,3] f32[1,16,3] f32[1,16,4]",
         "float32[5,1,2,4]; 2760 flop; hidden_size=4 layout=0"},
        {"Flatten", "axis=2", "f32[2,3,4]", "float32[6,4]; 0 flop; axis=2"},
        {"Flatten", "axis=3", "f32[2,3,4]", "float32[24,1]; 0 flop; axis=3"},
        {"Flatten", "axis=-3", "f32[2,3,4]", "float32[1,24]; 0 flop; axis=0"},
        {"Flatten", "axis=-4", "f32[2,3,4]", "Flatten: axis -4 of 3 dimensions"},
        {"Flatten", "axis=4", "f32[2,3,4]", "Flatten: axis 4 of 3 dimensions"},
        {"Range", "", "i64=1] i64=8] i64=3]", "int64[3]; 0 flop;"},
        {"Range", "", "i64=8] i64=1] i64=-3]", "int64[3]; 0 flop;"},
        {"Range", "", "i64=1] i64=8] i64=0]", "Range from 1 to 8 by 0"},
        {"Range", "", "i64=8] i64=1] i64=3]", "int64[0]; 0 flop;"},
        {"Range", "", "i64=1] i64=8] i64[]", "Range: its length depends on the content of \"x\""},
        {"Range", "", "i64=1] i64=8] i64=1,2", "Range: operand 2: expected one number"},
        {"ScatterND", "", "f32[2,3] i64[4,2] f32[4]", "float32[2,3]; 0 flop;"},
        {"ScatterND", "", "f32[2,3] i64[4,3] f32[4]", "ScatterND: indices of 3 for 2 dimensions"},
        {"ScatterND", "", "f32[] i64[4,0] f32[4]",
         "ScatterND: operand 0: expected 1 to 8 dimensions, found []"},
        {"ScatterND", "", "f32[2,3] i64[] f32[4]",
         "ScatterND: operand 1: expected 1 to 8 dimensions, found []"},
        {"ScatterElements", "axis=2", "f32[2,3] i64[1,1] f32[1,1]", "axis 2 of 2 dimensions"},
        {"OneHot", "", "i64[2,3] i64=4] f32[2]", "float32[2,3,4]; 0 flop; axis=2"},
        {"OneHot", "axis=0", "i64[2,3] i64=0] f16[2]", "float16[0,2,3]; 0 flop; axis=0"},
        {"OneHot", "axis=3", "i64[2,3] i64=4] f32[2]", "axis 3 of 3 dimensions"},
        {"OneHot", "", "i64[2,3] i64=-1] f32[2]", "OneHot: depth -1"},
        {"OneHot", "", "i64[2,3] i64=4,5 f32[2]", "OneHot: expected one number as depth"},
        {"OneHot", "", "i64[2,3] i64[] f32[2]",
         "OneHot: its depth depends on the content of \"x\""},
        {"Trilu", "", "f32[2,3] i64=-1]", "float32[2,3]; 0 flop; upper=1 k=-1"},
        {"Trilu", "upper=0", "f32[3]", "Trilu: operand 0: expected 2 to 8 dimensions, found [3]"},
        {"ReverseSequence", "", "f32[2,3] i64[3]",
         "float32[2,3]; 0 flop; batch_axis=1 time_axis=0"},
    };
    ROWS(t, 1);
}

TEST(more_results) {
    static const row t[] = {
        {"MaxPool", "kernel_shape=[2]", "f16[1,3,5]",
         "float16[1,3,4] int64[1,3,4]; 24 flop; kernel_shape=2 ceil_mode=0 strides=1 dilations=1 "
         "pads=0,0"},
        {"Dropout", "", "f16[1,3]", "float16[1,3] bool[1,3]; 0 flop;"},
        {"TopK", "", "f32[2,5] i64=5", "float32[2,5] int64[2,5]; 30 flop; axis=1 k=5"},
        {"TopK", "axis=0", "f32[2,5] i64=1", "float32[1,5] int64[1,5]; 10 flop; axis=0 k=1"},
        {"TopK", "", "f32[2,5] i64=0", "float32[2,0] int64[2,0]; 10 flop; axis=1 k=0"},
        {"TopK", "", "f32[2,5] i64=6", "TopK: 6 of 5 elements"},
        {"TopK", "", "f32[2,5] i64=-1", "TopK: -1 of 5 elements"},
        {"TopK@9", "k=4", "f32[2,5]", "float32[2,4] int64[2,4]; 30 flop; k=4 axis=1"},
        {"TopK@9", "", "f32[2,5]", "TopK: -1 of 5 elements"},
        {"SoftmaxCrossEntropyLoss", "", "f32[2,5] i64[2]", "float32[] float32[2,5]; 10 flop;"},
        {"SoftmaxCrossEntropyLoss", "reduction=none", "f32[2,5] i64[2]",
         "float32[2] float32[2,5]; 10 flop; reduction=none"},
        {"GRU", "", "f32[5,2,3] f32[1,12,3] f32[1,12,4]",
         "float32[5,1,2,4] float32[1,2,4]; 2120 flop; hidden_size=4 layout=0"},
        {"GRU", "layout=1", "f32[5,2,3] f32[1,12,3] f32[1,12,4]",
         "float32[5,2,1,4] float32[5,1,4]; 2120 flop; layout=1 hidden_size=4"},
    };
    static const row three[] = {
        {"LayerNormalization", "", "f16[2,3,4] f16[4]",
         "float16[2,3,4] float32[2,3,1] float32[2,3,1]; 168 flop; axis=2 epsilon=1e-05"},
        {"LayerNormalization", "axis=1 epsilon=0.5", "f16[2,3,4] f16[4]",
         "float16[2,3,4] float32[2,1,1] float32[2,1,1]; 168 flop; axis=1 epsilon=0.5"},
        {"BatchNormalization@14", "training_mode=1", "f16[2,3,4] f32[3] f32[3] f32[3] f32[3]",
         "float16[2,3,4] float32[3] float32[3]; 48 flop; training_mode=1 epsilon=1e-05"},
        {"DynamicQuantizeLinear", "", "f32[2,3]", "uint8[2,3] float32[] uint8[]; 30 flop;"},
        {"LSTM", "", "f32[5,2,3] f32[1,16,3] f32[1,16,4]",
         "float32[5,1,2,4] float32[1,2,4] float32[1,2,4]; 2760 flop; hidden_size=4 layout=0"},
    };
    ROWS(t, 2);
    ROWS(three, 3);
}

/* ---- the graph itself ---- */

TEST(shapes) {
    static const struct {
        cd_graph_shape s;
        const char *says;
    } t[] = {{{2, {1 << 24, 1 << 24}}, NULL},
             {{2, {1 << 24, (1 << 24) + 1}}, "more than 2^48 elements [ERANGE]"},
             {{3, {0, 1 << 24, 1 << 24}}, NULL},
             {{3, {1 << 24, 0, (1 << 24) + 1}}, "more than 2^48 elements [ERANGE]"},
             {{3, {2, 1 << 24, 1 << 24}}, "more than 2^48 elements [ERANGE]"},
             {{3, {3, 5, (int64_t)1 << 44}}, NULL},
             {{3, {4, 5, (int64_t)1 << 44}}, "more than 2^48 elements [ERANGE]"},
             {{2, {3, -1}}, "dimension 1 is -1 [ERANGE]"},
             {{8, {1, 1, 1, 1, 1, 1, 1, 2}}, NULL},
             {{9, {1}}, "expected at most 8 dimensions, found 9 [ERANGE]"}};
    cdmpp_err err = {0};
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        if (t[k].says) assert_error(cd_graph_shape_check(&t[k].s, &err), t[k].says);
        else assert_ok(cd_graph_shape_check(&t[k].s, &err));
}

/* An attribute of another kind is none, but an integer is a real number too. Results and inputs in
 * the order in which they came. */
TEST(parts) {
    static const int64_t ones[2] = {1, 1};
    static const cd_graph_attr attr[] = {
        {.name = "i", .kind = CD_GRAPH_ATTR_INT, .i = 3, .f = 9},
        {.name = "f", .kind = CD_GRAPH_ATTR_FLOAT, .i = 9, .f = 2.5},
        {.name = "l", .kind = CD_GRAPH_ATTR_INTS, .i = 9, .f = 9, .n = 2, .ints = ones}};
    const cd_graph_node n = {.n_attr = 3, .attr = attr};
    assert_int_equal(cd_graph_node_int(&n, "i", 7), 3);
    assert_int_equal(cd_graph_node_int(&n, "f", 7), 7);
    assert_int_equal(cd_graph_node_int(&n, "x", 7), 7);
    assert_true(cd_graph_node_float(&n, "i", 7) == 3 && cd_graph_node_float(&n, "f", 7) == 2.5 &&
                cd_graph_node_float(&n, "l", 7) == 7 && cd_graph_node_float(&n, "x", 7) == 7);
    gm m = {0};
    check_status(cd_graph_new(NULL, &m.g, &m.err), CDMPP_OK, &m.err, "new", __FILE__, __LINE__);
    assert_string_equal(m.g->name, "");
    for (uint32_t k = 0; k < 9; k++) assert_int_equal(gm_x(&m, 1, 2), k);
    for (uint32_t k = 0; k < 9; k++)
        assert_int_equal(cd_graph_result(m.g, 8 - k, &m.err), CDMPP_OK);
    for (uint32_t k = 0; k < 9; k++) assert_true(m.g->input[k] == k && m.g->output[k] == 8 - k);
    assert_true(m.g->n_input == 9 && m.g->n_output == 9);
    assert_int_equal(cd_graph_result(m.g, 9, &m.err), CDMPP_ESCHEMA);
    assert_string_equal(m.err.msg, "no tensor 9");
    cd_graph_free(m.g);
    cd_graph_free(NULL);
}

TESTS(NULL, NULL, shapes, parts, windows, element_wise, norms, images, others, more_results)
