/* two_stage -- profile two-stage: the tuner looks at all, the whole model at the best of them.
 *
 *   n candidates --> tuner --> the best max(16, n/8) --> whole model --> their results
 *                      |                                      | median ratio of the two
 *                      |                                      | medians, and of what orders
 *                      '--> the others, stretched by that ratio <---'
 *
 * The scores of the others are never better than the best that the whole model saw, so the whole
 * model decides which candidate is measured first. Which candidates are the best depends on the
 * batch: give candidates of one task. */
#include <math.h>

#include "predictor/api/api_internal.h"

enum { LEAST = 16, SHARE = 8 };

/* Scratch that only grows. first_s holds six arrays of `cap` seconds: the times of the first stage,
 * then work space. */
static cdmpp_status room(cdmpp_context *c, size_t n, cdmpp_err *err) {
    if (n <= c->cap) return CDMPP_OK;
    double *s = cd_mem_zalloc(12 * n, sizeof *s);
    size_t *best = cd_mem_zalloc(2 * n, sizeof *best);
    if (!s || !best) {
        cd_mem_free(s);
        cd_mem_free(best);
        return CD_FAIL(err, ENOMEM, "%zu candidates", n);
    }
    cd_mem_free(c->first_s);
    cd_mem_free(c->best);
    c->first_s = s;
    c->best = best;
    c->cap = 2 * n;
    return CDMPP_OK;
}

/* The k least of s in the order of the batch; of equal ones the first. Equal is what differs by no
 * more than `alike`: a product of matrices rounds by where in the batch a program stands, on
 * processors where OpenBLAS has other kernels for the last rows. work (n) is written. */
static const double alike = 1e-5;
static void least(const double *s, size_t n, size_t k, double *work, size_t *best) {
    for (size_t i = 0; i < n; i++) work[i] = s[i];
    cd_sort_doubles(work, n);
    const double below = work[k - 1] * (1 - alike), limit = work[k - 1] * (1 + alike);
    size_t room_for = k, at = 0;
    for (size_t i = 0; i < n; i++) room_for -= s[i] < below;
    for (size_t i = 0; i < n; i++)
        if (s[i] < below || (s[i] <= limit && room_for && room_for--)) best[at++] = i;
}

static double median(double *v, size_t n) {
    cd_sort_doubles(v, n);
    return n % 2 ? v[n / 2] : sqrt(v[n / 2 - 1] * v[n / 2]);
}

/* Least time of the whole model among k candidates, and the median of it over the tuner's. work (k)
 * may be second. */
static double compare(const double *first, const size_t *best, const double *second, size_t k,
                      double *ratio, double *work) {
    double top = INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < k; i++) {
        if (!isfinite(second[i])) continue;
        top = fmin(top, second[i]);
        work[n++] = second[i] / first[best[i]];
    }
    *ratio = n ? median(work, n) : 1;
    return n ? top : 0;
}

/* The best k have the whole model's answers already; the loop stretches all others by the ratio, to
 * no less than `top`. c->best is in the order of the batch, so one index follows it. */
cdmpp_status cd_two_stage(cdmpp_context *c, const cdmpp_batch *b, const cdmpp_result *r,
                          size_t *n_ok, cdmpp_err *err) {
    CD_TRY(room(c, b->n, err));
    double *first = c->first_s, *work = first + 4 * c->cap, ratio, moved;
    const cd_score_times times = {first, first + c->cap, first + 2 * c->cap, first + 3 * c->cap};
    const cd_score_times second = {work, work + c->cap, NULL, NULL};
    CD_TRY(cd_score_all(c, b, r, &times, n_ok, err));
    size_t k = b->n / SHARE > LEAST ? b->n / SHARE : LEAST;
    if (k > *n_ok) k = *n_ok;
    if (!k) return CDMPP_OK;
    least(first, b->n, k, work, c->best);
    CD_TRY(cd_score_some(c->second, b, c->best, k, r, &second, err));
    const double top = compare(first, c->best, second.order, k, &ratio, second.order);
    const double least_s = compare(times.median, c->best, second.median, k, &moved, second.median);
    for (size_t i = 0, seen = 0; i < b->n; i++) {
        if (seen < k && c->best[seen] == i) seen++;
        else if (isfinite(first[i]))
            cd_score_stretch(r, i, fmax(moved, least_s / times.median[i]),
                             fmax(ratio, top / first[i]), &times);
    }
    return CDMPP_OK;
}
