/* The file of samples: a line each, written by one write, so that a kill leaves at most half a line
 * at the end. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "learner/kernels/kernels.h"

void cd_kernel_samples_free(cd_kernel_samples *s) {
    if (s->fd >= 0) close(s->fd);
    cd_arena_free(&s->arena);
    *s = (cd_kernel_samples){.fd = -1};
}

static cdmpp_status keep(cd_kernel_samples *s, const cd_kernel_sample *v, cdmpp_err *err) {
    if (CD_GROW_IN(&s->arena, s->v, s->n, s->cap)) return CD_FAIL(err, ENOMEM, "samples");
    s->v[s->n] = *v;
    s->v[s->n].kernel.type =
        cd_str_dup(&s->arena, (cd_str){v->kernel.type, strlen(v->kernel.type)});
    if (!s->v[s->n].kernel.type) return CD_FAIL(err, ENOMEM, "samples");
    s->n++;
    return CDMPP_OK;
}

/* ---- reading ---- */

static cdmpp_status read_sample(cd_arena *a, const char *text, size_t n, cd_kernel_sample *v,
                                cdmpp_err *err) {
    const cd_json *top, *held;
    uint64_t round;
    size_t width;
    cd_str type;
    CD_TRY(cd_json_parse(a, text, n, &top, err));
    CD_TRY(cd_json_need_str(top, "type", &type, err));
    v->kernel.type = cd_str_dup(a, type);
    if (!v->kernel.type) return CD_FAIL(err, ENOMEM, "samples");
    CD_TRY(cd_json_need_reals(top, "x", CD_KERNEL_WIDTH, CD_KERNEL_WIDTH, 0, 1e30, CD_JSON_ANY,
                              v->kernel.x, &width, err));
    if (cd_json_get(top, "analytic_s"))
        CD_TRY(cd_json_need_real(top, "analytic_s", 0, 1e9, &v->kernel.analytic_s, err));
    CD_TRY(cd_json_need_real(top, "seconds", 1e-15, 1e9, &v->seconds, err));
    CD_TRY(cd_json_need_count(top, "draw", &v->draw, err));
    CD_TRY(cd_json_need_count(top, "root", &v->root, err));
    CD_TRY(cd_json_need_count(top, "round", &round, err));
    CD_TRY(cd_json_need(top, "held", &held, err));
    if (held->kind != CD_JSON_BOOL)
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA, "expected true or false, found %s",
                                  cd_json_kind_name(held->kind)),
                          "held");
    v->round = (uint32_t)round;
    v->held = held->u.i;
    return CDMPP_OK;
}

typedef struct {
    const char *path;
    cd_kernel_bad_line *bad;
    void *ctx;
} source;

static void leave_out(const source *f, long line, cdmpp_status st, cdmpp_err *why) {
    (void)cd_err_at(why, st, f->path, line);
    f->bad(f->ctx, why);
}

/* Whole lines; *whole: bytes of them, *line: how many. */
static cdmpp_status read_lines(cd_kernel_samples *s, const source *f, const char *text, size_t n,
                               size_t *whole, long *line, cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    *whole = 0;
    *line = 0;
    for (const char *end; !st && (end = memchr(text + *whole, '\n', n - *whole)) != NULL;
         cd_arena_reset(&a)) {
        const size_t len = (size_t)(end - text) - *whole;
        cd_kernel_sample v = {0};
        cdmpp_err why = {0};
        const cdmpp_status read = read_sample(&a, text + *whole, len, &v, &why);
        ++*line;
        if (!read) st = keep(s, &v, err);
        else if (read == CDMPP_ENOMEM) st = CD_FAIL(err, ENOMEM, "samples");
        else leave_out(f, *line, read, &why);
        *whole += len + 1;
    }
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_kernel_samples_open(const char *path, bool grow, cd_kernel_bad_line *bad, void *ctx,
                                    cd_kernel_samples *s, cdmpp_err *err) {
    const source f = {path, bad, ctx};
    char *text = NULL;
    size_t n = 0, whole = 0;
    long line = 0;
    cdmpp_err why = {0};
    *s = (cd_kernel_samples){.fd = -1};
    if (grow) {
        s->fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (s->fd < 0) return cd_err_at(err, CD_FAIL(err, EIO, "%s", strerror(errno)), path, 0);
    }
    cdmpp_status st = cd_file_read(path, 0, &text, &n, err);
    if (!st) st = read_lines(s, &f, text, n, &whole, &line, err);
    if (!st && whole < n && !grow)
        leave_out(&f, line + 1, CD_FAIL(&why, EPARSE, "the last line has no end"), &why);
    if (!st && whole < n && grow && ftruncate(s->fd, (off_t)whole))
        st = cd_err_at(err, CD_FAIL(err, EIO, "%s", strerror(errno)), path, 0);
    cd_mem_free(text);
    return st;
}

/* ---- writing ---- */

static void put_sample(cd_buf *b, const cd_kernel_sample *v) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "type", v->kernel.type);
    cd_json_write_key(&w, "x");
    cd_json_write_reals(&w, v->kernel.x, CD_KERNEL_WIDTH);
    if (v->kernel.analytic_s > 0) cd_json_write_member_real(&w, "analytic_s", v->kernel.analytic_s);
    cd_json_write_member_real(&w, "seconds", v->seconds);
    cd_json_write_member_int(&w, "draw", (int64_t)v->draw);
    cd_json_write_member_int(&w, "root", (int64_t)v->root);
    cd_json_write_member_int(&w, "round", v->round);
    cd_json_write_member_bool(&w, "held", v->held);
    cd_json_write_close(&w, '}');
    cd_buf_puts(b, "\n");
}

cdmpp_status cd_kernel_samples_add(cd_kernel_samples *s, const cd_kernel_sample *v,
                                   cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    if (!isfinite(v->seconds) || v->seconds < 1e-15 || v->seconds > 1e9)
        return CD_FAIL(err, ENUMERIC, "a time of %g s", v->seconds);
    put_sample(&b, v);
    if (b.oom) st = CD_FAIL(err, ENOMEM, "samples");
    for (size_t done = 0; !st && s->fd >= 0 && done < b.n;) {
        const ssize_t k = write(s->fd, b.p + done, b.n - done);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) st = CD_FAIL(err, EIO, "samples: %s", strerror(errno));
        else done += (size_t)k;
    }
    cd_buf_free(&b);
    return st ? st : keep(s, v, err);
}
