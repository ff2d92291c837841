/* A growing text. The capacity doubles; the first failed allocation sets `oom`, and from then on
 * nothing is added, so a caller checks once at the end. */
#include "base/core/core.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool reserve(cd_buf *b, size_t more) {
    if (b->oom) return false;
    if (b->cap - b->n > more) return true;
    size_t cap = b->cap ? b->cap : 256;
    while (cap - b->n <= more) cap *= 2;
    char *p = cd_mem_realloc(b->p, b->n, cap);
    if (!p) {
        b->oom = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void cd_buf_put(cd_buf *b, const char *p, size_t n) {
    if (!reserve(b, n)) return;
    if (n == 1) b->p[b->n] = *p; /* commas, brackets: most of what is put */
    else if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void cd_buf_putf(cd_buf *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !reserve(b, (size_t)n)) return;
    va_start(ap, fmt);
    vsnprintf(b->p + b->n, b->cap - b->n, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void cd_buf_put_int(cd_buf *b, int64_t v) {
    char text[24], *p = text + sizeof text;
    uint64_t m = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do *--p = (char)('0' + m % 10);
    while (m /= 10);
    if (v < 0) *--p = '-';
    const size_t n = (size_t)(text + sizeof text - p);
    if (!reserve(b, sizeof text)) return;
    for (size_t i = 0; i < n; i++) b->p[b->n + i] = p[i];
    b->p[b->n += n] = '\0';
}

/* printf writes the locale's decimal point, which may be several bytes. */
void cd_buf_put_real6(cd_buf *b, double v) {
    char text[48];
    const int len = snprintf(text, sizeof text, "%g", v);
    const char *point = localeconv()->decimal_point, *at = NULL;
    if (strcmp(point, ".") != 0) at = strstr(text, point);
    if (!at) {
        cd_buf_put(b, text, (size_t)len);
        return;
    }
    cd_buf_put(b, text, (size_t)(at - text));
    cd_buf_puts(b, ".");
    cd_buf_puts(b, at + strlen(point));
}

void cd_buf_put_json_real(cd_buf *b, double v) {
    if (isfinite(v)) cd_buf_putf(b, "%.17g", v);
    else cd_buf_puts(b, "null");
}

/* The code point of a character of (k) bytes that JSON allows as it is but a terminal may take for
 * a command: the control characters from 0x7f to 0x9f, and U+2028 to U+202E and U+2066 to U+2069,
 * which break lines or turn their direction. 0: another character. */
static unsigned unseen(const unsigned char *c, size_t k) {
    if (k == 1 && *c == 0x7f) return 0x7f;
    if (k == 2 && *c == 0xC2 && c[1] < 0xA0) return c[1];
    if (k == 3 && *c == 0xE2 &&
        ((c[1] == 0x80 && c[2] >= 0xA8 && c[2] <= 0xAE) ||
         (c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9)))
        return 0x2000 + ((c[1] & 0x3Fu) << 6) + (c[2] & 0x3Fu);
    return 0;
}

/* What is no UTF-8 becomes U+FFFD, a byte each: no reader of JSON takes it as it is. */
void cd_buf_put_json_str(cd_buf *b, const char *p, size_t n) {
    size_t from = 0; /* start of the run that needs no escape */
    cd_buf_put(b, "\"", 1);
    for (size_t i = 0, k; i < n; i += k ? k : 1) {
        const unsigned char c = (unsigned char)p[i];
        k = c < 0x80 ? 1 : cd_str_utf8_len((cd_str){p + i, n - i});
        const unsigned hidden = c < 0x7f ? 0 : unseen((const unsigned char *)p + i, k);
        if (k && c >= ' ' && c != '"' && c != '\\' && !hidden) continue;
        cd_buf_put(b, p + from, i - from);
        from = i + (k ? k : 1);
        if (hidden) cd_buf_putf(b, "\\u%04x", hidden);
        else if (!k) cd_buf_puts(b, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\') cd_buf_putf(b, "\\%c", c);
        else if (c == '\n') cd_buf_puts(b, "\\n");
        else if (c == '\r') cd_buf_puts(b, "\\r");
        else if (c == '\t') cd_buf_puts(b, "\\t");
        else cd_buf_putf(b, "\\u%04x", c);
    }
    cd_buf_put(b, p + from, n - from);
    cd_buf_put(b, "\"", 1);
}

void cd_buf_clear(cd_buf *b) {
    b->n = 0;
    if (b->p) b->p[0] = '\0';
}

void cd_buf_free(cd_buf *b) {
    cd_mem_free(b->p);
    *b = (cd_buf){0};
}
