/* The format of Hugging Face for weights: a JSON header, then the values. PyTorch and numpy read it
 * without our help. */
#include "learner/tensor/tensor.h"

#include <math.h>
#include <string.h>

/* Values are written and read as the machine has them. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors are little-endian");

static size_t count(size_t n_dim, const size_t *dim) {
    size_t n = 1;
    for (size_t i = 0; i < n_dim; i++) n *= dim[i];
    return n;
}

/* The header is padded to a multiple of 8, so that the values are aligned in a mapped file. */
void cd_safetensors_write(cd_buf *out, const cd_tensor *t, size_t n, const char *metadata) {
    cd_buf h = {0};
    size_t at = 0;
    cd_buf_putf(&h, "{\"__metadata__\":%s", metadata ? metadata : "{}");
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = count(t[i].n_dim, t[i].dim) * sizeof(float);
        cd_buf_putf(&h, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", t[i].name);
        for (size_t k = 0; k < t[i].n_dim; k++) cd_buf_putf(&h, k ? ",%zu" : "%zu", t[i].dim[k]);
        cd_buf_putf(&h, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        at += bytes;
    }
    cd_buf_puts(&h, "}");
    while (h.n % 8 && !h.oom) cd_buf_puts(&h, " ");
    const uint64_t size = h.n;
    cd_buf_put(out, (const char *)&size, 8);
    cd_buf_put(out, h.p ? h.p : "", h.n);
    for (size_t i = 0; i < n; i++)
        cd_buf_put(out, (const char *)t[i].value, count(t[i].n_dim, t[i].dim) * sizeof(float));
    out->oom = out->oom || h.oom;
    cd_buf_free(&h);
}

cdmpp_status cd_safetensors_open(cd_arena *a, const void *bytes, size_t n, cd_safetensors *f,
                                 cdmpp_err *err) {
    uint64_t size;
    if (n < 8) return CD_FAIL(err, EPARSE, "expected a safetensors file, found %zu bytes", n);
    memcpy(&size, bytes, 8);
    if (size > n - 8) return CD_FAIL(err, EPARSE, "safetensors header longer than the file");
    const char *text = (const char *)bytes + 8;
    CD_TRY(cd_json_parse(a, text, (size_t)size, &f->header, err));
    if (f->header->kind != CD_JSON_OBJ)
        return CD_FAIL(err, EPARSE, "expected an object as safetensors header");
    f->data = text + size;
    f->n_data = n - 8 - (size_t)size;
    return CDMPP_OK;
}

static bool same_shape(const cd_json *t, size_t n_dim, const size_t *dim) {
    const cd_json *shape = cd_json_get(t, "shape"), *type = cd_json_get(t, "dtype");
    if (!type || type->kind != CD_JSON_STR || !cd_str_is(type->u.s, "F32")) return false;
    if (!shape || shape->kind != CD_JSON_ARR || shape->n != n_dim) return false;
    const cd_json *v = shape->u.child;
    for (size_t i = 0; i < n_dim; i++, v = v->next)
        if (v->kind != CD_JSON_INT || v->u.i < 0 || (uint64_t)v->u.i != dim[i]) return false;
    return true;
}

/* No training writes others, and a network that holds one answers with none, which nobody may
 * notice where it only ranks. */
static cdmpp_status check_finite(const char *name, const float *value, size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(value[i]))
            return CD_FAIL(err, EMODEL, "tensor \"%s\": number %zu is %g: expected finite ones",
                           name, i, (double)value[i]);
    return CDMPP_OK;
}

/* The offsets come from the file, so they are compared with its length before anything is read. */
cdmpp_status cd_safetensors_get(const cd_safetensors *f, const char *name, size_t n_dim,
                                const size_t *dim, float *value, cdmpp_err *err) {
    const cd_json *t = cd_json_get(f->header, name);
    if (!t) return CD_FAIL(err, EMODEL, "no tensor \"%s\"", name);
    if (!same_shape(t, n_dim, dim))
        return CD_FAIL(err, EMODEL, "tensor \"%s\": expected F32 [%zu%s%.0zu]", name, dim[0],
                       n_dim > 1 ? "," : "", n_dim > 1 ? dim[1] : 0);
    const size_t bytes = count(n_dim, dim) * sizeof(float);
    const cd_json *o;
    int64_t beg, end;
    CD_TRY(cd_json_arr(cd_json_get(t, "data_offsets"), 2, &o, err));
    CD_TRY(cd_json_int(o, 0, INT64_MAX, &beg, err));
    CD_TRY(cd_json_int(o->next, 0, INT64_MAX, &end, err));
    if ((uint64_t)end > f->n_data || beg > end || (uint64_t)(end - beg) != bytes)
        return CD_FAIL(err, EPARSE, "tensor \"%s\" lies outside the file", name);
    memcpy(value, f->data + beg, bytes);
    return check_finite(name, value, bytes / sizeof *value, err);
}

const cd_json *cd_safetensors_meta(const cd_safetensors *f, const char *key) {
    const cd_json *m = cd_json_get(f->header, "__metadata__");
    const cd_json *v = m ? cd_json_get(m, key) : NULL;
    return v && v->kind == CD_JSON_STR ? v : NULL;
}

size_t cd_safetensors_count(const cd_safetensors *f) {
    return f->header->n - (cd_json_get(f->header, "__metadata__") ? 1 : 0);
}
