/* Events inside of others, launches that overlap: in no form of file is a time counted twice
 * without a word. */
#include "fault.h"
#include "profiler/trace/trace.h"
#include "traces.h"

static cdmpp_err err;

/* An operator of the autograd profiler on a device, and on the host. */
#define GPU(name, gpu, ts, dur)                                                                    \
    "{\"name\": \"" name "\", \"ph\": \"X\", \"ts\": " ts ", \"dur\": " dur ", \"tid\": " gpu      \
    ", \"pid\": \"CUDA functions\", \"args\": {}}"
#define CPU(name, ts, dur)                                                                         \
    "{\"name\": \"" name "\", \"ph\": \"X\", \"ts\": " ts ", \"dur\": " dur                        \
    ", \"tid\": 0, \"pid\": \"CPU functions\", \"args\": {}}"
#define K(name, ts, dur, args)                                                                     \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":7,\"ts\":" ts        \
    ",\"dur\":" dur ",\"args\":{" args "}}"

static double share(const traces *f, const char *name) {
    for (size_t i = 0; i < f->r.n_kernel; i++)
        if (!strcmp(f->r.kernel[i].name, name)) return f->r.kernel[i].share;
    return 0;
}

static void combine(traces *f) {
    const cd_trace_combining o = {0};
    assert_ok(traces_combine(f, &o, &err));
}

static const char *said(const traces *f) { return f->t[0]->said.p ? f->t[0]->said.p : ""; }

TEST(operators_of_the_autograd_profiler) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "t.json",
        "[" CPU("aten::mlp", "0", "900") "," GPU("aten::mlp", "0", "10", "400") "," GPU(
            "aten::linear", "0", "20",
            "300") "," GPU("aten::addmm", "0", "30",
                           "200") "," GPU("aten::relu", "0", "320",
                                          "50") "," GPU("aten::softmax", "0", "500",
                                                        "100") "," GPU("aten::relu", "1", "500",
                                                                       "60") "]",
        &err));
    combine(f);
    assert_int_equal(f->r.run[0].n, 3); /* mlp, softmax; relu on the other GPU */
    assert_close(share(f, "aten::mlp"), 400. / 560, 1e-9, 0);
    assert_close(share(f, "aten::softmax"), 100. / 560, 1e-9, 0);
    assert_int_equal(f->r.n_device, 2);
    assert_close(f->r.device[0].kernel_s, f->r.device[0].busy_s, 1e-9, 0);
    assert_string_equal(f->r.device[0].name, "cuda:0");
    assert_string_equal(f->r.device[1].name, "cuda:1");
    assert_string_equal(said(f), "3 events lie inside others of their stream and have no launch of "
                                 "their own: they are parts of those and not counted\n");
    traces_end(f);
}

/* Law: whatever is nested in a stream, the sum of what is left is the time in which the stream was
 * busy. */
TEST(sum_is_busy_time) {
    for (uint64_t seed = 0; seed < 200; seed++) {
        traces *f = traces_begin();
        cd_buf b = {0};
        cd_buf_puts(&b, "[");
        double from = 0, to = 0, end = 0; /* of the innermost open event; of the outermost */
        for (int i = 0; i < 40; i++) {
            const uint64_t x = cd_rng_at(seed, (uint64_t)i);
            const bool inside = i && x % 3 && to - from > 8;
            from = inside ? from + 1 : end + (double)(x % 5);
            to = inside ? to - 1 : from + 4 + (double)(x / 7 % 60);
            end = inside ? end : to;
            cd_buf_putf(&b,
                        "%s{\"name\":\"k%d\",\"ph\":\"X\",\"ts\":%.0f,\"dur\":%.0f,\"tid\":0,"
                        "\"pid\":\"CUDA functions\",\"args\":{}}",
                        i ? "," : "", i, from, to - from);
        }
        cd_buf_puts(&b, "]");
        assert_ok(traces_text(f, "t.json", b.p, &err));
        combine(f);
        assert_null(strstr(said(f), "launches run while"));
        assert_close(f->r.device[0].kernel_s, f->r.device[0].busy_s, 1e-9, 0);
        cd_buf_free(&b);
        traces_end(f);
    }
}

/* Kernels with a launch of their own run at the same time in branches of a CUDA graph: all count,
 * and that is said. */
TEST(launches_that_overlap) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "t.json",
        "[" K("a", "10", "100", "\"stream\":7,\"correlation\":1") "," K(
            "b", "20", "50",
            "\"stream\":7,\"correlation\":2") "," K("c", "200", "10",
                                                    "\"stream\":7,\"correlation\":3") "]",
        &err));
    combine(f);
    assert_int_equal(f->r.run[0].n, 3);
    assert_string_equal(said(f), "1 launches run while another one of their stream does: sums of "
                                 "kernels exceed the busy time by 50.0 us; a stream runs one "
                                 "kernel after another, but for branches of a CUDA graph\n");
    traces_end(f);
}

/* Streams are told apart; what touches does not overlap; starts since 1970 are only known to a
 * quarter of a microsecond. */
TEST(nothing_to_say) {
    static const char *const text[] = {
        "[" K("a", "10", "100", "\"stream\":7") "," K("b", "20", "50", "\"stream\":8") "]",
        "[" K("a", "10", "10", "\"stream\":7") "," K("b", "20", "50", "\"stream\":7") "]",
        "[" K("a", "1700000000000000.25", "10.1", "\"stream\":7") "," K("b", "1700000000000010.25",
                                                                        "50", "\"stream\":7") "]"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        traces *f = traces_begin();
        assert_ok(traces_text(f, "t.json", text[i], &err));
        assert_int_equal(f->t[0]->n, 2);
        assert_string_equal(said(f), "");
        traces_end(f);
    }
}

TEST(tables_too) {
    traces *f = traces_begin();
    assert_ok(traces_text(
        f, "t.csv",
        "Start (ns),Duration "
        "(ns),Device,Strm,Name\n1000,500,T4,7,outer\n1100,200,T4,7,inner\n1600,100,T4,7,next\n",
        &err));
    assert_int_equal(f->t[0]->n, 2);
    assert_non_null(strstr(said(f), "1 events lie inside others"));
    traces_end(f);
}

TEST(memory) {
    traces *d = traces_begin();
    static const char text[] = "[" GPU("a", "0", "10", "400") "," GPU("b", "0", "20", "300") "," K(
        "c", "10", "100", "\"correlation\":1") "," K("d", "20", "100", "\"correlation\":2") "]";
    const char *path = tmp_put(&d->d, "t.json", text, sizeof text - 1);
    FAULT_SWEEP(f, 10) {
        const cd_trace_reading how = {0};
        cd_trace *t = NULL;
        f.st = cd_trace_read(path, &how, &t, &f.err);
        cd_trace_free(t);
    }
    traces_end(d);
}

TESTS(NULL, NULL, operators_of_the_autograd_profiler, sum_is_busy_time, launches_that_overlap,
      nothing_to_say, tables_too, memory)
