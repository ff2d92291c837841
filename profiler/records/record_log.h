/* record_log -- a file of records that grows line by line and is never left half written.
 *
 *   open: lock, cut off what a killed run left of its last line, read what is in it
 *   add:  one write of one whole line; on disk within a second, or when it is closed
 *
 *   (1) the identity of a record is what it measures: workload key, target, hardware and steps, not
 *       what came out; cd_record_log_claim hands one out as long as the file, and what was handed
 *       out, has fewer than asked for;
 *   (2) one process at a time writes a file: a second one gets EIO;
 *   (3) lines that are no records stay as they are.
 * One thread may claim while another one adds. */
#ifndef CD_RECORD_LOG_H
#define CD_RECORD_LOG_H
#include "features/task/task.h"

typedef struct cd_record_log cd_record_log;
typedef struct cd_record_id {
    uint64_t a, b;
} cd_record_id;

/* `retry`: a line whose measurement failed is not counted, its record is handed out again, once by
 * this run; the line stays. Errors: EIO (also: another run writes it), ENOMEM; they carry the
 * path. */
cdmpp_status cd_record_log_open(const char *path, bool retry, CD_GIVE cd_record_log **out,
                                cdmpp_err *err);
/* Close; all is on disk after OK. Errors: EIO. NULL is fine. */
cdmpp_status cd_record_log_close(CD_TAKE cd_record_log *l, cdmpp_err *err);
/* The identity (1). Errors: ENOMEM, those of cd_record_write. */
cdmpp_status cd_record_id_of(const cd_record *r, cd_record_id *out, cdmpp_err *err);
/* *mine: this record is to be measured, and counts from now on. Errors: ENOMEM. */
cdmpp_status cd_record_log_claim(cd_record_log *l, cd_record_id id, unsigned limit, bool *mine,
                                 cdmpp_err *err);
/* Different programs that it has, with those that are claimed. */
size_t cd_record_log_programs(const cd_record_log *l);
/* Append a record. Number of the line that was written, from 1, in *line (NULL: not wanted).
 * Errors: EIO, ENOMEM, those of cd_record_write. */
cdmpp_status cd_record_log_add(cd_record_log *l, const cd_record *r, long *line, cdmpp_err *err);
#endif
