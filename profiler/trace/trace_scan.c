/* trace_scan -- a window over a long JSON text. */
#include <string.h>

#include "profiler/trace/trace_scan.h"

enum { PIECE = 1 << 18 };

/* More text behind what is there; what stands before `from` is dropped, and `from` becomes 0.
 * False: there is no more, or no memory. */
static bool more(cd_trace_scan *s, size_t *from) {
    size_t got = 0;
    if (s->end) return false;
    if (*from) memmove(s->p, s->p + *from, s->n - *from);
    s->n -= *from;
    *from = 0;
    if (s->cap - s->n < PIECE) {
        const size_t cap = 2 * s->cap + PIECE;
        char *p = cd_mem_realloc(s->p, s->n, cap);
        if (!p) {
            s->end = true;
            s->st = CD_FAIL(&s->err, ENOMEM, "text of a trace");
            return false;
        }
        s->p = p;
        s->cap = cap;
    }
    const cdmpp_status st = cd_input_stream_read(s->in, s->p + s->n, s->cap - s->n, &got, &s->err);
    s->n += st ? 0 : got;
    s->st = st;
    s->end = st || !got;
    return !s->end;
}

int cd_trace_scan_peek(cd_trace_scan *s) {
    for (;;) {
        for (; s->at < s->n; s->at++) {
            const char c = s->p[s->at];
            if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return (unsigned char)c;
            s->line += c == '\n';
        }
        if (!more(s, &s->at)) return -1;
    }
}

int cd_trace_scan_take(cd_trace_scan *s) {
    const int c = cd_trace_scan_peek(s);
    s->at += c >= 0;
    return c;
}

/* Where the scan stands inside of a value. */
typedef struct inside {
    size_t depth;
    bool text, escaped, begun;
} inside;

/* Take one byte of a value. *done: it was the last one; *behind: it stands behind the value. */
static void step(inside *w, char c, bool *done, bool *behind) {
    if (w->text) {
        if (w->escaped) w->escaped = false;
        else if (c == '\\') w->escaped = true;
        else if (c == '"') w->text = false, *done = w->depth == 0;
        return;
    }
    const bool closes = c == '}' || c == ']';
    if (w->depth == 0 && (c == ',' || closes || (w->begun && c == ':'))) {
        *behind = true;
        return;
    }
    w->begun = true;
    if (c == '"') w->text = true;
    else if (c == '{' || c == '[') w->depth++;
    else if (closes) *done = --w->depth == 0;
}

/* More text for a value that began at s->at; *i is the byte that is missing. */
static bool go_on(cd_trace_scan *s, bool keep, size_t *i) {
    const size_t old = keep ? s->at : *i;
    size_t from = old;
    const bool got = more(s, &from);
    *i -= old - from;
    s->at = keep ? from : *i;
    return got;
}

cdmpp_status cd_trace_scan_value(cd_trace_scan *s, bool keep, cd_str *out, bool *whole,
                                 cdmpp_err *err) {
    inside w = {0};
    bool done = false, behind = false;
    *out = (cd_str){NULL, 0};
    *whole = false;
    if (cd_trace_scan_peek(s) < 0) return CDMPP_OK;
    size_t i = s->at;
    for (; !done; i++) {
        if (i == s->n && keep && i - s->at > CD_TRACE_SCAN_MAX)
            return CD_FAIL(err, ERANGE, "expected values of at most %zu MiB",
                           CD_TRACE_SCAN_MAX >> 20);
        if (i == s->n && !go_on(s, keep, &i)) return CDMPP_OK;
        step(&w, s->p[i], &done, &behind);
        if (behind) break;
        s->line += s->p[i] == '\n';
    }
    if (!w.begun) return CD_FAIL(err, EPARSE, "expected a value, found '%c'", s->p[i]);
    if (keep) *out = (cd_str){s->p + s->at, i - s->at};
    s->at = i;
    *whole = true;
    return CDMPP_OK;
}
