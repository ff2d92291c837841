/* Program vectors scaled to equal spread, in which distances mean something for clustering. */
#include "dataset/select/select.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* v (2 n_col): means, then maxima of the rows of a program. */
static void summarise(const cd_dataset *d, size_t p, float *v) {
    const int64_t a = d->row_ptr[p], b = d->row_ptr[p + 1];
    for (size_t j = 0; j < d->n_col; j++) {
        double sum = 0;
        float most = -INFINITY;
        for (int64_t r = a; r < b; r++) {
            sum += (double)d->row[(size_t)r * d->n_col + j];
            most = fmaxf(most, d->row[(size_t)r * d->n_col + j]);
        }
        v[j] = (float)(sum / (double)(b - a));
        v[d->n_col + j] = most;
    }
}

/* Column j of v (n, m) to zero mean and unit deviation; false when it does not vary. */
static bool standardise(float *v, size_t n, size_t m, size_t j) {
    double mean = 0, var = 0;
    for (size_t i = 0; i < n; i++) mean += (double)v[i * m + j] / (double)n;
    for (size_t i = 0; i < n; i++)
        var += ((double)v[i * m + j] - mean) * ((double)v[i * m + j] - mean) / (double)n;
    const double std = sqrt(var);
    if (!(std > 1e-6 * (1 + fabs(mean)))) return false;
    for (size_t i = 0; i < n; i++) v[i * m + j] = (float)(((double)v[i * m + j] - mean) / std);
    return true;
}

cdmpp_status cd_task_embedding_rows(const cd_dataset *d, const size_t *program, size_t n, float **x,
                                    size_t *dim, cdmpp_err *err) {
    const size_t m = 2 * d->n_col;
    float *v = cd_mem_zalloc(n * m + 1, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "vectors of %zu programs", n);
    for (size_t i = 0; i < n; i++) summarise(d, program[i], v + i * m);
    size_t kept = 0;
    for (size_t j = 0; j < m; j++) {
        if (!standardise(v, n, m, j)) continue;
        /* kept <= j: columns behind are untouched */
        for (size_t i = 0; i < n; i++) v[i * m + kept] = v[i * m + j];
        kept++;
    }
    if (!kept && n)
        for (size_t i = 0; i < n; i++) v[i * m + kept] = 0;
    *dim = kept ? kept : 1;
    for (size_t i = 1; i < n; i++) memmove(v + i * *dim, v + i * m, *dim * sizeof *v);
    *x = v;
    return CDMPP_OK;
}
