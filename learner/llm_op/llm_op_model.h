/* llm_op_model -- times of operators of language models: a trained model, its file, and answers.
 *
 *   a question without a kernel: each that was measured of its library is asked, and the nearest
 *       answer counts, of those alike the fastest (llm_op_oracle.c)
 *
 *   record, device -> the row is in the measured table          -> measured
 *                  -> two measured rows are its neighbours      -> interpolated: trees of set near
 *                  -> one is, beyond the end of its curves      -> predicted: trees of set near
 *                  -> the device was trained on                 -> predicted: trees of set seen
 *                  -> one of the same chip was                  -> predicted: its answer, times the
 *                                                                  ratio of the estimates
 *                                                                  (llm_op_model.c), corrected as
 *                                                                  in the next row
 *                  -> else                                      -> predicted: trees of set unseen,
 *                                                                  corrected by measured rows of
 *                                                                  the device (llm_op_few.h)
 *
 *   latency = x * exp(bias + score)
 *       of sets seen and unseen x is the estimate, of near what neighbours say
 *
 * The estimate rises with the sizes. Trees may fall with them, as time over the estimate does:
 * large operators are nearer to it. So an answer falls here and there where a size grows.
 *
 *   interval = latency * exp(-/+ times[level] * exp(spread_bias + score of the spread))
 *
 * The spread is a second set of trees, which tells how large residuals of rows are that a training
 * did not see: sites (all sizes but the axis's) for sets near and seen, devices for unseen; `times`
 * are quantiles of residual over spread, of unseen by spreads of the other devices, times the root
 * of 1 + 1 / devices. A measured row has the interval of what was measured again (llm_op_table.h):
 * one time alone does not tell how much the next would differ.
 *
 * A library, kernel, type or operator that no training row of the family has: a training holds out
 * one value of each after another (learner/operators/novelty.h), and its interval is as wide as
 * such answers were off; those of several news and of a new GPU add up as squares. Where no
 * experiment can tell (a family of one type alone, another vendor, a file that does not say) there
 * is no interval. Answers with measured neighbours are of none of these.
 *
 * File: a container (base/io) with the header
 *   {"schema":"cdmpp.model","schema_version":2,
 *    "model":{"kind":"llm-operators","feature_version","feature_digest",
 *             "stacks":[names],"kernels":[names],
 *             "devices":[{"name","warp","families":[names],"types":{family:[names]},
 *                         "numbers":{the known ones of its description}}],
 *             "ranges":[{"kind","types":[names],"kv":{type:[names of its caches]} (none: any),
 *                        "low":[..],"high":[..]}],
 *             "calls":[{"kind","type","maker","kernel","host_s","alone"}]
 *                      (none: nothing was found out),
 *             "seen":{family:{"stacks":[numbers],"kernels":[numbers]}}
 *                      (none: all may be of each family),
 *             "novelties":[{"family","what":"stack|kernel|dtype|operator","values","rows",
 *                           "between","rest":[one for each level]}] (none: nobody knows),
 *             "parts":[{"family","set","bias","rows","bytes","spread_bytes","spread_bias",
 *                       "times":[one for each level]}]}, provenance}
 * and the parts' boosters (XGBoost's UBJ), of each part first those of the answer, as weights. A
 * part without an interval has spread_bytes 0.
 *
 * Immutable after loading: any thread. */
#ifndef CD_LLM_OP_MODEL_H
#define CD_LLM_OP_MODEL_H
#include "learner/llm_op/llm_op_feature.h"
#include "learner/trees/trees.h"

enum { CD_LLM_OP_LEVELS = 5 };
/* Levels of `times`, ascending. */
extern const double cd_llm_op_level[CD_LLM_OP_LEVELS];

typedef struct cd_llm_op_part {
    cd_xgb *gbt, *spread; /* NULL: there is none */
    double bias, spread_bias, times[CD_LLM_OP_LEVELS];
    uint64_t n_row;
} cd_llm_op_part;

typedef struct cd_llm_op_model_device {
    const char *name;
    double warp; /* threads in lockstep: NVIDIA 32, AMD 64; not above 0: not known */
    /* its description when it was trained on; of older files numbers are unknown */
    cd_device about;
    bool family[CD_LLM_OP_N_FAMILY];
    /* bits: cd_llm_op_type that it has rows of; of older files all */
    uint32_t types[CD_LLM_OP_N_FAMILY];
} cd_llm_op_model_device;

typedef struct cd_llm_op_range {
    bool any, type[CD_LLM_OP_N_TYPE];
    /* bits: cd_llm_op_type of the caches that rows of a type have; of older files all */
    uint32_t kv[CD_LLM_OP_N_TYPE];
    double low[CD_LLM_OP_MAX_SIZE], high[CD_LLM_OP_MAX_SIZE];
} cd_llm_op_range;

/* What a training found out about a kernel of a library, on every device that has it. */
typedef struct cd_llm_op_call {
    uint8_t kind, type;
    float maker, kernel; /* codes, never NaN */
    /* a call takes that long at least: the host prepares it, and times do not fall with the work;
     * 0: they do */
    double host_s;
    bool alone; /* query heads are served one at a time where a key head has many */
} cd_llm_op_call;

/* What can be new about an operator beside its GPU. */
typedef enum {
    CD_LLM_OP_NOVEL_STACK,
    CD_LLM_OP_NOVEL_KERNEL,
    CD_LLM_OP_NOVEL_TYPE,
    CD_LLM_OP_NOVEL_KIND,
    CD_LLM_OP_N_NOVEL
} cd_llm_op_novel;
#define CD_LLM_OP_NOVELS "stack|kernel|dtype|operator"

typedef struct cd_llm_op_model {
    cd_arena arena;
    const char *header; /* JSON; NULL: it was not read from a file */
    cd_dict stacks, kernels;
    /* (stacks.n), (kernels.n): rows of the family have it. NULL: an older file, any may */
    bool *has_stack[CD_LLM_OP_N_FAMILY], *has_kernel[CD_LLM_OP_N_FAMILY];
    cd_novelty novel[CD_LLM_OP_N_FAMILY][CD_LLM_OP_N_NOVEL];
    cd_llm_op_model_device *device;
    size_t n_device, n_call;
    cd_llm_op_call *call;
    cd_llm_op_range range[CD_LLM_OP_N_KIND];
    cd_llm_op_part part[CD_LLM_OP_N_FAMILY][CD_LLM_OP_N_SET];
} cd_llm_op_model;

/* Is the file a model of this kind? False for what is no model, too. */
bool cd_llm_op_model_is(const void *p, size_t n);
/* Errors: EPARSE ESCHEMA ERANGE (damaged), EMODEL (another kind, other features: train again),
 * ENOMEM, EBACKEND. */
cdmpp_status cd_llm_op_model_from_bytes(const void *p, size_t n, CD_GIVE cd_llm_op_model **out,
                                        cdmpp_err *err);
/* provenance: members of the header behind the model, with a comma first. Errors: ENOMEM
 * EBACKEND. */
cdmpp_status cd_llm_op_model_encode(const cd_llm_op_model *m, const char *provenance, cd_buf *out,
                                    cdmpp_err *err);
void cd_llm_op_model_free(CD_TAKE cd_llm_op_model *m); /* NULL is fine */
/* Codes of a stack and a kernel by their names. */
cd_llm_op_codes cd_llm_op_model_codes(const cd_llm_op_model *m, const char *stack,
                                      const char *kernel);
/* Sets host_s and alone of codes, by the others. */
void cd_llm_op_model_call(const cd_llm_op_model *m, const cd_llm_op_record *r, cd_llm_op_codes *c);
/* Is a GPU of the training of this one's vendor? Told by the width of warps; true where nobody
 * knows. */
bool cd_llm_op_model_vendor(const cd_llm_op_model *m, const cd_device *d);
/* Has a row of the family the stack, the kernel of this code? NaN: no. */
bool cd_llm_op_model_has_stack(const cd_llm_op_model *m, cd_llm_op_family f, float code);
bool cd_llm_op_model_has_kernel(const cd_llm_op_model *m, cd_llm_op_family f, float code);
/* Has a row of the kind the type, with this type of a cache? */
bool cd_llm_op_range_has(const cd_llm_op_range *g, uint8_t type, uint8_t kv);
/* Columns of a type that was not trained on become those of one alike. range (CD_LLM_OP_N_KIND). */
void cd_llm_op_model_types(const cd_llm_op_range *range, const cd_llm_op_record *r,
                           float x[CD_LLM_OP_N_FEATURE]);
/* The nearest GPU of the same chip that was trained on in this family, which lives with the model;
 * NULL: there is none, or d itself was. */
CD_KEEP const cd_device *cd_llm_op_twin_of(const cd_llm_op_model *m, const cd_device *d,
                                           cd_llm_op_family f);
/* Who is asked this record in the place of d: of these the nearest whose description tells how fast
 * it is in the record's type. A GPU that was trained on, but not with this type, has such a one
 * too, of those that have rows of it. NULL: nobody. */
CD_KEEP const cd_device *cd_llm_op_twin_for(const cd_llm_op_model *m, const cd_llm_op_record *r,
                                            const cd_device *d);
/* What is new about the GPU itself: CD_LLM_OP_NEW_DEVICE, CD_LLM_OP_NEW_VENDOR; 0: a training had
 * rows of it, of some family. twin: cd_llm_op_twin_of the first family that has one, NULL: none
 * has. */
unsigned cd_llm_op_model_about(const cd_llm_op_model *m, const cd_device *d,
                               CD_KEEP const cd_device **twin);

/* ---- answers ---- */
typedef enum { CD_LLM_OP_MEASURED, CD_LLM_OP_INTERPOLATED, CD_LLM_OP_PREDICTED } cd_llm_op_how;
#define CD_LLM_OP_HOWS "measured|interpolated|predicted"

/* What is new about a predicted row. */
enum {
    CD_LLM_OP_NEW_DEVICE = 1,
    CD_LLM_OP_NEW_STACK = 2,
    CD_LLM_OP_NEW_KERNEL = 4,
    CD_LLM_OP_NEW_TYPE = 8,
    CD_LLM_OP_NEW_SIZE = 16,
    CD_LLM_OP_NEW_VENDOR = 32,
    CD_LLM_OP_NEW_KIND = 64
};
#define CD_LLM_OP_NEWS "device|stack|kernel|dtype|size|vendor|operator"
enum { CD_LLM_OP_N_NEWS = 7, CD_LLM_OP_NEWS_TEXT = 64 };

typedef struct cd_llm_op_answer {
    cd_llm_op_how how;
    unsigned news;                   /* CD_LLM_OP_NEW_*; 0 of a measured row */
    double latency_s, low_s, high_s; /* low_s NaN: nobody knows the interval */
    /* what neighbours say on both sides, log-log interpolation; NaN: there are none, or the row was
     * measured */
    double line_s;
    double base_s, roof_s; /* the analytic estimate and the lower bound */
    /* the GPU of the same chip whose answer this is, times the ratio of the estimates; lives with
     * the model. NULL: there is none */
    const char *twin;
    cd_llm_op_how twin_how; /* how the twin's answer came about */
    /* measured rows of the device that corrected the answer, where it was not trained on; else 0 */
    uint32_t few;
    /* where its type is new: 1 + the type that is answered in its place, of as many bytes on the
     * same units; 0: none is */
    uint8_t alike;
    /* whose answer it is: the record's, or those that were measured where it left them open */
    uint16_t stack, kernel;
} cd_llm_op_answer;

/* A model and what was measured, ready to answer. Immutable: any thread. */
typedef struct cd_llm_op_asker cd_llm_op_asker;
/* measured: an indexed table, or NULL. names: what the records' stacks and kernels are numbers of.
 * All outlive the asker; names may grow. Errors: ENOMEM. */
cdmpp_status cd_llm_op_asker_new(const cd_llm_op_model *m, const cd_llm_op_table *measured,
                                 const cd_dict *names, CD_GIVE cd_llm_op_asker **out,
                                 cdmpp_err *err);
void cd_llm_op_asker_free(CD_TAKE cd_llm_op_asker *a); /* NULL is fine */
/* level: 0..1, both open. The record's numbers of names must be those of `measured->names` where
 * there is a table. Errors: those of cd_llm_op_estimate_of; EMODEL: the model was trained on no
 * operator of its family. */
cdmpp_status cd_llm_op_ask(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_device *d,
                           double level, cd_llm_op_answer *out, cdmpp_err *err);
/* The answer for the stack and kernel that the record names: no kernel is one of its own here. Of
 * who chooses kernels himself. level may be 0: an answer has no interval, and a predicted one takes
 * half of the time. */
cdmpp_status cd_llm_op_ask_as_is(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                 const cd_device *d, double level, cd_llm_op_answer *out,
                                 cdmpp_err *err);
/* The same answers for n records, each on its device: trees score many rows at once. whys (n): why
 * a record has no answer, code 0: it has one, and nothing else is set there; NULL: the first
 * without one ends it. */
cdmpp_status cd_llm_op_ask_many(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                const cd_device *const *d, size_t n, double level,
                                cd_llm_op_answer *out, cdmpp_err *whys, cdmpp_err *err);
/* "device+stack"; "" for none. */
void cd_llm_op_news_text(unsigned news, char out[CD_LLM_OP_NEWS_TEXT]);
#endif
