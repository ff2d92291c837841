/* Boxes of tensors: intersection, whether a box is one run of memory, the same elements in another
 * shape, copying. Partitioned networks move boxes between devices; a box that is a run moves with
 * one copy. */
#include "base/core/core.h"

#include <string.h>

cd_box cd_box_whole(uint32_t rank, const int64_t *shape) {
    cd_box b = {.rank = rank};
    for (uint32_t d = 0; d < rank; d++) b.n[d] = shape[d];
    return b;
}

int64_t cd_box_elements(const cd_box *b) {
    int64_t n = 1;
    for (uint32_t d = 0; d < b->rank; d++) n *= b->n[d];
    return n;
}

bool cd_box_equal(const cd_box *a, const cd_box *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->lo[d] != b->lo[d] || a->n[d] != b->n[d]) return false;
    return true;
}

bool cd_box_inside(const cd_box *in, const cd_box *out) {
    for (uint32_t d = 0; d < in->rank; d++)
        if (in->lo[d] < out->lo[d] || in->lo[d] + in->n[d] > out->lo[d] + out->n[d]) return false;
    return true;
}

bool cd_box_meet(const cd_box *a, const cd_box *b, cd_box *out) {
    cd_box r = {.rank = a->rank};
    bool any = true;
    for (uint32_t d = 0; d < a->rank; d++) {
        const int64_t ae = a->lo[d] + a->n[d], be = b->lo[d] + b->n[d], e = ae < be ? ae : be;
        r.lo[d] = a->lo[d] > b->lo[d] ? a->lo[d] : b->lo[d];
        r.n[d] = e > r.lo[d] ? e - r.lo[d] : 0;
        any = any && r.n[d] > 0;
    }
    if (!any) memset(r.n, 0, sizeof r.n);
    *out = r;
    return any;
}

void cd_box_strides(uint32_t rank, const int64_t *shape, int64_t *stride) {
    int64_t s = 1;
    for (uint32_t d = rank; d-- > 0; s *= shape[d]) stride[d] = s;
}

/* Behind the first dimension that it has more than one element of, a run has all of every
 * dimension. */
bool cd_box_run(const cd_box *b, const int64_t *shape, int64_t *first) {
    int64_t stride[CD_BOX_RANK], at = 0;
    bool seen = false, run = true;
    cd_box_strides(b->rank, shape, stride);
    for (uint32_t d = 0; d < b->rank; d++) {
        at += b->lo[d] * stride[d];
        if (seen && b->n[d] != shape[d]) run = false;
        seen = seen || b->n[d] != 1;
    }
    *first = at;
    return run || !cd_box_elements(b);
}

/* The box with this first element and number, if it is one, of a row-major shape: all elements lie
 * in a row. */
static bool run_box(int64_t first, int64_t n, uint32_t rank, const int64_t *to, cd_box *out) {
    int64_t stride[CD_BOX_RANK];
    cd_box_strides(rank, to, stride);
    *out = (cd_box){.rank = rank};
    for (uint32_t d = 0; d < rank; d++) {
        out->lo[d] = first / stride[d];
        first %= stride[d];
        out->n[d] = n >= stride[d] ? n / stride[d] : 1;
        if (n >= stride[d] && (n % stride[d] || out->lo[d] + out->n[d] > to[d])) return false;
        if (n >= stride[d]) n = stride[d];
    }
    return true;
}

/* Dimensions of 1 do not matter; else only a run has the same elements in a row. */
static bool squeeze(const cd_box *b, const int64_t *shape, uint32_t rank, const int64_t *to,
                    cd_box *out) {
    uint32_t d = 0;
    *out = (cd_box){.rank = rank};
    for (uint32_t k = 0; k < rank; k++) {
        out->n[k] = 1;
        if (to[k] == 1) continue;
        while (d < b->rank && shape[d] == 1) d++;
        if (d == b->rank || shape[d] != to[k]) return false;
        out->lo[k] = b->lo[d];
        out->n[k] = b->n[d++];
    }
    while (d < b->rank && shape[d] == 1) d++;
    return d == b->rank;
}

bool cd_box_reshape(const cd_box *b, const int64_t *shape, uint32_t rank, const int64_t *to,
                    cd_box *out) {
    int64_t first;
    if (cd_box_elements(b) && squeeze(b, shape, rank, to, out)) return true;
    const cd_box all = cd_box_whole(b->rank, shape);
    *out = cd_box_whole(rank, to);
    if (cd_box_equal(b, &all)) return true;
    if (!cd_box_elements(b) || !cd_box_run(b, shape, &first)) return false;
    return run_box(first, cd_box_elements(b), rank, to, out);
}

/* One dimension a level; the innermost one is a single memcpy where both sides are contiguous. */
void cd_box_copy(void *to, const int64_t *ts, const void *from, const int64_t *fs, uint32_t rank,
                 const int64_t *n, size_t size) {
    if (!rank) {
        memcpy(to, from, size);
        return;
    }
    if (rank == 1 && ts[0] == 1 && fs[0] == 1) {
        if (n[0] > 0) memcpy(to, from, (size_t)n[0] * size);
        return;
    }
    for (int64_t i = 0; i < n[0]; i++)
        cd_box_copy((char *)to + (size_t)(i * ts[0]) * size, ts + 1,
                    (const char *)from + (size_t)(i * fs[0]) * size, fs + 1, rank - 1, n + 1, size);
}
