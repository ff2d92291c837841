/* Statuses and errors. One table (CDMPP_STATUS_MAP in cdmpp.h) gives names, texts and exit codes. An error is a plain
 * struct of the caller: raising one allocates nothing, so it works when memory is short. */
#include "base/core/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exitcode;
    const char *text;
} status_tab[CDMPP_STATUS_COUNT] = {
#define CDMPP_X(name, exitcode, text) [CDMPP_##name] = {#name, exitcode, text},
    CDMPP_STATUS_MAP(CDMPP_X)
#undef CDMPP_X
};

int cdmpp_exit_code(cdmpp_status st) {
    return (unsigned)st < CDMPP_STATUS_COUNT ? status_tab[st].exitcode : 1;
}

const char *cdmpp_status_name(cdmpp_status st) {
    return (unsigned)st < CDMPP_STATUS_COUNT ? status_tab[st].name : "?";
}

const char *cdmpp_version(void) { return CDMPP_VERSION; }

void cd_err_raise(cdmpp_err *err, cdmpp_status code, const char *src,
                  int src_line, const char *fmt, ...) {
    if (!err) return;
    memset(err, 0, sizeof *err);
    err->code = code;
    err->src = src;
    err->src_line = src_line;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
}

/* Put `head` in front of err->key, joined by `sep`; drop it if it won't fit. */
static void prefix_key(cdmpp_err *err, const char *head, const char *sep) {
    char joined[sizeof err->key + 64];
    const size_t n = (size_t)snprintf(joined, sizeof joined, "%s%s%s", head,
                                      err->key[0] ? sep : "", err->key);
    if (n < sizeof err->key) memcpy(err->key, joined, n + 1);
}

void cd_err_add_key(cdmpp_err *err, const char *key) {
    prefix_key(err, key, err->key[0] == '[' ? "" : ".");
}

void cd_err_add_index(cdmpp_err *err, size_t i) {
    char head[32];
    snprintf(head, sizeof head, "[%zu]", i);
    prefix_key(err, head, err->key[0] == '[' ? "" : ".");
}

void cd_err_add_place(cdmpp_err *err, const char *path, long line) {
    if (!err->line) err->line = line;
    if (!err->path[0] && path) {
        const size_t n = strlen(path), cap = sizeof err->path - 1;
        snprintf(err->path, sizeof err->path, "%s", n > cap ? path + n - cap : path);
    }
}

char *cdmpp_err_format(const cdmpp_err *e, char *buf, size_t n) {
    char at[240] = "";
    if (e->path[0] && e->line) snprintf(at, sizeof at, "%s:%ld: ", e->path, e->line);
    else if (e->path[0]) snprintf(at, sizeof at, "%s: ", e->path);
    snprintf(buf, n, "%s%s%s%s [%s]", at, e->key, e->key[0] ? ": " : "",
             e->msg[0] ? e->msg : status_tab[e->code < CDMPP_STATUS_COUNT ? e->code : 0].text,
             cdmpp_status_name(e->code));
    return buf;
}
