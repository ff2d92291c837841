/* Files that are named twice: the same name, another name, a link. Sorted by device and inode,
 * because an extraction may have many thousands. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io/io.h"

typedef struct {
    dev_t device;
    ino_t inode;
    size_t at;
} identity;

static int by_identity(const void *a, const void *b) {
    const identity *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode) return x->inode < y->inode ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

cdmpp_status cd_file_firsts(const char *const *path, size_t n, size_t *first, cdmpp_err *err) {
    identity *v = cd_mem_zalloc(n + 1, sizeof *v);
    size_t m = 0;
    if (!v) return CD_FAIL(err, ENOMEM, "%zu files", n);
    for (size_t i = 0; i < n; i++) {
        struct stat s;
        first[i] = i;
        if (!stat(path[i], &s) && S_ISREG(s.st_mode)) v[m++] = (identity){s.st_dev, s.st_ino, i};
    }
    qsort(v, m, sizeof *v, by_identity);
    for (size_t k = 1; k < m; k++)
        if (v[k].device == v[k - 1].device && v[k].inode == v[k - 1].inode)
            first[v[k].at] = first[v[k - 1].at];
    cd_mem_free(v);
    return CDMPP_OK;
}

/* Names to say: three of them, then how many more. */
enum { SHOWN = 3 };
cdmpp_status cd_file_once(const char **path, size_t *n, cd_buf *said, cdmpp_err *err) {
    size_t m = 0, twice = 0, *first = cd_mem_zalloc(*n + 1, sizeof *first);
    if (!first) return CD_FAIL(err, ENOMEM, "%zu files", *n);
    const cdmpp_status st = cd_file_firsts(path, *n, first, err);
    for (size_t i = 0; !st && i < *n; i++)
        if (first[i] != i && twice++ < SHOWN)
            cd_buf_putf(said,
                        strcmp(path[i], path[first[i]]) ? "%s%s is the file %s"
                                                        : "%s%s is given twice",
                        twice > 1 ? "; " : "", path[i], path[first[i]]);
    if (twice > SHOWN) cd_buf_putf(said, "; %zu more", twice - SHOWN);
    if (twice) cd_buf_puts(said, twice > 1 ? ": each is read once" : ": it is read once");
    for (size_t i = 0; !st && i < *n; i++) /* names of before are not needed any more */
        if (first[i] == i) path[m++] = path[i];
    if (!st) *n = m;
    cd_mem_free(first);
    if (!st && said->oom) return CD_FAIL(err, ENOMEM, "message");
    return st;
}
