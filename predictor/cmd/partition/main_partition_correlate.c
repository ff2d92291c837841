/* Verb "correlate" of cdmpp-partition: which settings a time depends on, and where each of them
 * turns. */
#include "predictor/cmd/partition/main_partition.h"
#include "profiler/curves/curves.h"

typedef struct {
    const char *target, *axes, *strong;
    double strong_v;
} request;

#define AT(member) offsetof(request, member)
static const cd_option table[] = {
    {"target", 0, "COLUMN", CD_OPTION_TEXT, AT(target), NULL, 0,
     "The time, or another quantity that depends on the settings"},
    {"axes", 0, "COLUMN,...", CD_OPTION_TEXT, AT(axes), NULL, 0,
     "The settings (default: all other columns)"},
    {"strong", 0, "R", CD_OPTION_TEXT, AT(strong), NULL, 0,
     "A setting is strong from |Spearman| or distance correlation R on (default: 0.3)"},
};
static const char *const group[] = {"What"};
static const char *const use[] = {"--target COLUMN [--axes COLUMN,...] [--strong R] SAMPLES.csv",
                                  NULL};
static const char *const example[] = {"From how many threads on do more not pay?",
                                      "cdmpp-partition correlate --target seconds samples.csv",
                                      NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    request *r = to;
    if (!r->target) return CD_FAIL(err, EUSAGE, "--target is missing");
    if (said->operand.n != 1)
        return CD_FAIL(err, EUSAGE, "expected one table, found %zu", said->operand.n);
    return cd_option_number("strong", r->strong, 1e-6, 1, &r->strong_v, err);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked;
const cd_main_partition_verb cd_main_partition_correlate = {
    "correlate",
    &asked,
    run,
    {"cdmpp-partition correlate", "which settings a time depends on", use,
     "A row of the table is one measurement, a column a setting or the time. Printed are "
     "Spearman's, the distance (it sees what is not monotone), the partial (of ranks, "
     "given all other settings) and Pearson's correlation, strongest first; of strong settings the "
     "turning point: where the law through the medians turns, or, where the time "
     "falls, from which value on more does not pay (within 5 % of its last).",
     table, sizeof table / sizeof *table, group, "*.csv", example, NULL, NULL, NULL, check, NULL}};

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    const request *o = to;
    cd_correlation_table t;
    cd_buf b = {0};
    cdmpp_status st =
        cd_correlation_table_read(r->said.operand.v[0], o->target, o->axes, o->strong_v, &t, err);
    if (!st) {
        if (r->said.json) cd_correlation_table_print_json(&t, &b);
        else cd_correlation_table_print(&t, &b);
        st = cd_command_result(r->said.json, "cdmpp.partition_correlate", "cdmpp-partition",
                               &r->log, &b, err);
    }
    cd_correlation_table_free(&t);
    return st;
}
