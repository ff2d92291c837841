/* All combinations of lists, simulated; the front of throughput of a GPU against speed for a
 * user. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "predictor/serving/serving_sweep_internal.h"

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
        else CD_TRY(cd_serving_sweep_rank(s, p->c, p, err));
        last = p;
    }
    return CDMPP_OK;
}

/* Of a sweep that was stopped, too: the few that are named are answered to the end. */
static cdmpp_status finish(cd_serving_session *s, cd_serving_sweep *out, cdmpp_err *err) {
    const volatile sig_atomic_t *stop = s->stop;
    CD_TRY(find_front(out, err));
    s->stop = NULL;
    const cdmpp_status st = cd_serving_sweep_choose(s, out, err);
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
    if (!st) st = cd_serving_sweep_share(s, c, n, o, &of, err);
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
