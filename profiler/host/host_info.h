/* host_info -- the machine that a measurement is made on, and what makes times on it unsteady.
 *
 *   /proc/cpuinfo  /proc/loadavg  /proc/stat  /sys/devices/system/cpu  /sys/fs/cgroup  ->  cd_host_info
 *
 * Everything that cannot be read is unknown: "" or a negative number, never an error. `root` is
 * put before each path: "" for this machine, a folder in tests. No state, any thread. */
#ifndef CD_HOST_INFO_H
#define CD_HOST_INFO_H

#include "base/core/core.h"

typedef struct cd_host_info {
    char cpu[96], kernel[64];
    char governor[32];          /* of the first processor, "performance" */
    int n_cpu, n_allowed;       /* online; those that this process may use */
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* of one cache */
    double mhz, max_mhz;        /* now; the largest that the processor reports */
    int turbo;                  /* 0, 1, -1 */
    double load;                /* of the last minute */
    double cgroup_cpus;         /* how many the group may use; 0: all */
    int64_t memory_bytes, available_bytes;
    bool virtual_machine;
} cd_host_info;

/* Processor time since the start of the machine, in ticks: take it before and after. */
typedef struct cd_host_time {
    int64_t total, idle, steal; /* -1: unknown */
} cd_host_time;

/* Never fails: what cannot be read is unknown. */
void cd_host_info_read(const char *root, cd_host_info *out);
/* As above, of the processors' time. */
void cd_host_time_read(const char *root, cd_host_time *out);
/* The first line `name` of /proc/cpuinfo: "vendor_id", "cpu family". False: there is none, `to` (n bytes) is "". */
bool cd_host_info_field(const char *root, const char *name, char *to, size_t n);
/* One JSON object; unknown members are left out. */
void cd_host_info_json(cd_buf *b, const cd_host_info *h);
/* What makes times of `threads` threads unsteady here, "; " between; nothing: "". */
void cd_host_info_warnings(cd_buf *b, const cd_host_info *h, int threads);
#endif
