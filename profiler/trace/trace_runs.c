/* trace_runs -- repeats: files or ranges of files, and which of them did the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/trace/trace_combine.h"

/* ---- the launches of a repeat, stream by stream ---- */
typedef struct stream {
    uint32_t device;
    int32_t unit;
    int64_t thread;
} stream;

typedef struct order {
    uint32_t rank, event;
} order;

static int by_rank(const void *a, const void *b) {
    const order *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

bool cd_trace_new_stream(const cd_trace_run *w, size_t i) {
    const cd_trace_event *x = cd_trace_launch(w, i), *y = i ? cd_trace_launch(w, i - 1) : NULL;
    return !y || x->device != y->device || x->unit != y->unit || x->thread != y->thread;
}

enum { MOST_STREAMS = 4096 };

/* Sort by the order in which streams first launched, then by start. Numbers of streams differ from
 * run to run, their order does not. */
static cdmpp_status by_stream(cd_trace_run *w, cdmpp_err *err) {
    stream *s = cd_mem_zalloc(MOST_STREAMS, sizeof *s);
    order *o = cd_mem_zalloc(w->n + 1, sizeof *o);
    size_t n = 0;
    cdmpp_status st = s && o ? CDMPP_OK : CD_FAIL(err, ENOMEM, "streams of a trace");
    for (size_t i = 0; i < w->n && !st; i++) {
        const cd_trace_event *e = cd_trace_launch(w, i);
        size_t k = 0;
        while (k < n &&
               (s[k].device != e->device || s[k].unit != e->unit || s[k].thread != e->thread))
            k++;
        if (k == MOST_STREAMS)
            st = CD_FAIL(err, ERANGE, "expected at most %d streams", MOST_STREAMS);
        else if (k == n) s[n++] = (stream){e->device, e->unit, e->thread};
        o[i] = (order){(uint32_t)k, w->launch[i]};
    }
    if (!st) qsort(o, w->n, sizeof *o, by_rank);
    for (size_t i = 0; i < w->n && !st; i++) w->launch[i] = o[i].event;
    cd_mem_free(s);
    cd_mem_free(o);
    return st;
}

/* Equal for repeats whose streams launch the same in the same order. */
static uint64_t like_of(const cd_trace_run *w) {
    cd_hash h = cd_hash_start();
    for (size_t i = 0; i < w->n; i++) {
        const cd_trace_event *e = cd_trace_launch(w, i);
        const char *name = cd_trace_launch_name(w, i);
        const unsigned char head[2] = {(unsigned char)e->kind, cd_trace_new_stream(w, i)};
        const double rows = e->sum == CD_TRACE_NONE ? 1 : w->trace->sum[e->sum].n;
        cd_hash_add(&h, head, sizeof head);
        cd_hash_add(&h, &rows, sizeof rows);
        cd_hash_add(&h, name, strlen(name));
    }
    return h.a;
}

/* ---- finding them ---- */
static cdmpp_status add_run(cd_trace_runs *r, size_t *cap, const cd_trace *t, const char *path,
                            const cd_trace_event *range, cdmpp_err *err) {
    const int64_t from = range ? range->start_ns : 0,
                  to = range ? from + llround(range->time_s * 1e9) : 0;
    cd_trace_run w = {
        .path = path, .trace = t, .range = range ? cd_trace_text(t, range->name) : NULL};
    size_t n = 0;
    if (CD_GROW_IN(&r->arena, r->run, r->n_run, *cap)) return CD_FAIL(err, ENOMEM, "repeats");
    for (int pass = 0; pass < 2; pass++) {
        if (pass && !(w.launch = CD_NEWN(&r->arena, uint32_t, n + 1)))
            return CD_FAIL(err, ENOMEM, "repeats");
        for (size_t i = 0; i < t->n; i++) {
            const cd_trace_event *e = &t->event[i];
            const int64_t at = e->called_ns != CD_TRACE_UNTIMED ? e->called_ns : e->start_ns;
            if (e->kind >= CD_TRACE_OP || (range && (at < from || at >= to))) continue;
            if (pass) w.launch[w.n++] = (uint32_t)i;
            else n++;
        }
    }
    if (!n && range) return CDMPP_OK; /* nothing was launched in it */
    CD_TRY(by_stream(&w, err));
    w.like = like_of(&w);
    r->run[r->n_run++] = w;
    return CDMPP_OK;
}

/* The same name twice, one inside the other: the outer one counts. */
static cdmpp_status add_ranges(cd_trace_runs *r, size_t *cap, const cd_trace *t, const char *path,
                               const char *pattern, cdmpp_err *err) {
    int64_t end = INT64_MIN;
    for (size_t i = 0; i < t->n; i++) {
        const cd_trace_event *e = &t->event[i];
        if ((e->kind != CD_TRACE_RANGE && e->kind != CD_TRACE_OP) || e->start_ns < end ||
            !cd_str_fits(pattern, cd_trace_text(t, e->name)))
            continue;
        end = e->start_ns + llround(e->time_s * 1e9);
        CD_TRY(add_run(r, cap, t, path, e, err));
    }
    return CDMPP_OK;
}

/* ---- which are kept ---- */

/* Why a repeat does not fit the first one that is kept. */
static cdmpp_status explain(cd_trace_runs *r, cd_trace_run *w, cdmpp_err *err) {
    const cd_trace_run *k = &r->run[r->first];
    cd_buf b = {0};
    size_t i = 0;
    while (i < w->n && i < k->n &&
           !strcmp(cd_trace_launch_name(w, i), cd_trace_launch_name(k, i)) &&
           cd_trace_new_stream(w, i) == cd_trace_new_stream(k, i))
        i++;
    if (w->n != k->n) cd_buf_putf(&b, "it has %zu launches, the others have %zu", w->n, k->n);
    else if (i == w->n) cd_buf_puts(&b, "its launches are of other kinds or other counts");
    else if (strcmp(cd_trace_launch_name(w, i), cd_trace_launch_name(k, i)))
        cd_buf_putf(&b, "launch %zu is %.60s, in the others it is %.60s", i + 1,
                    cd_trace_launch_name(w, i), cd_trace_launch_name(k, i));
    else cd_buf_putf(&b, "launch %zu is in another stream", i + 1);
    w->why = b.oom ? NULL : cd_arena_text(&r->arena, b.p);
    cd_buf_free(&b);
    return w->why ? CDMPP_OK : CD_FAIL(err, ENOMEM, "repeats");
}

typedef struct vote {
    uint64_t like;
    uint32_t run;
} vote;

static int by_like(const void *a, const void *b) {
    const vote *x = a, *y = b;
    if (x->like != y->like) return x->like < y->like ? -1 : 1;
    return (x->run > y->run) - (x->run < y->run);
}

static cdmpp_status choose(cd_trace_runs *r, cdmpp_err *err) {
    vote *v = cd_mem_zalloc(r->n_run, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "repeats");
    for (size_t i = 0; i < r->n_run; i++) v[i] = (vote){r->run[i].like, (uint32_t)i};
    qsort(v, r->n_run, sizeof *v, by_like);
    for (size_t i = 0; i < r->n_run;) {
        size_t j = i;
        while (j < r->n_run && v[j].like == v[i].like) j++;
        if (j - i > r->n_kept || (j - i == r->n_kept && v[i].run < r->first))
            r->first = v[i].run, r->n_kept = j - i;
        i = j;
    }
    cd_mem_free(v);
    for (size_t i = 0; i < r->n_run; i++)
        if (r->run[i].like != r->run[r->first].like) CD_TRY(explain(r, &r->run[i], err));
    return CDMPP_OK;
}

cdmpp_status cd_trace_runs_find(cd_trace_runs *r, const cd_trace *const *t, const char *const *path,
                                size_t n, const char *range, cdmpp_err *err) {
    size_t cap = 0;
    for (size_t i = 0; i < n; i++)
        CD_TRY(range ? add_ranges(r, &cap, t[i], path[i], range, err)
                     : add_run(r, &cap, t[i], path[i], NULL, err));
    if (!r->n_run)
        return CD_FAIL(err, ENODATA, "no range '%.60s' in which something was launched",
                       range ? range : "");
    CD_TRY(choose(r, err));
    if (!r->run[r->first].n)
        return cd_err_at(
            err,
            CD_FAIL(err, ENODATA,
                    "the trace has no launch of a kernel, a copy or a fill with a time"),
            r->run[r->first].path, 0);
    return CDMPP_OK;
}

cdmpp_status cd_trace_combine(const cd_trace *const *t, const char *const *path, size_t n,
                              const cd_trace_combining *o, cd_trace_runs *out, cdmpp_err *err) {
    *out = (cd_trace_runs){.wall_s = NAN};
    CD_TRY(cd_trace_runs_find(out, t, path, n, o->range, err));
    CD_TRY(cd_trace_runs_steps(out, o, err));
    CD_TRY(cd_trace_runs_groups(out, err));
    return cd_trace_runs_devices(out, err);
}

void cd_trace_runs_free(cd_trace_runs *r) { cd_arena_free(&r->arena); }
