/* Private to the room: places in memories, steps (an action made ready), workers (a device and its
 * thread), and what the files of the room share.
 *
 *   buffers ─┐
 *   packed  ─┼─> places ┬─ memory 0: one block of the host
 *   scratch ─┘          │    ── each OpenCL device in place: CL_MEM_USE_HOST_PTR
 *                       └─ memory m: a buffer of the device
 *
 *   walk    CPU, and NATIVE on the host's memory: one function goes through the device's actions,
 *           as its thread or as a native kernel; the native kernel comes back where another device
 *           lets it wait, and is handed out again
 *   queue   OPENCL, and NATIVE with memory of its own: each action is handed to the queue as soon
 *           as other devices allow it
 *
 * A step's word is a number that only grows: 2 * pass says that the step is done in this pass, 2 *
 * pass + 1 that it is lost (it will not be done). A thread that waits for a word polls it for a
 * while, then sleeps on it (futex). */
#ifndef CD_MULTI_EXECUTOR_INTERNAL_H
#define CD_MULTI_EXECUTOR_INTERNAL_H
#include <pthread.h>
#include <stdatomic.h>

#include "profiler/runtime/multi/multi.h"

enum { CD_MULTI_ALIGN = 128 };     /* of places: what PoCL wants */
enum { CD_MULTI_CHUNK = 1 << 16 }; /* bytes of content on their way to a device */

/* a copy in bytes: the innermost dimension is a run on both sides */
typedef struct cd_multi_copy_box {
    uint32_t rank;
    int64_t n[CD_BOX_RANK + 1], from[CD_BOX_RANK + 1], to[CD_BOX_RANK + 1]; /* strides */
    int64_t from_first, to_first, bytes;
} cd_multi_copy_box;

typedef struct cd_multi_place {
    uint32_t memory;
    uint32_t root;         /* place of which it is a window, or itself */
    int64_t offset, bytes; /* in its root */
    int64_t at;            /* memory 0: in the block */
} cd_multi_place;

/* A constant in the order that a program wants: one for all actions of that program on that
 * memory. */
typedef struct cd_multi_packed {
    const cd_codegen_code *code;
    uint32_t param, buffer, place;
    struct cd_multi_packed *next;
} cd_multi_packed;

typedef struct cd_multi_native { /* what a native kernel is given */
    struct cd_multi_worker *worker;
    uint32_t step;
    void *arg[]; /* of the program, then those of the buffers, each once */
} cd_multi_native;

typedef struct cd_multi_step {
    _Alignas(64) cd_counter word;
    double start_s, end_s;
    uint32_t n_wait, *wait; /* steps of other devices */
    bool asked;             /* somebody waits for it: queues tell when it is done */
    /* programs */
    void *handle;
    cd_object_loader_entry *entry;
    cd_object_loader_part *part; /* of an action that is a piece */
    int begin, end;
    uint32_t n_place, *place; /* (n_place) of the code's buffers */
    void **arg;               /* (n_place) memory 0 */
    cd_loaded *program;
    cd_multi_native *native; /* queue: (n_native bytes) */
    size_t n_native;
    /* (n_place) buffers of the device; native: (n_mem) different ones */
    cd_cl *mem;
    uint32_t n_mem, *which; /* (n_place) native */
    const void **hole;      /* (n_mem) where their pointers go */
    /* (n_place) a window that cannot be a buffer: mem is a copy of it */
    bool *beside;
    cd_multi_copy_box box; /* copies */
    cd_cl first, last;     /* events of the pass */
    double handed_s;
    struct cd_multi_worker *worker;
} cd_multi_step;

typedef struct cd_multi_worker { /* a device */
    cd_multi_executor *net;
    const cd_multi_device *is;
    uint32_t number, n, *action; /* (n) in their order */
    double spin_s;               /* how long it polls for another device before it sleeps */
    bool walks;                  /* kind walk, above */
    unsigned times, slow;        /* of this pass; 0: as given */
    uint32_t breaks;
    /* its driver failed: no more passes, and what it runs late does nothing */
    atomic_bool dead;
    _Atomic uint32_t inside; /* native kernels at work */
    /* native kernels and words about events that the driver has yet to end */
    _Atomic uint32_t owed;
    cd_backend *backend;
    const cd_opencl *cl;
    cd_cl *mem;                   /* (n_place) NULL: not needed */
    uint32_t n_scratch, *scratch; /* places */
    uint32_t at;                  /* of the walk */
    uint32_t back;                /* native kernels that came back */
    _Atomic int32_t trouble;      /* what the driver says of a command, later */
    cdmpp_status status;          /* of this pass, or of its beginning */
    cdmpp_err err;
    pthread_t thread;
    bool begun;
} cd_multi_worker;

struct cd_multi_executor {
    cd_arena arena;
    const cd_multi_net *dn;
    cd_multi_step *step; /* (n_action), aligned */
    void *step_block;
    cd_multi_worker *worker; /* (n_device) */
    cd_multi_place *place;
    uint32_t n_place;
    cd_multi_packed *packed;
    unsigned char *block;
    size_t n_block;
    /* stage: content of a constant, packed content, of memories > 0 */
    unsigned char *chunk, *stage[2];
    cd_build *build; /* (n_build) of OpenCL C that came without an object */
    uint32_t n_build;
    double begin_s;
    bool timed;
    atomic_bool stop, end;
    cd_counter pass, out; /* out: devices that have ended this pass */
    _Atomic uint32_t failed;
};

/* ---- multi_executor_check.c: what cannot be run ---- */
/* Numbers, sizes, memories and kinds make sense. Errors: EINVALID, EBACKEND (a program that was not
 * compiled). */
cdmpp_status cd_multi_check(const cd_multi_net *n, cdmpp_err *err);
/* (7) of multi.h, for a net that cd_multi_check accepts. Errors: EINVALID with both actions' names,
 *     ENOMEM. */
cdmpp_status cd_multi_check_order(const cd_multi_net *n, cdmpp_err *err);
/* The buffer that owns a buffer's bytes: itself, or the one of which it is a window. */
static inline uint32_t cd_multi_buffer_root(const cd_multi_net *n, uint32_t buffer) {
    return n->buffer[buffer].of == CD_MULTI_OWN ? buffer : n->buffer[buffer].of;
}

/* ---- multi_executor.c: where everything is ---- */
/* The bytes of a place in memory 0. */
static inline unsigned char *cd_multi_place_at(const cd_multi_executor *r, uint32_t place) {
    return r->block + r->place[place].at;
}

/* ---- multi_executor_run.c: who waits for whom ---- */
#define CD_MULTI_SPIN_S 2e-4
/* of devices that share a processor: what one polls the other cannot use */
#define CD_MULTI_SHARED_SPIN_S 1e-6
/* what a step's word becomes in this pass */
uint32_t cd_multi_pass_value(const cd_multi_executor *r, bool lost);

/* A driver may run a native kernel or a callback late, after its device was given up. Each of them
 * enters first: if the device is dead it does nothing, and who declares the device dead waits for
 * those that are inside. */

/* ---- multi_executor_run.c: threads, and the walk over actions on the host's memory ---- */
/* One thread a device; returns when all stand ready. Errors: EIO. */
cdmpp_status cd_multi_threads_start(cd_multi_executor *r, cdmpp_err *err);
void cd_multi_threads_stop(cd_multi_executor *r);

/* ---- multi_executor.c: OpenCL devices made ready ---- */
static inline const cd_opencl_api *cd_multi_api(const cd_multi_worker *w) { return &w->cl->api; }
/* EBACKEND with the device, what failed and OpenCL's reason. */
cdmpp_status cd_multi_queue_error(const cd_multi_worker *w, int32_t st, const char *what,
                                  cdmpp_err *err);

/* ---- multi_executor_run.c: passes of OpenCL devices ---- */
/* True: nothing of a device that failed can touch the net's memory any more. */
bool cd_multi_queue_finished(cd_multi_worker *w);
#endif
