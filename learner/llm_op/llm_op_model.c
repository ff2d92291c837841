/* A model of operators of language models in memory, and what is known beside it: codes of names, a
 * few rows of new devices. */
#include "learner/llm_op/llm_op_internal.h"

#include <math.h>
#include <string.h>

const double cd_llm_op_level[CD_LLM_OP_LEVELS] = {0.5, 0.8, 0.9, 0.95, 0.99};

void cd_llm_op_model_free(cd_llm_op_model *m) {
    if (!m) return;
    for (size_t f = 0; f < CD_LLM_OP_N_FAMILY; f++)
        for (size_t s = 0; s < CD_LLM_OP_N_SET; s++) {
            cd_xgb_free(m->part[f][s].gbt);
            cd_xgb_free(m->part[f][s].spread);
        }
    cd_dict_free(&m->stacks);
    cd_dict_free(&m->kernels);
    cd_arena_free(&m->arena);
    cd_mem_free(m);
}

/* The library of "vllm-0.24.0" is "vllm": the number of the first stack of that library. */
static float maker_of(const cd_llm_op_model *m, const char *stack) {
    const size_t n = strcspn(stack, "-");
    for (size_t i = 0; i < m->stacks.n && n; i++)
        if (strcspn(m->stacks.text[i], "-") == n && !strncmp(m->stacks.text[i], stack, n))
            return (float)i;
    return NAN;
}

cd_llm_op_codes cd_llm_op_model_codes(const cd_llm_op_model *m, const char *stack,
                                      const char *kernel) {
    cd_llm_op_codes c = {maker_of(m, stack), NAN, NAN, 0, false};
    uint32_t k;
    if (cd_dict_find(&m->stacks, (cd_str){stack, strlen(stack)}, &k)) c.stack = (float)k;
    if (cd_dict_find(&m->kernels, (cd_str){kernel, strlen(kernel)}, &k)) c.kernel = (float)k;
    return c;
}

void cd_llm_op_model_call(const cd_llm_op_model *m, const cd_llm_op_record *r, cd_llm_op_codes *c) {
    c->host_s = 0, c->alone = false;
    for (size_t i = 0; i < m->n_call; i++) {
        const cd_llm_op_call *k = &m->call[i];
        if (k->kind != r->kind || k->type != r->type ||
            (int)k->maker != (isnan(c->maker) ? -1 : (int)c->maker) ||
            (int)k->kernel != (isnan(c->kernel) ? -1 : (int)c->kernel))
            continue;
        c->host_s = k->host_s, c->alone = k->alone;
        return;
    }
}

bool cd_llm_op_model_vendor(const cd_llm_op_model *m, const cd_device *d) {
    bool known = false;
    for (size_t i = 0; i < m->n_device; i++) {
        const double warp = m->device[i].warp;
        bool any = false; /* a device whose rows were all refused taught nothing */
        for (int f = 0; f < CD_LLM_OP_N_FAMILY; f++) any |= m->device[i].family[f];
        if (!any) continue;
        if (fabs(warp - d->warp) < 0.5) return true;
        known |= warp > 0;
    }
    return !known || !(d->warp > 0);
}

bool cd_llm_op_model_seen(const cd_llm_op_model *m, cd_llm_op_family f, const cd_device *d) {
    for (size_t i = 0; i < m->n_device; i++)
        if (!strcmp(m->device[i].name, d->name)) return m->device[i].family[f];
    return false;
}

bool cd_llm_op_model_has_stack(const cd_llm_op_model *m, cd_llm_op_family f, float code) {
    return !isnan(code) && (!m->has_stack[f] || m->has_stack[f][(size_t)code]);
}

bool cd_llm_op_model_has_kernel(const cd_llm_op_model *m, cd_llm_op_family f, float code) {
    return !isnan(code) && (!m->has_kernel[f] || m->has_kernel[f][(size_t)code]);
}

bool cd_llm_op_range_has(const cd_llm_op_range *g, uint8_t type, uint8_t kv) {
    return g->type[type] && (g->kv[type] >> kv & 1u);
}

static bool alike(cd_llm_op_type a, cd_llm_op_type b) {
    return cd_llm_op_type_unit(a) == cd_llm_op_type_unit(b) &&
           !(fabs(cd_llm_op_type_weight_bytes(a) - cd_llm_op_type_weight_bytes(b)) > 0) &&
           !(fabs(cd_llm_op_type_input_bytes(a) - cd_llm_op_type_input_bytes(b)) > 0);
}

/* Bits of the types that the GPU has rows of; false: of the family it has none. */
static bool types_of(const cd_llm_op_model *m, cd_llm_op_family f, const cd_device *d,
                     uint32_t *have) {
    size_t i = 0;
    while (i < m->n_device && strcmp(m->device[i].name, d->name) != 0) i++;
    if (i == m->n_device || !m->device[i].family[f]) return false;
    *have = m->device[i].types[f];
    return true;
}

uint8_t cd_llm_op_model_alike(const cd_llm_op_model *m, cd_llm_op_family f,
                              const cd_llm_op_record *r, const cd_device *d) {
    uint32_t have = UINT32_MAX;
    (void)types_of(m, f, d, &have);
    for (uint8_t k = 0; k < CD_LLM_OP_N_TYPE; k++)
        if (k != r->type && have >> k & 1u && m->range[r->kind].type[k] &&
            alike((cd_llm_op_type)r->type, (cd_llm_op_type)k))
            return (uint8_t)(k + 1);
    return 0;
}

unsigned cd_llm_op_model_has(const cd_llm_op_model *m, cd_llm_op_family f, const cd_device *d,
                             cd_llm_op_type t) {
    uint32_t have;
    if (!types_of(m, f, d, &have)) return 0;
    return CD_LLM_OP_HAS_ROWS | (have >> (unsigned)t & 1u ? (unsigned)CD_LLM_OP_HAS_TYPE : 0u);
}

/* Trees that never saw a type answer for one of as many bytes on the same units: bfloat16 for
 * float16, 8 bits with scales for int8. */
void cd_llm_op_model_types(const cd_llm_op_range *range, const cd_llm_op_record *r,
                           float x[CD_LLM_OP_N_FEATURE]) {
    const cd_llm_op_range *g = &range[r->kind];
    const cd_llm_op_type t = (cd_llm_op_type)r->type;
    if (g->type[t]) return;
    for (int k = 0; k < CD_LLM_OP_N_TYPE; k++) {
        const cd_llm_op_type as = (cd_llm_op_type)k;
        if (!g->type[as] || !alike(as, t)) continue;
        x[CD_LLM_OP_X_type] = (float)as;
        if (r->kv == r->type) x[CD_LLM_OP_X_kv] = (float)as;
        return;
    }
}

/* ---- who asks it ---- */
void cd_llm_op_asker_free(cd_llm_op_asker *a) {
    if (!a) return;
    cd_mem_free(a->stack);
    cd_mem_free(a->kernel);
    for (size_t i = 0; a->few && i < a->t->n_known * CD_LLM_OP_N_FAMILY; i++)
        cd_llm_op_few_free(a->few[i]);
    cd_mem_free(a->few);
    cd_mem_free(a->of);
    cd_mem_free(a->expect);
    cd_mem_free(a);
}

cd_llm_op_codes cd_llm_op_asker_codes(const cd_llm_op_asker *a, const cd_llm_op_record *r) {
    cd_llm_op_codes c;
    if (r->stack >= a->n_name || r->kernel >= a->n_name)
        c = cd_llm_op_model_codes(a->m, r->stack < a->names->n ? a->names->text[r->stack] : "",
                                  r->kernel < a->names->n ? a->names->text[r->kernel] : "");
    else
        c = (cd_llm_op_codes){a->stack[r->stack].maker, a->stack[r->stack].stack,
                              a->kernel[r->kernel], 0, false};
    cd_llm_op_model_call(a->m, r, &c);
    return c;
}

/* ---- a few measured rows of a device that was not trained on ---- */
/* A row of it, and by how much the answer misses it. False: the device cannot have run it. */
static bool few_row(const cd_llm_op_asker *a, const cd_llm_op_part *p, size_t i,
                    cd_llm_op_few_row *row, double *residual) {
    const cd_llm_op_record *r = &a->t->r[i];
    const cd_llm_op_codes c = cd_llm_op_asker_codes(a, r);
    float x[CD_LLM_OP_N_FEATURE], y;
    cd_llm_op_estimate e;
    const cd_device *d = a->t->known[a->t->device[i]], *twin = cd_llm_op_twin_for(a->m, r, d);
    cd_llm_op_answer v;
    if (cd_llm_op_feature(r, d, &c, NULL, x, &e, NULL)) return false;
    cd_llm_op_model_types(a->m->range, r, x);
    if (twin) {
        if (cd_llm_op_twin_ask(a, r, &e, twin, 0.5, &v, NULL)) return false;
        *row = cd_llm_op_few_row_of(r, c.maker, &e);
        *residual = log(r->latency_s) - log(v.latency_s);
        return true;
    }
    if (cd_xgb_predict(p->gbt, x, 1, cd_llm_op_feature_width(CD_LLM_OP_SET_UNSEEN), &y, NULL))
        return false;
    *row = cd_llm_op_few_row_of(r, c.maker, &e);
    *residual = log(r->latency_s) - log(e.base_s) - p->bias - (double)y;
    return true;
}

/* Of more rows than serve, as many that stand evenly in the table. */
static cdmpp_status few_of(cd_llm_op_asker *a, size_t device, cd_llm_op_family f, cdmpp_err *err) {
    const cd_llm_op_part *p = &a->m->part[f][CD_LLM_OP_SET_UNSEEN];
    const cd_llm_op_table *t = a->t;
    cd_llm_op_few_row row[CD_LLM_OP_FEW_MOST];
    double residual[CD_LLM_OP_FEW_MOST];
    size_t all = 0, n = 0, at = 0;
    if (!p->gbt || cd_llm_op_model_seen(a->m, f, t->known[device])) return CDMPP_OK;
    for (size_t i = 0; i < t->n; i++)
        all += t->device[i] == device && cd_llm_op_family_of((cd_llm_op_kind)t->r[i].kind) == f;
    const size_t want = all < CD_LLM_OP_FEW_MOST ? all : CD_LLM_OP_FEW_MOST;
    for (size_t i = 0; i < t->n && n < want; i++) {
        if (t->device[i] != device || cd_llm_op_family_of((cd_llm_op_kind)t->r[i].kind) != f)
            continue;
        if (at * want / all != (at + 1) * want / all) n += few_row(a, p, i, &row[n], &residual[n]);
        at++;
    }
    return n ? cd_llm_op_few_new(row, residual, n, &a->few[device * CD_LLM_OP_N_FAMILY + f], err)
             : CDMPP_OK;
}

cdmpp_status cd_llm_op_asker_new(const cd_llm_op_model *m, const cd_llm_op_table *t,
                                 const cd_dict *names, cd_llm_op_asker **out, cdmpp_err *err) {
    cd_llm_op_asker *a = cd_mem_zalloc(1, sizeof *a);
    if (!a) return CD_FAIL(err, ENOMEM, "asker");
    *a = (cd_llm_op_asker){
        .m = m,
        .t = t,
        .names = names,
        .n_name = names->n,
        .stack = cd_mem_zalloc(names->n + 1, sizeof *a->stack),
        .kernel = cd_mem_zalloc(names->n + 1, sizeof *a->kernel),
        .expect = t ? cd_mem_zalloc(t->n + 1, sizeof *a->expect) : NULL,
        .few = t ? cd_mem_zalloc(t->n_known * CD_LLM_OP_N_FAMILY + 1, sizeof *a->few) : NULL};
    if (!a->stack || !a->kernel || (t && (!a->expect || !a->few))) {
        cd_llm_op_asker_free(a);
        return CD_FAIL(err, ENOMEM, "%zu names", names->n);
    }
    for (size_t i = 0; i < names->n; i++) {
        a->stack[i] = cd_llm_op_model_codes(m, names->text[i], names->text[i]);
        a->kernel[i] = a->stack[i].kernel;
    }
    cdmpp_status st = cd_llm_op_kernels_new(a, err);
    for (size_t i = 0; !st && t && i < t->n_known * CD_LLM_OP_N_FAMILY; i++)
        st = few_of(a, i / CD_LLM_OP_N_FAMILY, (cd_llm_op_family)(i % CD_LLM_OP_N_FAMILY), err);
    if (st) cd_llm_op_asker_free(a);
    else *out = a;
    return st;
}

void cd_llm_op_news_text(unsigned news, char out[CD_LLM_OP_NEWS_TEXT]) {
    size_t n = 0;
    out[0] = 0;
    for (int k = 0; k < CD_LLM_OP_N_NEWS; k++) {
        const cd_str w = cd_enum_names_at(CD_LLM_OP_NEWS, k);
        if (!(news >> k & 1)) continue;
        if (n) out[n++] = '+';
        memcpy(out + n, w.p, w.n);
        out[n += w.n] = 0;
    }
}
