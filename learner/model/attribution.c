/* Which rows and leaves of a program take its time, as the model sees it. Where a member's answer
 * is a sum over rows, the terms are the shares; where it is not, Shapley values of the member's
 * seconds are. */
#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

/* Shapley values of a member's seconds: the member predicts programs with some of the rows (or
 * leaves) of the given one. All subsets are predicted for few players, random orders for more,
 * single players for many. */

enum { AT_ONCE = 64 }; /* programs that are made and scored together */

/* Programs made of one, each with some of its players. */
typedef struct {
    size_t n_row, n_leaf, n_tree, n_path;
    float *row;
    const float **leaf_x;
    float zero[CD_N_COL];
    int64_t row_ptr[AT_ONCE + 1], leaf_ptr[AT_ONCE + 1], tree_ptr[AT_ONCE + 1];
    int32_t *leaf_pos, *leaf_node, *tree;
    int64_t *path_ptr, *path_extent;
    uint8_t *path_kind;
    /* of the whole program, whoever is in */
    float facts[AT_ONCE * CD_N_FACTS], analytic[AT_ONCE * CD_N_ANALYTIC];
    uint32_t device[AT_ONCE];
    double flop[AT_ONCE], log_s[AT_ONCE];
    uint8_t *in; /* (AT_ONCE, players) */
    cd_arena arena;
} made;

static void *copies(made *w, size_t n, size_t size) {
    return cd_arena_alloc(&w->arena, AT_ONCE * n + 1, size);
}

/* Room for AT_ONCE programs, each as large as the given one. */
static bool start(made *w, const cd_attribution_of *o) {
    const cd_program_view *v = o->v;
    w->n_row = (size_t)(v->row_ptr[1] - v->row_ptr[0]);
    w->n_leaf = o->leaf ? (size_t)(v->leaf_ptr[1] - v->leaf_ptr[0]) : 0;
    w->n_tree = o->leaf && v->tree_ptr ? (size_t)(v->tree_ptr[1] - v->tree_ptr[0]) : 0;
    w->n_path = w->n_leaf ? (size_t)(v->path_ptr[v->leaf_ptr[1]] - v->path_ptr[v->leaf_ptr[0]]) : 0;
    w->row = copies(w, w->n_row * CD_N_COL, sizeof *w->row);
    w->leaf_x = copies(w, w->n_leaf, sizeof *w->leaf_x);
    w->leaf_pos = copies(w, w->n_leaf, sizeof *w->leaf_pos);
    w->leaf_node = copies(w, w->n_leaf, sizeof *w->leaf_node);
    w->tree = copies(w, w->n_tree, sizeof *w->tree);
    w->path_ptr = copies(w, w->n_leaf, sizeof *w->path_ptr);
    w->path_extent = copies(w, w->n_path, sizeof *w->path_extent);
    w->path_kind = copies(w, w->n_path, sizeof *w->path_kind);
    w->in = copies(w, o->n, 1);
    if (w->path_ptr) w->path_ptr[0] = 0;
    return w->row && w->leaf_x && w->leaf_pos && w->leaf_node && w->tree && w->path_ptr &&
           w->path_extent && w->path_kind && w->in;
}

static void put_rows(made *w, const cd_attribution_of *o, size_t i, const uint8_t *in) {
    const float *row = o->v->row + o->v->row_ptr[0] * CD_N_COL;
    int64_t at = w->row_ptr[i];
    for (size_t r = 0; r < w->n_row; r++)
        if (!in || in[r])
            memcpy(w->row + at++ * CD_N_COL, row + r * CD_N_COL, CD_N_COL * sizeof *row);
    w->row_ptr[i + 1] = at;
}

/* The same tree; leaves that are out have nothing but zeros. */
static void put_leaves(made *w, const cd_attribution_of *o, size_t i, const uint8_t *in) {
    const cd_program_view *v = o->v;
    const size_t l0 = (size_t)v->leaf_ptr[0], p0 = (size_t)v->path_ptr[l0], to = i * w->n_leaf;
    for (size_t l = 0; l < w->n_leaf; l++) {
        w->leaf_x[to + l] = in[l] ? cd_program_view_leaf(v, l0 + l) : w->zero;
        w->path_ptr[to + l + 1] = (int64_t)(i * w->n_path) + v->path_ptr[l0 + l + 1] - (int64_t)p0;
    }
    memcpy(w->leaf_pos + to, v->leaf_pos + l0, w->n_leaf * sizeof *w->leaf_pos);
    memcpy(w->leaf_node + to, v->leaf_node + l0, w->n_leaf * sizeof *w->leaf_node);
    if (w->n_tree)
        memcpy(w->tree + i * w->n_tree, v->tree + v->tree_ptr[0], w->n_tree * sizeof *w->tree);
    if (w->n_path)
        memcpy(w->path_extent + i * w->n_path, v->path_extent + p0,
               w->n_path * sizeof *w->path_extent);
    if (w->n_path) memcpy(w->path_kind + i * w->n_path, v->path_kind + p0, w->n_path);
    w->leaf_ptr[i + 1] = (int64_t)((i + 1) * w->n_leaf);
    w->tree_ptr[i + 1] = (int64_t)((i + 1) * w->n_tree);
}

static bool any(const uint8_t *in, size_t n) { return memchr(in, 1, n) != NULL; }

/* k <= AT_ONCE sets of w->in -> seconds over exp(scale); no player of rows: 0 s. */
static cdmpp_status seconds(made *w, const cd_attribution_of *o, size_t k, double scale,
                            double *out, cdmpp_err *err) {
    size_t n = 0;
    for (size_t i = 0; i < k; i++) {
        const uint8_t *in = w->in + i * o->n;
        if (!o->leaf && !any(in, o->n)) continue;
        put_rows(w, o, n, o->leaf ? NULL : in);
        if (o->leaf) put_leaves(w, o, n, in);
        if (o->v->facts)
            memcpy(w->facts + n * CD_N_FACTS, o->v->facts, CD_N_FACTS * sizeof *w->facts);
        if (o->v->facts)
            memcpy(w->analytic + n * CD_N_ANALYTIC, o->v->analytic,
                   CD_N_ANALYTIC * sizeof *w->analytic);
        w->device[n] = o->v->device[0];
        w->flop[n++] = o->v->flop ? o->v->flop[0] : -1;
    }
    const cd_program_view v = {.n = n,
                               .row = w->row,
                               .row_ptr = w->row_ptr,
                               .leaf_ptr = o->leaf ? w->leaf_ptr : NULL,
                               .leaf_x = w->leaf_x,
                               .leaf_pos = w->leaf_pos,
                               .leaf_node = w->leaf_node,
                               .path_ptr = w->path_ptr,
                               .path_extent = w->path_extent,
                               .path_kind = w->path_kind,
                               .tree_ptr = w->n_tree ? w->tree_ptr : NULL,
                               .tree = w->tree,
                               .device = w->device,
                               .flop = w->flop,
                               .facts = o->v->facts ? w->facts : NULL,
                               .analytic = o->v->facts ? w->analytic : NULL,
                               .facts_set = o->v->facts_set};
    CD_TRY(cd_member_predict(o->e, o->s, &v, NULL, n, o->m->device_vector, o->m->n_device, w->log_s,
                             err));
    n = 0;
    for (size_t i = 0; i < k; i++)
        out[i] =
            !o->leaf && !any(w->in + i * o->n, o->n) ? 0 : exp(fmin(w->log_s[n++] - scale, 300));
    return CDMPP_OK;
}

/* ---- the three ways ---- */
/* The definition: the mean over all orders of what a player adds, gathered by sets. */
void cd_attribution_exact(const double *value, size_t n, double *phi) {
    for (size_t r = 0; r < n; r++) {
        phi[r] = 0;
        for (size_t set = 0; set < (size_t)1 << n; set++) {
            if (set >> r & 1) continue;
            double weight = 1.0 / (double)n; /* |set|! (n-1-|set|)! / n! */
            for (size_t k = 0, bits = (size_t)__builtin_popcountll(set); k < bits; k++)
                weight *= (double)(k + 1) / (double)(n - 1 - k);
            phi[r] += weight * (value[set | (size_t)1 << r] - value[set]);
        }
    }
}

/* Bit r of a set's number says whether player r is in it. */
static cdmpp_status exact(made *w, const cd_attribution_of *o, double scale, double *phi,
                          cdmpp_err *err) {
    double value[1u << CD_SHARE_EXACT];
    const size_t n_set = (size_t)1 << o->n;
    for (size_t s0 = 0; s0 < n_set; s0 += AT_ONCE) {
        const size_t k = n_set - s0 < AT_ONCE ? n_set - s0 : AT_ONCE;
        for (size_t i = 0; i < k; i++)
            for (size_t r = 0; r < o->n; r++) w->in[i * o->n + r] = (uint8_t)((s0 + i) >> r & 1);
        CD_TRY(seconds(w, o, k, scale, value + s0, err));
    }
    cd_attribution_exact(value, o->n, phi);
    return CDMPP_OK;
}

/* Order `number`; odd ones are the reverse of those before. */
static void order_of(size_t number, size_t n, size_t *order) {
    for (size_t i = 0; i < n; i++) {
        const size_t j = (size_t)(cd_rng_at(number / 2, i) % (i + 1));
        if (j != i) order[i] = order[j];
        order[j] = i;
    }
    for (size_t i = 0; number % 2 && i < n / 2; i++) {
        const size_t t = order[i];
        order[i] = order[n - 1 - i];
        order[n - 1 - i] = t;
    }
}

/* Players come one after another; what each adds is its own. Antithetic pairs: each order is
 * followed by its reverse, which halves the variance of values that depend on the position. */
static cdmpp_status drawn(made *w, const cd_attribution_of *o, double scale, double *phi,
                          cdmpp_err *err) {
    size_t order[CD_SHARE_DRAWN];
    double value[CD_SHARE_DRAWN + 1];
    for (size_t k = 0; k < 2 * CD_SHARE_ORDERS; k++) {
        order_of(k, o->n, order);
        memset(w->in, 0, (o->n + 1) * o->n);
        for (size_t i = 0; i < o->n; i++)
            for (size_t j = i + 1; j <= o->n; j++) w->in[j * o->n + order[i]] = 1;
        CD_TRY(seconds(w, o, o->n + 1, scale, value, err));
        for (size_t i = 0; i < o->n; i++) phi[order[i]] += value[i + 1] - value[i];
    }
    return CDMPP_OK;
}

static cdmpp_status alone(made *w, const cd_attribution_of *o, double scale, double *phi,
                          cdmpp_err *err) {
    for (size_t r0 = 0; r0 < o->n; r0 += AT_ONCE) {
        const size_t k = o->n - r0 < AT_ONCE ? o->n - r0 : AT_ONCE;
        memset(w->in, 0, k * o->n);
        for (size_t i = 0; i < k; i++) w->in[i * o->n + r0 + i] = 1;
        CD_TRY(seconds(w, o, k, scale, phi + r0, err));
    }
    return CDMPP_OK;
}

_Static_assert((int)CD_SHARE_DRAWN < (int)AT_ONCE, "an order is scored at once");

/* Shapley values of the member's seconds over the players, below 0 cut; the scale is arbitrary. */
static cdmpp_status attribution_shapley(const cd_attribution_of *o, double *value, cdmpp_err *err) {
    double scale;
    made *w = cd_mem_zalloc(1, sizeof *w);
    cdmpp_status st =
        w && start(w, o) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "programs of %zu rows", o->n);
    memset(value, 0, o->n * sizeof *value);
    if (!st)
        st = cd_member_predict(o->e, o->s, o->v, NULL, 1, o->m->device_vector, o->m->n_device,
                               &scale, err);
    if (!st)
        st = (o->n <= CD_SHARE_EXACT   ? exact
              : o->n <= CD_SHARE_DRAWN ? drawn
                                       : alone)(w, o, scale, value, err);
    for (size_t r = 0; r < o->n; r++) value[r] = fmax(value[r], 0);
    if (w) cd_arena_free(&w->arena);
    cd_mem_free(w);
    return st;
}

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
    if (!terms(e, ms, o.n, s->part)) CD_TRY(attribution_shapley(&o, s->part, err));
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
