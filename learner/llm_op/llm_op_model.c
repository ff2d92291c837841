/* A model of operators of language models in memory, and what is known beside it: codes of names, a
 * few rows of new devices. */
#include <math.h>
#include <string.h>

#include "learner/llm_op/llm_op_few.h"
#include "learner/llm_op/llm_op_internal.h"

/* What a few measured rows tell about the others: Gaussian processes over the residuals of a
 * model. */

/* Variances of ln(time / answer), chosen on A100, H100 and L40S by a model of the three other GPUs,
 * on rows to train on. */
#define ALL    0.01 /* that all rows of a family have in common */
#define TYPE   0.01 /* those of a kind and type */
#define KERNEL 0.05 /* those of a kernel of a library besides */
#define LIKE   0.08 /* those of like estimates */
#define CROSS  0.2  /* of which rows of another type or kernel share this part */
#define WIDE   3.0  /* how far likeness reaches: octaves */
#define NOISE  0.06
#define MOST   0.7 /* a residual counts as no larger: one row is no law */

struct cd_llm_op_few {
    size_t n;
    cd_llm_op_few_row *row; /* (n) */
    double *weight;         /* (n) covariance^-1 residuals */
};

static float lg(double x, double low, double high) {
    return (float)fmin(high, fmax(low, log2(fmax(x, 1e-12))));
}

cd_llm_op_few_row cd_llm_op_few_row_of(const cd_llm_op_record *r, float maker,
                                       const cd_llm_op_estimate *e) {
    return (cd_llm_op_few_row){r->kind,
                               r->type,
                               r->kernel,
                               isnan(maker) ? -1 : (int)maker,
                               {lg(e->base_s * 1e6, -10, 40), lg(e->tiles_s / e->base_s, -8, 0),
                                lg(e->memory_s / e->base_s, -8, 2), lg(e->waves, -8, 8)}};
}

static double likeness(const cd_llm_op_few_row *a, const cd_llm_op_few_row *b) {
    const bool type = a->kind == b->kind && a->type == b->type,
               same = type && a->maker == b->maker && a->kernel == b->kernel;
    double far = 0;
    for (size_t i = 0; i < CD_LLM_OP_FEW_PLACE; i++) {
        const double d = (double)(a->place[i] - b->place[i]) / WIDE;
        far += d * d;
    }
    return ALL + (type ? TYPE : 0) + (same ? KERNEL : 0) +
           (same ? LIKE : LIKE * CROSS) * exp(-far / 2);
}

/* x := (L L^T)^-1 x */
static void solve(const double *l, size_t n, double *x) {
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) x[i] -= l[i * n + k] * x[k];
        x[i] /= l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++) x[i] -= l[k * n + i] * x[k];
        x[i] /= l[i * n + i];
    }
}

/* The noise on the diagonal keeps every pivot above it. */
static void factor(double *a, size_t n) {
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            double s = a[i * n + j];
            for (size_t k = 0; k < j; k++) s -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(fmax(s, NOISE / 2)) : s / a[j * n + j];
        }
}

cdmpp_status cd_llm_op_few_new(const cd_llm_op_few_row *row, const double *residual, size_t n,
                               cd_llm_op_few **out, cdmpp_err *err) {
    cd_llm_op_few *f = cd_mem_zalloc(1, sizeof *f);
    /* covariance of the rows, then its Cholesky factor */
    double *a = cd_mem_zalloc(n * n + 1, sizeof *a);
    if (f)
        *f = (cd_llm_op_few){n, cd_mem_zalloc(n + 1, sizeof *f->row),
                             cd_mem_zalloc(n + 1, sizeof *f->weight)};
    if (!f || !a || !f->row || !f->weight) {
        cd_llm_op_few_free(f);
        cd_mem_free(a);
        return CD_FAIL(err, ENOMEM, "%zu rows of a device", n);
    }
    memcpy(f->row, row, n * sizeof *row);
    for (size_t i = 0; i < n; i++) {
        f->weight[i] = fmin(MOST, fmax(-MOST, residual[i]));
        for (size_t k = 0; k <= i; k++)
            a[i * n + k] = likeness(&row[i], &row[k]) + (i == k ? NOISE : 0);
    }
    factor(a, n);
    solve(a, n, f->weight);
    cd_mem_free(a);
    *out = f;
    return CDMPP_OK;
}

double cd_llm_op_few_ask(const cd_llm_op_few *f, const cd_llm_op_few_row *row) {
    double mean = 0;
    for (size_t i = 0; i < f->n; i++) mean += likeness(row, &f->row[i]) * f->weight[i];
    return mean;
}

size_t cd_llm_op_few_count(const cd_llm_op_few *f) { return f->n; }

void cd_llm_op_few_free(cd_llm_op_few *f) {
    if (!f) return;
    cd_mem_free(f->row);
    cd_mem_free(f->weight);
    cd_mem_free(f);
}

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

static bool llm_op_model_seen(const cd_llm_op_model *m, cd_llm_op_family f, const cd_device *d) {
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
    if (!p->gbt || llm_op_model_seen(a->m, f, t->known[device])) return CDMPP_OK;
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

/* A GPU that no training saw, and one of the same chip that a training did see: H200, H800 and
 * GH200 beside H100, an A100 of 40 GB beside one of 80.
 *
 *   twin's answer  x  estimate of the GPU / estimate of the twin  =  answer
 *
 * Kernels are the same on both, and so is how far they are from the estimate. What differs (memory,
 * clock, power, a few multiprocessors) the estimates tell. */

/* ln of multiprocessors, clocks: boards of one chip are sold that far apart (H100 SXM and PCIe) */
#define APART       0.2
#define CACHE_APART 0.5
/* operations of a multiprocessor in a clock: sheets count with other clocks */
#define UNITS_APART 0.15
#define LINK_APART  0.1

static bool equal(double a, double b) { return a > 0 && b > 0 && fabs(a - b) < 0.5; }
static bool near(double a, double b, double apart) {
    return a > 0 && b > 0 && fabs(log(a / b)) <= apart;
}

/* Peaks of both for a type, for each multiprocessor and clock. Where one description does not tell,
 * the others must do. */
static bool units(double a, const cd_device *of, double b, const cd_device *and) {
    if (a < 0 || b < 0) return true;
    if (!(a > 0) || !(b > 0)) return !(a > 0) && !(b > 0);
    return near(a / (of->cores * of->clock_mhz), b / (and->cores * and->clock_mhz), UNITS_APART);
}

bool cd_llm_op_twin_is(const cd_device *a, const cd_device *b, cd_llm_op_family f) {
    if (!equal(a->lanes, b->lanes) || !equal(a->core_threads, b->core_threads) ||
        !equal(a->l1_kb, b->l1_kb) || !equal(a->shared_kb, b->shared_kb) ||
        !equal(a->warp, b->warp))
        return false;
    if (!equal(a->process_nm, b->process_nm) || !near(a->cores, b->cores, APART) ||
        !near(a->clock_mhz, b->clock_mhz, APART) || !near(a->l2_kb, b->l2_kb, CACHE_APART))
        return false;
    if (!(a->bf16_tflops > 0) || !units(a->bf16_tflops, a, b->bf16_tflops, b) ||
        !units(a->fp8_tflops, a, b->fp8_tflops, b) || !units(a->int8_tops, a, b->int8_tops, b))
        return false;
    return f != CD_LLM_OP_COLLECTIVE || near(a->link_gb_s, b->link_gb_s, LINK_APART);
}

static double distance(const cd_device *a, const cd_device *b) {
    return fabs(log(a->cores / b->cores)) + fabs(log(a->clock_mhz / b->clock_mhz)) +
           fabs(log(a->bandwidth_gb_s / b->bandwidth_gb_s));
}

/* Does its description tell how fast it is in this type? A collective moves bytes, whatever their
 * type is. */
static bool tells(const cd_device *t, cd_llm_op_family f, cd_llm_op_type type) {
    cd_llm_op_machine v;
    return f == CD_LLM_OP_COLLECTIVE || cd_llm_op_machine_of(t, type, &v, NULL) == CDMPP_OK;
}

static bool has_type(const cd_llm_op_model_device *t, cd_llm_op_family f, cd_llm_op_type type) {
    return t->types[f] >> (unsigned)type & 1u;
}

/* type NULL: any. A GPU of the training that has no rows of the type has a twin that does. */
static const cd_device *nearest(const cd_llm_op_model *m, const cd_device *d, cd_llm_op_family f,
                                const cd_llm_op_type *type) {
    const cd_device *best = NULL;
    const bool seen = llm_op_model_seen(m, f, d);
    if (seen && (!type || cd_llm_op_model_has(m, f, d, *type) & CD_LLM_OP_HAS_TYPE)) return NULL;
    for (size_t i = 0; i < m->n_device; i++) {
        const cd_device *t = &m->device[i].about;
        const bool serves = m->device[i].family[f] && (!seen || has_type(&m->device[i], f, *type));
        if (serves && cd_llm_op_twin_is(t, d, f) && (!type || tells(t, f, *type)) &&
            (!best || distance(t, d) < distance(best, d)))
            best = t;
    }
    return best;
}

const cd_device *cd_llm_op_twin_of(const cd_llm_op_model *m, const cd_device *d,
                                   cd_llm_op_family f) {
    return nearest(m, d, f, NULL);
}

const cd_device *cd_llm_op_twin_for(const cd_llm_op_model *m, const cd_llm_op_record *r,
                                    const cd_device *d) {
    const cd_llm_op_type type = (cd_llm_op_type)r->type;
    return nearest(m, d, cd_llm_op_family_of((cd_llm_op_kind)r->kind), &type);
}

unsigned cd_llm_op_model_about(const cd_llm_op_model *m, const cd_device *d,
                               const cd_device **twin) {
    bool seen = false;
    *twin = NULL;
    for (int f = 0; f < CD_LLM_OP_N_FAMILY; f++) {
        seen |= llm_op_model_seen(m, (cd_llm_op_family)f, d);
        if (!*twin) *twin = cd_llm_op_twin_of(m, d, (cd_llm_op_family)f);
    }
    return seen ? 0
                : CD_LLM_OP_NEW_DEVICE |
                      (cd_llm_op_model_vendor(m, d) ? 0u : (unsigned)CD_LLM_OP_NEW_VENDOR);
}

/* How much of the difference between the two estimates shows in a time is not known, so all of it
 * is in the interval. */
void cd_llm_op_twin_tell(const cd_llm_op_answer *of, const cd_device *twin,
                         const cd_llm_op_estimate *e, cd_llm_op_answer *out) {
    const double ratio = e->base_s / of->base_s,
                 half = hypot(log(of->high_s / of->low_s) / 2, log(ratio));
    *out = *of;
    out->how = CD_LLM_OP_PREDICTED, out->twin = twin->name, out->twin_how = of->how;
    out->base_s = e->base_s, out->roof_s = e->roof_s, out->line_s = (double)NAN;
    out->latency_s *= ratio;
    out->low_s = out->latency_s * exp(-half), out->high_s = out->latency_s * exp(half);
}
