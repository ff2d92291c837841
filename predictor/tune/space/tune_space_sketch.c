/* tune_space_sketch -- all that Ansor's rules make of a task, as a space.
 *
 *   cd_sketch_sample {choices, steps} <─ sampler: draw, mutate, cross, follow, make  candidate =
 *     draft + key
 *
 *   walk  0 0 0 | 0 0 1 | .. | 0 1 0 | ..  odometer over the picks, the last fastest. A rejected
 *                                          draft says the
 *                                          choices up to where it broke a rule: the next differs
 *                                          there, so what
 *                                          lies behind is skipped at once
 *
 * (1) The list holds each program once; it is made when first asked for. It is given up where the
 *     tile lengths of one random schedule alone are VAST times too many, else at CD_TUNE_LIST_MAX +
 *     1 programs or WALK steps of the odometer.
 * (2) Candidates live in the sampler: until its next call. */
#include "predictor/tune/space/space.h"

enum { WALK = 10 * CD_TUNE_LIST_MAX, VAST = 20, LOOKS = 8 };

typedef struct {
    cd_tune_space space;
    cd_sketch_space *sketches;
    cd_sketch_sampler *sampler;
    cd_sketch_choices at; /* of the walk: the choices of its last candidate */
    cd_arena list_mem;
    cd_tune_cand *list; /* (n_list) */
    size_t n_list;
    bool listed; /* tried */
} sketch_space;

static cd_tune_cand cand_of(const cd_sketch_sample *d) {
    return (cd_tune_cand){.key = cd_record_steps_key(d->step, d->n_step),
                          .n_choice = d->n_choice,
                          .choice = d->choice,
                          .n_step = d->n_step,
                          .step = d->step};
}

static cdmpp_status draw(cd_tune_space *space, uint64_t i, cd_tune_cand *out, cdmpp_err *err) {
    cd_sketch_sample d;
    CD_TRY(cd_sketch_sampler_draw(((sketch_space *)space)->sampler, i, &d, err));
    *out = cand_of(&d);
    return CDMPP_OK;
}

static cdmpp_status change(cd_tune_space *space, const cd_tune_cand *from, uint64_t i,
                           cd_tune_cand *out, cdmpp_err *err) {
    cd_sketch_sample d;
    CD_TRY(cd_sketch_sampler_mutate(((sketch_space *)space)->sampler, from->choice, from->n_choice,
                                    i, &d, err));
    *out = cand_of(&d);
    return CDMPP_OK;
}

static cdmpp_status cross(cd_tune_space *space, const cd_tune_cand *a, const cd_tune_cand *b,
                          uint64_t i, cd_tune_cand *out, cdmpp_err *err) {
    cd_sketch_sample d;
    CD_TRY(cd_sketch_sampler_crossover(((sketch_space *)space)->sampler, a->choice, a->n_choice,
                                       b->choice, b->n_choice, i, &d, err));
    *out = cand_of(&d);
    return CDMPP_OK;
}

static cdmpp_status follow(cd_tune_space *space, const cd_record *r, cd_tune_cand *out, bool *exact,
                           cdmpp_err *err) {
    cd_sketch_sample d;
    CD_TRY(cd_sketch_sampler_match(((sketch_space *)space)->sampler, r, &d, exact, err));
    *out = cand_of(&d);
    return CDMPP_OK;
}

/* ---- one after another ---- */
static cdmpp_status remember(cd_sketch_choices *to, const cd_sketch_sample *d, cdmpp_err *err) {
    if (d->n_choice > to->cap) {
        cd_sketch_choice *p = cd_mem_realloc(to->p, 0, 2 * d->n_choice * sizeof *p);
        if (!p) return CD_FAIL(err, ENOMEM, "%u choices", d->n_choice);
        to->p = p;
        to->cap = 2 * d->n_choice;
    }
    for (uint32_t k = 0; k < d->n_choice; k++) to->p[k] = d->choice[k];
    to->n = d->n_choice;
    return CDMPP_OK;
}

/* The last choice that has another option takes it, those behind it are made anew. */
static bool advance(cd_sketch_choices *c) {
    while (c->n && c->p[c->n - 1].pick + 1 >= c->p[c->n - 1].n) c->n--;
    if (!c->n) return false;
    c->p[c->n - 1].pick++;
    return true;
}

static cdmpp_status walk(cd_tune_space *space, bool first, cd_tune_cand *out, cdmpp_err *err) {
    sketch_space *s = (sketch_space *)space;
    cd_sketch_sample d = {0};
    if (first) s->at.n = 0;
    else if (!advance(&s->at)) return CD_FAIL(err, ENODATA, "that was the last");
    const cdmpp_status st = cd_sketch_sampler_make(s->sampler, s->at.p, s->at.n, &d, err);
    if (st && st != CDMPP_EREJECTED) return st;
    CD_TRY(remember(&s->at, &d, err));
    *out = cand_of(&d);
    return st;
}

/* Tile lengths do not depend on each other, so their numbers multiply; rules forbid some, VAST is
 * for those. */
static bool is_vast(sketch_space *s) {
    cd_sketch_sample d;
    for (uint64_t i = 0; i < LOOKS; i++) {
        double n = 1;
        if (cd_sketch_sampler_draw(s->sampler, i, &d, NULL)) continue;
        for (uint32_t k = 0; k < d.n_choice; k++)
            if (d.choice[k].kind == CD_SKETCH_CHOICE_TILE) n *= d.choice[k].n;
        if (n > (double)VAST * CD_TUNE_LIST_MAX) return true;
    }
    return false;
}

/* Different choices may give the same steps: `seen` drops the copies. A list that outgrows
 * CD_TUNE_LIST_MAX is not whole and is given up by the caller. */
static cdmpp_status list_into(sketch_space *s, cd_tune_key_set *seen, bool *whole, cdmpp_err *err) {
    cd_tune_cand c;
    for (size_t k = 0; k < WALK; k++) {
        const cdmpp_status st = walk(&s->space, !k, &c, err);
        if (st == CDMPP_ENODATA) {
            *whole = true;
            return CDMPP_OK;
        }
        if (st == CDMPP_EREJECTED) continue;
        CD_TRY(st);
        if (cd_tune_key_set_find(seen, c.key, NULL)) continue;
        if (s->n_list == CD_TUNE_LIST_MAX) return CDMPP_OK;
        CD_TRY(cd_tune_key_set_put(seen, c.key, 0, err));
        CD_TRY(cd_tune_cand_copy(&s->list_mem, &c, &s->list[s->n_list], err));
        s->list[s->n_list].row = (uint32_t)s->n_list;
        s->n_list++;
    }
    return CDMPP_OK;
}

static void forget_list(sketch_space *s) {
    cd_arena_free(&s->list_mem);
    cd_mem_free(s->list);
    s->list = NULL;
    s->n_list = 0;
}

/* Made once. A space that is too large has an empty list, which tells the searches to walk or to
 * draw. */
static cdmpp_status list(cd_tune_space *space, const cd_tune_cand **all, size_t *n,
                         cdmpp_err *err) {
    sketch_space *s = (sketch_space *)space;
    cd_tune_key_set seen = {0};
    bool whole = false;
    cdmpp_status st = CDMPP_OK;
    if (!s->listed) {
        s->list = cd_mem_zalloc(CD_TUNE_LIST_MAX, sizeof *s->list);
        if (!s->list) return CD_FAIL(err, ENOMEM, "list of programs");
        if (!is_vast(s)) st = list_into(s, &seen, &whole, err);
        cd_tune_key_set_free(&seen);
        if (st || !whole) forget_list(s);
        s->listed = !st;
    }
    *all = s->list;
    *n = s->n_list;
    return st;
}

static void free_space(cd_tune_space *space) {
    sketch_space *s = (sketch_space *)space;
    cd_sketch_choices_free(&s->at);
    forget_list(s);
    cd_sketch_sampler_free(s->sampler);
    cd_sketch_space_free(s->sketches);
    cd_mem_free(s);
}

static const cd_tune_space_kind kind = {.name = "sketch",
                                        .draw = draw,
                                        .change = change,
                                        .cross = cross,
                                        .list = list,
                                        .follow = follow,
                                        .free = free_space,
                                        .walk = walk};

/* The sampler carries the seed: all draws of the space depend on it. */
cdmpp_status cd_tune_space_sketch(const cd_tune_task *t, uint64_t seed, cd_tune_space **out,
                                  bool *naive, cdmpp_err *err) {
    sketch_space *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "space");
    s->space.kind = &kind;
    s->space.of = *t;
    cdmpp_status st = cd_sketch_space_new(t->task, &t->hardware, t->gpu, &s->sketches, err);
    if (!st) st = cd_sketch_sampler_new(s->sketches, seed, &s->sampler, err);
    if (st) {
        free_space(&s->space);
        return st;
    }
    if (naive) *naive = cd_sketch_space_is_naive(s->sketches);
    *out = &s->space;
    return CDMPP_OK;
}
