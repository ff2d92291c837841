/* score -- a batch of candidates, checked, cut into chunks, and written out. */
#include <math.h>
#include <unistd.h>

#include "predictor/api/api_internal.h"

/* ---- what was handed over ---- */
static cdmpp_status check_text(const cdmpp_batch *b, cdmpp_err *err) {
    if (!b->text) return CD_FAIL(err, EUSAGE, "cdmpp_batch.text is missing");
    if (b->form == CDMPP_STEPS && !b->task)
        return CD_FAIL(err, EUSAGE, "cdmpp_batch.task is missing: steps alone name no task");
    return CDMPP_OK;
}

static cdmpp_status check_rows(const cdmpp_batch *b, cdmpp_err *err) {
    if (b->n_col != CD_N_COL)
        return CD_FAIL(err, EMODEL, "expected rows of %d numbers, found %zu", CD_N_COL, b->n_col);
    if (!b->row_ptr) return CD_FAIL(err, EUSAGE, "cdmpp_batch.row_ptr is missing");
    if (b->row_ptr[0] < 0) return CD_FAIL(err, EPARSE, "row_ptr[0] is negative");
    for (size_t i = 0; i < b->n; i++)
        if (b->row_ptr[i + 1] < b->row_ptr[i])
            return CD_FAIL(err, EPARSE, "row_ptr[%zu] is below row_ptr[%zu]", i + 1, i);
    if (!b->data && b->row_ptr[b->n] > b->row_ptr[0])
        return CD_FAIL(err, EUSAGE, "cdmpp_batch.data is missing");
    return CDMPP_OK;
}

static cdmpp_status check_packed(cdmpp_context *c, const cdmpp_batch *b, cdmpp_err *err) {
    if (!b->data) return CD_FAIL(err, EUSAGE, "cdmpp_batch.data is missing");
    if (b->n > INT32_MAX)
        return CD_FAIL(err, EUSAGE, "cdmpp_batch.n: expected less than 2^31, found %zu", b->n);
    if (b->n + 1 > c->cap_at) {
        size_t *at = cd_mem_zalloc(2 * (b->n + 1), sizeof *at);
        if (!at) return CD_FAIL(err, ENOMEM, "%zu candidates", b->n);
        cd_mem_free(c->at);
        c->at = at;
        c->cap_at = 2 * (b->n + 1);
    }
    return cd_tvm_packed_open(b->data, b->len, b->n, c->at, err);
}

cdmpp_status cd_score_check_rows(const cd_model *m, cdmpp_err *err) {
    const char *reader = cd_model_leaf_reader(m);
    if (cd_model_needs_steps(m))
        return CD_FAIL(err, EMODEL,
                       "the model's tlp reads the steps of schedules, rows do not hold them: score "
                       "records or steps, "
                       "or use a model of rows, program, mlp");
    if (cd_model_needs_facts(m))
        return CD_FAIL(err, EMODEL,
                       "the model reads facts of loop nests (train.facts), rows do not hold them: "
                       "score records or steps, "
                       "or use a model of train.facts=none");
    if (!reader) return CDMPP_OK;
    return CD_FAIL(err, EMODEL,
                   "the model's %s reads the loop nests of programs, rows alone do not hold them: "
                   "score records or steps, "
                   "or use a model of rows, program, mlp",
                   reader);
}

static cdmpp_status check_batch(cdmpp_context *c, const cdmpp_batch *b, cdmpp_err *err) {
    if (b->form == CDMPP_RECORDS || b->form == CDMPP_STEPS)
        return b->n ? check_text(b, err) : CDMPP_OK;
    if (b->form != CDMPP_ROWS_F32 && b->form != CDMPP_ROWS_F64 && b->form != CDMPP_PACKED)
        return CD_FAIL(err, EUSAGE, "cdmpp_batch.form: expected %d to %d, found %d", CDMPP_RECORDS,
                       CDMPP_PACKED, (int)b->form);
    CD_TRY(cd_score_check_rows(c->impl, err));
    if (b->form == CDMPP_PACKED) return check_packed(c, b, err);
    return b->n ? check_rows(b, err) : CDMPP_OK;
}

/* ---- scoring ---- */
typedef struct {
    cdmpp_context *c;
    const cdmpp_batch *b;
    const cd_candidate *ask; /* NULL: the batch */
    const size_t *pick;      /* NULL: all of them */
    cd_chunk_fn *done;
    void *arg;
} job;

/* Candidate i of the caller's batch as the scorer takes it. */
static cd_candidate ask_of(const cdmpp_context *c, const cdmpp_batch *b, size_t i) {
    static const cdmpp_err unlowered = {.code = CDMPP_EREJECTED,
                                        .msg = "not lowered: it has no features"};
    cd_candidate a = {.aim = b->task ? &b->task->aim : NULL};
    if (b->form == CDMPP_RECORDS || b->form == CDMPP_STEPS) {
        a.form = b->form == CDMPP_STEPS ? CD_CANDIDATE_STEPS : CD_CANDIDATE_LINE;
        a.text = (cd_str){b->text[i].p, b->text[i].n};
    } else if (b->form == CDMPP_PACKED) {
        a.form = c->at[i] == c->at[i + 1] ? CD_CANDIDATE_REFUSED : CD_CANDIDATE_ROWS_F32;
        a.why = &unlowered;
        a.row = cd_tvm_packed_rows(b->data, c->at, i, &a.n_row);
    } else {
        const bool wide = b->form == CDMPP_ROWS_F64;
        const size_t first = (size_t)b->row_ptr[i];
        a.form = wide ? CD_CANDIDATE_ROWS_F64 : CD_CANDIDATE_ROWS_F32;
        a.n_row = (size_t)b->row_ptr[i + 1] - first;
        a.row = a.n_row ? (const char *)b->data +
                              first * CD_N_COL * (wide ? sizeof(double) : sizeof(float))
                        : NULL;
    }
    return a;
}

/* From the cache, or into the scorer. */
static cdmpp_status add(const job *j, size_t i, cd_api_worker *w, size_t at, cdmpp_err *err) {
    const cd_candidate a = j->ask ? j->ask[i] : ask_of(j->c, j->b, i);
    w->missed[at] = false;
    if (!j->c->cache || a.form == CD_CANDIDATE_REFUSED)
        return cd_scorer_add(w->scorer, &a, &w->scored[at], err);
    w->key[at] = cd_answer_cache_key(&a);
    if (cd_answer_cache_find(j->c->cache, &w->key[at], &a, &w->scored[at])) return CDMPP_OK;
    w->missed[at] = true;
    return cd_scorer_add(w->scorer, &a, &w->scored[at], err);
}

static cdmpp_status run_chunk(void *ctx, size_t beg, size_t end, int worker, cdmpp_err *err) {
    const job *j = ctx;
    cd_api_worker *w = &j->c->worker[worker];
    cd_scorer_start(w->scorer);
    for (size_t i = beg; i < end; i++) CD_TRY(add(j, j->pick ? j->pick[i] : i, w, i - beg, err));
    CD_TRY(cd_scorer_finish(w->scorer, err));
    for (size_t i = 0; i < end - beg; i++)
        if (w->missed[i] && !w->scored[i].st)
            cd_answer_cache_put(j->c->cache, &w->key[i], &w->scored[i]);
    return j->done(j->arg, w, beg, end - beg, err);
}

static cdmpp_status run(job *j, size_t n, cdmpp_err *err) {
    cdmpp_context *c = j->c;
    for (int w = 0; w < c->n_worker; w++) c->worker[w].n_ok = 0;
    cd_threads *pool = c->owner == getpid() ? c->pool : NULL; /* threads do not survive a fork */
    return cd_threads_run(pool, n, CD_CHUNK, run_chunk, j, err);
}

/* The same of n candidates pick[0 .. n) of the batch; `first` counts in pick. */
static cdmpp_status score_batch_some(cdmpp_context *c, const cdmpp_batch *b, const size_t *pick,
                                     size_t n, cd_chunk_fn *done, void *arg, cdmpp_err *err) {
    CD_TRY(check_batch(c, b, err));
    return run(&(job){.c = c, .b = b, .pick = pick, .done = done, .arg = arg}, n, err);
}

cdmpp_status cd_score_candidates(cdmpp_context *c, const cd_candidate *ask, size_t n,
                                 cd_chunk_fn *done, void *arg, cdmpp_err *err) {
    return run(&(job){.c = c, .ask = ask, .done = done, .arg = arg}, n, err);
}

cdmpp_status cd_score_batch(cdmpp_context *c, const cdmpp_batch *b, cd_chunk_fn *done, void *arg,
                            cdmpp_err *err) {
    return score_batch_some(c, b, NULL, b->n, done, arg, err);
}

/* ---- results ---- */
uint32_t cd_score_flags(const cd_scored *o, bool observed) {
    if (o->st)
        return o->st == CDMPP_EREJECTED || o->st == CDMPP_EINVALID ? CDMPP_FLAG_LOWERING_FAILED : 0;
    return (o->pred.flags & CD_MODEL_OUT_OF_RANGE ? CDMPP_FLAG_OUT_OF_RANGE : 0) |
           (o->which.unknown ? CDMPP_FLAG_UNKNOWN_DEVICE : 0) |
           (o->truncated ? CDMPP_FLAG_TRUNCATED : 0) | (observed ? CDMPP_FLAG_OBSERVED : 0);
}

static void put_score(const cdmpp_result *r, size_t i, double score) {
    if (r->score) r->score[i] = score;
    if (r->score_f32) r->score_f32[i] = (float)score;
}

double cd_score_of(double seconds) {
    return fmin(fmax(1 / seconds, CDMPP_SCORE_NONE), 1 / CDMPP_SCORE_NONE);
}

static void put(const cdmpp_result *r, size_t i, const cd_scored *o, bool observed) {
    const bool ok = !o->st;
    put_score(r, i, ok ? cd_score_of(o->pred.order_s) : 0);
    if (r->seconds) r->seconds[i] = ok ? o->pred.latency_s : (double)INFINITY;
    if (r->low) r->low[i] = ok ? o->pred.low_s : (double)INFINITY;
    if (r->high) r->high[i] = ok ? o->pred.high_s : (double)INFINITY;
    if (r->rel_std) r->rel_std[i] = ok ? o->pred.rel_std : (double)NAN;
    if (r->flags) r->flags[i] = cd_score_flags(o, observed);
    if (r->reason) r->reason[i] = ok ? o->pred.reason : 0;
    if (r->status) r->status[i] = o->st;
    if (r->error) r->error[i] = o->err;
}

typedef struct {
    const cdmpp_observer *observer;
    const cdmpp_result *r;
    const size_t *pick;   /* NULL: all */
    cd_score_times times; /* NULL: not wanted */
} output;

static void put_times(const cd_score_times *t, size_t i, const cd_scored *o) {
    if (t->order) t->order[i] = o->st ? (double)INFINITY : o->pred.order_s;
    if (t->median) t->median[i] = o->st ? (double)INFINITY : o->model_s;
    if (t->point) t->point[i] = o->st ? (double)INFINITY : o->pred.latency_s;
    if (t->least) t->least[i] = o->st ? 0 : o->least_s;
}

static cdmpp_status put_chunk(void *arg, cd_api_worker *w, size_t first, size_t n, cdmpp_err *err) {
    const output *to = arg;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        cd_scored *o = &w->scored[i];
        const bool observed =
            to->observer && !o->st &&
            cd_online_adapt_apply(to->observer->impl, o->which.name, o->key, o->trait, &o->pred);
        if (to->observer && !o->st) cd_score_bound(o);
        put(to->r, to->pick ? to->pick[first + i] : first + i, o, observed);
        put_times(&to->times, first + i, o);
        w->n_ok += !o->st;
    }
    return CDMPP_OK;
}

/* Results of a whole batch; times NULL: not wanted. */
static cdmpp_status score_all(cdmpp_context *c, const cdmpp_batch *b, const cdmpp_result *r,
                              const cd_score_times *times, size_t *n_ok, cdmpp_err *err) {
    output to = {c->observer, r, NULL, times ? *times : (cd_score_times){0}};
    CD_TRY(cd_score_batch(c, b, put_chunk, &to, err));
    *n_ok = 0;
    for (int w = 0; w < c->n_worker; w++) *n_ok += c->worker[w].n_ok;
    return CDMPP_OK;
}

/* Results of candidates pick[0 .. n) alone, and their times (n). */
static cdmpp_status score_some(cdmpp_context *c, const cdmpp_batch *b, const size_t *pick, size_t n,
                               const cdmpp_result *r, const cd_score_times *times, cdmpp_err *err) {
    output to = {c->observer, r, pick, *times};
    return score_batch_some(c, b, pick, n, put_chunk, &to, err);
}

/* Multiplies the seconds of candidate `to` by `factor` and its place in the order by `order`; its
 * times are t's number `to`. Seconds are not below least. */
static void score_stretch(const cdmpp_result *r, size_t to, double factor, double order,
                          const cd_score_times *t) {
    const double least = t->least[to], seconds = fmax(factor * t->point[to], least);
    put_score(r, to, cd_score_of(order * t->order[to]));
    if (r->seconds) r->seconds[to] = seconds;
    if (r->low && !isnan(r->low[to])) r->low[to] = fmin(fmax(factor * r->low[to], least), seconds);
    if (r->high && !isnan(r->high[to])) r->high[to] = fmax(factor * r->high[to], seconds);
}

static cdmpp_status two_stage(cdmpp_context *c, const cdmpp_batch *b, const cdmpp_result *r,
                              size_t *n_ok, cdmpp_err *err);

cdmpp_status cdmpp_score(cdmpp_context *c, const cdmpp_batch *batch, const cdmpp_result *out,
                         cdmpp_err *err) {
    cdmpp_batch b;
    cdmpp_result r;
    size_t n_ok = 0;
    CD_TRY(cd_api_copy_struct(&b, sizeof b, batch, sizeof b, "cdmpp_batch", err));
    CD_TRY(
        cd_api_copy_struct(&r, sizeof r, out, offsetof(cdmpp_result, reason), "cdmpp_result", err));
    CD_TRY(c->second ? two_stage(c, &b, &r, &n_ok, err) : score_all(c, &b, &r, NULL, &n_ok, err));
    for (size_t i = 0; !n_ok && i < b.n; i++) put_score(&r, i, CDMPP_SCORE_NONE);
    return CDMPP_OK;
}

/* two_stage -- profile two-stage: the tuner looks at all, the whole model at the best of them.
 *
 *   n candidates --> tuner --> the best max(16, n/8) --> whole model --> their results
 *                      |                                      | median ratio of the two
 *                      |                                      | medians, and of what orders
 *                      '--> the others, stretched by that ratio <---'
 *
 * The scores of the others are never better than the best that the whole model saw, so the whole
 * model decides which candidate is measured first. Which candidates are the best depends on the
 * batch: give candidates of one task. */

enum { LEAST = 16, SHARE = 8 };

/* Scratch that only grows. first_s holds six arrays of `cap` seconds: the times of the first stage,
 * then work space. */
static cdmpp_status room(cdmpp_context *c, size_t n, cdmpp_err *err) {
    if (n <= c->cap) return CDMPP_OK;
    double *s = cd_mem_zalloc(12 * n, sizeof *s);
    size_t *best = cd_mem_zalloc(2 * n, sizeof *best);
    if (!s || !best) {
        cd_mem_free(s);
        cd_mem_free(best);
        return CD_FAIL(err, ENOMEM, "%zu candidates", n);
    }
    cd_mem_free(c->first_s);
    cd_mem_free(c->best);
    c->first_s = s;
    c->best = best;
    c->cap = 2 * n;
    return CDMPP_OK;
}

/* The k least of s in the order of the batch; of equal ones the first. Equal is what differs by no
 * more than `alike`: a product of matrices rounds by where in the batch a program stands, on
 * processors where OpenBLAS has other kernels for the last rows. work (n) is written. */
static const double alike = 1e-5;
static void least(const double *s, size_t n, size_t k, double *work, size_t *best) {
    for (size_t i = 0; i < n; i++) work[i] = s[i];
    cd_sort_doubles(work, n);
    const double below = work[k - 1] * (1 - alike), limit = work[k - 1] * (1 + alike);
    size_t room_for = k, at = 0;
    for (size_t i = 0; i < n; i++) room_for -= s[i] < below;
    for (size_t i = 0; i < n; i++)
        if (s[i] < below || (s[i] <= limit && room_for && room_for--)) best[at++] = i;
}

static double median(double *v, size_t n) {
    cd_sort_doubles(v, n);
    return n % 2 ? v[n / 2] : sqrt(v[n / 2 - 1] * v[n / 2]);
}

/* Least time of the whole model among k candidates, and the median of it over the tuner's. work (k)
 * may be second. */
static double compare(const double *first, const size_t *best, const double *second, size_t k,
                      double *ratio, double *work) {
    double top = INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < k; i++) {
        if (!isfinite(second[i])) continue;
        top = fmin(top, second[i]);
        work[n++] = second[i] / first[best[i]];
    }
    *ratio = n ? median(work, n) : 1;
    return n ? top : 0;
}

/* Scores a batch with the tuner, then its best candidates with c->second. *n_ok: candidates without
 * an error. Errors: those of cdmpp_score.
 *
 * The best k have the whole model's answers already; the loop stretches all others by the ratio, to
 * no less than `top`. c->best is in the order of the batch, so one index follows it. */
static cdmpp_status two_stage(cdmpp_context *c, const cdmpp_batch *b, const cdmpp_result *r,
                              size_t *n_ok, cdmpp_err *err) {
    CD_TRY(room(c, b->n, err));
    double *first = c->first_s, *work = first + 4 * c->cap, ratio, moved;
    const cd_score_times times = {first, first + c->cap, first + 2 * c->cap, first + 3 * c->cap};
    const cd_score_times second = {work, work + c->cap, NULL, NULL};
    CD_TRY(score_all(c, b, r, &times, n_ok, err));
    size_t k = b->n / SHARE > LEAST ? b->n / SHARE : LEAST;
    if (k > *n_ok) k = *n_ok;
    if (!k) return CDMPP_OK;
    least(first, b->n, k, work, c->best);
    CD_TRY(score_some(c->second, b, c->best, k, r, &second, err));
    const double top = compare(first, c->best, second.order, k, &ratio, second.order);
    const double least_s = compare(times.median, c->best, second.median, k, &moved, second.median);
    for (size_t i = 0, seen = 0; i < b->n; i++) {
        if (seen < k && c->best[seen] == i) seen++;
        else if (isfinite(first[i]))
            score_stretch(r, i, fmax(moved, least_s / times.median[i]), fmax(ratio, top / first[i]),
                          &times);
    }
    return CDMPP_OK;
}
