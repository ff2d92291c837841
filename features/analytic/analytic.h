/* The door of features/analytic: what a CPU does with a tensor program, computed from its loop nest. Nothing here is learned or fitted.
 *
 *   cd_nest ──cd_facts_cpu──> facts (CD_N_FACTS), no device in them ──cd_analytic_seconds, a device──> seconds by three models
 *
 *   (1) facts are finite, at least 0, and counts of the whole program (facts_cols.def), so that a data set can store them and any device
 *       can use them; logarithms are the reader's;
 *   (2) they depend on extents, address expressions and annotations alone, not on names or on the order of memory;
 *   (3) they depend on nest->vector_bytes, the vectors of the target, and on nest->pack, whether weights are stored in the order of
 *       the loops: both come from the record.
 * One cd_facts a thread; after warm-up it touches no heap. */
#ifndef CD_ANALYTIC_H
#define CD_ANALYTIC_H
#include "features/device/device.h"
#include "features/program/program.h"

enum {
#define X(ID, name, unit, meaning) CD_FACT_##ID,
#include "features/analytic/facts_cols.def"
    CD_N_FACTS,
    CD_N_FACT_CAPACITY = CD_FACT_WRITTEN_0 - CD_FACT_FETCHED_0
};
#define CD_FACT_CAPACITY_LEAST 4096.0 /* bytes of fetched_4k; each of the following is twice the one before */
#define CD_FACTS_VERSION 1            /* of the meaning: raise it when a value changes under the same name */

typedef struct cd_fact_col {
    const char *name, *unit, *meaning;
} cd_fact_col;

const cd_fact_col *cd_facts_cols(void); /* (CD_N_FACTS) */
/* Hex digest of version, names and order. 64 chars + NUL. */
void cd_facts_cols_digest(char out[65]);
/* docs/reference/facts.md, the table of it, as Markdown. */
void cd_facts_cols_print(cd_buf *out);

typedef struct cd_facts cd_facts;

/* Scratch memory. Errors: ENOMEM. */
cdmpp_status cd_facts_new(CD_GIVE cd_facts **out, cdmpp_err *err);
void cd_facts_free(CD_TAKE cd_facts *f); /* NULL is fine */

/* Facts of a CPU program: out (CD_N_FACTS). Errors: EUNSUPPORTED (an extent that is no constant, thread axes; the reason is in the
 * message), ENOMEM. */
cdmpp_status cd_facts_cpu(cd_facts *f, const cd_nest *nest, float *out, cdmpp_err *err);

/* The numbers of a device that the three models read: clock_mhz, l1_kb, l2_kb, l3_kb, bandwidth_gb_s, and where they are known cores,
 * cores_used, lanes and probe_compute, probe_l1, probe_l2, probe_l3, probe_memory. */
typedef cd_device cd_device_numbers;

/* General rules that stood in for a number that the device does not say. */
enum { CD_ANALYTIC_RULE_L1 = 1, CD_ANALYTIC_RULE_L2 = 2, CD_ANALYTIC_RULE_L3 = 4, CD_ANALYTIC_RULE_LANES = 8, CD_ANALYTIC_RULE_OVERHEAD = 16 };

typedef struct cd_analytic_time {
    double roofline_s;          /* the slowest of the parts, and overhead */
    double ecm_s;               /* arithmetic beside loads from L1, transfers between levels one after the other, and overhead */
    double sum_s;               /* all one after the other */
    double compute_s;           /* arithmetic, instructions, waiting for sums, calls: all data in L1 */
    double l1_s, l2_s, l3_s, memory_s; /* loads and stores by registers; lines from L2, from L3, from memory */
    double overhead_s;          /* calls, parallel regions */
    double threads;             /* that the program can use: work over the time of the longest thread */
    unsigned rules;             /* CD_ANALYTIC_RULE_* that were needed */
} cd_analytic_time;

/* Seconds of a run whose data were used just before, on the cores in use of the device. Errors: ESCHEMA (a number that the device does
 * not say, its key named), ERANGE (facts that are none), EUNSUPPORTED (not a CPU). */
cdmpp_status cd_analytic_seconds(const float *facts, const cd_device_numbers *device, cd_analytic_time *out, cdmpp_err *err);
#endif
