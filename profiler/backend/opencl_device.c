/* Finds an OpenCL device by name, over all platforms, and opens it with a context and a queue. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "profiler/backend/backend.h"
#include "profiler/backend/opencl_api.h"

/* Loads libOpenCL with dlopen and finds its functions by name, so that one binary works with and
 * without OpenCL. */

static const char *const library[] = {"libOpenCL.so.1", "libOpenCL.so"};

static void opencl_api_close(cd_opencl_api *a);

/* Loads the library. Errors: EBACKEND (no libOpenCL, or one that lacks a function). */
static cdmpp_status opencl_api_open(cd_opencl_api *out, cdmpp_err *err) {
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
    opencl_api_close(out);
    return CD_FAIL(err, EBACKEND, "OpenCL 1.2 is needed: the library here has no %s", missing);
}

/* zeroed is fine */
static void opencl_api_close(cd_opencl_api *a) {
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

#define MAX_PLATFORM 16
#define MAX_DEVICE   64
#define MAX_PART     256

/* ---- names ---- */

static bool number(const char **p, long most, long *out) {
    char *end;
    if (**p < '0' || **p > '9') return false;
    *out = strtol(*p, &end, 10);
    *p = end;
    return *out <= most;
}

/* [PLATFORM:][NUMBER][/PARTS[.PART]], each part optional. */
cdmpp_status cd_opencl_parse_name(const char *text, cd_opencl_name *out, cdmpp_err *err) {
    *out = (cd_opencl_name){.number = -1};
    const char *p = text, *colon = strchr(text, ':');
    long parts = 0, part = 0;
    bool good = true;
    if (colon) {
        good = colon > text && (size_t)(colon - text) < sizeof out->platform;
        if (good) memcpy(out->platform, text, (size_t)(colon - text));
        p = colon + 1;
    }
    if (good && *p && *p != '/') good = number(&p, MAX_DEVICE - 1, &out->number);
    if (good && *p == '/') {
        p++;
        good = number(&p, MAX_PART, &parts) && parts > 0;
        if (good && *p == '.') p++, good = number(&p, parts - 1, &part);
    }
    if (!good || *p)
        return CD_FAIL(err, ERANGE,
                       "device \"%s\": expected [PLATFORM:][NUMBER][/PARTS[.PART]], as in \"\", "
                       "\"0\", \"pocl:0\", \"0/2.1\"",
                       text);
    out->parts = (unsigned)parts;
    out->part = (unsigned)part;
    return CDMPP_OK;
}

/* ---- the devices that there are ---- */

typedef struct {
    uint32_t n;
    struct {
        cd_cl platform, device;
        char name[128], version[128];
        uint64_t kind;
    } d[MAX_DEVICE];
} inventory;

/* A platform without devices is skipped. */
static void list_platform(const cd_opencl_api *a, cd_cl platform, inventory *inv) {
    cd_cl device[MAX_DEVICE];
    uint32_t n = 0;
    char name[128] = "", version[128] = "";
    if (a->clGetDeviceIDs(platform, CD_CL_DEVICE_ANY, MAX_DEVICE, device, &n)) return;
    a->clGetPlatformInfo(platform, CD_CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    a->clGetPlatformInfo(platform, CD_CL_PLATFORM_VERSION, sizeof version - 1, version, NULL);
    for (uint32_t k = 0; k < n && k < MAX_DEVICE && inv->n < MAX_DEVICE; k++, inv->n++) {
        inv->d[inv->n].platform = platform;
        inv->d[inv->n].device = device[k];
        memcpy(inv->d[inv->n].name, name, sizeof name);
        memcpy(inv->d[inv->n].version, version, sizeof version);
        a->clGetDeviceInfo(device[k], CD_CL_DEVICE_TYPE, sizeof inv->d[0].kind,
                           &inv->d[inv->n].kind, NULL);
    }
}

static cdmpp_status take_inventory(const cd_opencl_api *a, inventory *inv, cdmpp_err *err) {
    cd_cl platform[MAX_PLATFORM];
    uint32_t n = 0;
    memset(inv, 0, sizeof *inv);
    const int32_t st = a->clGetPlatformIDs(MAX_PLATFORM, platform, &n);
    if (st || !n)
        return CD_FAIL(err, EBACKEND, "OpenCL has no platform here (%s)", cd_opencl_api_error(st));
    for (uint32_t k = 0; k < n && k < MAX_PLATFORM; k++) list_platform(a, platform[k], inv);
    return inv->n ? CDMPP_OK
                  : CD_FAIL(err, EBACKEND, "OpenCL has %u platforms here and no device", n);
}

/* Without a number: the first GPU of the platform, else its first device. */
static cdmpp_status pick(const inventory *inv, const cd_opencl_name *want, uint32_t *out,
                         cdmpp_err *err) {
    cd_cl platform = NULL;
    for (uint32_t k = 0; k < inv->n && !platform; k++)
        if (!want->platform[0] || strcasestr(inv->d[k].name, want->platform) ||
            strcasestr(inv->d[k].version, want->platform))
            platform = inv->d[k].platform;
    long seen = 0;
    for (uint32_t k = 0; k < inv->n && want->number < 0 && platform; k++)
        if ((inv->d[k].kind & CD_CL_DEVICE_GPU) &&
            (!want->platform[0] || inv->d[k].platform == platform))
            return *out = k, CDMPP_OK;
    for (uint32_t k = 0; k < inv->n && platform; k++) {
        if (want->platform[0] && inv->d[k].platform != platform) continue;
        if (seen++ == (want->number < 0 ? 0 : want->number)) return *out = k, CDMPP_OK;
    }
    if (!platform)
        return CD_FAIL(err, EBACKEND, "no OpenCL platform has \"%s\" in its name", want->platform);
    return CD_FAIL(err, EBACKEND, "no OpenCL device %ld%s%s: there are %ld", want->number,
                   want->platform[0] ? " on " : "", want->platform, seen);
}

/* ---- opening ---- */

/* Properties that a driver does not know stay 0. */
static void describe(cd_opencl *d) {
    const cd_opencl_api *a = &d->api;
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_NAME, sizeof d->name - 1, d->name, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DRIVER_VERSION, sizeof d->driver - 1, d->driver, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_TYPE, sizeof d->kind, &d->kind, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_EXECUTION, sizeof d->execution, &d->execution, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_ALIGN_BITS, sizeof d->align_bits, &d->align_bits,
                       NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_UNITS, sizeof d->units, &d->units, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_CLOCK, sizeof d->clock_mhz, &d->clock_mhz, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_BYTES, sizeof d->bytes, &d->bytes, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_ALLOC_MAX, sizeof d->alloc_max, &d->alloc_max, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_CACHE_BYTES, sizeof d->cache_bytes, &d->cache_bytes,
                       NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_LOCAL_BYTES, sizeof d->local_bytes, &d->local_bytes,
                       NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_GROUP_MAX, sizeof d->group_max, &d->group_max, NULL);
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_GROUP_SIZES, sizeof d->group_size, d->group_size,
                       NULL);
}

/* Divides the device into equal parts and keeps one; the other sub-devices are released. */
static cdmpp_status cut(cd_opencl *d, const cd_opencl_name *want, cdmpp_err *err) {
    const cd_opencl_api *a = &d->api;
    uint32_t units = 0, n = 0;
    cd_cl part[MAX_PART];
    a->clGetDeviceInfo(d->device, CD_CL_DEVICE_UNITS, sizeof units, &units, NULL);
    if (want->parts > units)
        return CD_FAIL(err, EBACKEND,
                       "the OpenCL device has %u compute units: it cannot be cut into %u parts",
                       units, want->parts);
    const intptr_t how[] = {CD_CL_PARTITION_EQUALLY, units / want->parts, 0};
    const int32_t st = a->clCreateSubDevices(d->device, how, MAX_PART, part, &n);
    if (st || want->part >= n) {
        for (uint32_t k = 0; !st && k < n; k++) a->clReleaseDevice(part[k]);
        return CD_FAIL(err, EBACKEND, "the OpenCL device cannot be cut into %u parts (%s)",
                       want->parts, cd_opencl_api_error(st));
    }
    for (uint32_t k = 0; k < n; k++)
        if (k != want->part) a->clReleaseDevice(part[k]);
    d->part = d->device = part[want->part];
    return CDMPP_OK;
}

/* The queue has profiling on: all times come from it. */
static cdmpp_status open_on(cd_opencl *d, const cd_opencl_name *want, cdmpp_err *err) {
    inventory inv;
    uint32_t k = 0;
    int32_t st = 0;
    CD_TRY(take_inventory(&d->api, &inv, err));
    CD_TRY(pick(&inv, want, &k, err));
    d->device = inv.d[k].device;
    memcpy(d->version, inv.d[k].version, sizeof d->version);
    if (want->parts > 1) CD_TRY(cut(d, want, err));
    describe(d);
    d->context = d->api.clCreateContext(NULL, 1, &d->device, NULL, NULL, &st);
    if (st)
        return CD_FAIL(err, EBACKEND, "OpenCL device %s: no context (%s)", d->name,
                       cd_opencl_api_error(st));
    d->queue = d->api.clCreateCommandQueue(d->context, d->device, CD_CL_QUEUE_PROFILING, &st);
    return st ? CD_FAIL(err, EBACKEND, "OpenCL device %s: no queue with clocks (%s)", d->name,
                        cd_opencl_api_error(st))
              : CDMPP_OK;
}

/* A processor's driver puts the private memory of a whole work group on the stack of one thread, 64
 * MiB and more. Threads that the driver starts while the device is opened get a large stack; only
 * touched pages are used. */
static cdmpp_status open_with_stack(cd_opencl *d, const cd_opencl_name *want, cdmpp_err *err) {
    enum { STACK = 512 << 20 };
    pthread_attr_t before, deep;
    const bool known = !pthread_getattr_default_np(&before),
               made = known && !pthread_attr_init(&deep);
    if (made && !pthread_attr_setstacksize(&deep, STACK)) (void)pthread_setattr_default_np(&deep);
    const cdmpp_status st = open_on(d, want, err);
    if (known) (void)pthread_setattr_default_np(&before);
    if (known) pthread_attr_destroy(&before);
    if (made) pthread_attr_destroy(&deep);
    return st;
}

cdmpp_status cd_opencl_open(cd_opencl *out, const char *name, cdmpp_err *err) {
    cd_opencl_name want;
    memset(out, 0, sizeof *out);
    CD_TRY(cd_opencl_parse_name(name ? name : "", &want, err));
    CD_TRY(opencl_api_open(&out->api, err));
    const cdmpp_status st = open_with_stack(out, &want, err);
    if (st) cd_opencl_close(out);
    return st;
}

/* The library is never unloaded: drivers leave threads that still run in it. A sub-device of PoCL
 * is not released either: PoCL 3.1 reads the event's device after the event was reported as done
 * (POclReleaseEvent). */
void cd_opencl_close(cd_opencl *d) {
    const cd_opencl_api *a = &d->api;
    if (d->queue) a->clReleaseCommandQueue(d->queue);
    if (d->context) a->clReleaseContext(d->context);
    if (d->part && !strcasestr(d->version, "pocl")) a->clReleaseDevice(d->part);
    memset(d, 0, sizeof *d);
}
