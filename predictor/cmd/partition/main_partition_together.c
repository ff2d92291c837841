/* Verb "together" of cdmpp-partition: how many threads each of several operators has, when they share the processors. */
#include "predictor/cmd/partition/main_partition.h"
#include "predictor/partition/games/games.h"

typedef struct {
    int threads;
    const char *machine;
} request;

static const cd_option table[] = {
    {"threads", 0, "N", CD_OPTION_INT, offsetof(request, threads), "1..4096", 0, "Threads in all (default: the most in the table)"},
    {"contention", 0, "MACHINE", CD_OPTION_FILE, offsetof(request, machine), "*.json", 0, "What running at the same time costs, by this file (link measure --contention); the table needs a column bytes"},
};
static const char *const group[] = {"How"};
static const char *const use[] = {"[--threads N] [--contention MACHINE.json] TIMES.csv|SWEEP.csv...", NULL};
static const char *const example[] = {"Eight threads for three operators", "cdmpp-partition together --threads 8 times.csv", "Two operators whose times were measured", "cdmpp-partition together conv.csv dense.csv", NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    (void)to;
    return said->operand.n ? CDMPP_OK : CD_FAIL(err, EUSAGE, "expected a table, found none");
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked;
const cd_main_partition_verb cd_main_partition_together = {"together", &asked, run, {
    "cdmpp-partition together", "threads for each of several operators at a time, or one after the other", use,
    "The table has the columns operator, threads, seconds, and bytes with --contention: what each takes alone. In place of a table, one file for each operator as cdmpp-profile sweep --factor threads --out measured it; the operator has the name of the file. Every way of sharing is tried, or, where these are too many, "
    "hill climbing is done from equal shares. Running together is refused where it is not faster than one after the other with the best number of threads each.",
    table, sizeof table / sizeof *table, group, "*.csv", example, NULL, NULL, NULL, check}};

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    const request *o = to;
    cd_cotune_table t = {0};
    cd_cotune c = {0};
    cd_buf b = {0};
    cdmpp_status st = cd_cotune_read(r->said.operand.v, r->said.operand.n, (uint32_t)o->threads, o->machine, &t, err);
    if (!st) st = cd_cotune_search(t.n_op, t.threads, cd_cotune_table_time, &t, &c, err);
    if (!st) {
        if (r->said.json) cd_cotune_print_json(&t, &c, &b);
        else cd_cotune_print(&t, &c, &b);
        st = cd_command_result(r->said.json, "cdmpp.partition_together", "cdmpp-partition", &r->log, &b, err);
    }
    cd_cotune_free(&c);
    cd_arena_free(&t.arena);
    return st;
}
