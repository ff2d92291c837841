/* Plays tuners against logs: the search asks for candidates, the log has their seconds. Every run
 * has its own space, ranker and search. */
#include "predictor/tune/compare/compare.h"

#include <string.h>

#include "predictor/tune/space/space.h"

uint64_t cd_tune_replay_seed(const cd_tune_replay_log *l, uint64_t seed) {
    cd_hash h = cd_hash_start();
    cd_hash_add(&h, l->key, strlen(l->key));
    cd_hash_add(&h, l->device, strlen(l->device));
    return cd_rng_at(h.a, seed);
}

/* One run in the making. */
typedef struct {
    const cd_tune_replay_log *log;
    const cd_tune_replay_spec *spec;
    cd_tune_space *space;
    cd_tune_ranker *ranker;
    cd_tune_search *search;
    uint8_t *seen; /* (log->n) */
    double *told;  /* (batch) */
    uint32_t *row;
    double *search_s, used_s;
    size_t n, end;
} player;

static void stop(player *p) {
    if (p->search) p->search->kind->free(p->search);
    if (p->ranker) p->ranker->kind->free(p->ranker);
    cd_tune_space_free(p->space);
    cd_mem_free(p->seen);
    cd_mem_free(p->told);
}

/* Opening a search is part of its time: a model that is loaded or a list that is made costs a user
 * as well. */
static cdmpp_status start(player *p, const cd_tune_tuner *t, uint64_t seed, cdmpp_err *err) {
    const cd_tune_replay_log *l = p->log;
    p->seen = cd_mem_zalloc(l->n + 1, 1);
    p->told = cd_mem_zalloc(p->spec->batch, sizeof *p->told);
    if (!p->seen || !p->told) return CD_FAIL(err, ENOMEM, "%zu candidates", l->n);
    const double begin = cd_clock_thread();
    CD_TRY(cd_tune_space_log(&l->of, l->cand, l->n, seed, &p->space, err));
    cd_tune_ranker_setup r = p->spec->ranker;
    r.seed = seed;
    r.threads = 1;
    if (!r.device) r.device = l->device;
    if (t->ranker) CD_TRY(t->ranker->open(&r, &p->ranker, err));
    const cd_tune_search_setup s = {.space = p->space,
                                    .ranker = p->ranker,
                                    .seed = seed,
                                    .population = p->spec->population,
                                    .generations = p->spec->generations,
                                    .epsilon = p->spec->epsilon};
    CD_TRY(t->search->open(&s, &p->search, err));
    p->used_s = cd_clock_thread() - begin;
    return CDMPP_OK;
}

static cdmpp_status measure(player *p, const cd_tune_cand *c, size_t n, cdmpp_err *err) {
    for (size_t k = 0; k < n; k++) {
        const uint32_t row = c[k].row;
        if (row >= p->log->n || p->log->cand[row].key != c[k].key)
            return CD_FAIL(err, EINVALID, "trial %zu is not of the log", p->n);
        if (p->seen[row]++) return CD_FAIL(err, EINVALID, "trial %zu was measured before", p->n);
        p->told[k] = p->log->seconds[row];
        p->search_s[p->n] = p->used_s;
        p->row[p->n++] = row;
    }
    return CDMPP_OK;
}

/* Only ask and tell are timed. The last tell is left out: nothing is asked after it. */
static cdmpp_status play(player *p, cdmpp_err *err) {
    while (p->n < p->end) {
        const size_t want = p->end - p->n < p->spec->batch ? p->end - p->n : p->spec->batch;
        const cd_tune_cand *c;
        size_t got = 0;
        double begin = cd_clock_thread();
        CD_TRY(p->search->kind->ask(p->search, want, &c, &got, err));
        p->used_s += cd_clock_thread() - begin;
        if (!got) break;
        if (got > want) return CD_FAIL(err, EINVALID, "asked for %zu, got %zu", want, got);
        CD_TRY(measure(p, c, got, err));
        begin = cd_clock_thread();
        if (p->n < p->end) CD_TRY(p->search->kind->tell(p->search, c, p->told, got, err));
        p->used_s += cd_clock_thread() - begin;
    }
    return CDMPP_OK;
}

/* ---- all of them ---- */
typedef struct {
    const cd_tune_replay_logs *l;
    const cd_tune_replay_spec *s;
    cd_tune_replay *r;
} stage;

/* One run of a task, tuner and seed. Runs are independent, so the pool may take them in any order;
 * an error names the task and the tuner. */
static cdmpp_status one(void *ctx, size_t beg, size_t end, int w, cdmpp_err *err) {
    (void)w;
    const stage *g = ctx;
    for (size_t i = beg; i < end; i++) {
        const size_t tuner = i / g->s->n_seed % g->s->n_tuner;
        const cd_tune_replay_log *l = &g->l->log[i / g->s->n_seed / g->s->n_tuner];
        cd_tune_replay_run *run = &g->r->run[i];
        player p = {.log = l, .spec = g->s, .end = l->n < g->s->trials ? l->n : g->s->trials};
        p.row = cd_mem_zalloc(p.end + 1, sizeof *p.row);
        p.search_s = cd_mem_zalloc(p.end + 1, sizeof *p.search_s);
        run->row = p.row;
        run->search_s = p.search_s;
        cdmpp_status st =
            p.row && p.search_s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu trials", p.end);
        if (!st)
            st = start(&p, g->s->tuner[tuner],
                       cd_tune_replay_seed(l, g->s->seed + i % g->s->n_seed), err);
        if (!st) st = play(&p, err);
        stop(&p);
        run->n = p.n;
        if (st) return cd_err_key(err, cd_err_at(err, st, l->key, 0), g->s->tuner[tuner]->name);
    }
    return CDMPP_OK;
}

cdmpp_status cd_tune_replay_play(const cd_tune_replay_logs *l, const cd_tune_replay_spec *s,
                                 cd_tune_replay **out, cdmpp_err *err) {
    cd_tune_replay *r = cd_mem_zalloc(1, sizeof *r);
    if (!r) return CD_FAIL(err, ENOMEM, "replay");
    const size_t n = l->n * s->n_tuner * s->n_seed;
    *r = (cd_tune_replay){.n_log = l->n, .n_tuner = s->n_tuner, .n_seed = s->n_seed};
    r->run = cd_mem_zalloc(n + 1, sizeof *r->run);
    stage g = {l, s, r};
    cdmpp_status st = CDMPP_OK;
    if (r->run) st = cd_threads_run(s->pool, n, 1, one, &g, err);
    else st = CD_FAIL(err, ENOMEM, "%zu runs", n);
    if (st) cd_tune_replay_free(r);
    else *out = r;
    return st;
}

void cd_tune_replay_free(cd_tune_replay *r) {
    if (!r) return;
    for (size_t i = 0; r->run && i < r->n_log * r->n_tuner * r->n_seed; i++) {
        cd_mem_free((void *)(uintptr_t)r->run[i].row);
        cd_mem_free((void *)(uintptr_t)r->run[i].search_s);
    }
    cd_mem_free(r->run);
    cd_mem_free(r);
}
