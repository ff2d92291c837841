/* The door of base/draw: other rooms include this header and no other of the room.
 *
 * Charts as SVG: `plot` draws axes, lines and marks into a buffer, for pages that have a style
 * sheet of their own; `chart` makes a whole file of one plot, with its style and a legend. */
#ifndef CD_BASE_DRAW_DOOR_H
#define CD_BASE_DRAW_DOOR_H
#include "base/core/core.h"

/* plot -- one chart as an inline SVG element: scales, axes, lines, marks, boxes.
 *
 *   +--------------------------- w ---+      data -> cd_plot_x, cd_plot_y -> units of the
 *   |  top                            |      view box, which the page scales
 *   |      +----------------------+   |
 *   | left |   the frame          | right
 *   |      +----------------------+   h
 *   |  bottom: ticks, axis title      |
 *   +---------------------------------+
 *
 *   (1) colours, widths and fonts are classes of the page's style sheet, so that a
 *       dark page and paper can have their own;
 *   (2) coordinates have one decimal, a point outside of the frame moves to its edge;
 *   (3) text is escaped here; an id is not.
 * Writes into a borrowed cd_buf, whose sticky flag says when memory ran out. */

typedef struct cd_axis {
    double lo, hi; /* of a logarithmic axis: both > 0 */
    bool log;
} cd_axis;

typedef struct cd_plot {
    cd_buf *out; /* borrowed */
    double w, h, left, right, top, bottom;
    cd_axis x, y;
} cd_plot;

/* Opens <svg id>; title and desc are what a screen reader says. */
void cd_plot_begin(const cd_plot *p, const char *id, const char *title, const char *desc);
void cd_plot_end(const cd_plot *p);
double cd_plot_x(const cd_plot *p, double v);
double cd_plot_y(const cd_plot *p, double v);

/* The frame, and titles below and beside the axes. */
void cd_plot_frame(const cd_plot *p, const char *x_title, const char *y_title);
/* A grid line and its label; none when v is outside. Label NULL: the line alone. */
void cd_plot_tick_x(const cd_plot *p, double v, const char *label);
void cd_plot_tick_y(const cd_plot *p, double v, const char *label);
/* Round numbers: on a logarithmic axis powers of ten, with 2 and 5 when there is room. */
typedef void cd_plot_name(double v, char *buf, size_t n);
void cd_plot_ticks_x(const cd_plot *p, cd_plot_name *name);
void cd_plot_ticks_y(const cd_plot *p, cd_plot_name *name);

/* NaN breaks a line. `cls` one class or several. */
void cd_plot_line(const cd_plot *p, const double *x, const double *y, size_t n, const char *cls);
void cd_plot_segment(const cd_plot *p, double x0, double y0, double x1, double y1, const char *cls);
/* Dots of one path: short even for thousands. */
void cd_plot_dots(const cd_plot *p, const double *x, const double *y, size_t n, const char *cls);
void cd_plot_mark(const cd_plot *p, double x, double y, double radius, const char *cls);
/* Text at a place of the frame, moved by dx, dy units. anchor "start" "middle" "end". */
void cd_plot_text(const cd_plot *p, double x, double y, double dx, double dy, const char *anchor,
                  const char *text);
/* Upright box at x: q[0]..q[4] whisker, box, line, box, whisker; half = half its width in units. */
void cd_plot_box(const cd_plot *p, double x, const double *q, double half, const char *cls);

/* chart -- one plot as an SVG file of its own, with a style sheet and a legend.
 *
 *   cd_chart c = {.p = {.x = {1, 1000, true}, .y = {0, 5, false}}};
 *   cd_chart_begin(&c, "Links", "bytes", "microseconds", name_of_x, name_of_y);
 *   cd_plot_line(&c.p, x, y, n, cd_chart_colour(0)), cd_chart_legend(&c, 0, "cpu0 > ocl0");
 *   st = cd_chart_write(&c, path, err); */

typedef struct cd_chart {
    cd_buf b;
    cd_plot p; /* the caller sets p.x and p.y; begin sets the rest */
    size_t n_legend;
} cd_chart;

/* Draws the frame, ticks and titles of the axes. */
void cd_chart_begin(cd_chart *c, const char *title, const char *x_title, const char *y_title,
                    cd_plot_name *x_name, cd_plot_name *y_name);
/* The classes of the k-th line, "m c3": eight colours, then again from the first. */
const char *cd_chart_colour(size_t k);
/* The same of cd_plot_dots: a point has no length, and is drawn by its round ends alone. */
const char *cd_chart_dots(size_t k);
/* One more line of the legend, in the colour of line k. */
void cd_chart_legend(cd_chart *c, size_t k, const char *text);
/* The same for dots. */
void cd_chart_legend_dot(cd_chart *c, size_t k, const char *text);
/* Writes the file, renamed into place, and frees the chart. Errors: EIO, ENOMEM. */
cdmpp_status cd_chart_write(cd_chart *c, const char *path, cdmpp_err *err);
#endif
