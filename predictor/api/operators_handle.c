/* cdmpp_operators: a model of operators of language models, with what was measured, behind the
 * calls of cdmpp.h. */
#include <math.h>

#include "learner/llm_op/llm_op.h"
#include "learner/operators/operators.h"
#include "predictor/api/api_internal.h"

struct cdmpp_operators {
    cd_llm_op_oracle of;
    double level;
};

_Static_assert(sizeof(cdmpp_operator_value) == sizeof(cd_op_named) &&
                   offsetof(cdmpp_operator_value, text) == offsetof(cd_op_named, text) &&
                   offsetof(cdmpp_operator_value, number) == offsetof(cd_op_named, number),
               "values go as they are");
_Static_assert((int)CDMPP_OPERATOR_PREDICTED == (int)CD_LLM_OP_PREDICTED &&
                   CDMPP_OPERATOR_NEW_SIZE == CD_LLM_OP_NEW_SIZE &&
                   CDMPP_OPERATOR_ALIKE > CD_LLM_OP_NEW_VENDOR,
               "how and news go as they are");

cdmpp_status cdmpp_operators_open(const char *model, const cdmpp_operators_options *options,
                                  cdmpp_operators **out, cdmpp_err *err) {
    cdmpp_operators_options a = {0};
    if (options)
        CD_TRY(cd_api_copy_struct(&a, sizeof a, options, sizeof a, "cdmpp_operators_options", err));
    if (a.level != 0 && !(a.level >= 0.01 && a.level <= 0.999))
        return CD_FAIL(err, EUSAGE, "level: expected 0.01 to 0.999, found %g", a.level);
    cdmpp_operators *o = cd_mem_zalloc(1, sizeof *o);
    if (!o) return CD_FAIL(err, ENOMEM, "operators handle");
    cd_arena arena = {0};
    if (!model) model = cd_default_model_llm(&arena);
    const cd_llm_op_oracle_options how = {.model = model,
                                          .devices_file = a.devices_file,
                                          .device = a.device,
                                          .measured = a.measured,
                                          .n_measured = a.n_measured};
    o->level = a.level > 0 ? a.level : 0.9;
    cdmpp_status st = CDMPP_OK;
    if (model) st = cd_llm_op_oracle_open(&o->of, &how, err);
    else
        st = CD_FAIL(
            err, EUSAGE,
            "no model of operators of language models is installed: name a file of cdmpp-train");
    cd_arena_free(&arena);
    if (st) cdmpp_operators_free(o);
    else *out = o;
    return st;
}

void cdmpp_operators_free(cdmpp_operators *o) {
    if (!o) return;
    cd_llm_op_oracle_free(&o->of);
    cd_mem_free(o);
}

size_t cdmpp_operators_rows(const cdmpp_operators *o) { return o->of.t.n; }
size_t cdmpp_operators_skipped(const cdmpp_operators *o) { return cd_llm_op_oracle_bad(&o->of); }

/* Bits above those that the first version had are others here. */
static uint32_t news_of(const cd_llm_op_answer *a) {
    const uint32_t first = a->news & (2u * CD_LLM_OP_NEW_VENDOR - 1);
    return first | (a->alike ? CDMPP_OPERATOR_ALIKE : 0) |
           (a->news & CD_LLM_OP_NEW_KIND ? CDMPP_OPERATOR_NEW_OPERATOR : 0);
}

static void put(const cdmpp_operator_result *r, size_t i, const cd_llm_op_answer *a,
                cdmpp_status st, const cdmpp_err *why) {
    if (r->seconds) r->seconds[i] = st ? (double)INFINITY : a->latency_s;
    if (r->low) r->low[i] = st ? (double)NAN : a->low_s;
    if (r->high) r->high[i] = st ? (double)NAN : a->high_s;
    if (r->estimate) r->estimate[i] = st ? (double)NAN : a->base_s;
    if (r->bound) r->bound[i] = st ? (double)NAN : a->roof_s;
    if (r->how) r->how[i] = st ? CDMPP_OPERATOR_PREDICTED : (cdmpp_operator_how)a->how;
    if (r->news) r->news[i] = st ? 0 : news_of(a);
    if (r->status) r->status[i] = st;
    if (r->error) r->error[i] = *why;
}

cdmpp_status cdmpp_operators_ask(const cdmpp_operators *o, const cdmpp_operator *v, size_t n,
                                 const cdmpp_operator_result *out, cdmpp_err *err) {
    cdmpp_operator_result r;
    CD_TRY(cd_api_copy_struct(&r, sizeof r, out, sizeof r, "cdmpp_operator_result", err));
    for (size_t done = 0, m; done < n; done += m) {
        cd_llm_op_told told[CD_LLM_OP_TOLD] = {0};
        cdmpp_err why[CD_LLM_OP_TOLD] = {0};
        m = n - done < CD_LLM_OP_TOLD ? n - done : CD_LLM_OP_TOLD;
        for (size_t i = 0; i < m; i++) {
            const cdmpp_operator *k = &v[done + i];
            if (cd_llm_op_oracle_read(&o->of, (const cd_op_named *)k->value, k->n, &told[i],
                                      &why[i]) != CDMPP_ENOMEM)
                continue;
            if (err) *err = why[i];
            return CDMPP_ENOMEM;
        }
        CD_TRY(cd_llm_op_ask_told(o->of.asker, told, why, m, o->level, err));
        for (size_t i = 0; i < m; i++) put(&r, done + i, &told[i].a, why[i].code, &why[i]);
    }
    return CDMPP_OK;
}
