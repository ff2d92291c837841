/* member_internal -- what predicting keeps between calls, and the parts of a member that are networks. */
#ifndef CD_MEMBER_INTERNAL_H
#define CD_MEMBER_INTERNAL_H
#include "learner/model/member.h"

enum { CD_MEMBER_MAX_FOLD = 64 };

typedef struct cd_member_block {
    void *p;
    size_t cap; /* items */
} cd_member_block;
/* Room for n items, at least doubling; the old content is not kept. False: no memory. */
bool cd_member_block_grow(cd_member_block *b, size_t n, size_t size);

struct cd_member_scratch {
    size_t trees;   /* of a booster, at most so many are asked; 0: all */
    cd_member_block x;     /* float: matrix of trees; outputs of a network */
    cd_member_block score; /* float */
    cd_member_block wide;  /* double: scores with offsets */
    /* networks: room for one batch, made for `net` */
    const cd_net *net;
    cd_batch batch;
    cd_net_state *state;
};

/* As cd_member_predict, of a network. */
cdmpp_status cd_member_predict_net(const cd_member *m, cd_member_scratch *s, const cd_program_view *v, const uint32_t *index, size_t n,
                                   const float *device, size_t n_device, double *log_s, cdmpp_err *err);
/* Does a network that was read fit its member and the devices of the model? Errors: EMODEL. */
cdmpp_status cd_member_check_net(const cd_member *m, size_t w_device, cdmpp_err *err);
#endif
