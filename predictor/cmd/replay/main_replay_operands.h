/* cdmpp-replay: files and names without an option. */
#ifndef MAIN_REPLAY_OPERANDS_H
#define MAIN_REPLAY_OPERANDS_H
#include "predictor/network_estimate/network_estimate.h"

typedef struct cd_replay_operands {
    const char *language; /* config.json of a language model, an operand or the only one of
                             `ask->network`; NULL: there is none */
    bool by_network;      /* it was given by --network */
    cd_texts rest;        /* with it: the other operands */
} cd_replay_operands;
#endif
