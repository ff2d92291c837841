/* Plans over options against every plan. */
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/partition/shard/shard_select.h"

enum { OPS = 40, OPTIONS = 5, EDGES = 160 };
static cdmpp_err err;

typedef struct {
    cd_shard_select_problem p;
    cd_shard_select_op op[OPS];
    cd_shard_select_option option[OPS][OPTIONS];
    double share[OPS][OPTIONS][2], exchange[EDGES][OPTIONS * OPTIONS];
    cd_shard_select_edge edge[EDGES];
    uint64_t seed, at;
} made;
static const char *const device[] = {"cpu", "npu"};
static const char *const ways[] = {"cpu", "npu", "H 0.25", "H 0.50", "O 0.50"};
static const double ratio[] = {1, 0, 0.25, 0.5, 0.5};

static double unit(made *m) { return cd_rng_unit(m->seed, m->at++); }

/* Neighbours split alike exchange nothing. */
static void make(made *m, uint64_t seed, uint32_t n, double edges) {
    memset(m, 0, sizeof *m);
    m->seed = seed;
    m->p = (cd_shard_select_problem){n, 0, 2, m->op, m->edge, device};
    for (uint32_t k = 0; k < n; k++) {
        m->op[k] = (cd_shard_select_op){"op", 2 + (uint32_t)(unit(m) * 4), m->option[k]};
        for (uint32_t i = 0; i < OPTIONS; i++) {
            m->share[k][i][0] = ratio[i], m->share[k][i][1] = 1 - ratio[i];
            m->option[k][i] = (cd_shard_select_option){
                ways[i],
                i < 2   ? -1
                : i < 4 ? 2
                        : 1,
                i > 1 && unit(m) < 0.1 ? (double)INFINITY : unit(m), m->share[k][i]};
        }
    }
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n && m->p.n_edge < EDGES; b++) {
            if (b != a + 1 && unit(m) > edges / n) continue;
            double *x = m->exchange[m->p.n_edge];
            m->edge[m->p.n_edge++] = (cd_shard_select_edge){a, b, x};
            for (uint32_t i = 0; i < m->op[a].n_option; i++)
                for (uint32_t j = 0; j < m->op[b].n_option; j++)
                    x[i * m->op[b].n_option + j] = i == j ? 0 : unit(m) * 0.5;
        }
}

static double least_of_all(const made *m) {
    uint32_t choice[OPS] = {0}, k;
    double least = (double)INFINITY;
    do {
        const double cost = cd_shard_select_cost(&m->p, choice, NULL);
        if (cost < least) least = cost;
        for (k = 0; k < m->p.n_op && ++choice[k] == m->op[k].n_option; k++) choice[k] = 0;
    } while (k < m->p.n_op);
    return least;
}

static void no_worse(const made *m, const cd_shard_select_plan *r) {
    uint32_t choice[OPS];
    for (int kind = CD_SHARD_SELECT_ALONE; kind <= CD_SHARD_SELECT_GREEDY; kind++)
        for (uint32_t d = 0; d < 2; d++) {
            assert_ok(
                cd_shard_select_baseline(&m->p, (cd_shard_select_base)kind, d, 0.5, choice, &err));
            assert_true(r->total_s <= cd_shard_select_cost(&m->p, choice, NULL) * (1 + 1e-12));
            for (uint32_t k = 0; k < m->p.n_op && kind == CD_SHARD_SELECT_ALONE; k++)
                assert_int_equal(choice[k], d);
        }
}

static void equals_every_plan(void **state) {
    (void)state;
    static made m;
    for (uint64_t s = 0; s < 1000; s++) {
        cd_shard_select_plan r;
        make(&m, s, 1 + (uint32_t)s % 7, 1.5);
        assert_ok(cd_shard_select_solve(&m.p, 0, &r, &err));
        assert_true(r.exact);
        assert_close(r.total_s, least_of_all(&m), 1e-12, 0);
        assert_close(r.bound_s, r.total_s, 1e-12, 0);
        no_worse(&m, &r);
        cd_shard_select_plan_free(&r);
    }
}

/* Tables of 4 states are too small for anything: windows alone must still keep the laws. */
static void narrow_tables(void **state) {
    (void)state;
    static made m;
    double lost = 0;
    for (uint64_t s = 0; s < 100; s++) {
        cd_shard_select_plan r, q;
        make(&m, 5000 + s, OPS, 2);
        assert_ok(cd_shard_select_solve(&m.p, 0, &r, &err));
        assert_ok(cd_shard_select_solve(&m.p, 150, &q, &err));
        no_worse(&m, &q);
        assert_true(q.bound_s <= q.total_s && q.bound_s <= r.total_s * (1 + 1e-9) &&
                    r.bound_s <= r.total_s);
        if (r.exact) assert_true(r.total_s <= q.total_s * (1 + 1e-12));
        lost += q.total_s / r.total_s - 1;
        cd_shard_select_plan_free(&r);
        cd_shard_select_plan_free(&q);
    }
    print_message("windows instead of all: %.2f %% lost\n", lost);
    assert_true(lost < 5);
}

static void fails(const made *m, cdmpp_status want, const char *text) {
    cd_shard_select_plan r;
    assert_status(cd_shard_select_solve(&m->p, 0, &r, &err), want);
    if (!strstr(err.msg, text)) fail_msg("%s: no \"%s\"", err.msg, text);
    cd_shard_select_plan_free(&r);
}

static void bad_input(void **state) {
    (void)state;
    static made m;
    uint32_t choice[OPS];
    make(&m, 3, 4, 1), m.share[1][0][0] = 1.2,
                       fails(&m, CDMPP_ERANGE, "operator 1 (op), option cpu: ratio 1.2 on cpu");
    make(&m, 3, 4, 1), m.share[1][0][1] = -0.1, fails(&m, CDMPP_ERANGE, "ratio -0.1 on npu");
    make(&m, 3, 4, 1), m.share[1][1][0] = 0.5, fails(&m, CDMPP_ERANGE, "ratios are 1.5 together");
    make(&m, 3, 4, 1), m.option[2][0].seconds = (double)NAN,
                       fails(&m, CDMPP_ERANGE, "operator 2 (op), option cpu");
    make(&m, 3, 4, 1), m.exchange[0][1] = -1,
                       fails(&m, CDMPP_ERANGE, "exchange from op (cpu) to op (npu): -1");
    make(&m, 3, 4, 1), m.edge[0].to = 9, fails(&m, CDMPP_EINVALID, "operators 0 to 9 of 4");
    make(&m, 3, 4, 0), m.op[0].n_option = m.op[1].n_option = 2,
                       m.edge[m.p.n_edge] = (cd_shard_select_edge){1, 0, m.exchange[0]},
                       m.p.n_edge++, fails(&m, CDMPP_EINVALID, "a cycle");
    make(&m, 3, 4, 1), m.op[0].n_option = 0, fails(&m, CDMPP_EINVALID, "has no option");
    make(&m, 3, 4, 1);
    for (int i = 0; i < OPTIONS; i++) m.option[3][i].seconds = (double)INFINITY;
    fails(&m, CDMPP_EINVALID, "no plan is possible: operator 3 (op)");
    make(&m, 3, 4, 1);
    assert_status(cd_shard_select_baseline(&m.p, CD_SHARD_SELECT_FIXED, 0, 1.5, choice, &err),
                  CDMPP_ERANGE);
    assert_status(cd_shard_select_baseline(&m.p, CD_SHARD_SELECT_ALONE, 2, 0, choice, &err),
                  CDMPP_EINVALID);
}

TESTS(NULL, NULL, equals_every_plan, narrow_tables, bad_input)
