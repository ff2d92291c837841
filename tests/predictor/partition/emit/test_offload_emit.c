/* Emitted regions compiled with their own makefile and run: against the definitions computed
 * element by element. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text/text.h"
#include "check.h"
#include "noopencl.h"
#include "predictor/partition/emit/emit.h"
#include "profiler/backend/backend.h"
#include "teeval.h"
#include "tmp.h"

static cdmpp_err err;

/* ---- networks ---- */

static uint32_t add(cd_graph *g, const char *name, const char *op, uint32_t x, uint32_t w,
                    const cd_graph_attr *a, uint32_t n) {
    const uint32_t in[2] = {x, w};
    uint32_t out;
    assert_ok(cd_graph_add(g, name, op, in, w == CD_GRAPH_NONE ? 1 : 2, a, n, &out, 1, &err));
    return out;
}

static uint32_t conv(cd_graph *g, const char *name, uint32_t x, int64_t from, int64_t to) {
    static const int64_t three[] = {3, 3}, pads[] = {1, 1, 1, 1};
    const cd_graph_attr a[] = {
        {.name = "kernel_shape", .kind = CD_GRAPH_ATTR_INTS, .n = 2, .ints = three},
        {.name = "pads", .kind = CD_GRAPH_ATTR_INTS, .n = 4, .ints = pads}};
    uint32_t w;
    char weight[40];
    snprintf(weight, sizeof weight, "%s.w", name);
    assert_ok(cd_graph_weight(g, weight, CD_F32, &(cd_graph_shape){4, {to, from, 3, 3}}, &w, &err));
    return add(g, name, "Conv", x, w, a, 2);
}

/* conv0 relu0 ─> conv1 relu1 ─> sum with conv2 of relu0, max pooled; one weight is read twice. */
static cd_network_loaded net(void) {
    static const int64_t two[] = {2, 2};
    const cd_graph_attr pool[] = {
        {.name = "kernel_shape", .kind = CD_GRAPH_ATTR_INTS, .n = 2, .ints = two},
        {.name = "strides", .kind = CD_GRAPH_ATTR_INTS, .n = 2, .ints = two}};
    cd_graph *g;
    cd_network_loaded l;
    uint32_t x, a, b;
    assert_ok(cd_graph_new("small", &g, &err));
    assert_ok(cd_graph_input(g, "image", CD_F32, &(cd_graph_shape){4, {1, 3, 12, 12}}, &x, &err));
    a = add(g, "relu0", "Relu", conv(g, "conv0", x, 3, 8), CD_GRAPH_NONE, NULL, 0);
    b = add(g, "relu1", "Relu", conv(g, "conv1", a, 8, 8), CD_GRAPH_NONE, NULL, 0);
    b = add(g, "sum", "Add", conv(g, "conv2", a, 8, 8), b, NULL, 0);
    b = add(g, "pool", "MaxPool", b, CD_GRAPH_NONE, pool, 2);
    const uint32_t last = add(g, "soft", "Softmax", b, CD_GRAPH_NONE, NULL, 0);
    assert_ok(cd_graph_result(g, last, &err));
    assert_ok(cd_graph_result(g, b, &err));
    assert_ok(cd_network_load(&(cd_network_load_options){.network = "",
                                                         .graph = g,
                                                         .target = "llvm -num-cores=1",
                                                         .layout = CD_WORKLOAD_LAYOUT_NCHW},
                              &l, &err));
    return l;
}

/* ---- the truth ---- */

static double *leaf(const cd_workload_buffer *b, uint32_t k) {
    const int64_t n = cd_graph_shape_elements(&b->shape);
    double *p = calloc((size_t)n + 1, sizeof *p);
    char *raw = calloc((size_t)n + 1, 8);
    assert_true(b->is_const ? cd_tensor_fill_weight(b->dtype, k, b->shape.rank, b->shape.dim, raw)
                            : cd_tensor_fill(b->dtype, k, 0, (size_t)n, raw));
    for (int64_t i = 0; i < n; i++)
        p[i] = b->value == b->value ? b->value
               : b->dtype == CD_F32 ? (double)((float *)(void *)raw)[i]
               : b->dtype == CD_I64 ? (double)((int64_t *)(void *)raw)[i]
                                    : (double)((int32_t *)(void *)raw)[i];
    free(raw);
    return p;
}

/* Of value v. */
static double **truth(const cd_network_loaded *l) {
    const cd_workload *w = l->work;
    double **mem = calloc(w->n_buffer + 1, sizeof *mem);
    for (uint32_t i = 0; i < w->n_buffer; i++)
        mem[i] =
            w->buffer[i].group == CD_GRAPH_NONE
                ? leaf(&w->buffer[i], i)
                : calloc((size_t)cd_graph_shape_elements(&w->buffer[i].shape) + 1, sizeof **mem);
    for (uint32_t g = 0; g < w->n_group; g++) {
        double *arg[16];
        assert_true(w->group[g].n_read < 15);
        for (uint32_t k = 0; k < w->group[g].n_read; k++) arg[k] = mem[w->group[g].read[k]];
        arg[w->group[g].n_read] = mem[w->group[g].write];
        const char *why =
            te_run(cd_task_registry_at(w->tasks, w->task[w->group[g].task].task)->dag, arg);
        if (why) fail_msg("%s", why);
    }
    return mem;
}

static void free_truth(const cd_network_loaded *l, double **mem) {
    for (uint32_t i = 0; i < l->work->n_buffer; i++) free(mem[i]);
    free(mem);
}

/* Largest difference of the dumped results, by each result's largest value. */
static double differs(const cd_network_loaded *l, double *const *want, const char *path) {
    const cd_workload *w = l->work;
    double worst = 0;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    for (uint32_t k = 0; k < w->graph->n_output; k++) {
        const int64_t n = cd_graph_shape_elements(&w->buffer[w->output[k]].shape);
        double far = 0, most = 0;
        for (int64_t i = 0; i < n; i++) {
            float x;
            assert_int_equal(fread(&x, 4, 1, f), 1);
            far = fmax(far, fabs((double)x - want[w->output[k]][i]));
            most = fmax(most, fabs(want[w->output[k]][i]));
        }
        assert_true(most > 0);
        worst = fmax(worst, far / most);
    }
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    return worst;
}

/* ---- emitting ---- */

typedef struct {
    cd_network_loaded l;
    cd_offload_rules *q;
    cd_offload_net_match r;
    cd_offload_net_plan plan;
    cd_emit_files files;
    tmp_dir dir;
} bench;

static void plan(bench *b, cd_network_loaded l, const char *rules) {
    cd_place_link link[2] = {{.from = 0, .to = 1, .latency_s = 1e-6, .bytes_per_s = 1e9},
                             {.from = 1, .to = 0, .latency_s = 1e-6, .bytes_per_s = 1e9}};
    b->l = l;
    assert_ok(cd_offload_parse("x.rules", rules, strlen(rules), &b->q, &err));
    assert_ok(
        cd_offload_match_apply(&(cd_offload_match_options){&b->l, b->q, 0, NULL}, &b->r, &err));
    double *s = calloc((size_t)b->r.n_group * b->r.n_device + 1, sizeof *s);
    for (uint32_t k = 0; k < b->r.n_group * b->r.n_device; k++) s[k] = 1e-4;
    assert_ok(cd_offload_plan_make(
        &(cd_offload_plan_options){
            .rules = &b->r, .seconds = s, .link = link, .n_link = b->r.n_device > 1 ? 2 : 0},
        NULL, &b->plan, &err));
    free(s);
}

static void emit(bench *b, const cd_emit_backend *other, bool naive) {
    const cd_emit_backend *const back[] = {&cd_emit_c, other};
    static const char *const target[] = {"llvm -num-cores=1", "opencl"};
    assert_ok(cd_offload_emit(
        &(cd_offload_emit_options){.plan = &b->plan,
                                   .backend = back,
                                   .target = other == &cd_emit_opencl
                                                 ? target
                                                 : (const char *const[]){target[0], target[0]},
                                   .naive = naive},
        &b->files, &err));
    b->dir = tmp_make();
    assert_ok(cd_emit_write(&b->files, b->dir.path, &err));
}

static void done(bench *b) {
    tmp_remove(&b->dir);
    cd_emit_files_free(&b->files);
    cd_offload_net_plan_free(&b->plan);
    cd_offload_match_done(&b->r);
    cd_offload_free(b->q);
    cd_network_load_free(&b->l);
}

static void shell(const bench *b, const char *command) {
    char text[512];
    snprintf(text, sizeof text, "cd %s && { %s; } > log 2>&1", b->dir.path, command);
    if (system(text)) {
        snprintf(text, sizeof text, "cat %s/log >&2", b->dir.path);
        (void)!system(text);
        fail_msg("%s", command);
    }
}

static const cd_emit_file *file(const bench *b, const char *name) {
    for (uint32_t k = 0; k < b->files.n; k++)
        if (!strcmp(b->files.file[k].name, name)) return &b->files.file[k];
    return NULL;
}

static uint32_t count(const char *text, const char *word) {
    uint32_t n = 0;
    for (const char *p = text; (p = strstr(p, word)); p += strlen(word)) n++;
    return n;
}

#define MAKE "make -s CFLAGS='-O1' OPENMP= MAKEFLAGS="
static const char npu[] =
    "host cpu\nsupport npu conv2d relu add\nformat npu dtype=int8 layout=nhwc\nplace conv* npu\n";

/* C on both; one of them through a back end that cannot run, with the stand-in. Values, and values
 * with int8 between devices. */
static void test_values(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) {
        bench b;
        plan(&b, net(), npu);
        assert_true(b.plan.n_region >= 2 && b.plan.n_boundary >= 2);
        emit(&b, t == 1 ? &cd_emit_json : &cd_emit_c, t == 2);
        double **want = truth(&b.l);
        shell(&b, MAKE " && ./network 2 --dump results");
        const double off = differs(&b.l, want, tmp_path(&b.dir, "results"));
        if (off > 1e-5) fail_msg("off by %g", off);
        shell(&b, "./network 1 --int8 --dump results8");
        const double off8 = differs(&b.l, want, tmp_path(&b.dir, "results8"));
        /* stated in docs/reference/offload.md: 2 % */
        if (off8 > 0.02 || off8 < 1e-5) fail_msg("in int8 off by %g", off8);
        assert_int_equal(file(&b, "region1.json") != NULL || file(&b, "region0.json") != NULL,
                         t == 1);
        free_truth(&b.l, want);
        done(&b);
    }
}

/* Recurrent and attention, one region: integers, scalars, products of activations. */
static void test_zoo(void **state) {
    (void)state;
    bench b;
    cd_network_loaded l;
    assert_ok(cd_network_load(
        &(cd_network_load_options){.network = "lstm", .size = 2, .target = "llvm -num-cores=1"}, &l,
        &err));
    plan(&b, l, "host cpu\n");
    assert_int_equal(b.plan.n_region, 1);
    emit(&b, NULL, false);
    double **want = truth(&b.l);
    shell(&b, MAKE " && ./network 1 --dump results");
    const double off = differs(&b.l, want, tmp_path(&b.dir, "results"));
    if (off > 1e-4) fail_msg("off by %g", off);
    free_truth(&b.l, want);
    done(&b);
}

/* network.json is JSON; constants stand in it once; files that are written as given are read. */
static void test_interface(void **state) {
    (void)state;
    bench b;
    plan(&b, net(), npu);
    emit(&b, &cd_emit_json, false);
    cd_arena a = {0};
    const cd_json *v;
    for (uint32_t k = 0; k < b.files.n; k++)
        if (strstr(b.files.file[k].name, ".json"))
            assert_ok(cd_json_parse(&a, b.files.file[k].text.p, b.files.file[k].text.n, &v, &err));
    const char *text = file(&b, "network.json")->text.p;
    assert_int_equal(count(text, "\"offset\""), 4); /* an input, three weights */
    assert_non_null(strstr(text, "quantise float32 -> int8"));
    assert_non_null(strstr(text, "\"backend\": \"json\""));
    assert_non_null(strstr(file(&b, "region1.json") ? file(&b, "region1.json")->text.p
                                                    : file(&b, "region0.json")->text.p,
                           "\"operator\": \"conv2d\""));
    bench again; /* equal plans, equal text */
    plan(&again, net(), npu);
    emit(&again, &cd_emit_json, false);
    assert_int_equal(again.files.n, b.files.n);
    for (uint32_t k = 0; k < b.files.n; k++)
        assert_string_equal(again.files.file[k].text.p, b.files.file[k].text.p);
    shell(&b, MAKE " && head -c 1728 /dev/zero > in && ./network 1 --inputs in --dump zero && "
                   "./network 1 --dump one && ! cmp -s zero one");
    shell(&b, "head -c 10 /dev/zero > in; ! ./network 1 --inputs in");
    shell(&b, "! ./network --what");
    done(&again);
    done(&b);
    cd_arena_free(&a);
}

/* The makefile names each region's object, and each library once however many regions need it. */
static void test_makefile(void **state) {
    (void)state;
    for (int both = 0; both < 3; both++) { /* none, one, two devices of OpenCL */
        static const cd_emit_backend *const back[][2] = {{&cd_emit_c, &cd_emit_c},
                                                         {&cd_emit_c, &cd_emit_opencl},
                                                         {&cd_emit_opencl, &cd_emit_opencl}};
        static const char *const target[] = {"llvm -num-cores=1", "opencl"};
        bench b;
        plan(&b, net(), npu);
        assert_true(b.plan.n_region >= 2);
        assert_ok(cd_offload_emit(
            &(cd_offload_emit_options){
                .plan = &b.plan,
                .backend = back[both],
                .target = (const char *const[]){target[both > 1], target[both > 0]}},
            &b.files, &err));
        b.dir = tmp_make();
        const char *text = file(&b, "Makefile")->text.p;
        for (uint32_t k = 0; k < b.plan.n_region; k++) {
            char object[24];
            snprintf(object, sizeof object, " region%u.o", k);
            assert_int_equal(count(text, object), 1);
        }
        assert_int_equal(count(text, "region"), b.plan.n_region);
        assert_non_null(strstr(text, both ? "\nLIBRARIES ?= -lOpenCL\n" : "\nLIBRARIES ?=\n"));
        done(&b);
    }
}

static void test_opencl(void **state) {
    (void)state;
    SKIP_WITHOUT_OPENCL();
    const char *lib = NULL; /* the loader may be there without what links to it */
    for (int k = 0; k < 2 && !lib; k++) {
        static const char *const name[] = {"-lOpenCL", "-l:libOpenCL.so.1"};
        char text[200];
        snprintf(text, sizeof text,
                 "printf '#include <CL/cl.h>\\nint main(void) { return 0; }' | cc -x c - -x none "
                 "%s -o /dev/null > /dev/null 2>&1",
                 name[k]);
        if (!system(text)) lib = name[k];
    }
    if (!lib) skip();
    bench b;
    plan(&b, net(), npu);
    emit(&b, &cd_emit_opencl, false);
    assert_true(file(&b, "region0.cl") || file(&b, "region1.cl"));
    double **want = truth(&b.l);
    char text[200];
    snprintf(text, sizeof text, "%s LIBRARIES=%s && ./network 2 --dump results", MAKE, lib);
    shell(&b, text);
    const double off = differs(&b.l, want, tmp_path(&b.dir, "results"));
    if (off > 1e-5) fail_msg("off by %g", off);
    free_truth(&b.l, want);
    done(&b);
}

static void test_faults(void **state) {
    (void)state;
    bench b;
    cd_network_loaded l;
    assert_ok(
        cd_network_load(&(cd_network_load_options){.network = "tests/profiler/data/opaque.onnx",
                                                   .target = "llvm -num-cores=1"},
                        &l, &err));
    plan(&b, l, "host cpu\n");
    const cd_emit_backend *const back[] = {&cd_emit_c};
    static const char *const target[] = {"llvm"};
    assert_status(
        cd_offload_emit(
            &(cd_offload_emit_options){.plan = &b.plan, .backend = back, .target = target},
            &b.files, &err),
        CDMPP_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "magic"));
    b.dir = tmp_make();
    assert_status(cd_emit_write(&b.files, "/proc/nowhere", &err), CDMPP_EIO);
    assert_string_equal(err.path, "/proc/nowhere");
    done(&b);
}

TESTS(NULL, NULL, test_values, test_zoo, test_interface, test_makefile, test_opencl, test_faults)
