/* Odd traces of all forms that are text, and odd files of which operators kernels are. */
#include "odd.h"
#include "traces.h"

/* The first byte of a seed says the form (tests/fuzz/fuzz_trace.c). */
static cdmpp_status trace(void *ctx, const char *text, size_t n, cdmpp_err *err) {
    static const cd_trace_form form[] = {CD_TRACE_CHROME, CD_TRACE_NSYS, CD_TRACE_CSV,
                                         CD_TRACE_AUTO};
    const cd_trace_reading how = {.form = n ? form[(unsigned char)text[0] % 4] : CD_TRACE_AUTO,
                                  .bad = traces_bad,
                                  .ctx = ctx};
    traces *f = ctx;
    cd_trace *t = NULL;
    unlink(tmp_path(&f->d, "t"));
    cdmpp_status st =
        cd_trace_read(tmp_put(&f->d, "t", text + (n > 0), n - (n > 0)), &how, &t, err);
    if (!st) st = cd_trace_link(t, err);
    cd_trace_free(t);
    return st;
}

static cdmpp_status map(const char *path, cdmpp_err *err) {
    cd_trace_map m = {0};
    const cdmpp_status st = cd_trace_map_read(&m, path, err);
    cd_trace_map_free(&m);
    return st;
}

TEST(files) {
    traces *f = traces_begin();
    odd_all_of_seeds("tests/fuzz/seeds/trace", 1100, trace, f);
    traces_end(f);
}

TEST(maps) {
    tmp_dir dir = tmp_make();
    const char *path = tmp_path(&dir, "map");
    odd_all_of_file(
        path, "kernel,operator,shape\ngemm,dense,\"[[1,2],[2,3]]\"\nconv*,conv2d,\nhelp*,-,\n",
        map);
    odd_all_of_file(
        path,
        "{\"Layers\": [{\"Name\": \"conv1\", \"LayerType\": \"Convolution\", \"Inputs\": "
        "[{\"Name\": \"x\", \"Dimensions\": [1, 3, 8, 8], \"Format/Datatype\": \"Half\"}], "
        "\"Outputs\": []}, {\"Name\": \"relu\", \"LayerType\": \"Activation\"}]}",
        map);
    odd_all_of_file(
        path,
        "{\"nodes\": [{\"name\": \"n1\", \"op\": \"conv\", \"attrs\": {\"input_0\": \"x:0  |  "
        "[8,3,224]  |  int8  |  zp\", \"input_1\": \"w  |  [64,3]  |  int8\", \"output_0\": \"y  | "
        " [1]\"}}, "
        "{\"name\": \"n2\", \"op\": \"relu\", \"attrs\": {\"input_0\": \"x  |  [8,,3]  |  \"}}, "
        "{\"name\": \"n3\", \"op\": \"relu\", \"attrs\": {\"input_0\": \"]x[\"}}]}",
        map);
    tmp_remove(&dir);
}

TESTS(NULL, NULL, files, maps)
