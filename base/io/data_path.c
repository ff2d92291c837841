/* Finds files that come with the programs. The place of the running program decides, not a path that was fixed at
 * build time, so an installed tree can be moved and a build finds the files of its checkout. */
#include "base/io/io.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Length of `path` without its last `up` names, up to and with the slash; 0: it has fewer names. */
static size_t above(const char *path, int up) {
    size_t n = strlen(path);
    for (; up; up--) {
        while (n && path[n - 1] != '/') n--;
        if (n && up > 1) n--;
    }
    return n;
}

const char *cd_data_path_find(cd_arena *a, const char *name) {
    static const struct {
        int up;
        const char *below;
    } root[] = {{2, "share/cdmpp/"},
                {1, ""},
                {3, ""}}; /* PREFIX/bin/PROGRAM, beside it, CHECKOUT/build/MODE/PROGRAM */
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    const size_t cap = strlen(self) + strlen(name) + 32;
    char *p = cd_arena_alloc(a, cap, 1);
    for (size_t i = 0; p && i < sizeof root / sizeof *root; i++) {
        snprintf(p, cap, "%.*s%s%s", (int)above(self, root[i].up), self, root[i].below, name);
        if (access(p, R_OK) == 0) return p;
    }
    return NULL;
}

const char *cd_data_path_or(cd_arena *a, const char *folder, const char *path) {
    const size_t n = strlen(folder);
    const char *bare = !strncmp(path, folder, n) && path[n] == '/' ? path + n + 1 : path;
    if (access(path, R_OK) == 0 || strchr(bare, '/') || !*bare) return path;
    const size_t cap = n + strlen(bare) + 2;
    char *name = cd_arena_alloc(a, cap, 1);
    if (!name) return NULL;
    snprintf(name, cap, "%s/%s", folder, bare);
    const char *found = cd_data_path_find(a, name);
    return found ? found : path;
}
