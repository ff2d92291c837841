/* offload_plan_internal -- the network as nodes of a placement problem, which the files of
 * offload_plan share. Private to offload_plan*.c.
 *
 *   nodes: inputs | groups from `base` on | results */
#ifndef CD_OFFLOAD_PLAN_INTERNAL_H
#define CD_OFFLOAD_PLAN_INTERNAL_H
#include "predictor/partition/offload/offload.h"

typedef struct cd_offload_net {
    const cd_offload_plan_options *a;
    const cd_offload_net_match *r;
    cd_offload_net_plan *out;
    cd_arena own;
    uint32_t n, base, n_device;
    cd_offload_op *op; /* (n) */
    uint32_t *in, n_in;
    uint32_t *buffer; /* (n) of the workload */
    int64_t *bytes;   /* (n) of what it makes */
    double *seconds;  /* (n, n_device) */
    cd_place_link *link;
    cd_place_device *device;
    bool *home; /* (n_group) sent home */
} cd_offload_net;

/* May group g be on device d by itself? */
bool cd_offload_net_allows(const cd_offload_net *p, uint32_t g, uint32_t d);

/* report: regions, boundary and reasons of out->where, out->joint, out->part. explain: the reason
 * of one region. Errors: ENOMEM, those of placement.h. */
cdmpp_status cd_offload_net_report(cd_offload_net *p, cdmpp_err *err);
#endif
