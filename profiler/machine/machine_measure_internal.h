/* machine_measure_internal -- what the files of machine_measure share: programs so small that they need no task. */
#ifndef CD_MACHINE_MEASURE_INTERNAL_H
#define CD_MACHINE_MEASURE_INTERNAL_H
#include "profiler/machine/machine_measure.h"
#include "profiler/runtime/multi/multi.h"

/* A program of one kernel over up to three buffers, and its object. */
typedef struct cd_machine_program {
    cd_codegen_code code;
    cd_codegen_buffer buffer[3];
    cd_codegen_launch launch;
    uint32_t order[3];
    cd_build build;
} cd_machine_program;

/* text: all behind the prelude; its function is `entry`. Errors: ENOMEM. */
cdmpp_status cd_machine_program_init(cd_machine_program *p, cd_dialect dialect, const char *entry, const char *text, uint32_t n_buffer, int64_t floats, cdmpp_err *err);
/* Zeroed is fine. */
void cd_machine_program_free(cd_machine_program *p);
/* Compile n C programs; *out keeps the objects. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_machine_program_build(cd_machine_program *p, size_t n, CD_GIVE cd_backend **out, cdmpp_err *err);
/* The device as profiler/runtime/multi has it. */
cd_multi_device cd_machine_executor_device(const cd_machine_device *d);
/* A program that writes its processor's number. Errors: ENOMEM. */
cdmpp_status cd_machine_program_init_cpu_id(cd_machine_program *p, cdmpp_err *err);
#endif
