/* Configurations of a sweep, shared between threads.
 *
 * Neighbours in the list have most questions in common, and each thread remembers what it asked
 * itself. So each has a part of the list, from its beginning on; one that is done takes the second
 * half of the longest part that is left. Which thread answers changes no answer. GPUs of a part
 * take turns, so one that is stopped has some of each. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "predictor/serving/serving_sweep_internal.h"

typedef struct {
    size_t next, end;
} part;

typedef struct {
    cd_serving_session **s; /* (n_part) */
    part *part;             /* (n_part) */
    size_t n_part;
    const cd_serving_config *c;
    size_t *order; /* numbers in c; parts are of these */
    const cd_serving_sweep_options *o;
    cd_serving_outcomes *out;
    pthread_mutex_t lock; /* of parts, keys, the count and the error */
    size_t taken;
    size_t failed_at; /* SIZE_MAX: nothing has failed */
    cdmpp_status st;
    cdmpp_err err;
} share;

static bool same_engine(const cd_serving_config *a, const cd_serving_config *b) {
    return a->gpu == b->gpu && !memcmp(&a->worker, &b->worker, sizeof a->worker);
}

static void take_turns(const share *h, part p, part *run) {
    size_t n = 0, at = p.next;
    for (size_t i = p.next; i < p.end; i++) {
        if (i > p.next && h->c[i].gpu == h->c[i - 1].gpu) continue;
        if (n) run[n - 1].end = i;
        run[n++] = (part){i, p.end};
    }
    for (size_t left; n; n = left) {
        left = 0;
        for (size_t g = 0; g < n; g++) {
            h->order[at++] = run[g].next++;
            if (run[g].next < run[g].end) run[left++] = run[g];
        }
    }
}

/* Where to cut: before an engine, if there is such a place behind the middle. */
static size_t cut(const share *h, size_t from, size_t to) {
    const size_t middle = from + (to - from) / 2;
    size_t i = middle;
    while (i > from && i < to && h->order[i] &&
           same_engine(&h->c[h->order[i] - 1], &h->c[h->order[i]]))
        i++;
    return i < to ? i : middle;
}

static void steal(share *h, part *to) {
    part *most = h->part;
    for (size_t k = 1; k < h->n_part; k++)
        if (h->part[k].end - h->part[k].next > most->end - most->next) most = &h->part[k];
    if (most->next == most->end) return;
    to->end = most->end;
    to->next = most->end = cut(h, most->next, most->end);
}

static bool take(share *h, size_t who, size_t *i) {
    part *p = &h->part[who];
    pthread_mutex_lock(&h->lock);
    if (p->next == p->end) steal(h, p);
    const bool more = p->next < p->end && h->failed_at == SIZE_MAX && !(h->o->stop && *h->o->stop);
    if (more) *i = h->order[p->next++];
    if (more && h->o->step) h->o->step(h->o->step_ctx, ++h->taken);
    pthread_mutex_unlock(&h->lock);
    return more;
}

/* ---- what became of one ---- */
static bool of_one(cdmpp_status st) {
    return st == CDMPP_ERANGE || st == CDMPP_EMODEL || st == CDMPP_EUNSUPPORTED;
}

/* The number of the key of an error; more keys than there is room for are the last one. */
static size_t key_of(cd_serving_outcomes *o, const cdmpp_err *why) {
    const char *key = why->key[0] ? why->key : "other";
    size_t i = 0;
    while (i < o->n_key && strncmp(o->key[i], key, sizeof o->key[i] - 1) != 0) i++;
    if (i == CD_SERVING_REASONS) return i - 1;
    if (i == o->n_key) snprintf(o->key[o->n_key++], sizeof o->key[i], "%s", key);
    return i;
}

static void refuse(share *h, size_t i, cdmpp_status st, const cdmpp_err *why) {
    pthread_mutex_lock(&h->lock);
    if (of_one(st)) h->out->of[i] = (uint8_t)(CD_SERVING_REFUSED + key_of(h->out, why));
    else if (st != CDMPP_EINTERRUPTED && i < h->failed_at)
        h->failed_at = i, h->st = st, h->err = *why;
    pthread_mutex_unlock(&h->lock);
}

static cdmpp_status work(void *ctx, size_t who, size_t end, int w, cdmpp_err *err) {
    share *h = ctx;
    size_t i;
    (void)end, (void)w, (void)err;
    while (take(h, who, &i)) {
        cd_serving_answer a;
        cdmpp_err why = {0};
        const cdmpp_status st = cd_serving_answer_of(h->s[who], &h->c[i], &a, NULL, NULL, &why);
        if (st == CDMPP_EINTERRUPTED) return CDMPP_OK; /* nobody knows what it would have been */
        if (st) {
            refuse(h, i, st, &why);
            continue;
        }
        h->out->v[i] = (cd_serving_point){.c = &h->c[i],
                                          .ttft_s = a.r.ttft_s,
                                          .tpot_s = a.r.tpot_s,
                                          .tokens_s = a.r.tokens_s,
                                          .per_gpu = a.per_gpu,
                                          .per_user = a.per_user,
                                          .gpus = a.gpus,
                                          .crowded = cd_serving_crowded(&a),
                                          .idle = a.r.idle > 0};
        h->out->of[i] = CD_SERVING_ANSWERED;
    }
    return CDMPP_OK;
}

static cdmpp_status put_in_order(share *h, size_t n, cdmpp_err *err) {
    size_t n_run = 1;
    for (size_t i = 1; i < n; i++) n_run += h->c[i].gpu != h->c[i - 1].gpu;
    part *run = cd_mem_zalloc(n_run, sizeof *run);
    if (!run) return CD_FAIL(err, ENOMEM, "%zu GPUs", n_run);
    for (size_t k = 0, from = 0; k < h->n_part; k++) {
        size_t to = k + 1 == h->n_part ? n : n / h->n_part * (k + 1);
        while (to > from && to < n && same_engine(&h->c[to - 1], &h->c[to])) to++;
        h->part[k] = (part){from, to > from ? to : from};
        take_turns(h, h->part[k], run);
        from = h->part[k].end;
    }
    cd_mem_free(run);
    return CDMPP_OK;
}

static cdmpp_status run(share *h, size_t n, cd_threads *threads, cdmpp_err *err) {
    CD_TRY(put_in_order(h, n, err));
    pthread_mutex_init(&h->lock, NULL);
    cdmpp_status st = cd_threads_run(threads, h->n_part, 1, work, h, err);
    pthread_mutex_destroy(&h->lock);
    if (st || h->failed_at == SIZE_MAX) return st;
    if (err) *err = h->err;
    return h->st;
}

cdmpp_status cd_serving_sweep_share(cd_serving_session *s, const cd_serving_config *c, size_t n,
                                    const cd_serving_sweep_options *o, cd_serving_outcomes *out,
                                    cdmpp_err *err) {
    cd_threads *threads = o->threads;
    const size_t n_part = (size_t)cd_threads_count(threads) < n ? (size_t)cd_threads_count(threads)
                          : n                                   ? n
                                                                : 1;
    share h = {.s = cd_mem_zalloc(n_part, sizeof *h.s),
               .part = cd_mem_zalloc(n_part, sizeof *h.part),
               .n_part = n_part,
               .c = c,
               .order = cd_mem_zalloc(n + 1, sizeof *h.order),
               .o = o,
               .out = out,
               .failed_at = SIZE_MAX};
    cd_serving_session *twin = cd_mem_zalloc(n_part, sizeof *twin);
    size_t n_twin = 0;
    cdmpp_status st = CDMPP_OK;
    if (!h.s || !h.part || !h.order || !twin) st = CD_FAIL(err, ENOMEM, "%zu threads", n_part);
    else h.s[0] = s;
    for (; !st && n_twin + 1 < n_part; n_twin++) {
        st = cd_serving_session_twin(s, &twin[n_twin], err);
        h.s[n_twin + 1] = &twin[n_twin];
    }
    if (!st) st = run(&h, n, threads, err);
    for (size_t k = 0; k < n_twin; k++) cd_serving_session_twin_end(s, &twin[k]);
    cd_mem_free(twin);
    cd_mem_free(h.order);
    cd_mem_free(h.part);
    cd_mem_free(h.s);
    return st;
}
