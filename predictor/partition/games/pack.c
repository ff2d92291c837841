/* Tasks of many operators packed onto units in one launch: a simulation of list scheduling, from
 * one end of a task to the next. The priority is the longest chain behind an operator, which is
 * what the bounds of the header are proved for. */
#include <math.h>
#include <string.h>

#include "predictor/partition/games/pack.h"

static const uint64_t MOST_TASKS = 10000000;

void cd_pack_free(cd_pack *p) {
    cd_arena_free(&p->arena);
    *p = (cd_pack){0};
}

typedef struct {
    const cd_pack_op *op;
    const uint32_t *after;
    uint32_t n, units, *first, *to, *left, *order, *ready, n_ready, *todo, *running;
    double *tail, *free_at;
    uint32_t *on; /* (units) the operator whose task it runs; UINT32_MAX: idle */
} packer;

/* Errors name the operator. The number of tasks is limited, because each becomes a row of the
 * result. */
static cdmpp_status check_ops(const packer *k, uint32_t n_after, uint64_t *tasks, cdmpp_err *err) {
    if (!k->units) return CD_FAIL(err, ERANGE, "0 units");
    *tasks = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        const cd_pack_op *o = &k->op[i];
        if (!o->tasks || !(o->task_s >= 0) || !isfinite(o->task_s))
            return CD_FAIL(err, ERANGE, "operator %u (%s): %u tasks of %g s", i, o->name, o->tasks,
                           o->task_s);
        if (o->first > n_after || o->n_after > n_after - o->first)
            return CD_FAIL(err, EINVALID, "operator %u (%s): edges %u to %u of %u", i, o->name,
                           o->first, o->first + o->n_after, n_after);
        for (uint32_t j = 0; j < o->n_after; j++)
            if (k->after[o->first + j] >= k->n)
                return CD_FAIL(err, EINVALID, "operator %u (%s) comes after %u of %u", i, o->name,
                               k->after[o->first + j], k->n);
        *tasks += o->tasks;
    }
    if (*tasks > MOST_TASKS)
        return CD_FAIL(err, ERANGE, "%llu tasks: at most %llu", (unsigned long long)*tasks,
                       (unsigned long long)MOST_TASKS);
    return CDMPP_OK;
}

/* Successors of each operator as rows first[i] .. first[i+1] of to[], then a topological order by
 * counting (Kahn). */
static cdmpp_status sort(packer *k, cdmpp_err *err) {
    uint32_t end = 0;
    for (uint32_t i = 0; i < k->n; i++)
        for (uint32_t j = 0; j < k->op[i].n_after; j++)
            k->first[k->after[k->op[i].first + j] + 2]++;
    for (uint32_t i = 0; i < k->n; i++) k->first[i + 2] += k->first[i + 1];
    for (uint32_t i = 0; i < k->n; i++)
        for (uint32_t j = 0; j < k->op[i].n_after; j++)
            k->to[k->first[k->after[k->op[i].first + j] + 1]++] = i;
    for (uint32_t i = 0; i < k->n; i++)
        if (!(k->left[i] = k->op[i].n_after)) k->order[end++] = i;
    for (uint32_t at = 0; at < end; at++)
        for (uint32_t j = k->first[k->order[at]]; j < k->first[k->order[at] + 1]; j++)
            if (!--k->left[k->to[j]]) k->order[end++] = k->to[j];
    for (uint32_t i = 0; i < k->n && end < k->n; i++)
        if (k->left[i])
            return CD_FAIL(err, EINVALID,
                           "operator %u (%s) comes after itself: a cycle, or behind one", i,
                           k->op[i].name);
    return CDMPP_OK;
}

/* From the last operator to the first: the longest chain of each; of all operators the work and the
 * time one after the other. */
static void measure(packer *k, cd_pack *out) {
    for (uint32_t i = k->n; i-- > 0;) {
        const uint32_t o = k->order[i];
        for (uint32_t j = k->first[o]; j < k->first[o + 1]; j++)
            k->tail[o] = fmax(k->tail[o], k->tail[k->to[j]]);
        k->tail[o] += k->op[o].task_s;
        out->chain_s = fmax(out->chain_s, k->tail[o]);
        out->work_s += k->op[o].task_s * k->op[o].tasks;
        out->serial_s += k->op[o].task_s * ceil((double)k->op[o].tasks / k->units);
    }
}

/* The ready operator with the longest chain, the first of those; UINT32_MAX. */
static uint32_t next_op(const packer *k) {
    uint32_t at = UINT32_MAX;
    for (uint32_t i = 0; i < k->n_ready; i++)
        if (at == UINT32_MAX || k->tail[k->ready[i]] > k->tail[k->ready[at]] ||
            (k->tail[k->ready[i]] == k->tail[k->ready[at]] && k->ready[i] < k->ready[at]))
            at = i;
    return at;
}

static void hand_out(packer *k, double now, cd_pack *out) {
    for (uint32_t u = 0; u < k->units && k->n_ready; u++) {
        if (k->on[u] != UINT32_MAX) continue;
        const uint32_t at = next_op(k), o = k->ready[at];
        out->run[out->n_run++] = (cd_pack_run){o, u, now};
        k->on[u] = o, k->free_at[u] = now + k->op[o].task_s;
        if (!--k->todo[o]) k->ready[at] = k->ready[--k->n_ready];
    }
}

/* To the first end of a task; false: nothing runs. */
static bool advance(packer *k, double *now) {
    double next = (double)INFINITY;
    for (uint32_t u = 0; u < k->units; u++)
        if (k->on[u] != UINT32_MAX) next = fmin(next, k->free_at[u]);
    if (isinf(next)) return false;
    for (uint32_t u = 0; u < k->units; u++) {
        const uint32_t o = k->on[u];
        if (o == UINT32_MAX || k->free_at[u] > next) continue;
        k->on[u] = UINT32_MAX;
        if (--k->running[o]) continue;
        for (uint32_t j = k->first[o]; j < k->first[o + 1]; j++)
            if (!--k->left[k->to[j]]) k->ready[k->n_ready++] = k->to[j];
    }
    *now = next;
    return true;
}

/* Tasks are handed out at every moment at which a unit becomes free, until none runs any more. */
static cdmpp_status pack(packer *k, cd_arena *a, uint32_t n_after, cd_pack *out, cdmpp_err *err) {
    uint64_t tasks;
    CD_TRY(check_ops(k, n_after, &tasks, err));
    const size_t n = (size_t)k->n + 2;
    uint32_t **part[] = {&k->first, &k->left, &k->order, &k->ready, &k->todo, &k->running};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (!(*part[i] = CD_NEWN(a, uint32_t, n)))
            return CD_FAIL(err, ENOMEM, "%u operators", k->n);
    k->to = CD_NEWN(a, uint32_t, (size_t)n_after + 1), k->tail = CD_NEWN(a, double, n);
    k->free_at = CD_NEWN(a, double, k->units), k->on = CD_NEWN(a, uint32_t, k->units);
    out->run = CD_NEWN(&out->arena, cd_pack_run, (size_t)tasks + 1);
    if (!k->to || !k->tail || !k->free_at || !k->on || !out->run)
        return CD_FAIL(err, ENOMEM, "%u operators", k->n);
    CD_TRY(sort(k, err));
    measure(k, out);
    for (uint32_t i = 0; i < k->n; i++) {
        k->todo[i] = k->running[i] = k->op[i].tasks;
        if (!(k->left[i] = k->op[i].n_after)) k->ready[k->n_ready++] = i;
    }
    memset(k->on, 0xff, k->units * sizeof *k->on);
    do hand_out(k, out->makespan_s, out);
    while (advance(k, &out->makespan_s));
    return CDMPP_OK;
}

cdmpp_status cd_pack_make(const cd_pack_op *op, uint32_t n_op, const uint32_t *after,
                          uint32_t n_after, uint32_t units, cd_pack *out, cdmpp_err *err) {
    cd_arena own = {0};
    packer k = {.op = op, .after = after, .n = n_op, .units = units};
    *out = (cd_pack){0};
    const cdmpp_status st = pack(&k, &own, n_after, out, err);
    cd_arena_free(&own);
    return st;
}
