/* What a search has asked for, and what it was given: no candidate is asked for twice. */
#include "predictor/tune/search/search_internal.h"

#include <string.h>

cdmpp_status cd_tune_tried_open(cd_tune_tried *b, const cd_tune_search_kind *kind,
                                const cd_tune_search_setup *s, cdmpp_err *err) {
    b->search.kind = kind;
    b->space = s->space;
    b->ranker = s->ranker;
    b->seed = s->seed;
    b->good = cd_mem_zalloc(CD_TUNE_GOOD, sizeof *b->good);
    if (!b->good) return CD_FAIL(err, ENOMEM, "search");
    CD_TRY(b->space->kind->list(b->space, &b->list, &b->n_list, err));
    if (!b->n_list) b->list = NULL;
    return CDMPP_OK;
}

void cd_tune_tried_close(cd_tune_tried *b) {
    cd_tune_key_set_free(&b->known);
    cd_arena_free(&b->out_mem);
    cd_arena_free(&b->good_mem);
    cd_mem_free(b->order);
    cd_mem_free(b->out);
    cd_mem_free(b->good);
}

/* ---- random numbers ---- */
uint64_t cd_tune_tried_number(cd_tune_tried *b) { return cd_rng_at(b->seed, b->counter++); }
double cd_tune_tried_unit(cd_tune_tried *b) { return cd_rng_unit(b->seed, b->counter++); }

/* ---- an ask ---- */
cdmpp_status cd_tune_tried_begin(cd_tune_tried *b, size_t n, cdmpp_err *err) {
    b->n_out = 0;
    cd_arena_reset(&b->out_mem);
    if (n <= b->cap_out) return CDMPP_OK;
    cd_tune_cand *out = cd_mem_zalloc(n, sizeof *out);
    if (!out) return CD_FAIL(err, ENOMEM, "%zu candidates", n);
    cd_mem_free(b->out);
    b->out = out;
    b->cap_out = n;
    return CDMPP_OK;
}

bool cd_tune_tried_knows(const cd_tune_tried *b, const cd_tune_cand *c) {
    return cd_tune_key_set_find(&b->known, c->key, NULL);
}

cdmpp_status cd_tune_tried_take(cd_tune_tried *b, const cd_tune_cand *c, cdmpp_err *err) {
    if (cd_tune_tried_knows(b, c)) return CDMPP_OK;
    CD_TRY(cd_tune_cand_copy(&b->out_mem, c, &b->out[b->n_out], err));
    CD_TRY(cd_tune_key_set_put(&b->known, c->key, 0, err));
    b->n_out++;
    return CDMPP_OK;
}

/* A random order of the list: Fisher and Yates, with numbers of its own so that it does not depend
 * on when. */
static cdmpp_status make_order(cd_tune_tried *b, cdmpp_err *err) {
    if (b->order) return CDMPP_OK;
    b->order = cd_mem_zalloc(b->n_list, sizeof *b->order);
    if (!b->order) return CD_FAIL(err, ENOMEM, "%zu candidates", b->n_list);
    for (size_t i = 0; i < b->n_list; i++) {
        const size_t j = (size_t)(cd_rng_at(~b->seed, i) % (i + 1));
        b->order[i] = b->order[j];
        b->order[j] = (uint32_t)i;
    }
    return CDMPP_OK;
}

static cdmpp_status random_listed(cd_tune_tried *b, size_t n, cdmpp_err *err) {
    CD_TRY(make_order(b, err));
    while (b->n_out < n && b->at_order < b->n_list) {
        CD_TRY(cd_tune_tried_take(b, &b->list[b->order[b->at_order]], err));
        b->at_order++;
    }
    return CDMPP_OK;
}

cdmpp_status cd_tune_tried_draw(cd_tune_tried *b, cd_tune_cand *out, cdmpp_err *err) {
    return b->space->kind->draw(b->space, cd_tune_tried_number(b), out, err);
}

cdmpp_status cd_tune_tried_random(cd_tune_tried *b, size_t n, cdmpp_err *err) {
    cd_tune_cand c;
    if (b->list) return random_listed(b, n, err);
    for (int vain = 0; b->n_out < n && vain < CD_TUNE_PATIENCE; vain++) {
        const size_t before = b->n_out;
        const cdmpp_status st = cd_tune_tried_draw(b, &c, err);
        if (st == CDMPP_ENODATA) break;
        if (st == CDMPP_EREJECTED) continue;
        CD_TRY(st);
        CD_TRY(cd_tune_tried_take(b, &c, err));
        if (b->n_out > before) vain = -1;
    }
    return CDMPP_OK;
}

/* ---- what was measured ---- */
bool cd_tune_tried_guided(const cd_tune_tried *b) {
    return b->ranker && b->ranker->kind->ready(b->ranker, &b->space->of);
}

/* Copies that fell out of good are garbage in its arena: start it anew. */
static cdmpp_status tidy(cd_tune_tried *b, cdmpp_err *err) {
    cd_arena fresh = {0};
    cd_tune_cand copy[CD_TUNE_GOOD];
    cdmpp_status st = CDMPP_OK;
    if (b->n_copied < 4 * CD_TUNE_GOOD) return CDMPP_OK;
    for (size_t i = 0; !st && i < b->n_good; i++)
        st = cd_tune_cand_copy(&fresh, &b->good[i].cand, &copy[i], err);
    if (st) {
        cd_arena_free(&fresh);
        return st;
    }
    for (size_t i = 0; i < b->n_good; i++) b->good[i].cand = copy[i];
    cd_arena_free(&b->good_mem);
    b->good_mem = fresh;
    b->n_copied = b->n_good;
    return CDMPP_OK;
}

static cdmpp_status enter_good(cd_tune_tried *b, const cd_tune_cand *c, double seconds,
                               cdmpp_err *err) {
    size_t at = b->n_good;
    cd_tune_cand copy;
    while (at && b->good[at - 1].seconds > seconds) at--;
    if (at == CD_TUNE_GOOD) return CDMPP_OK;
    CD_TRY(tidy(b, err));
    CD_TRY(cd_tune_cand_copy(&b->good_mem, c, &copy, err));
    b->n_copied++;
    if (b->n_good < CD_TUNE_GOOD) b->n_good++;
    memmove(&b->good[at + 1], &b->good[at], (b->n_good - 1 - at) * sizeof *b->good);
    b->good[at] = (cd_tune_good){copy, seconds};
    return CDMPP_OK;
}

cdmpp_status cd_tune_tried_tell(cd_tune_tried *b, const cd_tune_cand *c, const double *seconds,
                                size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        double told = 0;
        const bool again = cd_tune_key_set_find(&b->known, c[i].key, &told) && told > 0;
        CD_TRY(cd_tune_key_set_put(&b->known, c[i].key, seconds[i], err));
        if (!again && seconds[i] > 0 && seconds[i] < CD_TUNE_FAILED_S)
            CD_TRY(enter_good(b, &c[i], seconds[i], err));
    }
    return b->ranker && n ? b->ranker->kind->learn(b->ranker, &b->space->of, c, seconds, n, err)
                          : CDMPP_OK;
}
