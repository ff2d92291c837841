/* Files of network graphs: which form, and what to do with a network that is wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/io/io.h"
#include "predictor/network/network_internal.h"

#define MAX_FILE ((size_t)4 << 30)

void cd_network_graph_free_all(cd_network_graph **g, size_t n) {
    for (size_t i = 0; g && i < n; i++) cd_network_graph_free(g[i]);
    cd_mem_free(g);
}

/* ---- what the readers share; err is never NULL here ---- */
cdmpp_status cd_network_file_error_at(cd_network_file *f, cdmpp_status st, const char *p,
                                      cdmpp_err *err) {
    if (!st || err->line || p < f->text || p > f->text + f->len) return st;
    if (p < f->at) f->at = f->text, f->line = 1;
    for (; f->at < p; f->at++) f->line += *f->at == '\n';
    return cd_err_at(err, st, f->path, f->line);
}

/* The same of an error of a JSON reader, which counts lines from the place where its text
 * begins. */
static cdmpp_status within(cd_network_file *f, cdmpp_status st, const char *from, cdmpp_err *err) {
    const long inside = st && err->line ? err->line - 1 : 0;
    if (st) err->line = 0;
    (void)cd_network_file_error_at(f, st, from, err);
    if (st && err->line) err->line += inside;
    return st;
}

cdmpp_status cd_network_file_parse(cd_network_file *f, cd_str value, const cd_json **out,
                                   cdmpp_err *err) {
    cd_arena_reset(&f->scratch);
    return within(f, cd_json_parse(&f->scratch, value.p, value.n, out, err), value.p, err);
}

/* The same of a member's name as cd_json_member gives it. */
static cdmpp_status network_file_key(cd_network_file *f, cd_str key, const char **out,
                                     cdmpp_err *err) {
    const cd_json *v;
    CD_TRY(cd_network_file_parse(f, (cd_str){key.p - 1, key.n + 2}, &v, err));
    return cd_network_file_text(f, v, out, err);
}

cdmpp_status cd_network_file_text(cd_network_file *f, const cd_json *v, const char **out,
                                  cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_str(v, &s, err));
    *out = cd_str_dup(&f->scratch, s);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "text");
}

cdmpp_status cd_network_file_member(cd_network_file *f, cd_str *rest, cd_str *key, cd_str *value,
                                    bool *more, cdmpp_err *err) {
    const char *from = rest->p;
    return within(f, cd_json_member(rest, key, value, more, err), from, err);
}

cdmpp_status cd_network_file_once(cd_network_file *f, cd_str object, cdmpp_err *err) {
    char name[41];
    cd_str twice;
    CD_TRY(cd_json_members_once(object, &twice, err));
    if (!twice.n) return CDMPP_OK;
    snprintf(name, sizeof name, "%.*s", CD_NETWORK_FILE_SHORT(twice));
    return cd_network_file_error_at(
        f, cd_err_key(err, CD_FAIL(err, EPARSE, "expected this key once, found it twice"), name),
        twice.p, err);
}

cdmpp_status cd_network_file_next(cd_network_file *f, cd_str *rest, cd_str *value, bool *more,
                                  cdmpp_err *err) {
    const char *from = rest->p;
    return within(f, cd_json_item(rest, value, more, err), from, err);
}

cdmpp_status cd_network_file_each(cd_network_file *f, cd_str array, cd_network_file_item *item,
                                  void *ctx, cdmpp_err *err) {
    cd_str rest = array, text;
    bool more = true;
    for (size_t k = 0;; k++) {
        CD_TRY(cd_network_file_next(f, &rest, &text, &more, err));
        if (!more) return CDMPP_OK;
        const cdmpp_status st = item(ctx, text, k, err);
        if (st) return cd_err_index(err, cd_network_file_error_at(f, st, text.p, err), k);
    }
}

cdmpp_status cd_network_file_seconds(const cd_json *v, double *out, cdmpp_err *err) {
    CD_TRY(cd_json_real_or_nan(v, out, err));
    *out += 0.0; /* -0 is 0, and written as that */
    if (isnan(*out) || (*out >= 0 && isfinite(*out))) return CDMPP_OK;
    return CD_FAIL(err, ERANGE, "expected seconds, 0 or more, found %g", *out);
}

const char *cd_network_file_short_func(const char *func) {
    static const char front[] = "tvmgen_default_";
    return strncmp(func, front, sizeof front - 1) ? func : func + sizeof front - 1;
}

static cdmpp_status push(cd_network_file *f, cd_network_graph *g, cdmpp_err *err) {
    if (CD_GROW(f->g, f->n, f->cap)) return CD_FAIL(err, ENOMEM, "graphs");
    f->g[f->n++] = g;
    return CDMPP_OK;
}

static cdmpp_status name_once(cd_network_file *f, const char *name, cdmpp_err *err) {
    const size_t before = f->names.n;
    uint32_t id;
    CD_TRY(cd_dict_add(&f->names, (cd_str){name, strlen(name)}, &id, err));
    return f->names.n > before
               ? CDMPP_OK
               : CD_FAIL(err, EINVALID, "a network of this name is in the file already");
}

cdmpp_status cd_network_file_add_graph(cd_network_file *f, cd_network_graph *g, const char *name,
                                       cdmpp_status st, cdmpp_err *err) {
    if (!st) st = name_once(f, name, err);
    if (!st) st = push(f, g, err);
    if (!st) return CDMPP_OK;
    cd_network_graph_free(g);
    cd_err_key(err, st, name);
    cd_err_at(err, st, f->path, 0);
    if (!f->bad || st == CDMPP_ENOMEM) return st;
    if (!f->n_bad++) f->first = *err;
    f->bad(f->ctx, name, err);
    *err = (cdmpp_err){0};
    return CDMPP_OK;
}

/* ---- which form ---- */
typedef cdmpp_status reader(cd_network_file *f, cdmpp_err *err);

static cdmpp_status no_form(const cd_network_file *f, cdmpp_err *err) {
    if (cd_onnx_is_model(f->path))
        return CD_FAIL(err, ESCHEMA,
                       "expected a graph of networks, found an ONNX file: --network %s reads it",
                       f->path);
    return CD_FAIL(err, ESCHEMA,
                   "expected a graph of networks: \"schema\": \"cdmpp.netgraph\", a graph "
                   "executor's JSON, or networks with nodes");
}

static cdmpp_status network_graph_read_own(cd_network_file *f, cdmpp_err *err);

static cdmpp_status network_graph_read_measured(cd_network_file *f, cdmpp_err *err);

/* By the members of the outermost object; one pass over the text. */
static cdmpp_status form_of(cd_network_file *f, reader **out, cdmpp_err *err) {
    cd_str rest = {f->text, f->len}, key, value;
    bool more = true, nodes = false, executor = false, objects = true;
    size_t n = 0;
    CD_TRY(cd_network_file_once(f, rest, err));
    for (; more; n++) {
        CD_TRY(cd_network_file_member(f, &rest, &key, &value, &more, err));
        if (!more) break;
        if (cd_str_is(key, "schema")) return *out = network_graph_read_own, CDMPP_OK;
        nodes |= cd_str_is(key, "nodes");
        executor |= cd_str_is(key, "node_row_ptr") || cd_str_is(key, "arg_nodes");
        objects &= value.n && *value.p == '{';
    }
    *out = nodes && executor ? cd_network_graph_read_tvm
           : n && objects    ? network_graph_read_measured
                             : NULL;
    return *out ? CDMPP_OK : no_form(f, err);
}

static cdmpp_status read_all(cd_network_file *f, cdmpp_err *err) {
    reader *read = NULL;
    size_t blank = 0;
    while (blank < f->len && (unsigned char)f->text[blank] <= ' ') blank++;
    if (blank == f->len)
        return CD_FAIL(err, ESCHEMA, "expected a graph of networks, found an empty file");
    if (f->text[blank] != '{') return no_form(f, err);
    CD_TRY(form_of(f, &read, err));
    CD_TRY(read(f, err));
    if (f->n) return CDMPP_OK;
    if (!f->n_bad) return CD_FAIL(err, ESCHEMA, "expected a network, found none");
    *err = f->first;
    return f->first.code;
}

cdmpp_status cd_network_graph_read_text(const char *path, const char *text, size_t len,
                                        cd_network_graph_bad *bad, void *ctx,
                                        cd_network_graph ***out, size_t *n, cdmpp_err *err) {
    cdmpp_err own;
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) text += 3, len -= 3; /* a byte order mark */
    cd_network_file f = {
        .path = path, .text = text, .len = len, .at = text, .line = 1, .bad = bad, .ctx = ctx};
    if (!err) err = &own;
    const cdmpp_status st = cd_err_at(err, read_all(&f, err), path, 0);
    cd_arena_free(&f.scratch);
    cd_dict_free(&f.names);
    if (st) return cd_network_graph_free_all(f.g, f.n), st;
    *out = f.g;
    *n = f.n;
    return CDMPP_OK;
}

/* A table whose first line names the column of the rows that a row reads. */
static bool is_trace(const char *text, size_t len) {
    static const char column[] = "_input_nodes";
    const char *end = memchr(text, '\n', len);
    const size_t n = end ? (size_t)(end - text) : len;
    for (size_t i = 0; n && *text != '{' && i + sizeof column - 1 <= n; i++)
        if (!memcmp(text + i, column, sizeof column - 1)) return true;
    return false;
}

cdmpp_status cd_network_graph_read_good(const char *path, cd_network_graph_bad *bad, void *ctx,
                                        cd_network_graph ***out, size_t *n, cdmpp_err *err) {
    char *text;
    size_t len;
    CD_TRY(cd_file_read(path, MAX_FILE, &text, &len, err));
    if (is_trace(text, len))
        return cd_mem_free(text), cd_network_graph_trace_read(path, out, n, err);
    const cdmpp_status st = cd_network_graph_read_text(path, text, len, bad, ctx, out, n, err);
    cd_mem_free(text);
    return st;
}

cdmpp_status cd_network_graph_read(const char *path, cd_network_graph ***out, size_t *n,
                                   cdmpp_err *err) {
    return cd_network_graph_read_good(path, NULL, NULL, out, n, err);
}

/* The project's own form of network graphs, docs/reference/netgraph.md: the file, its networks,
 * their edges; and back. */

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

/* All networks of a file of that form.
 *
 * The schema is checked before any network is read: another version may mean other things by the
 * same members. */
static cdmpp_status network_graph_read_own(cd_network_file *f, cdmpp_err *err) {
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

/* Networks as TVM ran them: an executor's nodes with the time of each, and of the whole.
 *
 *   {"resnet_18": {"e2e_mean_s": 0.027, "nodes": [
 *      {"id": 0, "name": "input0", "op": "null", "inputs": []},                      FREE
 *      {"id": 1, "name": "...", "op": "tvm_op", "func": "fused_dense", "inputs": [0],
 *       "workload_key": "[...]", "executed_key": "[...]", "time_s": 1e-4}]}}         TASK; key
 *     null: GIVEN
 *
 * Beside "nodes" a member "device" says which device the times are of. A member "tuned": false says
 * that TVM's default ran and not the best record of the key's task: GIVEN too. "__nop", a view, has
 * a time of its own where it was measured: GIVEN like others without a task. */

typedef struct row {
    int64_t id;
    const char *name, *op, *func, *key, *ran_as;
    double time_s;
    /* "tuned": false: it ran as TVM's default, not as its task's best record */
    bool untuned;
    const cd_json *inputs;
} row;

/* A text member; NULL where it is null or missing and need not be there. */
static cdmpp_status text_of(cd_network_file *f, const cd_json *o, const char *key, bool need,
                            const char **out, cdmpp_err *err) {
    const cd_json *v = cd_json_get(o, key);
    *out = NULL;
    if (!need && (!v || v->kind == CD_JSON_NULL)) return CDMPP_OK;
    return cd_err_key(err, cd_network_file_text(f, v, out, err), key);
}

static cdmpp_status seconds_of(const cd_json *o, const char *key, double *out, cdmpp_err *err) {
    const cd_json *v = cd_json_get(o, key);
    *out = (double)NAN;
    return v ? cd_err_key(err, cd_network_file_seconds(v, out, err), key) : CDMPP_OK;
}

/* "func" and keys are missing for inputs, "tuned" for files of older versions: then it was
 * tuned. */
static cdmpp_status row_of(cd_network_file *f, const cd_json *o, row *r, cdmpp_err *err) {
    const cd_json *id;
    if (o->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(o->kind));
    CD_TRY(cd_json_need(o, "id", &id, err));
    CD_TRY(cd_err_key(err, cd_json_int(id, 0, UINT32_MAX - 1, &r->id, err), "id"));
    CD_TRY(text_of(f, o, "name", true, &r->name, err));
    CD_TRY(text_of(f, o, "op", true, &r->op, err));
    CD_TRY(text_of(f, o, "func", false, &r->func, err));
    CD_TRY(text_of(f, o, "workload_key", false, &r->key, err));
    CD_TRY(text_of(f, o, "executed_key", false, &r->ran_as, err));
    CD_TRY(seconds_of(o, "time_s", &r->time_s, err));
    const cd_json *tuned = cd_json_get(o, "tuned");
    r->untuned = tuned && tuned->kind == CD_JSON_BOOL && !tuned->u.i;
    CD_TRY(cd_json_need(o, "inputs", &r->inputs, err));
    return CDMPP_OK;
}

static cdmpp_status node_of(const row *r, cd_network_node *out, cdmpp_err *err) {
    const cd_str op = {r->op, strlen(r->op)};
    const int k = cd_enum_names_find("null|tvm_op", op);
    if (k < 0)
        return cd_err_key(
            err, CD_FAIL(err, ESCHEMA, "expected null or tvm_op, found \"%.40s\"", r->op), "op");
    const char *const func = r->func ? cd_network_file_short_func(r->func) : "";
    /* one that did not run its task's best record is not that task to anybody who asks the
     * records */
    const bool task = r->key && !(r->untuned && !isnan(r->time_s));
    *out = cd_network_node_init(r->name, func,
                                !k                 ? CD_NODE_FREE
                                : task             ? CD_NODE_TASK
                                : isnan(r->time_s) ? CD_NODE_UNKNOWN
                                                   : CD_NODE_GIVEN);
    if (!k) return CDMPP_OK;
    out->key = task ? r->key : NULL;
    out->ran_as = r->ran_as;
    out->given_s = r->time_s;
    if (out->kind == CD_NODE_UNKNOWN) out->why = "neither a workload_key nor a time_s";
    return CDMPP_OK;
}

typedef struct reading_measured {
    cd_network_file *f;
    cd_network_builder *m;
} reading_measured;

/* ids are positions, so that an input may come before or behind: all nodes first, then the
 * edges. */
static cdmpp_status add_node_measured(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading_measured *t = ctx;
    const cd_json *o;
    row r;
    cd_network_node n;
    uint32_t id;
    CD_TRY(cd_network_file_parse(t->f, text, &o, err));
    CD_TRY(row_of(t->f, o, &r, err));
    if (r.id != (int64_t)k)
        return cd_err_key(err,
                          CD_FAIL(err, EINVALID, "expected %zu, the node's position, found %lld", k,
                                  (long long)r.id),
                          "id");
    CD_TRY(node_of(&r, &n, err));
    return cd_network_builder_node(t->m, &n, &id, err);
}

/* An input names a position, which must be one of the nodes. */
static cdmpp_status add_edges(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading_measured *t = ctx;
    const cd_json *o, *in = NULL;
    CD_TRY(cd_network_file_parse(t->f, text, &o, err));
    CD_TRY(cd_err_key(err, cd_json_arr(cd_json_get(o, "inputs"), 0, &in, err), "inputs"));
    for (size_t i = 0; in; in = in->next, i++) {
        int64_t from = 0;
        cdmpp_status st = cd_json_int(in, 0, INT64_MAX, &from, err);
        if (!st && from >= (int64_t)t->m->n_node)
            st = CD_FAIL(err, EINVALID, "an edge from node %lld of %zu", (long long)from,
                         t->m->n_node);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "inputs");
        CD_TRY(cd_network_builder_edge(t->m, (uint32_t)from, (uint32_t)k, err));
    }
    return CDMPP_OK;
}

/* Which device the times were measured on. */
static cdmpp_status device_of(cd_network_file *f, cd_network_graph *g, cd_str value,
                              cdmpp_err *err) {
    const cd_json *v;
    const char *name = NULL;
    cdmpp_status st = cd_network_file_parse(f, value, &v, err);
    if (!st) st = cd_network_file_text(f, v, &name, err);
    if (!st && !(g->device = cd_str_dup(&g->arena, (cd_str){name, strlen(name)})))
        st = CD_FAIL(err, ENOMEM, "device");
    return cd_err_key(err, cd_network_file_error_at(f, st, value.p, err), "device");
}

/* The members of one network but its nodes. */
static cdmpp_status whole_of(cd_network_file *f, cd_network_builder *m, cd_str net, cd_str *nodes,
                             cdmpp_err *err) {
    cd_network_graph *g = cd_network_builder_graph(m);
    cd_str rest = net, key, value;
    bool more = true;
    CD_TRY(cd_network_file_once(f, net, err));
    for (;;) {
        const cd_json *v;
        CD_TRY(cd_network_file_member(f, &rest, &key, &value, &more, err));
        if (!more) return CDMPP_OK;
        const bool mean = cd_str_is(key, "e2e_mean_s"), median = cd_str_is(key, "e2e_median_s");
        if (cd_str_is(key, "nodes")) *nodes = value;
        if (cd_str_is(key, "device")) CD_TRY(device_of(f, g, value, err));
        if (!mean && !median) continue;
        cdmpp_status st = cd_network_file_parse(f, value, &v, err);
        if (!st)
            st = cd_network_file_seconds(v, mean ? &g->measured_s : &g->measured_median_s, err);
        if (st)
            return cd_err_key(err, cd_network_file_error_at(f, st, value.p, err),
                              mean ? "e2e_mean_s" : "e2e_median_s");
    }
}

static cdmpp_status network_measured(cd_network_file *f, const char *name, cd_str net,
                                     cd_network_graph **out, cdmpp_err *err) {
    reading_measured t = {.f = f};
    cd_str nodes = {NULL, 0};
    CD_TRY(cd_network_builder_new(name, &t.m, err));
    cdmpp_status st = whole_of(f, t.m, net, &nodes, err);
    if (!st && !nodes.p)
        st = CD_FAIL(err, ESCHEMA, "expected this key"), cd_err_key(err, st, "nodes");
    if (!st)
        st = cd_err_key(err, cd_network_file_each(f, nodes, add_node_measured, &t, err), "nodes");
    if (!st) st = cd_err_key(err, cd_network_file_each(f, nodes, add_edges, &t, err), "nodes");
    if (!st) st = cd_network_builder_finish(t.m, out, err);
    cd_network_builder_free(t.m);
    return cd_network_file_error_at(f, st, net.p, err);
}

static cdmpp_status one(cd_network_file *f, cd_arena *names, cd_str key, cd_str value,
                        cdmpp_err *err) {
    const char *name = NULL;
    cd_network_graph *g = NULL;
    CD_TRY(network_file_key(f, key, &name, err));
    name = cd_str_dup(names, (cd_str){name, strlen(name)});
    if (!name) return CD_FAIL(err, ENOMEM, "name");
    const cdmpp_status st = network_measured(f, name, value, &g, err);
    return cd_network_file_add_graph(f, g, name, st, err);
}

static cdmpp_status network_graph_read_measured(cd_network_file *f, cdmpp_err *err) {
    cd_str rest = {f->text, f->len}, key, value;
    cd_arena names = {0};
    bool more = true;
    cdmpp_status st;
    while (!(st = cd_network_file_member(f, &rest, &key, &value, &more, err)) && more)
        if ((st = one(f, &names, key, value, err)) != CDMPP_OK) break;
    cd_arena_free(&names);
    return st;
}
