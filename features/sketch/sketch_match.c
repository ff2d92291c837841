/* A record's schedule as choices of a space, which may be of a task of another shape: the steps of
 * the record are read as decisions, and the sampler takes for each the option nearest to it. So a
 * good schedule of one task is a start for another. */
#include <string.h>

#include "features/sketch/sketch_internal.h"

static bool same_text(cd_str a, cd_str b) { return a.n == b.n && (!a.n || !memcmp(a.p, b.p, a.n)); }

/* The extent that a split notes is not compared: nothing depends on it, and TVM's mutations leave
 * that of an ancestor. */
static bool same_step(const cd_record_step *a, const cd_record_step *b) {
    const bool noted = a->kind == CD_RECORD_STEP_SP || a->i[1] == b->i[1];
    return a->kind == b->kind && a->stage == b->stage && a->i[0] == b->i[0] && noted &&
           a->i[2] == b->i[2] && a->n_list == b->n_list &&
           (!a->n_list || !memcmp(a->list, b->list, a->n_list * sizeof *a->list)) &&
           same_text(a->s, b->s);
}

/* Is b step a of a sketch, but for the extent and open lengths? */
static bool like_step(const cd_record_step *a, const cd_record_step *b) {
    if (a->kind != CD_RECORD_STEP_SP) return same_step(a, b);
    if (b->kind != CD_RECORD_STEP_SP || a->stage != b->stage || a->i[0] != b->i[0] ||
        a->i[2] != b->i[2] || a->n_list != b->n_list)
        return false;
    for (uint32_t k = 0; k < a->n_list; k++) /* a single one is a choice */
        if (a->list[k] && a->list[k] != b->list[k] && a->n_list > 1) return false;
    return true;
}

static bool begins(const cd_sketch_state *s, const cd_record *r) {
    if (s->n_step > r->n_step) return false;
    for (uint32_t k = 0; k < s->n_step; k++)
        if (!like_step(&s->step[k], &r->step[k])) return false;
    return true;
}

/* The longest sketch that the record begins with: shorter ones are those where rules were skipped.
 * -1: none. */
static int64_t find_sketch(const cd_sketch_space *sp, const cd_record *r) {
    int64_t best = -1;
    for (uint32_t k = 0; k < sp->n_sketch; k++)
        if (begins(sp->sketch[k], r) &&
            (best < 0 || sp->sketch[k]->n_step > sp->sketch[best]->n_step))
            best = k;
    return best;
}

/* ---- the record's decisions ---- */

static void want_choice(cd_sketch_sampler *w, cd_sketch_choice_kind kind, uint32_t at,
                        uint32_t pick, uint32_t value) {
    if (w->given.n == w->given.cap) return; /* room was made for all */
    w->given.p[w->given.n++] = (cd_sketch_choice){
        .pick = pick, .n = 1, .value = value, .kind = (uint16_t)kind, .at = (uint16_t)at};
}

static bool want_tile(cd_sketch_sampler *w, const cd_sketch_open_split *o,
                      const cd_record_step *ours, const cd_record_step *theirs) {
    uint32_t pick;
    const uint32_t n = ours->n_list;
    if (ours->i[1] != theirs->i[1] || !cd_sketch_tile_index(o->tile, n, theirs->list, &pick)) {
        double *want = cd_arena_alloc(&w->arena, n + 1, sizeof *want), product = 1;
        if (!want) return false;
        for (uint32_t k = 0; k < n; k++)
            product *= want[k + 1] = theirs->list[k] > 0 ? theirs->list[k] : 1;
        want[0] = theirs->i[1] > 0 ? theirs->i[1] / product : 1;
        pick = cd_sketch_tile_nearest(o->tile, n, want, &w->arena);
        if (pick == UINT32_MAX) return false;
    }
    want_choice(w, CD_SKETCH_CHOICE_TILE, o->step, pick, CD_SKETCH_CHOICE_ANY);
    return true;
}

/* Loops that the step before fused into the one that is annotated. */
static uint32_t fused_before(const cd_record *r, uint32_t k) {
    const cd_record_step *fu = &r->step[k ? k - 1 : 0], *an = &r->step[k];
    return fu->kind == CD_RECORD_STEP_FU && fu->stage == an->stage && fu->n_list &&
                   fu->list[0] == an->i[0]
               ? fu->n_list
               : 1;
}

static uint32_t unroll_of(cd_str pragma) {
    const char *at = memchr(pragma.p, '$', pragma.n);
    uint32_t v = 0;
    if (!at) return 0;
    for (at++; at < pragma.p + pragma.n && *at >= '0' && *at <= '9' && v < 100000000; at++)
        v = v * 10 + (uint32_t)(*at - '0');
    return v;
}

/* What a step after the sketch decided. */
static void want_step(cd_sketch_sampler *w, const cd_record *r, uint32_t k, bool *vector,
                      uint32_t n_stage) {
    const cd_record_step *t = &r->step[k];
    const uint32_t at = (uint32_t)t->stage;
    switch (t->kind) {
    case CD_RECORD_STEP_CI:
        want_choice(w, CD_SKETCH_CHOICE_PLACE, at, 0, CD_SKETCH_PLACE_INLINE);
        break;
    case CD_RECORD_STEP_CR:
        want_choice(w, CD_SKETCH_CHOICE_PLACE, at, 0, CD_SKETCH_PLACE_ROOT);
        break;
    case CD_RECORD_STEP_CA:
        want_choice(w, CD_SKETCH_CHOICE_PLACE, at, 0,
                    cd_sketch_place((uint32_t)t->i[0], (uint32_t)t->i[1]));
        break;
    case CD_RECORD_STEP_SP:
        want_choice(w, CD_SKETCH_CHOICE_SPLIT, at, 0, t->n_list ? (uint32_t)t->list[0] : 1);
        break;
    case CD_RECORD_STEP_PR: want_choice(w, CD_SKETCH_CHOICE_UNROLL, at, 0, unroll_of(t->s)); break;
    case CD_RECORD_STEP_AN:
        if (t->i[1] == CD_SKETCH_PARALLEL)
            want_choice(w, CD_SKETCH_CHOICE_PARALLEL, at, 0, fused_before(r, k));
        if (t->i[1] != CD_SKETCH_VECTORIZE) break;
        want_choice(w, CD_SKETCH_CHOICE_VECTOR, at, 0, fused_before(r, k));
        if (at < n_stage) vector[at] = true;
        break;
    default: break;
    }
}

/* A stage without a vector step wants no vector: that is a decision, too. */
static cdmpp_status want_all(cd_sketch_sampler *w, uint32_t sketch, const cd_record *r,
                             cdmpp_err *err) {
    const cd_sketch_state *s = w->space->sketch[sketch];
    const cd_sketch_open_splits *o = &w->space->open[sketch];
    bool *vector = cd_arena_zalloc(&w->arena, s->n_stage + 1, sizeof *vector);
    if (!vector) return CD_FAIL(err, ENOMEM, "vectors");
    CD_TRY(cd_sketch_sampler_reserve(w, 1 + r->n_step + o->n + s->n_stage, err));
    want_choice(w, CD_SKETCH_CHOICE_SKETCH, 0, sketch, CD_SKETCH_CHOICE_ANY);
    for (uint32_t k = 0; k < o->n; k++) {
        const cd_record_step *theirs = &r->step[o->p[k].step];
        if (o->p[k].fixed)
            want_choice(w, CD_SKETCH_CHOICE_SPLIT, o->p[k].stage, 0, (uint32_t)theirs->list[0]);
        else if (o->p[k].tile && !want_tile(w, &o->p[k], &s->step[o->p[k].step], theirs))
            return CD_FAIL(err, ENOMEM, "tile lengths");
    }
    for (uint32_t k = s->n_step; k < r->n_step; k++) want_step(w, r, k, vector, s->n_stage);
    for (uint32_t k = 0; k < s->n_stage; k++)
        if (!vector[k]) want_choice(w, CD_SKETCH_CHOICE_VECTOR, k, 0, 0);
    return CDMPP_OK;
}

/* *exact by comparing the steps: limits of the space may have moved a decision. */
cdmpp_status cd_sketch_sampler_match(cd_sketch_sampler *w, const cd_record *r,
                                     cd_sketch_sample *out, bool *exact, cdmpp_err *err) {
    *out = (cd_sketch_sample){0};
    *exact = false;
    const int64_t sketch = w->space->naive ? 0 : find_sketch(w->space, r);
    if (sketch < 0)
        return CD_FAIL(err, EREJECTED, "the record begins with no sketch of this space");
    cd_arena_reset(&w->arena);
    w->given.n = 0;
    if (!w->space->naive) CD_TRY(want_all(w, (uint32_t)sketch, r, err));
    w->source = CD_SKETCH_VALUES;
    w->strict = false;
    CD_TRY(cd_sketch_sampler_run(w, out, err));
    *exact = out->n_step == r->n_step;
    for (uint32_t k = 0; *exact && k < r->n_step; k++)
        *exact = same_step(&out->step[k], &r->step[k]);
    return CDMPP_OK;
}
