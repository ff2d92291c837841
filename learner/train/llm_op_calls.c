/* What rows tell of the kernels that they ran: the least time of a call, where times do not fall
 * with the work; whether query heads are served one at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/train/train_internal.h"

enum { MIN_ROWS = 20, STEPS = 20, KERNEL_BITS = 24 /* of the key */ };
#define WIDEST 0.6  /* the largest floor tried is this quantile of the times */
#define GAIN   0.75 /* of the error without a floor: with more there is none */
/* of ln floors of kernels of one library and type: 0.5, 0.7 and 1 were compared on train rows of
 * A100, H100 and L40S; the variance of the floors themselves is near 0.5 */
#define VARIANCE 0.6
/* rows of that many times the floor tell what the GPU takes for its estimate */
#define OVER 1.3

/* A row of a group. The key tells kind, type, library and kernel; then the device. */
typedef struct {
    uint64_t key;
    uint32_t device;
    double time, base, alone; /* ln; alone: of alone_s, -inf where there is none */
} row;

static int by_key(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return x->time < y->time ? -1 : x->time > y->time;
}

/* Median of how much longer than its estimate a row takes, of the rows from `from` on. */
static double factor_of(const row *r, size_t from, size_t n, double *some) {
    if (from >= n) return NAN;
    for (size_t i = from; i < n; i++) some[i - from] = r[i].time - r[i].base;
    cd_sort_doubles(some, n - from);
    return some[(n - from) / 2];
}

static double error_of(const row *r, size_t n, double floor, double factor) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fmin(1, fabs(r[i].time - fmax(floor, r[i].base + factor)));
    return sum / (double)n;
}

/* ln of the floor that explains the times of one kernel on one device, sorted; NaN: none does. */
static double floor_of(const row *r, size_t n, double *some) {
    const double without = error_of(r, n, -INFINITY, factor_of(r, 0, n, some));
    double best = NAN, least = GAIN * without;
    for (size_t k = 0; k <= STEPS && n >= MIN_ROWS; k++) {
        const size_t at = (size_t)((double)(n - 1) * WIDEST * (double)k / STEPS);
        size_t from = at;
        while (from < n && r[from].time < r[at].time + log(OVER)) from++;
        const double factor = n - from >= MIN_ROWS / 4 ? factor_of(r, from, n, some) : 0,
                     error = error_of(r, n, r[at].time, factor);
        if (!(error < least)) continue;
        least = error;
        best = r[at].time;
    }
    return best;
}

static uint64_t key_of(const cd_llm_op_record *r, const cd_llm_op_codes *c) {
    return (uint64_t)r->kind << 56 | (uint64_t)r->type << 48 | (uint64_t)c->maker << KERNEL_BITS |
           (uint64_t)c->kernel;
}

/* The smallest floor of the devices that have the kernel; 0: one has none. r: rows of one kernel,
 * device after device. */
static double host_of(const row *r, size_t n, double *some) {
    double least = INFINITY;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && r[j].device == r[i].device;) j++;
        if (j - i < MIN_ROWS) continue;
        const double floor = floor_of(r + i, j - i, some);
        if (isnan(floor)) return 0;
        least = fmin(least, floor);
    }
    return isfinite(least) ? exp(least) : 0;
}

/* Do the times of rows that a kernel for single query heads may have run say that one did? */
static bool is_alone(const row *r, size_t n) {
    double with = 0, without = 0;
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(r[i].alone)) continue;
        with += fmin(1, fabs(r[i].time - fmax(r[i].base, r[i].alone)));
        without += fmin(1, fabs(r[i].time - r[i].base));
        rows++;
    }
    return rows >= MIN_ROWS && with < GAIN * without;
}

/* A kernel that nobody measured, of a library and type whose kernels all wait for the host, is
 * taken to wait, too. How long is a guess from the logarithms of the others: their mean, less the
 * variance of a guess, which makes the relative error least. Calls of one kind, type and library
 * stand from `first` on; `kernels` of them have rows. */
static void unknown(cd_llm_op_model *m, size_t first, size_t kernels) {
    double sum = 0, waits = 0;
    for (size_t i = first; i < m->n_call; i++)
        if (m->call[i].host_s > 0) waits++, sum += log(m->call[i].host_s);
    if (!(waits > 0) || waits < (double)kernels) return;
    cd_llm_op_call c = m->call[first];
    c.kernel = -1, c.alone = false, c.host_s = exp(sum / waits - VARIANCE * (1 + 1 / waits));
    m->call[m->n_call++] = c;
}

static void calls(cd_llm_op_model *m, const row *r, size_t n, double *some) {
    size_t first = 0, kernels = 0;
    for (size_t i = 0, j; i < n; i = j) {
        const uint64_t key = r[i].key;
        for (j = i; j < n && r[j].key == key;) j++;
        kernels += j - i >= MIN_ROWS;
        const cd_llm_op_call c = {(uint8_t)(key >> 56),          (uint8_t)(key >> 48),
                                  (float)(key >> 24 & 0xffffff), (float)(key & 0xffffff),
                                  host_of(r + i, j - i, some),   is_alone(r + i, j - i)};
        if (c.host_s > 0 || c.alone) m->call[m->n_call++] = c;
        if (j < n && r[j].key >> KERNEL_BITS == key >> KERNEL_BITS) continue;
        unknown(m, first, kernels);
        first = m->n_call, kernels = 0;
    }
}

cdmpp_status cd_llm_op_calls(const cd_llm_op_table *t, const uint8_t *use, const double *log_base,
                             cd_llm_op_model *m, cdmpp_err *err) {
    row *r = cd_mem_zalloc(t->n + 1, sizeof *r);
    double *some = cd_mem_zalloc(t->n + 1, sizeof *some);
    size_t n = 0, kinds = 0;
    for (size_t i = 0; r && some && i < t->n; i++) {
        const cd_llm_op_codes c =
            cd_llm_op_model_codes(m, t->names.text[t->r[i].stack], t->names.text[t->r[i].kernel]);
        cd_llm_op_estimate e;
        if (!use[i] || isnan(log_base[i]) || isnan(c.maker) || isnan(c.kernel)) continue;
        if (cd_llm_op_estimate_of(&t->r[i], t->known[t->device[i]], &e, NULL)) continue;
        r[n++] = (row){key_of(&t->r[i], &c), t->device[i], log(t->r[i].latency_s), log_base[i],
                       log(e.alone_s)};
    }
    if (r && some) qsort(r, n, sizeof *r, by_key);
    for (size_t i = 0; i < n; i++) kinds += !i || r[i].key != r[i - 1].key;
    m->call = CD_NEWN(&m->arena, cd_llm_op_call, 2 * kinds + 1);
    const bool ok = r && some && m->call;
    if (ok) calls(m, r, n, some);
    cd_mem_free(r);
    cd_mem_free(some);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu rows", t->n);
}
