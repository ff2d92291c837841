/* The bytes of a file, whatever it is packed with.
 *
 *   file -> [64 KiB of packed bytes] -> codec (plain gz xz zst) -> caller's buffer
 *
 * The codec is chosen by the first bytes, never by the name. Several members one
 * after another (cat a.gz b.gz) are one file. "-" is standard input.
 * (1) A file that ends inside a member gives EPARSE after all its whole output.
 * (2) Memory is bounded: 64 KiB here, 512 MiB for xz, a 128 MiB window for zstd;
 *     packed data that asks for more is refused.
 * One thread at a time for each source. */
#ifndef CD_INPUT_STREAM_H
#define CD_INPUT_STREAM_H
#include <stdint.h>

#include "base/core/core.h"

typedef struct cd_input_stream cd_input_stream;

/* Errors carry the path: EIO, ENOMEM. */
cdmpp_status cd_input_stream_open(const char *path, CD_GIVE cd_input_stream **out, cdmpp_err *err);
/* Up to cap bytes to buf; *n is 0 only at the end. Errors: EIO, EPARSE (damaged
 * or cut off), ERANGE (needs too much memory), ENOMEM. */
cdmpp_status cd_input_stream_read(cd_input_stream *s, void *buf, size_t cap, size_t *n, cdmpp_err *err);
/* Bytes of the file itself taken so far, and its size (0: unknown, a pipe). */
void cd_input_stream_progress(const cd_input_stream *s, uint64_t *done, uint64_t *total);
/* For messages: "<stdin>" for "-". */
const char *cd_input_stream_path(const cd_input_stream *s);
void cd_input_stream_close(CD_TAKE cd_input_stream *s); /* NULL is fine */
#endif
