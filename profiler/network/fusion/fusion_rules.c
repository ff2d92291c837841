/* Rules of fusion: their file, and the look-up. There are some hundred rules at most, so a look-up
 * goes through all of them. */
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "profiler/network/fusion/fusion.h"

enum { MAX_FILE = 64 << 20 };

void cd_fusion_rules_free(cd_fusion_rules *r) {
    cd_arena_free(&r->arena);
    *r = (cd_fusion_rules){0};
}

cdmpp_status cd_fusion_rules_add(cd_fusion_rules *r, const char *before, const char *first,
                                 const char *second, cd_fusion_answer answer, cdmpp_err *err) {
    if (CD_GROW_IN(&r->arena, r->rule, r->n, r->cap))
        return CD_FAIL(err, ENOMEM, "rules of fusion");
    cd_fusion_rule *x = &r->rule[r->n];
    *x = (cd_fusion_rule){.answer = answer};
    if (before) x->before = cd_str_dup(&r->arena, (cd_str){before, strlen(before)});
    x->first = cd_str_dup(&r->arena, (cd_str){first, strlen(first)});
    x->second = cd_str_dup(&r->arena, (cd_str){second, strlen(second)});
    if ((before && !x->before) || !x->first || !x->second)
        return CD_FAIL(err, ENOMEM, "rules of fusion");
    r->n++;
    return CDMPP_OK;
}

/* ---- the file ---- */

static cdmpp_status name(cd_arena *a, const cd_json *v, const char *key, const char **out,
                         cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_need_str(v, key, &s, err));
    if (!s.n)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected the name of an operator"), key);
    *out = cd_str_dup(a, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "rules of fusion");
}

static cdmpp_status read_rule(cd_fusion_rules *r, const cd_json *v, cdmpp_err *err) {
    const char *before = NULL, *first, *second;
    const cd_json *fused, *x = cd_json_get(v, "before");
    CD_TRY(name(&r->arena, v, "first", &first, err));
    CD_TRY(name(&r->arena, v, "second", &second, err));
    if (x && x->kind != CD_JSON_NULL) CD_TRY(name(&r->arena, v, "before", &before, err));
    CD_TRY(cd_json_need(v, "fused", &fused, err));
    if (fused->kind != CD_JSON_BOOL && fused->kind != CD_JSON_NULL)
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA, "expected true, false or null, found %s",
                                  cd_json_kind_name(fused->kind)),
                          "fused");
    const cd_fusion_answer answer = fused->kind == CD_JSON_NULL ? CD_FUSION_UNKNOWN
                                    : fused->u.i                ? CD_FUSION_FUSED
                                                                : CD_FUSION_APART;
    return cd_fusion_rules_add(r, before, first, second, answer, err);
}

static cdmpp_status read_all(cd_fusion_rules *r, const cd_json *top, cdmpp_err *err) {
    const cd_json *list, *v;
    cd_str schema;
    CD_TRY(cd_json_need_str(top, "schema", &schema, err));
    if (!cd_str_is(schema, CD_FUSION_RULES_SCHEMA))
        return CD_FAIL(err, ESCHEMA, "expected the schema " CD_FUSION_RULES_SCHEMA ", found '%.*s'",
                       cd_str_shown(schema, 60), schema.p);
    CD_TRY(cd_json_need(top, "rules", &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), "rules"));
    for (uint32_t i = 0; v; v = v->next, i++)
        CD_TRY(cd_err_key(err, cd_err_index(err, read_rule(r, v, err), i), "rules"));
    return CDMPP_OK;
}

cdmpp_status cd_fusion_rules_read(const char *path, cd_fusion_rules *r, cdmpp_err *err) {
    cd_arena a = {0};
    char *data = NULL;
    size_t n;
    const cd_json *top;
    *r = (cd_fusion_rules){0};
    cdmpp_status st = cd_file_read(path, MAX_FILE, &data, &n, err);
    if (!st) st = cd_json_parse(&a, data, n, &top, err);
    if (!st) st = read_all(r, top, err);
    st = cd_err_at(err, st, path, 0);
    cd_mem_free(data);
    cd_arena_free(&a);
    return st;
}

/* ---- looking up ---- */

const char *cd_fusion_rules_name(const cd_graph *g, const cd_graph_node *n) {
    if (strcmp(n->op, "Conv") || n->n_in < 2 || n->in[1] == CD_GRAPH_NONE) return n->op;
    const cd_graph_shape *w = &g->tensor[n->in[1]].shape;
    return cd_graph_node_int(n, "group", 1) > 1 && w->rank > 1 && w->dim[1] == 1 ? "DepthwiseConv"
                                                                                 : n->op;
}

cd_fusion_answer cd_fusion_rules_find(const cd_fusion_rules *r, const char *before,
                                      const char *first, const char *second) {
    cd_fusion_answer pair = CD_FUSION_UNKNOWN;
    for (uint32_t i = r->n; i-- > 0;) { /* the last one first */
        const cd_fusion_rule *x = &r->rule[i];
        if (strcmp(x->first, first) || strcmp(x->second, second)) continue;
        if (x->before && before && !strcmp(x->before, before) && x->answer != CD_FUSION_UNKNOWN)
            return x->answer;
        if (!x->before && pair == CD_FUSION_UNKNOWN) pair = x->answer;
    }
    return pair;
}
