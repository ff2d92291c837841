/* Processor time of processes with what they waited for: of a measurement that runs in processes of
 * its own, none of it is in CLOCK_PROCESS_CPUTIME_ID. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "profiler/host/host.h"

/* /proc/PID/stat: the name is in brackets and may hold any character. utime, stime, cutime and
 * cstime are the 14th to 17th fields; the state behind the name is the 3rd. */
double cd_process_time_of(pid_t pid) {
    char path[64], text[1024];
    double tick[4] = {0};
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) (void)fclose(f);
    text[n] = 0;
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lf %lf %lf %lf",
                      &tick[0], &tick[1], &tick[2], &tick[3]) != 4)
        return 0;
    return (tick[0] + tick[1] + tick[2] + tick[3]) / (double)sysconf(_SC_CLK_TCK);
}

static double seconds_of(const struct timeval *t) {
    return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

double cd_process_time_own(void) {
    static const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double sum = 0;
    for (int k = 0; k < 2; k++) {
        struct rusage u;
        if (!getrusage(who[k], &u)) sum += seconds_of(&u.ru_utime) + seconds_of(&u.ru_stime);
    }
    return sum;
}
