/* sample_internal -- what sample.c and sample_split.c share: a text being read. */
#ifndef CD_SAMPLE_INTERNAL_H
#define CD_SAMPLE_INTERNAL_H
#include <stdbool.h>

#include "dataset/split/sample.h"

#define CD_SAMPLE_NAME 200 /* letters of a name, and one */

typedef struct cd_sample_scan {
    const cd_dataset *d;
    const char *text;
    size_t at, end;      /* what is left of the piece */
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
cdmpp_status cd_sample_scan_unknown(const cd_sample_scan *s, cd_sample_scan_kind kind, cdmpp_err *err);
/* "-NAME": the longest name that a device has, or that a network answers to. Errors: EPARSE
 * and those of cd_sample_scan_unknown. */
cdmpp_status cd_sample_scan_name(cd_sample_scan *s, cd_sample_scan_kind kind, char name[CD_SAMPLE_NAME], cdmpp_err *err);
#endif
