/* The door of predictor/tune/compare: other rooms include this header and no other of the room.
 *
 * Which tuner is better? Two answers. A comparison runs several tuners on this machine (tune_compare.h). A replay simulates them on
 * logs, without a device: it takes the seconds from the records (tune_replay.h), and tells how near each tuner came to the best known
 * program (tune_replay_stat.h). Nothing here prints: predictor/tune/report does. */
#ifndef CD_COMPARE_H
#define CD_COMPARE_H
#include "predictor/tune/compare/tune_compare.h"
#include "predictor/tune/compare/tune_replay_select.h"
#include "predictor/tune/compare/tune_replay_stat.h"
#endif
