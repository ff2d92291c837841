/* backend_kind -- what a back end must provide: the table of functions, and a program on its way through it.
 *
 *   open -> build(batch of cd_codegen_code) -> { load -> run, run, ... -> read -> unload } -> close
 *
 * A back end is one const cd_backend_kind: backend_cpu.c, backend_opencl.c, backend_cuda.c. To add one, write such a file with
 * its own struct cd_backend and struct cd_loaded (they are opaque outside), and add the table to the list in backend.c; if it
 * needs another source language, add a cd_dialect (codegen_code.h) and its generator.
 *
 *   (1) build() takes many programs at once: a program that fails has its own status and error text, and the call succeeds;
 *   (2) a loaded program owns device memory for its buffers. load() fills it with the given content, or where `content` or its
 *       element is NULL with the numbers of cd_tensor_fill (tensor_fill.h): equal on all back ends, so that results can be compared;
 *   (3) run() executes all launches in order, `times` times, and gives the seconds of all together by the best clock of the device;
 *   (4) a back end does not decide how often to measure (profiler/measure/timing.h) and does not protect its caller: a program may
 *       crash or hang. Programs of unknown quality are run in a child process (profiler/measure).
 * A back end belongs to one thread. */
#ifndef CD_BACKEND_KIND_H
#define CD_BACKEND_KIND_H
#include "profiler/codegen/code/code.h"

typedef struct cd_backend cd_backend;   /* an open device */
typedef struct cd_loaded cd_loaded;     /* a program ready to run */

typedef struct cd_build {
    const cd_codegen_code *code; /* in; must outlive what is loaded from it */
    cdmpp_status status;        /* out: OK, EUNSUPPORTED, EBACKEND (compiler), EIO ... */
    cdmpp_err err;
    void *object;               /* out: CPU: const char * path of the shared object, owned by the compiler; GPU: bytes of the heap, the caller frees them */
    size_t object_bytes;
    bool cached;                /* out: found, not compiled */
    int error_no;               /* out: TVM's number: 0 none, 2 the host's compiler, 3 the device's, 6 it took too long */
} cd_build;

/* Every function but identity must be there. */
typedef struct cd_backend_kind {
    const char *name;           /* "cpu", "opencl", "cuda" */
    cd_dialect dialect;         /* of the programs that it builds */
    /* device: "" (the default one), "0", "pocl:0" ... as the back end documents; target: a target string, for its options. It must be
     * cheap: the compiler is opened by the first build, since a process that only loads needs none. Errors: EBACKEND (no library, no
     * device), ERANGE (name), ENOMEM. */
    cdmpp_status (*open)(const char *device, const char *target, CD_GIVE cd_backend **out, cdmpp_err *err);
    void (*close)(CD_TAKE cd_backend *b); /* after all of its programs are unloaded; NULL is fine */
    /* Appends what a compiled program depends on besides its text: device, driver, compiler. The caller uses it as a part of the
     * key under which it keeps objects for other processes (object_binary.h). NULL: build has a cache of its own. */
    void (*identity)(cd_backend *b, cd_buf *out);
    /* Compile n programs, with at most `jobs` compilers at a time. The result is an error only if the whole batch failed (no
     * compiler, disk full, interrupted, no memory); each program has its own status. */
    cdmpp_status (*build)(cd_backend *b, cd_build *p, size_t n, int jobs, cdmpp_err *err);
    /* A program ready to run; content: NULL, or (n_buffer) pointers to the whole content of a buffer or NULL. Errors: EREJECTED (more
     * threads or memory than the device has), EBACKEND, ENOMEM. */
    cdmpp_status (*load)(cd_backend *b, const cd_build *p, const void *const *content, CD_GIVE cd_loaded **out, cdmpp_err *err);
    /* `times` executions in a row (0: 1); *seconds: all of them together. Errors: EBACKEND, EINVALID (a buffer was overrun). */
    cdmpp_status (*run)(cd_loaded *l, unsigned times, double *seconds, cdmpp_err *err);
    /* Copy the first `bytes` of buffer k to the host. Errors: ERANGE. */
    cdmpp_status (*read)(cd_loaded *l, uint32_t k, void *to, size_t bytes, cdmpp_err *err);
    void (*unload)(CD_TAKE cd_loaded *l); /* NULL is fine */
    /* Evict the device's caches, by writing memory larger than they are: the next run is a cold one. */
    cdmpp_status (*flush)(cd_backend *b, cdmpp_err *err);
} cd_backend_kind;

/* A back end by name; NULL for an unknown one. */
const cd_backend_kind *cd_backend_find(const char *name);
/* A back end by a target string's kind: llvm, c -> cpu; opencl; cuda. NULL: none. */
const cd_backend_kind *cd_backend_for_target(cd_str target);
/* "cpu|opencl|cuda" */
const char *cd_backend_names(void);
#endif
