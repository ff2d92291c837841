/* TVM's task pickles -> registry: SearchTask objects, their targets and hardware, and the network
 * that a file is named after. A task whose definition cannot be read is kept with the reason; the
 * others are not affected. */
#include <string.h>

#include "features/task/task_internal.h"
#include "features/tvm/tvm.h"

#define MAX_ATTRS 64U

/* ---- Target and HardwareParams ---- */

/* A value of a target's attributes as TVM prints it. */
static cdmpp_status put_value(const cd_tvm_graph *g, uint32_t node, cd_buf *out, bool nested) {
    const cd_json *it;
    uint32_t n, item;
    int64_t i;
    cd_str s;
    switch (cd_tvm_graph_kind(g, node)) {
    case CD_TVM_INT:
        CD_TRY(cd_tvm_graph_int(g, node, "value", &i));
        cd_buf_putf(out, "%lld", (long long)i);
        return CDMPP_OK;
    case CD_TVM_STRING:
        CD_TRY(cd_tvm_graph_text(g, node, &s));
        cd_buf_put(out, s.p, s.n);
        return CDMPP_OK;
    case CD_TVM_ARRAY:
        if (nested) return CDMPP_OK;
        it = cd_tvm_graph_items(g, node, &n);
        for (uint32_t k = 0; k < n; k++) {
            if (k) cd_buf_puts(out, ",");
            item = cd_tvm_graph_item(&it);
            CD_TRY(put_value(g, item, out, true));
        }
        return CDMPP_OK;
    default: return CDMPP_OK; /* nothing that a target string can say */
    }
}

static int str_cmp(cd_str a, cd_str b) {
    const int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

/* "-key=value" of every attribute, sorted by key (few: insertion by selection). */
static cdmpp_status put_attrs(const cd_tvm_graph *g, uint32_t map, cd_buf *out) {
    cd_str last = {NULL, 0};
    for (unsigned n = 0;; n++) {
        if (n == MAX_ATTRS)
            return CD_FAIL(g->err, EUNSUPPORTED, "a target with more than %u attributes",
                           MAX_ATTRS);
        cd_tvm_graph_map m;
        cd_str key, best = {NULL, 0};
        uint32_t value, best_value = 0;
        bool more;
        CD_TRY(cd_tvm_graph_map_open(g, map, &m));
        for (;;) {
            CD_TRY(cd_tvm_graph_map_next(g, map, &m, &key, &value, &more));
            if (!more) break;
            if (last.p && str_cmp(key, last) <= 0) continue;
            if (best.p && str_cmp(key, best) >= 0) continue;
            best = key;
            best_value = value;
        }
        if (!best.p) return CDMPP_OK;
        cd_buf_putf(out, " -%.*s=", (int)best.n, best.p);
        CD_TRY(put_value(g, best_value, out, false));
        last = best;
    }
}

static cdmpp_status put_keys(const cd_tvm_graph *g, uint32_t array, cd_buf *out) {
    const cd_json *it;
    uint32_t n, item;
    cd_str s;
    it = cd_tvm_graph_items(g, array, &n);
    for (uint32_t k = 0; k < n; k++) {
        item = cd_tvm_graph_item(&it);
        CD_TRY(cd_tvm_graph_text(g, item, &s));
        cd_buf_puts(out, k ? "," : " -keys=");
        cd_buf_put(out, s.p, s.n);
    }
    return CDMPP_OK;
}

/* The fork keeps the kind's name as repr_str, v0.9 as attribute. */
static cdmpp_status kind_name(const cd_tvm_graph *g, uint32_t kind, cd_str *out) {
    uint32_t name;
    CD_TRY(cd_tvm_graph_expect(g, kind, CD_TVM_TARGETKIND));
    if (!cd_tvm_graph_has(g, kind, "name")) return cd_tvm_graph_text(g, kind, out);
    CD_TRY(cd_tvm_graph_ref(g, kind, "name", &name));
    return cd_tvm_graph_text(g, name, out);
}

static cdmpp_status put_target(const cd_tvm_graph *g, cd_buf *out, cd_str *kind) {
    uint32_t node;
    CD_TRY(cd_tvm_graph_expect(g, g->root, CD_TVM_TARGET));
    CD_TRY(cd_tvm_graph_ref(g, g->root, "kind", &node));
    CD_TRY(kind_name(g, node, kind));
    cd_buf_put(out, kind->p, kind->n);
    CD_TRY(cd_tvm_graph_array(g, g->root, "keys", &node));
    CD_TRY(put_keys(g, node, out));
    CD_TRY(cd_tvm_graph_ref(g, g->root, "attrs", &node));
    return node ? put_attrs(g, node, out) : CDMPP_OK;
}

cdmpp_status cd_task_target_parse(cd_arena *a, cd_str text, const char **target, const char **kind,
                                  cdmpp_err *err) {
    cd_buf out = {0};
    cd_tvm_graph g;
    cd_str k = {"", 0};
    cdmpp_status st = cd_tvm_graph_open(a, text.p, text.n, &g, err);
    if (!st) st = put_target(&g, &out, &k);
    if (!st) {
        *target = cd_str_dup(a, (cd_str){out.p, out.n});
        *kind = cd_str_dup(a, k);
        if (out.oom || !*target || !*kind) st = CD_FAIL(err, ENOMEM, "target");
    }
    cd_buf_free(&out);
    return st;
}

cdmpp_status cd_task_hardware_parse(cd_arena *a, cd_str text, cd_hardware *out, cdmpp_err *err) {
    cd_tvm_graph g;
    CD_TRY(cd_tvm_graph_open(a, text.p, text.n, &g, err));
    CD_TRY(cd_tvm_graph_expect(&g, g.root, CD_TVM_HARDWARE));
#define CD_X(field) CD_TRY(cd_tvm_graph_int(&g, g.root, #field, &out->field));
    CD_HARDWARE_MAP(CD_X)
#undef CD_X
    return CDMPP_OK;
}

/* ---- SearchTask ---- */

typedef struct {
    cd_task_registry *t;
    cd_arena graph; /* one JSON tree at a time */
    cdmpp_err *err;
} loader;

/* A str, or TVM's String: String("text") with a state that repeats it. */
static bool text_of(const cd_unpickle_value *v, cd_str *out) {
    if (cd_unpickle_is_obj(v, "tvm.runtime.container.String") && v->u.obj.args &&
        v->u.obj.args->n == 1)
        v = v->u.obj.args->u.item[0];
    if (!v || v->kind != CD_UNPICKLE_STR) return false;
    *out = v->u.s;
    return true;
}

/* The save_json text of a TVM object; false when it is null or something else. */
static bool handle_of(const cd_unpickle_value *v, const char *class, const char *member,
                      cd_str *out) {
    return cd_unpickle_is_obj(v, class) && text_of(cd_unpickle_get(v->u.obj.state, member), out);
}

static cdmpp_status wanted(loader *l, const char *field, const char *what,
                           const cd_unpickle_value *v) {
    return cd_err_key(l->err,
                      CD_FAIL(l->err, ESCHEMA, "expected %s, found %s", what,
                              v ? cd_unpickle_kind_name(v->kind) : "nothing"),
                      field);
}

static cdmpp_status load_target(loader *l, const cd_unpickle_value *state, const char **target,
                                const char **kind) {
    cd_str s;
    *target = *kind = "";
    if (!handle_of(cd_unpickle_get(state, "target"), "tvm.target.target.Target", "handle", &s))
        return CDMPP_OK;
    cd_arena_reset(&l->graph);
    return cd_err_key(l->err, cd_task_target_parse(&l->graph, s, target, kind, l->err), "target");
}

static cdmpp_status load_rest(loader *l, const cd_unpickle_value *state, cd_task *task) {
    cd_str s;
    cd_arena_reset(&l->graph);
    if (handle_of(cd_unpickle_get(state, "hardware_params"),
                  "tvm.auto_scheduler.search_task.HardwareParams", "handle", &s)) {
        CD_TRY(cd_err_key(l->err, cd_task_hardware_parse(&l->graph, s, &task->hardware, l->err),
                          "hardware_params"));
        task->has_hardware = true;
    }
    if (text_of(cd_unpickle_get(state, "desc"), &s) && !(task->desc = cd_str_dup(&l->t->arena, s)))
        return CD_FAIL(l->err, ENOMEM, "task");
    return CDMPP_OK;
}

/* What is wrong with one task's DAG stays with the task; only memory is our problem. */
static cdmpp_status load_dag(loader *l, const cd_unpickle_value *state, cd_task_entry *e) {
    cd_str s;
    cd_te_dag *dag;
    cdmpp_err why = {0};
    const cd_unpickle_value *v = cd_unpickle_get(state, "compute_dag");
    cd_arena_reset(&l->graph);
    cdmpp_status st = CDMPP_OK;
    if (!handle_of(v, "tvm.auto_scheduler.compute_dag.ComputeDAG", "tensors", &s))
        st = CD_FAIL(&why, ESCHEMA, "expected a ComputeDAG, found %s",
                     v ? cd_unpickle_kind_name(v->kind) : "nothing");
    if (!st) st = cd_tvm_graph_dag(&l->graph, s.p, s.n, &dag, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(l->err, ENOMEM, "compute DAG");
    if (e->pub.dag) { /* one that cannot be read is no other definition */
        return st ? CDMPP_OK : cd_task_again(l->t, e, dag, false, 0, l->err);
    }
    if (!st) {
        cd_task_set_dag(l->t, e, dag);
        return CDMPP_OK;
    }
    cd_err_key(&why, st, "compute_dag");
    return cd_task_set_why(l->t, e, &why, l->err);
}

static cdmpp_status load_task(loader *l, const cd_unpickle_value *v, uint32_t *index) {
    cd_str key;
    cd_task_entry *e;
    const char *target, *kind;
    if (!cd_unpickle_is_obj(v, "tvm.auto_scheduler.search_task.SearchTask"))
        return CD_FAIL(l->err, ESCHEMA, "expected a SearchTask, found %s",
                       cd_unpickle_kind_name(v->kind));
    const cd_unpickle_value *state = v->u.obj.state, *name = cd_unpickle_get(state, "workload_key");
    if (!text_of(name, &key)) return wanted(l, "workload_key", "a string", name);
    CD_TRY(load_target(l, state, &target, &kind));
    CD_TRY(cd_task_registry_entry(l->t, key, kind, &e, l->err));
    *index = cd_task_registry_first(l->t, e);
    if (e->pub.dag && e->pub.target[0]) return load_dag(l, state, e); /* known */
    e->pub.target = cd_str_dup(&l->t->arena, (cd_str){target, strlen(target)});
    e->pub.target_kind = cd_str_dup(&l->t->arena, (cd_str){kind, strlen(kind)});
    if (!e->pub.target || !e->pub.target_kind) return CD_FAIL(l->err, ENOMEM, "task");
    CD_TRY(load_rest(l, state, &e->pub));
    return load_dag(l, state, e);
}

static cdmpp_status load_list(loader *l, const cd_unpickle_value *list, uint32_t *index) {
    for (uint32_t i = 0; i < list->n; i++) {
        const cdmpp_status st = load_task(l, list->u.item[i], &index[i]);
        if (st) return cd_err_key(l->err, cd_err_index(l->err, st, i), "tasks");
    }
    return CDMPP_OK;
}

/* "dir/((gru,[(4,1,256)]),llvm).task.pkl" -> "(gru,[(4,1,256)])": the file name
 * without folder, endings, the outer parentheses and the target kind. */
static cd_str network_name(const char *path) {
    const char *base = strrchr(path, '/'), *end;
    base = base ? base + 1 : path;
    end = strstr(base, ".task.pkl");
    if (!end) end = strstr(base, ".pkl");
    if (!end) end = base + strlen(base);
    cd_str s = {base, (size_t)(end - base)};
    if (s.n < 2 || s.p[0] != '(' || s.p[s.n - 1] != ')') return s;
    size_t comma = s.n - 1;
    while (comma > 1 && s.p[comma] != ',') comma--;
    return comma > 1 && s.p[comma - 1] == ')' ? (cd_str){s.p + 1, comma - 1} : s;
}

static cdmpp_status load_network(loader *l, const char *path, const cd_unpickle_value *weights,
                                 const uint32_t *index, uint32_t n) {
    int64_t *weight = CD_NEWN(&l->t->scratch, int64_t, n);
    if (!weight) return CD_FAIL(l->err, ENOMEM, "network");
    if (weights->n != n) return wanted(l, "weights", "one weight per task", weights);
    for (uint32_t i = 0; i < n; i++) {
        const cd_unpickle_value *w = weights->u.item[i];
        if (w->kind != CD_UNPICKLE_INT || w->u.i < 0) return wanted(l, "weights", "a count", w);
        weight[i] = w->u.i;
    }
    return cd_task_registry_add_network(l->t, network_name(path), index, weight, n, l->err);
}

static cdmpp_status load_top(loader *l, const char *path, const cd_unpickle_value *top) {
    const bool pair = top->kind == CD_UNPICKLE_TUPLE && top->n == 2 &&
                      top->u.item[0]->kind == CD_UNPICKLE_LIST &&
                      top->u.item[1]->kind == CD_UNPICKLE_LIST;
    const cd_unpickle_value *list = pair ? top->u.item[0] : top;
    if (list->kind != CD_UNPICKLE_LIST)
        return CD_FAIL(l->err, ESCHEMA, "expected a list of tasks or (tasks, weights), found %s",
                       cd_unpickle_kind_name(top->kind));
    uint32_t *index = CD_NEWN(&l->t->scratch, uint32_t, list->n);
    if (!index) return CD_FAIL(l->err, ENOMEM, "tasks");
    CD_TRY(load_list(l, list, index));
    return pair ? load_network(l, path, top->u.item[1], index, list->n) : CDMPP_OK;
}

cdmpp_status cd_task_pickle_load(cd_task_registry *t, const char *name, const char *text,
                                 size_t len, cdmpp_err *err) {
    loader l = {.t = t, .err = err};
    const cd_unpickle_value *top;
    CD_TRY(cd_unpickle(&t->scratch, text, len, &top, err));
    const cdmpp_status st = load_top(&l, name, top);
    cd_arena_free(&l.graph);
    return st;
}
