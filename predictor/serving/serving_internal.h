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
#endif
