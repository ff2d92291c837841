/* --save-graph: every network that was read or loaded, in our own form, to be looked at, changed and replayed again. */
#include <string.h>

#include "base/io/io.h"
#include "predictor/cmd/replay/main_replay.h"

static bool is_taken(const cd_network_graph *g, size_t n, const char *name) {
    for (size_t k = 0; k < n; k++)
        if (!strcmp(g[k].name, name)) return true;
    return false;
}

/* A file has a name once: of the second, the batch is added, then a number. */
static cdmpp_status name_once(cd_main_replay_plan *p, cd_network_graph *g, size_t n, const char *name, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_puts(&b, name);
    if (is_taken(g, n, b.p ? b.p : "") && g[n].batch) cd_buf_putf(&b, ", batch %lld", (long long)g[n].batch);
    const size_t base = b.n;
    for (unsigned k = 2; !b.oom && is_taken(g, n, b.p); k++) {
        b.n = base;
        cd_buf_putf(&b, "#%u", k);
    }
    g[n].name = b.oom ? NULL : cd_str_dup(&p->arena, (cd_str){b.p, b.n});
    cd_buf_free(&b);
    return g[n].name ? CDMPP_OK : CD_FAIL(err, ENOMEM, "name of a network");
}

cdmpp_status cd_main_replay_save_graph(cd_main_replay_plan *p, cdmpp_err *err) {
    cd_buf b = {0};
    size_t n = 0;
    cdmpp_status st = CDMPP_OK;
    if (!p->o->save_graph) return CDMPP_OK;
    cd_network_graph *g = cd_arena_alloc(&p->arena, p->n_source + 1, sizeof *g), **at = cd_arena_alloc(&p->arena, p->n_source + 1, sizeof *at);
    if (!g || !at) return CD_FAIL(err, ENOMEM, "%zu graphs", p->n_source);
    for (size_t k = 0; !st && k < p->n_source; k++) {
        if (!p->source[k]->graph) continue;
        g[n] = *p->source[k]->graph; /* lent: only the name is another */
        at[n] = &g[n];
        st = name_once(p, g, n, p->source[k]->name, err);
        n++;
    }
    if (!st) st = cd_network_graph_write(&b, at, n, err);
    if (!st) st = cd_file_write(p->o->save_graph, b.p, b.n, err);
    cd_buf_free(&b);
    return st;
}
