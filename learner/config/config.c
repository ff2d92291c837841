/* A configuration: YAML by a table of keys (config_keys.def), "--set" on top, checks that span
 * several keys. */
#include "learner/config/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"

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
