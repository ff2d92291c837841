/* frame -- the outside of the files that a training writes: a header and weights that
 * arrived unharmed.
 *
 *   magic (8) | u32 version | u32 0 | u64 H | u64 B | header (H) | weights (B) | SHA-256, 64 hex digits
 *
 *   kind         magic      versions   what is inside
 *   model        CDMPPMDL   1, 2, 3    model.h, opmodel.h, keepmember.h
 *   checkpoint   CDMPPCKP   1          fit.h
 *
 * All numbers little-endian; the header is one JSON object. A file is written in
 * version 2 (checkpoint 1) unless what it holds needs another: an older program must refuse what it would
 * misread. Lengths are checked against the file before they are used, and nothing
 * is read before the sum agreed. No state, any thread. */
#ifndef CD_CONTAINER_H
#define CD_CONTAINER_H
#include "base/core/core.h"
#include "base/text/text.h"

#define CD_CONTAINER_MODEL_VERSION 2
#define CD_CONTAINER_MODEL_NEWER 3 /* profile tuner, or trees of an objective but log_latency (learner/loss/objective.h) */
#define CD_CONTAINER_CHECKPOINT_VERSION 1
typedef enum { CD_CONTAINER_MODEL, CD_CONTAINER_CHECKPOINT } cd_container_kind;

typedef struct cd_container {
    uint32_t version;
    cd_str header, weights; /* slices of the file */
} cd_container;

/* Append a file. Errors: ENOMEM, also when header or weights ran out of memory. */
cdmpp_status cd_container_put_as(cd_container_kind kind, uint32_t version, cd_buf *out, const cd_buf *header, const cd_buf *weights,
                             cdmpp_err *err);
/* In the usual version. */
cdmpp_status cd_container_put(cd_container_kind kind, cd_buf *out, const cd_buf *header, const cd_buf *weights, cdmpp_err *err);
/* Errors: EPARSE (no such file, cut short, damaged), EUNSUPPORTED (a newer version). */
cdmpp_status cd_container_get(cd_container_kind kind, const void *p, size_t n, cd_container *out, cdmpp_err *err);
/* The header, copied: NUL-terminated (*text) and as a tree, which live in `a`. Errors: EPARSE, ENOMEM. */
cdmpp_status cd_container_header(const cd_container *f, cd_arena *a, CD_KEEP const char **text, CD_KEEP const cd_json **root,
                             cdmpp_err *err);
#endif
