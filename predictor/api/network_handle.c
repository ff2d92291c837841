/* cdmpp_network: what is to be estimated, as copies of what the caller named.
 *
 * The handle keeps names and options and not the graph, because a network is loaded for a device:
 * its layout and the programs of its operators depend on the target. It is loaded once here all the
 * same, so that a wrong file is found where it is named. */
#include <stdio.h>
#include <string.h>

#include "predictor/api/network_handle_internal.h"

bool cd_network_handle_text(cd_arena *a, const char *s, const char **out) {
    *out = s ? cd_str_dup(a, (cd_str){s, strlen(s)}) : NULL;
    return !s || *out;
}

bool cd_network_handle_texts(cd_arena *a, const char *const *v, size_t n, cd_texts *out) {
    *out = (cd_texts){.n = n, .v = CD_NEWN(a, const char *, n + 1)};
    for (size_t k = 0; out->v && k < n; k++)
        if (!cd_network_handle_text(a, v[k], &out->v[k])) return false;
    return out->v != NULL;
}

bool cd_network_handle_copy(cd_arena *a, const cd_network_estimate_options *from,
                            cd_network_estimate_options *to) {
    to->input_size = from->input_size;
    to->training = from->training;
    return cd_network_handle_texts(a, from->graph.v, from->graph.n, &to->graph) &&
           cd_network_handle_texts(a, from->network.v, from->network.n, &to->network) &&
           cd_network_handle_texts(a, from->tasks.v, from->tasks.n, &to->tasks) &&
           cd_network_handle_texts(a, from->dim.v, from->dim.n, &to->dim) &&
           cd_network_handle_texts(a, from->input.v, from->input.n, &to->input) &&
           cd_network_handle_text(a, from->batch, &to->batch) &&
           cd_network_handle_text(a, from->layout, &to->layout);
}

/* A graph file has its shapes already: batch, layout, dimensions and inputs apply to a model file
 * only. */
static cdmpp_status copy_options(cdmpp_network *n, const char *from, bool graph,
                                 const cdmpp_network_options *o, cdmpp_err *err) {
    cd_network_estimate_options *a = &n->ask;
    char batch[24];
    *a = cd_network_estimate_defaults();
    if (o->batch < 0 || o->input_size < 0)
        return CD_FAIL(err, EUSAGE,
                       "cdmpp_network_options: expected a batch and an input_size of 0 or more");
    bool ok = cd_network_handle_texts(&n->arena, &from, 1, graph ? &a->graph : &a->network) &&
              cd_network_handle_texts(&n->arena, o->tasks, o->n_tasks, &a->tasks);
    if (!graph) {
        snprintf(batch, sizeof batch, "%lld", (long long)o->batch);
        a->input_size = o->input_size;
        a->training = o->training != 0;
        ok = ok && cd_network_handle_text(&n->arena, o->batch ? batch : NULL, &a->batch) &&
             cd_network_handle_text(&n->arena, o->layout, &a->layout) &&
             cd_network_handle_texts(&n->arena, o->dim, o->n_dim, &a->dim) &&
             cd_network_handle_texts(&n->arena, o->input, o->n_input, &a->input);
    }
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "network handle");
}

/* Reads the network for a device that needs no model, and keeps the names that it finds. */
static cdmpp_status look(cdmpp_network *n, cdmpp_err *err) {
    cd_network_estimate_options a = n->ask;
    cd_network_estimate e = {0};
    a.device = "device";
    a.replay_given = true;
    cdmpp_status st = cd_network_estimate_check(&a, err);
    if (!st) st = cd_network_estimate_open(&a, &e, err);
    if (!st && !(n->name = CD_NEWN(&n->arena, const char *, e.n_source + 1)))
        st = CD_FAIL(err, ENOMEM, "network handle");
    for (size_t k = 0; !st && k < e.n_source; k++)
        if (!cd_network_handle_text(&n->arena, e.source[k]->name, &n->name[n->n++]))
            st = CD_FAIL(err, ENOMEM, "network handle");
    cd_network_estimate_free(&e);
    return st;
}

static cdmpp_status new_network(const char *from, bool graph, const cdmpp_network_options *options,
                                cdmpp_network **out, cdmpp_err *err) {
    cdmpp_network_options o = {0};
    if (options)
        CD_TRY(cd_api_copy_struct(&o, sizeof o, options, sizeof o, "cdmpp_network_options", err));
    cdmpp_network *n = cd_mem_zalloc(1, sizeof *n);
    if (!n) return CD_FAIL(err, ENOMEM, "network handle");
    cdmpp_status st = copy_options(n, from, graph, &o, err);
    if (!st) st = look(n, err);
    if (st) cdmpp_network_free(n);
    else *out = n;
    return st;
}

cdmpp_status cdmpp_network_load(const char *from, const cdmpp_network_options *options,
                                cdmpp_network **out, cdmpp_err *err) {
    return new_network(from, false, options, out, err);
}

cdmpp_status cdmpp_network_load_graph(const char *path, const cdmpp_network_options *options,
                                      cdmpp_network **out, cdmpp_err *err) {
    return new_network(path, true, options, out, err);
}

size_t cdmpp_network_count(const cdmpp_network *n) { return n->n; }
const char *cdmpp_network_name(const cdmpp_network *n, size_t i) {
    return i < n->n ? n->name[i] : NULL;
}

void cdmpp_network_free(cdmpp_network *n) {
    if (!n) return;
    cd_arena_free(&n->arena);
    cd_mem_free(n);
}
