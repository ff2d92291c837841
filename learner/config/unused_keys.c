/* Keys that were given and that nothing of a training reads: silence would look as if they
 * counted. */
#include <string.h>

#include "learner/config/config.h"

/* What a training has that reads keys. */
typedef struct {
    bool programs, networks, trees, kind[CD_N_MEMBER_KIND], facts;
} parts;

static void add(parts *p, const cd_config *c) {
    cd_member_plan plan;
    if (cd_member_plan_of(c, &plan, NULL)) return; /* told elsewhere */
    for (size_t k = 0; k < plan.n_kind; k++) {
        const bool net = cd_member_is_net(plan.kind[k]);
        p->kind[plan.kind[k]] = true;
        *(net ? &p->networks : &p->trees) = true;
    }
    p->facts |= plan.analytic;
}

static parts parts_of(const cd_config *c) {
    parts p = {.programs = !c->data_kind};
    const cd_config order = cd_config_of_order(c);
    add(&p, c);
    if (c->model_order.n) add(&p, &order);
    p.networks |= c->model_tuner; /* a small one */
    return p;
}

/* ---- the rules ---- */
typedef bool reader(const cd_config *c, const parts *p);
static bool operators(const cd_config *c, const parts *p) { return (void)c, !p->programs; }
static bool programs(const cd_config *c, const parts *p) { return (void)c, p->programs; }
static bool networks(const cd_config *c, const parts *p) { return (void)c, p->networks; }
static bool trees(const cd_config *c, const parts *p) { return (void)c, p->trees; }
static bool transformer(const cd_config *c, const parts *p) {
    return (void)c, p->kind[CD_MEMBER_TSF];
}
static bool lstm(const cd_config *c, const parts *p) { return (void)c, p->kind[CD_MEMBER_LSTM]; }
static bool tlp(const cd_config *c, const parts *p) { return (void)c, p->kind[CD_MEMBER_TLP]; }
static bool facts(const cd_config *c, const parts *p) {
    return c->train_facts == CD_FACTS_USE_NONE || p->facts;
}
static bool with_facts(const cd_config *c, const parts *p) {
    return (void)p, c->train_facts != CD_FACTS_USE_NONE;
}
static bool net_facts(const cd_config *c, const parts *p) {
    return (void)p, !c->net_facts || c->train_facts != CD_FACTS_USE_NONE;
}
static bool cyclic(const cd_config *c, const parts *p) {
    return (void)p, c->fit_schedule == CD_LEARNING_RATE_CYCLIC;
}
static bool exponential(const cd_config *c, const parts *p) {
    return (void)p, c->fit_schedule == CD_LEARNING_RATE_EXPONENTIAL;
}
static bool drawn(const cd_config *c, const parts *p) {
    return (void)p, c->data_sample[0] || c->filter_max_per_task > 0;
}
static bool per_task(const cd_config *c, const parts *p) {
    return (void)p, c->split_train_per_task > 0;
}

static const struct {
    const char *why;
    reader *reads;
    /* keys, or beginnings of keys that end with a point, with spaces between them */
    const char *key;
} rule[] = {
    {"the data are programs", operators, "operators."},
    {"the data are operators: only operators.*, data.devices, device.file and output.model are "
     "about them",
     programs,
     "device.features filter. split. model. predict. train. net. fit. data.sample data.seed"},
    {"no member is a network", networks, "net. fit. device.features"},
    {"no member is of trees", trees,
     "train.objective train.rank_loss train.loss train.facts_without train.rounds train.early_stop "
     "train.eta train.max_depth train.min_child_weight train.lambda train.fast train.subsample "
     "train.colsample train.max_bin train.seed train.together"},
    {"no member is a transformer", transformer, "net.tokens"},
    {"no member is an lstm", lstm, "net.skip"},
    {"no member is a tlp", tlp, "net.values net.log_values"},
    {"no member reads facts", facts, "train.facts"},
    {"train.facts is none", with_facts, "train.facts_without"},
    {"train.facts is none", net_facts, "net.facts"},
    {"fit.schedule is not cyclic", cyclic, "fit.cycle"},
    {"fit.schedule is not exponential", exponential, "fit.gamma"},
    {"nothing is drawn", drawn, "data.seed"},
    {"split.train_per_task is 0", per_task, "split.train_best"},
};

static bool is_of(const char *key, const char *list) {
    for (const char *w = list; *w;) {
        const size_t n = strcspn(w, " ");
        if (!strncmp(key, w, n) && (w[n - 1] == '.' || !key[n])) return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

void cd_config_unused(const cd_config *c, cd_buf *out) {
    size_t n_key;
    const cd_conf_key *key = cd_config_keys(&n_key);
    bool told[CD_N_CONFIG_KEY] = {0}, any = false;
    const parts p = parts_of(c);
    for (size_t r = 0; r < sizeof rule / sizeof *rule; r++) {
        bool first = true;
        for (size_t k = 0; k < n_key; k++) {
            if (!c->given[k] || told[k] || !is_of(key[k].name, rule[r].key) || rule[r].reads(c, &p))
                continue;
            cd_buf_putf(out, "%s%s",
                        any ? first ? "; " : ", " : "keys without effect: ", key[k].name);
            told[k] = any = true;
            first = false;
        }
        if (!first) cd_buf_putf(out, " (%s)", rule[r].why);
    }
    if (any) cd_buf_puts(out, "\n");
}
