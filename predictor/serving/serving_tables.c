/* Measured operators, and which libraries, kernels and sizes there are of each kind. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "predictor/serving/serving_bad.h"
#include "predictor/serving/serving_internal.h"

/* Rows of a table that cannot be used, in the order of the file. */

void cd_serving_bad_add(void *ctx, const cdmpp_err *why) {
    cd_serving_bad *b = ctx;
    const size_t kept = b->n < CD_SERVING_BAD ? b->n : CD_SERVING_BAD;
    size_t at = kept;
    b->n++;
    while (at && b->first[at - 1].line > why->line) at--;
    if (at == CD_SERVING_BAD) return;
    memmove(&b->first[at + 1], &b->first[at],
            ((kept < CD_SERVING_BAD ? kept : CD_SERVING_BAD - 1) - at) * sizeof *b->first);
    b->first[at] = *why;
}

void cd_serving_bad_tell(const cd_serving_bad *b, const char *path, cd_op_bad_line *say,
                         void *ctx) {
    cdmpp_err why = {0};
    for (size_t i = 0; i < b->n && i < CD_SERVING_BAD; i++) say(ctx, &b->first[i]);
    if (b->n <= CD_SERVING_BAD) return;
    const size_t more = b->n - CD_SERVING_BAD;
    (void)cd_err_at(
        &why,
        CD_FAIL(&why, ESCHEMA, "%zu further row%s left out", more, more > 1 ? "s are" : " is"),
        path, 0);
    say(ctx, &why);
}

void cd_serving_tables_free(cd_serving_tables *t) {
    if (!t) return;
    for (size_t i = 0; i < t->n_group; i++)
        for (size_t k = 0; k < CD_LLM_OP_MAX_SIZE; k++) cd_mem_free(t->group[i].size[k]);
    cd_mem_free(t->group);
    cd_llm_op_table_free(&t->t);
    cd_mem_free(t);
}

static bool is_of(const cd_serving_group *g, const cd_llm_op_record *r, uint32_t device) {
    return g->kind == r->kind && g->type == r->type && g->kv == r->kv && g->stack == r->stack &&
           g->kernel == r->kernel && g->device == device;
}

static cdmpp_status groups(cd_serving_tables *t, uint32_t *of, cdmpp_err *err) {
    size_t last = 0;
    for (size_t i = 0; i < t->t.n; i++) {
        const cd_llm_op_record *r = &t->t.r[i];
        if (!t->n_group || !is_of(&t->group[last], r, t->t.device[i]))
            for (last = 0; last < t->n_group && !is_of(&t->group[last], r, t->t.device[i]);
                 last++) {
            }
        if (last == t->n_group) {
            if (CD_GROW(t->group, t->n_group, t->cap_group))
                return CD_FAIL(err, ENOMEM, "%zu groups", t->n_group);
            t->group[t->n_group++] = (cd_serving_group){.kind = r->kind,
                                                        .type = r->type,
                                                        .kv = r->kv,
                                                        .stack = r->stack,
                                                        .kernel = r->kernel,
                                                        .device = t->t.device[i]};
        }
        of[i] = (uint32_t)last;
        t->group[last].rows++;
    }
    return CDMPP_OK;
}

/* All values of one size of a group's rows, ascending, each once. */
static cdmpp_status sizes(cd_serving_tables *t, uint32_t group, size_t k, const uint32_t *of,
                          double *room, cdmpp_err *err) {
    cd_serving_group *g = &t->group[group];
    size_t n = 0, m = 0;
    for (size_t i = 0; i < t->t.n; i++)
        if (of[i] == group) room[n++] = t->t.r[i].size[k];
    cd_sort_doubles(room, n);
    for (size_t i = 0; i < n; i++)
        if (!m || room[i] > room[m - 1]) room[m++] = room[i];
    if (!(g->size[k] = cd_mem_zalloc(m + 1, sizeof(double))))
        return CD_FAIL(err, ENOMEM, "%zu sizes", m);
    memcpy(g->size[k], room, m * sizeof(double));
    g->n_size[k] = m;
    return CDMPP_OK;
}

static cdmpp_status index_of(cd_serving_tables *t, cdmpp_err *err) {
    uint32_t *of = cd_mem_zalloc(t->t.n + 1, sizeof *of);
    double *room = cd_mem_zalloc(t->t.n + 1, sizeof *room);
    cdmpp_status st = CDMPP_OK;
    if (!of || !room) st = CD_FAIL(err, ENOMEM, "%zu rows", t->t.n);
    if (!st) st = groups(t, of, err);
    for (size_t i = 0; !st && i < t->n_group; i++)
        for (size_t k = 0; !st && k < cd_llm_op_n_size((cd_llm_op_kind)t->group[i].kind); k++)
            st = sizes(t, (uint32_t)i, k, of, room, err);
    cd_mem_free(of);
    cd_mem_free(room);
    return st;
}

size_t cd_serving_tables_bad(const cd_serving_tables *t) {
    return t->t.drop[CD_LLM_OP_DROP_BAD] + t->t.drop[CD_LLM_OP_DROP_TIME];
}

void cd_serving_tables_say(const cd_serving_tables *t, struct cd_log *log) {
    cd_llm_op_table_say(&t->t, log);
}

bool cd_serving_tables_have(const cd_serving_tables *t, const cd_device *d) {
    return cd_llm_op_table_device(&t->t, d) >= 0;
}

cdmpp_status cd_serving_tables_open(const char *path, const cd_device_table *devices,
                                    cd_op_bad_line *bad, void *ctx, cd_serving_tables **out,
                                    cdmpp_err *err) {
    cd_serving_tables *t = cd_mem_zalloc(1, sizeof *t);
    uint32_t empty;
    if (!t) return CD_FAIL(err, ENOMEM, "tables");
    /* number 0: no name */
    cdmpp_status st = cd_dict_add(&t->t.names, (cd_str){"", 0}, &empty, err);
    if (!st && path) st = cd_llm_op_table_add(&t->t, path, devices, NULL, bad, ctx, err);
    if (!st) st = cd_llm_op_table_index(&t->t, err);
    if (!st) st = index_of(t, err);
    if (st) cd_serving_tables_free(t);
    else *out = t;
    return st;
}

/* ---- kernels that a server is told to take, by a word of their names ---- */
static cdmpp_status one_word(cd_str part, cd_serving_kernels *out, cdmpp_err *err) {
    const char *eq = memchr(part.p, '=', part.n);
    const size_t n = eq ? (size_t)(eq - part.p) : 0;
    if (!n || n + 1 == part.n)
        return CD_FAIL(err, ESCHEMA, "kernels: expected KIND=WORD, as moe=marlin, found '%.*s'",
                       cd_str_shown(part, 60), part.p);
    for (int k = 0; k < CD_LLM_OP_N_KIND; k++) {
        const char *name = cd_llm_op_kind_name((cd_llm_op_kind)k);
        if (strlen(name) != n || strncasecmp(name, part.p, n) != 0) continue;
        if (out->word[k].n) return CD_FAIL(err, ESCHEMA, "kernels: %s is named twice", name);
        out->word[k] = (cd_str){eq + 1, part.n - n - 1};
        return CDMPP_OK;
    }
    return CD_FAIL(err, ESCHEMA,
                   "kernels: expected a kind of operators, as moe, gemm, attention_prefill or "
                   "attention_decode, found '%.*s'",
                   (int)(n < 40 ? n : 40), part.p);
}

cdmpp_status cd_serving_kernels_read(const char *text, cd_serving_kernels *out, cdmpp_err *err) {
    *out = (cd_serving_kernels){0};
    for (const char *p = text; *p;) {
        const size_t n = strcspn(p, ",");
        CD_TRY(one_word((cd_str){p, n}, out, err));
        p += n + (p[n] == ',');
    }
    return CDMPP_OK;
}

bool cd_serving_kernels_has(const cd_serving_kernels *k, uint8_t kind, const char *name) {
    const cd_str word = k->word[kind];
    for (const char *at = name; word.n && strlen(at) >= word.n; at++)
        if (!strncasecmp(at, word.p, word.n)) return true;
    return !word.n;
}

/* The names of a kind in the tables, each once. */
static void say_names(const cd_serving_tables *t, uint8_t kind, cd_buf *b) {
    for (size_t i = 0; i < t->n_group; i++) {
        const cd_serving_group *g = &t->group[i];
        bool before = g->kind != kind || !g->kernel;
        for (size_t j = 0; j < i && !before; j++)
            before = t->group[j].kind == kind && t->group[j].kernel == g->kernel;
        if (!before) cd_buf_putf(b, "%s%.80s", b->n ? ", " : "", t->t.names.text[g->kernel]);
    }
}

/* Of each type the first kernel of the tables that has rows of it: a word may be in the names of
 * several. Those of one type of 16 bits speak for the other, as rows do. */
static bool find_named(const cd_serving_kernels *k, const cd_serving_tables *t, uint8_t kind,
                       cd_serving_kernel *out) {
    bool any = false;
    for (size_t i = 0; i < t->n_group; i++) {
        const cd_serving_group *g = &t->group[i];
        if (g->kind != kind || !g->kernel ||
            !cd_serving_kernels_has(k, kind, t->t.names.text[g->kernel]))
            continue;
        if (!out->of[g->type]) out->of[g->type] = g->kernel;
        any = true;
    }
    uint32_t *const b = &out->of[CD_LLM_OP_T_BF16], *const h = &out->of[CD_LLM_OP_T_F16];
    if (!*h) *h = *b;
    if (!*b) *b = *h;
    return any;
}

/* The first of the model's kernels that has the word. Nobody knows of which types, and kinds, it
 * is. */
static cdmpp_status find_trained(const cd_serving_kernels *k, cd_serving_tables *t,
                                 const cd_llm_op_model *m, uint8_t kind, cd_serving_kernel *out,
                                 cdmpp_err *err) {
    size_t i = 0;
    uint32_t kernel;
    while (i < m->kernels.n && !cd_serving_kernels_has(k, kind, m->kernels.text[i])) i++;
    if (i == m->kernels.n) return CDMPP_OK;
    CD_TRY(cd_dict_add(&t->t.names, (cd_str){m->kernels.text[i], strlen(m->kernels.text[i])},
                       &kernel, err));
    for (int type = 0; type < CD_LLM_OP_N_TYPE; type++) out->of[type] = kernel;
    return CDMPP_OK;
}

cdmpp_status cd_serving_kernels_find(const cd_serving_kernels *k, cd_serving_tables *t,
                                     const cd_llm_op_model *m, uint8_t kind, cd_serving_kernel *out,
                                     cdmpp_err *err) {
    cd_buf b = {0};
    *out = (cd_serving_kernel){0};
    if (!k->word[kind].n || find_named(k, t, kind, out)) return CDMPP_OK;
    if (!t->n_group) CD_TRY(find_trained(k, t, m, kind, out, err));
    if (out->of[0]) return CDMPP_OK;
    say_names(t, kind, &b);
    const cdmpp_status st =
        CD_FAIL(err, ESCHEMA, "no kernel of %s has '%.*s' in its name%s%.400s",
                cd_llm_op_kind_name((cd_llm_op_kind)kind),
                (int)(k->word[kind].n < 40 ? k->word[kind].n : 40), k->word[kind].p,
                b.n ? "; --measured has " : "", b.n ? b.p : "");
    cd_buf_free(&b);
    return cd_err_key(err, st, "kernels");
}

/* The types of the operators of a kind that a step has; 0: it has none. A prompt of latent
 * attention is a part of either kind (serving_ops.c). */
static uint32_t asked_types(const cd_serving_model *m, const cd_serving_layout *l, uint8_t kind) {
    switch (kind) {
    case CD_LLM_OP_MOE: return m->experts > 0 ? 1u << l->expert : 0;
    case CD_LLM_OP_GEMM:
        return 1u << l->linear | 1u << l->project | 1u << l->shared | 1u << l->recurrent |
               1u << l->base;
    case CD_LLM_OP_PREFILL: return 1u << (m->latent ? l->base : l->attention);
    case CD_LLM_OP_DECODE: return m->latent ? 0 : 1u << l->base;
    case CD_LLM_OP_LATENT_PREFILL:
    case CD_LLM_OP_LATENT_DECODE: return m->latent ? 1u << l->base : 0;
    default: return UINT32_MAX;
    }
}

static void put_types(uint32_t types, cd_buf *b) {
    for (int t = 0; t < CD_LLM_OP_N_TYPE; t++)
        if (types >> t & 1u)
            cd_buf_putf(b, "%s%s", b->n ? ", " : "", cd_llm_op_type_name((cd_llm_op_type)t));
    if (!b->p) cd_buf_puts(b, "none");
}

static cdmpp_status check(const cd_serving_kernel *k, uint32_t asked, uint8_t kind,
                          cdmpp_err *err) {
    const char *name = cd_llm_op_kind_name((cd_llm_op_kind)kind);
    cd_buf have = {0}, want = {0};
    uint32_t types = 0;
    for (int t = 0; t < CD_LLM_OP_N_TYPE; t++) types |= k->of[t] ? 1u << t : 0;
    if (!types || types & asked) return CDMPP_OK;
    put_types(types, &have), put_types(asked, &want);
    cdmpp_status st = have.oom || want.oom ? CD_FAIL(err, ENOMEM, "message") : CDMPP_OK;
    if (!st && !asked)
        st = CD_FAIL(err, ERANGE, "a kernel is named for %s, of which this model has no operators",
                     name);
    else if (!st)
        st = CD_FAIL(
            err, ERANGE,
            "the kernel named for %s is of %.120s; those operators of this model are of %.120s",
            name, have.p, want.p);
    cd_buf_free(&have), cd_buf_free(&want);
    return cd_err_key(err, st, "kernels");
}

cdmpp_status cd_serving_kernels_check(const cd_serving_kernel *named, const cd_serving_model *m,
                                      const cd_serving_layout *l, cdmpp_err *err) {
    for (uint8_t kind = 0; kind < CD_LLM_OP_N_KIND; kind++)
        CD_TRY(check(&named[kind], asked_types(m, l, kind), kind, err));
    return CDMPP_OK;
}
