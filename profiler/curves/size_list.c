/* Parses the sizes of a curve. They must ascend: the table of a curve has its points in this order.
 * A range is its powers of two and both ends. */
#include "profiler/curves/curves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What stands behind the number; NULL: there is none, or one that is out of range. */
static const char *number(const char *p, int *out) {
    char *end;
    errno = 0;
    const long k = strtol(p, &end, 10);
    if (end == p || errno || k < 1 || k > CD_SIZE_LIST_LARGEST) return NULL;
    *out = (int)k;
    return end;
}

static bool put(cd_size_list *l, int k) {
    if (l->n == CD_SIZE_LIST_MAX || (l->n && k <= l->v[l->n - 1])) return false;
    l->v[l->n++] = k;
    return true;
}

static bool doubled(cd_size_list *l, int last) {
    int k = 1;
    while (k <= l->v[l->n - 1]) k *= 2;
    for (; k < last; k *= 2)
        if (!put(l, k)) return false;
    return put(l, last);
}

bool cd_size_list_parse(const char *text, cd_size_list *out) {
    const char *p = strchr(text, '=');
    const bool batch = !strncmp(text, "batch=", 6);
    out->input = !strncmp(text, "input=", 6);
    out->n = 0;
    while ((batch || out->input) && *p) { /* p: the '=' or comma before a number */
        int k;
        const char *end = number(p + 1, &k);
        if (!end || !put(out, k)) return false;
        if (!strncmp(end, "..", 2)) {
            end = number(end + 2, &k);
            if (!end || k <= out->v[out->n - 1] || !doubled(out, k)) return false;
        }
        if (*end && *end != ',') return false;
        p = end;
    }
    return p && !*p && out->n >= 2;
}
