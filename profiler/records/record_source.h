/* record_source -- what records lower to, without compiling or measuring anything: are they usable, and their source code. */
#ifndef CD_RECORD_SOURCE_H
#define CD_RECORD_SOURCE_H
#include <signal.h>

#include "profiler/records/record_listener.h"
#include "profiler/records/record_program.h"

typedef struct cd_record_source_tally {
    size_t lines, bad;          /* read; of these, not usable */
    size_t reason[CDMPP_STATUS_COUNT]; /* of the bad ones, by status */
} cd_record_source_tally;

/* Lower every record of `file`, at most `limit` of them (0: all). `source` not NULL: also append the code of each program,
 * behind a comment that names the record's line; the prelude of a dialect stands before its first program. A record that cannot be
 * used is counted and reported to `l`. `t` adds up. Errors: EIO, ENOMEM, EINTERRUPTED (*stop). */
cdmpp_status cd_record_source_collect(cd_record_maker *m, cd_record_reader *file, size_t limit, const cd_record_listener *l, const volatile sig_atomic_t *stop,
                                      cd_buf *source, cd_record_source_tally *t, cdmpp_err *err);
/* The counts as a line for people, or as a JSON object. */
void cd_record_source_put(cd_buf *b, const cd_record_source_tally *t, bool json);
#endif
