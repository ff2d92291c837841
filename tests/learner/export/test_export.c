/* Other forms of a model: read back what can be, walk the ONNX file by protobuf's rules, refuse the
 * rest. What the files say in Python: scripts/check_export.sh. */
#include "learner/export/export.h"
#include "check.h"
#include "fault.h"

#include <string.h>

#include "learner/train/train.h"
#include "learner/model/model.h"
#include "learner/export/export_internal.h"
#include "made_model.h"

#define GOLDEN "tests/golden/model_v2.cdmpp"

static cd_model *model;

static int setup(void **state) {
    (void)state;
    return cd_model_load(GOLDEN, &model, NULL) != CDMPP_OK;
}

static int teardown(void **state) {
    (void)state;
    cd_model_free(model);
    return 0;
}

static size_t first_of(cd_member_kind kind) {
    size_t j = 0;
    while (model->member[j].kind != kind) j++;
    return j;
}

TEST(trees_read_back) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_xgb *g;
    const size_t j = first_of(CD_MEMBER_ROWS), width = cd_tree_input_width(CD_TREE_INPUT_ROWS);
    float x[200] = {0}, y, z;
    assert_ok(cd_export_model(model, CD_EXPORT_XGBOOST, (int)j, &b, &err));
    assert_ok(cd_xgb_load(b.p, b.n, width, &g, &err));
    for (size_t c = 0; c < width; c++) x[c] = (float)(c % 9);
    assert_ok(cd_xgb_predict(g, x, 1, width, &y, &err));
    assert_ok(cd_xgb_predict(model->member[j].gbt, x, 1, width, &z, &err));
    assert_true(memcmp(&y, &z, sizeof y) == 0);
    cd_xgb_free(g);
    cd_buf_free(&b);
}

/* One network's file is one that we read, too. */
TEST(network_reads_back) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_net *net;
    cd_scalers s;
    const size_t j = first_of(CD_MEMBER_TSF);
    assert_ok(cd_export_model(model, CD_EXPORT_SAFETENSORS, (int)j, &b, &err));
    assert_ok(cd_net_load(b.p, b.n, &net, &s, &err));
    const cd_params *p = cd_net_params_of(net), *q = cd_net_params_of(model->member[j].net);
    assert_int_equal(p->n_float, q->n_float);
    assert_memory_equal(p->value, q->value, p->n_float * sizeof(float));
    cd_scalers_free(&s);
    cd_net_free(net);
    cd_buf_free(&b);
}

TEST(all_networks_are_a_list) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    cd_arena a = {0};
    cd_safetensors f;
    size_t want = 0;
    char name[80];
    assert_ok(cd_export_model(model, CD_EXPORT_SAFETENSORS, -1, &b, &err));
    assert_ok(cd_safetensors_open(&a, b.p, b.n, &f, &err));
    for (size_t j = 0; j < model->n_member; j++)
        if (model->member[j].net)
            want += cd_net_params_of(model->member[j].net)->n + CD_SCALERS_TENSORS;
    assert_int_equal(cd_safetensors_count(&f), want);
    snprintf(name, sizeof name, "%zu.encoder.layers.0.self_attn.in_proj_weight",
             first_of(CD_MEMBER_TSF));
    float w[48 * 16];
    assert_ok(cd_safetensors_get(&f, name, 2, (const size_t[]){48, 16}, w, &err));
    snprintf(name, sizeof name, "%zu.cdmpp.label", first_of(CD_MEMBER_MLP));
    assert_non_null(cd_safetensors_meta(&f, name));
    cd_arena_free(&a);
    cd_buf_free(&b);
}

TEST(refuses) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    const int trees = (int)first_of(CD_MEMBER_ROWS), net = (int)first_of(CD_MEMBER_MLP);
    /* two folds */
    assert_status(cd_export_model(model, CD_EXPORT_XGBOOST, -1, &b, &err), CDMPP_EUSAGE);
    assert_status(cd_export_model(model, CD_EXPORT_XGBOOST, net, &b, &err), CDMPP_EUSAGE);
    assert_status(cd_export_model(model, CD_EXPORT_SAFETENSORS, trees, &b, &err), CDMPP_EUSAGE);
    assert_status(cd_export_model(model, CD_EXPORT_SAFETENSORS, 99, &b, &err), CDMPP_EUSAGE);
    assert_status(cd_export_model(model, CD_EXPORT_ONNX, 0, &b, &err), CDMPP_EUSAGE);
    assert_int_equal(b.n, 0);
}

/* ---- protobuf ---- */
typedef struct {
    const unsigned char *p, *end;
} wire;

static uint64_t varint(wire *w) {
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(w->p < w->end && shift < 64);
        v |= (uint64_t)(*w->p & 127) << shift;
        if (!(*w->p++ & 128)) return v;
    }
}

/* Next field; its bytes in *in when it has any. */
static unsigned field(wire *w, wire *in, uint64_t *number) {
    const uint64_t key = varint(w);
    size_t n = 0;
    if ((key & 7) == 0) *number = varint(w);
    else if ((key & 7) == 5) n = 4;
    else {
        assert_int_equal(key & 7, 2);
        n = (size_t)varint(w);
    }
    assert_true(n <= (size_t)(w->end - w->p));
    *in = (wire){w->p, w->p + n};
    w->p += n;
    return (unsigned)(key >> 3);
}

static bool is(const wire *w, const char *text) {
    return (size_t)(w->end - w->p) == strlen(text) && !memcmp(w->p, text, strlen(text));
}

/* Every message of the graph ends where it says; nodes read what is there before them. */
TEST(graph_is_whole) {
    cdmpp_err err = {0};
    cd_buf b = {0};
    wire in, graph = {0}, node;
    uint64_t number = 0;
    size_t nodes = 0, outputs = 0, trees = 0, norms = 0, constants = 0;
    assert_ok(cd_export_model(model, CD_EXPORT_ONNX, -1, &b, &err));
    wire w = {(const unsigned char *)b.p, (const unsigned char *)b.p + b.n};
    while (w.p < w.end)
        if (field(&w, &in, &number) == 7) graph = in;
    assert_non_null(graph.p);
    while (graph.p < graph.end) {
        const unsigned f = field(&graph, &node, &number);
        nodes += f == 1;
        outputs += f == 12;
        constants += f == 5;
        while (node.p < node.end && f == 1) {
            if (field(&node, &in, &number) != 4) continue;
            trees += is(&in, "TreeEnsembleRegressor");
            norms += is(&in, "LayerNormalization");
        }
    }
    assert_int_equal(outputs, 2);
    assert_int_equal(trees, 2);
    assert_true(norms > 4 && nodes > 200 && constants > 100);
    cd_buf_free(&b);
}

TEST(bytes_of_a_file) {
    cdmpp_err err = {0};
    cd_onnx_writer f = {0};
    cd_buf b = {0};
    static const char node[] = "\x0a\x01x\x0a\x01x\x12\x02v0\x22\x03"
                               "Add";
    cd_onnx_writer_input(&f, "x", CD_ONNX_F32, &(int64_t){-1}, 1);
    cd_onnx_writer_attr_int(&f, "big", 300);
    const char *y = CD_ONNX_WRITER_NODE(&f, "Add", "x", "x");
    assert_string_equal(y, "v0");
    assert_ok(cd_onnx_writer_end(&f, "g", &b, &err));
    assert_non_null(memmem(b.p, b.n, node, sizeof node - 1));
    /* 300 = ac 02; type 2 under number 20 */
    assert_non_null(memmem(b.p, b.n,
                           "\x2a\x0b\x0a\x03"
                           "big\x18\xac\x02\xa0\x01\x02",
                           13));
    assert_int_equal(b.p[0], 0x08);
    assert_int_equal(b.p[1], CD_ONNX_IR);
    cd_onnx_writer_free(&f);
    cd_buf_free(&b);
}

/* The answers of these graphs in Python were compared with ours (scripts/check_export.sh): the
 * graphs stay. */
TEST(exports_of_golden_models_stay) {
    static const struct {
        int version;
        const char *md5;
    } want[] = {{1, "095d15a23fbe1c7301a90281d8c3765d"},
                {2, "2bfda5b944a5bf07d07545db49a30b83"},
                {3, "831b577a87fead7886ac1ea90f3c2042"}};
    for (size_t k = 0; k < 3; k++) {
        cdmpp_err err = {0};
        cd_buf b = {0};
        cd_model *m;
        char path[60], md5[33];
        snprintf(path, sizeof path, "tests/golden/model_v%d.cdmpp", want[k].version);
        assert_ok(cd_model_load(path, &m, &err));
        assert_ok(cd_export_model(m, CD_EXPORT_ONNX, -1, &b, &err));
        wire w = {(const unsigned char *)b.p, (const unsigned char *)b.p + b.n}, in, graph = {0};
        uint64_t number;
        while (w.p < w.end)
            if (field(&w, &in, &number) == 7) graph = in;
        cd_md5_hex(graph.p, (size_t)(graph.end - graph.p), md5);
        assert_string_equal(md5, want[k].md5);
        cd_buf_free(&b);
        cd_model_free(m);
    }
}

static void refused(const char *members, const char *why) {
    static const char *const target[] = {"llvm -model=one"};
    const char *const set[] = {
        members,    "net.device=false", "fit.epochs=1",     "net.width=8",
        "net.ff=8", "net.embed=8",      "net.head_width=8", "net.decoder_width=8"};
    cdmpp_err err = {0};
    char h5[256], path[256];
    cd_task_registry *tasks;
    cd_model *m;
    cd_buf b = {0};
    tmp_dir dir = tmp_make();
    snprintf(path, sizeof path, "%s", tmp_path(&dir, "m.cdmpp"));
    assert_ok(cd_task_registry_new(&tasks, &err));
    assert_ok(cd_task_registry_load(tasks, MADE_TASKS, &err));
    assert_ok(made_extract(&dir, cd_task_registry_at(tasks, 0)->workload_key, target, 1, h5, &err));
    assert_ok(made_learn(h5, set, 8, path, &err));
    assert_ok(cd_model_load(path, &m, &err));
    assert_status(cd_export_model(m, CD_EXPORT_ONNX, -1, &b, &err), CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, why));
    assert_ok(cd_export_model(m, CD_EXPORT_SAFETENSORS, -1, &b, &err));
    cd_buf_free(&b);
    cd_model_free(m);
    cd_task_registry_free(tasks);
    tmp_remove(&dir);
}

TEST(loop_nests_are_refused) { refused("model.members=[lstm]", "reads loop nests"); }
TEST(steps_are_refused) { refused("model.members=[tlp]", "reads steps of schedules"); }

/* The k-th allocation fails, for k spread over all of them. */
TEST(memory_runs_out) {
    for (int form = 0; form < 2; form++) FAULT_SWEEP(f, 1) {
            cd_buf b = {0};
            f.step = 1 + f.k / 8;
            f.st = cd_export_model(model, (cd_export_form)form, -1, &b, &f.err);
            cd_buf_free(&b);
        }
}

TESTS(setup, teardown, trees_read_back, network_reads_back, all_networks_are_a_list, refuses,
      bytes_of_a_file, graph_is_whole, exports_of_golden_models_stay, loop_nests_are_refused,
      steps_are_refused, memory_runs_out)
