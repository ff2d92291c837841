/* Axes, ticks and marks of a plot as SVG. */
#include "base/draw/draw.h"
#include "check.h"

#include <stdio.h>
#include <string.h>

static void plain(double v, char *buf, size_t n) { snprintf(buf, n, "<%g>", v); }

static size_t count(const char *s, const char *what) {
    size_t n = 0;
    while ((s = strstr(s, what))) n++, s += strlen(what);
    return n;
}

TEST(scales) {
    cd_buf b = {0};
    const cd_plot p = {&b, 120, 100, 10, 10, 10, 10, {1, 100, true}, {-1, 1, false}};
    assert_close(cd_plot_x(&p, 1), 10, 1e-12, 0);
    assert_close(cd_plot_x(&p, 10), 60, 1e-12, 0);
    assert_close(cd_plot_x(&p, 100), 110, 1e-12, 0);
    assert_close(cd_plot_x(&p, 1e9), 110, 1e-12, 0); /* to the edge */
    assert_close(cd_plot_y(&p, -1), 90, 1e-12, 0);
    assert_close(cd_plot_y(&p, 0), 50, 1e-12, 0);
    assert_close(cd_plot_y(&p, -5), 90, 1e-12, 0);
}

TEST(ticks) {
    cd_buf b = {0};
    cd_plot p = {&b, 500, 400, 60, 10, 10, 40, {1, 100, true}, {0, 7, false}};
    cd_plot_ticks_x(&p, plain); /* 2 decades in 430 units: 1 2 5 10 20 50 100 */
    assert_int_equal(count(b.p, "<text"), 7);
    assert_non_null(strstr(b.p, ">&lt;20&gt;<"));
    cd_buf_clear(&b);
    cd_plot_ticks_y(&p, plain);
    assert_int_equal(count(b.p, "<text"), 8);
    cd_buf_clear(&b);
    p.x = (cd_axis){1e-12, 1e12, true}; /* 25 lines, a label at every third */
    cd_plot_ticks_x(&p, plain);
    assert_int_equal(count(b.p, "<path"), 25);
    assert_int_equal(count(b.p, "<text"), 9);
    assert_non_null(strstr(b.p, ">&lt;1&gt;<"));
    cd_buf_clear(&b);
    p.x = (cd_axis){3, 4, true}; /* none inside is no error */
    cd_plot_ticks_x(&p, plain);
    cd_plot_tick_x(&p, 5, "five");
    assert_int_equal(b.n, 0);
    p.x = p.y = (cd_axis){1, 200, true}; /* equal axes, equal ticks */
    cd_plot_ticks_x(&p, plain);
    const size_t x = count(b.p, "<text");
    cd_buf_clear(&b);
    cd_plot_ticks_y(&p, plain);
    assert_int_equal(count(b.p, "<text"), x);
    cd_buf_free(&b);
}

TEST(marks) {
    cd_buf b = {0};
    const cd_plot p = {&b, 120, 100, 10, 10, 10, 10, {0, 1, false}, {0, 1, false}};
    const double x[] = {0, 0.25, 0.5, 0.75, 1}, y[] = {0, 1, NAN, 1, 0}, q[] = {0.1, 0.25, 0.5, 0.75, 0.9};
    cd_plot_line(&p, x, y, 5, "a");
    assert_string_equal(b.p, "<path class=\"a\" d=\"M10.0 90.0 35.0 10.0M85.0 10.0 110.0 90.0\"/>\n"); /* NaN breaks */
    cd_buf_clear(&b);
    cd_plot_dots(&p, x, x, 2, "d");
    assert_string_equal(b.p, "<path class=\"d\" d=\"M10.0 90.0h0M35.0 70.0h0\"/>\n");
    cd_buf_clear(&b);
    cd_plot_box(&p, 0.5, q, 5, "b");
    assert_non_null(strstr(b.p, "<rect class=\"box\" x=\"55.0\" y=\"30.0\" width=\"10.0\" height=\"40.0\"/>"));
    cd_buf_clear(&b);
    cd_plot_begin(&p, "i", "a<b", "\"c\" & 'd'");
    assert_non_null(strstr(b.p, "aria-labelledby=\"i-t i-d\"><title id=\"i-t\">a&lt;b</title>"));
    assert_non_null(strstr(b.p, ">&quot;c&quot; &amp; &#39;d&#39;</desc>"));
    cd_buf_free(&b);
}

TESTS(NULL, NULL, scales, ticks, marks)
