/* What the files of operators of language models share. */
#ifndef CD_LLM_OP_INTERNAL_H
#define CD_LLM_OP_INTERNAL_H
#include "learner/llm_op/llm_op_few.h"
#include "learner/llm_op/llm_op_model.h"

struct cd_llm_op_asker {
    const cd_llm_op_model *m;
    const cd_llm_op_table *t;
    const cd_dict *names;
    size_t n_name;           /* names when the asker was made: later ones are looked up */
    cd_llm_op_codes *stack;  /* (n names) maker and stack are used */
    float *kernel;           /* (n names) */
    float *expect;           /* (t->n) ln of what set seen expects, computed when first asked; 0: not yet */
    cd_llm_op_few **few;     /* (t->n_known, CD_LLM_OP_N_FAMILY) of devices that were not trained on; NULL: none */
};
/* Codes of a record's names. */
cd_llm_op_codes cd_llm_op_asker_codes(const cd_llm_op_asker *a, const cd_llm_op_record *r);

/* Sorts what repeated rows differ. Errors: ENOMEM. */
cdmpp_status cd_llm_op_repeats_index(cd_llm_op_table *t, cdmpp_err *err);
#endif
