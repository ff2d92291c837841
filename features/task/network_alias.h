/* Which networks of a data set a written name means.
 *
 *   "(resnet_50,[(1,3,224,224)])"  answers to  itself, "resnet_50" and "resnet_50_" (any
 *   "bert_large"                                shape), "resnet_50_bs1" (batch size 1)
 *
 * The batch size is the first number of the shape. No state, any thread. */
#ifndef CD_NETNAME_H
#define CD_NETNAME_H
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"

/* The name without a shape, borrowed from `network`. */
cd_str cd_network_alias_base(const char *network);
/* The batch size; -1 when the name has no shape. */
int64_t cd_network_alias_batch(const char *network);
/* Does the written name `asked` mean this network? */
bool cd_network_alias_answers(const char *network, const char *asked);
#endif
