/* A chart of links: seconds against bytes, from 64 B to 256 MiB, both axes logarithmic, because
 * latency and bandwidth lie decades apart. */
#include <math.h>
#include <stdio.h>

#include "base/draw/draw.h"
#include "base/text/text.h"
#include "profiler/machine/machine_report.h"

/* powers of 2; points of each */
enum { FIRST = 6, LAST = 28, EACH = 4, POINTS = (LAST - FIRST) * EACH + 1 };

static void name_bytes(double v, char *buf, size_t n) {
    cd_buf b = {0};
    cd_units_put_bytes(&b, v);
    snprintf(buf, n, "%s", b.p ? b.p : "");
    cd_buf_free(&b);
}

static void name_us(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); }

cdmpp_status cd_link_draw(const cd_link_table *l, const char *path, cdmpp_err *err) {
    double x[POINTS], y[POINTS], lo = HUGE_VAL, hi = 0;
    for (int i = 0; i < POINTS; i++) x[i] = exp2(FIRST + (double)i / EACH);
    for (size_t k = 0; k < l->n; k++) {
        lo = fmin(lo, 1e6 * cd_link_cost(&l->link[k], (int64_t)x[0]));
        hi = fmax(hi, 1e6 * cd_link_cost(&l->link[k], (int64_t)x[POINTS - 1]));
    }
    if (!(lo > 0 && hi > lo)) return CD_FAIL(err, ENODATA, "--svg: no link to draw");
    cd_chart c = {.p = {.x = {x[0], x[POINTS - 1], true}, .y = {lo, hi, true}}};
    cd_chart_begin(&c, "Links", "bytes", "microseconds", name_bytes, name_us);
    for (size_t k = 0; k < l->n; k++) {
        char text[200];
        for (int i = 0; i < POINTS; i++) y[i] = 1e6 * cd_link_cost(&l->link[k], (int64_t)x[i]);
        cd_plot_line(&c.p, x, y, POINTS, cd_chart_colour(k));
        snprintf(text, sizeof text, "%s > %s, %s", l->link[k].from, l->link[k].to, l->link[k].how);
        cd_chart_legend(&c, k, text);
    }
    return cd_chart_write(&c, path, err);
}
