/* A restricted reader of Python pickles, protocols 2 to 5.
 *
 *   list                                     LIST
 *    |- SearchTask{...}                       OBJ  name "tvm...SearchTask"
 *         args  ()                                  what it was created from
 *         state {"compute_dag": OBJ, ...}           DICT: key, value, key, value
 *
 * Executes nothing. Knows the opcodes that plain data and TVM's task files use
 * and the classes of the table in unpickle.c; any other class or function is
 * an error that names it. Memory is bounded by the size of the input (a value
 * costs at least a few bytes of file, see MAX_VALUES); nothing recurses. A
 * value may be reachable on several ways and, in a hostile file, from itself:
 * walk to a known depth only. Strings are slices of the input. */
#ifndef CD_UNPICKLE_H
#define CD_UNPICKLE_H
#include "base/text/text.h"

typedef enum {
    CD_UNPICKLE_NONE, CD_UNPICKLE_BOOL, CD_UNPICKLE_INT, CD_UNPICKLE_REAL, CD_UNPICKLE_STR, CD_UNPICKLE_BYTES, CD_UNPICKLE_TUPLE, CD_UNPICKLE_LIST, CD_UNPICKLE_DICT,
    CD_UNPICKLE_CLASS, CD_UNPICKLE_OBJ
} cd_unpickle_kind;

typedef struct cd_unpickle_value {
    cd_unpickle_kind kind;
    uint32_t n, cap;              /* items of TUPLE, LIST; 2 per entry of DICT */
    union {
        int64_t i;                /* INT, BOOL */
        double f;                 /* REAL */
        cd_str s;                 /* STR, BYTES */
        struct cd_unpickle_value **item;      /* (n) TUPLE, LIST, DICT */
        const char *name;         /* CLASS: "module.name", static */
        struct {
            const char *name;     /* class */
            const struct cd_unpickle_value *args, *state; /* NULL when not given */
        } obj;
    } u;
} cd_unpickle_value;

/* Errors: EPARSE (with the byte offset), EUNSUPPORTED (opcode, class, call),
 * ERANGE (limits), ENOMEM. */
cdmpp_status cd_unpickle(cd_arena *a, const char *p, size_t len, CD_KEEP const cd_unpickle_value **out, cdmpp_err *err);

/* An OBJ of this class? v may be NULL. */
bool cd_unpickle_is_obj(const cd_unpickle_value *v, const char *name);
/* Last value of a string key; NULL when absent or `dict` is no DICT. */
const cd_unpickle_value *cd_unpickle_get(const cd_unpickle_value *dict, const char *key);
/* Python's name of the kind, for messages. */
const char *cd_unpickle_kind_name(cd_unpickle_kind k);
#endif
