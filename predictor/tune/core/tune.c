#include "predictor/tune/core/tune.h"

#include <string.h>

#include "base/core/core.h"

static void add_number(cd_hash *h, int64_t v) { cd_hash_add(h, &v, sizeof v); }

uint64_t cd_tune_cand_key(const cd_record_step *step, uint32_t n_step) {
    cd_hash h = cd_hash_start();
    for (uint32_t k = 0; k < n_step; k++) {
        const cd_record_step *t = &step[k];
        add_number(&h, (int64_t)t->kind << 32 | (uint32_t)t->stage);
        for (int j = 0; j < 3; j++) add_number(&h, t->i[j]);
        add_number(&h, t->n_list);
        for (uint32_t j = 0; j < t->n_list; j++) add_number(&h, t->list[j]);
        add_number(&h, (int64_t)t->s.n);
        if (t->s.n) cd_hash_add(&h, t->s.p, t->s.n);
    }
    return h.a;
}

static void *copied(cd_arena *a, const void *from, size_t n, size_t size, bool *ok) {
    if (!n) return NULL;
    void *to = cd_arena_zalloc(a, n, size);
    if (to) memcpy(to, from, n * size);
    else *ok = false;
    return to;
}

cdmpp_status cd_tune_cand_copy(cd_arena *a, const cd_tune_cand *from, cd_tune_cand *out, cdmpp_err *err) {
    bool ok = true;
    cd_record_step *step = copied(a, from->step, from->n_step, sizeof *step, &ok);
    for (uint32_t k = 0; ok && k < from->n_step; k++) {
        step[k].list = copied(a, step[k].list, step[k].n_list, sizeof *step[k].list, &ok);
        step[k].s.p = copied(a, step[k].s.p, step[k].s.n, 1, &ok);
    }
    *out = *from;
    out->step = step;
    out->choice = copied(a, from->choice, from->n_choice, sizeof *from->choice, &ok);
    return ok ? CDMPP_OK : CD_FAIL(err, ENOMEM, "candidate");
}

void cd_tune_space_free(cd_tune_space *s) {
    if (s) s->kind->free(s);
}

/* ---- tuners ---- */
static const cd_tune_tuner tuner[] = {
    {"cdmpp", "best of many by a trained model, its small profile and then the whole, corrected by what is measured", &cd_tune_search_best,
     &cd_tune_rank_twostage},
    {"cdmpp-evo", "Ansor's evolution on the small profile of that model", &cd_tune_search_evolve, &cd_tune_rank_model},
    {"two-stage", "that evolution, its best ranked again by the whole model", &cd_tune_search_evolve, &cd_tune_rank_twostage},
    {"ansor", "Ansor's evolution on its own XGBoost, trained on what is measured", &cd_tune_search_evolve, &cd_tune_rank_ansor},
    {"xgb", "autotvm's XGBoost by loops and pairwise rank, annealed plans; the same as xgb-rank and xgb_itervar",
     &cd_tune_search_anneal, &cd_tune_rank_itervar},
    {"xgb-rank", "the same as xgb", &cd_tune_search_anneal, &cd_tune_rank_itervar},
    {"xgb_knob", "the same by the numbers in the steps", &cd_tune_search_anneal, &cd_tune_rank_knob},
    {"xgb_itervar", "the same as xgb", &cd_tune_search_anneal, &cd_tune_rank_itervar},
    {"xgb_curve", "the same by curves of touch and reuse", &cd_tune_search_anneal, &cd_tune_rank_curve},
    {"ga", "autotvm's genetic algorithm", &cd_tune_search_ga, NULL},
    {"random", "without repetition", &cd_tune_search_random, NULL},
    {"gridsearch", "one after another", &cd_tune_search_grid, NULL},
};

const cd_tune_tuner *cd_tune_tuner_at(size_t i) { return i < sizeof tuner / sizeof *tuner ? &tuner[i] : NULL; }

const cd_tune_tuner *cd_tune_tuner_find(const char *name) {
    const cd_tune_tuner *t = NULL;
    for (size_t i = 0; (t = cd_tune_tuner_at(i)) && strcmp(t->name, name) != 0; i++) {}
    return t;
}
