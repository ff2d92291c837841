/* The door of base/io: other rooms include this header and no other of the room.
 *
 * Files. Reading takes plain, gzip, xz and zstd alike, by lines or whole (file, input_stream).
 * Writing replaces a file in one step. A CSV table is read as a whole (csv_table). Data files that
 * come with the programs are found from the program's own place (data_path). Models and checkpoints
 * have one outer form with a checksum (container). */
#ifndef CD_BASE_IO_DOOR_H
#define CD_BASE_IO_DOOR_H
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"

/* The outer form of the files that a training writes: a header and weights, checked to be
 * undamaged.
 *
 *   magic (8) | u32 version | u32 0 | u64 H | u64 B | header (H) | weights (B) | SHA-256, 64 hex
 *   digits
 *
 *   kind         magic      versions   what is inside
 *   model        CDMPPMDL   1, 2, 3    learner/model, learner/operators
 *   checkpoint   CDMPPCKP   1          learner/fit
 *
 * All numbers are little-endian; the header is one JSON object. A model is written in version 2
 * unless it holds something that older programs would misread: then it gets a newer version, which
 * they refuse. Lengths are compared with the size of the file before they are used, and nothing is
 * read before the sum is right. No state, any thread. */

#define CD_CONTAINER_MODEL_VERSION 2
/* profile tuner, trees of an objective but log_latency (learner/loss/loss.h), or members that read
 * facts */
#define CD_CONTAINER_MODEL_NEWER 3
#define CD_CONTAINER_MODEL_HERE  4 /* corrected for a machine (learner/model/here.h) */
/* with members for the order (learner/model/model.h), corrected or not */
#define CD_CONTAINER_MODEL_ORDER        5
#define CD_CONTAINER_CHECKPOINT_VERSION 1
typedef enum { CD_CONTAINER_MODEL, CD_CONTAINER_CHECKPOINT } cd_container_kind;

typedef struct cd_container {
    uint32_t version;
    cd_str header, weights; /* slices of the file */
} cd_container;

/* Append a whole file of this version to `out`. Errors: ENOMEM, also when header or weights ran out
 * of memory. */
cdmpp_status cd_container_put_as(cd_container_kind kind, uint32_t version, cd_buf *out,
                                 const cd_buf *header, const cd_buf *weights, cdmpp_err *err);
/* The same in the default version. */
cdmpp_status cd_container_put(cd_container_kind kind, cd_buf *out, const cd_buf *header,
                              const cd_buf *weights, cdmpp_err *err);
/* Checks (n) bytes of a file; header and weights point into them. Errors: EPARSE (no such file, cut
 * short, damaged), EUNSUPPORTED (a newer version). */
cdmpp_status cd_container_get(cd_container_kind kind, const void *p, size_t n, cd_container *out,
                              cdmpp_err *err);
/* The header, copied: NUL-terminated (*text) and as a tree, which live in `a`. Errors: EPARSE,
 * ENOMEM. */
cdmpp_status cd_container_header(const cd_container *f, cd_arena *a, CD_KEEP const char **text,
                                 CD_KEEP const cd_json **root, cdmpp_err *err);

/* csv_table -- a whole CSV file in memory, its columns found by name.
 *
 *   (1) the first line names the columns; every other line has as many fields. Empty lines and
 *       lines that begin with # are skipped;
 *   (2) blanks around names and cells are removed; no two columns have one name.
 * Any file that cd_file_lines_open reads: plain, compressed, "-" for standard input. One thread. */

typedef struct cd_csv_table {
    cd_arena arena;
    const char *path;
    size_t n_col, n_row, cap, cap_line;
    const char **name;  /* (n_col) */
    const char ***cell; /* (n_row)(n_col) */
    long *line;         /* (n_row) line of the file */
} cd_csv_table;

/* Borrows path. Errors, with path and line: EIO, EPARSE, ESCHEMA (no line of names, two columns of
 * one name, another number of fields), ERANGE (more than 1e7 rows), ENODATA (no row), ENOMEM. Free
 * `t` after an error too. */
cdmpp_status cd_csv_table_read(cd_csv_table *t, const char *path, cdmpp_err *err);
/* The same, but a row with another number of fields, or of broken text, is told, counted in *n_bad
 * and left out. */
cdmpp_status cd_csv_table_read_good(cd_csv_table *t, const char *path,
                                    void (*bad)(void *ctx, const cdmpp_err *err), void *ctx,
                                    size_t *n_bad, cdmpp_err *err);
void cd_csv_table_free(cd_csv_table *t); /* zeroed is fine */
/* Index of a column; SIZE_MAX: there is none. */
size_t cd_csv_table_find(const cd_csv_table *t, const char *column);
/* The same of a column that must be there. Errors: ESCHEMA (names the columns that there are). */
cdmpp_status cd_csv_table_need(const cd_csv_table *t, const char *column, size_t *out,
                               cdmpp_err *err);
/* A cell as a finite number. Errors: EPARSE, with path, line and column. */
cdmpp_status cd_csv_table_number(const cd_csv_table *t, size_t row, size_t col, double *out,
                                 cdmpp_err *err);

/* Files that come with the programs.
 *
 *   <prefix>/bin/cdmpp-train      <prefix>/share/cdmpp/configs/v100.yaml    installed
 *   build/release/cdmpp-train     configs/v100.yaml                         a build in its checkout
 *
 * The prefix is where the running program is, so a tree can be moved. No state, any thread. */

/* Path of `name`, "configs/v100.yaml", if it can be read: below share/cdmpp of the prefix, else
 * below the checkout. NULL: neither, or out of memory. */
CD_KEEP const char *cd_data_path_find(cd_arena *a, const char *name);
/* `path` where it can be read or is absolute; else, when it is a bare name or begins with `folder`
 * ("configs"), the installed file of that name; else `path`. NULL: out of memory. */
CD_KEEP const char *cd_data_path_or(cd_arena *a, const char *folder, const char *path);

/* Lines of a packed or plain file, whole files, atomic writing, folders.
 *
 *   cd_file_lines_open -> cd_file_lines_next ... cd_file_lines_next -> cd_file_lines_close
 *
 * Lines come without their end ("\n" or "\r\n") and NUL-terminated, empty ones
 * and comments included: what to skip is the caller's business. Input may be
 * plain, gzip, xz or zstd and "-" is standard input (base/io/io.h).
 *
 * Writing never leaves half a file: bytes go to "<path>.tmp<pid>.<k>" in the same
 * folder, are synced, and take the name in one step. */

#define CD_FILE_LINE_MAX ((size_t)16 << 20)
/* of a file that is read as a whole, unless its reader has another limit */
#define CD_FILE_WHOLE_MAX ((size_t)1 << 30)

typedef struct cd_file_lines cd_file_lines;

/* `max_line` bytes are the longest line that is delivered; 0: CD_FILE_LINE_MAX. */
cdmpp_status cd_file_lines_open(const char *path, size_t max_line, CD_GIVE cd_file_lines **out,
                                cdmpp_err *err);
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
 * the path: EIO, EPARSE, ENOMEM, ERANGE (more than max bytes unpacked; 0: CD_FILE_WHOLE_MAX). */
cdmpp_status cd_file_read(const char *path, size_t max, CD_GIVE char **data, size_t *n,
                          cdmpp_err *err);

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
/* EIO where something is there that is no file: a device or a folder is not replaced by one.
 * cd_file_temp asks this first. */
cdmpp_status cd_file_replaceable(const char *path, cdmpp_err *err);
/* Equal names, or two names of one file. */
bool cd_file_same(const char *a, const char *b);
/* Leaves the first name of each file in (*n), in order, and says in `said` which were taken away;
 * nothing where none was. Errors: ENOMEM. */
cdmpp_status cd_file_once(const char **path, size_t *n, cd_buf *said, cdmpp_err *err);
cdmpp_status cd_file_publish(CD_TAKE char *temp, const char *path, cdmpp_err *err);
void cd_file_discard(CD_TAKE char *temp); /* NULL is fine */
/* Deletes all temporaries of this process. For the handler of a signal that ends it:
 * async-signal-safe. */
void cd_file_remove_temps(void);

/* Make the folder; one that is there already is fine. Its parent must exist. Errors: EIO. */
cdmpp_status cd_file_make_folder(const char *path, cdmpp_err *err);

/* Regular files below `root` (or root itself if it is one) for which keep() says
 * yes, sorted bytewise by path; links are followed, loops are not. `keep` NULL
 * keeps all. Paths live in the arena. Errors carry the path: EIO, ENOMEM. */
typedef bool cd_file_filter_fn(const char *path, void *ctx);
cdmpp_status cd_file_list(cd_arena *a, const char *root, cd_file_filter_fn *keep, void *ctx,
                          CD_KEEP const char *const **out, size_t *n, cdmpp_err *err);

/* ---- fd.c ---- */
/* All n bytes to or from a descriptor that waits, whatever signals come meanwhile. False: an error,
 * see errno; of get also the end of the data. */
bool cd_fd_put(int fd, const void *p, size_t n);
bool cd_fd_get(int fd, void *p, size_t n);

/* ---- file_once.c ---- */
enum { CD_FILE_NEAR_MAX = 512 };
/* For messages about a file that is not there: the file of its folder, with the same ending, whose
 * name is nearest to it, "configs/t4.yaml"; "" where none is near. n: of out, CD_FILE_NEAR_MAX is
 * enough. */
void cd_file_near(const char *path, char *out, size_t n);

/* The bytes of a file, whatever it is packed with.
 *
 *   file -> [64 KiB of packed bytes] -> codec (plain gz xz zst) -> caller's buffer
 *
 * The codec is chosen by the first bytes, never by the name. Several members one
 * after another (cat a.gz b.gz) are one file. "-" is standard input.
 * (1) A file that ends inside a member gives EPARSE after all its whole output.
 * (2) Memory is bounded: 64 KiB here, CD_INPUT_UNPACK_MEMORY for liblzma, a window of
 *     2^CD_INPUT_UNPACK_WINDOW_LOG bytes for libzstd; packed data that asks for more is refused.
 * (3) So is what packed data become: CD_INPUT_UNPACK_BASE and CD_INPUT_UNPACK_PER_BYTE times what
 *     was read, all members together. Logs and tables of numbers unpack to 5 to 200 times their
 *     size. A file that really holds more is read when it is unpacked.
 * One thread at a time for each source. */

#define CD_INPUT_UNPACK_BASE     ((uint64_t)64 << 20)
#define CD_INPUT_UNPACK_PER_BYTE ((uint64_t)256)
/* xz -9 asks for 65 MiB, a dictionary of 128 MiB for 129 */
#define CD_INPUT_UNPACK_MEMORY     ((uint64_t)160 << 20)
#define CD_INPUT_UNPACK_WINDOW_LOG 27

typedef struct cd_input_stream cd_input_stream;

/* Errors carry the path: EIO, ENOMEM. */
cdmpp_status cd_input_stream_open(const char *path, CD_GIVE cd_input_stream **out, cdmpp_err *err);
/* Up to cap bytes to buf; *n is 0 only at the end. Errors: EIO, EPARSE (damaged
 * or cut off), ERANGE (needs too much memory, or unpacks to too much), ENOMEM. */
cdmpp_status cd_input_stream_read(cd_input_stream *s, void *buf, size_t cap, size_t *n,
                                  cdmpp_err *err);
/* Bytes of the file itself taken so far, and its size (0: unknown, a pipe). */
void cd_input_stream_progress(const cd_input_stream *s, uint64_t *done, uint64_t *total);
/* For messages: "<stdin>" for "-". */
const char *cd_input_stream_path(const cd_input_stream *s);
void cd_input_stream_close(CD_TAKE cd_input_stream *s); /* NULL is fine */
#endif
