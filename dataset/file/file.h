/* The door of dataset/file: other rooms include this header and no other of the room.
 *
 * The file of a data set (HDF5, docs/reference/dataset.md): what is in it (layout.h) and how it is
 * read into memory (dataset.h). dataset/extract writes it; dataset/split and learner/inputs read
 * the loaded cd_dataset and never the file. */
#ifndef CD_DATASET_FILE_DOOR_H
#define CD_DATASET_FILE_DOOR_H
#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"
#include "features/analytic/analytic.h"

/* dataset -- feature rows and labels of many programs, as one HDF5 file.
 *
 *   /features/rows      f32 (R,164)    rows of program p: row_ptr[p] .. row_ptr[p+1]
 *   /features/row_ptr   i64 (N+1)
 *   /features/names     text (164)
 *   /ast/...            leaves, trees and loop paths, ragged in the same way
 *   /steps/...          steps of the schedules, if they were asked for
 *   /facts/...          f32 (N,CD_N_FACTS), u8 (N)   what a CPU does with a program
 *   /label/...          f64, u8 (N)
 *   /key/...            u32, u64 (N)   indices into /dict/..., source line
 *   /dict/...           text
 *   /network/...        which task occurs how often in which network
 *
 * docs/reference/dataset.md lists every array. This header is the reading side: what the
 * learner needs, in memory. Nothing here is thread-safe but reading a loaded
 * cd_dataset is. */

/* Which facts a program has, or why it has none. CD_FACTS_GPU: a GPU program in a file of before
 * these had facts. */
typedef enum cd_facts_state {
    CD_FACTS_THERE,
    CD_FACTS_GPU,
    CD_FACTS_UNSUPPORTED,
    CD_FACTS_ABSENT,
    CD_FACTS_THERE_GPU
} cd_facts_state;
static inline bool cd_facts_are_there(uint8_t state) {
    return state == CD_FACTS_THERE || state == CD_FACTS_THERE_GPU;
}
/* Of a program that has facts. */
static inline cd_facts_set cd_facts_set_of(uint8_t state) {
    return state == CD_FACTS_THERE_GPU ? CD_FACTS_OF_GPU : CD_FACTS_OF_CPU;
}
/* "a GPU program"; a state that no version writes: "of an unknown state". */
const char *cd_layout_facts_text(uint8_t state);

typedef struct cd_dataset {
    size_t n, n_row;
    /* (n_row, n_col) row-major; of each program in the order of cd_rows_order */
    float *row;
    size_t n_col;
    int64_t *row_ptr;  /* (n+1) */
    double *latency_s; /* (n) the default label: median of the repeats, seconds */
    /* (n) mean, population deviation, fastest repeat */
    double *latency_mean_s, *latency_std_s, *latency_min_s;
    double *flop;      /* (n) operations of the task; -1 when they cannot be counted */
    uint32_t *repeats; /* (n) measurements behind the label                     */
    /* (n) 0: measured; 1..8: TVM's error number; 254: rejected; 255: not measured. All latencies
     * are NaN where it is not 0: skip those. */
    uint8_t *error;
    uint32_t *task, *device, *source_file; /* (n) into the dictionaries             */
    uint64_t *source_line; /* (n) 1-based                                           */
    uint8_t *is_gpu;       /* (n) target kind is a GPU                              */
    uint32_t *kind;        /* (n) into kind_name                                    */

    size_t n_task, n_device, n_source, n_network;
    char **task_name; /* (n_task) workload keys                                */
    /* (n_device) "zen5-avx512", "v100": -model= of the target, else the folder */
    char **device_name;
    size_t n_kind;
    /* (n_kind) signatures, features/task/task.h; "": not known, in files of earlier versions */
    char **kind_name;
    char **source_name;               /* (n_source) paths                                      */
    char **network_name;              /* (n_network)                                           */
    size_t n_net_task;                /* network membership in coordinate form                 */
    uint32_t *net_network, *net_task; /* (n_net_task) */
    int64_t *net_weight;              /* (n_net_task) occurrences of the task in the network   */

    size_t n_leaf;
    int64_t *leaf_ptr; /* (n+1) leaves of a program                             */

    /* Compact ASTs, as learner/inputs/program_view.h draws them; all NULL and 0 unless
     * cd_dataset_load_ast read them. Offsets count from the first program. */
    size_t n_own, n_tree, n_path;
    /* (n_leaf) the leaf's features: this row of `row`, or row ~leaf_row of `own` where it is < 0 */
    int64_t *leaf_row;
    int32_t *leaf_pos, *leaf_node; /* (n_leaf) index in the program's tree; node number    */
    float *own;           /* (n_own, n_col) of leaves that differ from their buffer's row */
    int64_t *path_ptr;    /* (n_leaf+1) loops around a leaf, outermost first           */
    int64_t *path_extent; /* (n_path) trip counts                                      */
    /* (n_path) 0 serial 1 parallel 2 vectorized 3 unrolled 4 thread axis */
    uint8_t *path_kind;
    int64_t *tree_ptr; /* (n+1) */
    /* (n_tree) pre-order numbers, -1 closes a node; tree[leaf_pos] == leaf_node */
    int32_t *tree;

    /* Steps of the schedules as numbers (cd_step_codes in features/task/task.h); NULL and 0 unless
     * they were asked for. */
    size_t n_step;
    int64_t *step_ptr; /* (n+1) */
    int32_t *step;     /* (n_step) */

    /* Facts of loop nests (features/analytic/analytic.h); NULL unless they were asked for. */
    float *facts;         /* (n, CD_N_FACTS) NaN where there are none */
    uint8_t *facts_state; /* (n) cd_facts_state */

    uint64_t bytes; /* of the arrays */
    /* where the arrays are, but those of networks; NULL: in memory of this process. Who goes
     * through many programs lets it rest */
    cd_spool *spool;
    bool borrowed; /* another process read them, and has them until this one has ended */

    char feature_digest[65]; /* digest of the column table: names, order, version     */
    char content_digest[65]; /* digest of rows, labels and keys: names the data       */
} cd_dataset;

/* Load one or several files (parts of one data set: dictionaries are joined by
 * name, programs follow each other). The checksum of every array is compared.
 * Errors: EIO, ESCHEMA (another schema or version, arrays that disagree, damage),
 * ENOMEM; the path is in the error. */
cdmpp_status cd_dataset_load(const char *const *path, size_t n_path, CD_GIVE cd_dataset **out,
                             cdmpp_err *err);
/* The same with the compact ASTs, about half as much memory and time again. */
cdmpp_status cd_dataset_load_ast(const char *const *path, size_t n_path, CD_GIVE cd_dataset **out,
                                 cdmpp_err *err);
/* Several processes load the same files: one on each machine reads them, the others map the arrays
 * that it has. */
typedef struct cd_dataset_share {
    bool first; /* this one reads */
    /* Called once by each process, when the first ones have read; st: how it went here. *place:
     * where the arrays are; it becomes that of the machine's first. Returns the same on all: OK, or
     * how it went on one where it did not go well. */
    cdmpp_status (*meet)(void *ctx, cdmpp_status st, cd_spool_place *place, cdmpp_err *err);
    void *ctx;
} cd_dataset_share;

/* The same as both, but arrays of more than so many bytes together are kept on disk. */
typedef struct cd_dataset_options {
    bool ast;               /* the compact ASTs too */
    bool steps;             /* the steps too; a file without them is an error */
    bool facts;             /* the facts too; likewise */
    uint64_t memory;        /* bytes; 0: no limit */
    const char *folder;     /* for what is on disk; "": the default of cd_spool_new */
    const char *folder_key; /* where `folder` can be set, for errors about it; NULL: nowhere */
    /* rows in the order of the file, to compare them with TVM's; not for models */
    bool as_written;
    const cd_dataset_share *share; /* NULL: this process alone */
} cd_dataset_options;
/* More errors: those of cd_spool_new; EIO (the disk is full); ENODATA (steps or facts are asked for
 * and a file has none); ESCHEMA (facts of other columns are asked for). */
cdmpp_status cd_dataset_load_within(const char *const *path, size_t n_path,
                                    const cd_dataset_options *how, CD_GIVE cd_dataset **out,
                                    cdmpp_err *err);
void cd_dataset_free(CD_TAKE cd_dataset *d); /* NULL is fine */

/* h5 -- the few HDF5 calls this project needs, with errors that name the file
 * and the object ("zen5.h5: /label/latency_s: cannot read ... [EIO]").
 *
 * Files are written in the 1.10 format: every piece of metadata has a checksum,
 * so that a damaged file is an error and not a crash. No times are stored: the
 * same contents give the same bytes. One file is for one thread at a time. */

/* X(id, HDF5 type in memory and on disk, bytes) */
#define CD_H5_TYPE_MAP(X)                                                                          \
    X(F32, H5T_IEEE_F32LE, 4)                                                                      \
    X(F64, H5T_IEEE_F64LE, 8)                                                                      \
    X(I32, H5T_STD_I32LE, 4)                                                                       \
    X(I64, H5T_STD_I64LE, 8)                                                                       \
    X(U8, H5T_STD_U8LE, 1)                                                                         \
    X(U32, H5T_STD_U32LE, 4)                                                                       \
    X(U64, H5T_STD_U64LE, 8)

typedef enum cd_h5_type {
#define CD_X(id, type, bytes) CD_H5_##id,
    CD_H5_TYPE_MAP(CD_X)
#undef CD_X
        CD_H5_TYPE_COUNT
} cd_h5_type;
/* Bytes of one element. */
size_t cd_h5_type_bytes(cd_h5_type t);

typedef struct cd_h5 {
    hid_t file;
    const char *path; /* borrowed from the caller */
} cd_h5;

/* Create replaces what is there. Errors: EIO, ENOMEM. */
cdmpp_status cd_h5_create(cd_h5 *h, CD_KEEP const char *path, cdmpp_err *err);
/* Errors: EIO, or ESCHEMA when it is not an HDF5 file. */
cdmpp_status cd_h5_open(cd_h5 *h, CD_KEEP const char *path, cdmpp_err *err);
/* Flush and close; safe to call again. Errors: EIO (a full disk shows here). */
cdmpp_status cd_h5_close(cd_h5 *h, cdmpp_err *err);

/* Arrays are 1-D (n) when n_col == 0, else 2-D (n, n_col). */
typedef struct cd_h5_shape {
    cd_h5_type type;
    uint64_t n;
    uint32_t n_col;
} cd_h5_shape;

/* A chunked array, deflate level 1, to be filled by cd_h5_write_chunk with
 * chunks that are compressed already. Missing groups are made. *out: to be
 * closed with cd_h5_close_array. */
cdmpp_status cd_h5_create_chunked(const cd_h5 *h, const char *object, cd_h5_shape s, uint32_t chunk,
                                  hid_t *out, cdmpp_err *err);
cdmpp_status cd_h5_write_chunk(const cd_h5 *h, const char *object, hid_t array, uint64_t first,
                               uint32_t n_col, const void *zip, size_t n_zip, cdmpp_err *err);
cdmpp_status cd_h5_close_array(const cd_h5 *h, const char *object, hid_t array, cdmpp_err *err);

/* A small array, contiguous and uncompressed. */
cdmpp_status cd_h5_write(const cd_h5 *h, const char *object, cd_h5_shape s, const void *data,
                         cdmpp_err *err);
/* Text (n) of one length: the longest, zero padded, UTF-8. */
cdmpp_status cd_h5_write_text(const cd_h5 *h, const char *object, size_t n, const char *const *text,
                              cdmpp_err *err);

/* Is there such an object? */
bool cd_h5_has(const cd_h5 *h, const char *object);
/* Size of an array; ESCHEMA when it is absent, of another type or rank. */
cdmpp_status cd_h5_size(const cd_h5 *h, const char *object, cd_h5_type type, uint32_t n_col,
                        uint64_t *n, cdmpp_err *err);
/* Rows first .. first+n of an array into `out`. */
cdmpp_status cd_h5_read(const cd_h5 *h, const char *object, cd_h5_shape s, uint64_t first,
                        void *out, cdmpp_err *err);
/* All strings, in one block to be freed with cd_mem_free: (n) pointers, then the text. */
cdmpp_status cd_h5_read_text(const cd_h5 *h, const char *object, size_t *n, CD_GIVE char ***out,
                             cdmpp_err *err);

/* Attributes of an object; "/" is the file. Reading a string: at most n-1
 * bytes, ESCHEMA when absent, longer or of another type. */
cdmpp_status cd_h5_set_text(const cd_h5 *h, const char *object, const char *name, const char *value,
                            cdmpp_err *err);
cdmpp_status cd_h5_set_u32(const cd_h5 *h, const char *object, const char *name, uint32_t value,
                           cdmpp_err *err);
cdmpp_status cd_h5_get_text(const cd_h5 *h, const char *object, const char *name, char *buf,
                            size_t n, cdmpp_err *err);
cdmpp_status cd_h5_get_u32(const cd_h5 *h, const char *object, const char *name, uint32_t *out,
                           cdmpp_err *err);

/* layout -- what a data set file contains: arrays, dictionaries, attributes. */

#define CD_LAYOUT_SCHEMA         "cdmpp.dataset"
#define CD_LAYOUT_SCHEMA_VERSION 1u
#define CD_LAYOUT_CHUNK_ROWS     1024u /* rows of a chunk of a 2-D array: 656 KiB   */
#define CD_LAYOUT_CHUNK_ITEMS    8192u /* elements of a chunk of a 1-D array        */

typedef enum cd_layout_array {
#define X(ID, path, type, n_col, len, units, meaning) CD_LAYOUT_ARRAY_##ID,
#include "dataset/file/layout.def"
    CD_LAYOUT_ARRAY_COUNT
} cd_layout_array;

/* What an array has one element of; the *1 kinds have one more. */
typedef enum cd_layout_len {
    CD_LAYOUT_LEN_PROGRAM,
    CD_LAYOUT_LEN_PROGRAM1,
    CD_LAYOUT_LEN_ROW,
    CD_LAYOUT_LEN_LEAF,
    CD_LAYOUT_LEN_LEAF1,
    CD_LAYOUT_LEN_OWN,
    CD_LAYOUT_LEN_TREE,
    CD_LAYOUT_LEN_PATH,
    CD_LAYOUT_LEN_STEP,
    CD_LAYOUT_LEN_COUNT
} cd_layout_len;

typedef struct cd_layout_array_info {
    const char *path;
    cd_h5_type type;
    uint32_t n_col; /* 0: 1-D */
    cd_layout_len len;
    const char *units, *meaning;
} cd_layout_array_info;

extern const cd_layout_array_info cd_layout[CD_LAYOUT_ARRAY_COUNT];

/* Bytes of one element: a whole row when 2-D. */
size_t cd_layout_array_bytes(cd_layout_array a);
/* Elements of one chunk. */
uint32_t cd_layout_array_chunk(cd_layout_array a);

/* X(ID, path): text tables that /key/... points into. */
#define CD_LAYOUT_DICT_MAP(X)                                                                      \
    X(TASK, "/dict/task")                                                                          \
    X(DEVICE, "/dict/device")                                                                      \
    X(TARGET, "/dict/target")                                                                      \
    X(SOURCE, "/dict/source_file")                                                                 \
    X(KIND, "/dict/kind")
typedef enum cd_layout_dict {
#define CD_X(ID, path) CD_LAYOUT_DICT_##ID,
    CD_LAYOUT_DICT_MAP(CD_X)
#undef CD_X
        CD_LAYOUT_DICT_COUNT
} cd_layout_dict;
extern const char *const cd_layout_dict_path[CD_LAYOUT_DICT_COUNT];

/* Attribute of every array: CRC-32 of its bytes, little endian, in order.
 * zlib.crc32(ds[:].tobytes()) in Python. */
#define CD_LAYOUT_ATTR_CRC "crc32"
uint32_t cd_layout_text_crc(size_t n, const char *const *text); /* of text: each string and a NUL */
/* Digest of what the file says about programs: all arrays and dictionaries but the paths of the
 * sources, so that it does not depend on the folder, and what a file may lack: kinds, which follow
 * from tasks and targets, steps, identities, copies, and facts. Files without them are the same
 * data. */
void cd_layout_content_digest(const uint64_t n[CD_LAYOUT_ARRAY_COUNT],
                              const uint32_t crc[CD_LAYOUT_ARRAY_COUNT],
                              const uint32_t dict_crc[CD_LAYOUT_DICT_COUNT], char out[65]);

/* Is this a data set of this version with these columns? Gives its content
 * digest. Errors: ESCHEMA. */
cdmpp_status cd_layout_check(const cd_h5 *h, char content_digest[65], cdmpp_err *err);
/* ESCHEMA unless the object's crc32 attribute is `crc`. */
cdmpp_status cd_layout_check_crc(const cd_h5 *h, const char *object, uint32_t crc, cdmpp_err *err);
/* A file may lack this array: files of earlier versions the kinds and their dictionary, and the
 * facts; any file the steps, identities and copies. */
bool cd_layout_optional(cd_layout_array a);
/* Is it one of the two arrays of steps, of facts, one of the three of copies? */
bool cd_layout_of_facts(cd_layout_array a);
bool cd_layout_of_copies(cd_layout_array a);
/* Of arrays that are in a file for all programs or not at all (steps, identities, copies) the one
 * of its group that has an element a program, or one more; of others CD_LAYOUT_ARRAY_COUNT. */
cd_layout_array cd_layout_asked_for(cd_layout_array a);
/* Attributes of /facts/value: the names of the columns of a set, one a line, and their digest
 * (cd_facts_cols_digest). "names" and "digest" are of CPU programs, "gpu_names" and "gpu_digest" of
 * GPU programs: files of before these had facts lack them. */
enum { CD_LAYOUT_NAMES = 8192 };
const char *cd_layout_facts_attr(cd_facts_set set, bool digest);
void cd_layout_facts_names(cd_facts_set set, char out[CD_LAYOUT_NAMES]);
/* ESCHEMA unless the file's facts of the set have the columns of this version. */
cdmpp_status cd_layout_check_facts(const cd_h5 *h, cd_facts_set set, cdmpp_err *err);
/* What an offset array points into, CD_LAYOUT_ARRAY_COUNT for other arrays. */
cd_layout_array cd_layout_array_of_ptr(cd_layout_array a);
/* The dictionary that an array's numbers belong to, CD_LAYOUT_DICT_COUNT for other arrays. */
cd_layout_dict cd_layout_array_dict(cd_layout_array a);
#endif
