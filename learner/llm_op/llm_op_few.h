/* llm_op_few -- what a few measured rows of a GPU tell about the others: a GPU that no training
 * saw.
 *
 *   residual of a row = ln(its time / what the model predicts) = alike in all rows + in those of a
 *   type + of a library's kernel + in rows of like estimates
 *
 * Each of the four is a Gaussian process of a fixed variance, and what is left is noise. The
 * expected residual of another row corrects its answer. Rows say little about rows that they are
 * not like. The interval keeps its width: few rows narrow it less than they promise (tried on rows
 * to train on).
 *
 * Immutable after cd_llm_op_few_new: any thread. */
#ifndef CD_LLM_OP_FEW_H
#define CD_LLM_OP_FEW_H
#include "learner/llm_op/llm_op_estimate.h"

enum { CD_LLM_OP_FEW_PLACE = 4, CD_LLM_OP_FEW_MOST = 256 };

/* A row, as far as likeness goes. */
typedef struct cd_llm_op_few_row {
    uint8_t kind, type;
    uint16_t kernel;
    int maker; /* number of the library; -1: not known */
    /* log2: estimate in us, shares of tiles and memory, rounds of multiprocessors */
    float place[CD_LLM_OP_FEW_PLACE];
} cd_llm_op_few_row;
cd_llm_op_few_row cd_llm_op_few_row_of(const cd_llm_op_record *r, float maker,
                                       const cd_llm_op_estimate *e);

typedef struct cd_llm_op_few cd_llm_op_few;
/* row, residual (n), n 1 to CD_LLM_OP_FEW_MOST. Errors: ENOMEM. */
cdmpp_status cd_llm_op_few_new(const cd_llm_op_few_row *row, const double *residual, size_t n,
                               CD_GIVE cd_llm_op_few **out, cdmpp_err *err);
/* The expected residual of a row: 0 where none is like it. */
double cd_llm_op_few_ask(const cd_llm_op_few *f, const cd_llm_op_few_row *row);
size_t cd_llm_op_few_count(const cd_llm_op_few *f);
void cd_llm_op_few_free(CD_TAKE cd_llm_op_few *f); /* NULL is fine */
#endif
