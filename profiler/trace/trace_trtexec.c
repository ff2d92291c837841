/* trace_trtexec -- what trtexec writes about the runs of a TensorRT engine.
 *
 *   -exportProfile  [{"count": 330}, {"name": "conv1 + relu1", "timeMs": 14.5, "averageMs": 0.0439,
 *                   "medianMs": 0.0438, "percentage": 48.0}, ..]
 *   -exportTimes    [{"startEnqMs": ..., "startH2dMs": 1.0, "endH2dMs": 1.1, "startComputeMs": 1.1,
 *                   "endComputeMs": 3.2, "startD2hMs": .., "endD2hMs": ..}, ..]
 *
 * A layer is a row of a summary: `averageMs` is of one of its runs, `timeMs` of all. Its figures
 * here are those of one inference, of which there were `count`. Of the times each row is one
 * inference: a range with a launch of the whole network and its copies. */
#include <math.h>

#include "profiler/trace/trace_chrome.h"

static cdmpp_status place(cd_trace_chrome *c, const char *name, cd_trace_event *e, cdmpp_err *err) {
    /* trtexec does not tell it */
    CD_TRY(cd_trace_device_number(c->r, (cd_str){"", 0}, &e->device, err));
    return cd_trace_number(c->r, (cd_str){name, strlen(name)}, &e->name, err);
}

/* ---- the profile ---- */
static cdmpp_status layer(cd_trace_chrome *c, const cd_json *v, long line, cdmpp_err *err) {
    cd_trace *t = c->r->t;
    cd_trace_event e = cd_trace_event_init(CD_TRACE_KERNEL, line);
    cd_trace_sum s = {.n = 1, .min_s = NAN, .median_s = NAN, .max_s = NAN};
    double total, mean, median;
    cd_str name;
    t->lines++;
    CD_TRY(cd_json_need_str(v, "name", &name, err));
    CD_TRY(cd_json_need_real(v, "timeMs", 0, 1e12, &total, err));
    CD_TRY(cd_json_need_real(v, "averageMs", 0, 1e12, &mean, err));
    if (!(mean > 0)) return t->empty++, CDMPP_OK; /* a layer that became part of another one */
    if (cd_json_get(v, "medianMs")) {
        CD_TRY(cd_json_need_real(v, "medianMs", 0, 1e12, &median, err));
        s.median_s = median * 1e-3;
    }
    s.n = fmax(1, round(total / mean)); /* runs in all inferences, until their number is known */
    if (CD_GROW(t->sum, t->n_sum, t->cap_sum)) return CD_FAIL(err, ENOMEM, "layers of a profile");
    e.time_s = mean * 1e-3;
    e.sum = (uint32_t)t->n_sum;
    t->sum[t->n_sum++] = s;
    CD_TRY(place(c, "", &e, err));
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    return cd_trace_add(c->r, &e, err);
}

/* Averages have few digits, so a layer that ran nearly once in each inference ran once. */
void cd_trace_trt_end(cd_trace_chrome *c) {
    cd_trace *t = c->r->t;
    if (!c->trt || c->times) return;
    for (size_t i = 0; i < t->n_sum && !(c->runs > 0); i++)
        t->inferences = fmax(t->inferences, t->sum[i].n);
    if (c->runs > 0) t->inferences = c->runs;
    for (size_t i = 0; i < t->n_sum; i++) {
        const double each = t->sum[i].n / t->inferences, whole = fmax(1, round(each));
        t->sum[i].n = fabs(each - whole) < 0.02 * whole ? whole : each;
    }
}

/* ---- the times ---- */
static const struct {
    const char *old_start, *old_end, *start, *end, *name;
    cd_trace_kind kind;
} part[] = {{"startInMs", "endInMs", "startH2dMs", "endH2dMs", "memcpy HtoD", CD_TRACE_COPY},
            {"startComputeMs", "endComputeMs", "startComputeMs", "endComputeMs", "network",
             CD_TRACE_KERNEL},
            {"startOutMs", "endOutMs", "startD2hMs", "endD2hMs", "memcpy DtoH", CD_TRACE_COPY}};

static cdmpp_status span(cd_trace_chrome *c, const cd_json *v, size_t k, cd_trace_event *e,
                         cdmpp_err *err) {
    const bool old = !cd_json_get(v, part[k].start);
    double from, to;
    /* a launch of its own: inferences of several streams overlap, and the file does not name the
     * streams */
    e->link = e->line;
    CD_TRY(cd_json_need_real(v, old ? part[k].old_start : part[k].start, 0, 1e12, &from, err));
    CD_TRY(cd_json_need_real(v, old ? part[k].old_end : part[k].end, from, 1e12, &to, err));
    e->start_ns = (int64_t)llround(from * 1e6);
    e->time_s = (to - from) * 1e-3;
    return place(c, part[k].name, e, err);
}

static cdmpp_status inference(cd_trace_chrome *c, const cd_json *v, long line, cdmpp_err *err) {
    cd_trace *t = c->r->t;
    cd_trace_event whole = cd_trace_event_init(CD_TRACE_RANGE, line);
    int64_t end = 0;
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        cd_trace_event e = cd_trace_event_init(part[k].kind, line);
        if (part[k].kind == CD_TRACE_COPY && !cd_json_get(v, part[k].start) &&
            !cd_json_get(v, part[k].old_start))
            continue;
        t->lines += !(c->r->how->skip >> e.kind & 1);
        CD_TRY(span(c, v, k, &e, err));
        const int64_t last = e.start_ns + llround(e.time_s * 1e9);
        if (whole.start_ns == CD_TRACE_UNTIMED || e.start_ns < whole.start_ns)
            whole.start_ns = e.start_ns;
        if (last > end) end = last;
        if (c->r->how->skip >> e.kind & 1) continue;
        if (e.time_s > 0) CD_TRY(cd_trace_add(c->r, &e, err));
        else t->empty += e.kind == CD_TRACE_KERNEL;
    }
    whole.time_s = 1e-9 * (double)(end - whole.start_ns);
    if (c->r->how->skip >> CD_TRACE_RANGE & 1) return CDMPP_OK;
    CD_TRY(place(c, "inference", &whole, err));
    return cd_trace_add(c->r, &whole, err);
}

cdmpp_status cd_trace_trt_row(cd_trace_chrome *c, const cd_json *v, long line, bool *mine,
                              cdmpp_err *err) {
    const cd_json *count = cd_json_get(v, "count");
    const bool times = cd_json_get(v, "startComputeMs") != NULL,
               row = cd_json_get(v, "timeMs") || cd_json_get(v, "averageMs");
    *mine = times || row || (count && v->n == 1);
    if (!*mine) return CDMPP_OK;
    c->trt = true;
    c->times |= times;
    if (times) return inference(c, v, line, err);
    return row ? layer(c, v, line, err) : cd_json_need_real(v, "count", 1, 1e15, &c->runs, err);
}
