/* random -- candidates without repetition, and nothing else. */
#include "predictor/tune/search/search.h"
#include "predictor/tune/search/search_internal.h"

static cdmpp_status ask(cd_tune_search *s, size_t n, const cd_tune_cand **out, size_t *got,
                        cdmpp_err *err) {
    cd_tune_tried *b = (cd_tune_tried *)s;
    CD_TRY(cd_tune_tried_begin(b, n, err));
    CD_TRY(cd_tune_tried_random(b, n, err));
    cd_tune_tried_end(b, out, got);
    return CDMPP_OK;
}

static cdmpp_status tell(cd_tune_search *s, const cd_tune_cand *c, const double *seconds, size_t n,
                         cdmpp_err *err) {
    return cd_tune_tried_tell((cd_tune_tried *)s, c, seconds, n, err);
}

static void free_search(cd_tune_search *s) {
    cd_tune_tried_close((cd_tune_tried *)s);
    cd_mem_free(s);
}

static cdmpp_status open_search(const cd_tune_search_setup *s, cd_tune_search **out,
                                cdmpp_err *err) {
    cd_tune_tried *b = cd_mem_zalloc(1, sizeof *b);
    if (!b) return CD_FAIL(err, ENOMEM, "search");
    const cdmpp_status st = cd_tune_tried_open(b, &cd_tune_search_random, s, err);
    if (st) free_search(&b->search);
    else *out = &b->search;
    return st;
}

const cd_tune_search_kind cd_tune_search_random = {
    .name = "random", .open = open_search, .ask = ask, .tell = tell, .free = free_search};
