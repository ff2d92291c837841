/* Laws through the whole chain, graph -> costs -> net -> replay, on drawn graphs. Times are short
 * binary fractions, so that equal means equal to the bit. The slow truths: chains by trying all,
 * the optimum by trying every order and place. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/estimate/node_cost.h"

enum { MAX_N = 40, MAX_D = 3 };

/* ---- drawn networks: node b comes after a where edge[a][b], a < b ---- */
typedef struct drawn {
    uint32_t n;
    bool edge[MAX_N][MAX_N];
    double seconds[MAX_N];
    int64_t repeat[MAX_N], bytes[MAX_N];
} drawn;

typedef struct shape {
    double scale;          /* of all times */
    bool free_nodes;       /* some edges get free nodes, some nodes free inputs */
    bool copies;           /* repeats as so many nodes */
    bool gaps;             /* free nodes are unknown ones instead */
    const uint32_t *order; /* (n) in which nodes are added; NULL: as drawn */
} shape;
static const shape plain = {.scale = 1};

static uint64_t pick(uint64_t seed, uint64_t i, uint64_t n) { return cd_rng_at(seed, i) % n; }

static drawn draw(uint64_t seed, uint32_t most, bool repeats) {
    drawn d = {.n = 1 + (uint32_t)pick(seed, 0, most)};
    const uint64_t dense = 2 + pick(seed, 1, 6);
    for (uint32_t k = 0; k < d.n; k++) {
        d.seconds[k] = (double)pick(seed, 100 + k, 64) / 8;
        d.repeat[k] = repeats ? 1 + (int64_t)pick(seed, 200 + k, 4) : 1;
        d.bytes[k] = (int64_t)pick(seed, 300 + k, 32);
        for (uint32_t a = 0; a < k; a++)
            d.edge[a][k] = pick(seed, 1000 + MAX_N * a + k, dense) == 0;
    }
    return d;
}

static uint32_t add(cd_network_builder *m, const char *name, cd_node_kind kind, double seconds,
                    int64_t repeat, int64_t bytes) {
    cdmpp_err err = {0};
    uint32_t id;
    cd_network_node n = cd_network_node_init(name, "op", kind);
    if (kind == CD_NODE_GIVEN) n.given_s = seconds;
    n.why = "nobody knows it";
    n.repeat = repeat;
    n.write_bytes = bytes;
    assert_ok(cd_network_builder_node(m, &n, &id, &err));
    return id;
}

static void edge(cd_network_builder *m, uint32_t from, uint32_t to) {
    cdmpp_err err = {0};
    assert_ok(cd_network_builder_edge(m, from, to, &err));
}

/* Nodes are named by their number; of several copies the last one has the plain name and is what
 * others come after. */
static cd_network_graph *build(const drawn *d, const shape *s) {
    cdmpp_err err = {0};
    cd_network_builder *m;
    cd_network_graph *g = NULL;
    uint32_t first[MAX_N], last[MAX_N];
    const cd_node_kind through = s->gaps ? CD_NODE_UNKNOWN : CD_NODE_FREE;
    char name[32];
    assert_ok(cd_network_builder_new("drawn", &m, &err));
    for (uint32_t i = 0; i < d->n; i++) {
        const uint32_t k = s->order ? s->order[i] : i;
        const double t = d->seconds[k] * s->scale;
        for (int64_t c = 1; c < d->repeat[k] && s->copies; c++) {
            snprintf(name, sizeof name, "%u copy %d", k, (int)c);
            const uint32_t id = add(m, name, CD_NODE_GIVEN, t, 1, d->bytes[k]);
            if (c == 1) first[k] = id;
            else edge(m, last[k], id);
            last[k] = id;
        }
        snprintf(name, sizeof name, "%u", k);
        const uint32_t id =
            add(m, name, CD_NODE_GIVEN, t, s->copies ? 1 : d->repeat[k], d->bytes[k]);
        if (s->copies && d->repeat[k] > 1) edge(m, last[k], id);
        else first[k] = id;
        last[k] = id;
    }
    for (uint32_t b = 0; b < d->n; b++)
        for (uint32_t a = 0; a < b; a++) {
            if (!d->edge[a][b]) continue;
            uint32_t from = last[a];
            for (uint64_t v = s->free_nodes ? pick(a * 64 + b, 7, 3) : 0; v-- > 0;) {
                const uint32_t id = add(m, "view", through, 0, 1, 5);
                edge(m, from, id);
                from = id;
            }
            edge(m, from, first[b]);
            if (s->free_nodes && pick(a * 64 + b, 8, 2))
                edge(m, add(m, "weight", through, 0, 1, 900), first[b]);
        }
    assert_ok(cd_network_builder_finish(m, &g, &err));
    cd_network_builder_free(m);
    return g;
}

/* ---- devices ---- */
typedef struct place {
    uint32_t n_device, n_link;
    cd_replay_device device[MAX_D + 1];
    cd_replay_link link[(MAX_D + 1) * (MAX_D + 1)];
    double factor[MAX_D + 1]; /* of times on it */
    uint32_t where[MAX_N];    /* by number of the drawn node */
} place;

static place draw_place(uint64_t seed, uint32_t n_device) {
    place p = {.n_device = n_device};
    for (uint32_t d = 0; d < n_device; d++) {
        p.device[d] = (cd_replay_device){.name = "d",
                                         .workers = 1 + (uint32_t)pick(seed, 10 + d, 3),
                                         .policy = (cd_replay_policy)pick(seed, 20 + d, 3),
                                         .gap_s = (double)pick(seed, 30 + d, 3) / 8,
                                         .issue_s = pick(seed, 40 + d, 4) ? 0 : 0.125};
        p.factor[d] = (double)(1 << pick(seed, 50 + d, 3)) / 2;
        for (uint32_t e = 0; e < n_device; e++)
            if (e != d)
                p.link[p.n_link++] =
                    (cd_replay_link){d, e, 0.125, (double)(1 << pick(seed, 60 + 8 * d + e, 5))};
    }
    for (uint32_t k = 0; k < MAX_N; k++) p.where[k] = (uint32_t)pick(seed, 200 + k, n_device);
    return p;
}

/* One device that takes all at once as it comes. */
static place wide(double gap) {
    return (place){
        .n_device = 1,
        .device = {{.name = "wide", .workers = MAX_N * 4, .policy = CD_REPLAY_ORDER, .gap_s = gap}},
        .factor = {1}};
}

/* ---- the chain ---- */
static cd_replay run(const cd_network_graph *g, const place *p, bool allow_missing) {
    cdmpp_err err = {0};
    cd_node_cost *cost[MAX_D + 1] = {NULL};
    uint32_t *where = calloc(g->n_node + 1, sizeof *where);
    char text[64];
    cd_node_cost_net *r = NULL;
    cd_replay out;
    assert_non_null(where);
    for (uint32_t i = 0; i < g->n_node; i++)
        where[i] = g->node[i].kind == CD_NODE_GIVEN ? p->where[strtoul(g->node[i].name, NULL, 10)]
                                                    : i % p->n_device;
    for (uint32_t d = 0; d < p->n_device; d++) {
        assert_ok(cd_node_cost_of(g, &(cd_node_cost_options){0}, &cost[d], &err));
        snprintf(text, sizeof text, "op=*,scale=%.17g", p->factor[d]);
        if (p->factor[d] != 1) assert_ok(cd_node_cost_what_if(cost[d], g, text, &err));
    }
    const cd_node_cost_placement np = {p->n_device, p->n_link, p->device, p->link, where};
    assert_ok(
        cd_node_cost_net_make(g, (const cd_node_cost *const *)cost, &np, allow_missing, &r, &err));
    assert_ok(cd_replay_run(&r->net, &out, &err));
    for (uint32_t i = 0; i < r->net.n_op; i++)
        assert_int_equal(g->node[r->of[i]].kind, CD_NODE_GIVEN);
    cd_node_cost_net_free(r);
    for (uint32_t d = 0; d < p->n_device; d++) cd_node_cost_free(cost[d]);
    free(where);
    return out;
}

static double makespan(const cd_network_graph *g, const place *p) {
    cd_replay r = run(g, p, false);
    const double s = r.makespan_s;
    cd_replay_free(&r);
    return s;
}

static double makespan_of(const drawn *d, const shape *s, const place *p) {
    cd_network_graph *g = build(d, s);
    const double t = makespan(g, p);
    cd_network_graph_free(g);
    return t;
}

/* ---- laws ---- */

/* Longest way from k on, by trying all. */
static double chain_from(const drawn *d, uint32_t k, double gap, double known[MAX_N]) {
    if (known[k] >= 0) return known[k];
    double behind = 0;
    for (uint32_t b = k + 1; b < d->n; b++)
        if (d->edge[k][b]) behind = fmax(behind, chain_from(d, b, gap, known));
    return known[k] = behind + (d->seconds[k] + gap) * (double)d->repeat[k];
}

static void test_chain_and_sum_bound_the_replay(void **state) {
    (void)state;
    unsigned between = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        const drawn d = draw(seed, MAX_N, true);
        const double gap = (double)(seed % 3) / 8;
        double known[MAX_N], chain = 0, sum = 0;
        for (uint32_t k = 0; k < d.n; k++) known[k] = -1;
        for (uint32_t k = 0; k < d.n; k++) {
            chain = fmax(chain, chain_from(&d, k, gap, known));
            sum += (d.seconds[k] + gap) * (double)d.repeat[k];
        }
        cd_network_graph *g = build(&d, &(shape){.scale = 1, .free_nodes = true});
        place p = wide(gap);
        assert_true(makespan(g, &p) == chain); /* nothing waits for anything but its data */
        p.device[0].workers = 1;
        for (int policy = 0; policy < 3; policy++) {
            p.device[0].policy = (cd_replay_policy)policy;
            assert_true(makespan(g, &p) == sum);
        }
        p.device[0].workers = 2;
        for (int policy = 0; policy < 3; policy++) {
            p.device[0].policy = (cd_replay_policy)policy;
            cd_replay r = run(g, &p, false);
            assert_true(r.chain_s == chain && r.sum_s == sum && chain <= r.makespan_s &&
                        r.makespan_s <= sum);
            /* Graham 1966 */
            if (policy != CD_REPLAY_STREAM) assert_true(r.makespan_s <= chain + (sum - chain) / 2);
            between += chain < r.makespan_s && r.makespan_s < sum;
            cd_replay_free(&r);
        }
        cd_network_graph_free(g);
    }
    assert_true(between > 100);
}

static void test_bounds_on_several_devices(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++) {
        const drawn d = draw(seed, MAX_N, true);
        const place p = draw_place(seed, 1 + (uint32_t)(seed % MAX_D));
        cd_network_graph *g = build(&d, &(shape){.scale = 1, .free_nodes = seed & 1});
        cd_replay r = run(g, &p, false);
        assert_true(r.chain_s <= r.makespan_s && r.makespan_s <= r.sum_s);
        cd_replay_free(&r);
        cd_network_graph_free(g);
    }
}

static void test_twice_the_durations(void **state) {
    (void)state;
    for (uint64_t seed = 300; seed < 400; seed++) {
        const drawn d = draw(seed, MAX_N, true);
        place p = draw_place(seed, 1 + (uint32_t)(seed % MAX_D));
        const double once = makespan_of(&d, &plain, &p);
        for (uint32_t k = 0; k < p.n_device; k++) p.device[k].gap_s *= 2, p.device[k].issue_s *= 2;
        for (uint32_t l = 0; l < p.n_link; l++)
            p.link[l].latency_s *= 2, p.link[l].bytes_per_s /= 2;
        assert_true(makespan_of(&d, &(shape){.scale = 2}, &p) == 2 * once);
        for (uint32_t k = 0; k < p.n_device; k++) p.factor[k] *= 2; /* the same by what-if */
        assert_true(makespan_of(&d, &plain, &p) == 2 * once);
    }
}

static void test_free_nodes_change_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 400; seed < 500; seed++) {
        const drawn d = draw(seed, MAX_N, true);
        const place p = draw_place(seed, 1 + (uint32_t)(seed % MAX_D));
        cd_network_graph *g = build(&d, &(shape){.scale = 1, .free_nodes = true}),
                         *gap = build(&d, &(shape){.scale = 1, .free_nodes = true, .gaps = true});
        const double bare = makespan_of(&d, &plain, &p);
        assert_true(makespan(g, &p) == bare);
        /* and no time at all for what is missing, where that is allowed */
        cd_replay r = run(gap, &p, true);
        assert_true(r.makespan_s == bare);
        cd_replay_free(&r);
        cd_network_graph_free(g);
        cd_network_graph_free(gap);
    }
}

static void test_repeat_is_a_chain_of_copies(void **state) {
    (void)state;
    for (uint64_t seed = 500; seed < 600; seed++) {
        const drawn d = draw(seed, MAX_N, true);
        place p = wide((double)(seed % 3) / 8);
        const shape copies = {.scale = 1, .copies = true, .free_nodes = seed & 1};
        assert_true(makespan_of(&d, &plain, &p) == makespan_of(&d, &copies, &p));
        p.device[0].policy = CD_REPLAY_CRITICAL;
        assert_true(makespan_of(&d, &plain, &p) == makespan_of(&d, &copies, &p));
        p.device[0].issue_s = 0.5; /* a host that hands out each run */
        assert_true(makespan_of(&d, &plain, &p) == makespan_of(&d, &copies, &p));
        cd_network_graph *g = build(&d, &plain);
        cd_replay r = run(g, &p, false);
        assert_true(r.chain_s <= r.makespan_s && r.makespan_s <= r.sum_s);
        cd_replay_free(&r);
        cd_network_graph_free(g);
        p.device[0].workers = 1;
        p.device[0].policy = CD_REPLAY_STREAM;
        assert_true(makespan_of(&d, &plain, &p) == makespan_of(&d, &copies, &p));
        p.device[0].issue_s = 0;
        p.device[0].policy = CD_REPLAY_ORDER; /* never idle, in whatever order */
        assert_true(makespan_of(&d, &plain, &p) == makespan_of(&d, &copies, &p));
    }
}

static void test_order_of_adding_does_not_matter(void **state) {
    (void)state;
    for (uint64_t seed = 600; seed < 700; seed++) {
        const drawn d = draw(seed, MAX_N, true);
        const place p = wide(0.125);
        uint32_t order[MAX_N];
        for (uint32_t k = 0; k < d.n; k++) order[k] = k;
        for (uint32_t k = d.n; k-- > 1;) {
            const uint32_t j = (uint32_t)pick(seed, 5000 + k, k + 1), t = order[k];
            order[k] = order[j], order[j] = t;
        }
        assert_true(makespan_of(&d, &plain, &p) ==
                    makespan_of(&d, &(shape){.scale = 1, .order = order, .free_nodes = true}, &p));
    }
}

static void test_through_a_file(void **state) {
    (void)state;
    for (uint64_t seed = 700; seed < 740; seed++) {
        const drawn d = draw(seed, MAX_N, true);
        const place p = draw_place(seed, 1 + (uint32_t)(seed % MAX_D));
        cdmpp_err err = {0};
        cd_network_graph *g = build(&d, &(shape){.scale = 1, .free_nodes = true}), **again;
        cd_buf b = {0};
        size_t n;
        assert_ok(cd_network_graph_write(&b, &g, 1, &err));
        assert_ok(cd_network_graph_read_text("f", b.p, b.n, NULL, NULL, &again, &n, &err));
        assert_true(makespan(g, &p) == makespan(again[0], &p));
        cd_network_graph_free_all(again, n);
        cd_network_graph_free(g);
        cd_buf_free(&b);
    }
}

/* ---- the optimum: every order of the nodes, each on every device ---- */
typedef struct search {
    const drawn *d;
    place p;
    uint32_t order[MAX_N], n_order;
    double best;
    unsigned tried;
} search;

static void try_places(search *s, uint32_t k) {
    if (k < s->d->n) {
        for (s->p.where[k] = 0; s->p.where[k] < s->p.n_device; s->p.where[k]++)
            try_places(s, k + 1);
        return;
    }
    s->best = fmin(s->best, makespan_of(s->d, &(shape){.scale = 1, .order = s->order}, &s->p));
    s->tried++;
}

static void try_orders(search *s, uint32_t used) {
    if (s->n_order == s->d->n) {
        try_places(s, 0);
        return;
    }
    for (uint32_t k = 0; k < s->d->n; k++) {
        bool ready = !(used >> k & 1);
        for (uint32_t a = 0; a < k; a++) ready &= !s->d->edge[a][k] || (used >> a & 1);
        if (!ready) continue;
        s->order[s->n_order++] = k;
        try_orders(s, used | 1U << k);
        s->n_order--;
    }
}

/* Strictly in the order tried, so that every schedule that never waits without need is among
 * them. */
static double optimum(const drawn *d, const place *p, unsigned *tried) {
    search s = {.d = d, .p = *p, .best = INFINITY};
    for (uint32_t k = 0; k < p->n_device; k++)
        s.p.device[k].policy = CD_REPLAY_STREAM, s.p.device[k].workers = 1;
    try_orders(&s, 0);
    *tried += s.tried;
    return s.best;
}

static void test_a_device_more_never_hurts_the_optimum(void **state) {
    (void)state;
    unsigned tried = 0, better = 0;
    for (uint64_t seed = 800; seed < 824; seed++) {
        const drawn d = draw(seed, 4, false);
        double before = INFINITY;
        for (uint32_t n = 1; n <= MAX_D; n++) {
            place p = draw_place(seed, n);
            for (uint32_t k = 0; k < n; k++)
                p.device[k].gap_s = (double)pick(seed, 30 + k, 3) / 8, p.device[k].issue_s = 0;
            p.n_link = 0; /* those between the first n are the same whatever n is */
            for (uint32_t a = 0; a < n; a++)
                for (uint32_t b = 0; b < n; b++)
                    if (a != b)
                        p.link[p.n_link++] = (cd_replay_link){
                            a, b, 0.125, (double)(1 << pick(seed, 60 + 8 * a + b, 5))};
            const double best = optimum(&d, &p, &tried);
            assert_true(best <= before);
            better += best < before && n > 1;
            /* and no policy beats it, wherever the nodes are */
            for (uint32_t k = 0; k < n; k++) p.device[k].workers = 1;
            for (uint64_t r = 0; r < 10; r++) {
                for (uint32_t k = 0; k < d.n; k++) p.where[k] = (uint32_t)pick(seed * 77 + r, k, n);
                for (uint32_t k = 0; k < n; k++)
                    p.device[k].policy = (cd_replay_policy)pick(seed * 77 + r, 20 + k, 3);
                assert_true(makespan_of(&d, &plain, &p) >= best);
            }
            before = best;
        }
    }
    assert_true(tried > 1000 && better > 5);
}

TESTS(NULL, NULL, test_chain_and_sum_bound_the_replay, test_bounds_on_several_devices,
      test_twice_the_durations, test_free_nodes_change_nothing, test_repeat_is_a_chain_of_copies,
      test_order_of_adding_does_not_matter, test_through_a_file,
      test_a_device_more_never_hurts_the_optimum)
