/* Facts of a candidate, for models that read them. */
#include "predictor/score/program_facts.h"

cdmpp_status cd_program_facts_new(cd_program_facts *f, const cd_model *m, cdmpp_err *err) {
    f->m = m;
    f->scratch = NULL;
    f->numbers = NULL;
    return cd_model_needs_facts(m) ? cd_facts_new(&f->scratch, err) : CDMPP_OK;
}

void cd_program_facts_free(cd_program_facts *f) { cd_facts_free(f->scratch); }

cdmpp_status cd_program_facts_fill(cd_program_facts *f, cd_program *p, bool rows,
                                   const cd_device_pick *which, cdmpp_err *err) {
    const cd_device_numbers *device = f->numbers   ? f->numbers
                                      : which->own ? which->own
                                                   : cd_model_device_numbers(f->m, which->device);
    cd_nest nest;
    if (!f->scratch) return CDMPP_OK;
    if (rows)
        return CD_FAIL(err, EMODEL, "the model reads facts of loop nests, rows do not hold them");
    CD_TRY(cd_program_nest(p, &nest, err));
    const cd_facts_set set = cd_model_facts_set(f->m), have = cd_facts_set_of_nest(&nest);
    if (cd_facts_set_is_gpu(set) != cd_facts_set_is_gpu(have))
        return CD_FAIL(
            err, EMODEL, "the model reads facts of loop nests of %s programs, this is a %s program",
            cd_facts_set_is_gpu(set) ? "GPU" : "CPU", cd_facts_set_is_gpu(have) ? "GPU" : "CPU");
    CD_TRY(cd_facts_of(f->scratch, set, &nest, f->fact, err));
    return cd_facts_input_times(set, f->fact, device, f->analytic, err);
}
