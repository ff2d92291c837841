/* Task files into the registry: which kind a file is, decided by its content; folders;
 * networks.json. */
#include <stdio.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "features/dagtext/dagtext.h"
#include "features/task/task_internal.h"
#include "features/tvm/tvm.h"

/* TVM's task pickles -> registry: SearchTask objects, their targets and hardware, and the network
 * that a file is named after. A task whose definition cannot be read is kept with the reason; the
 * others are not affected. */

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

static cdmpp_status load_network_pickle(loader *l, const char *path,
                                        const cd_unpickle_value *weights, const uint32_t *index,
                                        uint32_t n) {
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
    return pair ? load_network_pickle(l, path, top->u.item[1], index, list->n) : CDMPP_OK;
}

/* The readers; `scratch` of the registry is theirs. */
static cdmpp_status task_pickle_load(cd_task_registry *t, const char *name, const char *text,
                                     size_t len, cdmpp_err *err) {
    loader l = {.t = t, .err = err};
    const cd_unpickle_value *top;
    CD_TRY(cd_unpickle(&t->scratch, text, len, &top, err));
    const cdmpp_status st = load_top(&l, name, top);
    cd_arena_free(&l.graph);
    return st;
}

/* Texts in which TVM printed definitions beside their workload keys: what a tuner or a compiler
 * wrote to its terminal.
 *
 *   anything ["d373...", [1, 7, 7, 512], ...] anything  a key
 *   p0 = PLACEHOLDER [1, 7, 7, 512]                     its definition: the lines behind it until
 *                                                       their MD5 is that of the key;
 *   conv2d(n, y, x, f) += ...                           other lines may stand between. Or all of
 *                                                       them before the key
 *
 * A line may have several keys; the definitions behind it are theirs in any order.
 * A definition that cannot be read, or only by guessing, is not used: its key gets the reason. */

#define MAX_LINES 256

typedef struct {
    cd_task_registry *t;
    cdmpp_err *err;
    const char *path;
    /* those of the last line with keys that have no definition yet; the one that is dealt with */
    cd_str *key, key_of;
    size_t n_key, cap_key;
    long line, key_line;
    /* lines of a definition since that line, or since the last definition that was taken */
    cd_buf text;
    unsigned n_line; /* MAX_LINES + 1: there were more, and the text is not whole */
    bool placeholder;
} reader;

/* ---- keys ---- */

static bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/* A key that begins at p: ["32 hex digits" and brackets, digits, commas up to the bracket that
 * closes it. */
static bool key_at(const char *p, size_t n, cd_str *key) {
    size_t i = 2;
    int depth = 1;
    if (n < 37 || p[0] != '[' || p[1] != '"') return false;
    while (i < 34 && is_hex(p[i])) i++;
    if (i != 34 || p[i] != '"') return false;
    for (i++; i < n && depth; i++) {
        depth += p[i] == '[' ? 1 : p[i] == ']' ? -1 : 0;
        if (!strchr("[], 0123456789", p[i]) || !p[i]) return false;
    }
    *key = (cd_str){p, i};
    return !depth;
}

/* The first key in what is left of a line; *line is then what stands behind it. */
static bool next_key(cd_str *line, cd_str *key) {
    const char *p = line->p, *end = line->p + line->n;
    for (; p < end && (p = memchr(p, '[', (size_t)(end - p))); p++) {
        if (!key_at(p, (size_t)(end - p), key)) continue;
        p += key->n;
        *line = (cd_str){p, (size_t)(end - p)};
        return true;
    }
    return false;
}

static cd_str hash_in(cd_str key) { return (cd_str){key.p + 2, 32}; }

/* ---- what was read ---- */

/* No definition for this key from here on. */
static cdmpp_status refuse(reader *r, cd_task_entry *e, cdmpp_err *why) {
    cdmpp_err *place = CD_NEW(&r->t->arena, cdmpp_err);
    if (!place) return CD_FAIL(r->err, ENOMEM, "task");
    const size_t n = strlen(why->msg);
    snprintf(why->msg + n, sizeof why->msg - n, "; workload key %.*s", cd_str_shown(r->key_of, 150),
             r->key_of.p);
    *place = *why;
    cd_err_add_place(place, r->t->name, r->key_line);
    e->refused = place;
    return e->pub.dag ? CDMPP_OK : cd_task_set_why(r->t, e, why, r->err);
}

/* Other arguments of a call have the same hash, for example another padding: then records of the
 * key may be of either. */
static cdmpp_status two_texts(reader *r, cd_task_entry *e) {
    cdmpp_err why = {0};
    (void)CD_FAIL(&why, ENOTASK,
                  "two texts have this workload key, and one of them cannot be read");
    cd_task_drop_printed(r->t, e);
    return refuse(r, e, &why);
}

static cdmpp_status keep(reader *r, cd_task_entry *e, CD_TAKE cd_te_dag *dag, unsigned rests) {
    if (e->pub.dag) return cd_task_again(r->t, e, dag, true, r->key_line, r->err);
    cd_task_set_dag(r->t, e, dag);
    e->print_path = r->path;
    e->print_line = r->key_line;
    e->rests = rests;
    e->refused = NULL;
    return CDMPP_OK;
}

/* A text that has the hash of the key. */
static cdmpp_status take(reader *r, cd_str key) {
    cd_task_entry *e;
    cd_te_dag *dag;
    unsigned rests;
    char sum[33];
    cdmpp_err why = {0};
    r->key_of = key;
    CD_TRY(cd_task_registry_entry(r->t, key, NULL, &e, r->err));
    cd_md5_hex(r->text.p, r->text.n, sum);
    if (e->printed && !strcmp(e->printed, sum)) return CDMPP_OK;
    const bool first = !e->printed, bad = e->printed && e->refused;
    e->printed = cd_str_dup(&r->t->arena, (cd_str){sum, 32});
    if (!e->printed) return CD_FAIL(r->err, ENOMEM, "task");
    const cdmpp_status st =
        cd_dagtext_read(key, (cd_str){r->text.p, r->text.n}, r->t->assume, &dag, &rests, &why);
    if (st == CDMPP_ENOMEM) return CD_FAIL(r->err, ENOMEM, "task");
    if (!first && (bad || st) && (!e->pub.dag || e->from_print)) {
        cd_te_dag_free(dag);
        return two_texts(r, e);
    }
    if (st) return e->pub.dag ? CDMPP_OK : refuse(r, e, &why);
    e->from_print = e->from_print || !e->pub.dag;
    return keep(r, e, dag, rests);
}

/* Why lines behind a key are not its definition. CDMPP_OK: they are, or memory is short, then
 * r->err says so. */
static cdmpp_status why_not(reader *r, cd_str key, cdmpp_err *why) {
    cd_te_dag *dag;
    unsigned rests;
    if (r->n_line > MAX_LINES)
        return CD_FAIL(why, EUNSUPPORTED,
                       "the lines of a definition behind the key are more than %d, and the first "
                       "%d are not that of the key",
                       MAX_LINES, MAX_LINES);
    const cdmpp_status st =
        cd_dagtext_read(key, (cd_str){r->text.p, r->text.n}, 0, &dag, &rests, why);
    cd_te_dag_free(dag);
    return st;
}

/* Lines that are a definition, and not that of a key before them. */
static cdmpp_status not_proved(reader *r) {
    for (size_t i = 0; r->placeholder && i < r->n_key; i++) {
        cd_task_entry *e;
        cdmpp_err why = {0};
        r->key_of = r->key[i];
        CD_TRY(cd_task_registry_entry(r->t, r->key_of, NULL, &e, r->err));
        if (e->pub.dag || e->refused) continue;
        const cdmpp_status st = why_not(r, r->key_of, &why);
        if (st == CDMPP_ENOMEM) return CD_FAIL(r->err, ENOMEM, "a printed definition");
        if (st) CD_TRY(refuse(r, e, &why));
    }
    return CDMPP_OK;
}

/* ---- lines ---- */

static void forget(reader *r) {
    cd_buf_clear(&r->text);
    r->n_line = 0;
    r->placeholder = false;
}

/* Texts that differ in shapes alone have one hash. Of several keys with it the text is that of the
 * first one that it can be read for. */
static cdmpp_status owner(reader *r, const char *hash, size_t *out) {
    size_t n = 0;
    *out = r->n_key;
    for (size_t i = r->n_key; i-- > 0;)
        if (cd_str_is(hash_in(r->key[i]), hash)) *out = i, n++;
    for (size_t i = *out; n > 1 && i < r->n_key; i++) {
        cd_te_dag *dag;
        unsigned rests;
        if (!cd_str_is(hash_in(r->key[i]), hash)) continue;
        const cdmpp_status st = cd_dagtext_read(r->key[i], (cd_str){r->text.p, r->text.n},
                                                r->t->assume, &dag, &rests, NULL);
        cd_te_dag_free(dag);
        if (st == CDMPP_ENOMEM) return CD_FAIL(r->err, ENOMEM, "a printed definition");
        if (st) continue;
        *out = i;
        break;
    }
    return CDMPP_OK;
}

/* The text, if it is whole and the definition of one of the keys. */
static cdmpp_status try_text(reader *r, bool *taken) {
    char hash[33];
    size_t at = 0, n = 0;
    *taken = false;
    if (!r->n_key || !r->text.n || r->n_line > MAX_LINES) return CDMPP_OK;
    CD_TRY(cd_dagtext_hash((cd_str){r->text.p, r->text.n}, hash, r->err));
    CD_TRY(owner(r, hash, &at));
    if (at == r->n_key) return CDMPP_OK;
    const cd_str key = r->key[at];
    for (size_t i = 0; i < r->n_key; i++) /* a line may have a key twice */
        if (!cd_str_eq(r->key[i], key)) r->key[n++] = r->key[i];
    r->n_key = n;
    *taken = true;
    CD_TRY(take(r, key));
    forget(r);
    return CDMPP_OK;
}

static cdmpp_status add_line(reader *r, cd_str line) {
    bool taken;
    if (r->n_line > MAX_LINES || ++r->n_line > MAX_LINES) return CDMPP_OK;
    r->placeholder = r->placeholder || memmem(line.p, line.n, " = PLACEHOLDER", 14);
    cd_buf_put(&r->text, line.p, line.n);
    cd_buf_puts(&r->text, "\n");
    if (r->text.oom) return CD_FAIL(r->err, ENOMEM, "a printed definition");
    return try_text(r, &taken);
}

/* A line with keys. The text before it is the definition of one of them, or was none of those
 * before. */
static cdmpp_status new_keys(reader *r, cd_str key, cd_str rest) {
    reader old = *r;
    bool taken = false;
    r->key = NULL, r->n_key = r->cap_key = 0;
    r->key_line = r->line;
    cdmpp_status st = CDMPP_OK;
    do {
        if (CD_GROW(r->key, r->n_key, r->cap_key)) st = CD_FAIL(r->err, ENOMEM, "workload keys");
        else r->key[r->n_key++] = key;
    } while (!st && next_key(&rest, &key));
    if (!st) st = try_text(r, &taken);
    if (!st && !taken) st = not_proved(&old);
    cd_mem_free(old.key);
    forget(r);
    return st;
}

static cdmpp_status read_line(reader *r, cd_str line) {
    cd_str key, rest = line;
    if (next_key(&rest, &key)) return new_keys(r, key, rest);
    return cd_dagtext_is_line(line) ? add_line(r, line) : CDMPP_OK;
}

static cd_str line_at(const char *p, const char *end) {
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    return (cd_str){p, (size_t)((stop ? stop : end) - p)};
}

static cd_str bare(cd_str line) {
    while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == '\n')) line.n--;
    return line;
}

static cdmpp_status task_printed_load(cd_task_registry *t, const char *text, size_t len,
                                      cdmpp_err *err) {
    reader r = {
        .t = t, .err = err, .path = cd_str_dup(&t->arena, (cd_str){t->name, strlen(t->name)})};
    cdmpp_status st = r.path ? CDMPP_OK : CD_FAIL(err, ENOMEM, "task");
    for (const char *p = text, *end = text + len; !st && p < end;) {
        const cd_str line = line_at(p, end);
        r.line++;
        st = read_line(&r, bare(line));
        p = line.p + line.n + 1;
    }
    if (!st) st = not_proved(&r);
    cd_buf_free(&r.text);
    cd_mem_free(r.key);
    return st;
}

/* has a line of a printed definition? */
static bool task_is_printed(const char *text, size_t len) {
    for (const char *p = text, *end = text + len;
         p < end && (p = memmem(p, (size_t)(end - p), " = PLACEHOLDER", 14)); p++) {
        const char *begin = p;
        while (begin > text && begin[-1] != '\n') begin--;
        if (cd_dagtext_is_line(line_at(begin, end))) return true;
    }
    return false;
}

/* ---- networks.json ---- */

/* A workload key alone counts once. */
static cdmpp_status network_item(cd_task_registry *t, const cd_json *v, uint32_t *task,
                                 int64_t *weight, cdmpp_err *err) {
    cd_str key;
    cd_task_entry *e;
    *weight = 1;
    if (v->kind == CD_JSON_OBJ) {
        const cd_json *w = cd_json_get(v, "weight");
        if (w) CD_TRY(cd_err_key(err, cd_json_int(w, 0, INT64_MAX, weight, err), "weight"));
        v = cd_json_get(v, "workload_key");
        CD_TRY(cd_err_key(err, cd_json_str(v, &key, err), "workload_key"));
    } else {
        CD_TRY(cd_json_str(v, &key, err));
    }
    CD_TRY(cd_task_registry_entry(t, key, NULL, &e, err));
    *task = e->index;
    return CDMPP_OK;
}

static cdmpp_status load_network(cd_task_registry *t, const cd_json *net, cdmpp_err *err) {
    const cd_json *it;
    CD_TRY(cd_json_arr(net, 0, &it, err));
    uint32_t *task = CD_NEWN(&t->scratch, uint32_t, net->n);
    int64_t *weight = CD_NEWN(&t->scratch, int64_t, net->n);
    if (!task || !weight) return CD_FAIL(err, ENOMEM, "networks");
    for (uint32_t i = 0; i < net->n; i++, it = it->next) {
        const cdmpp_status st = network_item(t, it, &task[i], &weight[i], err);
        if (st) return cd_err_index(err, st, i);
    }
    return cd_task_registry_add_network(t, net->key, task, weight, net->n, err);
}

static cdmpp_status load_networks(cd_task_registry *t, const cd_json *nets, cdmpp_err *err) {
    if (nets->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA,
                       "expected tasks (\"schema\": \"cdmpp.tasks\") or networks (an object of "
                       "arrays), found %s",
                       cd_json_kind_name(nets->kind));
    for (const cd_json *net = nets->u.child; net; net = net->next) {
        const cdmpp_status st = load_network(t, net, err);
        char name[64];
        if (st) snprintf(name, sizeof name, "%.*s", cd_str_shown(net->key, 60), net->key.p);
        if (st) return cd_err_key(err, st, name);
    }
    return CDMPP_OK;
}

/* The fault of a text of another kind is not its first letter. */
static cdmpp_status load_json(cd_task_registry *t, const char *text, size_t len, cdmpp_err *err) {
    const cd_json *top = NULL;
    size_t i = 0;
    while (i < len && memchr(" \t\r\n", text[i], 4)) i++;
    if (i == len || text[i] != '{')
        return CD_FAIL(
            err, ESCHEMA,
            "no task file (JSON or a pickle), and no definition that TVM printed is in it");
    CD_TRY(cd_json_parse(&t->scratch, text, len, &top, err));
    if (!cd_json_get(top, "schema")) return load_networks(t, top, err);
    CD_TRY(cd_task_file_load(t, top, err));
    const cd_json *nets = cd_json_get(top, "networks");
    return nets ? cd_err_key(err, load_networks(t, nets, err), "networks") : CDMPP_OK;
}

/* ---- files and folders ---- */

cdmpp_status cd_task_registry_load_text(cd_task_registry *t, const char *name, const char *text,
                                        size_t len, cdmpp_err *err) {
    cdmpp_status st;
    cd_arena_reset(&t->scratch);
    t->name = name, t->text = text, t->end = text + len;
    if (len && (unsigned char)text[0] == 0x80) st = task_pickle_load(t, name, text, len, err);
    else if (!task_is_printed(text, len)) st = load_json(t, text, len, err);
    else st = task_printed_load(t, text, len, err);
    cd_arena_free(&t->scratch); /* a big file's tree need not stay */
    return cd_err_at(err, st, name, 0);
}

/* found NULL: the file must define something; else what prints no definition is passed over. */
static cdmpp_status load_file(cd_task_registry *t, const char *path, size_t *found,
                              cdmpp_err *err) {
    char *text;
    size_t n;
    CD_TRY(cd_file_read(path, 0, &text, &n, err));
    cdmpp_status st = CDMPP_OK;
    const bool take = !found || task_is_printed(text, n);
    if (take) st = cd_task_registry_load_text(t, path, text, n, err);
    if (found) *found += take;
    cd_mem_free(text);
    return st;
}

/* Does the file's name, less the ending of a packer, end like this? */
static bool ends(const char *path, const char *tail) {
    static const char *const pack[] = {"", ".gz", ".xz", ".zst"};
    const size_t n = strlen(path), m = strlen(tail);
    for (size_t k = 0; k < sizeof pack / sizeof *pack; k++) {
        const size_t p = strlen(pack[k]);
        if (n >= m + p && !memcmp(path + n - p, pack[k], p) && !memcmp(path + n - p - m, tail, m))
            return true;
    }
    return false;
}

typedef enum { NOT_TASKS, TASKS, NETWORKS, PRINTED } file_class;

static file_class classify(const char *path) {
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    if (ends(path, ".pkl") && !ends(path, ".relay.pkl")) return TASKS;
    if (ends(path, ".tasks.json")) return TASKS;
    if (ends(path, ".out")) return PRINTED;
    return !strncmp(base, "networks", 8) && ends(path, ".json") ? NETWORKS : NOT_TASKS;
}

static cdmpp_status load_class(cd_task_registry *t, const char *const *file, size_t n,
                               file_class want, size_t *found, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (classify(file[i]) != want) continue;
        CD_TRY(load_file(t, file[i], want == PRINTED ? found : NULL, err));
        *found += want != PRINTED;
    }
    return CDMPP_OK;
}

cdmpp_status cd_task_registry_load(cd_task_registry *t, const char *path, cdmpp_err *err) {
    cd_arena names = {0};
    const char *const *file;
    size_t n, found = 0;
    const uint32_t n_net = t->n_net;
    cdmpp_status st = cd_file_list(&names, path, NULL, NULL, &file, &n, err);
    if (!st && n == 1 && !strcmp(file[0], path)) {
        st = load_file(t, path, NULL, err);
    } else if (!st) {
        st = load_class(t, file, n, TASKS, &found, err);
        if (!st && !found) st = load_class(t, file, n, PRINTED, &found, err);
        /* the same networks under shorter names */
        if (!st && t->n_net == n_net) st = load_class(t, file, n, NETWORKS, &found, err);
        if (!st && found == 0)
            st = cd_err_at(err, CD_FAIL(err, ESCHEMA, "no task file in this folder"), path, 0);
    }
    cd_arena_free(&names);
    return st;
}

cdmpp_status cd_task_assumptions(const char *const *name, size_t n, unsigned *out, cdmpp_err *err) {
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        const int k =
            cd_enum_names_find(CD_DAGTEXT_ASSUMPTIONS, (cd_str){name[i], strlen(name[i])});
        if (k < 0)
            return CD_FAIL(err, EUSAGE,
                           "--assume: expected " CD_DAGTEXT_ASSUMPTIONS ", found '%.60s'", name[i]);
        *out |= 1U << k;
    }
    return CDMPP_OK;
}

static void tell_assumptions(const cd_task_registry *t, cd_log *log) {
    for (unsigned k = 0; 1U << k <= t->assume; k++) {
        const cd_str name = cd_enum_names_at(CD_DAGTEXT_ASSUMPTIONS, (int)k);
        if (t->assume & 1U << k)
            cd_log_put(log, CD_LOG_INFO, "printed definitions that rest on --assume %.*s: %zu",
                       (int)name.n, name.p, cd_task_registry_rest_count(t, 1U << k));
    }
}

cdmpp_status cd_task_registry_load_all(cd_task_registry *t, const char *const *path, size_t n,
                                       cd_log *log, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    size_t said = t->n_unused;
    for (size_t i = 0; !st && i < n; i++) st = cd_task_registry_load(t, path[i], err);
    for (; cd_task_registry_unused(t, said); said++)
        cd_log_err(log, CD_LOG_WARNING, cd_task_registry_unused(t, said));
    tell_assumptions(t, log);
    return st;
}
