/* Draws a replay: the ratio of best known to best found over trials, and beside it over simulated
 * seconds. */
#include <math.h>
#include <stdio.h>

#include "learner/report/report.h"
#include "predictor/tune/report/report.h"

enum { POINTS = 200, WIDE = 560, HIGH = 400, N_COLOUR = 8 };

/* Colours after Okabe and Ito. */
static const char STYLE[] =
    "<style>text{font:12px "
    "sans-serif;fill:#56616c}.lab{fill:#1a1f24}path{fill:none}.axis{stroke:#56616c}.grid{stroke:#"
    "dde2e7}"
    ".m{stroke-width:2}.q{stroke-width:1;stroke-dasharray:2 3}"
    ".c0{stroke:#0067ab}.c1{stroke:#c2570c}.c2{stroke:#00815d}.c3{stroke:#a9518a}.c4{stroke:#"
    "9a6a00}.c5{stroke:#3c8dbc}.c6{stroke:#1a1f24}.c7{stroke:#7b8794}"
    "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";

/* Where the axis of ratios begins: below most of the lower quartiles, at a multiple of 10 %. */
static double floor_of(const cd_tune_replay_curve *c, size_t n) {
    double low = 1;
    for (size_t t = 0; t < n; t++)
        for (size_t k = c[t].n / 10; k < c[t].n; k++) low = fmin(low, c[t].low[k]);
    return fmin(90, 10 * floor(10 * low));
}

static void percent(double v, char *buf, size_t n) { snprintf(buf, n, "%g", v + 0.0); } /* no -0 */

static void legend(const cd_plot *p, const cd_tune_replay_shown *s) {
    char cls[16];
    for (size_t t = 0; t < s->r->n_tuner; t++) {
        const double y = p->h - p->bottom - 14 * (double)(s->r->n_tuner - t),
                     x = p->w - p->right - 110;
        snprintf(cls, sizeof cls, "m c%zu", t % N_COLOUR);
        cd_buf_putf(
            p->out,
            "<path class=\"%s\" d=\"M%.1f %.1fh18\"/><text class=\"lab\" x=\"%.1f\" y=\"%.1f\">",
            cls, x, y - 4, x + 24, y);
        cd_escape_xml(p->out, cd_str_of(s->spec->tuner[t]->name));
        cd_buf_puts(p->out, "</text>\n");
    }
}

/* One panel. Curves come as ratios and are scaled to percent in place. A range of x of one point is
 * widened, so that the axis has a length. */
static void draw(cd_buf *b, const cd_tune_replay_shown *s, const cd_tune_replay_curve *c,
                 const char *id, const char *x_title) {
    const size_t n = s->r->n_tuner;
    double lo = HUGE_VAL, hi = 0;
    for (size_t t = 0; t < n; t++) {
        lo = fmin(lo, c[t].x[0]);
        hi = fmax(hi, c[t].x[c[t].n - 1]);
    }
    cd_plot p = {.out = b, .w = WIDE, .h = HIGH, .left = 52, .right = 14, .top = 14, .bottom = 42};
    p.x = (cd_axis){lo, hi > lo ? hi : 2 * lo, true};
    p.y = (cd_axis){floor_of(c, n), 100, false};
    cd_plot_begin(&p, id, x_title,
                  "Best known over best found seconds, median and quartiles over tasks and seeds");
    cd_plot_frame(&p, x_title, "best known / best found, %");
    cd_plot_ticks_x(&p, percent);
    cd_plot_ticks_y(&p, percent);
    for (size_t t = 0; t < n; t++) {
        char cls[16];
        double *const part[] = {c[t].low, c[t].median, c[t].high};
        for (int q = 0; q < 3; q++) {
            for (size_t k = 0; k < c[t].n; k++) part[q][k] *= 100;
            snprintf(cls, sizeof cls, "%c c%zu", q == 1 ? 'm' : 'q', t % N_COLOUR);
            cd_plot_line(&p, c[t].x, part[q], c[t].n, cls);
        }
    }
    legend(&p, s);
    cd_plot_end(&p);
}

/* k = 0: over trials; 1: over simulated seconds. */
static cdmpp_status panel(cd_buf *b, const cd_tune_replay_shown *s, int k, cdmpp_err *err) {
    const size_t n = s->r->n_tuner;
    cd_tune_replay_curve *c = cd_mem_zalloc(n + 1, sizeof *c);
    cdmpp_status st = c ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu curves", n);
    for (size_t t = 0; !st && t < n; t++) {
        if (k) st = cd_tune_replay_by_seconds(s->l, s->r, t, POINTS, &c[t], err);
        else st = cd_tune_replay_by_trials(s->l, s->r, t, s->spec->trials, &c[t], err);
    }
    if (!st) {
        cd_buf_putf(b, "<svg x=\"%d\" y=\"0\" width=\"%d\" height=\"%d\">\n", k * WIDE, WIDE, HIGH);
        draw(b, s, c, k ? "seconds" : "trials",
             k ? "simulated seconds, measuring and searching" : "trials");
        cd_buf_puts(b, "</svg>\n");
    }
    for (size_t t = 0; c && t < n; t++) cd_tune_replay_curve_free(&c[t]);
    cd_mem_free(c);
    return st;
}

cdmpp_status cd_tune_replay_svg(cd_buf *b, const cd_tune_replay_shown *s, cdmpp_err *err) {
    cd_buf_putf(b,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 "
                "0 %d %d\">\n",
                2 * WIDE, HIGH, 2 * WIDE, HIGH);
    cd_buf_puts(b, STYLE);
    CD_TRY(panel(b, s, 0, err));
    CD_TRY(panel(b, s, 1, err));
    cd_buf_puts(b, "</svg>\n");
    return CDMPP_OK;
}
