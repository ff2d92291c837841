/* Columns of facts. Trees do not care for logarithms; what is learned from the same columns later may. */
#include "learner/inputs/facts_input.h"

#include <math.h>

static float log_s(double seconds) { return (float)log(fmax(seconds, 1e-12)); }

cdmpp_status cd_facts_input_times(cd_facts_set set, const float *facts, const cd_device_numbers *device, float *out, cdmpp_err *err) {
    cd_analytic_time t;
    CD_TRY(cd_analytic_seconds_of(set, facts, device, &t, err));
    const double third = set == CD_FACTS_OF_GPU ? t.latency_s : t.l3_s;
    const double all[CD_N_ANALYTIC] = {t.roofline_s, t.ecm_s, t.sum_s, t.compute_s, t.l1_s, t.l2_s, third, t.memory_s, t.overhead_s};
    for (size_t k = 0; k < CD_N_ANALYTIC; k++) {
        if (!(all[k] >= 0) || !isfinite(all[k])) return CD_FAIL(err, ENUMERIC, "an analytic time of %g s", all[k]);
        out[k] = log_s(all[k]);
    }
    return CDMPP_OK;
}

bool cd_facts_input_has(const cd_program_view *v, size_t p) { return v->facts && v->analytic && !isnan(v->analytic[p * CD_N_ANALYTIC]); }

void cd_facts_input_fill(const cd_program_view *v, size_t p, float *x) {
    const float *fact = v->facts + p * CD_N_FACTS, *t = v->analytic + p * CD_N_ANALYTIC;
    for (size_t c = 0; c < CD_N_FACTS; c++) *x++ = log2f(fact[c] + 1);
    for (size_t k = 0; k < CD_N_ANALYTIC; k++) *x++ = k < CD_N_PRIOR ? t[k] : t[k] - t[CD_N_PRIOR - 1];
}
