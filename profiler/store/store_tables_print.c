/* The tables of store_tables as Markdown, as a page of HTML with bars, and as JSON. */
#include <math.h>

#include "base/draw/draw.h"
#include "profiler/store/store_internal.h"

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
