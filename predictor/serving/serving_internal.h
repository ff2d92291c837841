/* What files of predictor/serving share. */
#ifndef CD_SERVING_INTERNAL_H
#define CD_SERVING_INTERNAL_H
#include "predictor/serving/serving.h"

/* Rows of one kind, type, library and kernel on one device; the sizes that occur in them. */
typedef struct cd_serving_group {
    uint8_t kind, type, kv;
    uint16_t stack, kernel;
    uint32_t device;
    size_t rows;
    double *size[CD_LLM_OP_MAX_SIZE]; /* (n_size) ascending, each once */
    size_t n_size[CD_LLM_OP_MAX_SIZE];
} cd_serving_group;

struct cd_serving_tables {
    cd_llm_op_table t;
    cd_serving_group *group;
    size_t n_group, cap_group;
};

/* ---- kernels that are named: serving_tables.c ---- */
/* Of a kind without a word every name. */
bool cd_serving_kernels_has(const cd_serving_kernels *k, uint8_t kind, const char *name);
/* What the kind's word means in the tables; of a kind without a word nothing. Without tables a name
 * that the model knows, which they get, for all types. Errors: ESCHEMA, ENOMEM. */
cdmpp_status cd_serving_kernels_find(const cd_serving_kernels *k, cd_serving_tables *t,
                                     const cd_llm_op_model *m, uint8_t kind, cd_serving_kernel *out,
                                     cdmpp_err *err);
/* named (CD_LLM_OP_N_KIND). Errors: ERANGE: a kernel that was named is of no type of the layout's
 * operators, or the model has no operators of its kind. */
cdmpp_status cd_serving_kernels_check(const cd_serving_kernel *named, const cd_serving_model *m,
                                      const cd_serving_layout *l, cdmpp_err *err);
#endif
