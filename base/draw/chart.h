/* chart -- one plot as an SVG file of its own, with a style sheet and a legend.
 *
 *   cd_chart c = {.p = {.x = {1, 1000, true}, .y = {0, 5, false}}};
 *   cd_chart_begin(&c, "Links", "bytes", "microseconds", name_of_x, name_of_y);
 *   cd_plot_line(&c.p, x, y, n, cd_chart_colour(0)), cd_chart_legend(&c, 0, "cpu0 > ocl0");
 *   st = cd_chart_write(&c, path, err); */
#ifndef CD_CHART_H
#define CD_CHART_H
#include "base/draw/plot.h"

typedef struct cd_chart {
    cd_buf b;
    cd_plot p;                  /* the caller sets p.x and p.y; begin sets the rest */
    size_t n_legend;
} cd_chart;

/* Draws the frame, ticks and titles of the axes. */
void cd_chart_begin(cd_chart *c, const char *title, const char *x_title, const char *y_title, cd_plot_name *x_name, cd_plot_name *y_name);
/* The classes of the k-th line, "m c3": eight colours, then again from the first. */
const char *cd_chart_colour(size_t k);
/* One more line of the legend, in the colour of line k. */
void cd_chart_legend(cd_chart *c, size_t k, const char *text);
/* Writes the file, renamed into place, and frees the chart. Errors: EIO, ENOMEM. */
cdmpp_status cd_chart_write(cd_chart *c, const char *path, cdmpp_err *err);
#endif
