/* The kinds of a training, and errors on kinds that were left out. */
#include "learner/train/train_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/unlike_range.h"

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
    return cd_unlike_range(w->t, kind_log_s, m, to, err);
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
