/* select_programs -- which programs of a data set a training uses, and for what part.
 *
 *   data.devices -> asked -> filter.* -> keep -> split.* -> train, validation, test
 */
#ifndef CD_SELECT_PROGRAMS_H
#define CD_SELECT_PROGRAMS_H
#include "dataset/split/split.h"
#include "learner/config/config.h"

/* keep (d->n), the caller's; `pool` may be NULL; *split to be freed. Errors: ESCHEMA (a name that the data
 * set does not have, with the key), ERANGE, ENOMEM. */
cdmpp_status cd_select_programs(const cd_config *c, const cd_dataset *d, cd_threads *pool, uint8_t *keep,
                       cd_filter_count *count, CD_GIVE cd_split **split, cdmpp_err *err);
/* What contradicts itself whatever the data: added to c->diag. */
void cd_select_programs_check(cd_config *c, const char *path, cdmpp_err *err);
#endif
