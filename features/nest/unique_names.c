/* Makes names unique as TVM's printer does: the second "i" is "i_1". Names are looked up linearly;
 * a nest has a few dozen. */
#include "features/nest/nest.h"

#include <stdio.h>
#include <string.h>

static bool taken(const char *const *name, uint32_t n, const char *s) {
    for (uint32_t k = 0; k < n; k++)
        if (name[k] && !strcmp(name[k], s)) return true;
    return false;
}

/* `raw`, or raw_1, raw_2 ... when it is taken. */
static bool give(cd_unique_names *t, const char **slot, const char *raw) {
    const size_t n = strlen(raw) + 12;
    char *s = cd_arena_alloc(&t->arena, n, 1);
    if (!s) return false;
    snprintf(s, n, "%s", raw);
    for (unsigned k = 1; taken(t->var, t->n_var, s) || taken(t->tensor, t->n_tensor, s); k++)
        snprintf(s, n, "%s_%u", raw, k);
    *slot = s;
    return true;
}

static bool name_node(cd_unique_names *t, const cd_ast_node *n) {
    if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD) {
        const uint32_t k = (uint32_t)n->var->u.i;
        return k >= t->n_var || t->var[k] ||
               give(t, &t->var[k], t->raw.name(t->raw.ctx, CD_VAR, k));
    }
    return true;
}

cdmpp_status cd_unique_names_init(cd_unique_names *t, const cd_ast *ast, const cd_names *raw,
                                  uint32_t n_var, uint32_t n_tensor, cdmpp_err *err) {
    *t = (cd_unique_names){.n_var = n_var, .n_tensor = n_tensor, .raw = *raw};
    t->var = CD_NEWN(&t->arena, const char *, n_var + 1);
    t->tensor = CD_NEWN(&t->arena, const char *, n_tensor + 1);
    bool ok = t->var && t->tensor;
    for (uint32_t k = 0; ok && k < n_tensor; k++)
        ok = give(t, &t->tensor[k], raw->name(raw->ctx, CD_LOAD, k));
    for (int32_t k = 0; ok && k < ast->n; k++)
        if (!ast->node[k].dead) ok = name_node(t, &ast->node[k]);
    if (ok) return CDMPP_OK;
    cd_unique_names_free(t);
    return CD_FAIL(err, ENOMEM, "names");
}

void cd_unique_names_free(cd_unique_names *t) {
    cd_arena_free(&t->arena);
    *t = (cd_unique_names){0};
}

const char *cd_unique_names_get(const void *table, cd_expr_op kind, uint32_t number) {
    const cd_unique_names *t = table;
    const char *s = NULL;
    if (kind == CD_VAR && number < t->n_var) s = t->var[number];
    if (kind == CD_LOAD && number < t->n_tensor) s = t->tensor[number];
    return s ? s : t->raw.name(t->raw.ctx, kind, number);
}
