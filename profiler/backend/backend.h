/* backend -- a device that runs generated programs and times them.
 *
 *   open -> build(batch of cd_codegen_code) -> { load -> run, run, ... -> unload } -> close
 *
 * One table of functions per kind of device: cpu (compile.h + dlopen), opencl,
 * cuda. Timing policy (warm-up, repeats, confidence) is not here but in timing.h,
 * isolation (child processes, time-outs) in crew of measure.h: a back end may
 * crash or hang, and its caller lives elsewhere.
 *
 *   (1) build() takes many programs at once: failures are per program;
 *   (2) a loaded program owns device memory for its buffers, filled by load()
 *       with the given content, or with numbers of cd_tensor_fill (fill.h) when NULL;
 *   (3) run() gives the seconds of one execution of all launches, by the best
 *       clock of the device, or of `times` executions in one go.
 * A back end belongs to one thread. */
#ifndef CD_BACKEND_H
#define CD_BACKEND_H
#include "profiler/codegen/common/common.h"

typedef struct cd_backend cd_backend;   /* an open device */
typedef struct cd_loaded cd_loaded;     /* a program ready to run */

typedef struct cd_build {
    const cd_codegen_code *code;        /* in */
    cdmpp_status status;        /* out: EUNSUPPORTED, EBACKEND (compiler), EIO ... */
    cdmpp_err err;
    void *object;               /* out: CPU: const char * path of the shared object; GPU: binary */
    size_t object_bytes;
    bool cached;
    int error_no;               /* out: TVM's: 0, 2 the host's compiler, 3 the device's, 6 it took too long */
} cd_build;

typedef struct cd_backend_kind {
    const char *name;           /* "cpu", "opencl", "cuda" */
    cd_dialect dialect;
    /* device: "", "0", "pocl:0:2" ... as the back end documents; options from the target string. Cheap: who only loads
     * needs no compiler. Errors: EBACKEND. */
    cdmpp_status (*open)(const char *device, const char *target, CD_GIVE cd_backend **out, cdmpp_err *err);
    void (*close)(CD_TAKE cd_backend *b);
    /* What a compiled program depends on beside its text: device, driver, compiler. Objects of back ends that have this may be
     * kept and loaded by another process; NULL: they are looked after by build. */
    void (*identity)(cd_backend *b, cd_buf *out);
    /* Compile n programs, at most `jobs` compilers at a time. Errors are those of the batch; each program has its own. */
    cdmpp_status (*build)(cd_backend *b, cd_build *p, size_t n, int jobs, cdmpp_err *err);
    cdmpp_status (*load)(cd_backend *b, const cd_build *p, const void *const *content, CD_GIVE cd_loaded **out, cdmpp_err *err);
    /* *seconds: of `times` executions in a row, all together. */
    cdmpp_status (*run)(cd_loaded *l, unsigned times, double *seconds, cdmpp_err *err);
    /* Copy buffer k back, `bytes` of it. */
    cdmpp_status (*read)(cd_loaded *l, uint32_t k, void *to, size_t bytes, cdmpp_err *err);
    void (*unload)(CD_TAKE cd_loaded *l);
    /* Write over the device's caches (cold runs). */
    cdmpp_status (*flush)(cd_backend *b, cdmpp_err *err);
} cd_backend_kind;

/* The table; NULL for an unknown name. */
const cd_backend_kind *cd_backend_find(const char *name);
/* A back end by a target string's kind: llvm, c -> cpu; opencl; cuda. NULL: none. */
const cd_backend_kind *cd_backend_for_target(cd_str target);
const char *cd_backend_names(void); /* "cpu|opencl|cuda" */

/* The other headers of the room that are open to other rooms. */
#include "profiler/backend/backend_cpu.h"
#include "profiler/backend/backend_opencl.h"
#include "profiler/backend/compiler.h"
#include "profiler/backend/cuda_api.h"
#include "profiler/backend/object_binary.h"
#include "profiler/backend/object_loader.h"
#include "profiler/backend/opencl_device.h"
#include "profiler/backend/tensor_fill.h"
#endif
