/* Splits one line of CSV (RFC 4180) in place: quotes are removed by moving the field's bytes to the
 * front. */
#include "base/text/text.h"

#include <string.h>

/* A field that begins with a quote at p; the place behind it. */
static cdmpp_status quoted(char *p, char *end, cd_str *field, char **behind, cdmpp_err *err) {
    char *to = p;
    *field = (cd_str){p, 0};
    for (p++;; p++) {
        if (p == end) return CD_FAIL(err, EPARSE, "a quoted field has no end in its line");
        if (*p == '"' && (p + 1 == end || p[1] != '"')) break;
        p += *p == '"';
        *to++ = *p;
    }
    field->n = (size_t)(to - field->p);
    *behind = p + 1;
    return p + 1 == end || p[1] == ','
               ? CDMPP_OK
               : CD_FAIL(err, EPARSE, "expected a comma behind a quoted field");
}

/* A comma at the end of the line opens one more, empty field. */
cdmpp_status cd_csv_fields_split(char *line, size_t len, cd_str *field, size_t most, size_t *n,
                                 cdmpp_err *err) {
    char *p = line, *const end = line + len;
    for (*n = 0;; p++) {
        if (*n == most)
            return CD_FAIL(err, ERANGE, "expected at most %zu fields, found more", most);
        if (p < end && *p == '"') {
            CD_TRY(quoted(p, end, &field[*n], &p, err));
        } else {
            char *comma = p < end ? memchr(p, ',', (size_t)(end - p)) : NULL;
            field[*n] = (cd_str){p, (size_t)((comma ? comma : end) - p)};
            p = comma ? comma : end;
        }
        ++*n;
        if (p == end) return CDMPP_OK;
    }
}

void cd_csv_fields_put(cd_buf *b, const char *text, size_t n) {
    cd_buf_puts(b, "\"");
    for (size_t i = 0; i < n; i++)
        cd_buf_put(b, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
    cd_buf_puts(b, "\"");
}

/* RFC 4180 asks for quotes around line breaks, commas and quotes; other control characters are no
 * harm inside them either. */
void cd_csv_fields_put_bare(cd_buf *b, const char *text, size_t n) {
    bool quote = false;
    for (size_t i = 0; i < n; i++)
        quote |= text[i] == ',' || text[i] == '"' || (unsigned char)text[i] < ' ';
    if (quote) cd_csv_fields_put(b, text, n);
    else cd_buf_put(b, text, n);
}
