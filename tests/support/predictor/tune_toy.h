/* tune_toy -- a made-up space and ranker whose optimum is known.
 *
 *   candidate: knob[0 .. KNOBS), each 0 .. sides-1         steps: one SP with the knobs + 1 as
 *                                                          lengths
 *   seconds    1e-3 * exp(sum of w_k |knob_k - want_k| + what neighbours disagree on)
 *   rule       knob 0 == knob 1 == sides-1 is no program (EREJECTED)
 *
 * The ranker says -ln seconds with a fixed error of each candidate. */
#ifndef TUNE_TOY_H
#define TUNE_TOY_H
#include <math.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/core.h"
#include "predictor/tune/core/core.h"

enum { TOY_KNOBS = 8 };

typedef struct toy_space {
    cd_tune_space space;
    uint32_t knobs, sides;
    bool listed, empty;
    cd_arena mem;
    cd_tune_cand *all;
    size_t n_all;
    cd_sketch_choice choice[TOY_KNOBS], walk[TOY_KNOBS];
    int32_t length[TOY_KNOBS];
    cd_record_step step;
    size_t calls;
} toy_space;

static double toy_seconds(const cd_tune_cand *c) {
    double x = 0;
    for (uint32_t k = 0; k < c->n_choice; k++) {
        const double want = (double)((k * 5 + 3) % c->choice[k].n), v = c->choice[k].pick;
        x += (0.15 + 0.05 * k) * fabs(v - want);
        if (k) x += 0.03 * fabs(v - (double)c->choice[k - 1].pick);
    }
    return 1e-3 * exp(x);
}

static cdmpp_status toy_give(toy_space *s, cd_tune_cand *out, cdmpp_err *err) {
    s->calls++;
    for (uint32_t k = 0; k < s->knobs; k++) s->length[k] = (int32_t)s->choice[k].pick + 1;
    s->step = (cd_record_step){
        .kind = CD_RECORD_STEP_SP, .i = {0, 512, 1}, .n_list = s->knobs, .list = s->length};
    *out = (cd_tune_cand){.key = cd_record_steps_key(&s->step, 1),
                          .n_choice = s->knobs,
                          .choice = s->choice,
                          .n_step = 1,
                          .step = &s->step};
    if (s->choice[0].pick == s->sides - 1 && s->choice[1].pick == s->sides - 1)
        return CD_FAIL(err, EREJECTED, "both at the end");
    return CDMPP_OK;
}

static void toy_copy(toy_space *s, const cd_tune_cand *from) {
    memmove(s->choice, from->choice, s->knobs * sizeof *s->choice);
}

static cdmpp_status toy_draw(cd_tune_space *space, uint64_t i, cd_tune_cand *out, cdmpp_err *err) {
    toy_space *s = (toy_space *)space;
    if (s->empty) return CD_FAIL(err, ENODATA, "nothing there");
    for (uint32_t k = 0; k < s->knobs; k++)
        s->choice[k] = (cd_sketch_choice){.pick = (uint32_t)(cd_rng_at(i, k) % s->sides),
                                          .n = s->sides,
                                          .kind = CD_SKETCH_CHOICE_TILE,
                                          .at = (uint16_t)k};
    return toy_give(s, out, err);
}

static cdmpp_status toy_change(cd_tune_space *space, const cd_tune_cand *from, uint64_t i,
                               cd_tune_cand *out, cdmpp_err *err) {
    toy_space *s = (toy_space *)space;
    toy_copy(s, from);
    s->choice[cd_rng_at(i, 0) % s->knobs].pick = (uint32_t)(cd_rng_at(i, 1) % s->sides);
    return toy_give(s, out, err);
}

static cdmpp_status toy_cross(cd_tune_space *space, const cd_tune_cand *a, const cd_tune_cand *b,
                              uint64_t i, cd_tune_cand *out, cdmpp_err *err) {
    toy_space *s = (toy_space *)space;
    cd_sketch_choice mixed[TOY_KNOBS];
    for (uint32_t k = 0; k < s->knobs; k++)
        mixed[k] = cd_rng_at(i, k) % 2 ? a->choice[k] : b->choice[k];
    memcpy(s->choice, mixed, s->knobs * sizeof *mixed);
    return toy_give(s, out, err);
}

static cdmpp_status toy_walk(cd_tune_space *space, bool first, cd_tune_cand *out, cdmpp_err *err) {
    toy_space *s = (toy_space *)space;
    uint32_t k = s->knobs;
    if (s->empty) return CD_FAIL(err, ENODATA, "nothing there");
    for (uint32_t j = 0; first && j < s->knobs; j++)
        s->walk[j] =
            (cd_sketch_choice){.n = s->sides, .kind = CD_SKETCH_CHOICE_TILE, .at = (uint16_t)j};
    while (!first && k && s->walk[k - 1].pick + 1 == s->sides) s->walk[--k].pick = 0;
    if (!first && !k) return CD_FAIL(err, ENODATA, "that was the last");
    if (!first) s->walk[k - 1].pick++;
    memcpy(s->choice, s->walk, s->knobs * sizeof *s->walk);
    return toy_give(s, out, err);
}

static cdmpp_status toy_list(cd_tune_space *space, const cd_tune_cand **all, size_t *n,
                             cdmpp_err *err) {
    toy_space *s = (toy_space *)space;
    cd_tune_cand c;
    *n = 0;
    if (!s->listed) return CDMPP_OK;
    if (!s->all) s->all = cd_mem_zalloc(CD_TUNE_LIST_MAX, sizeof *s->all);
    if (!s->all) return CD_FAIL(err, ENOMEM, "list");
    bool first = true;
    for (s->n_all = 0;; first = false) {
        const cdmpp_status st = toy_walk(space, first, &c, err);
        if (st == CDMPP_ENODATA) break;
        if (!st) CD_TRY(cd_tune_cand_copy(&s->mem, &c, &s->all[s->n_all++], err));
    }
    *all = s->all;
    *n = s->n_all;
    return CDMPP_OK;
}

static cdmpp_status toy_follow(cd_tune_space *s, const cd_record *r, cd_tune_cand *out, bool *exact,
                               cdmpp_err *err) {
    (void)r;
    *exact = false;
    return toy_draw(s, 0, out, err);
}

static void toy_free(cd_tune_space *space) {
    toy_space *s = (toy_space *)space;
    cd_arena_free(&s->mem);
    cd_mem_free(s->all);
    cd_mem_free(s);
}

static const cd_tune_space_kind toy_kind = {.name = "toy",
                                            .draw = toy_draw,
                                            .change = toy_change,
                                            .cross = toy_cross,
                                            .list = toy_list,
                                            .follow = toy_follow,
                                            .free = toy_free,
                                            .walk = toy_walk};

static inline toy_space *toy_new(uint32_t knobs, uint32_t sides, bool listed) {
    toy_space *s = cd_mem_zalloc(1, sizeof *s);
    s->space.kind = &toy_kind;
    s->knobs = knobs;
    s->sides = sides;
    s->listed = listed;
    return s;
}

/* ---- ranker ---- */
typedef struct toy_ranker {
    cd_tune_ranker ranker;
    double error; /* of -ln s */
    bool none;    /* nothing is a program */
    cdmpp_status fail;
    size_t ranked, learned;
} toy_ranker;

static cdmpp_status toy_rank(cd_tune_ranker *ranker, const cd_tune_task *t, const cd_tune_cand *c,
                             size_t n, double *score, cdmpp_err *err) {
    toy_ranker *r = (toy_ranker *)ranker;
    (void)t;
    if (r->fail) return CD_FAIL(err, EBACKEND, "as told");
    for (size_t i = 0; i < n; i++)
        score[i] = r->none ? (double)-INFINITY
                           : -log(toy_seconds(&c[i])) + r->error * (cd_rng_unit(9, c[i].key) - 0.5);
    r->ranked += n;
    return CDMPP_OK;
}
static cdmpp_status toy_learn(cd_tune_ranker *ranker, const cd_tune_task *t, const cd_tune_cand *c,
                              const double *seconds, size_t n, cdmpp_err *err) {
    (void)t;
    (void)c;
    (void)seconds;
    (void)err;
    ((toy_ranker *)ranker)->learned += n;
    return CDMPP_OK;
}
static bool toy_ready(const cd_tune_ranker *r, const cd_tune_task *t) {
    (void)r;
    (void)t;
    return true;
}
static const cd_tune_ranker_kind toy_rank_kind = {
    .name = "toy", .rank = toy_rank, .learn = toy_learn, .ready = toy_ready, .seconds = true};
#endif
