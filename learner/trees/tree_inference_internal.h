/* tree_inference_internal -- the trees in memory, for reading them and for walking them. */
#ifndef CD_TREE_INFERENCE_INTERNAL_H
#define CD_TREE_INFERENCE_INTERNAL_H
#include "learner/trees/trees.h"

enum { CD_TREE_INFERENCE_MAX_DEPTH = 64 };

typedef struct cd_tree_walk cd_tree_walk;   /* tree_inference.c: the same trees in small nodes */
typedef struct cd_tree_bytes cd_tree_bytes; /* tree_bytes.c: for many rows at once */

struct cd_tree_inference {
    float base;
    size_t n_tree, n_node;
    uint32_t *root, *depth;       /* (n_tree) */
    cd_tree_inference_node *node; /* (n_node) */
    cd_tree_walk *fast;           /* NULL: they do not fit into that form */
    cd_tree_bytes *bytes;         /* NULL: they do not, or this processor cannot */
    bool oom;                     /* while reading */
};

/* *out NULL: more than 255 columns with sides, a tree of more than 65535 nodes, cuts that are not
 * finite. Errors: ENOMEM. */
cdmpp_status cd_tree_walk_new(const cd_tree_inference *f, size_t width, CD_GIVE cd_tree_walk **out,
                              cdmpp_err *err);
void cd_tree_walk_free(CD_TAKE cd_tree_walk *w); /* NULL is fine */
/* By f->fast, which is there. */
void cd_tree_walk_score(const cd_tree_inference *f, const float *x, size_t n, size_t width,
                        size_t n_tree, float *out);

/* *out NULL: more than 255 cuts of a column, 255 columns with sides or 8 levels, cuts that are not
 * finite, or no AVX-512. Errors: ENOMEM. */
cdmpp_status cd_tree_bytes_new(const cd_tree_inference *f, size_t width,
                               CD_GIVE cd_tree_bytes **out, cdmpp_err *err);
void cd_tree_bytes_free(CD_TAKE cd_tree_bytes *b); /* NULL is fine */
bool cd_tree_bytes_here(void);
/* By f->bytes, which is there; n 1 to CD_TREE_BYTES_ROWS. It takes as long for few rows as for
 * 64. */
enum { CD_TREE_BYTES_ROWS = 256 };
void cd_tree_bytes_score(const cd_tree_inference *f, const float *x, size_t n, size_t width,
                         size_t n_tree, float *out);
/* The slow truth: nodes of f one by one. */
void cd_tree_inference_score_plain(const cd_tree_inference *f, const float *x, size_t n,
                                   size_t width, size_t n_tree, float *out);
#endif
