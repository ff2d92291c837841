/* Names of scalar types, read and printed. One table of kinds serves both directions. */
#include "features/expr/expr.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned kind;
} kind_tab[] = {{"int", CD_T_INT}, {"uint", CD_T_UINT}, {"float", CD_T_FLOAT}, {"bfloat", CD_T_BFLOAT}};

/* bool and handle are names of their own; all others are a kind and one or two digits. */
bool cd_expr_dtype_parse(const char *s, size_t n, cd_dtype *out) {
    if (n == 4 && !memcmp(s, "bool", 4)) return *out = CD_BOOL, true;
    if (n == 6 && !memcmp(s, "handle", 6)) return *out = CD_DTYPE(CD_T_HANDLE, 64), true;
    for (size_t k = 0; k < sizeof kind_tab / sizeof *kind_tab; k++) {
        const size_t m = strlen(kind_tab[k].name);
        if (n <= m || n > m + 2 || memcmp(s, kind_tab[k].name, m) != 0) continue;
        unsigned bits = 0;
        for (size_t i = m; i < n; i++) {
            if (s[i] < '0' || s[i] > '9') return false;
            bits = bits * 10 + (unsigned)(s[i] - '0');
        }
        if (bits == 0 || bits > 64) return false;
        return *out = CD_DTYPE(kind_tab[k].kind, bits), true;
    }
    return false;
}

const char *cd_expr_dtype_format(cd_dtype t, char *buf, size_t n) {
    if (t == CD_BOOL) snprintf(buf, n, "bool");
    else if (cd_expr_dtype_kind(t) == CD_T_HANDLE) snprintf(buf, n, "handle");
    else
        for (size_t k = 0; k < sizeof kind_tab / sizeof *kind_tab; k++)
            if (kind_tab[k].kind == cd_expr_dtype_kind(t)) snprintf(buf, n, "%s%u", kind_tab[k].name, cd_expr_dtype_bits(t));
    return buf;
}
