/* Verb "pack" of cdmpp-partition: tasks of many operators packed onto the units of a device in one launch. */
#include "predictor/cmd/partition/main_partition.h"
#include "predictor/partition/games/games.h"

typedef struct {
    int units;
} request;

static const cd_option table[] = {
    {"units", 0, "N", CD_OPTION_INT, offsetof(request, units), "1..1000000", 0, "Units of the device that run tasks, as the multiprocessors of a GPU"},
};
static const char *const group[] = {"How"};
static const char *const use[] = {"--units N TASKS.csv", NULL};
static const char *const example[] = {"Two small operators beside a large one, in one launch", "printf 'operator,tasks,seconds\\na,6,1e-5\\nb,6,1e-5\\nc,20,2e-5\\n' | cdmpp-partition pack --units 16 -", NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    const request *r = to;
    if (!r->units) return CD_FAIL(err, EUSAGE, "--units is missing");
    return said->operand.n == 1 ? CDMPP_OK : CD_FAIL(err, EUSAGE, "expected one table, found %zu", said->operand.n);
}

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err);
static request asked;
const cd_main_partition_verb cd_main_partition_pack = {"pack", &asked, run, {
    "cdmpp-partition pack", "tasks of several operators on the units of one device, in one launch", use,
    "The table has the columns operator, tasks (how many equal tasks it has) and seconds (of one task), and optionally after: the operators that come before it, blanks "
    "between. A free unit takes a task of the operator with the longest chain of operators behind it (Rammer, OSDI 2020). Printed are the start and end of each operator, and "
    "the makespan beside its lower bound and beside one operator after the other.",
    table, sizeof table / sizeof *table, group, "*.csv", example, NULL, NULL, NULL, check}};

static cdmpp_status run(cd_command_run *r, void *to, cdmpp_err *err) {
    const request *o = to;
    const char *path = r->said.operand.v[0];
    const uint32_t units = (uint32_t)o->units;
    cd_pack_table t = {0};
    cd_pack p = {0};
    cd_buf b = {0};
    cdmpp_status st = cd_pack_read(path, &t, err);
    if (!st) st = cd_err_at(err, cd_pack_make(t.op, t.n_op, t.after, t.n_after, units, &p, err), path, 0);
    if (!st) {
        if (r->said.json) cd_pack_print_json(&t, units, &p, &b);
        else cd_pack_print(&t, units, &p, &b);
        st = cd_command_result(r->said.json, "cdmpp.partition_pack", "cdmpp-partition", &r->log, &b, err);
    }
    cd_pack_free(&p);
    cd_arena_free(&t.arena);
    return st;
}
