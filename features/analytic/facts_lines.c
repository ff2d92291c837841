/* Distinct cache lines, or pages, of an affine access, in closed form.
 *
 *   strides 4 (16), 448 (14), 6272 (3): runs of 64 bytes, 448 apart, in three planes
 *
 * Terms in rising order: one whose step leaves no whole granule between two copies of what is there
 * lengthens the run; the others multiply it. Of a run that may begin anywhere the mean over its
 * beginnings is taken; these are spread evenly over the multiples of the lowest bit of the strides,
 * for which a sum of floors has a closed form (Hermite). */
#include "features/analytic/analytic_internal.h"

typedef struct {
    int64_t run;             /* bytes without a whole free granule */
    int64_t stride, n, span; /* of the outermost level of copies; span: bytes of all */
    double copies;           /* of the levels within that one */
    uint64_t bits;           /* of everything that moves a run's beginning */
} set;

static void flush(set *s) {
    s->copies *= (double)s->n;
    s->n = 1;
    s->stride = 0;
}

static inline void add(set *s, int64_t stride, int64_t reach, int64_t granule) {
    if (reach < 0) reach = 0;
    s->span += reach;
    if (s->copies * (double)s->n <= 1 && stride < s->run + granule) {
        s->run += reach;
        return;
    }
    s->bits |= (uint64_t)stride;
    if (s->n > 1 && stride % s->stride == 0 && stride / s->stride <= s->n) {
        s->n += reach / s->stride;
        return;
    }
    flush(s);
    s->stride = stride;
    s->n = 1 + reach / stride;
}

/* Bytes that the terms of i's dimension reach beyond the tensor, if i is the widest of them. */
static int64_t outside(const cd_an_access *a, int32_t node, uint32_t i) {
    for (uint32_t k = 0; k < a->n_dim; k++) {
        int64_t reach = 0;
        if (a->out_dim[k].dim != a->t[i].dim) continue;
        for (uint32_t j = 0; j < a->n; j++) {
            if (a->t[j].dim != a->t[i].dim || a->t[j].node < node) continue;
            if (j > i) return 0;
            reach += a->t[j].reach;
        }
        const int64_t over = reach - cd_an_mul(a->out_dim[k].stride, a->out_dim[k].extent - 1);
        return over > 0 ? over : 0;
    }
    return 0;
}

double cd_facts_lines_count(const cd_an_access *a, int32_t node, int64_t granule, double *width) {
    set s = {.run = a->elem, .n = 1, .span = a->elem, .copies = 1, .bits = (uint64_t)granule};
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->t[i].node >= node)
            add(&s, a->t[i].stride, a->t[i].reach - (a->n_dim ? outside(a, node, i) : 0), granule);
        else s.bits |= (uint64_t)a->t[i].stride;
    }
    flush(&s);
    *width = (double)s.span;
    /* grid and granule are powers of two */
    const int64_t grid = (int64_t)(s.bits & (0 - s.bits)),
                  begin = a->n_dim && a->c < 0 ? 0 : a->c & (grid - 1);
    const double each = (double)((s.run - 1 + begin) & ~(grid - 1)) / (double)granule + 1;
    /* copies that lie within each other */
    const double lines = each * s.copies, most = (double)(s.span - 1) / (double)granule + 1;
    return lines < most ? lines : most;
}
