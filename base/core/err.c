/* Statuses and errors. One table (CDMPP_STATUS_MAP in cdmpp.h) gives names, texts and exit codes.
 * An error is a plain struct of the caller: raising one allocates nothing, so it works when memory
 * is short. */
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

#define LONGEST    4500 /* a path of Linux and the words about it */
#define LEAST_PATH 30   /* letters of a path that stay in a message, however short */

int cdmpp_exit_code(cdmpp_status st) {
    return (unsigned)st < CDMPP_STATUS_COUNT ? status_tab[st].exitcode : 1;
}

const char *cdmpp_status_name(cdmpp_status st) {
    return (unsigned)st < CDMPP_STATUS_COUNT ? status_tab[st].name : "?";
}

const char *cdmpp_version(void) { return CDMPP_VERSION; }

void cd_err_raise(cdmpp_err *err, cdmpp_status code, const char *src, int src_line, const char *fmt,
                  ...) {
    if (!err) return;
    char text[LONGEST];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap); /* first: it may quote what *err says */
    va_end(ap);
    memset(err, 0, sizeof *err);
    err->code = code;
    err->src = src;
    err->src_line = src_line;
    cd_str_shorten(text, sizeof err->msg - 1);
    memcpy(err->msg, text, strlen(text) + 1);
}

/* Put `head` in front of err->key, joined by `sep`; drop it if it won't fit. */
static void prefix_key(cdmpp_err *err, const char *head, const char *sep) {
    char joined[sizeof err->key + 64];
    const size_t n =
        (size_t)snprintf(joined, sizeof joined, "%s%s%s", head, err->key[0] ? sep : "", err->key);
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
    if (err->path[0] || !path) return;
    char text[LONGEST];
    const size_t n = strlen(path), cap = sizeof text - 1; /* of a longer one the end says more */
    snprintf(text, sizeof text, "%s", n > cap ? path + n - cap : path);
    cd_str_cut_middle(text, sizeof err->path - 1);
    memcpy(err->path, text, strlen(text) + 1);
}

/* What does not fit is taken from the path: the reason has to survive. */
char *cdmpp_err_format(const cdmpp_err *e, char *buf, size_t n) {
    char path[sizeof e->path], line[32] = "", rest[sizeof e->key + sizeof e->msg + 64],
                               all[sizeof path + sizeof line + sizeof rest];
    if (!n) return buf;
    if (e->path[0] && e->line) snprintf(line, sizeof line, ":%ld", e->line);
    snprintf(rest, sizeof rest, "%s%s%s%s%s [%s]", line, e->path[0] ? ": " : "", e->key,
             e->key[0] ? ": " : "",
             e->msg[0] ? e->msg : status_tab[e->code < CDMPP_STATUS_COUNT ? e->code : 0].text,
             cdmpp_status_name(e->code));
    const size_t left = n > strlen(rest) ? n - 1 - strlen(rest) : 0;
    memcpy(path, e->path, sizeof path);
    cd_str_cut_middle(path, left > LEAST_PATH ? left : LEAST_PATH);
    snprintf(all, sizeof all, "%s%s", path, rest);
    cd_str_shorten(all, n - 1);
    memcpy(buf, all, strlen(all) + 1);
    return buf;
}
