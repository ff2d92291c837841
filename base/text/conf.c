/* Reading a configuration over its table of keys. Mistakes are collected, not returned one by one:
 * a user who edits a file wants to see all of them. Only running out of memory ends the walk. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/text/text.h"

/* YAML to a tree, over the events of libyaml. What YAML allows but a configuration should not
 * contain (anchors, tags, a key twice) is refused here with its line and column, so no reader of
 * the tree has to think of it. */

typedef struct {
    yaml_parser_t p;
    cd_arena *a;
    const char *path;
    cd_diag *diag;
    cdmpp_err *err;
} reader;

char *cd_yaml_found(const cd_yaml *v, char *buf, size_t n) {
    if (v->kind == CD_YAML_MAP) snprintf(buf, n, "a mapping");
    else if (v->kind == CD_YAML_SEQ) snprintf(buf, n, "a list");
    else if (!v->quoted && !v->text[0]) snprintf(buf, n, "nothing");
    else snprintf(buf, n, "%s'%.60s'", v->quoted ? "text " : "", v->text);
    return buf;
}

static void place(cd_yaml *v, const yaml_mark_t *m) {
    v->line = (uint32_t)m->line + 1;
    v->col = (uint32_t)m->column + 1;
}

/* Refused, but reading goes on: the tree is thrown away once diag->n > 0. */
#define REFUSE(r, at, ...)                                                                         \
    cd_diag_add((r)->diag, (r)->err, CDMPP_ESCHEMA, (r)->path, (at), false, "", __VA_ARGS__)

static cdmpp_status syntax(reader *r) {
    const yaml_mark_t m = r->p.problem_mark;
    cd_yaml at = {0};
    if (r->p.error == YAML_MEMORY_ERROR) return CD_FAIL(r->err, ENOMEM, "YAML parser");
    place(&at, &m);
    /* libyaml knows only a byte offset */
    if (r->p.error == YAML_READER_ERROR) at.line = at.col = 1;
    cd_diag_add(r->diag, r->err, CDMPP_EPARSE, r->path, &at, false, "", "%s%s%s",
                r->p.context ? r->p.context : "", r->p.context ? ": " : "",
                r->p.problem ? r->p.problem : "malformed YAML");
    return CDMPP_EPARSE;
}

static cdmpp_status next(reader *r, yaml_event_t *e) {
    return yaml_parser_parse(&r->p, e) ? CDMPP_OK : syntax(r);
}

static cdmpp_status text(reader *r, const yaml_event_t *e, cd_yaml *v) {
    const cd_str s = {(const char *)e->data.scalar.value, e->data.scalar.length};
    v->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (memchr(s.p, 0, s.n)) REFUSE(r, v, "text with a NUL byte");
    v->text = cd_str_dup(r->a, s);
    return v->text ? CDMPP_OK : CD_FAIL(r->err, ENOMEM, "%zu bytes of text", s.n);
}

static void refuse_marks(reader *r, const cd_yaml *v, const yaml_char_t *anchor,
                         const yaml_char_t *tag) {
    if (anchor) REFUSE(r, v, "anchors are not supported, found '&%.40s'", (const char *)anchor);
    if (tag) REFUSE(r, v, "tags are not supported, found '%.40s'", (const char *)tag);
}

static cdmpp_status value(reader *r, yaml_event_t *e, unsigned depth, cd_yaml *v);

static void check_key(reader *r, const cd_yaml *map, const cd_yaml *k, cd_yaml *v) {
    if (k->kind != CD_YAML_SCALAR)
        REFUSE(r, k, "expected a plain text as key, found %s",
               k->kind == CD_YAML_SEQ ? "a list" : "a mapping");
    v->key = k->kind == CD_YAML_SCALAR && k->text ? k->text : "";
    v->key_line = k->line;
    v->key_col = k->col;
    for (const cd_yaml *o = map->child; o; o = o->next)
        if (!strcmp(o->key, v->key)) {
            REFUSE(r, k, "key '%.60s' given twice, first in line %u", v->key, o->key_line);
            return;
        }
}

/* In a mapping a key and a value alternate. On a refusal reading goes on, so that later mistakes
 * are found too. */
static cdmpp_status children(reader *r, unsigned depth, cd_yaml *v) {
    const yaml_event_type_t end =
        v->kind == CD_YAML_MAP ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    cd_yaml **tail = &v->child;
    for (;; v->n++) {
        yaml_event_t e;
        CD_TRY(next(r, &e));
        if (e.type == end) return yaml_event_delete(&e), CDMPP_OK;
        cd_yaml *c = CD_NEW(r->a, cd_yaml);
        if (!c) return yaml_event_delete(&e), CD_FAIL(r->err, ENOMEM, "YAML node");
        if (v->kind == CD_YAML_MAP) {
            cd_yaml k = {0};
            if (v->n >= CD_YAML_MAX_KEYS) {
                yaml_event_delete(&e);
                return REFUSE(r, v, "expected at most %d keys in a mapping", CD_YAML_MAX_KEYS),
                       CDMPP_ESCHEMA;
            }
            CD_TRY(value(r, &e, depth, &k));
            check_key(r, v, &k, c);
            CD_TRY(next(r, &e));
        }
        CD_TRY(value(r, &e, depth, c));
        *tail = c;
        tail = &c->next;
    }
}

/* Read the value that starts with event `e`; consumes the event. */
static cdmpp_status value(reader *r, yaml_event_t *e, unsigned depth, cd_yaml *v) {
    cdmpp_status st = CDMPP_OK;
    bool inner = false;
    place(v, &e->start_mark);
    v->text = "";
    if (e->type == YAML_ALIAS_EVENT) {
        REFUSE(r, v, "aliases are not supported, found '*%.40s'",
               (const char *)e->data.alias.anchor);
    } else if (e->type == YAML_SCALAR_EVENT) {
        refuse_marks(r, v, e->data.scalar.anchor, e->data.scalar.tag);
        st = text(r, e, v);
    } else {
        inner = true;
        v->kind = e->type == YAML_MAPPING_START_EVENT ? CD_YAML_MAP : CD_YAML_SEQ;
        if (v->kind == CD_YAML_MAP)
            refuse_marks(r, v, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        else refuse_marks(r, v, e->data.sequence_start.anchor, e->data.sequence_start.tag);
    }
    yaml_event_delete(e);
    if (st || !inner) return st;
    if (depth >= CD_YAML_MAX_DEPTH) {
        cd_diag_add(r->diag, r->err, CDMPP_EPARSE, r->path, v, false, "",
                    "nested deeper than %d levels", CD_YAML_MAX_DEPTH);
        return CDMPP_EPARSE;
    }
    return children(r, depth + 1, v);
}

/* An empty document, also one of comments only, has no tree: *out stays NULL. */
static cdmpp_status document(reader *r, const cd_yaml **out) {
    yaml_event_t e;
    bool seen = false;
    for (;;) {
        CD_TRY(next(r, &e));
        const yaml_event_type_t t = e.type;
        if (t == YAML_STREAM_END_EVENT) return yaml_event_delete(&e), CDMPP_OK;
        if (t == YAML_STREAM_START_EVENT || t == YAML_DOCUMENT_END_EVENT) {
            yaml_event_delete(&e);
        } else if (t == YAML_DOCUMENT_START_EVENT) {
            cd_yaml at = {0};
            place(&at, &e.start_mark);
            yaml_event_delete(&e);
            if (seen) return REFUSE(r, &at, "expected one document, found a second"), CDMPP_ESCHEMA;
            seen = true;
        } else {
            cd_yaml *root = CD_NEW(r->a, cd_yaml);
            if (!root) return yaml_event_delete(&e), CD_FAIL(r->err, ENOMEM, "YAML node");
            CD_TRY(value(r, &e, 0, root));
            *out = root->kind == CD_YAML_SCALAR && !root->text[0] && !root->quoted ? NULL : root;
        }
    }
}

/* Only a new error makes this text a failure: the list may hold those of other files. */
cdmpp_status cd_yaml_parse(cd_arena *a, const char *path, const char *in, size_t len,
                           const cd_yaml **out, cd_diag *diag, cdmpp_err *err) {
    reader r = {.a = a, .path = path, .diag = diag, .err = err};
    const size_t before = diag->n;
    *out = NULL;
    if (len > CD_YAML_MAX_BYTES) {
        cd_diag_add(diag, err, CDMPP_ERANGE, path, NULL, false, "",
                    "expected at most %u bytes, found %zu", CD_YAML_MAX_BYTES, len);
        return CDMPP_ERANGE;
    }
    if (!yaml_parser_initialize(&r.p)) return CD_FAIL(err, ENOMEM, "YAML parser");
    yaml_parser_set_input_string(&r.p, (const unsigned char *)(in ? in : ""), len);
    cdmpp_status st = document(&r, out);
    yaml_parser_delete(&r.p);
    if (!st && diag->n > before) st = CDMPP_ESCHEMA;
    /* what the first mistake was, not the one that ended the reading */
    if (st && st != CDMPP_ENOMEM && !before && err) st = err->code;
    if (!st && diag->text.oom) st = CD_FAIL(err, ENOMEM, "list of errors");
    if (st) *out = NULL;
    return st;
}

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
