/* Puts the numbers of a store into the 164 columns: scaling, the five buffers with most cache
 * lines, and the curve of arithmetic intensity. */
#include "features/rows/rows_internal.h"

#include <math.h>
#include <string.h>

/* First columns of the groups of a row. */
enum {
    COL_ANN = 16,
    COL_GPU = 49,
    COL_BUF = 57,
    COL_CURVE = 147,
    COL_ALLOC = 157,
    COL_OUTER = 161
};

float cd_feature_slog(float x) {
    if (x == 0.0F) return 0.0F;
    return x > 0.0F ? log2f(x + 1.0F) : -log2f(-x + 1.0F);
}

static void put_block(float *o, const cd_access *a) {
    const bool reused = a->reuse_count > 0.5F;
    const float f[] = {a->bytes, a->unique_bytes, a->lines, a->unique_lines};
    o[a->type] = 1.0F;
    o[7 + a->reuse] = 1.0F;
    for (int k = 0; k < 4; k++) {
        o[3 + k] = cd_feature_slog(f[k]);
        o[13 + k] = cd_feature_slog(reused ? f[k] / a->reuse_count : f[k] * 2.0F);
    }
    o[10] = cd_feature_slog(a->reuse_iter);
    o[11] = cd_feature_slog(a->reuse_bytes);
    o[12] = cd_feature_slog(a->reuse_count);
    o[17] = cd_feature_slog(a->stride);
}

/* The buffers by (lines, bytes) descending; ties in TVM's map order, which is
 * last appearance first, with the stored buffer at the end. */
void cd_feature_row_blocks(const cd_store_ctx *c, float *out) {
    uint32_t taken[CD_MAX_BUFFERS];
    const uint32_t n = c->n_acc;
    for (uint32_t b = 0; b < CD_MAX_BUFFERS && b < n; b++) {
        uint32_t best = n;
        for (uint32_t k = n; k-- > 0;) {
            const cd_access *x = &c->acc[k], *y = best < n ? &c->acc[best] : NULL;
            bool used = false;
            for (uint32_t j = 0; j < b; j++) used = used || taken[j] == k;
            if (used) continue;
            if (!y || x->lines > y->lines || (x->lines == y->lines && x->bytes > y->bytes))
                best = k;
        }
        taken[b] = best;
        put_block(out + b * CD_BLOCK, &c->acc[best]);
    }
}

/* Arithmetic intensity over operations: ratios of logarithms, interpolated. */
void cd_feature_row_curve(const cd_store_ctx *c, double ops, float *out) {
    if (ops <= 0.0 || !c->n_loop) return;
    const float *o = c->ops_log, *m = c->mem_log;
    uint32_t pt = 0;
    for (int i = 0; i < CD_N_CURVE; i++) {
        const float target = o[c->n_loop - 1] * (float)(i + 1) / (float)CD_N_CURVE;
        while (pt + 1 < c->n_loop && (double)o[pt] < (double)target - 1e-4) pt++;
        if (pt == 0) {
            out[i] = o[0] / m[0] + 0.0F; /* a region of unknown size makes this -0 */
            continue;
        }
        const float base = o[pt - 1] / m[pt - 1];
        const float slope = (o[pt] / m[pt] - base) / (o[pt] - o[pt - 1]);
        out[i] = base + slope * (target - o[pt - 1]) + 0.0F;
    }
}

static void put_annotation(float *o, const cd_annotation *a) {
    o[0] = cd_feature_slog(a->num);
    o[1] = cd_feature_slog(a->prod);
    o[2] = cd_feature_slog(a->len);
    o[3 + (a->any ? 7 : 0)] = 1.0F; /* position type: none or mixed */
}

/* Columns 0 and 7 (multiply-add) stay 0: TVM never counts any. */
void cd_feature_row_put(float *o, const cd_store_set *s, const float *alloc) {
    memset(o, 0, CD_N_COL * sizeof *o);
    for (int k = 0; k < 6; k++) {
        o[1 + k] = cd_feature_slog(s->count[k]);
        o[8 + k] = cd_feature_slog(s->count[6 + k]);
    }
    o[14] = cd_feature_slog(s->count[CD_CNT_BOOL]);
    o[15] = cd_feature_slog(s->count[CD_CNT_SELECT]);
    for (int k = 0; k < CD_N_ANN; k++) put_annotation(o + COL_ANN + 11 * k, &s->ann[k]);
    memcpy(o + COL_GPU, s->gpu, sizeof s->gpu);
    memcpy(o + COL_BUF, s->block, sizeof s->block);
    memcpy(o + COL_CURVE, s->curve, sizeof s->curve);
    for (int k = 0; k < 4; k++) o[COL_ALLOC + k] = cd_feature_slog(alloc[k]);
    o[COL_OUTER] = cd_feature_slog(s->outer_prod);
    o[COL_OUTER + 1] = cd_feature_slog(s->n_loop);
    o[COL_OUTER + 2] = cd_feature_slog(s->unroll);
}
