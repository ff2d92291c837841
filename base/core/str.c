/* Comparing and copying borrowed runs of bytes. An empty run may have a NULL pointer, which memcmp must not get. */
#include "base/core/str.h"

#include <string.h>

bool cd_str_is(cd_str s, const char *z) {
    const size_t n = strlen(z);
    return s.n == n && memcmp(s.p, z, n) == 0;
}

bool cd_str_eq(cd_str a, cd_str b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }

char *cd_str_dup(cd_arena *a, cd_str s) {
    char *z = cd_arena_alloc(a, s.n + 1, 1);
    if (!z) return NULL;
    if (s.n) memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}
