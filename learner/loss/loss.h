/* The door of learner/loss: other rooms include this header and no other of the room.
 *
 * Losses of trees and networks, and the distance between domains. */
#ifndef CD_LEARNER_LOSS_DOOR_H
#define CD_LEARNER_LOSS_DOOR_H
#include "learner/loss/domain_distance.h"
#include "learner/loss/net_loss.h"
#include "learner/loss/net_loss.h"
#include "learner/loss/objective.h"
#include "learner/loss/tree_loss.h"
#endif
