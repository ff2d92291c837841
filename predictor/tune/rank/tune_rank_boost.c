/* Rankers by XGBoost, trained again on what was measured when they are asked after it: nothing that
 * is told without being used costs more than its features. */
#include "predictor/tune/rank/rank_internal.h"

#include <math.h>
#include <string.h>

#include "predictor/tune/rank/rank.h"

/* ---- what candidates are ---- */

static cdmpp_status read_rows(cd_tune_boost *r, const cd_tune_task *t, const cd_tune_cand *c,
                              cd_tune_seen *out, cdmpp_err *err) {
    *out = (cd_tune_seen){.at = r->row.n};
    const cdmpp_status st = cd_tune_feat_read(&r->feat, r->features, t, c, &r->row, err);
    out->n = r->row.n - out->at;
    return st == CDMPP_EREJECTED ? CDMPP_OK : st;
}

/* n == 0: no program. What it points at in r->row stays until the next call. */
static cdmpp_status features_of(cd_tune_boost *r, const cd_tune_task *t, size_t task,
                                const cd_tune_cand *c, cd_tune_seen *out, cdmpp_err *err) {
    const uint64_t key = c->key ^ cd_rng_mix(task);
    double at;
    if (cd_tune_key_set_find(&r->known, key, &at)) {
        *out = r->seen[(size_t)at];
        return CDMPP_OK;
    }
    if (r->row.n > CD_TUNE_BOOST_CACHE) {
        r->row.n = r->n_seen = 0;
        cd_tune_key_set_clear(&r->known);
    }
    CD_TRY(read_rows(r, t, c, out, err));
    CD_TRY(cd_tune_boost_room(&r->seen, r->n_seen, 1, &r->cap_seen, sizeof *r->seen, err));
    r->seen[r->n_seen] = *out;
    CD_TRY(cd_tune_key_set_put(&r->known, key, (double)r->n_seen, err));
    r->n_seen++;
    return CDMPP_OK;
}

/* ---- tasks ---- */

static bool same_task(const cd_tune_boost_task *k, const cd_tune_task *t) {
    return k->task == t->task && !strcmp(k->target, t->target);
}

static size_t task_number(const cd_tune_boost *r, const cd_tune_task *t) {
    size_t k = 0;
    while (k < r->n_task && !same_task(&r->task[k], t)) k++;
    return k;
}

static cdmpp_status enter_task(cd_tune_boost *r, const cd_tune_task *t, size_t *out,
                               cdmpp_err *err) {
    *out = task_number(r, t);
    if (*out < r->n_task) return CDMPP_OK;
    const size_t n = strlen(t->target) + 1;
    CD_TRY(cd_tune_boost_room(&r->task, r->n_task, 1, &r->cap_task, sizeof *r->task, err));
    char *target = cd_mem_alloc(n);
    if (!target) return CD_FAIL(err, ENOMEM, "task");
    memcpy(target, t->target, n);
    r->task[r->n_task++] =
        (cd_tune_boost_task){.task = t->task, .target = target, .best_s = CD_TUNE_FAILED_S};
    return CDMPP_OK;
}

/* ---- learn ---- */

static bool measured(double seconds) { return seconds > 0 && seconds < CD_TUNE_FAILED_S; }

static cdmpp_status keep(cd_tune_boost *r, size_t task, const cd_tune_seen *f, double seconds,
                         cdmpp_err *err) {
    cd_tune_boost_task *k = &r->task[task];
    if (!f->n && r->shared) return CDMPP_OK; /* no rows: nothing to be trained on */
    CD_TRY(cd_tune_boost_room(&r->sample, r->n_sample, 1, &r->cap_sample, sizeof *r->sample, err));
    CD_TRY(cd_tune_boost_room(&r->x, r->n_x, f->n, &r->cap_x, sizeof *r->x, err));
    if (f->n) memcpy(r->x + r->n_x, r->row.v + f->at, f->n * sizeof *r->x);
    r->sample[r->n_sample++] =
        (cd_tune_boost_sample){.task = task, .at = r->n_x, .n = f->n, .seconds = seconds};
    r->n_x += f->n;
    k->n++;
    k->n_good += measured(seconds);
    if (measured(seconds) && seconds < k->best_s) k->best_s = seconds;
    return CDMPP_OK;
}

static cdmpp_status learn(cd_tune_ranker *base, const cd_tune_task *t, const cd_tune_cand *c,
                          const double *seconds, size_t n, cdmpp_err *err) {
    cd_tune_boost *r = (cd_tune_boost *)base;
    size_t task;
    if (r->frozen || !n) return CDMPP_OK;
    CD_TRY(enter_task(r, t, &task, err));
    if (!r->n_round) r->n_round = n;
    for (size_t i = 0; i < n; i++) {
        cd_tune_seen f;
        CD_TRY(features_of(r, t, task, &c[i], &f, err));
        CD_TRY(keep(r, task, &f, seconds[i], err));
    }
    return CDMPP_OK;
}

/* ---- rank ---- */

static size_t warm_up(const cd_tune_boost *r) {
    const size_t n = r->n_task * r->n_round;
    return n < CD_TUNE_BOOST_WARM_UP ? n : CD_TUNE_BOOST_WARM_UP;
}

static bool ready(const cd_tune_ranker *base, const cd_tune_task *t) {
    const cd_tune_boost *r = (const cd_tune_boost *)base;
    const size_t k = task_number(r, t);
    if (r->shared) return r->n_sample > warm_up(r);
    return k < r->n_task && r->task[k].n >= CD_TUNE_BOOST_LEAST && r->task[k].n_good > 0;
}

/* The score of rows of a candidate: their sum. */
static cdmpp_status score_rows(cd_tune_boost *r, const cd_xgb *trees, size_t width,
                               const cd_tune_seen *f, double *score, cdmpp_err *err) {
    const size_t n = r->shared ? f->n / width : 1, have = r->shared      ? width
                                                          : f->n < width ? f->n
                                                                         : width;
    CD_TRY(cd_tune_boost_room(&r->input, 0, n * width, &r->cap_input, sizeof *r->input, err));
    CD_TRY(cd_tune_boost_room(&r->output, 0, n, &r->cap_output, sizeof *r->output, err));
    memset(r->input, 0, n * width * sizeof *r->input);
    memcpy(r->input, r->row.v + f->at, n * have * sizeof *r->input);
    CD_TRY(cd_xgb_predict(trees, r->input, n, width, r->output, err));
    *score = 0;
    for (size_t k = 0; k < n; k++) *score += (double)r->output[k];
    return CDMPP_OK;
}

/* Before the first training scores are random by key: any order is as good, and the same candidate
 * gets the same score. */
static cdmpp_status rank(cd_tune_ranker *base, const cd_tune_task *t, const cd_tune_cand *c,
                         size_t n, double *score, cdmpp_err *err) {
    cd_tune_boost *r = (cd_tune_boost *)base;
    const bool trained = ready(base, t);
    const cd_xgb *trees = NULL;
    size_t task, width = 0;
    CD_TRY(enter_task(r, t, &task, err));
    if (trained) CD_TRY(cd_tune_boost_trees(r, task, &trees, &width, err));
    for (size_t i = 0; i < n; i++) {
        cd_tune_seen f;
        CD_TRY(features_of(r, t, task, &c[i], &f, err));
        if (!f.n) score[i] = -HUGE_VAL;
        else if (!trained) score[i] = cd_rng_unit(r->seed, c[i].key);
        else CD_TRY(score_rows(r, trees, width, &f, &score[i], err));
    }
    return CDMPP_OK;
}

/* ---- kinds ---- */

/* After an error of open() as well: what was not made is NULL. */
static void free_ranker(cd_tune_ranker *base) {
    cd_tune_boost *r = (cd_tune_boost *)base;
    if (!r) return;
    for (size_t k = 0; k < r->n_task; k++) {
        cd_xgb_free(r->task[k].trees);
        cd_mem_free(r->task[k].target);
    }
    cd_xgb_free(r->trees);
    cd_tune_feat_free(&r->feat);
    cd_tune_row_free(&r->row);
    cd_tune_key_set_free(&r->known);
    cd_mem_free(r->seen);
    cd_mem_free(r->task);
    cd_mem_free(r->sample);
    cd_mem_free(r->x);
    cd_mem_free(r->input);
    cd_mem_free(r->output);
    cd_mem_free(r);
}

static cdmpp_status open_ranker(const cd_tune_ranker_kind *kind, cd_tune_feat_kind f,
                                const cd_tune_ranker_setup *s, cd_tune_ranker **out,
                                cdmpp_err *err) {
    cd_tune_boost *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "ranker");
    r->base.kind = kind;
    r->features = f;
    r->shared = f == CD_TUNE_STORE;
    r->frozen = s->frozen;
    r->seed = s->seed;
    *out = &r->base;
    return CDMPP_OK;
}

#define KIND(id, text, say, features)                                                              \
    static cdmpp_status open_##id(const cd_tune_ranker_setup *s, cd_tune_ranker **out,             \
                                  cdmpp_err *err) {                                                \
        return open_ranker(&cd_tune_rank_##id, features, s, out, err);                             \
    }                                                                                              \
    const cd_tune_ranker_kind cd_tune_rank_##id = {.name = text,                                   \
                                                   .brief = say,                                   \
                                                   .open = open_##id,                              \
                                                   .rank = rank,                                   \
                                                   .learn = learn,                                 \
                                                   .ready = ready,                                 \
                                                   .free = free_ranker};

KIND(ansor, "ansor", "Ansor's XGBoost: 164 columns a store, sums of scores", CD_TUNE_STORE)
KIND(knob, "knob", "autotvm's XGBoost: the numbers in the steps, pairwise rank", CD_TUNE_KNOB)
KIND(itervar, "itervar", "autotvm's XGBoost: loops and what they touch, pairwise rank",
     CD_TUNE_ITERVAR)
KIND(curve, "curve", "autotvm's XGBoost: curves of touch and reuse, pairwise rank", CD_TUNE_CURVE)
