/* The door of predictor/estimate: other rooms include this header and no other of the room.
 *
 * Time of a network's nodes: models, schedule databases, node latency, parallel training. */
#ifndef CD_PREDICTOR_ESTIMATE_DOOR_H
#define CD_PREDICTOR_ESTIMATE_DOOR_H
#include "predictor/estimate/model_set.h"
#include "predictor/estimate/network_cost.h"
#include "predictor/estimate/node_cost.h"
#include "predictor/estimate/node_cost_bias.h"
#include "predictor/estimate/parallel_training.h"
#include "predictor/estimate/schedule_db.h"
#include "predictor/estimate/schedule_db_store.h"
#endif
