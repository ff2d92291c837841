/* tune_rank_model -- candidates by a trained model, corrected by what was measured.
 *
 *   stage 0  profile tuner, else the whole model: all candidates
 *   stage 1  the whole model: the best SECOND of stage 0      (two-stage only)
 *
 *   candidate ──cache?──> answer <──scorer of a thread── steps        answer + adapt ─> -ln seconds
 *
 * (1) The model's own answers are kept, their corrections are not: those change with every
 *     measurement.
 * (2) Candidates are cut into chunks by how many there are alone, so threads do not change the
 *     bits.
 * (3) A candidate that is no program scores -infinity; a model that does not know the device, or
 *     its task without a definition, is an error of the whole call. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "predictor/score/score.h"
#include "predictor/tune/rank/rank.h"

enum { CHUNK = 128, MAX_ROWS = 16384, CACHED = 1 << 16, SECOND = 256 };
/* Of the expected error, that is added to ln s: among the best of many are those whose error
 * flatters them. On 49 held-out tasks of three GPUs (splits of seed 2) the best of the first 10 by
 * two stages is 0.92 of the best known without it, 0.96 with it (mean over tasks; median 0.97 and
 * 0.98). */
static const double caution = 0.5;

typedef struct {
    cdmpp_status st;
    cd_model_prediction pred;
    cd_device_pick which;
    float trait[CD_N_TRAIT];
} answer;

typedef struct {
    const cd_model *m;
    cd_online_adapt *adapt;
    cd_answer_cache *cache;
    cd_tune_key_set faulty; /* what was no program, by key and task */
    cd_scorer **scorer;     /* (n_thread) */
    cd_scored **scored;     /* (n_thread)(CHUNK) */
} stage;

typedef struct {
    cd_tune_ranker ranker;
    cd_tune_ranker_setup setup;
    int n_stage, n_thread;
    stage stage[2];
    cd_threads *pool;         /* NULL: one thread */
    cd_device_table *devices; /* NULL: none needed or none there */
    answer *ans;              /* (cap) */
    uint32_t *miss;           /* (cap) */
    cd_hash *key;             /* (cap) */
    double *second;           /* (cap) */
    size_t cap;
} rank_model;

/* ---- making one ---- */
static void free_stage(stage *s, int n_thread) {
    for (int k = 0; k < n_thread; k++) {
        if (s->scorer) cd_scorer_free(s->scorer[k]);
        if (s->scored) cd_mem_free(s->scored[k]);
    }
    cd_mem_free(s->scorer);
    cd_mem_free(s->scored);
    cd_answer_cache_free(s->cache);
    cd_tune_key_set_free(&s->faulty);
    cd_online_adapt_free(s->adapt);
}

static void free_ranker(cd_tune_ranker *ranker) {
    rank_model *r = (rank_model *)ranker;
    for (int k = 0; k < r->n_stage; k++) free_stage(&r->stage[k], r->n_thread);
    cd_threads_free(r->pool);
    cd_device_table_free(r->devices);
    cd_mem_free(r->ans);
    cd_mem_free(r->miss);
    cd_mem_free(r->key);
    cd_mem_free(r->second);
    cd_mem_free(r);
}

static cdmpp_status open_stage(rank_model *r, stage *s, const cd_model *m, cdmpp_err *err) {
    /* no peaks: candidates below them would be equal */
    const cd_scorer_options o = {.which = {r->setup.device, r->setup.nearest, r->devices},
                                 .max_rows = MAX_ROWS,
                                 .traits = true};
    s->m = m;
    s->scorer = cd_mem_zalloc((size_t)r->n_thread, sizeof *s->scorer);
    s->scored = cd_mem_zalloc((size_t)r->n_thread, sizeof *s->scored);
    if (!s->scorer || !s->scored) return CD_FAIL(err, ENOMEM, "%d threads", r->n_thread);
    for (int k = 0; k < r->n_thread; k++) {
        CD_TRY(cd_scorer_new(m, NULL, &o, &s->scorer[k], err));
        if (!(s->scored[k] = cd_mem_zalloc(CHUNK, sizeof *s->scored[k])))
            return CD_FAIL(err, ENOMEM, "chunk of candidates");
    }
    CD_TRY(cd_answer_cache_new(CACHED, &s->cache, err));
    return cd_online_adapt_new(&s->adapt, err);
}

/* Descriptions are a help, not a must: they have the other names of devices, and the nearest of
 * several is found by them. */
static cdmpp_status find_devices(rank_model *r, cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    const char *path;
    cdmpp_status st = cd_device_table_path(&a, NULL, NULL, &path, NULL);
    if (!st) st = cd_device_table_load(path, &diag, &r->devices, NULL);
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st == CDMPP_ENOMEM ? CD_FAIL(err, ENOMEM, "device descriptions") : CDMPP_OK;
}

static cdmpp_status open_ranker(const cd_tune_ranker_kind *kind, int n_stage,
                                const cd_tune_ranker_setup *s, cd_tune_ranker **out,
                                cdmpp_err *err) {
    if (!s->model) return CD_FAIL(err, EUSAGE, "tuner %s needs a trained model", kind->name);
    rank_model *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "ranker");
    const cd_model *tuner = cd_model_tuner(s->model);
    r->ranker.kind = kind;
    r->setup = *s;
    r->n_thread = s->threads > 1 ? s->threads : 1;
    r->n_stage = tuner ? n_stage : 1; /* without a small model both stages are one */
    cdmpp_status st = find_devices(r, err);
    if (!st && r->n_thread > 1) st = cd_threads_new(r->n_thread, &r->pool, err);
    if (!st) st = open_stage(r, &r->stage[0], tuner ? tuner : s->model, err);
    if (!st && r->n_stage > 1) st = open_stage(r, &r->stage[1], s->model, err);
    if (st) free_ranker(&r->ranker);
    else *out = &r->ranker;
    return st;
}

static cdmpp_status open_model(const cd_tune_ranker_setup *s, cd_tune_ranker **out,
                               cdmpp_err *err) {
    return open_ranker(&cd_tune_rank_model, 1, s, out, err);
}
static cdmpp_status open_twostage(const cd_tune_ranker_setup *s, cd_tune_ranker **out,
                                  cdmpp_err *err) {
    return open_ranker(&cd_tune_rank_twostage, 2, s, out, err);
}

/* Nothing of an old batch is kept, so there is no need to copy. */
static cdmpp_status room(rank_model *r, size_t n, cdmpp_err *err) {
    if (n <= r->cap) return CDMPP_OK;
    answer *ans = cd_mem_zalloc(n, sizeof *ans);
    uint32_t *miss = cd_mem_zalloc(n, sizeof *miss);
    cd_hash *key = cd_mem_zalloc(n, sizeof *key);
    double *second = cd_mem_zalloc(2 * n, sizeof *second);
    cd_mem_free(r->ans);
    cd_mem_free(r->miss);
    cd_mem_free(r->key);
    cd_mem_free(r->second);
    r->ans = ans;
    r->miss = miss;
    r->key = key;
    r->second = second;
    r->cap = ans && miss && key && second ? n : 0;
    return r->cap ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu candidates", n);
}

/* ---- the model's own answers ---- */
typedef struct {
    rank_model *r;
    stage *s;
    cd_aim aim;
    const cd_tune_cand *c;
    const uint32_t *pick; /* NULL: all */
} job;

static const cd_tune_cand *cand_of(const job *j, size_t i) {
    return &j->c[j->pick ? j->pick[i] : i];
}

static void keep(answer *a, const cd_scored *o) {
    a->st = o->st;
    a->pred = o->pred;
    a->which = o->which;
    memcpy(a->trait, o->trait, sizeof a->trait);
}

/* What says something about the program, not about us. */
static bool is_program_fault(cdmpp_status st) {
    return st == CDMPP_EREJECTED || st == CDMPP_EINVALID || st == CDMPP_EUNSUPPORTED ||
           st == CDMPP_ENUMERIC || st == CDMPP_ERANGE;
}

/* Answers of a program that cannot be lowered are kept as such; any other error ends the
 * ranking. */
static cdmpp_status run_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const job *j = ctx;
    cd_scorer *scorer = j->s->scorer[w];
    cd_scored *o = j->s->scored[w];
    cd_scorer_start(scorer);
    for (size_t k = beg; k < end; k++) {
        const cd_tune_cand *c = cand_of(j, j->r->miss[k]);
        const cd_candidate ask = {
            .form = CD_CANDIDATE_SCHEDULE, .aim = &j->aim, .step = c->step, .n_step = c->n_step};
        CD_TRY(cd_scorer_add(scorer, &ask, &o[k - beg], err));
    }
    CD_TRY(cd_scorer_finish(scorer, err));
    for (size_t k = beg; k < end; k++) {
        cd_scored *p = &o[k - beg];
        if (p->st && !is_program_fault(p->st)) {
            if (err) *err = p->err;
            return p->st;
        }
        if (!p->st) cd_answer_cache_put(j->s->cache, &j->r->key[j->r->miss[k]], p);
        keep(&j->r->ans[j->r->miss[k]], p);
    }
    return CDMPP_OK;
}

static cd_aim aim_of(const cd_tune_task *t) {
    const cd_str none = {"", 0};
    return (cd_aim){.workload_key = t->task->workload_key,
                    .task = t->task,
                    .device = none,
                    .has_hardware = true,
                    .hardware = t->hardware,
                    .target = t->target ? (cd_str){t->target, strlen(t->target)} : none,
                    .flop = t->flop};
}

/* Bounded as the cache is; all at once, for these are cheap to find out again. */
static cdmpp_status note_faulty(rank_model *r, stage *s, size_t n_miss, cdmpp_err *err) {
    if (s->faulty.n > CACHED) cd_tune_key_set_clear(&s->faulty);
    for (size_t k = 0; k < n_miss; k++)
        if (r->ans[r->miss[k]].st)
            CD_TRY(cd_tune_key_set_put(&s->faulty, r->key[r->miss[k]].a, 0, err));
    return CDMPP_OK;
}

/* ans[0 .. n) of candidates, or of n picked ones. */
static cdmpp_status answer_all(rank_model *r, stage *s, const cd_tune_task *t,
                               const cd_tune_cand *c, const uint32_t *pick, size_t n,
                               cdmpp_err *err) {
    job j = {r, s, aim_of(t), c, pick};
    const cd_hash task =
        cd_answer_cache_key(&(cd_candidate){.form = CD_CANDIDATE_SCHEDULE, .aim = &j.aim});
    size_t n_miss = 0;
    for (size_t i = 0; i < n; i++) {
        const cd_candidate ask = {.form = CD_CANDIDATE_SCHEDULE, .aim = &j.aim};
        cd_scored o;
        r->key[i] = task;
        cd_hash_add(&r->key[i], &cand_of(&j, i)->key, sizeof(uint64_t));
        if (cd_answer_cache_find(s->cache, &r->key[i], &ask, &o)) keep(&r->ans[i], &o);
        else if (cd_tune_key_set_find(&s->faulty, r->key[i].a, NULL))
            r->ans[i].st = CDMPP_EREJECTED;
        else r->miss[n_miss++] = (uint32_t)i;
    }
    CD_TRY(cd_threads_run(r->pool, n_miss, CHUNK, run_chunk, &j, err));
    return note_faulty(r, s, n_miss, err);
}

/* ---- scores ---- */
typedef struct {
    const rank_model *r;
    const stage *s;
    const cd_tune_task *t;
    double *score;
} scoring;

static cdmpp_status score_chunk(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    const scoring *k = ctx;
    (void)w;
    (void)err;
    for (size_t i = beg; i < end; i++) {
        answer *a = &k->r->ans[i];
        k->score[i] = -INFINITY;
        if (a->st) continue;
        cd_online_adapt_apply(k->s->adapt, a->which.name, k->t->task->workload_key, a->trait,
                              &a->pred);
        k->score[i] = -log(a->pred.order_s) - caution * cd_model_expected_error(&a->pred);
    }
    return CDMPP_OK;
}

static cdmpp_status rank_stage(rank_model *r, stage *s, const cd_tune_task *t,
                               const cd_tune_cand *c, const uint32_t *pick, size_t n, double *score,
                               cdmpp_err *err) {
    CD_TRY(answer_all(r, s, t, c, pick, n, err));
    scoring k = {r, s, t, score};
    return cd_threads_run(r->pool, n, CHUNK, score_chunk, &k, err);
}

static cdmpp_status rank(cd_tune_ranker *ranker, const cd_tune_task *t, const cd_tune_cand *c,
                         size_t n, double *score, cdmpp_err *err) {
    rank_model *r = (rank_model *)ranker;
    CD_TRY(room(r, n, err));
    return rank_stage(r, &r->stage[0], t, c, NULL, n, score, err);
}

/* Places of the k best in the order of the candidates; of equal ones the first. */
static void best_of(const double *score, size_t n, size_t k, double *work, uint32_t *best) {
    memcpy(work, score, n * sizeof *work);
    cd_sort_doubles(work, n);
    const double limit = work[n - k];
    size_t spare = k, at = 0;
    for (size_t i = 0; i < n; i++) spare -= score[i] > limit;
    for (size_t i = 0; i < n; i++)
        if (score[i] > limit || (score[i] == limit && spare && spare--)) best[at++] = (uint32_t)i;
}

/* The others are never better than the best that the whole model saw: it has the last word. */
static void merge(const uint32_t *best, const double *second, size_t k, double *score, size_t n,
                  double *work) {
    double top = -INFINITY;
    size_t m = 0;
    for (size_t i = 0; i < k; i++) {
        top = fmax(top, second[i]);
        if (second[i] > (double)-INFINITY) work[m++] = second[i] - score[best[i]];
    }
    cd_sort_doubles(work, m);
    const double shift = m ? work[m - 1 - m / 2] : 0;
    for (size_t i = 0; i < n; i++) score[i] = m ? fmin(score[i] + shift, top) : score[i];
    for (size_t i = 0; i < k; i++) score[best[i]] = second[i];
}

static cdmpp_status rank_twice(cd_tune_ranker *ranker, const cd_tune_task *t, const cd_tune_cand *c,
                               size_t n, double *score, cdmpp_err *err) {
    rank_model *r = (rank_model *)ranker;
    const size_t k = n < SECOND ? n : SECOND;
    CD_TRY(rank(ranker, t, c, n, score, err));
    if (!k || r->n_stage < 2) return CDMPP_OK;
    uint32_t best[SECOND];
    double second[SECOND];
    best_of(score, n, k, r->second, best);
    CD_TRY(rank_stage(r, &r->stage[1], t, c, best, k, second, err));
    merge(best, second, k, score, n, r->second);
    return CDMPP_OK;
}

/* ---- measured programs ---- */
static cdmpp_status learn(cd_tune_ranker *ranker, const cd_tune_task *t, const cd_tune_cand *c,
                          const double *seconds, size_t n, cdmpp_err *err) {
    rank_model *r = (rank_model *)ranker;
    if (r->setup.frozen) return CDMPP_OK;
    CD_TRY(room(r, n, err));
    for (int k = 0; k < r->n_stage; k++) {
        stage *s = &r->stage[k];
        CD_TRY(answer_all(r, s, t, c, NULL, n, err));
        for (size_t i = 0; i < n; i++) {
            const answer *a = &r->ans[i];
            if (a->st || !(seconds[i] > 0) || seconds[i] >= CD_TUNE_FAILED_S) continue;
            const cd_online_adapt_item item =
                cd_online_adapt_item_of(&a->pred, a->which.unknown, a->trait, seconds[i]);
            CD_TRY(cd_online_adapt_add(s->adapt, a->which.name, a->which.unknown,
                                       t->task->workload_key, &item, err));
        }
        CD_TRY(cd_online_adapt_fit(s->adapt, err));
    }
    return CDMPP_OK;
}

static bool ready(const cd_tune_ranker *r, const cd_tune_task *t) {
    (void)r;
    (void)t;
    return true;
}

const cd_tune_ranker_kind cd_tune_rank_model = {
    .name = "model",
    .brief = "a trained model, its small one where there is one",
    .needs_model = true,
    .open = open_model,
    .rank = rank,
    .learn = learn,
    .ready = ready,
    .free = free_ranker,
    .seconds = true};
const cd_tune_ranker_kind cd_tune_rank_twostage = {
    .name = "two-stage",
    .brief = "the small model for all, the whole model for its best",
    .needs_model = true,
    .open = open_twostage,
    .rank = rank_twice,
    .learn = learn,
    .ready = ready,
    .free = free_ranker,
    .seconds = true};
