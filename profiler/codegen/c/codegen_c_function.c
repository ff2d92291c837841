/* Functions of a C program: NAME (the entry), NAME_body, and NAME_pK for parallel loops. */

#include "profiler/codegen/c/codegen_c_internal.h"

static void parameters(cd_c_writer *g, cd_buf *out) {
    const char *comma = "";
    for (uint32_t t = 0; t < g->plan.n_slot; t++) {
        const cd_codegen_slot *s = &g->plan.slot[t];
        if (!s->used || (!s->is_arg && g->scratch[t] == UINT32_MAX)) continue;
        cd_buf_putf(out, "%s%s%s *restrict ", comma, s->stored ? "" : "const ",
                    cd_codegen_storage_type(CD_DIALECT_C, s->dtype));
        cd_c_write_tensor_name(g, out, t, 0);
        comma = ", ";
    }
}

/* What a call passes for them. from_arg: the entry has only the array. unit: whose scratch; NULL:
 * the first thread's. */
static void arguments(cd_c_writer *g, cd_buf *out, bool from_arg, const char *unit) {
    const char *comma = "";
    for (uint32_t t = 0; t < g->plan.n_slot; t++) {
        const cd_codegen_slot *s = &g->plan.slot[t];
        if (!s->used || (!s->is_arg && g->scratch[t] == UINT32_MAX)) continue;
        const uint32_t b = s->is_arg ? (uint32_t)s->arg : g->scratch[t];
        cd_buf_puts(out, comma);
        comma = ", ";
        const cd_codegen_buffer *x = &g->out->buffer[b];
        const bool moved = unit && x->per_thread;
        if (from_arg && moved)
            cd_buf_putf(out, "(%s *)", cd_codegen_storage_type(CD_DIALECT_C, s->dtype));
        if (from_arg) cd_buf_putf(out, "arg[%u]", b);
        else cd_c_write_tensor_name(g, out, t, 0);
        if (moved) cd_buf_putf(out, " + %lldL*%s", (long long)x->elements, unit);
    }
}

/* ---- a scope 0 of its own ---- */

/* Starts a function; the one around is set aside in *f. */
static bool enter(cd_c_writer *g, cd_c_function *f) {
    *f = g->fn;
    g->fn = (cd_c_function){.depth = -1, .first_token = g->n_token};
    g->fn.var_depth = cd_mem_zalloc(g->nest->n_var + 1, sizeof *g->fn.var_depth);
    return g->fn.var_depth && cd_c_scope_open(g, UINT32_MAX);
}

/* Goes back to the function around; of the inner one's tokens only the tensors stay known. */
static void leave(cd_c_writer *g, const cd_c_function *f) {
    const uint32_t first = g->fn.first_token;
    for (int d = 0; d <= g->fn.depth; d++) {
        cd_buf_free(&g->fn.scope[d].defs);
        cd_buf_free(&g->fn.scope[d].body);
        cd_mem_free(g->fn.scope[d].name);
    }
    cd_mem_free(g->fn.scope);
    cd_mem_free(g->fn.ptr);
    cd_mem_free(g->fn.var_depth);
    g->fn = *f;
    cd_c_tokens_close(g, first);
}

/* Head, then the text of scope 0, resolved. */
static void finish(cd_c_writer *g, const cd_buf *head) {
    cd_buf *out = &g->out->text;
    const cd_c_scope *s = cd_c_top(g);
    cd_buf_put(out, head->p, head->n);
    cd_buf_puts(out, " {\n");
    if (s->defs.n) cd_c_tokens_resolve(g, &s->defs, out);
    if (s->body.n) cd_c_tokens_resolve(g, &s->body, out);
    cd_buf_puts(out, "}\n\n");
    if (s->defs.oom || s->body.oom) g->oom = true;
}

/* ---- parallel loops ---- */

/* Loops around that are loops of the text: their variables are passed on. */
static void outer_vars(const cd_c_writer *g, cd_buf *out, bool declare) {
    for (int d = 1; d <= g->fn.depth; d++)
        if (g->fn.scope[d].var != UINT32_MAX)
            cd_buf_putf(out, declare ? ", int v%u" : ", v%u", g->plan.var[g->fn.scope[d].var]);
}

/* A function over begin .. end of loop k; loops around it pass their variables. */
static cdmpp_status parallel_function(cd_c_writer *g, int32_t k, const cd_buf *head,
                                      cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    const uint32_t var = (uint32_t)n->var->u.i, v = g->plan.var[var];
    cd_c_function f;
    cd_buf loop = {0};
    cdmpp_status st = CDMPP_OK;
    cd_buf_putf(&loop, "for (int v%u = begin; v%u < end; v%u++)", v, v, v);
    if (!enter(g, &f) || !cd_c_scope_open(g, var) || !loop.p) st = CD_FAIL(err, ENOMEM, "code");
    g->in_function = true;
    if (!st) st = cd_c_write_range(g, k + 1, n->end, err);
    g->in_function = false;
    if (!st) {
        cd_c_scope_close_loop(g, loop.p);
        finish(g, head);
    }
    leave(g, &f);
    cd_buf_free(&loop);
    return st;
}

/* As TVM divides: each thread gets ceil(n / threads) in a row. */
static void put_call(cd_c_writer *g, const cd_buf *name, const cd_buf *extent, cd_buf *out) {
    cd_buf_putf(out, "{ const int n = %s;\nif (cd_alone()) %s(", extent->p, name->p);
    arguments(g, out, false, NULL);
    outer_vars(g, out, false);
    cd_buf_puts(out, ", 0, n);\nelse\n#pragma omp parallel\n{ const int w = cd_threads(), s = (n + "
                     "w - 1) / w, b = cd_thread() * s;\n");
    cd_buf_putf(out, "if (b < n) %s(", name->p);
    arguments(g, out, false, "cd_thread()");
    outer_vars(g, out, false);
    cd_buf_puts(out, ", b, b + s < n ? b + s : n); }\n}\n");
}

/* Store statements that nodes from .. to-1 execute. A dead node stands for its children. */
static double stores(const cd_ast *t, int32_t from, int32_t to) {
    double n = 0;
    for (int32_t k = from; k < to; k = t->node[k].end) {
        const cd_ast_node *x = &t->node[k];
        if (x->kind == CD_AST_STORE) n += !x->dead;
        else
            n += stores(t, k + 1, x->end) *
                 (!x->dead && x->kind == CD_AST_FOR && x->extent > 0 ? (double)x->extent : 1);
    }
    return n;
}

/* Loop k becomes a part, unless loops or conditions stand around it, or the number of its
 * iterations is not known. */
static cdmpp_status add_part(cd_c_writer *g, int32_t k, cdmpp_err *err) {
    const cd_ast_node *n = &g->t->node[k];
    cd_codegen_code *c = g->out;
    g->rest |= g->fn.depth > 0 || g->fn.if_depth > 0 || n->extent_e->op != CD_INT ||
               n->extent < 1 || n->extent > INT32_MAX;
    if (g->rest) return CDMPP_OK;
    if (CD_GROW_IN(&c->arena, c->part, c->n_part, g->cap_part)) return CD_FAIL(err, ENOMEM, "code");
    c->part[c->n_part++] = (cd_codegen_part){n->extent, stores(g->t, k, n->end)};
    return CDMPP_OK;
}

/* The function's text goes in front of the one that calls it. */
cdmpp_status cd_c_write_parallel(cd_c_writer *g, int32_t k, cdmpp_err *err) {
    cd_buf name = {0}, head = {0}, extent = {0};
    cd_buf_putf(&name, "%s_p%u", g->name, ++g->n_function);
    cd_buf_putf(&head, "static __attribute__((noinline)) void %s(", name.p ? name.p : "");
    parameters(g, &head);
    outer_vars(g, &head, true);
    cd_buf_puts(&head, ", int begin, int end)");
    cdmpp_status st =
        cd_c_write_value(g, &extent, cd_codegen_env_apply(&g->env, g->t->node[k].extent_e), err);
    if (!st && (name.oom || head.oom || extent.oom)) st = CD_FAIL(err, ENOMEM, "code");
    if (!st) st = parallel_function(g, k, &head, err);
    if (!st) put_call(g, &name, &extent, cd_c_body(g));
    if (!st) st = add_part(g, k, err);
    g->out->parallel = true;
    cd_buf_free(&name);
    cd_buf_free(&head);
    cd_buf_free(&extent);
    return st;
}

/* ---- the program ---- */

static void put_entry(cd_c_writer *g) {
    cd_buf *out = &g->out->text;
    cd_buf_putf(out, "void %s(void *const *arg) {\n%s_body(", g->name, g->name);
    arguments(g, out, true, NULL);
    cd_buf_puts(out, ");\n}\n");
}

/* Part p is function p + 1, because they are numbered in the order in which they are written. */
static void put_parts(cd_c_writer *g) {
    cd_buf *out = &g->out->text;
    if (!g->out->n_part) return;
    cd_buf_putf(out,
                "void %s_part(void *const *arg, int part, int unit, int begin, int end) "
                "{\n(void)unit;\nswitch (part) {\n",
                g->name);
    for (uint32_t p = 0; p < g->out->n_part; p++) {
        cd_buf_putf(out, "case %u: %s_p%u(", p, g->name, p + 1);
        arguments(g, out, true, "unit");
        cd_buf_puts(out, ", begin, end); break;\n");
    }
    cd_buf_puts(out, "}\n}\n");
}

/* NAME_body has one restrict parameter for each buffer; NAME takes the array of pointers and calls
 * it. */
cdmpp_status cd_c_write_program(cd_c_writer *g, cdmpp_err *err) {
    cd_c_function f;
    cd_buf head = {0};
    cd_buf_putf(&head, "static __attribute__((noinline)) void %s_body(", g->name);
    parameters(g, &head);
    cd_buf_puts(&head, ")");
    cdmpp_status st = enter(g, &f) && !head.oom ? CDMPP_OK : CD_FAIL(err, ENOMEM, "code");
    if (!st) st = cd_c_write_range(g, 0, g->t->n, err);
    if (!st) {
        finish(g, &head);
        put_entry(g);
        if (g->rest) g->out->n_part = 0;
        put_parts(g);
    }
    leave(g, &f);
    cd_buf_free(&head);
    return st;
}
