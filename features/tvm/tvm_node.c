/* Checked access to a graph of nodes. The file comes from outside: an index that does not exist, a
 * missing attribute or a text that is no number is an error with its place, never a crash. */
#include "features/tvm/tvm.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *key;
    size_t n;
} kind_tab[] = {
#define CD_X(name, key) {key, sizeof key - 1},
    CD_TVM_MAP(CD_X)
#undef CD_X
};

static cd_tvm_node_kind kind_of(cd_str key) {
    for (unsigned k = 0; k < CD_TVM_OTHER; k++)
        if (key.n == kind_tab[k].n && memcmp(key.p, kind_tab[k].key, key.n) == 0)
            return (cd_tvm_node_kind)k;
    return CD_TVM_OTHER;
}

cdmpp_status cd_tvm_graph_error_at(const cd_tvm_graph *g, uint32_t i, const char *attr,
                                   cdmpp_status st) {
    if (!st || !g->err) return st;
    if (attr) {
        cd_err_add_key(g->err, attr);
        cd_err_add_key(g->err, "attrs");
    }
    cd_err_add_index(g->err, i);
    cd_err_add_key(g->err, "nodes");
    return st;
}

/* Items are numbers of nodes, of every list: whoever walks one need not check them. */
static cdmpp_status check_items(cd_tvm_graph *g, uint32_t i) {
    const cd_json *data = cd_json_get(g->node[i], "data"), *item = NULL;
    int64_t v;
    if (!data) return CDMPP_OK;
    cdmpp_status st = cd_json_arr(data, 0, &item, g->err);
    for (; !st && item; item = item->next) st = cd_json_int(item, 0, (int64_t)g->n - 1, &v, g->err);
    return st ? cd_tvm_graph_error_at(g, i, NULL, cd_err_key(g->err, st, "data")) : CDMPP_OK;
}

static cdmpp_status index_nodes(cd_tvm_graph *g, const cd_json *item) {
    for (uint32_t i = 0; i < g->n; i++, item = item->next) {
        cd_str key;
        const cdmpp_status st = cd_json_str(cd_json_get(item, "type_key"), &key, g->err);
        if (st) return cd_tvm_graph_error_at(g, i, NULL, cd_err_key(g->err, st, "type_key"));
        g->node[i] = item;
        g->kind[i] = (uint8_t)kind_of(key);
        CD_TRY(check_items(g, i));
    }
    return CDMPP_OK;
}

/* The JSON tree stays in the arena; nodes point into it. */
cdmpp_status cd_tvm_graph_open(cd_arena *a, const char *text, size_t len, cd_tvm_graph *g,
                               cdmpp_err *err) {
    *g = (cd_tvm_graph){.arena = a, .err = err};
    const cd_json *top = NULL, *item = NULL, *nodes;
    CD_TRY(cd_json_parse(a, text, len, &top, err));
    nodes = cd_json_get(top, "nodes");
    CD_TRY(cd_err_key(err, cd_json_arr(nodes, 1, &item, err), "nodes"));
    g->n = nodes->n;
    g->node = CD_NEWN(a, const cd_json *, g->n);
    g->kind = CD_NEWN(a, uint8_t, g->n);
    if (!g->node || !g->kind) return CD_FAIL(err, ENOMEM, "node graph of %u nodes", g->n);
    CD_TRY(index_nodes(g, item));
    int64_t root = 0;
    CD_TRY(cd_err_key(err, cd_json_int(cd_json_get(top, "root"), 0, (int64_t)g->n - 1, &root, err),
                      "root"));
    g->root = (uint32_t)root;
    return CDMPP_OK;
}

cd_str cd_tvm_graph_type_key(const cd_tvm_graph *g, uint32_t i) {
    return cd_json_get(g->node[i], "type_key")->u.s;
}

cdmpp_status cd_tvm_graph_expect(const cd_tvm_graph *g, uint32_t i, cd_tvm_node_kind want) {
    if (cd_tvm_graph_kind(g, i) == want) return CDMPP_OK;
    const cd_str key = cd_tvm_graph_type_key(g, i);
    return cd_tvm_graph_error_at(
        g, i, NULL,
        CD_FAIL(g->err, ESCHEMA, "expected a node of type %s, found \"%.*s\"",
                want == CD_TVM_NULL ? "null" : kind_tab[want].key, cd_str_shown(key, 60), key.p));
}

bool cd_tvm_graph_has(const cd_tvm_graph *g, uint32_t i, const char *attr) {
    return cd_json_get(cd_json_get(g->node[i], "attrs"), attr) != NULL;
}

cdmpp_status cd_tvm_graph_str(const cd_tvm_graph *g, uint32_t i, const char *attr, cd_str *out) {
    const cd_json *v = cd_json_get(cd_json_get(g->node[i], "attrs"), attr);
    const cdmpp_status st = cd_json_str(v, out, g->err);
    return st ? cd_tvm_graph_error_at(g, i, attr, st) : CDMPP_OK;
}

cdmpp_status cd_tvm_graph_int(const cd_tvm_graph *g, uint32_t i, const char *attr, int64_t *out) {
    cd_str s;
    CD_TRY(cd_tvm_graph_str(g, i, attr, &s));
    const bool neg = s.n && s.p[0] == '-';
    uint64_t v = 0;
    size_t k = neg;
    for (; k < s.n && k < 19U + neg && s.p[k] >= '0' && s.p[k] <= '9'; k++)
        v = v * 10 + (uint64_t)(s.p[k] - '0');
    if (k != s.n || k == neg || v > (uint64_t)INT64_MAX + neg)
        return cd_tvm_graph_error_at(g, i, attr,
                                     CD_FAIL(g->err, ESCHEMA, "expected an integer, found \"%.*s\"",
                                             cd_str_shown(s, 40), s.p));
    *out = neg ? (int64_t)(0 - v) : (int64_t)v;
    return CDMPP_OK;
}

cdmpp_status cd_tvm_graph_real(const cd_tvm_graph *g, uint32_t i, const char *attr, double *out) {
    cd_str s;
    CD_TRY(cd_tvm_graph_str(g, i, attr, &s));
    char buf[64], *end = buf;
    if (s.n && s.n < sizeof buf) {
        memcpy(buf, s.p, s.n);
        buf[s.n] = '\0';
        *out = strtod(buf, &end);
    }
    if (s.n && (size_t)(end - buf) == s.n) return CDMPP_OK;
    return cd_tvm_graph_error_at(
        g, i, attr,
        CD_FAIL(g->err, ESCHEMA, "expected a number, found \"%.*s\"", cd_str_shown(s, 40), s.p));
}

cdmpp_status cd_tvm_graph_ref(const cd_tvm_graph *g, uint32_t i, const char *attr, uint32_t *out) {
    int64_t v;
    CD_TRY(cd_tvm_graph_int(g, i, attr, &v));
    if (v < 0 || v >= g->n)
        return cd_tvm_graph_error_at(
            g, i, attr, CD_FAIL(g->err, ESCHEMA, "refers to node %lld of %u", (long long)v, g->n));
    *out = (uint32_t)v;
    return CDMPP_OK;
}

cdmpp_status cd_tvm_graph_array(const cd_tvm_graph *g, uint32_t i, const char *attr,
                                uint32_t *out) {
    CD_TRY(cd_tvm_graph_ref(g, i, attr, out));
    return cd_tvm_graph_expect(g, *out, CD_TVM_ARRAY);
}

const cd_json *cd_tvm_graph_items(const cd_tvm_graph *g, uint32_t i, uint32_t *n) {
    const cd_json *data = cd_json_get(g->node[i], "data");
    *n = data ? data->n : 0; /* empty containers have no "data" */
    return data ? data->u.child : NULL;
}

uint32_t cd_tvm_graph_item(const cd_json **item) {
    const uint32_t i = (uint32_t)(*item)->u.i;
    *item = (*item)->next;
    return i;
}

static int b64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Base64 over an 8-byte length and that many bytes. */
static cdmpp_status decode_b64(const cd_tvm_graph *g, cd_str s, cd_str *out) {
    unsigned char *buf = cd_arena_alloc(g->arena, s.n / 4 * 3 + 4, 1);
    if (!buf) return CD_FAIL(g->err, ENOMEM, "string");
    size_t n = 0;
    uint32_t acc = 0;
    int bits = 0;
    for (size_t k = 0; k < s.n && s.p[k] != '='; k++) {
        const int d = b64_digit(s.p[k]);
        if (d < 0) return CD_FAIL(g->err, EPARSE, "not base64");
        acc = acc << 6 | (uint32_t)d;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        buf[n++] = (unsigned char)(acc >> bits);
    }
    uint64_t len = 0;
    for (int k = 7; n >= 8 && k >= 0; k--) len = len << 8 | buf[k];
    if (n < 8 || len > n - 8) return CD_FAIL(g->err, EPARSE, "base64 string is cut short");
    *out = (cd_str){(char *)buf + 8, (size_t)len};
    return CDMPP_OK;
}

/* Printable payloads are plain, others base64; an empty text has neither. */
cdmpp_status cd_tvm_graph_text(const cd_tvm_graph *g, uint32_t i, cd_str *out) {
    const cd_json *v = cd_json_get(g->node[i], "repr_str");
    const char *member = "repr_str";
    cdmpp_status st = CDMPP_OK;
    *out = (cd_str){"", 0};
    if (v) {
        st = cd_json_str(v, out, g->err);
    } else if ((v = cd_json_get(g->node[i], "repr_b64"))) {
        cd_str s = {"", 0};
        member = "repr_b64";
        st = cd_json_str(v, &s, g->err);
        if (!st) st = decode_b64(g, s, out);
    }
    return st ? cd_tvm_graph_error_at(g, i, NULL, cd_err_key(g->err, st, member)) : CDMPP_OK;
}

cdmpp_status cd_tvm_graph_map_open(const cd_tvm_graph *g, uint32_t i, cd_tvm_graph_map *m) {
    uint32_t n;
    *m = (cd_tvm_graph_map){0};
    CD_TRY(cd_tvm_graph_expect(g, i, CD_TVM_MAP));
    m->value = cd_tvm_graph_items(g, i, &n);
    const cd_json *keys = cd_json_get(g->node[i], "keys");
    m->plain = keys != NULL;
    if (!keys && n % 2 == 0) return CDMPP_OK;
    if (!keys)
        return cd_tvm_graph_error_at(g, i, NULL,
                                     CD_FAIL(g->err, ESCHEMA, "a map with a key but no value"));
    cdmpp_status st = cd_json_arr(keys, 0, &m->key, g->err);
    if (!st && keys->n != n) st = CD_FAIL(g->err, ESCHEMA, "%u keys for %u values", keys->n, n);
    return st ? cd_tvm_graph_error_at(g, i, NULL, cd_err_key(g->err, st, "keys")) : CDMPP_OK;
}

/* Maps with text keys list them apart; all others alternate key and value in one list. */
cdmpp_status cd_tvm_graph_map_next(const cd_tvm_graph *g, uint32_t i, cd_tvm_graph_map *m,
                                   cd_str *key, uint32_t *value, bool *more) {
    *more = m->value != NULL;
    *key = (cd_str){"", 0};
    if (!*more) return CDMPP_OK;
    if (m->plain) {
        const cdmpp_status st = cd_json_str(m->key, key, g->err);
        if (st) return cd_tvm_graph_error_at(g, i, NULL, cd_err_key(g->err, st, "keys"));
        m->key = m->key->next;
    } else {
        uint32_t k;
        k = cd_tvm_graph_item(&m->value);
        if (cd_tvm_graph_kind(g, k) == CD_TVM_STRING) CD_TRY(cd_tvm_graph_text(g, k, key));
    }
    *value = cd_tvm_graph_item(&m->value);
    return CDMPP_OK;
}
