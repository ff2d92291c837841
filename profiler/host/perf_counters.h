/* perfcount -- cycles, instructions and cache misses of this process, where the system lets it count.
 *
 * Absence is normal (containers, virtual machines, perf_event_paranoid): every figure is then
 * negative. One thread opens, starts and stops; threads begun in between are counted too. */
#ifndef CD_PERFCOUNT_H
#define CD_PERFCOUNT_H

enum { CD_PERF_CYCLES, CD_PERF_INSTRUCTIONS, CD_PERF_CACHE_MISSES, CD_PERF_COUNT };
typedef struct cd_perfcount {
    int fd[CD_PERF_COUNT];      /* -1: not to be had */
} cd_perfcount;

void cd_perfcount_open(cd_perfcount *p);
void cd_perfcount_close(cd_perfcount *p);
void cd_perfcount_start(cd_perfcount *p);
/* Since start; -1: not counted. */
void cd_perfcount_stop(cd_perfcount *p, double value[CD_PERF_COUNT]);
#endif
