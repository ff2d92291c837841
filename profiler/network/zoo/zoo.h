/* zoo -- well-known networks, built without any file.
 *
 *   cd_zoo_build("resnet-50", {.batch = 8, .size = 192}) ──> cd_graph
 *
 * Networks to try things with, and the training set of the cost models: no ONNX file is needed. The
 * structure of each network is that of its paper and of the implementation that most people measure
 * (torchvision, Hugging Face); operators and attributes are ONNX's. Weights are shapes only. Batch
 * and size change every shape: `size` is the edge of the image, the length of the sequence, or the
 * number of vertices. */
#ifndef CD_ZOO_H
#define CD_ZOO_H
#include "profiler/network/graph/graph.h"

typedef struct cd_zoo_options {
    int64_t batch; /* 0: 1 */
    int64_t size;  /* 0: what the network was published with */
} cd_zoo_options;

typedef struct cd_zoo_entry {
    const char *name; /* "resnet-50" */
    /* "cnn", "cnn3d", "rnn", "transformer", "gan", "gcn"; "rcnn": with operators that stay on the
     * host; "operator": one operator alone */
    const char *family;
    int64_t size;     /* as published */
    const char *what; /* what `size` counts, for help */
} cd_zoo_entry;

/* Networks of the zoo: number, and entry i < cd_zoo_count(). */
size_t cd_zoo_count(void);
CD_KEEP const cd_zoo_entry *cd_zoo_at(size_t i);
/* By a name as cd_zoo_build takes it; NULL: no such network. */
CD_KEEP const cd_zoo_entry *cd_zoo_find(const char *name);
/* All of them: a line each under a heading, and the value of a JSON member "networks" in an object.
 * Out of memory: out->oom. */
void cd_zoo_print_text(cd_buf *out);
void cd_zoo_print_json(cd_buf *out);
/* A network by name, with shapes for the batch and size of *o. Names are compared by letters and
 * digits only, without case: "ResNet_50" is resnet-50. Names of other systems are known, too:
 * "nasnetalarge" is nasnet-large, "bert" is bert-base. "gcn@FILE" is gcn over the edges of a text
 * file (zoo_edges.c). Errors: ESCHEMA (no such network; names those that are near), ERANGE (a batch
 * or size below 1, or a size that leaves nothing of an image), ENOMEM. */
cdmpp_status cd_zoo_build(const char *name, const cd_zoo_options *o, CD_GIVE cd_graph **out,
                          cdmpp_err *err);
#endif
