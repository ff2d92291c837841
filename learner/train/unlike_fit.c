/* The kinds of a training, and errors on operators that were left out. */
#include "learner/train/train_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/unlike_range.h"

enum { FOLDS = 4, LEAST_GROUPS = 3, MOST_TRAIN = 4000, MOST_TEST = 1000, ROUNDS = 40, DEPTH = 6, VALID_EVERY = 10 };
static const double nothing_left_out = 2.302585092994046; /* ln 10 */

typedef struct {
    const cd_training_set *t;
    cd_arena arena;
    uint32_t *group;      /* (t->d->n_kind) operator kind of a signature */
    size_t n_group;
    uint8_t *fold;        /* (n_group) */
    size_t *size;         /* (n_group) programs */
    double *residual;     /* (n_residual) */
    uint32_t *of;         /* (n_residual) group */
    size_t n_residual;
} work;

static bool trains(const cd_training_set *t, size_t i) { return t->fold[i] != CD_FOLD_NEVER && (t->n_fold > 1 || t->split->part[i] == CD_SPLIT_PART_TRAIN); }

/* ---- marks ---- */
/* Each pair of kind and device once. */
static cdmpp_status marks(const cd_training_set *t, cd_arena *work_in, cd_model *m, cd_trained_on **out, cdmpp_err *err) {
    const cd_dataset *d = t->d;
    const size_t n_pair = d->n_kind * t->n_device;
    uint8_t *seen = CD_NEWN(work_in, uint8_t, n_pair + 1);
    const char **text = CD_NEWN(work_in, const char *, n_pair + 1);
    uint32_t *device = CD_NEWN(work_in, uint32_t, n_pair + 1);
    size_t n = 0;
    *out = NULL;
    if (work_in->oom) return CD_FAIL(err, ENOMEM, "%zu kinds", d->n_kind);
    if (!d->n_kind) return CDMPP_OK;
    for (size_t i = 0; i < d->n; i++) {
        uint8_t *known = &seen[d->kind[i] * t->n_device + t->device[i]];
        if (!trains(t, i) || *known) continue;
        *known = 1;
        text[n] = d->kind_name[d->kind[i]];
        device[n++] = t->device[i];
    }
    return cd_trained_on_make(&m->arena, text, device, n, t->n_device, out, err);
}

/* ---- operator kinds ---- */
/* The reductions of a signature as one text; "" for those of elementwise stages alone. */
static cdmpp_status reductions(cd_buf *b, const char *kind, cdmpp_err *err) {
    static const char operator[] = "operator ", access[] = "operator access ";
    cd_buf_clear(b);
    for (cd_str mark; cd_signature_next(&kind, &mark);) {
        const bool is_operator = mark.n > sizeof operator && !memcmp(mark.p, operator, sizeof operator - 1);
        if (!is_operator || (mark.n > sizeof access && !memcmp(mark.p, access, sizeof access - 1))) continue;
        cd_buf_put(b, mark.p, mark.n);
        cd_buf_puts(b, ";");
    }
    return b->oom ? CD_FAIL(err, ENOMEM, "operator kinds") : CDMPP_OK;
}

static cdmpp_status name_groups(work *w, cdmpp_err *err) {
    const cd_dataset *d = w->t->d;
    cd_dict names = {0};
    cd_buf b = {0};
    cdmpp_status st = CDMPP_OK;
    for (size_t k = 0; !st && k < d->n_kind; k++) {
        st = reductions(&b, d->kind_name[k], err);
        if (!st) st = cd_dict_add(&names, (cd_str){b.p ? b.p : "", b.n}, &w->group[k], err);
    }
    w->n_group = names.n;
    cd_dict_free(&names);
    cd_buf_free(&b);
    return st;
}

/* The largest first, each to the smallest fold. *n: groups with programs. */
static void deal(work *w, size_t *n) {
    size_t fold_size[FOLDS] = {0};
    for (*n = 0; *n < w->n_group; ++*n) {
        size_t best = w->n_group;
        for (size_t g = 0; g < w->n_group; g++)
            if (w->fold[g] == FOLDS && w->size[g] && (best == w->n_group || w->size[g] > w->size[best])) best = g;
        if (best == w->n_group) return;
        int f = 0;
        for (int k = 1; k < FOLDS; k++)
            if (fold_size[k] < fold_size[f]) f = k;
        w->fold[best] = (uint8_t)f;
        fold_size[f] += w->size[best];
    }
}

static cdmpp_status groups(work *w, size_t *n, cdmpp_err *err) {
    const cd_dataset *d = w->t->d;
    w->group = CD_NEWN(&w->arena, uint32_t, d->n_kind);
    if (!w->group) return CD_FAIL(err, ENOMEM, "%zu kinds", d->n_kind);
    CD_TRY(name_groups(w, err));
    w->fold = CD_NEWN(&w->arena, uint8_t, w->n_group);
    w->size = CD_NEWN(&w->arena, size_t, w->n_group);
    w->residual = CD_NEWN(&w->arena, double, FOLDS * (size_t)MOST_TEST);
    w->of = CD_NEWN(&w->arena, uint32_t, FOLDS * (size_t)MOST_TEST);
    if (w->arena.oom) return CD_FAIL(err, ENOMEM, "%zu operator kinds", w->n_group);
    memset(w->fold, FOLDS, w->n_group);
    for (size_t i = 0; i < d->n; i++) w->size[w->group[d->kind[i]]] += trains(w->t, i);
    deal(w, n);
    return CDMPP_OK;
}

/* ---- trees without a fold ---- */
/* Every k-th program of a fold, or of the others, so that there are at most `most`. */
static size_t list(const work *w, int fold, bool in, size_t most, uint32_t *program, double *log_s) {
    const cd_training_set *t = w->t;
    size_t all = 0, n = 0, seen = 0;
    for (size_t i = 0; i < t->d->n; i++) all += trains(t, i) && (w->fold[w->group[t->d->kind[i]]] == fold) == in;
    const size_t step = all / most + 1;
    for (size_t i = 0; i < t->d->n; i++) {
        if (!trains(t, i) || (w->fold[w->group[t->d->kind[i]]] == fold) != in || seen++ % step) continue;
        program[n] = (uint32_t)i;
        log_s[n++] = t->log_s[i];
    }
    return n;
}

/* The last tenth of the list tells when to stop: programs of other tasks, as logs follow tasks. */
static cdmpp_status judge(work *w, int fold, const cd_config *c, int nthread, uint32_t *program, double *log_s, cdmpp_err *err) {
    const cd_training_set *t = w->t;
    cd_member e = {.kind = CD_MEMBER_PROGRAM, .fold = -1};
    cd_member_scratch *s = NULL;
    const cd_boost_run run = {.name = "unlike", .nthread = nthread};
    const size_t n = list(w, fold, false, MOST_TRAIN, program, log_s), n_valid = n / VALID_EVERY;
    if (n_valid < 2) return CDMPP_OK;
    const cd_boost_set train = {n - n_valid, program, log_s, NULL}, valid = {n_valid, program + n - n_valid, log_s + n - n_valid, NULL};
    cdmpp_status st = cd_boost(&t->view, &train, &valid, c, &run, &e, err);
    if (!st) st = cd_member_scratch_new(&s, err);
    const size_t m = st ? 0 : list(w, fold, true, MOST_TEST, program, log_s);
    double *answer = w->residual + w->n_residual;
    if (m) st = cd_member_predict(&e, s, &t->view, program, m, t->device_vector, t->n_device, answer, err);
    for (size_t i = 0; !st && i < m; i++) {
        w->of[w->n_residual] = w->group[t->d->kind[program[i]]];
        w->residual[w->n_residual++] = log_s[i] - answer[i];
    }
    cd_member_scratch_free(s);
    cd_member_free(&e);
    return st;
}

/* ---- quantiles ---- */
typedef struct {
    double r, weight;
} weighed;

static int by_r(const void *a, const void *b) {
    const weighed *x = a, *y = b;
    return (x->r > y->r) - (x->r < y->r);
}

/* Where the sum of the weights passes p. */
static double quantile(const weighed *v, size_t n, double p) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if ((sum += v[i].weight) >= p) return v[i].r;
    return v[n - 1].r;
}

/* An operator kind that comes next has any rank among those that were left out: p (1 + 1/n), as in calibration_spread.c. */
static cdmpp_status quantiles(work *w, size_t n_group, double level, cd_trained_on *to, cdmpp_err *err) {
    weighed *v = CD_NEWN(&w->arena, weighed, w->n_residual + 1);
    size_t *n_of = CD_NEWN(&w->arena, size_t, w->n_group);
    const double p = (1 - level) / 2, tail = fmax(0, 1 - (1 - p) * (1 + 1 / (double)n_group));
    if (w->arena.oom) return CD_FAIL(err, ENOMEM, "%zu errors", w->n_residual);
    for (size_t i = 0; i < w->n_residual; i++) n_of[w->of[i]]++;
    for (size_t i = 0; i < w->n_residual; i++) v[i] = (weighed){w->residual[i], 1 / ((double)n_of[w->of[i]] * (double)n_group)};
    qsort(v, w->n_residual, sizeof *v, by_r);
    to->low = fmax(-20, fmin(0, quantile(v, w->n_residual, tail)));
    to->high = fmin(20, fmax(0, quantile(v, w->n_residual, 1 - tail)));
    return CDMPP_OK;
}

static cdmpp_status left_out(work *w, int nthread, cd_trained_on *to, cdmpp_err *err) {
    cd_config c = *w->t->c;
    size_t n = 0;
    to->low = -nothing_left_out;
    to->high = nothing_left_out;
    CD_TRY(groups(w, &n, err));
    if (n < LEAST_GROUPS) return CDMPP_OK;
    c.train_objective = CD_OBJECTIVE_LOG_LATENCY;
    c.train_rounds = c.train_rounds < ROUNDS ? c.train_rounds : ROUNDS;
    c.train_max_depth = c.train_max_depth < DEPTH ? c.train_max_depth : DEPTH;
    c.train_eta = fmax(c.train_eta, 0.2);
    c.train_together = false;
    if (!w->t->analytic) c.train_facts = CD_FACTS_USE_NONE; /* no member reads them */
    uint32_t *program = CD_NEWN(&w->arena, uint32_t, w->t->d->n);
    double *log_s = CD_NEWN(&w->arena, double, w->t->d->n);
    if (w->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs", w->t->d->n);
    for (int f = 0; f < FOLDS; f++) CD_TRY(judge(w, f, &c, nthread, program, log_s, err));
    return w->n_residual ? quantiles(w, n, c.predict_level, to, err) : CDMPP_OK;
}

cdmpp_status cd_unlike_fit(const cd_training_set *t, cd_threads *pool, cd_model *m, cd_buf *notes, cdmpp_err *err) {
    work w = {.t = t};
    cd_trained_on *to = NULL;
    cdmpp_status st = marks(t, &w.arena, m, &to, err);
    if (!st && to) st = cd_unlike_range(t, &to->range, err);
    if (!st && to) st = left_out(&w, pool ? cd_threads_count(pool) : 1, to, err);
    if (!st && !to) cd_buf_puts(notes, "the data set does not say which kinds of programs it has: a program unlike them is told by its features alone; extract it again\n");
    if (!st) m->trained_on = to;
    cd_arena_free(&w.arena);
    return st;
}
