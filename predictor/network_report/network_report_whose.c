/* Whose latency a table has: who compiled the programs, with which schedules, on how much of the
 * device. An estimate of cdmpp is of programs that cdmpp chose; who compares it with another
 * runtime's time has to know that. */
#include <stdio.h>
#include <string.h>

#include "predictor/network_report/network_report.h"
#include "profiler/describe/describe.h"

typedef struct {
    bool tasks, own, other, records, library, given; /* own, other: compiled by cdmpp, or by whoever
                                                        compiled the records of the training */
    char where[3][48];                               /* (n_where) "one core", "a GPU" */
    size_t n_where;
} parts;

static void add_where(parts *p, const char *text) {
    for (size_t i = 0; i < p->n_where; i++)
        if (!strcmp(p->where[i], text)) return;
    if (p->n_where < sizeof p->where / sizeof *p->where)
        (void)snprintf(p->where[p->n_where++], sizeof *p->where, "%s", text);
}

static void add_device(const cd_network_estimate *e, const cd_network_estimate_device *d,
                       parts *p) {
    const cd_device *about = cd_model_set_device(&e->models, d->scaled ? d->stands : d->name);
    const char *name = d->stands ? d->stands : d->name,
               *path = cd_model_set_path(&e->models, d->model);
    char cores[CD_MODEL_SET_CORES], all[48];
    const bool by_us = cd_describe_is_own(name) || cd_model_set_stands(&e->models, name) ||
                       (path && path == e->models.gpu_default);
    p->own |= by_us;
    p->other |= !by_us;
    if (d->gpu) {
        add_where(p, "one GPU");
        return;
    }
    if (!about) return;
    const char *some = cd_model_set_cores(about, cores);
    (void)snprintf(all, sizeof all, "all %.0f cores", about->cores);
    if (some || about->cores >= 1) add_where(p, some ? some : all);
}

static void add_case(const cd_network_estimate *e, const cd_network_estimate_case *c, parts *p) {
    const cd_network_graph *g = c->source->graph;
    for (uint32_t k = 0; k < g->n_node; k++) {
        const cd_cost_source from = cd_network_estimate_case_cost(c, k)->source;
        p->tasks |= from == CD_COST_MODEL;
        p->records |= from == CD_COST_RECORD;
        p->library |= from == CD_COST_LIBRARY;
        p->given |= from == CD_COST_GIVEN;
    }
    for (uint32_t k = 0; k < c->n_place; k++)
        if (c->cost[k]->n_model || c->place[k]->model) add_device(e, c->place[k], p);
}

static void put_part(cd_buf *b, bool is, const char *text, bool *any) {
    if (!is) return;
    cd_buf_putf(b, "%s%s", *any ? ", " : "Latency of ", text);
    *any = true;
}

void cd_network_report_whose(const cd_network_estimate *e, cd_buf *b) {
    parts p = {0};
    char programs[160];
    bool any = false;
    for (size_t k = 0; k < e->n_item; k++)
        if (!e->item[k].st) add_case(e, &e->item[k], &p);
    const bool logs = e->o->records.n || e->o->store.n || e->o->schedules.n;
    (void)snprintf(programs, sizeof programs, "programs compiled by %s with %s",
                   p.other ? "TVM or cdmpp" : "cdmpp",
                   !logs          ? "schedules that cdmpp chose"
                   : e->o->trials ? "the schedules given, else those that cdmpp chose"
                                  : "the schedules given");
    put_part(b, p.tasks, programs, &any);
    put_part(b, p.records, "programs as their records measured them", &any);
    put_part(b, p.library, "operators of libraries", &any);
    put_part(b, p.given, "operators by the times in the file", &any);
    for (size_t i = 0; any && i < p.n_where; i++)
        cd_buf_putf(b, "%s%s", i ? " or " : ", on ", p.where[i]);
    if (any)
        cd_buf_puts(b, p.library || p.given ? "." : "; not of ONNX Runtime, PyTorch or TensorRT.");
}

const char *cd_network_report_device(const cd_network_estimate_device *d,
                                     char out[CD_NETWORK_REPORT_DEVICE]) {
    if (d->guessed)
        (void)snprintf(out, CD_NETWORK_REPORT_DEVICE, "this %s (as %.120s)", d->gpu ? "GPU" : "CPU",
                       d->stands ? d->stands : d->name);
    else if (d->stands && strcmp(d->stands, d->name) != 0)
        (void)snprintf(out, CD_NETWORK_REPORT_DEVICE, "%.72s (as %.72s)", d->name, d->stands);
    else (void)snprintf(out, CD_NETWORK_REPORT_DEVICE, "%s", d->name);
    return out;
}
