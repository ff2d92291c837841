/* trace_chrome -- traces of the Chrome form (PyTorch's profilers, ONNX Runtime, Habana's profiler),
 * and trtexec's lists of rows.
 *
 *   {"deviceProperties": [{"id": 0, "name": "Tesla T4"}], "traceEvents": [ .. ]}  or the list alone
 *
 * The text is walked event by event, so that a trace may be bigger than memory.
 * trace_chrome_event.c knows the events. */
#include <stdio.h>
#include <string.h>

#include "profiler/trace/trace_chrome.h"

/* ---- members of the file ---- */

/* Names of GPUs; damaged ones are as if missing. */
static cdmpp_status take_gpus(cd_trace_chrome *c, cd_str text, cdmpp_err *err) {
    const cd_json *v = NULL;
    cd_arena a = {0};
    cdmpp_status st = cd_json_parse_foreign(&a, text, NULL, &v, err);
    if (!st && v->kind == CD_JSON_ARR) {
        for (const cd_json *g = v->u.child; g && !st; g = g->next) {
            const cd_json *id = cd_json_get(g, "id"), *name = cd_json_get(g, "name");
            if (!id || id->kind != CD_JSON_INT || !name || name->kind != CD_JSON_STR) continue;
            if (CD_GROW(c->gpu, c->n_gpu, c->cap_gpu))
                st = CD_FAIL(err, ENOMEM, "devices of a trace");
            else if (!(st = cd_trace_number(c->r, name->u.s, &c->gpu[c->n_gpu].name, err)))
                c->gpu[c->n_gpu++].id = id->u.i;
        }
    }
    cd_arena_free(&a);
    return st == CDMPP_ENOMEM ? st : CDMPP_OK;
}

/* "cuda:0" becomes the name of GPU 0, where the file has it. */
static void name_gpus(cd_trace_chrome *c) {
    cd_trace *t = c->r->t;
    for (size_t g = 0; g < c->n_gpu; g++) {
        char text[32];
        uint32_t from;
        const int n = snprintf(text, sizeof text, "cuda:%lld", (long long)c->gpu[g].id);
        if (!cd_dict_find(&t->text, (cd_str){text, (size_t)n}, &from)) continue;
        for (size_t i = 0; i < t->n; i++)
            if (t->event[i].device == from) t->event[i].device = c->gpu[g].name;
    }
}

/* ---- events ---- */
static cdmpp_status cut(cd_trace_chrome *c, long line, cdmpp_err *err) {
    cdmpp_err e = c->scan.err;
    cdmpp_status st = c->scan.st;
    if (!st) st = CD_FAIL(&e, EPARSE, "the trace ends in the middle: its writer was stopped");
    cd_err_add_place(&e, c->r->path, line);
    c->ended = true;
    return cd_trace_bad(c->r, st, &e, err);
}

/* Events, at most: so many, and so many for each byte of the file. Those of a trace that is not
 * packed take 100 bytes and more. */
#define EVENTS_BASE     ((uint64_t)1 << 20)
#define EVENTS_PER_BYTE ((uint64_t)2)

static cdmpp_status too_many(const cd_trace_chrome *c, uint64_t n, cdmpp_err *err) {
    uint64_t done, total;
    cd_input_stream_progress(c->scan.in, &done, &total);
    if (n <= EVENTS_BASE + EVENTS_PER_BYTE * done) return CDMPP_OK;
    return cd_err_at(err,
                     CD_FAIL(err, ERANGE,
                             "%llu packed bytes have more than %llu events: unpack the file first "
                             "where that is right",
                             (unsigned long long)done,
                             (unsigned long long)(EVENTS_BASE + EVENTS_PER_BYTE * done)),
                     c->r->path, c->scan.line);
}

/* A list of events; what was read of a cut-off one stays. */
static cdmpp_status events(cd_trace_chrome *c, cdmpp_err *err) {
    cd_trace_scan *s = &c->scan;
    (void)cd_trace_scan_take(s);
    for (uint64_t n = 1;; n++) {
        if (n > EVENTS_BASE) CD_TRY(too_many(c, n, err));
        cdmpp_err e = {0};
        cd_str text;
        bool whole;
        int next = cd_trace_scan_peek(s);
        const long line = s->line;
        if (next == ']') return (void)cd_trace_scan_take(s), CDMPP_OK;
        if (next < 0) return cut(c, line, err);
        const cdmpp_status bad = cd_trace_scan_value(s, true, &text, &whole, &e);
        if (bad == CDMPP_EPARSE) return cut(c, line, err);
        if (bad) return cd_err_at(err, CD_FAIL(err, ERANGE, "%s", e.msg), c->r->path, line);
        if (!whole) return cut(c, line, err);
        const cdmpp_status st = cd_trace_chrome_event(c, text, line, &e);
        if (st) CD_TRY(cd_trace_bad(c->r, st, &e, err));
        CD_TRY(cd_trace_stopped(c->r, err));
        if (cd_trace_scan_peek(s) == ',') (void)cd_trace_scan_take(s);
    }
}

/* "traceEvents" a second time: it counts, as in Python. */
static void again(cd_trace_chrome *c) {
    cd_trace *t = c->r->t;
    cd_buf_puts(&t->said, "traceEvents is given twice: the last one counts\n");
    t->n = t->n_sum = t->n_question = 0;
    t->lines = t->empty = 0;
}

/* A member of the outer object; *more false: it was the last. */
static cdmpp_status member(cd_trace_chrome *c, bool *more, cdmpp_err *err) {
    cd_trace_scan *s = &c->scan;
    char name[32];
    cd_str text;
    bool whole;
    *more = false;
    if (cd_trace_scan_peek(s) != '"') return CDMPP_OK;
    CD_TRY(cd_trace_scan_value(s, true, &text, &whole, err));
    if (!whole) return CDMPP_OK;
    snprintf(name, sizeof name, "%.*s", (int)(text.n < sizeof name ? text.n : 0), text.p);
    if (cd_trace_scan_take(s) != ':') return CDMPP_OK;
    if (!strcmp(name, "\"traceEvents\"") && cd_trace_scan_peek(s) == '[') {
        if (c->found) again(c);
        c->found = true;
        CD_TRY(events(c, err));
        whole = !c->ended;
    } else {
        const bool gpus = !strcmp(name, "\"deviceProperties\"");
        c->layers |= !strcmp(name, "\"Layers\"");
        CD_TRY(cd_trace_scan_value(s, gpus, &text, &whole, err));
        if (whole && gpus) CD_TRY(take_gpus(c, text, err));
    }
    *more = whole && cd_trace_scan_peek(s) == ',' && cd_trace_scan_take(s) == ',';
    return CDMPP_OK;
}

#define LAYERS                                                                                     \
    "these are the layers of a TensorRT engine, without times: give this file to --map, beside "   \
    "what trtexec --exportProfile writes"

/* A list of events that no reader knows: of which kind they are, and what is read. */
static cdmpp_status strangers(const cd_trace_chrome *c, cdmpp_err *err) {
    const cdmpp_status st =
        !c->seen ? CD_FAIL(err, ENODATA, "the list of events is empty")
                 : CD_FAIL(err, ESCHEMA,
                           "no form that is read (the first of %llu events: %s); " CD_TRACE_EXPORTS,
                           (unsigned long long)c->seen, c->stranger);
    return cd_err_at(err, st, c->r->path, 0);
}

static cdmpp_status walk(cd_trace_chrome *c, cdmpp_err *err) {
    /* a byte order mark */
    while (cd_trace_scan_peek(&c->scan) > 0 && strchr("\xef\xbb\xbf", cd_trace_scan_peek(&c->scan)))
        (void)cd_trace_scan_take(&c->scan);
    const int first = cd_trace_scan_peek(&c->scan);
    bool more = first == '{';
    if (first == '[') {
        c->found = true;
        CD_TRY(events(c, err));
    }
    if (more) (void)cd_trace_scan_take(&c->scan);
    while (more) CD_TRY(member(c, &more, err));
    if (c->scan.st == CDMPP_ENOMEM || c->scan.st == CDMPP_EIO || c->scan.st == CDMPP_ERANGE)
        return cd_err_from(err, &c->scan.err), c->scan.st;
    if (!c->found)
        return cd_err_at(
            err,
            CD_FAIL(
                err, ESCHEMA, "%s",
                c->layers
                    ? LAYERS
                    : "expected a list of events or a member \"traceEvents\"; " CD_TRACE_EXPORTS),
            c->r->path, 0);
    if (!c->kineto && !c->habana && !c->ort && !c->trt && !c->r->t->bad) return strangers(c, err);
    name_gpus(c);
    cd_trace_trt_end(c);
    CD_TRY(cd_trace_ort_end(c, err));
    if (c->twice)
        cd_buf_putf(&c->r->t->said, "%zu events give a key twice: the last one counts\n", c->twice);
    return cd_trace_chrome_open_events(c, err);
}

cdmpp_status cd_trace_read_chrome(cd_trace_reader *r, cdmpp_err *err) {
    cd_trace_chrome c = {.r = r, .scan = {.line = 1}};
    r->t->form = "chrome";
    CD_TRY(cd_input_stream_open(r->path, &c.scan.in, err));
    const cdmpp_status st = walk(&c, err);
    r->t->last_line = c.scan.line;
    if (c.trt) r->t->form = c.times ? "trtexec times" : "trtexec profile";
    else if (c.ort) r->t->form = "onnxruntime";
    else if (c.kineto) r->t->form = "kineto";
    else if (c.habana) r->t->form = "habana";
    cd_input_stream_close(c.scan.in);
    cd_mem_free(c.scan.p);
    cd_mem_free(c.gpu);
    cd_mem_free(c.engine);
    cd_mem_free(c.open);
    return st;
}
