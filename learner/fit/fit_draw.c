/* Which programs a step shows. All draws are functions of seed, epoch and step, so a training that
 * goes on from a checkpoint needs no state of a generator. */
#include <string.h>

#include "base/core/core.h"
#include "learner/fit/fit_internal.h"
#include "learner/tensor/tensor.h"
#include "learner/loss/loss.h"

enum { SHUFFLE = 1, SLICES = 2, TARGET = 3 }; /* streams of the seed */

void cd_fit_shuffle(uint32_t *v, size_t n, uint64_t key) {
    for (size_t i = n; i > 1; i--) {
        const size_t k = (size_t)(cd_rng_unit(key, i) * (double)i);
        const uint32_t t = v[i - 1];
        v[i - 1] = v[k];
        v[k] = t;
    }
}

static uint64_t key_of(const cd_fitting *f, uint64_t stream, uint64_t epoch) {
    return cd_rng_at(cd_rng_at(f->spec->seed, stream), epoch);
}

/* Slices of one group in random order: f->order is shuffled already, so a stable sort
 * by group leaves each group in random order; then whole slices are dealt. */
static void deal_slices(cd_fitting *f, uint64_t epoch) {
    const size_t n = f->data->n_train, slice = (size_t)f->spec->slice;
    size_t *by_group = f->sort, n_slice = 0, at = 0;
    uint32_t *group = (uint32_t *)(void *)(f->sort + 2 * n); /* of order[i] */
    for (size_t i = 0; i < n; i++) group[i] = f->data->group[f->order[i]];
    cd_net_loss_by_group(group, n, by_group, f->sort + n);
    uint32_t *first = f->tmp; /* where slices begin, in by_group */
    for (size_t i = 0, size; i < n; i += size) {
        size = cd_net_loss_group_size(group, by_group, i, n);
        for (size_t k = 0; k < size; k += slice) first[n_slice++] = (uint32_t)(i + k);
    }
    cd_fit_shuffle(first, n_slice, key_of(f, SLICES, epoch));
    uint32_t *out = (uint32_t *)(void *)(f->sort + n);
    for (size_t s = 0; s < n_slice; s++) {
        const uint32_t g = group[by_group[first[s]]];
        for (size_t k = first[s]; k < n && k < first[s] + slice && group[by_group[k]] == g; k++)
            out[at++] = f->order[by_group[k]];
    }
    memcpy(f->order, out, n * sizeof *out);
}

static void order_epoch(cd_fitting *f, uint64_t epoch) {
    if (f->epoch == epoch + 1) return;
    f->epoch = epoch + 1;
    memcpy(f->order, f->data->train, f->data->n_train * sizeof *f->order);
    cd_fit_shuffle(f->order, f->data->n_train, key_of(f, SHUFFLE, epoch));
    if (cd_net_loss_ranks(&f->loss)) deal_slices(f, epoch);
}

/* ---- one batch ---- */
static void put(const cd_fitting *f, cd_fit_pick *p, uint32_t program) {
    const size_t i = p->n++;
    p->program[i] = program;
    p->z[i] = f->z[program];
    p->log_s[i] = f->log_s[program];
    p->weight[i] = f->data->weight ? f->data->weight[program] : 1;
    p->group[i] = f->data->group ? f->data->group[program] : 0;
}

/* Whole groups to slices in turn. */
static void cut_by_group(cd_fitting *f, size_t slice) {
    const cd_fit_pick *w = &f->whole;
    size_t *order = f->sort, group = 0;
    cd_net_loss_by_group(w->group, w->n, order, f->sort + w->n);
    for (size_t i = 0; i < w->n; i++) {
        if (i && w->group[order[i]] != w->group[order[i - 1]]) group++;
        if (group % f->n_slice == slice) put(f, &f->own, w->program[order[i]]);
    }
}

void cd_fit_cut(cd_fitting *f, size_t slice) {
    const size_t n = f->whole.n;
    f->own.n = 0;
    if (f->n_slice > 1 && cd_net_loss_ranks(&f->loss)) {
        cut_by_group(f, slice);
        return;
    }
    for (size_t i = cd_ops_tile_at(n, f->n_slice, slice);
         i < cd_ops_tile_at(n, f->n_slice, slice + 1); i++)
        put(f, &f->own, f->whole.program[i]);
}

/* The target part is gone through in passes, each in an order of its own. */
static void draw_target(cd_fitting *f) {
    const size_t n = f->data->n_target,
                 m = n < (size_t)f->spec->target_batch ? n : (size_t)f->spec->target_batch;
    const uint64_t per_pass = n / m, pass = f->step / per_pass;
    if (f->pass != pass + 1) {
        f->pass = pass + 1;
        memcpy(f->target, f->data->target, n * sizeof *f->target);
        cd_fit_shuffle(f->target, n, key_of(f, TARGET, pass));
    }
    memcpy(f->own_target, f->target + f->step % per_pass * m, m * sizeof *f->own_target);
    f->n_own_target = m;
}

void cd_fit_draw(cd_fitting *f) {
    const size_t b = (size_t)(f->step % f->per_epoch), n = f->data->n_train,
                 tiles = (size_t)f->per_epoch;
    order_epoch(f, f->step / f->per_epoch);
    f->whole.n = 0;
    for (size_t i = cd_ops_tile_at(n, tiles, b); i < cd_ops_tile_at(n, tiles, b + 1); i++)
        put(f, &f->whole, f->order[i]);
    if (cd_net_loss_domains(&f->loss)) draw_target(f);
}
