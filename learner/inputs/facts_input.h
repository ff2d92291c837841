/* facts_input -- facts of a program's loop nest as further columns of trees, and its analytic time
 * as what trees correct.
 *
 *   facts (CD_N_FACTS) ------------------------> log2(fact + 1), counts relative                \
 *   facts, numbers of the device -> analytic -+> ln of three totals, ln of a part over the sum  ->
 *     CD_N_FACTS_COL columns
 *                                             +> ln of one of the totals: the prior of a member
 *
 * Of CPU programs counts are relative: log2 of a count over the instructions, and of lines and
 * pages also over the distinct lines, since what a program takes beside its analytic time does not
 * follow from its size. In the place of what would be 0 everywhere (instructions over instructions,
 * lines over lines) is the size itself.
 *
 * The analytic times of a program are kept as CD_N_ANALYTIC numbers, ln of seconds: the totals of
 * three models, then the parts, then ln of the threads that work at a time (of a GPU program 0). A
 * part of less than 1 ps counts as 1 ps. Of GPU programs the columns behind their facts are 0, so
 * that all matrices have one width, their counts are not relative, and the time of waiting stands
 * in the place of L3. Bump CD_FACTS_INPUT_VERSION with every change: a model file carries it. No
 * state, any thread. */
#ifndef CD_FACTS_INPUT_H
#define CD_FACTS_INPUT_H
#include "features/analytic/analytic.h"
#include "learner/inputs/program_view.h"

#define CD_FACTS_INPUT_VERSION 3

/* What trees make of facts. */
typedef enum { CD_FACTS_USE_NONE, CD_FACTS_USE_COLUMNS, CD_FACTS_USE_PRIOR } cd_facts_use;
#define CD_FACTS_USES "none|columns|prior"
/* Which model the prior is of: the first of the analytic numbers. */
#define CD_PRIORS "roofline|ecm|sum"
enum {
    CD_N_PRIOR = 3,
    CD_N_ANALYTIC = CD_N_PRIOR + 7,
    CD_N_TRAFFIC = CD_FACT_PAGES_2048 + 1,
    CD_N_FACTS_COL = CD_N_FACTS + CD_N_TRAFFIC + CD_N_ANALYTIC
};
/* Groups of columns of CPU programs (train.facts_without); times: the analytic times. */
#define CD_FACTS_GROUPS "traffic|work|cycles|shape|threads|times"
typedef enum {
    CD_FACTS_TRAFFIC,
    CD_FACTS_WORK,
    CD_FACTS_CYCLES,
    CD_FACTS_SHAPE,
    CD_FACTS_THREADS,
    CD_FACTS_TIMES,
    CD_N_FACTS_GROUP
} cd_facts_group;

/* out (CD_N_ANALYTIC). Errors: those of cd_analytic_seconds_of. */
cdmpp_status cd_facts_input_times(cd_facts_set set, const float *facts,
                                  const cd_device_numbers *device, float *out, cdmpp_err *err);
/* Whether program p of the view has facts. */
bool cd_facts_input_has(const cd_program_view *v, size_t p);
/* The group of that name; CD_N_FACTS_GROUP where there is none. */
cd_facts_group cd_facts_input_group(const char *name);
/* x (CD_N_FACTS_COL) of program p, which has facts; 0 in groups of v->facts_without. */
void cd_facts_input_fill(const cd_program_view *v, size_t p, float *x);
#endif
