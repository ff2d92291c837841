/* Axes, ticks and marks of a plot as SVG. */
#include "base/draw/draw.h"
#include "base/io/io.h"
#include "check.h"
#include "tmp.h"

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
    const double x[] = {0, 0.25, 0.5, 0.75, 1};
    const double y[] = {0, 1, NAN, 1, 0};
    const double q[] = {0.1, 0.25, 0.5, 0.75, 0.9};
    cd_plot_line(&p, x, y, 5, "a");
    /* NaN breaks */
    assert_string_equal(b.p,
                        "<path class=\"a\" d=\"M10.0 90.0 35.0 10.0M85.0 10.0 110.0 90.0\"/>\n");
    cd_buf_clear(&b);
    cd_plot_dots(&p, x, x, 2, "d");
    assert_string_equal(b.p, "<path class=\"d\" d=\"M10.0 90.0h0M35.0 70.0h0\"/>\n");
    cd_buf_clear(&b);
    cd_plot_box(&p, 0.5, q, 5, "b");
    assert_non_null(
        strstr(b.p, "<rect class=\"box\" x=\"55.0\" y=\"30.0\" width=\"10.0\" height=\"40.0\"/>"));
    cd_buf_clear(&b);
    cd_plot_begin(&p, "i", "a<b", "\"c\" & 'd'");
    assert_non_null(strstr(b.p, "aria-labelledby=\"i-t i-d\"><title id=\"i-t\">a&lt;b</title>"));
    assert_non_null(strstr(b.p, ">&quot;c&quot; &amp; &#39;d&#39;</desc>"));
    cd_buf_free(&b);
}

/* Everything at its place: a frame of 100 by 80 units at 20, 10. */
TEST(whole_plot) {
    cd_buf b = {0};
    const cd_plot p = {&b, 130, 110, 20, 10, 10, 20, {1, 100, true}, {0, 4, false}};
    const double x[] = {1, 10, 1000}, y[] = {0, 1, 3}, q[] = {0.5, 1, 2, 3, 3.5};
    cd_plot_begin(&p, "i", "t", "d");
    cd_plot_frame(&p, "across", "up");
    cd_plot_ticks_x(&p, plain);
    cd_plot_ticks_y(&p, plain);
    cd_plot_tick_x(&p, 30, NULL);
    cd_plot_tick_y(&p, 3.5, "here");
    cd_plot_line(&p, x, y, 3, "l");
    cd_plot_segment(&p, 1, 4, 100, 0, "s");
    cd_plot_mark(&p, 10, 2, 3, "m");
    cd_plot_text(&p, 10, 3, 5, -6, "end", "a&b");
    cd_plot_box(&p, 10, q, 4, "b");
    cd_plot_end(&p);
    assert_string_equal(
        b.p, "<svg id=\"i\" class=\"plot\" viewBox=\"0 0 130 110\" role=\"img\" "
             "aria-labelledby=\"i-t i-d\"><title id=\"i-t\">t</title><desc id=\"i-d\">d</desc>\n"
             "<path class=\"axis\" d=\"M20.0 10.0V90.0H120.0\"/><text class=\"lab\" x=\"70.0\" "
             "y=\"104.0\" text-anchor=\"middle\">across</text><text class=\"lab\" "
             "transform=\"translate(13 50.0) rotate(-90)\" text-anchor=\"middle\">up</text>\n"
             "<path class=\"grid\" d=\"M20.0 10.0V90.0\"/><text x=\"20.0\" y=\"109.0\" "
             "text-anchor=\"middle\">&lt;1&gt;</text>\n"
             "<path class=\"grid\" d=\"M70.0 10.0V90.0\"/><text x=\"70.0\" y=\"109.0\" "
             "text-anchor=\"middle\">&lt;10&gt;</text>\n"
             "<path class=\"grid\" d=\"M120.0 10.0V90.0\"/><text x=\"120.0\" y=\"109.0\" "
             "text-anchor=\"middle\">&lt;100&gt;</text>\n"
             "<path class=\"grid\" d=\"M20.0 90.0H120.0\"/><text x=\"14.0\" y=\"94.0\" "
             "text-anchor=\"end\">&lt;0&gt;</text>\n"
             "<path class=\"grid\" d=\"M20.0 50.0H120.0\"/><text x=\"14.0\" y=\"54.0\" "
             "text-anchor=\"end\">&lt;2&gt;</text>\n"
             "<path class=\"grid\" d=\"M20.0 10.0H120.0\"/><text x=\"14.0\" y=\"14.0\" "
             "text-anchor=\"end\">&lt;4&gt;</text>\n"
             "<path class=\"grid\" d=\"M93.9 10.0V90.0\"/><path class=\"grid\" d=\"M20.0 "
             "20.0H120.0\"/><text x=\"14.0\" y=\"24.0\" text-anchor=\"end\">here</text>\n"
             "<path class=\"l\" d=\"M20.0 90.0 70.0 70.0 120.0 30.0\"/>\n"
             "<path class=\"s\" d=\"M20.0 10.0L120.0 90.0\"/>\n"
             "<circle class=\"m\" cx=\"70.0\" cy=\"50.0\" r=\"3\"/>\n"
             "<text x=\"75.0\" y=\"24.0\" text-anchor=\"end\">a&amp;b</text>\n"
             "<g class=\"b\"><path class=\"whisker\" d=\"M70.0 80.0V70.0M70.0 30.0V20.0\"/><rect "
             "class=\"box\" x=\"66.0\" y=\"30.0\" width=\"8.0\" height=\"40.0\"/><path "
             "class=\"med\" d=\"M66.0 50.0H74.0\"/></g>\n"
             "</svg>\n");
    cd_buf_free(&b);
}

/* A file of its own: a line, and a legend of a line and of dots. */
TEST(whole_chart) {
    tmp_dir t = tmp_make();
    cdmpp_err err = {0};
    char *text;
    size_t n;
    const double x[] = {1, 1000}, y[] = {0, 5};
    cd_chart c = {.p = {.x = {1, 1000, true}, .y = {0, 5, false}}};
    cd_chart_begin(&c, "Links", "bytes", "us", plain, plain);
    cd_plot_line(&c.p, x, y, 2, cd_chart_colour(0));
    cd_chart_legend(&c, 0, "one");
    cd_chart_legend_dot(&c, 9, "two");
    assert_string_equal(cd_chart_colour(7), "m c7");
    assert_string_equal(cd_chart_colour(8), "m c0");
    assert_string_equal(cd_chart_dots(9), "d c1");
    assert_ok(cd_chart_write(&c, tmp_path(&t, "a.svg"), &err));
    assert_null(c.b.p);
    assert_ok(cd_file_read(tmp_path(&t, "a.svg"), 0, &text, &n, &err));
    assert_string_equal(
        text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"440\" viewBox=\"0 "
              "0 720 440\">\n"
              "<style>text{font:12px "
              "sans-serif;fill:#56616c}.lab{fill:#1a1f24}path{fill:none}.axis{stroke:#56616c}.grid{"
              "stroke:#dde2e7}.m{stroke-width:2}.d{stroke-width:6;stroke-linecap:round}.q{stroke-"
              "width:1;stroke-dasharray:2 "
              "3}.c0{stroke:#0067ab}.c1{stroke:#c2570c}.c2{stroke:#00815d}.c3{stroke:#a9518a}.c4{"
              "stroke:#9a6a00}.c5{stroke:#3c8dbc}.c6{stroke:#1a1f24}.c7{stroke:#7b8794}</style>\n"
              "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
              "<svg id=\"chart\" class=\"plot\" viewBox=\"0 0 720 440\" role=\"img\" "
              "aria-labelledby=\"chart-t chart-d\"><title id=\"chart-t\">Links</title><desc "
              "id=\"chart-d\">us</desc>\n"
              "<path class=\"axis\" d=\"M70.0 14.0V398.0H706.0\"/><text class=\"lab\" x=\"388.0\" "
              "y=\"434.0\" text-anchor=\"middle\">bytes</text><text class=\"lab\" "
              "transform=\"translate(13 206.0) rotate(-90)\" text-anchor=\"middle\">us</text>\n"
              "<path class=\"grid\" d=\"M70.0 14.0V398.0\"/><text x=\"70.0\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;1&gt;</text>\n"
              "<path class=\"grid\" d=\"M133.8 14.0V398.0\"/><text x=\"133.8\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;2&gt;</text>\n"
              "<path class=\"grid\" d=\"M218.2 14.0V398.0\"/><text x=\"218.2\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;5&gt;</text>\n"
              "<path class=\"grid\" d=\"M282.0 14.0V398.0\"/><text x=\"282.0\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;10&gt;</text>\n"
              "<path class=\"grid\" d=\"M345.8 14.0V398.0\"/><text x=\"345.8\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;20&gt;</text>\n"
              "<path class=\"grid\" d=\"M430.2 14.0V398.0\"/><text x=\"430.2\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;50&gt;</text>\n"
              "<path class=\"grid\" d=\"M494.0 14.0V398.0\"/><text x=\"494.0\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;100&gt;</text>\n"
              "<path class=\"grid\" d=\"M557.8 14.0V398.0\"/><text x=\"557.8\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;200&gt;</text>\n"
              "<path class=\"grid\" d=\"M642.2 14.0V398.0\"/><text x=\"642.2\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;500&gt;</text>\n"
              "<path class=\"grid\" d=\"M706.0 14.0V398.0\"/><text x=\"706.0\" y=\"417.0\" "
              "text-anchor=\"middle\">&lt;1000&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 398.0H706.0\"/><text x=\"64.0\" y=\"402.0\" "
              "text-anchor=\"end\">&lt;0&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 359.6H706.0\"/><text x=\"64.0\" y=\"363.6\" "
              "text-anchor=\"end\">&lt;0.5&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 321.2H706.0\"/><text x=\"64.0\" y=\"325.2\" "
              "text-anchor=\"end\">&lt;1&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 282.8H706.0\"/><text x=\"64.0\" y=\"286.8\" "
              "text-anchor=\"end\">&lt;1.5&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 244.4H706.0\"/><text x=\"64.0\" y=\"248.4\" "
              "text-anchor=\"end\">&lt;2&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 206.0H706.0\"/><text x=\"64.0\" y=\"210.0\" "
              "text-anchor=\"end\">&lt;2.5&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 167.6H706.0\"/><text x=\"64.0\" y=\"171.6\" "
              "text-anchor=\"end\">&lt;3&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 129.2H706.0\"/><text x=\"64.0\" y=\"133.2\" "
              "text-anchor=\"end\">&lt;3.5&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 90.8H706.0\"/><text x=\"64.0\" y=\"94.8\" "
              "text-anchor=\"end\">&lt;4&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 52.4H706.0\"/><text x=\"64.0\" y=\"56.4\" "
              "text-anchor=\"end\">&lt;4.5&gt;</text>\n"
              "<path class=\"grid\" d=\"M70.0 14.0H706.0\"/><text x=\"64.0\" y=\"18.0\" "
              "text-anchor=\"end\">&lt;5&gt;</text>\n"
              "<path class=\"m c0\" d=\"M70.0 398.0 706.0 14.0\"/>\n"
              "<path class=\"m c0\" d=\"M84.0 28.0h18\"/><text class=\"lab\" x=\"108.0\" "
              "y=\"32.0\">one</text>\n"
              "<path class=\"d c1\" d=\"M84.0 43.0m9 0h0\"/><text class=\"lab\" x=\"108.0\" "
              "y=\"47.0\">two</text>\n"
              "</svg>\n"
              "</svg>\n");
    cd_mem_free(text);
    assert_status(cd_chart_write(&(cd_chart){.p = c.p}, tmp_path(&t, "no/a.svg"), &err), CDMPP_EIO);
    cd_buf_free(&c.b); /* the copy's plot wrote to it */
    tmp_remove(&t);
}

TESTS(NULL, NULL, scales, ticks, marks, whole_plot, whole_chart)
