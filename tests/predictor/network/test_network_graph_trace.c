/* Traces as graphs: layers, questions of both directions, what is wrong in a file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "base/core/mem.h"
#include "check.h"
#include "odd.h"
#include "predictor/network/network_internal.h"
#include "tmp.h"

#define HEADER                                                                                     \
    "op,target,_input_nodes,_args,meta,input_shapes,input_contiguous,contiguous,latency,fw_"       \
    "latency,bw_latency,acc_latency,output_shape,dtype,Name\n"
#define F32 "torch.float32"

static tmp_dir dir;

static int set_up(void **state) {
    (void)state;
    dir = tmp_make();
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    tmp_remove(&dir);
    return 0;
}

/* kind, target, rows that it reads, class of a module, their shapes, shape, type, name, ms of the
 * phases */
typedef struct row {
    const char *kind, *target, *from, *class, *in, *dense, *out, *type, *name;
    double forward, backward, update;
} row;

static const row NET[] = {
    {"placeholder", "ids", "{}", "", "[]", "[]", "(2, 16)", "torch.int64", "ids", 0, 0, 0},
    {"call_method", "size", "{ids: None}", "", "[[2, 16]]", "[True]", "(1,)", "", "size", 0.01, 0,
     0},
    {"call_module", "net.wte", "{ids: None}", "torch.nn.modules.sparse.Embedding", "[[2, 16]]",
     "[True]", "(2, 16, 8)", F32, "wte", 0.02, 0.06, 0.02},
    {"call_module", "net.h.0.ln", "{wte: None}", "torch.nn.modules.normalization.LayerNorm",
     "[[2, 16, 8]]", "[True]", "(2, 16, 8)", F32, "ln", 0.03, 0.06, 0.01},
    {"get_attr", "net.h.0.w", "{}", "", "[]", "[]", "(8, 24)", F32, "w", 0, 0, 0},
    {"get_attr", "net.h.0.b", "{}", "", "[]", "[]", "(24,)", F32, "b", 0, 0, 0},
    {"call_method", "view", "{ln: None}", "", "[[2, 16, 8]]", "[True]", "(32, 8)", F32, "view",
     0.01, 0, 0},
    {"call_function", "<built-in method addmm of type object at 0x7f>",
     "{b: None, view: None, w: None}", "", "[[24], [32, 8], [8, 24]]", "[True, True, True]",
     "(32, 24)", F32, "addmm", 0.5, 1.0, 0.1},
    {"call_method", "permute", "{addmm: None}", "", "[[32, 24]]", "[True]", "(2, 4, 16, 2)", F32,
     "q", 0.01, 0, 0},
    {"call_method", "transpose", "{q: None}", "", "[[2, 4, 16, 2]]", "[False]", "(2, 4, 2, 16)",
     F32, "kt", 0.01, 0, 0},
    {"call_function", "<built-in method matmul of type object at 0x7f>", "{q: None, kt: None}", "",
     "[[2, 4, 16, 2], [2, 4, 2, 16]]", "[False, False]", "(2, 4, 16, 16)", F32, "matmul", 0.4, 0.8,
     0},
    {"call_function", "<built-in function truediv>", "{matmul: None}", "", "[[2, 4, 16, 16]]",
     "[True]", "(2, 4, 16, 16)", F32, "truediv", 0.1, 0.1, 0},
    {"call_function", "<function softmax at 0x1>", "{truediv: None}", "", "[[2, 4, 16, 16]]",
     "[True]", "(2, 4, 16, 16)", F32, "softmax", 0.1, 0.3, 0},
    {"call_module", "net.h.0.drop", "{softmax: None}", "torch.nn.modules.dropout.Dropout",
     "[[2, 4, 16, 16]]", "[True]", "(2, 4, 16, 16)", F32, "drop", 0.1, 0.3, 0},
    {"call_method", "contiguous", "{drop: None}", "", "[[2, 4, 16, 16]]", "[False]", "(2, 16, 8)",
     F32, "contiguous", 0.1, 0.1, 0},
    {"call_function", "<built-in function add>", "{contiguous: None, wte: None}", "",
     "[[2, 16, 8], [2, 16, 8]]", "[True, True]", "(2, 16, 8)", F32, "add", 0.1, 0.02, 0},
    {"call_module", "net.ln_f", "{add: None}", "torch.nn.modules.normalization.LayerNorm",
     "[[2, 16, 8]]", "[True]", "(2, 16, 8)", F32, "ln_f", 0.03, 0.06, 0.01},
    {"call_module", "head", "{ln_f: None}", "torch.nn.modules.linear.Linear", "[[2, 16, 8]]",
     "[True]", "(2, 16, 100)", F32, "head", 1, 2, 0.1},
    {"output", "output", "{head: None}", "", "[[2, 16, 100]]", "[True]", "(2, 16, 100)", F32,
     "output", 0, 0, 0}};
enum { ROWS = sizeof NET / sizeof *NET, BEGIN = 3, END = 16, LAYERS = 3 };

static void put_row(cd_buf *b, const row *r, bool training) {
    cd_buf_putf(b,
                "%s,\"%s\",\"%s\",,\"{'m': (<class 'X'>), '': <class "
                "'%s'>}\",\"%s\",\"%s\",True,9,%g,%g,%g,\"%s\",%s,%s\n",
                r->kind, r->target, r->from, *r->class ? r->class : "Y", r->in, r->dense,
                r->forward, training ? r->backward : 0, training ? r->update : 0, r->out, r->type,
                r->name);
}

static const char *file(bool training, const char *json) {
    cd_buf b = {0};
    cd_buf_puts(&b, HEADER);
    for (int i = 0; i < ROWS; i++) put_row(&b, &NET[i], training);
    if (json) tmp_put(&dir, "net-x-1.json", json, strlen(json));
    else remove(tmp_path(&dir, "net-x-1.json"));
    const char *path = tmp_put(&dir, "net-x-1.csv", b.p, b.n);
    cd_buf_free(&b);
    return path;
}

static cdmpp_status read_beside(void *ctx, const char *text, size_t size, cdmpp_err *err) {
    cd_network_graph **g = NULL;
    size_t n = 0;
    (void)ctx, (void)size;
    const cdmpp_status st = cd_network_graph_trace_read(file(false, text), &g, &n, err);
    if (!st) cd_network_graph_free_all(g, n);
    return st;
}

static cd_network_graph *read_one(const char *path) {
    cdmpp_err err = {0};
    cd_network_graph **g = NULL, *one;
    size_t n = 0;
    assert_ok(cd_network_graph_trace_read(path, &g, &n, &err));
    assert_int_equal(n, 1);
    one = g[0];
    cd_mem_free(g);
    return one;
}

static const cd_network_node *node(const cd_network_graph *g, const char *name) {
    for (uint32_t i = 0; i < g->n_node; i++)
        if (!strcmp(g->node[i].name, name)) return &g->node[i];
    print_error("no node %s\n", name);
    fail();
    return NULL;
}

static bool comes_after(const cd_network_graph *g, const char *b, const char *a) {
    const cd_network_node *n = node(g, b), *m = node(g, a);
    for (uint32_t k = 0; k < n->n_after; k++)
        if (&g->node[g->after[n->first + k]] == m) return true;
    return false;
}

static void is_question(const cd_network_graph *g, const char *name, cd_library_op_kind kind,
                        double b, double m, double n, double k) {
    const cd_network_node *v = node(g, name);
    assert_non_null(v->question);
    assert_int_equal(v->kind, CD_NODE_LIBRARY);
    assert_int_equal(v->question->kind, kind);
    assert_close(v->question->b, b, 0, 0);
    assert_close(v->question->m, m, 0, 0);
    assert_close(v->question->n, n, 0, 0);
    assert_close(v->question->k, k, 0, 0);
}

static void questions(void **state) {
    cd_network_graph *g = read_one(file(false, NULL));
    (void)state;
    assert_string_equal(g->name, "net-x-1");
    assert_int_equal(g->batch, 2);
    assert_true(isnan(g->measured_s));
    assert_int_equal(node(g, "size")->kind, CD_NODE_FREE);
    assert_int_equal(node(g, "view")->kind, CD_NODE_FREE);
    static const char *const host[] = {"ids", "w", "b", "output"};
    for (size_t k = 0; k < sizeof host / sizeof *host; k++)
        assert_int_equal(node(g, host[k])->kind, CD_NODE_FREE);
    assert_int_equal(node(g, "drop")->kind, CD_NODE_FREE); /* nothing is dropped in inference */
    is_question(g, "ln", CD_LIBRARY_OP_LN, 1, 32, 8, 1);
    is_question(g, "addmm", CD_LIBRARY_OP_LINEAR, 1, 32, 24, 8);
    is_question(g, "matmul", CD_LIBRARY_OP_BMM, 8, 16, 16, 2);
    /* both sides are copied: 256 elements each */
    is_question(g, "matmul#2", CD_LIBRARY_OP_MULU, 1, 16, 16, 1);
    is_question(g, "matmul#3", CD_LIBRARY_OP_MULU, 1, 16, 16, 1);
    is_question(g, "truediv", CD_LIBRARY_OP_DIVU, 1, 128, 16, 1);
    is_question(g, "softmax", CD_LIBRARY_OP_SOFTMAX, 1, 128, 16, 1);
    is_question(g, "add", CD_LIBRARY_OP_ADD, 1, 32, 8, 1);
    is_question(g, "head", CD_LIBRARY_OP_LINEAR, 1, 32, 100, 8);
    assert_true(node(g, "addmm")->read_bytes == 4 * (24 + 32 * 8 + 8 * 24) &&
                node(g, "add")->read_bytes == 2 * 4 * 2 * 16 * 8 &&
                node(g, "add")->write_bytes == 4 * 2 * 16 * 8);
    assert_close(node(g, "addmm")->given_s, 0.5e-3, 1e-12, 0);
    assert_true(isnan(node(g, "view")->given_s));
    assert_true(comes_after(g, "add", "wte") && comes_after(g, "softmax", "truediv") &&
                comes_after(g, "truediv", "matmul#3"));
    cd_network_graph_free(g);
}

/* A trace that does not name the classes of modules: their names do. */
TEST(guessed_classes) {
    static const struct {
        const char *target, *in, *out;
        cd_library_op_kind kind;
        double m, n;
    } t[] = {{"a.LayerNorm", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_LN, 4, 8},
             {"a.ln_1", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_LN, 4, 8},
             {"a.layer_norm2", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_LN, 4, 8},
             {"a.pooler.activation", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_TANH, 4, 8},
             {"a.tanh", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_TANH, 4, 8},
             {"a.intermediate_act", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_GELU, 4, 8},
             {"a.gelu", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_GELU, 4, 8},
             {"a.act", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_RELU, 4, 8},
             {"a.wte", "[[4, 8]]", "(4, 8, 16)", CD_LIBRARY_OP_MULU, 32, 16},
             {"a.wpe", "[[4, 8]]", "(4, 8, 16)", CD_LIBRARY_OP_MULU, 32, 16},
             {"a.embed", "[[4, 8]]", "(4, 8, 16)", CD_LIBRARY_OP_MULU, 32, 16},
             {"a.softmax", "[[4, 8]]", "(4, 8)", CD_LIBRARY_OP_SOFTMAX, 4, 8},
             {"a.dense", "[[4, 8]]", "(4, 16)", CD_LIBRARY_OP_LINEAR, 4, 16}};
    cd_buf b = {0};
    cd_buf_puts(&b, HEADER "placeholder,x,{},,{},[],[],True,0,0,0,0,\"(4, 8)\"," F32 ",x\n");
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        cd_buf_putf(&b,
                    "call_module,%s,{x: None},,{},\"%s\",[True],True,9,1,0,0,\"%s\"," F32 ",m%zu\n",
                    t[k].target, t[k].in, t[k].out, k);
    cd_buf_puts(
        &b, "call_module,a.dropout,{x: None},,{},\"[[4, 8]]\",[True],True,9,1,0,0,\"(4, 8)\"," F32
            ",free\n");
    remove(tmp_path(&dir, "guess.json"));
    cd_network_graph *g = read_one(tmp_put(&dir, "guess.csv", b.p, b.n));
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        char name[8];
        snprintf(name, sizeof name, "m%zu", k);
        is_question(g, name, t[k].kind, 1, t[k].m, t[k].n,
                    t[k].kind == CD_LIBRARY_OP_LINEAR ? 8 : 1);
    }
    assert_int_equal(node(g, "free")->kind, CD_NODE_FREE);
    cd_network_graph_free(g);
    cd_buf_free(&b);
}

static void layers(void **state) {
    cd_network_graph *one = read_one(file(false, NULL));
    cd_network_graph *g = read_one(
        file(false, "{\"num_layer\": 3, \"e2e_latency\": 12.5, \"batch\": 7, \"device\": \"t4\"}"));
    (void)state;
    assert_true(one->layers_unknown && !g->layers_unknown);
    assert_close(g->measured_s, 12.5e-3, 1e-12, 0);
    assert_int_equal(g->batch, 7);
    assert_string_equal(g->device, "t4");
    /* matmul is three nodes */
    assert_int_equal(g->n_node, one->n_node + (LAYERS - 1) * (END - BEGIN + 2));
    assert_true(comes_after(g, "ln", "wte") && comes_after(g, "ln#2", "add") &&
                comes_after(g, "ln#3", "add#2"));
    assert_true(comes_after(g, "add#2", "add") && !comes_after(g, "add#2", "wte"));
    assert_true(comes_after(g, "ln_f", "add#3") && !comes_after(g, "ln_f", "add"));
    for (uint32_t i = 0; i < g->n_node; i++)
        for (uint32_t k = 0; k < g->node[i].n_after; k++)
            assert_true(g->after[g->node[i].first + k] < i);
    cd_network_graph_free(g);
    cd_network_graph_free(one);
}

static double sum_of(const cd_network_graph *g, cd_node_phase is, const char *base, double *flop) {
    double s = 0;
    *flop = 0;
    for (uint32_t i = 0; i < g->n_node; i++) {
        const cd_network_node *n = &g->node[i];
        if (n->phase != is || strncmp(n->name, base, strlen(base)) != 0 ||
            !(n->name[strlen(base)] == '#' || !n->name[strlen(base)]))
            continue;
        s += isnan(n->given_s) ? 0 : n->given_s;
        if (!isnan(n->flop) &&
            (n->question->kind == CD_LIBRARY_OP_LINEAR || n->question->kind == CD_LIBRARY_OP_BMM))
            *flop += n->flop;
    }
    return s;
}

/* Gradients of a product are two products of as many operations; times of a phase are dealt out and
 * none is lost. */
static void training(void **state) {
    cd_network_graph *g = read_one(file(true, NULL));
    (void)state;
    double f[3];
    for (int i = 0; i < ROWS; i++) {
        const row *r = &NET[i];
        const double s[3] = {sum_of(g, CD_PHASE_FORWARD, r->name, &f[0]),
                             sum_of(g, CD_PHASE_BACKWARD, r->name, &f[1]),
                             sum_of(g, CD_PHASE_UPDATE, r->name, &f[2])};
        if (node(g, r->name)->kind == CD_NODE_FREE || !strcmp(r->name, "add")) continue;
        assert_close(s[0], 1e-3 * r->forward, 1e-9, 0);
        assert_close(s[1], 1e-3 * r->backward, 1e-9, 0);
        assert_close(s[2], 1e-3 * r->update, 1e-9, 0);
        assert_close(f[1], 2 * f[0], 1e-12, 0);
    }
    assert_int_equal(node(g, "drop")->kind, CD_NODE_LIBRARY);
    is_question(g, "head#2", CD_LIBRARY_OP_LINEAR, 1, 32, 8, 100); /* of the input */
    is_question(g, "head#3", CD_LIBRARY_OP_LINEAR, 1, 100, 8, 32); /* of the weights */
    is_question(g, "head#5", CD_LIBRARY_OP_ADD, 1, 100, 8, 1);     /* added to those before */
    is_question(g, "matmul#4", CD_LIBRARY_OP_BMM, 8, 16, 2, 16);
    is_question(g, "matmul#5", CD_LIBRARY_OP_BMM, 8, 2, 16, 16);
    /* a table of 100 rows is zeroed */
    is_question(g, "wte#2", CD_LIBRARY_OP_MULU, 1, 50, 8, 1);
    is_question(g, "wte#4", CD_LIBRARY_OP_ADD, 1, 100, 8, 1);
    assert_true(comes_after(g, "softmax#2", "drop#4") && comes_after(g, "head#2", "output"));
    cd_network_graph_free(g);
}

/* A list of results has no type, and gradients go through it; they do not go through its length. */
static void gradient_through_a_list(void **state) {
    static const row list[] = {
        {"placeholder", "ids", "{}", "", "[]", "[]", "(2, 16)", "torch.int64", "ids", 0, 0, 0},
        {"call_module", "net.wte", "{ids: None}", "torch.nn.modules.sparse.Embedding", "[[2, 16]]",
         "[True]", "(2, 16)", F32, "wte", 0.02, 0.06, 0.02},
        {"call_method", "split", "{wte: None}", "", "[[2, 16]]", "[True]", "(1,)", "", "split",
         0.01, 0, 0},
        {"call_function", "<built-in function getitem>", "{split: None}", "", "[[1]]", "[True]",
         "(2, 8)", F32, "part", 0.01, 0, 0},
        {"call_function", "<built-in method tanh of type object at 0x1>", "{part: None}", "",
         "[[2, 8]]", "[True]", "(2, 8)", F32, "tanh", 0.01, 0.01, 0},
        {"call_method", "size", "{wte: None}", "", "[[2, 16]]", "[True]", "(1,)", "", "size", 0.01,
         0, 0},
        {"call_function", "<built-in method full of type object at 0x1>", "{size: None}", "",
         "[[1]]", "[True]", "(2, 8)", F32, "full", 0.01, 0, 0}};
    double flop;
    cd_buf b = {0};
    (void)state;
    cd_buf_puts(&b, HEADER);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) put_row(&b, &list[i], true);
    cd_network_graph *g = read_one(tmp_put(&dir, "list.csv", b.p, b.n));
    cd_buf_free(&b);
    assert_close(sum_of(g, CD_PHASE_BACKWARD, "tanh", &flop), 1e-5, 1e-9, 0);
    assert_true(comes_after(g, "part#2", "tanh#2"));
    for (uint32_t i = 0; i < g->n_node; i++)
        assert_false(g->node[i].phase == CD_PHASE_BACKWARD && !strncmp(g->node[i].name, "full", 4));
    cd_network_graph_free(g);
}

static void no_gradient_of_numbers(void **state) {
    cd_network_graph *g = read_one(file(true, NULL));
    (void)state;
    for (uint32_t i = 0; i < g->n_node; i++)
        if (g->node[i].phase != CD_PHASE_FORWARD) assert_null(strstr(g->node[i].name, "ids"));
    cd_network_graph_free(g);
}

static void rows_of_tables(void **state) {
    cd_torch_trace_task t[CD_TORCH_TRACE_TASKS];
    cd_torch_trace_op r = {.kind = "call_function",
                           .verb = "add",
                           .name = "x",
                           .n_in = 2,
                           .dtype = CD_LIBRARY_OP_DTYPE_F32,
                           .real = true};
    (void)state;
    r.out = r.in[0] = (cd_torch_trace_shape){.n = 2, .d = {64, 32}, .bytes = 4};
    r.in[1] = (cd_torch_trace_shape){.n = 1, .d = {1}, .bytes = 4};
    assert_int_equal(cd_torch_trace_tasks(&r, t), 1);
    assert_int_equal(t[0].question.kind, CD_LIBRARY_OP_ADDU); /* a number */
    r.in[1] = (cd_torch_trace_shape){.n = 1, .d = {32}, .bytes = 4};
    assert_int_equal(cd_torch_trace_tasks(&r, t), 1);
    assert_int_equal(t[0].question.kind, CD_LIBRARY_OP_ADD); /* a row for each row */
    r.verb = "to"; /* to another type: 2048 elements of 4 bytes become 8 */
    r.n_in = 1;
    r.out.bytes = 8;
    assert_int_equal(cd_torch_trace_tasks(&r, t), 1);
    assert_close(t[0].question.m * t[0].question.n, 2048 * 12 / 8, 0, 0);
    r.out.bytes = 4;
    assert_int_equal(cd_torch_trace_tasks(&r, t), 1);
    assert_int_equal(t[0].kind, CD_NODE_FREE); /* to the same type */
    r.verb = "fft";
    assert_int_equal(cd_torch_trace_tasks(&r, t), 1);
    assert_int_equal(t[0].kind, CD_NODE_UNKNOWN);
    assert_string_equal(t[0].op, "fft");
    r.verb = "matmul"; /* of a matrix: a linear */
    r.n_in = 2;
    r.in[1] = (cd_torch_trace_shape){.n = 2, .d = {32, 7}, .bytes = 4};
    r.out.d[1] = 7;
    assert_int_equal(cd_torch_trace_tasks(&r, t), 1);
    assert_int_equal(t[0].question.kind, CD_LIBRARY_OP_LINEAR);
    assert_close(t[0].question.k, 32, 0, 0);
    r.out.d[0] = 0; /* nothing to do */
    assert_int_equal(cd_torch_trace_tasks(&r, t), 1);
    assert_int_equal(t[0].kind, CD_NODE_FREE);
}

static void wrong(void **state) {
    static const struct {
        const char *line;
        cdmpp_status is;
        const char *says;
    } bad[] = {
        {"x,y,\"{}\",,,[],[],True,0,0,0,0,\"(2, 16)\",torch.int64,a", CDMPP_OK, NULL},
        {"x,y,\"{b: None}\",,,[],[],True,0,0,0,0,\"(2, 16)\",torch.int64,a", CDMPP_EINVALID,
         "not before it"},
        {"x,y,\"{a: None}\",,,[],[],True,0,0,0,0,\"(2, 16)\",torch.int64,a", CDMPP_EINVALID,
         "not before it"},
        {"x,y,{},,,[],[],True,0,0,0,0,\"2, 16\",torch.int64,a", CDMPP_EPARSE, "shape"},
        {"x,y,{},,,[],[],True,0,0,0,0,\"(2, 16\",torch.int64,a", CDMPP_EPARSE, "no end"},
        {"x,y,{},,,[],[],True,0,0,0,0,\"(2, -16)\",torch.int64,a", CDMPP_EPARSE, "whole"},
        {"x,y,{},,,[],[],True,0,0,0,0,\"(99999999, 99999999)\",torch.int64,a", CDMPP_ERANGE,
         "elements"},
        {"x,y,{},,,[],[],True,0,0,0,0,\"(1,1,1,1,1,1,1,1,1)\",torch.int64,a", CDMPP_ERANGE,
         "dimensions"},
        {"x,y,{},,,,[],True,0,0,0,0,\"(2, 16)\",torch.int64,a", CDMPP_EPARSE, "list of shapes"},
        {"x,y,{},,,[],[],True,0,-1,0,0,\"(2, 16)\",torch.int64,a", CDMPP_ERANGE, "ms"},
        {"x,y,{},,,[],[],True,0,soon,0,0,\"(2, 16)\",torch.int64,a", CDMPP_EPARSE, "milliseconds"},
        {"x,y,{},,,[],[],True,0,0,0,0,\"(2, 16)\",int64,a", CDMPP_ESCHEMA, "type"},
        {"x,\"y,{},,,[],[],True,0,0,0,0,(2),torch.int64,a", CDMPP_EPARSE, "quoted"},
        {"x,y,{},,,[],[],True,0,0,0,0,\"(2, 16)\",torch.int64,a\nx,y,{},,,[],[],True,0,0,0,0,\"(2, "
         "16)\",torch.int64,a",
         CDMPP_EINVALID, "two rows"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cdmpp_err err = {0};
        cd_network_graph **g;
        size_t n;
        char text[1024];
        const int len = snprintf(text, sizeof text, HEADER "%s\n", bad[i].line);
        assert_status(
            cd_network_graph_trace_read(tmp_put(&dir, "bad.csv", text, (size_t)len), &g, &n, &err),
            bad[i].is);
        if (!bad[i].is) {
            cd_network_graph_free(g[0]);
            cd_mem_free(g);
            continue;
        }
        assert_non_null(strstr(err.msg, bad[i].says));
        assert_int_equal(err.line,
                         bad[i].is == CDMPP_EINVALID && strstr(bad[i].says, "two") ? 3 : 2);
    }
}

static void wrong_files(void **state) {
    static const struct {
        const char *text;
        cdmpp_status is;
    } bad[] = {
        {"", CDMPP_ESCHEMA}, {"op,target,_input_nodes\n", CDMPP_ESCHEMA}, {HEADER, CDMPP_ERANGE}};
    static const char *const json[] = {"{\"num_layer\": -1}", "{\"num_layer\": \"x\"}", "{",
                                       "{\"device\": 3}", "{\"e2e_latency\": -1}"};
    cd_network_graph **g;
    size_t n;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cdmpp_err err = {0};
        assert_status(cd_network_graph_trace_read(
                          tmp_put(&dir, "bad.csv", bad[i].text, strlen(bad[i].text)), &g, &n, &err),
                      bad[i].is);
        assert_non_null(strstr(err.path, "bad.csv"));
    }
    for (size_t i = 0; i < sizeof json / sizeof *json; i++) {
        cdmpp_err err = {0};
        assert_int_not_equal(cd_network_graph_trace_read(file(false, json[i]), &g, &n, &err),
                             CDMPP_OK);
        assert_non_null(strstr(err.path, "net-x-1.json"));
    }
    cdmpp_err err = {0};
    assert_status(cd_network_graph_trace_read(tmp_path(&dir, "none.csv"), &g, &n, &err), CDMPP_EIO);
}

/* The file's form is seen by its first line. */
static void by_content(void **state) {
    cdmpp_err err = {0};
    cd_network_graph **g;
    size_t n;
    (void)state;
    assert_ok(cd_network_graph_read(file(false, NULL), &g, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(g[0]->name, "net-x-1");
    cd_network_graph_free(g[0]);
    cd_mem_free(g);
}

static void no_memory(void **state) {
    const char *path = file(true, "{\"num_layer\": 2}");
    FAULT_SWEEP(f, 1) {
        cd_network_graph **g = NULL;
        size_t n = 0;
        f.st = cd_network_graph_trace_read(path, &g, &n, &f.err);
        if (!f.st) cd_network_graph_free_all(g, n);
    }
    (void)state;
}

static cdmpp_status read_odd(const char *path, cdmpp_err *err) {
    cd_network_graph **g = NULL;
    size_t n = 0;
    const cdmpp_status st = cd_network_graph_trace_read(path, &g, &n, err);
    if (!st) cd_network_graph_free_all(g, n);
    return st;
}

/* A trace with anything odd in its rows, and beside it a file with anything odd. */
TEST(odd_files) {
    cdmpp_err err = {0};
    char *text, path[256];
    size_t n;
    snprintf(path, sizeof path, "%s", file(true, "{\"num_layer\": 3}"));
    assert_ok(cd_file_read(path, 0, &text, &n, &err));
    text[n] = 0;
    odd_all_of_file(path, text, read_odd);
    cd_mem_free(text);
    odd_all("{\"num_layer\": 3, \"batch_size\": 8, \"device\": \"V100\", \"e2e_latency\": 12.5}",
            read_beside, NULL);
}

TESTS(set_up, tear_down, questions, guessed_classes, layers, training, no_gradient_of_numbers,
      gradient_through_a_list, rows_of_tables, wrong, wrong_files, by_content, odd_files, no_memory)
