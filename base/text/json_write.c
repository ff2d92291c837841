/* The one place that writes JSON's commas, quotes and escapes. `comma` says whether the next value
 * needs a separator. */
#include "base/text/text.h"

static void separate(cd_json_writer *w) {
    if (w->comma) cd_buf_puts(w->out, w->sep ? w->sep : ",");
    w->comma = true;
}

void cd_json_write_open(cd_json_writer *w, char bracket) {
    separate(w);
    cd_buf_put(w->out, &bracket, 1);
    w->comma = false;
}

void cd_json_write_close(cd_json_writer *w, char bracket) {
    cd_buf_put(w->out, &bracket, 1);
    w->comma = true;
}

void cd_json_write_key(cd_json_writer *w, const char *key) {
    separate(w);
    cd_buf_put_json_str(w->out, key, strlen(key));
    cd_buf_puts(w->out, w->colon ? w->colon : ":");
    w->comma = false;
}

void cd_json_write_strn(cd_json_writer *w, const char *s, size_t n) {
    separate(w);
    cd_buf_put_json_str(w->out, s, n);
}

void cd_json_write_str(cd_json_writer *w, const char *s) {
    if (s) cd_json_write_strn(w, s, strlen(s));
    else cd_json_write_null(w);
}

void cd_json_write_int(cd_json_writer *w, int64_t v) {
    separate(w);
    cd_buf_put_int(w->out, v);
}

void cd_json_write_real(cd_json_writer *w, double v) {
    separate(w);
    cd_buf_put_json_real(w->out, v);
}

void cd_json_write_raw(cd_json_writer *w, const char *json, size_t n) {
    separate(w);
    cd_buf_put(w->out, json, n);
}

void cd_json_write_bool(cd_json_writer *w, bool v) {
    cd_json_write_raw(w, v ? "true" : "false", v ? 4 : 5);
}
void cd_json_write_null(cd_json_writer *w) { cd_json_write_raw(w, "null", 4); }

void cd_json_write_member_str(cd_json_writer *w, const char *key, const char *s) {
    cd_json_write_key(w, key);
    cd_json_write_str(w, s);
}

void cd_json_write_member_int(cd_json_writer *w, const char *key, int64_t v) {
    cd_json_write_key(w, key);
    cd_json_write_int(w, v);
}

void cd_json_write_member_real(cd_json_writer *w, const char *key, double v) {
    cd_json_write_key(w, key);
    cd_json_write_real(w, v);
}

void cd_json_write_member_bool(cd_json_writer *w, const char *key, bool v) {
    cd_json_write_key(w, key);
    cd_json_write_bool(w, v);
}

void cd_json_write_member_strn(cd_json_writer *w, const char *key, const char *s, size_t n) {
    cd_json_write_key(w, key);
    cd_json_write_strn(w, s, n);
}

void cd_json_write_reals(cd_json_writer *w, const double *v, size_t n) {
    cd_json_write_open(w, '[');
    for (size_t i = 0; i < n; i++) cd_json_write_real(w, v[i]);
    cd_json_write_close(w, ']');
}

void cd_json_put_reals(cd_buf *out, const char *key, const double *v, size_t n, int digits) {
    cd_buf_putf(out, "\"%s\":[", key);
    for (size_t i = 0; i < n; i++) cd_buf_putf(out, "%s%.*g", i ? "," : "", digits, v[i]);
    cd_buf_puts(out, "]");
}
