/* A rectangular piece of a tensor.
 *
 *   shape (56, 64)     rows 20..36, all columns     lo (20, 0)   n (16, 64)     1024 elements, one run from element 1280 on
 *                      all rows, columns 0..8       lo (0, 0)    n (56, 8)      448 elements, 56 runs
 *
 *   (1) 0 <= lo[d], n[d] >= 0, lo[d] + n[d] <= shape[d]; rank 0 is one element;
 *   (2) run: all its elements lie in a row in the row-major tensor.
 * Elements, not bytes. No state, any thread. */
#ifndef CD_BOX_H
#define CD_BOX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CD_BOX_RANK = 8 };

typedef struct cd_box {
    uint32_t rank;
    int64_t lo[CD_BOX_RANK], n[CD_BOX_RANK];
} cd_box;

cd_box cd_box_whole(uint32_t rank, const int64_t *shape); /* all of a tensor */
int64_t cd_box_elements(const cd_box *b); /* number of elements */
bool cd_box_equal(const cd_box *a, const cd_box *b); /* same rank, place and size; two empty boxes may differ */
bool cd_box_inside(const cd_box *in, const cd_box *out); /* all of `in` is in `out` */
/* False: nothing is in both, *out has no elements. Ranks are equal. */
bool cd_box_meet(const cd_box *a, const cd_box *b, cd_box *out);
/* (2); *first: its first element. An empty box is a run. */
bool cd_box_run(const cd_box *b, const int64_t *shape, int64_t *first);
/* The box of a tensor of another shape with as many elements that has the same elements; false: there is none. */
bool cd_box_reshape(const cd_box *b, const int64_t *shape, uint32_t rank, const int64_t *to, cd_box *out);
/* Copies `n` elements of `size` bytes each way; strides in elements, of both sides; from and to are at the first element. */
void cd_box_copy(void *to, const int64_t *to_stride, const void *from, const int64_t *from_stride, uint32_t rank, const int64_t *n, size_t size);
/* Strides of a row-major tensor, in elements. */
void cd_box_strides(uint32_t rank, const int64_t *shape, int64_t *stride);
#endif
