/* AutoTVM's plans: the best candidates that simulated annealing on the ranker's scores finds.
 *
 *   ranker ready, then told a plan's worth anew ──> walk ──> plan: the best met, best first
 *     ──> asked for in order; the plan's last 5 % and all before the first plan are random
 *
 * (1) A plan is as long as what is asked for at once, within LEAST .. MOST (autotvm: 64).
 * (2) A small space is not walked: all of it is ranked.
 * (3) The points of the walk stay from plan to plan. */
#include <math.h>

#include "predictor/tune/rank/rank.h"
#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"

enum {
    LEAST = 8,
    MOST = 64,
    POINTS = 128,
    /* autotvm's 500 would be more than a second: a change alone costs 20 us */
    ITERATIONS = 300,
    /* where a score needs the program's loops: 128 x 40 of them take 0.5 to 1 s */
    LOWERED = 40,
    PATIENCE = 50 /* iterations without a better plan */
};

typedef struct point {
    cd_arena a;
    cd_tune_cand c;
    double score;
} point;

typedef struct anneal {
    cd_tune_tried tried;
    uint32_t n_point, cap_point, iterations; /* n_point: of cap_point that the space gave */
    double epsilon, owed; /* owed: part of a random candidate left over from plans before */
    size_t n_plan, at_plan, n_random, told; /* told: since the plan was made */
    bool planned, placed;                   /* is there a plan; points */
    point plan[MOST];                       /* best first, after the walk */
    size_t cap_plan, n_best;
    point *at, *next;    /* (cap_point) */
    cd_tune_cand *asked; /* (cap_point) next's candidates side by side */
    double *score;       /* (cap_point, or n_list) */
} anneal;

/* ---- the best met: plan[0..n_best), a heap whose worst is plan[0] ---- */

static void exchange(point *a, point *b) {
    const point t = *a;
    *a = *b;
    *b = t;
}

static void sink(anneal *w, size_t i) {
    for (;;) {
        size_t low = i;
        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < w->n_best; k++)
            if (w->plan[k].score < w->plan[low].score) low = k;
        if (low == i) return;
        exchange(&w->plan[i], &w->plan[low]);
        i = low;
    }
}

static void rise(anneal *w, size_t i) {
    for (; i && w->plan[i].score < w->plan[(i - 1) / 2].score; i = (i - 1) / 2)
        exchange(&w->plan[i], &w->plan[(i - 1) / 2]);
}

static bool in_plan(const anneal *w, uint64_t key) {
    for (size_t k = 0; k < w->n_best; k++)
        if (w->plan[k].c.key == key) return true;
    return false;
}

/* *better: it is among the best now. */
static cdmpp_status offer(anneal *w, const cd_tune_cand *c, double score, bool *better,
                          cdmpp_err *err) {
    const bool full = w->n_best == w->cap_plan;
    if (!(score > -HUGE_VAL) || (full && score <= w->plan[0].score)) return CDMPP_OK;
    if (cd_tune_tried_knows(&w->tried, c) || in_plan(w, c->key)) return CDMPP_OK;
    point *p = &w->plan[full ? 0 : w->n_best];
    cd_arena_reset(&p->a);
    CD_TRY(cd_tune_cand_copy(&p->a, c, &p->c, err));
    p->score = score;
    if (full) sink(w, 0);
    else rise(w, w->n_best++);
    *better = true;
    return CDMPP_OK;
}

/* Best first. */
static void sort_plan(anneal *w) {
    const size_t n = w->n_best;
    for (size_t left = n; left > 1; left--) {
        exchange(&w->plan[0], &w->plan[left - 1]);
        w->n_best = left - 1;
        sink(w, 0);
    }
    w->n_plan = w->n_best = n;
    w->at_plan = 0;
}

/* ---- the walk ---- */

static cdmpp_status rank(anneal *w, const cd_tune_cand *c, size_t n, double *score,
                         cdmpp_err *err) {
    return w->tried.ranker->kind->rank(w->tried.ranker, &w->tried.space->of, c, n, score, err);
}

static cdmpp_status set(point *p, const cd_tune_cand *c, cdmpp_err *err) {
    cd_arena_reset(&p->a);
    return cd_tune_cand_copy(&p->a, c, &p->c, err);
}

/* Random points; fewer where the space gives no more. */
static cdmpp_status place(anneal *w, cdmpp_err *err) {
    cd_tune_cand c;
    uint32_t n = 0;
    for (uint32_t tries = 0; n < w->n_point && tries < 100 * w->n_point; tries++) {
        const cdmpp_status st = cd_tune_tried_draw(&w->tried, &c, err);
        if (st == CDMPP_ENODATA) break;
        if (st == CDMPP_EREJECTED) continue;
        CD_TRY(st);
        CD_TRY(set(&w->at[n], &c, err));
        n++;
    }
    w->n_point = n;
    w->placed = true;
    return CDMPP_OK;
}

/* One knob of each point changed; a point whose changes are refused stays. */
static cdmpp_status step(anneal *w, cdmpp_err *err) {
    const cd_tune_space_kind *kind = w->tried.space->kind;
    cd_tune_cand c;
    for (uint32_t i = 0; i < w->n_point; i++) {
        cdmpp_status st = CDMPP_EREJECTED;
        for (int tries = 0; tries < 8 && st == CDMPP_EREJECTED; tries++)
            st =
                kind->change(w->tried.space, &w->at[i].c, cd_tune_tried_number(&w->tried), &c, err);
        if (st && st != CDMPP_EREJECTED && st != CDMPP_ENODATA) return st;
        CD_TRY(set(&w->next[i], st ? &w->at[i].c : &c, err));
        w->asked[i] = w->next[i].c;
    }
    return CDMPP_OK;
}

static bool accepts(anneal *w, double now, double then, double heat) {
    const double gain = (then - now) / (heat + 1e-5), unit = cd_tune_tried_unit(&w->tried);
    return isnan(gain) || unit < exp(fmin(gain, 1));
}

static cdmpp_status move(anneal *w, double heat, bool *better, cdmpp_err *err) {
    CD_TRY(step(w, err));
    CD_TRY(rank(w, w->asked, w->n_point, w->score, err));
    for (uint32_t i = 0; i < w->n_point; i++) {
        w->next[i].score = w->score[i];
        CD_TRY(offer(w, &w->next[i].c, w->score[i], better, err));
        if (accepts(w, w->at[i].score, w->score[i], heat)) exchange(&w->at[i], &w->next[i]);
    }
    return CDMPP_OK;
}

/* One run of annealing: the temperature falls linearly to zero over the iterations. It stops early
 * after PATIENCE iterations without a better plan, as AutoTVM's does. */
static cdmpp_status walk(anneal *w, cdmpp_err *err) {
    bool better = false;
    uint32_t last = 0;
    if (!w->placed) CD_TRY(place(w, err));
    for (uint32_t i = 0; i < w->n_point; i++) w->asked[i] = w->at[i].c;
    CD_TRY(rank(w, w->asked, w->n_point, w->score, err));
    for (uint32_t i = 0; i < w->n_point; i++) {
        w->at[i].score = w->score[i];
        CD_TRY(offer(w, &w->at[i].c, w->score[i], &better, err));
    }
    for (uint32_t k = 0; k < w->iterations && k < last + PATIENCE && w->n_point; k++) {
        better = false;
        CD_TRY(move(w, 1 - (double)k / (w->iterations + 1), &better, err));
        if (better) last = k;
    }
    return CDMPP_OK;
}

static cdmpp_status rank_list(anneal *w, cdmpp_err *err) {
    const cd_tune_tried *b = &w->tried;
    bool better;
    CD_TRY(rank(w, b->list, b->n_list, w->score, err));
    for (size_t i = 0; i < b->n_list; i++) CD_TRY(offer(w, &b->list[i], w->score[i], &better, err));
    return CDMPP_OK;
}

/* ---- plans ---- */

static cdmpp_status make_plan(anneal *w, size_t n, cdmpp_err *err) {
    w->cap_plan = n;
    w->n_best = 0;
    CD_TRY(w->tried.list ? rank_list(w, err) : walk(w, err));
    sort_plan(w);
    w->owed += w->epsilon * (double)n;
    w->n_random = (size_t)w->owed;
    w->owed -= (double)w->n_random;
    w->planned = true;
    w->told = 0;
    return CDMPP_OK;
}

static cdmpp_status ask(cd_tune_search *s, size_t n, const cd_tune_cand **out, size_t *got,
                        cdmpp_err *err) {
    anneal *w = (anneal *)s;
    cd_tune_tried *b = &w->tried;
    const size_t size = n < LEAST ? LEAST : n > MOST ? MOST : n;
    CD_TRY(cd_tune_tried_begin(b, n, err));
    if ((!w->planned || w->told >= size) && cd_tune_tried_guided(b))
        CD_TRY(make_plan(w, size, err));
    const size_t end = w->n_plan > w->n_random ? w->n_plan - w->n_random : 0;
    while (w->planned && b->n_out < n && w->at_plan < end)
        CD_TRY(cd_tune_tried_take(b, &w->plan[w->at_plan++].c, err));
    CD_TRY(cd_tune_tried_random(b, n, err));
    cd_tune_tried_end(b, out, got);
    return CDMPP_OK;
}

static cdmpp_status tell(cd_tune_search *s, const cd_tune_cand *c, const double *seconds, size_t n,
                         cdmpp_err *err) {
    ((anneal *)s)->told += n;
    return cd_tune_tried_tell((cd_tune_tried *)s, c, seconds, n, err);
}

/* at and next are allocated together; only where both exist do their arenas. */
static void free_search(cd_tune_search *s) {
    anneal *w = (anneal *)s;
    if (!w) return;
    for (size_t k = 0; k < MOST; k++) cd_arena_free(&w->plan[k].a);
    for (uint32_t k = 0; k < w->cap_point && w->at && w->next; k++) {
        cd_arena_free(&w->at[k].a);
        cd_arena_free(&w->next[k].a);
    }
    cd_tune_tried_close(&w->tried);
    cd_mem_free(w->at);
    cd_mem_free(w->next);
    cd_mem_free(w->asked);
    cd_mem_free(w->score);
    cd_mem_free(w);
}

static cdmpp_status room(anneal *w, cdmpp_err *err) {
    const size_t n = w->n_point > w->tried.n_list ? w->n_point : w->tried.n_list;
    w->at = cd_mem_zalloc(w->n_point, sizeof *w->at);
    w->next = cd_mem_zalloc(w->n_point, sizeof *w->next);
    w->asked = cd_mem_zalloc(w->n_point, sizeof *w->asked);
    w->score = cd_mem_zalloc(n, sizeof *w->score);
    return w->at && w->next && w->asked && w->score ? CDMPP_OK
                                                    : CD_FAIL(err, ENOMEM, "%u points", w->n_point);
}

static cdmpp_status open_search(const cd_tune_search_setup *s, cd_tune_search **out,
                                cdmpp_err *err) {
    anneal *w = cd_mem_zalloc(1, sizeof *w);
    if (!w) return CD_FAIL(err, ENOMEM, "search");
    const bool cheap = !s->ranker || s->ranker->kind == &cd_tune_rank_knob;
    w->n_point = w->cap_point = s->population ? s->population : POINTS;
    w->iterations = s->generations ? s->generations : cheap ? ITERATIONS : LOWERED;
    w->epsilon = s->epsilon < 0 ? 0.05 : s->epsilon;
    cdmpp_status st = cd_tune_tried_open(&w->tried, &cd_tune_search_anneal, s, err);
    if (!st) st = room(w, err);
    if (st) free_search(&w->tried.search);
    else *out = &w->tried.search;
    return st;
}

const cd_tune_search_kind cd_tune_search_anneal = {
    .name = "anneal", .open = open_search, .ask = ask, .tell = tell, .free = free_search};
