/* Networks as members: batches of a view through cd_net_predict.
 *
 * The folds of a kind each fill a batch of the same programs, since each has scalers of its
 * own. That is 3 % of cdmpp-predict with five transformers (tenset-cpu, 6,893 programs, perf;
 * the networks themselves are 43 %), too little for sharing what they fill from. */
#include "learner/model/model_internal.h"

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

/* Without an index, a batch is a shifted view; with one, the index is shifted. */
cdmpp_status cd_member_predict_net(const cd_member *m, cd_member_scratch *s,
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
