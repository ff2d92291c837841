/* A box at the origin of two row-major arrays, and contents for a trial. */
#include "predictor/dynamic/dynamic_internal.h"

#include <math.h>
#include <string.h>

/* Dimensions behind the last one that differs are one run; the others are counted through. */
void cd_dynamic_copy_box(const cd_graph_shape *box, size_t element, const cd_graph_shape *from,
                         const void *src, const cd_graph_shape *to, void *dst) {
    int64_t at[CD_GRAPH_MAX_RANK] = {0};
    uint32_t rank = box->rank;
    size_t run = element;
    while (rank && box->dim[rank - 1] == from->dim[rank - 1] &&
           box->dim[rank - 1] == to->dim[rank - 1])
        run *= (size_t)box->dim[--rank];
    if (rank) run *= (size_t)box->dim[--rank];
    for (uint32_t i = 0; i < rank; i++)
        if (box->dim[i] < 1) return;
    for (;;) {
        int64_t a = 0, b = 0;
        for (uint32_t i = 0; i < box->rank; i++) {
            a = a * from->dim[i] + (i < rank ? at[i] : 0);
            b = b * to->dim[i] + (i < rank ? at[i] : 0);
        }
        memcpy((char *)dst + b * (int64_t)element, (const char *)src + a * (int64_t)element, run);
        uint32_t i = rank;
        while (i && ++at[i - 1] == box->dim[i - 1]) at[--i] = 0;
        if (!i) return;
    }
}

/* ---- contents ---- */

static cdmpp_status make(const cd_dynamic_value *v, int64_t size, bool filled, cd_arena *a,
                         void **out, cdmpp_err *err) {
    cd_graph_shape s;
    cd_hash h = cd_hash_start();
    cd_dynamic_shape(v, size, &s);
    cd_hash_add(&h, v->name, strlen(v->name));
    if (!(*out = cd_arena_zalloc(a, (size_t)cd_dynamic_shape_bytes(&s, v->dtype) + 1, 1)))
        return CD_FAIL(err, ENOMEM, "a tensor");
    if (!filled ||
        cd_tensor_fill(v->dtype, (uint32_t)h.a, 0, (size_t)cd_graph_shape_elements(&s), *out))
        return CDMPP_OK;
    return CD_FAIL(err, EUNSUPPORTED, "%.80s: numbers of its type are not made", v->name);
}

cdmpp_status cd_dynamic_data_make(const cd_dynamic *d, int64_t size, cd_dynamic_data *x,
                                  cdmpp_err *err) {
    x->input = CD_NEWN(&x->arena, void *, d->n_input);
    x->result = CD_NEWN(&x->arena, void *, d->n_result);
    x->expect = CD_NEWN(&x->arena, void *, d->n_result);
    if (!x->input || !x->result || !x->expect) return CD_FAIL(err, ENOMEM, "tensors");
    for (uint32_t k = 0; k < d->n_input; k++)
        CD_TRY(make(&d->input[k], size, true, &x->arena, &x->input[k], err));
    for (uint32_t k = 0; k < d->n_result; k++) {
        CD_TRY(make(&d->result[k], size, false, &x->arena, &x->result[k], err));
        CD_TRY(make(&d->result[k], size, false, &x->arena, &x->expect[k], err));
    }
    return CDMPP_OK;
}

static double difference(const float *got, const float *want, int64_t n) {
    double apart = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(got[i]) || !isfinite(want[i])) return (double)INFINITY;
        apart = fmax(apart, fabs((double)got[i] - (double)want[i]));
        most = fmax(most, fabs((double)want[i]));
    }
    return apart > 0 ? apart / most : 0;
}

double cd_dynamic_data_difference(const cd_dynamic *d, int64_t size, const cd_dynamic_data *x) {
    double most = 0;
    for (uint32_t k = 0; k < d->n_result; k++) {
        const cd_dynamic_value *v = &d->result[k];
        cd_graph_shape s;
        cd_dynamic_shape(v, size, &s);
        if (v->dtype == CD_F32)
            most = fmax(most, difference(x->result[k], x->expect[k], cd_graph_shape_elements(&s)));
        else
            most = fmax(most, memcmp(x->result[k], x->expect[k],
                                     (size_t)cd_dynamic_shape_bytes(&s, v->dtype))
                                  ? 1
                                  : 0);
    }
    return most;
}
