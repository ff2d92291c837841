/* Operators and devices of a game, out of CSV or JSON. Both forms fill the same two matrices, so
 * that nothing behind this file knows which it was. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "base/text/text.h"
#include "predictor/partition/games/game.h"
#include "predictor/partition/games/pack.h"

/* Operators, their tasks and their order, out of CSV. Rows may name operators that come later in
 * the file, so edges are read in a second pass. */

enum { MAX_TASKS = 10000000 };

static uint32_t find(const cd_pack_table *t, const char *name, size_t n) {
    for (uint32_t k = 0; k < t->n_op; k++)
        if (strlen(t->op[k].name) == n && !memcmp(t->op[k].name, name, n)) return k;
    return UINT32_MAX;
}

static cdmpp_status add_op(cd_pack_table *t, const cd_csv_table *csv, size_t row, const size_t *col,
                           cdmpp_err *err) {
    const char *name = csv->cell[row][col[0]];
    double tasks, seconds;
    CD_TRY(cd_csv_table_number(csv, row, col[1], &tasks, err));
    CD_TRY(cd_csv_table_number(csv, row, col[2], &seconds, err));
    cdmpp_status st = CDMPP_OK;
    char *copy = cd_str_dup(&t->arena, (cd_str){name, strlen(name)});
    if (!copy) st = CD_FAIL(err, ENOMEM, "operator");
    else if (tasks < 1 || tasks > MAX_TASKS || tasks != floor(tasks))
        st = CD_FAIL(err, ERANGE, "tasks: expected a whole number in 1..%d, found %g", MAX_TASKS,
                     tasks);
    else if (find(t, name, strlen(name)) != UINT32_MAX)
        st = CD_FAIL(err, ESCHEMA, "two operators are called '%.60s'", name);
    if (!st)
        t->op[t->n_op++] = (cd_pack_op){.name = copy, .tasks = (uint32_t)tasks, .task_s = seconds};
    return cd_err_at(err, st, csv->path, csv->line[row]);
}

/* The cell "conv1 conv2" as edges of operator `row`. */
static cdmpp_status add_edges(cd_pack_table *t, const cd_csv_table *csv, size_t row, size_t col,
                              size_t *cap, cdmpp_err *err) {
    t->op[row].first = t->n_after;
    for (const char *s = csv->cell[row][col] + strspn(csv->cell[row][col], " "); *s;) {
        const size_t n = strcspn(s, " ");
        const uint32_t from = find(t, s, n);
        if (from == UINT32_MAX)
            return cd_err_at(
                err, CD_FAIL(err, ESCHEMA, "after: no operator '%.*s'", (int)(n < 60 ? n : 60), s),
                csv->path, csv->line[row]);
        if (CD_GROW_IN(&t->arena, t->after, t->n_after, *cap)) return CD_FAIL(err, ENOMEM, "edges");
        t->after[t->n_after++] = from;
        s += n + strspn(s + n, " ");
    }
    t->op[row].n_after = t->n_after - t->op[row].first;
    return CDMPP_OK;
}

static cdmpp_status of_table_pack(cd_pack_table *t, const cd_csv_table *csv, cdmpp_err *err) {
    static const char *const name[] = {"operator", "tasks", "seconds"};
    size_t col[3], cap = 0;
    const size_t after = cd_csv_table_find(csv, "after");
    for (int c = 0; c < 3; c++) CD_TRY(cd_csv_table_need(csv, name[c], &col[c], err));
    if (!(t->op = CD_NEWN(&t->arena, cd_pack_op, csv->n_row)))
        return CD_FAIL(err, ENOMEM, "%zu operators", csv->n_row);
    for (size_t i = 0; i < csv->n_row; i++) CD_TRY(add_op(t, csv, i, col, err));
    for (size_t i = 0; after != SIZE_MAX && i < csv->n_row; i++)
        CD_TRY(add_edges(t, csv, i, after, &cap, err));
    return CDMPP_OK;
}

cdmpp_status cd_pack_read(const char *path, cd_pack_table *t, cdmpp_err *err) {
    cd_csv_table csv;
    cdmpp_status st = cd_csv_table_read(&csv, path, err);
    if (!st) st = of_table_pack(t, &csv, err);
    cd_csv_table_free(&csv);
    return st;
}

enum { MAX_FILE = 64 << 20, MAX_DEVICE = 64 };
#define TRANSFER "transfer:"

/* Names and matrices for so many operators and devices, in the arena, zeroed. */
static cdmpp_status room(cd_game_file *g, size_t n_op, size_t n_device, bool transfer,
                         cdmpp_err *err) {
    if (!n_device || n_device > MAX_DEVICE)
        return CD_FAIL(err, ESCHEMA, "expected 1..%d devices, found %zu", MAX_DEVICE, n_device);
    g->device = CD_NEWN(&g->arena, const char *, n_device);
    g->name = CD_NEWN(&g->arena, const char *, n_op);
    g->seconds = CD_NEWN(&g->arena, double, n_op *n_device);
    g->transfer = CD_NEWN(&g->arena, double, n_op *n_device);
    if (!g->device || !g->name || !g->seconds || !g->transfer)
        return CD_FAIL(err, ENOMEM, "%zu operators", n_op);
    g->g = (cd_game){.n_op = (uint32_t)n_op,
                     .n_device = (uint32_t)n_device,
                     .name = g->name,
                     .seconds = g->seconds,
                     .transfer = transfer ? g->transfer : NULL};
    return CDMPP_OK;
}

/* Which columns have seconds and which have transfers; the devices are named by the former. */
static cdmpp_status columns(cd_game_file *g, const cd_csv_table *t, size_t *op, size_t *sec,
                            size_t *tra, cdmpp_err *err) {
    size_t n = 0, n_transfer = 0, skip = strlen(TRANSFER);
    CD_TRY(cd_csv_table_need(t, "operator", op, err));
    for (size_t c = 0; c < t->n_col; c++) {
        const bool is = !strncmp(t->name[c], TRANSFER, skip);
        n_transfer += is;
        if (is || c == *op) continue;
        if (n == MAX_DEVICE) return CD_FAIL(err, ESCHEMA, "more than %d devices", MAX_DEVICE);
        sec[n++] = c;
    }
    CD_TRY(room(g, t->n_row, n, n_transfer > 0, err));
    for (size_t d = 0; d < n; d++)
        g->device[d] = cd_str_dup(&g->arena, (cd_str){t->name[sec[d]], strlen(t->name[sec[d]])}),
        tra[d] = SIZE_MAX;
    if (g->arena.oom) return CD_FAIL(err, ENOMEM, "%zu devices", n);
    for (size_t c = 0; c < t->n_col; c++) {
        size_t d = 0;
        if (strncmp(t->name[c], TRANSFER, skip) != 0) continue;
        while (d < n && strcmp(t->name[sec[d]], t->name[c] + skip) != 0) d++;
        if (d == n)
            return CD_FAIL(err, ESCHEMA, "column %.60s: no device of this name", t->name[c]);
        tra[d] = c;
    }
    return CDMPP_OK;
}

/* A cell that says: this operator cannot run on this device. */
static bool cannot(const char *cell) { return !cell[0] || !strcmp(cell, "inf"); }

/* A cell that is empty or "inf" leaves infinity: the device cannot run the operator. */
static cdmpp_status of_table(cd_game_file *g, const cd_csv_table *t, cdmpp_err *err) {
    size_t op, sec[MAX_DEVICE], tra[MAX_DEVICE];
    CD_TRY(cd_err_at(err, columns(g, t, &op, sec, tra, err), t->path, 1));
    for (size_t i = 0; i < t->n_row; i++) {
        g->name[i] = cd_str_dup(&g->arena, (cd_str){t->cell[i][op], strlen(t->cell[i][op])});
        if (!g->name[i]) return CD_FAIL(err, ENOMEM, "operator");
        for (size_t d = 0; d < g->g.n_device; d++) {
            const size_t k = i * g->g.n_device + d;
            g->seconds[k] = HUGE_VAL;
            if (!cannot(t->cell[i][sec[d]]))
                CD_TRY(cd_csv_table_number(t, i, sec[d], &g->seconds[k], err));
            if (tra[d] != SIZE_MAX && t->cell[i][tra[d]][0])
                CD_TRY(cd_csv_table_number(t, i, tra[d], &g->transfer[k], err));
        }
    }
    return CDMPP_OK;
}

static cdmpp_status read_csv(cd_game_file *g, const char *path, cdmpp_err *err) {
    cd_csv_table t;
    cdmpp_status st = cd_csv_table_read(&t, path, err);
    if (!st) st = of_table(g, &t, err);
    cd_csv_table_free(&t);
    return st;
}

/* One number for each device; null is `nothing`. */
static cdmpp_status row_of(const cd_json *list, uint32_t n, double nothing, double *out,
                           cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_json_arr(list, n, &v, err));
    if (list->n != n)
        return CD_FAIL(err, ESCHEMA, "expected a number for each of %u devices, found %u", n,
                       list->n);
    for (uint32_t d = 0; d < n; d++, v = v->next) {
        out[d] = nothing;
        if (v->kind != CD_JSON_NULL) CD_TRY(cd_err_index(err, cd_json_real(v, &out[d], err), d));
    }
    return CDMPP_OK;
}

static cdmpp_status text_of(cd_game_file *g, const cd_json *v, const char **out, cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_str(v, &s, err));
    *out = cd_str_dup(&g->arena, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name");
}

static cdmpp_status op_of(cd_game_file *g, const cd_json *o, uint32_t i, cdmpp_err *err) {
    const cd_json *v;
    const uint32_t n = g->g.n_device;
    CD_TRY(cd_json_need(o, "name", &v, err));
    CD_TRY(cd_err_key(err, text_of(g, v, &g->name[i], err), "name"));
    CD_TRY(cd_json_need(o, "seconds", &v, err));
    CD_TRY(cd_err_key(err, row_of(v, n, HUGE_VAL, g->seconds + (size_t)i * n, err), "seconds"));
    v = cd_json_get(o, "transfer");
    return v ? cd_err_key(err, row_of(v, n, 0, g->transfer + (size_t)i * n, err), "transfer")
             : CDMPP_OK;
}

/* Loads are reported by name, so names must differ. */
static cdmpp_status distinct(const cd_game_file *g, cdmpp_err *err) {
    for (uint32_t i = 0; i < g->g.n_device; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!strcmp(g->device[i], g->device[k]))
                return CD_FAIL(err, ESCHEMA, "two devices are called '%.60s'", g->device[i]);
    return CDMPP_OK;
}

/* Errors carry the path inside the document: "operators[2].seconds". */
static cdmpp_status of_json(cd_game_file *g, const char *text, size_t n, cdmpp_err *err) {
    const cd_json *root, *devices, *ops, *d, *o;
    CD_TRY(cd_json_parse(&g->arena, text, n, &root, err));
    CD_TRY(cd_json_need(root, "devices", &devices, err));
    CD_TRY(cd_err_key(err, cd_json_arr(devices, 1, &d, err), "devices"));
    CD_TRY(cd_json_need(root, "operators", &ops, err));
    CD_TRY(cd_err_key(err, cd_json_arr(ops, 1, &o, err), "operators"));
    CD_TRY(room(g, ops->n, devices->n, true, err));
    for (uint32_t i = 0; d; i++, d = d->next)
        CD_TRY(cd_err_key(err, cd_err_index(err, text_of(g, d, &g->device[i], err), i), "devices"));
    CD_TRY(distinct(g, err));
    for (uint32_t i = 0; o; i++, o = o->next)
        CD_TRY(cd_err_key(err, cd_err_index(err, op_of(g, o, i, err), i), "operators"));
    return CDMPP_OK;
}

/* The first character tells JSON from CSV. Standard input can be read only once, so it is CSV. */
cdmpp_status cd_game_read(const char *path, cd_game_file *g, cdmpp_err *err) {
    char *text;
    size_t n;
    if (!strcmp(path, "-")) return read_csv(g, path, err);
    CD_TRY(cd_file_read(path, MAX_FILE, &text, &n, err));
    const char first = text[strspn(text, " \t\r\n")];
    const cdmpp_status st = first == '{' || first == '['
                                ? cd_err_at(err, of_json(g, text, n, err), path, 0)
                                : read_csv(g, path, err);
    cd_mem_free(text);
    return st;
}
