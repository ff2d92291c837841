/* The limit of the range for programs whose kinds are known, from what is out of fold, and how far
 * off the farthest are. */
#include "learner/train/unlike_range.h"

#include <math.h>
#include <stdlib.h>

#include "learner/train/train_internal.h"

static const double share = 0.05;

typedef cd_unlike_range_program judged;

typedef struct {
    const cd_training_set *t;
    cd_arena arena;
    float *range, *x; /* (2, width), (width) */
    size_t width;
    uint8_t *is_new; /* (n_kind, n_device) */
    judged *v;       /* (n_oof) */
} work;

static void vector_of(const work *w, size_t p) {
    const cd_program_view *v = &w->t->view;
    cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, v->row + v->row_ptr[p] * (int64_t)w->t->d->n_col,
                       (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]), v->device[p], w->x);
}

static bool is_other(const cd_training_set *t, size_t i, int fold) {
    return t->fold[i] != CD_FOLD_NEVER && t->fold[i] != fold;
}

/* ---- what the other folds have ---- */
static cdmpp_status marks_of_others(work *w, int fold, cd_arena *a, cd_trained_on **out,
                                    cdmpp_err *err) {
    const cd_training_set *t = w->t;
    const size_t n_pair = t->d->n_kind * t->n_device;
    uint8_t *seen = CD_NEWN(a, uint8_t, n_pair + 1);
    const char **text = CD_NEWN(a, const char *, n_pair + 1);
    uint32_t *device = CD_NEWN(a, uint32_t, n_pair + 1);
    size_t n = 0;
    if (a->oom) return CD_FAIL(err, ENOMEM, "%zu kinds", t->d->n_kind);
    for (size_t i = 0; i < t->d->n; i++) {
        uint8_t *known = &seen[t->d->kind[i] * t->n_device + t->device[i]];
        if (!is_other(t, i, fold) || *known) continue;
        *known = 1;
        text[n] = t->d->kind_name[t->d->kind[i]];
        device[n++] = t->device[i];
    }
    return cd_trained_on_make(a, text, device, n, t->n_device, out, err);
}

static cdmpp_status signature_of(cd_arena *a, const char *text, cd_signature *s, cdmpp_err *err) {
    size_t cap = 0;
    *s = (cd_signature){0};
    for (cd_str mark; cd_signature_next(&text, &mark);) {
        char *copy = cd_str_dup(a, mark);
        if (!copy || CD_GROW_IN(a, s->mark, s->n, cap))
            return CD_FAIL(err, ENOMEM, "marks of a kind");
        s->mark[s->n++] = copy;
    }
    return CDMPP_OK;
}

/* Without other folds' marks nothing is new: then there is no training either. */
static cdmpp_status compare_kinds(work *w, int fold, cd_arena *a, cdmpp_err *err) {
    const cd_training_set *t = w->t;
    cd_trained_on *others = NULL;
    CD_TRY(marks_of_others(w, fold, a, &others, err));
    for (size_t k = 0; k < t->d->n_kind; k++) {
        cd_signature s;
        CD_TRY(signature_of(a, t->d->kind_name[k], &s, err));
        for (uint32_t d = 0; d < t->n_device; d++) {
            cd_unlike u = {0};
            if (others) cd_trained_on_check(others, d, false, &s, &u);
            w->is_new[k * t->n_device + d] = u.reason != 0;
        }
    }
    return CDMPP_OK;
}

static void range_of_others(work *w, int fold) {
    bool first = true;
    for (size_t i = 0; i < w->t->d->n; i++) {
        if (!is_other(w->t, i, fold)) continue;
        if (i % 16 == 0) cd_spool_rest(w->t->view.spool);
        vector_of(w, i);
        cd_calibration_range_add(w->range, w->x, 1, w->width, first);
        first = false;
    }
}

/* Out-of-fold programs stand by fold. */
static cdmpp_status judge(work *w, cdmpp_err *err) {
    const cd_training_set *t = w->t;
    int fold = -1;
    for (size_t i = 0; i < t->n_oof; i++) {
        const size_t p = t->oof[i];
        if (t->fold[p] != fold) {
            cd_arena a = {0};
            fold = t->fold[p];
            const cdmpp_status st = compare_kinds(w, fold, &a, err);
            cd_arena_free(&a);
            CD_TRY(st);
            range_of_others(w, fold);
        }
        if (i % 16 == 0) cd_spool_rest(t->view.spool);
        vector_of(w, p);
        size_t columns;
        const bool is_new = w->is_new[t->d->kind[p] * t->n_device + t->device[p]];
        w->v[i] = (judged){is_new ? HUGE_VAL
                                  : cd_calibration_outside_of(w->range, w->x, w->width, &columns),
                           t->group[p], (uint32_t)i, 0};
    }
    return CDMPP_OK;
}

/* ---- the limit ---- */
static int by_group(const void *a, const void *b) {
    const judged *x = a, *y = b;
    return (x->group > y->group) - (x->group < y->group);
}

static int far_first(const void *a, const void *b) {
    const judged *x = a, *y = b;
    return (x->outside < y->outside) - (x->outside > y->outside);
}

static size_t weigh(judged *v, size_t n) {
    size_t n_group = 0;
    qsort(v, n, sizeof *v, by_group);
    for (size_t i = 0, j; i < n; i = j, n_group++) {
        for (j = i; j < n && v[j].group == v[i].group;) j++;
        for (size_t k = i; k < j; k++) v[k].weight = 1 / (double)(j - i);
    }
    return n_group;
}

/* A task that comes next has any rank among those that were judged: (1 - share)(1 + 1/n), as in
 * calibration_spread.c. */
double cd_unlike_range_limit(judged *v, size_t n) {
    const double n_group = (double)weigh(v, n), most = n_group - (1 - share) * (n_group + 1);
    double flagged = 0;
    qsort(v, n, sizeof *v, far_first);
    for (size_t i = 0; i < n; i++) {
        flagged += v[i].weight;
        if (isfinite(v[i].outside) && flagged > most) return v[i].outside;
    }
    return 0;
}

/* ---- errors of kinds as a law ---- */
static const double most_log = 20; /* no law says more */

static int by_kind(const void *a, const void *b) {
    const cd_unlike_error *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

static int by_r(const void *a, const void *b) {
    const cd_unlike_error *x = a, *y = b;
    return (x->r > y->r) - (x->r < y->r);
}

/* Where the sum of the weights, which is 1, passes p. */
static double quantile(const cd_unlike_error *e, size_t n, double p) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if ((sum += e[i].weight) >= p) return e[i].r;
    return e[n - 1].r;
}

/* Number of groups; the mean square of their means. `take_off`: their means, too. */
static size_t groups(cd_unlike_error *e, size_t n, bool take_off, double *square) {
    size_t count = 0;
    *square = 0;
    qsort(e, n, sizeof *e, by_kind);
    for (size_t i = 0, j; i < n; i = j, count++) {
        double mean = 0;
        for (j = i; j < n && e[j].group == e[i].group; j++) mean += e[j].r;
        mean /= (double)(j - i);
        *square += mean * mean;
        for (size_t k = i; k < j; k++) {
            e[k].weight = 1 / (double)(j - i);
            if (take_off) e[k].r -= mean;
        }
    }
    *square /= (double)(count ? count : 1);
    for (size_t i = 0; i < n; i++) e[i].weight /= (double)count;
    return count;
}

void cd_unlike_law_of(cd_unlike_error *e, size_t n, double level, cd_unlike_law *out) {
    const double half = (1 + level) / 2;
    double square;
    *out = (cd_unlike_law){0};
    size_t kinds = groups(e, n, false, &square);
    if (kinds < CD_UNLIKE_LAW_LEAST) return;
    const double m = (double)kinds, tail = 1 - half * (1 + 1 / m);
    const bool few = tail <= 0;
    if (few) kinds = groups(e, n, true, &square);
    out->n = (uint32_t)kinds;
    out->shift = fmin(sqrt(square), most_log);
    qsort(e, n, sizeof *e, by_r);
    const double shift = few ? cd_normal_student(half, m) * out->shift * sqrt(1 + 1 / m) : 0,
                 at = few ? 1 - half : tail;
    out->low = fmax(-most_log, fmin(0, -hypot(shift, fmin(0, quantile(e, n, at)))));
    out->high = fmin(most_log, fmax(0, hypot(shift, fmax(0, quantile(e, n, 1 - at)))));
}

/* ---- how far off ---- */
enum { LEAST_TASKS = 3, BESIDE = 2 };

/* The tasks beyond the limit; where these are few the farthest of all, of which the others are at
 * least as many again. *n: their programs; v is by distance. */
static size_t farthest(const judged *v, size_t n, double limit) {
    uint32_t task[LEAST_TASKS];
    size_t tasks = 0, k = 0;
    for (; k < n; k++) {
        bool known = tasks >= LEAST_TASKS;
        for (size_t j = 0; j < tasks && !known; j++) known = task[j] == v[k].group;
        if (isinf(v[k].outside)) continue; /* of a kind that is new by itself */
        if (v[k].outside <= limit && tasks >= LEAST_TASKS) break;
        if (!known) task[tasks++] = v[k].group;
    }
    return tasks < LEAST_TASKS ? 0 : k;
}

static size_t count_groups(const cd_training_set *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->n_oof; i++)
        n = t->group[t->oof[i]] >= n ? t->group[t->oof[i]] + 1u : n;
    return n;
}

/* By the model itself out of fold: no trees stand for it here. */
static cdmpp_status how_far_off(const work *w, const cd_model *m, const double *kind_log_s,
                                double limit, cd_unlike_law *to, cdmpp_err *err) {
    const cd_training_set *t = w->t;
    const size_t n = count_groups(t) < BESIDE * LEAST_TASKS ? 0 : farthest(w->v, t->n_oof, limit);
    cd_model_prediction *p = n ? cd_mem_zalloc(t->n_oof, sizeof *p) : NULL;
    cd_unlike_error *e = n ? cd_mem_zalloc(n, sizeof *e) : NULL;
    size_t k = 0;
    cdmpp_status st = !n || (p && e) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", t->n_oof);
    if (!st && n) st = cd_evaluate_answers(t, m, NULL, t->oof, t->n_oof, kind_log_s, p, err);
    for (size_t i = 0; !st && i < n; i++)
        if (!isinf(w->v[i].outside))
            e[k++] = (cd_unlike_error){t->log_s[t->oof[w->v[i].at]] - log(p[w->v[i].at].latency_s),
                                       w->v[i].group, 0};
    if (!st && n) cd_unlike_law_of(e, k, t->c->predict_level, to);
    cd_mem_free(p);
    cd_mem_free(e);
    return st;
}

cdmpp_status cd_unlike_range(const cd_training_set *t, const double *kind_log_s, const cd_model *m,
                             cd_trained_on *to, cdmpp_err *err) {
    work w = {.t = t, .width = cd_tree_input_width(CD_TREE_INPUT_PROGRAM)};
    w.range = CD_NEWN(&w.arena, float, 2 * w.width);
    w.x = CD_NEWN(&w.arena, float, w.width);
    w.is_new = CD_NEWN(&w.arena, uint8_t, t->d->n_kind * t->n_device + 1);
    w.v = CD_NEWN(&w.arena, judged, t->n_oof + 1);
    cdmpp_status st;
    if (w.arena.oom) st = CD_FAIL(err, ENOMEM, "%zu programs", t->n_oof);
    else st = judge(&w, err);
    if (!st) to->range = cd_unlike_range_limit(w.v, t->n_oof);
    if (!st && kind_log_s)
        st = how_far_off(&w, m, kind_log_s, to->range, &to->law[CD_UNLIKE_BIT_RANGE], err);
    cd_arena_free(&w.arena);
    return st;
}
