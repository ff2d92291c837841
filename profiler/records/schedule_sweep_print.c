/* Prints a measured sweep: CSV, JSON, a table for people, and a plot (SVG) with one bar a
 * variant. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
#include "profiler/records/schedule_sweep.h"

static cdmpp_status done(const cd_buf *b, cdmpp_err *err) {
    return b->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
}

cdmpp_status cd_schedule_sweep_csv(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err) {
    cd_buf_puts(b, "factor,value,median_s,ci,ratio,error_no,ratio_low,ratio_high,disturbed\n");
    for (size_t i = 0; i < s->n; i++) {
        const cd_schedule_sweep_row *r = &s->row[i];
        cd_buf_putf(b, "%s,", cd_schedule_sweep_factor(r->v->factor));
        cd_csv_fields_put_bare(b, r->v->value, strlen(r->v->value));
        cd_buf_puts(b, ",");
        if (r->out.error_no) cd_buf_putf(b, ",,,%d,,,\n", r->out.error_no);
        else cd_buf_putf(b, "%.9g,%.4g,%.6g,0,", r->out.time.median_s, r->out.time.ci, r->ratio);
        if (r->out.error_no) continue;
        if (isfinite(r->ratio_low))
            cd_buf_putf(b, "%.6g,%.6g,%d\n", r->ratio_low, r->ratio_high, r->disturbed);
        else cd_buf_putf(b, ",,%d\n", r->disturbed);
    }
    return done(b, err);
}

cdmpp_status cd_schedule_sweep_json(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err) {
    const cd_str key = s->base.workload_key;
    cd_buf_puts(b, "{\"workload_key\":");
    cd_buf_put_json_str(b, key.p, key.n < 255 ? key.n : 255);
    cd_buf_putf(b,
                ",\"base\":{\"measurements\":%u,\"least_s\":%.9g,\"most_s\":%.9g},\"variants\":[",
                s->measured.n, s->measured.low_s, s->measured.high_s);
    for (size_t i = 0; i < s->n; i++) {
        const cd_schedule_sweep_row *r = &s->row[i];
        cd_buf_putf(b, "%s{\"factor\":\"%s\",\"value\":", i ? "," : "",
                    cd_schedule_sweep_factor(r->v->factor));
        cd_buf_put_json_str(b, r->v->value, strlen(r->v->value));
        cd_buf_putf(b, ",\"error_no\":%d", r->out.error_no);
        if (!r->out.error_no) {
            cd_buf_putf(b, ",\"median_s\":%.9g,\"ci\":%.4g,\"ratio\":%.6g,\"ratio_low\":",
                        r->out.time.median_s, r->out.time.ci, r->ratio);
            cd_buf_put_json_real(b, r->ratio_low);
            cd_buf_puts(b, ",\"ratio_high\":");
            cd_buf_put_json_real(b, r->ratio_high);
            cd_buf_putf(b, ",\"disturbed\":%s", r->disturbed ? "true" : "false");
        }
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "]}");
    return done(b, err);
}

/* Of each factor the best and the worst variant, by the ratio. */
cdmpp_status cd_schedule_sweep_text(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err) {
    if (s->measured.n)
        cd_buf_putf(b, "base %.4f to %.4f ms, measured %u times\n", s->measured.low_s * 1e3,
                    s->measured.high_s * 1e3, s->measured.n);
    cd_buf_puts(b, "factor      variants  failed  best           worst\n");
    for (int f = 0; f < CD_VARY_COUNT; f++) {
        const cd_schedule_sweep_row *best = NULL, *worst = NULL;
        size_t all = 0, failed = 0;
        for (size_t i = 0; i < s->n; i++) {
            if (s->row[i].v->factor != f) continue;
            all++;
            failed += s->row[i].out.error_no != 0;
            if (s->row[i].ratio > 0 && (!best || s->row[i].ratio < best->ratio)) best = &s->row[i];
            if (s->row[i].ratio > 0 && (!worst || s->row[i].ratio > worst->ratio))
                worst = &s->row[i];
        }
        if (!all) continue;
        cd_buf_putf(b, "%-10s  %8zu  %6zu", cd_schedule_sweep_factor(f), all, failed);
        if (best)
            cd_buf_putf(b, "  %.3f%s %s   %.3f%s %s", best->ratio, best->disturbed ? "?" : "",
                        best->v->value, worst->ratio, worst->disturbed ? "?" : "", worst->v->value);
        cd_buf_puts(b, "\n");
    }
    return done(b, err);
}

/* ---- the plot ---- */

enum { ROW = 16, LEFT = 220, WIDE = 420, TOP = 40, DECADES = 2 };

/* Ratio 1 in the middle, DECADES powers of ten from edge to edge. */
static double place(double ratio) {
    const double x = LEFT + WIDE / 2.0 + log10(ratio) * WIDE / DECADES;
    return x < LEFT ? LEFT : x > LEFT + WIDE ? LEFT + WIDE : x;
}

static void put_bar(cd_buf *b, const cd_schedule_sweep_row *r, int y) {
    const double x = r->ratio > 0 ? place(r->ratio) : place(1), one = place(1);
    cd_buf_putf(b, "<text x='%d' y='%d' text-anchor='end'>%s ", LEFT - 6, y + 11,
                cd_schedule_sweep_factor(r->v->factor));
    cd_escape_xml(b, cd_str_of(r->v->value));
    cd_buf_puts(b, "</text>");
    if (r->ratio > 0)
        cd_buf_putf(b,
                    "<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s'/><text x='%d' "
                    "y='%d'>%.2f%s</text>\n",
                    x < one ? x : one, y + 2, fabs(x - one) + 1, ROW - 4,
                    r->ratio < 1 ? "#2a7" : "#c63", LEFT + WIDE + 6, y + 11, r->ratio,
                    r->disturbed ? "?" : "");
    else
        cd_buf_putf(b, "<text x='%d' y='%d'>error %d</text>\n", LEFT + WIDE + 6, y + 11,
                    r->out.error_no);
}

cdmpp_status cd_schedule_sweep_svg(cd_buf *b, const cd_schedule_sweep *s, cdmpp_err *err) {
    const int height = TOP + (int)s->n * ROW + 10;
    cd_buf_putf(b,
                "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                "font-family='sans-serif' font-size='11'>\n",
                LEFT + WIDE + 80, height);
    cd_buf_puts(b, "<rect width='100%' height='100%' fill='white'/>");
    cd_buf_putf(b,
                "<text x='%d' y='16' text-anchor='middle'>time over the base's, log scale</text>\n",
                LEFT + WIDE / 2);
    static const double tick[] = {0.1, 0.2, 0.5, 1, 2, 5, 10};
    for (size_t k = 0; k < sizeof tick / sizeof *tick; k++)
        cd_buf_putf(b,
                    "<line x1='%.1f' x2='%.1f' y1='%d' y2='%d' stroke='#ccc'/><text x='%.1f' "
                    "y='%d' text-anchor='middle'>%g</text>\n",
                    place(tick[k]), place(tick[k]), TOP, height - 8, place(tick[k]), TOP - 4,
                    tick[k]);
    for (size_t i = 1; i < s->n; i++) put_bar(b, &s->row[i], TOP + (int)(i - 1) * ROW);
    cd_buf_puts(b, "</svg>\n");
    return done(b, err);
}
