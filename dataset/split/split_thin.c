/* Fewer programs of each task to train on: the fastest ones and a draw of the others. The draw is
 * by the number of a program alone, so a smaller limit keeps a subset of the drawn ones, and the
 * order of programs is nothing. */
#include <math.h>
#include <stdlib.h>

#include "dataset/split/split_internal.h"

/* apart from the draws of the split, which have the same seed */
static const uint64_t thin_stream = 0x7468696e;

typedef struct {
    size_t group, i;
    double latency_s;
    uint64_t key, rank;
} candidate;

static int by_latency(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->latency_s != y->latency_s) return x->latency_s < y->latency_s ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static int by_rank(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static size_t list(const cd_splitter *m, candidate *v) {
    const cd_dataset *d = m->d;
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        if (m->s->part[i] == CD_SPLIT_PART_TRAIN)
            v[n++] =
                (candidate){(size_t)d->task[i] * d->n_device + d->device[i], i, d->latency_s[i],
                            m->key[i], cd_rng_at(m->spec->seed ^ thin_stream, m->key[i])};
    return n;
}

/* v: the n programs of one task on one device, fastest first. */
static void thin(const cd_splitter *m, candidate *v, size_t n) {
    const size_t most = (size_t)m->spec->train_per_task;
    if (n <= most) return;
    const size_t best = (size_t)llround(m->spec->train_best * (double)most);
    qsort(v + best, n - best, sizeof *v, by_rank);
    for (size_t k = most; k < n; k++) m->s->part[v[k].i] = CD_SPLIT_PART_NONE;
    m->s->n_thinned += n - most;
}

cdmpp_status cd_split_thin(cd_splitter *m, cdmpp_err *err) {
    /* freed before the training: not in the arena of the split */
    candidate *v = cd_mem_zalloc(m->d->n + 1, sizeof *v);
    if (!v) return CD_FAIL(err, ENOMEM, "%zu programs", m->d->n);
    const size_t n = list(m, v);
    if (n) qsort(v, n, sizeof *v, by_latency);
    for (size_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && v[k].group == v[i].group; k++) {
        }
        thin(m, v + i, k - i);
    }
    cd_mem_free(v);
    return CDMPP_OK;
}
