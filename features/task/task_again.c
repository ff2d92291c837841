/* A workload key that comes again with another definition: it is kept beside the first, and told.
 * Only a print that came first gives way. */
#include <string.h>

#include "base/cli/cli.h"
#include "features/task/task_internal.h"

cdmpp_status cd_task_not_used(cd_task_registry *t, cdmpp_err **out, cdmpp_err *err) {
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
    CD_TRY(cd_task_not_used(t, &what, err));
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
    CD_TRY(cd_task_not_used(t, &what, err));
    cd_err_at(what,
              CD_FAIL(what, ESCHEMA,
                      "an earlier definition differs and goes first: workload key %.150s",
                      e->pub.workload_key),
              t->name, line);
    return CDMPP_OK;
}
