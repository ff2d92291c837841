/* The kinds of a training, and errors on kinds that were left out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/train_internal.h"
#include "learner/train/unlike_range.h"

/* The limit of the range for programs whose kinds are known, from what is out of fold, and how far
 * off the farthest are. */

static const double share = 0.05;

typedef cd_unlike_range_program judged;

typedef struct {
    const cd_training_set *t;
    cd_arena arena;
    float *range, *x; /* (2, width), (width) */
    size_t width;
    uint8_t *is_new; /* (n_kind, n_device) */
    judged *v;       /* (n_oof) */
} work_range;

static void vector_of(const work_range *w, size_t p) {
    const cd_program_view *v = &w->t->view;
    cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, v->row + v->row_ptr[p] * (int64_t)w->t->d->n_col,
                       (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]), v->device[p], w->x);
}

static bool is_other(const cd_training_set *t, size_t i, int fold) {
    return t->fold[i] != CD_FOLD_NEVER && t->fold[i] != fold;
}

/* ---- what the other folds have ---- */
static cdmpp_status marks_of_others(work_range *w, int fold, cd_arena *a, cd_trained_on **out,
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
static cdmpp_status compare_kinds(work_range *w, int fold, cd_arena *a, cdmpp_err *err) {
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

static void range_of_others(work_range *w, int fold) {
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
static cdmpp_status judge_range(work_range *w, cdmpp_err *err) {
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
 * calibration_pick.c. */
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
static size_t groups_range(cd_unlike_error *e, size_t n, bool take_off, double *square) {
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
    size_t kinds = groups_range(e, n, false, &square);
    if (kinds < CD_UNLIKE_LAW_LEAST) return;
    const double m = (double)kinds, tail = 1 - half * (1 + 1 / m);
    const bool few = tail <= 0;
    if (few) kinds = groups_range(e, n, true, &square);
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
static cdmpp_status how_far_off(const work_range *w, const cd_model *m, const double *kind_log_s,
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

/* to->range, a distance as cd_model_prediction.outside; where marks alone flag 5 %, the largest
 * distance of a program out of fold. And the law of programs that are out of range, by how far off
 * the model is out of fold for the farthest tasks; kind_log_s (n_kind, n_oof) as its members
 * answered, NULL: no law. Errors: ENOMEM, those of cd_evaluate_answers. */
static cdmpp_status unlike_range(const cd_training_set *t, const double *kind_log_s,
                                 const cd_model *m, cd_trained_on *to, cdmpp_err *err) {
    work_range w = {.t = t, .width = cd_tree_input_width(CD_TREE_INPUT_PROGRAM)};
    w.range = CD_NEWN(&w.arena, float, 2 * w.width);
    w.x = CD_NEWN(&w.arena, float, w.width);
    w.is_new = CD_NEWN(&w.arena, uint8_t, t->d->n_kind * t->n_device + 1);
    w.v = CD_NEWN(&w.arena, judged, t->n_oof + 1);
    cdmpp_status st;
    if (w.arena.oom) st = CD_FAIL(err, ENOMEM, "%zu programs", t->n_oof);
    else st = judge_range(&w, err);
    if (!st) to->range = cd_unlike_range_limit(w.v, t->n_oof);
    if (!st && kind_log_s)
        st = how_far_off(&w, m, kind_log_s, to->range, &to->law[CD_UNLIKE_BIT_RANGE], err);
    cd_arena_free(&w.arena);
    return st;
}

enum {
    FOLDS = 4,
    MOST_TRAIN = 4000,
    MOST_TEST = 1000,
    ROUNDS = 40,
    DEPTH = 6,
    VALID_EVERY = 10,
    MOST_MARKS = 6,
    FEW = 20
};

typedef struct {
    const cd_training_set *t;
    cd_arena arena;
    uint32_t *group; /* (t->d->n_kind) operator kind of a signature */
    size_t n_group;
    uint8_t *fold; /* (n_group) */
    size_t *size;  /* (n_group) programs */
    cd_config c;   /* of small trees */
    int nthread;
    uint8_t *left;          /* (t->d->n) 1: left out and asked about; 2: left out alone */
    uint32_t *program;      /* (t->d->n) */
    double *log_s;          /* (t->d->n) */
    cd_unlike_error *error; /* (MOST_TEST for each kind that is left out) */
    size_t n_error;
} work;

static bool trains(const cd_training_set *t, size_t i) {
    return t->fold[i] != CD_FOLD_NEVER &&
           (t->n_fold > 1 || t->split->part[i] == CD_SPLIT_PART_TRAIN);
}

/* ---- marks ---- */
/* Each pair of kind and device once. */
static cdmpp_status marks(const cd_training_set *t, cd_arena *work_in, cd_model *m,
                          cd_trained_on **out, cdmpp_err *err) {
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
        const bool is_operator =
            mark.n > sizeof operator&& !memcmp(mark.p, operator, sizeof operator- 1);
        if (!is_operator || (mark.n > sizeof access && !memcmp(mark.p, access, sizeof access - 1)))
            continue;
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
            if (w->fold[g] == FOLDS && w->size[g] &&
                (best == w->n_group || w->size[g] > w->size[best]))
                best = g;
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
    if (w->arena.oom) return CD_FAIL(err, ENOMEM, "%zu operator kinds", w->n_group);
    memset(w->fold, FOLDS, w->n_group);
    for (size_t i = 0; i < d->n; i++) w->size[w->group[d->kind[i]]] += trains(w->t, i);
    deal(w, n);
    return CDMPP_OK;
}

/* ---- trees without what is left out ---- */
/* Every k-th program that is asked about, or that is not left out, so that there are at most
 * `most`. */
static size_t list(const work *w, bool asked, size_t most) {
    const cd_training_set *t = w->t;
    size_t all = 0, n = 0, seen = 0;
    for (size_t i = 0; i < t->d->n; i++) all += trains(t, i) && w->left[i] == asked;
    const size_t step = all / most + 1;
    for (size_t i = 0; i < t->d->n; i++) {
        if (!trains(t, i) || w->left[i] != asked || seen++ % step) continue;
        w->program[n] = (uint32_t)i;
        w->log_s[n++] = t->log_s[i];
    }
    return n;
}

/* The errors are of operator kinds, or all of one group. The last tenth of the list tells when to
 * stop: programs of other tasks, as logs follow tasks. */
static cdmpp_status judge(work *w, bool operators, uint32_t group, cdmpp_err *err) {
    const cd_training_set *t = w->t;
    cd_member e = {.kind = CD_MEMBER_PROGRAM, .fold = -1};
    cd_member_scratch *s = NULL;
    const cd_boost_run run = {.name = "unlike", .nthread = w->nthread};
    const size_t n = list(w, false, MOST_TRAIN), n_valid = n / VALID_EVERY;
    if (n_valid < 2) return CDMPP_OK;
    const cd_boost_set train = {n - n_valid, w->program, w->log_s, NULL};
    const cd_boost_set valid = {n_valid, w->program + n - n_valid, w->log_s + n - n_valid, NULL};
    double *answer = cd_mem_zalloc(MOST_TEST, sizeof *answer);
    if (!answer) return CD_FAIL(err, ENOMEM, "%d answers", MOST_TEST);
    cdmpp_status st = cd_boost(&t->view, &train, &valid, &w->c, &run, &e, err);
    if (!st) st = cd_member_scratch_new(&s, err);
    const size_t m = st ? 0 : list(w, true, MOST_TEST);
    if (m)
        st = cd_member_predict(&e, s, &t->view, w->program, m, t->device_vector, t->n_device,
                               answer, err);
    for (size_t i = 0; !st && i < m; i++)
        w->error[w->n_error++] = (cd_unlike_error){
            w->log_s[i] - answer[i], operators ? w->group[t->d->kind[w->program[i]]] : group, 0};
    cd_mem_free(answer);
    cd_member_scratch_free(s);
    cd_member_free(&e);
    return st;
}

static cdmpp_status operators(work *w, cd_unlike_law *to, cdmpp_err *err) {
    const cd_dataset *d = w->t->d;
    size_t n = 0;
    CD_TRY(groups(w, &n, err));
    w->n_error = 0;
    for (int f = 0; n >= CD_UNLIKE_LAW_LEAST + 1 && f < FOLDS; f++) {
        for (size_t i = 0; i < d->n; i++) w->left[i] = w->fold[w->group[d->kind[i]]] == f;
        CD_TRY(judge(w, true, 0, err));
    }
    cd_unlike_law_of(w->error, w->n_error, w->c.predict_level, to);
    return CDMPP_OK;
}

/* ---- marks of one reason, each left out once ---- */
typedef struct {
    uint32_t bit;
    bool own;              /* of a device itself: left out of its programs alone */
    const char *begins[2]; /* marks of this reason; the second may be NULL */
} reason;
static const reason by_mark[] = {{CD_UNLIKE_BIT_DTYPE, true, {"dtype ", NULL}},
                                 {CD_UNLIKE_BIT_INTRINSIC, false, {"intrinsic ", NULL}},
                                 {CD_UNLIKE_BIT_THREADS, true, {"threads ", NULL}},
                                 {CD_UNLIKE_BIT_FEATURE, true, {"vector ", "feature "}}};

static bool is_of(const reason *r, const char *mark) {
    for (int k = 0; k < 2; k++)
        if (r->begins[k] && !strncmp(mark, r->begins[k], strlen(r->begins[k]))) return true;
    return false;
}

static bool has_mark(const char *kind, const char *mark) {
    for (cd_str is; cd_signature_next(&kind, &is);)
        if (cd_str_is(is, mark)) return true;
    return false;
}

/* What a training without the programs with this mark would be asked about. device: whose they are,
 * where the reason is of a device itself; what it has without the mark must be enough to answer for
 * the others. *digest: of which programs, for marks that come together are one experiment. */
static bool leave_out(work *w, const reason *r, const char *mark, uint32_t device,
                      uint64_t *digest) {
    const cd_training_set *t = w->t;
    size_t out = 0, stay = 0;
    *digest = 0;
    for (size_t k = 0; k < t->d->n_kind; k++) w->size[k] = has_mark(t->d->kind_name[k], mark);
    for (size_t i = 0; i < t->d->n; i++) {
        const bool mine = !r->own || t->device[i] == device;
        w->left[i] = mine && w->size[t->d->kind[i]];
        if (!trains(t, i)) continue;
        out += w->left[i];
        stay += mine && !w->left[i];
        if (w->left[i]) *digest = cd_rng_mix(*digest ^ i);
    }
    return out >= FEW && stay >= FEW;
}

static cdmpp_status marks_of(work *w, const reason *r, cd_trained_on *to, cdmpp_err *err) {
    uint64_t done[MOST_MARKS], digest;
    uint32_t n = 0;
    w->n_error = 0;
    for (size_t k = 0; k < to->n; k++)
        for (uint32_t d = 0;
             is_of(r, to->mark[k]) && d < (r->own ? to->n_device : 1) && n < MOST_MARKS; d++) {
            bool again = false;
            if (!leave_out(w, r, to->mark[k], d, &digest)) continue;
            for (uint32_t j = 0; j < n; j++) again |= done[j] == digest;
            if (again) continue;
            done[n] = digest;
            CD_TRY(judge(w, false, n++, err));
        }
    cd_unlike_law_of(w->error, w->n_error, w->c.predict_level, &to->law[r->bit]);
    return CDMPP_OK;
}

/* ---- all ---- */
static cdmpp_status begin(work *w, cdmpp_err *err) {
    const cd_dataset *d = w->t->d;
    enum { RUNS = FOLDS > MOST_MARKS ? FOLDS : MOST_MARKS };
    w->c = *w->t->c;
    w->c.train_objective = CD_OBJECTIVE_LOG_LATENCY;
    w->c.train_rounds = w->c.train_rounds < ROUNDS ? w->c.train_rounds : ROUNDS;
    w->c.train_max_depth = w->c.train_max_depth < DEPTH ? w->c.train_max_depth : DEPTH;
    w->c.train_eta = fmax(w->c.train_eta, 0.2);
    w->c.train_together = false;
    if (!w->t->analytic) w->c.train_facts = CD_FACTS_USE_NONE; /* no member reads them */
    w->left = CD_NEWN(&w->arena, uint8_t, d->n + 1);
    w->program = CD_NEWN(&w->arena, uint32_t, d->n + 1);
    w->log_s = CD_NEWN(&w->arena, double, d->n + 1);
    w->error = CD_NEWN(&w->arena, cd_unlike_error, RUNS * (size_t)MOST_TEST);
    return w->arena.oom ? CD_FAIL(err, ENOMEM, "%zu programs", d->n) : CDMPP_OK;
}

static cdmpp_status laws(work *w, const double *kind_log_s, const cd_model *m, cd_trained_on *to,
                         cdmpp_err *err) {
    CD_TRY(begin(w, err));
    CD_TRY(operators(w, &to->law[CD_UNLIKE_BIT_OPERATOR], err));
    w->size = CD_NEWN(&w->arena, size_t, w->t->d->n_kind + 1);
    if (!w->size) return CD_FAIL(err, ENOMEM, "%zu kinds", w->t->d->n_kind);
    for (size_t k = 0; k < sizeof by_mark / sizeof *by_mark; k++)
        CD_TRY(marks_of(w, &by_mark[k], to, err));
    return unlike_range(w->t, kind_log_s, m, to, err);
}

cdmpp_status cd_unlike_fit(const cd_training_set *t, cd_threads *pool, const double *kind_log_s,
                           cd_model *m, cd_buf *notes, cdmpp_err *err) {
    work w = {.t = t, .nthread = pool ? cd_threads_count(pool) : 1};
    cd_trained_on *to = NULL;
    cdmpp_status st = marks(t, &w.arena, m, &to, err);
    if (!st && to) st = laws(&w, kind_log_s, m, to, err);
    if (!st && !to)
        cd_buf_puts(notes, "the data set does not say which kinds of programs it has: a program "
                           "unlike them is told by its features alone; extract it again\n");
    if (!st) m->trained_on = to;
    cd_arena_free(&w.arena);
    return st;
}
