/* All combinations of lists, simulated; the front of throughput of a GPU against speed for a
 * user. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "predictor/serving/serving.h"

/* What became of each configuration: OPEN where the sweep was stopped before, REFUSED + the number
 * of the error's key. */
enum { CD_SERVING_OPEN, CD_SERVING_ANSWERED, CD_SERVING_REFUSED };
typedef struct cd_serving_outcomes {
    cd_serving_point *v; /* (n) of those that are answered, without price and targets */
    uint8_t *of;         /* (n) */
    char key[CD_SERVING_REASONS][96];
    size_t n_key;
} cd_serving_outcomes;

/* Which configurations of a sweep are named, and their intervals. */

bool cd_serving_reaches_over(double value, double high, double target) {
    return target > 0 && value <= target && high > target;
}

/* Of equal ones the first counts, of equal prices the one with more tokens/s/GPU: GPUs that cost
 * nothing are all as cheap. */
static bool cheaper(const cd_serving_point *a, const cd_serving_point *b) {
    return a->price < b->price || (!(a->price > b->price) && a->per_gpu > b->per_gpu);
}

/* Times over the target that is missed most. */
static double times_over(const cd_serving_sweep *w, const cd_serving_point *p) {
    /* a TPOT that is none misses nothing */
    return fmax(w->ttft_s > 0 ? p->ttft_s / w->ttft_s : 0,
                w->tpot_s > 0 ? p->tpot_s / w->tpot_s : 0);
}

static void choose(cd_serving_sweep *w) {
    for (size_t i = 0; i < w->n; i++) {
        const cd_serving_point *p = &w->v[i];
        if (!p->ranked) continue;
        if (p->met && (!w->most.p || p->per_gpu > w->most.p->per_gpu)) w->most.p = p;
        if (p->met && !isnan(p->price) && (!w->cheapest.p || cheaper(p, w->cheapest.p)))
            w->cheapest.p = p;
        if (!w->n_met && (!w->nearest.p || times_over(w, p) < times_over(w, w->nearest.p)))
            w->nearest.p = p;
    }
}

/* A size beyond those of the training, and a GPU of a chip that it knows, are no strangers. */
static bool is_strange(const cd_serving_row *r) {
    return r->news & ~(unsigned)(CD_LLM_OP_NEW_SIZE | (r->twin ? CD_LLM_OP_NEW_DEVICE : 0));
}

/* Sets ranked and news of a point of this configuration. Errors: those of cd_serving_step_rows. */
static cdmpp_status serving_sweep_rank(cd_serving_session *s, const cd_serving_config *c,
                                       cd_serving_point *p, cdmpp_err *err) {
    const cd_serving_step step[] = {{.prompts = 1, .isl = c->isl},
                                    {.decodes = 1, .context = c->isl + c->osl / 2}};
    cd_serving_engine *e;
    cd_serving_layout l;
    cd_serving_rows r = {0};
    cdmpp_status st = cd_serving_engine_of(s, c, &e, &l, err);
    p->ranked = true, p->news = 0;
    for (size_t i = 0; !st && i < sizeof step / sizeof *step; i++) {
        st = cd_serving_step_rows(e, &step[i], s->shared, &r, err);
        for (size_t k = 0; !st && k < r.n; k++)
            if (!r.v[k].known && is_strange(&r.v[k])) p->ranked = false, p->news |= r.v[k].news;
    }
    cd_serving_rows_free(&r);
    return st;
}

static double seconds(const cd_serving_config *c, double ttft_s, double tpot_s) {
    return ttft_s + (c->osl > 1 ? (c->osl - 1) * tpot_s : 0);
}

/* Where so many requests are in flight all the time, throughput is their number over the seconds of
 * one (Little's law). TTFT and TPOT are taken to be wrong together. Requests that come by
 * themselves are answered as they come, until there are too many: nobody knows the interval. */
static void throughput(const cd_serving_answer *a, cd_serving_named *v) {
    const cd_serving_config *c = v->p->c;
    const double at = seconds(c, a->r.ttft_s, a->r.tpot_s);
    v->per_gpu_low = v->per_gpu_high = (double)NAN;
    if (!(c->concurrency > 0)) return;
    v->per_gpu_low = v->p->per_gpu * at / seconds(c, a->ttft_high_s, a->tpot_high_s);
    v->per_gpu_high = v->p->per_gpu * at / seconds(c, a->ttft_low_s, a->tpot_low_s);
}

static cdmpp_status interval(cd_serving_session *s, cd_serving_named *v, cdmpp_err *err) {
    cd_serving_answer a;
    cd_serving_rows prompt = {0}, decode = {0};
    if (!v->p) return CDMPP_OK;
    const cdmpp_status st = cd_serving_answer_of(s, v->p->c, &a, &prompt, &decode, err);
    cd_serving_rows_free(&prompt);
    cd_serving_rows_free(&decode);
    CD_TRY(st);
    v->ttft_low_s = a.ttft_low_s, v->ttft_high_s = a.ttft_high_s, v->tpot_low_s = a.tpot_low_s,
    v->tpot_high_s = a.tpot_high_s;
    throughput(&a, v);
    return CDMPP_OK;
}

/* The best of those that meet the targets, else the nearest miss, with their intervals: each is
 * answered once more. Errors: those of cd_serving_answer_of. */
static cdmpp_status serving_sweep_choose(cd_serving_session *s, cd_serving_sweep *w,
                                         cdmpp_err *err) {
    choose(w);
    cd_serving_named *const of[] = {&w->most, &w->cheapest, &w->nearest};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) CD_TRY(interval(s, of[i], err));
    return CDMPP_OK;
}

/* Configurations of a sweep, shared between threads.
 *
 * Neighbours in the list have most questions in common, and each thread remembers what it asked
 * itself. So each has a part of the list, from its beginning on; one that is done takes the second
 * half of the longest part that is left. Which thread answers changes no answer. GPUs of a part
 * take turns, so one that is stopped has some of each. */

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

static bool same_engine_share(const cd_serving_config *a, const cd_serving_config *b) {
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
           same_engine_share(&h->c[h->order[i] - 1], &h->c[h->order[i]]))
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
        while (to > from && to < n && same_engine_share(&h->c[to - 1], &h->c[to])) to++;
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

/* v and of are zeroed. o->threads NULL: here alone. Errors: those that are not of one
 * configuration: ENOMEM. */
static cdmpp_status serving_sweep_share(cd_serving_session *s, const cd_serving_config *c, size_t n,
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

enum { MOST = 1000000, LIST = 4096 };

/* ---- combinations ---- */
typedef struct {
    double v[LIST];
    size_t n;
} numbers;

static cdmpp_status read_numbers(const char *option, const char *text, double usual, numbers *out,
                                 cdmpp_err *err) {
    char word[32];
    if (!text) return out->v[0] = usual, out->n = 1, CDMPP_OK;
    for (out->n = 0; *text; text += strcspn(text, ","), text += *text == ',') {
        const size_t n = strcspn(text, ",");
        if (out->n == LIST || n >= sizeof word)
            return CD_FAIL(err, EUSAGE,
                           "--%s: expected at most %d numbers with commas between them", option,
                           LIST);
        memcpy(word, text, n);
        word[n] = 0;
        CD_TRY(cd_option_number(option, word, 1, 1e6, &out->v[out->n], err));
        if (floor(out->v[out->n]) < out->v[out->n])
            return CD_FAIL(err, EUSAGE, "--%s: expected whole numbers, found \"%s\"", option, word);
        out->n++;
    }
    return out->n ? CDMPP_OK
                  : CD_FAIL(err, EUSAGE, "--%s: expected numbers with commas between them", option);
}

static cdmpp_status read_names(cd_arena *a, const char *text, const char *usual, cd_texts *out,
                               cdmpp_err *err) {
    const char **v = CD_NEWN(a, const char *, strlen(text ? text : "") + 1);
    char *copy = cd_arena_text(a, text ? text : usual);
    *out = (cd_texts){0, v};
    if (!v || !copy) return CD_FAIL(err, ENOMEM, "names");
    for (char *save = NULL, *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save))
        v[out->n++] = w;
    return out->n ? CDMPP_OK
                  : CD_FAIL(err, EUSAGE, "--gpu: expected names with commas between them");
}

cdmpp_status cd_serving_combine(cd_arena *a, const cd_serving_config *usual,
                                const cd_serving_lists *l, cd_serving_config **out, size_t *n,
                                cdmpp_err *err) {
    numbers *v = cd_arena_zalloc(a, 5, sizeof *v);
    const char *const text[] = {l->tp, l->pp, l->dp, l->ep, l->concurrency};
    const char *const name[] = {"tp", "pp", "dp", "ep", "concurrency"};
    const double one[] = {usual->worker.tp, usual->worker.pp, usual->worker.dp, usual->worker.ep,
                          usual->concurrency};
    cd_texts gpu;
    double all;
    if (!v) return CD_FAIL(err, ENOMEM, "lists");
    CD_TRY(read_names(a, l->gpu, usual->gpu, &gpu, err));
    all = (double)gpu.n;
    for (size_t i = 0; i < 5; i++) {
        CD_TRY(read_numbers(name[i], text[i], one[i], &v[i], err));
        all *= (double)v[i].n;
    }
    if (all > MOST)
        return CD_FAIL(err, EUSAGE, "the lists have %.0f combinations; at most %d are taken", all,
                       MOST);
    *n = (size_t)all;
    if (!(*out = CD_NEWN(a, cd_serving_config, *n)))
        return CD_FAIL(err, ENOMEM, "%zu configurations", *n);
    for (size_t i = 0; i < *n; i++) {
        size_t k = i;
        cd_serving_config *c = &(*out)[i];
        double *const to[] = {&c->worker.tp, &c->worker.pp, &c->worker.dp, &c->worker.ep,
                              &c->concurrency};
        *c = *usual;
        for (size_t j = 5; j-- > 0; k /= v[j].n) *to[j] = v[j].v[k % v[j].n];
        c->gpu = gpu.v[k];
    }
    return CDMPP_OK;
}

/* ---- the front ---- */
static int by_gpu(const void *a, const void *b) {
    const cd_serving_point *x = *(cd_serving_point *const *)a, *y = *(cd_serving_point *const *)b;
    if (x->per_gpu < y->per_gpu || x->per_gpu > y->per_gpu) return x->per_gpu > y->per_gpu ? -1 : 1;
    if (x->per_user < y->per_user || x->per_user > y->per_user)
        return x->per_user > y->per_user ? -1 : 1;
    return x < y ? -1 : x > y;
}

static cdmpp_status find_front(cd_serving_sweep *s, cdmpp_err *err) {
    cd_serving_point **v = cd_mem_zalloc(s->n + 1, sizeof *v);
    double best = 0;
    size_t n = 0;
    if (!v) return CD_FAIL(err, ENOMEM, "%zu configurations", s->n);
    for (size_t i = 0; i < s->n; i++) {
        s->n_crowded += s->v[i].crowded, s->n_idle += s->v[i].idle;
        s->n_unranked += !s->v[i].ranked;
        s->n_met += s->v[i].met;
        if (s->v[i].met && s->v[i].ranked) v[n++] = &s->v[i];
    }
    qsort(v, n, sizeof(cd_serving_point *), by_gpu);
    for (size_t i = 0; i < n; i++) {
        /* without a further token users see no speed: the most throughput */
        v[i]->front = v[i]->per_user > best || !i;
        best = fmax(best, v[i]->per_user);
        s->n_front += v[i]->front;
    }
    cd_mem_free(v);
    return CDMPP_OK;
}

static cdmpp_status refused(const cd_serving_sweep *s, cdmpp_err *err) {
    cd_buf b = {0};
    for (size_t i = 0; i < s->n_reason; i++)
        cd_buf_putf(&b, "%s%s %zu", i ? ", " : "", s->reason[i].text, s->reason[i].n);
    cdmpp_status st;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "reasons");
    else
        st = CD_FAIL(err, ENODATA, "none of %zu configurations can be: %s", s->tried,
                     b.p ? b.p : "");
    cd_buf_free(&b);
    return st;
}

/* ---- running ---- */
static void count_reason(cd_serving_sweep *s, const char *key) {
    size_t i = 0;
    while (i < s->n_reason && strcmp(s->reason[i].text, key) != 0) i++;
    if (i == s->n_reason)
        snprintf(s->reason[s->n_reason++].text, sizeof s->reason[i].text, "%s", key);
    s->reason[i].n++;
}

static bool over(double value, double target) { return target > 0 && value > target; }

/* What is new about operators depends on the load in nothing. */
static bool same_engine(const cd_serving_config *a, const cd_serving_config *b) {
    const double x[] = {a->worker.tp, a->worker.pp, a->worker.dp, a->worker.ep};
    const double y[] = {b->worker.tp, b->worker.pp, b->worker.dp, b->worker.ep};
    return a->gpu == b->gpu && a->stack == b->stack && a->kernels == b->kernels &&
           !memcmp(x, y, sizeof x);
}

/* Those that are answered move together, in the order of the list, and reasons stand in it, whoever
 * was first. */
static cdmpp_status gather(cd_serving_session *s, const cd_serving_config *c, size_t n,
                           const cd_serving_sweep_options *o, const cd_serving_outcomes *of,
                           cd_serving_sweep *out, cdmpp_err *err) {
    cd_serving_about about = {0};
    const cd_serving_point *last = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!i || c[i].gpu != c[i - 1].gpu) about = cd_serving_session_about(s, c[i].gpu);
        if (of->of[i] == CD_SERVING_OPEN) continue;
        out->done++;
        if (of->of[i] >= CD_SERVING_REFUSED) {
            count_reason(out, of->key[of->of[i] - CD_SERVING_REFUSED]);
            continue;
        }
        cd_serving_point *p = &out->v[out->n++];
        *p = of->v[i];
        p->about = about;
        p->price = (o->price ? o->price(o->ctx, c[i].gpu) : (double)NAN) / 3600 / p->per_gpu * 1e6;
        p->met = !over(p->ttft_s, o->ttft_s) && !over(p->tpot_s, o->tpot_s);
        if (last && same_engine(last->c, p->c)) p->ranked = last->ranked, p->news = last->news;
        else CD_TRY(serving_sweep_rank(s, p->c, p, err));
        last = p;
    }
    return CDMPP_OK;
}

/* Of a sweep that was stopped, too: the few that are named are answered to the end. */
static cdmpp_status finish(cd_serving_session *s, cd_serving_sweep *out, cdmpp_err *err) {
    const volatile sig_atomic_t *stop = s->stop;
    CD_TRY(find_front(out, err));
    s->stop = NULL;
    const cdmpp_status st = serving_sweep_choose(s, out, err);
    s->stop = stop;
    return st;
}

cdmpp_status cd_serving_sweep_run(cd_serving_session *s, const cd_serving_config *c, size_t n,
                                  const cd_serving_sweep_options *o, cd_serving_sweep *out,
                                  cdmpp_err *err) {
    cd_serving_outcomes of = {.of = cd_mem_zalloc(n + 1, sizeof *of.of)};
    *out = (cd_serving_sweep){.v = cd_mem_zalloc(n + 1, sizeof *out->v),
                              .tried = n,
                              .ttft_s = o->ttft_s,
                              .tpot_s = o->tpot_s,
                              .level = s->level};
    of.v = out->v; /* a point moves to the front of the same array */
    cdmpp_status st = CDMPP_OK;
    if (!out->v || !of.of) st = CD_FAIL(err, ENOMEM, "%zu configurations", n);
    if (!st) st = cd_serving_session_know(s, c, n, err);
    if (!st) st = serving_sweep_share(s, c, n, o, &of, err);
    if (!st) st = gather(s, c, n, o, &of, out, err);
    if (!st && out->n) st = finish(s, out, err);
    if (!st && out->done < n)
        st = CD_FAIL(err, EINTERRUPTED, "after %zu of %zu configurations", out->done, n);
    if (!st && !out->n) st = refused(out, err);
    cd_mem_free(of.of);
    return st;
}

void cd_serving_sweep_free(cd_serving_sweep *s) {
    cd_mem_free(s->v);
    *s = (cd_serving_sweep){0};
}
