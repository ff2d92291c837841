/* line_reader -- reads lines or frames from a pipe in bounded memory.
 *
 *   | lines given out, held | begun line | room |      read(2), poll(2)
 *                           beg          end    cap
 *
 * (1) A line stays where it is until cd_line_reader_release; until then nothing moves, so when the room is used up the
 *     answer is CD_INTAKE_FULL: release, then go on.
 * (2) Memory is that of the longest line, at most max_line and CD_INTAKE_ROOM. What is longer is skipped as it comes and
 *     reported once, CD_INTAKE_LONG.
 * (3) It reads only when a line is asked for: the rest stays in the pipe.
 * (4) The last line needs no end. "\r\n" ends a line, too.
 * No memory is allocated after the longest line was seen. One thread. */
#ifndef CD_LINE_READER_H
#define CD_LINE_READER_H
#include <signal.h>

#include "base/text/text.h"

enum { CD_INTAKE_ROOM = 1 << 20 };

typedef struct cd_line_reader cd_line_reader;
typedef enum { CD_INTAKE_LINE, CD_INTAKE_LONG, CD_INTAKE_LATE, CD_INTAKE_FULL, CD_INTAKE_END } cd_line_reader_kind;

/* Errors: ENOMEM. */
cdmpp_status cd_line_reader_new(int fd, size_t max_line, CD_GIVE cd_line_reader **out, cdmpp_err *err);
void cd_line_reader_free(CD_TAKE cd_line_reader *in); /* NULL is fine; leaves fd open */
/* The next line; LATE: none was whole at `until_ns` of CLOCK_MONOTONIC (below 0: wait for ever), or a signal came.
 * Errors: EIO, ENOMEM. */
cdmpp_status cd_line_reader_next(cd_line_reader *in, int64_t until_ns, cd_line_reader_kind *kind, CD_KEEP cd_str *line, cdmpp_err *err);
/* The caller no longer needs the lines that were given out: the buffer may move. */
void cd_line_reader_release(cd_line_reader *in);
/* 1-based number of the line that came last; whether it had an end. */
long cd_line_reader_number(const cd_line_reader *in);
bool cd_line_reader_whole(const cd_line_reader *in);

/* Frames: n bytes, *got fewer at the end of input; `to` NULL: skip them. With *stop set a signal ends the wait.
 * Errors: EIO. Not to be mixed with lines. */
cdmpp_status cd_line_reader_bytes(int fd, void *to, size_t n, const volatile sig_atomic_t *stop, size_t *got, cdmpp_err *err);
/* Writes all of p (n bytes) to fd, and waits as long as the reader needs. Errors: EIO. */
cdmpp_status cd_line_reader_send(int fd, const void *p, size_t n, cdmpp_err *err);
int64_t cd_line_reader_now(void); /* CLOCK_MONOTONIC in ns */
#endif
