/* What kind of program a task is, without its extents: what a model must have seen to be believed.
 *
 *   definition ──> dtypes of buffers, a fingerprint of each reduction, intrinsics, unusual accesses
 *   target     ──> threads, width of vectors, features
 *
 * A signature is a sorted list of marks, each a class and a text:
 *
 *   dtype float32                          a buffer of this type
 *   operator sum 2+1 * ir,ir               a reduction: combiner, spatial+reduce axes, arithmetic of its source, its reads
 *   typed float32<float32 sum 2+1 * ir,ir  the same, with the types that it writes and reads
 *   operator no reduction                  a program of elementwise stages alone
 *   operator access divided                of an elementwise stage: divided, gathered, fused, strided, permuted, joined, other
 *   intrinsic exp                          a call; casts as "cast float16>float32"
 *   threads 24, vector 64, feature +avx512f
 *
 * One letter for each dimension of a read: i a spatial axis, r a reduce axis, s and t the same strided, + their sum, 2 the sum
 * with a strided spatial axis, ~ with a dilated reduce axis, c a constant, f several axes, d a division or remainder, g a value
 * that is read, m anything else. So a product of matrices and a convolution differ, and no list of operators is needed.
 * Equal definitions have equal signatures, whatever their shapes are called. No state, any thread. */
#ifndef CD_SIGNATURE_H
#define CD_SIGNATURE_H
#include "base/core/core.h"
#include "features/task/target.h"
#include "features/te/te.h"

#define CD_SIGNATURE_BETWEEN "; " /* between the marks of a signature as one text; no mark has a ';' */

typedef struct cd_signature {
    size_t n;
    const char **mark; /* (n) sorted, each once */
} cd_signature;

/* Marks of a definition and a target in `a`. target.n == 0: unknown; hardware NULL: unknown. Errors: ENOMEM. */
cdmpp_status cd_signature_of(cd_arena *a, const cd_te_dag *dag, cd_str target, const cd_hardware *hardware, cd_signature *out, cdmpp_err *err);
/* The marks as one text in `a`. Errors: ENOMEM. */
cdmpp_status cd_signature_text(cd_arena *a, const cd_signature *s, CD_KEEP const char **out, cdmpp_err *err);
/* Takes the next mark off a text; false: there is none. *text: what is left. */
bool cd_signature_next(const char **text, cd_str *mark);
#endif
