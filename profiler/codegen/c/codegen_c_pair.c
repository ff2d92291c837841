/* Two lanes that were stored are taken from a variable by the statements that follow. GCC does
 * so itself with what fills a register, but loading two lanes clears the rest of it, so that the
 * value stored is another one: an instruction more in every chain of multiply-adds. */
#include "profiler/codegen/c/codegen_c_internal.h"

void cd_c_pair_clear(cd_c_writer *g) { g->n_pair = 0; }

void cd_c_pair_overwrite(cd_c_writer *g, const cd_c_token *t) {
    const int64_t n = t->lanes ? t->lanes : 1;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < g->n_pair; k++) {
        const cd_c_pair *p = &g->pair[k];
        const bool apart = p->ptr == t->ptr && (t->off >= p->off + 2 || p->off >= t->off + n);
        if (p->tensor != t->tensor || p->instance != t->instance || apart) g->pair[kept++] = *p;
    }
    g->n_pair = kept;
}

void cd_c_pair_add(cd_c_writer *g, const cd_c_token *t, uint32_t reg) {
    if (g->n_pair == CD_CODEGEN_C_MAX_PAIR) cd_c_pair_clear(g);
    g->pair[g->n_pair++] = (cd_c_pair){t->tensor, t->ptr, t->instance, reg, t->off};
}

uint32_t cd_c_pair_find(const cd_c_writer *g, const cd_c_token *t) {
    for (uint32_t k = 0; k < g->n_pair && t->lanes == 2; k++) {
        const cd_c_pair *p = &g->pair[k];
        if (p->tensor == t->tensor && p->instance == t->instance && p->ptr == t->ptr &&
            p->off == t->off)
            return p->reg;
    }
    return 0;
}
