/* JSON text, piece by piece: the writer sets commas and quotes.
 *
 *   cd_json_writer w = {.out = &b};
 *   cd_json_write_open(&w, '{');
 *   cd_json_write_key(&w, "latency_s"), cd_json_write_real(&w, 0.5);
 *   cd_json_write_key(&w, "shape"), cd_json_write_open(&w, '['), cd_json_write_int(&w, 3), cd_json_write_close(&w, ']');
 *   cd_json_write_close(&w, '}');                     -> {"latency_s":0.5,"shape":[3]}
 *
 * Out of memory is sticky in the buffer: look at out->oom once, at the end. Not checked: that brackets and keys match. */
#ifndef CD_JSON_WRITE_H
#define CD_JSON_WRITE_H
#include "base/core/core.h"

typedef struct cd_json_writer {
    cd_buf *out;
    bool comma;         /* the next value is not the first of its array or object */
    const char *colon;  /* after a key: ":" (NULL) or ": " */
    const char *sep;    /* between values: "," (NULL) or ", " */
} cd_json_writer;

void cd_json_write_open(cd_json_writer *w, char bracket);  /* '{' or '[' */
void cd_json_write_close(cd_json_writer *w, char bracket); /* '}' or ']' */
void cd_json_write_key(cd_json_writer *w, const char *key);
void cd_json_write_str(cd_json_writer *w, const char *s);  /* NULL: null */
void cd_json_write_strn(cd_json_writer *w, const char *s, size_t n);
void cd_json_write_int(cd_json_writer *w, int64_t v);
void cd_json_write_real(cd_json_writer *w, double v);      /* reads back as the same double; null where it is not finite */
void cd_json_write_bool(cd_json_writer *w, bool v);
void cd_json_write_null(cd_json_writer *w);
void cd_json_write_raw(cd_json_writer *w, const char *json, size_t n); /* a value that is JSON already */
/* A key and its value. */
void cd_json_write_member_str(cd_json_writer *w, const char *key, const char *s);
void cd_json_write_member_int(cd_json_writer *w, const char *key, int64_t v);
void cd_json_write_member_real(cd_json_writer *w, const char *key, double v);
void cd_json_write_member_bool(cd_json_writer *w, const char *key, bool v);
void cd_json_write_member_strn(cd_json_writer *w, const char *key, const char *s, size_t n);
/* An array of n numbers. */
void cd_json_write_reals(cd_json_writer *w, const double *v, size_t n);
#endif
