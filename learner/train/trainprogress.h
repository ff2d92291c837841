/* trainprogress -- how far a training is: one line on a terminal, a log where one is asked for.
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
#ifndef CD_TRAINPROGRESS_H
#define CD_TRAINPROGRESS_H
#include "base/cli/cli.h"
#include "learner/fit/fit.h"

enum { CD_TRAINPROGRESS_MEMBERS = 64 };

typedef struct cd_trainprogress_member {
    char name[24];
    cd_progress_event last;            /* its names are not used */
} cd_trainprogress_member;

typedef struct cd_trainprogress {
    cd_log *log;             /* borrowed */
    bool tty;
    int width;               /* of the terminal, columns */
    double every_s;          /* between two lines; infinite: none */
    bool begun;
    double begin_s, shown_s; /* monotonic clock */
    double begin_sample;     /* what the first call had done: not timed */
    size_t n_member;         /* further ones are not shown */
    cd_trainprogress_member member[CD_TRAINPROGRESS_MEMBERS];
    pthread_mutex_t lock;
} cd_trainprogress;

void cd_trainprogress_begin(cd_trainprogress *p, cd_log *log);
void cd_trainprogress_step(cd_trainprogress *p, const cd_progress_event *t);
/* Takes the line away and reports samples, time and rate, when there was a step. */
void cd_trainprogress_end(cd_trainprogress *p);

/* ---- exposed to be tested ---- */
void cd_trainprogress_step_at(cd_trainprogress *p, const cd_progress_event *t, double now_s);
double cd_trainprogress_rate(const cd_trainprogress *p, double now_s); /* samples/s; 0: not known */
double cd_trainprogress_eta(const cd_trainprogress *p, double now_s);  /* s; NaN: not known */
#endif
