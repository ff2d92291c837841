/* writer_internal -- the writer's inside, shared by writer*.c only. */
#ifndef CD_WRITER_INTERNAL_H
#define CD_WRITER_INTERNAL_H
#include "dataset/extract/writer.h"

typedef struct cd_column {
    uint64_t n;         /* elements pushed                                   */
    uint32_t crc;       /* of the full chunks                                */
    cd_journal_chunk *open;     /* being filled; NULL right after a full one         */
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

/* Wait for all chunks under way and put them into the journal. */
cdmpp_status cd_writer_drain(cd_writer *w, cdmpp_err *err);
/* Close the open chunks, whatever they hold. */
cdmpp_status cd_writer_flush(cd_writer *w, cdmpp_err *err);
/* "OUT.partial/<name>" */
void cd_writer_path(const cd_writer *w, const char *name, char out[4096]);

/* Remove OUT.partial. */
void cd_writer_remove_parts(cd_writer *w);

/* state: false when there is none that fits. */
cdmpp_status cd_writer_save(const cd_writer *w, const void *place, size_t n, cdmpp_err *err);
cdmpp_status cd_writer_load(cd_writer *w, uint64_t *journal_length, cd_buf *place, bool *found, cdmpp_err *err);
/* Write path.new, sync, rename to path. */
cdmpp_status cd_writer_replace_file(const char *path, const void *data, size_t n, cdmpp_err *err);
#endif
