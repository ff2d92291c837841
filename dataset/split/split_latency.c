/* CDMPP's own split: every fifth program by latency. */
#include <math.h>
#include <stdlib.h>

#include "dataset/split/split_internal.h"

enum { GROUP = 5 };

typedef struct {
    double latency;
    uint64_t key;
    size_t i;
} ranked;

static int by_latency(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->latency != y->latency) return x->latency < y->latency ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

/* Programs in order of latency, every fifth to the test part, as CDMPP does it: parts of equal
 * distributions, but with the tasks of the test part in training too. */
cdmpp_status cd_split_interleave(cd_splitter *m, cdmpp_err *err) {
    ranked *r = CD_NEWN(&m->arena, ranked, m->d->n);
    if (!r) return CD_FAIL(err, ENOMEM, "order of %zu programs", m->d->n);
    size_t n = 0, nth = 0, every = (size_t)llround((GROUP - 1.0) / GROUP / m->spec->valid);
    if (every < 2) every = 2;
    for (size_t i = 0; i < m->d->n; i++)
        if (m->keep[i]) r[n++] = (ranked){m->d->latency_s[i], m->key[i], i};
    qsort(r, n, sizeof *r, by_latency);
    for (size_t k = 0; k < n / GROUP * GROUP; k++) {
        if (k % GROUP == GROUP - 1) m->s->part[r[k].i] = CD_SPLIT_PART_TEST;
        else m->s->part[r[k].i] = ++nth % every ? CD_SPLIT_PART_TRAIN : CD_SPLIT_PART_VALID;
    }
    return CDMPP_OK;
}
