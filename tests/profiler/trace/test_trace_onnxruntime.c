/* Profiles of ONNX Runtime: nodes on the CPU, nodes whose kernels run on a device, runs of the
 * model. */
#include "fault.h"
#include "profiler/trace/trace.h"
#include "traces.h"

static cdmpp_err err;

#define EVENT(cat, name, tid, ts, dur, args)                                                       \
    "{\"cat\" : \"" cat "\",\"pid\" :7,\"tid\" :" tid ",\"dur\" :" dur ",\"ts\" :" ts              \
    ",\"ph\" : \"X\",\"name\" :\"" name "\",\"args\" : {" args "}}"
#define NODE(name, op, provider, ts, dur, inputs)                                                  \
    EVENT("Node", name "_kernel_time", "7", ts, dur,                                               \
          "\"op_name\" : \"" op "\",\"provider\" : \"" provider "\"" inputs)
#define CPU  "CPUExecutionProvider"
#define CUDA "CUDAExecutionProvider"
#define INPUTS                                                                                     \
    ",\"input_type_shape\" : [{\"float\":[1,3,8,8]},{\"float\":[4,3,3,3]}],\"output_type_shape\" " \
    ": [{\"float\":[1,4,6,6]}]"

/* strings joined by macros: the formatter indents each one further */
/* clang-format off */
static const char of_cpu[] = "[\n"
    EVENT("Session", "session_initialization", "7", "4", "1200", "") ",\n"
    EVENT("Session", "model_run", "7", "2000", "500", "") ",\n"
    EVENT("Node", "c1_fence_before", "7", "2010", "0", "\"op_name\" : \"Conv\"") ",\n"
    NODE("c1", "Conv", CPU, "2010", "300", INPUTS) ",\n"
    NODE("r1", "Relu", CPU, "2320", "100", "") ",\n"
    EVENT("Session", "model_run", "7", "3000", "400", "") ",\n"
    NODE("c1", "Conv", CPU, "3010", "200", INPUTS) ",\n"
    NODE("r1", "Relu", CPU, "3220", "100", "") "\n]";
/* clang-format on */

TEST(nodes_of_the_cpu) {
    traces *f = traces_begin();
    const cd_trace_combining o = {0}, each = {.range = "model_run"};
    assert_ok(traces_text(f, "p.json", of_cpu, &err));
    const cd_trace *t = f->t[0];
    assert_string_equal(t->form, "onnxruntime");
    assert_null(t->said.p);
    assert_ok(traces_combine(f, &o, &err));
    assert_int_equal(f->r.n_kernel, 2);
    const cd_trace_group *k = &f->r.kernel[0];
    assert_string_equal(k->name, "c1");
    assert_close(k->n, 2, 0, 0);
    assert_close(k->total_s, 500e-6, 1e-12, 0);
    assert_close(k->share, 500. / 700, 1e-9, 0);
    assert_string_equal(f->r.op[0].name, "Conv");
    assert_string_equal(f->r.op[0].shape, "[[1,3,8,8],[4,3,3,3]]");
    assert_string_equal(f->r.device[0].name, "cpu");
    assert_string_equal(cd_trace_text(t, t->event[1].dtype), "float32");
    assert_ok(traces_combine(f, &each, &err)); /* each run of the model is a repeat */
    assert_int_equal(f->r.n_kept, 2);
    assert_close(f->r.kernel[0].mean_s, 250e-6, 1e-12, 0);
    traces_end(f);
}

/* With kernels of the device the nodes are operators; without them their times are those of
 * launching, and that is said. */
TEST(nodes_of_a_device) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "p.json",
                          "[" NODE("c1", "Conv", CUDA, "10", "5", INPUTS) "," EVENT(
                              "Kernel", "sgemm", "-1", "20", "90",
                              "\"stream\" : \"9\",\"grid_x\" : \"8\",\"grid_y\" : \"2\",\"grid_z\" "
                              ": \"1\",\"block_x\" : \"64\",\"block_y\" : \"1\",\"block_z\" : "
                              "\"1\",\"op_name\" : \"Conv\"") "]",
                          &err));
    const cd_trace_event *node = traces_event(f, 0), *kernel = traces_event(f, 1);
    assert_true(node->kind == CD_TRACE_OP && kernel->kind == CD_TRACE_KERNEL);
    assert_string_equal(cd_trace_text(f->t[0], kernel->shape), "[[8,2,1],[64,1,1]]");
    assert_string_equal(cd_trace_text(f->t[0], kernel->op), "Conv");
    assert_int_equal(kernel->thread, 9);
    assert_null(f->t[0]->said.p);
    traces_end(f);
    f = traces_begin();
    assert_ok(
        traces_text(f, "p.json",
                    "[" NODE("c1", "Conv", CUDA, "10", "5", INPUTS) "," NODE(
                        "r1", "Relu", CPU, "20", "5",
                        "") "," NODE("n", "Nms", "OpenVINOExecutionProvider", "30", "5", "") "]",
                    &err));
    assert_int_equal(traces_event(f, 0)->kind, CD_TRACE_KERNEL);
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 0)->device), "cuda:0");
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 1)->device), "cpu");
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 2)->device), "openvino");
    assert_string_equal(f->t[0]->said.p,
                        "the 2 nodes of CUDAExecutionProvider and the like have the time that "
                        "their launch took on the host: the trace has no kernels of the device\n");
    traces_end(f);
}

/* A node with a body contains the nodes of the body. */
TEST(bodies_count_once) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "p.json",
                          "[" NODE("b", "Add", CPU, "20", "30", "") "," NODE("loop", "Loop", CPU,
                                                                             "10", "100", "") "]",
                          &err));
    assert_int_equal(f->t[0]->n, 1);
    assert_string_equal(traces_name(f, 0), "loop");
    assert_non_null(strstr(f->t[0]->said.p, "1 events lie inside"));
    traces_end(f);
}

TEST(bad_nodes) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "p.json",
        "[" NODE("a", "Add", CPU, "20", "-1", "") ",\n" NODE(
            "b", "Add", CPU, "20", "NaN", "") ",\n" NODE("c", "Add", CPU, "20", "1", "") "]",
        &err));
    assert_int_equal(f->t[0]->n, 1);
    assert_int_equal(f->bad, 2);
    assert_non_null(strstr(f->last_bad, "p.json:2: dur: expected a finite number, found nan"));
    traces_end(f);
}

TEST(memory) {
    traces *d = traces_begin();
    const char *path = tmp_put(&d->d, "p.json", of_cpu, sizeof of_cpu - 1);
    FAULT_SWEEP(f, 10) {
        const cd_trace_reading how = {0};
        cd_trace *t = NULL;
        f.st = cd_trace_read(path, &how, &t, &f.err);
        cd_trace_free(t);
    }
    traces_end(d);
}

TESTS(NULL, NULL, nodes_of_the_cpu, nodes_of_a_device, bodies_count_once, bad_nodes, memory)
