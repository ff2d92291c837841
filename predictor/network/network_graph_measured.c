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
#include <math.h>
#include <string.h>

#include "predictor/network/network_internal.h"

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

typedef struct reading {
    cd_network_file *f;
    cd_network_builder *m;
} reading;

/* ids are positions, so that an input may come before or behind: all nodes first, then the
 * edges. */
static cdmpp_status add_node(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
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
    reading *t = ctx;
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

static cdmpp_status network(cd_network_file *f, const char *name, cd_str net,
                            cd_network_graph **out, cdmpp_err *err) {
    reading t = {.f = f};
    cd_str nodes = {NULL, 0};
    CD_TRY(cd_network_builder_new(name, &t.m, err));
    cdmpp_status st = whole_of(f, t.m, net, &nodes, err);
    if (!st && !nodes.p)
        st = CD_FAIL(err, ESCHEMA, "expected this key"), cd_err_key(err, st, "nodes");
    if (!st) st = cd_err_key(err, cd_network_file_each(f, nodes, add_node, &t, err), "nodes");
    if (!st) st = cd_err_key(err, cd_network_file_each(f, nodes, add_edges, &t, err), "nodes");
    if (!st) st = cd_network_builder_finish(t.m, out, err);
    cd_network_builder_free(t.m);
    return cd_network_file_error_at(f, st, net.p, err);
}

static cdmpp_status one(cd_network_file *f, cd_arena *names, cd_str key, cd_str value,
                        cdmpp_err *err) {
    const char *name = NULL;
    cd_network_graph *g = NULL;
    CD_TRY(cd_network_file_key(f, key, &name, err));
    name = cd_str_dup(names, (cd_str){name, strlen(name)});
    if (!name) return CD_FAIL(err, ENOMEM, "name");
    const cdmpp_status st = network(f, name, value, &g, err);
    return cd_network_file_add_graph(f, g, name, st, err);
}

cdmpp_status cd_network_graph_read_measured(cd_network_file *f, cdmpp_err *err) {
    cd_str rest = {f->text, f->len}, key, value;
    cd_arena names = {0};
    bool more = true;
    cdmpp_status st;
    while (!(st = cd_network_file_member(f, &rest, &key, &value, &more, err)) && more)
        if ((st = one(f, &names, key, value, err)) != CDMPP_OK) break;
    cd_arena_free(&names);
    return st;
}
