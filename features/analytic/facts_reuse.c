/* What caches of several capacities fetch and give back, by layer conditions.
 *
 *   for i          at every node and for every tensor
 *     for j          lines      distinct lines that one execution touches
 *       for k        distance   bytes touched between two touches of a line when the node is
 *                               executed again
 *         C += A*B   moved[c]   lines that one execution fetches into an empty cache of capacity c
 *
 *   loop:  moved[c] = distance of the body <= c ? lines of the loop : turns * moved[c] of the body
 *
 * A tensor that does not move in a node is touched by every turn of the loops inside, so its
 * distance is that of what is inside. Children of a loop follow each other: what one left in the
 * cache the next finds, if both together fit. Of a tensor's accesses those that overlap count
 * once. */
#include <math.h>
#include <string.h>

#include "features/analytic/analytic_internal.h"

#define MOST          16
#define CROWDED_CACHE 32768.0 /* bytes: 64 sets of 8 lines */

typedef struct {
    double lines, written, distance;
    /* capacities that move more than lines and written; the others move these */
    uint32_t small;
    double fetch[MOST], back[MOST]; /* (small) */
} state;                            /* of a tensor at a node */

typedef struct {
    cd_an *w;
    int64_t granule;
    uint32_t n_cap;
    double cap[MOST]; /* bytes */
    /* (n_node) of its tensors; a loop with one child goes on with the child's */
    state **at;
    double *old, *old_written; /* (n_tensor) scratch: of the body */
    double *bytes;             /* (n_node) touched by one execution */
    /* (n_node) the same of lines, of pages: a node of few lines has few pages. NULL: not known */
    const double *fits;
    double *low, *high;   /* (n_tensor) scratch: range of addresses */
    double *reach, *last; /* (n_tensor) scratch: prefix of bytes, lines */
    /* (n_tensor) scratch: bytes up to the end of the first child that touches it */
    double *head;
    /* (n_tensor) scratch: last child that did, first that touches */
    int32_t *touched, *wrote, *first;
} pass;

static state *at(const pass *p, int32_t node) { return p->at[node]; }

/* Capacities below so many bytes. */
static uint32_t smaller(const pass *p, double bytes) {
    uint32_t c = 0;
    while (c < p->n_cap && p->cap[c] < bytes) c++;
    return c;
}

static double fetched(const state *s, uint32_t c) { return c < s->small ? s->fetch[c] : s->lines; }
static double given(const state *s, uint32_t c) { return c < s->small ? s->back[c] : s->written; }

static state *new_states(pass *p) {
    state *s = cd_arena_alloc(&p->w->arena, p->w->n_tensor + 1, sizeof *s);
    if (!s) p->w->oom = true;
    return s;
}

/* Lines of each tensor by the accesses from..to-1, whose own lines are known; returns bytes. */
static double unite(const pass *p, uint32_t from, uint32_t to, state *out) {
    const cd_an *w = p->w;
    for (uint32_t t = 0; t < w->n_tensor; t++) out[t].lines = out[t].written = 0;
    for (uint32_t k = from; k < to; k++) {
        const cd_an_access *a = &w->acc[k];
        state *s = &out[a->tensor];
        if (a->copy || a->inside) continue;
        const double low = (double)a->c, high = low + a->width;
        if (!s->lines || low >= p->high[a->tensor] || high <= p->low[a->tensor])
            s->lines += a->lines;
        else s->lines = cd_an_max(s->lines, a->lines);
        if (s->lines == a->lines) {
            p->low[a->tensor] = low;
            p->high[a->tensor] = high;
        } else {
            p->low[a->tensor] = cd_an_min(p->low[a->tensor], low);
            p->high[a->tensor] = cd_an_max(p->high[a->tensor], high);
        }
        if (a->write) s->written = cd_an_max(s->written, a->lines);
    }
    double bytes = 0;
    for (uint32_t t = 0; t < w->n_tensor; t++) bytes += out[t].lines;
    return bytes * (double)p->granule;
}

static void measure(const pass *p, cd_an_access *a, int32_t node) {
    a->lines = cd_facts_lines_count(a, node, p->granule, &a->width);
}

/* A node that fits any of the capacities, with all that is below it: a store, or what skip() left
 * out. */
static void leaf(pass *p, int32_t k) {
    const cd_an_node *n = &p->w->node[k];
    state *s = p->at[k] = new_states(p);
    if (!s) return;
    for (uint32_t i = n->acc0; i < n->acc1; i++) measure(p, &p->w->acc[i], k);
    p->bytes[k] = unite(p, n->acc0, n->acc1, s);
    for (uint32_t t = 0; t < p->w->n_tensor; t++) {
        s[t].distance = p->bytes[k];
        s[t].small = 0;
    }
}

/* ---- children in a row ---- */

static void follow(pass *p, state *body, int32_t child, double before) {
    const state *s = at(p, child);
    for (uint32_t t = 0; t < p->w->n_tensor; t++) {
        state *b = &body[t];
        if (!(s[t].lines > 0)) continue;
        /* both run over the tensor in the same order: what is between is the rest of the one and
         * the beginning of the other */
        const bool again = p->touched[t] >= 0;
        const double rest = again ? cd_an_min(p->bytes[p->touched[t]], p->bytes[child]) : 0;
        const double span = before + p->bytes[child] - p->reach[t] - rest,
                     both = again ? cd_an_min(p->last[t], s[t].lines) : 0;
        const double rewritten =
            p->wrote[t] >= 0 ? cd_an_min(at(p, p->wrote[t])[t].written, s[t].written) : 0;
        for (uint32_t c = 0; c < b->small; c++) {
            const double fetch = fetched(&s[t], c), back = given(&s[t], c);
            const bool kept = span <= p->cap[c];
            b->fetch[c] = (again ? b->fetch[c] : 0) + (fetch - (kept ? cd_an_min(both, fetch) : 0));
            b->back[c] =
                (again ? b->back[c] : 0) + (back - (kept ? cd_an_min(rewritten, back) : 0));
        }
        if (!again) {
            p->first[t] = child;
            p->head[t] = before + p->bytes[child];
        }
        b->distance = again ? (double)INFINITY : s[t].distance - p->bytes[child];
        p->reach[t] = before;
        p->last[t] = cd_an_max(both, s[t].lines);
        p->touched[t] = child;
        if (s[t].written > 0) p->wrote[t] = child;
    }
}

/* What the first child finds in the cache from the last one of the turn before. */
static void around(const pass *p, uint32_t t, double all, double shared, uint32_t c, double *fetch,
                   double *back) {
    const int32_t first = p->first[t], last = p->touched[t];
    *fetch = *back = 0;
    if (first < 0 || all - p->reach[t] + p->head[t] > p->cap[c]) return;
    const state *a = &at(p, first)[t], *b = &at(p, last)[t];
    *fetch = shared * cd_an_min(cd_an_min(a->lines, b->lines), fetched(a, c));
    if (p->wrote[t] >= 0)
        *back =
            shared * cd_an_min(cd_an_min(a->written, at(p, p->wrote[t])[t].written), given(a, c));
}

/* The body of a loop with several children; returns its bytes. */
static double sequence(pass *p, int32_t k) {
    const cd_an_node *n = &p->w->node[k];
    state *body = at(p, k);
    const double bytes = unite(p, n->acc0, n->acc1, body);
    const uint32_t small = smaller(p, bytes);
    double before = 0;
    for (uint32_t t = 0; t < p->w->n_tensor; t++) {
        p->touched[t] = p->wrote[t] = p->first[t] = -1;
        p->reach[t] = p->last[t] = 0;
        body[t].small = small;
    }
    for (int32_t c = k + 1; c < n->end; c = p->w->node[c].end) {
        follow(p, body, c, before);
        before += p->bytes[c];
    }
    for (uint32_t t = 0; t < p->w->n_tensor; t++)
        body[t].distance = cd_an_min(body[t].distance + before, bytes);
    return before;
}

/* ---- loops ---- */

static bool moves(const cd_an_access *a, int32_t node) { return cd_an_stride(a, node) != 0; }

/* Lines that meet in sets of a cache of 64 sets of 8 and so push each other out, whatever its size:
 * copies a power of two apart. */
static double conflicts(const cd_an_access *a, int32_t node, double lines) {
    double sets = 1;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->t[i].node < node) continue;
        const int64_t step = a->t[i].stride / CD_AN_LINE;
        const int64_t low = step & -step, cycle = step % 64 ? 64 / low : 1;
        sets *= a->t[i].stride < CD_AN_LINE
                    ? cd_an_max(1, (double)(a->t[i].stride * a->t[i].n) / CD_AN_LINE)
                    : (double)(a->t[i].n < cycle ? a->t[i].n : cycle);
    }
    return lines > 8 * cd_an_min(ceil(sets), 64) ? lines : 0;
}

/* Does it move with node k, or in a loop below that stays a loop? Else registers hold it while k
 * runs. */
static bool in_memory(const pass *p, const cd_an_access *a, int32_t k) {
    if (cd_an_stride(a, k)) return true;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->t[i].node > k && a->t[i].node != CD_AN_HERE && !p->w->node[a->t[i].node].copied &&
            !cd_an_is_vector(p->w, a->t[i].node))
            return true;
    return false;
}

/* Of each access the innermost loop that comes back to lines which its body touched, more of them
 * than a set has ways. A body that is larger than the cache loses them anyway. `old`: lines of the
 * body. */
static void crowd(const pass *p, cd_an_access *a, int32_t k, double old) {
    const cd_an_node *n = &p->w->node[k];
    const double again = n->extent * old - a->lines;
    if (a->crowded || a->copy || a->inside || old <= 8 || cd_an_is_vector(p->w, k) ||
        again < 0.25 * n->extent * old)
        return;
    a->crowded = true;
    if (p->bytes[k + 1] > CROWDED_CACHE || !in_memory(p, a, k)) return;
    p->w->out[CD_FACT_CONFLICT_LINES] +=
        (float)(again / (n->extent * old) * conflicts(a, k + 1, old) * n->runs * n->extent);
}

/* Lines that all iterations of a parallel loop read. */
static void share(const pass *p, int32_t k) {
    const cd_an_node *n = &p->w->node[k];
    if (p->granule != CD_AN_LINE || n->loop != CD_LOOP_PARALLEL || k != p->w->var[n->var].node)
        return;
    for (uint32_t i = n->acc0; i < n->acc1; i++) {
        const cd_an_access *a = &p->w->acc[i];
        bool still = !a->write && !a->copy && !p->w->tensor[a->tensor].written;
        for (int32_t d = k; d <= cd_an_innermost(p->w, n->var); d++)
            still = still && !cd_an_stride(a, d);
        if (still && !a->inside) p->w->out[CD_FACT_LINES_SHARED] += (float)a->lines;
    }
}

/* Caches that hold what is touched between two touches fetch every line once, the others what the
 * body fetches, in every turn. */
static void turn(const pass *p, int32_t k, uint32_t t, double row) {
    const cd_an_node *n = &p->w->node[k];
    state *s = &at(p, k)[t];
    const double old = p->old[t], old_written = p->old_written[t];
    const uint32_t small = smaller(p, s->distance);
    double fetch = 0, back = 0, shared = 0;
    if (s->lines > old * 1.000001) s->distance = p->bytes[k];
    if (n->only < 0 && n->extent > 1 && small)
        shared =
            cd_an_max(0, (n->extent * old - s->lines) / ((n->extent - 1) * cd_an_max(old, 1e-9)));
    for (uint32_t c = 0; c < small; c++) {
        if (shared > 0) around(p, t, row, shared, c, &fetch, &back);
        s->fetch[c] = n->extent * (c < s->small ? s->fetch[c] : old) - (n->extent - 1) * fetch;
        s->back[c] = n->extent * (c < s->small ? s->back[c] : old_written) - (n->extent - 1) * back;
    }
    s->small = small;
}

static void loop(pass *p, int32_t k) {
    const cd_an_node *n = &p->w->node[k];
    double row = 0;
    for (int32_t c = k + 1; c < n->end; c = p->w->node[c].end)
        if (!p->at[c]) leaf(p, c);
    state *s = p->at[k] = n->only >= 0 ? at(p, n->only) : new_states(p);
    if (!s || p->w->oom) return;
    if (n->only < 0) row = sequence(p, k);
    for (uint32_t t = 0; t < p->w->n_tensor; t++) {
        p->old[t] = s[t].lines;
        p->old_written[t] = s[t].written;
    }
    for (uint32_t i = n->acc0; i < n->acc1; i++) {
        cd_an_access *a = &p->w->acc[i];
        const double body = a->lines;
        if (moves(a, k)) measure(p, a, k);
        if (body > 8 && p->granule == CD_AN_LINE) crowd(p, a, k, body);
    }
    share(p, k);
    p->bytes[k] = unite(p, n->acc0, n->acc1, s);
    for (uint32_t t = 0; t < p->w->n_tensor; t++)
        if (s[t].lines > 0) turn(p, k, t, row);
}

static bool prepare(pass *p) {
    cd_arena *a = &p->w->arena;
    const size_t n = p->w->n_tensor + 1;
    p->at = cd_arena_zalloc(a, (size_t)p->w->n_node, sizeof *p->at);
    p->bytes = cd_arena_alloc(a, (size_t)p->w->n_node, sizeof *p->bytes);
    p->low = cd_arena_alloc(a, 7 * n, sizeof *p->low);
    p->touched = cd_arena_alloc(a, 3 * n, sizeof *p->touched);
    if (!p->at || !p->bytes || !p->low || !p->touched) return false;
    p->high = p->low + n;
    p->reach = p->high + n;
    p->last = p->reach + n;
    p->head = p->last + n;
    p->old = p->head + n;
    p->old_written = p->old + n;
    p->wrote = p->touched + n;
    p->first = p->wrote + n;
    return true;
}

static void run(pass *p) {
    for (int32_t k = p->w->n_node; k-- > 0 && !p->w->oom;) {
        if (k && p->fits && p->fits[k] <= p->cap[0] / (double)p->granule * CD_AN_LINE) continue;
        if (p->w->node[k].kind == CD_AN_STORE) leaf(p, k);
        else loop(p, k);
    }
}

/* ---- facts ---- */

static void put_lines(const pass *p, float *out) {
    const cd_an *w = p->w;
    const state *root = at(p, 0);
    for (uint32_t t = 0; t < w->n_tensor; t++) {
        const cd_an_tensor *x = &w->tensor[t];
        const float lines = (float)root[t].lines;
        if (!(lines > 0)) continue; /* allocated, but not touched */
        for (uint32_t c = 0; c < p->n_cap; c++) {
            out[CD_FACT_FETCHED_0 + c] += (float)fetched(&root[t], c);
            out[CD_FACT_WRITTEN_0 + c] += (float)given(&root[t], c);
        }
        out[CD_FACT_LINES] += lines;
        out[!x->arg      ? CD_FACT_LINES_SCRATCH
            : x->written ? CD_FACT_LINES_OUTPUT
                         : CD_FACT_LINES_INPUT] += lines;
        if (x->first_written) out[CD_FACT_LINES_ALLOCATED] += lines;
    }
}

static void put_pages(const pass *p, float *out) {
    const state *root = at(p, 0);
    for (uint32_t t = 0; t < p->w->n_tensor; t++) {
        if (!(root[t].lines > 0)) continue;
        out[CD_FACT_PAGES_64] += (float)fetched(&root[t], 0);
        out[CD_FACT_PAGES_2048] += (float)fetched(&root[t], 1);
    }
}

static bool start(pass *p, cd_an *w, int64_t granule, const double *cap, uint32_t n_cap,
                  const double *fits) {
    *p = (pass){.w = w, .granule = granule, .n_cap = n_cap, .fits = fits};
    memcpy(p->cap, cap, n_cap * sizeof *cap);
    if (!prepare(p)) return !(w->oom = true);
    run(p);
    return !w->oom;
}

/* Few pages are looked up once each. */
static bool few_pages(cd_an *w, const pass *lines) {
    double all = 0, width;
    for (uint32_t t = 0; t < w->n_tensor; t++)
        all += at(lines, 0)[t].lines > 0 ? at(lines, 0)[t].lines * CD_AN_LINE / CD_AN_PAGE + 1 : 0;
    if (all > 32) return false;
    double pages[32] = {0};
    for (uint32_t k = 0; k < w->n_raw; k++) {
        const cd_an_access *a = &w->acc[k];
        if (a->copy || a->inside || a->tensor >= 32) continue;
        pages[a->tensor] =
            cd_an_max(pages[a->tensor], cd_facts_lines_count(a, 0, CD_AN_PAGE, &width));
    }
    for (uint32_t t = 0; t < 32; t++) w->out[CD_FACT_PAGES_64] += (float)pages[t];
    w->out[CD_FACT_PAGES_2048] = w->out[CD_FACT_PAGES_64];
    return true;
}

void cd_facts_reuse_count(cd_an *w) {
    pass p;
    double cap[MOST];
    const double entries[] = {64.0 * CD_AN_PAGE, 2048.0 * CD_AN_PAGE};
    for (uint32_t c = 0; c < CD_N_FACT_CAPACITY; c++)
        cap[c] = CD_FACT_CAPACITY_LEAST * (double)(1U << c);
    if (!start(&p, w, CD_AN_LINE, cap, CD_N_FACT_CAPACITY, NULL)) return;
    put_lines(&p, w->out);
    if (!few_pages(w, &p) && start(&p, w, CD_AN_PAGE, entries, 2, p.bytes)) put_pages(&p, w->out);
}

void cd_facts_reuse_traffic(cd_an *w, int64_t granule, const double *cap, uint32_t n_cap,
                            double *fetch, double *back) {
    pass p;
    if (!start(&p, w, granule, cap, n_cap, NULL)) return;
    for (uint32_t c = 0; c < n_cap; c++) fetch[c] = back[c] = 0;
    for (uint32_t t = 0; t < w->n_tensor; t++)
        for (uint32_t c = 0; c < n_cap && at(&p, 0)[t].lines > 0; c++) {
            fetch[c] += fetched(&at(&p, 0)[t], c);
            back[c] += given(&at(&p, 0)[t], c);
        }
}
