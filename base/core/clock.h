/* The clocks that measuring code reads. Seconds. */
#ifndef CD_CLOCK_H
#define CD_CLOCK_H
#include <time.h>

/* Any clock of clock_gettime(2). */
static inline double cd_clock_read(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Wall time since an arbitrary start; never goes back. */
static inline double cd_clock_wall(void) { return cd_clock_read(CLOCK_MONOTONIC); }
/* Processor time of this process, and of the calling thread. */
static inline double cd_clock_process(void) { return cd_clock_read(CLOCK_PROCESS_CPUTIME_ID); }
static inline double cd_clock_thread(void) { return cd_clock_read(CLOCK_THREAD_CPUTIME_ID); }
#endif
