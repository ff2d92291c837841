/* The door of learner/nn: other rooms include this header and no other of the room.
 *
 * Networks: perceptron, transformer, LSTM; forward, backward, their files. */
#ifndef CD_LEARNER_NN_DOOR_H
#define CD_LEARNER_NN_DOOR_H
#include "learner/nn/net.h"
#include "learner/nn/net_layout.h"
#endif
