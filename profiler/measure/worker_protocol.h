/* worker_protocol -- jobs of supervisor and worker as bytes.
 *
 *   | u32 bytes | job: numbers and texts in the order of cd_job |      this process -> supervisor -> worker
 *   | u32 bytes | cd_measure_result as it is |                               and back
 *
 * Both ends are the same program on the same machine, one the other's fork: numbers go as they
 * are in memory. A C program travels as the path of its object, others as text. No state. */
#ifndef CD_WORKER_PROTOCOL_H
#define CD_WORKER_PROTOCOL_H
#include "profiler/measure/measure.h"

typedef struct cd_job {
    const char *backend, *device, *target;
    int threads;
    bool fresh;                 /* the worker ends after this job */
    bool pin;
    double limit_s;
    uint64_t memory_bytes;
    double best_s;              /* noise_probe.h */
    cd_timing_policy timing;
    cd_codegen_code code, reference;    /* reference without launches: none */
    const cd_measure_arg *arg;  /* (n_shape) code's parameters; NULL: not needed */
    uint32_t n_shape;
    const char *object, *reference_object; /* "": build it */
    const char *cache;          /* where GPU binaries are kept, as object_cache.h has it; NULL: the user's */
    uint64_t cache_bytes;
} cd_job;

#define CD_ANSWER_NO_DEVICE (-1) /* an error_no: no program is to blame */
typedef struct cd_worker_result {
    double best_s;
    cd_measure_result measured;
} cd_worker_result;

/* Append the job's bytes. Errors: ENOMEM. */
cdmpp_status cd_worker_protocol_put(cd_buf *b, const cd_job *job, cdmpp_err *err);
/* Everything of *out lives in the bytes or the arena. Errors: EPARSE (cut short), ENOMEM. */
cdmpp_status cd_worker_protocol_get(cd_arena *a, const void *bytes, size_t n, cd_job *out, cdmpp_err *err);

/* A frame of n bytes; false: the other end is gone. */
bool cd_worker_protocol_send(int fd, const void *bytes, size_t n);
/* The next frame, freed by the caller (cd_mem_free); false: the other end is gone, or no memory. */
bool cd_worker_protocol_receive(int fd, CD_GIVE void **bytes, size_t *n);
#endif
