/* The door of learner/nn: other rooms include this header and no other of the room.
 *
 * Neural networks: a perceptron, a transformer and a tree LSTM. They take a batch (learner/inputs) and give numbers for each program;
 * learner/fit trains them with the gradients that they compute, learner/model applies them, learner/export reads their parameters. */
#ifndef CD_LEARNER_NN_DOOR_H
#define CD_LEARNER_NN_DOOR_H
#include "learner/nn/net.h"
#include "learner/nn/net_layout.h"
#endif
