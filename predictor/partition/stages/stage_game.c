#include "predictor/partition/stages/stage_game.h"

#include <math.h>
#include <string.h>

/* ---- disjoint devices: best responses ---- */

void cd_stage_game_free(cd_stage_game_result *r) {
    cd_arena_free(&r->arena);
    *r = (cd_stage_game_result){0};
}

/* What op adds to the load of d. */
static double adds(const cd_stage_game *g, uint32_t op, uint32_t d) {
    const size_t at = (size_t)op * g->n_device + d;
    return g->seconds[at] + (g->transfer ? g->transfer[at] : 0);
}

static const char *name_of(const cd_stage_game *g, uint32_t op) { return g->name ? g->name[op] : "no name"; }

static cdmpp_status check_game(const cd_stage_game *g, cdmpp_err *err) {
    if (!g->n_device) return CD_FAIL(err, ERANGE, "no device");
    for (uint32_t k = 0; k < g->n_op; k++) {
        bool some = false;
        for (uint32_t d = 0; d < g->n_device; d++) {
            const double t = g->seconds[(size_t)k * g->n_device + d], x = g->transfer ? g->transfer[(size_t)k * g->n_device + d] : 0;
            if (!(t >= 0) || !(x >= 0))
                return CD_FAIL(err, ERANGE, "operator %u (%s) on device %u: %g seconds, %g of transfer", k, name_of(g, k), d, t, x);
            some = some || isfinite(t + x);
        }
        if (!some) return CD_FAIL(err, ESCHEMA, "operator %u (%s): no device can run it", k, name_of(g, k));
    }
    return CDMPP_OK;
}

static void loads(const cd_stage_game *g, const uint32_t *where, double *load) {
    for (uint32_t d = 0; d < g->n_device; d++) load[d] = 0;
    for (uint32_t k = 0; k < g->n_op; k++) load[where[k]] += adds(g, k, where[k]);
}

static double load_on(const cd_stage_game *g, const uint32_t *where, uint32_t d) {
    double sum = 0;
    for (uint32_t k = 0; k < g->n_op; k++)
        if (where[k] == d) sum += adds(g, k, d);
    return sum;
}

double cd_stage_game_gain(const cd_stage_game *g, const uint32_t *where, uint32_t *who) {
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
static uint32_t response(const cd_stage_game *g, const uint32_t *where, const double *load, uint32_t k) {
    uint32_t best = where[k];
    double least = load[best] * (1 - 1e-13);
    for (uint32_t d = 0; d < g->n_device; d++)
        if (d != where[k] && load[d] + adds(g, k, d) < least) least = load[d] + adds(g, k, d), best = d;
    return best;
}

static void play(const cd_stage_game *g, cd_stage_game_result *r) {
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
            loads(g, r->where, r->load); /* from nothing: no drift, so no circle of moves that only rounding sees */
            moved = true;
        }
    }
}

/* ---- the optimum ---- */

typedef struct {
    const cd_stage_game *g;
    uint32_t *order, *now, *best;
    double *rest, *load, least; /* rest[i]: fastest of order[i ..], summed */
    uint64_t left;
} optimum;

static double fastest(const cd_stage_game *g, uint32_t k) {
    double t = (double)INFINITY;
    for (uint32_t d = 0; d < g->n_device; d++) t = fmin(t, adds(g, k, d));
    return t;
}

/* False: too many nodes. */
static bool descend(optimum *o, uint32_t i) {
    const cd_stage_game *g = o->g;
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

/* Large ones first; from the equilibrium down. */
static cdmpp_status find_best(const cd_stage_game *g, uint64_t most, cd_stage_game_result *r, cdmpp_err *err) {
    enum { DEEP = 512 };
    cd_arena own = {0};
    const size_t n = (size_t)g->n_op + 1;
    optimum o = {g, CD_NEWN(&own, uint32_t, n), CD_NEWN(&own, uint32_t, n), CD_NEWN(&r->arena, uint32_t, n), CD_NEWN(&own, double, n),
                 CD_NEWN(&own, double, g->n_device), r->makespan_s, g->n_op <= DEEP ? most : 0};
    r->best_s = r->price = (double)NAN;
    if (!o.order || !o.now || !o.best || !o.rest || !o.load) {
        cd_arena_free(&own);
        return CD_FAIL(err, ENOMEM, "%u operators", g->n_op);
    }
    for (uint32_t k = 0; k < g->n_op; k++) {
        uint32_t i = k;
        for (; i > 0 && g->n_op <= DEEP && fastest(g, o.order[i - 1]) < fastest(g, k); i--) o.order[i] = o.order[i - 1];
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

cdmpp_status cd_stage_game_play(const cd_stage_game *g, uint64_t most, cd_stage_game_result *out, cdmpp_err *err) {
    *out = (cd_stage_game_result){0};
    CD_TRY(check_game(g, err));
    out->where = CD_NEWN(&out->arena, uint32_t, (size_t)g->n_op + 1);
    out->load = CD_NEWN(&out->arena, double, g->n_device);
    if (!out->where || !out->load) return CD_FAIL(err, ENOMEM, "%u operators", g->n_op);
    play(g, out);
    for (uint32_t d = 0; d < g->n_device; d++) out->makespan_s = fmax(out->makespan_s, out->load[d]);
    out->gain = cd_stage_game_gain(g, out->where, NULL);
    return find_best(g, most ? most : 4000000, out, err);
}

/* ---- shared processors: threads for each ---- */

void cd_stage_cotune_free(cd_stage_cotune *c) {
    cd_arena_free(&c->arena);
    *c = (cd_stage_cotune){0};
}

typedef struct {
    uint32_t n, all, *now;
    cd_stage_cotune_time *time;
    void *ctx;
    cd_stage_cotune *out;
    cdmpp_err *err;
} tuner;

static cdmpp_status ask(tuner *t, uint32_t op, double *s) {
    *s = t->time(op, t->now, t->n, t->ctx);
    return *s >= 0 ? CDMPP_OK : CD_FAIL(t->err, ERANGE, "operator %u with %u threads: %g seconds", op, t->now[op], *s);
}

/* The slowest of all with now[]; kept where it is less. */
static cdmpp_status look(tuner *t, double *most) {
    *most = 0;
    for (uint32_t k = 0; k < t->n; k++) {
        double s;
        CD_TRY(ask(t, k, &s));
        *most = fmax(*most, s);
    }
    t->out->n_look++;
    if (!(*most < t->out->together_s)) return CDMPP_OK;
    t->out->together_s = *most;
    memcpy(t->out->threads, t->now, t->n * sizeof *t->now);
    return CDMPP_OK;
}

static cdmpp_status sequential(tuner *t) {
    for (uint32_t k = 0; k < t->n; k++) {
        double least = (double)INFINITY, s;
        memset(t->now, 0, t->n * sizeof *t->now);
        for (uint32_t n = 1; n <= t->all; n++) {
            t->now[k] = n;
            CD_TRY(ask(t, k, &s));
            least = fmin(least, s);
        }
        t->out->sequential_s += least;
    }
    return CDMPP_OK;
}

/* Every way: operator k takes 1 .. what the others leave. */
static cdmpp_status every(tuner *t, uint32_t k, uint32_t left) {
    double most;
    if (k == t->n) return look(t, &most);
    for (uint32_t n = 1; n + (t->n - k - 1) <= left; n++) {
        t->now[k] = n;
        CD_TRY(every(t, k + 1, left - n));
    }
    return CDMPP_OK;
}

/* From equal shares: one thread from anybody to anybody, or to nobody, while that helps. */
static cdmpp_status climb(tuner *t) {
    for (bool better = true; better;) {
        const double was = t->out->together_s;
        double most;
        for (uint32_t a = 0; a < t->n; a++)
            for (uint32_t b = 0; b <= t->n; b++) {
                memcpy(t->now, t->out->threads, t->n * sizeof *t->now);
                if (a == b || t->now[a] < 2) continue;
                t->now[a]--;
                if (b < t->n) t->now[b]++;
                CD_TRY(look(t, &most));
            }
        better = t->out->together_s < was;
    }
    return CDMPP_OK;
}

/* Ways to give n at least one each out of `all`: C(all, n); */
static double ways(uint32_t all, uint32_t n) {
    double w = 1;
    for (uint32_t i = 1; i <= n && w < 1e12; i++) w = w * (all - n + i) / i;
    return w;
}

static cdmpp_status tune(tuner *t) {
    cd_stage_cotune *out = t->out;
    out->together_s = (double)INFINITY, out->equal_s = (double)NAN;
    CD_TRY(sequential(t));
    if (t->all < t->n) return out->exact = true, CDMPP_OK;
    for (uint32_t k = 0; k < t->n; k++) t->now[k] = out->threads[k] = t->all / t->n + (k < t->all % t->n);
    CD_TRY(look(t, &out->equal_s));
    out->exact = t->n <= 64 && ways(t->all, t->n) <= 1e5;
    CD_TRY(out->exact ? every(t, 0, t->all) : climb(t));
    out->accepted = out->together_s < out->sequential_s * (1 - 1e-12);
    return CDMPP_OK;
}

cdmpp_status cd_stage_cotune_search(uint32_t n_op, uint32_t threads, cd_stage_cotune_time *time, void *ctx, cd_stage_cotune *out, cdmpp_err *err) {
    cd_arena own = {0};
    *out = (cd_stage_cotune){0};
    if (!n_op || !threads) return CD_FAIL(err, ERANGE, "%u operators, %u threads", n_op, threads);
    tuner t = {n_op, threads, CD_NEWN(&own, uint32_t, n_op), time, ctx, out, err};
    out->threads = CD_NEWN(&out->arena, uint32_t, n_op);
    const cdmpp_status st = t.now && out->threads ? tune(&t) : (cdmpp_status)CD_FAIL(err, ENOMEM, "%u operators", n_op);
    cd_arena_free(&own);
    return st;
}
