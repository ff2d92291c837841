/* What the JSON readers of this room share. */
#ifndef CD_BASE_TEXT_INTERNAL_H
#define CD_BASE_TEXT_INTERNAL_H
#include <string.h>

#include "base/text/text.h"

#define CD_JSON_SAID 10 /* keys given twice that are named; the others are counted */

typedef struct cd_json_parser {
    cd_arena *arena;
    const char *beg, *end;
    cdmpp_err *err;
    cdmpp_status st;
    bool foreign;    /* a text of another program: read as Python's json reads it */
    cd_buf *said;    /* NULL: nobody listens */
    size_t twice;    /* keys given twice */
    uint32_t values; /* read so far */
    int depth;
    /* (depth) the arrays and objects that are being filled, outermost first */
    const cd_json *above[CD_JSON_MAX_DEPTH];
} cd_json_parser;

/* `above` is as long as the depth allows and stays unset. */
static inline void cd_json_parser_init(cd_json_parser *ps, cd_arena *a, cd_str text,
                                       cdmpp_err *err) {
    ps->arena = a;
    ps->beg = text.p;
    ps->end = text.p + text.n;
    ps->err = err;
    ps->st = CDMPP_OK;
    ps->foreign = false;
    ps->said = NULL;
    ps->twice = 0;
    ps->values = 0;
    ps->depth = 0;
}

static inline const char *cd_json_skip_ws(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) p++;
    return p;
}

/* Is any of 8 bytes '"', '\', a control character or above 127? A borrow can only
 * come out of a byte that is one of them, so the answer is exact. */
static inline bool cd_json_any_special(const char *p) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t w;
    memcpy(&w, p, 8);
    const uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';
    return (w | (w - ones * ' ') | (quote - ones) | (slash - ones)) & ones << 7;
}

#endif
