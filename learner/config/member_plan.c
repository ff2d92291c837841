/* What a configuration's members need of the data: kinds in order, whether loop nests must be
 * loaded, whether devices must be described. */
#include "learner/config/config.h"

#include <stdio.h>
#include <string.h>

static cdmpp_status add(cd_member_plan *p, const char *name, cdmpp_err *err) {
    const cd_member_kind k = cd_member_find((cd_str){name, strlen(name)});
    if (k == CD_N_MEMBER_KIND)
        return CD_FAIL(err, ESCHEMA, "expected one of " CD_MEMBER_KINDS ", found '%.60s'", name);
    for (size_t i = 0; i < p->n_kind; i++)
        if (p->kind[i] == k) return CD_FAIL(err, ESCHEMA, "%s: given twice", name);
    p->kind[p->n_kind++] = k;
    return CDMPP_OK;
}

static bool reads_facts(const cd_config *c, cd_member_kind k) {
    return c->train_facts != CD_FACTS_USE_NONE &&
           (cd_member_is_net(k) ? c->net_facts : cd_member_reads_facts(k));
}

/* Sums do not read facts, whatever train.facts says. The order inside a task has no seconds to be
 * corrected. */
static cdmpp_status plan_facts(const cd_config *c, cd_member_plan *p, cdmpp_err *err) {
    for (size_t k = 0; k < p->n_kind; k++) p->analytic |= reads_facts(c, p->kind[k]);
    p->facts = c->filter_facts || p->analytic;
    p->wish = p->analytic && c->train_facts == CD_CONFIG_FACTS_AUTO && !c->filter_facts;
    if (p->analytic && c->train_facts == CD_FACTS_USE_PRIOR &&
        c->train_objective != CD_OBJECTIVE_LOG_LATENCY)
        return cd_err_key(
            err,
            CD_FAIL(err, ESCHEMA, "prior needs train.objective=log_latency; columns goes with all"),
            "train.facts");
    return CDMPP_OK;
}

cd_config cd_config_of_order(const cd_config *c) {
    cd_config o = *c;
    o.model_members = c->model_order;
    o.model_order.n = 0;
    o.model_tuner = false;
    o.train_objective = CD_OBJECTIVE_RANK;
    if (o.train_facts == CD_FACTS_USE_PRIOR) o.train_facts = CD_FACTS_USE_COLUMNS;
    o.fit_loss = "1lambdarank";
    o.fit_figure = CD_FIT_LOSS;
    o.fit_label = CD_TRANSFORM_LOG;
    return o;
}

/* An error in the list of order says so: its list was called model.members. */
static void rename_key(cdmpp_err *err) {
    static const char from[] = "model.members", to[] = "model.order";
    if (!err || strncmp(err->key, from, sizeof from - 1) != 0) return;
    char key[sizeof err->key];
    snprintf(key, sizeof key, "%s%s", to, err->key + sizeof from - 1);
    memcpy(err->key, key, sizeof key);
}

/* What members for the order need of the data is needed too. */
static cdmpp_status plan_order(const cd_config *c, cd_member_plan *p, cdmpp_err *err) {
    const cd_config order = cd_config_of_order(c);
    cd_member_plan o;
    if (!c->model_order.n) return CDMPP_OK;
    const cdmpp_status st = cd_member_plan_of(&order, &o, err);
    if (st) rename_key(err);
    if (st) return st;
    p->leaves |= o.leaves;
    p->steps |= o.steps;
    p->analytic |= o.analytic;
    p->facts |= o.facts;
    p->wish |= o.wish;
    p->trees |= o.trees;
    p->devices |= o.devices;
    return CDMPP_OK;
}

cdmpp_status cd_member_plan_of(const cd_config *c, cd_member_plan *out, cdmpp_err *err) {
    const cd_texts *names = &c->model_members;
    *out = (cd_member_plan){0};
    if (!names->n)
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected at least one of " CD_MEMBER_KINDS),
                          "model.members");
    for (size_t i = 0; i < names->n; i++)
        CD_TRY(cd_err_key(err, cd_err_index(err, add(out, names->v[i], err), i), "model.members"));
    for (size_t k = 0; k < out->n_kind; k++) {
        out->leaves |= cd_member_needs_leaves(out->kind[k], (cd_net_tokens)c->net_tokens);
        out->steps |= cd_member_needs_steps(out->kind[k]);
        out->trees |= !cd_member_is_net(out->kind[k]);
        out->devices |= cd_member_is_net(out->kind[k]) && c->net_device;
    }
    out->devices |= c->model_tuner && c->net_device;
    CD_TRY(plan_facts(c, out, err));
    return plan_order(c, out, err);
}
