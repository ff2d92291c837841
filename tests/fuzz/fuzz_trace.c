/* The readers of traces on any bytes: no crash, and what was read can be combined, and written as
 * JSON that is JSON. The first byte says which form. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void look(const cd_trace *t, const cd_trace_combining *how) {
    const char *const path = "x";
    cd_trace_runs r;
    cd_arena a = {0};
    cd_buf b = {0};
    cdmpp_err err = {0};
    const cd_json *v;
    size_t rows;
    if (!cd_trace_combine(&t, &path, 1, how, &r, &err)) {
        cd_trace_put_text(&b, &r, 0);
        cd_buf_clear(&b);
        cd_trace_put_json(&b, &r);
        if (!b.oom && cd_json_parse(&a, b.p, b.n, &v, &err)) abort();
        cd_buf_clear(&b);
        if (cd_trace_put_graph(&b, &r, "x", NULL, &err)) abort();
        if (cd_json_parse(&a, b.p, b.n, &v, &err)) abort();
        cd_buf_clear(&b);
        if (cd_trace_put_table(&b, &r, NULL, &rows, &err)) abort();
    }
    cd_trace_runs_free(&r);
    cd_arena_free(&a);
    cd_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const cd_trace_form form[] = {CD_TRACE_CHROME, CD_TRACE_NSYS, CD_TRACE_CSV,
                                         CD_TRACE_AUTO};
    const cd_trace_combining plain = {0}, ranges = {.range = "*"};
    cdmpp_err err = {0};
    cd_trace *t = NULL;
    char path[64];
    if (!n) return 0;
    const cd_trace_reading how = {.form = form[data[0] % 4]};
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data + 1, n - 1) != (ssize_t)(n - 1)) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!cd_trace_read(path, &how, &t, &err)) {
        if (cd_trace_link(t, &err)) abort();
        look(t, &plain);
        look(t, &ranges);
    }
    cd_trace_free(t);
    close(fd);
    return 0;
}
