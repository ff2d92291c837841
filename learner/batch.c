#include "learner/batch.h"

#include <string.h>

#include "learner/batch_int.h"

static size_t at(const uint32_t *index, size_t i) { return index ? index[i] : i; }

cdmpp_status cd_batch_bound(const cd_view *v, const uint32_t *index, size_t n_index, size_t batch, cd_batch_dims *out,
                            cdmpp_err *err) {
    *out = (cd_batch_dims){.n = batch < n_index ? batch : n_index};
    for (size_t i = 0; i < n_index; i++) {
        const size_t leaves = cd_batch_leaves(v, at(index, i));
        if (leaves > out->max_leaf) out->max_leaf = leaves;
    }
    size_t *count = cd_calloc(out->max_leaf + 1, sizeof *count);
    if (!count) return CD_FAIL(err, ENOMEM, "histogram of %zu leaves", out->max_leaf);
    for (size_t i = 0; i < n_index; i++) count[cd_batch_leaves(v, at(index, i))]++;
    for (size_t leaves = out->max_leaf, left = out->n; left > 0; leaves--) {
        const size_t k = count[leaves] < left ? count[leaves] : left;
        out->n_tok += k * leaves;
        left -= k;
    }
    cd_free(count);
    return CDMPP_OK;
}

static void carve(cd_batch *b) {
    const cd_batch_dims *d = &b->dims;
    b->tok_ptr = cd_slab_take(&b->slab, d->n + 1, sizeof *b->tok_ptr);
    b->tok = cd_slab_floats(&b->slab, b->w_tok ? d->n_tok * b->w_tok : 0);
    b->trips = cd_slab_floats(&b->slab, b->w_tok ? d->n_tok : 0);
    b->pos = cd_slab_take(&b->slab, d->n_tok, sizeof *b->pos);
    b->prog = cd_slab_floats(&b->slab, d->n * b->w_prog);
    b->dev = cd_slab_floats(&b->slab, d->n * b->w_dev);
    b->flop = cd_slab_take(&b->slab, d->n, sizeof *b->flop);
}

cdmpp_status cd_batch_init(cd_batch *b, const cd_batch_spec *spec, const cd_batch_dims *dims, cdmpp_err *err) {
    *b = (cd_batch){.dims = *dims, .w_tok = cd_batch_token_width(spec), .w_prog = cd_batch_program_width(spec), .w_dev = spec->w_dev};
    carve(b);
    CD_TRY(cd_slab_alloc(&b->slab, err));
    carve(b);
    return CDMPP_OK;
}

void cd_batch_free(cd_batch *b) {
    cd_slab_free(&b->slab);
    *b = (cd_batch){0};
}

/* One program behind those that are there. */
static void put_program(cd_batch *b, const cd_batch_spec *spec, const cd_view *v, size_t program, size_t i) {
    const size_t leaves = b->w_tok ? cd_batch_leaves(v, program) : 0;
    if (leaves) {
        cd_batch_raw_tokens(spec, v, program, b->tok + b->n_tok * b->w_tok);
        for (size_t l = 0; l < leaves; l++) b->trips[b->n_tok + l] = (float)cd_input_log_trips(b->tok + (b->n_tok + l) * b->w_tok);
        memcpy(b->pos + b->n_tok, v->leaf_pos + v->leaf_ptr[program], leaves * sizeof *b->pos);
    }
    if (b->w_prog) cd_batch_raw_program(v, program, b->prog + i * b->w_prog);
    if (b->w_dev) memcpy(b->dev + i * b->w_dev, spec->device + v->device[program] * b->w_dev, b->w_dev * sizeof *b->dev);
    b->flop[i] = v->flop ? v->flop[program] : -1;
    b->n_tok += leaves;
    b->tok_ptr[i + 1] = (uint32_t)b->n_tok;
    if (leaves > b->max_leaf) b->max_leaf = leaves;
}

cdmpp_status cd_batch_fill(cd_batch *b, const cd_batch_spec *spec, const cd_scalers *s, const cd_view *v,
                           const uint32_t *index, size_t n, cdmpp_err *err) {
    b->n = b->n_tok = b->max_leaf = 0;
    if (n > b->dims.n) return CD_FAIL(err, ERANGE, "%zu programs in a batch for %zu", n, b->dims.n);
    b->tok_ptr[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t p = at(index, i), leaves = b->w_tok ? cd_batch_leaves(v, p) : 0;
        CD_TRY(cd_batch_check(spec, v, p, err));
        if (b->n_tok + leaves > b->dims.n_tok || leaves > b->dims.max_leaf)
            return CD_FAIL(err, ERANGE, "%zu leaves in a batch for %zu, at most %zu a program", b->n_tok + leaves,
                           b->dims.n_tok, b->dims.max_leaf);
        put_program(b, spec, v, p, i);
    }
    b->n = n;
    cd_scaler_apply(&s->tok, b->tok, b->w_tok ? b->n_tok : 0);
    cd_scaler_apply(&s->trips, b->trips, b->w_tok ? b->n_tok : 0);
    cd_scaler_apply(&s->prog, b->prog, b->w_prog ? n : 0);
    cd_scaler_apply(&s->dev, b->dev, b->w_dev ? n : 0);
    return CDMPP_OK;
}
