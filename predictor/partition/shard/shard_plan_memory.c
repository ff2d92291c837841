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

#include "predictor/partition/shard/shard_plan_internal.h"

enum { MOST_OPS = 64, DOUBLINGS = 40, HALVINGS = 8 };
#define MOST_LOOKS 3000000u

/* ---- memories ---- */

void cd_shard_planner_memory_limits(cd_shard_planner *s) {
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
