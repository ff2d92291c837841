/* Reads lines from a pipe into one buffer. A line is given out where it lies; the buffer is moved
 * only when no line is in use. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io/io.h"
#include "predictor/serve/serve_internal.h"

struct cd_line_reader {
    int fd;
    size_t max;
    char *buf;
    size_t cap, beg, end, seen; /* no line end in beg .. seen */
    bool held, skipping, eof, whole;
    long number;
};

cdmpp_status cd_line_reader_new(int fd, size_t max_line, cd_line_reader **out, cdmpp_err *err) {
    cd_line_reader *in = cd_mem_zalloc(1, sizeof *in);
    if (!in || !(in->buf = cd_mem_alloc(CD_INTAKE_ROOM))) {
        cd_mem_free(in);
        return CD_FAIL(err, ENOMEM, "room for lines");
    }
    in->fd = fd;
    in->max = max_line;
    in->cap = CD_INTAKE_ROOM;
    *out = in;
    return CDMPP_OK;
}

void cd_line_reader_free(cd_line_reader *in) {
    if (!in) return;
    cd_mem_free(in->buf);
    cd_mem_free(in);
}

void cd_line_reader_release(cd_line_reader *in) { in->held = false; }
long cd_line_reader_number(const cd_line_reader *in) { return in->number; }
bool cd_line_reader_whole(const cd_line_reader *in) { return in->whole; }

int64_t cd_line_reader_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- what is there ---- */
static void give(cd_line_reader *in, size_t n, bool whole, cd_str *line) {
    *line = (cd_str){in->buf + in->beg, n};
    in->beg = in->seen = in->beg + n + whole;
    in->held = true;
    in->whole = whole;
    in->number++;
    if (whole && n && line->p[n - 1] == '\r') line->n--;
}

/* Looks for a line end in what was read. True: there is a line to give out, or the end of one that
 * was too long. */
static bool found(cd_line_reader *in, cd_line_reader_kind *kind, cd_str *line) {
    const char *nl =
        in->end > in->seen ? memchr(in->buf + in->seen, '\n', in->end - in->seen) : NULL;
    in->seen = in->end;
    *kind = in->skipping ? CD_INTAKE_LONG : CD_INTAKE_LINE;
    if (in->skipping) {
        in->seen = in->beg = nl ? (size_t)(nl - in->buf) + 1 : in->beg;
        if (!nl) in->seen = in->end = in->beg; /* forgotten at once */
        in->skipping = !nl && !in->eof;
        in->number += !in->skipping;
        return !in->skipping;
    }
    if (nl) {
        const size_t n = (size_t)(nl - in->buf) - in->beg;
        if (n <= in->max) {
            give(in, n, true, line);
        } else {
            in->beg = in->seen = in->beg + n + 1;
            in->number++;
            *kind = CD_INTAKE_LONG;
        }
        return true;
    }
    if (in->end - in->beg > in->max) {
        in->skipping = true;
        in->seen = in->end = in->beg;
        return false;
    }
    if (in->eof && in->end > in->beg) give(in, in->end - in->beg, false, line);
    else if (in->eof) *kind = CD_INTAKE_END;
    return in->eof;
}

/* ---- more of it ---- */
/* Room behind `end`; false: lines are held. */
static cdmpp_status room(cd_line_reader *in, bool *there, cdmpp_err *err) {
    *there = true;
    if (!in->held && in->beg) {
        memmove(in->buf, in->buf + in->beg, in->end - in->beg);
        in->seen -= in->beg;
        in->end -= in->beg;
        in->beg = 0;
    }
    if (in->end < in->cap) return CDMPP_OK;
    *there = !in->held;
    if (in->held) return CDMPP_OK;
    /* above max: never asked for again */
    const size_t cap = in->cap < in->max ? 2 * in->cap : in->max + CD_INTAKE_ROOM;
    char *p = cd_mem_realloc(in->buf, in->end, cap);
    if (!p) return CD_FAIL(err, ENOMEM, "line of %zu bytes", cap);
    in->buf = p;
    in->cap = cap;
    return CDMPP_OK;
}

/* Wait for input until then; true: there is some, or the end. */
static bool wait_for(int fd, short what, int64_t until_ns) {
    struct pollfd p = {.fd = fd, .events = what};
    int64_t left = until_ns < 0 ? 0 : until_ns - cd_line_reader_now();
    if (left < 0) left = 0;
    const struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    return ppoll(&p, 1, until_ns < 0 ? NULL : &t, NULL) > 0;
}

static bool again(int e) { return e == EINTR || e == EAGAIN || e == EWOULDBLOCK; }

/* A signal interrupts poll() and read(); the caller sees LATE and can look at its stop flag. */
cdmpp_status cd_line_reader_next(cd_line_reader *in, int64_t until_ns, cd_line_reader_kind *kind,
                                 cd_str *line, cdmpp_err *err) {
    bool there;
    while (!found(in, kind, line)) {
        CD_TRY(room(in, &there, err));
        if (!there) {
            *kind = CD_INTAKE_FULL;
            return CDMPP_OK;
        }
        if (!wait_for(in->fd, POLLIN, until_ns)) {
            *kind = CD_INTAKE_LATE;
            return CDMPP_OK;
        }
        const ssize_t n = read(in->fd, in->buf + in->end, in->cap - in->end);
        if (n < 0 && !again(errno))
            return CD_FAIL(err, EIO, "cannot read standard input: %s", strerror(errno));
        if (n > 0) in->end += (size_t)n;
        in->eof = !n;
    }
    return CDMPP_OK;
}

/* ---- frames, and writing ---- */
cdmpp_status cd_line_reader_bytes(int fd, void *to, size_t n, const volatile sig_atomic_t *stop,
                                  size_t *got, cdmpp_err *err) {
    char skipped[4096];
    for (*got = 0; *got < n;) {
        const size_t left = n - *got, most = to                      ? left
                                             : left < sizeof skipped ? left
                                                                     : sizeof skipped;
        const ssize_t k = read(fd, to ? (char *)to + *got : skipped, most);
        if (!k || (k < 0 && stop && *stop)) return CDMPP_OK;
        if (k < 0 && !again(errno))
            return CD_FAIL(err, EIO, "cannot read standard input: %s", strerror(errno));
        if (k > 0) *got += (size_t)k;
        else if (errno != EINTR) (void)wait_for(fd, POLLIN, -1);
    }
    return CDMPP_OK;
}

cdmpp_status cd_line_reader_send(int fd, const void *p, size_t n, cdmpp_err *err) {
    const char *at = p;
    while (n) {
        const ssize_t k = write(fd, at, n);
        if (k < 0 && !again(errno)) return CD_FAIL(err, EIO, "cannot write to standard output");
        if (k < 0 && errno != EINTR) (void)wait_for(fd, POLLOUT, -1);
        if (k > 0) at += k, n -= (size_t)k;
    }
    return CDMPP_OK;
}

/* A JSON object a line, an answer each: reads, calls, writes. */

enum { FLUSH = 1 << 16 };

typedef struct {
    const cd_line_server *o;
    cd_line_server_stats *stats;
    cd_line_reader *in;
    cd_arena text; /* of a line */
    cd_buf out;
} state;

static size_t longest(const state *s) {
    return s->o->max_bytes ? s->o->max_bytes : CD_REQUEST_LINE_MAX;
}

static cdmpp_status read_line(state *s, cd_str line, const cd_json **root, cd_str *id,
                              cdmpp_err *err) {
    *id = (cd_str){NULL, 0};
    if (!line.p) return CD_FAIL(err, ERANGE, "the line is longer than %zu bytes", longest(s));
    CD_TRY(cd_json_parse(&s->text, line.p, line.n, root, err));
    if ((*root)->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected a JSON object, found %s",
                       cd_json_kind_name((*root)->kind));
    return cd_err_key(err, cd_request_id(&s->text, line, id, err), "id");
}

static cdmpp_status one(state *s, cd_str line, cdmpp_err *err) {
    const cd_json *root = NULL;
    cdmpp_err why = {0};
    cd_str id;
    s->stats->asked++;
    cdmpp_status st = read_line(s, line, &root, &id, &why);
    if (id.n) {
        cd_buf_puts(&s->out, "{\"id\":");
        cd_buf_put(&s->out, id.p, id.n);
    } else {
        cd_buf_putf(&s->out, "{\"line\":%ld", cd_line_reader_number(s->in));
    }
    if (!st) st = s->o->answer(s->o->ctx, &s->text, root, &s->out, &why);
    if (st == CDMPP_ENOMEM || s->out.oom) return CD_FAIL(err, ENOMEM, "answer");
    if (st) {
        s->stats->bad++;
        cd_error_line_put(&s->out, &why);
    }
    cd_buf_puts(&s->out, "}\n");
    cd_arena_reset(&s->text);
    return s->out.oom ? CD_FAIL(err, ENOMEM, "answer") : CDMPP_OK;
}

static cdmpp_status flush(state *s, cdmpp_err *err) {
    const cdmpp_status st =
        s->out.n ? cd_line_reader_send(s->o->out, s->out.p, s->out.n, err) : CDMPP_OK;
    cd_buf_clear(&s->out);
    return st;
}

static bool stopped(const state *s) { return s->o->stop && *s->o->stop; }

static cdmpp_status serve(state *s, cdmpp_err *err) {
    cd_line_reader_kind kind = CD_INTAKE_LINE;
    while (kind != CD_INTAKE_END && !stopped(s)) {
        cd_str line = {NULL, 0};
        CD_TRY(cd_line_reader_next(s->in, s->out.n ? cd_line_reader_now() : -1, &kind, &line, err));
        if (kind == CD_INTAKE_LINE && !cd_line_reader_whole(s->in) && stopped(s)) break;
        if (kind == CD_INTAKE_LONG) line = (cd_str){NULL, 0};
        if (kind == CD_INTAKE_LONG || (kind == CD_INTAKE_LINE && line.n)) CD_TRY(one(s, line, err));
        cd_line_reader_release(s->in);
        if (kind == CD_INTAKE_LATE || kind == CD_INTAKE_FULL || s->out.n >= FLUSH)
            CD_TRY(flush(s, err));
    }
    return CDMPP_OK;
}

cdmpp_status cd_line_server_run(const cd_line_server *o, cd_line_server_stats *stats,
                                cdmpp_err *err) {
    state s = {.o = o, .stats = stats};
    *stats = (cd_line_server_stats){0};
    cdmpp_status st = cd_line_reader_new(o->in, longest(&s), &s.in, err);
    if (!st) st = serve(&s, err);
    if (!st) st = flush(&s, err);
    if (!st && stopped(&s)) st = CD_FAIL(err, EINTERRUPTED, "after %zu requests", stats->asked);
    cd_line_reader_free(s.in);
    cd_arena_free(&s.text);
    cd_buf_free(&s.out);
    return st;
}

const cd_json *cd_line_server_member(const cd_json *root, const char *key) {
    const cd_json *v = cd_json_get(root, key);
    return v && v->kind != CD_JSON_NULL ? v : NULL;
}

cdmpp_status cd_line_server_alone(const cd_json *root, const char *key, cdmpp_err *err) {
    for (const cd_json *m = root->u.child; m; m = m->next)
        if (m->kind != CD_JSON_NULL && !cd_str_is(m->key, "id") && !cd_str_is(m->key, key))
            return CD_FAIL(err, ESCHEMA, "\"%s\" goes with no other member but id", key);
    return CDMPP_OK;
}
