/* Which tasks a model has never seen: its data is split again as its header says, and the digest
 * tells whether it is the same data. */
#include "learner/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
