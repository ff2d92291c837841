/* machine_measure_internal -- what the files of machine_measure share: programs so small that they
 * need no task. */
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
cdmpp_status cd_machine_program_init(cd_machine_program *p, cd_dialect dialect, const char *entry,
                                     const char *text, uint32_t n_buffer, int64_t floats,
                                     cdmpp_err *err);
/* Zeroed is fine. */
void cd_machine_program_free(cd_machine_program *p);
/* Compile n C programs; *out keeps the objects. Errors: EBACKEND, ENOMEM. */
cdmpp_status cd_machine_program_build(cd_machine_program *p, size_t n, CD_GIVE cd_backend **out,
                                      cdmpp_err *err);
/* Seconds of one more program, from those of a chain of `few` and of one of `many`: what a pass
 * costs once cancels. At least 1e-9. */
double cd_machine_measure_each_s(uint32_t few, double few_s, uint32_t many, double many_s);
/* Seconds that each of two devices waits for the other. both_s: of one more program where they take
 * turns. What two take beyond both launches is waiting; it is divided by the gaps before each
 * device's programs. */
void cd_machine_measure_waits_s(double both_s, const double launch_s[2], const double gap_s[2],
                                double wait_s[2]);
#endif
