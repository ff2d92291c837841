/* TVM writes the processor into the target string only where the user named it (-model=). TenSet's
 * logs name no model, but lie in a folder for each device. */
#include "features/task/task.h"

#include <string.h>

static cd_str word_at(cd_str s, size_t at) {
    size_t end = at;
    while (end < s.n && s.p[end] != ' ' && s.p[end] != '\t') end++;
    return (cd_str){s.p + at, end - at};
}

/* Value of an option like "-model=" at the start of a word; n 0 when absent. */
static cd_str option(cd_str target, const char *name) {
    const size_t len = strlen(name);
    for (size_t i = 0; i + len <= target.n; i++)
        if ((i == 0 || target.p[i - 1] == ' ') && memcmp(target.p + i, name, len) == 0)
            return word_at(target, i + len);
    return (cd_str){target.p, 0};
}

cd_str cd_device_arch_of(cd_str target) {
    const cd_str arch = option(target, "-arch=");
    return arch.n ? arch : option(target, "-mcpu=");
}

cd_str cd_device_name_of(cd_str target, const char *source) {
    const cd_str model = option(target, "-model=");
    /* TVM writes unknown when it was not told */
    if (model.n && !cd_str_is(model, "unknown")) return model;
    const char *end = strrchr(source, '/');
    while (end && end > source && end[-1] == '/') end--; /* "v100//a.json" */
    const char *p = end;
    while (p && p > source && p[-1] != '/') p--;
    return p && end > p ? (cd_str){p, (size_t)(end - p)} : (cd_str){"unknown", 7};
}
