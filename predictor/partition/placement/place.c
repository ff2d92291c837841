/* Placements checked and costed, then the methods in the order of their strength: the exact one
 * where it applies, else bounds and local search. */
#include "predictor/partition/placement/place.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "predictor/partition/placement/place_internal.h"
#include "predictor/partition/placement/variable_elimination.h"

/* The least sum of seconds and copies: a minimum cut on two devices, which is always exact,
 * variable elimination on more, which is exact on narrow graphs only. */

typedef struct cd_place_cut_arc {
    uint32_t from, to;
    int64_t there, back; /* >= 0; together below 2^62 over all arcs */
} cd_place_cut_arc;

/* Minimum cut by Dinic's algorithm. Depth-first search keeps its own stack, because a network can
 * be thousands of operators deep. */

typedef struct {
    uint32_t n_node, source, sink;
    uint32_t *first, *to, *twin; /* arcs of node v: first[v] .. first[v+1]; the arc back */
    int64_t *room;
    uint32_t *level, *at, *queue, *path;
} net;

/* A counting sort of the arcs by node. Each arc is stored twice, once at either end, and twin leads
 * from one to the other. */
static cdmpp_status build(cd_arena *a, const cd_place_cut_arc *arc, uint32_t n_arc, net *g,
                          cdmpp_err *err) {
    const size_t n = (size_t)g->n_node + 2, m = (size_t)n_arc * 2 + 1;
    g->first = CD_NEWN(a, uint32_t, n + 1), g->to = CD_NEWN(a, uint32_t, m),
    g->twin = CD_NEWN(a, uint32_t, m), g->room = CD_NEWN(a, int64_t, m);
    g->level = CD_NEWN(a, uint32_t, n), g->at = CD_NEWN(a, uint32_t, n),
    g->queue = CD_NEWN(a, uint32_t, n), g->path = CD_NEWN(a, uint32_t, n);
    if (!g->first || !g->to || !g->twin || !g->room || !g->level || !g->at || !g->queue || !g->path)
        return CD_FAIL(err, ENOMEM, "cut of %u nodes", g->n_node);
    for (uint32_t k = 0; k < n_arc; k++) g->first[arc[k].from + 2]++, g->first[arc[k].to + 2]++;
    for (uint32_t v = 0; v < g->n_node; v++) g->first[v + 2] += g->first[v + 1];
    for (uint32_t k = 0; k < n_arc; k++) {
        const uint32_t i = g->first[arc[k].from + 1]++, j = g->first[arc[k].to + 1]++;
        g->to[i] = arc[k].to, g->twin[i] = j, g->room[i] = arc[k].there;
        g->to[j] = arc[k].from, g->twin[j] = i, g->room[j] = arc[k].back;
    }
    return CDMPP_OK;
}

static bool levels(net *g) {
    uint32_t n = 1;
    memset(g->level, 0, g->n_node * sizeof *g->level);
    g->level[g->source] = 1, g->queue[0] = g->source;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t v = g->queue[i];
        for (uint32_t j = g->first[v]; j < g->first[v + 1]; j++)
            if (g->room[j] > 0 && !g->level[g->to[j]])
                g->level[g->to[j]] = g->level[v] + 1, g->queue[n++] = g->to[j];
    }
    return g->level[g->sink] != 0;
}

static int64_t push(net *g, uint32_t depth) {
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < depth; i++)
        if (g->room[g->path[i]] < least) least = g->room[g->path[i]];
    for (uint32_t i = 0; i < depth; i++)
        g->room[g->path[i]] -= least, g->room[g->twin[g->path[i]]] += least;
    return least;
}

/* Paths of one round of levels, with the path as a stack of arcs. */
static int64_t blocking(net *g) {
    int64_t sum = 0;
    uint32_t depth = 0, v = g->source;
    memcpy(g->at, g->first, g->n_node * sizeof *g->at);
    for (;;) {
        if (v == g->sink) {
            sum += push(g, depth);
            uint32_t keep = 0;
            while (keep < depth && g->room[g->path[keep]] > 0) keep++;
            v = g->to[g->twin[g->path[keep]]], depth = keep;
            continue;
        }
        uint32_t j = g->at[v];
        while (j < g->first[v + 1] && !(g->room[j] > 0 && g->level[g->to[j]] == g->level[v] + 1))
            j++;
        g->at[v] = j;
        if (j < g->first[v + 1]) {
            g->path[depth++] = j;
            v = g->to[j];
        } else if (depth) {
            v = g->to[g->twin[g->path[--depth]]];
            g->at[v]++;
        } else return sum;
    }
}

/* side (n_node). Errors: ENOMEM. */
static cdmpp_status place_cut_solve(const cd_place_cut_arc *arc, uint32_t n_arc, uint32_t n_node,
                                    uint32_t source, uint32_t sink, bool *side, int64_t *flow,
                                    cdmpp_err *err) {
    cd_arena own = {0};
    net g = {.n_node = n_node, .source = source, .sink = sink};
    const cdmpp_status st = build(&own, arc, n_arc, &g, err);
    *flow = 0;
    if (!st) {
        while (levels(&g)) *flow += blocking(&g);
        for (uint32_t v = 0; v < n_node; v++) side[v] = g.level[v] != 0;
    }
    cd_arena_free(&own);
    return st;
}

/* ---- two devices ---- Operator on device 0: with the source. Cutting source -> k costs its
 * seconds on 1, k -> sink those on 0. A value read on the other side pays once through a node of
 * its own: from -> x at the copy's cost and x -> readers without end, and back likewise. */

typedef struct {
    cd_place_cut_arc *arc;
    uint32_t n;
    double scale;
    int64_t never;
} arcs;

static int64_t whole(const arcs *c, double s) {
    return isfinite(s) ? (int64_t)(s * c->scale + 0.5) : c->never;
}

static void put(arcs *c, uint32_t from, uint32_t to, int64_t there) {
    if (there > 0) c->arc[c->n++] = (cd_place_cut_arc){from, to, there, 0};
}

static double all_costs(const cd_place_net *g) {
    const cd_place_problem *p = g->p;
    double sum = 0;
    for (uint32_t k = 0; k < p->n_op; k++)
        for (uint32_t d = 0; d < 2; d++)
            if (isfinite(cd_place_seconds(p, k, d))) sum += cd_place_seconds(p, k, d);
    for (uint32_t v = 0; v < p->n_value; v++)
        for (uint32_t d = 0; d < 2; d++) {
            const double s = cd_place_copy_s(g, p->value[v].bytes, d, 1 - d);
            if (isfinite(s)) sum += s;
        }
    return sum;
}

/* Each value has two nodes: `down` for the copy from device 0 to 1, `up` for the copy back. Arcs to
 * readers can never be cut, so the one arc of the value is paid once, however many readers are on
 * the other side. */
static void draw(const cd_place_net *g, arcs *c, uint32_t source, uint32_t sink) {
    const cd_place_problem *p = g->p;
    for (uint32_t k = 0; k < p->n_op; k++) {
        put(c, source, k, whole(c, cd_place_seconds(p, k, 1)));
        put(c, k, sink, whole(c, cd_place_seconds(p, k, 0)));
    }
    for (uint32_t v = 0; v < p->n_value; v++) {
        const uint32_t from = p->value[v].from, down = p->n_op + 2 * v, up = down + 1;
        put(c, from, down, whole(c, cd_place_copy_s(g, p->value[v].bytes, 0, 1)));
        put(c, up, from, whole(c, cd_place_copy_s(g, p->value[v].bytes, 1, 0)));
        for (uint32_t j = g->first_reader[v]; j < g->first_reader[v + 1]; j++) {
            put(c, down, g->reader[j], c->never);
            put(c, g->reader[j], up, c->never);
        }
    }
}

/* Places of the least sum on two devices; scaled to whole numbers of 2^-44 of all costs or less.
 * Errors: ENOMEM. */
static cdmpp_status place_solve_by_cut(cd_place_net *g, uint32_t *where, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    const size_t most =
        2 * (size_t)p->n_op + 2 * (size_t)p->n_value + 2 * (size_t)g->first_reader[p->n_value];
    const size_t n_node = (size_t)p->n_op + 2 * (size_t)p->n_value + 2;
    if (most >= UINT32_MAX / 2 || n_node >= UINT32_MAX / 2)
        return CD_FAIL(err, ERANGE, "cut of %zu arcs", most);
    /* all capacities together below 2^60: 2^bits for the costs, one more each for what must never
     * be cut */
    int bits = 9;
    while (most >> (58 - bits) == 0 && bits < 50) bits++;
    const double sum = all_costs(g);
    arcs c = {.arc = CD_NEWN(g->a, cd_place_cut_arc, most + 1),
              .scale = sum > 0 ? ldexp(1, bits) / sum : 1,
              .never = (int64_t)1 << (bits + 1)};
    bool *side = CD_NEWN(g->a, bool, n_node);
    if (!c.arc || !side) return CD_FAIL(err, ENOMEM, "cut of %zu arcs", most);
    int64_t flow;
    const uint32_t source = (uint32_t)n_node - 2, sink = source + 1;
    draw(g, &c, source, sink);
    CD_TRY(place_cut_solve(c.arc, c.n, (uint32_t)n_node, source, sink, side, &flow, err));
    for (uint32_t k = 0; k < p->n_op; k++) where[k] = !side[k];
    g->looked += n_node;
    return CDMPP_OK;
}

/* ---- any number: choices are operators in their order, and for a value of many readers the set of
 * devices that have it ---- */

typedef struct {
    cd_variable_elimination e;
    uint32_t *size;
    cd_variable_elimination_table *table;
    cd_place_net *g;
} tables;

static double *add_table(tables *t, const uint32_t *var, uint32_t n) {
    size_t states = 1;
    for (uint32_t i = 0; i < n; i++) states *= t->size[var[i]];
    uint32_t *own = CD_NEWN(t->g->a, uint32_t, n);
    double *cost = CD_NEWN(t->g->a, double, states);
    if (!own || !cost) return NULL;
    memcpy(own, var, n * sizeof *own);
    t->table[t->e.n_table++] = (cd_variable_elimination_table){n, own, cost};
    return cost;
}

/* One or two readers: a table over all of them. */
static bool add_small(tables *t, uint32_t v) {
    const cd_place_net *g = t->g;
    const uint32_t *reader = &g->reader[g->first_reader[v]],
                   n = g->first_reader[v + 1] - g->first_reader[v], D = g->p->n_device;
    const uint32_t var[3] = {g->pos[g->p->value[v].from], g->pos[reader[0]],
                             n > 1 ? g->pos[reader[1]] : 0};
    double *cost = add_table(t, var, n + 1);
    if (!cost) return false;
    const int64_t bytes = g->p->value[v].bytes;
    for (uint32_t a = 0; a < D; a++)
        for (uint32_t b = 0; b < D; b++) {
            if (n == 1) cost[a * D + b] = cd_place_copy_s(g, bytes, a, b);
            for (uint32_t c = 0; c < D && n > 1; c++)
                cost[(a * D + b) * D + c] = cd_place_copy_s(g, bytes, a, b) +
                                            (c == b ? 0 : cd_place_copy_s(g, bytes, a, c));
        }
    return true;
}

/* Three and more readers: a variable of its own, the set of devices that have the value, as bits. A
 * set without the maker's or a reader's device costs infinity. So every table has two variables,
 * however many readers there are. */
static bool add_wide(tables *t, uint32_t v) {
    const cd_place_net *g = t->g;
    const uint32_t D = g->p->n_device;
    const uint32_t set = t->e.n_var++;
    const uint32_t from[2] = {g->pos[g->p->value[v].from], set};
    t->size[set] = 1u << D;
    double *cost = add_table(t, from, 2);
    if (!cost) return false;
    for (uint32_t a = 0; a < D; a++)
        for (uint32_t m = 0; m < 1u << D; m++) {
            double sum = m >> a & 1 ? 0 : (double)INFINITY;
            for (uint32_t b = 0; b < D; b++)
                if (m >> b & 1) sum += cd_place_copy_s(g, g->p->value[v].bytes, a, b);
            cost[(a << D) + m] = sum;
        }
    for (uint32_t j = g->first_reader[v]; j < g->first_reader[v + 1]; j++) {
        const uint32_t to[2] = {g->pos[g->reader[j]], set};
        if (!(cost = add_table(t, to, 2))) return false;
        for (uint32_t b = 0; b < D; b++)
            for (uint32_t m = 0; m < 1u << D; m++)
                cost[(b << D) + m] = m >> b & 1 ? 0 : (double)INFINITY;
    }
    return true;
}

/* Variable pos[k] is operator k, so elimination sees the topological order; the sets of add_wide
 * come behind all operators. */
static cdmpp_status make_tables(tables *t, cdmpp_err *err) {
    const cd_place_problem *p = t->g->p;
    const size_t n = (size_t)p->n_op + p->n_value + 1;
    t->size = CD_NEWN(t->g->a, uint32_t, n);
    t->table = CD_NEWN(t->g->a, cd_variable_elimination_table, n + t->g->first_reader[p->n_value]);
    bool ok = t->size && t->table;
    t->e = (cd_variable_elimination){
        .n_var = p->n_op, .n_main = p->n_op, .size = t->size, .table = t->table};
    for (uint32_t k = 0; k < p->n_op && ok; k++) t->size[k] = p->n_device;
    for (uint32_t k = 0; k < p->n_op && ok; k++) {
        double *cost = add_table(t, &t->g->pos[k], 1);
        ok = cost != NULL;
        for (uint32_t d = 0; d < p->n_device && ok; d++) cost[d] = cd_place_seconds(p, k, d);
    }
    for (uint32_t v = 0; v < p->n_value && ok; v++) {
        const uint32_t m = t->g->first_reader[v + 1] - t->g->first_reader[v];
        if (m) ok = m < 3 ? add_small(t, v) : add_wide(t, v);
    }
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "tables of %u operators", p->n_op);
}

/* The sets that a placement needs. */
static void fill_sets(const cd_place_net *g, uint32_t *choice) {
    uint32_t set = g->p->n_op;
    for (uint32_t v = 0; v < g->p->n_value; v++) {
        if (g->first_reader[v + 1] - g->first_reader[v] < 3) continue;
        choice[set] = 1u << choice[g->pos[g->p->value[v].from]];
        for (uint32_t j = g->first_reader[v]; j < g->first_reader[v + 1]; j++)
            choice[set] |= 1u << choice[g->pos[g->reader[j]]];
        set++;
    }
}

/* On any number; where must hold a placement to begin with. *exact: nothing is better. Errors:
 * ENOMEM. */
static cdmpp_status place_solve_by_elimination(cd_place_net *g, uint64_t effort, uint32_t *where,
                                               bool *exact, cdmpp_err *err) {
    tables t = {.g = g};
    CD_TRY(make_tables(&t, err));
    uint32_t *choice = CD_NEWN(g->a, uint32_t, (size_t)t.e.n_var + 1);
    if (!choice) return CD_FAIL(err, ENOMEM, "%u choices", t.e.n_var);
    for (uint32_t k = 0; k < g->p->n_op; k++) choice[g->pos[k]] = where[k];
    fill_sets(g, choice);
    bool wide;
    CD_TRY(cd_variable_elimination_solve(&t.e, 1u << 18, choice, &wide, &g->looked, err));
    *exact = !wide;
    if (wide)
        CD_TRY(cd_variable_elimination_improve(&t.e, 1u << 12, effort, choice, &g->looked, err));
    for (uint32_t k = 0; k < g->p->n_op; k++) where[k] = choice[g->pos[k]];
    return CDMPP_OK;
}

/* The least makespan: branch and bound for small graphs, list scheduling and search for the others.
 * Every placement is replayed. */

/* ---- branch and bound ---- Operators in their order, one device after the other. Lower bounds of
 * all placements that begin like the current one:
 *   chain  the end of an operator if nothing ever waited, and behind it the fastest of all that
 *          follow
 *   load   what a device has already, over its workers; all that is placed and the fastest of the
 *          rest, over all workers */

typedef struct {
    cd_place_net *g;
    /* (n_op) fastest anywhere; longest chain of those from k on, k left out; of order[i..], summed
     * (n_op + 1) */
    double *fast, *tail, *rest;
    double *end; /* (n_op) of what is placed */
    uint32_t *now, *best, *try_at;
    double load[CD_PLACE_MAX_DEVICE + 1], span;
    double *chain; /* (n_op + 1) bound by chains before depth i */
    uint32_t workers[CD_PLACE_MAX_DEVICE], all_workers;
} branch;

static double after(const branch *b, uint32_t k, uint32_t d) {
    double start = 0;
    for (uint32_t j = b->g->first_in[k]; j < b->g->first_in[k + 1]; j++) {
        const uint32_t from = b->g->in[j];
        start =
            fmax(start, b->end[from] + cd_place_copy_s(b->g, b->g->bytes[from], b->now[from], d));
    }
    return start + cd_place_seconds(b->g->p, k, d);
}

/* From the last operator to the first, because the tail of an operator needs the tails of its
 * readers. */
static cdmpp_status branch_start(branch *b, cdmpp_err *err) {
    const cd_place_net *g = b->g;
    const size_t n = (size_t)g->p->n_op + 2;
    b->fast = CD_NEWN(g->a, double, n), b->tail = CD_NEWN(g->a, double, n),
    b->rest = CD_NEWN(g->a, double, n), b->end = CD_NEWN(g->a, double, n);
    b->chain = CD_NEWN(g->a, double, n), b->now = CD_NEWN(g->a, uint32_t, n),
    b->try_at = CD_NEWN(g->a, uint32_t, n);
    if (!b->fast || !b->tail || !b->rest || !b->end || !b->chain || !b->now || !b->try_at)
        return CD_FAIL(err, ENOMEM, "%u operators", g->p->n_op);
    for (uint32_t i = g->p->n_op; i-- > 0;) {
        const uint32_t k = g->order[i];
        b->fast[k] = (double)INFINITY;
        for (uint32_t d = 0; d < g->p->n_device; d++)
            b->fast[k] = fmin(b->fast[k], cd_place_seconds(g->p, k, d));
        for (uint32_t j = g->first_out[k]; j < g->first_out[k + 1]; j++)
            b->tail[k] = fmax(b->tail[k], b->fast[g->out[j]] + b->tail[g->out[j]]);
        b->rest[i] = b->rest[i + 1] + b->fast[k];
        b->chain[0] = fmax(b->chain[0], b->fast[k] + b->tail[k]);
    }
    for (uint32_t d = 0; d < g->p->n_device; d++)
        b->workers[d] = g->p->device[d].workers ? g->p->device[d].workers : 1,
        b->all_workers += b->workers[d];
    return CDMPP_OK;
}

/* Below all placements that begin with order[0..i) as they are now. */
static double below(const branch *b, uint32_t i) {
    double most = b->chain[i], sum = b->rest[i];
    for (uint32_t d = 0; d < b->g->p->n_device; d++)
        most = fmax(most, b->load[d] / b->workers[d]), sum += b->load[d];
    return fmax(most, sum / b->all_workers);
}

static cdmpp_status leaf(branch *b, cdmpp_err *err) {
    double span;
    CD_TRY(cd_place_makespan(b->g, b->now, &span, NULL, err));
    if (!(span < b->span)) return CDMPP_OK;
    b->span = span;
    memcpy(b->best, b->now, b->g->p->n_op * sizeof *b->best);
    return CDMPP_OK;
}

/* One step: operator order[i] on the next device, or back. Returns the depth to go on at;
 * UINT32_MAX: all is seen. */
static uint32_t advance(branch *b, uint32_t i) {
    const cd_place_problem *p = b->g->p;
    const uint32_t k = b->g->order[i], d = b->try_at[i]++;
    if (d > 0)
        b->load[d - 1] -=
            cd_place_seconds(p, k, d - 1) < (double)INFINITY ? cd_place_seconds(p, k, d - 1) : 0;
    if (d == p->n_device) return b->try_at[i] = 0, i ? i - 1 : UINT32_MAX;
    const double s = cd_place_seconds(p, k, d);
    if (isinf(s)) return i;
    b->now[k] = d, b->load[d] += s;
    b->end[k] = after(b, k, d);
    b->chain[i + 1] = fmax(b->chain[i], b->end[k] + b->tail[k]);
    return isinf(b->end[k]) || below(b, i + 1) >= b->span * (1 - 1e-12) ? i : i + 1;
}

/* The makespan: from `where` (of *span) to a better one; *bound below all. Errors: ENOMEM. */
static cdmpp_status place_bound(cd_place_net *g, uint64_t effort, uint32_t *where, double *span,
                                double *bound, bool *exact, cdmpp_err *err) {
    branch b = {.g = g, .best = where, .span = *span};
    CD_TRY(branch_start(&b, err));
    *bound = below(&b, 0) * (1 - 1e-12); /* sums in another order */
    *exact = false;
    const uint64_t end = g->looked + effort;
    for (uint32_t i = 0; i != UINT32_MAX;) {
        if (g->looked >= end) return *span = b.span, CDMPP_OK;
        if (i == g->p->n_op) {
            CD_TRY(leaf(&b, err));
            if (!i--) break;
            continue;
        }
        i = advance(&b, i);
        g->looked++;
    }
    *exact = true;
    *span = b.span;
    if (isfinite(b.span)) *bound = b.span;
    return CDMPP_OK;
}

/* ---- list scheduling ---- */

typedef struct {
    uint32_t op;
    double rank;
} ranked;

static int by_rank(const void *pa, const void *pb) {
    const ranked *a = pa, *b = pb;
    return a->rank != b->rank ? (a->rank < b->rank) - (a->rank > b->rank)
                              : (a->op > b->op) - (a->op < b->op);
}

static double mean_seconds(const cd_place_problem *p, uint32_t k) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t d = 0; d < p->n_device; d++)
        if (isfinite(cd_place_seconds(p, k, d))) sum += cd_place_seconds(p, k, d), n++;
    return n ? sum / n : 0;
}

static double mean_copy(const cd_place_net *g, int64_t bytes) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t a = 0; a < g->p->n_device; a++)
        for (uint32_t b = 0; b < g->p->n_device; b++)
            if (isfinite(cd_place_copy_s(g, bytes, a, b)))
                sum += cd_place_copy_s(g, bytes, a, b), n++;
    return n ? sum / n : 0;
}

/* When k would end on d: its device's first free worker, its inputs there, copies one after the
 * other on their links. */
static double would_end(const cd_place_net *g, const uint32_t *where, const double *end,
                        double link_free[][CD_PLACE_MAX_DEVICE], double free_at, uint32_t k,
                        uint32_t d, bool book) {
    double start = free_at;
    for (uint32_t j = g->first_in[k]; j < g->first_in[k + 1]; j++) {
        const uint32_t from = g->in[j], a = where[from];
        double there = end[from];
        if (a != d) {
            there = fmax(there, link_free[a][d]) + cd_place_copy_s(g, g->bytes[from], a, d);
            if (book) link_free[a][d] = there;
        }
        start = fmax(start, there);
    }
    return start + cd_place_seconds(g->p, k, d);
}

static cdmpp_status place_list_schedule(cd_place_net *g, uint32_t *where, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    ranked *r = CD_NEWN(g->a, ranked, (size_t)p->n_op + 1);
    double *rank = CD_NEWN(g->a, double, (size_t)p->n_op + 1),
           *end = CD_NEWN(g->a, double, (size_t)p->n_op + 1);
    if (!r || !rank || !end) return CD_FAIL(err, ENOMEM, "%u operators", p->n_op);
    for (uint32_t i = p->n_op; i-- > 0;) {
        const uint32_t k = g->order[i];
        const double copy = mean_copy(g, g->bytes[k]);
        for (uint32_t j = g->first_out[k]; j < g->first_out[k + 1]; j++)
            rank[k] = fmax(rank[k], copy + rank[g->out[j]]);
        rank[k] += mean_seconds(p, k);
        r[k] = (ranked){k, rank[k]};
    }
    /* of equal ranks (operators of 0 s) the one that is read must come first */
    for (uint32_t i = 0; i < p->n_op; i++) r[i].op = g->pos[r[i].op];
    qsort(r, p->n_op, sizeof *r, by_rank);
    double free_at[CD_PLACE_MAX_DEVICE] = {0};
    double link_free[CD_PLACE_MAX_DEVICE][CD_PLACE_MAX_DEVICE] = {{0}};
    for (uint32_t i = 0; i < p->n_op; i++) {
        const uint32_t k = g->order[r[i].op];
        double least = (double)INFINITY;
        uint32_t at = CD_PLACE_NONE;
        for (uint32_t d = 0; d < p->n_device; d++) {
            const double t = would_end(g, where, end, link_free, free_at[d], k, d, false);
            if (at == CD_PLACE_NONE ? isfinite(cd_place_seconds(p, k, d)) : t < least)
                at = d, least = t;
        }
        where[k] = at == CD_PLACE_NONE ? 0 : at;
        end[k] = would_end(g, where, end, link_free, free_at[where[k]], k, where[k], true);
        free_at[where[k]] += (end[k] - free_at[where[k]]) /
                             (p->device[where[k]].workers ? p->device[where[k]].workers : 1);
    }
    return CDMPP_OK;
}

/* ---- search: what decided the makespan goes elsewhere ---- */

typedef struct {
    cd_place_net *g;
    uint32_t *where;
    double *span;
} searcher;

/* Operators of `path` from i to j, all of one device, on device d: keep it if that is better. */
static cdmpp_status try_move(searcher *s, const uint32_t *path, uint32_t i, uint32_t j, uint32_t d,
                             bool *better, cdmpp_err *err) {
    double span = (double)INFINITY;
    const uint32_t back = s->where[path[i]];
    bool can = true;
    for (uint32_t k = i; k < j && can; k++) can = isfinite(cd_place_seconds(s->g->p, path[k], d));
    *better = false;
    if (!can) return CDMPP_OK;
    for (uint32_t k = i; k < j; k++) s->where[path[k]] = d;
    CD_TRY(cd_place_makespan(s->g, s->where, &span, NULL, err));
    *better = span < *s->span * (1 - 1e-12);
    if (*better) *s->span = span;
    for (uint32_t k = i; k < j && !*better; k++) s->where[path[k]] = back;
    return CDMPP_OK;
}

/* One pass over a path: starting points in a random order, and from each runs of 1, 2, 4 ..
 * operators of one device. */
static cdmpp_status one_pass(searcher *s, const uint32_t *path, uint32_t n, uint64_t seed,
                             uint64_t end, bool *any, cdmpp_err *err) {
    for (uint32_t c = 0; c < n && s->g->looked < end; c++) {
        const uint32_t i = (uint32_t)((cd_rng_at(seed, 0) + (uint64_t)c * 2654435761u) % n);
        for (uint32_t len = 1; len <= n - i && s->g->looked < end; len *= 2) {
            uint32_t j = i;
            while (j < i + len && s->where[path[j]] == s->where[path[i]]) j++;
            if (j < i + len) break;
            for (uint32_t d = 0; d < s->g->p->n_device; d++) {
                bool better = false;
                if (d == s->where[path[i]]) continue;
                CD_TRY(try_move(s, path, i, j, d, &better, err));
                if (better) return *any = true, CDMPP_OK;
            }
        }
    }
    return CDMPP_OK;
}

/* Only operators on the critical path of the replay are moved: no other move can shorten the
 * makespan. A better placement has another path, so the round ends there and the next one begins
 * with a new replay. The search stops after a round without a better placement. */
static cdmpp_status place_local_search(cd_place_net *g, uint64_t effort, uint32_t *where,
                                       double *span, cdmpp_err *err) {
    searcher s = {.g = g, .where = where, .span = span};
    const uint64_t end = g->looked + effort;
    bool any = isfinite(*span);
    for (uint64_t round = 0; any && g->looked < end; round++) {
        cd_replay r;
        double again;
        any = false;
        cdmpp_status st = cd_place_makespan(g, where, &again, &r, err);
        if (!st) st = one_pass(&s, r.path, r.n_path, round, end, &any, err);
        cd_replay_free(&r);
        if (st) return st;
    }
    return CDMPP_OK;
}

static const uint64_t USUAL = 2000000; /* replayed operators, or states of windows by 200 */

void cd_place_plan_free(cd_place_plan *r) {
    cd_arena_free(&r->arena);
    *r = (cd_place_plan){0};
}

/* ---- baselines ---- */

static uint32_t fastest(const cd_place_problem *p, uint32_t k) {
    uint32_t at = 0;
    for (uint32_t d = 1; d < p->n_device; d++)
        if (cd_place_seconds(p, k, d) < cd_place_seconds(p, k, at)) at = d;
    return at;
}

void cd_place_alone(const cd_place_problem *p, uint32_t d, uint32_t *where) {
    for (uint32_t k = 0; k < p->n_op; k++)
        where[k] = p->op[k].pin == CD_PLACE_FREE ? d : p->op[k].pin;
}

void cd_place_greedy(const cd_place_problem *p, uint32_t *where) {
    for (uint32_t k = 0; k < p->n_op; k++) where[k] = fastest(p, k);
}

/* ---- the best of several ---- */

typedef struct {
    cd_place_net g;
    cd_place_goal goal;
    uint32_t *now, *best;
    double cost, bound;
    bool exact;
    const char *method;
} solver;

static cdmpp_status cost_of(solver *s, const uint32_t *where, double *out, cdmpp_err *err) {
    if (s->goal == CD_PLACE_MAKESPAN) return cd_place_makespan(&s->g, where, out, NULL, err);
    *out = cd_place_sum(&s->g, where, NULL);
    s->g.looked++;
    return CDMPP_OK;
}

static cdmpp_status offer(solver *s, const char *method, cdmpp_err *err) {
    double cost;
    CD_TRY(cost_of(s, s->now, &cost, err));
    if (!(cost < s->cost)) return CDMPP_OK;
    s->cost = cost, s->method = method;
    memcpy(s->best, s->now, s->g.p->n_op * sizeof *s->best);
    return CDMPP_OK;
}

static cdmpp_status baselines(solver *s, cdmpp_err *err) {
    for (uint32_t d = 0; d < s->g.p->n_device; d++) {
        cd_place_alone(s->g.p, d, s->now);
        CD_TRY(offer(s, "one device", err));
    }
    cd_place_greedy(s->g.p, s->now);
    return offer(s, "greedy", err);
}

/* What no placement is below by the sum: each operator where it is fastest. */
static double least_sum(const cd_place_problem *p) {
    double sum = 0;
    for (uint32_t k = 0; k < p->n_op; k++) sum += cd_place_seconds(p, k, fastest(p, k));
    return sum;
}

/* The simple bound comes first: it stays where neither method below is exact. The factor 1 - 1e-12
 * covers sums in another order. Windows cost a state at a time, which is about 200 times cheaper
 * than a replayed operator: hence effort * 200. */
static cdmpp_status best_sum(solver *s, uint64_t effort, cdmpp_err *err) {
    const cd_place_problem *p = s->g.p;
    s->bound = least_sum(p) * (1 - 1e-12);
    if (p->n_device == 2) {
        CD_TRY(place_solve_by_cut(&s->g, s->now, err));
        CD_TRY(offer(s, "minimum cut", err));
        s->exact = true;
    } else {
        memcpy(s->now, s->best, p->n_op * sizeof *s->now);
        CD_TRY(place_solve_by_elimination(&s->g, effort * 200, s->now, &s->exact, err));
        CD_TRY(offer(s, s->exact ? "elimination" : "elimination of parts", err));
    }
    if (s->exact && s->goal == CD_PLACE_SUM) s->bound = s->cost;
    return CDMPP_OK;
}

/* The plan of the least sum is one to begin with. */
static cdmpp_status best_span(solver *s, uint64_t effort, cdmpp_err *err) {
    enum { SMALL = 24 };
    CD_TRY(best_sum(s, effort / 20, err));
    CD_TRY(place_list_schedule(&s->g, s->now, err));
    CD_TRY(offer(s, "list", err));
    const bool small = s->g.p->n_op <= SMALL;
    double was = s->cost;
    CD_TRY(place_local_search(&s->g, small ? effort / 20 : effort, s->best, &s->cost, err));
    if (s->cost < was) s->method = "list and search";
    was = s->cost;
    CD_TRY(place_bound(&s->g, small ? effort : 0, s->best, &s->cost, &s->bound, &s->exact, err));
    if (s->exact || s->cost < was) s->method = "branch and bound";
    if (s->exact) s->bound = s->cost;
    return CDMPP_OK;
}

/* No placement joins all: name a pair that cannot be joined, or the first that the fastest devices
 * cannot. */
static cdmpp_status impossible(const cd_place_net *g, uint32_t *where, cdmpp_err *err) {
    const cd_place_problem *p = g->p;
    cd_place_greedy(p, where);
    for (uint32_t k = 0; k < p->n_op; k++)
        for (uint32_t j = g->first_in[k]; j < g->first_in[k + 1]; j++) {
            const uint32_t from = g->in[j], a = where[from], b = where[k];
            if (a != b && isinf(g->latency[a][b]))
                return CD_FAIL(err, EINVALID,
                               "no placement is possible: %s on %s is read by %s on %s, and there "
                               "is no link from %s to %s",
                               p->op[from].name, p->device[a].name, p->op[k].name,
                               p->device[b].name, p->device[a].name, p->device[b].name);
        }
    return CD_FAIL(err, EINVALID, "no placement is possible: costs of %u operators are no numbers",
                   p->n_op);
}

static cdmpp_status solve(solver *s, uint64_t effort, cd_place_plan *out, cdmpp_err *err) {
    const uint32_t n = s->g.p->n_op;
    s->now = CD_NEWN(s->g.a, uint32_t, (size_t)n + 1);
    s->best = out->where = CD_NEWN(&out->arena, uint32_t, (size_t)n + 1);
    if (!s->now || !s->best) return CD_FAIL(err, ENOMEM, "%u operators", n);
    cd_place_greedy(s->g.p, s->best);
    CD_TRY(baselines(s, err));
    CD_TRY(s->goal == CD_PLACE_SUM ? best_sum(s, effort, err) : best_span(s, effort, err));
    if (!isfinite(s->cost)) return impossible(&s->g, s->now, err);
    cd_place_sum(&s->g, s->best, &out->cost);
    CD_TRY(cd_place_makespan(&s->g, s->best, &out->cost.makespan_s, NULL, err));
    out->bound_s = fmin(s->bound, s->cost), out->exact = s->exact, out->method = s->method,
    out->n_look = s->g.looked;
    return CDMPP_OK;
}

cdmpp_status cd_place_solve(const cd_place_problem *p, cd_place_goal goal, uint64_t effort,
                            cd_place_plan *out, cdmpp_err *err) {
    cd_arena own = {0};
    solver s = {.goal = goal, .cost = (double)INFINITY, .method = "none"};
    *out = (cd_place_plan){0};
    cdmpp_status st = cd_place_prepare(p, &own, &s.g, err);
    if (!st) st = solve(&s, effort ? effort : USUAL, out, err);
    cd_arena_free(&own);
    return st;
}
