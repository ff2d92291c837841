/* Loads libOpenCL with dlopen and finds its functions by name, so that one binary works with and
 * without OpenCL. */
#include "profiler/backend/opencl_api.h"

#include <dlfcn.h>
#include <string.h>

static const char *const library[] = {"libOpenCL.so.1", "libOpenCL.so"};

cdmpp_status cd_opencl_api_open(cd_opencl_api *out, cdmpp_err *err) {
    memset(out, 0, sizeof *out);
    for (size_t k = 0; k < sizeof library / sizeof *library && !out->handle; k++)
        out->handle = dlopen(library[k], RTLD_NOW | RTLD_LOCAL);
    if (!out->handle)
        return CD_FAIL(err, EBACKEND, "no OpenCL here: neither libOpenCL.so.1 nor libOpenCL.so");
    const char *missing = NULL;
    /* POSIX promises that a function's address fits a void *. */
#define CD_X(result, name, parameters)                                                             \
    *(void **)(void *)&out->name = dlsym(out->handle, #name);                                      \
    if (!out->name) missing = #name;
    CD_OPENCL_MAP(CD_X)
#undef CD_X
    if (!missing) return CDMPP_OK;
    cd_opencl_api_close(out);
    return CD_FAIL(err, EBACKEND, "OpenCL 1.2 is needed: the library here has no %s", missing);
}

void cd_opencl_api_close(cd_opencl_api *a) {
    if (a->handle) dlclose(a->handle);
    memset(a, 0, sizeof *a);
}

/* The codes that OpenCL 1.2's functions used here can return. */
const char *cd_opencl_api_error(int32_t code) {
    static const struct {
        int32_t code;
        const char *name;
    } known[] = {{-1, "CL_DEVICE_NOT_FOUND"},
                 {-2, "CL_DEVICE_NOT_AVAILABLE"},
                 {-3, "CL_COMPILER_NOT_AVAILABLE"},
                 {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
                 {-5, "CL_OUT_OF_RESOURCES"},
                 {-6, "CL_OUT_OF_HOST_MEMORY"},
                 {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
                 {-11, "CL_BUILD_PROGRAM_FAILURE"},
                 {-14, "CL_EXEC_STATUS_ERROR"},
                 {-18, "CL_DEVICE_PARTITION_FAILED"},
                 {-30, "CL_INVALID_VALUE"},
                 {-33, "CL_INVALID_DEVICE"},
                 {-34, "CL_INVALID_CONTEXT"},
                 {-36, "CL_INVALID_COMMAND_QUEUE"},
                 {-38, "CL_INVALID_MEM_OBJECT"},
                 {-42, "CL_INVALID_BINARY"},
                 {-43, "CL_INVALID_BUILD_OPTIONS"},
                 {-44, "CL_INVALID_PROGRAM"},
                 {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
                 {-46, "CL_INVALID_KERNEL_NAME"},
                 {-48, "CL_INVALID_KERNEL"},
                 {-49, "CL_INVALID_ARG_INDEX"},
                 {-50, "CL_INVALID_ARG_VALUE"},
                 {-51, "CL_INVALID_ARG_SIZE"},
                 {-52, "CL_INVALID_KERNEL_ARGS"},
                 {-53, "CL_INVALID_WORK_DIMENSION"},
                 {-54, "CL_INVALID_WORK_GROUP_SIZE"},
                 {-55, "CL_INVALID_WORK_ITEM_SIZE"},
                 {-61, "CL_INVALID_BUFFER_SIZE"},
                 {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
                 {-68, "CL_INVALID_DEVICE_PARTITION_COUNT"},
                 {-1001, "CL_PLATFORM_NOT_FOUND_KHR"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].code == code) return known[k].name;
    return "unknown error";
}
