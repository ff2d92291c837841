/* Lines of a packed or plain file, whole files, atomic writing, folders.
 *
 *   cd_file_lines_open -> cd_file_lines_next ... cd_file_lines_next -> cd_file_lines_close
 *
 * Lines come without their end ("\n" or "\r\n") and NUL-terminated, empty ones
 * and comments included: what to skip is the caller's business. Input may be
 * plain, gzip, xz or zstd and "-" is standard input (base/io/input_stream.h).
 *
 * Writing never leaves half a file: bytes go to "<path>.tmp<pid>.<k>" in the same
 * folder, are synced, and take the name in one step. */
#ifndef CD_FILE_H
#define CD_FILE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/core/core.h"

#define CD_FILE_LINE_MAX ((size_t)64 << 20)

typedef struct cd_file_lines cd_file_lines;

/* `max_line` bytes are the longest line that is delivered; 0: CD_FILE_LINE_MAX. */
cdmpp_status cd_file_lines_open(const char *path, size_t max_line, CD_GIVE cd_file_lines **out, cdmpp_err *err);
/* The next line; *line is NULL at the end and otherwise valid until the next
 * call. Errors carry path and line number:
 *   ERANGE                 this line is too long; it was skipped, go on
 *   EIO EPARSE ENOMEM      the file cannot be read further; every whole line
 *                          before the damage was delivered, the next call ends */
cdmpp_status cd_file_lines_next(cd_file_lines *l, CD_KEEP char **line, size_t *len, cdmpp_err *err);
/* 1-based number of the line delivered (or refused) last. */
long cd_file_lines_number(const cd_file_lines *l);
/* Bytes of the file itself that are used up, and its size (0: unknown). */
void cd_file_lines_progress(const cd_file_lines *l, uint64_t *done, uint64_t *total);
void cd_file_lines_close(CD_TAKE cd_file_lines *l); /* NULL is fine */

/* The whole file, unpacked and NUL-terminated; free it with cd_mem_free. Errors carry
 * the path: EIO, EPARSE, ENOMEM, ERANGE (more than max bytes unpacked; 0: no limit). */
cdmpp_status cd_file_read(const char *path, size_t max, CD_GIVE char **data, size_t *n, cdmpp_err *err);

/* SHA-256 of the file as it is (a packed file stays packed), 64 hex digits and
 * NUL. Errors carry the path: EIO. */
cdmpp_status cd_file_digest(const char *path, char hex[65], cdmpp_err *err);

/* Replace the file in one step; a device or pipe is written to directly. On
 * failure the old file is untouched and no temporary stays. Errors: EIO, ENOMEM. */
cdmpp_status cd_file_write(const char *path, const void *data, size_t n, cdmpp_err *err);
/* The same in two steps, for libraries that write files themselves: make an empty
 * temporary beside `path`, later sync it and give it the name. After a failure of
 * cd_file_publish the temporary is gone; drop one with cd_file_discard. */
cdmpp_status cd_file_temp(const char *path, CD_GIVE char **temp, cdmpp_err *err);
cdmpp_status cd_file_publish(CD_TAKE char *temp, const char *path, cdmpp_err *err);
void cd_file_discard(CD_TAKE char *temp); /* NULL is fine */

/* Regular files below `root` (or root itself if it is one) for which keep() says
 * yes, sorted bytewise by path; links are followed, loops are not. `keep` NULL
 * keeps all. Paths live in the arena. Errors carry the path: EIO, ENOMEM. */
typedef bool cd_file_filter_fn(const char *path, void *ctx);
cdmpp_status cd_file_list(cd_arena *a, const char *root, cd_file_filter_fn *keep, void *ctx,
                          CD_KEEP const char *const **out, size_t *n, cdmpp_err *err);
#endif
