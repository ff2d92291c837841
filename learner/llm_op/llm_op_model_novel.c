/* In the header of a model of operators of language models: which library and kernel each family
 * has rows of, and how far off what is new was. */
#include "learner/llm_op/llm_op_model_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- writing ---- */
static void put_marked(cd_buf *b, const char *name, const bool *has, size_t n) {
    cd_buf_putf(b, "\"%s\":[", name);
    for (size_t i = 0, c = 0; i < n; i++)
        if (has[i]) cd_buf_putf(b, "%s%zu", c++ ? "," : "", i);
    cd_buf_puts(b, "]");
}

static void put_seen(cd_buf *b, const cd_llm_op_model *m) {
    cd_buf_puts(b, "\"seen\":{");
    for (int f = 0, n = 0; f < CD_LLM_OP_N_FAMILY; f++) {
        if (!m->has_stack[f] || !m->has_kernel[f]) continue;
        cd_buf_putf(b, "%s\"%s\":{", n++ ? "," : "", cd_llm_op_family_name((cd_llm_op_family)f));
        put_marked(b, "stacks", m->has_stack[f], m->stacks.n);
        cd_buf_puts(b, ",");
        put_marked(b, "kernels", m->has_kernel[f], m->kernels.n);
        cd_buf_puts(b, "}");
    }
    cd_buf_puts(b, "},");
}

void cd_llm_op_novel_put(cd_buf *b, const cd_llm_op_model *m) {
    put_seen(b, m);
    cd_buf_puts(b, "\"novelties\":[");
    for (int f = 0, n = 0; f < CD_LLM_OP_N_FAMILY; f++)
        for (int k = 0; k < CD_LLM_OP_N_NOVEL; k++) {
            const cd_novelty *v = &m->novel[f][k];
            const cd_str what = cd_enum_names_at(CD_LLM_OP_NOVELS, k);
            if (!v->n_value) continue;
            cd_buf_putf(b,
                        "%s{\"family\":\"%s\",\"what\":\"%.*s\",\"values\":%" PRIu64
                        ",\"rows\":%" PRIu64 ",\"between\":%.17g,",
                        n++ ? "," : "", cd_llm_op_family_name((cd_llm_op_family)f), (int)what.n,
                        what.p, v->n_value, v->n_row, v->between);
            cd_json_put_reals(b, "rest", v->rest, CD_NOVELTY_LEVELS, 17);
            cd_buf_puts(b, "}");
        }
    cd_buf_puts(b, "],");
}

void cd_llm_op_kv_put(cd_buf *b, const cd_llm_op_range *g) {
    cd_buf_puts(b, "],\"kv\":{");
    for (int t = 0, n = 0; t < CD_LLM_OP_N_TYPE; t++) {
        if (!g->type[t]) continue;
        cd_buf_putf(b, "%s\"%s\":[", n++ ? "," : "", cd_llm_op_type_name((cd_llm_op_type)t));
        for (int k = 0, c = 0; k < CD_LLM_OP_N_TYPE; k++)
            if (g->kv[t] >> k & 1u)
                cd_buf_putf(b, "%s\"%s\"", c++ ? "," : "", cd_llm_op_type_name((cd_llm_op_type)k));
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "}");
}

/* ---- reading ---- */
static cdmpp_status read_marked(const cd_json *o, const char *key, size_t n, bool *has,
                                cdmpp_err *err) {
    const cd_json *list, *v;
    int64_t k;
    CD_TRY(cd_json_need(o, key, &list, err));
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), key));
    for (; v; v = v->next) {
        CD_TRY(cd_err_key(err, cd_json_int(v, 0, (int64_t)n - 1, &k, err), key));
        has[k] = true;
    }
    return CDMPP_OK;
}

/* Of a family that is not named no row was trained on. */
static cdmpp_status read_seen(cd_llm_op_model *m, const cd_json *seen, cdmpp_err *err) {
    for (int f = 0; f < CD_LLM_OP_N_FAMILY; f++) {
        const char *name = cd_llm_op_family_name((cd_llm_op_family)f);
        const cd_json *o = cd_json_get(seen, name);
        m->has_stack[f] = CD_NEWN(&m->arena, bool, m->stacks.n + 1);
        m->has_kernel[f] = CD_NEWN(&m->arena, bool, m->kernels.n + 1);
        if (!m->has_stack[f] || !m->has_kernel[f]) return CD_FAIL(err, ENOMEM, "names of %s", name);
        if (!o) continue;
        CD_TRY(cd_err_key(err, read_marked(o, "stacks", m->stacks.n, m->has_stack[f], err), name));
        CD_TRY(
            cd_err_key(err, read_marked(o, "kernels", m->kernels.n, m->has_kernel[f], err), name));
    }
    return CDMPP_OK;
}

static cdmpp_status read_novelty(cd_llm_op_model *m, const cd_json *v, cdmpp_err *err) {
    cd_novelty x;
    cd_str family;
    size_t n;
    int f = 0, k;
    CD_TRY(cd_json_need_str(v, "family", &family, err));
    while (f < CD_LLM_OP_N_FAMILY && !cd_str_is(family, cd_llm_op_family_name((cd_llm_op_family)f)))
        f++;
    if (f == CD_LLM_OP_N_FAMILY)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "unknown name '%.*s'", cd_str_shown(family, 40), family.p),
            "family");
    CD_TRY(cd_json_need_word(v, "what", CD_LLM_OP_NOVELS, &k, err));
    CD_TRY(cd_json_need_count(v, "values", &x.n_value, err));
    CD_TRY(cd_json_need_count(v, "rows", &x.n_row, err));
    CD_TRY(cd_json_need_real(v, "between", 0, 100, &x.between, err));
    CD_TRY(cd_json_need_reals(v, "rest", 1, CD_NOVELTY_LEVELS, 0, 100, CD_JSON_NOT_FALLING, x.rest,
                              &n, err));
    if (n != CD_NOVELTY_LEVELS)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected %d numbers, found %zu", CD_NOVELTY_LEVELS, n),
            "rest");
    if (m->novel[f][k].n_value)
        return CD_FAIL(err, ESCHEMA, "a second entry of this family and what is new");
    m->novel[f][k] = x;
    return CDMPP_OK;
}

cdmpp_status cd_llm_op_novel_read(cd_llm_op_model *m, const cd_json *model, cdmpp_err *err) {
    const cd_json *seen = cd_json_get(model, "seen"), *list = cd_json_get(model, "novelties"), *v;
    if (seen) CD_TRY(cd_err_key(err, read_seen(m, seen, err), "seen"));
    if (!list) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_arr(list, 0, &v, err), "novelties"));
    for (size_t i = 0; v; v = v->next, i++) {
        const cdmpp_status st = read_novelty(m, v, err);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "novelties");
    }
    return CDMPP_OK;
}
