/* forest_int -- inside of a forest: reading it and walking it. */
#ifndef CD_TREE_INFERENCE_INTERNAL_H
#define CD_TREE_INFERENCE_INTERNAL_H
#include "learner/trees/tree_inference.h"

enum { CD_TREE_INFERENCE_MAX_DEPTH = 64 };
#define CD_TREE_INFERENCE_MISSING_RIGHT 0x80000000U /* in `column`: NaN goes to kid[1] */

typedef struct cd_tree_inference_node {
    float cut;
    uint32_t column;
    uint32_t kid[2];
} cd_tree_inference_node;

struct cd_tree_inference {
    float base;
    size_t n_tree, n_node;
    uint32_t *root, *depth; /* (n_tree) */
    cd_tree_inference_node *node;   /* (n_node) */
    bool oom;               /* while reading */
};
#endif
