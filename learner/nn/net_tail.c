/* What all networks end with: head, side branches for device and program, decoder, output. */
#include <string.h>

#include "learner/nn/nn_internal.h"

enum { ID_HEAD = 1000, ID_DEV = 1100, ID_PROG = 1200, ID_DECODER = 1300 };

static cd_mlp stack(const cd_net_config *s, uint64_t id) {
    return (cd_mlp){.norm = s->norm, .act = s->act, .dropout = s->dropout_mlp, .id = id};
}

/* Batch norm would turn the vector of the only device of a batch into zeros, and
 * with it whatever a device could tell: layer norm takes its place. */
static void build_side(cd_mlp *m, cd_params *p, const cd_net_config *s, const char *name, size_t in,
                       uint64_t id) {
    *m = stack(s, id);
    if (m->norm == CD_NORM_BATCH) m->norm = CD_NORM_LAYER;
    if (!in) return;
    for (int64_t k = 0; k < s->side_depth; k++, in = (size_t)s->side_width)
        cd_mlp_add(m, p, name, in, (size_t)s->side_width, true);
    cd_mlp_add(m, p, name, in, (size_t)s->embed, true);
}

/* The order of the parts is the order of their tensors in files. */
void cd_net_tail_build(cd_net_tail *t, cd_params *p, const cd_net_config *s, size_t in,
                       size_t w_dev, size_t w_prog) {
    t->head = stack(s, ID_HEAD);
    if (s->head_first) {
        cd_mlp_add(&t->head, p, "head", in, (size_t)s->head_first, false);
        in = (size_t)s->head_first;
    }
    for (int64_t k = 0; k < s->head_depth; k++, in = (size_t)s->head_width)
        cd_mlp_add(&t->head, p, "head", in, (size_t)s->head_width, true);
    cd_mlp_add(&t->head, p, "head", in, (size_t)s->embed, true);
    build_side(&t->dev, p, s, "device", w_dev, ID_DEV);
    build_side(&t->prog, p, s, "program", w_prog, ID_PROG);
    t->decoder = stack(s, ID_DECODER);
    in = (size_t)s->embed;
    for (int64_t k = 0; k < s->decoder_depth; k++, in = (size_t)s->decoder_width)
        cd_mlp_add(&t->decoder, p, "decoder", in, (size_t)s->decoder_width, true);
    cd_params_add_linear(p, "output", in, (size_t)s->n_out, &t->out_w, &t->out_b);
}

void cd_net_tail_plan(const cd_net_tail *t, cd_slab *s, size_t rows, size_t n, bool train,
                      cd_net_tail_run *r) {
    const size_t embed = cd_mlp_out(&t->head), latent = cd_mlp_out(&t->decoder);
    cd_mlp_plan(&t->head, s, rows, train, &r->head);
    cd_mlp_plan(&t->dev, s, n, train, &r->dev);
    cd_mlp_plan(&t->prog, s, n, train, &r->prog);
    cd_mlp_plan(&t->decoder, s, rows, train, &r->decoder);
    r->z = cd_slab_floats(s, rows * embed);
    if (!train) return;
    r->dz = cd_slab_floats(s, rows * embed);
    r->dh = cd_slab_floats(s, rows * latent);
    r->side = cd_slab_floats(s, n * embed);
}

/* ---- forward ---- */
/* z += side, every row of a program the same. */
static void add_side(const cd_net_tail_run *r, const float *side, size_t n, size_t w) {
    if (!r->ptr) {
        cd_ops_bias(r->z, 1, n * w, side);
        return;
    }
    for (size_t p = 0; p < n; p++)
        cd_ops_bias(r->z + r->ptr[p] * w, r->ptr[p + 1] - r->ptr[p], w, side + p * w);
}

/* A side branch has one row a program. Where rows are leaves (head sum), each leaf of a program
 * gets the same. */
void cd_net_tail_forward(const cd_net_tail *t, const cd_params *p, cd_net_tail_run *r,
                         const cd_batch *b, cd_threads *pool, const float *x, size_t rows,
                         size_t in, const uint32_t *ptr, float *out) {
    const size_t embed = cd_mlp_out(&t->head), n_out = p->param[t->out_b].dim[0],
                 latent = cd_mlp_out(&t->decoder);
    r->rows = rows;
    r->ptr = ptr;
    memcpy(r->z, cd_mlp_forward(&t->head, p, &r->head, pool, x, rows, in),
           rows * embed * sizeof *r->z);
    if (t->dev.n)
        add_side(r, cd_mlp_forward(&t->dev, p, &r->dev, pool, b->dev, b->n, b->w_dev), b->n, embed);
    if (t->prog.n)
        add_side(r, cd_mlp_forward(&t->prog, p, &r->prog, pool, b->prog, b->n, b->w_prog), b->n,
                 embed);
    r->h = cd_mlp_forward(&t->decoder, p, &r->decoder, pool, r->z, rows, embed);
    cd_gemm g = {.tb = true,
                 .m = rows,
                 .n = n_out,
                 .k = latent,
                 .a = r->h,
                 .lda = latent,
                 .b = cd_params_value(p, t->out_w),
                 .ldb = latent,
                 .c = out,
                 .ldc = n_out};
    cd_ops_gemm_run(pool, &g, 1);
    cd_ops_bias(out, rows, n_out, cd_params_value(p, t->out_b));
}

/* ---- backward ---- */
/* r->side = dz, summed over the rows of a program. */
static void take_side(const cd_net_tail_run *r, size_t n, size_t w) {
    if (!r->ptr) {
        memcpy(r->side, r->dz, n * w * sizeof *r->side);
        return;
    }
    memset(r->side, 0, n * w * sizeof *r->side);
    for (size_t p = 0; p < n; p++)
        cd_ops_colsum(r->dz + r->ptr[p] * w, r->ptr[p + 1] - r->ptr[p], w, r->side + p * w);
}

static void output_back(const cd_net_tail *t, cd_params *p, cd_net_tail_run *r, cd_threads *pool,
                        const float *d_out) {
    const size_t n_out = p->param[t->out_b].dim[0], latent = cd_mlp_out(&t->decoder);
    const cd_gemm g[2] = {
        cd_ops_linear_dw(d_out, r->h, r->rows, latent, n_out, cd_params_grad(p, t->out_w)),
        {.m = r->rows,
         .n = latent,
         .k = n_out,
         .a = d_out,
         .lda = n_out,
         .b = cd_params_value(p, t->out_w),
         .ldb = latent,
         .c = r->dh,
         .ldc = latent,
         .beta = 1}};
    cd_ops_gemm_run(pool, g, 2);
    cd_ops_colsum(d_out, r->rows, n_out, cd_params_grad(p, t->out_b));
}

void cd_net_tail_begin_backward(cd_net_tail_run *r, size_t n, const float *d_latent) {
    if (d_latent) memcpy(r->dh, d_latent, n * sizeof *r->dh);
    else memset(r->dh, 0, n * sizeof *r->dh);
}

/* The branches were added, so each receives the same gradient dz; those with one row a program its
 * sum over the rows. */
void cd_net_tail_backward(const cd_net_tail *t, cd_params *p, cd_net_tail_run *r, const cd_batch *b,
                          cd_threads *pool, const float *d_out, float *dx) {
    const size_t embed = cd_mlp_out(&t->head);
    if (d_out) output_back(t, p, r, pool, d_out);
    cd_mlp_backward(&t->decoder, p, &r->decoder, pool, r->dh, r->dz);
    if (t->dev.n) {
        take_side(r, b->n, embed);
        cd_mlp_backward(&t->dev, p, &r->dev, pool, r->side, NULL);
    }
    if (t->prog.n) {
        take_side(r, b->n, embed);
        cd_mlp_backward(&t->prog, p, &r->prog, pool, r->side, NULL);
    }
    cd_mlp_backward(&t->head, p, &r->head, pool, r->dz, dx);
}
