/* noise_probe -- does this processor run as fast as it can, and is it ours alone?
 *
 *   a loop of known work      quiet: best_s     other load, less frequency: longer
 *
 * The loop adds and multiplies in registers, as much at once as the core can. Its time depends on the frequency and on other programs on
 * this core, on nothing else. `best_s` is the fastest loop ever seen; it is passed from process to process. One thread. */
#ifndef CD_NOISE_PROBE_H
#define CD_NOISE_PROBE_H
#include <stdbool.h>

#define CD_QUIET_LIMIT 1.05 /* a slower loop than this means that the machine is not quiet */

typedef struct cd_noise_probe {
    double best_s;              /* of one loop; 0: not known yet */
} cd_noise_probe;

/* The fastest of some milliseconds of loops, if that is faster than best_s. */
void cd_noise_probe_calibrate(cd_noise_probe *q);
/* The middle one of five loops over best_s: about 1 where it is quiet. Takes half a millisecond. */
double cd_noise_probe_ratio(cd_noise_probe *q);

/* Time in which this process was ready but did not run. */
typedef struct cd_noise_probe_mark {
    double wall_s, cpu_s;
    long switches;
} cd_noise_probe_mark;
/* Mark this moment. */
void cd_noise_probe_begin(cd_noise_probe_mark *m);
/* Was more than `share` of the time since then lost? With several threads: was any of them taken off its processor? */
bool cd_noise_probe_lost(const cd_noise_probe_mark *m, int threads, double share);
#endif
