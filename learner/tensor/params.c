/* Parameters are registered first and laid out afterwards, so that all of a network lie in one
 * block: an optimiser walks it without knowing about tensors. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "learner/tensor/tensor.h"

/* One aligned block for all arrays of a batch or a network's working memory: taken twice, first to
 * count and then to carve. */

enum { ALIGN = 64 };

/* In the planning pass only `used` grows; an amount that no machine has is remembered, and
 * cd_slab_alloc refuses it. */
void *cd_slab_take(cd_slab *s, size_t n, size_t size) {
    const size_t at = s->used, room = SIZE_MAX / 2 - at;
    if (n > room / size) { /* more than any machine has: cd_slab_alloc refuses it */
        s->used = SIZE_MAX / 2;
        return NULL;
    }
    s->used += (n * size + ALIGN - 1) / ALIGN * ALIGN;
    if (!s->base) return NULL;
    assert(s->used <= s->cap);
    return s->base + at;
}

cdmpp_status cd_slab_alloc(cd_slab *s, cdmpp_err *err) {
    const size_t n = s->used;
    s->raw = n < SIZE_MAX / 2 ? cd_mem_zalloc(n + ALIGN, 1) : NULL;
    if (!s->raw) return CD_FAIL(err, ENOMEM, "%zu bytes for a network", n);
    s->base = (char *)s->raw + (ALIGN - (uintptr_t)s->raw % ALIGN) % ALIGN;
    s->cap = n;
    s->used = 0;
    return CDMPP_OK;
}

void cd_slab_free(cd_slab *s) {
    cd_mem_free(s->raw);
    *s = (cd_slab){0};
}

static size_t add(cd_params *p, const cd_param *q) {
    if (CD_GROW(p->param, p->n, p->cap)) {
        p->oom = true;
        return 0;
    }
    p->param[p->n] = *q;
    return p->n++;
}

size_t cd_params_add(cd_params *p, const char *name, size_t rows, size_t cols, cd_init init,
                     float bound) {
    cd_param q = {.n_dim = cols ? 2 : 1,
                  .dim = {rows, cols ? cols : 1},
                  .init = init,
                  .bound = bound,
                  .decay = cols > 0};
    q.n = q.dim[0] * q.dim[1];
    snprintf(q.name, sizeof q.name, "%s", name);
    return add(p, &q);
}

size_t cd_params_add_stat(cd_params *p, const char *name, size_t n, cd_init init) {
    cd_param q = {.n_dim = 1, .dim = {n, 1}, .n = n, .init = init, .is_stat = true};
    snprintf(q.name, sizeof q.name, "%s", name);
    return add(p, &q);
}

void cd_params_add_linear(cd_params *p, const char *prefix, size_t in, size_t out, size_t *w,
                          size_t *b) {
    char name[80];
    const float bound = (float)(1 / sqrt((double)in));
    snprintf(name, sizeof name, "%s.weight", prefix);
    *w = cd_params_add(p, name, out, in, CD_INIT_UNIFORM, bound);
    snprintf(name, sizeof name, "%s.bias", prefix);
    *b = cd_params_add(p, name, out, 0, CD_INIT_UNIFORM, bound);
}

static void initialise(const cd_param *q, uint64_t seed, float *v) {
    for (size_t i = 0; i < q->n; i++)
        v[i] = q->init == CD_INIT_ZERO ? 0
               : q->init == CD_INIT_ONE
                   ? 1
                   : (float)((2 * cd_rng_unit(seed, i) - 1) * (double)q->bound);
}

/* Trained tensors come first, statistics behind them: the gradients need no room for the latter. */
cdmpp_status cd_params_layout(cd_params *p, uint64_t seed, cdmpp_err *err) {
    if (p->oom) return CD_FAIL(err, ENOMEM, "list of %zu tensors", p->n);
    for (int stat = 0; stat < 2; stat++) {
        for (size_t i = 0; i < p->n; i++) {
            if (p->param[i].is_stat != (stat == 1)) continue;
            p->param[i].off = p->slab_value.used / sizeof(float);
            cd_slab_floats(&p->slab_value, p->param[i].n);
        }
        if (!stat) p->n_train = p->slab_value.used / sizeof(float);
    }
    p->n_float = p->slab_value.used / sizeof(float);
    p->slab_grad.used = p->n_train * sizeof(float);
    CD_TRY(cd_slab_alloc(&p->slab_value, err));
    CD_TRY(cd_slab_alloc(&p->slab_grad, err));
    p->value = cd_slab_floats(&p->slab_value, p->n_float);
    p->grad = cd_slab_floats(&p->slab_grad, p->n_train);
    for (size_t i = 0; i < p->n; i++)
        initialise(&p->param[i], cd_rng_at(seed, i), cd_params_value(p, i));
    return CDMPP_OK;
}

void cd_params_free(cd_params *p) {
    cd_slab_free(&p->slab_value);
    cd_slab_free(&p->slab_grad);
    cd_mem_free(p->param);
    *p = (cd_params){0};
}

void cd_params_zero_grad(cd_params *p) { memset(p->grad, 0, p->n_train * sizeof(float)); }

size_t cd_params_count(const cd_params *p) {
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) n += p->param[i].is_stat ? 0 : p->param[i].n;
    return n;
}

void cd_params_tensors(const cd_params *p, cd_tensor *t) {
    for (size_t i = 0; i < p->n; i++) {
        const cd_param *q = &p->param[i];
        t[i] = (cd_tensor){.name = q->name,
                           .n_dim = q->n_dim,
                           .dim = {q->dim[0], q->dim[1]},
                           .value = cd_params_value(p, i)};
    }
}

cdmpp_status cd_params_read(cd_params *p, const cd_safetensors *f, cdmpp_err *err) {
    for (size_t i = 0; i < p->n; i++) {
        const cd_param *q = &p->param[i];
        CD_TRY(cd_safetensors_get(f, q->name, q->n_dim, q->dim, cd_params_value(p, i), err));
    }
    return CDMPP_OK;
}
