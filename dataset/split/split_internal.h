/* split_internal -- what the files of split share. */
#ifndef CD_SPLIT_INTERNAL_H
#define CD_SPLIT_INTERNAL_H
#include <stdbool.h>

#include "dataset/split/split.h"

/* A sample written as text, while it is read (sample.c). */

#define CD_SAMPLE_NAME 200 /* letters of a name, and one */

typedef struct cd_sample_scan {
    const cd_dataset *d;
    const char *text;
    size_t at, end; /* what is left of the piece */
} cd_sample_scan;

typedef enum { CD_SAMPLE_SCAN_DEVICE, CD_SAMPLE_SCAN_NETWORK } cd_sample_scan_kind;

/* A thing that is drawn: a task, network or device. */
typedef struct cd_split_unit {
    uint64_t rank; /* of the draw */
    const char *name;
    uint32_t id;
    uint8_t part;
} cd_split_unit;

typedef struct cd_splitter {
    cd_arena arena; /* of what is needed only while the split is made */
    const cd_dataset *d;
    const uint8_t *keep;
    const cd_split_spec *spec;
    cd_split *s;
    uint8_t *task_used;  /* (n_task) some kept program has it */
    uint8_t *task_part;  /* (n_task) */
    uint8_t *dev_part;   /* (n_device) */
    cd_split_unit *unit; /* (n_unit) units that kept programs have, by rank */
    size_t n_unit;
    uint64_t *key; /* (n) of programs */
} cd_splitter;

#endif
