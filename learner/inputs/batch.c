/* Packs programs into a batch: rows or leaves one after another, with offsets, then scaled in
 * place. The room of a batch is bounded before training, so that filling one touches no heap. */
#include "learner/inputs/batch.h"

#include <string.h>

#include "learner/inputs/batch_internal.h"

static size_t at(const uint32_t *index, size_t i) { return index ? index[i] : i; }

/* Inner nodes, from the length of the list; one that is no tree is refused later. */
static size_t nodes(const cd_batch_spec *s, const cd_program_view *v, size_t program) {
    const size_t n =
        s->tree && v->tree_ptr ? (size_t)(v->tree_ptr[program + 1] - v->tree_ptr[program]) / 2 : 0;
    const size_t leaves = cd_batch_leaves(s, v, program);
    return n > leaves ? n - leaves : 0;
}

typedef size_t count_fn(const cd_batch_spec *s, const cd_program_view *v, size_t program);

/* Largest count of a program, and the sum of the n largest. The sum of the n largest counts comes
 * from a histogram: sorting a few hundred thousand programs would take longer. */
static cdmpp_status largest(const cd_batch_spec *s, const cd_program_view *v, const uint32_t *index,
                            size_t n_index, size_t n, count_fn *count, size_t *most, size_t *sum,
                            cdmpp_err *err) {
    *most = *sum = 0;
    for (size_t i = 0; i < n_index; i++) {
        const size_t c = count(s, v, at(index, i));
        if (c > *most) *most = c;
        *sum += c;
    }
    if (n >= n_index) return CDMPP_OK; /* all of them: no heap */
    *sum = 0;
    size_t *having = cd_mem_zalloc(*most + 1, sizeof *having);
    if (!having) return CD_FAIL(err, ENOMEM, "histogram of %zu leaves or nodes", *most);
    for (size_t i = 0; i < n_index; i++) having[count(s, v, at(index, i))]++;
    for (size_t c = *most; n > 0; c--) {
        const size_t k = having[c] < n ? having[c] : n;
        *sum += k * c;
        n -= k;
    }
    cd_mem_free(having);
    return CDMPP_OK;
}

cdmpp_status cd_batch_bound(const cd_batch_spec *spec, const cd_program_view *v,
                            const uint32_t *index, size_t n_index, size_t batch, cd_batch_dims *out,
                            cdmpp_err *err) {
    size_t most;
    *out = (cd_batch_dims){.n = batch < n_index ? batch : n_index};
    CD_TRY(largest(spec, v, index, n_index, out->n, cd_batch_leaves, &out->max_leaf, &out->n_tok,
                   err));
    return largest(spec, v, index, n_index, out->n, nodes, &most, &out->n_node, err);
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
    if (b->has_tree) cd_program_tree_plan(&b->tree, &b->slab, d->n, d->n_tok, d->n_node);
}

cdmpp_status cd_batch_init(cd_batch *b, const cd_batch_spec *spec, const cd_batch_dims *dims,
                           cdmpp_err *err) {
    *b = (cd_batch){.dims = *dims,
                    .w_tok = cd_batch_token_width(spec),
                    .w_prog = cd_batch_program_width(spec),
                    .w_dev = spec->w_dev,
                    .has_tree = spec->tree};
    carve(b);
    CD_TRY(cd_slab_alloc(&b->slab, err));
    carve(b);
    return CDMPP_OK;
}

void cd_batch_free(cd_batch *b) {
    cd_slab_free(&b->slab);
    *b = (cd_batch){0};
}

/* One program behind those that are there. The program is appended behind those that are there; the
 * caller has checked that there is room. */
static void put_program(cd_batch *b, const cd_batch_spec *spec, const cd_program_view *v,
                        size_t program, size_t i) {
    const size_t leaves = b->w_tok ? cd_batch_leaves(spec, v, program) : 0;
    if (leaves) {
        cd_batch_raw_tokens(spec, v, program, b->tok + b->n_tok * b->w_tok);
        for (size_t l = 0; l < leaves; l++)
            b->trips[b->n_tok + l] =
                spec->steps ? 0
                            : (float)cd_tree_input_log_trips(b->tok + (b->n_tok + l) * b->w_tok);
        for (size_t l = 0; l < leaves; l++)
            b->pos[b->n_tok + l] = spec->rows || spec->steps
                                       ? (int32_t)l
                                       : v->leaf_pos[(size_t)v->leaf_ptr[program] + l];
    }
    if (b->w_prog) cd_batch_raw_program(spec, v, program, b->prog + i * b->w_prog);
    if (b->w_dev)
        memcpy(b->dev + i * b->w_dev, spec->device + v->device[program] * b->w_dev,
               b->w_dev * sizeof *b->dev);
    b->flop[i] = v->flop ? v->flop[program] : -1;
    b->n_tok += leaves;
    b->tok_ptr[i + 1] = (uint32_t)b->n_tok;
    if (leaves > b->max_leaf) b->max_leaf = leaves;
}

static cdmpp_status put_tree(cd_batch *b, const cd_batch_spec *spec, const cd_program_view *v,
                             size_t program, cdmpp_err *err) {
    const size_t beg = (size_t)v->tree_ptr[program], n = (size_t)v->tree_ptr[program + 1] - beg;
    return cd_program_tree_add(&b->tree, v->tree + beg, n, v->leaf_pos + v->leaf_ptr[program],
                               cd_batch_leaves(spec, v, program), err);
}

/* Scaling comes last and in one piece, because long loops vectorise. */
cdmpp_status cd_batch_fill(cd_batch *b, const cd_batch_spec *spec, const cd_scalers *s,
                           const cd_program_view *v, const uint32_t *index, size_t n,
                           cdmpp_err *err) {
    b->n = b->n_tok = b->max_leaf = 0;
    if (n > b->dims.n) return CD_FAIL(err, ERANGE, "%zu programs in a batch for %zu", n, b->dims.n);
    b->tok_ptr[0] = 0;
    cd_program_tree_clear(&b->tree);
    for (size_t i = 0; i < n; i++) {
        const size_t p = at(index, i), leaves = b->w_tok ? cd_batch_leaves(spec, v, p) : 0;
        /* around a program of a shuffled batch the kernel maps up to some MB */
        if (i % 16 == 0) cd_spool_rest(v->spool);
        CD_TRY(cd_batch_check(spec, v, p, err));
        if (b->n_tok + leaves > b->dims.n_tok || leaves > b->dims.max_leaf)
            return CD_FAIL(err, ERANGE, "%zu leaves in a batch for %zu, at most %zu a program",
                           b->n_tok + leaves, b->dims.n_tok, b->dims.max_leaf);
        put_program(b, spec, v, p, i);
        if (b->has_tree) CD_TRY(put_tree(b, spec, v, p, err));
    }
    b->n = n;
    if (b->has_tree) cd_program_tree_close(&b->tree);
    cd_scaler_apply(&s->tok, b->tok, b->w_tok ? b->n_tok : 0);
    cd_scaler_apply(&s->trips, b->trips, b->w_tok ? b->n_tok : 0);
    cd_scaler_apply(&s->prog, b->prog, b->w_prog ? n : 0);
    cd_scaler_apply(&s->dev, b->dev, b->w_dev ? n : 0);
    return CDMPP_OK;
}
