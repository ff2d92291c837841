/* Measured operators, and which libraries, kernels and sizes there are of each kind. */
#include <stdlib.h>
#include <string.h>

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
