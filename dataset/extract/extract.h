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

#include "base/cli/cli.h"
#include "dataset/file/file.h"
#include "features/program/program.h"

/* journal -- compressed chunks of arrays, appended to one file as they fill up.
 *
 *   | head: magic array n crc n_zip | n_zip bytes | head | ... |
 *
 * HDF5 files do not survive a kill while they are written, so extraction writes
 * this file first: what is before the length noted at the last checkpoint is
 * good, the rest is cut off when the run goes on. At the end the chunks are
 * copied into an HDF5 file as they are. One thread; cd_journal_chunk_compress is for any. */

/* A chunk of one array on its way into the journal. */
typedef struct cd_journal_chunk {
    cd_layout_array array;
    uint32_t n, crc; /* elements filled; CRC-32 of them                     */
    uint8_t *raw;    /* (cd_layout_array_chunk, cd_layout_array_bytes)                    */
    uint8_t *zip;    /* (n_zip) after cd_journal_chunk_compress                          */
    size_t n_zip;
    bool done; /* cd_journal_chunk_compress has finished (see the thread's owner)  */
    bool failed;
    struct cd_journal_chunk *next;
} cd_journal_chunk;

CD_GIVE cd_journal_chunk *cd_journal_chunk_new(cd_layout_array a); /* NULL when out of memory */
void cd_journal_chunk_free(CD_TAKE cd_journal_chunk *c);           /* NULL is fine */
/* Compress and take the CRC; sets failed when memory runs out. */
void cd_journal_chunk_compress(cd_journal_chunk *c);

typedef struct cd_journal_entry {
    uint64_t offset; /* of the compressed bytes */
    uint32_t n_zip, n;
    cd_layout_array array;
} cd_journal_entry;

typedef struct cd_journal {
    int fd;
    char path[4096];
    uint64_t length;
    cd_journal_entry *entry; /* (n) in file order */
    size_t n, cap;
} cd_journal;

/* Open or create `path`, keep its first `length` bytes and read what they hold.
 * Locked: a second process gets EIO. Errors: EIO, ESCHEMA (not a journal, or
 * shorter than `length`), ENOMEM. */
cdmpp_status cd_journal_open(cd_journal *j, const char *path, uint64_t length, cdmpp_err *err);
cdmpp_status cd_journal_append(cd_journal *j, const cd_journal_chunk *c, cdmpp_err *err);
cdmpp_status cd_journal_sync(cd_journal *j, cdmpp_err *err);
/* The compressed bytes of entry i, into buf (entry[i].n_zip). */
cdmpp_status cd_journal_read(const cd_journal *j, size_t i, void *buf, cdmpp_err *err);
void cd_journal_close(cd_journal *j);

/* writer -- builds a data set file so that a kill at any time loses nothing.
 *
 *   push -> column's open chunk -> full: compress -> OUT.partial/journal
 *   checkpoint: OUT.partial/state = open chunks, dictionaries, lengths, caller's place
 *   finish: journal -> OUT.partial/data.h5 -> renamed to OUT
 *
 * (1) chunks enter the journal in the order in which they filled up, whoever
 *     compressed them: the file depends on what was pushed, not on threads;
 * (2) `state` is replaced whole and only after the journal is on disk;
 * (3) OUT is touched by one rename, at the very end.
 * All calls from one thread; compression may go elsewhere (cd_compressor). */

/* Where chunks are compressed; zero: at once, by the caller. */
typedef struct cd_compressor {
    void *ctx;
    /* must lead to cd_journal_chunk_compress(c)             */
    void (*submit)(void *ctx, cd_journal_chunk *c);
    bool (*ready)(void *ctx, cd_journal_chunk *c, bool wait); /* has it? `wait`: return only then */
    size_t max_pending;                                       /* chunks under way; at least 1 */
} cd_compressor;

typedef struct cd_writer cd_writer;

/* Prepare OUT.partial. `fingerprint` (64 hex digits) names the inputs: when a
 * checkpoint with the same one is there and `restart` is false, the writer goes
 * on from it and `place` holds the caller's bytes of that checkpoint (n == 0: a
 * fresh start). Errors: EIO, ENOMEM. */
cdmpp_status cd_writer_open(CD_GIVE cd_writer **out, const char *path, const char *fingerprint,
                            bool restart, const cd_compressor *z, cd_buf *place, cdmpp_err *err);
/* Keeps OUT.partial: the run can go on later. NULL is fine. */
void cd_writer_free(CD_TAKE cd_writer *w);
/* The same, and OUT.partial is removed. */
void cd_writer_discard(CD_TAKE cd_writer *w);

/* One program, as the file holds it. Pointers are borrowed for the call. */
typedef struct cd_item {
    uint32_t n_row, n_leaf, n_own, n_tree;
    const float *row;                               /* (n_row, 164)                          */
    const int32_t *leaf_node, *leaf_pos, *leaf_row; /* (n_leaf)               */
    const uint8_t *leaf_own;                        /* (n_leaf)                              */
    const float *own;                               /* (n_own, 164)                          */
    const int32_t *tree;                            /* (n_tree)                              */
    const int32_t *path_ptr; /* (n_leaf + 1), from 0; NULL when n_leaf == 0 */
    const int64_t *path_extent;
    const uint8_t *path_kind;
    /* (n_step) steps as numbers; NULL: the file keeps none, of any program */
    const int32_t *step;
    uint32_t n_step;
    /* (2) identity of the program; NULL: the file keeps none, of any program */
    const uint64_t *id;
    const float *facts; /* (CD_N_FACTS); NULL: none, and facts_state says why */
    /* cd_facts_state; one that says facts are there without them stands for CD_FACTS_ABSENT */
    uint8_t facts_state;
    double latency_s, latency_mean_s, latency_std_s, latency_min_s, flop;
    uint32_t repeats;
    uint8_t error, is_gpu;
    cd_str text[CD_LAYOUT_DICT_COUNT];
    uint64_t source_line;
} cd_item;
/* Appends a program to all columns. Errors: ENOMEM, EIO. */
cdmpp_status cd_writer_add(cd_writer *w, const cd_item *it, cdmpp_err *err);

/* The parts of it, for copying whole arrays: n elements of an array ... */
cdmpp_status cd_writer_push(cd_writer *w, cd_layout_array a, const void *data, size_t n,
                            cdmpp_err *err);
/* ... and the number of a text. */
cdmpp_status cd_writer_intern(cd_writer *w, cd_layout_dict d, cd_str text, uint32_t *out,
                              cdmpp_err *err);
uint64_t cd_writer_count(const cd_writer *w, cd_layout_array a); /* elements so far */

/* A line for OUT.skipped.tsv. */
cdmpp_status cd_writer_skip(cd_writer *w, const char *line, size_t n, cdmpp_err *err);

/* Move chunks that are ready into the journal, without waiting. */
cdmpp_status cd_writer_poll(cd_writer *w, cdmpp_err *err);
/* Make what was pushed so far survive a kill, together with the caller's `place`. */
cdmpp_status cd_writer_checkpoint(cd_writer *w, const void *place, size_t n, cdmpp_err *err);

/* Membership of tasks in networks; entries of tasks without a program are left out. */
typedef struct cd_net_entry {
    const char *network, *task;
    int64_t weight;
} cd_net_entry;
typedef struct cd_finish {
    size_t n_net;
    const cd_net_entry *net; /* (n_net) any order, repeats allowed */
    const char *command_line, *source_digest;
} cd_finish;
/* Write OUT and OUT.skipped.tsv (absent when nothing was skipped) and remove
 * OUT.partial. On error OUT is untouched. Free the writer afterwards. */
cdmpp_status cd_writer_finish(cd_writer *w, const cd_finish *f, cdmpp_err *err);
/* The same where nothing is worth to be kept: OUT.skipped.tsv alone, OUT is untouched. */
cdmpp_status cd_writer_finish_empty(cd_writer *w, cdmpp_err *err);

/* How a record becomes rows; cd_feature_engine_default() is the one, tests have others.
 * One `open` a thread; `find` is called from all of them. */
typedef struct cd_feature_engine {
    void *ctx;
    const cd_task *(*find)(void *ctx, cd_str workload_key);
    cdmpp_status (*open)(void *ctx, CD_GIVE void **program, cdmpp_err *err);
    cdmpp_status (*build)(void *program, const cd_task *task, const cd_record *r, cd_rows *out,
                          cdmpp_err *err);
    void (*close)(CD_TAKE void *program);
    /* Facts (CD_N_FACTS) of the program of the last build; EUNSUPPORTED: it has none. NULL: none
     * has. */
    cdmpp_status (*facts)(void *program, cd_facts_set set, float *out, cdmpp_err *err);
    /* Which of several definitions of a key the record is of (cd_program_choose). NULL: the
     * first. */
    cdmpp_status (*choose)(void *program, const cd_record *r, const cd_task **task, cdmpp_err *err);
} cd_feature_engine;

/* So far, a run before this one included. */
typedef struct cd_extract_stats {
    uint64_t records, programs, rows, skipped, failed; /* failed: kept, but not measured */
    uint64_t reason[CDMPP_STATUS_COUNT];               /* of the skipped                 */
    uint64_t resumed;                                  /* records taken from OUT.partial */
    uint64_t bytes, bytes_total;                       /* of the input files             */
} cd_extract_stats;

typedef struct cd_extract {
    const char *out;
    const char *const *input; /* (n_input) files or folders  */
    size_t n_input;
    const char *const *task_file; /* (n_task_file) for the fingerprint */
    size_t n_task_file;
    /* where printed definitions leave something open: cd_task_registry_assume */
    unsigned assume;
    cd_feature_engine engine;
    const cd_net_entry *net; /* (n_net) */
    size_t n_net;
    int jobs;                /* <= 0: all CPUs */
    unsigned shard, n_shard; /* 1/4; 0/0: everything */
    bool strict, restart;
    /* keep the steps of the schedules, for estimators that read them */
    bool steps;
    /* keep an identity of each program, by which copies are found */
    bool ids;
    /* of records whose target names none; NULL: the folder of their log */
    const char *device;
    double checkpoint_s;               /* 0: 5 s; < 0: never */
    const char *command_line;          /* for the file's attribute */
    const volatile sig_atomic_t *stop; /* set, maybe by a signal: end, resumable; NULL: never */
    /* from the calling thread; NULL: none */
    void (*progress)(void *ctx, const cd_extract_stats *s);
    void *progress_ctx;
    cd_log *log; /* of warnings about task files; NULL: none */
} cd_extract;

/* Errors: EIO, ENOMEM, EINTERRUPTED (OUT.partial is kept), with `strict` what the first bad line
 * gives. Lines that were skipped are no error, see *stats, but where all were and this is no shard:
 * ENODATA, and only OUT.skipped.tsv is written. */
cdmpp_status cd_extract_run(const cd_extract *x, cd_extract_stats *stats, cdmpp_err *err);

/* The same with the tasks and networks of x->task_file and the default engine. */
cdmpp_status cd_extract_logs(const cd_extract *x, cd_extract_stats *stats, cdmpp_err *err);

/* Join data set files in the given order: as if their inputs had been read by
 * one run. Errors: EIO, ESCHEMA (also where some files have steps and others do not), ENOMEM. */
cdmpp_status cd_merge(const char *out, const char *const *in, size_t n, const char *command_line,
                      cd_extract_stats *stats, cdmpp_err *err);

/* copies -- programs that were measured several times become one program with one label.
 *
 *   inputs: identity, latency, run ──> groups of one identity ─┬─> runs slow as a whole: left out
 *                                                              └─> median of the copies' medians,
 *                                                                  their range
 *   inputs again, block by block ────> the first copy of each program, with the label of all
 *
 * A run is the folder of a log. Identities are held a part at a time (copies.c); what stays is
 * about 5 bytes a record, 80 a program of several records, and, while runs are compared, 44 for
 * each time that a run measured such a program. Rows are never held. */

/* 128 bits that two records have in common when they are one program of one device: of the workload
 * key, the target, the device, hardware numbers, the layout option and the steps. The extent that
 * an SP step notes is no part: nothing depends on it. */
void cd_program_id_of(const cd_record *r, cd_str device, uint64_t out[2]);

/* One program as one run measured it. */
typedef struct cd_run_point {
    uint32_t program, run;
    double log_s;
} cd_run_point;
typedef struct cd_run_scale {
    /* time of the run over that of the others, both of the same programs; 1 where not judged */
    double factor;
    uint64_t n_shared; /* programs that another run measured, too */
} cd_run_scale;
/* a run with fewer is not judged: a median of few programs is chance */
enum { CD_RUN_LEAST_SHARED = 20 };
/* Factors of n_run runs from points sorted by program; at least two runs have each program, each
 * once. Runs that shared programs join are compared with their middle one (of an even number the
 * faster middle one). Errors: ENOMEM. */
cdmpp_status cd_copies_scale(const cd_run_point *p, size_t n, size_t n_run, cd_run_scale *out,
                             cdmpp_err *err);

typedef struct cd_copies_stats {
    /* distinct programs; those measured more than once, and their records */
    uint64_t programs, several, records_of_several;
    uint64_t slow_runs, left_out; /* runs left out, and their records */
    /* largest over smallest copy, of those measured more than once */
    double spread_median, spread_p90;
} cd_copies_stats;
/* The inputs as one data set with each program once. A run that is more than `slow` times slower
 * than the others is left out, with a warning; slow == 0: none is. Errors: those of cd_merge;
 * ENODATA: an input has no identities, or is merged already. */
cdmpp_status cd_merge_copies(const char *out, const char *const *in, size_t n, double slow,
                             const char *command_line, cd_log *log, cd_extract_stats *stats,
                             cd_copies_stats *copies, cdmpp_err *err);

/* Append the line at "FILE:LINE" ("FILE": its first line) to `text` and FILE, NUL-terminated, to
 * `path`, which is empty. Errors: those of reading; EUSAGE: no such line. */
cdmpp_status cd_extract_line(const char *where, cd_buf *path, long *number, cd_buf *text,
                             cdmpp_err *err);

/* Append the loop nest of the record at "FILE:LINE" ("FILE": its first line). assume: as in
 * cd_extract. log: of warnings about task files. Errors: those of reading, ENOTASK and building;
 * EUSAGE: no such line. */
cdmpp_status cd_extract_print(const char *const *task_file, size_t n, unsigned assume,
                              const char *where, cd_log *log, cd_buf *out, cdmpp_err *err);

/* Append all tasks and networks of the files in our own text form (docs/reference/tasks.md). Tasks
 * without a DAG are left out; *n_task: the others. Errors: those of reading. */
cdmpp_status cd_extract_tasks(const char *const *task_file, size_t n, unsigned assume, cd_log *log,
                              cd_buf *out, size_t *n_task, cdmpp_err *err);

/* inputs -- the files that a run reads, in order, and a name for all of them. */

typedef struct cd_inputs {
    cd_arena arena;
    const char **path; /* (n) as given, or the folder as given + "/" + the path in it */
    uint64_t *size;    /* (n) bytes as they are, packed or not                        */
    size_t n;
    uint64_t bytes;
} cd_inputs;

/* Files are taken as given; of a folder all *.json, *.jsonl and *.log (plain or
 * with .gz .xz .zst), sorted by path. Of shard i/n the files whose middle byte
 * lies in the i-th n-th of all bytes: shards in order give the whole in order.
 * Errors: EIO, EUSAGE (nothing to read), ENOMEM. */
cdmpp_status cd_inputs_list(const cd_extract *x, cd_inputs *out, cdmpp_err *err);
void cd_inputs_free(cd_inputs *in);
/* Digest of paths, sizes, times of change and options that matter: equal means
 * that a run can go on where another stopped. */
cdmpp_status cd_inputs_fingerprint(const cd_extract *x, const cd_inputs *in, char out[65],
                                   cdmpp_err *err);

/* extract_report -- what the commands that extract print: progress, counts, reasons, the command
 * that made a file. */

/* The end of a command that went well: counts and a table of reasons to the log; with --json one
 * object of schema "cdmpp.extract/1" to standard output. Sets the exit code: 3 where some lines
 * were skipped. Errors: EIO, ENOMEM. */
cdmpp_status cd_extract_report_end(cd_command_run *r, const char *out, const cd_extract_stats *s,
                                   double seconds, cdmpp_err *err);

/* An extraction by `extract` with a progress bar on `log`; sets command_line and progress of x. ctx
 * NULL: this process extracts alone; else a rank that had nothing to do says nothing. Errors: those
 * of `extract`, ENOMEM. */
typedef cdmpp_status cd_extract_report_fn(const cd_extract *x, const void *ctx, cd_extract_stats *s,
                                          cdmpp_err *err);
cdmpp_status cd_extract_report_run(cd_extract *x, cd_extract_report_fn *extract, const void *ctx,
                                   cd_log *log, cd_extract_stats *s, cdmpp_err *err);

/* convert -- one line of a log to one program of a data set, or to a reason. */

typedef struct cd_convert_result {
    cdmpp_status st;
    cd_item *item;  /* when OK; when EREJECTED: one row of zeros, as TVM hands it over */
    cdmpp_err *err; /* when not OK */
} cd_convert_result;

/* What a file has only where it was asked for: steps of the schedules, identities of the
 * programs. */
typedef struct cd_convert_extra {
    bool steps, ids;
    const char *device; /* of records whose target names none; NULL: the folder of their log */
} cd_convert_extra;

/* What a worker keeps from line to line. */
typedef struct cd_convert_state {
    const cd_feature_engine *engine;
    cd_convert_extra extra;
    void *program;
    cd_arena scratch; /* one record */
    cd_arena kinds;   /* signature of the last task and target */
    const cd_task *task;
    cd_str target;
    int64_t threads;
    const char *kind;
} cd_convert_state;

/* Opens, closes the engine of one worker. Errors: those of the engine. */
cdmpp_status cd_convert_open(cd_convert_state *c, CD_KEEP const cd_feature_engine *e,
                             cd_convert_extra extra, cdmpp_err *err);
void cd_convert_close(cd_convert_state *c);

/* The result lives in `a`, but for `source`, which is borrowed, and texts of the
 * task. ENOMEM is an outcome as well. */
cd_convert_result cd_convert(cd_convert_state *c, cd_arena *a, const char *line, size_t n,
                             const char *source, long number);
#endif
