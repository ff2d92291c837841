/* What a plan's devices hold, against what their memories have; and the best plan that fits.
 *
 *   weights  the box of each part; once in a memory if several parts there, of one operator or of
 *            several, read the same box
 *   tensors  whole, once in each memory where any device reads or makes a part of it; inputs and
 *            results of the network also in the
 *            first device's memory
 *   sums     partial sums: where they are made, and where they are joined
 *
 * This is what predictor/partition/run allocates: it does not reuse memory. Scratch memory of
 * programs is not counted. The search has two steps: a price on each byte is raised until the
 * solver's plan fits; then all plans are tried by branch and bound, up to a limit of steps. */
#include <math.h>
#include <string.h>

#include "predictor/partition/shard/shard_plan.h"
#include "predictor/partition/shard/shard_plan_internal.h"

enum { MOST_OPS = 64, DOUBLINGS = 40, HALVINGS = 8 };
#define MOST_LOOKS 3000000u

/* ---- memories ---- */

/* Fills store, limit and limited. */
static void shard_planner_memory_limits(cd_shard_planner *s) {
    for (uint32_t d = 0; d < s->n_device; d++) {
        const cd_machine_device *v = &s->m->device[d];
        uint32_t first = 0;
        while (s->m->device[first].memory != v->memory) first++;
        s->store[d] = first;
        const double bytes = v->mem_gb * 1e9;
        if (!(bytes > 0)) continue;
        /* devices that share a memory: the least size that one of them gives */
        if (!(bytes >= s->limit[first] && s->limit[first] > 0)) s->limit[first] = bytes;
        s->limited = true;
    }
}

/* A piece of a weight that several operators read, in a memory. */
typedef struct {
    uint32_t tensor, memory, users, next; /* next: 1 + that of the same tensor; 0: none */
    cd_box box;
} piece;

typedef struct {
    const cd_shard_planner *s;
    double held[CD_MACHINE_DEVICES]; /* by cd_shard_planner.store */
    uint32_t *users; /* (n_tensor, n_device) how many have any of a tensor in a memory */
    /* (n_tensor) operators that read it: weights of more than one have pieces */
    uint32_t *readers;
    uint32_t *first; /* (n_tensor) 1 + piece */
    cd_arena *a;
    piece *piece; /* (n_piece of cap_piece) */
    uint32_t n_piece, cap_piece;
    bool oom;
} holds;

static double bytes_of(const cd_shard_planner *s, uint32_t tensor) {
    return (double)s->shape[tensor].elements * s->net->tensor[tensor].element_bytes;
}

static double box_bytes(const cd_box *b, uint32_t element_bytes) {
    double n = element_bytes;
    for (uint32_t d = 0; d < b->rank; d++) n *= (double)b->n[d];
    return n;
}

static void touch(holds *h, uint32_t tensor, uint32_t m, bool comes) {
    uint32_t *n = &h->users[(size_t)tensor * h->s->n_device + m];
    if (!comes) --*n;
    if (!*n) h->held[m] += comes ? bytes_of(h->s, tensor) : -bytes_of(h->s, tensor);
    if (comes) ++*n;
}

/* The piece, new with no users where it is not there; NULL: out of memory. */
static piece *piece_of(holds *h, uint32_t tensor, uint32_t m, const cd_box *box) {
    for (uint32_t k = h->first[tensor]; k; k = h->piece[k - 1].next)
        if (h->piece[k - 1].memory == m && cd_box_equal(&h->piece[k - 1].box, box))
            return &h->piece[k - 1];
    if (CD_GROW_IN(h->a, h->piece, h->n_piece, h->cap_piece)) return h->oom = true, NULL;
    h->piece[h->n_piece] =
        (piece){.tensor = tensor, .memory = m, .next = h->first[tensor], .box = *box};
    h->first[tensor] = ++h->n_piece;
    return &h->piece[h->n_piece - 1];
}

/* All of a tensor, or a box of it. */
static void hold_piece(holds *h, uint32_t tensor, uint32_t m, const cd_box *box, bool comes) {
    const double bytes =
        box ? box_bytes(box, h->s->net->tensor[tensor].element_bytes) : bytes_of(h->s, tensor);
    const cd_box whole = {0};
    piece *p = h->readers[tensor] > 1
                   ? piece_of(h, tensor, m, box && bytes < bytes_of(h->s, tensor) ? box : &whole)
                   : NULL;
    if (p && !comes) p->users--;
    if (!p || !p->users) h->held[m] += comes ? bytes : -bytes;
    if (p && comes) p->users++;
}

static uint32_t arg_of(const cd_shard_planner_use *u, uint32_t i) { return u->of ? u->of[i] : i; }

/* An earlier part that reads the same piece of this weight in the same memory. */
static bool is_there(const holds *h, const cd_shard_planner_option *o, uint32_t use, uint32_t i) {
    const cd_shard_planner_use *u = &o->use[use];
    for (uint32_t e = 0; e < use; e++) {
        const cd_shard_planner_use *x = &o->use[e];
        for (uint32_t j = 0; j < x->n_arg && h->s->store[x->device] == h->s->store[u->device]; j++)
            if (arg_of(x, j) == arg_of(u, i) && (!x->of || cd_box_equal(&x->box[j], &u->box[i])))
                return true;
    }
    return false;
}

static void hold_use(holds *h, uint32_t op, const cd_shard_planner_option *o, uint32_t use,
                     bool comes) {
    const cd_shard_planner_use *u = &o->use[use];
    const cd_shard_net_op *x = &h->s->net->op[op];
    const uint32_t m = h->s->store[u->device];
    const double sign = comes ? 1 : -1;
    const uint32_t n = u->of ? u->n_arg : x->n_arg; /* whole: all of everything */
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t a = arg_of(u, i);
        if (a & CD_TE_SHARD_PARTIAL) { /* made here, or brought here from another memory */
            const uint32_t from = a - CD_TE_SHARD_PARTIAL;
            const bool made = i + 1 == u->n_arg && use < o->n_part;
            if (made || (from < o->n_part && h->s->store[o->part[from].device] != m))
                h->held[m] +=
                    sign *
                    box_bytes(&u->box[i], h->s->net->tensor[x->arg[x->n_arg - 1]].element_bytes);
            continue;
        }
        const cd_shard_net_tensor *t = &h->s->net->tensor[x->arg[a]];
        if (!t->constant) touch(h, x->arg[a], m, comes);
        else if (!is_there(h, o, use, i))
            hold_piece(h, x->arg[a], m, u->of ? &u->box[i] : NULL, comes);
    }
}

static void hold(holds *h, uint32_t op, uint32_t option, bool comes) {
    const cd_shard_planner_option *o = &h->s->kind[h->s->node[op].kind].option[option];
    for (uint32_t u = 0; u < o->n_use; u++) hold_use(h, op, o, u, comes);
}

/* The state before any operator is placed: only inputs and results of the network are held. */
static cdmpp_status empty(const cd_shard_planner *s, cd_arena *a, holds *out, cdmpp_err *err) {
    *out = (holds){
        .s = s,
        .a = a,
        .users = cd_arena_zalloc(a, (size_t)s->net->n_tensor + 1, s->n_device * sizeof *out->users),
        .readers = CD_NEWN(a, uint32_t, (size_t)s->net->n_tensor + 1),
        .first = CD_NEWN(a, uint32_t, (size_t)s->net->n_tensor + 1)};
    if (!out->users || !out->readers || !out->first)
        return CD_FAIL(err, ENOMEM, "%u tensors", s->net->n_tensor);
    for (uint32_t k = 0; k < s->net->n_op; k++)
        for (uint32_t i = 0; i + 1 < s->net->op[k].n_arg; i++) out->readers[s->net->op[k].arg[i]]++;
    for (uint32_t t = 0; t < s->net->n_tensor; t++) {
        const cd_shard_net_tensor *v = &s->net->tensor[t];
        if ((v->from == CD_SHARD_NET_OUTSIDE && !v->constant) || v->result)
            touch(out, t, s->store[0], true);
    }
    return CDMPP_OK;
}

/* The memory that is fullest over its limit; CD_SHARD_PLANNER_NONE: all fit. */
static uint32_t over(const holds *h) {
    uint32_t worst = CD_SHARD_PLANNER_NONE;
    double most = 1;
    for (uint32_t m = 0; m < h->s->n_device; m++)
        if (h->s->limit[m] > 0 && h->held[m] > most * h->s->limit[m])
            most = h->held[m] / h->s->limit[m], worst = m;
    return worst;
}

static cdmpp_status check_memory(const holds *h, cdmpp_err *err) {
    return h->oom ? CD_FAIL(err, ENOMEM, "%u pieces of weights", h->n_piece) : CDMPP_OK;
}

cdmpp_status cd_shard_planner_memory_used(const cd_shard_planner *s, const uint32_t *choice,
                                          double *held, uint32_t *full, cdmpp_err *err) {
    cd_arena a = {0};
    holds h;
    cdmpp_status st = empty(s, &a, &h, err);
    for (uint32_t k = 0; !st && k < s->net->n_op; k++) hold(&h, k, choice[k], true);
    if (!st) st = check_memory(&h, err);
    if (!st && held) memcpy(held, h.held, sizeof h.held);
    if (!st) *full = over(&h);
    cd_arena_free(&a);
    return st;
}

/* ---- prices ---- */

/* The bytes of each option by itself, without sharing tensors with other operators: only a guide
 * for prices. */
static cdmpp_status option_bytes(const cd_shard_planner *s, cd_arena *a, double **out,
                                 cdmpp_err *err) {
    size_t n = 0;
    for (uint32_t k = 0; k < s->net->n_op; k++) n += s->node[k].n_some;
    double *v = *out = CD_NEWN(a, double, n * s->n_device + 1);
    holds h;
    if (!v) return CD_FAIL(err, ENOMEM, "%zu options", n);
    CD_TRY(empty(s, a, &h, err));
    for (uint32_t k = 0; k < s->net->n_op; k++)
        for (uint32_t i = 0; i < s->node[k].n_some; i++, v += s->n_device) {
            memset(h.held, 0, sizeof h.held);
            hold(&h, k, s->node[k].some[i], true);
            memcpy(v, h.held, s->n_device * sizeof *v);
            hold(&h, k, s->node[k].some[i], false);
        }
    return check_memory(&h, err);
}

typedef struct {
    const cd_shard_planner *s;
    cd_shard_planner_solve *solve;
    void *ctx;
    const double *bytes;
    double price[CD_MACHINE_DEVICES];
    uint32_t *choice, *best; /* (n_op) */
    double best_s;
    uint32_t full; /* of the last one */
    double wants;  /* bytes there */
} pricing;

/* One plan with the prices scaled; a plan that fits and is the cheapest so far (by its true time,
 * without prices) is kept. */
static cdmpp_status priced(pricing *p, double scale, cdmpp_err *err) {
    double price[CD_MACHINE_DEVICES], held[CD_MACHINE_DEVICES];
    for (uint32_t m = 0; m < p->s->n_device; m++) price[m] = scale * p->price[m];
    CD_TRY(p->solve(p->ctx, p->bytes, price, p->choice, err));
    CD_TRY(cd_shard_planner_memory_used(p->s, p->choice, held, &p->full, err));
    if (p->full != CD_SHARD_PLANNER_NONE) {
        p->wants = held[p->full];
        return CDMPP_OK;
    }
    const double cost = cd_shard_planner_cost(p->s, p->choice, NULL);
    if (!(cost < p->best_s)) return CDMPP_OK;
    p->best_s = cost;
    memcpy(p->best, p->choice, p->s->net->n_op * sizeof *p->best);
    return CDMPP_OK;
}

/* The price of the memory that is over its limit is doubled until the plan fits. It starts where a
 * full memory costs a thousandth of the plan's time. Then all prices are scaled down by bisection,
 * because doubling overshoots. */
static cdmpp_status raise_prices(pricing *p, double total_s, cdmpp_err *err) {
    for (int k = 0; k < DOUBLINGS && p->full != CD_SHARD_PLANNER_NONE; k++) {
        double *x = &p->price[p->full];
        *x = *x > 0 ? 2 * *x : 1e-3 * total_s / p->s->limit[p->full];
        CD_TRY(priced(p, 1, err));
    }
    double lo = 0.25, hi = 1;
    for (int k = 0; k < HALVINGS && isfinite(p->best_s); k++) {
        const double mid = 0.5 * (lo + hi);
        CD_TRY(priced(p, mid, err));
        if (p->full == CD_SHARD_PLANNER_NONE) hi = mid;
        else lo = mid;
    }
    return CDMPP_OK;
}

/* ---- every plan ---- */

typedef struct {
    const cd_shard_planner *s;
    holds h;
    uint32_t *first, *edge;       /* (n_op + 1) edges of which an operator is the later end */
    double *rest;                 /* (n_op + 1) least of all behind */
    uint32_t *at, *choice, *best; /* at: in `some` */
    double best_s;
    uint32_t looks;
} walk;

static double step_cost(const walk *w, uint32_t op) {
    const cd_shard_planner_node *x = &w->s->node[op];
    double t = w->s->kind[x->kind].option[x->some[w->at[op]]].seconds + x->io[x->some[w->at[op]]];
    for (uint32_t i = w->first[op]; i < w->first[op + 1]; i++) {
        const cd_shard_select_edge *e = &w->s->edge[w->edge[i]];
        t += e->seconds[(size_t)w->at[e->from] * w->s->node[e->to].n_some + w->at[e->to]];
    }
    return t;
}

/* Branch and bound, operator by operator: a branch is left when its time so far and the least time
 * of the operators behind reach the best plan, or when a memory is over its limit. At the end the
 * true time counts, because the tables do not contain wake-up times. */
static void step(walk *w, uint32_t op, double cost) {
    if (op == w->s->net->n_op) {
        const double all = cd_shard_planner_cost(w->s, w->choice, NULL);
        if (!(all < w->best_s)) return;
        w->best_s = all;
        memcpy(w->best, w->choice, op * sizeof *w->best);
        return;
    }
    const cd_shard_planner_node *x = &w->s->node[op];
    for (uint32_t i = 0; i < x->n_some && w->looks < MOST_LOOKS; i++) {
        w->looks++;
        w->at[op] = i, w->choice[op] = x->some[i];
        const double now = cost + step_cost(w, op);
        if (!(now + w->rest[op + 1] < w->best_s)) continue;
        hold(&w->h, op, x->some[i], true);
        if (over(&w->h) == CD_SHARD_PLANNER_NONE) step(w, op + 1, now);
        hold(&w->h, op, x->some[i], false);
    }
}

/* rest[k]: the least time of operators k and later without exchanges, the lower bound of the
 * search. The plan that prices found is the first upper bound. all: the search ended before its
 * limit, so the result is exact. */
static cdmpp_status every_plan(const cd_shard_planner *s, cd_arena *a, uint32_t *best,
                               double *best_s, bool *all, cdmpp_err *err) {
    const uint32_t n = s->net->n_op;
    walk w = {.s = s,
              .first = CD_NEWN(a, uint32_t, n + 2),
              .edge = CD_NEWN(a, uint32_t, s->n_edge + 1),
              .rest = CD_NEWN(a, double, n + 1),
              .at = CD_NEWN(a, uint32_t, n + 1),
              .choice = CD_NEWN(a, uint32_t, n + 1),
              .best = best,
              .best_s = *best_s};
    if (!w.first || !w.edge || !w.rest || !w.at || !w.choice)
        return CD_FAIL(err, ENOMEM, "%u operators", n);
    CD_TRY(empty(s, a, &w.h, err));
    uint32_t at = 0;
    for (uint32_t k = 0; k < n; k++) {
        w.first[k] = at;
        for (uint32_t e = 0; e < s->n_edge; e++)
            if (s->edge[e].to == k) w.edge[at++] = e;
    }
    w.first[n] = at;
    w.rest[n] = 0;
    for (uint32_t k = n; k-- > 0;) {
        double least = (double)INFINITY;
        for (uint32_t i = 0; i < s->node[k].n_some; i++)
            least = fmin(least, s->kind[s->node[k].kind].option[s->node[k].some[i]].seconds +
                                    s->node[k].io[s->node[k].some[i]]);
        w.rest[k] = w.rest[k + 1] + least * (1 - 1e-12);
    }
    step(&w, 0, 0);
    CD_TRY(check_memory(&w.h, err));
    *best_s = w.best_s;
    *all = w.looks < MOST_LOOKS;
    return CDMPP_OK;
}

/* ---- the best that fits ---- */

/* Prices first: they find a good plan quickly for any size, and that plan cuts the search off
 * early. Only the full search, for few operators, proves that a plan is the best or that none
 * fits. */
cdmpp_status cd_shard_planner_solve_within(const cd_shard_planner *s, cd_shard_planner_solve *solve,
                                           void *ctx, double total_s, uint32_t *choice, bool *exact,
                                           cdmpp_err *err) {
    cd_arena a = {0};
    bool all = false;
    double *bytes = NULL;
    pricing p = {.s = s,
                 .solve = solve,
                 .ctx = ctx,
                 .best_s = (double)INFINITY,
                 .choice = CD_NEWN(&a, uint32_t, (size_t)s->net->n_op + 1),
                 .best = CD_NEWN(&a, uint32_t, (size_t)s->net->n_op + 1)};
    cdmpp_status st =
        p.choice && p.best ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    if (!st) st = option_bytes(s, &a, &bytes, err);
    p.bytes = bytes;
    if (!st) st = priced(&p, 0, err);
    if (!st) st = raise_prices(&p, total_s, err);
    if (!st && s->net->n_op <= MOST_OPS) st = every_plan(s, &a, p.best, &p.best_s, &all, err);
    if (!st && !isfinite(p.best_s))
        st = CD_FAIL(err, EINVALID,
                     "no plan fits%s: with bytes as dear as can be, %.6g GB would be in the memory "
                     "of %s, which has %.6g",
                     all ? "" : " that was found", p.wants * 1e-9,
                     p.full == CD_SHARD_PLANNER_NONE ? "?" : s->m->device[p.full].name,
                     p.full == CD_SHARD_PLANNER_NONE ? 0 : s->limit[p.full] * 1e-9);
    if (!st) memcpy(choice, p.best, s->net->n_op * sizeof *choice);
    *exact = all;
    cd_arena_free(&a);
    return st;
}

/* The request of a plan checked before anything is computed, and its defaults filled in: later
 * files rely on what is checked here. */

static double or (double v, double otherwise) { return isnan(v) ? otherwise : v; }

static cdmpp_status settings(cd_shard_planner *s, const cd_shard_plan_options *a, cdmpp_err *err) {
    s->granules = a->granules ? a->granules : 8;
    s->margin = or (a->margin, 0.05), s->least_s = or (a->least_s, 20e-6),
    s->cover = or (a->cover, 1), s->fixed = or (a->fixed_share, 0.5);
    if (s->granules < 2 || s->granules > 256)
        return CD_FAIL(err, ERANGE, "%u granules: expected 2 to 256", s->granules);
    if (!(s->margin >= 0 && s->margin <= 1))
        return CD_FAIL(err, ERANGE, "margin %g: expected 0 to 1", s->margin);
    if (!(s->least_s >= 0))
        return CD_FAIL(err, ERANGE, "least saving of %g s: expected 0 or more", s->least_s);
    if (!(a->steady >= 0 && a->steady <= 1))
        return CD_FAIL(err, ERANGE, "steady %g: expected 0 to 1", a->steady);
    if (!(s->cover >= 0 && s->cover <= 1))
        return CD_FAIL(err, ERANGE, "cover %g: expected 0 to 1", s->cover);
    if (!(s->fixed >= 0 && s->fixed <= 1))
        return CD_FAIL(err, ERANGE, "fixed share %g: expected 0 to 1", s->fixed);
    return CDMPP_OK;
}

static cdmpp_status machine(cd_shard_planner *s, const cd_machine *m, cdmpp_err *err) {
    if (!m->n || m->n > CD_MACHINE_DEVICES)
        return CD_FAIL(err, EINVALID, "%u devices: expected 1 to %d", m->n, CD_MACHINE_DEVICES);
    for (uint32_t d = 0; d < m->n; d++) {
        const cd_machine_device *v = &m->device[d];
        if (!(v->launch_s >= 0 && isfinite(v->launch_s) && v->sync_s >= 0 && isfinite(v->sync_s)))
            return CD_FAIL(err, ERANGE, "device %s: launch %g s, sync %g s", v->name, v->launch_s,
                           v->sync_s);
        if (!(v->mem_gb >= 0 && isfinite(v->mem_gb)))
            return CD_FAIL(err, ERANGE, "device %s: a memory of %g GB", v->name, v->mem_gb);
        for (uint32_t e = 0; e < m->n; e++)
            s->link[d][e] = cd_link_table_find(&m->links, v->name, m->device[e].name);
    }
    s->contention = m->contention;
    if (!(s->contention.beside >= 1)) s->contention.beside = 1;
    if (!(s->contention.turn >= 1)) s->contention.turn = 1;
    return CDMPP_OK;
}

/* A tensor with more dimensions than a box has is flattened to one dimension: its boxes can only be
 * runs of memory. The limit on elements keeps sizes in bytes within 64 bits. */
static cdmpp_status tensor(cd_shard_planner *s, uint32_t t, cdmpp_err *err) {
    const cd_shard_net_tensor *v = &s->net->tensor[t];
    cd_shard_planner_shape *o = &s->shape[t];
    int64_t *flat;
    o->elements = 1;
    for (uint32_t d = 0; d < v->rank; d++)
        if (v->shape[d] < 0 || __builtin_mul_overflow(o->elements, v->shape[d], &o->elements) ||
            o->elements > INT64_MAX / 64)
            return CD_FAIL(err, ERANGE, "tensor %s: %lld elements in dimension %u", v->name,
                           (long long)v->shape[d], d);
    if (v->from != CD_SHARD_NET_OUTSIDE && v->from >= s->net->n_op)
        return CD_FAIL(err, EINVALID, "tensor %s is of operator %u of %u", v->name, v->from,
                       s->net->n_op);
    o->rank = v->rank, o->n = v->shape;
    if (v->rank <= CD_BOX_RANK) return CDMPP_OK;
    if (!(flat = CD_NEW(&s->arena, int64_t))) return CD_FAIL(err, ENOMEM, "tensor %s", v->name);
    *flat = o->elements, o->rank = 1, o->n = flat;
    return CDMPP_OK;
}

static int64_t elements_of(const cd_te_dag *dag, uint32_t arg) {
    const cd_te_op *o = &dag->op[dag->tensor_op[dag->arg[arg]]];
    int64_t n = 1;
    for (uint32_t d = 0; d < o->rank; d++)
        if (__builtin_mul_overflow(n, o->shape[d], &n)) return -1;
    return n;
}

/* Operators must come in an order to run in, and a definition must agree with the network's tensors
 * in the number of elements of each argument. Shapes may differ, because a view has the shape of
 * the definition. */
static cdmpp_status operator_of(const cd_shard_planner *s, uint32_t k, cdmpp_err *err) {
    const cd_shard_net_op *o = &s->net->op[k];
    if (o->dag && o->dag->n_arg != o->n_arg)
        return CD_FAIL(err, EINVALID, "operator %s has %u arguments, its definition %u", o->name,
                       o->n_arg, o->dag->n_arg);
    if (o->pin != UINT32_MAX && o->pin >= s->n_device)
        return CD_FAIL(err, EINVALID, "operator %s is pinned to device %u of %u", o->name, o->pin,
                       s->n_device);
    for (uint32_t i = 0; i < o->n_arg; i++) {
        if (o->arg[i] >= s->net->n_tensor)
            return CD_FAIL(err, EINVALID, "operator %s reads tensor %u of %u", o->name, o->arg[i],
                           s->net->n_tensor);
        const cd_shard_net_tensor *t = &s->net->tensor[o->arg[i]];
        if (t->from != CD_SHARD_NET_OUTSIDE && t->from > k)
            return CD_FAIL(
                err, EINVALID,
                "operator %s reads %s of %s, which comes behind it: a cycle, or a wrong order",
                o->name, t->name, s->net->op[t->from].name);
        if (o->dag && elements_of(o->dag, i) != s->shape[o->arg[i]].elements)
            return CD_FAIL(err, EINVALID,
                           "operator %s: argument %u has %lld elements, tensor %s %lld", o->name, i,
                           (long long)elements_of(o->dag, i), t->name,
                           (long long)s->shape[o->arg[i]].elements);
    }
    return CDMPP_OK;
}

cdmpp_status cd_shard_planner_begin(cd_shard_planner *s, const cd_shard_plan_options *a,
                                    cdmpp_err *err) {
    *s = (cd_shard_planner){.ask = a, .net = a->net, .m = a->machine, .n_device = a->machine->n};
    CD_TRY(settings(s, a, err));
    CD_TRY(machine(s, a->machine, err));
    shard_planner_memory_limits(s);
    s->shape = CD_NEWN(&s->arena, cd_shard_planner_shape, (size_t)s->net->n_tensor + 1);
    s->node = CD_NEWN(&s->arena, cd_shard_planner_node, (size_t)s->net->n_op + 1);
    s->kind = CD_NEWN(&s->arena, cd_shard_planner_kind, (size_t)s->net->n_op + 1);
    if (!s->shape || !s->node || !s->kind)
        return CD_FAIL(err, ENOMEM, "%u operators", s->net->n_op);
    for (uint32_t t = 0; t < s->net->n_tensor; t++) CD_TRY(tensor(s, t, err));
    for (uint32_t k = 0; k < s->net->n_op; k++) CD_TRY(operator_of(s, k, err));
    return CDMPP_OK;
}

/* Checks that a plan from a file belongs to a network, and lists the axes over which a network can
 * be split at all. */

static const char *text(const char *s) { return s ? s : ""; }

/* ---- a plan of a file ---- */

/* A split must be over an axis that the operator has, with the same name and number, and the parts
 * must cover all of it. The replay and the printed text rely on this. */
static cdmpp_status way_fits(const cd_shard_plan_op *p, const cd_shard_net_op *o, cd_arena *a,
                             cdmpp_err *err) {
    cd_te_shard_axis *w;
    uint32_t n, at = 0;
    if (!p->dim || !p->dim[0]) return CDMPP_OK;
    if (!o->dag) return CD_FAIL(err, ESCHEMA, "split over %.20s, and nothing defines it", p->dim);
    CD_TRY(cd_te_shard_axes(o->dag, a, &w, &n, err));
    while (at < n && (w[at].reduce != p->reduce || w[at].op != p->way_op || w[at].axis != p->axis ||
                      strcmp(w[at].name, p->dim) != 0))
        at++;
    if (at == n)
        return CD_FAIL(err, ESCHEMA,
                       "cannot be split over %.20s, %s %u of operator %u of its definition", p->dim,
                       p->reduce ? "sum" : "axis", p->axis, p->way_op);
    const int64_t end = p->part[p->n_part - 1].hi;
    return end == w[at].extent ? CDMPP_OK
                               : CD_FAIL(err, ESCHEMA, "parts of %.20s end at %lld of %lld", p->dim,
                                         (long long)end, (long long)w[at].extent);
}

static cdmpp_status op_fits(const cd_shard_plan_op *p, const cd_shard_net_op *o, uint32_t k,
                            cd_arena *a, cdmpp_err *err) {
    if (strcmp(text(p->key), text(o->key)) != 0 || strcmp(text(p->name), text(o->name)) != 0)
        return CD_FAIL(err, ESCHEMA,
                       "a plan of another network, batch or size: operator %u is %.60s %.120s "
                       "there, %.60s %.120s here",
                       k, text(p->name), text(p->key), text(o->name), text(o->key));
    return cd_err_key(err, cd_err_key(err, way_fits(p, o, a, err), text(o->name)), "operators");
}

cdmpp_status cd_shard_plan_fits(const cd_shard_plan *p, const cd_shard_net *net, cdmpp_err *err) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    if (p->n_op != net->n_op)
        return CD_FAIL(err, ESCHEMA, "a plan of another network: %.60s has %u operators, %.60s %u",
                       text(p->network), p->n_op, text(net->name), net->n_op);
    for (uint32_t k = 0; k < net->n_op && !st; k++) {
        cd_arena_reset(&a);
        st = op_fits(&p->op[k], &net->op[k], k, &a, err);
    }
    cd_arena_free(&a);
    for (uint32_t k = 0; k < p->n_copy && !st; k++)
        if (p->copy[k].tensor >= net->n_tensor)
            st = CD_FAIL(err, ESCHEMA, "copy %u of the plan is of tensor %u, and there are %u", k,
                         p->copy[k].tensor, net->n_tensor);
    return st;
}

/* ---- names ---- */

static bool has(const char *const *name, uint32_t n, const char *s) {
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(name[i], s)) return true;
    return false;
}

/* Axes with the same name count once. Only the list of pointers grows; an outgrown list stays in
 * the arena. */
cdmpp_status cd_shard_net_dims(const cd_shard_net *net, cd_arena *a, const char *const **out,
                               uint32_t *n, cdmpp_err *err) {
    const char **name = NULL;
    uint32_t cap = 0;
    *n = 0;
    for (uint32_t k = 0; k < net->n_op; k++) {
        cd_te_shard_axis *w;
        uint32_t n_way = 0;
        if (net->op[k].dag)
            CD_TRY(cd_err_key(err, cd_te_shard_axes(net->op[k].dag, a, &w, &n_way, err),
                              net->op[k].name));
        for (uint32_t i = 0; i < n_way; i++) {
            if (has(name, *n, w[i].name)) continue;
            if (CD_GROW_IN(a, name, *n, cap)) return CD_FAIL(err, ENOMEM, "%u dimensions", *n);
            name[(*n)++] = w[i].name;
        }
    }
    *out = name;
    return CDMPP_OK;
}
