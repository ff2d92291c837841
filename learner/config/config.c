/* A configuration: YAML by a table of keys (config_keys.def), "--set" on top, checks that span
 * several keys. */
#include "learner/config/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "features/device/device.h"

/* What a configuration's members need of the data: kinds in order, whether loop nests must be
 * loaded, whether devices must be described. */

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

/* Keys of a configuration to the options of networks and of their training. */

/* Field by field: keys and fields have their own names and types. */
static cd_net_config net(const cd_config *c, cd_member_kind kind, size_t w_dev) {
    return (cd_net_config){.kind = (cd_net_kind)(kind - CD_MEMBER_MLP),
                           .tokens = kind == CD_MEMBER_TSF ? (cd_net_tokens)c->net_tokens
                                                           : CD_TOKENS_LEAVES,
                           .layers = c->net_layers,
                           .width = c->net_width,
                           .heads = c->net_heads,
                           .ff = c->net_ff,
                           .pre_norm = c->net_pre_norm,
                           .skip = c->net_skip,
                           .head = (cd_net_head)c->net_head,
                           .slots = c->net_slots,
                           .values = c->net_values,
                           .log_values = c->net_log_values,
                           .temperature = 1,
                           .trips = c->net_trips,
                           .head_first = c->net_head_first,
                           .head_width = c->net_head_width,
                           .head_depth = c->net_head_depth,
                           .embed = c->net_embed,
                           .decoder_width = c->net_decoder_width,
                           .decoder_depth = c->net_decoder_depth,
                           .side_width = c->net_side_width,
                           .side_depth = c->net_side_depth,
                           .norm = (cd_net_norm)c->net_norm,
                           .act = (cd_net_act)c->net_act,
                           .dropout = c->net_dropout,
                           .dropout_mlp = c->net_dropout_mlp,
                           .position = (cd_net_position)c->net_position,
                           .context = c->net_context,
                           .derived = c->net_derived,
                           .device = c->net_device,
                           .program = c->net_program,
                           .facts = c->net_facts && c->train_facts != CD_FACTS_USE_NONE,
                           .n_out = 1,
                           .w_dev = c->net_device ? (int64_t)w_dev : 0};
}

static cd_learning_rate rate(const cd_config *c) {
    cd_learning_rate r = cd_learning_rate_of((cd_learning_rate_kind)c->fit_schedule, c->fit_rate);
    r.warmup = (uint64_t)c->fit_warmup;
    r.up = r.down = (uint64_t)c->fit_cycle;
    r.gamma = c->fit_gamma;
    r.per = 0; /* an epoch */
    return r;
}

/* What no key sets stays as cd_fit_spec_small has it. */
cd_fit_spec cd_net_options_fit(const cd_config *c, cd_member_kind kind, size_t w_dev) {
    cd_fit_spec s = cd_fit_spec_small((cd_net_kind)(kind - CD_MEMBER_MLP));
    s.net = net(c, kind, w_dev);
    s.transform = (cd_transform_kind)c->fit_label;
    s.scale = (cd_scale)c->fit_scale;
    s.loss = c->fit_loss;
    s.optim = cd_optim_spec_of((cd_optim_kind)c->fit_optimizer);
    s.optim.decay = c->fit_decay;
    s.optim.clip = c->fit_clip;
    s.decay_all = c->fit_decay_all;
    s.lrate = rate(c);
    s.ema = c->fit_ema;
    s.batch = c->fit_batch;
    s.slices = c->fit_slices;
    s.target_batch = c->fit_target_batch;
    s.max_epochs = c->fit_epochs;
    s.max_steps = c->fit_steps;
    s.eval_every = c->fit_eval_every;
    s.patience = c->fit_patience;
    s.figure = (cd_fit_metric)c->fit_figure;
    s.freeze_encoder = c->fit_freeze;
    s.seed = (uint64_t)c->fit_seed;
    return s;
}

static cdmpp_status check_net(cd_config *c, cd_member_kind kind, const char *path, cdmpp_err *err) {
    const cd_net_config s =
        net(c, kind, cd_device_features_width((cd_device_features)c->device_features));
    cdmpp_err e = {0};
    char key[128];
    const cdmpp_status st = cd_net_config_check(&s, &e);
    snprintf(key, sizeof key, "net.%s", e.key);
    if (st) cd_diag_add(&c->diag, err, st, path, NULL, false, key, "%s", e.msg);
    return st;
}

/* Errors are collected with their keys, so that a user sees all of them at once. */
void cd_net_options_check(cd_config *c, const char *path, cdmpp_err *err) {
    cd_member_plan plan;
    cd_net_loss loss;
    cdmpp_err e = {0};
    cdmpp_status st = cd_member_plan_of(c, &plan, &e);
    if (st)
        cd_diag_add(&c->diag, err, st, path, NULL, false,
                    !strcmp(e.key, "train.facts") || !strncmp(e.key, "model.order", 11)
                        ? e.key
                        : "model.members",
                    "%s", e.msg);
    for (size_t k = 0; !st && k < plan.n_kind; k++) {
        if (!cd_member_is_net(plan.kind[k])) continue;
        st = check_net(c, plan.kind[k], path, err);
        if (!st && (st = cd_net_loss_parse(c->fit_loss, NULL, 0, &loss, &e)))
            cd_diag_add(&c->diag, err, st, path, NULL, false, "fit.loss", "%s", e.msg);
    }
    const cd_config order = cd_config_of_order(c);
    if (st || !c->model_order.n || cd_member_plan_of(&order, &plan, NULL)) return;
    for (size_t k = 0; !st && k < plan.n_kind; k++)
        if (cd_member_is_net(plan.kind[k])) st = check_net(c, plan.kind[k], path, err);
}

/* Keys that were given and that nothing of a training reads: silence would look as if they
 * counted. */

/* What a training has that reads keys. */
typedef struct {
    bool programs, networks, trees, kind[CD_N_MEMBER_KIND], facts;
} parts;

static void add_keys(parts *p, const cd_config *c) {
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
    add_keys(&p, c);
    if (c->model_order.n) add_keys(&p, &order);
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

/* The first is about reading alone: what is printed is merged, and has no base. */
static const cd_conf_key keys[] = {
    {"base", CD_CONF_TEXT, offsetof(cd_config, base), "\"\"", "",
     "another configuration, of which every key holds that this file does not give; it may have a "
     "base, too. Looked up in the folder of this "
     "file, then from the working directory, then among those that are installed; --set base=FILE, "
     "not in the folder, is in the place of the file's"},
#define X(section, name, type, def, range, help)                                                   \
    {#section "." #name, CD_CONF_##type, offsetof(cd_config, section##_##name), def, range, help},
#include "learner/config/config_keys.def"
};

const cd_conf_key *cd_config_keys(size_t *n) {
    *n = sizeof keys / sizeof *keys;
    return keys;
}

enum { N_KEY = sizeof keys / sizeof *keys, MAX_BASES = 8 };
_Static_assert((int)N_KEY == (int)CD_N_CONFIG_KEY,
               "config_keys.def is the table, and the key of a base");

static cd_conf table(cd_config *c) { return (cd_conf){keys, N_KEY, c, &c->arena, &c->diag}; }

cdmpp_status cd_config_init(cd_config *c, cdmpp_err *err) {
    memset(c, 0, sizeof *c);
    const cd_conf t = table(c);
    return cd_conf_defaults(&t, err);
}

const char *cd_config_beside(cd_arena *a, const char *file, const char *p) {
    const char *slash = strrchr(file, '/');
    if (p[0] == '/' || !slash || access(p, F_OK) == 0) return p;
    const size_t n_dir = (size_t)(slash - file), n = n_dir + strlen(p) + 2;
    char *q = cd_arena_alloc(a, n, 1);
    if (!q) return NULL;
    snprintf(q, n, "%.*s/%s", (int)n_dir, file, p);
    return access(q, F_OK) == 0 ? q : p;
}

/* The file that `name`, a base of `file`, is. NULL: out of memory. */
static const char *base_path(cd_config *c, const char *file, const char *name) {
    const char *slash = strrchr(file, '/');
    if (slash && name[0] != '/') {
        const size_t n_dir = (size_t)(slash - file), n = n_dir + strlen(name) + 2;
        char *p = cd_arena_alloc(&c->arena, n, 1);
        if (!p) return NULL;
        snprintf(p, n, "%.*s/%s", (int)n_dir, file, name);
        if (access(p, F_OK) == 0) return p;
    }
    return cd_data_path_or(&c->arena, "configs", name);
}

/* data.files that this file has just named, or its base. */
static cdmpp_status find_files(cd_config *c, const char *path, cdmpp_err *err) {
    for (size_t i = 0; i < c->data_files.n; i++) {
        c->data_files.v[i] = cd_config_beside(&c->arena, path, c->data_files.v[i]);
        if (!c->data_files.v[i]) return CD_FAIL(err, ENOMEM, "path");
    }
    return CDMPP_OK;
}

static cdmpp_status load(cd_config *c, const char *path, int depth, cdmpp_err *err);

/* The base below what `text` of `path` says: that is read once more, over it. `given`: a base from
 * elsewhere. */
static cdmpp_status load_base(cd_config *c, const char *path, const char *given, const char *text,
                              size_t n, int depth, cdmpp_err *err) {
    const cd_conf t = table(c);
    const char *base = given[0] ? base_path(c, "", given) : base_path(c, path, c->base);
    if (!base) return CD_FAIL(err, ENOMEM, "path");
    if (depth == MAX_BASES) {
        cd_diag_add(
            &c->diag, err, CDMPP_ESCHEMA, path, NULL, false, "base",
            "expected at most %d bases behind each other, found more: does one name itself?",
            MAX_BASES);
        return CDMPP_ESCHEMA;
    }
    if (access(base, F_OK) != 0) {
        cd_diag_add(&c->diag, err, CDMPP_EIO, path, NULL, false, "base",
                    "expected a configuration, found no file '%s'", base);
        return CDMPP_EIO;
    }
    c->base = "";
    CD_TRY(load(c, base, depth + 1, err));
    return cd_conf_read(&t, path, text, n, err);
}

/* The file of a search has a section that no configuration has. */
static cdmpp_status refuse_space(cd_config *c, const char *path, const char *text, size_t n,
                                 cdmpp_err *err) {
    cd_diag quiet = {0}; /* what is no YAML is reported when it is read */
    const cd_yaml *root = NULL, *v = NULL;
    if (!cd_yaml_parse(&c->arena, path, text, n, &root, &quiet, NULL) && root &&
        root->kind == CD_YAML_MAP)
        for (v = root->child; v && strcmp(v->key, "space") != 0;) v = v->next;
    cd_diag_free(&quiet);
    if (!v) return CDMPP_OK;
    cd_diag_add(&c->diag, err, CDMPP_ESCHEMA, path, v, true, "",
                "this is a space of configurations to search, not a configuration: cdmpp-train "
                "--autotune %s",
                path);
    return CDMPP_ESCHEMA;
}

/* A name that is misspelt: the error says which one is near. */
static cdmpp_status there(const char *path, cdmpp_err *err) {
    char near[CD_FILE_NEAR_MAX];
    if (!access(path, F_OK) || !strcmp(path, "-")) return CDMPP_OK;
    cd_file_near(path, near, sizeof near);
    /* else the reader says why */
    return near[0]
               ? cd_err_at(err, CD_FAIL(err, EIO, "there is no such file, did you mean %s?", near),
                           path, 0)
               : CDMPP_OK;
}

static cdmpp_status load(cd_config *c, const char *path, int depth, cdmpp_err *err) {
    const cd_conf t = table(c);
    const char *given = c->base; /* the base's base was "" before */
    char *text;
    size_t n;
    CD_TRY(there(path, err));
    CD_TRY(cd_file_read(path, CD_YAML_MAX_BYTES + 1, &text, &n, err));
    cdmpp_status st = refuse_space(c, path, text, n, err);
    if (!st) st = cd_conf_read(&t, path, text, n, err);
    if (!st && !depth) cd_conf_named(&t, path, text, n, c->given);
    if (!st && (given[0] || c->base[0])) st = load_base(c, path, given, text, n, depth, err);
    cd_mem_free(text);
    return st ? st : find_files(c, path, err);
}

cdmpp_status cd_config_load(cd_config *c, const char *path, cdmpp_err *err) {
    const cdmpp_status st = load(c, path, 0, err);
    c->base = "";
    c->path = cd_str_dup(&c->arena, (cd_str){path, strlen(path)});
    return st;
}

/* A base that is set has to be known before the file is read. */
cdmpp_status cd_config_read(cd_config *c, const char *path, const char *const *set, size_t n,
                            cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    for (size_t i = 0; i < n; i++)
        if (!st && !strncmp(set[i], "base=", 5)) st = cd_config_set(c, set[i], err);
    if (!st && path[0]) st = cd_config_load(c, path, err);
    for (size_t i = 0; i < n; i++) {
        const cdmpp_status one =
            strncmp(set[i], "base=", 5) ? cd_config_set(c, set[i], err) : CDMPP_OK;
        if (!st) st = one;
    }
    return st;
}

cdmpp_status cd_config_set(cd_config *c, const char *assignment, cdmpp_err *err) {
    const cd_conf t = table(c);
    const cdmpp_status st = cd_conf_set(&t, assignment, err);
    for (size_t i = 0; !st && i < N_KEY; i++) {
        const size_t n = strlen(keys[i].name);
        if (!strncmp(keys[i].name, assignment, n) && assignment[n] == '=') c->given[i] = true;
    }
    return st;
}

/* data.source below the errors, each line indented. */
static void put_source(cd_config *c) {
    for (const char *s = c->data_source; *s;) {
        const size_t n = strcspn(s, "\n");
        cd_buf_puts(&c->diag.text, n ? "    " : "");
        cd_buf_put(&c->diag.text, s, n);
        cd_buf_puts(&c->diag.text, "\n");
        s += n + (s[n] == '\n');
    }
}

static cdmpp_status check_files(cd_config *c, const char *path, cdmpp_err *err) {
    const size_t before = c->diag.n;
    for (size_t i = 0; i < c->data_files.n; i++)
        if (access(c->data_files.v[i], F_OK) != 0)
            cd_diag_add(&c->diag, err, CDMPP_ENODATA, path, NULL, false, "data.files",
                        "expected a data set, found no file '%s'", c->data_files.v[i]);
    if (c->diag.n == before) return CDMPP_OK;
    put_source(c);
    return CDMPP_ENODATA;
}

/* Objectives but the default are of trees, and bring their own loss. */
static void check_objective(cd_config *c, const char *path, cdmpp_err *err) {
    cd_member_plan plan;
    bool trees = false;
    if (c->train_objective == CD_OBJECTIVE_LOG_LATENCY || cd_member_plan_of(c, &plan, NULL)) return;
    const char *name = cd_objective_name((cd_objective_kind)c->train_objective);
    for (size_t k = 0; k < plan.n_kind; k++) trees |= !cd_member_is_net(plan.kind[k]);
    if (!trees)
        cd_diag_add(&c->diag, err, CDMPP_ESCHEMA, path, NULL, false, "train.objective",
                    "expected trees (rows, program or sums) in model.members for %s, found none; "
                    "networks have fit.loss",
                    name);
    if (c->train_loss != CD_TREE_LOSS_HUBER)
        cd_diag_add(&c->diag, err, CDMPP_ESCHEMA, path, NULL, false, "train.loss",
                    "expected no train.loss (or huber, the default) beside train.objective %s, "
                    "which brings its own, found another",
                    name);
}

/* A loss that nobody learns by is a mistake: networks of model.order have their own. */
static void check_rank_loss(cd_config *c, const char *path, cdmpp_err *err) {
    const cd_config order = cd_config_of_order(c);
    cd_member_plan plan = {0};
    if (c->train_rank_loss == CD_RANK_LOSS_PAIRWISE || c->train_objective == CD_OBJECTIVE_RANK)
        return;
    /* an unknown kind is told elsewhere */
    if (c->model_order.n && (cd_member_plan_of(&order, &plan, NULL) || plan.trees)) return;
    cd_diag_add(&c->diag, err, CDMPP_ESCHEMA, path, NULL, false, "train.rank_loss",
                "expected train.objective rank, or trees (rows, program or sums) in model.order, "
                "which learn by it, found neither");
}

cdmpp_status cd_config_check(cd_config *c, const char *path, cdmpp_err *err) {
    const size_t before = c->diag.n;
    if (!c->data_files.n)
        cd_diag_add(&c->diag, err, CDMPP_ESCHEMA, path, NULL, false, "data.files",
                    "expected at least one file, found none");
    cd_select_programs_check(c, path, err);
    cd_net_options_check(c, path, err);
    check_objective(c, path, err);
    check_rank_loss(c, path, err);
    if (c->split_valid + c->split_test >= 1)
        cd_diag_add(&c->diag, err, CDMPP_ERANGE, path, NULL, false, "split.test",
                    "expected split.valid + split.test below 1, found %g",
                    c->split_valid + c->split_test);
    if (c->diag.n != before) return CDMPP_ESCHEMA;
    CD_TRY(check_files(c, path, err));
    CD_TRY(cd_err_key(err, cd_file_once(c->data_files.v, &c->data_files.n, &c->notes, err),
                      "data.files"));
    if (c->notes.n) cd_buf_puts(&c->notes, "\n");
    cd_config_unused(c, &c->notes);
    return c->notes.oom ? CD_FAIL(err, ENOMEM, "message") : CDMPP_OK;
}

void cd_config_print(cd_buf *out, const cd_config *c) {
    const cd_conf t = {keys + 1, N_KEY - 1, (void *)(uintptr_t)c, NULL, NULL}; /* only read */
    cd_conf_print(out, &t);
}

void cd_config_print_identity(cd_buf *out, const cd_config *c, bool on_disk) {
    cd_conf_key key[N_KEY];
    cd_conf t = {key, 0, (void *)(uintptr_t)c, NULL, NULL}; /* only read */
    for (size_t i = 1; i < N_KEY; i++)
        if (strcmp(keys[i].name, "train.folder") != 0 &&
            (on_disk || strcmp(keys[i].name, "train.memory") != 0))
            key[t.n_key++] = keys[i];
    cd_conf_print(out, &t);
}

void cd_config_json(cd_buf *out, const cd_config *c) {
    const cd_conf t = {keys + 1, N_KEY - 1, (void *)(uintptr_t)c, NULL, NULL}; /* only read */
    cd_conf_json(out, &t);
}

void cd_config_free(cd_config *c) {
    cd_diag_free(&c->diag);
    cd_buf_free(&c->notes);
    cd_arena_free(&c->arena);
}
