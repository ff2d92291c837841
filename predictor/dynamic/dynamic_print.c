/* Asked sizes as text and as JSON. */
#include "predictor/dynamic/dynamic_internal.h"

static void put_points(cd_buf *b, const cd_dynamic *d) {
    cd_buf_putf(b, "%s over %s: programs at", d->net[0].graph->name, d->o->sizes->over);
    for (size_t k = 0; k < d->n; k++) cd_buf_putf(b, " %lld", (long long)d->net[k].size);
    cd_buf_putf(b, ", %.1f MiB in memory\n", (double)cd_dynamic_bytes(d) / (1 << 20));
    if (d->only_points) cd_buf_putf(b, "only these sizes are served: %s\n", d->only_points);
}

void cd_dynamic_text(cd_buf *b, const cd_dynamic *d, const cd_dynamic_result *r) {
    put_points(b, d);
    cd_buf_putf(b, "%8s %8s %-6s  %9s  %9s  %9s  %9s  %9s %8s  %-18s %s\n", "size", "program",
                "how", "choosing", "copying", "pass", "call", "exact", "loss", "quartiles",
                "difference");
    for (size_t k = 0; k < r->n; k++) {
        const cd_dynamic_row *x = &r->row[k];
        if (!x->point) {
            cd_buf_putf(b, "%8lld %8s %s\n", (long long)x->size, "none", x->err.msg);
            continue;
        }
        const double of[] = {x->time.choose_s, x->time.copy_s, x->time.pass_s, x->call_s,
                             x->exact_s};
        cd_buf_putf(b, "%8lld %8lld %-6s", (long long)x->size, (long long)x->point,
                    x->point == x->size ? "exact" : "padded");
        for (size_t i = 0; i < sizeof of / sizeof *of; i++)
            cd_buf_puts(b, "  "), cd_units_put_seconds_wide(b, of[i]);
        cd_buf_putf(b, " %6.1f %%", 100 * x->loss);
        if (x->point == x->size) cd_buf_puts(b, "\n");
        else
            cd_buf_putf(b, "  %5.1f .. %5.1f %%   %.1e\n", 100 * x->low, 100 * x->high,
                        x->difference);
    }
    cd_buf_putf(b, "others leave %.0f %% of the processor\n", 100 * r->left);
}

static void put_row(cd_json_writer *w, const cd_dynamic_row *x) {
    cd_json_write_open(w, '{');
    cd_json_write_member_int(w, "size", x->size);
    if (x->point) {
        cd_json_write_member_int(w, "program", x->point);
        cd_json_write_member_str(w, "how", x->point == x->size ? "exact" : "padded");
        cd_json_write_member_real(w, "choose_s", x->time.choose_s);
        cd_json_write_member_real(w, "copy_s", x->time.copy_s);
        cd_json_write_member_real(w, "pass_s", x->time.pass_s);
        cd_json_write_member_real(w, "call_s", x->call_s);
        cd_json_write_member_real(w, "exact_call_s", x->exact_s);
        cd_json_write_member_real(w, "loss", x->loss);
        cd_json_write_member_real(w, "loss_low", x->low);
        cd_json_write_member_real(w, "loss_high", x->high);
        cd_json_write_member_real(w, "difference", x->difference);
    }
    if (x->st) cd_json_write_member_str(w, "error", x->err.msg);
    cd_json_write_close(w, '}');
}

void cd_dynamic_json(cd_buf *b, const cd_dynamic *d, const cd_dynamic_result *r) {
    cd_json_writer w = {.out = b, .colon = ":", .sep = ","};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "network", d->net[0].graph->name);
    cd_json_write_member_str(&w, "over", d->o->sizes->over);
    cd_json_write_key(&w, "programs"), cd_json_write_open(&w, '[');
    for (size_t k = 0; k < d->n; k++) cd_json_write_int(&w, d->net[k].size);
    cd_json_write_close(&w, ']');
    cd_json_write_member_int(&w, "bytes", cd_dynamic_bytes(d));
    if (d->only_points) cd_json_write_member_str(&w, "only_programs", d->only_points);
    cd_json_write_member_real(&w, "left", r->left);
    cd_json_write_key(&w, "sizes"), cd_json_write_open(&w, '[');
    for (size_t k = 0; k < r->n; k++) put_row(&w, &r->row[k]);
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
