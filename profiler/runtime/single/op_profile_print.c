/* A profile as text, JSON or CSV. */
#include <string.h>

#include "profiler/runtime/single/single.h"

void cd_op_profile_operators(cd_buf *b, const cd_workload *w, const cd_workload_group *g,
                             char between) {
    const char *last = "";
    for (uint32_t k = 0, n = 0; k < g->n_node; k++) {
        const cd_graph_node *x = &w->graph->node[g->node[k]];
        if (x->view || !strcmp(x->op, last)) continue;
        if (n++) cd_buf_put(b, &between, 1);
        cd_buf_puts(b, x->op);
        last = x->op;
    }
    /* between two groups, none of the graph's */
    if (!g->n_node) cd_buf_puts(b, "layout_transform");
}

static const char *first_name(const cd_workload *w, const cd_workload_group *g) {
    return g->n_node ? w->graph->node[g->node[0]].name : "";
}

static cdmpp_status done(const cd_buf *b, cdmpp_err *err) {
    return b->oom ? CD_FAIL(err, ENOMEM, "report") : CDMPP_OK;
}

/* ---- text ---- */

static void put_row(cd_buf *b, const cd_workload *w, const cd_op_profile *n, uint32_t k) {
    const cd_op_profile_group *g = &n->group[k];
    cd_buf_putf(b, "%5u  %9.4f  %9.4f  %5.1f%s  %8.2f  %9.1f  %9.1f  ", k, g->alone_s * 1e3,
                g->place_s * 1e3, g->share * 100, g->key ? "*" : " ", g->flop / g->place_s * 1e-9,
                (double)(g->read + g->written) / 1024, (double)g->bytes.live / 1024);
    cd_op_profile_operators(b, w, &w->group[k], '+');
    cd_buf_puts(b, "\n");
}

/* A summary, then a table of groups in the order of the network. */
cdmpp_status cd_op_profile_text(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                                const cd_op_profile *n, bool key_only, cdmpp_err *err) {
    uint32_t failed = 0;
    for (uint32_t k = 0; k < p->n; k++) failed += p->task[k].status != CDMPP_OK;
    cd_buf_putf(b,
                "%s: %.4f ms a pass (median of %u, 95 %% interval +-%.1f %%), %u of %u groups, %u "
                "tasks (%u without a program)\n",
                w->graph->name, n->pass.median_s * 1e3, n->pass.n_kept, n->pass.ci * 100, n->n_ran,
                n->n, p->n, failed);
    cd_buf_putf(b,
                "memory: weights %.1f MB, most of the rest at once %.1f MB, block %.1f MB, "
                "resident peak %.1f MB\n",
                (double)n->memory.weights * 1e-6, (double)n->memory.inner_least * 1e-6,
                (double)n->memory.all * 1e-6, (double)n->rss_peak * 1e-6);
    cd_buf_puts(b, "group   alone ms   place ms  share%   GFLOP/s   args KiB   live KiB  operators "
                   "(*: key)\n");
    for (uint32_t k = 0; k < n->n; k++)
        if (n->group[k].ran && (n->group[k].key || !key_only)) put_row(b, w, n, k);
    return done(b, err);
}

/* ---- JSON ---- */

static void put_str(cd_buf *b, const char *key, const char *s) {
    cd_buf_putf(b, "\"%s\":", key);
    cd_buf_put_json_str(b, s, strlen(s));
}

/* A group in JSON. */
static void put_group(cd_buf *b, const cd_workload *w, const cd_op_profile *n, uint32_t k) {
    const cd_op_profile_group *g = &n->group[k];
    const cd_workload_group *x = &w->group[k];
    cd_buf_putf(b, "{\"group\":%u,", k);
    put_str(b, "name", first_name(w, x));
    cd_buf_puts(b, ",\"operators\":\"");
    cd_op_profile_operators(b, w, x, '+');
    cd_buf_puts(b, "\"");
    if (x->task != CD_GRAPH_NONE) {
        cd_buf_puts(b, ",");
        put_str(b, "workload_key",
                cd_task_registry_at(w->tasks, w->task[x->task].task)->workload_key);
    }
    cd_buf_putf(b, ",\"ran\":%s", g->ran ? "true" : "false");
    if (g->ran)
        cd_buf_putf(b,
                    ",\"alone_s\":%.9g,\"in_place_s\":%.9g,\"share\":%.6g,\"key\":%s,\"live_"
                    "bytes\":%lld,\"scratch_bytes\":%lld",
                    g->alone_s, g->place_s, g->share, g->key ? "true" : "false",
                    (long long)g->bytes.live, (long long)g->bytes.scratch);
    cd_buf_putf(b, ",\"flop\":%.17g,\"read_bytes\":%lld,\"written_bytes\":%lld}", g->flop,
                (long long)g->read, (long long)g->written);
}

/* A task in JSON: its program's time or error. */
static void put_task(cd_buf *b, const cd_workload *w, const cd_program_select *p, uint32_t k) {
    const cd_program_select_task *t = &p->task[k];
    cd_buf_puts(b, "{");
    put_str(b, "workload_key", cd_task_registry_at(w->tasks, w->task[k].task)->workload_key);
    cd_buf_putf(b, ",\"weight\":%lld,\"tried\":%u,\"failed\":%u,\"from_log\":%s",
                (long long)w->task[k].weight, t->tried, t->failed, t->from_log ? "true" : "false");
    if (t->status) {
        cd_buf_puts(b, ",");
        put_str(b, "error", t->err.msg);
    } else {
        cd_buf_putf(b, ",\"median_s\":%.9g,\"cv\":%.4g", t->item.out.time.median_s,
                    t->item.out.time.cv);
    }
    cd_buf_puts(b, "}");
}

/* One object: the pass, memory, groups, tasks. Numbers have enough digits to be read back. */
cdmpp_status cd_op_profile_json(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                                const cd_op_profile *n, cdmpp_err *err) {
    cd_buf_puts(b, "{");
    put_str(b, "network", w->graph->name);
    cd_buf_putf(b,
                ",\"pass\":{\"median_s\":%.9g,\"mean_s\":%.9g,\"min_s\":%.9g,\"std_s\":%.4g,\"ci\":"
                "%.4g,\"n\":%u,\"runs\":%u,\"wall_s\":%.6g}",
                n->pass.median_s, n->pass.mean_s, n->pass.min_s, n->pass.std_s, n->pass.ci,
                n->pass.n_kept, n->passes, n->wall_s);
    cd_buf_putf(b,
                ",\"memory\":{\"block_bytes\":%lld,\"weight_bytes\":%lld,\"inner_bytes\":%lld,"
                "\"rss_peak_bytes\":%lld},\"groups\":[",
                (long long)n->memory.all, (long long)n->memory.weights,
                (long long)n->memory.inner_least, (long long)n->rss_peak);
    for (uint32_t k = 0; k < n->n; k++) {
        if (k) cd_buf_puts(b, ",");
        put_group(b, w, n, k);
    }
    cd_buf_puts(b, "],\"tasks\":[");
    for (uint32_t k = 0; k < p->n; k++) {
        if (k) cd_buf_puts(b, ",");
        put_task(b, w, p, k);
    }
    cd_buf_puts(b, "]}");
    return done(b, err);
}

/* ---- CSV ---- */

static void put_csv(cd_buf *b, const cd_workload *w, const cd_op_profile *n, uint32_t k) {
    const cd_op_profile_group *g = &n->group[k];
    cd_buf_putf(b, "%u,", k);
    cd_op_profile_operators(b, w, &w->group[k], '+');
    cd_buf_putf(b, ",%.9g,%.9g,%.6g,%d,%.17g,%lld,%lld,%lld,%lld\n", g->alone_s, g->place_s,
                g->share, g->key, g->flop, (long long)g->read, (long long)g->written,
                (long long)g->bytes.live, (long long)g->bytes.scratch);
}

static bool same_ops(const cd_workload *w, cd_buf *a, cd_buf *b, uint32_t i, uint32_t k) {
    cd_buf_clear(a);
    cd_buf_clear(b);
    cd_op_profile_operators(a, w, &w->group[i], '_');
    cd_op_profile_operators(b, w, &w->group[k], '_');
    return a->n == b->n && (!a->n || !memcmp(a->p, b->p, a->n));
}

/* All groups of the same operators are one row, where the first of them stands. */
static void put_types(cd_buf *b, const cd_workload *w, const cd_op_profile *n) {
    cd_buf x = {0}, y = {0};
    for (uint32_t k = 0; k < n->n; k++) {
        double time = 0, share = 0;
        bool first = n->group[k].ran;
        for (uint32_t i = 0; i < n->n && first; i++) {
            if (!n->group[i].ran || !same_ops(w, &x, &y, i, k)) continue;
            if (i < k) first = false;
            time += n->group[i].place_s;
            share += n->group[i].share;
        }
        if (!first) continue;
        cd_op_profile_operators(b, w, &w->group[k], '_');
        cd_buf_putf(b, ",%.1f,%.6g\n", time * 1e9, share * 100);
    }
    b->oom = b->oom || x.oom || y.oom;
    cd_buf_free(&x);
    cd_buf_free(&y);
}

cdmpp_status cd_op_profile_csv(cd_buf *b, const cd_workload *w, const cd_program_select *p,
                               const cd_op_profile *n, bool eop, cdmpp_err *err) {
    (void)p;
    cd_buf_puts(b, eop ? "op_name,op_time,op_proportion\n"
                       : "group,operators,alone_s,in_place_s,share,key,flop,read_bytes,written_"
                         "bytes,live_bytes,scratch_bytes\n");
    if (eop) put_types(b, w, n);
    for (uint32_t k = 0; k < n->n && !eop; k++)
        if (n->group[k].ran) put_csv(b, w, n, k);
    return done(b, err);
}
