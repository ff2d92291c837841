/* Equilibria verified and against the optimum; threads against every way to share; packed tasks
 * against bounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/core.h"
#include "check.h"
#include "predictor/partition/games/games.h"

enum { OPS = 12, DEVICES = 4 };
static cdmpp_err err;

static double slow_best(const cd_game *g) {
    uint32_t where[OPS] = {0}, k;
    double least = (double)INFINITY;
    do {
        double load[DEVICES] = {0}, most = 0;
        for (uint32_t i = 0; i < g->n_op; i++)
            load[where[i]] += g->seconds[i * g->n_device + where[i]] +
                              (g->transfer ? g->transfer[i * g->n_device + where[i]] : 0);
        for (uint32_t d = 0; d < g->n_device; d++) most = fmax(most, load[d]);
        least = fmin(least, most);
        for (k = 0; k < g->n_op && ++where[k] == g->n_device; k++) where[k] = 0;
    } while (k < g->n_op);
    return least;
}

static void draw(uint64_t s, double *seconds, double *transfer, uint32_t n, uint32_t D) {
    for (uint32_t i = 0; i < n * D; i++) {
        seconds[i] =
            cd_rng_unit(s, i) < 0.1 && i % D ? (double)INFINITY : 0.1 + cd_rng_unit(s, 1000 + i);
        transfer[i] = 0.2 * cd_rng_unit(s, 2000 + i);
    }
}

static void equilibrium(void **state) {
    (void)state;
    double worst = 1, sum = 0;
    for (uint64_t s = 0; s < 1000; s++) {
        double seconds[OPS * DEVICES], transfer[OPS * DEVICES];
        const uint32_t D = 1 + (uint32_t)s % 3, n = 1 + (uint32_t)(s / 3) % (D == 3 ? 9 : OPS);
        const cd_game g = {n, D, NULL, seconds, s % 2 ? transfer : NULL};
        cd_game_result r;
        draw(s, seconds, transfer, n, D);
        assert_ok(cd_game_play(&g, 0, &r, &err));
        assert_true(r.gain <= 1e-12 && cd_game_gain(&g, r.where, NULL) <= 1e-12);
        assert_non_null(r.best);
        assert_close(r.best_s, slow_best(&g), 1e-12, 0);
        assert_true(r.price >= 1 - 1e-12);
        worst = fmax(worst, r.price), sum += r.price;
        cd_game_free(&r);
    }
    print_message("price of anarchy of 1,000 games: mean %.3f, worst %.3f\n", sum / 1000, worst);
}

/* 12 operators, three devices: against all 531,441 placements. */
static void twelve(void **state) {
    (void)state;
    for (uint64_t s = 0; s < 5; s++) {
        double seconds[OPS * DEVICES], transfer[OPS * DEVICES];
        const cd_game g = {OPS, 3, NULL, seconds, transfer};
        cd_game_result r;
        draw(70 + s, seconds, transfer, OPS, 3);
        assert_ok(cd_game_play(&g, 0, &r, &err));
        assert_close(r.best_s, slow_best(&g), 1e-12, 0);
        cd_game_free(&r);
    }
}

static void many_games_end(void **state) {
    (void)state;
    static double seconds[200 * DEVICES], transfer[200 * DEVICES];
    for (uint64_t s = 0; s < 10000; s++) {
        const uint32_t n = s % 100 ? 1 + (uint32_t)s % 20 : 200;
        const cd_game g = {n, DEVICES, NULL, seconds, transfer};
        cd_game_result r;
        draw(s, seconds, transfer, n, DEVICES);
        if (s % 5 == 0) /* ties */
            for (uint32_t i = 0; i < n * DEVICES; i++) seconds[i] = 1, transfer[i] = 0;
        assert_ok(cd_game_play(&g, 10, &r, &err));
        assert_true(r.gain <= 1e-12);
        cd_game_free(&r);
    }
}

/* ---- threads ---- */

typedef struct {
    uint64_t seed;
    double clash;
} co;

static double co_time(uint32_t op, const uint32_t *threads, uint32_t n, void *ctx) {
    const co *c = ctx;
    double others = 0;
    for (uint32_t k = 0; k < n; k++) others += k == op ? 0 : threads[k];
    return (0.05 + (1 + cd_rng_unit(c->seed, op)) /
                       pow(threads[op], 0.3 + 0.6 * cd_rng_unit(c->seed, 10 + op))) *
           (1 + c->clash * others);
}

static double slow_share(uint32_t n, uint32_t P, co *c) {
    uint32_t t[4] = {1, 1, 1, 1}, k;
    double least = (double)INFINITY;
    do {
        uint32_t all = 0;
        double most = 0;
        for (uint32_t i = 0; i < n; i++) all += t[i];
        for (uint32_t i = 0; i < n; i++) most = fmax(most, co_time(i, t, n, c));
        if (all <= P) least = fmin(least, most);
        for (k = 0; k < n && ++t[k] > P; k++) t[k] = 1;
    } while (k < n);
    return least;
}

static void cotune(void **state) {
    (void)state;
    int taken = 0, refused = 0, climbed = 0;
    for (uint64_t s = 0; s < 300; s++) {
        co c = {s, s % 4 == 0 ? 0.5 : 0.01};
        const uint32_t n = 1 + (uint32_t)s % 4, P = 1 + (uint32_t)(s / 4) % 8;
        cd_cotune r;
        assert_ok(cd_cotune_search(n, P, co_time, &c, &r, &err));
        double sequential = 0;
        for (uint32_t k = 0; k < n; k++) {
            double least = (double)INFINITY;
            for (uint32_t p = 1; p <= P; p++) {
                uint32_t t[4] = {0};
                t[k] = p;
                least = fmin(least, co_time(k, t, n, &c));
            }
            sequential += least;
        }
        assert_close(r.sequential_s, sequential, 1e-12, 0);
        if (P >= n) {
            assert_close(r.together_s, slow_share(n, P, &c), 1e-12, 0);
            assert_true(r.together_s <= r.equal_s);
        }
        assert_int_equal(r.accepted, P >= n && r.together_s < sequential * (1 - 1e-12));
        r.accepted ? taken++ : refused++;
        cd_cotune_free(&r);
    }
    for (uint64_t s = 0; s < 50; s++) { /* too many ways: hill climbing */
        co c = {s, 0.001};
        cd_cotune r;
        assert_ok(cd_cotune_search(6, 64, co_time, &c, &r, &err));
        assert_false(r.exact);
        assert_true(r.together_s <= r.equal_s);
        climbed += r.together_s < r.equal_s;
        cd_cotune_free(&r);
    }
    assert_true(taken > 30 && refused > 30 && climbed > 25);
}

/* ---- packing ---- */

static void packed(void **state) {
    (void)state;
    enum { N = 12 };
    for (uint64_t s = 0; s < 500; s++) {
        cd_pack_op op[N];
        uint32_t after[N * N], n_after = 0, units = 1 + (uint32_t)s % 9;
        double end[N] = {0};
        cd_pack p;
        for (uint32_t k = 0; k < N; k++) {
            op[k] = (cd_pack_op){"op", 1 + (uint32_t)(cd_rng_unit(s, k) * 9),
                                 cd_rng_unit(s, 50 + k), n_after, 0};
            for (uint32_t j = 0; j < k; j++)
                if (cd_rng_unit(s, 100 + k * N + j) < 0.2) after[n_after++] = j, op[k].n_after++;
        }
        assert_ok(cd_pack_make(op, N, after, n_after, units, &p, &err));
        uint32_t seen[N] = {0};
        double free_at[9] = {0}, most = 0;
        for (uint32_t i = 0; i < p.n_run; i++) {
            const cd_pack_run *r = &p.run[i];
            for (uint32_t j = 0; j < op[r->op].n_after; j++) {
                const uint32_t a = after[op[r->op].first + j];
                assert_int_equal(seen[a], op[a].tasks);
                assert_true(r->start_s >= end[a]);
            }
            assert_true(r->unit < units && r->start_s >= free_at[r->unit] &&
                        (!i || r->start_s >= p.run[i - 1].start_s));
            free_at[r->unit] = r->start_s + op[r->op].task_s;
            end[r->op] = fmax(end[r->op], free_at[r->unit]);
            most = fmax(most, free_at[r->unit]), seen[r->op]++;
        }
        for (uint32_t k = 0; k < N; k++) assert_int_equal(seen[k], op[k].tasks);
        assert_close(most, p.makespan_s, 1e-12, 0);
        assert_true(p.makespan_s >= fmax(p.chain_s, p.work_s / units) * (1 - 1e-12));
        assert_true(p.makespan_s <=
                    (p.work_s / units + (1 - 1.0 / units) * p.chain_s) * (1 + 1e-12));
        cd_pack_free(&p);
    }
}

static void bad_input(void **state) {
    (void)state;
    double t[] = {1, (double)NAN}, never[] = {(double)INFINITY, (double)INFINITY};
    const char *const name[] = {"conv"};
    cd_game_result r;
    cd_cotune c;
    cd_pack p;
    co ctx = {0, 0};
    assert_status(cd_game_play(&(cd_game){1, 2, name, t, NULL}, 0, &r, &err), CDMPP_ERANGE);
    assert_non_null(strstr(err.msg, "operator 0 (conv) on device 1"));
    assert_status(cd_game_play(&(cd_game){1, 2, name, never, NULL}, 0, &r, &err), CDMPP_ESCHEMA);
    assert_status(cd_game_play(&(cd_game){1, 0, name, t, NULL}, 0, &r, &err), CDMPP_ERANGE);
    assert_status(cd_cotune_search(0, 1, co_time, &ctx, &c, &err), CDMPP_ERANGE);
    ctx.clash = (double)NAN;
    assert_status(cd_cotune_search(1, 1, co_time, &ctx, &c, &err), CDMPP_ERANGE);
    cd_cotune_free(&c);
    static const uint32_t self[] = {0, 5};
    cd_pack_op op = {"a", 1, 1, 0, 1};
    assert_status(cd_pack_make(&op, 1, self, 1, 2, &p, &err), CDMPP_EINVALID);
    cd_pack_free(&p);
    op.first = 1;
    assert_status(cd_pack_make(&op, 1, self, 2, 2, &p, &err), CDMPP_EINVALID);
    op.n_after = 0, op.tasks = 0;
    assert_status(cd_pack_make(&op, 1, self, 2, 2, &p, &err), CDMPP_ERANGE);
    op.tasks = 1;
    assert_status(cd_pack_make(&op, 1, self, 2, 0, &p, &err), CDMPP_ERANGE);
}

TESTS(NULL, NULL, equilibrium, twelve, many_games_end, cotune, packed, bad_input)
