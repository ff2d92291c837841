/* Decisions, drawn at random or read from a list. Every rule that has a choice asks
 * cd_sketch_choose, which notes what was chosen: the list of all choices is the schedule's name,
 * and gives the same schedule again. */
#include <string.h>

#include "features/sketch/sketch_internal.h"

void cd_sketch_choices_free(cd_sketch_choices *c) {
    cd_mem_free(c->p);
    *c = (cd_sketch_choices){0};
}

bool cd_sketch_choices_reserve(cd_sketch_choices *c, uint32_t n) {
    if (n <= c->cap) return true;
    const uint32_t cap = n < 32 ? 64 : n * 2;
    cd_sketch_choice *p = cd_mem_realloc(c->p, c->n * sizeof *p, cap * sizeof *p);
    if (!p) return false;
    c->p = p;
    c->cap = cap;
    return true;
}

uint64_t cd_sketch_random(cd_sketch_sampler *w, uint64_t n) {
    return cd_rng_at(w->key, w->drawn++) % n;
}

static uint32_t slot_of(const cd_sketch_sampler *w, uint32_t kind, uint32_t at) {
    return (uint32_t)cd_rng_mix((uint64_t)kind << 32 | at) & (w->n_slot - 1);
}

/* Chains of the given choices by kind and place, each in the list's order: a large schedule has
 * thousands. */
static bool index_given(cd_sketch_sampler *w) {
    const cd_sketch_choices *g = &w->given;
    for (w->n_slot = 16; w->n_slot < g->n; w->n_slot *= 2) {
    }
    w->slot = cd_arena_zalloc(&w->arena, w->n_slot, sizeof *w->slot);
    w->chain = cd_arena_alloc(&w->arena, g->n + 1, sizeof *w->chain);
    if (!w->slot || !w->chain) return false;
    for (uint32_t j = g->n; j-- > 0;) {
        uint32_t *slot = &w->slot[slot_of(w, g->p[j].kind, g->p[j].at)];
        w->chain[j] = *slot;
        *slot = j + 1;
    }
    return true;
}

/* The given choice of this decision: in general the next one; where decisions came to be or ceased
 * to be, the next of this kind and place. A list that ends early must read as one that goes on with
 * zeros: picks are not looked for in front. */
static const cd_sketch_choice *given(cd_sketch_sampler *w, const cd_sketch_options *m) {
    const cd_sketch_choices *g = &w->given;
    uint32_t found = 0; /* + 1 */
    for (uint32_t j = w->slot[slot_of(w, m->kind, m->at)]; j; j = w->chain[j - 1]) {
        const cd_sketch_choice *c = &g->p[j - 1];
        if (c->kind != m->kind || c->at != m->at) continue;
        if (j - 1 >= w->at) {
            found = j;
            break;
        }
        /* in front: if there is none behind */
        if (!found && w->source == CD_SKETCH_VALUES) found = j;
    }
    if (!found) return NULL;
    g->p[found - 1].kind = CD_SKETCH_CHOICE_KINDS; /* taken */
    w->at = found;
    return &g->p[found - 1];
}

/* The option of this meaning, else the nearest: places by loops of one stage, others by number. */
static uint32_t option_of(const cd_sketch_sampler *w, const cd_sketch_options *m,
                          const cd_sketch_choice *c) {
    if (!m->value || c->value == CD_SKETCH_CHOICE_ANY) return c->pick % m->n;
    uint32_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t k = 0; k < m->n + (w->strict ? 0 : m->hidden); k++) {
        uint64_t far = m->value[k] > c->value ? m->value[k] - c->value : c->value - m->value[k];
        /* root or inline */
        if (m->kind == CD_SKETCH_CHOICE_PLACE && m->value[k] >> 16 != c->value >> 16)
            far += UINT32_MAX;
        if (far >= least || (k >= m->n && far)) continue;
        least = far;
        best = k;
    }
    return best;
}

static uint32_t choose(cd_sketch_sampler *w, const cd_sketch_options *m) {
    if (w->source == CD_SKETCH_RANDOM)
        return m->n_draw ? (uint32_t)cd_sketch_random(w, m->n_draw) : 0;
    const cd_sketch_choice *c = given(w, m);
    if (w->source == CD_SKETCH_VALUES) return c ? option_of(w, m, c) : m->other;
    return !c ? 0 : c->pick < m->n + m->hidden ? c->pick : c->pick % m->n;
}

uint32_t cd_sketch_choose(cd_sketch_sampler *w, const cd_sketch_options *m) {
    if (w->listen) w->listen(w->listener, m);
    const uint32_t pick = choose(w, m);
    if (!cd_sketch_choices_reserve(&w->made, w->made.n + 1)) {
        w->oom = true;
        return pick;
    }
    w->made.p[w->made.n++] = (cd_sketch_choice){.pick = pick,
                                                .n = pick < m->n ? m->n : m->n + m->hidden,
                                                .value = m->value ? m->value[pick] : pick,
                                                .kind = (uint16_t)m->kind,
                                                .at = (uint16_t)m->at};
    return pick;
}

static bool parts_well(int64_t ext, int64_t whole, int32_t k) {
    return ext % k == 0 || (whole && whole % k == 0);
}

int32_t cd_sketch_choose_length(cd_sketch_sampler *w, uint32_t stage, int64_t ext, int32_t length) {
    uint32_t value[CD_SKETCH_MAX_INNERMOST + 1] = {(uint32_t)length}, n = 1, all;
    const int64_t whole = length > 0 ? ext - ext % length : 0;
    for (int32_t k = 1; k <= CD_SKETCH_MAX_INNERMOST; k++)
        if (k != length && ext > 0 && parts_well(ext, whole, k)) value[n++] = (uint32_t)k;
    all = n;
    for (int32_t k = 1; k <= CD_SKETCH_MAX_INNERMOST; k++)
        if (k != length && !(ext > 0 && parts_well(ext, whole, k))) value[all++] = (uint32_t)k;
    return (int32_t)value[cd_sketch_choose(
        w, &(cd_sketch_options){CD_SKETCH_CHOICE_SPLIT, stage, value, n, 0, 0, all - n})];
}

cdmpp_status cd_sketch_sampler_reserve(cd_sketch_sampler *w, uint32_t n, cdmpp_err *err) {
    return cd_sketch_choices_reserve(&w->given, n) ? CDMPP_OK
                                                   : CD_FAIL(err, ENOMEM, "%u choices", n);
}

cdmpp_status cd_sketch_sampler_set(cd_sketch_sampler *w, const cd_sketch_choice *c, uint32_t n,
                                   cdmpp_err *err) {
    CD_TRY(cd_sketch_sampler_reserve(w, n, err));
    if (n) memcpy(w->given.p, c, n * sizeof *c);
    w->given.n = n;
    return CDMPP_OK;
}

/* The first decision is the sketch; all others are made while it is completed. */
cdmpp_status cd_sketch_sampler_run(cd_sketch_sampler *w, cd_sketch_sample *out, cdmpp_err *err) {
    const cd_sketch_space *sp = w->space;
    cd_arena_reset(&w->arena);
    w->made.n = w->at = 0;
    w->oom = false;
    *out = (cd_sketch_sample){0};
    if (w->source != CD_SKETCH_RANDOM && !index_given(w)) return CD_FAIL(err, ENOMEM, "choices");
    const uint32_t k = cd_sketch_choose(w, &(cd_sketch_options){CD_SKETCH_CHOICE_SKETCH, 0, NULL,
                                                                sp->n_sketch, sp->n_sketch, 0, 0});
    cd_sketch_state *s = cd_sketch_copy(&w->arena, sp->sketch[k]);
    if (!s) return CD_FAIL(err, ENOMEM, "schedule");
    const bool good = sp->naive || cd_sketch_complete(w, s, k);
    if (s->oom || w->oom) return CD_FAIL(err, ENOMEM, "schedule");
    *out = (cd_sketch_sample){w->made.n, w->made.p, 0, NULL};
    if (!good) return CD_FAIL(err, EREJECTED, "sketch %u so completed breaks a rule", k);
    out->step = s->step;
    out->n_step = s->n_step;
    return CDMPP_OK;
}

cdmpp_status cd_sketch_sampler_draw(cd_sketch_sampler *w, uint64_t i, cd_sketch_sample *out,
                                    cdmpp_err *err) {
    w->source = CD_SKETCH_RANDOM;
    w->strict = true;
    w->key = cd_rng_at(w->seed, i);
    w->drawn = 0;
    return cd_sketch_sampler_run(w, out, err);
}

cdmpp_status cd_sketch_sampler_make(cd_sketch_sampler *w, const cd_sketch_choice *c, uint32_t n,
                                    cd_sketch_sample *out, cdmpp_err *err) {
    CD_TRY(cd_sketch_sampler_set(w, c, n, err));
    w->source = CD_SKETCH_PICKS;
    w->strict = false;
    return cd_sketch_sampler_run(w, out, err);
}
