/* isa -- which instructions a program may use, as flags of a compiler.
 *
 *   "avx2"                          -> -march=x86-64-v3
 *   "" + "llvm -mcpu=core-avx2"     -> -march=haswell (LLVM's name -> GCC's)
 *   "" + "llvm"                     -> -march=native
 *
 * No state, any thread. */
#ifndef CD_ISA_H
#define CD_ISA_H
#include "base/text/text.h"

#define CD_ISAS "native|avx512|avx2|sse2|aarch64"
typedef enum cd_isa { CD_ISA_NATIVE, CD_ISA_AVX512, CD_ISA_AVX2, CD_ISA_SSE2, CD_ISA_AARCH64 } cd_isa;

typedef struct cd_isa_choice {
    cd_isa isa;
    char march[48];             /* "-march=haswell"; "" for aarch64 */
    bool runs;                  /* on this processor */
} cd_isa_choice;

/* The flags of a program for this instruction set. isa NULL or "": by the target. Errors: EUSAGE (none of CD_ISAS, all listed), EBACKEND (a
 * program of that target cannot run here, by the target alone; a name of -mcpu that is not known). */
cdmpp_status cd_isa_choose(const char *isa, const char *target, cd_isa_choice *out, cdmpp_err *err);
/* The best that this processor has. */
cd_isa cd_isa_here(void);
#endif
