/* Verb "equilibrium" of cdmpp-partition: operators that are ready at the same time choose their
 * devices. */
#include "predictor/cmd/partition/main_partition.h"
#include "predictor/partition/games/games.h"

typedef struct {
    int nodes;
} request;

static const cd_option table[] = {
    {"effort", 0, "N", CD_OPTION_INT, offsetof(request, nodes), "1..2000000000", 0,
     "Nodes of the search for the optimum (default: 4000000)"},
};
static const char *const group[] = {"How"};
static const char *const use[] = {"[--effort N] OPS.csv|OPS.json", NULL};
static const char *const example[] = {"Who takes which device?",
                                      "cdmpp-partition equilibrium ops.csv", NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    (void)to;
    return said->operand.n == 1
               ? CDMPP_OK
               : CD_FAIL(err, EUSAGE, "expected one file, found %zu", said->operand.n);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked;
const cd_main_partition_verb cd_main_partition_equilibrium = {
    "equilibrium",
    &asked,
    run,
    {"cdmpp-partition equilibrium", "who takes which device, when each operator looks after itself",
     use,
     "Each operator pays the load of the device it is on: the seconds of all there, transfers "
     "included. Best responses, one after the other, end in a Nash equilibrium; it is "
     "verified again from nothing. Beside it stands the assignment with the smallest largest load "
     "(branch and bound) and the price of anarchy, the ratio of both.\n\n"
     "CSV: columns operator and one for each device, seconds; empty: cannot be; transfer:DEVICE: "
     "seconds to bring the input there. JSON: "
     "{\"devices\": [...], \"operators\": [{\"name\", \"seconds\": [...], \"transfer\": [...]}]}, "
     "null: cannot be.",
     table, sizeof table / sizeof *table, group, "*.csv|*.json", example, NULL, NULL, NULL, check,
     NULL}};

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    const request *o = to;
    const char *path = r->said.operand.v[0];
    cd_game_file g = {0};
    cd_game_result result = {0};
    cd_buf b = {0};
    cdmpp_status st = cd_game_read(path, &g, err);
    if (!st) st = cd_err_at(err, cd_game_play(&g.g, (uint64_t)o->nodes, &result, err), path, 0);
    if (!st) {
        if (r->said.json) cd_game_print_json(&g, &result, &b);
        else cd_game_print(&g, &result, &b);
        st = cd_command_result(r->said.json, "cdmpp.partition_equilibrium", "cdmpp-partition",
                               &r->log, &b, err);
    }
    cd_game_free(&result);
    cd_arena_free(&g.arena);
    return st;
}
