/* Charts as SVG elements: scales, frames, ticks, lines, marks. Coordinates have one decimal, which
 * keeps pages with thousands of dots small. */
#include <math.h>
#include <stdio.h>

#include "base/draw/draw.h"
#include "base/io/io.h"
#include "base/text/text.h"

void cd_plot_begin(const cd_plot *p, const char *id, const char *title, const char *desc) {
    cd_buf_putf(p->out,
                "<svg id=\"%s\" class=\"plot\" viewBox=\"0 0 %g %g\" role=\"img\" "
                "aria-labelledby=\"%s-t %s-d\"><title id=\"%s-t\">",
                id, p->w, p->h, id, id, id);
    cd_escape_xml(p->out, cd_str_of(title));
    cd_buf_putf(p->out, "</title><desc id=\"%s-d\">", id);
    cd_escape_xml(p->out, cd_str_of(desc));
    cd_buf_puts(p->out, "</desc>\n");
}

void cd_plot_end(const cd_plot *p) { cd_buf_puts(p->out, "</svg>\n"); }

/* 0..1 along an axis, kept inside. */
static double along(const cd_axis *a, double v) {
    const double t = a->log ? log(v / a->lo) / log(a->hi / a->lo) : (v - a->lo) / (a->hi - a->lo);
    return t < 0 ? 0 : t > 1 ? 1 : t;
}

double cd_plot_x(const cd_plot *p, double v) {
    return p->left + along(&p->x, v) * (p->w - p->left - p->right);
}
double cd_plot_y(const cd_plot *p, double v) {
    return p->h - p->bottom - along(&p->y, v) * (p->h - p->top - p->bottom);
}

static bool shown(const cd_axis *a, double v) {
    const double slack = a->log ? 1e-9 : 1e-9 * (a->hi - a->lo);
    return a->log ? v >= a->lo * (1 - slack) && v <= a->hi * (1 + slack)
                  : v >= a->lo - slack && v <= a->hi + slack;
}

void cd_plot_frame(const cd_plot *p, const char *x_title, const char *y_title) {
    const double x0 = p->left, x1 = p->w - p->right, y0 = p->top, y1 = p->h - p->bottom;
    cd_buf_putf(p->out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>", x0, y0, y1, x1);
    cd_buf_putf(p->out, "<text class=\"lab\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                0.5 * (x0 + x1), p->h - 6);
    cd_escape_xml(p->out, cd_str_of(x_title));
    cd_buf_putf(p->out,
                "</text><text class=\"lab\" transform=\"translate(13 %.1f) rotate(-90)\" "
                "text-anchor=\"middle\">",
                0.5 * (y0 + y1));
    cd_escape_xml(p->out, cd_str_of(y_title));
    cd_buf_puts(p->out, "</text>\n");
}

void cd_plot_tick_x(const cd_plot *p, double v, const char *label) {
    if (!shown(&p->x, v)) return;
    const double x = cd_plot_x(p, v);
    cd_buf_putf(p->out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, p->top,
                p->h - p->bottom);
    if (!label) return;
    cd_buf_putf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x,
                p->h - p->bottom + 19);
    cd_escape_xml(p->out, cd_str_of(label));
    cd_buf_puts(p->out, "</text>\n");
}

void cd_plot_tick_y(const cd_plot *p, double v, const char *label) {
    if (!shown(&p->y, v)) return;
    const double y = cd_plot_y(p, v);
    cd_buf_putf(p->out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", p->left, y,
                p->w - p->right);
    if (!label) return;
    cd_buf_putf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", p->left - 6, y + 4);
    cd_escape_xml(p->out, cd_str_of(label));
    cd_buf_puts(p->out, "</text>\n");
}

typedef void put_tick(const cd_plot *p, double v, const char *label);

/* Where the frame has room for `room` labels. */
static void ticks(const cd_plot *p, const cd_axis *a, double room, put_tick *put,
                  cd_plot_name *name) {
    char label[40];
    if (!a->log) {
        const double raw = (a->hi - a->lo) / room, ten = pow(10, floor(log10(raw))), m = raw / ten;
        /* + 0.0 below: ceil() gives -0, which is printed so */
        const double step = ten * (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10);
        for (double k = ceil(a->lo / step - 1e-9) + 0.0; k * step <= a->hi + 1e-9 * step; k++) {
            name(k * step, label, sizeof label);
            put(p, k * step, label);
        }
        return;
    }
    static const double mantissa[] = {1, 2, 5};
    const double decades = log10(a->hi / a->lo);
    const int fine = 3 * decades + 1 <= room;
    const int every = fine ? 1 : (int)ceil(decades / room - 1e-9);
    for (int d = (int)floor(log10(a->lo)); d <= (int)ceil(log10(a->hi)); d++)
        for (int m = 0; m < (fine ? 3 : 1); m++) {
            const double v = mantissa[m] * pow(10, d);
            name(v, label, sizeof label);
            put(p, v, every > 1 && ((d % every) + every) % every ? NULL : label);
        }
}

/* Two equal axes get equal ticks. */
static double room_for(const cd_plot *p, bool is_x) {
    const double x = (p->w - p->left - p->right) / 46, y = (p->h - p->top - p->bottom) / 30;
    const bool same = p->x.log == p->y.log && !(p->x.lo < p->y.lo || p->x.lo > p->y.lo ||
                                                p->x.hi < p->y.hi || p->x.hi > p->y.hi);
    return same ? fmin(x, y) : is_x ? x : y;
}
void cd_plot_ticks_x(const cd_plot *p, cd_plot_name *name) {
    ticks(p, &p->x, room_for(p, true), cd_plot_tick_x, name);
}
void cd_plot_ticks_y(const cd_plot *p, cd_plot_name *name) {
    ticks(p, &p->y, room_for(p, false), cd_plot_tick_y, name);
}

void cd_plot_line(const cd_plot *p, const double *x, const double *y, size_t n, const char *cls) {
    bool pen = false;
    cd_buf_putf(p->out, "<path class=\"%s\" d=\"", cls);
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]) || isnan(y[i])) {
            pen = false;
            continue;
        }
        cd_buf_putf(p->out, "%s%.1f %.1f", pen ? " " : "M", cd_plot_x(p, x[i]), cd_plot_y(p, y[i]));
        pen = true;
    }
    cd_buf_puts(p->out, "\"/>\n");
}

void cd_plot_segment(const cd_plot *p, double x0, double y0, double x1, double y1,
                     const char *cls) {
    cd_buf_putf(p->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", cls, cd_plot_x(p, x0),
                cd_plot_y(p, y0), cd_plot_x(p, x1), cd_plot_y(p, y1));
}

/* A line of no length with round ends is a dot. */
void cd_plot_dots(const cd_plot *p, const double *x, const double *y, size_t n, const char *cls) {
    cd_buf_putf(p->out, "<path class=\"%s\" d=\"", cls);
    for (size_t i = 0; i < n; i++)
        cd_buf_putf(p->out, "M%.1f %.1fh0", cd_plot_x(p, x[i]), cd_plot_y(p, y[i]));
    cd_buf_puts(p->out, "\"/>\n");
}

void cd_plot_mark(const cd_plot *p, double x, double y, double radius, const char *cls) {
    cd_buf_putf(p->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>\n", cls,
                cd_plot_x(p, x), cd_plot_y(p, y), radius);
}

void cd_plot_text(const cd_plot *p, double x, double y, double dx, double dy, const char *anchor,
                  const char *text) {
    cd_buf_putf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", cd_plot_x(p, x) + dx,
                cd_plot_y(p, y) + dy, anchor);
    cd_escape_xml(p->out, cd_str_of(text));
    cd_buf_puts(p->out, "</text>\n");
}

void cd_plot_box(const cd_plot *p, double x, const double *q, double half, const char *cls) {
    const double at = cd_plot_x(p, x);
    double y[5];
    for (int i = 0; i < 5; i++) y[i] = cd_plot_y(p, q[i]);
    cd_buf_putf(p->out,
                "<g class=\"%s\"><path class=\"whisker\" d=\"M%.1f %.1fV%.1fM%.1f %.1fV%.1f\"/>",
                cls, at, y[0], y[1], at, y[3], y[4]);
    cd_buf_putf(p->out,
                "<rect class=\"box\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                at - half, y[3], 2 * half, fmax(y[1] - y[3], 0.5));
    cd_buf_putf(p->out, "<path class=\"med\" d=\"M%.1f %.1fH%.1f\"/></g>\n", at - half, y[2],
                at + half);
}

/* One chart as an SVG file. It has its own style sheet, because a file of its own has no page to
 * take one from. */

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
