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
#ifndef CD_WRITER_H
#define CD_WRITER_H
#include "base/core/core.h"
#include "base/text/text.h"
#include "dataset/extract/journal.h"

/* Where chunks are compressed; zero: at once, by the caller. */
typedef struct cd_compressor {
    void *ctx;
    void (*submit)(void *ctx, cd_journal_chunk *c); /* must lead to cd_journal_chunk_compress(c)             */
    bool (*ready)(void *ctx, cd_journal_chunk *c, bool wait); /* has it? `wait`: return only then */
    size_t max_pending;                     /* chunks under way; at least 1 */
} cd_compressor;

typedef struct cd_writer cd_writer;

/* Prepare OUT.partial. `fingerprint` (64 hex digits) names the inputs: when a
 * checkpoint with the same one is there and `restart` is false, the writer goes
 * on from it and `place` holds the caller's bytes of that checkpoint (n == 0: a
 * fresh start). Errors: EIO, ENOMEM. */
cdmpp_status cd_writer_open(CD_GIVE cd_writer **out, const char *path, const char *fingerprint, bool restart,
                            const cd_compressor *z, cd_buf *place, cdmpp_err *err);
/* Keeps OUT.partial: the run can go on later. NULL is fine. */
void cd_writer_free(CD_TAKE cd_writer *w);
/* The same, and OUT.partial is removed. */
void cd_writer_discard(CD_TAKE cd_writer *w);

/* One program, as the file holds it. Pointers are borrowed for the call. */
typedef struct cd_item {
    uint32_t n_row, n_leaf, n_own, n_tree;
    const float *row;                  /* (n_row, 164)                          */
    const int32_t *leaf_node, *leaf_pos, *leaf_row; /* (n_leaf)               */
    const uint8_t *leaf_own;           /* (n_leaf)                              */
    const float *own;                  /* (n_own, 164)                          */
    const int32_t *tree;               /* (n_tree)                              */
    const int32_t *path_ptr;           /* (n_leaf + 1), from 0; NULL when n_leaf == 0 */
    const int64_t *path_extent;
    const uint8_t *path_kind;
    double latency_s, latency_mean_s, latency_std_s, latency_min_s, flop;
    uint32_t repeats;
    uint8_t error, is_gpu;
    cd_str text[CD_LAYOUT_DICT_COUNT];
    uint64_t source_line;
} cd_item;
/* Appends a program to all columns. Errors: ENOMEM, EIO. */
cdmpp_status cd_writer_add(cd_writer *w, const cd_item *it, cdmpp_err *err);

/* The parts of it, for copying whole arrays: n elements of an array ... */
cdmpp_status cd_writer_push(cd_writer *w, cd_layout_array a, const void *data, size_t n, cdmpp_err *err);
/* ... and the number of a text. */
cdmpp_status cd_writer_intern(cd_writer *w, cd_layout_dict d, cd_str text, uint32_t *out, cdmpp_err *err);
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
    const cd_net_entry *net;     /* (n_net) any order, repeats allowed */
    const char *command_line, *source_digest;
} cd_finish;
/* Write OUT and OUT.skipped.tsv (absent when nothing was skipped) and remove
 * OUT.partial. On error OUT is untouched. Free the writer afterwards. */
cdmpp_status cd_writer_finish(cd_writer *w, const cd_finish *f, cdmpp_err *err);
/* The same where nothing is worth to be kept: OUT.skipped.tsv alone, OUT is untouched. */
cdmpp_status cd_writer_finish_empty(cd_writer *w, cdmpp_err *err);
#endif
