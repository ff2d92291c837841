/* The report for authors of offload rules: what each rule matches in the network, and why groups
 * may not run on a device. */
#include <string.h>

#include "predictor/partition/report/report_internal.h"

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
