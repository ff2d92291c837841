/* Machines of the training left out one by one, and what their errors say of one that nobody trained on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/device_law_fit.h"
#include "learner/train/train_internal.h"
#include "learner/train/unlike_range.h"

enum {
    MOST_MACHINES = 16,
    MOST_TRAIN = 4000,
    MOST_TEST = 1000,
    ROUNDS = 40,
    DEPTH = 6,
    VALID_EVERY = 10,
    FEW = 20
};
static const double ninety = 0.9;

typedef struct {
    float v[CD_N_DEVICE_COL];
} sheet;

typedef struct {
    const cd_training_set *t;
    int nthread;
    cd_arena arena;
    sheet *sheet;      /* (n_device) */
    bool *described;   /* (n_device) */
    uint32_t *machine; /* (n_device) */
    bool *left;        /* (n_device) left out now */
    uint32_t
        as; /* of those that are left out: who stands for them; n_device: the nearest on another machine */
    uint32_t *stands;  /* (d->n) device of each program; of those left out: who stands for it */
    uint32_t *program; /* (d->n) */
    double *log_s, *answer;     /* (d->n) */
    cd_device_law_error *error; /* (d->n) */
    const double *kind_log_s;   /* (n_kind, n_oof) */
    const cd_model *m;
    cd_config c; /* of small trees */
} work;

static bool trains(const cd_training_set *t, size_t i) {
    return t->fold[i] != CD_FOLD_NEVER &&
           (t->n_fold > 1 || t->split->part[i] == CD_SPLIT_PART_TRAIN);
}

/* ---- machines ---- */
static bool same_number(const float *a, const float *b, int column) {
    const int at = CD_N_DEVICE_KIND + column;
    return a[at] == b[at] && a[at + CD_N_DEVICE_RATIO] == b[at + CD_N_DEVICE_RATIO];
}

/* Programs for one machine may be compiled for several instruction sets, each of them a device: all but the width of vectors, and what follows
 * from it, is the same then. */
bool cd_device_law_one_machine(const float *a, const float *b) {
    static const int own[] = {CD_DEVICE_COL_clock,  CD_DEVICE_COL_cores, CD_DEVICE_COL_bandwidth,
                              CD_DEVICE_COL_l1,     CD_DEVICE_COL_l2,    CD_DEVICE_COL_last_cache,
                              CD_DEVICE_COL_process};
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        if (!same_number(a, b, own[k])) return false;
    return a[0] == b[0];
}

/* Descriptions are a help: of a device that has none nothing is learned. */
static cdmpp_status describe(work *w, cdmpp_err *err) {
    cd_device_table *l = NULL;
    cd_diag diag = {0};
    const cdmpp_status st =
        cd_device_table_open(&w->arena, w->t->c->device_file, w->t->c->path, &diag, NULL, &l, err);
    for (size_t k = 0; !st && k < w->t->n_device; k++)
        w->described[k] = !cd_device_table_vector(l, w->t->device_name[k], w->sheet[k].v, NULL);
    cd_device_table_free(l);
    cd_diag_free(&diag);
    if (st != CDMPP_ENOMEM && err) *err = (cdmpp_err){0};
    return st == CDMPP_ENOMEM ? st : CDMPP_OK;
}

static void number_machines(work *w) {
    for (uint32_t k = 0; k < w->t->n_device; k++) {
        w->machine[k] = k;
        for (uint32_t j = 0; j < k && w->machine[k] == k; j++)
            if (w->described[j] && w->described[k] &&
                cd_device_law_one_machine(w->sheet[j].v, w->sheet[k].v))
                w->machine[k] = w->machine[j];
    }
}

/* The nearest described one of its kind on another machine; n_device: none. */
static uint32_t stand_in(const work *w, uint32_t device, double *far) {
    uint32_t best = (uint32_t)w->t->n_device;
    *far = (double)INFINITY;
    for (uint32_t k = 0; k < w->t->n_device; k++) {
        if (!w->described[k] || w->machine[k] == w->machine[device] ||
            w->t->device_is_gpu[k] != w->t->device_is_gpu[device])
            continue;
        const double d = cd_device_distance(w->sheet[device].v, w->sheet[k].v);
        if (d < *far) *far = d, best = k;
    }
    return best;
}

/* ---- programs ---- */
/* Every k-th program of the devices that are left out, or of the others, so that there are at most `most`. */
static size_t list(work *w, bool in, size_t most) {
    const cd_training_set *t = w->t;
    size_t all = 0, n = 0, seen = 0;
    for (size_t i = 0; i < t->d->n; i++) all += trains(t, i) && w->left[t->device[i]] == in;
    const size_t step = all / most + 1;
    for (size_t i = 0; i < t->d->n; i++) {
        if (!trains(t, i) || w->left[t->device[i]] != in || seen++ % step) continue;
        w->program[n] = (uint32_t)i;
        w->log_s[n++] = t->log_s[i];
    }
    return n;
}

/* Programs 0..n of the list are asked about as those of their stand-ins. Analytic times stay those of the machine itself, with which a device that
 * is described is answered, too (predictor/score/program_facts.h): without a description it would have no stand-in. */
static void put_stand_ins(work *w, size_t n) {
    double far;
    for (size_t i = 0; i < n; i++)
        w->stands[w->program[i]] =
            w->as < w->t->n_device ? w->as : stand_in(w, w->t->device[w->program[i]], &far);
}

static void take_back(work *w, size_t n) {
    for (size_t i = 0; i < n; i++) w->stands[w->program[i]] = w->t->device[w->program[i]];
}

/* ---- devices left out ---- */
static cdmpp_status ask(work *w, const cd_member *e, size_t *n, cdmpp_err *err) {
    cd_member_scratch *s = NULL;
    cd_program_view view = w->t->view;
    *n = list(w, true, MOST_TEST);
    view.device = w->stands;
    put_stand_ins(w, *n);
    cdmpp_status st = cd_member_scratch_new(&s, err);
    if (!st)
        st = cd_member_predict(e, s, &view, w->program, *n, w->t->device_vector, w->t->n_device,
                               w->answer, err);
    take_back(w, *n);
    cd_member_scratch_free(s);
    for (size_t i = 0; !st && i < *n; i++)
        w->error[i] =
            (cd_device_law_error){w->log_s[i] - w->answer[i], w->t->d->task[w->program[i]], 0};
    return st;
}

/* Errors of trees that were grown without them; *n 0: too few programs. The last tenth tells when to stop: programs of other tasks. */
static cdmpp_status leave_out(work *w, size_t *n, cdmpp_err *err) {
    cd_member e = {.kind = CD_MEMBER_PROGRAM, .fold = -1};
    const cd_boost_run run = {.name = "unseen", .nthread = w->nthread};
    const size_t m = list(w, false, MOST_TRAIN), n_valid = m / VALID_EVERY;
    *n = 0;
    if (n_valid < 2) return CDMPP_OK;
    const cd_boost_set train = {m - n_valid, w->program, w->log_s, NULL},
                       valid = {n_valid, w->program + m - n_valid, w->log_s + m - n_valid, NULL};
    cdmpp_status st = cd_boost(&w->t->view, &train, &valid, &w->c, &run, &e, err);
    if (!st) st = ask(w, &e, n, err);
    cd_member_free(&e);
    return st;
}

/* ---- the same machine, known ---- */
/* Out of fold by the model itself. */
static cdmpp_status known(work *w, uint32_t machine, size_t *n, cdmpp_err *err) {
    const cd_training_set *t = w->t;
    size_t all = 0, seen = 0;
    *n = 0;
    for (size_t i = 0; i < t->n_oof; i++) all += w->machine[t->device[t->oof[i]]] == machine;
    const size_t step = all / MOST_TEST + 1, most = all / step + 1;
    cd_model_prediction *p = cd_mem_zalloc(most, sizeof *p);
    double *kind = cd_mem_zalloc(most * w->m->n_kind, sizeof *kind);
    cdmpp_status st = p && kind ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", most);
    for (size_t i = 0; !st && i < t->n_oof; i++) {
        if (w->machine[t->device[t->oof[i]]] != machine || seen++ % step) continue;
        for (size_t k = 0; k < w->m->n_kind; k++)
            kind[k * most + *n] = w->kind_log_s[k * t->n_oof + i];
        w->program[(*n)++] = t->oof[i];
    }
    for (size_t k = 1; !st && k < w->m->n_kind; k++)
        memmove(kind + k * *n, kind + k * most, *n * sizeof *kind);
    if (!st && *n) st = cd_evaluate_answers(t, w->m, NULL, w->program, *n, kind, p, err);
    for (size_t i = 0; !st && i < *n; i++)
        w->error[i] = (cd_device_law_error){t->log_s[w->program[i]] - log(p[i].median_s),
                                            t->d->task[w->program[i]], 0};
    cd_mem_free(p);
    cd_mem_free(kind);
    return st;
}

/* ---- what errors say ---- */
static int by_task(const void *a, const void *b) {
    const cd_device_law_error *x = a, *y = b;
    if (x->task != y->task) return x->task < y->task ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

static int by_size(const void *a, const void *b) {
    const double x = fabs(((const cd_device_law_error *)a)->r),
                 y = fabs(((const cd_device_law_error *)b)->r);
    return (x > y) - (x < y);
}

/* Each task counts the same. Takes the mean off; the spread is what a normal law has nine of ten errors within. */
void cd_device_law_parts(cd_device_law_error *e, size_t n, double *shift, double *spread) {
    double sum = 0, weight = 0, n_task = 0;
    qsort(e, n, sizeof *e, by_task);
    for (size_t i = 0, j; i < n; i = j, n_task++) {
        for (j = i; j < n && e[j].task == e[i].task;) j++;
        for (size_t k = i; k < j; k++) e[k].weight = 1 / (double)(j - i);
        for (size_t k = i; k < j; k++) sum += e[k].r * e[k].weight;
    }
    *shift = n ? sum / n_task : 0;
    *spread = 0;
    for (size_t i = 0; i < n; i++) e[i].r -= *shift;
    qsort(e, n, sizeof *e, by_size);
    for (size_t i = 0; i < n && weight < ninety * n_task; i++) {
        weight += e[i].weight;
        *spread = fabs(e[i].r) / cd_normal_quantile(0.5 + ninety / 2);
    }
}

/* The mean distance of a machine's devices; infinity: one has no stand-in. */
static double far_of(const work *w, uint32_t machine) {
    double sum = 0, n = 0, far;
    for (uint32_t k = 0; k < w->t->n_device; k++) {
        if (w->machine[k] != machine) continue;
        (void)stand_in(w, k, &far);
        sum += w->described[k] ? far : (double)INFINITY;
        n++;
    }
    return sum / n;
}

static cdmpp_status one_machine(work *w, uint32_t machine, cd_device_law *l, cdmpp_err *err) {
    double shift, unseen, bias, seen;
    const double far = far_of(w, machine);
    size_t n;
    if (!isfinite(far) || l->n == MOST_MACHINES) return CDMPP_OK;
    for (uint32_t k = 0; k < w->t->n_device; k++) w->left[k] = w->machine[k] == machine;
    w->as = (uint32_t)w->t->n_device;
    CD_TRY(leave_out(w, &n, err));
    if (n < FEW) return CDMPP_OK;
    cd_device_law_parts(w->error, n, &shift, &unseen);
    CD_TRY(known(w, machine, &n, err));
    cd_device_law_parts(w->error, n, &bias, &seen);
    l->shift += shift * shift;
    l->own += fmax(0, unseen * unseen - seen * seen);
    l->distance += far;
    l->n++;
    return CDMPP_OK;
}

/* ---- instructions ---- */
/* Another device of the same machine, compiled for other instructions, the most different one; n_device: none. */
static uint32_t twin_of(const work *w, uint32_t device) {
    uint32_t twin = (uint32_t)w->t->n_device;
    double most = -1;
    for (uint32_t k = 0; k < w->t->n_device; k++) {
        if (k == device || w->machine[k] != w->machine[device]) continue;
        const double far = cd_device_distance(w->sheet[device].v, w->sheet[k].v);
        if (far > most) most = far, twin = k;
    }
    return twin;
}

/* How far off programs are that are compiled for instructions which their device never saw: each device that has a twin is left out, and the twin answers. */
static cdmpp_status instructions(work *w, cd_unlike_law *to, cdmpp_err *err) {
    const uint32_t n_device = (uint32_t)w->t->n_device;
    cd_unlike_error *e = cd_mem_zalloc((size_t)n_device * MOST_TEST + 1, sizeof *e);
    size_t n, all = 0;
    cdmpp_status st = e ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u devices", n_device);
    for (uint32_t d = 0; !st && d < n_device; d++) {
        if ((w->as = twin_of(w, d)) == n_device) continue;
        for (uint32_t k = 0; k < n_device; k++) w->left[k] = k == d;
        st = leave_out(w, &n, err);
        for (size_t i = 0; !st && i < n && n >= FEW; i++)
            e[all++] = (cd_unlike_error){w->error[i].r, d, 0};
    }
    if (!st && all) cd_unlike_law_of(e, all, w->c.predict_level, to);
    cd_mem_free(e);
    return st;
}

/* Where a device itself was seen with several instruction sets, that tells (unlike_fit.c). */
static cdmpp_status put_instructions(work *w, cd_model *m, cdmpp_err *err) {
    if (!m->trained_on || m->trained_on->law[CD_UNLIKE_BIT_FEATURE].n) return CDMPP_OK;
    cd_trained_on *t = CD_NEW(&m->arena, cd_trained_on);
    if (!t) return CD_FAIL(err, ENOMEM, "laws");
    *t = *m->trained_on;
    CD_TRY(instructions(w, &t->law[CD_UNLIKE_BIT_FEATURE], err));
    m->trained_on = t;
    return CDMPP_OK;
}

/* ---- all ---- */
static cdmpp_status arrays(work *w, cdmpp_err *err) {
    const cd_training_set *t = w->t;
    const size_t n = t->d->n, k = t->n_device;
    w->sheet = CD_NEWN(&w->arena, sheet, k);
    w->described = CD_NEWN(&w->arena, bool, k);
    w->machine = CD_NEWN(&w->arena, uint32_t, k);
    w->left = CD_NEWN(&w->arena, bool, k);
    w->stands = CD_NEWN(&w->arena, uint32_t, n);
    w->program = CD_NEWN(&w->arena, uint32_t, n);
    w->log_s = CD_NEWN(&w->arena, double, n);
    w->answer = CD_NEWN(&w->arena, double, n);
    w->error = CD_NEWN(&w->arena, cd_device_law_error, n);
    if (w->arena.oom) return CD_FAIL(err, ENOMEM, "%zu programs", n);
    memcpy(w->stands, t->device, n * sizeof *w->stands);
    CD_TRY(describe(w, err));
    number_machines(w);
    return CDMPP_OK;
}

/* Where no member reads facts there are none, whatever the configuration says. */
static void small_trees(cd_config *c, const cd_training_set *t) {
    c->train_objective = CD_OBJECTIVE_LOG_LATENCY;
    c->train_rounds = c->train_rounds < ROUNDS ? c->train_rounds : ROUNDS;
    c->train_max_depth = c->train_max_depth < DEPTH ? c->train_max_depth : DEPTH;
    c->train_eta = fmax(c->train_eta, 0.2);
    c->train_together = false;
    if (!t->analytic) c->train_facts = CD_FACTS_USE_NONE;
}

static void finish(cd_device_law *l) {
    if (!l->n) return;
    l->shift = fmin(20, sqrt(l->shift / l->n));
    l->own = fmin(20, sqrt(l->own / l->n));
    l->distance /= l->n;
}

cdmpp_status cd_device_law_fit(const cd_training_set *t, cd_threads *pool, const double *kind_log_s,
                               cd_model *m, cdmpp_err *err) {
    work w = {.t = t,
              .nthread = pool ? cd_threads_count(pool) : 1,
              .kind_log_s = kind_log_s,
              .m = m,
              .c = *t->c};
    if (t->n_device < 2) return CDMPP_OK;
    small_trees(&w.c, t);
    cdmpp_status st = arrays(&w, err);
    for (uint32_t k = 0; !st && k < t->n_device; k++)
        if (w.machine[k] == k)
            st = one_machine(
                &w, k, &m->law[t->device_is_gpu[k] ? CD_DEVICE_LAW_GPU : CD_DEVICE_LAW_CPU], err);
    for (int k = 0; k < CD_N_DEVICE_LAW; k++) finish(&m->law[k]);
    if (!st) st = put_instructions(&w, m, err);
    cd_arena_free(&w.arena);
    return st;
}
