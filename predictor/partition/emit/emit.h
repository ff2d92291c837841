/* offload_emit -- a plan's regions as source code that needs no cdmpp to compile: one back end a
 * device, a host program, a makefile.
 *
 *   DIR/network.json           interface: values, constants, regions with their arguments and
 *                              launches, conversions between devices
 *       region0.c              C of a CPU's region         int region0_run(void *const *argument)
 *       region1.cl, region1.c  OpenCL C and what calls it  the same
 *       region2.json           what a new back end writes; region2.c computes the same on the host
 *                              meanwhile
 *       emitted.txt            digests and names of the emitted files, for the next emission into
 *                              the folder
 *       main.c, Makefile       values once, constants once, regions in their order:
 *                              make, ./network --dump results
 *
 *   (1) arguments of a region: inputs, constants, results, each once, row-major, in host memory.
 *       What is inside stays inside and is allocated at the first call, as are contexts and
 *       compiled kernels;
 *   (2) constants are the host program's, one of each whoever reads it: from --constants FILE, as
 *       network.json lays it out, else numbers by number of the value (tensor_fill.h). They have no
 *       content here: the graph has shapes only;
 *   (3) weights stand row-major: schedules that pack them run with their unpacked form;
 *   (4) ./network --int8: values that cross to or from a device of int8 are quantised and
 *       dequantised there (offload_boundary.h);
 *   (5) equal plans give equal text.
 *
 * A new back end is one cd_emit_backend: what it gets is below, it adds files. See
 * offload_emit_c.c, 70 lines. */
#ifndef CD_EMIT_H
#define CD_EMIT_H
#include "predictor/partition/offload/offload.h"
#include "profiler/codegen/code/code.h"

/* ---- what a back end gets ---- */
typedef enum cd_emit_role {
    CD_EMIT_INPUT,
    CD_EMIT_CONSTANT,
    CD_EMIT_RESULT,
    CD_EMIT_INNER
} cd_emit_role;

typedef struct cd_emit_value {
    /* buffer of the workload: equal numbers are one value in all regions */
    uint32_t value;
    cd_emit_role role;
    cd_dtype dtype;
    const cd_graph_shape *shape;
    int64_t bytes;
} cd_emit_value;

typedef struct cd_emit_step { /* a group */
    uint32_t group;
    const char *name, *type; /* "Conv_1", "Conv+Relu" */
    /* NULL where the back end wants none. Equal pointers: the same program */
    const cd_codegen_code *code;
    uint32_t n_arg;
    /* (n_arg) positions in value[], as the program takes them: what is read, then what is
     * written */
    const uint32_t *arg;
} cd_emit_step;

typedef struct cd_emit_region {
    const char *name; /* "region0": files and symbols begin so */
    const char *device, *why;
    uint32_t n_value, n_arg, n_step;
    /* (n_value) the first n_arg are arguments: inputs, constants, results */
    const cd_emit_value *value;
    const cd_emit_step *step;  /* (n_step) in an order to run in */
    const cd_offload_ops *ops; /* operators of groups, with attributes */
} cd_emit_region;

typedef struct cd_emit_file {
    char name[64];
    cd_buf text;
} cd_emit_file;
typedef struct cd_emit_files {
    uint32_t n, cap;
    cd_emit_file *file;
} cd_emit_files;
/* The list of emitted files in a folder (cd_emit_write). */
#define CD_EMIT_LIST "emitted.txt"
/* A new empty file with the name `name` followed by `end`. Returns its text, borrowed and valid
 * until the next file is added; NULL: no memory. */
cd_buf *cd_emit_add(cd_emit_files *f, const char *name, const char *end);

typedef struct cd_emit_backend {
    const char *name, *brief;
    /* cd_dialect of the programs that it wants; -1: none, it reads the operators */
    int dialect;
    bool runs;           /* NAME_run is in what it writes; else C of the host replaces it */
    const char *library; /* for the linker, "-lOpenCL"; NULL: none */
    cdmpp_status (*emit)(const cd_emit_region *r, cd_emit_files *out, cdmpp_err *err);
} cd_emit_backend;
extern const cd_emit_backend cd_emit_c, cd_emit_opencl, cd_emit_json;

/* ---- a plan ---- */
typedef struct cd_offload_emit_options {
    const cd_offload_net_plan *plan;
    const cd_emit_backend *const *backend; /* (n_device) */
    /* (n_device) "llvm -mcpu=...", "opencl": what schedules are made for */
    const char *const *target;
    /* The record that a group runs with; NULL: a simple schedule (tune_baseline.h). The whole
     * callback may be NULL. */
    const char *(*schedule)(void *ctx, uint32_t group, uint32_t device);
    void *ctx;
    /* no schedule at all: the definitions as they are written. C alone */
    bool naive;
} cd_offload_emit_options;

/* Errors: EUNSUPPORTED (a group that nothing defines; a program that the dialect cannot have),
 * EREJECTED, both with group and device, ENOMEM, those of cd_record_read for a schedule. Free the
 * files after an error too. */
cdmpp_status cd_offload_emit(const cd_offload_emit_options *a, cd_emit_files *out, cdmpp_err *err);
/* Makes the folder where there is none. Files that an earlier emission left there, by its list
 * (CD_EMIT_LIST), and this one does not write, go; no others do. One of them that is no longer as
 * it was written stays, and nothing is written. Errors: EINVALID (such a file; a folder's name that
 * is too long), ESCHEMA (a list that is none), EIO, ENOMEM, with the path. */
cdmpp_status cd_emit_write(const cd_emit_files *f, const char *dir, cdmpp_err *err);
void cd_emit_files_free(cd_emit_files *f);
#endif
