/* split_internal -- what the files of split share. */
#ifndef CD_SPLIT_INTERNAL_H
#define CD_SPLIT_INTERNAL_H
#include <stdbool.h>

#include "dataset/split/split.h"

/* sample_internal -- what sample.c and sample_split.c share: a text being read. */

#define CD_SAMPLE_NAME 200 /* letters of a name, and one */

typedef struct cd_sample_scan {
    const cd_dataset *d;
    const char *text;
    size_t at, end; /* what is left of the piece */
} cd_sample_scan;

/* *piece = what comes before the next `stop`, which is passed over, or all that is left;
 * true when there was one: another piece follows. */
bool cd_sample_scan_cut(cd_sample_scan *s, char stop, cd_sample_scan *piece);
/* What is left starts with `word`: pass over it. */
bool cd_sample_scan_word(cd_sample_scan *s, const char *word);
/* EPARSE: "character 8: expected WHAT, found '...'", what is left. */
cdmpp_status cd_sample_scan_expected(const cd_sample_scan *s, const char *what, cdmpp_err *err);

typedef enum { CD_SAMPLE_SCAN_DEVICE, CD_SAMPLE_SCAN_NETWORK } cd_sample_scan_kind;
/* What is left is no such name: ESCHEMA with the nearest. */
cdmpp_status cd_sample_scan_unknown(const cd_sample_scan *s, cd_sample_scan_kind kind,
                                    cdmpp_err *err);
/* "-NAME": the longest name that a device has, or that a network answers to. Errors: EPARSE
 * and those of cd_sample_scan_unknown. */
cdmpp_status cd_sample_scan_name(cd_sample_scan *s, cd_sample_scan_kind kind,
                                 char name[CD_SAMPLE_NAME], cdmpp_err *err);

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

/* m->unit = the tasks of which `used` (n_task) is set, by rank. */
void cd_split_list_tasks(cd_splitter *m, const uint8_t *used);
/* The first round(fraction * of) units, at least one, by rank of those that train. */
void cd_split_take(cd_splitter *m, double fraction, size_t of, cd_split_part part);

cdmpp_status cd_split_by_units(cd_splitter *m, cdmpp_err *err);   /* split_units.c */
cdmpp_status cd_split_interleave(cd_splitter *m, cdmpp_err *err); /* split_latency.c */
/* split_target.c; dev_part says which device is the target (TEST) and which have no part. */
cdmpp_status cd_split_with_target(cd_splitter *m, cdmpp_err *err);
/* split_thin.c, after all others */
cdmpp_status cd_split_thin(cd_splitter *m, cdmpp_err *err);
#endif
