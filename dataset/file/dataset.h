/* dataset -- feature rows and labels of many programs, as one HDF5 file.
 *
 *   /features/rows      f32 (R,164)    rows of program p: row_ptr[p] .. row_ptr[p+1]
 *   /features/row_ptr   i64 (N+1)
 *   /features/names     text (164)
 *   /ast/...            leaves, trees and loop paths, ragged in the same way
 *   /label/...          f64, u8 (N)
 *   /key/...            u32, u64 (N)   indices into /dict/..., source line
 *   /dict/...           text
 *   /network/...        which task occurs how often in which network
 *
 * docs/reference/dataset.md lists every array. This header is the reading side: what the
 * learner needs, in memory. Nothing here is thread-safe but reading a loaded
 * cd_dataset is. */
#ifndef CD_DATASET_H
#define CD_DATASET_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_dataset {
    size_t n, n_row;
    float *row;               /* (n_row, n_col) row-major                              */
    size_t n_col;
    int64_t *row_ptr;         /* (n+1) */
    double *latency_s;        /* (n) the default label: median of the repeats, seconds */
    double *latency_mean_s, *latency_std_s, *latency_min_s; /* (n) mean, population deviation, fastest repeat */
    double *flop;             /* (n) operations of the task; -1 when they cannot be counted */
    uint32_t *repeats;        /* (n) measurements behind the label                     */
    uint8_t *error;           /* (n) 0: measured; 1..8: TVM's error number; 254: rejected; 255: not measured.
                               * All latencies are NaN where it is not 0: skip those. */
    uint32_t *task, *device, *source_file;    /* (n) into the dictionaries             */
    uint64_t *source_line;    /* (n) 1-based                                           */
    uint8_t *is_gpu;          /* (n) target kind is a GPU                              */
    uint32_t *kind;           /* (n) into kind_name                                    */

    size_t n_task, n_device, n_source, n_network;
    char **task_name;         /* (n_task) workload keys                                */
    char **device_name;       /* (n_device) "zen5-avx512", "v100": -model= of the target, else the folder */
    size_t n_kind;
    char **kind_name;         /* (n_kind) signatures, features/task/signature.h; "": not known, in files of earlier versions */
    char **source_name;       /* (n_source) paths                                      */
    char **network_name;      /* (n_network)                                           */
    size_t n_net_task;        /* network membership in coordinate form                 */
    uint32_t *net_network, *net_task; /* (n_net_task) */
    int64_t *net_weight;      /* (n_net_task) occurrences of the task in the network   */

    size_t n_leaf;
    int64_t *leaf_ptr;        /* (n+1) leaves of a program                             */

    /* Compact ASTs, as learner/inputs/program_view.h draws them; all NULL and 0 unless
     * cd_dataset_load_ast read them. Offsets count from the first program. */
    size_t n_own, n_tree, n_path;
    const float **leaf_x;     /* (n_leaf) the leaf's (n_col) features: in `row`, or in `own` */
    int32_t *leaf_pos, *leaf_node; /* (n_leaf) index in the program's tree; node number    */
    float *own;               /* (n_own, n_col) of leaves that differ from their buffer's row */
    int64_t *path_ptr;        /* (n_leaf+1) loops around a leaf, outermost first           */
    int64_t *path_extent;     /* (n_path) trip counts                                      */
    uint8_t *path_kind;       /* (n_path) 0 serial 1 parallel 2 vectorized 3 unrolled 4 thread axis */
    int64_t *tree_ptr;        /* (n+1) */
    int32_t *tree;            /* (n_tree) pre-order numbers, -1 closes a node; tree[leaf_pos] == leaf_node */

    struct cd_spool *spool;   /* where the arrays are (base/core/spool.h); NULL: in memory. Who goes through many programs lets it rest */

    char feature_digest[65];  /* digest of the column table: names, order, version     */
    char content_digest[65];  /* digest of rows, labels and keys: names the data       */
} cd_dataset;

/* Load one or several files (parts of one data set: dictionaries are joined by
 * name, programs follow each other). The checksum of every array is compared.
 * Errors: EIO, ESCHEMA (another schema or version, arrays that disagree, damage),
 * ENOMEM; the path is in the error. */
cdmpp_status cd_dataset_load(const char *const *path, size_t n_path, CD_GIVE cd_dataset **out, cdmpp_err *err);
/* The same with the compact ASTs, about half as much memory and time again. */
cdmpp_status cd_dataset_load_ast(const char *const *path, size_t n_path, CD_GIVE cd_dataset **out, cdmpp_err *err);
/* The same as both, but arrays of more than so many bytes together are kept on disk. */
typedef struct cd_dataset_options {
    bool ast;                 /* the compact ASTs too */
    uint64_t memory;          /* bytes; 0: no limit */
    const char *folder;       /* for what is on disk; "": the default of cd_spool_new */
} cd_dataset_options;
/* More errors: those of cd_spool_new; EIO (the disk is full). */
cdmpp_status cd_dataset_load_within(const char *const *path, size_t n_path, const cd_dataset_options *how, CD_GIVE cd_dataset **out,
                                    cdmpp_err *err);
void cd_dataset_free(CD_TAKE cd_dataset *d); /* NULL is fine */
#endif
