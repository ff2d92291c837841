/* tune_template -- the templates of a task for the processor that they are to suit. */
#ifndef CD_TUNE_TEMPLATE_H
#define CD_TUNE_TEMPLATE_H
#include "base/cli/cli.h"
#include "predictor/tune/core/core.h"
#include "predictor/tune/space/space.h"

typedef struct cd_tune_template_options {
    /* NULL: this processor, with the instructions of `isa` (cd_template_machine_here) */
    const struct cd_device *machine;
    const char *isa;
} cd_tune_template_options;

/* cd_tune_space_template for the machine of the options and the task's threads; *m is that machine.
 * Errors: EUNSUPPORTED (no template fits the task), those of cd_template_machine_here,
 * cd_template_machine_of; ENOTASK, ENOMEM. */
cdmpp_status cd_tune_template_space(const cd_tune_task *t, const cd_tune_template_options *o,
                                    uint64_t seed, CD_GIVE cd_tune_space **out,
                                    cd_template_machine *m, cdmpp_err *err);
/* The description of that name in the file of devices; mistakes of the file go to the log.
 * *devices, which it lives in, is the caller's after an error too. Errors: those of
 * cd_device_table_load and cd_device_table_find. */
cdmpp_status cd_tune_template_machine(cd_arena *a, const char *name, cd_log *log,
                                      CD_GIVE cd_device_table **devices, const cd_device **out,
                                      cdmpp_err *err);
#endif
