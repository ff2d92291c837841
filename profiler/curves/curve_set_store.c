/* Curves out of a store: workloads of one operator whose shapes differ in one dimension.
 *
 *   dim 0.0    [[1,64,56,56],[64,64,3,3]]  key [[-1,64,56,56],[64,64,3,3]] on v100: size 1, seconds
 *              [[8,64,56,56],[64,64,3,3]]                                           size 8
 *
 * In a first pass only that dimension may differ. What makes no curve of three sizes in that way is
 * grouped again: dimension D of all other operands that is equal to the size follows it then (a
 * batch that several operands have). Of one workload on one device the least median counts. */
#include <stdlib.h>
#include <string.h>

#include "profiler/curves/curves_internal.h"
#include "profiler/store/store.h"

enum { MAX_POINTS = 1 << 20 };

typedef struct {
    char *key[2]; /* shapes with -1, device; the size alone, with what follows it */
    double x, t;
    bool used; /* in a curve already */
} point;

typedef struct {
    cd_arena arena, scratch;
    point *p;
    size_t n, cap;
    unsigned operand, dim;
} state;

static cdmpp_status dim_of(const char *text, state *s, cdmpp_err *err) {
    char *end = NULL;
    if (!text) return CDMPP_OK;
    const unsigned long a = strtoul(text, &end, 10);
    const unsigned long d = *end == '.' ? strtoul(end + 1, &end, 10) : 99;
    if (text[0] < '0' || text[0] > '9' || *end || a > 31 || d > 31)
        return CD_FAIL(err, EUSAGE, "--dim: expected OPERAND.DIMENSION as 0.0, found '%.60s'",
                       text);
    s->operand = (unsigned)a;
    s->dim = (unsigned)d;
    return CDMPP_OK;
}

static const cd_json *nth(const cd_json *list, unsigned k) {
    const cd_json *v = list && list->kind == CD_JSON_ARR ? list->u.child : NULL;
    while (v && k--) v = v->next;
    return v;
}

/* The shapes with -1 in place of the size, and of what follows it; false: they are no lists of
 * sizes. */
static bool put_key(const state *s, const cd_json *shapes, int64_t size, bool follow, cd_buf *b) {
    unsigned k = 0;
    cd_buf_puts(b, "[");
    for (const cd_json *o = shapes->u.child; o; o = o->next, k++) {
        if (o->kind != CD_JSON_ARR) return false;
        unsigned d = 0;
        cd_buf_puts(b, o == shapes->u.child ? "[" : ", [");
        for (const cd_json *v = o->u.child; v; v = v->next, d++) {
            if (v->kind != CD_JSON_INT) return false;
            cd_buf_putf(b, "%s%lld", d ? ", " : "",
                        d == s->dim && (k == s->operand || (follow && v->u.i == size))
                            ? -1LL
                            : (long long)v->u.i);
        }
        cd_buf_puts(b, "]");
    }
    cd_buf_puts(b, "]");
    return true;
}

static cdmpp_status keep(state *s, const cd_buf *key, double x, double t, cdmpp_err *err) {
    if (s->n >= MAX_POINTS) return CD_FAIL(err, ERANGE, "more than %d measurements", MAX_POINTS);
    if (CD_GROW(s->p, s->n, s->cap)) return CD_FAIL(err, ENOMEM, "%zu measurements", s->n);
    point one = {.x = x, .t = t};
    for (int k = 0; k < 2; k++)
        if (key[k].oom || !(one.key[k] = cd_str_dup(&s->arena, (cd_str){key[k].p, key[k].n})))
            return CD_FAIL(err, ENOMEM, "measurement");
    s->p[s->n++] = one;
    return CDMPP_OK;
}

/* A row whose shapes are no lists of sizes is no point of a curve: passed over. */
static cdmpp_status visit(void *ctx, const cd_store_hit *h, cdmpp_err *err) {
    state *s = ctx;
    const cd_json *shapes, *size;
    cd_buf key[2] = {{0}};
    cdmpp_status st = CDMPP_OK;
    cd_arena_reset(&s->scratch);
    if (cd_json_parse(&s->scratch, h->row.shape.p, h->row.shape.n, &shapes, NULL) ||
        shapes->kind != CD_JSON_ARR)
        return CDMPP_OK;
    size = nth(nth(shapes, s->operand), s->dim);
    if (!size || size->kind != CD_JSON_INT || size->u.i < 1 || !(h->row.latency.median_s > 0))
        return CDMPP_OK;
    bool good = true;
    for (int k = 0; k < 2 && good; k++) {
        good = put_key(s, shapes, size->u.i, k, &key[k]);
        cd_buf_putf(&key[k], ", %.*s", (int)h->row.device.n, h->row.device.p);
    }
    if (good) st = keep(s, key, (double)size->u.i, h->row.latency.median_s, err);
    for (int k = 0; k < 2; k++) cd_buf_free(&key[k]);
    return st;
}

static int by_alone(const void *a, const void *b) {
    const point *p = a, *q = b;
    return p->used != q->used ? p->used - q->used : strcmp(p->key[0], q->key[0]);
}

static int by_follow(const void *a, const void *b) {
    const point *p = a, *q = b;
    return p->used != q->used ? p->used - q->used : strcmp(p->key[1], q->key[1]);
}

/* Points with equal keys are a curve if they have at least three sizes. `which`: the key. Sorting
 * brings points that are not in a curve yet to the front. */
static cdmpp_status add_groups(cd_curve_set *c, state *s, int which, double *x, cdmpp_err *err) {
    cdmpp_status st = CDMPP_OK;
    cd_buf name = {0};
    qsort(s->p, s->n, sizeof *s->p, which ? by_follow : by_alone);
    for (size_t i = 0, j; i < s->n && !s->p[i].used && !st && !cd_curve_set_full(c); i = j) {
        for (j = i; j < s->n && !s->p[j].used && !strcmp(s->p[j].key[which], s->p[i].key[which]);
             j++)
            x[j - i] = s->p[j].x, x[s->n + j - i] = s->p[j].t;
        const size_t n = cd_curve_set_sort(x, x + s->n, j - i);
        if (n < 3) continue;
        cd_buf_clear(&name);
        cd_buf_putf(&name, "%s %s", c->op, s->p[i].key[which]);
        st = cd_curve_set_add(c, name.p ? name.p : "", c->op, x, x + s->n, n, err);
        for (size_t k = i; k < j; k++) s->p[k].used = true;
    }
    cd_buf_free(&name);
    return st;
}

static cdmpp_status add_all(cd_curve_set *c, state *s, cdmpp_err *err) {
    if (!s->n) return CDMPP_OK;
    double *x = cd_mem_zalloc(2 * s->n, sizeof *x);
    cdmpp_status st = x ? CDMPP_OK : CD_FAIL(err, ENOMEM, "%zu points", s->n);
    for (int which = 0; which < 2 && !st; which++) st = add_groups(c, s, which, x, err);
    cd_mem_free(x);
    return st;
}

cdmpp_status cd_curve_set_read_store(cd_curve_set *c, const char *path, const char *device,
                                     const char *dim, cdmpp_err *err) {
    state s = {0};
    cd_store *store;
    const cd_store_filter which = {.device = device, .operator_name = c->op};
    CD_TRY(dim_of(dim, &s, err));
    CD_TRY(cd_store_open(path, false, &store, err));
    cdmpp_status st = cd_store_query(store, &which, visit, &s, err);
    cd_store_close(store);
    if (!st) st = add_all(c, &s, err);
    cd_mem_free(s.p);
    cd_arena_free(&s.scratch);
    cd_arena_free(&s.arena);
    return st;
}
