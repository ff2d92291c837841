/* Comma-separated values (RFC 4180) and traces of cdmpp-replay. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/cmd/replay/main_replay.h"
#include "predictor/replay/replay.h"

static void put_text(cd_buf *b, const char *s) {
    if (!strpbrk(s, ",\"\r\n")) {
        cd_buf_puts(b, s);
        return;
    }
    cd_buf_puts(b, "\"");
    for (; *s; s++) cd_buf_put(b, *s == '"' ? "\"\"" : s, *s == '"' ? 2 : 1);
    cd_buf_puts(b, "\"");
}

/* Unknown is empty. */
static void put_real(cd_buf *b, double v) {
    cd_buf_puts(b, ",");
    if (isfinite(v)) cd_buf_put_json_real(b, v);
}

static void put_int(cd_buf *b, int64_t v) {
    cd_buf_puts(b, ",");
    if (v >= 0) cd_buf_put_int(b, v);
}

static void put_case(const cd_main_replay_case *c, cd_buf *b) {
    put_text(b, c->source->name);
    cd_buf_puts(b, ",");
    put_text(b, c->device->name);
    put_int(b, c->source->batch > 0 ? c->source->batch : -1);
    if (c->st) {
        cd_buf_puts(b, ",,,,,,,,,,,,,,,");
        put_text(b, c->err.msg);
        return;
    }
    const cd_replay *r = &c->replay;
    const double cell[] = {r->makespan_s, c->interval.low_s, c->interval.high_s, r->chain_s, r->sum_s, cd_main_replay_throughput(c)};
    for (size_t k = 0; k < sizeof cell / sizeof *cell; k++) put_real(b, cell[k]);
    put_int(b, c->use[c->fullest].peak);
    put_int(b, c->use[c->fullest].memory > 0 ? c->use[c->fullest].memory : -1);
    put_real(b, c->missing_share);
    put_real(b, c->source->graph->measured_s);
    put_real(b, c->run_s);
    put_real(b, c->before_s);
    put_real(b, cd_main_replay_price(c));
    cd_buf_puts(b, ",");
    put_text(b, isnan(c->device->price) ? "" : c->device->currency);
    cd_buf_puts(b, ",");
}

static void put_op(const cd_main_replay_case *c, uint32_t op, cd_buf *b) {
    const cd_node_cost_entry *n = cd_main_replay_case_cost(c, c->net->of[op]);
    const cd_network_node *v = cd_main_replay_node(c, op);
    const cd_replay_ran *ran = &c->replay.op[op];
    const cd_str source = cd_enum_names_at(CD_COST_SOURCES, (int)n->source);
    put_text(b, c->source->name);
    cd_buf_puts(b, ",");
    put_text(b, c->lane[c->net->net.op[op].device].name);
    put_int(b, c->source->batch > 0 ? c->source->batch : -1);
    cd_buf_puts(b, ",");
    put_text(b, v->name);
    cd_buf_puts(b, ",");
    put_text(b, v->op);
    cd_buf_putf(b, ",%u,%lld", ran->worker, (long long)v->repeat);
    const double cell[] = {ran->start_s, ran->end_s, n->seconds, n->low_s, n->high_s};
    for (size_t k = 0; k < sizeof cell / sizeof *cell; k++) put_real(b, cell[k]);
    cd_buf_putf(b, ",%.*s,", (int)source.n, source.p);
    put_text(b, n->schedule ? n->schedule : "");
    put_real(b, v->given_s);
}

void cd_main_replay_csv(const cd_main_replay_plan *p, cd_buf *b) {
    cd_buf_puts(b, p->o->ops ? "network,device,batch,name,op,worker,repeat,start_s,end_s,seconds,low_s,high_s,source,schedule,given_s\r\n"
                             : "network,device,batch,latency_s,low_s,high_s,chain_s,sum_s,items_per_s,peak_bytes,memory_bytes,missing_share,"
                               "measured_s,run_s,before_s,price_per_million,currency,error\r\n");
    for (size_t k = 0; k < p->n_item; k++) {
        const cd_main_replay_case *c = &p->item[k];
        if (!p->o->ops) {
            put_case(c, b);
            cd_buf_puts(b, "\r\n");
        }
        for (uint32_t i = 0; p->o->ops && !c->st && i < c->net->net.n_op; i++) {
            put_op(c, i, b);
            cd_buf_puts(b, "\r\n");
        }
    }
}

/* ---- traces ---- */
/* "t.json" of the second of several: "t.resnet-50.v100.4.json"; letters that paths do not like become "_". */
static void path_of(const cd_main_replay_plan *p, const cd_main_replay_case *c, unsigned number, cd_buf *b) {
    const char *path = p->o->trace, *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const size_t n = dot ? (size_t)(dot - path) : strlen(path);
    cd_buf_put(b, path, n);
    const size_t from = b->n;
    cd_buf_putf(b, ".%.80s.%s", c->source->name, c->device->name);
    if (c->source->batch) cd_buf_putf(b, ".%lld", (long long)c->source->batch);
    for (size_t k = from; k < b->n; k++)
        if (strchr("/\\ ()[]*?", b->p[k])) b->p[k] = '_';
    if (number > 1) cd_buf_putf(b, ".%u", number);
    cd_buf_puts(b, dot ? dot : "");
}

/* A path that no other estimate has: names may differ in letters that paths do not like. */
static cdmpp_status own_path(const cd_main_replay_plan *p, const cd_main_replay_case *c, cd_dict *paths, cd_buf *path, cdmpp_err *err) {
    for (unsigned k = 1;; k++) {
        const size_t before = paths->n;
        uint32_t id;
        cd_buf_clear(path);
        path_of(p, c, k, path);
        if (path->oom) return CD_FAIL(err, ENOMEM, "a path");
        CD_TRY(cd_dict_add(paths, (cd_str){path->p, path->n}, &id, err));
        if (paths->n > before) return CDMPP_OK;
    }
}

static cdmpp_status write_trace(const cd_main_replay_plan *p, const cd_main_replay_case *c, bool alone, cd_dict *paths, cdmpp_err *err) {
    cd_buf path = {0}, b = {0};
    cdmpp_status st = alone ? CDMPP_OK : own_path(p, c, paths, &path, err);
    if (!st) st = cd_replay_trace(&b, &c->net->net, &c->replay, err);
    if (!st) st = cd_file_write(alone ? p->o->trace : path.p, b.p, b.n, err);
    cd_buf_free(&path);
    cd_buf_free(&b);
    return st;
}

cdmpp_status cd_main_replay_write_trace(const cd_main_replay_plan *p, cdmpp_err *err) {
    cd_dict paths = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; !st && k < p->n_item; k++)
        if (!p->item[k].st) st = write_trace(p, &p->item[k], p->n_item == 1, &paths, err);
    cd_dict_free(&paths);
    return st;
}
