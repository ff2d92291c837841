/* Fills two tables from a store: how many settings of each factor an operator was measured with,
 * and how fast each device ran it. */
#include <string.h>

#include "profiler/store/store_internal.h"

/* A factor of schedules: the kinds of steps that set it; AN steps by what they mark (1 unroll, 2
 * vectorize, 3 parallel). */
#define STEP_FACTOR                                                                                \
    "CASE json_extract(j.value,'$[0]') WHEN 'SP' THEN 'tile' WHEN 'FSP' THEN 'tile' WHEN 'FFSP' "  \
    "THEN 'tile' WHEN 'RE' THEN "                                                                  \
    "'reorder' WHEN 'FU' THEN 'fuse' WHEN 'CA' THEN 'compute_at' WHEN 'CI' THEN 'compute_at' "     \
    "WHEN 'CR' THEN 'compute_at' "                                                                 \
    "WHEN 'CHR' THEN 'cache_stage' WHEN 'CHW' THEN 'cache_stage' WHEN 'RF' THEN 'rfactor' WHEN "   \
    "'PR' THEN 'unroll' "                                                                          \
    "WHEN 'AN' THEN CASE json_extract(j.value,'$[3]') WHEN 1 THEN 'unroll' WHEN 2 THEN "           \
    "'vectorize' WHEN 3 THEN 'parallel' END END"

/* A schedule that leaves a factor alone is one setting of it, too. */
static const char step_sql[] =
    "WITH used AS (SELECT DISTINCT w.operator op, m.schedule sch FROM measurement m JOIN workload "
    "w ON w.id=m.workload"
    "  WHERE m.schedule IS NOT NULL AND m.error_no=0),"
    " step AS (SELECT used.op, used.sch, " STEP_FACTOR
    " f, j.value v FROM used JOIN schedule s ON s.id=used.sch, json_each(s.steps) j),"
    " setting AS (SELECT op, sch, f, group_concat(v) g FROM step WHERE f IS NOT NULL GROUP BY op, "
    "sch, f)"
    "SELECT o.name, f, count(DISTINCT g) + (count(*) < (SELECT count(*) FROM used WHERE "
    "used.op=setting.op))"
    " FROM setting JOIN operator o ON o.id=op GROUP BY op, f";

static const char operator_sql[] =
    "SELECT o.name, min(w.key), count(*), count(DISTINCT w.id), count(DISTINCT w.dtype), "
    "count(DISTINCT m.target), count(DISTINCT m.flags & 2)"
    " FROM measurement m JOIN workload w ON w.id=m.workload JOIN operator o ON o.id=w.operator "
    "WHERE m.error_no=0"
    " GROUP BY o.id ORDER BY count(*) DESC, o.name";

static const char device_sql[] = "SELECT d.name, ifnull(max(e.host),''), ifnull(max(e.cpu),''), "
                                 "count(*) FROM measurement m JOIN device d ON d.id=m.device"
                                 " LEFT JOIN environment e ON e.id=m.environment WHERE "
                                 "m.error_no=0 GROUP BY d.id ORDER BY count(*) DESC, d.name";

static const char cell_sql[] = "SELECT o.name, d.name, count(DISTINCT w.id), max(CASE WHEN "
                               "w.flop>0 THEN w.flop/m.median_s END)"
                               " FROM measurement m JOIN workload w ON w.id=m.workload JOIN "
                               "operator o ON o.id=w.operator JOIN device d ON d.id=m.device"
                               " WHERE m.error_no=0 GROUP BY o.id, d.id";

typedef cdmpp_status take(cd_store_tables *t, sqlite3_stmt *q, cdmpp_err *err);

static cdmpp_status each_row(cd_store *s, const char *sql, take *row, cd_store_tables *t,
                             cdmpp_err *err) {
    sqlite3_stmt *q = NULL;
    int rc = SQLITE_ROW;
    cdmpp_status st = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK
                          ? CDMPP_OK
                          : cd_store_fail(s, "table", err);
    while (!st && (rc = sqlite3_step(q)) == SQLITE_ROW) st = row(t, q, err);
    if (!st && rc != SQLITE_DONE) st = cd_store_fail(s, "table", err);
    sqlite3_finalize(q);
    return st;
}

static const char *text(cd_store_tables *t, sqlite3_stmt *q, int column) {
    return cd_str_dup(&t->arena, cd_store_text(q, column));
}

static cdmpp_status add_operator(cd_store_tables *t, sqlite3_stmt *q, cdmpp_err *err) {
    cd_store_table_operator o = {.name = text(t, q, 0),
                                 .workload = text(t, q, 1),
                                 .measured = (uint64_t)sqlite3_column_int64(q, 2)};
    static const cd_store_factor from[] = {CD_STORE_FACTOR_inputs, CD_STORE_FACTOR_types,
                                           CD_STORE_FACTOR_threads, CD_STORE_FACTOR_cache};
    for (int k = 0; k < 4; k++) o.settings[from[k]] = (uint64_t)sqlite3_column_int64(q, 3 + k);
    if (!o.name || !o.workload || CD_GROW(t->op, t->n_op, t->cap_op))
        return CD_FAIL(err, ENOMEM, "table");
    t->op[t->n_op++] = o;
    return CDMPP_OK;
}

static cdmpp_status add_device(cd_store_tables *t, sqlite3_stmt *q, cdmpp_err *err) {
    const cd_store_table_device d = {text(t, q, 0), text(t, q, 1), text(t, q, 2),
                                     (uint64_t)sqlite3_column_int64(q, 3)};
    if (!d.name || !d.host || !d.cpu || CD_GROW(t->device, t->n_device, t->cap_device))
        return CD_FAIL(err, ENOMEM, "table");
    t->device[t->n_device++] = d;
    return CDMPP_OK;
}

static bool is(sqlite3_stmt *q, int column, const char *name) {
    const cd_str s = cd_store_text(q, column);
    return s.n == strlen(name) && !memcmp(s.p, name, s.n);
}

static size_t operator_at(const cd_store_tables *t, sqlite3_stmt *q) {
    size_t k = 0;
    while (k < t->n_op && !is(q, 0, t->op[k].name)) k++;
    return k;
}

static cdmpp_status set_factor(cd_store_tables *t, sqlite3_stmt *q, cdmpp_err *err) {
    const size_t k = operator_at(t, q);
    (void)err;
    for (int f = 0; k < t->n_op && f < CD_STORE_N_FACTOR; f++)
        if (is(q, 1, cd_store_factor_name((cd_store_factor)f)))
            t->op[k].settings[f] = (uint64_t)sqlite3_column_int64(q, 2);
    return CDMPP_OK;
}

static cdmpp_status set_cell(cd_store_tables *t, sqlite3_stmt *q, cdmpp_err *err) {
    const size_t k = operator_at(t, q);
    size_t d = 0;
    (void)err;
    while (d < t->n_device && !is(q, 1, t->device[d].name)) d++;
    if (k < t->n_op && d < t->n_device)
        t->cell[k * t->n_device + d] = (cd_store_table_cell){(uint64_t)sqlite3_column_int64(q, 2),
                                                             sqlite3_column_double(q, 3)};
    return CDMPP_OK;
}

const char *cd_store_factor_name(cd_store_factor f) {
#define X(name, meaning) #name,
    static const char *const name[] = { CD_STORE_FACTOR_MAP(X) };
#undef X
    return name[f];
}

cdmpp_status cd_store_tables_make(cd_store *s, cd_store_tables **out, cdmpp_err *err) {
    cd_store_tables *t = cd_mem_zalloc(1, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "table");
    cdmpp_status st = cd_store_commit(s, err);
    if (!st) st = each_row(s, operator_sql, add_operator, t, err);
    if (!st) st = each_row(s, device_sql, add_device, t, err);
    if (!st && !(t->cell = cd_mem_zalloc(t->n_op * t->n_device + 1, sizeof *t->cell)))
        st = CD_FAIL(err, ENOMEM, "table");
    if (!st) st = each_row(s, step_sql, set_factor, t, err);
    if (!st) st = each_row(s, cell_sql, set_cell, t, err);
    if (st) cd_store_tables_free(t);
    else *out = t;
    return st;
}

void cd_store_tables_free(cd_store_tables *t) {
    if (!t) return;
    cd_mem_free(t->op);
    cd_mem_free(t->device);
    cd_mem_free(t->cell);
    cd_arena_free(&t->arena);
    cd_mem_free(t);
}
