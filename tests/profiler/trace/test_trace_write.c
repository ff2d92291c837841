/* What a trace is written as: the network and the table are read again by their own readers, text
 * and JSON hold the figures. */
#include "features/operators/operators.h"
#include "predictor/network/network.h"
#include "profiler/trace/trace.h"
#include "traces.h"

static cdmpp_err err;
static const cd_trace_combining plain;

#define K(name, ts, dur, ext, stream)                                                              \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"tid\":7,\"ts\":" ts ",\"dur\":" dur  \
    ",\"args\":{\"External id\":" ext ",\"stream\":" stream                                        \
    ",\"grid\":[6,1,1],\"block\":[128,1,1]}}"
#define O(name, ts, ext, dims)                                                                     \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"tid\":1,\"ts\":" ts                  \
    ",\"dur\":10,\"args\":{\"External id\":" ext ",\"Input Dims\":" dims                           \
    ",\"Input type\":[\"float\",\"float\"]}}"

/* strings joined by macros: the formatter indents each one further */
/* clang-format off */
static const char text[] =
    "{\"deviceProperties\":[{\"id\":0,\"name\":\"Tesla T4\"}],\"traceEvents\":["
    O("aten::mm", "1", "1", "[[8,16],[16,32]]") "," O("aten::mm", "20", "2", "[[8,16],[16,32]]")
    "," O("aten::bmm", "40", "3", "[[4,8,16],[4,16,32]]") ","
    O("aten::index", "60", "4", "[[4],[4]]") "," K("gemm", "100", "10", "1", "7") ","
    K("gemm", "120", "20", "2", "7") "," K("batched", "130", "5", "3", "8") ","
    K("index", "150", "1", "4", "7") "]}";
/* clang-format on */

TEST(a_network) {
    traces *f = traces_begin();
    cd_network_graph **g = NULL;
    cd_buf b = {0};
    size_t n;
    assert_ok(traces_text(f, "t.json", text, &err));
    assert_ok(traces_combine(f, &plain, &err));
    assert_ok(cd_trace_put_graph(&b, &f->r, "net \"1\"", NULL, &err));
    assert_ok(cd_network_graph_read_text("g.json", b.p, b.n, NULL, NULL, &g, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(g[0]->name, "net \"1\"");
    assert_string_equal(g[0]->device, "Tesla T4");
    assert_close(g[0]->measured_s, 51e-6, 1e-9, 0);
    assert_int_equal(g[0]->n_node, 4);
    const cd_network_node *v = g[0]->node;
    assert_string_equal(v[0].name, "aten::mm");
    assert_int_equal(v[0].kind, CD_NODE_LIBRARY);
    assert_true(v[0].question->m == 8 && v[0].question->k == 16 && v[0].question->n == 32);
    assert_close(v[0].given_s, 10e-6, 1e-12, 0);
    assert_string_equal(v[1].name, "aten::mm#2");
    assert_int_equal(v[1].n_after, 1);
    assert_string_equal(v[2].name, "aten::bmm");
    assert_int_equal(v[2].n_after, 0); /* the first of its stream */
    assert_string_equal(v[3].op, "aten::index");
    assert_int_equal(v[3].kind, CD_NODE_GIVEN);
    assert_int_equal(g[0]->after[v[3].first], 1);
    cd_network_graph_free_all(g, n);
    cd_buf_clear(&b);
    assert_ok(cd_trace_put_graph(&b, &f->r, "x", "t4", &err));
    assert_non_null(strstr(b.p, "\"device\": \"t4\""));
    cd_buf_free(&b);
    traces_end(f);
}

/* Two runs of one operator are one row, their mean. */
TEST(a_table) {
    traces *f = traces_begin();
    cd_op_reader *in = NULL;
    cd_library_op_record o;
    const char *device;
    cd_buf b = {0};
    bool more;
    size_t n;
    assert_ok(traces_text(f, "t.json", text, &err));
    assert_ok(traces_combine(f, &plain, &err));
    assert_ok(cd_trace_put_table(&b, &f->r, NULL, &n, &err));
    assert_int_equal(n, 2);
    assert_ok(cd_library_op_reader_open(tmp_put(&f->d, "t.csv", b.p, b.n), &in, &err));
    assert_ok(cd_library_op_reader_next(in, &o, &device, &more, &err));
    assert_true(o.kind == CD_LIBRARY_OP_LINEAR && o.m == 8 && o.k == 16 && o.n == 32 &&
                o.blocks == 6 && o.block_threads == 128);
    assert_close(o.latency_s, 15e-6, 1e-9, 0);
    assert_string_equal(device, "Tesla T4");
    assert_ok(cd_library_op_reader_next(in, &o, &device, &more, &err));
    assert_true(o.kind == CD_LIBRARY_OP_BMM && o.b == 4 && o.m == 8 && o.k == 16 && o.n == 32);
    assert_ok(cd_library_op_reader_next(in, &o, &device, &more, &err));
    assert_false(more);
    cd_op_reader_close(in);
    cd_buf_free(&b);
    traces_end(f);
}

/* Of several kernels for one product the fastest, of a convolution all sizes. */
TEST(a_table_of_cutlass) {
    static const char gemm[] =
        "Problem,Provider,OperationKind,Operation,Disposition,Status,m,n,k,A,B,op_class,Runtime\n"
        "1,CUTLASS,gemm,slow,passed,success,64,32,16,f16:row,f16:row,tensorop,0.5\n1,CUTLASS,gemm,"
        "fast,passed,success,64,32,16,f16:row,f16:row,tensorop,0.25\n"
        "1,CUTLASS,gemm,fast,passed,success,64,32,16,f16:row,f16:row,tensorop,0.35\n"
        "Problem,Provider,OperationKind,Operation,Disposition,Status,conv_kind,n,h,w,c,k,r,s,pad_h,"
        "pad_w,stride_h,stride_w,dilation_h,dilation_w,Activation,Filter,op_class,Runtime\n"
        "1,CUTLASS,conv2d,c,passed,success,fprop,8,56,56,64,128,3,3,1,1,2,2,1,1,f32:nhwc,f32:nhwc,"
        "simt,0.1\n";
    traces *f = traces_begin();
    cd_op_reader *in = NULL;
    cd_library_op_record o;
    const char *device;
    cd_buf b = {0};
    bool more;
    size_t n;
    assert_ok(traces_text(f, "c.csv", gemm, &err));
    assert_ok(traces_combine(f, &plain, &err));
    assert_ok(cd_trace_put_table(&b, &f->r, "v100", &n, &err));
    assert_int_equal(n, 2);
    assert_ok(cd_library_op_reader_open(tmp_put(&f->d, "t.csv", b.p, b.n), &in, &err));
    assert_ok(cd_library_op_reader_next(in, &o, &device, &more, &err));
    assert_true(o.kind == CD_LIBRARY_OP_LINEAR && o.dtype == CD_LIBRARY_OP_DTYPE_F16 && o.m == 64 &&
                o.n == 32 && o.k == 16);
    assert_close(o.latency_s, 0.3e-3, 1e-9, 0);
    assert_string_equal(device, "v100");
    assert_ok(cd_library_op_reader_next(in, &o, &device, &more, &err));
    assert_true(o.kind == CD_LIBRARY_OP_CONV && o.m == 8 * 28 * 28 && o.n == 128 && o.cin == 64 &&
                o.ksize == 3 && o.stride == 2 && o.pad == 1 && o.size == 56);
    cd_op_reader_close(in);
    cd_buf_free(&b);
    traces_end(f);
}

TEST(text_and_json) {
    traces *f = traces_begin();
    const cd_json *v = NULL;
    cd_arena a = {0};
    cd_buf b = {0};
    double busy;
    assert_ok(traces_text(f, "t.json", text, &err));
    assert_ok(traces_combine(f, &plain, &err));
    cd_trace_put_text(&b, &f->r, 1);
    assert_non_null(strstr(b.p, "1 of 1 repeats (kineto), 4 launches each, 51.0 us"));
    assert_non_null(strstr(b.p, "... and 2 more (--limit)"));
    cd_buf_clear(&b);
    cd_trace_put_json(&b, &f->r);
    assert_ok(cd_json_parse(&a, b.p, b.n, &v, &err));
    const cd_json *device = cd_json_get(v, "devices")->u.child;
    assert_ok(cd_json_need_real(device, "utilisation", 0, 1, &busy, &err));
    assert_close(busy, 31.0 / 51, 1e-9, 0); /* 100..110, 120..140, 150..151 */
    assert_int_equal(cd_json_get(v, "kernels")->n, 3);
    assert_int_equal(cd_json_get(v, "operators")->n, 3);
    cd_arena_free(&a);
    cd_buf_free(&b);
    traces_end(f);
}

TESTS(NULL, NULL, a_network, a_table, a_table_of_cutlass, text_and_json)
