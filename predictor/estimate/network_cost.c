/* The list of fits: reading, finding, writing. */
#include "predictor/estimate/network_cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/io.h"
#include "learner/inputs/inputs.h"

enum { MOST = 4096 };
static const cd_conf_key key[] = {
    {"devices", CD_CONF_LIST, offsetof(cd_network_cost_fit, devices), "[]", "",
     "devices that the fit is of"},
    {"lent_to", CD_CONF_LIST, offsetof(cd_network_cost_fit, lent_to), "[]", "",
     "devices that take it, and whose networks nobody measured"},
    {"lift", CD_CONF_REAL, offsetof(cd_network_cost_fit, lift), "1", "0.1..10",
     "times that a task takes in a network over alone"},
    {"lift_from", CD_CONF_REAL, offsetof(cd_network_cost_fit, lift_from), "0", "0..1e9",
     "of networks that move more than so many times the largest shared cache"},
    {"call_s", CD_CONF_REAL, offsetof(cd_network_cost_fit, call_s), "0", "0..1",
     "seconds of each task's call"},
    {"refill_bytes_per_s", CD_CONF_REAL, offsetof(cd_network_cost_fit, refill_bytes_per_s), "0",
     "0..1e15", "rate at which weights come that had stayed in a nearer cache; 0: none do"},
    {"refill_to", CD_CONF_REAL, offsetof(cd_network_cost_fit, refill_to), "2", "0..1e9",
     "these are smaller than so many times the core's last own cache"},
    {"refill_from", CD_CONF_REAL, offsetof(cd_network_cost_fit, refill_from), "0", "0..1e9",
     "in networks whose weights take more than so many times the largest shared cache"},
    {"networks", CD_CONF_INT, offsetof(cd_network_cost_fit, networks), "0", "0..",
     "networks that it was fitted on"},
    {"spread", CD_CONF_REAL, offsetof(cd_network_cost_fit, spread), "0", "0..10",
     "standard deviation of ln(measured / fitted)"},
    {"adds", CD_CONF_REAL, offsetof(cd_network_cost_fit, adds), "0", "0..10",
     "root of the mean square of ln(measured / sum of operators alone); 0: not told"},
    {"source", CD_CONF_TEXT, offsetof(cd_network_cost_fit, source), "\"\"", "", "which data"},
};

/* ---- whose it is ---- */
static bool is_in(const cd_texts *l, const char *name) {
    for (size_t i = 0; name && i < l->n; i++)
        if (cd_device_table_same(NULL, l->v[i], name)) return true;
    return false;
}

bool cd_network_cost_names(const cd_network_cost_fit *f, const char *name) {
    return f && is_in(&f->devices, name);
}

static const cd_network_cost_fit *by_name(const cd_network_cost *l, const char *name, bool lent) {
    for (size_t k = 0; l && k < l->n; k++)
        if (is_in(lent ? &l->v[k].lent_to : &l->v[k].devices, name)) return &l->v[k];
    return NULL;
}

/* The name that was asked for comes first: a machine that a model is corrected for has the
 * description of another device. */
const cd_network_cost_fit *cd_network_cost_find(const cd_network_cost *l, const char *name,
                                                const cd_device *d) {
    const cd_network_cost_fit *f = by_name(l, name, false);
    if (!f && d) f = by_name(l, d->name, false);
    if (!f) f = by_name(l, name, true);
    return f || !d ? f : by_name(l, d->name, true);
}

const char *cd_network_cost_whose(const cd_network_cost *l, const char *name, const cd_device *d,
                                  const char *stands) {
    return stands && !cd_network_cost_find(l, name, d) ? stands : name;
}

const char *cd_network_cost_lender(const cd_network_cost_fit *f, const char *name,
                                   const cd_device *d) {
    return !f || cd_network_cost_names(f, name) || (d && cd_network_cost_names(f, d->name)) ||
                   !f->devices.n
               ? NULL
               : f->devices.v[0];
}

/* ---- reading ---- */
typedef struct {
    const char *path;
    cd_diag *diag;
    cdmpp_err *err;
} reading;

static cdmpp_status read_entry(const reading *r, cd_network_cost *l, const cd_yaml *map) {
    cd_network_cost_fit *f = &l->v[l->n];
    char found[96];
    const cd_conf c = {key, sizeof key / sizeof *key, f, &l->arena, r->diag};
    if (map->kind != CD_YAML_MAP) {
        cd_diag_add(r->diag, r->err, CDMPP_ESCHEMA, r->path, map, false, "",
                    "expected the keys of a fit, found %s",
                    cd_yaml_found(map, found, sizeof found));
        return CDMPP_OK;
    }
    CD_TRY(cd_conf_defaults(&c, r->err));
    const cdmpp_status st = cd_conf_map(&c, r->path, map, r->err);
    if (st == CDMPP_ENOMEM) return st;
    if (!st && !f->devices.n)
        cd_diag_add(r->diag, r->err, CDMPP_ESCHEMA, r->path, map, false, "devices",
                    "expected the names of the devices, found nothing");
    for (size_t k = 0; !st && k < f->devices.n; k++)
        if (by_name(l, f->devices.v[k], false))
            cd_diag_add(r->diag, r->err, CDMPP_ESCHEMA, r->path, map, false, "devices",
                        "'%s' has a fit already", f->devices.v[k]);
    l->n++;
    return CDMPP_OK;
}

static cdmpp_status read_list(const reading *r, cd_network_cost *l, const cd_yaml *root) {
    char found[96];
    if (!root) return CDMPP_OK;
    if (root->kind != CD_YAML_SEQ || root->n > MOST) {
        cd_diag_add(r->diag, r->err, CDMPP_ESCHEMA, r->path, root, false, "",
                    "expected a list of at most %d fits, found %s", MOST,
                    cd_yaml_found(root, found, sizeof found));
        return CDMPP_OK;
    }
    if (!(l->v = CD_NEWN(&l->arena, cd_network_cost_fit, (size_t)root->n + 1)))
        return CD_FAIL(r->err, ENOMEM, "%u fits", root->n);
    for (const cd_yaml *v = root->child; v; v = v->next) CD_TRY(read_entry(r, l, v));
    return CDMPP_OK;
}

cdmpp_status cd_network_cost_read(const char *path, const char *text, size_t n, cd_diag *diag,
                                  cd_network_cost **out, cdmpp_err *err) {
    const cd_yaml *root = NULL;
    const size_t before = diag->n;
    cdmpp_err first = {0};
    const reading r = {path, diag, &first};
    cd_network_cost *l = cd_mem_zalloc(1, sizeof *l);
    if (!l) return CD_FAIL(err, ENOMEM, "list of fits");
    cdmpp_status st = cd_yaml_parse(&l->arena, path, text, n, &root, diag, &first);
    if (!st) st = read_list(&r, l, root);
    if (!st && diag->n > before) st = first.code;
    if (!st && diag->n > before) st = CD_FAIL(&first, ESCHEMA, "%zu mistakes", diag->n - before);
    if (st) cd_err_from(err, &first);
    if (st) cd_network_cost_free(l);
    else *out = l;
    return st;
}

cdmpp_status cd_network_cost_load(const char *path, cd_diag *diag, cd_network_cost **out,
                                  cdmpp_err *err) {
    char *text;
    size_t n;
    CD_TRY(cd_file_read(path, CD_YAML_MAX_BYTES + 1, &text, &n, err));
    const cdmpp_status st = cd_network_cost_read(path, text, n, diag, out, err);
    cd_mem_free(text);
    return st;
}

void cd_network_cost_free(cd_network_cost *l) {
    if (!l) return;
    cd_arena_free(&l->arena);
    cd_mem_free(l);
}

const char *cd_network_cost_named(void) {
    const char *named = getenv("CDMPP_NETWORK_COSTS");
    return named && *named ? named : NULL;
}

/* Where the file is: $CDMPP_NETWORK_COSTS, else CD_NETWORK_COST_FILE in configs/ of the working
 * directory, else the installed one. NULL: nowhere. */
static const char *network_cost_path(cd_arena *a) {
    static const char here[] = "configs/" CD_NETWORK_COST_FILE;
    if (cd_network_cost_named()) return cd_network_cost_named();
    return !access(here, R_OK) ? here : cd_data_path_find(a, here);
}

cdmpp_status cd_network_cost_usual(cd_diag *diag, cd_network_cost **out, cdmpp_err *err) {
    cd_arena a = {0};
    const char *path = network_cost_path(&a);
    *out = NULL;
    const cdmpp_status st = path ? cd_network_cost_load(path, diag, out, err) : CDMPP_OK;
    cd_arena_free(&a);
    return st;
}

static void copy_list(cd_arena *a, cd_texts *l) {
    const char **name = CD_NEWN(a, const char *, l->n + 1);
    for (size_t k = 0; name && k < l->n; k++) name[k] = cd_arena_text(a, l->v[k]);
    l->v = name;
}

static bool copy_texts(cd_arena *a, cd_network_cost_fit *f) {
    copy_list(a, &f->devices);
    copy_list(a, &f->lent_to);
    f->source = cd_arena_text(a, f->source ? f->source : "");
    return !a->oom;
}

static cdmpp_status put(cd_network_cost **l, const cd_network_cost_fit *f, bool first,
                        cdmpp_err *err) {
    if (!*l && !(*l = cd_mem_zalloc(1, sizeof **l))) return CD_FAIL(err, ENOMEM, "list of fits");
    cd_network_cost_fit *v = CD_NEWN(&(*l)->arena, cd_network_cost_fit, (*l)->n + 1), copy = *f;
    if (!v || !copy_texts(&(*l)->arena, &copy)) return CD_FAIL(err, ENOMEM, "list of fits");
    if ((*l)->n) memcpy(v + first, (*l)->v, (*l)->n * sizeof *v);
    v[first ? 0 : (*l)->n] = copy;
    (*l)->n++;
    (*l)->v = v;
    return CDMPP_OK;
}

cdmpp_status cd_network_cost_add(cd_network_cost **l, const cd_network_cost_fit *f,
                                 cdmpp_err *err) {
    return put(l, f, false, err);
}
cdmpp_status cd_network_cost_add_first(cd_network_cost **l, const cd_network_cost_fit *f,
                                       cdmpp_err *err) {
    return put(l, f, true, err);
}

double cd_network_cost_cache(const cd_device *d) {
    const double kb = !d ? -1 : d->l3_kb > 0 || d->kind != CD_DEVICE_GPU ? d->l3_kb : d->l2_kb;
    return kb > 0 ? kb * 1024 : (double)NAN;
}

static double adds_of(const cd_network_cost_fit *f) {
    return f->adds > 0 ? f->adds : hypot(log(f->lift), f->spread);
}

double cd_network_cost_spread(const cd_network_cost *l) {
    static const double ninety = 0.95; /* both ends of an interval of level 0.9 */
    double sum = 0, most = 0;
    if (!l || !l->n) return (double)NAN;
    for (size_t k = 0; k < l->n; k++) {
        const double adds = adds_of(&l->v[k]);
        sum += adds * adds;
        most = fmax(most, adds);
    }
    return fmax(most, sqrt(sum / (double)l->n) * cd_normal_student(ninety, (double)l->n) /
                          cd_normal_quantile(ninety));
}

/* ---- writing ---- */
void cd_network_cost_put(cd_buf *b, const cd_network_cost_fit *f) {
    cd_network_cost_fit copy = *f;
    const cd_conf c = {.key = key, .n_key = sizeof key / sizeof *key, .to = &copy};
    for (size_t k = 0; k < c.n_key; k++) {
        cd_buf_putf(b, "%s %s: ", k ? " " : "-", key[k].name);
        cd_conf_print_value(b, &c, &key[k]);
        cd_buf_puts(b, "\n");
    }
}

static bool shares(const cd_network_cost_fit *a, const cd_network_cost_fit *b) {
    for (size_t i = 0; i < a->devices.n; i++)
        for (size_t j = 0; j < b->devices.n; j++)
            if (cd_device_table_same(NULL, a->devices.v[i], b->devices.v[j])) return true;
    return false;
}

cdmpp_status cd_network_cost_save(const char *path, const cd_network_cost_fit *f, cd_diag *diag,
                                  cdmpp_err *err) {
    cd_network_cost *l = NULL;
    cd_network_cost_fit own = *f;
    cd_buf b = {0};
    if (!access(path, F_OK)) CD_TRY(cd_network_cost_load(path, diag, &l, err));
    cd_buf_puts(
        &b,
        "# What a network costs over its operators measured alone (docs/reference/replay.md).\n");
    for (size_t k = 0; l && k < l->n; k++)
        if (!shares(&l->v[k], f)) cd_network_cost_put(&b, &l->v[k]);
        /* whoever takes the old fit takes the new one */
        else if (!own.lent_to.n) own.lent_to = l->v[k].lent_to;
    cd_network_cost_put(&b, &own);
    cdmpp_status st = CDMPP_OK;
    if (b.oom) st = CD_FAIL(err, ENOMEM, "list of fits");
    else st = cd_file_write(path, b.p, b.n, err);
    cd_buf_free(&b);
    cd_network_cost_free(l);
    return st;
}
