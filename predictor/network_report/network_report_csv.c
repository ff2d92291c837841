/* Estimates as comma-separated values (RFC 4180): lines end in CR LF, what is unknown is empty. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/network_report/network_report_internal.h"

static void put_text(cd_buf *b, const char *s) { cd_csv_fields_put_bare(b, s, strlen(s)); }

/* Unknown is empty. */
static void put_real(cd_buf *b, double v) {
    cd_buf_puts(b, ",");
    if (isfinite(v)) cd_buf_put_json_real(b, v);
}

static void put_int(cd_buf *b, int64_t v) {
    cd_buf_puts(b, ",");
    if (v >= 0) cd_buf_put_int(b, v);
}

/* Of a GPU it is empty. */
static void put_cores(const cd_network_report *p, const cd_network_estimate_case *c, cd_buf *b) {
    const double cores = cd_network_estimate_cores(p->e, c->device);
    put_int(b, cores > 0 ? (int64_t)cores : -1);
}

/* A case that failed has empty cells up to its error, so that every line has the same number of
 * cells. */
static void put_case(const cd_network_report *p, const cd_network_estimate_case *c, cd_buf *b) {
    put_text(b, c->source->name);
    cd_buf_puts(b, ",");
    put_text(b, c->device->label);
    put_int(b, c->source->batch > 0 ? c->source->batch : -1);
    if (c->st) {
        cd_buf_puts(b, ",,,,,,,,,,,,,,,");
        put_text(b, c->err.msg);
        cd_buf_puts(b, ",,");
        put_cores(p, c, b);
        return;
    }
    const cd_replay *r = &c->replay;
    const double cell[] = {r->makespan_s, c->interval.low_s, c->interval.high_s,
                           r->chain_s,    r->sum_s,          cd_network_estimate_throughput(c)};
    for (size_t k = 0; k < sizeof cell / sizeof *cell; k++) put_real(b, cell[k]);
    put_int(b, c->use[c->fullest].peak);
    put_int(b, c->use[c->fullest].memory > 0 ? c->use[c->fullest].memory : -1);
    put_real(b, c->missing_share);
    put_real(b, c->measured_s);
    put_real(b, c->run_s);
    put_real(b, c->before_s);
    put_real(b, cd_network_report_price(p, c));
    cd_buf_puts(b, ",");
    put_text(b, isnan(cd_network_report_hour(p, c).per_hour)
                    ? ""
                    : cd_network_report_hour(p, c).currency);
    cd_buf_puts(b, ",");
    char why[CD_NETWORK_ESTIMATE_WHY];
    cd_network_estimate_unlike(c, why);
    put_real(b, c->ops_s > 0 ? c->unlike_s / c->ops_s : 0);
    cd_buf_puts(b, ",");
    put_text(b, why);
    put_cores(p, c, b);
}

/* seconds, low_s and high_s are of one run, start_s and end_s of all `repeat` runs. */
static void put_op(const cd_network_estimate_case *c, uint32_t op, cd_buf *b) {
    const cd_node_cost_entry *n = cd_network_estimate_case_cost(c, c->net->of[op]);
    const cd_network_node *v = cd_network_estimate_node(c, op);
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
    cd_buf_puts(b, ",");
    put_text(b, n->unlike ? n->unlike : "");
}

/* A failed case has no operators, hence no line with `ops`. */
void cd_network_report_csv(const cd_network_report *p, cd_buf *b) {
    cd_buf_puts(b, p->ops ? "network,device,batch,name,op,worker,repeat,start_s,end_s,seconds,low_"
                            "s,high_s,source,schedule,given_s,reason\r\n"
                          : "network,device,batch,latency_s,low_s,high_s,chain_s,sum_s,items_per_s,"
                            "peak_bytes,memory_bytes,missing_share,"
                            "measured_s,run_s,before_s,price_per_million,currency,error,unlike_"
                            "share,unlike_reasons,cores\r\n");
    for (size_t k = 0; k < p->e->n_item; k++) {
        const cd_network_estimate_case *c = &p->e->item[k];
        if (!p->ops) {
            put_case(p, c, b);
            cd_buf_puts(b, "\r\n");
        }
        for (uint32_t i = 0; p->ops && !c->st && i < c->net->net.n_op; i++) {
            put_op(c, i, b);
            cd_buf_puts(b, "\r\n");
        }
    }
}
