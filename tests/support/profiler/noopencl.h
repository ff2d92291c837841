/* noopencl.h -- why a test goes without OpenCL: NULL where there is a device. */
#ifndef NOOPENCL_H
#define NOOPENCL_H
#include <stdio.h>

#include "profiler/backend/backend.h"

/* Drivers leak and race by themselves: nothing that a sanitizer could tell apart from ours. */
static inline const char *no_opencl(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return "not under a sanitizer";
#else
    static char why[240];
    cd_opencl d;
    cdmpp_err err = {0};
    if (cd_opencl_open(&d, "", &err)) return snprintf(why, sizeof why, "%s", err.msg), why;
    cd_opencl_close(&d);
    return NULL;
#endif
}

#define SKIP_WITHOUT_OPENCL()                                                                      \
    do {                                                                                           \
        const char *why_ = no_opencl();                                                            \
        if (why_) {                                                                                \
            print_message("no OpenCL: %s\n", why_);                                                \
            skip();                                                                                \
        }                                                                                          \
    } while (0)
#endif
