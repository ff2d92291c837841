/* Reads lines from a pipe into one buffer. A line is given out where it lies; the buffer is moved
 * only when no line is in use. */
#include "predictor/serve/serve_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
