/* machine_description -- the devices that a plan is made for: what they are, what starting and
 * waiting cost, how bytes get from one to the other.
 *
 *   {"cdmpp_machine": 1,
 *    "devices": [{"name": "cpu0", "kind": "cpu", "core": 0, "target": "llvm -mcpu=...", "as":
 *    "granite-rapids", "scale": 1,
 *                 "memory": 0, "launch_s": 2e-7, "sync_s": 1e-6, "wake_s": 0},
 *                {"name": "ocl0", "kind": "native", "opencl": "pocl:0/2.1", "core": 1, ...}],
 *    "links": [...]}                     link.h's
 *
 *   (1) as: the device of the cost model that it is; scale: its times over that one's; times: every
 *       program is really run so often (a device made slow on purpose), not part of scale;
 *   (2) launch_s: what starting a program costs beyond the program; sync_s: what waiting for
 *       another device costs; wake_s: what a pass takes longer because the device has any part in
 *       it (absent: 0);
 *   (3) mem_gb: the size of its memory, 0 or absent: no limit; of devices of one memory the
 *       smallest counts. Devices of one memory read each other's results in place; others need a
 *       link;
 *   (4) a name without a description: "cpuN" is core N of this machine, "oclN" an OpenCL device, a
 *       part of it with one unit where it is a processor: kind native if it can, else opencl;
 *   (5) contention: optional, {"peak_bytes_per_s", "beside", "turn", "pairs", "error"} of
 *       contention.h;
 *   (6) noise: optional, {"spread", "others", "figure", "kept"} of the measurement as a whole
 *       (profiler/host/noise.h); kept: it was written though the machine was too noisy;
 *   (7) of a device a file must have name, kind, launch_s, sync_s; the rest may be left out: core
 *       -1, scale 1, times 1, memory 0.
 * Built by one thread, then read-only. Seconds, bytes. */
#ifndef CD_MACHINE_DESCRIPTION_H
#define CD_MACHINE_DESCRIPTION_H
#include "profiler/machine/link.h"
#include "profiler/machine/contention.h"
#include "profiler/host/host.h"

enum { CD_MACHINE_DEVICES = 8 };
#define CD_MACHINE_KINDS "cpu|native|opencl|cuda|model"

typedef struct cd_machine_device {
    /* "cpu", "native", "opencl" (profiler/runtime/multi); "cuda": on this machine, but that
     * executor cannot use it; "model": not on this machine, for plans alone */
    const char *name, *kind;
    const char *opencl, *target, *as; /* NULL: none */
    int core;                         /* -1 */
    uint32_t memory;
    unsigned times; /* >= 1; 0 is taken for 1 */
    double scale, launch_s, sync_s, wake_s;
    double mem_gb; /* 1e9 bytes that its memory has; 0: not known, or no limit */
} cd_machine_device;

typedef struct cd_machine {
    cd_arena arena;
    uint32_t n;
    cd_machine_device device[CD_MACHINE_DEVICES];
    cd_link_table links;
    cd_contention contention; /* zeroed: none */
    /* noise is known; it is much, and the file was written all the same */
    bool measured, kept;
    cd_noise noise;
} cd_machine;

/* An empty machine; free everything in it (a zeroed one is fine). */
void cd_machine_init(cd_machine *m);
void cd_machine_free(cd_machine *m);
/* Read a description into an empty machine. Errors: EIO, EPARSE, ESCHEMA (also a link of a device
 * that is not there), EINVALID (two of one name, scale <= 0), ERANGE (a number out of range), with
 * path and key; ENOMEM. Free after an error too. */
cdmpp_status cd_machine_read(cd_machine *m, const char *path, cdmpp_err *err);
/* The same, or of a file of links alone: a machine without devices. */
cdmpp_status cd_machine_read_or_links(cd_machine *m, const char *path, cdmpp_err *err);
/* What running at the same time costs, of a description. Errors: as above; ENODATA (it says nothing
 * about that). */
cdmpp_status cd_machine_contention(const char *path, cd_contention *out, cdmpp_err *err);
/* Of text in memory. */
cdmpp_status cd_machine_parse(cd_machine *m, const char *text, size_t n, cdmpp_err *err);
/* temporary file, renamed */
cdmpp_status cd_machine_write(const cd_machine *m, const char *path, cdmpp_err *err);
void cd_machine_print(const cd_machine *m, cd_buf *out);
/* Position of a device; UINT32_MAX: none. */
uint32_t cd_machine_find(const cd_machine *m, const char *name);
/* Adds one; strings are copied. Errors: EINVALID, ERANGE (too many), ENOMEM. */
cdmpp_status cd_machine_add(cd_machine *m, const cd_machine_device *d, cdmpp_err *err);
/* Only those of the list "cpu0,ocl0", in its order, with the links between them; out need not be
 * set up before. Errors: ESCHEMA (one is not there: names those that are), EINVALID (one stands
 * there twice), ENOMEM. Free `out` after an error too. */
cdmpp_status cd_machine_choose(const cd_machine *m, const char *list, cd_machine *out,
                               cdmpp_err *err);
#endif
