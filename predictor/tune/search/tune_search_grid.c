/* grid -- candidates in the order of the list; of a space too large for one, in the order of its
 * choices. */
#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"

typedef struct {
    cd_tune_tried b;
    size_t at; /* in the list */
    bool walking, ended;
} grid;

static cdmpp_status by_list(grid *g, size_t n, cdmpp_err *err) {
    while (g->b.n_out < n && g->at < g->b.n_list) {
        CD_TRY(cd_tune_tried_take(&g->b, &g->b.list[g->at], err));
        g->at++;
    }
    return CDMPP_OK;
}

static cdmpp_status by_walk(grid *g, size_t n, cdmpp_err *err) {
    cd_tune_space *space = g->b.space;
    cd_tune_cand c;
    while (g->b.n_out < n && !g->ended) {
        const cdmpp_status st = space->kind->walk(space, !g->walking, &c, err);
        g->walking = true;
        if (st == CDMPP_ENODATA) g->ended = true;
        else if (!st) CD_TRY(cd_tune_tried_take(&g->b, &c, err));
        else if (st != CDMPP_EREJECTED) return st;
    }
    return CDMPP_OK;
}

static cdmpp_status ask(cd_tune_search *s, size_t n, const cd_tune_cand **out, size_t *got,
                        cdmpp_err *err) {
    grid *g = (grid *)s;
    CD_TRY(cd_tune_tried_begin(&g->b, n, err));
    if (g->b.list) CD_TRY(by_list(g, n, err));
    else if (g->b.space->kind->walk) CD_TRY(by_walk(g, n, err));
    cd_tune_tried_end(&g->b, out, got);
    return CDMPP_OK;
}

static cdmpp_status tell(cd_tune_search *s, const cd_tune_cand *c, const double *seconds, size_t n,
                         cdmpp_err *err) {
    return cd_tune_tried_tell(&((grid *)s)->b, c, seconds, n, err);
}

static void free_search(cd_tune_search *s) {
    cd_tune_tried_close(&((grid *)s)->b);
    cd_mem_free(s);
}

static cdmpp_status open_search(const cd_tune_search_setup *s, cd_tune_search **out,
                                cdmpp_err *err) {
    grid *g = cd_mem_zalloc(1, sizeof *g);
    if (!g) return CD_FAIL(err, ENOMEM, "search");
    const cdmpp_status st = cd_tune_tried_open(&g->b, &cd_tune_search_grid, s, err);
    if (st) free_search(&g->b.search);
    else *out = &g->b.search;
    return st;
}

const cd_tune_search_kind cd_tune_search_grid = {
    .name = "gridsearch", .open = open_search, .ask = ask, .tell = tell, .free = free_search};
