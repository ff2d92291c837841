/* Finds files that come with the programs. The place of the library decides (libcdmpp.so, else the
 * program that it is linked into), not a path that was fixed at build time: an installed tree can
 * be moved, a build finds the files of its checkout, and a Python or another program that loads the
 * library finds those that came with it. */
#include "base/io/io.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the code of this file was loaded from; "": not known. A program has no name in the list of
 * what is loaded. */
static void own_place(char self[PATH_MAX]) {
    Dl_info info;
    struct link_map *map = NULL;
    self[0] = 0;
    if (dladdr1((void *)(uintptr_t)own_place, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
        map->l_name[0]) {
        if (realpath(map->l_name, self)) return;
        self[0] = 0;
    }
    const ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
    self[n > 0 ? n : 0] = 0;
}

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
    } root[] = {{2, "share/cdmpp/"}, {3, "share/cdmpp/"}, {1, "share/cdmpp/"}, {1, ""}, {3, ""}};
    /* PREFIX/bin/PROGRAM and PREFIX/lib/libcdmpp.so, PREFIX/lib/MACHINE/libcdmpp.so, the package of
     * Python, beside it, CHECKOUT/build/MODE/PROGRAM */
    char self[PATH_MAX];
    own_place(self);
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
