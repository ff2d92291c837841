/* A borrowed run of bytes: a field of a line, a JSON string, a name. It need not end with a NUL. */
#ifndef CD_STR_H
#define CD_STR_H
#include <stdbool.h>
#include <stddef.h>

#include "base/core/arena.h"

typedef struct cd_str {
    const char *p;
    size_t n;
} cd_str;

/* Same bytes as a C string; same bytes as another run. */
bool cd_str_is(cd_str s, const char *z);
bool cd_str_eq(cd_str a, cd_str b);
/* Does the name match the pattern, in which a * stands for any letters, also none? */
bool cd_str_fits(const char *pattern, const char *name);
/* A copy that ends with a NUL; NULL when out of memory. */
CD_KEEP char *cd_str_dup(cd_arena *a, cd_str s);
#endif
