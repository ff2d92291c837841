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
static const char *const use[] = {"[--threads N] [--contention MACHINE.json] TIMES.csv", NULL};
static const char *const example[] = {"Eight threads for three operators", "cdmpp-partition together --threads 8 times.csv", NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    (void)to;
    return said->operand.n == 1 ? CDMPP_OK : CD_FAIL(err, EUSAGE, "expected one table, found %zu", said->operand.n);
}

static int run(int argc, char **argv);
const cd_main_partition_verb cd_main_partition_together = {"together", run, {
    "cdmpp-partition together", "threads for each of several operators at a time, or one after the other", use,
    "The table has the columns operator, threads, seconds, and bytes with --contention: what each takes alone. Every way of sharing is tried, or, where these are too many, "
    "hill climbing is done from equal shares. Running together is refused where it is not faster than one after the other with the best number of threads each.",
    table, sizeof table / sizeof *table, group, "*.csv", example, NULL, NULL, NULL, check}};

static cdmpp_status all(const cd_cli_args *said, const request *r, cd_cotune_table *t, cd_cotune *c, cdmpp_err *err) {
    cd_buf b = {0};
    CD_TRY(cd_cotune_read(said->operand.v[0], (uint32_t)r->threads, r->machine, t, err));
    CD_TRY(cd_cotune_search(t->n_op, t->threads, cd_cotune_table_time, t, c, err));
    if (said->json) cd_cotune_print_json(t, c, &b);
    else cd_cotune_print(t, c, &b);
    return cd_command_result(said->json, "cdmpp.partition_together", "cdmpp-partition", &b, err);
}

static int run(int argc, char **argv) {
    request r = {0};
    cd_cotune_table t = {0};
    cd_cotune c = {0};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &cd_main_partition_together.command, argc, argv, &r, &code)) return code;
    const cdmpp_status st = all(&f.said, &r, &t, &c, &err);
    cd_cotune_free(&c);
    cd_cotune_table_free(&t);
    return cd_command_finish(&f, st, &err, false);
}
