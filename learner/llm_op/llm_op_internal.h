/* What the files of operators of language models share. */
#ifndef CD_LLM_OP_INTERNAL_H
#define CD_LLM_OP_INTERNAL_H
#include "learner/llm_op/llm_op_few.h"
#include "learner/llm_op/llm_op_model.h"

/* A measured kernel of a library. */
typedef struct cd_llm_op_kernel {
    uint64_t group; /* kind, types, device */
    uint16_t stack, kernel;
} cd_llm_op_kernel;

struct cd_llm_op_asker {
    const cd_llm_op_model *m;
    const cd_llm_op_table *t;
    const cd_dict *names;
    size_t n_name;          /* names when the asker was made: later ones are looked up */
    cd_llm_op_codes *stack; /* (n names) maker and stack are used */
    float *kernel;          /* (n names) */
    /* (t->n) ln of what set seen expects, computed when first asked; 0: not yet */
    float *expect;
    cd_llm_op_kernel *of; /* (n_of) by group, stack, kernel: each once */
    size_t n_of;
    /* (t->n_known, CD_LLM_OP_N_FAMILY) of devices that were not trained on; NULL: none */
    cd_llm_op_few **few;
};
/* What the training has of a family on a GPU: rows, of the very type. */
enum { CD_LLM_OP_HAS_ROWS = 1, CD_LLM_OP_HAS_TYPE = 2 };
unsigned cd_llm_op_model_has(const cd_llm_op_model *m, cd_llm_op_family f, const cd_device *d,
                             cd_llm_op_type t);
/* 1 + a type alike that the training has of the operator, of this GPU where it has any of its
 * family; 0: there is none. */
uint8_t cd_llm_op_model_alike(const cd_llm_op_model *m, cd_llm_op_family f,
                              const cd_llm_op_record *r, const cd_device *d);
/* Codes of a record's names. */
cd_llm_op_codes cd_llm_op_asker_codes(const cd_llm_op_asker *a, const cd_llm_op_record *r);

/* ---- GPUs of one chip ---- */
/* Are both of one chip, for operators of this family? */
bool cd_llm_op_twin_is(const cd_device *a, const cd_device *b, cd_llm_op_family f);
/* The twin's answer as one for the GPU whose estimate is e. */
void cd_llm_op_twin_tell(const cd_llm_op_answer *of, const cd_device *twin,
                         const cd_llm_op_estimate *e, cd_llm_op_answer *out);
/* The same for a record, asked of the twin; as it is, without corrections by measured rows of d.
 * Errors: those of cd_llm_op_ask. */
cdmpp_status cd_llm_op_twin_ask(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                const cd_llm_op_estimate *e, const cd_device *twin, double level,
                                cd_llm_op_answer *out, cdmpp_err *err);

/* Lists the kernels of the table. Errors: ENOMEM. */
cdmpp_status cd_llm_op_kernels_new(cd_llm_op_asker *a, cdmpp_err *err);
/* cd_llm_op_ask_many for the stacks and kernels that the records name. */
cdmpp_status cd_llm_op_ask_many_as_is(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                      const cd_device *const *d, size_t n, double level,
                                      cd_llm_op_answer *out, cdmpp_err *whys, cdmpp_err *err);

cdmpp_status cd_llm_op_repeats_index(cd_llm_op_table *t, cdmpp_err *err);
/* "gemm.tsv:12 1.2e-05 s" */
struct cd_buf;
/* A warning where medians are far from the estimate. */
struct cd_log;
#endif
