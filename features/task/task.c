/* The registry of tasks and networks. A hash table by workload key finds the first entry of a key;
 * entries of other target kinds hang behind it and share its definition. */
#include "features/task/task.h"

#include <stdio.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/io/io.h"
#include "features/task/task_internal.h"

static const cdmpp_err unknown_task = {.code = CDMPP_ENOTASK,
                                       .msg = "named by a network, but no task file defines it"};

cdmpp_status cd_task_registry_new(cd_task_registry **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "task registry");
}

static void drop_dag(cd_task_entry *e) {
    cd_te_dag *dag;
    if (!e->owns_dag) return;
    memcpy(&dag, &e->pub.dag, sizeof dag); /* const to readers, ours to free */
    cd_te_dag_free(dag);
}

double cd_task_flop(const cd_task *t) { return t->dag ? t->dag->flop : -1; }

void cd_task_registry_free(cd_task_registry *t) {
    if (!t) return;
    for (uint32_t i = 0; i < t->n; i++) drop_dag(t->entry[i]);
    for (uint32_t i = 0; i < t->n; i++)
        for (const cd_task_twin *w = t->entry[i]->twins; w; w = w->next) cd_te_dag_free(w->dag);
    cd_arena_free(&t->arena);
    cd_arena_free(&t->scratch);
    cd_mem_free(t->entry);
    cd_mem_free(t->slot);
    cd_mem_free(t->net);
    cd_mem_free(t->unused);
    cd_mem_free(t);
}

/* ---- keys ---- */
/* The next character that is neither a bracket nor a blank, unless it is inside quotes; 0: the
 * end. */
static char next_char(cd_str *key, bool *quoted) {
    while (key->n) {
        const char c = *key->p;
        key->p++, key->n--;
        *quoted ^= c == '"';
        if (*quoted || !strchr("[] ", c)) return c;
    }
    return 0;
}

/* Shapes one after another: no list inside the list. */
static bool is_flat(cd_str key) { return !key.n || !memchr(key.p + 1, '[', key.n - 1); }

bool cd_task_same_key(cd_str a, cd_str b) {
    bool qa = false, qb = false;
    if (cd_str_eq(a, b)) return true;
    if (!is_flat(a) && !is_flat(b)) return false;
    for (char c;;) {
        c = next_char(&a, &qa);
        if (c != next_char(&b, &qb)) return false;
        if (!c) return true;
    }
}

/* FNV-1a of what keys that are the same have in common. */
static uint32_t key_hash(cd_str key) {
    uint32_t h = 2166136261U;
    bool quoted = false;
    for (char c; (c = next_char(&key, &quoted));) h = (h ^ (unsigned char)c) * 16777619U;
    return h ^ h >> 15;
}

/* The form of an entry's key that says where a shape ends, if any came. */
static cd_str full_key(const cd_task_entry *e) {
    const cd_str key = {e->pub.workload_key, strlen(e->pub.workload_key)};
    return e->other && is_flat(key) ? (cd_str){e->other, strlen(e->other)} : key;
}

/* Slot of the key; else that of the only one that is the same in its other form; else the free slot
 * where it belongs. n_slot > 0. Two nested keys may have the same flat form. So an entry keeps both
 * forms: what it was found by once, it is always found by, and no other nested key is taken for its
 * own. */
static uint32_t find_slot(const cd_task_registry *t, cd_str key) {
    uint32_t i = key_hash(key) & (t->n_slot - 1), n_twin = 0, twin = 0;
    for (; t->slot[i]; i = (i + 1) & (t->n_slot - 1)) {
        const cd_task_entry *e = t->entry[t->slot[i] - 1];
        if (cd_str_is(key, e->pub.workload_key) || (e->other && cd_str_is(key, e->other))) return i;
        if (cd_task_same_key(key, full_key(e))) twin = i, n_twin++;
    }
    return n_twin == 1 ? twin : i;
}

static cdmpp_status grow(cd_task_registry *t, cdmpp_err *err) {
    const uint32_t cap = t->cap ? t->cap * 2 : 64, n_slot = cap * 2;
    cd_task_entry **entry = cd_mem_realloc(t->entry, t->cap * sizeof *entry, cap * sizeof *entry);
    if (entry) {
        t->entry = entry;
        t->cap = cap;
    }
    uint32_t *slot = cd_mem_zalloc(n_slot, sizeof *slot);
    if (!entry || !slot) {
        cd_mem_free(slot);
        return CD_FAIL(err, ENOMEM, "task registry");
    }
    cd_mem_free(t->slot);
    t->slot = slot;
    t->n_slot = n_slot;
    for (uint32_t i = 0; i < t->n; i++) { /* the first of a key stays its entry */
        const char *key = t->entry[i]->pub.workload_key;
        const uint32_t at = find_slot(t, (cd_str){key, strlen(key)});
        if (!slot[at]) slot[at] = i + 1;
    }
    return CDMPP_OK;
}

static cdmpp_status new_entry(cd_task_registry *t, cd_str key, cd_task_entry *first,
                              cd_task_entry **out, cdmpp_err *err) {
    cd_task_entry *e = CD_NEW(&t->arena, cd_task_entry);
    if (!e || !(e->pub.workload_key = first ? first->pub.workload_key : cd_str_dup(&t->arena, key)))
        return CD_FAIL(err, ENOMEM, "task");
    e->pub.target = e->pub.target_kind = e->pub.desc = "";
    e->pub.dag = first ? first->pub.dag : NULL;
    e->pub.why = first ? first->pub.why : &unknown_task;
    e->pub.twin = first ? first->pub.twin : NULL;
    e->index = t->n;
    t->entry[t->n++] = e;
    *out = e;
    return CDMPP_OK;
}

/* An entry without a target kind takes the first kind that comes: a network may name a task before
 * its file is read. */
cdmpp_status cd_task_registry_entry(cd_task_registry *t, cd_str key, const char *kind,
                                    cd_task_entry **out, cdmpp_err *err) {
    if (key.n == 0 || memchr(key.p, 0, key.n))
        return CD_FAIL(err, ESCHEMA, "a workload key that is empty or holds a NUL");
    if (t->n * 2 >= t->n_slot || t->n >= t->cap) CD_TRY(grow(t, err));
    const uint32_t i = find_slot(t, key);
    if (!t->slot[i]) {
        CD_TRY(new_entry(t, key, NULL, out, err));
        t->slot[i] = t->n;
        return CDMPP_OK;
    }
    cd_task_entry *first = t->entry[t->slot[i] - 1], *e = first;
    *out = first;
    if (!first->other && !cd_str_is(key, first->pub.workload_key) &&
        !(first->other = cd_str_dup(&t->arena, key)))
        return CD_FAIL(err, ENOMEM, "task");
    if (!kind || !first->pub.target_kind[0]) return CDMPP_OK;
    for (; e; e = e->next) {
        *out = e;
        if (!strcmp(e->pub.target_kind, kind)) return CDMPP_OK;
    }
    e = *out;
    CD_TRY(new_entry(t, key, first, out, err));
    e->next = *out;
    return CDMPP_OK;
}

uint32_t cd_task_registry_first(const cd_task_registry *t, const cd_task_entry *e) {
    return t->slot[find_slot(t, (cd_str){e->pub.workload_key, strlen(e->pub.workload_key)})] - 1;
}

void cd_task_set_dag(cd_task_registry *t, cd_task_entry *owner, cd_te_dag *dag) {
    drop_dag(owner);
    owner->owns_dag = true;
    for (cd_task_entry *e = t->entry[cd_task_registry_first(t, owner)]; e; e = e->next) {
        e->pub.dag = dag;
        e->pub.why = NULL;
    }
}

void cd_task_drop_printed(cd_task_registry *t, cd_task_entry *owner) {
    if (!owner->from_print) return;
    drop_dag(owner);
    owner->owns_dag = owner->from_print = false;
    for (cd_task_entry *e = t->entry[cd_task_registry_first(t, owner)]; e; e = e->next) {
        e->pub.dag = NULL;
        e->pub.why = &unknown_task;
    }
}

cdmpp_status cd_task_set_why(cd_task_registry *t, cd_task_entry *e, const cdmpp_err *why,
                             cdmpp_err *err) {
    cdmpp_err *copy = CD_NEW(&t->arena, cdmpp_err);
    if (!copy) return CD_FAIL(err, ENOMEM, "task");
    *copy = *why;
    e->pub.why = copy;
    return CDMPP_OK;
}

/* The same tasks as often, in any order? */
static bool same_tasks(const cd_network *a, const uint32_t *task, const int64_t *weight,
                       uint32_t n) {
    for (uint32_t i = 0; i < a->n + n; i++) {
        const uint32_t of = i < a->n ? a->task[i] : task[i - a->n];
        uint64_t more = 0; /* wraps around, and back */
        for (uint32_t k = 0; k < a->n; k++) more += a->task[k] == of ? (uint64_t)a->weight[k] : 0;
        for (uint32_t k = 0; k < n; k++) more -= task[k] == of ? (uint64_t)weight[k] : 0;
        if (more) return false;
    }
    return true;
}

static cdmpp_status task_not_used(cd_task_registry *t, cdmpp_err **out, cdmpp_err *err);

/* Both lists are copied into the registry's arena. */
cdmpp_status cd_task_registry_add_network(cd_task_registry *t, cd_str name, const uint32_t *task,
                                          const int64_t *weight, uint32_t n, cdmpp_err *err) {
    for (uint32_t i = 0; i < t->n_net; i++) {
        cdmpp_err *what;
        if (!cd_str_is(name, t->net[i].name)) continue;
        if (same_tasks(&t->net[i], task, weight, n)) return CDMPP_OK;
        CD_TRY(task_not_used(t, &what, err));
        cd_err_at(what,
                  CD_FAIL(what, ESCHEMA,
                          "not used, an earlier network of this name has other tasks: %.150s",
                          t->net[i].name),
                  t->name, 0);
        return CDMPP_OK;
    }
    if (name.n && memchr(name.p, 0, name.n))
        return CD_FAIL(err, ESCHEMA, "a network name with a NUL");
    if (CD_GROW(t->net, t->n_net, t->cap_net)) return CD_FAIL(err, ENOMEM, "networks");
    uint32_t *id = CD_NEWN(&t->arena, uint32_t, n);
    int64_t *w = CD_NEWN(&t->arena, int64_t, n);
    const char *z = cd_str_dup(&t->arena, name);
    if (!id || !w || !z) return CD_FAIL(err, ENOMEM, "networks");
    if (n) memcpy(id, task, n * sizeof *id);
    if (n) memcpy(w, weight, n * sizeof *w);
    t->net[t->n_net++] = (cd_network){z, n, id, w};
    return CDMPP_OK;
}

cdmpp_status cd_task_registry_add(cd_task_registry *t, cd_str key, const cd_te_dag *dag,
                                  const cd_task **out, cdmpp_err *err) {
    cd_task_entry *e;
    cd_te_dag *own;
    *out = cd_task_registry_find(t, key);
    if (*out && (*out)->dag)
        return cd_te_dag_equal((*out)->dag, dag)
                   ? CDMPP_OK
                   : CD_FAIL(err, ESCHEMA, "another definition has the workload key %s",
                             (*out)->workload_key);
    CD_TRY(cd_task_registry_entry(t, key, NULL, &e, err));
    CD_TRY(cd_te_dag_copy(dag, &own, err));
    cd_task_set_dag(t, e, own);
    *out = &e->pub;
    return CDMPP_OK;
}

/* ---- reading ---- */

size_t cd_task_registry_count(const cd_task_registry *t) { return t->n; }
const cd_task *cd_task_registry_at(const cd_task_registry *t, size_t i) {
    return i < t->n ? &t->entry[i]->pub : NULL;
}
size_t cd_task_registry_network_count(const cd_task_registry *t) { return t->n_net; }
const cd_network *cd_task_registry_network(const cd_task_registry *t, size_t i) {
    return i < t->n_net ? &t->net[i] : NULL;
}

/* Behind what differs: printed definitions that were refused, unless another file defined their
 * task. */
const cdmpp_err *cd_task_registry_unused(const cd_task_registry *t, size_t i) {
    if (i < t->n_unused) return &t->unused[i];
    size_t left = i - t->n_unused;
    for (uint32_t k = 0; k < t->n; k++)
        if (t->entry[k]->refused && !t->entry[k]->pub.dag && left-- == 0)
            return t->entry[k]->refused;
    return NULL;
}

void cd_task_registry_assume(cd_task_registry *t, unsigned assumptions) { t->assume = assumptions; }

size_t cd_task_registry_rest_count(const cd_task_registry *t, unsigned assumptions) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        n += t->entry[i]->pub.dag && t->entry[i]->from_print && t->entry[i]->rests & assumptions;
    return n;
}

size_t cd_task_registry_bad_count(const cd_task_registry *t) {
    size_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) n += t->entry[i]->pub.dag == NULL;
    return n;
}

const cd_task *cd_task_registry_find(const cd_task_registry *t, cd_str key) {
    const uint32_t k = t->n_slot ? t->slot[find_slot(t, key)] : 0;
    return k ? &t->entry[k - 1]->pub : NULL;
}

size_t cd_task_registry_index(const cd_task_registry *t, const cd_task *task) {
    (void)t;
    return ((const cd_task_entry *)(const void *)task)->index;
}

/* The place in `unused` where the next one is told. Errors: ENOMEM.
 *
 * A workload key that comes again with another definition: it is kept beside the first, and told.
 * Only a print that came first gives way. */
static cdmpp_status task_not_used(cd_task_registry *t, cdmpp_err **out, cdmpp_err *err) {
    if (CD_GROW(t->unused, t->n_unused, t->cap_unused)) return CD_FAIL(err, ENOMEM, "warnings");
    *out = &t->unused[t->n_unused++];
    **out = (cdmpp_err){0};
    return CDMPP_OK;
}

static bool defined(const cd_task *task, const cd_te_dag *dag) {
    while (task && !cd_te_dag_equal(task->dag, dag)) task = task->twin;
    return task;
}

/* Equal but for what TVM does not print: tags and attributes. */
static cdmpp_status same_print(const cd_te_dag *a, const cd_te_dag *b, bool *same, cdmpp_err *err) {
    char x[33], y[33];
    CD_TRY(cd_te_dag_hash_all(a, x, err));
    CD_TRY(cd_te_dag_hash_all(b, y, err));
    *same = !strcmp(x, y);
    return CDMPP_OK;
}

/* Behind all twins that the key's entries have; they share them, as they share the definition. */
static cdmpp_status add_twin(cd_task_registry *t, const cd_task_entry *of, cd_te_dag *dag,
                             cdmpp_err *err) {
    cd_task_twin *w = CD_NEW(&t->arena, cd_task_twin);
    if (!w) return CD_FAIL(err, ENOMEM, "task");
    w->pub = of->pub;
    w->pub.twin = NULL;
    w->pub.dag = w->dag = dag;
    cd_task_entry *first = t->entry[cd_task_registry_first(t, of)];
    cd_task_twin *last = first->twins;
    while (last && last->next) last = last->next;
    if (last) {
        last->next = w;
        last->pub.twin = &w->pub;
        return CDMPP_OK;
    }
    first->twins = w;
    for (cd_task_entry *e = first; e; e = e->next) e->pub.twin = &w->pub;
    return CDMPP_OK;
}

/* The twin that says the same as `dag` gives up its place to `print`; without such a twin the print
 * becomes one. */
static cdmpp_status print_as_twin(cd_task_registry *t, const cd_task_entry *first,
                                  const cd_te_dag *dag, cd_te_dag *print, cdmpp_err *err) {
    for (cd_task_twin *w = first->twins; w; w = w->next) {
        bool same;
        CD_TRY(same_print(w->dag, dag, &same, err));
        if (!same) continue;
        cd_te_dag_free(w->dag);
        w->pub.dag = w->dag = print;
        return CDMPP_OK;
    }
    return add_twin(t, first, print, err);
}

/* A definition that is no print says more, and rests on no assumption: it takes the place of a
 * print that came before it. A print that differs is kept as a twin and told, as if it had come
 * later. */
static cdmpp_status replace_print(cd_task_registry *t, cd_task_entry *first, cd_te_dag *dag,
                                  cdmpp_err *err) {
    cdmpp_err *what;
    cd_te_dag *print;
    bool same = false;
    cdmpp_status st = same_print(first->pub.dag, dag, &same, err);
    if (!st && !same) {
        memcpy(&print, &first->pub.dag, sizeof print); /* const to readers, ours to give on */
        st = print_as_twin(t, first, dag, print, err);
        if (!st) first->owns_dag = false;
    }
    if (st) cd_te_dag_free(dag);
    if (st) return st;
    first->from_print = false;
    cd_task_set_dag(t, first, dag);
    if (same) return CDMPP_OK;
    CD_TRY(task_not_used(t, &what, err));
    cd_err_at(what,
              CD_FAIL(what, ESCHEMA,
                      "a definition that is no print differs and goes first: workload key %.150s",
                      first->pub.workload_key),
              first->print_path, first->print_line);
    return CDMPP_OK;
}

/* A print lacks what the other definition may say more: then it is the same if it prints the
 * same. */
static cdmpp_status is_known(const cd_task_entry *e, const cd_te_dag *dag, bool printed,
                             bool *known, cdmpp_err *err) {
    *known = defined(&e->pub, dag);
    return *known || !printed ? CDMPP_OK : same_print(e->pub.dag, dag, known, err);
}

cdmpp_status cd_task_again(cd_task_registry *t, cd_task_entry *e, cd_te_dag *dag, bool printed,
                           long line, cdmpp_err *err) {
    cd_task_entry *first = t->entry[cd_task_registry_first(t, e)];
    cdmpp_err *what;
    bool known;
    if (first->from_print && !printed) return replace_print(t, first, dag, err);
    cdmpp_status st = is_known(e, dag, printed, &known, err);
    if (!st && !known) st = add_twin(t, e, dag, err);
    if (known || st) cd_te_dag_free(dag);
    if (known || st) return st;
    CD_TRY(task_not_used(t, &what, err));
    cd_err_at(what,
              CD_FAIL(what, ESCHEMA,
                      "an earlier definition differs and goes first: workload key %.150s",
                      e->pub.workload_key),
              t->name, line);
    return CDMPP_OK;
}
