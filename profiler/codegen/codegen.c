/* Chooses the generator of a dialect. The names of a program's symbols begin with the caller's
 * name, so that many programs fit one translation unit: it must be an identifier. */
#include "profiler/codegen/codegen.h"

#include "profiler/codegen/c/c.h"
#include "profiler/codegen/gpu/gpu.h"

static bool is_identifier(const char *s) {
    if (!*s) return false;
    for (const char *p = s; *p; p++) {
        const bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '_';
        if (!letter && !(*p >= '0' && *p <= '9' && p > s)) return false;
    }
    return true;
}

cdmpp_status cd_codegen(const cd_nest *nest, cd_dialect dialect, const char *name,
                        cd_codegen_code *out, cdmpp_err *err) {
    *out = (cd_codegen_code){.dialect = dialect};
    if (!is_identifier(name))
        return CD_FAIL(err, EINVALID, "\"%.60s\" cannot begin the names of a program", name);
    if (dialect == CD_DIALECT_C) return cd_codegen_c(nest, name, out, err);
    return cd_codegen_gpu(nest, dialect, name, out, err);
}
