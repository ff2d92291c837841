/* The door of learner/loss: other rooms include this header and no other of the room.
 *
 * What training makes small: losses of networks (net_loss.h), of trees (objective.h, tree_loss.h), and the distance between the
 * latents of two domains. For learner/fit, learner/train and learner/model. */
#ifndef CD_LEARNER_LOSS_DOOR_H
#define CD_LEARNER_LOSS_DOOR_H
#include "learner/loss/domain_distance.h"
#include "learner/loss/net_loss.h"
#include "learner/loss/objective.h"
#include "learner/loss/tree_loss.h"
#endif
