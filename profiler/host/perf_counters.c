/* Counts by Linux's perf_event_open. A counter that cannot be opened stays -1: that is the usual
 * case in containers, and no reason to fail. */
#include "profiler/host/host.h"

#include <stdint.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

static int open_one(uint32_t type, uint64_t config) {
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.size = sizeof a;
    a.type = type;
    a.config = config;
    a.disabled = 1;
    a.inherit = 1;
    a.exclude_kernel = 1;
    a.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Reads of a cache that were not in it. */
static uint64_t misses(uint64_t cache) {
    return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
}

void cd_perf_counters_open(cd_perf_counters *p) {
    p->fd[CD_PERF_CYCLES] = open_one(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    p->fd[CD_PERF_INSTRUCTIONS] = open_one(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
    p->fd[CD_PERF_CACHE_MISSES] = open_one(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES);
    p->fd[CD_PERF_L1_MISSES] = open_one(PERF_TYPE_HW_CACHE, misses(PERF_COUNT_HW_CACHE_L1D));
    p->fd[CD_PERF_BRANCH_MISSES] = open_one(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
    p->fd[CD_PERF_TLB_MISSES] = open_one(PERF_TYPE_HW_CACHE, misses(PERF_COUNT_HW_CACHE_DTLB));
}

void cd_perf_counters_start(cd_perf_counters *p) {
    for (int k = 0; k < CD_PERF_COUNT; k++) {
        if (p->fd[k] < 0) continue;
        (void)ioctl(p->fd[k], PERF_EVENT_IOC_RESET, 0);
        (void)ioctl(p->fd[k], PERF_EVENT_IOC_ENABLE, 0);
    }
}

void cd_perf_counters_stop(cd_perf_counters *p, double value[CD_PERF_COUNT]) {
    for (int k = 0; k < CD_PERF_COUNT; k++) {
        uint64_t n = 0;
        value[k] = -1;
        if (p->fd[k] < 0) continue;
        (void)ioctl(p->fd[k], PERF_EVENT_IOC_DISABLE, 0);
        /* 0: the counter never ran */
        if (read(p->fd[k], &n, sizeof n) == (ssize_t)sizeof n && n) value[k] = (double)n;
    }
}
#else
void cd_perf_counters_open(cd_perf_counters *p) {
    for (int k = 0; k < CD_PERF_COUNT; k++) p->fd[k] = -1;
}
void cd_perf_counters_start(cd_perf_counters *p) { (void)p; }
void cd_perf_counters_stop(cd_perf_counters *p, double value[CD_PERF_COUNT]) {
    (void)p;
    for (int k = 0; k < CD_PERF_COUNT; k++) value[k] = -1;
}
#endif

void cd_perf_counters_close(cd_perf_counters *p) {
    for (int k = 0; k < CD_PERF_COUNT; k++)
        if (p->fd[k] >= 0) close(p->fd[k]);
}
