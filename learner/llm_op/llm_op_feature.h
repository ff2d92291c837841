/* llm_op_feature -- an operator of a language model as numbers for trees, of three kinds of
 * questions.
 *
 *   set     trees give ln(time / x)  see
 *   unseen  x = the estimate         sizes, type, stack, parts of the estimate
 *   seen    the same                 also numbers of the device
 *   near    x = what neighbours say  also what set seen expects of the record and of its measured
 *                                    neighbours: along each size the rows below and above, how far
 *                                    they are, and how much
 *                                    other curves bend between the same two points
 *
 * (1) every number is finite, or NaN where it is not known;
 * (2) what neighbours say is log-log interpolation along the axis of the kind where it has rows on
 *     both sides, else along the size with the nearest two; where no size has both, the nearest row
 *     times what the model (set seen) expects of the record over what it expects of the row.
 * No state, any thread. */
#ifndef CD_LLM_OP_FEATURE_H
#define CD_LLM_OP_FEATURE_H
#include "learner/llm_op/llm_op_estimate.h"
#include "learner/llm_op/llm_op_table.h"

typedef enum {
    CD_LLM_OP_SET_UNSEEN,
    CD_LLM_OP_SET_SEEN,
    CD_LLM_OP_SET_NEAR,
    CD_LLM_OP_N_SET
} cd_llm_op_set;
#define CD_LLM_OP_SET_NAMES "unseen|seen|near"

enum {
#define X(name, set, meaning) CD_LLM_OP_X_##name,
#include "learner/llm_op/llm_op_feature_cols.def"
    CD_LLM_OP_N_FEATURE
};
#define CD_LLM_OP_FEATURE_VERSION 6 /* raise it when a value changes under the same name */

const char *cd_llm_op_feature_name(size_t i);
/* Columns of a set are the first ones of all; returns how many. */
size_t cd_llm_op_feature_width(cd_llm_op_set s);

/* Codes of names as the trees know them; NaN: never seen. */
typedef struct cd_llm_op_codes {
    float maker, stack, kernel; /* "vllm" of "vllm-0.24.0"; the whole name; the kernel's */
    /* cd_llm_op_estimate_raise: the least time of a call; 0: not known */
    double host_s;
    bool alone; /* the same: each query head alone */
} cd_llm_op_codes;

/* The columns of sets unseen and seen, and the estimate. known, errors: those of
 * cd_llm_op_estimate_by. */
cdmpp_status cd_llm_op_feature(const cd_llm_op_record *r, const cd_device *d,
                               const cd_llm_op_codes *c, cd_llm_op_known *known,
                               float x[CD_LLM_OP_N_FEATURE], cd_llm_op_estimate *e, cdmpp_err *err);

/* How neighbours are asked. */
typedef struct cd_llm_op_near {
    const cd_llm_op_table *t;
    /* ln of the time that a model expects of a row of the table; NaN: none */
    double (*expect)(const void *ctx, size_t row);
    const void *ctx;
    const uint64_t *curve; /* cd_llm_op_table_curves of the record */
    uint32_t hide_sizes;   /* bits of sizes whose neighbours count as not there */
    bool hide_alike;       /* rows of other types, stacks and kernels do */
} cd_llm_op_near;
typedef enum { CD_LLM_OP_NO_SIDE, CD_LLM_OP_ONE_SIDE, CD_LLM_OP_TWO_SIDES } cd_llm_op_sides;
/* The measured rows below [0] and above [1] along each size of the record; CD_LLM_OP_NONE: there is
 * none, or it is hidden. */
typedef struct cd_llm_op_beside {
    long row[CD_LLM_OP_MAX_SIZE][2];
} cd_llm_op_beside;
void cd_llm_op_feature_beside(const cd_llm_op_near *q, const cd_llm_op_record *r, uint32_t device,
                              cd_llm_op_beside *out);
/* The columns of set near, from these rows; *said: ln of what neighbours say. own: ln of the time
 * that the model expects of the record. No side: there is no neighbour, and *said is not set. */
cd_llm_op_sides cd_llm_op_feature_near(const cd_llm_op_near *q, const cd_llm_op_record *r,
                                       uint32_t device, const cd_llm_op_beside *near, double own,
                                       float x[CD_LLM_OP_N_FEATURE], double *said);
#endif
