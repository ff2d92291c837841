/* Attributes of every kind, with their type and as older files have them: without. Values come
 * through as they are. */
#include <string.h>

#include "check.h"
#include "profiler/network/onnx/onnx_internal.h"

typedef CdOnnx__AttributeProto proto;
static cdmpp_err err;

/* One attribute of each kind; its name is that of the kind. */
enum { REAL, INT, STR, REALS, INTS, STRS, KINDS };
static float reals[] = {0.5f, -2, 3};
static int64_t ints[] = {7, -8};
static ProtobufCBinaryData strs[] = {
    {3, (uint8_t *)(uintptr_t) "abc"}, {0, NULL}, {2, (uint8_t *)(uintptr_t) "de"}};
static char name[KINDS][8] = {"real", "int", "str", "reals", "ints", "strs"};

static void make(proto *p, bool typed) {
    static const CdOnnx__AttributeProto__AttributeType type[] = {
        CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
        CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
        CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING,
        CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
        CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
        CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS};
    for (int k = 0; k < KINDS; k++) {
        p[k] = (proto)CD_ONNX__ATTRIBUTE_PROTO__INIT;
        p[k].name = name[k];
        p[k].has_type = typed;
        if (typed) p[k].type = type[k];
    }
    p[REAL].has_f = p[INT].has_i = p[STR].has_s = true;
    p[REAL].f = 1.25f, p[INT].i = -9, p[STR].s = strs[0];
    p[REALS].n_floats = 3, p[REALS].floats = reals;
    p[INTS].n_ints = 2, p[INTS].ints = ints;
    p[STRS].n_strings = 3, p[STRS].strings = strs;
}

static cd_graph_attr *convert(cd_arena *a, const cd_onnx_scope *s, proto *p, size_t n,
                              const char *op, uint32_t *n_out) {
    proto *list[KINDS];
    char type[32];
    cd_onnx_reader r = {.a = a};
    CdOnnx__NodeProto node = CD_ONNX__NODE_PROTO__INIT;
    cd_graph_attr *out;
    for (size_t k = 0; k < n; k++) list[k] = &p[k];
    snprintf(type, sizeof type, "%s", op);
    node.op_type = type, node.attribute = list, node.n_attribute = n;
    assert_ok(cd_onnx_attrs(&r, s, &node, &out, n_out, &err));
    return out;
}

static void test_kinds(void **state) {
    (void)state;
    for (int typed = 0; typed < 2; typed++) {
        cd_arena a = {0};
        proto p[KINDS];
        uint32_t n;
        make(p, typed);
        const cd_graph_attr *g = convert(&a, NULL, p, KINDS, "Conv", &n);
        assert_int_equal(n, KINDS);
        for (int k = 0; k < KINDS; k++) assert_string_equal(g[k].name, name[k]);
        assert_true(g[REAL].kind == CD_GRAPH_ATTR_FLOAT && g[REAL].f == 1.25);
        assert_true(g[INT].kind == CD_GRAPH_ATTR_INT && g[INT].i == -9);
        assert_true(g[STR].kind == CD_GRAPH_ATTR_STR && !strcmp(g[STR].s, "abc"));
        assert_true(g[REALS].kind == CD_GRAPH_ATTR_FLOATS && g[REALS].n == 3);
        for (int k = 0; k < 3; k++) assert_close(g[REALS].floats[k], (double)reals[k], 0, 0);
        assert_true(g[INTS].kind == CD_GRAPH_ATTR_INTS && g[INTS].n == 2 && g[INTS].ints[0] == 7 &&
                    g[INTS].ints[1] == -8);
        assert_true(g[STRS].kind == CD_GRAPH_ATTR_STR && !strcmp(g[STRS].s, "abc,,de"));
        cd_arena_free(&a);
    }
}

/* What a graph's node cannot have is left out; the others close up. */
static void test_others_are_left_out(void **state) {
    (void)state;
    cd_arena a = {0};
    proto p[3];
    CdOnnx__TensorProto t = CD_ONNX__TENSOR_PROTO__INIT;
    uint32_t n;
    for (int k = 0; k < 3; k++) {
        p[k] = (proto)CD_ONNX__ATTRIBUTE_PROTO__INIT;
        p[k].name = name[k];
    }
    p[0].t = &t, p[0].has_type = true, p[0].type = CD_ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    p[2].has_i = true, p[2].i = 5; /* p[1] has nothing at all */
    const cd_graph_attr *g = convert(&a, NULL, p, 3, "Conv", &n);
    assert_int_equal(n, 1);
    assert_true(!strcmp(g[0].name, name[2]) && g[0].kind == CD_GRAPH_ATTR_INT && g[0].i == 5);
    cd_arena_free(&a);
}

/* ConstantOfShape: the one element and its type. */
static void test_value_of_a_constant(void **state) {
    (void)state;
    char value[] = "value";
    int64_t i = -3;
    float f = 2.5f;
    for (int real = 0; real < 2; real++) {
        cd_arena a = {0};
        proto p = CD_ONNX__ATTRIBUTE_PROTO__INIT;
        CdOnnx__TensorProto t = CD_ONNX__TENSOR_PROTO__INIT;
        uint32_t n;
        t.has_data_type = true, t.data_type = real ? 1 : 7;
        if (real) t.n_float_data = 1, t.float_data = &f;
        else t.n_int64_data = 1, t.int64_data = &i;
        p.name = value, p.t = &t;
        const cd_graph_attr *g = convert(&a, NULL, &p, 1, "ConstantOfShape", &n);
        assert_int_equal(n, 2);
        assert_true(!strcmp(g[0].name, "dtype") && g[0].kind == CD_GRAPH_ATTR_INT &&
                    g[0].i == t.data_type);
        assert_true(!strcmp(g[1].name, "value") &&
                    g[1].kind == (real ? CD_GRAPH_ATTR_FLOAT : CD_GRAPH_ATTR_INT));
        if (real) assert_close(g[1].f, 2.5, 0, 0);
        else assert_int_equal(g[1].i, -3);
        cd_arena_free(&a);
    }
}

/* Inside a function: the call's value, else the function's default, else nothing; through two
 * calls. */
static void test_references(void **state) {
    (void)state;
    char inner[] = "inner", outer[] = "outer", own[] = "own";
    proto given = CD_ONNX__ATTRIBUTE_PROTO__INIT, passed = CD_ONNX__ATTRIBUTE_PROTO__INIT,
          usual = CD_ONNX__ATTRIBUTE_PROTO__INIT, p = CD_ONNX__ATTRIBUTE_PROTO__INIT;
    given.name = outer, given.has_i = true, given.i = 41;
    passed.name = inner, passed.ref_attr_name = outer;
    usual.name = inner, usual.has_i = true, usual.i = 42;
    p.name = own, p.ref_attr_name = inner;
    proto *first[] = {&given}, *second[] = {&passed};
    const proto *absent[] = {&usual};
    CdOnnx__NodeProto outer_call = CD_ONNX__NODE_PROTO__INIT,
                      inner_call = CD_ONNX__NODE_PROTO__INIT;
    outer_call.attribute = first, outer_call.n_attribute = 1;
    inner_call.attribute = second, inner_call.n_attribute = 1;
    const cd_onnx_scope top = {0};
    const cd_onnx_scope middle = {.call = &outer_call, .caller = &top};
    const cd_onnx_scope s = {
        .call = &inner_call, .caller = &middle, .absent = absent, .n_absent = 1};
    for (int k = 0; k < 3; k++) {
        cd_arena a = {0};
        uint32_t n;
        if (k == 1) inner_call.n_attribute = 0; /* the call leaves it out */
        const cd_onnx_scope bare = {.call = &inner_call, .caller = &middle};
        const cd_graph_attr *g = convert(&a, k < 2 ? &s : &bare, &p, 1, "Conv", &n);
        assert_int_equal(n, k < 2);
        if (k < 2)
            assert_true(!strcmp(g[0].name, "own") && g[0].kind == CD_GRAPH_ATTR_INT &&
                        g[0].i == 41 + k);
        cd_arena_free(&a);
    }
    static const cd_onnx_scope none = {0}; /* outside of all functions a reference means nothing */
    for (int k = 0; k < 3; k++) {
        cd_arena a = {0};
        uint32_t n;
        /* no call, a default */
        const cd_onnx_scope uncalled = {.caller = &middle, .absent = absent, .n_absent = 1};
        const cd_graph_attr *g = convert(&a,
                                         k == 0   ? NULL
                                         : k == 1 ? &none
                                                  : &uncalled,
                                         &p, 1, "Conv", &n);
        assert_int_equal(n, k == 2);
        if (n) assert_int_equal(g[0].i, 42);
        cd_arena_free(&a);
    }
}

TESTS(NULL, NULL, test_kinds, test_others_are_left_out, test_value_of_a_constant, test_references)
