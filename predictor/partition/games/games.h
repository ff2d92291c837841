/* The door of predictor/partition/games: other rooms include this header and no other of the room.
 *
 * Small questions about operators that share devices, each with its own table as input: who takes
 * which device (game), how many threads each has (cotune), how tasks of many operators fill the
 * units of one device (pack), which queries with deadlines are admitted (qos). Each has reading,
 * computing and printing apart. */
#ifndef CD_PREDICTOR_PARTITION_GAMES_DOOR_H
#define CD_PREDICTOR_PARTITION_GAMES_DOOR_H
#include "predictor/partition/games/cotune.h"
#include "predictor/partition/games/game.h"
#include "predictor/partition/games/pack.h"
#include "predictor/partition/games/qos.h"
#endif
