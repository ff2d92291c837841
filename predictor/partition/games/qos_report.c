/* What a simulation of queries found, as a table and as JSON. */
#include <math.h>

#include "base/text/text.h"
#include "predictor/partition/games/qos.h"

static const char *const policy[] = {"fifo", "edf", "upper", "bound"};

void cd_qos_print(const cd_qos_file *f, const cd_qos_options *o, const cd_qos_result *result,
                  cd_buf *b) {
    cd_buf_puts(b,
                "query                      weight   predicted        low       high   deadline\n");
    for (uint32_t k = 0; k < f->n; k++) {
        const cd_qos_kind *q = &f->kind[k];
        const double t[] = {q->seconds, q->low_s, q->high_s, q->deadline_s};
        cd_buf_putf(b, "%-24s %8.4g", q->name, q->weight);
        for (int i = 0; i < 4; i++) {
            cd_buf_puts(b, i ? " " : "  ");
            cd_units_put_seconds_wide(b, t[i]);
        }
        cd_buf_puts(b, "\n");
    }
    cd_buf_putf(b, "\n%u runs of %u queries on %u places, ", o->runs, o->queries, o->places);
    if (o->arrival) cd_buf_puts(b, "the same arrivals in each");
    else cd_buf_putf(b, "load %g", o->load);
    cd_buf_putf(b, "%s\n\n", f->exact ? "; no intervals: times are taken as exact" : "");
    cd_buf_puts(b, "policy  admitted        late  late runs   in time/s       wait        p50      "
                   "  p95        p99   busy\n");
    for (int p = 0; p < CD_QOS_N_POLICY; p++) {
        const cd_qos_result *r = &result[p];
        const double t[] = {r->mean_wait_s, r->p50_s, r->p95_s, r->p99_s};
        cd_buf_putf(b, "%-6s  %6.2f %%  %10llu %10u  %10.4g", policy[p],
                    100.0 * (double)r->admitted / (double)r->arrived, (unsigned long long)r->late,
                    r->late_runs, r->goodput);
        for (int i = 0; i < 4; i++) {
            cd_buf_puts(b, " ");
            cd_units_put_seconds_wide(b, t[i]);
        }
        cd_buf_putf(b, " %4.0f %%\n", 100 * r->busy);
    }
}

static void put_kinds(const cd_qos_file *f, cd_json_writer *w) {
    cd_json_write_key(w, "queries");
    cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < f->n; k++) {
        const cd_qos_kind *q = &f->kind[k];
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", q->name);
        cd_json_write_member_real(w, "weight", q->weight);
        cd_json_write_member_real(w, "seconds", q->seconds);
        cd_json_write_member_real(w, "low_s", q->low_s);
        cd_json_write_member_real(w, "high_s", q->high_s);
        cd_json_write_member_real(w, "deadline_s", q->deadline_s);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

static void put_policy(const cd_qos_result *r, const char *name, cd_json_writer *w) {
    cd_json_write_open(w, '{');
    cd_json_write_member_str(w, "policy", name);
    cd_json_write_member_int(w, "arrived", (int64_t)r->arrived);
    cd_json_write_member_int(w, "admitted", (int64_t)r->admitted);
    cd_json_write_member_int(w, "late", (int64_t)r->late);
    cd_json_write_member_int(w, "late_runs", r->late_runs);
    cd_json_write_member_real(w, "in_time_per_s", r->goodput);
    cd_json_write_member_real(w, "mean_wait_s", r->mean_wait_s);
    cd_json_write_member_real(w, "p50_s", r->p50_s);
    cd_json_write_member_real(w, "p95_s", r->p95_s);
    cd_json_write_member_real(w, "p99_s", r->p99_s);
    cd_json_write_member_real(w, "busy", r->busy);
    cd_json_write_close(w, '}');
}

void cd_qos_print_json(const cd_qos_file *f, const cd_qos_options *o, const cd_qos_result *result,
                       cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "places", o->places);
    cd_json_write_member_real(&w, "load", o->arrival ? (double)NAN : o->load);
    cd_json_write_member_int(&w, "runs", o->runs);
    cd_json_write_member_int(&w, "queries_per_run", o->queries);
    cd_json_write_member_real(&w, "level", o->level);
    cd_json_write_member_real(&w, "risk", o->risk);
    cd_json_write_member_bool(&w, "exact", f->exact);
    put_kinds(f, &w);
    cd_json_write_key(&w, "policies");
    cd_json_write_open(&w, '[');
    for (int p = 0; p < CD_QOS_N_POLICY; p++) put_policy(&result[p], policy[p], &w);
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
