/* Correlations as a table and as JSON. `+ 0.0` turns -0 into 0. */
#include <math.h>

#include "profiler/curves/curves.h"

/* A constant is what few or scattered values leave of a law: it does not say how the time rises. */
static const char *law_of(const cd_correlation_axis *a) {
    return a->strong && !a->falls && a->form != CD_PERF_CURVE_CONSTANT
               ? cd_perf_curve_form_name(a->form)
               : NULL;
}

static void put_turning(cd_buf *b, const cd_correlation_axis *a) {
    if (!a->strong) cd_buf_puts(b, "weak");
    else if (a->falls && isfinite(a->turning))
        cd_buf_putf(b, "falls, no longer from %.6g on", a->turning);
    else if (a->falls) cd_buf_puts(b, "falls");
    else if (law_of(a)) cd_buf_putf(b, "rises (%s)", law_of(a));
    else cd_buf_puts(b, "rises, by no law that these values tell");
    if (!a->strong || a->falls || !isfinite(a->turn.low)) return;
    cd_buf_puts(b, ", turns ");
    cd_perf_curve_turn_put(b, &a->turn);
}

void cd_correlation_table_print(const cd_correlation_table *t, cd_buf *b) {
    cd_buf_putf(b,
                "%s by %zu settings, %zu rows\nsetting                 Spearman  distance   "
                "partial   Pearson\n",
                t->target, t->k, t->n_row);
    for (size_t i = 0; i < t->k; i++) {
        const cd_correlation_axis *x = &t->axis[i];
        cd_buf_putf(b, "%-22s %9.3f %9.3f ", t->name[i], x->spearman + 0.0, x->distance + 0.0);
        if (isfinite(x->partial)) cd_buf_putf(b, "%9.3f", x->partial + 0.0);
        else cd_buf_puts(b, "        -");
        cd_buf_putf(b, " %9.3f  ", x->pearson + 0.0);
        put_turning(b, x);
        cd_buf_puts(b, "\n");
    }
}

void cd_correlation_table_print_json(const cd_correlation_table *t, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "target", t->target);
    cd_json_write_member_int(&w, "rows", (int64_t)t->n_row);
    cd_json_write_key(&w, "settings"), cd_json_write_open(&w, '[');
    for (size_t i = 0; i < t->k; i++) {
        const cd_correlation_axis *x = &t->axis[i];
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", t->name[i]);
        cd_json_write_member_real(&w, "spearman", x->spearman);
        cd_json_write_member_real(&w, "distance", x->distance);
        cd_json_write_member_real(&w, "partial", x->partial);
        cd_json_write_member_real(&w, "pearson", x->pearson);
        cd_json_write_member_bool(&w, "strong", x->strong);
        cd_json_write_member_bool(&w, "falls", x->strong && x->falls);
        cd_json_write_member_str(&w, "form", law_of(x));
        cd_json_write_member_real(&w, "turns_at",
                                  x->falls                                  ? x->turning
                                  : isfinite(x->turn.low) && !x->turn.rough ? x->turn.at
                                                                            : (double)NAN);
        cd_json_write_member_real(&w, "turns_low", x->turn.low);
        cd_json_write_member_real(&w, "turns_high", x->turn.high);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
