/* The file that a user probably meant, where the one that was named is not there. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "base/io/io.h"

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
