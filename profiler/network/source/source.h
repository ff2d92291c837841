/* The door of profiler/network/source: other rooms include this header and no other of the room.
 *
 * Reads a network for a command: from an ONNX file or from the built-in zoo, as it is or as one iteration of its training. It gives
 * the graph, and the list of operators that could not be read. */
#ifndef CD_PROFILER_NETWORK_SOURCE_DOOR_H
#define CD_PROFILER_NETWORK_SOURCE_DOOR_H
#include "profiler/network/onnx/onnx.h"
#include "profiler/network/workload/workload.h"

/* network_source -- a network by its name.
 *
 *   zoo "resnet-50", or ONNX file ──> cd_graph ── training: gradient ──> graph of one iteration
 *
 * One thread. */

#define CD_NETWORK_SOURCES "zoo|onnx"
enum { CD_NETWORK_SOURCE_ZOO, CD_NETWORK_SOURCE_ONNX };

typedef struct cd_network_source {
    int kind;                   /* position in CD_NETWORK_SOURCES */
    const char *name;           /* of the zoo, or path of the file */
    int64_t batch;              /* 0: 1, or what the file says */
    int64_t size;               /* zoo: as cd_zoo_options; 0: as published */
    const char *const *dim;     /* (n_dim) ONNX: "NAME=N", as cd_onnx_options */
    const char *const *input;   /* (n_input) ONNX: inputs that are data */
    uint32_t n_dim, n_input;
    bool contents;              /* ONNX: as cd_onnx_options */
    bool training;              /* forward, backward and update of one iteration */
} cd_network_source;

/* Is the name that of an ONNX file? Else it is one of the zoo. A path or *.onnx that does not exist is a file too: the reader says that
 * it is not there. */
bool cd_network_source_is_file(const char *name);
/* The graph; *miss (n_miss): operators that could not be read, and those without a gradient (domain CD_GRADIENT_DOMAIN). They live as
 * long as the graph. Errors: those of cd_onnx_read, cd_zoo_build, cd_autodiff, ENOMEM. */
cdmpp_status cd_network_source_read(const cd_network_source *s, CD_GIVE cd_graph **g, CD_KEEP const cd_onnx_miss **miss, uint32_t *n_miss, cdmpp_err *err);
/* The misses as cd_workload_options has them, in the graph's arena. Errors: ENOMEM. */
cdmpp_status cd_network_source_missing(cd_graph *g, const cd_onnx_miss *miss, uint32_t n, cd_workload_options *w, cdmpp_err *err);
/* "unsupported":[{"name":..,"op":..,"domain":..,"reason":..}, ..] */
void cd_network_source_put_misses(cd_buf *b, const cd_onnx_miss *miss, uint32_t n);
#endif
