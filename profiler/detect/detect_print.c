/* What a detection found: as a file of rules, and as a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "profiler/detect/detect.h"
#include "profiler/network/onnx/onnx.h"

/* A back end that is a command: each network becomes an ONNX file, and the last line that the
 * command prints is its time. */

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

static void put_answer(cd_json_writer *w, const char *key, cd_fusion_answer a) {
    cd_json_write_key(w, key);
    if (a == CD_FUSION_UNKNOWN) cd_json_write_null(w);
    else cd_json_write_bool(w, a == CD_FUSION_FUSED);
}

static void put_figures(cd_json_writer *w, const cd_detect_test *t) {
    cd_json_write_member_real(w, "confidence", t->confidence);
    cd_json_write_member_real(w, "saving", t->saving);
    cd_json_write_member_real(w, "saving_low", t->saving_low);
    cd_json_write_member_real(w, "saving_high", t->saving_high);
    cd_json_write_member_real(w, "left_s", t->left_s);
    cd_json_write_member_real(w, "right_s", t->right_s);
    cd_json_write_member_real(w, "both_s", t->both_s);
    cd_json_write_member_int(w, "repeats", t->repeats);
    if (t->known != CD_FUSION_UNKNOWN) put_answer(w, "known", t->known);
}

cdmpp_status cd_detect_json(cd_buf *out, const cd_detect *d, const char *backend, cdmpp_err *err) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "schema", CD_FUSION_RULES_SCHEMA);
    cd_json_write_member_str(&w, "backend", backend);
    cd_json_write_member_real(&w, "alpha", d->alpha);
    cd_json_write_member_real(&w, "level", d->level);
    cd_json_write_key(&w, "rules");
    cd_json_write_open(&w, '[');
    for (const cd_detect_test *t = d->test; t < d->test + d->n; t++) {
        cd_json_write_open(&w, '{');
        if (t->before) cd_json_write_member_str(&w, "before", t->before);
        cd_json_write_member_str(&w, "first", t->first);
        cd_json_write_member_str(&w, "second", t->second);
        put_answer(&w, "fused", t->answer);
        if (t->why.code) cd_json_write_member_str(&w, "error", t->why.msg);
        else put_figures(&w, t);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
    return out->oom ? CD_FAIL(err, ENOMEM, "rules of fusion") : CDMPP_OK;
}

/* ---- the table ---- */

static void put_row(cd_buf *b, const cd_detect_test *t) {
    static const char *const word[] = {"undecided", "no", "yes"};
    cd_buf name = {0};
    cd_buf_putf(&name, "%s%s%s", t->before ? t->before : "", t->before ? "+" : "", t->first);
    cd_buf_putf(b, "%-30.30s %-18s %-9s ", name.p ? name.p : "",
                strcmp(t->second, CD_FUSION_RULES_MANY) ? t->second : "several readers",
                word[t->answer]);
    if (t->why.code) cd_buf_putf(b, "%s\n", t->why.msg);
    else
        cd_buf_putf(b, "%10.4f %7.2f %7.2f..%-6.2f %9.4f %9.4f %9.4f %7u%s\n", t->confidence,
                    t->saving, t->saving_low, t->saving_high, t->left_s * 1e3, t->right_s * 1e3,
                    t->both_s * 1e3, t->repeats,
                    t->answer && t->known && t->answer != t->known
                        ? "  wrong: the back end says otherwise"
                        : "");
    b->oom = b->oom || name.oom;
    cd_buf_free(&name);
}

cdmpp_status cd_detect_text(cd_buf *out, const cd_detect *d, cdmpp_err *err) {
    uint32_t count[3] = {0}, known = 0, right = 0;
    cd_buf_puts(out, "left                           right              fused     confidence  "
                     "saving   low..high     left ms  right ms   both ms repeats\n");
    for (const cd_detect_test *t = d->test; t < d->test + d->n; t++) {
        put_row(out, t);
        count[t->answer]++;
        known += t->known != CD_FUSION_UNKNOWN;
        right += t->known != CD_FUSION_UNKNOWN && t->known == t->answer;
    }
    cd_buf_putf(out, "%u tests: %u fused, %u apart, %u undecided\n", d->n, count[CD_FUSION_FUSED],
                count[CD_FUSION_APART], count[CD_FUSION_UNKNOWN]);
    if (known) cd_buf_putf(out, "as the back end says itself: %u of %u\n", right, known);
    return out->oom ? CD_FAIL(err, ENOMEM, "rules of fusion") : CDMPP_OK;
}
