/* The word that a user probably meant. Levenshtein's distance is enough for names of options and
 * keys: they are short and few. */
#include "base/core/core.h"

#include <ctype.h>
#include <string.h>

/* Levenshtein's table, one row at a time; *begin: to the nearest beginning of b. */
static size_t distance(const char *a, const char *b, size_t *begin) {
    size_t row[CD_DID_YOU_MEAN_MAX];
    const size_t n = strlen(a), m = strlen(b);
    *begin = CD_DID_YOU_MEAN_MAX;
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
    for (size_t j = 0; j <= m; j++)
        if (row[j] < *begin) *begin = row[j];
    return row[m];
}

size_t cd_did_you_mean_distance(const char *a, const char *b) {
    size_t begin;
    return distance(a, b, &begin);
}

const char *cd_did_you_mean_nearest(const char *asked, const char *const *name, size_t n) {
    const char *best = NULL;
    size_t least = strlen(asked) / 3 + 2;
    for (size_t i = 0; i < n; i++) {
        const size_t d = cd_did_you_mean_distance(asked, name[i]);
        /* as many changes as it has letters: another word */
        if (d >= least || d == CD_DID_YOU_MEAN_MAX || d >= strlen(name[i])) continue;
        best = name[i];
        least = d;
    }
    return best;
}

/* Letters and digits, as far as they fit. */
static size_t bare(const char *s, char to[CD_DID_YOU_MEAN_MAX]) {
    size_t n = 0;
    for (; *s && n + 1 < CD_DID_YOU_MEAN_MAX; s++)
        if (isalnum((unsigned char)*s)) to[n++] = (char)tolower((unsigned char)*s);
    to[n] = 0;
    return n;
}

/* Names whose beginning is as near to `a` as the nearest one's: "resnt" is no beginning of
 * "resnet-50", and too far from all of it. */
static size_t begin_alike(const char *a, const char *const *name, size_t n, const char **out,
                          size_t most) {
    char b[CD_DID_YOU_MEAN_MAX];
    const size_t len = strlen(a);
    size_t k = 0, begin, least = len / 4 + 1;
    for (size_t i = 0; i < n; i++) {
        bare(name[i], b);
        /* the first letter is seldom wrong, and short beginnings are near to much */
        if (*a != *b) continue;
        (void)distance(a, b, &begin);
        if (begin < least) k = 0, least = begin; /* those before it were not as near */
        if (begin == least && k < most) out[k++] = name[i];
    }
    return k;
}

/* "bert" is the beginning of four names and so far from each that a distance finds none; "vit-b-16"
 * is more than one has. */
size_t cd_did_you_mean_several(const char *asked, const char *const *name, size_t n,
                               const char **out, size_t most) {
    char a[CD_DID_YOU_MEAN_MAX], b[CD_DID_YOU_MEAN_MAX];
    const char *near = NULL, *part = NULL;
    const size_t len = bare(asked, a);
    size_t k = 0, least = len / 3 + 2, longest = 2;
    for (size_t i = 0; i < n; i++) {
        const size_t m = bare(name[i], b), d = cd_did_you_mean_distance(a, b);
        if (k < most && len > 1 && !strncmp(a, b, len)) out[k++] = name[i];
        if (d < least && d < m) near = name[i], least = d;
        if (m > longest && !strncmp(a, b, m)) part = name[i], longest = m;
    }
    if (!k && most && (near || part)) out[k++] = near ? near : part;
    return k || len < 4 ? k : begin_alike(a, name, n, out, most);
}
