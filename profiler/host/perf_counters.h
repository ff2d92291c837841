/* perf_counters -- cycles, instructions and cache misses of this process, where the system allows it.
 *
 * Absence is normal (containers, virtual machines, perf_event_paranoid): every figure is then
 * negative. One thread opens, starts and stops; threads begun in between are counted too. */
#ifndef CD_PERF_COUNTERS_H
#define CD_PERF_COUNTERS_H

enum { CD_PERF_CYCLES, CD_PERF_INSTRUCTIONS, CD_PERF_CACHE_MISSES, CD_PERF_COUNT };
typedef struct cd_perf_counters {
    int fd[CD_PERF_COUNT];      /* -1: not allowed here */
} cd_perf_counters;

/* Open and close the counters; count from now on. None of them fails. */
void cd_perf_counters_open(cd_perf_counters *p);
void cd_perf_counters_close(cd_perf_counters *p);
void cd_perf_counters_start(cd_perf_counters *p);
/* Since start; -1: not counted. */
void cd_perf_counters_stop(cd_perf_counters *p, double value[CD_PERF_COUNT]);
#endif
