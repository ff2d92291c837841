/* One member of trees: rounds of XGBoost under our own losses, with early stopping on the held-out
 * fold. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learner/train/train_internal.h"

/* The matrix of one part of a member's programs: a rank has the rows of its own run of them, and
 * bins that are cut at the rows of all. */

/* Of a view on disk: bytes of a page of the matrix, and rows that its bins are cut at: XGBoost
 * needs 0.3 MB a column to cut 16,384 rows into 256 bins, ten times as much for a million, and an
 * error of a bin's border is then below 0.4 % of the rows. */
/* CUT_COLUMNS: of all rows that are cut together */
enum { PAGE = 16 << 20, CUT_ROWS = 16384, CUT_COLUMNS = 8 };

static void boost_side_free(cd_boost_side *s) {
    cd_xgb_data_free(s->data);
    cd_objective_end(&s->part);
    cd_arena_free(&s->arena);
}

static size_t width_of(const cd_booster *b) { return cd_member_width(b->out->kind, b->out->facts); }
static size_t n_row_of(const cd_program_view *v, size_t i) {
    return (size_t)(v->row_ptr[i + 1] - v->row_ptr[i]);
}
static bool by_pages(const cd_boost_side *s) {
    return cd_spool_on_disk(s->b->v->spool) && s == &s->b->train;
}

static cdmpp_status side_memory(cd_boost_side *s, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t n = s->set->n;
    for (size_t i = 0; i < n; i++)
        s->height += cd_tree_input_height(b->form, n_row_of(b->v, s->set->program[i]));
    const size_t h = s->height;
    s->start = CD_NEWN(&s->arena, size_t, n + 1);
    s->offset = CD_NEWN(&s->arena, double, h);
    s->level = CD_NEWN(&s->arena, double, n);
    s->score = CD_NEWN(&s->arena, float, h);
    s->grad = CD_NEWN(&s->arena, float, h);
    s->hess = CD_NEWN(&s->arena, float, h);
    return s->arena.oom ? CD_FAIL(err, ENOMEM, "%zu matrix rows", h) : CDMPP_OK;
}

/* ---- rows ---- */
/* Matrix rows of programs beg .. end of a part. */
static void fill_rows(const cd_boost_side *s, size_t beg, size_t end, float *x) {
    const size_t width = width_of(s->b);
    for (size_t i = beg; i < end; i++) {
        const size_t p = s->set->program[i];
        /* around a program of a draw the kernel maps up to some MB */
        if ((i - beg) % 16 == 0) cd_spool_rest(s->b->v->spool);
        cd_member_fill(s->b->out, s->b->v, p, x + (s->start[i] - s->start[beg]) * width);
    }
}

static size_t most_rows(const cd_boost_side *s) {
    size_t most = 1;
    for (size_t i = 0; i < s->set->n; i++)
        if (s->start[i + 1] - s->start[i] > most) most = s->start[i + 1] - s->start[i];
    return most;
}

/* cd_xgb_pages.next: as many whole programs of its own as a page holds. */
static size_t next_page(void *ctx, const float **x) {
    cd_boost_side *s = ctx;
    const size_t beg = x ? s->page_at : s->first;
    size_t end = beg;
    if (x) {
        while (end < s->last && s->start[end + 1] - s->start[beg] <= s->page_rows) end++;
        fill_rows(s, beg, end, s->page);
        *x = s->page;
    }
    s->page_at = end;
    return s->start[end] - s->start[beg];
}

/* ---- bins ---- */
/* Bins of some rows: of every k-th program of all. */
static cdmpp_status cut_some_rows(const cd_boost_side *s, cd_xgb_data **bins, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t width = width_of(b), step = s->height / CUT_ROWS + 1;
    size_t n = 0;
    for (size_t i = 0; i < s->set->n; i += step) n += s->start[i + 1] - s->start[i];
    float *x = cd_mem_zalloc(n, width * sizeof *x), *to = x;
    if (!x) return CD_FAIL(err, ENOMEM, "matrix of %zu x %zu values", n, width);
    for (size_t i = 0; i < s->set->n; i += step) {
        fill_rows(s, i, i + 1, to);
        to += (s->start[i + 1] - s->start[i]) * width;
    }
    const cdmpp_status st =
        cd_xgb_data_binned(x, n, width, b->run->nthread, b->c->train_max_bin, NULL, bins, err);
    cd_mem_free(x);
    return st;
}

static size_t piece_end(size_t beg, size_t end) {
    return end - beg < CUT_COLUMNS ? end : beg + CUT_COLUMNS;
}

/* Columns beg .. end of all rows, as one matrix for each CUT_COLUMNS of them. */
static void fill_columns(const cd_boost_side *s, size_t beg, size_t end, float *row, float *x) {
    const size_t width = width_of(s->b);
    for (size_t i = 0; i < s->set->n; i++) {
        const size_t n = s->start[i + 1] - s->start[i];
        fill_rows(s, i, i + 1, row);
        for (size_t j = beg; j < end; j = piece_end(j, end)) {
            const size_t w = piece_end(j, end) - j;
            float *to = x + s->height * (j - beg) + s->start[i] * w;
            for (size_t r = 0; r < n; r++) memcpy(to + r * w, row + r * width + j, w * sizeof *to);
        }
    }
}

/* This rank's run of columns, cut at all rows. XGBoost needs MBs a column for that, so few at a
 * time. */
static cdmpp_status cut_own_columns(const cd_boost_side *s, size_t beg, size_t end, float *cuts,
                                    cdmpp_err *err) {
    const cd_booster *b = s->b;
    float *x = cd_mem_zalloc(s->height, (end - beg) * sizeof *x),
          *row = cd_mem_zalloc(most_rows(s), width_of(b) * sizeof *row);
    cdmpp_status st =
        x && row ? CDMPP_OK
                 : CD_FAIL(err, ENOMEM, "matrix of %zu x %zu values", s->height, end - beg);
    if (!st) fill_columns(s, beg, end, row, x);
    cd_mem_free(row);
    for (size_t j = beg; !st && j < end; j = piece_end(j, end))
        st = cd_xgb_cuts(x + s->height * (j - beg), s->height, piece_end(j, end) - j,
                         b->run->nthread, b->c->train_max_bin,
                         cuts + (j - beg) * ((size_t)b->c->train_max_bin + 1), err);
    cd_mem_free(x);
    return st;
}

/* Bins of all rows, a run of columns by each rank, so that none has all values. */
static cdmpp_status cut_columns(const cd_boost_side *s, cd_xgb_data **bins, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t width = width_of(b), rows = (size_t)b->c->train_max_bin + 1;
    size_t beg, end;
    cd_distributed_trees_own(b->run->ranks, width, &beg, &end);
    float *cuts = cd_mem_zalloc(width, rows * sizeof *cuts);
    cdmpp_status st = cuts ? CDMPP_OK : CD_FAIL(err, ENOMEM, "cuts of %zu columns", width);
    if (!st && beg < end) st = cut_own_columns(s, beg, end, cuts + beg * rows, err);
    if (!st)
        st = cd_distributed_trees_share_bits(b->run->ranks, cuts, width * rows, beg * rows,
                                             end * rows, err);
    if (!st) st = cd_xgb_data_of_cuts(cuts, width, b->run->nthread, b->c->train_max_bin, bins, err);
    cd_mem_free(cuts);
    return st;
}

/* ---- XGBoost's matrix ---- */
/* A page has room for the program with the most rows. */
static cdmpp_status page_by_page(cd_boost_side *s, const cd_xgb_data *bins, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t width = width_of(b), most = most_rows(s);
    s->page_rows = PAGE / (width * sizeof *s->page);
    if (most > s->page_rows) s->page_rows = most;
    s->page = CD_NEWN(&s->arena, float, s->page_rows *width);
    if (!s->page) return CD_FAIL(err, ENOMEM, "page of %zu x %zu values", s->page_rows, width);
    const cd_xgb_pages pages = {next_page, s, s->end - s->beg, width};
    return cd_xgb_data_paged(&pages, b->run->nthread, b->c->train_max_bin, bins, &s->data, err);
}

/* The float matrix dies as soon as XGBoost has it. */
static cdmpp_status at_once(cd_boost_side *s, const cd_xgb_data *bins, cdmpp_err *err) {
    const cd_booster *b = s->b;
    const size_t width = width_of(b), n = s->end - s->beg;
    cdmpp_status st;
    float *x = cd_mem_zalloc(n, width * sizeof *x);
    if (!x) return CD_FAIL(err, ENOMEM, "matrix of %zu x %zu values", n, width);
    fill_rows(s, s->first, s->last, x);
    if (b->c->train_together && s == &b->train)
        st = cd_xgb_data_binned(x, n, width, b->run->nthread, b->c->train_max_bin, bins, &s->data,
                                err);
    else st = cd_xgb_data_new(x, n, width, b->run->nthread, &s->data, err);
    cd_mem_free(x);
    return st;
}

/* s, one of b's: all but what the objective adds. By all ranks. Free s after an error too. Errors:
 * EBACKEND, ENOMEM, ERANGE (fewer programs than ranks). */
static cdmpp_status boost_side_new(cd_boost_side *s, const cd_boost_set *set, const cd_booster *b,
                                   cdmpp_err *err) {
    const cd_process_group *ranks = b->run->ranks;
    cd_xgb_data *bins = NULL;
    s->set = set;
    s->b = b;
    if (ranks && set->n < ranks->n_rank)
        return CD_FAIL(err, ERANGE, "%zu ranks for %zu programs of a part", ranks->n_rank, set->n);
    CD_TRY(side_memory(s, err));
    for (size_t i = 0; i < set->n; i++)
        s->start[i + 1] =
            s->start[i] + cd_tree_input_height(b->form, n_row_of(b->v, set->program[i]));
    cd_distributed_trees_own(ranks, set->n, &s->first, &s->last);
    s->beg = s->start[s->first];
    s->end = s->start[s->last];
    if (by_pages(s)) CD_TRY(cut_some_rows(s, &bins, err));
    else if (ranks && ranks->n_rank > 1 && s == &b->train) CD_TRY(cut_columns(s, &bins, err));
    const cdmpp_status st = by_pages(s) ? page_by_page(s, bins, err) : at_once(s, bins, err);
    cd_xgb_data_free(bins);
    return st;
}

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
    cdmpp_status st = boost_side_new(&b.train, train, &b, err);
    if (!st) st = boost_side_new(&b.valid, valid, &b, err);
    if (!st && run->rows) *run->rows += cd_xgb_data_rows(b.train.data);
    if (!st) fit_offset(&b.train, &b, m);
    if (!st) lay_offsets(&b.valid, &b, m->slope, m->bias);
    if (!st) st = begin(&b.train, &b, NULL, err);
    if (!st) st = begin(&b.valid, &b, &b.train, err);
    if (!st) st = grow(&b, err);
    boost_side_free(&b.train);
    boost_side_free(&b.valid);
    return st;
}
