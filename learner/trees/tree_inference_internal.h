/* tree_inference_internal -- the trees in memory, for reading them and for walking them. */
#ifndef CD_TREE_INFERENCE_INTERNAL_H
#define CD_TREE_INFERENCE_INTERNAL_H
#include "learner/trees/trees.h"

enum { CD_TREE_INFERENCE_MAX_DEPTH = 64 };

struct cd_tree_inference {
    float base;
    size_t n_tree, n_node;
    uint32_t *root, *depth; /* (n_tree) */
    cd_tree_inference_node *node; /* (n_node) */
    bool oom;               /* while reading */
};
#endif
