/* serve -- requests from one descriptor, answers to another, in their order: cdmpp-predict --stream.
 *
 *   line, line, ... -> batch -> context (chunks of 128 on its threads) -> answers -> written -> ...
 *
 * A batch is scored when it has `batch` requests, when max_delay_ms have passed since its first, on an empty line, when
 * the room for its lines is used up (predictor/serve/line_reader.h), and at the end.
 * (1) One line of answer for each line that is not empty (CSV: for each program), in order, whatever is wrong with it.
 * (2) Nothing but answers is written. Memory is bounded by the batch and by the longest line: while a client does not
 *     read its answers, no more requests of it are read.
 * (3) A batch that the model cannot answer as a whole is asked again one by one; the bad one gets the error.
 * (4) No memory is allocated after the largest batch was seen.
 * Formats and protocol: docs/reference/stream.md. One thread calls. */
#ifndef CD_SERVE_H
#define CD_SERVE_H
#include <signal.h>
#include <stdbool.h>

#include "cdmpp.h"

enum { CD_PROTOCOL = 1, CD_SERVE_BATCH = 256, CD_SERVE_DELAY_MS = 2 };

typedef enum { CD_SERVE_NDJSON, CD_SERVE_CSV, CD_SERVE_PACKED } cd_serve_format;
#define CD_SERVE_FORMATS "ndjson|csv|packed"

typedef struct cd_serve_options {
    int in, out;              /* descriptors */
    cd_serve_format format;
    size_t batch;             /* 0: CD_SERVE_BATCH */
    int max_delay_ms;         /* below 0: CD_SERVE_DELAY_MS */
    size_t max_bytes;         /* of a line or frame; 0: CD_FILE_LINE_MAX (base/io/io.h) */
    bool costs;               /* records: also what was measured */
    const char *profile;      /* for hello */
    const volatile sig_atomic_t *stop; /* set by a signal: what was read whole is answered, then EINTERRUPTED; NULL: never */
} cd_serve_options;

typedef struct cd_serve_stats {
    size_t asked, scored, bad, batches;    /* requests; packed: candidates, and a bad frame as one */
    size_t reason[CDMPP_STATUS_COUNT];     /* of the bad ones */
    uint64_t cache_asked, cache_found;
} cd_serve_stats;

/* Until the end of input. tasks NULL: none. *stats is right after an error, too. Errors: EIO, ENOMEM, EINTERRUPTED;
 * EMODEL (a model that reads loop nests has no packed form); CSV: EPARSE, ESCHEMA of its first line. */
cdmpp_status cd_serve(cdmpp_context *c, const cdmpp_model *m, const cdmpp_tasks *tasks, const cd_serve_options *o,
                      cd_serve_stats *stats, cdmpp_err *err);

/* The other headers of the room that are open to other rooms. */
#include "predictor/serve/library_op_stream.h"
#include "predictor/serve/stream.h"

/* ---- serve_print.c: the counts at the end, as messages for people and as one JSON object ---- */
void cd_serve_print_log(const cd_serve_stats *n, cd_log *log);
void cd_serve_print_json(cd_buf *b, const cd_serve_stats *n);
#endif
