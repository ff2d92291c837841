/* The loop: draw, measure, train, look where the error is large, draw there. What it needs to go on
 * after a kill is in the samples: the largest draw so far, and how many draws around the networks'
 * own sizes there were. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/kernels/kernels.h"

enum {
    FIRST = 100,
    PER_ROUND = 20,
    AROUND = 4,
    TRIES = 200,
    HELD = 20,
    SEARCH = 10000,
    EACH = 2,
    EACH_TRIES = 6
};

typedef struct sampler {
    const cd_kernel_prior *p;
    const cd_kernel_clock *c;
    cd_kernel_sampler_options o;
    cd_kernel_samples *s;
    cd_kernel_sampled *out;
    uint64_t next; /* draw */
    size_t roots;  /* draws around the networks' own sizes that left samples */
    size_t idle;   /* draws in a row that left none */
    double begin;
    cdmpp_err *err;
} sampler;

static bool is_known(const cd_kernel_samples *s, const cd_kernel *k) {
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->v[i].kernel.type, k->type) && !memcmp(s->v[i].kernel.x, k->x, sizeof k->x))
            return true;
    return false;
}

/* Is the run over, and why? */
static bool is_over(sampler *x) {
    if (x->o.limit && x->s->n >= x->o.limit) return x->out->end = CD_KERNEL_END_LIMIT, true;
    if (x->o.seconds > 0 && x->c->now(x->c->ctx) - x->begin >= x->o.seconds)
        return x->out->end = CD_KERNEL_END_SECONDS, true;
    if (x->idle >= TRIES) return x->out->end = CD_KERNEL_END_NOTHING_NEW, true;
    return false;
}

/* ---- one draw ---- */

/* Each group of the network that is new is a sample. *added: how many. */
static cdmpp_status add_all(sampler *x, const cd_workload *w, const cd_kernel_time *t,
                            cd_kernel_sample v, size_t *added) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    for (uint32_t g = 0; !st && g < w->n_group; g++) {
        if (w->group[g].task == CD_GRAPH_NONE || w->group[g].weights || !isfinite(t[g].seconds))
            continue;
        st = cd_kernel_of(w, g, &a, &v.kernel, x->err);
        if (st || is_known(x->s, &v.kernel)) continue;
        v.seconds = t[g].seconds;
        v.kernel.analytic_s = t[g].analytic_s;
        st = cd_kernel_samples_add(x->s, &v, x->err);
        *added += !st;
    }
    cd_arena_free(&a);
    return st;
}

/* A draw whose every kernel is known is not measured. */
static cdmpp_status any_new(sampler *x, const cd_workload *w, bool *out) {
    cd_arena a = {0};
    cdmpp_status st = CDMPP_OK;
    *out = false;
    for (uint32_t g = 0; !st && g < w->n_group; g++) {
        cd_kernel k;
        if (w->group[g].task == CD_GRAPH_NONE || !w->group[g].n_node) continue;
        st = cd_kernel_of(w, g, &a, &k, x->err);
        *out |= !st && !is_known(x->s, &k);
    }
    cd_arena_free(&a);
    return st;
}

static cdmpp_status measure(sampler *x, const cd_workload *w, const cd_kernel_sample *v,
                            size_t *added) {
    cd_kernel_time *t = cd_mem_alloc((w->n_group + 1) * sizeof *t);
    cdmpp_err own = {0};
    if (!t) return CD_FAIL(x->err, ENOMEM, "kernels");
    cdmpp_status st = x->c->time(x->c->ctx, w, v->draw, t, &own);
    if (!st) st = add_all(x, w, t, *v, added);
    else if (st == CDMPP_EINTERRUPTED || st == CDMPP_EIO || st == CDMPP_ENOMEM) {
        if (x->err) *x->err = own;
    } else {
        x->out->failed++;
        x->out->why = own;
        st = CDMPP_OK;
    }
    cd_mem_free(t);
    return st;
}

/* Near a sample; with `type` around the networks' own sizes, of that type; both NULL: of any. */
static cdmpp_status draw(sampler *x, const cd_kernel_sample *around, const char *type,
                         uint32_t round) {
    for (int k = 0;
         type && k < SEARCH && strcmp(cd_kernel_prior_type(x->p, x->o.seed, x->next), type); k++)
        x->next++;
    cd_kernel_sample v = {.draw = x->next++, .round = round};
    cd_workload *w;
    cd_graph *g;
    size_t added = 0;
    bool new = false;
    v.root = around ? around->root : v.draw;
    v.held = !around && !type && cd_rng_at(0x68656c64, v.draw) % 5 == 0;
    if (x->o.stop && *x->o.stop) return CD_FAIL(x->err, EINTERRUPTED, "while kernels were sampled");
    CD_TRY(cd_kernel_prior_draw(x->p, x->o.seed, v.root, v.draw, &g, &w, x->err));
    cdmpp_status st = w ? any_new(x, w, &new) : CDMPP_OK;
    if (!st && new) st = measure(x, w, &v, &added);
    cd_workload_free(w);
    cd_graph_free(g);
    x->idle = added ? 0 : x->idle + 1;
    x->roots += added && !around;
    return st;
}

/* ---- every type ---- */

static size_t samples_of(const sampler *x, const char *type) {
    size_t n = 0;
    for (size_t i = 0; i < x->s->n; i++)
        n += !x->s->v[i].held && !strcmp(x->s->v[i].kernel.type, type);
    return n;
}

static bool is_first(const cd_kernel_prior *p, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (!strcmp(cd_kernel_prior_at(p, k)->type, cd_kernel_prior_at(p, i)->type)) return false;
    return true;
}

/* A type that few kernels of the networks have would be missed by chance. What cannot be had in
 * some tries is left. */
static cdmpp_status draw_types(sampler *x) {
    for (size_t i = 0; i < cd_kernel_prior_count(x->p); i++) {
        const char *type = cd_kernel_prior_at(x->p, i)->type;
        if (!is_first(x->p, i)) continue;
        for (size_t k = 0; k < EACH_TRIES * CD_KERNEL_LEAST &&
                           samples_of(x, type) < EACH * CD_KERNEL_LEAST && !is_over(x);
             k++)
            CD_TRY(draw(x, NULL, type, 0));
    }
    x->idle = 0;
    return CDMPP_OK;
}

/* ---- where the error is large ---- */

typedef struct place {
    size_t sample;
    /* times the seconds that kernels of its type take in the networks: what it does to their
     * sums */
    double error;
} place;

static int by_error(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->error != y->error) return x->error < y->error ? 1 : -1;
    return x->sample < y->sample ? -1 : 1;
}

static bool is_listed(const cd_kernel_samples *s, const place *v, size_t n, const char *type) {
    for (size_t k = 0; k < n; k++)
        if (isinf(v[k].error) && !strcmp(s->v[v[k].sample].kernel.type, type)) return true;
    return false;
}

/* Seconds of all kernels of the type that the networks have, by the mean of its samples. */
static double seconds_of_type(const sampler *x, const char *type) {
    double sum = 0;
    size_t n = 0, there = 0;
    for (size_t i = 0; i < x->s->n; i++) {
        const cd_kernel_sample *v = &x->s->v[i];
        if (v->held || v->root != v->draw || strcmp(v->kernel.type, type)) continue;
        sum += v->seconds;
        n++;
    }
    for (size_t i = 0; i < cd_kernel_prior_count(x->p); i++)
        there += !strcmp(cd_kernel_prior_at(x->p, i)->type, type);
    return n ? sum / (double)n * (double)there : 0;
}

/* Errors of the samples of one fold, by a model that does not know them. Of a type that it has no
 * answer for, the first sample stands for all. */
static cdmpp_status look(sampler *x, int fold, place *v, size_t *n) {
    cd_kernel_model *m;
    CD_TRY(cd_kernel_model_train(x->s, fold, &m, x->err));
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; !st && i < x->s->n; i++) {
        const cd_kernel_sample *s = &x->s->v[i];
        double t;
        if (s->held || cd_kernel_fold(s->root) != fold ||
            !strcmp(s->kernel.type, "LayoutTransform"))
            continue;
        st = cd_kernel_model_predict(m, &s->kernel, &t, x->err);
        const double e = isnan(t) ? HUGE_VAL : fabs(t / s->seconds - 1);
        if (!st && e > x->o.target && !(isnan(t) && is_listed(x->s, v, *n, s->kernel.type)))
            v[(*n)++] = (place){i, isinf(e) ? e : e * seconds_of_type(x, s->kernel.type)};
    }
    cd_kernel_model_free(m);
    return st;
}

/* A round: those that do the most to the networks' sums first. Samples may move while others are
 * added, so the one to draw around is copied. */
static cdmpp_status round_of(sampler *x, uint32_t round) {
    place *v = cd_mem_alloc((x->s->n + 1) * sizeof *v);
    cdmpp_status st = v ? CDMPP_OK : CD_FAIL(x->err, ENOMEM, "kernels");
    size_t n = 0;
    for (int fold = 0; !st && fold < CD_KERNEL_FOLDS && !x->o.plain; fold++)
        st = look(x, fold, v, &n);
    if (n) qsort(v, n, sizeof *v, by_error);
    if (n > x->o.per_round) n = x->o.per_round;
    for (size_t i = 0; !st && i < n; i++)
        for (size_t k = 0; !st && k < x->o.around && !is_over(x); k++) {
            const cd_kernel_sample s = x->s->v[v[i].sample];
            const bool few = isinf(v[i].error);
            st = draw(x, few ? NULL : &s, few ? s.kernel.type : NULL, round);
            /* all that is near to it is known */
            if (!st && x->idle && !is_over(x)) st = draw(x, NULL, NULL, round);
        }
    /* too few are wrong */
    for (size_t k = n * x->o.around; !st && k < x->o.per_round * x->o.around && !is_over(x); k++)
        st = draw(x, NULL, NULL, round);
    cd_mem_free(v);
    return st;
}

static cdmpp_status train_and_score(sampler *x) {
    cd_kernel_model *m;
    CD_TRY(cd_kernel_model_train(x->s, -1, &m, x->err));
    const cdmpp_status st = cd_kernel_model_score(m, x->s, x->o.target, &x->out->score, x->err);
    cd_kernel_model_free(m);
    if (!st && x->o.told) x->o.told(x->o.ctx, x->out->rounds, x->s->n, &x->out->score);
    return st;
}

/* ---- all of it ---- */

static void go_on(sampler *x) {
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < x->s->n; i++) {
        const cd_kernel_sample *v = &x->s->v[i];
        if (v->draw + 1 > x->next) x->next = v->draw + 1;
        if (v->round > x->out->rounds) x->out->rounds = v->round;
        if (v->draw == v->root && v->draw != last) x->roots++;
        last = v->draw;
    }
}

/* A share of a few held out samples says nothing. */
static bool is_good(const sampler *x) {
    return x->out->score.n >= HELD &&
           (double)x->out->score.within >= x->o.within * (double)x->out->score.n;
}

cdmpp_status cd_kernel_sample_run(const cd_kernel_prior *p, const cd_kernel_clock *c,
                                  const cd_kernel_sampler_options *o, cd_kernel_samples *s,
                                  cd_kernel_sampled *out, cdmpp_err *err) {
    sampler x = {.p = p, .c = c, .o = *o, .s = s, .out = out, .begin = c->now(c->ctx), .err = err};
    *out = (cd_kernel_sampled){0};
    if (!(x.o.target > 0)) x.o.target = 0.1;
    if (!(x.o.within > 0)) x.o.within = 0.95;
    if (!x.o.first) x.o.first = FIRST;
    if (!x.o.per_round) x.o.per_round = PER_ROUND;
    if (!x.o.around) x.o.around = AROUND;
    go_on(&x);
    while (x.roots < x.o.first && !is_over(&x)) CD_TRY(draw(&x, NULL, NULL, 0));
    CD_TRY(draw_types(&x));
    for (;;) {
        CD_TRY(train_and_score(&x));
        if (is_good(&x)) return CDMPP_OK; /* end: TARGET */
        if (is_over(&x)) return CDMPP_OK;
        CD_TRY(round_of(&x, ++out->rounds));
    }
}
