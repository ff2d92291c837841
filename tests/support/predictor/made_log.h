/* made_log.h -- logs whose answers are known, and searches that need nothing but the space. */
#ifndef MADE_LOG_H
#define MADE_LOG_H
#include <stdio.h>
#include <string.h>

#include "base/core/core.h"
#include "base/core/mem.h"
#include "predictor/tune/compare/compare.h"
#include "predictor/tune/session/session.h"

/* One line: the task "key", two tile lengths and an unrolling, that took `seconds` (0 and below:
 * error 4). */
static inline void planted_line(cd_buf *b, const char *key, int x, int y, int unroll,
                                double seconds, double total_s) {
    cd_buf_putf(b,
                "{\"i\": [[\"[\\\"%s\\\"]\", \"llvm -keys=cpu -model=chip\", [4, 64, 64, 0, 0, 0, "
                "0, 0], \"\", 0, []], [[], [",
                key);
    cd_buf_putf(
        b, "[\"SP\", 2, 0, 512, [%d, %d], 1], [\"PR\", 2, 0, \"auto_unroll_max_step$%d\"]]]], ", x,
        y, unroll);
    if (seconds > 0) cd_buf_putf(b, "\"r\": [[%.9g], 0, %g, 1]", seconds, total_s);
    else cd_buf_putf(b, "\"r\": [[1e10], 4, %g, 1]", total_s);
    cd_buf_puts(b, ", \"v\": \"v0.6\"}\n");
}

/* Candidate i of a planted task: all different. */
static inline void planted_task(cd_buf *b, const char *key, int n, double (*seconds)(int i)) {
    static const int unroll[] = {0, 16, 64, 512};
    for (int i = 0; i < n; i++)
        planted_line(b, key, 1 << i % 8, 1 << i / 8 % 8, unroll[i / 64 % 4], seconds(i), 2);
}

/* ---- a search in the order of a secret, or by chance ---- */
typedef struct {
    cd_tune_search base;
    const cd_tune_cand *all;
    cd_tune_cand *mine;
    size_t n, at;
    const double *seconds; /* (n) by row: best first; NULL: by chance */
    uint64_t seed;
} planted_search;

static const double *planted_secret; /* what the searches of planted_perfect see */

static inline cdmpp_status planted_ask(cd_tune_search *b, size_t n, const cd_tune_cand **out,
                                       size_t *got, cdmpp_err *err) {
    planted_search *s = (planted_search *)b;
    (void)err;
    *got = s->n - s->at < n ? s->n - s->at : n;
    *out = s->mine + s->at;
    s->at += *got;
    return CDMPP_OK;
}

static inline cdmpp_status planted_tell(cd_tune_search *b, const cd_tune_cand *c,
                                        const double *seconds, size_t n, cdmpp_err *err) {
    (void)b;
    (void)c;
    (void)seconds;
    (void)n;
    (void)err;
    return CDMPP_OK;
}

static inline void planted_free(cd_tune_search *b) {
    cd_mem_free(((planted_search *)b)->mine);
    cd_mem_free(b);
}

static inline cdmpp_status planted_open_as(const cd_tune_search_kind *kind,
                                           const cd_tune_search_setup *u, const double *secret,
                                           cd_tune_search **out, cdmpp_err *err) {
    planted_search *s = cd_mem_zalloc(1, sizeof *s);
    if (!s) return CD_FAIL(err, ENOMEM, "search");
    s->base.kind = kind;
    CD_TRY(u->space->kind->list(u->space, &s->all, &s->n, err));
    s->mine = cd_mem_zalloc(s->n + 1, sizeof *s->mine);
    for (size_t i = 0; i < s->n; i++) s->mine[i] = s->all[i];
    for (size_t i = 0; i < s->n; i++) { /* n is small */
        size_t k = i + (size_t)(cd_rng_at(u->seed, i) % (s->n - i));
        for (size_t j = i; secret && j < s->n; j++)
            if (j == i || secret[s->mine[j].row] < secret[s->mine[k].row]) k = j;
        const cd_tune_cand t = s->mine[i];
        s->mine[i] = s->mine[k];
        s->mine[k] = t;
    }
    *out = &s->base;
    return CDMPP_OK;
}

static cdmpp_status planted_open_chance(const cd_tune_search_setup *u, cd_tune_search **out,
                                        cdmpp_err *err);
static cdmpp_status planted_open_perfect(const cd_tune_search_setup *u, cd_tune_search **out,
                                         cdmpp_err *err);
static const cd_tune_search_kind planted_kind[] = {
    {"chance", planted_open_chance, planted_ask, planted_tell, planted_free},
    {"perfect", planted_open_perfect, planted_ask, planted_tell, planted_free},
};
static inline cdmpp_status planted_open_chance(const cd_tune_search_setup *u, cd_tune_search **out,
                                               cdmpp_err *err) {
    return planted_open_as(&planted_kind[0], u, NULL, out, err);
}
static inline cdmpp_status planted_open_perfect(const cd_tune_search_setup *u, cd_tune_search **out,
                                                cdmpp_err *err) {
    return planted_open_as(&planted_kind[1], u, planted_secret, out, err);
}
static const cd_tune_tuner planted_chance = {"chance", "", &planted_kind[0], NULL, false};
static const cd_tune_tuner planted_perfect = {"perfect", "", &planted_kind[1], NULL, false};
#endif
