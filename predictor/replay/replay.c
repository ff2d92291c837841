/* One replay, and an interval for its latency: operators get random times with their spread, and
 * the network is replayed some hundred times. Errors of operators are partly common (`shared`), so
 * that they do not average out over a large network. */
#include "predictor/replay/replay.h"

#include <math.h>

#include "learner/inputs/inputs.h"
#include "predictor/replay/replay_internal.h"

/* at most so many replays of a network, and operators in all of them */
enum { DRAWS = 400, DRAW_OPS = 4000000 };

void cd_replay_free(cd_replay *r) {
    cd_arena_free(&r->arena);
    *r = (cd_replay){0};
}

/* Backwards from the operator that ends last. */
static cdmpp_status walk_back(const cd_replay_net *n, cd_replay *r, cdmpp_err *err) {
    uint32_t last = CD_REPLAY_NONE, m = 0;
    for (uint32_t k = 0; k < n->n_op; k++)
        if (last == CD_REPLAY_NONE || r->op[k].end_s > r->op[last].end_s) last = k;
    for (uint32_t k = last; k != CD_REPLAY_NONE; k = r->op[k].since) m++;
    r->path = CD_NEWN(&r->arena, uint32_t, (size_t)m + 1);
    if (!r->path) return CD_FAIL(err, ENOMEM, "path of %u operators", m);
    r->n_path = m;
    for (uint32_t k = last; k != CD_REPLAY_NONE; k = r->op[k].since) r->path[--m] = k;
    return CDMPP_OK;
}

static double sum_of(const cd_replay_sim *p, const cd_replay *r) {
    double sum = 0;
    for (uint32_t k = 0; k < p->n->n_op; k++) {
        const cd_replay_device *d = &p->n->device[p->n->op[k].device];
        sum += p->n->op[k].seconds + d->gap_s + cd_replay_runs(&p->n->op[k]) * d->issue_s;
    }
    for (uint32_t k = 0; k < r->n_copy; k++)
        sum += cd_replay_copy_s(p, r->copy[k].op, r->copy[k].link);
    return sum;
}

static cdmpp_status replay(const cd_replay_net *n, cd_arena *own, cd_arena *scratch, cd_replay *out,
                           cdmpp_err *err) {
    cd_replay_sim p;
    CD_TRY(cd_replay_prepare(n, own, &p, err));
    double *seconds = CD_NEWN(own, double, (size_t)n->n_op + 1),
           *end = CD_NEWN(own, double, (size_t)n->n_op + 1);
    if (!seconds || !end) return CD_FAIL(err, ENOMEM, "replay of %u operators", n->n_op);
    for (uint32_t k = 0; k < n->n_op; k++) seconds[k] = n->op[k].seconds;
    out->chain_s = cd_replay_chains(&p, seconds, end);
    CD_TRY(cd_replay_simulate(&p, seconds, scratch, out, err));
    out->sum_s = sum_of(&p, out);
    CD_TRY(cd_replay_memory(&p, scratch, out, err));
    return walk_back(n, out, err);
}

cdmpp_status cd_replay_run(const cd_replay_net *n, cd_replay *out, cdmpp_err *err) {
    cd_arena own = {0}, scratch = {0};
    *out = (cd_replay){0};
    const cdmpp_status st = replay(n, &own, &scratch, out, err);
    cd_arena_free(&own);
    cd_arena_free(&scratch);
    return st;
}

/* ---- intervals ---- */

/* Normal number i of a seed, by Box and Muller. */
static double normal(uint64_t seed, uint64_t i) {
    const double u = 1 - cd_rng_unit(seed, 2 * i), v = cd_rng_unit(seed, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static void draw_seconds(const cd_replay_net *n, double shared, uint64_t seed, double *seconds) {
    const double all = normal(seed, 0);
    for (uint32_t k = 0; k < n->n_op; k++) {
        const cd_replay_op *o = &n->op[k];
        const uint64_t key = o->like == UINT32_MAX ? (uint64_t)1 << 40 | k : (uint64_t)o->like + 1;
        const double part = o->shared > shared ? o->shared : shared;
        seconds[k] = o->spread > 0
                         ? o->seconds * exp(o->spread *
                                            (sqrt(part) * all + sqrt(1 - part) * normal(seed, key)))
                         : o->seconds;
    }
}

/* m replays with drawn times into took (m). The net is prepared once; only times change. */
static cdmpp_status sample(const cd_replay_net *n, double shared, uint64_t seed, cd_arena *own,
                           double *took, uint32_t m, cdmpp_err *err) {
    cd_replay_sim p;
    cd_arena scratch = {0};
    CD_TRY(cd_replay_prepare(n, own, &p, err));
    double *seconds = CD_NEWN(own, double, (size_t)n->n_op + 1),
           *end = CD_NEWN(own, double, (size_t)n->n_op + 1);
    cdmpp_status st =
        seconds && end ? CDMPP_OK : CD_FAIL(err, ENOMEM, "replay of %u operators", n->n_op);
    for (uint32_t i = 0; i < m && !st; i++) {
        cd_replay r = {0};
        draw_seconds(n, shared, cd_rng_at(seed, i), seconds);
        cd_replay_chains(&p, seconds, end);
        st = cd_replay_simulate(&p, seconds, &scratch, &r, err);
        took[i] = r.makespan_s;
        cd_replay_free(&r);
    }
    cd_arena_free(&scratch);
    return st;
}

/* Fewer draws of large networks, so that all draws together stay below DRAW_OPS operators.
 * Quantiles are order statistics of the draws. */
cdmpp_status cd_replay_sample(const cd_replay_net *n, double level, double shared, uint64_t seed,
                              cd_replay_interval *out, cdmpp_err *err) {
    if (!(level > 0 && level < 1) || !(shared >= 0 && shared <= 1))
        return CD_FAIL(err, ERANGE, "level %g, shared %g: expected 0 to 1", level, shared);
    const uint32_t by_work = (uint32_t)(DRAW_OPS / ((uint64_t)n->n_op + 1)),
                   m = by_work > DRAWS ? DRAWS
                       : by_work < 20  ? 20
                                       : by_work;
    double took[DRAWS], sum = 0;
    cd_arena own = {0};
    const cdmpp_status st = sample(n, shared, seed, &own, took, m, err);
    cd_arena_free(&own);
    if (st) return st;
    cd_sort_doubles(took, m);
    for (uint32_t i = 0; i < m; i++) sum += took[i];
    const double cut = (1 - level) / 2 * (m - 1);
    *out = (cd_replay_interval){took[(uint32_t)cut], took[m - 1 - (uint32_t)cut], sum / m};
    return CDMPP_OK;
}

cdmpp_status cd_replay_interval_of(const cd_replay_net *n, double makespan_s, double level,
                                   double shared, uint64_t seed, cd_replay_interval *out,
                                   cdmpp_err *err) {
    for (uint32_t k = 0; k < n->n_op; k++)
        if (n->op[k].spread > 0) return cd_replay_sample(n, level, shared, seed, out, err);
    *out = (cd_replay_interval){.low_s = makespan_s, .high_s = makespan_s, .mean_s = makespan_s};
    return CDMPP_OK;
}

void cd_replay_widen(double middle, double spread, double level, double *low, double *high) {
    const double z = spread * cd_normal_quantile(0.5 + level / 2);
    if (!(middle > 0) || !(*low > 0) || !(*high > 0)) return;
    *low = middle * exp(-hypot(log(middle / fmin(*low, middle)), z));
    *high = middle * exp(hypot(log(fmax(*high, middle) / middle), z));
}

void cd_replay_interval_finish(double makespan_s, double spread, double least_s, double level,
                               cd_replay_interval *i) {
    if (spread > 0) cd_replay_widen(makespan_s, spread, level, &i->low_s, &i->high_s);
    if (i->low_s < least_s) i->low_s = least_s; /* NaN stays */
    if (!(i->low_s < i->high_s)) i->low_s = i->high_s = (double)NAN;
}
