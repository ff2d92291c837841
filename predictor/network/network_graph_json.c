/* The project's own form of network graphs, docs/reference/netgraph.md: the file, its networks,
 * their edges; and back. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "predictor/network/network_internal.h"

#define SCHEMA "cdmpp.netgraph"

/* An edge from a node that was not read yet. */
typedef struct later {
    cd_str name;
    uint32_t to;
    size_t index;   /* in the array "after" */
    const char *at; /* the node in the text */
} later;

typedef struct reading {
    cd_network_file *f;
    cd_network_builder *m;
    cd_arena names; /* of `later` */
    later *later;   /* (n) */
    size_t n, cap;
} reading;

/* ---- edges ---- */
static cdmpp_status no_such(cd_str name, size_t index, cdmpp_err *err) {
    const cdmpp_status st =
        CD_FAIL(err, EINVALID, "no node is named \"%.*s\"", CD_NETWORK_FILE_SHORT(name));
    return cd_err_key(err, cd_err_index(err, st, index), "after");
}

static cdmpp_status put_off(reading *t, cd_str name, uint32_t to, size_t index, const char *at,
                            cdmpp_err *err) {
    if (CD_GROW(t->later, t->n, t->cap)) return CD_FAIL(err, ENOMEM, "edges");
    const char *copy = cd_str_dup(&t->names, name);
    if (!copy) return CD_FAIL(err, ENOMEM, "name");
    t->later[t->n++] = (later){{copy, name.n}, to, index, at};
    return CDMPP_OK;
}

static cdmpp_status edges_of(reading *t, const cd_json *after, uint32_t to, const char *at,
                             cdmpp_err *err) {
    const cd_json *v = NULL;
    if (!after) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_arr(after, 0, &v, err), "after"));
    for (size_t i = 0; v; v = v->next, i++) {
        cd_str name;
        uint32_t from;
        const cdmpp_status st = cd_json_str(v, &name, err);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "after");
        if (cd_network_builder_find(t->m, name, &from))
            CD_TRY(cd_network_builder_edge(t->m, from, to, err));
        else CD_TRY(put_off(t, name, to, i, at, err));
    }
    return CDMPP_OK;
}

static cdmpp_status edges_put_off(reading *t, cdmpp_err *err) {
    for (size_t i = 0; i < t->n; i++) {
        const later *l = &t->later[i];
        uint32_t from = 0;
        cdmpp_status st = cd_network_builder_find(t->m, l->name, &from)
                              ? CDMPP_OK
                              : no_such(l->name, l->index, err);
        if (st)
            return cd_err_key(
                err, cd_err_index(err, cd_network_file_error_at(t->f, st, l->at, err), l->to),
                "nodes");
        CD_TRY(cd_network_builder_edge(t->m, from, l->to, err));
    }
    return CDMPP_OK;
}

static cdmpp_status add_node(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *v;
    cd_network_file_node o;
    uint32_t id;
    (void)k;
    CD_TRY(cd_network_file_parse(t->f, text, &v, err));
    CD_TRY(cd_network_file_read_node(t->f, v, &o, err));
    if (cd_network_builder_find(t->m, (cd_str){o.n.name, strlen(o.n.name)}, &id))
        return cd_err_key(
            err, CD_FAIL(err, EINVALID, "node %u has the name \"%.80s\" already", id, o.n.name),
            "name");
    CD_TRY(cd_network_builder_node(t->m, &o.n, &id, err));
    return edges_of(t, o.after, id, text.p, err);
}

/* ---- a network ---- */
#define NET_MEMBERS "name|batch|device|measured_s|measured_median_s|nodes|note"
enum { NAME, BATCH, DEVICE, MEASURED, MEDIAN, NODES, N_NOTE };
typedef struct own_net {
    const char *name, *device;
    int64_t batch;
    double measured_s, measured_median_s;
    cd_str nodes;
} own_net;

/* `is`: position in NET_MEMBERS, -1: none. The text of the nodes is kept for later: it is large and
 * read node by node. */
static cdmpp_status net_member(cd_network_file *f, cd_arena *a, int is, cd_str value, own_net *o,
                               cdmpp_err *err) {
    const cd_json *v;
    const char **text = is == NAME ? &o->name : &o->device;
    if (is < 0) return CD_FAIL(err, ESCHEMA, "unknown member");
    if (is == NODES) return o->nodes = value, CDMPP_OK;
    CD_TRY(cd_network_file_parse(f, value, &v, err));
    if (is == N_NOTE) return CDMPP_OK;
    if (is == BATCH) return cd_json_int(v, 0, INT64_MAX, &o->batch, err);
    if (is == MEASURED || is == MEDIAN)
        return cd_network_file_seconds(v, is == MEASURED ? &o->measured_s : &o->measured_median_s,
                                       err);
    CD_TRY(cd_network_file_text(f, v, text, err));
    *text = cd_str_dup(a, (cd_str){*text, strlen(*text)});
    return *text ? CDMPP_OK : CD_FAIL(err, ENOMEM, "text");
}

/* Members may come in any order, so all of them are found before the graph is made. */
static cdmpp_status net_members(cd_network_file *f, cd_arena *a, cd_str net, own_net *o,
                                cdmpp_err *err) {
    cd_str rest = net, key, value;
    bool more = true;
    *o = (own_net){.measured_s = (double)NAN, .measured_median_s = (double)NAN};
    CD_TRY(cd_network_file_once(f, net, err));
    for (;;) {
        char name[41];
        CD_TRY(cd_network_file_member(f, &rest, &key, &value, &more, err));
        if (!more) break;
        const cdmpp_status st =
            net_member(f, a, cd_enum_names_find(NET_MEMBERS, key), value, o, err);
        snprintf(name, sizeof name, "%.*s", CD_NETWORK_FILE_SHORT(key));
        if (st) return cd_err_key(err, cd_network_file_error_at(f, st, value.p, err), name);
    }
    if (!o->name || !*o->name)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected the network's name"), "name");
    return o->nodes.p ? CDMPP_OK
                      : cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this key"), "nodes");
}

/* Edges that name a later node wait until all nodes are there. */
static cdmpp_status graph_of(cd_network_file *f, const own_net *o, cd_network_graph **out,
                             cdmpp_err *err) {
    reading t = {.f = f};
    CD_TRY(cd_network_builder_new(o->name, &t.m, err));
    cd_network_graph *g = cd_network_builder_graph(t.m);
    g->batch = o->batch;
    g->measured_s = o->measured_s;
    g->measured_median_s = o->measured_median_s;
    if (o->device) g->device = cd_str_dup(&g->arena, (cd_str){o->device, strlen(o->device)});
    cdmpp_status st = CDMPP_OK;
    if (o->device && !g->device) st = CD_FAIL(err, ENOMEM, "device");
    if (!st) st = cd_err_key(err, cd_network_file_each(f, o->nodes, add_node, &t, err), "nodes");
    if (!st) st = edges_put_off(&t, err);
    if (!st) st = cd_network_builder_finish(t.m, out, err);
    cd_network_builder_free(t.m);
    cd_arena_free(&t.names);
    cd_mem_free(t.later);
    return st;
}

static cdmpp_status network(cd_network_file *f, cd_str text, size_t k, cdmpp_err *err) {
    cd_arena a = {0};
    own_net o;
    cd_network_graph *g = NULL;
    char place[40];
    cdmpp_status st = net_members(f, &a, text, &o, err);
    if (!st) st = graph_of(f, &o, &g, err);
    snprintf(place, sizeof place, "networks[%zu]", k);
    st = cd_network_file_add_graph(f, g, o.name ? o.name : place,
                                   cd_network_file_error_at(f, st, text.p, err), err);
    cd_arena_free(&a);
    return st;
}

/* ---- the file ---- */
static cdmpp_status check_schema(cd_network_file *f, cd_str schema, cd_str version,
                                 cdmpp_err *err) {
    const cd_json *v = NULL;
    cd_str s;
    int64_t number = 0;
    CD_TRY(cd_network_file_parse(f, schema, &v, err));
    CD_TRY(cd_err_key(err, cd_json_str(v, &s, err), "schema"));
    if (!cd_str_is(s, SCHEMA))
        return cd_err_key(err,
                          CD_FAIL(err, ESCHEMA, "expected \"" SCHEMA "\", found \"%.*s\"",
                                  CD_NETWORK_FILE_SHORT(s)),
                          "schema");
    v = NULL;
    if (version.p) CD_TRY(cd_network_file_parse(f, version, &v, err));
    CD_TRY(cd_err_key(err, cd_json_int(v, 0, INT64_MAX, &number, err), "version"));
    if (number == 1) return CDMPP_OK;
    return cd_err_key(
        err, CD_FAIL(err, EUNSUPPORTED, "expected version 1, found %lld", (long long)number),
        "version");
}

/* The schema is checked before any network is read: another version may mean other things by the
 * same members. */
cdmpp_status cd_network_graph_read_own(cd_network_file *f, cdmpp_err *err) {
    cd_str rest = {f->text, f->len};
    cd_str key;
    cd_str value;
    cd_str schema = {NULL, 0};
    cd_str version = schema;
    cd_str networks = schema;
    bool more = true;
    for (;;) {
        CD_TRY(cd_network_file_member(f, &rest, &key, &value, &more, err));
        if (!more) break;
        if (cd_str_is(key, "schema")) schema = value;
        else if (cd_str_is(key, "version")) version = value;
        else if (cd_str_is(key, "networks")) networks = value;
        else if (!cd_str_is(key, "note"))
            return cd_network_file_error_at(
                f, CD_FAIL(err, ESCHEMA, "unknown member \"%.*s\"", CD_NETWORK_FILE_SHORT(key)),
                key.p, err);
    }
    CD_TRY(check_schema(f, schema, version, err));
    if (!networks.p) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this key"), "networks");
    more = true;
    for (size_t k = 0;; k++) {
        CD_TRY(cd_err_key(err, cd_network_file_next(f, &networks, &value, &more, err), "networks"));
        if (!more) return CDMPP_OK;
        CD_TRY(network(f, value, k, err));
    }
}

/* ---- writing ---- */
static void put_seconds(cd_buf *b, const char *key, double s) {
    if (isnan(s)) return;
    cd_buf_putf(b, ", \"%s\": ", key);
    cd_buf_put_json_real(b, s);
}

/* What is unknown is left out: reading gives it the same default. */
static void put_network(cd_buf *b, const cd_network_graph *g) {
    cd_buf_puts(b, " {\"name\": ");
    cd_buf_put_json_str(b, g->name, strlen(g->name));
    if (g->batch > 0) cd_buf_putf(b, ", \"batch\": %lld", (long long)g->batch);
    if (g->device) {
        cd_buf_puts(b, ", \"device\": ");
        cd_buf_put_json_str(b, g->device, strlen(g->device));
    }
    put_seconds(b, "measured_s", g->measured_s);
    put_seconds(b, "measured_median_s", g->measured_median_s);
    cd_buf_puts(b, ", \"nodes\": [");
    for (uint32_t i = 0; i < g->n_node; i++) {
        cd_buf_puts(b, i ? ",\n  " : "\n  ");
        cd_network_file_write_node(b, g, &g->node[i]);
    }
    cd_buf_puts(b, "\n ]}");
}

cdmpp_status cd_network_graph_write(cd_buf *out, cd_network_graph *const *g, size_t n,
                                    cdmpp_err *err) {
    cd_buf_puts(out, "{\"schema\": \"" SCHEMA "\", \"version\": 1, \"networks\": [\n");
    for (size_t i = 0; i < n; i++) {
        put_network(out, g[i]);
        cd_buf_puts(out, i + 1 < n ? ",\n" : "\n");
    }
    cd_buf_puts(out, "]}\n");
    return out->oom ? CD_FAIL(err, ENOMEM, "%zu graphs as text", n) : CDMPP_OK;
}
