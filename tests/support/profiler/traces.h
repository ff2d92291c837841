/* Texts read as traces: a temporary folder, the last bad line, events by number. */
#ifndef TRACES_H
#define TRACES_H
#include "check.h"
#include "profiler/trace/trace.h"
#include "tmp.h"

typedef struct traces {
    tmp_dir d;
    cd_trace *t[4];
    const char *path[4];
    size_t n;
    int bad;
    char last_bad[256];
    cd_trace_runs r;
    const char *device;
} traces;

static inline cdmpp_status traces_bad(void *ctx, cdmpp_status st, const cdmpp_err *e,
                                      cdmpp_err *err) {
    traces *f = ctx;
    (void)st, (void)err;
    f->bad++;
    cdmpp_err_format(e, f->last_bad, sizeof f->last_bad);
    return CDMPP_OK;
}

static inline traces *traces_begin(void) {
    static traces f;
    f = (traces){.d = tmp_make()};
    return &f;
}

/* The file as the next trace, linked. */
static inline cdmpp_status traces_read(traces *f, const char *path, cdmpp_err *err) {
    const cd_trace_reading how = {.device = f->device, .bad = traces_bad, .ctx = f};
    cdmpp_status st = cd_trace_read(path, &how, &f->t[f->n], err);
    if (!st) st = cd_trace_link(f->t[f->n], err);
    f->path[f->n] = "file";
    f->n += f->t[f->n] != NULL;
    return st;
}

static inline cdmpp_status traces_text(traces *f, const char *name, const char *text,
                                       cdmpp_err *err) {
    return traces_read(f, tmp_put(&f->d, name, text, strlen(text)), err);
}

static inline cdmpp_status traces_combine(traces *f, const cd_trace_combining *o, cdmpp_err *err) {
    cd_trace_runs_free(&f->r);
    return cd_trace_combine((const cd_trace *const *)f->t, f->path, f->n, o, &f->r, err);
}

static inline const cd_trace_event *traces_event(const traces *f, size_t i) {
    assert_true(i < f->t[0]->n);
    return &f->t[0]->event[i];
}

static inline const char *traces_name(const traces *f, size_t i) {
    return cd_trace_text(f->t[0], traces_event(f, i)->name);
}

/* What became of a text: each event, then what is empty or bad, or the error; without the temporary
 * folder. */
static inline const char *traces_said(const char *name, const char *text) {
    static const char *const kind[] = {"kernel", "copy", "set", "operator", "range", "call"};
    static char said[1000];
    traces *f = traces_begin();
    cdmpp_err err = {0};
    size_t n = 0;
    said[0] = 0;
    const char *path = tmp_put(&f->d, name, text, strlen(text));
    const size_t folder = strlen(path) - strlen(name);
    if (traces_read(f, path, &err)) {
        cdmpp_err_format(&err, said, sizeof said);
        if (!strncmp(said, path, folder)) memmove(said, said + folder, strlen(said + folder) + 1);
    } else {
        const cd_trace *t = f->t[0];
        for (size_t i = 0; i < t->n && n < sizeof said - 300; i++) {
            const cd_trace_event *e = &t->event[i];
            n += (size_t)snprintf(said + n, sizeof said - n, "%s %s on %s.%d/%lld", kind[e->kind],
                                  cd_trace_text(t, e->name), cd_trace_text(t, e->device), e->unit,
                                  (long long)e->thread);
            if (e->start_ns != CD_TRACE_UNTIMED)
                n +=
                    (size_t)snprintf(said + n, sizeof said - n, " at %lld", (long long)e->start_ns);
            n += (size_t)snprintf(said + n, sizeof said - n, " %.6g s", e->time_s);
            if (e->bytes >= 0)
                n += (size_t)snprintf(said + n, sizeof said - n, " %.0f B", e->bytes);
            if (cd_trace_text(t, e->shape)[0])
                n += (size_t)snprintf(said + n, sizeof said - n, " %s", cd_trace_text(t, e->shape));
            n += (size_t)snprintf(said + n, sizeof said - n, "; ");
        }
        if (t->empty)
            n += (size_t)snprintf(said + n, sizeof said - n, "%zu empty; ", (size_t)t->empty);
        if (f->bad)
            snprintf(said + n, sizeof said - n, "bad: %s",
                     strncmp(f->last_bad, path, folder) ? f->last_bad : f->last_bad + folder);
    }
    tmp_remove(&f->d);
    for (size_t i = 0; i < f->n; i++) cd_trace_free(f->t[i]);
    return said;
}

static inline void traces_end(traces *f) {
    for (size_t i = 0; i < f->n; i++) cd_trace_free(f->t[i]);
    cd_trace_runs_free(&f->r);
    tmp_remove(&f->d);
}
#endif
