/* Traces of the Chrome form: Kineto's events and links, Habana's engines, text that is cut off or
 * longer than the window. */
#include "profiler/trace/trace.h"
#include "fault.h"
#include "traces.h"

static cdmpp_err err;

#define X(cat, name, tid, ts, dur, args)                                                           \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts \
    ",\"dur\":" dur ",\"args\":{" args "}}"

static const cd_trace_event *by_name(const traces *f, const char *name) {
    for (size_t i = 0; i < f->t[0]->n; i++)
        if (!strcmp(traces_name(f, i), name)) return traces_event(f, i);
    fail_msg("no event %s", name);
    return NULL;
}

static const char *owner_of(const traces *f, const char *name) {
    const uint32_t o = by_name(f, name)->owner;
    return o == CD_TRACE_NONE ? "" : traces_name(f, o);
}

TEST(kineto) {
    traces *f = traces_begin();
    /* strings joined by macros: the formatter indents each one further */
    /* clang-format off */
    assert_ok(traces_text(f, "t.json", "{\"traceEvents\": [\n"
        X("cpu_op", "aten::mm", "1", "100", "50",
        "\"External id\":2,\"Input Dims\":[[8,16],[16,32]],\"Input type\":[\"float\",\"float\"]")
        ",\n" X("kernel", "sgemm", "7", "120.5", "10.25",
        "\"device\":1,\"stream\":9,\"correlation\":5,\"grid\":[4,1,1],\"block\":[64,1,1]") ",\n"
        X("gpu_memcpy", "Memcpy HtoD", "7", "90", "1", "\"device\":1,\"stream\":9,\"bytes\":4096")
        ",\n" X("gpu_memset", "Memset", "7", "91", "1", "\"device\":1") ",\n"
        X("python_function", "f", "1", "1", "1", "") ",\n"
        X("cuda_runtime", "cudaLaunchKernel", "1", "101", "0", "\"correlation\":5") "],\n"
        "\"deviceProperties\": [{\"id\": 1, \"name\": \"Tesla T4\"}]}\n", &err));
    /* clang-format on */
    assert_string_equal(f->t[0]->form, "kineto");
    assert_int_equal(f->t[0]->n, 5);
    const cd_trace_event *e = by_name(f, "sgemm");
    assert_string_equal(cd_trace_text(f->t[0], e->device), "Tesla T4");
    assert_int_equal(e->unit, 1);
    assert_int_equal(e->thread, 9);
    assert_true(e->start_ns == 120500 && e->called_ns == 101000);
    assert_close(e->time_s, 10.25e-6, 1e-12, 0);
    assert_string_equal(cd_trace_text(f->t[0], e->shape), "[[4,1,1],[64,1,1]]");
    assert_string_equal(owner_of(f, "sgemm"), "aten::mm"); /* around the call */
    const cd_library_op_record *q = &f->t[0]->question[by_name(f, "aten::mm")->question];
    assert_true(q->kind == CD_LIBRARY_OP_LINEAR && q->m == 8 && q->k == 16 && q->n == 32);
    assert_close(by_name(f, "Memcpy HtoD")->bytes, 4096, 0, 0);
    assert_int_equal(by_name(f, "Memcpy HtoD")->owner, CD_TRACE_NONE);
    traces_end(f);
}

#define EV(ph, cat, pid, tid, name, more)                                                          \
    "[{\"ph\":\"" ph "\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":" pid                   \
    ",\"tid\":" tid more "}]"
#define KERNEL(more) EV("X", "kernel", "1", "7", "k", ",\"ts\":5,\"dur\":2" more)
#define OP(args)     EV("X", "cpu_op", "1", "7", "f", ",\"ts\":5,\"dur\":2,\"args\":{" args "}")
#define ENGINE(name)                                                                               \
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":\"p\",\"args\":{\"name\":\"" name "\"}},"
#define WORK(ph, name, ts, more)                                                                   \
    "{\"ph\":\"" ph "\",\"pid\":\"p\",\"tid\":3,\"name\":" name ",\"ts\":" ts more "}"
#define NODE(more)      EV("X", "Node", "1", "7", "c_kernel_time", more)
#define NODE_ARGS(args) NODE(",\"ts\":5,\"dur\":2,\"args\":{" args "}")

/* An event each of every form, and what it becomes. */
TEST(events) {
    static const struct {
        const char *text, *said;
    } t[] = {
        {KERNEL(""), "kernel k on cuda:0.0/7 at 5000 2e-06 s; "},
        {KERNEL(",\"args\":7"), "kernel k on cuda:0.0/7 at 5000 2e-06 s; "},
        {KERNEL(",\"args\":{\"device\":\"2\",\"stream\":\"x\",\"bytes\":-5}"),
         "kernel k on cuda:2.2/7 at 5000 2e-06 s; "},
        {KERNEL(",\"args\":{\"device\":4294967297,\"stream\":9007199254740993,\"bytes\":\"x\"}"),
         "kernel k on cuda:4294967297.0/9007199254740993 at 5000 2e-06 s; "},
        {KERNEL(",\"args\":{\"device\":-1,\"Stream\":1e300}"),
         "kernel k on cuda:-1.0/7 at 5000 2e-06 s; "},
        {KERNEL(",\"args\":{\"block\":[64,\"x\",[1]],\"op_name\":\"conv\"}"),
         "kernel k on cuda:0.0/7 at 5000 2e-06 s [[],[64,[],[1]]]; "},
        {KERNEL(",\"args\":{\"grid\":7}"), "kernel k on cuda:0.0/7 at 5000 2e-06 s [[],[]]; "},
        {KERNEL(",\"args\":{\"grid_x\":\"8\",\"block_z\":null}"),
         "kernel k on cuda:0.0/7 at 5000 2e-06 s [[8,0,0],[0,0,0]]; "},
        {EV("X", "kernel", "1", "\"t\"", "k", ",\"ts\":5,\"dur\":2"),
         "kernel k on cuda:0.0/-6402208663140065775 at 5000 2e-06 s; "},
        {EV("X", "kernel", "1", "7", "k", ",\"dur\":2"), "kernel k on cuda:0.0/7 2e-06 s; "},
        {EV("X", "kernel", "1", "7", "k", ",\"ts\":-5,\"dur\":2"),
         "bad: t.json:1: ts: expected a number in 0..9e+15, found -5 [ERANGE]"},
        {EV("X", "kernel", "1", "7", "k", ",\"ts\":5,\"dur\":0"), "1 empty; "},
        {EV("X", "kernel", "1", "7", "k", ",\"ts\":5,\"dur\":1e16"),
         "bad: t.json:1: dur: expected a number in 0..1e+15, found 1e+16 [ERANGE]"},
        {EV("X", "kernel", "1", "7", "k", ",\"ts\":5"),
         "bad: t.json:1: dur: expected this key [ESCHEMA]"},
        {EV("X", "kernel", "1", "7", "\xff", ",\"ts\":5,\"dur\":2"),
         "bad: t.json:1: column 34: expected UTF-8, found byte 0xff [EPARSE]"},
        {"[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":5,\"dur\":2}]",
         "bad: t.json:1: name: expected this key [ESCHEMA]"},
        {"[{\"ph\":\"X\",\"cat\":7,\"pid\":\"CUDA "
         "functions\",\"tid\":1,\"name\":\"k\",\"ts\":5,\"dur\":2}]",
         "kernel k on cuda:1.1/0 at 5000 2e-06 s; "},
        {"[{\"ph\":\"X\",\"pid\":\"CPU functions\",\"tid\":1,\"name\":\"k\",\"ts\":5,\"dur\":2}]",
         "operator k on cpu.0/8653665733340276817 at 5000 2e-06 s []; "},
        {EV("X", "acc_driver", "1", "7", "k", ",\"ts\":5,\"dur\":2"),
         "call k on cpu.0/1078997713638221676 at 5000 2e-06 s; "},
        {EV("X", "hip_runtime", "1", "7", "k", ",\"ts\":5,\"dur\":0"),
         "call k on cpu.0/1078997713638221676 at 5000 0 s; "},
        {EV("X", "abcdefghijklmnopqrstuvwxyz", "1", "7", "0123456789012345678901234567890\\n",
            ",\"ts\":5,\"dur\":0"),
         "t.json: no form that is read (the first of 1 events: ph 'X', cat 'abcdefghijklmnop', "
         "name '012345678901234567890123456789'); export with PyTorch's prof.export_chrome_trace, "
         "ONNX Runtime's enable_profiling or trtexec --exportProfile [ESCHEMA]"},
        {EV("abcdef", "c\\u0001d", "1", "7", "k", ""),
         "t.json: no form that is read (the first of 1 events: ph 'abcd', cat 'c d', name 'k'); "
         "export with PyTorch's prof.export_chrome_trace, ONNX Runtime's enable_profiling or "
         "trtexec --exportProfile [ESCHEMA]"},
        {"[7, []]", "t.json: no form that is read (the first of 2 events: integer); export with "
                    "PyTorch's prof.export_chrome_trace, ONNX Runtime's enable_profiling or "
                    "trtexec --exportProfile [ESCHEMA]"},
        {OP("\"Input Dims\":7"), "operator f on cpu.0/1078997713638221676 at 5000 2e-06 s []; "},
        {OP("\"Input Dims\":[[],[8,1.5]],\"Input type\":[\"\",7,\"double\"]"),
         "operator f on cpu.0/1078997713638221676 at 5000 2e-06 s [[],[8,[]]]; "},
        {OP("\"Input Dims\":[],\"Input type\":7"),
         "operator f on cpu.0/1078997713638221676 at 5000 2e-06 s []; "},
        {"[" ENGINE("*MME 1") WORK("B", "\"gemm\"", "5", "") "," WORK(
             "E", "\"gemm\"", "7", ",\"args\":{\"op\":\"mm\"}") "]",
         "kernel gemm on habana.0/3 at 5000 2e-06 s; "},
        {"[" ENGINE("DMA 1") WORK("X", "\"copy\"", "5", ",\"dur\":2") "," WORK(
             "X", "\"copy\"", "5", ",\"dur\":0") "," WORK("i", "\"x\"", "5", "") "]",
         "copy copy on habana.0/3 at 5000 2e-06 s; 1 empty; "},
        {"[" ENGINE("TPC 1") WORK("X", "\"TPC busy\"", "5", ",\"dur\":2") "," WORK(
             "B", "\"x\"", "7", "") "," WORK("E", "\"x\"", "5", "") "]",
         "bad: t.json:1: expected an end after the start in line 1 [ERANGE]"},
        {"[" ENGINE("TPC 1") WORK("E", "\"x\"", "5", "") "]",
         "bad: t.json:1: expected an event that began before this end [ESCHEMA]"},
        {"[" ENGINE("TPC 1") WORK("B", "7", "5", "") "]",
         "bad: t.json:1: name: expected a string, found integer [ESCHEMA]"},
        {"[" ENGINE("TPC 1") WORK("B", "\"x\"", "\"5\"", "") "]",
         "bad: t.json:1: ts: expected a number, found string [ESCHEMA]"},
        {"[" ENGINE("TPC 1") WORK("X", "\"x\"", "5", "") "]",
         "bad: t.json:1: dur: expected this key [ESCHEMA]"},
        {"[" ENGINE("TPC 1") WORK("B", "\"x\"", "5", "") "]",
         "t.json: no form that is read (the first of 2 events: ph 'B', cat '', name 'x'); export "
         "with PyTorch's prof.export_chrome_trace, ONNX Runtime's enable_profiling or trtexec "
         "--exportProfile [ESCHEMA]"},
        {"[" ENGINE("") ENGINE("GPU") "{\"ph\":\"M\",\"name\":\"thread_name\"}," WORK(
             "X", "\"x\"", "5", ",\"dur\":2") "]",
         "t.json: no form that is read (the first of 4 events: ph 'X', cat '', name 'x'); export "
         "with PyTorch's prof.export_chrome_trace, ONNX Runtime's enable_profiling or trtexec "
         "--exportProfile [ESCHEMA]"},
        {NODE(",\"ts\":5,\"dur\":0"), "1 empty; "},
        {NODE(",\"ts\":\"5\",\"dur\":1"),
         "bad: t.json:1: ts: expected a number, found string [ESCHEMA]"},
        {NODE(",\"ts\":5"), "bad: t.json:1: dur: expected this key [ESCHEMA]"},
        {NODE_ARGS("\"op_name\":7"), "kernel c on cpu.0/7 at 5000 2e-06 s; "},
        {NODE_ARGS("\"input_type_shape\":7"), "kernel c on cpu.0/7 at 5000 2e-06 s; "},
        {NODE_ARGS("\"input_type_shape\":[7,{},{\"float\":7},{\"double\":[1,\"x\"]}]"),
         "kernel c on cpu.0/7 at 5000 2e-06 s [[],[],[],[1,0]]; "},
        {NODE_ARGS(
             "\"input_type_shape\":[{\"double\":[1,2]}],\"provider\":\"ROCMExecutionProvider\""),
         "kernel c on rocm.0/7 at 5000 2e-06 s [[1,2]]; "},
        {NODE_ARGS("\"input_type_shape\":[{\"int8\":[]}],\"provider\":\"an execution provider with "
                   "a name that is long\""),
         "kernel c on an execution provider with a name that .0/7 at 5000 2e-06 s [[]]; "},
        {EV("X", "Session", "1", "7", "model_run", ",\"ts\":5,\"dur\":9"),
         "range model_run on cpu.0/7 at 5000 9e-06 s; "},
        {EV("X", "Session", "1", "7", "model_run", ",\"ts\":5"),
         "bad: t.json:1: dur: expected this key [ESCHEMA]"},
        {EV("X", "Session", "1", "7", "other", ",\"ts\":5"), ""},
        {EV("X", "Node", "1", "7", "c_fence_before", ",\"ts\":5"), ""},
        {"[{\"count\":0}]",
         "bad: t.json:1: count: expected a number in 1..1e+15, found 0 [ERANGE]"},
        {"[{\"count\":3,\"x\":1}]",
         "t.json: no form that is read (the first of 1 events: ph '', cat '', name ''); export "
         "with PyTorch's prof.export_chrome_trace, ONNX Runtime's enable_profiling or trtexec "
         "--exportProfile [ESCHEMA]"},
        {"[{\"count\":3},{\"timeMs\":3,\"averageMs\":1}]",
         "bad: t.json:1: name: expected this key [ESCHEMA]"},
        {"[{\"name\":\"a\",\"averageMs\":1}]",
         "bad: t.json:1: timeMs: expected this key [ESCHEMA]"},
        {"[{\"name\":\"a\",\"timeMs\":1}]",
         "bad: t.json:1: averageMs: expected this key [ESCHEMA]"},
        {"[{\"name\":\"a\",\"timeMs\":1,\"averageMs\":1,\"medianMs\":\"x\"}]",
         "bad: t.json:1: medianMs: expected a number, found string [ESCHEMA]"},
        {"[{\"name\":\"a\",\"timeMs\":0,\"averageMs\":0}]", "1 empty; "},
        {"[{\"name\":\"a\",\"timeMs\":3,\"averageMs\":1}]", "kernel a on .0/0 0.001 s; "},
        {"[{\"startH2dMs\":9,\"endH2dMs\":10,\"startComputeMs\":1,\"endComputeMs\":3}]",
         "kernel network on .0/0 at 1000000 0.002 s; range inference on .0/0 at 1000000 0.009 s; "
         "copy memcpy HtoD on .0/0 at 9000000 0.001 s; "},
        {"[{\"startInMs\":1,\"endInMs\":1,\"startComputeMs\":1,\"endComputeMs\":1,\"startOutMs\":5,"
         "\"endOutMs\":6}]",
         "range inference on .0/0 at 1000000 0.005 s; copy memcpy DtoH on .0/0 at 5000000 0.001 s; "
         "1 empty; "},
        {"[{\"startComputeMs\":3,\"endComputeMs\":1}]",
         "bad: t.json:1: endComputeMs: expected a number in 3..1e+12, found 1 [ERANGE]"},
        {"[{\"startComputeMs\":\"3\"}]",
         "bad: t.json:1: startComputeMs: expected a number, found string [ESCHEMA]"},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        const char *said = traces_said("t.json", t[k].text);
        if (strcmp(said, t[k].said)) print_error("row %zu\n", k);
        assert_string_equal(said, t[k].said);
    }
}

/* The innermost operator of the same thread; External id before it; a call behind an operator's end
 * belongs to the outer one. */
TEST(links) {
    traces *f = traces_begin();
    /* strings joined by macros: the formatter indents each one further */
    /* clang-format off */
    assert_ok(traces_text(f, "t.json", "[" X("user_annotation", "step", "1", "0", "1000", "") ","
        X("cpu_op", "outer", "1", "10", "100", "\"External id\":1") ","
        X("cpu_op", "inner", "1", "20", "30", "\"External id\":2") ","
        X("cpu_op", "other", "2", "0", "1000", "\"External id\":3") ","
        X("cuda_runtime", "l", "1", "25", "1", "\"correlation\":1") ","
        X("kernel", "k1", "7", "300", "1", "\"correlation\":1") ","
        X("cuda_runtime", "l", "1", "60", "1", "\"correlation\":2") ","
        X("kernel", "k2", "7", "310", "1", "\"correlation\":2") ","
        X("cuda_runtime", "l", "1", "200", "1", "\"correlation\":3") ","
        X("kernel", "k3", "7", "320", "1", "\"correlation\":3") ","
        X("cuda_runtime", "l", "1", "25", "1", "\"correlation\":4,\"External id\":3") ","
        X("kernel", "k4", "7", "330", "1", "\"correlation\":4") ","
        X("kernel", "k5", "7", "340", "1", "\"correlation\":1,\"External id\":1") ","
        X("kernel", "k6", "7", "350", "1", "\"correlation\":99") "]", &err));
    /* clang-format on */
    assert_string_equal(owner_of(f, "k1"), "inner");
    assert_string_equal(owner_of(f, "k2"), "outer");
    assert_string_equal(owner_of(f, "k3"), "step");
    assert_string_equal(owner_of(f, "k4"), "other");
    assert_string_equal(owner_of(f, "k5"), "outer");
    assert_string_equal(owner_of(f, "k6"), "");
    assert_string_equal(owner_of(f, "inner"), "outer");
    traces_end(f);
}

/* What operators of PyTorch are; what differs in anything is none. */
TEST(questions) {
    static const struct {
        const char *name, *args, *expect;
    } t[] = {
        {"aten::bmm",
         "\"Input Dims\":[[4,8,16],[4,16,32]],\"Input type\":[\"c10::Half\",\"c10::Half\"]",
         "bmm float16 4 8 32 16"},
        {"aten::bmm", "\"Input Dims\":[[4,8,16],[5,16,32]],\"Input type\":[\"float\",\"float\"]",
         ""},
        {"aten::addmm",
         "\"Input Dims\":[[32],[8,16],[16,32],[]],\"Input "
         "type\":[\"float\",\"float\",\"float\",\"Scalar\"]",
         "linear float32 1 8 32 16"},
        {"aten::mm", "\"Input Dims\":[[8,16],[16,32]],\"Input type\":[\"float\",\"double\"]", ""},
        {"aten::mm", "\"Input Dims\":[[8,16],[16,32]]", ""},
        {"aten::mm", "\"Input Dims\":[[8,0],[0,32]],\"Input type\":[\"float\",\"float\"]", ""},
        {"aten::relu", "\"Input Dims\":[[2,3,4]],\"Input type\":[\"c10::BFloat16\"]",
         "relu bfloat16 1 6 4 1"},
        {"aten::clamp_min",
         "\"Input Dims\":[[2,4],[]],\"Input type\":[\"float\",\"Scalar\"],\"Concrete "
         "Inputs\":[\"\",\"0\"]",
         "relu float32 1 2 4 1"},
        {"aten::clamp_min",
         "\"Input Dims\":[[2,4],[]],\"Input type\":[\"float\",\"Scalar\"],\"Concrete "
         "Inputs\":[\"\",\"1\"]",
         ""},
        {"aten::_softmax",
         "\"Input Dims\":[[2,3,4],[],[]],\"Input "
         "type\":[\"float\",\"Scalar\",\"Scalar\"],\"Concrete Inputs\":[\"\",\"-1\",\"False\"]",
         "softmax float32 1 6 4 1"},
        {"aten::_softmax",
         "\"Input Dims\":[[2,3,4],[],[]],\"Input "
         "type\":[\"float\",\"Scalar\",\"Scalar\"],\"Concrete Inputs\":[\"\",\"1\",\"False\"]",
         ""},
        {"aten::native_layer_norm",
         "\"Input Dims\":[[2,3,4],[],[4],[4],[]],\"Input "
         "type\":[\"float\",\"ScalarList\",\"float\",\"float\",\"Scalar\"],\"Concrete "
         "Inputs\":[\"\",\"[4]\",\"\",\"\",\"1e-05\"]",
         "ln float32 1 6 4 1"},
        {"aten::native_layer_norm",
         "\"Input Dims\":[[2,3,4],[],[3,4]],\"Input "
         "type\":[\"float\",\"ScalarList\",\"float\"],\"Concrete Inputs\":[\"\",\"[3, 4]\",\"\"]",
         ""},
        {"aten::add",
         "\"Input Dims\":[[2,4],[2,4],[]],\"Input "
         "type\":[\"float\",\"float\",\"Scalar\"],\"Concrete Inputs\":[\"\",\"\",\"1\"]",
         "add float32 1 2 4 1"},
        {"aten::add",
         "\"Input Dims\":[[2,4],[4],[]],\"Input type\":[\"float\",\"float\",\"Scalar\"]", ""},
        {"aten::mul",
         "\"Input Dims\":[[2,4],[]],\"Input type\":[\"float\",\"Scalar\"],\"Concrete "
         "Inputs\":[\"\",\"0.5\"]",
         "mulu float32 1 2 4 1"},
        {"aten::cudnn_convolution",
         "\"Input Dims\":[[2,3,8,8],[5,3,3,3],[],[],[],[]],\"Input "
         "type\":[\"float\",\"float\",\"ScalarList\",\"ScalarList\",\"ScalarList\",\"Scalar\"],"
         "\"Concrete Inputs\":[\"\",\"\",\"[1, 1]\",\"[2, 2]\",\"[1, 1]\",\"1\"]",
         "conv float32 1 32 5 27"},
        {"aten::cudnn_convolution",
         "\"Input Dims\":[[2,3,8,8],[5,3,3,3],[],[],[],[]],\"Input "
         "type\":[\"float\",\"float\",\"\",\"\",\"\",\"\"],"
         "\"Concrete Inputs\":[\"\",\"\",\"[1, 1]\",\"[2, 2]\",\"[2, 2]\",\"1\"]",
         ""},
        {"aten::convolution",
         "\"Input Dims\":[[2,3,8,8],[5,3,3,3],[5],[],[],[],[],[],[]],\"Input "
         "type\":[\"float\",\"float\",\"float\",\"\",\"\",\"\",\"\",\"\",\"\"],"
         "\"Concrete Inputs\":[\"\",\"\",\"\",\"[2, 2]\",\"[1, 1]\",\"[1, 1]\",\"True\",\"[0, "
         "0]\",\"1\"]",
         ""},
        {"aten::nonsense", "\"Input Dims\":[[2,3,4]],\"Input type\":[\"float\"]", ""}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        traces *f = traces_begin();
        char text[1024], got[128] = "";
        snprintf(text, sizeof text,
                 "[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":1,"
                 "\"dur\":2,\"args\":{%s}}]",
                 t[i].name, t[i].args);
        assert_ok(traces_text(f, "t.json", text, &err));
        const cd_trace_event *e = traces_event(f, 0);
        if (e->question != CD_TRACE_NONE) {
            const cd_library_op_record *q = &f->t[0]->question[e->question];
            snprintf(got, sizeof got, "%s %s %.0f %.0f %.0f %.0f", cd_library_op_kind_name(q->kind),
                     cd_library_op_dtype_name(q->dtype), q->b, q->m, q->n, q->k);
        }
        assert_string_equal(got, t[i].expect);
        traces_end(f);
    }
}

#define M(pid, name)                                                                               \
    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" pid ",\"args\":{\"name\":\"" name "\"}}"
#define BE(ph, pid, name, ts)                                                                      \
    "{\"ph\":\"" ph "\",\"pid\":" pid ",\"tid\":0,\"name\":\"" name "\",\"ts\":" ts "}"

TEST(habana) {
    traces *f = traces_begin();
    /* strings joined by macros: the formatter indents each one further */
    /* clang-format off */
    assert_ok(traces_text(f, "t.json", "[" M("4", "*MME") "," M("6", "*DMA") "," M("9", "Host")
        ",\n" BE("B", "9", "call", "1") "," BE("E", "9", "call", "2") ",\n"
        BE("B", "4", "MME context", "5") "," BE("B", "4", "conv1", "10")
        ",{\"ph\":\"E\",\"pid\":4,\"tid\":0,\"ts\":30},\n" BE("E", "4", "MME context", "31") ",\n"
        "{\"ph\":\"X\",\"pid\":6,\"tid\":0,\"name\":\"in\",\"ts\":2,\"dur\":3,\"args\":{\"op\":"
        "\"dma\"}},\n" BE("E", "4", "x", "40") ",\n" BE("B", "4", "open", "50") "]\n", &err));
    /* clang-format on */
    assert_string_equal(f->t[0]->form, "habana");
    assert_int_equal(f->t[0]->n, 2);
    assert_int_equal(traces_event(f, 0)->kind, CD_TRACE_COPY);
    assert_string_equal(cd_trace_text(f->t[0], traces_event(f, 0)->op), "dma");
    assert_string_equal(traces_name(f, 1), "conv1");
    assert_close(traces_event(f, 1)->time_s, 20e-6, 1e-12, 0);
    assert_int_equal(f->bad, 2); /* an end without a beginning, a beginning without an end */
    assert_non_null(strstr(f->last_bad, "t.json:7: 'open' begins and never ends"));
    traces_end(f);
}

TEST(bad_events) {
    traces *f = traces_begin();
    /* strings joined by macros: the formatter indents each one further */
    /* clang-format off */
    assert_ok(traces_text(f, "t.json",
        "{\"a\": {\"traceEvents\": []}, \"traceEvents\": [\n{\"ph\":\"X\",\"cat\":\"kernel\",\"n"
        "ame\":\"k\",\"ts\":1,\"dur\":\"x\"},\n"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":1},\n{\"ph\":\"X\",\"cat\":\"kernel\""
        ",\"name\":\"k\",\"ts\":1e300,\"dur\":1},\n[1,2],\n7,\n"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":1,\n \"args\":{nonsens"
        "e}},\n" X("kernel", "k", "1", "1", "1", "") "]}", &err));
    /* clang-format on */
    assert_int_equal(f->t[0]->n, 1);
    assert_int_equal(f->bad, 4);
    assert_non_null(strstr(f->last_bad, "t.json:8: column 10: "));
    assert_status(traces_text(f, "u.json", "{\"a\": 1, \"traceEvents\": 7}", &err), CDMPP_ESCHEMA);
    assert_status(traces_text(f, "v.json", "{\"a\"", &err), CDMPP_ESCHEMA);
    traces_end(f);
}

/* An event that is no JSON has the line of the file with the column that is told; what an event
 * says wrongly has the line where the event begins. */
TEST(lines_of_bad_events) {
    static const struct {
        const char *event, *says;
    } t[] = {{"{\"ph\":}", "t.json:4: column 7: "},
             {"{\"ph\":\"X\",\n\n \"cat\":}", "t.json:6: column 8: "},
             {"{\"ph\":\"X\",\n\"args\":{\"a\":\n[1,\n2 3]}}", "t.json:7: column 3: "},
             {"{\"ph\":\"X\",\n\"cat\":\"kernel\",\n\"name\":\"k\",\"ts\":1,\"dur\":\"x\"}",
              "t.json:4: dur: "},
             {"{\"ph\":\"X\",\n\"cat\":\"kernel\",\n\"ts\":1,\"dur\":1}", "t.json:4: name: "}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        traces *f = traces_begin();
        char text[512];
        snprintf(text, sizeof text,
                 "[{\"s\":\"\\n\"},\n{\"a\":\n1},\n%s,\n" X("kernel", "k", "1", "1", "1", "") "]",
                 t[i].event);
        assert_ok(traces_text(f, "t.json", text, &err));
        assert_true(f->bad == 1 && f->t[0]->n == 1);
        if (!strstr(f->last_bad, t[i].says)) fail_msg("%zu: %s", i, f->last_bad);
        traces_end(f);
    }
}

/* A trace that is longer than the window, with a name longer than a piece of it; and the same
 * packed text of gzip. */
TEST(long_traces) {
    traces *f = traces_begin();
    cd_buf b = {0};
    cd_buf_puts(&b, "{\"skipped\": [\"");
    for (int i = 0; i < 60000; i++) cd_buf_puts(&b, "]}\\\"{[ 0123");
    cd_buf_puts(&b, "\"], \"traceEvents\": [");
    for (int i = 0; i < 4000; i++) {
        cd_buf_putf(&b, "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d", i ? ",\n" : "", i % 3);
        for (int k = 0; i == 2000 && k < 400000; k++) cd_buf_puts(&b, "z");
        cd_buf_putf(&b, "\",\"ts\":%d,\"dur\":1,\"args\":{}}", i);
    }
    cd_buf_puts(&b, "]}");
    assert_false(b.oom);
    assert_ok(traces_read(f, tmp_put(&f->d, "t.json", b.p, b.n), &err));
    assert_int_equal(f->t[0]->n, 4000);
    assert_int_equal(f->bad, 0);
    assert_int_equal(strlen(traces_name(f, 2000)), 400002);
    assert_int_equal(f->t[0]->last_line, 4000);
    cd_buf_free(&b);
    traces_end(f);
}

/* Cut at any byte: no crash, and what was whole before the cut is there. */
TEST(cut_traces) {
    static const char all[] =
        "{\"x\":[{\"y\":\"]\\\"\"}],\"traceEvents\":[" X("kernel", "a", "1", "1", "1", "")
    "," X("kernel", "b", "1", "1", "1", "")
    "]}";
    const size_t first = (size_t)(strstr(all, "\"args\":{}}") - all) + 10,
                 list = (size_t)(strstr(all, "s\":[") - all) + 4;
    for (size_t n = 1; n < sizeof all - 1; n++) {
        traces *f = traces_begin();
        const cdmpp_status st = traces_read(f, tmp_put(&f->d, "t.json", all, n), &err);
        assert_int_equal(st, n >= list ? CDMPP_OK : CDMPP_ESCHEMA);
        if (!st) assert_true(f->t[0]->n >= (n >= first) && f->t[0]->n <= 2);
        if (!st && n < sizeof all - 3) assert_int_equal(f->bad, 1);
        traces_end(f);
    }
}

TEST(memory) {
    traces *d = traces_begin();
    /* strings joined by macros: the formatter indents each one further */
    /* clang-format off */
    static const char text[] =
        "{\"deviceProperties\":[{\"id\":0,\"name\":\"T4\"}],\"traceEvents\":[" M("4", "*MME") ","
        BE("B", "4", "a", "1") "," BE("E", "4", "a", "2") ","
        X("cpu_op", "aten::mm", "1", "100", "50",
        "\"External id\":2,\"Input Dims\":[[8,16],[16,32]],\"Input type\":[\"float\",\"float\"]")
        "," X("kernel", "a", "1", "1", "1", "\"correlation\":1") "]}";
    /* clang-format on */
    const char *path = tmp_put(&d->d, "t.json", text, sizeof text - 1);
    FAULT_SWEEP(f, 10) {
        const cd_trace_reading how = {0};
        cd_trace *t = NULL;
        f.st = cd_trace_read(path, &how, &t, &f.err);
        if (!f.st) f.st = cd_trace_link(t, &f.err);
        cd_trace_free(t);
    }
    traces_end(d);
}

TESTS(NULL, NULL, kineto, events, links, questions, habana, bad_events, lines_of_bad_events,
      long_traces, cut_traces, memory)
