/* gpu_says.h -- what the first OpenCL device calls itself, asked in another process: this one may
 * fork afterwards. */
#ifndef GPU_SAYS_H
#define GPU_SAYS_H
#include "profiler/describe/describe.h"

/* False: there is none. */
static inline bool gpu_says(cd_describe_name *out) {
    cd_describe_entry e;
    if (cd_describe_gpu_apart("opencl", "", &e, NULL)) return false;
    cd_describe_name_entry(&e, NULL, out);
    return true;
}

#define SKIP_WITHOUT_GPU(name)                                                                     \
    do {                                                                                           \
        if (!gpu_says(name)) {                                                                     \
            print_message("no OpenCL device\n");                                                   \
            skip();                                                                                \
        }                                                                                          \
    } while (0)
#endif
