/* Fills two tables from a store: how many settings of each factor an operator was measured with,
 * and how fast each device ran it. */
#include <math.h>
#include <string.h>

#include "base/draw/draw.h"
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

/* The tables of store_tables as Markdown, as a page of HTML with bars, and as JSON. */

typedef struct {
    cd_buf *b;
    bool html;
} page;

static const char *shown(const char *name) { return *name ? name : "(not known)"; }

static void heading(const page *p, const char *s) {
    cd_buf_putf(p->b, p->html ? "<h2>%s</h2>\n" : "\n## %s\n\n", s);
}

/* Text of a store may be anything: a bar would end a cell of Markdown. */
static void escaped(const page *p, const char *s) {
    if (p->html) cd_escape_xml(p->b, cd_str_of(s));
    for (; !p->html && *s; s++) cd_buf_putf(p->b, *s == '|' ? "\\%c" : "%c", *s);
}

static void head_cell(const page *p, const char *s) {
    cd_buf_puts(p->b, p->html ? "<th>" : " ");
    escaped(p, s);
    cd_buf_puts(p->b, p->html ? "</th>" : " |");
}

static void begin_row(const page *p, const char *s) {
    cd_buf_puts(p->b, p->html ? "<tr>" : "|");
    head_cell(p, s);
}

static void end_row(const page *p) { cd_buf_puts(p->b, p->html ? "</tr>\n" : "\n"); }

static void rule(const page *p, size_t columns) {
    if (p->html) return;
    cd_buf_puts(p->b, "| --- |");
    for (size_t k = 0; k < columns; k++) cd_buf_puts(p->b, " --: |");
    cd_buf_puts(p->b, "\n");
}

/* A bar of HTML is as long as the number has octaves. An empty cell of Markdown is empty, too. */
static void cell(const page *p, const char *s, double size) {
    if (p->html && size > 0)
        cd_buf_putf(p->b, "<td><i style=\"width:%.0fpx\"></i>%s</td>", 6 * log2(1 + size), s);
    else if (p->html) cd_buf_puts(p->b, "<td class=\"none\">-</td>");
    else cd_buf_putf(p->b, " %s |", s);
}

static void count_cell(const page *p, uint64_t n, bool varies) {
    char s[32];
    snprintf(s, sizeof s, "%llu", (unsigned long long)n);
    cell(p, varies ? s : "", varies ? (double)n : 0);
}

/* ---- the tables ---- */
static void put_factors(const page *p, const cd_store_tables *t) {
    heading(p, "Operators and factors");
    cd_buf_puts(p->b, p->html ? "<p>Different settings that were measured. A cell is empty where "
                                "the factor did not vary.</p>\n<table>\n"
                              : "Different settings that were measured. A cell is empty where the "
                                "factor did not vary.\n\n");
    begin_row(p, "operator");
    head_cell(p, "measured");
    for (int f = 0; f < CD_STORE_N_FACTOR; f++)
        head_cell(p, cd_store_factor_name((cd_store_factor)f));
    end_row(p);
    rule(p, 1 + CD_STORE_N_FACTOR);
    for (size_t k = 0; k < t->n_op; k++) {
        begin_row(p, t->op[k].name);
        count_cell(p, t->op[k].measured, true);
        for (int f = 0; f < CD_STORE_N_FACTOR; f++)
            count_cell(p, t->op[k].settings[f], t->op[k].settings[f] > 1);
        end_row(p);
    }
    if (p->html) cd_buf_puts(p->b, "</table>\n");
}

static void put_devices(const page *p, const cd_store_tables *t) {
    heading(p, "Hardware and operators");
    cd_buf_puts(
        p->b, p->html
                  ? "<p>Workloads that were measured, and the best rate in GFLOP/s.</p>\n<table>\n"
                  : "Workloads that were measured, and the best rate in GFLOP/s.\n\n");
    begin_row(p, "operator");
    for (size_t d = 0; d < t->n_device; d++) head_cell(p, shown(t->device[d].name));
    end_row(p);
    rule(p, t->n_device);
    for (size_t k = 0; k < t->n_op; k++) {
        begin_row(p, t->op[k].name);
        for (size_t d = 0; d < t->n_device; d++) {
            const cd_store_table_cell *c = &t->cell[k * t->n_device + d];
            char s[64] = "";
            if (c->n)
                snprintf(s, sizeof s, c->flop_s > 0 ? "%llu, %.4g" : "%llu",
                         (unsigned long long)c->n, 1e-9 * c->flop_s);
            cell(p, s, c->flop_s > 0 ? 1e-9 * c->flop_s : (double)c->n);
        }
        end_row(p);
    }
    if (p->html) cd_buf_puts(p->b, "</table>\n");
}

static void put_machines(const page *p, const cd_store_tables *t) {
    heading(p, "Devices");
    if (p->html) cd_buf_puts(p->b, "<table>\n");
    begin_row(p, "device");
    head_cell(p, "measured");
    head_cell(p, "host");
    head_cell(p, "processor");
    end_row(p);
    if (!p->html) cd_buf_puts(p->b, "| --- | --: | --- | --- |\n");
    for (size_t d = 0; d < t->n_device; d++) {
        begin_row(p, shown(t->device[d].name));
        count_cell(p, t->device[d].measured, true);
        head_cell(p, t->device[d].host);
        head_cell(p, t->device[d].cpu);
        end_row(p);
    }
    if (p->html) cd_buf_puts(p->b, "</table>\n");
}

/* ---- what is missing ---- */
static bool lacks_steps(const cd_store_table_operator *o) {
    for (int f = CD_STORE_FACTOR_tile; f <= CD_STORE_FACTOR_parallel; f++)
        if (o->settings[f] > 1) return false;
    return true;
}

static void put_command(const page *p, const char *what, const char *name, const char *command,
                        const char *path) {
    cd_buf_puts(p->b, p->html ? "<li>" : "* ");
    escaped(p, name);
    cd_buf_putf(p->b, ": %s: ", what);
    cd_buf_puts(p->b, p->html ? "<code>" : "`");
    cd_buf_putf(p->b, command, path);
    cd_buf_puts(p->b, p->html ? "</code></li>\n" : "`\n");
}

static void put_missing(const page *p, const cd_store_tables *t, const char *path) {
    heading(p, "What fills empty cells");
    cd_buf_puts(p->b, p->html ? "<p>TASKS has the definitions of the operators, DRAWN.json and "
                                "LOG.json are files of records.</p>\n<ul>\n"
                              : "TASKS has the definitions of the operators, DRAWN.json and "
                                "LOG.json are files of records.\n\n");
    put_command(p, "random schedules vary all factors from tile to parallel", "draw",
                "cdmpp-profile draw --tasks TASKS --out DRAWN.json", "");
    for (size_t k = 0; k < t->n_op; k++) {
        const cd_store_table_operator *o = &t->op[k];
        if (lacks_steps(o))
            put_command(
                p, "schedules", o->name,
                "cdmpp-profile records --tasks TASKS --store %s --out MEASURED.json DRAWN.json",
                path);
        if (o->settings[CD_STORE_FACTOR_inputs] < 2)
            put_command(p, "sizes", o->name,
                        "cdmpp-profile curves --network NETWORK --sizes batch=1..64 --out "
                        "CURVES.tsv && cdmpp-profile store import --store %s CURVES.tsv",
                        path);
        if (o->settings[CD_STORE_FACTOR_cache] < 2)
            put_command(
                p, "cold caches", o->name,
                "cdmpp-profile records --tasks TASKS --cold --store %s --out COLD.json LOG.json",
                path);
        for (size_t d = 0; d < t->n_device; d++)
            if (!t->cell[k * t->n_device + d].n)
                put_command(
                    p, shown(t->device[d].name), o->name,
                    "cdmpp-profile records --tasks TASKS --store %s --out MEASURED.json LOG.json",
                    path);
    }
    if (p->html) cd_buf_puts(p->b, "</ul>\n");
}

static void put_json(cd_buf *b, const cd_store_tables *t) {
    cd_json_writer w = {.out = b};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "operators");
    cd_json_write_open(&w, '[');
    for (size_t k = 0; k < t->n_op; k++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "operator", t->op[k].name);
        cd_json_write_member_str(&w, "workload_key", t->op[k].workload);
        cd_json_write_member_int(&w, "measured", (int64_t)t->op[k].measured);
        for (int f = 0; f < CD_STORE_N_FACTOR; f++)
            cd_json_write_member_int(&w, cd_store_factor_name((cd_store_factor)f),
                                     (int64_t)t->op[k].settings[f]);
        cd_json_write_key(&w, "devices");
        cd_json_write_open(&w, '{');
        for (size_t d = 0; d < t->n_device; d++) {
            const cd_store_table_cell *c = &t->cell[k * t->n_device + d];
            cd_json_write_key(&w, t->device[d].name);
            cd_json_write_open(&w, '{');
            cd_json_write_member_int(&w, "workloads", (int64_t)c->n);
            cd_json_write_member_real(&w, "flop_per_s", c->flop_s > 0 ? c->flop_s : (double)NAN);
            cd_json_write_close(&w, '}');
        }
        cd_json_write_close(&w, '}');
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}

void cd_store_tables_print(cd_buf *out, const cd_store_tables *t, cd_store_table_form form,
                           const char *path) {
    const page p = {out, form == CD_STORE_TABLE_HTML};
    if (form == CD_STORE_TABLE_JSON) {
        put_json(out, t);
        return;
    }
    if (p.html)
        cd_buf_puts(out,
                    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>What "
                    "was measured</title>\n<style>body{font:14px sans-serif;margin:2em}"
                    "table{border-collapse:collapse}th,td{border:1px solid #ccc;padding:2px "
                    "6px;text-align:right}th:first-child{text-align:left}"
                    "i{display:inline-block;height:8px;background:#4477aa;margin-right:4px}.none{"
                    "color:#aaa}</style></head><body>\n<h1>What was measured</h1>\n");
    else cd_buf_puts(out, "# What was measured\n");
    put_factors(&p, t);
    put_devices(&p, t);
    put_machines(&p, t);
    put_missing(&p, t, path);
    if (p.html) cd_buf_puts(out, "</body></html>\n");
}
