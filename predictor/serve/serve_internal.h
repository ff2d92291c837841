/* The inside of serve.h: a batch of requests and its answers. */
#ifndef CD_SERVE_INTERNAL_H
#define CD_SERVE_INTERNAL_H
#include "predictor/serve/response.h"
#include "predictor/api/api.h"
#include "predictor/serve/line_reader.h"
#include "predictor/serve/serve.h"

/* What a chunk of the batch leaves behind; chunks are written in order. */
typedef struct cd_serve_chunk {
    cd_buf out;
    size_t n[CDMPP_STATUS_COUNT];
} cd_serve_chunk;

typedef struct cd_serve_state {
    cdmpp_context *c;
    const cdmpp_model *m;
    const cd_task_registry *tasks;   /* NULL: none */
    cd_serve_options o;      /* without defaults */
    cd_serve_stats *stats;
    cd_line_reader *in;           /* lines; NULL: frames */
    cd_arena text;           /* of the batch */
    size_t n;                /* requests in the batch */
    cd_candidate *ask;             /* (batch) */
    cd_aim *aim;             /* (batch) */
    cd_str *id;              /* (batch) */
    long *line;              /* (batch) */
    cdmpp_err *why;          /* (batch) of those that are refused */
    size_t base;             /* number in the batch of what the context calls 0 */
    cd_serve_chunk *chunk;   /* (n_chunk) */
    size_t n_chunk;
    int64_t first_ns;        /* when the first of the batch came */
} cd_serve_state;

/* Request i of the batch is bad; *e is copied. */
void cd_serve_refuse(cd_serve_state *s, size_t i, const cdmpp_err *e);
/* Rows for a model that reads loop nests: EMODEL. */
cdmpp_status cd_serve_check_rows(const cd_serve_state *s, cdmpp_err *err);
/* Request n of the batch is complete: counts it, and flushes a full batch. */
cdmpp_status cd_serve_take(cd_serve_state *s, cdmpp_err *err);
/* Score the batch and write its answers. */
cdmpp_status cd_serve_flush(cd_serve_state *s, cdmpp_err *err);
/* The next line; flushes the batch when max_delay_ms are over or the reader's room is used up, and releases the lines before if `copied`. False: the end. A line that
 * is too long comes as line->p NULL. */
cdmpp_status cd_serve_line(cd_serve_state *s, bool copied, cd_str *line, bool *more, cdmpp_err *err);

/* ---- the formats: each reads its requests until the end of input and answers them. Errors: those of cd_serve ---- */
cdmpp_status cd_serve_ndjson(cd_serve_state *s, cdmpp_err *err);
cdmpp_status cd_serve_csv(cd_serve_state *s, cdmpp_err *err);
cdmpp_status cd_serve_packed(cd_serve_state *s, cdmpp_err *err);
#endif
