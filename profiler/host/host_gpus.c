/* GPUs by what NVIDIA's driver leaves under /proc: no driver library is loaded, which would take a
 * second. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/host/host.h"

/* "Model: \t\t NVIDIA H200" of one board's file; false: it has no such line. */
static bool read_model(const char *path, char *to, size_t n) {
    char line[256];
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, "Model:", 6) != 0) continue;
        const char *at = line + 6 + strspn(line + 6, " \t");
        (void)snprintf(to, n, "%.*s", (int)strcspn(at, "\n"), at);
        found = to[0] != 0;
    }
    if (f) (void)fclose(f);
    return found;
}

static int no_dots(const struct dirent *e) { return e->d_name[0] != '.'; }

size_t cd_host_gpus_read(const char *root, cd_host_gpu *out, size_t cap) {
    char folder[512], path[800];
    struct dirent **name = NULL;
    size_t n = 0;
    (void)snprintf(folder, sizeof folder, "%s/proc/driver/nvidia/gpus", root);
    const int all = scandir(folder, &name, no_dots, alphasort);
    for (int k = 0; k < all; k++) {
        (void)snprintf(path, sizeof path, "%s/%.200s/information", folder, name[k]->d_name);
        if (n < cap && read_model(path, out[n].name, sizeof out[n].name)) n++;
        free(name[k]);
    }
    free(name);
    return n;
}
