/* dataset_internal -- what dataset.c and dataset_ast.c share: one file of a data set. */
#ifndef CD_DATASET_INTERNAL_H
#define CD_DATASET_INTERNAL_H
#include "dataset/file/file.h"
#include "base/text/text.h"

typedef enum {
    CD_NAME_TASK,
    CD_NAME_DEVICE,
    CD_NAME_SOURCE,
    CD_NAME_NETWORK,
    CD_NAME_KIND,
    CD_NAME_COUNT
} cd_name_id;

/* How many of each: of one file, or where the next file goes in the joined arrays. */
typedef struct cd_sizes {
    uint64_t program, row, net, leaf, own, tree, path; /* the last three: 0 without ASTs */
    uint64_t step;                                     /* 0 unless they are read */
    uint64_t fact; /* programs with a place for facts; 0 unless they are read */
} cd_sizes;

/* One file of a data set: its sizes, and its numbers of names in the joined lists. */
typedef struct cd_dataset_file {
    cd_h5 h;
    cd_sizes n;
    uint32_t *map[CD_NAME_COUNT];
    size_t n_map[CD_NAME_COUNT];
    uint32_t no_kind; /* number of the kind that is not known, where the file has none */
    char digest[65];
    cd_spool *spool; /* rests while arrays are read; NULL: none */
} cd_dataset_file;

/* ---- dataset_ast.c ---- */

/* ---- dataset_order.c ---- */
/* Programs between two rests of a loop over all. */
enum { CD_DATASET_REST = 16384 };
#endif
