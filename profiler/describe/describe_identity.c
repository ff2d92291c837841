/* The identity of a machine: read, written, compared. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "profiler/describe/describe.h"
#include "profiler/host/host.h"

/* Which described device stands for this machine. A name is trusted first, because two processors
 * with equal numbers can differ in what the numbers do not say; only then the distance of the
 * device vectors decides. */

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

/* Names of this machine's devices for measure records. The tables that people wrote come first,
 * because a model that is trained elsewhere knows their names; what a processor says of itself is
 * often too little ("AMD EPYC") and gets its microarchitecture. */

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

/* The GPU's, by its back end ("cuda", "opencl") and as that counts it ("": the first). Errors:
 * EBACKEND (no such device), ERANGE. */
static cdmpp_status describe_name_gpu(const char *backend, const char *gpu,
                                      const cd_device_table *devices, cd_describe_name *out,
                                      cdmpp_err *err) {
    cd_describe_entry e;
    CD_TRY(cd_describe_gpu(backend, gpu, &e, err));
    cd_describe_name_entry(&e, devices, out);
    return CDMPP_OK;
}

/* ---- once for each kind ---- */
static int kind_of_name(cd_str target) {
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
                                  : describe_name_gpu(target_of[kind], n->gpu ? n->gpu : "",
                                                      devices, &n->of[kind], NULL);
    if (!st && !kind) of_core(n, devices, &n->of[0]);
    if (!st) say(n, kind);
    cd_device_table_free(devices);
    cd_diag_free(&diag);
    cd_arena_free(&a);
}

const char *cd_describe_namer_ask(void *ctx, cd_str target) {
    cd_describe_namer *n = ctx;
    const int kind = kind_of_name(target);
    if (kind < 0) return NULL;
    if (!n->asked[kind]) ask(n, kind);
    n->asked[kind] = true;
    return n->of[kind].name[0] ? n->of[kind].name : NULL;
}

/* Drivers keep some of a GPU's memory for themselves, and not all of them the same. */
static const double memory_alike = 0.05;

static const struct {
    const char *key, *name;
    bool needed; /* unknown is another value */
} numbers[CD_N_IDENTITY] = {{"cores", "cores", true},     {"vector_bits", "bits of a vector", true},
                            {"l1_kb", "KB of L1", false}, {"l2_kb", "KB of L2", false},
                            {"l3_kb", "KB of L3", false}, {"memory_gb", "GB of memory", false}};

static void copy_text(char *to, size_t n, const char *from) {
    (void)snprintf(to, n, "%.*s", (int)n - 1, from);
}

/* x86 counts in decimal, Arm in hexadecimal. */
static int number_of(const char *root, const char *field) {
    char text[32], *end;
    if (!cd_host_info_field(root, field, text, sizeof text)) return -1;
    const long v = strtol(text, &end, 0);
    return end == text || v < 0 || v > 1 << 20 ? -1 : (int)v;
}

cd_describe_identity cd_describe_identity_named(const char *says) {
    cd_describe_identity i = {.family = -1, .model = -1};
    for (int k = 0; k < CD_N_IDENTITY; k++) i.number[k] = CD_DEVICE_UNKNOWN;
    copy_text(i.says, sizeof i.says, says);
    return i;
}

cdmpp_status cd_describe_identity_cpu(const char *root, cd_describe_identity *out, cdmpp_err *err) {
    cd_describe_entry e;
    cd_host_info host;
    *out = cd_describe_identity_named("");
    CD_TRY(cd_describe_cpu(root, false, &e, err));
    cd_host_info_read(root, &host);
    *out = cd_describe_identity_named(host.cpu[0] ? host.cpu : "unknown processor");
    const bool x86 = cd_host_info_field(root, "vendor_id", out->maker, sizeof out->maker);
    if (!x86) (void)cd_host_info_field(root, "CPU implementer", out->maker, sizeof out->maker);
    out->family = number_of(root, x86 ? "cpu family" : "CPU architecture");
    out->model = number_of(root, x86 ? "model" : "CPU part");
    const char *march = cd_describe_microarch(out->maker, out->family, out->model);
    copy_text(out->microarch, sizeof out->microarch, march ? march : "");
    copy_text(out->isa, sizeof out->isa, e.note[CD_DESCRIBE_KEY_simd_bits]);
    const cd_device *d = &e.device;
    const double value[CD_N_IDENTITY] = {d->cores, d->simd_bits, d->l1_kb,
                                         d->l2_kb, d->l3_kb,     CD_DEVICE_UNKNOWN};
    memcpy(out->number, value, sizeof value);
    return CDMPP_OK;
}

void cd_describe_identity_gpu(const cd_describe_entry *e, cd_describe_identity *out) {
    cd_describe_name name;
    const cd_device *d = &e->device;
    const double value[CD_N_IDENTITY] = {d->cores, d->simd_bits, d->l1_kb,
                                         d->l2_kb, d->l3_kb,     d->mem_gb};
    cd_describe_name_entry(e, NULL, &name);
    *out = cd_describe_identity_named(name.says);
    memcpy(out->number, value, sizeof value);
}

/* ---- in a file ---- */
static void put_text(cd_buf *b, const char *key, const char *text) {
    cd_buf_putf(b, "\"%s\":", key);
    cd_buf_put_json_str(b, text, strlen(text));
    cd_buf_puts(b, ",");
}

void cd_describe_identity_put(cd_buf *b, const cd_describe_identity *i) {
    cd_buf_puts(b, "{");
    put_text(b, "says", i->says);
    put_text(b, "maker", i->maker);
    put_text(b, "microarch", i->microarch);
    put_text(b, "isa", i->isa);
    cd_buf_putf(b, "\"family\":%d,\"model\":%d", i->family, i->model);
    for (int k = 0; k < CD_N_IDENTITY; k++)
        if (i->number[k] >= 0) cd_buf_putf(b, ",\"%s\":%.9g", numbers[k].key, i->number[k]);
    cd_buf_puts(b, "}");
}

static cdmpp_status read_text(const cd_json *v, const char *key, char *to, size_t n,
                              cdmpp_err *err) {
    cd_str s;
    CD_TRY(cd_json_need_str(v, key, &s, err));
    (void)snprintf(to, n, "%.*s", (int)(s.n < n ? s.n : n), s.p);
    return CDMPP_OK;
}

static cdmpp_status read_whole(const cd_json *v, const char *key, int *out, cdmpp_err *err) {
    const cd_json *x;
    int64_t k;
    CD_TRY(cd_json_need(v, key, &x, err));
    CD_TRY(cd_err_key(err, cd_json_int(x, -1, 1 << 20, &k, err), key));
    *out = (int)k;
    return CDMPP_OK;
}

cdmpp_status cd_describe_identity_read(const cd_json *v, cd_describe_identity *out,
                                       cdmpp_err *err) {
    *out = cd_describe_identity_named("");
    CD_TRY(read_text(v, "says", out->says, sizeof out->says, err));
    CD_TRY(read_text(v, "maker", out->maker, sizeof out->maker, err));
    CD_TRY(read_text(v, "microarch", out->microarch, sizeof out->microarch, err));
    CD_TRY(read_text(v, "isa", out->isa, sizeof out->isa, err));
    CD_TRY(read_whole(v, "family", &out->family, err));
    CD_TRY(read_whole(v, "model", &out->model, err));
    for (int k = 0; k < CD_N_IDENTITY; k++) {
        if (cd_json_get(v, numbers[k].key))
            CD_TRY(cd_json_need_real(v, numbers[k].key, 0, 1e12, &out->number[k], err));
    }
    return CDMPP_OK;
}

/* ---- compared ---- */
typedef struct {
    char *p;
    size_t n;
} words;

static void add(words *w, const char *what, const char *file, const char *here) {
    const size_t at = strlen(w->p);
    (void)snprintf(w->p + at, w->n - at, "%s%s %s (here %s)", at ? ", " : "", what,
                   file[0] ? file : "unknown", here[0] ? here : "unknown");
}

/* "zen3", where the maker's numbers are listed; else, and where two kinds are listed under one
 * name, these numbers. */
static void kind_of(const cd_describe_identity *i, bool full, char out[96]) {
    if (i->microarch[0] && !full) (void)snprintf(out, 96, "%s", i->microarch);
    else if (!i->maker[0] && i->family < 0) out[0] = 0;
    else
        (void)snprintf(out, 96, "%s%s%s family %d model %d", i->microarch,
                       i->microarch[0] ? ", " : "", i->maker, i->family, i->model);
}

static void number_text(double v, char out[32]) {
    out[0] = 0;
    if (v >= 0) (void)snprintf(out, 32, "%.6g", v);
}

static bool alike(int k, double a, double b) {
    if (a < 0 && b < 0) return true;
    if (a < 0 || b < 0) return !numbers[k].needed;
    return k == CD_IDENTITY_MEMORY_GB ? fabs(a - b) <= memory_alike * fmax(a, b) : a == b;
}

bool cd_describe_identity_differs(const cd_describe_identity *file,
                                  const cd_describe_identity *here, char out[CD_DESCRIBE_DIFFERS]) {
    words w = {out, CD_DESCRIBE_DIFFERS};
    char a[96], b[96], x[32], y[32];
    out[0] = 0;
    if (strcmp(file->says, here->says) != 0) add(&w, "name", file->says, here->says);
    if (strcmp(file->maker, here->maker) != 0 || file->family != here->family ||
        file->model != here->model) {
        const bool full = !strcmp(file->microarch, here->microarch);
        kind_of(file, full, a);
        kind_of(here, full, b);
        add(&w, "microarchitecture", a, b);
    }
    if (strcmp(file->isa, here->isa) != 0) add(&w, "instruction set", file->isa, here->isa);
    for (int k = 0; k < CD_N_IDENTITY; k++) {
        if (alike(k, file->number[k], here->number[k])) continue;
        number_text(file->number[k], x);
        number_text(here->number[k], y);
        add(&w, numbers[k].name, x, y);
    }
    return out[0] != 0;
}

/* Asks a GPU's driver in a process of its own. A driver that was once started does not survive a
 * fork, and who measures forks later; a driver that crashes or hangs costs an answer, and not the
 * command. */

enum { LIMIT_MS = 30 * 1000, MOST_GPUS = 16 };

typedef struct answer {
    cdmpp_status st;
    cdmpp_err err;
    cd_describe_entry entry; /* its name points into the other process */
} answer;

/* What drivers say on standard output and error is not the command's. */
static _Noreturn void child(const char *backend, const char *gpu, int fd, answer *a) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) (void)dup2(nowhere, 1), (void)dup2(nowhere, 2);
    a->st = cd_describe_gpu(backend, gpu, &a->entry, &a->err);
    for (size_t n = 0; n < sizeof *a;) {
        const ssize_t k = write(fd, (const char *)a + n, sizeof *a - n);
        if (k < 0 && errno != EINTR) break;
        if (k > 0) n += (size_t)k;
    }
    _exit(0);
}

/* All of the answer, or false: the other process is gone, or it takes too long. */
static bool receive(int fd, answer *a) {
    for (size_t n = 0; n < sizeof *a;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const int ready = poll(&p, 1, LIMIT_MS);
        if (ready < 0 && errno == EINTR) continue;
        const ssize_t k = ready > 0 ? read(fd, (char *)a + n, sizeof *a - n) : 0;
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) return false;
        n += (size_t)k;
    }
    return true;
}

static cdmpp_status ask_apart(const char *backend, const char *gpu, answer *a, cdmpp_err *err) {
    int fd[2], status;
    if (pipe(fd)) return CD_FAIL(err, EIO, "no pipe: %s", strerror(errno));
    const pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        child(backend, gpu, fd[1], a);
    }
    close(fd[1]);
    const bool all = pid > 0 && receive(fd[0], a);
    close(fd[0]);
    if (pid < 0) return CD_FAIL(err, EIO, "no process: %s", strerror(errno));
    if (!all) kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return all ? CDMPP_OK : CD_FAIL(err, EBACKEND, "the driver of %s gives no answer", backend);
}

cdmpp_status cd_describe_gpu_apart(const char *backend, const char *gpu, cd_describe_entry *out,
                                   cdmpp_err *err) {
    answer *a = cd_mem_zalloc(1, sizeof *a);
    if (!a) return CD_FAIL(err, ENOMEM, "a device");
    cdmpp_status st = ask_apart(backend, gpu, a, err);
    if (!st && (st = a->st) && err) *err = a->err;
    if (!st) {
        *out = a->entry;
        out->device.name = out->name;
    }
    cd_mem_free(a);
    return st;
}

/* Of all of them it is the first one in most cases. */
bool cd_describe_gpu_is_here(const char *backend, const char *gpu, const cd_describe_identity *file,
                             char differs[CD_DESCRIBE_DIFFERS]) {
    char name[16] = "", how[CD_DESCRIBE_DIFFERS];
    cd_describe_entry e;
    differs[0] = 0;
    for (int k = 0; k < MOST_GPUS && !cd_describe_gpu_apart(backend, gpu ? gpu : name, &e, NULL);
         k++) {
        cd_describe_identity here;
        cd_describe_identity_gpu(&e, &here);
        if (!cd_describe_identity_differs(file, &here, how)) return true;
        if (!differs[0] || !strcmp(file->says, here.says)) memcpy(differs, how, sizeof how);
        if (gpu) return false;
        (void)snprintf(name, sizeof name, "%d", k);
    }
    return false;
}
