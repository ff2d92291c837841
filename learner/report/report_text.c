/* Numbers and names as the page writes them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner/report/report_internal.h"

#define NNBSP "\xe2\x80\xaf"
#define MINUS "\xe2\x88\x92"
#define DASH  "\xe2\x80\x93"

void cd_report_text_count(cd_buf *out, size_t n) {
    char text[32];
    const size_t len = (size_t)snprintf(text, sizeof text, "%zu", n);
    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0 && len > 4) cd_buf_puts(out, NNBSP);
        cd_buf_put(out, text + i, 1);
    }
}

void cd_report_text_percent(cd_buf *out, double share) {
    if (isnan(share)) cd_buf_puts(out, DASH);
    else cd_buf_putf(out, "%.*f" NNBSP "%%", share < 0.9995 ? 1 : 0, 100 * share);
}

void cd_report_text_signed(cd_buf *out, double share) {
    if (isnan(share)) {
        cd_buf_puts(out, DASH);
        return;
    }
    cd_buf_puts(out, share < -0.0005 ? MINUS : share > 0.0005 ? "+" : "");
    cd_report_text_percent(out, fabs(share));
}

void cd_report_text_number(cd_buf *out, double v, int digits) {
    if (isnan(v)) cd_buf_puts(out, DASH);
    else cd_buf_putf(out, "%s%.*f", v < 0 ? MINUS : "", digits, fabs(v));
}

void cd_report_text_seconds(double s, char *buf, size_t n) {
    if (s < 0.9999e-6) snprintf(buf, n, "%.3g" NNBSP "ns", s * 1e9);
    else if (s < 0.9999e-3) snprintf(buf, n, "%.3g" NNBSP "\xc2\xb5s", s * 1e6);
    else if (s < 0.9999) snprintf(buf, n, "%.3g" NNBSP "ms", s * 1e3);
    else if (s < 999.9) snprintf(buf, n, "%.3g" NNBSP "s", s);
    else snprintf(buf, n, "%.3g" NNBSP "ks", s * 1e-3);
}

void cd_report_text_share(double v, char *buf, size_t n) {
    snprintf(buf, n, "%.4g" NNBSP "%%", fabs(v) < 1e-12 ? 0 : 100 * v);
}
void cd_report_text_times(double v, char *buf, size_t n) { snprintf(buf, n, "\xc3\x97%.4g", v); }
void cd_report_text_plain(double v, char *buf, size_t n) {
    snprintf(buf, n, "%.4g", fabs(v) < 1e-12 ? 0 : v);
}

void cd_report_text_decade(cd_buf *out, uint32_t k) {
    char lo[32], hi[32];
    cd_report_text_seconds(cd_report_fig_decade_s(k), lo, sizeof lo);
    cd_report_text_seconds(cd_report_fig_decade_s(k + 1), hi, sizeof hi);
    if (!k) cd_buf_putf(out, "under %s", hi);
    else if (k + 1 == CD_REPORT_FIG_N_DECADE) cd_buf_putf(out, "%s and more", lo);
    else cd_buf_putf(out, "%s" DASH "%s", lo, hi);
}

/* ["<32 digits>", [1, 56, 56, 64], ...] -> 8 digits, then the shapes: 1a2b3c4d [1,56,56,64] */
void cd_report_text_task(cd_buf *out, const char *name) {
    static const char hex[] = "0123456789abcdef";
    char text[512];
    size_t n = 0;
    int depth = 0;
    if (*name != '[') {
        cd_escape_xml(out, cd_str_of(name));
        return;
    }
    for (const char *s = name; *s && n + 16 < sizeof text; s++) {
        const size_t run = strspn(s, hex);
        if (run >= 24) { /* a hash: 8 digits name it */
            memcpy(text + n, s, 8);
            n += 8;
            s += run - 1;
            continue;
        }
        const int was = depth;
        depth += (*s == '[') - (*s == ']');
        if (*s == '"' || (*s == ' ' && depth > 1) || (depth != was && (depth == 0 || was == 0)) ||
            (*s == ',' && depth == 1))
            continue;
        text[n++] = *s;
    }
    text[n] = '\0';
    cd_escape_xml(out, cd_str_of(text));
}

void cd_report_legend(cd_buf *out, const char *cls, const char *text) {
    cd_buf_putf(out,
                "<span class=\"key\"><svg width=\"26\" height=\"10\" aria-hidden=\"true\"><path "
                "class=\"%s\" d=\"M1 5H25\"/></svg>",
                cls);
    cd_escape_xml(out, cd_str_of(text));
    cd_buf_puts(out, "</span>");
}

void cd_report_legend_part(const cd_report_page *pg, cd_split_part part) {
    cd_buf b = {0};
    cd_buf_putf(&b, "%s, n = ", cd_split_part_name(part));
    cd_report_text_count(&b, pg->r->part[part].n);
    const char cls[] = {'l', ' ', 's', (char)('0' + part), '\0'};
    cd_report_legend(pg->out, cls, b.p ? b.p : "");
    cd_buf_free(&b);
}
