/* tvm_packed -- reads the bytes that TVM's GetPerStoreFeaturesFromStates gives.
 *
 *   int32 n | int32 size[n+2] | size[0] floats | ... | size[n-1] floats | throughputs | task ids
 *                               |
 *                               +-> number of rows k, then k rows of CD_N_COL; size 0: not lowered
 *
 *   (1) little-endian, 4 bytes a number, no padding; size[n] and size[n+1] are the lengths of
 *       the last two lists, which are skipped;
 *   (2) the bytes end where the lists do: cut short or longer is EPARSE;
 *   (3) all sizes are checked before the first row is looked at.
 * Nothing is copied; the bytes may lie at any address. Any thread may read an open one. */
#ifndef CD_TVM_PACKED_H
#define CD_TVM_PACKED_H
#include "base/core/core.h"

/* Check the bytes and write where candidates begin: at (n+1), byte offsets, at[i] == at[i+1] for
 * one that was not lowered. Errors: EPARSE (damaged, another n), EMODEL (rows of another
 * length). */
cdmpp_status cd_tvm_packed_open(const void *bytes, size_t len, size_t n, size_t *at,
                                cdmpp_err *err);
/* Rows of candidate i, and their number, 0 where at[i] == at[i+1] as well. */
const void *cd_tvm_packed_rows(const void *bytes, const size_t *at, size_t i, size_t *n_row);
#endif
