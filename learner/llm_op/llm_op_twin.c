/* A GPU that no training saw, and one of the same chip that a training did see: H200, H800 and
 * GH200 beside H100, an A100 of 40 GB beside one of 80.
 *
 *   twin's answer  x  estimate of the GPU / estimate of the twin  =  answer
 *
 * Kernels are the same on both, and so is how far they are from the estimate. What differs (memory,
 * clock, power, a few multiprocessors) the estimates tell. */
#include <math.h>

#include "learner/llm_op/llm_op_internal.h"

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
    const bool seen = cd_llm_op_model_seen(m, f, d);
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
        seen |= cd_llm_op_model_seen(m, (cd_llm_op_family)f, d);
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
