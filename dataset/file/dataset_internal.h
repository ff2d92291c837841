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

/* ESCHEMA about an object of the file. */
cdmpp_status cd_dataset_fail(const cd_dataset_file *f, const char *object, const char *what,
                             cdmpp_err *err);
/* Elements of an array. */
cdmpp_status cd_dataset_count(const cd_dataset_file *f, cd_layout_array a, uint64_t *n,
                              cdmpp_err *err);
/* All n elements of an array, its checksum compared. */
cdmpp_status cd_dataset_read(const cd_dataset_file *f, cd_layout_array a, uint64_t n, void *out,
                             cdmpp_err *err);
/* n+1 offsets, rising from 0 to `end`; `base` is added to each. */
cdmpp_status cd_dataset_read_ptr(const cd_dataset_file *f, cd_layout_array a, uint64_t n,
                                 uint64_t end, uint64_t base, int64_t *ptr, cdmpp_err *err);
/* (n) elements of d, zeroed, never NULL for n == 0. */
void *cd_dataset_alloc(cd_dataset *d, uint64_t n, size_t size);

/* ---- dataset_ast.c ---- */
cdmpp_status cd_dataset_ast_count(cd_dataset_file *f, cdmpp_err *err);
cdmpp_status cd_dataset_ast_alloc(cd_dataset *d, cdmpp_err *err); /* d's sizes are set */
/* One file to its place `at`; its rows, row_ptr and leaf_ptr are there already. */
cdmpp_status cd_dataset_ast_read(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                                 cdmpp_err *err);
void cd_dataset_ast_free(cd_dataset *d);

/* ---- dataset_order.c ---- */
/* The rows of one file, all of which is read; its place is `at`. Errors: ENOMEM. */
cdmpp_status cd_dataset_order(const cd_dataset_file *f, cd_dataset *d, const cd_sizes *at,
                              cdmpp_err *err);
/* Programs between two rests of a loop over all. */
enum { CD_DATASET_REST = 16384 };
#endif
