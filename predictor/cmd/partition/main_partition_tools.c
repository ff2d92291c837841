/* What the verbs of cdmpp-partition share: ending, numbers of options, units. */
#include "predictor/cmd/partition/main_partition_tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cd_partition_finish(cd_command_run *f, cdmpp_status st, const cdmpp_err *err, bool bad) {
    if (st) cd_log_err(&f->log, CD_LOG_ERROR, err);
    cd_command_end(f);
    return st ? cdmpp_exit_code(st) : bad ? 3 : 0;
}

cdmpp_status cd_partition_print_result(bool json, const char *schema, cd_buf *b, cdmpp_err *err) {
    cd_buf all = {0};
    if (!json) return cd_command_print(b, err);
    cd_command_json(&all, schema, "cdmpp-partition", b);
    return cd_command_print(&all, err);
}

cdmpp_status cd_partition_number(const char *option, const char *text, double lo, double hi, double *out, cdmpp_err *err) {
    char *end;
    if (!text) return CDMPP_OK;
    const double v = strtod(text, &end);
    if (end == text || *end || !(v >= lo && v <= hi)) return CD_FAIL(err, EUSAGE, "--%s: expected a number in %g..%g, found '%.60s'", option, lo, hi, text);
    *out = v;
    return CDMPP_OK;
}

static void key_of(cd_buf *b, const char *key) {
    const char last = b->n ? b->p[b->n - 1] : '{';
    cd_buf_putf(b, "%s\"%s\":", last == '{' || last == '[' ? "" : ",", key);
}

void cd_partition_put(cd_buf *b, const char *key, double v) {
    key_of(b, key);
    cd_buf_put_json_real(b, v);
}

void cd_partition_put_text(cd_buf *b, const char *key, const char *s) {
    key_of(b, key);
    if (s) cd_buf_put_json_str(b, s, strlen(s));
    else cd_buf_puts(b, "null");
}

/* At most 16 characters. */
static void seconds_text(char *out, size_t n, double s) {
    static const char *const unit[] = {"ns", "us", "ms", "s"};
    int k = 3;
    double v = s;
    while (k && v < 0.9995) v *= 1000, k--;
    if (s == 0) k = 1;
    if (isfinite(s)) snprintf(out, n, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, unit[k]);
    else snprintf(out, n, "-");
}

void cd_partition_seconds(cd_buf *b, double s) {
    char text[64];
    seconds_text(text, sizeof text, s);
    cd_buf_putf(b, "%9s", text);
}

void cd_partition_seconds_short(cd_buf *b, double s) {
    char text[64];
    seconds_text(text, sizeof text, s);
    cd_buf_puts(b, text);
}

void cd_partition_bytes(cd_buf *b, double bytes) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int k = 0;
    for (; bytes >= 1024 && k < 4; k++) bytes /= 1024;
    cd_buf_putf(b, "%.4g %s", bytes, unit[k]);
}
