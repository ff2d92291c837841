/* Which rows and leaves of a program take its time, as the model sees it. Where a member's answer
 * is a sum over rows, the terms are the shares; where it is not, Shapley values of the member's
 * seconds are. */

#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

typedef struct {
    const cd_model *m;
    const cd_program_view *v;
    const int32_t *leaf_row;
    size_t n_row, n_leaf;
    double *row, *leaf; /* sums so far */
    double *part;       /* (n_row + n_leaf) of one member */
    double *split;      /* (n_leaf) share of a leaf in its row */
} share;

static bool reads_leaves(const cd_member *e) {
    return e->net && cd_member_needs_leaves(e->kind, cd_net_config_of(e->net)->tokens);
}

/* Shares of things whose logarithms are given. */
static void soft(const double *log_of, size_t n, double *out) {
    const double all = cd_loss_log_sum_exp(log_of, n);
    for (size_t k = 0; k < n; k++) out[k] = exp(log_of[k] - all);
}

static double log_trips(const share *s, size_t l) {
    return cd_tree_input_log_trips(cd_program_view_leaf(s->v, (size_t)s->v->leaf_ptr[0] + l));
}

/* Leaves of a row in proportion to their trips. */
static cdmpp_status split_rows(share *s, cdmpp_err *err) {
    double *most = s->part, *sum = s->row;
    for (size_t r = 0; r < s->n_row; r++) most[r] = -INFINITY;
    for (size_t l = 0; l < s->n_leaf; l++)
        most[s->leaf_row[l]] = fmax(most[s->leaf_row[l]], log_trips(s, l));
    for (size_t r = 0; r < s->n_row; r++)
        if (isinf(most[r])) return CD_FAIL(err, EMODEL, "row %zu has no leaf", r);
    memset(sum, 0, s->n_row * sizeof *sum);
    for (size_t l = 0; l < s->n_leaf; l++)
        sum[s->leaf_row[l]] += s->split[l] = exp(log_trips(s, l) - most[s->leaf_row[l]]);
    for (size_t l = 0; l < s->n_leaf; l++) s->split[l] /= sum[s->leaf_row[l]];
    return CDMPP_OK;
}

/* Where the member's last answer is a sum of terms: their shares. False: it is not. */
static bool terms(const cd_member *e, const cd_member_scratch *ms, size_t n, double *out) {
    if (!e->net) {
        if (cd_member_form(e->kind) != CD_TREE_INPUT_ROWS || e->objective == CD_OBJECTIVE_PACK_SUM)
            return false;
        soft(ms->wide.p, n, out);
        return true;
    }
    const cd_net_config *spec = cd_net_config_of(e->net);
    if (spec->kind != CD_NET_TSF || spec->head != CD_HEAD_SUM) return false;
    const float *score = cd_net_state_scores(ms->state);
    for (size_t k = 0; k < n; k++)
        out[k] = spec->temperature * (double)score[k * (size_t)spec->n_out];
    soft(out, n, out);
    return true;
}

/* Adds the member's shares to row and leaf, scaled so that they sum to `weight`. */
static cdmpp_status add(share *s, bool leaf, double weight, cdmpp_err *err) {
    const size_t n = leaf ? s->n_leaf : s->n_row;
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += s->part[k];
    if (!(sum > 0) || !isfinite(sum))
        return CD_FAIL(err, ENUMERIC, "a member to which no row of the program matters");
    for (size_t k = 0; k < n; k++) s->part[k] *= weight / sum;
    for (size_t l = 0; l < s->n_leaf; l++) {
        const double of = leaf ? s->part[l] : s->part[s->leaf_row[l]] * s->split[l];
        s->leaf[l] += of;
        if (leaf) s->row[s->leaf_row[l]] += of;
    }
    for (size_t r = 0; !leaf && r < s->n_row; r++) s->row[r] += s->part[r];
    return CDMPP_OK;
}

static cdmpp_status one_member(share *s, const cd_member *e, cd_member_scratch *ms, double weight,
                               cdmpp_err *err) {
    double log_s;
    const bool leaf = reads_leaves(e);
    const cd_attribution_of o = {s->m, e, s->v, ms, leaf, leaf ? s->n_leaf : s->n_row};
    CD_TRY(
        cd_member_predict(e, ms, s->v, NULL, 1, s->m->device_vector, s->m->n_device, &log_s, err));
    if (!terms(e, ms, o.n, s->part)) CD_TRY(cd_attribution_shapley(&o, s->part, err));
    return add(s, leaf, weight, err);
}

/* Members of a kind share its weight. Each gets fresh working memory, because terms() reads what
 * the last prediction left there. */
static cdmpp_status each_member(share *s, const double *weight, cdmpp_err *err) {
    for (size_t k = 0; k < s->m->n_kind; k++) {
        size_t n_of = 0;
        for (size_t j = 0; j < s->m->n_member; j++) n_of += s->m->member[j].kind == s->m->kind[k];
        for (size_t j = 0; weight[k] > 0 && j < s->m->n_member; j++) {
            cd_member_scratch *ms = NULL;
            if (s->m->member[j].kind != s->m->kind[k]) continue;
            CD_TRY(cd_member_scratch_new(&ms, err));
            const cdmpp_status st =
                one_member(s, &s->m->member[j], ms, weight[k] / (double)n_of, err);
            cd_member_scratch_free(ms);
            if (st) return cd_err_key(err, st, cd_member_name(s->m->kind[k]));
        }
    }
    return CDMPP_OK;
}

/* One block for three arrays, of which split_rows uses part of the first as scratch. */
cdmpp_status cd_attribution_shares(const cd_model *m, const cd_program_view *v,
                                   const int32_t *leaf_row, double *row, double *leaf,
                                   cdmpp_err *err) {
    const uint32_t device = cd_model_stands_for(m, v->device[0]);
    cd_program_view of = *v;
    of.device = &device;
    share s = {.m = m,
               .v = &of,
               .leaf_row = leaf_row,
               .n_row = (size_t)(v->row_ptr[1] - v->row_ptr[0]),
               .row = row,
               .leaf = leaf};
    const cd_calibration_info info =
        m->calib ? cd_calibration_info_of(m->calib) : (cd_calibration_info){0};
    if (v->leaf_ptr) s.n_leaf = (size_t)(v->leaf_ptr[1] - v->leaf_ptr[0]);
    if (!s.n_row || !s.n_leaf || v->device[0] >= m->n_device)
        return CD_FAIL(err, EMODEL, "expected a program with rows and leaves");
    s.part = cd_mem_zalloc(s.n_row + 2 * s.n_leaf, sizeof *s.part);
    if (!s.part) return CD_FAIL(err, ENOMEM, "shares of %zu leaves", s.n_leaf);
    s.split = s.part + s.n_row + s.n_leaf;
    cdmpp_status st = split_rows(&s, err);
    memset(row, 0, s.n_row * sizeof *row);
    memset(leaf, 0, s.n_leaf * sizeof *leaf);
    if (!st) st = each_member(&s, m->calib ? info.weight : m->weight, err);
    cd_mem_free(s.part);
    return st;
}

bool cd_model_middle(const cd_model *m, float *column) {
    if (!m->calib) return false;
    const float *range = cd_calibration_range(m->calib); /* program vectors begin with that row */
    const size_t width = cd_calibration_width(m->calib);
    for (size_t c = 0; c < CD_N_COL; c++) column[c] = 0.5f * range[c] + 0.5f * range[width + c];
    return true;
}
