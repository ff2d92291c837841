/* From the tensors that steps read and write to the steps that they wait for: a tensor's last
 * writer and its readers since then give the edges; one sweep over the steps, which are in an order
 * that respects them, gives the chains. */
#include "profiler/runtime/single/single_internal.h"

#include <string.h>

typedef struct {
    uint32_t from, to;
} edge;

/* Who used a tensor last. */
typedef struct {
    uint32_t writer; /* UINT32_MAX: none yet */
    /* of the chain of readers since: number in `read`; UINT32_MAX: none */
    uint32_t reader;
} use;

typedef struct {
    uint32_t step, older;
} reading;

typedef struct {
    const cd_executor_net *n;
    use *use;      /* (n_tensor) */
    reading *read; /* (n_read) */
    edge *edge;    /* (n_edge, cap) */
    size_t n_read, n_edge, cap;
} walk;

/* An edge, once: all edges to one step are added one behind the other, so only the last ones need a
 * look. */
static void join(walk *w, uint32_t from, uint32_t to) {
    if (from == UINT32_MAX || from == to) return;
    for (size_t k = w->n_edge; k-- > 0 && w->edge[k].to == to;)
        if (w->edge[k].from == from) return;
    w->edge[w->n_edge++] = (edge){from, to};
}

/* Step k reads or writes a tensor: after its writer; a writer also after all that have read it
 * since. */
static void use_of(walk *w, uint32_t step, uint32_t tensor, bool written) {
    use *u = &w->use[tensor];
    join(w, u->writer, step);
    if (!written) {
        w->read[w->n_read] = (reading){step, u->reader};
        u->reader = (uint32_t)w->n_read++;
        return;
    }
    for (uint32_t r = u->reader; r != UINT32_MAX; r = w->read[r].older)
        join(w, w->read[r].step, step);
    *u = (use){step, UINT32_MAX};
}

static void find_edges(walk *w) {
    for (uint32_t t = 0; t < w->n->n_tensor; t++) w->use[t] = (use){UINT32_MAX, UINT32_MAX};
    for (uint32_t k = 0; k < w->n->n_step; k++) {
        const cd_codegen_code *c = w->n->step[k].build->code;
        for (uint32_t written = 0; written < 2; written++)
            for (uint32_t b = 0; b < c->n_arg; b++)
                if (c->buffer[b].written == (written == 1))
                    use_of(w, k, w->n->step[k].tensor[b], written);
    }
}

/* Edges sorted by where they begin (next), counts of those that end (n_after), and the closure
 * (before). */
static void order(const walk *w, cd_executor_deps *d) {
    for (size_t e = 0; e < w->n_edge; e++) d->first[w->edge[e].from + 1]++;
    for (uint32_t k = 0; k < d->n; k++) d->first[k + 1] += d->first[k];
    uint32_t *at = d->n_after; /* borrowed for places, then what it is for */
    memcpy(at, d->first, d->n * sizeof *at);
    for (size_t e = 0; e < w->n_edge; e++) d->next[at[w->edge[e].from]++] = w->edge[e].to;
    memset(d->n_after, 0, d->n * sizeof *d->n_after);
    for (size_t e = 0; e < w->n_edge; e++) {
        const edge x = w->edge[e];
        uint64_t *row = d->before + (size_t)x.to * d->words,
                 *of = d->before + (size_t)x.from * d->words;
        d->n_after[x.to]++;
        for (uint32_t i = 0; i < d->words; i++) row[i] |= of[i];
        row[x.from / 64] |= (uint64_t)1 << x.from % 64;
    }
}

/* Scratch of the walk is bounded by the number of uses: `read` and `edge` never grow. */
static cdmpp_status make(walk *w, cd_arena *a, cd_executor_deps *d, cdmpp_err *err) {
    size_t args = 0;
    for (uint32_t k = 0; k < w->n->n_step; k++) args += w->n->step[k].build->code->n_arg;
    w->cap = 2 * args + 1; /* each use has its writer; each reading is met by one writer */
    w->use = cd_mem_zalloc(w->n->n_tensor + 1, sizeof *w->use);
    w->read = cd_mem_zalloc(args + 1, sizeof *w->read);
    w->edge = cd_mem_zalloc(w->cap, sizeof *w->edge);
    if (!w->use || !w->read || !w->edge)
        return CD_FAIL(err, ENOMEM, "order of %u steps", w->n->n_step);
    find_edges(w);
    d->n = w->n->n_step;
    d->words = (d->n + 63) / 64;
    d->n_after = CD_NEWN(a, uint32_t, d->n + 1);
    d->first = CD_NEWN(a, uint32_t, d->n + 2);
    d->next = CD_NEWN(a, uint32_t, w->n_edge + 1);
    d->before = CD_NEWN(a, uint64_t, (size_t)d->n * d->words + 1);
    if (!d->n_after || !d->first || !d->next || !d->before)
        return CD_FAIL(err, ENOMEM, "order of %u steps", w->n->n_step);
    order(w, d);
    return CDMPP_OK;
}

cdmpp_status cd_executor_deps_make(const cd_executor_net *n, cd_arena *a, cd_executor_deps *out,
                                   cdmpp_err *err) {
    walk w = {.n = n};
    *out = (cd_executor_deps){0};
    if (n->n_step > CD_EXECUTOR_DEPS_MAX)
        return CD_FAIL(err, ERANGE, "%u steps; at most %d on several workers", n->n_step,
                       CD_EXECUTOR_DEPS_MAX);
    const cdmpp_status st = make(&w, a, out, err);
    cd_mem_free(w.use);
    cd_mem_free(w.read);
    cd_mem_free(w.edge);
    return st;
}

void cd_executor_deps_chains(const cd_executor_deps *d, const double *seconds, double *chain) {
    for (uint32_t k = d->n; k-- > 0;) {
        chain[k] = 0;
        for (uint32_t e = d->first[k]; e < d->first[k + 1]; e++)
            if (chain[d->next[e]] > chain[k]) chain[k] = chain[d->next[e]];
        chain[k] += seconds[k];
    }
}
