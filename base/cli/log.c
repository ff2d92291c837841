/* Messages of a command, as text or as one JSON object a line. A line is built first and written
 * with one call under a lock, so lines of several threads do not mix and a progress bar is erased
 * before them. */
#include "base/cli/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const level_name[] = {"error", "warning", "info", "debug"};
static const char *const level_colour[] = {"\033[1;31m", "\033[1;33m", "", ""};

bool cd_log_redraws(FILE *out) {
    const char *term = getenv("TERM");
    return out && term && *term && strcmp(term, "dumb") != 0 && isatty(fileno(out));
}

bool cd_log_colours(FILE *out) {
    const char *no = getenv("NO_COLOR");
    return !(no && *no) && cd_log_redraws(out);
}

void cd_log_init(cd_log *log, const char *command, FILE *out) {
    memset(log, 0, sizeof *log);
    log->command = command;
    log->out = out;
    log->level = CD_LOG_INFO;
    log->colour = cd_log_colours(out);
    pthread_mutex_init(&log->lock, NULL);
}

void cd_log_redraw(cd_log *log, const char *text, int room) {
    if (!log->out) return;
    cd_buf b = {0};
    cd_escape_terminal(&b, cd_str_of(text));
    pthread_mutex_lock(&log->lock);
    fprintf(log->out, "\r%.*s\033[K", room, b.p ? b.p : "");
    fflush(log->out);
    log->partial = true;
    pthread_mutex_unlock(&log->lock);
    cd_buf_free(&b);
}

double cd_log_every_s(const cd_log *log) {
    return log->json || log->level >= CD_LOG_DEBUG ? 10 : HUGE_VAL;
}

void cd_log_done(cd_log *log) {
    cd_buf_free(&log->kept);
    pthread_mutex_destroy(&log->lock);
}

void cd_log_put_kept(const cd_log *log, cd_buf *b) {
    cd_buf_puts(b, "[");
    if (log) cd_buf_put(b, log->kept.p ? log->kept.p : "", log->kept.n);
    if (log && log->n_kept > CD_LOG_KEPT)
        cd_buf_putf(b, ",\"and %zu more\"", log->n_kept - CD_LOG_KEPT);
    cd_buf_puts(b, "]");
    b->oom |= log && log->kept.oom;
}

/* A million bad lines must not fill the memory. */
static void keep(cd_log *log, cd_log_level level, const char *text) {
    if (!log->keep || level != CD_LOG_WARNING) return;
    pthread_mutex_lock(&log->lock);
    if (log->n_kept++ < CD_LOG_KEPT) {
        if (log->kept.n) cd_buf_puts(&log->kept, ",");
        cd_buf_put_json_str(&log->kept, text, strlen(text));
    }
    pthread_mutex_unlock(&log->lock);
}

/* Whether anybody wants messages of this level. */
static bool is_wanted(const cd_log *log, cd_log_level level) {
    return log && (level <= log->level || (log->keep && level == CD_LOG_WARNING));
}

static void plain(cd_log *log, cd_buf *b, cd_log_level level, const char *text) {
    if (*log->command) cd_buf_putf(b, "%s: ", log->command);
    const char *colour = log->colour ? level_colour[level] : "";
    if (level != CD_LOG_INFO)
        cd_buf_putf(b, "%s%s:%s ", colour, level_name[level], *colour ? "\033[0m" : "");
    cd_escape_terminal(b, cd_str_of(text));
}

static void member(cd_buf *b, const char *key, const char *text) {
    cd_buf_putf(b, "%s\"%s\":", b->n > 1 ? "," : "", key);
    cd_buf_put_json_str(b, text, strlen(text));
}

static void json(cd_log *log, cd_buf *b, cd_log_level level, const char *text,
                 const cdmpp_err *err) {
    cd_buf_puts(b, "{");
    member(b, "level", level_name[level]);
    if (*log->command) member(b, "command", log->command);
    if (err) {
        member(b, "status", cdmpp_status_name(err->code));
        if (err->path[0]) member(b, "path", err->path);
        if (err->line) cd_buf_putf(b, ",\"line\":%ld", err->line);
        if (err->key[0]) member(b, "key", err->key);
    }
    member(b, "text", text);
    cd_buf_puts(b, "}");
}

/* One call, so that lines of several threads do not mix. */
static void put(cd_log *log, cd_buf *b, const char *text) {
    cd_buf_puts(b, "\n");
    pthread_mutex_lock(&log->lock);
    if (log->partial) fputs("\r\033[K", log->out); /* the bar comes back with its next step */
    log->partial = false;
    /* Out of memory: the bare text is better than silence. */
    if (b->oom) fprintf(log->out, "%s\n", text);
    else fwrite(b->p, 1, b->n, log->out);
    fflush(log->out);
    pthread_mutex_unlock(&log->lock);
    cd_buf_free(b);
}

static void line(cd_log *log, cd_log_level level, const char *text, const cdmpp_err *err) {
    cd_buf b = {0};
    keep(log, level, text);
    if (!log->out || level > log->level) return;
    if (log->json) json(log, &b, level, text, err);
    else plain(log, &b, level, text);
    put(log, &b, text);
}

void cd_log_lines(cd_log *log, cd_log_level level, const char *text) {
    if (!log || !log->out || level > log->level) return;
    while (*text) {
        char one[2048];
        cd_buf b = {0};
        const size_t n = strcspn(text, "\n");
        snprintf(one, sizeof one, "%.*s", (int)n, text);
        if (log->json) json(log, &b, level, one, NULL);
        else cd_escape_terminal(&b, (cd_str){text, n});
        put(log, &b, one);
        text += n + (text[n] == '\n');
    }
}

void cd_log_put(cd_log *log, cd_log_level level, const char *fmt, ...) {
    char text[2048], *whole = NULL;
    va_list ap;
    if (!is_wanted(log, level)) return;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    /* long paths: the reason comes behind them */
    if (n >= (int)sizeof text && (whole = cd_mem_alloc((size_t)n + 1))) {
        va_start(ap, fmt);
        vsnprintf(whole, (size_t)n + 1, fmt, ap);
        va_end(ap);
    } else if (n >= (int)sizeof text) {
        memcpy(text + sizeof text - 4, "...", 4);
    }
    line(log, level, whole ? whole : text, NULL);
    cd_mem_free(whole);
}

void cd_log_err(cd_log *log, cd_log_level level, const cdmpp_err *err) {
    char text[640];
    if (!is_wanted(log, level)) return;
    line(log, level, cdmpp_err_format(err, text, sizeof text), err);
}
