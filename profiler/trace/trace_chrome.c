/* trace_chrome -- traces of the Chrome form (PyTorch's profilers, ONNX Runtime, Habana's profiler),
 * and trtexec's lists of rows.
 *
 *   {"deviceProperties": [{"id": 0, "name": "Tesla T4"}], "traceEvents": [ .. ]}  or the list alone
 *
 * The text is walked event by event, so that a trace may be bigger than memory.
 * trace_chrome.c knows the events. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "profiler/trace/trace_chrome.h"
#include "profiler/trace/trace_scan.h"

/* trace_chrome_event -- one event of a trace of the Chrome form.
 *
 *   Kineto  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "tid": 1, "ts": us, "dur": us, "args":
 *           {"External id": 2, "Input Dims": ..}}
 *           {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": us, "dur": us,
 *           "args": {"correlation": 7, "External id": 2}}
 *           {"ph": "X", "cat": "kernel", "name": "sgemm", "ts": us, "dur": us, "args": {"device":
 *           0, "stream": 7, "correlation": 7, "grid": ..}}
 *   Habana  {"ph": "M", "name": "process_name", "pid": 4, "args": {"name": "*MME"}}
 *           {"ph": "B", "pid": 4, "tid": 0, "name": "conv1", "ts": us} .. {"ph": "E", ..}
 *
 * The autograd profiler, and builds of PyTorch without Kineto, give events no category but "pid":
 * "CPU functions" or "CUDA functions". The latter are operators between two marks of the device,
 * inside of each other; "tid" is the number of the device. Times of the form are microseconds. An
 * event of an engine that bears the engine's own name ("MME context", "TPC_3") is its activity and
 * no operator of the network. */

/* ---- reading members ---- */

/* Member of args whatever its case: names changed between versions. */
static const cd_json *arg(const cd_json *args, const char *name) {
    for (const cd_json *c = args && args->kind == CD_JSON_OBJ ? args->u.child : NULL; c;
         c = c->next)
        if (c->key.n == strlen(name) && !strncasecmp(c->key.p, name, c->key.n)) return c;
    return NULL;
}

/* The number in a member of JSON, which may be a text: "7"; NaN.
 *
 * ONNX Runtime writes numbers as texts. */
static double trace_loose_number(const cd_json *v) {
    double x = NAN;
    if (v && v->kind == CD_JSON_STR)
        return cd_json_number(v->u.s.p, v->u.s.p + v->u.s.n, &x) == v->u.s.p + v->u.s.n
                   ? x
                   : (double)NAN;
    return cd_json_real(v, &x, NULL) ? (double)NAN : x;
}

static int64_t int_arg(const cd_json *args, const char *name, int64_t missing) {
    const cd_json *v = arg(args, name);
    const double x = v && v->kind == CD_JSON_INT ? (double)NAN : trace_loose_number(v);
    return fabs(x) < 0x1p53 ? (int64_t)x : v && v->kind == CD_JSON_INT ? v->u.i : missing;
}

static bool text_is(const cd_json *v, const char *word) {
    return v && v->kind == CD_JSON_STR && cd_str_is(v->u.s, word);
}

static cd_str text_of(const cd_json *v) {
    return v && v->kind == CD_JSON_STR ? v->u.s : (cd_str){"", 0};
}

/* A process or thread as a number: they are numbers or texts. */
static uint64_t hash_of(const cd_json *v) {
    cd_hash h = cd_hash_start();
    if (v && v->kind == CD_JSON_INT) cd_hash_add(&h, &v->u.i, sizeof v->u.i);
    else if (v && v->kind == CD_JSON_STR) cd_hash_add(&h, v->u.s.p, v->u.s.n);
    return h.a;
}

static uint64_t thread_of(const cd_json *e) {
    return hash_of(cd_json_get(e, "pid")) * 31 + hash_of(cd_json_get(e, "tid"));
}

static void put_list(cd_buf *b, const cd_json *v) {
    cd_buf_puts(b, "[");
    for (const cd_json *c = v && v->kind == CD_JSON_ARR ? v->u.child : NULL; c; c = c->next) {
        if (c != v->u.child) cd_buf_puts(b, ",");
        if (c->kind == CD_JSON_INT) cd_buf_put_int(b, c->u.i);
        else if (c->kind == CD_JSON_ARR) put_list(b, c);
        else cd_buf_puts(b, "[]");
    }
    cd_buf_puts(b, "]");
}

/* ---- Kineto ---- */
static bool ends(cd_str s, const char *end) {
    const size_t n = strlen(end);
    return s.n >= n && !memcmp(s.p + s.n - n, end, n);
}

/* False: an event of another kind. */
static bool kind_of(const cd_json *e, cd_trace_kind *kind) {
    static const struct {
        const char *cat;
        cd_trace_kind kind;
    } known[] = {{"kernel", CD_TRACE_KERNEL},
                 {"Kernel", CD_TRACE_KERNEL},
                 {"gpu_memcpy", CD_TRACE_COPY},
                 {"Memcpy", CD_TRACE_COPY},
                 {"gpu_memset", CD_TRACE_SET},
                 {"Memset", CD_TRACE_SET},
                 {"cpu_op", CD_TRACE_OP},
                 {"Operator", CD_TRACE_OP},
                 {"user_annotation", CD_TRACE_RANGE},
                 {"Runtime", CD_TRACE_CALL}};
    const cd_json *cat = cd_json_get(e, "cat"), *pid = cd_json_get(e, "pid");
    if (!text_is(cd_json_get(e, "ph"), "X")) return false;
    if (cat && cat->kind == CD_JSON_STR) {
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (cd_str_is(cat->u.s, known[i].cat)) return *kind = known[i].kind, true;
        *kind = CD_TRACE_CALL; /* cuda_runtime, cuda_driver, hip_runtime */
        return ends(cat->u.s, "_runtime") || ends(cat->u.s, "_driver");
    }
    *kind = text_is(pid, "CPU functions") ? CD_TRACE_OP : CD_TRACE_KERNEL;
    return *kind == CD_TRACE_OP || text_is(pid, "CUDA functions");
}

static cd_str input_type(const cd_json *args) {
    const cd_json *types = arg(args, "Input type");
    for (const cd_json *c = types && types->kind == CD_JSON_ARR ? types->u.child : NULL; c;
         c = c->next)
        if (c->kind == CD_JSON_STR && c->u.s.n)
            return cd_str_is(c->u.s, "float") ? (cd_str){"float32", 7} : c->u.s;
    return (cd_str){"", 0};
}

/* Shape, type and, of an operator that the tables know, its sizes. */
static cdmpp_status describe(cd_trace_reader *r, const cd_json *args, cd_str name,
                             cd_trace_event *e, cdmpp_err *err) {
    cd_library_op_record q;
    cd_buf_clear(&r->text);
    if (e->kind == CD_TRACE_KERNEL && arg(args, "grid_x")) {
        static const char *const dim[] = {"[[",  "grid_x",  ",", "grid_y",  ",", "grid_z",
                                          "],[", "block_x", ",", "block_y", ",", "block_z"};
        for (size_t i = 0; i < 12; i += 2)
            cd_buf_puts(&r->text, dim[i]), cd_buf_put_int(&r->text, int_arg(args, dim[i + 1], 0));
        cd_buf_puts(&r->text, "]]");
    } else if (e->kind == CD_TRACE_KERNEL && (arg(args, "grid") || arg(args, "block"))) {
        cd_buf_puts(&r->text, "[");
        put_list(&r->text, arg(args, "grid"));
        cd_buf_puts(&r->text, ",");
        put_list(&r->text, arg(args, "block"));
        cd_buf_puts(&r->text, "]");
    } else if (e->kind == CD_TRACE_OP) {
        put_list(&r->text, arg(args, "Input Dims"));
        CD_TRY(cd_trace_number(r, input_type(args), &e->dtype, err));
        if (cd_trace_question_of(name, arg(args, "Input Dims"), arg(args, "Input type"),
                                 arg(args, "Concrete Inputs"), &q))
            CD_TRY(cd_trace_add_question(r, &q, &e->question, err));
    }
    if (r->text.oom) return CD_FAIL(err, ENOMEM, "event of a trace");
    return cd_trace_number(r, (cd_str){r->text.n ? r->text.p : "", r->text.n}, &e->shape, err);
}

static cdmpp_status place(cd_trace_reader *r, const cd_json *args, const cd_json *v,
                          cd_trace_event *e, cdmpp_err *err) {
    char gpu[32];
    const bool host = e->kind >= CD_TRACE_OP;
    const cd_json *tid = cd_json_get(v, "tid");
    const bool legacy = text_is(cd_json_get(v, "pid"), "CUDA functions");
    const int64_t number = tid && tid->kind == CD_JSON_INT ? tid->u.i : 0,
                  unit = legacy ? number : int_arg(args, "device", 0);
    const int n = snprintf(gpu, sizeof gpu, "cuda:%lld", (long long)unit);
    if (!host) e->unit = unit > 0 && unit < INT32_MAX ? (int32_t)unit : 0;
    e->thread = (int64_t)thread_of(v);
    if (!host && tid && tid->kind == CD_JSON_INT) e->thread = legacy ? 0 : number;
    if (!host) e->thread = int_arg(args, "stream", e->thread);
    return cd_trace_device_number(r, host ? (cd_str){"cpu", 3} : (cd_str){gpu, (size_t)n},
                                  &e->device, err);
}

static cdmpp_status kineto(cd_trace_chrome *c, const cd_json *v, cd_trace_kind kind, long line,
                           cdmpp_err *err) {
    const cd_json *args = cd_json_get(v, "args"), *bytes = arg(args, "bytes");
    cd_trace_event e = cd_trace_event_init(kind, line);
    double us, ts;
    cd_str name;
    c->r->t->lines += kind != CD_TRACE_CALL;
    c->kineto = true;
    CD_TRY(cd_json_need_str(v, "name", &name, err));
    CD_TRY(cd_json_need_real(v, "dur", 0, 1e15, &us, err));
    if (cd_json_get(v, "ts")) {
        CD_TRY(cd_json_need_real(v, "ts", 0, 9e15, &ts, err));
        e.start_ns = (int64_t)llround(ts * 1e3);
    }
    if (!(us > 0) && kind != CD_TRACE_CALL) return c->r->t->empty++, CDMPP_OK;
    e.time_s = us / 1e6;
    e.link = int_arg(args, "correlation", -1);
    e.external = int_arg(args, "External id", -1);
    if (kind == CD_TRACE_KERNEL && text_of(arg(args, "op_name")).n)
        CD_TRY(cd_trace_number(c->r, text_of(arg(args, "op_name")), &e.op, err));
    c->nodes.kernels += kind == CD_TRACE_KERNEL;
    if (bytes && kind < CD_TRACE_OP && (cd_json_real(bytes, &e.bytes, NULL) || e.bytes < 0))
        e.bytes = NAN;
    CD_TRY(cd_trace_number(c->r, name, &e.name, err));
    if (kind == CD_TRACE_KERNEL && text_is(cd_json_get(v, "pid"), "CUDA functions")) e.op = e.name;
    CD_TRY(place(c->r, args, v, &e, err));
    CD_TRY(describe(c->r, args, name, &e, err));
    return cd_trace_add(c->r, &e, err);
}

/* ---- Habana ---- */
enum { MOST_ENGINES = 256, MOST_OPEN = 4096 };

static cdmpp_status process_name(cd_trace_chrome *c, const cd_json *v, cdmpp_err *err) {
    static const char *const word[] = {"MME", "TPC", "DMA"};
    const cd_str name = text_of(arg(cd_json_get(v, "args"), "name"));
    const size_t star = name.n && *name.p == '*';
    cd_trace_engine e = {.pid = hash_of(cd_json_get(v, "pid"))};
    snprintf(e.name, sizeof e.name, "%.*s", (int)(name.n - star), name.p + star);
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        if (strncmp(e.name, word[i], 3)) continue;
        e.copies = i == 2;
        if (c->n_engine == MOST_ENGINES)
            return CD_FAIL(err, ERANGE, "expected at most %d engines", MOST_ENGINES);
        if (CD_GROW(c->engine, c->n_engine, c->cap_engine))
            return CD_FAIL(err, ENOMEM, "engines of a trace");
        c->engine[c->n_engine++] = e;
        return CDMPP_OK;
    }
    return CDMPP_OK;
}

static cdmpp_status open_event(cd_trace_chrome *c, const cd_json *v, size_t engine, double ts,
                               long line, cdmpp_err *err) {
    cd_trace_open o = {.thread = thread_of(v), .engine = engine, .ts_us = ts, .line = line};
    cd_str name;
    CD_TRY(cd_json_need_str(v, "name", &name, err));
    CD_TRY(cd_trace_number(c->r, name, &o.name, err));
    CD_TRY(cd_trace_number(c->r, text_of(arg(cd_json_get(v, "args"), "op")), &o.op, err));
    if (c->n_open == MOST_OPEN)
        return CD_FAIL(err, ERANGE, "expected at most %d events that have not ended", MOST_OPEN);
    if (CD_GROW(c->open, c->n_open, c->cap_open)) return CD_FAIL(err, ENOMEM, "open events");
    c->open[c->n_open++] = o;
    return CDMPP_OK;
}

static cdmpp_status add_engine_event(cd_trace_chrome *c, const cd_trace_open *o, const cd_json *v,
                                     double us, cdmpp_err *err) {
    const cd_trace_engine *g = &c->engine[o->engine];
    const cd_json *tid = cd_json_get(v, "tid");
    const cd_str op = text_of(arg(cd_json_get(v, "args"), "op"));
    cd_trace_event e = cd_trace_event_init(g->copies ? CD_TRACE_COPY : CD_TRACE_KERNEL, o->line);
    c->r->t->lines++;
    c->habana = true;
    if (!(us >= 0))
        return CD_FAIL(err, ERANGE, "expected an end after the start in line %ld", o->line);
    if (!strncmp(cd_trace_text(c->r->t, o->name), g->name, 3) || c->r->how->skip >> e.kind & 1)
        return CDMPP_OK;
    if (us == 0) return c->r->t->empty++, CDMPP_OK;
    e.name = o->name;
    e.time_s = us / 1e6;
    e.start_ns = (int64_t)llround(o->ts_us * 1e3);
    e.thread = (int64_t)(o->engine * 1000) +
               (tid && tid->kind == CD_JSON_INT && tid->u.i >= 0 && tid->u.i < 1000 ? tid->u.i : 0);
    e.op = o->op;
    if (op.n) CD_TRY(cd_trace_number(c->r, op, &e.op, err));
    CD_TRY(cd_trace_device_number(c->r, (cd_str){"habana", 6}, &e.device, err));
    return cd_trace_add(c->r, &e, err);
}

/* The end belongs to the event of its thread that began last. */
static cdmpp_status close_event(cd_trace_chrome *c, const cd_json *v, double ts, cdmpp_err *err) {
    const uint64_t thread = thread_of(v);
    for (size_t i = c->n_open; i-- > 0;) {
        if (c->open[i].thread != thread) continue;
        const cd_trace_open o = c->open[i];
        memmove(&c->open[i], &c->open[i + 1], (c->n_open - i - 1) * sizeof o);
        c->n_open--;
        return add_engine_event(c, &o, v, ts - o.ts_us, err);
    }
    return CD_FAIL(err, ESCHEMA, "expected an event that began before this end");
}

static cdmpp_status engine_event(cd_trace_chrome *c, const cd_json *v, size_t engine, long line,
                                 cdmpp_err *err) {
    const cd_json *ph = cd_json_get(v, "ph");
    const bool x = text_is(ph, "X"), b = text_is(ph, "B");
    double ts, us;
    if (!x && !b && !text_is(ph, "E")) return CDMPP_OK;
    CD_TRY(cd_json_need_real(v, "ts", 0, 9e15, &ts, err));
    if (!x) return b ? open_event(c, v, engine, ts, line, err) : close_event(c, v, ts, err);
    CD_TRY(cd_json_need_real(v, "dur", 0, 1e15, &us, err));
    CD_TRY(open_event(c, v, engine, ts, line, err));
    return close_event(c, v, ts + us, err);
}

/* Behind the last event: those that never ended are reported. */
static cdmpp_status trace_chrome_open_events(cd_trace_chrome *c, cdmpp_err *err) {
    for (size_t i = 0; i < c->n_open && !c->ended; i++) {
        cdmpp_err e = {0};
        const cdmpp_status st = CD_FAIL(&e, ESCHEMA, "'%.60s' begins and never ends",
                                        cd_trace_text(c->r->t, c->open[i].name));
        cd_err_add_place(&e, c->r->path, c->open[i].line);
        CD_TRY(cd_trace_bad(c->r, st, &e, err));
    }
    return CDMPP_OK;
}

/* ---- all ---- */

/* "cat 'Op', name 'Conv2D'": of the first event that nobody may know. */
static void remember(cd_trace_chrome *c, const cd_json *v) {
    const cd_str cat = text_of(cd_json_get(v, "cat")), ph = text_of(cd_json_get(v, "ph")),
                 name = text_of(cd_json_get(v, "name"));
    /* names of processes say the least */
    if (c->stranger[0] && !strstr(c->stranger, "ph 'M'")) return;
    if (v->kind != CD_JSON_OBJ)
        (void)snprintf(c->stranger, sizeof c->stranger, "%s", cd_json_kind_name(v->kind));
    else
        (void)snprintf(c->stranger, sizeof c->stranger, "ph '%.*s', cat '%.*s', name '%.*s'",
                       cd_str_shown(ph, 4), ph.p, cd_str_shown(cat, 16), cat.p,
                       cd_str_shown(name, 30), name.p);
    for (char *p = c->stranger; *p; p++)
        if ((unsigned char)*p < ' ') *p = ' ';
}

static cdmpp_status one(cd_trace_chrome *c, const cd_json *v, long line, cdmpp_err *err) {
    cd_trace_kind kind;
    bool mine = false;
    c->seen++;
    remember(c, v);
    if (!cd_json_get(v, "ph")) CD_TRY(cd_trace_trt_row(c, v, line, &mine, err));
    else CD_TRY(cd_trace_ort_event(c, v, line, &mine, err));
    if (mine) return CDMPP_OK;
    if (text_is(cd_json_get(v, "ph"), "M"))
        return text_is(cd_json_get(v, "name"), "process_name") ? process_name(c, v, err) : CDMPP_OK;
    const uint64_t pid = c->n_engine ? hash_of(cd_json_get(v, "pid")) : 0;
    for (size_t i = 0; i < c->n_engine; i++)
        if (c->engine[i].pid == pid) return engine_event(c, v, i, line, err);
    return kind_of(v, &kind) && !(c->r->how->skip >> kind & 1) ? kineto(c, v, kind, line, err)
                                                               : CDMPP_OK;
}

/* One event; others than launches, operators, ranges and calls are passed over. Errors carry the
 * place. */
static cdmpp_status trace_chrome_event(cd_trace_chrome *c, cd_str text, long line, cdmpp_err *err) {
    const cd_json *v = NULL;
    cd_arena_reset(&c->r->arena);
    cd_buf_clear(&c->r->text);
    cdmpp_status st = cd_json_parse_foreign(&c->r->arena, text, &c->r->text, &v, err);
    /* the parser counts from the event's own first line */
    const long inside = st && err && err->line ? err->line - 1 : 0;
    if (inside) err->line = line + inside;
    c->twice += !st && c->r->text.n;
    if (!st) st = one(c, v, line, err);
    return cd_err_at(err, st, c->r->path, line);
}

/* trace_scan -- a window over a long JSON text. */

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

/* The next byte that is no blank, not taken; -1: the text ends. */
static int trace_scan_peek(cd_trace_scan *s) {
    for (;;) {
        for (; s->at < s->n; s->at++) {
            const char c = s->p[s->at];
            if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return (unsigned char)c;
            s->line += c == '\n';
        }
        if (!more(s, &s->at)) return -1;
    }
}

/* The next byte, taken. */
static int trace_scan_take(cd_trace_scan *s) {
    const int c = trace_scan_peek(s);
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

/* A whole value, taken. Its text stays until the next call. *out NULL: the text ends in it, or
 * `keep` is false. Errors: ERANGE (longer than CD_TRACE_SCAN_MAX; only where it is kept), EPARSE
 * (no value begins here), ENOMEM. */
static cdmpp_status trace_scan_value(cd_trace_scan *s, bool keep, cd_str *out, bool *whole,
                                     cdmpp_err *err) {
    inside w = {0};
    bool done = false, behind = false;
    *out = (cd_str){NULL, 0};
    *whole = false;
    if (trace_scan_peek(s) < 0) return CDMPP_OK;
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
    (void)trace_scan_take(s);
    for (uint64_t n = 1;; n++) {
        if (n > EVENTS_BASE) CD_TRY(too_many(c, n, err));
        cdmpp_err e = {0};
        cd_str text;
        bool whole;
        int next = trace_scan_peek(s);
        const long line = s->line;
        if (next == ']') return (void)trace_scan_take(s), CDMPP_OK;
        if (next < 0) return cut(c, line, err);
        const cdmpp_status bad = trace_scan_value(s, true, &text, &whole, &e);
        if (bad == CDMPP_EPARSE) return cut(c, line, err);
        if (bad) return cd_err_at(err, CD_FAIL(err, ERANGE, "%s", e.msg), c->r->path, line);
        if (!whole) return cut(c, line, err);
        const cdmpp_status st = trace_chrome_event(c, text, line, &e);
        if (st) CD_TRY(cd_trace_bad(c->r, st, &e, err));
        CD_TRY(cd_trace_stopped(c->r, err));
        if (trace_scan_peek(s) == ',') (void)trace_scan_take(s);
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
    if (trace_scan_peek(s) != '"') return CDMPP_OK;
    CD_TRY(trace_scan_value(s, true, &text, &whole, err));
    if (!whole) return CDMPP_OK;
    snprintf(name, sizeof name, "%.*s", (int)(text.n < sizeof name ? text.n : 0), text.p);
    if (trace_scan_take(s) != ':') return CDMPP_OK;
    if (!strcmp(name, "\"traceEvents\"") && trace_scan_peek(s) == '[') {
        if (c->found) again(c);
        c->found = true;
        CD_TRY(events(c, err));
        whole = !c->ended;
    } else {
        const bool gpus = !strcmp(name, "\"deviceProperties\"");
        c->layers |= !strcmp(name, "\"Layers\"");
        CD_TRY(trace_scan_value(s, gpus, &text, &whole, err));
        if (whole && gpus) CD_TRY(take_gpus(c, text, err));
    }
    *more = whole && trace_scan_peek(s) == ',' && trace_scan_take(s) == ',';
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
    while (trace_scan_peek(&c->scan) > 0 && strchr("\xef\xbb\xbf", trace_scan_peek(&c->scan)))
        (void)trace_scan_take(&c->scan);
    const int first = trace_scan_peek(&c->scan);
    bool more = first == '{';
    if (first == '[') {
        c->found = true;
        CD_TRY(events(c, err));
    }
    if (more) (void)trace_scan_take(&c->scan);
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
    return trace_chrome_open_events(c, err);
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
