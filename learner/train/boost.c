/* One member of trees: rounds of XGBoost under our own losses, with early stopping on the held-out
 * fold. */
#include "learner/train/train_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- slope and bias: log-latency from trip counts alone ---- */
/* Offsets of matrix rows, levels of programs. */
static void lay_offsets(cd_boost_side *s, const cd_booster *b, double slope, double bias) {
    for (size_t i = 0; i < s->set->n; i++) {
        if (i % 16 == 0) cd_spool_rest(b->v->spool);
        s->level[i] = cd_member_offsets(b->out, b->v, s->set->program[i], slope, bias,
                                        s->offset + s->start[i]);
    }
}

static double fit_bias(cd_boost_side *s, const cd_booster *b, double slope, double *bias) {
    double sum = 0, sq = 0;
    lay_offsets(s, b, slope, 0);
    for (size_t i = 0; i < s->set->n; i++) sum += s->set->log_s[i] - s->level[i];
    *bias = sum / (double)s->set->n;
    for (size_t i = 0; i < s->set->n; i++) {
        const double r = s->set->log_s[i] - s->level[i] - *bias;
        sq += r * r;
    }
    return sq;
}

/* The analytic time that is nearest to the measured ones but for a factor. Trips divide it: with
 * another slope the level is the same. */
static void fit_prior(cd_boost_side *s, const cd_booster *b, cd_member *p) {
    double best = INFINITY, bias = 0;
    int prior = 0;
    p->slope = cd_member_form(p->kind) == CD_TREE_INPUT_ROWS ? 1 : 0;
    for (p->prior = 0; p->prior < CD_N_PRIOR; p->prior++) {
        const double sq = fit_bias(s, b, p->slope, &bias);
        if (sq >= best) continue;
        best = sq;
        prior = p->prior;
        p->bias = bias;
    }
    p->prior = prior;
    lay_offsets(s, b, p->slope, p->bias);
}

static void fit_offset(cd_boost_side *s, const cd_booster *b, cd_member *p) {
    double best = INFINITY;
    if (p->facts == CD_FACTS_USE_PRIOR) {
        fit_prior(s, b, p);
        return;
    }
    const int steps = cd_member_has_level(p) ? 12 : 0;
    for (int k = 0; k <= steps; k++) {
        double bias;
        const double slope = 0.1 * k, sq = fit_bias(s, b, slope, &bias);
        if (sq >= best) continue;
        best = sq;
        p->slope = slope;
        p->bias = bias;
    }
    lay_offsets(s, b, p->slope, p->bias);
}

/* train.fast: how often a program counts, by the fastest of its task on its device that the part
 * has. */
static cdmpp_status weigh(cd_boost_side *s, const cd_booster *b, cdmpp_err *err) {
    const cd_boost_set *set = s->set;
    uint32_t n_group = 0;
    if (b->c->train_fast <= 0 || !set->group || b->out->objective != CD_OBJECTIVE_LOG_LATENCY)
        return CDMPP_OK;
    for (size_t i = 0; i < set->n; i++)
        n_group = set->group[i] >= n_group ? set->group[i] + 1 : n_group;
    double *least = CD_NEWN(&s->arena, double, n_group);
    s->weight = CD_NEWN(&s->arena, double, set->n);
    if (s->arena.oom) return CD_FAIL(err, ENOMEM, "weights of %zu programs", set->n);
    for (uint32_t g = 0; g < n_group; g++) least[g] = INFINITY;
    for (size_t i = 0; i < set->n; i++)
        least[set->group[i]] = fmin(least[set->group[i]], set->log_s[i]);
    for (size_t i = 0; i < set->n; i++)
        s->weight[i] = exp(b->c->train_fast * (least[set->group[i]] - set->log_s[i]));
    return CDMPP_OK;
}

static cdmpp_status begin(cd_boost_side *s, const cd_booster *b, const cd_boost_side *seen,
                          cdmpp_err *err) {
    CD_TRY(weigh(s, b, err));
    s->part = (cd_objective_part){.n = s->set->n,
                                  .start = s->start,
                                  .offset = s->offset,
                                  .log_s = s->set->log_s,
                                  .group = s->set->group,
                                  .weight = s->weight};
    return cd_err_key(err,
                      cd_objective_begin(&s->part, &b->objective, seen ? &seen->part : NULL, err),
                      "train.objective");
}

/* ---- one round ---- */
/* Rows that tree i does not see, where XGBoost must not draw them (it would by rank). */
static void draw_rows(cd_booster *b, int i) {
    const double share = b->c->train_subsample;
    if (!b->c->train_together || share >= 1) return;
    const uint64_t seed = cd_rng_at((uint64_t)b->c->train_seed, (uint64_t)i);
    for (size_t k = b->train.beg; k < b->train.end; k++)
        if (cd_rng_unit(seed, k) >= share) b->train.grad[k] = b->train.hess[k] = 0;
}

static cdmpp_status scores(cd_booster *b, cd_boost_side *s, cdmpp_err *err) {
    CD_TRY(cd_xgb_scores(b->out->gbt, s->data, s->score + s->beg, err));
    return cd_distributed_trees_share(&b->together, s->score, s->height, s->beg, s->end, err);
}

static cdmpp_status next_tree(cd_booster *b, int i, cdmpp_err *err) {
    cd_boost_side *s = &b->train;
    cd_objective_gradient(&s->part, &b->objective, s->grad, s->hess);
    draw_rows(b, i);
    CD_TRY(cd_xgb_boost(b->out->gbt, s->data, s->grad + s->beg, s->hess + s->beg, err));
    CD_TRY(scores(b, s, err));
    return scores(b, &b->valid, err);
}

/* The loss, which is also what the next gradient is of; returns what rounds are compared by. */
static double figure(cd_boost_side *s, const cd_objective_spec *o) {
    return cd_objective_figure(&s->part, o, cd_objective_loss(&s->part, o, s->score));
}

/* With several ranks each computes the same losses, so all stop after the same round. */
static cdmpp_status rounds(cd_booster *b, cdmpp_err *err) {
    const cd_objective_spec *o = &b->objective;
    double best = INFINITY, train = figure(&b->train, o);
    int best_round = 0;
    for (int i = 1; i <= b->c->train_rounds; i++) {
        CD_TRY(next_tree(b, i, err));
        train = figure(&b->train, o);
        const double valid = figure(&b->valid, o);
        if (!isfinite(train) || !isfinite(valid))
            return CD_FAIL(err, ENUMERIC, "round %d: the loss is not finite", i);
        if (valid < best) {
            best = valid;
            best_round = i;
        }
        const bool end = i == b->c->train_rounds ||
                         (b->c->train_early_stop && i - best_round >= b->c->train_early_stop);
        const cd_progress_event t = {.member = b->run->name,
                                     .unit = "round",
                                     .step = (uint64_t)i,
                                     .n_step = (uint64_t)b->c->train_rounds,
                                     .n_sample = b->train.set->n,
                                     .train = train,
                                     .valid = valid,
                                     .end = end};
        bool stop = b->run->tick && !b->run->tick(b->run->ctx, &t);
        CD_TRY(cd_distributed_trees_stop(&b->together, &stop, err));
        if (stop) return CD_FAIL(err, EINTERRUPTED, "round %d", i);
        if (end) break;
    }
    return cd_xgb_cut(b->out->gbt, best_round, err);
}

static cdmpp_status new_gbt(cd_booster *b, cdmpp_err *err) {
    const cd_config *c = b->c;
    char v[9][32];
    const char *name[9] = {
        "eta",       "min_child_weight", "lambda", "subsample", "colsample_bytree",
        "max_depth", "max_bin",          "seed",   "nthread"};
    const double real[5] = {c->train_eta, c->train_min_child_weight, c->train_lambda,
                            c->train_together ? 1 : c->train_subsample, c->train_colsample};
    const int64_t integer[4] = {c->train_max_depth, c->train_max_bin, c->train_seed,
                                b->run->nthread};
    cd_xgb_param p[10] = {{"tree_method", "hist"}};
    for (int i = 0; i < 9; i++) {
        if (i < 5) snprintf(v[i], sizeof v[i], "%.9g", real[i]);
        else snprintf(v[i], sizeof v[i], "%lld", (long long)integer[i - 5]);
        p[i + 1] = (cd_xgb_param){name[i], v[i]};
    }
    return cd_xgb_new(b->train.data, b->valid.data, p, 10, &b->out->gbt, err);
}

/* What scores mean in seconds, from the trees that are kept. */
static cdmpp_status fit_map(cd_booster *b, cdmpp_err *err) {
    cd_boost_side *s = &b->train;
    cd_member *m = b->out;
    if (m->objective == CD_OBJECTIVE_LOG_LATENCY) return CDMPP_OK;
    CD_TRY(scores(b, s, err));
    (void)cd_objective_loss(&s->part, &b->objective, s->score);
    cd_objective_map(&s->part, m->objective, s->level, &m->scale, &m->shift);
    return CDMPP_OK;
}

static cdmpp_status same_everywhere(const cd_booster *b, cdmpp_err *err) {
    cd_buf bytes = {0};
    cdmpp_status st = b->together.ranks ? cd_xgb_save(b->out->gbt, &bytes, err) : CDMPP_OK;
    if (!st) st = cd_distributed_trees_same(&b->together, &bytes, err);
    cd_buf_free(&bytes);
    return st;
}

static cdmpp_status grow(cd_booster *b, cdmpp_err *err) {
    cdmpp_status st = cd_distributed_trees_begin(&b->together, b->run->ranks, err);
    if (!st) st = new_gbt(b, err);
    if (!st) st = rounds(b, err);
    if (!st) st = fit_map(b, err);
    if (!st) st = same_everywhere(b, err);
    return cd_distributed_trees_end(&b->together, st, err);
}

/* The offset (slope of ln trips) is fitted before the first tree, so trees learn what trips do not
 * explain. */
cdmpp_status cd_boost(const cd_program_view *v, const cd_boost_set *train,
                      const cd_boost_set *valid, const cd_config *c, const cd_boost_run *run,
                      cd_member *m, cdmpp_err *err) {
    cd_booster b = {.v = v, .c = c, .form = cd_member_form(m->kind), .run = run, .out = m};
    m->objective = (cd_objective_kind)c->train_objective;
    m->facts = cd_member_reads_facts(m->kind) ? (cd_facts_use)c->train_facts : CD_FACTS_USE_NONE;
    b.objective = (cd_objective_spec){m->objective, (cd_tree_loss)c->train_loss, c->train_eta,
                                      (cd_rank_loss)c->train_rank_loss};
    cdmpp_status st = cd_boost_side_new(&b.train, train, &b, err);
    if (!st) st = cd_boost_side_new(&b.valid, valid, &b, err);
    if (!st && run->rows) *run->rows += cd_xgb_data_rows(b.train.data);
    if (!st) fit_offset(&b.train, &b, m);
    if (!st) lay_offsets(&b.valid, &b, m->slope, m->bias);
    if (!st) st = begin(&b.train, &b, NULL, err);
    if (!st) st = begin(&b.valid, &b, &b.train, err);
    if (!st) st = grow(&b, err);
    cd_boost_side_free(&b.train);
    cd_boost_side_free(&b.valid);
    return st;
}
