/* A held-out device of which K tasks are measured (split.h, 7). */
#include <stdlib.h>
#include <string.h>

#include "dataset/split/split_internal.h"

enum { PER_TASK = 64 }; /* programs of a task that vectors are made of; more change little */

/* Part of a task on the target; candidates are CD_SPLIT_PART_NONE. */
typedef struct {
    cd_splitter *m;
    uint32_t target;
    uint8_t *here, *there; /* (n_task) the target, another device has programs of it */
    uint8_t *part;         /* (n_task) of the target's programs */
    uint8_t *valid;        /* (n_task) validation on other devices */
    size_t *program;       /* (n_program) candidates' programs, at most PER_TASK of a task */
    size_t n_program;
} dividing;

static cdmpp_status find_target(dividing *v, cdmpp_err *err) {
    size_t n = 0;
    for (uint32_t k = 0; k < v->m->d->n_device; k++)
        if (v->m->dev_part[k] == CD_SPLIT_PART_TEST) {
            v->target = k;
            n++;
        }
    if (n == 1) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected one device, the target, found %zu", n),
                      "split.test_names");
}

static void find_tasks(dividing *v) {
    const cd_dataset *d = v->m->d;
    for (size_t i = 0; i < d->n; i++) {
        if (!v->m->keep[i]) continue;
        if (d->device[i] == v->target) v->here[d->task[i]] = 1;
        else if (v->m->dev_part[d->device[i]] == CD_SPLIT_PART_TRAIN) v->there[d->task[i]] = 1;
    }
}

/* The target's tasks, then those that only others have. */
static cdmpp_status divide(dividing *v, cdmpp_err *err) {
    cd_splitter *m = v->m;
    const size_t n_task = m->d->n_task;
    cd_split_list_tasks(m, v->here);
    if (m->n_unit < 3)
        return CD_FAIL(
            err, ERANGE,
            "expected at least 3 tasks on device '%s' (test, validation, candidates), found %zu",
            m->d->device_name[v->target], m->n_unit);
    cd_split_take(m, m->spec->test, m->n_unit, CD_SPLIT_PART_TEST);
    cd_split_take(m, m->spec->valid, m->n_unit, CD_SPLIT_PART_VALID);
    for (size_t u = 0; u < m->n_unit; u++) {
        const uint8_t p = m->unit[u].part;
        v->part[m->unit[u].id] = p == CD_SPLIT_PART_TRAIN ? CD_SPLIT_PART_NONE : p;
        v->valid[m->unit[u].id] = p == CD_SPLIT_PART_VALID;
        m->s->n_candidate += p == CD_SPLIT_PART_TRAIN;
    }
    for (size_t t = 0; t < n_task; t++)
        if (v->here[t]) v->there[t] = 0;
    cd_split_list_tasks(m, v->there);
    if (m->n_unit) cd_split_take(m, m->spec->valid, m->n_unit, CD_SPLIT_PART_VALID);
    for (size_t u = 0; u < m->n_unit; u++)
        v->valid[m->unit[u].id] = m->unit[u].part == CD_SPLIT_PART_VALID;
    return CDMPP_OK;
}

/* ---- choosing ---- */
typedef struct {
    uint64_t rank;
    uint32_t task;
    size_t i;
} drawn;

static int by_task(const void *a, const void *b) {
    const drawn *x = a, *y = b;
    if (x->task != y->task) return x->task < y->task ? -1 : 1;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Programs to choose by: of each candidate the first PER_TASK by rank. */
static cdmpp_status list_programs(dividing *v, cdmpp_err *err) {
    cd_splitter *m = v->m;
    const cd_dataset *d = m->d;
    drawn *r = CD_NEWN(&m->arena, drawn, d->n);
    v->program = CD_NEWN(&m->arena, size_t, d->n);
    size_t n = 0, nth = 0;
    if (!r || !v->program) return CD_FAIL(err, ENOMEM, "candidates among %zu programs", d->n);
    for (size_t i = 0; i < d->n; i++)
        if (m->keep[i] && d->device[i] == v->target && v->part[d->task[i]] == CD_SPLIT_PART_NONE)
            r[n++] = (drawn){cd_rng_at(m->spec->seed, m->key[i]), d->task[i], i};
    if (n) qsort(r, n, sizeof *r, by_task);
    for (size_t k = 0; k < n; k++) {
        nth = k && r[k].task == r[k - 1].task ? nth + 1 : 0;
        if (nth < PER_TASK) v->program[v->n_program++] = r[k].i;
    }
    return CDMPP_OK;
}

static cdmpp_status gather(const dividing *v, float **x, size_t *dim, cdmpp_err *err) {
    const cd_split_target *t = v->m->spec->target;
    if (t->select == CD_SELECT_RANDOM) return CDMPP_OK;
    if (!t->x) return cd_task_embedding_rows(v->m->d, v->program, v->n_program, x, dim, err);
    *dim = t->dim;
    *x = cd_mem_zalloc(v->n_program * t->dim + 1, sizeof **x);
    if (!*x) return CD_FAIL(err, ENOMEM, "vectors of %zu programs", v->n_program);
    for (size_t i = 0; i < v->n_program; i++)
        memcpy(*x + i * t->dim, t->x + v->program[i] * t->dim, t->dim * sizeof **x);
    return CDMPP_OK;
}

/* Tasks of the target device are chosen by what their programs look like, never by their
 * latencies. */
static cdmpp_status choose(dividing *v, cdmpp_err *err) {
    cd_splitter *m = v->m;
    const cd_split_target *t = m->spec->target;
    float *x = NULL;
    size_t dim = 0;
    uint32_t *task = CD_NEWN(&m->arena, uint32_t, v->n_program);
    uint64_t *key = CD_NEWN(&m->arena, uint64_t, m->d->n_task);
    if (!task || !key) return CD_FAIL(err, ENOMEM, "%zu candidates", m->s->n_candidate);
    CD_TRY(gather(v, &x, &dim, err));
    for (size_t i = 0; i < v->n_program; i++) task[i] = m->d->task[v->program[i]];
    for (size_t k = 0; k < m->d->n_task; k++)
        key[k] = v->here[k] ? cd_stable_id_name(m->d->task_name[k]) : 0;
    const cd_select_input in = {v->n_program, dim, x, task, m->d->n_task, key};
    const cdmpp_status st = cd_select_tasks(&in, t->select, t->n_task, m->spec->seed, t->pool,
                                            m->s->chosen, &m->s->n_chosen, err);
    cd_mem_free(x);
    return st;
}

/* ---- programs ---- */
static void place(dividing *v) {
    cd_splitter *m = v->m;
    cd_split *s = m->s;
    for (size_t k = 0; k < s->n_chosen; k++) v->part[s->chosen[k]] = CD_SPLIT_PART_TRAIN;
    for (size_t i = 0; i < s->n; i++) {
        const uint32_t t = m->d->task[i];
        if (!m->keep[i] || m->dev_part[m->d->device[i]] == CD_SPLIT_PART_NONE) continue;
        if (m->d->device[i] != v->target) {
            s->part[i] = v->valid[t] ? CD_SPLIT_PART_VALID : CD_SPLIT_PART_TRAIN;
            continue;
        }
        s->target[i] = 1;
        s->part[i] =
            v->part[t] == CD_SPLIT_PART_VALID && !s->n_chosen ? CD_SPLIT_PART_NONE : v->part[t];
        s->unlabelled[i] = s->part[i] == CD_SPLIT_PART_NONE;
    }
}

static cdmpp_status with_target(dividing *v, cdmpp_err *err) {
    const size_t k = v->m->spec->target->n_task;
    CD_TRY(find_target(v, err));
    find_tasks(v);
    CD_TRY(divide(v, err));
    if (k > v->m->s->n_candidate)
        return cd_err_key(err,
                          CD_FAIL(err, ERANGE,
                                  "expected at most %zu, the candidates on '%s', found %zu",
                                  v->m->s->n_candidate, v->m->d->device_name[v->target], k),
                          "split.target_tasks");
    if (k) CD_TRY(list_programs(v, err));
    if (k) CD_TRY(choose(v, err));
    place(v);
    return CDMPP_OK;
}

/* A few labelled tasks of the target are for training; the others are its test part, usable without
 * labels. */
cdmpp_status cd_split_with_target(cd_splitter *m, cdmpp_err *err) {
    const size_t n = m->d->n_task;
    cd_arena *a = &m->arena;
    dividing v = {.m = m,
                  .here = CD_NEWN(a, uint8_t, n),
                  .there = CD_NEWN(a, uint8_t, n),
                  .part = CD_NEWN(a, uint8_t, n),
                  .valid = CD_NEWN(a, uint8_t, n)};
    m->s->target = CD_NEWN(&m->s->arena, uint8_t, m->d->n);
    m->s->unlabelled = CD_NEWN(&m->s->arena, uint8_t, m->d->n);
    m->s->chosen = CD_NEWN(&m->s->arena, uint32_t, n);
    if (a->oom || m->s->arena.oom) return CD_FAIL(err, ENOMEM, "%zu tasks", n);
    return with_target(&v, err);
}
