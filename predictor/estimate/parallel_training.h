/* parallel_training -- what an iteration of training takes on many devices, from what it takes on one.
 *
 *   data parallel    every device a slice of the batch; gradients summed by a ring: 2 (n-1)/n bytes / bandwidth + 2 (n-1) latency,
 *                    in buckets that start one behind the other as soon as their last gradient is there (overlap)
 *   pipeline         stages of consecutive nodes, m micro-batches. GPipe: all forward, then all backward; each direction takes
 *                    sum of (stages, links) + (m - 1) of the slowest of them. 1F1B is as long where stages and links are equal
 *                    and nothing is sent, and keeps min(m, n - i) micro-batches at stage i instead of m
 *   tensor parallel  products and what stands between them cut in n; ring sums of the activations; of library operators alone
 * An optimizer's steps (programs of the update phase) come once, behind it all: not hidden by rings, not in every micro-batch.
 *
 *   device 0  |F0|F1|F2|         |B0|B1|B2|        device d  |forward |backward      |
 *   device 1     |F0|F1|F2|   |B0|B1|B2|           ring d                |sum 0|sum 1|
 *
 * Closed forms, and the same as a net for replay.h: the two are compared in tests. Sources: ring allreduce, Patarasuk and Yuan
 * 2009; GPipe 2019; PipeDream-flush (1F1B) 2021; Megatron-LM 2019. No state, any thread. Seconds, bytes. */
#ifndef CD_PARALLEL_TRAINING_H
#define CD_PARALLEL_TRAINING_H
#include "predictor/estimate/node_cost.h"

typedef struct cd_parallel_link {
    double latency_s, bytes_per_s; /* each way, of one device to its neighbour */
} cd_parallel_link;

typedef struct cd_parallel_bucket {
    double ready_s;             /* after the start of the iteration; not before the bucket in front of it */
    int64_t bytes;
} cd_parallel_bucket;

typedef struct cd_pipeline_stage {
    double forward_s, backward_s; /* of one micro-batch */
    int64_t bytes;              /* sent to the next stage, and as much back */
} cd_pipeline_stage;

typedef enum cd_parallel_schedule { CD_PARALLEL_GPIPE, CD_PARALLEL_1F1B } cd_parallel_schedule;

/* ---- closed forms; NaN: n < 1, bytes_per_s <= 0 ---- */

/* Sum of `bytes` over n devices in a ring; 0 for n = 1. */
double cd_parallel_training_ring_s(int64_t bytes, uint32_t n, cd_parallel_link link);
/* One iteration whose computing takes compute_s on each of n devices. */
double cd_parallel_training_data_s(double compute_s, const cd_parallel_bucket *b, uint32_t n_bucket, uint32_t n, cd_parallel_link link);
/* GPipe, any stages. */
double cd_parallel_training_pipeline_s(const cd_pipeline_stage *s, uint32_t n, uint32_t micro, cd_parallel_link link);
/* Micro-batches whose activations stage i keeps at once. */
uint32_t cd_parallel_training_kept(cd_parallel_schedule is, uint32_t stage, uint32_t n, uint32_t micro);

/* ---- the same as nets ---- */
typedef struct cd_parallel_net {
    cd_arena arena;
    cd_replay_net net;
} cd_parallel_net;

/* Devices 0 .. n-1 compute, n .. 2n-1 are their rings. Errors: ERANGE (numbers, too many devices), ENOMEM. */
cdmpp_status cd_parallel_training_data_net(double compute_s, const cd_parallel_bucket *b, uint32_t n_bucket, uint32_t n, cd_parallel_link link, cd_parallel_net *out,
                                 cdmpp_err *err);
cdmpp_status cd_parallel_training_pipeline_net(const cd_pipeline_stage *s, uint32_t n, uint32_t micro, cd_parallel_schedule is, cd_parallel_link link, cd_parallel_net *out,
                                     cdmpp_err *err);
void cd_parallel_net_free(cd_parallel_net *c); /* zeroed is fine */

/* ---- a graph of training (backward and update nodes) on a cluster ---- */
typedef enum cd_parallel_kind { CD_PARALLEL_DATA, CD_PARALLEL_PIPELINE, CD_PARALLEL_TENSOR } cd_parallel_kind;

typedef struct cd_parallel_plan {
    cd_parallel_kind is;
    uint32_t n;                 /* devices */
    uint32_t micro;             /* pipeline: micro-batches, the graph is of one of them */
    cd_parallel_schedule schedule;      /* pipeline */
    int64_t bucket_bytes;       /* data */
    cd_parallel_link link;
} cd_parallel_plan;

typedef struct cd_parallel_result {
    double one_s;               /* the graph on one device, one after the other */
    double closed_s;            /* NaN: no closed form (1F1B of unequal stages) */
    double replay_s;            /* tensor: as closed_s */
    double sent_s;              /* of links, if nothing overlapped */
    int64_t sent_bytes;         /* by each device */
    uint32_t kept;              /* pipeline: micro-batches that stage 0 keeps */
} cd_parallel_result;

/* "data:4", "pipeline:4x8" (stages x micro-batches), "pipeline-1f1b:4x8", "tensor:4". Buckets of 25 MiB. The link is
 * left at zero. Errors: EUSAGE. */
cdmpp_status cd_parallel_plan_parse(const char *parallel, cd_parallel_plan *out, cdmpp_err *err);
/* Errors: ESCHEMA (a missing node: its name and why; data parallel without update nodes; tensor parallel
 * without norms of library operators), ERANGE, ENOMEM. */
cdmpp_status cd_parallel_training_of(const cd_network_graph *g, const cd_node_cost *c, const cd_parallel_plan *p, cd_parallel_result *out, cdmpp_err *err);
#endif
