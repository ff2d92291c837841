/* How far a long command is.
 *
 *   [############..................]  41 %  1234/3000 files  88.1 files/s  ETA 0:20
 *
 * On a terminal (not a dumb one) one line is redrawn. Elsewhere nothing, but with JSON
 * logging and when verbose a line every 10 s. Nothing below the INFO level. Any thread may step. */
#ifndef CD_PROGRESS_H
#define CD_PROGRESS_H
#include <stdint.h>

#include "base/cli/log.h"

typedef struct cd_progress {
    cd_log *log;
    const char *what, *unit; /* borrowed */
    uint64_t done, total;    /* total 0: unknown, no bar and no ETA */
    double begin_s, shown_s; /* monotonic clock */
    double every_s;          /* between two lines; infinite: none */
    bool tty;
    pthread_mutex_t lock;
} cd_progress;

/* Starts the clock. `what` and `unit` are borrowed, total 0: unknown. */
void cd_progress_begin(cd_progress *p, cd_log *log, const char *what, const char *unit, uint64_t total);
/* `done` is the count so far, not an increment; a smaller one than before is ignored. */
void cd_progress_step(cd_progress *p, uint64_t done);
/* Removes the bar and reports count, time and rate. */
void cd_progress_end(cd_progress *p);
/* A time as 0:20 or 1:02:03; "?" for NaN. */
void cd_progress_put_time(cd_buf *b, double s);
/* The line itself, for `done` after `elapsed_s`; exposed to be tested. */
void cd_progress_text(const cd_progress *p, double elapsed_s, char *buf, size_t n);
#endif
