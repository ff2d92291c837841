/* The steps of an answer, for one record and for many: llm_op_ask.c tells in which order. */
#ifndef CD_LLM_OP_ASK_INTERNAL_H
#define CD_LLM_OP_ASK_INTERNAL_H
#include "learner/llm_op/llm_op_internal.h"

/* A record on its way. */
typedef struct cd_llm_op_asking {
    const cd_llm_op_record *r;
    const cd_device *d;
    long device; /* in the table; CD_LLM_OP_NONE */
    cd_llm_op_family f;
    cd_llm_op_codes c;
    unsigned has; /* CD_LLM_OP_HAS_* of its device; 0: it was not trained on */
    float x[CD_LLM_OP_N_FEATURE];
    cd_llm_op_estimate e;
    /* own: ln of what the trees of set seen expect, NaN: nobody needs it; said: by neighbours */
    double own, said;
    cd_llm_op_beside beside;
    cd_llm_op_sides near;
    /* where its row and its curves are in the table: cd_llm_op_table_hash, cd_llm_op_table_curve */
    uint64_t hash, curve[CD_LLM_OP_MAX_SIZE + 1];
    cd_llm_op_set s;
    /* of set s; NULL: it is answered, or cannot be, or the twin is asked */
    const cd_llm_op_part *p;
    const cd_device *twin; /* who is asked; NULL: nobody */
    float score, spread;
} cd_llm_op_asking;

/* ---- what the trees of set seen expect ---- */
/* Rows of a family whose expectation somebody will ask: computed together, which is faster than one
 * by one. Starts from {0}. */
enum { CD_LLM_OP_AWAITED = 256, CD_LLM_OP_AWAITED_SEEN = 1024 };
typedef struct cd_llm_op_awaited {
    uint32_t row[CD_LLM_OP_AWAITED];
    /* row + 1, by its last bits: most that come again are told */
    uint32_t seen[CD_LLM_OP_AWAITED_SEEN];
    size_t n;
} cd_llm_op_awaited;
#endif
