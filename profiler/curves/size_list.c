/* Parses the sizes of a curve. They must ascend: the table of a curve has its points in this order. */
#include "profiler/curves/curves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool cd_size_list_parse(const char *text, cd_size_list *out) {
    const char *p = strchr(text, '=');
    const bool batch = !strncmp(text, "batch=", 6);
    out->input = !strncmp(text, "input=", 6);
    out->n = 0;
    while ((batch || out->input) && out->n < CD_SIZE_LIST_MAX && *p) { /* p: the '=' or comma before a number */
        char *end;
        errno = 0;
        const long k = strtol(p + 1, &end, 10);
        if (end == p + 1 || errno || k < 1 || k > CD_SIZE_LIST_LARGEST || (out->n && k <= out->v[out->n - 1]) || (*end && *end != ',')) break;
        out->v[out->n++] = (int)k;
        p = end;
    }
    return p && !*p && out->n >= 2;
}
