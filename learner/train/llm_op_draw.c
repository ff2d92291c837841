/* Which rows of operators of language models are trained on: drawn by a number of each row itself, so that the order of the tables does not matter. */
#include <stdlib.h>

#include "learner/train/train_internal.h"

uint64_t cd_llm_op_site(const cd_llm_op_record *r) {
    uint64_t h = r->kind;
    for (size_t i = 1; i < cd_llm_op_n_size((cd_llm_op_kind)r->kind); i++) h = cd_rng_at(h, (uint64_t)r->size[i]);
    return h;
}

uint64_t cd_llm_op_number(const cd_config *c, const cd_llm_op_table *t, size_t i) {
    const cd_llm_op_record *r = &t->r[i];
    const uint64_t names = (uint64_t)r->type << 40 | (uint64_t)r->kv << 32 | (uint64_t)r->stack << 16 | r->kernel;
    return cd_rng_at(cd_rng_at((uint64_t)c->operators_seed, cd_llm_op_site(r)), cd_rng_at(names, (uint64_t)r->size[0] * 8 + (uint64_t)(4 * r->skew)));
}

/* The rows of each kind and device with the smallest numbers, at most operators.max_rows. */
cdmpp_status cd_llm_op_draw(const cd_config *c, const cd_llm_op_table *t, uint8_t *use, cdmpp_err *err) {
    const size_t n = t->n, most = c->operators_max_rows ? (size_t)c->operators_max_rows : SIZE_MAX;
    cd_op_place *p = cd_mem_zalloc(n + 1, sizeof *p);
    if (!p) return CD_FAIL(err, ENOMEM, "%zu rows", n);
    for (size_t i = 0; i < n; i++) p[i] = (cd_op_place){(uint64_t)t->device[i] * CD_LLM_OP_N_KIND + t->r[i].kind, cd_llm_op_number(c, t, i), 0, i};
    qsort(p, n, sizeof *p, cd_op_place_by_number);
    cd_op_draw(p, n, most, use);
    cd_mem_free(p);
    return CDMPP_OK;
}

