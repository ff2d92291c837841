/* Exchanges between operators: compares the boxes that one operator's devices made with those that
 * the next one's devices read, and lists the copies and their times. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/partition/shard/shard_plan_internal.h"

/* a copy within a memory, if the machine has no measured link for it */
#define COPY_BYTES_PER_S 5e9

enum { SIDES = 4 * CD_MACHINE_DEVICES, N = CD_MACHINE_DEVICES };
enum { PACK, LINK, WORK };

/* ---- phases of an exchange ---- */
typedef struct tally {
    double pack[N], in[N], work[N];
    bool wait[N];
    uint32_t wait_tensor[N], wait_from[N];
    bool impossible;
    uint32_t begin; /* of this exchange in `out` */
    const cd_shard_planner *s;
    cd_shard_planner_moves *out;
} tally;

static tally start(const cd_shard_planner *s, cd_shard_planner_moves *out) {
    return (tally){.s = s, .out = out, .begin = out ? out->n : 0};
}

/* Copies of one exchange are kept in the order of phases. */
static void emit(tally *t, uint32_t phase, cd_shard_plan_copy c) {
    cd_shard_planner_moves *o = t->out;
    uint32_t at;
    if (!o || o->oom) return;
    if (CD_GROW(o->move, o->n, o->cap)) {
        o->oom = true;
        return;
    }
    for (at = o->n++; at > t->begin && o->move[at - 1].phase > phase; at--)
        o->move[at] = o->move[at - 1];
    c.before = o->before;
    o->move[at] = (cd_shard_planner_move){c, phase};
}

static double copy_s(const cd_shard_planner *s, uint32_t device, int64_t bytes) {
    const cd_link *l = s->link[device][device] ? s->link[device][device] : s->link[0][0];
    return l ? cd_link_cost(l, bytes) : (double)bytes / COPY_BYTES_PER_S;
}

static void within(tally *t, uint32_t phase, uint32_t tensor, uint32_t device, int64_t bytes) {
    const double seconds = copy_s(t->s, device, bytes);
    (phase == PACK ? t->pack : t->work)[device] += seconds;
    emit(t, phase, (cd_shard_plan_copy){tensor, device, device, bytes, seconds, 0});
}

static void waits(tally *t, uint32_t tensor, uint32_t from, uint32_t to) {
    if (t->wait[to] || from == to) return;
    t->wait[to] = true, t->wait_tensor[to] = tensor, t->wait_from[to] = from;
}

static double finish(tally *t) {
    double pack = 0, in = 0, work = 0;
    for (uint32_t d = 0; d < t->s->n_device; d++) {
        const double sync = t->wait[d] ? t->s->m->device[d].sync_s : 0;
        if (t->wait[d])
            emit(t, WORK, (cd_shard_plan_copy){t->wait_tensor[d], t->wait_from[d], d, 0, sync, 0});
        pack = fmax(pack, t->pack[d]), in = fmax(in, t->in[d]),
        work = fmax(work, t->work[d] + sync);
    }
    return t->impossible ? (double)INFINITY : pack + in + work;
}

/* ---- one tensor ---- */
static bool row_of(const cd_box *x, const cd_box *in) {
    cd_box r = *x;
    int64_t first;
    for (uint32_t d = 0; d < x->rank; d++) r.lo[d] -= in->lo[d];
    return cd_box_run(&r, in->n, &first);
}

static uint32_t memory(const cd_shard_planner *s, uint32_t device) {
    return s->m->device[device].memory;
}

/* Box x, which p made, is copied for q: into the tensor's buffer if q's box is contiguous there
 * (run), else into a buffer of q's own. still: a value that exists before the network runs, so
 * nobody waits for it. */
static void piece(tally *t, uint32_t tensor, const cd_shard_planner_side *p,
                  const cd_shard_planner_side *q, const cd_box *x, bool still) {
    const int64_t bytes = cd_box_elements(x) * t->s->net->tensor[tensor].element_bytes,
                  *shape = t->s->shape[tensor].n;
    int64_t first;
    if (memory(t->s, p->device) == memory(t->s, q->device)) {
        if (!still) waits(t, tensor, p->device, q->device);
        if (!p->run || !q->run) within(t, WORK, tensor, q->device, bytes);
        return;
    }
    const cd_link *l = t->s->link[p->device][q->device];
    const double seconds = l ? cd_link_cost(l, bytes) : (double)INFINITY;
    t->impossible = t->impossible || !l;
    if (!(p->run ? cd_box_run(x, shape, &first) : row_of(x, &p->box)))
        within(t, PACK, tensor, p->device, bytes);
    t->in[q->device] += seconds;
    emit(t, LINK, (cd_shard_plan_copy){tensor, p->device, q->device, bytes, seconds, 0});
    if (!(q->run ? cd_box_run(x, shape, &first) : row_of(x, &q->box)))
        within(t, WORK, tensor, q->device, bytes);
}

/* Does one buffer in q's memory contain all of its box, contiguously? Then it is read in place and
 * nothing is copied. */
static bool there(tally *t, uint32_t tensor, const cd_shard_planner_side *has, uint32_t n,
                  const cd_shard_planner_side *q, bool still) {
    for (uint32_t i = 0; i < n; i++) {
        if (memory(t->s, has[i].device) != memory(t->s, q->device) ||
            !cd_box_inside(&q->box, &has[i].box))
            continue;
        if (!(has[i].run && q->run) && !row_of(&q->box, &has[i].box)) continue;
        if (!still) waits(t, tensor, has[i].device, q->device);
        return true;
    }
    return false;
}

static void exchange(tally *t, uint32_t tensor, const cd_shard_planner_side *made, uint32_t n_made,
                     const cd_shard_planner_side *read, uint32_t n_read, bool still) {
    for (uint32_t j = 0; j < n_read; j++) {
        const cd_shard_planner_side *q = &read[j];
        cd_box x;
        if (!cd_box_elements(&q->box)) continue;
        if (!there(t, tensor, made, n_made, q, still) &&
            !there(t, tensor, read, j, q,
                   still && q->run && memory(t->s, q->device) == memory(t->s, 0)))
            for (uint32_t i = 0; i < n_made; i++)
                if (cd_box_meet(&q->box, &made[i].box, &x))
                    piece(t, tensor, &made[i], q, &x, still);
        if (q->pack)
            within(t, WORK, tensor, q->device, q->pack * t->s->net->tensor[tensor].element_bytes);
    }
}

/* ---- boxes of an operator's option in a tensor's coordinates ---- */
static cd_shard_planner_side whole(const cd_shard_planner *s, uint32_t tensor, uint32_t device) {
    return (cd_shard_planner_side){device, true,
                                   cd_box_whole(s->shape[tensor].rank, s->shape[tensor].n), 0};
}

static const cd_te_op *argument(const cd_te_dag *dag, uint32_t arg) {
    return &dag->op[dag->tensor_op[dag->arg[arg]]];
}

/* A box of an argument as a box of the tensor; they differ where the argument is a view. False: it
 * is not a box of the tensor; *out is then the whole tensor. */
static bool mapped(const cd_shard_planner *s, uint32_t op, uint32_t arg, const cd_box *b,
                   uint32_t device, cd_shard_planner_side *out) {
    const uint32_t tensor = s->net->op[op].arg[arg];
    const cd_shard_planner_shape *h = &s->shape[tensor];
    const cd_te_op *o = argument(s->net->op[op].dag, arg);
    int64_t first;
    *out = whole(s, tensor, device);
    if (o->rank == h->rank && (!h->rank || !memcmp(o->shape, h->n, h->rank * sizeof *h->n)))
        out->box = *b;
    else if (!cd_box_reshape(b, o->shape, h->rank, h->n, &out->box)) {
        out->box = cd_box_whole(h->rank, h->n);
        out->pack = cd_box_run(b, o->shape, &first) ? 0 : cd_box_elements(b);
        return false;
    }
    out->run = cd_box_run(&out->box, h->n, &first);
    return true;
}

static uint32_t sides_made(const cd_shard_planner *s, uint32_t op, const cd_shard_planner_option *o,
                           uint32_t tensor, cd_shard_planner_side *out) {
    const uint32_t last = s->net->op[op].n_arg - 1;
    if (o->way == CD_SHARD_PLANNER_NONE || o->join != CD_SHARD_PLANNER_NONE) {
        out[0] = whole(s, tensor, o->join == CD_SHARD_PLANNER_NONE ? o->part[0].device : o->join);
        return 1;
    }
    for (uint32_t i = 0; i < o->n_part; i++)
        mapped(s, op, last, &o->use[i].box[o->use[i].n_arg - 1], o->use[i].device, &out[i]);
    return o->n_part;
}

static bool known(const cd_shard_planner_side *out, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (out[i].device == out[n].device && out[i].pack == out[n].pack &&
            cd_box_equal(&out[i].box, &out[n].box))
            return true;
    return false;
}

/* For more boxes of one tensor than there is room for: each device reads the whole tensor. */
static uint32_t everything(const cd_shard_planner *s, const cd_shard_planner_option *o,
                           uint32_t tensor, cd_shard_planner_side *out) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n_use; i++) {
        out[n] = whole(s, tensor, o->use[i].device);
        n += !known(out, n);
    }
    return n;
}

/* The boxes of one tensor that the shards and the join of an option read, equal ones once. Partial
 * sums are not tensors of the network: the join's own time contains them. */
static uint32_t sides_read(const cd_shard_planner *s, uint32_t op, const cd_shard_planner_option *o,
                           uint32_t tensor, cd_shard_planner_side *out) {
    const cd_shard_net_op *v = &s->net->op[op];
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n_use; i++) {
        const cd_shard_planner_use *u = &o->use[i];
        if (!u->of) {
            out[0] = whole(s, tensor, u->device);
            return 1;
        }
        for (uint32_t k = 0; k + 1 < u->n_arg; k++) {
            if (u->of[k] & CD_TE_SHARD_PARTIAL || u->of[k] >= v->n_arg ||
                v->arg[u->of[k]] != tensor)
                continue;
            if (n == SIDES) return everything(s, o, tensor, out);
            mapped(s, op, u->of[k], &u->box[k], u->device, &out[n]);
            n += !known(out, n);
        }
    }
    return n;
}

/* Is what each part makes a box of the tensor? If not, the option is not possible. */
static bool shard_planner_fits(const cd_shard_planner *s, uint32_t op,
                               const cd_shard_planner_option *o) {
    cd_shard_planner_side side;
    if (o->way == CD_SHARD_PLANNER_NONE || o->join != CD_SHARD_PLANNER_NONE) return true;
    for (uint32_t i = 0; i < o->n_part; i++)
        if (!mapped(s, op, s->net->op[op].n_arg - 1, &o->use[i].box[o->use[i].n_arg - 1],
                    o->use[i].device, &side))
            return false;
    return true;
}

/* ---- operators ---- */
static bool first_time(const cd_shard_net_op *o, uint32_t at) {
    for (uint32_t i = 0; i < at; i++)
        if (o->arg[i] == o->arg[at]) return false;
    return true;
}

double cd_shard_planner_exchange(const cd_shard_planner *s, uint32_t from,
                                 const cd_shard_planner_option *i, uint32_t to,
                                 const cd_shard_planner_option *j, cd_shard_planner_moves *out) {
    const cd_shard_net_op *o = &s->net->op[to];
    cd_shard_planner_side made[SIDES], read[SIDES];
    tally t = start(s, out);
    for (uint32_t a = 0; a < o->n_arg; a++) {
        if (s->net->tensor[o->arg[a]].from != from || !first_time(o, a)) continue;
        const uint32_t n = sides_made(s, from, i, o->arg[a], made);
        exchange(&t, o->arg[a], made, n, read, sides_read(s, to, j, o->arg[a], read), false);
    }
    return finish(&t);
}

double cd_shard_planner_inputs(const cd_shard_planner *s, uint32_t to,
                               const cd_shard_planner_option *j, cd_shard_planner_moves *out) {
    const cd_shard_net_op *o = &s->net->op[to];
    cd_shard_planner_side read[SIDES];
    tally t = start(s, out);
    for (uint32_t a = 0; a < o->n_arg; a++) {
        const cd_shard_net_tensor *v = &s->net->tensor[o->arg[a]];
        if (v->from != CD_SHARD_NET_OUTSIDE || v->constant || !first_time(o, a)) continue;
        const cd_shard_planner_side home = whole(s, o->arg[a], 0);
        exchange(&t, o->arg[a], &home, 1, read, sides_read(s, to, j, o->arg[a], read), true);
    }
    return finish(&t);
}

double cd_shard_planner_results(const cd_shard_planner *s, uint32_t from,
                                const cd_shard_planner_option *i, cd_shard_planner_moves *out) {
    const cd_shard_net_op *o = &s->net->op[from];
    cd_shard_planner_side made[SIDES];
    tally t = start(s, out);
    for (uint32_t a = 0; a < o->n_arg; a++) {
        const cd_shard_net_tensor *v = &s->net->tensor[o->arg[a]];
        if (v->from != from || !v->result || !first_time(o, a)) continue;
        const cd_shard_planner_side home = whole(s, o->arg[a], 0);
        exchange(&t, o->arg[a], made, sides_made(s, from, i, o->arg[a], made), &home, 1, false);
    }
    return finish(&t);
}

/* The tables that the solver (shard_select.h) works on: the options of each operator, limited to a
 * small number, and the exchange times between the options of neighbours. */

/* ---- key operators ---- */
typedef struct saving {
    double seconds;
    uint32_t op;
} saving;

static int larger(const void *a, const void *b) {
    const saving *x = a, *y = b;
    if (x->seconds != y->seconds) return x->seconds > y->seconds ? -1 : 1;
    return (x->op > y->op) - (x->op < y->op);
}

static double need(const cd_shard_planner *s, const cd_shard_planner_kind *k) {
    return fmax(s->margin * k->best, s->least_s);
}

/* The attainable saving of an operator is its best time alone less the time if all devices worked
 * together. Key operators are those with the largest savings until `cover` of the sum is reached;
 * an operator that no device can run alone is always one. */
static cdmpp_status find_keys(cd_shard_planner *s, cdmpp_err *err) {
    saving *v = CD_NEWN(&s->arena, saving, (size_t)s->net->n_op + 1);
    double all = 0, sum = 0;
    if (!v) return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        const cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
        v[op] = (saving){isfinite(k->best) ? k->best - k->together : 0, op};
        s->node[op].worth = k->n_way && (isinf(k->best) || v[op].seconds >= need(s, k));
        s->node[op].key = isinf(k->best);
        all += v[op].seconds;
    }
    qsort(v, s->net->n_op, sizeof *v, larger);
    for (uint32_t i = 0;
         i < s->net->n_op && v[i].seconds > 0 && (sum < s->cover * all || s->cover >= 1); i++) {
        s->node[v[i].op].key = true;
        sum += v[i].seconds;
    }
    for (uint32_t op = 0; op < s->net->n_op; op++) {
        cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
        k->key = k->key || s->node[op].key;
        k->look = k->look || (s->node[op].key && s->node[op].worth);
    }
    return CDMPP_OK;
}

/* ---- which options an operator has ---- */
typedef struct ranked {
    double seconds;
    uint32_t option;
    bool aligned; /* of all options on its axis the nearest to the network's ratio */
} ranked;

static int faster(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->aligned != y->aligned) return x->aligned ? -1 : 1;
    if (x->seconds != y->seconds) return x->seconds < y->seconds ? -1 : 1;
    return (x->option > y->option) - (x->option < y->option);
}

static double off(const cd_shard_planner *s, const cd_shard_planner_option *o) {
    double most = 0;
    for (uint32_t d = 0; d < s->n_device; d++) most = fmax(most, fabs(o->share[d] - s->ratio[d]));
    return most;
}

static void mark(const cd_shard_planner *s, const cd_shard_planner_kind *k, ranked *v, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const cd_shard_planner_option *a = &k->option[v[i].option];
        v[i].aligned = true;
        for (uint32_t j = 0; j < n && v[i].aligned; j++) {
            const cd_shard_planner_option *b = &k->option[v[j].option];
            v[i].aligned = b->way != a->way || off(s, a) <= off(s, b);
        }
    }
}

/* Options for the solver: all that do not split, and splits that save enough. If those are too
 * many: per axis the split nearest to the network's ratio (aligned, so that neighbours split alike
 * and exchange little), then the fastest ones up to 1.5 times the fastest. */
static uint32_t choose_some(const cd_shard_planner *s, uint32_t op, uint32_t *some, ranked *v) {
    const cd_shard_planner_node *x = &s->node[op];
    const cd_shard_planner_kind *k = &s->kind[x->kind];
    uint32_t n = 0, splits = 0;
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < x->n_all; i++) {
        const cd_shard_planner_option *o = &k->option[x->all[i]];
        if (o->way == CD_SHARD_PLANNER_NONE) some[n++] = x->all[i];
        else if (x->worth && (isinf(k->best) || o->seconds + need(s, k) <= k->best))
            v[splits++] = (ranked){o->seconds, x->all[i], false}, least = fmin(least, o->seconds);
    }
    if (n + splits > CD_SHARD_PLANNER_OPTIONS) {
        mark(s, k, v, splits);
        qsort(v, splits, sizeof *v, faster);
        uint32_t keep = 0;
        for (uint32_t i = 0; i < splits; i++)
            if (n + keep < CD_SHARD_PLANNER_OPTIONS &&
                (v[i].aligned || v[i].seconds <= 1.5 * least))
                v[keep++] = v[i];
        splits = keep;
    }
    for (uint32_t i = 0; i < splits; i++) some[n++] = v[i].option;
    qsort(some, n, sizeof *some, cd_sort_by_u32);
    return n;
}

static cdmpp_status nobody(cd_shard_planner *s, uint32_t op, cdmpp_err *err) {
    const cd_shard_net_op *o = &s->net->op[op];
    const cd_shard_planner_kind *k = &s->kind[s->node[op].kind];
    if (!k->allowed)
        return CD_FAIL(err, EINVALID, "operator %s (%s): no device may run it", o->name, o->type);
    const char *who =
        k->n_option ? NULL : cd_shard_planner_without_time(s, k, CD_SHARD_PLANNER_NONE, &s->arena);
    if (!k->n_option)
        return CD_FAIL(err, EINVALID, "node %s (%s) has no time on %s%s%s", o->name, o->type,
                       who ? who : "any device",
                       o->pin == UINT32_MAX ? "" : ", where it is pinned: ",
                       o->pin == UINT32_MAX ? ""
                       : o->pin_why         ? o->pin_why
                                            : s->m->device[o->pin].name);
    return CD_FAIL(err, EINVALID,
                   "operator %s (%s): no device that can run it has links from and to %s", o->name,
                   o->type, s->m->device[0].name);
}

/* all: options that are possible for this operator, used by the baselines; some: those of them that
 * the solver chooses from. Options that have no link for the network's inputs or results (io
 * infinite) are in neither. */
static cdmpp_status fill_node(cd_shard_planner *s, uint32_t op, cdmpp_err *err) {
    cd_shard_planner_node *x = &s->node[op];
    const cd_shard_planner_kind *k = &s->kind[x->kind];
    uint32_t *all = CD_NEWN(&s->arena, uint32_t, (size_t)k->n_option + 1),
             *some = CD_NEWN(&s->arena, uint32_t, (size_t)k->n_option + 1);
    double *io = CD_NEWN(&s->arena, double, (size_t)k->n_option + 1);
    ranked *v = cd_mem_zalloc((size_t)k->n_option + 1, sizeof *v);
    if (!all || !some || !io || !v) {
        cd_mem_free(v);
        return CD_FAIL(err, ENOMEM, "options of %s", s->net->op[op].name);
    }
    x->all = all, x->some = some, x->io = io;
    for (uint32_t i = 0; i < k->n_option; i++) {
        const cd_shard_planner_option *o = &k->option[i];
        io[i] = (double)INFINITY;
        if (!isfinite(o->seconds) || (o->way != CD_SHARD_PLANNER_NONE && !x->key) ||
            !shard_planner_fits(s, op, o))
            continue;
        io[i] = cd_shard_planner_inputs(s, op, o, NULL) + cd_shard_planner_results(s, op, o, NULL);
        if (isfinite(io[i])) all[x->n_all++] = i;
    }
    x->n_some = choose_some(s, op, some, v);
    cd_mem_free(v);
    return x->n_some ? CDMPP_OK : nobody(s, op, err);
}

cdmpp_status cd_shard_planner_nodes(cd_shard_planner *s, cdmpp_err *err) {
    CD_TRY(find_keys(s, err));
    for (uint32_t i = 0; i < s->n_kind; i++)
        CD_TRY(cd_shard_planner_make_options(s, &s->kind[i], err));
    for (uint32_t op = 0; op < s->net->n_op; op++) CD_TRY(fill_node(s, op, err));
    return CDMPP_OK;
}

/* ---- edges ---- */
static bool new_edge(const cd_shard_planner *s, uint32_t op, uint32_t arg) {
    const cd_shard_net_op *o = &s->net->op[op];
    const uint32_t from = s->net->tensor[o->arg[arg]].from;
    if (from == CD_SHARD_NET_OUTSIDE || from == op) return false;
    for (uint32_t i = 0; i < arg; i++)
        if (s->net->tensor[o->arg[i]].from == from) return false;
    return true;
}

static cdmpp_status fill_edge(cd_shard_planner *s, cd_shard_select_edge *e, cdmpp_err *err) {
    const cd_shard_planner_node *a = &s->node[e->from], *b = &s->node[e->to];
    const cd_shard_planner_kind *ka = &s->kind[a->kind], *kb = &s->kind[b->kind];
    double *t = cd_arena_alloc(&s->arena, (size_t)a->n_some * b->n_some, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "exchanges of %s", s->net->op[e->to].name);
    for (uint32_t i = 0; i < a->n_some; i++)
        for (uint32_t j = 0; j < b->n_some; j++)
            t[(size_t)i * b->n_some + j] = cd_shard_planner_exchange(
                s, e->from, &ka->option[a->some[i]], e->to, &kb->option[b->some[j]], NULL);
    e->seconds = t;
    return CDMPP_OK;
}

static cdmpp_status find_edges(cd_shard_planner *s, cdmpp_err *err) {
    size_t n = 0;
    for (uint32_t op = 0; op < s->net->n_op; op++) n += s->net->op[op].n_arg;
    if (n > UINT32_MAX / 2 || !(s->edge = CD_NEWN(&s->arena, cd_shard_select_edge, n + 1)))
        return CD_FAIL(err, ENOMEM, "edges");
    for (uint32_t op = 0; op < s->net->n_op; op++)
        for (uint32_t a = 0; a < s->net->op[op].n_arg; a++)
            if (new_edge(s, op, a))
                s->edge[s->n_edge++] =
                    (cd_shard_select_edge){s->net->tensor[s->net->op[op].arg[a]].from, op, NULL};
    return CDMPP_OK;
}

cdmpp_status cd_shard_planner_edges(cd_shard_planner *s, cdmpp_err *err) {
    if (!s->edge) CD_TRY(find_edges(s, err));
    for (uint32_t i = 0; i < s->n_edge; i++) CD_TRY(fill_edge(s, &s->edge[i], err));
    return CDMPP_OK;
}
