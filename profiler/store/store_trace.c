/* store_trace -- what profilers wrote (profiler/trace): launches of kernels and, of PyTorch's
 * traces, calls of operators.
 *
 * Launches of one kernel with one grid and block, and calls of one operator with one set of shapes,
 * become one row; shape of a kernel: [[grid],[block]]. An operator's time holds what it calls. */
#include <string.h>

#include "profiler/store/store_internal.h"
#include "profiler/trace/trace.h"

static cdmpp_status on_bad(void *ctx, cdmpp_status st, const cdmpp_err *e, cdmpp_err *err) {
    return cd_store_bad(ctx, st, e, err);
}

static cd_str text_of(const cd_trace *t, uint32_t number) {
    const char *s = cd_trace_text(t, number);
    return (cd_str){s, strlen(s)};
}

static cd_str target_of(const cd_trace *t) {
    static const char *const as_form[] = {"habana", "cutlass", "onnxruntime"};
    if (!strncmp(t->form, "trtexec", 7)) return (cd_str){"tensorrt", 8};
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(t->form, as_form[i])) return (cd_str){as_form[i], strlen(as_form[i])};
    return !strcmp(t->form, "kineto") ? (cd_str){"pytorch", 7} : (cd_str){"cuda", 4};
}

static cdmpp_status add(cd_store_reading *r, cd_store_launches *g, const cd_trace *t,
                        const cd_trace_event *e, cdmpp_err *err) {
    /* its sizes tell it, not the name of its node */
    const bool plain = e->op && e->dtype && !strcmp(t->form, "onnxruntime");
    cd_store_launch_group like = {.device = text_of(t, e->device),
                                  .target = target_of(t),
                                  .operator_name = text_of(t, plain ? e->op : e->name),
                                  .shape = text_of(t, e->shape),
                                  .dtype = text_of(t, e->dtype),
                                  .line = e->line,
                                  .flags = e->kind == CD_TRACE_OP ? CD_STORE_INCLUSIVE : 0};
    if (e->sum != CD_TRACE_NONE && t->inferences > 0)
        like.runs = t->sum[e->sum].n * t->inferences, like.median_s = t->sum[e->sum].median_s;
    if (e->sum == CD_TRACE_NONE || t->inferences > 0)
        return cd_store_launches_add(g, &like, e->time_s, err);
    cdmpp_err bad = {0};
    const cdmpp_status st = CD_FAIL(
        &bad, ESCHEMA, "a row of a summary is no measurement: import the trace of the launches");
    cd_err_add_place(&bad, r->path, e->line);
    return cd_store_bad(r, st, &bad, err);
}

static cdmpp_status take(cd_store_reading *r, const cd_trace *t, cdmpp_err *err) {
    cd_store_launches g = {0};
    cdmpp_status st = CDMPP_OK;
    r->tally->lines += t->lines;
    r->tally->empty += t->empty;
    for (size_t i = 0; i < t->n && !st; i++) st = add(r, &g, t, &t->event[i], err);
    if (!st) st = cd_store_launches_save(&g, r, err);
    if (!st) st = cd_store_mark(r, (uint64_t)t->last_line, true, err);
    cd_store_launches_free(&g);
    return st;
}

cdmpp_status cd_store_read_trace(cd_store_reading *r, cd_store_form form, cdmpp_err *err) {
    char device[256];
    const cd_trace_form as = form == CD_STORE_NSYS     ? CD_TRACE_NSYS
                             : form == CD_STORE_KINETO ? CD_TRACE_CHROME
                                                       : CD_TRACE_CSV;
    const unsigned skip =
        1u << CD_TRACE_COPY | 1u << CD_TRACE_SET | 1u << CD_TRACE_RANGE | 1u << CD_TRACE_CALL;
    cd_trace_reading how = {
        .form = as, .skip = skip, .bad = on_bad, .ctx = r, .stop = r->how->stop};
    cd_trace *t = NULL;
    if (r->device.n >= sizeof device)
        return CD_FAIL(err, ERANGE, "expected a name of a device of at most %zu letters",
                       sizeof device - 1);
    if (r->device.n) {
        memcpy(device, r->device.p, r->device.n);
        device[r->device.n] = 0;
        how.device = device;
    }
    CD_TRY(cd_trace_read(r->path, &how, &t, err));
    if (r->how->said) r->how->said(r->how->ctx, r->path, &t->said);
    const cdmpp_status st = take(r, t, err);
    cd_trace_free(t);
    return st;
}
