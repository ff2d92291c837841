/* sample -- CDMPP's words for which task files to use, and for who is held out.
 *
 *   sample   = part {"," part}
 *   part     = [device ":"] mode {"+" mode}         without a device: all not named elsewhere
 *   mode     = "cross"                              all tasks of the device
 *            | "sample" K                           the K first of its tasks
 *            | "random" K                           K drawn by seed and name
 *            | "list" {"-" id}                      tasks by number
 *            | "network" {"-" network}              tasks of these networks
 *
 *   split    = "by_device:" side ["," side]
 *            | "by_net:" side ["," side]
 *   side     = ("train" | "test") {"-" name}        or "-all"
 *
 *   t4:sample200,v100:random50+network-resnet_50_bs1-bert_base_
 *   by_net:train-all,test-resnet_18_bs1
 *
 *   (1) tasks are numbered from 0 by (operations, workload key), GPU tasks and CPU tasks
 *       each for themselves: TenSet's order, in which low numbers are small tasks and
 *       unknown operations (-1) come first. On a data set of all of TenSet's tasks the
 *       numbers are TenSet's; on others, the order of what there is;
 *   (2) a device gets what its modes name together, as far as it has it;
 *   (3) a side that is not given, or is "all", is everybody that the other side does not
 *       name; who is named on neither of two sides is not used. A task of a tested
 *       network is never trained on (split.h, 3), where CDMPP has it on both sides;
 *   (4) names may hold "-": the longest name of the data set that fits is meant. Networks
 *       answer as features/task/network_alias.h says.
 * No state, any thread. */
#ifndef CD_SAMPLE_H
#define CD_SAMPLE_H
#include "base/core/core.h"
#include "dataset/split/split.h"

/* asked[i] = 1 for the programs of the sample, 0 for others; (d->n), the caller's.
 * Errors: EPARSE (with the character at which it stops to make sense), ESCHEMA (a device
 * or network that the data set does not have, with the nearest), ENOMEM. */
cdmpp_status cd_sample_mark(const cd_dataset *d, const char *text, uint64_t seed, uint8_t *asked, cdmpp_err *err);

/* Sets kind, train_name and test_name of *spec; texts live in the arena. The same errors. */
cdmpp_status cd_sample_split(const cd_dataset *d, const char *text, cd_arena *arena, cd_split_spec *spec, cdmpp_err *err);
#endif
