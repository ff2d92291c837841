/* From the AST: loops with their variables, tensors with their storage, the accesses of every
 * store. Where variables are divided is known only after the last address, so the tree is made
 * later. */
#include <string.h>

#include "features/analytic/analytic_internal.h"

/* ---- loops and tensors ---- */

static cdmpp_status read_loop(cd_an *w, const cd_ast_node *n, cdmpp_err *err) {
    if (n->extent_e->op != CD_INT)
        return CD_FAIL(err, EUNSUPPORTED, "facts: a loop whose extent is no constant");
    if (n->extent > CD_AN_MOST)
        return CD_FAIL(err, EUNSUPPORTED, "facts: a loop of %lld iterations", (long long)n->extent);
    if (n->extent == 1) return CDMPP_OK; /* its variable is 0 */
    if (CD_GROW_IN(&w->arena, w->var, w->n_var, w->cap_var)) return CD_FAIL(err, ENOMEM, "facts");
    w->var_of[n->var->u.i] = (int32_t)w->n_var;
    w->var[w->n_var++] = (cd_an_var){.extent = n->extent < 0 ? 0 : n->extent,
                                     .e = n->var,
                                     .node = -1,
                                     .axis = (uint8_t)(n->kind == CD_AST_THREAD ? n->tag + 1 : 0)};
    return CDMPP_OK;
}

static bool strides(cd_an *w, cd_an_tensor *t, const int64_t *extent) {
    int64_t *stride = cd_arena_alloc(&w->arena, t->rank + 1, sizeof *stride);
    if (!stride) return false;
    stride[t->rank] = t->elem;
    for (uint32_t d = t->rank; d-- > 0;) stride[d] = cd_an_mul(stride[d + 1], extent[d]);
    t->bytes = (double)stride[0];
    t->stride = stride + 1;
    t->extent = extent;
    return true;
}

static bool add_tensor(cd_an *w, uint32_t nest, int32_t home, const cd_expr *const *x,
                       const int64_t *extent) {
    const cd_nest_tensor *from = &w->nest->tensor[nest];
    cd_an_tensor *t = &w->tensor[w->n_tensor];
    *t = (cd_an_tensor){.nest = nest,
                        .rank = from->rank,
                        .elem = (uint8_t)cd_expr_dtype_bytes(from->dtype),
                        .arg = from->arg >= 0,
                        .home = home,
                        .x = x};
    if (!t->elem) t->elem = 1;
    w->tensor_of[nest] = w->n_tensor++;
    return strides(w, t, extent);
}

/* Parameters are whole whatever is realized of them. */
static cdmpp_status read_storage(cd_an *w, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &w->ast->node[k];
    const cd_nest_tensor *t = &w->nest->tensor[n->tensor];
    if (t->arg >= 0 || w->tensor_of[n->tensor] != UINT32_MAX) return CDMPP_OK;
    int64_t *extent = cd_arena_alloc(&w->arena, t->rank + 1, sizeof *extent);
    if (!extent) return CD_FAIL(err, ENOMEM, "facts");
    for (uint32_t d = 0; d < t->rank; d++) {
        if (n->x[2 * d + 1]->op != CD_INT)
            return CD_FAIL(err, EUNSUPPORTED, "facts: a buffer whose extent is no constant");
        extent[d] = n->x[2 * d + 1]->u.i;
    }
    return add_tensor(w, n->tensor, k, n->x, extent) ? CDMPP_OK : CD_FAIL(err, ENOMEM, "facts");
}

static cd_an_tensor *tensor_at(cd_an *w, uint32_t nest) {
    if (w->tensor_of[nest] == UINT32_MAX &&
        !add_tensor(w, nest, -1, NULL, w->nest->tensor[nest].shape)) {
        w->oom = true;
        return NULL;
    }
    return &w->tensor[w->tensor_of[nest]];
}

/* ---- accesses ---- */

/* Address in bytes after the beginning of the storage. */
static void address(cd_an *w, const cd_an_tensor *t, const cd_expr *const *x, cd_an_form *out) {
    cd_an_form f;
    out->c = 0;
    out->n = 0;
    out->inexact = out->gather = false;
    for (uint32_t d = 0; d < t->rank; d++) {
        cd_facts_affine_of(w, x[d], &f);
        cd_facts_affine_add(out, &f, t->stride[d], (int32_t)d);
        if (!t->x) continue;
        cd_facts_affine_of(w, t->x[2 * d], &f);
        cd_facts_affine_add(out, &f, -t->stride[d], (int32_t)d);
    }
}

typedef struct {
    cd_an *w;
    uint32_t first; /* raw: of this store */
    int32_t store;
} reader;

static const cd_an_raw *same_access(const reader *r, uint32_t tensor, const cd_expr *const *x,
                                    uint32_t n) {
    for (uint32_t k = r->first; k < r->w->n_raw; k++)
        if (r->w->raw[k].tensor == tensor && !memcmp(r->w->raw[k].x, x, n * sizeof *x))
            return &r->w->raw[k];
    return NULL;
}

typedef struct {
    double chance;
    const cd_expr *cond; /* NULL: none */
    bool cond_else;
} when;

static void add_access(reader *r, uint32_t nest, const cd_expr *const *x, uint32_t n, bool write,
                       const when *c) {
    cd_an *w = r->w;
    cd_an_tensor *t = tensor_at(w, nest);
    if (!t || n != t->rank) return;
    const uint32_t k = w->tensor_of[nest];
    const cd_an_raw *same = same_access(r, k, x, n);
    if (!t->written && !t->read) t->first_written = write;
    if (write) t->written = true;
    else t->read = true;
    if (same && !(same->write && !same->copy && !write)) return; /* loaded already */
    const bool copy = same != NULL;
    if (CD_GROW_IN(&w->arena, w->raw, w->n_raw, w->cap_raw)) {
        w->oom = true;
        return;
    }
    cd_an_raw *a = &w->raw[w->n_raw++];
    a->tensor = k;
    a->write = write;
    a->copy = copy;
    a->store = r->store;
    a->chance = (float)c->chance;
    a->cond = c->cond;
    a->cond_else = c->cond_else;
    a->x = x;
    a->first = r->first;
    a->gather = a->inexact = false;
    a->n = 0;
    if (copy) return;
    cd_an_form f;
    address(w, t, x, &f);
    w->inexact += f.inexact;
    a->gather = f.gather;
    a->inexact = f.inexact;
    a->c = f.c;
    a->n = f.n;
    a->t = cd_arena_alloc(&w->arena, f.n, sizeof *a->t);
    if (a->t) memcpy(a->t, f.t, f.n * sizeof *a->t);
    else w->oom = true;
}

/* Loads in the order in which they are read. */
static void collect(reader *r, const cd_expr *e, when c) {
    if (!(e->flags & CD_EXPR_HAS_LOAD)) return;
    const bool branch = e->op == CD_CALL && e->n == 3 && !strcmp(e->u.name, "if_then_else");
    const double first = branch ? cd_facts_affine_chance(r->w, e->a[0]) : 1;
    for (uint32_t i = 0; i < e->n; i++)
        collect(r, e->a[i],
                !branch || !i ? c
                              : (when){c.chance * (i == 1 ? first : 1 - first), e->a[0], i == 2});
    if (e->op == CD_LOAD) add_access(r, (uint32_t)e->u.i, e->a, e->n, false, &c);
}

static cdmpp_status read_store(cd_an *w, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &w->ast->node[k];
    reader r = {w, w->n_raw, k};
    w->store = k;
    const when always = {.chance = 1};
    add_access(&r, n->tensor, n->x, n->n, true, &always);
    collect(&r, n->e, always);
    return w->oom ? CD_FAIL(err, ENOMEM, "facts") : CDMPP_OK;
}

/* A weight with one load in the program may be stored in the order of its loops. */
static void find_packed(cd_an *w) {
    for (uint32_t t = 0; t < w->n_tensor && w->nest->pack; t++)
        w->tensor[t].pack = w->nest->tensor[w->tensor[t].nest].layout_free && !w->tensor[t].written;
    for (uint32_t k = 0; k < w->n_raw; k++)
        for (uint32_t j = k + 1; w->tensor[w->raw[k].tensor].pack && j < w->n_raw; j++)
            if (w->raw[j].tensor == w->raw[k].tensor) w->tensor[w->raw[k].tensor].pack = false;
}

cdmpp_status cd_facts_read_nest(cd_an *w, cdmpp_err *err) {
    w->var_of = cd_arena_alloc(&w->arena, w->nest->n_var + 1, sizeof *w->var_of);
    w->tensor_of = cd_arena_alloc(&w->arena, w->nest->n_tensor + 1, sizeof *w->tensor_of);
    w->tensor = cd_arena_alloc(&w->arena, w->nest->n_tensor + 1, sizeof *w->tensor);
    w->cap_raw = 32;
    w->raw = cd_arena_alloc(&w->arena, w->cap_raw, sizeof *w->raw);
    w->cap_var = (uint32_t)w->ast->n;
    w->var = cd_arena_alloc(&w->arena, w->cap_var, sizeof *w->var);
    w->cap_division = 32;
    w->division = cd_arena_alloc(&w->arena, w->cap_division, sizeof *w->division);
    if (!w->var_of || !w->tensor_of || !w->tensor || !w->raw || !w->var || !w->division)
        return CD_FAIL(err, ENOMEM, "facts");
    memset(w->var_of, 0xff, (w->nest->n_var + 1) * sizeof *w->var_of);
    memset(w->tensor_of, 0xff, (w->nest->n_tensor + 1) * sizeof *w->tensor_of);
    for (int32_t k = 0; k < w->ast->n; k++) {
        const cd_ast_node *n = &w->ast->node[k];
        if (n->dead) continue;
        if (!w->gpu && (n->kind == CD_AST_THREAD || n->kind == CD_AST_EVAL))
            return CD_FAIL(err, EUNSUPPORTED, "facts: thread axes, which a CPU program has not");
        if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD) CD_TRY(read_loop(w, n, err));
        else if (n->kind == CD_AST_REALIZE || n->kind == CD_AST_ALLOC)
            CD_TRY(read_storage(w, k, err));
        else if (n->kind == CD_AST_STORE) CD_TRY(read_store(w, k, err));
    }
    find_packed(w);
    return CDMPP_OK;
}
