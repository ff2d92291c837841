/* quiet -- does this processor run as fast as it can, and is it ours alone?
 *
 *   a loop of known work      quiet: best_s     other load, less frequency: longer
 *
 * The loop adds and multiplies in registers, as much at once as the core can: its time depends on the
 * frequency, on who else runs here and on who shares the core, on nothing else. `best_s` is the fastest that was ever seen, here or by whoever
 * passes it on. One thread. */
#ifndef CD_NOISE_PROBE_H
#define CD_NOISE_PROBE_H
#include <stdbool.h>

#define CD_QUIET_LIMIT 1.05 /* a slower loop than this means that something is going on */

typedef struct cd_noise_probe {
    double best_s;              /* of CD_QUIET_WORK rounds; 0: not known yet */
} cd_noise_probe;

/* The fastest of some milliseconds of loops, if that is faster than best_s. */
void cd_noise_probe_calibrate(cd_noise_probe *q);
/* The middle one of five loops over best_s: about 1 where it is quiet. Takes half a millisecond. */
double cd_noise_probe_ratio(cd_noise_probe *q);

/* Time that this process wanted to run and did not: marks a moment, later tells whether more than
 * `share` of what went by since then was lost. With several threads: whether one was ever put
 * off a processor. */
typedef struct cd_noise_probe_mark {
    double wall_s, cpu_s;
    long switches;
} cd_noise_probe_mark;
void cd_noise_probe_begin(cd_noise_probe_mark *m);
bool cd_noise_probe_lost(const cd_noise_probe_mark *m, int threads, double share);
#endif
