/* scratch.h -- a folder of its own for a test's files, and whole-file helpers. */
#ifndef SCRATCH_H
#define SCRATCH_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "<tmp>/cdmpp-test.<pid>/<name>"; the folder is made at the first call and
 * removed at exit with everything in it. */
static inline void scratch_remove(void) {
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '/tmp/cdmpp-test.%ld'", (long)getpid());
    if (system(cmd) != 0) perror("rm");
}
static inline const char *scratch(const char *name) {
    static char path[8][256];
    static int next, made;
    char *p = path[next++ % 8];
    char cmd[128];
    if (!made++) {
        snprintf(cmd, sizeof cmd, "mkdir -p '/tmp/cdmpp-test.%ld'", (long)getpid());
        if (system(cmd) != 0) perror("mkdir");
        atexit(scratch_remove);
    }
    snprintf(p, sizeof path[0], "/tmp/cdmpp-test.%ld/%s", (long)getpid(), name);
    return p;
}

/* malloc'd; NULL when unreadable. */
static inline unsigned char *scratch_read(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    unsigned char *p = NULL;
    long len = 0;
    if (!f) return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (len = ftell(f)) >= 0 &&
        (p = malloc((size_t)len + 1)) != NULL) {
        rewind(f);
        *n = fread(p, 1, (size_t)len, f);
        p[*n] = 0;
    }
    fclose(f);
    return p;
}
static inline void scratch_write(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}
static inline int scratch_same(const char *a, const char *b) {
    size_t na = 0, nb = 1;
    unsigned char *x = scratch_read(a, &na), *y = scratch_read(b, &nb);
    const int same = x && y && na == nb && memcmp(x, y, na) == 0;
    free(x);
    free(y);
    return same;
}

static inline size_t scratch_lines(const char *path) {
    size_t n = 0, lines = 0;
    unsigned char *p = scratch_read(path, &n);
    for (size_t i = 0; i < n; i++) lines += p[i] == '\n';
    free(p);
    return lines;
}
#endif
