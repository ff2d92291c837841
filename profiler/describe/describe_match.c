/* Which described device stands for this machine. A name is trusted first, because two processors
 * with equal numbers can differ in what the numbers do not say; only then the distance of the
 * device vectors decides. */
#include "profiler/describe/describe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/host/host.h"

/* ---- the microarchitecture ---- */
static const struct {
    const char *vendor, *name;
    int family, first, last; /* models first .. last */
} microarch[] = {{"AuthenticAMD", "zen3", 25, 0x00, 0x0f},
                 {"AuthenticAMD", "zen4", 25, 0x10, 0x1f},
                 {"AuthenticAMD", "zen3", 25, 0x20, 0x5f},
                 {"AuthenticAMD", "zen4", 25, 0x60, 0x7f},
                 {"AuthenticAMD", "zen4", 25, 0xa0, 0xaf},
                 {"AuthenticAMD", "zen1", 23, 0x00, 0x2f},
                 {"AuthenticAMD", "zen2", 23, 0x30, 0xff},
                 {"AuthenticAMD", "zen5", 26, 0x00, 0x7f},
                 {"GenuineIntel", "granite-rapids", 6, 173, 174},
                 {"GenuineIntel", "emerald-rapids", 6, 207, 207},
                 {"GenuineIntel", "sapphire-rapids", 6, 143, 143},
                 {"GenuineIntel", "ice-lake-server", 6, 106, 106},
                 {"GenuineIntel", "ice-lake-server", 6, 108, 108},
                 {"GenuineIntel", "skylake-server", 6, 85, 85},
                 {"GenuineIntel", "broadwell-server", 6, 79, 79},
                 {"GenuineIntel", "haswell-server", 6, 63, 63}};

const char *cd_describe_microarch(const char *vendor, int family, int model) {
    for (size_t i = 0; i < sizeof microarch / sizeof *microarch; i++)
        if (!strcmp(microarch[i].vendor, vendor) && microarch[i].family == family &&
            model >= microarch[i].first && model <= microarch[i].last)
            return microarch[i].name;
    return NULL;
}

const char *cd_describe_own(const char *core, char out[CD_DESCRIBE_OWN]) {
    snprintf(out, CD_DESCRIBE_OWN, "%.24s%s", core, core[0] ? "-cdmpp" : "");
    return out;
}

bool cd_describe_is_own(const char *device) {
    static const char end[] = "-cdmpp";
    const size_t n = strlen(device), m = sizeof end - 1;
    return n > m && !strcmp(device + n - m, end);
}

static void read_microarch(const char *root, cd_describe_match *out) {
    char vendor[32], family[16], model[16];
    if (!cd_host_info_field(root, "vendor_id", vendor, sizeof vendor) ||
        !cd_host_info_field(root, "cpu family", family, sizeof family) ||
        !cd_host_info_field(root, "model", model, sizeof model))
        return;
    const char *name = cd_describe_microarch(vendor, atoi(family), atoi(model));
    if (name) snprintf(out->microarch, sizeof out->microarch, "%s", name);
}

/* ---- the choice ---- */
/* Smaller is better. A device with wider vectors than this processor has comes last: its programs
 * cannot run here. */
static double rank_of(const cd_device *d, const cd_device *host, const float *want) {
    float v[CD_N_DEVICE_COL];
    cd_device_vector(d, v);
    const bool wider = d->simd_bits > host->simd_bits && host->simd_bits > 0;
    return cd_device_distance(want, v) + (wider ? 1e6 : 0);
}

/* The device of this microarchitecture: that of our own code (NAME-cdmpp), where the model knows
 * it, else the other. NULL: nobody describes it. */
static const cd_device *own_of(const cd_device_table *devices, const char *const *name, size_t n,
                               const char *core) {
    char ours[CD_DESCRIBE_OWN];
    const cd_device *d;
    for (size_t i = 0; devices && i < n; i++)
        if (!strcmp(name[i], cd_describe_own(core, ours)) &&
            !cd_device_table_find(devices, ours, &d, NULL))
            return d;
    return devices && !cd_device_table_find(devices, core, &d, NULL) ? d : NULL;
}

cdmpp_status cd_describe_match_host(const char *root, const cd_device_table *devices,
                                    const char *const *name, size_t n, cd_describe_match *out,
                                    cdmpp_err *err) {
    cd_describe_entry here;
    cd_host_info host;
    const cd_device *own = NULL, *d;
    double best = (double)INFINITY;
    memset(out, 0, sizeof *out);
    cd_host_info_read(root, &host);
    snprintf(out->cpu, sizeof out->cpu, "%s", host.cpu);
    read_microarch(root, out);
    CD_TRY(cd_describe_cpu(root, false, &here, err));
    here.device.cores_used = 1;
    cd_device_vector(&here.device, out->here);
    own = own_of(devices, name, n, out->microarch);
    float want[CD_N_DEVICE_COL];
    memcpy(want, out->here, sizeof want);
    if (own) cd_device_vector(own, out->here); /* it has peaks, which nobody measured here */
    for (size_t i = 0; devices && i < n; i++) {
        if (cd_device_table_find(devices, name[i], &d, NULL) || d->kind != CD_DEVICE_CPU) continue;
        const double rank = d == own ? -1 : rank_of(d, &here.device, want);
        if (rank > best || (rank == best && !cd_describe_is_own(name[i]))) continue;
        best = rank;
        out->index = i;
        out->exact = d == own;
    }
    return isfinite(best)
               ? CDMPP_OK
               : CD_FAIL(err, EMODEL,
                         "device: the model has no described CPU to stand for this machine (%s)",
                         out->cpu);
}

cdmpp_status cd_describe_match_gpu(const cd_describe_entry *e, const char *backend,
                                   const cd_device_table *devices, const char *const *name,
                                   size_t n, cd_describe_match *out, cdmpp_err *err) {
    cd_describe_name is;
    const cd_device *own = NULL, *d;
    double best = (double)INFINITY;
    float has[CD_N_DEVICE_COL];
    memset(out, 0, sizeof *out);
    cd_describe_name_entry(e, devices, &is);
    snprintf(out->cpu, sizeof out->cpu, "%.95s", is.says);
    snprintf(out->microarch, sizeof out->microarch, "%s", backend);
    if (!cd_describe_is_gpu(e)) return CD_FAIL(err, EMODEL, "device: %s is no GPU", out->cpu);
    if (is.described && cd_device_table_find(devices, is.name, &own, NULL)) own = NULL;
    cd_device_vector(own ? own : &e->device, out->here);
    for (size_t i = 0; devices && i < n; i++) {
        if (cd_device_table_find(devices, name[i], &d, NULL) || d->kind != CD_DEVICE_GPU) continue;
        cd_device_vector(d, has);
        const double far = d == own ? -1 : cd_device_distance(out->here, has);
        if (far >= best) continue;
        best = far;
        out->index = i;
        out->exact = d == own;
    }
    return isfinite(best)
               ? CDMPP_OK
               : CD_FAIL(err, EMODEL,
                         "device: the model has no described GPU to stand for this machine's (%s)",
                         out->cpu);
}
