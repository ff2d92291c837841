/* Operators that choose their devices for themselves. Best responses find an equilibrium; branch
 * and bound finds the best assignment to compare it with. */
#include "predictor/partition/games/game.h"

#include <math.h>
#include <string.h>

#include "base/text/text.h"

/* Result of a game as a table and as JSON: who is where, the loads, and what the equilibrium costs
 * beside the optimum. */

/* An optimum that was not found within the effort is "-", and there is no price of anarchy then. */
void cd_game_print(const cd_game_file *g, const cd_game_result *r, cd_buf *b) {
    const uint32_t n = g->g.n_device;
    cd_buf_puts(b, "operator                 equilibrium       takes  optimum\n");
    for (uint32_t i = 0; i < g->g.n_op; i++) {
        const size_t k = (size_t)i * n + r->where[i];
        cd_buf_putf(b, "%-24s %-12s ", g->name[i], g->device[r->where[i]]);
        cd_units_put_seconds_wide(b, g->seconds[k] + g->transfer[k]);
        cd_buf_putf(b, "  %s\n", r->best ? g->device[r->best[i]] : "-");
    }
    cd_buf_puts(b, "\nloads: ");
    for (uint32_t d = 0; d < n; d++) {
        cd_buf_putf(b, "%s%s ", d ? ", " : "", g->device[d]);
        cd_units_put_seconds(b, r->load[d]);
    }
    cd_buf_puts(b, "\nequilibrium: all done after ");
    cd_units_put_seconds(b, r->makespan_s);
    cd_buf_putf(b, ", reached by %u moves; nobody gains by moving alone (largest gain %.2g)\n",
                r->n_move, r->gain);
    if (!r->best) {
        cd_buf_puts(b, "optimum: not found within the effort\n");
        return;
    }
    cd_buf_puts(b, "optimum: ");
    cd_units_put_seconds(b, r->best_s);
    cd_buf_putf(b, "; price of anarchy %.3f\n", r->price);
}

static void put_where(cd_json_writer *w, const char *key, const cd_game_file *g,
                      const uint32_t *where) {
    cd_json_write_key(w, key);
    if (!where) {
        cd_json_write_null(w);
        return;
    }
    cd_json_write_open(w, '[');
    for (uint32_t i = 0; i < g->g.n_op; i++) cd_json_write_str(w, g->device[where[i]]);
    cd_json_write_close(w, ']');
}

void cd_game_print_json(const cd_game_file *g, const cd_game_result *r, cd_buf *out) {
    cd_json_writer w = {.out = out};
    cd_json_write_open(&w, '{');
    cd_json_write_key(&w, "operators"), cd_json_write_open(&w, '[');
    for (uint32_t i = 0; i < g->g.n_op; i++) cd_json_write_str(&w, g->name[i]);
    cd_json_write_close(&w, ']');
    put_where(&w, "equilibrium", g, r->where);
    put_where(&w, "optimum", g, r->best);
    cd_json_write_key(&w, "load_s"), cd_json_write_open(&w, '{');
    for (uint32_t d = 0; d < g->g.n_device; d++)
        cd_json_write_member_real(&w, g->device[d], r->load[d]);
    cd_json_write_close(&w, '}');
    cd_json_write_member_real(&w, "makespan_s", r->makespan_s);
    cd_json_write_member_real(&w, "optimum_s", r->best_s);
    cd_json_write_member_real(&w, "price_of_anarchy", r->price);
    cd_json_write_member_real(&w, "largest_gain", r->gain);
    cd_json_write_member_int(&w, "moves", r->n_move);
    cd_json_write_close(&w, '}');
}

/* ---- best responses ---- */

void cd_game_free(cd_game_result *r) {
    cd_arena_free(&r->arena);
    *r = (cd_game_result){0};
}

/* What op adds to the load of d. */
static double adds(const cd_game *g, uint32_t op, uint32_t d) {
    const size_t at = (size_t)op * g->n_device + d;
    return g->seconds[at] + (g->transfer ? g->transfer[at] : 0);
}

static const char *name_of(const cd_game *g, uint32_t op) {
    return g->name ? g->name[op] : "no name";
}

static cdmpp_status check_game(const cd_game *g, cdmpp_err *err) {
    if (!g->n_device) return CD_FAIL(err, ERANGE, "no device");
    for (uint32_t k = 0; k < g->n_op; k++) {
        bool some = false;
        for (uint32_t d = 0; d < g->n_device; d++) {
            const double t = g->seconds[(size_t)k * g->n_device + d],
                         x = g->transfer ? g->transfer[(size_t)k * g->n_device + d] : 0;
            if (!(t >= 0) || !(x >= 0))
                return CD_FAIL(err, ERANGE,
                               "operator %u (%s) on device %u: %g seconds, %g of transfer", k,
                               name_of(g, k), d, t, x);
            some = some || isfinite(t + x);
        }
        if (!some)
            return CD_FAIL(err, ESCHEMA, "operator %u (%s): no device can run it", k,
                           name_of(g, k));
    }
    return CDMPP_OK;
}

static void loads(const cd_game *g, const uint32_t *where, double *load) {
    for (uint32_t d = 0; d < g->n_device; d++) load[d] = 0;
    for (uint32_t k = 0; k < g->n_op; k++) load[where[k]] += adds(g, k, where[k]);
}

static double load_on(const cd_game *g, const uint32_t *where, uint32_t d) {
    double sum = 0;
    for (uint32_t k = 0; k < g->n_op; k++)
        if (where[k] == d) sum += adds(g, k, d);
    return sum;
}

/* Loads are summed again for each player and device: this verifies the result of play(), so it
 * shares nothing with it. */
double cd_game_gain(const cd_game *g, const uint32_t *where, uint32_t *who) {
    double most = 0;
    for (uint32_t k = 0; k < g->n_op; k++) {
        const double pays = load_on(g, where, where[k]);
        for (uint32_t d = 0; d < g->n_device; d++) {
            if (d == where[k] || isinf(adds(g, k, d)) || !(pays > 0)) continue;
            const double gain = (pays - (load_on(g, where, d) + adds(g, k, d))) / pays;
            if (gain <= most) continue;
            most = gain;
            if (who) *who = k;
        }
    }
    return most;
}

/* The best other device of k; its own where none is better by more than the arithmetic's noise. */
static uint32_t response(const cd_game *g, const uint32_t *where, const double *load, uint32_t k) {
    uint32_t best = where[k];
    double least = load[best] * (1 - 1e-13);
    for (uint32_t d = 0; d < g->n_device; d++)
        if (d != where[k] && load[d] + adds(g, k, d) < least)
            least = load[d] + adds(g, k, d), best = d;
    return best;
}

/* Everyone starts where it is fastest alone. It ends: each move makes the sorted list of loads
 * smaller in the order of words. */
static void play(const cd_game *g, cd_game_result *r) {
    for (uint32_t k = 0; k < g->n_op; k++)
        for (uint32_t d = 1; d < g->n_device; d++)
            if (adds(g, k, d) < adds(g, k, r->where[k])) r->where[k] = d;
    loads(g, r->where, r->load);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t k = 0; k < g->n_op; k++) {
            const uint32_t d = response(g, r->where, r->load, k);
            if (d == r->where[k]) continue;
            r->where[k] = d, r->n_move++;
            /* from nothing: no drift, so no circle of moves that only rounding sees */
            loads(g, r->where, r->load);
            moved = true;
        }
    }
}

/* ---- the optimum ---- */

typedef struct {
    const cd_game *g;
    uint32_t *order, *now, *best;
    double *rest, *load, least; /* rest[i]: fastest of order[i ..], summed */
    uint64_t left;
} optimum;

static double fastest(const cd_game *g, uint32_t k) {
    double t = (double)INFINITY;
    for (uint32_t d = 0; d < g->n_device; d++) t = fmin(t, adds(g, k, d));
    return t;
}

/* Branch and bound in depth: the bound is the largest load so far, or the mean load with what is
 * left at its fastest. False: too many nodes. */
static bool descend(optimum *o, uint32_t i) {
    const cd_game *g = o->g;
    double most = 0, sum = o->rest[i];
    if (!o->left--) return false;
    for (uint32_t d = 0; d < g->n_device; d++) most = fmax(most, o->load[d]), sum += o->load[d];
    if (fmax(most, sum / g->n_device) >= o->least * (1 - 1e-13)) return true;
    if (i == g->n_op) {
        o->least = most;
        memcpy(o->best, o->now, g->n_op * sizeof *o->best);
        return true;
    }
    const uint32_t k = o->order[i];
    for (uint32_t d = 0; d < g->n_device; d++) {
        const double was = o->load[d], t = adds(g, k, d);
        if (isinf(t)) continue;
        o->now[k] = d, o->load[d] = was + t;
        const bool ok = descend(o, i + 1);
        o->load[d] = was;
        if (!ok) return false;
    }
    return true;
}

/* Searches below the equilibrium, which is the first bound. Large operators come first, because
 * they decide the makespan and cut most. */
static cdmpp_status find_best(const cd_game *g, uint64_t most, cd_game_result *r, cdmpp_err *err) {
    enum { DEEP = 512 };
    cd_arena own = {0};
    const size_t n = (size_t)g->n_op + 1;
    optimum o = {g,
                 CD_NEWN(&own, uint32_t, n),
                 CD_NEWN(&own, uint32_t, n),
                 CD_NEWN(&r->arena, uint32_t, n),
                 CD_NEWN(&own, double, n),
                 CD_NEWN(&own, double, g->n_device),
                 r->makespan_s,
                 g->n_op <= DEEP ? most : 0};
    r->best_s = r->price = (double)NAN;
    if (!o.order || !o.now || !o.best || !o.rest || !o.load) {
        cd_arena_free(&own);
        return CD_FAIL(err, ENOMEM, "%u operators", g->n_op);
    }
    for (uint32_t k = 0; k < g->n_op; k++) {
        uint32_t i = k;
        for (; i > 0 && g->n_op <= DEEP && fastest(g, o.order[i - 1]) < fastest(g, k); i--)
            o.order[i] = o.order[i - 1];
        o.order[i] = k;
    }
    for (uint32_t i = g->n_op; i-- > 0;) o.rest[i] = o.rest[i + 1] + fastest(g, o.order[i]);
    memcpy(o.best, r->where, g->n_op * sizeof *o.best);
    if (descend(&o, 0)) {
        r->best = o.best, r->best_s = o.least;
        r->price = r->best_s > 0 ? r->makespan_s / r->best_s : 1;
    }
    cd_arena_free(&own);
    return CDMPP_OK;
}

cdmpp_status cd_game_play(const cd_game *g, uint64_t most, cd_game_result *out, cdmpp_err *err) {
    *out = (cd_game_result){0};
    CD_TRY(check_game(g, err));
    out->where = CD_NEWN(&out->arena, uint32_t, (size_t)g->n_op + 1);
    out->load = CD_NEWN(&out->arena, double, g->n_device);
    if (!out->where || !out->load) return CD_FAIL(err, ENOMEM, "%u operators", g->n_op);
    play(g, out);
    for (uint32_t d = 0; d < g->n_device; d++)
        out->makespan_s = fmax(out->makespan_s, out->load[d]);
    out->gain = cd_game_gain(g, out->where, NULL);
    return find_best(g, most ? most : 4000000, out, err);
}
