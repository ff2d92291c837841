/* Lines of JSON that a bench has written before, so that it goes on where it was stopped. */
#ifndef BENCH_LINES_H
#define BENCH_LINES_H
#include <math.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/text/text.h"

static inline double number(const cd_json *j, const char *key) {
    const cd_json *v = cd_json_get(j, key);
    double x = (double)NAN;
    return v && !cd_json_real_or_nan(v, &x, NULL) ? x : (double)NAN;
}

typedef void line_fn(const cd_json *j, void *ctx);

/* Each whole line of the file; none where it is not there. */
static inline cdmpp_status each_line(const char *path, line_fn *f, void *ctx, cdmpp_err *err) {
    cd_file_lines *in = NULL;
    cd_arena a = {0};
    char *line;
    size_t n;
    if (access(path, R_OK)) return CDMPP_OK;
    CD_TRY(cd_file_lines_open(path, 0, &in, err));
    while (!cd_file_lines_next(in, &line, &n, err) && line) {
        const cd_json *j;
        cd_arena_reset(&a);
        /* half a line: it is run again */
        if (n && !cd_json_parse(&a, line, n, &j, NULL)) f(j, ctx);
    }
    cd_file_lines_close(in);
    cd_arena_free(&a);
    return CDMPP_OK;
}
#endif
