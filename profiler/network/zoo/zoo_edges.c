/* A file of edges, and the graph convolution over them. A line is an edge: two names of vertices,
 * by spaces, tabs or a comma, and if it has one a weight.
 *
 *   a b      ─┐  both ways, each once,   vertices in order of their degrees, in buckets of
 *   b c 0.5   ├─ with a loop at each ──> 1 2 4 8 ... edges: Gather of a bucket's rows (vertices,
 *   # words  ─┘  vertex                  edges, features) x weights, summed over the edges
 *
 * Kipf's weights: w / sqrt(degree of one x degree of the other), degrees with the loop. A loop in
 * the file has its own weight, others 1. Edges that a vertex has fewer than its bucket have weight
 * 0 and read the vertex itself, so at most half of what is read is for nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/io/io.h"
#include "profiler/network/zoo/zoo_internal.h"

enum { MOST_EDGES = 1 << 20, MOST_BYTES = 1 << 28 };
#define MOST_WEIGHT 1e30 /* a float32, and the sum of all is one, too */

void cd_zoo_edges_free(cd_zoo_edges *e) {
    cd_arena_free(&e->arena);
    *e = (cd_zoo_edges){0};
}

/* ---- text ---- */

typedef struct {
    cd_str name;
    uint32_t place; /* 2 x edge + end */
} end_of_edge;

typedef struct {
    uint32_t from, to;
    double weight;
} pair;

static bool parts(char c) { return c == ' ' || c == '\t' || c == ',' || c == ';' || c == '\r'; }

/* The next word of a line; n 0: none. */
static cd_str word(const char **p, const char *end) {
    while (*p < end && parts(**p)) ++*p;
    const char *from = *p;
    while (*p < end && !parts(**p)) ++*p;
    return (cd_str){from, (size_t)(*p - from)};
}

static cdmpp_status weight_of(cd_str s, double *out, cdmpp_err *err) {
    char text[64], *end;
    *out = 1;
    if (!s.n) return CDMPP_OK;
    if (s.n >= sizeof text) return CD_FAIL(err, EPARSE, "expected a weight behind two vertices");
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    *out = strtod(text, &end);
    if (*end || !isfinite(*out) || !(*out > 0))
        return CD_FAIL(err, EPARSE, "expected a weight above 0 behind two vertices, found '%s'",
                       text);
    return *out <= MOST_WEIGHT ? CDMPP_OK
                               : CD_FAIL(err, ERANGE, "expected a weight of at most %g, found '%s'",
                                         MOST_WEIGHT, text);
}

/* One line; *n grows by one where it is an edge. */
static cdmpp_status line_of(const char *p, const char *end, end_of_edge *name, pair *edge,
                            uint32_t *n, cdmpp_err *err) {
    const cd_str a = word(&p, end), b = word(&p, end), w = word(&p, end), more = word(&p, end);
    if (!a.n || a.p[0] == '#' || a.p[0] == '%') return CDMPP_OK;
    if (!b.n || more.n)
        return CD_FAIL(err, EPARSE, "expected two vertices, and a weight or nothing");
    if (*n == MOST_EDGES) return CD_FAIL(err, ERANGE, "more than %d edges", MOST_EDGES);
    CD_TRY(weight_of(w, &edge[*n].weight, err));
    name[2 * *n] = (end_of_edge){a, 2 * *n};
    name[2 * *n + 1] = (end_of_edge){b, 2 * *n + 1};
    ++*n;
    return CDMPP_OK;
}

static int by_name(const void *a, const void *b) {
    const end_of_edge *x = a, *y = b;
    const int c = memcmp(x->name.p, y->name.p, x->name.n < y->name.n ? x->name.n : y->name.n);
    if (c || x->name.n != y->name.n) return c ? c : x->name.n < y->name.n ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static bool same_name(const end_of_edge *a, const end_of_edge *b) {
    return a->name.n == b->name.n && !memcmp(a->name.p, b->name.p, a->name.n);
}

/* ---- names of columns ---- */
static bool is_number(cd_str s) {
    char text[32], *end;
    if (!s.n || s.n >= sizeof text) return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    (void)strtod(text, &end);
    return !*end;
}

static bool is_pair(cd_str a, cd_str b) {
    static const char *const names[][2] = {
        {"source", "target"}, {"src", "dst"},       {"from", "to"}, {"head", "tail"},
        {"node1", "node2"},   {"node_1", "node_2"}, {"u", "v"},     {"fromnodeid", "tonodeid"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (a.n == strlen(names[i][0]) && b.n == strlen(names[i][1]) &&
            !strncasecmp(a.p, names[i][0], a.n) && !strncasecmp(b.p, names[i][1], b.n))
            return true;
    return false;
}

/* The first edge is no edge where it has two names that columns often have and no other edge knows
 * them, or is words where all others are numbers. */
static bool is_header(const end_of_edge *name, uint32_t n) {
    const cd_str a = name[0].name, b = name[1].name;
    bool again = false, numbers = !is_number(a) && !is_number(b);
    for (uint32_t k = 2; k < 2 * n; k++) {
        again |= cd_str_eq(name[k].name, a) || cd_str_eq(name[k].name, b);
        numbers &= is_number(name[k].name);
    }
    return n > 1 && !again && (numbers || is_pair(a, b));
}

static cdmpp_status refuse_header(cd_str a, cd_str b, long line, cdmpp_err *err) {
    const int n = cd_str_shown(a, 40), m = cd_str_shown(b, 40);
    const cdmpp_status st = CD_FAIL(err, ESCHEMA,
                                    "expected two vertices, found what looks like names of "
                                    "columns: '%.*s' and '%.*s'; put # before them",
                                    n, a.p, m, b.p);
    return cd_err_at(err, st, NULL, line);
}

/* Vertices have the numbers in which they first appear. first (2n): of each end the place where its
 * name stands first. */
static uint32_t number(end_of_edge *name, uint32_t n, uint32_t *first, pair *edge) {
    uint32_t n_vertex = 0;
    qsort(name, (size_t)2 * n, sizeof *name, by_name);
    for (uint32_t k = 0, at = 0; k < 2 * n; k++) {
        if (!same_name(&name[k], &name[at])) at = k;
        first[name[k].place] = name[at].place;
    }
    for (uint32_t k = 0; k < 2 * n; k++) {
        uint32_t *v = k % 2 ? &edge[k / 2].to : &edge[k / 2].from;
        const uint32_t f = first[k];
        if (f == k) *v = n_vertex++;
        else *v = f % 2 ? edge[f / 2].to : edge[f / 2].from;
    }
    return n_vertex;
}

static int by_ends(const void *a, const void *b) {
    const pair *x = a, *y = b;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Both ways, once each: of two lines of one edge the lesser weight stands. With loops, of weight 1
 * where no line gives one, and weights by degrees. */
static cdmpp_status connect(pair *edge, uint32_t n, cd_zoo_edges *e, cdmpp_err *err) {
    uint32_t m = 0;
    for (uint32_t k = 0; k < n; k++) {
        edge[n + k] = (pair){edge[k].to, edge[k].from, edge[k].weight};
    }
    for (uint32_t v = 0; v < e->n_vertex; v++) edge[2 * n + v] = (pair){v, v, INFINITY};
    const size_t all = (size_t)2 * n + e->n_vertex;
    qsort(edge, all, sizeof *edge, by_ends);
    for (size_t k = 0; k < all; k++) {
        if (!m || by_ends(&edge[m - 1], &edge[k])) edge[m++] = edge[k];
        else edge[m - 1].weight = fmin(edge[m - 1].weight, edge[k].weight);
    }
    for (uint32_t k = 0; k < m; k++)
        if (isinf(edge[k].weight)) edge[k].weight = 1; /* no line gives this loop */
    double *degree = CD_NEWN(&e->arena, double, (size_t)e->n_vertex + 1);
    e->first = CD_NEWN(&e->arena, uint32_t, (size_t)e->n_vertex + 1);
    e->from = CD_NEWN(&e->arena, uint32_t, (size_t)m + 1);
    e->weight = CD_NEWN(&e->arena, double, (size_t)m + 1);
    if (!degree || !e->first || !e->from || !e->weight) return CD_FAIL(err, ENOMEM, "%u edges", m);
    for (uint32_t k = 0; k < m; k++)
        degree[edge[k].to] += edge[k].weight, e->first[edge[k].to + 1]++;
    for (uint32_t v = 0; v < e->n_vertex; v++) e->first[v + 1] += e->first[v];
    for (uint32_t k = 0; k < m; k++) {
        e->from[k] = edge[k].from;
        e->weight[k] = edge[k].weight / (sqrt(degree[edge[k].to]) * sqrt(degree[edge[k].from]));
    }
    e->n = m;
    return CDMPP_OK;
}

cdmpp_status cd_zoo_edges_parse(const char *text, size_t len, cd_zoo_edges *e, cdmpp_err *err) {
    size_t lines = 1;
    long at = 0, head = 0;
    uint32_t n = 0;
    *e = (cd_zoo_edges){0};
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    if (lines > MOST_EDGES + 1) lines = MOST_EDGES + 1;
    end_of_edge *name = CD_NEWN(&e->arena, end_of_edge, 2 * lines);
    uint32_t *first = CD_NEWN(&e->arena, uint32_t, 2 * lines);
    pair *edge = CD_NEWN(&e->arena, pair, 4 * lines);
    if (!name || !first || !edge) return CD_FAIL(err, ENOMEM, "%zu edges", lines);
    for (const char *p = text, *end = text + len; p < end; p++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const cdmpp_status st = line_of(p, stop ? stop : end, name, edge, &n, err);
        at++;
        if (n == 1 && !head) head = at;
        if (st) return cd_err_add_place(err, NULL, at), st;
        if (!stop) break;
        p = stop;
    }
    if (!n) return CD_FAIL(err, ENODATA, "no edges: expected lines of two vertices");
    if (is_header(name, n)) return refuse_header(name[0].name, name[1].name, head, err);
    e->n_vertex = number(name, n, first, edge);
    return connect(edge, n, e, err);
}

static cdmpp_status read_edges(const char *path, cd_zoo_edges *e, cdmpp_err *err) {
    char *text = NULL;
    size_t n = 0;
    *e = (cd_zoo_edges){0};
    cdmpp_status st = cd_file_read(path, MOST_BYTES, &text, &n, err);
    if (!st) st = cd_zoo_edges_parse(text, n, e, err);
    if (st) cd_err_add_place(err, path, 0);
    cd_mem_free(text);
    return st;
}

/* ---- the network ---- */

/* Vertices whose degrees are above `width` / 2 and at most `width`, from `at` on in `order`: their
 * rows of x (batch, vertices, features), summed over edges. place: of each vertex in x; NULL: its
 * number. */
static uint32_t bucket(cd_zoo_builder *z, const cd_zoo_edges *e, const uint32_t *order, int64_t n,
                       int64_t width, const uint32_t *place, uint32_t x) {
    int64_t *index = CD_NEWN(&z->g->arena, int64_t, (size_t)(n * width));
    double *weight = CD_NEWN(&z->g->arena, double, (size_t)(n * width));
    if (!z->st && (!index || !weight)) z->st = CD_FAIL(z->err, ENOMEM, "a bucket of edges");
    if (z->st) return CD_GRAPH_NONE;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++) {
            const uint32_t v = order[i], at = e->first[v] + (uint32_t)k;
            const bool is = at < e->first[v + 1];
            const uint32_t from = is ? e->from[at] : v;
            index[i * width + k] = place ? place[from] : from;
            weight[i * width + k] = is ? e->weight[at] : 0;
        }
    const cd_graph_attr axis = cd_zoo_attr_int("axis", 1), keep = cd_zoo_attr_int("keepdims", 0);
    const uint32_t rows = cd_zoo_op(
        z, "Gather", 2,
        (const uint32_t[]){x, cd_zoo_const(z, CD_I64, 2, (const int64_t[]){n, width}, index, NULL)},
        1, &axis);
    const uint32_t each = cd_zoo_binary(
        z, "Mul", rows, cd_zoo_const(z, CD_F32, 3, (const int64_t[]){n, width, 1}, NULL, weight));
    return cd_zoo_op(z, "ReduceSum", 2,
                     (const uint32_t[]){each, cd_zoo_const_ints(z, 1, (const int64_t[]){2})}, 1,
                     &keep);
}

static int64_t width_of(const cd_zoo_edges *e, uint32_t v) {
    int64_t w = 1;
    while (w < (int64_t)(e->first[v + 1] - e->first[v])) w *= 2;
    return w;
}

/* A X, vertices of the result in `order`. */
static uint32_t aggregate(cd_zoo_builder *z, const cd_zoo_edges *e, const uint32_t *order,
                          const uint32_t *place, uint32_t x) {
    uint32_t part[32], n = 0;
    for (uint32_t at = 0; at < e->n_vertex;) {
        const int64_t width = width_of(e, order[at]);
        uint32_t end = at;
        while (end < e->n_vertex && width_of(e, order[end]) == width) end++;
        part[n++] = bucket(z, e, order + at, (int64_t)end - at, width, place, x);
        at = end;
    }
    return n > 1 ? cd_zoo_concat(z, n, part, 1) : part[0];
}

/* Vertices by width, in each width by number. place[v]: where it stands. */
static cdmpp_status sort_vertices(cd_zoo_builder *z, const cd_zoo_edges *e, uint32_t **order,
                                  uint32_t **place) {
    uint32_t n = 0;
    *order = CD_NEWN(&z->g->arena, uint32_t, (size_t)e->n_vertex + 1);
    *place = CD_NEWN(&z->g->arena, uint32_t, (size_t)e->n_vertex + 1);
    if (!*order || !*place) return CD_FAIL(z->err, ENOMEM, "%u vertices", e->n_vertex);
    for (int64_t width = 1; n < e->n_vertex; width *= 2)
        for (uint32_t v = 0; v < e->n_vertex; v++)
            if (width_of(e, v) == width) (*order)[(*place)[v] = n] = v, n++;
    return CDMPP_OK;
}

static cdmpp_status build(cd_zoo_builder *z, const cd_zoo_edges *e) {
    uint32_t *order, *place;
    CD_TRY(sort_vertices(z, e, &order, &place));
    int64_t *back = CD_NEWN(&z->g->arena, int64_t, (size_t)e->n_vertex + 1);
    if (!back) return CD_FAIL(z->err, ENOMEM, "%u vertices", e->n_vertex);
    for (uint32_t v = 0; v < e->n_vertex; v++) back[v] = place[v];
    const cd_graph_attr axis = cd_zoo_attr_int("axis", 1);
    const uint32_t x = cd_zoo_input(z, "features", CD_F32, 3,
                                    (const int64_t[]){z->batch, e->n_vertex, CD_ZOO_GCN_FEATURES});
    const uint32_t h =
        cd_zoo_relu(z, aggregate(z, e, order, NULL, cd_zoo_linear(z, x, CD_ZOO_GCN_HIDDEN)));
    const uint32_t y = aggregate(z, e, order, place, cd_zoo_linear(z, h, CD_ZOO_GCN_CLASSES));
    cd_zoo_result(z, cd_zoo_op(z, "Gather", 2,
                               (const uint32_t[]){y, cd_zoo_const_ints(z, e->n_vertex, back)}, 1,
                               &axis));
    return z->st;
}

void cd_zoo_gcn_edges(cd_zoo_builder *z, const char *path) {
    cd_zoo_edges e;
    cdmpp_status st = read_edges(path, &e, z->err);
    if (!st) st = build(z, &e);
    if (!z->st) z->st = st;
    cd_zoo_edges_free(&e);
}
