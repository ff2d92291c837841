/* The trials of a search: points, values, configurations. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner/hpo/hpo_internal.h"
#include "learner/hpo/hpo.h"

/* Give up after so many points in a row that are configurations had before. */
enum { MAX_MISSES = 1000 };

typedef struct {
    const cd_hpo_space *s;
    const cd_config *base;
    cd_hpo_sobol sobol;
    cd_arena *arena;
    cd_hpo_trial *trial;
    size_t n, n_slot;
    size_t *slot; /* (n_slot) hash table of trial number + 1 */
    cd_buf params;
    const char **set; /* (n_param) of the point at hand */
    size_t n_set;
} drawing;

static cd_conf view_of(cd_config *c) {
    size_t n;
    const cd_conf_key *key = cd_config_keys(&n);
    return (cd_conf){key, n, c, &c->arena, &c->diag};
}

/* Borrows the texts of `base`; what is set from now on is its own. */
static cd_config variant(const cd_config *base) {
    cd_config c = *base;
    c.arena = (cd_arena){0};
    c.diag = (cd_diag){0};
    return c;
}

static double unit(const drawing *d, size_t point, size_t k) {
    const uint64_t seed = (uint64_t)d->s->tune.seed;
    if (d->s->tune.sampler == CD_HPO_SAMPLER_SOBOL)
        return cd_hpo_sobol_unit(&d->sobol, seed, (uint32_t)point, (unsigned)k);
    return cd_rng_unit(cd_rng_at(seed, k), point);
}

/* ---- values ---- */
static double clamp(double x, double lo, double hi) { return fmin(fmax(x, lo), hi); }

/* Five digits: short in tables, and the same after printing and reading. */
static double shorten(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.5g", x);
    double y = x;
    if (sscanf(text, "%lf", &y) != 1) return x;
    return y;
}

static void print_at(const cd_hpo_space_param *p, double u, char *out, size_t n) {
    const double lo = p->lo, hi = p->hi;
    switch (p->kind) {
    case CD_HPO_PARAM_FIXED: break;
    case CD_HPO_PARAM_CHOICE: break;
    case CD_HPO_PARAM_INT:
        snprintf(out, n, "%.0f", clamp(floor(lo + u * (hi - lo + 1)), lo, hi));
        break;
    case CD_HPO_PARAM_LOG_INT:
        snprintf(out, n, "%.0f", clamp(floor(lo * pow((hi + 1) / lo, u)), lo, hi));
        break;
    case CD_HPO_PARAM_REAL:
        snprintf(out, n, "%.17g", clamp(shorten(lo + u * (hi - lo)), lo, hi));
        break;
    case CD_HPO_PARAM_LOG_REAL:
        snprintf(out, n, "%.17g", clamp(shorten(lo * pow(hi / lo, u)), lo, hi));
        break;
    }
}

/* "train.eta=0.1"; NULL: out of memory. */
static const char *assignment(drawing *d, const cd_hpo_space_param *p, double u) {
    char number[40];
    const char *value = number;
    const size_t pick = (size_t)(u * (double)p->value.n);
    if (p->kind <= CD_HPO_PARAM_CHOICE)
        value = p->value.v[pick < p->value.n ? pick : p->value.n - 1];
    else print_at(p, u, number, sizeof number);
    const size_t n = strlen(p->key->name) + strlen(value) + 2;
    char *text = cd_arena_alloc(d->arena, n, 1);
    if (text) snprintf(text, n, "%s=%s", p->key->name, value);
    return text;
}

/* ---- one point ---- */
static bool prints_as(cd_config *c, const cd_hpo_space_condition *w, cd_buf *scratch) {
    const cd_conf t = view_of(c);
    cd_buf_clear(scratch);
    cd_conf_print_value(scratch, &t, w->key);
    for (size_t i = 0; scratch->p && i < w->value.n; i++)
        if (!strcmp(scratch->p, w->value.v[i])) return true;
    return false;
}

/* The value is one of the condition's; of a list, one of its texts is. */
static bool equals(cd_config *c, const cd_hpo_space_condition *w, cd_buf *scratch) {
    if (w->key->type != CD_CONF_LIST) return prints_as(c, w, scratch);
    cd_texts *list = (cd_texts *)((char *)c + w->key->offset), all = *list;
    bool any = false;
    for (size_t i = 0; i < all.n && !any; i++) {
        *list = (cd_texts){1, &all.v[i]};
        any = prints_as(c, w, scratch);
    }
    *list = all;
    return any;
}

static bool holds(const cd_hpo_space_param *p, cd_config *c, cd_buf *scratch) {
    for (size_t i = 0; i < p->n_when; i++)
        if (!equals(c, &p->when[i], scratch)) return false;
    return true;
}

static void put_param(cd_buf *out, cd_config *c, const cd_conf_key *key) {
    const cd_conf t = view_of(c);
    const char *quote = key->type == CD_CONF_ENUM ? "\"" : "";
    cd_buf_putf(out, "%s\"%s\":%s", out->n > 1 ? "," : "", key->name, quote);
    cd_conf_print_value(out, &t, key);
    cd_buf_puts(out, quote);
}

/* Settings and parameters of a point; `point` is -1 for the base, which only takes
 * what is fixed. */
static cdmpp_status visit(drawing *d, cd_config *c, int64_t point, cdmpp_err *err) {
    cd_buf scratch = {0};
    cdmpp_status st = CDMPP_OK;
    d->n_set = 0;
    cd_buf_clear(&d->params);
    cd_buf_puts(&d->params, "{");
    for (size_t k = 0; !st && k < d->s->n_param; k++) {
        const cd_hpo_space_param *p = &d->s->param[k];
        if (!holds(p, c, &scratch)) continue;
        if (point >= 0 || p->kind == CD_HPO_PARAM_FIXED) {
            const char *a = assignment(d, p, point >= 0 ? unit(d, (size_t)point, k) : 0);
            if (!a) st = CD_FAIL(err, ENOMEM, "trial");
            else st = cd_config_set(c, a, err), d->set[d->n_set++] = a;
        }
        if (p->kind != CD_HPO_PARAM_FIXED) put_param(&d->params, c, p->key);
    }
    cd_buf_puts(&d->params, "}");
    if (!st && (scratch.oom || d->params.oom)) st = CD_FAIL(err, ENOMEM, "trial");
    cd_buf_free(&scratch);
    return st;
}

/* ---- distinct trials ---- */
static uint64_t hash(const char *s) {
    uint64_t h = 1;
    for (; *s; s++) h = cd_rng_mix(h ^ (unsigned char)*s);
    return h;
}

/* The slot where these parameters are, or an empty one. */
static size_t *find(const drawing *d, const char *params) {
    size_t i = (size_t)hash(params) & (d->n_slot - 1);
    while (d->slot[i] && strcmp(d->trial[d->slot[i] - 1].params, params) != 0)
        i = (i + 1) & (d->n_slot - 1);
    return &d->slot[i];
}

static cdmpp_status keep(drawing *d, size_t *slot, cdmpp_err *err) {
    cd_hpo_trial *t = &d->trial[d->n];
    t->params = cd_str_dup(d->arena, (cd_str){d->params.p, d->params.n});
    t->set.v = CD_NEWN(d->arena, const char *, d->n_set + 1);
    if (!t->params || !t->set.v) return CD_FAIL(err, ENOMEM, "trial");
    memcpy(t->set.v, d->set, d->n_set * sizeof *d->set);
    t->set.n = d->n_set;
    *slot = ++d->n;
    return CDMPP_OK;
}

static cdmpp_status draw_all(drawing *d, size_t want, cdmpp_err *err) {
    size_t misses = 0;
    for (int64_t point = d->s->tune.try_base ? -1 : 0; d->n < want && misses < MAX_MISSES;
         point++) {
        cd_config c = variant(d->base);
        cdmpp_status st = visit(d, &c, point, err);
        size_t *slot = st ? NULL : find(d, d->params.p);
        if (slot && *slot) misses++;
        else if (slot) misses = 0, st = keep(d, slot, err);
        cd_config_free(&c);
        CD_TRY(st);
    }
    return CDMPP_OK;
}

/* Draws that repeat an earlier trial are drawn again; the hash table finds them. */
cdmpp_status cd_hpo_space_sample(const cd_hpo_space *s, const cd_config *base, cd_arena *a,
                                 cd_hpo_trial **out, size_t *n, cdmpp_err *err) {
    const size_t want = (size_t)s->tune.trials;
    drawing d = {.s = s, .base = base, .arena = a, .n_slot = 16};
    while (d.n_slot < 2 * want) d.n_slot *= 2;
    cd_hpo_sobol_init(&d.sobol);
    d.trial = CD_NEWN(a, cd_hpo_trial, want);
    d.set = CD_NEWN(a, const char *, s->n_param + 1);
    d.slot = cd_mem_zalloc(d.n_slot, sizeof *d.slot);
    cdmpp_status st;
    if (d.trial && d.set && d.slot) st = draw_all(&d, want, err);
    else st = CD_FAIL(err, ENOMEM, "%zu trials", want);
    *out = d.trial;
    *n = d.n;
    cd_mem_free(d.slot);
    cd_buf_free(&d.params);
    return st;
}

cdmpp_status cd_hpo_space_config(const cd_hpo_space *s, const cd_config *base,
                                 const cd_hpo_trial *t, double budget, cd_config *out,
                                 cdmpp_err *err) {
    char text[128];
    *out = variant(base);
    for (size_t i = 0; i < t->set.n; i++) CD_TRY(cd_config_set(out, t->set.v[i], err));
    snprintf(text, sizeof text, "%s=%.15g", s->budget->name, budget);
    return cd_config_set(out, text, err);
}
