/* A workload as JSON and as text. */
#include <string.h>

#include "profiler/network/workload/workload.h"

/* EOP's categories, and types of tensors. */
static void put_constructs(cd_json_writer *w, const cd_te_dag *d) {
    cd_dtype type[CD_TE_TYPES];
    const unsigned found = cd_te_constructs_of(d), n = cd_te_types_of(d, type);
    char name[16];
    cd_json_write_key(w, "constructs"), cd_json_write_open(w, '[');
    for (unsigned bit = 1; cd_te_construct_name(bit); bit *= 2)
        if (found & bit) cd_json_write_str(w, cd_te_construct_name(bit));
    cd_json_write_close(w, ']');
    cd_json_write_key(w, "types"), cd_json_write_open(w, '[');
    for (unsigned k = 0; k < n; k++)
        cd_json_write_str(w, cd_expr_dtype_format(type[k], name, sizeof name));
    cd_json_write_close(w, ']');
}

static void put_task(cd_json_writer w, const cd_workload *g, const cd_workload_task *t) {
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "workload_key",
                             cd_task_registry_at(g->tasks, t->task)->workload_key);
    cd_json_write_member_int(&w, "weight", t->weight);
    cd_json_write_member_real(&w, "flop", t->flop);
    cd_json_write_key(&w, "operators"), cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < t->n_op; i++) cd_json_write_str(&w, t->op[i]);
    cd_json_write_close(&w, ']');
    put_constructs(&w, cd_task_registry_at(g->tasks, t->task)->dag);
    cd_json_write_close(&w, '}');
}

static void put_unsupported(cd_json_writer w, const cd_workload_unsupported *u) {
    cd_json_write_open(&w, '{');
    cd_json_write_member_str(&w, "operator", u->op);
    cd_json_write_member_str(&w, "node", u->node);
    cd_json_write_member_str(&w, "reason", u->reason);
    cd_json_write_close(&w, '}');
}

/* A task a line, an unsupported operator a line. */
cdmpp_status cd_workload_json(cd_buf *out, const cd_workload *w, cdmpp_err *err) {
    const cd_json_writer line = {.out = out, .colon = ": ", .sep = ", "};
    cd_json_writer head = line;
    bool any = false;
    cd_json_write_open(&head, '{');
    cd_json_write_member_str(&head, "network", w->graph->name ? w->graph->name : "");
    cd_json_write_member_real(&head, "flop", cd_workload_flop(w));
    cd_buf_puts(out, ", \"tasks\": [");
    for (uint32_t i = 0; i < w->n_task; i++) {
        if (!w->task[i].weight) continue;
        cd_buf_puts(out, any ? ",\n  " : "\n  ");
        put_task(line, w, &w->task[i]);
        any = true;
    }
    cd_buf_puts(out, "], \"unsupported\": [");
    for (uint32_t i = 0; i < w->n_unsupported; i++) {
        cd_buf_puts(out, i ? ",\n  " : "\n  ");
        put_unsupported(line, &w->unsupported[i]);
    }
    cd_buf_puts(out, "]}\n");
    return out->oom ? CD_FAIL(err, ENOMEM, "out of memory for text") : CDMPP_OK;
}

static void put_operators(cd_buf *out, const cd_workload_task *t) {
    for (uint32_t i = 0; i < t->n_op; i++) {
        uint32_t same = 1;
        if (i == 8) {
            cd_buf_putf(out, " + %u more", t->n_op - i);
            return;
        }
        while (i + same < t->n_op && !strcmp(t->op[i], t->op[i + same])) same++;
        cd_buf_putf(out, "%s%s", i ? " " : "", t->op[i]);
        if (same > 1) cd_buf_putf(out, "*%u", same);
        i += same - 1;
    }
}

static void put_constructs_text(cd_buf *out, const cd_te_dag *d) {
    const unsigned found = cd_te_constructs_of(d);
    for (unsigned bit = 1; cd_te_construct_name(bit); bit *= 2)
        if (found & bit)
            cd_buf_putf(out, "%s%s", found & (bit - 1) ? ", " : "  (", cd_te_construct_name(bit));
    cd_buf_puts(out, ")");
}

cdmpp_status cd_workload_text(cd_buf *out, const cd_workload *w, cdmpp_err *err) {
    cd_buf_putf(out, "%6s %14s  %s\n", "weight", "flop",
                "operators (what they are made of), workload key");
    for (uint32_t i = 0; i < w->n_task; i++) {
        const cd_workload_task *t = &w->task[i];
        if (!t->weight) continue;
        cd_buf_putf(out, "%6lld %14.6g  ", (long long)t->weight, t->flop);
        put_operators(out, t);
        put_constructs_text(out, cd_task_registry_at(w->tasks, t->task)->dag);
        cd_buf_putf(out, "\n%22s  %s\n", "", cd_task_registry_at(w->tasks, t->task)->workload_key);
    }
    for (uint32_t i = 0; i < w->n_unsupported; i++)
        cd_buf_putf(out, "unsupported: %s %s: %s\n", w->unsupported[i].op, w->unsupported[i].node,
                    w->unsupported[i].reason);
    return out->oom ? CD_FAIL(err, ENOMEM, "out of memory for text") : CDMPP_OK;
}
