/* A pickle is a program for a stack machine that may call any Python function. This machine knows
 * the opcodes of plain data and nine names; any other name is an error. So reading a task file from
 * somebody else is safe. */
#include "features/tvm/tvm.h"

#include <string.h>

/* Values, stack entries and memo entries of a file of n bytes. TVM's files
 * need one per 200 bytes; small files of small values need some slack. */
#define MAX_VALUES(n) (20000 + (n) / 8)
#define MAX_MARKS     200

/* Everything that may be named. The first is a function: calling it makes an
 * empty object of the class it is given. */
static const char *const known[] = {
    "tvm.runtime.object._new_object",
    "tvm.runtime.object.Object",
    "tvm.runtime.container.String",
    "tvm.auto_scheduler.search_task.SearchTask",
    "tvm.auto_scheduler.search_task.HardwareParams",
    "tvm.auto_scheduler.compute_dag.ComputeDAG",
    "tvm.target.target.Target",
    "tvm.ir.container.Array",
    "tvm.ir.container.Map",
};

typedef struct {
    cd_arena *a;
    const unsigned char *p, *beg, *end;
    size_t n_value, max;
    cd_unpickle_value **stack, **memo;
    size_t top, cap, n_memo, cap_memo;
    size_t mark[MAX_MARKS];
    size_t n_mark;
    cdmpp_err *err;
} machine;

#define BAD(m, name, ...) bad((m), CD_FAIL((m)->err, name, __VA_ARGS__))

/* Adds the byte offset as key. */
static cdmpp_status bad(machine *m, cdmpp_status st) {
    if (!m->err) return st;
    cd_err_add_index(m->err, (size_t)(m->p - m->beg));
    cd_err_add_key(m->err, "byte");
    return st;
}

static cdmpp_status no_memory(machine *m) { return CD_FAIL(m->err, ENOMEM, "pickle"); }

/* ---- input ---- */

static cdmpp_status take(machine *m, uint64_t n, const unsigned char **out) {
    if ((uint64_t)(m->end - m->p) < n)
        return BAD(m, EPARSE, "cut short: %llu bytes needed, %zu left", (unsigned long long)n,
                   (size_t)(m->end - m->p));
    *out = m->p;
    m->p += n;
    return CDMPP_OK;
}

/* Little-endian unsigned number of 1 to 8 bytes. */
static cdmpp_status number(machine *m, unsigned bytes, uint64_t *out) {
    const unsigned char *b;
    CD_TRY(take(m, bytes, &b));
    *out = 0;
    for (unsigned k = bytes; k-- > 0;) *out = *out << 8 | b[k];
    return CDMPP_OK;
}

static cdmpp_status slice(machine *m, unsigned len_bytes, cd_str *out) {
    uint64_t n;
    const unsigned char *b;
    CD_TRY(number(m, len_bytes, &n));
    CD_TRY(take(m, n, &b));
    *out = (cd_str){(const char *)b, (size_t)n};
    return CDMPP_OK;
}

static cdmpp_status line(machine *m, cd_str *out) {
    const unsigned char *nl = memchr(m->p, '\n', (size_t)(m->end - m->p));
    if (!nl) return BAD(m, EPARSE, "a name without end");
    *out = (cd_str){(const char *)m->p, (size_t)(nl - m->p)};
    m->p = nl + 1;
    return CDMPP_OK;
}

/* ---- stack, memo, values ---- */

/* Room for one more pointer; lists double, so the copies stay below 2n. */
static cdmpp_status reserve(machine *m, cd_unpickle_value ***list, size_t n, size_t *cap) {
    if (n < *cap) return CDMPP_OK;
    if (n >= m->max) return BAD(m, ERANGE, "more than %zu values in a file of this size", m->max);
    return CD_GROW_IN(m->a, *list, n, *cap) ? no_memory(m) : CDMPP_OK;
}

static cdmpp_status push(machine *m, cd_unpickle_value *v) {
    CD_TRY(reserve(m, &m->stack, m->top, &m->cap));
    m->stack[m->top++] = v;
    return CDMPP_OK;
}

static cdmpp_status push_new(machine *m, cd_unpickle_kind kind, cd_unpickle_value **out) {
    if (++m->n_value > m->max)
        return BAD(m, ERANGE, "more than %zu values in a file of this size", m->max);
    cd_unpickle_value *v = CD_NEW(m->a, cd_unpickle_value);
    if (!v) return no_memory(m);
    v->kind = kind;
    *out = v;
    return push(m, v);
}

/* Entries above the last mark, or all of them. */
static size_t floor_of(const machine *m) { return m->n_mark ? m->mark[m->n_mark - 1] : 0; }

static cdmpp_status need(machine *m, size_t n) {
    if (m->top - floor_of(m) >= n) return CDMPP_OK;
    return BAD(m, EPARSE, "an opcode needs %zu values, the stack has %zu", n, m->top - floor_of(m));
}

static cdmpp_status pop_mark(machine *m, size_t *from) {
    if (m->n_mark == 0) return BAD(m, EPARSE, "an opcode without its mark");
    *from = m->mark[--m->n_mark];
    return CDMPP_OK;
}

static cdmpp_status append(machine *m, cd_unpickle_value *to, cd_unpickle_value *v) {
    size_t cap = to->cap;
    CD_TRY(reserve(m, &to->u.item, to->n, &cap));
    to->cap = (uint32_t)cap;
    to->u.item[to->n++] = v;
    return CDMPP_OK;
}

/* Move stack[from ..] to the container just below it. */
static cdmpp_status fill(machine *m, size_t from, cd_unpickle_kind kind) {
    const size_t n = m->top - from;
    if (from <= floor_of(m) || m->stack[from - 1]->kind != kind)
        return BAD(m, EPARSE, "items for something that is no %s", cd_unpickle_kind_name(kind));
    if (kind == CD_UNPICKLE_DICT && n % 2) return BAD(m, EPARSE, "a key without value");
    if ((m->n_value += n) > m->max)
        return BAD(m, ERANGE, "more than %zu values in a file of this size", m->max);
    for (size_t k = 0; k < n; k++) CD_TRY(append(m, m->stack[from - 1], m->stack[from + k]));
    m->top = from;
    return CDMPP_OK;
}

/* Replace stack[from ..] by one tuple. */
static cdmpp_status tuple(machine *m, size_t from) {
    const size_t n = m->top - from;
    cd_unpickle_value **item = cd_arena_alloc(m->a, n, sizeof *item);
    if (!item) return no_memory(m);
    if (n) memcpy(item, m->stack + from, n * sizeof *item);
    m->top = from;
    cd_unpickle_value *v;
    CD_TRY(push_new(m, CD_UNPICKLE_TUPLE, &v));
    v->n = v->cap = (uint32_t)n;
    v->u.item = item;
    return CDMPP_OK;
}

static cdmpp_status memo_put(machine *m, uint64_t at) {
    CD_TRY(need(m, 1));
    if (at > m->n_memo)
        return BAD(m, EPARSE, "memo entry %llu before %zu", (unsigned long long)at, m->n_memo);
    if (at == m->n_memo) {
        CD_TRY(reserve(m, &m->memo, m->n_memo, &m->cap_memo));
        m->n_memo++;
    }
    m->memo[at] = m->stack[m->top - 1];
    return CDMPP_OK;
}

static cdmpp_status memo_get(machine *m, uint64_t at) {
    if (at >= m->n_memo)
        return BAD(m, EPARSE, "memo entry %llu of %zu", (unsigned long long)at, m->n_memo);
    return push(m, m->memo[at]);
}

/* ---- classes ---- */

static cdmpp_status global(machine *m, cd_str module, cd_str name) {
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const size_t n = strlen(known[k]);
        if (n != module.n + 1 + name.n || memcmp(known[k], module.p, module.n) != 0 ||
            known[k][module.n] != '.' || memcmp(known[k] + module.n + 1, name.p, name.n) != 0)
            continue;
        cd_unpickle_value *v;
        CD_TRY(push_new(m, CD_UNPICKLE_CLASS, &v));
        v->u.name = known[k];
        return CDMPP_OK;
    }
    return BAD(m, EUNSUPPORTED, "calls %.*s.%.*s, which no task file needs",
               cd_str_shown(module, 80), module.p, cd_str_shown(name, 80), name.p);
}

static cdmpp_status stack_global(machine *m) {
    CD_TRY(need(m, 2));
    const cd_unpickle_value *module = m->stack[m->top - 2], *name = m->stack[m->top - 1];
    if (module->kind != CD_UNPICKLE_STR || name->kind != CD_UNPICKLE_STR)
        return BAD(m, EPARSE, "a class name that is no string");
    m->top -= 2;
    return global(m, module->u.s, name->u.s);
}

/* callable(args) -> object. Reduce: _new_object(Class); else Class(args). */
static cdmpp_status create(machine *m, bool reduce) {
    CD_TRY(need(m, 2));
    const cd_unpickle_value *callee = m->stack[m->top - 2], *args = m->stack[m->top - 1];
    if (callee->kind != CD_UNPICKLE_CLASS || args->kind != CD_UNPICKLE_TUPLE)
        return BAD(m, EPARSE, "a call of something that is no class");
    const bool maker = callee->u.name == known[0];
    if (maker != reduce)
        return BAD(m, EUNSUPPORTED, "calls %s in another way than TVM does", callee->u.name);
    const char *name = callee->u.name;
    if (maker) {
        if (args->n != 1 || args->u.item[0]->kind != CD_UNPICKLE_CLASS ||
            args->u.item[0]->u.name == known[0])
            return BAD(m, EPARSE, "%s without a class", name);
        name = args->u.item[0]->u.name;
        args = NULL;
    }
    m->top -= 2;
    cd_unpickle_value *v;
    CD_TRY(push_new(m, CD_UNPICKLE_OBJ, &v));
    v->u.obj.name = name;
    v->u.obj.args = args;
    return CDMPP_OK;
}

static cdmpp_status build(machine *m) {
    CD_TRY(need(m, 2));
    cd_unpickle_value *obj = m->stack[m->top - 2];
    if (obj->kind != CD_UNPICKLE_OBJ)
        return BAD(m, EPARSE, "a state for something that is no object");
    obj->u.obj.state = m->stack[--m->top];
    return CDMPP_OK;
}

/* ---- opcodes ---- */

static cdmpp_status op_int(machine *m, unsigned bytes) {
    uint64_t n;
    cd_unpickle_value *v;
    CD_TRY(number(m, bytes, &n));
    CD_TRY(push_new(m, CD_UNPICKLE_INT, &v));
    v->u.i = bytes == 4 ? (int32_t)(uint32_t)n : (int64_t)n;
    return CDMPP_OK;
}

static cdmpp_status op_long(machine *m) {
    uint64_t n, x = 0;
    cd_unpickle_value *v;
    CD_TRY(number(m, 1, &n));
    if (n > 8) return BAD(m, ERANGE, "an integer of %u bytes", (unsigned)n);
    if (n) CD_TRY(number(m, (unsigned)n, &x));
    if (n && n < 8 && x >> (8 * n - 1)) x |= ~(uint64_t)0 << (8 * n);
    CD_TRY(push_new(m, CD_UNPICKLE_INT, &v));
    v->u.i = (int64_t)x;
    return CDMPP_OK;
}

static cdmpp_status op_real(machine *m) { /* big-endian */
    const unsigned char *b;
    cd_unpickle_value *v;
    uint64_t x = 0;
    CD_TRY(take(m, 8, &b));
    for (int k = 0; k < 8; k++) x = x << 8 | b[k];
    CD_TRY(push_new(m, CD_UNPICKLE_REAL, &v));
    memcpy(&v->u.f, &x, sizeof x);
    return CDMPP_OK;
}

static cdmpp_status op_text(machine *m, cd_unpickle_kind kind, unsigned len_bytes) {
    cd_str s;
    cd_unpickle_value *v;
    CD_TRY(slice(m, len_bytes, &s));
    CD_TRY(push_new(m, kind, &v));
    v->u.s = s;
    return CDMPP_OK;
}

static cdmpp_status op_bool(machine *m, bool b) {
    cd_unpickle_value *v;
    CD_TRY(push_new(m, CD_UNPICKLE_BOOL, &v));
    v->u.i = b;
    return CDMPP_OK;
}

static cdmpp_status op_mark(machine *m) {
    if (m->n_mark == MAX_MARKS) return BAD(m, ERANGE, "nested deeper than %d", MAX_MARKS);
    m->mark[m->n_mark++] = m->top;
    return CDMPP_OK;
}

static cdmpp_status op_marked(machine *m, unsigned char op) {
    size_t from = 0;
    CD_TRY(pop_mark(m, &from));
    if (op == 't') return tuple(m, from);
    return fill(m, from, op == 'e' ? CD_UNPICKLE_LIST : CD_UNPICKLE_DICT);
}

static cdmpp_status op_tuple(machine *m, size_t n) {
    CD_TRY(need(m, n));
    return tuple(m, m->top - n);
}

static cdmpp_status op_fill(machine *m, size_t n, cd_unpickle_kind kind) {
    CD_TRY(need(m, n + 1));
    return fill(m, m->top - n, kind);
}

static cdmpp_status op_memo(machine *m, unsigned bytes, cdmpp_status (*fn)(machine *, uint64_t)) {
    uint64_t at;
    CD_TRY(number(m, bytes, &at));
    return fn(m, at);
}

static cdmpp_status op_global(machine *m) {
    cd_str module, name;
    CD_TRY(line(m, &module));
    CD_TRY(line(m, &name));
    return global(m, module, name);
}

static cdmpp_status op_proto(machine *m) {
    uint64_t v;
    CD_TRY(number(m, 1, &v));
    return v >= 2 && v <= 5
               ? CDMPP_OK
               : BAD(m, EUNSUPPORTED, "pickle protocol %u is not one of 2 to 5", (unsigned)v);
}

static cdmpp_status op_frame(machine *m) {
    uint64_t n;
    CD_TRY(number(m, 8, &n));
    return n <= (uint64_t)(m->end - m->p)
               ? CDMPP_OK
               : BAD(m, EPARSE, "cut short: a frame of %llu bytes", (unsigned long long)n);
}

/* Opcodes of pickletools, protocols 2 to 5; those that build lists, dictionaries and tuples work on
 * the values above the last mark. */
static cdmpp_status step(machine *m, unsigned char op) {
    cd_unpickle_value *v;
    switch (op) {
    case 0x80: return op_proto(m);
    case 0x95: return op_frame(m);
    case '(': return op_mark(m);
    case ']': return push_new(m, CD_UNPICKLE_LIST, &v);
    case '}': return push_new(m, CD_UNPICKLE_DICT, &v);
    case ')': return push_new(m, CD_UNPICKLE_TUPLE, &v);
    case 'N': return push_new(m, CD_UNPICKLE_NONE, &v);
    case 0x88:
    case 0x89: return op_bool(m, op == 0x88);
    case 0x85:
    case 0x86:
    case 0x87: return op_tuple(m, op - 0x84u);
    case 't':
    case 'e':
    case 'u': return op_marked(m, op);
    case 'a': return op_fill(m, 1, CD_UNPICKLE_LIST);
    case 's': return op_fill(m, 2, CD_UNPICKLE_DICT);
    case 0x94: return memo_put(m, m->n_memo);
    case 'q': return op_memo(m, 1, memo_put);
    case 'r': return op_memo(m, 4, memo_put);
    case 'h': return op_memo(m, 1, memo_get);
    case 'j': return op_memo(m, 4, memo_get);
    case 'K': return op_int(m, 1);
    case 'M': return op_int(m, 2);
    case 'J': return op_int(m, 4);
    case 0x8a: return op_long(m);
    case 'G': return op_real(m);
    case 0x8c: return op_text(m, CD_UNPICKLE_STR, 1);
    case 'X': return op_text(m, CD_UNPICKLE_STR, 4);
    case 0x8d: return op_text(m, CD_UNPICKLE_STR, 8);
    case 'C': return op_text(m, CD_UNPICKLE_BYTES, 1);
    case 'B': return op_text(m, CD_UNPICKLE_BYTES, 4);
    case 0x8e: return op_text(m, CD_UNPICKLE_BYTES, 8);
    case 'c': return op_global(m);
    case 0x93: return stack_global(m);
    case 0x81: return create(m, false);
    case 'R': return create(m, true);
    case 'b': return build(m);
    default: return BAD(m, EUNSUPPORTED, "opcode 0x%02x is not one that task files use", op);
    }
}

/* Errors carry the byte at which the opcode ends. */
cdmpp_status cd_unpickle(cd_arena *a, const char *p, size_t len, const cd_unpickle_value **out,
                         cdmpp_err *err) {
    const unsigned char *b = (const unsigned char *)p;
    machine m = {.a = a, .p = b, .beg = b, .end = b + len, .max = MAX_VALUES(len), .err = err};
    if (len < 2 || b[0] != 0x80) return CD_FAIL(err, EPARSE, "not a pickle of protocol 2 or later");
    while (m.p < m.end) {
        const unsigned char op = *m.p++;
        if (op == '.') {
            if (m.top != 1 || m.n_mark)
                return BAD(&m, EPARSE, "ends with %zu values on the stack", m.top);
            *out = m.stack[0];
            return CDMPP_OK;
        }
        CD_TRY(step(&m, op));
    }
    return BAD(&m, EPARSE, "cut short: no STOP");
}

bool cd_unpickle_is_obj(const cd_unpickle_value *v, const char *name) {
    return v && v->kind == CD_UNPICKLE_OBJ && !strcmp(v->u.obj.name, name);
}

const cd_unpickle_value *cd_unpickle_get(const cd_unpickle_value *dict, const char *key) {
    if (!dict || dict->kind != CD_UNPICKLE_DICT) return NULL;
    for (uint32_t k = dict->n; k >= 2; k -= 2)
        if (dict->u.item[k - 2]->kind == CD_UNPICKLE_STR &&
            cd_str_is(dict->u.item[k - 2]->u.s, key))
            return dict->u.item[k - 1];
    return NULL;
}

const char *cd_unpickle_kind_name(cd_unpickle_kind k) {
    static const char *const name[] = {"None",  "bool", "int",  "float", "str",   "bytes",
                                       "tuple", "list", "dict", "class", "object"};
    return name[k];
}
