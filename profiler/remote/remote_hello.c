/* The first line of a worker, written and read; and a worker that is asked for nothing else. */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "profiler/remote/remote_internal.h"

enum { GREETINGS = 64 };
#define LOOK_S 0.2 /* so long until a stop is seen */

/* ---- the line ---- */
void cd_remote_hello_put(cd_buf *b, const cd_remote_about *a) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "hello", "cdmpp-worker");
    cd_json_write_member_int(&w, "protocol", CD_REMOTE_PROTOCOL);
    cd_json_write_member_str(&w, "version", cdmpp_version());
    cd_json_write_member_str(&w, "device", a->device);
    if (a->model[0]) cd_json_write_member_str(&w, "model", a->model);
    if (a->isa[0]) cd_json_write_member_str(&w, "isa", a->isa);
    if (a->cpus > 0) cd_json_write_member_int(&w, "cpus", a->cpus);
    if (a->core[0]) cd_json_write_member_str(&w, "core_type", a->core);
    cd_json_write_close(&w, '}');
    cd_buf_puts(b, "\n");
}

static void take_text(const cd_json *m, const char *key, char *to, size_t cap) {
    const cd_json *v = cd_json_get(m, key);
    if (v && v->kind == CD_JSON_STR)
        snprintf(to, cap, "%.*s", (int)(v->u.s.n < cap ? v->u.s.n : cap - 1), v->u.s.p);
}

/* A name goes into the target of records, so it is one word; what else a worker calls itself is no
 * name. */
static bool is_name(const char *s) {
    for (; *s; s++)
        if (*s <= ' ' || *s == '"' || *s == '\\' || *s == 127) return false;
    return true;
}

cd_remote_greeting cd_remote_hello_read(const cd_json *m, cd_remote_about *out) {
    const cd_json *who = m ? cd_json_get(m, "hello") : NULL,
                  *protocol = m ? cd_json_get(m, "protocol") : NULL,
                  *cpus = m ? cd_json_get(m, "cpus") : NULL;
    int64_t n = 0;
    *out = (cd_remote_about){0};
    if (!who || who->kind != CD_JSON_STR || !cd_str_is(who->u.s, "cdmpp-worker"))
        return CD_REMOTE_NO_HELLO;
    if (!protocol || protocol->kind != CD_JSON_INT || protocol->u.i != CD_REMOTE_PROTOCOL)
        return CD_REMOTE_OTHER_PROTOCOL;
    take_text(m, "device", out->device, sizeof out->device);
    take_text(m, "model", out->model, sizeof out->model);
    take_text(m, "isa", out->isa, sizeof out->isa);
    take_text(m, "core_type", out->core, sizeof out->core);
    if (!is_name(out->model)) out->model[0] = 0;
    /* "native" says nothing */
    if (cd_enum_names_find(CD_ISAS, (cd_str){out->isa, strlen(out->isa)}) <= CD_ISA_NATIVE)
        out->isa[0] = 0;
    if (cpus && !cd_json_int(cpus, 1, 1 << 16, &n, NULL)) out->cpus = (int)n;
    return CD_REMOTE_HELLO;
}

bool cd_remote_hello_suits(const cd_remote_about *a, const cd_remote_policy *p) {
    return !p->core || !strcmp(a->core, p->core);
}

/* ---- asking ---- */
typedef struct {
    cd_remote_connection link;
    cd_arena arena; /* of one line */
    unsigned lines;
    cd_remote_greeting got;
    cd_remote_about *out;
} asked;

/* All whole lines that came; false: no more will. */
static bool read_lines(asked *q) {
    const bool there = cd_remote_connection_receive(&q->link);
    size_t n;
    for (char *text; q->got == CD_REMOTE_NO_HELLO && q->lines <= GREETINGS &&
                     (text = cd_remote_connection_next_line(&q->link, &n));
         q->lines++) {
        const cd_json *m = NULL;
        cd_arena_reset(&q->arena);
        const bool parsed = !cd_json_parse(&q->arena, text, n, &m, NULL) && m->kind == CD_JSON_OBJ;
        q->got = cd_remote_hello_read(parsed ? m : NULL, q->out);
    }
    return there && q->lines <= GREETINGS && q->link.in.n <= CD_REMOTE_LINE;
}

static cdmpp_status wait_for(asked *q, double start_s, const volatile sig_atomic_t *stop,
                             cdmpp_err *err) {
    const double until = cd_clock_wall() + start_s;
    const char *name = q->link.host->name;
    bool more = true;
    while (q->got == CD_REMOTE_NO_HELLO && more) {
        struct pollfd f = {.fd = q->link.fd, .events = POLLIN};
        const double left = until - cd_clock_wall();
        if (stop && *stop)
            return CD_FAIL(err, EINTERRUPTED, "while %.60s was asked what it is", name);
        if (left <= 0) break;
        (void)poll(&f, 1, (int)ceil(1000 * fmin(left, LOOK_S)));
        if (f.revents) more = read_lines(q);
        if (q->link.in.oom) return CD_FAIL(err, ENOMEM, "line");
    }
    if (q->got == CD_REMOTE_HELLO) return CDMPP_OK;
    const char *said = q->link.said;
    char late[60];
    (void)snprintf(late, sizeof late, "did not say hello within %g s", start_s);
    return CD_FAIL(err, EBACKEND, "%.60s %s%s%s", name,
                   q->got == CD_REMOTE_OTHER_PROTOCOL ? "speaks another version of the protocol"
                   : more                             ? late
                          : "is no cdmpp-profile --worker, or cannot be reached",
                   said[0] ? "; it said: " : "", said);
}

cdmpp_status cd_remote_ask(const cd_remote_host *host, const cd_remote_policy *p,
                           const volatile sig_atomic_t *stop, cd_remote_about *out,
                           cdmpp_err *err) {
    asked q = {.link = {.host = host, .fd = -1, .err_fd = -1}, .out = out};
    cdmpp_status st = cd_remote_connection_start(&q.link, cd_clock_wall(), err);
    if (!st) st = wait_for(&q, p->start_s > 0 ? p->start_s : CD_REMOTE_START_S, stop, err);
    if (!st && !cd_remote_hello_suits(out, p))
        st = CD_FAIL(err, EBACKEND, "%.60s " CD_REMOTE_OTHER_CORES, host->name);
    cd_remote_connection_kill(&q.link);
    cd_buf_free(&q.link.in);
    cd_buf_free(&q.link.out);
    cd_arena_free(&q.arena);
    return st;
}
