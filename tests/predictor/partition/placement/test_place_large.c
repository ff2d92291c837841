/* 5,000 operators on 4 devices: bounds hold, in time; long chains and wide fans do not overflow
 * anything. */
#include <stdlib.h>
#include <time.h>

#include "check.h"
#include "predictor/partition/placement/place.h"
#include "base/core/core.h"

enum { MANY = 5000, D = 4 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
static const double SLOW = 20;
#else
static const double SLOW = 1;
#endif
static cdmpp_err err;
static cd_place_op op[MANY];
static cd_place_value value[MANY];
static uint32_t to[MANY * 4];
static double seconds[MANY * D];
static cd_place_link link_of[D * D];
static const cd_place_device device[D] = {{"cpu", 0}, {"gpu", 0}, {"npu", 0}, {"dsp", 0}};
static cd_place_problem p;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others may run here too */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Layers of `width` operators, each read by up to three of the next layers. */
static void make(uint32_t n_device, uint32_t width) {
    p = (cd_place_problem){MANY, MANY, 0, n_device, 0, op, value, to, device, link_of, seconds};
    for (uint32_t a = 0; a < n_device; a++)
        for (uint32_t b = 0; b < n_device; b++)
            if (a != b) link_of[p.n_link++] = (cd_place_link){a, b, 2e-6, 8e9, 0, 0, 0};
    for (uint32_t k = 0; k < MANY; k++) {
        op[k] = (cd_place_op){"op", CD_PLACE_FREE, NULL};
        for (uint32_t d = 0; d < n_device; d++) {
            const double u = cd_rng_unit(k, d);
            seconds[k * n_device + d] =
                u < 0.1 && d ? (double)INFINITY : 1e-5 * (0.1 + cd_rng_unit(k, 9)) * (0.5 + u);
        }
        value[k] = (cd_place_value){k, (int64_t)(cd_rng_unit(k, 10) * 60000), p.n_to, 0};
        const uint32_t readers = 1 + (uint32_t)(cd_rng_unit(k, 11) * 3);
        for (uint32_t j = 0; j < readers; j++) {
            const uint32_t r = k + 1 + (uint32_t)(cd_rng_unit(k, 12 + j) * (2 * width - 1));
            if (r < MANY) to[p.n_to++] = r;
        }
        value[k].n_to = p.n_to - value[k].first;
    }
}

static void solved(cd_place_goal goal, const char *what) {
    cd_place_plan r;
    cd_place_cost c;
    uint32_t *where = calloc(MANY, sizeof *where);
    double base = (double)INFINITY;
    const double start = now_s();
    assert_ok(cd_place_solve(&p, goal, 0, &r, &err));
    const double took = now_s() - start, is = goal ? r.cost.makespan_s : r.cost.sum_s;
    for (uint32_t d = 0; d <= p.n_device; d++) {
        if (d < p.n_device) cd_place_alone(&p, d, where);
        else cd_place_greedy(&p, where);
        assert_ok(cd_place_evaluate(&p, where, &c, &err));
        base = fmin(base, goal ? c.makespan_s : c.sum_s);
    }
    print_message("%s: %.2f s of a processor, %s%s; %.4g s against %.4g s of the best baseline, "
                  "bound %.4g s\n",
                  what, took, r.method, r.exact ? " (exact)" : "", is, base, r.bound_s);
    assert_true(r.bound_s <= is && is <= base);
    assert_true(took < 10 * SLOW);
    cd_place_regions g;
    const double merge = now_s();
    assert_ok(cd_place_merge_regions(&p, r.where, &g, &err));
    print_message("  %u regions, merged in %.2f s\n", g.n_region, now_s() - merge);
    cd_place_regions_free(&g);
    cd_place_plan_free(&r);
    free(where);
}

static void large(void **state) {
    (void)state;
    make(D, 1), solved(CD_PLACE_SUM, "chain, 4 devices, sum");
    make(D, 4), solved(CD_PLACE_SUM, "width 4, 4 devices, sum");
    solved(CD_PLACE_MAKESPAN, "width 4, 4 devices, makespan");
    make(D, 40), solved(CD_PLACE_SUM, "width 40, 4 devices, sum");
    solved(CD_PLACE_MAKESPAN, "width 40, 4 devices, makespan");
    make(2, 40), solved(CD_PLACE_SUM, "width 40, 2 devices, sum");
}

/* One value that all read, and one that reads all. */
static void fans(void **state) {
    (void)state;
    for (uint32_t n_device = 2; n_device <= D; n_device++) {
        make(n_device, 1);
        p.n_to = 0;
        for (uint32_t k = 0; k < MANY; k++) {
            value[k].first = p.n_to, value[k].n_to = 0;
            if (k == 0)
                for (uint32_t j = 1; j < MANY - 1; j++) to[p.n_to++] = j, value[k].n_to++;
            else if (k < MANY - 1) to[p.n_to++] = MANY - 1, value[k].n_to++;
        }
        solved(CD_PLACE_SUM, "fan, sum");
    }
}

TESTS(NULL, NULL, large, fans)
