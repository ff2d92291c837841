/* net_options -- keys net.* and fit.* of a configuration as descriptions of networks. */
#ifndef CD_NET_OPTIONS_H
#define CD_NET_OPTIONS_H
#include "learner/config/config.h"
#include "learner/fit/fit.h"
#include "learner/model/model.h"

/* `w_dev`: width of a device vector. The result borrows from c. */
cd_fit_spec cd_net_options_fit(const cd_config *c, cd_member_kind kind, size_t w_dev);
/* What contradicts itself whatever the data (a loss that does not parse, heads that do
 * not divide the width): added to c->diag. */
void cd_net_options_check(cd_config *c, const char *path, cdmpp_err *err);
#endif
