/* What the files of copies share: which programs of the inputs stay, and with which labels; and how
 * merge.c copies some elements of an array. */
#ifndef CD_DATASET_COPIES_INTERNAL_H
#define CD_DATASET_COPIES_INTERNAL_H
#include "dataset/extract/extract.h"

/* The label of a program that was measured several times. */
typedef struct cd_copy_label {
    uint64_t program;              /* the copy that stays, counted over all inputs */
    double median, low, high, min; /* of the copies' medians; fastest repeat */
    double sum, sum_sq;            /* over all repeats: times, and their squares */
    uint64_t repeats;
    uint32_t copies;
} cd_copy_label;

typedef struct cd_copies {
    uint64_t n;    /* programs of all inputs */
    uint8_t *keep; /* (n) */
    /* (n) of measured copies of a program of several: 1 + its label; else 0 */
    uint32_t *label_of;
    cd_copy_label *label; /* (n_label) by program */
    size_t n_label;
    cd_copies_stats stats;
} cd_copies;

/* One record of all inputs. */
typedef struct cd_copies_entry {
    uint64_t id[2], program; /* counted over all inputs */
    double s;                /* NaN: not measured */
    uint32_t run;
} cd_copies_entry;

/* Arrays are read in blocks of so many programs. */
enum { CD_COPIES_BLOCK = 65536 };
typedef struct cd_copies_block {
    uint64_t id[CD_COPIES_BLOCK][2];
    double v[3][CD_COPIES_BLOCK];
    uint32_t u[CD_COPIES_BLOCK];
} cd_copies_block;

/* scan -- the records of all inputs by identity, without holding all of them.
 *
 *   part 0           part 1           part 2       n_part = 3: identities by their first bits
 *   a a b c c c      f f g g          k l l l      sorted by identity, run, time
 *
 * (1) all records of an identity are in one part; parts one after another are in the order of all;
 * (2) the inputs are read again for each part. */
typedef struct cd_copies_scan {
    const char *const *in; /* (n_in) */
    size_t n_in;
    uint64_t n; /* records of all inputs */
    uint32_t n_part, part;
    cd_dict run;        /* folders */
    cd_copies_entry *e; /* (n_e) of the part */
    size_t n_e, cap_e;
    uint64_t first; /* records before the input at hand */
    cd_copies_block *block;
} cd_copies_scan;

enum { CD_COPIES_PART_RECORDS = 1 << 20 };
/* part_records: about so many in a part, more where that would be too many parts to read. Close
 * after an error, too. Errors: those of reading; ENODATA: no identities, or merged already. */
cdmpp_status cd_copies_scan_open(cd_copies_scan *s, const char *const *in, size_t n,
                                 size_t part_records, cdmpp_err *err);
/* Fills e. Errors: those of reading; ESCHEMA: an input has changed since. */
cdmpp_status cd_copies_scan_part(cd_copies_scan *s, uint32_t part, cdmpp_err *err);
/* Frees e: until the next part. */
void cd_copies_scan_close(cd_copies_scan *s);

/* Reads identities, labels and runs of all inputs; part_records changes memory and time, not the
 * result. Errors: those of the scan. */
cdmpp_status cd_copies_find(const char *const *in, size_t n, double slow, size_t part_records,
                            cd_log *log, cd_copies *out, cdmpp_err *err);
void cd_copies_free(cd_copies *c);

/* Puts the labels of several copies into the block of an array of labels: n programs from `first`
 * on. */
void cd_copies_patch(const cd_copies *c, cd_layout_array a, uint64_t first, void *block, size_t n);

/* pick -- the elements of an array that stay, as runs in order: of programs by `keep`, of rows,
 * leaves, trees, steps by the offsets that programs have into them, of loops on paths by the
 * offsets that leaves have. */
typedef struct cd_pick_level {
    cd_layout_array ptr; /* offsets into this level; COUNT: programs themselves */
    uint64_t at;         /* parents so far */
    int64_t last;        /* offset so far */
    int64_t *buf;        /* (n_buf) offsets from buf_at on */
    uint64_t buf_at, n_buf, n_ptr, n_elem;
} cd_pick_level;
typedef struct cd_pick {
    const cd_h5 *h;
    const uint8_t *keep; /* (n) of this file */
    uint64_t n;
    cd_pick_level level[3];
    int depth;     /* of the array: 0 programs, 1 rows and leaves, 2 loops */
    uint64_t left; /* of the run at hand */
    bool stays;
    cd_arena arena;
} cd_pick;

#endif
