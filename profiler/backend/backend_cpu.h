/* backend_cpu -- compiled C on this machine's processor.
 *
 *   device: an instruction set (profiler/host/isa.h), "": by the target;  target: -mcpu, -num-cores (threads)
 *
 *   | guard | buffer 0 | guard | buffer 1 | guard | ...     one mapping, each at a multiple of 64
 *
 *   (1) buffers begin at different places of their pages: no two share all their cache sets;
 *   (2) a guard that has changed is an error of run(): the program writes where it must not;
 *   (3) OpenMP has as many threads as -num-cores says, else as processors are allowed;
 *   (4) huge pages where the system gives them.
 * libgomp does not survive a fork: a process that has run a parallel program must not fork any more. */
#ifndef CD_BACKEND_CPU_H
#define CD_BACKEND_CPU_H
#include "profiler/backend/compiler.h"

extern const cd_backend_kind cd_backend_cpu;

/* As open of the table, with options for the compiler. The texts of *o must outlive the back end. */
cdmpp_status cd_backend_cpu_open(const cd_compiler_options *o, CD_GIVE cd_backend **out, cdmpp_err *err);
/* Threads of a target string: -num-cores, else the processors that this process may use. */
int cd_backend_cpu_threads(const char *target);
#endif
