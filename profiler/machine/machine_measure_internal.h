/* live_machine_int -- what the parts of live_machine share: programs so small that they need no task. */
#ifndef CD_LIVE_MACHINE_INT_H
#define CD_LIVE_MACHINE_INT_H
#include "profiler/machine/machine_measure.h"
#include "profiler/backend/backend.h"
#include "profiler/runtime/multi/multi.h"

/* A program of one kernel over up to three buffers, and its object. */
typedef struct cd_lm_program {
    cd_code code;
    cd_code_buffer buffer[3];
    cd_code_launch launch;
    uint32_t order[3];
    cd_build build;
} cd_lm_program;

/* text: all behind the prelude; its function is `entry`. Errors: ENOMEM. */
cdmpp_status cd_lm_program_set(cd_lm_program *p, cd_dialect dialect, const char *entry, const char *text, uint32_t n_buffer, int64_t floats, cdmpp_err *err);
void cd_lm_program_free(cd_lm_program *p);
/* Compile n C programs; *out keeps the objects. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_lm_build(cd_lm_program *p, size_t n, CD_GIVE cd_backend **out, cdmpp_err *err);
/* As devnet.h wants it. */
cd_dn_device cd_lm_device(const cd_machine_device *d);
/* Processor that a device's native kernels run on; -1: it does not say. Errors: EBACKEND. */
cdmpp_status cd_lm_core(const cd_machine_device *d, const cd_lm_program *where, int *core, cdmpp_err *err);
/* A program that writes its processor's number. Errors: ENOMEM. */
cdmpp_status cd_lm_where(cd_lm_program *p, cdmpp_err *err);
#endif
