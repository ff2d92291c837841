/* What the files of dataset/extract share among themselves. */
#ifndef CD_DATASET_EXTRACT_INTERNAL_H
#define CD_DATASET_EXTRACT_INTERNAL_H
#include <pthread.h>

#include "dataset/extract/extract.h"

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

#define CD_BATCH_LINES 64
#define CD_BATCH_BYTES ((size_t)512 << 10) /* a batch ends with the line that passes this */

typedef enum { CD_SLOT_FREE, CD_SLOT_FULL, CD_SLOT_BUSY, CD_SLOT_DONE } cd_slot_state;

typedef struct cd_pipe_line {
    size_t at, n; /* in the batch's text */
    long number;
    cd_convert_result out; /* set by the reader for lines that could not be read */
} cd_pipe_line;

typedef struct cd_pipe_batch {
    cd_slot_state state;
    size_t file;        /* index of the input file        */
    const char *source; /* its path                       */
    cd_buf text;        /* the lines, each with its '\n'  */
    cd_pipe_line line[CD_BATCH_LINES];
    size_t n_line;
    bool file_ends; /* with this batch                */
    uint32_t crc;   /* of the text                    */
    cd_arena arena; /* outcomes                       */
} cd_pipe_batch;

typedef struct cd_pipe {
    pthread_mutex_t lock;
    pthread_cond_t work, space, done;
    cd_pipe_batch *slot; /* (n_slot) */
    size_t n_slot;
    uint64_t n_read, n_taken, n_written; /* batches so far */
    bool no_more;                        /* the reader has ended            */
    bool abort;                          /* the writer has ended with an error */
    bool quit;                           /* workers go home                 */
    cd_journal_chunk **chunk;            /* (max_chunk) ring of chunks to compress */
    size_t max_chunk, chunk_first, n_chunk;
    pthread_t *thread;      /* (n_thread) workers */
    cd_convert_state *conv; /* (n_thread) */
    int n_thread;
} cd_pipe;

/* writer_internal -- the writer's inside, shared by writer*.c only. */

typedef struct cd_column {
    uint64_t n;             /* elements pushed                                   */
    uint32_t crc;           /* of the full chunks                                */
    cd_journal_chunk *open; /* being filled; NULL right after a full one         */
} cd_column;

struct cd_writer {
    char path[3072], dir[3080];
    char fingerprint[65];
    cd_compressor zip;
    cd_journal journal;
    cd_column col[CD_LAYOUT_ARRAY_COUNT];
    cd_dict dict[CD_LAYOUT_DICT_COUNT];
    cd_journal_chunk *first, **last; /* under compression, oldest first */
    size_t n_pending;
    int skip_fd;
    uint64_t n_skip_bytes;
};

/* Close the open chunks, whatever they hold. */
cdmpp_status cd_writer_flush(cd_writer *w, cdmpp_err *err);
/* "OUT.partial/<name>" */
void cd_writer_path(const cd_writer *w, const char *name, char out[4096]);

/* Remove OUT.partial. */
void cd_writer_remove_parts(cd_writer *w);

#endif
