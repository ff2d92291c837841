/* heldout -- which tasks a model has seen while it was trained.
 *
 *   model's header: configuration, digest of its split ──┐
 *   its data set ────────────────────────────────────────┴─ the split again ──> tasks of training and validation
 *
 * (1) The data set is the one that the configuration names, or that the caller names in its place. A split that
 *     does not have the digest of the header is refused: it would tell of other programs.
 * (2) A task is seen when any of its programs is in the training or the validation part (which stops the training and
 *     weighs the members), or was used without its latency; on any device. Tasks that the set lacks are not seen.
 * Read-only once made. */
#ifndef CD_HELDOUT_H
#define CD_HELDOUT_H
#include <stdbool.h>

#include "base/core/core.h"

typedef struct cd_heldout cd_heldout;

/* header: cd_model_header. data (n_data) in place of the header's files; n_data 0: those. Errors: ESCHEMA (no
 * configuration in the header), EMODEL (the split is another one), ENODATA (a file is missing; key data.files), those of reading. */
cdmpp_status cd_heldout_new(const char *header, const char *const *data, size_t n_data, CD_GIVE cd_heldout **out, cdmpp_err *err);
void cd_heldout_free(CD_TAKE cd_heldout *h); /* NULL is fine */
bool cd_heldout_seen(const cd_heldout *h, const char *workload_key);
/* "task, seed 2", for what is printed. */
CD_KEEP const char *cd_heldout_split(const cd_heldout *h);
#endif
