/* A growing text buffer with a sticky out-of-memory flag.
 *
 * Append freely, then check `oom` once. Always NUL-terminated when p != NULL. */
#ifndef CD_BUF_H
#define CD_BUF_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/core/mem.h"

typedef struct cd_buf {
    char *p;
    size_t n, cap;
    bool oom;
} cd_buf;

/* Append n bytes, a text, a printf format, a decimal integer. Nothing is added once `oom` is set. */
void cd_buf_put(cd_buf *b, const char *p, size_t n);
void cd_buf_putf(cd_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cd_buf_put_int(cd_buf *b, int64_t v);
static inline void cd_buf_puts(cd_buf *b, const char *s) { cd_buf_put(b, s, strlen(s)); }
/* 6 significant digits and a '.', in any locale: what a default C++ stream prints. */
void cd_buf_put_real6(cd_buf *b, double v);
/* The number that reads back as the same double; null where it is not finite. */
void cd_buf_put_json_real(cd_buf *b, double v);
/* "..." with JSON escapes. */
void cd_buf_put_json_str(cd_buf *b, const char *p, size_t n);
void cd_buf_clear(cd_buf *b); /* keeps the memory */
void cd_buf_free(cd_buf *b);
#endif
