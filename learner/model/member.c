/* A member of an ensemble: what its kind reads, from programs to ln of seconds, and its part of the
 * model file. The table of kinds says what each is; docs/internals/add-a-learner-member.md has the
 * other places of a new kind. */
#include "learner/model/member.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "features/rows/rows.h"
#include "learner/model/model_internal.h"

typedef struct {
    const char *name;
    bool net;
    cd_tree_input_form form;
} kind_row;

static const kind_row table[CD_N_MEMBER_KIND] = {
    [CD_MEMBER_ROWS] = {"rows", false, CD_TREE_INPUT_ROWS},
    [CD_MEMBER_PROGRAM] = {"program", false, CD_TREE_INPUT_PROGRAM},
    [CD_MEMBER_SUMS] = {"sums", false, CD_TREE_INPUT_SUMS},
    [CD_MEMBER_MLP] = {"mlp", true, 0},
    [CD_MEMBER_TSF] = {"transformer", true, 0},
    [CD_MEMBER_LSTM] = {"lstm", true, 0},
    [CD_MEMBER_TLP] = {"tlp", true, 0},
};

const char *cd_member_name(cd_member_kind k) { return table[k].name; }
bool cd_member_is_net(cd_member_kind k) { return table[k].net; }
bool cd_member_needs_leaves(cd_member_kind k, cd_net_tokens tokens) {
    return k == CD_MEMBER_LSTM || (k == CD_MEMBER_TSF && tokens == CD_TOKENS_LEAVES);
}

bool cd_member_needs_steps(cd_member_kind k) { return k == CD_MEMBER_TLP; }

cd_tree_input_form cd_member_form(cd_member_kind k) { return table[k].form; }

bool cd_member_reads_facts(cd_member_kind k) {
    return k == CD_MEMBER_ROWS || k == CD_MEMBER_PROGRAM;
}

cd_facts_use cd_member_net_facts(const cd_net *net) {
    return cd_net_config_of(net)->facts ? CD_FACTS_USE_COLUMNS : CD_FACTS_USE_NONE;
}

size_t cd_member_width(cd_member_kind k, cd_facts_use facts) {
    return cd_tree_input_width(table[k].form) + (facts == CD_FACTS_USE_NONE ? 0 : CD_N_FACTS_COL);
}

cd_member_kind cd_member_find(cd_str name) {
    int k = 0;
    while (k < CD_N_MEMBER_KIND && !cd_str_is(name, table[k].name)) k++;
    return (cd_member_kind)k;
}

void cd_member_free(cd_member *m) {
    cd_xgb_free(m->gbt);
    cd_net_free(m->net);
    cd_scalers_free(&m->scalers);
    cd_mem_free(m->label);
    *m = (cd_member){0};
}

/* ---- scratch ---- */
cdmpp_status cd_member_scratch_new(cd_member_scratch **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "scratch");
}

void cd_member_scratch_free(cd_member_scratch *s) {
    if (!s) return;
    cd_mem_free(s->x.p);
    cd_mem_free(s->score.p);
    cd_mem_free(s->wide.p);
    cd_batch_free(&s->batch);
    cd_net_state_free(s->state);
    cd_mem_free(s);
}

bool cd_member_block_grow(cd_member_block *b, size_t n, size_t size) {
    if (n <= b->cap) return true;
    const size_t want = n < 2 * b->cap ? 2 * b->cap : n;
    void *q = cd_mem_zalloc(want, size);
    if (!q) return false;
    cd_mem_free(b->p);
    *b = (cd_member_block){q, want};
    return true;
}

/* ---- trees ---- */
static size_t at(const uint32_t *index, size_t i) { return index ? index[i] : i; }

bool cd_member_has_level(const cd_member *m) {
    return table[m->kind].form == CD_TREE_INPUT_ROWS || m->objective != CD_OBJECTIVE_LOG_LATENCY;
}

/* Facts are of the whole program: each of its matrix rows has the same. */
void cd_member_fill(const cd_member *m, const cd_program_view *v, size_t p, float *x) {
    const cd_tree_input_form form = table[m->kind].form;
    const float *row = v->row + v->row_ptr[p] * CD_N_COL;
    const size_t n_row = (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]),
                 height = cd_tree_input_height(form, n_row);
    const size_t own = cd_tree_input_width(form), width = cd_member_width(m->kind, m->facts);
    if (m->facts == CD_FACTS_USE_NONE) {
        cd_tree_input_fill(form, row, n_row, v->device[p], x);
        return;
    }
    for (size_t k = 0; k < height; k++) {
        cd_tree_input_fill(form, row + k * CD_N_COL, height == n_row ? 1 : n_row, v->device[p],
                           x + k * width);
        if (k) memcpy(x + k * width + own, x + own, CD_N_FACTS_COL * sizeof *x);
        else cd_facts_input_fill(v, p, x + own);
    }
}

/* The prior's seconds, divided between the rows like their trips to the power of the slope. */
static double share_prior(const cd_member *m, const cd_program_view *v, size_t p, size_t n_row,
                          double slope, double bias, double *offset) {
    const double level = bias + (double)v->analytic[p * CD_N_ANALYTIC + (size_t)m->prior];
    const float *row = v->row + v->row_ptr[p] * CD_N_COL;
    if (table[m->kind].form != CD_TREE_INPUT_ROWS) return offset[0] = level;
    for (size_t k = 0; k < n_row; k++)
        offset[k] = slope * cd_tree_input_log_trips(row + k * CD_N_COL);
    const double all = cd_loss_log_sum_exp(offset, n_row);
    for (size_t k = 0; k < n_row; k++) offset[k] += level - all;
    return level;
}

/* The offset of a matrix row is the level that trips alone would give it; the program's level is
 * the ln of the sum. */
double cd_member_offsets(const cd_member *m, const cd_program_view *v, size_t p, double slope,
                         double bias, double *offset) {
    const float *row = v->row + v->row_ptr[p] * CD_N_COL;
    const size_t n_row = (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]);
    double max = -INFINITY, sum = 0;
    if (m->facts == CD_FACTS_USE_PRIOR) return share_prior(m, v, p, n_row, slope, bias, offset);
    if (!cd_member_has_level(m)) return offset[0] = bias;
    if (table[m->kind].form == CD_TREE_INPUT_ROWS) {
        for (size_t k = 0; k < n_row; k++)
            offset[k] = bias + slope * cd_tree_input_log_trips(row + k * CD_N_COL);
        return cd_loss_log_sum_exp(offset, n_row);
    }
    for (size_t k = 0; k < n_row; k++)
        max = fmax(max, slope * cd_tree_input_log_trips(row + k * CD_N_COL));
    for (size_t k = 0; k < n_row; k++)
        sum += exp(slope * cd_tree_input_log_trips(row + k * CD_N_COL) - max);
    return offset[0] = bias + (max + log(sum));
}

/* Of an objective that knows only the order in a task; wide: the program's matrix rows. */
static double answer(const cd_member *m, const float *score, size_t h, const cd_program_view *v,
                     size_t p, double *wide) {
    const double level = cd_member_offsets(m, v, p, m->slope, m->bias, wide);
    for (size_t k = 0; k < h; k++)
        wide[k] = (m->objective == CD_OBJECTIVE_PACK_SUM ? 0 : wide[k]) + (double)score[k];
    return cd_objective_answer(m->objective, cd_objective_score(m->objective, wide, h), level,
                               m->scale, m->shift);
}

/* Scores and offsets of a program's matrix rows become one answer; k0 is its first matrix row. */
static void combine(const cd_member *m, cd_tree_input_form form, cd_member_scratch *s,
                    const cd_program_view *v, const uint32_t *index, size_t n, double *log_s) {
    const float *score = s->score.p;
    double *wide = s->wide.p;
    for (size_t i = 0, k0 = 0; i < n; i++) {
        const size_t p = at(index, i), r0 = (size_t)v->row_ptr[p];
        if (i % 16 == 0) cd_spool_rest(v->spool);
        const size_t n_row = (size_t)v->row_ptr[p + 1] - r0, h = cd_tree_input_height(form, n_row);
        if (m->objective != CD_OBJECTIVE_LOG_LATENCY) {
            log_s[i] = answer(m, score + k0, h, v, p, wide + k0);
            k0 += h;
            continue;
        }
        if (m->facts == CD_FACTS_USE_PRIOR)
            (void)cd_member_offsets(m, v, p, m->slope, m->bias, wide + k0);
        for (size_t k = 0; k < h; k++) {
            if (m->facts == CD_FACTS_USE_PRIOR) {
                wide[k0 + k] += (double)score[k0 + k];
                continue;
            }
            const double offset =
                m->slope == 0 ? 0
                              : m->slope * cd_tree_input_log_trips(v->row + (r0 + k) * CD_N_COL);
            wide[k0 + k] = (double)score[k0 + k] + m->bias + offset;
        }
        log_s[i] = cd_loss_log_sum_exp(wide + k0, h);
        k0 += h;
    }
}

/* All matrix rows of all programs are scored in one call, which costs less than one call a
 * program. */
static cdmpp_status predict_trees(const cd_member *m, cd_member_scratch *s,
                                  const cd_program_view *v, const uint32_t *index, size_t n,
                                  double *log_s, cdmpp_err *err) {
    const cd_tree_input_form form = table[m->kind].form;
    const size_t width = cd_member_width(m->kind, m->facts);
    size_t height = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t p = at(index, i);
        if (m->facts != CD_FACTS_USE_NONE && !cd_facts_input_has(v, p))
            return CD_FAIL(err, EMODEL,
                           "trees of %s read facts of loop nests, program %zu has none",
                           table[m->kind].name, p);
        height += cd_tree_input_height(form, (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]));
    }
    if (!cd_member_block_grow(&s->x, height * width, sizeof(float)) ||
        !cd_member_block_grow(&s->score, height, sizeof(float)) ||
        !cd_member_block_grow(&s->wide, height, sizeof(double)))
        return CD_FAIL(err, ENOMEM, "%zu values to score", height * width);
    float *x = s->x.p;
    for (size_t i = 0; i < n; i++) {
        const size_t p = at(index, i), n_row = (size_t)(v->row_ptr[p + 1] - v->row_ptr[p]);
        if (i % 16 == 0) cd_spool_rest(v->spool);
        cd_member_fill(m, v, p, x);
        x += cd_tree_input_height(form, n_row) * width;
    }
    CD_TRY(cd_xgb_predict_some(m->gbt, s->x.p, height, width, s->trees ? s->trees : SIZE_MAX,
                               s->score.p, err));
    combine(m, form, s, v, index, n, log_s);
    return CDMPP_OK;
}

static cdmpp_status member_predict_net(const cd_member *m, cd_member_scratch *s,
                                       const cd_program_view *v, const uint32_t *index, size_t n,
                                       const float *device, size_t n_device, double *log_s,
                                       cdmpp_err *err);

/* An answer that is not finite is an error here, before it can be averaged with others. */
cdmpp_status cd_member_predict(const cd_member *m, cd_member_scratch *s, const cd_program_view *v,
                               const uint32_t *index, size_t n, const float *device,
                               size_t n_device, double *log_s, cdmpp_err *err) {
    if (!n) return CDMPP_OK;
    if (!v->leaf_ptr && m->net && cd_member_needs_leaves(m->kind, cd_net_config_of(m->net)->tokens))
        return CD_FAIL(err, EMODEL,
                       "a %s reads the leaves of programs, these are feature rows alone",
                       table[m->kind].name);
    if (!v->step_ptr && cd_member_needs_steps(m->kind))
        return CD_FAIL(err, EMODEL, "a %s reads the steps of schedules, these programs have none",
                       table[m->kind].name);
    if (table[m->kind].net)
        CD_TRY(member_predict_net(m, s, v, index, n, device, n_device, log_s, err));
    else CD_TRY(predict_trees(m, s, v, index, n, log_s, err));
    for (size_t i = 0; i < n; i++)
        if (!isfinite(log_s[i]))
            return CD_FAIL(err, ENUMERIC, "program %zu: %s gives no finite latency", at(index, i),
                           table[m->kind].name);
    return CDMPP_OK;
}

/* ---- file ---- */
static const char *const facts_name[] = {"none", "columns", "prior"};
static const char *const prior_name[CD_N_PRIOR] = {"roofline", "ecm", "sum"};

/* "bytes" comes last, when the length is known. */
cdmpp_status cd_member_save(const cd_member *m, cd_buf *json, cd_buf *blob, cdmpp_err *err) {
    const size_t before = blob->n;
    cd_buf_putf(json, "{\"kind\":\"%s\",\"fold\":%d,", table[m->kind].name, m->fold);
    if (table[m->kind].net) {
        cd_buf_puts(json, "\"label\":");
        cd_transform_write(json, m->label);
        CD_TRY(cd_net_save(m->net, &m->scalers, blob, err));
    } else {
        cd_buf_putf(json, "\"slope\":%.17g,\"bias\":%.17g,", m->slope, m->bias);
        if (m->objective != CD_OBJECTIVE_LOG_LATENCY)
            cd_buf_putf(json, "\"objective\":\"%s\",\"scale\":%.17g,\"shift\":%.17g,",
                        cd_objective_name(m->objective), m->scale, m->shift);
        if (m->facts != CD_FACTS_USE_NONE)
            cd_buf_putf(json, "\"facts\":\"%s\",", facts_name[m->facts]);
        if (m->facts == CD_FACTS_USE_PRIOR)
            cd_buf_putf(json, "\"prior\":\"%s\",", prior_name[m->prior]);
        cd_buf_putf(json, "\"rounds\":%d", cd_xgb_rounds(m->gbt));
        CD_TRY(cd_xgb_save(m->gbt, blob, err));
    }
    cd_buf_putf(json, ",\"bytes\":%zu}", blob->n - before);
    return json->oom || blob->oom ? CD_FAIL(err, ENOMEM, "model member") : CDMPP_OK;
}

/* Files without it are of log_latency. */
static cdmpp_status load_objective(cd_member *m, const cd_json *v, cdmpp_err *err) {
    int objective;
    if (!cd_json_get(v, "objective")) return CDMPP_OK;
    CD_TRY(cd_json_need_word(v, "objective", CD_OBJECTIVES, &objective, err));
    m->objective = (cd_objective_kind)objective;
    CD_TRY(cd_json_need_real(v, "scale", -1e4, 1e4, &m->scale, err));
    if (!(m->scale > 0))
        return cd_err_key(
            err, CD_FAIL(err, ERANGE, "expected a number above 0, found %g", m->scale), "scale");
    return cd_json_need_real(v, "shift", -1e4, 1e4, &m->shift, err);
}

/* Files without it are of TVM's rows alone. */
static cdmpp_status load_facts(cd_member *m, const cd_json *v, cdmpp_err *err) {
    int use;
    if (!cd_json_get(v, "facts")) return CDMPP_OK;
    CD_TRY(cd_json_need_word(v, "facts", CD_FACTS_USES, &use, err));
    m->facts = (cd_facts_use)use;
    if (!cd_member_reads_facts(m->kind))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "a %s reads no facts", table[m->kind].name),
                          "facts");
    return m->facts == CD_FACTS_USE_PRIOR ? cd_json_need_word(v, "prior", CD_PRIORS, &m->prior, err)
                                          : CDMPP_OK;
}

static cdmpp_status load_trees(cd_member *m, const cd_json *v, const void *blob, size_t n,
                               cdmpp_err *err) {
    CD_TRY(cd_json_need_real(v, "slope", -10, 10, &m->slope, err));
    CD_TRY(cd_json_need_real(v, "bias", -1e4, 1e4, &m->bias, err));
    CD_TRY(load_objective(m, v, err));
    CD_TRY(load_facts(m, v, err));
    return cd_xgb_load(blob, n, cd_member_width(m->kind, m->facts), &m->gbt, err);
}

/* The label's transform is read before the network, because its 8 KB are freed with the member
 * after an error too. */
cdmpp_status cd_member_load(cd_member *m, const cd_json *v, const void *blob, size_t n,
                            cdmpp_err *err) {
    const cd_json *fold, *label;
    int64_t f;
    int kind;
    CD_TRY(cd_json_need_word(v, "kind", CD_MEMBER_KINDS, &kind, err));
    m->kind = (cd_member_kind)kind;
    CD_TRY(cd_json_need(v, "fold", &fold, err));
    CD_TRY(cd_err_key(err, cd_json_int(fold, -1, CD_MEMBER_MAX_FOLD - 1, &f, err), "fold"));
    m->fold = (int)f;
    if (!table[m->kind].net) return load_trees(m, v, blob, n, err);
    CD_TRY(cd_json_need(v, "label", &label, err));
    m->label = cd_mem_zalloc(1, sizeof *m->label);
    if (!m->label) return CD_FAIL(err, ENOMEM, "label of a member");
    CD_TRY(cd_err_key(err, cd_transform_read(label, m->label, err), "label"));
    CD_TRY(cd_net_load(blob, n, &m->net, &m->scalers, err));
    m->facts = cd_member_net_facts(m->net);
    return CDMPP_OK;
}

/* Networks as members: batches of a view through cd_net_predict.
 *
 * The folds of a kind each fill a batch of the same programs, since each has scalers of its
 * own. That is 3 % of cdmpp-predict with five transformers (tenset-cpu, 6,893 programs, perf;
 * the networks themselves are 43 %), too little for sharing what they fill from. */

/* Programs a batch: enough for the matrix products, little enough for the cache. */
enum { BATCH = 128 };

static void forget(cd_member_scratch *s) {
    cd_batch_free(&s->batch);
    cd_net_state_free(s->state);
    s->batch = (cd_batch){0};
    s->state = NULL;
    s->net = NULL;
}

static bool fits(const cd_member_scratch *s, const cd_net *net, const cd_batch_dims *d) {
    const cd_batch_dims *have = &s->batch.dims;
    return s->net == net && d->n <= have->n && d->n_tok <= have->n_tok &&
           d->max_leaf <= have->max_leaf && d->n_node <= have->n_node;
}

/* A quarter more than what was wanted or there: rising sizes must not ask the heap each time. */
static size_t wider(size_t have, size_t want) { return want > have ? want + want / 4 : have; }

/* Room for batches of `dims` under this net; kept while it is enough. */
static cdmpp_status room(cd_member_scratch *s, const cd_net *net, const cd_batch_spec *spec,
                         const cd_batch_dims *dims, cdmpp_err *err) {
    if (fits(s, net, dims)) return CDMPP_OK;
    const cd_batch_dims none = {0}, had = s->net == net ? s->batch.dims : none;
    const cd_batch_dims d = {wider(had.n, dims->n), wider(had.n_tok, dims->n_tok),
                             wider(had.max_leaf, dims->max_leaf), wider(had.n_node, dims->n_node)};
    forget(s);
    CD_TRY(cd_batch_init(&s->batch, spec, &d, err));
    CD_TRY(cd_net_state_new(net, &d, 1, false, &s->state, err));
    s->net = net;
    return CDMPP_OK;
}

static cdmpp_status predict_batch(const cd_member *m, cd_member_scratch *s,
                                  const cd_batch_spec *spec, const cd_program_view *v,
                                  const uint32_t *index, size_t n, double *log_s, cdmpp_err *err) {
    const size_t n_out = (size_t)cd_net_config_of(m->net)->n_out;
    float *out = s->x.p;
    CD_TRY(cd_batch_fill(&s->batch, spec, &m->scalers, v, index, n, err));
    CD_TRY(cd_net_predict(m->net, &s->batch, s->state, NULL, out, NULL, err));
    for (size_t i = 0; i < n; i++)
        log_s[i] = cd_transform_log_s(m->label, (double)out[i * n_out], NULL);
    return CDMPP_OK;
}

/* As cd_member_predict, of a network.
 *
 * Without an index, a batch is a shifted view; with one, the index is shifted. */
static cdmpp_status member_predict_net(const cd_member *m, cd_member_scratch *s,
                                       const cd_program_view *v, const uint32_t *index, size_t n,
                                       const float *device, size_t n_device, double *log_s,
                                       cdmpp_err *err) {
    const cd_batch_spec spec = cd_net_batch_spec(cd_net_config_of(m->net), device, n_device);
    cd_batch_dims dims;
    CD_TRY(cd_batch_bound(&spec, v, index, n, n < BATCH ? n : BATCH, &dims, err));
    CD_TRY(room(s, m->net, &spec, &dims, err));
    if (!cd_member_block_grow(&s->x, dims.n * (size_t)cd_net_config_of(m->net)->n_out,
                              sizeof(float)))
        return CD_FAIL(err, ENOMEM, "outputs of %zu programs", dims.n);
    for (size_t i = 0; i < n; i += BATCH) {
        const size_t k = n - i < BATCH ? n - i : BATCH;
        const cd_program_view from = index ? *v : cd_program_view_range(v, i, k);
        CD_TRY(predict_batch(m, s, &spec, &from, index ? index + i : NULL, k, log_s + i, err));
    }
    return CDMPP_OK;
}

/* A file must not promise one network and hold another, nor other inputs. */
cdmpp_status cd_member_check_net(const cd_member *m, size_t w_device, cdmpp_err *err) {
    const cd_net_config *s = cd_net_config_of(m->net);
    if ((cd_net_kind)(m->kind - CD_MEMBER_MLP) != s->kind)
        return CD_FAIL(err, EMODEL, "expected a network of kind %s, found another",
                       cd_member_name(m->kind));
    if (s->device && s->w_dev && (size_t)s->w_dev != w_device)
        return CD_FAIL(err, EMODEL, "expected device vectors of %lld numbers, found %zu",
                       (long long)s->w_dev, w_device);
    return CDMPP_OK;
}
