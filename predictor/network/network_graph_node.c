/* A node of the project's own form, docs/reference/netgraph.md: read and written by one table of
 * its members. What is in no table is refused, so that a slip of the pen is not a number left
 * out. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "predictor/network/network_internal.h"

#define CD_NETPHASES "forward|backward|update"

/* ---- one member ---- */
typedef enum {
    TEXT,
    WORD_KIND,
    WORD_PHASE,
    SECONDS,
    NUMBER,
    BYTES,
    COUNT,
    QUESTION,
    AFTER,
    NOTE
} type;
static const struct {
    const char *key;
    type is;
    size_t at;
} members[] = {
#define AT(f) offsetof(cd_network_file_node, n.f)
    {"name", TEXT, AT(name)},
    {"op", TEXT, AT(op)},
    {"kind", WORD_KIND, 0},
    {"phase", WORD_PHASE, 0},
    {"key", TEXT, AT(key)},
    {"ran_as", TEXT, AT(ran_as)},
    {"why", TEXT, AT(why)},
    {"device", TEXT, AT(device)},
    {"given_s", SECONDS, AT(given_s)},
    {"flop", NUMBER, AT(flop)},
    {"read_bytes", BYTES, AT(read_bytes)},
    {"write_bytes", BYTES, AT(write_bytes)},
    {"weight_bytes", BYTES, AT(weight_bytes)},
    {"repeat", COUNT, AT(repeat)},
    {"question", QUESTION, 0},
    {"after", AFTER, 0},
    {"note", NOTE, 0},
#undef AT
};
enum { N_MEMBER = sizeof members / sizeof *members };

static cdmpp_status word_of(const cd_json *v, const char *words, int *out, cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_str(v, &s, err));
    *out = cd_enum_names_find(words, s);
    if (*out >= 0) return CDMPP_OK;
    return CD_FAIL(err, ESCHEMA, "expected one of %s, found \"%.*s\"", words,
                   CD_NETWORK_FILE_SHORT(s));
}

static cdmpp_status number_of(const cd_json *v, double *out, cdmpp_err *err) {
    CD_TRY(cd_json_real_or_nan(v, out, err));
    *out += 0.0; /* -0 is 0, and written as that */
    if (isnan(*out) || (*out >= 0 && isfinite(*out))) return CDMPP_OK;
    return CD_FAIL(err, ERANGE, "expected a number, 0 or more, found %g", *out);
}

/* ---- a question ---- */
static const struct {
    const char *key;
    size_t at;
    double low;
    bool conv;
} dims[] = {
#define AT(f) offsetof(cd_library_op_record, f)
    {"b", AT(b), 1, false},          {"m", AT(m), 1, false},    {"n", AT(n), 1, false},
    {"k", AT(k), 1, false},          {"cin", AT(cin), 1, true}, {"ksize", AT(ksize), 1, true},
    {"stride", AT(stride), 1, true}, {"pad", AT(pad), 0, true}, {"size", AT(size), 1, true},
#undef AT
};
enum { N_DIM = sizeof dims / sizeof *dims };

/* Whole numbers below 2^53, which a double holds exactly. Of a convolution m and k follow from the
 * image and kernel; both forms are in the file, so they are compared. */
static cdmpp_status dims_of(const cd_json *v, cd_library_op_record *q, cdmpp_err *err) {
    const bool conv = cd_library_op_kind_class(q->kind) == CD_LIBRARY_OP_CLASS_CONV;
    for (size_t i = 0; i < N_DIM; i++) {
        double *d = (double *)((char *)q + dims[i].at);
        if (dims[i].conv && !conv) continue;
        CD_TRY(cd_json_need_real(v, dims[i].key, dims[i].low, 0x1p53, d, err));
        *d += 0.0;
        if (*d != floor(*d))
            return cd_err_key(err, CD_FAIL(err, ERANGE, "expected a whole number, found %g", *d),
                              dims[i].key);
    }
    if (!conv) return CDMPP_OK;
    const double side = floor((q->size + 2 * q->pad - q->ksize) / q->stride) + 1;
    if (side >= 1 && fmod(q->m, side * side) == 0 && q->k == q->cin * q->ksize * q->ksize)
        return CDMPP_OK;
    return CD_FAIL(err, ERANGE,
                   "m %g and k %g are not of a convolution %gx%g of %g channels and %gx%g, stride "
                   "%g, padding %g",
                   q->m, q->k, q->ksize, q->ksize, q->cin, q->size, q->size, q->stride, q->pad);
}

static cdmpp_status question_of(const cd_json *v, cd_library_op_record *q, cdmpp_err *err) {
    int dtype = CD_LIBRARY_OP_DTYPE_F32;
    for (const cd_json *c = v->u.child; c; c = c->next) {
        bool known =
            cd_str_is(c->key, "op") || cd_str_is(c->key, "dtype") || cd_str_is(c->key, "latency_s");
        for (size_t i = 0; i < N_DIM; i++)
            known |=
                cd_str_is(c->key, dims[i].key) &&
                (!dims[i].conv || cd_library_op_kind_class(q->kind) == CD_LIBRARY_OP_CLASS_CONV);
        if (!known)
            return CD_FAIL(err, ESCHEMA, "unknown member \"%.*s\"", CD_NETWORK_FILE_SHORT(c->key));
    }
    if (cd_json_get(v, "dtype"))
        CD_TRY(cd_err_key(err, word_of(cd_json_get(v, "dtype"), CD_LIBRARY_OP_DTYPES, &dtype, err),
                          "dtype"));
    q->dtype = (cd_library_op_dtype)dtype;
    if (cd_json_get(v, "latency_s"))
        CD_TRY(cd_json_need_real(v, "latency_s", 0, 1e9, &q->latency_s, err));
    return dims_of(v, q, err);
}

/* An operator that nobody knows is kept as text: a gap of the network and not the end of it. */
static cdmpp_status ask(cd_network_file *f, const cd_json *v, cd_network_file_node *o,
                        cdmpp_err *err) {
    const cd_json *op;
    const char *name = NULL;
    int k = 0;
    if (v->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(v->kind));
    CD_TRY(cd_json_need(v, "op", &op, err));
    CD_TRY(cd_err_key(err, cd_network_file_text(f, op, &name, err), "op"));
    while (k < CD_N_LIBRARY_OP_KIND &&
           strcmp(name, cd_library_op_kind_name((cd_library_op_kind)k)) != 0)
        k++;
    if (k == CD_N_LIBRARY_OP_KIND) return o->strange = name, CDMPP_OK;
    o->question = (cd_library_op_record){.kind = (cd_library_op_kind)k};
    o->n.question = &o->question;
    return question_of(v, &o->question, err);
}

/* ---- a node ---- */
static cdmpp_status member_of(cd_network_file *f, size_t i, const cd_json *v,
                              cd_network_file_node *o, cdmpp_err *err) {
    void *at = (char *)o + members[i].at;
    int word = 0;
    cdmpp_status st = CDMPP_OK;
    switch (members[i].is) {
    case TEXT: return cd_network_file_text(f, v, at, err);
    case WORD_KIND:
        st = word_of(v, CD_NODE_KINDS, &word, err), o->n.kind = (cd_node_kind)word;
        return st;
    case WORD_PHASE:
        st = word_of(v, CD_NETPHASES, &word, err), o->n.phase = (cd_node_phase)word;
        return st;
    case SECONDS: return cd_network_file_seconds(v, at, err);
    case NUMBER: return number_of(v, at, err);
    case BYTES:
    case COUNT: return cd_json_int(v, 0, INT64_MAX, at, err);
    case QUESTION: return ask(f, v, o, err);
    case AFTER: o->after = v; return CDMPP_OK;
    case NOTE: return CDMPP_OK;
    }
    return st;
}

static size_t find_member(cd_str key) {
    size_t i = 0;
    while (i < N_MEMBER && !cd_str_is(key, members[i].key)) i++;
    return i;
}

static cdmpp_status unknown_operator(cd_network_file *f, cd_network_file_node *o, cdmpp_err *err) {
    static const char text[] = "unknown library operator ";
    if (o->n.kind != CD_NODE_LIBRARY)
        return CD_FAIL(err, EUNSUPPORTED, "unknown operator \"%.40s\"", o->strange);
    char *why = cd_arena_alloc(&f->scratch, sizeof text + strlen(o->strange), 1);
    if (!why) return CD_FAIL(err, ENOMEM, "reason");
    sprintf(why, "%s%s", text, o->strange);
    o->n.kind = CD_NODE_UNKNOWN;
    o->n.why = why;
    return CDMPP_OK;
}

/* Driven by the table of members; unknown ones are errors, so that a misspelt member is found. */
cdmpp_status cd_network_file_read_node(cd_network_file *f, const cd_json *v,
                                       cd_network_file_node *o, cdmpp_err *err) {
    unsigned seen = 0;
    if (v->kind != CD_JSON_OBJ)
        return CD_FAIL(err, ESCHEMA, "expected an object, found %s", cd_json_kind_name(v->kind));
    *o = (cd_network_file_node){.n = cd_network_node_init(NULL, "", CD_NODE_FREE)};
    for (const cd_json *c = v->u.child; c; c = c->next) {
        const size_t i = find_member(c->key);
        if (i == N_MEMBER)
            return CD_FAIL(err, ESCHEMA, "unknown member \"%.*s\"", CD_NETWORK_FILE_SHORT(c->key));
        seen |= 1U << i;
        CD_TRY(cd_err_key(err, member_of(f, i, c, o, err), members[i].key));
    }
    if (!o->n.name || !o->n.name[0])
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected the node's name"), "name");
    if (!(seen >> find_member((cd_str){"kind", 4}) & 1))
        return cd_err_key(err, CD_FAIL(err, ESCHEMA, "expected one of %s", CD_NODE_KINDS), "kind");
    return o->strange ? cd_err_key(err, unknown_operator(f, o, err), "question.op") : CDMPP_OK;
}

/* ---- writing ---- */
static void put_question(cd_buf *b, const cd_library_op_record *q) {
    cd_buf_putf(b, "{\"op\": \"%s\", \"dtype\": \"%s\"", cd_library_op_kind_name(q->kind),
                cd_library_op_dtype_name(q->dtype));
    for (size_t i = 0; i < N_DIM; i++) {
        if (dims[i].conv && cd_library_op_kind_class(q->kind) != CD_LIBRARY_OP_CLASS_CONV) continue;
        cd_buf_putf(b, ", \"%s\": ", dims[i].key);
        cd_buf_put_json_real(b, *(const double *)((const char *)q + dims[i].at));
    }
    if (q->latency_s > 0) {
        cd_buf_puts(b, ", \"latency_s\": ");
        cd_buf_put_json_real(b, q->latency_s);
    }
    cd_buf_puts(b, "}");
}

static void put_word(cd_buf *b, const char *words, int k) {
    const cd_str w = cd_enum_names_at(words, k);
    cd_buf_put_json_str(b, w.p, w.n);
}

static void put_after(cd_buf *b, const cd_network_graph *g, const cd_network_node *n) {
    for (uint32_t i = 0; i < n->n_after; i++) {
        const char *name = g->node[g->after[n->first + i]].name;
        cd_buf_puts(b, i ? ", " : "[");
        cd_buf_put_json_str(b, name, strlen(name));
    }
    cd_buf_puts(b, "]");
}

/* Whether the member is written. What a reader assumes by default is left out. */
static bool is_written(size_t i, const cd_network_node *n) {
    /* n is the first thing of a cd_network_file_node */
    const void *at = (const char *)n + members[i].at;
    switch (members[i].is) {
    case TEXT: return *(const char *const *)at && **(const char *const *)at;
    case WORD_KIND: return true;
    case WORD_PHASE: return n->phase != CD_PHASE_FORWARD;
    case SECONDS:
    case NUMBER: return !isnan(*(const double *)at);
    case BYTES: return *(const int64_t *)at >= 0;
    case COUNT: return *(const int64_t *)at != 1;
    case QUESTION: return n->question;
    case AFTER: return n->n_after > 0;
    case NOTE: return false;
    }
    return false;
}

/* The same table as for reading, so that a member cannot be read and not written. */
void cd_network_file_write_node(cd_buf *b, const cd_network_graph *g, const cd_network_node *n) {
    const char *sep = "{";
    for (size_t i = 0; i < N_MEMBER; i++) {
        const void *at = (const char *)n + members[i].at;
        if (!is_written(i, n)) continue;
        cd_buf_putf(b, "%s\"%s\": ", sep, members[i].key);
        sep = ", ";
        switch (members[i].is) {
        case TEXT:
            cd_buf_put_json_str(b, *(const char *const *)at, strlen(*(const char *const *)at));
            break;
        case WORD_KIND: put_word(b, CD_NODE_KINDS, n->kind); break;
        case WORD_PHASE: put_word(b, CD_NETPHASES, n->phase); break;
        case SECONDS:
        case NUMBER: cd_buf_put_json_real(b, *(const double *)at); break;
        case BYTES:
        case COUNT: cd_buf_put_int(b, *(const int64_t *)at); break;
        case QUESTION: put_question(b, n->question); break;
        case AFTER: put_after(b, g, n); break;
        case NOTE: break;
        }
    }
    cd_buf_puts(b, "}");
}
