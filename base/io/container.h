/* The outer form of the files that a training writes: a header and weights, checked to be undamaged.
 *
 *   magic (8) | u32 version | u32 0 | u64 H | u64 B | header (H) | weights (B) | SHA-256, 64 hex digits
 *
 *   kind         magic      versions   what is inside
 *   model        CDMPPMDL   1, 2, 3    learner/model, learner/operators
 *   checkpoint   CDMPPCKP   1          learner/fit
 *
 * All numbers are little-endian; the header is one JSON object. A model is written in version 2 unless it holds something
 * that older programs would misread: then it gets a newer version, which they refuse. Lengths are compared with the size of
 * the file before they are used, and nothing is read before the sum is right. No state, any thread. */
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

/* Append a whole file of this version to `out`. Errors: ENOMEM, also when header or weights ran out of memory. */
cdmpp_status cd_container_put_as(cd_container_kind kind, uint32_t version, cd_buf *out, const cd_buf *header, const cd_buf *weights,
                             cdmpp_err *err);
/* The same in the default version. */
cdmpp_status cd_container_put(cd_container_kind kind, cd_buf *out, const cd_buf *header, const cd_buf *weights, cdmpp_err *err);
/* Checks (n) bytes of a file; header and weights point into them. Errors: EPARSE (no such file, cut short, damaged), EUNSUPPORTED (a newer version). */
cdmpp_status cd_container_get(cd_container_kind kind, const void *p, size_t n, cd_container *out, cdmpp_err *err);
/* The header, copied: NUL-terminated (*text) and as a tree, which live in `a`. Errors: EPARSE, ENOMEM. */
cdmpp_status cd_container_header(const cd_container *f, cd_arena *a, CD_KEEP const char **text, CD_KEEP const cd_json **root,
                             cdmpp_err *err);
#endif
