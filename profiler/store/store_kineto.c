/* store_kineto -- PyTorch profiler's Chrome traces.
 *
 *   {"deviceProperties": [{"id": 0, "name": "Tesla T4"}], "traceEvents": [
 *      {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": us, "dur": us, "args": {"Input Dims": [[8,16],[16,32]], "Input type": ["float", ..]}},
 *      {"ph": "X", "cat": "kernel", "name": "...", "dur": us, "args": {"device": 0, "grid": [..], "block": [..]}}, ...]}
 *
 * or the list alone; builds without Kineto give events no category but "pid": "CPU functions". The text is walked
 * event by event, so that a trace may be bigger than a tree of it would be. An operator's time holds what it calls. */
#include <string.h>
#include <strings.h>

#include "base/io/io.h"
#include "profiler/store/store_internal.h"

typedef struct trace {
    cd_store_reading *r;
    const char *at, *end;
    long line;                  /* of `at` */
    const char *gpus, *events;  /* values of the members; NULL: there is none */
    size_t n_gpus;
    const cd_json *gpu;         /* list of device properties; NULL: none */
    cd_arena keep;              /* of gpu */
    cd_store_launches g;
    cd_buf text;
} trace;

static void blanks(trace *t) {
    for (; t->at < t->end && strchr(" \t\r\n", *t->at); t->at++) t->line += *t->at == '\n';
}

/* Behind the string that begins at p; NULL: it does not end. */
static const char *skip_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\') p++;
    return p < end ? p + 1 : NULL;
}

/* Move behind one value, whatever it is; false: the text ends in it. Brackets are matched, nothing is checked. */
static bool skip_value(trace *t) {
    int depth = 0;
    while (t->at < t->end) {
        const char c = *t->at;
        if (c == '"') {
            const char *to = skip_string(t->at, t->end);
            if (!to) return false;
            t->at = to;
        } else {
            if (depth == 0 && (c == ',' || c == '}' || c == ']')) return true;
            if (c == '{' || c == '[') depth++;
            if (c == '}' || c == ']') depth--;
            t->line += c == '\n';
            t->at++;
        }
        if (depth == 0 && (c == '}' || c == ']' || c == '"')) return true;
    }
    return false;
}

/* Find the two members of the object; a damaged end is left for later. */
static void find_members(trace *t) {
    const trace start = *t;
    t->at++;
    for (;;) {
        blanks(t);
        const char *key = t->at, *to = t->at < t->end && *key == '"' ? skip_string(key, t->end) : NULL;
        if (!to) break;
        t->at = to;
        blanks(t);
        if (t->at == t->end || *t->at++ != ':') break;
        blanks(t);
        const char *value = t->at;
        const bool whole = skip_value(t);
        if (!strncmp(key, "\"traceEvents\"", 13)) t->events = value;
        if (whole && !strncmp(key, "\"deviceProperties\"", 18)) t->gpus = value, t->n_gpus = (size_t)(t->at - value);
        blanks(t);
        if (!whole || t->at == t->end || *t->at++ != ',') break;
    }
    t->at = start.at;
    t->line = start.line;
}

/* ---- one event ---- */

/* Member of args whatever its case: names changed between versions. */
static const cd_json *arg(const cd_json *args, const char *name) {
    for (const cd_json *c = args && args->kind == CD_JSON_OBJ ? args->u.child : NULL; c; c = c->next)
        if (c->key.n == strlen(name) && !strncasecmp(c->key.p, name, c->key.n)) return c;
    return NULL;
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

typedef enum { OTHER, CPU_OP, KERNEL } kind;

static kind kind_of(const cd_json *e) {
    const cd_json *cat = cd_json_get(e, "cat"), *pid = cd_json_get(e, "pid"), *ph = cd_json_get(e, "ph");
    if (!ph || ph->kind != CD_JSON_STR || !cd_str_is(ph->u.s, "X")) return OTHER;
    if (cat && cat->kind == CD_JSON_STR) {
        if (cd_str_is(cat->u.s, "kernel") || cd_str_is(cat->u.s, "Kernel")) return KERNEL;
        return cd_str_is(cat->u.s, "cpu_op") || cd_str_is(cat->u.s, "Operator") ? CPU_OP : OTHER;
    }
    if (!pid || pid->kind != CD_JSON_STR) return OTHER;
    return cd_str_is(pid->u.s, "CPU functions") ? CPU_OP : cd_str_is(pid->u.s, "CUDA functions") ? KERNEL : OTHER;
}

/* Name of GPU `id` by the properties, else "cuda:<id>"; into the text. */
static cd_str gpu_name(trace *t, int64_t id) {
    const size_t from = t->text.n;
    for (const cd_json *g = t->gpu ? t->gpu->u.child : NULL; g; g = g->next) {
        const cd_json *n = cd_json_get(g, "id"), *name = cd_json_get(g, "name");
        if (n && n->kind == CD_JSON_INT && n->u.i == id && name && name->kind == CD_JSON_STR) return name->u.s;
    }
    cd_buf_putf(&t->text, "cuda:%lld", (long long)id);
    return (cd_str){t->text.p + from, t->text.n - from};
}

static cd_str input_type(const cd_json *args) {
    const cd_json *types = arg(args, "Input type");
    for (const cd_json *c = types && types->kind == CD_JSON_ARR ? types->u.child : NULL; c; c = c->next)
        if (c->kind == CD_JSON_STR && c->u.s.n) {
            const bool f32 = cd_str_is(c->u.s, "float");
            return f32 ? (cd_str){"float32", 7} : c->u.s;
        }
    return (cd_str){"", 0};
}

static cdmpp_status launch(trace *t, const cd_json *e, kind k, cdmpp_err *err) {
    const cd_json *args = cd_json_get(e, "args"), *id = arg(args, "device");
    cd_store_launch_group like = {.line = t->line, .flags = k == CPU_OP ? CD_STORE_INCLUSIVE : 0, .target = {"pytorch", 7}};
    double us;
    CD_TRY(cd_json_need_str(e, "name", &like.operator_name, err));
    CD_TRY(cd_json_need_real(e, "dur", 0, 1e15, &us, err));
    if (!(us > 0)) {
        t->r->tally->empty++;
        return CDMPP_OK;
    }
    cd_buf_clear(&t->text);
    if (k == KERNEL) {
        cd_buf_puts(&t->text, "[");
        put_list(&t->text, arg(args, "grid"));
        cd_buf_puts(&t->text, ",");
        put_list(&t->text, arg(args, "block"));
        cd_buf_puts(&t->text, "]");
    } else {
        put_list(&t->text, arg(args, "Input Dims"));
        like.dtype = input_type(args);
    }
    const size_t shape = t->text.n;
    like.device = t->r->device;
    if (!like.device.n) like.device = k == CPU_OP ? (cd_str){"cpu", 3} : gpu_name(t, id && id->kind == CD_JSON_INT ? id->u.i : 0);
    if (t->text.oom) return CD_FAIL(err, ENOMEM, "launch");
    like.shape = (cd_str){t->text.p, shape}; /* behind gpu_name: the text may have moved */
    return cd_store_launches_add(&t->g, &like, us / 1e6, err);
}

static cdmpp_status event(trace *t, const char *from, long line, cdmpp_err *err) {
    const cd_json *e = NULL;
    cd_arena_reset(&t->r->arena);
    cdmpp_status st = cd_json_parse(&t->r->arena, from, (size_t)(t->at - from), &e, err);
    const kind k = st ? OTHER : kind_of(e);
    const long now = t->line;
    if (k != OTHER) {
        t->r->tally->lines++;
        t->line = line;
        st = launch(t, e, k, err);
        t->line = now;
    }
    return cd_err_at(err, st, t->r->path, line);
}

static cdmpp_status events(trace *t, cdmpp_err *err) {
    cdmpp_err e = {0};
    t->at++;
    for (;;) {
        blanks(t);
        if (t->at < t->end && *t->at == ']') return CDMPP_OK;
        const char *from = t->at;
        const long line = t->line;
        if (t->at == t->end || !skip_value(t) || t->at == from) { /* what was read of a cut-off trace stays */
            const cdmpp_status st = CD_FAIL(&e, EPARSE, "the trace ends in the middle: its writer was stopped");
            cd_err_add_place(&e, t->r->path, line);
            return cd_store_bad(t->r, st, &e, err);
        }
        const cdmpp_status st = event(t, from, line, &e);
        if (st) CD_TRY(cd_store_bad(t->r, st, &e, err));
        if (t->r->how->stop && *t->r->how->stop) return CD_FAIL(err, EINTERRUPTED, "stopped: nothing of this trace was kept");
        blanks(t);
        if (t->at < t->end && *t->at == ',') t->at++;
    }
}

static cdmpp_status read_trace(trace *t, cdmpp_err *err) {
    blanks(t);
    if (t->at < t->end && *t->at == '{') find_members(t);
    else if (t->at < t->end && *t->at == '[') t->events = t->at;
    if (!t->events || *t->events != '[')
        return cd_err_at(err, CD_FAIL(err, ESCHEMA, "expected a list of events or a member \"traceEvents\""), t->r->path, 0);
    if (t->gpus && cd_json_parse(&t->keep, t->gpus, t->n_gpus, &t->gpu, NULL)) t->gpu = NULL;
    if (t->gpu && t->gpu->kind != CD_JSON_ARR) t->gpu = NULL;
    for (; t->at < t->events; t->at++) t->line += *t->at == '\n';
    return events(t, err);
}

cdmpp_status cd_store_read_kineto(cd_store_reading *r, cdmpp_err *err) {
    char *text = NULL;
    size_t n = 0;
    CD_TRY(cd_file_read(r->path, 0, &text, &n, err));
    trace t = {.r = r, .at = text, .end = text + n, .line = 1};
    cdmpp_status st = read_trace(&t, err);
    if (!st) st = cd_store_launches_save(&t.g, r, err);
    if (!st) st = cd_store_mark(r, (uint64_t)t.line, true, err);
    cd_store_launches_free(&t.g);
    cd_arena_free(&t.keep);
    cd_buf_free(&t.text);
    cd_mem_free(text);
    return st;
}
