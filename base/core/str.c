/* Comparing and copying borrowed runs of bytes. An empty run may have a NULL pointer, which memcmp must not get. */
#include "base/core/core.h"

#include <string.h>

bool cd_str_is(cd_str s, const char *z) {
    const size_t n = strlen(z);
    return s.n == n && memcmp(s.p, z, n) == 0;
}

bool cd_str_eq(cd_str a, cd_str b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }

/* Where the rest does not match, the last star takes one letter more. */
bool cd_str_fits(const char *pattern, const char *name) {
    const char *star = NULL, *from = NULL;
    while (*name) {
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}

char *cd_str_dup(cd_arena *a, cd_str s) {
    char *z = cd_arena_alloc(a, s.n + 1, 1);
    if (!z) return NULL;
    if (s.n) memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}
