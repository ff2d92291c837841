/* Verb "equilibrium" of cdmpp-partition: operators that are ready at the same time choose their devices. */
#include "predictor/cmd/partition/main_partition.h"
#include "predictor/partition/games/games.h"

typedef struct {
    int nodes;
} request;

static const cd_option table[] = {
    {"effort", 0, "N", CD_OPTION_INT, offsetof(request, nodes), "1..2000000000", 0, "Nodes of the search for the optimum (default: 4000000)"},
};
static const char *const group[] = {"How"};
static const char *const use[] = {"[--effort N] OPS.csv|OPS.json", NULL};
static const char *const example[] = {"Who takes which device?", "cdmpp-partition equilibrium ops.csv", NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    (void)to;
    return said->operand.n == 1 ? CDMPP_OK : CD_FAIL(err, EUSAGE, "expected one file, found %zu", said->operand.n);
}

static int run(int argc, char **argv);
const cd_main_partition_verb cd_main_partition_equilibrium = {"equilibrium", run, {
    "cdmpp-partition equilibrium", "who takes which device, when each operator looks after itself", use,
    "Each operator pays the load of the device it is on: the seconds of all there, transfers included. Best responses, one after the other, end in a Nash equilibrium; it is "
    "verified again from nothing. Beside it stands the assignment with the smallest largest load (branch and bound) and the price of anarchy, the ratio of both.\n\n"
    "CSV: columns operator and one for each device, seconds; empty: cannot be; transfer:DEVICE: seconds to bring the input there. JSON: "
    "{\"devices\": [...], \"operators\": [{\"name\", \"seconds\": [...], \"transfer\": [...]}]}, null: cannot be.",
    table, sizeof table / sizeof *table, group, "*.csv|*.json", example, NULL, NULL, NULL, check}};

static cdmpp_status all(const cd_cli_args *said, const request *r, cd_game_file *g, cd_game_result *result, cdmpp_err *err) {
    const char *path = said->operand.v[0];
    cd_buf b = {0};
    CD_TRY(cd_game_read(path, g, err));
    CD_TRY(cd_err_at(err, cd_game_play(&g->g, (uint64_t)r->nodes, result, err), path, 0));
    if (said->json) cd_game_print_json(g, result, &b);
    else cd_game_print(g, result, &b);
    return cd_command_result(said->json, "cdmpp.partition_equilibrium", "cdmpp-partition", &b, err);
}

static int run(int argc, char **argv) {
    request r = {0};
    cd_game_file g = {0};
    cd_game_result result = {0};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &cd_main_partition_equilibrium.command, argc, argv, &r, &code)) return code;
    const cdmpp_status st = all(&f.said, &r, &g, &result, &err);
    cd_game_free(&result);
    cd_game_file_free(&g);
    return cd_command_finish(&f, st, &err, false);
}
