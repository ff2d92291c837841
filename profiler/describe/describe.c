/* Entries of devices.yaml: their numbers by key, their names, their text. The keys come from
 * features/device's table, so that a new key needs no change here. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "profiler/backend/backend.h"
#include "profiler/describe/describe.h"

static const struct {
    const char *key, *unit;
    size_t offset;
    double low, high;
} keys[CD_N_DESCRIBE_KEY] = {
#define X(key, low, high, unit, meaning) {#key, unit, offsetof(cd_device, key), low, high},
#include "features/device/device_keys.def"
};

static double *slot(cd_device *d, int k) { return (double *)(void *)((char *)d + keys[k].offset); }

void cd_describe_entry_init(cd_describe_entry *d, cd_device_kind kind) {
    memset(d, 0, sizeof *d);
    d->device.kind = kind;
    d->device.name = d->name;
    for (int k = 0; k < CD_N_DESCRIBE_KEY; k++) *slot(&d->device, k) = CD_DEVICE_UNKNOWN;
    snprintf(d->name, sizeof d->name, "unknown-%s", cd_device_kind_name(kind));
}

void cd_describe_entry_set(cd_describe_entry *d, int key, double value, const char *note) {
    if (!(value >= keys[key].low && value <= keys[key].high)) return;
    *slot(&d->device, key) = value;
    snprintf(d->note[key], sizeof d->note[key], "%s", note ? note : "");
}

/* ---- names ---- */

/* Words of the kind of device, which do not distinguish one from another. */
static bool idle_word(const char *w, size_t n) {
    static const char *const word[] = {"cpu", "processor", "(r)",  "(tm)",    "r",
                                       "tm",  "gpu",       "with", "graphics"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strlen(word[i]) == n && !strncmp(w, word[i], n)) return true;
    return n > 5 && !strncmp(w + n - 5, "-core", 5);
}

void cd_describe_entry_set_name(cd_describe_entry *d, const char *says) {
    char text[256], *to = d->name, *end = d->name + sizeof d->name - 1;
    size_t n = 0;
    for (const char *s = says; *s && *s != '@' && n + 1 < sizeof text; s++) {
        if (!strncmp(s, "(R)", 3) || !strncmp(s, "(r)", 3)) text[n++] = ' ', s += 2;
        else if (!strncmp(s, "(TM)", 4) || !strncmp(s, "(tm)", 4)) text[n++] = ' ', s += 3;
        else text[n++] = (char)tolower((unsigned char)*s);
    }
    text[n] = 0;
    *to = 0;
    for (char *w = text; *(w += strspn(w, " \t\"'#:,[]{}&*!|>%`\\()/"));) {
        const size_t len = strcspn(w, " \t\"'#:,[]{}&*!|>%`\\()/");
        if (!idle_word(w, len) && to + len + 1 < end) {
            if (to > d->name) *to++ = '-';
            memcpy(to, w, len);
            to += len;
        }
        w += len;
    }
    *to = 0;
    if (to == d->name)
        snprintf(d->name, sizeof d->name, "unknown-%s", cd_device_kind_name(d->device.kind));
    /* an alias that is the name but for its punctuation would be the name given twice */
    char a[64] = "", b[64] = "";
    size_t na = 0, nb = 0;
    for (const char *s = says; *s && na < 63; s++)
        if (isalnum((unsigned char)*s)) a[na++] = (char)tolower((unsigned char)*s);
    for (const char *s = d->name; *s && nb < 63; s++)
        if (isalnum((unsigned char)*s)) b[nb++] = *s;
    if (strcmp(a, b) && na && strlen(says) < sizeof d->alias)
        snprintf(d->alias, sizeof d->alias, "%s", says);
}

/* ---- YAML ---- */

/* Whatever a driver calls itself. */
static void put_text(cd_buf *b, const char *s) { cd_escape_yaml(b, cd_str_of(s)); }

static void put_number(cd_buf *b, double x) {
    if (x == floor(x) && fabs(x) < 1e15) cd_buf_putf(b, "%.0f", x);
    else cd_buf_putf(b, "%.6g", x);
}

static void put_noise(cd_buf *out, const cd_describe_entry *d) {
    if (!d->measured) return;
    cd_buf_puts(out,
                cd_noise_is_much(&d->noise)
                    ? "# NOISY, kept all the same, what was measured here is not to be relied on: "
                    : "# measured: ");
    cd_noise_put(out, &d->noise);
    cd_buf_puts(out, "\n");
}

/* A number that is not known is a comment with the reason, so that a reader sees what is
 * missing. */
void cd_describe_entry_put_yaml(cd_buf *out, const cd_describe_entry *d) {
    for (const char *s = d->head; *s;) {
        const size_t n = strcspn(s, "\n");
        cd_buf_putf(out, "# %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
    put_noise(out, d);
    cd_buf_puts(out, "- name: ");
    put_text(out, d->name);
    if (d->alias[0]) {
        cd_buf_puts(out, "\n  aliases: [");
        put_text(out, d->alias);
        cd_buf_puts(out, "]");
    }
    cd_buf_putf(out, "\n  kind: %s\n", cd_device_kind_name(d->device.kind));
    for (int k = 0; k < CD_N_DESCRIBE_KEY; k++) {
        const double x = *slot((cd_device *)(uintptr_t)&d->device, k);
        if (x < 0) {
            if (d->note[k][0]) cd_buf_putf(out, "  # %s: not known: %s\n", keys[k].key, d->note[k]);
            continue;
        }
        cd_buf_putf(out, "  %s: ", keys[k].key);
        put_number(out, x);
        if (d->note[k][0]) cd_buf_putf(out, " # %s", d->note[k]);
        cd_buf_puts(out, "\n");
    }
    for (size_t k = 0; k < CD_N_DEVICE_PROBE; k++)
        if (d->device.probe[k] > 0)
            cd_buf_putf(out, "  %s: %.6g\n", cd_device_probe_name(k), d->device.probe[k]);
    if (d->probed[0]) cd_buf_putf(out, "  # %s\n", d->probed);
}

/* What records of this machine are called where no file describes it, so that a file with this
 * description does. */
static cdmpp_status name_as_records(const char *core, cd_describe_entry *d, cdmpp_err *err) {
    cd_describe_name n;
    char name[sizeof n.name + 32];
    CD_TRY(cd_describe_name_cpu("", NULL, &n, err));
    snprintf(name, sizeof name, "%s%s%.30s", n.name, core ? "-" : "", core ? core : "");
    snprintf(d->name, sizeof d->name, "%.63s", name);
    return CDMPP_OK;
}

cdmpp_status cd_describe(const char *device, cd_describe_how how, const char *core, cd_buf *out,
                         cdmpp_err *err) {
    cd_describe_entry d;
    cdmpp_status st;
    if (!strcmp(device, "cpu")) {
        st = cd_describe_cores("", how != CD_DESCRIBE_SAID, core, &d, err);
        if (!st && d.measured)
            st = cd_noise_check(&d.noise, how == CD_DESCRIBE_NOISY, "--measure", "--keep-noisy",
                                err);
        if (!st) st = name_as_records(core, &d, err);
    } else if (!strcmp(device, "opencl") || !strncmp(device, "opencl:", 7))
        st = cd_describe_opencl(device[6] ? device + 7 : "", &d, err);
    else if (!strcmp(device, "cuda") || !strncmp(device, "cuda:", 5))
        st = cd_describe_cuda(device[4] ? device + 5 : "", &d, err);
    else
        st = CD_FAIL(err, ERANGE, "expected cpu, opencl[:NAME] or cuda[:NUMBER], found '%.60s'",
                     device);
    if (!st) cd_describe_entry_put_yaml(out, &d);
    if (!st && out->oom) st = CD_FAIL(err, ENOMEM, "description");
    return st;
}

/* Describes GPUs by what their drivers report. Facts are read first and turned into an entry by a
 * function of its own, so that tests can make up facts of devices that are not here. */

enum { KIB = 1024 };
#define GIB 1073741824.0

/* ---- CUDA ---- */

/* fp32 multiply-adds of a multiprocessor in a clock, by compute capability (CUDA C++ programming
 * guide, "arithmetic instructions"). */
static int lanes_of(int major, int minor) {
    switch (major) {
    case 3: return 192;
    case 5: return 128;
    case 6: return minor == 0 ? 64 : 128;
    case 7: return 64;
    case 8: return minor == 0 ? 64 : 128;
    case 9:
    case 10:
    case 12: return 128;
    default: return -1;
    }
}

/* KB of a multiprocessor's L1 cache where no program takes shared memory of it, by compute
 * capability (the same guide, "technical specifications"). */
static int l1_of(int major, int minor) {
    switch (major) {
    case 3:
    case 5: return 48;
    case 6: return minor == 0 ? 24 : 48;
    case 7: return minor < 5 ? 128 : 64;
    case 8: return minor == 0 || minor == 7 ? 192 : 128;
    case 9:
    case 10: return 256;
    case 12: return 128;
    default: return -1;
    }
}

/* The driver knows no throughput of half precision or tensor cores: their notes refer to the data
 * sheet. */
void cd_describe_cuda_facts(const cd_cuda_facts *f, cd_describe_entry *d) {
    const double lanes = lanes_of(f->cc_major, f->cc_minor), mhz = f->clock_khz / 1e3;
    char cc[48];
    cd_describe_entry_init(d, CD_DEVICE_GPU);
    if (f->name[0]) cd_describe_entry_set_name(d, f->name);
    snprintf(cc, sizeof cc, "compute capability %d.%d", f->cc_major, f->cc_minor);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_clock_mhz, mhz, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_cores, f->units, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_lanes, lanes, cc);
    if (f->unit_threads > 0)
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_core_threads, f->unit_threads, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_mem_gb, round(10 * (double)f->memory_bytes / GIB) / 10,
                          NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_bandwidth_gb_s,
                          round(2e-6 * f->memory_khz * f->bus_bits / 8 * 10) / 10, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_l1_kb, l1_of(f->cc_major, f->cc_minor), cc);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_l2_kb, (double)f->l2_bytes / KIB, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_l3_kb, 0, NULL);
    if (f->shared_bytes > 0)
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_shared_kb, (double)f->shared_bytes / KIB, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_warp, f->warp, NULL);
    if (f->units > 0 && lanes > 0)
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_fp32_gflops, 2 * lanes * f->units * mhz / 1000,
                              NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_fp32_matrix_gflops, 0, NULL);
    for (int k = CD_DESCRIBE_KEY_fp16_tflops; k <= CD_DESCRIBE_KEY_tensor_tflops; k++)
        snprintf(d->note[k], sizeof d->note[k], "see its data sheet");
}

/* Numbers of CUdevice_attribute that only this file asks for: the driver's binary interface. */
enum { WARP = 10, MEMORY_CLOCK = 36, BUS = 37, THREADS = 39, SHARED = 81 };

/* An attribute that the driver does not know is 0. */
static cdmpp_status read_facts(const cd_cuda_api *c, int number, cd_cuda_facts *f, cdmpp_err *err) {
    const struct {
        int which, *to;
    } ask[] = {{WARP, &f->warp},
               {CD_CU_CLOCK_KHZ, &f->clock_khz},
               {CD_CU_UNITS, &f->units},
               {MEMORY_CLOCK, &f->memory_khz},
               {BUS, &f->bus_bits},
               {CD_CU_L2_BYTES, &f->l2_bytes},
               {CD_CU_MAJOR, &f->cc_major},
               {CD_CU_MINOR, &f->cc_minor},
               {SHARED, &f->shared_bytes},
               {THREADS, &f->unit_threads}};
    int n = 0, device;
    size_t bytes = 0;
    memset(f, 0, sizeof *f);
    const int rc = c->init(0);
    if (rc)
        return CD_FAIL(err, EBACKEND, "the CUDA driver does not start: %s",
                       cd_cuda_api_error(c, rc));
    if (c->device_count(&n) || number >= n)
        return CD_FAIL(err, EBACKEND, "no CUDA device %d: there are %d", number, n);
    if (c->device_get(&device, number))
        return CD_FAIL(err, EBACKEND, "CUDA device %d cannot be used", number);
    if (c->device_name(f->name, (int)sizeof f->name, device)) f->name[0] = 0;
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++)
        if (c->device_attribute(ask[i].to, ask[i].which, device)) *ask[i].to = 0;
    if (!c->device_bytes(&bytes, device)) f->memory_bytes = bytes;
    return CDMPP_OK;
}

cdmpp_status cd_describe_cuda(const char *number, cd_describe_entry *out, cdmpp_err *err) {
    cd_cuda_api c = {0};
    cd_cuda_facts f;
    char *end;
    const long k = strtol(number, &end, 10);
    if (*end || k < 0 || k > 1000)
        return CD_FAIL(err, ERANGE, "expected the number of a CUDA device, found '%.40s'", number);
    CD_TRY(cd_cuda_api_open(&c, err));
    const cdmpp_status st = read_facts(&c, (int)k, &f, err);
    cd_cuda_api_close(&c);
    if (!st) cd_describe_cuda_facts(&f, out);
    return st;
}

/* ---- OpenCL ---- */
void cd_describe_opencl_facts(const cd_opencl_facts *f, cd_describe_entry *d) {
    cd_describe_entry_init(d, f->gpu ? CD_DEVICE_GPU : CD_DEVICE_CPU);
    if (f->name[0]) cd_describe_entry_set_name(d, f->name);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_clock_mhz, f->clock_mhz, f->gpu ? NULL : "highest");
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_cores, f->units, NULL);
    cd_describe_entry_set(d, CD_DESCRIBE_KEY_mem_gb, round(10 * (double)f->memory_bytes / GIB) / 10,
                          NULL);
    if (f->gpu) {
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_l2_kb,
                              f->cache_bytes ? (double)f->cache_bytes / KIB : -1, NULL);
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_l3_kb, 0, NULL);
        if (f->local_is_own)
            cd_describe_entry_set(d, CD_DESCRIBE_KEY_shared_kb, (double)f->local_bytes / KIB,
                                  "of a work group");
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_warp, f->warp ? (double)f->warp : -1, NULL);
    } else {
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_l3_kb,
                              f->cache_bytes ? (double)f->cache_bytes / KIB : -1, "largest cache");
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_shared_kb, 0, NULL);
        cd_describe_entry_set(d, CD_DESCRIBE_KEY_warp, 1, NULL);
    }
    snprintf(d->head, sizeof d->head,
             "As OpenCL tells, which knows neither arithmetic units nor bandwidth%s",
             f->gpu ? "." : ":\n--describe-device cpu knows more.");
}

/* What opencl_device.h does not have: OpenCL's own numbers. */
enum { LOCAL_TYPE = 0x1022, LOCAL_OWN = 1, WARP_NV = 0x4003, WAVEFRONT_AMD = 0x4043 };

/* The width of a warp is an extension of two makers; others do not report it. */
cdmpp_status cd_describe_opencl(const char *name, cd_describe_entry *out, cdmpp_err *err) {
    cd_opencl d;
    uint32_t local = 0;
    CD_TRY(cd_opencl_open(&d, name, err));
    cd_opencl_facts f = {.gpu = (d.kind & CD_CL_DEVICE_GPU) != 0,
                         .units = d.units,
                         .clock_mhz = d.clock_mhz,
                         .memory_bytes = d.bytes,
                         .cache_bytes = d.cache_bytes,
                         .local_bytes = d.local_bytes};
    snprintf(f.name, sizeof f.name, "%s", d.name);
    d.api.clGetDeviceInfo(d.device, LOCAL_TYPE, sizeof local, &local, NULL);
    f.local_is_own = local == LOCAL_OWN;
    if (d.api.clGetDeviceInfo(d.device, WARP_NV, sizeof f.warp, &f.warp, NULL) &&
        d.api.clGetDeviceInfo(d.device, WAVEFRONT_AMD, sizeof f.warp, &f.warp, NULL))
        f.warp = 0;
    cd_opencl_close(&d);
    cd_describe_opencl_facts(&f, out);
    return CDMPP_OK;
}
