/* JSON texts of any bytes: no crash; what our own forms accept, a text of another program is read
 * as too, to the same tree; after that no object has a key twice. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool same(const cd_json *a, const cd_json *b) {
    if (a->kind != b->kind || a->n != b->n || !cd_str_eq(a->key, b->key)) return false;
    if (a->kind == CD_JSON_REAL) return a->u.f == b->u.f || (isnan(a->u.f) && isnan(b->u.f));
    if (a->kind == CD_JSON_STR) return cd_str_eq(a->u.s, b->u.s);
    if (a->kind < CD_JSON_ARR) return a->u.i == b->u.i;
    for (a = a->u.child, b = b->u.child; a && b; a = a->next, b = b->next)
        if (!same(a, b)) return false;
    return !a && !b;
}

/* The slow way: all pairs. */
static void check_once(const cd_json *v) {
    uint32_t n = 0;
    for (const cd_json *c = v->kind >= CD_JSON_ARR ? v->u.child : NULL; c; c = c->next, n++) {
        check_once(c);
        if (v->kind == CD_JSON_OBJ && v->n < 300)
            for (const cd_json *d = c->next; d; d = d->next)
                if (cd_str_eq(c->key, d->key)) abort();
    }
    if (v->kind >= CD_JSON_ARR && n != v->n) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    cd_arena a = {0};
    cd_buf said = {0};
    cdmpp_err err = {0};
    const cd_json *own = NULL, *other = NULL;
    char *text = cd_arena_alloc(&a, n + 1, 1);
    if (!text) return 0;
    if (n) memcpy(text, data, n);
    const cdmpp_status st = cd_json_parse(&a, text, n, &own, &err),
                       foreign = cd_json_parse_foreign(&a, (cd_str){text, n}, &said, &other, &err);
    if (!st && (foreign || said.n || !same(own, other))) abort();
    if (!foreign) check_once(other);
    cd_buf_free(&said);
    cd_arena_free(&a);
    return 0;
}
