/* host_load -- what others leave of some processors: now, by running there, and over a time, by
 * what the system counted.
 *
 *   probe    a thread on each processor that only reads the clock: a jump of the clock is a time
 *            slice of somebody else
 *   since    /proc/stat less what this process and its children used; steal of a virtual machine
 *            counts as others'
 *
 * Seconds. Any thread; the probe begins threads of its own and ends them. */
#ifndef CD_HOST_LOAD_H
#define CD_HOST_LOAD_H

enum { CD_HOST_LOAD_CORES = 8 };
#define CD_HOST_LOAD_LOOK_S 0.2 /* of a probe before a run */
/* a processor that is left to us by more than this counts as ours: the system itself uses some */
#define CD_HOST_LOAD_IDLE 0.9
/* of the processors' time: more than this used by others, and a measurement was disturbed */
#define CD_HOST_LOAD_LIMIT 0.05

/* share (n), 0..1: of each processor's time, what a busy thread gets there. All at once, for about
 * `seconds`. A processor (-1: any) that cannot be used has share 1. Returns how many could not. */
unsigned cd_host_load_probe(const int *core, unsigned n, double seconds, double *share);

/* The least share that is left of the last n processors that this thread may use (at most
 * CD_HOST_LOAD_CORES of them), probed for CD_HOST_LOAD_LOOK_S. */
double cd_host_load_left(int n);

typedef struct cd_host_load_mark {
    int core[CD_HOST_LOAD_CORES];
    unsigned n; /* 0: all processors */
    double wall_s, busy_s, own_s;
} cd_host_load_mark;
/* Mark this moment. More than CD_HOST_LOAD_CORES: all processors. All time of this process counts
 * as used on these: a process whose threads run elsewhere too marks all. */
void cd_host_load_begin(cd_host_load_mark *m, const int *core, unsigned n);
/* 0..1: the part of these processors' time since then that others used; NaN: the system does not
 * say, or no time passed. */
double cd_host_load_since(const cd_host_load_mark *m);

/* From a text as /proc/stat is: mean busy seconds of a processor of these (n 0: all), with `hz`
 * ticks a second. NaN: one of them is not in it. */
double cd_host_load_busy(const char *stat, const int *core, unsigned n, double hz);
#endif
