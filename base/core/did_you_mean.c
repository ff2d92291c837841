/* The word that a user probably meant. Levenshtein's distance is enough for names of options and keys: they are short
 * and few. */
#include "base/core/did_you_mean.h"

#include <string.h>

/* Levenshtein's table, one row at a time. */
size_t cd_did_you_mean_distance(const char *a, const char *b) {
    size_t row[CD_DID_YOU_MEAN_MAX];
    const size_t n = strlen(a), m = strlen(b);
    if (m >= CD_DID_YOU_MEAN_MAX || n >= CD_DID_YOU_MEAN_MAX) return CD_DID_YOU_MEAN_MAX;
    for (size_t j = 0; j <= m; j++) row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diag = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t up = row[j], sub = diag + (a[i - 1] != b[j - 1]);
            const size_t ins = (up < row[j - 1] ? up : row[j - 1]) + 1;
            row[j] = sub < ins ? sub : ins;
            diag = up;
        }
    }
    return row[m];
}

const char *cd_did_you_mean_nearest(const char *asked, const char *const *name, size_t n) {
    const char *best = NULL;
    size_t least = strlen(asked) / 3 + 2;
    for (size_t i = 0; i < n; i++) {
        const size_t d = cd_did_you_mean_distance(asked, name[i]);
        if (d >= least || d == CD_DID_YOU_MEAN_MAX) continue;
        best = name[i];
        least = d;
    }
    return best;
}
