/* link_measure -- measures the links of this machine: bytes from 64 on by factors of sqrt(2), each
 * timed until it is known.
 *
 *   host ── copy ──> host                 memcpy between two buffers that nothing else uses
 *   host ── write, read ── OpenCL device  clEnqueueWriteBuffer, clEnqueueReadBuffer, blocking
 *   host ── map ── OpenCL device          write into, read out of a mapped buffer: map, memcpy,
 *                                         unmap (CL_MAP is free where memory is shared)
 *   host ── write, read ── CUDA device    cuMemcpyHtoD, cuMemcpyDtoH, pageable host memory
 *
 *   (1) buffers are written before the first transfer; of each size the lower quartile of `repeats`
 *       rounds, which go through all sizes, so that a disturbance hits all alike;
 *   (2) a size is sent `times` in a row, so often that it takes 20 us or more;
 *   (3) the host's own copy stands for a device that shares the host's memory but has buffers of
 *       its own.
 * Belongs to one thread, which the caller has pinned if that matters. */
#ifndef CD_LINK_MEASURE_H
#define CD_LINK_MEASURE_H
#include "profiler/host/host.h"
#include "profiler/machine/link.h"

typedef struct cd_link_measure_options {
    const char *host;   /* name in the table; NULL: "cpu0" */
    const char *device; /* name in the table; of the other side */
    size_t max_bytes;   /* 0: 64 MiB */
    unsigned repeats;   /* 0: 9 */
    /* gets the spread of both directions, each the middle one of its sizes; NULL: nobody asks */
    cd_noise *noise;
} cd_link_measure_options;

/* The measured pairs behind the pieces. */
typedef struct cd_link_measure_samples {
    double bytes[96], to_s[96], from_s[96];
    size_t n;
} cd_link_measure_samples;

/* Each adds the links of both directions to the table; pairs may be NULL. Errors: EBACKEND (no
 * driver, no such device), ENOMEM, those of cd_link_table_fit. */
cdmpp_status cd_link_measure_host(cd_link_table *l, const cd_link_measure_options *a,
                                  cd_link_measure_samples *pairs, cdmpp_err *err);
/* opencl: as in profiler/backend/backend.h; map: by mapping in place of write and read. */
cdmpp_status cd_link_measure_opencl(cd_link_table *l, const cd_link_measure_options *a,
                                    const char *opencl, bool map, cd_link_measure_samples *pairs,
                                    cdmpp_err *err);
cdmpp_status cd_link_measure_cuda(cd_link_table *l, const cd_link_measure_options *a, int number,
                                  cd_link_measure_samples *pairs, cdmpp_err *err);
#endif
