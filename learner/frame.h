/* frame -- the outside of a model file: header and weights that arrived unharmed.
 *
 *   "CDMPPMDL" | u32 version | u32 0 | u64 H | u64 B | header (H) | weights (B) | SHA-256, 64 hex digits
 *
 * All numbers little-endian; the layout of model.h, versions 1 and 2. Lengths are
 * checked against the file before they are used, and nothing is read before the sum
 * agreed. No state, any thread. */
#ifndef CD_FRAME_H
#define CD_FRAME_H
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

#define CD_FRAME_VERSION 2

/* Append a file. Errors: ENOMEM. */
cdmpp_status cd_frame_put(cd_buf *out, const cd_buf *header, const cd_buf *weights, cdmpp_err *err);
/* Slices of the `n` bytes at `p`. Errors: EPARSE (no model file, cut short, damaged),
 * EUNSUPPORTED (a version above CD_FRAME_VERSION). */
cdmpp_status cd_frame_get(const void *p, size_t n, cd_str *header, cd_str *weights, cdmpp_err *err);
#endif
