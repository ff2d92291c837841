/* The door of profiler/backend: other rooms include this header and no other of the room.
 *
 * Devices that compile, load, run and time generated programs: this machine's processor (cpu),
 * OpenCL devices, NVIDIA's GPUs (cuda). A back end is a table of functions (cd_backend_kind), found
 * by its name or by a target string. Rooms that need more than the table, as the executors of
 * networks do, use what is said below of one kind. */
#ifndef CD_BACKEND_H
#define CD_BACKEND_H
#include <signal.h>

#include "profiler/backend/cuda_api.h"
#include "profiler/backend/opencl_api.h"
#include "profiler/codegen/code/code.h"

/* backend_kind -- what a back end must provide: the table of functions, and a program on its way
 * through it.
 *
 *   open -> build(batch of cd_codegen_code) -> { load -> run, run, ... -> read -> unload } -> close
 *
 * A back end is one const cd_backend_kind: backend.c, backend_opencl.c, backend_cuda.c. To add
 * one, write such a file with its own struct cd_backend and struct cd_loaded (they are opaque
 * outside), and add the table to the list in backend.c; if it needs another source language, add a
 * cd_dialect (codegen_code.h) and its generator.
 *
 *   (1) build() takes many programs at once: a program that fails has its own status and error
 *       text, and the call succeeds;
 *   (2) a loaded program owns device memory for its buffers. load() fills it with the given
 *       content, or where `content` or its element is NULL with the numbers of cd_tensor_fill
 *       (tensor_fill.h): equal on all back ends, so that results can be compared;
 *   (3) run() executes all launches in order, `times` times, and gives the seconds of all together
 *       by the best clock of the device;
 *   (4) a back end does not decide how often to measure (profiler/measure/measure.h) and does not
 *       protect its caller: a program may crash or hang. Programs of unknown quality are run in a
 *       child process (profiler/measure).
 * A back end belongs to one thread. */

typedef struct cd_backend cd_backend; /* an open device */
typedef struct cd_loaded cd_loaded;   /* a program ready to run */

typedef struct cd_build {
    const cd_codegen_code *code; /* in; must outlive what is loaded from it */
    cdmpp_status status;         /* out: OK, EUNSUPPORTED, EBACKEND (compiler), EIO ... */
    cdmpp_err err;
    /* out: CPU: const char * path of the shared object, owned by the compiler; GPU: bytes of the
     * heap, the caller frees them */
    void *object;
    size_t object_bytes;
    bool cached; /* out: found, not compiled */
    /* out: TVM's number: 0 none, 2 the host's compiler, 3 the device's, 6 it took too long */
    int error_no;
} cd_build;

/* Every function but identity, open_compiler and on_host must be there. */
typedef struct cd_backend_kind {
    const char *name;   /* "cpu", "opencl", "cuda" */
    cd_dialect dialect; /* of the programs that it builds */
    /* device: "" (the default one), "0", "pocl:0" ... as the back end documents; target: a target
     * string, for its options. It must be cheap: the compiler is opened by the first build, since a
     * process that only loads needs none. Errors: EBACKEND (no library, no device), ERANGE (name),
     * ENOMEM. */
    cdmpp_status (*open)(const char *device, const char *target, CD_GIVE cd_backend **out,
                         cdmpp_err *err);
    /* The same for a process that only asks identity and builds: no memory of the device is taken.
     * NULL: open. */
    cdmpp_status (*open_compiler)(const char *device, const char *target, CD_GIVE cd_backend **out,
                                  cdmpp_err *err);
    void (*close)(CD_TAKE cd_backend *b); /* after all of its programs are unloaded; NULL is fine */
    /* Do programs run on this machine's processors, so that other processes disturb them? NULL:
     * no. */
    bool (*on_host)(const cd_backend *b);
    /* Appends what a compiled program depends on besides its text: device, driver, compiler. The
     * caller uses it as a part of the key under which it keeps objects for other processes
     * (object_binary.h). NULL: build has a cache of its own. */
    void (*identity)(cd_backend *b, cd_buf *out);
    /* Compile n programs, with at most `jobs` compilers at a time. The result is an error only if
     * the whole batch failed (no compiler, disk full, interrupted, no memory); each program has its
     * own status. */
    cdmpp_status (*build)(cd_backend *b, cd_build *p, size_t n, int jobs, cdmpp_err *err);
    /* A program ready to run; content: NULL, or (n_buffer) pointers to the whole content of a
     * buffer or NULL. Errors: EREJECTED (more threads or memory than the device has), EBACKEND,
     * ENOMEM. */
    cdmpp_status (*load)(cd_backend *b, const cd_build *p, const void *const *content,
                         CD_GIVE cd_loaded **out, cdmpp_err *err);
    /* `times` executions in a row (0: 1); *seconds: all of them together. Errors: EBACKEND,
     * EINVALID (a buffer was overrun). */
    cdmpp_status (*run)(cd_loaded *l, unsigned times, double *seconds, cdmpp_err *err);
    /* Copy the first `bytes` of buffer k to the host. Errors: ERANGE. */
    cdmpp_status (*read)(cd_loaded *l, uint32_t k, void *to, size_t bytes, cdmpp_err *err);
    void (*unload)(CD_TAKE cd_loaded *l); /* NULL is fine */
    /* Evict the device's caches, by writing memory larger than they are: the next run is a cold
     * one. */
    cdmpp_status (*flush)(cd_backend *b, cdmpp_err *err);
} cd_backend_kind;

/* A back end by name; NULL for an unknown one. */
const cd_backend_kind *cd_backend_find(const char *name);
/* A back end by a target string's kind: llvm, c -> cpu; opencl; cuda. NULL: none. */
const cd_backend_kind *cd_backend_for_target(cd_str target);
/* A target that the user names for programs that are estimated: one with a back end, or rocm, which
 * records of AMD's GPUs have. Errors: EUSAGE, with those that there are. */
cdmpp_status cd_backend_check_target(const char *target, cdmpp_err *err);
/* "cpu|opencl|cuda" */
const char *cd_backend_names(void);

/* compiler -- C programs become shared objects, many in one run of the compiler.
 *
 *   cd_build[0..n)  ->  not in the cache  ->  units of up to CD_COMPILER_UNIT programs  ->  cc | cc
 *     | ...
 *                       (object_cache.h)         prelude + text + text + ...
 *
 *   (1) a unit that fails is halved until the failing programs are alone: a failure, a crash or a
 *       time-out of the compiler belongs to one program, with the first error line in build.err;
 *   (2) a full disk is no program's fault: it ends the batch with EIO;
 *   (3) equal texts are compiled once; the key of the cache has the compiler's version, the
 *       flags, for "native" the processor, the prelude and the text.
 *
 * The instruction set is an option (profiler/host/host.h), else the target's -mcpu, else this
 * machine's own. On another machine aarch64 and armv7 give objects that are not linked and cannot
 * be run. One thread at a time. */

#define CD_COMPILER_UNIT 8

typedef struct cd_compiler_options {
    /* "gcc", "ccache gcc"; NULL: $CC, else cc (of aarch64 and armv7 a cross compiler) */
    const char *command;
    const char *flags;    /* more flags, after ours; NULL: none */
    const char *isa;      /* one of CD_ISAS (isa.h); NULL, "": by the target */
    const char *target;   /* "llvm -mcpu=core-avx2"; NULL: "" */
    const char *cache;    /* folder; NULL: the user's; "": none */
    uint64_t cache_bytes; /* 0: CD_OBJCACHE_BYTES */
    double limit_s;       /* for one program; 0: 30 */
    const volatile sig_atomic_t *stop;
} cd_compiler_options;

typedef struct cd_compiler cd_compiler;

/* Finds the compiler, asks it for its version, opens the cache. Errors: EUSAGE (isa), EBACKEND (no
 * compiler; an instruction set that this processor lacks), EIO (no folder to work in),
 * EINTERRUPTED, ENOMEM. */
cdmpp_status cd_compiler_open(const cd_compiler_options *o, CD_GIVE cd_compiler **out,
                              cdmpp_err *err);
/* No compilation lasts longer than until this time of cd_clock_wall(); INFINITY: no such time. */
void cd_compiler_until(cd_compiler *c, double until_s);
void cd_compiler_close(CD_TAKE cd_compiler *c); /* NULL is fine; the objects are gone afterwards */
/* Can objects be run on this machine? */
bool cd_compiler_runs(const cd_compiler *c);
/* Version and flags: "gcc 12.2.0: -O2 -march=native ...". */
CD_KEEP const char *cd_compiler_text(const cd_compiler *c);
/* As cd_backend_kind.build; object: const char * path, owned by the compiler. */
cdmpp_status cd_compiler_build(cd_compiler *c, cd_build *p, size_t n, int jobs, cdmpp_err *err);

/* backend_cpu -- compiled C on this machine's processor.
 *
 *   device: an instruction set (profiler/host/host.h), "": by the target;  target: -mcpu,
 *     -num-cores (threads)
 *
 *   | guard | buffer 0 | guard | buffer 1 | guard | ...     one mapping, each at a multiple of 64
 *
 *   (1) buffers begin at different places of their pages: no two share all their cache sets;
 *   (2) a guard that has changed is an error of run(): the program writes where it must not;
 *   (3) OpenMP has as many threads as -num-cores says, else as processors are allowed; programs of
 *       several open back ends keep their own numbers;
 *   (4) huge pages where the system gives them.
 * libgomp does not survive a fork: a process that has run a parallel program must not fork any
 * more. */

extern const cd_backend_kind cd_backend_cpu;

/* As open of the table, with options for the compiler. The texts of *o must outlive the back
 * end. */
cdmpp_status cd_backend_cpu_open(const cd_compiler_options *o, CD_GIVE cd_backend **out,
                                 cdmpp_err *err);
/* Threads of a target string: -num-cores, else the processors that this process may use. */
int cd_backend_cpu_threads(const char *target);

/* opencl_device -- one OpenCL device by its name, with a context and a queue.
 *
 *   ""           the first GPU, else the first device of any kind
 *   "1"          device 1, counted over all platforms in their order
 *   "pocl:0"     device 0 of the first platform whose name or version has "pocl" in it
 *   "0/2"        the first of 2 equal parts of device 0, by clCreateSubDevices
 *   "pocl:0/4.3" the last of 4
 *
 * A part is a device of its own: its compute units are not shared with the other
 * parts (but caches and memory are). Belongs to one thread. */

typedef struct cd_opencl {
    cd_opencl_api api;
    cd_cl device, part, context, queue; /* part: sub-device to release, or NULL */
    char name[128], version[128], driver[64];
    uint64_t kind;                         /* CL_DEVICE_TYPE bits */
    uint64_t execution;                    /* CD_CL_NATIVE_KERNEL: it runs functions of the host */
    uint32_t units, clock_mhz, align_bits; /* align_bits: of where a part of a buffer may begin */
    uint64_t bytes, alloc_max, cache_bytes, local_bytes;
    size_t group_max, group_size[3];
} cd_opencl;

/* A device name in parts; platform "" and number -1: not given; parts 0: the whole device. */
typedef struct cd_opencl_name {
    char platform[64];
    long number;
    unsigned parts, part;
} cd_opencl_name;
/* Parses a device name. Errors: ERANGE (not of the forms above). */
cdmpp_status cd_opencl_parse_name(const char *text, cd_opencl_name *out, cdmpp_err *err);

/* Opens the device with a context and a queue that has profiling on. Errors: ERANGE (name),
 * EBACKEND (no library, no such device, cannot be partitioned). */
cdmpp_status cd_opencl_open(cd_opencl *out, const char *name, cdmpp_err *err);
void cd_opencl_close(cd_opencl *d); /* zeroed is fine */

/* backend_opencl -- programs on OpenCL devices, PoCL's processors among them.
 *
 * Device names: opencl_device.h. A program's object is the device's own binary.
 * Errors of a program: EBACKEND with the compiler's log; EREJECTED when a work
 * group or its local memory is more than the device has. */

extern const cd_backend_kind cd_backend_opencl;

/* The device of an open OpenCL back end; it lives as long as the back end. */
const cd_opencl *cd_backend_opencl_device(const cd_backend *b);
/* As load, on buffers of the device that belong to the caller and outlive it. */
cdmpp_status cd_backend_opencl_load_on(cd_backend *b, const cd_build *p, const cd_cl *buffer,
                                       CD_GIVE cd_loaded **out, cdmpp_err *err);
/* Puts one execution into the queue and does not wait. *first, *last: events of the first and last
 * kernel, which the caller releases (NULL: not wanted); *last stays unchanged where there is only
 * one kernel. */
cdmpp_status cd_backend_opencl_enqueue(cd_loaded *l, cd_cl *first, cd_cl *last, cdmpp_err *err);

/* object_cache -- compiled programs on disk, found by what they were made from.
 *
 *   <folder>/objects/3f/3f9a...e2.so  key: SHA-256 of compiler, flags and text, given by the caller
 *   <folder>/work.<pid>.XXXXXX/       of one process: files being made, links to entries in use
 *
 *   (1) an entry ends in a digest of its bytes (object_signature.h): a damaged one is removed and
 *       not found;
 *   (2) entries appear in one step, so any number of processes may share a folder; an entry in use
 *       is linked into the work folder of its process, so that eviction cannot take it away;
 *   (3) above `max_bytes` the least recently used entries are removed; entries that are one file
 *       (programs of one compilation) count once;
 *   (4) a cache that cannot be written (full disk, read-only) finds less and is never an error:
 *       only a work folder is needed, and there is one in TMPDIR.
 * One thread at a time; `find` and `put` may be called from another one than `open`. */

#define CD_OBJCACHE_BYTES ((uint64_t)1 << 30)
#define CD_OBJCACHE_KEY   65 /* 64 hex digits and NUL */
#define CD_OBJCACHE_PATH  512

typedef struct cd_object_cache cd_object_cache;

/* dir NULL: $XDG_CACHE_HOME/cdmpp, ~/.cache/cdmpp; "": nothing is kept. max_bytes 0:
 * CD_OBJCACHE_BYTES. Errors: EIO (no folder to work in), ERANGE (a path too long), ENOMEM. */
cdmpp_status cd_object_cache_open(const char *dir, uint64_t max_bytes,
                                  CD_GIVE cd_object_cache **out, cdmpp_err *err);
/* NULL is fine; evicts, removes the work folder */
void cd_object_cache_close(CD_TAKE cd_object_cache *c);

/* folder for files of this process */
CD_KEEP const char *cd_object_cache_work(const cd_object_cache *c);
/* Path of the entry, in the work folder; false: there is none. */
bool cd_object_cache_find(cd_object_cache *c, const char *key, char path[CD_OBJCACHE_PATH]);
/* Append the digest to a new file of the work folder, once, before it is stored under any key.
 * Errors: EIO. */
cdmpp_status cd_object_cache_seal(const char *file, cdmpp_err *err);
/* Store a file with a digest under a key; false: not kept (see 4). */
bool cd_object_cache_put(cd_object_cache *c, const char *key, const char *file);
/* Evict down to 90 % of max_bytes if there is more than that; returns the bytes that are left. */
uint64_t cd_object_cache_evict(cd_object_cache *c);

/* object_binary -- binaries of GPU programs in the cache of compiled programs (object_cache.h).
 *
 *   key = SHA-256 of what the device and its compiler are, the prelude, the text
 *   get: the bytes, checked, in memory of the caller's      put: the bytes are stored under the key
 *
 * The cache is opened and closed in each call: the calling process may be killed at any time
 * between two calls. A cache that cannot be used finds nothing and keeps nothing. No state, any
 * thread. */

/* The key of a program; identity: of the back end (backend_kind.h). */
void cd_object_binary_key(cd_str identity, const cd_codegen_code *code, char key[CD_OBJCACHE_KEY]);
/* dir, max_bytes: as in cd_object_cache_open. A 0 byte follows the n bytes; the caller frees them.
 * False: not found. */
bool cd_object_binary_get(const char *dir, uint64_t max_bytes, const char *key,
                          CD_GIVE void **bytes, size_t *n);
/* Stores a binary, in place of an older one. False: it was not kept. */
bool cd_object_binary_put(const char *dir, uint64_t max_bytes, const char *key, const void *bytes,
                          size_t n);

/* object_loader -- a compiled C program in this process: its function, and OpenMP's number of
 * threads. The function is valid until the handle is closed. Any thread. */

typedef void cd_object_loader_entry(void *const *arg);
/* Loads the object of a C program and finds its function. OpenMP's library is never unloaded: its
 * threads outlive the program. Errors: EBACKEND. */
cdmpp_status cd_object_loader_open(const cd_build *p, int threads, CD_GIVE void **handle,
                                   cd_object_loader_entry **entry, cdmpp_err *err);
/* The function that runs pieces of a program with parts (codegen/code.h, 5). Valid as the entry
 * is. */
typedef void cd_object_loader_part(void *const *arg, int part, int unit, int begin, int end);
/* Errors: EBACKEND (the object has none). */
cdmpp_status cd_object_loader_parts(void *handle, const cd_codegen_code *code,
                                    cd_object_loader_part **out, cdmpp_err *err);
/* Sets OpenMP's number of threads for the calling thread: it is a setting of each thread. */
void cd_object_loader_threads(void *handle, int threads);
void cd_object_loader_close(CD_TAKE void *handle); /* NULL is fine */

/* tensor_fill -- the content that every back end gives a program's buffers: the same on all
 * devices.
 *
 *   element i of buffer k  ->  floats in [0.25, 1), integers 0 or 1, bool 0 or 1
 *
 * Reals are away from zero, so that no sum cancels and no product is denormal. Integers are often
 * indices, and 0 and 1 are valid ones nearly everywhere. No state, any thread. */

/* Writes elements [first, first + n) of buffer k. Types: floats and bfloats of 16, 32, 64 bits,
 * integers of 1 (a byte) to 64; false: another one. */
bool cd_tensor_fill(cd_dtype type, uint32_t k, uint64_t first, size_t n, void *to);
/* A weight of a network, as buffer k: to (elements of shape). float32 with two dimensions and more:
 * around 0, with a deviation of 1/sqrt(fan-in), so that activations keep their size through the
 * layers. Others (scales, biases): as cd_tensor_fill. false: another type. */
bool cd_tensor_fill_weight(cd_dtype type, uint32_t k, uint32_t rank, const int64_t *shape,
                           void *to);
#endif
