/* The door of features/analytic: what a CPU or a GPU does with a tensor program, computed from its
 * loop nest. Nothing here is learned or fitted.
 *
 *   cd_nest ──cd_facts_cpu──> CD_N_FACTS facts ───────────cd_analytic_seconds───────> seconds by
 *           ──cd_facts_gpu──> the first CD_N_GPU_FACTS ───cd_analytic_gpu_seconds───> three models
 *
 * There is no device in the facts: the functions that make seconds of them are told the device.
 *
 *   (1) facts are finite, at least 0, and counts of the whole program (facts_cols.def,
 *       facts_gpu_cols.def), so that a data set can store them and any device can use them;
 *       logarithms are the reader's;
 *   (2) they depend on extents, address expressions and annotations alone, not on names or on the
 *       order of memory;
 *   (3) they depend on nest->vector_bytes, the vectors of the target, and on nest->pack, whether
 *       weights are stored in the order of the loops: both come from the record;
 *   (4) the two sets of facts have columns of their own: who keeps facts keeps the set, too.
 * One cd_facts a thread; after warm-up it touches no heap. */
#ifndef CD_ANALYTIC_H
#define CD_ANALYTIC_H
#include "features/device/device.h"
#include "features/program/program.h"

enum {
#define X(ID, name, unit, meaning) CD_FACT_##ID,
#include "features/analytic/facts_cols.def"
    CD_N_FACTS,
    CD_N_FACT_CAPACITY = CD_FACT_WRITTEN_0 - CD_FACT_FETCHED_0,
    CD_N_FACT_REGION = 4 /* parallel loops that are told apart */
};
/* bytes of fetched_4k; each of the following is twice the one before */
#define CD_FACT_CAPACITY_LEAST 4096.0
/* of the meaning: raise it when a value changes under the same name */
#define CD_FACTS_VERSION 2

enum {
#define X(ID, name, of, unit, meaning) CD_GPU_FACT_##ID,
#include "features/analytic/facts_gpu_cols.def"
    CD_N_GPU_FACTS,
    /* groups of 1, 4, 16 ... blocks */
    CD_N_GPU_FACT_GROUP = CD_GPU_FACT_SECTORS_LOADED - CD_GPU_FACT_GROUP_1
};
_Static_assert((int)CD_N_GPU_FACTS <= (int)CD_N_FACTS,
               "facts of GPU programs are stored in the place of those of CPU programs");
/* likewise; 1: a compiler writes out loops of up to 256 copies, not 4096 */
#define CD_GPU_FACTS_VERSION 2
#define CD_GPU_SECTOR        32.0 /* bytes */

/* Of which programs facts are: which columns they have. */
typedef enum { CD_FACTS_OF_CPU, CD_FACTS_OF_GPU, CD_N_FACTS_SET } cd_facts_set;
#define CD_FACTS_SETS "cpu|gpu"
static inline bool cd_facts_set_is_gpu(int set) { return set != CD_FACTS_OF_CPU; }

typedef struct cd_fact_col {
    const char *name, *unit, *meaning;
} cd_fact_col;

/* CD_N_FACTS or CD_N_GPU_FACTS. */
size_t cd_facts_count(cd_facts_set set);
const cd_fact_col *cd_facts_cols(cd_facts_set set); /* (cd_facts_count(set)) */
/* "cpu" or "gpu". */
const char *cd_facts_set_name(cd_facts_set set);
/* Hex digest of version, names and order. 64 chars + NUL. */
void cd_facts_cols_digest(cd_facts_set set, char out[65]);
/* docs/reference/facts.md, the table of the set, as Markdown. */
void cd_facts_cols_print(cd_facts_set set, cd_buf *out);

typedef struct cd_facts cd_facts;

/* Scratch memory. Errors: ENOMEM. */
cdmpp_status cd_facts_new(CD_GIVE cd_facts **out, cdmpp_err *err);
void cd_facts_free(CD_TAKE cd_facts *f); /* NULL is fine */

/* Facts of a CPU program: out (CD_N_FACTS). Errors: EUNSUPPORTED (an extent that is no constant,
 * thread axes; the reason is in the message), ENOMEM. */
cdmpp_status cd_facts_cpu(cd_facts *f, const cd_nest *nest, float *out, cdmpp_err *err);

/* Facts of a GPU program: out (CD_N_FACTS), of which the first CD_N_GPU_FACTS are facts and the
 * others 0. Errors: EUNSUPPORTED (an extent that is no constant, a statement outside of all
 * kernels; the reason is in the message), ENOMEM. */
cdmpp_status cd_facts_gpu(cd_facts *f, const cd_nest *nest, float *out, cdmpp_err *err);
/* Which of them a program has: thread axes make a GPU program. */
cd_facts_set cd_facts_set_of_nest(const cd_nest *nest);
/* Those of the set. */
cdmpp_status cd_facts_of(cd_facts *f, cd_facts_set set, const cd_nest *nest, float *out,
                         cdmpp_err *err);

/* The numbers of a device that the three models read: clock_mhz, l1_kb, l2_kb, l3_kb,
 * bandwidth_gb_s, and where they are known cores, cores_used, lanes and probe_compute, probe_l1,
 * probe_l2, probe_l3, probe_memory. Of a GPU: clock_mhz, cores, lanes, warp, core_threads,
 * shared_kb, l1_kb, l2_kb, bandwidth_gb_s, and where they are known core_registers,
 * thread_registers, core_blocks. */
typedef cd_device cd_device_numbers;

/* General rules that stood in for a number that the device does not say. */
enum {
    CD_ANALYTIC_RULE_L1 = 1,
    CD_ANALYTIC_RULE_L2 = 2,
    CD_ANALYTIC_RULE_L3 = 4,
    CD_ANALYTIC_RULE_LANES = 8,
    CD_ANALYTIC_RULE_OVERHEAD = 16,
    CD_ANALYTIC_RULE_REGISTERS = 32,
    CD_ANALYTIC_RULE_BLOCKS = 64,
    CD_ANALYTIC_RULE_LATENCY = 128
};

typedef struct cd_analytic_time {
    double roofline_s; /* the slowest of the parts, and overhead */
    /* CPU: arithmetic beside loads from L1, transfers between levels one after the other, and
     * overhead. GPU: instructions and shared memory one after the other, beside the other parts,
     * and overhead */
    double ecm_s;
    double sum_s; /* all one after the other */
    /* arithmetic, instructions, waiting for sums, calls: all data in L1. GPU: instructions */
    double compute_s;
    /* loads and stores by registers; lines from L2, from L3, from memory. GPU: l1_s shared memory,
     * l3_s 0 */
    double l1_s, l2_s, l3_s, memory_s;
    /* GPU: a thread's loads, barriers and sums wait for each other; CPU: 0 */
    double latency_s;
    double overhead_s; /* calls, parallel regions, launches */
    /* that the program can use: work over the time of the longest thread. GPU: resident on a
     * multiprocessor */
    double threads;
    double waves;   /* GPU: turns of resident blocks; CPU: 0 */
    unsigned rules; /* CD_ANALYTIC_RULE_* that were needed */
} cd_analytic_time;

/* Seconds of a run whose data were used just before, on the cores in use of the device. Errors:
 * ESCHEMA (a number that the device does not say, its key named), ERANGE (facts that are none),
 * EUNSUPPORTED (not a CPU). */
cdmpp_status cd_analytic_seconds(const float *facts, const cd_device_numbers *device,
                                 cd_analytic_time *out, cdmpp_err *err);
/* The same of facts of a GPU program (CD_FACTS_OF_GPU). Errors: likewise, EUNSUPPORTED (not a
 * GPU). */
cdmpp_status cd_analytic_gpu_seconds(const float *facts, const cd_device_numbers *device,
                                     cd_analytic_time *out, cdmpp_err *err);
/* Those of the set. */
cdmpp_status cd_analytic_seconds_of(cd_facts_set set, const float *facts,
                                    const cd_device_numbers *device, cd_analytic_time *out,
                                    cdmpp_err *err);
#endif
