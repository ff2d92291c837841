/* What was asked before: a table of hashes, and arrays for small whole numbers. */
#include "predictor/serving/serving_memo.h"

#include <string.h>

enum { PAGE = 512, FIRST = 256, COLUMN = 64 };

/* ---- memo ---- */
/* Whole numbers have their digits in the upper bits of a double: each product brings them down. */
static uint64_t hash_of(const double *key, size_t n) {
    uint64_t h = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &key[i], sizeof bits);
        h = (h ^ bits) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    return cd_rng_mix(h);
}

static double *entry(const cd_serving_memo *m, size_t i) {
    return m->page[i / PAGE] + i % PAGE * (m->n_key + m->n_value);
}

/* Slots alone move; the half of the hash that they have is enough to place them. */
static bool widen(cd_serving_memo *m) {
    const size_t n = m->n_slot ? 2 * m->n_slot : FIRST;
    uint64_t *wide = cd_mem_zalloc(n, sizeof *wide);
    if (!wide) return false;
    for (size_t i = 0; i < m->n_slot; i++) {
        size_t k = (size_t)(m->slot[i] >> 32) & (n - 1);
        if (!m->slot[i]) continue;
        while (wide[k]) k = (k + 1) & (n - 1);
        wide[k] = m->slot[i];
    }
    cd_mem_free(m->slot);
    m->slot = wide, m->n_slot = n;
    return true;
}

static double *add(cd_serving_memo *m, const double *key, uint64_t tag, size_t at) {
    if (m->n / PAGE == m->n_page) {
        if (CD_GROW(m->page, m->n_page, m->cap_page)) return NULL;
        if (!(m->page[m->n_page] = cd_mem_zalloc(PAGE * (m->n_key + m->n_value), sizeof(double))))
            return NULL;
        m->n_page++;
    }
    double *e = entry(m, m->n);
    memcpy(e, key, m->n_key * sizeof *key);
    m->slot[at] = tag << 32 | ++m->n;
    return e + m->n_key;
}

double *cd_serving_memo_at(cd_serving_memo *m, const double *key) {
    if (2 * (m->n + 1) > m->n_slot && !widen(m)) return NULL;
    const uint64_t tag = hash_of(key, m->n_key) >> 32;
    size_t i = (size_t)tag & (m->n_slot - 1);
    for (; m->slot[i]; i = (i + 1) & (m->n_slot - 1)) {
        if (m->slot[i] >> 32 != tag) continue;
        double *e = entry(m, (size_t)(m->slot[i] & UINT32_MAX) - 1);
        if (!memcmp(e, key, m->n_key * sizeof *key)) return e + m->n_key;
    }
    return add(m, key, tag, i);
}

void cd_serving_memo_free(cd_serving_memo *m) {
    for (size_t i = 0; i < m->n_page; i++) cd_mem_free(m->page[i]);
    cd_mem_free(m->page);
    cd_mem_free(m->slot);
    *m = (cd_serving_memo){.n_key = m->n_key, .n_value = m->n_value};
}

/* ---- sums ---- */
cdmpp_status cd_serving_sums_new(cd_serving_sums *s, size_t n_value, size_t near_a, size_t near_b,
                                 cdmpp_err *err) {
    *s = (cd_serving_sums){.near_a = near_a,
                           .near_b = near_b,
                           .far = {.n_key = 2, .n_value = n_value},
                           .column = cd_mem_zalloc(near_b + 1, sizeof *s->column)};
    return s->column ? CDMPP_OK : CD_FAIL(err, ENOMEM, "sums");
}

void cd_serving_sums_free(cd_serving_sums *s) {
    for (size_t k = 0; s->column && k < s->near_b; k++) cd_mem_free(s->column[k].v);
    cd_mem_free(s->column);
    cd_serving_memo_free(&s->far);
    *s = (cd_serving_sums){0};
}

static bool lengthen(cd_serving_column *c, size_t least, size_t most, size_t n_value) {
    size_t n = c->n ? c->n : COLUMN;
    while (n <= least) n *= 2;
    if (n > most) n = most;
    double *v = cd_mem_zalloc(n * n_value, sizeof *v);
    if (!v) return false;
    if (c->n) memcpy(v, c->v, c->n * n_value * sizeof *v);
    cd_mem_free(c->v);
    *c = (cd_serving_column){v, n};
    return true;
}

double *cd_serving_sums_at(cd_serving_sums *s, double a, double b) {
    const double key[] = {a, b};
    if (!(a >= 0 && b >= 0 && a < (double)s->near_a && b < (double)s->near_b))
        return cd_serving_memo_at(&s->far, key);
    const size_t i = (size_t)a, k = (size_t)b;
    if ((double)i < a || (double)k < b) return cd_serving_memo_at(&s->far, key);
    if (i >= s->column[k].n && !lengthen(&s->column[k], i, s->near_a, s->far.n_value)) return NULL;
    return &s->column[k].v[i * s->far.n_value];
}
