/* A workload as JSON and as text. */
#include <string.h>

#include "profiler/network/workload/workload.h"

static void put_str(cd_buf *out, const char *s) { cd_buf_put_json_str(out, s, strlen(s)); }

static void put_task(cd_buf *out, const cd_workload *w, const cd_workload_task *t) {
    cd_buf_puts(out, "{\"workload_key\": ");
    put_str(out, cd_task_registry_at(w->tasks, t->task)->workload_key);
    cd_buf_putf(out, ", \"weight\": %lld, \"flop\": ", (long long)t->weight);
    cd_buf_put_json_real(out, t->flop);
    cd_buf_puts(out, ", \"operators\": [");
    for (uint32_t i = 0; i < t->n_op; i++) {
        if (i) cd_buf_puts(out, ", ");
        put_str(out, t->op[i]);
    }
    cd_buf_puts(out, "]}");
}

static void put_unsupported(cd_buf *out, const cd_workload_unsupported *u) {
    cd_buf_puts(out, "{\"operator\": ");
    put_str(out, u->op);
    cd_buf_puts(out, ", \"node\": ");
    put_str(out, u->node);
    cd_buf_puts(out, ", \"reason\": ");
    put_str(out, u->reason);
    cd_buf_puts(out, "}");
}

/* Tasks of weight 0 are left out, as in the registry. */
cdmpp_status cd_workload_json(cd_buf *out, const cd_workload *w, cdmpp_err *err) {
    bool any = false;
    cd_buf_puts(out, "{\"network\": ");
    put_str(out, w->graph->name ? w->graph->name : "");
    cd_buf_puts(out, ", \"flop\": ");
    cd_buf_put_json_real(out, cd_workload_flop(w));
    cd_buf_puts(out, ", \"tasks\": [");
    for (uint32_t i = 0; i < w->n_task; i++) {
        if (!w->task[i].weight) continue;
        cd_buf_puts(out, any ? ",\n  " : "\n  ");
        put_task(out, w, &w->task[i]);
        any = true;
    }
    cd_buf_puts(out, "], \"unsupported\": [");
    for (uint32_t i = 0; i < w->n_unsupported; i++) {
        cd_buf_puts(out, i ? ",\n  " : "\n  ");
        put_unsupported(out, &w->unsupported[i]);
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

cdmpp_status cd_workload_text(cd_buf *out, const cd_workload *w, cdmpp_err *err) {
    cd_buf_putf(out, "%6s %14s  %s\n", "weight", "flop", "operators, workload key");
    for (uint32_t i = 0; i < w->n_task; i++) {
        const cd_workload_task *t = &w->task[i];
        if (!t->weight) continue;
        cd_buf_putf(out, "%6lld %14.6g  ", (long long)t->weight, t->flop);
        put_operators(out, t);
        cd_buf_putf(out, "\n%22s  %s\n", "", cd_task_registry_at(w->tasks, t->task)->workload_key);
    }
    for (uint32_t i = 0; i < w->n_unsupported; i++)
        cd_buf_putf(out, "unsupported: %s %s: %s\n", w->unsupported[i].op, w->unsupported[i].node, w->unsupported[i].reason);
    return out->oom ? CD_FAIL(err, ENOMEM, "out of memory for text") : CDMPP_OK;
}
