/* program_tree -- the trees of a batch's programs, laid out for a network that goes from the
 * leaves to the roots, a level of many programs at a time.
 *
 *   program 0: R { a, S { b, T { c } } }     program 1: R' { d }     tokens a b c d
 *
 *   level 0   node 0: T               depth 2
 *   level 1   node 1: S               depth 1
 *   level 2   node 2: R, node 3: R'   depth 0; root = [2, 3]
 *   children  level 0: [c]   level 1: [b]      [T]       level 2: [a d]   [S]
 *              steps    0               1        3                  2       4
 *   leaves    of nodes own = [0 1 2 3]: [c b a d]        one step, nobody has two
 *
 *   (1) programs are cut into tiles that know nothing of each other (CD_TREE_TILE at
 *       most, as cd_ops_tiles cuts them); nodes, levels, steps and own go by tile;
 *   (2) nodes are the inner ones; the deepest level of a tile comes first, so a child
 *       comes before its node; within a level those with more children come first:
 *       step t shows the t-th child of the first width[t] nodes of its level;
 *   (3) a row names what a step shows: a leaf by its token, node k as n_tok + k;
 *   (4) every leaf, and every node but the roots, is a row of `child` once, in the
 *       order of the tree; every leaf is a row of `leaf` once, in the step of its
 *       place among the leaves of its node, nodes with more of them first (own);
 *   (5) the rows of all first steps come before those of all others.
 * Filling touches no heap. One tree a thread. */
#ifndef CD_PROGRAM_TREE_H
#define CD_PROGRAM_TREE_H
#include <stdbool.h>
#include <stdint.h>

#include "learner/tensor/tensor.h"

enum { CD_TREE_TILE = 64 };

typedef struct cd_steps {
    size_t n, n_row, n_first; /* steps; their rows; rows of first steps */
    uint32_t *first;          /* steps first[g] .. first[g+1] of level or tile g */
    uint32_t *at, *width;     /* (n) rows at[k] .. at[k]+width[k] of step k */
    uint32_t *row;            /* (n_row) */
} cd_steps;

typedef struct cd_program_tree {
    size_t n, n_tok, n_node, n_tile, n_level;
    uint32_t *tile_level, *tile_own; /* (n_tile+1) levels of a tile; its items of own */
    uint32_t *level;                 /* (n_level+1) nodes of a level */
    cd_steps child, leaf;            /* by level; by tile */
    uint32_t *own;                   /* nodes with leaves of their own */
    uint32_t *root;                  /* (n) */
    size_t max_n, max_tok, max_node; /* room */
    /* nodes and leaves in the order they came */
    uint32_t *parent, *depth, *kids, *leaves, *place; /* (n_node) */
    uint32_t *of, *leaf_place, *own_place;            /* (n_tok) */
    uint32_t *number, *level_of, *tile_of, *rank;     /* (n_node) where they are now */
    uint32_t *order, *swap, *bucket;                  /* sorting */
} cd_program_tree;

/* Room for n programs with n_tok leaves and n_node inner nodes: plans or carves. */
void cd_program_tree_plan(cd_program_tree *t, cd_slab *s, size_t n, size_t n_tok, size_t n_node);
void cd_program_tree_clear(cd_program_tree *t);
/* Is the list of n numbers, in pre-order, -1 closes a node, one tree with its n_leaf >= 1
 * leaves at leaf_pos, ascending? Errors: EMODEL. */
cdmpp_status cd_program_tree_check(const int32_t *list, size_t n, const int32_t *leaf_pos,
                                   size_t n_leaf, cdmpp_err *err);
/* The next program, whose tree was checked. Errors: ERANGE (no room). */
cdmpp_status cd_program_tree_add(cd_program_tree *t, const int32_t *list, size_t n,
                                 const int32_t *leaf_pos, size_t n_leaf, cdmpp_err *err);
/* After the last: tiles, levels and steps. */
void cd_program_tree_close(cd_program_tree *t);
#endif
