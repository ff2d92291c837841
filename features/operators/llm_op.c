/* Kinds, parameters and number types of the operators of language models: the tables of
 * llm_op_kinds.def. */
#include "features/operators/llm_op.h"

#include <string.h>

enum {
#define P(ID, column, other, third, standard, meaning) ID = CD_LLM_OP_P_##ID,
#include "features/operators/llm_op_kinds.def"
};

static const struct {
    const char *name, *meaning;
    uint8_t size[CD_LLM_OP_MAX_SIZE];
    size_t n;
} kinds[CD_LLM_OP_N_KIND] = {
#define K(ID, name, family, meaning, ...)                                                          \
    {name, meaning, {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})},
#include "features/operators/llm_op_kinds.def"
};

static const struct {
    const char *name, *meaning;
    double standard;
} params[CD_LLM_OP_N_PARAM] = {
#define P(ID, column, other, third, standard, meaning) {column, meaning, standard},
#include "features/operators/llm_op_kinds.def"
};

static const struct {
    const char *name, *meaning;
    double weight, input;
    cd_llm_op_unit unit;
} types[CD_LLM_OP_N_TYPE] = {
#define T(ID, name, other, weight, input, unit, meaning)                                           \
    {name, meaning, weight, input, CD_LLM_OP_UNIT_##unit},
#include "features/operators/llm_op_kinds.def"
};

const char *cd_llm_op_kind_name(cd_llm_op_kind k) { return kinds[k].name; }
const char *cd_llm_op_type_name(cd_llm_op_type t) { return types[t].name; }
double cd_llm_op_type_weight_bytes(cd_llm_op_type t) { return types[t].weight; }
double cd_llm_op_type_input_bytes(cd_llm_op_type t) { return types[t].input; }
cd_llm_op_unit cd_llm_op_type_unit(cd_llm_op_type t) { return types[t].unit; }
size_t cd_llm_op_n_size(cd_llm_op_kind k) { return kinds[k].n; }
cd_llm_op_param cd_llm_op_size_param(cd_llm_op_kind k, size_t i) {
    return (cd_llm_op_param)kinds[k].size[i];
}
const char *cd_llm_op_param_name(cd_llm_op_param p) { return params[p].name; }

double cd_llm_op_get(const cd_llm_op_record *r, cd_llm_op_param p) {
    for (size_t i = 0; i < kinds[r->kind].n; i++)
        if (kinds[r->kind].size[i] == (int)p) return r->size[i];
    return 0;
}

bool cd_llm_op_same(const cd_llm_op_record *a, const cd_llm_op_record *b) {
    if (a->kind != b->kind || a->type != b->type || a->kv != b->kv || a->stack != b->stack ||
        a->kernel != b->kernel)
        return false;
    for (size_t i = 0; i < kinds[a->kind].n; i++)
        if (a->size[i] < b->size[i] || a->size[i] > b->size[i]) return false;
    return !(a->skew < b->skew || a->skew > b->skew);
}

void cd_llm_op_doc(cd_buf *out) {
    cd_buf_puts(out, "| `op` | what | parameters |\n| --- | --- | --- |\n");
    for (size_t k = 0; k < CD_LLM_OP_N_KIND; k++) {
        cd_buf_putf(out, "| `%s` | %s |", kinds[k].name, kinds[k].meaning);
        for (size_t i = 0; i < kinds[k].n; i++)
            cd_buf_putf(out, "%s `%s`", i ? "," : "", params[kinds[k].size[i]].name);
        cd_buf_puts(out, k == CD_LLM_OP_MOE ? ", `distribution` |\n" : " |\n");
    }
    cd_buf_puts(out, "\n| parameter | default | what |\n| --- | --- | --- |\n");
    for (size_t p = 0; p < CD_LLM_OP_N_PARAM; p++) {
        cd_buf_putf(out, "| `%s` |", params[p].name);
        if (params[p].standard >= 0) cd_buf_putf(out, " %g", params[p].standard);
        cd_buf_putf(out, " | %s |\n", params[p].meaning);
    }
    cd_buf_puts(out, "\n| `dtype` | bytes of a weight | bytes of an input | what |\n| --- | --: | "
                     "--: | --- |\n");
    for (size_t t = 0; t < CD_LLM_OP_N_TYPE; t++)
        cd_buf_putf(out, "| `%s` | %g | %g | %s |\n", types[t].name, types[t].weight,
                    types[t].input, types[t].meaning);
}
