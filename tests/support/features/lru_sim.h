/* lru_sim.h -- the slow truth about memory: a nest executed access by access before caches of
 * several capacities at a time.
 *
 *   stack: lines, last touched first  depth of a line = distinct lines since its last touch, itself
 *                                     included
 *
 *   (1) a cache of c lines has the first c of the stack: an access deeper than c is fetched;
 *   (2) a line that was stored to since it was fetched is given back when it is missed, or at the
 *       end;
 *   (3) a tensor's storage begins at a line of its own, at the same place whenever it is
 *       allocated. */
#ifndef LRU_SIM_H
#define LRU_SIM_H
#include "interp.h"
#include "features/program/program.h"

enum { LRU_LINES = 1 << 14, LRU_CAPS = 12 };

typedef struct {
    uint32_t n, n_cap;
    uint64_t line[LRU_LINES];  /* the stack */
    uint16_t dirty[LRU_LINES]; /* by capacity */
    long cap[LRU_CAPS];        /* lines */
    long fetched[LRU_CAPS], written[LRU_CAPS], accesses;
    bool full;
    long granule;
    const cd_nest *nest;
    interp in;
    /* of each store (AST node): address of the last access by operand, for walks */
    void (*address)(void *ctx, int32_t node, uint32_t tensor, int64_t bytes);
    void *ctx;
} lru_sim;

static inline void lru_touch(lru_sim *s, uint64_t line, bool store) {
    uint32_t d = 0;
    while (d < s->n && s->line[d] != line) d++;
    if (d == LRU_LINES) {
        s->full = true;
        return;
    }
    const bool known = d < s->n;
    uint16_t dirty = known ? s->dirty[d] : 0;
    if (!known) s->n++;
    for (uint32_t c = 0; c < s->n_cap; c++) {
        if (known && (long)d < s->cap[c]) continue;
        s->fetched[c]++;
        s->written[c] += dirty >> c & 1;
        dirty = (uint16_t)(dirty & ~(1U << c));
    }
    if (store) dirty = (uint16_t)((1U << s->n_cap) - 1);
    memmove(&s->line[1], &s->line[0], d * sizeof *s->line);
    memmove(&s->dirty[1], &s->dirty[0], d * sizeof *s->dirty);
    s->line[0] = line;
    s->dirty[0] = dirty;
    s->accesses++;
}

/* The last access of a store node is the store itself; loads come before it. */
static inline void lru_seen(void *ctx, int32_t node, uint32_t tensor, const int64_t *ix,
                            uint32_t n) {
    lru_sim *s = ctx;
    const in_mem *m = &s->in.mem[tensor];
    const int64_t elem = cd_expr_dtype_bytes(s->nest->tensor[tensor].dtype);
    int64_t at = 0;
    for (uint32_t d = 0; d < n; d++) at = at * m->ext[d] + ix[d] - m->min[d];
    /* in_store evaluates the indices and the value first: a store is an access of the stored tensor
     * that is no load; both touch the line */
    const bool store = tensor == s->nest->ast->node[node].tensor;
    lru_touch(s, (uint64_t)tensor << 40 | (uint64_t)(at * elem / s->granule), store);
    if (s->address) s->address(s->ctx, node, tensor, at * elem);
}

/* Executes the nest; false: it needs too much work or memory. */
static inline bool lru_run(lru_sim *s, const cd_nest *nest, long budget) {
    s->nest = nest;
    if (!s->granule) s->granule = 64;
    s->in = (interp){.t = nest->ast,
                     .n_var = nest->n_var,
                     .n_mem = nest->n_tensor,
                     .budget = budget,
                     .seen = lru_seen,
                     .ctx = s};
    interp *in = &s->in;
    in->var = calloc(nest->n_var + 1, sizeof *in->var);
    in->mem = calloc(nest->n_tensor + 1, sizeof *in->mem);
    in->out = calloc(nest->n_tensor + 1, sizeof *in->out);
    for (uint32_t v = 0; v < nest->n_var; v++) in->var[v] = NAN;
    for (uint32_t t = 0; t < nest->n_tensor; t++) {
        const cd_nest_tensor *x = &nest->tensor[t];
        if (x->arg < 0 || x->written) continue;
        in_mem *m = &in->mem[t];
        m->rank = x->rank;
        memcpy(m->ext, x->shape, x->rank * sizeof *m->ext);
        const int64_t n = in_count(x->rank, x->shape);
        m->v = malloc((size_t)(n > 0 ? n : 1) * sizeof *m->v);
        for (int64_t i = 0; i < n; i++) m->v[i] = 1;
    }
    in_run(in, 0, nest->ast->n);
    for (uint32_t d = 0; d < s->n; d++)
        for (uint32_t c = 0; c < s->n_cap; c++) s->written[c] += s->dirty[d] >> c & 1;
    for (uint32_t t = 0; t < nest->n_tensor; t++) free(in->mem[t].v);
    free(in->var);
    free(in->mem);
    free(in->out);
    return !in->why && !s->full;
}
#endif
