/* llm_op_estimate -- an analytic time of an operator of a language model on a GPU, from the GPU's
 * description alone.
 *
 *   product     fixed + overlap of (memory, best over tiles a x b and splits of k of  waves * time
 *     of a tile on one multiprocessor)
 *               time of a tile = max(operations / its share of the peak, operands / its share of
 *               the L2 cache's bandwidth) + filling the pipeline
 *   prefill     blocks of 128 queries of a head, longer for later queries; products, exponentials,
 *               memory, and what each block costs by itself
 *   decode      (alone_s: a block and a read of the cache for each query head) the cache read once,
 *               by as many blocks as sequences, key heads and pieces of the cache give, which cost
 *               by themselves
 *   experts     products of the experts that some token takes, each with its share of the tokens,
 *               by the loads' distribution
 *   collective  the fastest of the algorithms: steps * latency + bytes over the link
 *   stream      bytes over the bandwidth
 *
 * The bandwidth is that of the data sheet, the peak what the board's power allows of the sheet's;
 * fixed times are in clocks. What kernels do not reach is left to the learner, as a factor.
 * Constants come from rows of A100, H100 and L40S that models are trained on. A tensor set that
 * fits into the L2 cache is read from there: tables are measured by repeating a call.
 *
 * (1) every number is finite, base_s > 0;
 * (2) roof_s is the lower bound of docs/reference/llm-operators.md: max(operations / peak, bytes /
 *     bandwidth).
 * No state but the caller's cd_llm_op_known, any thread. */
#ifndef CD_LLM_OP_ESTIMATE_H
#define CD_LLM_OP_ESTIMATE_H
#include "features/operators/operators.h"
#include "learner/llm_op/llm_op_machine.h"

typedef enum {
    CD_LLM_OP_PRODUCT,
    CD_LLM_OP_FAMILY_PREFILL,
    CD_LLM_OP_FAMILY_DECODE,
    CD_LLM_OP_FAMILY_LATENT_PREFILL,
    CD_LLM_OP_FAMILY_LATENT_DECODE,
    CD_LLM_OP_FAMILY_MOE,
    CD_LLM_OP_COLLECTIVE,
    CD_LLM_OP_STREAM,
    CD_LLM_OP_N_FAMILY
} cd_llm_op_family;
/* The family of a kind: those of one family have one set of trees. Names of families. */
cd_llm_op_family cd_llm_op_family_of(cd_llm_op_kind k);
const char *cd_llm_op_family_name(cd_llm_op_family f);

typedef struct cd_llm_op_estimate {
    /* useful operations; bytes of each tensor once; of collectives those over the link */
    double flops, bytes;
    double compute_s, memory_s; /* the roofs; of collectives memory_s is of the link */
    double roof_s, base_s;      /* the lower bound; the estimate, > 0 */
    double tiles_s, exp_s;      /* compute with tiles and waves; exponentials */
    /* decode by kernels that serve one query head at a time: libraries take them for many heads of
     * a key head; else 0 */
    double alone_s;
    double waves, tile_m, tile_n, split; /* of the best tile; 1 where there is none */
    double cached;                       /* bytes that are read again over those of the L2 cache */
    /* rows of a group of a grouped product (queries of a block, tokens of an expert), and how many
     * groups */
    double each, groups;
} cd_llm_op_estimate;

/* ceil() of what is not below 0: without the call that it is where a processor's own is not
 * assumed. */
static inline double cd_llm_op_ceil(double x) {
    if (!(x < 4503599627370496.0)) return x; /* whole already */
    const int64_t whole = (int64_t)x;
    /* without a branch, which would often be taken wrongly */
    return (double)(whole + ((double)whole < x));
}

/* Classes of `count` experts that `tokens` tokens take each, most taken first, before they add up
 * to those that there are: drawn for `all` experts from few to many by a power law. */
enum { CD_LLM_OP_LOADS = 12 };
typedef struct cd_llm_op_loads {
    double skew, few, many, all; /* all 0: nothing is known yet */
    double sum, tokens[CD_LLM_OP_LOADS], count[CD_LLM_OP_LOADS];
    size_t n;
} cd_llm_op_loads;
/* What questions before computed, for many of few GPUs and like experts. Starts from {0}. Devices
 * do not change meanwhile. */
enum { CD_LLM_OP_MACHINES = 4, CD_LLM_OP_KNOWN_LOADS = 256 };
typedef struct cd_llm_op_known {
    cd_llm_op_machine machine[CD_LLM_OP_N_TYPE][CD_LLM_OP_MACHINES];
    cd_llm_op_loads loads[CD_LLM_OP_KNOWN_LOADS];
} cd_llm_op_known;

/* known: NULL: nothing is kept. Errors: EMODEL: no GPU, or its description lacks a number that the
 * operator needs, or it has no units for the type (the error's key). */
cdmpp_status cd_llm_op_estimate_by(const cd_llm_op_record *r, const cd_device *d,
                                   cd_llm_op_known *known, cd_llm_op_estimate *out, cdmpp_err *err);
cdmpp_status cd_llm_op_estimate_of(const cd_llm_op_record *r, const cd_device *d,
                                   cd_llm_op_estimate *out, cdmpp_err *err);
/* The estimate of a kernel of which more is known: it serves each query head alone (where alone_s >
 * 0); a call of it takes that long at least, whatever the GPU. */
void cd_llm_op_estimate_raise(cd_llm_op_estimate *e, bool alone, double host_s);
#endif
