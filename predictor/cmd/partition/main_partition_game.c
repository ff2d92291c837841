/* Verb "equilibrium" of cdmpp-partition: operators that are ready at a time choose their devices.
 *
 *   CSV    operator,cpu,gpu,transfer:gpu          seconds of the operator there; empty or inf: cannot be
 *          conv1,4e-3,1e-3,2e-4                   transfer:DEVICE (optional): seconds to bring its input there
 *   JSON   {"devices": ["cpu", "gpu"], "operators": [{"name": "conv1", "seconds": [4e-3, null], "transfer": [0, 2e-4]}]} */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/cmd/partition/main_partition_tools.h"
#include "predictor/partition/stages/stages.h"

enum { MAX_FILE = 64 << 20, MAX_DEVICE = 64 };
#define TRANSFER "transfer:"

typedef struct {
    int nodes;
    bool json;
} ask;

typedef struct {
    cd_arena arena;
    cd_stage_game g;
    const char **device, **name; /* (n_device), (n_op) */
    double *seconds, *transfer;
} game;

static const cd_option table[] = {
    {"effort", 0, "N", CD_OPTION_INT, offsetof(ask, nodes), "1..2000000000", 0, "Nodes of the search for the optimum (default: 4000000)"},
};
static const char *const group[] = {"How"};
static const char *const use[] = {"[--effort N] OPS.csv|OPS.json", NULL};
static const char *const example[] = {"Who takes which device?", "cdmpp-partition equilibrium ops.csv", NULL};

static cdmpp_status check(void *to, const cd_cli_args *said, cdmpp_err *err) {
    (void)to;
    return said->operand.n == 1 ? CDMPP_OK : CD_FAIL(err, EUSAGE, "expected one file, found %zu", said->operand.n);
}

const cd_command cd_partition_equilibrium_command = {
    "cdmpp-partition equilibrium", "who takes which device, when each operator looks after itself", use,
    "Each operator pays the load of the device it is on: the seconds of all there, transfers included. Best responses, one after the other, end in a Nash equilibrium; it is "
    "verified again from nothing. Beside it stands the assignment with the smallest largest load (branch and bound) and the price of anarchy, the ratio of both.\n\n"
    "CSV: columns operator and one for each device, seconds; empty: cannot be; transfer:DEVICE: seconds to bring the input there. JSON: "
    "{\"devices\": [...], \"operators\": [{\"name\", \"seconds\": [...], \"transfer\": [...]}]}, null: cannot be.",
    table, sizeof table / sizeof *table, group, "*.csv|*.json", example, NULL, NULL, NULL, check};

/* ---- reading ---- */
static cdmpp_status room(game *g, size_t n_op, size_t n_device, bool transfer, cdmpp_err *err) {
    if (!n_device || n_device > MAX_DEVICE) return CD_FAIL(err, ESCHEMA, "expected 1..%d devices, found %zu", MAX_DEVICE, n_device);
    g->device = CD_NEWN(&g->arena, const char *, n_device);
    g->name = CD_NEWN(&g->arena, const char *, n_op);
    g->seconds = CD_NEWN(&g->arena, double, n_op * n_device);
    g->transfer = CD_NEWN(&g->arena, double, n_op * n_device);
    if (!g->device || !g->name || !g->seconds || !g->transfer) return CD_FAIL(err, ENOMEM, "%zu operators", n_op);
    g->g = (cd_stage_game){.n_op = (uint32_t)n_op, .n_device = (uint32_t)n_device, .name = g->name, .seconds = g->seconds, .transfer = transfer ? g->transfer : NULL};
    return CDMPP_OK;
}

/* Columns of seconds and of transfers; their devices. */
static cdmpp_status columns(game *g, const cd_partition_table *t, size_t *op, size_t *sec, size_t *tra, cdmpp_err *err) {
    size_t n = 0, n_transfer = 0, skip = strlen(TRANSFER);
    CD_TRY(cd_partition_table_need(t, "operator", op, err));
    for (size_t c = 0; c < t->n_col; c++) {
        const bool is = !strncmp(t->name[c], TRANSFER, skip);
        n_transfer += is;
        if (is || c == *op) continue;
        if (n == MAX_DEVICE) return CD_FAIL(err, ESCHEMA, "more than %d devices", MAX_DEVICE);
        sec[n++] = c;
    }
    CD_TRY(room(g, t->n_row, n, n_transfer > 0, err));
    for (size_t d = 0; d < n; d++) g->device[d] = cd_str_dup(&g->arena, (cd_str){t->name[sec[d]], strlen(t->name[sec[d]])}), tra[d] = SIZE_MAX;
    for (size_t c = 0; c < t->n_col; c++) {
        size_t d = 0;
        if (strncmp(t->name[c], TRANSFER, skip) != 0) continue;
        while (d < n && strcmp(t->name[sec[d]], t->name[c] + skip) != 0) d++;
        if (d == n) return CD_FAIL(err, ESCHEMA, "column %.60s: no device of this name", t->name[c]);
        tra[d] = c;
    }
    return CDMPP_OK;
}

static bool cannot(const char *cell) { return !cell[0] || !strcmp(cell, "inf"); }

static cdmpp_status of_table(game *g, const cd_partition_table *t, cdmpp_err *err) {
    size_t op, sec[MAX_DEVICE], tra[MAX_DEVICE];
    CD_TRY(cd_err_at(err, columns(g, t, &op, sec, tra, err), t->path, 1));
    for (size_t i = 0; i < t->n_row; i++) {
        g->name[i] = cd_str_dup(&g->arena, (cd_str){t->cell[i][op], strlen(t->cell[i][op])});
        if (!g->name[i]) return CD_FAIL(err, ENOMEM, "operator");
        for (size_t d = 0; d < g->g.n_device; d++) {
            const size_t k = i * g->g.n_device + d;
            g->seconds[k] = HUGE_VAL;
            if (!cannot(t->cell[i][sec[d]])) CD_TRY(cd_partition_table_number(t, i, sec[d], &g->seconds[k], err));
            if (tra[d] != SIZE_MAX && t->cell[i][tra[d]][0]) CD_TRY(cd_partition_table_number(t, i, tra[d], &g->transfer[k], err));
        }
    }
    return CDMPP_OK;
}

static cdmpp_status read_csv(game *g, const char *path, cdmpp_err *err) {
    cd_partition_table t;
    cdmpp_status st = cd_partition_table_read(&t, path, err);
    if (!st) st = of_table(g, &t, err);
    cd_partition_table_free(&t);
    return st;
}

/* One number for each device; null is `nothing`. */
static cdmpp_status row_of(const cd_json *list, uint32_t n, double nothing, double *out, cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_arr(list, n, &v, err));
    if (list->n != n) return CD_FAIL(err, ESCHEMA, "expected a number for each of %u devices, found %u", n, list->n);
    for (uint32_t d = 0; d < n; d++, v = v->next) {
        out[d] = nothing;
        if (v->kind != CD_JSON_NULL) CD_TRY(cd_err_index(err, cd_json_real(v, &out[d], err), d));
    }
    return CDMPP_OK;
}

static cdmpp_status text_of(game *g, const cd_json *v, const char **out, cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_str(v, &s, err));
    *out = cd_str_dup(&g->arena, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name");
}

static cdmpp_status op_of(game *g, const cd_json *o, uint32_t i, cdmpp_err *err) {
    const cd_json *v;
    const uint32_t n = g->g.n_device;
    CD_TRY(cd_json_need(o, "name", &v, err));
    CD_TRY(cd_err_key(err, text_of(g, v, &g->name[i], err), "name"));
    CD_TRY(cd_json_need(o, "seconds", &v, err));
    CD_TRY(cd_err_key(err, row_of(v, n, HUGE_VAL, g->seconds + (size_t)i * n, err), "seconds"));
    v = cd_json_get(o, "transfer");
    return v ? cd_err_key(err, row_of(v, n, 0, g->transfer + (size_t)i * n, err), "transfer") : CDMPP_OK;
}

/* Loads are told by name. */
static cdmpp_status distinct(const game *g, cdmpp_err *err) {
    for (uint32_t i = 0; i < g->g.n_device; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(g->device[i], g->device[k])) return CD_FAIL(err, ESCHEMA, "two devices are called '%.60s'", g->device[i]);
    return CDMPP_OK;
}

static cdmpp_status of_json(game *g, const char *text, size_t n, cdmpp_err *err) {
    const cd_json *root, *devices, *ops, *d, *o;
    CD_TRY(cd_json_parse(&g->arena, text, n, &root, err));
    CD_TRY(cd_json_need(root, "devices", &devices, err));
    CD_TRY(cd_err_key(err, cd_json_arr(devices, 1, &d, err), "devices"));
    CD_TRY(cd_json_need(root, "operators", &ops, err));
    CD_TRY(cd_err_key(err, cd_json_arr(ops, 1, &o, err), "operators"));
    CD_TRY(room(g, ops->n, devices->n, true, err));
    for (uint32_t i = 0; d; i++, d = d->next) CD_TRY(cd_err_key(err, cd_err_index(err, text_of(g, d, &g->device[i], err), i), "devices"));
    CD_TRY(distinct(g, err));
    for (uint32_t i = 0; o; i++, o = o->next) CD_TRY(cd_err_key(err, cd_err_index(err, op_of(g, o, i, err), i), "operators"));
    return CDMPP_OK;
}

/* Standard input can be read but once: it is CSV. */
static cdmpp_status read_game(game *g, const char *path, cdmpp_err *err) {
    char *text;
    size_t n;
    if (!strcmp(path, "-")) return read_csv(g, path, err);
    CD_TRY(cd_file_read(path, MAX_FILE, &text, &n, err));
    const char first = text[strspn(text, " \t\r\n")];
    const cdmpp_status st = first == '{' || first == '[' ? cd_err_at(err, of_json(g, text, n, err), path, 0) : read_csv(g, path, err);
    cd_mem_free(text);
    return st;
}

/* ---- telling ---- */
static void put_text(cd_buf *b, const game *g, const cd_stage_game_result *r) {
    const uint32_t n = g->g.n_device;
    cd_buf_puts(b, "operator                 equilibrium       takes  optimum\n");
    for (uint32_t i = 0; i < g->g.n_op; i++) {
        const size_t k = (size_t)i * n + r->where[i];
        cd_buf_putf(b, "%-24s %-12s ", g->name[i], g->device[r->where[i]]);
        cd_partition_seconds(b, g->seconds[k] + g->transfer[k]);
        cd_buf_putf(b, "  %s\n", r->best ? g->device[r->best[i]] : "-");
    }
    cd_buf_puts(b, "\nloads: ");
    for (uint32_t d = 0; d < n; d++) {
        cd_buf_putf(b, "%s%s ", d ? ", " : "", g->device[d]);
        cd_partition_seconds_short(b, r->load[d]);
    }
    cd_buf_puts(b, "\nequilibrium: all done after ");
    cd_partition_seconds_short(b, r->makespan_s);
    cd_buf_putf(b, ", reached by %u moves; nobody gains by moving alone (largest gain %.2g)\n", r->n_move, r->gain);
    if (!r->best) {
        cd_buf_puts(b, "optimum: not found within the effort\n");
        return;
    }
    cd_buf_puts(b, "optimum: ");
    cd_partition_seconds_short(b, r->best_s);
    cd_buf_putf(b, "; price of anarchy %.3f\n", r->price);
}

static void put_where(cd_buf *b, const char *key, const game *g, const uint32_t *where) {
    cd_buf_putf(b, ",\"%s\":", key);
    if (!where) {
        cd_buf_puts(b, "null");
        return;
    }
    for (uint32_t i = 0; i < g->g.n_op; i++) {
        cd_buf_puts(b, i ? "," : "[");
        cd_buf_put_json_str(b, g->device[where[i]], strlen(g->device[where[i]]));
    }
    cd_buf_puts(b, "]");
}

static void put_json(cd_buf *b, const game *g, const cd_stage_game_result *r) {
    cd_buf_puts(b, "{\"operators\":[");
    for (uint32_t i = 0; i < g->g.n_op; i++) {
        if (i) cd_buf_puts(b, ",");
        cd_buf_put_json_str(b, g->name[i], strlen(g->name[i]));
    }
    cd_buf_puts(b, "]");
    put_where(b, "equilibrium", g, r->where);
    put_where(b, "optimum", g, r->best);
    cd_buf_puts(b, ",\"load_s\":{");
    for (uint32_t d = 0; d < g->g.n_device; d++) cd_partition_put(b, g->device[d], r->load[d]);
    cd_buf_puts(b, "}");
    cd_partition_put(b, "makespan_s", r->makespan_s);
    cd_partition_put(b, "optimum_s", r->best_s);
    cd_partition_put(b, "price_of_anarchy", r->price);
    cd_partition_put(b, "largest_gain", r->gain);
    cd_buf_putf(b, ",\"moves\":%u}", r->n_move);
}

static cdmpp_status run(const ask *o, game *g, cdmpp_err *err) {
    cd_stage_game_result r = {0};
    cd_buf b = {0};
    cdmpp_status st = cd_stage_game_play(&g->g, (uint64_t)o->nodes, &r, err);
    if (!st) {
        if (o->json) put_json(&b, g, &r);
        else put_text(&b, g, &r);
        st = cd_partition_print_result(o->json, "cdmpp.partition_equilibrium", &b, err);
    }
    cd_stage_game_free(&r);
    return st;
}

int cd_partition_equilibrium(int argc, char **argv) {
    ask o = {0};
    game g = {0};
    cdmpp_err err = {0};
    cd_command_run f;
    int code;
    if (!cd_command_begin(&f, &cd_partition_equilibrium_command, argc, argv, &o, &code)) return code;
    const char *path = f.said.operand.v[0];
    o.json = f.said.json;
    cdmpp_status st = read_game(&g, path, &err);
    if (!st) st = cd_err_at(&err, run(&o, &g, &err), path, 0);
    cd_arena_free(&g.arena);
    return cd_partition_finish(&f, st, &err, false);
}
