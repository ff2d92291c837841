/* What programs take together and one after the other: the table that was measured, the search, and
 * the run. */
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "predictor/partition/report/report.h"
#include "predictor/partition/report/report_internal.h"
#include "profiler/host/host.h"

/* The report for authors of offload rules: what each rule matches in the network, and why groups
 * may not run on a device. */

static void put_match(const cd_partition_rules *o, const cd_offload_match *m, cd_buf *out) {
    const char *const *device;
    (void)cd_offload_devices(o->file, &device);
    cd_buf_putf(out, "match  %-8s %-16s line %-4ld %s", device[m->device], m->pattern, m->line,
                m->taken ? "      " : "(over) ");
    for (uint32_t i = 0; i < m->n_op; i++)
        cd_buf_putf(out, " %s", o->rules.ops.graph.op[o->rules.found.member[m->first + i]].name);
    cd_buf_puts(out, "\n");
}

static void put_counts(const cd_partition_rules *o, cd_buf *out) {
    for (uint32_t d = 0; d < o->rules.n_device; d++) {
        uint32_t may = 0, together = 0, pinned = 0;
        for (uint32_t g = 0; g < o->rules.n_group; g++) {
            may += o->rules.group[g].allowed >> d & 1;
            together += o->rules.group[g].together >> d & 1;
            pinned += o->rules.group[g].pin == d;
        }
        cd_buf_putf(out, "%-8s %u of %u groups may run there", o->rules.device[d], may,
                    o->rules.n_group);
        if (together) cd_buf_putf(out, ", %u more with a match of several groups", together);
        if (pinned) cd_buf_putf(out, ", %u are placed there", pinned);
        cd_buf_puts(out, "\n");
    }
}

/* Reasons why groups may not run on device d, each once, with the number of groups and the first of
 * them. Reasons that differ only in the place of a rule before "): " are one. */
static void put_reasons(const cd_partition_rules *o, uint32_t d, cd_buf *out) {
    const cd_offload_net_match *r = &o->rules;
    for (uint32_t g = 0; g < r->n_group; g++) {
        const char *why = r->group[g].why[d], *tail = why ? strstr(why, "): ") : NULL;
        uint32_t n = 0;
        bool printed = !why;
        for (uint32_t k = 0; k < r->n_group && !printed; k++) {
            const char *other = r->group[k].why[d], *end = other ? strstr(other, "): ") : NULL;
            const bool same = other && (tail && end ? !strcmp(tail, end) : !strcmp(why, other));
            if (same && k < g) printed = true;
            n += same;
        }
        if (!printed)
            cd_buf_putf(out, "not on %-8s %3u  %s: %s\n", r->device[d], n,
                        r->loaded->graph->node[g].name, why);
    }
}

void cd_partition_report_rules(const cd_partition *p, cd_buf *out) {
    const cd_partition_rules *o = &p->rules;
    cd_buf_puts(out, " line  rule\n");
    cd_offload_print(o->file, UINT32_MAX, false, out);
    for (uint32_t i = 0; i < o->rules.found.n_match; i++)
        put_match(o, &o->rules.found.match[i], out);
    for (uint32_t i = 0; i < o->rules.n_cut; i++) {
        if (!o->rules.cut[i].stops) continue;
        cd_offload_match_print_cut(&o->rules, i, out);
        cd_buf_puts(out, "\n");
    }
    put_counts(o, out);
    for (uint32_t d = 1; d < o->rules.n_device; d++) put_reasons(o, d, out);
}

static void put_seconds(cd_buf *b, double s) {
    cd_buf_puts(b, "  ");
    cd_units_put_seconds_wide(b, s);
}

static const cd_together_way *best_other(const cd_together *t) {
    return &t->way[t->kept == CD_TOGETHER_ONE_BY_ONE ? CD_TOGETHER_TUNED : CD_TOGETHER_ONE_BY_ONE];
}

/* What is kept, and what it gains over its rival: over one after the other, or over what the search
 * says. */
static void put_kept(const cd_together *t, cd_buf *b) {
    const cd_together_way *kept = &t->way[t->kept], *other = best_other(t);
    cd_buf_putf(b, "kept: %s", cd_together_name(t->kept));
    if (other->there)
        cd_buf_putf(b, ", %.3f times as fast as %s (predicted %.3f)", other->pass_s / kept->pass_s,
                    t->kept == CD_TOGETHER_ONE_BY_ONE ? "together" : "one after the other",
                    other->predicted_s / kept->predicted_s);
    if (t->others >= 0)
        cd_buf_putf(b, "; others used %.0f %% of the processors%s", 100 * t->others,
                    t->others > CD_HOST_LOAD_LIMIT ? ": measure again when they do not" : "");
    cd_buf_puts(b, "\n");
}

static void put_programs(const cd_together *t, cd_buf *b) {
    const cd_record_together *p = t->programs;
    for (size_t k = 0; k < p->n; k++) {
        cd_buf_putf(b, "program %zu: %.*s\n", k,
                    (int)(p->best[k].key.n < 110 ? p->best[k].key.n : 110), p->best[k].key.p);
        for (int c = 0; c < p->n_count; c++) {
            const cd_measure_item *i = &p->item[k][c];
            cd_buf_putf(b, "  %3d threads", p->count[c]);
            if (i->out.error_no) cd_buf_putf(b, "  error %d", i->out.error_no);
            else put_seconds(b, i->out.time.median_s);
            cd_buf_puts(b, c == p->n_count - 1 ? "\n" : "");
        }
    }
}

void cd_partition_report_together(const cd_together *t, cd_buf *b) {
    put_programs(t, b);
    cd_cotune_table named = t->table;
    char name[CD_CORUN_GROUP][20];
    for (uint32_t k = 0; k < named.n_op; k++)
        (void)snprintf(name[k], sizeof name[k], "program %u", k), named.name[k] = name[k];
    cd_buf_puts(b, "\n");
    cd_cotune_print(&named, &t->tuned, b);
    if (!t->ran) return;
    cd_buf_puts(
        b, "\nrun here                predicted   measured           quartiles         best\n");
    for (int k = 0; k < CD_TOGETHER_WAYS; k++) {
        const cd_together_way *w = &t->way[k];
        if (!w->there) continue;
        cd_buf_putf(b, "%-22s", cd_together_name((cd_together_how)k));
        put_seconds(b, w->predicted_s);
        put_seconds(b, w->pass_s);
        put_seconds(b, w->low_s);
        cd_buf_puts(b, " ..");
        put_seconds(b, w->high_s);
        put_seconds(b, w->best_s);
        cd_buf_puts(b, "\n");
    }
    put_kept(t, b);
}

static void put_ways(const cd_together *t, cd_json_writer *w) {
    cd_json_write_key(w, "ways"), cd_json_write_open(w, '[');
    for (int k = 0; k < CD_TOGETHER_WAYS; k++) {
        const cd_together_way *x = &t->way[k];
        if (!x->there) continue;
        cd_json_write_open(w, '{');
        cd_json_write_member_str(w, "name", cd_together_name((cd_together_how)k));
        cd_json_write_member_real(w, "predicted_s", x->predicted_s);
        if (t->ran) {
            cd_json_write_member_real(w, "measured_s", x->pass_s);
            cd_json_write_member_real(w, "low_s", x->low_s);
            cd_json_write_member_real(w, "high_s", x->high_s);
            cd_json_write_member_real(w, "best_s", x->best_s);
        }
        cd_json_write_close(w, '}');
    }
    cd_json_write_close(w, ']');
}

static void put_measured(const cd_together *t, cd_json_writer *w) {
    const cd_record_together *p = t->programs;
    cd_json_write_key(w, "measured"), cd_json_write_open(w, '[');
    for (size_t k = 0; k < p->n; k++)
        for (int c = 0; c < p->n_count; c++) {
            const cd_measure_item *i = &p->item[k][c];
            cd_json_write_open(w, '{');
            cd_json_write_member_str(w, "name", t->table.name[k]);
            cd_json_write_member_int(w, "threads", p->count[c]);
            cd_json_write_member_int(w, "error_no", i->out.error_no);
            if (!i->out.error_no) cd_json_write_member_real(w, "seconds", i->out.time.median_s);
            cd_json_write_close(w, '}');
        }
    cd_json_write_close(w, ']');
}

/* The members of a table's answer first. */
void cd_partition_report_together_json(const cd_together *t, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_cotune_put_members(&t->table, &t->tuned, &w);
    put_measured(t, &w);
    put_ways(t, &w);
    if (t->ran) {
        cd_json_write_member_str(&w, "kept", cd_together_name(t->kept));
        cd_json_write_member_real(&w, "others", t->others);
    }
    cd_json_write_close(&w, '}');
}
