/* journal -- compressed chunks of arrays, appended to one file as they fill up.
 *
 *   | head: magic array n crc n_zip | n_zip bytes | head | ... |
 *
 * HDF5 files do not survive a kill while they are written, so extraction writes
 * this file first: what is before the length noted at the last checkpoint is
 * good, the rest is cut off when the run goes on. At the end the chunks are
 * copied into an HDF5 file as they are. One thread; cd_journal_chunk_compress is for any. */
#ifndef CD_JOURNAL_H
#define CD_JOURNAL_H
#include "dataset/file/file.h"

/* A chunk of one array on its way into the journal. */
typedef struct cd_journal_chunk {
    cd_layout_array array;
    uint32_t n, crc;   /* elements filled; CRC-32 of them                     */
    uint8_t *raw;      /* (cd_layout_array_chunk, cd_layout_array_bytes)                    */
    uint8_t *zip;      /* (n_zip) after cd_journal_chunk_compress                          */
    size_t n_zip;
    bool done;         /* cd_journal_chunk_compress has finished (see the thread's owner)  */
    bool failed;
    struct cd_journal_chunk *next;
} cd_journal_chunk;

CD_GIVE cd_journal_chunk *cd_journal_chunk_new(cd_layout_array a); /* NULL when out of memory */
void cd_journal_chunk_free(CD_TAKE cd_journal_chunk *c);    /* NULL is fine */
/* Compress and take the CRC; sets failed when memory runs out. */
void cd_journal_chunk_compress(cd_journal_chunk *c);

typedef struct cd_journal_entry {
    uint64_t offset;   /* of the compressed bytes */
    uint32_t n_zip, n;
    cd_layout_array array;
} cd_journal_entry;

typedef struct cd_journal {
    int fd;
    char path[4096];
    uint64_t length;
    cd_journal_entry *entry;   /* (n) in file order */
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
#endif
