/* Names of this machine's devices for measure records. The tables that people wrote come first,
 * because a model that is trained elsewhere knows their names; what a processor says of itself is
 * often too little ("AMD EPYC") and gets its microarchitecture. */
#include "profiler/describe/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/cli.h"
#include "profiler/host/host.h"

/* The description by any of these names; NULL: there is none. */
static const cd_device *described(const cd_device_table *devices, cd_device_kind kind,
                                  const char *const *name, size_t n) {
    const cd_device *d;
    for (size_t i = 0; devices && i < n; i++)
        if (name[i][0] && !cd_device_table_find(devices, name[i], &d, NULL) && d->kind == kind)
            return d;
    return NULL;
}

static void set(cd_describe_name *out, const char *name, const char *says, bool is_described) {
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->says, sizeof out->says, "%s", says);
    out->described = is_described;
}

static bool has_digit(const char *s) { return s[strcspn(s, "0123456789")] != 0; }

cdmpp_status cd_describe_name_cpu(const char *root, const cd_device_table *devices,
                                  cd_describe_name *out, cdmpp_err *err) {
    cd_describe_entry e;
    cd_host_info host;
    char name[sizeof out->name], vendor[32], family[16], model[16];
    const char *march = NULL;
    CD_TRY(cd_describe_cpu(root, false, &e, err));
    cd_host_info_read(root, &host);
    if (cd_host_info_field(root, "vendor_id", vendor, sizeof vendor) &&
        cd_host_info_field(root, "cpu family", family, sizeof family) &&
        cd_host_info_field(root, "model", model, sizeof model))
        march = cd_describe_microarch(vendor, atoi(family), atoi(model));
    char ours[CD_DESCRIBE_OWN];
    const char *const known[] = {cd_describe_own(march ? march : "", ours), march ? march : "",
                                 e.name, e.alias};
    const cd_device *d = described(devices, CD_DEVICE_CPU, known, 4);
    const bool too_wide = d && e.device.simd_bits > 0 && d->simd_bits > e.device.simd_bits;
    /* "AMD EPYC" is what virtual machines of four generations say */
    snprintf(name, sizeof name, "%s%s%s", e.name, march && !has_digit(e.name) ? "-" : "",
             march && !has_digit(e.name) ? march : "");
    set(out, d && !too_wide ? d->name : name, host.cpu[0] ? host.cpu : "unknown processor",
        d && !too_wide);
    return CDMPP_OK;
}

cdmpp_status cd_describe_gpu(const char *backend, const char *gpu, cd_describe_entry *out,
                             cdmpp_err *err) {
    return !strcmp(backend, "cuda") ? cd_describe_cuda(gpu, out, err)
                                    : cd_describe_opencl(gpu, out, err);
}

void cd_describe_name_entry(const cd_describe_entry *e, const cd_device_table *devices,
                            cd_describe_name *out) {
    const char *const known[] = {e->name, e->alias};
    const cd_device *d = described(devices, e->device.kind, known, 2);
    set(out, d ? d->name : e->name, e->alias[0] ? e->alias : e->name, d != NULL);
}

cdmpp_status cd_describe_name_gpu(const char *backend, const char *gpu,
                                  const cd_device_table *devices, cd_describe_name *out,
                                  cdmpp_err *err) {
    cd_describe_entry e;
    CD_TRY(cd_describe_gpu(backend, gpu, &e, err));
    cd_describe_name_entry(&e, devices, out);
    return CDMPP_OK;
}

/* ---- once for each kind ---- */
static int kind_of(cd_str target) {
    size_t n = 0;
    while (n < target.n && target.p[n] != ' ') n++;
    const cd_str word = {target.p, n};
    return cd_str_is(word, "cuda")                           ? 1
           : cd_str_is(word, "opencl")                       ? 2
           : cd_str_is(word, "llvm") || cd_str_is(word, "c") ? 0
                                                             : -1;
}

static const char *const target_of[] = {"llvm", "cuda", "opencl"};

static void say(const cd_describe_namer *n, int kind) {
    const cd_describe_name *d = &n->of[kind];
    if (!n->log) return;
    if (d->described)
        cd_log_put(n->log, CD_LOG_INFO, "device: %s, recognised as this machine (%s)", d->name,
                   d->says);
    else
        cd_log_put(
            n->log, CD_LOG_INFO,
            "device: %s, which no description knows (%s); --target '%s -model=NAME' names another",
            d->name, d->says, target_of[kind]);
}

/* A core of one type is a device of its own, which may be described. */
static void of_core(const cd_describe_namer *n, const cd_device_table *devices,
                    cd_describe_name *d) {
    const size_t at = strlen(d->name);
    const char *const known[] = {d->name};
    if (!n->core || at + strlen(n->core) + 2 > sizeof d->name) return;
    snprintf(d->name + at, sizeof d->name - at, "-%s", n->core);
    d->described = described(devices, CD_DEVICE_CPU, known, 1) != NULL;
}

static void ask(cd_describe_namer *n, int kind) {
    cd_arena a = {0};
    cd_diag diag = {0};
    cd_device_table *devices = NULL;
    const char *path;
    if (!cd_device_table_path(&a, NULL, NULL, &path, NULL))
        (void)cd_device_table_load(path, &diag, &devices, NULL);
    const cdmpp_status st = !kind ? cd_describe_name_cpu("", devices, &n->of[0], NULL)
                                  : cd_describe_name_gpu(target_of[kind], n->gpu ? n->gpu : "",
                                                         devices, &n->of[kind], NULL);
    if (!st && !kind) of_core(n, devices, &n->of[0]);
    if (!st) say(n, kind);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    cd_arena_free(&a);
}

const char *cd_describe_namer_ask(void *ctx, cd_str target) {
    cd_describe_namer *n = ctx;
    const int kind = kind_of(target);
    if (kind < 0) return NULL;
    if (!n->asked[kind]) ask(n, kind);
    n->asked[kind] = true;
    return n->of[kind].name[0] ? n->of[kind].name : NULL;
}
