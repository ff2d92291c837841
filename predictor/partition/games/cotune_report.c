/* Result of co-tuning as a table and as JSON. Times beside the others are evaluated again here,
 * with the threads that were chosen; where there are fewer threads than operators nothing was
 * chosen. */
#include <math.h>

#include "base/text/text.h"
#include "predictor/partition/games/cotune.h"

static double beside(const cd_cotune_table *t, const cd_cotune *c, uint32_t op) {
    return cd_cotune_table_time(op, c->threads, t->n_op, (void *)(uintptr_t)t);
}

/* The number of threads that is best for an operator alone. */
static uint32_t best_alone(const cd_cotune_table *t, uint32_t op) {
    uint32_t at = 1;
    for (uint32_t k = 2; k <= t->threads; k++)
        if (t->seconds[op][k] < t->seconds[op][at]) at = k;
    return at;
}

static void put_verdict(const cd_cotune_table *t, const cd_cotune *c, cd_buf *b) {
    const char *how = c->exact ? "every way tried" : "hill climbing";
    if (c->accepted)
        cd_buf_putf(b, "\nrun together: %.3f times as fast as one after the other (%s)\n",
                    c->sequential_s / c->together_s, how);
    else if (t->n_op <= t->threads)
        cd_buf_putf(b, "\nrun one after the other: together would take %.3f times as long (%s)\n",
                    c->together_s / c->sequential_s, how);
    else
        cd_buf_putf(b, "\nrun one after the other: %u threads are fewer than %u operators\n",
                    t->threads, t->n_op);
}

/* With fewer threads than operators nothing can run together: those columns stay empty. */
void cd_cotune_print(const cd_cotune_table *t, const cd_cotune *c, cd_buf *b) {
    const bool fits = t->n_op <= t->threads;
    cd_buf_puts(
        b, "operator                 alone: threads     seconds  together: threads    seconds\n");
    for (uint32_t k = 0; k < t->n_op; k++) {
        const uint32_t alone = best_alone(t, k);
        cd_buf_putf(b, "%-24s %14u   ", t->name[k], alone);
        cd_units_put_seconds_wide(b, t->seconds[k][alone]);
        if (fits) {
            cd_buf_putf(b, "  %17u  ", c->threads[k]);
            cd_units_put_seconds_wide(b, beside(t, c, k));
        }
        cd_buf_puts(b, "\n");
    }
    cd_buf_puts(b, "\none after the other: ");
    cd_units_put_seconds(b, c->sequential_s);
    if (fits) {
        cd_buf_puts(b, "; together with equal shares: ");
        cd_units_put_seconds(b, c->equal_s);
        cd_buf_puts(b, "; tuned: ");
        cd_units_put_seconds(b, c->together_s);
    }
    put_verdict(t, c, b);
}

void cd_cotune_put_members(const cd_cotune_table *t, const cd_cotune *c, cd_json_writer *w) {
    const bool fits = t->n_op <= t->threads;
    cd_json_write_member_int(w, "threads", t->threads);
    cd_json_write_key(w, "operators"), cd_json_write_open(w, '[');
    for (uint32_t k = 0; k < t->n_op; k++) {
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", t->name[k]);
        cd_json_write_member_int(w, "threads_alone", best_alone(t, k));
        cd_json_write_member_real(w, "alone_s", t->seconds[k][best_alone(t, k)]);
        cd_json_write_member_real(w, "threads", fits ? c->threads[k] : (double)NAN);
        cd_json_write_member_real(w, "together_s", fits ? beside(t, c, k) : (double)NAN);
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
    cd_json_write_member_real(w, "together_s", c->together_s);
    cd_json_write_member_real(w, "sequential_s", c->sequential_s);
    cd_json_write_member_real(w, "equal_s", c->equal_s);
    cd_json_write_member_bool(w, "accepted", c->accepted);
    cd_json_write_member_bool(w, "exact", c->exact);
}

void cd_cotune_print_json(const cd_cotune_table *t, const cd_cotune *c, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_cotune_put_members(t, c, &w);
    cd_json_write_close(&w, '}');
}
