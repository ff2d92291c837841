/* The overview as text, one screen of 24 lines, and as JSON. What comes next is a list: both print
 * it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/network_report/network_report.h"
#include "predictor/overview/overview.h"

enum { LABEL = 15, CELL = 24, COMMAND = 26 };
static const double GIB = 1073741824.0;

/* ---- the next commands ---- */
typedef struct {
    const char *what, *command;
} next_step;
enum { MOST = 6 };

static size_t next_steps(const cd_overview *o, next_step out[MOST]) {
    size_t n = 0;
    out[n++] = (next_step){"Your network", "cdmpp replay my.onnx"};
    if (o->machine.n_gpu)
        out[n++] = (next_step){"On this machine's GPU", "cdmpp replay my.onnx --target cuda"};
    out[n++] = (next_step){"On another device", "cdmpp replay my.onnx --device h100"};
    if (!o->calibrated) out[n++] = (next_step){"Better for this machine", "cdmpp tune calibrate"};
    out[n++] = (next_step){"All commands", "cdmpp --help"};
    return n;
}

/* ---- text ---- */
static void put_memory(const cd_host_info *h, cd_buf *b) {
    const double gib = (double)h->memory_bytes / GIB;
    if (gib > 0) cd_buf_putf(b, gib < 99.95 ? ", %.3g GiB of memory" : ", %.0f GiB of memory", gib);
}

static void put_gpus(const cd_overview_machine *m, cd_buf *b) {
    for (size_t k = 0, n; k < m->n_gpu; k += n) {
        for (n = 1; k + n < m->n_gpu && !strcmp(m->gpu[k + n].name, m->gpu[k].name);) n++;
        cd_buf_puts(b, k ? ", " : "");
        if (n > 1) cd_buf_putf(b, "%zu x ", n);
        cd_buf_puts(b, m->gpu[k].name);
    }
}

static void put_machine(const cd_overview_machine *m, const char *cpu, cd_buf *b) {
    const cd_host_info *h = &m->host;
    cd_buf_putf(b, "%-*s%s", LABEL, "This machine", cpu);
    if (h->n_cpu > 0) cd_buf_putf(b, ", %d logical core%s", h->n_cpu, h->n_cpu > 1 ? "s" : "");
    if (h->n_allowed > 0 && h->n_allowed < h->n_cpu)
        cd_buf_putf(b, " (%d may be used)", h->n_allowed);
    if (m->vectors) cd_buf_putf(b, ", %s", m->vectors);
    put_memory(h, b);
    cd_buf_puts(b, "\n");
    if (!m->n_gpu) return;
    cd_buf_putf(b, "%-*s", LABEL, m->n_gpu > 1 ? "GPUs" : "GPU");
    put_gpus(m, b);
    cd_buf_puts(b, "\n");
}

void cd_overview_machine_text(const cd_overview_machine *m, cd_buf *b) {
    put_machine(m, m->host.cpu[0] ? m->host.cpu : "unknown processor", b);
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_model(const cd_overview *o, cd_buf *b) {
    cd_buf_putf(b, "%-*s%s, %s\n%-*s", LABEL, "Cost model", file_name(o->model), o->what, LABEL,
                "");
    if (o->calibrated) cd_buf_putf(b, "It was calibrated for this CPU (%s).\n", o->device);
    else if (o->known) cd_buf_putf(b, "It knows this CPU (%s).\n", o->device);
    else cd_buf_putf(b, "This CPU is not in it: %s stands in.\n", o->device);
    if (isnan(o->off)) return;
    cd_buf_putf(b,
                "%-*sNine of ten times are within %.*fx of the latency below, by %s\n%-*sthat its "
                "training left out.\n",
                LABEL, "", o->off < 9.95 ? 1 : 0, o->off,
                o->known ? "programs and networks" : "programs, networks and devices", LABEL, "");
}

/* Three digits are as many as an estimate has. */
static void put_time(char out[CELL], double s) {
    if (isnan(s)) (void)snprintf(out, CELL, "-");
    else if (s >= 1) (void)snprintf(out, CELL, "%.3g s", s);
    else if (s >= 0.9995e-3)
        (void)snprintf(out, CELL, "%.*f ms", s < 9.995e-3 ? 2 : s < 99.95e-3 ? 1 : 0, 1e3 * s);
    else (void)snprintf(out, CELL, "%.0f us", 1e6 * s);
}

static void put_network(const cd_network_estimate_case *c, cd_buf *b) {
    char latency[CELL], from[CELL], to[CELL];
    cd_buf_putf(b, "  %-14s", c->source->name);
    if (c->st) {
        cd_buf_putf(b, "  %s\n", c->err.msg);
        return;
    }
    put_time(latency, c->replay.makespan_s);
    put_time(from, c->interval.low_s);
    put_time(to, c->interval.high_s);
    cd_buf_putf(b, " %10s  %10s to %s\n", latency, from, to);
}

void cd_overview_text(const cd_overview *o, cd_buf *b) {
    next_step next[MOST];
    const size_t n = next_steps(o, next);
    put_machine(&o->machine, o->e.models.host[0] ? o->e.models.host : o->machine.host.cpu, b);
    put_model(o, b);
    cd_buf_puts(b, "\n");
    cd_network_report_whose(&o->e, b);
    cd_buf_putf(b, "\n\n  %-14s %10s  %10s\n", "network", "latency", "90 % interval (batch 1)");
    for (size_t k = 0; k < o->e.n_item; k++) put_network(&o->e.item[k], b);
    cd_buf_putf(b, "\nAnswered in %.1f s, nothing was run.\n\n", o->seconds);
    for (size_t k = 0; k < n; k++)
        cd_buf_putf(b, "%-*s%s%s\n", COMMAND, next[k].what, next[k].command,
                    strstr(next[k].command, "calibrate") ? " (5 minutes)" : "");
}

/* ---- JSON ---- */
static void json_machine(const cd_overview_machine *m, const char *host, cd_json_writer *w) {
    cd_json_write_key(w, "machine");
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "cpu", host[0] ? host : NULL);
    cd_json_write_member_int(w, "logical_cores", m->host.n_cpu);
    cd_json_write_member_int(w, "usable_cores", m->host.n_allowed);
    cd_json_write_member_str(w, "vectors", m->vectors);
    cd_json_write_member_int(w, "memory_bytes", m->host.memory_bytes);
    cd_json_write_key(w, "gpus");
    cd_json_write_open(w, '[');
    for (size_t k = 0; k < m->n_gpu; k++) cd_json_write_str(w, m->gpu[k].name);
    cd_json_write_close(w, ']');
    cd_json_write_close(w, '}');
}

static void json_network(const cd_network_estimate_case *c, cd_json_writer *w) {
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "network", c->source->name);
    cd_json_write_member_int(w, "batch", c->source->batch);
    cd_json_write_member_real(w, "latency_s", c->st ? (double)NAN : c->replay.makespan_s);
    cd_json_write_member_real(w, "low_s", c->st ? (double)NAN : c->interval.low_s);
    cd_json_write_member_real(w, "high_s", c->st ? (double)NAN : c->interval.high_s);
    cd_json_write_member_str(w, "error", c->st ? c->err.msg : NULL);
    cd_json_write_close(w, '}');
}

static void json_model(const cd_overview *o, cd_json_writer *w) {
    cd_json_write_key(w, "model");
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "path", o->model);
    cd_json_write_member_str(w, "is", o->what);
    cd_json_write_member_str(w, "device", o->device);
    cd_json_write_member_bool(w, "known", o->known);
    cd_json_write_member_bool(w, "calibrated", o->calibrated);
    cd_json_write_member_real(w, "off_by", o->off);
    cd_json_write_close(w, '}');
}

void cd_overview_json(const cd_overview *o, cd_buf *b) {
    cd_json_writer w = {.out = b};
    next_step next[MOST];
    const size_t n = next_steps(o, next);
    cd_buf whose = {0};
    cd_network_report_whose(&o->e, &whose);
    cd_buf_put(&whose, "", 1);
    b->oom |= whose.oom;
    cd_json_write_open(&w, '{');
    json_machine(&o->machine, o->e.models.host[0] ? o->e.models.host : o->machine.host.cpu, &w);
    json_model(o, &w);
    cd_json_write_member_str(&w, "latency_of", whose.p);
    cd_json_write_member_real(&w, "level", o->ask.level);
    cd_json_write_key(&w, "networks");
    cd_json_write_open(&w, '[');
    for (size_t k = 0; k < o->e.n_item; k++) json_network(&o->e.item[k], &w);
    cd_json_write_close(&w, ']');
    cd_json_write_member_real(&w, "seconds", o->seconds);
    cd_json_write_key(&w, "next");
    cd_json_write_open(&w, '[');
    for (size_t k = 0; k < n; k++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "what", next[k].what);
        cd_json_write_member_str(&w, "command", next[k].command);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
    cd_buf_free(&whose);
}
