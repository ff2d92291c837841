/* The least sum of seconds and copies: a minimum cut on two devices, which is always exact,
 * variable elimination on more, which is exact on narrow graphs only. */
#include <string.h>

#include "predictor/partition/placement/place_internal.h"
#include "predictor/partition/placement/variable_elimination.h"
#include <stdbool.h>
#include <stdint.h>
#include "base/core/core.h"

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

cdmpp_status cd_place_solve_by_cut(cd_place_net *g, uint32_t *where, cdmpp_err *err) {
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

cdmpp_status cd_place_solve_by_elimination(cd_place_net *g, uint64_t effort, uint32_t *where,
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
