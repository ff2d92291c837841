/* Reading a configuration over its table of keys. Mistakes are collected, not returned one by one:
 * a user who edits a file wants to see all of them. Only running out of memory ends the walk. */
#include "base/text/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One file or one --set being read. */
typedef struct {
    const cd_conf *c;
    const char *where;
    cdmpp_err *err;
    cdmpp_status st; /* first status, ENOMEM wins */
} reading;

static void *slot(const cd_conf *c, const cd_conf_key *k) { return (char *)c->to + k->offset; }

static void fail(reading *r, cdmpp_status st, const cd_conf_key *k, const cd_yaml *v,
                 const char *want) {
    char found[96];
    cd_diag_add(r->c->diag, r->err, st, r->where, v, false, k->name, "expected %s, found %s", want,
                cd_yaml_found(v, found, sizeof found));
    if (!r->st) r->st = st;
}

static void oom(reading *r) {
    r->st = CDMPP_ENOMEM;
    if (r->err) cd_err_raise(r->err, CDMPP_ENOMEM, __FILE__, __LINE__, "configuration");
}

/* ---- ranges ---- */
typedef struct {
    double lo, hi;
    bool open;
} limits;

static limits range_of(const char *s) {
    limits m = {-INFINITY, INFINITY, *s == '('};
    if (m.open) s++;
    const char *dots = strstr(s, "..");
    if (!dots) return m;
    if (dots != s) m.lo = strtod(s, NULL);
    if (dots[2]) m.hi = strtod(dots + 2, NULL);
    return m;
}

static bool inside(limits m, double x) { return x <= m.hi && (m.open ? x > m.lo : x >= m.lo); }

static const char *wanted(const cd_conf_key *k, char *buf, size_t n) {
    const limits m = range_of(k->range);
    const char *what = k->type == CD_CONF_INT ? "integer" : "number";
    if (isinf(m.lo) && isinf(m.hi)) snprintf(buf, n, "%s", what);
    else if (isinf(m.hi)) snprintf(buf, n, "%s %s %.15g", what, m.open ? ">" : ">=", m.lo);
    else if (m.open) snprintf(buf, n, "%s above %.15g and at most %.15g", what, m.lo, m.hi);
    else snprintf(buf, n, "%s in %.15g..%.15g", what, m.lo, m.hi);
    return buf;
}

/* ---- one value of each type ---- */
static bool plain(const cd_yaml *v) {
    return v->kind == CD_YAML_SCALAR && !v->quoted && v->text[0];
}

static void read_int(reading *r, const cd_conf_key *k, const cd_yaml *v) {
    char want[96], *end;
    errno = 0;
    const bool digits = plain(v) && strspn(v->text, "+-0123456789") == strlen(v->text);
    const long long x = digits ? strtoll(v->text, &end, 10) : 0;
    if (!digits || *end || end == v->text)
        fail(r, CDMPP_ESCHEMA, k, v, wanted(k, want, sizeof want));
    else if (errno || !inside(range_of(k->range), (double)x))
        fail(r, CDMPP_ERANGE, k, v, wanted(k, want, sizeof want));
    else *(int64_t *)slot(r->c, k) = x;
}

static void read_real(reading *r, const cd_conf_key *k, const cd_yaml *v) {
    char want[96], *end = NULL;
    const bool digits = plain(v) && strspn(v->text, "+-.eE0123456789") == strlen(v->text);
    const double x = digits ? strtod(v->text, &end) : 0;
    if (!digits || *end || end == v->text)
        fail(r, CDMPP_ESCHEMA, k, v, wanted(k, want, sizeof want));
    else if (!isfinite(x) || !inside(range_of(k->range), x))
        fail(r, CDMPP_ERANGE, k, v, wanted(k, want, sizeof want));
    else *(double *)slot(r->c, k) = x;
}

static void read_bool(reading *r, const cd_conf_key *k, const cd_yaml *v) {
    const bool yes = plain(v) && !strcmp(v->text, "true");
    if (!yes && !(plain(v) && !strcmp(v->text, "false")))
        fail(r, CDMPP_ESCHEMA, k, v, "true or false");
    else *(bool *)slot(r->c, k) = yes;
}

static void read_enum(reading *r, const cd_conf_key *k, const cd_yaml *v) {
    char want[128];
    const int i = v->kind == CD_YAML_SCALAR
                      ? cd_enum_names_find(k->range, (cd_str){v->text, strlen(v->text)})
                      : -1;
    snprintf(want, sizeof want, "one of %s", k->range);
    if (i < 0) fail(r, CDMPP_ESCHEMA, k, v, want);
    else *(int *)slot(r->c, k) = i;
}

static void read_text(reading *r, const cd_conf_key *k, const cd_yaml *v) {
    const bool empty = v->kind == CD_YAML_SCALAR && !v->text[0];
    if (v->kind != CD_YAML_SCALAR || (empty && (!v->quoted || k->range[0])))
        fail(r, CDMPP_ESCHEMA, k, v, "text");
    else *(const char **)slot(r->c, k) = v->text;
}

/* One text stands for a list of one. An empty list needs `[]`, so that a key without a value is not
 * taken for one. */
static void read_list(reading *r, const cd_conf_key *k, const cd_yaml *v) {
    const bool one = v->kind == CD_YAML_SCALAR && v->text[0];
    const size_t n = one ? 1 : v->n;
    if (v->kind == CD_YAML_MAP || (v->kind == CD_YAML_SCALAR && !one) || (!n && k->range[0])) {
        fail(r, CDMPP_ESCHEMA, k, v,
             k->range[0] ? "a list of at least one text" : "a list of texts");
        return;
    }
    const char **item = CD_NEWN(r->c->arena, const char *, n + 1);
    if (!item) {
        oom(r);
        return;
    }
    size_t i = 0;
    for (const cd_yaml *e = one ? v : v->child; i < n; e = e->next) {
        if (e->kind != CD_YAML_SCALAR || !e->text[0]) fail(r, CDMPP_ESCHEMA, k, e, "text");
        item[i++] = e->text;
    }
    *(cd_texts *)slot(r->c, k) = (cd_texts){n, item};
}

static void read_value(reading *r, const cd_conf_key *k, const cd_yaml *v) {
    switch (k->type) {
    case CD_CONF_INT: read_int(r, k, v); break;
    case CD_CONF_REAL: read_real(r, k, v); break;
    case CD_CONF_BOOL: read_bool(r, k, v); break;
    case CD_CONF_ENUM: read_enum(r, k, v); break;
    case CD_CONF_TEXT: read_text(r, k, v); break;
    case CD_CONF_LIST: read_list(r, k, v); break;
    }
}

/* ---- finding a key ---- */
/* Nearest key: by spelling, or the same last word in another section. */
static const char *suggestion(const cd_conf *c, const char *name) {
    const char *best = NULL, *tail = strrchr(name, '.');
    size_t least = strlen(name) / 3 + 1;
    for (size_t i = 0; i < c->n_key; i++) {
        const char *t = strrchr(c->key[i].name, '.');
        const char *leaf = t ? t + 1 : c->key[i].name;
        size_t d = cd_did_you_mean_distance(name, c->key[i].name);
        if (d && !strcmp(leaf, tail ? tail + 1 : name)) d = 1;
        if (d <= least && (!best || d < least)) {
            best = c->key[i].name;
            least = d;
        }
    }
    return best;
}

static void unknown(reading *r, const char *name, const cd_yaml *v) {
    const char *near = suggestion(r->c, name);
    cd_diag_add(r->c->diag, r->err, CDMPP_ESCHEMA, r->where, v, v->key != NULL, "",
                "unknown key '%.80s'%s%s%s", name, near ? ", did you mean '" : "", near ? near : "",
                near ? "'?" : "");
    if (!r->st) r->st = CDMPP_ESCHEMA;
}

const cd_conf_key *cd_conf_find(const cd_conf *c, const char *name) {
    for (size_t i = 0; i < c->n_key; i++)
        if (!strcmp(c->key[i].name, name)) return &c->key[i];
    return NULL;
}

static bool is_section(const cd_conf *c, const char *name) {
    const size_t n = strlen(name);
    for (size_t i = 0; i < c->n_key; i++)
        if (!strncmp(c->key[i].name, name, n) && c->key[i].name[n] == '.') return true;
    return false;
}

static void walk(reading *r, const char *prefix, const cd_yaml *map) {
    for (const cd_yaml *v = map->child; v && r->st != CDMPP_ENOMEM; v = v->next) {
        char name[160], found[96];
        snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] ? "." : "", v->key);
        const cd_conf_key *k = cd_conf_find(r->c, name);
        if (k) {
            read_value(r, k, v);
        } else if (!is_section(r->c, name)) {
            unknown(r, name, v);
        } else if (v->kind == CD_YAML_MAP) {
            walk(r, name, v);
            /* "train:" alone is an empty section */
        } else if (v->kind != CD_YAML_SCALAR || v->quoted || v->text[0]) {
            cd_diag_add(r->c->diag, r->err, CDMPP_ESCHEMA, r->where, v, false, name,
                        "expected a mapping, found %s", cd_yaml_found(v, found, sizeof found));
            if (!r->st) r->st = CDMPP_ESCHEMA;
        }
    }
}

cdmpp_status cd_conf_map(const cd_conf *c, const char *where, const cd_yaml *map, cdmpp_err *err) {
    reading r = {c, where, err, CDMPP_OK};
    char found[96];
    if (map->kind == CD_YAML_MAP) {
        walk(&r, "", map);
    } else {
        cd_diag_add(c->diag, err, CDMPP_ESCHEMA, where, map, false, "",
                    "expected a mapping, found %s", cd_yaml_found(map, found, sizeof found));
        r.st = CDMPP_ESCHEMA;
    }
    if (!r.st && c->diag->text.oom) oom(&r);
    return r.st;
}

cdmpp_status cd_conf_value(const cd_conf *c, const char *where, const char *name, const cd_yaml *v,
                           cdmpp_err *err) {
    reading r = {c, where, err, CDMPP_OK};
    const cd_conf_key *k = cd_conf_find(c, name);
    if (k) read_value(&r, k, v);
    else unknown(&r, name, v);
    return r.st;
}

cdmpp_status cd_conf_read(const cd_conf *c, const char *path, const char *text, size_t len,
                          cdmpp_err *err) {
    const cd_yaml *root;
    CD_TRY(cd_yaml_parse(c->arena, path, text, len, &root, c->diag, err));
    return root ? cd_conf_map(c, path, root, err) : CDMPP_OK;
}

static void mark(const cd_conf *c, const char *prefix, const cd_yaml *map, bool *named) {
    for (const cd_yaml *v = map->child; v; v = v->next) {
        char name[160];
        snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] ? "." : "", v->key);
        const cd_conf_key *k = cd_conf_find(c, name);
        if (k) named[k - c->key] = true;
        else if (v->kind == CD_YAML_MAP) mark(c, name, v, named);
    }
}

void cd_conf_named(const cd_conf *c, const char *path, const char *text, size_t len, bool *named) {
    cd_diag quiet = {0};
    const cd_yaml *root = NULL;
    if (!cd_yaml_parse(c->arena, path, text, len, &root, &quiet, NULL) && root &&
        root->kind == CD_YAML_MAP)
        mark(c, "", root, named);
    cd_diag_free(&quiet);
}

cdmpp_status cd_conf_set(const cd_conf *c, const char *assignment, cdmpp_err *err) {
    const char *eq = strchr(assignment, '=');
    char name[160], where[200];
    const cd_yaml *v;
    cd_yaml nothing = {.text = ""};
    snprintf(where, sizeof where, "--set %.180s", assignment);
    reading r = {c, where, err, CDMPP_OK};
    if (!eq || eq == assignment || (size_t)(eq - assignment) >= sizeof name) {
        cd_diag_add(c->diag, err, CDMPP_EUSAGE, where, NULL, false, "", "expected KEY=VALUE");
        return CDMPP_EUSAGE;
    }
    snprintf(name, sizeof name, "%.*s", (int)(eq - assignment), assignment);
    /* The tree borrows nothing from the text, so the argument may go away. */
    CD_TRY(cd_yaml_parse(c->arena, where, eq + 1, strlen(eq + 1), &v, c->diag, err));
    const cd_conf_key *k = cd_conf_find(c, name);
    if (!v) v = &nothing;
    if (k) {
        cd_yaml at = *v; /* a column inside one argument says nothing */
        at.line = 0;
        read_value(&r, k, &at);
    } else {
        unknown(&r, name, &nothing);
    }
    return r.st;
}

cdmpp_status cd_conf_defaults(const cd_conf *c, cdmpp_err *err) {
    for (size_t i = 0; i < c->n_key; i++) {
        reading r = {c, "default", err, CDMPP_OK};
        const cd_yaml *v;
        cd_yaml nothing = {.text = "", .quoted = true};
        CD_TRY(cd_yaml_parse(c->arena, c->key[i].name, c->key[i].def, strlen(c->key[i].def), &v,
                             c->diag, err));
        if (!v && c->key[i].type == CD_CONF_TEXT) *(const char **)slot(c, &c->key[i]) = "";
        else read_value(&r, &c->key[i], v ? v : &nothing);
        CD_TRY(r.st);
    }
    return CDMPP_OK;
}
