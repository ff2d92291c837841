/* Building, simplifying, serialising and printing a loop nest. Nodes are one array in pre-order: a
 * subtree is a run, and simplifying a node away only marks it dead. */
#include <stdio.h>
#include <string.h>

#include "features/nest/nest.h"

/* Makes names unique as TVM's printer does: the second "i" is "i_1". Names are looked up linearly;
 * a nest has a few dozen. */

static bool taken(const char *const *name, uint32_t n, const char *s) {
    for (uint32_t k = 0; k < n; k++)
        if (name[k] && !strcmp(name[k], s)) return true;
    return false;
}

/* `raw`, or raw_1, raw_2 ... when it is taken. */
static bool give(cd_unique_names *t, const char **slot, const char *raw) {
    const size_t n = strlen(raw) + 12;
    char *s = cd_arena_alloc(&t->arena, n, 1);
    if (!s) return false;
    snprintf(s, n, "%s", raw);
    for (unsigned k = 1; taken(t->var, t->n_var, s) || taken(t->tensor, t->n_tensor, s); k++)
        snprintf(s, n, "%s_%u", raw, k);
    *slot = s;
    return true;
}

static bool name_node(cd_unique_names *t, const cd_ast_node *n) {
    if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD) {
        const uint32_t k = (uint32_t)n->var->u.i;
        return k >= t->n_var || t->var[k] ||
               give(t, &t->var[k], t->raw.name(t->raw.ctx, CD_VAR, k));
    }
    return true;
}

cdmpp_status cd_unique_names_init(cd_unique_names *t, const cd_ast *ast, const cd_names *raw,
                                  uint32_t n_var, uint32_t n_tensor, cdmpp_err *err) {
    *t = (cd_unique_names){.n_var = n_var, .n_tensor = n_tensor, .raw = *raw};
    t->var = CD_NEWN(&t->arena, const char *, n_var + 1);
    t->tensor = CD_NEWN(&t->arena, const char *, n_tensor + 1);
    bool ok = t->var && t->tensor;
    for (uint32_t k = 0; ok && k < n_tensor; k++)
        ok = give(t, &t->tensor[k], raw->name(raw->ctx, CD_LOAD, k));
    for (int32_t k = 0; ok && k < ast->n; k++)
        if (!ast->node[k].dead) ok = name_node(t, &ast->node[k]);
    if (ok) return CDMPP_OK;
    cd_unique_names_free(t);
    return CD_FAIL(err, ENOMEM, "names");
}

void cd_unique_names_free(cd_unique_names *t) {
    cd_arena_free(&t->arena);
    *t = (cd_unique_names){0};
}

const char *cd_unique_names_get(const void *table, cd_expr_op kind, uint32_t number) {
    const cd_unique_names *t = table;
    const char *s = NULL;
    if (kind == CD_VAR && number < t->n_var) s = t->var[number];
    if (kind == CD_LOAD && number < t->n_tensor) s = t->tensor[number];
    return s ? s : t->raw.name(t->raw.ctx, kind, number);
}

const char *cd_ast_tag_name(cd_ast_tag t) {
    static const char *const name[CD_AST_TAG_COUNT] = {"vthread",    "blockIdx.x",  "threadIdx.x",
                                                       "blockIdx.y", "threadIdx.y", "blockIdx.z",
                                                       "threadIdx.z"};
    return name[t];
}

/* ---- building ---- */

cd_ast_node *cd_ast_open(cd_ast *t, cd_ast_kind kind) {
    static cd_ast_node nowhere; /* written to, never read: the program is lost anyway */
    if (t->n == t->cap) {
        const int32_t cap = t->cap ? 2 * t->cap : 64;
        cd_ast_node *p =
            cd_mem_realloc(t->node, (size_t)t->cap * sizeof *p, (size_t)cap * sizeof *p);
        if (!p) {
            t->oom = true;
            return &nowhere;
        }
        t->node = p;
        t->cap = cap;
    }
    cd_ast_node *n = &t->node[t->n];
    *n = (cd_ast_node){.kind = (uint8_t)kind, .parent = t->open, .end = t->n + 1};
    if (kind != CD_AST_STORE && kind != CD_AST_EVAL && kind != CD_AST_LET) t->open = t->n;
    t->n++;
    return n;
}

void cd_ast_close(cd_ast *t, int32_t open) {
    while (t->open != open && t->open >= 0) {
        t->node[t->open].end = t->n;
        t->open = t->node[t->open].parent;
    }
}

void cd_ast_clear(cd_ast *t) {
    t->n = 0;
    t->open = -1;
    t->oom = false;
}

void cd_ast_free(cd_ast *t) {
    cd_mem_free(t->node);
    *t = (cd_ast){.open = -1};
}

/* ---- simplification ---- */

typedef struct {
    cd_ast *t;
    cd_analyzer *a;
    cd_expr_pool *pool;
} simplifier;

static void kill_run(cd_ast *t, int32_t from, int32_t to) {
    for (int32_t k = from; k < to; k++) t->node[k].dead = true;
}

static void exprs(const simplifier *s, const cd_expr **x, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) x[i] = cd_simplify_expr(s->a, x[i]);
}

/* A value that is the element itself: the store does nothing. */
static bool stores_itself(const cd_ast_node *n) {
    if (n->e->op != CD_LOAD || (uint32_t)n->e->u.i != n->tensor || n->e->n != n->n) return false;
    for (uint32_t i = 0; i < n->n; i++)
        if (n->e->a[i] != n->x[i]) return false;
    return true;
}

static void loop(const simplifier *s, cd_ast_node *n) {
    n->extent_e = cd_simplify_expr(s->a, n->extent_e);
    const cd_bound b = cd_simplify_bound(s->a, n->extent_e);
    n->extent = cd_expr_is_int(n->extent_e) ? n->extent_e->u.i : b.hi == CD_INF ? 1 : b.hi;
}

static void walk(const simplifier *s, int32_t from, int32_t to);

/* An `if` whose condition is decided disappears, with its body if the condition is false. The body
 * is simplified under the condition. */
static void branch(const simplifier *s, int32_t k) {
    const cd_expr *c = cd_simplify_expr(s->a, s->t->node[k].e);
    const int32_t end = s->t->node[k].end;
    s->t->node[k].e = c;
    if (c->op == CD_INT) {
        s->t->node[k].dead = true;
        if (!c->u.i) kill_run(s->t, k, end);
        else walk(s, k + 1, end);
        return;
    }
    if (c->op == CD_CALL && !strcmp(c->u.name, "likely")) c = c->a[0];
    const cd_constraint token = cd_constraint_enter(s->a, c);
    walk(s, k + 1, end);
    cd_constraint_leave(s->a, token);
}

/* Nodes from..to-1 in order; the body of an `if` is walked by branch(). */
static void walk(const simplifier *s, int32_t from, int32_t to) {
    for (int32_t k = from; k < to; k++) {
        cd_ast_node *n = &s->t->node[k];
        switch ((cd_ast_kind)n->kind) {
        case CD_AST_FOR:
        case CD_AST_THREAD: loop(s, n); break;
        case CD_AST_REALIZE:
        case CD_AST_ALLOC: exprs(s, n->x, n->n); break;
        case CD_AST_STORE:
            exprs(s, n->x, n->n);
            n->e = cd_simplify_expr(s->a, n->e);
            n->dead = stores_itself(n);
            break;
        case CD_AST_IF:
            branch(s, k);
            k = n->end - 1;
            break;
        case CD_AST_EVAL: exprs(s, n->x, n->n); break;
        case CD_AST_LET: n->dead = true; break;
        case CD_AST_ATTR: break;
        }
    }
}

/* TVM binds a variable on entering its loop. Variables are met nowhere else, so
 * all may be bound beforehand: then results stay memoised from loop to loop. */
static void bind_all(const simplifier *s) {
    for (int32_t k = 0; k < s->t->n; k++) {
        const cd_ast_node *n = &s->t->node[k];
        if (n->kind == CD_AST_FOR || n->kind == CD_AST_THREAD)
            cd_simplify_bind(s->a, n->var, cd_expr_new_int(s->pool, n->var->type, 0), n->extent_e);
        else if (n->kind == CD_AST_LET)
            cd_simplify_bind(s->a, n->var, n->e, cd_expr_new_int(s->pool, n->var->type, 1));
    }
}

cdmpp_status cd_ast_simplify(cd_ast *t, cd_simplifier *simp, cd_expr_pool *pool, cdmpp_err *err) {
    const simplifier s = {t, cd_simplify_analyzer_new(simp), pool};
    if (!s.a) return CD_FAIL(err, ENOMEM, "simplify");
    bind_all(&s);
    walk(&s, 0, t->n);
    return pool->oom || cd_simplify_oom(simp) ? CD_FAIL(err, ENOMEM, "simplify") : CDMPP_OK;
}

/* ---- the compact AST ---- */

typedef struct {
    int32_t *out;
    uint32_t n, cap;
} numbers;

static void put(numbers *o, int32_t x) {
    if (o->n < o->cap) o->out[o->n] = x;
    o->n++;
}

static bool counts(const cd_ast_node *n) {
    return !n->dead && n->kind != CD_AST_IF && n->kind != CD_AST_EVAL && n->kind != CD_AST_ALLOC &&
           n->kind != CD_AST_LET;
}

uint32_t cd_ast_serialize(const cd_ast *t, int32_t *out, uint32_t cap, int32_t *number,
                          int32_t *position) {
    numbers o = {out, 0, cap};
    int32_t next = 0, open = -1; /* innermost counted node whose -1 is still due */
    put(&o, next++);
    for (int32_t k = 0; k < t->n; k++) {
        number[k] = position[k] = -1;
        for (; open >= 0 && t->node[open].end <= k; open = t->node[open].parent)
            if (counts(&t->node[open])) put(&o, -1);
        if (t->node[k].end > k + 1 || counts(&t->node[k])) open = k;
        if (!counts(&t->node[k])) continue;
        position[k] = (int32_t)o.n;
        put(&o, number[k] = next++);
    }
    for (; open >= 0; open = t->node[open].parent)
        if (counts(&t->node[open])) put(&o, -1);
    put(&o, -1);
    return o.n;
}

/* ---- printing ---- */

static void list(cd_buf *out, const cd_ast_node *n, const cd_names *names) {
    const bool pairs = n->kind != CD_AST_STORE;
    cd_buf_puts(out, "[");
    for (uint32_t i = 0; i < n->n; i++) {
        if (i) cd_buf_puts(out, pairs && i % 2 ? " : +" : ", ");
        cd_expr_print(out, n->x[i], names);
    }
    cd_buf_puts(out, "]");
}

static void attr(cd_buf *out, const cd_ast_node *n) {
    static const char *const name[] = {"pragma_auto_unroll_max_step", "pragma_unroll_explicit",
                                       "reduce_scope"};
    cd_buf_putf(out, "attr %s = %lld", name[n->attr], (long long)n->extent);
}

/* TVM's words, so that a nest can be compared with what TVM prints. */
static void print_node(cd_buf *out, const cd_ast_node *n, const cd_names *names) {
    static const char *const loop_name[] = {"for", "parallel", "vectorized", "unrolled", "thread"};
    switch ((cd_ast_kind)n->kind) {
    case CD_AST_FOR:
        cd_buf_putf(out, "%s (%s, 0, ", loop_name[n->loop],
                    names->name(names->ctx, CD_VAR, (uint32_t)n->var->u.i));
        cd_expr_print(out, n->extent_e, names);
        cd_buf_puts(out, ")");
        break;
    case CD_AST_THREAD:
        cd_buf_putf(out,
                    "%s %s = ", n->tag == CD_AST_TAG_VTHREAD ? "virtual_thread" : "thread_extent",
                    names->name(names->ctx, CD_VAR, (uint32_t)n->var->u.i));
        cd_expr_print(out, n->extent_e, names);
        break;
    case CD_AST_ATTR: attr(out, n); break;
    case CD_AST_REALIZE:
    case CD_AST_ALLOC:
        cd_buf_putf(out, "%s %s", n->kind == CD_AST_ALLOC ? "allocate" : "realize",
                    names->name(names->ctx, CD_LOAD, n->tensor));
        list(out, n, names);
        break;
    case CD_AST_IF:
        cd_buf_puts(out, "if ");
        cd_expr_print(out, n->e, names);
        break;
    case CD_AST_STORE:
        cd_buf_puts(out, names->name(names->ctx, CD_LOAD, n->tensor));
        list(out, n, names);
        cd_buf_puts(out, " = ");
        cd_expr_print(out, n->e, names);
        break;
    case CD_AST_LET:
        cd_buf_putf(out, "let %s = ", names->name(names->ctx, CD_VAR, (uint32_t)n->var->u.i));
        cd_expr_print(out, n->e, names);
        break;
    case CD_AST_EVAL: cd_expr_print(out, n->e, names); break;
    }
}

void cd_ast_print(const cd_ast *t, cd_buf *out, const cd_names *names) {
    for (int32_t k = 0; k < t->n; k++) {
        if (t->node[k].dead) continue;
        for (int32_t p = t->node[k].parent; p >= 0; p = t->node[p].parent)
            if (!t->node[p].dead) cd_buf_puts(out, "  ");
        print_node(out, &t->node[k], names);
        cd_buf_puts(out, "\n");
    }
}
