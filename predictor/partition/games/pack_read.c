/* Operators, their tasks and their order, out of CSV. Rows may name operators that come later in
 * the file, so edges are read in a second pass. */
#include <math.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/partition/games/pack.h"

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

static cdmpp_status of_table(cd_pack_table *t, const cd_csv_table *csv, cdmpp_err *err) {
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
    if (!st) st = of_table(t, &csv, err);
    cd_csv_table_free(&csv);
    return st;
}
