/* Messages of a command to its user, on standard error.
 *
 *   cdmpp-extract: warning: a.json:3: i[1][1][4]: ... [EPARSE]
 *   {"level":"warning","command":"cdmpp-extract","text":"a.json:3: ..."}   (json)
 *
 * For commands only: the library never prints. The state is a struct that main()
 * owns and passes down; one log may be used by many threads, a line is written
 * with one call, so lines never mix. */
#ifndef CD_LOG_H
#define CD_LOG_H
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/core/core.h"

typedef enum cd_log_level { CD_LOG_ERROR, CD_LOG_WARNING, CD_LOG_INFO, CD_LOG_DEBUG } cd_log_level;

typedef struct cd_log {
    const char *command; /* shown first; "" for none. Borrowed */
    FILE *out;           /* borrowed */
    cd_log_level level;  /* messages above it are dropped: --quiet ERROR, --verbose DEBUG */
    bool json;           /* one JSON object a line */
    pthread_mutex_t lock;
    bool partial;        /* the cursor stands behind a progress bar */
    bool colour;         /* "error:" and "warning:" stand out */
} cd_log;

/* May `out` carry a line that redraws itself: a terminal that is not dumb? And colours:
 * the same without NO_COLOR (no-color.org)? */
bool cd_log_redraws(FILE *out);
bool cd_log_colours(FILE *out);
/* A line in place of the last one that was drawn, cut to `room` bytes; the next message takes it away. */
void cd_log_redraw(cd_log *log, const char *text, int room);

/* Plain lines up to INFO, in colour where cd_log_colours. */
void cd_log_init(cd_log *log, const char *command, FILE *out);
void cd_log_done(cd_log *log); /* frees nothing but the lock */
/* Of these three a log of NULL is fine: the line is dropped. A text that does not fit 2 kB is cut and ends in "...". */
void cd_log_put(cd_log *log, cd_log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Seconds between two lines of progress where no line can be redrawn: 10 in JSON and when
 * verbose, else for ever, so that a log has results only. */
double cd_log_every_s(const cd_log *log);
/* The error in cdmpp_err_format's form; in JSON also its parts. */
void cd_log_err(cd_log *log, cd_log_level level, const cdmpp_err *err);
/* Lines that need no prefix: written as they are, in JSON one object each. */
void cd_log_lines(cd_log *log, cd_log_level level, const char *text);
#endif
