/* Texts of files on their way into other languages. Every emitter goes through these, so that a
 * name cannot end the string, comment, element or line that it stands in. JSON:
 * cd_buf_put_json_str. CSV: csv_fields.c. */
#include <string.h>

#include "base/text/text.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD: for what is no UTF-8 or no character */

/* One character at s: its bytes, 1 for a byte that begins none; *c: the code point, 0xFFFD for such
 * a byte. */
static size_t next(cd_str s, uint32_t *c) {
    const size_t n = cd_str_utf8_len(s);
    const unsigned char *p = (const unsigned char *)s.p;
    *c = !n ? 0xFFFD : n == 1 ? *p : *p & (0x7FU >> n);
    for (size_t k = 1; k < n; k++) *c = *c << 6 | (p[k] & 0x3FU);
    return n ? n : 1;
}

static void put_char(cd_buf *out, cd_str s, size_t n, uint32_t c) {
    if (c == 0xFFFD) cd_buf_puts(out, REPLACEMENT);
    else cd_buf_put(out, s.p, n);
}

static bool is_control(uint32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

/* Marks that change the direction of what follows, and the breaks of lines and paragraphs that are
 * no control characters. */
static bool is_hidden(uint32_t c) {
    return (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0x2028 ||
           c == 0x2029 || c == 0xFEFF;
}

void cd_escape_xml(cd_buf *out, cd_str s) {
    uint32_t c;
    for (size_t n; s.n; s.p += n, s.n -= n) {
        n = next(s, &c);
        switch (c) {
        case '<': cd_buf_puts(out, "&lt;"); break;
        case '>': cd_buf_puts(out, "&gt;"); break;
        case '&': cd_buf_puts(out, "&amp;"); break;
        case '"': cd_buf_puts(out, "&quot;"); break;
        case '\'': cd_buf_puts(out, "&#39;"); break;
        default: /* XML has no other control characters, also not as references */
            if ((is_control(c) && c != '\t' && c != '\n') || c == 0xFFFE || c == 0xFFFF)
                cd_buf_puts(out, REPLACEMENT);
            else put_char(out, s, n, c);
        }
    }
}

void cd_escape_script(cd_buf *out, cd_str s) {
    cd_buf one = {0};
    cd_buf_put_json_str(&one, s.p, s.n);
    for (size_t k = 0, n; k < one.n; k += n + 1) {
        const char *lt = memchr(one.p + k, '<', one.n - k);
        n = lt ? (size_t)(lt - one.p) - k : one.n - k;
        cd_buf_put(out, one.p + k, n);
        if (lt) cd_buf_puts(out, "\\u003c");
    }
    out->oom |= one.oom;
    cd_buf_free(&one);
}

/* Besides its end a comment is left by nothing, but a compiler warns of a second beginning, and a
 * backslash joins lines. */
void cd_escape_c_comment(cd_buf *out, cd_str s) {
    uint32_t c, before = 0;
    for (size_t n; s.n; s.p += n, s.n -= n) {
        n = next(s, &c);
        if (is_control(c) || is_hidden(c)) cd_buf_puts(out, " ");
        else if ((before == '*' && c == '/') || (before == '/' && c == '*'))
            cd_buf_putf(out, " %c", (int)c);
        else if (c == '\\') cd_buf_puts(out, "|");
        else put_char(out, s, n, c);
        before = c;
    }
}

/* Three octal digits: a fourth is never read, as it would be of \x. Bytes above 127 as well, so
 * that no compiler asks for their encoding. "?" is for trigraphs. */
void cd_escape_c_string(cd_buf *out, cd_str s) {
    cd_buf_puts(out, "\"");
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\' || c == '?') cd_buf_putf(out, "\\%c", c);
        else if (c >= ' ' && c < 0x7F) cd_buf_put(out, s.p + i, 1);
        else cd_buf_putf(out, "\\%03o", c);
    }
    cd_buf_puts(out, "\"");
}

/* Graphviz reads \n, \N and \G in labels: a backslash of the text is doubled. */
void cd_escape_dot(cd_buf *out, cd_str s) {
    uint32_t c;
    for (size_t n; s.n; s.p += n, s.n -= n) {
        n = next(s, &c);
        if (c == '"' || c == '\\') cd_buf_puts(out, "\\");
        if (is_control(c)) cd_buf_puts(out, " ");
        else put_char(out, s, n, c);
    }
}

/* What YAML does not take as it is, or takes for a line break. Four hexadecimal digits as in JSON,
 * so that both read the same. */
void cd_escape_yaml(cd_buf *out, cd_str s) {
    uint32_t c;
    cd_buf_puts(out, "\"");
    for (size_t n; s.n; s.p += n, s.n -= n) {
        n = next(s, &c);
        if (c == '"' || c == '\\') cd_buf_putf(out, "\\%c", (int)c);
        else if (cd_escape_yaml_must(c)) cd_buf_putf(out, "\\u%04x", c);
        else put_char(out, s, n, c);
    }
    cd_buf_puts(out, "\"");
}

bool cd_escape_yaml_must(uint32_t c) {
    return is_control(c) || c == 0x2028 || c == 0x2029 || c == 0xFEFF || c == 0xFFFE || c == 0xFFFF;
}

void cd_escape_shell(cd_buf *out, cd_str s) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
    bool quote = !s.n;
    for (size_t i = 0; i < s.n && !quote; i++) quote = !s.p[i] || !strchr(plain, s.p[i]);
    if (quote) cd_buf_puts(out, "'");
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'') cd_buf_puts(out, "'\\''");
        else if (s.p[i]) cd_buf_put(out, s.p + i, 1);
    }
    if (quote) cd_buf_puts(out, "'");
}

/* Bytes that are no UTF-8 stay what a terminal makes of them, except those that some take for
 * control characters (0x80 to 0x9F). */
void cd_escape_terminal(cd_buf *out, cd_str s) {
    uint32_t c;
    for (size_t n, k = 0; k < s.n; k += n) {
        const cd_str rest = {s.p + k, s.n - k};
        n = next(rest, &c);
        const bool ends_line =
            c == '\n' || c == '\t' || (c == '\r' && rest.n > 1 && rest.p[1] == '\n');
        if ((is_control(c) && !ends_line) || (is_hidden(c) && c != 0xFEFF) ||
            (c == 0xFFFD && n == 1 && (unsigned char)*rest.p < 0xA0))
            cd_buf_puts(out, "?");
        else cd_buf_put(out, rest.p, n);
    }
}

/* Different texts may get one name: who writes several numbers them. */
void cd_escape_file_name(cd_buf *out, cd_str s) {
    size_t put = 0;
    for (size_t i = 0; i < s.n && put < CD_ESCAPE_FILE_NAME_MAX; i++, put++) {
        const char c = s.p[i];
        const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_',
                   inner = c && strchr(".-+@=,", c);
        cd_buf_put(out, word || (inner && put) ? &c : "_", 1);
    }
    if (!put) cd_buf_puts(out, "_");
}
