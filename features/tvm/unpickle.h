/* unpickle -- a restricted reader of Python pickles, protocols 2 to 5.
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
    CD_PY_NONE, CD_PY_BOOL, CD_PY_INT, CD_PY_REAL, CD_PY_STR, CD_PY_BYTES, CD_PY_TUPLE, CD_PY_LIST, CD_PY_DICT,
    CD_PY_CLASS, CD_PY_OBJ
} cd_py_kind;

typedef struct cd_py {
    cd_py_kind kind;
    uint32_t n, cap;              /* items of TUPLE, LIST; 2 per entry of DICT */
    union {
        int64_t i;                /* INT, BOOL */
        double f;                 /* REAL */
        cd_str s;                 /* STR, BYTES */
        struct cd_py **item;      /* (n) TUPLE, LIST, DICT */
        const char *name;         /* CLASS: "module.name", static */
        struct {
            const char *name;     /* class */
            const struct cd_py *args, *state; /* NULL when not given */
        } obj;
    } u;
} cd_py;

/* Errors: EPARSE (with the byte offset), EUNSUPPORTED (opcode, class, call),
 * ERANGE (limits), ENOMEM. */
cdmpp_status cd_unpickle(cd_arena *a, const char *p, size_t len, CD_KEEP const cd_py **out, cdmpp_err *err);

bool cd_py_is_obj(const cd_py *v, const char *name);
/* Last value of a string key; NULL when absent or `dict` is no DICT. */
const cd_py *cd_py_get(const cd_py *dict, const char *key);
const char *cd_py_kind_name(cd_py_kind k);
#endif
