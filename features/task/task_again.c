/* A workload key that comes again with another definition: it is kept beside the first, and told. */
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
static cdmpp_status add_twin(cd_task_registry *t, const cd_task_entry *of, cd_te_dag *dag, cdmpp_err *err) {
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

/* Of two such the one that is no print says more; it replaces the other. */
static cdmpp_status merge_print(cd_task_registry *t, cd_task_entry *e, cd_te_dag **dag, bool printed, bool *known, cdmpp_err *err) {
    if (*known || (!e->from_print && !printed)) return CDMPP_OK;
    CD_TRY(same_print(e->pub.dag, *dag, known, err));
    if (!*known || printed) return CDMPP_OK;
    e->from_print = false;
    cd_task_set_dag(t, e, *dag);
    *dag = NULL;
    return CDMPP_OK;
}

cdmpp_status cd_task_again(cd_task_registry *t, cd_task_entry *e, cd_te_dag *dag, bool printed, long line, cdmpp_err *err) {
    cdmpp_err *what;
    bool known = defined(&e->pub, dag);
    cdmpp_status st = merge_print(t, t->entry[cd_task_registry_first(t, e)], &dag, printed, &known, err);
    if (!st && !known) st = add_twin(t, e, dag, err);
    if (known || st) cd_te_dag_free(dag);
    if (known || st) return st;
    CD_TRY(cd_task_not_used(t, &what, err));
    cd_err_at(what, CD_FAIL(what, ESCHEMA, "an earlier definition differs and goes first: workload key %.150s", e->pub.workload_key), t->name, line);
    return CDMPP_OK;
}
