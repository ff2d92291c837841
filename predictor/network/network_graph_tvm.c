/* The JSON of TVM's graph executor (as of v0.9: src/relay/backend/graph_executor_codegen.cc writes
 * it, src/runtime/graph_executor/graph_executor.h reads it).
 *
 *   nodes         {"op": "null", name, inputs: []}                                       an input
 *     or a weight: FREE
 *                 {"op": "tvm_op", name, attrs: {func_name, num_outputs, ...}, inputs: [[node,
 *                 output, version], ...]}
 *   node_row_ptr  (nodes + 1) outputs of node i are the entries row[i] .. row[i+1)
 *   attrs         shape ["list_shape", [...]], dltype ["list_str", [...]], an item for each entry;
 *                 device_index
 *                 ["list_int", [...]], where a network is on several devices: DLPack's numbers; the
 *                 rest is not needed
 *   cdmpp.tasks   {func_name: workload key}: ours. TVM's "hash" is of Relay's structure, and no
 *                 task file has it
 *
 * A tvm_op without a key is UNKNOWN and named; "__nop" (a reshape in place) and "__copy" (to
 * another device: the replay's own business) are FREE. The network is called as its file. */
#include <stdio.h>
#include <string.h>

#include "predictor/network/network_internal.h"

typedef struct reading {
    cd_network_file *f;
    cd_network_builder *m;
    cd_arena arena; /* what follows */
    uint32_t *row;  /* (n_row) */
    size_t n_row, cap_row;
    int64_t *bytes;        /* (n_entry) of each output; -1: of a type that has no size */
    uint32_t *seen;        /* (n_entry) node that read it last + 1 */
    unsigned char *device; /* (n_entry) DLPack's number; NULL: the file does not say */
    size_t n_entry, at;    /* at: entries read */
    cd_dict func;          /* names in cdmpp.tasks */
    const char **key;      /* (func.cap) */
    size_t cap_key;
} reading;

typedef struct parts {
    cd_str nodes, attrs, row, args, heads, tasks;
} parts;

/* ---- entries: how many each node has, how large they are ---- */
static cdmpp_status add_row(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *v;
    int64_t n = 0;
    CD_TRY(cd_network_file_parse(t->f, text, &v, err));
    CD_TRY(cd_json_int(v, k ? t->row[k - 1] : 0, k ? UINT32_MAX - 1 : 0, &n, err));
    if (k == t->cap_row) {
        const size_t cap = k ? 2 * k : 256;
        uint32_t *row = cd_mem_realloc(t->row, k * sizeof *row, cap * sizeof *row);
        if (!row) return CD_FAIL(err, ENOMEM, "%zu nodes", cap);
        t->row = row;
        t->cap_row = cap;
    }
    t->row[t->n_row++] = (uint32_t)n;
    return CDMPP_OK;
}

/* Elements of tensor k, into bytes[k] until its type is read. */
static cdmpp_status add_shape(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *v, *d = NULL;
    int64_t n = 1, dim = 0;
    if (k >= t->n_entry)
        return CD_FAIL(err, EINVALID, "expected %zu shapes, as node_row_ptr ends", t->n_entry);
    CD_TRY(cd_network_file_parse(t->f, text, &v, err));
    CD_TRY(cd_json_arr(v, 0, &d, err));
    for (size_t i = 0; d; d = d->next, i++) {
        CD_TRY(cd_err_index(err, cd_json_int(d, 0, INT64_MAX, &dim, err), i));
        if (__builtin_mul_overflow(n, dim, &n))
            return CD_FAIL(err, ERANGE, "a tensor of more than 2^63 elements");
    }
    t->bytes[k] = n;
    t->at = k + 1;
    return CDMPP_OK;
}

static cdmpp_status add_dtype(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *v;
    cd_str s;
    cd_dtype type;
    if (k >= t->n_entry)
        return CD_FAIL(err, EINVALID, "expected %zu types, as node_row_ptr ends", t->n_entry);
    CD_TRY(cd_network_file_parse(t->f, text, &v, err));
    CD_TRY(cd_json_str(v, &s, err));
    if (!cd_expr_dtype_parse(s.p, s.n, &type)) t->bytes[k] = -1;
    else if (__builtin_mul_overflow(t->bytes[k], (int64_t)cd_expr_dtype_bytes(type), &t->bytes[k]))
        return CD_FAIL(err, ERANGE, "a tensor of more than 2^63 bytes");
    t->at = k + 1;
    return CDMPP_OK;
}

static cdmpp_status add_device(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *v;
    int64_t n = 0;
    if (k >= t->n_entry)
        return CD_FAIL(err, EINVALID, "expected %zu devices, as node_row_ptr ends", t->n_entry);
    CD_TRY(cd_network_file_parse(t->f, text, &v, err));
    CD_TRY(cd_json_int(v, 0, 255, &n, err));
    t->device[k] = (unsigned char)n;
    t->at = k + 1;
    return CDMPP_OK;
}

/* Of a node's first output. */
static const char *device_of(const reading *t, size_t k) {
    static const char *const name[] = {
        [1] = "cpu",   [2] = "cuda",  [4] = "opencl",  [7] = "vulkan",
        [8] = "metal", [10] = "rocm", [12] = "hexagon"};
    const unsigned n = t->device && t->row[k] < t->row[k + 1] ? t->device[t->row[k]] : 0;
    return n < sizeof name / sizeof *name ? name[n] : NULL;
}

/* The list in ["list_shape", [...]]. */
static cdmpp_status typed_list(cd_network_file *f, cd_str text, const char *want, cd_str *out,
                               cdmpp_err *err) {
    const cd_json *v;
    cd_str s = {NULL, 0}, rest = text;
    bool more = false;
    CD_TRY(cd_network_file_next(f, &rest, &s, &more, err));
    if (more) CD_TRY(cd_network_file_parse(f, s, &v, err));
    if (!more || v->kind != CD_JSON_STR || !cd_str_is(v->u.s, want))
        return cd_network_file_error_at(f, CD_FAIL(err, ESCHEMA, "expected [\"%s\", [...]]", want),
                                        text.p, err);
    CD_TRY(cd_network_file_next(f, &rest, out, &more, err));
    if (more) return CDMPP_OK;
    return cd_network_file_error_at(f, CD_FAIL(err, ESCHEMA, "expected a list behind \"%s\"", want),
                                    text.p, err);
}

static cdmpp_status entries_of(reading *t, cd_str text, const char *want, cd_network_file_item *add,
                               cdmpp_err *err) {
    cd_str list;
    t->at = 0;
    CD_TRY(typed_list(t->f, text, want, &list, err));
    CD_TRY(cd_err_index(err, cd_network_file_each(t->f, list, add, t, err), 1));
    if (t->at == t->n_entry) return CDMPP_OK;
    return cd_network_file_error_at(t->f,
                                    CD_FAIL(err, EINVALID,
                                            "expected %zu items, as node_row_ptr ends, found %zu",
                                            t->n_entry, t->at),
                                    text.p, err);
}

/* Lists of the tensors of all nodes, one behind the other; node_row_ptr, read before, says whose
 * each one is. */
static cdmpp_status attrs_of(reading *t, cd_str attrs, cdmpp_err *err) {
    cd_str rest = attrs, key, value, shape = {NULL, 0}, dltype = shape, device = shape;
    bool more = true;
    CD_TRY(cd_network_file_once(t->f, attrs, err));
    for (;;) {
        CD_TRY(cd_network_file_member(t->f, &rest, &key, &value, &more, err));
        if (!more) break;
        if (cd_str_is(key, "shape")) shape = value;
        if (cd_str_is(key, "dltype")) dltype = value;
        if (cd_str_is(key, "device_index")) device = value;
    }
    t->bytes = CD_NEWN(&t->arena, int64_t, t->n_entry + 1);
    t->seen = CD_NEWN(&t->arena, uint32_t, t->n_entry + 1);
    if (device.p) t->device = CD_NEWN(&t->arena, unsigned char, t->n_entry + 1);
    if (!t->bytes || !t->seen || (device.p && !t->device))
        return CD_FAIL(err, ENOMEM, "%zu tensors", t->n_entry);
    const char *lacks = !shape.p ? "shape" : !dltype.p ? "dltype" : NULL;
    if (lacks) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this key"), lacks);
    CD_TRY(cd_err_key(err, entries_of(t, shape, "list_shape", add_shape, err), "shape"));
    CD_TRY(cd_err_key(err, entries_of(t, dltype, "list_str", add_dtype, err), "dltype"));
    return device.p
               ? cd_err_key(err, entries_of(t, device, "list_int", add_device, err), "device_index")
               : CDMPP_OK;
}

/* ---- whose task a function is ---- */
static cdmpp_status add_key(reading *t, const char *func, const char *key, cdmpp_err *err) {
    uint32_t id;
    CD_TRY(cd_dict_add(&t->func, (cd_str){func, strlen(func)}, &id, err));
    if (t->cap_key != t->func.cap) {
        const char **p = cd_mem_realloc(t->key, t->cap_key * sizeof *p, t->func.cap * sizeof *p);
        if (!p) return CD_FAIL(err, ENOMEM, "keys");
        t->key = p;
        t->cap_key = t->func.cap;
    }
    t->key[id] = cd_str_dup(&t->arena, (cd_str){key, strlen(key)});
    return t->key[id] ? CDMPP_OK : CD_FAIL(err, ENOMEM, "keys");
}

static cdmpp_status tasks_of(reading *t, cd_str tasks, cdmpp_err *err) {
    const cd_json *v;
    if (!tasks.p) return CDMPP_OK;
    CD_TRY(cd_network_file_parse(t->f, tasks, &v, err));
    if (v->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(v->kind));
    for (const cd_json *c = v->u.child; c; c = c->next) {
        const char *key = NULL, *func = cd_str_dup(&t->f->scratch, c->key);
        if (!func) return CD_FAIL(err, ENOMEM, "keys");
        CD_TRY(cd_err_key(err, cd_network_file_text(t->f, c, &key, err), func));
        CD_TRY(add_key(t, func, key, err));
    }
    return CDMPP_OK;
}

/* ---- nodes ---- */
static int64_t plus(int64_t a, int64_t b) {
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &a) ? -1 : a;
}

static int64_t result_bytes(const reading *t, size_t k) {
    int64_t all = 0;
    for (uint32_t e = t->row[k]; e < t->row[k + 1]; e++) all = plus(all, t->bytes[e]);
    return all;
}

/* [node, output] or [node, output, version]: the entry, and an edge. */
static cdmpp_status input_of(reading *t, const cd_json *v, size_t k, uint32_t *from,
                             uint32_t *entry, cdmpp_err *err) {
    const cd_json *part = NULL;
    int64_t node = 0, out = 0;
    CD_TRY(cd_json_arr(v, 2, &part, err));
    CD_TRY(cd_err_index(err, cd_json_int(part, 0, INT64_MAX, &node, err), 0));
    CD_TRY(cd_err_index(err, cd_json_int(part->next, 0, INT64_MAX, &out, err), 1));
    if (node >= (int64_t)t->n_row - 1)
        return CD_FAIL(err, EINVALID, "node %zu reads node %lld of %zu", k, (long long)node,
                       t->n_row - 1);
    const uint32_t n = t->row[node + 1] - t->row[node];
    if (out >= n)
        return CD_FAIL(err, EINVALID, "node %zu reads output %lld of node %lld, which has %u", k,
                       (long long)out, (long long)node, n);
    *from = (uint32_t)node;
    *entry = t->row[node] + (uint32_t)out;
    return CDMPP_OK;
}

static cdmpp_status bytes_read(reading *t, const cd_json *o, size_t k, int64_t *all,
                               cdmpp_err *err) {
    const cd_json *v = NULL;
    uint32_t from = 0, entry = 0;
    *all = 0;
    CD_TRY(cd_err_key(err, cd_json_arr(cd_json_get(o, "inputs"), 0, &v, err), "inputs"));
    for (size_t i = 0; v; v = v->next, i++) {
        const cdmpp_status st = input_of(t, v, k, &from, &entry, err);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "inputs");
        if (t->seen[entry] != k + 1) *all = plus(*all, t->bytes[entry]);
        t->seen[entry] = (uint32_t)k + 1;
    }
    return CDMPP_OK;
}

/* TVM writes numbers of attrs as texts. */
static cdmpp_status check_outputs(const reading *t, const cd_json *attrs, size_t k,
                                  cdmpp_err *err) {
    const cd_json *v = cd_json_get(attrs, "num_outputs");
    const uint32_t have = t->row[k + 1] - t->row[k];
    cd_str s;
    char text[24];
    if (!v) return CDMPP_OK;
    CD_TRY(cd_json_str(v, &s, err));
    snprintf(text, sizeof text, "%u", have);
    return cd_str_is(s, text) ? CDMPP_OK
                              : CD_FAIL(err, EINVALID, "%.*s outputs, but node_row_ptr has %u",
                                        CD_NETWORK_FILE_SHORT(s), have);
}

/* What a tvm_op is: a view ("__nop", "__copy"), a task that "cdmpp.tasks" names, or unknown. */
static cdmpp_status operator_of(reading *t, const cd_json *o, size_t k, cd_network_node *n,
                                cdmpp_err *err) {
    const cd_json *attrs =
        cd_json_get(o, "attrs") ? cd_json_get(o, "attrs") : cd_json_get(o, "attr");
    const char *func = NULL;
    uint32_t id;
    if (!attrs) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this key"), "attrs");
    CD_TRY(cd_err_key(
        err,
        cd_err_key(err, cd_network_file_text(t->f, cd_json_get(attrs, "func_name"), &func, err),
                   "func_name"),
        "attrs"));
    CD_TRY(
        cd_err_key(err, cd_err_key(err, check_outputs(t, attrs, k, err), "num_outputs"), "attrs"));
    n->op = cd_network_file_short_func(func);
    if (!strcmp(func, "__nop") || !strcmp(func, "__copy")) return CDMPP_OK;
    if (cd_dict_find(&t->func, (cd_str){func, strlen(func)}, &id)) {
        n->kind = CD_NODE_TASK;
        n->key = t->key[id];
        return CDMPP_OK;
    }
    char *why = cd_arena_alloc(&t->f->scratch, strlen(func) + 80, 1);
    if (!why) return CD_FAIL(err, ENOMEM, "reason");
    sprintf(why, "no task is known for function %s: \"cdmpp.tasks\" does not name it", func);
    n->kind = CD_NODE_UNKNOWN;
    n->why = why;
    return CDMPP_OK;
}

/* A "null" node is an input or a weight: free. */
static cdmpp_status add_node(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *o, *op;
    const char *name = NULL;
    cd_str s;
    uint32_t id;
    CD_TRY(cd_network_file_parse(t->f, text, &o, err));
    if (k + 1 >= t->n_row)
        return CD_FAIL(err, EINVALID, "expected %zu nodes, as node_row_ptr has items",
                       t->n_row - 1);
    CD_TRY(cd_json_need(o, "name", &op, err));
    CD_TRY(cd_err_key(err, cd_network_file_text(t->f, op, &name, err), "name"));
    CD_TRY(cd_json_need_str(o, "op", &s, err));
    cd_network_node n = cd_network_node_init(name, "", CD_NODE_FREE);
    if (cd_str_is(s, "tvm_op")) CD_TRY(operator_of(t, o, k, &n, err));
    else if (!cd_str_is(s, "null"))
        return cd_err_key(err,
                          CD_FAIL(err, EUNSUPPORTED, "expected null or tvm_op, found \"%.*s\"",
                                  CD_NETWORK_FILE_SHORT(s)),
                          "op");
    n.write_bytes = result_bytes(t, k);
    n.device = device_of(t, k);
    CD_TRY(bytes_read(t, o, k, &n.read_bytes, err));
    return cd_network_builder_node(t->m, &n, &id, err);
}

/* Behind all nodes, for control_deps may name a later one. */
static cdmpp_status add_edges(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *o, *v = NULL;
    uint32_t from = 0, entry;
    CD_TRY(cd_network_file_parse(t->f, text, &o, err));
    for (v = cd_json_get(o, "inputs")->u.child; v; v = v->next) {
        CD_TRY(input_of(t, v, k, &from, &entry, err));
        CD_TRY(cd_network_builder_edge(t->m, from, (uint32_t)k, err));
    }
    const cd_json *deps = cd_json_get(o, "control_deps");
    if (!deps) return CDMPP_OK;
    CD_TRY(cd_err_key(err, cd_json_arr(deps, 0, &v, err), "control_deps"));
    for (size_t i = 0; v; v = v->next, i++) {
        int64_t node = 0;
        cdmpp_status st = cd_json_int(v, 0, UINT32_MAX, &node, err);
        if (!st) st = cd_network_builder_edge(t->m, (uint32_t)node, (uint32_t)k, err);
        if (st) return cd_err_key(err, cd_err_index(err, st, i), "control_deps");
    }
    return CDMPP_OK;
}

/* ---- what goes in and comes out: only that it is there ---- */
static cdmpp_status check_head(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *v, *part = NULL;
    int64_t node = 0, out = 0;
    (void)k;
    CD_TRY(cd_network_file_parse(t->f, text, &v, err));
    CD_TRY(cd_json_arr(v, 2, &part, err));
    CD_TRY(cd_err_index(err, cd_json_int(part, 0, (int64_t)t->n_row - 2, &node, err), 0));
    return cd_err_index(
        err, cd_json_int(part->next, 0, (int64_t)(t->row[node + 1] - t->row[node]) - 1, &out, err),
        1);
}

static cdmpp_status check_arg(void *ctx, cd_str text, size_t k, cdmpp_err *err) {
    reading *t = ctx;
    const cd_json *v;
    int64_t node = 0;
    (void)k;
    CD_TRY(cd_network_file_parse(t->f, text, &v, err));
    return cd_json_int(v, 0, (int64_t)t->n_row - 2, &node, err);
}

/* ---- the file ---- */
static cdmpp_status parts_of(cd_network_file *f, parts *p, cdmpp_err *err) {
    static const char *const name[] = {"nodes",     "attrs", "node_row_ptr",
                                       "arg_nodes", "heads", "cdmpp.tasks"};
    cd_str *const at[] = {&p->nodes, &p->attrs, &p->row, &p->args, &p->heads, &p->tasks};
    cd_str rest = {f->text, f->len}, key, value;
    bool more = true;
    for (;;) {
        CD_TRY(cd_network_file_member(f, &rest, &key, &value, &more, err));
        if (!more) break;
        for (size_t i = 0; i < 6; i++)
            if (cd_str_is(key, name[i])) *at[i] = value;
    }
    for (size_t i = 0; i < 3; i++)
        if (!at[i]->p) return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected this key"), name[i]);
    return CDMPP_OK;
}

static cdmpp_status graph_of(reading *t, const parts *p, cd_network_graph **out, cdmpp_err *err) {
    CD_TRY(cd_err_key(err, cd_network_file_each(t->f, p->row, add_row, t, err), "node_row_ptr"));
    if (!t->n_row)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected at least one number"),
                          "node_row_ptr");
    t->n_entry = t->row[t->n_row - 1];
    if (t->n_entry > t->f->len) /* before anything of that size is asked for */
        return cd_err_key(
            err,
            CD_FAIL(err, EINVALID, "%zu outputs in a file of %zu bytes", t->n_entry, t->f->len),
            "node_row_ptr");
    CD_TRY(cd_err_key(err, attrs_of(t, p->attrs, err), "attrs"));
    CD_TRY(cd_err_key(err, tasks_of(t, p->tasks, err), "cdmpp.tasks"));
    CD_TRY(cd_err_key(err, cd_network_file_each(t->f, p->nodes, add_node, t, err), "nodes"));
    if (t->m->n_node + 1 != t->n_row)
        return cd_err_key(
            err, CD_FAIL(err, EINVALID, "%zu numbers for %zu nodes", t->n_row, t->m->n_node),
            "node_row_ptr");
    CD_TRY(cd_err_key(err, cd_network_file_each(t->f, p->nodes, add_edges, t, err), "nodes"));
    if (p->args.p)
        CD_TRY(
            cd_err_key(err, cd_network_file_each(t->f, p->args, check_arg, t, err), "arg_nodes"));
    if (p->heads.p)
        CD_TRY(cd_err_key(err, cd_network_file_each(t->f, p->heads, check_head, t, err), "heads"));
    return cd_network_builder_finish(t->m, out, err);
}

/* The file's name without folders and endings. */
static void name_of(const char *path, char *out, size_t n) {
    static const char *const ends[] = {".gz", ".xz", ".zst", ".json"};
    const char *base = strrchr(path, '/');
    snprintf(out, n, "%s", base ? base + 1 : path);
    for (size_t i = 0; i < 4; i++) {
        const size_t len = strlen(out), end = strlen(ends[i]);
        if (len > end && !strcmp(out + len - end, ends[i])) out[len - end] = 0;
    }
    if (!out[0]) snprintf(out, n, "network");
}

/* The file has one network and no name for it, so it is named after the file. */
cdmpp_status cd_network_graph_read_tvm(cd_network_file *f, cdmpp_err *err) {
    reading t = {.f = f};
    parts p = {{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    cd_network_graph *g = NULL;
    char name[256];
    name_of(f->path, name, sizeof name);
    cdmpp_status st = cd_network_builder_new(name, &t.m, err);
    if (!st) st = parts_of(f, &p, err);
    if (!st) st = graph_of(&t, &p, &g, err);
    cd_network_builder_free(t.m);
    cd_arena_free(&t.arena);
    cd_dict_free(&t.func);
    cd_mem_free(t.row);
    cd_mem_free(t.key);
    return cd_network_file_add_graph(f, g, name, st, err);
}
