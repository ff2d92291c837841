/* Reads networks by name. For training the graph of an iteration takes the place of the network's,
 * and both lists of what is missing become one, so that callers need not know which step could not
 * take an operator. */
#include "profiler/network/source/source.h"

#include <string.h>
#include <sys/stat.h>

#include "profiler/network/gradient/gradient.h"
#include "profiler/network/zoo/zoo.h"

bool cd_network_source_is_file(const char *name) {
    struct stat st;
    const size_t n = strlen(name);
    if (stat(name, &st) == 0) return !S_ISDIR(st.st_mode);
    if (strchr(name, '@') && cd_zoo_find(name)) return false; /* gcn@FILE */
    return strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".onnx"));
}

/* What OpBench took from the libraries of transformers and of recurrent networks. */
static bool of_transformers(const cd_zoo_entry *e) {
    return !strcmp(e->family, "transformer") || !strcmp(e->family, "rnn") ||
           !strcmp(e->name, "nasnet-large") || !strcmp(e->name, "dpn-68");
}

cdmpp_status cd_network_source_kind(int said, const char *name, int *kind, cdmpp_err *err) {
    const bool remote = said == CD_NETWORK_SOURCE_URL || said == CD_NETWORK_SOURCE_REMOTE,
               file = name && cd_network_source_is_file(name);
    /* of an unknown name the zoo says what is near */
    const cd_zoo_entry *e = name && !file ? cd_zoo_find(name) : NULL;
    *kind = said == CD_NETWORK_SOURCE_ONNX || remote || file ? CD_NETWORK_SOURCE_ONNX
                                                             : CD_NETWORK_SOURCE_ZOO;
    if (remote && name && !cd_network_source_is_address(name))
        return CD_FAIL(err, EUSAGE,
                       "expected an address (http://, https://, file://), found '%.100s'", name);
    if (said == CD_NETWORK_SOURCE_SIMPLE && (file || (e && strcmp(e->family, "operator") != 0)))
        return CD_FAIL(err, EUSAGE,
                       "'%.100s' is no single operator (--list-networks); source %s has it", name,
                       file ? "onnx" : "zoo");
    if (said == CD_NETWORK_SOURCE_TRANSFORMERS && (file || (e && !of_transformers(e))))
        return CD_FAIL(
            err, EUSAGE,
            "'%.100s' is no transformer and not recurrent (--list-networks); source %s has it",
            name, file ? "onnx" : "zoo");
    return CDMPP_OK;
}

static cdmpp_status keep(cd_arena *a, const char **s, cdmpp_err *err) {
    *s = cd_str_dup(a, (cd_str){*s, strlen(*s)});
    return *s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "out of memory for a list");
}

/* The iteration in place of the network. The misses' texts lived in the old graph's arena: they are
 * copied before it is freed. */
static cdmpp_status iteration(cd_graph **g, const cd_onnx_miss **miss, uint32_t *n,
                              cdmpp_err *err) {
    cd_gradient t;
    CD_TRY(cd_autodiff(*g, NULL, &t, err));
    cd_arena *a = &t.graph->arena;
    cd_onnx_miss *all = CD_NEWN(a, cd_onnx_miss, (size_t)*n + t.n_missing + 1);
    cdmpp_status st = all ? CDMPP_OK : CD_FAIL(err, ENOMEM, "out of memory for a list");
    for (uint32_t k = 0; !st && k < *n; k++) {
        const char **part[] = {&all[k].node, &all[k].op, &all[k].domain, &all[k].reason};
        all[k] = (*miss)[k];
        for (int i = 0; !st && i < 4; i++) st = keep(a, part[i], err);
    }
    for (uint32_t k = 0; !st && k < t.n_missing; k++)
        all[*n + k] = (cd_onnx_miss){.node = t.missing[k].name,
                                     .op = t.missing[k].op,
                                     .domain = CD_GRADIENT_DOMAIN,
                                     .reason = t.missing[k].reason};
    if (!st) st = cd_graph_take_notes(t.graph, *g, err);
    if (st) {
        cd_gradient_free(&t);
        return st;
    }
    cd_graph_free(*g);
    *g = t.graph;
    *miss = all;
    *n += t.n_missing;
    return CDMPP_OK;
}

static cdmpp_status read_graph(const cd_network_source *s, cd_graph **g, const cd_onnx_miss **miss,
                               uint32_t *n_miss, cdmpp_err *err) {
    const cd_onnx_options onnx = {.batch = s->batch,
                                  .dim = s->dim,
                                  .n_dim = s->n_dim,
                                  .input = s->input,
                                  .n_input = s->n_input,
                                  .contents = s->contents};
    const cd_zoo_options zoo = {.batch = s->batch, .size = s->size};
    *miss = NULL;
    *n_miss = 0;
    if (s->kind == CD_NETWORK_SOURCE_ONNX)
        return cd_network_source_onnx(s->name, &onnx, g, miss, n_miss, err);
    return cd_zoo_build(s->name, &zoo, g, err);
}

cdmpp_status cd_network_source_read(const cd_network_source *s, cd_graph **g,
                                    const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err) {
    CD_TRY(read_graph(s, g, miss, n_miss, err));
    const cdmpp_status st = s->training ? iteration(g, miss, n_miss, err) : CDMPP_OK;
    if (!st) return st;
    cd_graph_free(*g);
    *g = NULL;
    return st;
}

void cd_network_source_say(const cd_graph *g, cd_log *log) {
    for (uint32_t k = 0; k < g->n_note; k++)
        cd_log_put(log, CD_LOG_WARNING, "%.80s: %s", g->name, g->note[k]);
    if (g->n_more_note)
        cd_log_put(log, CD_LOG_WARNING, "%.80s: %u more of this kind", g->name, g->n_more_note);
}

cdmpp_status cd_network_source_missing(cd_graph *g, const cd_onnx_miss *miss, uint32_t n,
                                       cd_workload_options *w, cdmpp_err *err) {
    cd_workload_unsupported *list = CD_NEWN(&g->arena, cd_workload_unsupported, n + 1);
    if (!list) return CD_FAIL(err, ENOMEM, "out of memory for a list");
    for (uint32_t i = 0; i < n; i++)
        list[i] = (cd_workload_unsupported){miss[i].op, miss[i].node, miss[i].reason};
    w->missing = list;
    w->n_missing = n;
    return CDMPP_OK;
}

void cd_network_source_put_misses(cd_buf *b, const cd_onnx_miss *miss, uint32_t n) {
    cd_json_writer w = {.out = b};
    cd_json_write_key(&w, "unsupported");
    cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < n; i++) {
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", miss[i].node);
        cd_json_write_member_str(&w, "op", miss[i].op);
        cd_json_write_member_str(&w, "domain", miss[i].domain);
        cd_json_write_member_str(&w, "reason", miss[i].reason);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
}
