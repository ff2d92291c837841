/* Questions that leave the kernel, or the version of the library, to us: which of the measured ones
 * answers.
 *
 *   kind, types, device -> stack, kernel of each measured row, each once, sorted
 *
 *   gemm fp8 h100  vllm-0.24.0  Cutlass..  Marlin..  a question of vllm-0.24.0 without a kernel:
 *                                                    both are asked
 *                  vllm-0.25.0  Cutlass..            a question of vllm: all three
 *
 * Who measured took what the library takes, so of several kernels the one that was measured nearest
 * counts, and of those alike the fastest. */
#include <stdlib.h>
#include <string.h>

#include "learner/llm_op/llm_op_internal.h"

/* ---- what was measured ---- */
static uint64_t group_of(const cd_llm_op_record *r, uint32_t device) {
    return (uint64_t)device << 32 | (uint64_t)r->kind << 16 | (uint64_t)r->type << 8 | r->kv;
}

static int by_group(const void *p, const void *q) {
    const cd_llm_op_kernel *a = p, *b = q;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    if (a->stack != b->stack) return a->stack < b->stack ? -1 : 1;
    return (a->kernel > b->kernel) - (a->kernel < b->kernel);
}

/* Rows of a file mostly share what their neighbours have: few are left to sort. */
cdmpp_status cd_llm_op_kernels_new(cd_llm_op_asker *a, cdmpp_err *err) {
    size_t cap = 0, n = 0, m = 0;
    for (size_t i = 0; a->t && i < a->t->n; i++) {
        const cd_llm_op_record *r = &a->t->r[i];
        const cd_llm_op_kernel k = {group_of(r, a->t->device[i]), r->stack, r->kernel};
        if (n && !by_group(&a->of[n - 1], &k)) continue;
        if (CD_GROW(a->of, n, cap)) return CD_FAIL(err, ENOMEM, "%zu kernels", n);
        a->of[n++] = k;
    }
    if (n) qsort(a->of, n, sizeof *a->of, by_group);
    for (size_t i = 0; i < n; i++)
        if (!m || by_group(&a->of[m - 1], &a->of[i])) a->of[m++] = a->of[i];
    a->n_of = m;
    return CDMPP_OK;
}

/* ---- which are asked ---- */
typedef struct {
    size_t at, end;
    const char *library; /* all its versions; NULL: the stack that is asked for */
    size_t length;
    uint16_t kernel; /* with a library: 0: any */
} choice;

static size_t first_of(const cd_llm_op_asker *a, uint64_t group, uint32_t stack) {
    size_t lo = 0, hi = a->n_of;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (a->of[mid].group < group || (a->of[mid].group == group && a->of[mid].stack < stack))
            lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* The name of a library without a version; NULL: it has one, or there is no name. */
static const char *library_of(const cd_llm_op_asker *a, const cd_llm_op_record *r) {
    const char *name = r->stack && r->stack < a->names->n ? a->names->text[r->stack] : "-";
    return strchr(name, '-') ? NULL : name;
}

/* The next measured one that the question leaves open; false: there is none, or no further one. */
static bool next(const cd_llm_op_asker *a, choice *c, cd_llm_op_record *r) {
    for (; c->at < c->end; c->at++) {
        const cd_llm_op_kernel *k = &a->of[c->at];
        const char *name = a->names->text[k->stack];
        if (c->library && (strncmp(name, c->library, c->length) != 0 || name[c->length] != '-'))
            continue;
        if (c->kernel && c->kernel != k->kernel) continue;
        r->stack = k->stack, r->kernel = k->kernel;
        c->at++;
        return true;
    }
    return false;
}

/* Of the rows of one device; false: none is like the question. */
static bool open_on(const cd_llm_op_asker *a, const cd_llm_op_record *r, const char *library,
                    long device, choice *c) {
    cd_llm_op_record one = *r;
    if (device < 0) return false;
    const uint64_t group = group_of(r, (uint32_t)device);
    *c = (choice){.at = first_of(a, group, r->stack), .end = first_of(a, group, r->stack + 1u)};
    if (c->at < c->end) {
        if (r->kernel) c->end = c->at; /* measured under this very name */
        return true;
    }
    if (library)
        *c = (choice){first_of(a, group, 0), first_of(a, group + 1, 0), library, strlen(library),
                      r->kernel};
    choice look = *c;
    return next(a, &look, &one);
}

/* Where the device has no such rows, those of its twin: it answers. */
static choice open_of(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_device *d) {
    choice c = {0};
    if (!a->n_of) return c;
    const char *library = library_of(a, r);
    if ((r->kernel && !library) || open_on(a, r, library, cd_llm_op_table_device(a->t, d), &c))
        return c;
    const cd_device *twin = cd_llm_op_twin_for(a->m, r, d);
    return twin && open_on(a, r, library, cd_llm_op_table_device(a->t, twin), &c) ? c : (choice){0};
}

/* ---- answers ---- */
static cd_llm_op_how how(const cd_llm_op_answer *a) { return a->twin ? a->twin_how : a->how; }

/* Rows of the device itself are nearer than those of its twin. */
static bool better(const cd_llm_op_answer *a, const cd_llm_op_answer *b) {
    if (a->how != b->how) return a->how < b->how;
    return how(a) != how(b) ? how(a) < how(b) : a->latency_s < b->latency_s;
}

cdmpp_status cd_llm_op_ask(const cd_llm_op_asker *a, const cd_llm_op_record *r, const cd_device *d,
                           double level, cd_llm_op_answer *out, cdmpp_err *err) {
    choice c = open_of(a, r, d);
    cd_llm_op_record one = *r;
    if (!next(a, &c, &one)) return cd_llm_op_ask_as_is(a, r, d, level, out, err);
    CD_TRY(cd_llm_op_ask_as_is(a, &one, d, level, out, err));
    while (next(a, &c, &one)) {
        cd_llm_op_answer v;
        CD_TRY(cd_llm_op_ask_as_is(a, &one, d, level, &v, err));
        if (better(&v, out)) *out = v;
    }
    return CDMPP_OK;
}

enum { BLOCK = 256 };

/* Records that are asked together: of each whose answer it may be, and whether it is the first of
 * it. */
typedef struct {
    cd_llm_op_record r[BLOCK];
    const cd_device *d[BLOCK];
    cd_llm_op_answer v[BLOCK];
    cdmpp_err why[BLOCK];
    size_t of[BLOCK], n;
    bool first[BLOCK];
} block;

typedef struct {
    const cd_llm_op_asker *a;
    double level;
    cd_llm_op_answer *out;
    cdmpp_err *whys; /* NULL: the first error ends it */
} asked;

static cdmpp_status ask_block(const asked *q, block *b, cdmpp_err *err) {
    CD_TRY(cd_llm_op_ask_many_as_is(q->a, b->r, b->d, b->n, q->level, b->v, q->whys ? b->why : NULL,
                                    err));
    for (size_t i = 0; i < b->n; i++) {
        const size_t k = b->of[i];
        /* as one by one: the first error stays */
        if (q->whys && !b->first[i] && q->whys[k].code) continue;
        if (q->whys && b->why[i].code) q->whys[k] = b->why[i];
        else if (q->whys) q->whys[k].code = CDMPP_OK;
        if ((!q->whys || !b->why[i].code) && (b->first[i] || better(&b->v[i], &q->out[k])))
            q->out[k] = b->v[i];
    }
    b->n = 0;
    return CDMPP_OK;
}

static cdmpp_status put(const asked *q, block *b, const cd_llm_op_record *r, const cd_device *d,
                        size_t of, bool first, cdmpp_err *err) {
    if (b->n == BLOCK) CD_TRY(ask_block(q, b, err));
    b->r[b->n] = *r, b->d[b->n] = d, b->of[b->n] = of, b->first[b->n++] = first;
    return CDMPP_OK;
}

static cdmpp_status ask_open(const asked *q, const cd_llm_op_record *r, const cd_device *const *d,
                             size_t n, cdmpp_err *err) {
    block b;
    b.n = 0;
    for (size_t i = 0; i < n; i++) {
        choice c = open_of(q->a, &r[i], d[i]);
        cd_llm_op_record one = r[i];
        bool first = true;
        for (; next(q->a, &c, &one); first = false) CD_TRY(put(q, &b, &one, d[i], i, first, err));
        if (first) CD_TRY(put(q, &b, &r[i], d[i], i, true, err));
    }
    return b.n ? ask_block(q, &b, err) : CDMPP_OK;
}

cdmpp_status cd_llm_op_ask_many(const cd_llm_op_asker *a, const cd_llm_op_record *r,
                                const cd_device *const *d, size_t n, double level,
                                cd_llm_op_answer *out, cdmpp_err *whys, cdmpp_err *err) {
    for (size_t i = 0; a->n_of && i < n; i++)
        if (!r[i].kernel || library_of(a, &r[i]))
            return ask_open(&(asked){a, level, out, whys}, r, d, n, err);
    return cd_llm_op_ask_many_as_is(a, r, d, n, level, out, whys, err);
}
