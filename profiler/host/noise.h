/* noise -- how far apart repeats of a measurement lie, and what others did to the processors
 * meanwhile: whether a figure may be written down.
 *
 *   begin ──> repeats of a figure, of another one ... ──> spread ┐ above its limit: ERANGE,
 *         └── /proc/stat, steal ────────────── end ─────> others ┘ or kept, and marked
 *
 * Spread is the largest (median over lower quartile, less 1) of the figures; others is the other
 * programs' part of the processors' time meanwhile.
 *
 * What disturbs makes a time longer, never shorter, so a figure is the fastest of its repeats or
 * near it. Where all of them were disturbed alike they lie close together: others tells that. Made
 * samples and a made share need no clock: tests set the members. One thread.
 *
 * Before a long measurement a short program says the same in a second or two (noise.c). */
#ifndef CD_NOISE_H
#define CD_NOISE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"
#include "profiler/host/host_load.h"

/* above it half of the repeats took 1.3 times as long as the fastest quarter, or more */
#define CD_NOISE_SPREAD 0.3
#define CD_NOISE_OTHERS 0.1 /* of the processors' time */

typedef struct cd_noise {
    double spread;  /* of the worst figure; 0: none was repeated */
    char worst[32]; /* which one it is */
    double others;  /* NaN: the system does not say */
    cd_host_load_mark mark;
} cd_noise;

/* From this moment on; of all processors of the machine. */
void cd_noise_begin(cd_noise *n);
/* Repeats (n_s) of a figure, in any order and unit of time; fewer than two say nothing. They are
 * sorted. n NULL: nobody asks. */
void cd_noise_repeats(cd_noise *n, const char *figure, double *seconds, size_t n_s);
/* A spread that is known already. */
void cd_noise_spread(cd_noise *n, const char *figure, double spread);
/* Until now. CDMPP_TEST_NOISE="SPREAD,OTHERS" puts made figures in the place of both (tests
 * alone). */
void cd_noise_end(cd_noise *n);
/* The worse of two, figure by figure. */
void cd_noise_join(cd_noise *n, const cd_noise *other);

/* Above one of the limits? What is not known is not above. */
bool cd_noise_is_much(const cd_noise *n);
/* "repeats lie 4 % apart at most (bandwidth), others used 2 % of the processors' time". */
void cd_noise_put(cd_buf *b, const cd_noise *n);
/* `what` may be written: it is not noisy, or kept all the same. Errors: ERANGE, with both figures,
 * their limits and `how` to keep it ("--keep-noisy"). */
cdmpp_status cd_noise_check(const cd_noise *n, bool keep, const char *what, const char *how,
                            cdmpp_err *err);

/* ---- before anything is measured ---- */
/* The same program of about two milliseconds, run again and again. */
typedef struct cd_noise_program {
    /* a tenth of the runs is faster than the first, a tenth slower than the second; 0: not known */
    double low_s, high_s;
    double noise; /* ln(mean / low_s): what others add to the time of a program */
} cd_noise_program;
/* On each of the last n processors that this thread may use (at most CD_HOST_LOAD_CORES) at the
 * same time, for `seconds`; the worst of them. Of CDMPP_TEST_NOISE the
 * SPREAD in the place of runs: from 1 ms to 1 + SPREAD ms. */
void cd_noise_program_run(int n, double seconds, cd_noise_program *out);
/* The figures of n runs, which are sorted; fewer than two say nothing. */
void cd_noise_program_of(double *run_s, size_t n, cd_noise_program *out);
/* Errors: ERANGE, as a sentence: the noise is above `most`, and not kept. */
cdmpp_status cd_noise_program_check(const cd_noise_program *p, double most, bool keep,
                                    cdmpp_err *err);
#endif
