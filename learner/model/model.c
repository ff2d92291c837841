/* Predictions of an ensemble: the mean over the members of each kind, then the calibration. Working
 * memory is the caller's, so a model can be shared between threads. */
#include "learner/model/model.h"

#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

enum { FEW_TREES = 100 }; /* boosting has most of the order by then: 60 and 200 were no better */

struct cd_model_scratch {
    cd_member_scratch *tree; /* of all trees */
    /* (n_net) of the member with that number, made when it is first asked */
    cd_member_scratch **net;
    size_t n_net;
    cd_member_block kinds;          /* double (n_kind, n) */
    cd_member_block one;            /* double (n): one member */
    cd_member_block x;              /* float (n, width): program vectors for the uncertainty */
    cd_member_block logs;           /* double (5, n): what it says */
    cd_member_block flags;          /* uint32_t (n) */
    cd_member_block calib;          /* bytes */
    cd_member_block device;         /* uint32_t (programs of a view): who answers */
    cd_member_block order_kinds;    /* double (kinds of the order, n) */
    struct cd_model_scratch *order; /* of its members, made when they are first asked */
};

cdmpp_status cd_model_scratch_new(cd_model_scratch **out, cdmpp_err *err) {
    cd_model_scratch *s = cd_mem_zalloc(1, sizeof *s);
    cdmpp_status st = s ? CDMPP_OK : CD_FAIL(err, ENOMEM, "scratch");
    if (!st) st = cd_member_scratch_new(&s->tree, err);
    if (st) cd_model_scratch_free(s);
    else *out = s;
    return st;
}

void cd_model_scratch_free(cd_model_scratch *s) {
    if (!s) return;
    cd_member_scratch_free(s->tree);
    for (size_t j = 0; j < s->n_net; j++) cd_member_scratch_free(s->net[j]);
    cd_mem_free(s->net);
    cd_mem_free(s->kinds.p);
    cd_mem_free(s->one.p);
    cd_mem_free(s->x.p);
    cd_mem_free(s->logs.p);
    cd_mem_free(s->flags.p);
    cd_mem_free(s->calib.p);
    cd_mem_free(s->device.p);
    cd_mem_free(s->order_kinds.p);
    cd_model_scratch_free(s->order);
    cd_mem_free(s);
}

static cdmpp_status check_input(const cd_model *m, const cd_program_view *v, const uint32_t *index,
                                size_t n, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        const size_t p = index ? index[i] : i;
        if (v->row_ptr[p + 1] <= v->row_ptr[p])
            return CD_FAIL(err, EMODEL,
                           "program %zu: expected at least one feature row, found none", p);
        if (v->device[p] >= m->n_device)
            return CD_FAIL(err, EMODEL, "program %zu: expected a device below %zu, found %u", p,
                           m->n_device, v->device[p]);
    }
    return CDMPP_OK;
}

/* The view for the members, which know no machine that the model is corrected for: its programs are
 * of the device that stands for it. */
static cdmpp_status stand_in(const cd_model *m, cd_model_scratch *s, cd_program_view *v,
                             cdmpp_err *err) {
    if (!m->here || m->here->device == m->here->stands) return CDMPP_OK;
    if (!cd_member_block_grow(&s->device, v->n + 1, sizeof(uint32_t)))
        return CD_FAIL(err, ENOMEM, "%zu programs to score", v->n);
    uint32_t *device = s->device.p;
    for (size_t i = 0; i < v->n; i++) device[i] = cd_model_stands_for(m, v->device[i]);
    v->device = device;
    return CDMPP_OK;
}

/* Each network keeps its own room: shared, it would be torn down and built again for every
 * member. */
static cdmpp_status scratch_of(const cd_model *m, cd_model_scratch *s, size_t j,
                               cd_member_scratch **out, cdmpp_err *err) {
    if (!cd_member_is_net(m->member[j].kind)) {
        *out = s->tree;
        return CDMPP_OK;
    }
    if (j >= s->n_net) {
        cd_member_scratch **net = cd_mem_zalloc(m->n_member, sizeof *net);
        if (!net) return CD_FAIL(err, ENOMEM, "scratch of %zu members", m->n_member);
        if (s->n_net) memcpy(net, s->net, s->n_net * sizeof *net);
        cd_mem_free(s->net);
        s->net = net;
        s->n_net = m->n_member;
    }
    if (!s->net[j]) CD_TRY(cd_member_scratch_new(&s->net[j], err));
    *out = s->net[j];
    return CDMPP_OK;
}

/* In order of the kinds and members: sums of doubles depend on their order. */
cdmpp_status cd_model_kinds(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                            const uint32_t *index, size_t n, int fold, double *kind_log_s,
                            cdmpp_err *err) {
    if (!cd_member_block_grow(&s->one, n, sizeof(double)))
        return CD_FAIL(err, ENOMEM, "%zu programs to score", n);
    double *one = s->one.p;
    memset(kind_log_s, 0, m->n_kind * n * sizeof *kind_log_s);
    for (size_t k = 0; k < m->n_kind; k++) {
        double *sum = kind_log_s + k * n;
        size_t n_of = 0;
        for (size_t j = 0; j < m->n_member; j++) {
            const cd_member *e = &m->member[j];
            if (e->kind != m->kind[k] || (fold >= 0 && e->fold != fold)) continue;
            cd_member_scratch *ms = NULL;
            CD_TRY(scratch_of(m, s, j, &ms, err));
            CD_TRY(cd_member_predict(e, ms, v, index, n, m->device_vector, m->n_device, one, err));
            for (size_t i = 0; i < n; i++) sum[i] += one[i];
            n_of++;
        }
        for (size_t i = 0; i < n; i++) sum[i] /= (double)n_of;
    }
    return CDMPP_OK;
}

/* ---- answer ---- */
/* The least distance of the point from the ends of its interval, in sigma. The point of least MAPE
 * lies low on purpose, and is clipped to the times of training: it may be at a quantile or behind
 * it. */
static const double inside = 0.25;

static double clip(const cd_model *m, double log_s) {
    return fmax(m->log_min, fmin(log_s, m->log_max));
}

/* A file that somebody made by hand may hold weights and limits that are numbers, and whose answers
 * are none. `clip` would make a time of NaN. */
cdmpp_status cd_model_check_answer(const cd_model_prediction *p, size_t i, cdmpp_err *err) {
    if (isfinite(p->latency_s) && isfinite(p->median_s) && p->latency_s > 0 && p->median_s > 0 &&
        (isnan(p->low_s) || (p->low_s > 0 && isfinite(p->high_s))))
        return CDMPP_OK;
    return CD_FAIL(
        err, ENUMERIC,
        "program %zu: the model answers %g s, interval %g to %g s: expected finite numbers above 0",
        i, p->latency_s, p->low_s, p->high_s);
}

/* Models of version 1 have weights and no calibration. */
static cdmpp_status plain_answer(const cd_model *m, size_t n, const double *kind_log_s,
                                 cd_model_prediction *out, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < m->n_kind; k++) sum += m->weight[k] * kind_log_s[k * n + i];
        if (!isfinite(sum))
            return CD_FAIL(err, ENUMERIC, "program %zu: the model's answer is not finite", i);
        const double y = exp(clip(m, sum));
        out[i] = (cd_model_prediction){.latency_s = y,
                                       .median_s = y,
                                       .order_s = y,
                                       .low_s = (double)NAN,
                                       .high_s = (double)NAN,
                                       .rel_std = (double)NAN,
                                       .like_std = (double)NAN};
    }
    return CDMPP_OK;
}

static void fill_programs(const cd_program_view *v, const uint32_t *index, size_t n, float *x) {
    const size_t width = cd_tree_input_width(CD_TREE_INPUT_PROGRAM);
    for (size_t i = 0; i < n; i++) {
        const size_t p = index ? index[i] : i;
        if (i % 16 == 0) cd_spool_rest(v->spool);
        cd_tree_input_fill(CD_TREE_INPUT_PROGRAM, v->row + v->row_ptr[p] * CD_N_COL,
                           (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]), v->device[p],
                           x + i * width);
    }
}

cdmpp_status cd_model_answer(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                             const uint32_t *index, size_t n, int fold, const double *kind_log_s,
                             cd_model_prediction *out, cdmpp_err *err) {
    if (!m->calib) return plain_answer(m, n, kind_log_s, out, err);
    if (!cd_member_block_grow(&s->x, n * cd_tree_input_width(CD_TREE_INPUT_PROGRAM),
                              sizeof(float)) ||
        !cd_member_block_grow(&s->logs, 6 * n, sizeof(double)) ||
        !cd_member_block_grow(&s->flags, n, sizeof(uint32_t)) ||
        !cd_member_block_grow(&s->calib, cd_calibration_scratch_bytes(m->calib), 1))
        return CD_FAIL(err, ENOMEM, "%zu programs to score", n);
    double *l = s->logs.p;
    const uint32_t *flags = s->flags.p;
    const cd_calibration_output o = {l,         l + n,      l + 2 * n, l + 3 * n,
                                     l + 4 * n, s->flags.p, l + 5 * n};
    fill_programs(v, index, n, s->x.p);
    CD_TRY(cd_calibration_apply(m->calib, kind_log_s, s->x.p, n, fold, s->calib.p, &o, err));
    for (size_t i = 0; i < n; i++) {
        const double y = clip(m, o.point_log[i]), room = inside * o.sigma[i];
        out[i] = (cd_model_prediction){
            .latency_s = exp(y),
            .median_s = exp(clip(m, o.median_log[i])),
            .rel_std = o.sigma[i],
            .like_std = o.sigma[i],
            .low_s = exp(fmin(y - room, o.low_log[i])),
            .high_s = exp(fmax(y + room, o.high_log[i])),
            .outside = o.outside[i],
            .flags = flags[i] & CD_CALIBRATION_OUT_OF_RANGE ? CD_MODEL_OUT_OF_RANGE : 0u,
            .reason = flags[i] & CD_CALIBRATION_OUT_OF_RANGE ? CD_UNLIKE_RANGE : 0u};
        out[i].order_s = out[i].median_s;
        CD_TRY(cd_model_check_answer(&out[i], i, err));
    }
    return CDMPP_OK;
}

/* Of each kind its first member. A kind always has one. */
static cdmpp_status first_of_kinds(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                                   const uint32_t *index, size_t n, double *kinds, cdmpp_err *err) {
    for (size_t k = 0; k < m->n_kind; k++) {
        cd_member_scratch *ms = NULL;
        size_t j = 0;
        while (m->member[j].kind != m->kind[k]) j++;
        CD_TRY(scratch_of(m, s, j, &ms, err));
        CD_TRY(cd_member_predict(&m->member[j], ms, v, index, n, m->device_vector, m->n_device,
                                 kinds + k * n, err));
    }
    return CDMPP_OK;
}

/* order_s of programs that have their seconds; a sketch has few trees, and asks few of the order
 * too. */
static cdmpp_status put_in_order(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                                 const uint32_t *index, size_t n, cd_model_prediction *out,
                                 cdmpp_err *err) {
    const cd_model *order = m->order;
    if (!order) return CDMPP_OK;
    if (!cd_member_block_grow(&s->order_kinds, order->n_kind * n, sizeof(double)))
        return CD_FAIL(err, ENOMEM, "%zu programs to put in order", n);
    if (!s->order) CD_TRY(cd_model_scratch_new(&s->order, err));
    s->order->tree->trees = s->tree->trees;
    CD_TRY(s->tree->trees
               ? first_of_kinds(order, s->order, v, index, n, s->order_kinds.p, err)
               : cd_model_kinds(order, s->order, v, index, n, -1, s->order_kinds.p, err));
    cd_model_mix_order(m, s->order_kinds.p, n, out);
    return CDMPP_OK;
}

cdmpp_status cd_model_predict(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                              const uint32_t *index, size_t n, cd_model_prediction *out,
                              cdmpp_err *err) {
    if (!n) return CDMPP_OK;
    CD_TRY(check_input(m, v, index, n, err));
    if (!cd_member_block_grow(&s->kinds, m->n_kind * n, sizeof(double)))
        return CD_FAIL(err, ENOMEM, "%zu programs to score", n);
    cd_program_view of = *v;
    CD_TRY(stand_in(m, s, &of, err));
    CD_TRY(cd_model_kinds(m, s, &of, index, n, -1, s->kinds.p, err));
    CD_TRY(cd_model_answer(m, s, &of, index, n, -1, s->kinds.p, out, err));
    return put_in_order(m, s, &of, index, n, out, err);
}

cdmpp_status cd_model_sketch(const cd_model *m, cd_model_scratch *s, const cd_program_view *v,
                             const uint32_t *index, size_t n, cd_model_prediction *out,
                             cdmpp_err *err) {
    if (!n) return CDMPP_OK;
    CD_TRY(check_input(m, v, index, n, err));
    if (!cd_member_block_grow(&s->kinds, m->n_kind * n, sizeof(double)))
        return CD_FAIL(err, ENOMEM, "%zu programs to score", n);
    cd_program_view of = *v;
    CD_TRY(stand_in(m, s, &of, err));
    s->tree->trees = FEW_TREES;
    cdmpp_status st = first_of_kinds(m, s, &of, index, n, s->kinds.p, err);
    if (!st) st = cd_model_answer(m, s, &of, index, n, -1, s->kinds.p, out, err);
    if (!st) st = put_in_order(m, s, &of, index, n, out, err);
    s->tree->trees = 0;
    return st;
}

/* ---- the rest ---- */
void cd_model_free(cd_model *m) {
    if (!m) return;
    for (size_t k = 0; k < m->n_member; k++) cd_member_free(&m->member[k]);
    cd_mem_free(m->member);
    cd_calibration_free(m->calib);
    cd_model_free(m->tuner);
    cd_model_free(m->order);
    if (m->here) cd_xgb_free(m->here->trees.gbt);
    cd_arena_free(&m->arena);
    cd_mem_free(m);
}

const char *cd_model_header(const cd_model *m) { return m->header; }
const char *cd_model_digest(const cd_model *m) { return m->digest; }
const cd_model *cd_model_tuner(const cd_model *m) { return m->tuner; }
const cd_model *cd_model_order(const cd_model *m) { return m->order; }
size_t cd_model_n_device(const cd_model *m) { return m->n_device; }
const char *cd_model_device(const cd_model *m, size_t i) { return m->device[i]; }
int cd_model_device_is_gpu(const cd_model *m, size_t i) { return m->device_is_gpu[i]; }

const cd_trained_on *cd_model_trained_on(const cd_model *m) { return m->trained_on; }

double cd_model_expected_error(const cd_model_prediction *p) {
    return p->rel_std > 0 ? p->rel_std : fmax(p->like_std, 0);
}

void cd_model_mark_unlike(const cd_model *m, bool compared, uint32_t reason,
                          cd_model_prediction *p) {
    if (compared && m->trained_on && p->outside <= m->trained_on->range) {
        p->reason &= ~(uint32_t)CD_UNLIKE_RANGE;
        p->flags &= ~CD_MODEL_OUT_OF_RANGE;
    }
    if (reason) p->flags |= CD_MODEL_OUT_OF_RANGE;
    p->reason |= reason;
    cd_trained_on_widen(m->trained_on, p->reason, p->latency_s, &p->low_s, &p->high_s, &p->rel_std);
}

/* The correction by measured programs is of one device of the model, not of those that it stands
 * for. */
cdmpp_status cd_model_settle(const cd_model *m, const cd_program_view *v, size_t p,
                             const cd_model_asked *asked, cd_model_prediction *io, cdmpp_err *err) {
    if (!asked->doubt && !asked->uncorrected) CD_TRY(cd_here_apply(m, v, p, io, err));
    cd_model_mark_unlike(m, asked->compared, asked->reason, io);
    const bool saw = !m->trained_on || cd_trained_on_saw(m->trained_on, v->device[p]);
    /* one that the model knows by its description alone */
    const cd_device_doubt unseen =
        saw ? (cd_device_doubt){0} : cd_model_device_doubt(m, v->device[p], NULL, NULL, false);
    if (asked->doubt || !saw) cd_device_doubt_widen(asked->doubt ? asked->doubt : &unseen, io);
    return CDMPP_OK;
}

cd_device_doubt cd_model_device_doubt(const cd_model *m, size_t i, const float *want,
                                      const float *has, bool own_times) {
    static const cd_device_law none = {0};
    const bool both = want && has, other = both && !cd_device_same_width(want, has),
               width = other && m->law[CD_DEVICE_LAW_WIDTH].n;
    const cd_device_law *l = &m->law[width                 ? CD_DEVICE_LAW_WIDTH
                                     : m->device_is_gpu[i] ? CD_DEVICE_LAW_GPU
                                                           : CD_DEVICE_LAW_CPU];
    const double far = both ? cd_device_distance(want, has) : (double)NAN,
                 peaks = both ? cd_device_law_peaks(want, has) : 0;
    const double known = own_times && (width || !other) ? l->peaks : 0;
    cd_device_doubt d = cd_device_law_at(l, far, fmax(0, peaks - known));
    /* of another width nothing is known where the training saw one alone */
    if (other && !width) d.shift = fmax(d.shift, cd_device_law_at(&none, far, 0).shift);
    return d;
}

size_t cd_model_n_kind(const cd_model *m) { return m->n_kind; }
cd_member_kind cd_model_kind(const cd_model *m, size_t k) { return m->kind[k]; }
double cd_model_weight(const cd_model *m, size_t k) {
    return m->calib ? cd_calibration_info_of(m->calib).weight[k] : m->weight[k];
}
size_t cd_model_n_member(const cd_model *m) { return m->n_member; }
const cd_member *cd_model_member(const cd_model *m, size_t i) { return &m->member[i]; }

bool cd_model_orders_rows(const cd_model *m) { return !m->rows_as_given; }

bool cd_model_needs_steps(const cd_model *m) {
    for (size_t k = 0; k < m->n_member; k++)
        if (cd_member_needs_steps(m->member[k].kind)) return true;
    return m->order && cd_model_needs_steps(m->order);
}

bool cd_model_needs_facts(const cd_model *m) {
    for (size_t k = 0; k < m->n_member; k++)
        if (m->member[k].facts != CD_FACTS_USE_NONE) return true;
    return m->order && cd_model_needs_facts(m->order);
}

cd_facts_set cd_model_facts_set(const cd_model *m) { return m->facts_set; }
const cd_device_numbers *cd_model_device_numbers(const cd_model *m, size_t i) {
    return m->numbers ? &m->numbers[i] : NULL;
}

bool cd_model_needs_leaves(const cd_model *m) { return cd_model_leaf_reader(m) != NULL; }

const char *cd_model_leaf_reader(const cd_model *m) {
    for (size_t k = 0; k < m->n_member; k++) {
        const cd_member *e = &m->member[k];
        if (e->net && cd_member_needs_leaves(e->kind, cd_net_config_of(e->net)->tokens))
            return cd_member_name(e->kind);
    }
    return m->order ? cd_model_leaf_reader(m->order) : NULL;
}

size_t cd_model_slots(const cd_model *m) {
    size_t least = 0;
    for (size_t k = 0; k < m->n_member; k++) {
        const cd_net_config *n = m->member[k].net ? cd_net_config_of(m->member[k].net) : NULL;
        if (!n || n->kind != CD_NET_TSF || n->head != CD_HEAD_FLATTEN) continue;
        if (!least || (size_t)n->slots < least) least = (size_t)n->slots;
    }
    const size_t order = m->order ? cd_model_slots(m->order) : 0;
    return order && (!least || order < least) ? order : least;
}

const float *cd_model_device_vector(const cd_model *m, size_t i, size_t *width) {
    *width = m->w_device;
    return m->device_vector + i * m->w_device;
}

int cd_model_find_device(const cd_model *m, const char *name, size_t n) {
    for (size_t i = 0; i < m->n_device; i++)
        if (strlen(m->device[i]) == n && !memcmp(m->device[i], name, n)) return (int)i;
    return -1;
}
