/* The trials of a search: points, values, configurations. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "learner/hpo/hpo.h"
#include "learner/hpo/hpo_internal.h"

/* Sobol's sequence in up to 40 dimensions: points that fill a space more evenly than random
 * ones. */

/* Which of 256 draws gives axis d its initial numbers. Found one axis after another: the
 * least sum over earlier axes and 2^m points, m = 2..12, of 4^t / 2^m, where t tells how
 * far the pair is from (2) of the header. The worst t of all pairs of the first 1,024
 * points is 6; with the first draw everywhere it would be 9. */
static const uint8_t pick_sobol[CD_HPO_SOBOL_DIMS] = {
    0,  0,  0,  1,   4,   16, 147, 126, 82,  122, 14,  12,  104, 62,  235, 148, 58, 22, 156, 204,
    30, 85, 19, 248, 107, 20, 66,  248, 159, 114, 186, 182, 98,  246, 240, 198, 34, 4,  12,  52};

/* x generates all 2^degree - 1 residues of the polynomial. */
static bool primitive(uint32_t poly, unsigned degree) {
    uint32_t x = 1;
    for (uint32_t k = 1; k < 1u << degree; k++) {
        x <<= 1;
        if (x >> degree & 1) x ^= poly;
        if (x == 1) return k == (1u << degree) - 1;
    }
    return false;
}

static void axis(uint32_t v[32], unsigned d, uint32_t poly, unsigned degree) {
    uint32_t m[33];
    for (unsigned k = 1; k <= 32; k++) {
        if (k <= degree) { /* odd and below 2^k, else free */
            m[k] = (uint32_t)(cd_rng_at(d, 64u * pick_sobol[d] + k) >> 40 & ((1u << k) - 1)) | 1;
        } else {
            m[k] = m[k - degree] ^ m[k - degree] << degree;
            for (unsigned i = 1; i < degree; i++)
                if (poly >> (degree - i) & 1) m[k] ^= m[k - i] << i;
        }
        v[k - 1] = m[k] << (32 - k);
    }
}

void cd_hpo_sobol_init(cd_hpo_sobol *s) {
    unsigned d = 1;
    for (unsigned k = 0; k < 32; k++) s->v[0][k] = 0x80000000u >> k;
    for (unsigned degree = 1; d < CD_HPO_SOBOL_DIMS; degree++)
        for (uint32_t poly = (1u << degree) + 1; poly < 2u << degree && d < CD_HPO_SOBOL_DIMS;
             poly += 2)
            if (primitive(poly, degree)) {
                axis(s->v[d], d, poly, degree);
                d++;
            }
}

uint32_t cd_hpo_sobol_digits(const cd_hpo_sobol *s, uint32_t i, unsigned d) {
    uint32_t x = 0;
    for (unsigned k = 0; i; k++, i >>= 1)
        if (i & 1) x ^= s->v[d][k];
    return x;
}

double cd_hpo_sobol_unit(const cd_hpo_sobol *s, uint64_t seed, uint32_t i, unsigned d) {
    const uint32_t x = cd_hpo_sobol_digits(s, i, d);
    const uint64_t stream = cd_rng_at(seed, d);
    uint32_t y = 0;
    /* node of the tree of digits: its depth and the digits before */
    for (unsigned k = 0; k < 32; k++) {
        const uint64_t node = (uint64_t)1 << k | (k ? x >> (32 - k) : 0);
        const uint32_t coin = (uint32_t)(cd_rng_at(stream, node) >> 63);
        y = y << 1 | ((x >> (31 - k) & 1) ^ coin);
    }
    return (double)y * 0x1p-32;
}

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
