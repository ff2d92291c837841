/* Files that are named twice: the same name, another name, a link. Sorted by device and inode,
 * because an extraction may have many thousands. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/core.h"
#include "base/io/io.h"

/* The file that a user probably meant, where the one that was named is not there. */

/* Where the ending begins: ".yaml"; "": there is none. */
static const char *ending(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? dot : name + strlen(name);
}

/* Number of changes from one name to the other without their ending, which must be the same;
 * CD_DID_YOU_MEAN_MAX: another word. */
static size_t changes(const char *asked, const char *name) {
    char a[CD_DID_YOU_MEAN_MAX], b[CD_DID_YOU_MEAN_MAX];
    const char *word = b, *end = ending(name);
    if (strcmp(ending(asked), end) != 0) return CD_DID_YOU_MEAN_MAX;
    const int n = snprintf(a, sizeof a, "%.*s", (int)(ending(asked) - asked), asked),
              m = snprintf(b, sizeof b, "%.*s", (int)(end - name), name);
    if (n >= (int)sizeof a || m >= (int)sizeof b || !cd_did_you_mean_nearest(a, &word, 1))
        return CD_DID_YOU_MEAN_MAX;
    return cd_did_you_mean_distance(a, b);
}

/* Folders are read in any order: of names that are as near the first one is taken. */
void cd_file_near(const char *path, char *out, size_t n) {
    const char *slash = strrchr(path, '/'), *asked = slash ? slash + 1 : path;
    char folder[CD_FILE_NEAR_MAX], best[CD_DID_YOU_MEAN_MAX + 64] = "";
    size_t least = CD_DID_YOU_MEAN_MAX;
    const size_t len = (size_t)(asked - path);
    out[0] = 0;
    if (len + 2 > sizeof folder) return;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)len, path);
    DIR *d = opendir(len ? folder : ".");
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));) {
        const size_t k = e->d_name[0] == '.' || strlen(e->d_name) >= sizeof best
                             ? CD_DID_YOU_MEAN_MAX
                             : changes(asked, e->d_name);
        if (k > least || k == CD_DID_YOU_MEAN_MAX || (k == least && strcmp(e->d_name, best) >= 0))
            continue;
        least = k;
        memcpy(best, e->d_name, strlen(e->d_name) + 1); /* longer ones were left out above */
    }
    (void)closedir(d);
    if (best[0] && snprintf(out, n, "%s%s", folder, best) >= (int)n) out[0] = 0;
}

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

/* first[i] of (n): the first path that is a name of path[i]'s file; i itself where none is before,
 * and of what is no file. Errors: ENOMEM. */
static cdmpp_status file_firsts(const char *const *path, size_t n, size_t *first, cdmpp_err *err) {
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
    const cdmpp_status st = file_firsts(path, *n, first, err);
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
