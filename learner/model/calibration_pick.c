/* The programs of a fit in an order of their own: by a hash of all that is known of each. So sums
 * do not depend on the caller's order, and the first CD_CALIBRATION_MAX_PROGRAM of them are a fair
 * sample. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/model/model_internal.h"

enum { INNER_FOLDS = 5 };

typedef struct {
    uint64_t key, key2;
    size_t at;
} ticket;

static uint64_t absorb(uint64_t h, const void *p, size_t n) {
    const unsigned char *b = p;
    for (; n >= 8; n -= 8, b += 8) {
        uint64_t v;
        memcpy(&v, b, 8);
        h = cd_rng_mix(h ^ v);
    }
    uint64_t v = 0;
    if (n) memcpy(&v, b, n);
    return n ? cd_rng_mix(h ^ v) : h;
}

static ticket ticket_of(const cd_calibration_input *in, uint64_t seed, size_t i) {
    uint64_t h = absorb(cd_rng_mix(seed), &in->log_y[i], sizeof in->log_y[i]);
    for (size_t k = 0; k < in->n_kind; k++)
        h = absorb(h, &in->kind_log_s[k * in->n + i], sizeof *in->kind_log_s);
    h = absorb(h, &in->group[i], sizeof in->group[i]);
    if (in->fold) h = absorb(h, &in->fold[i], sizeof in->fold[i]);
    const uint64_t x = absorb(h, in->x + i * in->width, in->width * sizeof *in->x);
    return (ticket){x, cd_rng_mix(h) ^ x, i};
}

/* Two programs with equal keys are equal in all that a fit sees, so either may come first. */
static int by_key(const void *a, const void *b) {
    const ticket *p = a, *q = b;
    if (p->key != q->key) return p->key < q->key ? -1 : 1;
    return (p->key2 > q->key2) - (p->key2 < q->key2);
}

/* A value that is not finite would spread into every number of the fit, so all are looked at. */
static cdmpp_status check(const cd_calibration_input *in, cdmpp_err *err) {
    if (in->n < 2 || !in->width || !in->n_fold)
        return CD_FAIL(err, ESCHEMA, "expected at least 2 programs, found %zu", in->n);
    if (!in->n_kind || in->n_kind > CD_CALIBRATION_MAX_KIND)
        return CD_FAIL(err, ESCHEMA, "expected 1 to %d kinds, found %zu", CD_CALIBRATION_MAX_KIND,
                       in->n_kind);
    if (in->n_fold > CD_CALIBRATION_MAX_FOLD || (in->n_fold > 1 && !in->fold))
        return CD_FAIL(err, ESCHEMA, "%zu folds", in->n_fold);
    for (size_t i = 0; i < in->n; i++) {
        if (in->n_fold > 1 && in->fold[i] >= in->n_fold)
            return CD_FAIL(err, ESCHEMA, "program %zu: fold %u of %zu", i, in->fold[i], in->n_fold);
        if (!isfinite(in->log_y[i]))
            return CD_FAIL(err, ENUMERIC, "program %zu: the measured latency is not finite", i);
        for (size_t k = 0; k < in->n_kind; k++)
            if (!isfinite(in->kind_log_s[k * in->n + i]))
                return CD_FAIL(err, ENUMERIC, "program %zu: answer of kind %zu is not finite", i,
                               k);
        for (size_t c = 0; c < in->width; c++)
            if (!isfinite(in->x[i * in->width + c]))
                return CD_FAIL(err, ENUMERIC, "program %zu: column %zu is not finite", i, c);
    }
    return CDMPP_OK;
}

static cdmpp_status memory(cd_calibration_set *s, cdmpp_err *err) {
    const size_t n = s->n;
    double **column[] = {&s->y, &s->m, &s->r, &s->spread, &s->outside, &s->raw, &s->work};
    s->kind = CD_NEWN(&s->arena, double, n * s->n_kind);
    s->at = CD_NEWN(&s->arena, size_t, n);
    s->group = CD_NEWN(&s->arena, uint32_t, n);
    s->fold = CD_NEWN(&s->arena, uint32_t, n);
    for (size_t k = 0; k < sizeof column / sizeof *column; k++)
        *column[k] = CD_NEWN(&s->arena, double, n);
    return s->arena.oom ? CD_FAIL(err, ENOMEM, "%zu programs", n) : CDMPP_OK;
}

void cd_calibration_set_free(cd_calibration_set *s) { cd_arena_free(&s->arena); }

/* ---- groups and folds ---- */
/* Task ids become 0, 1, .. in an order drawn from the seed: fold = number mod 5 is then a cut by
 * task. */
static cdmpp_status number_groups(cd_calibration_set *s, const uint32_t *id, uint64_t seed,
                                  cdmpp_err *err) {
    ticket *t = cd_mem_zalloc(s->n, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "%zu programs", s->n);
    for (size_t i = 0; i < s->n; i++)
        t[i] = (ticket){cd_rng_at(seed, id[s->at[i]]), id[s->at[i]], i};
    qsort(t, s->n, sizeof *t, by_key);
    for (size_t i = 0; i < s->n; i++) {
        if (i && t[i].key2 != t[i - 1].key2) s->n_group++;
        s->group[t[i].at] = (uint32_t)s->n_group;
    }
    s->n_group++;
    cd_mem_free(t);
    return CDMPP_OK;
}

/* The caller's folds where at least two have programs, else our own by task. */
static void number_folds(cd_calibration_set *s, const cd_calibration_input *in) {
    bool used[CD_CALIBRATION_MAX_SIGMA] = {0};
    uint32_t n_used = 0;
    s->n_fold =
        in->n_fold < CD_CALIBRATION_MAX_SIGMA ? (uint32_t)in->n_fold : CD_CALIBRATION_MAX_SIGMA;
    for (size_t i = 0; in->fold && i < s->n; i++) {
        s->fold[i] = in->n_fold > 1 ? in->fold[s->at[i]] % s->n_fold : 0;
        n_used += !used[s->fold[i]];
        used[s->fold[i]] = true;
    }
    s->own_fold = n_used < 2;
    if (!s->own_fold) return;
    s->n_fold = INNER_FOLDS;
    for (size_t i = 0; i < s->n; i++) s->fold[i] = s->group[i] % INNER_FOLDS;
}

/* Two hashes of 64 bits: programs with equal keys are equal in everything that a fit sees. */
static cdmpp_status order(const cd_calibration_input *in, uint64_t seed, cd_calibration_set *s,
                          cdmpp_err *err) {
    ticket *t = cd_mem_zalloc(in->n, sizeof *t);
    if (!t) return CD_FAIL(err, ENOMEM, "%zu programs", in->n);
    for (size_t i = 0; i < in->n; i++) t[i] = ticket_of(in, seed, i);
    qsort(t, in->n, sizeof *t, by_key);
    for (size_t i = 0; i < s->n; i++) {
        const size_t p = s->at[i] = t[i].at;
        s->y[i] = in->log_y[p];
        for (size_t k = 0; k < in->n_kind; k++)
            s->kind[k * s->n + i] = in->kind_log_s[k * in->n + p];
    }
    cd_mem_free(t);
    return CDMPP_OK;
}

cdmpp_status cd_calibration_pick(const cd_calibration_input *in, uint64_t seed,
                                 cd_calibration_set *s, cdmpp_err *err) {
    *s = (cd_calibration_set){0};
    CD_TRY(check(in, err));
    s->n = in->n < CD_CALIBRATION_MAX_PROGRAM ? in->n : CD_CALIBRATION_MAX_PROGRAM;
    s->n_kind = in->n_kind;
    s->width = in->width;
    CD_TRY(memory(s, err));
    CD_TRY(order(in, seed, s, err));
    CD_TRY(number_groups(s, in->group, seed, err));
    number_folds(s, in);
    return CDMPP_OK;
}
