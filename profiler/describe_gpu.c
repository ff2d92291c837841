/* describe_gpu -- what CUDA's driver and OpenCL tell of a GPU. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/describe.h"

enum { KIB = 1024 };
#define GIB 1073741824.0

/* ---- CUDA ---- */

/* fp32 multiply-adds of a multiprocessor in a clock, by compute capability (CUDA C++ programming guide, "arithmetic
 * instructions"). */
static int lanes_of(int major, int minor) {
    switch (major) {
    case 3: return 192;
    case 5: return 128;
    case 6: return minor == 0 ? 64 : 128;
    case 7: return 64;
    case 8: return minor == 0 ? 64 : 128;
    case 9: case 10: case 12: return 128;
    default: return -1;
    }
}

void cd_describe_cuda_facts(const cd_cuda_facts *f, cd_described *d) {
    const double lanes = lanes_of(f->cc_major, f->cc_minor), mhz = f->clock_khz / 1e3;
    char cc[48];
    cd_described_init(d, CD_DEVICE_GPU);
    if (f->name[0]) cd_described_call(d, f->name);
    snprintf(cc, sizeof cc, "compute capability %d.%d", f->cc_major, f->cc_minor);
    cd_described_set(d, CD_DESCRIBED_clock_mhz, mhz, NULL);
    cd_described_set(d, CD_DESCRIBED_cores, f->units, NULL);
    cd_described_set(d, CD_DESCRIBED_lanes, lanes, cc);
    cd_described_set(d, CD_DESCRIBED_mem_gb, round(10 * (double)f->memory_bytes / GIB) / 10, NULL);
    cd_described_set(d, CD_DESCRIBED_bandwidth_gb_s, round(2e-6 * f->memory_khz * f->bus_bits / 8 * 10) / 10, NULL);
    cd_described_set(d, CD_DESCRIBED_l2_kb, (double)f->l2_bytes / KIB, NULL);
    cd_described_set(d, CD_DESCRIBED_l3_kb, 0, NULL);
    if (f->shared_bytes > 0) cd_described_set(d, CD_DESCRIBED_shared_kb, (double)f->shared_bytes / KIB, NULL);
    cd_described_set(d, CD_DESCRIBED_warp, f->warp, NULL);
    if (f->units > 0 && lanes > 0) cd_described_set(d, CD_DESCRIBED_fp32_gflops, 2 * lanes * f->units * mhz / 1000, NULL);
    cd_described_set(d, CD_DESCRIBED_fp32_matrix_gflops, 0, NULL);
    for (int k = CD_DESCRIBED_fp16_tflops; k <= CD_DESCRIBED_tensor_tflops; k++) snprintf(d->note[k], sizeof d->note[k], "see its data sheet");
    snprintf(d->note[CD_DESCRIBED_l1_kb], sizeof d->note[0], "see its data sheet");
}

typedef struct driver {
    void *handle;
    int (*init)(unsigned flags);
    int (*count)(int *n);
    int (*get)(int *device, int ordinal);
    int (*name)(char *out, int n, int device);
    int (*attribute)(int *out, int which, int device);
    int (*memory)(size_t *out, int device);
} driver;

static cdmpp_status open_driver(driver *c, cdmpp_err *err) {
    c->handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!c->handle) return CD_FAIL(err, EBACKEND, "no CUDA driver here: %.100s", dlerror());
    *(void **)&c->init = dlsym(c->handle, "cuInit");
    *(void **)&c->count = dlsym(c->handle, "cuDeviceGetCount");
    *(void **)&c->get = dlsym(c->handle, "cuDeviceGet");
    *(void **)&c->name = dlsym(c->handle, "cuDeviceGetName");
    *(void **)&c->attribute = dlsym(c->handle, "cuDeviceGetAttribute");
    *(void **)&c->memory = dlsym(c->handle, "cuDeviceTotalMem_v2");
    if (!c->init || !c->count || !c->get || !c->name || !c->attribute || !c->memory) return CD_FAIL(err, EBACKEND, "libcuda.so.1 lacks a function");
    const int rc = c->init(0);
    return rc ? CD_FAIL(err, EBACKEND, "the CUDA driver does not start: error %d", rc) : CDMPP_OK;
}

/* Numbers of CUdevice_attribute: the driver's binary interface. */
enum { WARP = 10, CLOCK = 13, UNITS = 16, MEMORY_CLOCK = 36, BUS = 37, L2 = 38, CC_MAJOR = 75, CC_MINOR = 76, SHARED = 81 };

static cdmpp_status read_facts(const driver *c, int number, cd_cuda_facts *f, cdmpp_err *err) {
    const struct {
        int which, *to;
    } ask[] = {{WARP, &f->warp}, {CLOCK, &f->clock_khz}, {UNITS, &f->units}, {MEMORY_CLOCK, &f->memory_khz}, {BUS, &f->bus_bits},
               {L2, &f->l2_bytes}, {CC_MAJOR, &f->cc_major}, {CC_MINOR, &f->cc_minor}, {SHARED, &f->shared_bytes}};
    int n = 0, device;
    size_t bytes = 0;
    memset(f, 0, sizeof *f);
    if (c->count(&n) || number >= n) return CD_FAIL(err, EBACKEND, "no CUDA device %d: there are %d", number, n);
    if (c->get(&device, number)) return CD_FAIL(err, EBACKEND, "CUDA device %d cannot be used", number);
    if (c->name(f->name, (int)sizeof f->name, device)) f->name[0] = 0;
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++)
        if (c->attribute(ask[i].to, ask[i].which, device)) *ask[i].to = 0;
    if (!c->memory(&bytes, device)) f->memory_bytes = bytes;
    return CDMPP_OK;
}

cdmpp_status cd_describe_cuda(const char *number, cd_described *out, cdmpp_err *err) {
    driver c = {0};
    cd_cuda_facts f;
    char *end = NULL;
    const long k = strtol(number, &end, 10);
    if (*end || k < 0 || k > 1000) return CD_FAIL(err, ERANGE, "expected the number of a CUDA device, found '%.40s'", number);
    cdmpp_status st = open_driver(&c, err);
    if (!st) st = read_facts(&c, (int)k, &f, err);
    if (!st) cd_describe_cuda_facts(&f, out);
    return st; /* the driver stays loaded: it does not like to be taken away */
}

/* ---- OpenCL ---- */
void cd_describe_opencl_facts(const cd_opencl_facts *f, cd_described *d) {
    cd_described_init(d, f->gpu ? CD_DEVICE_GPU : CD_DEVICE_CPU);
    if (f->name[0]) cd_described_call(d, f->name);
    cd_described_set(d, CD_DESCRIBED_clock_mhz, f->clock_mhz, f->gpu ? NULL : "highest");
    cd_described_set(d, CD_DESCRIBED_cores, f->units, NULL);
    cd_described_set(d, CD_DESCRIBED_mem_gb, round(10 * (double)f->memory_bytes / GIB) / 10, NULL);
    if (f->gpu) {
        cd_described_set(d, CD_DESCRIBED_l2_kb, f->cache_bytes ? (double)f->cache_bytes / KIB : -1, NULL);
        cd_described_set(d, CD_DESCRIBED_l3_kb, 0, NULL);
        if (f->local_is_own) cd_described_set(d, CD_DESCRIBED_shared_kb, (double)f->local_bytes / KIB, "of a work group");
        cd_described_set(d, CD_DESCRIBED_warp, f->warp ? (double)f->warp : -1, NULL);
    } else {
        cd_described_set(d, CD_DESCRIBED_l3_kb, f->cache_bytes ? (double)f->cache_bytes / KIB : -1, "largest cache");
        cd_described_set(d, CD_DESCRIBED_shared_kb, 0, NULL);
        cd_described_set(d, CD_DESCRIBED_warp, 1, NULL);
    }
    snprintf(d->head, sizeof d->head, "As OpenCL tells, which knows neither arithmetic units nor bandwidth%s", f->gpu ? "." : ":\n--describe-device cpu knows more.");
}

/* OpenCL's own numbers and functions. */
enum { TYPE = 0x1000, COMPUTE_UNITS = 0x1002, FREQUENCY = 0x100C, GLOBAL_CACHE = 0x101E, GLOBAL_BYTES = 0x101F, LOCAL_TYPE = 0x1022,
       LOCAL_BYTES = 0x1023, NAME = 0x102B, WARP_NV = 0x4003, WAVEFRONT_AMD = 0x4043, PLATFORM_NAME = 0x0902, TYPE_GPU = 4, LOCAL_OWN = 1,
       MAX_PLATFORM = 16, MAX_DEVICE = 64 };
typedef struct cl {
    int32_t (*platforms)(uint32_t cap, void **out, uint32_t *n);
    int32_t (*platform_info)(void *p, uint32_t what, size_t n, void *out, size_t *need);
    int32_t (*devices)(void *p, uint64_t type, uint32_t cap, void **out, uint32_t *n);
    int32_t (*info)(void *d, uint32_t what, size_t n, void *out, size_t *need);
} cl;

static cdmpp_status open_cl(cl *c, cdmpp_err *err) {
    void *h = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!h) return CD_FAIL(err, EBACKEND, "no OpenCL here: %.100s", dlerror());
    *(void **)&c->platforms = dlsym(h, "clGetPlatformIDs");
    *(void **)&c->platform_info = dlsym(h, "clGetPlatformInfo");
    *(void **)&c->devices = dlsym(h, "clGetDeviceIDs");
    *(void **)&c->info = dlsym(h, "clGetDeviceInfo");
    return c->platforms && c->platform_info && c->devices && c->info ? CDMPP_OK : CD_FAIL(err, EBACKEND, "libOpenCL.so.1 lacks a function");
}

/* Device `number` of the platforms that have `platform` in their names; without a number the first GPU, else the first. */
static void *find_cl(const cl *c, const char *platform, size_t len, long number) {
    void *p[MAX_PLATFORM], *d[MAX_DEVICE], *first = NULL, *gpu = NULL;
    uint32_t n_p = 0, n_d;
    long k = 0;
    if (c->platforms(MAX_PLATFORM, p, &n_p)) n_p = 0;
    for (uint32_t i = 0; i < n_p && i < MAX_PLATFORM; i++) {
        char name[128] = "", want[64];
        c->platform_info(p[i], PLATFORM_NAME, sizeof name - 1, name, NULL);
        for (char *s = name; *s; s++) *s = (char)(*s >= 'A' && *s <= 'Z' ? *s + 32 : *s);
        snprintf(want, sizeof want, "%.*s", (int)len, platform);
        if (!strstr(name, want)) continue;
        n_d = 0;
        if (c->devices(p[i], 0xFFFFFFFFU, MAX_DEVICE, d, &n_d)) continue;
        for (uint32_t j = 0; j < n_d && j < MAX_DEVICE; j++, k++) {
            uint64_t type = 0;
            c->info(d[j], TYPE, sizeof type, &type, NULL);
            if (k == number) return d[j];
            if (!first) first = d[j];
            if (!gpu && type & TYPE_GPU) gpu = d[j];
        }
    }
    return number >= 0 ? NULL : gpu ? gpu : first;
}

static void read_cl(const cl *c, void *dev, cd_opencl_facts *f) {
    uint64_t type = 0;
    uint32_t local = 0;
    memset(f, 0, sizeof *f);
    c->info(dev, NAME, sizeof f->name - 1, f->name, NULL);
    c->info(dev, TYPE, sizeof type, &type, NULL);
    c->info(dev, COMPUTE_UNITS, sizeof f->units, &f->units, NULL);
    c->info(dev, FREQUENCY, sizeof f->clock_mhz, &f->clock_mhz, NULL);
    c->info(dev, GLOBAL_BYTES, sizeof f->memory_bytes, &f->memory_bytes, NULL);
    c->info(dev, GLOBAL_CACHE, sizeof f->cache_bytes, &f->cache_bytes, NULL);
    c->info(dev, LOCAL_BYTES, sizeof f->local_bytes, &f->local_bytes, NULL);
    c->info(dev, LOCAL_TYPE, sizeof local, &local, NULL);
    if (c->info(dev, WARP_NV, sizeof f->warp, &f->warp, NULL) && c->info(dev, WAVEFRONT_AMD, sizeof f->warp, &f->warp, NULL)) f->warp = 0;
    f->gpu = (type & TYPE_GPU) != 0;
    f->local_is_own = local == LOCAL_OWN;
}

cdmpp_status cd_describe_opencl(const char *name, cd_described *out, cdmpp_err *err) {
    const char *colon = strchr(name, ':'), *digits = colon ? colon + 1 : name;
    char *end = NULL;
    const long number = *digits ? strtol(digits, &end, 10) : -1;
    cl c;
    cd_opencl_facts f;
    if (*digits && (*end || number < 0)) return CD_FAIL(err, ERANGE, "expected [PLATFORM:]NUMBER of an OpenCL device, found '%.40s'", name);
    CD_TRY(open_cl(&c, err));
    void *dev = find_cl(&c, name, colon ? (size_t)(colon - name) : 0, number);
    if (!dev) return CD_FAIL(err, EBACKEND, "no OpenCL device '%.40s'", name);
    read_cl(&c, dev, &f);
    cd_describe_opencl_facts(&f, out);
    return CDMPP_OK;
}
