/* tune_emit -- a program as source that anybody can compile: the kernel and a host program that runs and times it.
 *
 *   c        NAME.c                     cc -O2 -march=native -fopenmp NAME.c -o NAME -lm
 *   opencl   NAME.cl, NAME_host.c       cc -O2 NAME_host.c -o NAME -lOpenCL        (run it where NAME.cl is)
 *   cuda     NAME.cu                    nvcc -O2 NAME.cu -o NAME
 *
 * The host fills the parameters as cdmpp-profile does (0.25 to 1, integers 0 and 1), runs the program once and then N
 * times ("./NAME N", default 20), and prints the seconds of one run and the sum of what it wrote. Parameters stand in the task's order; one
 * whose comment says "packed" is expected in the order of its schedule. No state, any thread. */
#ifndef CD_TUNE_EMIT_H
#define CD_TUNE_EMIT_H
#include "profiler/codegen/code/code.h"

typedef struct cd_tune_emit {
    const cd_codegen_code *code;
    const char *name;           /* of the files, and of what the program prints */
    const char *about;          /* lines of a comment; NULL: none */
    int threads;                /* of C */
} cd_tune_emit;

/* Names of the files, "" where there is none: kernel or all, host. */
void cd_tune_emit_names(const cd_tune_emit *e, char kernel[128], char host[128]);
/* What stands in them. Errors: ENOMEM. */
cdmpp_status cd_tune_emit_put(const cd_tune_emit *e, cd_buf *kernel, cd_buf *host, cdmpp_err *err);
/* How to compile them. */
void cd_tune_emit_command(const cd_tune_emit *e, cd_buf *out);
#endif
