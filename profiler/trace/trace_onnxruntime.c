/* trace_onnxruntime -- what a session of ONNX Runtime writes with enable_profiling.
 *
 *   {"cat": "Session", "ph": "X", "name": "model_run", "ts": us, "dur": us, "args": {}}
 *   {"cat": "Node", "ph": "X", "name": "conv1_kernel_time", "ts": us, "dur": us, "tid": 7,
 *    "args": {"op_name": "Conv", "provider": "CPUExecutionProvider", "input_type_shape": [{"float":
 *    [1, 3, 224, 224]}, {"float": [64, 3, 7, 7]}]}}
 *   {"cat": "Kernel", "ph": "X", "name": "sgemm", "ts": us, "dur": us, "args": {"op_name": "Conv",
 *   "stream": "7", "grid_x": "8", ..}}
 *
 * A node on the CPU is a kernel of its thread. A node of a provider that launches on a device has
 * the time of its launch: it is an operator where the trace has the device's kernels, which its
 * profiler only writes in some builds. */
#include <math.h>
#include <stdio.h>

#include "profiler/trace/trace_chrome.h"

#define DEVICE_NODE (-2) /* external of a node that launches on a device, until the trace is read */

static bool text_is(const cd_json *v, const char *word) {
    return v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, word);
}
static cd_str text_of(const cd_json *v) {
    return v && v->kind == CD_JSON_STR ? v->u.s : (cd_str){"", 0};
}

/* Without `end`; false: it does not end so. */
static bool cut(cd_str *s, const char *end) {
    const size_t n = strlen(end);
    if (s->n < n || memcmp(s->p + s->n - n, end, n) != 0) return false;
    return s->n -= n, true;
}

/* Names of element types as ONNX and our tables have them. */
static cd_str type_name(cd_str s) {
    if (cd_str_is(s, "float")) return (cd_str){"float32", 7};
    return cd_str_is(s, "double") ? (cd_str){"float64", 7} : s;
}

/* "[[1,3,224,224],[64,3,7,7]]" of the inputs, and the type of the first. */
static void put_inputs(const cd_json *list, cd_buf *b, cd_str *type) {
    cd_buf_puts(b, "[");
    for (const cd_json *in = list && list->kind == CD_JSON_ARR ? list->u.child : NULL; in;
         in = in->next) {
        const cd_json *dims = in->kind == CD_JSON_OBJ ? in->u.child : NULL;
        if (in != list->u.child) cd_buf_puts(b, ",");
        cd_buf_puts(b, "[");
        for (const cd_json *d = dims && dims->kind == CD_JSON_ARR ? dims->u.child : NULL; d;
             d = d->next)
            cd_buf_putf(b, "%s%lld", d == dims->u.child ? "" : ",",
                        d->kind == CD_JSON_INT ? (long long)d->u.i : 0);
        cd_buf_puts(b, "]");
        if (dims && !type->n) *type = type_name(dims->key);
    }
    cd_buf_puts(b, "]");
}

static cdmpp_status sizes(cd_trace_reader *r, const cd_json *args, cd_trace_event *e,
                          cdmpp_err *err) {
    const cd_json *in = cd_json_get(args, "input_type_shape");
    cd_str type = {"", 0};
    if (!in) return CDMPP_OK;
    cd_buf_clear(&r->text);
    put_inputs(in, &r->text, &type);
    if (r->text.oom) return CD_FAIL(err, ENOMEM, "event of a trace");
    if (!type.n) return CDMPP_OK;
    CD_TRY(cd_trace_number(r, type, &e->dtype, err));
    return cd_trace_number(r, (cd_str){r->text.p, r->text.n}, &e->shape, err);
}

/* "cpu", "cuda:0"; of other providers their name in small letters. */
static cdmpp_status place(cd_trace_chrome *c, cd_str provider, cd_trace_event *e, cdmpp_err *err) {
    char name[40];
    const bool cpu = !provider.n || cd_str_is(provider, "CPUExecutionProvider"),
               cuda = cd_str_is(provider, "CUDAExecutionProvider") ||
                      cd_str_is(provider, "TensorrtExecutionProvider");
    if (!cpu && !c->nodes.device++)
        (void)snprintf(c->nodes.provider, sizeof c->nodes.provider, "%.*s",
                       cd_str_shown(provider, 39), provider.p);
    (void)cut(&provider, "ExecutionProvider");
    int n = snprintf(name, sizeof name, "%.*s", cd_str_shown(provider, 39), provider.p);
    for (char *p = name; *p; p++) *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
    if (cpu || cuda) n = snprintf(name, sizeof name, "%s", cpu ? "cpu" : "cuda:0");
    if (!cpu) e->external = DEVICE_NODE;
    return cd_trace_device_number(c->r, (cd_str){name, (size_t)n}, &e->device, err);
}

static cdmpp_status times(const cd_json *v, cd_trace_event *e, cdmpp_err *err) {
    const cd_json *tid = cd_json_get(v, "tid");
    double ts, us;
    CD_TRY(cd_json_need_real(v, "ts", 0, 9e15, &ts, err));
    CD_TRY(cd_json_need_real(v, "dur", 0, 1e15, &us, err));
    e->start_ns = (int64_t)llround(ts * 1e3);
    e->time_s = us * 1e-6;
    if (tid && tid->kind == CD_JSON_INT) e->thread = tid->u.i;
    return CDMPP_OK;
}

static cdmpp_status node(cd_trace_chrome *c, const cd_json *v, cd_str name, long line,
                         cdmpp_err *err) {
    const cd_json *args = cd_json_get(v, "args");
    cd_trace_event e = cd_trace_event_init(CD_TRACE_KERNEL, line);
    c->r->t->lines++;
    CD_TRY(times(v, &e, err));
    if (!(e.time_s > 0)) return c->r->t->empty++, CDMPP_OK;
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    CD_TRY(cd_trace_number(c->r, text_of(cd_json_get(args, "op_name")), &e.op, err));
    CD_TRY(sizes(c->r, args, &e, err));
    CD_TRY(place(c, text_of(cd_json_get(args, "provider")), &e, err));
    return cd_trace_add(c->r, &e, err);
}

static cdmpp_status run(cd_trace_chrome *c, const cd_json *v, long line, cdmpp_err *err) {
    cd_trace_event e = cd_trace_event_init(CD_TRACE_RANGE, line);
    if (!text_is(cd_json_get(v, "name"), "model_run") || c->r->how->skip >> CD_TRACE_RANGE & 1)
        return CDMPP_OK;
    CD_TRY(times(v, &e, err));
    CD_TRY(cd_trace_number(c->r, (cd_str){"model_run", 9}, &e.name, err));
    CD_TRY(cd_trace_number(c->r, (cd_str){"cpu", 3}, &e.device, err));
    return cd_trace_add(c->r, &e, err);
}

/* Fences and the session's own work are no kernels. */
cdmpp_status cd_trace_ort_event(cd_trace_chrome *c, const cd_json *v, long line, bool *mine,
                                cdmpp_err *err) {
    const cd_json *cat = cd_json_get(v, "cat");
    const bool session = text_is(cat, "Session");
    cd_str name = text_of(cd_json_get(v, "name"));
    *mine = (session || text_is(cat, "Node")) && text_is(cd_json_get(v, "ph"), "X");
    if (!*mine) return CDMPP_OK;
    c->ort = true;
    if (session) return run(c, v, line, err);
    return cut(&name, "_kernel_time") ? node(c, v, name, line, err) : CDMPP_OK;
}

cdmpp_status cd_trace_ort_end(cd_trace_chrome *c, cdmpp_err *err) {
    cd_trace *t = c->r->t;
    uint32_t cpu;
    if (!c->ort || !c->nodes.device) return CDMPP_OK;
    CD_TRY(cd_trace_number(c->r, (cd_str){"cpu", 3}, &cpu, err));
    for (size_t i = 0; i < t->n; i++) {
        cd_trace_event *e = &t->event[i];
        if (e->kind != CD_TRACE_KERNEL || e->external != DEVICE_NODE) continue;
        e->external = -1;
        if (c->nodes.kernels) e->kind = CD_TRACE_OP, e->device = cpu;
    }
    if (!c->nodes.kernels)
        cd_buf_putf(&t->said,
                    "the %llu nodes of %s and the like have the time that their launch took on the "
                    "host: the trace has no kernels of the device\n",
                    (unsigned long long)c->nodes.device, c->nodes.provider);
    return CDMPP_OK;
}
