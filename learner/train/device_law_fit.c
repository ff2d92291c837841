/* Machines of the training left out one by one, and what their errors say of one that nobody
 * trained on. */
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
    /* of those that are left out: the machine that is asked about; n_device: all */
    uint32_t only;
    /* of those that are left out: who stands for them; n_device: the nearest that is not left
     * out */
    uint32_t as;
    /* (d->n) device of each program; of those left out: who stands for it */
    uint32_t *stands;
    uint32_t *program;          /* (d->n) */
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

/* The most similar described one of its kind that is not left out, and how far it is; n_device:
 * none. */
static uint32_t stand_in(const work *w, uint32_t device, double *far) {
    uint32_t best = (uint32_t)w->t->n_device;
    double least = (double)INFINITY;
    *far = (double)INFINITY;
    for (uint32_t k = 0; k < w->t->n_device && w->described[device]; k++) {
        if (!w->described[k] || w->left[k] || w->t->device_is_gpu[k] != w->t->device_is_gpu[device])
            continue;
        const double d = cd_device_unlike(w->sheet[device].v, w->sheet[k].v);
        if (d < least)
            least = d, *far = cd_device_distance(w->sheet[device].v, w->sheet[k].v), best = k;
    }
    return best;
}

/* ---- programs ---- */
static bool is_listed(const work *w, bool in, size_t i) {
    const uint32_t d = w->t->device[i];
    return trains(w->t, i) && w->left[d] == in &&
           (!in || w->only == w->t->n_device || w->machine[d] == w->only);
}

/* Every k-th program of the devices that are left out, or of the others, so that there are at most
 * `most`. */
static size_t list(work *w, bool in, size_t most) {
    const cd_training_set *t = w->t;
    size_t all = 0, n = 0, seen = 0;
    for (size_t i = 0; i < t->d->n; i++) all += is_listed(w, in, i);
    const size_t step = all / most + 1;
    for (size_t i = 0; i < t->d->n; i++) {
        if (!is_listed(w, in, i) || seen++ % step) continue;
        w->program[n] = (uint32_t)i;
        w->log_s[n++] = t->log_s[i];
    }
    return n;
}

/* Programs 0..n of the list are asked about as those of their stand-ins. Analytic times stay those
 * of the machine itself, with which a device that is described is answered, too
 * (predictor/score/program_facts.h): without a description it would have no stand-in. */
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

/* Trees that are grown without them. The last tenth tells when to stop: programs of other tasks.
 * *grown false: too few programs. */
static cdmpp_status grow(work *w, cd_member *e, bool *grown, cdmpp_err *err) {
    const cd_boost_run run = {.name = "unseen", .nthread = w->nthread};
    const size_t m = list(w, false, MOST_TRAIN), n_valid = m / VALID_EVERY;
    *e = (cd_member){.kind = CD_MEMBER_PROGRAM, .fold = -1};
    *grown = n_valid >= 2;
    if (!*grown) return CDMPP_OK;
    const cd_boost_set train = {m - n_valid, w->program, w->log_s, NULL};
    const cd_boost_set valid = {n_valid, w->program + m - n_valid, w->log_s + m - n_valid, NULL};
    return cd_boost(&w->t->view, &train, &valid, &w->c, &run, e, err);
}

/* Errors of machine `only` of them (n_device: of all); *n 0: too few programs. */
static cdmpp_status leave_out(work *w, uint32_t only, size_t *n, cdmpp_err *err) {
    cd_member e;
    bool grown;
    *n = 0;
    w->only = only;
    cdmpp_status st = grow(w, &e, &grown, err);
    if (!st && grown) st = ask(w, &e, n, err);
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
/* The mean distance of a machine's devices, which are left out; infinity: one has no stand-in. */
static double far_of(const work *w, uint32_t machine) {
    double sum = 0, n = 0, far;
    for (uint32_t k = 0; k < w->t->n_device; k++) {
        if (w->machine[k] != machine) continue;
        (void)stand_in(w, k, &far);
        sum += far;
        n++;
    }
    return sum / n;
}

/* The peaks of a machine's devices and of those that stand for them, where they differ most. */
static double peaks_of(const work *w, uint32_t machine) {
    double most = 0, far;
    for (uint32_t k = 0; k < w->t->n_device; k++) {
        const uint32_t as =
            w->machine[k] == machine ? stand_in(w, k, &far) : (uint32_t)w->t->n_device;
        if (as < w->t->n_device)
            most = fmax(most, cd_device_law_peaks(w->sheet[k].v, w->sheet[as].v));
    }
    return most;
}

/* What w->error (n) of a machine says, added to a law; peaks only where they are in the analytic
 * times that trees correct. */
static cdmpp_status add_errors(work *w, uint32_t machine, size_t n, cd_device_law *l,
                               cdmpp_err *err) {
    double shift, unseen, bias, seen;
    const double far = far_of(w, machine);
    if (n < FEW) return CDMPP_OK;
    cd_device_law_parts(w->error, n, &shift, &unseen);
    CD_TRY(known(w, machine, &n, err));
    cd_device_law_parts(w->error, n, &bias, &seen);
    l->shift += shift * shift;
    l->own += fmax(0, unseen * unseen - seen * seen);
    l->distance += far;
    if (w->c.train_facts != CD_FACTS_USE_NONE) l->peaks = fmax(l->peaks, peaks_of(w, machine));
    l->n++;
    return CDMPP_OK;
}

/* False: nothing that is not left out runs as many threads in lockstep as this device does; of
 * another kind: true. */
static bool has_width(const work *w, uint32_t device) {
    double far;
    const uint32_t as = stand_in(w, device, &far);
    return as == w->t->n_device || cd_device_same_width(w->sheet[device].v, w->sheet[as].v);
}

static void add_mean(const cd_device_law *of, cd_device_law *l) {
    if (!of->n) return;
    l->shift += of->shift / of->n;
    l->own += of->own / of->n;
    l->distance += of->distance / of->n;
    l->peaks = fmax(l->peaks, of->peaks);
    l->n++;
}

/* The machine that could stand for it and is least like it; n_device: there are not two. */
static uint32_t farthest(const work *w, uint32_t machine) {
    uint32_t best = (uint32_t)w->t->n_device, n = 0;
    double most = -1;
    for (uint32_t k = 0; k < w->t->n_device; k++) {
        if (w->machine[k] != k || w->left[k] || !w->described[k] ||
            w->t->device_is_gpu[k] != w->t->device_is_gpu[machine])
            continue;
        if (!cd_device_same_width(w->sheet[k].v, w->sheet[machine].v)) continue;
        const double far = cd_device_distance(w->sheet[k].v, w->sheet[machine].v);
        n++;
        if (isfinite(far) && far > most) most = far, best = k;
    }
    return n > 1 ? best : (uint32_t)w->t->n_device;
}

/* Twice, as one draw: all others answer, and the least similar one alone does. */
static cdmpp_status one_machine(work *w, uint32_t machine, cd_device_law *l, cdmpp_err *err) {
    cd_device_law both = {0};
    size_t n;
    for (uint32_t k = 0; k < w->t->n_device; k++) w->left[k] = w->machine[k] == machine;
    w->as = (uint32_t)w->t->n_device;
    if (!isfinite(far_of(w, machine)) || l->n == MOST_MACHINES || !has_width(w, machine))
        return CDMPP_OK;
    CD_TRY(leave_out(w, (uint32_t)w->t->n_device, &n, err));
    CD_TRY(add_errors(w, machine, n, &both, err));
    const double own = both.own;
    const uint32_t other = farthest(w, machine);
    if (both.n && other < w->t->n_device) {
        for (uint32_t k = 0; k < w->t->n_device; k++) w->left[k] = w->machine[k] != other;
        CD_TRY(leave_out(w, machine, &n, err));
        CD_TRY(add_errors(w, machine, n, &both, err));
        both.own = own * both.n; /* how well one machine alone teaches programs is another matter */
    }
    add_mean(&both, l);
    return CDMPP_OK;
}

/* ---- another width ---- */
/* All machines of the device's width are left out together: they are one draw, the mean of their
 * squares. */
static cdmpp_status one_width(work *w, uint32_t device, cd_device_law *l, cdmpp_err *err) {
    cd_device_law all = {0};
    cd_member e;
    bool grown;
    size_t n;
    for (uint32_t k = 0; k < w->t->n_device; k++)
        w->left[k] = w->t->device_is_gpu[k] && w->described[k] &&
                     cd_device_same_width(w->sheet[device].v, w->sheet[k].v);
    if (!w->described[device] || has_width(w, device)) return CDMPP_OK;
    w->as = (uint32_t)w->t->n_device;
    cdmpp_status st = grow(w, &e, &grown, err);
    for (w->only = 0; !st && grown && w->only < w->t->n_device; w->only++) {
        if (!w->left[w->only] || w->machine[w->only] != w->only) continue;
        st = ask(w, &e, &n, err);
        if (!st) st = add_errors(w, w->only, n, &all, err);
    }
    cd_member_free(&e);
    add_mean(&all, l);
    return st;
}

static cdmpp_status widths(work *w, cd_device_law *l, cdmpp_err *err) {
    for (uint32_t k = 0; k < w->t->n_device; k++) {
        bool before = !w->t->device_is_gpu[k];
        for (uint32_t j = 0; j < k; j++)
            before |= w->t->device_is_gpu[j] && cd_device_same_width(w->sheet[j].v, w->sheet[k].v);
        if (!before) CD_TRY(one_width(w, k, l, err));
    }
    return CDMPP_OK;
}

/* ---- instructions ---- */
/* Another device of the same machine, compiled for other instructions, the most different one;
 * n_device: none. */
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

/* How far off programs are that are compiled for instructions which their device never saw: each
 * device that has a twin is left out, and the twin answers. */
static cdmpp_status instructions(work *w, cd_unlike_law *to, cdmpp_err *err) {
    const uint32_t n_device = (uint32_t)w->t->n_device;
    cd_unlike_error *e = cd_mem_zalloc((size_t)n_device * MOST_TEST + 1, sizeof *e);
    size_t n, all = 0;
    cdmpp_status st = e ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%u devices", n_device);
    for (uint32_t d = 0; !st && d < n_device; d++) {
        if ((w->as = twin_of(w, d)) == n_device) continue;
        for (uint32_t k = 0; k < n_device; k++) w->left[k] = k == d;
        st = leave_out(w, n_device, &n, err);
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
    if (!st) st = widths(&w, &m->law[CD_DEVICE_LAW_WIDTH], err);
    for (int k = 0; k < CD_N_DEVICE_LAW; k++) finish(&m->law[k]);
    if (!st) st = put_instructions(&w, m, err);
    cd_arena_free(&w.arena);
    return st;
}
