/* A packed launch as a table and as JSON: when each operator starts and ends, and how the makespan
 * stands between its bounds. */
#include <math.h>

#include "base/text/text.h"
#include "predictor/partition/games/pack.h"

/* First start and last end of an operator's tasks. */
typedef struct {
    double start_s, end_s;
} span;

static span span_of(const cd_pack_table *t, const cd_pack *p, uint32_t op) {
    span s = {(double)INFINITY, 0};
    for (uint32_t i = 0; i < p->n_run; i++) {
        if (p->run[i].op != op) continue;
        s.start_s = fmin(s.start_s, p->run[i].start_s);
        s.end_s = fmax(s.end_s, p->run[i].start_s + t->op[op].task_s);
    }
    return s;
}

/* The bound beside the makespan tells whether a better packing could exist. */
void cd_pack_print(const cd_pack_table *t, uint32_t units, const cd_pack *p, cd_buf *b) {
    cd_buf_puts(b, "operator                    tasks     starts       ends\n");
    for (uint32_t k = 0; k < t->n_op; k++) {
        const span s = span_of(t, p, k);
        cd_buf_putf(b, "%-24s %8u  ", t->op[k].name, t->op[k].tasks);
        cd_units_put_seconds_wide(b, s.start_s);
        cd_buf_puts(b, "  ");
        cd_units_put_seconds_wide(b, s.end_s);
        cd_buf_puts(b, "\n");
    }
    cd_buf_putf(b, "\npacked on %u units: ", units);
    cd_units_put_seconds(b, p->makespan_s);
    cd_buf_puts(b, "; no packing is below ");
    cd_units_put_seconds(b, fmax(p->chain_s, p->work_s / units));
    cd_buf_puts(b, "; one operator after the other: ");
    cd_units_put_seconds(b, p->serial_s);
    cd_buf_putf(b, " (%.3fx)\n", p->serial_s / p->makespan_s);
}

void cd_pack_print_json(const cd_pack_table *t, uint32_t units, const cd_pack *p, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "units", units);
    cd_json_write_member_real(&w, "makespan_s", p->makespan_s);
    cd_json_write_member_real(&w, "chain_s", p->chain_s);
    cd_json_write_member_real(&w, "work_s", p->work_s);
    cd_json_write_member_real(&w, "serial_s", p->serial_s);
    cd_json_write_key(&w, "operators"), cd_json_write_open(&w, '[');
    for (uint32_t k = 0; k < t->n_op; k++) {
        const span s = span_of(t, p, k);
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", t->op[k].name);
        cd_json_write_member_int(&w, "tasks", t->op[k].tasks);
        cd_json_write_member_real(&w, "start_s", s.start_s);
        cd_json_write_member_real(&w, "end_s", s.end_s);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
