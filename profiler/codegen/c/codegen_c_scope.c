/* Scopes of a C program: names for pointers and quotients, tokens for accesses, and keeping
 * elements in variables while a loop runs. It does by hand what GCC's loop-invariant motion and
 * scalar replacement cannot prove to be allowed. */
#include <string.h>

#include "profiler/codegen/c/codegen_c_internal.h"

/* Two lanes that were stored are taken from a variable by the statements that follow. GCC does
 * so itself with what fills a register, but loading two lanes clears the rest of it, so that the
 * value stored is another one: an instruction more in every chain of multiply-adds. */

void cd_c_pair_clear(cd_c_writer *g) { g->n_pair = 0; }

static void c_pair_overwrite(cd_c_writer *g, const cd_c_token *t) {
    const int64_t n = t->lanes ? t->lanes : 1;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < g->n_pair; k++) {
        const cd_c_pair *p = &g->pair[k];
        const bool apart = p->ptr == t->ptr && (t->off >= p->off + 2 || p->off >= t->off + n);
        if (p->tensor != t->tensor || p->instance != t->instance || apart) g->pair[kept++] = *p;
    }
    g->n_pair = kept;
}

void cd_c_pair_add(cd_c_writer *g, const cd_c_token *t, uint32_t reg) {
    if (g->n_pair == CD_CODEGEN_C_MAX_PAIR) cd_c_pair_clear(g);
    g->pair[g->n_pair++] = (cd_c_pair){t->tensor, t->ptr, t->instance, reg, t->off};
}

/* its variable; 0: none */
static uint32_t c_pair_find(const cd_c_writer *g, const cd_c_token *t) {
    for (uint32_t k = 0; k < g->n_pair && t->lanes == 2; k++) {
        const cd_c_pair *p = &g->pair[k];
        if (p->tensor == t->tensor && p->instance == t->instance && p->ptr == t->ptr &&
            p->off == t->off)
            return p->reg;
    }
    return 0;
}

#define MOST_KEPT 96 /* variables in place of elements of one tensor */

bool cd_c_scope_open(cd_c_writer *g, uint32_t var) {
    if (CD_GROW(g->fn.scope, (uint32_t)(g->fn.depth + 1), g->fn.cap_scope)) return !(g->oom = true);
    cd_c_pair_clear(g);
    g->fn.scope[++g->fn.depth] =
        (cd_c_scope){.var = var, .first_token = g->n_token, .if_depth = g->fn.if_depth};
    if (var != UINT32_MAX) g->fn.var_depth[var] = g->fn.depth;
    return true;
}

/* ---- names for quotients and pointers ---- */

/* Innermost scope whose variable occurs. */
static int depth_of(cd_c_writer *g, const cd_expr *e) {
    if (e->op == CD_VAR) return e->u.i < (int64_t)g->nest->n_var ? g->fn.var_depth[e->u.i] : 0;
    int depth = 0;
    for (uint32_t k = 0; k < e->n; k++) {
        const int d = depth_of(g, e->a[k]);
        if (d > depth) depth = d;
    }
    return depth;
}

static cdmpp_status plain_var(cd_codegen_expr *w, const cd_expr *v, cdmpp_err *err) {
    const cd_c_writer *g = w->ctx;
    if (v->u.i >= (int64_t)g->nest->n_var)
        return CD_FAIL(err, EUNSUPPORTED, "a lane outside a vector");
    cd_buf_putf(w->out, "v%u", g->plan.var[v->u.i]);
    return CDMPP_OK;
}

static cdmpp_status no_load(cd_codegen_expr *w, const cd_expr *e, cdmpp_err *err) {
    (void)w, (void)e;
    return CD_FAIL(err, EUNSUPPORTED, "an index that is read from a tensor");
}

static void put_atom(cd_c_writer *g, cd_buf *out, const cd_expr *e) {
    cd_codegen_expr w = {.dialect = CD_DIALECT_C,
                         .out = out,
                         .ranges = &g->env.ranges,
                         .var = plain_var,
                         .load = no_load,
                         .ctx = g};
    if (e->flags & CD_EXPR_HAS_LOAD) {
        const uint32_t lanes = g->lanes;
        g->lanes = 0;
        if (cd_c_write_value(g, out, e, NULL)) g->env.many = true;
        g->lanes = lanes;
    } else if (cd_codegen_expr_write(&w, e, NULL)) {
        g->env.many = true;
    }
}

/* A quotient is computed once, at the top of the innermost scope that it depends on. */
static void put_named(cd_c_writer *g, cd_buf *out, const cd_expr *e, int depth) {
    if (e->op == CD_VAR || (e->flags & CD_EXPR_HAS_LOAD)) {
        put_atom(g, out, e);
        return;
    }
    cd_c_scope *s = &g->fn.scope[depth];
    uint32_t k = 0;
    while (k < s->n_name && s->name[k].e != e) k++;
    if (k == s->n_name) {
        if (CD_GROW(s->name, s->n_name, s->cap_name)) {
            g->oom = true;
            return;
        }
        s->name[s->n_name++] = (cd_c_name){e, ++g->n_name};
        cd_buf_putf(&s->defs, "const %s q%u = ", cd_codegen_value_type(CD_DIALECT_C, e->type),
                    g->n_name);
        put_atom(g, &s->defs, e);
        cd_buf_puts(&s->defs, ";\n");
    }
    cd_buf_putf(out, "q%u", s->name[k].id);
}

void cd_c_write_tensor_name(const cd_c_writer *g, cd_buf *out, uint32_t tensor, uint32_t instance) {
    const cd_codegen_slot *s = &g->plan.slot[tensor];
    cd_buf_putf(out, "t%u", s->order);
    if (!s->is_arg && g->scratch[tensor] == UINT32_MAX) cd_buf_putf(out, "_%u", instance);
}

static void put_ptr(const cd_c_writer *g, cd_buf *out, uint32_t tensor, uint32_t instance,
                    uint32_t ptr) {
    if (ptr) cd_buf_putf(out, "p%u", ptr);
    else cd_c_write_tensor_name(g, out, tensor, instance);
}

static const char *qualifier(const cd_c_writer *g, uint32_t tensor) {
    return g->plan.slot[tensor].stored ? "" : "const ";
}

static bool same_terms(const cd_codegen_affine *a, const cd_codegen_affine *b) {
    if (a->n != b->n) return false;
    for (uint32_t k = 0; k < a->n; k++)
        if (a->t[k].k != b->t[k].k || a->t[k].atom != b->t[k].atom) return false;
    return true;
}

static void declare_ptr(cd_c_writer *g, const cd_c_pointer *p) {
    cd_buf *d = &g->fn.scope[p->depth].defs, sum = {0};
    for (uint32_t k = 0; k < p->terms.n; k++) {
        cd_buf_putf(&sum, " + %lldL*", (long long)p->terms.t[k].k);
        put_named(g, &sum, p->terms.t[k].atom, p->depth);
    }
    cd_buf_putf(d, "%s%s *p%u = ", qualifier(g, p->tensor),
                cd_codegen_storage_type(CD_DIALECT_C, g->plan.slot[p->tensor].dtype), p->id);
    put_ptr(g, d, p->tensor, g->instance[p->tensor], p->parent);
    cd_buf_put(d, sum.p ? sum.p : "", sum.n);
    cd_buf_puts(d, ";\n");
    if (sum.oom) g->oom = true;
    cd_buf_free(&sum);
}

/* parent + terms, declared in scope `depth`; made when there is none. */
static uint32_t find_ptr(cd_c_writer *g, uint32_t tensor, uint32_t parent,
                         const cd_codegen_affine *terms, int depth) {
    for (uint32_t k = g->fn.n_ptr; k-- > 0;) {
        const cd_c_pointer *p = &g->fn.ptr[k];
        if (p->tensor == tensor && p->parent == parent && p->instance == g->instance[tensor] &&
            p->depth == depth && same_terms(&p->terms, terms))
            return p->id;
    }
    if (CD_GROW(g->fn.ptr, g->fn.n_ptr, g->fn.cap_ptr)) {
        g->oom = true;
        return 0;
    }
    const uint32_t id = ++g->n_name;
    g->fn.ptr[g->fn.n_ptr] = (cd_c_pointer){tensor, parent, g->instance[tensor], id, depth, *terms};
    g->fn.ptr[g->fn.n_ptr].terms.c = 0;
    declare_ptr(g, &g->fn.ptr[g->fn.n_ptr++]);
    return id;
}

/* Builds the pointer scope by scope: the terms of each depth are added where that depth is opened,
 * so that inner loops only add their own. */
static uint32_t pointer(cd_c_writer *g, uint32_t tensor, const cd_codegen_affine *flat,
                        int *depth) {
    uint32_t ptr = 0;
    *depth = g->plan.slot[tensor].is_arg || g->scratch[tensor] != UINT32_MAX ? 0 : g->home[tensor];
    for (int d = 0; d <= g->fn.depth; d++) {
        cd_codegen_affine terms = {0};
        for (uint32_t k = 0; k < flat->n; k++) {
            int at = depth_of(g, flat->t[k].atom);
            if (at < *depth && ptr == 0) at = *depth; /* not before the buffer itself */
            if (at == d) terms.t[terms.n++] = flat->t[k];
        }
        if (!terms.n) continue;
        ptr = find_ptr(g, tensor, ptr, &terms, d);
        *depth = d;
    }
    return ptr;
}

/* ---- accesses ---- */

/* Is every access certainly within the tensor? Then it may be moved out of a condition. */
static bool inside(cd_c_writer *g, uint32_t tensor, const cd_codegen_affine *flat, uint32_t lanes) {
    const cd_codegen_slot *s = &g->plan.slot[tensor];
    if (s->is_arg) return false;
    const cd_bound b = cd_codegen_affine_range(&g->env, flat);
    return b.lo >= 0 && b.hi + (lanes ? lanes - 1 : 0) < s->elements;
}

static uint32_t new_token(cd_c_writer *g, const cd_c_token *t) {
    if (CD_GROW(g->token, g->n_token, g->cap_token)) {
        g->oom = true;
        return 0;
    }
    g->token[g->n_token] = *t;
    return g->n_token++;
}

/* An index that is itself read from memory is written out where it is used. */
static bool put_direct(cd_c_writer *g, cd_buf *out, uint32_t tensor, const cd_codegen_affine *flat,
                       bool store) {
    bool loads = false;
    for (uint32_t k = 0; k < flat->n; k++)
        loads |= (flat->t[k].atom->flags & CD_EXPR_HAS_LOAD) != 0;
    if (!loads) return false;
    if (store) cd_c_pair_clear(g);
    cd_c_write_tensor_name(g, out, tensor, g->instance[tensor]);
    cd_buf_putf(out, "[%lldL", (long long)flat->c);
    for (uint32_t k = 0; k < flat->n; k++) {
        cd_buf_putf(out, " + %lldL*", (long long)flat->t[k].k);
        put_atom(g, out, flat->t[k].atom);
    }
    cd_buf_puts(out, store ? "] = (" : "]");
    new_token(g, &(cd_c_token){
                     .tensor = tensor, .instance = g->instance[tensor], .ptr_depth = INT32_MAX});
    return true;
}

/* A load of two lanes that are still in a variable needs no token. A lane that is left in the index
 * has no text. */
void cd_c_write_access(cd_c_writer *g, cd_buf *out, uint32_t tensor, const cd_codegen_affine *flat,
                       uint32_t lanes, bool store) {
    int depth;
    for (uint32_t k = 0; k < flat->n; k++)
        g->stray |= cd_codegen_env_has_lane(&g->env, flat->t[k].atom);
    if (put_direct(g, out, tensor, flat, store)) return;
    const uint32_t ptr = pointer(g, tensor, flat, &depth);
    const cd_c_token t = {.tensor = tensor,
                          .ptr = ptr,
                          .instance = g->instance[tensor],
                          .ptr_depth = depth,
                          .if_depth = g->fn.if_depth,
                          .off = flat->c,
                          .lanes = (uint8_t)lanes,
                          .store = store,
                          .safe = inside(g, tensor, flat, lanes)};
    const uint32_t reg = store ? 0 : c_pair_find(g, &t);
    if (store) c_pair_overwrite(g, &t);
    if (reg) {
        cd_buf_putf(out, "r%u", reg);
    } else {
        cd_buf_putf(out, "\1%u\2", g->n_token);
        new_token(g, &t);
    }
}

/* One token for each tensor stays, without a place: it only prevents that a loop around keeps the
 * tensor. */
void cd_c_tokens_close(cd_c_writer *g, uint32_t first) {
    uint32_t n = first;
    for (uint32_t k = first; k < g->n_token; k++) {
        uint32_t j = first;
        while (j < n && g->token[j].tensor != g->token[k].tensor) j++;
        if (j < n) continue;
        g->token[n] = g->token[k];
        g->token[n].closed = g->token[n].store = false;
        g->token[n++].ptr_depth = INT32_MAX;
    }
    g->n_token = n;
    cd_c_pair_clear(g);
}

/* ---- keeping elements in variables ---- */

typedef struct {
    uint32_t tensor, ptr, instance, n, token[MOST_KEPT]; /* first token of each place */
    uint32_t reg[MOST_KEPT];
    bool stored[MOST_KEPT], any_store, no;
} kept;

/* The place of a token among those kept; overlapping accesses of different width cannot be kept. */
static uint32_t place(const cd_c_writer *g, kept *k, const cd_c_token *t, uint32_t number) {
    const int64_t w = t->lanes ? t->lanes : 1;
    for (uint32_t i = 0; i < k->n; i++) {
        const cd_c_token *o = &g->token[k->token[i]];
        const int64_t v = o->lanes ? o->lanes : 1;
        if (o->off == t->off && o->lanes == t->lanes) return i;
        if (t->off < o->off + v && o->off < t->off + w) k->no = true;
    }
    if (k->n == MOST_KEPT) k->no = true;
    if (k->no) return 0;
    k->token[k->n] = number;
    k->stored[k->n] = false;
    return k->n++;
}

/* All accesses of the loop to one tensor: they must use one pointer from outside the loop, and be
 * unconditional or safe. */
static void examine(const cd_c_writer *g, const cd_c_scope *s, kept *k) {
    const cd_codegen_slot *slot = &g->plan.slot[k->tensor];
    if (strcmp(cd_codegen_value_type(CD_DIALECT_C, slot->dtype),
               cd_codegen_storage_type(CD_DIALECT_C, slot->dtype)) != 0)
        k->no = true;
    for (uint32_t i = s->first_token; i < g->n_token && !k->no; i++) {
        const cd_c_token *t = &g->token[i];
        if (t->closed || t->tensor != k->tensor || t->instance != k->instance) continue;
        if (t->ptr != k->ptr || t->ptr_depth >= g->fn.depth ||
            (t->if_depth > s->if_depth && !t->safe))
            k->no = true;
        const uint32_t at = k->no ? 0 : place(g, k, t, i);
        if (k->no || !t->store) continue;
        k->stored[at] = k->any_store = true;
    }
}

static void put_type(const cd_c_writer *g, cd_buf *out, const cd_c_token *t) {
    const cd_dtype d = g->plan.slot[t->tensor].dtype;
    if (t->lanes) cd_buf_putf(out, "cd_%s%u ", cd_c_vector(d), t->lanes);
    else cd_buf_putf(out, "%s ", cd_codegen_value_type(CD_DIALECT_C, d));
}

/* A token in the scope around the loop, for an element that is kept. */
static void outer_token(cd_c_writer *g, cd_buf *out, const cd_c_token *like, int if_depth,
                        bool store) {
    cd_c_token t = *like;
    t.store = store;
    t.closed = false;
    t.reg = 0;
    t.if_depth = if_depth;
    cd_buf_putf(out, "\1%u\2", g->n_token);
    new_token(g, &t);
}

/* Tokens of the loop become variables; loads before the loop and stores after it are tokens of the
 * scope around, so that a loop further out may keep them too. */
static void keep(cd_c_writer *g, const cd_c_scope *s, kept *k, uint32_t last, cd_buf *before,
                 cd_buf *after) {
    for (uint32_t i = 0; i < k->n; i++) k->reg[i] = ++g->n_reg;
    for (uint32_t i = s->first_token; i < last; i++) {
        cd_c_token *t = &g->token[i];
        if (t->closed || t->tensor != k->tensor || t->instance != k->instance) continue;
        t->reg = k->reg[place(g, k, t, i)];
        t->closed = true;
    }
    for (uint32_t i = 0; i < k->n; i++) {
        const cd_c_token t = g->token[k->token[i]];
        put_type(g, before, &t);
        cd_buf_putf(before, "r%u = ", k->reg[i]);
        outer_token(g, before, &t, s->if_depth, false);
        cd_buf_puts(before, ";\n");
        if (!k->stored[i]) continue;
        outer_token(g, after, &t, s->if_depth, true);
        cd_buf_putf(after, "r%u);\n", k->reg[i]);
    }
}

static void keep_all(cd_c_writer *g, const cd_c_scope *s, cd_buf *before, cd_buf *after) {
    const uint32_t last = g->n_token;
    uint32_t no[16], n_no = 0; /* tensors that are known not to fit */
    for (uint32_t i = s->first_token; i < last; i++) {
        const cd_c_token t = g->token[i];
        uint32_t j = 0;
        while (j < n_no && no[j] != t.tensor) j++;
        if (t.closed || !t.store || j < n_no) continue;
        kept k = {.tensor = t.tensor, .ptr = t.ptr, .instance = t.instance};
        examine(g, s, &k);
        if (!k.no && k.any_store) keep(g, s, &k, last, before, after);
        else if (n_no < 16) no[n_no++] = t.tensor;
    }
}

/* Text of a closed loop: loads of kept elements, head, definitions, body, stores. Pointers declared
 * in the loop end with it. */
void cd_c_scope_close_loop(cd_c_writer *g, const char *head) {
    cd_buf before = {0}, after = {0};
    cd_c_scope *s = cd_c_top(g);
    const uint32_t first = s->first_token;
    keep_all(g, s, &before, &after);
    cd_c_pair_clear(g);
    g->fn.depth--;
    cd_buf *out = cd_c_body(g);
    if (before.n) cd_buf_put(out, before.p, before.n);
    cd_buf_putf(out, "%s {\n", head);
    if (s->defs.n) cd_buf_put(out, s->defs.p, s->defs.n);
    if (s->body.n) cd_buf_put(out, s->body.p, s->body.n);
    cd_buf_puts(out, "}\n");
    if (after.n) cd_buf_put(out, after.p, after.n);
    if (before.oom || after.oom || s->defs.oom || s->body.oom) g->oom = true;
    /* pointers of the loop are out of sight: such tokens can only hinder */
    for (uint32_t k = first; k < g->n_token; k++)
        if (g->token[k].ptr_depth > g->fn.depth) g->token[k].ptr_depth = INT32_MAX;
    while (g->fn.n_ptr && g->fn.ptr[g->fn.n_ptr - 1].depth > g->fn.depth) g->fn.n_ptr--;
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->fn.n_ptr; k++)
        if (g->fn.ptr[k].depth <= g->fn.depth) g->fn.ptr[n++] = g->fn.ptr[k];
    g->fn.n_ptr = n;
    cd_buf_free(&before);
    cd_buf_free(&after);
    cd_buf_free(&s->defs);
    cd_buf_free(&s->body);
    cd_mem_free(s->name);
}

/* ---- the end ---- */

static void put_element(cd_c_writer *g, const cd_c_token *t, cd_buf *out) {
    const char *vector = cd_c_vector(g->plan.slot[t->tensor].dtype);
    if (t->lanes == 2) cd_buf_putf(out, "cd_%s_%s2(", t->store ? "store" : "load", vector);
    else if (t->lanes)
        cd_buf_putf(out, "(*(%scd_%s%uu *)(", qualifier(g, t->tensor), vector, t->lanes);
    put_ptr(g, out, t->tensor, t->instance, t->ptr);
    if (t->lanes == 2) cd_buf_putf(out, t->store ? " + %lld, " : " + %lld)", (long long)t->off);
    else cd_buf_putf(out, t->lanes ? " + %lld))" : "[%lld]", (long long)t->off);
}

/* A load's value, or what stands before a stored one; ")" follows that. */
static void put_token(cd_c_writer *g, const cd_c_token *t, cd_buf *out) {
    if (t->reg) cd_buf_putf(out, "r%u", t->reg);
    else put_element(g, t, out);
    if (t->store && (t->reg || t->lanes != 2)) cd_buf_puts(out, " = (");
}

/* Text between tokens is copied as it is. */
void cd_c_tokens_resolve(cd_c_writer *g, const cd_buf *in, cd_buf *out) {
    for (size_t k = 0; k < in->n;) {
        if (in->p[k] != '\1') {
            size_t e = k;
            while (e < in->n && in->p[e] != '\1') e++;
            cd_buf_put(out, in->p + k, e - k);
            k = e;
            continue;
        }
        uint32_t number = 0;
        for (k++; in->p[k] != '\2'; k++) number = number * 10 + (uint32_t)(in->p[k] - '0');
        k++;
        put_token(g, &g->token[number], out);
    }
}
