/* Parse one JSON text into a tree that lives in an arena.
 *
 *   {"a": [1, 2.5]}   OBJ -> child ARR(key "a") -> child INT 1 -> next REAL 2.5
 *
 * The hot path of the project reads tens of thousands of records of 1.2 kB per second. So the tree is built in place, strings
 * without escapes stay slices of the text, and nothing touches the heap.
 * Accepted is RFC 8259; \u escapes become UTF-8. Numbers without '.', 'e' that
 * fit int64_t are INT, all others REAL (so "1e999" is REAL inf: callers check
 * their range). Input text must outlive the tree. No state, any thread. */
#ifndef CD_JSON_H
#define CD_JSON_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

#define CD_JSON_MAX_DEPTH 128 /* deeper input is EPARSE, never a stack overflow */

typedef enum {
    CD_JSON_NULL, CD_JSON_BOOL, CD_JSON_INT, CD_JSON_REAL, CD_JSON_STR, CD_JSON_ARR, CD_JSON_OBJ
} cd_json_kind;

typedef struct cd_json {
    cd_json_kind kind;
    uint32_t n;                  /* children of ARR or OBJ              */
    union {
        int64_t i;               /* INT; BOOL as 0 or 1                 */
        double f;                /* REAL                                */
        cd_str s;                /* STR                                 */
        struct cd_json *child;   /* first child of ARR, OBJ             */
    } u;
    cd_str key;                  /* member name when inside an object   */
    struct cd_json *next;
} cd_json;

/* Errors: EPARSE (with the byte), ENOMEM. */
cdmpp_status cd_json_parse(cd_arena *a, const char *text, size_t len, CD_KEEP const cd_json **out,
                           cdmpp_err *err);

/* ---- without a tree, for lines whose members are read one by one ---- */
/* The next member of an object: before the first call *rest is the whole text, which begins with '{', afterwards what is left. *key: without its
 * quotes, escapes as they are; *value: its text, found by brackets and quotes alone, so the caller still
 * has to parse it. *more false: there was none, and the object ended properly. Errors: EPARSE. */
cdmpp_status cd_json_member(cd_str *rest, CD_KEEP cd_str *key, CD_KEEP cd_str *value, bool *more, cdmpp_err *err);
/* The next item of an array, in the same way; the text begins with '['. Errors: EPARSE. */
cdmpp_status cd_json_item(cd_str *rest, CD_KEEP cd_str *value, bool *more, cdmpp_err *err);
/* A number with blanks around it; the place behind them, NULL: there is none. "1e999" is infinity. */
CD_KEEP const char *cd_json_number(const char *p, const char *end, double *out);

/* ---- reading a tree: json_typed.c ---- */
/* Member of an object; NULL when absent or when `obj` is no object. */
CD_KEEP const cd_json *cd_json_get(const cd_json *obj, const char *key);
const char *cd_json_kind_name(cd_json_kind k);

/* Typed reads of one value; the message names what was expected. INT is
 * accepted where REAL is wanted. Errors: ESCHEMA, ERANGE. */
cdmpp_status cd_json_int(const cd_json *v, int64_t lo, int64_t hi, int64_t *out, cdmpp_err *err);
cdmpp_status cd_json_real(const cd_json *v, double *out, cdmpp_err *err);
cdmpp_status cd_json_str(const cd_json *v, cd_str *out, cdmpp_err *err);
/* A number, or null for NaN. */
cdmpp_status cd_json_real_or_nan(const cd_json *v, double *out, cdmpp_err *err);
/* Member of an object that must be there, and the same as a number within lo .. hi, a
 * number of things, a text; the key is in the error. */
cdmpp_status cd_json_need(const cd_json *obj, const char *key, CD_KEEP const cd_json **out, cdmpp_err *err);
cdmpp_status cd_json_need_real(const cd_json *obj, const char *key, double lo, double hi, double *out, cdmpp_err *err);
cdmpp_status cd_json_need_count(const cd_json *obj, const char *key, uint64_t *out, cdmpp_err *err);
cdmpp_status cd_json_need_str(const cd_json *obj, const char *key, cd_str *out, cdmpp_err *err);
/* Array with at least `min` items. */
cdmpp_status cd_json_arr(const cd_json *v, size_t min, const cd_json **first, cdmpp_err *err);
#endif
