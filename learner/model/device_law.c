/* The law of devices that a model never saw: its numbers at a distance, an interval that is widened
 * by them, JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learner/inputs/inputs.h"
#include "learner/model/model.h"

/* The least spread: CPU models of one device asked about another, each of three CPUs about the two
 * others, on tasks that no choice was made from (single-learner.md of c7debccd, "Devices that a
 * model never saw"). It is of MACHINES machines and counts as much as they. */
enum { MACHINES = 3 };
static const cd_device_law least = {.shift = CD_DEVICE_LAW_LEAST_SHIFT,
                                    .own = CD_DEVICE_LAW_LEAST_OWN,
                                    .distance = CD_DEVICE_LAW_DISTANCE};

static const double ninety = 0.95, nine_tenths = 0.9; /* upper end of an interval of 90 % */

/* As of operators (learner/operators): half of the variance is there at any distance. It is never
 * less than at the usual one. */
static double grow(double distance, double usual) {
    return usual > 0 && isfinite(distance) && distance > usual ? (1 + distance / usual) / 2 : 1;
}

static double pooled(double prior, double by_least, double n, double by_law) {
    return (prior * by_least * by_least + n * by_law * by_law) / (prior + n);
}

double cd_device_law_peaks(const float *a, const float *b) {
    static const int peak[] = {CD_N_DEVICE_KIND + CD_DEVICE_COL_flops,
                               CD_N_DEVICE_KIND + CD_DEVICE_COL_bandwidth};
    double most = 0;
    for (size_t k = 0; k < sizeof peak / sizeof *peak; k++)
        if (!(a[peak[k] + CD_N_DEVICE_RATIO] > 0) && !(b[peak[k] + CD_N_DEVICE_RATIO] > 0))
            most = fmax(most, fabs((double)a[peak[k]] - (double)b[peak[k]]) * log(10));
    return most;
}

cd_device_doubt cd_device_law_at(const cd_device_law *l, double distance, double peaks) {
    const double prior = MACHINES - 1, n = l->n, freedom = prior + fmax(0, n - 1);
    const double shift2 = fmax(pooled(prior, least.shift, n, l->shift), least.shift * least.shift) *
                          grow(distance, l->n ? l->distance : least.distance);
    const double few = cd_normal_student(ninety, freedom) / cd_normal_quantile(ninety);
    return (cd_device_doubt){fmax(few * sqrt(shift2), peaks / cd_normal_quantile(ninety)),
                             sqrt(pooled(prior, least.own, n, l->own))};
}

/* Around the median: the answer of least |error| lies below it. */
void cd_device_doubt_widen(const cd_device_doubt *d, cd_model_prediction *p) {
    const double more = hypot(d->shift, d->own), z = more * cd_normal_quantile(ninety),
                 m = p->median_s;
    if (isnan(p->low_s) || !(p->low_s > 0)) return;
    p->low_s = fmin(p->low_s, m * exp(-hypot(fmax(0, log(m / p->low_s)), z)));
    p->high_s = fmax(p->high_s, m * exp(hypot(fmax(0, log(p->high_s / m)), z)));
    p->rel_std = hypot(p->rel_std, more);
}

/* ---- machines ---- */
static bool same_number(const float *a, const float *b, int column) {
    const int at = CD_N_DEVICE_KIND + column;
    return a[at] == b[at] && a[at + CD_N_DEVICE_RATIO] == b[at + CD_N_DEVICE_RATIO];
}

/* Programs for one machine may be compiled for several instruction sets, each of them a device: all
 * but the width of vectors, and what follows from it, is the same then. GPUs of one chip, with
 * other memory, clocks or power, say nothing of a chip that was never seen. */
bool cd_device_law_one_machine(const float *a, const float *b) {
    static const int own[] = {CD_DEVICE_COL_clock,  CD_DEVICE_COL_cores, CD_DEVICE_COL_bandwidth,
                              CD_DEVICE_COL_l1,     CD_DEVICE_COL_l2,    CD_DEVICE_COL_last_cache,
                              CD_DEVICE_COL_process},
                     chip[] = {CD_DEVICE_COL_cores, CD_DEVICE_COL_lanes,  CD_DEVICE_COL_vector,
                               CD_DEVICE_COL_l1,    CD_DEVICE_COL_shared, CD_DEVICE_COL_process};
    const bool gpu = a[0] > 0;
    const size_t n = gpu ? sizeof chip / sizeof *chip : sizeof own / sizeof *own;
    for (size_t k = 0; k < n; k++)
        if (!same_number(a, b, gpu ? chip[k] : own[k])) return false;
    return a[0] == b[0];
}

/* ---- errors ---- */
static int by_task(const void *a, const void *b) {
    const cd_device_law_error *x = a, *y = b;
    if (x->task != y->task) return x->task < y->task ? -1 : 1;
    return (x->r > y->r) - (x->r < y->r);
}

static int by_size(const void *a, const void *b) {
    const double x = fabs(((const cd_device_law_error *)a)->r),
                 y = fabs(((const cd_device_law_error *)b)->r);
    return (x > y) - (x < y);
}

/* Each task counts the same. Takes the mean off; the spread is what a normal law has nine of ten
 * errors within. */
void cd_device_law_parts(cd_device_law_error *e, size_t n, double *shift, double *spread) {
    double sum = 0, weight = 0, n_task = 0;
    qsort(e, n, sizeof *e, by_task);
    for (size_t i = 0, j; i < n; i = j, n_task++) {
        for (j = i; j < n && e[j].task == e[i].task;) j++;
        for (size_t k = i; k < j; k++) e[k].weight = 1 / (double)(j - i);
        for (size_t k = i; k < j; k++) sum += e[k].r * e[k].weight;
    }
    *shift = n ? sum / n_task : 0;
    *spread = 0;
    for (size_t i = 0; i < n; i++) e[i].r -= *shift;
    qsort(e, n, sizeof *e, by_size);
    for (size_t i = 0; i < n && weight < nine_tenths * n_task; i++) {
        weight += e[i].weight;
        *spread = fabs(e[i].r) / cd_normal_quantile(0.5 + nine_tenths / 2);
    }
}

/* ---- JSON ---- */
static const char *const kind[CD_N_DEVICE_LAW] = {"cpu", "gpu", "gpu of another width"};

bool cd_device_law_any(const cd_device_law law[CD_N_DEVICE_LAW]) {
    return law[CD_DEVICE_LAW_CPU].n || law[CD_DEVICE_LAW_GPU].n || law[CD_DEVICE_LAW_WIDTH].n;
}

void cd_device_law_write(const cd_device_law law[CD_N_DEVICE_LAW], cd_buf *b) {
    const char *before = "";
    cd_buf_puts(b, "{");
    for (int k = 0; k < CD_N_DEVICE_LAW; k++) {
        if (!law[k].n) continue;
        cd_buf_putf(b, "%s\"%s\":{\"n\":%u,\"shift\":%.9g,\"own\":%.9g,\"distance\":%.9g", before,
                    kind[k], law[k].n, law[k].shift, law[k].own, law[k].distance);
        if (law[k].peaks > 0) cd_buf_putf(b, ",\"peaks\":%.9g", law[k].peaks);
        cd_buf_puts(b, "}");
        before = ",";
    }
    cd_buf_puts(b, "}");
}

static cdmpp_status read_one(const cd_json *v, cd_device_law *l, cdmpp_err *err) {
    enum { MOST = 4096 };
    uint64_t n;
    CD_TRY(cd_json_need_count(v, "n", &n, err));
    if (n < 1 || n > MOST)
        return cd_err_key(err, CD_FAIL(err, ERANGE, "expected 1 to %d", MOST), "n");
    l->n = (uint32_t)n;
    CD_TRY(cd_json_need_real(v, "shift", 0, 20, &l->shift, err));
    CD_TRY(cd_json_need_real(v, "own", 0, 20, &l->own, err));
    CD_TRY(cd_json_need_real(v, "distance", 0, 1e9, &l->distance, err));
    /* models of before have none */
    return cd_json_get(v, "peaks") ? cd_json_need_real(v, "peaks", 0, 100, &l->peaks, err)
                                   : CDMPP_OK;
}

cdmpp_status cd_device_law_read(const cd_json *v, cd_device_law law[CD_N_DEVICE_LAW],
                                cdmpp_err *err) {
    for (int k = 0; k < CD_N_DEVICE_LAW; k++) {
        const cd_json *o = cd_json_get(v, kind[k]);
        law[k] = (cd_device_law){0};
        if (o) CD_TRY(cd_err_key(err, read_one(o, &law[k], err), kind[k]));
    }
    return CDMPP_OK;
}
