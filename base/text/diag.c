/* The list of mistakes in a configuration. It is kept as text, ready to print, because nothing but
 * a person ever reads it; it stops growing after CD_DIAG_MAX lines, since a file of the wrong kind
 * has a mistake in every line. */
#include "base/text/text.h"

#include <stdio.h>

void cd_diag_free(cd_diag *d) {
    cd_buf_free(&d->text);
    d->n = 0;
}

/* The message is formatted once, for the list and for `err`, which shortens it. */
void cd_diag_add(cd_diag *d, cdmpp_err *err, cdmpp_status code, const char *where,
                 const struct cd_yaml *at, bool at_key, const char *key, const char *fmt, ...) {
    char msg[4500];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    const uint32_t line = !at ? 0 : at_key ? at->key_line : at->line;
    const uint32_t col = !at ? 0 : at_key ? at->key_col : at->col;
    if (d->n++ == 0 && err) {
        cd_err_raise(err, code, __FILE__, __LINE__, "%s", msg);
        if (key[0]) cd_err_add_key(err, key);
        cd_err_add_place(err, where, (long)line);
    }
    if (d->n > CD_DIAG_MAX) return;
    cd_buf_puts(&d->text, where);
    if (line) cd_buf_putf(&d->text, ":%u:%u", line, col);
    cd_buf_putf(&d->text, ": error: %s%s%s\n", key, key[0] ? ": " : "", msg);
}
