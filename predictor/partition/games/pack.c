/* Tasks of many operators packed onto units in one launch: a simulation of list scheduling, from
 * one end of a task to the next. The priority is the longest chain behind an operator, which is
 * what the bounds of the header are proved for. */
#include <math.h>
#include <string.h>

#include "base/text/text.h"
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

/* Operators cut into tasks, packed, and put together to calls. The packing knows only how long a
 * task is; what starting a call and waiting for another unit cost is counted afterwards, when it is
 * known which tasks became one call and who waits for whom. */

#define NONE UINT32_MAX
static const double FINER = 1.5; /* from one least_s to the next */

typedef struct {
    uint32_t work, part; /* CD_PACK_WHOLE */
    uint32_t iterations, tasks;
    double seconds;
} node;

typedef struct {
    const cd_pack_network *n;
    cd_arena arena;
    uint32_t n_node, n_edge, *last, *edge; /* last (n_work): the node that others wait for */
    node *node;
    cd_pack_op *op; /* (n_node) */
    /* (n_node, units): first task of the node for a unit, tasks that it has begun, its call;
     * NONE */
    uint32_t *next, *given, *open;
    uint32_t *order, *unit; /* (n_call) calls in the order of their start, and their units */
    uint32_t n_call;
    cd_pack_call *call; /* (n_call) */
} cutter;

void cd_pack_calls_free(cd_pack_calls *c) {
    cd_arena_free(&c->arena);
    *c = (cd_pack_calls){0};
}

/* ---- nodes ---- */

static uint32_t tasks_of(const cd_pack_network *n, const cd_pack_part *p, double least_s) {
    const double most = fmin((double)n->units * CD_PACK_TASKS, p->iterations),
                 want = least_s > 0 ? floor(p->seconds / least_s) : most;
    return n->units < 2 || want < 2 ? 1 : (uint32_t)fmin(want, most);
}

static bool is_cut(const cd_pack_network *n, const cd_pack_work *w, double least_s) {
    for (uint32_t p = 0; p < w->n_part; p++)
        if (tasks_of(n, &w->part[p], least_s) > 1) return true;
    return false;
}

/* The longest task of a part: the one with most iterations. */
static double task_s(const cd_pack_network *n, const node *x) {
    const double most = ceil((double)x->iterations / x->tasks) / x->iterations;
    return x->seconds * most + n->launch_s + (x->tasks > 1 ? n->sync_s : 0);
}

static void add_node(cutter *k, node x) {
    k->op[k->n_node] = (cd_pack_op){.name = k->n->work[x.work].name,
                                    .tasks = x.tasks,
                                    .task_s = task_s(k->n, &x),
                                    .first = k->n_edge};
    k->node[k->n_node++] = x;
}

static void add_edge(cutter *k, uint32_t from) {
    k->edge[k->n_edge++] = from;
    k->op[k->n_node - 1].n_after++;
}

/* An operator that is not cut is one node, else each part is one, behind the part before. Edges
 * between operators are filled in when all nodes are known, because operators may stand in any
 * order: until then they are numbers of operators. */
static void add_work(cutter *k, uint32_t w, double least_s) {
    const cd_pack_work *x = &k->n->work[w];
    const bool cut = is_cut(k->n, x, least_s);
    for (uint32_t p = 0; p < (cut ? x->n_part : 1); p++) {
        node v = {w, cut ? p : CD_PACK_WHOLE, 1, 1, 0};
        if (cut)
            v = (node){w, p, x->part[p].iterations, tasks_of(k->n, &x->part[p], least_s),
                       x->part[p].seconds};
        for (uint32_t i = 0; !cut && i < x->n_part; i++) v.seconds += x->part[i].seconds;
        add_node(k, v);
        if (p) add_edge(k, k->n_node - 2);
        for (uint32_t e = 0; !p && e < x->n_after; e++) add_edge(k, k->n->after[x->first + e]);
    }
    k->last[w] = k->n_node - 1;
}

static bool begins(const node *x) { return x->part == CD_PACK_WHOLE || !x->part; }

static cdmpp_status make_nodes(cutter *k, double least_s, cdmpp_err *err) {
    const cd_pack_network *n = k->n;
    size_t parts = 1;
    for (uint32_t w = 0; w < n->n_work; w++) parts += n->work[w].n_part;
    k->node = CD_NEWN(&k->arena, node, parts), k->op = CD_NEWN(&k->arena, cd_pack_op, parts);
    k->last = CD_NEWN(&k->arena, uint32_t, (size_t)n->n_work + 1),
    k->edge = CD_NEWN(&k->arena, uint32_t, parts + n->n_after);
    if (!k->node || !k->op || !k->last || !k->edge)
        return CD_FAIL(err, ENOMEM, "%u operators", n->n_work);
    for (uint32_t w = 0; w < n->n_work; w++) add_work(k, w, least_s);
    for (uint32_t i = 0; i < k->n_node; i++)
        for (uint32_t e = 0; begins(&k->node[i]) && e < k->op[i].n_after; e++)
            k->edge[k->op[i].first + e] = k->last[k->edge[k->op[i].first + e]];
    return CDMPP_OK;
}

/* ---- calls ---- */

static uint32_t *at(const cutter *k, uint32_t *of, uint32_t i, uint32_t unit) {
    return &of[(size_t)i * k->n->units + unit];
}

/* First iteration of task t of a node: as equal as possible. */
static uint32_t cut_at(const node *x, uint32_t t) {
    return (uint32_t)((uint64_t)x->iterations * t / x->tasks);
}

/* Each unit gets tasks in a row of a node: as many as it was given. */
static void share_out(cutter *k, const cd_pack *p) {
    for (uint32_t r = 0; r < p->n_run; r++) ++*at(k, k->given, p->run[r].op, p->run[r].unit);
    for (uint32_t i = 0; i < k->n_node; i++)
        for (uint32_t u = 0, sum = 0; u < k->n->units; u++) {
            *at(k, k->next, i, u) = sum;
            sum += *at(k, k->given, i, u);
        }
}

/* A task goes on with the unit's call if that is of the same node, else it begins one. last
 * (units): the node that a unit was at. */
static void to_calls(cutter *k, const cd_pack *p, uint32_t *last) {
    for (uint32_t u = 0; u < k->n->units; u++) last[u] = NONE;
    for (uint32_t r = 0; r < p->n_run; r++) {
        const uint32_t i = p->run[r].op, u = p->run[r].unit, t = (*at(k, k->next, i, u))++;
        const node *x = &k->node[i];
        if (last[u] == i) {
            k->call[*at(k, k->open, i, u)].end = cut_at(x, t + 1);
            continue;
        }
        last[u] = i;
        *at(k, k->open, i, u) = k->n_call;
        k->unit[k->n_call] = u;
        k->order[k->n_call] = i;
        k->call[k->n_call++] = (cd_pack_call){
            .work = x->work, .part = x->part, .begin = cut_at(x, t), .end = cut_at(x, t + 1)};
    }
}

/* Is all of a node on one unit? */
static bool is_on(const cutter *k, uint32_t i, uint32_t unit) {
    return *at(k, k->given, i, unit) == k->node[i].tasks;
}

/* Of a node's iterations those that a unit has: its tasks are those before `next`, which has moved
 * on over all of them. */
static double share_on(const cutter *k, uint32_t i, uint32_t unit) {
    const uint32_t end = *at(k, k->next, i, unit), begin = end - *at(k, k->given, i, unit);
    return (double)(cut_at(&k->node[i], end) - cut_at(&k->node[i], begin)) / k->node[i].iterations;
}

/* The calls in the order of their start: what a call waits for has begun before it. free (units),
 * end (n_node). */
static void play(cutter *k, double *free_at, double *end, cd_pack_calls *out) {
    for (uint32_t c = 0; c < k->n_call; c++) {
        cd_pack_call *x = &k->call[c];
        const uint32_t i = k->order[c], u = k->unit[c];
        const cd_pack_op *o = &k->op[i];
        bool waits = false;
        double foreign = 0; /* bytes before it that other units made */
        x->start_s = free_at[u];
        for (uint32_t e = 0; e < o->n_after; e++) {
            const uint32_t b = k->edge[o->first + e];
            const bool other = !is_on(k, b, u);
            waits |= other;
            foreign += k->n->work[k->node[b].work].bytes * (1 - share_on(k, b, u));
            x->start_s = fmax(x->start_s, end[b] + (other ? k->n->sync_s : 0));
        }
        const double share = (double)(x->end - x->begin) / k->node[i].iterations;
        x->end_s =
            x->start_s + k->n->launch_s + share * (k->node[i].seconds + foreign * k->n->byte_s);
        free_at[u] = x->end_s;
        end[i] = fmax(end[i], x->end_s);
        out->makespan_s = fmax(out->makespan_s, x->end_s);
        out->n_wait += waits;
    }
}

/* Calls sorted by unit; within one they stay in their order. */
static cdmpp_status by_unit(const cutter *k, cd_pack_calls *out, cdmpp_err *err) {
    const uint32_t units = k->n->units;
    out->first = CD_NEWN(&out->arena, uint32_t, (size_t)units + 1),
    out->call = CD_NEWN(&out->arena, cd_pack_call, (size_t)k->n_call + 1);
    if (!out->first || !out->call) return CD_FAIL(err, ENOMEM, "%u calls", k->n_call);
    for (uint32_t u = 0, at_call = 0; u < units; u++) {
        for (uint32_t c = 0; c < k->n_call; c++)
            if (k->unit[c] == u) out->call[at_call++] = k->call[c];
        out->first[u + 1] = at_call;
    }
    return CDMPP_OK;
}

static cdmpp_status make_calls(cutter *k, const cd_pack *p, cd_pack_calls *out, cdmpp_err *err) {
    const size_t cells = (size_t)k->n_node * k->n->units + 1;
    k->next = CD_NEWN(&k->arena, uint32_t, cells), k->given = CD_NEWN(&k->arena, uint32_t, cells),
    k->open = CD_NEWN(&k->arena, uint32_t, cells);
    k->call = CD_NEWN(&k->arena, cd_pack_call, (size_t)p->n_run + 1);
    k->order = CD_NEWN(&k->arena, uint32_t, (size_t)p->n_run + 1),
    k->unit = CD_NEWN(&k->arena, uint32_t, (size_t)p->n_run + 1);
    uint32_t *last = CD_NEWN(&k->arena, uint32_t, (size_t)k->n->units + 1);
    double *free_at = CD_NEWN(&k->arena, double, (size_t)k->n->units + 1),
           *end = CD_NEWN(&k->arena, double, (size_t)k->n_node + 1);
    if (!k->next || !k->given || !k->open || !k->call || !k->order || !k->unit || !last ||
        !free_at || !end)
        return CD_FAIL(err, ENOMEM, "%u tasks", p->n_run);
    share_out(k, p);
    to_calls(k, p, last);
    play(k, free_at, end, out);
    return by_unit(k, out, err);
}

/* ---- bounds ---- */

/* What one operator takes on all units: each part by the unit with most of its iterations. */
static double spread_s(const cd_pack_network *n, const cd_pack_work *w) {
    double s = n->launch_s, before = 0;
    for (uint32_t e = 0; e < w->n_after; e++) before += n->work[n->after[w->first + e]].bytes;
    for (uint32_t p = 0; p < w->n_part; p++, before = w->bytes) {
        const double share = ceil((double)w->part[p].iterations / n->units) / w->part[p].iterations;
        s += share * (w->part[p].seconds + before * n->byte_s * (1 - 1.0 / n->units)) +
             (share < 1 ? n->sync_s : 0);
    }
    return s;
}

static double whole_s(const cd_pack_work *w) {
    double s = 0;
    for (uint32_t p = 0; p < w->n_part; p++) s += w->part[p].seconds;
    return s;
}

static cdmpp_status check(const cd_pack_network *n, cdmpp_err *err) {
    if (!n->units) return CD_FAIL(err, ERANGE, "0 units");
    if (!(n->launch_s >= 0) || !(n->sync_s >= 0) || !(n->byte_s >= 0) ||
        !isfinite(n->launch_s + n->sync_s + n->byte_s))
        return CD_FAIL(err, ERANGE, "%g s to start, %g s to wait, %g s a byte", n->launch_s,
                       n->sync_s, n->byte_s);
    for (uint32_t w = 0; w < n->n_work; w++) {
        const cd_pack_work *x = &n->work[w];
        if (!(x->bytes >= 0) || isinf(x->bytes))
            return CD_FAIL(err, ERANGE, "operator %u (%s): %g bytes", w, x->name, x->bytes);
        if (!x->n_part) return CD_FAIL(err, ERANGE, "operator %u (%s): no part", w, x->name);
        for (uint32_t p = 0; p < x->n_part; p++)
            if (!x->part[p].iterations || !(x->part[p].seconds >= 0) ||
                !isfinite(x->part[p].seconds))
                return CD_FAIL(err, ERANGE, "operator %u (%s): %u iterations of %g s", w, x->name,
                               x->part[p].iterations, x->part[p].seconds);
        if (x->first > n->n_after || x->n_after > n->n_after - x->first)
            return CD_FAIL(err, EINVALID, "operator %u (%s): edges %u to %u of %u", w, x->name,
                           x->first, x->first + x->n_after, n->n_after);
        for (uint32_t e = 0; e < x->n_after; e++)
            if (n->after[x->first + e] >= n->n_work)
                return CD_FAIL(err, EINVALID, "operator %u (%s) comes after %u of %u", w, x->name,
                               n->after[x->first + e], n->n_work);
    }
    return CDMPP_OK;
}

static cdmpp_status cut(cutter *k, double least_s, cd_pack_calls *out, cdmpp_err *err) {
    cd_pack p = {0};
    CD_TRY(check(k->n, err));
    CD_TRY(make_nodes(k, least_s, err));
    cdmpp_status st = cd_pack_make(k->op, k->n_node, k->edge, k->n_edge, k->n->units, &p, err);
    if (!st) st = make_calls(k, &p, out, err);
    cd_pack_free(&p);
    return st;
}

cdmpp_status cd_pack_cut_by(const cd_pack_network *n, double least_s, cd_pack_calls *out,
                            cdmpp_err *err) {
    cutter k = {.n = n};
    *out = (cd_pack_calls){.least_s = least_s};
    const cdmpp_status st = cut(&k, least_s, out, err);
    for (uint32_t w = 0; w < n->n_work && !st; w++) {
        out->work_s += whole_s(&n->work[w]);
        out->serial_s += spread_s(n, &n->work[w]);
        out->single_s += whole_s(&n->work[w]) + n->launch_s;
    }
    cd_arena_free(&k.arena);
    return st;
}

static bool better(const cd_pack_calls *a, const cd_pack_calls *b, uint32_t units) {
    if (a->makespan_s != b->makespan_s) return a->makespan_s < b->makespan_s;
    return a->first[units] < b->first[units];
}

cdmpp_status cd_pack_cut(const cd_pack_network *n, cd_pack_calls *out, cdmpp_err *err) {
    double longest = 0;
    CD_TRY(cd_pack_cut_by(n, (double)INFINITY, out, err));
    for (uint32_t w = 0; w < n->n_work; w++)
        for (uint32_t p = 0; p < n->work[w].n_part; p++)
            longest = fmax(longest, n->work[w].part[p].seconds);
    for (double s = longest / 2; n->units > 1 && s > n->launch_s / 2 && s > longest * 1e-6;
         s /= FINER) {
        cd_pack_calls other;
        const cdmpp_status st = cd_pack_cut_by(n, s, &other, err);
        const bool take = !st && better(&other, out, n->units);
        if (take) {
            cd_pack_calls_free(out);
            *out = other;
        } else cd_pack_calls_free(&other);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

/* A packed launch as a table and as JSON: when each operator starts and ends, and how the makespan
 * stands between its bounds. */

/* First start and last end of an operator's tasks. */
typedef struct {
    double start_s, end_s;
} span;

static span span_of(const cd_pack_table *t, const cd_pack *p, uint32_t op) {
    span s = {(double)INFINITY, 0};
    for (uint32_t i = 0; i < p->n_run; i++) {
        if (p->run[i].op != op) continue;
        s.start_s = fmin(s.start_s, p->run[i].start_s);
        s.end_s = fmax(s.end_s, p->run[i].start_s + t->op[op].task_s);
    }
    return s;
}

/* The bound beside the makespan tells whether a better packing could exist. */
void cd_pack_print(const cd_pack_table *t, uint32_t units, const cd_pack *p, cd_buf *b) {
    cd_buf_puts(b, "operator                    tasks     starts       ends\n");
    for (uint32_t k = 0; k < t->n_op; k++) {
        const span s = span_of(t, p, k);
        cd_buf_putf(b, "%-24s %8u  ", t->op[k].name, t->op[k].tasks);
        cd_units_put_seconds_wide(b, s.start_s);
        cd_buf_puts(b, "  ");
        cd_units_put_seconds_wide(b, s.end_s);
        cd_buf_puts(b, "\n");
    }
    cd_buf_putf(b, "\npacked on %u units: ", units);
    cd_units_put_seconds(b, p->makespan_s);
    cd_buf_puts(b, "; no packing is below ");
    cd_units_put_seconds(b, fmax(p->chain_s, p->work_s / units));
    cd_buf_puts(b, "; one operator after the other: ");
    cd_units_put_seconds(b, p->serial_s);
    cd_buf_putf(b, " (%.3fx)\n", p->serial_s / p->makespan_s);
}

void cd_pack_print_json(const cd_pack_table *t, uint32_t units, const cd_pack *p, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_member_int(&w, "units", units);
    cd_json_write_member_real(&w, "makespan_s", p->makespan_s);
    cd_json_write_member_real(&w, "chain_s", p->chain_s);
    cd_json_write_member_real(&w, "work_s", p->work_s);
    cd_json_write_member_real(&w, "serial_s", p->serial_s);
    cd_json_write_key(&w, "operators"), cd_json_write_open(&w, '[');
    for (uint32_t k = 0; k < t->n_op; k++) {
        const span s = span_of(t, p, k);
        cd_json_write_open(&w, '{');
        cd_json_write_member_str(&w, "name", t->op[k].name);
        cd_json_write_member_int(&w, "tasks", t->op[k].tasks);
        cd_json_write_member_real(&w, "start_s", s.start_s);
        cd_json_write_member_real(&w, "end_s", s.end_s);
        cd_json_write_close(&w, '}');
    }
    cd_json_write_close(&w, ']');
    cd_json_write_close(&w, '}');
}
