/* train_progress -- how far a training is: one line on a terminal, a log where one is asked for.
 *
 *   terminal   rows 123/300 0.0123 | program 98/300 0.0234 | 412k samples/s | ETA 0:20
 *              redrawn at most 5 times a second, cut to the terminal's width
 *   JSON       0:12 rows: round 123/300, loss 0.0101 train, 0.0123 validation; 412k samples/s, ETA 0:20
 *              at most every 10 s, append-only; off a terminal without JSON nothing
 *   verbose    the second form for every step, on a terminal too
 *
 *   (1) a sample is one program in one step; the rate is over the whole training so far,
 *       from the first call on, so that loading the data does not count;
 *   (2) ETA takes it that every member uses all its steps: early stopping is sooner, and
 *       members that have not begun are taken to be like the latest one;
 *   (3) below the INFO level there is nothing.
 * For commands. Any thread may step. */
#ifndef CD_TRAIN_PROGRESS_H
#define CD_TRAIN_PROGRESS_H
#include "base/cli/cli.h"
#include "learner/fit/fit.h"

enum { CD_TRAIN_PROGRESS_MEMBERS = 64 };

typedef struct cd_train_progress_member {
    char name[24];
    cd_progress_event last;            /* its names are not used */
} cd_train_progress_member;

typedef struct cd_train_progress {
    cd_log *log;             /* borrowed */
    bool tty;
    int width;               /* of the terminal, columns */
    double every_s;          /* between two lines; infinite: none */
    bool begun;
    double begin_s, shown_s; /* monotonic clock */
    double begin_sample;     /* what the first call had done: not timed */
    size_t n_member;         /* further ones are not shown */
    cd_train_progress_member member[CD_TRAIN_PROGRESS_MEMBERS];
    pthread_mutex_t lock;
} cd_train_progress;

/* `log` is borrowed until the end. */
void cd_train_progress_begin(cd_train_progress *p, cd_log *log);
/* One event, at the present time. */
void cd_train_progress_step(cd_train_progress *p, const cd_progress_event *t);
/* Takes the line away and reports samples, time and rate, when there was a step. */
void cd_train_progress_end(cd_train_progress *p);

/* ---- exposed to be tested ---- */
void cd_train_progress_step_at(cd_train_progress *p, const cd_progress_event *t, double now_s);
double cd_train_progress_rate(const cd_train_progress *p, double now_s); /* samples/s; 0: not known */
double cd_train_progress_eta(const cd_train_progress *p, double now_s);  /* s; NaN: not known */
#endif
