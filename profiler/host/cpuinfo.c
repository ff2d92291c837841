/* What the system says of its processors, or what a test puts in its place. Everything that asks
 * which processor this is reads it here, so that one hook simulates another one for all. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/host/host.h"

enum { LINE = 8192, MOST = 1 << 16 };
static const char flags[] = "flags";

static const char *simulated(void) {
    const char *path = getenv("CDMPP_TEST_CPU");
    return path && path[0] ? path : NULL;
}

static void leave_trace(void) {
    const char *path = getenv("CDMPP_TEST_CPU_TRACE");
    const int fd = path && path[0] ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) (void)close(fd);
}

bool cd_cpuinfo_is_simulated(void) {
    leave_trace();
    return simulated() != NULL;
}

static bool is_flags(const char *line) { return !strncmp(line, flags, sizeof flags - 1); }

bool cd_cpuinfo_has(const char *lines, const char *word) {
    static const char *const list[] = {flags, "Features"};
    const size_t n = strlen(word);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *line = strstr(lines, list[i]);
        const char *end = line ? line + strcspn(line, "\n") : NULL;
        for (const char *at = line; at && (at = strstr(at, word)) && at < end; at += n)
            if (at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n' || !at[n])) return true;
    }
    return false;
}

/* The flags of the first processor here; "": the system does not say. */
static void flags_here(char line[LINE]) {
    FILE *f = fopen("/proc/cpuinfo", "r");
    line[0] = 0;
    while (f && fgets(line, LINE, f) && !is_flags(line)) line[0] = 0;
    if (f) (void)fclose(f);
}

/* The words of a line of flags that are among those of `here` too. */
static void put_common(FILE *to, char *line, const char *here) {
    char *rest = NULL;
    const size_t head = strcspn(line, ":");
    if (line[head] != ':') return;
    (void)fprintf(to, "%.*s:", (int)head, line);
    for (char *w = strtok_r(line + head + 1, " \t\n", &rest); w; w = strtok_r(NULL, " \t\n", &rest))
        if (cd_cpuinfo_has(here, w)) (void)fprintf(to, " %s", w);
    (void)fputc('\n', to);
}

static FILE *simulate(const char *path) {
    char line[LINE], here[LINE];
    FILE *from = fopen(path, "r"), *to = from ? fmemopen(NULL, MOST, "w+") : NULL;
    flags_here(here);
    while (to && fgets(line, sizeof line, from)) {
        if (is_flags(line)) put_common(to, line, here);
        else (void)fputs(line, to);
    }
    if (from) (void)fclose(from);
    if (to) rewind(to);
    return to;
}

FILE *cd_cpuinfo_open(const char *root) {
    char path[512];
    if (!root[0]) leave_trace();
    if (!root[0] && simulated()) return simulate(simulated());
    return snprintf(path, sizeof path, "%s/proc/cpuinfo", root) < (int)sizeof path
               ? fopen(path, "r")
               : NULL;
}
