/* Finds the packed order of a weight: each index is read as digits of loop variables in mixed
 * radix, and the digits of all dimensions are sorted by the loops that run over them, outermost
 * first. */
#include "profiler/codegen/code/code.h"

#include <string.h>

#define MOST_DIGITS 32

typedef struct {
    cd_codegen_digit d;
    int32_t loop; /* node that binds the variable */
    int64_t high; /* of two digits of one variable the greater is further out */
    int64_t k;
} digit;

typedef struct {
    cd_codegen_env *env;
    const cd_nest *nest;
    uint32_t tensor;
    const cd_expr *load;
    int32_t store; /* node that holds the load */
    digit digit[MOST_DIGITS];
    uint32_t n;
} packer;

static bool find(void *ctx, const cd_expr *e) {
    packer *p = ctx;
    if (e->op == CD_LOAD && (uint32_t)e->u.i == p->tensor) p->load = e;
    return !p->load;
}

static bool find_load(packer *p) {
    const cd_ast *t = p->nest->ast;
    for (int32_t k = 0; k < t->n && !p->load; k++) {
        if (t->node[k].dead || t->node[k].kind != CD_AST_STORE) continue;
        cd_expr_visit(t->node[k].e, find, p);
        p->store = k;
    }
    return p->load != NULL;
}

static int32_t loop_of(const packer *p, const cd_expr *var) {
    const cd_ast *t = p->nest->ast;
    for (int32_t k = t->node[p->store].parent; k >= 0; k = t->node[k].parent)
        if (t->node[k].kind == CD_AST_FOR && t->node[k].var->u.i == var->u.i) return k;
    return -1;
}

/* v, v // a, v % b, (v // a) % b, (v % b) // a: a run of digits of v. */
static bool read_atom(const packer *p, const cd_expr *e, digit *out) {
    out->high = 1;
    out->d.extent = cd_codegen_range_of(&p->env->ranges, e).hi;
    if (out->d.extent == CD_INF || out->d.extent < 0) return false;
    out->d.extent++;
    if (e->op == CD_FMOD && e->a[1]->op == CD_INT && out->d.extent != e->a[1]->u.i) return false;
    for (; (e->op == CD_FDIV || e->op == CD_FMOD) && e->a[1]->op == CD_INT; e = e->a[0])
        if (e->op == CD_FDIV) out->high *= e->a[1]->u.i;
    out->loop = e->op == CD_VAR ? loop_of(p, e) : -1;
    return out->loop >= 0;
}

static void insert(digit *d, uint32_t n, digit x, bool (*before)(const digit *, const digit *)) {
    uint32_t k = n;
    for (; k > 0 && before(&x, &d[k - 1]); k--) d[k] = d[k - 1];
    d[k] = x;
}

static bool heavier(const digit *a, const digit *b) { return a->k > b->k; }
static bool outer(const digit *a, const digit *b) {
    return a->loop != b->loop ? a->loop < b->loop : a->high > b->high;
}

/* Sorted by weight, the digits must multiply up without gaps to the size of the dimension: then
 * every element has one place. */
static bool read_dim(packer *p, uint32_t dim) {
    cd_codegen_affine a;
    digit d[CD_CODEGEN_MAX_AFFINE];
    const int64_t size = p->nest->tensor[p->tensor].shape[dim];
    cd_codegen_env_affine(p->env, p->load->a[dim], &a);
    if (a.c || (!a.n && size != 1) || p->n + a.n > MOST_DIGITS) return false;
    for (uint32_t k = 0; k < a.n; k++) {
        digit x = {.d = {.dim = dim, .div = a.t[k].k}, .k = a.t[k].k};
        if (a.t[k].k <= 0 || !read_atom(p, a.t[k].atom, &x)) return false;
        insert(d, k, x, heavier);
    }
    int64_t next = 1;
    for (uint32_t k = a.n; k-- > 0; next *= d[k].d.extent)
        if (d[k].k != next) return false;
    if (a.n && next < size) return false;
    for (uint32_t k = 0; k < a.n; k++) insert(p->digit, p->n++, d[k], outer);
    return true;
}

/* A parameter that does not fit the pattern is row-major, which is no error. */
cdmpp_status cd_codegen_pack_plan(cd_arena *a, cd_codegen_env *env, const cd_nest *nest,
                                  uint32_t tensor, const cd_codegen_digit **out, uint32_t *n,
                                  cdmpp_err *err) {
    packer p = {.env = env, .nest = nest, .tensor = tensor};
    *n = 0;
    *out = NULL;
    if (!find_load(&p)) return CDMPP_OK;
    for (uint32_t d = 0; d < nest->tensor[tensor].rank; d++)
        if (!read_dim(&p, d)) return CDMPP_OK;
    if (!p.n) return CDMPP_OK;
    cd_codegen_digit *list = CD_NEWN(a, cd_codegen_digit, p.n);
    if (!list) return CD_FAIL(err, ENOMEM, "packed parameter");
    for (uint32_t k = 0; k < p.n; k++) list[k] = p.digit[k].d;
    *out = list;
    *n = p.n;
    return CDMPP_OK;
}

void cd_codegen_pack(const cd_codegen_buffer *b, uint32_t rank, const int64_t *shape,
                     const void *from, void *to) {
    const size_t size = cd_expr_dtype_bytes(b->dtype);
    int64_t n = 1, x[64] = {0};
    for (uint32_t d = 0; d < rank; d++) n *= shape[d];
    for (int64_t e = 0; e < n; e++) {
        int64_t at = b->n_digit ? 0 : e;
        for (uint32_t k = 0; k < b->n_digit; k++)
            at =
                at * b->digit[k].extent + x[b->digit[k].dim] / b->digit[k].div % b->digit[k].extent;
        memcpy((char *)to + (size_t)at * size, (const char *)from + (size_t)e * size, size);
        for (uint32_t d = rank; d-- > 0 && ++x[d] == shape[d];) x[d] = 0;
    }
}
