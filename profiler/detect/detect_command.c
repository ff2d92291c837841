/* A back end that is a command: each network becomes an ONNX file, and the last line that the
 * command prints is its time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "profiler/detect/detect.h"
#include "profiler/network/onnx/onnx.h"

/* The last line that is not empty. */
static cd_str last_line(cd_str text) {
    while (text.n && strchr(" \t\r\n", text.p[text.n - 1])) text.n--;
    size_t from = text.n;
    while (from && text.p[from - 1] != '\n') from--;
    return (cd_str){text.p + from, text.n - from};
}

/* It must be a number and nothing else. */
static cdmpp_status read_time(cd_str text, double *out, cdmpp_err *err) {
    const cd_str line = last_line(text);
    const char *end = cd_json_number(line.p, line.p + line.n, out);
    if (line.n && end == line.p + line.n) return CDMPP_OK;
    return CD_FAIL(err, EBACKEND, "expected seconds as the last line of the command, found '%.*s'",
                   line.n < 80 ? (int)line.n : 80, line.p);
}

static cdmpp_status call(const cd_detect_command *c, const char *path, double *out,
                         cdmpp_err *err) {
    const char *const argv[] = {"/bin/sh", "-c", c->command, "cdmpp-fusion", path, NULL};
    cd_subprocess p = {.argv = argv, .limit_s = c->limit_s};
    char said[80];
    cdmpp_status st = cd_subprocess_run(&p, 1, 1, c->stop, err);
    const cd_str text = {p.text.p ? p.text.p : "", p.text.n};
    /* what went wrong stands at the end: warnings come before it */
    if (!st && (p.end != CD_SPAWN_EXITED || p.code)) {
        const cd_str line = last_line(text);
        st = CD_FAIL(err, EBACKEND, "the command: %s%s%.*s",
                     cd_subprocess_say(&p, said, sizeof said), line.n ? ": " : "",
                     line.n < 160 ? (int)line.n : 160, line.p);
    }
    if (!st) st = read_time(text, out, err);
    cd_buf_free(&p.text);
    return st;
}

/* An empty file of a name that nobody else has, in $TMPDIR. */
static cdmpp_status new_file(char *path, size_t n, cdmpp_err *err) {
    const char *folder = getenv("TMPDIR");
    const int len =
        snprintf(path, n, "%s/cdmpp-fusion-XXXXXX.onnx", folder && *folder ? folder : "/tmp");
    const int fd = len > 0 && (size_t)len < n ? mkstemps(path, 5) : -1;
    if (fd < 0) return CD_FAIL(err, EIO, "%s: no file can be made", path);
    close(fd);
    return CDMPP_OK;
}

static cdmpp_status time_of(void *ctx, const cd_detect_network *n, unsigned repeat, double *seconds,
                            cdmpp_err *err) {
    const cd_detect_command *c = ctx;
    char path[4096];
    cd_buf file = {0};
    (void)repeat;
    cdmpp_status st = cd_onnx_write(n->graph, &file, err);
    if (!st) st = new_file(path, sizeof path, err);
    if (!st) {
        st = cd_file_write(path, file.p, file.n, err);
        if (!st) st = call(c, path, seconds, err);
        unlink(path);
    }
    cd_buf_free(&file);
    return st;
}

cd_detect_backend cd_detect_command_backend(cd_detect_command *c) {
    return (cd_detect_backend){.ctx = c, .time = time_of};
}
