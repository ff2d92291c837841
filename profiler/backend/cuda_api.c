/* Loads libcuda and libnvrtc with dlopen and finds their functions by name, so that one binary
 * works with and without NVIDIA's software. */
#include "profiler/backend/cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* POSIX promises that a function's address fits a void *. */
#define FIND(handle, field, symbol)                                                                \
    *(void **)(void *)&(field) = dlsym(handle, symbol);                                            \
    if (!(field)) missing = (symbol);

cdmpp_status cd_cuda_api_open(cd_cuda_api *out, cdmpp_err *err) {
    const char *missing = NULL;
    memset(out, 0, sizeof *out);
    out->driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!out->driver) return CD_FAIL(err, EBACKEND, "no CUDA here: no libcuda.so.1");
#define CD_X(name, symbol, parameters) FIND(out->driver, out->name, symbol)
    CD_CUDA_MAP(CD_X)
#undef CD_X
    if (!missing) return CDMPP_OK;
    cd_cuda_api_close(out);
    return CD_FAIL(err, EBACKEND, "CUDA 11 or later is needed: the driver here has no %s", missing);
}

/* Newest first; installations differ in which of the names they have. */
static void *find_compiler(void) {
    char name[40];
    void *h = dlopen("libnvrtc.so", RTLD_NOW | RTLD_LOCAL);
    for (int major = 20; major >= 9 && !h; major--) {
        snprintf(name, sizeof name, "libnvrtc.so.%d", major);
        h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        for (int minor = 9; minor >= 0 && !h; minor--) {
            snprintf(name, sizeof name, "libnvrtc.so.%d.%d", major, minor);
            h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return h;
}

/* Nothing happens on the second call. */
cdmpp_status cd_cuda_api_open_compiler(cd_cuda_api *a, cdmpp_err *err) {
    const char *missing = NULL;
    if (a->compiler) return CDMPP_OK;
    void *h = find_compiler();
    if (!h) return CD_FAIL(err, EBACKEND, "no CUDA compiler here: no libnvrtc.so of any version");
#define CD_X(name, symbol, parameters) FIND(h, a->name, symbol)
    CD_NVRTC_MAP(CD_X)
#undef CD_X
    if (missing) {
        dlclose(h);
        return CD_FAIL(err, EBACKEND, "the CUDA compiler here has no %s", missing);
    }
    *(void **)(void *)&a->cubin_size = dlsym(h, "nvrtcGetCUBINSize");
    *(void **)(void *)&a->cubin_text = dlsym(h, "nvrtcGetCUBIN");
    a->compiler = h;
    return CDMPP_OK;
}

void cd_cuda_api_close(cd_cuda_api *a) {
    if (a->compiler) dlclose(a->compiler);
    if (a->driver) dlclose(a->driver);
    memset(a, 0, sizeof *a);
}

const char *cd_cuda_api_error(const cd_cuda_api *a, int code) {
    const char *name = NULL;
    return a->error_name && !a->error_name(code, &name) && name ? name : "unknown error";
}
