/* The door of profiler/runtime/multi: other rooms include this header and no other of the room.
 *
 * The room runs programs and copies on several devices of this machine at once: each device goes at
 * its own pace, and an action waits only for the actions that it needs. The room's callers are
 * partition (a network split over devices) and the tests.
 *
 *   buffers  0 x (host)   1 y (host)   2 y[0:20] = window of 1   3 x (ocl0's own memory)
 *   actions  cpu0: run conv.H0 (0 -> 2) ──────────────────────────┐
 *            ocl0: copy 0 -> 3 ──> run conv.H1 (3 -> 4) ──> copy 4 -> 1 ──> cpu0: run dense (1 ->
 *     5)
 *
 *   (1) an action runs once a pass, after all that it names, on its device; a device takes its
 *       actions in the order of the list;
 *   (2) memory 0 is the host's: devices of kind CPU use it; an OpenCL device either uses it in
 *       place (memory 0) or has memory of its own (memory > 0), which only its programs and copies
 *       to and from memory 0 touch;
 *   (3) a window is a piece of another buffer, at an offset in bytes; in one memory only;
 *   (4) NATIVE: compiled C handed to an OpenCL device's queue (clEnqueueNativeKernel), where the
 *       device can; OPENCL: kernels of OpenCL C;
 *   (5) constants are written once at open, packed for the programs that want them so
 *       (cd_codegen_pack);
 *   (6) when a device fails, the pass ends after the others have stopped, and the pass names the
 *       device; what inputs and constants hold in memory 0 stays as it was, so another net without
 *       that device can run the pass again. A device whose driver failed takes no more passes, and
 *       what the driver runs late does nothing;
 *   (7) values do not depend on the timing: whoever writes bytes that another action touches is
 *       ordered with it, or open is refused.
 *   (8) content is zero until written or filled; a copy within memory 0 may be any device's, one to
 *       or from memory m only that of m's device.
 * A NATIVE device on memory 0 is handed all its actions as one native kernel, which waits for other
 * devices itself, for 0.2 ms, and is handed out again after longer waits. PoCL puts it on a
 * processor where POCL_AFFINITY=1 says so. Who waits for another device polls for 0.2 ms, then
 * sleeps; it sleeps at once where another thread had its processor meanwhile, or where two devices
 * share one, so that it takes no time from whom it waits for. Threads of its own, one a device; the
 * caller waits. One pass at a time. Seconds, bytes. */
#ifndef CD_MULTI_H
#define CD_MULTI_H
#include "base/core/core.h"
#include "profiler/backend/backend.h"

typedef enum cd_multi_device_kind {
    CD_MULTI_CPU,
    CD_MULTI_NATIVE,
    CD_MULTI_OPENCL
} cd_multi_device_kind;
#define CD_MULTI_KINDS "cpu|native|opencl"

typedef struct cd_multi_device {
    const char *name;
    cd_multi_device_kind kind;
    /* which device, as profiler/host/opencl_device.h selects it; of CPU NULL */
    const char *opencl;
    /* its thread stays there; -1: anywhere. An OpenCL device's own threads are not moved */
    int core;
    uint32_t memory; /* 0: the host's */
    /* every program runs this many times: a device made slower on purpose; 0: 1 */
    unsigned times;
} cd_multi_device;

#define CD_MULTI_OWN UINT32_MAX
typedef struct cd_multi_buffer {
    const char *name;
    uint32_t memory;
    /* window of this buffer (smaller number, itself no window), or CD_MULTI_OWN */
    uint32_t of;
    int64_t offset, bytes;
    bool constant;
    cd_dtype dtype;
    uint32_t rank;
    const int64_t *shape; /* (rank) of constants and of what a program wants packed */
} cd_multi_buffer;

typedef struct cd_multi_copy { /* a box from one buffer to another */
    uint32_t from, to;         /* buffers */
    uint32_t rank;
    int64_t n[CD_BOX_RANK], from_stride[CD_BOX_RANK], to_stride[CD_BOX_RANK]; /* elements */
    int64_t from_first, to_first;                                             /* elements */
    size_t size; /* bytes of an element */
} cd_multi_copy;

typedef struct cd_multi_action {
    const char *name;
    uint32_t device;
    const cd_build *build;  /* a program; NULL: a copy */
    const uint32_t *buffer; /* (build->code->n_arg) */
    cd_multi_copy copy;
    uint32_t n_after;
    const uint32_t *after; /* (n_after) smaller numbers */
    /* of a program that cd_multi_splits: iterations begin .. end-1 alone; end 0: all of it */
    int64_t begin, end;
} cd_multi_action;

typedef struct cd_multi_net {
    uint32_t n_device, n_buffer, n_action;
    const cd_multi_device *device;
    const cd_multi_buffer *buffer;
    const cd_multi_action *action;
} cd_multi_net;

typedef struct cd_multi_executor cd_multi_executor;
/* Whether actions may run pieces of this program: compiled C that is one parallel loop, with no
 * scratch but that of a thread. Pieces of different iterations on the same buffers need no order
 * among them: together they do what the program does, to the bit (codegen/code.h, 5). */
bool cd_multi_splits(const cd_codegen_code *c);
/* Everything borrowed until close. Errors: EINVALID (a window outside its buffer or of another
 * memory; a buffer smaller than a program's parameter; two actions that touch the same bytes, one
 * writing, without an order: both named), EBACKEND (device, object), EIO (thread), ENOMEM. */
cdmpp_status cd_multi_executor_open(CD_KEEP const cd_multi_net *n, CD_GIVE cd_multi_executor **out,
                                    cdmpp_err *err);
/* Ends the threads and releases everything; NULL is fine. After a driver failed and never said that
 * its commands ended, their memory is kept. */
void cd_multi_executor_close(CD_TAKE cd_multi_executor *r);
/* The whole content of a buffer; from constants before the first pass: they are packed again.
 * Errors: ERANGE, EBACKEND. */
cdmpp_status cd_multi_executor_write(cd_multi_executor *r, uint32_t buffer, const void *from,
                                     cdmpp_err *err);
cdmpp_status cd_multi_executor_read(cd_multi_executor *r, uint32_t buffer, void *to,
                                    cdmpp_err *err);
/* As cd_tensor_fill, by number. */
cdmpp_status cd_multi_executor_fill(cd_multi_executor *r, uint32_t buffer, uint64_t seed,
                                    cdmpp_err *err);

typedef struct cd_multi_action_time {
    double start_s, end_s; /* from the beginning of the pass, host's clock */
    bool done;
} cd_multi_action_time;
/* One pass over all actions. ran (n_action) or NULL: when each action ran. *total_s: the end of the
 * last action that was done. Errors: EBACKEND: device *failed (NULL: not wanted; UINT32_MAX
 * otherwise). */
cdmpp_status cd_multi_executor_pass(cd_multi_executor *r, cd_multi_action_time *ran,
                                    double *total_s, uint32_t *failed, cdmpp_err *err);

/* ---- for tests, and for what-ifs on real devices ---- */
/* From the next pass on the device runs every program `times` times; 0: as many times as its
 * cd_multi_device says. */
void cd_multi_executor_slow(cd_multi_executor *r, uint32_t device, unsigned times);
/* The device fails before its action number `after` of a pass (counted from 0); UINT32_MAX:
 * never. */
void cd_multi_executor_break(cd_multi_executor *r, uint32_t device, uint32_t after);
/* Bytes copied by copies of the last pass, between memories and within. */
void cd_multi_executor_moved(const cd_multi_executor *r, int64_t *between, int64_t *within);
#endif
