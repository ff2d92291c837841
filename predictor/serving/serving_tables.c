/* Measured operators, and which libraries, kernels and sizes there are of each kind. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "predictor/serving/serving_internal.h"

void cd_serving_tables_free(cd_serving_tables *t) {
    if (!t) return;
    for (size_t i = 0; i < t->n_group; i++)
        for (size_t k = 0; k < CD_LLM_OP_MAX_SIZE; k++) cd_mem_free(t->group[i].size[k]);
    cd_mem_free(t->group);
    cd_llm_op_table_free(&t->t);
    cd_mem_free(t);
}

static bool is_of(const cd_serving_group *g, const cd_llm_op_record *r, uint32_t device) {
    return g->kind == r->kind && g->type == r->type && g->kv == r->kv && g->stack == r->stack && g->kernel == r->kernel && g->device == device;
}

static cdmpp_status groups(cd_serving_tables *t, uint32_t *of, cdmpp_err *err) {
    size_t last = 0;
    for (size_t i = 0; i < t->t.n; i++) {
        const cd_llm_op_record *r = &t->t.r[i];
        if (!t->n_group || !is_of(&t->group[last], r, t->t.device[i]))
            for (last = 0; last < t->n_group && !is_of(&t->group[last], r, t->t.device[i]); last++) {}
        if (last == t->n_group) {
            if (CD_GROW(t->group, t->n_group, t->cap_group)) return CD_FAIL(err, ENOMEM, "%zu groups", t->n_group);
            t->group[t->n_group++] = (cd_serving_group){.kind = r->kind, .type = r->type, .kv = r->kv, .stack = r->stack, .kernel = r->kernel, .device = t->t.device[i]};
        }
        of[i] = (uint32_t)last;
        t->group[last].rows++;
    }
    return CDMPP_OK;
}

/* All values of one size of a group's rows, ascending, each once. */
static cdmpp_status sizes(cd_serving_tables *t, uint32_t group, size_t k, const uint32_t *of, double *room, cdmpp_err *err) {
    cd_serving_group *g = &t->group[group];
    size_t n = 0, m = 0;
    for (size_t i = 0; i < t->t.n; i++)
        if (of[i] == group) room[n++] = t->t.r[i].size[k];
    cd_sort_doubles(room, n);
    for (size_t i = 0; i < n; i++)
        if (!m || room[i] > room[m - 1]) room[m++] = room[i];
    if (!(g->size[k] = cd_mem_zalloc(m + 1, sizeof(double)))) return CD_FAIL(err, ENOMEM, "%zu sizes", m);
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
        for (size_t k = 0; !st && k < cd_llm_op_n_size((cd_llm_op_kind)t->group[i].kind); k++) st = sizes(t, (uint32_t)i, k, of, room, err);
    cd_mem_free(of);
    cd_mem_free(room);
    return st;
}

size_t cd_serving_tables_bad(const cd_serving_tables *t) { return t->t.drop[CD_LLM_OP_DROP_BAD] + t->t.drop[CD_LLM_OP_DROP_TIME]; }

void cd_serving_tables_say(const cd_serving_tables *t, struct cd_log *log) { cd_llm_op_table_say(&t->t, log); }

bool cd_serving_tables_have(const cd_serving_tables *t, const cd_device *d) { return cd_llm_op_table_device(&t->t, d) >= 0; }

cdmpp_status cd_serving_tables_open(const char *path, const cd_device_table *devices, cd_op_bad_line *bad, void *ctx, cd_serving_tables **out, cdmpp_err *err) {
    cd_serving_tables *t = cd_mem_zalloc(1, sizeof *t);
    uint32_t empty;
    if (!t) return CD_FAIL(err, ENOMEM, "tables");
    cdmpp_status st = cd_dict_add(&t->t.names, (cd_str){"", 0}, &empty, err); /* number 0: no name */
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
    if (!n || n + 1 == part.n) return CD_FAIL(err, ESCHEMA, "kernels: expected KIND=WORD, as moe=marlin, found '%.*s'", (int)(part.n < 60 ? part.n : 60), part.p);
    for (int k = 0; k < CD_LLM_OP_N_KIND; k++) {
        const char *name = cd_llm_op_kind_name((cd_llm_op_kind)k);
        if (strlen(name) != n || strncasecmp(name, part.p, n) != 0) continue;
        if (out->word[k].n) return CD_FAIL(err, ESCHEMA, "kernels: %s is named twice", name);
        out->word[k] = (cd_str){eq + 1, part.n - n - 1};
        return CDMPP_OK;
    }
    return CD_FAIL(err, ESCHEMA, "kernels: expected a kind of operators, as moe, gemm, attention_prefill or attention_decode, found '%.*s'", (int)(n < 40 ? n : 40), part.p);
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
        for (size_t j = 0; j < i && !before; j++) before = t->group[j].kind == kind && t->group[j].kernel == g->kernel;
        if (!before) cd_buf_putf(b, "%s%.80s", b->n ? ", " : "", t->t.names.text[g->kernel]);
    }
}

static uint32_t types_of(const cd_serving_kernels *k, const cd_serving_tables *t, uint8_t kind, uint32_t *kernel) {
    uint32_t types = 0;
    for (size_t i = 0; i < t->n_group; i++) {
        const cd_serving_group *g = &t->group[i];
        if (g->kind != kind || !g->kernel || !cd_serving_kernels_has(k, kind, t->t.names.text[g->kernel])) continue;
        if (!types) *kernel = g->kernel;
        types |= 1u << g->type;
    }
    return types;
}

cdmpp_status cd_serving_kernels_find(const cd_serving_kernels *k, cd_serving_tables *t, const cd_llm_op_model *m, uint8_t kind, cd_serving_kernel *out, cdmpp_err *err) {
    cd_buf b = {0};
    *out = (cd_serving_kernel){0, UINT32_MAX};
    if (!k->word[kind].n) return CDMPP_OK;
    const uint32_t types = types_of(k, t, kind, &out->kernel);
    if (types) return out->types = types, CDMPP_OK;
    for (size_t i = 0; !t->n_group && i < m->kernels.n; i++)
        if (cd_serving_kernels_has(k, kind, m->kernels.text[i])) return cd_dict_add(&t->t.names, (cd_str){m->kernels.text[i], strlen(m->kernels.text[i])}, &out->kernel, err);
    say_names(t, kind, &b);
    const cdmpp_status st = CD_FAIL(err, ESCHEMA, "no kernel of %s has '%.*s' in its name%s%.400s", cd_llm_op_kind_name((cd_llm_op_kind)kind), (int)(k->word[kind].n < 40 ? k->word[kind].n : 40),
                                    k->word[kind].p, b.n ? "; --measured has " : "", b.n ? b.p : "");
    cd_buf_free(&b);
    return cd_err_key(err, st, "kernels");
}

/* The types of the operators of a kind that a step has. */
static uint32_t asked_types(const cd_serving_layout *l, uint8_t kind) {
    switch (kind) {
    case CD_LLM_OP_MOE: return 1u << l->expert;
    case CD_LLM_OP_GEMM: return 1u << l->linear | 1u << l->project | 1u << l->shared | 1u << l->recurrent | 1u << l->base;
    case CD_LLM_OP_PREFILL: case CD_LLM_OP_LATENT_PREFILL: return 1u << l->attention;
    case CD_LLM_OP_DECODE: case CD_LLM_OP_LATENT_DECODE: return 1u << l->base;
    default: return UINT32_MAX;
    }
}

cdmpp_status cd_serving_kernels_check(const cd_serving_kernel *named, const cd_serving_layout *l, cdmpp_err *err) {
    cd_buf b = {0};
    uint8_t kind = 0;
    while (kind < CD_LLM_OP_N_KIND && named[kind].types & asked_types(l, kind)) kind++;
    if (kind == CD_LLM_OP_N_KIND) return CDMPP_OK;
    for (int t = 0; t < CD_LLM_OP_N_TYPE; t++)
        if (named[kind].types >> t & 1u) cd_buf_putf(&b, "%s%s", b.n ? ", " : "", cd_llm_op_type_name((cd_llm_op_type)t));
    const cdmpp_status st = CD_FAIL(err, ESCHEMA, "the kernel named for %s has rows in %.120s, but none in the type of this model's", cd_llm_op_kind_name((cd_llm_op_kind)kind), b.p ? b.p : "");
    cd_buf_free(&b);
    return cd_err_key(err, st, "kernels");
}
