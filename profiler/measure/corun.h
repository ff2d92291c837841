/* corun -- two compiled C programs at the same time: how much does each slow the other down?
 *
 *   round:  first alone | second alone | both          three windows of the same length, `rounds` times
 *
 *   disjoint   first  on the last n processors, second on the n before: they share caches and memory
 *   shared     both on the last n: they share these too
 *
 *   (1) each program lives in a process of its own for all windows: loaded once, its data warm;
 *   (2) a time is the length of a window over the runs that began in it, and a program goes on running until the
 *       other one's window is over too: neither is measured for a moment in which the other one does not run;
 *   (3) figures are medians over the rounds; slowdown = corun / solo, each of its own program;
 *   (4) a program that crashes (4), takes longer than limit_s (7) or writes outside of its buffers (4) is
 *       an error number of the pair, as in measure.h; both processes are ended;
 *   (5) the processes end with the one that began them.
 * Needs 2 n processors for disjoint ones. Call it before any use of OpenMP here: it forks. One thread. */
#ifndef CD_CORUN_H
#define CD_CORUN_H
#include <signal.h>

#include "profiler/backend/backend.h"

typedef enum cd_corun_sharing { CD_CORUN_DISJOINT, CD_CORUN_SHARED } cd_corun_sharing;
#define CD_CORUN_SHARINGS "disjoint|shared"

typedef struct cd_corun_policy {
    cd_corun_sharing sharing;
    int threads;                /* of each program; 0: 1 */
    double window_s;            /* 0: 0.1 */
    unsigned rounds;            /* 0: 3; at most CD_CORUN_ROUNDS */
    double limit_s;             /* for loading, and for a window beyond its length; 0: 10 */
    const volatile sig_atomic_t *stop; /* NULL: never */
} cd_corun_policy;
#define CD_CORUN_ROUNDS 32

typedef struct cd_corun_pair {
    double solo_s[2], corun_s[2], slowdown[2]; /* seconds of a run */
    double spread;              /* largest relative difference between rounds of a time alone */
    int error_no;               /* 0: the figures are there */
    int at;                     /* whose error it is: 0, 1 */
    cdmpp_err err;
} cd_corun_pair;

/* Programs first and second, built (object: a path). Errors: EUSAGE (too few processors), EINTERRUPTED, EIO
 * (no process), ENOMEM. What a program does wrong is in *out. */
cdmpp_status cd_corun_run(const cd_build *first, const cd_build *second, const cd_corun_policy *p, cd_corun_pair *out, cdmpp_err *err);

/* Bytes of a program's parameters: what it must at least read and write. */
int64_t cd_corun_bytes(const cd_codegen_code *code);
#endif
