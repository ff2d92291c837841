/* record_reader -- the records of many files as one stream of lines.
 *
 *   a.json  folder/  -      ->  (a.json, 1, "{...}") (a.json, 2, ...) (folder/x.json, 1, ...)
 *
 *   (1) files in the order given; of a folder *.json, *.jsonl and *.log (also packed), sorted;
 *       "-" is standard input;
 *   (2) empty lines and comments are left out, but counted in the line numbers;
 *   (3) a line that is too long, or a file damaged in the middle, is an error of that call
 *       with path and line: the next call goes on behind it.
 * One thread. */
#ifndef CD_RECORD_READER_H
#define CD_RECORD_READER_H

#include "base/core/core.h"

typedef struct cd_record_reader cd_record_reader;

typedef struct cd_recline {
    CD_KEEP const char *path; /* until free */
    long number;              /* from 1 */
    CD_KEEP const char *text; /* until the next call; NULL: the end */
    size_t len;
} cd_recline;

/* Open files and folders; the paths are copied. Errors: EIO (a path that is not there, a folder
 * without records), ENOMEM. */
cdmpp_status cd_record_reader_open(const char *const *path, size_t n,
                                   CD_GIVE cd_record_reader **out, cdmpp_err *err);
void cd_record_reader_close(CD_TAKE cd_record_reader *r); /* NULL is fine */
/* The next line. Errors: ERANGE, EPARSE (call again), EIO, ENOMEM (stop). */
cdmpp_status cd_record_reader_next(cd_record_reader *r, cd_recline *out, cdmpp_err *err);
/* Has the first record that can be read, among the first thousand lines, a target of GPUs? False
 * too where one of the inputs is a pipe or is not there (record_output.c). */
bool cd_record_first_is_gpu(const char *const *path, size_t n);
#endif
