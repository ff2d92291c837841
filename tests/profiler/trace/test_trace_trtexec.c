/* What trtexec writes: a profile of layers, times of inferences, the layers of an engine; and lists
 * that no reader knows. */
#include "fault.h"
#include "profiler/trace/trace.h"
#include "traces.h"

static cdmpp_err err;

static const char profile[] =
    "[\n  { \"count\" : 200 }\n, { \"name\" : \"conv1 + relu1\", \"timeMs\" : 8.02, \"averageMs\" "
    ": 0.0401, \"medianMs\" : 0.04, \"percentage\" : 80.2 }\n"
    ", { \"name\" : \"copy\", \"timeMs\" : 0, \"averageMs\" : 0, \"percentage\" : 0 }\n, { "
    "\"name\" : \"body\", \"timeMs\" : 1.98, \"averageMs\" : 0.0033, \"percentage\" : 19.8 }\n]";

TEST(layers_of_an_inference) {
    traces *f = traces_begin();
    const cd_trace_combining o = {0};
    assert_ok(traces_text(f, "p.json", profile, &err));
    assert_string_equal(f->t[0]->form, "trtexec profile");
    assert_close(f->t[0]->inferences, 200, 0, 0);
    assert_int_equal(f->t[0]->empty, 1);
    assert_ok(traces_combine(f, &o, &err));
    const cd_trace_group *k = f->r.kernel;
    assert_string_equal(k[0].name, "conv1 + relu1");
    assert_close(k[0].n, 1, 0, 0);
    assert_close(k[0].total_s, 40.1e-6, 1e-9, 0);
    assert_close(k[0].median_s, 40e-6, 1e-9, 0);
    assert_close(k[1].n, 3, 0, 0); /* ran three times in each inference */
    assert_close(k[1].total_s, 9.9e-6, 1e-9, 0);
    assert_close(k[0].share, 40.1 / 50, 1e-9, 0);
    traces_end(f);
}

/* Without the count, the layer that ran most often tells it. */
TEST(no_count) {
    traces *f = traces_begin();
    assert_ok(traces_text(f, "p.json",
                          "[{\"name\":\"a\",\"timeMs\":5,\"averageMs\":0.05},{\"name\":\"b\","
                          "\"timeMs\":1,\"averageMs\":0.01}]",
                          &err));
    assert_close(f->t[0]->inferences, 100, 0, 0);
    assert_close(f->t[0]->sum[0].n, 1, 0, 0);
    traces_end(f);
}

TEST(times_of_inferences) {
    static const char *const text[] = {
        "[{\"startEnqMs\":0.5,\"endEnqMs\":0.9,\"startH2dMs\":1,\"endH2dMs\":1.5,"
        "\"startComputeMs\":1.5,\"endComputeMs\":4,\"startD2hMs\":4,\"endD2hMs\":4.25,\"h2dMs\":0."
        "5,\"computeMs\":2.5,\"d2hMs\":0.25,\"latencyMs\":3.25},"
        "{\"startEnqMs\":2,\"endEnqMs\":2.1,\"startH2dMs\":2,\"endH2dMs\":2.5,\"startComputeMs\":2."
        "5,\"endComputeMs\":3.5,\"startD2hMs\":4,\"endD2hMs\":4.25}]",
        "[{\"startInMs\":1,\"endInMs\":1.5,\"startComputeMs\":1.5,\"endComputeMs\":4,"
        "\"startOutMs\":4,\"endOutMs\":4.25,\"inMs\":0.5,\"computeMs\":2.5,\"outMs\":0.25,"
        "\"latencyMs\":3.25,\"endToEndMs\":3.5},"
        "{\"startInMs\":2,\"endInMs\":2.5,\"startComputeMs\":2.5,\"endComputeMs\":3.5,"
        "\"startOutMs\":4,\"endOutMs\":4.25}]"};
    for (size_t i = 0; i < 2; i++) {
        traces *f = traces_begin();
        const cd_trace_combining o = {0};
        assert_ok(traces_text(f, "t.json", text[i], &err));
        assert_string_equal(f->t[0]->form, "trtexec times");
        assert_ok(traces_combine(f, &o, &err));
        assert_string_equal(f->r.kernel[0].name, "network");
        assert_close(f->r.kernel[0].n, 2, 0, 0);
        /* two streams: the second runs within the first, and counts */
        assert_close(f->r.kernel[0].total_s, 3.5e-3, 1e-9, 0);
        assert_non_null(
            strstr(f->t[0]->said.p, "1 launches run while another one of their stream does"));
        traces_end(f);
    }
}

TEST(layers_as_a_map) {
    traces *f = traces_begin();
    cd_trace_map m;
    const char *layers =
        "{\"Layers\": [{\"Name\": \"conv1 + relu1\", \"LayerType\": \"CaskConvolution\", "
        "\"Inputs\": [{\"Name\": \"x\", \"Dimensions\": [1,3,8,8], \"Format/Datatype\": "
        "\"FP32\"}]},"
        "{\"Name\": \"body\", \"LayerType\": \"PointWiseV2\"}], \"Bindings\": [\"x\", \"y\"]}";
    const char *path = tmp_put(&f->d, "l.json", layers, strlen(layers));
    assert_ok(cd_trace_map_read(&m, path, &err));
    const cd_trace_combining o = {.map = &m};
    assert_ok(traces_text(f, "p.json", profile, &err));
    assert_ok(traces_combine(f, &o, &err));
    assert_string_equal(f->r.op[0].name, "CaskConvolution");
    assert_string_equal(f->r.op[0].shape, "[[1,3,8,8]]");
    assert_string_equal(f->r.op[1].name, "PointWiseV2");
    cd_trace_map_free(&m);
    assert_status(traces_read(f, path, &err), CDMPP_ESCHEMA); /* alone they have no times */
    assert_non_null(strstr(err.msg, "give this file to --map"));
    static const char names[] = "{\"Layers\": [\"conv1\"]}";
    assert_status(cd_trace_map_read(&m, tmp_put(&f->d, "n.json", names, sizeof names - 1), &err),
                  CDMPP_ESCHEMA);
    assert_string_equal(err.key, "Layers[0]");
    assert_non_null(strstr(err.msg, "--profilingVerbosity=detailed"));
    cd_trace_map_free(&m);
    traces_end(f);
}

TEST(bad_rows) {
    traces *f = traces_begin();
    assert_ok(
        traces_text(f, "p.json",
                    "[{\"count\":0},\n{\"timeMs\":1,\"averageMs\":1},\n{\"name\":\"a\",\"timeMs\":"
                    "1e999,\"averageMs\":1},\n{\"name\":\"b\",\"timeMs\":1,\"averageMs\":1},"
                    "{\"startComputeMs\":5,\"endComputeMs\":4}]",
                    &err));
    assert_int_equal(f->bad, 4);
    assert_int_equal(f->t[0]->n, 1);
    traces_end(f);
}

/* A list of another program is refused, with what it is and what is read. */
TEST(strangers) {
    static const char *const text[] = {
        "{\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"/"
        "device:GPU:0\"}},{\"ph\":\"X\",\"cat\":\"Op\",\"name\":\"Conv2D\",\"pid\":1,\"tid\":1,"
        "\"ts\":1,\"dur\":2}]}",
        "[{\"operator\":\"conv\",\"ms\":3}]", "[1,2]"};
    static const char *const first[] = {"(the first of 2 events: ph 'X', cat 'Op', name 'Conv2D')",
                                        "(the first of 1 events: ph '', cat '', name '')",
                                        "(the first of 2 events: integer)"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        traces *f = traces_begin();
        assert_status(traces_text(f, "t.json", text[i], &err), CDMPP_ESCHEMA);
        assert_non_null(strstr(err.msg, first[i]));
        assert_non_null(strstr(err.msg, "export_chrome_trace"));
        traces_end(f);
    }
    traces *f = traces_begin();
    assert_status(traces_text(f, "t.json", "[]", &err), CDMPP_ENODATA);
    traces_end(f);
}

TEST(memory) {
    traces *d = traces_begin();
    const char *path = tmp_put(&d->d, "p.json", profile, sizeof profile - 1);
    FAULT_SWEEP(f, 10) {
        const cd_trace_reading how = {0};
        cd_trace *t = NULL;
        f.st = cd_trace_read(path, &how, &t, &f.err);
        cd_trace_free(t);
    }
    traces_end(d);
}

TESTS(NULL, NULL, layers_of_an_inference, no_count, times_of_inferences, layers_as_a_map, bad_rows,
      strangers, memory)
