/* YAML to a tree, over the events of libyaml. What YAML allows but a configuration should not
 * contain (anchors, tags, a key twice) is refused here with its line and column, so no reader of
 * the tree has to think of it. */
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

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
