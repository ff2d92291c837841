/* Reads what a walk needs of XGBoost's UBJ form. Whatever is not understood here is left to XGBoost, so nothing can be misread.
 *
 *   {learner: {gradient_booster: {name: "gbtree", model: {trees: [{left_children: [..], right_children,
 *    split_indices, split_conditions, default_left, split_type}, ...], ...}},
 *    learner_model_param: {base_score: "0E0", num_class: "0", num_feature: "513", ...}, objective: {name: "reg:squarederror"}}}
 *
 *   UBJ: {key value ... }, a key is a length and bytes; S length bytes; [#count items, [$type#count data, or
 *   [ items ]; numbers big-endian after i U I l L d D; T F Z. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learner/trees/tree_inference_internal.h"

typedef struct {
    const unsigned char *p;
    size_t n;
} rest;

static bool take(rest *r, size_t n, const unsigned char **out) {
    if (n > r->n) return false;
    *out = r->p;
    r->p += n;
    r->n -= n;
    return true;
}

static bool peek(const rest *r, char c) { return r->n && *r->p == (unsigned char)c; }

static size_t size_of(unsigned char type) {
    switch (type) {
    case 'i': case 'U': return 1;
    case 'I': return 2;
    case 'l': case 'd': return 4;
    case 'L': case 'D': return 8;
    default: return 0;
    }
}

static uint64_t big_endian(const unsigned char *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v = v << 8 | p[i];
    return v;
}

/* A length: marker and number. Negative ones come out huge and fail later. */
static bool length(rest *r, size_t *out) {
    const unsigned char *type, *p;
    if (!take(r, 1, &type) || *type == 'd' || *type == 'D') return false;
    const size_t n = size_of(*type);
    if (!n || !take(r, n, &p)) return false;
    *out = (size_t)big_endian(p, n);
    return true;
}

static bool bytes(rest *r, const unsigned char **p, size_t *n) { return length(r, n) && take(r, *n, p); }

/* Behind '[': optional type and count. A count must come with a type, and types are numbers. */
static bool array_head(rest *r, unsigned char *type, size_t *count, bool *counted) {
    const unsigned char *p;
    *type = 0;
    if (peek(r, '$')) {
        if (!take(r, 2, &p)) return false;
        *type = p[1];
    }
    *counted = peek(r, '#');
    return *counted ? take(r, 1, &p) && length(r, count) : !*type;
}

static bool skip(rest *r, int depth);

static bool skip_array(rest *r, int depth) {
    unsigned char type;
    const unsigned char *p;
    size_t n = SIZE_MAX;
    bool counted;
    if (!array_head(r, &type, &n, &counted)) return false;
    if (type) return size_of(type) && n <= r->n / size_of(type) && take(r, n * size_of(type), &p);
    for (size_t i = 0; i < n; i++) {
        if (!counted && peek(r, ']')) return take(r, 1, &p);
        if (!skip(r, depth + 1)) return false;
    }
    return true;
}

/* One value. */
static bool skip(rest *r, int depth) {
    const unsigned char *type, *p;
    size_t n;
    if (depth > 32 || !take(r, 1, &type)) return false;
    if (*type == 'T' || *type == 'F' || *type == 'Z') return true;
    if (*type == 'S') return bytes(r, &p, &n);
    if (*type == '[') return skip_array(r, depth);
    if (*type != '{') return size_of(*type) && take(r, size_of(*type), &p);
    while (!peek(r, '}'))
        if (!bytes(r, &p, &n) || !skip(r, depth + 1)) return false;
    return take(r, 1, &p);
}

/* Finds the value of a member; `object` stands at '{'. */
static bool member(rest object, const char *key, rest *out) {
    const unsigned char *p;
    size_t n;
    if (!peek(&object, '{') || !take(&object, 1, &p)) return false;
    while (!peek(&object, '}')) {
        if (!bytes(&object, &p, &n)) return false;
        if (n == strlen(key) && !memcmp(p, key, n)) {
            *out = object;
            return true;
        }
        if (!skip(&object, 0)) return false;
    }
    return false;
}

static bool text(rest r, char *buf, size_t cap) {
    const unsigned char *p;
    size_t n;
    if (!peek(&r, 'S') || !take(&r, 1, &p) || !bytes(&r, &p, &n) || n >= cap) return false;
    memcpy(buf, p, n);
    buf[n] = '\0';
    return true;
}

/* A typed array of a member. */
static bool numbers(rest object, const char *key, unsigned char want, const unsigned char **data, size_t *n) {
    rest r;
    const unsigned char *p;
    unsigned char type;
    bool counted;
    if (!member(object, key, &r) || !peek(&r, '[') || !take(&r, 1, &p) || !array_head(&r, &type, n, &counted)) return false;
    return type == want && counted && *n <= r.n / size_of(want) && take(&r, *n * size_of(want), data);
}

/* ---- trees ---- */
typedef struct {
    const unsigned char *left, *right, *column, *cut, *missing_left, *split;
    size_t n;
} tree;

static bool open_tree(rest at, tree *t) {
    size_t n[5];
    if (!numbers(at, "left_children", 'l', &t->left, &t->n) || !numbers(at, "right_children", 'l', &t->right, &n[0]) ||
        !numbers(at, "split_indices", 'l', &t->column, &n[1]) || !numbers(at, "split_conditions", 'd', &t->cut, &n[2]) ||
        !numbers(at, "default_left", 'U', &t->missing_left, &n[3]) || !numbers(at, "split_type", 'U', &t->split, &n[4]))
        return false;
    for (int k = 0; k < 5; k++)
        if (n[k] != t->n) return false;
    return t->n > 0;
}

static float real(const unsigned char *p) {
    const uint32_t w = (uint32_t)big_endian(p, 4);
    float f;
    memcpy(&f, &w, sizeof f);
    return f;
}

/* Node i and what is below, copied behind the nodes there are; returns false when it is not a tree
 * or not of our kind. */
static bool copy(cd_tree_inference *f, const tree *t, size_t i, size_t to, size_t width, size_t limit, uint32_t depth, uint32_t *deepest) {
    cd_tree_inference_node *n = &f->node[to];
    const uint32_t left = (uint32_t)big_endian(t->left + 4 * i, 4), right = (uint32_t)big_endian(t->right + 4 * i, 4);
    if (depth > *deepest) *deepest = depth;
    *n = (cd_tree_inference_node){real(t->cut + 4 * i), 0, {(uint32_t)to, (uint32_t)to}};
    if (left == UINT32_MAX) return isfinite(n->cut);
    const uint32_t column = (uint32_t)big_endian(t->column + 4 * i, 4);
    if (left >= t->n || right >= t->n || column >= width || t->split[i] || depth >= CD_TREE_INFERENCE_MAX_DEPTH) return false;
    if (f->n_node + 2 > limit) return false; /* more nodes than it has: it goes in circles */
    const size_t kid = f->n_node;
    f->n_node += 2;
    n->column = column | (t->missing_left[i] ? 0 : CD_TREE_INFERENCE_MISSING_RIGHT);
    n->kid[0] = (uint32_t)kid;
    n->kid[1] = (uint32_t)kid + 1;
    return copy(f, t, left, kid, width, limit, depth + 1, deepest) && copy(f, t, right, kid + 1, width, limit, depth + 1, deepest);
}

/* Calls of open_tree for all items of `trees`: first to count the nodes, then to copy them. */
static bool each_tree(rest trees, cd_tree_inference *f, size_t width, size_t *n_node) {
    const unsigned char *p;
    unsigned char type;
    size_t n = 0;
    bool counted;
    tree t;
    if (!peek(&trees, '[') || !take(&trees, 1, &p) || !array_head(&trees, &type, &n, &counted) || !counted || type) return false;
    *n_node = 0;
    for (size_t k = 0; k < n; k++) {
        if (!open_tree(trees, &t) || !skip(&trees, 0)) return false;
        *n_node += t.n;
        if (!f->node) continue;
        const size_t limit = f->n_node + t.n;
        f->root[k] = (uint32_t)f->n_node;
        f->depth[k] = 0;
        if (!copy(f, &t, 0, f->n_node++, width, limit, 0, &f->depth[k])) return false;
    }
    f->n_tree = n;
    return *n_node < UINT32_MAX;
}

/* A text of an object's member that is this. */
static bool says(rest object, const char *key, const char *want) {
    char have[24];
    rest v;
    return member(object, key, &v) && text(v, have, sizeof have) && !strcmp(have, want);
}

/* One squared error over `width` columns: what a leaf says is added up and not bent afterwards. */
static bool is_plain(rest learner, rest param, size_t width) {
    char columns[24];
    rest objective, target;
    snprintf(columns, sizeof columns, "%zu", width);
    return member(learner, "objective", &objective) && says(objective, "name", "reg:squarederror") && says(param, "num_feature", columns) &&
           says(param, "num_class", "0") && (!member(param, "num_target", &target) || says(param, "num_target", "1"));
}

/* The trees are gone through twice: once to count nodes, once to copy them. */
static bool read_forest(rest file, size_t width, cd_tree_inference *f) {
    rest learner, booster, model, trees, param, v;
    char base[32], *end;
    size_t n_node;
    if (!member(file, "learner", &learner) || !member(learner, "gradient_booster", &booster) || !says(booster, "name", "gbtree") ||
        !member(booster, "model", &model) || !member(model, "trees", &trees) || !member(learner, "learner_model_param", &param) ||
        !is_plain(learner, param, width) || !member(param, "base_score", &v) || !text(v, base, sizeof base))
        return false;
    f->base = strtof(base, &end);
    if (end == base || *end || !isfinite(f->base) || !each_tree(trees, f, width, &n_node)) return false;
    f->root = cd_mem_zalloc(2 * f->n_tree + 1, sizeof *f->root);
    f->node = cd_mem_zalloc(n_node + 1, sizeof *f->node);
    f->oom = !f->root || !f->node;
    if (f->oom) return false;
    f->depth = f->root + f->n_tree;
    return each_tree(trees, f, width, &n_node);
}

cdmpp_status cd_tree_inference_read(const void *ubj, size_t n, size_t width, cd_tree_inference **out, cdmpp_err *err) {
    cd_tree_inference *f = cd_mem_zalloc(1, sizeof *f);
    *out = NULL;
    if (!f) return CD_FAIL(err, ENOMEM, "trees");
    rest whole = {ubj, n}; /* XGBoost decides about a file that is cut short or goes on */
    if (skip(&whole, 0) && !whole.n && read_forest((rest){ubj, n}, width, f)) {
        cdmpp_status st = cd_tree_walk_new(f, width, &f->fast, err);
        if (!st) st = cd_tree_bytes_new(f, width, &f->bytes, err);
        if (st) cd_tree_inference_free(f);
        else *out = f;
        return st;
    }
    const bool oom = f->oom;
    cd_tree_inference_free(f);
    return oom ? CD_FAIL(err, ENOMEM, "trees of %zu bytes", n) : CDMPP_OK;
}
