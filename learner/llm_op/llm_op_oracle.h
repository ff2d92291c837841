/* llm_op_oracle -- everything that answers questions about operators of language models: a model,
 * what was measured, the devices.
 *
 *   named values, {"op":"gemm","device":"h100","m":1024,...} -> record, device -> cd_llm_op_ask ->
 *     answer
 *
 * Immutable after opening: any thread. */
#ifndef CD_LLM_OP_ORACLE_H
#define CD_LLM_OP_ORACLE_H
#include "learner/llm_op/llm_op_model.h"

typedef struct cd_llm_op_oracle {
    cd_llm_op_model *m;
    cd_device_table *devices;
    cd_llm_op_table t;
    cd_llm_op_asker *asker;
    char digest[65];         /* SHA-256 of the model file */
    const cd_device *device; /* of questions that name none; NULL: none */
} cd_llm_op_oracle;

typedef struct cd_llm_op_oracle_options {
    const char *model, *devices_file; /* devices_file NULL: from where it is looked for */
    const char *device;               /* NULL: questions name theirs */
    const char *const *measured;      /* (n_measured) tables and folders */
    size_t n_measured;
    cd_op_bad_line *bad; /* told of bad lines of these */
    void *ctx;
} cd_llm_op_oracle_options;

/* Start from {0}; free it after an error, too. Errors: EIO, EMODEL (another kind of model), those
 * of reading model, devices and tables; ENOMEM. */
cdmpp_status cd_llm_op_oracle_open(cd_llm_op_oracle *o, const cd_llm_op_oracle_options *how,
                                   cdmpp_err *err);
void cd_llm_op_oracle_free(cd_llm_op_oracle *o);
/* Lines of `measured` that could not be used. */
size_t cd_llm_op_oracle_bad(const cd_llm_op_oracle *o);

typedef struct cd_llm_op_told {
    cd_llm_op_record r;
    const cd_device *d;
    cd_llm_op_answer a;
} cd_llm_op_told;
/* The question alone: record and device. Errors: those of cd_llm_op_from_named; ESCHEMA (no device,
 * an unknown one). */
cdmpp_status cd_llm_op_oracle_read(const cd_llm_op_oracle *o, const cd_op_named *v, size_t n,
                                   cd_llm_op_told *out, cdmpp_err *err);
/* Answers to n questions whose whys have code 0; why one has none goes there. Errors: ENOMEM,
 * EBACKEND. */
enum { CD_LLM_OP_TOLD = 128 }; /* that are asked at once */
cdmpp_status cd_llm_op_ask_told(const cd_llm_op_asker *a, cd_llm_op_told *v, cdmpp_err *whys,
                                size_t n, double level, cdmpp_err *err);
#endif
