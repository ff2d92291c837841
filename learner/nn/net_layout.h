/* net_layout -- which parameters a network is made of, for who writes it in another form (learner/export).
 *
 *   tokens -> encoder -> head -\
 *                     device --+--> decoder -> out      each box a stack of linear layers (mlp.h)
 *                    program --/
 *
 * The numbers w, b, ... in encoder.h and mlp.h are places in `params`; cd_params_value() has their values. */
#ifndef CD_NET_LAYOUT_H
#define CD_NET_LAYOUT_H
#include "learner/nn/encoder.h"
#include "learner/nn/mlp.h"
#include "learner/nn/net.h"

/* What follows the encoder: rows (programs, or leaves where the head is a sum) -> out. Stacks of 0 layers are absent. */
typedef struct cd_net_tail {
    cd_mlp head, dev, prog, decoder;
    size_t out_w, out_b;
} cd_net_tail;

/* The pointers live as long as the network. */
typedef struct cd_net_layout {
    const cd_net_config *spec;
    const cd_params *params;
    const cd_encoder *enc;   /* transformers only */
    const cd_net_tail *tail;
} cd_net_layout;
/* The parts of a network; any kind. */
cd_net_layout cd_net_layout_of(const cd_net *net);
#endif
