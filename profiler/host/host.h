/* The door of profiler/host: other rooms include this header and no other of the room.
 *
 * This machine, for everything that measures on it: its description and clocks (host_info), the
 * instructions it has (isa), which processors a thread uses (affinity), whether it is quiet
 * (noise_probe), what others leave of it (host_load), hardware counters, cache flushing, and
 * running other programs. */
#ifndef CD_PROFILER_HOST_DOOR_H
#define CD_PROFILER_HOST_DOOR_H
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/text/text.h"
#include "profiler/host/host_load.h"
#include "profiler/host/noise.h"

/* affinity -- which processors a thread uses: measured programs the last ones, everything else the
 * others.
 *
 * All of it is about the calling thread and the threads and processes that it begins from now on.
 * cd_affinity_last and cd_affinity_set do nothing where there are not more than n processors. Any
 * thread. */

/* Processors that this thread may use. */
int cd_affinity_count(void);
/* Stay on the last n; false: all stay allowed. */
bool cd_affinity_last(int n);
/* Stay on one: number k, from 0, of the last n; false: there are not n, all stay allowed. */
bool cd_affinity_one(unsigned n, unsigned k);
/* Numbers of the last n processors that this thread may use into core (n), in ascending order; how
 * many there are. */
unsigned cd_affinity_last_cores(unsigned n, int *core);
/* Stay on processor number `cpu` of the machine, whatever was allowed; false: the system refuses
 * it. */
bool cd_affinity_at(int cpu);
/* What a thread may use, to restore it later or to exclude the last n. */
typedef struct cd_affinity {
    unsigned long mask[16]; /* as cpu_set_t has it */
} cd_affinity;
/* What this thread may use now. */
void cd_affinity_get(cd_affinity *a);
/* Use `all` but its last n processors; n 0: all of them. */
void cd_affinity_set(const cd_affinity *all, int but_last);

/* denormals -- numbers below the least normal one count as 0 for this thread and those that it
 * begins, where the processor can. Arithmetic with them takes a hundred times as long; attention
 * with random weights makes many, with trained ones few: without this, times of a network would be
 * of its weights. */
void cd_denormals_are_zero(void);

/* core_type -- which processors are of which type, and measuring on those of one type alone.
 *
 *   /sys/devices/cpu_core, cpu_atom            Intel's hybrids ┐
 *   /sys/devices/system/cpu/cpuN/cpu_capacity  ARM             ├─> big: as fast as the fastest,
 *   .../cpufreq/cpuinfo_max_freq               else            ┘   little: as slow as the slowest
 *   .../topology/thread_siblings_list ──> smt-idle: one processor of each core, its siblings are
 *                                                   not used
 *                                         smt-busy: the same, its siblings compute meanwhile
 *
 * Speeds within a tenth are alike. A type that the machine does not have is an error that says what
 * there is. */

#define CD_CORE_TYPES "big|little|smt-idle|smt-busy"
typedef enum cd_core_type {
    CD_CORE_BIG,
    CD_CORE_LITTLE,
    CD_CORE_SMT_IDLE,
    CD_CORE_SMT_BUSY
} cd_core_type;
typedef struct cd_core_set {
    cd_affinity cpu, sibling; /* those of the type; of smt-*: the others of their cores */
    int n;                    /* of cpu */
} cd_core_set;
const char *cd_core_type_name(cd_core_type t);
/* Those of `allowed`. `root` stands before /sys ("": this machine; tests give a folder). Errors:
 * EBACKEND (there is none), ENOMEM. */
cdmpp_status cd_core_type_find(const char *root, const cd_affinity *allowed, cd_core_type t,
                               cd_core_set *out, cdmpp_err *err);

typedef struct cd_core_hold {
    cd_affinity before;
    bool held;
    pid_t *pid; /* (n) what keeps siblings busy */
    size_t n;
} cd_core_hold;
/* This thread, and all that it begins, stays on processors of the type. Before anything that has
 * threads: it may fork. End it after an error too. Errors: EBACKEND, EIO, ENOMEM. */
cdmpp_status cd_core_type_begin(const char *root, cd_core_type t, cd_core_hold *h, cdmpp_err *err);
void cd_core_type_end(cd_core_hold *h); /* zeroed is fine */

/* cache_flush -- replaces what a processor's caches hold.
 *
 *   CD_WIPE_CORE   of the caches that a core has alone: data stay in the shared one, as those of an
 *                  operator that ran a while ago do in a network
 *   CD_WIPE_ALL    of the last one too, as far as its size is known
 *
 * A zeroed cd_cache_flush is ready. One thread at a time; it flushes the caches of the core that it
 * runs on. */

typedef enum cd_cache_flush_what { CD_WIPE_CORE, CD_WIPE_ALL } cd_cache_flush_what;
typedef struct cd_cache_flush {
    unsigned char *p; /* (n) NULL: not used yet */
    size_t n;
    unsigned sum; /* keeps what is read */
} cd_cache_flush;

/* Flush them. The first call allocates. Errors: ENOMEM. */
cdmpp_status cd_cache_flush_caches(cd_cache_flush *w, cd_cache_flush_what what, cdmpp_err *err);
/* Read n bytes of other data: what is left of the caches is what a program has beside one that uses
 * so much. Errors: ENOMEM. */
cdmpp_status cd_cache_flush_bytes(cd_cache_flush *w, size_t n, cdmpp_err *err);
void cd_cache_flush_free(cd_cache_flush *w); /* zeroed is fine */

/* cpuinfo -- the text that the system has of its processors, for everything that asks which
 * processor this is.
 *
 *   /proc/cpuinfo ─────────────────────────────────────────────────> lines
 *   CDMPP_TEST_CPU=FILE ── without flags that /proc/cpuinfo lacks ─> lines, in their place
 *
 * CDMPP_TEST_CPU is for tests alone: docs/internals/testing.md. A simulated processor is a
 * description: it takes instruction sets away (cd_isa_here) and never adds one, so that what is
 * compiled and run here does run. Where CDMPP_TEST_CPU_TRACE names a file, it is created when
 * anybody asks: a test that leaves none does not depend on the processor. No state, any thread. */

/* The lines, to be closed; NULL: there are none. `root` is put before /proc: "" for this machine, a
 * folder in tests, where nothing is simulated. */
FILE *cd_cpuinfo_open(const char *root);
/* Is `word` one of the flags (x86) or features (Arm) of these lines? */
bool cd_cpuinfo_has(const char *lines, const char *word);

/* host_info -- the machine that a measurement is made on, and what makes times on it unsteady.
 *
 *   /proc/cpuinfo  /proc/loadavg  /proc/stat  /sys/devices/system/cpu  /sys/fs/cgroup
 *     -> cd_host_info
 *
 * Everything that cannot be read is unknown: "" or a negative number, never an error. `root` is
 * put before each path: "" for this machine, a folder in tests. No state, any thread. */

typedef struct cd_host_info {
    char cpu[96], kernel[64];
    char governor[32];                     /* of the first processor, "performance" */
    int n_cpu, n_allowed;                  /* online; those that this process may use */
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* of one cache */
    double mhz, max_mhz;                   /* now; the largest that the processor reports */
    int turbo;                             /* 0, 1, -1 */
    double load;                           /* of the last minute */
    double cgroup_cpus;                    /* how many the group may use; 0: all */
    int64_t memory_bytes, available_bytes;
    bool virtual_machine;
} cd_host_info;

/* Processor time since the start of the machine, in ticks: take it before and after. */
typedef struct cd_host_time {
    int64_t total, idle, steal; /* -1: unknown */
} cd_host_time;

/* Never fails: what cannot be read is unknown. */
void cd_host_info_read(const char *root, cd_host_info *out);
/* As above, of the processors' time. */
void cd_host_time_read(const char *root, cd_host_time *out);
/* The first line `name` of /proc/cpuinfo: "vendor_id", "cpu family". False: there is none, `to` (n
 * bytes) is "". */
bool cd_host_info_field(const char *root, const char *name, char *to, size_t n);
/* One JSON object; unknown members are left out. */
void cd_host_info_json(cd_buf *b, const cd_host_info *h);
/* What makes times of `threads` threads unsteady here, "; " between; nothing: "". */
void cd_host_info_warnings(cd_buf *b, const cd_host_info *h, int threads);

/* host_gpus -- GPUs that a driver reports, by small files of it: NVIDIA's alone
 * (/proc/driver/nvidia/gpus). Root as above. No state, any thread. */
typedef struct cd_host_gpu {
    char name[96]; /* "NVIDIA H200" */
} cd_host_gpu;
/* Into out[0 .. cap), in the order of their places on the bus; how many. None: there is no such
 * driver. */
size_t cd_host_gpus_read(const char *root, cd_host_gpu *out, size_t cap);

/* host_energy -- joules that the processors' packages took, all programs on them together.
 *
 * Root as above. A counter that passed its end once is counted right, one that did so twice is not:
 * at 100 W that takes most of an hour. No state, any thread. */
enum { CD_HOST_ENERGY_PACKAGES = 8 };
typedef struct cd_host_energy {
    unsigned n; /* packages; 0: no counter that this process may read */
    uint64_t at_uj[CD_HOST_ENERGY_PACKAGES];
} cd_host_energy;
void cd_host_energy_begin(const char *root, cd_host_energy *m);
/* Joules since then; NaN: not known. */
double cd_host_energy_since(const char *root, const cd_host_energy *m);

/* isa -- which instructions a program may use, as flags of a compiler.
 *
 *   "avx2"                          -> -march=x86-64-v3
 *   "" + "llvm -mcpu=core-avx2"     -> -march=haswell (LLVM's name -> GCC's)
 *   "" + "llvm"                     -> -march=native; of a simulated processor: by its instructions
 *
 * No state, any thread. */

#define CD_ISAS "native|avx512|avx2|sse2|aarch64|armv7"
/* armv7: 32 bits, with NEON */
typedef enum cd_isa {
    CD_ISA_NATIVE,
    CD_ISA_AVX512,
    CD_ISA_AVX2,
    CD_ISA_SSE2,
    CD_ISA_AARCH64,
    CD_ISA_ARMV7
} cd_isa;
/* Of a family of processors that is not x86-64: its programs run there alone. */
static inline bool cd_isa_is_arm(cd_isa isa) {
    return isa == CD_ISA_AARCH64 || isa == CD_ISA_ARMV7;
}

typedef struct cd_isa_choice {
    cd_isa isa;
    char march[48]; /* "-march=haswell"; "" for aarch64 */
    bool runs;      /* on this processor */
} cd_isa_choice;

/* The flags of a program for this instruction set. isa NULL or "": by the target. Errors: EUSAGE
 * (none of CD_ISAS, all listed), EBACKEND (a program of that target cannot run here, by the target
 * alone; a name of -mcpu that is not known). */
cdmpp_status cd_isa_choose(const char *isa, const char *target, cd_isa_choice *out, cdmpp_err *err);
/* The best that this processor has, and the simulated one too, where there is one. */
cd_isa cd_isa_here(void);
/* Bytes of the longest vector that C code for it may use: 16, 32 or 64. What cd_isa_choose refuses:
 * by -mcpu of the target. */
uint32_t cd_isa_vector_bytes(const char *isa, const char *target);
/* `target` with -mcpu= of these instructions, where it names neither -mcpu= nor -mattr= and is a
 * program of an x86-64 processor; else itself. isa NULL or "": those that are here, whoever's model
 * stands in. For targets that no user wrote. In the arena; NULL: no memory. */
CD_KEEP const char *cd_isa_target_of(cd_arena *a, const char *isa, const char *target);
/* One that was made of a device's description, for programs that run here: where this processor
 * lacks its instructions, with those that are here. */
CD_KEEP const char *cd_isa_target_runs(cd_arena *a, const char *target);

/* noise_probe -- does this processor run as fast as it can, and is it ours alone?
 *
 *   a loop of known work      quiet: best_s     other load, less frequency: longer
 *
 * The loop adds and multiplies in registers, as much at once as the core can. Its time depends on
 * the frequency and on other programs on this core, on nothing else. `best_s` is the fastest loop
 * ever seen; it is passed from process to process. One thread. */

#define CD_QUIET_LIMIT 1.05 /* a slower loop than this means that the machine is not quiet */

typedef struct cd_noise_probe {
    double best_s; /* of one loop; 0: not known yet */
} cd_noise_probe;

/* Seconds of one loop. */
double cd_noise_probe_loop(void);
/* The fastest of some milliseconds of loops, if that is faster than best_s. */
void cd_noise_probe_calibrate(cd_noise_probe *q);
/* The middle one of five loops over best_s: about 1 where it is quiet. Takes half a millisecond. */
double cd_noise_probe_ratio(cd_noise_probe *q);

/* Time in which this process was ready but did not run. */
typedef struct cd_noise_probe_mark {
    double wall_s, cpu_s;
    long switches;
} cd_noise_probe_mark;
/* Mark this moment. */
void cd_noise_probe_begin(cd_noise_probe_mark *m);
/* Was more than `share` of the time since then lost? With several threads: was any of them taken
 * off its processor? */
bool cd_noise_probe_lost(const cd_noise_probe_mark *m, int threads, double share);

/* perf_counters -- cycles, instructions and misses of this process, where the system allows it.
 *
 * Absence is normal (containers, virtual machines, perf_event_paranoid): every figure is then
 * negative. One thread opens, starts and stops; threads begun in between are counted too. */

enum {
    CD_PERF_CYCLES,
    CD_PERF_INSTRUCTIONS,
    CD_PERF_CACHE_MISSES,
    CD_PERF_L1_MISSES,
    CD_PERF_BRANCH_MISSES,
    CD_PERF_TLB_MISSES,
    CD_PERF_COUNT
};
typedef struct cd_perf_counters {
    int fd[CD_PERF_COUNT]; /* -1: not allowed here */
} cd_perf_counters;

/* Open and close the counters; count from now on. None of them fails. */
void cd_perf_counters_open(cd_perf_counters *p);
void cd_perf_counters_close(cd_perf_counters *p);
void cd_perf_counters_start(cd_perf_counters *p);
/* Since start; -1: not counted. */
void cd_perf_counters_stop(cd_perf_counters *p, double value[CD_PERF_COUNT]);

/* process_time -- processor time of other processes: seconds that process `pid` used so far, with
 * all of its children that have ended and were waited for; in
 * hundredths. 0: there is no such process. */
double cd_process_time_of(pid_t pid);
/* The same of this process. */
double cd_process_time_own(void);

/* subprocess -- runs other programs to their end: output caught, time limited, none left behind.
 *
 *   job[0] job[1] job[2] ...      at most `width` run at a time, begun in order
 *     argv, input -> stdin
 *     stdout + stderr -> text     exit code, or what ended it
 *
 *   (1) every program leads a process group of its own: ^C at the terminal does not reach it,
 *       and with it end all that it has started;
 *   (2) a program that is over its limit, or whose run is stopped, gets SIGKILL, its group too;
 *   (3) text beyond CD_SPAWN_TEXT bytes is read and dropped.
 * Callers from several threads do not disturb each other. */

#define CD_SPAWN_TEXT ((size_t)64 << 10)

typedef enum cd_subprocess_end {
    CD_SPAWN_EXITED,   /* code: exit status */
    CD_SPAWN_SIGNALED, /* code: signal */
    CD_SPAWN_TIMED_OUT,
    CD_SPAWN_NOT_BEGUN /* code: errno; ENOENT: no such program */
} cd_subprocess_end;

typedef struct cd_subprocess {
    const char *const *argv; /* in: searched in PATH, NULL ends */
    const char *input;       /* in: its standard input, n_input bytes; NULL: none */
    size_t n_input;
    double limit_s;        /* in: 0: none */
    cd_subprocess_end end; /* out */
    int code;
    double wall_s;
    cd_buf text; /* out, freed by the caller */
} cd_subprocess;

/* Run n jobs. A job that fails is no error: see its `end`. Errors: EINTERRUPTED (*stop was set;
 * what ran was killed), EIO (no pipe, no process), ENOMEM. */
cdmpp_status cd_subprocess_run(cd_subprocess *job, size_t n, int width,
                               const volatile sig_atomic_t *stop, cdmpp_err *err);
/* "exit status 1", "killed by signal 9", "no such program" ... into buf; returns buf. */
const char *cd_subprocess_say(const cd_subprocess *s, char *buf, size_t n);
#endif
