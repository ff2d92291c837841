/* Keys that an object has twice. RFC 8259 leaves open what that means. Python, and so whoever wrote
 * or tried the file, takes the last one; a file of ours has one author, who is told of the mistake
 * instead. */
#include <stdlib.h>

#include "base/text/text_internal.h"

#define GONE UINT32_MAX /* as `n` of a member that is to go */

typedef struct {
    cd_json *node;
    uint32_t at; /* its place in the object */
} member;

static int by_key(const void *a, const void *b) {
    const member *x = a, *y = b;
    const cd_str s = x->node->key, t = y->node->key;
    if (s.n != t.n) return s.n < t.n ? -1 : 1;
    const int c = s.n ? memcmp(s.p, t.p, s.n) : 0;
    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

/* "rope_scaling.long_factor[3].type": the way to a member of the object that is being filled. */
static void put_way(const cd_json_parser *ps, cd_str key, cd_buf *b) {
    for (int d = 1; d < ps->depth; d++) {
        const cd_json *outer = ps->above[d - 1], *v = ps->above[d];
        if (outer->kind == CD_JSON_ARR) cd_buf_putf(b, "[%u]", outer->n - 1);
        else cd_buf_putf(b, "%s%.*s", d > 1 ? "." : "", cd_str_shown(v->key, 60), v->key.p);
    }
    cd_buf_putf(b, "%s%.*s", ps->depth > 1 ? "." : "", cd_str_shown(key, 60), key.p);
}

static long line_of(const cd_json_parser *ps, const char *open, cd_str key) {
    /* a key with escapes is a copy */
    const char *start, *at = key.p >= ps->beg && key.p <= ps->end ? key.p : open;
    return cd_json_line(ps, at, &start);
}

/* `last` is the later of the two members. */
static cdmpp_status tell(cd_json_parser *ps, const char *open, const cd_json *last) {
    cd_buf way = {0};
    if (ps->foreign && (!ps->said || ++ps->twice > CD_JSON_SAID)) return CDMPP_OK;
    const long line = line_of(ps, open, last->key);
    put_way(ps, last->key, &way);
    if (way.oom) {
        ps->st = CD_FAIL(ps->err, ENOMEM, "JSON: a key");
    } else if (ps->foreign) {
        cd_buf_putf(ps->said, "line %ld: %s: the key is given twice, the last one counts\n", line,
                    way.p);
    } else {
        ps->st = cd_err_key(
            ps->err, CD_FAIL(ps->err, EPARSE, "expected this key once, found it twice"), way.p);
        if (line > 1) (void)cd_err_at(ps->err, ps->st, NULL, line);
    }
    cd_buf_free(&way);
    return ps->st;
}

static void unlink_marked(cd_json *obj) {
    cd_json **tail = &obj->u.child;
    for (cd_json *c = obj->u.child; c; c = c->next) {
        if (c->n == GONE) continue;
        *tail = c;
        tail = &c->next;
    }
    *tail = NULL;
}

cdmpp_status cd_json_once(cd_json_parser *ps, const char *open, cd_json *obj) {
    member *m = cd_arena_alloc(ps->arena, obj->n, sizeof *m);
    uint32_t n = 0, gone = 0;
    if (!m) return ps->st = CD_FAIL(ps->err, ENOMEM, "JSON: keys of an object");
    for (cd_json *c = obj->u.child; c; c = c->next, n++) m[n] = (member){c, n};
    qsort(m, n, sizeof *m, by_key);
    for (uint32_t k = 0; k + 1 < n; k++) {
        if (!cd_str_eq(m[k].node->key, m[k + 1].node->key)) continue;
        CD_TRY(tell(ps, open, m[k + 1].node));
        m[k].node->n = GONE;
        gone++;
    }
    if (gone) unlink_marked(obj);
    obj->n -= gone;
    return CDMPP_OK;
}
