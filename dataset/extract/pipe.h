/* pipe -- batches of lines through workers and out again in order.
 *
 *   slot  0      1      2      3        one ring; slot = number % n_slot
 *        DONE   BUSY   FULL   FREE
 *         ^writer       ^worker ^reader
 *
 * (1) the reader owns FREE slots, a worker BUSY ones, the writer DONE ones;
 * (2) chunks to compress go before batches, so the writer never waits for work
 *     that waits for the writer;
 * (3) states change under the lock only. */
#ifndef CD_PIPE_H
#define CD_PIPE_H
#include <pthread.h>

#include "base/core/core.h"
#include "dataset/extract/convert.h"

#define CD_BATCH_LINES 64
#define CD_BATCH_BYTES ((size_t)512 << 10) /* a batch ends with the line that passes this */

typedef enum { CD_SLOT_FREE, CD_SLOT_FULL, CD_SLOT_BUSY, CD_SLOT_DONE } cd_slot_state;

typedef struct cd_pipe_line {
    size_t at, n;       /* in the batch's text */
    long number;
    cd_convert_result out;     /* set by the reader for lines that could not be read */
} cd_pipe_line;

typedef struct cd_pipe_batch {
    cd_slot_state state;
    size_t file;        /* index of the input file        */
    const char *source; /* its path                       */
    cd_buf text;        /* the lines, each with its '\n'  */
    cd_pipe_line line[CD_BATCH_LINES];
    size_t n_line;
    bool file_ends;     /* with this batch                */
    uint32_t crc;       /* of the text                    */
    cd_arena arena;     /* outcomes                       */
} cd_pipe_batch;

typedef struct cd_pipe {
    pthread_mutex_t lock;
    pthread_cond_t work, space, done;
    cd_pipe_batch *slot;     /* (n_slot) */
    size_t n_slot;
    uint64_t n_read, n_taken, n_written; /* batches so far */
    bool no_more;       /* the reader has ended            */
    bool abort;         /* the writer has ended with an error */
    bool quit;          /* workers go home                 */
    cd_journal_chunk **chunk;   /* (max_chunk) ring of chunks to compress */
    size_t max_chunk, chunk_first, n_chunk;
    pthread_t *thread;  /* (n_thread) workers */
    cd_convert_state *conv; /* (n_thread) */
    int n_thread;
} cd_pipe;

/* n workers, each with its own program. Errors: ENOMEM, EBACKEND, what `open` gives. */
cdmpp_status cd_pipe_open(cd_pipe *p, int n, CD_KEEP const cd_feature_engine *e, cdmpp_err *err);
void cd_pipe_close(cd_pipe *p);

/* Reader: the next slot, empty, or NULL when the run was aborted; then hand it on. */
cd_pipe_batch *cd_pipe_blank(cd_pipe *p);
void cd_pipe_put(cd_pipe *p);
void cd_pipe_end(cd_pipe *p);
/* Writer: the next batch in order, or NULL at the end; then give it back. */
cd_pipe_batch *cd_pipe_get(cd_pipe *p);
void cd_pipe_back(cd_pipe *p);
void cd_pipe_abort(cd_pipe *p);
cd_compressor cd_pipe_compressor(cd_pipe *p);
#endif
