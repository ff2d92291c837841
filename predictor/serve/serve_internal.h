/* The inside of serve.h: a batch of requests and its answers. */
#ifndef CD_SERVE_INTERNAL_H
#define CD_SERVE_INTERNAL_H
#include <signal.h>

#include "base/core/core.h"
#include "base/text/text.h"
#include "predictor/api/api.h"
#include "predictor/score/score.h"
#include "predictor/serve/line_server.h"
#include "predictor/serve/serve.h"

/* A measured time this much below what the device needs at best is refused: boards run some tenths
 * above the clock of their data sheet; twice would be another board. */
#define CD_SERVE_ABOVE_PEAK 1.5

/* response -- the answer to a request as a line of JSON or CSV.
 *
 *   {"id":1,"latency_s":1.2e-4,"score":8130,"low_s":..,"high_s":..,"rel_std":0.07,
 *    "flags":["out_of_range"]}
 *   {"id":3,"error":{"code":"EMODEL","key":"rows[0]",
 *    "message":"expected rows of 164 numbers, found 2"}}
 *   with costs also "measured_s" and "rel_error" = latency_s/measured_s - 1, null when the
 *   measurement failed; where another device answers "device", its name; "line" instead of "id"
 *   where the request has none
 *
 *   1,0.00012,8130,6e-05,0.0003,0.07,out_of_range,,,dtype float16
 *   3,,,,,,,EMODEL,"expected rows of 164 numbers, found 2",
 *
 * No state, any thread. */

typedef struct cd_response {
    cd_str id; /* as it is to be written; n == 0: none */
    long line;
    const cd_scored *o;
    const char *answered; /* name of the model's device that answered */
    bool costs;
} cd_response;

/* Append the line, with its end. */
void cd_response_json(cd_buf *b, const cd_response *a);
#define CD_ANSWER_CSV_HEAD "id,latency_s,score,low_s,high_s,rel_std,flags,error,message,reason\n"
/* The same as a line of CSV with the columns above. */
void cd_response_csv(cd_buf *b, const cd_response *a);

/* line_reader -- reads lines or frames from a pipe in bounded memory.
 *
 *   | lines given out, held | begun line | room |      read(2), poll(2)
 *                           beg          end    cap
 *
 * (1) A line stays where it is until cd_line_reader_release; until then nothing moves, so when the
 *     room is used up the answer is CD_INTAKE_FULL: release, then go on.
 * (2) Memory is that of the longest line, at most max_line and CD_INTAKE_ROOM. What is longer is
 *     skipped as it comes and reported once, CD_INTAKE_LONG.
 * (3) It reads only when a line is asked for: the rest stays in the pipe.
 * (4) The last line needs no end. "\r\n" ends a line, too.
 * No memory is allocated after the longest line was seen. One thread. */

enum { CD_INTAKE_ROOM = 1 << 20 };

typedef struct cd_line_reader cd_line_reader;
typedef enum {
    CD_INTAKE_LINE,
    CD_INTAKE_LONG,
    CD_INTAKE_LATE,
    CD_INTAKE_FULL,
    CD_INTAKE_END
} cd_line_reader_kind;

/* Errors: ENOMEM. */
cdmpp_status cd_line_reader_new(int fd, size_t max_line, CD_GIVE cd_line_reader **out,
                                cdmpp_err *err);
void cd_line_reader_free(CD_TAKE cd_line_reader *in); /* NULL is fine; leaves fd open */
/* The next line; LATE: none was whole at `until_ns` of CLOCK_MONOTONIC (below 0: wait for ever), or
 * a signal came. Errors: EIO, ENOMEM. */
cdmpp_status cd_line_reader_next(cd_line_reader *in, int64_t until_ns, cd_line_reader_kind *kind,
                                 CD_KEEP cd_str *line, cdmpp_err *err);
/* The caller no longer needs the lines that were given out: the buffer may move. */
void cd_line_reader_release(cd_line_reader *in);
/* 1-based number of the line that came last; whether it had an end. */
long cd_line_reader_number(const cd_line_reader *in);
bool cd_line_reader_whole(const cd_line_reader *in);

/* Frames: n bytes, *got fewer at the end of input; `to` NULL: skip them. With *stop set a signal
 * ends the wait. Errors: EIO. Not to be mixed with lines. */
cdmpp_status cd_line_reader_bytes(int fd, void *to, size_t n, const volatile sig_atomic_t *stop,
                                  size_t *got, cdmpp_err *err);
/* Writes all of p (n bytes) to fd, and waits as long as the reader needs. Errors: EIO. */
cdmpp_status cd_line_reader_send(int fd, const void *p, size_t n, cdmpp_err *err);
int64_t cd_line_reader_now(void); /* CLOCK_MONOTONIC in ns */

/* error_line -- the error of a line as members of its JSON object. Any thread. */

/* ,"error":{"code":"EPARSE","key":"..","message":".."}; without "key" where there is none. */
void cd_error_line_put(cd_buf *b, const cdmpp_err *e);

/* request -- one line of cdmpp-predict --stream: what is asked, and how the answer is called.
 *
 *   {"id":1,"device":"t4","task":"[\"d7b6..\"]","rows":[[164 numbers], ...]}  rows of a program
 *   {"id":2,"task":"[\"d7b6..\"]","target":"cuda","hardware":[8 ints],
 *    "steps":[["SP",..], ..]}                                                 a schedule
 *   {"i":[[key, target, ..], [[], steps]],"r":[..],"v":"v0.6"}                a measure log's line
 *   {"cmd":"hello"}  {"cmd":"stats"}                                          about the other side
 *
 * (1) "id" is a number or a text of at most CD_REQUEST_ID bytes, answered as it was written.
 * (2) Each member once, and none that is not known: a misspelt "device" must not be another device.
 * (3) "steps" need "task"; of "i", "rows", "steps", "cmd" there is exactly one. "r" is read only
 *     when costs are wanted. Rows and steps stay text: the scorer parses them, on its own thread.
 * Texts of the answer point into the line or live in the arena. No state, any thread. */

enum { CD_REQUEST_ID = 256 };

typedef enum { CD_REQUEST_SCORE, CD_REQUEST_HELLO, CD_REQUEST_STATS } cd_request_kind;

typedef struct cd_request {
    cd_str id; /* n == 0: none, or not read yet when something was wrong */
    cd_request_kind kind;
    cd_candidate ask; /* of SCORE; without its aim */
    cd_aim aim;
} cd_request;

/* tasks NULL: none are defined; "task" is then only a name. Errors, key is the member: EPARSE,
 * ESCHEMA, ERANGE, ENOTASK, ENOMEM. */
cdmpp_status cd_request_read(cd_arena *a, const cd_task_registry *tasks, cd_str line, bool costs,
                             cd_request *out, cdmpp_err *err);
/* The id of a line that is a JSON object, as it was written; n == 0: it has none. Errors: EPARSE,
 * ESCHEMA, ERANGE, ENOMEM. */
cdmpp_status cd_request_id(cd_arena *a, cd_str line, cd_str *out, cdmpp_err *err);
/* The same from texts that are not JSON, each n == 0 where there is none. Errors: ENOTASK,
 * ENOMEM. */
cdmpp_status cd_request_aim(cd_arena *a, const cd_task_registry *tasks, cd_str task, cd_str target,
                            cd_aim *out, cdmpp_err *err);

/* What a chunk of the batch leaves behind; chunks are written in order. */
typedef struct cd_serve_chunk {
    cd_buf out;
    size_t n[CDMPP_STATUS_COUNT];
} cd_serve_chunk;

typedef struct cd_serve_state {
    cdmpp_context *c;
    const cdmpp_model *m;
    const cd_task_registry *tasks; /* NULL: none */
    cd_serve_options o;            /* without defaults */
    cd_serve_stats *stats;
    cd_line_reader *in;    /* lines; NULL: frames */
    cd_arena text;         /* of the batch */
    size_t n;              /* requests in the batch */
    cd_candidate *ask;     /* (batch) */
    cd_aim *aim;           /* (batch) */
    cd_str *id;            /* (batch) */
    long *line;            /* (batch) */
    cdmpp_err *why;        /* (batch) of those that are refused */
    size_t base;           /* number in the batch of what the context calls 0 */
    cd_serve_chunk *chunk; /* (n_chunk) */
    size_t n_chunk;
    int64_t first_ns; /* when the first of the batch came */
} cd_serve_state;

/* Request i of the batch is bad; *e is copied. */
void cd_serve_refuse(cd_serve_state *s, size_t i, const cdmpp_err *e);
/* Rows for a model that reads loop nests: EMODEL. */
cdmpp_status cd_serve_check_rows(const cd_serve_state *s, cdmpp_err *err);
/* Request n of the batch is complete: counts it, and flushes a full batch. */
cdmpp_status cd_serve_take(cd_serve_state *s, cdmpp_err *err);
/* Score the batch and write its answers. */
cdmpp_status cd_serve_flush(cd_serve_state *s, cdmpp_err *err);
/* The next line; flushes the batch when max_delay_ms are over or the reader's room is used up, and
 * releases the lines before if `copied`. False: the end. A line that is too long comes as line->p
 * NULL. */
cdmpp_status cd_serve_line(cd_serve_state *s, bool copied, cd_str *line, bool *more,
                           cdmpp_err *err);

/* ---- the formats: each reads its requests until the end of input and answers them. Errors: those
 * of cd_serve ---- */
cdmpp_status cd_serve_ndjson(cd_serve_state *s, cdmpp_err *err);
cdmpp_status cd_serve_csv(cd_serve_state *s, cdmpp_err *err);
cdmpp_status cd_serve_packed(cd_serve_state *s, cdmpp_err *err);
#endif
