/* Names of scalar types, read and printed. One table of kinds serves both directions. */
#include "features/expr/expr.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned kind;
} kind_tab[] = {
    {"int", CD_T_INT}, {"uint", CD_T_UINT}, {"float", CD_T_FLOAT}, {"bfloat", CD_T_BFLOAT}};

/* Types that are their whole name, as TVM and PyTorch have it. Reals of 8 and 4 bits, with TVM's
 * codes of their kinds, are types of networks: no expression computes with them. */
static const struct {
    const char *name;
    cd_dtype type;
} own_tab[] = {{"bool", CD_BOOL},
               {"handle", CD_DTYPE(CD_T_HANDLE, 64)},
               {"float8_e4m3fn", CD_DTYPE(10, 8)},
               {"float8_e4m3fnuz", CD_DTYPE(11, 8)},
               {"float8_e5m2", CD_DTYPE(12, 8)},
               {"float8_e5m2fnuz", CD_DTYPE(13, 8)},
               {"float8_e8m0fnu", CD_DTYPE(14, 8)},
               {"float4_e2m1fn", CD_DTYPE(17, 4)}};

/* Those of own_tab; all others are a kind and one or two digits. */
bool cd_expr_dtype_parse(const char *s, size_t n, cd_dtype *out) {
    for (size_t k = 0; k < sizeof own_tab / sizeof *own_tab; k++)
        if (n == strlen(own_tab[k].name) && !memcmp(s, own_tab[k].name, n))
            return *out = own_tab[k].type, true;
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
    for (size_t k = 0; k < sizeof kind_tab / sizeof *kind_tab; k++)
        if (kind_tab[k].kind == cd_expr_dtype_kind(t))
            snprintf(buf, n, "%s%u", kind_tab[k].name, cd_expr_dtype_bits(t));
    for (size_t k = 0; k < sizeof own_tab / sizeof *own_tab; k++)
        if (own_tab[k].type == t ||
            (own_tab[k].type == CD_DTYPE(CD_T_HANDLE, 64) && cd_expr_dtype_kind(t) == CD_T_HANDLE))
            snprintf(buf, n, "%s", own_tab[k].name);
    return buf;
}
