/* What the files of copies share: which programs of the inputs stay, and with which labels; and how merge.c copies some elements of an array. */
#ifndef CD_DATASET_COPIES_INTERNAL_H
#define CD_DATASET_COPIES_INTERNAL_H
#include "dataset/extract/extract.h"

/* The label of a program that was measured several times. */
typedef struct cd_copy_label {
    uint64_t program;               /* the copy that stays, counted over all inputs */
    double median, low, high, min;  /* of the copies' medians; fastest repeat */
    double sum, sum_sq;             /* over all repeats: times, and their squares */
    uint64_t repeats;
    uint32_t copies;
} cd_copy_label;

typedef struct cd_copies {
    uint64_t n;           /* programs of all inputs */
    uint8_t *keep;        /* (n) */
    uint32_t *label_of;   /* (n) of measured copies of a program of several: 1 + its label; else 0 */
    cd_copy_label *label; /* (n_label) by program */
    size_t n_label;
    cd_copies_stats stats;
} cd_copies;

/* Reads identities, labels and runs of all inputs. Errors: those of reading; ENODATA: no identities. */
cdmpp_status cd_copies_find(const char *const *in, size_t n, double slow, cd_log *log, cd_copies *out, cdmpp_err *err);
void cd_copies_free(cd_copies *c);

/* Puts the labels of several copies into the block of an array of labels: n programs from `first` on. */
void cd_copies_patch(const cd_copies *c, cd_layout_array a, uint64_t first, void *block, size_t n);

/* pick -- the elements of an array that stay, as runs in order: of programs by `keep`, of rows, leaves, trees, steps by the offsets that
 * programs have into them, of loops on paths by the offsets that leaves have. */
typedef struct cd_pick_level {
    cd_layout_array ptr;  /* offsets into this level; COUNT: programs themselves */
    uint64_t at;          /* parents so far */
    int64_t last;         /* offset so far */
    int64_t *buf;         /* (n_buf) offsets from buf_at on */
    uint64_t buf_at, n_buf, n_ptr, n_elem;
} cd_pick_level;
typedef struct cd_pick {
    const cd_h5 *h;
    const uint8_t *keep;  /* (n) of this file */
    uint64_t n;
    cd_pick_level level[3];
    int depth;            /* of the array: 0 programs, 1 rows and leaves, 2 loops */
    uint64_t left;        /* of the run at hand */
    bool stays;
    cd_arena arena;
} cd_pick;

/* For the elements of array a, or, where a holds offsets, for what has an offset. n_elem: elements of each array. Errors: ENOMEM, ESCHEMA. */
cdmpp_status cd_merge_pick_open(cd_pick *p, const cd_h5 *h, cd_layout_array a, const uint8_t *keep, const uint64_t n_elem[CD_LAYOUT_ARRAY_COUNT], cdmpp_err *err);
void cd_merge_pick_close(cd_pick *p);
/* Does the next element stay? Of the elements that follow, *n at most, the number of those that share this answer is put into *n. */
cdmpp_status cd_merge_pick_next(cd_pick *p, size_t *n, bool *stays, cdmpp_err *err);
#endif
