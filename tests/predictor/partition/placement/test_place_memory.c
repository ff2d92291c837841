/* Placements that must fit into memories, against every placement. */
#include "check.h"
#include "made_part.h"

static cdmpp_err err;

enum { SHARED = 2 };
typedef struct {
    cd_place_limits l;
    uint32_t memory[CD_PLACE_MAX_DEVICE];
    double bytes[CD_PLACE_MAX_DEVICE], weights[MP_OPS];
    cd_place_shared shared[SHARED];
    uint32_t reader[SHARED][MP_OPS];
} limits;

/* Bytes in a memory, read slowly. */
static double held(const cd_place_problem *p, const limits *l, const uint32_t *where,
                   uint32_t memory) {
    double n = 0;
    for (uint32_t k = 0; k < p->n_op; k++) n += l->memory[where[k]] == memory ? l->weights[k] : 0;
    for (uint32_t s = 0; s < l->l.n_shared; s++) { /* once, whoever reads it */
        bool there = false;
        for (uint32_t j = 0; j < l->shared[s].n_op; j++)
            there = there || l->memory[where[l->shared[s].op[j]]] == memory;
        n += there ? l->shared[s].bytes : 0;
    }
    for (uint32_t v = 0; v < p->n_value; v++) {
        bool there = l->memory[where[p->value[v].from]] == memory;
        for (uint32_t j = 0; j < p->value[v].n_to; j++)
            there = there || l->memory[where[p->to[p->value[v].first + j]]] == memory;
        n += there ? (double)p->value[v].bytes : 0;
    }
    return n;
}

static bool fits(const cd_place_problem *p, const limits *l, const uint32_t *where) {
    for (uint32_t m = 0; m < l->l.n_memory; m++)
        if (l->bytes[m] > 0 && held(p, l, where, m) > l->bytes[m]) return false;
    return true;
}

static double cost_of(const cd_place_problem *p, const uint32_t *where, cd_place_goal goal) {
    cd_place_cost c;
    if (isinf(mp_sum(p, where))) return (double)INFINITY;
    if (goal == CD_PLACE_SUM) return mp_sum(p, where);
    assert_ok(cd_place_evaluate(p, where, &c, &err));
    return c.makespan_s;
}

static double least(const cd_place_problem *p, const limits *l, cd_place_goal goal) {
    uint32_t where[MP_OPS] = {0};
    double best = (double)INFINITY;
    do
        if (fits(p, l, where)) best = fmin(best, cost_of(p, where, goal));
    while (mp_next(where, p->n_op, p->n_device));
    return best;
}

/* Some devices share a memory; limits about what the free plan holds. */
static void draw(made_part *m, limits *l, const uint32_t *where) {
    memset(l, 0, sizeof *l);
    for (uint32_t d = 0; d < m->p.n_device; d++)
        l->memory[d] = d && mp_unit(m) < 0.2 ? l->memory[d - 1] : d;
    l->l = (cd_place_limits){m->p.n_device, l->memory, l->bytes, l->weights, l->shared, SHARED};
    for (uint32_t s = 0; s < SHARED; s++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < m->p.n_op; k++)
            if (mp_unit(m) < 0.5) l->reader[s][n++] = k;
        l->shared[s] = (cd_place_shared){floor(mp_unit(m) * 30000), l->reader[s], n};
    }
    for (uint32_t k = 0; k < m->p.n_op; k++) l->weights[k] = floor(mp_unit(m) * 30000);
    for (uint32_t d = 0; d < m->p.n_device; d++)
        l->bytes[d] = mp_unit(m) < 0.7 ? floor(held(&m->p, l, where, d) * (0.4 + mp_unit(m))) : 0;
}

static void against_all(uint64_t seed, int graphs, uint32_t most, uint32_t D, cd_place_goal goal) {
    static made_part m;
    static limits l;
    int tight = 0, none = 0;
    for (int i = 0; i < graphs; i++) {
        cd_place_plan r;
        mp_make(&m, seed + (uint64_t)i, 1 + (uint32_t)i % most, D, false, true);
        assert_ok(cd_place_solve(&m.p, goal, 0, &r, &err));
        const double free_s = goal == CD_PLACE_SUM ? r.cost.sum_s : r.cost.makespan_s;
        draw(&m, &l, r.where);
        cd_place_plan_free(&r);
        const double want = least(&m.p, &l, goal);
        const cdmpp_status st = cd_place_solve_within(&m.p, goal, 0, &l.l, &r, &err);
        if (isinf(want)) {
            assert_status(st, CDMPP_EINVALID);
            assert_non_null(strstr(err.msg, "no placement fits:"));
            none++;
        } else {
            assert_ok(st);
            assert_true(r.exact && fits(&m.p, &l, r.where));
            assert_close(goal == CD_PLACE_SUM ? r.cost.sum_s : r.cost.makespan_s, want, 1e-9,
                         1e-18);
            assert_true(r.bound_s <= want * (1 + 1e-9));
            tight += want > free_s * (1 + 1e-9);
        }
        cd_place_plan_free(&r);
    }
    print_message("%d graphs on %u devices: %d tight, %d that do not fit\n", graphs, D, tight,
                  none);
    assert_true(tight > graphs / 20 && none > 0);
}

static void sum(void **state) {
    (void)state;
    against_all(100, 300, 8, 2, CD_PLACE_SUM);
    against_all(900, 120, 6, 3, CD_PLACE_SUM);
}
static void makespan(void **state) {
    (void)state;
    against_all(2000, 100, 7, 2, CD_PLACE_MAKESPAN);
    against_all(3000, 50, 5, 3, CD_PLACE_MAKESPAN);
}

/* Beyond exact: it fits, and is no worse than it must be by the bound. */
static void larger(void **state) {
    (void)state;
    static made_part m;
    static limits l;
    int found = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        cd_place_plan r;
        mp_make(&m, 7000 + seed, 40, 3, false, true);
        assert_ok(cd_place_solve(&m.p, CD_PLACE_SUM, 0, &r, &err));
        draw(&m, &l, r.where);
        for (uint32_t d = 0; d < 3; d++) l.bytes[d] *= 1.2;
        l.bytes[0] = 0;
        cd_place_plan_free(&r);
        if (!cd_place_solve_within(&m.p, CD_PLACE_SUM, 0, &l.l, &r, &err)) {
            assert_true(fits(&m.p, &l, r.where) && r.bound_s <= r.cost.sum_s * (1 + 1e-12));
            found++;
        } else assert_non_null(strstr(err.msg, "no placement fits"));
        cd_place_plan_free(&r);
    }
    assert_true(found > 6);
}

static void bad_input(void **state) {
    (void)state;
    static made_part m;
    static limits l;
    uint32_t where[MP_OPS] = {0};
    cd_place_plan r;
    mp_make(&m, 1, 3, 2, false, true);
    draw(&m, &l, where);
    l.weights[0] = (double)NAN;
    assert_status(cd_place_solve_within(&m.p, CD_PLACE_SUM, 0, &l.l, &r, &err), CDMPP_ERANGE);
    cd_place_plan_free(&r);
    l.weights[0] = 0, l.bytes[0] = -1;
    assert_status(cd_place_solve_within(&m.p, CD_PLACE_SUM, 0, &l.l, &r, &err), CDMPP_ERANGE);
    cd_place_plan_free(&r);
    l.bytes[0] = 0, l.memory[1] = 9;
    assert_status(cd_place_solve_within(&m.p, CD_PLACE_SUM, 0, &l.l, &r, &err), CDMPP_EINVALID);
    cd_place_plan_free(&r);
}

TESTS(NULL, NULL, sum, makespan, larger, bad_input)
