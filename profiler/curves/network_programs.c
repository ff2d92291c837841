/* Chooses a program for each task of a network. An operator that cannot be read or a task without a
 * program does not end it: the rest of the network is still worth measuring, so each is reported to
 * the caller. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/curves/curves.h"

/* Parses the sizes of a curve. They must ascend: the table of a curve has its points in this order.
 * A range is its powers of two and both ends. */

/* What stands behind the number; NULL: there is none, or one that is out of range. */
static const char *number(const char *p, int *out) {
    char *end;
    errno = 0;
    const long k = strtol(p, &end, 10);
    if (end == p || errno || k < 1 || k > CD_SIZE_LIST_LARGEST) return NULL;
    *out = (int)k;
    return end;
}

static bool put(cd_size_list *l, int k) {
    if (l->n == CD_SIZE_LIST_MAX || (l->n && k <= l->v[l->n - 1])) return false;
    l->v[l->n++] = k;
    return true;
}

static bool doubled(cd_size_list *l, int last) {
    int k = 1;
    while (k <= l->v[l->n - 1]) k *= 2;
    for (; k < last; k *= 2)
        if (!put(l, k)) return false;
    return put(l, last);
}

bool cd_size_list_parse(const char *text, cd_size_list *out) {
    const char *p = strchr(text, '=');
    const bool batch = !strncmp(text, "batch=", 6);
    out->input = !strncmp(text, "input=", 6);
    out->n = 0;
    while ((batch || out->input) && *p) { /* p: the '=' or comma before a number */
        int k;
        const char *end = number(p + 1, &k);
        if (!end || !put(out, k)) return false;
        if (!strncmp(end, "..", 2)) {
            end = number(end + 2, &k);
            if (!end || k <= out->v[out->n - 1] || !doubled(out, k)) return false;
        }
        if (*end && *end != ',') return false;
        p = end;
    }
    return p && !*p && out->n >= 2;
}

static cdmpp_status read_network(const cd_network_source *s, const cd_fusion_rules *rules,
                                 const cd_program_select_options *o, const cd_record_listener *l,
                                 cd_network_programs *x, cdmpp_err *err) {
    const cd_workload_options wo = {.target = o->target, .hardware = &o->hardware, .rules = rules};
    const cd_onnx_miss *miss;
    uint32_t n = 0;
    CD_TRY(cd_network_source_read(s, &x->graph, &miss, &n, err));
    for (uint32_t k = 0; k < n; k++)
        cd_record_listener_note(l, "%s (%s): %s", miss[k].node, miss[k].op, miss[k].reason);
    CD_TRY(cd_workload_build(x->graph, &wo, &x->workload, err));
    for (uint32_t k = 0; k < x->workload->n_unsupported; k++) {
        const cd_workload_unsupported *u = &x->workload->unsupported[k];
        cd_record_listener_note(l, "%s (%s) is left out: %s", u->node, u->op, u->reason);
    }
    return CDMPP_OK;
}

cdmpp_status cd_network_programs_make(const cd_network_source *s, const cd_fusion_rules *rules,
                                      const cd_program_select_options *o,
                                      const cd_record_listener *l, cd_network_programs *x,
                                      cdmpp_err *err) {
    *x = (cd_network_programs){0};
    CD_TRY(read_network(s, rules, o, l, x, err));
    CD_TRY(cd_program_select_run(x->workload, o, &x->select, err));
    if (x->select->bad_lines)
        cd_record_listener_note(l, "%zu lines of the logs are no records", x->select->bad_lines);
    for (uint32_t k = 0; k < x->select->n; k++) {
        const cd_program_select_task *t = &x->select->task[k];
        if (!t->status) continue;
        x->bad++;
        cd_record_listener_note(
            l, "%.80s has no program: %s",
            cd_task_registry_at(x->workload->tasks, x->workload->task[k].task)->workload_key,
            t->err.msg);
    }
    return CDMPP_OK;
}

void cd_network_programs_free(cd_network_programs *x) {
    cd_program_select_free(x->select);
    cd_workload_free(x->workload);
    cd_graph_free(x->graph);
}

cdmpp_status cd_network_programs_put_records(cd_buf *b, cd_network_programs *x, cdmpp_err *err) {
    for (uint32_t k = 0; k < x->select->n; k++) {
        cd_program_select_task *t = &x->select->task[k];
        cd_record r;
        if (t->status) continue;
        CD_TRY(cd_record_program_record(&t->job, &t->item.out, &r, err));
        CD_TRY(cd_record_write(b, &r, err));
    }
    return CDMPP_OK;
}
