/* From schedules to others near them: Ansor's mutations, and crossover, which Ansor does not have.
 * Both change the list of choices and complete the sketch again. */
#include "features/sketch/sketch_internal.h"

/* Streams of random numbers apart from those of draws. */
enum { MUTATE = 0x6d75, CROSS = 0x6372 };

static void seed(cd_sketch_sampler *w, uint64_t stream, uint64_t i) {
    w->key = cd_rng_at(w->seed ^ cd_rng_mix(stream), i);
    w->drawn = 0;
    w->source = CD_SKETCH_VALUES;
    w->strict = true;
}

static double unit(cd_sketch_sampler *w) { return cd_rng_unit(w->key, w->drawn++); }

/* ---- one factor from a level of a split to another ---- */

static void shuffle(cd_sketch_sampler *w, uint32_t *p, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) p[k] = k;
    for (uint32_t k = n; k > 1; k--) {
        const uint32_t j = (uint32_t)cd_sketch_random(w, k), x = p[k - 1];
        p[k - 1] = p[j];
        p[j] = x;
    }
}

/* A random divisor of n, above 1 and at most `most`; 0: there is none. */
static int32_t factor_of(cd_sketch_sampler *w, int32_t n, int32_t most) {
    uint32_t count = 0;
    for (int32_t f = 2; f <= n && f <= most; f++) count += n % f == 0;
    if (!count) return 0;
    uint32_t pick = (uint32_t)cd_sketch_random(w, count);
    for (int32_t f = 2;; f++)
        if (n % f == 0 && !pick--) return f;
}

/* Levels 0 (outermost) .. n of a split. */
static bool move_factor(cd_sketch_sampler *w, int32_t *len, uint32_t n) {
    uint32_t order[CD_SKETCH_MAX_LEVEL];
    shuffle(w, order, n + 1);
    for (uint32_t k = 0; k <= n; k++) {
        const uint32_t from = order[k], to = order[(k + 1) % (n + 1)];
        if (len[from] < 2) continue;
        const int32_t f =
            factor_of(w, len[from], to == n ? CD_SKETCH_MAX_INNERMOST / len[n] : len[from]);
        if (!f) continue;
        len[from] /= f;
        len[to] *= f;
        return true;
    }
    return false;
}

static const cd_sketch_open_split *open_at(const cd_sketch_space *sp, uint32_t sketch,
                                           uint32_t step) {
    const cd_sketch_open_splits *o = &sp->open[sketch];
    for (uint32_t k = 0; k < o->n; k++)
        if (o->p[k].step == step) return &o->p[k];
    return NULL;
}

static bool mutate_tile(cd_sketch_sampler *w, uint32_t sketch, cd_sketch_choice *c) {
    const cd_sketch_open_split *o = open_at(w->space, sketch, c->at);
    if (!o || !o->tile) return false;
    const cd_record_step *t = &w->space->sketch[sketch]->step[o->step];
    int32_t len[CD_SKETCH_MAX_LEVEL];
    if (t->n_list >= CD_SKETCH_MAX_LEVEL) return false;
    cd_sketch_tile_lengths(o->tile, t->n_list, c->pick % cd_sketch_tile_count(o->tile, t->n_list),
                           len + 1);
    len[0] = t->i[1];
    for (uint32_t k = 1; k <= t->n_list; k++) len[0] /= len[k];
    return move_factor(w, len, t->n_list) &&
           cd_sketch_tile_index(o->tile, t->n_list, len + 1, &c->pick);
}

static bool mutate_other(cd_sketch_sampler *w, cd_sketch_choice *c) {
    c->pick = (c->pick + 1 + (uint32_t)cd_sketch_random(w, c->n - 1)) % c->n;
    c->value = CD_SKETCH_CHOICE_ANY;
    return true;
}

/* ---- which choice ---- */

/* Ansor counts all splits among the tiles. */
static uint32_t weigh_as(uint16_t kind) {
    return kind == CD_SKETCH_CHOICE_SPLIT ? CD_SKETCH_CHOICE_TILE : kind;
}

static const double cpu_weight[CD_SKETCH_CHOICE_KINDS] = {[CD_SKETCH_CHOICE_TILE] = 0.90,
                                                          [CD_SKETCH_CHOICE_UNROLL] = 0.04,
                                                          [CD_SKETCH_CHOICE_PLACE] = 0.05,
                                                          [CD_SKETCH_CHOICE_PARALLEL] = 0.01};
static const double gpu_weight[CD_SKETCH_CHOICE_KINDS] = {
    [CD_SKETCH_CHOICE_TILE] = 0.90, [CD_SKETCH_CHOICE_UNROLL] = 0.10};

/* First the kind, by weight among those that have something to change, then one of its choices. */
static cd_sketch_choice *choose(cd_sketch_sampler *w) {
    const double *weight = w->space->gpu ? gpu_weight : cpu_weight;
    uint32_t count[CD_SKETCH_CHOICE_KINDS] = {0}, kind = CD_SKETCH_CHOICE_KINDS;
    double sum = 0;
    for (uint32_t k = 0; k < w->given.n; k++)
        if (w->given.p[k].n > 1 && w->given.p[k].kind < CD_SKETCH_CHOICE_KINDS)
            count[weigh_as(w->given.p[k].kind)]++;
    for (uint32_t k = 0; k < CD_SKETCH_CHOICE_KINDS; k++) sum += count[k] ? weight[k] : 0;
    double at = unit(w) * sum;
    for (uint32_t k = 0; k < CD_SKETCH_CHOICE_KINDS; k++) {
        if (!count[k] || weight[k] <= 0) continue;
        kind = k;
        if ((at -= weight[k]) < 0) break;
    }
    if (kind == CD_SKETCH_CHOICE_KINDS) return NULL;
    uint32_t pick = (uint32_t)cd_sketch_random(w, count[kind]);
    for (uint32_t k = 0;; k++)
        if (w->given.p[k].n > 1 && weigh_as(w->given.p[k].kind) == kind && !pick--)
            return &w->given.p[k];
}

static uint32_t sketch_of(const cd_sketch_space *sp, const cd_sketch_choice *c, uint32_t n) {
    return n && c->kind == CD_SKETCH_CHOICE_SKETCH && sp->n_sketch ? c->pick % sp->n_sketch : 0;
}

cdmpp_status cd_sketch_sampler_mutate(cd_sketch_sampler *w, const cd_sketch_choice *c, uint32_t n,
                                      uint64_t i, cd_sketch_sample *out, cdmpp_err *err) {
    const uint32_t sketch = sketch_of(w->space, c, n);
    *out = (cd_sketch_sample){0};
    CD_TRY(cd_sketch_sampler_set(w, c, n, err));
    seed(w, MUTATE, i);
    cd_sketch_choice *m = choose(w);
    if (!m || !(m->kind == CD_SKETCH_CHOICE_TILE ? mutate_tile(w, sketch, m) : mutate_other(w, m)))
        return CD_FAIL(err, EREJECTED, "nothing of sketch %u can be mutated so", sketch);
    return cd_sketch_sampler_run(w, out, err);
}

/* The second list is followed in order: a decision that only one of them has stays as it is. */
cdmpp_status cd_sketch_sampler_crossover(cd_sketch_sampler *w, const cd_sketch_choice *a,
                                         uint32_t na, const cd_sketch_choice *b, uint32_t nb,
                                         uint64_t i, cd_sketch_sample *out, cdmpp_err *err) {
    const uint32_t sketch = sketch_of(w->space, a, na), other = sketch_of(w->space, b, nb);
    *out = (cd_sketch_sample){0};
    if (sketch != other)
        return CD_FAIL(err, EREJECTED, "schedules of sketches %u and %u do not cross", sketch,
                       other);
    CD_TRY(cd_sketch_sampler_set(w, a, na, err));
    seed(w, CROSS, i);
    for (uint32_t k = 0, j = 0; k < w->given.n; k++) {
        cd_sketch_choice *c = &w->given.p[k];
        uint32_t at = j;
        while (at < nb && (b[at].kind != c->kind || b[at].at != c->at)) at++;
        if (at == nb) continue;
        j = at + 1;
        if (cd_sketch_random(w, 2)) *c = b[at];
    }
    return cd_sketch_sampler_run(w, out, err);
}
