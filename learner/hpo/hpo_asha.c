/* Asynchronous successive halving (Li et al. 2020): the best third or so of each rung goes on with
 * a larger budget, without waiting for the rung to be full. */
#include "learner/hpo/hpo.h"

#include <math.h>
#include <string.h>

typedef struct {
    size_t trial;
    double error;
    bool up; /* has gone up */
} entry;

typedef struct {
    entry *e; /* (n) best first */
    size_t n;
} rung_list;

struct cd_hpo_asha {
    size_t n_trial, started, open;
    unsigned eta, n_rung;
    rung_list rung[CD_HPO_ASHA_RUNGS];
};

cdmpp_status cd_hpo_asha_new(size_t n_trial, unsigned eta, unsigned n_rung, cd_hpo_asha **out,
                             cdmpp_err *err) {
    cd_hpo_asha *a = cd_mem_zalloc(1, sizeof *a);
    bool ok = a != NULL;
    for (unsigned r = 0; ok && r < n_rung; r++)
        ok = (a->rung[r].e = cd_mem_zalloc(n_trial + 1, sizeof(entry))) != NULL;
    if (!ok) {
        cd_hpo_asha_free(a);
        return CD_FAIL(err, ENOMEM, "search of %zu trials", n_trial);
    }
    a->n_trial = n_trial;
    a->eta = eta;
    a->n_rung = n_rung;
    *out = a;
    return CDMPP_OK;
}

void cd_hpo_asha_free(cd_hpo_asha *a) {
    if (!a) return;
    for (unsigned r = 0; r < CD_HPO_ASHA_RUNGS; r++) cd_mem_free(a->rung[r].e);
    cd_mem_free(a);
}

/* The first of the best `quota` entries that stays and is finite; NULL: none. */
static entry *candidate(rung_list *l, size_t quota) {
    for (size_t i = 0; i < quota && i < l->n && isfinite(l->e[i].error); i++)
        if (!l->e[i].up) return &l->e[i];
    return NULL;
}

static bool has_result(const rung_list *l) { return l->n && isfinite(l->e[0].error); }

static entry *promotion(cd_hpo_asha *a, unsigned *from) {
    for (unsigned r = a->n_rung - 1; r-- > 0;) {
        entry *e = candidate(&a->rung[r], a->rung[r].n / a->eta);
        *from = r;
        if (e) return e;
    }
    if (a->open || a->started < a->n_trial || has_result(&a->rung[a->n_rung - 1])) return NULL;
    /* (4): from the highest rung that has somebody left */
    for (unsigned r = a->n_rung - 1; r-- > 0;) {
        entry *e = candidate(&a->rung[r], a->rung[r].n);
        *from = r;
        if (e) return e;
    }
    return NULL;
}

/* Promotions come before new trials. */
bool cd_hpo_asha_ask(cd_hpo_asha *a, size_t *trial, unsigned *rung) {
    unsigned from = 0;
    entry *e = promotion(a, &from);
    if (e) {
        e->up = true;
        *trial = e->trial;
        *rung = from + 1;
    } else if (a->started < a->n_trial) {
        *trial = a->started++;
        *rung = 0;
    } else {
        return false;
    }
    a->open++;
    return true;
}

void cd_hpo_asha_tell(cd_hpo_asha *a, size_t trial, unsigned rung, double error) {
    rung_list *l = &a->rung[rung];
    size_t at = l->n++;
    if (!isfinite(error)) error = INFINITY;
    for (; at > 0; at--) {
        const entry *o = &l->e[at - 1];
        if (o->error < error || (!(o->error > error) && o->trial < trial)) break;
    }
    memmove(l->e + at + 1, l->e + at, (l->n - 1 - at) * sizeof *l->e);
    l->e[at] = (entry){trial, error, false};
    a->open--;
}

size_t cd_hpo_asha_open(const cd_hpo_asha *a) { return a->open; }

bool cd_hpo_asha_best(const cd_hpo_asha *a, size_t *trial, double *error) {
    const rung_list *top = &a->rung[a->n_rung - 1];
    if (!has_result(top)) return false;
    *trial = top->e[0].trial;
    *error = top->e[0].error;
    return true;
}
