/* extract -- measure logs in, data set file out.
 *
 *   reader (caller's thread)     workers (-j)            writer thread
 *   lines -> batch of 64  ====>  record, task, rows ===> append in input order
 *                                compress chunks <=====  full chunks
 *
 * (1) a fixed number of batches is in flight, so memory does not grow with input;
 * (2) batches are written in the order of reading: the file does not depend on -j;
 * (3) a line that cannot be used is skipped with a reason; out of memory, a full
 *     disk and the like end the run, and what was done stays in OUT.partial. */
#ifndef CD_EXTRACT_H
#define CD_EXTRACT_H
#include <stdatomic.h>

#include "dataset/extract/writer.h"
#include "features/program/program.h"

/* How a record becomes rows; cd_feature_engine_default() is the one, tests have others.
 * One `open` a thread; `find` is called from all of them. */
typedef struct cd_feature_engine {
    void *ctx;
    const cd_task *(*find)(void *ctx, cd_str workload_key);
    cdmpp_status (*open)(void *ctx, CD_GIVE void **program, cdmpp_err *err);
    cdmpp_status (*build)(void *program, const cd_task *task, const cd_record *r, cd_rows *out, cdmpp_err *err);
    void (*close)(CD_TAKE void *program);
} cd_feature_engine;
/* TVM's lowering and feature extraction, for the tasks of that registry. */
cd_feature_engine cd_feature_engine_default(CD_KEEP const cd_task_registry *tasks);

/* So far, a run before this one included. */
typedef struct cd_extract_stats {
    uint64_t records, programs, rows, skipped, failed; /* failed: kept, but not measured */
    uint64_t reason[CDMPP_STATUS_COUNT];               /* of the skipped                 */
    uint64_t resumed;                                  /* records taken from OUT.partial */
    uint64_t bytes, bytes_total;                       /* of the input files             */
} cd_extract_stats;

typedef struct cd_extract {
    const char *out;
    const char *const *input;        /* (n_input) files or folders  */
    size_t n_input;
    const char *const *task_file;    /* (n_task_file) for the fingerprint */
    size_t n_task_file;
    cd_feature_engine engine;
    const cd_net_entry *net;         /* (n_net) */
    size_t n_net;
    int jobs;                        /* <= 0: all CPUs */
    unsigned shard, n_shard;         /* 1/4; 0/0: everything */
    bool strict, restart;
    double checkpoint_s;             /* 0: 5 s; < 0: never */
    const char *command_line;        /* for the file's attribute */
    const atomic_bool *stop;         /* set, maybe by a signal: end, resumable; NULL: never */
    void (*progress)(void *ctx, const cd_extract_stats *s); /* from the calling thread; NULL: none */
    void *progress_ctx;
} cd_extract;

/* Errors: EIO, ENOMEM, EINTERRUPTED (OUT.partial is kept), with `strict` what
 * the first bad line gives. Lines that were skipped are no error, see *stats, but where all were and this is no shard: ENODATA, and only
 * OUT.skipped.tsv is written. */
cdmpp_status cd_extract_run(const cd_extract *x, cd_extract_stats *stats, cdmpp_err *err);

/* The same with the tasks and networks of x->task_file and the default engine. */
cdmpp_status cd_extract_logs(const cd_extract *x, cd_extract_stats *stats, cdmpp_err *err);

/* Join data set files in the given order: as if their inputs had been read by
 * one run. Errors: EIO, ESCHEMA, ENOMEM. */
cdmpp_status cd_merge(const char *out, const char *const *in, size_t n, const char *command_line,
                      cd_extract_stats *stats, cdmpp_err *err);

/* Append the line at "FILE:LINE" ("FILE": its first line) to `text` and FILE, NUL-terminated, to `path`,
 * which is empty. Errors: those of reading; EUSAGE: no such line. */
cdmpp_status cd_extract_line(const char *where, cd_buf *path, long *number, cd_buf *text, cdmpp_err *err);

/* Append the loop nest of the record at "FILE:LINE" ("FILE": its first line).
 * Errors: those of reading, ENOTASK and building; EUSAGE: no such line. */
cdmpp_status cd_extract_print(const char *const *task_file, size_t n, const char *where, cd_buf *out, cdmpp_err *err);

/* Append all tasks and networks of the files in our own text form
 * (docs/reference/tasks.md). Tasks without a DAG are left out. Errors: those of reading. */
cdmpp_status cd_extract_tasks(const char *const *task_file, size_t n, cd_buf *out, cdmpp_err *err);

/* The other headers of the room that are open to other rooms. */
#include "dataset/extract/convert.h"
#include "dataset/extract/inputs.h"
#include "dataset/extract/extract_report.h"
#endif
