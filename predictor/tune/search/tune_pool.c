/* The candidates of one round, each once, with their scores; picks the best that are unlike each
 * other. */
#include "predictor/tune/search/search_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A twin of a picked candidate must promise that much more, in ln s: of 0, 0.1, 0.3, 0.6 the last
 * two find most in 10 trials on logs of held-out tasks (mean share of the best 0.90, 0.92, 0.92,
 * 0.93). LOOK: per candidate wanted, how many are compared. */
static const double twin = 0.4;
enum { LOOK = 24 };

void cd_tune_pool_free(cd_tune_pool *p) {
    cd_arena_free(&p->mem);
    cd_tune_key_set_free(&p->place);
    cd_mem_free(p->cand);
    cd_mem_free(p->score);
    cd_mem_free(p->order);
    *p = (cd_tune_pool){0};
}

static cdmpp_status room(cd_tune_pool *p, cdmpp_err *err) {
    if (p->n < p->cap) return CDMPP_OK;
    const size_t cap = p->cap ? 2 * p->cap : 1024;
    cd_tune_cand *cand = cd_mem_realloc(p->cand, p->n * sizeof *cand, cap * sizeof *cand);
    if (cand) p->cand = cand;
    double *score = cd_mem_realloc(p->score, p->n * sizeof *score, cap * sizeof *score);
    if (score) p->score = score;
    uint32_t *order = cd_mem_realloc(p->order, p->n * sizeof *order, cap * sizeof *order);
    if (order) p->order = order;
    if (!cand || !score || !order) return CD_FAIL(err, ENOMEM, "%zu candidates", cap);
    p->cap = cap;
    return CDMPP_OK;
}

cdmpp_status cd_tune_pool_add(cd_tune_pool *p, const cd_tune_cand *c, bool borrow, size_t *at,
                              bool *is_new, cdmpp_err *err) {
    double place = (double)p->n;
    const bool found = cd_tune_key_set_find(&p->place, c->key, &place);
    if (is_new) *is_new = !found;
    *at = (size_t)place;
    if (found) return CDMPP_OK;
    CD_TRY(room(p, err));
    if (borrow) p->cand[p->n] = *c;
    else CD_TRY(cd_tune_cand_copy(&p->mem, c, &p->cand[p->n], err));
    CD_TRY(cd_tune_key_set_put(&p->place, c->key, place, err));
    p->n++;
    return CDMPP_OK;
}

cdmpp_status cd_tune_pool_rank(cd_tune_pool *p, cd_tune_ranker *r, const cd_tune_task *t,
                               cdmpp_err *err) {
    const size_t from = p->n_scored;
    if (from < p->n) CD_TRY(r->kind->rank(r, t, p->cand + from, p->n - from, p->score + from, err));
    p->n_scored = p->n;
    return CDMPP_OK;
}

/* ---- the best first; of equal ones the smaller key, whatever the order they came in ---- */
static int by_score(const void *x, const void *y, void *arg) {
    const cd_tune_pool *p = arg;
    const uint32_t i = *(const uint32_t *)x, j = *(const uint32_t *)y;
    if (p->score[i] != p->score[j]) return p->score[i] < p->score[j] ? 1 : -1;
    return (p->cand[i].key > p->cand[j].key) - (p->cand[i].key < p->cand[j].key);
}

/* Those that are programs and not known, sorted; how many. */
static size_t sort_new(cd_tune_pool *p, const cd_tune_tried *b) {
    size_t n = 0;
    for (size_t i = 0; i < p->n_scored; i++)
        if (p->score[i] > (double)-INFINITY && !cd_tune_tried_knows(b, &p->cand[i]))
            p->order[n++] = (uint32_t)i;
    if (n) qsort_r(p->order, n, sizeof *p->order, by_score, p);
    return n;
}

/* ---- picking ---- */
size_t cd_tune_pool_distance(const cd_tune_cand *a, const cd_tune_cand *b) {
    const uint32_t n = a->n_choice < b->n_choice ? a->n_choice : b->n_choice;
    size_t far = a->n_choice + b->n_choice - 2 * n;
    for (uint32_t k = 0; k < n; k++) {
        const cd_sketch_choice *x = &a->choice[k], *y = &b->choice[k];
        far += x->kind != y->kind || x->at != y->at || x->pick != y->pick;
    }
    return far;
}

/* What a step in score is worth: 1 where scores are ln s, else the spread of those looked at. */
static double unit(const cd_tune_pool *p, size_t n, const cd_tune_tried *b) {
    if (b->ranker->kind->seconds || n < 2) return 1;
    return fabs(p->score[p->order[0]] - p->score[p->order[n - 1]]);
}

/* Take the best of order[0 .. n) by score less loss, both moved along so that the rest stays in
 * order. */
static cdmpp_status take_best(cd_tune_pool *p, cd_tune_tried *b, double *loss, size_t n,
                              double cost, cdmpp_err *err) {
    size_t best = 0;
    for (size_t k = 1; k < n; k++)
        if (p->score[p->order[k]] - loss[k] > p->score[p->order[best]] - loss[best]) best = k;
    const cd_tune_cand *c = &p->cand[p->order[best]];
    CD_TRY(cd_tune_tried_take(b, c, err));
    memmove(p->order + best, p->order + best + 1, (n - 1 - best) * sizeof *p->order);
    memmove(loss + best, loss + best + 1, (n - 1 - best) * sizeof *loss);
    for (size_t k = 0; k + 1 < n; k++) {
        const double near =
            cost * exp(0.5 * (1 - (double)cd_tune_pool_distance(c, &p->cand[p->order[k]])));
        loss[k] = fmax(loss[k], near);
    }
    return CDMPP_OK;
}

cdmpp_status cd_tune_pool_pick(cd_tune_pool *p, cd_tune_tried *b, size_t n, cdmpp_err *err) {
    size_t left = sort_new(p, b);
    const size_t want = n > b->n_out ? n - b->n_out : 0;
    if (left > LOOK * want) left = LOOK * want;
    if (!left) return CDMPP_OK;
    double *loss = cd_mem_zalloc(left, sizeof *loss);
    if (!loss) return CD_FAIL(err, ENOMEM, "%zu candidates", left);
    const double cost = twin * unit(p, left, b);
    cdmpp_status st = CDMPP_OK;
    for (; !st && left && b->n_out < n; left--) st = take_best(p, b, loss, left, cost, err);
    cd_mem_free(loss);
    return st;
}

cdmpp_status cd_tune_pool_keep(cd_tune_pool *p, const cd_tune_tried *b, size_t most,
                               cdmpp_err *err) {
    cd_tune_pool kept = {0};
    cdmpp_status st = CDMPP_OK;
    size_t n = sort_new(p, b), at;
    if (n > most) n = most;
    for (size_t k = 0; !st && k < n; k++)
        st = cd_tune_pool_add(&kept, &p->cand[p->order[k]], false, &at, NULL, err);
    cd_tune_pool_free(p);
    if (st) cd_tune_pool_free(&kept);
    *p = kept;
    return st;
}
