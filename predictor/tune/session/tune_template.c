/* Asks whether a task has a template before it looks for the processor: a task of a GPU has none,
 * whatever the caches. */
#include "predictor/tune/session/tune_template.h"

cdmpp_status cd_tune_template_space(const cd_tune_task *t, const cd_tune_template_options *o,
                                    uint64_t seed, cd_tune_space **out, cd_template_machine *m,
                                    cdmpp_err *err) {
    cd_template_nest n;
    CD_TRY(cd_template_nest_read(t->task, t->gpu, &n, err));
    CD_TRY(o->machine ? cd_template_machine_of(o->machine, t->hardware.num_cores, m, err)
                      : cd_template_machine_here(o->isa, t->target, t->hardware.num_cores, m, err));
    return cd_tune_space_template(t, m, seed, out, err);
}

cdmpp_status cd_tune_template_machine(cd_arena *a, const char *name, cd_log *log,
                                      cd_device_table **devices, const cd_device **out,
                                      cdmpp_err *err) {
    const char *path;
    cd_diag diag = {0};
    cdmpp_status st = cd_device_table_path(a, NULL, NULL, &path, err);
    if (!st) st = cd_device_table_load(path, &diag, devices, err);
    if (st && diag.n) cd_log_lines(log, CD_LOG_ERROR, diag.text.p);
    if (!st) cd_device_table_say(*devices, log);
    cd_diag_free(&diag);
    return st ? st : cd_device_table_find(*devices, name, out, err);
}
