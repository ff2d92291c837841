/* The facts of a program: read the nest, cut it into digits, ask each part of the room. Also the
 * table of columns. */
#include <math.h>
#include <string.h>

#include "features/analytic/analytic_internal.h"

/* The tree of loops and stores: every loop variable cut into its digits, every address a sum of
 * strides over them. */

/* ---- digits ---- */

/* Cuts that divide each other in a chain, the smallest first; the others are approximated. */
static void chain(cd_an_var *v) {
    uint32_t n = 0;
    int64_t last = 1;
    for (uint32_t i = 0; i < v->n_cut; i++) {
        if (v->cut[i] % last) continue;
        last = v->cut[n++] = v->cut[i];
    }
    v->n_cut = n;
    v->n_digit = n + 1;
}

/* Digit j, the innermost is 0: variable / lo % n. */
static int64_t digit_lo(const cd_an_var *v, uint32_t j) { return j ? v->cut[j - 1] : 1; }
static int64_t digit_n(const cd_an_var *v, uint32_t j) {
    return j < v->n_cut ? v->cut[j] / digit_lo(v, j)
                        : (v->extent + digit_lo(v, j) - 1) / digit_lo(v, j);
}
static int32_t digit_node(const cd_an_var *v, uint32_t j) {
    return v->node + (int32_t)(v->n_digit - 1 - j);
}

/* ---- accesses ---- */

static void put_term(cd_an *w, cd_an_access *a, int64_t stride, int64_t n, int32_t node,
                     int32_t dim) {
    for (uint32_t i = 0; i < a->n; i++)
        if (a->t[i].node == node) {
            a->t[i].stride += stride;
            return;
        }
    if (a->n == CD_AN_TERMS) w->inexact++;
    else a->t[a->n++] = (cd_an_term){stride, n, 0, node, (uint8_t)dim};
}

/* A slice that is no run of digits moves as the digit in which it begins. */
static void put_slice(cd_an *w, cd_an_access *a, const cd_an_slice *s) {
    const cd_an_var *v = &w->var[s->var];
    if (!v->n_cut && s->lo == 1 && s->n == v->extent) { /* the variable itself, as nearly all are */
        put_term(w, a, cd_an_mul(s->k, 1), s->n, v->node, s->dim);
        return;
    }
    const int64_t end = s->n >= (v->extent + s->lo - 1) / s->lo ? INT64_MAX : s->lo * s->n;
    bool begins = false, ends = end == INT64_MAX;
    uint32_t at = 0;
    for (uint32_t j = 0; j < v->n_digit; j++) {
        begins |= digit_lo(v, j) == s->lo;
        ends |= digit_lo(v, j) == end;
        if (digit_lo(v, j) <= s->lo) at = j;
    }
    if (!begins || !ends) {
        w->inexact++;
        put_term(w, a, s->k, s->n, digit_node(v, at), s->dim);
        return;
    }
    for (uint32_t j = 0; j < v->n_digit; j++)
        if (digit_lo(v, j) >= s->lo && digit_lo(v, j) < end)
            put_term(w, a, cd_an_mul(s->k, digit_lo(v, j) / s->lo), digit_n(v, j), digit_node(v, j),
                     s->dim);
}

/* Strides above 0, rising. */
static void order_terms(cd_an_access *a) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        cd_an_term t = a->t[i];
        if (!t.stride || t.n <= 1) continue;
        if (t.stride < 0) {
            a->c += cd_an_mul(t.stride, t.n - 1);
            t.stride = -t.stride;
        }
        uint32_t k = n++;
        for (; k > 0 && a->t[k - 1].stride > t.stride; k--) a->t[k] = a->t[k - 1];
        a->t[k] = t;
    }
    a->n = n;
}

/* The order of the loops, if the terms reach every element once. */
static void pack(const cd_an_tensor *t, cd_an_access *a) {
    int64_t all = t->elem;
    for (uint32_t i = 0; i < a->n; i++) all = cd_an_mul(all, a->t[i].n);
    if ((double)all != t->bytes || a->c) return;
    for (uint32_t i = 1; i < a->n; i++) { /* innermost first */
        const cd_an_term x = a->t[i];
        uint32_t k = i;
        for (; k > 0 && a->t[k - 1].node < x.node; k--) a->t[k] = a->t[k - 1];
        a->t[k] = x;
    }
    int64_t stride = t->elem;
    for (uint32_t i = 0; i < a->n; i++) {
        a->t[i].stride = stride;
        stride *= a->t[i].n;
    }
}

void cd_facts_tree_find_out(const cd_an_tensor *t, cd_an_access *a) {
    for (uint32_t d = 0; d < t->rank && a->n_dim < 4; d++) {
        int64_t reach = 0;
        for (uint32_t i = 0; i < a->n; i++)
            if (a->t[i].dim == d) reach += a->t[i].reach;
        if (t->stride[d] <= 0 || reach / t->stride[d] < t->extent[d]) continue;
        a->out_dim[a->n_dim].dim = (uint8_t)d;
        a->out_dim[a->n_dim].stride = t->stride[d];
        a->out_dim[a->n_dim++].extent = t->extent[d];
    }
}

/* An access as a sum over nodes. */
static void place(cd_an *w, const cd_an_raw *raw, cd_an_access *out) {
    const cd_an_tensor *t = &w->tensor[raw->tensor];
    if (raw->copy) {
        *out = w->acc[raw->first];
        out->write = false;
        out->copy = true;
        return;
    }
    cd_an_term scratch[CD_AN_TERMS];
    *out = (cd_an_access){.tensor = raw->tensor,
                          .write = raw->write,
                          .chance = raw->chance,
                          .gather = raw->gather,
                          .elem = t->elem,
                          .c = raw->c,
                          .t = scratch};
    for (uint32_t i = 0; i < raw->n; i++) put_slice(w, out, &raw->t[i]);
    order_terms(out);
    out->t = cd_arena_alloc(&w->arena, out->n, sizeof *out->t);
    if (out->t) memcpy(out->t, scratch, out->n * sizeof *scratch);
    else w->oom = !(out->n = 0);
    for (uint32_t i = 0; i < out->n; i++) out->nodes |= (uint64_t)1 << (out->t[i].node & 63);
    if (t->pack) pack(t, out);
    for (uint32_t i = 0; i < out->n; i++)
        out->t[i].reach = cd_an_mul(out->t[i].stride, out->t[i].n - 1);
    if (!t->pack) cd_facts_tree_find_out(t, out);
}

/* ---- neighbours ---- */

static bool same_terms(const cd_an_access *a, const cd_an_access *b) {
    uint32_t i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a->n && a->t[i].node == CD_AN_HERE) i++;
        if (i == a->n || j == b->n) return i == a->n && j == b->n;
        if (a->t[i].stride != b->t[j].stride || a->t[i].n != b->t[j].n ||
            a->t[i].node != b->t[j].node)
            return false;
    }
}

/* b lies `step` after the last of a's neighbours, or is its first one: a becomes a row of them. */
static bool join(cd_an *w, cd_an_access *a, cd_an_access *b) {
    cd_an_term *here = NULL;
    const int64_t step = b->c - a->c;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->t[i].node == CD_AN_HERE) here = &a->t[i];
    if (here) {
        if (step != here->reach + here->stride) return false;
        here->reach = step;
        here->n++;
        return true;
    }
    cd_an_term *t = cd_arena_alloc(&w->arena, a->n + 1, sizeof *t);
    if (!t) return !(w->oom = true);
    uint32_t at = 0;
    const int64_t stride = step < 0 ? -step : step;
    while (at < a->n && a->t[at].stride < stride) at++;
    memcpy(t, a->t, at * sizeof *t);
    t[at] = (cd_an_term){stride, 2, stride, CD_AN_HERE, UINT8_MAX};
    memcpy(t + at + 1, a->t + at, (a->n - at) * sizeof *t);
    a->t = t;
    a->n++;
    if (step < 0) a->c = b->c;
    return true;
}

/* Loads of a store that differ by a number: X[i] + X[i + 1] + X[i + 2]. Those that form no row
 * count as if they lay apart or alike. */
static void find_neighbours(cd_an *w, uint32_t from, uint32_t to) {
    for (uint32_t j = from + 1; j < to; j++) {
        cd_an_access *b = &w->acc[j];
        for (uint32_t i = from; i < j && !b->inside && !b->copy && !b->write; i++) {
            cd_an_access *a = &w->acc[i];
            if (a->tensor != b->tensor || a->write || a->copy || a->inside || a->c == b->c ||
                !same_terms(a, b))
                continue;
            b->inside = join(w, a, b);
        }
    }
}

/* ---- nodes ---- */

typedef struct {
    cd_an *w;
    uint32_t raw;
} builder;

/* All nodes, so that they need not grow. */
static bool reserve(cd_an *w) {
    w->cap_node = 1;
    for (int32_t k = 0; k < w->ast->n; k++) w->cap_node += w->ast->node[k].kind == CD_AST_STORE;
    for (uint32_t v = 0; v < w->n_var; v++) w->cap_node += w->var[v].n_cut + 1;
    w->node = cd_arena_alloc(&w->arena, w->cap_node, sizeof *w->node);
    return w->node != NULL;
}

static cd_an_node *open_node(cd_an *w, cd_an_kind kind, int32_t parent, int32_t ast) {
    if (CD_GROW_IN(&w->arena, w->node, (uint32_t)w->n_node, w->cap_node)) {
        w->oom = true;
        return NULL;
    }
    cd_an_node *n = &w->node[w->n_node++];
    *n = (cd_an_node){
        .kind = (uint8_t)kind, .parent = parent, .ast = ast, .extent = 1, .only = -1, .var = -1};
    return n;
}

static void build(builder *b, int32_t from, int32_t to, int32_t parent, double runs,
                  int64_t unroll);

static void close_node(builder *b, int32_t k) {
    b->w->node[k].end = b->w->n_node;
    b->w->node[k].acc1 = b->raw;
}

/* A loop: one node for each digit, outermost first. */
static void build_loop(builder *b, int32_t k, int32_t parent, double runs, int64_t unroll) {
    cd_an *w = b->w;
    const cd_ast_node *n = &w->ast->node[k];
    const int32_t var = w->var_of[n->var->u.i];
    if (var < 0) {
        build(b, k + 1, n->end, parent, runs, unroll);
        return;
    }
    cd_an_var *v = &w->var[var];
    chain(v);
    v->node = w->n_node;
    for (uint32_t j = v->n_digit; j-- > 0;) {
        cd_an_node *d = open_node(w, CD_AN_LOOP, parent, k);
        if (!d) return;
        parent = w->n_node - 1;
        d->loop = n->loop;
        d->var = var;
        d->last_digit = j == 0;
        d->extent =
            j < v->n_cut ? (double)digit_n(v, j) : (double)v->extent / (double)digit_lo(v, j);
        d->runs = runs;
        d->acc0 = b->raw;
        d->unroll = unroll;
        runs *= d->extent;
    }
    build(b, k + 1, n->end, parent, runs, unroll);
    for (int32_t d = v->node + (int32_t)v->n_digit; d-- > v->node;) close_node(b, d);
}

static void build_store(builder *b, int32_t k, int32_t parent, double runs, int64_t unroll) {
    cd_an *w = b->w;
    cd_an_node *n = open_node(w, CD_AN_STORE, parent, k);
    if (!n) return;
    n->runs = runs;
    n->unroll = unroll;
    n->acc0 = b->raw;
    for (; b->raw < w->n_raw && w->raw[b->raw].store == k; b->raw++)
        place(w, &w->raw[b->raw], &w->acc[b->raw]);
    find_neighbours(w, w->node[w->n_node - 1].acc0, b->raw);
    close_node(b, w->n_node - 1);
}

/* Children of AST nodes from..to-1, dead ones replaced by theirs. */
static void build(builder *b, int32_t from, int32_t to, int32_t parent, double runs,
                  int64_t unroll) {
    for (int32_t k = from; k < to;) {
        const cd_ast_node *n = &b->w->ast->node[k];
        if (n->dead) {
            k++;
            continue;
        }
        if (n->kind == CD_AST_FOR) build_loop(b, k, parent, runs, unroll);
        else if (n->kind == CD_AST_STORE) build_store(b, k, parent, runs, unroll);
        else if (n->kind == CD_AST_IF)
            build(b, k + 1, n->end, parent, runs * cd_facts_affine_chance(b->w, n->e), unroll);
        else
            build(b, k + 1, n->end, parent, runs,
                  n->kind == CD_AST_ATTR && n->attr == CD_ATTR_UNROLL_STEP ? n->extent : unroll);
        k = n->end;
    }
}

static void find_only(cd_an *w) {
    for (int32_t k = 0; k < w->n_node; k++) {
        cd_an_node *n = &w->node[k];
        if (n->kind == CD_AN_LOOP && k + 1 < n->end && w->node[k + 1].end == n->end)
            n->only = k + 1;
    }
}

cdmpp_status cd_facts_tree_make(cd_an *w, cdmpp_err *err) {
    builder b = {w, 0};
    w->acc = cd_arena_alloc(&w->arena, w->n_raw + 1, sizeof *w->acc);
    cd_an_node *root = w->acc && reserve(w) ? open_node(w, CD_AN_LOOP, -1, -1) : NULL;
    if (!root) return CD_FAIL(err, ENOMEM, "facts");
    root->runs = 1;
    build(&b, 0, w->ast->n, 0, 1, 0);
    if (w->oom) return CD_FAIL(err, ENOMEM, "facts");
    close_node(&b, 0);
    find_only(w);
    return CDMPP_OK;
}

/* Which loops a compiler writes out and which become vectors: TVM's rule for auto_unroll_max_step,
 * the schedule's vectorised loops, serial loops of neighbours, then an estimate of what LLVM and
 * GCC write out. The generator of C follows the same rules (docs/internals/add-a-back-end.md); here
 * they are read off strides. */

#define MAX_DEPTH 8 /* TVM's auto_max_depth */
#define LEAST     4 /* turns of a serial loop that are worth a vector */
#define MOST_STEP 4 /* elements from lane to lane that compilers load in groups and shuffle */
/* instructions of a loop that a compiler writes out; a store with its loads is so many: */
#define MOST_COST   300
#define SCALAR_COST 6
#define VECTOR_COST 8
#define KEPT_COST   2 /* spared where the element stays in a register */

typedef struct {
    double step;
    int depth, normal;
} count;

static void mark(cd_an *w, int32_t var, bool guessed) {
    for (uint32_t j = 0; j < w->var[var].n_digit; j++) {
        w->node[w->var[var].node + (int32_t)j].copied = true;
        w->node[w->var[var].node + (int32_t)j].guessed = guessed;
    }
}

/* ---- TVM ---- */

static count written_out(cd_an *w, int32_t from, int32_t to);

static count of_loop(cd_an *w, int32_t k) {
    const cd_an_node *n = &w->node[k];
    const cd_an_var *v = &w->var[n->var];
    count c = written_out(w, cd_an_innermost(w, n->var) + 1, n->end);
    if (n->loop == CD_LOOP_VECTORIZED) return c;
    const bool serial = n->loop == CD_LOOP_SERIAL && c.normal == 0 && c.depth <= MAX_DEPTH;
    if ((serial && (double)v->extent * c.step <= (double)n->unroll) ||
        n->loop == CD_LOOP_UNROLLED) {
        mark(w, n->var, false);
        c.step *= (double)v->extent;
        c.depth++;
    } else {
        c.normal++;
    }
    return c;
}

static count written_out(cd_an *w, int32_t from, int32_t to) {
    count all = {0};
    for (int32_t k = from; k < to; k = w->node[k].end) {
        const count c = w->node[k].kind == CD_AN_STORE ? (count){.step = 1} : of_loop(w, k);
        all.step += c.step;
        if (c.depth > all.depth) all.depth = c.depth;
        if (c.normal > all.normal) all.normal = c.normal;
    }
    return all;
}

/* ---- vectors ---- */

/* No condition of the value depends on the loop, no function but roots. */
static bool clean(const cd_expr *e, const cd_expr *var) {
    if (e->op == CD_LOAD || !e->n) return true;
    uint32_t from = 0;
    if (e->op == CD_SELECT || (e->op == CD_CALL && e->n == 3)) {
        if (cd_expr_uses(e->a[0], var)) return false;
        from = 1;
    } else if (e->op == CD_CALL) {
        if (strcmp(e->u.name, "sqrt") && strcmp(e->u.name, "rsqrt") && !cd_expr_is_dot4(e))
            return false;
    } else if (!cd_expr_op_is_arith((cd_expr_op)e->op)) {
        return false;
    }
    for (uint32_t i = from; i < e->n; i++)
        if (!clean(e->a[i], var)) return false;
    return true;
}

static bool store_fits(const cd_an *w, int32_t k, int32_t loop) {
    const cd_an_node *n = &w->node[k];
    for (uint32_t i = n->acc0; i < n->acc1; i++) {
        const cd_an_access *a = &w->acc[i];
        const int64_t s = cd_an_stride(a, loop);
        if (a->copy) continue;
        if (a->gather || s > MOST_STEP * a->elem || s % a->elem ||
            (a->write && !s && !cd_an_private(w, a, loop)))
            return false;
    }
    return clean(w->ast->node[n->ast].e, w->var[w->node[loop].var].e);
}

/* Compilers find the vector around loops that they leave or write out themselves only where these
 * sum up the outer loop's own elements. */
static bool sums_up(const cd_an *w, int32_t store, int32_t loop) {
    if (cd_an_private(w, &w->acc[w->node[store].acc0], loop)) return true;
    for (int32_t p = w->node[store].parent; p != loop; p = w->node[p].parent)
        if ((!w->node[p].copied || w->node[p].guessed) &&
            cd_an_stride(&w->acc[w->node[store].acc0], p))
            return false;
    return true;
}

/* A loop of neighbours all of whose inner loops are written out, but for one that may stay: GCC
 * vectorises the outer of two loops. */
static bool fits(const cd_an *w, int32_t k) {
    const cd_an_node *n = &w->node[k];
    int32_t stays = -1;
    if (w->var[n->var].extent < LEAST || w->var[n->var].n_digit > 1) return false;
    for (int32_t i = k + 1; i < n->end; i++) {
        const cd_an_node *l = &w->node[i];
        if (l->kind == CD_AN_STORE) {
            if (!store_fits(w, i, k) || !sums_up(w, i, k)) return false;
            continue;
        }
        if (cd_an_is_vector(w, i) || (!l->copied && stays >= 0 && l->var != stays)) return false;
        if (!l->copied) stays = l->var;
    }
    return true;
}

static void set_vector(cd_an *w, int32_t var) {
    w->var[var].vector = true;
    for (uint32_t j = 0; j < w->var[var].n_digit; j++)
        w->node[w->var[var].node + (int32_t)j].copied = false;
}

/* ---- compilers ---- */

/* Elements of the store that stay at their place from turn to turn of the loop. */
static double kept(const cd_an *w, int32_t store, int32_t loop) {
    const cd_an_access *a = &w->acc[w->node[store].acc0];
    double n = 1;
    if (cd_an_stride(a, loop)) return 0;
    for (int32_t p = w->node[store].parent; p != loop; p = w->node[p].parent)
        if (!cd_an_is_vector(w, p)) n *= cd_an_stride(a, p) ? w->node[p].extent : 0;
    return n;
}

/* Instructions of what is below node k, vectors whole; -1: a loop stays. */
static double below(const cd_an *w, int32_t from, int32_t to, double vectors) {
    double all = 0;
    for (int32_t k = from; k < to; k = w->node[k].end) {
        const cd_an_node *n = &w->node[k];
        if (n->kind == CD_AN_STORE) {
            all += vectors > 0 ? VECTOR_COST * vectors : SCALAR_COST;
            continue;
        }
        const cd_an_var *v = &w->var[n->var];
        const int64_t lanes = w->nest->vector_bytes / 4;
        const double c = below(w, cd_an_innermost(w, n->var) + 1, n->end,
                               v->vector ? (double)((v->extent + lanes - 1) / lanes) : vectors);
        if (c < 0 || (!n->copied && !v->vector)) return -1;
        all += v->vector ? c : c * (double)v->extent;
    }
    return all;
}

static bool short_enough(const cd_an *w, int32_t k) {
    const cd_an_node *n = &w->node[k];
    const cd_an_var *v = &w->var[n->var];
    if (n->loop != CD_LOOP_SERIAL || v->extent * SCALAR_COST / 2 > MOST_COST) return false;
    double c = below(w, cd_an_innermost(w, n->var) + 1, n->end, 0);
    for (int32_t i = k + 1; i < n->end && c >= 0; i++)
        if (w->node[i].kind == CD_AN_STORE) c -= KEPT_COST * kept(w, i, k);
    return c >= 0 && c * (double)v->extent <= MOST_COST;
}

/* Which loops are written out (node.copied) and which become vectors (var.vector). */
static void facts_unroll_loops(cd_an *w) {
    written_out(w, 1, w->n_node);
    for (int32_t k = w->n_node; k-- > 1;) {
        const cd_an_node *n = &w->node[k];
        if (n->kind != CD_AN_LOOP || w->var[n->var].node != k) continue;
        if (n->loop == CD_LOOP_VECTORIZED || fits(w, k)) set_vector(w, n->var);
        else if (!n->copied && short_enough(w, k)) mark(w, n->var, true);
    }
}

static const cd_fact_col cpu_cols[CD_N_FACTS] = {
#define X(ID, name, unit, meaning) {name, unit, meaning},
#include "features/analytic/facts_cols.def"
};

static const cd_fact_col gpu_cols[CD_N_GPU_FACTS] = {
#define X(ID, name, of, unit, meaning) {name, unit, meaning},
#include "features/analytic/facts_gpu_cols.def"
};

static const struct {
    const char *name;
    const cd_fact_col *col;
    size_t n;
    int version;
} sets[CD_N_FACTS_SET] = {
    [CD_FACTS_OF_CPU] = {"cpu", cpu_cols, CD_N_FACTS, CD_FACTS_VERSION},
    [CD_FACTS_OF_GPU] = {"gpu", gpu_cols, CD_N_GPU_FACTS, CD_GPU_FACTS_VERSION}};

size_t cd_facts_count(cd_facts_set set) { return sets[set].n; }
const cd_fact_col *cd_facts_cols(cd_facts_set set) { return sets[set].col; }
const char *cd_facts_set_name(cd_facts_set set) { return sets[set].name; }

void cd_facts_cols_digest(cd_facts_set set, char out[65]) {
    cd_sha256 h;
    const char version[] = {(char)('0' + sets[set].version), '\n'};
    cd_sha256_init(&h);
    if (set != CD_FACTS_OF_CPU) cd_sha256_add(&h, sets[set].name, strlen(sets[set].name));
    cd_sha256_add(&h, version, sizeof version);
    for (size_t i = 0; i < sets[set].n; i++) {
        cd_sha256_add(&h, sets[set].col[i].name, strlen(sets[set].col[i].name));
        cd_sha256_add(&h, "\n", 1);
    }
    cd_sha256_hex(&h, out);
}

void cd_facts_cols_print(cd_facts_set set, cd_buf *out) {
    cd_buf_puts(out, "| # | name | unit | meaning |\n| --: | --- | --- | --- |\n");
    for (size_t i = 0; i < sets[set].n; i++)
        cd_buf_putf(out, "| %zu | `%s` | %s | %s |\n", i, sets[set].col[i].name,
                    sets[set].col[i].unit, sets[set].col[i].meaning);
}

cdmpp_status cd_facts_new(cd_facts **out, cdmpp_err *err) {
    *out = cd_mem_zalloc(1, sizeof **out);
    return *out ? CDMPP_OK : CD_FAIL(err, ENOMEM, "facts");
}

void cd_facts_free(cd_facts *f) {
    if (!f) return;
    cd_arena_free(&f->an.arena);
    cd_mem_free(f);
}

/* Counts of hostile shapes may leave float's range. */
static void limit(float *out) {
    for (size_t i = 0; i < CD_N_FACTS; i++)
        out[i] = !(out[i] >= 0) ? 0 : out[i] > 1e30F ? 1e30F : out[i];
}

static cd_an *start(cd_facts *f, const cd_nest *nest, float *out) {
    cd_an *w = &f->an;
    const cd_arena arena = w->arena;
    *w = (cd_an){.arena = arena, .nest = nest, .ast = nest->ast, .out = out};
    cd_arena_reset(&w->arena);
    memset(out, 0, CD_N_FACTS * sizeof *out);
    return w;
}

cdmpp_status cd_facts_gpu(cd_facts *f, const cd_nest *nest, float *out, cdmpp_err *err) {
    cd_an *w = start(f, nest, out);
    w->gpu = true;
    CD_TRY(cd_facts_read_nest(w, err));
    CD_TRY(cd_facts_gpu_count(w, err));
    limit(out);
    return CDMPP_OK;
}

cd_facts_set cd_facts_set_of_nest(const cd_nest *nest) {
    for (int32_t k = 0; k < nest->ast->n; k++)
        if (nest->ast->node[k].kind == CD_AST_THREAD) return CD_FACTS_OF_GPU;
    return CD_FACTS_OF_CPU;
}

cdmpp_status cd_facts_of(cd_facts *f, cd_facts_set set, const cd_nest *nest, float *out,
                         cdmpp_err *err) {
    return set == CD_FACTS_OF_GPU ? cd_facts_gpu(f, nest, out, err)
                                  : cd_facts_cpu(f, nest, out, err);
}

cdmpp_status cd_facts_cpu(cd_facts *f, const cd_nest *nest, float *out, cdmpp_err *err) {
    cd_an *w = start(f, nest, out);
    CD_TRY(cd_facts_read_nest(w, err));
    CD_TRY(cd_facts_tree_make(w, err));
    facts_unroll_loops(w);
    cd_facts_reuse_count(w);
    cd_facts_core_count(w);
    if (w->oom) return CD_FAIL(err, ENOMEM, "facts");
    out[CD_FACT_INEXACT] = (float)w->inexact;
    limit(out);
    return CDMPP_OK;
}
