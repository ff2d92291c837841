/* Repeats, operators and time lines: figures worked out by hand. */
#include "profiler/trace/trace.h"
#include "fault.h"
#include "traces.h"

static cdmpp_err err;

#define HEADER "Start (ns),Duration (ns),CorrId,Bytes (B),Device,Strm,Name\n"

static const cd_trace_group *group(const cd_trace_group *g, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(g[i].name, name)) return &g[i];
    fail_msg("no group %s", name);
    return NULL;
}

static const cd_trace_combining plain;

/* Two kernels overlap on two streams; a copy overlaps one of them, a gap follows. */
TEST(busy_is_the_union) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "a.csv",
                          HEADER
                          "1000,1000,1,,T4 (0),7,a\n1500,1500,2,,T4 (0),8,b\n2800,400,3,64,T4 "
                          "(0),9,[CUDA memcpy HtoD]\n4200,800,4,,T4 (0),7,a\n"
                          "5000,100,5,,T4 (0),7,a\n2000,100,6,,T4 (1),7,c\n",
                          &err));
    assert_ok(traces_combine(f, &plain, &err));
    assert_int_equal(f->r.n_device, 2);
    const cd_trace_device *d = &f->r.device[0];
    assert_int_equal(d->stream, 3);
    assert_close(d->n, 4, 0, 0);
    assert_close(d->span_s, 4100e-9, 1e-9, 0);
    assert_close(d->busy_s, 2900e-9, 1e-9, 0); /* 1000..3000, 4200..5100 */
    assert_close(d->kernel_s, 3400e-9, 1e-9, 0);
    assert_close(d->copy_s, 400e-9, 1e-9, 0);
    assert_close(d->idle_s, 1000e-9, 1e-9, 0); /* 3200..4200 */
    assert_close(d->gaps, 1, 0, 0);
    assert_close(d->gap_s, 1000e-9, 1e-9, 0);
    assert_close(f->r.device[1].busy_s, 100e-9, 1e-9, 0);
    assert_int_equal(f->r.device[1].unit, 1);
    assert_close(f->r.wall_s, 4100e-9, 1e-9, 0);
    assert_int_equal(f->r.n_stream, 4);
    assert_close(f->r.stream[0].busy_s, 1900e-9, 1e-9, 0);
    const cd_trace_group *a = group(f->r.kernel, f->r.n_kernel, "a");
    assert_close(a->n, 3, 0, 0);
    assert_close(a->total_s, 1900e-9, 1e-9, 0);
    assert_close(a->median_s, 800e-9, 1e-9, 0);
    assert_close(a->min_s, 100e-9, 1e-9, 0);
    assert_close(a->max_s, 1000e-9, 1e-9, 0);
    assert_close(a->share, 19.0 / 35, 1e-9, 0);
    assert_true(isnan(a->spread));
    assert_string_equal(f->r.kernel[3].name, "[CUDA memcpy HtoD]"); /* behind the kernels */
    assert_close(f->r.kernel[3].share, 1, 1e-12, 0);
    assert_close(f->r.kernel[3].bytes, 64, 0, 0);
    traces_end(f);
}

/* Streams have other numbers in the second run; the third launches more, the fourth something
 * else. */
TEST(repeats_of_other_launches_are_left_out) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "odd.csv", HEADER "1000,100,1,,T4,7,a\n2000,200,2,,T4,7,b\n3000,100,3,,T4,7,a\n", &err));
    assert_ok(traces_text(f, "one.csv", HEADER "1000,100,1,,T4,7,a\n2000,200,2,,T4,8,b\n", &err));
    assert_ok(traces_text(f, "two.csv", HEADER "1000,300,1,,T4,13,a\n2000,200,2,,T4,14,b\n", &err));
    assert_ok(traces_text(f, "else.csv", HEADER "1000,100,1,,T4,7,a\n2000,200,2,,T4,7,c\n", &err));
    f->path[0] = "odd.csv";
    assert_ok(traces_combine(f, &plain, &err));
    assert_int_equal(f->r.n_run, 4);
    assert_int_equal(f->r.n_kept, 2);
    assert_int_equal(f->r.first, 1);
    assert_string_equal(f->r.run[0].why, "it has 3 launches, the others have 2");
    assert_null(f->r.run[1].why);
    assert_null(f->r.run[2].why);
    assert_string_equal(f->r.run[3].why, "launch 2 is c, in the others it is b");
    const cd_trace_group *a = group(f->r.kernel, f->r.n_kernel, "a");
    assert_close(a->n, 1, 0, 0);
    assert_close(a->mean_s, 200e-9, 1e-9, 0);
    assert_close(a->spread, sqrt(2) * 100 / 200, 1e-9, 0);
    assert_close(group(f->r.kernel, f->r.n_kernel, "b")->spread, 0, 0, 1e-12);
    traces_end(f);
}

TEST(one_stream_or_two) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "a.csv", HEADER "1000,100,1,,T4,7,a\n2000,200,2,,T4,7,b\n", &err));
    assert_ok(traces_text(f, "b.csv", HEADER "1000,100,1,,T4,7,a\n2000,200,2,,T4,8,b\n", &err));
    assert_ok(traces_combine(f, &plain, &err));
    assert_int_equal(f->r.n_kept, 1);
    assert_string_equal(f->r.run[1].why, "launch 2 is in another stream");
    traces_end(f);
}

#define K(name, ts, dur, corr)                                                                     \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"tid\":7,\"ts\":" ts ",\"dur\":" dur  \
    ",\"args\":{\"correlation\":" corr "}}"
#define L(ts, corr, ext)                                                                           \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"l\",\"tid\":1,\"ts\":" ts                   \
    ",\"dur\":1,\"args\":{\"correlation\":" corr ",\"External id\":" ext "}}"
#define O(name, ts, ext)                                                                           \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"tid\":1,\"ts\":" ts                  \
    ",\"dur\":10,\"args\":{\"External id\":" ext "}}"
#define S(name, ts, dur)                                                                           \
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"" name "\",\"tid\":1,\"ts\":" ts         \
    ",\"dur\":" dur "}"

/* Two kernels of one call are one run of the operator; a kernel without a call is counted as
 * unmatched. */
/* strings joined by macros: the formatter indents each one further */
/* clang-format off */
static const char steps[] = "[" S("ProfilerStep#1", "0", "50") "," O("mm", "10", "1") ","
    L("11", "1", "1") "," L("12", "2", "1") "," O("mm", "30", "2") "," L("31", "3", "2") ","
    K("gemm", "60", "5", "1") "," K("reduce", "70", "1", "2") "," K("gemm", "80", "8", "3") ",\n"
    S("ProfilerStep#2", "100", "50") "," O("mm", "110", "3") "," L("111", "11", "3") ","
    L("112", "12", "3") "," O("mm", "130", "4") "," L("131", "13", "4") ","
    K("gemm", "160", "7", "11") "," K("reduce", "170", "1", "12") "," K("gemm", "180", "8", "13")
    ",\n" S("other", "200", "50") "," K("alone", "210", "3", "99") "]";
/* clang-format on */

TEST(operators) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "t.json", steps, &err));
    assert_ok(traces_combine(f, &plain, &err));
    assert_int_equal(f->r.n_op, 1);
    assert_close(f->r.op[0].n, 4, 0, 0);
    assert_close(f->r.op[0].total_s, 30e-6, 1e-9, 0);
    assert_close(f->r.op[0].min_s, 6e-6, 1e-9, 0);
    assert_close(f->r.op[0].share, 30.0 / 33, 1e-9, 0);
    assert_close(f->r.unmatched, 1, 0, 0);
    assert_close(f->r.unmatched_s, 3e-6, 1e-9, 0);
    assert_int_equal(f->r.n_step, 5);
    assert_int_equal(f->r.step[0].n, 2);
    traces_end(f);
}

TEST(ranges_are_repeats) {
    traces *f = traces_begin();
    const cd_trace_combining o = {.range = "ProfilerStep*"}, none = {.range = "nothing*"};
    assert_ok(traces_text(f, "t.json", steps, &err));
    assert_ok(traces_combine(f, &o, &err));
    assert_int_equal(f->r.n_run, 2);
    assert_int_equal(f->r.n_kept, 2);
    assert_string_equal(f->r.run[1].range, "ProfilerStep#2");
    assert_int_equal(f->r.n_step, 2);
    assert_close(f->r.step[0].time_s, 7e-6, 1e-9, 0); /* of 6 and 8 */
    assert_close(f->r.op[0].n, 2, 0, 0);
    assert_close(f->r.op[0].total_s, 15e-6, 1e-9, 0);
    assert_close(f->r.unmatched, 0, 0, 0);
    assert_status(traces_combine(f, &none, &err), CDMPP_ENODATA);
    traces_end(f);
}

TEST(maps_and_networks) {
    static const cd_trace_operator two[] = {{"Conv+Relu", "[\"key\"]"}, {"MaxPool", NULL}};
    static const cd_trace_operator three[] = {{"a", NULL}, {"b", NULL}, {"c", NULL}};
    static const char map[] = "kernel,operator\nhelp*,-\ngemm*,MatMul\n",
                      no_map[] = "kernel,name\na,b\n";
    traces *f = traces_begin();
    cd_trace_map m;
    assert_ok(traces_text(f, "a.csv",
                          HEADER "1000,100,1,,T4,7,gemm_1\n2000,50,2,,T4,7,helper\n3000,200,2,,T4,"
                                 "7,pool\n3500,10,2,8,T4,7,[CUDA memcpy DtoH]\n",
                          &err));
    assert_ok(cd_trace_map_read(&m, tmp_put(&f->d, "map.csv", map, sizeof map - 1), &err));
    const cd_trace_combining by_map = {.map = &m},
                             by_both = {.map = &m, .network = two, .n_network = 2},
                             by_order = {.network = three, .n_network = 3},
                             wrong = {.network = two, .n_network = 2};
    assert_ok(traces_combine(f, &by_map, &err));
    assert_int_equal(f->r.n_op, 1);
    assert_string_equal(f->r.op[0].name, "MatMul");
    assert_close(f->r.unmatched, 2, 0, 0); /* the helper and the pool */
    assert_ok(traces_combine(f, &by_both, &err));
    assert_string_equal(f->r.step[0].op, "Conv+Relu");
    assert_string_equal(f->r.step[0].key, "[\"key\"]");
    assert_null(f->r.step[2].key);
    cd_buf b = {0};
    assert_ok(cd_trace_put_graph(&b, &f->r, "x", NULL, &err));
    assert_non_null(strstr(b.p, "\"kind\": \"task\", \"key\": \"[\\\"key\\\"]\", \"given_s\": "));
    cd_buf_free(&b);
    assert_string_equal(f->r.step[1].op, "");
    assert_string_equal(f->r.step[2].op, "MaxPool");
    assert_string_equal(f->r.step[3].op, "");
    assert_ok(traces_combine(f, &by_order, &err));
    assert_string_equal(f->r.step[2].op, "c");
    assert_status(traces_combine(f, &wrong, &err), CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "the network has 2 operators and a repeat has 3 kernels"));
    cd_trace_map_free(&m);
    assert_status(cd_trace_map_read(&m, tmp_put(&f->d, "map.csv", no_map, sizeof no_map - 1), &err),
                  CDMPP_ESCHEMA);
    cd_trace_map_free(&m);
    traces_end(f);
}

/* Habana's graph names operators and their inputs; inputs of an odd form are not known. */
TEST(graphs_of_habana) {
    static const char graph[] =
        " {\"nodes\": [{\"name\": \"net/conv1\", \"op\": \"spatial_convolution\", \"attrs\": "
        "{\"input_0\": \"x:0  |  [8,3,224,224]  |  int8  |  zp = -14, scale = 0.1  |  ModelParam = "
        "0  |  \","
        "\"input_1\": \"w  |  [64,3,7,7]  |  int8  |  \", \"output_0\": \"y  |  [1]  |  int8  |  "
        "\"}}, {\"name\": \"net/odd\", \"op\": \"relu\", \"attrs\": {\"input_0\": \"x  |  [8,,3]  "
        "|  \"}}]}";
    static const char twice[] =
        "{\"nodes\": [{\"name\": \"a\", \"op\": \"b\"}, {\"name\": \"a\", \"op\": \"c\"}]}",
                      none[] = "{\"nodes\": [{\"name\": \"a\"}]}";
    traces *f = traces_begin();
    cd_trace_map m;
    assert_ok(traces_text(
        f, "a.csv",
        HEADER "1000,100,1,,G,7,net/conv1\n2000,50,2,,G,7,net/odd\n3000,200,2,,G,7,net/lost\n",
        &err));
    assert_ok(cd_trace_map_read(&m, tmp_put(&f->d, "g.json", graph, sizeof graph - 1), &err));
    const cd_trace_combining o = {.map = &m};
    assert_ok(traces_combine(f, &o, &err));
    assert_int_equal(f->r.n_op, 2);
    assert_string_equal(f->r.op[0].name, "spatial_convolution");
    assert_string_equal(f->r.op[0].shape, "[[8,3,224,224],[64,3,7,7]]");
    assert_string_equal(f->r.op[1].shape, "");
    assert_close(f->r.unmatched, 1, 0, 0);
    cd_trace_map_free(&m);
    assert_status(cd_trace_map_read(&m, tmp_put(&f->d, "g.json", twice, sizeof twice - 1), &err),
                  CDMPP_ESCHEMA);
    assert_non_null(strstr(err.msg, "two nodes are named 'a'"));
    cd_trace_map_free(&m);
    assert_status(cd_trace_map_read(&m, tmp_put(&f->d, "g.json", none, sizeof none - 1), &err),
                  CDMPP_ESCHEMA);
    cd_trace_map_free(&m);
    assert_status(cd_trace_map_read(&m, tmp_put(&f->d, "g.json", graph, 40), &err), CDMPP_EPARSE);
    cd_trace_map_free(&m);
    traces_end(f);
}

TEST(summaries) {
    traces *f = traces_begin();
    assert_ok(
        traces_text(f, "a.csv",
                    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max "
                    "(ns),Name\n75,3000,2,1500,1450,1400,1600,a\n25,1000,10,100,100,90,110,b\n",
                    &err));
    assert_ok(
        traces_text(f, "b.csv",
                    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max "
                    "(ns),Name\n75,5000,2,2500,2450,2400,2600,a\n25,1000,10,100,100,90,110,b\n",
                    &err));
    assert_ok(traces_combine(f, &plain, &err));
    assert_int_equal(f->r.n_kept, 2);
    assert_int_equal(f->r.n_device, 0);
    assert_true(isnan(f->r.wall_s));
    const cd_trace_group *a = group(f->r.kernel, f->r.n_kernel, "a");
    assert_close(a->n, 2, 0, 0);
    assert_close(a->total_s, 4e-6, 1e-9, 0);
    assert_close(a->mean_s, 2e-6, 1e-9, 0);
    assert_close(a->min_s, 1.4e-6, 1e-9, 0);
    assert_close(a->max_s, 2.6e-6, 1e-9, 0);
    assert_true(isnan(a->median_s)); /* of two summaries nobody knows it */
    assert_close(a->share, 0.8, 1e-9, 0);
    traces_end(f);
}

TEST(nothing_launched) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "t.json", "[" O("mm", "10", "1") "]", &err));
    assert_status(traces_combine(f, &plain, &err), CDMPP_ENODATA);
    traces_end(f);
}

TEST(memory) {
    traces *d = traces_begin();
    const cd_trace_combining o = {.range = "ProfilerStep*"};
    assert_ok(traces_text(d, "t.json", steps, &err));
    FAULT_SWEEP(f, 10) {
        cd_trace_runs r;
        cd_buf b = {0};
        size_t n;
        f.st = cd_trace_combine((const cd_trace *const *)d->t, d->path, 1, &o, &r, &f.err);
        if (!f.st) f.st = cd_trace_put_graph(&b, &r, "x", NULL, &f.err);
        if (!f.st) f.st = cd_trace_put_table(&b, &r, NULL, &n, &f.err);
        cd_buf_free(&b);
        cd_trace_runs_free(&r);
    }
    traces_end(d);
}

TESTS(NULL, NULL, busy_is_the_union, repeats_of_other_launches_are_left_out, one_stream_or_two,
      operators, ranges_are_repeats, maps_and_networks, graphs_of_habana, summaries,
      nothing_launched, memory)
