/* The search of a command, from its files to the best configuration as a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/hpo/hpo.h"

/* Reads a search file: what may vary, how, and the options of the search. All errors are collected
 * with their lines. */

static const cd_conf_key keys[] = {
#define X(name, type, def, range, help)                                                            \
    {"tune." #name, CD_CONF_##type, offsetof(cd_hpo_spec, name), def, range, help},
#include "learner/hpo/space_keys.def"
};

const cd_conf_key *cd_hpo_space_keys(size_t *n) {
    *n = sizeof keys / sizeof *keys;
    return keys;
}

/* Values are tried on a configuration, so that its table alone knows what is right. */
typedef struct {
    cd_hpo_space *s;
    cd_config c;
    cd_conf conf;
    cdmpp_err *err;
    bool oom;
} loader;

static void *room(loader *l, size_t n, size_t size) {
    void *p = cd_arena_zalloc(&l->s->arena, n, size);
    if (!p) l->oom = true;
    return p;
}

static void wrong(loader *l, const cd_yaml *at, const char *key, const char *want) {
    char found[96];
    cd_diag_add(&l->s->diag, l->err, CDMPP_ESCHEMA, l->s->path, at, false, key,
                "expected %s, found %s", want, cd_yaml_found(at, found, sizeof found));
}

static const cd_yaml *member(const cd_yaml *map, const char *key) {
    const cd_yaml *v = map && map->kind == CD_YAML_MAP ? map->child : NULL;
    while (v && strcmp(v->key, key) != 0) v = v->next;
    return v;
}

/* ---- values ---- */
/* The value `v` of `key`, checked, in the form it prints in; false after an error. */
static bool canonical(loader *l, const cd_conf_key *key, const cd_yaml *v, const char **out) {
    cd_yaml plain = *v;
    cd_buf b = {0};
    plain.key = NULL;
    const cdmpp_status st = cd_conf_value(&l->conf, l->s->path, key->name, &plain, l->err);
    if (st == CDMPP_ENOMEM) l->oom = true;
    if (st) return false;
    cd_conf_print_value(&b, &l->conf, key);
    *out = b.oom ? NULL : cd_str_dup(&l->s->arena, (cd_str){b.p ? b.p : "", b.n});
    cd_buf_free(&b);
    if (!*out) l->oom = true;
    return *out != NULL;
}

static bool read_values(loader *l, const cd_conf_key *key, const char *name, const cd_yaml *list,
                        cd_texts *out) {
    bool ok = true;
    if (list->kind != CD_YAML_SEQ || !list->n) {
        wrong(l, list, name, "a list of values");
        return false;
    }
    out->v = room(l, list->n, sizeof *out->v);
    if (!out->v) return false;
    for (const cd_yaml *e = list->child; e; e = e->next)
        ok &= canonical(l, key, e, &out->v[out->n++]);
    return ok;
}

/* Bounds are read as values of the key, so that they are checked like those of a configuration. */
static void read_bounds(loader *l, cd_hpo_space_param *p, const cd_yaml *v) {
    const char *text[2];
    if (v->kind != CD_YAML_SEQ || v->n != 2) {
        wrong(l, v, p->key->name, "[lowest, highest]");
        return;
    }
    if (!canonical(l, p->key, v->child, &text[0]) ||
        !canonical(l, p->key, v->child->next, &text[1]))
        return;
    p->lo = strtod(text[0], NULL);
    p->hi = strtod(text[1], NULL);
    const bool whole = p->kind == CD_HPO_PARAM_INT || p->kind == CD_HPO_PARAM_LOG_INT;
    if (whole && (p->lo != floor(p->lo) || p->hi != floor(p->hi)))
        wrong(l, v, p->key->name, "integers");
    else if (!(p->lo < p->hi))
        wrong(l, v->child->next, p->key->name, "a highest value above the lowest");
    else if ((p->kind == CD_HPO_PARAM_LOG_INT || p->kind == CD_HPO_PARAM_LOG_REAL) && p->lo <= 0)
        wrong(l, v->child, p->key->name, "a lowest value above 0, for a logarithm");
}

/* ---- conditions ---- */
static bool declared_later(const cd_yaml *param, const char *key) {
    for (const cd_yaml *p = param; p; p = p->next)
        if (!strcmp(p->key, key)) return true;
    return false;
}

static void read_when(loader *l, cd_hpo_space_param *p, const cd_yaml *param, const cd_yaml *v) {
    if (v->kind != CD_YAML_MAP || !v->n) {
        wrong(l, v, p->key->name, "a mapping like {train.loss: huber}");
        return;
    }
    p->when = room(l, v->n, sizeof *p->when);
    if (!p->when) return;
    for (const cd_yaml *c = v->child; c; c = c->next) {
        cd_hpo_space_condition *w = &p->when[p->n_when];
        w->key = cd_conf_find(&l->conf, c->key);
        if (!w->key) {
            cd_conf_value(&l->conf, l->s->path, c->key, c, l->err); /* reports it */
        } else if (declared_later(param, c->key)) {
            cd_diag_add(&l->s->diag, l->err, CDMPP_ESCHEMA, l->s->path, c, true, p->key->name,
                        "expected a condition on a key above, found '%.80s'", c->key);
            /* one of a list; each is read as a list of one where the key is a list */
        } else if (c->kind == CD_YAML_SEQ) {
            p->n_when += read_values(l, w->key, p->key->name, c, &w->value);
        } else {
            w->value.v = room(l, 1, sizeof *w->value.v);
            w->value.n = w->value.v && canonical(l, w->key, c, &w->value.v[0]);
            p->n_when += w->value.n;
        }
    }
}

/* ---- parameters ---- */
static int kind_of(const char *name) {
    static const char *const word[] = {"fixed", "choice", "int", "log_int", "real", "log_real"};
    for (int k = 0; k < 6; k++)
        if (!strcmp(name, word[k])) return k;
    return -1;
}

static bool kind_fits(cd_hpo_param_kind k, cd_conf_type t) {
    if (k <= CD_HPO_PARAM_CHOICE) return true;
    if (t == CD_CONF_INT) return k == CD_HPO_PARAM_INT || k == CD_HPO_PARAM_LOG_INT;
    return t == CD_CONF_REAL;
}

/* Keys that decide what is compared, or that are no part of the training. */
static const char *untunable(const cd_hpo_space *s, const char *key) {
    static const char *const of_data[] = {"data.", "filter.", "split."};
    if (s->budget && !strcmp(key, s->budget->name)) return "this key to be left to tune.budget";
    if (!strncmp(key, "output.", 7) || !strcmp(key, "base"))
        return "this key to be left to the command line";
    if (!strcmp(key, "data.files") || !strcmp(key, "data.kind"))
        return "this key to be left to the base: its data are read once, for all trials";
    for (int k = 0; k < 3; k++)
        if (!strncmp(key, of_data[k], strlen(of_data[k])))
            return "'fixed': it decides on the programs that are compared";
    return NULL;
}

/* A key that a search must not vary may still be fixed. */
static void read_kind(loader *l, cd_hpo_space_param *p, const cd_yaml *v, int kind) {
    static const char *const type[] = {"an integer", "a number", "true or false",
                                       "a word",     "a text",   "a list"};
    char want[128];
    const char *no = untunable(l->s, p->key->name);
    p->kind = (cd_hpo_param_kind)kind;
    if (no && !(p->kind == CD_HPO_PARAM_FIXED && no[0] == '\'')) {
        cd_diag_add(&l->s->diag, l->err, CDMPP_ESCHEMA, l->s->path, v, true, p->key->name,
                    "expected %s, found '%s'", no, v->key);
    } else if (!kind_fits(p->kind, p->key->type)) {
        snprintf(want, sizeof want, "a kind for %s, found '%s'", type[p->key->type], v->key);
        cd_diag_add(&l->s->diag, l->err, CDMPP_ESCHEMA, l->s->path, v, true, p->key->name,
                    "expected %s", want);
    } else if (p->kind == CD_HPO_PARAM_CHOICE) {
        read_values(l, p->key, p->key->name, v, &p->value);
    } else if (p->kind == CD_HPO_PARAM_FIXED) {
        p->value.v = room(l, 1, sizeof *p->value.v);
        p->value.n = p->value.v && canonical(l, p->key, v, &p->value.v[0]);
    } else {
        read_bounds(l, p, v);
    }
}

static void read_param(loader *l, const cd_yaml *v) {
    static const char want[] = "one of " CD_HPO_PARAM_KINDS " and perhaps when";
    cd_hpo_space_param *p = &l->s->param[l->s->n_param];
    const char *first = NULL;
    p->key = cd_conf_find(&l->conf, v->key);
    if (!p->key) {
        cd_conf_value(&l->conf, l->s->path, v->key, v, l->err); /* reports it */
        return;
    }
    l->s->n_param++;
    if (v->kind != CD_YAML_MAP || !v->n) {
        wrong(l, v, v->key, "a mapping like {choice: [1, 2]}");
        return;
    }
    for (const cd_yaml *k = v->child; k; k = k->next) {
        const int kind = kind_of(k->key);
        if (!strcmp(k->key, "when")) {
            read_when(l, p, v, k);
        } else if (kind < 0 || first) {
            cd_diag_add(&l->s->diag, l->err, CDMPP_ESCHEMA, l->s->path, k, true, v->key,
                        "expected %s, found '%.40s'%s%s", want, k->key, first ? " after " : "",
                        first ? first : "");
            first = k->key;
        } else {
            first = k->key;
            read_kind(l, p, k, kind);
        }
    }
    if (!first) wrong(l, v, v->key, want);
}

/* ---- settings ---- */
static void check_budget(loader *l, const cd_yaml *tune) {
    const cd_hpo_spec *t = &l->s->tune;
    const cd_yaml *at = member(tune, "budget");
    cd_yaml v = at ? *at : (cd_yaml){.text = t->budget}, number = {0};
    char text[40];
    v.key = NULL;
    const cd_conf_key *k = cd_conf_find(&l->conf, t->budget);
    if (!k) {
        cd_conf_value(&l->conf, l->s->path, t->budget, &v, l->err); /* reports it */
        return;
    }
    if (k->type != CD_CONF_INT && k->type != CD_CONF_REAL) {
        wrong(l, &v, "tune.budget", "the key of a number");
        return;
    }
    l->s->budget = k;
    for (int i = 0; i < 2; i++) { /* both ends must be values of that key */
        at = member(tune, i ? "max_budget" : "min_budget");
        if (at) number = *at;
        snprintf(text, sizeof text, "%.15g", i ? t->max_budget : t->min_budget);
        number.key = NULL;
        number.text = text;
        cd_conf_value(&l->conf, l->s->path, k->name, &number, l->err);
    }
    if (t->min_budget > t->max_budget)
        cd_diag_add(&l->s->diag, l->err, CDMPP_ERANGE, l->s->path, member(tune, "min_budget"),
                    false, "tune.min_budget", "expected at most tune.max_budget %g, found %g",
                    t->max_budget, t->min_budget);
}

/* The root without its "space", for the table of settings. */
static cdmpp_status read_tune(loader *l, const cd_yaml *root, const char *const *set,
                              size_t n_set) {
    const cd_conf t = {keys, sizeof keys / sizeof *keys, &l->s->tune, &l->s->arena, &l->s->diag};
    cd_yaml rest = *root, *copy = CD_NEWN(&l->s->arena, cd_yaml, root->n + 1);
    if (!copy) return CD_FAIL(l->err, ENOMEM, "search file");
    CD_TRY(cd_conf_defaults(&t, l->err));
    rest.child = NULL;
    cd_yaml **tail = &rest.child;
    for (const cd_yaml *v = root->kind == CD_YAML_MAP ? root->child : NULL; v; v = v->next) {
        if (!strcmp(v->key, "space")) continue;
        *copy = *v;
        *tail = copy;
        tail = &copy++->next;
    }
    *tail = NULL;
    /* but for ENOMEM the errors are in the list */
    cdmpp_status st = cd_conf_map(&t, l->s->path, &rest, l->err);
    for (size_t i = 0; i < n_set && st != CDMPP_ENOMEM; i++) st = cd_conf_set(&t, set[i], l->err);
    return st == CDMPP_ENOMEM ? st : CDMPP_OK;
}

/* Options first, because they decide what is checked afterwards. */
static cdmpp_status read_all(loader *l, const char *text, size_t n, const char *const *set,
                             size_t n_set) {
    cd_hpo_space *s = l->s;
    const cd_yaml *root = NULL, nothing = {.kind = CD_YAML_MAP};
    CD_TRY(cd_yaml_parse(&s->arena, s->path, text, n, &root, &s->diag, l->err));
    if (!root) root = &nothing;
    CD_TRY(read_tune(l, root, set, n_set));
    if (root->kind != CD_YAML_MAP) return CDMPP_ESCHEMA;
    if (s->diag.n == 0) check_budget(l, member(root, "tune"));
    const cd_yaml *space = member(root, "space");
    if (!space || space->kind != CD_YAML_MAP || !space->n) {
        wrong(l, space ? space : &nothing, "space", "a mapping of keys to what they may be");
        return CDMPP_ESCHEMA;
    }
    s->param = CD_NEWN(&s->arena, cd_hpo_space_param, space->n);
    if (!s->param) return CD_FAIL(l->err, ENOMEM, "search file");
    for (const cd_yaml *v = space->child; v; v = v->next) read_param(l, v);
    if (s->tune.sampler == CD_HPO_SAMPLER_SOBOL && s->n_param > 40)
        cd_diag_add(&s->diag, l->err, CDMPP_ERANGE, s->path, space, false, "space",
                    "expected at most 40 keys for tune.sampler sobol, found %zu", s->n_param);
    s->base = s->tune.base[0] ? cd_config_beside(&s->arena, s->path, s->tune.base) : "";
    return s->base ? CDMPP_OK : CD_FAIL(l->err, ENOMEM, "path");
}

/* Values are tried on a configuration of defaults, which knows each key's type and limits. */
cdmpp_status cd_hpo_space_load(cd_hpo_space *s, const char *path, const char *const *set,
                               size_t n_set, cdmpp_err *err) {
    cdmpp_err first = {0};
    loader l = {.s = s, .err = err ? err : &first};
    char *text = NULL;
    size_t n = 0;
    *s = (cd_hpo_space){.path = path};
    cdmpp_status st = cd_config_init(&l.c, err);
    size_t n_key;
    l.conf = (cd_conf){cd_config_keys(&n_key), 0, &l.c, &s->arena, &s->diag};
    l.conf.n_key = n_key;
    if (!st) st = cd_file_read(path, CD_YAML_MAX_BYTES + 1, &text, &n, err);
    if (!st) st = read_all(&l, text, n, set, n_set);
    if (!st && !l.oom && s->diag.n) st = l.err->code ? l.err->code : CDMPP_ESCHEMA;
    if (!st && (l.oom || s->diag.text.oom)) st = CD_FAIL(err, ENOMEM, "search file");
    cd_mem_free(text);
    cd_config_free(&l.c);
    return st;
}

void cd_hpo_space_free(cd_hpo_space *s) {
    cd_diag_free(&s->diag);
    cd_arena_free(&s->arena);
}

/* ---- budgets ---- */
unsigned cd_hpo_space_rungs(const cd_hpo_space *s) {
    unsigned n = 1;
    for (double b = s->tune.max_budget;
         n < CD_HPO_ASHA_RUNGS && (b /= (double)s->tune.eta) >= s->tune.min_budget * (1 - 1e-9);)
        n++;
    return n;
}

double cd_hpo_space_budget(const cd_hpo_space *s, unsigned rung) {
    double b = s->tune.max_budget;
    for (unsigned r = rung + 1; r < cd_hpo_space_rungs(s); r++) b /= (double)s->tune.eta;
    return s->budget->type == CD_CONF_INT ? round(b) : b;
}

/* A search as lines while it runs and as a table at the end. */

void cd_hpo_event_json(cd_buf *out, const cd_hpo_event *e) {
    static const char *const state[] = {"running", "done", "failed"};
    cd_buf_putf(out,
                "{\"trial\":%zu,\"rung\":%u,\"budget\":%.15g,\"state\":\"%s\",\"valid_error\":",
                e->trial, e->rung, e->budget, state[e->state]);
    if (e->state == CD_HPO_DONE) cd_buf_putf(out, "%.17g", e->error);
    else cd_buf_puts(out, "null");
    if (e->state == CD_HPO_FAILED) {
        cd_buf_puts(out, ",\"reason\":");
        cd_buf_put_json_str(out, e->reason, strlen(e->reason));
    }
    if (e->state != CD_HPO_RUNNING)
        cd_buf_putf(out, ",\"known\":%s,\"seconds\":%.3f", e->known ? "true" : "false", e->seconds);
    cd_buf_putf(out, ",\"params\":%s}\n", e->params);
}

void cd_hpo_event_text(cd_buf *out, const cd_hpo_event *e) {
    cd_buf_putf(out, "trial %zu, budget %g: ", e->trial, e->budget);
    if (e->state == CD_HPO_FAILED) cd_buf_putf(out, "failed: %s", e->reason);
    else cd_buf_putf(out, "error %.5g", e->error);
    if (e->known) cd_buf_puts(out, ", from the journal");
    else cd_buf_putf(out, ", %.1f s", e->seconds);
}

/* A trial by the last of its results. */
typedef struct {
    size_t trial;
    unsigned rung;
    double error;
} line;

/* Higher rungs first, then smaller errors. */
static int by_rank(const void *a, const void *b) {
    const line *x = a, *y = b;
    if (x->rung != y->rung) return x->rung > y->rung ? -1 : 1;
    if (x->error < y->error) return -1;
    if (x->error > y->error) return 1;
    return x->trial < y->trial ? -1 : x->trial > y->trial;
}

static size_t collect(const cd_hpo_result *f, line *l) {
    size_t n = 0;
    for (size_t t = 0; t < f->n_trial; t++)
        for (unsigned r = f->n_rung; r-- > 0;) {
            const double e = f->error[t * f->n_rung + r];
            if (isnan(e)) continue;
            l[n++] = (line){t, r, e};
            break;
        }
    return n;
}

/* Trials of higher rungs first: their errors are of larger budgets and compare with nothing
 * below. */
void cd_hpo_result_table(cd_buf *out, const cd_hpo_result *f, const cd_hpo_space *s, size_t max) {
    line *l = cd_mem_zalloc(f->n_trial + 1, sizeof *l);
    if (!l) {
        out->oom = true;
        return;
    }
    const size_t n = collect(f, l);
    qsort(l, n, sizeof *l, by_rank);
    cd_buf_putf(out, "%6s %10s %12s  parameters\n", "trial", "budget", "valid error");
    for (size_t i = 0; i < n && i < max; i++) {
        cd_buf_putf(out, "%6zu %10.6g ", l[i].trial, cd_hpo_space_budget(s, l[i].rung));
        if (isfinite(l[i].error))
            cd_buf_putf(out, "%12.5g  %s\n", l[i].error, f->trial[l[i].trial].params);
        else
            cd_buf_putf(out, "%12s  %s\n%6s %s\n", "failed", f->trial[l[i].trial].params, "",
                        f->reason[l[i].trial]);
    }
    if (n > max) cd_buf_putf(out, "%zu more are in the journal\n", n - max);
    cd_mem_free(l);
}

void cd_hpo_space_print(cd_buf *out, const cd_hpo_space *s) {
    size_t n;
    const cd_conf_key *key = cd_hpo_space_keys(&n);
    const cd_conf t = {key, n, (void *)(uintptr_t)&s->tune, NULL, NULL}; /* only read */
    cd_conf_print(out, &t);
}

static const char *hpo_metric_name(cd_hpo_metric e) {
    static const char *const name[] = {"MAPE", "median error", "RMSE of log(latency)",
                                       "1 - Spearman"};
    return name[e];
}

static bool is_tune(const char *set) { return !strncmp(set, "tune.", 5); }

/* The assignments that go to the search file, or those that do not. */
static cdmpp_status settings(const cd_hpo_run *cmd, bool tune, cd_arena *a, const char ***set,
                             size_t *n, cdmpp_err *err) {
    *set = CD_NEWN(a, const char *, cmd->n_set + 1);
    *n = 0;
    if (!*set) return CD_FAIL(err, ENOMEM, "settings");
    for (size_t i = 0; i < cmd->n_set; i++)
        if (is_tune(cmd->set[i]) == tune) (*set)[(*n)++] = cmd->set[i];
    return CDMPP_OK;
}

static cdmpp_status read_space(const cd_hpo_run *cmd, cd_hpo_run_state *s, cdmpp_err *err) {
    const char **set;
    size_t n;
    CD_TRY(settings(cmd, true, &s->arena, &set, &n, err));
    return cd_hpo_space_load(&s->space, cmd->space, set, n, err);
}

static cdmpp_status read_base(const cd_hpo_run *cmd, bool data, cd_hpo_run_state *s,
                              cdmpp_err *err) {
    const char *path = cmd->config ? cmd->config : s->space.base;
    CD_TRY(cd_config_init(&s->base, err));
    const char **set;
    size_t n;
    CD_TRY(settings(cmd, false, &s->base.arena, &set, &n, err));
    cdmpp_status st = cd_config_read(&s->base, path, set, n, err);
    if (!st && s->base.data_kind)
        cd_diag_add(&s->base.diag, err, st = CDMPP_ESCHEMA, path, NULL, false, "data.kind",
                    "expected programs: a search varies what is trained on programs");
    if (!st && data) st = cd_config_check(&s->base, path[0] ? path : cmd->space, err);
    return st;
}

cdmpp_status cd_hpo_run_read(const cd_hpo_run *cmd, bool data, cd_hpo_run_state *s,
                             cdmpp_err *err) {
    *s = (cd_hpo_run_state){0};
    const int n =
        snprintf(s->journal, sizeof s->journal, "%s%s", cmd->journal ? cmd->journal : cmd->out,
                 cmd->journal ? "" : ".journal.jsonl");
    if (n < 0 || (size_t)n >= sizeof s->journal)
        return CD_FAIL(err, ERANGE, "name of the journal is too long");
    CD_TRY(read_space(cmd, s, err));
    return read_base(cmd, data, s, err);
}

/* s->best behind the lines of `b`, which is freed. */
static cdmpp_status write_config(const cd_hpo_run *cmd, const cd_hpo_run_state *s,
                                 CD_TAKE cd_buf *b, cdmpp_err *err) {
    cdmpp_status st;
    cd_config_print(b, &s->best);
    if (b->oom) st = CD_FAIL(err, ENOMEM, "configuration");
    else st = cd_file_write(cmd->out, b->p, b->n, err);
    cd_buf_free(b);
    return st;
}

static cdmpp_status write_best(const cd_hpo_run *cmd, const cd_hpo_run_state *s, cdmpp_err *err) {
    cd_buf b = {0};
    cd_buf_putf(&b, "# Trial %zu of %zu of a search over %s: %s of the validation part %.6g.\n",
                s->found.best, s->found.n_trial, s->space.path,
                hpo_metric_name((cd_hpo_metric)s->space.tune.error), s->found.best_error);
    return write_config(cmd, s, &b, err);
}

cdmpp_status cd_hpo_run_config(const cd_hpo_run *cmd, cd_hpo_run_state *s, size_t trial,
                               cdmpp_err *err) {
    cd_buf b = {0};
    cd_hpo_trial *t;
    size_t n;
    CD_TRY(cd_hpo_space_sample(&s->space, &s->base, &s->arena, &t, &n, err));
    if (trial >= n)
        return CD_FAIL(err, ERANGE, "expected one of the trials 0 to %zu of this search, found %zu",
                       n - 1, trial);
    CD_TRY(cd_hpo_space_config(&s->space, &s->base, &t[trial], s->space.tune.max_budget, &s->best,
                               err));
    cd_buf_putf(&b, "# Trial %zu of %zu of a search over %s.\n", trial, n, s->space.path);
    return write_config(cmd, s, &b, err);
}

/* What the members of all trials together need of the data. */
static cdmpp_status needs(const cd_hpo_run_state *s, cd_member_plan *all, cdmpp_err *err) {
    cd_arena a = {0};
    cd_hpo_trial *trial;
    size_t n;
    bool must = false; /* a trial cannot be without facts */
    *all = (cd_member_plan){0};
    cdmpp_status st = cd_hpo_space_sample(&s->space, &s->base, &a, &trial, &n, err);
    for (size_t i = 0; !st && i < n; i++) {
        cd_config c;
        cd_member_plan plan;
        st = cd_hpo_space_config(&s->space, &s->base, &trial[i], s->space.tune.max_budget, &c, err);
        /* a trial that cannot be fails on its own */
        if (!st && cd_member_plan_of(&c, &plan, NULL) == CDMPP_OK) {
            all->leaves |= plan.leaves;
            all->steps |= plan.steps;
            all->trees |= plan.trees;
            all->facts |= plan.facts;
            must |= plan.facts && !plan.wish;
        }
        cd_config_free(&c);
    }
    all->wish = all->facts && !must;
    cd_arena_free(&a);
    return st;
}

cdmpp_status cd_hpo_run_search(const cd_hpo_run *cmd, cd_hpo_run_state *s, cdmpp_err *err) {
    cd_dataset *d = NULL;
    cd_member_plan plan;
    CD_TRY(needs(s, &plan, err));
    CD_TRY(cd_learner_load(&s->base, &plan, &d, err));
    const cd_hpo_objective t = {&s->space,  &s->base,  d,
                                s->journal, cmd->jobs, cd_learner_at_once(&s->base, &plan, d),
                                cmd->tell,  cmd->note, cmd->tick,
                                cmd->ctx};
    cdmpp_status st = cd_hpo_objective_run(&t, &s->found, err);
    cd_dataset_free(d);
    CD_TRY(st);
    CD_TRY(cd_hpo_space_config(&s->space, &s->base, &s->found.trial[s->found.best],
                               s->space.tune.max_budget, &s->best, err));
    return write_best(cmd, s, err);
}

void cd_hpo_run_free(cd_hpo_run_state *s) {
    cd_config_free(&s->best);
    cd_hpo_result_free(&s->found);
    cd_config_free(&s->base);
    cd_hpo_space_free(&s->space);
    cd_arena_free(&s->arena);
}

void cd_hpo_run_text(cd_buf *b, const cd_hpo_run_state *s, const char *out) {
    const cd_hpo_result *f = &s->found;
    cd_hpo_result_table(b, f, &s->space, 20);
    cd_buf_putf(b, "trial %zu, %s %.5g on the validation part: %s\n", f->best,
                hpo_metric_name((cd_hpo_metric)s->space.tune.error), f->best_error, out);
}

void cd_hpo_run_json(cd_buf *b, const cd_hpo_run_state *s, const char *out) {
    const cd_hpo_result *f = &s->found;
    cd_buf_putf(b,
                "{\"schema\":\"cdmpp.search\",\"command\":\"cdmpp-train\",\"trials\":%zu,\"best\":%"
                "zu,\"valid_error\":%.17g,\"config_file\":",
                f->n_trial, f->best, f->best_error);
    cd_buf_put_json_str(b, out, strlen(out));
    cd_buf_putf(b, ",\"params\":%s}\n", f->trial[f->best].params);
}
