/* tmp.h -- a folder that lives for one test. */
#ifndef TMP_H
#define TMP_H
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct tmp_dir {
    char path[64];
    char buf[4][256]; /* what tmp_path returned last */
    unsigned k;
} tmp_dir;

static inline tmp_dir tmp_make(void) {
    tmp_dir d = {.path = "/tmp/cdmpp-test-XXXXXX"};
    if (!mkdtemp(d.path)) abort();
    return d;
}

/* Valid for three more calls. */
static inline const char *tmp_path(tmp_dir *d, const char *name) {
    char *p = d->buf[d->k++ % 4];
    const size_t n = strlen(d->path);
    if (n + strlen(name) + 2 > sizeof d->buf[0]) abort();
    memcpy(p, d->path, n);
    p[n] = '/';
    memcpy(p + n + 1, name, strlen(name) + 1);
    return p;
}

static inline const char *tmp_put(tmp_dir *d, const char *name, const void *data, size_t n) {
    const char *path = tmp_path(d, name);
    FILE *f = fopen(path, "wb");
    if (!f || (n && fwrite(data, 1, n, f) != n) || fclose(f) != 0) abort();
    return path;
}

static inline int tmp_remove_one(const char *path, const struct stat *st, int flag,
                                 struct FTW *ftw) {
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static inline void tmp_remove(tmp_dir *d) {
    nftw(d->path, tmp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
#endif
