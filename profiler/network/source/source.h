/* The door of profiler/network/source: other rooms include this header and no other of the room.
 *
 * Reads a network for a command: from an ONNX file or from the built-in zoo, as it is or as one
 * iteration of its training. It gives the graph, and the list of operators that could not be
 * read. */
#ifndef CD_PROFILER_NETWORK_SOURCE_DOOR_H
#define CD_PROFILER_NETWORK_SOURCE_DOOR_H
#include "base/cli/cli.h"
#include "profiler/network/onnx/onnx.h"
#include "profiler/network/workload/workload.h"

/* network_source -- a network by its name.
 *
 *   zoo "resnet-50", or ONNX file, or its address ─> cd_graph ─ training: gradient ─> graph of one
 *     iteration
 *
 * One thread. */

/* The first two are kinds of networks; the others are OpBench's words for where one comes from:
 * simple, one operator of the zoo; transformers, a network of the zoo that OpBench took from there;
 * local, any of the zoo; url and remoteonnx, an ONNX file at an address. */
#define CD_NETWORK_SOURCES "zoo|onnx|simple|transformers|url|local|remoteonnx"
enum {
    CD_NETWORK_SOURCE_ZOO,
    CD_NETWORK_SOURCE_ONNX,
    CD_NETWORK_SOURCE_SIMPLE,
    CD_NETWORK_SOURCE_TRANSFORMERS,
    CD_NETWORK_SOURCE_URL,
    CD_NETWORK_SOURCE_LOCAL,
    CD_NETWORK_SOURCE_REMOTE
};

typedef struct cd_network_source {
    int kind;                 /* CD_NETWORK_SOURCE_ZOO, CD_NETWORK_SOURCE_ONNX */
    const char *name;         /* of the zoo, or path or address of the file */
    int64_t batch;            /* 0: 1, or what the file says */
    int64_t size;             /* zoo: as cd_zoo_options; 0: as published */
    const char *const *dim;   /* (n_dim) ONNX: "NAME=N", as cd_onnx_options */
    const char *const *input; /* (n_input) ONNX: inputs that are data */
    uint32_t n_dim, n_input;
    bool contents; /* ONNX: as cd_onnx_options */
    bool training; /* forward, backward and update of one iteration */
} cd_network_source;

/* Is the name that of an ONNX file? Else it is one of the zoo. A path or *.onnx that does not exist
 * is a file too: the reader says that it is not there. */
bool cd_network_source_is_file(const char *name);
/* The kind of the network called `name` (NULL: none yet) where it is said to come from `said`, a
 * position in CD_NETWORK_SOURCES. Errors: EUSAGE (it does not come from there). */
cdmpp_status cd_network_source_kind(int said, const char *name, int *kind, cdmpp_err *err);
/* The file behind an address. What is fetched stays in $XDG_CACHE_HOME/cdmpp/networks
 * (~/.cache/cdmpp/networks) and is not fetched again. Of a .tar.gz: its one ONNX file. Errors: EIO
 * (it cannot be fetched: what curl or wget says), EBACKEND (neither is here), ENOMEM. */
cdmpp_status cd_network_source_fetch(cd_arena *a, const char *address, CD_KEEP const char **path,
                                     cdmpp_err *err);
/* Is the file, by its first bytes or the end of its name, one of another framework (PyTorch, Keras,
 * TensorFlow, Core ML, GGUF, safetensors)? Errors: EUSAGE, it is; with the line that exports it to
 * ONNX, of weights alone what to give in their place. A file that is not there goes by its name. */
cdmpp_status cd_network_source_foreign(const char *path, cdmpp_err *err);
/* cd_onnx_read of a path or an address. Errors: also those of cd_network_source_foreign. */
cdmpp_status cd_network_source_onnx(const char *name, const cd_onnx_options *o,
                                    CD_GIVE cd_graph **g, CD_KEEP const cd_onnx_miss **miss,
                                    uint32_t *n_miss, cdmpp_err *err);
/* The graph; *miss (n_miss): operators that could not be read, and those without a gradient (domain
 * CD_GRADIENT_DOMAIN). They live as long as the graph. Errors: those of cd_onnx_read, cd_zoo_build,
 * cd_autodiff, ENOMEM. */
cdmpp_status cd_network_source_read(const cd_network_source *s, CD_GIVE cd_graph **g,
                                    CD_KEEP const cd_onnx_miss **miss, uint32_t *n_miss,
                                    cdmpp_err *err);

/* network_sizes -- a dimension that is known only at run time stands for several sizes.
 *
 *   "1..64" ─> 1 3 8 23 64        "1..64:7" ─> 7 sizes, evenly by their logarithm */
enum { CD_SIZE_RANGE_MAX = 1 << 20, CD_SIZE_RANGE_SIZES = 5, CD_SIZE_RANGE_MOST = 64 };
typedef struct cd_size_range {
    int64_t low, high, n;
} cd_size_range;
typedef struct cd_network_sizes {
    const char *over; /* "batch", or the name before the '='; NULL: nothing has a range */
    size_t place;     /* which of dim has it; SIZE_MAX: the batch */
    int64_t *size;    /* (n) ascending */
    size_t n;
} cd_network_sizes;
bool cd_network_sizes_parse(const char *text, cd_size_range *r);
/* Which of `batch` (NULL is fine) and the texts "NAME=A..B" is a range; one at most. Errors:
 * EUSAGE, ENOMEM. */
cdmpp_status cd_network_sizes_read(cd_arena *a, const char *batch, const cd_texts *dim,
                                   cd_network_sizes *out, cdmpp_err *err);
/* *s, which has the texts that were read, at one size. "batch=1..8" is the batch of a network of
 * the zoo, too. Errors: EUSAGE (another range of such a network), ENOMEM. */
cdmpp_status cd_network_sizes_at(const cd_network_sizes *z, cd_arena *a, int64_t size,
                                 cd_network_source *s, cdmpp_err *err);

/* What was guessed or left out as the network was read (cd_graph_note), a warning each. log NULL is
 * fine. */
void cd_network_source_say(const cd_graph *g, cd_log *log);
/* The misses as cd_workload_options has them, in the graph's arena. Errors: ENOMEM. */
cdmpp_status cd_network_source_missing(cd_graph *g, const cd_onnx_miss *miss, uint32_t n,
                                       cd_workload_options *w, cdmpp_err *err);
/* "unsupported":[{"name":..,"op":..,"domain":..,"reason":..}, ..] */
void cd_network_source_put_misses(cd_buf *b, const cd_onnx_miss *miss, uint32_t n);
#endif
