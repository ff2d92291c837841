/* Rankers by XGBoost, trained again on what was measured when they are asked after it: nothing that
 * is told without being used costs more than its features. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/tune/rank/rank.h"
#include "predictor/tune/rank/rank_internal.h"

/* From samples to a training set. */

/* Fits XGBoost as TVM's searches do: weighted squared error of sums of scores (Ansor), or pairwise
 * rank (AutoTVM), each with its own rule for when to stop. TVM's own rules are kept, because
 * replays compare the searches. */

/* What both kinds share: scores, gradients, the booster, when to stop. */
typedef struct fitting {
    const cd_tune_fit *f;
    size_t n_row;
    float *score, *grad, *hess; /* (n_row) */
    size_t *order, *rank;       /* (n) programs from the fastest on; the place of each there */
    cd_tune_place *place;       /* (n) */
    cd_xgb_data *data;
    cd_xgb *booster;
} fitting;

typedef struct fit_kind {
    const cd_xgb_param *param;
    size_t n_param;
    int rounds, patience, every; /* every: trees from one look to the next */
    void (*gradient)(fitting *w, int round);
    double (*figure)(fitting *w); /* higher is better */
} fit_kind;

static void end(fitting *w) {
    cd_xgb_free(w->booster);
    cd_xgb_data_free(w->data);
    cd_mem_free(w->score);
    cd_mem_free(w->grad);
    cd_mem_free(w->hess);
    cd_mem_free(w->order);
    cd_mem_free(w->rank);
    cd_mem_free(w->place);
}

/* Larger ones first, of equal ones the later one. */
static int descending(const void *a, const void *b) {
    const cd_tune_place *x = a, *y = b;
    return x->v != y->v ? (x->v < y->v) - (x->v > y->v) : (x->i < y->i) - (x->i > y->i);
}

static void order_labels(fitting *w) {
    for (size_t i = 0; i < w->f->n; i++) w->place[i] = (cd_tune_place){w->f->y[i], i};
    qsort(w->place, w->f->n, sizeof *w->place, descending);
    for (size_t k = 0; k < w->f->n; k++) {
        w->order[k] = w->place[k].i;
        w->rank[w->place[k].i] = k;
    }
}

/* Starts a fit with a booster without trees, so that the first gradients are those at its base
 * score. */
static cdmpp_status begin(fitting *w, const cd_tune_fit *f, const fit_kind *k, cdmpp_err *err) {
    *w = (fitting){.f = f, .n_row = f->start[f->n]};
    w->score = cd_mem_zalloc(w->n_row, sizeof *w->score);
    w->grad = cd_mem_zalloc(w->n_row, sizeof *w->grad);
    w->hess = cd_mem_zalloc(w->n_row, sizeof *w->hess);
    w->order = cd_mem_zalloc(f->n, sizeof *w->order);
    w->rank = cd_mem_zalloc(f->n, sizeof *w->rank);
    w->place = cd_mem_zalloc(f->n, sizeof *w->place);
    if (!w->score || !w->grad || !w->hess || !w->order || !w->rank || !w->place)
        return CD_FAIL(err, ENOMEM, "%zu rows", w->n_row);
    order_labels(w);
    CD_TRY(cd_xgb_data_new(f->x, w->n_row, f->width, 1, &w->data, err));
    CD_TRY(cd_xgb_new(w->data, NULL, k->param, k->n_param, &w->booster, err));
    return cd_xgb_scores(w->booster, w->data, w->score, err);
}

/* As TVM's callbacks: trees after the best one stay. */
static cdmpp_status grow(fitting *w, const fit_kind *k, cdmpp_err *err) {
    double best = -INFINITY;
    int best_round = 0;
    for (int i = 0; i < k->rounds; i++) {
        k->gradient(w, i);
        CD_TRY(cd_xgb_boost(w->booster, w->data, w->grad, w->hess, err));
        CD_TRY(cd_xgb_scores(w->booster, w->data, w->score, err));
        if (i % k->every) continue;
        const double now = round(k->figure(w) * 1e6);
        if (now > best) {
            best = now;
            best_round = i;
        } else if (i - best_round >= k->patience) {
            break;
        }
    }
    return CDMPP_OK;
}

/* Read back, they are walked without XGBoost (learner/trees/trees.h). */
static cdmpp_status publish(const fitting *w, cd_xgb **out, cdmpp_err *err) {
    cd_buf b = {0};
    cdmpp_status st = cd_xgb_save(w->booster, &b, err);
    if (!st) st = cd_xgb_load(b.p, b.n, w->f->width, out, err);
    cd_buf_free(&b);
    return st;
}

static cdmpp_status run(const cd_tune_fit *f, const fit_kind *k, cd_xgb **out, cdmpp_err *err) {
    fitting w;
    cdmpp_status st = begin(&w, f, k, err);
    if (!st) st = grow(&w, k, err);
    if (!st) st = publish(&w, out, err);
    end(&w);
    return st;
}

/* ---- pack_sum ---- */

static double sum_of(const fitting *w, size_t i) {
    double s = 0;
    for (size_t r = w->f->start[i]; r < w->f->start[i + 1]; r++) s += (double)w->score[r];
    return s;
}

static void pack_gradient(fitting *w, int round) {
    (void)round;
    for (size_t i = 0; i < w->f->n; i++) {
        const double y = w->f->y[i], g = (sum_of(w, i) - y) * y;
        for (size_t r = w->f->start[i]; r < w->f->start[i + 1]; r++) {
            w->grad[r] = (float)g;
            w->hess[r] = (float)y;
        }
    }
}

static double pack_figure(fitting *w) {
    double s = 0;
    for (size_t i = 0; i < w->f->n; i++) {
        const double d = sum_of(w, i) - w->f->y[i];
        s += d * d * (double)(w->f->start[i + 1] - w->f->start[i]); /* the mean is over rows */
    }
    return -sqrt(s / (double)w->n_row);
}

cdmpp_status cd_tune_fit_pack_sum(const cd_tune_fit *f, cd_xgb **out, cdmpp_err *err) {
    static const cd_xgb_param param[] = {
        {"nthread", "1"}, {"max_depth", "10"},   {"gamma", "0.001"}, {"min_child_weight", "0"},
        {"eta", "0.2"},   {"base_score", "0.5"}, {"seed", "43"}};
    static const fit_kind kind = {
        param, sizeof param / sizeof *param, 10000, 50, 2, pack_gradient, pack_figure};
    return run(f, &kind, out, err);
}

/* ---- pairs ---- */

/* As XGBoost 1.7 does with num_pairsample 1: every program against a random one of another label.
 * The programs in the order of their labels; from `a` on those of one label, up to b. */
static void one_pair(const fitting *w, const size_t *order, size_t a, size_t b, size_t i,
                     uint64_t number) {
    const size_t others = w->f->n - (b - a), pick = (size_t)(number % others);
    const size_t other = order[pick < a ? pick : pick + (b - a)];
    const size_t up = pick < a ? other : i, low = pick < a ? i : other;
    const float p = 1.0F / (1.0F + expf(w->score[low] - w->score[up])),
                h = fmaxf(p * (1.0F - p), 1e-16F);
    w->grad[up] += p - 1.0F;
    w->grad[low] -= p - 1.0F;
    w->hess[up] += 2.0F * h;
    w->hess[low] += 2.0F * h;
}

static void pair_gradient(fitting *w, int round) {
    const size_t n = w->f->n, *order = w->order;
    memset(w->grad, 0, n * sizeof *w->grad);
    memset(w->hess, 0, n * sizeof *w->hess);
    for (size_t a = 0, b; a < n; a = b) {
        for (b = a + 1; b < n && w->f->y[order[b]] == w->f->y[order[a]]; b++) {
        }
        for (size_t k = a; k < b && b - a < n; k++)
            one_pair(w, order, a, b, order[k], cd_rng_at(w->f->seed + (uint64_t)round, order[k]));
    }
}

double cd_tune_fit_recall(const float *score, const size_t *rank, size_t n, size_t top,
                          cd_tune_place *place) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) place[i] = (cd_tune_place){(double)score[i], i};
    qsort(place, n, sizeof *place, descending);
    for (size_t m = 0; m < n && m < top; m++) {
        size_t hit = 0;
        for (size_t j = 0; j < m; j++) hit += rank[place[j].i] <= m;
        sum += (double)hit / (double)(m + 1);
    }
    return sum / (double)top;
}

static double pair_figure(fitting *w) {
    return cd_tune_fit_recall(w->score, w->rank, w->f->n, CD_TUNE_FIT_RECALL, w->place);
}

cdmpp_status cd_tune_fit_pairs(const cd_tune_fit *f, cd_xgb **out, cdmpp_err *err) {
    static const cd_xgb_param param[] = {
        {"nthread", "1"},   {"max_depth", "3"}, {"gamma", "0.0001"}, {"min_child_weight", "1"},
        {"subsample", "1"}, {"eta", "0.3"},     {"lambda", "1"},     {"alpha", "0"}};
    static const fit_kind kind = {
        param, sizeof param / sizeof *param, 8000, 20, 1, pair_gradient, pair_figure};
    return run(f, &kind, out, err);
}

/* list: where the pointer to n items of `size` bytes is; room for `add` more. Errors: ENOMEM. */
static cdmpp_status tune_boost_room(void *list, size_t n, size_t add, size_t *cap, size_t size,
                                    cdmpp_err *err) {
    if (n + add <= *cap) return CDMPP_OK;
    const size_t more = n + add < 32 ? 64 : 2 * (n + add);
    void *p;
    memcpy(&p, list, sizeof p);
    p = cd_mem_realloc(p, *cap * size, more * size);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu of %zu bytes", more, size);
    memcpy(list, &p, sizeof p);
    *cap = more;
    return CDMPP_OK;
}

typedef struct {
    float *x;
    double *y;
    size_t *start, n, width;
} matrix;

static void drop(matrix *m) {
    cd_mem_free(m->x);
    cd_mem_free(m->y);
    cd_mem_free(m->start);
}

static cdmpp_status room(matrix *m, size_t n, size_t n_value, cdmpp_err *err) {
    m->x = cd_mem_zalloc(n_value + 1, sizeof *m->x);
    m->y = cd_mem_zalloc(n + 1, sizeof *m->y);
    m->start = cd_mem_zalloc(n + 1, sizeof *m->start);
    return m->x && m->y && m->start ? CDMPP_OK
                                    : CD_FAIL(err, ENOMEM, "training set of %zu programs", n);
}

/* Throughput over that of the fastest of the task; 0: failed. */
static double label(const cd_tune_boost *r, const cd_tune_boost_sample *s) {
    return s->seconds > 0 && s->seconds < CD_TUNE_FAILED_S ? r->task[s->task].best_s / s->seconds
                                                           : 0;
}

/* All samples of all tasks, whole rows. */
static cdmpp_status stores(const cd_tune_boost *r, matrix *m, cdmpp_err *err) {
    m->width = CD_N_COL;
    CD_TRY(room(m, r->n_sample, r->n_x, err));
    memcpy(m->x, r->x, r->n_x * sizeof *m->x);
    for (m->n = 0; m->n < r->n_sample; m->n++) {
        const cd_tune_boost_sample *s = &r->sample[m->n];
        m->y[m->n] = label(r, s);
        m->start[m->n + 1] = m->start[m->n] + s->n / CD_N_COL;
    }
    return CDMPP_OK;
}

/* The samples of one task, a row each, as wide as the longest. */
static cdmpp_status lines(const cd_tune_boost *r, size_t task, matrix *m, cdmpp_err *err) {
    m->width = 1;
    for (size_t k = 0; k < r->n_sample; k++)
        if (r->sample[k].task == task && r->sample[k].n > m->width) m->width = r->sample[k].n;
    CD_TRY(room(m, r->task[task].n, r->task[task].n * m->width, err));
    for (size_t k = 0; k < r->n_sample; k++) {
        const cd_tune_boost_sample *s = &r->sample[k];
        if (s->task != task) continue;
        if (s->n) memcpy(m->x + m->n * m->width, r->x + s->at, s->n * sizeof *m->x);
        m->y[m->n++] = label(r, s);
        m->start[m->n] = m->n;
    }
    return CDMPP_OK;
}

static cdmpp_status train(const cd_tune_boost *r, const matrix *m, cd_xgb **trees, cdmpp_err *err) {
    const cd_tune_fit f = {
        .x = m->x, .width = m->width, .n = m->n, .start = m->start, .y = m->y, .seed = r->seed};
    cd_xgb *made = NULL;
    CD_TRY(r->shared ? cd_tune_fit_pack_sum(&f, &made, err) : cd_tune_fit_pairs(&f, &made, err));
    cd_xgb_free(*trees);
    *trees = made;
    return CDMPP_OK;
}

/* The trees for a task that is ready. Errors: EBACKEND, EMODEL, ENOMEM.
 *
 * Trains only when samples came since the last time. Ansor has one model for all tasks (shared),
 * AutoTVM one for each. */
static cdmpp_status tune_boost_trees(cd_tune_boost *r, size_t task, const cd_xgb **out,
                                     size_t *width, cdmpp_err *err) {
    cd_tune_boost_task *k = &r->task[task];
    cd_xgb **trees = r->shared ? &r->trees : &k->trees;
    size_t *fitted = r->shared ? &r->n_fitted : &k->n_fitted;
    const size_t have = r->shared ? r->n_sample : k->n;
    if (*fitted != have) {
        matrix m = {0};
        cdmpp_status st = r->shared ? stores(r, &m, err) : lines(r, task, &m, err);
        if (!st) st = train(r, &m, trees, err);
        if (!st) k->width = m.width;
        drop(&m);
        CD_TRY(st);
        *fitted = have;
    }
    *out = *trees;
    *width = r->shared ? CD_N_COL : k->width;
    return CDMPP_OK;
}

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
    CD_TRY(tune_boost_room(&r->seen, r->n_seen, 1, &r->cap_seen, sizeof *r->seen, err));
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
    CD_TRY(tune_boost_room(&r->task, r->n_task, 1, &r->cap_task, sizeof *r->task, err));
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
    CD_TRY(tune_boost_room(&r->sample, r->n_sample, 1, &r->cap_sample, sizeof *r->sample, err));
    CD_TRY(tune_boost_room(&r->x, r->n_x, f->n, &r->cap_x, sizeof *r->x, err));
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
    CD_TRY(tune_boost_room(&r->input, 0, n * width, &r->cap_input, sizeof *r->input, err));
    CD_TRY(tune_boost_room(&r->output, 0, n, &r->cap_output, sizeof *r->output, err));
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
    if (trained) CD_TRY(tune_boost_trees(r, task, &trees, &width, err));
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
