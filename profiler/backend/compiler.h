/* compiler -- C programs become shared objects, many in one run of the compiler.
 *
 *   cd_build[0..n)  ->  not in the cache  ->  units of up to CD_COMPILER_UNIT programs  ->  cc | cc | ...
 *                       (object_cache.h)         prelude + text + text + ...
 *
 *   (1) a unit that fails is halved until the failing programs are alone: a failure, a crash
 *       or a time-out of the compiler belongs to one program, with the first error line in build.err;
 *   (2) a full disk is no program's fault: it ends the batch with EIO;
 *   (3) equal texts are compiled once; the key of the cache has the compiler's version, the
 *       flags, for "native" the processor, the prelude and the text.
 *
 * The instruction set is an option (profiler/host/isa.h), else the target's -mcpu, else this machine's own. On another
 * machine aarch64 gives objects that are not linked and cannot be run. One thread at a time. */
#ifndef CD_COMPILER_H
#define CD_COMPILER_H
#include <signal.h>

#include "profiler/backend/backend_kind.h"

#define CD_COMPILER_UNIT 8

typedef struct cd_compiler_options {
    const char *command;        /* "gcc", "ccache gcc"; NULL: $CC, else cc (of aarch64 a cross compiler) */
    const char *flags;          /* more flags, after ours; NULL: none */
    const char *isa;            /* one of CD_ISAS (isa.h); NULL, "": by the target */
    const char *target;         /* "llvm -mcpu=core-avx2"; NULL: "" */
    const char *cache;          /* folder; NULL: the user's; "": none */
    uint64_t cache_bytes;       /* 0: CD_OBJCACHE_BYTES */
    double limit_s;             /* for one program; 0: 30 */
    const volatile sig_atomic_t *stop;
} cd_compiler_options;

typedef struct cd_compiler cd_compiler;

/* Finds the compiler, asks it for its version, opens the cache. Errors: EUSAGE (isa), EBACKEND (no compiler; an instruction set
 * that this processor lacks), EIO (no folder to work in), EINTERRUPTED, ENOMEM. */
cdmpp_status cd_compiler_open(const cd_compiler_options *o, CD_GIVE cd_compiler **out, cdmpp_err *err);
void cd_compiler_close(CD_TAKE cd_compiler *c); /* NULL is fine; the objects are gone afterwards */
/* Can objects be run on this machine? */
bool cd_compiler_runs(const cd_compiler *c);
/* Version and flags: "gcc 12.2.0: -O2 -march=native ...". */
CD_KEEP const char *cd_compiler_text(const cd_compiler *c);
/* As cd_backend_kind.build; object: const char * path, owned by the compiler. */
cdmpp_status cd_compiler_build(cd_compiler *c, cd_build *p, size_t n, int jobs, cdmpp_err *err);
#endif
