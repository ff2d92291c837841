/* Which tasks a model has never seen: its data is split again as its header says, and the digest
 * tells whether it is the same data. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "learner/config/config.h"

/* The programs of a data set that a configuration trains on: filtered, then split into parts. */

enum { MAX_LEAVES = 64 }; /* lengths of the list of numbers of leaves */

/* ---- data.devices, data.sample ---- */
static cdmpp_status number_of_device(const cd_dataset *d, const char *name, size_t *out,
                                     cdmpp_err *err) {
    for (*out = 0; *out < d->n_device; ++*out)
        if (!strcmp(d->device_name[*out], name)) return CDMPP_OK;
    const char *near =
        cd_did_you_mean_nearest(name, (const char *const *)d->device_name, d->n_device);
    cd_buf b = {0};
    for (size_t i = 0; i < d->n_device && i < 5; i++)
        cd_buf_putf(&b, "%s%.60s", i ? ", " : "", d->device_name[i]);
    const cdmpp_status st =
        CD_FAIL(err, ESCHEMA,
                "expected a device of the data set (%s%s), found '%.80s'%s%s%s; --set "
                "'data.devices=[]' takes all",
                b.p ? b.p : "none", d->n_device > 5 ? ", ..." : "", name,
                near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    cd_buf_free(&b);
    return st;
}

/* Programs of the sample, on the devices. */
static cdmpp_status ask(const cd_config *c, const cd_dataset *d, uint8_t *asked, cdmpp_err *err) {
    const cd_texts *want = &c->data_devices;
    uint8_t *dev = cd_mem_zalloc(d->n_device + 1, 1);
    cdmpp_status st = dev ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu devices", d->n_device);
    for (size_t k = 0; k < want->n && !st; k++) {
        size_t v;
        st = cd_err_key(err, cd_err_index(err, number_of_device(d, want->v[k], &v, err), k),
                        "data.devices");
        if (!st) dev[v] = 1;
    }
    if (!st) memset(asked, 1, d->n);
    if (!st && c->data_sample[0])
        st = cd_err_key(err, cd_sample_mark(d, c->data_sample, (uint64_t)c->data_seed, asked, err),
                        "data.sample");
    for (size_t i = 0; want->n && i < d->n && !st; i++) asked[i] = asked[i] && dev[d->device[i]];
    cd_mem_free(dev);
    return st;
}

/* ---- filter ---- */
/* A number of leaves; -1 when the text is none. */
static long leaf_number(const char *s) {
    char *end;
    const long x = strspn(s, "0123456789") == strlen(s) && strlen(s) < 6 ? strtol(s, &end, 10) : -1;
    return *s ? x : -1;
}

static cd_filter_spec filter_spec(const cd_config *c, const uint8_t *asked,
                                  uint32_t leaves[MAX_LEAVES]) {
    const cd_texts *t = &c->filter_leaf_counts;
    for (size_t k = 0; k < t->n; k++) leaves[k] = (uint32_t)leaf_number(t->v[k]); /* checked */
    return (cd_filter_spec){.asked = asked,
                            .facts = c->filter_facts,
                            .max_std_ratio = c->filter_max_std_ratio,
                            .low_percentile = c->filter_low_percentile,
                            .high_percentile = c->filter_high_percentile,
                            .leaves = leaves,
                            .n_leaves = t->n,
                            .min_flop = c->filter_min_flop,
                            .max_flop = c->filter_max_flop,
                            .min_per_task = c->filter_min_per_task,
                            .max_per_task = c->filter_max_per_task,
                            .seed = (uint64_t)c->data_seed};
}

/* Nothing is left: say what took most. */
static cdmpp_status none_left(const cd_filter_count *n, cdmpp_err *err) {
    int most = 0;
    if (n->kept) return CDMPP_OK;
    for (int k = 1; k < CD_FILTER_N_DROP; k++)
        if (n->drop[k] > n->drop[most]) most = k;
    return CD_FAIL(err, ERANGE, "no program to learn from: %zu of %zu were dropped: %s",
                   n->drop[most], n->in, cd_filter_drop_text((cd_filter_drop)most));
}

/* ---- split ---- */
static cdmpp_status make_split(const cd_config *c, const cd_dataset *d, cd_threads *pool,
                               const uint8_t *keep, cd_split **split, cdmpp_err *err) {
    const bool target = c->split_target_tasks >= 0;
    const cd_split_target t = {.n_task = target ? (size_t)c->split_target_tasks : 0,
                               .select = (cd_select_kind)c->split_target_select,
                               .pool = pool};
    cd_split_spec s = {.kind = (cd_split_kind)c->split_kind,
                       .seed = (uint64_t)c->split_seed,
                       .valid = c->split_valid,
                       .test = c->split_test,
                       .valid_name = c->split_valid_names,
                       .test_name = c->split_test_names,
                       .train_name = c->split_train_names,
                       .target = target ? &t : NULL,
                       .train_per_task = c->split_train_per_task,
                       .train_best = c->split_train_best};
    cd_arena arena = {0};
    cdmpp_status st = CDMPP_OK;
    if (c->split_mode[0])
        st = cd_err_key(err, cd_sample_split(d, c->split_mode, &arena, &s, err), "split.mode");
    if (!st) st = cd_split_make(d, keep, &s, split, err);
    cd_arena_free(&arena);
    return st;
}

cdmpp_status cd_select_programs(const cd_config *c, const cd_dataset *d, cd_threads *pool,
                                uint8_t *keep, cd_filter_count *count, cd_split **split,
                                cdmpp_err *err) {
    uint32_t leaves[MAX_LEAVES];
    uint8_t *asked = cd_mem_zalloc(d->n + 1, 1);
    if (!asked) return CD_FAIL(err, ENOMEM, "%zu programs", d->n);
    assert(d->facts_state || !c->filter_facts); /* cd_training_set_load and heldout.c load them */
    const cd_filter_spec f = filter_spec(c, asked, leaves);
    cdmpp_status st = ask(c, d, asked, err);
    if (!st) st = cd_filter(d, &f, keep, count, err);
    if (!st) st = none_left(count, err);
    cd_mem_free(asked);
    return st ? st : make_split(c, d, pool, keep, split, err);
}

/* ---- what cannot be ---- */
static void check_leaves(cd_config *c, const char *path, cdmpp_err *err) {
    const cd_texts *t = &c->filter_leaf_counts;
    if (t->n > MAX_LEAVES)
        cd_diag_add(&c->diag, err, CDMPP_ERANGE, path, NULL, false, "filter.leaf_counts",
                    "expected at most %d numbers, found %zu", MAX_LEAVES, t->n);
    for (size_t k = 0; k < t->n; k++) {
        char key[48];
        snprintf(key, sizeof key, "filter.leaf_counts[%zu]", k);
        if (leaf_number(t->v[k]) < 1)
            cd_diag_add(&c->diag, err, CDMPP_ESCHEMA, path, NULL, false, key,
                        "expected a number of leaves, found '%.40s'", t->v[k]);
    }
}

static void refuse(cd_config *c, const char *path, const char *key, const char *why,
                   cdmpp_err *err) {
    cd_diag_add(&c->diag, err, CDMPP_ESCHEMA, path, NULL, false, key, "%s", why);
}

static void check_split(cd_config *c, const char *path, cdmpp_err *err) {
    const cd_split_kind kind = (cd_split_kind)c->split_kind;
    const bool mode = c->split_mode[0] != '\0',
               units = mode || (kind != CD_SPLIT_RECORD && kind != CD_SPLIT_INTERLEAVED);
    const bool device = mode ? !strncmp(c->split_mode, "by_device:", 10) : kind == CD_SPLIT_DEVICE;
    const cd_texts *name[] = {&c->split_train_names, &c->split_test_names, &c->split_valid_names};
    static const char *const key[] = {"split.train_names", "split.test_names", "split.valid_names"};
    for (int k = 0; k < 3; k++) {
        if (name[k]->n && mode && k < 2)
            refuse(c, path, key[k], "split.mode says who is held out, too: expected one of them",
                   err);
        if (name[k]->n && !units)
            refuse(c, path, key[k], "names need a split by task, network or device", err);
    }
    if (c->split_target_tasks >= 0 && !device)
        refuse(c, path, "split.target_tasks", "needs a split by device", err);
    if (c->split_target_tasks >= 0 && c->split_valid_names.n)
        refuse(c, path, "split.valid_names",
               "with split.target_tasks, tasks are drawn for validation", err);
}

void cd_select_programs_check(cd_config *c, const char *path, cdmpp_err *err) {
    check_split(c, path, err);
    check_leaves(c, path, err);
    if (c->filter_low_percentile >= c->filter_high_percentile)
        cd_diag_add(&c->diag, err, CDMPP_ERANGE, path, NULL, false, "filter.low_percentile",
                    "expected less than filter.high_percentile (%g), found %g",
                    c->filter_high_percentile, c->filter_low_percentile);
    if (c->filter_max_flop > 0 && c->filter_min_flop > c->filter_max_flop)
        cd_diag_add(&c->diag, err, CDMPP_ERANGE, path, NULL, false, "filter.min_flop",
                    "expected at most filter.max_flop (%g), found %g", c->filter_max_flop,
                    c->filter_min_flop);
    if (c->filter_max_per_task > 0 && c->filter_min_per_task > c->filter_max_per_task)
        cd_diag_add(&c->diag, err, CDMPP_ERANGE, path, NULL, false, "filter.min_per_task",
                    "expected at most filter.max_per_task (%lld), found %lld",
                    (long long)c->filter_max_per_task, (long long)c->filter_min_per_task);
}

struct cd_heldout {
    cd_arena arena;
    const char **seen; /* (n_seen) sorted */
    size_t n_seen;
    char split[64];
};

/* Of a configuration, the sections that decide who trains: others may be as a command line made
 * them, and no input any more. */
static cdmpp_status read_config(cd_config *c, cd_str text, cdmpp_err *err) {
    static const char *const section[] = {"data", "filter", "split"};
    static const char where[] = "config of the model";
    cd_conf table = {.to = c, .arena = &c->arena, .diag = &c->diag};
    const cd_yaml *top;
    char name[80];
    table.key = cd_config_keys(&table.n_key);
    CD_TRY(cd_yaml_parse(&c->arena, where, text.p, text.n, &top, &c->diag, err));
    for (const cd_yaml *s = top && top->kind == CD_YAML_MAP ? top->child : NULL; s; s = s->next)
        for (size_t k = 0; k < sizeof section / sizeof *section; k++)
            for (const cd_yaml *v = s->kind == CD_YAML_MAP && !strcmp(s->key, section[k]) ? s->child
                                                                                          : NULL;
                 v; v = v->next) {
                snprintf(name, sizeof name, "%s.%s", s->key, v->key);
                CD_TRY(cd_conf_value(&table, where, name, v, err));
            }
    return CDMPP_OK;
}

/* What the header says: its configuration, the digest of its split. */
static cdmpp_status read_header(cd_arena *a, const char *header, cd_config *c, const char **digest,
                                cdmpp_err *err) {
    const cd_json *h, *split;
    cd_str text, d;
    CD_TRY(cd_json_parse(a, header, strlen(header), &h, err));
    const cd_json *conf = cd_json_get(h, "config");
    if (!conf || conf->kind != CD_JSON_STR)
        return CD_FAIL(err, ESCHEMA, "the model does not tell how it was trained");
    CD_TRY(cd_json_str(conf, &text, err));
    CD_TRY(cd_json_need(h, "split", &split, err));
    CD_TRY(cd_err_key(err, cd_json_need_str(split, "digest", &d, err), "split"));
    *digest = cd_str_dup(a, d);
    if (!*digest) return CD_FAIL(err, ENOMEM, "header");
    return read_config(c, text, err);
}

static cdmpp_status find_files(cd_config *c, const char *const *data, size_t n, cdmpp_err *err) {
    if (n) {
        c->data_files = (cd_texts){n, cd_arena_alloc(&c->arena, n, sizeof *c->data_files.v)};
        if (!c->data_files.v) return CD_FAIL(err, ENOMEM, "%zu files", n);
        memcpy(c->data_files.v, data, n * sizeof *data);
    }
    for (size_t i = 0; i < c->data_files.n; i++)
        if (access(c->data_files.v[i], F_OK) != 0)
            return cd_err_key(
                err,
                CD_FAIL(err, ENODATA,
                        "expected the data set that the model was trained on, found no file '%s'",
                        c->data_files.v[i]),
                "data.files");
    return CDMPP_OK;
}

/* Validation programs count as seen: they decided when to stop and how the kinds are weighted. */
static cdmpp_status list_seen(cd_heldout *h, const cd_dataset *d, const cd_split *s,
                              cdmpp_err *err) {
    uint8_t *seen = cd_mem_zalloc(d->n_task + 1, 1);
    h->seen = CD_NEWN(&h->arena, const char *, d->n_task + 1);
    cdmpp_status st = seen && h->seen ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu tasks", d->n_task);
    for (size_t i = 0; !st && i < d->n; i++)
        seen[d->task[i]] |= s->part[i] == CD_SPLIT_PART_TRAIN ||
                            s->part[i] == CD_SPLIT_PART_VALID ||
                            (s->unlabelled && s->unlabelled[i]);
    for (size_t t = 0; !st && t < d->n_task; t++) {
        if (!seen[t]) continue;
        const char *name =
            cd_str_dup(&h->arena, (cd_str){d->task_name[t], strlen(d->task_name[t])});
        if (name) h->seen[h->n_seen++] = name;
        else st = CD_FAIL(err, ENOMEM, "task");
    }
    if (!st && h->n_seen) qsort(h->seen, h->n_seen, sizeof *h->seen, cd_sort_by_text);
    cd_mem_free(seen);
    return st;
}

/* The digest of the split must agree, or "never seen" would be wrong. */
static cdmpp_status split_again(cd_heldout *h, const cd_config *c, const char *digest,
                                cdmpp_err *err) {
    cd_dataset *d = NULL;
    cd_split *s = NULL;
    cd_filter_count count;
    CD_TRY(cd_dataset_load_within(c->data_files.v, c->data_files.n,
                                  &(cd_dataset_options){.facts = c->filter_facts}, &d, err));
    uint8_t *keep = cd_mem_zalloc(d->n + 1, 1);
    cdmpp_status st = keep ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu programs", d->n);
    if (!st) st = cd_select_programs(c, d, NULL, keep, &count, &s, err);
    if (!st && strcmp(s->digest, digest) != 0)
        st = cd_err_key(err,
                        CD_FAIL(err, EMODEL,
                                "expected the data set that the model was trained on, split "
                                "%.12s..., found one that splits into %.12s...",
                                digest, s->digest),
                        "data.files");
    if (!st) st = list_seen(h, d, s, err);
    cd_mem_free(keep);
    cd_split_free(s);
    cd_dataset_free(d);
    return st;
}

/* The configuration in the header has everything that the split depends on. */
cdmpp_status cd_heldout_new(const char *header, const char *const *data, size_t n_data,
                            cd_heldout **out, cdmpp_err *err) {
    cd_arena scratch = {0};
    cd_config c;
    const char *digest = NULL;
    cd_heldout *h = cd_mem_zalloc(1, sizeof *h);
    if (!h) return CD_FAIL(err, ENOMEM, "tasks");
    cdmpp_status st = cd_config_init(&c, err);
    if (!st) st = read_header(&scratch, header, &c, &digest, err);
    if (!st) st = find_files(&c, data, n_data, err);
    if (!st) st = split_again(h, &c, digest, err);
    if (!st)
        snprintf(h->split, sizeof h->split, "%s, seed %lld",
                 cd_split_name((cd_split_kind)c.split_kind), (long long)c.split_seed);
    cd_config_free(&c);
    cd_arena_free(&scratch);
    if (st) cd_heldout_free(h);
    else *out = h;
    return st;
}

void cd_heldout_free(cd_heldout *h) {
    if (!h) return;
    cd_arena_free(&h->arena);
    cd_mem_free(h);
}

bool cd_heldout_seen(const cd_heldout *h, const char *key) {
    return h->n_seen && bsearch(&key, h->seen, h->n_seen, sizeof *h->seen, cd_sort_by_text);
}

const char *cd_heldout_split(const cd_heldout *h) { return h->split; }
