/* Reads a booster in XGBoost's UBJ form, the only reader of such bytes: XGBoost itself believes
 * what a file says (numbers of children, parents, trees), so that a file made by hand crashes it.
 * Every field is checked, those that the walk does not need as well, for who exports the trees
 * hands them to XGBoost.
 *
 *   {version: [..], learner: {attributes: {}, feature_names: [], feature_types: [], objective:
 *   {name: "reg:squarederror", ...},
 *    learner_model_param: {base_score: "0E0", num_class: "0", num_feature: "513", ...},
 *    gradient_booster: {name: "gbtree", model: {gbtree_model_param, tree_info: [0, ..], trees:
 *    [{left_children: [..], ...}, ..]}}}}
 *
 * Forms: XGBoost 1.6 to 3.0 (iteration_indptr since 2.0). What is not written by a regression by
 * squared error is refused with its key. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/trees/tree_inference_internal.h"
#include <stdbool.h>
#include <stdint.h>
#include "base/core/core.h"

/* What is not read yet; borrowed. */
typedef struct cd_ubj {
    const unsigned char *p;
    size_t n;
} cd_ubj;

typedef struct cd_ubj_member {
    const char *key;
    char kind; /* '{', '[', 'S' (text) or 'n' (number) */
    bool optional;
    cd_ubj at; /* out: at the value; p NULL: it is not there */
} cd_ubj_member;

/* Reads UBJ by tables of keys; see ubj_internal.h. */

enum { MAX_DEPTH = 32 };

static bool take(cd_ubj *r, size_t n, const unsigned char **out) {
    if (n > r->n) return false;
    *out = r->p;
    r->p += n;
    r->n -= n;
    return true;
}

static bool peek(const cd_ubj *r, char c) { return r->n && *r->p == (unsigned char)c; }

static bool eat(cd_ubj *r, char c) {
    const unsigned char *p;
    return peek(r, c) && take(r, 1, &p);
}

static size_t size_of(unsigned char type) {
    switch (type) {
    case 'i':
    case 'U': return 1;
    case 'I': return 2;
    case 'l':
    case 'd': return 4;
    case 'L':
    case 'D': return 8;
    default: return 0;
    }
}

static bool is_whole(unsigned char type) { return size_of(type) && type != 'd' && type != 'D'; }

static uint64_t big_endian(const unsigned char *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

/* Number i of an array of type l, and of type d. */
static uint32_t ubj_l(const unsigned char *data, size_t i) {
    return (uint32_t)big_endian(data + 4 * i, 4);
}

static float ubj_d(const unsigned char *data, size_t i) {
    const uint32_t w = ubj_l(data, i);
    float f;
    memcpy(&f, &w, sizeof f);
    return f;
}

/* A number with its marker and its sign. */
static bool integer(cd_ubj *r, int64_t *out) {
    const unsigned char *type, *p;
    if (!take(r, 1, &type) || !is_whole(*type) || !take(r, size_of(*type), &p)) return false;
    const uint64_t v = big_endian(p, size_of(*type));
    switch (*type) {
    case 'i': *out = (int8_t)v; break;
    case 'I': *out = (int16_t)v; break;
    case 'l': *out = (int32_t)v; break;
    default: *out = (int64_t)v;
    }
    return true;
}

static bool length(cd_ubj *r, size_t *out) {
    int64_t v;
    if (!integer(r, &v) || v < 0) return false;
    *out = (size_t)v;
    return true;
}

static bool bytes(cd_ubj *r, const unsigned char **p, size_t *n) {
    return length(r, n) && take(r, *n, p);
}

/* Behind '[': optional type and count. A count must come with a type, and types are numbers. */
static bool array_head(cd_ubj *r, unsigned char *type, size_t *count, bool *counted) {
    const unsigned char *p;
    *type = 0;
    if (peek(r, '$')) {
        if (!take(r, 2, &p) || !size_of(p[1])) return false;
        *type = p[1];
    }
    *counted = peek(r, '#');
    return eat(r, '#') ? length(r, count) && *count <= r->n / (*type ? size_of(*type) : 1) : !*type;
}

static bool skip(cd_ubj *r, int depth);

static bool skip_array(cd_ubj *r, int depth) {
    unsigned char type;
    const unsigned char *p;
    size_t n = SIZE_MAX;
    bool counted;
    if (!array_head(r, &type, &n, &counted)) return false;
    if (type) return take(r, n * size_of(type), &p);
    for (size_t i = 0; i < n; i++) {
        if (!counted && eat(r, ']')) return true;
        if (!skip(r, depth + 1)) return false;
    }
    return true;
}

/* One value. */
static bool skip(cd_ubj *r, int depth) {
    const unsigned char *type, *p;
    size_t n;
    if (depth > MAX_DEPTH || !take(r, 1, &type)) return false;
    if (*type == 'T' || *type == 'F' || *type == 'Z') return true;
    if (*type == 'S') return bytes(r, &p, &n);
    if (*type == '[') return skip_array(r, depth);
    if (*type != '{') return size_of(*type) && take(r, size_of(*type), &p);
    while (!eat(r, '}'))
        if (!bytes(r, &p, &n) || !skip(r, depth + 1)) return false;
    return true;
}

static cdmpp_status broken(cdmpp_err *err) {
    return CD_FAIL(err, EMODEL, "expected a value in UBJ of at most %d levels, found other bytes",
                   MAX_DEPTH);
}

/* Moves *at behind one value.
 *
 * What comes below reads bytes that ubj_whole took: they are whole values, one behind the
 * other. */
static void ubj_pass(cd_ubj *at) { (void)skip(at, 0); }

/* The value at *at, and nothing behind it. */
static cdmpp_status ubj_whole(cd_ubj at, cdmpp_err *err) {
    if (!skip(&at, 0)) return broken(err);
    return at.n ? CD_FAIL(err, EMODEL, "expected nothing behind the trees, found %zu bytes", at.n)
                : CDMPP_OK;
}

static const char *kind_name(char kind) {
    return kind == '{' ? "an object" : kind == '[' ? "a list" : kind == 'S' ? "a text" : "a number";
}

static bool is_kind(cd_ubj at, char kind) {
    return at.n && (kind == 'n' ? size_of(*at.p) != 0 : *at.p == (unsigned char)kind);
}

/* A key that nobody knows may change what the trees mean. */
static cdmpp_status found(cd_ubj_member *m, size_t n, const unsigned char *key, size_t len,
                          cd_ubj at, cdmpp_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (strlen(m[i].key) != len || memcmp(m[i].key, key, len) != 0) continue;
        if (m[i].at.p)
            return cd_err_key(err, CD_FAIL(err, EMODEL, "the key is there twice"), m[i].key);
        if (!is_kind(at, m[i].kind))
            return cd_err_key(err,
                              CD_FAIL(err, EMODEL, "expected %s, found a value of another kind",
                                      kind_name(m[i].kind)),
                              m[i].key);
        m[i].at = at;
        return CDMPP_OK;
    }
    return CD_FAIL(err, EMODEL, "unknown key '%.*s'", len > 40 ? 40 : (int)len, (const char *)key);
}

/* Reads the object at `at` into the table m (n). */
static cdmpp_status ubj_object(cd_ubj at, cd_ubj_member *m, size_t n, cdmpp_err *err) {
    const unsigned char *p;
    size_t len;
    for (size_t i = 0; i < n; i++) m[i].at = (cd_ubj){0};
    if (!eat(&at, '{'))
        return CD_FAIL(err, EMODEL, "expected an object, found a value of another kind");
    while (bytes(&at, &p, &len)) { /* up to the } */
        CD_TRY(found(m, n, p, len, at, err));
        ubj_pass(&at);
    }
    for (size_t i = 0; i < n; i++)
        if (!m[i].at.p && !m[i].optional)
            return cd_err_key(err, CD_FAIL(err, EMODEL, "the key is missing"), m[i].key);
    return CDMPP_OK;
}

/* The text at `at`, with a NUL, into buf (cap). */
static cdmpp_status ubj_text(cd_ubj at, char *buf, size_t cap, cdmpp_err *err) {
    const unsigned char *p = at.p;
    size_t n = 0;
    (void)take(&at, 1, &p);
    (void)bytes(&at, &p, &n);
    if (n >= cap || memchr(p, 0, n))
        return CD_FAIL(err, EMODEL, "expected a text of less than %zu bytes, found %zu bytes", cap,
                       n);
    memcpy(buf, p, n);
    buf[n] = '\0';
    return CDMPP_OK;
}

/* The text at `at` is `want`. */
static cdmpp_status ubj_says(cd_ubj at, const char *want, cdmpp_err *err) {
    char have[64];
    CD_TRY(ubj_text(at, have, sizeof have, err));
    return strcmp(have, want) ? CD_FAIL(err, EMODEL, "expected \"%s\", found \"%s\"", want, have)
                              : CDMPP_OK;
}

/* The whole number at *at, min to max; *at moves behind it. */
static cdmpp_status ubj_integer(cd_ubj *at, int64_t min, int64_t max, int64_t *out,
                                cdmpp_err *err) {
    if (!integer(at, out))
        return CD_FAIL(err, EMODEL, "expected a whole number, found another value");
    if (*out >= min && *out <= max) return CDMPP_OK;
    return CD_FAIL(err, EMODEL, "expected %" PRId64 " to %" PRId64 ", found %" PRId64, min, max,
                   *out);
}

/* Goes into the list at *at. type: of all its items, 0: they have one each. Does it say how many
 * there are? */
static bool into_list(cd_ubj *at, unsigned char *type, size_t *n) {
    const unsigned char *p;
    bool counted = false;
    *n = 0;
    (void)take(at, 1, &p);
    (void)array_head(at, type, n, &counted);
    return counted;
}

/* The counted list at *at: how many items; *at moves to the first. No more than there are bytes
 * left. */
static cdmpp_status ubj_list(cd_ubj *at, size_t *n, cdmpp_err *err) {
    unsigned char type;
    return into_list(at, &type, n) && !type
               ? CDMPP_OK
               : CD_FAIL(err, EMODEL,
                         "expected a list of values with its length, found a list of another form");
}

static cdmpp_status typed(cd_ubj *at, char type, size_t *n, cdmpp_err *err) {
    unsigned char have;
    return into_list(at, &have, n) && have == (unsigned char)type
               ? CDMPP_OK
               : CD_FAIL(err, EMODEL,
                         "expected a list of numbers of type %c, found a list of another form",
                         type);
}

/* How many numbers the typed array at `at` has. */
static cdmpp_status ubj_count(cd_ubj at, char type, size_t *n, cdmpp_err *err) {
    return typed(&at, type, n, err);
}

/* The n numbers of the array at `at`, all of this type: *data is at the first, borrowed. */
static cdmpp_status ubj_numbers(cd_ubj at, char type, size_t n, const unsigned char **data,
                                cdmpp_err *err) {
    size_t have;
    CD_TRY(typed(&at, type, &have, err));
    if (have != n) return CD_FAIL(err, EMODEL, "expected %zu numbers, found %zu", n, have);
    *data = at.p; /* a list that is counted is there as a whole */
    return CDMPP_OK;
}

/* the parent of the root; the column of a node that was pruned away */
enum { NO_NODE = INT32_MAX, DELETED = INT32_MAX };
#define N_OF(table) (sizeof(table) / sizeof *(table))

/* Calls of an object's keys: every one of them is named in errors. */
#define AT(err, key, call) CD_TRY(cd_err_key((err), (call), (key)))

static cdmpp_status says_number(cd_ubj at, size_t want, cdmpp_err *err) {
    char text[24];
    snprintf(text, sizeof text, "%zu", want);
    return ubj_says(at, text, err);
}

/* ---- one tree ---- */
enum {
    LEFT,
    RIGHT,
    COLUMN,
    CUT,
    MISSING_LEFT,
    SPLIT_TYPE,
    PARENT,
    LOSS,
    HESSIAN,
    WEIGHT,
    CATEGORIES,
    CAT_NODES,
    CAT_SEGMENTS,
    CAT_SIZES,
    ID,
    PARAM,
    N_MEMBER
};
static const struct {
    const char *key;
    char kind, type; /* of an array: of its numbers */
    bool empty;      /* categories, which numerical trees have not */
} member[N_MEMBER] = {
    [LEFT] = {"left_children", '[', 'l', false},
    [RIGHT] = {"right_children", '[', 'l', false},
    [COLUMN] = {"split_indices", '[', 'l', false},
    [CUT] = {"split_conditions", '[', 'd', false},
    [MISSING_LEFT] = {"default_left", '[', 'U', false},
    [SPLIT_TYPE] = {"split_type", '[', 'U', false},
    [PARENT] = {"parents", '[', 'l', false},
    [LOSS] = {"loss_changes", '[', 'd', false},
    [HESSIAN] = {"sum_hessian", '[', 'd', false},
    [WEIGHT] = {"base_weights", '[', 'd', false},
    [CATEGORIES] = {"categories", '[', 'l', true},
    [CAT_NODES] = {"categories_nodes", '[', 'l', true},
    [CAT_SEGMENTS] = {"categories_segments", '[', 'L', true},
    [CAT_SIZES] = {"categories_sizes", '[', 'L', true},
    [ID] = {"id", 'n', 0, false},
    [PARAM] = {"tree_param", '{', 0, false},
};

typedef struct {
    const unsigned char *data[N_MEMBER]; /* (n) numbers each */
    size_t n, n_deleted, width;
    cd_ubj param, id;
} tree;

static cdmpp_status open_tree(cd_ubj at, tree *t, cdmpp_err *err) {
    cd_ubj_member m[N_MEMBER];
    for (int k = 0; k < N_MEMBER; k++)
        m[k] = (cd_ubj_member){.key = member[k].key, .kind = member[k].kind};
    CD_TRY(ubj_object(at, m, N_MEMBER, err));
    AT(err, member[LEFT].key, ubj_count(m[LEFT].at, 'l', &t->n, err));
    if (!t->n)
        return cd_err_key(err, CD_FAIL(err, EMODEL, "expected a node or more, found none"),
                          member[LEFT].key);
    for (int k = 0; k < ID; k++)
        AT(err, member[k].key,
           ubj_numbers(m[k].at, member[k].type, member[k].empty ? 0 : t->n, &t->data[k], err));
    t->id = m[ID].at;
    t->param = m[PARAM].at;
    return CDMPP_OK;
}

static cdmpp_status at_node(cdmpp_err *err, cdmpp_status st, int k, size_t i) {
    return cd_err_key(err, cd_err_index(err, st, i), member[k].key);
}

/* Nodes that were pruned away stay in the arrays, as leaves of a column that no file has. XGBoost
 * looks at their parents, too. */
static cdmpp_status check_nodes(tree *t, cdmpp_err *err) {
    t->n_deleted = 0;
    for (size_t i = 0; i < t->n; i++) {
        const uint32_t column = ubj_l(t->data[COLUMN], i), parent = ubj_l(t->data[PARENT], i);
        const bool deleted = column == DELETED && t->data[MISSING_LEFT][i] == 1;
        if (t->data[MISSING_LEFT][i] > 1)
            return at_node(
                err, CD_FAIL(err, EMODEL, "expected 0 or 1, found %u", t->data[MISSING_LEFT][i]),
                MISSING_LEFT, i);
        if (t->data[SPLIT_TYPE][i])
            return at_node(
                err,
                CD_FAIL(err, EMODEL, "expected 0 (a number), found %u", t->data[SPLIT_TYPE][i]),
                SPLIT_TYPE, i);
        if (!deleted && column >= t->width)
            return at_node(err,
                           CD_FAIL(err, EMODEL, "expected a column below %zu, found %d", t->width,
                                   (int32_t)column),
                           COLUMN, i);
        if (i ? parent >= t->n : parent != NO_NODE)
            return at_node(
                err,
                CD_FAIL(err, EMODEL, "expected a node of %zu, found %d", t->n, (int32_t)parent),
                PARENT, i);
        if (deleted &&
            (ubj_l(t->data[LEFT], i) != UINT32_MAX || ubj_l(t->data[RIGHT], i) != UINT32_MAX))
            return at_node(err, CD_FAIL(err, EMODEL, "a node that was pruned has children"), LEFT,
                           i);
        t->n_deleted += deleted;
    }
    return CDMPP_OK;
}

/* A node has one parent, so that no node is below two others, and nothing goes in circles. */
static cdmpp_status check_child(const tree *t, size_t i, int side, cdmpp_err *err) {
    const uint32_t child = ubj_l(t->data[side], i);
    if (child >= t->n)
        return at_node(
            err,
            CD_FAIL(err, EMODEL, "expected -1 or a node of %zu, found %d", t->n, (int32_t)child),
            side, i);
    const uint32_t parent = ubj_l(t->data[PARENT], child);
    if (parent != i)
        return at_node(err,
                       CD_FAIL(err, EMODEL,
                               "expected a node whose parent is %zu, found %u, whose parent is %u",
                               i, child, parent),
                       side, i);
    return CDMPP_OK;
}

typedef struct {
    cd_tree_inference *f;
    const tree *t;
    uint32_t *deepest;
    float *largest; /* of the leaves, without sign */
} copier;

/* Node i and what is below, copied behind the nodes that there are. */
static cdmpp_status copy(const copier *c, size_t i, size_t to, uint32_t depth, cdmpp_err *err) {
    const tree *t = c->t;
    cd_tree_inference_node *n = &c->f->node[to];
    const uint32_t left = ubj_l(t->data[LEFT], i), right = ubj_l(t->data[RIGHT], i),
                   column = ubj_l(t->data[COLUMN], i);
    if (depth > *c->deepest) *c->deepest = depth;
    *n = (cd_tree_inference_node){ubj_d(t->data[CUT], i), 0, {(uint32_t)to, (uint32_t)to}};
    if (column == DELETED)
        return at_node(err, CD_FAIL(err, EMODEL, "a node that was pruned is in use"), COLUMN, i);
    if (left == UINT32_MAX && right == UINT32_MAX) *c->largest = fmaxf(*c->largest, fabsf(n->cut));
    if (left == UINT32_MAX && right == UINT32_MAX)
        return isfinite(n->cut)
                   ? CDMPP_OK
                   : at_node(err,
                             CD_FAIL(err, EMODEL, "expected a finite number for a leaf, found %g",
                                     (double)n->cut),
                             CUT, i);
    if (isnan(n->cut))
        return at_node(err, CD_FAIL(err, EMODEL, "expected a number to split at, found NaN"), CUT,
                       i);
    if (depth >= CD_TREE_INFERENCE_MAX_DEPTH)
        return CD_FAIL(err, EMODEL, "expected at most %d levels, found more",
                       CD_TREE_INFERENCE_MAX_DEPTH);
    CD_TRY(check_child(t, i, LEFT, err));
    CD_TRY(check_child(t, i, RIGHT, err));
    if (left == right)
        return at_node(err, CD_FAIL(err, EMODEL, "expected two children, found %u twice", left),
                       RIGHT, i);
    const size_t kid = c->f->n_node;
    c->f->n_node += 2;
    n->column = column | (t->data[MISSING_LEFT][i] ? 0 : CD_TREE_INFERENCE_MISSING_RIGHT);
    n->kid[0] = (uint32_t)kid;
    n->kid[1] = (uint32_t)kid + 1;
    CD_TRY(copy(c, left, kid, depth + 1, err));
    return copy(c, right, kid + 1, depth + 1, err);
}

/* Of regressions: leaves are single numbers, "0" before XGBoost 2.0 and "1" since. */
static cdmpp_status says_scalar_leaf(cd_ubj at, cdmpp_err *err) {
    char text[24];
    CD_TRY(ubj_text(at, text, sizeof text, err));
    return strcmp(text, "0") && strcmp(text, "1")
               ? CD_FAIL(err, EMODEL, "expected \"0\" or \"1\", found \"%s\"", text)
               : CDMPP_OK;
}

static cdmpp_status check_tree_param(const tree *t, cdmpp_err *err) {
    cd_ubj_member m[] = {{.key = "num_deleted", .kind = 'S'},
                         {.key = "num_feature", .kind = 'S'},
                         {.key = "num_nodes", .kind = 'S'},
                         {.key = "size_leaf_vector", .kind = 'S'}};
    CD_TRY(ubj_object(t->param, m, N_OF(m), err));
    AT(err, m[0].key, says_number(m[0].at, t->n_deleted, err));
    AT(err, m[1].key, says_number(m[1].at, t->width, err));
    AT(err, m[2].key, says_number(m[2].at, t->n, err));
    return cd_err_key(err, says_scalar_leaf(m[3].at, err), m[3].key);
}

/* Tree k of f, whose nodes come behind those of the trees before. *sum: of the largest leaves so
 * far: no row has a score beyond it. */
static cdmpp_status read_tree(cd_tree_inference *f, size_t k, tree *t, double *sum,
                              cdmpp_err *err) {
    int64_t id;
    float largest = 0;
    const size_t root = f->n_node;
    const copier c = {f, t, &f->depth[k], &largest};
    AT(err, member[ID].key, ubj_integer(&t->id, (int64_t)k, (int64_t)k, &id, err));
    CD_TRY(check_nodes(t, err));
    AT(err, member[PARAM].key, check_tree_param(t, err));
    f->root[k] = (uint32_t)root;
    f->n_node++;
    CD_TRY(copy(&c, 0, root, 0, err));
    *sum += (double)largest;
    if (*sum > (double)FLT_MAX)
        return CD_FAIL(err, EMODEL, "expected leaves that add up to a finite score, found %g",
                       *sum);
    if (f->n_node - root + t->n_deleted == t->n) return CDMPP_OK;
    return CD_FAIL(err, EMODEL,
                   "expected %zu nodes below the root and %zu that were pruned, found %zu",
                   t->n - t->n_deleted, t->n_deleted, f->n_node - root);
}

/* ---- all trees ---- */
static cdmpp_status count_nodes(cd_ubj at, size_t n, size_t *n_node, cdmpp_err *err) {
    tree t;
    *n_node = 0;
    for (size_t k = 0; k < n; k++) {
        const cdmpp_status st = open_tree(at, &t, err);
        if (st) return cd_err_index(err, st, k);
        ubj_pass(&at);
        *n_node += t.n;
    }
    return *n_node < UINT32_MAX / 2
               ? CDMPP_OK
               : CD_FAIL(err, EMODEL, "expected fewer than 2^31 nodes, found %zu", *n_node);
}

/* The trees are gone through twice: once to count nodes, once to copy them. */
static cdmpp_status read_trees(cd_ubj at, size_t width, cd_tree_inference *f, cdmpp_err *err) {
    size_t n, n_node;
    double sum = fabs((double)f->base);
    CD_TRY(ubj_list(&at, &n, err));
    CD_TRY(count_nodes(at, n, &n_node, err));
    f->root = cd_mem_zalloc(2 * n + 1, sizeof *f->root);
    f->node = cd_mem_zalloc(n_node + 1, sizeof *f->node);
    if (!f->root || !f->node) return CD_FAIL(err, ENOMEM, "%zu trees", n);
    f->depth = f->root + n;
    f->n_tree = n;
    for (size_t k = 0; k < n; k++) {
        tree t = {.width = width};
        (void)open_tree(at, &t, NULL); /* count_nodes took it */
        const cdmpp_status st = read_tree(f, k, &t, &sum, err);
        if (st) return cd_err_index(err, st, k);
        ubj_pass(&at);
    }
    return CDMPP_OK;
}

/* The n numbers of a list, each of min to max and none less than the one before. */
static cdmpp_status check_rising(cd_ubj at, size_t n, int64_t min, int64_t max, cdmpp_err *err) {
    size_t have;
    CD_TRY(ubj_list(&at, &have, err));
    if (have != n) return CD_FAIL(err, EMODEL, "expected %zu numbers, found %zu", n, have);
    for (size_t i = 0; i < n; i++) {
        const cdmpp_status st = ubj_integer(&at, min, max, &min, err);
        if (st) return cd_err_index(err, st, i);
    }
    return CDMPP_OK;
}

/* Trees of one round, by which XGBoost divides. */
static cdmpp_status check_booster_param(cd_ubj at, size_t n_tree, size_t *each, cdmpp_err *err) {
    cd_ubj_member m[] = {{.key = "num_parallel_tree", .kind = 'S'},
                         {.key = "num_trees", .kind = 'S'},
                         {.key = "size_leaf_vector", .kind = 'S', .optional = true}};
    char text[24], *end;
    CD_TRY(ubj_object(at, m, N_OF(m), err));
    AT(err, m[1].key, says_number(m[1].at, n_tree, err));
    if (m[2].at.p) AT(err, m[2].key, says_scalar_leaf(m[2].at, err));
    AT(err, m[0].key, ubj_text(m[0].at, text, sizeof text, err));
    *each = strtoul(text, &end, 10);
    if (text[0] >= '1' && text[0] <= '9' && !*end && n_tree % *each == 0) return CDMPP_OK;
    return cd_err_key(err,
                      CD_FAIL(err, EMODEL, "expected a number that divides %zu trees, found \"%s\"",
                              n_tree, text),
                      m[0].key);
}

static cdmpp_status read_model(cd_ubj at, size_t width, cd_tree_inference *f, cdmpp_err *err) {
    cd_ubj_member m[] = {{.key = "gbtree_model_param", .kind = '{'},
                         {.key = "tree_info", .kind = '['},
                         {.key = "trees", .kind = '['},
                         {.key = "iteration_indptr", .kind = '[', .optional = true}};
    size_t each;
    CD_TRY(ubj_object(at, m, N_OF(m), err));
    AT(err, m[2].key, read_trees(m[2].at, width, f, err));
    AT(err, m[0].key, check_booster_param(m[0].at, f->n_tree, &each, err));
    AT(err, m[1].key, check_rising(m[1].at, f->n_tree, 0, 0, err));
    return m[3].at.p
               ? cd_err_key(err,
                            check_rising(m[3].at, f->n_tree / each + 1, 0, (int64_t)f->n_tree, err),
                            m[3].key)
               : CDMPP_OK;
}

static cdmpp_status read_booster(cd_ubj at, size_t width, cd_tree_inference *f, cdmpp_err *err) {
    cd_ubj_member m[] = {{.key = "name", .kind = 'S'}, {.key = "model", .kind = '{'}};
    CD_TRY(ubj_object(at, m, N_OF(m), err));
    AT(err, m[0].key, ubj_says(m[0].at, "gbtree", err));
    return cd_err_key(err, read_model(m[1].at, width, f, err), m[1].key);
}

/* ---- what is around the trees ---- */
/* One squared error over `width` columns: what a leaf says is added up and not bent afterwards. */
static cdmpp_status read_param(cd_ubj at, size_t width, float *base, cdmpp_err *err) {
    cd_ubj_member m[] = {{.key = "base_score", .kind = 'S'},
                         {.key = "num_class", .kind = 'S'},
                         {.key = "num_feature", .kind = 'S'},
                         {.key = "num_target", .kind = 'S', .optional = true},
                         {.key = "boost_from_average", .kind = 'S', .optional = true}};
    char text[32], *end;
    CD_TRY(ubj_object(at, m, N_OF(m), err));
    AT(err, m[1].key, ubj_says(m[1].at, "0", err));
    AT(err, m[2].key, says_number(m[2].at, width, err));
    if (m[3].at.p) AT(err, m[3].key, ubj_says(m[3].at, "1", err));
    if (m[4].at.p) AT(err, m[4].key, says_scalar_leaf(m[4].at, err));
    AT(err, m[0].key, ubj_text(m[0].at, text, sizeof text, err));
    *base = strtof(text, &end);
    if (end != text && !*end && isfinite(*base)) return CDMPP_OK;
    return cd_err_key(err, CD_FAIL(err, EMODEL, "expected a finite number, found \"%s\"", text),
                      m[0].key);
}

static cdmpp_status check_objective(cd_ubj at, cdmpp_err *err) {
    cd_ubj_member m[] = {{.key = "name", .kind = 'S'}, {.key = "reg_loss_param", .kind = '{'}};
    cd_ubj_member weight[] = {{.key = "scale_pos_weight", .kind = 'S'}};
    CD_TRY(ubj_object(at, m, N_OF(m), err));
    AT(err, m[0].key, ubj_says(m[0].at, "reg:squarederror", err));
    AT(err, m[1].key, ubj_object(m[1].at, weight, 1, err));
    return cd_err_key(err, cd_err_key(err, ubj_says(weight[0].at, "1", err), weight[0].key),
                      m[1].key);
}

static cdmpp_status check_empty(cd_ubj at, cdmpp_err *err) {
    size_t n;
    CD_TRY(ubj_list(&at, &n, err));
    return n ? CD_FAIL(err, EMODEL, "expected no names, found %zu", n) : CDMPP_OK;
}

static cdmpp_status read_learner(cd_ubj at, size_t width, cd_tree_inference *f, cdmpp_err *err) {
    cd_ubj_member m[] = {
        {.key = "attributes", .kind = '{'},    {.key = "feature_names", .kind = '['},
        {.key = "feature_types", .kind = '['}, {.key = "learner_model_param", .kind = '{'},
        {.key = "objective", .kind = '{'},     {.key = "gradient_booster", .kind = '{'}};
    CD_TRY(ubj_object(at, m, N_OF(m), err));
    AT(err, m[0].key, ubj_object(m[0].at, NULL, 0, err));
    AT(err, m[1].key, check_empty(m[1].at, err));
    AT(err, m[2].key, check_empty(m[2].at, err));
    AT(err, m[3].key, read_param(m[3].at, width, &f->base, err));
    AT(err, m[4].key, check_objective(m[4].at, err));
    return cd_err_key(err, read_booster(m[5].at, width, f, err), m[5].key);
}

static cdmpp_status check_version(cd_ubj at, cdmpp_err *err) {
    size_t n;
    int64_t v;
    CD_TRY(ubj_list(&at, &n, err));
    if (n != 3) return CD_FAIL(err, EMODEL, "expected 3 numbers, found %zu", n);
    for (size_t i = 0; i < n; i++) CD_TRY(ubj_integer(&at, 0, 9999, &v, err));
    return CDMPP_OK;
}

static cdmpp_status read_file(cd_ubj file, size_t width, cd_tree_inference *f, cdmpp_err *err) {
    cd_ubj_member m[] = {{.key = "learner", .kind = '{'}, {.key = "version", .kind = '['}};
    CD_TRY(ubj_whole(file, err));
    CD_TRY(ubj_object(file, m, N_OF(m), err));
    AT(err, m[1].key, check_version(m[1].at, err));
    return cd_err_key(err, read_learner(m[0].at, width, f, err), m[0].key);
}

cdmpp_status cd_tree_inference_read(const void *ubj, size_t n, size_t width,
                                    cd_tree_inference **out, cdmpp_err *err) {
    cd_tree_inference *f = cd_mem_zalloc(1, sizeof *f);
    *out = NULL;
    if (!f) return CD_FAIL(err, ENOMEM, "trees");
    cdmpp_status st = read_file((cd_ubj){ubj, n}, width, f, err);
    if (!st) st = cd_tree_walk_new(f, width, &f->fast, err);
    if (!st) st = cd_tree_bytes_new(f, width, &f->bytes, err);
    if (st) cd_tree_inference_free(f);
    else *out = f;
    return st;
}

/* ---- what no answer needs ---- */
/* Goes into the first of the n members of an object. */
static cdmpp_status into(cd_ubj *at, cd_ubj_member *m, size_t n, cdmpp_err *err) {
    CD_TRY(ubj_object(*at, m, n, err));
    *at = m[0].at;
    return CDMPP_OK;
}

static cdmpp_status into_trees(cd_ubj *at, cdmpp_err *err) {
    cd_ubj_member file[] = {{.key = "learner", .kind = '{'}, {.key = "version", .kind = '['}};
    cd_ubj_member learner[] = {
        {.key = "gradient_booster", .kind = '{'},    {.key = "attributes", .kind = '{'},
        {.key = "feature_names", .kind = '['},       {.key = "feature_types", .kind = '['},
        {.key = "learner_model_param", .kind = '{'}, {.key = "objective", .kind = '{'}};
    cd_ubj_member booster[] = {{.key = "model", .kind = '{'}, {.key = "name", .kind = 'S'}};
    cd_ubj_member model[] = {{.key = "trees", .kind = '['},
                             {.key = "gbtree_model_param", .kind = '{'},
                             {.key = "tree_info", .kind = '['},
                             {.key = "iteration_indptr", .kind = '[', .optional = true}};
    CD_TRY(ubj_whole(*at, err));
    CD_TRY(into(at, file, N_OF(file), err));
    CD_TRY(into(at, learner, N_OF(learner), err));
    CD_TRY(into(at, booster, N_OF(booster), err));
    return into(at, model, N_OF(model), err);
}

cdmpp_status cd_tree_inference_forget(void *ubj, size_t n, cdmpp_err *err) {
    static const int forgotten[] = {LOSS, HESSIAN, WEIGHT};
    unsigned char *bytes = ubj;
    cd_ubj at = {ubj, n};
    size_t n_tree;
    CD_TRY(into_trees(&at, err));
    CD_TRY(ubj_list(&at, &n_tree, err));
    for (size_t k = 0; k < n_tree; k++) {
        tree t;
        CD_TRY(open_tree(at, &t, err));
        for (size_t i = 0; i < N_OF(forgotten); i++)
            memset(bytes + (t.data[forgotten[i]] - bytes), 0, 4 * t.n);
        ubj_pass(&at);
    }
    return CDMPP_OK;
}
