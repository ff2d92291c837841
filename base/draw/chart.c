/* One chart as an SVG file. It has its own style sheet, because a file of its own has no page to
 * take one from. */
#include <stdio.h>

#include "base/draw/draw.h"
#include "base/io/io.h"
#include "base/text/text.h"

enum { WIDE = 720, HIGH = 440, N_COLOUR = 8 };

/* Colours after Okabe and Ito. */
static const char STYLE[] =
    "<style>text{font:12px "
    "sans-serif;fill:#56616c}.lab{fill:#1a1f24}path{fill:none}.axis{stroke:#56616c}.grid{stroke:#"
    "dde2e7}"
    ".m{stroke-width:2}.d{stroke-width:6;stroke-linecap:round}.q{stroke-width:1;stroke-dasharray:2 "
    "3}"
    ".c0{stroke:#0067ab}.c1{stroke:#c2570c}.c2{stroke:#00815d}.c3{stroke:#a9518a}.c4{stroke:#"
    "9a6a00}.c5{stroke:#3c8dbc}.c6{stroke:#1a1f24}.c7{stroke:#7b8794}"
    "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";

void cd_chart_begin(cd_chart *c, const char *title, const char *x_title, const char *y_title,
                    cd_plot_name *x_name, cd_plot_name *y_name) {
    const cd_axis x = c->p.x, y = c->p.y;
    *c = (cd_chart){.p = {.w = WIDE,
                          .h = HIGH,
                          .left = 70,
                          .right = 14,
                          .top = 14,
                          .bottom = 42,
                          .x = x,
                          .y = y}};
    c->p.out = &c->b;
    cd_buf_putf(&c->b,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 "
                "0 %d %d\">\n",
                WIDE, HIGH, WIDE, HIGH);
    cd_buf_puts(&c->b, STYLE);
    cd_plot_begin(&c->p, "chart", title, y_title);
    cd_plot_frame(&c->p, x_title, y_title);
    cd_plot_ticks_x(&c->p, x_name);
    cd_plot_ticks_y(&c->p, y_name);
}

const char *cd_chart_colour(size_t k) {
    static const char *const name[] = {"m c0", "m c1", "m c2", "m c3",
                                       "m c4", "m c5", "m c6", "m c7"};
    return name[k % N_COLOUR];
}

const char *cd_chart_dots(size_t k) {
    static const char *const name[] = {"d c0", "d c1", "d c2", "d c3",
                                       "d c4", "d c5", "d c6", "d c7"};
    return name[k % N_COLOUR];
}

static void legend(cd_chart *c, const char *colour, const char *mark, const char *text) {
    const double x = c->p.left + 14, y = c->p.top + 18 + 15 * (double)c->n_legend++;
    cd_buf_putf(&c->b,
                "<path class=\"%s\" d=\"M%.1f %.1f%s\"/><text class=\"lab\" x=\"%.1f\" y=\"%.1f\">",
                colour, x, y - 4, mark, x + 24, y);
    cd_escape_xml(&c->b, cd_str_of(text));
    cd_buf_puts(&c->b, "</text>\n");
}

void cd_chart_legend(cd_chart *c, size_t k, const char *text) {
    legend(c, cd_chart_colour(k), "h18", text);
}

void cd_chart_legend_dot(cd_chart *c, size_t k, const char *text) {
    legend(c, cd_chart_dots(k), "m9 0h0", text);
}

cdmpp_status cd_chart_write(cd_chart *c, const char *path, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    cd_plot_end(&c->p);
    cd_buf_puts(&c->b, "</svg>\n");
    if (c->b.oom) st = CD_FAIL(err, ENOMEM, "drawing");
    else st = cd_file_write(path, c->b.p, c->b.n, err);
    cd_buf_free(&c->b);
    return st;
}
