/* Questions about operators of language models, from their names and values to answers. */
#include "learner/llm_op/llm_op_oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/io.h"
#include "learner/llm_op/llm_op_internal.h"

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

void cd_llm_op_oracle_free(cd_llm_op_oracle *o) {
    cd_llm_op_asker_free(o->asker);
    cd_llm_op_table_free(&o->t);
    cd_llm_op_model_free(o->m);
    cd_device_table_free(o->devices);
    *o = (cd_llm_op_oracle){0};
}

size_t cd_llm_op_oracle_bad(const cd_llm_op_oracle *o) {
    return o->t.drop[CD_LLM_OP_DROP_BAD] + o->t.drop[CD_LLM_OP_DROP_TIME];
}

static cdmpp_status load_model(cd_llm_op_oracle *o, const char *path, cdmpp_err *err) {
    char *data = NULL;
    size_t n = 0;
    cd_sha256 h;
    CD_TRY(cd_file_read(path, 0, &data, &n, err));
    cd_sha256_init(&h);
    cd_sha256_add(&h, data, n);
    cd_sha256_hex(&h, o->digest);
    const cdmpp_status st =
        cd_err_at(err, cd_llm_op_model_from_bytes(data, n, &o->m, err), path, 0);
    cd_mem_free(data);
    return st;
}

static cdmpp_status load_devices(cd_llm_op_oracle *o, const cd_llm_op_oracle_options *how,
                                 cdmpp_err *err) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cdmpp_status st =
        cd_device_table_open(&a, how->devices_file, NULL, &diag, NULL, &o->devices, err);
    if (!st && how->device)
        st = cd_err_key(err, cd_device_table_find(o->devices, how->device, &o->device, err),
                        "device");
    cd_diag_free(&diag);
    cd_arena_free(&a);
    return st;
}

/* Names that the model or a table knows have numbers of their own; all others share those of
 * cd_llm_op_names_close. */
static cdmpp_status close_names(cd_llm_op_oracle *o, cdmpp_err *err) {
    const cd_dict *of[] = {&o->m->stacks, &o->m->kernels};
    uint32_t k;
    for (size_t d = 0; d < 2; d++)
        for (size_t i = 0; i < of[d]->n; i++)
            CD_TRY(cd_dict_add(&o->t.names, (cd_str){of[d]->text[i], strlen(of[d]->text[i])}, &k,
                               err));
    CD_TRY(cd_llm_op_names_close(&o->t.names, err));
    return o->t.names.n <= UINT16_MAX
               ? CDMPP_OK
               : CD_FAIL(err, ERANGE, "more than 65535 names of stacks and kernels");
}

cdmpp_status cd_llm_op_oracle_open(cd_llm_op_oracle *o, const cd_llm_op_oracle_options *how,
                                   cdmpp_err *err) {
    uint32_t empty;
    CD_TRY(load_model(o, how->model, err));
    CD_TRY(load_devices(o, how, err));
    CD_TRY(cd_dict_add(&o->t.names, (cd_str){"", 0}, &empty, err));
    for (size_t i = 0; i < how->n_measured; i++)
        CD_TRY(cd_llm_op_table_add(&o->t, how->measured[i], o->devices, NULL, how->bad, how->ctx,
                                   err));
    CD_TRY(cd_llm_op_table_index(&o->t, err));
    CD_TRY(close_names(o, err));
    return cd_llm_op_asker_new(o->m, &o->t, &o->t.names, &o->asker, err);
}

cdmpp_status cd_llm_op_oracle_read(const cd_llm_op_oracle *o, const cd_op_named *v, size_t n,
                                   cd_llm_op_told *out, cdmpp_err *err) {
    const char *name;
    CD_TRY(cd_llm_op_from_named(v, n, &o->t.names, &out->r, &name, err));
    out->d = o->device;
    if (name[0])
        CD_TRY(cd_err_key(err, cd_device_table_find(o->devices, name, &out->d, err), "device"));
    return out->d ? CDMPP_OK
                  : cd_err_key(err,
                               CD_FAIL(err, ESCHEMA, "expected a device, or one for all questions"),
                               "device");
}

cdmpp_status cd_llm_op_ask_told(const cd_llm_op_asker *a, cd_llm_op_told *v, cdmpp_err *whys,
                                size_t n, double level, cdmpp_err *err) {
    cd_llm_op_record r[CD_LLM_OP_TOLD];
    const cd_device *d[CD_LLM_OP_TOLD];
    cd_llm_op_answer said[CD_LLM_OP_TOLD];
    for (size_t i = 0, m; i < n; i += m ? m : 1) { /* runs of questions that could be read */
        for (m = 0; m < CD_LLM_OP_TOLD && i + m < n && !whys[i + m].code; m++)
            r[m] = v[i + m].r, d[m] = v[i + m].d;
        if (!m) continue;
        CD_TRY(cd_llm_op_ask_many(a, r, d, m, level, said, whys + i, err));
        for (size_t k = 0; k < m; k++)
            if (!whys[i + k].code) v[i + k].a = said[k];
    }
    return CDMPP_OK;
}
