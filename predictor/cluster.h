/* cluster -- what an iteration of training takes on many devices, from what it takes on one.
 *
 *   data parallel    every device a slice of the batch; gradients summed by a ring: 2 (n-1)/n bytes / bandwidth + 2 (n-1) latency,
 *                    in buckets of bucket_bytes that start as soon as their last gradient is there (overlap)
 *   pipeline         stages of consecutive nodes; micro-batches m: fill and drain (m + s - 1) of the slowest stage and the
 *                    links between them (GPipe; 1F1B has the same length and less memory)
 *   tensor parallel  products cut in n; two ring sums of the activations a layer and direction
 *
 * Closed forms, and the same as a net for replay.h: the two are compared in tests. Sources: ring allreduce, Patarasuk and Yuan
 * 2009; GPipe 2019; Megatron-LM 2019. Seconds, bytes. */
#ifndef CD_CLUSTER_H
#define CD_CLUSTER_H
#include "predictor/netcost.h"

typedef struct cd_clink {
    double latency_s, bytes_per_s; /* each way, of one device to its neighbour */
} cd_clink;

/* Sum of `bytes` over n devices in a ring; 0 for n = 1. Errors (NaN): n < 1, bytes_per_s <= 0. */
double cd_cluster_ring_s(int64_t bytes, uint32_t n, cd_clink link);
#endif
