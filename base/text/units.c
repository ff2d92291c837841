/* Seconds and bytes as people read them. Seconds have three digits in every unit, so that columns
 * of them compare at a glance. */
#include "base/text/text.h"

#include <math.h>
#include <stdio.h>

static void seconds_text(char *out, size_t n, double s) {
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    int k = 3;
    double v = s;
    while (k && v < 0.9995) v *= 1000, k--;
    if (s == 0) k = 1;
    if (isfinite(s)) snprintf(out, n, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, unit[k]);
    else snprintf(out, n, "-");
}

void cd_units_put_seconds(cd_buf *b, double s) {
    char text[64];
    seconds_text(text, sizeof text, s);
    cd_buf_puts(b, text);
}

void cd_units_put_seconds_wide(cd_buf *b, double s) {
    char text[64];
    seconds_text(text, sizeof text, s);
    cd_buf_putf(b, "%9s", text);
}

void cd_units_put_bytes(cd_buf *b, double bytes) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int k = 0;
    for (; bytes >= 1024 && k < 4; k++) bytes /= 1024;
    cd_buf_putf(b, "%.4g %s", bytes, unit[k]);
}
