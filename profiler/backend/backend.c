/* The table of back ends: a new one is a row here and a name in cd_backend_names. */
#include "profiler/backend/backend.h"

#include <string.h>

#include "profiler/backend/backend_internal.h"

static const struct {
    const cd_backend_kind *kind;
    const char *target; /* first words of targets, each between blanks */
} known[] = {
    {&cd_backend_cpu, " llvm c cpu "},
    {&cd_backend_opencl, " opencl "},
    {&cd_backend_cuda, " cuda "},
};

const cd_backend_kind *cd_backend_find(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].kind->name, name)) return known[i].kind;
    return NULL;
}

/* Does the list have the word? */
static bool has_word(const char *list, const char *word, size_t n) {
    for (const char *p = list; n && (p = strchr(p, ' ')) != NULL; p++)
        if (!strncmp(p + 1, word, n) && p[1 + n] == ' ') return true;
    return false;
}

const cd_backend_kind *cd_backend_for_target(cd_str target) {
    size_t n = 0;
    while (n < target.n && target.p[n] != ' ') n++;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (has_word(known[i].target, target.p, n)) return known[i].kind;
    return NULL;
}

cdmpp_status cd_backend_check_target(const char *target, cdmpp_err *err) {
    const size_t n = strcspn(target, " ");
    if (cd_backend_for_target((cd_str){target, n}) || (n == 4 && !strncmp(target, "rocm", n)))
        return CDMPP_OK;
    return CD_FAIL(err, EUSAGE,
                   "--target: no back end runs programs of '%.*s': there are llvm, c, opencl and "
                   "cuda; rocm is known of records",
                   n > 40 ? 40 : (int)n, target);
}

const char *cd_backend_names(void) { return "cpu|opencl|cuda"; }
