/* hpo_journal -- the finished trainings of a search, on disk as they finish.
 *
 *   {"schema":"cdmpp.search","schema_version":1,"digest":"SHA-256 of what is searched"}
 *   {"trial":7,"rung":1,"budget":200,"state":"done","valid_error":0.21,"seconds":3.1,"params":{...}}
 *   {"trial":9,"rung":0,"budget":67,"state":"failed","valid_error":null,"reason":"...","seconds":0.1,"params":{}}
 *
 *   (1) a line is written with one call and is on the disk before its result counts;
 *   (2) a kill or a power cut can only damage the last line: it is cut off when the
 *       search goes on, and `torn` tells how many bytes that were. Damage elsewhere is
 *       an error;
 *   (3) a file belongs to one search (digest) and one process at a time (locked);
 *   (4) the order of lines is the order of finishing and means nothing.
 * One thread at a time. */
#ifndef CD_HPO_JOURNAL_H
#define CD_HPO_JOURNAL_H
#include "base/core/core.h"

typedef struct cd_hpo_journal_entry {
    size_t trial;
    unsigned rung;
    double budget, error;   /* INFINITY: failed */
    double seconds;
    const char *reason;     /* of the failure, else "" */
    const char *params;     /* JSON object */
} cd_hpo_journal_entry;

typedef struct cd_hpo_journal {
    int fd;
    char path[4096];
    size_t n, torn;
    cd_hpo_journal_entry *entry; /* (n) what was there when it was opened, by trial and rung */
    cd_arena arena;
} cd_hpo_journal;

/* Open or create. Errors: EIO (also: locked by another process), EPARSE, ESCHEMA
 * (another search), ENOMEM; nothing is left open then. */
cdmpp_status cd_hpo_journal_open(cd_hpo_journal *l, const char *path, const char *digest, cdmpp_err *err);
/* What was there for this trial and rung; NULL: nothing. */
const cd_hpo_journal_entry *cd_hpo_journal_find(const cd_hpo_journal *l, size_t trial, unsigned rung);
cdmpp_status cd_hpo_journal_append(cd_hpo_journal *l, const cd_hpo_journal_entry *e, cdmpp_err *err);
void cd_hpo_journal_close(cd_hpo_journal *l);
#endif
