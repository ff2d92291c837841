/* describe -- a device as an entry of devices.yaml, from what the machine reports and what can be
 * measured. The door of profiler/describe, for cdmpp-profile --describe-device and for the names of
 * processors in a store.
 *
 *   hwloc, /proc/cpuinfo, /sys ┐
 *   OpenCL, CUDA (dlopen) ─────┼─> cd_describe_entry { cd_device, a note for each number } ──> YAML
 *   loops: clock, FMA, triad ──┘
 *
 *   (1) keys, units and conventions are those of features/device/device_keys.def;
 *   (2) what is not reported stays absent: nothing is guessed from a name;
 *   (3) a number that was measured, or that is not quite what the key means, has a note behind it;
 *   (4) what is printed is read back by cd_device_table_load. */
#ifndef CD_DESCRIBE_H
#define CD_DESCRIBE_H
#include "features/device/device.h"
#include "features/task/task.h"
#include "profiler/describe/describe_identity.h"
#include "profiler/host/host.h"

enum {
#define X(key, low, high, unit, meaning) CD_DESCRIBE_KEY_##key,
#include "features/device/device_keys.def"
    CD_N_DESCRIBE_KEY
};

typedef struct cd_describe_entry {
    cd_device device;         /* name points into `name` */
    char name[64], alias[64]; /* "amd-epyc-9654"; as the driver says, "" when it adds nothing */
    char head[256];           /* comment above the entry, lines parted by '\n' */
    char note[CD_N_DESCRIBE_KEY][96]; /* by key; "" for none */
    char probed[192]; /* what of the descriptor is not known and why; "" for nothing */
    bool measured;
    cd_noise noise; /* of what was measured */
} cd_describe_entry;

/* An entry in which nothing is known. */
void cd_describe_entry_init(cd_describe_entry *d, cd_device_kind kind);
/* Set a number, when it is in the range of its key; else it stays unknown. `note` may be NULL. */
void cd_describe_entry_set(cd_describe_entry *d, int key, double value, const char *note);
/* "Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz" -> name "intel-xeon-gold-6130" and the alias. */
void cd_describe_entry_set_name(cd_describe_entry *d, const char *as_driver_says);
/* Append the entry as YAML; out of memory: out->oom. */
void cd_describe_entry_put_yaml(cd_buf *out, const cd_describe_entry *d);

/* This machine's processor. `root` stands before /proc and /sys ("": this machine); hwloc heeds
 * HWLOC_XMLFILE and HWLOC_SYNTHETIC, which describe another machine: then, and with a root, nothing
 * can be measured. Errors: EBACKEND (no topology, or measuring another machine), ENOMEM. */
cdmpp_status cd_describe_cpu(const char *root, bool measure, cd_describe_entry *out,
                             cdmpp_err *err);
/* The same of the cores that this thread was put on (cd_core_type_begin): their number, clock and
 * caches, and measuring on them. The name ends in `core`; NULL: all cores. */
cdmpp_status cd_describe_cores(const char *root, bool measure, const char *core,
                               cd_describe_entry *out, cdmpp_err *err);
/* The entry of this processor for code with vectors of so many bytes, where its own are longer:
 * `lanes`, where they are known, are measured again with such vectors (50 ms), and unknown where
 * there is no loop for them. */
void cd_describe_narrow(cd_describe_entry *d, uint32_t vector_bytes);
/* Peak of this core in fp32 multiply-adds a clock, its clock in MHz; below 0: not measured on this
 * kind of processor. About 50 ms. noise NULL: nobody asks. */
void cd_describe_core_speed(int simd_bits, double *fma_per_clock, double *clock_mhz,
                            cd_noise *noise);
/* One call of the loop of multiply-adds for vectors of so many bits; how many it did, 0: there is
 * no loop for this kind of processor. */
double cd_describe_fma(int simd_bits);
/* The hardware descriptor of one processor of this machine (features/device/device_probes.def), by
 * timed probes and, where the system lets a process count events, by counters: some 0.5 s. What is
 * not to be had stays unknown. Errors: ENOMEM, EBACKEND. */
cdmpp_status cd_describe_probes(cd_describe_entry *d, cdmpp_err *err);
/* Descriptors of all devices of these measure records, as entries of YAML with what `devices`
 * (NULL: nothing) says of them: speeds over the mean of the devices, at programs (task and steps)
 * that all of them have run; where these are fewer than 16, at their best records of tasks that all
 * have run. `l` hears of lines that cannot be used. Errors: ENODATA (fewer than two devices; they
 * share neither 16 programs nor 16 tasks), ERANGE (more than 32 devices), EIO, ENOMEM. */
struct cd_record_listener;
cdmpp_status cd_describe_records(const cd_task_registry *tasks, const char *const *path, size_t n,
                                 const cd_device_table *devices, const struct cd_record_listener *l,
                                 cd_buf *out, cdmpp_err *err);
/* a[i] = b[i] + s * c[i] over arrays of `bytes` each with `threads` threads, bytes moved by the
 * text of the loop (24 for 3 doubles), the best of several. noise NULL: nobody asks. Errors:
 * ENOMEM, EBACKEND. */
cdmpp_status cd_describe_triad(size_t bytes, int threads, double *gb_s, cd_noise *noise,
                               cdmpp_err *err);

/* ---- GPUs (describe.c); facts are pure data so that tests can make some up ---- */
typedef struct cd_cuda_facts { /* as the driver reports them; 0: not reported */
    char name[96];
    int cc_major, cc_minor, units, warp, clock_khz, memory_khz, bus_bits, l2_bytes, shared_bytes,
        unit_threads;
    uint64_t memory_bytes;
} cd_cuda_facts;
/* The entry of these facts. */
void cd_describe_cuda_facts(const cd_cuda_facts *f, cd_describe_entry *out);
/* Device by its number, "" is 0. Errors: ERANGE (no number), EBACKEND (no driver, no such
 * device). */
cdmpp_status cd_describe_cuda(const char *number, cd_describe_entry *out, cdmpp_err *err);

typedef struct cd_opencl_facts {
    char name[128];
    bool gpu, local_is_own; /* local memory is one of its own, not part of the global one */
    uint32_t units, clock_mhz, warp;
    uint64_t memory_bytes, cache_bytes, local_bytes;
} cd_opencl_facts;
/* The entry of these facts. */
void cd_describe_opencl_facts(const cd_opencl_facts *f, cd_describe_entry *out);
/* Device by its name (opencl_device.h): "", "1", "pocl:0". Errors: ERANGE, EBACKEND. */
cdmpp_status cd_describe_opencl(const char *name, cd_describe_entry *out, cdmpp_err *err);

/* The one or the other, by the name of the back end ("cuda", "opencl"). */
cdmpp_status cd_describe_gpu(const char *backend, const char *gpu, cd_describe_entry *out,
                             cdmpp_err *err);

/* The same in a process of its own: this one may fork afterwards, which a driver that it has
 * started itself would not survive. Errors: also EBACKEND (the driver crashes, or says nothing for
 * half a minute), EIO (no process), ENOMEM. */
cdmpp_status cd_describe_gpu_apart(const char *backend, const char *gpu, cd_describe_entry *out,
                                   cdmpp_err *err);
/* The rule: a device of OpenCL may be a processor, and that is no GPU. No model of GPUs answers for
 * it, or is corrected for it, that nobody named. */
static inline bool cd_describe_is_gpu(const cd_describe_entry *e) {
    return e->device.kind == CD_DEVICE_GPU;
}
/* Is this device of the back end (gpu NULL: one of them) the one of the file? Asked apart. False:
 * `differs` tells how the device that has its name, else the first one, is another; "": there is
 * none. */
bool cd_describe_gpu_is_here(const char *backend, const char *gpu, const cd_describe_identity *file,
                             char differs[CD_DESCRIBE_DIFFERS]);

/* as the system says; measured too; that also where it is noisy */
typedef enum cd_describe_how {
    CD_DESCRIBE_SAID,
    CD_DESCRIBE_MEASURED,
    CD_DESCRIBE_NOISY
} cd_describe_how;
/* "cpu", "opencl:NAME", "cuda:N" -> YAML; `core` as above, of a processor. Errors: ERANGE (the
 * name; the machine is too noisy to be measured, cd_noise_check), EBACKEND (no such device). */
cdmpp_status cd_describe(const char *device, cd_describe_how how, const char *core, cd_buf *out,
                         cdmpp_err *err);

/* describe_match -- which described device stands for this machine's processor.
 *
 *   /proc/cpuinfo, hwloc ──> microarchitecture ("zen5"), device vector
 *     ──> the device with that name or alias and -cdmpp, else without,
 *         else the one with the nearest vector
 *
 * One core stands for the machine, as measure records of one core do. */

typedef struct cd_describe_match {
    size_t index; /* of the device in `name` */
    /* its name or alias is this machine's; false: only the nearest, what it predicts is out of
     * range */
    bool exact;
    char cpu[96];       /* "AMD EPYC 9654", as the processor says */
    char microarch[24]; /* "zen5"; "" when it is not known */
    /* this machine's own description as a vector: that of its microarchitecture, else what the
     * system says */
    float here[CD_N_DEVICE_COL];
} cd_describe_match;

/* The microarchitecture of an x86 processor by its CPUID family and model: "zen3",
 * "granite-rapids"; NULL: not listed. Source: AMD's and Intel's published family and model
 * numbers. */
const char *cd_describe_microarch(const char *vendor, int family, int model);
/* "zen5" -> "zen5-cdmpp": a core with programs of our own code, where the core's name stands for
 * programs of another compiler. "" stays "". Returns `out`. */
enum { CD_DESCRIBE_OWN = 40 };
const char *cd_describe_own(const char *core, char out[CD_DESCRIBE_OWN]);
/* Is a device of our own code? Of two with equal numbers it stands for another one: what is asked
 * about runs our code most often. */
bool cd_describe_is_own(const char *device);

/* Chooses among name[0 .. n) those CPUs that `devices` describes. `root` stands before /proc ("":
 * this machine; tests give a folder). A device of wider vectors than this processor has is taken
 * only where no other is described. Errors: EMODEL (no described CPU among them), EBACKEND (no
 * topology), ENOMEM. */
cdmpp_status cd_describe_match_host(const char *root, const cd_device_table *devices,
                                    const char *const *name, size_t n, cd_describe_match *out,
                                    cdmpp_err *err);
/* The same of a GPU that is described already: among those that are GPUs. microarch is its back
 * end. Errors: EMODEL (it is no GPU; no described GPU among them). */
cdmpp_status cd_describe_match_gpu(const cd_describe_entry *e, const char *backend,
                                   const cd_device_table *devices, const char *const *name,
                                   size_t n, cd_describe_match *out, cdmpp_err *err);

/* describe_name -- what measure records call the device of this machine that they were measured on.
 *
 *   target "llvm" ───────────> /proc/cpuinfo ─┐
 *   target "cuda", "opencl" ─> the driver ────┴─> name, alias, microarchitecture
 *                                                   ├─> name of the description ("zen4")
 *                                                   └─> else a name made of it ("amd-epyc-zen3")
 *
 * A log without a name is of an unknown device, and data sets and models made of it too. A namer
 * looks once for each kind of target and says in one line what it found. One thread at a time. */

struct cd_log;
typedef struct cd_describe_name {
    char name[96];  /* "zen4", "amd-epyc-zen3": one word */
    char says[128]; /* what processor or driver call themselves */
    bool described; /* it is a name of `devices` */
} cd_describe_name;

/* The processor's name. A description with wider vectors than the processor's is not its own.
 * `root` stands before /proc ("": this machine); devices NULL: none. Errors: EBACKEND (no
 * topology), ENOMEM. */
cdmpp_status cd_describe_name_cpu(const char *root, const cd_device_table *devices,
                                  cd_describe_name *out, cdmpp_err *err);
/* The same of a device that is described already. */
void cd_describe_name_entry(const cd_describe_entry *e, const cd_device_table *devices,
                            cd_describe_name *out);

/* Zeroed but for log (NULL: silent), gpu and core. */
typedef struct cd_describe_namer {
    struct cd_log *log;
    const char *gpu; /* as above; NULL: the first */
    /* the type of cores that measure (CD_CORE_TYPES): "zen5-little" is another device than "zen5";
     * NULL: any */
    const char *core;
    cd_describe_name of[3]; /* CPU, CUDA, OpenCL */
    bool asked[3];
} cd_describe_namer;
/* For cd_record_maker.device, with a namer as `ctx`: the name of what runs this target's programs
 * here; NULL: it has none. */
CD_KEEP const char *cd_describe_namer_ask(void *ctx, cd_str target);
#endif
