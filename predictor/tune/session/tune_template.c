/* Asks whether a task has a template before it looks for the processor: a task of a GPU has none, whatever the caches. */
#include "predictor/tune/session/tune_template.h"

cdmpp_status cd_tune_template_space(const cd_tune_task *t, const cd_tune_template_options *o, uint64_t seed, cd_tune_space **out, cd_template_machine *m, cdmpp_err *err) {
    cd_template_nest n;
    CD_TRY(cd_template_nest_read(t->task, t->gpu, &n, err));
    CD_TRY(o->machine ? cd_template_machine_of(o->machine, t->hardware.num_cores, m, err)
                      : cd_template_machine_here(o->isa, t->target, t->hardware.num_cores, m, err));
    return cd_tune_space_template(t, m, seed, out, err);
}
