/* provenance -- where a model comes from, as members of its JSON header: tool,
 * configuration, data, filter, split and figures. No time and no host: the same
 * training must give the same bytes. */
#ifndef CD_PROVENANCE_H
#define CD_PROVENANCE_H
#include "learner/train/learner.h"

/* Appends the members of a header, without braces. */
void cd_provenance(cd_buf *out, const cd_config *c, const cd_dataset *d, const cd_split *s, const cd_learner_result *l);
#endif
