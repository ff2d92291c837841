/* A comparison as text and as JSON. */
#include <math.h>
#include <string.h>

#include "predictor/quantize/quantize.h"

enum { NAMES = 3 };

static const char *name_of(const cd_quantize_result *r, const cd_quantize_layer *l) {
    const cd_graph_node *n = l->node == CD_GRAPH_NONE ? NULL : &r->graph->node[l->node];
    return !n ? "" : n->name && *n->name ? n->name : n->op;
}

/* Layers in float for one reason: how many, their part of the operations; the reason is that of the
 * first. */
typedef struct {
    uint32_t n;
    double flop;
} share;

static share of_reason(const cd_quantize_form *f, uint32_t first) {
    share s = {0};
    for (uint32_t k = 0; k < f->n_layer; k++)
        if (f->layer[k].why && !strcmp(f->layer[k].why, f->layer[first].why))
            s.n++, s.flop += f->layer[k].flop;
    return s;
}

static bool is_first(const cd_quantize_form *f, uint32_t k) {
    if (!f->layer[k].why) return false;
    for (uint32_t j = 0; j < k; j++)
        if (f->layer[j].why && !strcmp(f->layer[j].why, f->layer[k].why)) return false;
    return true;
}

static double part(double x, double of) { return of > 0 ? x / of : 0; }

static void put_reasons(cd_buf *b, const cd_quantize_result *r, const cd_quantize_form *f) {
    for (uint32_t k = 0; k < f->n_layer; k++) {
        if (!is_first(f, k)) continue;
        const share s = of_reason(f, k);
        uint32_t named = 0;
        cd_buf_putf(b, "in float (%s): %u layers, %.1f %% of the operations: %s (", f->name, s.n,
                    100 * part(s.flop, f->flop), f->layer[k].why);
        for (uint32_t j = k; j < f->n_layer && named < NAMES; j++)
            if (f->layer[j].why && !strcmp(f->layer[j].why, f->layer[k].why))
                cd_buf_putf(b, "%s%s", named++ ? ", " : "", name_of(r, &f->layer[j]));
        cd_buf_puts(b, s.n > named ? ", ...)\n" : ")\n");
    }
}

void cd_quantize_text(cd_buf *b, const cd_quantize_result *r) {
    const bool ran = !isnan(r->float_s);
    cd_buf_putf(b,
                "%s: %u inputs compared, ranges of %u tensors from %u others; %u rows; %u classes, "
                "%u centred\n",
                r->graph->name, r->inputs, r->observed, r->calibrate, r->rows, r->classes,
                r->classes_centred);
    cd_buf_putf(b, "%-10s %9s %9s %9s %9s %10s %10s%s\n", "form", "layers", "ops in 8", "top-1",
                "centred", "error rms", "error most", ran ? "       time  float/int8" : "");
    if (ran)
        cd_buf_putf(b, "%-10s %9s %9s %9s %9s %10s %10s %8.3f ms\n", "float", "", "", "", "", "",
                    "", 1e3 * r->float_s);
    for (uint32_t k = 0; k < r->n_form; k++) {
        const cd_quantize_form *f = &r->form[k];
        cd_buf_putf(b, "%-10s %4u/%-4u %7.1f %% %7.2f %% %7.2f %% %10.2e %10.2e", f->name,
                    f->n_int8, f->n_layer, 100 * part(f->flop_int8, f->flop),
                    100 * part(f->agree, r->rows), 100 * part(f->agree_centred, r->rows),
                    f->error_rms, f->error_most);
        if (ran)
            cd_buf_putf(b, " %8.3f ms  %.2f (%.2f .. %.2f)", 1e3 * f->pass_s, f->ratio, f->low,
                        f->high);
        cd_buf_puts(b, "\n");
    }
    for (uint32_t k = 0; k < r->n_form; k++) put_reasons(b, r, &r->form[k]);
    if (ran)
        cd_buf_putf(b, "%u turns; others leave %.0f %% of the processor\n", r->turns,
                    100 * r->left);
}

static void put_form(cd_json_writer w, const cd_quantize_result *r, const cd_quantize_form *f) {
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "form", f->name);
    cd_json_write_member_int(&w, "layers", f->n_layer);
    cd_json_write_member_int(&w, "int8_layers", f->n_int8);
    cd_json_write_member_real(&w, "int8_flop_share", part(f->flop_int8, f->flop));
    cd_json_write_member_real(&w, "top1", part(f->agree, r->rows));
    cd_json_write_member_real(&w, "top1_centred", part(f->agree_centred, r->rows));
    cd_json_write_member_real(&w, "error_rms", f->error_rms);
    cd_json_write_member_real(&w, "error_most", f->error_most);
    if (!isnan(f->pass_s)) {
        cd_json_write_member_real(&w, "pass_s", f->pass_s);
        cd_json_write_member_real(&w, "float_over_int8", f->ratio);
        cd_json_write_member_real(&w, "float_over_int8_low", f->low);
        cd_json_write_member_real(&w, "float_over_int8_high", f->high);
    }
    cd_json_write_key(&w, "in_float"), cd_json_write_open(&w, '[');
    for (uint32_t k = 0; k < f->n_layer; k++) {
        if (!f->layer[k].why) continue;
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "node", name_of(r, &f->layer[k]));
        cd_json_write_member_str(&w, "reason", f->layer[k].why);
        cd_json_write_member_real(&w, "flop", f->layer[k].flop);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}

void cd_quantize_json(cd_buf *b, const cd_quantize_result *r) {
    cd_json_writer w = {.out = b, .colon = ":", .sep = ","};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "network", r->graph->name);
    cd_json_write_member_int(&w, "inputs", r->inputs);
    cd_json_write_member_int(&w, "calibration_inputs", r->calibrate);
    cd_json_write_member_int(&w, "ranges", r->observed);
    cd_json_write_member_int(&w, "rows", r->rows);
    cd_json_write_member_int(&w, "classes", r->classes);
    cd_json_write_member_int(&w, "classes_centred", r->classes_centred);
    if (!isnan(r->float_s)) {
        cd_json_write_member_real(&w, "float_s", r->float_s);
        cd_json_write_member_int(&w, "turns", r->turns);
        cd_json_write_member_real(&w, "left", r->left);
    }
    cd_json_write_key(&w, "forms"), cd_json_write_open(&w, '[');
    for (uint32_t k = 0; k < r->n_form; k++) put_form(w, r, &r->form[k]);
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
